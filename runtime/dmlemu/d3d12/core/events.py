"""API events: emitted on the device's event stream beside the events of the hardware.

An event refers to the objects themselves and keeps them alive.  The events of mapped memory are declared in
``resource``, that of an allocator reset in ``command_allocator``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...errors import CallSite
    from .object import Object

__all__ = [
    "CallBegun",
    "DescriptorsWritten",
    "Evicted",
    "Marked",
    "ObjectReleased",
]


class CallBegun(NamedTuple):
    """A Direct3D or DirectML call that returns an HRESULT starts; it has no effect yet.

    If a subscriber raises a :class:`dmlemu.Error`, the call fails with it.
    """

    operation: str


class ObjectReleased(NamedTuple):
    """The program released a Direct3D or DirectML object; not emitted for garbage collection."""

    object: Object


class Evicted(NamedTuple):
    """The residency count of a Direct3D or DirectML object reached 0: it is not resident."""

    object: Object


class Marked(NamedTuple):
    """The program marked a moment: :meth:`dmlemu.d3d12.Device.mark`."""

    text: str
    site: CallSite | None


class DescriptorsWritten(NamedTuple):
    """A call wrote descriptors: ``place`` is the GPU handle of the first (see ``Descriptors.place``).

    ``before`` and ``after``: the 32 bytes of each.  ``str(writer)`` names the binding table that writes them;
    it is empty for other calls.
    """

    place: int
    before: bytes
    after: bytes
    operation: str
    writer: object
    site: CallSite | None
