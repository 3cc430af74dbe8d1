"""Command queues: execute closed lists, signal and wait for fences, map tiles."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dmlemu_hw.faults import OutOfMemory
from dmlemu_hw.packets import Opcode
from dmlemu_hw.queue import QueueKind

from ...errors import Error, HResult, Severity, call_site, spell_site
from ..barriers.state_errors import conflict_error
from ..core.device_child import DeviceChild
from ..core.info_queue import not_implemented, spell
from ..core.object import Object, released_at
from ..core.recording import Command
from ..core.rows import CL9, FN3
from ..core.states import Clash
from ..core.submissions import Submission, when_done
from ..lists.command_list import CommandList, encode_marker
from ..lists.list_recorder import ListRecording
from ..memory.resource import Heap, Resource
from ..memory.rows import RS5
from ..memory.tiles import TileMapping, check_mappings
from ..types.arguments import instance, integer, sequence
from ..types.enums import (
    CommandListType,
    CommandQueueFlags,
    CommandQueuePriority,
    TileMappingFlags,
)
from ..types.structs import ClockCalibration, CommandQueueDesc, TiledResourceCoordinate, TileRegionSize
from .fence import Fence, check_value
from .journey import Journey
from .rows import FN2, Q1, Q2, Q3, RD2

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

_QUEUE_TYPES = (CommandListType.DIRECT, CommandListType.COMPUTE, CommandListType.COPY)


class CommandQueue(DeviceChild):
    """Work for the GPU, executed in order; mirrors ``ID3D12CommandQueue``.

    Work queued before the queue is released is still executed.
    """

    kind = "command queue"

    def __init__(self, context: DeviceContext, desc: CommandQueueDesc) -> None:
        super().__init__(context)
        self._desc = replace(desc, node_mask=1)
        self.hardware = queue = self.context.gpu.create_queue(
            QueueKind(int(desc.type)), owner=weakref.ref(self)
        )
        queue.has_timeout = not int(desc.flags) & CommandQueueFlags.DISABLE_GPU_TIMEOUT
        self._own(queue)

    def get_desc(self) -> CommandQueueDesc:
        """``ID3D12CommandQueue::GetDesc``; the node mask is returned as 1."""
        return self._desc

    def execute_command_lists(self, command_lists: Sequence[CommandList]) -> None:
        """Queues closed lists, in order.

        Mirrors ``ID3D12CommandQueue::ExecuteCommandLists``
        (nf-d3d12-id3d12commandqueue-executecommandlists).  When a list is invalid (Q2, Q3) or its
        resource states do not match those that earlier lists left (ST8), nothing is queued: this raises
        at strictness ``debug`` and ``strict`` and removes the device (DXGI_ERROR_INVALID_CALL) at
        ``runtime``.
        """
        self.check_open("ExecuteCommandLists")
        if self.context.removed is not None:
            return
        refused: Error | None = None
        with self.context.submitting:
            try:
                recordings = self._check_lists(sequence(command_lists, "command_lists"))
                journey = self._check_states(recordings)
                _run_last_checks(self.context, recordings)
            except Error as error:
                refused = error
            else:
                if journey is not None:
                    journey.finish()
                if recordings:
                    self._submit(recordings)
        if refused is not None:
            self.context.reject(refused)
        elif recordings:
            self._start()
        else:
            self.context.reports.raise_pending()

    def signal(self, fence: Fence, value: int) -> None:
        """Queues a signal: sets the fence when all preceding work is done (FN2).

        Mirrors ``ID3D12CommandQueue::Signal`` (nf-d3d12-id3d12commandqueue-signal).
        """
        self._fence_work(fence, value, "Signal")
        self._add_and_start(lambda: self.hardware.signal(fence.hardware, value, start=False))

    def wait(self, fence: Fence, value: int) -> None:
        """Queues a wait: holds all later work until the fence reaches ``value`` (FN3).

        Mirrors ``ID3D12CommandQueue::Wait`` (nf-d3d12-id3d12commandqueue-wait).
        """
        self._fence_work(fence, value, "Wait")
        if value == 0:
            self._remark_zero_wait(fence)
        self._add_and_start(lambda: self.hardware.wait(fence.hardware, value, start=False))

    def update_tile_mappings(
        self,
        resource: Resource,
        resource_region_start_coordinates: Sequence[TiledResourceCoordinate] | None = None,
        resource_region_sizes: Sequence[TileRegionSize] | None = None,
        heap: Heap | None = None,
        range_flags: Sequence[int] | None = None,
        heap_range_start_offsets: Sequence[int] | None = None,
        range_tile_counts: Sequence[int] | None = None,
        flags: TileMappingFlags = TileMappingFlags.NONE,
    ) -> None:
        """Queues the mapping of 64 KiB tiles of a reserved buffer to tiles of a heap (RS4 to RS7).

        Mirrors ``ID3D12CommandQueue::UpdateTileMappings``
        (nf-d3d12-id3d12commandqueue-updatetilemappings).  Counts are the lengths of the
        sequences; None means what NULL means there: without starts and sizes the whole resource, without
        sizes one tile each; without flags NONE for all; without counts all tiles for a single range and
        one tile each for several.
        """
        self.check_open("UpdateTileMappings")
        if self.context.removed is not None:
            return
        mapping = TileMapping(
            resource,
            resource_region_start_coordinates,
            resource_region_sizes,
            heap,
            range_flags,
            heap_range_start_offsets,
            range_tile_counts,
            flags,
        )
        try:
            regions = check_mappings(self.context, mapping)
        except Error as error:
            self.context.reject(error)
            return
        if regions:
            command = Command("UpdateTileMappings", 0, site=call_site(), opcode=Opcode.MAP_TILES)
            needs = (resource,) if heap is None else (resource, heap)
            with self.context.submitting:
                ticket = self.hardware.submitted + 1
                work = Submission(self.hardware, ticket, needs=needs, command=command)
                try:
                    self._add(
                        work, lambda: self.hardware.map_tiles(resource.allocation, regions, start=False)
                    )
                except OutOfMemory as error:
                    raise _too_many_mappings(error, resource) from None
            self._start()

    def copy_tile_mappings(self, *arguments: Any, **named: Any) -> None:
        """``ID3D12CommandQueue::CopyTileMappings`` is not emulated: raises E_NOTIMPL."""
        raise not_implemented("CopyTileMappings", "ID3D12CommandQueue::CopyTileMappings")

    def set_marker(self, metadata: int, data: bytes | str) -> None:
        """A marker for tools; has no effect (Q5); mirrors ``ID3D12CommandQueue::SetMarker``."""
        encode_marker(integer(metadata, "metadata"), data)

    def begin_event(self, metadata: int, data: bytes | str) -> None:
        """Opens a region for tools (Q5); mirrors ``ID3D12CommandQueue::BeginEvent``."""
        encode_marker(integer(metadata, "metadata"), data)

    def end_event(self) -> None:
        """Ends the innermost region (Q5); mirrors ``ID3D12CommandQueue::EndEvent``."""

    def get_timestamp_frequency(self) -> int:
        """Ticks per second of the GPU's clock; mirrors ``ID3D12CommandQueue::GetTimestampFrequency``."""
        return self.context.gpu.clock.frequency

    def get_clock_calibration(self) -> ClockCalibration:
        """Both clocks at one moment; mirrors ``ID3D12CommandQueue::GetClockCalibration``.

        The CPU clock is ``time.monotonic_ns``; the GPU clock is virtual and advances only with executed work.
        """
        return ClockCalibration(self.context.gpu.clock.now, time.monotonic_ns())

    # --- internals ---

    def _check_lists(self, lists: list[CommandList]) -> list[ListRecording]:
        """Q2, Q3: checks that every list may be executed on this queue now."""
        if not lists:
            self._remark_empty()
        recordings: list[ListRecording] = []
        for i, each in enumerate(lists):
            recording = self._check_list(each, f"ppCommandLists[{i}]")
            if recording in recordings:
                raise Q3.twice(self, field=f"ppCommandLists[{i}]", list=each, given=each)
            recordings.append(recording)
        return recordings

    def _check_list(self, each: CommandList | None, path: str) -> ListRecording:
        if each is None:
            raise Q2.none(self, field=path)
        self.context.check_child(each, CommandList, "ExecuteCommandLists", path)
        if each.type == CommandListType.BUNDLE:
            raise Q2.bundle(self, field=path, list=each, given=each.type, expected=self._desc.type)
        if each.type != self._desc.type:
            raise Q2.type(self, field=path, list=each, given=each.type, expected=self._desc.type)
        if each.is_open:
            raise Q2.open(self, field=path, list=each, context=each.turned)
        if each.failed:
            raise Q2.failed(self, field=path, list=each)
        recording = each.recording
        if recording is None:
            raise Q2.never_recorded(self, field=path, list=each)
        allocator = recording.allocator
        if recording.generation != allocator.generation:
            raise Q2.reset(self, field=path, list=each, allocator=allocator, context=allocator.reset_lines)
        released = recording.find_released() if self.context.has_layer else None
        if released is not None:
            self.context.object_to(self._released_error(released, recording, path))
        submitted = recording.submitted
        if submitted is not None and not submitted[0].done(submitted[1]):
            hint, context = when_done(*submitted), (recording.pending,)
            raise Q3.pending(self, field=path, list=each, given=each, hint=hint, context=context)
        return recording

    def _check_states(self, recordings: list[ListRecording]) -> Journey | None:
        """ST8 across lists, and residency (RD2); the states at the end, None: all are COMMON."""
        looks, object_to = self.context.has_layer, self.context.object_to
        if not looks and len(recordings) == 1 and _has_no_splits(recordings[0]):
            return None  # every resource is COMMON where the list begins, which no use contradicts
        journey = Journey()
        for i, recording in enumerate(recordings):
            for thing in recording.needs if looks else ():
                if _pageable(thing).residency <= 0:
                    object_to(self._evicted_error(thing, recording))
            for resource, track in recording.tracks.items():
                conflict = journey.enter(resource, track, recording)
                is_use = conflict is not None and conflict.clash is Clash.USE
                if conflict is None or (is_use and not looks):
                    continue
                error = conflict_error(
                    conflict,
                    resource,
                    "ExecuteCommandLists",
                    f"ppCommandLists[{i}]",
                    f"While {self} executes {recording.owner}",
                    since=journey.origin(resource),
                    user=recording.owner,
                    hresult=HResult.DXGI_ERROR_INVALID_CALL,
                    copy_queue=self._desc.type == CommandListType.COPY,
                )
                if not is_use:
                    raise error
                object_to(error)
        return journey

    def _submit(self, recordings: list[ListRecording]) -> None:
        self.context.submissions.forget_done()
        work = [(recording.serial, recording.packets) for recording in recordings]
        first, here = self.hardware.submitted + 1, self.context.here()
        for i, recording in enumerate(recordings):
            recording.submitted = (self.hardware, first + i)
            recording.executed_at = here
        submission = Submission(self.hardware, first + len(work) - 1, tuple(recordings))
        self._add(submission, lambda: self.hardware.submit(work, start=False))

    def _add(self, work: Submission, add: Callable[[], int]) -> None:
        """Queues an entry.  Call with ``submitting`` held: tickets are assigned by one call at a time."""
        self.context.submissions.add(work)
        try:
            self.context.run_gpu(add, 0, raising=False)
        finally:
            work.is_queued = True

    def _add_and_start(self, add: Callable[[], int]) -> None:
        def work() -> None:
            with self.context.submitting:
                add()
            self.hardware.start()

        self.context.run_gpu(work, None)
        if self.context.watches:
            self.context.let_run()

    def _start(self) -> None:
        """Lets the GPU run, and raises what checks have found, without a lock: both may call the program."""
        self.context.run_gpu(self.hardware.start, None)
        if self.context.watches:
            self.context.let_run()

    def _fence_work(self, fence: Fence | None, value: int, operation: str) -> None:
        self.check_open(operation)
        self.context.check_alive(operation)
        name = f"ID3D12CommandQueue::{operation}"
        if fence is None:
            raise FN2.fence(self, page=name, operation=name)
        self.context.check_child(fence, Fence, name, "pFence")
        check_value(value, name, "Value")

    def _released_error(self, thing: Object, recording: ListRecording, path: str) -> Error:
        command = recording.need(thing)
        why = "which it was recorded with" if command is None else f"which {command} needs"
        return CL9.deleted_in_use(
            self,
            field=path,
            given=f"a list that needs a released {thing.kind}",
            page="ID3D12CommandQueue::ExecuteCommandLists",
            operation="ExecuteCommandLists",
            context=(*(() if command is None else (command.context(recording.owner),)), *released_at(thing)),
            owner=recording.owner,
            thing=thing,
            why=why,
        )

    def _evicted_error(self, thing: Object, recording: ListRecording) -> Error:
        pageable, command = _pageable(thing), recording.need(thing)
        which = "which" if pageable is thing else f"and {pageable}, in which it is placed,"
        at = spell_site(pageable.evicted_at)
        evicted = (f"It was evicted at {at}",) if at else ()
        return RD2.not_resident(
            thing,
            context=(*(() if command is None else (command.context(recording.owner),)), *evicted),
            owner=recording.owner,
            which=which,
        )

    def _remark_empty(self) -> None:
        self.context.inform(Q2.no_lists(self), Severity.INFO)

    def _remark_zero_wait(self, fence: Fence) -> None:
        error = FN3.value(fence, operation="ID3D12CommandQueue::Wait", queue=self)
        self.context.inform(error, Severity.WARNING)


