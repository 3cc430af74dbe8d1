"""Files named in a model: confined to permitted folders, read whole, replaced whole.

A model may be untrusted.  Every file is opened starting at one of its folders, directory by
directory and without following links, so that concurrent renames cannot lead outside.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dmlemu.errors import shorten
from dmlemu.frontends.rows import MODEL_FILE, MODEL_PATH

from ...files import replaced
from ...frozen import Frozen
from .errors import ModelError, model_error

__all__ = ["EVERYWHERE", "File", "Folders", "exists", "read_whole", "unreadable"]

Buffer = bytes | bytearray | memoryview

_MOST_BYTES = 4095  # of a path: PATH_MAX without its terminator
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # does not wait for a pipe


class File(Frozen):
    """A file named in a model: ``place`` is its real path, links resolved, below ``root``.

    ``path`` is for messages, ``field`` the JSON path that names it.
    """

    path: Path
    root: Path
    place: Path
    field: str

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The regular file, opened for reading; :class:`ModelError` if it cannot be opened or read."""
        try:
            with _parent(self.root, self.place) as (folder, name):
                _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), self.path, self.field)
                handle = os.open(name, _READ, dir_fd=folder)
            with open(handle, "rb", buffering=0) as file:
                _check_regular(os.fstat(handle), self.path, self.field)
                yield file
        except (OSError, ValueError, MemoryError) as error:
            raise unreadable(self.path, self.field, error) from None

    def size(self) -> int:
        with self.open() as file:
            return os.fstat(file.fileno()).st_size

    def read_whole(self) -> bytes:
        with self.open() as file:
            return file.read()

    def read_into(self, offset: int, target: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Fills ``target`` with the file's bytes from ``offset`` on; the file must be long enough."""
        view, done = target.data, 0
        with self.open() as file:
            file.seek(offset)
            while done < len(view):
                count = file.readinto(view[done:])  # type: ignore[attr-defined]
                if not count:
                    raise OSError(0, "it became shorter while the model ran")
                done += count

    def write(self, parts: Sequence[Buffer]) -> None:
        """Replaces the file in one step: on failure the old file, or none, remains.

        Missing parent directories are created, as DxDispatch does.  Only regular files are replaced, and
        they keep their permissions.
        """
        try:
            with _parent(self.root, self.place, create=True) as (folder, name):
                _replace(folder, name, self, parts)
        except (OSError, ValueError) as error:
            raise _unwritable(self.path, self.field, error) from None


class Folders(Frozen):
    """The permitted folders, links resolved."""

    roots: tuple[Path, ...]

    @classmethod
    def of(cls, *paths: Path | None) -> Folders:
        """These folders and everything below them; None for none."""
        return cls(tuple(dict.fromkeys(Path(os.path.realpath(path)) for path in paths if path is not None)))

    def source(self, source: str, base: Path, field: str) -> File:
        """A file to read: next to the model if it exists there, else relative to the current directory."""
        beside = base / source
        return self.file(beside if exists(beside) else Path(source), field)

    def file(self, path: Path, field: str) -> File:
        """A file to read, at this path."""
        try:
            return self._find(path, field)
        except (OSError, ValueError) as error:
            raise unreadable(path, field, error) from None

    def target(self, path: Path, field: str) -> File:
        """A file to write, possibly new; a link is kept, and its target is written."""
        try:
            return self._find(path, field)
        except (OSError, ValueError) as error:
            raise _unwritable(path, field, error) from None

    def _find(self, path: Path, field: str) -> File:
        """An OSError, such as that of a link to itself, is reported only for places inside the folders."""
        problem = None
        try:
            place = Path(os.path.realpath(path, strict=True))
        except OSError as error:
            place, problem = Path(os.path.realpath(path)), error
        if len(os.fsencode(place)) > _MOST_BYTES:  # opened step by step, this path would work
            problem = OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        for root in self.roots:
            if place.is_relative_to(root):
                if problem is not None and not isinstance(problem, FileNotFoundError):
                    raise problem
                return File(path, root, place, field)
        raise self._outside(path, place, field)

    def _outside(self, path: Path, place: Path, field: str) -> ModelError:
        leads = "" if place == path else f", which is '{shorten(str(place))}',"
        folders = ", ".join(f"'{shorten(str(root))}'" for root in self.roots)
        return model_error(
            MODEL_PATH,
            field,
            f"{field} ('{shorten(str(path))}'){leads} lies outside the folders that the model may use.",
            given=f"'{shorten(str(place))}'",
            expected=f"a file in {folders}",
            hint="--allow-paths permits any file.",
        )


EVERYWHERE = Folders((Path("/"),))


def exists(path: Path) -> bool:
    try:
        path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return False
    return True


def read_whole(path: Path, field: str) -> bytes:
    """The bytes of a regular file named by the user, in any folder."""
    try:
        _check_regular(path.stat(), path, field)
        return path.read_bytes()
    except (OSError, ValueError, MemoryError) as error:
        raise unreadable(path, field, error) from None


def unreadable(path: Path, field: str, error: Exception) -> ModelError:
    message = f"The file '{shorten(str(path))}' cannot be read: {_reason(error)}."
    return model_error(MODEL_FILE, field, message, given=shorten(str(path)), expected="a readable file")


def _unwritable(path: Path, field: str, error: Exception) -> ModelError:
    message = f"The file '{shorten(str(path))}' cannot be written: {_reason(error)}."
    return model_error(MODEL_FILE, field, message, given=shorten(str(path)), expected="a writable path")


def _reason(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else str(error)
    return text or type(error).__name__


@contextmanager
def _parent(root: Path, place: Path, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """The directory that contains ``place``, opened, and the file's name in it.

    ``place`` has no links; a link found on the way was added meanwhile and is not followed.
    """
    *names, last = place.relative_to(root).parts or (".",)
    if create:
        os.makedirs(root, exist_ok=True)
    folder = os.open(root, _FOLDER)
    try:
        for name in names:
            if create:
                _make_folder(name, folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder, last
    finally:
        os.close(folder)


def _make_folder(name: str, folder: int) -> None:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=folder)


def _replace(folder: int, name: str, file: File, parts: Sequence[Buffer]) -> None:
    try:
        old = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    if old is not None:
        _check_regular(old, file.path, file.field)
    with replaced(name, folder) as new:
        for part in parts:
            new.write(part)


def _check_regular(status: os.stat_result, path: Path, field: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        message = f"{shorten(str(path))} is {kind}."
        raise model_error(MODEL_FILE, field, message, given=kind, expected="a file")
