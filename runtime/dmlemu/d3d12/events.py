"""What happens at the API, told on the device's event stream beside the events of the hardware.

They hold the objects themselves, for as long as a subscriber keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..errors import CallSite
    from .command_allocator import CommandAllocator
    from .object import Object
    from .resource import Resource

__all__ = [
    "AllocatorReset",
    "CallBegun",
    "DescriptorsWritten",
    "Evicted",
    "HostAccessed",
    "HostMapped",
    "HostUnmapped",
    "ObjectReleased",
]


class CallBegun(NamedTuple):
    """A call whose HRESULT may be a failure begins, of Direct3D or DirectML: nothing has happened yet.

    An :class:`dmlemu.Error` that a subscriber raises is what the call fails with.
    """

    operation: str


class HostMapped(NamedTuple):
    """Map: until Unmap the host may read bytes ``read`` of the buffer, and write any.

    ``read``: first byte and the byte after the last one; both 0 for nothing.  ``maps`` are open now.
    """

    resource: Resource
    read: tuple[int, int]
    maps: int


class HostUnmapped(NamedTuple):
    """Unmap: the host has, as it says, written bytes ``written``; ``maps`` stay open.

    Releasing a mapped buffer ends all its maps, and says nothing: all of it may have been written.
    """

    resource: Resource
    written: tuple[int, int]
    maps: int


class HostAccessed(NamedTuple):
    """The program touched, or took a view of, bytes [begin, end) of mapped memory.

    ``reads`` and ``writes``: what it does with them; both for a view, which may be used for either.
    What is done later through such a view is not told: only that elements of so many bytes, ``element``,
    will be stored whole.
    """

    resource: Resource
    begin: int
    end: int
    reads: bool
    writes: bool
    element: int = 1


class AllocatorReset(NamedTuple):
    """A command allocator was reset; as far as the GPU has come, it may be."""

    allocator: CommandAllocator


class ObjectReleased(NamedTuple):
    """The program released the object, of Direct3D or DirectML; garbage collection does not tell."""

    object: Object


class Evicted(NamedTuple):
    """The last user of an object, of Direct3D or DirectML, gave its memory up: it is not resident now."""

    object: Object


class DescriptorsWritten(NamedTuple):
    """A call wrote descriptors: ``place`` is the GPU handle of the first (see ``Descriptors.place``).

    ``before`` and ``after``: the 32 bytes of each.  ``writer``: what the call writes for, in words: a
    binding table, or nothing.
    """

    place: int
    before: bytes
    after: bytes
    operation: str
    writer: str
    site: CallSite | None
