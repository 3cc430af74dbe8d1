"""MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ...dml import enums
from .rows import Array, Node, row, wide

__all__: list[str] = []

_MASKS = enums.MultiheadAttentionMaskType
_FAR = -1e4
"""A score that is set to it counts for nothing beside one that is not."""


class _Heads(NamedTuple):
    """``{B, heads, positions, elements}``: queries, the new keys and values, those of the past.

    ``bias``: what is added to the scores, as ``{B, H, S, T}``; minus infinity for keys that do not count.
    """

    query: Any
    key: Any
    value: Any
    past_key: Any
    past_value: Any
    bias: Any


def _of_heads(x: Any, count: int) -> Any:
    """``{.., B, positions, count * E}`` by heads."""
    return x.reshape(*x.shape[-3:-1], count, -1).swapaxes(1, 2)


def _projected(o: Any, h: int, g: int, separate: Any, stacked: Any, bias: Any) -> dict[str, Any]:
    """Queries "q", new keys "k" and values "v" with their bias, by heads."""
    query_key, key_value, query_key_value = stacked
    found = {"q": (query_key, 0), "k": (query_key, 1)} if query_key is not None else {}
    found |= {"k": (key_value, 0), "v": (key_value, 1)} if key_value is not None else {}
    found |= {"qkv"[i]: (query_key_value, i) for i in range(3) if query_key_value is not None}
    parts = {name: x[..., i, :].swapaxes(1, 2) for name, (x, i) in found.items()}
    each = zip("qkv", separate, (h, g, g), strict=True)
    parts |= {name: _of_heads(x, count) for name, x, count in each if x is not None}
    if bias is not None and "k" in parts:
        sizes = [parts[name].shape[1] * parts[name].shape[-1] for name in "qkv"]
        for name, (start, end) in zip("qkv", pairwise(np.cumsum([0, *sizes])), strict=True):
            own = bias.reshape(-1)[start:end]
            parts[name] = parts[name] + own.reshape(parts[name].shape[1], 1, -1)
    elif bias is not None:
        parts["q"] = parts["q"] + bias.reshape(-1)[: h * parts["q"].shape[-1]].reshape(h, 1, -1)
    return parts


def _heads(
    t: Any,
    o: Any,
    query: Any,
    key: Any,
    value: Any,
    query_key: Any,
    key_value: Any,
    query_key_value: Any,
    bias: Any,
    mask: Any,
    relative: Any,
    past_key: Any,
    past_value: Any,
    lengths: Any = None,
) -> _Heads | None:
    """``t``: NumPy or PyTorch, whose the tensors are.  None: what the mask does is no sum."""
    h = getattr(o, "query_head_count", None) or o.head_count
    g = getattr(o, "key_value_head_count", h)
    stacked = query_key, key_value, query_key_value
    parts = _projected(o, h, g, (query, key, value), stacked, bias)
    past_key, past_value = (None if x is None else x.reshape(x.shape[-4:]) for x in (past_key, past_value))
    q, k, v = parts["q"], parts.get("k"), parts.get("v")
    if k is None:  # the past alone
        k, v, past_key, past_value = past_key, past_value, None, None
    new, last = k.shape[2], None
    if lengths is not None:
        present = o.output_present_key_tensor
        room = present.sizes[-2] if past_key is None else past_key.shape[2]
        counts = np.clip(np.ravel(lengths.tolist()), 0, room - new)
        k, v = _cached(t, past_key, k, counts, room), _cached(t, past_value, v, counts, room)
        past_key = past_value = None
        last = np.minimum(counts[:, None] + np.arange(q.shape[2]), counts[:, None] + new - 1)
    total = k.shape[2] + (0 if past_key is None else past_key.shape[2])
    scores = _added(o, mask, q.shape[0], h, q.shape[2], total)
    if scores is None:
        return None
    if relative is not None:
        scores = scores + np.asarray(relative.tolist(), np.float32).reshape(scores.shape)
    if last is not None:
        scores = np.where(np.arange(total) <= last[:, None, :, None], scores, np.float32(-np.inf))
    if np.isneginf(scores).all(-1).any():
        return None
    return _Heads(q, k, v, past_key, past_value, scores)


def _cached(t: Any, past: Any, new: Any, counts: Any, room: int) -> Any:
    """The cache of each item with its new rows behind those that count; what is not there is 0."""
    items, heads, count, size = new.shape
    before = t.zeros((items, heads, room, size)) if past is None else past
    return t.stack(
        [
            t.concatenate([rows[:, :n], own, rows[:, n + count :]], 1)
            for rows, own, n in zip(before, new, counts, strict=True)
        ]
    )


def _added(o: Any, mask: Any, b: int, h: int, s: int, t: int) -> Array | None:
    """What the mask adds to the scores.  None: it sets them to what still counts."""
    none = np.zeros((b, h, s, t), np.float32)
    if o.mask_type is _MASKS.NONE:
        return none
    mask = np.asarray(mask.tolist())
    if o.mask_type is _MASKS.BOOLEAN:
        found: Array = np.where(mask.reshape(none.shape) == 0, np.float32(o.mask_filter_value), none)
        return found
    if o.mask_type is _MASKS.KEY_SEQUENCE_END_START:
        ends, starts = mask.reshape(2, b)
    else:
        ends, starts = mask.ravel()[:b], np.zeros(b)
    inside = (np.arange(t) >= starts[:, None]) & (np.arange(t) < ends[:, None])
    if not inside.all() and (o.mask_filter_value > _FAR or not inside.any(1).all()):
        return None
    hidden: Array = none + np.where(inside, np.float32(0), np.float32(-np.inf))[:, None, None]
    return hidden


def _outputs(o: Any, y: Any, *present: Any) -> dict[str, Any]:
    """``y``: by heads."""
    found = {"output_tensor": y.swapaxes(1, 2).reshape(tuple(o.output_tensor.sizes))}
    names = ("output_present_key_tensor", "output_present_value_tensor")
    for name, each in zip(names, present, strict=True):
        tensor = getattr(o, name)
        if tensor is not None:
            found[name] = each.reshape(tuple(tensor.sizes))
    return found


def _attention(o: Any, *tensors: Any) -> Node | None:
    heads = _heads(np, o, *map(wide, tensors))
    if heads is None or o.scale <= 0:  # both factors are multiplied by its root
        return None
    q, k, v, past_key, past_value, bias = heads
    inputs = [q, k.astype(q.dtype), v.astype(q.dtype), bias.astype(q.dtype), past_key, past_value]
    if past_key is None:  # present keys are those that are given
        return Node("Attention", inputs, {"scale": o.scale}, lambda y: _outputs(o, y, k, v), opset=23)
    attributes = {"scale": o.scale}
    return Node("Attention", inputs, attributes, lambda found: _outputs(o, *found), 3, opset=23)


def _torch_attention(t: Any, o: Any, *tensors: Any) -> Any:
    wide = (x.double() if x is not None and x.is_floating_point() else x for x in tensors)
    heads = _heads(t, o, *wide)
    if heads is None:
        return None
    q, k, v, past_key, past_value, bias = heads
    if past_key is not None:
        k, v = t.cat([past_key, k], 2), t.cat([past_value, v], 2)
    y = t.nn.functional.scaled_dot_product_attention(
        q,
        k,
        v,
        t.tensor(bias.tolist(), dtype=q.dtype),
        scale=o.scale,
        enable_gqa=q.shape[1] != k.shape[1],
    )
    return _outputs(o, y, k, v)


row(
    "MULTIHEAD_ATTENTION MULTIHEAD_ATTENTION1",
    _attention,
    _torch_attention,
    passes="masks that set scores to a number that still counts; ONNX: a scale that is not above 0",
)
