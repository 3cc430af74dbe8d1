"""QUANTIZED_LINEAR_MATRIX_MULTIPLY."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.rules import SameRank, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.product import COLUMNS, MATRICES, ROWS, IntegerProduct, matrices, parameter, spread
from .families.quantization import quantize

if TYPE_CHECKING:
    from ..declared.descs import QuantizedLinearMatrixMultiplyOperatorDesc
    from ..lowering.compile import Program


class QuantizedLinearMatrixMultiply(IntegerProduct, of="QUANTIZED_LINEAR_MATRIX_MULTIPLY"):
    """``output[m, n] = saturate(round(sum * (AScale[m] * BScale[n]) / OutputScale[m]) + ZeroPoint[m])``,
    where ``sum`` is the sum over k of ``(A[m, k] - AZeroPoint[m]) * (B[k, n] - BZeroPoint[n])``.

    A is ``{.., M, K}``, B ``{.., K, N}``, the output ``{.., M, N}``; the leading dimensions count independent
    products.  Scales and zero points are one, or one per row of A and of the output, and per column of B;
    an absent zero point is 0.  OutputScaleTensor and OutputZeroPointTensor are inputs too.  A, B and
    the output may each be INT8 or UINT8.

    Sums wrap as INT32.  The sum, both products and the quotient are each rounded to FLOAT32, and halves are
    rounded to even.  A NaN is rounded to 0.
    """

    desc: QuantizedLinearMatrixMultiplyOperatorDesc

    RULES = (
        *MATRICES,
        SameType("a_tensor", "a_zero_point_tensor"),
        SameType("b_tensor", "b_zero_point_tensor"),
        SameType("output_tensor", "output_zero_point_tensor"),
        SameRank(
            *("a_scale_tensor", "a_zero_point_tensor", "b_scale_tensor", "b_zero_point_tensor"),
            *("output_scale_tensor", "output_zero_point_tensor"),
        ),
        *(parameter(f"{name}_tensor", ROWS) for name in ("a_scale", "a_zero_point")),
        *(parameter(f"{name}_tensor", COLUMNS) for name in ("b_scale", "b_zero_point")),
        *(parameter(f"{name}_tensor", ROWS) for name in ("output_scale", "output_zero_point")),
    )

    def lower(self, program: Program) -> None:
        sums = program.temporary(self.sums, self.desc.output_tensor.sizes)
        self.multiply(program, sums.write())
        program.call(
            "scale_sums",
            sums.read(),
            program.read("bias_tensor"),  # there is none
            spread(program, self.desc, "a_scale_tensor", ROWS),
            spread(program, self.desc, "b_scale_tensor", COLUMNS),
            spread(program, self.desc, "output_scale_tensor", ROWS),
            spread(program, self.desc, "output_zero_point_tensor", ROWS),
            program.write("output_tensor"),
            constants=kernels.pack("scale_sums"),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        a = self.values(inputs, "a_scale_tensor", ROWS)
        b = self.values(inputs, "b_scale_tensor", COLUMNS)
        with np.errstate(all="ignore"):
            scaled = self.product(inputs).astype(np.float32) * (a * b)
            quotient = scaled / self.values(inputs, "output_scale_tensor", ROWS)
        zero_point = self.values(inputs, "output_zero_point_tensor", ROWS)
        return {"output_tensor": quantize(quotient, zero_point, self.desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            **matrices(["UINT8", "INT8", "UINT8"]),
            "a_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 1]),
            "a_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 1, 3, 1]),
            "b_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 4]),
            "b_zero_point_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 1, 1, 4]),
            "output_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 1]),
            "output_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 1, 3, 1]),
        }
