"""Dispatches of shaders run again from a record: every way to bind a view, replayed and reduced."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml, recording
from dmlemu.recording import Record, Run
from dmlemu.recording.forms import model_of, program_text, run_model_text, run_program_text, shader_files
from dmlemu.recording.program import mended, packed, program_of, run
from dmlemu.shaders.dxc import CompilerMissing, compile_hlsl

pytest.importorskip("llvmlite")

STATES, TYPES = d3d12.ResourceStates, d3d12.DescriptorHeapType
HLSL = """
struct Row { float3 numbers; };
StructuredBuffer<float> x; RWStructuredBuffer<float> y; RWStructuredBuffer<uint> found;
StructuredBuffer<Row> rows; Buffer<float> typed; RWByteAddressBuffer raw;
StructuredBuffer<float> array[3] : register(t0, space1); Buffer<float> many[] : register(t0, space2);
struct Settings { float scale; uint count; };
ConstantBuffer<Settings> settings;

[RootSignature("RootConstants(num32BitConstants=2, b0), SRV(t0), UAV(u0)")]
[numthreads(16, 1, 1)] void roots(uint i : SV_DispatchThreadID) {
    if (i < settings.count) y[i] += settings.scale * x[i];
}
[RootSignature("CBV(b0), DescriptorTable(SRV(t0), UAV(u0))")]
[numthreads(16, 1, 1)] void table(uint i : SV_DispatchThreadID) {
    if (i < settings.count) y[i] += settings.scale * x[i];
}
[RootSignature("DescriptorTable(CBV(b0), SRV(t0), UAV(u0))")]
[numthreads(16, 1, 1)] void appends(uint i : SV_DispatchThreadID) {
    if (i < settings.count && x[i] > settings.scale) found[found.IncrementCounter()] = i;
}
[RootSignature("DescriptorTable(SRV(t0, numDescriptors=2), UAV(u0, numDescriptors=2))")]
[numthreads(4, 1, 1)] void formats(uint i : SV_DispatchThreadID) {
    y[i] = typed[i] + dot(rows[i].numbers, float3(1, 10, 100));
    raw.Store(4 * i, i);
}
[RootSignature("UAV(u0), DescriptorTable(SRV(t0, space=1, numDescriptors=3)),"
               "DescriptorTable(SRV(t0, space=2, numDescriptors=unbounded))")]
