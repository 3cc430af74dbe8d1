"""Products of matrices with something before or behind them."""

from __future__ import annotations

import math

import numpy as np

from .... import graph as g
from ....dml.enums import MatrixTransform, QuantizationType, TensorDataType
from ....graph import Expression, reinterpret
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ...tensors import copied, fitted
from ..products import Product, gemm
from .activations import activated, named_parameters


@lowers("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def _fused_matmul(c: Call) -> Made:
    (a, a_shape), (b, b_shape) = _transposed(c, 0, "A"), _transposed(c, 1, "B")
    product = Product(a_shape, b_shape)
    made: Expression = g.gemm(product.a(a), product.b(b), alpha=c.attribute("alpha", 1.0))
    return Made(activated(c, made, named_parameters(c)), product.shape)


def _transposed(c: Call, number: int, letter: str) -> tuple[Expression, tuple[int, ...]]:
    """``transBatch`` moves the first dimension before the last, ``trans`` exchanges the last two."""
    shape, order = c.shape(number), list(range(c.rank(number)))
    if len(shape) < 2:
        return c.x(number), shape
    if c.attribute(f"transBatch{letter}", 0):
        order = [*order[1:-1], order[0], order[-1]]
    if c.attribute(f"trans{letter}", 0):
        order = [*order[:-2], order[-1], order[-2]]
    return g.transpose(c.x(number), order), tuple(shape[i] for i in order)


@lowers("FusedGemm", domain=MICROSOFT)
def _fused_gemm(c: Call) -> Made:
    made = gemm(c)
    return Made(activated(c, made.expression, named_parameters(c)), made.shape)


@lowers("MatMulNBits", domain=MICROSOFT)
def _matmul_n_bits(c: Call) -> Made:
    """Weights of 4 or 8 bits in blocks along K, by DEQUANTIZE, whose default zero points are the same."""
    k, n, block = c.attribute("K"), c.attribute("N"), c.attribute("block_size")
    bits = c.attribute("bits", 4)
    if bits not in (4, 8):
        raise NotOnDevice(f"DirectML has no weights of {bits} bits")
    if c.attribute("weight_prepacked", 0):
        raise NotOnDevice("MatMulNBits with weights that are packed for another provider")
    blocks = -(-k // block)
    if c.has(4) and not np.array_equal(np.ravel(c.value(4))[:k], np.arange(k) // block):
        raise NotOnDevice("MatMulNBits with a g_idx that reorders rows")
    rows = c.shape()[:-1]
    x = fitted(c.x(), (1, 1, math.prod(rows), k))
    whole = _weights(c, n, blocks, block, bits)
    weights = reinterpret(whole, (1, 1, n, k), (0, 0, *whole.strides))
    bias = repeated(c.x(5), (1, 1, math.prod(rows), n)) if c.has(5) else None
    made: Expression = g.gemm(x, weights, bias, trans_b=MatrixTransform.TRANSPOSE)
    return Made(made, (*rows, n))


def _weights(c: Call, n: int, blocks: int, block: int, bits: int) -> Expression:
    """Of whole blocks, as floats."""
    weights = _rows(c.x(1), n, blocks * block, bits)
    scales = fitted(c.x(2), (n, blocks))
    if not c.has(3):
        made: Expression = g.dequantize(weights, [scales], quantization_type=QuantizationType.SCALE)
        return made
    zero = c.x(3)
    if zero.data_type is not TensorDataType.UINT8:
        return _from_float_zero_points(c, weights, scales, fitted(zero, (n, blocks)))
    zero = _rows(zero, n, blocks, bits)
    made = g.dequantize(weights, [scales, zero], quantization_type=QuantizationType.SCALE_ZERO_POINT)
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
