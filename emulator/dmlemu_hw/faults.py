"""What the hardware reports when it cannot go on."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class FaultKind(str, Enum):
    """Why a command could not be executed."""

    BAD_PACKET = "bad_packet"
    BAD_ADDRESS = "bad_address"  # not all bytes lie in live memory
    MISALIGNED = "misaligned"
    BAD_DESCRIPTOR = "bad_descriptor"  # a null descriptor, or of a kind that the command cannot use
    DESCRIPTOR_UNWRITTEN = "descriptor_unwritten"
    DESCRIPTOR_STALE = "descriptor_stale"  # of memory that has been released
    DESCRIPTOR_OUTSIDE = "descriptor_outside"  # its place is in no descriptor heap
    OUT_OF_RANGE = "out_of_range"  # outside of the descriptor's range
    NOT_IMPLEMENTED = "not_implemented"
    OUT_OF_MEMORY = "out_of_memory"
    HEAP_RELEASED = "heap_released"
    INJECTED = "injected"  # a test wants it
    STOPPED = "stopped"  # the host ended a kernel in the middle
    REMOVED = "removed"  # the host took the device away; no command is at fault


class Progress(NamedTuple):
    """How far a queue had come: the lists at its head, and those whose tickets are below.

    ``executed``: the last commands of the lists under way, in order, as (serial of the list, number).
    ``pending``: entries not done.
    """

    queue: int
    completed: int
    executed: tuple[tuple[int, int], ...]
    pending: int


class GpuFault(Exception):
    """A command failed while the GPU executed it.

    ``message`` is one sentence; ``address`` the GPU virtual address concerned (0: none), ``handle`` that
    of the descriptor through which the command came to it.  ``operand`` (-1: none) counts the packet's
    operands, ``access`` says how it is touched; it needs ``needed`` bytes where ``given`` are.  Where it
    happened: label of the queue, serial of the command list, index of the command in the list, and
    the packet's bytes.  ``interrupt`` is what the host raised to stop the command.  ``progress`` is that of
    all queues with work when the GPU was removed.
    """

    interrupt: BaseException | None = None
    progress: tuple[Progress, ...] = ()

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        address: int = 0,
        handle: int = 0,
        operand: int = -1,
        access: int = 0,
        needed: int = 0,
        given: int = 0,
        queue: str = "",
        list_serial: int = 0,
        command: int = 0,
        packet: bytes = b"",
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.address = address
        self.handle = handle
        self.operand = operand
        self.access = access
        self.needed = needed
        self.given = given
        self.queue = queue
        self.list_serial = list_serial
        self.command = command
        self.packet = packet

    def locate(self, queue: str, list_serial: int, command: int, packet: bytes) -> None:
        """Says where it happened, once: the innermost place known is kept."""
        if not self.queue:
            self.queue, self.list_serial = queue, list_serial
            self.command, self.packet = command, packet

    def __str__(self) -> str:
        if not self.queue:
            return self.message
        place = self.queue
        if self.list_serial:
            place += f", list {self.list_serial}, command {self.command}"
        return f"{self.message}\n  - in {place}"


class OutOfMemory(Exception):
    """Memory of the GPU, its address space or the host's address space is used up.

    ``needed`` bytes were asked for while ``used`` of ``budget`` were in use.
    """

    def __init__(self, message: str, *, needed: int, used: int, budget: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.used = used
        self.budget = budget


class ForeignProcess(Exception):
    """A GPU is used in a process that was forked from its own."""


class Deadlock(Exception):
    """The host waits for a fence value that nothing can bring about; ``text`` says who waits for what."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
