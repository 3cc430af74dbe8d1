"""Resize and Upsample."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ... import graph as g
from ...dml.enums import AxisDirection, InterpolationMode, TensorDataType
from ...graph import Expression
from ..calls import Call, Made, NotOnDevice, lowers, repeated
from ..tensors import Array, fitted

_ROUNDING = {
    "round_prefer_floor": (0.5, AxisDirection.INCREASING),
    "round_prefer_ceil": (-0.5, AxisDirection.DECREASING),
    "floor": (0.0, AxisDirection.DECREASING),
    "ceil": (0.0, AxisDirection.INCREASING),
}
"""What is added to InputPixelOffset, and the direction: RESAMPLE3 never rounds to the nearest by itself."""


class _Axis(NamedTuple):
    """One dimension: ``position = (index - outer) / scale - inner`` in the input."""

    size: int
    new: int
    scale: float  # as the model gives it
    used: float
    outer: float
    inner: float

    @property
    def positions(self) -> Array:
        index = np.arange(self.new, dtype=np.float64)
        found: Array = (index - self.outer) / self.used - self.inner
        return found

    @property
    def keeps(self) -> bool:
        """Whether its elements stay as they are."""
        return np.array_equal(self.positions, np.arange(self.size))


@lowers("Upsample")
def _upsample(c: Call) -> Made:
    scales = np.ravel(c.value(1)) if c.has(1) else np.array(c.attribute("scales"))
    sizes = [_scaled(size, scale) for size, scale in zip(c.shape(), scales, strict=True)]
    axes = [
        _Axis(size, new, float(scale), float(scale), 0.0, 0.0)
        for size, new, scale in zip(c.shape(), sizes, scales, strict=True)
    ]
    return _native(c, axes, c.attribute("mode", "nearest"), "floor", antialiased=False)


def _scaled(size: int, scale: Any) -> int:
    """The product is rounded to FLOAT32, as ONNX Runtime does: 5 * 1.4 is 7."""
    return int(np.floor(np.float32(size) * np.float32(scale)))


@lowers("Resize")
def _resize(c: Call) -> Made:
    if c.opset < 11:
        made: Made = _upsample(c)
        return made
    transformation = c.attribute("coordinate_transformation_mode", "half_pixel")
    sizes, scales = _sizes(c)
    if min(sizes) < 1:
        raise NotOnDevice("Resize makes an empty tensor, and DirectML has no sizes of 0")
    regions = _regions(c) if transformation == "tf_crop_and_resize" else [(0.0, 1.0)] * c.rank()
    axes = [_axis(transformation, *each) for each in zip(c.shape(), sizes, scales, regions, strict=True)]
    mode, antialiased = c.attribute("mode", "nearest"), bool(c.attribute("antialias", 0))
    nearest = c.attribute("nearest_mode", "round_prefer_floor")
    # RESAMPLE3 stretches its filter by the scale of the positions, which these corners change.
    is_stretched = antialiased and any(each.used != each.scale for each in axes)
    if mode == "cubic" or transformation == "tf_crop_and_resize" or (mode == "linear" and is_stretched):
        return _by_products(c, axes, mode, nearest, antialiased)
    return _native(c, axes, mode, nearest, antialiased and mode == "linear")


def _sizes(c: Call) -> tuple[list[int], list[float]]:
    """Sizes and scales of all dimensions."""
    shape, rank = c.shape(), c.rank()
    axes = [c.positive(axis, rank) for axis in c.attribute("axes", range(rank))]
    scales, sizes = [1.0] * rank, list(shape)
    if not c.has(3) or c.tensor(3).shape == (0,):
        for axis, scale in zip(axes, np.ravel(c.value(2)), strict=True):
            scales[axis], sizes[axis] = float(scale), _scaled(shape[axis], scale)
        return sizes, scales
    asked = c.numbers(3)
    policy = c.attribute("keep_aspect_ratio_policy", "stretch")
    ratios = [size / shape[axis] for axis, size in zip(axes, asked, strict=True)]
    if policy != "stretch":
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        asked = [int(np.floor(ratio * shape[axis] + 0.5)) for axis in axes]
        ratios = [ratio] * len(axes)
    for axis, size, ratio in zip(axes, asked, ratios, strict=True):
        scales[axis], sizes[axis] = ratio, size
    return sizes, scales


def _regions(c: Call) -> list[tuple[float, float]]:
    rank = c.rank()
    axes = [c.positive(axis, rank) for axis in c.attribute("axes", range(rank))]
    values = np.ravel(c.value(1))
    found = [(0.0, 1.0)] * rank
    for number, axis in enumerate(axes):
        found[axis] = (float(values[number]), float(values[number + len(axes)]))
    return found


def _axis(transformation: str, size: int, new: int, scale: float, region: tuple[float, float]) -> _Axis:
    whole = (size, new, scale)
    if transformation == "half_pixel" or (transformation == "pytorch_half_pixel" and new > 1):
        return _Axis(*whole, scale, -0.5, 0.5)
    if transformation in ("asymmetric", "pytorch_half_pixel"):
        return _Axis(*whole, scale, 0.0, 0.0)  # a single element of the latter lies at position 0
    if transformation == "half_pixel_symmetric":
        missing = size / 2 * (1 - new / (scale * size))
        return _Axis(*whole, scale, -0.5, 0.5 - missing)
    if transformation == "align_corners":
        length = scale * size  # not rounded, as the specification's examples have it
        if new == 1 or length <= 1 or size == 1:
            return _Axis(*whole, 1.0, 0.0, 0.0)
        return _Axis(*whole, (length - 1) / (size - 1), 0.0, 0.0)
    if transformation == "tf_crop_and_resize":
        start, end = region
        if new == 1:
            return _Axis(*whole, 1.0, 0.0, -0.5 * (start + end) * (size - 1))
        step = (end - start) * (size - 1) / (new - 1)
        return _Axis(*whole, 1 / step if step else np.inf, 0.0, -start * (size - 1))
    raise NotOnDevice(f"coordinate_transformation_mode {transformation} is not known")


def _native(c: Call, axes: list[_Axis], mode: str, nearest: str, antialiased: bool) -> Made:
    if mode not in ("nearest", "linear", "bilinear"):
        raise NotOnDevice(f"RESAMPLE has no {mode} interpolation")
    sizes, x = tuple(each.new for each in axes), c.x()
    if mode == "nearest":
        return Made(_resampled(x, axes, nearest, antialiased), sizes)
    if np.dtype(x.dtype).kind != "f" and c.wants_onnx("what is between whole numbers loses its fraction"):
        between = _resampled(g.cast(x, output_data_type=TensorDataType.FLOAT32), axes, "", antialiased)
        return Made(g.cast(g.element_wise_round(between), output_data_type=x.data_type), sizes)
    return Made(_resampled(x, axes, "", antialiased), sizes)


def _resampled(x: Expression, axes: list[_Axis], nearest: str, antialiased: bool) -> Expression:
    """By RESAMPLE, which has four dimensions at most; ``nearest``: how positions are rounded, if they are."""
    joined = _joined(axes) if len(axes) > 4 else axes
    if len(joined) > 4:
        if not nearest and np.dtype(x.dtype).kind != "f":
            raise NotOnDevice(
                "more than four dimensions of whole numbers are interpolated, which rounds them twice"
            )
        half = _resampled(x, _first_half(axes), nearest, antialiased)
        return _resampled(half, _second_half(axes), nearest, antialiased)
    shift, direction = _ROUNDING[nearest] if nearest else (0.0, AxisDirection.INCREASING)
    made: Expression = g.resample3(
        fitted(x, [each.size for each in joined]),
        interpolation_mode=InterpolationMode.NEAREST_NEIGHBOR if nearest else InterpolationMode.LINEAR,
        rounding_direction=direction,
        scales=[each.used for each in joined],
        # A dimension that keeps its size is not shifted.
        input_pixel_offsets=[
            each.inner + shift * (each.size != each.new or each.used != 1) for each in joined
        ],
        output_pixel_offsets=[each.outer for each in joined],
        antialiased=antialiased,
        output_sizes=[each.new for each in joined],
    )
    return fitted(made, [each.new for each in axes])


def _kept(size: int) -> _Axis:
    return _Axis(size, size, 1.0, 1.0, 0.0, 0.0)


def _first_half(axes: list[_Axis]) -> list[_Axis]:
    """Of those that change; the second half keeps its sizes."""
    middle = _middle(axes)
    return [*axes[:middle], *(_kept(each.size) for each in axes[middle:])]


def _second_half(axes: list[_Axis]) -> list[_Axis]:
    middle = _middle(axes)
    return [*(_kept(each.new) for each in axes[:middle]), *axes[middle:]]


def _middle(axes: list[_Axis]) -> int:
    changed = [number for number, axis in enumerate(axes) if not axis.keeps]
    return changed[len(changed) // 2]


def _joined(axes: list[_Axis]) -> list[_Axis]:
    """Neighbours that keep their elements as one dimension: RESAMPLE has four at most."""
    made: list[_Axis] = []
    for axis in axes:
        if made and made[-1].keeps and axis.keeps:
            axis = _kept(made.pop().size * axis.size)
        made.append(axis)
    return made


# --- interpolations that DirectML does not have: a product with the weights of each dimension ---


def _by_products(c: Call, axes: list[_Axis], mode: str, nearest: str, antialiased: bool) -> Made:
    x, shape = c.x(), list(c.shape())
    crops = c.attribute("coordinate_transformation_mode") == "tf_crop_and_resize"
    outside = np.zeros([each.new for each in axes], np.bool_)
    for number, axis in enumerate(axes):
        if crops:
            positions = axis.positions
            beyond = (positions < 0) | (positions > axis.size - 1)
            outside |= beyond.reshape([-1 if i == number else 1 for i in range(len(axes))])
        weights = _weights(c, axis, mode, nearest, antialiased)
        if axis.size == axis.new and np.array_equal(weights, np.eye(axis.size)):
            continue
        before, behind = int(np.prod(shape[:number])), int(np.prod(shape[number + 1 :]))
        matrix = c.constant(weights.reshape(1, 1, *weights.shape), x)
        product = g.gemm(
            repeated(matrix, (1, before, *weights.shape)), fitted(x, (1, before, axis.size, behind))
        )
        shape[number] = axis.new
        x = fitted(product, shape)
    if outside.any():
        value = c.scalar(c.attribute("extrapolation_value", 0.0), x)
        x = g.element_wise_if(c.graph.constant(outside.astype(np.uint8)), value, x)
    return Made(x, tuple(shape))


def _weights(c: Call, axis: _Axis, mode: str, nearest: str, antialiased: bool) -> Array:
    """A row for each index of the output: what each element of the input counts."""
    positions = axis.positions
    stretch = min(axis.scale, 1.0) if antialiased else 1.0
    reach = {"cubic": 2.0, "linear": 1.0}.get(mode, 0.0) / stretch
    weights = np.zeros((axis.new, axis.size))
    for row, position in enumerate(positions):
        if mode == "nearest":
            index = np.array([_nearest(position, nearest)])
            each = np.ones(1)
        else:
            low = np.floor(position)
            index = np.arange(low - np.ceil(reach), low + np.ceil(reach) + 2)
            distance = np.abs(index - position) * stretch
            each = (
                _cubic(distance, c.attribute("cubic_coeff_a", -0.75))
                if mode == "cubic"
                else np.maximum(0, 1 - distance)
            )
            if c.attribute("exclude_outside", 0):
                each = np.where((index >= 0) & (index < axis.size), each, 0)
            each = each / each.sum()
        np.add.at(weights[row], np.clip(index, 0, axis.size - 1).astype(np.int64), each)
    return weights


def _nearest(position: float, mode: str) -> float:
    rounded = {"floor": np.floor, "ceil": np.ceil}.get(mode)
    if rounded is not None:
        return float(rounded(position))
    return float(np.ceil(position - 0.5) if mode == "round_prefer_floor" else np.floor(position + 0.5))


def _cubic(x: Array, a: float) -> Array:
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
    found: Array = np.where(x <= 1, near, np.where(x < 2, far, 0))
    return found
