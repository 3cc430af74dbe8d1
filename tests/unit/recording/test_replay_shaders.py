"""Dispatches of shaders run again from a record: every way to bind a view, replayed and reduced."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml, recording
from dmlemu.cli import main
from dmlemu.recording import Record, RecordError, Run
from dmlemu.recording.forms import model_of, program_text, run_model_text, run_program_text, shader_files
from dmlemu.recording.model import ShaderWork
from dmlemu.recording.program import mended, packed, program_of
from dmlemu.recording.runs import run
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
[RootSignature("SRV(t0), UAV(u0)")]
[numthreads(16, 1, 1)] void races(uint i : SV_DispatchThreadID) { y[i / 32] = x[i]; }
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
    """A session, the pipeline state of an entry, and a heap of 80 descriptors."""

    def __init__(self, session: dmlemu.Session, entry: str) -> None:
        self.session, self.device = session, session.device
        code = compile_hlsl(HLSL, entry, "cs_6_6")
        desc = d3d12.ComputePipelineStateDesc(cs=code)
        self.pipeline = session.keep(self.device.create_compute_pipeline_state(desc))
        self.pipeline.set_name(entry)
        heap = d3d12.DescriptorHeapDesc(TYPES.CBV_SRV_UAV, 80, d3d12.DescriptorHeapFlags.SHADER_VISIBLE)
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


def joined(stage: Stage) -> None:
    """More views of one buffer than are told apart."""
    x, y = stage.session.upload("x", np.arange(100, dtype=np.float32)), stage.session.upload("y", NUMBERS)
    for place in range(3):
        stage.srv(place, x, 0, 100, 4)
    for place in range(3, 80):
        stage.srv(place, x, 80 - place, 8, format=d3d12.Format.R32_FLOAT)
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


def indirect(stage: Stage, commands_left: int = 2) -> None:
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
    count = session.upload("count", np.array([7, commands_left], np.uint32))
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
    "joined": Case("arrays", joined, "declares 'array' as an array, to which a model binds nothing"),
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


def test_no_commands_are_nothing_to_run() -> None:
    with dmlemu.Session() as session, dmlemu.record(session.device) as found:
        indirect(Stage(session, "roots"), commands_left=0)
        session.run()
    result = recording.replay(found)
    assert result.compared == 0
    assert result.notes[0].endswith("was not run: its ExecuteIndirect executed no commands.")


# --- reduce ---

TENSOR = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [64])


def between_operators(path: Path | None = None) -> Record:
    """t = x + x, a shader with a race makes y of t, z = y + y."""
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=TENSOR, b_tensor=TENSOR, output_tensor=TENSOR)
    device = d3d12.create_device(d3d12.Adapter(), strictness=dmlemu.Strictness.RUNTIME)
    session = dmlemu.Session(dml.create_device(device))
    with session, dmlemu.record(device, path) as found:
        stage = Stage(session, "races")
        compiled = [session.compile(desc, name) for name in ("before", "after")]
        session.initialize(*compiled)
        x = session.upload("x", np.arange(64, dtype=np.float32))
        t, y, z = (session.buffer(name, 256) for name in "tyz")
        session.write(y, np.zeros(64, np.float32))
        session.dispatch(compiled[0], [x, x], [t])
        session.transition(STATES.UNORDERED_ACCESS, STATES.NON_PIXEL_SHADER_RESOURCE, t)
        commands = stage.begin()
        commands.set_compute_root_shader_resource_view(0, address(t))
        commands.set_compute_root_unordered_access_view(1, address(y))
        commands.dispatch(4)
        session.barrier(y)
        session.list.set_descriptor_heaps([session.descriptors])
        session.dispatch(compiled[1], [y, y], [z])
        session.run()
    return found


@pytest.mark.dmlemu(expect=["SHADER_RACE"])
def test_a_race_is_reduced_to_its_dispatch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the command line; each of the files shows it."""
    path = tmp_path / "a.dmlrec"
    between_operators(path)
    capsys.readouterr()
    assert main(["reduce", str(path), "--while", "SHADER_RACE", "--output", str(tmp_path / "small")]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("1 of 3 dispatches, "), printed
    assert "The views of compute shaders were kept as they are." in printed
    assert "does not show" not in printed
    small = recording.read(tmp_path / "small.dmlrec")
    (dispatch,) = small.dispatches
    assert isinstance(dispatch.work.desc, ShaderWork) and dispatch.work.desc.groups == (1, 1, 1)
    (container,) = tmp_path.glob("races.*.dxil")
    assert f"{container}\n" in printed
    assert main(["run", str(tmp_path / "small.json"), "--strictness", "strict"]) == 1
    assert "SHADER_RACE" in capsys.readouterr().err
    done = subprocess.run(
        [sys.executable, tmp_path / "small.py"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 1 and "SHADER_RACE" in done.stderr, done.stderr
    assert main(["replay", str(tmp_path / "small.dmlrec")]) == 0


def test_a_shader_is_kept_for_what_comes_of_it() -> None:
    """The operator behind it reads what it has written; what is before it is uploaded."""

    def both(done: Run) -> bool:
        found = done.record.dispatches
        read = done.record.inputs(found[-1])[0]
        is_read = read is not None and read.any()
        return [each.work.name for each in found][-2:] == ["races", "after"] and bool(is_read)

    reduced = recording.reduce(between_operators(), both, strictness="runtime")
    assert [each.work.name for each in reduced.program.calls] == ["races", "after"]
    assert not [each for each in reduced.notes if "does not show" in each]


# --- diff ---


def wave_of(found: Record) -> int:
    (dispatch,) = found.dispatches
    assert isinstance(dispatch.work.desc, ShaderWork)
    return dispatch.work.desc.wave


@pytest.fixture(scope="module")
def drawn() -> Record:
    """A record whose waves have not 32 lanes."""
    records = (recorded("waves", chaos=dmlemu.chaos(seed)) for seed in range(20))
    return next(each for each in records if wave_of(each) != 32)


def test_diff_says_what_is_called_differently(drawn: Record) -> None:
    text = str(recording.diff(recorded("waves"), drawn))
    assert (
        f"Of the dispatch these differ: its waves (of 32 lanes, in the other record {wave_of(drawn)})."
        in text
    )


def test_waves_that_chaos_drew_are_those_of_the_replay(drawn: Record) -> None:
    assert recording.replay(drawn)
    assert not all(recording.replay(drawn, chaos=dmlemu.chaos(seed)) for seed in range(5))
    lanes = float(wave_of(drawn))
    reduced = recording.reduce(drawn, lambda done: 2 * outputs(done.record)[0][1][0] == lanes * (lanes + 1))
    said = f"was recorded with waves of {lanes:g} lanes"
    assert any(said in each for each in reduced.notes), reduced.notes
    assert any("The Python program does not show" in each for each in reduced.notes)


@pytest.mark.dmlemu(expect=["SHADER_RACE"])
def test_a_replay_compares_what_has_a_race() -> None:
    result = recording.replay(between_operators())
    (note,) = result.notes
    assert note.startswith("SHADER_RACE was reported while the dispatches ran again: Thread (0, 0, 0) of")


# --- files that are not what they should be ---

Change = Callable[[dict[str, Any]], None]


def members(*path: Any, value: Any) -> Change:
    """Sets a member of the shader in a manifest."""

    def change(shader: dict[str, Any]) -> None:
        node: Any = shader
        for each in path[:-1]:
            node = node[each]
        node[path[-1]] = value

    return change


VIEW = ("tables", 0, 1, 0, 1)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("roots", members("code", value="abc"), "names the content 'abc'"),
        ("roots", members("wave", value=0), r"wave \(0\) is not an integer from 4 to 64"),
        ("indirect", members("indirect", "commands", value=[1, 48]), r"is bytes \[48, 56\) of a tensor"),
        ("roots", members("groups", value=None), "shader has no groups, or two kinds of them"),
        ("roots", members("groups", value=[1, 1]), r"groups has 2 elements; expected 3"),
        ("roots", members("groups", 0, value=65536), r"\(65536\) is not an integer from 0 to 65535"),
        (
            "roots",
            members("constants", 0, 1, value=1),
            r"constants\[0\]\[1\] is a tensor of FLOAT32; expected one",
        ),
        ("roots", members("roots", 0, 1, 0, value=3), r"is an output; expected the position of an input"),
        ("roots", members("roots", 0, 1, 0, value=4), r"is not an integer from 0 to 3"),
        (
            "roots",
            members("roots", 0, 1, 1, value=48),
            r"is bytes \[48, 49\) of a tensor; expected bytes within",
        ),
        ("roots", members("roots", value=[[1, [1, 0]]] * 65), r"has 65 elements; expected at most 64"),
        ("placed", members(*VIEW, "kind", value="RTV"), r"kind is no kind of a view; expected CBV, SRV, UAV"),
        ("placed", members(*VIEW, "size", value=52), r"span is bytes \[0, 52\) of a tensor"),
        ("placed", members("tables", 0, 1, 0, 0, value=10**6), r"is not an integer from 0 to 999999"),
        ("indirect", members("indirect", "most", value=0), r"is not an integer from 1 to"),
        ("indirect", members("indirect", "addresses", 0, 0, value=99), r"is not an integer from 0 to"),
    ],
)
def test_a_wrong_manifest_is_refused(name: str, change: Change, said: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=said):
        recording.read(changed_file(name, change, tmp_path))


@pytest.mark.dmlemu(expect=["*"])  # a GPU fault is reported, too
@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("roots", members("wave", value=7), "Waves of 7 lanes; this shader runs with 4, 8, 16, 32 or 64"),
        (
            "roots",
            members("roots", 0, 0, value=9),
            r"'roots' \(compute shader\)\) cannot be run: RootParameterIndex \(9\) is",
        ),
        (
            "roots",
            members("roots", value=[]),
            "Pipeline state 'roots' reads 'x' from root parameter 1 .*, which is not set",
        ),
        (
            "roots",
            lambda each: each.update(code=each["root_signature"]),
            "cannot be run: .*DXIL|compute shader",
        ),
        (
            "placed",
            members(*VIEW, "stride", value=28),
            "SRV of a structured buffer with elements of 28 bytes; the shader declares",
        ),
        (
            "arrays",
            members(*VIEW, "stride", value=32),
            "A view begins 16 bytes into its buffer, which is no multiple of the 32 of an element",
        ),
        ("placed", members("tables", 0, 1, value=[]), "was never written"),
        ("indirect", members("indirect", "stride", value=6), "ByteStride"),
        ("indirect", members("indirect", "most", value=4096), "do not lie in buffer 'arguments'"),
    ],
)
def test_what_cannot_run_is_said(name: str, change: Change, said: str, tmp_path: Path) -> None:
    """With the name of the dispatch."""
    path = changed_file(name, change, tmp_path)
    with pytest.raises(RecordError, match=said) as caught:
        recording.replay(path)
    assert str(caught.value).startswith("Dispatch 0 ("), caught.value


def changed_file(name: str, change: Change, folder: Path) -> Path:
    recorded(name, folder / "good.dmlrec")
    with zipfile.ZipFile(folder / "good.dmlrec") as good, zipfile.ZipFile(folder / "bad.dmlrec", "w") as bad:
        manifest = json.loads(good.read("manifest.json"))
        change(manifest["works"][0]["shader"])
        for entry in good.namelist():
            bad.writestr(entry, good.read(entry) if "npy" in entry else json.dumps(manifest))
    return folder / "bad.dmlrec"
