"""Operators on quantized tensors, and products of quantized matrices."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .... import graph as g
from ....dml.enums import TensorDataType
from ....graph import Expression, interleaved_channel
from ...calls import MICROSOFT, Call, Made, lowers, repeated
from ...tensors import by_channel, fitted, with_policy
from ..products import Product, of_columns, of_rows
from ..windows import pooled
from .convolutions import channels_first, channels_last

_FLOAT = TensorDataType.FLOAT32


def _zero_point(c: Call, number: int, like: Expression) -> Expression:
    return c.x(number) if c.has(number) else c.constant(0, like)


def _dequantized(c: Call, number: int) -> Expression:
    """An input as floats; its scale and its zero point follow it."""
    x = c.x(number)
    scale, zero = (
        repeated(each, c.shape(number)) for each in (c.x(number + 1), _zero_point(c, number + 2, x))
    )
    made: Expression = g.element_wise_dequantize_linear(x, scale, zero)
    return made


def _quantized(c: Call, x: Expression, scale: int, zero: int, like: Expression) -> Expression:
    """Floats as an output; ``scale`` and ``zero``: the inputs that are its scale and its zero point."""
    parameters = (repeated(each, x.sizes) for each in (c.x(scale), _zero_point(c, zero, like)))
    made: Expression = g.element_wise_quantize_linear(x, *parameters, output_data_type=like.data_type)
    return made


# --- of each element ---


@lowers("QLinearAdd", domain=MICROSOFT)
def _add(c: Call) -> Made:
    shape = np.broadcast_shapes(c.shape(0), c.shape(3))
    a, b = repeated(c.x(0), shape), repeated(c.x(3), shape)
    one = (1,) * a.rank
    zeros = [fitted(_zero_point(c, number, x), one) for number, x in ((2, a), (5, b), (7, a))]
    scales = [fitted(c.x(number), one) for number in (1, 4, 6)]
    made: Expression = g.element_wise_quantized_linear_add(
        a, scales[0], b, scales[1], scales[2], *zeros, output_data_type=zeros[2].data_type
    )
    return Made(made, shape)


@lowers("QLinearMul", domain=MICROSOFT)
def _multiply(c: Call) -> Made:
    shape = np.broadcast_shapes(c.shape(0), c.shape(3))
    a, b = (repeated(_dequantized(c, number), shape) for number in (0, 3))
    return Made(_quantized(c, a * b, 6, 7, c.x(0)), shape)


@lowers("QLinearSigmoid", domain=MICROSOFT)
def _sigmoid(c: Call) -> Made:
    return Made(_quantized(c, g.activation_sigmoid(_dequantized(c, 0)), 3, 4, c.x(0)), c.shape())


@lowers("QLinearLeakyRelu", domain=MICROSOFT)
def _leaky_relu(c: Call) -> Made:
    made = g.activation_leaky_relu(_dequantized(c, 0), alpha=c.attribute("alpha", 0.01))
    return Made(_quantized(c, made, 3, 4, c.x(0)), c.shape())


@lowers("QLinearSoftmax", domain=MICROSOFT)
def _softmax(c: Call) -> Made:
    axis = c.axis(-1)
    axes = [axis] if c.attribute("opset") >= 13 else list(range(axis, c.rank()))
    made = g.activation_softmax1(_dequantized(c, 0), axes=axes)
    return Made(_quantized(c, made, 3, 4, c.x(0)), c.shape())


@lowers("QLinearWhere", domain=MICROSOFT)
def _where(c: Call) -> Made:
    shape = np.broadcast_shapes(c.shape(0), c.shape(1), c.shape(4))
    condition, x, y = (repeated(each, shape) for each in (c.x(0), _dequantized(c, 1), _dequantized(c, 4)))
    return Made(_quantized(c, g.element_wise_if(condition, x, y), 7, 8, c.x(1)), shape)


# --- of several elements ---


@lowers("QLinearConcat", domain=MICROSOFT)
def _concat(c: Call) -> Expression:
    """Scale and zero point of the output come first, then each input with its own."""
    numbers = [number for number in range(2, len(c.inputs), 3) if 0 not in c.shape(number)]
    parts = [_dequantized(c, number) for number in numbers]
    joined = g.join(parts, axis=c.axis(0, numbers[0])) if len(parts) > 1 else parts[0]
    return _quantized(c, joined, 0, 1, c.x(1))


def _pooling(c: Call) -> partial[Expression]:
    """The operator, with the parameters of its input and output."""
    x = c.x(0)
    parameters = {
        "input_scale_tensor": c.x(1),
        "input_zero_point_tensor": _zero_point(c, 2, x),
        "output_scale_tensor": c.x(3),
        "output_zero_point_tensor": _zero_point(c, 4, x),
    }
    one = (1,) * max(c.rank(), 4)
    return partial(
        g.quantized_linear_average_pooling,
        output_data_type=parameters["output_zero_point_tensor"].data_type,
        **{name: fitted(each, one) for name, each in parameters.items()},
    )


@lowers("QLinearAveragePool", domain=MICROSOFT)
def _average_pool(c: Call) -> Made:
    include = bool(c.attribute("count_include_pad", 0))
    last = c.attribute("channels_last", 0)
    image = channels_first(c.x(0), c.shape(0)) if last else (c.x(0), c.shape(0))
    made = Made(*pooled(c, image, _pooling(c), include_padding=include))
    return channels_last(made) if last else made


@lowers("QLinearGlobalAveragePool", domain=MICROSOFT)
def _global_average_pool(c: Call) -> Made:
    last = c.attribute("channels_last", 0)
    x, shape = channels_first(c.x(0), c.shape(0)) if last else (c.x(0), c.shape(0))
    line = (*shape[:2], 1, math.prod(shape[2:]))
    made = _pooling(c)(fitted(x, line), window_size=line[2:], include_padding=False)
    small = Made(made, (*shape[:2], *(1,) * (len(shape) - 2)))
    return channels_last(small) if last else small


# --- products ---


def integer_product(
    product: Product,
    a: tuple[Expression, Expression, Expression | None],
    b: tuple[Expression, Expression, Expression | None],
    bias: Expression | None,
) -> Made:
    """The product as floats.  ``a`` and ``b``: matrix, scale and zero point; the bias is one for columns."""
    x, y = product.a(a[0]), product.b(b[0])
    sizes = (*x.sizes[:3], y.sizes[3])
    bias = None if bias is None else repeated(bias, sizes)
    if x.data_type is y.data_type:
        made: Expression = g.matrix_multiply_integer_to_float(x, a[1], y, b[1], a[2], b[2], bias)
        return Made(made, product.shape)
    whole = g.cast(g.matrix_multiply_integer(x, y, a[2], b[2]), output_data_type=_FLOAT)
    made = whole * (repeated(a[1], sizes) * repeated(b[1], sizes))
    return Made(made if bias is None else made + bias, product.shape)


@lowers("MatMulIntegerToFloat", domain=MICROSOFT)
def _matmul_integer_to_float(c: Call) -> Made:
    product = Product(c.shape(0), c.shape(1))
    a_scale, b_scale = of_rows(c, 2, product), of_columns(c, 3)
    assert a_scale is not None and b_scale is not None
    made = integer_product(
        product,
        (c.x(0), a_scale, of_rows(c, 4, product)),
        (c.x(1), b_scale, of_columns(c, 5)),
        of_columns(c, 6),
    )
    if c.x(2).data_type is not _FLOAT:
        return Made(g.cast(made.expression, output_data_type=c.x(2).data_type), made.shape)
    return made


@lowers("DynamicQuantizeMatMul", domain=MICROSOFT)
def _dynamic_quantize_matmul(c: Call) -> Made:
    product = Product(c.shape(0), c.shape(1))
    x, scale, zero = g.dynamic_quantize_linear(c.x(0), output_data_type=TensorDataType.UINT8)
    b_scale = of_columns(c, 2)
    assert b_scale is not None
    scale, zero = (fitted(each, (1, 1, 1, 1)) for each in (scale, zero))
    return integer_product(product, (x, scale, zero), (c.x(1), b_scale, of_columns(c, 3)), of_columns(c, 4))


def _linear_layer(c: Call) -> Made:
    """A quantized product as a convolution of one row: DirectML's product of bytes has no bias."""
    rows, depth = c.shape(0)
    w = c.x(3) if c.attribute("transB", 0) else g.transpose(c.x(3), [1, 0])
    columns = w.sizes[0]
    with with_policy(c.graph, interleaved_channel):  # the rows of the result, as those of x
        made: Expression = g.quantized_linear_convolution(
            g.transpose(fitted(c.x(0), (1, 1, rows, depth)), [0, 3, 1, 2]),
            by_channel(c.x(1), 4),
            fitted(w, (columns, depth, 1, 1)),
            by_channel(c.x(4), 4),
            by_channel(c.x(7), 4),
            by_channel(c.x(2), 4) if c.has(2) else None,
            by_channel(c.x(5), 4) if c.has(5) else None,
            by_channel(c.x(6), 4) if c.has(6) else None,
            by_channel(c.x(8), 4),
            output_data_type=c.x(8).data_type,
        )
    return Made(g.transpose(made, [0, 2, 3, 1]), (rows, columns))


