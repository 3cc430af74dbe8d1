"""The backend of the onnx package: models and nodes by its interface, and its own tests with it."""

from __future__ import annotations

import unittest

import node_cases
import numpy as np
import onnx
import pytest
from models import model, node
from onnx import TensorProto as T
from onnx.backend.test import BackendTest, runner
from onnx.backend.test.loader import load_model_tests

import dmlemu.onnx.backend as backend

X, Y = np.array([-1, 0, 2], np.float32), np.array([1, 2, 3], np.float32)


def two_inputs() -> onnx.ModelProto:
    nodes = [node("Add", ["a", "w"], "s"), node("Mul", ["s", "b"], "p.1")]
    values = [("a", T.FLOAT, [3]), ("b", T.FLOAT, [3])]
    constants = {"w": np.ones(3, np.float32)}
    return model(nodes, values, [("s", T.FLOAT, [3]), ("p.1", T.FLOAT, [3])], constants)


@pytest.mark.parametrize("inputs", [[X, Y], {"b": Y, "a": X}])
def test_a_prepared_model_runs_with_a_list_or_a_dict(inputs: object) -> None:
    made = backend.prepare(two_inputs(), "CPU").run(inputs)
    assert made.s.tolist() == [0, 1, 3] and made["p.1"].tolist() == [0, 2, 9]
    assert [each.tolist() for each in backend.run_model(two_inputs(), [X, Y])] == [[0, 1, 3], [0, 2, 9]]


def test_a_node_runs_with_and_without_what_its_outputs_are() -> None:
    clip = node("Clip", ["x", "", "high"], "y")
    given = [X, np.float32(1)]
    for information in (None, [(np.float32, (3,))]):
        assert backend.run_node(clip, given, outputs_info=information)[0].tolist() == [-1, 0, 1]
    old = node("Clip", ["x"], "y", max=1.0)
    assert backend.run_node(old, [X], opset_version=6).y.tolist() == [-1, 0, 1]
    assert backend.run_node(node("Add", ["x", "x"], "y"), [X])[0].tolist() == [-2, 0, 4]


def test_wrong_arguments_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"1 inputs are given; the model has 2: \['a', 'b'\]"):
        backend.run_model(two_inputs(), [X])
    with pytest.raises(ValueError, match="2 inputs are given; the node has 1"):
        backend.run_node(node("Relu", ["x"], "y"), [X, X])
    with pytest.raises(ValueError, match=r"device \('CUDA'\) must be 'CPU'"):
        backend.prepare(two_inputs(), "CUDA")
    with pytest.raises(TypeError, match="no option 'warm'"):
        backend.prepare(two_inputs()).run([X, Y], warm=True)
    assert backend.supports_device("CPU:0") and not backend.supports_device("CUDA")


def _run(tests: BackendTest) -> tuple[int, unittest.TestResult]:
    """How many tests ran, and their results."""
    result = unittest.TestResult()
    tests.test_suite.run(result)
    return result.testsRun - len(result.skipped), result


@pytest.mark.dmlemu(expect=["*"])  # what is looked for is a result
def test_the_packages_tests_of_pytorch_operators_run_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    others = {"node", "simple", "real"}  # loading their models takes seconds
    load = runner.load_model_tests
    monkeypatch.setattr(runner, "load_model_tests", lambda kind: [] if kind in others else load(kind=kind))
    tests = BackendTest(backend, __name__, test_kwargs={"host": "run"})
    ran, result = _run(tests.include("test_operator_(conv|add|pow|max)|test_Linear"))
    assert result.wasSuccessful(), result.failures + result.errors
    assert ran == 13 and any("doesn't support device CUDA" in why for _, why in result.skipped)


# Tests of onnx 1.23.2 whose tolerances are narrower than what they test: one unit of FLOAT16, and zeros that
# are sums of waves.  The last compares the length of scalars, whoever runs it.
TOO_NARROW = ["test_attention_4d_causal_fp16", "test_dft_inverse", "test_loop16_seq_none"]


@pytest.mark.long
@pytest.mark.dmlemu(expect=["*"])
def test_the_packages_tests_run_with_it() -> None:
    tests = BackendTest(backend, __name__)
    left_out = [case for case in load_model_tests(kind="node") if node_cases.left_out(case.name)]
    for name in (*(case.name for case in left_out), "test_gradient_of_add", *TOO_NARROW):
        tests.exclude(f"^{name}_")
    for case in load_model_tests(kind="real"):  # need downloads
        tests.exclude(f"^{case.name}_")
    ran, result = _run(tests.include("_cpu$"))
    assert result.wasSuccessful(), result.failures + result.errors
    assert ran > 1950
