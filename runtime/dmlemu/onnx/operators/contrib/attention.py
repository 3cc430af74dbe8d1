"""Attention, by MULTIHEAD_ATTENTION."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .... import graph as g
from ....dml.enums import MultiheadAttentionMaskType, TensorDataType
from ....graph import Expression
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ...tensors import fitted
from ..products import Product, of_columns
from .quantized import integer_product

Sizes = tuple[int, int, int, int]  # items, heads, queries, keys with those of the past


def refuse(c: Call, *names: str) -> None:
    for name in names:
        if c.attribute(name, 0) not in (0, -1, "NONE"):
            raise NotOnDevice(f"{c.op} with {name} {c.attribute(name)}")


def refuse_inputs(c: Call, **names: int) -> None:
    for name, number in names.items():
        if c.has(number):
            raise NotOnDevice(f"{c.op} with {name}")


def has(c: Call, number: int) -> bool:
    """Whether an input is there; a past of no elements is none."""
    return c.has(number) and 0 not in c.shape(number)


def scale_of(c: Call, size: int) -> float:
    scale: float = c.attribute("scale", 0.0)
    return scale or 1 / math.sqrt(size)


# --- masks ---


def _mask(c: Call, number: int, sizes: Sizes) -> Expression | None:
    """What is not 0 where a query may read a key."""
    if not c.has(number):
        return None
    x, shape = c.x(number), c.shape(number)
    items, _, queries, keys = sizes
    if len(shape) == 1:
        x = _from_lengths(c, x, items, keys)
    elif len(shape) == 4:  # of all positions that there may be
        x = g.slice1(
            x,
            input_window_offsets=[0, 0, keys - queries, 0],
            input_window_sizes=[shape[0], 1, queries, keys],
            input_window_strides=[1, 1, 1, 1],
        )
    else:
        x = fitted(x, (shape[0], 1, shape[1] if len(shape) == 3 else 1, shape[-1]))
    return repeated(x, sizes)


def _from_lengths(c: Call, x: Expression, items: int, keys: int) -> Expression:
    """Of the ends of the keys, which their starts may follow, or lengths and starts of a packed batch."""
    columns = (items, 1, 1, keys)
    places = repeated(c.constant(np.arange(keys).reshape(1, 1, 1, keys), x), columns)
    rest = x.sizes[0] - items
    if rest not in (0, items, 2 * items + 2):
        raise ValueError(f"a mask of {x.sizes[0]} lengths for {items} items")
    ends, *others = g.split(x, axis=0, output_axis_sizes=[items, rest]) if rest else [x]
    inside = places < repeated(fitted(ends, (items, 1, 1, 1)), columns)
    if rest == items:
        starts = repeated(fitted(others[0], (items, 1, 1, 1)), columns)
        inside = g.element_wise_logical_and(inside, places >= starts)
    made: Expression = g.cast(inside, output_data_type=TensorDataType.INT32)
    return made


def _score_bias(c: Call, number: int | None, sizes: Sizes, past: int, like: Expression) -> Expression | None:
    """What is added to the scores; of later keys so little that a query does not read them.

    ``past``: how many keys lie before the first query.
    """
    bias = None if number is None or not c.has(number) else repeated(c.x(number), sizes)
    if not c.attribute("unidirectional", 0):
        return bias
    _, _, queries, keys = sizes
    later = np.triu(np.ones((1, 1, queries, keys), np.bool_), past + 1)
    causal = repeated(c.constant(np.where(later, np.finfo(like.dtype).min, 0), like), sizes)
    return causal if bias is None else bias + causal


# --- with weights for queries, keys and values ---


def _self_attention(
    c: Call, projected: Expression, widths: list[int], *, mask: int, past: int, bias: int | None
) -> Any:
    """``projected``: queries, keys and values, one behind the other; the others are numbers of inputs."""
    heads = c.attribute("num_heads")
    size = widths[0] // heads
    items, queries = projected.sizes[:2]
    query, key, value = g.split(projected, axis=2, output_axis_sizes=widths)
    past_key = past_value = None
    if has(c, past):
        halves = g.split(c.x(past), axis=0, output_axis_sizes=[1, 1])
        past_key, past_value = (fitted(each, c.shape(past)[1:]) for each in halves)
    before = past_key.sizes[2] if past_key is not None else 0
    sizes = (items, heads, queries, before + queries)
    allowed = _mask(c, mask, sizes)
    made = g.multihead_attention(
        query,
        key,
        value,
        mask_tensor=allowed,
        relative_position_bias_tensor=_score_bias(c, bias, sizes, before, query),
        past_key_tensor=past_key,
        past_value_tensor=past_value,
        scale=scale_of(c, size),
        mask_filter_value=c.attribute("mask_filter_value", -10000.0),
        head_count=heads,
        mask_type=_mask_type(allowed),
        output_present_key_tensor=c.wants(1),
        output_present_value_tensor=c.wants(1),
    )
    if not c.wants(1):
        return made
    present = [fitted(each, (1, *each.sizes)) for each in (made[1], made[2])]
    return [made[0], Made(g.join(present, axis=0))]


def _mask_type(mask: Expression | None) -> MultiheadAttentionMaskType:
    return MultiheadAttentionMaskType.NONE if mask is None else MultiheadAttentionMaskType.BOOLEAN


@lowers("Attention", domain=MICROSOFT)
def _attention(c: Call) -> Any:
    refuse(c, "do_rotary", "past_present_share_buffer")
    (items, length, width), columns = c.shape(0), c.shape(1)[1]
    rows = (1, 1, items * length)
    bias = repeated(c.x(2), (*rows, columns)) if c.has(2) else None
    projected = g.gemm(fitted(c.x(0), (*rows, width)), fitted(c.x(1), (1, 1, width, columns)), bias)
    widths = list(c.attribute("qkv_hidden_sizes", [columns // 3] * 3))
    return _self_attention(c, fitted(projected, (items, length, columns)), widths, mask=3, past=4, bias=5)


@lowers("QAttention", domain=MICROSOFT)
def _quantized_attention(c: Call) -> Any:
    refuse(c, "do_rotary", "past_present_share_buffer")
    product = Product(c.shape(0), c.shape(1))
    scale, zero = (fitted(c.x(number), (1, 1, 1, 1)) if c.has(number) else None for number in (3, 6))
    weight_scale = of_columns(c, 4)
    assert scale is not None and weight_scale is not None
    made = integer_product(
        product, (c.x(0), scale, zero), (c.x(1), weight_scale, of_columns(c, 7)), of_columns(c, 2)
    )
    projected = fitted(made.expression, product.shape)
    return _self_attention(c, projected, [product.shape[2] // 3] * 3, mask=5, past=8, bias=None)


# --- with queries, keys and values ---


@lowers("MultiHeadAttention", domain=MICROSOFT)
def _multi_head_attention(c: Call) -> Any:
    refuse_inputs(c, past_sequence_length=8, cache_indirection=9)
    if c.wants(3):
        raise NotOnDevice("MultiHeadAttention with the scores as an output")
    heads = c.attribute("num_heads")
    given, keys, size = _sources(c, heads)
    (items, queries), before = c.shape(0)[:2], 0
    if has(c, 6):
        given |= {"past_key_tensor": c.x(6), "past_value_tensor": c.x(7)}
        before = c.shape(6)[2]
    sizes = (items, heads, queries, before + keys)
    allowed = _mask(c, 4, sizes)
    made = g.multihead_attention(
        **given,
        bias_tensor=c.x(3) if c.has(3) else None,
        mask_tensor=allowed,
        relative_position_bias_tensor=_score_bias(c, 5, sizes, before, c.x(0)),
        scale=scale_of(c, size),
        mask_filter_value=c.attribute("mask_filter_value", -10000.0),
        head_count=heads,
        mask_type=_mask_type(allowed),
        output_present_key_tensor=c.wants(1),
        output_present_value_tensor=c.wants(2),
    )
    output, *present = made if isinstance(made, tuple) else (made,)
    shape = (items, queries, output.sizes[-1])  # stacked ones give it five dimensions
    return [Made(output, shape), *present]


def _sources(c: Call, heads: int) -> tuple[dict[str, Expression], int, int]:
    """The tensors that have queries, keys and values; the number of keys, and the size of one."""
    shape = c.shape(0)
    if len(shape) == 5:
        return {"stacked_query_key_value_tensor": c.x(0)}, shape[1], shape[4]
    query, size = {"query_tensor": c.x(0)}, shape[2] // heads
    if c.rank(1) == 5:
        return {**query, "stacked_key_value_tensor": c.x(1)}, c.shape(1)[1], size
    if c.rank(1) == 4:
        if c.has(3) or has(c, 6):
            raise NotOnDevice("MultiHeadAttention with a bias or a past beside keys with heads before them")
        return {**query, "past_key_tensor": c.x(1), "past_value_tensor": c.x(2)}, c.shape(1)[2], size
    return {**query, "key_tensor": c.x(1), "value_tensor": c.x(2)}, c.shape(1)[1], size
