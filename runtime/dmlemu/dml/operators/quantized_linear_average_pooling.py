"""QUANTIZED_LINEAR_AVERAGE_POOLING."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import SameType, Sizes
from ..declared.values import Among, Exactly, Values
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.pooling import Pooling
from .families.quantization import quantize

if TYPE_CHECKING:
    from ..declared.descs import QuantizedLinearAveragePoolingOperatorDesc
    from ..declared.rules import Rule
    from ..lowering.compile import Operand, Program

_PARAMETERS = (
    "input_scale_tensor",
    "input_zero_point_tensor",
    "output_scale_tensor",
    "output_zero_point_tensor",
)


def _channel_dimension(tensor: BufferTensorDesc) -> int:
    """The dimension of the channels: the second of {N, C, ..}; of fewer dimensions the first above 1."""
    if tensor.rank >= 4:
        return 1
    return next((d for d, size in enumerate(tensor.sizes) if size > 1), 0)


def _one_or_each_channel(name: str) -> Callable[[Any], Iterator[tuple[int, int | Values, str]]]:
    def follow(desc: Any) -> Iterator[tuple[int, int | Values, str]]:
        tensor = getattr(desc, name)
        if tensor is None:
            return
        channel, channels = _channel_dimension(tensor), desc.input_tensor.sizes[1]
        for i in range(tensor.rank):
            if i == channel:
                yield i, Among((1, channels)), f"one number, or one for each of the {channels} channels"
            else:
                yield i, Exactly(1), f"since only dimension {channel} can be channels"

    return follow


def _parameter_rules() -> Iterator[Rule]:
    for name in _PARAMETERS:
        c_name = "".join(part.capitalize() for part in name.split("_"))
        yield Sizes(
            name,
            _one_or_each_channel(name),
            f"`{c_name}` has one element, or one for each channel: then its other sizes are 1, and the "
            "channels are its second dimension, and with fewer than 4 dimensions any one.",
        )


class QuantizedLinearAveragePooling(Pooling, of="QUANTIZED_LINEAR_AVERAGE_POOLING"):
    """AVERAGE_POOLING1 of small integers: ``mean = sum of (x - InputZeroPoint) * (InputScale / n)`` and
    ``output = saturate(round(mean / OutputScale) + OutputZeroPoint)``.

    Windows are those of AVERAGE_POOLING1, and so is n, the number of places inside the input or, with
    IncludePadding, inside the input or its padding; padding counts as the zero point.  If there are none, the
    mean is 0.  Scales and zero points are one number or one for each channel; a missing zero point is 0.

    The documentation leaves the arithmetic open: here the sum is exact (INT32, which wraps), the quotient
    InputScale / n, the product and the quotient by OutputScale are each rounded to FLOAT32, and halves are
    rounded to even.  A NaN is rounded to 0.
    """

    desc: QuantizedLinearAveragePoolingOperatorDesc

    KERNEL = "quantized_linear_average_pooling"

    RULES = (
        *(rule for rule in Pooling.RULES if not isinstance(rule, SameType)),
        SameType("input_tensor", "input_zero_point_tensor"),
        SameType("output_tensor", "output_zero_point_tensor"),
        *_parameter_rules(),
    )

    def operands(self, program: Program) -> Sequence[Operand]:
        read = [program.read(name) for name in ("input_tensor", *_PARAMETERS)]
        return *read, program.write("output_tensor")

    def constants(self) -> Mapping[str, Any]:
        return {"include_padding": int(self.desc.include_padding)}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        def parameter(name: str) -> Array:
            given = np.zeros(1, np.int32) if inputs.get(name) is None else np.asarray(inputs[name])
            return given.reshape(1, -1, *[1] * len(self.desc.strides))

        output = self.desc.output_tensor
        zero_point = parameter("input_zero_point_tensor").astype(np.int64)
        total = np.zeros(output.sizes, np.int64)
        count = np.zeros(output.sizes[2:])
        for element, inside, padded in self.places(np.asarray(inputs["input_tensor"])):
            total += np.where(inside, element.astype(np.int64) - zero_point, 0)
            count += padded if self.desc.include_padding else inside
        count = count.astype(np.float32)
        with np.errstate(all="ignore"):
            mean = total.astype(np.float32) * (parameter("input_scale_tensor") / count)
            quotient = np.where(count > 0, mean, np.float32(0)) / parameter("output_scale_tensor")
        result = quantize(quotient, parameter("output_zero_point_tensor"), output.data_type)
        return {"output_tensor": result}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {
            "input_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 2, 5, 4]),
            "input_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 1, 1]),
            "input_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 2, 1, 1]),
            "output_scale_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 1]),
            "output_zero_point_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 1, 1, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 2, 2, 3]),
            "include_padding": False,
        }
