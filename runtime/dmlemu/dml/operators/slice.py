"""SLICE, SLICE1 and SLICE_GRAD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import AtLeast, Length, Nonzero, SameRank, SameType, Sizes
from ..declared.values import Between
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import Slice1OperatorDesc, SliceGradOperatorDesc, SliceOperatorDesc
    from ..lowering.compile import Program


def _last_of_slice(desc: SliceOperatorDesc) -> Iterator[tuple[int, Between, str]]:
    for i, (first, size, step) in enumerate(zip(desc.offsets, desc.sizes, desc.strides, strict=True)):
        why = f"Offsets[{i}] + (Sizes[{i}] - 1) * Strides[{i}] + 1"
        yield i, Between(first + (size - 1) * step + 1, None), why


def _sizes_of_slice(desc: SliceOperatorDesc) -> Iterator[tuple[int, int, str]]:
    for i, size in enumerate(desc.sizes):
        yield i, size, f"Sizes[{i}]"


class Slice(Definition, of="SLICE"):
    """Every Strides[i]-th element from Offsets[i] on along each dimension i:
    ``output[o] = input[Offsets + o * Strides]``.

    Elements are copied bit by bit; those outside the slice are not read.  A stride of 0 is refused: DirectML
    does not say what it would do.
    """

    desc: SliceOperatorDesc

    KEEPS_NANS = True

    RULES = (
        SameType("input_tensor", "output_tensor"),
        SameRank("input_tensor", "output_tensor"),
        Length("offsets", of="input_tensor"),
        AtLeast("sizes", 1),
        AtLeast("strides", 1),
        Sizes("output_tensor", _sizes_of_slice, "`OutputTensor.Sizes[i]` is `Sizes[i]`."),
        Sizes(
            "input_tensor",
            _last_of_slice,
            "`InputTensor.Sizes[i]` is more than `Offsets[i] + (Sizes[i] - 1) * Strides[i]`.",
        ),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "take_slice",
            program.read("input_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("take_slice", first=self.desc.offsets, step=self.desc.strides),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, x = self.desc, np.asarray(inputs["input_tensor"])
        each = zip(desc.offsets, desc.sizes, desc.strides, strict=True)
        cut = tuple(slice(first, first + (size - 1) * step + 1, step) for first, size, step in each)
        return {"output_tensor": x[cut]}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 5]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3]),
            "offsets": [0, 1, 1, 0],
            "sizes": [1, 1, 2, 3],
            "strides": [1, 1, 2, 2],
        }


class _Windowed(Definition):
    """A window of the tensor ``WHOLE``, and ``PART``, the elements in it that strides select."""

    desc: Slice1OperatorDesc | SliceGradOperatorDesc

    def places(self) -> tuple[list[int], list[int]]:
        """The first element of the slice along each dimension, and the step to the next."""
        desc = self.desc
        steps = list(desc.input_window_strides)
        window = zip(desc.input_window_offsets, desc.input_window_sizes, steps, strict=True)
        return [first + (size - 1 if step < 0 else 0) for first, size, step in window], steps

    def index(self, sizes: Sequence[int]) -> tuple[Array, ...]:
        """The elements of the slice, as an index into the whole tensor."""
        each = zip(*self.places(), sizes, strict=True)
        return np.ix_(*(first + step * np.arange(size) for first, step, size in each))


def _rules(whole: str, part: str, whole_name: str, part_name: str) -> tuple[Any, ...]:
    def window_fits(desc: Slice1OperatorDesc) -> Iterator[tuple[int, Between, str]]:
        each = zip(desc.input_window_offsets, desc.input_window_sizes, strict=True)
        for i, (first, size) in enumerate(each):
            yield i, Between(first + size, None), f"InputWindowOffsets[{i}] + InputWindowSizes[{i}]"

    def part_fits(desc: Slice1OperatorDesc) -> Iterator[tuple[int, Between, str]]:
        each = zip(desc.input_window_sizes, desc.input_window_strides, strict=True)
        for i, (size, step) in enumerate(each):
            why = f"the elements that a stride of {step} selects from a window of {size}"
            yield i, Between(1, 1 + (size - 1) // abs(step)), why

    return (
        SameType(whole, part),
        SameRank(whole, part),
        Length("input_window_offsets", of=whole),
        AtLeast("input_window_sizes", 1),
        Nonzero("input_window_strides"),
        Sizes(
            whole,
            window_fits,
            f"`{whole_name}.Sizes[i]` is at least `InputWindowOffsets[i] + InputWindowSizes[i]`.",
        ),
        Sizes(
            part,
            part_fits,
            f"`{part_name}.Sizes[i]` is at most "
            "`1 + (InputWindowSizes[i] - 1) / abs(InputWindowStrides[i])`, rounded down.",
        ),
    )


class Slice1(_Windowed, of="SLICE1"):
    """Every InputWindowStrides[i]-th element of a window of the input, along each dimension i.

    ``output[o] = input[start + o * InputWindowStrides]``, where start is InputWindowOffsets or, along
    dimensions with a negative stride, the last element of the window:
    ``InputWindowOffsets + InputWindowSizes - 1``.  The output may have fewer elements than the window gives.

    Elements are copied bit by bit; those that are not copied are not read.  A stride of 0 is refused, as the
    operator's page says.
    """

    KEEPS_NANS = True

    RULES = _rules("input_tensor", "output_tensor", "InputTensor", "OutputTensor")

    def lower(self, program: Program) -> None:
        first, step = self.places()
        program.call(
            "take_slice",
            program.read("input_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("take_slice", first=first, step=step),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_tensor  # type: ignore[union-attr]
        return {"output_tensor": np.asarray(inputs["input_tensor"])[self.index(output.sizes)]}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 2]),
            "input_window_offsets": [0, 1, 1, 1],
            "input_window_sizes": [1, 1, 3, 4],
            "input_window_strides": [1, 1, 2, -3],
        }


class SliceGrad(_Windowed, of="SLICE_GRAD"):
    """The gradient of SLICE1: puts each element where SLICE1 takes it from, and 0 everywhere else.

    ``outputGradient[start + i * InputWindowStrides] = inputGradient[i]``, with start as in SLICE1; the window
    is one of OutputGradientTensor.  Elements are copied bit by bit.

    A stride of 0 is refused, as for SLICE1, though this operator's page speaks as if it were legal.
    """

    KEEPS_NANS = True

    RULES = _rules(
        "output_gradient_tensor", "input_gradient_tensor", "OutputGradientTensor", "InputGradientTensor"
    )

    def lower(self, program: Program) -> None:
        first, step = self.places()
        program.call(
            "put_slice",
            program.read("input_gradient_tensor"),
            program.write("output_gradient_tensor"),
            constants=kernels.pack("put_slice", first=first, step=step),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_gradient_tensor  # type: ignore[union-attr]
        gradient = np.asarray(inputs["input_gradient_tensor"])
        result = np.zeros(output.sizes, output.dtype)
        result[self.index(gradient.shape)] = gradient
        return {"output_gradient_tensor": result}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 2]),
            "output_gradient_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 4, 6]),
            "input_window_offsets": [0, 1, 1, 1],
            "input_window_sizes": [1, 1, 3, 4],
            "input_window_strides": [1, 1, 2, -3],
        }
