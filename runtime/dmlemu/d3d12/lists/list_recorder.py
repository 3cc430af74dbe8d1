"""Base of the command list, for recording methods: recording, packets, resource uses."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from dmlemu_hw.events import Recorded
from dmlemu_hw.packets import Opcode, PacketWriter

from ...errors import CallSite, Error, spell_site
from ..barriers.state_errors import conflict_error
from ..core import states
from ..core.device_child import DeviceChild
from ..core.info_queue import not_implemented, spell
from ..core.object import Object
from ..core.recording import Command, Recording
from ..core.states import Clash, Conflict, Track
from ..descriptors.descriptor_heap import DescriptorHeap
from ..memory.resource import Resource
from ..types.arguments import integer
from ..types.enums import (
    CommandListType,
    DescriptorHeapType,
)
from .command_allocator import CommandAllocator
from .compute_state import ComputeState
from .rows import CL2, CL4, CL11, CL13, KnownListType

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

__all__ = ["ListRecorder", "ListRecording", "check_allocator", "check_list_type"]

COMMAND_LIST = "ID3D12GraphicsCommandList"


class ListRecording(Recording):
    """The recording of a command list, with the resources that its commands use.

    ``tracks`` hold the states of the resources whose state may change.
    """

    allocator: CommandAllocator

    def __init__(self, serial: int, allocator: CommandAllocator, generation: int) -> None:
        super().__init__(serial, allocator, generation)
        self.tracks: dict[Resource, Track] = {}
        self.resources: set[Resource] = set()


class ListRecorder(DeviceChild):
    """Base of the command list, for the commands of Direct3D 12 and of the layers above.

    ``recording`` is the current or last recording, ``writer`` its packets; ``descriptor_heaps`` are the ones
    currently set, ``compute`` what else is set for dispatches of shaders; ``states``: the states that lists
    of its ``type`` can express.
    """

    kind = "command list"

    def __init__(self, context: DeviceContext, type: CommandListType) -> None:
        super().__init__(context)
        self.type = type
        self.is_open = False
        self._error: Error | None = None  # strictness runtime: the first error since Reset
        self.failed = False
        self.writer = PacketWriter()
        self.recording: ListRecording | None = None
        self.descriptor_heaps: dict[DescriptorHeapType, DescriptorHeap] = {}
        self.compute = ComputeState()
        self.states = states.LIST_STATES.get(type, 0)
        self._opened_or_closed_at: CallSite | None = None  # where it was last opened or closed

    def start(self, allocator: CommandAllocator, operation: str) -> None:
        """CL2, CL4: begins a recording with an allocator that is free and of the list's type."""
        check_allocator(self.context, allocator, self.type, operation)
        if self.recording is not None:
            self.recording.is_current = False
        self.recording = ListRecording(self.context.next_recording(), allocator, allocator.generation)
        self.recording.recorder = weakref.ref(self)
        self.context.recordings[self.recording.serial] = self.recording
        self.writer = PacketWriter()
        self.descriptor_heaps = {}
        self.compute = ComputeState()
        self._error = None
        self.failed = False
        self._opened_or_closed_at = self.context.here()
        allocator.recorder = weakref.ref(self)
        self.is_open = True  # an exception before this line leaves the list closed

    def records_with(self, allocator: CommandAllocator) -> bool:
        return self.is_open and self.recording is not None and self.recording.allocator is allocator

    def may_record(
        self, operation: str, allowed: frozenset[CommandListType], interface: str = COMMAND_LIST
    ) -> bool:
        """CL11, CL13; False when the call must do nothing."""
        if self.context.removed is not None:
            return False
        if not self.is_open:
            self.check_open(operation)
            self.context.object_to(self._closed_error(operation))
            return False
        if self.type in allowed:
            return True
        self.reject(
            CL13.not_of_the_list(
                self,
                given=self.type,
                expected=" or ".join(spell(each) for each in sorted(allowed)),
                page=f"{interface}::{operation}",
                operation=operation,
            )
        )
        return False

    def _closed_error(self, operation: str) -> Error:
        return CL11.closed(self, page=operation, operation=operation, context=self.turned)

    def reject(self, error: Error) -> None:
        """A recording call was invalid: raises, or makes Close fail, as on Windows."""
        if self.context.raises:
            raise error
        self.context.keep(error)
        if self._error is None:
            self._error = error

    def use_all(
        self, operation: str, *uses: tuple[Resource, int, str], executes: bool = True, user: str = ""
    ) -> None:
        """Checks all uses (ST1, ST3, ST6), then records them; raises without recording any.

        A use is a resource, the state that it must be in, and its name in the call.
        The states are rules of the debug layer.
        ``executes``: the command gives the GPU work.  ``user``: the name of the command in messages.
        """
        recording = self.recording
        assert recording is not None
        tracks, resources, looks = recording.tracks, recording.resources, self.context.has_layer
        for resource, state, field in uses:
            if resource.released or resource not in resources:
                self.context.check_child(resource, Resource, operation, field)
            if looks:
                conflict = _conflict_of_use(resource, state, tracks)
                if conflict is not None:
                    track = tracks.get(resource)
                    since = "" if track is None else recording.named(track.since, str(self))
                    where = f"While recording {self}"
                    whose = f"{field} of {user}" if user else operation
                    self.context.object_to(
                        conflict_error(conflict, resource, operation, field, where, since=since, user=whose)
                    )
        at = len(recording.commands) if executes else -1
        for resource, state, _ in uses:
            if executes:
                recording.needs[resource] = at
            resources.add(resource)
            if resource.fixed_states is None:
                track = tracks.get(resource)
                if track is None:
                    track = tracks[resource] = Track()
                if self.context.raises or track.conflict_of_use(state) is None:
                    track.use(state, at)

    def need(self, *things: Object) -> None:
        """The command recorded next refers to these objects."""
        recording = self.recording
        assert recording is not None
        at = len(recording.commands)
        for thing in things:
            recording.needs[thing] = at

    def at_submit(self, check: Callable[[], Callable[[], None] | None]) -> None:
        """Runs a check when the list is executed; it may return a function that undoes it."""
        assert self.recording is not None
        self.recording.on_submit.append(check)

    def announce(
        self,
        opcode: Opcode,
        name: str,
        operands: tuple[str, ...] = (),
        *,
        joined: bool = False,
        site: CallSite | None = None,
    ) -> None:
        """Records the command of the packet just written, and emits an event for it.

        ``joined``: the packet is a further part of the preceding command.  ``site``: where the call was, if
        the caller knows it.
        """
        recording = self.recording
        assert recording is not None
        commands = recording.commands
        number = commands[-1].number + (not joined) if commands else 0
        commands.append(Command(name, number, operands, site or self.context.here(), opcode))
        events = self.context.gpu.events
        if events.wants(Recorded):
            events.emit(Recorded(recording.serial, len(commands) - 1, opcode, name))

    @property
    def turned(self) -> tuple[str, ...]:
        """Where the list was opened or closed, for the context of a report."""
        what = "opened" if self.is_open else "closed"
        at = spell_site(self._opened_or_closed_at)
        return (f"{self.title()} was {what} at {at}",) if at else ()


