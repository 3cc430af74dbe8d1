"""Random models of one node against the reference implementation of the onnx package and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import hypothesis
import node_cases
import pytest
from hypothesis import HealthCheck, assume
from hypothesis import strategies as st
from oracles import Case, compare, model_of, oracles
from random_nodes import FAMILIES

from dmlemu.graph import packed, random_layouts
from dmlemu.onnx import InferenceSession
from thorough import part_of

EXAMPLES = 60
FEWER = {"sampled": 12, "attentions": 12}  # they become many operators


def check(case: Case, seed: int) -> None:
    """``seed``: of the layouts; 0: all tensors are packed."""
    expected = oracles(case)
    assume(expected)
    assume(all(each.ndim <= 8 for outputs in expected.values() for each in outputs))
    made, feeds = model_of(case)
    policy = random_layouts(seed) if seed else packed
    session = InferenceSession(made, device=node_cases.device(), policy=policy)
    compare(case, session.run(None, feeds), expected)


def _test_of(name: str) -> Any:
    @pytest.mark.dmlemu(expect=["*"])  # what is looked for is a result
    @hypothesis.settings(
        derandomize=True,
        deadline=None,
        max_examples=part_of(FEWER.get(name, EXAMPLES)),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    )
    @hypothesis.given(case=FAMILIES[name], seed=st.sampled_from([0, 0, 1, 2, 3]))
    def test(case: Case, seed: int) -> None:
        check(case, seed)

    return test


for _name in FAMILIES:
    globals()[f"test_{_name.replace(' ', '_')}"] = _test_of(_name)
