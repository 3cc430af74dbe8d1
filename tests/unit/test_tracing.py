"""Timelines: read back, with a test for each thing that they claim to show."""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import weakref
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.cli import main
from dmlemu.session import Session
from dmlemu.tracing.data_flow import LastWriters

ROOT = Path(__file__).parents[2]
TENSOR = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4])
NOT_ZEROED = d3d12.HeapFlags.CREATE_NOT_ZEROED
ADD = dml.ElementWiseAddOperatorDesc(a_tensor=TENSOR, b_tensor=TENSOR, output_tensor=TENSOR)


class Timeline:
    """A file that was read back."""

    def __init__(self, path: Path) -> None:
        document = json.loads(path.read_text())
        self.events: list[dict[str, Any]] = document["traceEvents"]
        self.about = document["otherData"]
        self.tracks = {
            (each["pid"], each["tid"]): each["args"]["name"]
            for each in self.events
            if each["name"] == "thread_name"
        }

    def of(self, phase: str, name: str = "", track: str = "") -> list[dict[str, Any]]:
        return [
            each
            for each in self.events
            if each["ph"] == phase and each["name"].startswith(name) and track in self.track(each)
        ]

    def track(self, event: dict[str, Any]) -> str:
        return self.tracks.get((event["pid"], event.get("tid")), "")

    def slice_at(self, end: dict[str, Any]) -> dict[str, Any]:
        """The slice in which an arrow's end lies."""
        (found,) = [
            each
            for each in self.of("X")
            if (each["pid"], each["tid"]) == (end["pid"], end["tid"])
            and each["ts"] <= end["ts"] <= each["ts"] + each["dur"]
            and each["name"] != "recorded"
        ]
        return found

    def arrows(self, name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        ends: dict[int, dict[str, Any]] = defaultdict(dict)
        for each in [*self.of("s", name), *self.of("f", name)]:
            ends[each["id"]][each["ph"]] = self.slice_at(each)
        return [(each["s"], each["f"]) for each in ends.values()]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    with dmlemu.trace(None, path), Session() as session:
        compiled = session.compile(ADD, "add")
        x, y = session.upload("x", np.ones(4, np.float32)), session.buffer("y", 16)
        z, other = session.buffer("z", 16), session.keep(session.device.create_command_queue())
        session.initialize(compiled)
        session.barrier()
        session.dispatch(compiled, [x, x], [y])
        session.barrier()
        session.barrier()  # orders nothing that the other does not
        session.dispatch(compiled, [y, x], [z])
        session.submit()
        other.wait(session.fence, session.fence_value)
        done = session.keep(session.device.create_fence(0))
        done.set_name("done")
        other.signal(done, 7)
        done.wait(7)
        session.wait()
        assert session.read(z, np.float32).tolist() == [3.0] * 4
    return Timeline(path)


def test_there_is_a_track_for_each_queue_list_and_thread(traced: Timeline) -> None:
    names = list(traced.tracks.values())
    assert sum(name.startswith("command queue #1") for name in names) == 2  # and in virtual time
    assert sum(name.startswith("command queue #2") for name in names) >= 1
    assert sum(name.startswith("command list") for name in names) == 1
    assert "host thread MainThread" in names


def test_slices_name_commands_operands_bytes_and_lines(traced: Timeline) -> None:
    first, second = traced.of("X", "Dispatch of compiled operator 'add'", "command queue")[::2]
    assert first["args"]["0 reads ATensor"] == "bytes [0, 16) of buffer 'x'"
    assert first["args"]["2 writes OutputTensor"] == "bytes [0, 16) of buffer 'y'"
    assert second["args"]["2 writes OutputTensor"] == "bytes [0, 16) of buffer 'z'"
    assert first["args"]["recorded at"].startswith("test_tracing.py:")
    assert first["dur"] > 0 and first["ts"] + first["dur"] <= second["ts"]
    virtual = traced.of("X", "Dispatch of compiled operator 'add'")[1]
    assert (virtual["ts"], virtual["ts"] + virtual["dur"]) == (first["args"]["begin"], first["args"]["end"])
    (recorded, *_) = traced.of("X", "recorded", "command list")
    assert recorded["args"]["commands"] >= 1


def test_arrows_of_data_go_from_the_writer_to_the_reader(traced: Timeline) -> None:
    found = {(begin["name"], end["name"]) for begin, end in traced.arrows("data")}
    add = "Dispatch of compiled operator 'add' (DML_OPERATOR_ELEMENT_WISE_ADD)"
    assert found == {("CopyBufferRegion", add), (add, add), (add, "CopyBufferRegion")}


def test_arrows_of_submissions_and_fences(traced: Timeline) -> None:
    for begin, end in traced.arrows("submitted"):
        assert begin["name"] == "ExecuteCommandLists"
        assert traced.track(end).startswith("command queue #1")
    pairs = traced.arrows("fence")
    assert all(
        begin["name"].startswith("signal ") and end["name"].startswith("wait done ") for begin, end in pairs
    )
    tracks = {(traced.track(begin)[:16], traced.track(end)[:16]) for begin, end in pairs}
    assert ("command queue #1", "command queue #2") in tracks
    assert ("command queue #2", "host thread Main") in tracks


def test_barriers_calls_and_reports_are_instants(traced: Timeline) -> None:
    barriers = traced.of("i", "barrier UAV", "command queue #1")
    assert barriers and barriers[0]["args"]["resource"] == "any resource"
    assert traced.of("i", "CreateCommandQueue", "host thread")
    assert traced.of("i", "queued: SIGNAL fence 'done' = 7", "host thread")
    (report,) = traced.of("i", "INFO BARRIER_USELESS", "host thread")
    assert report["args"]["message"].startswith("The UAV barrier on all resources orders nothing")


def test_counters_and_mapped_periods(traced: Timeline) -> None:
    memory = [each["args"]["bytes of heaps"] for each in traced.of("C", "bytes of heaps")]
    assert max(memory) >= 48
    descriptors = [each["args"]["descriptors in use"] for each in traced.of("C", "descriptors in use")]
    assert max(descriptors) >= 6
    assert (
        len(traced.of("b", "mapped: buffer 'x, upload'"))
        == len(traced.of("e", "mapped: buffer 'x, upload'"))
        == 1
    )
    assert "strictness strict" in " ".join(traced.about.values())


def test_descriptors_are_counted_while_they_show_memory(tmp_path: Path) -> None:
    path = tmp_path / "descriptors.json"
    device = d3d12.create_device()
    heap_type = d3d12.DescriptorHeapType.CBV_SRV_UAV
    with dmlemu.trace(device, path), Session(dml.create_device(device)) as session:
        heap = device.create_descriptor_heap(d3d12.DescriptorHeapDesc(heap_type, 4))
        start = heap.get_cpu_descriptor_handle_for_heap_start()
        buffer = session.buffer("act", 64)
        view = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(num_elements=16))
        for slot in (0, 1, 1):  # the last call writes a slot again
            at = start + slot * device.get_descriptor_handle_increment_size(heap_type)
            device.create_unordered_access_view(buffer, None, view, at)
        device.create_unordered_access_view(None, None, view, start)
        heap.release()
    counted = [each["args"]["descriptors in use"] for each in Timeline(path).of("C", "descriptors in use")]
    assert counted == [1, 2, 2, 1, 0]


