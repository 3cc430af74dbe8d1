"""ExecuteIndirect and command signatures (CM6, CS1)."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from dmlemu import Error, HResult
from dmlemu.d3d12 import (
    CommandList,
    CommandSignature,
    CommandSignatureDesc,
    IndirectArgumentDesc,
    IndirectArgumentType,
    Resource,
    ResourceStates,
    RootParameter1,
)
from shader_programs import needs_gcc

from .shader_stage import ROOTS, TABLES, ShaderStage
from .stage import INVALID, Stage, fails, remarks, transition

pytestmark = needs_gcc

STATE = ResourceStates
Argument = IndirectArgumentDesc


@pytest.fixture
def shaders(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> ShaderStage:
    return ShaderStage(stage, monkeypatch)


def plain(shaders: ShaderStage, stride: int = 12) -> CommandSignature:
    return shaders.device.create_command_signature(CommandSignatureDesc(stride, [Argument.dispatch()]))


def ready(shaders: ShaderStage, source: Resource, target: Resource) -> CommandList:
    """An open list with a pipeline and all its arguments."""
    commands = shaders.record(shaders.pipeline(ROOTS))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address())
    commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())
    return commands


# --- command signatures ---


def test_CS1_a_command_ends_with_its_only_dispatch(shaders: ShaderStage) -> None:
    create, signature = shaders.device.create_command_signature, shaders.signature(ROOTS)
    with fails("CS1"):
        create(None)  # type: ignore[arg-type]
    with fails("CS1"):
        create(CommandSignatureDesc(12))
    with fails("CS1"):
        create(CommandSignatureDesc(24, [Argument.dispatch(), Argument.dispatch()]))
    with fails("CS1"):
        create(CommandSignatureDesc(24, [Argument.dispatch(), Argument.constant(0, 0, 1)]), signature)
    with fails("CS1"):
        create(CommandSignatureDesc(24, [Argument.constant(0, 0, 1)]), signature)
    with fails("CS1"):
        create(CommandSignatureDesc(12, [Argument(99)]))  # type: ignore[arg-type]
    with fails("CS1"):
        create(CommandSignatureDesc(12, [Argument.dispatch()], 2))
    for kind in (IndirectArgumentType.DRAW, IndirectArgumentType.DISPATCH_RAYS):
        with pytest.raises(Error, match=f"of type {kind.name} is not emulated") as caught:
            create(CommandSignatureDesc(20, [Argument(kind)]))
        assert caught.value.hresult is HResult.E_NOTIMPL


def test_CS1_the_stride_holds_a_command(shaders: ShaderStage) -> None:
    for stride in (0, 8, 14):
        with fails("CS1"):
            plain(shaders, stride)
    assert plain(shaders, 64).byte_size == 12


def test_CS1_a_root_signature_is_given_if_a_command_changes_arguments(shaders: ShaderStage) -> None:
    create, signature = shaders.device.create_command_signature, shaders.signature(ROOTS)
    with fails("CS1"):
        create(CommandSignatureDesc(12, [Argument.dispatch()]), signature)
    with fails("CS1"):
        create(CommandSignatureDesc(16, [Argument.constant(0, 0, 1), Argument.dispatch()]))


def test_CS1_arguments_are_sorted_and_of_their_parameters(shaders: ShaderStage) -> None:
    signature = shaders.signature(ROOTS)

    def create(*arguments: IndirectArgumentDesc) -> CommandSignature:
        desc = CommandSignatureDesc(64, [*arguments, Argument.dispatch()])
        return shaders.device.create_command_signature(desc, signature)

    for wrong in (
        [Argument.constant(3, 0, 1)],  # no such parameter
        [Argument.constant(-1, 0, 1)],
        [Argument.constant(1, 0, 1)],  # of another type
        [Argument.unordered_access_view(1)],
        [Argument.constant_buffer_view(0)],
        [Argument.constant(0, 1, 2)],  # past the last constant
        [Argument.constant(0, 0, 0)],
        [Argument.unordered_access_view(2), Argument.shader_resource_view(1)],  # not sorted
        [Argument.shader_resource_view(1), Argument.shader_resource_view(1)],
        [Argument.constant(0, 1, 1), Argument.constant(0, 0, 1)],
    ):
        with fails("CS1"):
            create(*wrong)
    made = create(Argument.constant(0, 1, 1), Argument.unordered_access_view(2))
    assert (made.byte_size, made.steps) == (24, [(1, 1), (4, 2)])


# --- ExecuteIndirect ---


def test_CM6_groups_come_from_a_buffer(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.arange(12, dtype=np.uint32)), stage.buffer(48)
    arguments = stage.filled(np.array([9, 2, 1, 1], np.uint32))
    commands = ready(shaders, source, target)
    commands.execute_indirect(plain(shaders), 1, arguments, 4)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [*range(8), 0, 0, 0, 0]


def test_CM6_each_command_sets_its_root_arguments(stage: Stage, shaders: ShaderStage) -> None:
    source, a, b = stage.filled(np.arange(4, dtype=np.uint32)), stage.buffer(16), stage.buffer(16)
    desc = CommandSignatureDesc(
        32, [Argument.constant(0, 1, 1), Argument.unordered_access_view(2), Argument.dispatch()]
    )
    data = b"".join(
        struct.pack("<IQIII8x", number, buffer.get_gpu_virtual_address(), 1, 1, 1)
        for number, buffer in ((10, a), (20, b), (30, b))
    )
    arguments, count = stage.filled(np.frombuffer(data, np.uint8)), stage.filled(np.array([0, 2], np.uint32))
    commands = ready(shaders, source, a)
    signature = shaders.device.create_command_signature(desc, shaders.signature(ROOTS))
    commands.execute_indirect(signature, 3, arguments, 0, count, 4)
    with fails("CM3"):  # what the commands have set is not set any more
        commands.dispatch(1)
    stage.run(commands)
    assert stage.read(a).view(np.uint32).tolist() == [10, 11, 12, 13]
    assert stage.read(b).view(np.uint32).tolist() == [20, 21, 22, 23]


def test_CM6_the_buffers_contain_the_commands(stage: Stage, shaders: ShaderStage) -> None:
    source, target, arguments = stage.filled(np.ones(4, np.uint32)), stage.buffer(16), stage.buffer(64)
    commands = ready(shaders, source, target)
    with fails("CM6", INVALID, 744):
        commands.execute_indirect(plain(shaders), 1, None)  # type: ignore[arg-type]
    for most, offset, count_offset in ((1, 2, 0), (5, 8, 0), (1, 56, 0), (1, -4, 0), (1, 0, 62), (1, 0, 64)):
        with fails("CM6", INVALID, 744):
            commands.execute_indirect(plain(shaders), most, arguments, offset, arguments, count_offset)
    for most in (-1, 2**32):
        with fails("CM6", INVALID, 744):
            commands.execute_indirect(plain(shaders), most, arguments)
    commands.execute_indirect(plain(shaders, 26 * 2), 2, arguments, 0, arguments, 60)


def test_CM6_the_command_signature_is_of_the_root_signature_that_is_set(
    stage: Stage, shaders: ShaderStage
) -> None:
    source, target, arguments = stage.filled(np.ones(4, np.uint32)), stage.buffer(16), stage.buffer(64)
    desc = CommandSignatureDesc(16, [Argument.constant(0, 1, 1), Argument.dispatch()])
    other = shaders.device.create_command_signature(desc, shaders.signature(TABLES))
    commands = ready(shaders, source, target)
    with fails("CM6", INVALID, 744):
        commands.execute_indirect(other, 1, arguments)


@pytest.mark.dmlemu(expect=["EMPTY_DISPATCH"])
def test_CM6_no_commands(stage: Stage, shaders: ShaderStage) -> None:
    source, target, arguments = stage.filled(np.ones(4, np.uint32)), stage.buffer(16), stage.buffer(64)
    commands = ready(shaders, source, target)
    commands.execute_indirect(plain(shaders), 0, arguments, 64)
    assert remarks(stage) == [1357]


def test_CM6_the_argument_buffer_is_in_its_state(stage: Stage, shaders: ShaderStage) -> None:
    source, target, arguments = stage.filled(np.ones(4, np.uint32)), stage.buffer(16), stage.buffer(64)
    upload = stage.upload(np.ones(3, np.uint32))
    commands = ready(shaders, source, target)
    commands.resource_barrier(transition(arguments, STATE.COMMON, STATE.UNORDERED_ACCESS))
    with fails("ST1"):
        commands.execute_indirect(plain(shaders), 1, arguments)
    commands.execute_indirect(plain(shaders), 1, upload)  # GENERIC_READ contains it
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [1, 1, 1, 1]


@pytest.mark.dmlemu(expect=["INDIRECT_ARGUMENTS"])
def test_CM6_groups_in_the_buffer_are_at_most_65535(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    arguments = stage.filled(np.array([1, 65536, 1], np.uint32))
    commands = ready(shaders, source, target)
    commands.execute_indirect(plain(shaders), 1, arguments)
    with pytest.raises(Error, match=r"Command 0 in the argument buffer dispatches \(1, 65536, 1\) groups"):
        stage.run(commands)


@pytest.mark.dmlemu(expect=["MEM_OOB_WRITE"])
@pytest.mark.parametrize("is_handle", [False, True])
def test_CM6_an_address_in_the_buffer_that_is_of_no_resource(
    stage: Stage, shaders: ShaderStage, is_handle: bool
) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    desc = CommandSignatureDesc(20, [Argument.unordered_access_view(2), Argument.dispatch()])
    signature = shaders.device.create_command_signature(desc, shaders.signature(ROOTS))
    wrong = shaders.handle() if is_handle else 0
    arguments = stage.filled(np.frombuffer(struct.pack("<QIII", wrong, 1, 1, 1), np.uint8))
    commands = ready(shaders, source, target)
    commands.execute_indirect(signature, 1, arguments)
    with pytest.raises(Error, match="root descriptor of 'y'"):
        stage.run(commands)


def test_CM6_root_constants_of_another_parameter_stay(stage: Stage, shaders: ShaderStage) -> None:
    parameters = (*ROOTS, RootParameter1.constants(1, 7))
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    commands = shaders.record(shaders.pipeline(parameters))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address())
    commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())
    desc = CommandSignatureDesc(16, [Argument.constant(3, 0, 1), Argument.dispatch()])
    signature = shaders.device.create_command_signature(desc, shaders.signature(parameters))
    commands.execute_indirect(signature, 1, stage.filled(np.array([5, 1, 1, 1], np.uint32)))
    commands.resource_barrier(transition(target, STATE.UNORDERED_ACCESS, STATE.COPY_SOURCE))
    commands.resource_barrier(transition(target, STATE.COPY_SOURCE, STATE.UNORDERED_ACCESS))
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [1, 1, 1, 1]
