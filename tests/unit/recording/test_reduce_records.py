"""``dmlemu.reduce``: the result is small, and its three forms show what the record shows."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_recording import chain, dispatch, mixed, tensor

import dmlemu
from dmlemu import d3d12, dml, recording
from dmlemu.cli import _Bar, main
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import definition_of, emulated, example_of
from dmlemu.recording import RecordError, Reduced, Run
from dmlemu.recording.forms import expression, program_text, run_program_text
from dmlemu.recording.program import program_of
from dmlemu.recording.runs import run

sys.path.append(str(Path(__file__).parents[2] / "checks"))

from layout_bugs import BUGS
from layout_scene import Scene

pytestmark = pytest.mark.dmlemu(expect=["*"])  # the planted bugs are reported
LONG = pytest.mark.long
T = dml.TensorDataType
PROGRAMS = {each.__name__: each for each in BUGS}


def planted(name: str, *, reused: bool = False, path: Path | None = None) -> recording.Record:
    """The record of a program with a planted layout bug."""
    with dmlemu.record(None, path) as found:
        scene = Scene(reused=reused)
        PROGRAMS[name](scene, True)
        scene.reports()
    return found


def most(found: Reduced) -> int:
    """The elements of the largest tensor."""
    return max(each.desc.element_count for call in found.program.calls for each in call.work.tensors)


def check_forms(found: Reduced, id: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All three files show the id, the texts as a user would run them."""
    assert not [each for each in found.notes if "does not show" in each]
    paths = {each.suffix: each for each in found.save(folder / "small")}
    assert id in run(program_of(recording.read(paths[".dmlrec"]))[0]).ids
    capsys.readouterr()
    main(["run", str(paths[".json"]), *found.run_options.split()])
    assert id in capsys.readouterr().err
    assert id in run_program_text(paths[".py"].read_text(), found.files).ids


