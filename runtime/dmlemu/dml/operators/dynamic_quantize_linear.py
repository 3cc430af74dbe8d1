"""DYNAMIC_QUANTIZE_LINEAR."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Ones, SameRank, SameSizes, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.quantization import limits, quantize

if TYPE_CHECKING:
    from ..declared.descs import DynamicQuantizeLinearOperatorDesc
    from ..lowering.compile import Program

_OUTPUTS = ("output_tensor", "output_scale_tensor", "output_zero_point_tensor")


class DynamicQuantizeLinear(Definition, of="DYNAMIC_QUANTIZE_LINEAR"):
    """Quantizes a tensor with the scale and the zero point that fit its range.

    With ``high = max(0, largest input)``, ``low = min(0, smallest input)`` and Min and Max the limits of the
    output's type: ``OutputScale = (high - low) / (Max - Min)``, ``OutputZeroPoint = round(Min - low /
    OutputScale)``, ``output = saturate(round(input / OutputScale) + OutputZeroPoint)``.

    The documentation leaves open, and here is as in ONNX: the range contains 0; inputs that are all 0 have
    the scale ``1 / (Max - Min)``; halves are rounded to even.  A NaN does not count for the range and is
    rounded to 0.  All arithmetic is FLOAT32, for FLOAT16 too.
    """

    desc: DynamicQuantizeLinearOperatorDesc

    RULES = (
        SameSizes("input_tensor", "output_tensor"),
        SameRank("input_tensor", "output_scale_tensor", "output_zero_point_tensor"),
        Ones("output_scale_tensor", "since there is one scale"),
        Ones("output_zero_point_tensor", "since there is one zero point"),
        SameType("output_tensor", "output_zero_point_tensor"),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "dynamic_quantize_linear",
            program.read("input_tensor"),
            *map(program.write, _OUTPUTS),
            constants=kernels.pack("dynamic_quantize_linear"),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        with np.errstate(invalid="ignore"):
            x = np.asarray(inputs["input_tensor"]).astype(np.float32)
        data_type = self.desc.output_tensor.data_type
        least, most = map(np.float32, limits(data_type))
        numbers = np.where(np.isnan(x), np.float32(0), x)
        low, high = np.minimum(0, numbers.min()), np.maximum(0, numbers.max())
        with np.errstate(all="ignore"):
            scale = (high - low) / (most - least) if low < high else 1 / (most - least)
            exact = np.fmin(np.fmax(least - low / scale, least), most)
            zero_point = quantize(np.asarray(exact), 0, data_type)
            output = quantize(x / scale, zero_point, data_type)
        ones = self.desc.output_scale_tensor.sizes
        return {
            "output_tensor": output,
            "output_scale_tensor": np.full(ones, scale, np.float32),
            "output_zero_point_tensor": zero_point.reshape(ones),
        }

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "output_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 2, 3, 4]),
            "output_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 1]),
            "output_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 1, 1, 1]),
        }
