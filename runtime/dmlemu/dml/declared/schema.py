"""Operator desc declarations: fields in C order, feature levels, ranks and data types.

The classes are in ``descs.py``, which is generated from ``runtime/spec``.  Validation, the C struct layout,
DxDispatch JSON, the reference pages, hypothesis strategies and the command line all use this module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, fields
from enum import Enum, IntEnum
from functools import cache
from typing import Any, ClassVar, TypeVar

import numpy as np

from ...errors import as_integer
from ...frozen import Frozen, dataclass_transform
from ..enums import FeatureLevel, OperatorType, TensorDataType

__all__ = [
    "ARRAYS",
    "Allowed",
    "Field",
    "FieldKind",
    "OperatorDesc",
    "Table",
    "boolean",
    "c_enum",
    "c_layout",
    "camel",
    "enumeration",
    "float32",
    "float32_array",
    "input_tensor",
    "int32",
    "int32_array",
    "is_operator_desc",
    "level_name",
    "operator_desc",
    "operator_fields",
    "other_items",
    "output_tensor",
    "scalar_union",
    "scale_bias",
    "size_2d",
    "tables",
    "tables_of_members",
    "tensor_items",
    "uint",
    "uint_array",
]


class FieldKind(Enum):
    """The kind of an operator desc field; determines its C type, its JSON form and its checks."""

    INPUT_TENSOR = "const DML_TENSOR_DESC*"
    OUTPUT_TENSOR = "const DML_TENSOR_DESC* (output)"
    UINT = "UINT"
    INT = "INT"
    FLOAT = "FLOAT"
    BOOL = "BOOL"
    ENUM = "enum"
    UINT_ARRAY = "const UINT*"
    INT_ARRAY = "const INT*"
    FLOAT_ARRAY = "const FLOAT*"
    SCALE_BIAS = "const DML_SCALE_BIAS*"
    SCALAR_UNION = "DML_SCALAR_UNION"
    SIZE_2D = "DML_SIZE_2D"
    OPERATOR_DESC = "const DML_OPERATOR_DESC*"


class Field(Frozen):
    """One field of an operator desc, as declared.

    ``count`` is the C name of the UINT before the first array that it counts (``AxisCount``); counts
    are not Python fields, as they are the arrays' lengths.  ``array`` marks arrays of
    tensors or of operator descs.  ``fusable``: the tensor is required, but absent when the desc is
    another operator's fused activation.  ``type_from`` names the field that gives a scalar's type.
    """

    name: str
    c_name: str
    kind: FieldKind
    optional: bool = False
    count: str = ""
    array: bool = False
    enum: type[IntEnum] | None = None
    type_from: str = ""
    fusable: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.kind in (FieldKind.INPUT_TENSOR, FieldKind.OUTPUT_TENSOR)


def _declare(kind: FieldKind, default: Any = ..., **info: Any) -> Any:
    metadata = {"dml": {"kind": kind, **info}}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


# Field specifiers: type checkers treat a field as required unless its call has ``default``.


def input_tensor(*, default: Any = ..., count: str = "", c_name: str = "", fusable: bool = False) -> Any:
    """An input tensor; with ``count``, an array of them (``InputTensors``, counted by ``InputCount``)."""
    return _tensor(FieldKind.INPUT_TENSOR, default, count, c_name, fusable)


def output_tensor(*, default: Any = ..., count: str = "", c_name: str = "", fusable: bool = False) -> Any:
    """An output tensor; with ``count``, an array of them."""
    return _tensor(FieldKind.OUTPUT_TENSOR, default, count, c_name, fusable)


def _tensor(kind: FieldKind, default: Any, count: str, c_name: str, fusable: bool) -> Any:
    optional = default is None and not fusable
    named = {"c_name": c_name} if c_name else {}
    return _declare(
        kind, default, optional=optional, count=count, array=bool(count), fusable=fusable, **named
    )


def uint() -> Any:
    return _declare(FieldKind.UINT)


def int32() -> Any:
    return _declare(FieldKind.INT)


def float32() -> Any:
    return _declare(FieldKind.FLOAT)


def boolean() -> Any:
    return _declare(FieldKind.BOOL)


def enumeration(enum: type[IntEnum]) -> Any:
    return _declare(FieldKind.ENUM, enum=enum)


def uint_array(*, default: Any = ..., count: str) -> Any:
    return _declare(FieldKind.UINT_ARRAY, default, optional=default is None, count=count)


def int32_array(*, default: Any = ..., count: str) -> Any:
    return _declare(FieldKind.INT_ARRAY, default, optional=default is None, count=count)


def float32_array(*, default: Any = ..., count: str) -> Any:
    return _declare(FieldKind.FLOAT_ARRAY, default, optional=default is None, count=count)


def scale_bias(*, default: Any = ...) -> Any:
    return _declare(FieldKind.SCALE_BIAS, default, optional=default is None)


def scalar_union(*, type_from: str) -> Any:
    """8 raw bytes read as the data type of the tensor or enum field named ``type_from``."""
    return _declare(FieldKind.SCALAR_UNION, type_from=type_from)


def size_2d() -> Any:
    return _declare(FieldKind.SIZE_2D)


def operator_desc(*, default: Any = ..., count: str = "") -> Any:
    """An operator desc without tensors, a fused activation; with ``count``, an array of them."""
    return _declare(
        FieldKind.OPERATOR_DESC, default, optional=default is None, count=count, array=bool(count)
    )


class Allowed(Frozen):
    """Ranks and data types that a feature level allows for one tensor field."""

    min_rank: int
    max_rank: int
    data_types: frozenset[TensorDataType]


_T = TypeVar("_T")


def _once(function: Callable[[type[OperatorDesc]], _T]) -> Callable[[type[OperatorDesc]], _T]:
    """``functools.cache`` that keeps the argument types: mypy does not know that classes are hashable."""
    return cache(function)  # type: ignore[return-value]


Table = Mapping[str, Allowed]
"""The allowed ranks and types of each tensor field, by its Python name."""


def camel(name: str) -> str:
    """``output_count_tensor`` -> ``OutputCountTensor``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def level_name(level: FeatureLevel) -> str:
    """``LEVEL_4_1`` -> ``4_1``."""
    return level.name.removeprefix("LEVEL_")


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(
        boolean,
        enumeration,
        float32,
        float32_array,
        input_tensor,
        int32,
        int32_array,
        operator_desc,
        output_tensor,
        scalar_union,
        scale_bias,
        size_2d,
        uint,
        uint_array,
    ),
)
class OperatorDesc(Frozen):
    """Base of every operator desc: frozen, keyword-only dataclasses, generated into ``descs.py``."""

    TYPE: ClassVar[OperatorType]
    INTRODUCED: ClassVar[FeatureLevel]
    IN_PLACE: ClassVar[bool]
    TABLES: ClassVar[str | Mapping[str, str]]
    """A row is ``1_0 ATensor BTensor: 4-5 FLOAT32``; see :func:`tables`, which reads them."""
    TABLES_BY: ClassVar[str]
    """The enum field that selects the table; only REDUCE has one."""

    def __init_subclass__(
        cls,
        *,
        type: OperatorType,
        introduced: str,
        in_place: bool = False,
        tables: str | Mapping[str, str] = "",
        tables_by: str = "",
    ) -> None:
        super().__init_subclass__(kw_only=True)
        cls.TYPE, cls.INTRODUCED = type, FeatureLevel[f"LEVEL_{introduced}"]
        cls.IN_PLACE, cls.TABLES, cls.TABLES_BY = in_place, tables, tables_by

    def __post_init__(self) -> None:
        """Converts arrays to tuples, so that descs are immutable, NumPy numbers to Python numbers, which do
        not overflow, and numbers of an enum to its members."""
        state = self.__dict__
        for name, is_array, enum in _kinds(type(self)):
            value = state[name]
            if isinstance(value, np.generic):
                value = value.item()
            if is_array:
                if isinstance(value, (list, tuple, range)) or (isinstance(value, np.ndarray) and value.ndim):
                    value = tuple([_plain(each) for each in value])
            elif enum is not None and not isinstance(value, Enum):
                with suppress(ValueError):  # rejected later by the check
                    value = enum(as_integer(value))
            state[name] = value

    def allowed(self, level: FeatureLevel) -> Table:
        """Ranks and types per tensor field on a device of ``level``: the highest table not above it."""
        if not self.TABLES_BY:
            return _table(type(self), level)  # type: ignore[arg-type]
        member = getattr(self, self.TABLES_BY)
        return table_for(tables_of_members(type(self))[member.name], level)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """The operator in plain NumPy: arrays by input field name -> arrays by output field name.

        Arrays have the logical shape (``Sizes``) and the NumPy type of their tensor; absent optional
        tensors are left out or None.  NotImplementedError: the operator is not emulated.
        """
        from .definition import definition_of

        return definition_of(self).reference(inputs)


