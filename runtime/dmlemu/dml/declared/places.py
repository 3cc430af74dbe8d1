"""Places of values in an operator desc: the C path, reading the value, the desc with another value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from ...diagnostics.declaration import Declaration
from ...frozen import changed
from ..enums import FeatureLevel, TensorDataType, TensorFlags
from ..rows import OP_FIELD_RANGE, OP_OPTIONAL, OP_SHAPE, TENSOR_DTYPE, TENSOR_RANK
from ..tensor_desc import BufferTensorDesc
from .schema import Field, FieldKind, OperatorDesc, operator_fields
from .values import Among, Between, OneOf, Values

__all__ = [
    "GIVEN",
    "Attribute",
    "Count",
    "DataType",
    "Element",
    "Flags",
    "Inner",
    "Member",
    "Place",
    "Presence",
    "Rank",
    "Size",
    "element_of",
    "field_of",
    "has_field",
    "path_of",
    "resized",
]

_NUMBERS = {
    FieldKind.UINT: Between(0, 2**32 - 1),
    FieldKind.UINT_ARRAY: Between(0, 2**32 - 1),
    FieldKind.INT: Between(-(2**31), 2**31 - 1),
    FieldKind.INT_ARRAY: Between(-(2**31), 2**31 - 1),
}
_MOST_SPATIAL = 6  # 8 dimensions less those of batch and channel


class Place:
    """``name`` is the Python name of a field, or of a tensor in an array (``input_tensors[1]``); ``index``
    counts within it."""

    __slots__ = ("index", "name")

    check: Declaration = OP_FIELD_RANGE
    """The check that reports a wrong value here."""
    first: bool = True
    """Whether other rules compute with the value, so that they cannot be checked while it is wrong."""

    def __init__(self, name: str, index: int = 0) -> None:
        self.name = name
        self.index = index

    def path(self, desc: OperatorDesc) -> str:
        """The C path: ``OutputTensor.Sizes[2]``."""
        raise NotImplementedError

    def struct(self, desc: OperatorDesc) -> OperatorDesc:
        """The desc whose documentation states the rule: ``desc``, or one nested in it."""
        return desc

    def value(self, desc: OperatorDesc) -> Any:
        raise NotImplementedError

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        """The desc with ``value`` here."""
        raise NotImplementedError

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        """The values that the declaration allows: by C type, or by the operator's table at a level."""
        raise NotImplementedError


class Attribute(Place):
    """A field that is one value, ``GroupCount``, or an operator desc of an array, ``ActivationDescs[1]``."""

    __slots__ = ()

    def path(self, desc: OperatorDesc) -> str:
        return path_of(desc, self.name)

    def value(self, desc: OperatorDesc) -> Any:
        return element_of(desc, self.name)

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        is_float = field_of(type(desc), self.name).kind is FieldKind.FLOAT
        return _changed(desc, self.name, float(value) if is_float else value)

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        item = field_of(type(desc), self.name)
        if item.enum is not None:
            return Among(item.enum)
        return _NUMBERS.get(item.kind, Between(-3.0e38, 3.0e38))


GIVEN = "a tensor desc"


class Presence(Place):
    """Whether one of some optional tensors is given; the path is that of the first."""

    __slots__ = ("names",)

    check = OP_OPTIONAL

    def __init__(self, *names: str) -> None:
        super().__init__(names[0])
        self.names = names

    def path(self, desc: OperatorDesc) -> str:
        return field_of(type(desc), self.name).c_name

    def value(self, desc: OperatorDesc) -> str | None:
        return GIVEN if any(getattr(desc, name) is not None for name in self.names) else None

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        """Without all of them, or with the first."""
        if value is None:
            without: OperatorDesc = replace(desc, **dict.fromkeys(self.names))
            return without
        allowed = desc.allowed(max(FeatureLevel))[self.name]
        tensor = BufferTensorDesc(min(allowed.data_types), [1] * allowed.min_rank)
        return _changed(desc, self.name, tensor)

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return OneOf(None, GIVEN)


