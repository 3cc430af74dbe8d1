"""PyTorch's functions beside the operators that compute the same; skipped where it is not installed.

Arrays cross by their bytes: a PyTorch built for another NumPy still computes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from harness import compare
from strategies import ALL_TYPES, Array, dtype_of

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, OperatorType
from dmlemu.dml.operators import declared
from dmlemu.dml.operators.definition import emulated

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torch = pytest.importorskip("torch")

F = torch.nn.functional
TYPES = {dtype_of(each): each for each in ALL_TYPES}
X = np.random.default_rng(7).normal(0, 2, (2, 3, 4, 5)).astype(np.float32)
MATRIX = X.reshape(6, 20)
INDICES = np.random.default_rng(8).integers(0, 4, (2, 3, 6, 5)).astype(np.int64)
DIRECTION = dml.AxisDirection


def to_torch(array: Array) -> Any:
    flat = np.ascontiguousarray(array)
    kind = getattr(torch, flat.dtype.name)
    return torch.frombuffer(bytearray(flat.tobytes()), dtype=kind).reshape(flat.shape)


def from_torch(tensor: Any, dtype: Any) -> Array:
    return np.array(tensor.contiguous().tolist(), dtype)


def window(sizes: list[int], *, start: list[int], end: list[int], **fields: list[int]) -> dict[str, Any]:
    return {"window_sizes": sizes, "start_padding": start, "end_padding": end, **fields}


Compute = Callable[..., Any]

# Operator, its inputs and fields, and PyTorch's function of the inputs.
ROWS: list[tuple[str, Mapping[str, Array], Mapping[str, Any], Compute]] = [
    ("ACTIVATION_SOFTMAX1", {"input_tensor": X}, {"axes": [1]}, lambda x: F.softmax(x, 1)),
    ("ACTIVATION_LOG_SOFTMAX1", {"input_tensor": X}, {"axes": [2]}, lambda x: F.log_softmax(x, 2)),
    ("ACTIVATION_GELU", {"input_tensor": X}, {}, F.gelu),
    ("ACTIVATION_CELU", {"input_tensor": X}, {"alpha": 1.5}, lambda x: F.celu(x, 1.5)),
    ("ACTIVATION_ELU", {"input_tensor": X}, {"alpha": 1.5}, lambda x: F.elu(x, 1.5)),
    ("ACTIVATION_SWISH", {"input_tensor": X}, {"sigmoid_input_scale": 1.0}, F.silu),
    ("ACTIVATION_HARD_SWISH", {"input_tensor": X}, {"alpha": 1 / 6, "beta": 0.5}, F.hardswish),
    ("ACTIVATION_SOFTPLUS", {"input_tensor": X}, {"steepness": 2.0}, lambda x: F.softplus(x, 2.0)),
    (
        "ACTIVATION_SHRINK",
        {"input_tensor": X},
        {"bias": 0.5, "threshold": 0.5},
        lambda x: F.softshrink(x, 0.5),
    ),
    ("ELEMENT_WISE_ERF", {"input_tensor": X}, {}, lambda x: torch.erf(x)),
    ("ELEMENT_WISE_SIN", {"input_tensor": X * 1e5}, {}, lambda x: torch.sin(x.double()).float()),
    ("ELEMENT_WISE_ASINH", {"input_tensor": X}, {}, lambda x: torch.asinh(x)),
    (
        "CUMULATIVE_SUMMATION",
        {"input_tensor": X},
        {"axis": 2, "axis_direction": DIRECTION.INCREASING, "has_exclusive_sum": False},
        lambda x: torch.cumsum(x, 2),
    ),
    (
        "CUMULATIVE_PRODUCT",
        {"input_tensor": X},
        {"axis": 3, "axis_direction": DIRECTION.INCREASING, "has_exclusive_product": False},
        lambda x: torch.cumprod(x, 3),
    ),
    (
        "REDUCE",
        {"input_tensor": X},
        {"function": dml.ReduceFunction.LOG_SUM_EXP, "axes": [1, 3]},
        lambda x: torch.logsumexp(x, (1, 3), keepdim=True),
    ),
    (
        "PADDING",
        {"input_tensor": X},
        {
            "padding_mode": dml.PaddingMode.REFLECTION,
            "padding_value": 0.0,
            "start_padding": [0, 0, 1, 2],
            "end_padding": [0, 0, 3, 4],
        },
        lambda x: F.pad(x, (2, 4, 1, 3), "reflect"),
    ),
    (
        "PADDING",
        {"input_tensor": X},
        {
            "padding_mode": dml.PaddingMode.EDGE,
            "padding_value": 0.0,
            "start_padding": [0, 0, 7, 1],
            "end_padding": [0, 0, 0, 2],
        },
        lambda x: F.pad(x, (1, 2, 7, 0), "replicate"),
    ),
    (
        "GATHER_ELEMENTS",
        {"input_tensor": X, "indices_tensor": INDICES},
        {"axis": 2},
        lambda x, i: x.gather(2, i),
    ),
    (
        "DEPTH_TO_SPACE1",
        {"input_tensor": np.concatenate([X, X, X, X], 1)},
        {"block_size": 2, "order": dml.DepthSpaceOrder.COLUMN_ROW_DEPTH},
        lambda x: F.pixel_shuffle(x, 2),
    ),
    (
        "FOLD",
        {"input_tensor": X.reshape(2, 12, 5)[:, :, :4].copy()},
        {
            "window_sizes": [2, 2],
            "strides": [2, 2],
            "dilations": [1, 1],
            "start_padding": [1, 0],
            "end_padding": [0, 1],
        },
        lambda x: F.fold(F.pad(x, (0, 0)), (4, 4), (2, 2), stride=2)[:, :, 1:, :-1],
    ),
    (
        "UNFOLD",
        {"input_tensor": X},
        {
            "window_sizes": [2, 3],
            "strides": [1, 2],
            "dilations": [2, 1],
            "start_padding": [1, 0],
            "end_padding": [1, 0],
        },
        lambda x: F.unfold(x, (2, 3), dilation=(2, 1), padding=(1, 0), stride=(1, 2)),
    ),
    (
        "MEAN_VARIANCE_NORMALIZATION1",
        {"input_tensor": X, "scale_tensor": X[:1, :1, :1], "bias_tensor": X[:1, 1:2, :1]},
        {"axes": [3], "normalize_variance": True, "epsilon": 1e-5},
        lambda x, scale, bias: F.layer_norm(x, [5], scale.ravel(), bias.ravel()),
    ),
    (
        "MEAN_VARIANCE_NORMALIZATION",
        {"input_tensor": X},
        {"cross_channel": False, "normalize_variance": True, "epsilon": 1e-5},
        lambda x: F.instance_norm(x),
    ),
    (
        "BATCH_NORMALIZATION",
        {
            "input_tensor": X,
            "mean_tensor": X[:1, :, :1, :1],
            "variance_tensor": np.abs(X[:1, :, 1:2, :1]),
            "scale_tensor": X[1:, :, :1, :1],
            "bias_tensor": X[1:, :, 1:2, :1],
        },
        {"spatial": True, "epsilon": 1e-5},
        lambda x, *more: F.batch_norm(x, *(each.ravel() for each in more), eps=1e-5),
    ),
    (
        "LP_NORMALIZATION",
        {"input_tensor": X},
        {"axis": 2, "p": 1, "epsilon": 1e-5},
        lambda x: F.normalize(x, 1, 2, 1e-5),
    ),
    (
        "LOCAL_RESPONSE_NORMALIZATION",
        {"input_tensor": X},
        {"cross_channel": True, "local_size": 3, "alpha": 0.5, "beta": 0.75, "bias": 2.0},
        lambda x: F.local_response_norm(x, 3, 0.5, 0.75, 2.0),
    ),
]


def active() -> list[Any]:
    done = {operator.name for operator in emulated()}
    return [pytest.param(*row, id=f"{row[0]} {place}") for place, row in enumerate(ROWS) if row[0] in done]


def packed(array: Array) -> BufferTensorDesc:
    return BufferTensorDesc(TYPES[array.dtype], array.shape)


@pytest.mark.parametrize(("operator", "inputs", "fields", "compute"), active())
def test_the_same_as_pytorch(
    operator: str, inputs: Mapping[str, Array], fields: Mapping[str, Any], compute: Compute
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = from_torch(compute(*map(to_torch, inputs.values())), np.float32)
    tensors = {name: packed(array) for name, array in inputs.items()}
    desc = declared()[OperatorType[operator]](**tensors, output_tensor=packed(want), **fields)

    found = compare(desc, inputs)

    np.testing.assert_allclose(found["output_tensor"], want, 2e-6, 1e-6)


# Operator, its fields, and PyTorch's forward function of the input, the scale and the bias.
GRADIENTS: list[tuple[str, Mapping[str, Any], Compute]] = [
    (
        "BATCH_NORMALIZATION_TRAINING_GRAD",
        {"epsilon": 1e-5},
        lambda x, scale, bias: F.batch_norm(x, None, None, scale, bias, training=True),
    ),
    (
        "BATCH_NORMALIZATION_GRAD",
        {"epsilon": 1e-5},
        lambda x, scale, bias: F.batch_norm(x, *map(to_torch, statistics()), scale, bias),
    ),
    (
        "LOCAL_RESPONSE_NORMALIZATION_GRAD",
        {"cross_channel": True, "local_size": 3, "alpha": 0.5, "beta": 0.75, "bias": 2.0},
        lambda x, scale, bias: F.local_response_norm(x, 3, 0.5, 0.75, 2.0),
    ),
]


def statistics() -> tuple[Array, Array]:
    """Of the channels of X."""
    return X.mean((0, 2, 3)), X.var((0, 2, 3))


@pytest.mark.parametrize(("operator", "fields", "forward"), GRADIENTS, ids=[row[0] for row in GRADIENTS])
def test_the_gradients_of_pytorch(operator: str, fields: Mapping[str, Any], forward: Compute) -> None:
    g = np.random.default_rng(9).normal(0, 1, X.shape).astype(np.float32)
    scale = np.float32([0.5, 2, -1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x, factor, bias = (to_torch(each).requires_grad_() for each in (X, scale, np.zeros_like(scale)))
        forward(x, factor, bias).backward(to_torch(g))
    want = {"output_gradient_tensor": from_torch(x.grad, np.float32)}
    inputs = {"input_tensor": X, "input_gradient_tensor": g}
    if operator.startswith("BATCH"):
        mean, variance = statistics()
        groups = {"mean_tensor": mean, "variance_tensor": variance, "scale_tensor": scale}
        inputs |= {name: each.reshape(1, 3, 1, 1) for name, each in groups.items()}
        want |= {
            "output_scale_gradient_tensor": from_torch(factor.grad, np.float32).reshape(1, 3, 1, 1),
            "output_bias_gradient_tensor": from_torch(bias.grad, np.float32).reshape(1, 3, 1, 1),
        }
    tensors = {name: packed(array) for name, array in {**inputs, **want}.items()}

    found = compare(declared()[OperatorType[operator]](**tensors, **fields), inputs)

    for name, array in want.items():
        np.testing.assert_allclose(found[name], array, 2e-5, 2e-6, err_msg=name)


@pytest.mark.skipif(OperatorType.TOP_K1 not in emulated(), reason="TOP_K1 is not emulated")
def test_top_k() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        values, indices = torch.topk(to_torch(X), 3, dim=2)
    want = from_torch(values, np.float32)
    desc = dml.TopK1OperatorDesc(
        input_tensor=packed(X),
        output_value_tensor=packed(want),
        output_index_tensor=packed(want.astype(np.uint32)),
        axis=2,
        k=3,
        axis_direction=DIRECTION.DECREASING,
    )

    found = compare(desc, {"input_tensor": X})

    assert np.array_equal(found["output_value_tensor"], want)
    assert np.array_equal(found["output_index_tensor"], from_torch(indices, np.uint32))
