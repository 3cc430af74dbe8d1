"""Normalizations with what is added before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .... import graph as g
from ....dml.enums import ReduceFunction
from ....graph import Expression, reinterpret
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated
from ...tensors import fitted
from ..indexing import rows_of


def _no_statistics(c: Call) -> None:
    for number in (1, 2):
        if c.wants(number):
            raise NotOnDevice(f"{c.op} with {c.node.output[number]!r}: means and deviations are not returned")


def _with_skip(c: Call, bias: int) -> Expression:
    """The first two inputs and a bias, which may be absent, added."""
    x = c.x(0) + repeated(c.x(1), c.shape(0))
    return x + repeated(c.x(bias), c.shape(0)) if c.has(bias) else x


def _by_mean_and_variance(
    x: Expression, scale: Expression, bias: Expression, axes: list[int], epsilon: float
) -> Expression:
    made: Expression = g.mean_variance_normalization1(
        x,
        repeated(scale, x.sizes),
        repeated(bias, x.sizes),
        axes=axes,
        normalize_variance=True,
        epsilon=epsilon,
    )
    return made


def _by_root_mean_square(c: Call, x: Expression, scale: Expression, axis: int, epsilon: float) -> Expression:
    made: Expression = g.mean_variance_normalization2(
        x,
        repeated(scale, x.sizes),
        c.scalar(0, x),
        axes=list(range(axis, x.rank)),
        use_mean=False,
        use_variance=True,
        epsilon=epsilon,
    )
    return made


def _and_sum(c: Call, made: Expression, x: Expression) -> list[Made | None]:
    """The outputs, the fourth of which is what was normalized."""
    return [Made(made, c.shape()), None, None, Made(x, c.shape())]


@lowers("SkipLayerNormalization", domain=MICROSOFT)
def _skip_layer_normalization(c: Call) -> list[Made | None]:
    _no_statistics(c)
    x = _with_skip(c, 4)
    bias = c.x(3) if c.has(3) else c.scalar(0, x)
    made = _by_mean_and_variance(x, c.x(2), bias, [c.rank() - 1], c.attribute("epsilon", 1e-12))
    return _and_sum(c, made, x)


@lowers("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def _skip_simplified_layer_normalization(c: Call) -> list[Made | None]:
    _no_statistics(c)
    x = _with_skip(c, 3)
    made = _by_root_mean_square(c, x, c.x(2), c.rank() - 1, c.attribute("epsilon", 1e-12))
    return _and_sum(c, made, x)


@lowers("SimplifiedLayerNormalization")
def _simplified_layer_normalization(c: Call) -> Made:
    """ONNX Runtime has it without its domain."""
    _no_statistics(c)
    made = _by_root_mean_square(c, c.x(0), c.x(1), c.axis(-1), c.attribute("epsilon", 1e-5))
    return Made(made, c.shape())


@lowers("GroupNorm", domain=MICROSOFT)
def _group_norm(c: Call) -> Made:
    return Made(_of_groups(c, c.x(0)), c.shape())


@lowers("SkipGroupNorm", domain=MICROSOFT)
def _skip_group_norm(c: Call) -> list[Made]:
    shape, skip = c.shape(0), c.x(3)
    if c.rank(3) == 2:
        skip = fitted(skip, _of_channels(c, shape, c.shape(3)[0]))
    x = c.x(0) + repeated(skip, shape)
    if c.has(4):
        x = x + repeated(fitted(c.x(4), _of_channels(c, shape, 1)), shape)
    return [Made(_of_groups(c, x), shape), Made(x, shape)]


def _of_channels(c: Call, shape: tuple[int, ...], items: int) -> tuple[int, ...]:
    """The sizes of numbers for the channels of ``items`` images."""
    last = c.attribute("channels_last", 1)
    return (items, 1, 1, shape[3]) if last else (items, shape[1], 1, 1)


def _of_groups(c: Call, x: Expression) -> Expression:
    """The channels as two dimensions, groups and what is in one."""
    groups, activation = c.attribute("groups"), c.attribute("activation", 0)
    if activation not in (0, 1):
        raise NotOnDevice(f"{c.op} with the activation {activation}")
    place = 3 if c.attribute("channels_last", 1) else 1
    inside = x.sizes[place] // groups
    whole = (*x.sizes[:place], groups, inside, *x.sizes[place + 1 :])
    one = [size if axis in (place, place + 1) else 1 for axis, size in enumerate(whole)]
    axes = [axis for axis in range(1, 5) if axis != place]
    scale, bias = (fitted(_as(c.x(number), x), one) for number in (1, 2))
    made = _by_mean_and_variance(fitted(x, whole), scale, bias, axes, c.attribute("epsilon", 1e-5))
    if activation:
        made = g.activation_swish(made, sigmoid_input_scale=1.0)
    return made


def _as(x: Expression, like: Expression) -> Expression:
    return x if x.data_type is like.data_type else g.cast(x, output_data_type=like.data_type)


@lowers("EmbedLayerNormalization", domain=MICROSOFT)
def _embed_layer_normalization(c: Call) -> list[Any]:
    batch, length = c.shape(0)
    width = c.shape(2)[1]
    sizes = (batch, length, width)
    x = fitted(rows_of(c.x(2), c.x(0)), sizes) + repeated(_positions(c, length), sizes)
    if c.has(4):
        x = x + fitted(rows_of(c.x(4), c.x(1)), sizes)
    made = _by_mean_and_variance(x, c.x(5), c.x(6), [2], c.attribute("epsilon", 1e-12))
    return [Made(made, sizes), _words(c, batch), Made(x, sizes)]


def _positions(c: Call, length: int) -> Expression:
    """Their embeddings, for each item or for all."""
    table = c.x(3)
    if c.has(8):
        return fitted(rows_of(table, c.x(8)), (c.shape(8)[0], length, table.sizes[1]))
    if length > table.sizes[0]:
        raise ValueError(f"{length} words have {table.sizes[0]} positions")
    return reinterpret(table, (length, table.sizes[1]), table.strides)


def _words(c: Call, batch: int) -> Any:
    """How many words of each item the mask keeps."""
    if not c.wants(1):
        return None
    if not c.has(7):
        return np.zeros(batch, np.int32)
    mask = c.x(7)
    made = g.reduce(mask, function=ReduceFunction.SUM, axes=[1], output_data_type=mask.data_type)
    return Made(made, (batch,))
