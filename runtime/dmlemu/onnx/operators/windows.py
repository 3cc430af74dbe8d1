"""Convolutions and poolings: windows that slide over the spatial dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import graph as g
from ...dml.enums import ConvolutionDirection, ConvolutionMode, PaddingMode, TensorDataType
from ...graph import Expression
from ..calls import Call, Made, NotOnDevice, lowers
from ..tensors import by_channel, fitted

Sizes = tuple[int, ...]
Image = tuple[Expression, Sizes]


class Windows(NamedTuple):
    """Of the spatial dimensions; ``outputs`` are the sizes of the output there."""

    sizes: Sizes
    strides: Sizes
    dilations: Sizes
    start: Sizes
    end: Sizes
    outputs: Sizes

    def padded(self, dimensions: int) -> Windows:
        """With dimensions of size 1 in front."""
        new = dimensions - len(self.sizes)
        ones, zeros = (1,) * new, (0,) * new
        fronts = (ones, ones, ones, zeros, zeros, ones)
        return Windows(*(front + each for front, each in zip(fronts, self, strict=True)))


def find_windows(c: Call, kernel: Sequence[int], shape: Sizes) -> Windows:
    """From the attributes of a node; ``shape``: that of its image."""
    spatial = shape[2:]
    count = len(spatial)
    strides = tuple(c.attribute("strides", [1] * count))
    dilations = tuple(c.attribute("dilations", [1] * count))
    pads = list(c.attribute("pads", [0] * 2 * count))
    start, end = pads[:count], pads[count:]
    auto = c.attribute("auto_pad", "NOTSET")
    ceil = bool(c.attribute("ceil_mode", 0))
    outputs = []
    for axis, size in enumerate(spatial):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out = -(-size // strides[axis])
            total = max(0, (out - 1) * strides[axis] + reach - size)
            start[axis] = total // 2 if auto == "SAME_UPPER" else total - total // 2
            end[axis] = total - start[axis]
        elif auto == "VALID":
            start[axis] = end[axis] = 0
            out = -(-(size - reach + 1) // strides[axis])
        else:
            free = size + start[axis] + end[axis] - reach
            out = (-(-free // strides[axis]) if ceil else free // strides[axis]) + 1
            if ceil and (out - 1) * strides[axis] >= size + start[axis]:
                out -= 1  # the window would begin in the padding behind the image
        outputs.append(out)
    return Windows(tuple(kernel), strides, dilations, tuple(start), tuple(end), tuple(outputs))


def _image(x: Expression, shape: Sizes) -> Expression:
    """An image of at least two spatial dimensions."""
    return x if len(shape) > 3 else fitted(x, (*shape[:2], *(1,) * (4 - len(shape)), *shape[2:]))


def _by_channel(c: Call, number: int, rank: int) -> Expression | None:
    """An input that may be absent: one number for each channel, or one for all."""
    return by_channel(c.x(number), rank) if c.has(number) else None


def _fields(w: Windows, rank: int) -> dict[str, Any]:
    padded = w.padded(max(rank, 4) - 2)
    return {
        "strides": padded.strides,
        "dilations": padded.dilations,
        "start_padding": padded.start,
        "end_padding": padded.end,
    }


# --- convolutions ---


@lowers("Conv")
def _convolution(c: Call) -> Made:
    return convolved(c, (c.x(0), c.shape(0)), (c.x(1), c.shape(1)))


def convolved(c: Call, image: Image, filters: Image) -> Made:
    """A convolution by the attributes of a node, whose input 2 is the bias."""
    (x, shape), (weights, sizes) = image, filters
    w = find_windows(c, sizes[2:], shape)
    rank = max(len(shape), 4)
    made: Expression = g.convolution(
        _image(x, shape),
        _image(weights, sizes),
        _by_channel(c, 2, rank),
        mode=ConvolutionMode.CROSS_CORRELATION,
        direction=ConvolutionDirection.FORWARD,
        output_padding=[0] * (rank - 2),
        group_count=c.attribute("group", 1),
        **_fields(w, len(shape)),
    )
    return Made(made, (shape[0], sizes[0], *w.outputs))


@lowers("ConvTranspose")
def _convolution_transpose(c: Call) -> Made:
    return transposed_convolution(c, c.attribute("pads"), bias=2)


def transposed_convolution(c: Call, pads: Sequence[int] | None, bias: int) -> Made:
    """``bias``: the number of the input that it is."""
    shape, filters = c.shape(0), c.shape(1)
    count, rank = len(shape) - 2, max(len(shape), 4)
    strides = list(c.attribute("strides", [1] * count))
    dilations = list(c.attribute("dilations", [1] * count))
    more = list(c.attribute("output_padding", [0] * count))
    pads = list(pads or [0] * 2 * count)
    start, end = pads[:count], pads[count:]
    auto, asked = c.attribute("auto_pad", "NOTSET"), c.attribute("output_shape")
    outputs = []
    for axis in range(count):
        whole = (
            (shape[axis + 2] - 1) * strides[axis] + (filters[axis + 2] - 1) * dilations[axis] + 1 + more[axis]
        )
        if asked is not None or auto.startswith("SAME"):
            out = asked[-count + axis] if asked is not None else shape[axis + 2] * strides[axis]
            total = whole - out
            if auto == "SAME_UPPER":
                start[axis] = max(0, total) // 2
            else:
                start[axis] = max(0, total) - max(0, total) // 2
            end[axis] = max(0, total) - start[axis]
            more[axis] += max(0, -total)
        else:
            out = whole - start[axis] - end[axis]
        outputs.append(out)
    group = c.attribute("group", 1)
    w = Windows(filters[2:], tuple(strides), tuple(dilations), tuple(start), tuple(end), tuple(outputs))
    padded = w.padded(rank - 2)
    channels = filters[1] * group
    made: Expression = g.convolution(
        _image(c.x(0), shape),
        _image(c.x(1), filters),
        _by_channel(c, bias, rank),
        mode=ConvolutionMode.CROSS_CORRELATION,
        direction=ConvolutionDirection.BACKWARD,
        output_padding=[*(0,) * (rank - 2 - count), *more],
        group_count=group,
        output_sizes=(shape[0], channels, *padded.outputs),
        **_fields(w, len(shape)),
    )
    return Made(made, (shape[0], channels, *outputs))


@lowers("ConvInteger")
def _convolution_integer(c: Call) -> Made:
    shape, filters = c.shape(0), c.shape(1)
    w = find_windows(c, filters[2:], shape)
    rank = max(len(shape), 4)
    made: Expression = g.convolution_integer(
        _image(c.x(0), shape),
        _image(c.x(1), filters),
        _by_channel(c, 2, rank),
        _by_channel(c, 3, rank),
        group_count=c.attribute("group", 1),
        **_fields(w, len(shape)),
    )
    return Made(made, (shape[0], filters[0], *w.outputs))


@lowers("QLinearConv")
def _quantized_convolution(c: Call) -> Made:
    return quantized_convolution(c, c.x(0), c.shape(0))


def quantized_convolution(c: Call, x: Expression, shape: Sizes) -> Made:
    """``x``: the image, with its channels first."""
    filters = c.shape(3)
    w = find_windows(c, filters[2:], shape)
    rank = max(len(shape), 4)
    made: Expression = g.quantized_linear_convolution(
        _image(x, shape),
        _by_channel(c, 1, rank),
        _image(c.x(3), filters),
        _by_channel(c, 4, rank),
        _by_channel(c, 6, rank),
        _by_channel(c, 2, rank),
        _by_channel(c, 5, rank),
        _by_channel(c, 8, rank),
        _by_channel(c, 7, rank),
        group_count=c.attribute("group", 1),
        output_data_type=c.x(7).data_type,
        **_fields(w, len(shape)),
    )
    return Made(made, (shape[0], filters[0], *w.outputs))


# --- poolings ---


def _padding_of(w: Windows, spatial: Sizes) -> Windows:
    """Padding behind the image that the last window does not reach changes nothing, and is left out."""
    end = []
    for axis, size in enumerate(spatial):
        last = (w.outputs[axis] - 1) * w.strides[axis] + (w.sizes[axis] - 1) * w.dilations[axis] + 1
        end.append(min(w.end[axis], max(0, last - size - w.start[axis])))
    return w._replace(end=tuple(end))


def pooled(c: Call, image: Image, function: Callable[..., Any], **fields: Any) -> tuple[Any, Sizes]:
    """What a pooling operator makes of the node's windows, and the shape of its outputs."""
    x, shape = image
    w = _padding_of(find_windows(c, c.attribute("kernel_shape"), shape), shape[2:])
    padded = w.padded(max(len(shape), 4) - 2)
    made = function(
        _image(x, shape),
        window_size=padded.sizes,
        output_sizes=(*shape[:2], *padded.outputs),
        **_fields(w, len(shape)),
        **fields,
    )
    return made, (*shape[:2], *w.outputs)


