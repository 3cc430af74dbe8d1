"""MATRIX_MULTIPLY_INTEGER, MATRIX_MULTIPLY_INTEGER_TO_FLOAT and QUANTIZED_LINEAR_MATRIX_MULTIPLY."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import accepted, refused, tensor
from harness import compare, given
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, tensors, values

from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.testing import operator_descs

BYTES = [T.INT8, T.UINT8]


def run(cls: Any, types: dict[str, T], output: T, **given: Any) -> Array:
    """Inputs as nested lists, by their names without ``_tensor``; all of the types given for the beginning
    of the name."""
    inputs = {}
    for name, value in given.items():
        kind = next((types[each] for each in (name, name[0]) if each in types), T.FLOAT32)
        inputs[f"{name}_tensor"] = np.array(value, dtype_of(kind))
    a, b = inputs["a_tensor"], inputs["b_tensor"]
    descs = {
        name: tensor(next(t for t in T if t and dtype_of(t) == array.dtype), *array.shape)
        for name, array in inputs.items()
    }
    op = cls(**descs, output_tensor=tensor(output, *a.shape[:-1], b.shape[-1]))
    return compare(op, inputs)["output_tensor"]


def integer(a: Any, b: Any, kinds: tuple[T, T] = (T.UINT8, T.INT8), **more: Any) -> Array:
    types = {"a": kinds[0], "b": kinds[1]}
    return run(dml.MatrixMultiplyIntegerOperatorDesc, types, T.INT32, a=a, b=b, **more)


def test_zero_points_of_rows_and_columns() -> None:
    a, b = [[1, 2], [3, 4]], [[1, 0], [10, 1]]

    assert integer(a, b).tolist() == [[21, 2], [43, 4]]
    assert integer(a, b, a_zero_point=[[1], [3]]).tolist() == [[10, 1], [10, 1]]
    assert integer(a, b, b_zero_point=[[1, -1]]).tolist() == [[18, 5], [36, 11]]
    both = integer(a, b, a_zero_point=[[1], [3]], b_zero_point=[[1, -1]])
    assert both.tolist() == [[9, 2], [9, 2]]


def test_a_parameter_of_one_dimension() -> None:
    """Of A it is one for each row, of B one for each column."""
    found = integer([[1, 2], [3, 4]], [[1], [10]], a_zero_point=[1, 3], b_zero_point=[1])
    assert found.tolist() == [[9], [9]]


@pytest.mark.parametrize("kinds", [(a, b) for a in BYTES for b in BYTES], ids=str)
def test_every_mix_of_types_at_its_limits(kinds: tuple[T, T]) -> None:
    limits = {T.INT8: (-128, 127), T.UINT8: (0, 255)}
    for a in limits[kinds[0]]:
        for b in limits[kinds[1]]:
            assert integer([[a] * 5], [[b]] * 5, kinds).tolist() == [[5 * a * b]]


@pytest.mark.parametrize("zeros", [(1, 400), (9, 1), (9, 400)], ids=str)
def test_products_deeper_than_a_cache(zeros: tuple[int, int]) -> None:
    """Columns are divided into lines, the last of which is shorter."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 256, (9, 2001)), rng.integers(-128, 128, (2001, 400))
    of_a, of_b = rng.integers(0, 256, (zeros[0], 1)), rng.integers(-128, 128, (1, zeros[1]))

    integer(a, b, a_zero_point=of_a, b_zero_point=of_b)
    integer(b.T, a.T, (T.INT8, T.UINT8), a_zero_point=of_b.T, b_zero_point=of_a.T)


@pytest.mark.parametrize("kind", BYTES, ids=str)
@pytest.mark.parametrize("most", [3, 64, 66, 127], ids=str)
def test_b_that_is_owned(kind: T, most: int) -> None:
    """It is stored column after column; pairs of products of its bytes fit 16 bits, or do not."""
    random = np.random.default_rng(most)
    a = random.choice([0, 255], (2, 9, 70)).astype(np.uint8)
    b = random.choice([0, most] if kind is T.UINT8 else [-most, most], (2, 70, 50)).astype(dtype_of(kind))
    owned = dml.BufferTensorDesc(kind, list(b.shape), flags=dml.TensorFlags.OWNED_BY_DML)
    op = dml.MatrixMultiplyIntegerOperatorDesc(
        a_tensor=tensor(T.UINT8, *a.shape), b_tensor=owned, output_tensor=tensor(T.INT32, 2, 9, 50)
    )

    compare(op, {"a_tensor": a, "b_tensor": b})


