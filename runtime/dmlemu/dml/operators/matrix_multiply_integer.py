"""MATRIX_MULTIPLY_INTEGER and MATRIX_MULTIPLY_INTEGER_TO_FLOAT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.rules import SameRank, SameSizes, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert
from .families.product import COLUMNS, MATRICES, ROWS, IntegerProduct, matrices, parameter, spread

if TYPE_CHECKING:
    from ..declared.descs import MatrixMultiplyIntegerOperatorDesc, MatrixMultiplyIntegerToFloatOperatorDesc
    from ..lowering.compile import Program


class MatrixMultiplyInteger(IntegerProduct, of="MATRIX_MULTIPLY_INTEGER"):
    """``output[m, n] = sum over k of (A[m, k] - AZeroPoint[m]) * (B[k, n] - BZeroPoint[n])``.

    A is ``{.., M, K}``, B ``{.., K, N}``, the output ``{.., M, N}``; the leading dimensions count independent
    products.  A has one zero point or one per row, B one or one per column; an absent one is 0.  A and B
    may each be INT8 or UINT8.  Sums wrap as INT32.
    """

    desc: MatrixMultiplyIntegerOperatorDesc

    RULES = (
        *MATRICES,
        SameType("a_tensor", "a_zero_point_tensor"),
        SameType("b_tensor", "b_zero_point_tensor"),
        parameter("a_zero_point_tensor", ROWS),
        parameter("b_zero_point_tensor", COLUMNS),
    )

    def lower(self, program: Program) -> None:
        self.multiply(program, program.write("output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": self.product(inputs)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            **matrices(["UINT8", "INT8", "INT32"]),
            "a_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 1, 3, 1]),
            "b_zero_point_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 1, 1, 4]),
        }


class MatrixMultiplyIntegerToFloat(IntegerProduct, of="MATRIX_MULTIPLY_INTEGER_TO_FLOAT"):
    """``output[m, n] = sum * (AScale[m] * BScale[n]) + Bias[m, n]``, where ``sum`` is the sum over k of
    ``(A[m, k] - AZeroPoint[m]) * (B[k, n] - BZeroPoint[n])``.

    A is ``{.., M, K}``, B ``{.., K, N}``, the output ``{.., M, N}``; the leading dimensions count independent
    products.  A has one scale and zero point or one per row, B one or one per column; an absent zero point
    or bias is 0.

    Sums of 8-bit integers wrap as INT32, those of 16 bits are INT64; 32-bit integers are multiplied and
    summed in FLOAT64.  The sum, the product of the scales, the product of both and the sum with the bias
    are each rounded to FLOAT32; FLOAT16 is rounded once at the end.
    """

    desc: MatrixMultiplyIntegerToFloatOperatorDesc

    RULES = (
        *MATRICES,
        SameType("a_tensor", "a_zero_point_tensor", "b_tensor", "b_zero_point_tensor"),
        SameType("output_tensor", "a_scale_tensor", "b_scale_tensor", "bias_tensor"),
        SameSizes("output_tensor", "bias_tensor"),
        SameRank("a_scale_tensor", "a_zero_point_tensor", "b_scale_tensor", "b_zero_point_tensor"),
        parameter("a_scale_tensor", ROWS),
        parameter("a_zero_point_tensor", ROWS),
        parameter("b_scale_tensor", COLUMNS),
        parameter("b_zero_point_tensor", COLUMNS),
    )

    def lower(self, program: Program) -> None:
        sums = program.temporary(self.sums, self.desc.output_tensor.sizes)
        self.multiply(program, sums.write())
        program.call(
            "scale_sums",
            sums.read(),
            program.read("bias_tensor"),
            spread(program, self.desc, "a_scale_tensor", ROWS),
            spread(program, self.desc, "b_scale_tensor", COLUMNS),
            program.read("output_scale_tensor"),  # there is none
            program.read("output_zero_point_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("scale_sums"),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        a = self.values(inputs, "a_scale_tensor", ROWS).astype(np.float32)
        b = self.values(inputs, "b_scale_tensor", COLUMNS).astype(np.float32)
        bias = np.float32(0) if inputs.get("bias_tensor") is None else inputs["bias_tensor"]
        with np.errstate(all="ignore"):
            y = self.product(inputs).astype(np.float32) * (a * b) + np.asarray(bias).astype(np.float32)
        return {"output_tensor": convert(y, self.desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        column = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 4])
        return {
            **matrices(["INT8", "INT8", "FLOAT32"]),
            "a_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 1]),
            "a_zero_point_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 1, 3, 1]),
            "b_scale_tensor": column,
            "b_zero_point_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 1, 1, 4]),
            "bias_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
        }
