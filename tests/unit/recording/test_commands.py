"""``dmlemu diff`` and ``dmlemu replay``, ``--record`` of ``dmlemu run`` and of pytest."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from test_recording import ARRAY, chain

from dmlemu import recording
from dmlemu.cli import main

pytest_plugins = "pytester"

MODEL = {
    "resources": {
        name: {
            "initialValuesDataType": "FLOAT32",
            "initialValues": {"valueCount": 20, "valueStart": 1, "valueDelta": 1},
        }
        for name in ("A", "B")
    },
    "dispatchables": {
        "double": {
            "type": "DML_OPERATOR_ELEMENT_WISE_ADD",
            "desc": {
                f"{name}Tensor": {"DataType": "FLOAT32", "Sizes": [4, 5]} for name in ("A", "B", "Output")
            },
        }
    },
    "commands": [
        {
            "type": "dispatch",
            "dispatchable": "double",
            "bindings": {"ATensor": "A", "BTensor": "A", "OutputTensor": "B"},
        }
    ],
}


def test_diff_leaves_with_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = (str(tmp_path / f"{name}.dmlrec") for name in ("good", "bad"))
    chain(good)
    chain(bad, wrong=13)

    assert main(["diff", good, good]) == 0
    assert capsys.readouterr().out == "20 dispatches were compared: no output differs.\n"
    assert main(["diff", good, bad]) == 1
    assert "Dispatch 13, 'op13' (DML_OPERATOR_ELEMENT_WISE_ADD)" in capsys.readouterr().out.splitlines()[0]
    assert main(["diff", good, "--reference"]) == 0
    np.savez(tmp_path / "expected.npz", op0=ARRAY)
    assert main(["diff", good, str(tmp_path / "expected.npz")]) == 1
    capsys.readouterr()

    for arguments, said in (
        ([good], "diff takes a second file, or --reference"),
        ([good, str(tmp_path / "none")], "No such file"),
        ([good, __file__], "is not a .dmlrec file"),
    ):
        assert main(["diff", *arguments]) == 2
        assert said in capsys.readouterr().err


def test_replay_leaves_with_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.dmlrec"
    chain(path, length=3)

    assert main(["replay", str(path), "--strictness", "debug", "--chaos", "3", "--layouts", "4"]) == 0
    assert capsys.readouterr().out == "3 dispatches were run again: no output differs.\n"
    assert main(["replay", __file__]) == 2
    assert "is not a .dmlrec file" in capsys.readouterr().err


def test_replay_with_other_instructions(tmp_path: Path) -> None:
    path = tmp_path / "a.dmlrec"
    chain(path, length=3)

    command = [sys.executable, "-m", "dmlemu", "replay", str(path), "--isa", "generic", "--layouts", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "3 dispatches were run again: no output differs.\n")
    command[4] = __file__
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_run_records_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = tmp_path / "model.json", tmp_path / "a.dmlrec"
    model.write_text(json.dumps(MODEL))

    assert main(["run", str(model), "--record", str(path)]) == 0
    found = recording.read(path)
    assert {each.work.name for each in found.dispatches} == {"double"}
    assert found.array(found.dispatches[0].contents[2] or "").ravel().tolist() == list(range(2, 41, 2))
    assert main(["diff", str(path), "--reference"]) == 0


def test_run_records_what_is_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, path = tmp_path / "model.json", tmp_path / "a.dmlrec"
    model.write_text(json.dumps(MODEL))

    gc.collect()  # the device of the test before: a living one is not created again
    assert main(["run", str(model), "--record", str(path), "--record-only", "conv*"]) == 0
    assert "1 dispatch left out by the filter" in capsys.readouterr().err
    assert not recording.read(path).dispatches
    gc.collect()
    assert main(["run", str(model), "--record", str(path), "--record-limit", "0K"]) == 0
    assert "exceed the limit of 0 bytes" in capsys.readouterr().err
    gc.collect()
    assert main(["run", str(model), "--record", str(path), "--record-limit", "1M"]) == 0
    assert not capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["run", str(model), "--record", str(path), "--record-limit", "much"])
    assert "much is not a size such as 64M" in capsys.readouterr().err


def test_pytest_records_all_devices(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import numpy as np
        import dmlemu
        from dmlemu import dml

        def test_add():
            x = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4])
            desc = dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
            with dmlemu.Session() as session:
                compiled = session.compile(desc, "add")
                session.initialize(compiled)
                session.barrier()
                a, b = session.upload("a", np.ones(4, np.float32)), session.buffer("b", 256)
                session.dispatch(compiled, [a, a], [b])
                assert session.read(b, np.float32, 4).tolist() == [2, 2, 2, 2]
        """
    )
    quick = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # which loads all of hypothesis
    result = pytester.runpytest_subprocess("--dmlemu-record=a.dmlrec", *quick)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["dmlemu: dispatches in *a.dmlrec"])
    found = recording.read(pytester.path / "a.dmlrec")
    assert [each.work.name for each in found.dispatches] == ["add"]
