"""What a run consists of: moments, what they access, and the buffers and heaps that there are."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dmlemu_hw.events import READ, UNDEFINE, WRITE, Footprint
from dmlemu_hw.packets import decode

from ..d3d12.core.recording import Command
from ..errors import Report
from ..pictures import Tensor

__all__ = [
    "COMMAND",
    "HOST",
    "QUEUE",
    "Buffer",
    "Change",
    "Content",
    "Heap",
    "Listing",
    "Moment",
    "Operand",
]

COMMAND, QUEUE, HOST = "command", "queue", "host"
"""Kinds of moments: a packet of a list, an operation of a queue itself, a call of the program."""

_ACCESS = {READ: "reads", WRITE: "writes", READ | WRITE: "reads and writes", UNDEFINE: "undefines"}


class Operand(NamedTuple):
    """What a moment accesses: bytes [begin, end) of a buffer, and the layout of the elements in it.

    ``name`` is the command's name for it (``OutputTensor``), ``flags`` are those of ``events.Access``.
    ``buffer``: its number in the run; None: no buffer of the program.  ``tensor``: None for plain bytes.
    ``footprints``: exactly which elements, by GPU virtual address; empty for the host's writes.
    ``descriptor``: the heap's number and the index of the descriptor through which it is bound.
    ``state``: the ``D3D12_RESOURCE_STATES`` that its buffer must be in; 0: any.
    """

    name: str
    flags: int
    buffer: int | None
    begin: int
    end: int
    tensor: Tensor | None = None
    footprints: tuple[Footprint, ...] = ()
    descriptor: tuple[int, int] | None = None
    state: int = 0

    @property
    def access(self) -> str:
        """``reads``, ``writes``, ``reads and writes``, ``undefines``, or ``may read``."""
        return _ACCESS.get(self.flags, "may read")

    @property
    def writes(self) -> bool:
        """Whether the bytes may be different afterwards."""
        return bool(self.flags & (WRITE | UNDEFINE))


@dataclass(eq=False)
class Moment:
    """One thing that happened.  Everything that a run says of a moment holds after it.

    ``kind``: COMMAND, QUEUE or HOST.  ``packet``: its index in the list; ``command``: the number of the
    recorded call that it belongs to, both -1 outside of lists.  ``queue_id`` tells queues of one name apart
    (0: of none), ``ticket`` the submissions on a queue.  ``text``: the packet disassembled, or what
    happened, in one line.  ``site``: the program's line.
    ``fields``: those of the operator desc, without its tensors.  ``failed``: the GPU stopped here.
    ``started`` and ``ended``: ticks of the GPU's clock.
    """

    number: int
    kind: str
    name: str
    text: str = ""
    queue: str = ""
    list: str = ""
    queue_id: int = 0
    ticket: int = 0
    packet: int = -1
    command: int = -1
    site: str = ""
    is_dispatch: bool = False
    operands: tuple[Operand, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    reports: builtins.list[Report] = field(default_factory=builtins.list)
    failed: bool = False
    started: int = 0
    ended: int = 0

    @property
    def submission(self) -> tuple[int, int]:
        """Identifies one execution of a list."""
        return self.queue_id, self.ticket

    def contains(self, text: str) -> bool:
        """Whether its name, text, list, queue, line or a report of it contains the text, in whatever case."""
        own = (self.name, self.text, self.list, self.queue, self.site)
        said = (f"{each.id} {each.message}" for each in self.reports)
        return any(text.casefold() in each.casefold() for each in (*own, *said))


@dataclass(eq=False)
class Buffer:
    """A buffer of the program.

    ``address``: GPU virtual address.  ``memory`` and ``offset``: the heap memory in which it lies, and
    where; ``memory`` -1: a reserved buffer.  ``created`` and ``released``: the moments before which it did
    not exist, and from which on it does not; None: it lived to the end.
    """

    number: int
    name: str
    size: int
    heap_type: str
    address: int
    memory: int
    offset: int
    created: int
    released: int | None = None

    def lives(self, moment: int) -> bool:
        """Whether it exists after the moment."""
        return self.created <= moment and (self.released is None or moment < self.released)


@dataclass(eq=False)
class Heap:
    """A descriptor heap."""

    number: int
    name: str
    count: int
    shader_visible: bool


class Listing(NamedTuple):
    """A command list as it was submitted: its packets, and the recorded call behind each of them."""

    packets: bytes
    commands: Sequence[Command]

    def lines(self) -> Iterator[tuple[int, str]]:
        """Packet number and line of the disassembly; -1 for the line of a recorded call."""
        last = -1
        for at, (command, packet) in enumerate(zip(self.commands, decode(self.packets), strict=True)):
            if command.number != last:
                last = command.number
                where = f" ({command.recorded_at})" if command.recorded_at else ""
                yield -1, f"{command.name}{where}"
            yield at, f"{packet.opcode.name} {packet.text()}".rstrip()


class Change(NamedTuple):
    """Bytes of a buffer that a moment changed, from ``begin`` on."""

    buffer: int
    begin: int
    before: bytes
    after: bytes

    @property
    def end(self) -> int:
        return self.begin + len(self.after)


class Content(NamedTuple):
    """Bytes of a buffer.  ``unknown``: ranges in ``data`` that nothing has accessed."""

    data: bytes
    unknown: tuple[tuple[int, int], ...] = ()

    def knows(self, begin: int, end: int) -> bool:
        """Whether bytes [begin, end) of ``data`` are known."""
        return all(end <= first or last <= begin for first, last in self.unknown)
