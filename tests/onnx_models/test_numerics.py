"""Results where ONNX's specification is silent, as DirectML has them and as implementations of ONNX do."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from models import INF, NAN, Array, check_node, f16, f32, i8, i32, i64, model, node, u8
from onnx import TensorProto as T
from oracles import Case, compare, oracles

from dmlemu.graph import packed, random_layouts
from dmlemu.onnx import InferenceSession


class Row(NamedTuple):
    """A node; ``as_directml`` and ``as_onnx``: its outputs; ``says``: what describe says of the former.

    ``agreed``: both oracles compute what is expected as ONNX's.
    """

    op: str
    inputs: list[Any]
    as_directml: list[Array]
    as_onnx: list[Array]
    says: str
    attributes: Mapping[str, Any] = MappingProxyType({})
    opset: int = 21
    agreed: bool = True


NO_NUMBER, NEAREST = "a NaN counts as no number", "numbers out of range are cast to the nearest of the type"


def cast(x: Array, as_directml: list[int], as_onnx: list[int], dtype: Any, agreed: bool = True) -> Row:
    to = int(onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    results = [[np.array(each, dtype)] for each in (as_directml, as_onnx)]
    return Row("Cast", [x], *results, NEAREST, {"to": to}, agreed=agreed)


FLOATS = f32(NAN, INF, -INF, 300, -1.5, 3e9, -3e9, 1e10, 1.9)
M31, M63, LEAST = 2**31, 2**63, np.finfo(np.float32).min

ROWS = [
    Row("Max", [f32(NAN, 1, 0), f32(2, NAN, 3)], [f32(2, 1, 3)], [f32(NAN, NAN, 3)], NO_NUMBER),
    Row("Max", [f16(NAN, 1), f16(2, 0), f16(3, NAN)], [f16(3, 1)], [f16(NAN, NAN)], NO_NUMBER),
    Row("Min", [f32(NAN, 1, 0), f32(2, NAN, 3)], [f32(2, 1, 0)], [f32(NAN, NAN, 0)], NO_NUMBER),
    Row("Clip", [f32(NAN, 5), np.float32(-1), np.float32(4)], [f32(-1, 4)], [f32(NAN, 4)], NO_NUMBER),
    Row("Clip", [f32(NAN, 5), None, np.float32(4)], [f32(4, 4)], [f32(NAN, 4)], NO_NUMBER),
    Row("Clip", [f32(NAN, 5)], [f32(-1, 4)], [f32(NAN, 4)], NO_NUMBER, {"min": -1.0, "max": 4.0}, 6),
    # A bound that is NaN is none for DirectML and ONNX Runtime; the onnx package makes NaN of all.
    Row("Clip", [f32(NAN, 5), np.float32(NAN)], [f32(LEAST, 5)], [f32(NAN, 5)], NO_NUMBER, agreed=False),
    Row("Relu", [f32(NAN, -1, 2)], [f32(0, 0, 2)], [f32(NAN, 0, 2)], NO_NUMBER),
    Row("Sign", [f32(NAN, -2)], [f32(0, -1)], [f32(NAN, -1)], NO_NUMBER),
    Row("HardSigmoid", [f32(NAN, INF)], [f32(1, 1)], [f32(NAN, 1)], NO_NUMBER),
    Row("Celu", [f32(NAN, 2)], [f32(0, 2)], [f32(NAN, 2)], NO_NUMBER),
    # ONNX Runtime finds a NaN that is the first element alone.
    Row(
        "ReduceMax",
        [f32([1, NAN, 2], [NAN, 1, 2], [1, 2, 3]), i64(1)],
        [f32([2], [2], [3])],
        [f32([NAN], [NAN], [3])],
        NO_NUMBER,
        agreed=False,
    ),
    Row("ReduceMin", [f16(3, NAN, 2), i64(0)], [f16(2)], [f16(NAN)], NO_NUMBER, agreed=False),
    Row(
        "ArgMax",
        [f32([1, 0, NAN], [NAN, 1, NAN], [1, 3, 3])],
        [i64([0], [1], [1])],
        [i64([2], [0], [1])],
        NO_NUMBER,
        {"axis": 1},
        agreed=False,
    ),
    Row(
        "ArgMin",
        [f16([1, 0, NAN], [NAN, 1, NAN], [3, 1, 1])],
        [i64([1], [1], [2])],
        [i64([2], [2], [2])],
        NO_NUMBER,
        {"axis": 1, "select_last_index": 1},
        agreed=False,
    ),
    Row("TopK", [f32(1, NAN, 3, -INF), i64(2)], [f32(3, 1), i64(2, 0)], [f32(NAN, 3), i64(1, 2)], NO_NUMBER),
    Row(
        "TopK",
        [f32([1, NAN, INF, -2, -3], [0.5, -0.0, 0, -1, -1.5]), i64(3)],
        [f32([-3, -2, 1], [-1.5, -1, 0]), i64([4, 3, 0], [4, 3, 1])],
        [f32([-3, -2, 1], [-1.5, -1, 0]), i64([4, 3, 0], [4, 3, 1])],
        NO_NUMBER,
        {"largest": 0},
    ),
    Row(
        "TopK",
        [f16(1, NAN, -3), i64(2)],
        [f16(1, -3), i64(0, 2)],
        [f16(NAN, 1), i64(1, 0)],
        NO_NUMBER,
        agreed=False,
    ),
    cast(FLOATS, [0, 127, -128, 127, -1, 127, -128, 127, 1], [0, 0, 0, 44, -1, 0, 0, 0, 1], np.int8),
    cast(FLOATS, [0, 255, 0, 255, 0, 255, 0, 255, 1], [0, 0, 0, 44, 255, 0, 0, 0, 1], np.uint8),
    cast(
        FLOATS,
        [0, M31 - 1, -M31, 300, -1, M31 - 1, -M31, M31 - 1, 1],
        [-M31, -M31, -M31, 300, -1, -M31, -M31, -M31, 1],
        np.int32,
    ),
    cast(
        FLOATS,
        [0, 2 * M31 - 1, 0, 300, 0, 3 * 10**9, 0, 2 * M31 - 1, 1],
        [M31, 0, M31, 300, 2 * M31 - 1, 3 * 10**9, M31, 0, 1],
        np.uint32,
    ),
    cast(
        FLOATS,
        [0, M63 - 1, -M63, 300, -1, 3 * 10**9, -3 * 10**9, 10**10, 1],
        [-M63, -M63, -M63, 300, -1, 3 * 10**9, -3 * 10**9, 10**10, 1],
        np.int64,
    ),
    cast(
        FLOATS,
        [0, 2 * M63 - 1, 0, 300, 0, 3 * 10**9, 0, 10**10, 1],
        [M63, 0, M63, 300, 2 * M63 - 1, 3 * 10**9, 2 * M63 - 3 * 10**9, 10**10, 1],
        np.uint64,
    ),
    cast(f16(NAN, 60000, -1.5), [0, 32767, -1], [0, -5536, -1], np.int16),
    cast(f16(NAN, INF, 60000, -1.5), [0, 65535, 60000, 0], [0, 0, 60000, 65535], np.uint16),
    cast(f16(NAN, INF, 60000, -1.5), [0, 2 * M31 - 1, 60000, 0], [0, 0, 60000, 2 * M31 - 1], np.uint32),
    Row("CastLike", [f32(300), np.int8(0)], [i8(127)], [i8(44)], NEAREST),
    Row(
        "QuantizeLinear",
        [f32(NAN, -INF, 5), np.float32(1), np.int8(3)],
        [i8(3, -128, 8)],
        [i8(-128, -128, 8)],
        "a NaN becomes the zero point",
        agreed=False,  # the onnx package's result depends on the zero point
    ),
    Row(
        "QuantizeLinear", [f32(NAN, 5), np.float32(1)], [u8(0, 5)], [u8(0, 5)], "the zero point", agreed=False
    ),
    Row(
        "QuantizeLinear",
        [f32(NAN, 5), np.float32(1), np.int16(3)],
        [np.array([0, 8], np.int16)],
        [np.array([-32768, 8], np.int16)],
        "or 0 of 16 bits",
        agreed=False,
    ),
    # ONNX Runtime has no linear Resize of bytes.
    Row(
        "Resize",
        [u8(0, 255, 3, 4), None, f32(2)],
        [u8(0, 63, 191, 192, 66, 3, 3, 4)],
        [u8(0, 64, 191, 192, 66, 3, 4, 4)],
        "loses its fraction",
        {"mode": "linear"},
        agreed=False,
    ),
]


def _title(row: Row) -> str:
    return f"{row.op}-{row.inputs[0].dtype}-{row.as_onnx[0].dtype}"


@pytest.mark.parametrize("policy", [packed, random_layouts(5)], ids=["packed", "random"])
@pytest.mark.parametrize("row", ROWS, ids=_title)
def test_results_are_directmls_or_onnxs(row: Row, policy: Any) -> None:
    options = {"opset": row.opset, "policy": policy, **row.attributes}
    session = check_node(row.op, row.inputs, *row.as_directml, **options)
    assert f"as DirectML: {row.op}: " in session.describe() and row.says in session.describe()
    session = check_node(row.op, row.inputs, *row.as_onnx, numerics="onnx", **options)
    assert "as DirectML" not in session.describe()


@pytest.mark.parametrize("row", [each for each in ROWS if each.agreed], ids=_title)
def test_onnxs_results_are_those_of_both_oracles(row: Row) -> None:
    case = Case(row.op, row.inputs, dict(row.attributes), row.opset, outputs=len(row.as_onnx))
    expected = oracles(case)
    assert len(expected) == 2
    compare(case, row.as_onnx, expected)


BOTH = ("directml", "onnx")
"""Where oracles disagree, or all agree, results do not depend on it."""


@pytest.mark.parametrize("numerics", BOTH)
def test_whole_numbers_wrap(numerics: str) -> None:
    most, options = np.iinfo(np.int32).max, {"numerics": numerics}
    check_node("Add", [i32(most), i32(1)], i32(-most - 1), **options)
    check_node("ReduceSum", [i32(most, 1)], i32([-most - 1]).reshape(1), **options)
    check_node("ReduceSum", [i64(2**53, 1)], i64(2**53 + 1), **options)
    check_node("CumSum", [i32(most, 1), np.int64(0)], i32(most, -most - 1), **options)
    check_node("Pow", [i32(46341), i32(2)], i32(-2147479015), **options)
    check_node("Pow", [i32(3), f32(2.7)], i32(19), **options)
    check_node("Cast", [i32(300, -129)], i8(44, 127), to=T.INT8, **options)


@pytest.mark.parametrize("numerics", BOTH)
def test_of_infinities_and_nothing(numerics: str) -> None:
    options: dict[str, Any] = {"numerics": numerics}
    check_node("Hardmax", [f32([NAN, 1, 2])], f32([0, 0, 1]), **options)
    check_node("ReduceLogSumExp", [f32(-INF, -INF), i64(0)], f32(-INF), opset=18, **options)
    check_node("ReduceMean", [f16(60000, 60000, 60000, 60000), i64(0)], f16(60000), opset=18, **options)
    check_node("Mod", [f32(1, -1), f32(0, 3)], f32(NAN, -1), fmod=1, **options)
    check_node("QuantizeLinear", [f32(INF, -INF), np.float32(1), np.int8(3)], i8(127, -128), **options)
    of_zeros = [u8(0, 0), np.float32(1 / 255), np.uint8(0)]
    check_node("DynamicQuantizeLinear", [f32(0, 0)], *of_zeros, **options)
    one = f32(1)
    flat = [f32([[1, 2]]).reshape(2, 1), one, f32(0), f32(1), f32(0)]
    check_node("BatchNormalization", flat, f32([NAN], [INF]), epsilon=0.0, opset=15, **options)


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
@pytest.mark.parametrize("numerics", BOTH)
def test_an_index_that_is_out_of_range_is_moved_to_the_last(numerics: str) -> None:
    check_node("Gather", [f32(1, 2, 3), i64(3, 1)], f32(3, 2), numerics=numerics)


def test_known_numbers_are_computed_by_the_onnx_package() -> None:
    made = model([node("Max", ["a", "b"], "y")], [], [("y", T.FLOAT, [1])], {"a": f32(NAN), "b": f32(1)})
    assert np.isnan(InferenceSession(made).run(None, {})[0]).all()


def test_nodes_with_the_same_difference_are_one_line() -> None:
    nodes = [node("Relu", ["x"], "r"), node("Relu", ["r"], "s"), node("Clip", ["s"], "y")]
    session = InferenceSession(model(nodes[:2], [("x", T.FLOAT, [3])], [("s", T.FLOAT, [3])]))
    session.run(None, {"x": f32(1, 2, 3)})
    assert session.describe().splitlines()[-1] == f"as DirectML: Relu x2: {NO_NUMBER}"


def test_other_numerics_are_refused() -> None:
    made = model([node("Relu", ["x"], "y")], [("x", T.FLOAT, [3])], [("y", T.FLOAT, [3])])
    with pytest.raises(ValueError, match=r"numerics \('exact'\) must be 'directml' or 'onnx'"):
        InferenceSession(made, numerics="exact")
