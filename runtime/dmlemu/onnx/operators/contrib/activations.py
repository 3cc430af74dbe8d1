"""Activations, and those that are a part of another operator."""

from __future__ import annotations

from collections.abc import Sequence

from .... import graph as g
from ....graph import Expression
from ...calls import MICROSOFT, Call, Made, NotOnDevice, lowers, repeated

_FUSED: dict[str, tuple[str, dict[str, float]]] = {
    "Elu": ("activation_elu", {"alpha": 1.0}),
    "HardSigmoid": ("activation_hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    "LeakyRelu": ("activation_leaky_relu", {"alpha": 0.01}),
    "Relu": ("activation_relu", {}),
    "Selu": ("activation_scaled_elu", {"alpha": 1.67326319217681884765625, "gamma": 1.0507010221481323}),
    "Sigmoid": ("activation_sigmoid", {}),
    "Softplus": ("activation_softplus", {}),
    "Softsign": ("activation_softsign", {}),
    "Tanh": ("element_wise_tanh", {}),
    "ThresholdedRelu": ("activation_thresholded_relu", {"alpha": 1.0}),
    "Clip": ("element_wise_clip", {"min": float("-inf"), "max": float("inf")}),
}
"""By their ONNX names: the function, and its fields with their defaults in the order of the parameters."""


def activated(c: Call, x: Expression, parameters: Sequence[float | None]) -> Expression:
    """``x`` behind the activation that the attribute ``activation`` names, if there is one."""
    name = c.attribute("activation", "")
    if not name:
        return x
    if name not in _FUSED:
        raise NotOnDevice(f"{c.op} with the activation {name}")
    function, fields = _FUSED[name]
    given = dict(zip(fields, parameters, strict=False))
    values = {
        field: default if given.get(field) is None else given[field] for field, default in fields.items()
    }
    made: Expression = g.FUNCTIONS[function](x, **values)
    return made


def named_parameters(c: Call) -> list[float | None]:
    """Those that have attributes of their own."""
    return [c.attribute(f"activation_{name}") for name in ("alpha", "beta", "gamma")]


def with_bias(c: Call, number: int) -> Expression:
    """The first input with a vector added along its last dimension, where it is given."""
    return c.x() + repeated(c.x(number), c.shape()) if c.has(number) else c.x()


@lowers("Gelu", "BiasGelu", domain=MICROSOFT)
def _gelu(c: Call) -> Made:
    return Made(g.activation_gelu(with_bias(c, 1)), c.shape())


@lowers("FastGelu", domain=MICROSOFT)
def _fast_gelu(c: Call) -> Made:
    """The approximation by tanh; its constants are those of the operator's definition."""
    x = with_bias(c, 1)
    inner = x * 0.7978845608028654 + x * x * x * 0.035677408136300125
    return Made(x * 0.5 * (g.element_wise_tanh(inner) + 1.0), c.shape())


@lowers("QuickGelu", domain=MICROSOFT)
def _quick_gelu(c: Call) -> Made:
    alpha = c.attribute("alpha", 1.702)
    return Made(g.activation_swish(c.x(), sigmoid_input_scale=alpha), c.shape())


@lowers("BiasAdd", domain=MICROSOFT)
def _bias_add(c: Call) -> Made:
    return Made(with_bias(c, 1) + c.x(2), c.shape())


@lowers("BiasSplitGelu", domain=MICROSOFT)
def _bias_split_gelu(c: Call) -> Expression:
    left, right = g.split(with_bias(c, 1), axis=c.rank() - 1, output_axis_sizes=[c.shape()[-1] // 2] * 2)
    made: Expression = left * g.activation_gelu(right)
    return made
