"""The command processor: executes queue entries and the packets of command lists."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from . import kernels, packets
from .clock import Clock
from .descriptors import DESCRIPTOR_SIZE, Descriptor, DescriptorKind
from .events import Barrier, EventStream, Executed, Footprint, RangeRead, RangeWritten, Waited
from .faults import FaultKind, GpuFault, OutOfMemory
from .fence import Fences
from .formats import clear_pattern
from .kernels import ffi, lib
from .memory import Memory
from .packets import (
    BarrierPacket,
    ClearUavPacket,
    CopyBufferPacket,
    DispatchPacket,
    MapTilesPacket,
    Opcode,
    Packet,
    ResolveQueryPacket,
    SignalPacket,
    Tensor,
    TimestampPacket,
    WaitPacket,
    WriteImmediatePacket,
    decode_one,
)
from .queue import Queue

_STATUS = {
    lib.DMLK_BAD_PACKET: FaultKind.BAD_PACKET,
    lib.DMLK_BAD_ADDRESS: FaultKind.BAD_ADDRESS,
    lib.DMLK_BAD_DESCRIPTOR: FaultKind.BAD_DESCRIPTOR,
    lib.DMLK_OUT_OF_RANGE: FaultKind.OUT_OF_RANGE,
    lib.DMLK_NOT_IMPLEMENTED: FaultKind.NOT_IMPLEMENTED,
    lib.DMLK_OUT_OF_MEMORY: FaultKind.OUT_OF_MEMORY,
}
_TENSOR_COUNT = struct.Struct("<24xI")  # of a dispatch packet

# What a command reads and writes: operand number, whether it is written, footprint.
_Access = tuple[int, bool, Footprint]


class Processor:
    """Executes packets over one GPU's memory.  It knows nothing but bytes and addresses."""

    def __init__(self, memory: Memory, fences: Fences, clock: Clock, events: EventStream) -> None:
        self._memory = memory
        self._fences = fences
        self._clock = clock
        self._events = events
        self._fault = ffi.new("dmlk_fault *")
        self._commands: dict[int, Callable[[Any], int]] = {
            Opcode.COPY_BUFFER: self._copy_buffer,
            Opcode.CLEAR_UAV: self._clear_uav,
            Opcode.TIMESTAMP: self._timestamp,
            Opcode.RESOLVE_QUERY: self._resolve_query,
            Opcode.WRITE_IMMEDIATE: self._write_immediate,
            Opcode.BARRIER: _nothing,
            Opcode.MARKER: _nothing,
            Opcode.SET_DESCRIPTOR_HEAPS: _nothing,
        }

    # --- queue entries ---

    def run(self, queue: Queue) -> None:
        """Executes the entry at the head of the queue and takes it off.

        GpuFault: it cannot be executed.  Anything else comes from a subscriber of the events; then
        the entry stays, and goes on after the command that was announced.
        """
        entry = queue.pending[0]
        opcode = packets.HEADER.unpack_from(entry)[0]
        if opcode == Opcode.EXECUTE:
            self._run_list(queue, entry)
            queue.pop()
            return
        packet = decode_one(entry)
        try:
            if isinstance(packet, MapTilesPacket):
                self._map_tiles(packet)
                queue.pop()
            elif isinstance(packet, SignalPacket):
                queue.pop()
                self._fences.write(packet.fence, packet.value, queue.serial)
            elif isinstance(packet, WaitPacket):
                queue.pop()
                if self._events:
                    self._events.emit(Waited(queue.serial, packet.fence, packet.value))
        except GpuFault as fault:
            fault.locate(queue.label, 0, 0, entry)
            raise

    def _run_list(self, queue: Queue, entry: bytes) -> None:
        serial = int.from_bytes(entry[8:16], "little")
        base = ffi.from_buffer("uint8_t[]", entry)
        end = len(entry)
        position = queue.position or packets.EXECUTE_HEADER_SIZE
        command = queue.command
        header, events, memory = packets.HEADER.unpack_from, self._events, self._memory
        try:
            while position < end:
                start = position
                opcode, size = header(entry, start)
                position += size
                if size < packets.HEADER.size or size % 8 or position > end:
                    self._decode(entry, start)
                # Where to go on, should a subscriber of the events raise.
                queue.position, queue.command = position, command + 1
                if events:
                    self._run_watched(queue, entry, base, start, serial, command)
                elif opcode == Opcode.DISPATCH:
                    self._dispatch(entry, base, start, size)
                else:
                    self._run_command(entry, start)
                if memory.has_null_tiles:
                    memory.drop_null_writes()
                command += 1
        except GpuFault as fault:
            fault.locate(queue.label, serial, command, entry[start:position])
            raise

    def _run_watched(
        self, queue: Queue, entry: bytes, base: Any, start: int, serial: int, command: int
    ) -> None:
        """One command, with the events that tell of it: what it will touch, and that it ran."""
        packet = self._decode(entry, start)
        place = (queue.serial, queue.completed + 1, serial, command)
        for operand, written, footprint in self._accesses(packet):
            event = RangeWritten if written else RangeRead
            self._events.emit(event(*place, operand, footprint))
        before = self._clock.now
        if isinstance(packet, DispatchPacket):
            self._dispatch(entry, base, start, packet.size)
        else:
            self._run_command(entry, start)
        if isinstance(packet, BarrierPacket):
            self._events.emit(
                Barrier(
                    *place,
                    packet.kind,
                    packet.address,
                    packet.address_after,
                    packet.before,
                    packet.after,
                    packet.flags,
                )
            )
        data = entry[start : start + packet.size]
        self._events.emit(Executed(*place, packet.opcode, data, before, self._clock.now))

    def _decode(self, entry: bytes, start: int) -> Packet:
        try:
            return decode_one(entry, start)
        except ValueError as error:
            raise GpuFault(FaultKind.BAD_PACKET, str(error)) from None

    def _map_tiles(self, packet: MapTilesPacket) -> None:
        allocation = self._memory.find(packet.allocation)
        if allocation is None:
            where = self._memory.describe(packet.allocation)
            message = f"Tiles are mapped into address {packet.allocation:#x}, which is {where}."
            raise GpuFault(FaultKind.BAD_ADDRESS, message, address=packet.allocation)
        for tile, count, serial, heap_tile, reuse in packet.regions:
            heap = self._memory.find_heap(serial)
            if serial and heap is None:
                raise GpuFault(
                    FaultKind.HEAP_RELEASED,
                    f"Tiles of {allocation.describe()} are mapped to heap {serial}, which has been released.",
                    address=packet.allocation,
                )
            try:
                self._memory.map_tiles(allocation, tile, count, heap, heap_tile, reuse=reuse)
            except OutOfMemory as error:
                raise GpuFault(FaultKind.OUT_OF_MEMORY, str(error), address=packet.allocation) from None
            self._clock.advance()

    # --- commands of a list ---

    def _dispatch(self, entry: bytes, base: Any, start: int, size: int) -> None:
        segments, count = self._memory.segments()
        status = lib.dmlk_dispatch(base + start, size, segments, count, self._fault)
        if status != lib.DMLK_OK:
            raise self._dispatch_fault(status, entry, start)
        tensors = _TENSOR_COUNT.unpack_from(entry, start)[0]
        moved = _byte_sizes(tensors).unpack_from(entry, start + packets.DISPATCH_HEADER_SIZE)
        self._clock.advance(sum(moved))

    def _run_command(self, entry: bytes, start: int) -> None:
        packet = self._decode(entry, start)
        run = self._commands.get(packet.opcode)
        if run is None:
            message = f"A command list holds a {packet.opcode.name} packet, which only a queue may hold."
            raise GpuFault(FaultKind.BAD_PACKET, message)
        self._clock.advance(run(packet))

    def _copy_buffer(self, packet: CopyBufferPacket) -> int:
        self._copy(packet.destination, packet.source, packet.byte_count)
        return 2 * packet.byte_count

    def _copy(self, destination: int, source: int, size: int) -> None:
        if size:
            to, origin = self._memory.translate(destination, size), self._memory.translate(source, size)
            ffi.memmove(ffi.cast("uint8_t *", to), ffi.cast("uint8_t *", origin), size)

    def _clear_uav(self, packet: ClearUavPacket) -> int:
        view = self._view_to_clear(packet)
        if view.address == 0:
            return 0
        pattern = clear_pattern(view.format, packet.values, packet.is_float)
        if pattern is None:
            raise GpuFault(
                FaultKind.NOT_IMPLEMENTED,
                f"Views of DXGI_FORMAT {view.format} cannot be cleared yet.",
                address=view.address,
            )
        width = len(pattern)
        size = view.size // width * width
        elements = np.frombuffer(self._memory.view(view.address, size), np.uint8).reshape(-1, width)
        moved = 0
        for first, end in packet.ranges or ((0, len(elements)),):
            part = elements[first:end]
            part[:] = pattern
            moved += part.size
        return moved

    def _view_to_clear(self, packet: ClearUavPacket) -> Descriptor:
        descriptor = Descriptor.decode(self._memory.view(packet.table, DESCRIPTOR_SIZE))
        if descriptor.kind != DescriptorKind.UAV or descriptor.stride:
            found = "UAV of a structured buffer" if descriptor.stride else descriptor.kind.name
            raise GpuFault(
                FaultKind.BAD_DESCRIPTOR,
                f"The descriptor at {packet.table:#x} cannot be cleared: it is {found}, "
                "not the UAV of a raw or typed buffer.",
                address=packet.table,
            )
        return descriptor

    def _timestamp(self, packet: TimestampPacket) -> int:
        self._memory.view(packet.address, 8)[:] = self._clock.now.to_bytes(8, "little")
        return 8

    def _resolve_query(self, packet: ResolveQueryPacket) -> int:
        self._copy(packet.destination, packet.source, 8 * packet.count)
        return 16 * packet.count

    def _write_immediate(self, packet: WriteImmediatePacket) -> int:
        for address, value, _mode in packet.writes:
            self._memory.view(address, 4)[:] = value.to_bytes(4, "little")
        return 4 * len(packet.writes)

    # --- what a command touches ---

    def _accesses(self, packet: Packet) -> list[_Access]:
        if isinstance(packet, DispatchPacket):
            return self._dispatch_accesses(packet)
        if isinstance(packet, CopyBufferPacket):
            return _copy_accesses(packet.destination, packet.source, packet.byte_count)
        if isinstance(packet, ResolveQueryPacket):
            return _copy_accesses(packet.destination, packet.source, 8 * packet.count)
        if isinstance(packet, TimestampPacket):
            return [(0, True, _bytes_at(packet.address, 8))]
        if isinstance(packet, WriteImmediatePacket):
            return [(i, True, _bytes_at(write[0], 4)) for i, write in enumerate(packet.writes)]
        if isinstance(packet, ClearUavPacket):
            return self._clear_accesses(packet)
        return []

    def _dispatch_accesses(self, packet: DispatchPacket) -> list[_Access]:
        accesses: list[_Access] = []
        for operand, tensor in enumerate(packet.tensors):
            footprint = None if tensor.absent else self._tensor_footprint(packet.table, tensor)
            if footprint is None:
                continue
            if tensor.access & packets.READ:
                accesses.append((operand, False, footprint))
            if tensor.access & packets.WRITE:
                accesses.append((operand, True, footprint))
        return accesses

    def _tensor_footprint(self, table: int, tensor: Tensor) -> Footprint | None:
        """Which elements the tensor covers; None when its descriptor does not say: executing it will
        tell what is wrong."""
        address = table + tensor.slot * DESCRIPTOR_SIZE
        allocation = self._memory.find(address)
        if allocation is None or address + DESCRIPTOR_SIZE > allocation.address + allocation.size:
            return None
        view = Descriptor.decode(self._memory.view(address, DESCRIPTOR_SIZE))
        if view.address == 0 or view.kind == DescriptorKind.UNWRITTEN:
            return None
        bits = type_bits(tensor.data_type)
        return Footprint(view.address + tensor.offset, bits, tensor.sizes, tensor.strides)

    def _clear_accesses(self, packet: ClearUavPacket) -> list[_Access]:
        view = self._view_to_clear(packet)
        pattern = clear_pattern(view.format, packet.values, packet.is_float)
        if view.address == 0 or pattern is None:
            return []
        width = len(pattern)
        count = view.size // width
        accesses: list[_Access] = []
        for first, end in packet.ranges or ((0, count),):
            end = min(end, count)
            if first < end:
                accesses.append((0, True, _bytes_at(view.address + first * width, (end - first) * width)))
        return accesses

    # --- messages ---

    def _dispatch_fault(self, status: int, entry: bytes, start: int) -> GpuFault:
        packet = self._decode(entry, start)
        assert isinstance(packet, DispatchPacket)
        kind = _STATUS.get(status, FaultKind.BAD_PACKET)
        known = packet.kernel < kernels.count()
        name = f"kernel '{kernels.name(packet.kernel)}'" if known else f"kernel {packet.kernel}"
        fault = self._fault
        tensor = f"tensor {fault.tensor} (descriptor slot {fault.slot}) of {name}"
        where = self._memory.describe(fault.address)
        messages = {
            FaultKind.BAD_PACKET: f"The dispatch packet of {name} is malformed.",
            FaultKind.BAD_ADDRESS: (
                f"Address {fault.address:#x}, used for {tensor}, lies in no allocation it may use: "
                f"it is {where}; {fault.needed} bytes are needed, {fault.given} are there."
            ),
            FaultKind.BAD_DESCRIPTOR: (
                f"The descriptor at {fault.address:#x} of {tensor} was never written, "
                f"or is of a kind that a tensor cannot use ({where})."
            ),
            FaultKind.OUT_OF_RANGE: (
                f"The view of {tensor} holds {fault.given} bytes, but {fault.needed} are needed."
            ),
            FaultKind.NOT_IMPLEMENTED: f"There is no code of {name} for {_types(packet)}.",
            FaultKind.OUT_OF_MEMORY: f"The host has no memory left for {name}.",
        }
        return GpuFault(kind, messages[kind], address=fault.address)


def _nothing(packet: Packet) -> int:
    return 0


@cache
def _byte_sizes(tensors: int) -> struct.Struct:
    """Reads byte_size of each of so many dmlk_tensor."""
    return struct.Struct("<" + "24xQ64x" * tensors)


@cache
def type_bits(data_type: int) -> int:
    """Bits of one element of an ``enum dmlk_type``."""
    name = packets.type_name(data_type)
    digits = name.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return int(digits) if digits.isdigit() else 8


def _types(packet: DispatchPacket) -> str:
    return ", ".join(packets.type_name(each.data_type) for each in packet.tensors if not each.absent)


def _bytes_at(address: int, size: int) -> Footprint:
    return Footprint(address, 8, (size,), (1,))


def _copy_accesses(destination: int, source: int, size: int) -> list[_Access]:
    if size == 0:
        return []
    return [(0, False, _bytes_at(source, size)), (1, True, _bytes_at(destination, size))]
