"""Names in messages for GPU addresses, descriptors, and recorded commands."""

from __future__ import annotations

import weakref
from typing import Any

from dmlemu_hw.gpu import Gpu

from .recording import Command, Recording

__all__ = ["Names"]


class Names:
    """Names of a device's addresses and recordings in messages.

    ``resources`` by address and ``recordings`` by serial: the living ones.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.resources: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self.recordings: weakref.WeakValueDictionary[int, Recording] = weakref.WeakValueDictionary()

    def resource_at(self, address: int) -> Any:
        """The live buffer that holds a GPU virtual address."""
        allocation = self.gpu.memory.find(address)
        return None if allocation is None else self.resources.get(allocation.address)

    def address(self, address: int) -> str:
        """The buffer at the address; if there is none, what the hardware knows of the address."""
        resource = self.resource_at(address)
        return self.gpu.memory.describe_address(address) if resource is None else str(resource)

    def bytes_at(self, address: int, size: int) -> str:
        """``bytes [0, 64) of buffer 'act'``; if there is no buffer, what the hardware knows."""
        allocation, resource = self.gpu.memory.find(address), self.resource_at(address)
        if allocation is None or resource is None:
            return f"{size} bytes at {self.gpu.memory.describe_address(address)}"
        start = address - allocation.address
        part: str = resource.part(start, start + size)
        return part

    def place(self, place: int) -> str:
        """``slot 3 of descriptor heap 'main'``, by the GPU handle."""
        found = self.gpu.descriptors.locate_place(place)
        return f"the descriptor at {place:#x}" if found is None else f"slot {found[1]} of {found[0].label}"

    def command(self, serial: int, packet: int) -> Command | None:
        """A command of a recording."""
        recording = self.recordings.get(serial)
        return recording.commands[packet] if recording and packet < len(recording.commands) else None
