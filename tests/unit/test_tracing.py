"""Timelines: read back, with a test for each thing that they claim to show."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
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
    descriptors = [each["args"]["descriptors written"] for each in traced.of("C", "descriptors written")]
    assert descriptors == sorted(descriptors) and descriptors[-1] >= 6
    assert (
        len(traced.of("b", "mapped: buffer 'x, upload'"))
        == len(traced.of("e", "mapped: buffer 'x, upload'"))
        == 1
    )
    assert "strictness strict" in " ".join(traced.about.values())


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


def test_the_digits_program_is_traced_whole(tmp_path: Path) -> None:
    path = tmp_path / "digits.json"
    code = (
        "import sys, runpy, dmlemu; sys.argv = sys.argv[1:]; sys.path.insert(0, sys.argv.pop())\n"
        f"with dmlemu.trace(None, {str(path)!r}): runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    program = ROOT / "examples" / "digits" / "digits.py"
    subprocess.run(
        [sys.executable, "-c", code, program, program.parent], check=True, cwd=tmp_path, capture_output=True
    )
    found = Timeline(path)
    assert len(found.of("X", "Dispatch of ", "command queue")) > 4
    names = " ".join(each["name"] for each in found.of("X"))
    assert "CONVOLUTION_INTEGER" in names and "NONZERO_COORDINATES" in names and "BIT_COUNT" in names
    assert found.arrows("data") and found.arrows("fence") and found.arrows("submitted")
