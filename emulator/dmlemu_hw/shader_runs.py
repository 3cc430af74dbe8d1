"""Runs dispatches of shaders: from root arguments and descriptors to the call of their native code."""

from __future__ import annotations

from random import Random
from time import perf_counter
from typing import Any

from .descriptors import Descriptor, DescriptorKind
from .events import READ, WRITE
from .faults import FaultKind, GpuFault
from .formats import formats_of
from .group_orders import Interrupted, Written, contents, is_comparable, order_findings, restore
from .kernels import ffi, lib, take_interrupt
from .memory import Memory
from .packets import DispatchShaderPacket, ExecuteIndirectPacket
from .programs import Kind, NativeCode, Program, ProgramRange, Source, WatchedCode, address_in
from .shader_views import Table, commands_of, declared, fits, heap_of, program_of, shader_accesses, table_of
from .watched_runs import Ahead, spans_of

__all__ = ["ShaderRuns"]

MOST_GROUPS = 65535  # along each dimension: D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION
_ANY = ffi.new("dmlk_shader_want *", {"kind": lib.DMLK_SHADER_ANY})
_KINDS = {
    DescriptorKind.CBV: lib.DMLK_SHADER_CBV,
    DescriptorKind.SRV: lib.DMLK_SHADER_SRV,
    DescriptorKind.UAV: lib.DMLK_SHADER_UAV,
}


class _Call:
    """The arguments of one dispatch in C; what they point to lives as long as this object."""

    def __init__(self, program: Program, groups: tuple[int, int, int]) -> None:
        self.program = program
        self.fault = ffi.new("dmlk_shader_fault *")
        self.ranges = ffi.new("dmlk_shader_range[]", max(1, len(program.ranges)))
        self.firsts: list[int] = []  # the id of the first view of each range
        self._next_id = 0
        self._kept: list[Any] = []
        self.call = ffi.new(
            "dmlk_shader_call *",
            {
                "ranges": self.ranges,
                "groups": list(groups),
                "flush": program.flush,
                "fault": self.fault,
            },
        )

    def set_code(self, code: NativeCode, shared_bytes: int) -> None:
        self.call.run = ffi.cast("dmlk_shader_group *", code.address)
        self.call.frame_bytes, self.call.shared_bytes = code.frame_bytes, shared_bytes

    def run(self, limit: float) -> tuple[int, bool]:
        """The status, and whether it was stopped after ``limit`` seconds (0: it has any number of them)."""
        is_late = ffi.new("int *")
        status: int = lib.dmlk_run_shader_within(self.call, limit, is_late)
        return status, bool(is_late[0])

    def add(self, views: Any, count: int, *kept: Any) -> None:
        """The views of the next range."""
        number = len(self.firsts)
        self.ranges[number].views, self.ranges[number].count = views, count
        self.firsts.append(self._next_id)
        self._next_id += count
        self._kept += [views, *kept]

    def add_heap(self, views: Any, count: int) -> None:
        heap = ffi.new("dmlk_shader_range *", {"views": views, "count": count})
        self.call.heap = heap
        self.firsts.append(self._next_id)
        self._kept += [views, heap]

    @property
    def next_id(self) -> int:
        return self._next_id

    def operand(self, view: int) -> int:
        """The range of the view with that id."""
        return max((i for i, first in enumerate(self.firsts) if first <= view), default=0)

    def view(self, id: int) -> tuple[int, int, Any]:
        """The range of a view, its index there, and the view itself."""
        operand = self.operand(id)
        ranges = self.ranges[operand] if operand < len(self.program.ranges) else self.call.heap
        index = id - self.firsts[operand]
        return operand, index, ranges.views[index]


