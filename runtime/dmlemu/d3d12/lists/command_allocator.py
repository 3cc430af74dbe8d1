"""Command allocators: ownership and reset rules of recorded commands."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ...errors import CallSite, spell_site
from ..core.device_child import DeviceChild
from ..core.submissions import when_done
from ..types.enums import CommandListType
from .rows import CL7

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

    class OpenList(Protocol):
        """What an allocator needs of a command list."""

        def records_with(self, allocator: CommandAllocator) -> bool: ...

        @property
        def turned(self) -> tuple[str, ...]: ...


class AllocatorReset(NamedTuple):
    """A command allocator was reset after the GPU finished all lists recorded with it."""

    allocator: CommandAllocator


class CommandAllocator(DeviceChild):
    """Owns the memory of the lists recorded with it; mirrors ``ID3D12CommandAllocator``.

    One list at a time may record with it.  It may be reset once the GPU has executed all of its lists.
    """

    kind = "command allocator"

    def __init__(self, context: DeviceContext, type: CommandListType) -> None:
        super().__init__(context)
        self.type = type
        self.recorder: weakref.ref[OpenList] | None = None  # opened with it last
        self.generation = 0  # counts resets: recordings of an earlier generation are invalid
        self._reset_at: CallSite | None = None

    def reset(self) -> None:
        """Discards everything recorded with it.

        Mirrors ``ID3D12CommandAllocator::Reset`` (nf-d3d12-id3d12commandallocator-reset).  E_FAIL
        while a list records with it (CL7).  On real
        hardware a reset while the GPU still executes one of its lists corrupts that list; here it raises at
        strictness ``debug`` and ``strict``.
        """
        self.check_open("Reset")
        self.context.check_alive("Reset")
        recording = self.recording  # another thread may close it meanwhile
        if recording is not None:
            raise CL7.open(self, context=recording.turned, recording=recording)
        if self.context.has_layer:
            with self.context.layer:
                self._check_done()
        self.generation += 1
        self._reset_at = self.context.here()
        if self.context.events.wants(AllocatorReset):
            self.context.emit(AllocatorReset(self))

    @property
    def recording(self) -> OpenList | None:
        """The list that records with it now; a list that lost its last reference does not."""
        recorder = None if self.recorder is None else self.recorder()
        return recorder if recorder is not None and recorder.records_with(self) else None

    @property
    def reset_lines(self) -> tuple[str, ...]:
        """The line of the last reset, for the context of a report."""
        return (f"{self.title()} was reset at {spell_site(self._reset_at)}",) if self._reset_at else ()

    def _check_done(self) -> None:
        """CL7: the GPU has finished every list that was recorded with it."""
        recording = self.context.submissions.recorded_with(self)
        if recording is not None and recording.submitted is not None:
            raise CL7.reset_in_flight(
                self,
                hint=when_done(*recording.submitted),
                context=(recording.pending,),
                owner=recording.owner,
            )
