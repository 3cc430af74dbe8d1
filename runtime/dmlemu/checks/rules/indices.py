"""Index checks: indices out of range, looked at before the kernel uses them; reads not followed (group g)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlemu_hw.events import Accessing, Executing
from dmlemu_hw.footprints import bad_index, reads_indices
from dmlemu_hw.kernels import ffi
from dmlemu_hw.packets import DispatchPacket, Opcode, decode_one

from ...diagnostics import ids
from ...diagnostics.declarations.indices import DECLARATIONS
from ..framework.check import Check, on
from . import indices_messages as messages

_DISPATCH = int(Opcode.DISPATCH)


class Indices(Check):
    """Checks the indices that a dispatch is about to read."""

    declarations = DECLARATIONS

    @on(Accessing)
    def look(self, event: Executing) -> None:
        """The kernel reads the same bytes, unless the CPU changes them meanwhile."""
        if event.opcode != _DISPATCH:
            return
        if reads_indices(event.packet):
            pointer = ffi.from_buffer("uint8_t[]", event.packet)
            bad = bad_index(event.packet, pointer, self.device.context.gpu.memory)
            if bad is not None:
                self._tell(event, bad)
        for access in event.accesses.not_followed:
            command = self.names.command(event)
            words = messages.scattered(command, command.operand(access))
            self.report(ids.MEM_READS_SCATTERED, cause="once", api="DML", **words)

    def _tell(self, event: Executing, bad: Any) -> None:
        packet, command = decode_one(event.packet), self.names.command(event)
        assert isinstance(packet, DispatchPacket)
        indices = next(each for each in event.accesses if each.operand == bad.indices)
        operands = command.command.operands
        element = np.unravel_index(bad.element, packet.tensors[bad.indices].sizes)
        words = messages.outside(
            command,
            event.packet,
            bad,
            (operands[bad.indices], operands[bad.target]),
            tuple(map(int, element)),
        )
        first, end = indices.footprint.byte_range
        buffer = self.names.buffer(first)
        ranges = (self.names.bytes(first, end),)
        self.report(ids.MEM_INDEX_VALUE, api="DML", object=buffer or "", ranges=ranges, **words)


CHECKS = (Indices,)