@pytest.mark.parametrize(
    ("name", "id", "dispatches", "elements", "reused"),
    [
        pytest.param("strides_of_h_and_w_swapped", "LAYOUT_HANDOVER", 2, 6, False, marks=LONG),
        pytest.param("padded_producer", "LAYOUT_HANDOVER", 2, 2, True, marks=LONG),
        pytest.param("nchw_with_sizes_of_nhwc", "LAYOUT_HANDOVER", 2, 6, False, marks=LONG),
        ("float16_read_as_float32", "LAYOUT_HANDOVER", 2, 2, True),
        pytest.param("bias_along_w_of_a_dispatch", "READ_MIXED", 2, 3, False, marks=LONG),
        pytest.param("consumer_offset_in_elements", "READ_MIXED", 2, 8, True, marks=LONG),
        ("smaller_frame", "READ_MIXED", 2, 2, False),
        pytest.param("upload_of_half", "READ_MIXED", 1, 2, True, marks=LONG),
    ],
)
def test_a_layout_bug_becomes_a_few_elements(
    name: str,
    id: str,
    dispatches: int,
    elements: int,
    reused: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = dmlemu.reduce(planted(name, reused=reused), id)

    assert len(found.program.calls) <= dispatches and most(found) <= elements, str(found)
    if name == "strides_of_h_and_w_swapped":  # and do not become padding
        layouts = [each.desc for each in found.program.calls[-1].work.tensors if not each.output]
        swapped = [each for each in layouts if each.effective_strides[2] < each.effective_strides[3]]
        assert swapped and min(swapped[0].sizes[2:]) > 1
    check_forms(found, id, tmp_path, capsys)


@LONG
def test_every_planted_bug_is_shown_again_by_its_record() -> None:
    """The first step of a reduction; uploads that nobody reads, declared layouts and shapes of arrays that
    are uploaded are not in a record."""
    of_layouts = {each for each in PROGRAMS if each.startswith("declared_")}
    of_arrays = {"image_uploaded_as_nhwc", "upload_of_doubles"}
    missing = set()
    for name, program in PROGRAMS.items():
        scene = Scene(reused=False)
        program(scene, True)
        reported = {
            each.report.id for each in scene.reports() if each.report.severity is dmlemu.Severity.WARNING
        }
        again = run(program_of(planted(name))[0])
        if reported - {"WRITTEN_NEVER_READ"} - again.ids:
            missing.add(name)
    assert missing == of_layouts | of_arrays


@LONG
def test_all_sizes_of_a_convolution_become_small(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Channels, height and width, the window, too, since the output may have any height and width."""
    padded, packed = tensor(T.FLOAT32, [1, 8, 12, 10], [2048, 128, 10, 1]), tensor(T.FLOAT32, [1, 8, 12, 10])
    image, weights = tensor(T.FLOAT32, [1, 3, 12, 10]), tensor(T.FLOAT32, [8, 3, 3, 3])
    convolution = dml.ConvolutionOperatorDesc(
        input_tensor=image,
        filter_tensor=weights,
        output_tensor=padded,
        mode=dml.ConvolutionMode.CROSS_CORRELATION,
        direction=dml.ConvolutionDirection.FORWARD,
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        output_padding=[0, 0],
        group_count=1,
    )
    relu = dml.ActivationReluOperatorDesc(input_tensor=packed, output_tensor=packed)
    with dmlemu.Session() as session, dmlemu.record(session.device) as record:
        x = session.upload("x", np.ones(360, np.float32))
        w = session.upload("w", np.ones(216, np.float32))
        middle = session.upload("middle", np.zeros(8192, np.uint8))
        dispatch(session, convolution, "conv", [x, w, None], middle)
        dispatch(session, relu, "relu", [middle], session.buffer("y", 4096))
        session.run()

    found = dmlemu.reduce(record, "LAYOUT_HANDOVER")
    first, second = found.program.calls
    assert [list(each.desc.sizes) for each in first.work.tensors] == [
        [1, 1, 1, 1],
        [2, 1, 1, 1],
        [1, 2, 1, 1],
    ]
    assert list(second.work.tensors[0].desc.sizes) == [1, 2, 1, 1]
    check_forms(found, "LAYOUT_HANDOVER", tmp_path, capsys)


def test_a_wrong_index_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the value of an element that the report is about."""
    x, indices = tensor(T.FLOAT32, [1, 1, 6, 4]), tensor(T.UINT32, [1, 1, 1, 3])
    gather = dml.GatherOperatorDesc(
        input_tensor=x,
        indices_tensor=indices,
        output_tensor=tensor(T.FLOAT32, [1, 1, 3, 4]),
        axis=2,
        index_dimensions=1,
    )
    with dmlemu.Session() as session, dmlemu.record(session.device) as record:
        inputs = [
            session.upload("x", np.zeros(24, np.float32)),
            session.upload("i", np.array([1, 9, 2], np.uint32)),
        ]
        dispatch(session, gather, "gather", inputs, session.buffer("y", 256))
        session.run()

    found = dmlemu.reduce(record, "MEM_INDEX_VALUE")
    assert most(found) == 1
    check_forms(found, "MEM_INDEX_VALUE", tmp_path, capsys)


def test_advice_is_not_the_same_as_a_warning() -> None:
    """With H == W, swapped strides are an INFO only: the smallest program keeps two sizes."""
    x, y = tensor(T.FLOAT32, [1, 1, 2, 3]), tensor(T.FLOAT32, [1, 1, 2, 3], [6, 6, 1, 2])
    with dmlemu.Session() as session, dmlemu.record(session.device) as record:
        image = session.upload("x", np.zeros(6, np.float32))
        middle = session.buffer("middle", 24)
        for name, desc, source, target in (
            ("first", x, image, middle),
            ("second", y, middle, session.buffer("y", 24)),
        ):
            relu = dml.ActivationReluOperatorDesc(input_tensor=desc, output_tensor=x)
            dispatch(session, relu, name, [source], target)
        session.run()

    found = dmlemu.reduce(record, "LAYOUT_HANDOVER")
    assert [each.severity for each in run(found.program).reports if each.id == "LAYOUT_HANDOVER"] == [
        dmlemu.Severity.WARNING
    ]


# --- values ---


def test_a_wrong_value_becomes_one_element(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reference and the kernel of an operator disagree, for numbers above 2."""
    found = tanh_among_additions()
    definition = type(definition_of(found.dispatches[3].work.descs[0]))
    right = definition.reference

    def wrong(self: Any, inputs: Any) -> Any:
        result = right(self, inputs)
        key = next(iter(result))
        return {**result, key: np.where(inputs["input_tensor"] > 2, result[key] + 1, result[key])}

    monkeypatch.setattr(definition, "reference", wrong)
    reduced = dmlemu.reduce(found, "diff")

    [call] = reduced.program.calls
    assert (call.work.name, most(reduced)) == ("tanh", 1)
    reduced.save(tmp_path / "small")
    assert not dmlemu.diff(tmp_path / "small.dmlrec", reference=True)
    capsys.readouterr()
    assert main(["run", str(tmp_path / "small.json"), "--record", str(tmp_path / "again.dmlrec")]) == 0
    assert main(["diff", str(tmp_path / "again.dmlrec"), "--reference"]) == 1


def tanh_among_additions() -> recording.Record:
    x = tensor(T.FLOAT32, [1, 1, 4, 5])
    with dmlemu.Session() as session, dmlemu.record(session.device) as found:
        last = session.upload("x", np.arange(20, dtype=np.float32) / 7)
        for i in range(6):
            output = session.buffer(f"t{i}", 256)
            if i == 3:
                desc: Any = dml.ActivationTanhOperatorDesc(input_tensor=x, output_tensor=x)
                dispatch(session, desc, "tanh", [last], output)
            else:
                desc = dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
                dispatch(session, desc, f"add{i}", [last, last], output)
            session.run()
            last = output
    return found


def is_large(done: Run) -> bool:
    """Whether a dispatch gave a number above 4."""
    outputs = [
        done.record.array(each.contents[i] or "")
        for each in done.record.dispatches
        for i, _ in each.tensors(output=True)
    ]
    return any(bool((each > 4).any()) for each in outputs)


def test_what_a_dispatch_read_of_those_left_out_is_uploaded() -> None:
    found = dmlemu.reduce(chain(length=12), is_large)

    [call] = found.program.calls
    assert call.work.name.startswith("op") and call.arrays[0] is not None
    assert found.what == "is_large" and not found.notes


def test_bytes_that_changed_in_between_are_uploaded_in_between() -> None:
    """Two readers of one buffer, and a dispatch between them that writes it: it can be left out."""
    x = tensor(T.FLOAT32, [4])
    with dmlemu.Session() as session, dmlemu.record(session.device) as found:
        a, b = session.upload("a", np.arange(4, dtype=np.float32)), session.buffer("b", 16)
        add = dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
        dispatch(session, add, "first", [a, a], b)
        dispatch(session, add, "middle", [b, b], a)
        dispatch(session, add, "last", [a, a], b)
        session.run()

    def shows(done: Run) -> bool:
        results = {
            each.work.name: done.record.array(each.contents[-1] or "") for each in done.record.dispatches
        }
        return bool(results.keys() >= {"first", "last"} and results["first"].max() < results["last"].max())

    reduced = dmlemu.reduce(found, shows)
    assert [each.work.name for each in reduced.program.calls] == ["first", "last"]
    assert shows(run_program_text(reduced.text, reduced.files))
    assert any("upload between dispatches is a dispatch" in each for each in reduced.notes)


# --- how ---


@pytest.mark.parametrize(
    "strictness", [pytest.param("strict", marks=LONG), pytest.param("debug", marks=LONG), "runtime"]
)
def test_every_strictness(strictness: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if strictness == "strict":
        found = dmlemu.reduce(planted("padded_producer"), "LAYOUT_HANDOVER", strictness=strictness)
    else:
        said = f"does not show LAYOUT_HANDOVER when it is run again at strictness {strictness}"
        with pytest.raises(RecordError, match=said):
            dmlemu.reduce(planted("padded_producer"), "LAYOUT_HANDOVER", strictness=strictness)
        found = dmlemu.reduce(chain(length=12), is_large, strictness=strictness)
    assert f'strictness="{strictness}"' in found.text
    assert found.run_options.startswith(f"--strictness {strictness}")


@LONG
def test_the_same_record_gives_the_same_result() -> None:
    record = planted("smaller_frame")
    one, other = (dmlemu.reduce(record, "READ_MIXED") for _ in range(2))
    assert (one.text, one.model, str(one)) == (other.text, other.model, str(other))


def test_ctrl_c_keeps_the_best_so_far() -> None:
    def interrupt(progress: recording.Progress) -> None:
        if progress.dispatches < 6 and progress.runs > 3:
            raise KeyboardInterrupt

    record = planted("smaller_frame")
    found = dmlemu.reduce(record, "READ_MIXED", progress=lambda each: None)
    assert not found.is_interrupted
    stopped = dmlemu.reduce(record, "READ_MIXED", progress=interrupt)
    assert stopped.is_interrupted and stopped.runs == 4
    assert "READ_MIXED" in run(stopped.program).ids
    assert stopped.notes[-1] == "The search was interrupted: this is the best program so far."


def test_what_is_not_shown_is_said() -> None:
    record = planted("padded_producer")
    with pytest.raises(RecordError, match="run again; these checks report something: LAYOUT_HANDOVER"):
        dmlemu.reduce(record, "READ_MIXED")
    with pytest.raises(
        RecordError, match="No check is called 'LAYOUT_HANDOFF'; did you mean LAYOUT_HANDOVER"
    ):
        dmlemu.reduce(record, "LAYOUT_HANDOFF")
    with pytest.raises(RecordError, match="The record has no dispatch that can be run"):
        dmlemu.reduce(recording.Record(), "diff")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.dmlrec"
    planted("padded_producer", path=path)

    assert main(["reduce", str(path), "--while", "LAYOUT_HANDOVER"]) == 0
    out = capsys.readouterr().out
    assert "2 of 2 dispatches" in out
    assert f"dmlemu run {tmp_path / 'net.reduced.json'} --strictness strict" in out
    done = subprocess.run(
        [sys.executable, str(tmp_path / "net.reduced.py")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "LAYOUT_HANDOVER" in done.stderr
    assert main(["reduce", str(path), "--while", "READ_MIXED"]) == 2
    assert "does not show READ_MIXED" in capsys.readouterr().err
    assert main(["reduce", str(path), "--while", "nowhere:nothing"]) == 1
    assert "--while nowhere:nothing: No module named 'nowhere'" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["net", "nowhere/net", "."])
def test_where_nothing_is_written(output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Over the record itself, or into a folder that is not there: it is said before the search."""
    path = tmp_path / "net.dmlrec"
    chain(path, length=1)
    before = path.read_bytes()
    stem = output if output == "." else str(tmp_path / output)
    assert main(["reduce", str(path), "--while", "builtins:bool", "--output", stem]) == 1
    assert f"--output {stem}: " in capsys.readouterr().err
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["net.dmlrec"]


def test_a_file_beside_the_record_stays(tmp_path: Path) -> None:
    beside = tmp_path / "net.dmlrec.part"
    beside.write_text("of another program")
    chain(tmp_path / "net.dmlrec", length=1)
    assert beside.read_text() == "of another program"
    assert sorted(os.listdir(tmp_path)) == ["net.dmlrec", "net.dmlrec.part"]


@LONG
def test_ctrl_c_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "net.dmlrec"
    planted("strides_of_h_and_w_swapped", path=path)
    interrupting = (
        "import sys\n"
        "from dmlemu import cli\n"
        "from signal import SIGINT, raise_signal\n"
        "def show(self, progress):\n"
        "    if progress.runs == 5:\n"
        "        raise_signal(SIGINT)\n"
        "cli._Bar.show = show\n"
        "sys.exit(cli.main(['reduce', sys.argv[1], '--while', 'LAYOUT_HANDOVER']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", interrupting, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 130, done.stderr
    assert "The search was interrupted: this is the best program so far." in done.stdout
    again, _ = program_of(recording.read(tmp_path / "net.reduced.dmlrec"))
    assert "LAYOUT_HANDOVER" in run(again).ids


def test_the_bar_is_drawn_and_removed() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    stream = Terminal()
    bar = _Bar(stream)
    bar.show(recording.Progress(7, 30, 100, 300, 1000))
    bar.end()
    text = f"[{'#' * 27}...] 30 of 300 dispatches, 100 elements, run 7"
    assert stream.getvalue() == f"\r\x1b[K{text}\r\x1b[K"


@LONG
def test_the_command_takes_a_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "large_numbers.py").write_text(
        "def found(run):\n"
        "    return any(\n"
        "        (run.record.array(key) > 4).any()\n"
        "        for each in run.record.dispatches for key in each.contents[-1:]\n"
        "    )\n"
    )
    monkeypatch.chdir(tmp_path)
    chain(tmp_path / "a.dmlrec", length=12)
    assert main(["reduce", "a.dmlrec", "--while", "large_numbers:found", "--output", "small"]) == 0
    assert "1 of 12 dispatches" in capsys.readouterr().out
    assert (tmp_path / "small.json").exists()


@pytest.mark.parametrize("stride", [2**20, 2**29, 2**31])
def test_tensors_larger_than_this_machine_are_refused(stride: int, tmp_path: Path) -> None:
    """What a mutated file may say."""
    path = tmp_path / "a.dmlrec"
    chain(path, length=1)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(contents["manifest.json"])
    for work in manifest["works"]:
        for each in (*(each["desc"] for each in work["tensors"]), work["operator"]["Desc"]["OutputTensor"]):
            each["Strides"] = [40, 40, stride, 1]
            each["TotalTensorSizeInBytes"] = 4 * (3 * stride + 5)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**contents, "manifest.json": json.dumps(manifest).encode()}.items():
            archive.writestr(name, data)
    with pytest.raises(RecordError, match="does not show" if stride < 2**21 else r"take \d+ bytes; at most"):
        dmlemu.reduce(path, lambda done: False)


# --- what programs consist of ---


def test_expressions_are_the_descs() -> None:
    for kind in emulated():
        desc = example_of(declared()[kind])
        assert eval(expression(desc), {"dml": dml}) == desc, kind


@LONG
def test_owned_tensors_and_four_bits() -> None:
    record = mixed()
    for name in ("gemm", "unpack", "find", "in place"):

        def shows(done: Run, name: str = name) -> bool:
            return any(each.work.name == name for each in done.record.dispatches)

        found = dmlemu.reduce(record, shows)
        [call] = found.program.calls
        assert call.work.name == name and not found.notes, found.notes
        assert found.model is not None and json.loads(found.model)["dispatchables"].keys() == {name}


def test_names_of_buffers_are_never_those_of_other_objects() -> None:
    """A name of the program's text: of persistent and temporary memory, of a type of Python."""
    x, half = tensor(T.FLOAT32, [1, 1, 2, 2]), tensor(T.FLOAT16, [1, 1, 4, 4])
    owned = tensor(T.FLOAT32, [1, 1, 2, 2], flags=dml.TensorFlags.OWNED_BY_DML)
    plain: Any = {"trans_a": dml.MatrixTransform.NONE, "trans_b": dml.MatrixTransform.NONE, "alpha": 1}
    product = dml.GemmOperatorDesc(a_tensor=x, b_tensor=owned, c_tensor=x, output_tensor=x, **plain, beta=1)
    clip = dml.ElementWiseClipOperatorDesc(input_tensor=x, output_tensor=x, min=0, max=float("inf"))
    halves = dml.GemmOperatorDesc(
        a_tensor=half,
        b_tensor=half,
        output_tensor=half,
        fused_activation=dml.ActivationReluOperatorDesc(),
        **plain,
        beta=0,
    )
    with dmlemu.Session() as session, dmlemu.record(session.device) as record:
        kept_name, scratch_name = "gemm_persistent", "halves_temporary"
        a, b, c = (session.upload(name, np.ones(4, np.float32)) for name in ("a", "b", kept_name))
        y, z = session.buffer("float", 256), session.buffer("z", 256)
        h, i = (session.upload(name, np.ones(16, np.float16)) for name in ("h", "i"))
        first, last = session.compile(product, "gemm"), session.compile(halves, "halves")
        kept, scratch = session.persistent_buffer(first), session.temporary_buffer(last)
        session.initialize(first, inputs=[[None, b, None]], persistent=[kept])
        session.initialize(last)
        session.barrier()
        session.dispatch(first, [a, None, c], [y], persistent=kept)
        session.barrier()
        dispatch(session, clip, "clip", [y], z)
        session.dispatch(last, [h, i, None], [session.buffer(scratch_name, 256)], temporary=scratch)
        session.run()

    program, notes = program_of(record)
    text = program_text(program, "all", None)
    done = run_program_text(text, {})
    assert not notes and done.error is None and "max=float(" in text
    for line in (f"{kept_name}_2 = session.persistent", f"{scratch_name}_2 = session.temporary"):
        assert line in text
    for each, again in zip(record.dispatches, done.record.dispatches, strict=True):
        for key, same in zip(each.contents, again.contents, strict=True):
            if key is not None and same is not None:
                np.testing.assert_array_equal(record.array(key), done.record.array(same))


def test_a_graph_has_no_model(tmp_path: Path) -> None:
    x = tensor(T.FLOAT32, [4])
    with dmlemu.Session() as session, dmlemu.record(session.device) as record:
        add = session.dml.create_operator(
            dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
        )
        graph = dml.GraphDesc(
            1,
            1,
            [
                dml.OperatorGraphNodeDesc(add, "add"),
                dml.ConstantDataGraphNodeDesc(np.full(4, 9, np.float32), "nine"),
            ],
            [dml.InputGraphEdgeDesc(0, 0, 0)],
            [dml.OutputGraphEdgeDesc(0, 0, 0)],
            [dml.IntermediateGraphEdgeDesc(1, 0, 0, 1)],
        )
        compiled = session.keep(session.dml.compile_graph(graph))
        compiled.set_name("net")
        kept = session.persistent_buffer(compiled)
        session.initialize(compiled, persistent=None if kept is None else [kept])
        session.barrier()
        buffers = session.upload("x", np.arange(4, dtype=np.float32)), session.buffer("y", 256)
        session.dispatch(compiled, [buffers[0]], [buffers[1]], persistent=kept)
        session.run()

    found = dmlemu.reduce(record, is_large)
    assert found.model is None and is_large(run_program_text(found.text, found.files))
    assert any(
        "'net' (graph) is a graph" in each or "is a graph, and a model" in each for each in found.notes
    )
    assert [each.suffix for each in found.save(tmp_path / "small")] == [".dmlrec", ".py"]


@LONG
def test_placed_buffers_over_the_same_bytes_are_one_buffer() -> None:
    """Written through one placed buffer, read through another: which bytes they share is in the record."""
    padded, packed = tensor(T.FLOAT32, [4, 5], [8, 1]), tensor(T.FLOAT32, [4, 5])
    usage = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
    with dmlemu.Session() as session, dmlemu.record(session.device) as record:
        heap = session.keep(
            session.device.create_heap(
                d3d12.HeapDesc(
                    1 << 20,
                    d3d12.HeapProperties(d3d12.HeapType.DEFAULT),
                    flags=d3d12.HeapFlags.ALLOW_ONLY_BUFFERS,
                )
            )
        )
        one, other = (
            session.keep(
                session.device.create_placed_resource(
                    heap, 65536, d3d12.ResourceDesc.buffer(256, usage), d3d12.ResourceStates.COMMON
                )
            )
            for _ in range(2)
        )
        one.set_name("one")
        other.set_name("other")
        x, y = session.upload("x", np.zeros(20, np.float32)), session.buffer("y", 256)
        write = dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=padded)
        read = dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=packed)
        dispatch(session, write, "write", [x], one)
        session.list.resource_barrier([d3d12.ResourceBarrier.aliasing(one, other)])
        dispatch(session, read, "read", [other], y)
        session.run()

    first, second = record.dispatches
    assert first.where[1] == second.where[0] and first.places[1] != second.places[0]
    assert dmlemu.replay(record).compared == 2
    found = dmlemu.reduce(record, "LAYOUT_HANDOVER")
    assert len(found.program.calls) == 2 and most(found) <= 4


@LONG
def test_far_apart_and_large() -> None:
    """64 MiB of tensors, 1 GiB apart in one buffer."""
    large = tensor(T.FLOAT32, [1, 1, 2048, 4096])
    with dmlemu.Session() as session, dmlemu.record(session.device) as record:
        buffer = session.buffer("all", (1 << 30) + (1 << 26))
        desc = dml.FillValueConstantOperatorDesc(
            output_tensor=large, value_data_type=T.FLOAT32, value=dml.ScalarUnion.of(T.FLOAT32, 9)
        )
        relu = dml.ActivationReluOperatorDesc(input_tensor=large, output_tensor=large)
        size = large.size_in_bytes
        there = dml.BufferBinding(buffer, 1 << 30, size)
        dispatch(session, desc, "fill", [], there)
        dispatch(session, relu, "relu", [there], dml.BufferBinding(buffer, 0, size))
        session.run()
    found = dmlemu.reduce(record, is_large)
    assert len(found.program.calls) == 1 and most(found) == 1
    assert sum(found.program.sizes()) < 1024
