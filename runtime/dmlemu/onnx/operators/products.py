"""Products of matrices."""

from __future__ import annotations

import numpy as np

from ... import graph as g
from ...dml.enums import MatrixTransform, TensorDataType
from ...graph import Expression
from ..calls import Call, Made, NotOnDevice, lowers, repeated
from ..tensors import fitted

Shape = tuple[int, ...]


class Product:
    """Shapes of a product as numpy.matmul has it, in four dimensions: batch, batch, rows, columns."""

    def __init__(self, a: Shape, b: Shape) -> None:
        if not a or not b:
            raise NotOnDevice("a product of scalars")
        self.full_a = (1, *a) if len(a) == 1 else a
        self.full_b = (*b, 1) if len(b) == 1 else b
        self.batch = np.broadcast_shapes(self.full_a[:-2], self.full_b[:-2])
        rows = () if len(a) == 1 else (a[-2],)
        columns = () if len(b) == 1 else (b[-1],)
        self.shape = (*self.batch, *rows, *columns)
        # Rows of all batches are rows of one product, if b is the same for all.
        self.joined = int(np.prod(self.full_b[:-2])) == 1

    def a(self, x: Expression) -> Expression:
        if self.joined:
            return fitted(x, (1, 1, int(np.prod(self.full_a[:-1])), self.full_a[-1]))
        return self._batched(x, self.full_a)

    def b(self, x: Expression) -> Expression:
        return fitted(x, (1, 1, *self.full_b[-2:])) if self.joined else self._batched(x, self.full_b)

    def _batched(self, x: Expression, full: Shape) -> Expression:
        whole = repeated(fitted(x, full), (*self.batch, *full[-2:]))
        if len(self.batch) <= 2:
            return repeated(whole, (*(1,) * (2 - len(self.batch)), *whole.sizes))
        return fitted(whole, (1, int(np.prod(self.batch)), *full[-2:]))


@lowers("MatMul")
def _matmul(c: Call) -> Made:
    product = Product(c.shape(0), c.shape(1))
    made: Expression = g.gemm(product.a(c.x(0)), product.b(c.x(1)))
    return Made(made, product.shape)


@lowers("Gemm")
def gemm(c: Call) -> Made:
    a, b = (fitted(c.x(i), (1, 1, *c.shape(i))) for i in (0, 1))
    trans = [
        MatrixTransform.TRANSPOSE if c.attribute(name, 0) else MatrixTransform.NONE
        for name in ("transA", "transB")
    ]
    rows = a.sizes[3] if c.attribute("transA", 0) else a.sizes[2]
    columns = b.sizes[2] if c.attribute("transB", 0) else b.sizes[3]
    beta = c.attribute("beta", 1.0)
    added = repeated(c.x(2), (1, 1, rows, columns)) if c.has(2) and beta else None
    made: Expression = g.gemm(
        a, b, added, trans_a=trans[0], trans_b=trans[1], alpha=c.attribute("alpha", 1.0), beta=beta
    )
    return Made(made, (rows, columns))


def _parameter(c: Call, number: int) -> Expression | None:
    """A zero point or scale."""
    if not c.has(number):
        return None
    x = c.x(number)
    return g.cast(x, output_data_type=TensorDataType.FLOAT32) if x.data_type is TensorDataType.FLOAT16 else x


def of_columns(c: Call, number: int) -> Expression | None:
    """One, or one for each column of a matrix."""
    x = _parameter(c, number)
    return None if x is None else fitted(x, (1, 1, 1, int(np.prod(x.sizes))))


def of_rows(c: Call, number: int, product: Product) -> Expression | None:
    """One, or one for each row of a matrix, which may be a row of one matrix of many."""
    x = _parameter(c, number)
    if x is None:
        return None
    count = int(np.prod(x.sizes))
    if count > 1 and product.joined:
        x = repeated(fitted(x, (*x.sizes, 1)) if x.rank == 1 else x, (*product.full_a[:-1], 1))
        count = int(np.prod(x.sizes))
    return fitted(x, (1, 1, count, 1))


@lowers("MatMulInteger")
def _matmul_integer(c: Call) -> Made:
    product = Product(c.shape(0), c.shape(1))
    made: Expression = g.matrix_multiply_integer(
        product.a(c.x(0)), product.b(c.x(1)), of_rows(c, 2, product), of_columns(c, 3)
    )
    return Made(made, product.shape)


@lowers("QLinearMatMul")
def quantized_matmul(c: Call) -> Made:
    product = Product(c.shape(0), c.shape(3))
    made: Expression = g.quantized_linear_matrix_multiply(
        product.a(c.x(0)),
        of_rows(c, 1, product),
        product.b(c.x(3)),
        of_columns(c, 4),
        of_columns(c, 6),
        of_rows(c, 2, product),
        of_columns(c, 5),
        of_columns(c, 7),
        output_data_type=c.x(7).data_type,
    )
    return Made(made, product.shape)
