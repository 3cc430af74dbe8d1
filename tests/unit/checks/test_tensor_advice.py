"""Advice on layouts: what looks like a mistake, and what looks much the same and is none."""

from __future__ import annotations

import pytest

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

pytestmark = pytest.mark.dmlemu(expect=["*"])


def advice(sizes: list[int], strides: list[int]) -> list[str]:
    """Severity and id of what is said of an input of that layout."""
    stage = Stage()
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor(sizes, strides), output_tensor=tensor(sizes)
    )
    stage.dml.create_operator(desc)
    return [f"{each.report.severity.name} {each.report.id}" for each in stage.device.reports]


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ([1, 3, 4, 5], [60, 15, 3, 1]),  # NCHW sizes, strides as they lie in NHWC memory
        ([1, 4, 5, 3], [60, 1, 15, 3]),  # NHWC sizes, strides for NCHW sizes over NHWC memory
        ([2, 4, 5, 3], [60, 20, 5, 1]),  # NHWC sizes, strides as they lie in NCHW memory
        ([1, 8, 4, 5], [160, 5, 1, 20]),  # NCHW sizes, strides for NHWC sizes over NCHW memory
    ],
)
def test_mixtures_of_layouts(sizes: list[int], strides: list[int]) -> None:
    assert advice(sizes, strides) == ["WARNING TENSOR_LAYOUT_GUESS"]


def test_a_height_of_one_fits_any_order() -> None:
    assert advice([1, 2, 1, 3], [6, 3, 1, 3]) == ["INFO TENSOR_IN_OVERLAP"]


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ([1, 3, 4, 5], [60, 1, 15, 3]),  # NCHW sizes over NHWC memory
        ([1, 4, 5, 3], [60, 5, 1, 20]),  # NHWC sizes over NCHW memory
        ([1, 4, 4, 4], [64, 1, 16, 4]),  # where height, width and channels are as many
        ([1, 4, 4, 4], [64, 4, 1, 16]),
        ([1, 4, 5, 3], [60, 15, 3, 1]),
        ([1, 3, 4, 5], [60, 5, 1, 20]),  # as the last above, but no elements meet
        ([1, 8, 1, 1], [8, 1, 8, 8]),
        ([1, 1, 4, 5], [20, 1, 5, 1]),
        ([1, 3, 4, 5], [0, 0, 0, 1]),
    ],
)
def test_layouts_that_are_meant(sizes: list[int], strides: list[int]) -> None:
    assert advice(sizes, strides) == []