def _has_no_splits(recording: ListRecording) -> bool:
    for resource, track in recording.tracks.items():
        if resource.split is not None or track.split is not None or track.ends is not None:
            return False
    return True


def _too_many_mappings(error: OutOfMemory, resource: Resource) -> Error:
    return RS5.of_memory(resource, message=str(error))


def _run_last_checks(context: DeviceContext, recordings: list[ListRecording]) -> None:
    """Runs the last checks of the recordings; if one fails, undoes the ones before."""
    undo: list[Callable[[], None]] = []
    try:
        for recording in recordings:
            for check in recording.on_submit:
                take_back = None
                with context.layer:
                    take_back = check()
                if take_back is not None:
                    undo.append(take_back)
    except Error:
        for take_back in reversed(undo):
            take_back()
        raise


def _pageable(thing: Any) -> Any:
    """The object whose residency is counted: a placed buffer's heap, else the object itself."""
    return thing.pageable if isinstance(thing, Resource) else thing


def create_queue(context: DeviceContext, desc: CommandQueueDesc) -> CommandQueue:
    """``ID3D12Device::CreateCommandQueue``."""
    context.check_alive("CreateCommandQueue")
    check_desc(desc)
    return CommandQueue(context, desc)


def check_desc(desc: CommandQueueDesc | None) -> None:
    """Q1."""
    if desc is None:
        raise Q1.none()
    instance(desc, CommandQueueDesc, "desc")
    if desc.type not in list(CommandListType) or desc.type in (CommandListType.BUNDLE, CommandListType.NONE):
        raise Q1.type(given=desc.type)
    if desc.type not in _QUEUE_TYPES:
        raise not_implemented("CreateCommandQueue", f"A queue of type {spell(desc.type)}")
    known = CommandQueueFlags.DISABLE_GPU_TIMEOUT | CommandQueueFlags.ALLOW_DYNAMIC_PRIORITY
    if int(desc.flags) & ~int(known):
        raise Q1.flags(given=desc.flags)
    if desc.priority not in list(CommandQueuePriority):
        raise Q1.priority(given=desc.priority)
    if desc.node_mask not in (0, 1):
        raise Q1.node(given=desc.node_mask)
