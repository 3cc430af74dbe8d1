"""Reordering: a random permitted execution order of the commands of one ExecuteCommandLists call.

Commands start in order, but only barriers make one wait for the completion of another (Direct3D 12: "UAV
barriers", "transition barriers", "aliasing barriers"); copies that write the same bytes of a buffer keep
their order without one.  Commands that no barrier orders may be swapped, which exposes missing barriers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import NamedTuple

from .events import READ, WRITE, Accesses
from .faults import GpuFault
from .footprints import accesses, dispatch_accesses
from .kernels import ffi
from .memory import Memory
from .packets import HEADER, BarrierPacket, Opcode, Packet, commands, decode_one, is_joined

_TRANSITION, _ALIASING, _UAV = range(3)  # kinds of barriers
_BEGIN_ONLY = 1  # flag of a transition: only the end half orders commands
_BY_VIEW = commands(lambda effects: effects.by_view)
_READS_QUERIES = commands(lambda effects: effects.queries == READ)
_REMARKS = commands(lambda effects: not effects.on_memory) - {Opcode.BARRIER}


class Step(NamedTuple):
    """One packet: bytes [start, end) of one of the lists, and its number in that list."""

    list: int
    start: int
    end: int
    command: int


class _Reach(NamedTuple):
    """Accesses that a barrier covers: of one resource by address (0: any), or only those through views."""

    address: int
    by_view: bool


@dataclass
class _Unit:
    """A command: packets that stay together, and their ordering properties."""

    opcode: int
    steps: list[Step]
    barrier: tuple[_Reach, _Reach] | None = None  # accesses before it and after it
    reaches: dict[_Reach, None] = field(default_factory=dict)  # scopes that cover it; an ordered set
    writes: list[tuple[int, int]] = field(default_factory=list)  # byte ranges that a copy writes
    comes_last: bool = False  # it waits for all commands before it


def shuffled(lists: Sequence[bytes], memory: Memory, random: Random) -> list[Step]:
    """A permitted order of the packets of the lists; the recorded order if they do not decode."""
    units = list(_units(lists, memory))
    followers: list[list[int]] = [[] for _ in units]
    waits = [0] * len(units)
    for before, after in _constraints(units):
        followers[before].append(after)
        waits[after] += 1
    ready = [number for number, count in enumerate(waits) if count == 0]
    order: list[Step] = []
    while ready:
        drawn = random.randrange(len(ready))
        ready[drawn], ready[-1] = ready[-1], ready[drawn]
        number = ready.pop()
        order += units[number].steps
        for follower in followers[number]:
            waits[follower] -= 1
            if waits[follower] == 0:
                ready.append(follower)
    return order


def _units(lists: Sequence[bytes], memory: Memory) -> Iterator[_Unit]:
    """The commands in recorded order; everything from an invalid packet on is one command."""
    unit: _Unit | None = None
    for number, data in enumerate(lists):
        base = ffi.from_buffer("uint8_t[]", data)
        start = command = 0
        while start < len(data):
            opcode, size = HEADER.unpack_from(data, start) if len(data) - start >= HEADER.size else (0, 0)
            end = start + size
            if size < HEADER.size or size % 8 or end > len(data):
                opcode, end = 0, len(data)
            packet = data[start:end]
            if unit is None or not is_joined(packet):
                if unit is not None:
                    yield unit
                unit = _Unit(opcode, [])
            unit.steps.append(Step(number, start, end, command))
            _describe(unit, opcode, packet, base + start, memory)
            start, command = end, command + 1
    if unit is not None:
        yield unit


def _describe(unit: _Unit, opcode: int, data: bytes, pointer: object, memory: Memory) -> None:
    """Adds the accesses of a packet of the unit; a malformed one waits for all others, and will fault."""
    try:
        if opcode == Opcode.DISPATCH:
            touched = dispatch_accesses(data, pointer, memory, planned=True)
        else:
            packet = decode_one(data)
            touched = accesses(packet, memory)
            _describe_kind(unit, packet, touched)
    except (ValueError, GpuFault):
        unit.comes_last = True
        return
    by_view = opcode in _BY_VIEW
    for i in range(len(touched)):
        allocation = memory.find(touched.pointer[i].address)
        address = 0 if allocation is None else allocation.address
        for place in (address, 0):
            unit.reaches[_Reach(place, False)] = None
            if by_view:
                unit.reaches[_Reach(place, True)] = None


def _describe_kind(unit: _Unit, packet: Packet, touched: Accesses) -> None:
    effects = packet.opcode.effects
    if isinstance(packet, BarrierPacket):
        unit.barrier = _scope(packet)
    elif effects.queries == WRITE or any(mode for _, _, mode in packet.stores()):
        unit.comes_last = True
    if effects.writes and not effects.by_view:
        unit.writes = [each.footprint.byte_range for each in touched if each.access & WRITE]


def _scope(packet: BarrierPacket) -> tuple[_Reach, _Reach] | None:
    """The accesses before the barrier that complete before the accesses after it start."""
    if packet.kind == _ALIASING:
        return _Reach(packet.address, False), _Reach(packet.address_after, False)
    if packet.kind == _TRANSITION and packet.flags & _BEGIN_ONLY:
        return None
    reach = _Reach(packet.address, packet.kind == _UAV)
    return reach, reach


def _constraints(units: Sequence[_Unit]) -> Iterator[tuple[int, int]]:
    """Pairs of indices: the first command completes before the second starts."""
    yield from _of_barriers(units)
    yield from _of_copies(units)
    yield from _of_clocks(units)
    remarks = [number for number, unit in enumerate(units) if unit.opcode in _REMARKS]
    yield from pairwise(remarks)


def _of_barriers(units: Sequence[_Unit]) -> Iterator[tuple[int, int]]:
    """Each barrier waits for the last barrier of equal scope and the commands it covers since then."""
    scopes = dict.fromkeys(unit.barrier for unit in units if unit.barrier is not None)
    before, after = defaultdict(list), defaultdict(list)
    for scope in scopes:
        before[scope[0]].append(scope)
        after[scope[1]].append(scope)
    since: dict[tuple[_Reach, _Reach], list[int]] = {scope: [] for scope in scopes}
    last: dict[tuple[_Reach, _Reach], int] = {}
    for number, unit in enumerate(units):
        if unit.barrier is not None:
            for earlier in since[unit.barrier]:
                yield earlier, number
            since[unit.barrier] = [number]
            last[unit.barrier] = number
            continue
        for reach in unit.reaches:
            for scope in before.get(reach, ()):
                since[scope].append(number)
            for scope in after.get(reach, ()):
                if scope in last:
                    yield last[scope], number


def _of_copies(units: Sequence[_Unit]) -> Iterator[tuple[int, int]]:
    """Copies that write a common byte keep their order."""
    written: list[tuple[int, int, int]] = []
    for number, unit in enumerate(units):
        for start, end in unit.writes:
            for first, last, earlier in written:
                if start < last and first < end:
                    yield earlier, number
        written += [(*span, number) for span in unit.writes]


def _of_clocks(units: Sequence[_Unit]) -> Iterator[tuple[int, int]]:
    """Timestamps and immediate writes wait for all commands before; who reads queries waits for them."""
    last = -1
    for number, unit in enumerate(units):
        if unit.comes_last:
            for earlier in range(max(last, 0), number):
                yield earlier, number
            last = number
        elif unit.opcode in _READS_QUERIES and last >= 0:
            yield last, number
