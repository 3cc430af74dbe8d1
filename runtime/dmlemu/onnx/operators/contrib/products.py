"""Products of matrices with something before or behind them."""

from __future__ import annotations

import math

import numpy as np

from .... import graph as g
from ....dml.enums import MatrixTransform
from ....graph import Expression, reinterpret
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ...tensors import fitted
from ..products import Product, gemm
from .activations import activated, named_parameters
from .blocks import from_blocks


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
    zero = c.x(3) if c.has(3) else None
    whole = from_blocks(c, c.x(1), fitted(c.x(2), (n, blocks)), zero, bits)
    weights = reinterpret(whole, (1, 1, n, k), (0, 0, *whole.strides))
    bias = repeated(c.x(5), (1, 1, math.prod(rows), n)) if c.has(5) else None
    made: Expression = g.gemm(x, weights, bias, trans_b=MatrixTransform.TRANSPOSE)
    return Made(made, (*rows, n))
