"""Pipelines of compute shaders, what lists set for them, and their dispatches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dmlemu.shaders
from dmlemu import Error, HResult
from dmlemu.d3d12 import (
    Adapter,
    BufferSrv,
    BufferSrvFlags,
    CommandList,
    CommandQueueDesc,
    CommandQueueFlags,
    ComputePipelineStateDesc,
    DescriptorRange1,
    DescriptorRangeFlags,
    Format,
    PipelineStateFlags,
    PipelineStateSubobjectType,
    Resource,
    ResourceBarrier,
    ResourceStates,
    RootParameter1,
    RootSignatureDesc1,
    RootSignatureFlags,
    RootSignatureVersion,
    ShaderResourceViewDesc,
    ShaderVisibility,
    VersionedRootSignatureDesc,
    create_device,
    serialize_versioned_root_signature,
)
from dmlemu.d3d12.types.formats import TYPED
from dmlemu.shaders import Range, UnsupportedShader
from dmlemu.shaders.container import read_parts, write_container
from dmlemu_hw.formats import formats_of
from shader_programs import CONSTANTS, INPUT, OUTPUT, SCALE, needs_gcc

from .shader_stage import CODE, ROOTS, SRV, TABLES, UAV_RANGE, ShaderStage, table
from .stage import DIRECT, INVALID, Stage, fails, remarks, transition

pytestmark = needs_gcc

STATE = ResourceStates
INDEXED = RootSignatureFlags.CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED


@pytest.fixture
def shaders(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> ShaderStage:
    return ShaderStage(stage, monkeypatch)


def set_roots(commands: CommandList, source: Resource, target: Resource) -> None:
    """The arguments of ROOTS, with a factor of 1 and nothing added."""
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address())
    commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())


def test_CM3_a_shader_reads_and_writes_through_a_table(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.arange(8, dtype=np.uint32)), stage.buffer(32)
    shaders.srv(2, source, 8)
    shaders.uav(3, target, 8)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [3, 100])
    commands.set_compute_root_descriptor_table(1, shaders.handle(2))
    commands.dispatch(2)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [3 * i + 100 for i in range(8)]


def test_CM3_a_shader_reads_and_writes_through_root_descriptors(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.arange(8, dtype=np.uint32)), stage.buffer(32)
    commands = shaders.record(shaders.pipeline(ROOTS))
    commands.set_compute_root_32bit_constant(0, 2)
    commands.set_compute_root_32bit_constant(0, -1, 1)
    commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address() + 16)
    commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [7, 9, 11, 13, 0, 0, 0, 0]


# --- creating pipelines ---


def test_PS1_a_pipeline_state_has_a_shader(shaders: ShaderStage) -> None:
    signature, create = shaders.signature(TABLES), shaders.device.create_compute_pipeline_state
    with fails("PS1"):
        create(None)  # type: ignore[arg-type]
    with fails("PS1"):
        create(ComputePipelineStateDesc(signature))
    with fails("PS1", INVALID, 622):
        create(ComputePipelineStateDesc(signature, b"DXBC"))
    with fails("PS1", INVALID, 622):
        create(ComputePipelineStateDesc(signature, CODE[:100]))
    with fails("PS1"):
        create(ComputePipelineStateDesc(signature, "/does/not/exist.dxil"))
    with pytest.raises(TypeError):
        create(ComputePipelineStateDesc(signature, 7))  # type: ignore[arg-type]


def test_PS1_flags_and_node_mask(shaders: ShaderStage) -> None:
    shaders.compiles("scale")
    signature, create = shaders.signature(TABLES), shaders.device.create_compute_pipeline_state
    with fails("PS1", INVALID, 922):
        create(ComputePipelineStateDesc(signature, CODE, flags=PipelineStateFlags.TOOL_DEBUG))
    with fails("PS1"):
        create(ComputePipelineStateDesc(signature, CODE, node_mask=2))
    create(ComputePipelineStateDesc(signature, CODE, node_mask=1))


def test_PS1_the_shader_may_be_in_a_file(shaders: ShaderStage, tmp_path: Path) -> None:
    shaders.compiles("scale")
    file = tmp_path / "saxpy.dxil"
    file.write_bytes(CODE)
    for path in (file, str(file)):
        desc = ComputePipelineStateDesc(shaders.signature(TABLES), path)
        assert shaders.device.create_compute_pipeline_state(desc).shader.name == "scale"


def test_PS1_a_cached_blob_is_of_the_same_shader_and_root_signature(shaders: ShaderStage) -> None:
    shaders.compiles("scale")
    create = shaders.device.create_compute_pipeline_state
    blob = create(ComputePipelineStateDesc(shaders.signature(TABLES), CODE)).get_cached_blob()
    again = create(ComputePipelineStateDesc(shaders.signature(TABLES), CODE, cached_pso=blob))
    assert again.get_cached_blob() == blob
    create(ComputePipelineStateDesc(shaders.signature(TABLES), CODE, cached_pso=b""))
    with fails("PS1", INVALID, 887):
        create(ComputePipelineStateDesc(shaders.signature(ROOTS), CODE, cached_pso=blob))
    with fails("PS1", INVALID, 884):
        create(ComputePipelineStateDesc(shaders.signature(TABLES), CODE, cached_pso=blob[:-1]))
    again.release()
    with fails("CL9"):
        again.get_cached_blob()


def test_without_a_compiler_a_pipeline_says_what_to_install(
    shaders: ShaderStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(container: object, **options: object) -> None:
        raise UnsupportedShader("compiling shaders needs the extra hlsl")

    monkeypatch.setattr(dmlemu.shaders, "compile_shader", missing, raising=False)
    desc = ComputePipelineStateDesc(shaders.signature(TABLES), CODE)
    with pytest.raises(Error, match="needs the extra hlsl") as caught:
        shaders.device.create_compute_pipeline_state(desc)
    assert caught.value.hresult is HResult.E_NOTIMPL


def test_PS2_a_root_signature_is_given_or_in_the_shader(shaders: ShaderStage) -> None:
    shaders.compiles("scale")
    with fails("PS2", INVALID, 883):
        shaders.device.create_compute_pipeline_state(ComputePipelineStateDesc(None, CODE))
    parts = read_parts(CODE)
    desc = RootSignatureDesc1(TABLES)
    versioned = VersionedRootSignatureDesc(RootSignatureVersion.VERSION_1_1, desc)
    parts["RTS0"] = read_parts(serialize_versioned_root_signature(versioned))["RTS0"]
    own = write_container(parts)
    pipeline = shaders.device.create_compute_pipeline_state(ComputePipelineStateDesc(None, own))
    assert pipeline.root_signature.desc == desc
    assert pipeline.root_signature.matches(shaders.device.create_root_signature(0, own))
    pipeline.release()
    assert pipeline.root_signature.released


def test_PS2_every_range_is_bound(shaders: ShaderStage) -> None:
    for parameters, name, expected in (
        (TABLES[1:], "Scale", "b0"),
        (TABLES[:1], "x", "t0"),
        ((TABLES[0], table(DescriptorRange1(SRV, 1, 0))), "y", "u0"),
        ((TABLES[0], table(DescriptorRange1(SRV, 1, 1), DescriptorRange1(UAV_RANGE, 1, 0))), "x", "t0"),
        ((TABLES[0], table(DescriptorRange1(SRV, 1, 0, 1), DescriptorRange1(UAV_RANGE, 1, 0))), "x", "t0"),
    ):
        with fails("PS2", INVALID, 882) as caught:
            shaders.pipeline(parameters)
        report = caught.value.report
        assert report.expected == expected and f"uses '{name}' (" in report.message


def test_PS2_what_other_shaders_see_does_not_count(shaders: ShaderStage) -> None:
    hidden = RootParameter1.constants(2, 0, visibility=ShaderVisibility.PIXEL)
    with pytest.raises(Error, match="visible to PIXEL alone") as caught:
        shaders.pipeline((hidden, TABLES[1]))
    assert caught.value.report.rule.startswith("PS2: ")


def test_PS2_a_range_lies_in_one_range_of_the_table(shaders: ShaderStage) -> None:
    array = (replace(INPUT, count=4), OUTPUT)
    two = table(DescriptorRange1(SRV, 2, 0), DescriptorRange1(SRV, 2, 2), DescriptorRange1(UAV_RANGE, 1, 0))
    with fails("PS2", INVALID, 882):
        shaders.pipeline((two,), "count", array)
    unbounded = (replace(INPUT, count=0), OUTPUT)
    rest = table(DescriptorRange1(SRV, 100, 0))
    with fails("PS2", INVALID, 882):
        shaders.pipeline((rest, table(DescriptorRange1(UAV_RANGE, 1, 0))), "count", unbounded)


def test_PS2_root_descriptors_are_for_buffers_without_format_and_counter(shaders: ShaderStage) -> None:
    for ranges in (
        (CONSTANTS, Range("t", "typed", 0, 0, element="float", name="x"), OUTPUT),
        (CONSTANTS, INPUT, replace(OUTPUT, counter=True)),
    ):
        with fails("PS2", INVALID, 882):
            shaders.pipeline(ROOTS, "scale", ranges)
    raw = (CONSTANTS, Range("t", "raw", 0, 0, name="x"), Range("u", "raw", 0, 0, name="y"))
    assert shaders.pipeline(ROOTS, "scale", raw).program.ranges[1].kind.name == "RAW"


def test_PS2_indexing_the_heap_needs_its_flag(shaders: ShaderStage) -> None:
    with fails("PS2", INVALID, 882):
        shaders.pipeline((), "indexed", (), uses_heap=True)
    shaders.pipeline((), "indexed", (), uses_heap=True, flags=INDEXED)


def test_PS3_a_stream_has_the_subobjects_of_a_compute_pipeline(shaders: ShaderStage) -> None:
    shaders.compiles("scale")
    kind, signature = PipelineStateSubobjectType, shaders.signature(TABLES)
    create = shaders.device.create_pipeline_state
    create({kind.CS: CODE, kind.ROOT_SIGNATURE: signature, kind.NODE_MASK: 0})
    create([(kind.ROOT_SIGNATURE, signature), (kind.CS, CODE), (kind.FLAGS, PipelineStateFlags.NONE)])
    with fails("PS3", INVALID, 1018):
        create([(kind.CS, CODE), (kind.ROOT_SIGNATURE, signature), (kind.CS, CODE)])
    with fails("PS3", INVALID, 1019):
        create([(kind.CS, CODE), (23, 0)])  # type: ignore[list-item]
    with fails("PS3", INVALID, 1022):
        create({kind.ROOT_SIGNATURE: signature})
    create({kind.CS: CODE, kind.ROOT_SIGNATURE: signature, kind.VS: None, kind.PS: b"x", kind.BLEND: 0})
    with fails("PS3", INVALID, 1022):
        create({kind.CS: CODE, kind.VS: b"x"})
    with fails("PS3", INVALID, 1022):
        create({kind.CS: None, kind.VS: None, kind.PS: b"x"})
    with fails("PS3", INVALID, 1018):
        create([(kind.CS, CODE), (kind.BLEND, 0), (kind.BLEND, 0)])
    for shader in (kind.VS, kind.MS):
        with pytest.raises(Error, match=f"A pipeline state with the shader {shader.name} is not emulated"):
            create({kind.CS: None, shader: b"x"})
    with pytest.raises(TypeError):
        create([kind.CS])  # type: ignore[list-item]


# --- what lists set ---


def test_SC1_nothing_cannot_be_set(shaders: ShaderStage) -> None:
    commands = shaders.record()
    with fails("SC1"):
        commands.set_pipeline_state(None)  # type: ignore[arg-type]
    with fails("SC1"):
        commands.set_compute_root_signature(None)  # type: ignore[arg-type]
    with fails("SC1"):
        commands.execute_indirect(None, 1, None)  # type: ignore[arg-type]
    foreign = ShaderStage(Stage(), pytest.MonkeyPatch()).signature(TABLES)
    with fails("OB3"):
        commands.set_compute_root_signature(foreign)


def test_SC1_the_heap_is_set_before_a_root_signature_that_lets_shaders_index_it(
    stage: Stage, shaders: ShaderStage
) -> None:
    signature = shaders.signature((), INDEXED)
    commands, _ = stage.record()
    with fails("SC1"):
        commands.set_compute_root_signature(signature)
    commands.set_descriptor_heaps([shaders.heap])
    commands.set_compute_root_signature(signature)


def test_SC2_the_parameter_is_of_the_type_of_the_method(stage: Stage, shaders: ShaderStage) -> None:
    commands, _ = stage.record()
    with fails("SC2", INVALID, 952):
        commands.set_compute_root_32bit_constant(0, 1)
    commands.set_descriptor_heaps([shaders.heap])
    parameters = (
        *(RootParameter1.constants(2, 0), table(DescriptorRange1(SRV, 1, 5))),
        *(*ROOTS[1:], RootParameter1.constant_buffer_view(3)),
    )
    commands.set_compute_root_signature(shaders.signature(parameters))
    buffer = stage.buffer()
    address = buffer.get_gpu_virtual_address()
    calls: dict[int, Callable[[int], None]] = {
        0: lambda i: commands.set_compute_root_32bit_constant(i, 1),
        1: lambda i: commands.set_compute_root_descriptor_table(i, shaders.handle()),
        2: lambda i: commands.set_compute_root_shader_resource_view(i, address),
        3: lambda i: commands.set_compute_root_unordered_access_view(i, address),
        4: lambda i: commands.set_compute_root_constant_buffer_view(i, address),
    }
    for own, call in calls.items():
        call(own)
        for other in {-1, 0, 1, 2, 3, 4, 5} - {own}:
            with fails("SC2"):
                call(other)


def test_SC3_a_table_is_in_the_heap_that_is_set(stage: Stage, shaders: ShaderStage) -> None:
    commands = shaders.record()
    commands.set_compute_root_signature(shaders.signature(TABLES))
    other = stage.heap(visible=True).get_gpu_descriptor_handle_for_heap_start()
    for wrong in (other, shaders.handle() + 1, 0, shaders.slot(0)):
        with fails("SC3", INVALID, 708):
            commands.set_compute_root_descriptor_table(1, wrong)
    commands.set_compute_root_descriptor_table(1, shaders.handle(7))


def test_SC4_constants_fit_the_parameter(shaders: ShaderStage) -> None:
    commands = shaders.record()
    commands.set_compute_root_signature(shaders.signature(TABLES))
    for values, offset in (([1, 2, 3], 0), ([1], 2), ([1, 2], 1), ([1], -1)):
        with fails("SC4", INVALID, 709):
            commands.set_compute_root_32bit_constants(0, values, offset)
    for number in (2**32, -(2**31) - 1):
        with fails("SC4", INVALID, 709):
            commands.set_compute_root_32bit_constant(0, number)
    with fails("SC4", INVALID, 709):
        commands.set_compute_root_32bit_constants(0, b"12345")
    for values in ([1.0, -1], np.array([1, 0], np.float32).view(np.uint8), b"\0\0\x80\x3f\0\0\0\0", (1.0, 0)):
        commands.set_compute_root_32bit_constants(0, values)
        assert commands.compute.arguments[:4] == b"\0\0\x80\x3f"


def test_SC5_root_descriptors_are_aligned_addresses_in_buffers(stage: Stage, shaders: ShaderStage) -> None:
    buffer = stage.buffer(1024)
    address = buffer.get_gpu_virtual_address()
    commands = shaders.record()
    commands.set_compute_root_signature(
        shaders.signature((RootParameter1.constant_buffer_view(0), *ROOTS[1:]))
    )
    for set_it, index, step, message_id in (
        (commands.set_compute_root_constant_buffer_view, 0, 256, 710),
        (commands.set_compute_root_shader_resource_view, 1, 4, 711),
        (commands.set_compute_root_unordered_access_view, 2, 4, 712),
    ):
        set_it(index, address + step)
        for wrong in (address + step // 2, 0, address + 1024, shaders.handle()):
            with fails("SC5", INVALID, message_id):
                set_it(index, wrong)


# --- dispatches ---


def test_CM3_groups_are_at_most_65535(shaders: ShaderStage) -> None:
    commands = shaders.record()
    for groups in ((65536, 1, 1), (1, 65536, 1), (1, 1, 2**32), (-1, 1, 1)):
        with fails("CM3", INVALID, 1296):
            commands.dispatch(*groups)


@pytest.mark.dmlemu(expect=["EMPTY_DISPATCH"])
def test_CM3_a_dispatch_without_groups_does_nothing(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    commands = shaders.record(shaders.pipeline(ROOTS))
    set_roots(commands, source, target)
    commands.dispatch(4, 0, 1)
    assert remarks(stage) == [1254]
    stage.run(commands)
    assert not stage.read(target).any()


def test_CM3_pipeline_and_root_signature_are_set(stage: Stage, shaders: ShaderStage) -> None:
    pipeline = shaders.pipeline(TABLES)
    commands, allocator = stage.record()
    with fails("CM3", INVALID, 1045):
        commands.dispatch(1)
    commands.set_pipeline_state(pipeline)
    with fails("CM3", INVALID, 952):
        commands.dispatch(1)
    commands.set_compute_root_signature(shaders.signature(ROOTS))
    with fails("CM3", INVALID, 953):
        commands.dispatch(1)
    commands.set_compute_root_signature(shaders.signature(TABLES))  # equal to its own
    with fails("CM3"):  # the constants
        commands.dispatch(1)
    commands.clear_state(pipeline)
    with fails("CM3", INVALID, 952):
        commands.dispatch(1)
    commands.close()
    commands.reset(allocator, pipeline)
    with fails("CM3", INVALID, 952):
        commands.dispatch(1)
    again = stage.device.create_command_list(
        0, DIRECT, stage.device.create_command_allocator(DIRECT), pipeline
    )
    with fails("CM3", INVALID, 952):
        again.dispatch(1)


def test_CM3_every_argument_that_the_shader_uses_is_set(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    commands = shaders.record(shaders.pipeline(ROOTS))
    commands.set_compute_root_32bit_constant(0, 1, 1)
    with fails("CM3") as caught:
        commands.dispatch(1)
    assert "from constant 0 of root parameter 0 (constants)" in caught.value.report.message
    commands.set_compute_root_32bit_constant(0, 1)
    with fails("CM3", INVALID, 993):
        commands.dispatch(1)
    commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address())
    with fails("CM3", INVALID, 994):
        commands.dispatch(1)
    commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())
    commands.dispatch(1)
    commands.set_compute_root_signature(shaders.signature(ROOTS))  # an equal one: the arguments stay
    commands.dispatch(1)
    commands.set_compute_root_signature(shaders.signature((*ROOTS, RootParameter1.constants(1, 7))))
    commands.set_compute_root_signature(shaders.signature(ROOTS))
    with fails("CM3"):
        commands.dispatch(1)


def test_CM3_tables_lie_in_the_heap(stage: Stage, shaders: ShaderStage) -> None:
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    with fails("CM3", INVALID, 991):
        commands.dispatch(1)
    commands.set_compute_root_descriptor_table(1, shaders.handle(7))
    with fails("CM3", INVALID, 708) as caught:
        commands.dispatch(1)
    assert caught.value.report.given == "descriptors [8, 9)"


def test_CM3_another_heap_unsets_the_tables(stage: Stage, shaders: ShaderStage) -> None:
    buffer, other = stage.filled(np.arange(4, dtype=np.uint32)), stage.heap(8, visible=True)
    target = stage.buffer(16)
    shaders.srv(0, buffer)
    shaders.uav(1, target)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.set_descriptor_heaps([shaders.heap])  # the same one: nothing changes
    commands.dispatch(1)
    commands.set_descriptor_heaps([other])
    with fails("CM3", INVALID, 991) as caught:
        commands.dispatch(1)
    assert "SetDescriptorHeaps has replaced descriptor heap" in "".join(caught.value.report.context)
    commands.set_descriptor_heaps([shaders.heap])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.resource_barrier(ResourceBarrier.uav(target))
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [0, 1, 2, 3]


def test_CM3_a_buffer_is_not_read_and_written_in_two_states(stage: Stage, shaders: ShaderStage) -> None:
    buffer = stage.filled(np.ones(4, np.uint32))
    commands = shaders.record(shaders.pipeline(ROOTS))
    set_roots(commands, buffer, buffer)
    with fails("CM3", INVALID, 942):
        commands.dispatch(1)


def test_ST1_views_need_the_states_of_their_kinds(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.buffer(16), stage.buffer(16)
    commands = shaders.record(shaders.pipeline(ROOTS))
    commands.resource_barrier(
        [
            transition(source, STATE.COMMON, STATE.COPY_DEST),
            transition(target, STATE.COMMON, STATE.UNORDERED_ACCESS),
        ]
    )
    set_roots(commands, source, target)
    with fails("ST1"):
        commands.dispatch(1)
    commands.resource_barrier(transition(source, STATE.COPY_DEST, STATE.UNORDERED_ACCESS))
    with fails("ST1"):  # which no SRV may be in
        commands.dispatch(1)
    commands.resource_barrier(transition(source, STATE.UNORDERED_ACCESS, STATE.GENERIC_READ))
    commands.dispatch(1)
    commands.resource_barrier(transition(target, STATE.UNORDERED_ACCESS, STATE.NON_PIXEL_SHADER_RESOURCE))
    with fails("ST1"):
        commands.dispatch(1)


def test_ST3_promotion_is_to_one_state(stage: Stage, shaders: ShaderStage) -> None:
    a, b, c = (stage.filled(np.full(4, i, np.uint32)) for i in range(3))
    commands = shaders.record(shaders.pipeline(ROOTS))
    set_roots(commands, a, b)
    commands.dispatch(1)
    set_roots(commands, b, c)  # b was promoted to UNORDERED_ACCESS
    with fails("ST3"):
        commands.dispatch(1)
    commands.resource_barrier(transition(b, STATE.UNORDERED_ACCESS, STATE.NON_PIXEL_SHADER_RESOURCE))
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(c).view(np.uint32).tolist() == [0] * 4


def test_CM3_upload_buffers_can_be_read(stage: Stage, shaders: ShaderStage) -> None:
    constants = np.zeros(64, np.uint32)
    constants[:2] = 5, 1
    source, target = stage.upload(np.arange(4, dtype=np.uint32)), stage.buffer(16)
    cbuffer = stage.upload(constants)
    parameters = (RootParameter1.constant_buffer_view(0), *ROOTS[1:])
    commands = shaders.record(shaders.pipeline(parameters))
    commands.set_compute_root_constant_buffer_view(0, cbuffer.get_gpu_virtual_address())
    commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address())
    commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [1, 6, 11, 16]
    commands, _ = stage.record()


# --- what the GPU finds ---


def run_table(shaders: ShaderStage, write: Callable[[], None], ranges: Sequence[Range] = SCALE) -> Error:
    """The error of a dispatch through a table with the descriptors that ``write`` writes to slots 0 and 1."""
    stage = shaders.stage
    volatile = DescriptorRangeFlags.DESCRIPTORS_VOLATILE | DescriptorRangeFlags.DATA_VOLATILE
    views = table(
        DescriptorRange1(SRV, 1, 0, flags=volatile), DescriptorRange1(UAV_RANGE, 1, 0, flags=volatile)
    )
    commands = shaders.record(shaders.pipeline((TABLES[0], views), "scale", ranges))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.dispatch(1)
    write()  # descriptors that are volatile may be written until the list is executed
    with pytest.raises(Error) as caught:
        stage.run(commands)
    assert stage.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG
    return caught.value


@pytest.mark.dmlemu(expect=["DESC_UNINIT"])
def test_DH7_a_descriptor_that_was_never_written(stage: Stage, shaders: ShaderStage) -> None:
    target = stage.buffer(16)
    error = run_table(shaders, lambda: shaders.uav(1, target))
    assert error.report.id == "DESC_UNINIT" and error.report.rule.startswith("CM3: ")
    begin = "'x' of the dispatch of pipeline state 'scale' is read through slot 0 of descriptor heap"
    assert error.report.message.startswith(begin)


@pytest.mark.dmlemu(expect=["DESC_KIND"])
@pytest.mark.parametrize("kind", ["uav", "raw", "typed", "stride"])
def test_CM3_a_descriptor_of_another_kind(stage: Stage, shaders: ShaderStage, kind: str) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)

    def write() -> None:
        shaders.uav(1, target)
        if kind == "uav":
            shaders.uav(0, source)
        elif kind == "stride":
            shaders.srv(0, source, 2, 8)
        else:
            flags = BufferSrvFlags.RAW if kind == "raw" else BufferSrvFlags.NONE
            format = Format.R32_TYPELESS if kind == "raw" else Format.R32_UINT
            desc = ShaderResourceViewDesc(format, buffer=BufferSrv(0, 4, flags=flags))
            shaders.device.create_shader_resource_view(source, desc, shaders.slot(0))

    error = run_table(shaders, write)
    found = {
        "uav": "a UAV of a structured buffer with elements of 4 bytes",
        "raw": "an SRV of a raw buffer",
        "typed": "an SRV of a typed buffer of format 42",
        "stride": "an SRV of a structured buffer with elements of 8 bytes",
    }
    wanted = "the shader declares an SRV of a structured buffer with elements of 4 bytes."
    assert error.report.id == "DESC_KIND"
    assert f"which holds {found[kind]}; {wanted}" in error.report.message.replace(" without a counter", "")


@pytest.mark.dmlemu(expect=["DESC_KIND"])
def test_CM3_a_typed_buffer_has_a_format_of_the_shaders_type(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)

    def write() -> None:
        shaders.uav(1, target)
        desc = ShaderResourceViewDesc(Format.R32_UINT, buffer=BufferSrv(0, 4))
        shaders.device.create_shader_resource_view(source, desc, shaders.slot(0))

    typed = replace(INPUT, kind="typed", stride=0, element="float")
    error = run_table(shaders, write, (CONSTANTS, typed, OUTPUT))
    wanted = "the shader declares an SRV of a typed buffer of float."
    assert f"which holds an SRV of a typed buffer of format 42; {wanted}" in error.report.message


@pytest.mark.dmlemu(expect=["DESC_STALE"])
def test_CM3_a_descriptor_of_a_released_buffer(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)

    def write() -> None:
        shaders.srv(0, source)
        shaders.uav(1, target)
        source.release()

    assert run_table(shaders, write).report.id == "DESC_STALE"


def test_CM3_null_descriptors_read_0_and_drop_writes(stage: Stage, shaders: ShaderStage) -> None:
    target = stage.filled(np.full(4, 7, np.uint32))
    shaders.srv(0, None)
    shaders.uav(1, target)
    shaders.srv(2, target)
    shaders.uav(3, None)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [1, 3])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.dispatch(1)
    commands.resource_barrier(transition(target, STATE.UNORDERED_ACCESS, STATE.NON_PIXEL_SHADER_RESOURCE))
    commands.set_compute_root_descriptor_table(1, shaders.handle(2))
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [3] * 4


def test_CM3_writes_past_a_view_are_dropped(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.arange(1, 9, dtype=np.uint32)), stage.filled(np.zeros(8, np.uint32))
    shaders.srv(0, source, 3)
    shaders.uav(1, target, 4)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [1, 10])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.dispatch(2)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [11, 12, 13, 10, 0, 0, 0, 0]


@pytest.mark.dmlemu(expect=["MEM_OOB_WRITE"])
def test_CM3_a_root_descriptor_ends_with_its_resource(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(8, np.uint32)), stage.buffer(24)
    commands = shaders.record(shaders.pipeline(ROOTS))
    set_roots(commands, source, target)
    commands.dispatch(2)
    with pytest.raises(Error) as caught:
        stage.run(commands)
    report = caught.value.report
    assert report.id == "MEM_OOB_WRITE" and report.d3d12_id == 961
    assert report.message.startswith(
        "Thread 2 of group (1, 0, 0) writes 4 bytes at byte 24 of u0 'y', line 7, a"
    )
    assert stage.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG


def test_DH11_an_array_of_descriptors_may_have_some_that_are_unwritten(
    stage: Stage, shaders: ShaderStage
) -> None:
    last, target = stage.filled(np.full(4, 9, np.uint32)), stage.buffer(16)
    ranges = (replace(INPUT, count=0), OUTPUT)
    parameters = (
        table(DescriptorRange1(SRV, 0xFFFFFFFF, 0)),
        RootParameter1.unordered_access_view(0),
    )
    shaders.srv(7, last)
    commands = shaders.record(shaders.pipeline(parameters, "count", ranges))
    commands.set_compute_root_descriptor_table(0, shaders.handle(3))
    commands.set_compute_root_unordered_access_view(1, target.get_gpu_virtual_address())
    commands.dispatch(1)
    stage.run(commands)
    assert stage.read(target).view(np.uint32)[:2].tolist() == [5, 9]


def test_CM3_counters_of_unordered_access_views(stage: Stage, shaders: ShaderStage) -> None:
    target, counter = stage.filled(np.zeros(4, np.uint32)), stage.filled(np.ones(2, np.uint32))
    shaders.uav(0, target, counter=counter)
    parameters = (table(DescriptorRange1(UAV_RANGE, 1, 0)),)
    commands = shaders.record(shaders.pipeline(parameters, "append", (replace(OUTPUT, counter=True),)))
    commands.set_compute_root_descriptor_table(0, shaders.handle())
    commands.dispatch(2)
    stage.run(commands)
    assert stage.read(counter).view(np.uint32).tolist() == [3, 1]
    assert sorted(stage.read(target).view(np.uint32).tolist()) == [0, 0, 0, 1]


@pytest.mark.dmlemu(expect=["DESC_KIND"])
def test_CM3_a_counter_that_the_view_does_not_have(stage: Stage, shaders: ShaderStage) -> None:
    target = stage.buffer(16)
    shaders.uav(0, target)
    parameters = (table(DescriptorRange1(UAV_RANGE, 1, 0)),)
    commands = shaders.record(shaders.pipeline(parameters, "append", (replace(OUTPUT, counter=True),)))
    commands.set_compute_root_descriptor_table(0, shaders.handle())
    commands.dispatch(1)
    with pytest.raises(Error, match=r"4 bytes without a counter; the shader declares .* and a counter\."):
        stage.run(commands)


def test_CM3_a_shader_may_index_the_heap(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.arange(4, dtype=np.uint32)), stage.buffer(16)
    shaders.srv(0, source)
    shaders.uav(1, target)
    commands = shaders.record(shaders.pipeline((), "indexed", (), uses_heap=True, flags=INDEXED))
    commands.dispatch(4)
    stage.run(commands)
    assert stage.read(target).view(np.uint32).tolist() == [0, 1, 2, 3]


@pytest.mark.dmlemu(expect=["GPU_TIMEOUT"])
def test_RM3_an_endless_shader_removes_the_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DMLEMU_GPU_TIMEOUT", "0.05")
    shaders = ShaderStage(Stage(), monkeypatch)
    commands = shaders.record(shaders.pipeline((), "endless", ()))
    commands.dispatch(8)
    with pytest.raises(Error) as caught:
        shaders.stage.run(commands)
    report = caught.value.report
    assert report.id == "GPU_TIMEOUT" and "did not end within 0.05 seconds" in report.message
    assert report.message.startswith("Pipeline state 'endless' (compute shader 'endless')")
    assert shaders.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG
    record = shaders.device.removal_record
    assert record is not None and record.operator == "pipeline state 'endless'"


def test_the_limit_of_shaders_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DMLEMU_GPU_TIMEOUT", raising=False)
    assert Adapter().gpu_timeout == 2
    monkeypatch.setenv("DMLEMU_GPU_TIMEOUT", "0.5")
    assert Adapter().gpu_timeout == 0.5 and Adapter(gpu_timeout=0).gpu_timeout == 0
    for wrong in ("-1", "inf", "nan", "two"):
        monkeypatch.setenv("DMLEMU_GPU_TIMEOUT", wrong)
        with pytest.raises(ValueError, match="DMLEMU_GPU_TIMEOUT is"):
            create_device(Adapter())
    for number in (-1, float("inf"), float("nan")):
        with pytest.raises(Error, match="gpu_timeout"):
            Adapter(gpu_timeout=number)
    monkeypatch.delenv("DMLEMU_GPU_TIMEOUT")
    device = create_device(Adapter())
    queues = [
        device.create_command_queue(CommandQueueDesc(DIRECT, flags=CommandQueueFlags(flags))).hardware
        for flags in (0, CommandQueueFlags.DISABLE_GPU_TIMEOUT)
    ]
    assert [queue.has_timeout for queue in queues] == [True, False]


def test_CL9_a_pipeline_state_outlives_what_executes_it(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    pipeline = shaders.pipeline(ROOTS)
    commands = shaders.record(pipeline)
    set_roots(commands, source, target)
    commands.dispatch(1)
    commands.close()
    pipeline.release()
    with fails("CL9", HResult.DXGI_ERROR_INVALID_CALL, 921):
        stage.submit(commands)
    with fails("CL9"):
        shaders.record().set_pipeline_state(pipeline)


# --- without a debug layer ---


@pytest.mark.dmlemu(expect=["*"])
def test_CM3_without_a_layer_close_fails_where_nothing_can_be_dispatched(
    runtime: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaders = ShaderStage(runtime, monkeypatch)
    pipeline = shaders.pipeline(ROOTS)
    for prepare in (lambda c: None, lambda c: c.set_pipeline_state(pipeline)):
        commands, _ = runtime.record()
        prepare(commands)
        commands.dispatch(1)
        with fails("CM3"):
            commands.close()


@pytest.mark.dmlemu(expect=["*"])
def test_CM3_without_a_layer_the_gpu_finds_what_is_not_set(
    runtime: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shaders = ShaderStage(runtime, monkeypatch)
    commands = shaders.record(shaders.pipeline(ROOTS))
    commands.dispatch(1)
    runtime.run(commands)
    assert runtime.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG
    assert runtime.device.removal_record is not None
    assert "root descriptor of 'x'" in runtime.device.removal_record.report.message


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("slot", [7, 8])
def test_CM3_without_a_layer_the_gpu_finds_tables_outside_of_heaps(
    runtime: Stage, monkeypatch: pytest.MonkeyPatch, slot: int
) -> None:
    shaders = ShaderStage(runtime, monkeypatch)
    source = runtime.filled(np.ones(4, np.uint32))
    shaders.srv(7, source)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_descriptor_table(1, shaders.handle(slot))
    if slot == 8:  # of no heap: the call is not recorded
        with fails("SC3"):
            commands.close()
        return
    commands.dispatch(1)
    runtime.run(commands)
    assert runtime.device.removal_record is not None
    assert runtime.device.removal_record.report.id == "DESC_INDEX"


@pytest.mark.dmlemu(expect=["*"])
def test_without_a_layer_a_shader_runs(runtime: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    shaders = ShaderStage(runtime, monkeypatch)
    source, target = runtime.filled(np.arange(4, dtype=np.uint32)), runtime.buffer(16)
    shaders.srv(0, source)
    shaders.uav(1, target)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [2, 1])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.dispatch(1)
    runtime.run(commands)
    assert runtime.read(target).view(np.uint32).tolist() == [1, 3, 5, 7]


def test_typed_views_that_can_be_made_are_those_that_shaders_read() -> None:
    """What a format's name says, and the GPU's elements."""
    of_shaders = {
        format: size
        for element in ("float", "uint", "int")
        for format, size in enumerate(formats_of(element))
        if size
    }
    assert {format: info.size for format, info in TYPED.items()} == of_shaders
