"""The structs of C programs: read from memory and written to it by the declarations of the Python structs."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from dataclasses import fields
from enum import IntEnum, IntFlag
from functools import cache, lru_cache
from types import GenericAlias
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from dmlemu_hw.kernels import ffi

from ...diagnostics.declaration import Declaration
from ...diagnostics.rule import error_of
from ...errors import Error
from ...frozen import Frozen
from .rows import API_NULL_POINTER, API_SIZE

__all__ = [
    "MEMORY",
    "MOST_BYTES",
    "MOST_ELEMENTS",
    "c_format",
    "c_size",
    "pack",
    "read",
    "read_array",
    "read_blob",
    "read_bytes",
    "unpack",
    "write",
]

_Struct = TypeVar("_Struct", bound=Frozen)

_Function = TypeVar("_Function", bound=Callable[..., Any])

MOST_ELEMENTS = 1_000_000  # of an array: the descriptors of the largest shader-visible heap

MOST_BYTES = 1 << 26  # of private data or a marker

_MOST_TEXT = 65_536  # characters of a string

_CHARS = ffi.typeof("char *")

# The memory of the process, in which an address is an index.  ``Struct.unpack_from`` of it reads a struct in
# place, ten times as fast as a copy of its bytes is made.
MEMORY = ffi.buffer(ffi.cast(_CHARS, 0), sys.maxsize)


_once = cast("Callable[[_Function], _Function]", cache)  # keeps the types of the arguments

# --- layout: struct's native mode aligns the fields as C does ---


@_once
def c_format(kind: Any) -> str:
    """The format of a type for the module ``struct``, in native mode."""
    if issubclass(kind, Frozen):
        formats = "".join(_format(hint) for hint in _hints(kind).values())
        return f"0Q{formats}0Q" if "Q" in formats else formats  # aligned as its widest field, at both ends
    is_signed = issubclass(kind, IntEnum) and not issubclass(kind, IntFlag)
    return "i" if is_signed else "I"


def _format(hint: Any) -> str:
    origin = get_origin(hint)
    if origin is Annotated:
        return str(get_args(hint)[1])
    if origin is tuple:
        return "".join(map(_format, get_args(hint)))
    return c_format(hint)


@_once
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in fields(kind)}


@_once
def _compiled(kind: Any) -> struct.Struct:
    return struct.Struct(c_format(kind))


def c_size(kind: Any) -> int:
    """``sizeof``."""
    return _compiled(kind).size


# --- values ---


def pack(value: Frozen) -> bytes:
    """The bytes of a struct, as C has them."""
    return _compiled(type(value)).pack(*_leaves(value))


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, Frozen):
        return [leaf for name in _hints(type(value)) for leaf in _leaves(getattr(value, name))]
    if isinstance(value, tuple):
        return [leaf for each in value for leaf in _leaves(each)]
    return [int(value) if isinstance(value, IntEnum | IntFlag | bool) else value]


def unpack(kind: type[_Struct], data: bytes) -> _Struct:
    """The struct that the bytes are."""
    return cast("_Struct", _builder(kind)(iter(_compiled(kind).unpack(data))))


@_once
def _builder(kind: Any) -> Callable[[Any], Any]:
    """The function that takes a field's value from the numbers of a struct."""
    if isinstance(kind, type) and not isinstance(kind, GenericAlias):
        if issubclass(kind, Frozen):
            parts = [_builder(hint) for hint in _hints(kind).values()]
            return lambda leaves: kind(*[part(leaves) for part in parts])
        if kind is bool:
            return lambda leaves: bool(next(leaves))
    if get_origin(kind) is tuple:
        parts = [_builder(hint) for hint in get_args(kind)]
        return lambda leaves: tuple(part(leaves) for part in parts)
    return next


# --- memory ---


def read_bytes(address: int, size: int) -> bytes:
    """A copy of the bytes at an address."""
    data: bytes = MEMORY[address : address + size]
    return data


def read_text(address: int) -> str | None:
    """The string at an address, up to its NUL; None for NULL."""
    if not address:
        return None
    return str(ffi.string(ffi.cast(_CHARS, address), _MOST_TEXT).decode("utf-8", "replace"))


def read_wide_text(address: int) -> str | None:
    """A string of WCHAR, which has 4 bytes outside of Windows."""
    if not address:
        return None
    length = 0
    while length < _MOST_TEXT and any(read_bytes(address + 4 * length, 4)):
        length += 1
    return read_bytes(address, 4 * length).decode("utf-32-le", "replace")


def write(address: int, data: bytes) -> None:
    """Writes bytes to an address."""
    MEMORY[address : address + len(data)] = data


def read(kind: type[_Struct], address: int) -> _Struct | None:
    """The struct at an address; None for NULL."""
    if not address:
        return None
    return cast("_Struct", _builder(kind)(iter(_compiled(kind).unpack_from(MEMORY, address))))


def read_array(
    kind: type | str,
    address: int,
    count: int,
    field: str,
    operation: str,
    *,
    most: int = MOST_ELEMENTS,
    check: Declaration | None = None,
    api: str = "",
) -> list[Any]:
    """``count`` structs, or numbers of a format of the module ``struct``, contiguous.

    Raises :class:`dmlemu.Error` (E_INVALIDARG) for NULL with a count, and for more than ``most``.
    """
    if not count:
        return []
    if not address or count > most:
        raise _no_array(address, count, field, operation, most, check, api)
    if isinstance(kind, str):
        if len(kind) == 1:
            return list(_numbers(f"{count}{kind}").unpack_from(MEMORY, address))
        layout = _numbers(kind)
        return [layout.unpack_from(MEMORY, address + i * layout.size) for i in range(count)]
    layout, build = _compiled(kind), _builder(kind)
    return [build(iter(layout.unpack_from(MEMORY, address + i * layout.size))) for i in range(count)]


_numbers = lru_cache(struct.Struct)  # by their format


def read_blob(
    address: int,
    size: int,
    field: str,
    operation: str,
    *,
    most: int = MOST_BYTES,
    check: Declaration | None = None,
    api: str = "",
) -> bytes:
    """``size`` bytes of a program's own.

    Raises :class:`dmlemu.Error` (E_INVALIDARG) for NULL with a size, and for more than ``most``.
    """
    if size > most or (size and not address):
        raise _no_array(address, size, field, operation, most, check, api)
    return read_bytes(address, size) if size else b""


def _no_array(
    address: int, count: int, field: str, operation: str, most: int, check: Declaration | None, api: str
) -> Error:
    """The error of an array that cannot be there."""
    message = (
        f"{field} is NULL, and its count is {count}." if not address else f"{field} has {count} elements."
    )
    return error_of(
        check or (API_SIZE if address else API_NULL_POINTER),
        message,
        api=api,
        operation=operation,
        rule="",
        field=field,
        given=count if address else "NULL",
        expected=f"at most {most} elements" if address else f"the address of {count} elements",
    )
