"""Files that the user names: how all of ours are written and opened.

A regular file is replaced once the new one is whole; links are followed and stay.  Anything else, such as a
pipe, a device or ``/dev/stdout``, is written through.  What is read is a regular file.  An OSError names the
file as the user did.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, BytesIO, FileIO
from typing import IO, BinaryIO, cast

from .interrupts import held

__all__ = [
    "NotRegular",
    "Output",
    "as_output",
    "naming",
    "open_regular",
    "read_text",
    "replaced",
    "write_file",
]

_MOST_LINKS = 40  # as the kernel follows
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NAMELESS = os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY  # does not wait for a pipe
_THROUGH = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class NotRegular(ValueError):
    """What is to be read is a pipe, a device or the like, which might never end."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is not a regular file")


# --- writing ---


class Output:
    """A file that will be written.  Creating it changes nothing; OSError: the file cannot be written.

    ``place``: the regular file, links followed; None: it is written through.
    """

    place: str | None = None
    _through: int | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with naming(self.path):
            place, own = _place(self.path)
            if own is not None:
                self._through = _open_own(own)
            elif _is_regular(place):
                _check_writable(place)
                self.place = place
            else:
                self._through = _open_through(place)

    def write(self, content: str | bytes) -> None:
        """Writes the whole file."""
        with self.open() as file:
            file.write(content.encode() if isinstance(content, str) else content)

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """The file, which can be written once; a regular one stays as it was when the block raises."""
        with naming(self.path):
            if self.place is not None:
                with replaced(self.place) as file:
                    yield file
            elif self._through is None:
                raise ValueError(f"{self.path} has been written.")
            else:
                through, self._through = self._through, None
                with BufferedWriter(_Forward(through, "wb")) as writer:
                    yield cast(BinaryIO, writer)

    def close(self) -> None:
        """Gives the file up, if it was not written."""
        if self._through is not None:
            through, self._through = self._through, None
            os.close(through)

    __del__ = close


def write_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a file that the user has named."""
    Output(path).write(content)


def as_output(path: str | os.PathLike[str] | Output) -> Output:
    """The file that is written."""
    return path if isinstance(path, Output) else Output(path)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Every OSError of the block, which is about one file, has its name."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, path) from None


@contextmanager
def replaced(place: str, folder: int | None = None) -> Iterator[BinaryIO]:
    """A new file that takes the place of a regular one, or of none, when the block ends, with its
    permissions.

    ``folder``: an open directory that ``place`` is in.  A file that cannot be replaced, as one that is
    mounted, or in a directory that is read-only, is overwritten, once the new one is whole.  A process that
    is killed meanwhile leaves nothing behind, where the file system has files without a name.
    """
    try:
        old = os.stat(place, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        old = None
    part = _name_beside(place)
    try:
        try:
            handle = _new(part, folder)
        except OSError:
            part = ""
            if old is None or folder is not None:
                raise
            whole = BytesIO()
            yield whole
            _overwrite(place, whole)
            return
        with os.fdopen(handle, "w+b") as new:
            yield cast(BinaryIO, new)
            new.flush()
            if old is not None:
                os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
            _give_name(new, part, folder)
            try:
                os.replace(part, place, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                if folder is not None or error.errno not in (errno.EBUSY, errno.EPERM, errno.EACCES):
                    raise
                _overwrite(place, new)
    finally:
        if part:
            with held(), suppress(FileNotFoundError):  # it has been replaced
                os.unlink(part, dir_fd=folder)


def _new(part: str, folder: int | None = None) -> int:
    """A new file in a directory: without a name, or of this one.  The umask reduces its permissions."""
    with suppress(OSError):  # whatever is wrong is said of the one with a name
        handle = os.open(os.path.dirname(part) or ".", _NAMELESS, 0o666, dir_fd=folder)
        if os.path.exists(_own(handle)):
            return handle
        os.close(handle)
    return os.open(part, _NEW, 0o666, dir_fd=folder)


def _own(handle: int) -> str:
    """The path by which a file without a name gets one; there is none where /proc is not mounted."""
    return f"/proc/self/fd/{handle}"


def _give_name(new: IO[bytes], part: str, folder: int | None) -> None:
    """Names a file that has no name yet; a copy of it, where the file system has no links."""
    handle = new.fileno()
    status = os.fstat(handle)
    if status.st_nlink:
        return
    try:  # with `src_dir_fd`, whatever it is, the link is followed
        os.link(_own(handle), part, src_dir_fd=handle, dst_dir_fd=folder)
    except OSError:
        with os.fdopen(os.open(part, _NEW, 0o666, dir_fd=folder), "wb") as copy:
            os.fchmod(copy.fileno(), stat.S_IMODE(status.st_mode))
            _copy(new, copy)


def _name_beside(place: str) -> str:
    """The name of a new file in the same directory, which is nobody else's."""
    return os.path.join(os.path.dirname(place), f".dmlemu-{os.urandom(8).hex()}")


