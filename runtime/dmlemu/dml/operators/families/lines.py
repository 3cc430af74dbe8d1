"""Family: operators that compute each output element from the elements along some axes: softmax, scans."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...declared.rules import Axis, HasCount, Ones, SameSizes, SameType
from ...declared.values import Between
from ...enums import AxisDirection, TensorDataType
from ...tensor_desc import BufferTensorDesc
from .conversion import Array, convert, float64

if TYPE_CHECKING:
    from ...declared.rules import Rule
    from ...lowering.compile import Program

_FLOAT = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 4])

SAME: tuple[Rule, ...] = (
    SameType("input_tensor", "output_tensor"),
    SameSizes("input_tensor", "output_tensor"),
)


def axes_mask(axes: Sequence[int]) -> int:
    """The axes as kernels take them: a bit for each."""
    return sum(1 << axis for axis in axes)


def of_lines(function: Callable[[Array], Array], x: Array, axes: Sequence[int]) -> Array:
    """``function`` of the lines of ``x`` along the axes: to it they are the last dimension, row-major."""
    order = [d for d in range(x.ndim) if d not in axes] + sorted(axes)
    moved = np.transpose(x, order)
    lines = moved.reshape([x.shape[d] for d in order[: x.ndim - len(axes)]] + [-1])
    return np.transpose(function(lines).reshape(moved.shape), np.argsort(order))


class Softmax(Definition):
    """A function of each element and of its group, the elements along the axes.

    The first version has no Axes: its groups are the rows of the last dimension.
    """

    desc: Any

    RULES: ClassVar[Sequence[Rule]] = (
        *SAME,
        Ones("input_tensor", "as the effective rank (without leading ones) is at most 2", but_last=2),
    )

    @property
    def axes(self) -> tuple[int, ...]:
        return (self.desc.input_tensor.rank - 1,)

    def constants(self) -> bytes:
        return kernels.pack(self.KERNEL, axes_mask=axes_mask(self.axes))

    def lower(self, program: Program) -> None:
        tensors = program.read("input_tensor"), program.write("output_tensor")
        program.call(self.KERNEL, *tensors, constants=self.constants())

    KERNEL: ClassVar[str]

    def function(self, groups: Array) -> Array:
        """The reference, of FLOAT64 groups in the last dimension."""
        raise NotImplementedError

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        y = self.apply(float64(inputs["input_tensor"]))
        return {"output_tensor": convert(y, self.desc.output_tensor.data_type)}

    def apply(self, x: Array) -> Array:
        """The reference, of FLOAT64."""
        with np.errstate(all="ignore"):
            return of_lines(self.function, x, self.axes)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {"input_tensor": _FLOAT, "output_tensor": _FLOAT}


class WithAxes(Softmax):
    """The second version: a group extends along all of Axes."""

    # The documentation does not cover repeated axes, which are never intended, and no axes, where each
    # group would be one element.
    RULES = (*SAME, HasCount("axes", Between(1, None)), Axis("axes", of="input_tensor"))

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(self.desc.axes)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {**super().example(), "axes": [1, 3]}


class Cumulative(Definition):
    """Every partial result along an axis."""

    KERNEL: ClassVar[str]
    EXCLUSIVE: ClassVar[str]
    """The field that excludes the element itself."""
    FIRST: ClassVar[int]
    """The result of no elements."""
    ACCUMULATE: ClassVar[Any]
    """The reference, a ufunc."""

    RULES: ClassVar[Sequence[Rule]] = (*SAME, Axis("axis", of="input_tensor"))

    def lower(self, program: Program) -> None:
        desc = self.desc
        constants = kernels.pack(
            self.KERNEL,
            axis=desc.axis,
            decreasing=int(desc.axis_direction == AxisDirection.DECREASING),
            exclusive=int(getattr(desc, self.EXCLUSIVE)),
        )
        program.call(
            self.KERNEL, program.read("input_tensor"), program.write("output_tensor"), constants=constants
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x = np.asarray(inputs["input_tensor"])
        x = float64(x) if x.dtype.kind == "f" else x
        with np.errstate(all="ignore"):
            y = of_lines(self._scan, x, [self.desc.axis])
        return {"output_tensor": convert(y, self.desc.output_tensor.data_type)}

    def _scan(self, lines: Array) -> Array:
        turn = -1 if self.desc.axis_direction == AxisDirection.DECREASING else 1
        lines = lines[..., ::turn]
        if getattr(self.desc, self.EXCLUSIVE):
            first = np.full_like(lines[..., :1], self.FIRST)
            lines = np.concatenate([first, lines[..., :-1]], -1)
        result: Array = self.ACCUMULATE.accumulate(lines, -1, dtype=lines.dtype)[..., ::turn]
        return result

    @classmethod
    def example(cls) -> dict[str, Any]:
        tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4])
        fields = {"input_tensor": tensor, "output_tensor": tensor, "axis": 2, cls.EXCLUSIVE: False}
        return {**fields, "axis_direction": AxisDirection.INCREASING}
