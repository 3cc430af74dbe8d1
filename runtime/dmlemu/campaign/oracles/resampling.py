"""RESAMPLE in its versions, and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dml import enums
from .rows import Array, Node, is_float, row, wide

__all__: list[str] = []

_NEAREST = enums.InterpolationMode.NEAREST_NEIGHBOR
_CENTRES, _CORNERS = (0.5, -0.5), (0.0, 0.0)
_TIE = 1e-4
"""Positions that are nearer to a tie are on either side of it by how they are rounded."""


def _offsets(o: Any) -> list[tuple[float, float]]:
    """Those of the sampled tensor and of the samples, for each dimension."""
    if hasattr(o, "input_gradient_tensor"):
        return list(zip(o.output_pixel_offsets, o.input_pixel_offsets, strict=True))
    if hasattr(o, "input_pixel_offsets"):
        return list(zip(o.input_pixel_offsets, o.output_pixel_offsets, strict=True))
    return [_CENTRES] * len(o.scales)


def _sizes(o: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of the sampled tensor, and of the samples."""
    if hasattr(o, "input_gradient_tensor"):
        return tuple(o.output_gradient_tensor.sizes), tuple(o.input_gradient_tensor.sizes)
    return tuple(o.input_tensor.sizes), tuple(o.output_tensor.sizes)


def _positions(o: Any) -> list[Array]:
    """Of the samples along each dimension."""
    offsets = zip(_sizes(o)[1], o.scales, _offsets(o), strict=True)
    return [
        (np.arange(count) - outer) / np.float64(np.float32(scale)) - inner
        for count, scale, (inner, outer) in offsets
    ]


def _system(o: Any) -> str:
    """The coordinates of ONNX; "": there are none such.  A dimension that is copied has any."""
    moved = {
        offsets for offsets, scale in zip(_offsets(o), o.scales, strict=True) if scale != 1 or sum(offsets)
    }
    if moved <= {_CENTRES}:
        return "half_pixel"
    return "asymmetric" if moved == {_CORNERS} else ""


def _rounding(o: Any) -> str:
    """How NEAREST_NEIGHBOR chooses, in ONNX's words."""
    direction = getattr(o, "rounding_direction", None)
    if direction is None:
        return "round_prefer_ceil"
    return "ceil" if direction is enums.AxisDirection.INCREASING else "floor"


def _is_decided(o: Any) -> bool:
    """Whether no position is so near to a tie that its rounding decides."""
    half = 0.5 if _rounding(o) == "round_prefer_ceil" else 0.0
    for p, scale in zip(_positions(o), o.scales, strict=True):
        away = np.abs((p + half) - np.round(p + half))
        if np.frexp(scale)[0] != 0.5 and (away < _TIE).any():
            return False
    return True


def _room(o: Any) -> list[Array]:
    """Indices that repeat the last elements: enough of them for all samples that are asked for."""
    wanted = zip(*_sizes(o), o.scales, strict=True)
    return [np.minimum(np.arange(max(n, int(np.ceil(m / scale)) + 1)), n - 1) for n, m, scale in wanted]


def _part(o: Any) -> tuple[slice, ...]:
    return tuple(slice(n) for n in _sizes(o)[1])


def _resize(o: Any, x: Array) -> Node | None:
    system, is_nearest = _system(o), o.interpolation_mode is _NEAREST
    if not system or not (_is_decided(o) if is_nearest else is_float(x)):
        return None
    attributes: dict[str, Any] = {
        "mode": "nearest" if is_nearest else "linear",
        "coordinate_transformation_mode": system,
    }
    if is_nearest:
        attributes["nearest_mode"] = _rounding(o)
    elif getattr(o, "antialiased", False):
        attributes["antialias"] = 1
    inputs = [wide(x[np.ix_(*_room(o))]), None, np.array(o.scales, np.float32)]
    return Node("Resize", inputs, attributes, lambda y: y[_part(o)])


def _weights(s: Any, o: Any) -> list[Array] | None:
    """What SciPy's interpolation takes of each sampled element, along each dimension: a row a sample."""
    if o.interpolation_mode is _NEAREST or getattr(o, "antialiased", False):
        return None
    found = []
    for size, p in zip(_sizes(o)[0], _positions(o), strict=True):
        places = np.meshgrid(np.clip(p, 0, size - 1), np.arange(size), indexing="ij")
        found.append(s.ndimage.map_coordinates(np.eye(size), places, order=1, mode="nearest"))
    return found


def _mixed(x: Array, weights: list[Array]) -> Array:
    for axis, each in enumerate(weights):
        x = np.moveaxis(np.tensordot(each, x, (1, axis)), 0, axis)
    return x


def _scipy_resample(s: Any, o: Any, x: Array) -> Any:
    weights = _weights(s, o) if o.input_tensor.dtype.kind == "f" else None
    return None if weights is None else _mixed(x, weights)


def _scipy_gradient(s: Any, o: Any, g: Array) -> Any:
    weights = _weights(s, o)
    return None if weights is None else _mixed(g, [each.T for each in weights])


def _torch_mode(o: Any, rank: int) -> str:
    """ "": PyTorch does not sample so."""
    if not 3 <= rank <= 5 or any(
        s != 1 or sum(each) for s, each in zip(o.scales[:2], _offsets(o)[:2], strict=True)
    ):
        return ""
    system = _system(o)
    if o.interpolation_mode is _NEAREST:
        how = {("half_pixel", "round_prefer_ceil"): "nearest-exact", ("asymmetric", "floor"): "nearest"}
        return how.get((system, _rounding(o)), "") if _is_decided(o) else ""
    if system != "half_pixel" or getattr(o, "antialiased", False):
        return ""
    return {3: "linear", 4: "bilinear", 5: "trilinear"}[rank]


def _torch_resample(t: Any, o: Any, x: Any) -> Any:
    mode = _torch_mode(o, x.ndim)
    if not mode or not x.is_floating_point():
        return None
    for axis, indices in enumerate(_room(o)):
        x = x.index_select(axis, t.tensor(indices.tolist()))
    more = {} if mode.startswith("nearest") else {"align_corners": False}
    return t.nn.functional.interpolate(x, scale_factor=tuple(o.scales[2:]), mode=mode, **more)[_part(o)]


def _torch_gradient(t: Any, o: Any, g: Any) -> Any:
    if not g.is_floating_point():
        return None
    with t.enable_grad():
        x = t.zeros(_sizes(o)[0], dtype=t.float64, requires_grad=True)
        y = _torch_resample(t, o, x)
        return None if y is None else t.autograd.grad(y, x, g.double())[0]


_PASSES = (
    "offsets of NEAREST_NEIGHBOR that are not those of centres or corners, and its positions at ties (unless "
    "the scale is a power of two); linear interpolation of integers; PyTorch: batch and channels, corners "
    "with LINEAR"
)
row("RESAMPLE RESAMPLE1 RESAMPLE2", _resize, _torch_resample, _scipy_resample, passes=_PASSES)
row(
    "RESAMPLE3",
    _resize,
    _torch_resample,
    _scipy_resample,
    passes=f"{_PASSES}; PyTorch and SciPy: Antialiased",
)
row(
    "RESAMPLE_GRAD RESAMPLE_GRAD1",
    None,
    _torch_gradient,
    _scipy_gradient,
    passes=f"{_PASSES}; SciPy: NEAREST_NEIGHBOR",
)
