"""DXC in a process of its own: a program that ``dxc.py`` starts for each compilation.

A source can end DXC, which counts neither its stack nor its memory.  Run as ``python dxc_process.py LIBRARY
SECONDS``, with nothing of dmlemu imported, so that it starts quickly.  Frames, each a kind and bytes, go over
stdin and stdout: SOURCE and WORDS come in; INCLUDE asks for a file and gets FILE or ABSENT; WARNINGS and then
CODE, or ERROR, or MISSING where the library cannot be loaded, are the answer.

Mirrors ``IDxcCompiler3`` and ``IDxcIncludeHandler`` (dxcapi.h of microsoft/DirectXShaderCompiler); on Linux
the methods stand in the order that they have on Windows, and wide strings have 32 bits a character.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import IO, Any, Protocol

__all__ = ["ABSENT", "CODE", "ERROR", "FILE", "INCLUDE", "MISSING", "SOURCE", "WARNINGS", "WORDS"]
__all__ += ["Gone", "receive", "send"]

SOURCE, WORDS, FILE, ABSENT = b"S", b"W", b"F", b"A"
INCLUDE, WARNINGS, CODE, ERROR, MISSING = b"I", b"M", b"C", b"E", b"L"

_UTF8 = 65001
_FAIL = -0x7FFFBFFB  # E_FAIL
_MOST_TEXT = 4000
_MOST_BYTES = 4 << 30
_MAGIC = (b"DXBC", (0x07230203).to_bytes(4, "little"))


class Gone(Exception):
    """The process at the other end has ended."""


class Writes(Protocol):
    """What frames are written into."""

    def write(self, data: bytes, /) -> object: ...

    def flush(self) -> object: ...


def send(stream: Writes, kind: bytes, data: bytes = b"") -> None:
    """Writes one frame."""
    try:
        stream.write(kind + len(data).to_bytes(8, "little") + data)
        stream.flush()
    except (BrokenPipeError, ConnectionResetError):
        raise Gone from None


def receive(stream: IO[bytes]) -> tuple[bytes, bytes]:
    """The kind and the bytes of the next frame."""
    try:
        return _received(stream)
    except ConnectionResetError:  # it ended before it read all
        raise Gone from None


def _received(stream: IO[bytes]) -> tuple[bytes, bytes]:
    head = stream.read(9)
    size = int.from_bytes(head[1:], "little")
    if len(head) < 9 or size > _MOST_BYTES:
        raise Gone
    data = stream.read(size)
    if len(data) < size:
        raise Gone
    return head[:1], data


class _Refused(Exception):
    """DXC refused the source; the message is its own."""


def main(library: str, seconds: str) -> None:
    """Compiles the source that stdin brings.  The process ends where that takes longer than ``seconds``."""
    frames = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what DXC prints is no frame
    _limit(float(seconds))
    (_, text), (_, words) = receive(frames[0]), receive(frames[0])
    try:
        loaded = ctypes.CDLL(library)
    except OSError as error:
        send(frames[1], MISSING, str(error).encode(errors="replace"))
        return
    try:
        messages, code = _compile(loaded, text, words.decode(errors="surrogatepass").split("\0"), *frames)
    except _Refused as error:
        send(frames[1], ERROR, str(error).encode(errors="surrogatepass"))
        return
    if messages:
        send(frames[1], WARNINGS, messages.encode(errors="surrogatepass"))
    send(frames[1], CODE, code)


def _limit(seconds: float) -> None:
    """Ends this process by SIGALRM, also where whoever started it is gone, and gives it an end of memory."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or most > _MOST_BYTES:
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, most))


def _compile(
    library: ctypes.CDLL, text: bytes, words: Sequence[str], source: IO[bytes], answers: IO[bytes]
) -> tuple[str, bytes]:
    """Warnings, and the container."""

    def include(path: str) -> bytes | None:
        try:
            send(answers, INCLUDE, path.encode(errors="surrogatepass"))
            kind, data = receive(source)
        except Gone:
            os._exit(1)  # nothing may be raised through DXC
        return data if kind == FILE else None

    wide = (ctypes.c_wchar_p * len(words))(*words)
    buffer = _Buffer(text, len(text), _UTF8)
    files = _IncludeHandler(library, include)
    with _created(library, _COMPILER, _COMPILER3) as compiler:
        result = ctypes.c_void_p()
        status = _call(
            *(compiler, 3, ctypes.byref(buffer), wide, len(words)),
            *(files.address, _RESULT, ctypes.byref(result)),
        )
        _check(status, "IDxcCompiler3::Compile")
        with _held(result):
            return _object(result)


def _object(result: ctypes.c_void_p) -> tuple[str, bytes]:
    """What an IDxcOperationResult holds: warnings, and the container; its messages as an error."""
    status = ctypes.c_int32()
    _check(_call(result, 3, ctypes.byref(status)), "IDxcOperationResult::GetStatus")
    messages = _blob(result, 5).rstrip(b"\0").decode(errors="replace").strip()
    if status.value < 0:
        raise _Refused(_short(messages) or f"DXC failed without a message: 0x{status.value & 0xFFFFFFFF:08X}")
    held = _blob(result, 4)
    if held[:4] not in _MAGIC:
        raise _Refused("the arguments ask DXC for something else than a compiled shader")
    return _short(messages), held


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
        raise _Refused(f"{method} of DXC failed: 0x{status & 0xFFFFFFFF:08X}")


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

    def __init__(self, library: ctypes.CDLL, include: Callable[[str], bytes | None]) -> None:
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
        found = self._include(os.path.normpath(path))
        if found is None:
            return _FAIL
        with _created(self._library, _UTILS_CLASS, _UTILS) as utils:
            return _call(utils, 6, ctypes.c_char_p(found), len(found), _UTF8, ctypes.c_void_p(made))


def _guid(text: str) -> Any:
    first, second, third, *rest = text.split("-")
    parts = [bytes.fromhex(part)[::-1] for part in (first, second, third)]
    return ctypes.create_string_buffer(b"".join([*parts, *map(bytes.fromhex, rest)]), 16)


_COMPILER = _guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0")
_COMPILER3 = _guid("228b4687-5a6a-4730-900c-9702b2203f54")
_RESULT = _guid("58346cda-dde7-4497-9461-6f87af5e0659")
_UTILS_CLASS = _guid("6245d6af-66e0-48fd-80b4-4d271796748c")
_UTILS = _guid("4605c4cb-2019-492a-ada4-65f20bb7d67f")
_INCLUDE_HANDLER = _guid("7f61fc7d-950d-467f-b3e3-3c02fb49187c")
_UNKNOWN = _guid("00000000-0000-0000-c000-000000000046")

if __name__ == "__main__":
    main(*sys.argv[1:])
