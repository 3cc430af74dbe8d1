"""The subscriber that keeps what devices do as a run."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

from dmlemu_hw.allocation import Allocation
from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from dmlemu_hw.events import (
    WRITE,
    Barrier,
    Executed,
    Executing,
    Freed,
    Queued,
    Signalled,
    Submitted,
    Subscription,
    TilesMapped,
    Waited,
)
from dmlemu_hw.memory_spans import spans
from dmlemu_hw.packets import Opcode, decode_one
from dmlemu_hw.reservation import Reservation
from dmlemu_hw.storage import TILE_SIZE, Storage

from .. import d3d12, dml
from ..checks.framework.names import Names
from ..d3d12.core.events import CallBegun, DescriptorsWritten, Marked, ObjectReleased
from ..d3d12.core.faults import ENTRY_NAMES
from ..d3d12.memory.resource import HostMapped, HostUnmapped
from ..d3d12.types.enums import Format
from ..diagnostics.spelling import spell
from ..dml.events import DispatchRecorded
from ..errors import Error, Report, call_site, spell_site
from ..watching import Watching
from .model import COMMAND, HOST, QUEUE, Buffer, Heap, Listing, Moment, Operand
from .operands import Accessed, Dispatches, shader_fields
from .pages import PAGE
from .run import Run
from .states import TRANSITION, StateTracker

__all__ = ["LIMIT", "Observation", "observe"]

LIMIT = 1 << 30
"""Bytes that a run keeps by default."""

_MOMENT = 1024  # bytes that a moment is taken to need
# In the titles of objects without a name; some have more in the parentheses.
_CREATED = re.compile(r" \(created at (?:[^()]|\([^()]*\))*\)|, created at (?:[^()]|\([^()]*\))*(?=\))")
_FORMATS = frozenset(map(int, Format))
_DEVICE = 1 << 56  # more than the bytes of a device's memory: tells the places of devices apart


def observe(device: d3d12.Device | dml.Device | None = None, *, limit: int = LIMIT) -> Observation:
    """Keeps what ``device`` does while the ``with`` block runs, or every device that is created in it (None).

    ``as`` gives the :class:`Run`, which is complete when the block ends.  ``limit``: bytes that it keeps;
    where they end, so does the run, and a note says so.
    """
    return Observation(device, limit=limit)


class Observation(Watching["_Watch"]):
    """The context manager of :func:`observe`."""

    def __init__(self, device: d3d12.Device | dml.Device | None, *, limit: int = LIMIT) -> None:
        super().__init__(device)
        if limit < 0:
            raise ValueError(f"limit ({limit}) is negative.")
        self.run = Run()
        self.listed = 0  # bytes of packets
        self._limit, self._is_over = limit, False

    def __enter__(self) -> Run:
        self.start()
        return self.run

    def finish(self) -> None:
        if self.device is None and not self.watches:
            self.run.notes.append("No device was created.")

    def watch(self, device: d3d12.Device) -> _Watch:
        return _Watch(self, device)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """An error that ends the block is the last moment of the run, unless it belongs to another one."""
        super().__exit__(kind, value, traceback)
        if isinstance(value, Error):
            known = [(each.id, each.message) for moment in self.run.moments for each in moment.reports]
            report = value.report
            if (report.id, report.message) not in known:
                name = report.operation or "report"
                last = Moment(len(self.run.moments), HOST, name, report.message, reports=[report])
                self.run.moments.append(last)

    # --- used by the watches ---

    def is_full(self, more: int = 0) -> bool:
        """Whether the limit is reached, or would be with ``more`` bytes; the run then ends, with a note."""
        run = self.run
        needed = run.pages.size + self.listed + len(run.moments) * _MOMENT + more
        if not self._is_over and needed > self._limit:
            self._is_over = True
            run.notes.append(
                f"The run ends after moment {len(run.moments) - 1}: what follows exceeds the limit "
                f"of {self._limit} bytes."
            )
        return self._is_over


class _Watch:
    """Keeps what one device does.  Events of the hardware are handled one at a time."""

    def __init__(self, observation: Observation, device: d3d12.Device) -> None:
        self._observation, self._run = observation, observation.run
        self._context = device.context
        self._gpu = self._context.gpu
        self._names = Names(device)
        self._base = len(observation.watches) * _DEVICE
        self._states = StateTracker(self._run.state_versions)
        self._dispatches = Dispatches(self._context.recordings)
        self._accessed = Accessed(self._gpu, self._dispatches, self._number_at, self._slot_at)
        self._buffers: dict[int, int] = {}  # numbers, by address
        self._resources: dict[int, weakref.ref[d3d12.Resource]] = {}  # by number
        self._heaps: dict[int, int] = {}  # numbers, by address
        self._fences: dict[int, int] = {}  # numbers, by address
        self._mapped: set[int] = set()  # numbers of mapped buffers
        self._last: dict[int, list[int]] = {}  # last tickets of submissions, by queue
        self._awaited: dict[int, int] = {}  # what the host has seen of fences
        self._running: tuple[int, Moment] | None = None  # the thread, and the command that it executes
        self._failed: Moment | None = None
        self._places: dict[str, Moment] = {}  # the latest run of each command, as reports name it
        self._found: list[Report] = []  # reports that belong to no moment yet
        self._freed: list[int] = []  # addresses
        self._reports = device.reports
        self._reports.listeners.append(self._report)
        self._subscriptions: list[Subscription] = []
        for callback, kind in (
            (self._called, CallBegun),
            (self._marked, Marked),
            (self._recorded, DispatchRecorded),
            (self._described, DescriptorsWritten),
            (self._host_mapped, HostMapped),
            (self._host_unmapped, HostUnmapped),
            (self._submitted, Submitted),
            (self._queued, Queued),
            (self._before, Executing),
            (self._barrier, Barrier),
            (self._after, Executed),
            (self._signalled, Signalled),
            (self._waited, Waited),
            (self._tiles_mapped, TilesMapped),
            (self._released, ObjectReleased),
            (self._freed_memory, Freed),
        ):
            device.events.subscribe(callback, kind, kept=self._subscriptions)
        self._discover()

    def close(self) -> None:
        for each in self._subscriptions:
            each.close()
        self._subscriptions.clear()  # a cycle would keep the device alive until garbage is collected
        self._reports.listeners.remove(self._report)
        self._flush()
        record = self._context.removal_record  # has the report where no layer adds it to the others
        if self._failed is not None and record is not None and not self._failed.reports:
            self._failed.reports.append(record.report)
        self._rename()
        with self._gpu.lock:  # held where a thread handles an event
            del self._accessed  # another cycle

    # --- moments ---

    def _add(self, moment: Moment) -> Moment:
        """Appends a moment."""
        texts = moment.name, moment.queue, moment.list, moment.text
        moment.name, moment.queue, moment.list, moment.text = map(_brief, texts)
        moments = self._run.moments
        moments.append(moment)
        # Without a lock: threads of other devices append too, and a finalizer in here could wait for theirs.
        moment.number = next(at for at in range(len(moments) - 1, -1, -1) if moments[at] is moment)
        while self._freed:
            number = self._buffers.get(self._freed.pop())
            if number is not None and self._run.buffers[number].released is None:
                self._run.buffers[number].released = moment.number
        return moment

    def _host(self, name: str, text: str, operands: tuple[Operand, ...] = (), site: str = "") -> Moment:
        """Something that the program did, with the reports about it."""
        about = self._take(lambda report: name in report.operation)
        self._flush()
        site = site or spell_site(call_site())
        moment = Moment(0, HOST, name, text, operands=operands, site=site, reports=about)
        return self._add(moment)

    def _take(self, wanted: Callable[[Report], bool]) -> list[Report]:
        """Removes reports from those that belong to no moment yet; a finalizer may add others meanwhile."""
        taken = [each for each in list(self._found) if wanted(each)]
        for each in taken:
            self._found.remove(each)
        return taken

    def _flush(self) -> None:
        """Reports that were found outside of commands: about one that has run, or moments of their own."""
        self._note_fault()
        for each in self._take(lambda report: True):
            if self._failed is not None and self._failed.name == each.operation:
                self._failed.reports.append(each)
            elif each.operation in self._places:  # a check that looks back
                self._places[each.operation].reports.append(each)
            else:
                self._add(Moment(0, HOST, each.operation or "report", each.message, reports=[each]))

    def _report(self, report: Report) -> None:
        """A report was found.  Locks may be held, or a finalizer may run: it is only noted."""
        running = self._running
        if running is not None and running[0] == threading.get_ident():
            running[1].reports.append(report)
        else:
            self._found.append(report)

    def _note_fault(self) -> None:
        """The command that the GPU failed in."""
        fault = self._gpu.fault
        if fault is None or self._failed is not None:
            return
        if self._running is not None:
            self._failed = self._running[1]
            self._running = None
            self._keep_writes(self._failed)
        elif fault.packet:
            recording = self._context.recordings.get(fault.list_serial)
            known = recording is not None and fault.command < len(recording.commands)
            command = recording.commands[fault.command] if recording is not None and known else None
            packet = decode_one(fault.packet)
            queue, ticket = (None, 0) if recording is None else recording.submitted or (None, 0)
            self._failed = self._add(
                Moment(
                    0,
                    COMMAND if fault.list_serial else QUEUE,
                    packet.opcode.name if command is None else command.name,
                    f"{packet.opcode.name} {packet.text()}",
                    queue=fault.queue,
                    list="" if recording is None else recording.owner,
                    queue_id=0 if queue is None else self._base + queue.serial,
                    ticket=ticket,
                    packet=fault.command if fault.list_serial else -1,
                    command=-1 if command is None else command.number,
                    site="" if command is None else command.recorded_at,
                    is_dispatch=packet.opcode.effects.computes,
                )
            )
        if self._failed is not None:
            self._failed.failed = True

    # --- the host ---

    def _called(self, event: CallBegun) -> None:
        if not self._observation.is_full():
            self._flush()

    def _marked(self, event: Marked) -> None:
        if not self._observation.is_full():
            self._host("mark", event.text, site=spell_site(event.site))

    def _recorded(self, event: DispatchRecorded) -> None:
        self._dispatches.recorded(event)
        recording = self._context.recordings.get(event.list_serial)
        if recording is not None and not self._observation.is_full():
            commands = recording.commands[event.first :]  # none for an initializer with nothing to do
            recorder = None if recording.recorder is None else recording.recorder()
            which = f"as command {commands[0].number}" if commands else "without commands"
            text = f"{event.dispatchable} {which} of {recorder or recording.owner}"
            self._host("RecordDispatch", text, site=spell_site(event.site))

    def _described(self, event: DescriptorsWritten) -> None:
        found = self._gpu.descriptors.locate_place(event.place)
        if found is None or self._observation.is_full():
            return
        hardware, first = found
        number = self._heap(hardware)
        count = len(event.after) // DESCRIPTOR_SIZE
        which = f"descriptor {first}" if count == 1 else f"descriptors {first} to {first + count - 1}"
        by = f" by {event.writer}" if str(event.writer) else ""
        text = f"{which} of {hardware.label}{by}"
        moment = self._host(event.operation, text, site=spell_site(event.site))
        for i in range(count):
            written = event.after[i * DESCRIPTOR_SIZE : (i + 1) * DESCRIPTOR_SIZE]
            self._run.descriptor_versions.set(moment.number, (number, first + i), self._descriptor(written))

    def _slot_at(self, place: int) -> tuple[int, int] | None:
        found = self._gpu.descriptors.locate_place(place)
        return None if found is None else (self._heap(found[0]), found[1])

    def _heap(self, hardware: Any) -> int:
        number = self._heaps.setdefault(hardware.allocation.address, len(self._run.heaps))
        if number == len(self._run.heaps):
            heap = Heap(number, _brief(hardware.label), hardware.count, hardware.shader_visible)
            self._run.heaps.append(heap)
        self._run.heaps[number].name = _brief(hardware.label)
        return number

    def _descriptor(self, data: bytes) -> str:
        """``UAV R32_UINT bytes [0, 64) of buffer 'a'``."""
        found = Descriptor.decode(data)
        if found.kind is DescriptorKind.UNWRITTEN:
            return "unwritten"
        if not found.address:
            return f"{found.kind.name} null"
        where = _brief(self._names.bytes(found.address, found.address + found.size))
        name = spell(Format(found.format)) if found.format in _FORMATS else f"format {found.format}"
        return f"{found.kind.name} {name} {where}"

    def _host_mapped(self, event: HostMapped) -> None:
        """What the CPU can change from now on."""
        if not self._observation.is_full(event.resource.width):
            number = self._number(event.resource)
            self._look(len(self._run.moments) - 1, number, 0, event.resource.width)
            self._mapped.add(number)

    def _host_unmapped(self, event: HostUnmapped) -> None:
        if self._observation.is_full():
            return
        number = self._number(event.resource)
        self._host_writes([number], "Unmap")
        if not event.maps:
            self._mapped.discard(number)

    def _host_writes(self, numbers: Iterable[int], name: str = "CPU") -> None:
        """What the CPU has written into these buffers since the last look."""
        for number in numbers:
            buffer = self._run.buffers[number]
            pages = [
                (page, data)
                for page, data in self._pages(number, 0, buffer.size)
                if self._run.pages.differs(page, data)
            ]
            if pages:
                operand = Operand("mapped memory", WRITE, number, 0, buffer.size)
                moment = self._host(name, f"wrote into {buffer.name}", (operand,))
                for page, data in pages:
                    self._run.pages.put(page, moment.number, data)

    def _submitted(self, event: Submitted) -> None:
        if self._observation.is_full():
            return
        self._discover()
        self._host_writes(sorted(self._mapped))
        self._last.setdefault(event.queue, []).append(event.ticket)
        recordings = self._context.recordings
        lists = [recordings[each].owner if each in recordings else f"list {each}" for each in event.lists]
        queue = self._names.queue(event.queue)
        self._host("ExecuteCommandLists", f"{', '.join(lists)} on {queue}")
        for ticket, serial in zip(range(event.ticket, -1, -1), reversed(event.lists), strict=False):
            if serial in recordings:
                listing = Listing(recordings[serial].packets, recordings[serial].commands)
                self._run.listings[self._base + event.queue, ticket] = listing
                self._observation.listed += len(listing.packets)

    def _queued(self, event: Queued) -> None:
        if self._observation.is_full():
            return
        name = ENTRY_NAMES[Opcode(event.opcode)]
        self._host_writes(sorted(self._mapped))
        fence = f"{self._names.fence(event.fence)} = {event.value} " if event.fence else ""
        self._host(name, f"{fence}queued on {self._names.queue(event.queue)}")

    def _released(self, event: ObjectReleased) -> None:
        if isinstance(event.object, d3d12.Resource) and not self._observation.is_full():
            number = self._number(event.object)
            moment = self._host("Release", str(event.object))
            self._run.buffers[number].released = moment.number
            self._mapped.discard(number)

    def _freed_memory(self, event: Freed) -> None:
        self._freed.append(event.address)  # may come from the garbage collector: nothing else may be done

    # --- the queues ---

    def _before(self, event: Executing) -> None:
        if self._observation.is_full():
            self._running = None
            return
        command = self._names.command(event)
        packet = decode_one(event.packet)
        operands = tuple(self._accessed.operands(event, packet, command))
        if self._observation.is_full(sum(map(self._new_bytes, operands))):
            self._running = None
            return
        numbers = dict.fromkeys(each.buffer for each in operands if each.buffer is not None)
        self._host_writes(numbers)
        about = self._take(lambda report: report.operation == command.place)
        self._flush()
        moment = self._add(
            Moment(
                0,
                COMMAND,
                command.command.name,
                f"{packet.opcode.name} {packet.text()}".rstrip(),
                queue=command.queue,
                queue_id=self._base + event.queue,
                list=command.list,
                ticket=event.ticket,
                packet=event.command,
                command=command.number,
                site=command.command.recorded_at,
                is_dispatch=packet.opcode.effects.computes,
                operands=operands,
                fields=self._dispatches.fields(event) or shader_fields(packet, self._gpu.memory),
                reports=about,
            )
        )
        self._running = threading.get_ident(), moment
        self._places[command.place] = moment
        self._decay(moment.number, event.queue, event.ticket)
        for each in operands:
            if each.buffer is not None:
                self._look(moment.number, each.buffer, each.begin, each.end)
                self._states.use(moment.number, event.queue, each.buffer, each.state)

    def _new_bytes(self, operand: Operand) -> int:
        """The bytes that the pages of an operand may take."""
        if operand.buffer is None:
            return 0
        first = next(iter(self._pages(operand.buffer, operand.begin, operand.begin + 1)), None)
        is_known = first is not None and first[0] in self._run.pages
        return (operand.end - operand.begin) * (operand.writes + (not is_known))

    def _barrier(self, event: Barrier) -> None:
        number = self._number_at(event.address) if event.address else None
        if event.kind == TRANSITION and number is not None and self._running is not None:
            at = self._running[1].number
            self._states.transition(at, event.queue, number, event.before, event.after, event.flags)

    def _after(self, event: Executed) -> None:
        if self._running is None:
            return
        moment, self._running = self._running[1], None
        moment.started, moment.ended = event.start, event.end
        self._keep_writes(moment)

    def _keep_writes(self, moment: Moment) -> None:
        for each in moment.operands:
            if each.writes and each.buffer is not None:
                for page, data in self._pages(each.buffer, each.begin, each.end):
                    self._run.pages.put(page, moment.number, data)

    def _decay(self, moment: int, queue: int, ticket: int) -> None:
        """States decay when the lists of one call are done; ``moment`` is the queue's next."""
        last = self._last.get(queue, [])
        while last and last[0] < ticket:
            last.pop(0)
            self._states.decay(moment, queue)

    def _at_queue(self, queue: int, name: str, text: str) -> Moment:
        """Something that a queue did by itself, between lists."""
        self._flush()
        moment = self._add(
            Moment(0, QUEUE, name, text, queue=self._names.queue(queue), queue_id=self._base + queue)
        )
        self._decay(moment.number, queue, 1 << 64)
        return moment

    def _signalled(self, event: Signalled) -> None:
        if self._observation.is_full():
            return
        text = f"{self._names.fence(event.fence)} = {event.value}"
        new = event.fence not in self._fences
        number = self._fence(event.fence)
        if event.queue:
            moment = self._at_queue(event.queue, "Signal", text)
        else:
            moment = self._host("CreateFence" if new else "Signal", text)
        self._run.fence_versions.set(moment.number, number, event.value)

    def _waited(self, event: Waited) -> None:
        if self._observation.is_full():
            return
        text = f"{self._names.fence(event.fence)} has reached {event.value}"
        if event.queue:
            self._at_queue(event.queue, "Wait", text)
        elif self._awaited.get(event.fence) != event.value:
            self._awaited[event.fence] = event.value
            self._host("wait", text)

    def _fence(self, address: int) -> int:
        number = self._fences.setdefault(address, len(self._run.fences))
        if number == len(self._run.fences):
            self._run.fences.append("")
        self._run.fences[number] = _brief(self._names.fence(address))
        return number

    def _tiles_mapped(self, event: TilesMapped) -> None:
        if self._observation.is_full():
            return
        moment = self._at_queue(event.queue, "UpdateTileMappings", "tiles are mapped")
        for number, reference in self._resources.items():
            resource = reference()
            if resource is not None and resource.heap_type is None:
                self._place(moment.number, number, resource.allocation)

    # --- buffers and their memory ---

    def _discover(self) -> None:
        """Buffers that nothing has used yet."""
        for resource in list(self._context.resources.values()):
            self._number(resource)

    def _number_at(self, address: int) -> int | None:
        resource = self._names.buffer(address)
        return None if resource is None else self._number(resource)

    def _number(self, resource: d3d12.Resource) -> int:
        """The number of a buffer; new ones are known from the next moment on."""
        number = self._buffers.setdefault(resource.address, len(self._run.buffers))
        if number == len(self._run.buffers):
            moment = len(self._run.moments)
            kind = "reserved" if resource.heap_type is None else resource.heap_type.name
            buffer = Buffer(number, "", resource.width, kind, resource.address, -1, 0, moment)
            self._run.buffers.append(buffer)
            self._resources[number] = weakref.ref(resource)
            self._place(-1, number, resource.allocation)
            self._states.add(-1, number, resource.fixed_states)
        self._run.buffers[number].name = _brief(str(resource))
        return number

    def _rename(self) -> None:
        """The last names of buffers."""
        for number, reference in self._resources.items():
            resource = reference()
            if resource is not None:
                self._run.buffers[number].name = _brief(str(resource))

    def _place(self, moment: int, number: int, allocation: Allocation) -> None:
        """Where a buffer lies, which for a reserved one may change."""
        try:
            found = spans(allocation)
        except ValueError:  # it is being released
            return
        found = [each._replace(heap=each.heap + self._base) for each in found]
        self._run.spans.set(moment, number, tuple(found))
        buffer = self._run.buffers[number]
        if buffer.heap_type != "reserved" and found:
            buffer.memory, buffer.offset = found[0].heap, found[0].offset

    def _look(self, moment: int, number: int, begin: int, end: int) -> None:
        """Keeps pages that are about to be accessed for the first time, as they are at ``moment``."""
        for page, data in self._pages(number, begin, end):
            self._run.pages.put(page, moment, data)

    def _pages(self, number: int, begin: int, end: int) -> Iterable[tuple[int, memoryview]]:
        """The pages under bytes of a living buffer, with their contents."""
        resource = self._resources[number]()
        if resource is None:
            return
        try:
            pieces = list(_pieces(resource.allocation, begin, end))
        except ValueError:  # it is being released
            return
        for storage, first, last in pieces:
            for at in range(first // PAGE * PAGE, last, PAGE):
                yield (self._base + storage.file_offset + at) // PAGE, storage.export(at, PAGE)


def _brief(text: str) -> str:
    """The text without the lines that created the objects in it."""
    return _CREATED.sub("", text)


def _pieces(allocation: Allocation, begin: int, end: int) -> Iterable[tuple[Storage, int, int]]:
    """The heap memory under bytes [begin, end) of an allocation: heap, first byte, byte after the last."""
    mapped = allocation.opened()
    if isinstance(mapped, Storage):
        yield mapped, allocation.offset + begin, allocation.offset + end
        return
    assert isinstance(mapped, Reservation)
    for run in mapped.runs:
        first, last = max(begin, run.first * TILE_SIZE), min(end, run.end * TILE_SIZE)
        if run.storage is not None and first < last:
            shift = (run.heap_tile - run.first) * TILE_SIZE
            yield run.storage, first + shift, last + shift
