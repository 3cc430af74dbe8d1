"""CONVOLUTION_INTEGER."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.rules import AtLeast, Ones, SameRank, SameType
from ..enums import TensorDataType
from ..lowering.compile import NOTHING, Kept, KeptSums
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.convolution import FORWARD, POSITIONS, AnyConvolution, channel_dimension, per_channel
from .families.product import needs_sums

if TYPE_CHECKING:
    from ..declared.descs import ConvolutionIntegerOperatorDesc
    from ..lowering.compile import Operand, Program

_FILTERS, _CHANNELS = 16, 4  # in a block of the kernel


class IntegerConvolution(AnyConvolution):
    """A forward convolution of 8-bit integers minus their zero points, with sums of INT32.

    ``OUTPUT``: the type of the output in the example.
    """

    OUTPUT: ClassVar[TensorDataType] = TensorDataType.INT32

    def convolve(self, program: Program, output: Operand) -> None:
        """The call that computes the sums."""
        desc = self.desc
        constants = kernels.pack(
            "convolution_integer",
            spatial=len(desc.strides),
            groups=desc.group_count,
            strides=desc.strides,
            dilations=desc.dilations,
            start_padding=desc.start_padding,
        )
        program.call(
            "convolution_integer",
            program.read("input_tensor"),
            _zero_points(program, "input_zero_point_tensor", desc.input_zero_point_tensor),
            _filter(program, desc),
            _zero_points(program, "filter_zero_point_tensor", desc.filter_zero_point_tensor),
            NOTHING,  # the filter's sums, if they are kept
            output,
            constants=constants,
        )

    def sums(self, inputs: Mapping[str, Any]) -> Array:
        """The sums in INT64."""
        desc = self.desc
        x = np.asarray(inputs["input_tensor"]).astype(np.int64)
        w = np.asarray(inputs["filter_tensor"]).astype(np.int64)
        if desc.input_zero_point_tensor is not None:
            x = x - np.asarray(inputs["input_zero_point_tensor"]).astype(np.int64).reshape(())
        if desc.filter_zero_point_tensor is not None:
            zero_points = np.asarray(inputs["filter_zero_point_tensor"]).astype(np.int64)
            w = w - zero_points.reshape(-1, *[1] * (w.ndim - 1))
        return self.forward(x, w)

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 4, 8, 9]),
            "input_zero_point_tensor": BufferTensorDesc(TensorDataType.UINT8, [1, 1, 1, 1]),
            "filter_tensor": BufferTensorDesc(TensorDataType.INT8, [6, 2, 3, 2]),
            "filter_zero_point_tensor": BufferTensorDesc(TensorDataType.INT8, [1, 6, 1, 1]),
            "output_tensor": BufferTensorDesc(cls.OUTPUT, [1, 6, 4, 10]),
            "strides": [2, 1],
            "dilations": [1, 2],
            "start_padding": [1, 0],
            "end_padding": [0, 3],
            "group_count": 2,
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {
            "input_tensor": [1, 1, 5, 6],
            "filter_tensor": [1, 1, 3, 2],
            "filter_zero_point_tensor": [1, 1, 1, 1],
            "output_tensor": [1, 1, 3, 4],
            "start_padding": [1, 0],
            "end_padding": [1, 0],
            "group_count": 1,
        }


class ConvolutionInteger(IntegerConvolution, of="CONVOLUTION_INTEGER"):
    """Forward convolution (cross-correlation: the filter is not flipped) of 8-bit integers to INT32.

    Input ``{N, C, [H], W}``, filter ``{OutputChannels, C / GroupCount, [FilterH], FilterW}``, output
    ``{N, OutputChannels, [OutputH], OutputW}``.  Along spatial dimension i the output has
    ``(Input + StartPadding[i] + EndPadding[i] - ((Filter - 1) * Dilations[i] + 1)) / Strides[i] + 1``
    elements; it may have fewer or more, and OP_WINDOW_COUNT reports it.  Strides move the window, Dilations
    spread the filter's elements; both are at least 1.

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
        *FORWARD,
        SameType("input_tensor", "input_zero_point_tensor"),
        SameType("filter_tensor", "filter_zero_point_tensor"),
        SameRank("input_zero_point_tensor", "filter_zero_point_tensor"),
        Ones("input_zero_point_tensor", "since the input has one zero point"),
        per_channel("filter_zero_point_tensor"),
    )

    USUAL = (POSITIONS,)

    def lower(self, program: Program) -> None:
        self.convolve(program, program.write("output_tensor"))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": self.sums(inputs).astype(np.int32)}


def _filter(program: Program, desc: Any) -> Operand:
    """The filter, kept in blocks of four channels by 16 filters, which the kernel processes at a time."""
    filter = program.read("filter_tensor")
    filters, channels, *window = filter.sizes
    if filters // desc.group_count % _FILTERS or channels % _CHANNELS:
        return filter
    blocks = (_FILTERS, _CHANNELS, *[1] * len(window))
    spatial = range(4, 4 + len(window))
    corrected = needs_sums(desc.input_tensor, desc.input_zero_point_tensor, desc.filter_tensor)
    sums = KeptSums(axis=1, operand=4) if corrected else None
    return replace(filter, kept=Kept(blocks, order=(0, *spatial, 2, 1, 3), sums=sums))


def _zero_points(program: Program, name: str, tensor: BufferTensorDesc | None) -> Operand:
    """The zero points in the kernel's form: one dimension, of size 1 or of the output channels."""
    if tensor is None:
        return program.read(name)
    channel = channel_dimension(tensor)
    return program.read(name, sizes=[tensor.sizes[channel]], strides=[tensor.effective_strides[channel]])