class ShaderRuns:
    """Runs programs on one GPU's memory.

    ``order`` draws the order of groups under chaos, ``poison`` the bytes of groupshared memory.  ``limit``:
    seconds that a dispatch may take; 0: any number.  ``ahead``: what the next command did when it ran ahead.
    """

    def __init__(self, memory: Memory, order: Random | None, poison: Random | None = None) -> None:
        self._memory = memory
        self._order = order
        self._poison = poison
        self.limit = 0.0
        self.ahead: Ahead | None = None

    def run_ahead(self, packet: DispatchShaderPacket | ExecuteIndirectPacket) -> Ahead | None:
        """Runs the command before its turn, watched; :meth:`dispatch` or :meth:`execute_indirect` finish it.

        None: its code cannot be watched, or it is malformed, which running it says.
        """
        self.ahead = None
        try:
            program = program_of(packet.program, self._memory)
            if program.watched is None:
                return None
            touched = list(shader_accesses(packet, self._memory))
            ahead = Ahead(program.serial, spans_of(touched, self._memory))
            ahead.accesses += [each for each in touched if each.operand > program.heap_operand]
        except GpuFault:
            return None
        try:
            if isinstance(packet, DispatchShaderPacket):
                ahead.moved = self._dispatch(packet, ahead)
            else:
                ahead.moved = self._execute_indirect(packet, ahead)
        except GpuFault as fault:
            ahead.fault = fault
        finally:
            ahead.take_back()
        self.ahead = ahead
        return ahead

    def forget_ahead(self) -> None:
        """The command is not executed."""
        self.ahead = None

    def dispatch(self, packet: DispatchShaderPacket) -> int:
        """Runs it; returns the number of bytes that stand for its time.  GpuFault."""
        ahead, self.ahead = self.ahead, None
        return self._dispatch(packet) if ahead is None else ahead.finish()

    def execute_indirect(self, packet: ExecuteIndirectPacket) -> int:
        """Runs its dispatches, one after the other; returns as :meth:`dispatch`."""
        ahead, self.ahead = self.ahead, None
        return self._execute_indirect(packet) if ahead is None else ahead.finish()

    def _dispatch(self, packet: DispatchShaderPacket, ahead: Ahead | None = None) -> int:
        program = program_of(packet.program, self._memory)
        if 0 in packet.groups:
            return 0
        call = self._call(program, packet)
        code = program.watched if ahead is not None else None
        if ahead is not None and code is not None:
            self._run_watched(call, packet, ahead, code)
        else:
            self._run(call, packet)
        x, y, z = packet.groups
        return x * y * z * program.threads

    def _run(self, call: _Call, packet: DispatchShaderPacket) -> None:
        call.set_code(call.program.code, call.program.shared_bytes)
        status, is_late = call.run(self.limit)
        if status != lib.DMLK_OK:
            raise self._fault(status, is_late, call, packet)

    def _run_watched(
        self, call: _Call, packet: DispatchShaderPacket, ahead: Ahead, code: WatchedCode
    ) -> None:
        """And once more in the reverse order, where that may change the result and nothing else was found."""
        compares = code.order_matters and not ahead.findings and max(packet.groups) > 1
        before, began = ahead.before(), perf_counter()
        status, is_late, watch = ahead.run(call, code, self.limit, before)
        if status != lib.DMLK_OK:
            raise self._fault(status, is_late, call, packet)
        if compares and watch.has_atomics and is_comparable(ahead.findings, watch):
            first = Written(contents(ahead.written), watch)
            try:
                found = order_findings(call, code, ahead.written, before, first, perf_counter() - began)
            except Interrupted:
                raise self._fault(lib.DMLK_STOPPED, False, call, packet) from None
            finally:
                restore(ahead.written, first.contents)
            ahead.tell(found, call)

    def _execute_indirect(self, packet: ExecuteIndirectPacket, ahead: Ahead | None = None) -> int:
        moved = 0
        for number, each in enumerate(commands_of(packet, self._memory)):
            if max(each.groups) > MOST_GROUPS:
                raise GpuFault(
                    FaultKind.BAD_ARGUMENT,
                    f"Command {number} in the argument buffer dispatches {each.groups} groups; "
                    f"at most {MOST_GROUPS} are possible along each dimension.",
                    address=packet.address + number * packet.stride,
                )
            moved += packet.command_size + self._dispatch(each, ahead)
        return moved

    # --- the call ---

    def _call(self, program: Program, packet: DispatchShaderPacket) -> _Call:
        if len(packet.arguments) != 4 * program.words:
            raise GpuFault(
                FaultKind.BAD_PACKET,
                f"The dispatch has {len(packet.arguments) // 4} DWORDs of root arguments; "
                f"{program.label} takes {program.words}.",
            )
        call = _Call(program, packet.groups)
        for number, each in enumerate(program.ranges):
            if each.source is Source.CONSTANTS:
                _add_constants(call, each, packet.arguments)
            elif each.source is Source.ROOT:
                self._add_root(call, number, each, packet.arguments)
            else:
                self._add_table(call, number, each, packet.arguments)
        if program.uses_heap:
            self._add_heap(call, packet)
        if self._order is not None:
            call.call.order = self._order.randrange(1, 1 << 63)
        if self._poison is not None:
            call.call.fill = self._poison.randrange(1, 256)
        return call

    def _add_root(self, call: _Call, number: int, each: ProgramRange, arguments: bytes) -> None:
        address = address_in(arguments, each.word)
        allocation = self._memory.find(address)
        if allocation is None or not allocation.is_buffer:
            where = self._memory.describe_address(address)
            raise GpuFault(
                FaultKind.BAD_ADDRESS,
                f"The root descriptor of {each.title} of {call.program.label} is {address:#x}, which lies in "
                f"{where}.",
                address=address,
                operand=number,
                access=READ | (WRITE if each.writes else 0),
            )
        at = address - allocation.address
        flags = lib.DMLK_SHADER_ROOT | _KINDS[each.descriptor]
        row = {
            "base": ffi.cast("uint8_t *", allocation.host + at),
            "bytes": allocation.size - at,
            "stride": each.stride,
            "flags": flags | (lib.DMLK_SHADER_RAW if each.kind is Kind.RAW else 0),
            "id": call.next_id,
        }
        call.add(ffi.new("dmlk_shader_view[1]", [row]), 1, allocation)

    def _add_table(self, call: _Call, number: int, each: ProgramRange, arguments: bytes) -> None:
        table = table_of(number, each, arguments, self._memory)
        want, _ = call.program.wants[number]
        views, usable = self._views(table, want, call.next_id)
        if each.count == 1 and not usable:
            raise self._unusable(call.program, number, each, table)
        call.add(views, len(table))

    def _add_heap(self, call: _Call, packet: DispatchShaderPacket) -> None:
        table = heap_of(call.program, packet, self._memory)
        views, _ = self._views(table, _ANY, call.next_id)
        call.add_heap(views, len(table))

    def _views(self, table: Table, want: Any, first: int) -> tuple[Any, int]:
        count = len(table)
        views = ffi.new("dmlk_shader_view[]", count)
        segments, known = self._memory.segments()
        data = ffi.from_buffer("uint8_t[]", table.data)
        usable = lib.dmlk_shader_views(data, count, segments, known, want, first, views)
        return views, usable

    # --- faults ---

    def _unusable(self, program: Program, number: int, each: ProgramRange, table: Table) -> GpuFault:
        """Why the only descriptor of a range cannot be used."""
        found, what = table.descriptor(0), f"{each.title} of {program.label}"
        where = f"The descriptor of {what} at {table.handle:#x}"
        fault = GpuFault(
            FaultKind.BAD_DESCRIPTOR,
            f"{where} is {_spell(found)}; the shader declares {declared(each)}.",
            address=0 if found is None else found.address,
            handle=table.handle,
            operand=number,
            access=READ | (WRITE if each.writes else 0),
        )
        fault.found, fault.expected = _spell(found), declared(each)
        if found is None:
            return fault
        fault.given, fault.needed = found.kind, found.size
        if found.kind is DescriptorKind.UNWRITTEN:
            fault.kind = FaultKind.DESCRIPTOR_UNWRITTEN
            fault.message = f"{where} was never written."
        elif fits(found, each, formats_of(each.element)):
            self._explain_memory(fault, found, what)
        return fault

    def _explain_memory(self, fault: GpuFault, found: Descriptor, what: str) -> None:
        """The descriptor is right; its buffer is not there."""
        address, size = found.address, found.size
        if found.counter_address and self._memory.find(address) is not None:
            address, size = found.counter_address, 4
        fault.found = fault.expected = ""
        fault.address, fault.needed = address, size
        fault.message = f"Address {address:#x} of {what} lies in {self._memory.describe_address(address)}."
        released = self._memory.find(address) is None and self._memory.find_freed(address) is not None
        fault.kind = FaultKind.DESCRIPTOR_STALE if released else FaultKind.BAD_ADDRESS

    def _fault(self, status: int, is_late: bool, call: _Call, packet: DispatchShaderPacket) -> GpuFault:
        label = call.program.label
        if status == lib.DMLK_STOPPED and is_late:
            text = f"{label} did not end within {self.limit:g} seconds, the limit of a dispatch."
            return GpuFault(FaultKind.TIMED_OUT, text)
        if status == lib.DMLK_STOPPED:
            fault = GpuFault(
                FaultKind.STOPPED,
                f"The dispatch of {label} was interrupted by the host while it ran; "
                "its results are undefined.",
            )
            fault.interrupt = take_interrupt()
            return fault
        if status == lib.DMLK_OUT_OF_MEMORY:
            return GpuFault(FaultKind.OUT_OF_MEMORY, f"The host has no memory left for {label}.")
        return self._outside(call, packet)

    def _outside(self, call: _Call, packet: DispatchShaderPacket) -> GpuFault:
        """An access outside of the resource of a root descriptor."""
        found, operand = call.fault, call.operand(call.fault.view)
        each = call.program.ranges[operand]
        address = address_in(packet.arguments, each.word)
        view = call.ranges[operand].views[0]
        x, y, z = found.group
        done = "writes" if found.access & WRITE else "reads"
        line = f", line {found.line}" if found.line else ""
        return GpuFault(
            FaultKind.OUTSIDE_ROOT,
            f"Thread {found.thread} of group ({x}, {y}, {z}) {done} {found.bytes} bytes at byte "
            f"{found.offset} of {each.view(0)}{line}, a root descriptor, whose resource ends after "
            f"{view.bytes} bytes.",
            address=address,
            operand=operand,
            access=found.access,
            needed=found.offset + found.bytes,
            given=view.bytes,
        )


