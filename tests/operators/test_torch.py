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
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated

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


def pooling(size: list[int], strides: list[int], padding: list[int], **more: Any) -> dict[str, Any]:
    ends = {"start_padding": padding, "end_padding": padding}
    return {"window_size": size, "strides": strides, **ends, **more}


def convolution(direction: str, *, strides: list[int], output_padding: list[int]) -> dict[str, Any]:
    """Two groups, padding of 1 and dilations of 2 and 1."""
    return {
        "mode": dml.ConvolutionMode.CROSS_CORRELATION,
        "direction": dml.ConvolutionDirection[direction],
        "strides": strides,
        "dilations": [2, 1],
        "start_padding": [1, 1],
        "end_padding": [1, 1],
        "output_padding": output_padding,
        "group_count": 2,
    }


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
    (
        "AVERAGE_POOLING",
        {"input_tensor": X},
        pooling([2, 3], [2, 1], [1, 1], include_padding=True),
        lambda x: F.avg_pool2d(x, (2, 3), (2, 1), (1, 1)),
    ),
    (
        "AVERAGE_POOLING",
        {"input_tensor": X},
        pooling([2, 3], [2, 1], [1, 1], include_padding=False),
        lambda x: F.avg_pool2d(x, (2, 3), (2, 1), (1, 1), count_include_pad=False),
    ),
    (
        "MAX_POOLING2",
        {"input_tensor": X},
        pooling([2, 2], [1, 2], [1, 1], dilations=[2, 1]),
        lambda x: F.max_pool2d(x, 2, (1, 2), 1, (2, 1)),
    ),
    (
        "LP_POOLING",
        {"input_tensor": X},
        pooling([2, 3], [2, 1], [0, 0], p=2),
        lambda x: F.lp_pool2d(x, 2, (2, 3), (2, 1)),
    ),
    (
        "RESAMPLE",
        {"input_tensor": X},
        {"interpolation_mode": dml.InterpolationMode.LINEAR, "scales": [1.0, 1.0, 2.0, 3.0]},
        lambda x: F.interpolate(x, scale_factor=(2.0, 3.0), mode="bilinear", align_corners=False),
    ),
    (
        "CONVOLUTION",
        {
            "input_tensor": X.reshape(2, 6, 2, 5),
            "filter_tensor": MATRIX[:4, :18].reshape(4, 3, 2, 3),
            "bias_tensor": X[:1, :1, :1, :4].reshape(1, 4, 1, 1),
        },
        convolution("FORWARD", strides=[1, 2], output_padding=[0, 0]),
        lambda x, w, b: F.conv2d(x, w, b.ravel(), (1, 2), 1, (2, 1), 2),
    ),
    (
        "CONVOLUTION",
        {
            "input_tensor": X.reshape(2, 6, 2, 5),
            "filter_tensor": MATRIX[:, :12].reshape(6, 2, 2, 3),
            "bias_tensor": X[:1, :1, :1, :4].reshape(1, 4, 1, 1),
        },
        convolution("BACKWARD", strides=[2, 3], output_padding=[1, 2]),
        lambda x, w, b: F.conv_transpose2d(x, w, b.ravel(), (2, 3), 1, (1, 2), 2, (2, 1)),
    ),
    (
        "MULTIHEAD_ATTENTION",
        {
            "query_tensor": X.reshape(2, 5, 12),
            "key_tensor": X[::-1].reshape(2, 5, 12),
            "value_tensor": X.reshape(2, 5, 12) + 1,
        },
        {
            "scale": 0.5,
            "mask_filter_value": 0.0,
            "head_count": 3,
            "mask_type": dml.MultiheadAttentionMaskType.NONE,
        },
        lambda q, k, v: attention(q, k, v, 3, 0.5),
    ),
]