def test_chaos_marks_commands_that_run_before_earlier_ones(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    adapter = d3d12.Adapter(policy=dmlemu.chaos(1, modes=["order"]))
    with dmlemu.trace(None, path), Session(dml.create_device(d3d12.create_device(adapter))) as session:
        source = session.upload("x", np.ones(4, np.float32))
        for i in range(12):
            session.list.copy_resource(session.buffer(f"to {i}", 16), source)
        session.run()
    found = Timeline(path)
    assert found.of("i", "runs before an earlier command", "command queue")
    assert "chaos(1" in " ".join(found.about.values())


@pytest.mark.dmlemu(expect=["*"])  # unread bytes
def test_decisions_of_chaos_are_instants(tmp_path: Path) -> None:
    path = tmp_path / "chaos.json"
    weights = dml.BufferTensorDesc(
        dml.TensorDataType.FLOAT32, [1, 1, 3, 3], flags=dml.TensorFlags.OWNED_BY_DML
    )
    tensor, odd = (dml.BufferTensorDesc(dml.TensorDataType.FLOAT16, [1, 1, 3, 3]) for _ in range(2))
    device = dml.create_device(d3d12.create_device(d3d12.Adapter(policy=dmlemu.chaos(5))))
    with dmlemu.trace(device, path), Session(device) as session:
        session.compile(
            dml.ElementWiseAddOperatorDesc(
                a_tensor=weights, b_tensor=weights, output_tensor=replace(weights, flags=dml.TensorFlags.NONE)
            ),
            "owned",
        )
        copy = session.compile(
            dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor, output_tensor=odd), "copy"
        )
        session.initialize(copy)
        session.barrier()
        x, y = session.upload("x", np.ones(9, np.float16).tobytes()), session.buffer("y", 32)
        session.keep(session.device.create_heap(d3d12.HeapDesc(65536, flags=NOT_ZEROED)))
        other = session.keep(session.device.create_command_queue())
        session.dispatch(copy, [x], [y])
        session.submit()
        other.signal(session.keep(session.device.create_fence(0)), 1)
        session.wait()
        session.read(y, np.uint8)
    found = Timeline(path)
    decided = {each["name"] for each in found.of("i", "chaos ")}
    assert decided == {f"chaos {mode.value}" for mode in dmlemu.ChaosMode} - {"chaos waves"}
    assert all(each["args"]["decision"] for each in found.of("i", "chaos "))
    assert found.of("i", "chaos order", "command queue")


