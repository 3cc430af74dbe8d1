"""DIAGONAL_MATRIX and DIAGONAL_MATRIX1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import SameSizes, SameType
from ..enums import TensorDataType
from ..structs import ScalarUnion
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, raw_bits

if TYPE_CHECKING:
    from ..declared.descs import DiagonalMatrix1OperatorDesc, DiagonalMatrixOperatorDesc
    from ..lowering.compile import Program


class DiagonalMatrix(Definition, of="DIAGONAL_MATRIX"):
    """Matrices with Value on one diagonal and 0 elsewhere: ``output[.., y, x] = Value`` where
    ``x - y == Offset``.

    The last two dimensions are the matrix; the matrices of all leading ones are equal.  A diagonal that lies
    outside of the matrix leaves zeros.  Value is a FLOAT, which is converted to the tensor's type as CAST
    does: 10.6 becomes 10.
    """

    desc: DiagonalMatrixOperatorDesc | DiagonalMatrix1OperatorDesc

    KEEPS_NANS = True

    def diagonals(self) -> tuple[int, int]:
        """DiagonalFillBegin and DiagonalFillEnd."""
        desc: Any = self.desc
        return desc.offset, desc.offset + 1

    def value(self) -> bytes:
        """Value as an element."""
        desc: Any = self.desc
        output = desc.output_tensor
        return raw_bits(desc.value, output.data_type).to_bytes(output.dtype.itemsize, "little")

    def lower(self, program: Program) -> None:
        begin, end = self.diagonals()
        program.call(
            "diagonal_matrix",
            program.read("input_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack(
                "diagonal_matrix",
                begin=min(begin, end),
                end=max(begin, end),
                outside=int(begin > end),
                value=int.from_bytes(self.value(), "little"),
            ),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_tensor
        given = inputs.get("input_tensor")
        result = np.zeros(output.sizes, output.dtype) if given is None else np.array(given)
        height, width = output.sizes[-2:]
        diagonal = np.arange(width) - np.arange(height)[:, np.newaxis]
        begin, end = self.diagonals()
        # As printed; with begin <= end these are the diagonals from begin to end - 1.
        fill = (end >= begin) ^ (diagonal >= begin) ^ (diagonal < end)
        result[..., fill] = np.frombuffer(self.value(), output.dtype)[0]
        return {"output_tensor": result}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 4]),
            "offset": 1,
            "value": 2.5,
        }


class DiagonalMatrix1(DiagonalMatrix, of="DIAGONAL_MATRIX1"):
    """Puts Value on some diagonals; the other elements are those of the input or, without one, 0.

    Element (y, x) of the last two dimensions is on diagonal ``t = x - y``.  With DiagonalFillBegin <=
    DiagonalFillEnd those with ``DiagonalFillBegin <= t < DiagonalFillEnd`` are filled; else all except those
    with ``DiagonalFillEnd <= t < DiagonalFillBegin``.  Elements that are filled are not read.
    """

    RULES = (
        SameType("output_tensor", "input_tensor", "value_data_type"),
        SameSizes("output_tensor", "input_tensor"),
    )

    def diagonals(self) -> tuple[int, int]:
        desc: Any = self.desc
        return desc.diagonal_fill_begin, desc.diagonal_fill_end

    def value(self) -> bytes:
        desc: Any = self.desc
        element: bytes = desc.value.bytes[: desc.output_tensor.dtype.itemsize]
        return element

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 4])
        return {
            "input_tensor": tensor,
            "output_tensor": tensor,
            "value_data_type": TensorDataType.FLOAT32,
            "value": ScalarUnion.of(TensorDataType.FLOAT32, 2.5),
            "diagonal_fill_begin": 1,
            "diagonal_fill_end": 3,
        }
