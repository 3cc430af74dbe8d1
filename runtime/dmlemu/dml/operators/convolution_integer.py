"""CONVOLUTION_INTEGER."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..enums import TensorDataType
from ..lowering.compile import Kept
from ..tensor_desc import BufferTensorDesc
from ._conversion import Array
from .definition import Definition
from .rules import AtLeast, Divisible, Length, Ones, SameRank, SameType, Sizes, Window

if TYPE_CHECKING:
    from ..lowering.compile import Operand, Program
    from .descs import ConvolutionIntegerOperatorDesc

_FILTERS, _CHANNELS = 16, 4  # in a block of the kernel


def _input_channels(desc: ConvolutionIntegerOperatorDesc) -> Iterator[tuple[int, int, str]]:
    groups, channels = desc.group_count, desc.filter_tensor.sizes[1]
    yield 1, channels * groups, f"FilterTensor.Sizes[1] ({channels}) times GroupCount ({groups})"


def _batch_and_channels(desc: ConvolutionIntegerOperatorDesc) -> Iterator[tuple[int, int, str]]:
    yield 0, desc.input_tensor.sizes[0], "the batch count of InputTensor"
    yield 1, desc.filter_tensor.sizes[0], "the number of filters, FilterTensor.Sizes[0]"


def _filter_zero_points(desc: ConvolutionIntegerOperatorDesc) -> Iterator[tuple[int, int, str]]:
    zero_point = desc.filter_zero_point_tensor
    if zero_point is None or zero_point.element_count == 1:
        return
    channel, channels = _channel_dimension(zero_point), desc.output_tensor.sizes[1]
    for i in range(zero_point.rank):
        if i == channel:
            yield i, channels, "the number of output channels; one value for all is the other possibility"
        else:
            yield i, 1, f"since only dimension {channel} can be channels"


class ConvolutionInteger(Definition, of="CONVOLUTION_INTEGER"):
    """Forward convolution (cross-correlation: the filter is not flipped) of 8-bit integers to INT32.

    Input ``{N, C, [H], W}``, filter ``{OutputChannels, C / GroupCount, [FilterH], FilterW}``, output
    ``{N, OutputChannels, [OutputH], OutputW}``.  Along spatial dimension i the output has
    ``(Input + StartPadding[i] + EndPadding[i] - ((Filter - 1) * Dilations[i] + 1)) / Strides[i] + 1``
    elements.  Strides move the window, Dilations spread the filter's elements; both are at least 1.

    Zero points are subtracted before the product; a missing one is 0.  The input has one, the filter one
    or one per output channel; they share one DimensionCount, and all their sizes are 1 except that of the
    channels (the second of 4 dimensions; with fewer, the first or the second).  A padded position adds
    nothing: it counts as the zero point.  Sums wrap as INT32.

    Tensors of 3 dimensions, from feature level 4_0 on, have one spatial dimension.
    """

    desc: ConvolutionIntegerOperatorDesc

    RULES = (
        SameRank("input_tensor", "filter_tensor", "output_tensor"),
        AtLeast("group_count", 1),
        Sizes(
            "input_tensor",
            _input_channels,
            "`InputTensor.Sizes[1]` is `FilterTensor.Sizes[1]` times `GroupCount`.",
        ),
        Divisible("filter_tensor", 0, by="group_count"),
        Sizes(
            "output_tensor",
            _batch_and_channels,
            "`OutputTensor.Sizes[0]` is `InputTensor.Sizes[0]`, `OutputTensor.Sizes[1]` is "
            "`FilterTensor.Sizes[0]`.",
        ),
        Length("strides", of="input_tensor", spatial=True),
        AtLeast("strides", 1),
        Window("input_tensor", "output_tensor", window="filter_tensor"),
        SameType("input_tensor", "input_zero_point_tensor"),
        SameType("filter_tensor", "filter_zero_point_tensor"),
        SameRank("input_zero_point_tensor", "filter_zero_point_tensor"),
        Ones("input_zero_point_tensor", "since the input has one zero point"),
        Sizes(
            "filter_zero_point_tensor",
            _filter_zero_points,
            "`FilterZeroPointTensor` has one element, or one per output channel: then its other sizes are 1, "
            "and the channels are the second of 4 dimensions, the first or second of fewer.",
        ),
    )

    def lower(self, program: Program) -> None:
        desc = self.desc
        spatial = len(desc.strides)
        constants = kernels.pack(
            "convolution_integer",
            spatial=spatial,
            groups=desc.group_count,
            strides=desc.strides,
            dilations=desc.dilations,
            start_padding=desc.start_padding,
            end_padding=desc.end_padding,
        )
        program.call(
            "convolution_integer",
            program.read("input_tensor"),
            _zero_points(program, "input_zero_point_tensor", desc.input_zero_point_tensor),
            _filter(program, desc.group_count),
            _zero_points(program, "filter_zero_point_tensor", desc.filter_zero_point_tensor),
            program.write("output_tensor"),
            constants=constants,
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x = np.asarray(inputs["input_tensor"]).astype(np.int64)
        w = np.asarray(inputs["filter_tensor"]).astype(np.int64)
        if desc.input_zero_point_tensor is not None:
            x = x - np.asarray(inputs["input_zero_point_tensor"]).astype(np.int64).reshape(())
        if desc.filter_zero_point_tensor is not None:
            zero_points = np.asarray(inputs["filter_zero_point_tensor"]).astype(np.int64)
            w = w - zero_points.reshape(-1, *[1] * (w.ndim - 1))
        y = np.zeros(desc.output_tensor.sizes, np.int64)
        # Spatial dimensions first: one index then selects everything at a position.
        x, w, y_at = (np.moveaxis(each, (0, 1), (-2, -1)) for each in (x, w, y))
        filters = w.shape[-2]
        for channel in range(filters):
            first = channel // (filters // desc.group_count) * w.shape[-1]
            group = slice(first, first + w.shape[-1])
            for position in np.ndindex(y_at.shape[:-2]):
                for tap in np.ndindex(w.shape[:-2]):
                    at = self._input_position(position, tap)
                    if all(0 <= i < size for i, size in zip(at, x.shape[:-2], strict=True)):
                        y_at[position][:, channel] += x[at][:, group] @ w[tap][channel]
        return {"output_tensor": y.astype(np.int32)}

    def _input_position(self, position: tuple[int, ...], tap: tuple[int, ...]) -> tuple[int, ...]:
        """Where in the input a tap of the filter lies for an output position; outside is padding."""
        desc = self.desc
        windows = zip(position, desc.strides, tap, desc.dilations, desc.start_padding, strict=True)
        return tuple(at * stride + t * dilation - padding for at, stride, t, dilation, padding in windows)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 4, 8, 9]),
            "input_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 1, 1, 1]),
            "filter_tensor": BufferTensorDesc(TensorDataType.INT8, [6, 2, 3, 2]),
            "filter_zero_point_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 6, 1, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.INT32, [1, 6, 4, 10]),
            "strides": [2, 1],
            "dilations": [1, 2],
            "start_padding": [1, 0],
            "end_padding": [0, 3],
            "group_count": 2,
        }


def _channel_dimension(zero_point: BufferTensorDesc) -> int:
    """Which dimension of the filter's zero points counts output channels.

    ``{1, C, 1, 1}``; from feature level 4_0 on every other dimension may be omitted, so that C is the
    first or the second of fewer dimensions.
    """
    if zero_point.rank == 4:
        return 1
    larger = [i for i, size in enumerate(zero_point.sizes) if size > 1]
    return min(larger[0], 1, zero_point.rank - 1) if larger else 0


def _filter(program: Program, groups: int) -> Operand:
    """The filter, kept in blocks of four channels by 16 filters, which the kernel processes at a time."""
    filter = program.read("filter_tensor")
    filters, channels, *window = filter.sizes
    if filters // groups % _FILTERS or channels % _CHANNELS:
        return filter
    blocks = (_FILTERS, _CHANNELS, *[1] * len(window))
    spatial = range(4, 4 + len(window))
    return replace(filter, kept=Kept(blocks, order=(0, *spatial, 2, 1, 3)))


def _zero_points(program: Program, name: str, tensor: BufferTensorDesc | None) -> Operand:
    """The zero points in the kernel's form: one dimension, of size 1 or of the output channels."""
    if tensor is None:
        return program.read(name)
    channel = _channel_dimension(tensor)
    return program.read(name, sizes=[tensor.sizes[channel]], strides=[tensor.effective_strides[channel]])
