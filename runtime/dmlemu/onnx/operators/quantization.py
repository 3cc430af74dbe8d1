"""Numbers as small integers with a scale and a zero point."""

from __future__ import annotations

import numpy as np

from ... import graph as g
from ...dml.enums import TensorDataType
from ...graph import Expression
from ..calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ..tensors import fitted

_T = TensorDataType
_QUANTIZED = (_T.INT8, _T.UINT8)


def _parameter(
    c: Call, x: Expression, shape: tuple[int, ...], axis: int, block: int
) -> tuple[Expression, tuple[int, ...]]:
    """A scale or zero point with the sizes of the tensor, which blocks divide into one more dimension."""
    rank = len(shape)
    count = int(np.prod(x.sizes))
    if count == 1:
        return repeated(fitted(x, (1,)), shape), shape
    if block == 0:
        return repeated(fitted(x, [size if i == axis else 1 for i, size in enumerate(shape)]), shape), shape
    if shape[axis] % block:
        raise NotOnDevice(f"blocks of {block} do not divide {shape[axis]} elements")
    divided = (*shape[: axis + 1], block, *shape[axis + 1 :])
    divided = (*divided[:axis], shape[axis] // block, *divided[axis + 1 :])
    if rank + 1 > 8:
        raise NotOnDevice("blocks need one more dimension than 8")
    spread = fitted(x, [1 if i == axis + 1 else size for i, size in enumerate(divided)])
    return repeated(spread, divided), divided


def _parameters(c: Call) -> tuple[Expression, Expression | None, tuple[int, ...]]:
    shape = c.shape() or (1,)
    axis = c.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    block = c.attribute("block_size", 0)
    scale, whole = _parameter(c, c.x(1), shape, axis, block)
    zero = _parameter(c, c.x(2), shape, axis, block)[0] if c.has(2) else None
    return scale, zero, whole


@lowers("QuantizeLinear")
@lowers("QuantizeLinear", domain=MICROSOFT)
def _quantize(c: Call) -> Made:
    scale, zero, whole = _parameters(c)
    data_type = zero.data_type if zero is not None else c.device_type(c.attribute("output_dtype", 0) or 2)
    if data_type in (_T.INT16, _T.UINT16) and zero is not None:
        return Made(_quantize_wide(c, fitted(c.x(), whole), scale, zero), c.shape())
    if data_type not in _QUANTIZED:
        raise NotOnDevice(f"QUANTIZE_LINEAR makes UINT8 and INT8, not {data_type.name}")
    if zero is None:
        dtype = np.uint8 if data_type is _T.UINT8 else np.int8
        zero = repeated(c.constant(0, dtype=dtype), whole)
    x = fitted(c.x(), whole)
    if scale.data_type is not x.data_type:
        scale = g.cast(scale, output_data_type=x.data_type)
    if x.data_type is _T.INT32:
        x, scale = (g.cast(each, output_data_type=_T.FLOAT32) for each in (x, scale))
    made: Expression = g.element_wise_quantize_linear(x, scale, zero, output_data_type=data_type)
    return Made(made, c.shape())


def _quantize_wide(c: Call, x: Expression, scale: Expression, zero: Expression) -> Expression:
    """To 16 bits, which ELEMENT_WISE_QUANTIZE_LINEAR does not have: CAST saturates."""
    x, scale, offset = (g.cast(each, output_data_type=_T.FLOAT32) for each in (x, scale, zero))
    made: Expression = g.cast(g.element_wise_round(x / scale) + offset, output_data_type=zero.data_type)
    return made


@lowers("DequantizeLinear")
@lowers("DequantizeLinear", domain=MICROSOFT)
def _dequantize(c: Call) -> Made:
    scale, zero, whole = _parameters(c)
    x = fitted(c.x(), whole)
    if zero is None:
        zero = repeated(c.constant(0, x), whole)
    if x.data_type in (_T.INT16, _T.UINT16):
        return Made(_dequantize_wide(x, scale, zero), c.shape())
    if x.data_type not in (*_QUANTIZED, _T.INT32):
        raise NotOnDevice(f"DEQUANTIZE_LINEAR reads UINT8, INT8 and INT32, not {x.data_type.name}")
    made: Expression = g.element_wise_dequantize_linear(x, scale, zero)
    return Made(made, c.shape())


def _dequantize_wide(x: Expression, scale: Expression, zero: Expression) -> Expression:
    """From 16 bits, which ELEMENT_WISE_DEQUANTIZE_LINEAR does not have; FLOAT32 has all their differences."""
    a, b, by = (g.cast(each, output_data_type=_T.FLOAT32) for each in (x, zero, scale))
    made: Expression = g.cast((a - b) * by, output_data_type=scale.data_type)
    return made


@lowers("DynamicQuantizeLinear")
def _dynamic_quantize(c: Call) -> tuple[Expression, Expression, Expression]:
    made = g.dynamic_quantize_linear(c.x(), output_data_type=_T.UINT8)
    return made[0], made[1], made[2]