class Element(Place):
    """One element of an array: ``Strides[1]``."""

    __slots__ = ()

    def path(self, desc: OperatorDesc) -> str:
        return f"{field_of(type(desc), self.name).c_name}[{self.index}]"

    def value(self, desc: OperatorDesc) -> Any:
        return getattr(desc, self.name)[self.index]

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        return _changed(desc, self.name, _exchanged(getattr(desc, self.name), self.index, value))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return _NUMBERS.get(field_of(type(desc), self.name).kind, Between(-3.0e38, 3.0e38))


class Member(Place):
    """A number of a Size2D: ``ScaleSize.Height``."""

    __slots__ = ("member",)

    def __init__(self, name: str, member: str) -> None:
        super().__init__(name)
        self.member = member

    def path(self, desc: OperatorDesc) -> str:
        return f"{field_of(type(desc), self.name).c_name}.{self.member.capitalize()}"

    def value(self, desc: OperatorDesc) -> Any:
        return getattr(getattr(desc, self.name), self.member)

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        return _changed(desc, self.name, replace(getattr(desc, self.name), **{self.member: value}))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return _NUMBERS[FieldKind.UINT]


class Count(Place):
    """The length of an array, and of all arrays with the same count: ``DimensionCount``."""

    __slots__ = ()

    def path(self, desc: OperatorDesc) -> str:
        return field_of(type(desc), self.name).count

    def value(self, desc: OperatorDesc) -> int:
        return len(getattr(desc, self.name))

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        for item in operator_fields(type(desc)):
            given = getattr(desc, item.name)
            if item.count == self.path(desc) and item.array:
                desc = _changed(desc, item.name, (given * value)[:value])
            elif item.count == self.path(desc):
                desc = _changed(desc, item.name, resized(given, value))
        return desc

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return Between(0, _MOST_SPATIAL)


class Rank(Place):
    """``InputTensor.DimensionCount``."""

    __slots__ = ()

    check = TENSOR_RANK

    def path(self, desc: OperatorDesc) -> str:
        return f"{path_of(desc, self.name)}.DimensionCount"

    def value(self, desc: OperatorDesc) -> int:
        return _tensor(desc, self.name).rank

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        tensor = _tensor(desc, self.name)
        return _with_sizes(desc, self.name, resized(tensor.sizes, value))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        allowed = desc.allowed(level)[_split(self.name)[0]]
        return Between(allowed.min_rank, allowed.max_rank)


class Size(Place):
    """``InputTensor.Sizes[2]``."""

    __slots__ = ()

    check = OP_SHAPE
    first = False

    def path(self, desc: OperatorDesc) -> str:
        return f"{path_of(desc, self.name)}.Sizes[{self.index}]"

    def value(self, desc: OperatorDesc) -> int:
        return _tensor(desc, self.name).sizes[self.index]

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        return _with_sizes(desc, self.name, _exchanged(_tensor(desc, self.name).sizes, self.index, value))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return Between(1, 2**32 - 1)


class DataType(Place):
    """``InputTensor.DataType``, or a field that is a data type: ``MinMaxDataType``."""

    __slots__ = ()

    check = TENSOR_DTYPE
    first = False

    def path(self, desc: OperatorDesc) -> str:
        path = path_of(desc, self.name)
        return f"{path}.DataType" if field_of(type(desc), self.name).is_tensor else path

    def value(self, desc: OperatorDesc) -> TensorDataType:
        found = element_of(desc, self.name)
        data_type: TensorDataType = found.data_type if isinstance(found, BufferTensorDesc) else found
        return data_type

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        found = element_of(desc, self.name)
        if isinstance(found, BufferTensorDesc):
            value = BufferTensorDesc(value, found.sizes, flags=found.flags)
        return _changed(desc, self.name, value)

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        if field_of(type(desc), self.name).is_tensor:
            return Among(desc.allowed(level)[_split(self.name)[0]].data_types)
        return Among(each for each in TensorDataType if each)