def is_operator_desc(value: object) -> bool:
    """Whether the class describes an operator; the base class does not."""
    return isinstance(value, OperatorDesc) and type(value) is not OperatorDesc


def table_for(support: Mapping[FeatureLevel, Table], level: FeatureLevel) -> Table:
    """The table of the highest level not above ``level``; the lowest table if all are above."""
    at_or_below = [known for known in support if known <= level]
    return support[max(at_or_below) if at_or_below else min(support)]


@cache
def _table(cls: Any, level: FeatureLevel) -> Table:
    return table_for(tables(cls), level)


@_once
def tables(cls: type[OperatorDesc]) -> Mapping[FeatureLevel, Table]:
    """Ranks and data types by feature level; for ``TABLES_BY`` the union over all members."""
    if isinstance(cls.TABLES, str):
        return _parse(cls, cls.TABLES)
    by_member = tables_of_members(cls).values()
    union = {}
    for level in sorted({level for support in by_member for level in support}):
        at_level = [table_for(support, level) for support in by_member]
        union[level] = {name: _widest([table[name] for table in at_level]) for name in at_level[0]}
    return union


@_once
def tables_of_members(cls: type[OperatorDesc]) -> Mapping[str, Mapping[FeatureLevel, Table]]:
    """For an operator with ``TABLES_BY``: the tables of each member, by its name."""
    assert not isinstance(cls.TABLES, str)
    return {name: _parse(cls, rows) for names, rows in cls.TABLES.items() for name in names.split()}


