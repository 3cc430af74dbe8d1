"""What most models compute of the shapes of their tensors, without the reference implementation.

That has a module for each operator of ONNX, and loads them all with the first one, which takes as long as
compiling a small network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from .nodes import Work
from .tensors import Array

__all__ = ["computed", "sliced"]

_MOST = 1024  # elements
_WHOLE = {onnx.TensorProto.INT32: np.int32, onnx.TensorProto.INT64: np.int64}


def computed(work: Work, inputs: Sequence[Array | None]) -> Array | None:
    """The output of a node that computes with few whole numbers; None: the host must do it.

    Of Shape and Size the input has the right shape, and any elements.
    """
    function = _FUNCTIONS.get(work.node.op_type)
    if function is None or work.domain or any(each is None for each in inputs):
        return None
    given = [np.asarray(each) for each in inputs]
    if work.node.op_type not in ("Shape", "Size") and not all(map(_is_whole, given)):
        return None
    attributes = {each.name: onnx.helper.get_attribute_value(each) for each in work.node.attribute}
    try:
        return function(given, attributes)
    except (LookupError, ValueError, TypeError):  # the reference implementation says what is wrong
        return None


def _is_whole(array: Array) -> bool:
    return array.dtype.kind in "iu" and array.size <= _MOST


def _shape(inputs: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    shape = inputs[0].shape[attributes.get("start", 0) : attributes.get("end")]
    return np.array(shape, np.int64)


def _size(inputs: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    return np.array(inputs[0].size, np.int64)


def _cast(inputs: Sequence[Array], attributes: Mapping[str, Any]) -> Array | None:
    """None: to another type, or a number does not fit."""
    dtype = _WHOLE.get(attributes["to"])
    if dtype is None:
        return None
    made: Array = inputs[0].astype(dtype)
    return made if np.array_equal(made, inputs[0]) else None


def _concat(inputs: Sequence[Array], attributes: Mapping[str, Any]) -> Array | None:
    if len({each.dtype for each in inputs}) > 1:
        return None
    made: Array = np.concatenate(inputs, attributes["axis"])
    return made


def sliced(data: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    """What Slice takes, from operator set 10 on; a view of ``data``.  The others are arrays of whole numbers.

    The reference implementation takes nothing from a start in front of the first element backwards.
    """
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    windows = [slice(None)] * data.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        windows[axis] = slice(max(start, -data.shape[axis]), end, step)
    return data[tuple(windows)]


def _slice(inputs: Sequence[Array], attributes: Mapping[str, Any]) -> Array | None:
    """None: of operator sets before 10."""
    if len(inputs) < 3:
        return None
    made: Array = sliced(inputs[0], *inputs[1:]).copy()
    return made


def _gather(inputs: Sequence[Array], attributes: Mapping[str, Any]) -> Array:
    made: Array = np.asarray(np.take(inputs[0], inputs[1], attributes.get("axis", 0)))
    return made


_FUNCTIONS: dict[str, Callable[[Sequence[Array], Mapping[str, Any]], Array | None]] = {
    "Shape": _shape,
    "Size": _size,
    "Cast": _cast,
    "Concat": _concat,
    "Slice": _slice,
    "Gather": _gather,
}
