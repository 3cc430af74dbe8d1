"""ROI_POOLING, ROI_ALIGN, ROI_ALIGN1 and ROI_ALIGN_GRAD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ...dml import enums
from .rows import Array, Node, row, wide

__all__: list[str] = []

_NEAR = 1e-4


def _are_items(indices: Any, count: int) -> bool:
    """What others give for images outside the batch is left open."""
    return all(0 <= each < count and each == int(each) for each in indices)


# --- pooling ---


def _rows(x: Any, regions: Any) -> Any:
    """The regions; None: one is of an image that is not there."""
    regions = regions.reshape(-1, 5)
    return regions if _are_items(regions[:, 0].tolist(), x.shape[0]) else None


def _pool(o: Any, x: Array, regions: Array) -> Node | None:
    regions = _rows(x, regions)
    if regions is None:
        return None
    sizes = [o.pooled_size.height, o.pooled_size.width]
    return Node(
        "MaxRoiPool", [wide(x), wide(regions)], {"pooled_shape": sizes, "spatial_scale": o.spatial_scale}
    )


def _torchvision_pool(t: Any, o: Any, x: Any, regions: Any) -> Any:
    regions = _rows(x, regions)
    if regions is None:
        return None
    sizes = o.pooled_size.height, o.pooled_size.width
    return t.ops.torchvision.roi_pool(x.float(), regions.float(), o.spatial_scale, *sizes)[0]


row(
    "ROI_POOLING",
    _pool,
    None,
    torchvision=_torchvision_pool,
    by=("onnxruntime",),
    passes="indices outside the batch",
)

# --- aligned regions ---


class _Region(NamedTuple):
    """``item``: of the batch; ``corners``: scaled; ``counts``: of samples for an output, down and across."""

    item: int
    corners: tuple[float, float, float, float]
    counts: tuple[int, int]


def _sizes(o: Any) -> tuple[list[int], list[int]]:
    """Of the image and of the outputs."""
    if hasattr(o, "input_gradient_tensor"):
        image = o.output_gradient_tensor or o.input_tensor
        return list(image.sizes), list(o.input_gradient_tensor.sizes)
    return list(o.input_tensor.sizes), list(o.output_tensor.sizes)


def _offsets(o: Any) -> tuple[float, float]:
    return getattr(o, "input_pixel_offset", 0.5), getattr(o, "output_pixel_offset", -0.5)


def _regions(o: Any, regions: Any, indices: Any) -> list[_Region] | None:
    """None: an image that is not there, or a number of samples that depends on how it is rounded."""
    image, outputs = _sizes(o)
    items, corners = np.ravel(indices.tolist()), np.array(regions.tolist(), np.float32).reshape(-1, 4)
    if not _are_items(items, image[0]):
        return None
    corners = corners * np.array([o.spatial_scale_x, o.spatial_scale_y] * 2, np.float32)
    found = []
    for item, (x1, y1, x2, y2) in zip(items, corners.astype(np.float64), strict=True):
        counts = []
        for extent, outer in ((y2 - y1, outputs[2]), (x2 - x1, outputs[3])):
            n = extent / outer
            if 0 < abs(n - round(n)) < _NEAR:
                return None
            least, most = o.minimum_samples_per_output, o.maximum_samples_per_output
            counts.append(max(int(np.clip(np.ceil(n), least, most)), 1))
        found.append(_Region(int(item), (x1, y1, x2, y2), (counts[0], counts[1])))
    return found


def _call(o: Any, regions: list[_Region]) -> tuple[list[list[float]], int, bool] | None:
    """For RoiAlign of ONNX, and that of torchvision: scaled corners, the number of samples (0: by the size of
    the region), whether pixels are at their centres."""
    inner, outer = _offsets(o)
    if outer != -0.5 or inner not in (0, 0.5) or getattr(o, "align_regions_to_corners", False):
        return None
    if o.interpolation_mode is not enums.InterpolationMode.LINEAR:
        return None
    if o.reduction_function is not enums.ReduceFunction.AVERAGE:  # their maximum is of terms, not of samples
        return None
    _, outputs = _sizes(o)
    own = []
    for region in regions:
        x1, y1, x2, y2 = region.corners
        extents = y2 - y1, x2 - x1
        if inner == 0 and min(extents) < 1:  # becomes one element
            return None
        own.append(
            min(extents) > 0
            and region.counts == tuple(int(np.ceil(e / n)) for e, n in zip(extents, outputs[2:], strict=True))
        )
    counts = {count for region in regions for count in region.counts}
    if len(counts) != 1 and not all(own):
        return None
    samples = counts.pop() if len(counts) == 1 else 0
    return [list(region.corners) for region in regions], samples, inner == 0.5


class _Samples(NamedTuple):
    """Along a dimension: what each sample takes of each element, a row a sample, and whether it is inside."""

    weights: Array
    is_inside: Array


def _samples(s: Any, o: Any, start: float, end: float, outputs: int, n: int, size: int) -> _Samples | None:
    """By SciPy's interpolation.  None: how a position is rounded decides whether it is inside."""
    inner, outer = _offsets(o)
    intervals = outputs * n - bool(getattr(o, "align_regions_to_corners", False))
    if intervals:
        p = (np.arange(outputs * n) - outer) * (end - start) / intervals + start - inner
    else:
        p = np.array([(start + end) / 2 - inner])
    away = [np.abs(p - edge) for edge in (-1, size)]
    if any(((each > 0) & (each < _NEAR)).any() for each in away):
        return None
    places = np.meshgrid(np.clip(p, 0, size - 1), np.arange(size), indexing="ij")
    weights = s.ndimage.map_coordinates(np.eye(size), places, order=1, mode="nearest")
    return _Samples(weights, (p >= -1) & (p <= size))


