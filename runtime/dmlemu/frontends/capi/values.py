"""Arguments and results of methods: structs by value, out parameters, created objects."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from ...d3d12.core.c_memory import pack, write
from ...errors import HResult
from ...frozen import Frozen
from ._capi import ffi
from .objects import hand_out, write_pointer

__all__ = ["by_value", "create", "give", "luid_number", "write_numbers", "write_out"]


def by_value(data: bytes) -> Any:
    """A struct as the result of a method."""
    result = ffi.new(f"struct capi_{len(data)} *")
    ffi.buffer(result)[:] = data
    return result[0]  # keeps its owner


def create(riid: int, out: int, make: Callable[[], Any], holds: dict[str, Any] | None = None) -> HResult:
    """Makes an object and hands it out.  Without ``out`` everything is checked and nothing kept: S_FALSE.

    ``holds``: objects that the new one keeps, by their roles.
    """
    made = make()  # if it raises, the caller writes NULL
    if not out:
        made.discard()
        return HResult.S_FALSE
    result = hand_out(made, riid, out, holds)
    if result is HResult.E_NOINTERFACE:
        made.discard()
    return result


def give(thing: Any, riid: int, out: int) -> HResult:
    """Hands out an object that there is.  E_POINTER without ``out``."""
    if not out:
        return HResult.E_POINTER
    write_pointer(out, 0)
    return hand_out(thing, riid, out)


def write_numbers(address: int, code: str, *values: int) -> None:
    """Writes numbers of a format of the module ``struct``; nothing to NULL."""
    if address:
        write(address, struct.pack(f"@{code}", *values))


def write_out(found: Any, *places: tuple[int, str]) -> None:
    """Writes what a method found, a value for each out parameter, where that is not NULL.

    ``found``: a struct, or a sequence.  ``places``: each address, with the format of numbers, "" for structs.
    """
    if isinstance(found, Frozen):
        found = [getattr(found, name) for name in found.__dataclass_fields__]
    for (address, code), value in zip(places, found, strict=True):
        if not address:
            continue
        if isinstance(value, tuple):
            write(address, b"".join([struct.pack(code, each) if code else pack(each) for each in value]))
        else:
            write(address, struct.pack(code, value) if code else pack(value))


def luid_number(value: Frozen) -> int:
    """A LUID as the number that a register holds."""
    return int.from_bytes(pack(value), "little")
