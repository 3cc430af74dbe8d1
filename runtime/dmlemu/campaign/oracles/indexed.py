"""Reads and writes by indices, and what only moves elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rows import Array, Node, is_float, row

__all__: list[str] = []


def _inside(indices: Any, size: int) -> bool:
    """Whether all are of elements that exist: what others give is left open, or an error."""
    return bool((indices < size).all()) and bool((indices >= -size).all())


# --- reads ---


def _own_indices(o: Any, indices: Any) -> Any:
    """Those of the last IndexDimensions; None: other rows have others."""
    sizes = indices.shape[indices.ndim - o.index_dimensions :]
    return indices.reshape(sizes) if int(np.prod(indices.shape)) == int(np.prod(sizes)) else None


def _gather(o: Any, x: Array, indices: Array) -> Node | None:
    own = _own_indices(o, indices)
    if own is None or not _inside(own.astype(np.int64), x.shape[o.axis]):
        return None
    sizes = o.output_tensor.sizes
    return Node("Gather", [x, own.astype(np.int64)], {"axis": o.axis}, lambda y: y.reshape(sizes))


def _torch_gather(t: Any, o: Any, x: Any, indices: Any) -> Any:
    own = _own_indices(o, indices.long())
    if own is None or not _inside(own, x.shape[o.axis]):
        return None
    own = own.reshape(-1) % x.shape[o.axis]
    return x.index_select(o.axis, own).reshape(tuple(o.output_tensor.sizes))


row("GATHER", _gather, _torch_gather, passes="indices outside the input; several rows of indices")


def _tuples(o: Any, x: Any, indices: Any) -> tuple[Any, Any, int] | None:
    """Input and indices without leading ones, and the dimensions of the batch; None: some are outside."""
    batch = getattr(o, "batch_dimension_count", 0)
    x = x.reshape(x.shape[x.ndim - o.input_dimension_count :])
    indices = indices.reshape(indices.shape[indices.ndim - o.indices_dimension_count :])
    sizes = x.shape[batch : batch + indices.shape[-1]]
    if not all(_inside(indices[..., i], size) for i, size in enumerate(sizes)):
        return None
    return x, indices, batch


def _gather_nd(o: Any, x: Array, indices: Array) -> Node | None:
    found = _tuples(o, x, indices.astype(np.int64))
    if found is None:
        return None
    x, indices, batch = found
    sizes = o.output_tensor.sizes
    return Node("GatherND", [x, indices], {"batch_dims": batch}, lambda y: y.reshape(sizes))


def _torch_gather_nd(t: Any, o: Any, x: Any, indices: Any) -> Any:
    found = _tuples(o, x, indices.long())
    if found is None:
        return None
    x, indices, batch = found
    table = x.reshape(-1, *x.shape[batch:])
    rows = indices.reshape(len(table), -1, indices.shape[-1])
    parts = [part[tuple(own.unbind(-1))] for part, own in zip(table, rows, strict=True)]
    return t.stack(parts).reshape(tuple(o.output_tensor.sizes))


row("GATHER_ND GATHER_ND1", _gather_nd, _torch_gather_nd, passes="indices outside the input")


def _one_hot(o: Any, indices: Array, values: Array) -> Node | None:
    off, on = values.ravel()[0], _on(values)
    own = indices.astype(np.int64).squeeze(o.axis)
    inputs = [own, np.int64(o.output_tensor.sizes[o.axis]), np.array([off, on])]
    return Node("OneHot", inputs, {"axis": o.axis})


def _on(values: Any) -> Any:
    """The second value along the last dimension that has one."""
    at = [0] * values.ndim
    at[max(i for i, size in enumerate(values.shape) if size > 1)] = 1
    return values[tuple(at)]


def _torch_one_hot(t: Any, o: Any, indices: Any, values: Any) -> Any:
    count = o.output_tensor.sizes[o.axis]
    own = indices.long().squeeze(o.axis)
    if not _inside(own, count):
        return None
    chosen = t.nn.functional.one_hot(own % count, count).movedim(-1, o.axis)
    return t.where(chosen != 0, _on(values), values.reshape(-1)[0])


row("ONE_HOT", _one_hot, _torch_one_hot, passes="PyTorch: indices outside the output")


def _nonzero(o: Any, found: Any) -> dict[str, Any] | None:
    """Coordinates by rows, of as many dimensions as are asked for."""
    columns, sizes = o.output_coordinates_tensor.sizes[-1], tuple(o.output_count_tensor.sizes)
    rows = np.asarray(found)[:, -columns:]
    return {
        "output_count_tensor": np.full(sizes, len(rows), np.uint32),
        "output_coordinates_tensor": rows,
    }


row(
    "NONZERO_COORDINATES",
    lambda o, x: Node("NonZero", [x], finish=lambda found: _nonzero(o, found.T)),
    lambda t, o, x: {
        "output_count_tensor": t.count_nonzero(x).reshape(tuple(o.output_count_tensor.sizes)),
        "output_coordinates_tensor": t.nonzero(x)[:, -o.output_coordinates_tensor.sizes[-1] :],
    },
)

# --- writes ---


def _are_different(places: Any) -> bool:
    """Whether no row of numbers is there twice: which of two updates stays is left open."""
    rows = np.asarray(places.tolist()).reshape(-1, places.shape[-1])
    return len(np.unique(rows, axis=0)) == len(rows)


def _places(o: Any, indices: Any, size: int) -> Any:
    """Where the updates go; None: outside, or two to one place."""
    if not _inside(indices, size):
        return None
    at = np.indices(indices.shape)
    at[o.axis] = np.asarray(indices.tolist()) % size
    return at if _are_different(np.moveaxis(at, 0, -1)) else None


def _scatter(o: Any, x: Array, indices: Array, updates: Array) -> Node | None:
    own = indices.astype(np.int64)
    if _places(o, own, x.shape[o.axis]) is None:
        return None
    return Node("ScatterElements", [x, own, updates], {"axis": o.axis})


def _torch_scatter(t: Any, o: Any, x: Any, indices: Any, updates: Any) -> Any:
    own = indices.long()
    if _places(o, own, x.shape[o.axis]) is None:
        return None
    return x.scatter(o.axis, own % x.shape[o.axis], updates)


row(
    "SCATTER_ELEMENTS",
    _scatter,
    _torch_scatter,
    passes="indices outside the output, two updates of one element",
)


def _scattered(o: Any, x: Any, indices: Any, updates: Any) -> tuple[Any, Any, Any] | None:
    found = _tuples(o, x, indices)
    if found is None:
        return None
    x, indices, _ = found
    length = indices.shape[-1]
    sizes = np.array(x.shape[:length])
    if not _are_different(np.asarray(indices.tolist()).reshape(-1, length) % sizes):
        return None
    return x, indices, updates.reshape(*indices.shape[:-1], *x.shape[length:])


def _scatter_nd(o: Any, x: Array, indices: Array, updates: Array) -> Node | None:
    found = _scattered(o, x, indices.astype(np.int64), updates)
    sizes = o.output_tensor.sizes
    return None if found is None else Node("ScatterND", found, finish=lambda y: y.reshape(sizes))


def _torch_scatter_nd(t: Any, o: Any, x: Any, indices: Any, updates: Any) -> Any:
    found = _scattered(o, x, indices.long(), updates)
    if found is None:
        return None
    x, indices, updates = found
    return x.index_put(indices.unbind(-1), updates).reshape(tuple(o.output_tensor.sizes))


row(
    "SCATTER_ND",
    _scatter_nd,
    _torch_scatter_nd,
    passes="indices outside the output, two updates of one block",
)


def _unpool(o: Any, x: Array, indices: Array) -> Node | None:
    sizes = o.output_tensor.sizes
    flat = indices.astype(np.int64)
    if not _inside(flat, int(np.prod(sizes))) or not _are_different(flat.reshape(-1, 1)):
        return None
    attributes = {"kernel_shape": [1] * (x.ndim - 2)}
    inputs = [x.astype(np.float32), flat, np.array(sizes, np.int64)]  # it has no other type
    return Node("MaxUnpool", inputs, attributes)


def _torch_unpool(t: Any, o: Any, x: Any, indices: Any) -> Any:
    sizes = tuple(o.output_tensor.sizes)
    flat = indices.long().reshape(-1)
    if not _inside(flat, int(np.prod(sizes))) or not _are_different(flat.reshape(-1, 1)):
        return None
    return t.zeros(int(np.prod(sizes)), dtype=x.dtype).scatter(0, flat, x.reshape(-1)).reshape(sizes)


row(
    "MAX_UNPOOLING",
    _unpool,
    _torch_unpool,
    by=("onnxruntime",),  # onnx.reference takes other indices
    passes="indices outside the output, two elements for one place",
)

# --- rearranging ---


def _lengths(o: Any, lengths: Any) -> Any:
    """Those of lines, in the order of the other dimensions, of at most all elements."""
    return np.minimum(np.asarray(lengths.tolist(), np.int64), o.input_tensor.sizes[o.axis]).reshape(-1)


def _reverse(o: Any, x: Array, lengths: Array) -> Node:
    turned = np.moveaxis(x, o.axis, 0)

    def finish(y: Array) -> Array:
        return np.moveaxis(y.reshape(turned.shape), 0, o.axis)

    inputs = [turned.reshape(len(turned), -1), _lengths(o, lengths)]
    return Node("ReverseSequence", inputs, {"time_axis": 0, "batch_axis": 1}, finish)


def _torch_reverse(t: Any, o: Any, x: Any, lengths: Any) -> Any:
    """Line by line."""
    turned = x.movedim(o.axis, -1)
    lines = [
        t.cat([line[:n].flip(0), line[n:]])
        for line, n in zip(turned.reshape(-1, turned.shape[-1]), _lengths(o, lengths), strict=True)
    ]
    return t.stack(lines).reshape(turned.shape).movedim(-1, o.axis)


row("REVERSE_SUBSEQUENCES", _reverse, _torch_reverse)


def _fold(o: Any, x: Array) -> Node | None:
    n = o.output_tensor.sizes[0]
    if not is_float(x):
        return None
    inputs = [
        x.reshape(n, -1, x.shape[-1]),
        np.array(o.output_tensor.sizes[2:], np.int64),
        np.array(o.window_sizes, np.int64),
    ]
    attributes = {
        "strides": list(o.strides),
        "dilations": list(o.dilations),
        "pads": [*o.start_padding, *o.end_padding],
    }
    is_image = len(o.window_sizes) == 2 or all(each == 1 for each in o.dilations)
    by = ("onnxruntime", "onnx") if is_image else ("onnx",)  # ONNX Runtime puts them elsewhere
    return Node("Col2Im", inputs, attributes, by=by)


def _torch_fold(t: Any, o: Any, x: Any) -> Any:
    """Without padding, which is cut off."""
    image = o.output_tensor.sizes
    if len(image) != 4:
        return None
    padded = [a + n + b for a, n, b in zip(o.start_padding, image[2:], o.end_padding, strict=True)]
    found = t.nn.functional.fold(
        x.reshape(image[0], -1, x.shape[-1]),
        tuple(padded),
        tuple(o.window_sizes),
        dilation=tuple(o.dilations),
        stride=tuple(o.strides),
    )
    (top, left), (height, width) = o.start_padding, image[2:]
    return found[:, :, top : top + height, left : left + width]


row(
    "FOLD",
    _fold,
    _torch_fold,
    passes="PyTorch, and ONNX Runtime with Dilations: images of other than two dimensions",
)


def _unfold(o: Any, x: Array) -> Node | None:
    """A convolution with a filter for each place of the window, which is 1 there."""
    channels, places = x.shape[1], int(np.prod(o.window_sizes))
    filters = np.tile(np.eye(places, dtype=np.float32), (channels, 1))
    attributes = {
        "strides": list(o.strides),
        "dilations": list(o.dilations),
        "pads": [*o.start_padding, *o.end_padding],
        "group": channels,
    }
    sizes = o.output_tensor.sizes
    inputs = [x.astype(np.float32), filters.reshape(-1, 1, *o.window_sizes)]
    return Node("Conv", inputs, attributes, lambda y: y.reshape(sizes))


def _torch_unfold(t: Any, o: Any, x: Any) -> Any:
    if x.ndim != 4:
        return None
    (top, left), (bottom, right) = o.start_padding, o.end_padding
    found = t.nn.functional.unfold(
        t.nn.functional.pad(x.float(), (left, right, top, bottom)),
        tuple(o.window_sizes),
        dilation=tuple(o.dilations),
        stride=tuple(o.strides),
    )
    return found.reshape(tuple(o.output_tensor.sizes))


row("UNFOLD", _unfold, _torch_unfold, passes="PyTorch: images of other than two dimensions")
