"""Host memory behind GPU memory: one sparse file per GPU, and the bytes of each heap."""

from __future__ import annotations

import errno
import mmap
import os

from .host import Budget, HostFile, HostRange
from .kernels import lib

TILE_SIZE = 65536

# Heaps begin at multiples of this in their file: shadow memory has a bit for each byte, and hosts map whole
# pages.
_APART = max(TILE_SIZE, 8 * mmap.PAGESIZE)

# Its only element is the id of this process.  C notices every fork; asking the system takes longer than the
# rest of a public call.
process = lib.dmlk_process()


def round_to_tile(size: int) -> int:
    """``size`` rounded up to whole 64 KiB tiles."""
    return -(-size // TILE_SIZE) * TILE_SIZE


class MemoryFile:
    """The sparse memory file of a GPU; ranges are never reused.

    A heap that is not mappable has a range too, which stays empty: shadow memory is indexed by the offset in
    the file.
    """

    def __init__(self) -> None:
        self.owner = process[0]
        self._file = HostFile.create("dmlemu")
        self.fd = self._file.fd
        self.size = 0

    def map_new(self, size: int, mappable: bool) -> tuple[int, HostRange]:
        """Offset and host addresses of ``size`` new bytes; they take no memory until they are accessed.

        OSError: the host refuses.
        """
        offset = self.size
        if offset + size >= 2**63:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if mappable:
            os.ftruncate(self.fd, offset + size)
            range = HostRange(size, self.fd, offset)
            range.free_bytes_of(self.owner)
        else:
            range = HostRange(size, large=True)
        self.size = -(-(offset + size) // _APART) * _APART
        return offset, range


class Mapped:
    """Host addresses, mapped while this object lives; every exported buffer keeps them alive."""

    def __init__(self, range: HostRange) -> None:
        self.range = range
        self.host = range.host

    def export(self, offset: int, size: int) -> memoryview:
        return self.range.export(offset, size)


class Storage(Mapped):
    """The bytes of a heap: in the memory file, or (not ``mappable``) in separate memory.

    The heap, its allocations and the runs of tiles that map to it refer to this object: while one of them
    lives, so does this, and counts against the ``budget``.
    """

    def __init__(self, file: MemoryFile, capacity: int, budget: Budget | None, mappable: bool) -> None:
        self.file = file
        self.capacity = capacity
        self.mappable = mappable
        self.file_offset, range = file.map_new(capacity, mappable)
        super().__init__(range)
        self._charge = None if budget is None else budget.charge(capacity)