@lowers("QGemm", domain=MICROSOFT)
def _gemm(c: Call) -> Made:
    columns = c.shape(3)[0 if c.attribute("transB", 0) else 1]
    has_bias_of_columns = not c.has(6) or c.shape(6) in ((columns,), (1, columns))
    if not c.attribute("transA", 0) and c.attribute("alpha", 1.0) == 1 and c.has(8) and has_bias_of_columns:
        return _linear_layer(c)
    a, b = (fitted(c.x(number), (1, 1, *c.shape(number))) for number in (0, 3))
    a, b = (
        g.transpose(x, [0, 1, 3, 2]) if c.attribute(name, 0) else x
        for x, name in ((a, "transA"), (b, "transB"))
    )
    a_scale, b_scale = fitted(c.x(1), (1, 1, 1, 1)), of_columns(c, 4)
    made = g.matrix_multiply_integer(a, b, fitted(c.x(2), (1, 1, 1, 1)), of_columns(c, 5))
    assert b_scale is not None
    if c.has(6):
        made = made + repeated(c.x(6), made.sizes)
    scale = repeated(a_scale, made.sizes) * repeated(b_scale, made.sizes) * c.attribute("alpha", 1.0)
    made = g.cast(made, output_data_type=_FLOAT) * scale
    if c.has(7):
        made = _quantized(c, made, 7, 8, c.x(8))
    return Made(made, made.sizes[2:])