@pytest.mark.parametrize("kinds", [(a, b) for a in BYTES for b in BYTES], ids=str)
@pytest.mark.parametrize("batch", [(), (2,), (60, 1)], ids=str)
@pytest.mark.parametrize("zeros", [("a",), ("a", "b"), ("b",), ()], ids=str)
def test_b_that_is_owned_with_zero_points(
    kinds: tuple[T, T], batch: tuple[int, ...], zeros: tuple[str, ...]
) -> None:
    """The sums of its columns are kept beside it."""
    random, limits = np.random.default_rng(len(batch)), {T.INT8: (-128, 128), T.UINT8: (0, 256)}
    types = dict(zip("ab", kinds, strict=True))
    shapes = {"a_tensor": (*batch, 9, 70), "b_tensor": (*batch, 70, 50)}
    shapes |= {f"{each}_zero_point_tensor": (1,) * (len(batch) + 2) for each in zeros}
    inputs = {
        name: random.integers(*limits[types[name[0]]], shape).astype(dtype_of(types[name[0]]))
        for name, shape in shapes.items()
    }
    descs = {name: tensor(types[name[0]], *shape) for name, shape in shapes.items()}
    descs["b_tensor"] = dml.BufferTensorDesc(
        types["b"], list(shapes["b_tensor"]), flags=dml.TensorFlags.OWNED_BY_DML
    )
    op = dml.MatrixMultiplyIntegerOperatorDesc(**descs, output_tensor=tensor(T.INT32, *batch, 9, 50))

    compare(op, inputs)


@pytest.mark.parametrize("kinds", [(a, b) for a in BYTES for b in BYTES], ids=str)
def test_few_rows(kinds: tuple[T, T]) -> None:
    """More columns than a piece, and no multiple of the rows that are read together."""
    rng, limits = np.random.default_rng(2), {T.INT8: (-128, 128), T.UINT8: (0, 256)}

    def some(kind: T, *sizes: int) -> Array:
        return rng.integers(*limits[kind], sizes)

    for rows in (1, 3, 4):
        a, b = some(kinds[0], rows, 13), some(kinds[1], 13, 2050)
        integer(a, b, kinds)
        integer(a, b, kinds, a_zero_point=some(kinds[0], rows, 1), b_zero_point=some(kinds[1], 1, 2050))


def to_float(a: Any, b: Any, kind: T = T.INT8, number: T = T.FLOAT32, **more: Any) -> Array:
    types = dict.fromkeys(("a", "a_zero_point", "b", "b_zero_point"), kind)
    types |= dict.fromkeys(("a_scale", "b_scale", "bias"), number)
    more = {"a_scale": [[1]], "b_scale": [[1]], **more}
    return run(dml.MatrixMultiplyIntegerToFloatOperatorDesc, types, number, a=a, b=b, **more)


def test_scaled_to_a_float() -> None:
    found = to_float([[1, 2], [3, 4]], [[5], [6]], a_scale=[[0.5], [2]], b_scale=[[10]], bias=[[1], [-1]])
    assert found.tolist() == [[86], [779]]


def test_wide_integers_do_not_wrap() -> None:
    assert to_float([[-(2**15)] * 4], [[-(2**15)]] * 4, T.INT16).tolist() == [[2.0**32]]
    most = 2**32 - 1
    assert to_float([[most] * 4], [[most]] * 4, T.UINT32).tolist() == [[2.0**66]]
    low = to_float([[-(2**31)]], [[-(2**31)]], T.INT32, a_zero_point=[[2**31 - 1]], b_zero_point=[[0]])
    assert low.tolist() == [[2.0**63]]


