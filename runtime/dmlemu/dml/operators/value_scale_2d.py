"""VALUE_SCALE_2D."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import HasCount, SameSizes, SameType, Sizes
from ..declared.values import Among
from ..enums import TensorDataType
from ..structs import ScaleBias
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert
from .families.element_wise import scaled

if TYPE_CHECKING:
    from ..declared.descs import ValueScale2dOperatorDesc
    from ..lowering.compile import Operand, Program


def _channels(desc: Any) -> Iterator[tuple[int, int, str]]:
    yield 1, len(desc.bias), "which is ChannelCount"


class ValueScale2d(Definition, of="VALUE_SCALE_2D"):
    """``output[n, c, h, w] = Scale * input[n, c, h, w] + Bias[c]``, in FLOAT32 with two roundings.

    FLOAT16 outputs are rounded once more.
    """

    desc: ValueScale2dOperatorDesc

    RULES = (
        SameType("input_tensor", "output_tensor"),
        HasCount("bias", Among([1, 3])),
        Sizes("input_tensor", _channels, "`InputTensor.Sizes[1]` is `ChannelCount`."),
        SameSizes("input_tensor", "output_tensor"),
    )

    def lower(self, program: Program) -> None:
        """One call for each channel."""
        for channel, bias in enumerate(self.desc.bias):
            constants = kernels.pack("identity", has_scale_bias=1, scale=self.desc.scale, bias=bias)
            operands = program.read("input_tensor"), program.write("output_tensor")
            program.call("identity", *(_channel(each, channel) for each in operands), constants=constants)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, data_type = np.asarray(inputs["input_tensor"]), self.desc.output_tensor.data_type
        with np.errstate(all="ignore"):
            planes = [
                scaled(x[:, channel], ScaleBias(self.desc.scale, bias), data_type)
                for channel, bias in enumerate(self.desc.bias)
            ]
        return {"output_tensor": convert(np.stack(planes, 1), data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [2, 3, 3, 4])
        return {"input_tensor": tensor, "output_tensor": tensor, "scale": 0.5, "bias": [1.0, -2.0, 3.0]}


def _channel(tensor: Operand, channel: int) -> Operand:
    """The view of one channel."""
    sizes = (tensor.sizes[0], 1, *tensor.sizes[2:])
    start = channel * tensor.strides[1] * BufferTensorDesc(tensor.data_type, [1]).dtype.itemsize
    return replace(tensor, sizes=sizes, offset=tensor.offset + start, byte_size=tensor.byte_size - start)
