"""Family: operators that compute each output element from the input elements under a window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...declared.rules import AtLeast, EachAtLeast1, Length, Rule, SameSizes, SameType, Window
from ...enums import TensorDataType
from ...tensor_desc import BufferTensorDesc
from .conversion import Array, convert

if TYPE_CHECKING:
    from ...lowering.compile import Operand, Program


class Pooling(Definition):
    """A pooling operator that runs the ``pooling`` kernel named ``KERNEL``.

    Numbered variants share a class: without Dilations the places of a window are adjacent.
    """

    KERNEL: ClassVar[str]

    RULES: ClassVar[Sequence[Rule]] = (
        SameType("input_tensor", "output_tensor"),
        SameSizes("input_tensor", "output_tensor", only=slice(0, 2)),
        Length("strides", of="input_tensor", spatial=True),
        AtLeast("strides", 1),
        EachAtLeast1("window_size", "dilations"),
    )

    USUAL: ClassVar[Sequence[Rule]] = (
        Window("input_tensor", "output_tensor", window="window_size", rounded_up=True),
    )

    @property
    def dilations(self) -> Sequence[int]:
        steps: Sequence[int] = getattr(self.desc, "dilations", [1] * len(self.desc.strides))
        return steps

    @property
    def windows(self) -> Sequence[int]:
        """The number of windows along each spatial dimension."""
        sizes: Sequence[int] = self.desc.output_tensor.sizes[2:]
        return sizes

    def kernel(self) -> str:
        return self.KERNEL

    def constants(self) -> Mapping[str, Any]:
        """The kernel's constants besides those of the window."""
        return {}

    def operands(self, program: Program) -> Sequence[Operand]:
        return program.read("input_tensor"), program.write("output_tensor")

    def lower(self, program: Program) -> None:
        desc, kernel = self.desc, self.kernel()
        constants = kernels.pack(
            kernel,
            spatial=len(desc.strides),
            window=desc.window_size,
            strides=desc.strides,
            dilations=self.dilations,
            start_padding=desc.start_padding,
            end_padding=desc.end_padding,
            **self.constants(),
        )
        program.call(kernel, *self.operands(program), constants=constants)

    def places(self, x: Array) -> Iterator[tuple[Array, Array, Array]]:
        """For each place of the window in row-major order, and each output: the element there, 0 outside
        the input; whether the place is inside the input; whether it is inside the input or its padding."""
        desc, spatial = self.desc, len(self.desc.strides)
        for place in np.ndindex(*desc.window_size):
            at, inside, padded = [], np.array(True), np.array(True)
            for d in range(spatial):
                size, outputs = x.shape[2 + d], np.arange(self.windows[d])
                i = outputs * desc.strides[d] + place[d] * self.dilations[d] - desc.start_padding[d]
                inside = np.logical_and.outer(inside, (i >= 0) & (i < size))
                padded = np.logical_and.outer(padded, i < size + desc.end_padding[d])
                at.append(np.clip(i, 0, size - 1))
            index = (slice(None), slice(None), *np.ix_(*at))
            element = x[index]
            yield np.where(inside, element, x.dtype.type(0)), inside, padded

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 5, 4]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 3]),
            "strides": [2, 2],
            "window_size": [2, 2],
            "start_padding": [0, 1],
            "end_padding": [0, 1],
            "dilations": [2, 1],
        }


class PoolingGradient(Pooling):
    """The gradient of a pooling: OutputGradientTensor is that of the pooling's input."""

    RULES: ClassVar[Sequence[Rule]] = (
        SameType("input_gradient_tensor", "output_gradient_tensor"),
        SameSizes("input_gradient_tensor", "output_gradient_tensor", only=slice(0, 2)),
        Length("strides", of="output_gradient_tensor", spatial=True),
        AtLeast("strides", 1),
        EachAtLeast1("window_size", "dilations"),
    )

    USUAL: ClassVar[Sequence[Rule]] = (
        Window("output_gradient_tensor", "input_gradient_tensor", window="window_size", rounded_up=True),
    )

    @property
    def windows(self) -> Sequence[int]:
        sizes: Sequence[int] = self.desc.input_gradient_tensor.sizes[2:]
        return sizes

    def added(self, positions: Array, gradients: Array) -> Array:
        """The gradients added at positions of the packed output, in this order; position -1: nowhere."""
        output = self.desc.output_gradient_tensor
        sums = np.zeros(output.element_count)
        with np.errstate(all="ignore"):
            np.add.at(sums, positions[positions >= 0], gradients[positions >= 0])
        return convert(sums.reshape(output.sizes), output.data_type)


def first_maxima(pooling: Pooling, x: Array) -> tuple[Array, Array]:
    """The first maximum of each window, and its position in the packed input.

    NaNs are skipped unless all are; without a place inside the input: the lowest value, and 0."""
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    places = np.arange(x.size, dtype=np.uint64).reshape(x.shape)
    largest, position, found = np.array(lowest, x.dtype), np.uint64(0), np.array(False)
    for (element, inside, _), (place, _, _) in zip(pooling.places(x), pooling.places(places), strict=True):
        with np.errstate(invalid="ignore"):
            larger = (element > largest) | ((largest != largest) & (element == element))
        wins = inside & (~found | larger)
        largest, position = np.where(wins, element, largest), np.where(wins, place, position)
        found = found | inside
    return largest, position