def attention(q: Any, k: Any, v: Any, heads: int, scale: float) -> Any:
    q, k, v = (each.reshape(2, 5, heads, -1).transpose(1, 2) for each in (q, k, v))
    weights = F.softmax(q @ k.transpose(2, 3) * scale, -1)
    return (weights @ v).transpose(1, 2).reshape(2, 5, -1)


def active() -> list[Any]:
    done = {operator.name for operator in emulated()}
    return [pytest.param(*row, id=f"{row[0]} {place}") for place, row in enumerate(ROWS) if row[0] in done]


def packed(array: Array) -> BufferTensorDesc:
    return BufferTensorDesc(TYPES[array.dtype], array.shape)


@pytest.mark.parametrize(("operator", "inputs", "fields", "compute"), active())
def test_the_same_as_pytorch(
    operator: str, inputs: Mapping[str, Array], fields: Mapping[str, Any], compute: Compute
) -> None:
    scale = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = from_torch(compute(*map(to_torch, inputs.values())), np.float32)
        if operator == "CONVOLUTION":
            scale = from_torch(compute(*(to_torch(abs(each)) for each in inputs.values())), np.float32)
    tensors = {name: packed(array) for name, array in inputs.items()}
    desc = declared()[OperatorType[operator]](**tensors, output_tensor=packed(want), **fields)

    found = compare(desc, inputs, scale=scale)

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


# Operator, its fields, and PyTorch's forward function of the input alone.
GRADIENTS_OF_INPUT: list[tuple[str, Mapping[str, Any], Compute]] = [
    ("ACTIVATION_RELU_GRAD", {}, F.relu),
    ("ELEMENT_WISE_CLIP_GRAD", {"min": -0.5, "max": 1.0}, lambda x: x.clamp(-0.5, 1.0)),
    (
        "AVERAGE_POOLING_GRAD",
        pooling([2, 3], [2, 1], [1, 1], include_padding=False),
        lambda x: F.avg_pool2d(x, (2, 3), (2, 1), (1, 1), count_include_pad=False),
    ),
    (
        "MAX_POOLING_GRAD",
        pooling([2, 2], [1, 2], [1, 1], dilations=[2, 1]),
        lambda x: F.max_pool2d(x, 2, (1, 2), 1, (2, 1)),
    ),
    (
        "RESAMPLE_GRAD",
        {
            "interpolation_mode": dml.InterpolationMode.LINEAR,
            "scales": [1.0, 1.0, 2.0, 3.0],
            "input_pixel_offsets": [-0.5] * 4,
            "output_pixel_offsets": [0.5] * 4,
        },
        lambda x: F.interpolate(x, scale_factor=(2.0, 3.0), mode="bilinear", align_corners=False),
    ),
    (
        "SLICE_GRAD",
        {
            "input_window_offsets": [0, 0, 1, 1],
            "input_window_sizes": [2, 3, 3, 4],
            "input_window_strides": [1, 1, 2, 3],
        },
        lambda x: x[:, :, 1:4:2, 1:5:3],
    ),
]