def _add_constants(call: _Call, each: ProgramRange, arguments: bytes) -> None:
    data = arguments[4 * each.word : 4 * (each.word + each.count)]
    memory = ffi.new("uint8_t[]", data + bytes(-len(data) % 16))
    row = {"base": memory, "bytes": len(data), "flags": lib.DMLK_SHADER_CBV, "id": call.next_id}
    call.add(ffi.new("dmlk_shader_view[1]", [row]), 1, memory)


def _spell(found: Descriptor | None) -> str:
    """``"an SRV of a structured buffer with elements of 16 bytes"``."""
    if found is None:
        return "bytes that are not a descriptor"
    name = {DescriptorKind.CBV: "a CBV", DescriptorKind.SRV: "an SRV", DescriptorKind.UAV: "a UAV"}.get(
        found.kind
    )
    if name is None:
        return "an unwritten descriptor"
    if found.kind is DescriptorKind.CBV:
        return name
    if not found.address:
        return f"{name} that is a null descriptor"
    if found.flags:
        return f"{name} of a raw buffer"
    if not found.stride:
        return f"{name} of a typed buffer of format {found.format}"
    counter = "" if found.counter_address or found.kind is DescriptorKind.SRV else " without a counter"
    return f"{name} of a structured buffer with elements of {found.stride} bytes{counter}"
