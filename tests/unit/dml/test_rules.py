"""The rule classes themselves, on operators that use more of them than the emulated ones."""

from __future__ import annotations

from typing import Any

import pytest

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, FeatureLevel
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.definition import unmet
from dmlemu.dml.declared.rules import (
    AtLeast,
    Axis,
    Below,
    Rule,
    SameSizes,
    Unless,
    Window,
)
from dmlemu.dml.declared.values import Among, Between, Exactly, Except, Multiple, Values

NEWEST = max(FeatureLevel)


def tensor(*sizes: int) -> BufferTensorDesc:
    return BufferTensorDesc(T.FLOAT32, sizes)


def wrong(rule: Rule, desc: Any, level: FeatureLevel = NEWEST) -> list[tuple[str, str]]:
    """Path and id of the rule's demands that the desc violates."""
    return [
        (demand.place.path(desc), (demand.check or demand.place.check).id)
        for demand in unmet([rule], desc, level)
    ]


def gather(indices: BufferTensorDesc, axis: int) -> Any:
    return dml.GatherElementsOperatorDesc(
        input_tensor=tensor(2, 3, 4), indices_tensor=indices, output_tensor=indices, axis=axis
    )


def pooling(output: BufferTensorDesc, window: list[int], strides: list[int]) -> Any:
    return dml.AveragePoolingOperatorDesc(
        input_tensor=tensor(1, 2, 5, 6),
        output_tensor=output,
        strides=strides,
        window_size=window,
        start_padding=[1, 0],
        end_padding=[0, 0],
        include_padding=False,
    )


def test_sizes_are_the_same_except_along_an_axis() -> None:
    rule = SameSizes("input_tensor", "indices_tensor", but="axis")

    assert wrong(rule, gather(tensor(2, 7, 4), axis=1)) == []
    assert wrong(rule, gather(tensor(2, 7, 4), axis=2)) == [("IndicesTensor.Sizes[1]", "OP_SHAPE")]
    assert wrong(rule, gather(tensor(2, 1, 4), axis=0)) == [("IndicesTensor.Sizes[1]", "OP_NO_BROADCAST")]
    assert wrong(rule, gather(tensor(2, 3), axis=1)) == [("IndicesTensor.DimensionCount", "TENSOR_RANK")]
    assert "except along `Axis`" in rule.sentence(dml.GatherElementsOperatorDesc)


def test_one_axis_is_below_the_rank() -> None:
    rule = Axis("axis", of="input_tensor")

    assert wrong(rule, gather(tensor(2, 3, 4), axis=2)) == []
    assert wrong(rule, gather(tensor(2, 3, 4), axis=3)) == [("Axis", "OP_FIELD_RANGE")]
    assert rule.sentence(dml.GatherElementsOperatorDesc) == "`Axis` is below `InputTensor.DimensionCount`."


def test_a_window_without_dilations() -> None:
    rule = Window("input_tensor", "output_tensor", window="window_size")

    assert wrong(rule, pooling(tensor(1, 2, 2, 5), [3, 2], [2, 1])) == []
    assert wrong(rule, pooling(tensor(1, 2, 3, 5), [3, 2], [2, 1])) == [
        ("OutputTensor.Sizes[2]", "OP_WINDOW_COUNT")
    ]
    assert wrong(rule, pooling(tensor(1, 2, 2, 5), [3, 7], [2, 1])) == [("WindowSize[1]", "OP_WINDOW_COUNT")]
    assert "Dilations" not in rule.sentence(dml.AveragePoolingOperatorDesc)


