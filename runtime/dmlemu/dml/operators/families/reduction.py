"""Family: operators that reduce the listed axes of a tensor to size 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...declared.rules import Axis, SameRank, Sizes
from ...enums import AxisDirection, ReduceFunction, TensorDataType
from ...tensor_desc import BufferTensorDesc
from .conversion import Array, convert, float64

if TYPE_CHECKING:
    from ...lowering.compile import Program


def _reduced_sizes(desc: Any) -> Iterator[tuple[int, int, str]]:
    for d, size in enumerate(desc.input_tensor.sizes):
        if d in desc.axes:
            yield d, 1, f"since dimension {d} is in Axes {list(desc.axes)}"
        else:
            yield d, size, f"the size of InputTensor, since dimension {d} is not in Axes {list(desc.axes)}"


# The documentation does not cover repeated or empty axes: a repeated one is rejected, as it is never
# intended; an empty list reduces each element by itself.
REDUCED = (
    Axis("axes", of="input_tensor"),
    SameRank("input_tensor", "output_tensor"),
    Sizes(
        "output_tensor",
        _reduced_sizes,
        "`OutputTensor.Sizes[d]` is 1 for each d in `Axes`, otherwise `InputTensor.Sizes[d]`.",
    ),
)
"""The rules of Axes and of the output's sizes."""


def call_reduce(
    program: Program, function: ReduceFunction, axes: Sequence[int], direction: AxisDirection
) -> None:
    """The call of the function's kernel; ``direction`` resolves the ties of ARGMAX and ARGMIN."""
    kernel = f"reduce_{function.name.lower()}"
    constants = kernels.pack(
        kernel,
        axes_mask=sum(1 << axis for axis in axes),
        last_index=int(direction == AxisDirection.DECREASING),
    )
    program.call(kernel, program.read("input_tensor"), program.write("output_tensor"), constants=constants)


def reduced(x: Array, axes: Sequence[int]) -> Array:
    """``x`` with the elements that are reduced together, in row-major order, in one last dimension."""
    kept = [d for d in range(x.ndim) if d not in axes]
    return np.transpose(x, [*kept, *sorted(axes)]).reshape([x.shape[d] for d in kept] + [-1])


def index_of_extreme(
    x: Array, axes: Sequence[int], output: BufferTensorDesc, largest: bool, direction: AxisDirection
) -> Array:
    """ARGMAX and ARGMIN: the index of the extreme among the elements reduced together.

    Ties: INCREASING takes the first, DECREASING the last.  A NaN never beats a number; where all are NaN
    the index is 0.
    """
    rows = reduced(float64(x) if x.dtype.kind == "f" else x, axes)
    extreme = np.fmax.reduce(rows, -1, keepdims=True) if largest else np.fmin.reduce(rows, -1, keepdims=True)
    hit = rows == extreme
    first, last = np.argmax(hit, -1), rows.shape[-1] - 1 - np.argmax(hit[..., ::-1], -1)
    index = np.where(hit.any(-1) & (direction == AxisDirection.DECREASING), last, first)
    return convert(index, output.data_type).reshape(output.sizes)


class Argument(Definition):
    """ARGMAX and ARGMIN, which differ only in the element searched for."""

    FUNCTION: ClassVar[ReduceFunction]

    RULES = REDUCED

    def lower(self, program: Program) -> None:
        desc = self.desc
        call_reduce(program, self.FUNCTION, desc.axes, desc.axis_direction)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x, largest = np.asarray(inputs["input_tensor"]), self.FUNCTION == ReduceFunction.ARGMAX
        index = index_of_extreme(x, desc.axes, desc.output_tensor, largest, desc.axis_direction)
        return {"output_tensor": index}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "output_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 2, 1, 1]),
            "axes": [2, 3],
            "axis_direction": AxisDirection.INCREASING,
        }
