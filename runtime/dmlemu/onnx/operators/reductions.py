"""Sums and the like along axes, indices of extremes, running sums."""

from __future__ import annotations

import numpy as np

from ... import graph as g
from ...dml.enums import AxisDirection, ReduceFunction, TensorDataType
from ...graph import Expression, broadcast, reinterpret
from ..calls import NO_NUMBER, Call, NotOnDevice, lowers
from ..tensors import fitted

_FUNCTIONS = {
    "ReduceL1": ReduceFunction.L1,
    "ReduceL2": ReduceFunction.L2,
    "ReduceLogSum": ReduceFunction.LOG_SUM,
    "ReduceLogSumExp": ReduceFunction.LOG_SUM_EXP,
    "ReduceMax": ReduceFunction.MAX,
    "ReduceMean": ReduceFunction.AVERAGE,
    "ReduceMin": ReduceFunction.MIN,
    "ReduceProd": ReduceFunction.MULTIPLY,
    "ReduceSum": ReduceFunction.SUM,
    "ReduceSumSquare": ReduceFunction.SUM_SQUARE,
}


def reduced(x: Expression, function: ReduceFunction, axes: list[int]) -> Expression:
    """Extremes of small integers by way of INT32: REDUCE has no smaller type for them."""
    wide = TensorDataType.INT32
    small = x.data_type in (
        TensorDataType.UINT8,
        TensorDataType.INT8,
        TensorDataType.UINT16,
        TensorDataType.INT16,
    )
    if small and function in (ReduceFunction.MAX, ReduceFunction.MIN):
        made: Expression = g.reduce(
            g.cast(x, output_data_type=wide), function=function, axes=axes, output_data_type=wide
        )
        return g.cast(made, output_data_type=x.data_type)  # type: ignore[no-any-return]
    if function is ReduceFunction.AVERAGE and np.dtype(x.dtype).kind in "iu":
        return _whole_mean(x, axes)
    made = g.reduce(x, function=function, axes=axes, output_data_type=x.data_type)
    return made


def _whole_mean(x: Expression, axes: list[int]) -> Expression:
    """The mean of whole numbers, cut toward 0, which REDUCE does not have."""
    wide = TensorDataType.UINT64 if np.dtype(x.dtype).kind == "u" else TensorDataType.INT64
    total = g.reduce(
        g.cast(x, output_data_type=wide), function=ReduceFunction.SUM, axes=axes, output_data_type=wide
    )
    count = np.full([1] * x.rank, np.prod([x.sizes[axis] for axis in axes], dtype=np.int64), total.dtype)
    mean = total / broadcast(x.graph.constant(count), total.sizes)
    made: Expression = g.cast(mean, output_data_type=x.data_type)
    return made


@lowers(*_FUNCTIONS)
def _reduce(c: Call) -> Expression:
    x, rank = c.x(), c.rank()
    axes = c.numbers(1, "axes")
    if not axes and not c.attribute("noop_with_empty_axes", 0):
        axes = list(range(rank))
    axes = [c.positive(axis, rank) for axis in axes or ()] if rank else [0]
    kept = dict.fromkeys(axes, 1)
    shape = tuple(kept.get(axis, size) for axis, size in enumerate(c.shape()))
    made = reduced(x, _FUNCTIONS[c.op], axes)
    if c.op in ("ReduceMax", "ReduceMin") and _is_float(x) and c.wants_onnx(NO_NUMBER):
        has_nan = reduced(g.element_wise_is_nan(x), ReduceFunction.MAX, axes)
        made = g.element_wise_if(has_nan, c.scalar(np.nan, made), made)
    if not c.attribute("keepdims", 1):
        shape = tuple(size for axis, size in enumerate(c.shape()) if axis not in kept)
    return fitted(made, shape)


def _is_float(x: Expression) -> bool:
    return np.dtype(x.dtype).kind == "f"


@lowers("ArgMax", "ArgMin")
def _arg(c: Call) -> Expression:
    x, axis = c.x(), c.axis(0)
    last = c.attribute("select_last_index", 0)
    fields = {
        "axes": [axis],
        "axis_direction": AxisDirection.DECREASING if last else AxisDirection.INCREASING,
        "output_data_type": TensorDataType.INT64,
    }
    made: Expression = (g.argmax if c.op == "ArgMax" else g.argmin)(x, **fields)
    if _is_float(x) and c.wants_onnx(NO_NUMBER):
        is_nan = g.element_wise_is_nan(x)
        first = g.argmax(g.cast(is_nan, output_data_type=TensorDataType.INT32), **fields)
        made = g.element_wise_if(reduced(is_nan, ReduceFunction.MAX, [axis]), first, made)
    return made


@lowers("CumSum", "CumProd")
def _running(c: Call) -> Expression:
    axis = c.positive(int(np.ravel(c.value(1))[0]), c.rank())
    direction = AxisDirection.DECREASING if c.attribute("reverse", 0) else AxisDirection.INCREASING
    exclusive = bool(c.attribute("exclusive", 0))
    if c.op == "CumSum":
        made: Expression = g.cumulative_summation(
            c.x(), axis=axis, axis_direction=direction, has_exclusive_sum=exclusive
        )
        return made
    made = g.cumulative_product(c.x(), axis=axis, axis_direction=direction, has_exclusive_product=exclusive)
    return made


@lowers("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(c: Call) -> Expression:
    function = ReduceFunction.AVERAGE if c.op == "GlobalAveragePool" else ReduceFunction.MAX
    made: Expression = g.reduce(
        c.x(), function=function, axes=list(range(2, c.rank())), output_data_type=c.x().data_type
    )
    return made


@lowers("TopK")
def _top_k(c: Call) -> tuple[Expression, Expression]:
    k = c.attribute("k") if c.opset < 10 else int(np.ravel(c.value(1))[0])
    axis = c.axis(-1)
    if not 0 < k <= c.shape()[axis]:
        raise NotOnDevice(f"TopK of {k} of {c.shape()[axis]} elements")
    largest = c.attribute("largest", 1)
    fields = {
        "axis": axis,
        "k": k,
        "axis_direction": AxisDirection.DECREASING if largest else AxisDirection.INCREASING,
    }
    x = c.x()
    if _is_float(x) and c.wants_onnx(NO_NUMBER):
        places = g.top_k1(_ordered(c, x), **fields)[1]
        return g.gather_elements(x, places, axis=axis), g.cast(places, output_data_type=TensorDataType.INT64)
    made = g.top_k1(x, **fields)
    return made[0], g.cast(made[1], output_data_type=TensorDataType.INT64)


def _ordered(c: Call, x: Expression) -> Expression:
    """Whole numbers in the order of floats, NaN behind infinity: their bits, inverted if negative."""
    zero = c.scalar(0, x)
    x = g.element_wise_if(g.element_wise_is_nan(x), c.scalar(np.nan, x), x + zero)  # one NaN, one zero
    x = g.cast(x, output_data_type=TensorDataType.FLOAT32) if np.dtype(x.dtype).itemsize == 2 else x
    bits = reinterpret(x, data_type=TensorDataType.INT32)
    words = reinterpret(bits, data_type=TensorDataType.UINT32)
    flipped = g.element_wise_bit_xor(words, c.scalar(0x7FFFFFFF, words))
    is_negative = g.element_wise_logical_less_than(bits, c.scalar(0, bits))
    made: Expression = g.element_wise_if(
        is_negative, reinterpret(flipped, data_type=TensorDataType.INT32), bits
    )
    return made
