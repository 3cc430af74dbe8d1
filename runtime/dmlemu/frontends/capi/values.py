"""Arguments and results of methods: structs by value, out parameters, created objects."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from ...d3d12.c_memory import pack, read, write
from ...errors import Error, HResult
from ...frozen import Frozen
from ._capi import ffi
from .objects import hand_out, interface_of, invalid, write_pointer

__all__ = ["by_value", "create", "luid_number", "needed", "write_numbers"]

_Struct = TypeVar("_Struct", bound=Frozen)


def by_value(data: bytes) -> Any:
    """A struct as the result of a method."""
    result = ffi.new(f"struct capi_{len(data)} *")
    ffi.buffer(result)[:] = data
    return result[0]  # keeps its owner


def needed(kind: type[_Struct], address: int, field: str, operation: str) -> _Struct:
    """The struct at an address, which must not be NULL."""
    found = read(kind, address)
    if found is None:
        raise invalid(field, None, f"the address of a {kind.__name__}", operation)
    return found


def create(riid: int, out: int, make: Callable[[], Any], holds: dict[str, Any] | None = None) -> HResult:
    """Makes an object and hands it out.  Without ``out`` everything is checked and nothing kept: S_FALSE.

    ``holds``: objects that the new one keeps.
    """
    if out:
        write_pointer(out, 0)
    made = make()
    if not out:
        made.discard()
        return HResult.S_FALSE
    result = hand_out(made, riid, out)
    if result is HResult.E_NOINTERFACE:
        made.discard()
        return result
    for role, other in (holds or {}).items():
        interface_of(made).hold(role, other)
    return result


def write_numbers(address: int, code: str, *values: int) -> None:
    """Writes numbers of a format of the module ``struct``; nothing to NULL."""
    if address:
        write(address, struct.pack(f"@{code}", *values))


def luid_number(value: Frozen) -> int:
    """A LUID as the number that a register holds."""
    return int.from_bytes(pack(value), "little")


def failure(call: Callable[[], Any]) -> HResult:
    """The HRESULT of a call whose refusal is an answer and no mistake."""
    try:
        call()
    except Error as error:
        return error.hresult
    return HResult.S_OK
