"""The activations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from activations import ACTIVATIONS, activation
from examples import EXAMPLES, accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, shapes, tensors, values

from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T

O = OperatorType  # noqa: E741
NAN, INF = float("nan"), float("inf")
E = float(np.exp(1))
each_activation = pytest.mark.parametrize("kind", ACTIVATIONS, ids=lambda kind: kind.name)


def run(kind: OperatorType, numbers: list[float], data_type: T = T.FLOAT32, **parameters: Any) -> Array:
    x = tensor(data_type, len(numbers))
    op = example(kind, input_tensor=x, output_tensor=x, **parameters)
    found: Array = compare(op, {"input_tensor": np.array(numbers, dtype_of(data_type))})["output_tensor"]
    return found


@pytest.mark.parametrize(
    ("kind", "parameters", "x", "y"),
    [
        (O.ACTIVATION_CELU, {"alpha": 2}, [3, -2, 0], [3, 2 / E - 2, 0]),
        (O.ACTIVATION_ELU, {"alpha": 2}, [3, -1, -INF], [3, 2 / E - 2, -2]),
        (O.ACTIVATION_GELU, {}, [1, -1, 0, 100], [0.8413447, -0.1586553, 0, 100]),
        (O.ACTIVATION_HARD_SIGMOID, {"alpha": 0.5, "beta": 0.25}, [1, -9, 9], [0.75, 0, 1]),
        (O.ACTIVATION_IDENTITY, {}, [1, -2, INF], [1, -2, INF]),
        (O.ACTIVATION_LEAKY_RELU, {"alpha": 0.5}, [4, -4, 0], [4, -2, 0]),
        (O.ACTIVATION_LINEAR, {"alpha": 3, "beta": -1}, [2, -2], [5, -7]),
        (O.ACTIVATION_PARAMETRIC_SOFTPLUS, {"alpha": 2, "beta": 1}, [0, 1000], [2 * np.log(2), 2000]),
        (O.ACTIVATION_RELU, {}, [2, -2, -0.0, INF, -INF], [2, 0, 0, INF, 0]),
        (O.ACTIVATION_SCALED_ELU, {"alpha": 2, "gamma": 3}, [4, 0, -1], [12, 0, 6 / E - 6]),
        (O.ACTIVATION_SCALED_TANH, {"alpha": 2, "beta": 0.5}, [0, 2, 99], [0, 2 * np.tanh(1), 2]),
        (O.ACTIVATION_SHRINK, {"bias": 1, "threshold": 2}, [2, 2.5, -2, -2.5], [0, 1.5, 0, -1.5]),
        (O.ACTIVATION_SIGMOID, {}, [0, 1000, -1000], [0.5, 1, 0]),
        (O.ACTIVATION_SOFTPLUS, {"steepness": 2}, [0, 1000], [np.log(2) / 2, 1000]),
        (O.ACTIVATION_SOFTSIGN, {}, [1, -3], [0.5, -0.75]),
        (O.ACTIVATION_TANH, {}, [0, 1, 1000, -1000], [0, np.tanh(1), 1, -1]),
        (O.ACTIVATION_THRESHOLDED_RELU, {"alpha": 1}, [1, 1.5, -3], [0, 1.5, 0]),
    ],
    ids=lambda value: value.name if isinstance(value, OperatorType) else "",
)
def test_what_each_computes(kind: OperatorType, parameters: Any, x: list[float], y: list[float]) -> None:
    np.testing.assert_allclose(run(kind, x, **parameters), y, rtol=1e-6)


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        (O.ACTIVATION_RELU, 0),
        (O.ACTIVATION_THRESHOLDED_RELU, 0),
        (O.ACTIVATION_SHRINK, 0),
        (O.ACTIVATION_HARD_SIGMOID, 1),
        (O.ACTIVATION_CELU, 0),
        (O.ACTIVATION_ELU, NAN),
        (O.ACTIVATION_TANH, NAN),
        (O.ACTIVATION_SOFTPLUS, NAN),
        (O.ACTIVATION_GELU, NAN),
    ],
)
def test_nan(kind: OperatorType, result: float) -> None:
    """Comparisons with NaN are false, min and max take the number, arithmetic propagates."""
    np.testing.assert_equal(run(kind, [NAN]).tolist(), [result])


def test_softsign_of_infinity_is_nan_by_the_formula() -> None:
    assert np.isnan(run(O.ACTIVATION_SOFTSIGN, [INF, -INF])).all()


def test_integers() -> None:
    assert run(O.ACTIVATION_RELU, [-128, -1, 127], T.INT8).tolist() == [0, 0, 127]
    assert run(O.ACTIVATION_SHRINK, [-2, -1, 1, 2], T.INT16, bias=1.0, threshold=1.5).tolist() == [
        -1,
        0,
        0,
        1,
    ]


def test_shrink_converts_bias_and_threshold_to_the_type_of_integers_first() -> None:
    def shrink(x: list[int], data_type: T, bias: float, threshold: float) -> list[int]:
        shrunk: list[int] = run(O.ACTIVATION_SHRINK, x, data_type, bias=bias, threshold=threshold).tolist()
        return shrunk

    assert shrink([-2, -1, 0, 1, 2], T.INT32, 0.9, 1.9) == [-2, 0, 0, 0, 2]  # 0 and 1
    assert shrink([0, 1, 9, 255], T.UINT8, 2.9, -5.0) == [0, 255, 7, 253]  # 2 and 0; 1 - 2 wraps
    assert shrink([-128, -127, 0, 127], T.INT8, 1.0, -1e9) == [-127, -128, -1, 126]  # the threshold: -128
    assert shrink([2**24 + 1, -(2**31)], T.INT32, 2.0**31, 0) == [2**24 + 1 - (2**31 - 1), -1]
    assert shrink([2**32 - 1, 1], T.UINT32, 1.0, 1e30) == [0, 0]


def test_identity_copies_bits() -> None:
    x = tensor(T.FLOAT32, 2)
    op = example(O.ACTIVATION_IDENTITY, input_tensor=x, output_tensor=x)

    compare(op, {"input_tensor": np.array([0x7F800001, 1], np.uint32).view(np.float32)}, bits=True)


@each_activation
@given(st.data(), examples=30)
def test_any_layout(kind: OperatorType, data: st.DataObject) -> None:
    types = EXAMPLES[kind].allowed(max(FeatureLevel))["input_tensor"].data_types
    data_type, sizes = data.draw(st.sampled_from(sorted(types))), data.draw(shapes())
    source = data.draw(tensors(data_type, sizes))
    op = data.draw(
        activation(kind, input_tensor=source, output_tensor=data.draw(tensors(data_type, sizes, output=True)))
    )

    _, x = filled(source, data.draw(values()))
    compare(op, {"input_tensor": x}, bits=kind is O.ACTIVATION_IDENTITY, offset=data.draw(offsets))


# --- rules ---


@pytest.mark.parametrize("name", ["input_tensor", "output_tensor"])
@each_activation
def test_tensors_are_required_outside_of_fusion(kind: OperatorType, name: str) -> None:
    c_name = {"input_tensor": "InputTensor", "output_tensor": "OutputTensor"}[name]

    report = refused(example(kind, **{name: None}), "OP_OPTIONAL", c_name, "none", "a tensor desc")
    assert report.hint == "only a fused activation leaves out its tensors"


def test_steepness_below_1_needs_6_4() -> None:
    op = example(O.ACTIVATION_SOFTPLUS, steepness=0.5)

    accepted(op, FeatureLevel.LEVEL_6_4)
    refused(op, "OP_FIELD_RANGE", "Steepness", 0.5, "1 or more", level=FeatureLevel.LEVEL_6_3)