def test_float16_is_rounded_once() -> None:
    assert to_float([[100] * 10], [[100]] * 10, number=T.FLOAT16, bias=[[-40000]]).tolist() == [[60000]]


def quantized(a: Any, b: Any, output: T = T.UINT8, **more: Any) -> Array:
    types = {"a": T.UINT8, "b": T.INT8, "output_zero_point": output}
    types |= dict.fromkeys(("a_scale", "b_scale", "output_scale"), T.FLOAT32)
    more = {"a_scale": [[1]], "b_scale": [[1]], "output_scale": [[1]], **more}
    return run(dml.QuantizedLinearMatrixMultiplyOperatorDesc, types, output, a=a, b=b, **more)


def test_quantized_halves_are_rounded_to_even_and_saturated() -> None:
    a, b = [[1], [3], [5], [200]], [[1, -1]]

    found = quantized(a, b, output_scale=[[2]])
    assert found.tolist() == [[0, 0], [2, 0], [2, 0], [100, 0]]
    found = quantized(a, b, T.INT8, output_scale=[[2], [2], [1], [1]], output_zero_point=[[0], [0], [1], [2]])
    assert found.tolist() == [[0, 0], [2, -2], [6, -4], [127, -128]]


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    kinds = [OperatorType.MATRIX_MULTIPLY_INTEGER, OperatorType.MATRIX_MULTIPLY_INTEGER_TO_FLOAT]
    kinds.append(OperatorType.QUANTIZED_LINEAR_MATRIX_MULTIPLY)
    op: Any = data.draw(operator_descs(data.draw(st.sampled_from(kinds))))
    inputs = {}
    for name in (each for each in vars(op) if each.endswith("_tensor") and each != "output_tensor"):
        desc = getattr(op, name)
        if desc is not None:
            kinds_of = ["small", "moderate"] if "scale" in name or name == "bias_tensor" else []
            inputs[name] = filled(desc, data.draw(values(*kinds_of)))[1]
    compare(op, inputs)


@given(st.data())
def test_larger_products(data: st.DataObject) -> None:
    """Several blocks of the tuned kernel."""
    kinds = data.draw(st.sampled_from(BYTES)), data.draw(st.sampled_from(BYTES))
    m, n, k = (data.draw(st.sampled_from([1, 3, 16, 33, 70])) for _ in range(3))
    batch = data.draw(st.lists(st.integers(1, 2), max_size=2))
    descs = {
        "a_tensor": data.draw(tensors(kinds[0], [*batch, m, k])),
        "b_tensor": data.draw(tensors(kinds[1], [*batch, k, n])),
    }
    if data.draw(st.booleans()):
        descs["a_zero_point_tensor"] = data.draw(tensors(kinds[0], [data.draw(st.sampled_from([1, m])), 1]))
    if data.draw(st.booleans()):
        descs["b_zero_point_tensor"] = data.draw(tensors(kinds[1], [1, data.draw(st.sampled_from([1, n]))]))
    op = dml.MatrixMultiplyIntegerOperatorDesc(
        **descs, output_tensor=data.draw(tensors(T.INT32, [*batch, m, n], output=True))
    )
    compare(op, {name: filled(each, data.draw(values()))[1] for name, each in descs.items()})


# --- rules ---


def test_parameters_follow_rows_or_columns() -> None:
    def op(sizes: list[int]) -> Any:
        return dml.MatrixMultiplyIntegerOperatorDesc(
            a_tensor=tensor(T.INT8, 3, 5),
            a_zero_point_tensor=tensor(T.INT8, *sizes),
            b_tensor=tensor(T.INT8, 5, 4),
            output_tensor=tensor(T.INT32, 3, 4),
        )

    for sizes in ([1], [3], [3, 1], [1, 1, 3, 1]):
        accepted(op(sizes))
    refused(op([1, 3]), "OP_SHAPE", "AZeroPointTensor.Sizes[0]", 1, 3)
    refused(op([4, 1]), "OP_SHAPE", "AZeroPointTensor.Sizes[0]", 4, 3)
