"""What a command accesses, in the program's terms: buffers, and tensors with the layouts of their descs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.events import Access, Executing
from dmlemu_hw.gpu import Gpu
from dmlemu_hw.packets import DispatchPacket, Packet, type_name

from ..checks.framework.names import NamedCommand
from ..d3d12.recording import Recording
from ..diagnostics.spelling import spell
from ..dml.events import DispatchRecorded
from ..dml.lowering.dispatchable import CompiledOperator
from ..dml.operators.schema import OperatorDesc, operator_fields
from ..dml.tensor_desc import BufferTensorDesc
from ..pictures import Tensor
from .model import Operand

__all__ = ["Dispatches", "command_operands"]

_LISTS = 2048  # whose dispatches are remembered, before those that are gone are forgotten


class _Known(NamedTuple):
    """What a recorded dispatch runs; it keeps no object alive."""

    table: int
    layouts: tuple[BufferTensorDesc | None, ...]  # by descriptor
    fields: tuple[tuple[str, str], ...]


class Dispatches:
    """The recorded dispatches of living lists."""

    def __init__(self, recordings: Mapping[int, Recording]) -> None:
        self._recordings = recordings
        self._known: dict[int, dict[int, _Known]] = {}  # by list and packet

    def recorded(self, event: DispatchRecorded) -> None:
        """Remembers a dispatch."""
        recording, compiled = self._recordings.get(event.list_serial), event.dispatchable
        if recording is None or not isinstance(compiled, CompiledOperator):
            return
        fields = () if compiled.operator is None else _fields(compiled.operator.desc)
        known = _Known(event.table, tuple(each.desc for each in compiled.fields), fields)
        packets = range(event.first, len(recording.commands))
        self._known.setdefault(event.list_serial, {}).update(dict.fromkeys(packets, known))
        if len(self._known) > _LISTS:
            self._known = {key: each for key, each in self._known.items() if key in self._recordings}

    def find(self, event: Executing) -> _Known | None:
        """The dispatch to which a packet belongs."""
        return self._known.get(event.list_serial, {}).get(event.command)

    def fields(self, event: Executing) -> tuple[tuple[str, str], ...]:
        """The fields of its operator desc that are no tensors, as text."""
        known = self.find(event)
        return () if known is None else known.fields


def command_operands(
    event: Executing,
    packet: Packet,
    command: NamedCommand,
    number_at: Callable[[int], int | None],
    gpu: Gpu,
    dispatches: Dispatches,
) -> Iterator[Operand]:
    """One operand for all accesses of one kind to it.  ``number_at``: the buffer at an address."""
    groups: dict[tuple[int, int], list[Access]] = {}
    for each in event.accesses:
        groups.setdefault((each.operand, each.access), []).append(each)
    known = dispatches.find(event)
    for (operand, flags), accesses in groups.items():
        footprints = tuple(each.footprint for each in accesses)
        ranges = [each.byte_range for each in footprints]
        begin, end = min(each[0] for each in ranges), max(each[1] for each in ranges)
        number = number_at(begin)
        start = 0
        if number is not None:
            allocation = gpu.memory.find(begin)
            start = 0 if allocation is None else allocation.address
        name = command.operand(accesses[0])
        tensor = None
        if isinstance(packet, DispatchPacket) and operand < len(packet.tensors):
            tensor = _tensor(name, packet, operand, accesses[0], start, gpu, known)
        yield Operand(
            name or f"operand {operand}", flags, number, begin - start, end - start, tensor, footprints
        )


def _tensor(
    name: str,
    packet: DispatchPacket,
    operand: int,
    access: Access,
    start: int,
    gpu: Gpu,
    known: _Known | None,
) -> Tensor:
    """The layout of the tensor desc; of what is no tensor of the desc, that of the kernel."""
    used = packet.tensors[operand]
    desc = known.layouts[used.slot] if known is not None and used.slot < len(known.layouts) else None
    bits = access.footprint.element_bits
    if desc is not None:
        place = packet.table + used.slot * DESCRIPTOR_SIZE
        address = Descriptor.decode(gpu.descriptors.content(place, 1)).address
        [tensor] = desc.layout(name, address - start).tensors
        return tensor
    return Tensor(
        name,
        type_name(used.data_type),
        bits,
        used.sizes,
        used.strides,
        access.footprint.address - start,
        used.byte_size,
    )


def _fields(desc: OperatorDesc) -> tuple[tuple[str, str], ...]:
    """``("Alpha", "1.0")``."""
    found = []
    for each in operator_fields(type(desc)):
        value: Any = getattr(desc, each.name)
        if each.is_tensor or value is None:
            continue
        text = value.TYPE.name if isinstance(value, OperatorDesc) else spell(value)
        found.append((each.c_name, text))
    return tuple(found)
