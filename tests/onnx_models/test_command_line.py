"""``dmlemu run MODEL.onnx`` and ``dmlemu diff MODEL.onnx``: options, what is printed, exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from dmlemu.cli import main
from dmlemu.onnx import InferenceSession, compare
from dmlemu.onnx.comparison import _difference
from processes import started

NET = "net (float[n, 3] x) => (float[n, 3] y) {r = Relu(x) y = Softmax <axis = 1>(r)}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    save(NET)
    np.save("x.npy", np.float32([[1, 2, 3]]))
    return tmp_path


def save(text: str, name: str = "net.onnx") -> None:
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\n{text}'), name)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[list[str], str]:
    """The lines of the standard output, and what is printed to the standard error."""
    capsys.readouterr()
    assert main(arguments) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    return out.splitlines(), err


def refused(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 1) -> str:
    """The one line that says why nothing ran."""
    _, err = printed(capsys, *arguments, code=code)
    assert err.startswith("dmlemu: error: ") and err.count("\n") == 1
    return err


# --- dmlemu run ---


def test_the_output_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "run", "net.onnx", "-b", "x=x.npy")
    assert lines[0].startswith("Running on 'dmlemu")
    assert lines[1].startswith("Dispatch 'net.onnx': 1 iterations, ")
    assert lines[2] == "Resource 'y': 0.0900306, 0.244728, 0.665241"


@pytest.mark.parametrize("shape", ["2,3", "[2,3]"])
def test_arrays_made_by_rule_are_the_same_in_each_run(capsys: pytest.CaptureFixture[str], shape: str) -> None:
    first, _ = printed(capsys, "run", "net.onnx", "-b", f"x={shape}", "-p")
    second, _ = printed(capsys, "run", "net.onnx", "-f", "n=2", "-p")
    assert first[-1].count(",") == 5
    assert first[-1] == second[-1]
    assert (
        "Input Tensor 'x':\n  Resource  = implicit (DirectX)\n  Data Type = FLOAT\n  Shape     = [2,3]\n"
        in ("\n".join(second))
    )


def test_a_name_has_one_size_and_each_input_its_own_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    save("net (float[n] a, float[n] input:0) => (float[n] y) {y = Sub(a, input:0)}".replace("input:0", "b"))
    model = onnx.load("net.onnx")
    model.graph.input[1].name = model.graph.node[0].input[1] = "input:0"
    onnx.save(model, "net.onnx")
    for options in (["-b", "a=4"], ["-b", "input:0:4"], ["-b", "input:0=4"], ["-f", "n:4"]):
        lines, _ = printed(capsys, "run", "net.onnx", *options)
        numbers = lines[-1].removeprefix("Resource 'y': ").split(", ")
        assert len(numbers) == 4 and "0" not in numbers


def test_denotations(capsys: pytest.CaptureFixture[str]) -> None:
    model = onnx.load("net.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    onnx.save(model, "net.onnx")
    lines, _ = printed(capsys, "run", "net.onnx", "-F", "DATA_BATCH:2")
    assert lines[-1].count(",") == 5
    assert "-F" in refused(capsys, "diff", "x.dmlrec", "-F", "A=1", code=2)
    assert printed(capsys, "diff", "net.onnx", "-F", "DATA_BATCH=2")[0] == [
        "No tensor differs from reference."
    ]
    assert "The model has no denotation 'A'; it has 'DATA_BATCH'." in refused(
        capsys, "run", "net.onnx", "-F", "A=1"
    )


def test_a_dimension_that_is_not_fixed_is_taken_as_1(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "run", "net.onnx")
    assert lines[0] == "Input 'x': dimension n is not fixed and is taken as 1; -f or -b sets it."


def test_outputs_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    save(
        "net (float[3] x) => (seq(float[3]) s, bool[3] b, float16[3] h, int64[3] i, float z, float[0] e, "
        "uint8[3] u, double[3] d, string[3] t, bfloat16[3] f) <float[0] none = {}> {"
        "s = SequenceConstruct(x, x) b = Greater(x, x) h = Cast <to = 10>(x) i = Cast <to = 7>(x) "
        "z = ReduceSum <keepdims = 0>(x) e = Identity(none) u = Cast <to = 2>(i) d = Cast <to = 11>(x) "
        "t = Cast <to = 8>(i) f = Cast <to = 16>(x)}"
    )
    np.save("x.npy", np.float32([1, 2, 3]))
    lines, _ = printed(capsys, "run", "net.onnx", "-b", "x=x.npy")
    found = dict(
        line.removeprefix("Resource ").split(": ", 1) for line in lines if line.startswith("Resource")
    )
    assert {name: found[name] for name in ("'b'", "'h'", "'i'", "'z'", "'e'", "'u'", "'d'")} == {
        "'b'": "0, 0, 0",
        "'h'": "1, 2, 3",
        "'i'": "1, 2, 3",
        "'z'": "6",
        "'e'": "",
        "'u'": "1, 2, 3",
        "'d'": "1, 2, 3",
    }
    assert found["'t'"] == "['1' '2' '3']" and found["'s'"].count("array") == 2


def test_an_initialiser_that_is_an_input_may_be_given(capsys: pytest.CaptureFixture[str]) -> None:
    save("net (float[1, 3] x, float[1, 3] w) => (float[1, 3] y) <float[1, 3] w = {4, 5, 6}> {y = Add(x, w)}")
    lines, _ = printed(capsys, "run", "net.onnx", "-b", "x=x.npy")
    assert lines[-1] == "Resource 'y': 5, 7, 9"
    lines, _ = printed(capsys, "run", "net.onnx", "-b", "x=x.npy", "-b", "w=x.npy")
    assert lines[-1] == "Resource 'y': 2, 4, 6"


def test_a_scalar_and_a_bool_are_made_by_rule(capsys: pytest.CaptureFixture[str]) -> None:
    save("net (float x, bool c) => (float y, bool d) {y = Abs(x) d = Not(c)}")
    lines, _ = printed(capsys, "run", "net.onnx")
    assert lines[-2] == "Resource 'y': 0.273923"


def test_iterations_and_their_shortest_time(capsys: pytest.CaptureFixture[str]) -> None:
    lines, _ = printed(capsys, "run", "net.onnx", "-i", "3", "-I", "1", "-v", "2", "-w", "0")
    assert sum(line.startswith("iteration ") for line in lines) == 3
    assert sum(line.endswith("ms (GPU)") for line in lines) == 3
    lines, _ = printed(capsys, "run", "net.onnx", "-r", "2", "--max_gpu_time_measurements", "0")
    assert any(line.endswith("ms median (CPU)") for line in lines)
    lines, _ = printed(capsys, "run", "net.onnx", "-t", "0")
    assert any("1 iterations" in line for line in lines)


def test_the_files_of_a_run() -> None:
    """In a process of its own: here other tests may hold the adapter's device, which is not recorded."""
    files = ["--report", "r.jsonl", "--trace", "t.json", "--html", "h.html", "--record", "r.dmlrec"]
    for command in (["run", "net.onnx", *files], ["replay", "r.dmlrec"]):
        done = subprocess.run(
            [sys.executable, "-m", "dmlemu", *command], check=True, capture_output=True, text=True
        )
        assert done.stdout and not done.stderr
    assert json.loads(Path("t.json").read_text())
    assert "<html" in Path("h.html").read_text() and Path("r.jsonl").exists()
    assert done.stdout == "1 dispatch was run again: no output differs.\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-f", "n=0"], "-f n=0: expected a size of at least 1"),
        (["-f", f"n={'9' * 5000}"], "of at most 10 digits"),
        (["-f", "n=9999999999"], "the input 'x' cannot be made: shape [9999999999, 3] is too large"),
        (["-f", "n="], "-f n=: expected NAME=VALUE"),
        (["-f", "m=3"], "The model names no dimension 'm'; it names 'n'."),
        (["-f", "n=2", "-f", "n=3"], "-f n=3: n is given twice, 2 before"),
        (["-b", "x"], "-b x: expected NAME=VALUE"),
        (["-b", "z=x.npy"], "-b z: the model has no such input; it has x"),
        (["-b", "x=x.npy", "-b", "x=2,3"], "-b x=2,3: x is given twice, x.npy before"),
        (["-b", "x=2,4"], "The input 'x' has shape [2, 4]; expected [n, 3]."),
        (["-b", "x=999999999999999999,3"], "is too large"),
        (["-b", "x=[2,3"], "-b x: [2,3 cannot be read: No such file or directory"),
        (["-b", "x=no.npy"], "-b x: no.npy cannot be read: No such file or directory"),
        (["-b", "x=x.npy", "-f", "n=2"], "The input 'x' has shape [1, 3]; expected [2, 3]."),
        (["-q", "compute"], "-q is an option of JSON models"),
        (["--post_dispatch_barriers", "none"], "--post_dispatch_barriers is an option of JSON models"),
        (["--print_commands"], "--print_commands is an option of JSON models"),
        (["--allow-paths"], "--allow-paths is an option of JSON models"),
        (["--input_path", "."], "--input_path is an option of JSON models"),
        (["--disable_gpu_timeout"], "--disable_gpu_timeout is an option of JSON models"),
        (["-a", "other"], "no adapter has 'other' in its name"),
        (["--record", "net.onnx"], "the model and --record name one file"),
    ],
)
def test_options_that_do_not_fit(
    capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert message in refused(capsys, "run", "net.onnx", *options)


HUGE = (
    b"\x93NUMPY\x01\x00v\x00"
    + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }".ljust(118)
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cannot be read as .npy: EOF"),
        (b"some text that is no array", "the magic string is not correct"),
        (HUGE, "cannot be read as .npy"),
        (np.zeros((1, 3)), "The input 'x' is of type double; expected float."),
        (np.zeros(3, np.float32), "The input 'x' has shape [3]; expected [n, 3]."),
        (np.array([{}]), "Object arrays cannot be loaded"),
    ],
)
def test_files_of_arrays_that_do_not_fit(capsys: pytest.CaptureFixture[str], data: Any, message: str) -> None:
    if isinstance(data, bytes):
        Path("bad.npy").write_bytes(data)
    else:
        np.save("bad.npy", data)
    assert message in refused(capsys, "run", "net.onnx", "-b", "x=bad.npy")
    assert message in refused(capsys, "diff", "net.onnx", "-b", "x=bad.npy", code=2)


