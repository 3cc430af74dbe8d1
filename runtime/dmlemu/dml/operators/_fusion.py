"""Fused activations: an operator desc inside another, applied to each result before it is stored.

The inner desc has no tensors of its own.  What may be fused, and from which feature level on:
https://learn.microsoft.com/windows/ai/directml/dml-fused-activations
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..enums import FeatureLevel, OperatorType, TensorDataType
from ._conversion import Array, convert, float64
from ._element_wise import Unary
from .definition import definition_class, definition_of
from .schema import level_name, operator_fields

if TYPE_CHECKING:
    from ..compile import Operand, Program
    from ..tensor_desc import BufferTensorDesc
    from .schema import OperatorDesc
    from .validation import DescValidator

_NONE: Mapping[OperatorType, FeatureLevel] = {}


class Fusable(Unary):
    """The activations that every host may fuse, from the level that introduced them on."""

    FUSABLE = True


def check_fused(
    check: DescValidator,
    activation: OperatorDesc | None,
    also: Mapping[OperatorType, FeatureLevel] = _NONE,
) -> None:
    """The rules of the field FusedActivation; ``also`` is what this host fuses beyond the activations."""
    if activation is None:
        return
    name, host = activation.TYPE.name, check.desc.TYPE.name
    definition = definition_class(activation.TYPE)
    fusable = definition is not None and definition.FUSABLE
    since = activation.INTRODUCED if fusable else also.get(activation.TYPE)
    if since is None or check.level < since:
        level = level_name(check.level)
        check.fail(
            "OP_FUSED_ACTIVATION",
            "FusedActivation.Type",
            f"FusedActivation.Type (DML_OPERATOR_{name}) cannot be fused into DML_OPERATOR_{host} "
            f"at feature level {level}.",
            given=f"DML_OPERATOR_{name}",
            expected="a fusable activation"
            if since is None
            else f"feature level {level_name(since)} or higher",
            rule="TN10",
        )
    inner = check.inner(activation, "FusedActivation")
    inner.attributes()
    for item in operator_fields(type(activation)):
        if item.is_tensor and getattr(activation, item.name) is not None:
            inner.fail(
                "OP_FUSED_ACTIVATION",
                item.c_name,
                f"FusedActivation.{item.c_name} is given; a fused activation works on its host's output "
                "and has no tensors of its own.",
                given="a tensor desc",
                expected="none",
                rule="TN9",
            )
    definition_of(activation).rules(inner)


def call_fused(
    program: Program,
    output: BufferTensorDesc,
    activation: OperatorDesc | None,
    kernel: str,
    *operands: Operand,
    constants: bytes,
) -> None:
    """Calls ``kernel`` on ``operands`` and the output, then the activation.

    A FLOAT16 result goes through a FLOAT32 tensor in the temporary resource, so that it is rounded once.
    """
    if activation is None:
        program.call(kernel, *operands, program.write("output_tensor"), constants=constants)
        return
    single, unary = TensorDataType.FLOAT32, _unary(activation)
    function = unary.constants(single, output.data_type)
    if output.data_type is single:
        program.call(kernel, *operands, program.write("output_tensor"), constants=constants)
        in_place = program.read("output_tensor"), program.write("output_tensor")
        program.call(unary.KERNEL, *in_place, constants=function)
    else:
        unrounded = program.temporary(single, output.sizes)
        program.call(kernel, *operands, unrounded.write(), constants=constants)
        program.call(unary.KERNEL, unrounded.read(), program.write("output_tensor"), constants=function)


def _unary(activation: OperatorDesc) -> Unary:
    definition = definition_of(activation)
    assert isinstance(definition, Unary)  # check_fused allows no other
    return definition


def fused_reference(values: Array, activation: OperatorDesc | None, output: BufferTensorDesc) -> Array:
    """``values`` through the activation, in the output's type."""
    if activation is not None:
        with np.errstate(all="ignore"):
            values = _unary(activation).apply(float64(values), data_type=output.data_type)
    return convert(values, output.data_type).reshape(output.sizes)
