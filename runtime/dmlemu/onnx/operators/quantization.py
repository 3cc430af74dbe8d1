"""Numbers as small integers with a scale and a zero point."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from ... import graph as g
from ...dml.enums import QuantizationType, TensorDataType
from ...dml.tensor_desc import BufferTensorDesc
from ...graph import Expression, reinterpret
from ..calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ..tensors import NARROW, data_type_of, fitted

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
    if rank + 1 > 8:
        raise NotOnDevice("blocks need one more dimension than 8")
    blocks = -(-shape[axis] // block)
    divided = (*shape[:axis], blocks, block, *shape[axis + 1 :])
    spread = repeated(fitted(x, [1 if i == axis + 1 else size for i, size in enumerate(divided)]), divided)
    if blocks * block == shape[axis]:
        return spread, divided
    longer = fitted(spread, (*shape[:axis], blocks * block, *shape[axis + 1 :]))
    return reinterpret(longer, shape, longer.strides), shape


# --- of 4 bits ---


def narrow_zeros(c: Call, data_type: TensorDataType, sizes: Sequence[int]) -> Expression:
    """Zero points, given because QUANTIZE and DEQUANTIZE take the middle of unsigned numbers without them."""
    dtype = np.int8 if data_type is _T.INT4 else np.uint8
    return c.graph.constant(np.zeros(sizes, dtype), BufferTensorDesc(data_type, sizes))


def _narrow_parameters(c: Call, data_type: TensorDataType, scale: Expression) -> list[Expression]:
    """Scale and zero point, with the sizes by which QUANTIZE and DEQUANTIZE find the blocks."""
    shape = c.shape() or (1,)
    axis = c.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    sizes = list(scale.sizes)
    if np.prod(sizes) == 1:
        sizes = [1] * len(shape)
    elif c.attribute("block_size", 0) == 0:
        sizes = [size if number == axis else 1 for number, size in enumerate(shape)]
    elif shape[axis] != sizes[axis] * c.attribute("block_size"):
        raise NotOnDevice(f"blocks of {c.attribute('block_size')} do not divide {shape[axis]} elements")
    zero = c.x(2, narrow=True) if c.has(2) else narrow_zeros(c, data_type, sizes)
    return [fitted(each, sizes) for each in (scale, zero)]


def quantized_to_narrow(x: Expression, parameters: Sequence[Expression]) -> Expression:
    """``parameters``: scale and zero point."""
    made: Expression = g.quantize(
        x,
        parameters,
        quantization_type=QuantizationType.SCALE_ZERO_POINT,
        output_data_type=parameters[1].data_type,
    )
    return made


def dequantized_from_narrow(x: Expression, parameters: Sequence[Expression]) -> Expression:
    made: Expression = g.dequantize(x, parameters, quantization_type=QuantizationType.SCALE_ZERO_POINT)
    return made


def _quantize_narrow(c: Call, data_type: TensorDataType) -> Expression:
    x, scale = c.x(), c.x(1)
    if x.data_type is _T.INT32:
        x = g.cast(x, output_data_type=_T.FLOAT32)
    if scale.data_type is not x.data_type:
        scale = g.cast(scale, output_data_type=x.data_type)
    return quantized_to_narrow(x, _narrow_parameters(c, data_type, scale))


def _dequantize_narrow(c: Call) -> Expression:
    x = c.x(narrow=True)
    return dequantized_from_narrow(x, _narrow_parameters(c, x.data_type, c.x(1)))


# --- of 8 bits and more ---


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
    element_type = c.type_of(2) if c.has(2) else c.attribute("output_dtype", 0) or onnx.TensorProto.UINT8
    data_type = c.device_type(element_type)
    if data_type in NARROW:
        return Made(_quantize_narrow(c, data_type), c.shape())
    scale, zero, whole = _parameters(c)
    if zero is None:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(element_type)
        zero = repeated(c.constant(0, dtype=dtype), whole)
    if data_type in (_T.INT16, _T.UINT16):
        return Made(_quantize_wide(c, fitted(c.x(), whole), scale, zero), c.shape())
    if data_type not in _QUANTIZED:
        raise NotOnDevice(f"QUANTIZE_LINEAR makes UINT8 and INT8, not {data_type.name}")
    x = fitted(c.x(), whole)
    if scale.data_type is not x.data_type:
        scale = g.cast(scale, output_data_type=x.data_type)
    if x.data_type is _T.INT32:
        x, scale = (g.cast(each, output_data_type=_T.FLOAT32) for each in (x, scale))
    made: Expression = g.element_wise_quantize_linear(
        _without_nan(c, x), scale, zero, output_data_type=data_type
    )
    return Made(made, c.shape())


def _quantize_wide(c: Call, x: Expression, scale: Expression, zero: Expression) -> Expression:
    """To 16 bits, which ELEMENT_WISE_QUANTIZE_LINEAR does not have: CAST saturates."""
    x, scale, offset = (g.cast(each, output_data_type=_T.FLOAT32) for each in (x, scale, zero))
    rounded = g.element_wise_round(_without_nan(c, x) / scale)
    made: Expression = g.cast(rounded + offset, output_data_type=zero.data_type)
    return made


def _without_nan(c: Call, x: Expression) -> Expression:
    """Of NaN implementations of ONNX make the least number."""
    if np.dtype(c.array_type()).kind == "f" and c.wants_onnx("a NaN becomes the zero point, or 0 of 16 bits"):
        x = g.element_wise_if(g.element_wise_is_nan(x), c.scalar(-np.inf, x), x)
    return x


@lowers("DequantizeLinear")
@lowers("DequantizeLinear", domain=MICROSOFT)
def _dequantize(c: Call) -> Made:
    if data_type_of(c.type_of()) in NARROW:
        return Made(_dequantize_narrow(c), c.shape())
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