def test_inputs_that_no_rule_makes(capsys: pytest.CaptureFixture[str]) -> None:
    save("net (string[1] x) => (string[1] y) {y = Identity(x)}")
    assert "tensor(string): give an array with -b NAME=FILE.npy" in refused(capsys, "run", "net.onnx")
    save("net (seq(float[3]) s) => (float[n] y) {y = ConcatFromSequence <axis = 0>(s)}")
    assert "'s' is no tensor: run the model from Python" in refused(capsys, "run", "net.onnx")


def test_files_that_are_no_models(capsys: pytest.CaptureFixture[str]) -> None:
    Path("cut.onnx").write_bytes(Path("net.onnx").read_bytes()[:-9])
    Path("folder.onnx").mkdir()
    for name, message in (
        ("no.onnx", "no.onnx cannot be read: No such file or directory."),
        ("folder.onnx", "folder.onnx cannot be read: Is a directory."),
        ("cut.onnx", "cut.onnx is not an ONNX model"),
    ):
        assert message in refused(capsys, "run", name)
        assert message in refused(capsys, "diff", name, code=2)


def test_options_of_onnx_models_are_refused_for_others(capsys: pytest.CaptureFixture[str]) -> None:
    Path("net.json").write_text('{"resources": {}, "dispatchables": {}, "commands": []}')
    assert "--inputs: a JSON model binds" in refused(capsys, "run", "net.json", "--inputs", "x.npz")
    for options in (["-b", "x=1"], ["-f", "n=1"], ["-F", "A=1"], ["-p"], ["--numerics", "onnx"]):
        assert "are options of ONNX models" in refused(capsys, "run", "net.json", *options)


