"""Expressions: what they know, Python's operators, views."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlemu
from dmlemu import dml
from dmlemu.graph import (
    Expression,
    Graph,
    broadcast,
    element_wise_identity,
    gemm,
    reinterpret,
    relu,
    transpose,
)

from .rebuilding import desc_of

T = dml.TensorDataType

A = np.float32([[1, -2, 3.5], [0.25, 8, -1]])
B = np.float32([[2], [-4]])
M = np.uint32([[1, 2, 3], [100, 200, 300]])
N = np.uint32([[7, 1, 2], [3, 4, 5]])


def test_an_expression_knows_its_tensor_and_its_line(graph: Graph) -> None:
    x = graph.input([2, 3], T.FLOAT16, name="x")
    y = relu(x, name="rectified")

    assert (y.sizes, y.data_type, y.strides, y.rank) == ((2, 3), T.FLOAT16, (3, 1), 2)
    assert (y.dtype, y.graph, y.name) == (np.float16, graph, "rectified")
    assert y.location.startswith("test_expressions.py:")
    assert y.node.sources == (x,)  # type: ignore[comparison-overlap]
    assert repr(y) == f"<Expression rectified at {y.location}: FLOAT16 [2, 3]>"
    assert repr(x).startswith("<Expression x at test_expressions.py:")


def test_an_expression_is_a_key_but_not_a_truth(graph: Graph) -> None:
    x, y = graph.input([2]), graph.input([2])

    assert {x: 1, y: 2}[x] == 1
    with pytest.raises(TypeError, match="has no truth value: it is a tensor"):
        bool(x == y)
    with pytest.raises(TypeError, match="cannot be iterated; split divides a tensor"):
        list(x)  # type: ignore[call-overload]


# --- Python's operators ---

FLOAT_OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]
WHOLE_OPERATORS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
Binary = Callable[[Any, Any], Any]


def same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    np.testing.assert_array_equal(found, expected.astype(found.dtype))


@pytest.mark.parametrize("run", FLOAT_OPERATORS, ids=lambda each: each.__name__)
def test_operators_of_floats(graph: Graph, run: Binary) -> None:
    a, b = graph.input([2, 3]), graph.input([2, 1])

    same(dmlemu.evaluate(run(a, b), {a: A, b: B}), run(A, B))
    same(dmlemu.evaluate(run(a, 2), {a: A}), run(A, np.float32(2)))
    same(dmlemu.evaluate(run(2, a), {a: A}), run(np.float32(2), A))
    same(dmlemu.evaluate(run(a, B), {a: A}), run(A, B))
    same(dmlemu.evaluate(run(B, a), {a: A}), run(B, A))


@pytest.mark.parametrize(
    "run", [*WHOLE_OPERATORS, operator.add, operator.mul, operator.mod], ids=lambda each: each.__name__
)
def test_operators_of_integers(graph: Graph, run: Binary) -> None:
    m, n = graph.input([2, 3], T.UINT32), graph.input([2, 3], T.UINT32)

    same(dmlemu.evaluate(run(m, n), {m: M, n: N}), run(M, N))
    same(dmlemu.evaluate(run(m, 3), {m: M}), run(M, np.uint32(3)))
    same(dmlemu.evaluate(run(3, m), {m: N}), run(np.uint32(3), N))


def test_powers_and_operators_of_one_tensor(graph: Graph) -> None:
    a, m = graph.input([2, 3]), graph.input([2, 3], T.UINT32)

    np.testing.assert_allclose(dmlemu.evaluate(abs(a) ** 2, {a: A}), np.abs(A) ** 2, rtol=1e-6)
    np.testing.assert_allclose(dmlemu.evaluate(2**a, {a: A}), 2**A, rtol=1e-6)
    same(dmlemu.evaluate(-a, {a: A}), -A)
    same(dmlemu.evaluate(abs(a), {a: A}), np.abs(A))
    same(dmlemu.evaluate(~m, {m: M}), ~M)


def test_a_product_of_matrices_repeats_the_dimensions_before(graph: Graph) -> None:
    a, b = graph.input([2, 1, 2, 3]), graph.input([3, 4])
    x, y = np.arange(12, dtype=np.float32).reshape(2, 1, 2, 3), np.arange(12, dtype=np.float32).reshape(3, 4)

    same(dmlemu.evaluate(a @ b, {a: x, b: y}), x @ y)


def test_a_number_is_scale_or_bias_where_floats_are_computed(graph: Graph) -> None:
    x = graph.input([2])

    assert desc_of(x + 3).scale_bias == dml.ScaleBias(1.0, 3.0)  # type: ignore[attr-defined]
    assert desc_of(3 - x).scale_bias == dml.ScaleBias(-1.0, 3.0)  # type: ignore[attr-defined]
    assert desc_of(x / 4).scale_bias == dml.ScaleBias(0.25, -0.0)  # type: ignore[attr-defined]
    assert desc_of(x / 3).TYPE is dml.OperatorType.ELEMENT_WISE_DIVIDE  # 1 / 3 would be rounded
    assert desc_of(3 / x).TYPE is dml.OperatorType.ELEMENT_WISE_DIVIDE
    assert desc_of(graph.input([2], T.FLOAT64) + 0.5).TYPE is dml.OperatorType.ELEMENT_WISE_IDENTITY
    with pytest.raises(dmlemu.Error, match=r"FLOAT64.*not allowed for DML_OPERATOR_ELEMENT_WISE_ADD"):
        graph.input([2], T.FLOAT64) + 0.1  # which FLOAT does not have
    assert desc_of(graph.input([2], T.INT32) + 3).TYPE is dml.OperatorType.ELEMENT_WISE_ADD


def test_a_scale_keeps_the_sign_of_zeros(graph: Graph) -> None:
    x = graph.input([2])
    assert np.signbit(dmlemu.evaluate(x * 2, {x: np.float32([0.0, -0.0])})).tolist() == [False, True]


def test_a_number_that_the_type_does_not_have(graph: Graph) -> None:
    for number in (1.5, 256, -1):
        with pytest.raises(ValueError, match=r"has values that UINT8, the type of .*, does not have"):
            graph.input([2], T.UINT8) + number


def test_what_cannot_be_an_operand(graph: Graph) -> None:
    for other in ("1", None, [1], True):
        with pytest.raises(TypeError, match="unsupported operand"):
            graph.input([2]) + other
    with pytest.raises(TypeError, match="does not support ufuncs"):
        graph.input([2]) + np.zeros(2, complex)
    with pytest.raises(ValueError, match=r"have sizes that cannot be matched"):
        graph.input([2]) + graph.input([3])


def test_operands_of_python_operators_are_broadcast_by_views(graph: Graph) -> None:
    a, b = graph.input([2, 3]), graph.input([3])

    desc: Any = desc_of(a + b)
    assert desc.b_tensor.sizes == (2, 3)
    assert desc.b_tensor.strides == (0, 1)
    assert desc.b_tensor.size_in_bytes == 12
    assert len(graph.compile(a + b).operator.calls) == 1


def test_an_old_level_negates_by_a_scale(graph: Graph) -> None:
    level = dml.FeatureLevel.LEVEL_3_0
    old = Graph(dml.create_device(graph.device.get_parent_device(), feature_level=level))
    x = old.input([1, 1, 1, 3], name="x")
    assert dmlemu.evaluate(-x, x=A[None, None, :1]).ravel().tolist() == [-1, 2, -3.5]


# --- views ---


def test_views_run_nothing(graph: Graph) -> None:
    x = graph.input([2, 3], name="x")
    y = element_wise_identity(x)

    assert dmlemu.evaluate(reinterpret(y, [6]), x=A).tolist() == A.ravel().tolist()
    assert dmlemu.evaluate(reinterpret(y, [3, 2], [1, 3]), x=A).tolist() == A.T.tolist()
    assert dmlemu.evaluate(reinterpret(y, data_type=T.INT32), x=A).tolist() == A.view(np.int32).tolist()
    assert dmlemu.evaluate(transpose(y), x=A).tolist() == A.T.tolist()
    assert dmlemu.evaluate(broadcast(y, [2, 2, 3]), x=A).tolist() == [A.tolist()] * 2
    assert transpose(y).node is y.node
    assert broadcast(y, [2, 3]) is y


def test_operators_read_views(graph: Graph) -> None:
    x, w = graph.input([2, 3], name="x"), graph.input([2, 4], name="w")
    y = np.arange(8, dtype=np.float32).reshape(2, 4)

    made = dmlemu.evaluate(gemm(transpose(x), w), x=A, w=y)
    np.testing.assert_array_equal(made, A.T @ y)


def test_a_view_of_a_view(graph: Graph) -> None:
    x = graph.input([2, 3, 4], name="x")
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    turned = transpose(transpose(x, [2, 0, 1]), [1, 2, 0])

    same(dmlemu.evaluate(turned * 1, x=array), array)
    assert reinterpret(x, [2, 12]).sizes == (2, 12)
    assert reinterpret(turned, [24]).sizes == (24,)


def test_what_is_no_view(graph: Graph) -> None:
    x = graph.input([2, 3], name="x")

    with pytest.raises(ValueError, match=r"has 28 bytes, .* only 24"):
        reinterpret(x, [7])
    with pytest.raises(ValueError, match=r"has strides \[1, 3\]: its bytes are not those of a packed tensor"):
        reinterpret(transpose(x), [6])
    with pytest.raises(ValueError, match=r"cannot be repeated to sizes \[2, 4\]"):
        broadcast(x, [2, 4])
    with pytest.raises(ValueError, match=r"cannot be repeated to sizes \[3\]"):
        broadcast(x, [3])
    with pytest.raises(ValueError, match="does not name each dimension"):
        transpose(x, [0, 0])


@given(st.data())
def test_broadcasting_is_numpys(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    shapes = [
        [data.draw(st.sampled_from([1, size])) for size in sizes[data.draw(st.integers(0, len(sizes) - 1)) :]]
        for _ in range(2)
    ]
    arrays = [np.arange(np.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes]
    graph = Graph(DEVICE)
    a, b = (graph.input(shape) for shape in shapes)

    both: Expression = a - b
    assert both.sizes == np.broadcast_shapes(*shapes)
    same(dmlemu.evaluate(both, {a: arrays[0], b: arrays[1]}), arrays[0] - arrays[1])


DEVICE = dml.create_device(dmlemu.d3d12.create_device(dmlemu.d3d12.Adapter()))  # the default one stays free


def test_views_refuse_what_is_no_tensor_and_no_sequence(graph: Graph) -> None:
    x = graph.input([2, 3])

    for view in (reinterpret, transpose, broadcast):
        with pytest.raises(TypeError, match="x must be an Expression, not ndarray"):
            view(np.zeros((2, 3), np.float32), [2, 3])
    with pytest.raises(TypeError, match="sizes must be a sequence of integers, not 6"):
        reinterpret(x, 6)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="strides must be a sequence of integers, not 1"):
        reinterpret(x, [6], 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="sizes must be a sequence of integers, not 3"):
        broadcast(x, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="order must be a sequence of integers, not 1"):
        transpose(x, 1)  # type: ignore[arg-type]
