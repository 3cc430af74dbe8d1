"""Argument conversion: a value of the wrong Python type raises a TypeError that names the field.

Whether a number is legal is checked by the rules of the call.  A number wider than 64 bits, which no field
can hold, raises :class:`dmlemu.Error` here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum, IntEnum, IntFlag
from operator import index
from typing import Any, TypeVar, get_origin, get_type_hints

from ...errors import Error
from ...frozen import Frozen
from ...suggestions import nearest, question
from .rows import Argument

_Kind = TypeVar("_Kind")
_Choice = TypeVar("_Choice", bound=Enum)
_PLAIN = 2**64  # numbers in this range are left to the rules


def _wrong(field: str, what: str, value: object) -> TypeError:
    return TypeError(f"{field} must be {what}, not {type(value).__name__}.")


def outside(
    value: object, field: str, expected: str, verdict: str = "is out of range", hint: str = ""
) -> Error:
    """The error for a value that the field cannot hold; ``verdict``: why, as the end of the sentence."""
    return Argument.out_of_range(field=field, given=value, expected=expected, hint=hint, verdict=verdict)


# Converting these runs no method of theirs: an exception comes from a signal handler.
_INTEGERS = (int, bool)
_NUMBERS = (int, bool, float)


def integer(value: Any, field: str) -> int:
    """The value as an int; NumPy integers and enum members are accepted."""
    try:
        number = index(value)
    except Exception:  # any exception of the value's own method
        if type(value) in _INTEGERS:
            raise
        raise _wrong(field, "an integer", value) from None
    if number.bit_length() > 128:
        raise outside(number, field, "a number of up to 64 bits", "is larger than any field of the API")
    return number


def instance(value: Any, kind: type[_Kind], field: str) -> _Kind:
    """The value; TypeError unless it is an instance of the class."""
    if not isinstance(value, kind):
        raise _wrong(field, f"a {kind.__name__}", value)
    return value


def sequence(value: Any, field: str) -> list[Any]:
    """The value's items."""
    if type(value) is list:
        return value.copy()
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise _wrong(field, "a sequence", value)
    try:
        return list(value)
    except Exception:  # any exception of the value's own method, as of a memoryview of two dimensions
        raise _wrong(field, "a sequence", value) from None


def structs(value: Any, kind: type[_Kind], field: str) -> tuple[_Kind, ...]:
    """The value's items, all structs of one class."""
    return tuple([instance(each, kind, f"{field}[{i}]") for i, each in enumerate(sequence(value, field))])


def integers(value: Any, field: str) -> list[int]:
    """The value's items, all integers."""
    return [integer(each, f"{field}[{i}]") for i, each in enumerate(sequence(value, field))]


def floats(value: Any, field: str) -> list[float]:
    """The value's items, all numbers."""
    return [number(each, f"{field}[{i}]") for i, each in enumerate(sequence(value, field))]


def number(value: Any, field: str) -> float:
    """The value as a float."""
    if isinstance(value, str | bytes) or not hasattr(value, "__float__"):
        raise _wrong(field, "a number", value)
    try:
        return float(value)
    except OverflowError:
        raise outside(value, field, "a number that a double can hold") from None
    except Exception:
        if type(value) in _NUMBERS:
            raise
        raise _wrong(field, "a number", value) from None


def choice(value: Any, kind: type[_Choice], field: str, *others: str) -> _Choice:
    """The member of a string enum that the value is or names; ``others`` are further accepted values."""
    names = " or ".join([*(str(each.value) for each in kind), *others])
    if not isinstance(value, str):
        raise _wrong(field, names, value)
    try:
        return kind(value)
    except ValueError:
        near = question(nearest(value, [each.value for each in kind]))
        raise outside(value, field, names, f"is not a member of {kind.__name__}", near) from None


def text(value: Any, field: str) -> str:
    """The value; TypeError unless it is a str."""
    return instance(value, str, field)


def buffer(value: Any, field: str) -> bytes:
    """A copy of the bytes of an object with the buffer protocol."""
    try:
        return memoryview(value).tobytes()
    except Exception:  # any exception of the value's own method
        raise _wrong(field, "bytes", value) from None


def callback(value: Any, field: str) -> Callable[..., Any]:
    """The value; TypeError unless it is callable."""
    if not callable(value):
        raise _wrong(field, "a function", value)
    found: Callable[..., Any] = value
    return found


class Struct(Frozen):
    """Base of the structs: the types of number and struct fields are checked on construction.

    A number that is a member of the field's enum becomes that member; any other number is kept and
    checked by the call that takes the struct.
    """

    def __post_init__(self) -> None:
        for name, kind in _fields(type(self)):
            value = self.__dict__[name]
            if type(value) is kind and (kind is not int or abs(value) < _PLAIN):  # type: ignore[arg-type]
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
            elif issubclass(kind, float):
                value = number(value, field)
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
    """The fields annotated with one class: numbers, enums, structs."""
    if kind not in _table:
        hints = get_type_hints(kind)
        _table[kind] = tuple((name, hint) for name, hint in hints.items() if _is_class(hint))
    return _table[kind]


def _is_class(hint: Any) -> bool:
    return isinstance(hint, type) and get_origin(hint) is None  # Python 3.10 calls tuple[int, ...] a type
