"""What a command accesses, in the program's terms: buffers, and tensors with the layouts of their descs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptor
from dmlemu_hw.events import UNDEFINE, WRITE, Access, Executing, Footprint
from dmlemu_hw.footprints import used_state
from dmlemu_hw.gpu import Gpu
from dmlemu_hw.memory import Memory
from dmlemu_hw.packets import DispatchPacket, DispatchShaderPacket, ExecuteIndirectPacket, Packet, type_name
from dmlemu_hw.packets import Tensor as PacketTensor
from dmlemu_hw.programs import Program, Source, words_at
from dmlemu_hw.shader_views import declared, number_type_of

from ..checks.framework.names import NamedCommand
from ..d3d12.core.recording import Recording
from ..diagnostics.spelling import spell
from ..dml.declared.schema import OperatorDesc, operator_fields
from ..dml.events import DispatchRecorded
from ..dml.lowering.dispatchable import CompiledOperator
from ..dml.tensor_desc import BufferTensorDesc
from ..pictures import Tensor
from .model import Operand

__all__ = ["Accessed", "Dispatches", "shader_fields"]

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


class Accessed:
    """Turns accesses of commands into operands.

    ``number_at``: the number of the buffer at an address; ``slot_at``: heap and index of the descriptor at a
    place.
    """

    def __init__(
        self,
        gpu: Gpu,
        dispatches: Dispatches,
        number_at: Callable[[int], int | None],
        slot_at: Callable[[int], tuple[int, int] | None],
    ) -> None:
        self._gpu, self._dispatches = gpu, dispatches
        self._number_at, self._slot_at = number_at, slot_at

    def operands(self, event: Executing, packet: Packet, command: NamedCommand) -> Iterator[Operand]:
        """One operand for all accesses of one kind to it."""
        groups: dict[tuple[int, int], list[Access]] = {}
        for each in event.accesses:
            groups.setdefault((each.operand, each.access), []).append(each)
        for accesses in groups.values():
            yield self._operand(event, packet, command.operand(accesses[0]), accesses)

    def _operand(self, event: Executing, packet: Packet, name: str, accesses: list[Access]) -> Operand:
        number, flags = accesses[0].operand, accesses[0].access
        footprints = tuple(each.footprint for each in accesses)
        ranges = [each.byte_range for each in footprints]
        begin, end = min(each[0] for each in ranges), max(each[1] for each in ranges)
        buffer, allocation = self._number_at(begin), self._gpu.memory.find(begin)
        start = 0 if buffer is None or allocation is None else allocation.address
        tensor, descriptor = None, None
        if isinstance(packet, DispatchPacket) and number < len(packet.tensors):
            used = packet.tensors[number]
            place = packet.table + used.slot * DESCRIPTOR_SIZE
            descriptor = self._slot_at(place)
            known = self._dispatches.find(event)
            desc = known.layouts[used.slot] if known and used.slot < len(known.layouts) else None
            if desc is not None:
                bound = Descriptor.decode(self._gpu.descriptors.content(place, 1)).address
                [tensor] = desc.layout(name, bound - start).tensors
            else:
                tensor = _kernel_tensor(name, used, footprints[0], start)
        elif isinstance(packet, DispatchShaderPacket | ExecuteIndirectPacket):
            program: Program | None = self._gpu.memory.programs.find(packet.program)
            if program is not None:
                place = program.place_of(number, packet.arguments)
                descriptor = self._slot_at(place) if place else None
                kind = number_type_of(program, number, packet.arguments, self._gpu.memory)
                tensor = _numbers(name, kind, begin - start, end - begin)
        name = name or f"operand {number}"
        state = used_state(packet, number, self._gpu.memory, writes=bool(flags & (WRITE | UNDEFINE)))
        return Operand(name, flags, buffer, begin - start, end - start, tensor, footprints, descriptor, state)


def _kernel_tensor(name: str, used: PacketTensor, footprint: Footprint, start: int) -> Tensor:
    """The layout that a kernel uses, for what is no tensor of the operator desc."""
    kind, at = type_name(used.data_type), footprint.address - start
    return Tensor(name, kind, footprint.element_bits, used.sizes, used.strides, at, used.byte_size)


def _numbers(name: str, kind: str, offset: int, size: int) -> Tensor | None:
    """The numbers of a shader's view; None: plain bytes."""
    width = np.dtype(kind.lower()).itemsize
    if size % width or offset % width:
        return None
    return Tensor(name, kind, 8 * width, (size // width,), (1,), offset, size)


def shader_fields(packet: Packet, memory: Memory) -> tuple[tuple[str, str], ...]:
    """What a dispatch of a shader runs with: groups, ranges of registers, the DWORDs of root constants.

    ``("x", "t0, an SRV of a structured buffer with elements of 4 bytes")``.
    """
    if not isinstance(packet, DispatchShaderPacket | ExecuteIndirectPacket):
        return ()
    program: Program | None = memory.programs.find(packet.program)
    if program is None:
        return ()
    found = []
    if isinstance(packet, DispatchShaderPacket):
        found.append(("ThreadGroupCount", " x ".join(map(str, packet.groups))))
    for each in program.ranges:
        text = declared(each)
        if each.source is Source.CONSTANTS:
            words = words_at(packet.arguments, each.word, each.count)
            text = f"root constants {' '.join(f'{word:#x}' for word in words)}"
        found.append((each.name, f"{each.register}, {text}" if each.register != each.name else text))
    return tuple(found)


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
