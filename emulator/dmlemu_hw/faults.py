"""Errors that the hardware reports."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class FaultKind(str, Enum):
    """Why a command could not be executed."""

    BAD_PACKET = "bad_packet"
    BAD_ADDRESS = "bad_address"  # not all bytes are in live memory
    MISALIGNED = "misaligned"
    BAD_DESCRIPTOR = "bad_descriptor"  # a null descriptor, or a kind that the command cannot use
    DESCRIPTOR_UNWRITTEN = "descriptor_unwritten"
    DESCRIPTOR_STALE = "descriptor_stale"  # refers to released memory
    DESCRIPTOR_OUTSIDE = "descriptor_outside"  # not inside any descriptor heap
    OUT_OF_RANGE = "out_of_range"  # outside the descriptor's range
    NOT_IMPLEMENTED = "not_implemented"
    OUT_OF_MEMORY = "out_of_memory"
    HEAP_RELEASED = "heap_released"
    PROGRAM_RELEASED = "program_released"
    BAD_ARGUMENT = "bad_argument"  # in the argument buffer of an ExecuteIndirect
    OUTSIDE_ROOT = "outside_root"  # a shader leaves the resource of a root descriptor
    TIMED_OUT = "timed_out"  # a shader ran longer than the limit
    INJECTED = "injected"  # requested by a test
    STOPPED = "stopped"  # the host interrupted a kernel
    REMOVED = "removed"  # the host removed the device; no command is at fault


class Progress(NamedTuple):
    """Progress of a queue.  Entries up to ticket ``completed`` are complete.

    ``executed``: the last commands of the lists at the head, in order, as (list serial, command index).
    ``pending``: entries not complete.
    """

    queue: int
    completed: int
    executed: tuple[tuple[int, int], ...]
    pending: int


class GpuFault(Exception):
    """A command failed while the GPU executed it.

    ``message`` is one sentence; ``address`` is the GPU virtual address concerned (0: none), ``handle`` that
    of the descriptor that the command used.  ``operand`` (-1: none) is the index of the packet's operand,
    ``access`` how it is accessed; ``needed`` bytes are required, ``given`` are available.  Location: label of
    the queue, serial of the command list, index of the command in the list, and the packet's bytes.
    ``interrupt`` is the exception with which the host stopped the command.  ``progress`` lists all queues
    with pending work when the GPU was removed.
    """

    interrupt: BaseException | None = None
    found = expected = ""  # of a shader's descriptor: what it is, and what the shader declares
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
        """Sets the location, once: the innermost known location is kept."""
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
    """The GPU's memory, its address space or the host's address space is exhausted.

    ``needed`` bytes were requested while ``used`` of ``budget`` were in use.
    """

    def __init__(self, message: str, *, needed: int, used: int, budget: int) -> None:
        super().__init__(message)
        self.needed = needed
        self.used = used
        self.budget = budget


class ForeignProcess(Exception):
    """A GPU was used in a process forked from the one that created it."""


class Deadlock(Exception):
    """The host waits for a fence value that nothing can signal; ``text`` lists who waits for what.

    ``is_circular``: queues wait for signals of each other.
    """

    def __init__(self, text: str, *, is_circular: bool) -> None:
        super().__init__(text)
        self.text = text
        self.is_circular = is_circular
