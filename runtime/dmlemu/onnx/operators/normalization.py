"""Softmax and its relatives, normalizations by mean and variance, by norms and by neighbours."""

from __future__ import annotations

import numpy as np

from ... import graph as g
from ...dml.enums import ReduceFunction
from ...graph import Expression
from ..calls import Call, Made, NotOnDevice, lowers, repeated
from ..folding import scaled_convolution
from ..tensors import by_channel, fitted


@lowers("Softmax", "LogSoftmax", "Hardmax")
def _softmax(c: Call) -> Expression:
    rank = max(c.rank(), 1)
    axis = c.attribute("axis", -1 if c.opset >= 13 else 1)
    if c.rank() == 0:
        axis = 0
    axis = axis + rank if axis < 0 else axis
    axes = [axis] if c.opset >= 13 else list(range(axis, rank))
    name = {"Softmax": "softmax1", "LogSoftmax": "log_softmax1", "Hardmax": "hardmax1"}[c.op]
    made: Expression = g.FUNCTIONS[f"activation_{name}"](c.x(), axes=axes)
    return made


@lowers("BatchNormalization")
def _batch_normalization(c: Call) -> Expression | list[Expression]:
    if c.attribute("training_mode", 0):
        return _training(c)
    if c.wants(1) or not c.attribute("spatial", 1):
        raise NotOnDevice("BatchNormalization of an old opset in training, or not by channels")
    shape = c.shape()
    if len(shape) < 2:
        raise NotOnDevice("BatchNormalization of a vector")
    folded = _folded(c)
    if folded is not None:
        return folded
    whole = (*shape, *(1,) * (4 - len(shape)))
    scale, bias, mean, variance = (by_channel(c.x(number), len(whole)) for number in (1, 2, 3, 4))
    made: Expression = g.batch_normalization(
        fitted(c.x(), whole), mean, variance, scale, bias, spatial=True, epsilon=c.attribute("epsilon", 1e-5)
    )
    return made


def _folded(c: Call) -> Expression | None:
    """In the convolution before it, if its parameters are known; ONNX Runtime does the same."""
    known = [c.tensor(number).array for number in (1, 2, 3, 4)]
    numbers = [each.astype(np.float64) for each in known if each is not None and each.dtype == np.float32]
    if len(numbers) < len(known):
        return None
    scale, bias, mean, variance = numbers
    with np.errstate(all="ignore"):  # scaled_convolution refuses what is not finite
        factors = scale / np.sqrt(variance + c.attribute("epsilon", 1e-5))
        return scaled_convolution(c.x(), factors, bias - mean * factors)


@lowers("InstanceNormalization")
def _instance_normalization(c: Call) -> Expression:
    scale, bias = (repeated(by_channel(c.x(number), c.rank()), c.shape()) for number in (1, 2))
    made: Expression = g.mean_variance_normalization1(
        c.x(),
        scale,
        bias,
        axes=list(range(2, c.rank())),
        normalize_variance=True,
        epsilon=c.attribute("epsilon", 1e-5),
    )
    return made


@lowers("LayerNormalization")
def _layer_normalization(c: Call) -> Expression:
    if c.wants(1) or c.wants(2):
        raise NotOnDevice("MEAN_VARIANCE_NORMALIZATION does not return mean and deviation")
    axis = c.axis(-1)
    scale = repeated(c.x(1), c.shape()) if c.has(1) else None
    bias = repeated(c.x(2), c.shape()) if c.has(2) else None
    x = c.x()
    if bias is not None and scale is None:
        scale = c.scalar(1, x)
    if scale is not None and bias is None:
        bias = c.scalar(0, x)
    made: Expression = g.mean_variance_normalization1(
        x,
        scale,
        bias,
        axes=list(range(axis, c.rank())),
        normalize_variance=True,
        epsilon=c.attribute("epsilon", 1e-5),
    )
    return made


@lowers("LpNormalization")
def _lp_normalization(c: Call) -> Expression:
    """Composed, because a norm of 0 gives 0 in ONNX and NaN by LP_NORMALIZATION."""
    x, axis = c.x(), c.axis(-1)
    function = ReduceFunction.L1 if c.attribute("p", 2) == 1 else ReduceFunction.L2
    norm = repeated(g.reduce(x, function=function, axes=[axis], output_data_type=x.data_type), c.shape())
    zero = c.scalar(0, x)
    made: Expression = g.element_wise_if(norm == zero, zero, x / norm)
    return made


@lowers("LRN")
def _local_response_normalization(c: Call) -> Made:
    shape = c.shape()
    whole = (*shape, *(1,) * (4 - len(shape)))
    if len(shape) > 4:
        whole = (*shape[:2], shape[2], int(np.prod(shape[3:])))
    made: Expression = g.local_response_normalization(
        fitted(c.x(), whole),
        cross_channel=True,
        local_size=c.attribute("size"),
        alpha=c.attribute("alpha", 1e-4),
        beta=c.attribute("beta", 0.75),
        bias=c.attribute("bias", 1.0),
    )
    return Made(made, shape)


def _training(c: Call) -> list[Expression]:
    """With the statistics of the batch, which also move the running ones."""
    x, shape = c.x(), c.shape()
    axes = [axis for axis in range(len(shape)) if axis != 1]
    mean = g.reduce(x, function=ReduceFunction.AVERAGE, axes=axes, output_data_type=x.data_type)
    centred = x - mean
    variance = g.reduce(
        centred * centred, function=ReduceFunction.AVERAGE, axes=axes, output_data_type=x.data_type
    )
    scale, bias = (by_channel(c.x(number), len(shape)) for number in (1, 2))
    made = centred / g.element_wise_sqrt(variance + c.attribute("epsilon", 1e-5)) * scale + bias
    momentum = c.attribute("momentum", 0.9)
    moved = [
        c.x(number) * momentum + fitted(each, c.shape(number)) * (1 - momentum)
        for number, each in ((3, mean), (4, variance))
    ]
    return [made, *moved]
