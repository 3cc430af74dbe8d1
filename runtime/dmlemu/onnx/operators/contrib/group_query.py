"""Attention of queries in groups with a cache of keys and values, by MULTIHEAD_ATTENTION1."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import graph as g
from ....dml.enums import MatrixTransform, MultiheadAttentionMaskType
from ....graph import Expression, transpose
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ...tensors import fitted
from .attention import Sizes, has, refuse, refuse_inputs, scale_of
from .rotation import angles_at, rotated


@lowers("GroupQueryAttention", domain=MICROSOFT)
def _group_query_attention(c: Call) -> list[Any]:
    """Past and new tokens lie in a cache, whose size is the longest length or that of the past, if larger."""
    refuse(c, "qk_output", "sliding_window_cache", "k_quant_type", "v_quant_type")
    refuse_inputs(c, k_scale=12, v_scale=13, q_norm_weight=14, query_seqlens=16)
    if c.attribute("causal", 1) != 1:
        raise NotOnDevice("GroupQueryAttention that is not causal")
    heads, groups = c.attribute("num_heads"), c.attribute("kv_num_heads")
    query, key, value = _tokens(c, heads, groups)
    (items, length), size = query.sizes[:2], query.sizes[2] // heads
    total = int(np.ravel(c.value(6))[0])
    lengths = _past_lengths(c, items, length, total)
    if c.attribute("do_rotary", 0):
        query, key = _turned(c, query, key, size, lengths)
    room = max(total, c.shape(3)[2] if c.has(3) else 0)
    past_key, past_value = (_with_room(c, number, (items, groups, room, size), query) for number in (3, 4))
    own = _has_own_softmax(c)
    bias = _score_bias(c, lengths, (items, heads, length, room), query, causal=own)
    output, keys, values = g.multihead_attention1(
        query,
        key,
        value,
        relative_position_bias_tensor=bias,
        past_key_tensor=past_key,
        past_value_tensor=past_value,
        past_sequence_lengths_tensor=lengths,
        scale=scale_of(c, size),
        mask_filter_value=-10000.0,
        query_head_count=heads,
        key_value_head_count=groups,
        mask_type=MultiheadAttentionMaskType.NONE,
        output_present_key_tensor=True,
        output_present_value_tensor=True,
    )
    if own:
        assert bias is not None
        output = _with_own_softmax(c, query, keys, values, bias)
    return [Made(output, (items, length, heads * size)), keys, values]


def _tokens(c: Call, heads: int, groups: int) -> list[Expression]:
    """Queries, keys and values, which may be one tensor."""
    if c.has(1):
        return [c.x(0), c.x(1), c.x(2)]
    size = c.shape(0)[2] // (heads + 2 * groups)
    made: list[Expression] = list(
        g.split(c.x(0), axis=2, output_axis_sizes=[heads * size, groups * size, groups * size])
    )
    return made


# --- the cache ---


def _past_lengths(c: Call, items: int, length: int, total: int) -> Expression:
    """How many tokens of each item are in the cache: none before a prompt."""
    last = fitted(c.x(5), (items,))
    return c.scalar(0, last) if length == total else last - c.scalar(length - 1, last)


def _with_room(c: Call, number: int, sizes: Sizes, like: Expression) -> Expression:
    """The past with room behind it for the new tokens."""
    if not has(c, number):
        return _zeros(c, sizes, like)
    past = c.x(number)
    return _longer(c, past, 2, sizes[2] - past.sizes[2])


def _longer(c: Call, x: Expression, axis: int, more: int) -> Expression:
    """With zeros behind its elements along an axis."""
    if not more:
        return x
    sizes = [more if number == axis else size for number, size in enumerate(x.sizes)]
    made: Expression = g.join([x, _zeros(c, sizes, x)], axis=axis)
    return made


def _zeros(c: Call, sizes: Any, like: Expression) -> Expression:
    return repeated(c.constant(np.zeros([1] * len(sizes)), like), sizes)


# --- positions ---


def _turned(
    c: Call, query: Expression, key: Expression, size: int, lengths: Expression
) -> tuple[Expression, Expression]:
    """With the positions that follow those of the past, or those that are given."""
    items, length = query.sizes[:2]
    if c.has(9):
        positions = repeated(c.x(9), (items, length))
    else:
        steps = repeated(c.constant(np.arange(length).reshape(1, length), lengths), (items, length))
        positions = repeated(fitted(lengths, (items, 1)), (items, length)) + steps
    angles = angles_at(c, (7, 8), positions, items, length)
    interleaved = bool(c.attribute("rotary_interleaved", 0))

    def turn(x: Expression) -> Expression:
        by_head = fitted(x, (items, length, x.sizes[2] // size, size))
        return fitted(rotated(by_head, angles, interleaved=interleaved), x.sizes)

    return turn(query), turn(key)


def _score_bias(
    c: Call, lengths: Expression, sizes: Sizes, like: Expression, *, causal: bool
) -> Expression | None:
    """What is added to the scores; so little before a local window that no query reads the keys there.

    ``causal``: the same for the keys behind a query, which MULTIHEAD_ATTENTION1 leaves out by itself.
    """
    items, _, length, room = sizes
    bias, window = None, c.attribute("local_window_size", -1)
    if c.has(10):
        bias = repeated(_longer(c, c.x(10), 3, room - c.shape(10)[3]), sizes)
    if window < 0 and not causal:
        return bias
    columns = (items, 1, length, room)
    steps = np.arange(length).reshape(1, 1, length, 1) - np.arange(room).reshape(1, 1, 1, room)
    distance = repeated(fitted(lengths, (items, 1, 1, 1)), columns)
    distance = distance + repeated(c.constant(steps, lengths), columns)
    lowest = repeated(c.constant(np.full((1, 1, 1, 1), np.finfo(like.dtype).min), like), columns)
    hidden = _zeros(c, columns, like)
    if window >= 0:
        hidden = g.element_wise_if(distance >= c.scalar(window, distance), lowest, hidden)
    if causal:
        hidden = g.element_wise_if(distance < c.scalar(0, distance), lowest, hidden)
    hidden = repeated(hidden, sizes)
    return hidden if bias is None else bias + hidden


# --- what MULTIHEAD_ATTENTION1 does not do with the scores ---


def _has_own_softmax(c: Call) -> bool:
    return bool(c.attribute("softcap", 0.0)) or c.attribute("smooth_softmax", -1) == 1 or c.has(11)


def _with_own_softmax(
    c: Call, query: Expression, keys: Expression, values: Expression, bias: Expression
) -> Expression:
    """Capped scores, and a share of each softmax that goes to no key.

    The operator has only written the cache then.  The rows of a group are one product.
    """
    (items, groups, room, size), heads, length = keys.sizes, bias.sizes[1], query.sizes[1]
    rows = (items, groups, heads // groups * length)
    x = transpose(fitted(query, (items, length, heads, size)), [0, 2, 1, 3])
    scores = g.gemm(
        fitted(x, (*rows, size)), keys, trans_b=MatrixTransform.TRANSPOSE, alpha=scale_of(c, size)
    )
    scores = fitted(scores, bias.sizes)
    cap = c.attribute("softcap", 0.0)
    if cap:
        scores = g.element_wise_tanh(scores * (1 / cap)) * cap
    scores = scores + bias
    if c.attribute("smooth_softmax", -1) == 1 or c.has(11):
        one = (*bias.sizes[:3], 1)
        sink = repeated(fitted(c.x(11), (1, heads, 1, 1)), one) if c.has(11) else _zeros(c, one, scores)
        weights = g.activation_softmax1(g.join([scores, sink], axis=3), axes=[3])
        weights = g.split(weights, axis=3, output_axis_sizes=[room, 1])[0]
    else:
        weights = g.activation_softmax1(scores, axes=[3])
    made = fitted(g.gemm(fitted(weights, (*rows, room)), values), (items, heads, length, size))
    return fitted(transpose(made, [0, 2, 1, 3]), (items, length, heads * size))