def _overwrite(place: str, whole: IO[bytes]) -> None:
    with open(place, "r+b") as file:
        _copy(whole, file)
        file.truncate()


def _copy(whole: IO[bytes], file: IO[bytes]) -> None:
    whole.seek(0)
    while part := whole.read(1 << 20):
        file.write(part)


def _place(path: str) -> tuple[str, int | None]:
    """The path without links; and the number of the open file of this process that it stands for
    (``/dev/fd/1``).
    """
    if not path:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    place = os.path.join(os.getcwd(), path)
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(place)
        folder = os.path.realpath(folder)
        place = os.path.join(folder, name)
        if folder == f"/proc/{os.getpid()}/fd" and name.isdecimal():
            return place, int(name)
        try:
            place = os.path.join(folder, os.readlink(place))
        except OSError:  # it is not a link
            return place, None
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_regular(place: str) -> bool:
    """Whether it is a regular file, or will be one."""
    try:
        mode = os.stat(place).st_mode
    except FileNotFoundError:
        return True
    if stat.S_ISDIR(mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    return stat.S_ISREG(mode)


def _check_writable(place: str) -> None:
    """OSError: the file can neither be replaced nor overwritten, or may not be."""
    is_there = os.path.exists(place)
    if is_there:
        os.close(os.open(place, os.O_WRONLY | os.O_CLOEXEC))
    part = _name_beside(place)
    try:
        with held():
            os.close(_new(part))
            with suppress(FileNotFoundError):  # it has no name
                os.unlink(part)
    except OSError:
        if not is_there:
            raise


def _open_own(number: int) -> int:
    """An open file of this process, which goes on where it stands, as what is printed there does."""
    if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, "it is open for reading only")
    return os.dup(number)


def _open_through(place: str) -> int:
    """A device or a pipe; OSError for a pipe that nobody reads, on which opening would wait."""
    try:
        handle = os.open(place, _THROUGH)
    except OSError as error:
        if error.errno == errno.ENXIO and stat.S_ISFIFO(os.stat(place).st_mode):
            raise OSError(error.errno, "no program reads from it") from None
        raise
    os.set_blocking(handle, True)
    return handle


class _Forward(FileIO):
    """Is written from the beginning to the end, whatever it could do."""

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))

    def seek(self, *_: int) -> int:
        return self.tell()


# --- reading ---


def open_regular(path: str | os.PathLike[str]) -> FileIO:
    """Opens a regular file for reading.  OSError; :class:`NotRegular`."""
    name = os.fspath(path)
    with naming(name):
        _check_regular(os.stat(name), name)
        file = FileIO(os.open(name, _READ), "rb")
        try:
            _check_regular(os.fstat(file.fileno()), name)
        except BaseException:
            file.close()
            raise
    return file


def read_text(path: str | os.PathLike[str], most: int) -> str:
    """The text of a regular file.  ValueError: it is longer than ``most`` bytes, or no UTF-8; as
    :func:`open_regular`.
    """
    with open_regular(path) as file, naming(os.fspath(path)):
        content = file.read(most + 1)
    if len(content) > most:
        raise ValueError(f"{os.fspath(path)} has more than {most} bytes")
    return content.decode()


def _check_regular(status: os.stat_result, path: str) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(status.st_mode):
        raise NotRegular(path)