def test_waves_that_chaos_has_drawn_are_instants(tmp_path: Path) -> None:
    pytest.importorskip("llvmlite")
    path, code = tmp_path / "chaos.json", ROOT / "tests/unit/shaders/containers/saxpy.dxil"
    parameter = d3d12.RootParameter1
    parameters = (
        parameter.constants(2, 0),
        parameter.shader_resource_view(0),
        parameter.unordered_access_view(0),
    )
    device = d3d12.create_device(d3d12.Adapter(policy=dmlemu.chaos(5)))
    with device, dmlemu.trace(device, path):
        desc = d3d12.VersionedRootSignatureDesc(
            d3d12.RootSignatureVersion.VERSION_1_1, d3d12.RootSignatureDesc1(parameters)
        )
        blob = d3d12.serialize_versioned_root_signature(desc)
        signature = device.create_root_signature(0, blob)
        made = device.create_compute_pipeline_state(d3d12.ComputePipelineStateDesc(signature, code))
        wave = made.shader.wave
        made.release()
        signature.release()
    decided = [each["args"]["decision"] for each in Timeline(path).of("i", "chaos waves")]
    assert decided[0] == f"waves of shader 'saxpy' have {wave} threads"
    assert re.fullmatch(r"denormal numbers of shader 'saxpy' are (0|kept)", decided[1])


def test_a_blocked_host_thread_is_a_slice(traced: Timeline) -> None:
    blocked = traced.of("X", "blocked until fence 'done' = 7", "host thread MainThread")
    assert len(blocked) == 1
    begin, end = blocked[0]["ts"], blocked[0]["ts"] + blocked[0]["dur"]
    last = traced.of("X", "Dispatch of compiled operator 'add'", "command queue")[2]
    assert begin < last["ts"] < last["ts"] + last["dur"] < end  # by policy lazy the GPU runs meanwhile


def test_a_wait_whose_time_is_up_is_a_slice_too(tmp_path: Path) -> None:
    path = tmp_path / "wait.json"
    device = d3d12.create_device()
    with dmlemu.trace(device, path):
        assert device.create_fence(0).wait(1, timeout=0.02) is False
    (blocked,) = Timeline(path).of("X", "blocked until fence #1", "host thread")
    assert blocked["dur"] >= 20_000


def test_a_device_that_was_traced_is_freed_with_its_last_reference(tmp_path: Path) -> None:
    gc.disable()
    try:
        device = d3d12.create_device()
        with dmlemu.trace(device, tmp_path / "freed.json"):
            device.create_fence(0)
        alive = weakref.ref(device)
        del device
        assert alive() is None
    finally:
        gc.enable()


def test_a_limit_says_what_it_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    with (
        pytest.warns(RuntimeWarning, match=r"leaves out \d+ events"),
        dmlemu.trace(None, path, limit=3),
        Session(),
    ):
        pass
    found = Timeline(path)
    assert len([each for each in found.events if each["ph"] != "M"]) == 3
    assert "leaves out" in found.about["left out"]


def test_a_device_is_traced_only_inside_of_the_block(tmp_path: Path) -> None:
    device = d3d12.create_device()
    path = tmp_path / "one.json"
    with dmlemu.trace(dml.create_device(device), path):
        device.create_fence(0)
    device.create_fence(0)
    assert len(Timeline(path).of("i", "CreateFence")) == 1
    with pytest.raises(TypeError, match="device must be a Direct3D 12 or DirectML device, not int"):
        dmlemu.trace(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="limit \\(-1\\) is negative"):
        dmlemu.trace(device, limit=-1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 12)), max_size=30))