def _conflict_of_use(resource: Resource, state: int, tracks: dict[Resource, Track]) -> Conflict | None:
    fixed = resource.fixed_states
    if fixed is not None:
        return Conflict(Clash.USE, fixed, False, state) if state & ~fixed else None
    track = tracks.get(resource)
    return None if track is None else track.conflict_of_use(state)


def check_allocator(
    context: DeviceContext, allocator: CommandAllocator | None, type: CommandListType, operation: str
) -> None:
    """CL2, CL4: checks that a list of ``type`` may record with the allocator now."""

    if allocator is None:
        raise CL2.allocator(allocator, page=operation, operation=operation)
    context.check_child(allocator, CommandAllocator, operation, "pAllocator")
    if allocator.type != type:
        raise CL2.type(allocator, given=allocator.type, expected=type, page=operation, operation=operation)
    recording = allocator.recording  # another thread may close it meanwhile
    if recording is not None:
        raise CL4.allocator(
            allocator, page=operation, operation=operation, context=recording.turned, recording=recording
        )


_LIST_TYPES = (
    CommandListType.DIRECT,
    CommandListType.BUNDLE,
    CommandListType.COMPUTE,
    CommandListType.COPY,
)


def check_list_type(kind: CommandListType, operation: str, rule: type[KnownListType]) -> None:
    """CL1 to CL3: the list type must be an emulated one."""
    if integer(kind, "type") in _LIST_TYPES:
        return
    if kind in list(CommandListType) and kind != CommandListType.NONE:
        raise not_implemented(operation, f"A command list of type {spell(kind)}")
    raise rule.unknown(given=kind, operation=operation, page=f"ID3D12Device::{operation}")
