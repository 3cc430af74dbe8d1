"""Shaders beside operators: in records, in runs that are stepped through, in timelines."""

from __future__ import annotations

import json
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import d3d12, dml, recording
from dmlemu.recording import Dispatch, Record, RecordError
from dmlemu.shaders import native
from dmlemu.stepping import observe
from dmlemu.stepping.values import read_tensor

pytest.importorskip("llvmlite")

CODE = Path(__file__).parents[1] / "shaders" / "containers" / "saxpy_debug.dxil"
FLOATS = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [64])
ADD = dml.ElementWiseAddOperatorDesc(a_tensor=FLOATS, b_tensor=FLOATS, output_tensor=FLOATS)
X = np.arange(64, dtype=np.float32)
PARAMETER = d3d12.RootParameter1
SRV, UAV = d3d12.DescriptorRangeType.SRV, d3d12.DescriptorRangeType.UAV
ROOTS = (
    PARAMETER.constants(2, 0),
    PARAMETER.shader_resource_view(0),
    PARAMETER.unordered_access_view(0),
)
TABLE = (
    PARAMETER.constants(2, 0),
    PARAMETER.descriptor_table([d3d12.DescriptorRange1(SRV, 1, 0), d3d12.DescriptorRange1(UAV, 1, 0)]),
)


def pipeline(session: dmlemu.Session, parameters: Any, name: str) -> d3d12.PipelineState:
    desc = d3d12.RootSignatureDesc1(parameters, (), d3d12.RootSignatureFlags.NONE)
    versioned = d3d12.VersionedRootSignatureDesc(d3d12.RootSignatureVersion.VERSION_1_1, desc)
    blob = d3d12.serialize_versioned_root_signature(versioned)
    signature = session.keep(session.device.create_root_signature(0, blob))
    made: d3d12.PipelineState = session.keep(
        session.device.create_compute_pipeline_state(d3d12.ComputePipelineStateDesc(signature, CODE))
    )
    if name:
        made.set_name(name)
    return made


def bind_table(session: dmlemu.Session, x: d3d12.Resource, y: d3d12.Resource) -> int:
    """Views of both at the end of the session's heap."""
    heap, device, first = session.descriptors, session.device, 200
    step = device.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
    at = heap.get_cpu_descriptor_handle_for_heap_start() + first * step
    srv = d3d12.ShaderResourceViewDesc(d3d12.Format.UNKNOWN, buffer=d3d12.BufferSrv(0, 64, 4))
    uav = d3d12.UnorderedAccessViewDesc(d3d12.Format.UNKNOWN, buffer=d3d12.BufferUav(0, 64, 4))
    device.create_shader_resource_view(x, srv, at)
    device.create_unordered_access_view(y, None, uav, at + step)
    return heap.get_gpu_descriptor_handle_for_heap_start() + first * step


def add_scale_add(
    session: dmlemu.Session, scale: float = 2.5, *, table: bool = False, name: str = "scale"
) -> Any:
    """t = x + x, the shader makes y += scale * t, z = y + y."""
    state = pipeline(session, TABLE if table else ROOTS, name)
    before, after = session.compile(ADD, "before"), session.compile(ADD, "after")
    session.initialize(before)
    session.initialize(after)
    x, y = session.upload("x", X), session.upload("y", X * 0 + 1)
    t, z = session.buffer("t", 256), session.buffer("z", 256)
    session.dispatch(before, [x, x], [t])
    states = d3d12.ResourceStates
    session.transition(states.UNORDERED_ACCESS, states.NON_PIXEL_SHADER_RESOURCE, t)
    commands = session.list
    commands.set_pipeline_state(state)
    commands.set_compute_root_signature(state.root_signature)
    commands.set_compute_root_32bit_constants(0, [int(np.float32(scale).view(np.uint32)), 64])
    if table:
        commands.set_compute_root_descriptor_table(1, bind_table(session, t, y))
    else:
        commands.set_compute_root_shader_resource_view(1, t.get_gpu_virtual_address())
        commands.set_compute_root_unordered_access_view(2, y.get_gpu_virtual_address())
    commands.dispatch(1)
    session.barrier(y)
    session.dispatch(after, [y, y], [z])
    session.barrier()
    return session.read(z, np.float32, [64])


