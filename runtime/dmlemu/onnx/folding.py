"""Scales and offsets of channels in the filters and the bias of the convolution before them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dml
from ..graph import FUNCTIONS, Expression
from ..graph.expression import ConstantNode, OperatorNode
from .tensors import Array

__all__ = ["scaled_convolution"]

_MOST = 1e6  # beyond it, and below its reciprocal, products with filters could leave the range of floats


def scaled_convolution(x: Expression, factors: Array, offsets: Array) -> Expression | None:
    """``x * factors + offsets`` by channels, as a convolution of its own instead of the one that makes ``x``.

    The filters are multiplied when they are uploaded.  None: ``x`` is not made by a convolution of FLOAT32
    with constant filters, or the factors are too large or too small.
    """
    node, size = x.node, np.abs(factors)
    if not isinstance(node, OperatorNode) or not isinstance(node.operator.desc, dml.ConvolutionOperatorDesc):
        return None
    desc = node.operator.desc
    image, filters, bias = node.sources
    if (
        image is None
        or x.desc is not node.outputs[0]
        or desc.direction is not dml.ConvolutionDirection.FORWARD
        or desc.fused_activation is not None
        or not np.all((size <= _MOST) & (size >= 1 / _MOST))
        or not np.all(np.isfinite(offsets))
    ):
        return None
    weights, added = _floats(filters), np.zeros(len(factors)) if bias is None else _floats(bias)
    if filters is None or weights is None or added is None:
        return None

    def scaled() -> Array:
        by_filter = factors.astype(np.float32).reshape(-1, *(1,) * (weights.ndim - 1))
        made: Array = (weights * by_filter).reshape(-1).view(np.uint8)
        return made

    number = (added.reshape(-1) * factors + offsets).astype(np.float32)
    graph: Any = x.graph
    made: Expression = FUNCTIONS["convolution"](
        image,
        Expression(ConstantNode(graph, filters.name, filters.desc, scaled)),
        graph.constant(number.reshape(1, -1, *(1,) * (x.rank - 2))),
        mode=desc.mode,
        direction=desc.direction,
        strides=desc.strides,
        dilations=desc.dilations,
        start_padding=desc.start_padding,
        end_padding=desc.end_padding,
        output_padding=desc.output_padding,
        group_count=desc.group_count,
    )
    return made


def _floats(x: Expression | None) -> Array | None:
    """The elements of a packed constant of FLOAT32; None: it is anything else."""
    if (
        x is None
        or not isinstance(x.node, ConstantNode)
        or x.data_type is not dml.TensorDataType.FLOAT32
        or x.desc.strides is not None
    ):
        return None
    found: Array = x.node.memory.view(np.float32).reshape(x.sizes)
    return found
