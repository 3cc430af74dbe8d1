"""Average, Lp and max pooling, and the gradients of average and max pooling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import AtLeast, SameSizes, SameType
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert, dtype_of, float64
from .families.pooling import Pooling, PoolingGradient, first_maxima

if TYPE_CHECKING:
    from ..declared.descs import (
        AveragePooling1OperatorDesc,
        AveragePoolingGradOperatorDesc,
        AveragePoolingOperatorDesc,
        LpPooling1OperatorDesc,
        LpPoolingOperatorDesc,
        MaxPooling1OperatorDesc,
        MaxPooling2OperatorDesc,
        MaxPoolingGradOperatorDesc,
        MaxPoolingOperatorDesc,
    )
    from ..lowering.compile import Operand, Program


class AveragePooling(Pooling, of="AVERAGE_POOLING AVERAGE_POOLING1"):
    """The mean of the elements under a window that moves over the spatial dimensions.

    Place w of the window of output o reads element ``o * Strides[i] + w * Dilations[i] - StartPadding[i]``
    along spatial dimension i; places outside the input add nothing.  The sum is divided by the number of
    places inside the input or, with IncludePadding, inside the input or its padding; if there are none, the
    result is 0.

    The output may be smaller or larger than the number of windows in the padded input, and OP_WINDOW_COUNT
    reports it, but for a number that is rounded up: places past the end of the padding are not counted.
    Sums are computed in FLOAT32 in row-major order of the window, also for FLOAT16, and divided in FLOAT32.
    """

    desc: AveragePoolingOperatorDesc | AveragePooling1OperatorDesc

    KERNEL = "average_pooling"

    def constants(self) -> Mapping[str, Any]:
        return {"include_padding": int(self.desc.include_padding)}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_tensor
        total = np.zeros(output.sizes, np.float32)
        count = np.zeros(output.sizes[2:])
        with np.errstate(all="ignore"):
            for element, inside, padded in self.places(np.asarray(inputs["input_tensor"]).astype(np.float32)):
                total = total + element
                count += padded if self.desc.include_padding else inside
            mean = total / np.maximum(count, 1).astype(np.float32)
        return {"output_tensor": convert(mean, output.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {"include_padding": False}


class AveragePoolingGrad(PoolingGradient, of="AVERAGE_POOLING_GRAD"):
    """The gradient of AVERAGE_POOLING: ``gradient[p] = sum of InputGradient[o] / n[o]``, over all outputs o
    of the pooling whose window contains element p of its input.

    n is the divisor of AVERAGE_POOLING: the number of places of the window inside the pooling's input or,
    with IncludePadding, inside the input or its padding.  OutputGradientTensor has the sizes of the pooling's
    input, InputGradientTensor those of its output, which may be larger than the number of windows.  Elements
    that no window contains are 0.

    Quotients and sums, in row-major order of the outputs, are FLOAT64, rounded once.
    """

    desc: AveragePoolingGradOperatorDesc

    KERNEL = "average_pooling_grad"

    def operands(self, program: Program) -> Sequence[Operand]:
        return program.read("input_gradient_tensor"), program.write("output_gradient_tensor")

    def constants(self) -> Mapping[str, Any]:
        return {"include_padding": int(self.desc.include_padding)}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_gradient_tensor
        gradient = float64(inputs["input_gradient_tensor"])
        numbers = np.arange(output.element_count).reshape(output.sizes)
        places = list(self.places(numbers))
        count = sum(padded if self.desc.include_padding else inside for _, inside, padded in places)
        part = gradient / np.maximum(count, 1)
        positions = np.stack([np.where(inside, number, -1) for number, inside, _ in places], axis=-1)
        parts = np.repeat(part[..., None], len(places), axis=-1)
        return {"output_gradient_tensor": self.added(positions, parts)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 3]),
            "output_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "strides": [1, 2],
            "window_size": [2, 2],
            "start_padding": [0, 1],
            "end_padding": [0, 1],
            "include_padding": False,
        }


class LpPooling(Pooling, of="LP_POOLING LP_POOLING1"):
    """The P-norm of the elements under a window: ``(sum of |x| ** P) ** (1 / P)``.

    Place w of the window of output o reads element ``o * Strides[i] + w * Dilations[i] - StartPadding[i]``
    along spatial dimension i; places outside the input add nothing.

    The page prints ``x ** P``; here, as in ONNX, the absolute value is raised.  Powers, sums (in row-major
    order of the window) and the root are computed in FLOAT64 and rounded once: P = 1 and P = 2 without a
    power function.  The output may be larger than the number of windows in the padded input.
    """

    desc: LpPoolingOperatorDesc | LpPooling1OperatorDesc

    ULPS = 1
    ULPS_REASON = "powers and roots above P = 2 are those of the kernel's pow"

    RULES = (*Pooling.RULES, AtLeast("p", 1))

    def __init__(self, desc: LpPoolingOperatorDesc | LpPooling1OperatorDesc) -> None:
        super().__init__(desc)
        self.ULPS = 0 if desc.p <= 2 else 1  # type: ignore[misc]

    def kernel(self) -> str:
        return {1: "l1_pooling", 2: "l2_pooling"}.get(self.desc.p, "lp_pooling")

    def constants(self) -> Mapping[str, Any]:
        return {"power": self.desc.p}

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        p, output = self.desc.p, self.desc.output_tensor
        total = np.zeros(output.sizes)
        with np.errstate(all="ignore"):
            for element, _, _ in self.places(float64(inputs["input_tensor"])):
                total = total + np.abs(element) ** p
            root = total if p == 1 else np.sqrt(total) if p == 2 else total ** (1 / p)
        return {"output_tensor": convert(root, output.data_type)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {"p": 2}


class MaxPooling(Pooling, of="MAX_POOLING"):
    """The largest of the elements under a window that moves over the spatial dimensions.

    Place w of the window of output o reads element ``o * Strides[i] + w * Dilations[i] - StartPadding[i]``
    along spatial dimension i; places outside the input are skipped.

    Of equal elements the first in row-major order is the maximum: +0 and -0 are equal.  OutputIndicesTensor
    receives its position in the whole packed input, batch and channel included: ``((n * C + c) * H + y) * W +
    x``, whatever the strides; a UINT32 receives the low bits.

    The documentation does not define two cases: here a NaN is skipped, and a window of NaNs gives NaN and the
    position of its first element; a window with no place inside the input gives the lowest value of the type
    (-infinity) and position 0.

    The output may be smaller or larger than the number of windows in the padded input, and OP_WINDOW_COUNT
    reports it, but for a number that is rounded up.
    """

    desc: MaxPoolingOperatorDesc

    KERNEL = "max_pooling"

    def operands(self, program: Program) -> Sequence[Operand]:
        indices = program.write("output_indices_tensor")
        return *super().operands(program), indices

    @property
    def has_indices(self) -> bool:
        return getattr(self.desc, "output_indices_tensor", None) is not None

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = np.asarray(inputs["input_tensor"])
        largest, position = first_maxima(self, x)
        outputs = {"output_tensor": largest}
        if self.has_indices:
            indices = self.desc.output_indices_tensor  # type: ignore[attr-defined]
            outputs["output_indices_tensor"] = position.astype(dtype_of(indices.data_type))
        return outputs

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {
            "output_indices_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 2, 3]),
        }


class MaxPoolingWithIndices(MaxPooling, of="MAX_POOLING1 MAX_POOLING2"):
    __doc__ = MaxPooling.__doc__

    desc: MaxPooling1OperatorDesc | MaxPooling2OperatorDesc  # type: ignore[assignment]

    RULES = (*Pooling.RULES, SameSizes("output_tensor", "output_indices_tensor"))


class MaxPoolingGrad(PoolingGradient, of="MAX_POOLING_GRAD"):
    """The gradient of MAX_POOLING2: each element of InputGradientTensor is added to the element of
    OutputGradientTensor that is the maximum of its window.

    The maximum is found in InputTensor, as MAX_POOLING2 does: of equal elements it is the first in row-major
    order, and of a window of NaNs the first element (a test of Microsoft's TensorFlow plugin expects that of
    DirectML).
    A window with no place inside the input has no effect.  Elements that are not a maximum are 0.

    Sums, in row-major order of InputGradientTensor, are FLOAT64, rounded once.
    """

    desc: MaxPoolingGradOperatorDesc

    KERNEL = "max_pooling_grad"

    RULES = (
        SameType("input_tensor", "input_gradient_tensor", "output_gradient_tensor"),
        SameSizes("input_tensor", "output_gradient_tensor"),
        *PoolingGradient.RULES[1:],
    )

    def operands(self, program: Program) -> Sequence[Operand]:
        read = (program.read(name) for name in ("input_tensor", "input_gradient_tensor"))
        return *read, program.write("output_gradient_tensor")

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = np.asarray(inputs["input_tensor"])
        _, position = first_maxima(self, x)
        inside = np.logical_or.reduce([inside for _, inside, _ in self.places(x)])
        positions = np.where(inside, position.astype(np.int64), -1)
        gradients = float64(inputs["input_gradient_tensor"])
        return {"output_gradient_tensor": self.added(positions, gradients)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return super().example() | {
            "input_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 3]),
            "output_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 5, 4]),
        }
