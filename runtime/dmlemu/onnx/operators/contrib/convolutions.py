"""Convolutions with channels last, or with something behind them."""

from __future__ import annotations

from ....graph import Expression, transpose
from ...calls import MICROSOFT, Call, Made, lowers, repeated
from ...tensors import fitted
from ..windows import convolved, quantized_convolution, transposed_convolution
from .activations import activated

Shape = tuple[int, ...]


def channels_first(x: Expression, shape: Shape) -> tuple[Expression, Shape]:
    """A view of an image whose channels are last."""
    order = (0, len(shape) - 1, *range(1, len(shape) - 1))
    return transpose(x, order), tuple(shape[i] for i in order)


def channels_last(made: Made) -> Made:
    """The reverse, of a result."""
    shape = made.shape or made.expression.sizes
    order = (0, *range(2, len(shape)), 1)
    return Made(transpose(fitted(made.expression, shape), order), tuple(shape[i] for i in order))


@lowers("FusedConv", domain=MICROSOFT)
def _fused_convolution(c: Call) -> Made:
    return _finished(c, convolved(c, (c.x(0), c.shape(0)), (c.x(1), c.shape(1))))


def _finished(c: Call, made: Made) -> Made:
    """With what is added, and behind its activation."""
    x = made.expression
    if c.has(3):
        x = fitted(x, made.shape or x.sizes) + repeated(c.x(3), made.shape or x.sizes)
    return Made(activated(c, x, list(c.attribute("activation_params", []))), made.shape)


@lowers("NhwcConv", domain=MICROSOFT)
def _nhwc_convolution(c: Call) -> Made:
    """Images and filters have their channels last."""
    return channels_last(convolved(c, channels_first(c.x(0), c.shape(0)), channels_first(c.x(1), c.shape(1))))


@lowers("NhwcFusedConv", domain=MICROSOFT)
def _nhwc_fused_convolution(c: Call) -> Made:
    """Images have their channels last; filters are those of Conv."""
    made = channels_last(convolved(c, channels_first(c.x(0), c.shape(0)), (c.x(1), c.shape(1))))
    return _finished(c, made)


@lowers("ConvTransposeWithDynamicPads", domain=MICROSOFT)
def _convolution_transpose(c: Call) -> Made:
    return transposed_convolution(c, c.numbers(2) if c.has(2) else None, bias=3)


@lowers("QLinearConv", domain=MICROSOFT)
def _quantized_convolution(c: Call) -> Made:
    if not c.attribute("channels_last", 0):
        return quantized_convolution(c, c.x(0), c.shape(0))
    return channels_last(quantized_convolution(c, *channels_first(c.x(0), c.shape(0))))
