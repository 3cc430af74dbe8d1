"""Microsoft's open-source shader compiler, DXC, as a library: HLSL to a container with DXIL, or to SPIR-V.

The library is that of the package ``compushady-lrtu``, of which nothing else is used.  Mirrors
``IDxcCompiler3`` and ``IDxcIncludeHandler`` (dxcapi.h of microsoft/DirectXShaderCompiler); on Linux the
methods stand in the order that they have on Windows, and wide strings have 32 bits a character.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

__all__ = ["CompilerMissing", "HlslError", "compile_hlsl"]

Include: TypeAlias = Callable[[str], "bytes | None"]

_PACKAGE, _LIBRARY = "compushady", "backends/libdxcompiler_*.so"
_UTF8 = 65001
_FAIL = -0x7FFFBFFB  # E_FAIL
_MOST_TEXT = 4000
_MAGIC = (b"DXBC", (0x07230203).to_bytes(4, "little"))


class CompilerMissing(RuntimeError):
    """No library of DXC is installed."""


class HlslError(ValueError):
    """DXC refused the source; the message is its own, with files and lines."""


def compile_hlsl(
    source: str,
    entry: str = "main",
    target: str = "cs_6_0",
    arguments: Sequence[str] = (),
    *,
    name: str = "source.hlsl",
    include: Include | None = None,
    warn: Callable[[str], object] | None = None,
) -> bytes:
    """The container with the DXIL of a compute shader, or its SPIR-V where ``arguments`` ask for that.

    ``source``: HLSL.  ``arguments``: as DXC's command line takes them, such as ``-Zi`` or ``-D``, ``N=4``;
    they go behind ``-E entry -T target``, and the last one counts.  ``name``: of the source, for messages and
    as the place that ``#include`` starts from.  ``include``: gives the bytes of a file that the source
    includes, by its path beside ``name`` or below a folder of ``-I``, and None where there is no such file;
    without it no file is read.  What it raises ends the compilation.  ``warn`` is called with DXC's warnings,
    if there are any.

    Raises ``HlslError`` with DXC's messages, ``CompilerMissing`` where there is no DXC.
    """
    library = _library()
    words = [name, "-E", entry, "-T", target, *arguments]
    if any("\0" in word for word in words):
        raise HlslError("a name or an argument contains a character NUL")
    wide = (ctypes.c_wchar_p * len(words))(*words)
    text = source.encode(errors="surrogateescape")
    buffer = _Buffer(text, len(text), _UTF8)
    files = _IncludeHandler(library, include or (lambda path: None))
    with _created(library, _COMPILER, _COMPILER3) as compiler:
        result = ctypes.c_void_p()
        status = _call(
            *(compiler, 3, ctypes.byref(buffer), wide, len(words)),
            *(files.address, _RESULT, ctypes.byref(result)),
        )
        _check(status, "IDxcCompiler3::Compile")
        with _held(result):
            return _object(result, files, warn)


def _object(result: ctypes.c_void_p, files: _IncludeHandler, warn: Callable[[str], object] | None) -> bytes:
    """What an IDxcOperationResult holds; its messages as an error, or as warnings."""
    status = ctypes.c_int32()
    _check(_call(result, 3, ctypes.byref(status)), "IDxcOperationResult::GetStatus")
    if files.error is not None:
        raise files.error
    messages = _blob(result, 5).rstrip(b"\0").decode(errors="replace").strip()
    if status.value < 0:
        raise HlslError(
            _short(messages) or f"DXC failed without a message: 0x{status.value & 0xFFFFFFFF:08X}"
        )
    held = _blob(result, 4)
    if held[:4] not in _MAGIC:
        raise HlslError("the arguments ask DXC for something else than a compiled shader")
    if messages and warn is not None:
        warn(_short(messages))
    return held


def _short(messages: str) -> str:
    """A file that includes itself has hundreds of lines that say so."""
    lines = messages.splitlines()
    nested = [number for number, line in enumerate(lines) if line.startswith("In file included from")]
    dropped = set(nested[3:])
    messages = "\n".join(line for number, line in enumerate(lines) if number not in dropped)
    return messages if len(messages) <= _MOST_TEXT else f"{messages[:_MOST_TEXT]}\n..."


def _blob(result: ctypes.c_void_p, slot: int) -> bytes:
    """The bytes of the result (4) or of the messages (5) of an IDxcOperationResult."""
    blob = ctypes.c_void_p()
    _check(_call(result, slot, ctypes.byref(blob)), "IDxcOperationResult::GetResult")
    if not blob:
        return b""
    with _held(blob):
        address = _call(blob, 3, restype=ctypes.c_void_p)
        size = _call(blob, 4, restype=ctypes.c_size_t)
        return ctypes.string_at(address, size) if size else b""


# --- COM ---


def _call(this: ctypes.c_void_p, slot: int, *arguments: object, restype: Any = ctypes.c_int32) -> int:
    """A method of a COM object by its place in the table; 2 is Release."""
    table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
    method = ctypes.CFUNCTYPE(restype, ctypes.c_void_p, *map(_ctype, arguments))(table[slot])
    return int(method(this, *arguments) or 0)


def _ctype(argument: object) -> Any:
    return ctypes.c_uint32 if isinstance(argument, int) else ctypes.c_void_p


def _check(status: int, method: str) -> None:
    if status < 0:
        raise HlslError(f"{method} of DXC failed: 0x{status & 0xFFFFFFFF:08X}")


@contextmanager
def _created(library: ctypes.CDLL, kind: Any, interface: Any) -> Any:
    made = ctypes.c_void_p()
    _check(library.DxcCreateInstance(kind, interface, ctypes.byref(made)), "DxcCreateInstance")
    with _held(made):
        yield made


@contextmanager
def _held(made: ctypes.c_void_p) -> Any:
    try:
        yield
    finally:
        _call(made, 2)


class _Buffer(ctypes.Structure):
    """``DxcBuffer``."""

    _fields_ = (("pointer", ctypes.c_char_p), ("size", ctypes.c_size_t), ("encoding", ctypes.c_uint32))


class _IncludeHandler:
    """An ``IDxcIncludeHandler`` that asks a function.  It lives as long as this object, whoever counts."""

    _Query = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    _Count = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
    _Load = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_void_p)

    def __init__(self, library: ctypes.CDLL, include: Include) -> None:
        self.error: BaseException | None = None
        self._library, self._include = library, include
        self._methods = (
            self._Query(self._query_interface),
            self._Count(lambda this: 2),
            self._Count(lambda this: 1),
            self._Load(self._load_source),
        )
        addresses = [ctypes.cast(method, ctypes.c_void_p).value for method in self._methods]
        self._table = (ctypes.c_void_p * 4)(*addresses)
        self._object = ctypes.c_void_p(ctypes.addressof(self._table))
        self.address = ctypes.c_void_p(ctypes.addressof(self._object))

    def _query_interface(self, this: int, interface: int, made: int) -> int:
        asked = ctypes.string_at(interface, 16)
        known = asked in (_UNKNOWN.raw, _INCLUDE_HANDLER.raw)
        ctypes.c_void_p.from_address(made).value = this if known else None
        return 0 if known else -0x7FFFBFFE  # E_NOINTERFACE

    def _load_source(self, this: int, path: str, made: int) -> int:
        ctypes.c_void_p.from_address(made).value = None
        if self.error is not None:
            return _FAIL
        try:
            found = self._include(os.path.normpath(path))
            if found is None:
                return _FAIL
            with _created(self._library, _UTILS_CLASS, _UTILS) as utils:
                data = ctypes.c_char_p(found)
                return _call(utils, 6, data, len(found), _UTF8, ctypes.c_void_p(made))
        except BaseException as error:  # it may not pass through DXC
            self.error = error
            return _FAIL


def _guid(text: str) -> Any:
    return ctypes.create_string_buffer(uuid.UUID(text).bytes_le, 16)


_COMPILER = _guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0")
_COMPILER3 = _guid("228b4687-5a6a-4730-900c-9702b2203f54")
_RESULT = _guid("58346cda-dde7-4497-9461-6f87af5e0659")
_UTILS_CLASS = _guid("6245d6af-66e0-48fd-80b4-4d271796748c")
_UTILS = _guid("4605c4cb-2019-492a-ada4-65f20bb7d67f")
_INCLUDE_HANDLER = _guid("7f61fc7d-950d-467f-b3e3-3c02fb49187c")
_UNKNOWN = _guid("00000000-0000-0000-c000-000000000046")


@cache
def _library() -> ctypes.CDLL:
    package = importlib.util.find_spec(_PACKAGE)
    for folder in (package.submodule_search_locations or []) if package else []:
        for path in sorted(Path(folder).glob(_LIBRARY)):
            try:
                return ctypes.CDLL(str(path))
            except OSError as error:
                raise CompilerMissing(f"the library of DXC cannot be loaded: {error}") from None
    raise CompilerMissing(
        "HLSL is compiled by DXC, which is not installed: the extra 'hlsl' of dmlemu brings it (x86-64), "
        "or compile the shader elsewhere: dxc -T cs_6_0 -Fo FILE"
    )
