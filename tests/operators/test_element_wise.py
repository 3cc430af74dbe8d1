"""What all element-wise operators have in common, by their definitions: one more is tested here, too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from activations import ACTIVATIONS
from examples import EXAMPLES, accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import dtype_of, filled, shapes, tensors, values

from dmlemu import dml
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.definition import definition_class
from dmlemu.dml.declared.schema import camel
from dmlemu.dml.operators.families.element_wise import ElementWise
from dmlemu_hw import kernels

O = OperatorType  # noqa: E741
NAN, INF = float("nan"), float("inf")

FAMILIES = [
    (kind, definition)
    for kind in EXAMPLES
    if (definition := definition_class(kind)) is not None and issubclass(definition, ElementWise)
]
each_operator = pytest.mark.parametrize(
    ("kind", "definition"), FAMILIES, ids=lambda each: each.name if isinstance(each, OperatorType) else ""
)


@each_operator
def test_its_kernel_has_its_name(kind: OperatorType, definition: type[ElementWise]) -> None:
    """The disassembler tells operators apart by it."""
    assert kernels.family(definition.KERNEL) == "element_wise"
    assert definition.KERNEL in kind.name.lower()


PI = np.pi
MAX32 = float(np.float32(3.4028235e38))


@pytest.mark.parametrize(
    ("kind", "inputs", "expected"),
    [
        (O.ELEMENT_WISE_ABS, [[-3, 3, -0.0, -INF]], [3, 3, 0, INF]),
        (O.ELEMENT_WISE_ACOS, [[1, 0, -1, 2]], [0, PI / 2, PI, NAN]),
        (O.ELEMENT_WISE_ACOSH, [[1, np.cosh(2), INF, 0.5]], [0, 2, INF, NAN]),
        (O.ELEMENT_WISE_ASIN, [[1, -0.0, -0.5, -2]], [PI / 2, -0.0, -PI / 6, NAN]),
        (O.ELEMENT_WISE_ASINH, [[-np.sinh(3), -0.0, -INF]], [-3, -0.0, -INF]),
        (O.ELEMENT_WISE_ATAN, [[1, -0.0, -INF]], [PI / 4, -0.0, -PI / 2]),
        (
            O.ELEMENT_WISE_ATAN_YX,
            [[1, -0.0, 0, -1, INF], [1, -1, 2, 0, INF]],
            PI * np.array([0.25, -1, 0, -0.5, 0.25]),
        ),
        (O.ELEMENT_WISE_ATAN_YX, [[NAN, -0.0, 0.0], [1, 0, -0.0]], [NAN, -0.0, PI]),
        (O.ELEMENT_WISE_ATANH, [[0.5, 1, -1, -0.0, 2]], [np.log(3) / 2, INF, -INF, -0.0, NAN]),
        (O.ELEMENT_WISE_BIT_AND, [[6, 255], [3, 256]], [2, 0]),
        (O.ELEMENT_WISE_BIT_NOT, [[0, 1]], [2**32 - 1, 2**32 - 2]),
        (O.ELEMENT_WISE_BIT_OR, [[6, 255], [3, 256]], [7, 511]),
        (O.ELEMENT_WISE_BIT_SHIFT_LEFT, [[1, 3, 1, 1], [4, 31, 32, 33]], [16, 2**31, 1, 2]),
        (O.ELEMENT_WISE_BIT_SHIFT_RIGHT, [[16, 2**32 - 1, 5, 5], [4, 31, 32, 33]], [1, 1, 5, 2]),
        (O.ELEMENT_WISE_BIT_XOR, [[6, 255], [3, 255]], [5, 0]),
        (O.ELEMENT_WISE_CEIL, [[1.25, -0.5, -1.5, INF]], [2, -0.0, -1, INF]),
        (O.ELEMENT_WISE_CLIP_GRAD, [[-1, 1, 0, NAN, 5], [7, 7, 7, 7, 7]], [0, 0, 7, 7, 0]),
        (O.ELEMENT_WISE_CLIP_GRAD1, [[-1, 1, 0, NAN, 5], [7, 7, 7, 7, 7]], [0, 0, 7, 7, 0]),
        (O.ELEMENT_WISE_CONSTANT_POW, [[4, 0, INF, -4]], [8, 0, INF, NAN]),
        (O.ELEMENT_WISE_COS, [[0, PI, 1e30, INF]], [1, -1, np.cos(float(np.float32(1e30))), NAN]),
        (O.ELEMENT_WISE_COSH, [[0, -2, -INF]], [1, np.cosh(2), INF]),
        (O.ELEMENT_WISE_DIFFERENCE_SQUARE, [[1, 4, 1], [4, 1, -INF]], [9, 9, INF]),
        (O.ELEMENT_WISE_DIVIDE, [[1, -1, 0, 7], [0, 0, 0, 2]], [INF, -INF, NAN, 3.5]),
        (O.ELEMENT_WISE_ERF, [[0.5, -0.0, INF, -9]], [0.5204998778130465, -0.0, 1, -1]),
        (O.ELEMENT_WISE_EXP, [[0, 1, -INF, 89]], [1, np.e, 0, INF]),
        (O.ELEMENT_WISE_FLOOR, [[1.25, -0.5, -0.0, -INF]], [1, -1, -0.0, -INF]),
        (O.ELEMENT_WISE_IF, [[0, 1, 255], [1, 2, 3], [4, 5, 6]], [4, 2, 3]),
        (O.ELEMENT_WISE_IS_INFINITY, [[INF, -INF, NAN, MAX32]], [1, 1, 0, 0]),
        (O.ELEMENT_WISE_IS_NAN, [[INF, NAN, -NAN, 0]], [0, 1, 1, 0]),
        (O.ELEMENT_WISE_LOG, [[1, np.e, 0, -0.0, -1, INF]], [0, 1, -INF, -INF, NAN, INF]),
        (O.ELEMENT_WISE_LOGICAL_AND, [[0, 0, 2, 2], [0, 2, 0, 1]], [0, 0, 0, 1]),
        (O.ELEMENT_WISE_LOGICAL_EQUALS, [[1, NAN, -0.0, INF], [2, NAN, 0, INF]], [0, 0, 1, 1]),
        (O.ELEMENT_WISE_LOGICAL_GREATER_THAN, [[1, 2, 3, NAN], [2, 2, 2, 2]], [0, 0, 1, 0]),
        (O.ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL, [[1, 2, 3, NAN], [2, 2, 2, 2]], [0, 1, 1, 0]),
        (O.ELEMENT_WISE_LOGICAL_LESS_THAN, [[1, 2, 3, NAN], [2, 2, 2, 2]], [1, 0, 0, 0]),
        (O.ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL, [[1, 2, 3, NAN], [2, 2, 2, 2]], [1, 1, 0, 0]),
        (O.ELEMENT_WISE_LOGICAL_NOT, [[0, 1, 2, 256]], [1, 0, 0, 0]),
        (O.ELEMENT_WISE_LOGICAL_OR, [[0, 0, 2, 2], [0, 2, 0, 1]], [0, 1, 1, 1]),
        (O.ELEMENT_WISE_LOGICAL_XOR, [[0, 0, 2, 2], [0, 2, 0, 1]], [0, 1, 1, 0]),
        (
            O.ELEMENT_WISE_MAX,
            [[1, NAN, 1, -0.0, 0.0, NAN], [2, 1, NAN, 0.0, -0.0, NAN]],
            [2, 1, 1, 0, 0, NAN],
        ),
        (O.ELEMENT_WISE_MEAN, [[1, MAX32, -1], [2, MAX32, 1]], [1.5, MAX32, 0]),
        (
            O.ELEMENT_WISE_MIN,
            [[1, NAN, 1, -0.0, 0.0, NAN], [2, 1, NAN, 0.0, -0.0, NAN]],
            [1, 1, 1, -0.0, -0.0, NAN],
        ),
        (
            O.ELEMENT_WISE_MODULUS_FLOOR,
            [[-4.3, 7.2, 5, -1, 1, -6, 0.0, 3], [2.1, -3.4, 8, INF, -INF, 3, -2, 0]],
            [
                *np.mod(np.float32([-4.3, 7.2]), np.float32([2.1, -3.4])),
                *[5, INF, -INF, 0.0, -0.0, NAN],
            ],
        ),
        (
            O.ELEMENT_WISE_MODULUS_TRUNCATE,
            [[-7, 7, 5, -1, INF, -6, 1e30, 3], [3, -3, 8, INF, 2, 3, 7, 0]],
            [-1, 1, 5, -1, NAN, -0.0, float(int(np.float32(1e30)) % 7), NAN],
        ),
        (O.ELEMENT_WISE_MULTIPLY, [[3, -0.0, INF], [0.5, 5, 0]], [1.5, -0.0, NAN]),
        (O.ELEMENT_WISE_NEGATE, [[1, 0.0, -INF]], [-1, -0.0, INF]),
        (
            O.ELEMENT_WISE_POW,
            [[2, -2, -2, 0, NAN, -8, 0], [0.5, 3, 0.5, 0, 0, -1, -1]],
            [2**0.5, -8, NAN, 1, 1, -0.125, INF],
        ),
        (O.ELEMENT_WISE_RECIP, [[4, -0.0, INF]], [0.25, -INF, 0]),
        (
            O.ELEMENT_WISE_ROUND,
            [[1.25, 2.5, -2.5, 0.49999997, -0.25, INF, NAN, 8388609]],
            [1, 3, -3, 0, -0.0, INF, NAN, 8388609],
        ),
        (O.ELEMENT_WISE_SIGN, [[5, -0.5, -0.0, NAN, -INF]], [1, -1, 0, 0, -1]),
        (O.ELEMENT_WISE_SIN, [[PI / 2, -0.0, 1e30, INF]], [1, -0.0, np.sin(float(np.float32(1e30))), NAN]),
        (O.ELEMENT_WISE_SINH, [[-2, -0.0, -INF]], [-np.sinh(2), -0.0, -INF]),
        (O.ELEMENT_WISE_SQRT, [[4, -0.0, 2, INF, -1]], [2, -0.0, 2**0.5, INF, NAN]),
        (O.ELEMENT_WISE_SUBTRACT, [[3, 0.0, INF], [0.5, 0.0, INF]], [2.5, 0, NAN]),
        (O.ELEMENT_WISE_TAN, [[PI / 4, -0.0, 1e30, INF]], [1, -0.0, np.tan(float(np.float32(1e30))), NAN]),
        (O.ELEMENT_WISE_TANH, [[1, -0.0, -99]], [np.tanh(1), -0.0, -1]),
        (O.ELEMENT_WISE_THRESHOLD, [[0.25, 3, NAN, -INF]], [0.5, 3, 0.5, 0.5]),
        (O.ACTIVATION_HARD_SWISH, [[4, -4, 1, NAN, -INF]], [4, -0.0, 0.75, NAN, NAN]),
        (O.ACTIVATION_PARAMETERIZED_RELU, [[4, -4, -0.0, NAN], [9, 0.5, 9, 9]], [4, -2, -0.0, NAN]),
        (O.ACTIVATION_RELU_GRAD, [[1, 0, -1, NAN, 2], [7, 7, NAN, 7, INF]], [7, 0, 0, 0, INF]),
        (O.ACTIVATION_SWISH, [[2, 0, -INF, INF]], [2 / (1 + np.exp(-3)), 0, NAN, INF]),
    ],
    ids=lambda each: each.name if isinstance(each, OperatorType) else "",
)
def test_what_each_computes(kind: OperatorType, inputs: list[list[float]], expected: list[float]) -> None:
    """By hand; zeros by their sign, too."""
    definition = definition_class(kind)
    assert definition is not None and issubclass(definition, ElementWise)
    sizes = (1, 1, 1, len(expected))
    fields = {
        name: getattr(EXAMPLES[kind], name).data_type for name in [*definition.INPUTS, definition.OUTPUT]
    }
    op = example(kind, **{name: tensor(data_type, *sizes) for name, data_type in fields.items()})
    arrays = {
        name: np.array(numbers, dtype_of(fields[name])).reshape(sizes)
        for name, numbers in zip(definition.INPUTS, inputs, strict=True)
    }

    found = compare(op, arrays)[definition.OUTPUT].ravel()

    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()


@pytest.mark.parametrize("mode", dml.RoundingMode, ids=lambda mode: mode.name)
def test_roundings_keep_the_sign_of_zero(mode: dml.RoundingMode) -> None:
    x = tensor(T.FLOAT32, 5)
    op = example(O.ELEMENT_WISE_ROUND, input_tensor=x, output_tensor=x, rounding_mode=mode)

    found = compare(op, {"input_tensor": np.float32([-0.0, -0.25, 0.25, -1.0, -INF])}, bits=True)

    assert found["output_tensor"].tolist() == [0, 0, 0, -1, -INF]
    assert np.signbit(found["output_tensor"]).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("kind", [O.ELEMENT_WISE_MAX, O.ELEMENT_WISE_MIN], ids=lambda kind: kind.name)
def test_extremes_of_zeros_do_not_depend_on_their_order(kind: OperatorType) -> None:
    x = tensor(T.FLOAT16, 4)
    op = example(kind, a_tensor=x, b_tensor=x, output_tensor=x)
    a, b = np.float16([0.0, -0.0, 0.0, -0.0]), np.float16([0.0, 0.0, -0.0, -0.0])

    found = compare(op, {"a_tensor": a, "b_tensor": b}, bits=True)["output_tensor"]

    mixed = kind is O.ELEMENT_WISE_MIN
    assert np.signbit(found).tolist() == [False, mixed, mixed, True]


def test_a_power_of_a_half_is_no_square_root() -> None:
    x = tensor(T.FLOAT32, 4)
    op = example(O.ELEMENT_WISE_CONSTANT_POW, input_tensor=x, output_tensor=x, exponent=0.5)

    found = compare(op, {"input_tensor": np.float32([-INF, -0.0, 4, INF])}, bits=True)["output_tensor"]

    assert found.tolist() == [INF, 0, 2, INF] and not np.signbit(found[1])


SPECIAL_APART = [
    *(O.ELEMENT_WISE_EXP, O.ELEMENT_WISE_LOG, O.ELEMENT_WISE_SINH, O.ELEMENT_WISE_COSH),
    *(O.ELEMENT_WISE_ASINH, O.ELEMENT_WISE_ACOSH, O.ELEMENT_WISE_ATANH),
    *(O.ELEMENT_WISE_SIN, O.ELEMENT_WISE_COS, O.ELEMENT_WISE_TAN),
    *(O.ELEMENT_WISE_CONSTANT_POW, O.ELEMENT_WISE_POW, O.ACTIVATION_GELU, O.ACTIVATION_SWISH),
]


@pytest.mark.parametrize("kind", SPECIAL_APART, ids=lambda kind: kind.name)
def test_special_arguments_do_not_change_the_others(kind: OperatorType) -> None:
    """These functions have a short form for pieces of a row without special arguments."""
    easy = np.random.default_rng(1).uniform(1.01, 4, 1000).astype(np.float32)
    easy = easy / 5 if kind is O.ELEMENT_WISE_ATANH else easy
    mixed = easy.copy()
    at = np.arange(7, 1000, 141)  # some in each piece
    mixed[at] = [NAN, INF, -INF, 0, -0.0, 1e-40, MAX32, -2.5]
    other = np.float32(np.linspace(-3, 3, 1000))
    x = tensor(T.FLOAT32, 1000)

    def result(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        tensors_of = {"exponent_tensor": x} if kind is O.ELEMENT_WISE_POW else {}
        op = example(kind, input_tensor=x, output_tensor=x, **tensors_of)
        found = compare(op, {"input_tensor": values, **dict.fromkeys(tensors_of, other)})["output_tensor"]
        return found.view(np.uint32)

    differ = np.flatnonzero(result(easy) != result(mixed))

    assert set(differ) <= set(at) and len(differ) >= 5


@pytest.mark.parametrize("data_type", [T.FLOAT32, T.FLOAT16, T.INT32], ids=lambda each: each.name)
@pytest.mark.parametrize("exponent", [2.0, 3.0])
def test_squares_and_cubes(exponent: float, data_type: T) -> None:
    """They have rows of their own; NaN, infinities, zeros and denormals as of any exponent."""
    floats = data_type is not T.INT32
    special = [NAN, INF, -INF, -0.0, 1e-5, -1e-5, 1e30] if floats else [-1, 1290, 40000]
    with np.errstate(over="ignore"):
        x = np.array([0, 3, -7, 181, *special]).astype(dtype_of(data_type))
    shape = tensor(data_type, len(x))
    op = example(O.ELEMENT_WISE_CONSTANT_POW, input_tensor=shape, output_tensor=shape, exponent=exponent)

    found = compare(op, {"input_tensor": x})["output_tensor"]

    assert list(found[:3]) == [0, 3**exponent, (-7) ** exponent]


def test_every_operator_is_computed_by_hand() -> None:
    """Here or in a file of its own."""
    parameters = test_what_each_computes.pytestmark[0].args[1]  # type: ignore[attr-defined]
    by_hand = {kind for kind, _, _ in parameters}
    files = " ".join(path.stem.upper() for path in Path(__file__).parent.glob("test_*.py"))

    missing = [kind.name for kind, _ in FAMILIES if kind not in by_hand and kind not in ACTIVATIONS]
    assert [name for name in missing if name.rstrip("1") not in files] == []


def binary(kind: OperatorType, data_type: T, a: list[int], b: list[int]) -> list[int]:
    """What an operator gives of integers."""
    x = tensor(data_type, len(a))
    definition = definition_class(kind)
    assert definition is not None and issubclass(definition, ElementWise)
    op = example(kind, **dict.fromkeys([*definition.INPUTS, definition.OUTPUT], x))
    arrays = [np.array(each, dtype_of(data_type)) for each in (a, b)]
    found: list[int] = compare(op, dict(zip(definition.INPUTS, arrays, strict=True)))[
        definition.OUTPUT
    ].tolist()
    return found


@pytest.mark.parametrize("data_type", [T.INT8, T.INT16, T.INT32, T.INT64], ids=lambda each: each.name)
def test_integers_divide_toward_zero_and_never_trap(data_type: T) -> None:
    low = -(2 ** (8 * dtype_of(data_type).itemsize - 1))
    a, b = [7, -7, 7, -7, 5, low, low], [2, 2, -2, -2, 0, -1, 1]

    assert binary(O.ELEMENT_WISE_DIVIDE, data_type, a, b) == [3, -3, -3, 3, -1, low, low]
    assert binary(O.ELEMENT_WISE_MODULUS_TRUNCATE, data_type, a, b) == [1, -1, 1, -1, -1, 0, 0]
    assert binary(O.ELEMENT_WISE_MODULUS_FLOOR, data_type, a, b) == [1, 1, -1, -1, -1, 0, 0]


@pytest.mark.parametrize("data_type", [T.UINT8, T.UINT16, T.UINT32, T.UINT64], ids=lambda each: each.name)
def test_unsigned_division(data_type: T) -> None:
    high = int(np.iinfo(dtype_of(data_type)).max)
    a, b = [7, high, high, high, 5, high - 1], [2, high, 1, high - 1, 0, high]

    assert binary(O.ELEMENT_WISE_DIVIDE, data_type, a, b) == [3, 1, high, 1, high, 0]
    for modulus in (O.ELEMENT_WISE_MODULUS_TRUNCATE, O.ELEMENT_WISE_MODULUS_FLOOR):
        assert binary(modulus, data_type, a, b) == [1, 0, 0, 1, high, high - 1]


@pytest.mark.parametrize("data_type", [T.INT8, T.UINT8], ids=lambda each: each.name)
def test_every_quotient_of_bytes(data_type: T) -> None:
    """Vectors of integers are divided as floats."""
    limits = np.iinfo(dtype_of(data_type))
    numbers = range(limits.min, limits.max + 1)
    a, b = ([int(n) for n in each.ravel()] for each in np.meshgrid(numbers, numbers))

    for kind in (O.ELEMENT_WISE_DIVIDE, O.ELEMENT_WISE_MODULUS_TRUNCATE, O.ELEMENT_WISE_MODULUS_FLOOR):
        binary(kind, data_type, a, b)


@given(st.data(), examples=12)
def test_quotients_next_to_whole_numbers(data: st.DataObject) -> None:
    """Products and their neighbours, where the rounding of a float quotient would be seen."""
    data_type = data.draw(st.sampled_from([T.INT16, T.INT32, T.UINT16, T.UINT32, T.INT64, T.UINT64]))
    dtype, random = dtype_of(data_type), np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    high = int(np.iinfo(dtype).max)
    b = [int(high ** random.random()) for _ in range(500)]
    a = [
        min(high, max(0, each * int(random.integers(0, high // each + 1, dtype=np.uint64)) + i % 3 - 1))
        for i, each in enumerate(b)
    ]

    for kind in (O.ELEMENT_WISE_DIVIDE, O.ELEMENT_WISE_MODULUS_TRUNCATE, O.ELEMENT_WISE_MODULUS_FLOOR):
        binary(kind, data_type, a, b)


def test_integers_wrap() -> None:
    assert binary(O.ELEMENT_WISE_SUBTRACT, T.UINT8, [0, 5], [1, 3]) == [255, 2]
    assert binary(O.ELEMENT_WISE_MULTIPLY, T.INT8, [100, -128], [3, -1]) == [44, -128]
    assert binary(O.ELEMENT_WISE_MULTIPLY, T.UINT16, [65535], [65535]) == [1]
    assert binary(O.ELEMENT_WISE_DIFFERENCE_SQUARE, T.UINT32, [1], [4]) == [9]
    assert binary(O.ELEMENT_WISE_MEAN, T.UINT32, [2**32 - 1, 1], [2**32 - 1, 2]) == [2**32 - 1, 1]
    assert binary(O.ELEMENT_WISE_MEAN, T.INT32, [-1, -(2**31)], [-2, -(2**31)]) == [-1, -(2**31)]
    assert binary(O.ACTIVATION_PARAMETERIZED_RELU, T.INT8, [100, -100], [3, 3]) == [100, -44]
    assert binary(O.ELEMENT_WISE_MAX, T.INT64, [2**62 + 1], [2**62]) == [2**62 + 1]
    assert binary(O.ELEMENT_WISE_BIT_SHIFT_LEFT, T.UINT8, [1, 1, 255], [8, 32, 1]) == [0, 1, 254]
    assert binary(O.ELEMENT_WISE_BIT_SHIFT_RIGHT, T.UINT64, [2**63, 4], [63, 64]) == [1, 4]


@pytest.mark.parametrize("kind", [O.ELEMENT_WISE_ABS, O.ELEMENT_WISE_NEGATE], ids=lambda kind: kind.name)
def test_the_lowest_integer_stays(kind: OperatorType) -> None:
    x = tensor(T.INT16, 3)
    op = example(kind, input_tensor=x, output_tensor=x)

    found = compare(op, {"input_tensor": np.int16([-(2**15), 0, 2**15 - 1])})["output_tensor"].tolist()

    assert found == [-(2**15), 0, 2**15 - 1 if kind is O.ELEMENT_WISE_ABS else 1 - 2**15]


@pytest.mark.parametrize(
    ("kind", "bits"), [(O.ELEMENT_WISE_ABS, 0x7F812345), (O.ELEMENT_WISE_NEGATE, 0x7F812345)]
)
def test_only_the_sign_of_a_nan_changes(kind: OperatorType, bits: int) -> None:
    """Of a signalling NaN with a payload."""
    x = tensor(T.FLOAT32, 1)
    op = example(kind, input_tensor=x, output_tensor=x)

    found = compare(op, {"input_tensor": np.uint32([bits | 1 << 31]).view(np.float32)}, bits=True)

    assert found["output_tensor"].view(np.uint32).tolist() == [bits]


def test_abs_of_a_scaled_integer_is_that_of_the_converted_number() -> None:
    """-50 * 3 is no INT8: it wraps to 106, as MULTIPLY would give."""
    x = tensor(T.INT8, 2)
    op = dml.ElementWiseAbsOperatorDesc(input_tensor=x, output_tensor=x, scale_bias=dml.ScaleBias(3.0, 0.0))

    assert compare(op, {"input_tensor": np.int8([-50, 7])})["output_tensor"].tolist() == [106, 21]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (dml.RoundingMode.HALVES_TO_NEAREST_EVEN, [0, 2, 2, -2, -0.0, 8388609]),
        (dml.RoundingMode.TOWARD_ZERO, [0, 1, 2, -2, -0.0, 8388609]),
        (dml.RoundingMode.TOWARD_INFINITY, [1, 2, 3, -3, -0.0, 8388609]),
    ],
)
def test_rounding_modes(mode: dml.RoundingMode, expected: list[float]) -> None:
    x = tensor(T.FLOAT32, 6)
    op = dml.ElementWiseRoundOperatorDesc(input_tensor=x, output_tensor=x, rounding_mode=mode)

    found = compare(op, {"input_tensor": np.float32([0.5, 1.5, 2.5, -2.5, -0.3, 8388609])})["output_tensor"]

    assert found.tolist() == expected and np.signbit(found[4])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (dml.IsInfinityMode.EITHER, [1, 1, 0, 0]),
        (dml.IsInfinityMode.POSITIVE, [1, 0, 0, 0]),
        (dml.IsInfinityMode.NEGATIVE, [0, 1, 0, 0]),
    ],
)
@pytest.mark.parametrize("data_type", [T.FLOAT32, T.FLOAT16], ids=lambda each: each.name)
def test_which_infinity(data_type: T, mode: dml.IsInfinityMode, expected: list[int]) -> None:
    op = dml.ElementWiseIsInfinityOperatorDesc(
        input_tensor=tensor(data_type, 4), output_tensor=tensor(T.UINT8, 4), infinity_mode=mode
    )

    found = compare(op, {"input_tensor": np.array([INF, -INF, NAN, 65504], dtype_of(data_type))})

    assert found["output_tensor"].tolist() == expected


def power(x_type: T, x: list[float], exponent_type: T, exponent: list[float]) -> list[float]:
    op = dml.ElementWisePowOperatorDesc(
        input_tensor=tensor(x_type, len(x)),
        exponent_tensor=tensor(exponent_type, len(x)),
        output_tensor=tensor(x_type, len(x)),
    )
    inputs = {
        "input_tensor": np.array(x, dtype_of(x_type)),
        "exponent_tensor": np.array(exponent, dtype_of(exponent_type)),
    }
    found: list[float] = compare(op, inputs)["output_tensor"].tolist()
    return found


def test_integer_powers_are_exact_modulo_their_width() -> None:
    assert power(T.INT32, [3, -3, 7, 2], T.UINT8, [5, 5, 0, 200]) == [243, -243, 1, 0]
    assert power(T.UINT8, [3, 2, 255], T.INT8, [6, 8, 2]) == [729 % 256, 0, 1]
    assert power(T.INT32, [2, 1, -1, -1, 0, 0], T.INT32, [-1, -5, -3, -4, -1, 0]) == [0, 1, -1, 1, -1, 1]


def test_integers_to_the_power_of_floats() -> None:
    """Whole results are whole, others truncated and saturated."""
    assert power(T.INT32, [10, 9, 8, 2, -8], T.FLOAT32, [3, 0.5, -1, 1.5, 0.5]) == [1000, 3, 0, 2, 0]
    assert power(T.UINT8, [10, 243], T.FLOAT16, [3, 0.2]) == [255, int(243.0 ** float(np.float16(0.2)))]
    assert power(T.INT32, [2, 46340], T.FLOAT32, [31, 2]) == [2**31 - 1, 46340**2]


def test_floats_to_the_power_of_integers() -> None:
    assert power(T.FLOAT32, [0.5, -2, 0, NAN], T.INT32, [-2, 3, -1, 0]) == [4, -8, INF, 1]
    assert power(T.FLOAT16, [3, 2], T.UINT8, [2, 200]) == [9, INF]


@given(st.data(), examples=25)
def test_powers_of_any_types(data: st.DataObject) -> None:
    types = sorted(EXAMPLES[O.ELEMENT_WISE_POW].allowed(max(FeatureLevel))["input_tensor"].data_types)
    x_type, exponent_type = data.draw(st.sampled_from(types)), data.draw(st.sampled_from(types))
    sizes = data.draw(shapes())
    x, exponent = data.draw(tensors(x_type, sizes)), data.draw(tensors(exponent_type, sizes))
    op = dml.ElementWisePowOperatorDesc(
        input_tensor=x,
        exponent_tensor=exponent,
        output_tensor=data.draw(tensors(x_type, sizes, output=True)),
        scale_bias=data.draw(st.sampled_from([None, dml.ScaleBias(3.0, -1.0)])),
    )
    kinds = values("small", "extreme")
    compare(
        op,
        {
            "input_tensor": filled(x, data.draw(kinds))[1],
            "exponent_tensor": filled(exponent, data.draw(kinds))[1],
        },
        offset=data.draw(offsets),
    )


def test_POW_needs_one_type_below_3_0() -> None:
    x = tensor(T.FLOAT32, 1, 1, 1, 4)
    op = example(
        O.ELEMENT_WISE_POW, input_tensor=x, output_tensor=x, exponent_tensor=tensor(T.FLOAT16, 1, 1, 1, 4)
    )

    accepted(op)
    level = FeatureLevel.LEVEL_2_1
    refused(op, "TENSOR_DTYPE", "ExponentTensor.DataType", "FLOAT16", "FLOAT32", level=level)


def test_IF_copies_every_bit() -> None:
    x = tensor(T.FLOAT16, 2)
    op = dml.ElementWiseIfOperatorDesc(
        condition_tensor=tensor(T.UINT8, 2), a_tensor=x, b_tensor=x, output_tensor=x
    )
    a, b = (np.uint16(each).view(np.float16) for each in ([0x7C01, 0x8000], [0xFE55, 0x0001]))

    found = compare(op, {"condition_tensor": np.uint8([128, 0]), "a_tensor": a, "b_tensor": b}, bits=True)

    assert found["output_tensor"].view(np.uint16).tolist() == [0x7C01, 0x0001]


def test_bounds_of_CLIP_GRAD1_are_exact() -> None:
    """An INT64 bound does not pass through a float."""
    x = tensor(T.INT64, 3)
    low, high = (dml.ScalarUnion.of(T.INT64, each) for each in (2**62, 2**62 + 2))
    op = dml.ElementWiseClipGrad1OperatorDesc(
        input_tensor=x,
        input_gradient_tensor=x,
        output_gradient_tensor=x,
        min_max_data_type=T.INT64,
        min=low,
        max=high,
    )

    found = compare(
        op,
        {
            "input_tensor": np.int64([2**62, 2**62 + 1, 2**62 + 2]),
            "input_gradient_tensor": np.int64([7, 7, 7]),
        },
    )

    assert found["output_gradient_tensor"].tolist() == [0, 7, 0]


@each_operator
@given(st.data(), examples=6)
def test_any_layout(kind: OperatorType, definition: type[ElementWise], data: st.DataObject) -> None:
    compare_any_layout(kind, definition, data)


@pytest.mark.long
@each_operator
@given(st.data(), examples=60)
def test_many_layouts(kind: OperatorType, definition: type[ElementWise], data: st.DataObject) -> None:
    compare_any_layout(kind, definition, data)


def compare_any_layout(kind: OperatorType, definition: type[ElementWise], data: st.DataObject) -> None:
    allowed = EXAMPLES[kind].allowed(max(FeatureLevel))
    data_type = data.draw(st.sampled_from(sorted(allowed[definition.INPUTS[-1]].data_types)))
    if hasattr(EXAMPLES[kind], "min_max_data_type"):  # its values are of one type
        data_type = T.FLOAT32
    results = allowed[definition.OUTPUT].data_types
    result = data_type if data_type in results else data.draw(st.sampled_from(sorted(results)))
    sizes = data.draw(shapes())
    types = {name: T.UINT8 if name == "condition_tensor" else data_type for name in definition.INPUTS}
    descs = {name: data.draw(tensors(each, sizes)) for name, each in types.items()}
    fields: dict[str, Any] = {**descs, definition.OUTPUT: data.draw(tensors(result, sizes, output=True))}
    if hasattr(EXAMPLES[kind], "scale_bias"):
        fields["scale_bias"] = data.draw(st.sampled_from([None, dml.ScaleBias(-1.5, 0.25)]))
    op = example(kind, **fields)

    inputs = {name: filled(desc, data.draw(values()))[1] for name, desc in descs.items()}
    compare(op, inputs, offset=data.draw(offsets))


@each_operator
def test_ranks_and_sizes_are_equal(kind: OperatorType, definition: type[ElementWise]) -> None:
    name = definition.INPUTS[-1] if len(definition.INPUTS) > 1 else definition.OUTPUT
    data_type = getattr(EXAMPLES[kind], name).data_type

    op = example(kind, **{name: tensor(data_type, 1, 1, 2, 3, 4)})
    refused(op, "TENSOR_RANK", f"{camel(name)}.DimensionCount", 5, 4)
    op = example(kind, **{name: tensor(data_type, 1, 2, 3, 5)})
    refused(op, "OP_SHAPE", f"{camel(name)}.Sizes[3]", 5, 4)
