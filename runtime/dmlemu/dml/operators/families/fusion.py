"""Fused activations: an operator desc inside another, applied to each result before it is stored.

The inner desc has no tensors of its own.  Fusable operators and their feature levels:
https://learn.microsoft.com/windows/ai/directml/dml-fused-activations
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...declared import declared, find_operator
from ...declared.definition import definition_class, definition_of
from ...declared.places import Attribute, Inner, Presence, element_of, field_of
from ...declared.rules import Axis, Demand, HasCount, Rule
from ...declared.schema import level_name, operator_fields
from ...declared.values import OneOf, Values
from ...enums import FeatureLevel, OperatorType, TensorDataType
from ...rows import OP_FUSED_ACTIVATION
from ...tensor_desc import BufferTensorDesc
from .conversion import Array, convert, float64
from .element_wise import Unary
from .lines import Softmax

if TYPE_CHECKING:
    from ...declared.schema import OperatorDesc
    from ...declared.values import Choose
    from ...lowering.compile import Operand, Program

_NONE: Mapping[OperatorType, FeatureLevel] = {}


class Fusable(Unary):
    """The activations that every host may fuse, from the level that introduced them."""

    FUSABLE = True


class Fused(Rule):
    """The rules of the field FusedActivation, or of an array of activations; ``also``: what this host fuses
    besides the activations."""

    def __init__(
        self, also: Mapping[OperatorType, FeatureLevel] = _NONE, field: str = "fused_activation"
    ) -> None:
        self.also = also
        self.field = field

    def demands(self, desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
        given = getattr(desc, self.field)
        if isinstance(given, tuple):
            for i in range(len(given)):
                yield from self._demands(desc, level, f"{self.field}[{i}]")
        elif given is not None:
            yield from self._demands(desc, level, self.field)

    def _demands(self, desc: OperatorDesc, level: FeatureLevel, name: str) -> Iterator[Demand]:
        activation: OperatorDesc = element_of(desc, name)
        since = self.since(activation.TYPE)
        clause = f"cannot be fused into DML_OPERATOR_{desc.TYPE.name} at feature level {level_name(level)}"
        later = "a fusable activation" if since is None else f"feature level {level_name(since)} or higher"
        yield Demand(_Type(name), _Fusable(self, level), clause=clause, expected=later, rule="TN10")
        for item in operator_fields(type(activation)):
            if item.is_tensor:
                clause = (
                    "is given; a fused activation works on its host's output and has no tensors of its own"
                )
                yield Demand(Inner(name, _Tensor(item.name)), OneOf(None), clause=clause, rule="TN9")
        definition = definition_of(activation)
        rules = definition.RULES
        if isinstance(definition, Softmax):
            # Those of its tensors do not matter: they are the host's output.
            activation = _with_tensors(activation, element_of(desc, "output_tensor"))
            rules = [rule for rule in rules if isinstance(rule, Axis | HasCount)]
        for rule in rules:
            for demand in rule.demands(activation, level):
                yield demand._replace(place=Inner(name, demand.place))

    def since(self, type: OperatorType) -> FeatureLevel | None:
        """The feature level from which on an operator can be fused; None: none."""
        definition = definition_class(type)
        if definition is not None and definition.FUSABLE:
            return declared()[type].INTRODUCED
        return self.also.get(type)

    def sentence(self, cls: type[OperatorDesc]) -> str:
        also = "".join(
            f" or, from feature level {level_name(level)} on, {type.name}"
            for type, level in self.also.items()
        )
        item = field_of(cls, self.field)
        which = f"Each of `{item.c_name}`" if item.array else f"`{item.c_name}` (if given)"
        return f"{which} is a fusable activation{also}, without tensors."


class _Type(Attribute):
    """``FusedActivation.Type``, as messages spell it."""

    __slots__ = ()

    check = OP_FUSED_ACTIVATION

    def path(self, desc: OperatorDesc) -> str:
        return f"{super().path(desc)}.Type"

    def value(self, desc: OperatorDesc) -> str:
        activation: OperatorDesc = super().value(desc)
        return f"DML_OPERATOR_{activation.TYPE.name}"

    def put(self, desc: OperatorDesc, value: str) -> OperatorDesc:
        """With an operator of this name, all of whose fields are tensors."""
        cls = find_operator(value)
        return super().put(desc, cls(**{item.name: None for item in operator_fields(cls)}))


class _Fusable(Values):
    """The operators that a host may fuse."""

    __slots__ = ("host", "level")

    def __init__(self, host: Fused, level: FeatureLevel) -> None:
        self.host = host
        self.level = level

    def __contains__(self, value: object) -> bool:
        since = self.host.since(find_operator(str(value)).TYPE)
        return since is not None and self.level >= since

    def pick(self, choose: Choose, domain: Values) -> str:
        return "DML_OPERATOR_ACTIVATION_RELU"

    def outside(self, domain: Values) -> list[str]:
        """The names of operators outside the set whose fields are all tensors."""
        plain = [cls for cls in declared().values() if all(item.is_tensor for item in operator_fields(cls))]
        names = [f"DML_OPERATOR_{cls.TYPE.name}" for cls in plain]
        return [name for name in names if name not in self]


class _Tensor(Presence):
    """A tensor of the activation, which must be absent."""

    __slots__ = ()

    check = OP_FUSED_ACTIVATION


def _with_tensors(activation: OperatorDesc, output: BufferTensorDesc) -> OperatorDesc:
    """The activation with the host's output as its tensors."""
    tensors: dict[str, Any] = {"input_tensor": output, "output_tensor": output}
    return replace(activation, **tensors)


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
    single, definition = TensorDataType.FLOAT32, _on(output, activation)
    if isinstance(definition, Softmax):
        function = definition.constants()
    else:
        function = definition.constants(single, output.data_type)
    if output.data_type is single and not isinstance(definition, Softmax):
        program.call(kernel, *operands, program.write("output_tensor"), constants=constants)
        in_place = program.read("output_tensor"), program.write("output_tensor")
        program.call(definition.KERNEL, *in_place, constants=function)
    else:
        unrounded = program.temporary(single, output.sizes)
        program.call(kernel, *operands, unrounded.write(), constants=constants)
        program.call(definition.KERNEL, unrounded.read(), program.write("output_tensor"), constants=function)


def unary_of(activation: OperatorDesc) -> Unary:
    """The definition of an activation that :class:`Fused` allows, other than a softmax."""
    definition = definition_of(activation)
    assert isinstance(definition, Unary)
    return definition


def _on(output: BufferTensorDesc, activation: OperatorDesc) -> Unary | Softmax:
    """The definition of an activation of this output."""
    definition = definition_of(activation)
    if isinstance(definition, Softmax):
        definition = definition_of(_with_tensors(activation, output))
    assert isinstance(definition, Unary | Softmax)  # the rules allow no other
    return definition


def fused_reference(values: Array, activation: OperatorDesc | None, output: BufferTensorDesc) -> Array:
    """``values`` through the activation, in the output's type."""
    if activation is not None:
        definition, values = _on(output, activation), float64(values)
        with np.errstate(all="ignore"):
            if isinstance(definition, Softmax):
                values = definition.apply(values)
            else:
                values = definition.apply(values, data_type=output.data_type)
    return convert(values, output.data_type).reshape(output.sizes)
