"""Host resources: address ranges, budgets and open files, released with the last reference.

A signal handler may raise anywhere in Python code, even in a finalizer, which is not called again.  So the
owner is created before the resource, and the rest is C.
"""

from __future__ import annotations

import errno
import os
from functools import partial
from operator import is_

from .kernels import ffi, lib

__all__ = ["MOST_MAPPINGS", "Budget", "HostFile", "HostRange", "MappingPromise"]


class HostRange:
    """``size`` bytes of host addresses at ``host``, mapped while this object lives.

    They map an open file from ``offset`` on or, with ``fd`` -1, private zeros, in ``large`` pages where the
    host has them.  ``mappings`` count against the host's limit.  OSError: the host refuses.
    """

    def __init__(
        self, size: int, fd: int = -1, offset: int = 0, *, mappings: int = 1, large: bool = False
    ) -> None:
        self._range = ffi.gc(ffi.new("dmlk_range *"), lib.dmlk_range_end)
        _check(lib.dmlk_range_map(self._range, size, fd, offset, mappings, large))
        self.host = int(ffi.cast("uintptr_t", self._range.host))

    def put(self, start: int, size: int, fd: int, offset: int, mappings: int) -> None:
        """Remaps a part, with ``fd`` and ``offset`` as above; ``mappings`` is the new count of the whole
        range.

        OSError: the host refuses; nothing was changed.
        """
        _check(lib.dmlk_range_put(self._range, start, size, fd, offset, mappings))

    def clear(self, start: int, size: int) -> None:
        """Resets private zeros that have been written to 0."""
        lib.dmlk_range_clear(self._range, start, size)

    def free_bytes_of(self, process: int) -> None:
        """Frees the bytes of the file with the range, if the range ends in this process."""
        self._range.file_owner = process

    def export(self, offset: int, size: int) -> memoryview:
        """Bytes of the range, writable; they stay mapped while the view lives."""
        # cffi's destructor only holds a reference to the range.
        pointer = ffi.gc(ffi.cast("uint8_t *", self.host + offset), partial(is_, self._range))
        return memoryview(ffi.buffer(pointer, size))


class MappingPromise:
    """Reserves a number of host mappings while this object lives.  OSError: too few are left."""

    def __init__(self, mappings: int) -> None:
        self._range = ffi.gc(ffi.new("dmlk_range *"), lib.dmlk_range_end)
        _check(lib.dmlk_range_promise(self._range, mappings))


class Budget:
    """``used`` bytes: the sum of the charges that live."""

    def __init__(self) -> None:
        self._used = ffi.new("int64_t *")

    @property
    def used(self) -> int:
        bytes: int = self._used[0]
        return bytes

    def charge(self, size: int) -> object:
        """Adds ``size`` bytes while the returned object lives."""
        charge = ffi.gc(ffi.new("int64_t *"), partial(lib.dmlk_charge_end, self._used))
        lib.dmlk_charge(self._used, charge, size)
        return charge


class HostFile:
    """An open file: a new memory file (:meth:`create`), or a duplicate of a file descriptor."""

    def __init__(self) -> None:
        self._file = ffi.gc(ffi.new("dmlk_file *"), lib.dmlk_file_end)

    @classmethod
    def create(cls, name: str) -> HostFile:
        """OSError: the host refuses."""
        file = cls()
        _check(lib.dmlk_file_create(file._file, name.encode()))
        return file

    @classmethod
    def duplicate(cls, fd: int) -> HostFile:
        """OSError: the host refuses."""
        file = cls()
        _check(lib.dmlk_file_duplicate(file._file, fd))
        return file

    @property
    def fd(self) -> int:
        """The file descriptor."""
        number: int = self._file.fd
        return number


def _check(error: int) -> None:
    if error == lib.DMLK_TOO_MANY_MAPPINGS:
        raise OSError(errno.ENOMEM, f"{lib.dmlk_count_mappings()} of {MOST_MAPPINGS} mappings are in use")
    if error:
        raise OSError(error, os.strerror(error))


_LINUX_LIMIT = 65530  # mappings of a process, where Linux was not told otherwise


def _limit_mappings() -> int:
    try:
        with open("/proc/sys/vm/max_map_count") as file:
            limit = int(file.read())
    except OSError:  # another system, or a container without /proc
        limit = _LINUX_LIMIT
    most = limit - limit // 8
    lib.dmlk_limit_mappings(most)
    return most


MOST_MAPPINGS = _limit_mappings()
