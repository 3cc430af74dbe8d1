"""Names of what events refer to by number: commands, operands and buffers in the user's words."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.events import Access, Barrier, Executed, Executing, Place

from ...d3d12.core.recording import Command
from ...d3d12.memory.resource import resource_at

if TYPE_CHECKING:
    from dmlemu_hw.shader_watch import Watched

    from ...d3d12.device.device import Device
    from ...d3d12.memory.resource import Resource
    from ...errors import CallSite

__all__ = ["NamedCommand", "Names", "Work"]


class NamedCommand(NamedTuple):
    """A command of a list, in words; it keeps no object alive."""

    command: Command
    list: str
    queue: str

    def __str__(self) -> str:
        """``CopyBufferRegion (command 3)``: for messages that name the list elsewhere."""
        return f"{self.command.name} (command {self.command.number})"

    @property
    def number(self) -> int:
        """The command's number in its list."""
        return self.command.number

    @property
    def place(self) -> str:
        """``queue 'compute', command list 'frame 0', command 7``: the operation of a report."""
        return f"{self.queue}, {self.list}, command {self.command.number}"

    @property
    def context(self) -> str:
        """A line for the context of a report: where the command was recorded."""
        return self.command.context(self.list)

    def operand(self, access: Access) -> str:
        """``OutputTensor``: the name of that operand of the command."""
        operands = self.command.operands
        return operands[access.operand] if access.operand < len(operands) else ""


class Work(NamedTuple):
    """A list executed by a queue under its ``ticket``, in words; it keeps no object alive.

    ``handed`` counts the host's calls that submitted lists to queues.
    """

    commands: list[Command]  # one for each packet
    list: str
    queue: str
    ticket: int = 0
    executed_at: CallSite | None = None  # the program's line
    handed: int = 0

    def command(self, packet: int) -> NamedCommand:
        """The command to which a packet belongs."""
        known = packet < len(self.commands)
        command = self.commands[packet] if known else Command("a command", packet)
        return NamedCommand(command, self.list, self.queue)


class Names:
    """Looks up names on one device."""

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)

    def __repr__(self) -> str:
        return f"<Names of {self._device() or 'a device that is gone'}>"

    def command(self, event: Executing | Executed) -> NamedCommand:
        """The command that the event refers to."""
        return self.work(event).command(event.command)

    def work(self, event: Executing | Executed | Barrier | Place | Watched) -> Work:
        """The list that the event refers to."""
        device = self._device()
        assert device is not None
        recording = device.context.recordings.get(event.list_serial)
        queue = self.queue(event.queue)
        if recording is None:
            return Work([], f"list {event.list_serial}", queue, event.ticket)
        return Work(recording.commands, recording.owner, queue, event.ticket, recording.executed_at)

    def queue(self, serial: int) -> str:
        """``command queue 'compute'``."""
        device = self._device()
        assert device is not None
        labels = (each.label for each in device.context.gpu.queues if each.serial == serial)
        return next(labels, f"queue {serial}")

    def buffer(self, address: int) -> Resource | None:
        """The live buffer that contains a GPU virtual address."""
        device = self._device()
        assert device is not None
        return resource_at(device.context, address)

    def fence(self, address: int) -> str:
        """``fence 'done'``: the fence whose value is at the address."""
        device = self._device()
        assert device is not None
        fence = device.context.gpu.find_fence(address)
        return "a fence that is gone" if fence is None else fence.describe()

    def bytes(self, address: int, end: int) -> str:
        """``bytes [0, 4096) of buffer 'act'``; without a buffer, where the address is."""
        device = self._device()
        assert device is not None
        buffer = resource_at(device.context, address)
        if buffer is None:
            return f"{end - address} bytes at {device.context.gpu.memory.describe_address(address)}"
        start = address - buffer.get_gpu_virtual_address()
        return buffer.part(start, start + end - address)

    def byte(self, address: int) -> str:
        """``byte 12 of buffer 'act'``; without a buffer, where the address is."""
        buffer = self.buffer(address)
        if buffer is None:
            device = self._device()
            assert device is not None
            return device.context.gpu.memory.describe_address(address)
        at = address - buffer.get_gpu_virtual_address()
        return buffer.part(at, at + 1)
