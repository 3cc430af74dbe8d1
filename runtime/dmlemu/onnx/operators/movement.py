"""Shapes, axes and parts of tensors: elements move, and stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np
import onnx

from ... import graph as g
from ...dml.enums import DepthSpaceOrder, PaddingMode, TensorDataType
from ...dml.tensor_desc import element_bits
from ...graph import Expression, reinterpret, transpose
from ..calls import Call, Made, NotOnDevice, lowers, repeated
from ..tensors import Array, fitted, sizes_of


@lowers("Reshape")
def _reshape(c: Call) -> Made:
    asked = c.numbers(1, "shape")
    if not c.attribute("allowzero", 0):
        asked = [c.shape()[axis] if size == 0 else size for axis, size in enumerate(asked)]
    count = int(np.prod(c.shape()))
    if -1 in asked:
        others = int(np.prod([size for size in asked if size != -1]))
        asked[asked.index(-1)] = count // max(others, 1)
    return Made(c.x(), tuple(asked))


@lowers("Flatten")
def _flatten(c: Call) -> Made:
    axis = c.attribute("axis", 1)
    axis = axis + c.rank() if axis < 0 else axis
    shape = c.shape()
    return Made(c.x(), (int(np.prod(shape[:axis])), int(np.prod(shape[axis:]))))


@lowers("Squeeze")
def _squeeze(c: Call) -> Made:
    axes = c.numbers(1, "axes")
    shape = c.shape()
    gone = {axis for axis, size in enumerate(shape) if size == 1}
    if axes is not None:
        gone = {c.positive(axis, c.rank()) for axis in axes}
    return Made(c.x(), tuple(size for axis, size in enumerate(shape) if axis not in gone))


@lowers("Unsqueeze")
def _unsqueeze(c: Call) -> Made:
    axes = c.numbers(1, "axes")
    rank = c.rank() + len(axes)
    new = {c.positive(axis, rank) for axis in axes}
    if len(new) != len(axes):
        raise NotOnDevice(f"the axes {axes} name one of {rank} dimensions twice")
    old = iter(c.shape())
    return Made(c.x(), tuple(1 if axis in new else next(old) for axis in range(rank)))


@lowers("Transpose")
def _transpose(c: Call) -> Expression:
    order = c.attribute("perm", list(reversed(range(c.rank()))))
    return transpose(c.x(), order or [0])


@lowers("Expand")
def _expand(c: Call) -> Made:
    shape = np.broadcast_shapes(c.shape(), tuple(c.numbers(1)))
    return Made(repeated(c.x(), shape), shape)


@lowers("Tile")
def _tile(c: Call) -> Expression:
    if c.opset < 6:
        raise NotOnDevice("Tile of opset 1")
    made: Expression = g.tile(c.x(), repeats=c.numbers(1)) if c.rank() else c.x()
    return made


@lowers("Concat")
def _concat(c: Call) -> Expression:
    axis = c.axis(1)
    parts = [c.x(i) for i in range(len(c.inputs)) if 0 not in c.shape(i)]
    made: Expression = g.join(parts, axis=axis) if len(parts) > 1 else parts[0]
    return made


@lowers("Split")
def _split(c: Call) -> Sequence[Expression | Array]:
    axis = c.axis(0)
    size, count = c.shape()[axis], len(c.node.output)
    parts = c.numbers(1, "split")
    if parts is None:
        each = -(-size // c.attribute("num_outputs", count))
        parts = [min(each, max(0, size - number * each)) for number in range(count)]
    x = c.x()
    filled = [part for part in parts if part]
    made = iter(g.split(x, axis=axis, output_axis_sizes=filled) if len(filled) > 1 else [x])
    shape = c.shape()
    return [
        next(made) if part else np.empty((*shape[:axis], 0, *shape[axis + 1 :]), c.array_type())
        for part in parts
    ]


@lowers("Slice")
def _slice(c: Call) -> Expression:
    rank = c.rank()
    starts, ends = c.numbers(1, "starts"), c.numbers(2, "ends")
    axes = c.numbers(3, "axes", list(range(len(starts)))) if c.opset < 10 or c.has(3) else range(len(starts))
    steps = c.numbers(4) if c.has(4) else [1] * len(starts)
    windows = [(0, size, 1) for size in c.shape()]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        axis = c.positive(axis, rank)
        windows[axis] = _window(start, end, step, c.shape()[axis])
    offsets, sizes, strides = zip(*windows, strict=True)
    made: Expression = g.slice1(
        c.x(), input_window_offsets=offsets, input_window_sizes=sizes, input_window_strides=strides
    )
    return made


def _window(start: int, end: int, step: int, size: int) -> tuple[int, int, int]:
    """Offset, size and stride of the window; with a negative step it is read from its end."""
    start = start + size if start < 0 else start
    start = max(0, start)  # unlike Python's, with a negative step, too
    taken = range(*slice(start, end, step).indices(size))
    if len(taken) == 0:
        raise NotOnDevice("Slice makes an empty tensor, and DirectML has no sizes of 0")
    low, high = min(taken[0], taken[-1]), max(taken[0], taken[-1])
    return low, high - low + 1, step


@lowers("Pad")
def _pad(c: Call) -> Expression:
    mode = c.attribute("mode", "constant")
    modes = {
        "constant": PaddingMode.CONSTANT,
        "edge": PaddingMode.EDGE,
        "reflect": PaddingMode.REFLECTION,
        "wrap": PaddingMode.WRAP,
    }
    if mode not in modes:
        raise NotOnDevice(f"Pad of mode {mode}")
    x, rank = c.x(), c.rank()
    pads = c.numbers(1, "pads")
    axes = c.numbers(3) if c.has(3) else range(rank)
    axes = [c.positive(axis, rank) for axis in axes]
    start, end = [0] * rank, [0] * rank
    for number, axis in enumerate(axes):
        start[axis], end[axis] = pads[number], pads[number + len(axes)]
    if c.opset < 11:
        value: Any = c.attribute("value", 0.0)
    else:
        value = np.ravel(c.value(2))[0].item() if c.has(2) else 0
    x = _cropped(x, start, end)
    made: Expression = g.padding1(
        x,
        padding_mode=modes[mode],
        padding_value=value,
        start_padding=[max(each, 0) for each in start],
        end_padding=[max(each, 0) for each in end],
    )
    return made


def _cropped(x: Expression, start: Sequence[int], end: Sequence[int]) -> Expression:
    """Without the elements that negative padding removes."""
    if min(*start, *end) >= 0:
        return x
    offsets = [max(0, -each) for each in start]
    sizes = [
        size - before - max(0, -after) for size, before, after in zip(x.sizes, offsets, end, strict=True)
    ]
    if min(sizes) < 1:
        raise NotOnDevice("Pad removes all elements before others are added")
    made: Expression = g.slice1(
        x, input_window_offsets=offsets, input_window_sizes=sizes, input_window_strides=[1] * x.rank
    )
    return made


_ORDERS = {"DCR": DepthSpaceOrder.DEPTH_COLUMN_ROW, "CRD": DepthSpaceOrder.COLUMN_ROW_DEPTH}


@lowers("DepthToSpace")
def _depth_to_space(c: Call) -> Expression:
    made: Expression = g.depth_to_space1(
        c.x(), block_size=c.attribute("blocksize"), order=_ORDERS[c.attribute("mode", "DCR")]
    )
    return made


@lowers("SpaceToDepth")
def _space_to_depth(c: Call) -> Expression:
    made: Expression = g.space_to_depth1(
        c.x(), block_size=c.attribute("blocksize"), order=_ORDERS[c.attribute("mode", "DCR")]
    )
    return made


@lowers("ReverseSequence")
def _reverse_sequence(c: Call) -> Expression:
    batch, time = c.attribute("batch_axis", 1), c.attribute("time_axis", 0)
    sizes = [1 if axis == time else size for axis, size in enumerate(c.shape())]
    lengths = c.x(1)
    if lengths.data_type is not TensorDataType.UINT32:
        lengths = g.cast(lengths, output_data_type=TensorDataType.UINT32)
    shape = [size if axis == batch else 1 for axis, size in enumerate(c.shape())]
    made: Expression = g.reverse_subsequences(c.x(), repeated(fitted(lengths, shape), sizes), axis=time)
    return made


_FAR = 1 << 30


@lowers("Trilu")
def _trilu(c: Call) -> Expression:
    k = int(np.ravel(c.value(1))[0]) if c.has(1) else 0
    k = max(-_FAR, min(_FAR, k))
    upper = c.attribute("upper", 1)
    x = c.x()
    made: Expression = g.diagonal_matrix1(
        c.graph,
        x,
        value_data_type=x.data_type,
        value=0,
        diagonal_fill_begin=-_FAR if upper else k + 1,
        diagonal_fill_end=k if upper else 2 * _FAR - 1,
    )
    return made


@lowers("EyeLike")
def _eye_like(c: Call) -> Expression:
    data_type = c.device_type(c.attribute("dtype", c.type_of()))
    k = c.attribute("k", 0)
    made: Expression = g.diagonal_matrix1(
        c.graph,
        value_data_type=data_type,
        value=1,
        diagonal_fill_begin=k,
        diagonal_fill_end=k + 1,
        output_sizes=sizes_of(c.shape()),
    )
    return made


@lowers("Range", "ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
def _from_values(c: Call) -> NoReturn:
    """Made of a few numbers: where their values are known, it is computed when the model is compiled."""
    for number in range(len(c.inputs)):
        if c.has(number):
            c.value(number)
    raise NotOnDevice(f"{c.op} runs on the host")


@lowers("BitCast")
def _bit_cast(c: Call) -> Expression:
    data_type = c.device_type(c.attribute("to"))
    if c.attribute("to") == onnx.TensorProto.BOOL or element_bits(data_type) != element_bits(c.x().data_type):
        raise NotOnDevice("BitCast to elements of another size, or to BOOL")
    return reinterpret(c.x(), data_type=data_type)


@lowers("Col2Im")
def _col2im(c: Call) -> Made:
    """FOLD, whose images have two spatial dimensions."""
    image, block = c.numbers(1), c.numbers(2)
    count, shape = len(image), c.shape()
    if count != 2:
        raise NotOnDevice(f"FOLD makes images of two dimensions, not {count}")
    pads = c.attribute("pads", [0] * 2 * count)
    channels = shape[1] // int(np.prod(block))
    out = (shape[0], channels, *image)
    made: Expression = g.fold(
        c.x(),
        window_sizes=block,
        strides=c.attribute("strides", [1] * count),
        dilations=c.attribute("dilations", [1] * count),
        start_padding=pads[:count],
        end_padding=pads[count:],
        output_sizes=out,
    )
    return Made(made, out)
