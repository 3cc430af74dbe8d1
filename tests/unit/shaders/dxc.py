"""Microsoft's open-source shader compiler, DXC, as a shared library: HLSL to a container with DXIL.

It is found where a package of Python holds it (``compushady-lrtu``).  Mirrors ``IDxcCompiler3`` (dxcapi.h of
microsoft/DirectXShaderCompiler); on Linux its methods stand in the order that they have on Windows, and wide
strings have 32 bits a character.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from pathlib import Path

__all__ = ["CompilerMissing", "HlslError", "compile_hlsl"]

_UTF8 = 65001
_PACKAGE, _LIBRARY = "compushady", "backends/libdxcompiler_*.so"


class CompilerMissing(RuntimeError):
    """No library of DXC is installed."""


class HlslError(ValueError):
    """DXC refused the source; the message is its own, with lines."""


def compile_hlsl(
    source: str,
    entry: str = "main",
    target: str = "cs_6_0",
    arguments: Sequence[str] = (),
) -> bytes:
    """The container with the DXIL of a compute shader.

    ``source``: HLSL; ``arguments``: as DXC's command line takes them, such as ``-Zi``.
    Raises ``HlslError`` with DXC's messages, ``CompilerMissing`` where there is no DXC.
    """
    library = _library()
    text = source.encode()
    buffer = _Buffer(text, len(text), _UTF8)
    words = ["-E", entry, "-T", target, *arguments]
    wide = (ctypes.c_wchar_p * len(words))(*words)
    compiler = ctypes.c_void_p()
    _check(library.DxcCreateInstance(_COMPILER, _COMPILER3, ctypes.byref(compiler)), "DxcCreateInstance")
    try:
        result = ctypes.c_void_p()
        status = _call(
            compiler, 3, ctypes.byref(buffer), wide, len(words), None, _RESULT, ctypes.byref(result)
        )
        _check(status, "IDxcCompiler3::Compile")
        try:
            return _object(result)
        finally:
            _call(result, 2)
    finally:
        _call(compiler, 2)


def _object(result: ctypes.c_void_p) -> bytes:
    """What IDxcOperationResult holds; its messages as an error."""
    status = ctypes.c_int32()
    _check(_call(result, 3, ctypes.byref(status)), "IDxcOperationResult::GetStatus")
    blob = ctypes.c_void_p()
    which, name = (4, "GetResult") if status.value >= 0 else (5, "GetErrorBuffer")
    _check(_call(result, which, ctypes.byref(blob)), f"IDxcOperationResult::{name}")
    try:
        held = ctypes.string_at(
            _call(blob, 3, restype=ctypes.c_void_p), _call(blob, 4, restype=ctypes.c_size_t)
        )
    finally:
        _call(blob, 2)
    if status.value < 0:
        raise HlslError(held.rstrip(b"\0").decode(errors="replace").strip())
    return held


def _call(this: ctypes.c_void_p, slot: int, *arguments: object, restype: type = ctypes.c_int32) -> int:
    """A method of a COM object by its place in the table; 2 is Release."""
    table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p))).contents
    method = ctypes.CFUNCTYPE(restype, ctypes.c_void_p, *map(_ctype, arguments))(table[slot])
    return int(method(this, *arguments))


def _ctype(argument: object) -> type:
    return ctypes.c_uint32 if isinstance(argument, int) else ctypes.c_void_p


def _check(status: int, method: str) -> None:
    if status < 0:
        raise RuntimeError(f"{method} of DXC failed: 0x{status & 0xFFFFFFFF:08X}")


class _Buffer(ctypes.Structure):
    """``DxcBuffer``."""

    _fields_ = (("pointer", ctypes.c_char_p), ("size", ctypes.c_size_t), ("encoding", ctypes.c_uint32))


def _guid(text: str) -> ctypes.Array[ctypes.c_char]:
    import uuid

    return ctypes.create_string_buffer(uuid.UUID(text).bytes_le, 16)


_COMPILER = _guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0")
_COMPILER3 = _guid("228b4687-5a6a-4730-900c-9702b2203f54")
_RESULT = _guid("58346cda-dde7-4497-9461-6f87af5e0659")


def _library() -> ctypes.CDLL:
    package = importlib.util.find_spec(_PACKAGE)
    for folder in (package.submodule_search_locations or []) if package else []:
        for path in sorted(Path(folder).glob(_LIBRARY)):
            return ctypes.CDLL(str(path))
    raise CompilerMissing("HLSL is compiled by DXC: pip install compushady-lrtu==0.18.0")