class Flags(Place):
    """``InputTensor.Flags``."""

    __slots__ = ()

    first = False

    def path(self, desc: OperatorDesc) -> str:
        return f"{path_of(desc, self.name)}.Flags"

    def value(self, desc: OperatorDesc) -> TensorFlags:
        return _tensor(desc, self.name).flags

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        tensor = _tensor(desc, self.name)
        return _changed(desc, self.name, BufferTensorDesc(tensor.data_type, tensor.sizes, flags=value))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return OneOf(*TensorFlags)


class Inner(Place):
    """A place in the operator desc nested in the field ``name``: ``FusedActivation.Alpha``."""

    def __init__(self, name: str, place: Place) -> None:
        super().__init__(name)
        self.place, self.check, self.first = place, place.check, place.first

    def struct(self, desc: OperatorDesc) -> OperatorDesc:
        return self.place.struct(element_of(desc, self.name))

    def path(self, desc: OperatorDesc) -> str:
        inner = element_of(desc, self.name)
        return f"{path_of(desc, self.name)}.{self.place.path(inner)}"

    def value(self, desc: OperatorDesc) -> Any:
        return self.place.value(element_of(desc, self.name))

    def put(self, desc: OperatorDesc, value: Any) -> OperatorDesc:
        return _changed(desc, self.name, self.place.put(element_of(desc, self.name), value))

    def domain(self, desc: OperatorDesc, level: FeatureLevel) -> Values:
        return self.place.domain(element_of(desc, self.name), level)


@cache
def _fields(cls: type[OperatorDesc]) -> dict[str, Field]:
    return {item.name: item for item in operator_fields(cls)}


def field_of(cls: type[OperatorDesc], name: str) -> Field:
    """The declaration of a field, also of the array that holds ``input_tensors[1]``."""
    return _fields(cls)[_split(name)[0]]  # type: ignore[arg-type]


def has_field(cls: type[OperatorDesc], name: str) -> bool:
    return name in _fields(cls)  # type: ignore[arg-type]


@lru_cache(4096)
def _split(name: str) -> tuple[str, int | None]:
    """``input_tensors[1]`` as the field and the index in it."""
    field, _, index = name.partition("[")
    return field, int(index[:-1]) if index else None


def element_of(desc: OperatorDesc, name: str) -> Any:
    """The value of a field, or of one element of an array: ``input_tensors[1]``."""
    field, index = _split(name)
    found = getattr(desc, field)
    return found if index is None else found[index]


def path_of(desc: OperatorDesc, name: str) -> str:
    """The C path of a field, or of an element of an array."""
    index = _split(name)[1]
    return field_of(type(desc), name).c_name + ("" if index is None else f"[{index}]")


def _tensor(desc: OperatorDesc, name: str) -> BufferTensorDesc:
    tensor: BufferTensorDesc = element_of(desc, name)
    return tensor


def _changed(desc: OperatorDesc, name: str, value: Any) -> OperatorDesc:
    field, index = _split(name)
    if index is not None:
        value = _exchanged(getattr(desc, field), index, value)
    if isinstance(value, BufferTensorDesc):  # as it is
        return changed(desc, **{field: value})
    made: OperatorDesc = replace(desc, **{field: value})
    return made


def _with_sizes(desc: OperatorDesc, name: str, sizes: Sequence[int]) -> OperatorDesc:
    tensor = _tensor(desc, name)
    return _changed(desc, name, BufferTensorDesc(tensor.data_type, sizes, flags=tensor.flags))


def _exchanged(numbers: Sequence[Any], index: int, value: Any) -> list[Any]:
    return [*numbers[:index], value, *numbers[index + 1 :]]


def resized(numbers: Sequence[int], length: int) -> list[int]:
    """The last ``length`` numbers, padded with leading ones."""
    return [1] * (length - len(numbers)) + list(numbers)[max(0, len(numbers) - length) :]