@lowers("AveragePool")
def _average_pool(c: Call) -> Made:
    include = bool(c.attribute("count_include_pad", 0))
    return Made(*pooled(c, (c.x(), c.shape()), g.average_pooling1, include_padding=include))


@lowers("MaxPool")
def _max_pool(c: Call) -> tuple[Made, Made | None]:
    indexed = c.wants(1)
    made, out = pooled(c, (c.x(), c.shape()), g.max_pooling2, output_indices_tensor=indexed)
    if not indexed:
        return Made(made, out), None
    indices = _by_columns(c, made[1], c.shape()[2:]) if c.attribute("storage_order", 0) else made[1]
    return Made(made[0], out), Made(g.cast(indices, output_data_type=TensorDataType.INT64), out)


def _by_columns(c: Call, indices: Expression, spatial: Sizes) -> Expression:
    """Indices that count the elements of a plane row by row, counted with its first dimension innermost."""
    plane = int(np.prod(spatial))
    rest = indices % c.scalar(plane, indices)
    made = indices - rest
    for axis in reversed(range(len(spatial))):
        size = c.scalar(spatial[axis], indices)
        made = made + rest % size * c.scalar(int(np.prod(spatial[:axis])), indices)
        rest = rest / size
    return made


@lowers("LpPool")
def _lp_pool(c: Call) -> Made:
    return Made(*pooled(c, (c.x(), c.shape()), g.lp_pooling1, p=c.attribute("p", 2)))


