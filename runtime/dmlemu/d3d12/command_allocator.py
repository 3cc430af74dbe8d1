"""Command allocators: the memory of recorded commands, as far as its rules go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..diagnostics import ids
from ..errors import CallSite, HResult, Severity, spell_site
from .enums import CommandListType, MessageId
from .events import AllocatorReset
from .info_queue import refusal
from .object import DeviceChild
from .submissions import when_done

if TYPE_CHECKING:
    from .command_list import CommandList
    from .device import Device


class CommandAllocator(DeviceChild):
    """Owns the memory of the lists recorded with it; mirrors ``ID3D12CommandAllocator``.

    One list at a time may record with it, and it may be reset when the GPU has executed them all.
    """

    kind = "command allocator"

    def __init__(self, device: Device, type: CommandListType) -> None:
        super().__init__(device)
        self._type = type
        self._recorder: CommandList | None = None  # opened with it last
        self._generation = 0  # counts resets: recordings of an older one are gone
        self._reset_at: CallSite | None = None

    def reset(self) -> None:
        """Forgets all that was recorded with it.

        Mirrors ``ID3D12CommandAllocator::Reset`` (nf-d3d12-id3d12commandallocator-reset).  E_FAIL
        while a list records with it (CL7).  While the GPU still executes one of its lists the real
        thing corrupts it; here that raises at strictness ``debug`` and ``strict``.
        """
        self._check_open("Reset")
        self._device._check_alive("Reset")
        recording = self._recording  # another thread may close it meanwhile
        if recording is not None:
            raise refusal(
                ids.LIST_OPEN,
                f"{self} is reset while {recording} records with it.",
                operation="ID3D12CommandAllocator::Reset",
                rule="CL7: ID3D12CommandAllocator::Reset",
                hresult=HResult.E_FAIL,
                message_id=MessageId.COMMAND_ALLOCATOR_CANNOT_RESET,
                object=self,
                context=recording._turned,
                hint="Close the command list first.",
            )
        if not self._device._is_runtime:
            self._check_done()
        self._generation += 1
        self._reset_at = self._device._here()
        if self._device.events.wants(AllocatorReset):
            self._device._tell(AllocatorReset(self))

    @property
    def _recording(self) -> CommandList | None:
        """The list that records with it now."""
        recorder = self._recorder
        return recorder if recorder is not None and recorder._records_with(self) else None

    @property
    def _reset_lines(self) -> tuple[str, ...]:
        """For the context of a report: the line of the last reset."""
        return (f"{self._title()} was reset at {spell_site(self._reset_at)}",) if self._reset_at else ()

    def _check_done(self) -> None:
        """CL7: the GPU has finished every list that was recorded with it."""
        recording = self._device._pending.recorded_with(self)
        if recording is not None and recording.submitted is not None:
            raise refusal(
                ids.ALLOC_RESET_IN_FLIGHT,
                f"{self} is reset before the GPU has finished {recording.owner}, which was recorded with it.",
                operation="ID3D12CommandAllocator::Reset",
                rule="CL7: ID3D12CommandAllocator::Reset",
                hresult=HResult.E_FAIL,
                message_id=MessageId.COMMAND_ALLOCATOR_SYNC,
                object=self,
                severity=Severity.CORRUPTION,
                context=(recording.pending,),
                hint=when_done(*recording.submitted),
            )