def _widest(allowed: list[Allowed]) -> Allowed:
    return Allowed(
        min(each.min_rank for each in allowed),
        max(each.max_rank for each in allowed),
        frozenset().union(*(each.data_types for each in allowed)),
    )


def _parse(cls: type[OperatorDesc], rows: str) -> Mapping[FeatureLevel, Table]:
    names = {item.c_name: item.name for item in operator_fields(cls)}
    support: dict[FeatureLevel, dict[str, Allowed]] = {}
    for row in filter(None, map(str.strip, rows.splitlines())):
        where, _, what = row.partition(":")
        level, *tensors = where.split()
        ranks, *types = what.split()
        low, _, high = ranks.partition("-")
        allowed = Allowed(int(low), int(high or low), frozenset(TensorDataType[each] for each in types))
        table = support.setdefault(FeatureLevel[f"LEVEL_{level}"], {})
        table.update((names[tensor], allowed) for tensor in tensors)
    return support


ARRAYS = (FieldKind.UINT_ARRAY, FieldKind.INT_ARRAY, FieldKind.FLOAT_ARRAY)


@_once
def operator_fields(cls: type[OperatorDesc]) -> tuple[Field, ...]:
    """The declared fields in C order, without the counts."""
    declared = []
    for item in fields(cls):
        info = dict(item.metadata["dml"])
        declared.append(Field(item.name, info.pop("c_name", camel(item.name)), **info))
    return tuple(declared)


@_once
def _kinds(cls: type[OperatorDesc]) -> tuple[tuple[str, bool, Any], ...]:
    """Of each field the name, whether it is an array, and its enum."""
    return tuple((item.name, item.kind in ARRAYS or item.array, item.enum) for item in operator_fields(cls))


@_once
def tensor_items(cls: type[OperatorDesc]) -> tuple[Field, ...]:
    """The declared tensors, in C order."""
    return tuple(item for item in operator_fields(cls) if item.is_tensor)


@_once
def other_items(cls: type[OperatorDesc]) -> tuple[Field, ...]:
    """The declared fields that are no tensors, in C order."""
    return tuple(item for item in operator_fields(cls) if not item.is_tensor)


def c_layout(cls: type[OperatorDesc]) -> Iterator[tuple[str, str]]:
    """``(C name, C type)`` of every field of the struct, counts included, in order."""
    counted: set[str] = set()
    for item in operator_fields(cls):
        if item.count and item.count not in counted:
            counted.add(item.count)
            yield item.count, "UINT"
        c_type = item.kind.value.replace(" (output)", "")
        if item.kind is FieldKind.ENUM and item.enum is not None:
            c_type = c_enum(item.enum)
        yield item.c_name, c_type


def c_enum(enum: type[Enum]) -> str:
    """The C name of an enum of DirectML: ``ReduceFunction`` is DML_REDUCE_FUNCTION."""
    return "DML_" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum.__name__).upper()


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
