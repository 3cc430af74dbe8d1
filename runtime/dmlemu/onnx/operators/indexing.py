"""Elements chosen by indices."""

from __future__ import annotations

import numpy as np

from ... import graph as g
from ...dml.enums import PaddingMode, TensorDataType
from ...graph import Expression
from ..calls import Call, Made, NotOnDevice, lowers
from ..tensors import fitted


@lowers("Gather")
def _gather(c: Call) -> Made:
    """In four dimensions: those before the axis, the axis, those behind."""
    shape, indices = c.shape(0), c.shape(1)
    axis = c.axis(0)
    before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    count = int(np.prod(indices))
    x = fitted(c.x(0), [1, before, shape[axis], after])
    made: Expression = g.gather(x, fitted(c.x(1), [1, 1, 1, count]), axis=2, index_dimensions=1)
    return Made(made, (*shape[:axis], *indices, *shape[axis + 1 :]))


def rows_of(table: Expression, indices: Expression) -> Expression:
    """Rows of a matrix, for each index one."""
    count = int(np.prod(indices.sizes))
    made: Expression = g.gather(
        fitted(table, (1, 1, *table.sizes)), fitted(indices, (1, 1, 1, count)), axis=2, index_dimensions=1
    )
    return fitted(made, (count, table.sizes[1]))


@lowers("GatherElements")
def _gather_elements(c: Call) -> Expression:
    axis = c.axis(0)
    part = _part(c.x(0), c.shape(1), axis)
    made: Expression = g.gather_elements(part, c.x(1), axis=axis)
    return made


def _part(x: Expression, indices: tuple[int, ...], axis: int) -> Expression:
    """The elements that indices of a smaller shape choose from."""
    sizes = [x.sizes[axis] if i == axis else size for i, size in enumerate(indices)]
    if x.sizes == tuple(sizes):
        return x
    zeros, ones = [0] * x.rank, [1] * x.rank
    made: Expression = g.slice1(
        x, input_window_offsets=zeros, input_window_sizes=sizes, input_window_strides=ones
    )
    return made


@lowers("GatherND")
def _gather_nd(c: Call) -> Made:
    shape, indices, batch = c.shape(0), c.shape(1), c.attribute("batch_dims", 0)
    out = (*indices[:-1], *shape[batch + indices[-1] :])
    rank = max(len(shape), len(indices), len(out))
    made: Expression = g.gather_nd1(
        fitted(c.x(0), _padded(shape, rank)),
        fitted(c.x(1), _padded(indices, rank)),
        input_dimension_count=len(shape),
        indices_dimension_count=len(indices),
        batch_dimension_count=batch,
        output_sizes=_padded(out, rank),
    )
    return Made(made, out)


def _padded(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + shape


@lowers("ScatterElements", "Scatter")
def _scatter_elements(c: Call) -> Expression:
    if c.attribute("reduction", "none") != "none":
        raise NotOnDevice(f"SCATTER replaces elements, and the reduction is {c.attribute('reduction')}")
    axis, x = c.axis(0), c.x(0)
    part = _part(x, c.shape(1), axis)
    made: Expression = g.scatter_elements(part, c.x(1), c.x(2), axis=axis)
    return made if part is x else _replaced(x, made)


def _replaced(x: Expression, part: Expression) -> Expression:
    """``x`` with its first elements in each dimension replaced."""
    ends = [size - each for size, each in zip(x.sizes, part.sizes, strict=True)]
    padded = g.padding1(
        part,
        padding_mode=PaddingMode.CONSTANT,
        padding_value=0,
        start_padding=[0] * x.rank,
        end_padding=ends,
    )
    is_part = np.zeros(x.sizes, np.uint8)
    is_part[tuple(slice(size) for size in part.sizes)] = 1
    made: Expression = g.element_wise_if(x.graph.constant(is_part), padded, x)
    return made


@lowers("ScatterND")
def _scatter_nd(c: Call) -> Made:
    if c.attribute("reduction", "none") != "none":
        raise NotOnDevice(f"SCATTER_ND replaces elements, and the reduction is {c.attribute('reduction')}")
    shapes = [c.shape(number) for number in range(3)]
    rank = max(map(len, shapes))
    x, indices, updates = (fitted(c.x(number), _padded(shapes[number], rank)) for number in range(3))
    made: Expression = g.scatter_nd(
        x,
        indices,
        updates,
        input_dimension_count=len(shapes[0]),
        indices_dimension_count=len(shapes[1]),
    )
    return Made(made, shapes[0])


@lowers("OneHot")
def _one_hot(c: Call) -> Made:
    depth = int(np.ravel(c.value(1))[0])
    rank = c.rank() + 1
    axis = c.positive(c.attribute("axis", -1), rank)
    shape = (*c.shape()[:axis], 1, *c.shape()[axis:])
    indices = c.x(0)
    if np.dtype(indices.dtype).kind == "f":
        indices = g.cast(indices, output_data_type=TensorDataType.INT32)
    values = fitted(c.x(2), [1] * (rank - 1) + [2])
    made: Expression = g.one_hot(fitted(indices, shape), values, axis=axis, output_length=depth)
    return Made(made, (*shape[:axis], depth, *shape[axis + 1 :]))
