"""TensorFlow with its DirectML plugin: small programs, the example, and the plugin's own tests."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tensorflow_suite

if TYPE_CHECKING:
    from conftest import Client, Done

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "examples" / "tensorflow" / "digits.py"
pytestmark = pytest.mark.timeout(900)  # TensorFlow starts slowly where other programs run
PYTHON = Path(os.environ.get("DMLEMU_CLIENT_TENSORFLOW", "")).absolute()

# Reports about the plugin that no program can avoid: docs/guide/run-a-tensorflow-program.md.
OF_THE_PLUGIN = "\n".join(
    f"{id}=the plugin does so" for id in ("RES_STATE_IGNORED", "BIND_ALIAS", "OBJECT_DELETED_IN_USE")
)


def run(client: Client, *arguments: str, **options: Any) -> tuple[Any, Done]:
    """What a program prints, and its run, which ended well."""
    done = client.run(HERE / "tensorflow_programs.py", *arguments, **options)
    assert done.status == 0, done.err
    return json.loads(done.out.splitlines()[-1]), done


def test_the_device_is_listed(tensorflow: Client) -> None:
    assert run(tensorflow, "devices")[0] == ["/physical_device:GPU:0"]


def test_operations_run_on_the_device(tensorflow: Client) -> None:
    found, done = run(tensorflow, "operations")
    assert found == {
        "identity": ["device:GPU:0", [[1, 2], [3, 4]]],
        "add": ["device:GPU:0", [[2, 4], [6, 8]]],
        "matmul": ["device:GPU:0", [[7, 10], [15, 22]]],
        "relu": ["device:GPU:0", [[0, 0], [1, 2]]],
        "assign_add": ["device:GPU:0", [4, 7]],
    }
    assert done.work.dispatches["GEMM"] == 1 and done.work.dispatches["ACTIVATION_RELU"] == 1
    assert not done.work.refusals


def test_a_network_learns_as_well_as_on_the_cpu(tensorflow: Client) -> None:
    """Its first weights are the same, and the order of the images."""
    done, cpu = tensorflow.run(EXAMPLE), tensorflow.cpu(EXAMPLE, "--cpu")
    assert (done.status, cpu.returncode) == (0, 0), done.err + cpu.stderr
    line = r"^{}: ([\d.]+)% of 450 images are read right, loss ([\d.]+)$"
    ours = re.search(line.format("GPU:0"), done.out, re.MULTILINE)
    theirs = re.search(line.format("CPU:0"), cpu.stdout, re.MULTILINE)
    assert ours and theirs, done.out + cpu.stdout
    assert float(ours[1]) == pytest.approx(float(theirs[1]), abs=2)
    assert float(ours[2]) == pytest.approx(float(theirs[2]), rel=0.1)
    assert done.work.dispatches["ADAM_OPTIMIZER"] == 6 * 22 * 4  # each weight, in each step of four epochs
    assert not done.work.refusals


def test_an_lstm_predicts_what_it_does_on_the_cpu(tensorflow: Client) -> None:
    (largest, difference), done = run(tensorflow, "lstm")
    assert largest > 0.1
    assert difference < 1e-5
    assert sum(done.work.dispatches.values()) > 9 * 2 and not done.work.refusals


@pytest.mark.parametrize("seconds", [5, *[pytest.param(60, marks=pytest.mark.long)] * 10])
def test_threads_and_a_pipeline_compute(tensorflow: Client, seconds: int) -> None:
    """None waits for another's lock with the lock of Python."""
    (rounds, wrong), _ = run(tensorflow, "threads", str(seconds))
    assert wrong == []
    assert min(rounds) > 0


@pytest.mark.parametrize("program", ["operations", "lstm"])
def test_strict_reports_what_only_the_plugin_can_avoid(tensorflow: Client, program: str) -> None:
    _, done = run(tensorflow, program, strictness="strict", DMLEMU_SUPPRESS=OF_THE_PLUGIN)
    assert not re.search(r"^\S+ (ERROR|CORRUPTION|WARNING) (?!.* is suppressed)", done.err, re.MULTILINE), (
        done.err
    )


ENDS = """
import os
import unittest


class Ends(unittest.TestCase):
    def test_a_passes(self):
        pass

    def test_b_aborts(self):
        os.abort()

    def test_c_fails(self):
        self.assertEqual(1, 2)

    def test_d_waits(self):
        __import__("time").sleep(600)

    def test_e_is_skipped(self):
        self.skipTest("a reason")

    def test_f_reads_the_log(self):
        self.assertNotIn("TF_CPP_MIN_LOG_LEVEL", os.environ)


unittest.main()
"""


def test_every_end_of_a_test_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what runs the plugin's own tests; no client is needed."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    (tmp_path / "ends_test.py").write_text(ENDS)
    result = tensorflow_suite.run_file(Path(sys.executable), tmp_path / "ends_test.py", cpu=True, per_test=2)
    assert result.tests == {
        "Ends.test_a_passes": "passed",
        "Ends.test_b_aborts": "crashed",
        "Ends.test_c_fails": "failed",
        "Ends.test_d_waits": "crashed",
        "Ends.test_e_is_skipped": "skipped",
        "Ends.test_f_reads_the_log": "passed",
    }
    assert "AssertionError: 1 != 2" in result.why["Ends.test_c_fails"]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    "file", tensorflow_suite.files(PYTHON) or [None], ids=lambda file: file and file.stem
)
def test_what_passes_on_the_cpu_passes(tensorflow: Client, file: Path | None) -> None:
    """A file of the plugin's own tests of operators."""
    if file is None:
        pytest.skip("setup_tensorflow.sh has not put the plugin's tests into the environment")
    result = tensorflow_suite.run_file(tensorflow.program, file)
    failed = result.bad()
    if failed:
        failed -= tensorflow_suite.run_file(tensorflow.program, file, cpu=True).bad()
    assert not failed, {test: f"{result.tests[test]} {result.why.get(test)}" for test in failed}
