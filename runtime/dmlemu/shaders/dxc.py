"""Microsoft's open-source shader compiler, DXC, as a library: HLSL to a container with DXIL, or to SPIR-V.

The library is that of the package ``compushady-lrtu``, of which nothing else is used.  It runs in a process
of its own (``dxc_process.py``): a source may end the compiler, and not us.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import IO, TypeAlias

__all__ = ["CompilerMissing", "HlslError", "compile_hlsl"]

Include: TypeAlias = Callable[[str], "bytes | None"]

_PACKAGE, _LIBRARY = "compushady", "backends/libdxcompiler_*.so"
_PROCESS = Path(__file__).with_name("dxc_process.py")
_PYTHON = re.compile(r"(python|pypy|graalpy)[0-9.]*[a-z]*(-dbg)?")  # the name of an interpreter's file
_MOST_SECONDS = 60


class CompilerMissing(RuntimeError):
    """No library of DXC is installed."""


class HlslError(ValueError):
    """DXC refused the source, and the message is its own, with files and lines; or DXC itself ended."""


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

    Raises ``HlslError`` with DXC's messages; also where DXC itself ends, as for operators that are nested
    thousands deep, and where it wants more than 60 seconds or 4 GiB of memory.  ``CompilerMissing`` where
    there is no DXC.
    """
    from .dxc_process import Gone  # with ctypes, which a Python may lack

    words = [name, "-E", entry, "-T", target, *arguments]
    if any("\0" in word for word in words):
        raise HlslError("a name or an argument contains a character NUL")
    ours, theirs = socket.socketpair()
    with ours, theirs, tempfile.TemporaryFile() as printed:
        for each in (ours, theirs):
            each.settimeout(None)  # the program may have set a default
        process = _start(name, theirs, printed)
        theirs.close()
        try:
            return _converse(ours, source, words, include, warn)
        except Gone:
            printed.seek(0)
            said = printed.read().decode(errors="replace").strip()
            raise HlslError(_ended(name, process.wait(), said)) from None
        finally:
            process.kill()
            process.wait()


def _start(name: str, theirs: socket.socket, printed: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [_python(), "-I", "-S", _PROCESS, _library(), str(_MOST_SECONDS)],
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=printed,
            start_new_session=True,  # Ctrl-C of a terminal is for us
        )
    except OSError as error:
        raise HlslError(f"{name}: no process can be started for DXC, the compiler: {error}") from None


def _python() -> str:
    """The program of this Python.  In a program of another language, ``sys.executable`` may be that program,
    which must not be started: it is taken only if its name is that of an interpreter."""
    for path in _pythons():
        if path and _PYTHON.fullmatch(os.path.basename(path)) and os.access(path, os.X_OK):
            return path
    raise CompilerMissing(
        "DXC runs in a Python process of its own, and there is no Python: "
        f"sys.executable is {sys.executable!r}, and {sys.exec_prefix}/bin has none"
    )


def _pythons() -> Iterator[str]:
    yield sys.executable
    name = f"python{sysconfig.get_python_version()}"
    for prefix in (sys.exec_prefix, sys.base_exec_prefix):
        yield os.path.join(prefix, "bin", name)


class _Quiet:
    """Writes into a socket, without SIGPIPE, which would end a program of another language around Python."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        self._connection.sendall(data, socket.MSG_NOSIGNAL)

    def flush(self) -> None:
        """Nothing is kept."""


def _converse(
    connection: socket.socket,
    source: str,
    words: Sequence[str],
    include: Include | None,
    warn: Callable[[str], object] | None,
) -> bytes:
    from . import dxc_process as frames

    given = _Quiet(connection)
    frames.send(given, frames.SOURCE, source.encode(errors="surrogateescape"))
    frames.send(given, frames.WORDS, "\0".join(words).encode(errors="surrogatepass"))
    with closing(connection.makefile("rb")) as answers:
        while True:
            kind, data = frames.receive(answers)
            text = data.decode(errors="surrogatepass") if kind != frames.CODE else ""
            if kind == frames.INCLUDE:
                found = include(text) if include is not None else None
                frames.send(given, frames.ABSENT if found is None else frames.FILE, found or b"")
            elif kind == frames.WARNINGS:
                if warn is not None:
                    warn(text)
            elif kind == frames.ERROR:
                raise HlslError(text)
            elif kind == frames.MISSING:
                raise CompilerMissing(f"the library of DXC cannot be loaded: {text}")
            else:
                return data


def _ended(name: str, status: int, printed: str) -> str:
    """What is said about a compiler that has not answered; a status below 0 is a signal."""
    if status == -signal.SIGALRM:
        return f"{name}: DXC, the compiler, was stopped after {_MOST_SECONDS} seconds"
    signals = {-each: each.name for each in signal.Signals}
    how = signals.get(status) or f"exit status {status}"
    said = f" It printed: {printed[-1000:]}" if printed else ""
    return (
        f"{name}: DXC, the compiler, itself ended ({how}) while it read this source.{said} It does so where "
        "operators or statements are nested thousands deep, or where it wants more memory than it gets"
    )


@cache
def _library() -> Path:
    package = importlib.util.find_spec(_PACKAGE)
    for folder in (package.submodule_search_locations or []) if package else []:
        for path in sorted(Path(folder).glob(_LIBRARY)):
            return path
    raise CompilerMissing(
        "HLSL is compiled by DXC, which is not installed: the extra 'hlsl' of dmlemu brings it (x86-64), "
        "or compile the shader elsewhere: dxc -T cs_6_0 -Fo FILE"
    )
