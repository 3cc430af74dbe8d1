"""Gradients, by derivatives of the function forward, and ADAM_OPTIMIZER."""

from __future__ import annotations

from typing import Any

import numpy as np

from .rows import Array, Node, is_float, row, wide
from .table import scipy_local_response, torch_local_response, torch_max, torch_mean

__all__: list[str] = []


def _derivative(t: Any, function: Any, x: Any, g: Any) -> Any:
    """Of ``function`` at ``x``, times ``g``, by PyTorch."""
    with t.enable_grad():
        x = x.detach().requires_grad_()
        return t.autograd.grad(function(x), x, g)[0]


def _numeric(s: Any, function: Any, x: Array, g: Array) -> Array:
    """The same by SciPy: of differences to both sides."""

    def total(flat: Array) -> Any:
        return np.sum(function(flat.reshape(x.shape)) * g)

    sides = [s.optimize.approx_fprime(x.ravel(), total, step) for step in (1e-5, -1e-5)]
    found: Array = np.mean(sides, 0).reshape(x.shape)
    return found


# --- pooling ---


def _counts(o: Any) -> list[int]:
    """The outputs of windows that fit into the padded input."""
    numbers = zip(
        o.output_gradient_tensor.sizes[2:],
        o.window_size,
        o.strides,
        getattr(o, "dilations", [1] * len(o.strides)),
        o.start_padding,
        o.end_padding,
        strict=True,
    )
    return [(n + a + b - (k - 1) * d - 1) // step + 1 for n, k, step, d, a, b in numbers]


def _is_exact(o: Any) -> bool:
    return _counts(o) == list(o.input_gradient_tensor.sizes[2:])


def _torch_average_gradient(t: Any, o: Any, g: Any) -> Any:
    if not _is_exact(o):
        return None
    x = t.zeros(tuple(o.output_gradient_tensor.sizes), dtype=t.float64)
    return (
        None if torch_mean(t, o, x) is None else _derivative(t, lambda x: torch_mean(t, o, x), x, g.double())
    )


def _average_gradient(o: Any, g: Array) -> Node | None:
    """A transposed convolution with ones."""
    is_whole = o.include_padding or not any((*o.start_padding, *o.end_padding))
    if not _is_exact(o) or not is_whole or not is_float(g):
        return None
    g = g.astype(np.float32)
    y, channels, count = o.output_gradient_tensor, g.shape[1], int(np.prod(o.window_size))
    reached = zip(g.shape[2:], o.strides, o.window_size, o.start_padding, o.end_padding, strict=True)
    sizes = [(n - 1) * step + k - a - b for n, step, k, a, b in reached]
    more = [n - m for n, m in zip(y.sizes[2:], sizes, strict=True)]

    def finish(found: Array) -> Array:
        return np.pad(found, [(0, 0), (0, 0), *((0, n) for n in more)])

    attributes = {"strides": list(o.strides), "pads": [*o.start_padding, *o.end_padding], "group": channels}
    ones = np.ones((channels, 1, *o.window_size), g.dtype)
    divided = g / np.float32(count)
    if any(more) and any(o.end_padding):
        return None  # elements of the padding that are cut off are not all behind the last window
    return Node("ConvTranspose", [divided, ones], attributes, finish)


row(
    "AVERAGE_POOLING_GRAD",
    _average_gradient,
    _torch_average_gradient,
    passes="windows without an element, more outputs than windows fit; ONNX: padding that does not count",
)


def _torch_max_gradient(t: Any, o: Any, x: Any, g: Any) -> Any:
    if not _is_exact(o) or not x.is_floating_point():
        return None
    return _derivative(t, lambda x: torch_max(t, o, x)["output_tensor"], x.double(), g.double())


row("MAX_POOLING_GRAD", None, _torch_max_gradient, passes="more outputs than windows fit")

# --- normalisation ---


def _torch_normalized_gradient(t: Any, o: Any, x: Any, g: Any, mean: Any, variance: Any, scale: Any) -> Any:
    def forward(x: Any, scale: Any, bias: Any) -> Any:
        return (x - mean) * t.rsqrt(variance + o.epsilon) * scale + bias

    x, g, mean, variance, scale = (each.double() for each in (x, g, mean, variance, scale))
    if not t.rsqrt(variance + o.epsilon).isfinite().all():
        return None
    with t.enable_grad():
        given = [each.detach().requires_grad_() for each in (x, scale, t.zeros_like(scale))]
        found = t.autograd.grad(forward(*given), given, g)
    names = ("output_gradient_tensor", "output_scale_gradient_tensor", "output_bias_gradient_tensor")
    return dict(zip(names, found, strict=True))


def _scipy_normalized_gradient(
    s: Any, o: Any, x: Array, g: Array, mean: Array, variance: Array, scale: Array
) -> Any:
    root = 1 / np.sqrt(variance + o.epsilon)
    if not np.isfinite(root).all():
        return None
    return {
        "output_gradient_tensor": _numeric(s, lambda x: (x - mean) * root * scale, x, g),
        "output_scale_gradient_tensor": _numeric(s, lambda scale: (x - mean) * root * scale, scale, g),
        "output_bias_gradient_tensor": _numeric(s, lambda bias: bias + 0 * x, np.zeros_like(scale), g),
    }


row(
    "BATCH_NORMALIZATION_GRAD",
    None,
    _torch_normalized_gradient,
    _scipy_normalized_gradient,
    passes="a variance that is not above 0 with Epsilon",
)


def _moments(x: Any, sizes: Any) -> tuple[Any, Any]:
    """Mean and variance along the dimensions where ``sizes`` has 1."""
    axes = tuple(i for i, size in enumerate(sizes) if size == 1)
    if not axes:
        return x, x * 0
    mean = x.mean(axes, keepdims=True)
    return mean, ((x - mean) ** 2).mean(axes, keepdims=True)


def _training(o: Any, x: Array, scale: Array, bias: Array, added: Array | None) -> Node | None:
    sizes = [1, x.shape[1]] + [1] * (x.ndim - 2) if x.ndim > 1 else []
    if list(scale.shape) != sizes:
        return None
    x, scale, bias, added = (wide(each) for each in (x, scale, bias, added))
    channels = x.shape[1]
    zeros = np.zeros(channels, x.dtype)
    inputs = [x, scale.ravel(), bias.ravel(), zeros, zeros]

    def finish(found: list[Array]) -> dict[str, Array]:
        y, mean, variance = found
        return {
            "output_tensor": y if added is None else y + added,
            "output_mean_tensor": mean.reshape(scale.shape),
            "output_variance_tensor": variance.reshape(scale.shape),
        }

    attributes = {"training_mode": 1, "momentum": 0.0, "epsilon": o.epsilon}
    return Node("BatchNormalization", inputs, attributes, finish, 3)


def _torch_training(t: Any, o: Any, x: Any, scale: Any, bias: Any, added: Any) -> Any:
    x, scale, bias = (each.double() for each in (x, scale, bias))
    mean, variance = _moments(x, scale.shape)
    y = (x - mean) * t.rsqrt(variance + o.epsilon) * scale + bias
    return {
        "output_tensor": y if added is None else y + added,
        "output_mean_tensor": mean,
        "output_variance_tensor": variance,
    }


row(
    "BATCH_NORMALIZATION_TRAINING",
    _training,
    _torch_training,
    passes="ONNX: parameters that are not one a channel",
)


def _are_moments(x: Any, mean: Any, variance: Any) -> bool:
    """Whether those that are given are those of the input: for others the documents are ambiguous."""
    own = _moments(np.asarray(x.tolist(), np.float64), mean.shape)
    given = (np.asarray(each.tolist(), np.float64) for each in (mean, variance))
    return all(np.allclose(one, other, 1e-5, 1e-6) for one, other in zip(own, given, strict=True))


def _torch_training_gradient(t: Any, o: Any, x: Any, g: Any, mean: Any, variance: Any, scale: Any) -> Any:
    found = _torch_normalized_gradient(t, o, x, g, mean, variance, scale)
    if found is None:
        return None
    del found["output_gradient_tensor"]
    if _are_moments(x, mean, variance):

        def forward(x: Any) -> Any:
            own, spread = _moments(x, scale.shape)
            return (x - own) * t.rsqrt(spread + o.epsilon) * scale

        found["output_gradient_tensor"] = _derivative(t, forward, x.double(), g.double())
    return found


def _scipy_training_gradient(
    s: Any, o: Any, x: Array, g: Array, mean: Array, variance: Array, scale: Array
) -> Any:
    root = 1 / np.sqrt(variance + o.epsilon)
    if not np.isfinite(root).all():
        return None

    def forward(x: Array) -> Array:
        own, spread = _moments(x, scale.shape)
        found: Array = (x - own) / np.sqrt(spread + o.epsilon) * scale
        return found

    found = {
        "output_scale_gradient_tensor": _numeric(s, lambda scale: (x - mean) * root * scale, scale, g),
        "output_bias_gradient_tensor": _numeric(s, lambda bias: bias + 0 * x, np.zeros_like(scale), g),
    }
    if _are_moments(x, mean, variance):
        found["output_gradient_tensor"] = _numeric(s, forward, x, g)
    return found


row(
    "BATCH_NORMALIZATION_TRAINING_GRAD",
    None,
    _torch_training_gradient,
    _scipy_training_gradient,
    passes="OutputGradientTensor, unless MeanTensor and VarianceTensor are those of the input; a variance "
    "that is not above 0 with Epsilon",
)


def _torch_local_gradient(t: Any, o: Any, x: Any, g: Any) -> Any:
    if torch_local_response(t, o, x) is None:
        return None
    return _derivative(t, lambda x: torch_local_response(t, o, x), x.double(), g.double())


def _scipy_local_gradient(s: Any, o: Any, x: Array, g: Array) -> Any:
    found = _numeric(s, lambda x: scipy_local_response(s, o, x), x, g)
    return found if np.isfinite(found).all() else None


row(
    "LOCAL_RESPONSE_NORMALIZATION_GRAD",
    None,
    _torch_local_gradient,
    _scipy_local_gradient,
    passes="SciPy: infinite results; PyTorch: an even LocalSize, and without CrossChannel",
)

# --- copies ---


def _places(o: Any) -> Array:
    """The coordinates that the window takes, in its order and with as many as there are gradients."""
    axes = []
    fields = o.input_window_offsets, o.input_window_sizes, o.input_window_strides
    for offset, size, step, count in zip(*fields, o.input_gradient_tensor.sizes, strict=True):
        whole = np.arange(offset, offset + size)
        axes.append((whole[::step])[:count])
    return np.stack(np.meshgrid(*axes, indexing="ij"), -1)


def _slice_gradient(o: Any, g: Array) -> Node:
    zeros = np.zeros(o.output_gradient_tensor.sizes, g.dtype)
    return Node("ScatterND", [zeros, _places(o), g])


def _torch_slice_gradient(t: Any, o: Any, g: Any) -> Any:
    places = t.tensor(_places(o).tolist()).unbind(-1)
    zeros = t.zeros(tuple(o.output_gradient_tensor.sizes), dtype=g.dtype)
    return zeros.index_put(places, g)


row("SLICE_GRAD", _slice_gradient, _torch_slice_gradient)

# --- training ---

_STATES = ("output_parameters_tensor", "output_first_moment_tensor", "output_second_moment_tensor")


def _adam(o: Any, x: Array, m: Array, v: Array, g: Array, step: Array) -> Node | None:
    if not step.ravel()[0]:
        return None
    x, m, v, g = (wide(each) for each in (x, m, v, g))
    inputs = [np.array(o.learning_rate, x.dtype), np.array(step.ravel()[0], np.int64), x, g, m, v]
    attributes = {"alpha": o.beta1, "beta": o.beta2, "epsilon": o.epsilon}
    return Node(
        "Adam",
        inputs,
        attributes,
        lambda found: dict(zip(_STATES, found, strict=True)),
        3,
        "ai.onnx.preview.training",
        1,
    )


def _torch_adam(t: Any, o: Any, x: Any, m: Any, v: Any, g: Any, step: Any) -> Any:
    """PyTorch adds Epsilon to a root that is corrected: it is divided by the correction."""
    count = int(step.reshape(-1)[0])
    if not count:
        return None
    corrected = (1 - o.beta2**count) ** 0.5
    x, m, v, g = (each.double() for each in (x, m, v, g))
    parameter = t.nn.Parameter(x.clone())
    parameter.grad = g.clone()
    optimizer = t.optim.Adam(
        [parameter], lr=o.learning_rate, betas=(o.beta1, o.beta2), eps=o.epsilon / corrected
    )
    state = {"step": t.tensor(float(count - 1)), "exp_avg": m.clone(), "exp_avg_sq": v.clone()}
    optimizer.state[parameter] = state
    optimizer.step()
    return dict(zip(_STATES, (parameter.detach(), state["exp_avg"], state["exp_avg_sq"]), strict=True))


row(
    "ADAM_OPTIMIZER",
    _adam,
    _torch_adam,
    by=("onnx",),
    passes="a TrainingStep of 0; PyTorch: Beta1 and Beta2 that are not from 0 to below 1",
)
