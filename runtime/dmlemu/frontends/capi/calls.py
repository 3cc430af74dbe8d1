"""Connects the functions of the vtables with the methods of the interfaces, and translates errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...diagnostics.unsupported import not_implemented
from ...errors import Error, HResult
from . import objects, reports
from ._capi import ffi, lib
from .rows import ComCall

__all__ = ["attach"]

_COUNTS = {ffi.string(name).decode() for name in lib.capi_counts}
_CREATORS = {ffi.string(each.symbol).decode() for each in lib.capi_creators}


def attach(interfaces: list[type]) -> None:
    """Gives every function of the vtables its Python function: a method, or a refusal by name."""
    known = {name for kind in interfaces for name in dir(kind)}
    for symbol in dir(lib):
        owner, _, name = symbol.partition("_")
        if owner in ("IUnknown", "capi", "CAPI") or not name:
            continue
        result = ffi.typeof(getattr(lib, symbol)).result
        is_hresult = result.cname == "uint32_t" and symbol not in _COUNTS
        call = (
            _method(owner, name, is_hresult, result)
            if name in known
            else _missing(symbol, is_hresult, result)
        )
        ffi.def_extern(name=symbol)(call)


def _nothing(result: Any) -> Any:
    """What a method returns that fails: zeros."""
    if result.kind == "void":
        return None
    return ffi.new(ffi.getctype(result, "*"))[0] if result.kind == "struct" else 0


def _method(owner: str, name: str, is_hresult: bool, result: Any) -> Callable[..., Any]:
    """The function that calls the method ``name`` of the object at its first argument."""
    find = objects.find
    operation = f"{owner}::{name}"
    hands_out = f"{owner}_{name}" in _CREATORS
    if is_hresult:

        def hresult(address: int, *arguments: int) -> int:
            try:
                return getattr(find(address), name)(*arguments) or 0
            except BaseException as error:
                if hands_out and arguments[-1]:
                    objects.write_pointer(arguments[-1], 0)
                return _failed(error, address, operation)

        return hresult

    def value(address: int, *arguments: int) -> Any:
        try:
            return getattr(find(address), name)(*arguments)
        except BaseException as error:
            lib.capi_do_not_keep()
            _failed(error, address, operation, arguments if result.kind == "void" else None)
            return _nothing(result)

    return value


def _missing(symbol: str, is_hresult: bool, result: Any) -> Callable[..., Any]:
    """The function of a slot that is not emulated."""
    operation = symbol.replace("_", "::", 1)

    def refuse(address: int, *arguments: int) -> Any:
        if symbol in _CREATORS and arguments[-1]:
            objects.write_pointer(arguments[-1], 0)
        code = _failed(not_implemented(operation, operation), address, operation)
        return code if is_hresult else _nothing(result)

    return refuse


def _failed(
    error: BaseException, address: int, operation: str, of_void: tuple[int, ...] | None = None
) -> int:
    """The HRESULT of an exception, which is reported; E_FAIL where that fails.

    ``of_void``: the further arguments of a method without a result.
    """
    try:
        return _reported(error, address, operation, of_void)
    except BaseException as another:
        reports.bug(another, operation)
        return int(HResult.E_FAIL)


def _reported(error: BaseException, address: int, operation: str, of_void: tuple[int, ...] | None) -> int:
    if isinstance(error, KeyError):
        error = objects.stale(address, operation) or error
    if isinstance(error, Error):
        if of_void is not None and error.hresult is not HResult.E_NOTIMPL:
            objects.reject(address, error)
        reports.refused(error, objects.reporter(address))
        return int(error.hresult)
    code = HResult.E_OUTOFMEMORY if isinstance(error, MemoryError) else HResult.E_FAIL
    if code is HResult.E_FAIL:
        reports.bug(error, operation)
    if of_void is not None:  # what it should have done is missing
        objects.reject(objects.list_among(address, *of_void), _failure(code, operation))
    return int(code)


def _failure(code: HResult, operation: str) -> Error:
    """The error of a method without a result that failed, and is not a refusal."""
    if code is HResult.E_OUTOFMEMORY:
        text = f"No memory is left for {operation}."
        return ComCall.of_memory(message=text, hresult=code, operation=operation)
    return ComCall.failed(hresult=code, operation=operation)
