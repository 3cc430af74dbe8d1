"""QUANTIZED_LINEAR_CONVOLUTION."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.rules import AtLeast, Ones, SameRank, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .convolution_integer import IntegerConvolution
from .families.conversion import Array
from .families.convolution import BIAS, FORWARD, POSITIONS, channel_dimension, per_channel
from .families.quantization import quantize

if TYPE_CHECKING:
    from ..declared.descs import QuantizedLinearConvolutionOperatorDesc
    from ..lowering.compile import Operand, Program


class QuantizedLinearConvolution(IntegerConvolution, of="QUANTIZED_LINEAR_CONVOLUTION"):
    """``output = saturate(round((sum + Bias) * (InputScale * FilterScale / OutputScale)) + ZeroPoint)``,
    where ``sum`` is the result of CONVOLUTION_INTEGER.

    Input ``{N, C, [H], W}``, filter ``{OutputChannels, C / GroupCount, [FilterH], FilterW}``, output
    ``{N, OutputChannels, [OutputH], OutputW}``, whose spatial sizes are free.  The filter's scale and zero
    point are one or one per output channel, the others are one; an absent zero point is 0.
    OutputScaleTensor and OutputZeroPointTensor are inputs too.  The bias, one INT32 per output channel, has
    the scale of the sum and no zero point.  A padded position adds nothing: it counts as the zero point.
    Input, filter and output may each be INT8 or UINT8.

    Sums wrap as INT32.  The sum, the product and quotient of the scales and the product of both are each
    rounded to FLOAT32, and halves are rounded to even.  A NaN is rounded to 0.
    """

    desc: QuantizedLinearConvolutionOperatorDesc

    OUTPUT = TensorDataType.UINT8
    RULES = (
        SameRank("input_tensor", "filter_tensor", "bias_tensor", "output_tensor"),
        AtLeast("group_count", 1),
        *FORWARD,
        SameType("input_tensor", "input_zero_point_tensor"),
        SameType("filter_tensor", "filter_zero_point_tensor"),
        SameType("output_tensor", "output_zero_point_tensor"),
        *(
            Ones(f"{name}_tensor", "since it holds one number")
            for name in ("input_scale", "input_zero_point", "output_scale", "output_zero_point")
        ),
        per_channel("filter_scale_tensor"),
        per_channel("filter_zero_point_tensor"),
        BIAS,
    )

    USUAL = (POSITIONS,)

    def lower(self, program: Program) -> None:
        sums = program.temporary(TensorDataType.INT32, self.desc.output_tensor.sizes)
        self.convolve(program, sums.write())
        program.call(
            "scale_sums",
            sums.read(),
            self._spread(program, "bias_tensor"),
            self._spread(program, "input_scale_tensor"),
            self._spread(program, "filter_scale_tensor"),
            self._spread(program, "output_scale_tensor"),
            self._spread(program, "output_zero_point_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("scale_sums", joint=1),
        )

    def _spread(self, program: Program, name: str) -> Operand:
        """A parameter with the sizes of the output."""
        tensor: BufferTensorDesc | None = getattr(self.desc, name)
        if tensor is None:
            return program.read(name)
        sizes = self.desc.output_tensor.sizes
        channel = 1 if name == "bias_tensor" else channel_dimension(tensor)
        step = tensor.effective_strides[channel] if tensor.sizes[channel] > 1 else 0
        return program.read(name, sizes=sizes, strides=[0, step, *[0] * (len(sizes) - 2)])

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        def channels(name: str) -> Array:
            given = np.asarray(0 if inputs.get(name) is None else inputs[name])
            return given.reshape(-1, *[1] * len(self.desc.strides))

        sums = self.sums(inputs) + channels("bias_tensor").astype(np.int64)
        with np.errstate(all="ignore"):
            scale = channels("input_scale_tensor") * channels("filter_scale_tensor")
            x = sums.astype(np.int32).astype(np.float32) * (scale / channels("output_scale_tensor"))
        zero_point = channels("output_zero_point_tensor")
        return {"output_tensor": quantize(x, zero_point, self.desc.output_tensor.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        one = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 1])
        return {
            **super().example(),
            "input_scale_tensor": one,
            "filter_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 6, 1, 1]),
            "bias_tensor": BufferTensorDesc(TensorDataType.INT32, [1, 6, 1, 1]),
            "output_scale_tensor": one,
            "output_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 1, 1, 1]),
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {**super().page_changes(), "filter_scale_tensor": [1] * 4, "bias_tensor": [1] * 4}
