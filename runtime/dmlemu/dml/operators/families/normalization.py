"""Family: ``output = (input - m) * (r * Scale) + Bias``, m and r given or computed of groups of elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...declared.rules import Sizes
from ...declared.values import Among
from ...enums import TensorDataType
from .conversion import Array, convert, float64
from .fusion import call_fused, fused_reference
from .lines import axes_mask

if TYPE_CHECKING:
    from ...lowering.compile import Operand, Program
    from ...tensor_desc import BufferTensorDesc


def broadcast_sizes(name: str, c_name: str) -> Sizes:
    """Each size of a tensor is 1 or that of the input; the ranks are equal."""

    def follow(desc: Any) -> Iterator[tuple[int, Among, str]]:
        for d, size in enumerate(desc.input_tensor.sizes):
            yield d, Among([1, size]), f"a broadcast or the size of InputTensor in dimension {d}"

    sentence = f"Each size of `{c_name}` is 1 (broadcast) or that of `InputTensor` in the same dimension."
    return Sizes(name, follow, sentence)


def ones(tensor: BufferTensorDesc) -> tuple[int, ...]:
    """The dimensions of size 1."""
    return tuple(d for d, size in enumerate(tensor.sizes) if size == 1)


def spread(program: Program, desc: Any, name: str, sizes: Sequence[int]) -> Operand:
    """A tensor to read, dimensions of size 1 broadcast to ``sizes``; absent if it is, or if there is no such
    field."""
    tensor = getattr(desc, name, None)
    if tensor is None:
        return program.read(name)
    strides = [
        0 if size == 1 else stride
        for size, stride in zip(tensor.sizes, tensor.effective_strides, strict=True)
    ]
    return program.read(name, sizes=sizes, strides=strides)


def group_sizes(sizes: Sequence[int], axes: Iterable[int]) -> list[int]:
    """The sizes of a tensor with one number for each group."""
    return [1 if d in axes else size for d, size in enumerate(sizes)]


class Normalization(Definition):
    """An operator that is a line of ``kernels_c/operators/normalization/functions.inc``."""

    desc: Any

    ULPS = 1
    ULPS_REASON = "FLOAT64 is rounded once, or the sum of two FLOAT32s, which are rounded, too"

    def kernel(self) -> str:
        """The line."""
        raise NotImplementedError

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes along which a group of elements extends."""
        raise NotImplementedError

    def lower(self, program: Program) -> None:
        desc, axes = self.desc, self.axes
        sizes = desc.input_tensor.sizes
        of_groups = group_sizes(sizes, axes)
        factors = [spread(program, desc, name, sizes) for name in ("scale_tensor", "bias_tensor")]
        given = [spread(program, desc, name, of_groups) for name in ("mean_tensor", "variance_tensor")]
        call_fused(
            program,
            desc.output_tensor,
            getattr(desc, "fused_activation", None),
            self.kernel(),
            program.read("input_tensor"),
            *factors,
            program.read("fused_add_tensor"),
            *given,
            program.write("output_mean_tensor"),
            program.write("output_variance_tensor"),
            constants=constants(self.kernel(), axes, desc.epsilon if hasattr(desc, "epsilon") else 0.0),
        )

    def activated(self, y: Array) -> Array:
        """FLOAT64 results as the output: an activation gets them in FLOAT32."""
        desc = self.desc
        activation = getattr(desc, "fused_activation", None)
        if activation is not None:
            y = float64(convert(y, TensorDataType.FLOAT32))
        return fused_reference(y, activation, desc.output_tensor)


def constants(kernel: str, axes: Iterable[int], epsilon: float) -> bytes:
    return kernels.pack(kernel, axes_mask=axes_mask(tuple(axes)), epsilon=epsilon)


def float32(value: float) -> float:
    """A FLOAT field."""
    return float(np.float32(value))