@pytest.mark.parametrize(
    ("operator", "fields", "forward"), GRADIENTS_OF_INPUT, ids=[row[0] for row in GRADIENTS_OF_INPUT]
)
def test_the_gradients_of_inputs_of_pytorch(
    operator: str, fields: Mapping[str, Any], forward: Compute
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = to_torch(X).requires_grad_()
        y = forward(x)
        g = np.random.default_rng(9).normal(0, 1, tuple(y.shape)).astype(np.float32)
        y.backward(to_torch(g))
    want = from_torch(x.grad, np.float32)
    cls = declared()[OperatorType[operator]]
    inputs = {"input_tensor": X, "input_gradient_tensor": g}
    inputs = {name: array for name, array in inputs.items() if name in cls.__dataclass_fields__}
    tensors = {name: packed(array) for name, array in inputs.items()}

    found = compare(cls(**tensors, output_gradient_tensor=packed(want), **fields), inputs)

    np.testing.assert_allclose(found["output_gradient_tensor"], want, 2e-6, 1e-6)


def test_max_unpooling() -> None:
    x, places = X, np.random.default_rng(4).permuted(np.tile(np.arange(80), (6, 1)), axis=1)[:, :20]
    indices = places.reshape(X.shape).astype(np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = from_torch(F.max_unpool2d(to_torch(x), to_torch(indices), 2, output_size=(8, 10)), np.float32)
    planes = 80 * np.arange(6).reshape(2, 3, 1, 1)  # DirectML counts the whole tensor, PyTorch a plane
    inputs = {"input_tensor": x, "indices_tensor": (indices + planes).astype(np.uint32)}
    tensors = {name: packed(array) for name, array in inputs.items()}

    found = compare(dml.MaxUnpoolingOperatorDesc(**tensors, output_tensor=packed(want)), inputs)

    np.testing.assert_array_equal(found["output_tensor"], want)


_SIGMOID, _TANH = dml.ActivationSigmoidOperatorDesc(), dml.ActivationTanhOperatorDesc()
# Operator, PyTorch's module, the gates in the order of the operator, activations and other fields.
RECURRENT: list[tuple[str, str, list[int], list[Any], dict[str, Any]]] = [
    ("RNN", "RNN", [0], [_TANH], {}),
    ("GRU", "GRU", [1, 0, 2], [_SIGMOID, _TANH], {"linear_before_reset": True}),
    (
        "LSTM",
        "LSTM",
        [0, 3, 1, 2],
        [_SIGMOID, _TANH, _TANH],
        {"clip_threshold": 0.0, "use_clip_threshold": False, "couple_input_forget": False},
    ),
]


@pytest.mark.parametrize("row", RECURRENT, ids=[row[0] for row in RECURRENT])
@pytest.mark.parametrize("directions", [1, 2])
def test_recurrence(row: tuple[str, str, list[int], list[Any], dict[str, Any]], directions: int) -> None:
    operator, module, order, activations, fields = row
    steps, items, elements, hidden, gates = 4, 3, 5, 6, len(order)
    random = np.random.default_rng(11)
    both = {
        name: random.normal(0, 0.5, (directions, gates, *sizes)).astype(np.float32)
        for name, sizes in {
            "weight_ih": (hidden, elements),
            "weight_hh": (hidden, hidden),
            "bias_ih": (hidden,),
            "bias_hh": (hidden,),
        }.items()
    }
    x = random.normal(0, 1, (steps, items, elements)).astype(np.float32)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        network = getattr(torch.nn, module)(elements, hidden, bidirectional=directions == 2)
        for name, array in both.items():
            for direction, end in enumerate(["_l0", "_l0_reverse"][:directions]):
                flat = array[direction].reshape(gates * hidden, *array.shape[3:])
                getattr(network, name + end).copy_(to_torch(flat))
        want = from_torch(network(to_torch(x))[0], np.float32)
    want = want.reshape(steps, items, directions, hidden).transpose(0, 2, 1, 3)
    weight, recurrence, *biases = (array[:, order] for array in both.values())
    inputs = {
        "input_tensor": x[None],
        "weight_tensor": weight.reshape(1, directions, -1, elements),
        "recurrence_tensor": recurrence.reshape(1, directions, -1, hidden),
        "bias_tensor": np.concatenate([each.reshape(1, 1, directions, -1) for each in biases], -1),
    }
    tensors = {name: packed(array) for name, array in inputs.items()}
    direction = dml.RecurrentNetworkDirection.BIDIRECTIONAL
    if directions == 1:
        direction = dml.RecurrentNetworkDirection.FORWARD
    cls = declared()[OperatorType[operator]]
    desc = cls(
        **tensors,
        output_sequence_tensor=packed(want),
        activation_descs=activations * directions,
        direction=direction,
        **fields,
    )

    found = compare(desc, inputs)

    np.testing.assert_allclose(found["output_sequence_tensor"], want, 1e-5, 2e-6)


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