def test_the_last_writers_are_those_of_a_list_of_bytes(writes: list[tuple[int, int]]) -> None:
    writers: LastWriters[int] = LastWriters()
    model: list[int | None] = [None] * 64
    for number, (begin, size) in enumerate(writes):
        assert set(writers.of(begin, begin + size)) == {*model[begin : begin + size]} - {None}
        writers.write(begin, begin + size, number)
        model[begin : begin + size] = [number] * size
    for begin in range(50):
        assert set(writers.of(begin, begin + 3)) == {*model[begin : begin + 3]} - {None}


def test_the_command_line_writes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ROOT / "tests" / "programs" / "dxdispatch" / "models" / "add.json"
    path = tmp_path / "run.json"
    assert main(["run", str(model), "--trace", str(path)]) == 0
    assert Timeline(path).of("X", "Dispatch of ", "command queue")
    assert main(["run", str(model), "--trace", str(tmp_path / "none" / "x.json")]) == 1
    assert "No such file or directory" in capsys.readouterr().err


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    """The timeline of the digits program."""
    folder = tmp_path_factory.mktemp("digits")
    code = (
        "import sys, runpy, dmlemu; sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv.pop())\n"
        f"with dmlemu.trace(None, {str(folder / 'digits.json')!r}): "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    program = ROOT / "examples" / "digits" / "digits.py"
    subprocess.run(
        [sys.executable, "-c", code, program, program.parent], check=True, cwd=folder, capture_output=True
    )
    return Timeline(folder / "digits.json")


def test_digits_has_a_track_for_each_queue_list_and_host_thread(digits: Timeline) -> None:
    names = list(digits.tracks.values())
    kinds = ("command queue", "command list", "host thread MainThread")
    assert all(any(name.startswith(kind) for name in names) for kind in kinds)
    assert len({*digits.tracks}) == len(names)


def test_digits_slices_name_operators_tensors_bytes_and_both_clocks(digits: Timeline) -> None:
    real = [
        each for each in digits.of("X", "Dispatch of ", "command queue") if each["args"]["end"] != each["ts"]
    ]
    names = " ".join(each["name"] for each in real)
    assert len(real) > 8
    assert all(part in names for part in ("CONVOLUTION_INTEGER", "NONZERO_COORDINATES", "BIT_COUNT"))
    for each in real:
        about = each["args"]
        assert about["recorded at"] and about["list"].startswith("command list")
        assert any(" writes " in name and "bytes [" in value for name, value in _operands(about))
        assert about["begin"] < about["end"] and each["dur"] > 0
    virtual = {(each["ts"], each["dur"]) for each in real if each["ts"] == each["args"]["begin"]}
    assert len(virtual) == len(real) // 2, "each dispatch once in real and once in virtual time"


def _operands(about: dict[str, Any]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in about.items() if name[0].isdigit()]


def test_digits_copies_and_waits_are_slices(digits: Timeline) -> None:
    copies = digits.of("X", "CopyBufferRegion", "command queue")
    assert copies and all(len(_operands(each["args"])) == 2 for each in copies)
    blocked = digits.of("X", "blocked until fence", "host thread")
    assert blocked and all(each["dur"] > 0 for each in blocked)
    assert digits.of("X", "wait done ", "host thread") and digits.of("X", "signal ", "command queue")


def test_digits_arrows_of_data_lead_to_readers_of_what_was_written(digits: Timeline) -> None:
    arrows = digits.arrows("data")
    assert arrows
    for writer, reader in arrows:
        written = {value for name, value in _operands(writer["args"]) if "reads" not in name}
        read = {value for name, value in _operands(reader["args"]) if " writes " not in name}
        assert {_buffer(each) for each in written} & {_buffer(each) for each in read}
        assert writer["ts"] + writer["dur"] <= reader["ts"]
    assert any(
        begin["name"].startswith("Dispatch") and end["name"].startswith("Dispatch") for begin, end in arrows
    )


def _buffer(text: str) -> str:
    return text.partition(" of ")[2].partition(" (")[0]


def test_digits_arrows_of_fences_and_submissions(digits: Timeline) -> None:
    for begin, end in digits.arrows("fence"):
        assert begin["name"].startswith("signal ") and end["name"].startswith("wait done ")
        assert begin["ts"] <= end["ts"]
    assert digits.arrows("fence") and digits.arrows("submitted")


def test_digits_barriers_and_counters(digits: Timeline) -> None:
    assert digits.of("i", "barrier ", "command queue")
    memory = [each["args"]["bytes of heaps"] for each in digits.of("C", "bytes of heaps")]
    assert memory and max(memory) > 0 and min(memory) >= 0
    descriptors = [each["args"]["descriptors in use"] for each in digits.of("C", "descriptors in use")]
    assert descriptors and max(descriptors) > 0