def recorded(
    path: Path | None = None,
    scale: float = 2.5,
    only: Any = "*",
    limit: int = recording.LIMIT,
    strictness: str = "strict",
    **more: Any,
) -> Record:
    device = d3d12.create_device(d3d12.Adapter(), strictness=dmlemu.Strictness(strictness))
    session = dmlemu.Session(dml.create_device(device), descriptors=256)
    with session, dmlemu.record(device, path, only=only, limit=limit) as found:
        add_scale_add(session, scale, **more)
    return found


def of_shader(record: Record) -> Dispatch:
    (found,) = [each for each in record.dispatches if each.work.is_shader]
    return found


@pytest.mark.parametrize("strictness", ["runtime", "strict"])
@pytest.mark.parametrize("table", [False, True])
def test_a_record_has_what_a_shader_reads_and_writes(strictness: str, table: bool) -> None:
    found = recorded(strictness=strictness, table=table)
    assert [each.work.name for each in found.dispatches] == ["before", "scale", "after"]
    dispatch = of_shader(found)
    assert dispatch.work.title == "'scale' (compute shader)"
    assert strictness == "runtime" or "test_shaders_in_records.py" in dispatch.site
    tensors = {(each.path, each.output): i for i, each in enumerate(dispatch.work.tensors)}
    assert set(tensors) == {("Scale", False), ("x", False), ("y", False), ("y", True)}
    arrays = {key: found.array(dispatch.contents[i] or "") for key, i in tensors.items()}
    np.testing.assert_array_equal(arrays["Scale", False], [np.float32(2.5).view(np.uint32), 64])
    np.testing.assert_array_equal(arrays["x", False], 2 * X)
    np.testing.assert_array_equal(arrays["y", False], X * 0 + 1)
    np.testing.assert_array_equal(arrays["y", True], 5 * X + 1)
    assert dispatch.places[tensors["x", False]] == "byte 0 of buffer 't'"


def test_a_shader_without_a_name_is_called_by_its_entry() -> None:
    assert of_shader(recorded(name="")).work.name == "saxpy"


def test_a_file_keeps_shaders(tmp_path: Path) -> None:
    path = tmp_path / "a.dmlrec"
    found, again = recorded(path), recording.read(path)
    assert of_shader(again) == of_shader(found)


def test_diff_names_the_shader_that_differs_and_its_bindings() -> None:
    result = recording.diff(recorded(), recorded(scale=3))
    difference = result.difference
    assert difference is not None
    assert (difference.dispatch.work.name, difference.path, difference.index) == ("scale", "y", (63,))
    assert (difference.given, difference.expected) == (316.0, 379.0)
    assert "Of its inputs these differ, too: Scale." in str(result)
    assert "x from OutputTensor of dispatch 0" in str(result)
    assert recording.diff(recorded(), recorded())
    assert recording.diff(recorded(), {"scale": 5 * X + 1})


def test_diff_with_references_says_that_it_has_none_of_shaders() -> None:
    result = recording.diff(recorded(), reference=True)
    assert result and result.notes == ["1 not compared with a reference: a compute shader."]


def test_replay_runs_shaders_again() -> None:
    found = recorded()
    assert recording.replay(found).compared == 3
    assert recording.replay(found, layouts=1).notes == ["Compute shaders were run in their recorded layouts."]
    dispatch = of_shader(found)
    wrong = found.array(dispatch.contents[-1] or "").copy()
    wrong[7] += 1
    keys = (*dispatch.contents[:-1], "wrong")
    changed = Record({**found.contents, "wrong": wrong})
    changed.buffers, changed.dispatches = found.buffers, list(found.dispatches)
    changed.dispatches[1] = dispatch._replace(contents=keys)
    difference = recording.replay(changed).difference
    assert difference is not None
    assert (difference.dispatch.work.name, difference.path, difference.index) == ("scale", "y", (7,))
    assert (difference.given, difference.expected) == (36.0, 37.0)


def test_without_llvm_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = recorded()
    native._compile.cache_clear()
    monkeypatch.setitem(sys.modules, "llvmlite.binding", None)
    said = (
        r"Shaders are compiled by LLVM, which is not installed: the extra 'hlsl' of dmlemu brings llvmlite\."
    )
    with pytest.raises(
        RecordError, match=rf"Dispatch 1 \('scale' \(compute shader\)\) cannot be run: .*{said}"
    ):
        recording.replay(found)
    with pytest.raises(RecordError, match=said):
        recording.reduce(found, "LAYOUT_HANDOVER")


