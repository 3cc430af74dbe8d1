"""Index checks: indices out of range, or equal in a scatter, found before the kernel uses them; reads that
are not followed (group g)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlemu_hw.events import WRITE, Accessing, Executing, Foresight
from dmlemu_hw.footprints import bad_index, may_race, reads_indices, scatter_race
from dmlemu_hw.kernels import ffi
from dmlemu_hw.packets import DispatchPacket, Opcode, decode_one

from ...diagnostics.declaration import Declaration
from ...dml.enums import TensorDataType
from ...dml.tensor_desc import BufferTensorDesc
from ..framework.check import Check, on
from . import messages
from .rows import MEM_INDEX_VALUE, MEM_READS_SCATTERED, MEM_SCATTER_RACE

_DISPATCH = int(Opcode.DISPATCH)


class Indices(Check, Foresight):
    """Checks the indices that a dispatch is about to read: none in a stretch does."""

    declarations = (
        MEM_INDEX_VALUE,
        MEM_SCATTER_RACE,
        MEM_READS_SCATTERED,
    )

    @on(Accessing)
    def look(self, event: Executing) -> None:
        """The kernel reads the same bytes, unless the CPU changes them meanwhile."""
        if event.opcode != _DISPATCH:
            return
        if reads_indices(event.packet):
            pointer, memory = ffi.from_buffer("uint8_t[]", event.packet), self.device.context.gpu.memory
            bad = bad_index(event.packet, pointer, memory)
            if bad is not None:
                self._report_bad_index(event, bad)
            race = scatter_race(event.packet, pointer, memory) if may_race(event.packet) else None
            if race is not None:
                self._report_race(event, race)
        for access in event.accesses.not_followed:
            command = self.names.command(event)
            words = messages.scattered(command, command.operand(access))
            self.report(MEM_READS_SCATTERED.id, cause="once", api="DML", **words)

    def _report_bad_index(self, event: Executing, bad: Any) -> None:
        packet, command = _decoded(event), self.names.command(event)
        tensors = command.command.operands[bad.indices], command.command.operands[bad.target]
        element = _coordinates(packet, bad.indices, bad.element)
        is_written = bool(packet.tensors[bad.target].access & WRITE)
        words = messages.outside(command, event.packet, bad, tensors, element, is_written)
        self._report(MEM_INDEX_VALUE, event, bad.indices, words)

    def _report_race(self, event: Executing, race: Any) -> None:
        packet, command = _decoded(event), self.names.command(event)
        words = messages.race(
            command,
            event.packet,
            race,
            written=[_number(packet.tensors[race.values].data_type, each) for each in race.written],
            target=_coordinates(packet, race.target, race.element),
            values=[_coordinates(packet, race.values, each) for each in race.value_elements],
            indices=[_coordinates(packet, race.indices, each) for each in race.index_elements],
        )
        self._report(MEM_SCATTER_RACE, event, race.target, words)

    def _report(self, id: Declaration, event: Executing, operand: int, words: dict[str, Any]) -> None:
        """``operand``: the tensor whose buffer is named."""
        access = next(each for each in event.accesses if each.operand == operand)
        first, end = access.footprint.byte_range
        ranges = (self.names.bytes(first, end),)
        self.report(id, api="DML", object=self.names.buffer(first) or "", ranges=ranges, **words)


def _decoded(event: Executing) -> DispatchPacket:
    packet = decode_one(event.packet)
    assert isinstance(packet, DispatchPacket)
    return packet


def _coordinates(packet: DispatchPacket, operand: int, element: int) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(element, packet.tensors[operand].sizes)))


def _number(data_type: int, value: Any) -> int | float:
    """A ``dmlk_number``."""
    kind = BufferTensorDesc(TensorDataType(data_type), [1]).dtype.kind
    number: int | float = getattr(value, kind)
    return number


CHECKS = (Indices,)