def test_inputs_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("x.npz", x=np.float32([[1, 2, 3]]))
    for command in (["run", "net.onnx"], ["diff", "net.onnx"]):
        lines, _ = printed(capsys, *command, "--inputs", "x.npz")
    lines, _ = printed(capsys, "run", "net.onnx", "--inputs", "x.npz")
    assert lines[-1] == "Resource 'y': 0.0900306, 0.244728, 0.665241"
    Path("bad.npz").write_bytes(Path("x.npz").read_bytes()[:50])
    np.savez("other.npz", z=np.float32([1]))
    np.savez("object.npz", x=np.array([{}]))
    for options, message in (
        (["--inputs", "no.npz"], "--inputs no.npz: it cannot be read: No such file or directory"),
        (["--inputs", "."], "--inputs .: it cannot be read: Is a directory"),
        (["--inputs", "bad.npz"], "--inputs bad.npz: it cannot be read as .npz: "),
        (["--inputs", "object.npz"], "Object arrays cannot be loaded"),
        (["--inputs", "x.npy"], "--inputs x.npy: expected an .npz of arrays by name; -b takes one array"),
        (["--inputs", "other.npz"], "--inputs z: the model has no such input; it has x"),
        (["--inputs", "x.npz", "-b", "x=x.npy"], "-b x=x.npy: x.npz has an array for this input, too"),
    ):
        assert message in refused(capsys, "run", "net.onnx", *options)
        assert message in refused(capsys, "diff", "net.onnx", *options, code=2)