def without_code(path: Path) -> Path:
    """The record as it was written before records had the code of shaders."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(entries["manifest.json"])
    manifest["version"] = 1
    for work in manifest["works"]:
        if work.pop("shader", None) is not None:
            work["unknown"] = "a record has no code of shaders; run the program itself again"
    entries["manifest.json"] = json.dumps(manifest).encode()
    old = path.with_name("old.dmlrec")
    with zipfile.ZipFile(old, "w") as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return old


def test_an_older_record_has_no_code(tmp_path: Path) -> None:
    path = tmp_path / "a.dmlrec"
    found = recorded(path)
    old = recording.read(without_code(path))
    assert recording.diff(old, found)
    result = recording.replay(old)
    assert result and result.compared == 2
    (note,) = result.notes
    assert note.startswith("Dispatch 1, 'scale' (compute shader), command ")
    assert note.endswith("was not run: a record has no code of shaders; run the program itself again.")
    with pytest.raises(RecordError, match=r"'scale' .* was taken for an upload of its outputs: a record has"):
        recording.reduce(old, "HAZARD_RAW")


def test_a_record_without_shaders_is_one_of_version_1(tmp_path: Path) -> None:
    versions = {}
    for name, only in (("with", "*"), ("without", "[ab]*")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", recording.RecordWarning)
            recorded(tmp_path / name, only=only)
        with zipfile.ZipFile(tmp_path / name) as archive:
            versions[name] = json.loads(archive.read("manifest.json"))["version"]
    assert versions == {"with": 2, "without": 1}


def test_what_is_kept_of_a_shader_is_within_the_limit() -> None:
    with pytest.warns(recording.RecordWarning, match="which exceed the limit of 3000 bytes"):
        found = recorded(limit=3000)
    (note,) = recording.replay(found).notes
    assert note.endswith("was not run: its code exceeds the limit of the recording.")


def test_the_filter_asks_for_the_name_of_the_pipeline_state() -> None:
    with pytest.warns(recording.RecordWarning, match="2 dispatches left out by the filter"):
        found = recorded(only="sca*")
    assert [each.work.name for each in found.dispatches] == ["scale"]
    with pytest.warns(recording.RecordWarning, match="1 dispatch left out by the filter"):
        found = recorded(only=lambda name: name != "scale")
    assert [each.work.name for each in found.dispatches] == ["before", "after"]
    assert [each.size for each in found.written if each.before == 1] == [256]  # what the shader wrote


@pytest.mark.parametrize("table", [False, True])
def test_a_run_shows_the_bindings_of_a_shader(table: bool) -> None:
    with observe() as run, dmlemu.Session(descriptors=256) as session:
        add_scale_add(session, table=table)
    (moment,) = [each for each in run.moments if each.name == "Dispatch of pipeline state 'scale'"]
    assert moment.is_dispatch and moment.text.startswith("DISPATCH_SHADER")
    assert moment.fields == (
        ("ThreadGroupCount", "1 x 1 x 1"),
        ("x", "t0, an SRV of a structured buffer with elements of 4 bytes"),
        ("y", "u0, a UAV of a structured buffer with elements of 4 bytes"),
        ("Scale", "b0, root constants 0x40200000 0x40"),
    )
    assert {each.name for each in moment.operands} == {"'x'", "'y'"}
    (y,) = [each for each in moment.operands if each.writes]
    assert y.name == "'y'"
    assert y.tensor is not None and y.buffer is not None and y.tensor.data_type == "FLOAT32"
    assert (y.descriptor is not None) == table

    def values(at: int) -> Any:
        assert y.tensor is not None and y.buffer is not None
        return read_tensor(run.content(y.buffer, at, y.begin, y.end).data, y.tensor)

    np.testing.assert_array_equal(values(moment.number - 1), X * 0 + 1)
    np.testing.assert_array_equal(values(moment.number), 5 * X + 1)


def test_a_timeline_names_the_pipeline_state_and_its_bindings(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    with dmlemu.trace(None, path), dmlemu.Session(descriptors=256) as session:
        add_scale_add(session)
    events = json.loads(path.read_text())["traceEvents"]
    slices = [each for each in events if each["ph"] == "X" and each["name"].endswith("'scale'")]
    assert {each["name"] for each in slices} == {"Dispatch of pipeline state 'scale'"}
    told = {key.split(maxsplit=1)[1]: value for key, value in slices[0]["args"].items() if key[0].isdigit()}
    assert told["reads 'x'"] == "bytes [0, 256) of buffer 't'"
    assert any(value == "bytes [0, 256) of buffer 'y'" for key, value in told.items() if key.endswith("'y'"))
