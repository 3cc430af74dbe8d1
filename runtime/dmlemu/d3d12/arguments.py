"""Python types of arguments: what is no integer, struct or sequence raises TypeError, by the field's name."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, IntFlag
from operator import index
from typing import Any, TypeVar, get_type_hints

_Kind = TypeVar("_Kind")


def _wrong(field: str, what: str, value: object) -> TypeError:
    return TypeError(f"{field} must be {what}, not {type(value).__name__}.")


def integer(value: Any, field: str) -> int:
    """The value as an int; numpy's integers and enum members count."""
    try:
        return index(value)
    except TypeError:
        raise _wrong(field, "an integer", value) from None


def instance(value: Any, kind: type[_Kind], field: str) -> _Kind:
    """The value, which must be of that class."""
    if not isinstance(value, kind):
        raise _wrong(field, f"a {kind.__name__}", value)
    return value


def sequence(value: Any, field: str) -> list[Any]:
    """The value's items."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _wrong(field, "a sequence", value)
    return list(value)


def integers(value: Any, field: str) -> list[int]:
    """The value's items, all integers."""
    return [integer(each, f"{field}[{i}]") for i, each in enumerate(sequence(value, field))]


def floats(value: Any, field: str) -> list[float]:
    """The value's items, all numbers."""
    for i, each in enumerate(items := sequence(value, field)):
        if isinstance(each, str | bytes) or not hasattr(each, "__float__"):
            raise _wrong(f"{field}[{i}]", "a number", each)
    return [float(each) for each in items]


class Struct:
    """Base of the structs: fields of numbers and of other structs are checked when one is made.

    A number that is a member of the field's enum becomes that member; any other stays as it is, for
    the rules to judge.
    """

    def __post_init__(self) -> None:
        for name, kind in _fields(type(self)):
            value = getattr(self, name)
            if type(value) is kind:
                continue
            field = f"{type(self).__name__}.{name}"
            if issubclass(kind, bool):
                value = bool(integer(value, field))
            elif issubclass(kind, IntFlag):
                value = kind(integer(value, field) & 0xFFFF_FFFF_FFFF_FFFF)
            elif issubclass(kind, IntEnum):
                value = _member(kind, integer(value, field))
            elif issubclass(kind, int):
                value = integer(value, field)
            else:
                instance(value, kind, field)
            object.__setattr__(self, name, value)


def _member(kind: type[IntEnum], number: int) -> int:
    try:
        return kind(number)
    except ValueError:
        return number


_table: dict[type, tuple[tuple[str, type], ...]] = {}


def _fields(kind: type) -> tuple[tuple[str, type], ...]:
    """The fields that are one class each: numbers, enums, structs."""
    if kind not in _table:
        hints = get_type_hints(kind)
        _table[kind] = tuple((name, hint) for name, hint in hints.items() if isinstance(hint, type))
    return _table[kind]