def test_ctrl_c_ends_it_without_a_word() -> None:
    """Between two runs: a record of a dispatch that Ctrl-C stops is not complete, and says so."""
    times = ["-t", "60000", "-I", "30000"]
    command = [sys.executable, "-m", "dmlemu", "run", "net.onnx", "-p", *times, "--record", "r.dmlrec"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        while "Output Tensor" not in process.stdout.readline():  # what follows is the run
            pass
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert (process.returncode, errors) == (130, "")


# --- dmlemu diff ---


def test_nothing_differs(capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["-f", "n=2"], ["--layout", "random:3"], ["-b", "x=x.npy", "--layout", "nhwc"]):
        assert printed(capsys, "diff", "net.onnx", *options)[0][-1] == "No tensor differs from reference."


def test_the_first_tensor_that_differs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = InferenceSession.run

    def wrong(session: InferenceSession, *arguments: Any) -> Any:
        results = run(session, *arguments)
        session.values["r"] = session.values["r"] + np.float32(1)
        return results

    monkeypatch.setattr(InferenceSession, "run", wrong)
    lines, _ = printed(capsys, "diff", "net.onnx", "-b", "x=x.npy", code=1)
    assert lines == [
        "Node 0, Relu r, is the first that differs:",
        "  r[0, 0] is 2.0, expected 1.0, 8388608 ULP apart; 3 of 3 elements differ.",
    ]


def test_numbers_are_directmls_or_those_of_a_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("x.npy", np.float32([[np.nan, 2, 3]]))
    options = ["net.onnx", "-b", "x=x.npy"]
    lines, _ = printed(capsys, "run", *options)
    assert lines[-1] == "Resource 'y': 0.035119, 0.259496, 0.705384"
    lines, _ = printed(capsys, "run", *options, "--numerics", "onnx")
    assert lines[-1] == "Resource 'y': nan, nan, nan"
    lines, _ = printed(capsys, "diff", *options, code=1)
    assert lines[0] == "Node 0, Relu r, is the first that differs:"
    assert "r[0, 0] is 0.0, expected nan" in lines[1]
    printed(capsys, "diff", *options, "--numerics", "onnx")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["net.onnx", "other.dmlrec"], "B is for records, and net.onnx is an ONNX model"),
        (["net.onnx", "--reference"], "--reference is for records, and net.onnx is an ONNX model"),
        (["net.dmlrec", "-b", "x=1"], "-b is for ONNX models, and net.dmlrec is a record"),
        (["net.dmlrec", "-f", "n=1"], "-f is for ONNX models"),
        (["net.dmlrec", "--layout", "nhwc"], "--layout is for ONNX models"),
        (["net.dmlrec", "--inputs", "x.npz"], "--inputs is for ONNX models"),
        (["net.onnx", "--layout", "random"], "--layout random: expected packed, nhwc or random:SEED"),
        (["net.onnx", "--layout", "random:-1"], "--layout random:-1: expected packed"),
        (["net.onnx", "--layout", "nchw"], "--layout nchw: expected packed"),
        (["net.dmlrec", "--against", "reference"], "--against is for ONNX models"),
        (["net.dmlrec", "--numerics", "onnx"], "--numerics is for ONNX models"),
        (["net.onnx", "-f", "m=1"], "The model names no dimension 'm'"),
        (["net.onnx", "-f", "n=2", "-b", "x=x.npy"], "The input 'x' has shape [1, 3]; expected [2, 3]"),
    ],
)
def test_what_diff_refuses(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert message in refused(capsys, "diff", *arguments, code=2)


@pytest.mark.parametrize(
    ("given", "expected", "differ"),
    [
        ([np.nan, 1], [np.nan, 1], 0),
        ([np.nan, 1], [2, 1], 1),
        ([3, 1], [np.inf, 1], 1),
        ([np.inf, 1], [3, 1], 1),
        ([np.inf, 1], [-np.inf, 1], 1),
        ([np.inf, -np.inf], [np.inf, -np.inf], 0),
        ([1 + 1e-4, 0], [1, 0], 0),
        ([1 + 1e-2, 0], [1, 0], 1),
    ],
)
def test_which_elements_differ(given: list[float], expected: list[float], differ: int) -> None:
    found = _difference(np.float32(given), np.float32(expected), 1e-3, 1e-5)
    assert (0 if found is None else found[-2]) == differ


# --- how far it is ---


def test_progress_goes_from_the_first_node_to_the_last() -> None:
    told: list[tuple[str, int, int]] = []
    save("net (float[3] x) => (float[3] y, int64[1, m] w) {r = Relu(x) w = NonZero(r) s = Abs(r) y = Neg(s)}")
    x = np.float32([1, 0, 3])
    session = InferenceSession("net.onnx", progress=lambda *state: told.append(state))
    session.run(None, {"x": x})
    assert told[0] == ("compile", 0, 4)
    assert ("run", 2, 4) in told and ("compile", 2, 4) in told  # NonZero runs on the host
    for now in ("compile", "run"):
        counts = [done for what, done, _ in told if what == now]
        assert counts == sorted(counts)
    del told[:]
    session.run(None, {"x": x})  # it is compiled
    assert {what for what, *_ in told} == {"run"}


def test_progress_of_a_comparison_names_the_other_implementation() -> None:
    told: list[str] = []
    x = np.float32([[1, 2, 3]])
    assert compare("net.onnx", {"x": x}, progress=lambda what, *_: told.append(what)) is None
    assert list(dict.fromkeys(told)) == ["compile", "run", "reference"]
