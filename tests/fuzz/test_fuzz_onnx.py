"""The fuzzer of ONNX models, for a short time, and what it says of a wrong result."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import fuzz_onnx
import onnx
import pytest
import random_nodes
from random_nodes import F32

from dmlemu import graph
from dmlemu.onnx.operators import element_wise
from processes import run
from thorough import FUZZ_SECONDS


def test_random_models_compute_what_the_oracles_do() -> None:
    script = Path(__file__).with_name("fuzz_onnx.py")
    seconds = FUZZ_SECONDS * 5 // 2  # a node takes two sessions and two oracles
    command = [sys.executable, str(script), "--seconds", str(seconds), "--seed", "1"]
    done = run(command, timeout=110)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nodes of" in done.stdout


@pytest.mark.dmlemu(expect=["*"])  # what is looked for is a result
def test_a_wrong_result_becomes_a_small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(x: graph.Expression, **fields: object) -> graph.Expression:
        return graph.element_wise_abs(x)  # type: ignore[no-any-return]

    functions = {**graph.FUNCTIONS, "activation_sigmoid": wrong}
    monkeypatch.setattr(element_wise, "_F", functions)
    monkeypatch.setattr(fuzz_onnx, "FAMILIES", {"of one": fuzz_onnx.FAMILIES["of one"]})
    monkeypatch.setattr(random_nodes, "OF_ONE", {"Sigmoid": (F32,), "Neg": (F32,)})
    failure = fuzz_onnx.batch(1, 20, Counter())
    assert "Sigmoid: output 0 differs from" in failure
    text = failure[failure.index("<\n   ir_version") :]
    model = onnx.parser.parse_model(text)
    assert [node.op_type for node in model.graph.node] == ["Sigmoid"]
