"""Provenance: tensors that are read through another layout, or of which only a part was written last (group g)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dmlemu_hw.events import Access, Footprint
from dmlemu_hw.events import NO_ACCESSES, READ, UNDEFINE, WRITE, Accesses, Accessing, Executing, Freed, Mapped
from dmlemu_hw.events import LeftUndefined, Submitted
from dmlemu_hw.packets import Opcode

from ...diagnostics import ids
from ...diagnostics.declarations.provenance import DECLARATIONS
from ...dml.events import DispatchRecorded
from ...dml.tensor_desc import BufferTensorDesc
from ..analysis.access_history import Pattern, Places
from ..analysis.host_writes import HostStored
from ..analysis.provenance import Provenance, Source, Write
from ..analysis.tensor_relation import Tensor, relate
from ..framework.check import Check, on
from . import provenance_messages as messages
from .provenance_messages import Author

if TYPE_CHECKING:
    from ...d3d12.device import Device

_DISPATCH, _COPY = int(Opcode.DISPATCH), int(Opcode.COPY_BUFFER)
_KEPT = 2048  # contents of accesses, and lists, that are remembered


class _Dispatch(NamedTuple):
    """A recorded dispatch: the number of its first packet, and the layouts of its tensors by path."""

    first: int
    descs: dict[str, BufferTensorDesc]


class WhoseBytes(Check):
    """Keeps the provenance of all memory and compares what dispatches read with it."""

    declarations = DECLARATIONS

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._places = Places(device.context.gpu.memory)
        self._memory = Provenance()
        self._dispatches: OrderedDict[int, list[_Dispatch]] = OrderedDict()  # by the serial of their list
        self._authors: dict[bytes, Author] = {}
        self._settled: dict[tuple[bytes, object], int] = {}  # versions with which nothing was found
        self._written = 0

    # --- events ---

    @on(DispatchRecorded)
    def recorded(self, event: DispatchRecorded) -> None:
        """Remembers the tensors of a dispatch."""
        descs = {slot.path: slot.desc for slot in event.dispatchable.slots() if slot.desc is not None}
        self._dispatches.setdefault(event.list_serial, []).append(_Dispatch(event.first, descs))
        if len(self._dispatches) > _KEPT:
            recordings = self.device.context.recordings
            for serial in [serial for serial in self._dispatches if recordings.get(serial) is None]:
                del self._dispatches[serial]

    @on(Freed)
    def freed(self, event: Freed) -> None:
        """May be called at any moment."""
        self._places.freed(event)

    @on(Mapped)
    def mapped(self, event: Mapped) -> None:
        """A reserved buffer was remapped."""
        self._places.mapped(event)
        self._settled.clear()

    @on(Submitted)
    def submitted(self, event: Submitted) -> None:
        """Memory that was freed before holds nothing."""
        if self._places.has_freed:
            self._places.settle()
            self._places.forget_retired(lambda queue: 0)

    @on(HostStored)
    def stored(self, event: HostStored) -> None:
        """The CPU wrote."""
        size = event.end - event.begin
        accesses = Accesses.of([Access(0, WRITE, Footprint(event.begin, 8, (size,), (1,)))])
        self._enter(accesses, Author.of_host(), None)

    @on(LeftUndefined)
    def undefined(self, event: LeftUndefined) -> None:
        """A kernel left a part of its output undefined."""
        for pattern, _ in self._places.reached(Accesses.of([event.access])).patterns:
            self._memory.forget(pattern.begin, pattern.end)

    @on(Accessing)
    def look(self, event: Executing) -> None:
        """Compares what is read first, then enters what is written."""
        accesses = event.accesses
        if accesses is NO_ACCESSES or not accesses:
            return
        dispatch = self._dispatch(event) if event.opcode == _DISPATCH else None
        key = accesses.content, None if dispatch is None else id(dispatch.descs)
        if self._settled.get(key) == self._memory.version:
            return
        author = self._author(event)
        if event.opcode == _COPY:
            self._copy(accesses, author)
            return
        reached = self._places.reached(accesses).patterns
        if event.opcode == _DISPATCH:
            for pattern, operand in reached:
                if pattern.access & READ:
                    self._compare(event, dispatch, pattern, operand)
        self._enter(accesses, author, dispatch)
        if len(self._settled) >= _KEPT:
            self._settled.clear()
        self._settled[key] = self._memory.version

    # --- writes ---

    def _author(self, event: Executing) -> Author:
        recording = self.device.context.recordings.get(event.list_serial)
        if recording is None or event.command >= len(recording.commands):
            return Author(None, "a list that is gone", ())
        command = recording.commands[event.command]
        return Author(command, recording.owner, command.operands)

    def _enter(self, accesses: Accesses, author: Author, dispatch: _Dispatch | None) -> None:
        for pattern, operand in self._places.reached(accesses).patterns:
            if pattern.access & WRITE:
                self._written += 1
                tensor = _tensor(pattern, author.operand(operand), dispatch)
                self._memory.write(
                    Write(author, operand, pattern.begin, pattern.end, pattern, tensor, self._written)
                )
            elif pattern.access & UNDEFINE:
                self._memory.forget(pattern.begin, pattern.end)

    def _copy(self, accesses: Accesses, author: Author) -> None:
        patterns = self._places.reached(accesses).patterns
        sources = [pattern for pattern, operand in patterns if operand == accesses.pointer[0].operand]
        targets = [pattern for pattern, operand in patterns if operand == accesses.pointer[1].operand]
        self._written += 1
        if len(sources) == len(targets) == 1:
            source, target = sources[0], targets[0]
            self._memory.copy(source.begin, target.begin, target.end - target.begin, author, self._written)
            return
        for target in targets:  # through tiles in several places
            self._memory.write(Write(author, 1, target.begin, target.end, None, None, self._written))

    # --- reads ---

    def _dispatch(self, event: Executing) -> _Dispatch | None:
        """The recorded dispatch that a packet belongs to."""
        found = None
        for each in self._dispatches.get(event.list_serial, ()):
            if each.first > event.command:
                break
            found = each
        return found

    def _compare(self, event: Executing, dispatch: _Dispatch | None, read: Pattern, operand: int) -> None:
        command = self.names.command(event)
        operands = command.command.operands
        path = operands[operand] if operand < len(operands) else ""
        tensor = _tensor(read, path, dispatch)
        if tensor is None:
            return
        sources = self._memory.sources(read)
        known = [each for each in sources if each.write is not None]
        for each in known:
            assert each.write is not None
            if each.write.tensor is None:
                continue
            relation = relate(each.write.tensor, tensor, is_all=len(sources) == 1)
            if relation.is_mistake:
                self._say(event, ids.LAYOUT_HANDOVER, read, messages.handover(command, tensor, each, relation))
                return
        leftover = self._leftover(read, sources) if len(sources) > 1 else None
        if leftover is not None:
            newer, older = leftover
            self._say(event, ids.READ_MIXED, read, messages.mixed(command, tensor, newer, older))

    def _leftover(self, read: Pattern, sources: list[Source]) -> tuple[Source, Source] | None:
        """What was written last, and older bytes beside it that it was written over."""
        for i, newer in enumerate(sources):
            for older in sources[i + 1 :]:
                if newer.write is None or older.write is None:
                    continue
                if _is_beneath(older.write, newer.write):
                    return newer, older
        writes = [each.write for each in sources if each.write is not None]
        if len(writes) == len(sources) > 1 and all(_is_cut(read, each) for each in writes):
            return sources[0], sources[-1]
        return None

    def _say(self, event: Executing, id: ids.Id, read: Pattern, words: dict[str, object]) -> None:
        command = self.names.command(event)
        first, end = read.begin - read.shift, read.end - read.shift
        self.report(
            id,
            operation=command.place,
            object=self.names.buffer(first) or "",
            ranges=(self.names.bytes(first, end),),
            **words,  # type: ignore[arg-type]
        )


def _is_beneath(older: Write, newer: Write) -> bool:
    """Whether the newer one was written over a part of the older one."""
    return older.begin < newer.end and newer.begin < older.end


def _is_cut(read: Pattern, write: Write) -> bool:
    """Whether a read reaches only a part of what was written."""
    return write.begin < read.begin or write.end > read.end


def _tensor(pattern: Pattern, path: str, dispatch: _Dispatch | None) -> Tensor | None:
    """The tensor that the footprint is, or a part of."""
    desc = None if dispatch is None else dispatch.descs.get(path)
    if desc is None:
        return None
    struct = pattern.struct
    if struct.end - struct.address == desc.extent_in_bytes:
        return Tensor(path, desc.data_type, tuple(desc.sizes), desc.effective_strides, struct.address)
    sizes, strides = tuple(struct.sizes[0 : struct.rank]), tuple(struct.strides[0 : struct.rank])
    return Tensor(path, desc.data_type, sizes, strides, struct.address)


CHECKS = (WhoseBytes,)