def _grids(s: Any, o: Any, regions: Any, indices: Any) -> Iterator[tuple[int, _Samples, _Samples]] | None:
    """The image of each region, and its samples down and across."""
    found = _regions(o, regions, indices)
    if found is None or o.interpolation_mode is not enums.InterpolationMode.LINEAR:
        return None
    image, outputs = _sizes(o)
    grids = []
    for item, (x1, y1, x2, y2), (down, across) in found:
        rows = _samples(s, o, y1, y2, outputs[2], down, image[2])
        columns = _samples(s, o, x1, x2, outputs[3], across, image[3])
        if rows is None or columns is None:
            return None
        grids.append((item, rows, columns))
    return iter(grids)


def _scipy_align(s: Any, o: Any, x: Array, regions: Array, indices: Array) -> Any:
    grids = _grids(s, o, regions, indices)
    if grids is None:
        return None
    _, (_, channels, height, width) = _sizes(o)
    takes_maximum = o.reduction_function is enums.ReduceFunction.MAX
    found = []
    for item, rows, columns in grids:
        values = rows.weights @ x[item] @ columns.weights.T
        is_inside = np.outer(rows.is_inside, columns.is_inside)
        values = np.where(is_inside, values, np.float32(o.out_of_bounds_input_value))
        blocks = values.reshape(channels, height, -1, width, len(columns.weights) // width)
        found.append(blocks.max((2, 4)) if takes_maximum else blocks.mean((2, 4)))
    return np.array(found)


def _scipy_gradient(s: Any, o: Any, x: Any, g: Array, regions: Array, indices: Array) -> Any:
    if o.output_gradient_tensor is None or o.reduction_function is not enums.ReduceFunction.AVERAGE:
        return None
    grids = _grids(s, o, regions, indices)
    if grids is None:
        return None
    image, (_, _, height, width) = _sizes(o)
    planes = np.zeros(image)
    for (item, rows, columns), gradient in zip(grids, g, strict=True):
        down, across = len(rows.weights) // height, len(columns.weights) // width
        shares = gradient.repeat(down, 1).repeat(across, 2) / (down * across)
        shares = np.where(np.outer(rows.is_inside, columns.is_inside), shares, 0)
        planes[item] += rows.weights.T @ shares @ columns.weights
    return {"output_gradient_tensor": planes}


def _is_all_inside(o: Any, found: list[_Region]) -> bool:
    """Whether no sample is outside, where others have 0."""
    image, _ = _sizes(o)
    inner, _ = _offsets(o)
    return all(
        min(a, b) - inner > -1 and max(a, b) - inner < size
        for region in found
        for a, b, size in (
            (region.corners[0], region.corners[2], image[3]),
            (region.corners[1], region.corners[3], image[2]),
        )
    )


def _align(o: Any, x: Array, regions: Array, indices: Array) -> Node | None:
    found = _regions(o, regions, indices)
    if found is None or not (o.out_of_bounds_input_value == 0 or _is_all_inside(o, found)):
        return None
    call = _call(o, found)
    if call is None:
        return None
    corners, samples, is_centred = call
    _, outputs = _sizes(o)
    return Node(
        "RoiAlign",
        [wide(x), np.array(corners, np.float32), np.array([each.item for each in found], np.int64)],
        {
            "output_height": outputs[2],
            "output_width": outputs[3],
            "sampling_ratio": samples,
            "coordinate_transformation_mode": "half_pixel" if is_centred else "output_half_pixel",
        },
    )


def _torchvision_aligned(t: Any, o: Any, x: Any, regions: Any, indices: Any) -> Any:
    found = _regions(o, regions, indices)
    call = None if found is None else _call(o, found)
    if found is None or call is None:
        return None
    corners, samples, is_centred = call
    rows = [[each.item, *corner] for each, corner in zip(found, corners, strict=True)]
    _, outputs = _sizes(o)
    return t.ops.torchvision.roi_align(
        x.double(), t.tensor(rows, dtype=t.float64), 1.0, outputs[2], outputs[3], samples, is_centred
    )


def _torchvision_align(t: Any, o: Any, x: Any, regions: Any, indices: Any) -> Any:
    found = _regions(o, regions, indices)
    if found is None or not (o.out_of_bounds_input_value == 0 or _is_all_inside(o, found)):
        return None
    return _torchvision_aligned(t, o, x, regions, indices)


def _torchvision_gradient(t: Any, o: Any, x: Any, g: Any, regions: Any, indices: Any) -> Any:
    if o.output_gradient_tensor is None:
        return None
    with t.enable_grad():
        image = t.zeros(tuple(o.output_gradient_tensor.sizes), dtype=t.float64, requires_grad=True)
        y = _torchvision_aligned(t, o, image, regions, indices)
        return None if y is None else {"output_gradient_tensor": t.autograd.grad(y, image, g.double())[0]}


_PASSES = (
    "NEAREST_NEIGHBOR, whose ties are left open; indices outside the batch; samples at the bounds; ONNX and "
    "torchvision: MAX, other offsets, AlignRegionsToCorners, other numbers of samples for some regions, and "
    "regions below one element where it is made one"
)
row("ROI_ALIGN ROI_ALIGN1", _align, None, _scipy_align, _torchvision_align, passes=_PASSES)
row(
    "ROI_ALIGN_GRAD",
    None,
    None,
    _scipy_gradient,
    _torchvision_gradient,
    passes=f"OutputROIGradientTensor, MAX; {_PASSES}",
)