@lowers("MaxUnpool")
def _max_unpool(c: Call) -> Made:
    """Indices count all elements of the output, whose dimensions need not be four, therefore."""
    shape = c.shape()
    kernel, count = c.attribute("kernel_shape"), len(shape) - 2
    strides, pads = c.attribute("strides", [1] * count), c.attribute("pads", [0] * 2 * count)
    inferred = tuple(
        (size - 1) * strides[axis] + kernel[axis] - pads[axis] - pads[axis + count]
        for axis, size in enumerate(shape[2:])
    )
    own = (*shape[:2], *inferred)
    indices = g.cast(c.x(1), output_data_type=TensorDataType.UINT32)
    line = (1, 1, 1, int(np.prod(shape)))
    made: Expression = g.max_unpooling(
        fitted(c.x(), line), fitted(indices, line), output_sizes=(1, 1, 1, int(np.prod(own)))
    )
    out = tuple(c.numbers(2)) if c.has(2) else own
    return Made(_enlarged(fitted(made, own), out), out)


def _enlarged(x: Expression, sizes: Sizes) -> Expression:
    """With zeros behind its elements: indices count those of the output without ``output_shape``."""
    more = [new - size for new, size in zip(sizes, x.sizes, strict=True)]
    if min(more) < 0:
        raise NotOnDevice("output_shape is smaller than what the windows give")
    if not any(more):
        return x
    made: Expression = g.padding1(
        x, padding_mode=PaddingMode.CONSTANT, padding_value=0, start_padding=[0] * x.rank, end_padding=more
    )
    return made


@lowers("GlobalLpPool")
def _global_lp_pool(c: Call) -> Made:
    shape = c.shape()
    whole = (*shape[:2], *(1,) * (4 - len(shape)), *shape[2:])
    made: Expression = g.lp_pooling(fitted(c.x(), whole), window_size=whole[2:], p=c.attribute("p", 2))
    return Made(made, (*shape[:2], *(1,) * (len(shape) - 2)))
