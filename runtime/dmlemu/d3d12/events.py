"""What happens at the API, told on the device's event stream beside the events of the hardware.

They hold the objects themselves, for as long as a subscriber keeps them.  Those of mapped memory are
declared in ``resource``, that of a reset in ``command_allocator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..errors import CallSite
    from .object import Object

__all__ = [
    "CallBegun",
    "DescriptorsWritten",
    "Evicted",
    "ObjectReleased",
]


class CallBegun(NamedTuple):
    """A call whose HRESULT may be a failure begins, of Direct3D or DirectML: nothing has happened yet.

    An :class:`dmlemu.Error` that a subscriber raises is what the call fails with.
    """

    operation: str


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
