"""Which bytes a shader reads before it writes them, and which it writes: for reads of memory that nobody has
written, and for hazards between dispatches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.shaders.dxc import CompilerMissing
from dmlemu.testing.stage import Stage, States
from dmlemu_hw import kernels
from dmlemu_hw.events import Accessing

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.dmlemu(expect=["HAZARD_*", "MEM_*"])

CODE = Path(__file__).parents[1] / "shaders" / "containers" / "saxpy_debug.dxil"
PARAMETER = d3d12.RootParameter1
PARAMETERS = (
    PARAMETER.constants(2, 0),
    PARAMETER.shader_resource_view(0),
    PARAMETER.unordered_access_view(0),
)
NOT_ZEROED = d3d12.HeapFlags.CREATE_NOT_ZEROED


class Saxpy(Stage):
    """A stage with a shader that makes ``y[i] += a * x[i]`` for each i below n; groups have 64 threads."""

    def __init__(self) -> None:
        super().__init__()
        self.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        desc = d3d12.RootSignatureDesc1(PARAMETERS, (), d3d12.RootSignatureFlags.NONE)
        versioned = d3d12.VersionedRootSignatureDesc(d3d12.RootSignatureVersion.VERSION_1_1, desc)
        blob = d3d12.serialize_versioned_root_signature(versioned)
        self.signature = self.device.create_root_signature(0, blob)
        made = d3d12.ComputePipelineStateDesc(self.signature, CODE)
        self.saxpy = self.device.create_compute_pipeline_state(made)
        self.saxpy.set_name("saxpy")

    def set_arguments(self, x: Any, y: Any, n: int, first: int = 0) -> None:
        """The elements from ``first`` on."""
        self.use_shader(self.saxpy)
        self.list.set_compute_root_32bit_constants(0, [int(np.float32(2).view(np.uint32)), n])
        self.list.set_compute_root_shader_resource_view(1, x.get_gpu_virtual_address() + 4 * first)
        self.list.set_compute_root_unordered_access_view(2, y.get_gpu_virtual_address() + 4 * first)

    def record(self, x: Any, y: Any, n: int, first: int = 0) -> None:
        self.set_arguments(x, y, n, first)
        self.list.dispatch(1)

    def written(self, name: str, size: int) -> Any:
        """A buffer of 256 bytes, of which so many are written."""
        buffer, source = self.buffer(name, heap_flags=NOT_ZEROED), self.filled(f"source of {name}")
        self.list.copy_buffer_region(buffer, 0, source, 0, size)
        self.run()
        return buffer

    @property
    def said(self) -> list[str]:
        self.device.checks.end()
        return [f"{each.report.id}: {each.report.message}" for each in self.device.reports]


@pytest.fixture
def stage() -> Saxpy:
    return Saxpy()


# --- memory that nobody has written ---


def test_only_what_a_shader_reads_must_be_written(stage: Saxpy) -> None:
    x, y = stage.written("x", 40), stage.written("y", 40)
    stage.record(x, y, 10)
    stage.run()
    assert stage.said == []


@pytest.mark.parametrize(("x_bytes", "y_bytes", "name"), [(36, 40, "x"), (40, 36, "y")])
def test_the_first_byte_that_is_read_unwritten_is_reported(
    stage: Saxpy, x_bytes: int, y_bytes: int, name: str
) -> None:
    x, y = stage.written("x", x_bytes), stage.written("y", y_bytes)
    stage.record(x, y, 10)
    stage.run()
    assert stage.said == [
        f"MEM_UNINIT_READ: Dispatch of pipeline state 'saxpy' reads '{name}' from byte 36 of buffer "
        f"'{name}', which nobody has written."
    ]


def test_what_a_shader_wrote_is_written(stage: Saxpy) -> None:
    x, y, z = stage.written("x", 256), stage.written("y", 0), stage.written("z", 256)
    stage.record(x, y, 10)
    stage.run()
    assert len(stage.said) == 1 and "reads 'y' from byte 0 of buffer 'y'" in stage.said[0]
    stage.record(y, z, 10)
    stage.run()
    assert len(stage.said) == 1
    stage.record(y, z, 11)
    stage.run()
    assert len(stage.said) == 2 and "reads 'x' from byte 40 of buffer 'y'" in stage.said[1]


@pytest.mark.parametrize("written", [False, True])
def test_the_arguments_of_an_execute_indirect_must_be_written(stage: Saxpy, written: bool) -> None:
    x, y = stage.written("x", 256), stage.written("y", 256)
    groups = np.uint32([1, 1, 1])
    arguments = stage.upload("arguments", groups) if written else stage.buffer("arguments")
    desc = d3d12.CommandSignatureDesc(12, [d3d12.IndirectArgumentDesc.dispatch()])
    signature = stage.device.create_command_signature(desc)
    stage.set_arguments(x, y, 64)
    stage.transition(States.COMMON, States.INDIRECT_ARGUMENT, arguments)
    stage.list.execute_indirect(signature, 1, arguments)
    stage.run()
    missing = (
        "MEM_UNINIT_READ: ExecuteIndirect of pipeline state 'saxpy' reads pArgumentBuffer from byte 0 of "
        "buffer 'arguments', which nobody has written: it is still zero from the buffer's creation."
    )
    assert stage.said == ([] if written else [missing])


def test_a_view_of_many_dispatches_is_accessed_once_by_each(stage: Saxpy) -> None:
    """The accesses of an ExecuteIndirect do not grow with the square of its dispatches."""
    count, found = 40, list[int]()

    def note(event: Accessing) -> None:
        found.append(len(event.accesses))

    x, y = stage.written("x", 256), stage.written("y", 256)
    arguments = stage.upload("arguments", np.tile(np.uint32([1, 1, 1]), count))
    desc = d3d12.CommandSignatureDesc(12, [d3d12.IndirectArgumentDesc.dispatch()])
    signature = stage.device.create_command_signature(desc)
    stage.set_arguments(x, y, 64)
    stage.transition(States.COMMON, States.INDIRECT_ARGUMENT, arguments)
    stage.list.execute_indirect(signature, count, arguments)
    with stage.device.events.subscribe(note, Accessing):
        stage.run()
    assert stage.said == [] and 2 * count <= max(found) <= 5 * count


# --- many groups, which several threads try at first ---


GROUPS = 40
CHAIN = """
RWStructuredBuffer<uint> y : register(u0);
cbuffer numbers : register(b0) { uint behind, place; };
[RootSignature("RootConstants(num32BitConstants=2, b0), UAV(u0)")]
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    y[id.x + behind] += 3 * y[id.x];
    if (place != 0) InterlockedAdd(y[place], 1, y[id.x + behind]);
}
"""


@pytest.mark.dmlemu(expect=["SHADER_*"])
@pytest.mark.parametrize(
    ("behind", "place", "races"),
    [(64, 0, True), (64 * GROUPS, 0, False), (64 * GROUPS, 64 * 2 * GROUPS, False)],
    ids=["chain", "apart", "counter"],
)
def test_groups_that_depend_on_each_other_run_in_order(behind: int, place: int, races: bool) -> None:
    """Each group reads what the one before it writes, or its own place in a row that all count.  The second
    dispatch of the ExecuteIndirect begins with what the first one wrote."""

    def ran(threads: int) -> tuple[list[str], bytes]:
        kernels.lib.dmlk_set_threads(threads)
        stage = Stage()
        stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        try:
            pipeline = stage.shader("chain", CHAIN)
        except CompilerMissing as absent:
            pytest.skip(str(absent))
        y = stage.upload("y", np.arange(64 * (2 * GROUPS + 1), dtype=np.uint32))
        arguments = stage.upload("arguments", np.uint32([GROUPS, 1, 1, GROUPS, 1, 1]))
        desc = d3d12.CommandSignatureDesc(12, [d3d12.IndirectArgumentDesc.dispatch()])
        signature = stage.device.create_command_signature(desc)
        stage.use_shader(pipeline)
        stage.list.set_compute_root_32bit_constants(0, [behind, place])
        stage.list.set_compute_root_unordered_access_view(1, y.get_gpu_virtual_address())
        stage.transition(States.COMMON, States.INDIRECT_ARGUMENT, arguments)
        stage.list.execute_indirect(signature, 2, arguments)
        stage.run()
        stage.device.checks.end()
        found = stage.read(y, np.uint32).tobytes()
        return [each.report.text() for each in stage.device.reports], found

    before = kernels.threads()
    try:
        several, one = (ran(threads) for threads in (4, 1))
    finally:
        kernels.lib.dmlk_set_threads(before)
    assert several == one
    assert any("SHADER_RACE" in each for each in one[0]) == races


# --- hazards ---


def test_dispatches_that_write_other_halves_of_a_view_need_no_barrier(stage: Saxpy) -> None:
    x, y = stage.written("x", 256), stage.written("y", 256)
    stage.record(x, y, 32)
    stage.record(x, y, 32, first=32)
    stage.run()
    assert stage.said == []


def test_one_element_that_both_write_is_a_hazard(stage: Saxpy) -> None:
    x, y = stage.written("x", 256), stage.written("y", 256)
    stage.record(x, y, 33)
    stage.record(x, y, 32, first=32)
    stage.run()
    hazards = [each for each in stage.device.reports if each.report.id.startswith("HAZARD_")]
    assert {each.report.id for each in hazards} <= {"HAZARD_RAW", "HAZARD_WAR", "HAZARD_WAW"} and hazards
    text = hazards[0].report.text()
    assert "bytes [128, 132) of buffer 'y'" in text and "'saxpy' (command" in text
    assert "elements (" not in text


def test_a_barrier_between_them_is_enough(stage: Saxpy) -> None:
    x, y = stage.written("x", 256), stage.written("y", 256)
    stage.record(x, y, 33)
    stage.list.resource_barrier([d3d12.ResourceBarrier.uav(y)])
    stage.record(x, y, 32, first=32)
    stage.run()
    assert stage.said == []


@pytest.mark.parametrize("first", [0, 15, 16])
def test_a_shader_beside_an_operator(stage: Saxpy, first: int) -> None:
    """The operator writes the first 16 elements of the shader's view."""
    copy, source = stage.copy_operator("copy", 16), stage.filled("source", 64)
    x, y = stage.written("x", 256), stage.written("y", 256)
    stage.dispatch(copy, [source], [y])
    stage.record(x, y, 8, first=first)
    stage.run()
    assert all(each.startswith("HAZARD_") for each in stage.said)
    assert bool(stage.said) == (first < 16)