def test_the_number_of_windows_may_be_rounded_up() -> None:
    """Along dimension 2 windows of 3 move by 2 over 6 elements."""
    rule = Window("input_tensor", "output_tensor", window="window_size", rounded_up=True)

    assert wrong(rule, pooling(tensor(1, 2, 2, 5), [3, 2], [2, 1])) == []
    assert wrong(rule, pooling(tensor(1, 2, 3, 5), [3, 2], [2, 1])) == []
    for size, width in ((1, 5), (4, 5), (3, 6)):
        (place,) = wrong(rule, pooling(tensor(1, 2, size, width), [3, 2], [2, 1]))
        assert place == (f"OutputTensor.Sizes[{2 if width == 5 else 3}]", "OP_WINDOW_COUNT")
    assert "rounded down or up" in rule.sentence(dml.AveragePoolingOperatorDesc)


def test_sizes_are_the_same_in_some_dimensions() -> None:
    rule = SameSizes("input_tensor", "output_tensor", only=slice(0, 2))

    assert wrong(rule, pooling(tensor(1, 2, 9, 9), [1, 1], [1, 1])) == []
    assert wrong(rule, pooling(tensor(3, 2, 9, 9), [1, 1], [1, 1])) == [
        ("OutputTensor.Sizes[0]", "OP_NO_BROADCAST")
    ]
    assert wrong(rule, pooling(tensor(1, 1, 9, 9), [1, 1], [1, 1])) == [("OutputTensor.Sizes[1]", "OP_SHAPE")]
    assert rule.sentence(dml.AveragePoolingOperatorDesc).endswith("the same Sizes in dimensions 0 and 1.")


def test_conditions() -> None:
    desc = gather(tensor(2, 3, 4), axis=0)
    below, unless = (
        Below(FeatureLevel.LEVEL_4_0, AtLeast("axis", 1)),
        Unless("axis", (0,), AtLeast("axis", 1)),  # type: ignore[arg-type]
    )

    assert wrong(below, desc, FeatureLevel.LEVEL_3_1) == [("Axis", "OP_FIELD_RANGE")]
    assert wrong(below, desc, FeatureLevel.LEVEL_4_0) == []
    assert wrong(unless, desc) == []


def test_after_a_value_that_others_compute_with_nothing_is_said() -> None:
    rules = [Axis("axis", of="input_tensor"), SameSizes("input_tensor", "indices_tensor")]
    desc = gather(tensor(2, 7, 4), axis=3)

    assert [demand.place.path(desc) for demand in unmet(rules, desc, NEWEST)] == ["Axis"]


@pytest.mark.parametrize(
    ("values", "legal", "illegal", "expected"),
    [
        (Exactly(4), [4], [5, 3, 1], "4"),
        (Exactly(T.INT8), [T.INT8], [T.UINT8], "INT8"),
        (Exactly(None), [None], [0], "none"),
        (Between(1, 3), [1, 3], [0, 4], "1 to 3"),
        (Between(2, 2), [2], [1, 3], "2"),
        (Between(1, None), [1, 2**32], [0], "1 or more"),
        (Between(None, 3), [0, 3], [4], "at most 3"),
        (Multiple(3), [3, 6], [4, 2], "a multiple of 3"),
        (Among([T.INT8, T.UINT8]), [T.INT8], [T.INT32], "UINT8 or INT8"),
        (Except((1, 2)), [0, 3], [1, 2], "none of 1, 2"),
    ],
)
def test_sets_of_values(values: Values, legal: list[Any], illegal: list[Any], expected: str) -> None:
    assert all(value in values for value in legal)
    assert not any(value in values for value in illegal)
    assert values.expected == expected
    domain = Among(T) if T.INT8 in legal else Between(0, 2**32 - 1)
    if None not in legal:
        assert values.pick(lambda low, _: low, domain) in values
        outside = values.outside(domain)
        assert set(outside) and not any(value in values for value in outside)


@pytest.mark.parametrize("values", [Exactly(9), Between(9, 10), Among([T.INT8])])
def test_no_value_in_common_with_the_domain(values: Values) -> None:
    domain = Among([T.UINT8]) if isinstance(values, Among) else Between(1, 8)

    with pytest.raises(LookupError):
        values.pick(lambda low, _: low, domain)
