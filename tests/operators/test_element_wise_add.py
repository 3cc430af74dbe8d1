"""ELEMENT_WISE_ADD and ELEMENT_WISE_ADD1 (with everything about fused activations)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from activations import ACTIVATIONS, activation
from examples import EXAMPLES, accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import SIGNED, UNSIGNED, Array, dtype_of, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.schema import camel, level_name

O = OperatorType  # noqa: E741
TYPES = [T.FLOAT32, T.FLOAT16, *SIGNED, *UNSIGNED]
both = pytest.mark.parametrize("operator", [O.ELEMENT_WISE_ADD, O.ELEMENT_WISE_ADD1])


def add(data_type: T, a: list[float], b: list[float], fused: Any = None) -> Array:
    x = tensor(data_type, len(a))
    op: Any = dml.ElementWiseAddOperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x)
    if fused is not None:
        op = dml.ElementWiseAdd1OperatorDesc(a_tensor=x, b_tensor=x, output_tensor=x, fused_activation=fused)
    inputs = {"a_tensor": np.array(a, dtype_of(data_type)), "b_tensor": np.array(b, dtype_of(data_type))}
    return compare(op, inputs)["output_tensor"]


def test_integers_wrap() -> None:
    assert add(T.INT8, [127, -128, -1], [1, -1, 1]).tolist() == [-128, 127, 0]
    assert add(T.UINT8, [1], [254]).tolist() == [255]
    assert add(T.UINT64, [2**64 - 1], [2]).tolist() == [1]
    assert add(T.INT64, [2**63 - 1], [1]).tolist() == [-(2**63)]


def test_floats() -> None:
    inf = float("inf")

    assert add(T.FLOAT32, [1.5, inf, 3e38], [2.25, 1, 3e38]).tolist() == [3.75, inf, inf]
    assert np.isnan(add(T.FLOAT32, [inf, float("nan")], [-inf, 0])).all()
    assert add(T.FLOAT16, [65504, 2048], [16, 1]).tolist() == [inf, 2048]


def test_the_activation_sees_the_unrounded_sum_of_float16() -> None:
    """2048 + 1 is no FLOAT16: rounded before the activation, the result would be 0."""
    shift = dml.ActivationLinearOperatorDesc(alpha=1.0, beta=-2048.0)

    assert add(T.FLOAT16, [2048], [1], shift).tolist() == [1]


def test_broadcast_by_stride_0() -> None:
    row = dml.BufferTensorDesc(T.FLOAT32, [2, 3], [0, 1])
    full = tensor(T.FLOAT32, 2, 3)
    op = dml.ElementWiseAddOperatorDesc(a_tensor=full, b_tensor=row, output_tensor=full)
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.float32([[10, 20, 30]] * 2)

    assert compare(op, {"a_tensor": a, "b_tensor": b})["output_tensor"].tolist() == (a + b).tolist()


@given(st.data())
def test_add_in_any_layout(data: st.DataObject) -> None:
    data_type, sizes = data.draw(st.sampled_from(TYPES)), data.draw(shapes())
    a, b = data.draw(tensors(data_type, sizes)), data.draw(tensors(data_type, sizes))
    op = dml.ElementWiseAddOperatorDesc(
        a_tensor=a, b_tensor=b, output_tensor=data.draw(tensors(data_type, sizes, output=True))
    )

    inputs = {"a_tensor": filled(a, data.draw(values()))[1], "b_tensor": filled(b, data.draw(values()))[1]}
    compare(op, inputs, offset=data.draw(offsets))


@given(st.data())
def test_add1_in_any_layout(data: st.DataObject) -> None:
    data_type, sizes = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16])), data.draw(shapes())
    a, b = data.draw(tensors(data_type, sizes)), data.draw(tensors(data_type, sizes))
    fused = data.draw(st.none() | st.sampled_from(ACTIVATIONS).flatmap(activation))
    op = dml.ElementWiseAdd1OperatorDesc(
        a_tensor=a,
        b_tensor=b,
        output_tensor=data.draw(tensors(data_type, sizes, output=True)),
        fused_activation=fused,
    )

    inputs = {"a_tensor": filled(a, data.draw(values()))[1], "b_tensor": filled(b, data.draw(values()))[1]}
    compare(op, inputs, offset=data.draw(offsets))


# --- rules ---


@both
def test_broadcasting_needs_strides(operator: OperatorType) -> None:
    op = example(operator, b_tensor=tensor(T.FLOAT32, 1, 2, 3, 1))

    report = refused(op, "OP_NO_BROADCAST", "BTensor.Sizes[3]", 1, 4)
    assert report.hint == "operators do not broadcast by size: give the full size and stride 0"


@pytest.mark.parametrize("inner", ACTIVATIONS, ids=lambda kind: kind.name)
def test_TN10_every_activation_can_be_fused_from_its_level_on(inner: OperatorType) -> None:
    fused = without_tensors(inner)
    for level in FeatureLevel:
        if level < FeatureLevel.LEVEL_2_0:
            continue
        op = example(O.ELEMENT_WISE_ADD1, fused_activation=fused)
        if level >= fused.INTRODUCED:
            accepted(op, level)
        else:
            expected = f"feature level {level_name(fused.INTRODUCED)} or higher"
            given = f"DML_OPERATOR_{inner.name}"
            refused(op, "OP_FUSED_ACTIVATION", "FusedActivation.Type", given, expected, level=level)


@pytest.mark.parametrize("inner", [O.ELEMENT_WISE_CLIP, O.ELEMENT_WISE_IDENTITY, O.GEMM, O.REDUCE])
def test_TN10_other_operators_cannot_be_fused(inner: OperatorType) -> None:
    """ELEMENT_WISE_CLIP can, but only into convolutions and GEMM."""
    op = example(O.ELEMENT_WISE_ADD1, fused_activation=EXAMPLES[inner])

    expected = "a fusable activation"
    refused(op, "OP_FUSED_ACTIVATION", "FusedActivation.Type", f"DML_OPERATOR_{inner.name}", expected)


@pytest.mark.parametrize("name", ["input_tensor", "output_tensor"])
def test_TN9_a_fused_activation_has_no_tensors(name: str) -> None:
    fused = dml.ActivationReluOperatorDesc(**{name: tensor(T.FLOAT32, 1, 2, 3, 4)})
    op = example(O.ELEMENT_WISE_ADD1, fused_activation=fused)

    report = refused(op, "OP_FUSED_ACTIVATION", f"FusedActivation.{camel(name)}", "a tensor desc", "none")
    assert "TN9" in report.rule


def test_TN9_a_fused_activation_obeys_its_own_rules() -> None:
    op = example(O.ELEMENT_WISE_ADD1, fused_activation=dml.ActivationSoftplusOperatorDesc(steepness=0.5))

    accepted(op)
    level = FeatureLevel.LEVEL_6_3
    refused(op, "OP_FIELD_RANGE", "FusedActivation.Steepness", 0.5, "1 or more", level=level)

    op = example(O.ELEMENT_WISE_ADD1, fused_activation=dml.ActivationEluOperatorDesc(alpha=None))
    refused(op, "OP_FIELD_RANGE", "FusedActivation.Alpha", "None", "a number that FLOAT can hold")


def without_tensors(inner: OperatorType) -> Any:
    return example(inner, input_tensor=None, output_tensor=None)
