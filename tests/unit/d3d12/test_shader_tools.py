"""Dispatches of shaders as checks, chaos, timelines, pictures of memory and the stepper see them."""

from __future__ import annotations

import gc
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import dmlemu
from dmlemu import Error, Strictness, dml
from dmlemu.d3d12 import Resource, ResourceBarrier, ResourceStates, RootParameter1
from dmlemu.stepping import observe
from dmlemu.tracing import trace, watch_memory
from shader_programs import needs_gcc

from .shader_stage import ROOTS, TABLES, ShaderStage
from .stage import STATE, Stage, fails, transition

pytestmark = needs_gcc


@pytest.fixture
def shaders(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> ShaderStage:
    return ShaderStage(stage, monkeypatch)


def chain(shaders: ShaderStage, *buffers: Resource, barrier: bool) -> None:
    """Each buffer but the first is written from the one before, all of them by unordered access views."""
    stage = shaders.stage
    parameters = (RootParameter1.constants(2, 0), ROOTS[1], ROOTS[2])
    commands = shaders.record(shaders.pipeline(parameters))
    commands.set_compute_root_32bit_constants(0, [1, 1])
    for source, target in pairwise(buffers):
        commands.set_compute_root_shader_resource_view(1, source.get_gpu_virtual_address())
        commands.set_compute_root_unordered_access_view(2, target.get_gpu_virtual_address())
        commands.dispatch(1)
        if barrier:
            read = STATE.NON_PIXEL_SHADER_RESOURCE
            commands.resource_barrier(transition(target, STATE.UNORDERED_ACCESS, read))
    stage.run(commands)


def write_twice(shaders: ShaderStage, barrier: bool) -> Resource:
    stage = shaders.stage
    source, target = stage.filled(np.arange(4, dtype=np.uint32)), stage.buffer(16)
    shaders.srv(0, source)
    shaders.uav(1, target)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    for factor in (1, 2):
        commands.set_compute_root_32bit_constants(0, [factor, 0])
        commands.dispatch(1)
        if barrier:
            commands.resource_barrier(ResourceBarrier.uav(target))
    stage.run(commands)
    return target


@pytest.mark.dmlemu(expect=["HAZARD_*"])
def test_a_missing_barrier_between_shaders_is_reported(stage: Stage, shaders: ShaderStage) -> None:
    with pytest.raises(Error, match="Dispatch of pipeline state 'scale' updates bytes") as caught:
        write_twice(shaders, barrier=False)
    assert caught.value.report.id.startswith("HAZARD_")


def test_barriers_between_shaders_are_enough(stage: Stage, shaders: ShaderStage) -> None:
    target = write_twice(shaders, barrier=True)
    assert stage.read(target).view(np.uint32).tolist() == [0, 2, 4, 6]
    a, b, c = stage.filled(np.arange(4, dtype=np.uint32)), stage.buffer(16), stage.buffer(16)
    chain(shaders, a, b, c, barrier=True)
    assert stage.read(c).view(np.uint32).tolist() == [2, 3, 4, 5]


def test_chaos_swaps_shaders_without_a_barrier_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for barrier in (True, False):
        seen = set()
        for seed in range(8):
            policy = dmlemu.chaos(seed, ["order"])
            stage = Stage(Strictness.DEBUG, policy)  # type: ignore[arg-type]
            target = write_twice(ShaderStage(stage, monkeypatch), barrier)
            seen.add(tuple(stage.read(target).view(np.uint32).tolist()))
        assert seen == ({(0, 2, 4, 6)} if barrier else {(0, 2, 4, 6), (0, 1, 2, 3)})


def test_a_list_is_disassembled(stage: Stage, shaders: ShaderStage) -> None:
    pipeline = shaders.pipeline(TABLES)
    commands = shaders.record(pipeline)
    shaders.srv(0, stage.filled(np.ones(4, np.uint32)))
    shaders.uav(1, stage.buffer(16))
    commands.set_compute_root_32bit_constants(0, [7, 8])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.dispatch(2, 3)
    commands.close()
    lines = commands.disassemble().splitlines()
    assert lines[-2].startswith("Dispatch of pipeline state 'scale' (")
    low, high = shaders.handle() & 0xFFFFFFFF, shaders.handle() >> 32
    words = f"arguments 0x7 0x8 {low:#x} {high:#x}"
    assert lines[-1].endswith(f"DISPATCH_SHADER program={pipeline.program.serial} groups=2x3x1 {words}")


def test_RecordDispatch_unsets_the_pipeline_state(stage: Stage, shaders: ShaderStage) -> None:
    device = dml.create_device(stage.device)
    tensor = dml.BufferTensorDesc(dml.TensorDataType.UINT32, [4])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor, output_tensor=tensor)
    operator = device.compile_operator(device.create_operator(desc))
    operator.set_name("copy")
    initializer = device.create_operator_initializer([operator])
    source, target = stage.filled(np.arange(4, dtype=np.uint32)), stage.buffer(16)
    cpu, recorder = shaders.slot(0), device.create_command_recorder()

    def bind(what: object) -> dml.BindingTable:
        count = what.get_binding_properties().required_descriptor_count  # type: ignore[attr-defined]
        return device.create_binding_table(dml.BindingTableDesc(what, cpu, shaders.handle(), count))

    commands = shaders.record()
    recorder.record_dispatch(commands, initializer, bind(initializer))
    stage.run(commands)
    table = bind(operator)
    table.bind_inputs([dml.BindingDesc.buffer(source, 0, 16)])
    table.bind_outputs([dml.BindingDesc.buffer(target, 0, 16)])
    pipeline = shaders.pipeline(ROOTS)
    commands = shaders.record(pipeline)
    recorder.record_dispatch(commands, operator, table)
    with fails("CM3") as caught:
        commands.dispatch(1)
    assert caught.value.report.hint == (
        "Set it again: RecordDispatch of compiled operator 'copy' has replaced it."
    )
    commands.set_pipeline_state(pipeline)
    with fails("CM3"):
        commands.dispatch(1)
    with fails("SC2"):
        commands.set_compute_root_32bit_constant(0, 1)


