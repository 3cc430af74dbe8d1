"""Dispatches of shaders in a record: what they bind, and the bytes of each view, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorKind
from dmlemu_hw.events import READ, WRITE
from dmlemu_hw.faults import GpuFault
from dmlemu_hw.formats import formats_of
from dmlemu_hw.memory import Memory
from dmlemu_hw.packets import DispatchShaderPacket, ExecuteIndirectPacket
from dmlemu_hw.programs import Kind, Program, ProgramRange, Source, address_in
from dmlemu_hw.shader_views import (
    Table,
    commands_of,
    fits,
    heap_of,
    number_type_of,
    program_of,
    shader_accesses,
    table_of,
)

from .. import dml
from ..d3d12.pipelines.pipeline_state import PipelineState
from ..d3d12.pipelines.root_signature import Parameter
from .model import COMPUTE_SHADER, Array, Indirect, RecordedTensor, ShaderView, ShaderWork, Span, Work

__all__ = ["ShaderDispatch", "ShaderPacket", "describe"]

ShaderPacket = DispatchShaderPacket | ExecuteIndirectPacket

_MOST_NUMBERS = 0xFFFFFFFF  # along a dimension
_KINDS = {DescriptorKind.CBV: "CBV", DescriptorKind.SRV: "SRV", DescriptorKind.UAV: "UAV"}


class ShaderDispatch(NamedTuple):
    """What it reads and writes: for each tensor of ``work`` its address; 0: root constants.

    ``constants``: the DWORDs of those.  The code and the root signature of ``work`` are not kept yet.
    """

    work: Work
    addresses: tuple[int, ...]
    constants: tuple[Array | None, ...]


def describe(packet: ShaderPacket, memory: Memory, pipeline: PipelineState) -> ShaderDispatch | None:
    """What a dispatch of the pipeline state binds.  None: it cannot run, as the GPU will find.

    A view that may be written is an input, for what it held before, and an output.  Of ranges with several
    descriptors each view counts once.
    """
    try:
        found = _Described(packet, memory, pipeline)
        desc = found.desc() if found.commands or isinstance(packet, DispatchShaderPacket) else _NO_COMMANDS
    except GpuFault:
        return None
    flags, level = dml.ExecutionFlags.NONE, dml.FeatureLevel.LEVEL_1_0
    name = pipeline.name or pipeline.shader.name
    work = Work(name, COMPUTE_SHADER, flags, level, desc, tuple(found.tensors))
    return ShaderDispatch(work, tuple(found.addresses), tuple(found.words))


_NO_COMMANDS = "its ExecuteIndirect executed no commands"


class _Described:
    """The tensors of a dispatch, and its root arguments as bytes of these."""

    def __init__(self, packet: ShaderPacket, memory: Memory, pipeline: PipelineState) -> None:
        self.tensors: list[RecordedTensor] = []
        self.addresses: list[int] = []
        self.words: list[Array | None] = []
        self.commands: list[DispatchShaderPacket] = []
        self._packet, self._memory, self._pipeline = packet, memory, pipeline
        self._program: Program = program_of(packet.program, memory)
        self._inputs: dict[int, list[int]] = {}  # positions of tensors, by operand
        self._constants: dict[int, int] = {}  # the same, by parameter
        if isinstance(packet, ExecuteIndirectPacket):
            self.commands = list(commands_of(packet, memory))
        for parameter in self._parameters(Source.CONSTANTS):
            self._add_constants(parameter)
        self._add_views()

    def _parameters(self, source: Source) -> Iterator[Parameter]:
        """Those that the shader uses, and that no command of an ExecuteIndirect sets as a whole."""
        words = {each.word for each in self._program.ranges if each.source is source}
        steps = self._packet.steps if isinstance(self._packet, ExecuteIndirectPacket) else ()
        for each in self._pipeline.root_signature.parameters:
            if each.word in words and each.words and (each.word, each.words) not in steps:
                yield each

    # --- tensors ---

    def _add(self, path: str, output: bool, desc: dml.BufferTensorDesc, address: int) -> None:
        self.tensors.append(RecordedTensor(path, output, False, desc))
        self.addresses.append(address)
        self.words.append(None)

    def _add_constants(self, parameter: Parameter) -> None:
        name = next(each.name for each in self._program.ranges if each.word == parameter.word)
        words = np.frombuffer(self._packet.arguments, np.uint32)
        self._constants[parameter.index] = len(self.tensors)
        self._add(name, False, _desc("UINT32", 4 * parameter.words), 0)
        self.words[-1] = words[parameter.word : parameter.word + parameter.words]

    def _add_views(self) -> None:
        program, packet = self._program, self._packet
        found: dict[tuple[int, int, int, int], None] = {}
        if isinstance(packet, ExecuteIndirectPacket) and self.commands:  # one tensor for all of them
            size = (len(self.commands) - 1) * packet.stride + packet.command_size
            found[self._commands_operand, READ, packet.address, size] = None
        for each in shader_accesses(packet, self._memory):
            first, end = each.footprint.byte_range
            if end > first and each.operand != self._commands_operand and self._lies_in_memory(first):
                found[each.operand, each.access, first, end - first] = None
        written: list[tuple[str, dml.BufferTensorDesc, int]] = []
        for operand, access, address, size in found:
            positions = self._inputs.setdefault(operand, [])
            name = (
                program.ranges[operand].name if operand < len(program.ranges) else program.operands[operand]
            )
            path = name if not positions else f"{name} #{len(positions) + 1}"
            desc = _desc(number_type_of(program, operand, packet.arguments, self._memory), size)
            positions.append(len(self.tensors))
            self._add(path, False, desc, address)
            if access & WRITE:
                written.append((path, desc, address))
        for path, desc, address in written:  # behind all inputs, as those of operators
            self._add(path, True, desc, address)

    @property
    def _commands_operand(self) -> int:
        return self._program.heap_operand + 1

    def _lies_in_memory(self, address: int) -> bool:
        allocation = self._memory.find(address)
        return allocation is not None and allocation.is_buffer

    def _span(self, operand: int, address: int, size: int = 1) -> Span | None:
        """The tensor of an operand that has these bytes."""
        for position in self._inputs.get(operand, ()):
            offset = address - self.addresses[position]
            if 0 <= offset <= self.tensors[position].desc.extent_in_bytes - size:
                return Span(position, offset)
        return None

    # --- what is bound ---

    def desc(self) -> ShaderWork:
        """Without the keys of its code and its root signature."""
        packet, pipeline = self._packet, self._pipeline
        groups = packet.groups if isinstance(packet, DispatchShaderPacket) else None
        return ShaderWork(
            "",
            "",
            pipeline.shader.wave,
            pipeline.program.flush,
            groups,
            self._indirect() if isinstance(packet, ExecuteIndirectPacket) else None,
            tuple(self._constants.items()),
            tuple(self._roots()),
            tuple(self._tables()),
            self._heap(),
        )

    def _roots(self) -> Iterator[tuple[int, Span]]:
        operands = self._operands(Source.ROOT)
        for each in self._parameters(Source.ROOT):
            span = self._span(operands[each.word], address_in(self._packet.arguments, each.word))
            if span is not None:
                yield each.index, span

    def _operands(self, source: Source) -> dict[int, int]:
        """The first operand with a root argument at a DWORD."""
        found: dict[int, int] = {}
        for operand, each in enumerate(self._program.ranges):
            if each.source is source:
                found.setdefault(each.word, operand)
        return found

    def _tables(self) -> Iterator[tuple[int, tuple[tuple[int, ShaderView], ...]]]:
        for parameter in self._parameters(Source.TABLE):
            rows: dict[int, ShaderView] = {}
            for operand, each in enumerate(self._program.ranges):
                if each.source is Source.TABLE and each.word == parameter.word:
                    table = table_of(operand, each, self._packet.arguments, self._memory)
                    for at, view in self._views(operand, table, each):
                        rows[each.first + at] = view
            yield parameter.index, tuple(sorted(rows.items()))

    def _heap(self) -> tuple[tuple[int, ShaderView], ...]:
        program, packet = self._program, self.commands[0] if self.commands else self._packet
        if not program.uses_heap or not packet.heap or isinstance(packet, ExecuteIndirectPacket):
            return ()
        return tuple(self._views(program.heap_operand, heap_of(program, packet, self._memory), None))

    def _views(
        self, operand: int, table: Table, declared: ProgramRange | None
    ) -> Iterator[tuple[int, ShaderView]]:
        """The descriptors that the shader can use, by their place; ``declared`` None: any."""
        sizes = formats_of(declared.element) if declared is not None and declared.kind is Kind.TYPED else b""
        for at in table.written():
            found = table.descriptor(at)
            if found is None or (declared is not None and not fits(found, declared, sizes)):
                continue
            view = self._view(operand, found)
            if view is not None:
                yield at, view

    def _view(self, operand: int, found: Descriptor) -> ShaderView | None:
        """None: its memory has been released, or it is no view."""
        span = counter = None
        if found.address:
            span = self._span(operand, found.address, found.size)
            if span is None:
                return None
        if found.address and found.counter_address and operand < len(self._program.ranges):
            counter = self._span(self._program.counter_operand(operand), found.counter_address, 4)
        raw = bool(found.flags & DESCRIPTOR_RAW)
        kind, size = _KINDS.get(found.kind), found.size if span is not None else 0
        if kind is None:
            return None
        return ShaderView(kind, found.format, found.stride, raw, span, size, counter)

    # --- ExecuteIndirect ---

    def _indirect(self) -> Indirect:
        packet = self._packet
        assert isinstance(packet, ExecuteIndirectPacket)
        commands = self._span(self._commands_operand, packet.address)
        assert commands is not None  # there are some
        number = None
        if packet.count_address:
            number = self._span(self._commands_operand + 1, packet.count_address, 4)
        arguments = tuple(self._argument(first, count) for first, count in packet.steps)
        addresses = tuple(self._addresses_in(packet))
        return Indirect(arguments, packet.stride, len(self.commands), commands, number, addresses)

    def _argument(self, first: int, count: int) -> tuple[int, int, int]:
        """A root argument of the commands: its parameter, the DWORD in it, the number of DWORDs."""
        for each in self._pipeline.root_signature.parameters:
            if each.word <= first < each.word + each.words:
                return each.index, first - each.word, count
        raise AssertionError("the commands of a list set root arguments")

    def _addresses_in(self, packet: ExecuteIndirectPacket) -> Iterator[tuple[int, Span]]:
        operands, at = self._operands(Source.ROOT), 0
        for first, count in packet.steps:
            for number, command in enumerate(self.commands):
                if first in operands:
                    span = self._span(operands[first], address_in(command.arguments, first))
                    if span is not None:
                        yield number * packet.stride + at, span
            at += 4 * count


def _desc(kind: str, size: int) -> dml.BufferTensorDesc:
    """``size`` bytes as numbers of that type, or as bytes, where they are no whole number of those."""
    data_type = dml.TensorDataType[kind]
    count = size // data_type_bytes(data_type)
    if count * data_type_bytes(data_type) != size:
        data_type, count = dml.TensorDataType.UINT8, size
    return dml.BufferTensorDesc(data_type, [min(count, _MOST_NUMBERS)])


def data_type_bytes(data_type: dml.TensorDataType) -> int:
    return dml.BufferTensorDesc(data_type, [1]).dtype.itemsize
