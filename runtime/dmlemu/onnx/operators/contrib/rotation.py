"""Rotary position embeddings."""

from __future__ import annotations

import numpy as np

from .... import graph as g
from ....dml.enums import TensorDataType
from ....graph import Expression, transpose
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ...tensors import fitted
from ..indexing import rows_of


def rotated(x: Expression, angles: tuple[Expression, Expression], *, interleaved: bool) -> Expression:
    """``x``: (batch, length, heads, size); ``angles``: cosines and sines, (batch, length, 1, half a size).

    The pairs that are turned are neighbours if they are interleaved, otherwise of two halves; what is behind
    twice the angles stays.
    """
    half = angles[0].sizes[3]
    rest = x.sizes[3] - 2 * half
    turned, *kept = g.split(x, axis=3, output_axis_sizes=[2 * half, rest]) if rest else [x]
    sizes = (*x.sizes[:3], half)
    if interleaved:
        pairs = g.split(fitted(turned, (*sizes, 2)), axis=4, output_axis_sizes=[1, 1])
        a, b = (fitted(each, sizes) for each in pairs)
    else:
        a, b = g.split(turned, axis=3, output_axis_sizes=[half, half])
    cos, sin = (repeated(each, sizes) for each in angles)
    parts = [a * cos - b * sin, a * sin + b * cos]
    if interleaved:
        made = fitted(g.join([fitted(each, (*sizes, 1)) for each in parts], axis=4), turned.sizes)
        parts = [made]
    made = g.join([*parts, *kept], axis=3) if len(parts) + len(kept) > 1 else parts[0]
    return made


def angles_at(
    c: Call, caches: tuple[int, int], positions: Expression, batch: int, length: int
) -> tuple[Expression, Expression]:
    """Rows of the inputs that are the cosines and the sines of all positions."""
    cos, sin = (
        fitted(rows_of(c.x(number), positions), (batch, length, 1, c.shape(number)[1])) for number in caches
    )
    return cos, sin


@lowers("RotaryEmbedding", domain=MICROSOFT)
def _rotary_embedding(c: Call) -> Made:
    if c.attribute("is_packed_batching", 0):
        raise NotOnDevice("RotaryEmbedding of packed batches")
    shape, heads = c.shape(), c.attribute("num_heads", 0)
    if len(shape) == 4:
        x = transpose(c.x(), [0, 2, 1, 3])
    else:
        size = shape[2] // heads if heads else 2 * c.shape(2)[1]
        x = fitted(c.x(), (*shape[:2], shape[2] // size, size))
    batch, length = x.sizes[:2]
    angles = angles_at(c, (2, 3), _positions(c, batch, length), batch, length)
    made = rotated(x, angles, interleaved=bool(c.attribute("interleaved", 0)))
    return Made(transpose(made, [0, 2, 1, 3]) if len(shape) == 4 else made, shape)


def _positions(c: Call, batch: int, length: int) -> Expression:
    """Of each element; one number is that of the first."""
    if c.rank(1) == 2:
        return repeated(c.x(1), (batch, length))
    steps = repeated(c.constant(np.arange(length), dtype=np.int64), (batch, length))
    made: Expression = repeated(c.x(1), (batch, length)) + steps
    assert made.data_type is TensorDataType.INT64
    return made
