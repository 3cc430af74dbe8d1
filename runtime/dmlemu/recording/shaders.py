"""Dispatches of shaders in a record: the bytes of each view, before and after."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dmlemu_hw.events import READ, WRITE
from dmlemu_hw.faults import GpuFault
from dmlemu_hw.memory import Memory
from dmlemu_hw.packets import DispatchShaderPacket, ExecuteIndirectPacket
from dmlemu_hw.programs import Program, Source
from dmlemu_hw.shader_views import number_type_of, program_of, shader_accesses

from .. import dml
from .model import COMPUTE_SHADER, Array, RecordedTensor, Work

__all__ = ["ShaderDispatch", "ShaderPacket", "describe"]

ShaderPacket = DispatchShaderPacket | ExecuteIndirectPacket

_NOT_KEPT = "a record has no code of shaders; run the program itself again"
_MOST_NUMBERS = 0xFFFFFFFF  # along a dimension


class ShaderDispatch(NamedTuple):
    """What it reads and writes: for each tensor of ``work`` its address; 0: root constants.

    ``constants``: the DWORDs of those.
    """

    work: Work
    addresses: tuple[int, ...]
    constants: tuple[Array | None, ...]


def describe(packet: ShaderPacket, memory: Memory, name: str) -> ShaderDispatch | None:
    """The views of a dispatch; ``name``: of its pipeline state.  None: it cannot run, as the GPU will find.

    A view that may be written is an input, for what it held before, and an output.  Of ranges with several
    descriptors each view counts once.
    """
    tensors: list[RecordedTensor] = []
    addresses: list[int] = []
    constants: list[Array | None] = []
    try:
        program = program_of(packet.program, memory)
        for path, words in _constants(program, packet):
            tensors.append(RecordedTensor(path, False, False, _desc("UINT32", words.nbytes)))
            addresses.append(0)
            constants.append(words)
        for path, access, address, size, kind in _views(program, packet, memory):
            for output, flag in ((False, READ), (True, WRITE)):
                if access & flag:
                    tensors.append(RecordedTensor(path, output, False, _desc(kind, size)))
                    addresses.append(address)
                    constants.append(None)
    except GpuFault:
        return None
    flags, level = dml.ExecutionFlags.NONE, dml.FeatureLevel.LEVEL_1_0
    work = Work(name, COMPUTE_SHADER, flags, level, _NOT_KEPT, tuple(tensors))
    return ShaderDispatch(work, tuple(addresses), tuple(constants))


def _constants(program: Program, packet: ShaderPacket) -> list[tuple[str, Array]]:
    """The root constants; those of an ExecuteIndirect may be in its argument buffer, which is recorded."""
    if isinstance(packet, ExecuteIndirectPacket):
        return []
    words = np.frombuffer(packet.arguments, np.uint32)
    return [
        (each.name, words[each.word : each.word + each.count])
        for each in program.ranges
        if each.source is Source.CONSTANTS
    ]


def _views(program: Program, packet: ShaderPacket, memory: Memory) -> list[tuple[str, int, int, int, str]]:
    """Path, access, address, bytes and type of the numbers of each view."""
    found: dict[tuple[int, int, int, int], None] = {}
    for each in shader_accesses(packet, memory):
        first, end = each.footprint.byte_range
        if end > first:
            found[each.operand, each.access, first, end - first] = None
    counts: dict[int, int] = {}
    views = []
    for operand, access, address, size in found:
        counts[operand] = counts.get(operand, 0) + 1
        name = program.ranges[operand].name if operand < len(program.ranges) else program.operands[operand]
        path = name if counts[operand] == 1 else f"{name} #{counts[operand]}"
        kind = number_type_of(program, operand, packet.arguments, memory)
        views.append((path, access, address, size, kind))
    return views


def _desc(kind: str, size: int) -> dml.BufferTensorDesc:
    """``size`` bytes as numbers of that type, or as bytes, where they are no whole number of those."""
    data_type = dml.TensorDataType[kind]
    count = size // data_type_bytes(data_type)
    if count * data_type_bytes(data_type) != size:
        data_type, count = dml.TensorDataType.UINT8, size
    return dml.BufferTensorDesc(data_type, [min(count, _MOST_NUMBERS)])


def data_type_bytes(data_type: dml.TensorDataType) -> int:
    return dml.BufferTensorDesc(data_type, [1]).dtype.itemsize