[numthreads(4, 1, 1)] void arrays(uint i : SV_DispatchThreadID) {
    y[i] = array[NonUniformResourceIndex(i % 2)][i] + many[NonUniformResourceIndex(i)][i];
}
[RootSignature("RootFlags(CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED)")]
[numthreads(4, 1, 1)] void heap(uint i : SV_DispatchThreadID) {
    StructuredBuffer<float> from = ResourceDescriptorHeap[3];
    RWStructuredBuffer<float> to = ResourceDescriptorHeap[5];
    to[i] = from[i] * 2;
}
[RootSignature("UAV(u0)")]
[numthreads(64, 1, 1)] void waves(uint i : SV_DispatchThreadID) {
    y[i] = WaveActiveSum(i) + WaveGetLaneCount();
}
"""

try:
    compile_hlsl("[numthreads(1, 1, 1)] void main() {}", "main", "cs_6_0")
except CompilerMissing as absent:
    pytestmark = pytest.mark.skip(str(absent))

NUMBERS = np.arange(1, 17, dtype=np.float32)
SETTINGS = struct.pack("<fI", 3.0, 10)


class Stage:
    """A session, the pipeline state of an entry, and a heap of eight descriptors."""

    def __init__(self, session: dmlemu.Session, entry: str) -> None:
        self.session, self.device = session, session.device
        code = compile_hlsl(HLSL, entry, "cs_6_6")
        desc = d3d12.ComputePipelineStateDesc(cs=code)
        self.pipeline = session.keep(self.device.create_compute_pipeline_state(desc))
        self.pipeline.set_name(entry)
        heap = d3d12.DescriptorHeapDesc(TYPES.CBV_SRV_UAV, 8, d3d12.DescriptorHeapFlags.SHADER_VISIBLE)
        self.heap = session.keep(self.device.create_descriptor_heap(heap))
        self.step = self.device.get_descriptor_handle_increment_size(TYPES.CBV_SRV_UAV)

    def cpu(self, place: int) -> int:
        return self.heap.get_cpu_descriptor_handle_for_heap_start() + place * self.step

    def gpu(self, place: int) -> int:
        return self.heap.get_gpu_descriptor_handle_for_heap_start() + place * self.step

    def srv(self, place: int, buffer: Any, *view: Any, format: Any = d3d12.Format.UNKNOWN) -> None:
        desc = d3d12.ShaderResourceViewDesc(format, buffer=d3d12.BufferSrv(*view))
        self.device.create_shader_resource_view(buffer, desc, self.cpu(place))

    def uav(
        self, place: int, buffer: Any, *view: Any, format: Any = d3d12.Format.UNKNOWN, counter: Any = None
    ) -> None:
        desc = d3d12.UnorderedAccessViewDesc(format, buffer=d3d12.BufferUav(*view))
        self.device.create_unordered_access_view(buffer, counter, desc, self.cpu(place))

    def cbv(self, place: int, buffer: d3d12.Resource) -> None:
        desc = d3d12.ConstantBufferViewDesc(buffer.get_gpu_virtual_address(), 256)
        self.device.create_constant_buffer_view(desc, self.cpu(place))

    def settings(self) -> d3d12.Resource:
        data = np.frombuffer(SETTINGS + bytes(248), np.uint8)
        return self.session.upload("settings", data)

    def begin(self) -> d3d12.CommandList:
        commands = self.session.list
        commands.set_descriptor_heaps([self.heap])
        commands.set_pipeline_state(self.pipeline)
        commands.set_compute_root_signature(self.pipeline.root_signature)
        return commands


def address(buffer: d3d12.Resource) -> int:
    return buffer.get_gpu_virtual_address()


# --- programs ---


def roots(stage: Stage) -> None:
    x, y = stage.session.upload("x", NUMBERS), stage.session.upload("y", NUMBERS)
    commands = stage.begin()
    commands.set_compute_root_32bit_constants(0, SETTINGS)
    commands.set_compute_root_shader_resource_view(1, address(x) + 16)
    commands.set_compute_root_unordered_access_view(2, address(y) + 8)
    commands.dispatch(1)


def placed(stage: Stage) -> None:
    """What is read and what is written are resources of one heap, in different states."""
    session, tile = stage.session, 65536
    flags = d3d12.HeapFlags.ALLOW_ONLY_BUFFERS
    properties = d3d12.HeapProperties(d3d12.HeapType.DEFAULT)
    heap = session.keep(stage.device.create_heap(d3d12.HeapDesc(3 * tile, properties, flags=flags)))
    desc = d3d12.ResourceDesc.buffer(256, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS)
    x, y, settings = (
        session.keep(stage.device.create_placed_resource(heap, number * tile, desc, STATES.COMMON))
        for number in range(3)
    )
    for name, buffer in (("x", x), ("y", y), ("settings", settings)):
        buffer.set_name(name)
    session.write(x, NUMBERS)
    session.write(y, NUMBERS)
    session.write(settings, np.frombuffer(SETTINGS + bytes(248), np.uint8))
    stage.srv(2, x, 1, 12, 4)
    stage.uav(3, y, 2, 10, 4)
    commands = stage.begin()
    commands.set_compute_root_constant_buffer_view(0, address(settings))
    commands.set_compute_root_descriptor_table(1, stage.gpu(2))
    commands.dispatch(1)


def appends(stage: Stage) -> None:
    x = stage.session.upload("x", NUMBERS)
    found, counter = stage.session.buffer("found", 64), stage.session.upload("counter", np.zeros(4, np.int32))
    stage.session.write(found, np.full(16, 99, np.uint32))
    stage.cbv(0, stage.settings())
    stage.srv(1, x, 0, 16, 4)
    stage.uav(2, found, 1, 15, 4, 8, counter=counter)
    commands = stage.begin()
    commands.set_compute_root_descriptor_table(0, stage.gpu(0))
    commands.dispatch(1)


def formats(stage: Stage) -> None:
    """Elements of 12 bytes, from the fifth on."""
    typed = stage.session.upload("typed", np.arange(1, 17, dtype=np.float16))
    rows = stage.session.upload("rows", np.arange(60, dtype=np.float32))
    y, raw = stage.session.upload("y", NUMBERS), stage.session.upload("raw", NUMBERS)
    places = {each.name: each for each in stage.pipeline.program.ranges}
    stage.srv(places["typed"].first, typed, 3, 10, format=d3d12.Format.R16_FLOAT)
    stage.srv(places["rows"].first, rows, 5, 8, 12)
    stage.uav(places["y"].first, y, 2, 8, 4)
    raw_view = (4, 8, 0, 0, d3d12.BufferUavFlags.RAW)
    stage.uav(places["raw"].first, raw, *raw_view, format=d3d12.Format.R32_TYPELESS)
    commands = stage.begin()
    commands.set_compute_root_descriptor_table(0, stage.gpu(0))
    commands.dispatch(1)


def arrays(stage: Stage) -> None:
    """The third descriptor of the array is never written, and a null descriptor is among the others."""
    x, y = stage.session.upload("x", NUMBERS), stage.session.upload("y", NUMBERS)
    stage.srv(0, x, 4, 8, 4)
    stage.srv(1, x, 0, 4, 4)
    for place in (3, 4, 6):
        stage.srv(place, x, place, 8, format=d3d12.Format.R32_FLOAT)
    stage.srv(5, None, 0, 4, format=d3d12.Format.R32_FLOAT)
    commands = stage.begin()
    commands.set_compute_root_unordered_access_view(0, address(y))
    commands.set_compute_root_descriptor_table(1, stage.gpu(0))
    commands.set_compute_root_descriptor_table(2, stage.gpu(3))
    commands.dispatch(1)


def heap(stage: Stage) -> None:
    x, y = stage.session.upload("x", NUMBERS), stage.session.upload("y", NUMBERS)
    stage.srv(3, x, 2, 8, 4)
    stage.uav(5, y, 4, 8, 4)
    stage.begin().dispatch(1)


def indirect(stage: Stage) -> None:
    """Two commands, which have constants, an address and groups; a third one would be behind the count."""
    session, argument = stage.session, d3d12.IndirectArgumentDesc
    x, y = session.upload("x", NUMBERS), session.upload("y", NUMBERS)
    rows = argument.constant(0, 0, 1), argument.shader_resource_view(1), argument.dispatch()
    desc = d3d12.CommandSignatureDesc(28, rows)
    signature = session.keep(stage.device.create_command_signature(desc, stage.pipeline.root_signature))
    data = b"".join(
        struct.pack("<fQIII", scale, address(x) + 16 * scale, 1, 1, 1) + bytes(4) for scale in (1, 2, 3)
    )
    arguments = session.upload("arguments", np.frombuffer(bytes(16) + data, np.uint32))
    count = session.upload("count", np.array([7, 2], np.uint32))
    commands = stage.begin()
    commands.set_compute_root_32bit_constant(0, 8, 1)
    commands.set_compute_root_unordered_access_view(2, address(y))
    commands.execute_indirect(signature, 3, arguments, 16, count, 4)


def waves(stage: Stage) -> None:
    commands = stage.begin()
    y = stage.session.upload("y", np.zeros(64, np.float32))
    commands = stage.begin()
    commands.set_compute_root_unordered_access_view(0, address(y))
    commands.dispatch(1)


class Case(NamedTuple):
    entry: str
    program: Callable[[Stage], None]
    problem: str = ""
    """What a DxDispatch model cannot hold."""


CASES = {
    "roots": Case("roots", roots),
    "placed": Case("table", placed),
    "appends": Case("appends", appends),
    "formats": Case("formats", formats),
    "arrays": Case("arrays", arrays, "declares 'array' as an array, to which a model binds nothing"),
    "heap": Case("heap", heap, "reads ResourceDescriptorHeap, to which a model binds nothing"),
    "indirect": Case("roots", indirect, "is an ExecuteIndirect, and a model has the numbers of groups"),
    "waves": Case("waves", waves),
}


def recorded(name: str, path: Path | None = None, *, chaos: Any = None) -> Record:
    case = CASES[name]
    device = d3d12.create_device(d3d12.Adapter(policy=chaos))
    with dmlemu.Session(dml.create_device(device)) as session, dmlemu.record(device, path) as found:
        case.program(Stage(session, case.entry))
        session.run()
    return found


def outputs(found: Record) -> list[tuple[str, list[Any]]]:
    (dispatch,) = found.dispatches
    assert dispatch.is_complete
    return [
        (tensor.path, found.array(dispatch.contents[i] or "").tolist())
        for i, tensor in dispatch.tensors(output=True)
    ]


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
@pytest.mark.parametrize("name", CASES)
def test_a_file_is_replayed(name: str, strictness: str, tmp_path: Path) -> None:
    path = tmp_path / "a.dmlrec"
    found = recorded(name, path)
    again = recording.read(path)
    assert again.dispatches == found.dispatches
    result = recording.replay(again, strictness=strictness)
    assert result and result.compared == 1 and not result.notes, str(result)
    (dispatch,) = found.dispatches
    before = [found.array(dispatch.contents[i] or "") for i, _ in dispatch.tensors(output=False)]
    assert all(not any(np.array_equal(each[1], old) for old in before) for each in outputs(found)[:1])


@pytest.mark.parametrize("name", CASES)
def test_the_program_and_its_texts_give_the_same(name: str) -> None:
    found = recorded(name)
    program, notes = program_of(found)
    assert not notes
    program = mended(packed(program._replace(steps=tuple(program.calls))))  # uploads are not needed

    def check(done: Run) -> None:
        """Buffers have some bytes more, to which views of root descriptors reach."""
        assert done.error is None, done.error
        assert not [each for each in done.reports if each.severity <= dmlemu.Severity.WARNING], done.reports
        pairs = zip(outputs(found), outputs(done.record), strict=True)
        assert all(name == other and values == more[: len(values)] for (name, values), (other, more) in pairs)

    check(run(program))
    check(run_program_text(program_text(program, "something", None), shader_files(program)))
    model, missing = model_of(program)
    if CASES[name].problem:
        assert model is None and any(CASES[name].problem in each for each in missing), missing
    else:
        assert model is not None
        check(run_model_text(program, model, None))
