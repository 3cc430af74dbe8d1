"""Files that a model names: found, read whole, replaced whole."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import ModelError, model_error

Buffer = bytes | bytearray | memoryview


def resolve(source: str, base: Path) -> Path:
    """``source`` beside the model if it is there, else relative to the current directory."""
    beside = base / source
    return beside if exists(beside) else Path(source)


def exists(path: Path) -> bool:
    try:
        path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False
    return True


def file_size(path: Path, field: str) -> int:
    """Bytes of a regular file; ``field`` is the JSON path that names it."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise unreadable(path, field, error) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise model_error("MODEL_FILE", field, f"{path} is {kind}.", given=kind, expected="a file")
    return status.st_size


def read_file(path: Path, field: str) -> bytes:
    file_size(path, field)
    try:
        return path.read_bytes()
    except (OSError, MemoryError) as error:
        raise unreadable(path, field, error) from None


def read_into(path: Path, offset: int, target: np.ndarray[Any, np.dtype[np.uint8]], field: str) -> None:
    """Fills ``target`` with the file's bytes from ``offset`` on; the file has to have that many."""
    view, done = target.data, 0
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(offset)
            while done < len(view):
                count = file.readinto(view[done:])
                if not count:
                    raise OSError(0, "it became shorter while the model ran")
                done += count
    except OSError as error:
        raise unreadable(path, field, error) from None


def unreadable(path: Path, field: str, error: Exception) -> ModelError:
    reason = error.strerror if isinstance(error, OSError) else str(error) or type(error).__name__
    message = f"The file '{path}' cannot be read: {reason}."
    return model_error("MODEL_FILE", field, message, given=path, expected="a readable file")


def write_file(path: Path, field: str, parts: Sequence[Buffer]) -> None:
    """Replaces ``path`` in one step: on any failure the old file, or none, is there.

    Missing directories above it are made, as DxDispatch does.  Only regular files are replaced.
    """
    temporary = None
    try:
        path = _final_path(path)
        if exists(path):
            file_size(path, field)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".dmlemu-")
        with open(handle, "wb") as file:
            for part in parts:
                file.write(part)
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        message = f"The file '{path}' cannot be written: {reason}."
        raise model_error("MODEL_FILE", field, message, given=path, expected="a writable path") from None
    finally:
        if temporary is not None and os.path.lexists(temporary):
            os.unlink(temporary)


def _final_path(path: Path) -> Path:
    """Where a link leads, so that it stays and its target is replaced.  OSError: it leads to itself."""
    try:
        return Path(os.path.realpath(path, strict=True))
    except FileNotFoundError:  # a new file, maybe at the end of a link
        return Path(os.path.realpath(path))


def _umask() -> int:
    """The process's umask; it can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
