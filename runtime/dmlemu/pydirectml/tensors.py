"""Tensor descs, expressions and the structs of PyDirectML."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from .. import graph as dmlx
from ..dml.declared import declared
from ..dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from ..dml.enums import OperatorType, TensorDataType, TensorFlags
from ..dml.tensor_desc import BufferTensorDesc
from ..graph.operators import Operators
from ..graph.policies import Policy, interleaved_channel, laid_out, packed

__all__ = [
    "Expression",
    "FusedActivation",
    "GRUOutputs",
    "MaxPoolingOutputs",
    "OutputOptions",
    "TensorDesc",
    "TensorPolicy",
    "unwrapped",
]


class _Policies(type):
    """The policies are properties of the class."""

    @property
    def default(cls) -> TensorPolicy:
        return TensorPolicy(packed)

    @property
    def interleaved_channel(cls) -> TensorPolicy:
        return TensorPolicy(interleaved_channel)


class TensorPolicy(metaclass=_Policies):
    """How a tensor is laid out: ``TensorPolicy.default``, ``TensorPolicy.interleaved_channel``."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy


def _signature(*names: str, **defaults: Any) -> Signature:
    kind = Parameter.POSITIONAL_OR_KEYWORD
    with_defaults = (Parameter(name, kind, default=value) for name, value in defaults.items())
    return Signature([*(Parameter(name, kind) for name in names), *with_defaults])


class TensorDesc:
    """A tensor desc.  Its forms are told apart by their arguments:

    ``(data_type, sizes, tensor_policy=TensorPolicy.default)``, ``(data_type, flags, sizes,
    tensor_policy=TensorPolicy.default)``, ``(data_type, sizes, strides)``, and ``(data_type, flags, sizes,
    strides, total_tensor_size_in_bytes, guaranteed_base_offset_alignment)``.
    """

    _FORMS = (
        _signature("data_type", "sizes", tensor_policy=None),
        _signature("data_type", "flags", "sizes", tensor_policy=None),
        _signature("data_type", "sizes", "strides"),
        _signature(
            *("data_type", "flags", "sizes", "strides", "total_tensor_size_in_bytes"),
            "guaranteed_base_offset_alignment",
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        values = self._values(args, kwargs)
        policy = values.pop("tensor_policy", None)
        desc = BufferTensorDesc(**values)
        if policy is not None:
            flags = desc.flags
            desc = laid_out(desc, policy.policy)
            desc = BufferTensorDesc(desc.data_type, desc.sizes, desc.strides, flags=flags)
        self.desc = desc

    @classmethod
    def _values(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of the first form that they fit."""
        for form in cls._FORMS:
            try:
                values = form.bind(*args, **kwargs).arguments
            except TypeError:
                continue
            if all(_fits(name, value) for name, value in values.items()):
                return dict(values)
        raise TypeError(f"No form of TensorDesc takes these arguments.\n{cls.__doc__}")

    @classmethod
    def of(cls, desc: BufferTensorDesc) -> TensorDesc:
        made = cls.__new__(cls)
        made.desc = desc
        return made

    @property
    def data_type(self) -> TensorDataType:
        return self.desc.data_type

    @property
    def flags(self) -> TensorFlags:
        return self.desc.flags

    @property
    def sizes(self) -> list[int]:
        return list(self.desc.sizes)

    @property
    def strides(self) -> list[int] | None:
        return None if self.desc.strides is None else list(self.desc.strides)

    @property
    def total_tensor_size_in_bytes(self) -> int:
        return self.desc.size_in_bytes

    @property
    def guaranteed_base_offset_alignment(self) -> int:
        return self.desc.guaranteed_base_offset_alignment

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        return (
            f"dml.TensorDesc of type {int(self.data_type)} and shape [{sizes}] with flags {int(self.flags)}"
        )


def _fits(name: str, value: Any) -> bool:
    if name == "flags":
        return isinstance(value, TensorFlags)
    if name == "tensor_policy":
        return isinstance(value, TensorPolicy)
    if name in ("sizes", "strides"):
        return isinstance(value, Sequence) or (value is None and name == "strides")
    return isinstance(value, int)


class Expression(Operators):
    """A tensor of a graph; ``+ - * / %`` of two tensors need equal sizes."""

    __slots__ = ("of",)

    def __init__(self, of: dmlx.Expression) -> None:
        self.of = of

    def get_output_desc(self) -> TensorDesc:
        """The expression's output descriptor."""
        return TensorDesc.of(self.of.desc)

    def __repr__(self) -> str:
        return repr(self.of)

    @property
    def graph(self) -> Expression:  # carries out the operators
        return self

    def unary(self, name: str, x: Expression) -> Expression:
        return Expression(self.of.graph.unary(name, self.of))

    def binary(self, name: str, x: Expression, other: Any, turned: bool) -> Any:
        if name not in ("add", "subtract", "multiply", "divide", "modulus_floor"):
            return NotImplemented
        if isinstance(other, Expression):
            name = "modulus_truncate" if name == "modulus_floor" else name
            return Expression(dmlx.FUNCTIONS[f"element_wise_{name}"](self.of, other.of))
        if not isinstance(other, (int, float)) or name == "modulus_floor":
            return NotImplemented
        return Expression(self.of.graph.binary(name, self.of, float(other), turned))


def unwrapped(name: str, value: Any) -> Any:
    """The expression of the graph; TypeError names the argument."""
    if isinstance(value, Expression):
        return value.of
    raise TypeError(f"{name} must be a pydirectml.Expression, not {type(value).__name__}.")


class MaxPoolingOutputs(NamedTuple):
    values: Expression
    indices: Expression | None


class GRUOutputs(NamedTuple):
    sequence: Expression | None
    single: Expression | None


class OutputOptions(IntEnum):
    """Which outputs a GRU has."""

    Both = 0
    Sequence = 1
    Single = 2


class FusedActivation:
    """An activation, with up to two parameters, the first floats of its desc."""

    def __init__(self, activation: OperatorType, param_1: float = 0, param_2: float = 0) -> None:
        self.activation = OperatorType(activation)
        self.params = float(param_1), float(param_2)

    @property
    def desc(self) -> OperatorDesc:
        cls = declared()[self.activation]
        names = [item.name for item in operator_fields(cls) if item.kind is FieldKind.FLOAT]
        return cls(**dict(zip(names, self.params, strict=False)))
