"""Family: convolutions, with or without quantization.

Forward convolutions share their rules, and all of them the places at which a filter meets its input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...declared.definition import Definition
from ...declared.places import Element
from ...declared.rules import AtLeast, Demand, Divisible, Length, Rule, Sizes, Window
from ...declared.values import Between
from ...enums import ConvolutionDirection
from ...tensor_desc import BufferTensorDesc
from .conversion import Array

if TYPE_CHECKING:
    from ...declared.schema import OperatorDesc
    from ...enums import FeatureLevel

_MOST_REACH = 3 * (2**32 - 1)
"""As far as sizes and paddings of 32 bits reach: DMLK_MOST_REACH of the kernels."""


def input_channels(desc: Any) -> Iterator[tuple[int, int, str]]:
    """The channels of all groups."""
    groups, channels = desc.group_count, desc.filter_tensor.sizes[1]
    yield 1, channels * groups, f"FilterTensor.Sizes[1] ({channels}) times GroupCount ({groups})"


def batch_and_channels(desc: Any) -> Iterator[tuple[int, int, str]]:
    """Of the output of a forward convolution."""
    yield 0, desc.input_tensor.sizes[0], "the batch count of InputTensor"
    yield 1, desc.filter_tensor.sizes[0], "the number of filters, FilterTensor.Sizes[0]"


def bias_channels(desc: Any) -> Iterator[tuple[int, int, str]]:
    """Of a bias."""
    if desc.bias_tensor is not None:
        for i in range(desc.bias_tensor.rank):
            if i == 1:
                yield i, desc.output_tensor.sizes[1], "the number of output channels, OutputTensor.Sizes[1]"
            else:
                yield i, 1, "since the bias has one element per output channel"


BIAS = Sizes(
    "bias_tensor", bias_channels, "`BiasTensor.Sizes[1]` is `OutputTensor.Sizes[1]`, the others are 1."
)


class Reach(Rule):
    """Dilations of at least 1, and strides that do not move windows further than numbers can say."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        for i, stride in enumerate(desc.strides):
            taps = desc.filter_tensor.sizes[2 + i]
            span, moves = (taps - 1) * desc.dilations[i] + 1, windows(desc).sizes[2 + i] - 1
            yield Demand(Element("dilations", i), Between(1, None))
            most = (_MOST_REACH - 1) // max(1, taps - 1)
            clause = f"spreads a window over {span} elements, more than {_MOST_REACH}"
            yield Demand(Element("dilations", i), Between(None, most), clause=clause)
            most = max(1, _MOST_REACH - span) // max(1, moves)
            reach = moves * stride + span
            clause = f"moves {moves + 1} windows of {span} over {reach} elements, more than {_MOST_REACH}"
            yield Demand(Element("strides", i), Between(None, most), clause=clause)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        return (
            f"Each of `Dilations` is at least 1, and the windows reach over at most {_MOST_REACH} elements, "
            "as many as sizes and paddings of 32 bits do."
        )


def windows(desc: Any) -> BufferTensorDesc:
    """The tensor that has an element for each window: the output, of a backward convolution the input."""
    forward = getattr(desc, "direction", ConvolutionDirection.FORWARD) is ConvolutionDirection.FORWARD
    tensor: BufferTensorDesc = desc.output_tensor if forward else desc.input_tensor
    return tensor


FORWARD: tuple[Rule, ...] = (
    Sizes(
        "input_tensor",
        input_channels,
        "`InputTensor.Sizes[1]` is `FilterTensor.Sizes[1]` times `GroupCount`.",
    ),
    Divisible("filter_tensor", 0, by="group_count"),
    Sizes(
        "output_tensor",
        batch_and_channels,
        "`OutputTensor.Sizes[0]` is `InputTensor.Sizes[0]`, `OutputTensor.Sizes[1]` is "
        "`FilterTensor.Sizes[0]`.",
    ),
    Length("strides", of="input_tensor", spatial=True),
    AtLeast("strides", 1),
    Reach(),
)
"""The sizes of a forward convolution."""

POSITIONS = Window("input_tensor", "output_tensor", window="filter_tensor")
"""What the spatial ones usually are."""


def per_channel(name: str) -> Sizes:
    """The rule of a tensor with one element, or one per output channel."""

    def follow(desc: Any) -> Iterator[tuple[int, int, str]]:
        tensor: BufferTensorDesc | None = getattr(desc, name)
        if tensor is None or tensor.element_count == 1:
            return
        channel, channels = channel_dimension(tensor), desc.output_tensor.sizes[1]
        for i in range(tensor.rank):
            if i == channel:
                yield i, channels, "the number of output channels; one value for all is the other possibility"
            else:
                yield i, 1, f"since only dimension {channel} can be channels"

    c_name = "".join(part.capitalize() for part in name.split("_"))
    return Sizes(
        name,
        follow,
        f"`{c_name}` has one element, or one per output channel: then its other sizes are 1, "
        "and the channels are the second of 4 dimensions, the first or second of fewer.",
    )


def channel_dimension(tensor: BufferTensorDesc) -> int:
    """Which dimension of a tensor with one element per output channel has more than one.

    ``{1, C, 1, 1}``; from feature level 4_0 on every other dimension may be omitted, so that C is the
    first or the second of fewer dimensions.
    """
    if tensor.rank == 4:
        return 1
    larger = [i for i, size in enumerate(tensor.sizes) if size > 1]
    return min(larger[0], 1, tensor.rank - 1) if larger else 0


class AnyConvolution(Definition):
    """A convolution; ``desc`` has Strides, Dilations, StartPadding and GroupCount."""

    RULES: ClassVar[Sequence[Rule]]

    def taps(self) -> Iterator[tuple[int, ...]]:
        """The filter's elements of one channel, in row-major order."""
        return np.ndindex(*self.desc.filter_tensor.sizes[2:])

    def places(self, tap: tuple[int, ...], positions: Sequence[int], size: Sequence[int]) -> tuple[Any, Any]:
        """The indices at which a tap of the filter lies when its window is at each position, as an index
        of spatial dimensions of those sizes, and whether they are inside.  Those outside are clipped."""
        desc = self.desc
        at, inside = [], np.array(True)
        for d, count in enumerate(positions):
            i = np.arange(count) * desc.strides[d] + tap[d] * desc.dilations[d] - desc.start_padding[d]
            inside = np.logical_and.outer(inside, (i >= 0) & (i < size[d]))
            at.append(np.clip(i, 0, size[d] - 1))
        return (slice(None), slice(None), *np.ix_(*at)), inside

    def forward(self, x: Array, w: Array) -> Array:
        """The sums of the products, in the type of ``x``; a place outside of it is 0."""
        groups, size = self.desc.group_count, self.desc.output_tensor.sizes
        y = np.zeros((size[0], groups, size[1] // groups, *size[2:]), x.dtype)
        filters = np.moveaxis(w.reshape(groups, -1, *w.shape[1:]), (0, 1, 2), (-3, -2, -1))  # at a tap
        for tap in self.taps():
            index, inside = self.places(tap, size[2:], x.shape[2:])
            met = np.where(inside, x[index], 0).reshape(x.shape[0], groups, -1, *size[2:])
            y += np.einsum("ngc...,gfc->ngf...", met, filters[tap])
        sums: Array = y.reshape(size)
        return sums
