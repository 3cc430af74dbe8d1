"""Family: matrix products of integers with zero points, which may be scaled back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...declared.definition import Definition
from ...declared.rules import SameRank, SameSizes, Sizes
from ...enums import TensorDataType
from ...lowering.compile import NOTHING, Kept, KeptSums
from ...tensor_desc import BufferTensorDesc
from .conversion import Array

if TYPE_CHECKING:
    from ...declared.rules import Rule
    from ...lowering.compile import Operand, Program

ROWS, COLUMNS = -2, -1
"""The dimension of the output that a parameter follows."""

_FEW_ROWS = 4  # of A; up to this many, the kernel reads B in place


def _size_of_b(desc: Any) -> Iterator[tuple[int, int, str]]:
    yield -2, desc.a_tensor.sizes[-1], "K, the last of ATensor.Sizes"


def _sizes_of_product(desc: Any) -> Iterator[tuple[int, int, str]]:
    yield -2, desc.a_tensor.sizes[-2], "M, the last but one of ATensor.Sizes"
    yield -1, desc.b_tensor.sizes[-1], "N, the last of BTensor.Sizes"


MATRICES: tuple[Rule, ...] = (
    SameRank("a_tensor", "b_tensor", "output_tensor"),
    SameSizes("a_tensor", "b_tensor", "output_tensor", only=slice(0, -2)),
    Sizes("b_tensor", _size_of_b, "K is the same in A and in B."),
    Sizes("output_tensor", _sizes_of_product, "The output has M of A and N of B as its last two sizes."),
)


def parameter(name: str, along: int) -> Rule:
    """The rule of a scale or zero point with one element, or one for each row or column of the output."""
    what = "row of the output" if along == ROWS else "column of the output"

    def follow(desc: Any) -> Iterator[tuple[int, int, str]]:
        tensor: BufferTensorDesc | None = getattr(desc, name)
        if tensor is None or tensor.element_count == 1:
            return
        for i in range(tensor.rank):
            if i == dimension(tensor, along):
                size = desc.output_tensor.sizes[along]
                yield i, size, f"one for each {what}; one value for all is the other possibility"
            else:
                yield i, 1, f"since only dimension {dimension(tensor, along)} can have one for each {what}"

    c_name = "".join(part.capitalize() for part in name.split("_"))
    last = "last dimension but one" if along == ROWS else "last dimension"
    return Sizes(
        name,
        follow,
        f"`{c_name}` has one element, or one for each {what} in its {last} (a tensor of one dimension has no "
        "other), and its other sizes are 1.",
    )


def dimension(tensor: BufferTensorDesc, along: int) -> int:
    """Which dimension of a parameter follows the rows or columns of the output."""
    return 0 if tensor.rank == 1 else tensor.rank + along


def spread(program: Program, desc: Any, name: str, along: int) -> Operand:
    """A parameter with the sizes of the output."""
    tensor: BufferTensorDesc | None = getattr(desc, name)
    if tensor is None:
        return program.read(name)
    sizes, at = desc.output_tensor.sizes, dimension(tensor, along)
    strides = [0] * len(sizes)
    strides[along] = tensor.effective_strides[at] if tensor.sizes[at] > 1 else 0
    return program.read(name, sizes=sizes, strides=strides)


def needs_sums(
    values: BufferTensorDesc, zero_point: BufferTensorDesc | None, weights: BufferTensorDesc
) -> bool:
    """Whether a product of bytes is corrected by sums of weights: for the zero point of the values, or since
    the kernel flips their sign, to multiply signed by unsigned bytes."""
    return zero_point is not None or values.data_type is weights.data_type


class IntegerProduct(Definition):
    """``sum over k of (A[m, k] - AZeroPoint[m]) * (B[k, n] - BZeroPoint[n])``."""

    @property
    def sums(self) -> TensorDataType:
        """The type of the sums."""
        types = {1: TensorDataType.INT32, 2: TensorDataType.INT64, 4: TensorDataType.FLOAT64}
        return types[self.desc.a_tensor.dtype.itemsize]

    def multiply(self, program: Program, output: Operand) -> None:
        """The call that computes the sums."""
        b = program.read("b_tensor")
        program.call(
            "multiply_integers",
            program.read("a_tensor"),
            self._zero_point(program, "a_zero_point_tensor", ROWS),
            replace(b, kept=self._kept(b)),
            self._zero_point(program, "b_zero_point_tensor", COLUMNS),
            NOTHING,  # the sums of the columns of B, if they are kept
            output,
        )

    def _kept(self, b: Operand) -> Kept | None:
        """Column after column, four bytes of which are multiplied at a time; few rows read b as it is."""
        leading = range(len(b.sizes) - 2)
        few = self.desc.a_tensor.sizes[-2] <= _FEW_ROWS
        if few or b.data_type not in (TensorDataType.INT8, TensorDataType.UINT8):
            return None
        rank, desc = len(b.sizes), self.desc
        corrected = needs_sums(desc.a_tensor, desc.a_zero_point_tensor, desc.b_tensor)
        sums = KeptSums(axis=rank - 2, operand=4) if corrected else None
        return Kept((1,) * rank, (*leading, rank - 1, rank - 2), sums)

    def _zero_point(self, program: Program, name: str, along: int) -> Operand:
        tensor: BufferTensorDesc | None = getattr(self.desc, name)
        if tensor is None:
            return program.read(name)
        at = dimension(tensor, along)
        return program.read(name, sizes=[tensor.sizes[at]], strides=[tensor.effective_strides[at]])

    def product(self, inputs: Mapping[str, Any]) -> Array:
        """The sums: exact integers, which wrap as INT32 for those of 8 bits; those of 32 bits in FLOAT64."""
        a, b = (np.asarray(inputs[name]).astype(np.int64) for name in ("a_tensor", "b_tensor"))
        a = a - self.values(inputs, "a_zero_point_tensor", ROWS).astype(np.int64)
        b = b - self.values(inputs, "b_zero_point_tensor", COLUMNS).astype(np.int64)
        if self.sums is not TensorDataType.FLOAT64:
            return (a @ b).astype(np.int32 if self.sums is TensorDataType.INT32 else np.int64)
        y = np.zeros(self.desc.output_tensor.sizes)
        for k in range(a.shape[-1]):
            y += a[..., k, None].astype(np.float64) * b[..., k, None, :].astype(np.float64)
        return y

    def values(self, inputs: Mapping[str, Any], name: str, along: int) -> Array:
        """A parameter as a column (of rows) or a row (of columns); an absent one is 0."""
        given = np.asarray(0 if inputs.get(name) is None else inputs[name]).reshape(-1)
        return given[:, None] if along == ROWS else given


def matrices(types: Sequence[str]) -> dict[str, BufferTensorDesc]:
    """Of an example: A, B and the output."""
    a, b, output = (TensorDataType[name] for name in types)
    return {
        "a_tensor": BufferTensorDesc(a, [1, 2, 3, 5]),
        "b_tensor": BufferTensorDesc(b, [1, 2, 5, 4]),
        "output_tensor": BufferTensorDesc(output, [1, 2, 3, 4]),
    }
