"""Every operator runs: its example by default, any legal desc by family or in the long tests."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import EXAMPLES
from harness import compare, given
from hypothesis import strategies as st
from strategies import Array

from dmlemu.dml import FeatureLevel, OperatorDesc, OperatorType
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.operators import declared
from dmlemu.dml.operators.definition import emulated
from dmlemu.evaluation import unpack_tensor
from dmlemu.testing import operator_descs
from operator_families import each_operator

# What random indices report is expected.
pytestmark = pytest.mark.dmlemu(
    suppress=dict.fromkeys(["MEM_INDEX_VALUE", "MEM_SCATTER_RACE"], "the indices are random")
)


def small_inputs(desc: OperatorDesc, seed: int) -> dict[str, Any]:
    """0, 1 and 2 at random: their sums and products are exact in any order.  Elements that share a place are
    equal."""
    random, arrays = np.random.default_rng(seed), {}
    for field in tensor_fields(desc):
        if field.output:
            continue
        value: Array | None = None
        if field.desc is not None:
            number = field.desc.size_in_bytes // field.desc.dtype.itemsize + 1
            memory = random.integers(0, 3, number).astype(field.desc.dtype)
            value = unpack_tensor(field.desc, memory.view(np.uint8)[: field.desc.size_in_bytes])
        if field.index is None:
            arrays[field.name] = value
        else:
            arrays.setdefault(field.name, []).append(value)
    return arrays


def test_examples_match_their_references() -> None:
    """All of them in one test: most of what a test takes is around it."""
    failures = []
    for operator, desc in EXAMPLES.items():
        try:
            compare(desc, small_inputs(desc, seed=1))
        except Exception as error:
            failures.append(f"{operator.name}: {error!r}")
    assert not failures, "\n".join(failures)


def levels(operator: OperatorType) -> list[FeatureLevel]:
    return [level for level in FeatureLevel if level >= declared()[operator].INTRODUCED]


def compare_any(operator: OperatorType, data: st.DataObject) -> None:
    level = data.draw(st.sampled_from(levels(operator)))
    desc = data.draw(operator_descs(operator, feature_level=level))

    compare(desc, small_inputs(desc, data.draw(st.integers(0, 100))), level=level)


@each_operator("operator")
@given(st.data(), examples=25)
def test_any_desc(operator: OperatorType, data: st.DataObject) -> None:
    compare_any(operator, data)


@pytest.mark.long
@pytest.mark.parametrize("operator", sorted(emulated()), ids=lambda operator: operator.name)
@given(st.data(), examples=200)
def test_many_descs(operator: OperatorType, data: st.DataObject) -> None:
    """Enough for most types, ranks and layouts of each table."""
    compare_any(operator, data)
