"""Watching memory: what used the bytes of each buffer, for ``buffer.map_picture()``."""

from __future__ import annotations

import weakref
from typing import NamedTuple

from dmlemu_hw.events import MAYBE_READ, READ, WRITE, Access, Accessing, Footprint, Subscription
from dmlemu_hw.packets import Opcode

from .. import d3d12, dml
from ..checks.framework.names import Names
from ..d3d12.memory.resource import HostMapped, HostUnmapped
from ..errors import spell_site
from ..pictures.memory_map import MemoryMap
from ..pictures.memory_model import Command, Use
from ..watching import Watching

__all__ = ["MemoryWatch", "watch_memory"]

_LIMIT = 100_000  # uses that are kept
_READS = READ | MAYBE_READ


def watch_memory(device: d3d12.Device | dml.Device | None = None, *, limit: int = _LIMIT) -> MemoryWatch:
    """Watches the memory of ``device`` while the ``with`` block runs, or of every device that is created in
    it (None); ``buffer.map_picture()`` shows what was seen, in the block and after it.

    ``limit``: uses that are kept; pictures say how many are left out.
    """
    return MemoryWatch(device, limit=limit)


class MemoryWatch(Watching["_Watch"]):
    """The context manager of :func:`watch_memory`."""

    def __init__(self, device: d3d12.Device | dml.Device | None, *, limit: int) -> None:
        super().__init__(device)
        if limit < 0:
            raise ValueError(f"limit ({limit}) is negative.")
        self._limit = limit

    def __enter__(self) -> MemoryWatch:
        self.start()
        return self

    def watch(self, device: d3d12.Device) -> _Watch:
        return _Watch(device, self._limit)


class _Place(NamedTuple):
    """Where a buffer lies: ``memory`` is equal for buffers that may share bytes."""

    memory: tuple[str, int]
    offset: int
    size: int
    title: str


class _Seen(NamedTuple):
    """A use of a buffer, counted from the beginning of its memory."""

    place: _Place
    command: int
    operand: str
    access: int
    footprint: Footprint


class _Watch:
    """Watches one device; ``device.context.memory_uses`` until another watch begins."""

    def __init__(self, device: d3d12.Device, limit: int) -> None:
        self._device = weakref.ref(device)
        self._names = Names(device)
        self._limit = limit
        self._left_out = 0
        self._places: dict[int, _Place] = {}  # by address
        self._commands: list[Command] = []
        self._latest: dict[int, tuple[int, int, int]] = {}  # queue: ticket, command, its number here
        self._seen: list[_Seen] = []
        self._known: set[_Seen] = set()
        self._subscriptions: list[Subscription] = []
        for callback, kind in (
            (self._before, Accessing),
            (self._mapped, HostMapped),
            (self._unmapped, HostUnmapped),
        ):
            device.events.subscribe(callback, kind, kept=self._subscriptions)
        device.context.memory_uses = self

    def close(self) -> None:
        for each in self._subscriptions:
            each.close()
        self._subscriptions.clear()

    def picture(self, buffer: d3d12.Resource) -> MemoryMap:
        """Everything that used the buffer, or another one placed over its memory."""
        own = self._place(buffer)
        uses = [
            _use(seen, own)
            for seen in self._seen
            if seen.place.memory == own.memory and _meets(seen.footprint, own)
        ]
        where = f", placed at byte {own.offset} of {buffer.heap.title()}" if buffer.heap else ""
        title = f"{buffer.title()}, {own.size} bytes{where}"
        return MemoryMap(title, own.size, self._commands, uses, self._left_out)

    def _place(self, buffer: d3d12.Resource) -> _Place:
        address = buffer.get_gpu_virtual_address()
        found = self._places.get(address)
        if found is None or found.title != buffer.title():
            heap = buffer.heap
            memory = ("buffer", address) if heap is None else ("heap", heap.hardware.serial)
            offset = 0 if heap is None else buffer.allocation.entry.offset
            found = self._places[address] = _Place(memory, offset, buffer.width, buffer.title())
        return found

    # --- events ---

    def _before(self, event: Accessing) -> None:
        named = self._names.command(event)
        latest = self._latest.get(event.queue)
        if latest is None or latest[:2] != (event.ticket, named.number):
            site = named.command.site
            place = f"command {named.number} of {named.list}, on {named.queue}"
            is_dispatch = Opcode(event.opcode).effects.computes
            number = self._command(named.command.name, place, spell_site(site) if site else "", is_dispatch)
            latest = self._latest[event.queue] = event.ticket, named.number, number
        for access in event.accesses:
            self._access(latest[2], named.operand(access), access)

    def _command(self, name: str, place: str, recorded_at: str, is_dispatch: bool) -> int:
        self._commands.append(Command(name, place, recorded_at, is_dispatch))
        return len(self._commands) - 1

    def _access(self, command: int, operand: str, access: Access) -> None:
        buffer = self._names.buffer(access.footprint.address)
        if buffer is None:
            return  # the access faults
        place = self._place(buffer)
        start = place.offset + access.footprint.address - buffer.get_gpu_virtual_address()
        footprint = access.footprint._replace(address=start)
        self._add(_Seen(place, command, operand, access.access, footprint))

    def _add(self, seen: _Seen) -> None:
        if seen in self._known:
            return  # another packet of the same dispatch
        if len(self._seen) >= self._limit:
            self._left_out += 1
            return
        self._known.add(seen)
        self._seen.append(seen)

    def _mapped(self, event: HostMapped) -> None:
        self._host(event.resource, "Map", event.read, READ)

    def _unmapped(self, event: HostUnmapped) -> None:
        self._host(event.resource, "Unmap", event.written, WRITE)

    def _host(self, buffer: d3d12.Resource, call: str, span: tuple[int, int], access: int) -> None:
        begin, end = span
        if begin < end:
            place = self._place(buffer)
            number = self._command(call, "by the host", "", False)
            footprint = Footprint(place.offset + begin, 8, (end - begin,), (1,))
            self._add(_Seen(place, number, "", access, footprint))


def _meets(footprint: Footprint, place: _Place) -> bool:
    begin, end = footprint.byte_range
    return begin < place.offset + place.size and place.offset < end


def _use(seen: _Seen, own: _Place) -> Use:
    """The use, counted from the beginning of the pictured buffer."""
    begin, end = seen.footprint.byte_range
    place = f"bytes [{begin - seen.place.offset}, {end - seen.place.offset})"
    if seen.place != own:
        place += f" of {seen.place.title}"
    return Use(
        seen.command,
        "" if seen.place == own else seen.place.title,
        seen.operand,
        begin - own.offset,
        end - own.offset,
        place,
        bool(seen.access & _READS),
        bool(seen.access & WRITE),
        seen.footprint,
    )
