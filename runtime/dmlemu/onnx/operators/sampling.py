"""GridSample and RoiAlign: elements at positions that the input gives."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ... import graph as g
from ...dml.enums import InterpolationMode, ReduceFunction, TensorDataType
from ...graph import Expression
from ..calls import Call, Made, NotOnDevice, lowers, repeated
from ..tensors import fitted

_F = g.FUNCTIONS
_OFFSETS = {"nearest": (0,), "linear": (0, 1), "cubic": (-1, 0, 1, 2)}


class _Axis:
    """Positions along one spatial dimension of a GridSample, [images, 1, points]."""

    def __init__(self, c: Call, grid: Expression, size: int) -> None:
        self.c, self.size = c, size
        self.padding = c.attribute("padding_mode", "zeros")
        corners = bool(c.attribute("align_corners", 0))
        self.low, self.high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
        self.mode = _mode(c)
        position = (grid + 1) * ((size - 1) / 2) if corners else ((grid + 1) * size - 1) * 0.5
        if self.mode == "nearest":
            position = _F["element_wise_round"](position)
        if self.padding == "border":
            position = self._on_border(position)
        elif self.padding == "reflection":
            position = self._reflected(position)
        self.position = position
        self.first = _F["element_wise_floor"](position)

    def _clamped(self, x: Expression) -> Expression:
        made: Expression = _F["element_wise_clip"](x, min=0.0, max=self.size - 1.0)
        return made

    def _on_border(self, x: Expression) -> Expression:
        """Up to half an element outside of the image a position keeps its own cubic weights."""
        clamped = self._clamped(x)
        if self.mode != "cubic":
            return clamped
        low, high = (self.c.scalar(each, x) for each in (self.low, self.high))
        made: Expression = _F["element_wise_if"](_F["element_wise_logical_or"](x < low, x > high), clamped, x)
        return made

    def _reflected(self, x: Expression) -> Expression:
        """Back and forth between the borders."""
        span = self.high - self.low
        if span == 0:
            return x * 0 + self.low
        beyond = _F["element_wise_modulus_truncate"](
            _F["element_wise_abs"](x - self.low), self.c.scalar(2 * span, x)
        )
        back: Expression = _F["element_wise_min"](beyond, beyond * -1 + 2 * span)
        return back + self.low

    def index(self, offset: int) -> tuple[Expression, Expression | None]:
        """The element at an offset from the first, and for ZEROS what it counts: 1 inside, 0 outside."""
        index = self.first + offset
        if self.padding == "reflection":
            return self._clamped(_F["element_wise_floor"](self._reflected(index))), None
        if self.padding == "border":
            return self._clamped(index), None
        is_inside = _F["element_wise_logical_and"](
            index >= self.c.scalar(0, index), index <= self.c.scalar(self.size - 1, index)
        )
        return self._clamped(index), g.cast(is_inside, output_data_type=index.data_type)

    def weight(self, offset: int) -> Expression | None:
        if self.mode == "nearest":
            return None
        part = self.position - self.first
        if self.mode == "linear":
            made: Expression = part if offset else part * -1 + 1
            return made
        return _cubic(part, offset)


def _cubic(part: Expression, offset: int, a: float = -0.75) -> Expression:
    x: Expression = _F["element_wise_abs"](part - offset)
    if offset in (0, 1):
        return (x * (a + 2) - (a + 3)) * x * x + 1
    return ((x * a - 5 * a) * x + 8 * a) * x - 4 * a


def _mode(c: Call) -> str:
    mode = str(c.attribute("mode", "linear"))
    return {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)


@lowers("GridSample")
def _grid_sample(c: Call) -> Made:
    """A sum over the neighbours of each position, gathered from the image as one line."""
    shape, grid_shape = c.shape(0), c.shape(1)
    spatial, points = shape[2:], grid_shape[1:-1]
    images, channels, count = shape[0], shape[1], int(np.prod(points))
    size = int(np.prod(spatial))
    parts = g.split(c.x(1), axis=len(grid_shape) - 1, output_axis_sizes=[1] * len(spatial))
    axes = [
        _Axis(c, fitted(part, (images, 1, count)), spatial[-1 - number]) for number, part in enumerate(parts)
    ][::-1]  # the last number of a point belongs to the first dimension
    image = fitted(c.x(0), (images, channels, size))
    steps = [int(np.prod(spatial[number + 1 :])) for number in range(len(spatial))]
    made: Any = None
    for offsets in itertools.product(*(_OFFSETS[_mode(c)],) * len(spatial)):
        index: Any = None
        weight: Any = None
        for axis, offset, step in zip(axes, offsets, steps, strict=True):
            place, inside = axis.index(offset)
            index = place * step if index is None else index + place * step
            for each in (axis.weight(offset), inside):
                if each is not None:
                    weight = each if weight is None else weight * each
        index = g.cast(index, output_data_type=TensorDataType.INT32)
        value = g.gather_elements(image, repeated(index, (images, channels, count)), axis=2)
        value = value if weight is None else value * repeated(weight, (images, channels, count))
        made = value if made is None else made + value
    return Made(made, (images, channels, *points))


@lowers("RoiAlign")
def _roi_align(c: Call) -> Expression:
    if c.attribute("mode", "avg") != "avg":
        raise NotOnDevice(
            "ROI_ALIGN takes the maximum of interpolated samples, ONNX that of their weighted neighbours"
        )
    half = "half_pixel" if c.opset >= 16 else "output_half_pixel"
    aligned = c.attribute("coordinate_transformation_mode", half) == "half_pixel"
    scale, samples = c.attribute("spatial_scale", 1.0), c.attribute("sampling_ratio", 0)
    rois = c.x(1)
    if not aligned:
        rois = _widened(c, rois, scale)
    made: Expression = g.roi_align1(
        c.x(0),
        fitted(rois, (1, 1, *c.shape(1))),
        fitted(g.cast(c.x(2), output_data_type=TensorDataType.UINT32), (1, 1, 1, c.shape(2)[0])),
        reduction_function=ReduceFunction.AVERAGE,
        interpolation_mode=InterpolationMode.LINEAR,
        spatial_scale_x=scale,
        spatial_scale_y=scale,
        input_pixel_offset=0.5 if aligned else 0.0,
        output_pixel_offset=-0.5,
        out_of_bounds_input_value=0.0,
        minimum_samples_per_output=max(samples, 1),
        maximum_samples_per_output=samples or 2**31 - 1,
        align_regions_to_corners=False,
        output_height=c.attribute("output_height", 1),
        output_width=c.attribute("output_width", 1),
    )
    return made


def _widened(c: Call, rois: Expression, scale: float) -> Expression:
    """Regions of at least one element in each direction, as ONNX has them without half pixels."""
    x1, y1, x2, y2 = g.split(rois, axis=1, output_axis_sizes=[1, 1, 1, 1])
    x2, y2 = _F["element_wise_max"](x2, x1 + 1 / scale), _F["element_wise_max"](y2, y1 + 1 / scale)
    made: Expression = g.join([x1, y1, x2, y2], axis=1)
    return made
