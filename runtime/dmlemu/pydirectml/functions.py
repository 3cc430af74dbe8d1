"""The functions of PyDirectML: those of :mod:`dmlemu.graph`, with its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dml.enums import (
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    PaddingMode,
    RecurrentNetworkDirection,
    TensorDataType,
)
from ..dml.structs import Size2D
from ..graph import FUNCTIONS
from ..graph import reinterpret as _reinterpret
from .model import GraphBuilder
from .tensors import (
    Expression,
    FusedActivation,
    GRUOutputs,
    MaxPoolingOutputs,
    OutputOptions,
    TensorDesc,
    unwrapped,
)

_Sizes = Sequence[int]
_Fused = FusedActivation | None

_REQUIRED: Any = object()  # required behind parameters that may be left out, as pybind11 has it


def _check_given(function: str, **values: Any) -> None:
    for name, value in values.items():
        if value is _REQUIRED:
            raise TypeError(f"{function}() needs {name}.")


def _run(name: str, *tensors: Expression | None, **fields: Any) -> Any:
    """What the function of the operator returns; empty arrays are left out, so that it chooses."""
    given = {
        name: value for name, value in fields.items() if not (isinstance(value, Sequence) and not len(value))
    }
    inputs = [None if each is None else unwrapped(f"{name}(): a tensor", each) for each in tensors]
    return FUNCTIONS[name](*inputs, **given)


def _expression(name: str, *tensors: Expression | None, **fields: Any) -> Expression:
    return Expression(_run(name, *tensors, **fields))


def _fused(activation: _Fused) -> Any:
    return None if activation is None else activation.desc


def input_tensor(scope: GraphBuilder, input_index: int, tensor_desc: TensorDesc) -> Expression:
    """An input of the graph; its data are the binding with this index."""
    return scope.input(input_index, tensor_desc)


# --- element by element ---


def add(a: Expression, b: Expression, fused_activation: _Fused = None) -> Expression:
    return _expression("element_wise_add1", a, b, fused_activation=_fused(fused_activation))


def subtract(a: Expression, b: Expression) -> Expression:
    return _expression("element_wise_subtract", a, b)


def multiply(a: Expression, b: Expression) -> Expression:
    return _expression("element_wise_multiply", a, b)


def divide(a: Expression, b: Expression) -> Expression:
    return _expression("element_wise_divide", a, b)


def activation_identity(input: Expression) -> Expression:
    return _expression("activation_identity", input)


def activation_linear(input: Expression, alpha: float, beta: float) -> Expression:
    return _expression("activation_linear", input, alpha=alpha, beta=beta)


def activation_relu(input: Expression) -> Expression:
    return _expression("activation_relu", input)


def activation_sigmoid(input: Expression) -> Expression:
    return _expression("activation_sigmoid", input)


def activation_soft_max(input: Expression) -> Expression:
    return _expression("activation_softmax", input)


def activation_tanh(input: Expression) -> Expression:
    return _expression("activation_tanh", input)


def value_scale_2d(input: Expression, scale: float, bias: Sequence[float]) -> Expression:
    return _expression("value_scale_2d", input, scale=scale, bias=bias)


# --- convolutions, products, pooling ---


def convolution(
    input: Expression,
    filter: Expression,
    bias: Expression | None = None,
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    strides: _Sizes = (),
    dilations: _Sizes = (),
    start_padding: _Sizes = (),
    end_padding: _Sizes = (),
    output_padding: _Sizes = (),
    group_count: int = 1,
    fused_activation: _Fused = None,
    output_sizes: _Sizes = (),
) -> Expression:
    return _expression(
        "convolution",
        input,
        filter,
        bias,
        mode=mode,
        direction=direction,
        strides=strides,
        dilations=dilations,
        start_padding=start_padding,
        end_padding=end_padding,
        output_padding=output_padding,
        group_count=group_count,
        fused_activation=_fused(fused_activation),
        output_sizes=output_sizes,
    )


def gemm(
    a: Expression,
    b: Expression,
    c: Expression | None = None,
    trans_a: MatrixTransform = MatrixTransform.NONE,
    trans_b: MatrixTransform = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: _Fused = None,
) -> Expression:
    fused = _fused(fused_activation)
    numbers = {"trans_a": trans_a, "trans_b": trans_b, "alpha": alpha, "beta": beta}
    return _expression("gemm", a, b, c, **numbers, fused_activation=fused)


def average_pooling(
    input: Expression,
    strides: _Sizes,
    window_sizes: _Sizes,
    start_padding: _Sizes,
    end_padding: _Sizes,
    include_padding: bool,
) -> Expression:
    return _expression(
        "average_pooling",
        input,
        strides=strides,
        window_size=window_sizes,
        start_padding=start_padding,
        end_padding=end_padding,
        include_padding=include_padding,
    )


def max_pooling(
    input: Expression,
    window_sizes: _Sizes,
    strides: _Sizes = (),
    start_padding: _Sizes = (),
    end_padding: _Sizes = (),
    dilations: _Sizes = (),
    output_indices: bool = False,
) -> MaxPoolingOutputs:
    found = _run(
        "max_pooling2",
        input,
        window_size=window_sizes,
        strides=strides,
        start_padding=start_padding,
        end_padding=end_padding,
        dilations=dilations,
        output_indices_tensor=output_indices,
    )
    if not output_indices:
        return MaxPoolingOutputs(Expression(found), None)
    return MaxPoolingOutputs(*map(Expression, found))


def up_sample_2d(input: Expression, scale_size: Size2D, interpolation_mode: InterpolationMode) -> Expression:
    return _expression("upsample_2d", input, scale_size=scale_size, interpolation_mode=interpolation_mode)


# --- normalisation ---


def batch_normalization(
    input: Expression,
    mean: Expression,
    variance: Expression,
    scale: Expression,
    bias: Expression,
    spatial: bool,
    epsilon: float,
    fused_activation: _Fused = None,
) -> Expression:
    fused = _fused(fused_activation)
    tensors = (input, mean, variance, scale, bias)
    return _expression(
        "batch_normalization", *tensors, spatial=spatial, epsilon=epsilon, fused_activation=fused
    )


def mean_variance_normalization(
    input: Expression,
    scale: Expression | None = None,
    bias: Expression | None = None,
    axes: _Sizes = (),
    normalize_variance: bool = _REQUIRED,
    epsilon: float = _REQUIRED,
    fused_activation: _Fused = None,
) -> Expression:
    """Over the listed axes."""
    _check_given("mean_variance_normalization", normalize_variance=normalize_variance, epsilon=epsilon)
    return Expression(
        FUNCTIONS["mean_variance_normalization1"](
            *(
                None if each is None else unwrapped("mean_variance_normalization(): a tensor", each)
                for each in (input, scale, bias)
            ),
            axes=axes,
            normalize_variance=bool(normalize_variance),
            epsilon=epsilon,
            fused_activation=_fused(fused_activation),
        )
    )


def local_response_normalization(
    input: Expression, cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float
) -> Expression:
    return _expression(
        "local_response_normalization",
        input,
        cross_channel=cross_channel,
        local_size=local_size,
        alpha=alpha,
        beta=beta,
        bias=bias,
    )


# --- movement ---


def padding(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value: float,
    start_padding: _Sizes,
    end_padding: _Sizes,
) -> Expression:
    return _expression(
        "padding",
        input,
        padding_mode=padding_mode,
        padding_value=padding_value,
        start_padding=start_padding,
        end_padding=end_padding,
    )


def slice(
    input: Expression,
    input_window_offsets: _Sizes,
    input_window_sizes: _Sizes,
    input_window_strides: _Sizes,
) -> Expression:
    return _expression(
        "slice1",
        input,
        input_window_offsets=input_window_offsets,
        input_window_sizes=input_window_sizes,
        input_window_strides=input_window_strides,
    )


def join(input: Sequence[Expression], axis: int) -> Expression:
    return Expression(FUNCTIONS["join"]([unwrapped("input", each) for each in input], axis=axis))


def gather(input: Expression, indices: Expression, axis: int, index_dimensions: int) -> Expression:
    return _expression("gather", input, indices, axis=axis, index_dimensions=index_dimensions)


def reinterpret(
    input: Expression, new_type: TensorDataType, new_size: _Sizes, new_strides: _Sizes | None
) -> Expression:
    """The bytes of a tensor under another desc; strides None: packed."""
    view = _reinterpret(unwrapped("input", input), new_size, new_strides, new_type)
    return Expression(view)


# --- sequences ---


def gru(
    input: Expression,
    weight: Expression,
    recurrence: Expression,
    bias: Expression | None = None,
    hidden_init: Expression | None = None,
    sequence_lengths: Expression | None = None,
    activation_descs: Sequence[FusedActivation] = _REQUIRED,
    direction: RecurrentNetworkDirection = _REQUIRED,
    linear_before_reset: bool = True,
    output_options: OutputOptions = _REQUIRED,
) -> GRUOutputs:
    given = {"activation_descs": activation_descs, "direction": direction, "output_options": output_options}
    _check_given("gru", **given)
    sequence, single = (output_options in (OutputOptions.Both, each) for each in list(OutputOptions)[1:])
    found = _run(
        "gru",
        *(input, weight, recurrence, bias, hidden_init, sequence_lengths),
        activation_descs=[each.desc for each in activation_descs],
        direction=direction,
        linear_before_reset=bool(linear_before_reset),
        output_sequence_tensor=sequence,
        output_single_tensor=single,
    )
    if sequence and single:
        return GRUOutputs(*map(Expression, found))
    return GRUOutputs(*(Expression(found) if wanted else None for wanted in (sequence, single)))
