"""Which descriptors recorded dispatches still need (BT14): binding must not overwrite them.

Without it a program that binds a table again too early computes with the wrong buffers: the GPU reads
descriptors when it executes.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE

if TYPE_CHECKING:
    from ..d3d12.command_list import CommandList, Recording
    from .binding_table import BindingTable
    from .dispatchable import Dispatchable

__all__ = ["InFlight", "Use"]


class Use(NamedTuple):
    """A recorded dispatch that reads a descriptor."""

    command_list: weakref.ref[CommandList]
    recording: weakref.ref[Recording]
    table: weakref.ref[BindingTable]
    volatile: bool
    label: str


class InFlight:
    """The uses of every descriptor by its GPU handle; the last one recorded stands for all."""

    def __init__(self) -> None:
        self._uses: dict[int, Use] = {}

    def add(self, command_list: CommandList, dispatchable: Dispatchable, table: BindingTable) -> None:
        """A dispatch with the table's descriptors was recorded."""
        recording = command_list._recording
        assert recording is not None and table._desc is not None
        start = table._desc.gpu_descriptor_handle
        use = Use(
            weakref.ref(command_list),
            weakref.ref(recording),
            weakref.ref(table),
            dispatchable.volatile,
            dispatchable._label,
        )
        for i in range(dispatchable.descriptor_count):
            self._uses[start + i * DESCRIPTOR_SIZE] = use

    def find(self, handle: int) -> Use | None:
        """The dispatch that still needs the descriptor at a GPU handle."""
        use = self._uses.get(handle)
        if use is None:
            return None
        recording = use.recording()
        if recording is None or not recording.is_needed_by(use.command_list()):
            del self._uses[handle]
            return None
        return None if use.volatile and recording.submitted is None else use
