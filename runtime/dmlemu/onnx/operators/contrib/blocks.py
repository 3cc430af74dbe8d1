"""Matrices whose rows are quantized in blocks, and packed in bytes."""

from __future__ import annotations

import math

from .... import graph as g
from ....dml.enums import QuantizationType, TensorDataType
from ....graph import Expression, reinterpret
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ...tensors import copied, fitted
from ..indexing import rows_of


def from_blocks(
    c: Call, packed: Expression, scales: Expression, zero: Expression | None, bits: int
) -> Expression:
    """Whole blocks as floats, by DEQUANTIZE.  ``scales``: rows, and for each one its blocks.

    Zero points are packed, too, or floats; without them they are the middle of the range.
    """
    rows, blocks = scales.sizes
    x = _rows(packed, rows, math.prod(packed.sizes) * 8 // bits // rows, bits)
    if zero is None:
        made: Expression = g.dequantize(x, [scales], quantization_type=QuantizationType.SCALE)
        return made
    if zero.data_type is not TensorDataType.UINT8:
        return _from_float_zero_points(c, x, scales, fitted(zero, (rows, blocks)))
    zero = _rows(zero, rows, blocks, bits)
    made = g.dequantize(x, [scales, zero], quantization_type=QuantizationType.SCALE_ZERO_POINT)
    return made


def _rows(x: Expression, rows: int, columns: int, bits: int) -> Expression:
    """A matrix of unsigned numbers of 4 or 8 bits; a row begins with a byte."""
    if bits == 8:
        return fitted(x, (rows, columns))
    halves = 2 * math.prod(x.sizes)
    try:
        elements = reinterpret(x, (halves,), data_type=TensorDataType.UINT4)
    except ValueError:  # it is not packed
        elements = reinterpret(copied(x), (halves,), data_type=TensorDataType.UINT4)
    return reinterpret(elements, (rows, columns), (halves // rows, 1))


def _from_float_zero_points(c: Call, weights: Expression, scales: Expression, zero: Expression) -> Expression:
    """Zero points with fractions: DEQUANTIZE subtracts the middle of the range, the rest comes behind it."""
    (n, blocks), size = scales.sizes, weights.sizes[1]
    middle = 8.0 if weights.data_type is TensorDataType.UINT4 else 128.0
    one = fitted(c.constant(1, scales), (1, 1))
    whole = g.dequantize(weights, [one], quantization_type=QuantizationType.SCALE)
    whole = fitted(whole, (n, blocks, size // blocks))
    zero, scales = (repeated(fitted(each, (n, blocks, 1)), whole.sizes) for each in (zero - middle, scales))
    return fitted((whole - zero) * scales, (n, size))


@lowers("GatherBlockQuantized", domain=MICROSOFT)
def _gather_block_quantized(c: Call) -> Made:
    """Rows of a table of bytes; an index outside of it gives zeros."""
    axes = [
        c.positive(c.attribute(name, axis), 2) for axis, name in enumerate(("gather_axis", "quantize_axis"))
    ]
    bits, block = c.attribute("bits", 4), c.attribute("block_size", 128)
    if c.rank() != 2 or axes != [0, 1] or bits not in (4, 8):
        raise NotOnDevice("GatherBlockQuantized of other tables than matrices with rows of 4 or 8 bits")
    table, indices = c.x(0), c.x(1)
    columns = table.sizes[1] * 8 // bits
    if columns % block:
        raise NotOnDevice(f"blocks of {block} do not divide {columns} elements")
    places = fitted(indices, (math.prod(indices.sizes), 1))
    inside = g.element_wise_logical_and(
        places >= c.scalar(-table.sizes[0], places), places < c.scalar(table.sizes[0], places)
    )
    places = g.element_wise_if(inside, places, c.scalar(0, places))
    zero = rows_of(c.x(3), places) if c.has(3) else None
    made = from_blocks(c, rows_of(table, places), rows_of(c.x(2), places), zero, bits)
    made = g.element_wise_if(repeated(inside, made.sizes), made, c.scalar(0, made))
    return Made(made, (*c.shape(1), columns))
