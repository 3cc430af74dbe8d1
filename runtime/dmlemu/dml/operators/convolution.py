"""CONVOLUTION."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.places import Element, Size
from ..declared.rules import AtLeast, Demand, Divisible, Length, Rule, SameRank, SameType, Sizes
from ..declared.values import Between, Exactly
from ..enums import (
    ConvolutionDirection,
    ConvolutionMode,
    FeatureLevel,
    OperatorType,
    TensorDataType,
)
from ..lowering.compile import Kept
from ..rows import OP_FIELD_IGNORED, OP_WINDOW_COUNT
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, float64
from .families.convolution import BIAS, POSITIONS, AnyConvolution, Reach, batch_and_channels, input_channels
from .families.fusion import Fused, call_fused, fused_reference

if TYPE_CHECKING:
    from ..declared.descs import ConvolutionOperatorDesc
    from ..declared.schema import OperatorDesc
    from ..lowering.compile import Operand, Program

_FILTERS = 16  # filters of a block of the kernel
_FEW_POSITIONS = 8

_BACKWARD, _FORWARD = ConvolutionDirection.BACKWARD, ConvolutionDirection.FORWARD


def _input_channels(desc: ConvolutionOperatorDesc) -> Iterator[tuple[int, int, str]]:
    if desc.direction is _FORWARD:
        yield from input_channels(desc)
    else:
        yield 1, desc.filter_tensor.sizes[0], "the number of input channels, FilterTensor.Sizes[0]"


def _batch_and_channels(desc: ConvolutionOperatorDesc) -> Iterator[tuple[int, int, str]]:
    if desc.direction is _FORWARD:
        yield from batch_and_channels(desc)
    else:
        groups, channels = desc.group_count, desc.filter_tensor.sizes[1]
        yield 0, desc.input_tensor.sizes[0], "the batch count of InputTensor"
        yield 1, channels * groups, f"FilterTensor.Sizes[1] ({channels}) times GroupCount ({groups})"


class _Positions(Rule):
    """Usual sizes.  Forward as in :class:`Window`.  Backward the output has the elements that the windows of
    the input cover, less the padding, and more as far as no window is missing for them, or OutputPadding asks
    for them."""

    def demands(self, desc: Any, level: FeatureLevel) -> Iterator[Demand]:
        if desc.direction is _FORWARD:
            for i in range(len(desc.output_padding)):
                clause = "is not 0 and changes nothing, since only a backward convolution has OutputPadding"
                place = Element("output_padding", i)
                yield Demand(place, Exactly(0), clause=clause, check=OP_FIELD_IGNORED)
            yield from POSITIONS.demands(desc, level)
        else:
            for i in range(len(desc.strides)):
                for demand in self._covered(desc, i):
                    yield demand._replace(check=OP_WINDOW_COUNT)

    def _covered(self, desc: Any, i: int) -> Iterator[Demand]:
        stride, start, end = desc.strides[i], desc.start_padding[i], desc.end_padding[i]
        span = (desc.filter_tensor.sizes[2 + i] - 1) * desc.dilations[i] + 1
        covered = (desc.input_tensor.sizes[2 + i] - 1) * stride + span
        most = max(stride - 1, desc.output_padding[i])
        clause = f"cuts off all {covered} elements that the windows cover"
        yield Demand(Element("start_padding", i), Between(None, covered + most - 1), clause=clause)
        clause = f"with StartPadding[{i}] ({start}) {clause}"
        yield Demand(Element("end_padding", i), Between(None, covered + most - 1 - start), clause=clause)
        least = covered - start - end
        why = (
            f"the {covered} elements that the windows cover less StartPadding[{i}] ({start}) and "
            f"EndPadding[{i}] ({end}), and at most {most} more"
        )
        yield Demand(Size("output_tensor", 2 + i), Between(max(least, 1), least + most), why)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        forward = POSITIONS.sentence(cls).removesuffix(".")
        return (
            f"FORWARD: {forward}; each of `OutputPadding` is 0; BACKWARD: `OutputTensor.Sizes[2 + i]` is at "
            "least the number of elements that the windows cover, less the padding, "
            "`(InputTensor.Sizes[2 + i] - 1) * Strides[i] + Span - StartPadding[i] - EndPadding[i]`, and at "
            "most `Strides[i] - 1` or `OutputPadding[i]` more, whichever is larger."
        )


class Convolution(AnyConvolution, of="CONVOLUTION"):
    """Convolution and its transpose, over 1 to 3 spatial dimensions.

    The input is ``{N, C, [[D], H], W}``, the output ``{N, O, ...}``; the bias ``{1, O, 1, ...}`` has one
    element per output channel.  Channels form GroupCount groups, and a filter covers those of its group.

    FORWARD: the filter is ``{O, C / GroupCount, ...}``; ``output[p] = FusedActivation(Bias + sum)``, the sum
    over channels and taps k of ``input[p * Strides + k * Dilations - StartPadding] * filter[k]``.  A place
    outside of the input counts as 0.  BACKWARD is the transpose: the filter is ``{C, O / GroupCount, ...}``,
    and each input element at p adds ``input[p] * filter[k]`` to the output at
    ``p * Strides + k * Dilations - StartPadding``, where that is inside: the paddings cut off the rest.
    An output element that nothing reaches holds the bias, through the activation.

    OutputTensor may have any spatial sizes: fewer elements than there are positions of the window, or more.
    OP_WINDOW_COUNT reports sizes that are not usual.  OutputPadding has no effect but on what is usual.

    That is Mode CROSS_CORRELATION; with CONVOLUTION the filter is turned round along each spatial dimension.

    Products are summed in FLOAT32, in the order of the filter's elements; FLOAT16 is rounded once at the end,
    after the activation.  A result of 0 is never -0.
    """

    SUM_ERROR = 2.0**-20

    desc: ConvolutionOperatorDesc

    ULPS = 2
    ULPS_REASON = "sums in FLOAT32"

    RULES = (
        SameType("input_tensor", "filter_tensor", "bias_tensor", "output_tensor"),
        SameRank("input_tensor", "filter_tensor", "bias_tensor", "output_tensor"),
        AtLeast("group_count", 1),
        Divisible("filter_tensor", 0, by="group_count"),
        Length("strides", of="input_tensor", spatial=True),
        AtLeast("strides", 1),
        Sizes(
            "input_tensor",
            _input_channels,
            "`InputTensor.Sizes[1]` is `FilterTensor.Sizes[1]` times `GroupCount`; "
            "BACKWARD: `FilterTensor.Sizes[0]`.",
        ),
        Sizes(
            "output_tensor",
            _batch_and_channels,
            "`OutputTensor.Sizes[0]` is `InputTensor.Sizes[0]`; `OutputTensor.Sizes[1]` is "
            "`FilterTensor.Sizes[0]`; BACKWARD: `FilterTensor.Sizes[1]` times `GroupCount`.",
        ),
        Reach(),
        BIAS,
        Fused({OperatorType.ELEMENT_WISE_CLIP: FeatureLevel.LEVEL_6_0}),
    )

    USUAL = (_Positions(),)

    def lower(self, program: Program) -> None:
        desc = self.desc
        backward = desc.direction is _BACKWARD
        constants = kernels.pack(
            "convolution_float",
            spatial=len(desc.strides),
            backward=int(backward),
            reversed=int(desc.mode is ConvolutionMode.CONVOLUTION),
            strides=desc.strides,
            dilations=desc.dilations,
            start_padding=desc.start_padding,
        )
        call_fused(
            program,
            desc.output_tensor,
            desc.fused_activation,
            "convolution_float",
            program.read("input_tensor"),
            self._filter(program),
            _bias_of(program, desc.bias_tensor),
            constants=constants,
        )

    def _filter(self, program: Program) -> Operand:
        """The filter as groups, filters of a group, channels of a group and the window."""
        tensor, groups = self.desc.filter_tensor, self.desc.group_count
        (first, second, *window), (step, next, *steps) = tensor.sizes, tensor.effective_strides
        group = first // groups  # filters of a group, or channels if backward
        apart = step * group if groups > 1 else 0
        if self.desc.direction is _FORWARD:
            sizes, strides = [group, second], [step, next]
        else:
            sizes, strides = [second, group], [next, step]
        read = program.read(
            "filter_tensor", sizes=[groups, *sizes, *window], strides=[apart, *strides, *steps]
        )
        return replace(read, kept=self._kept(sizes[0], sizes[1], len(window)))

    def _kept(self, filters: int, channels: int, spatial: int) -> Kept | None:
        """Blocks of 16 filters, which the kernel reads in place.

        It has other ways: forward for FLOAT16, a group of one channel and few positions, backward for
        windows of one element without a stride.
        """
        desc = self.desc
        if desc.direction is _FORWARD:
            is_half = desc.filter_tensor.data_type is TensorDataType.FLOAT16
            other = is_half or channels == 1 or math.prod(desc.output_tensor.sizes[2:]) <= _FEW_POSITIONS
        else:
            other = max(*desc.strides, *desc.filter_tensor.sizes[2:]) == 1
        if other or filters % _FILTERS:
            return None
        ones = [1] * spatial
        return Kept((1, _FILTERS, 1, *ones), order=(0, 1, *range(3, 4 + spatial), 2))

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc = self.desc
        x, w = (float64(inputs[name]) for name in ("input_tensor", "filter_tensor"))
        if desc.mode is ConvolutionMode.CONVOLUTION:
            w = np.flip(w, tuple(range(2, w.ndim)))
        with np.errstate(all="ignore"):
            y = self.forward(x, w) if desc.direction is _FORWARD else self.backward(x, w)
            if desc.bias_tensor is not None:
                y = y + float64(inputs["bias_tensor"])
        return {"output_tensor": fused_reference(y, desc.fused_activation, desc.output_tensor)}

    def backward(self, x: Array, w: Array) -> Array:
        """What each element of ``x`` adds where its window covers the output."""
        groups, size = self.desc.group_count, self.desc.output_tensor.sizes
        y = np.zeros(size)
        by_group = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
        filters = np.moveaxis(w.reshape(groups, -1, *w.shape[1:]), (0, 1, 2), (-3, -2, -1))  # at a tap
        for tap in self.taps():
            index, inside = self.places(tap, x.shape[2:], size[2:])
            added = np.einsum("ngc...,gco->ngo...", by_group, filters[tap])
            added = added.reshape(*size[:2], *x.shape[2:])
            np.add.at(y, index, np.where(inside, added, 0))
        return y

    @classmethod
    def example(cls) -> dict[str, Any]:
        from ..declared.descs import ActivationReluOperatorDesc

        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 4, 8, 9]),
            "filter_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [6, 2, 3, 2]),
            "bias_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 6, 1, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 6, 4, 10]),
            "mode": ConvolutionMode.CROSS_CORRELATION,
            "direction": _FORWARD,
            "strides": [2, 1],
            "dilations": [1, 2],
            "start_padding": [1, 0],
            "end_padding": [0, 3],
            "output_padding": [0, 0],
            "group_count": 2,
            "fused_activation": ActivationReluOperatorDesc(),
        }

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        return {
            "input_tensor": [1, 1, 5, 6],
            "filter_tensor": [1, 1, 3, 2],
            "bias_tensor": [1, 1, 1, 1],
            "output_tensor": [1, 1, 3, 4],
            "start_padding": [1, 0],
            "end_padding": [1, 0],
            "group_count": 1,
            "fused_activation": None,
        }


def _bias_of(program: Program, tensor: BufferTensorDesc | None) -> Operand:
    """The bias with one dimension, the output channels."""
    if tensor is None:
        return program.read("bias_tensor")
    return program.read("bias_tensor", sizes=[tensor.sizes[1]], strides=[tensor.effective_strides[1]])