def test_the_stepper_shows_operands_states_and_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    with observe() as run:
        shaders = ShaderStage(Stage(), monkeypatch)
        stage = shaders.stage
        target = write_twice(shaders, barrier=True)
        target.set_name("target")
        stage.read(target)
    moment = next(each for each in run.moments if each.name.startswith("Dispatch of"))
    assert moment.is_dispatch and moment.text.startswith("DISPATCH_SHADER")
    read, written = moment.operands
    assert (read.name, read.access, read.begin, read.end) == ("'x'", "reads", 0, 16)
    assert (written.name, written.access) == ("'y'", "reads and writes")
    assert [each.descriptor for each in moment.operands] == [(0, 0), (0, 1)]
    states = run.states(moment.number)
    assert read.buffer is not None and written.buffer is not None
    assert states[read.buffer] == "NON_PIXEL_SHADER_RESOURCE (promoted)"
    assert states[written.buffer] == "UNORDERED_ACCESS (promoted)"
    assert written.state == ResourceStates.UNORDERED_ACCESS


def test_timelines_and_pictures_of_memory_have_dispatches_of_shaders(
    stage: Stage, shaders: ShaderStage, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    with trace(stage.device, path), watch_memory(stage.device):
        target = write_twice(shaders, barrier=True)
        picture = target.map_picture().text(100)
    assert "Dispatch of pipeline state 'sc" in picture and "reads and writes 'y': bytes [0, 16)" in picture
    names = [each.get("name", "") for each in json.loads(path.read_text())["traceEvents"]]
    assert "Dispatch of pipeline state 'scale'" in names


@pytest.mark.dmlemu(expect=["DESC_OVERWRITTEN"])
def test_DH10_static_descriptors_stay_from_the_dispatch_on(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    shaders.srv(0, source)
    shaders.uav(1, target)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.dispatch(1)
    shaders.srv(0, stage.filled(np.zeros(4, np.uint32)))
    with pytest.raises(Error, match="which the dispatch of pipeline state 'scale'") as caught:
        stage.run(commands)
    report = caught.value.report
    assert report.id == "DESC_OVERWRITTEN" and report.hint.startswith("write them before Dispatch")


@pytest.mark.dmlemu(expect=["DESC_OVERWRITTEN"])
def test_DH10_no_descriptor_changes_while_the_gpu_may_read_it(stage: Stage, shaders: ShaderStage) -> None:
    source, target = stage.filled(np.ones(4, np.uint32)), stage.buffer(16)
    shaders.srv(0, source)
    shaders.uav(1, target)
    commands = shaders.record(shaders.pipeline(TABLES))
    commands.set_compute_root_32bit_constants(0, [1, 0])
    commands.set_compute_root_descriptor_table(1, shaders.handle())
    commands.dispatch(1)
    stage.submit(commands)
    shaders.uav(1, target)  # the same view
    with pytest.raises(Error, match="which the dispatch of pipeline state 'scale'"):
        shaders.uav(1, source)
    shaders.uav(1, target)
    stage.finish()
    shaders.uav(1, source)
