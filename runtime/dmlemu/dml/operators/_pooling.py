"""Family: operators that compute each output element from the input elements under a window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ._conversion import Array
from .definition import Definition
from .rules import AtLeast, Length, Rule, SameSizes, SameType, Window

if TYPE_CHECKING:
    from ..lowering.compile import Program


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
        AtLeast("window_size", 1),
        Window("input_tensor", "output_tensor", window="window_size", or_more=True),
    )

    @property
    def dilations(self) -> Sequence[int]:
        steps: Sequence[int] = getattr(self.desc, "dilations", [1] * len(self.desc.strides))
        return steps

    def constants(self) -> Mapping[str, Any]:
        """The kernel's constants besides those of the window."""
        return {}

    def lower(self, program: Program) -> None:
        desc = self.desc
        constants = kernels.pack(
            self.KERNEL,
            spatial=len(desc.strides),
            window=desc.window_size,
            strides=desc.strides,
            dilations=self.dilations,
            start_padding=desc.start_padding,
            end_padding=desc.end_padding,
            **self.constants(),
        )
        program.call(
            self.KERNEL, program.read("input_tensor"), program.write("output_tensor"), constants=constants
        )

    def places(self, x: Array) -> Iterator[tuple[Array, Array, Array]]:
        """For each place of the window in row-major order, and each output: the element there, 0 outside
        the input; whether the place is inside the input; whether it is inside the input or its padding."""
        desc, spatial = self.desc, len(self.desc.strides)
        for place in np.ndindex(*desc.window_size):
            at, inside, padded = [], np.array(True), np.array(True)
            for d in range(spatial):
                size, outputs = x.shape[2 + d], np.arange(desc.output_tensor.sizes[2 + d])
                i = outputs * desc.strides[d] + place[d] * self.dilations[d] - desc.start_padding[d]
                inside = np.logical_and.outer(inside, (i >= 0) & (i < size))
                padded = np.logical_and.outer(padded, i < size + desc.end_padding[d])
                at.append(np.clip(i, 0, size - 1))
            index = (slice(None), slice(None), *np.ix_(*at))
            element = x[index]
            yield np.where(inside, element, x.dtype.type(0)), inside, padded
