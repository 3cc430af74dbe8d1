"""Running an operator on the emulated device, beside its reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st
from strategies import Array

from dmlemu.testing import conformance
from thorough import part_of

compare, in_array = conformance.compare, conformance.in_array
offsets = st.sampled_from([0, 0, 16, 48, 272])


def given(strategy: st.SearchStrategy[Any], examples: int = 150) -> Callable[[Any], Any]:
    """Runs a test on examples of ``strategy``: the same ones every time; a part of them by default."""
    settings = hypothesis.settings(
        derandomize=True,
        deadline=None,
        max_examples=part_of(examples, 5),
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )

    def decorate(test: Any) -> Any:
        return settings(hypothesis.given(data=strategy)(test))

    return decorate


def assert_parts_have_the_same_bits(result: Callable[[Array, int], Array], x: Array) -> None:
    """Of ``result(x, axis)`` for 45,000 lines: with the lines along, across, and in the middle of memory."""
    some = [*range(20), *range(40_000, 40_021)]
    np.testing.assert_array_equal(result(x, 1)[some], result(x[some], 1))
    np.testing.assert_array_equal(result(x.T.copy(), 0)[:, some], result(x.T[:, some].copy(), 0))
    folded = x[:44_950].reshape(50, 899, 101)
    np.testing.assert_array_equal(result(folded, 1)[[3, 49]], result(folded[[3, 49]], 1))
