"""Descriptor tracking: who wrote each descriptor, and which recorded commands still need it (BT14, DH10).

The GPU reads descriptors when it executes: a program that overwrites them too early, or lets two binding
tables share them, computes with the wrong buffers.  The place of a descriptor is its GPU handle; descriptors
of heaps that are not shader-visible have the handle that they would have if they were.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE, Descriptors

from ...errors import CallSite, spell_site
from .object import Object
from .recording import Command, Recording
from .submissions import when_done

__all__ = ["Binder", "ByPlace", "DescriptorUses", "Reader"]

_FEW = 4096  # places kept before released heaps are purged
_Value = TypeVar("_Value")


class ByPlace(dict[int, _Value]):
    """A map keyed by descriptor place."""

    def __init__(self, descriptors: Descriptors) -> None:
        super().__init__()
        self._descriptors = descriptors
        self._limit = _FEW

    def tidy(self) -> None:
        """Drops the descriptors of released heaps, once there are many; places are never reused."""
        if len(self) < self._limit:
            return
        for place in list(self):
            if self._descriptors.locate_place(place) is None:
                self.pop(place, None)
        self._limit = max(_FEW, 2 * len(self))


class Binder(NamedTuple):
    """A call to a binding table method that wrote descriptors."""

    table: weakref.ref[Object]
    title: object  # its str
    method: str
    site: CallSite | None

    def __str__(self) -> str:
        """``BindOutputs of binding table #2 at app.py:12``."""
        at = spell_site(self.site)
        return f"{self.method} of {self.title}" + (f" at {at}" if at else "")


@dataclass(eq=False)
class Reader:
    """A recorded command that reads descriptors, from the GPU handle ``start`` on.

    ``operands``: the command's name for each of them.  ``expected``: the bytes that each must hold when
    its list is submitted; None if any content is allowed: nothing was bound, or it may change until then
    (``volatile``).  ``source`` is the place of the descriptors that the program must copy there; 0 if the
    table, called ``title``, writes them in place.
    """

    command: Command
    recording: weakref.ref[Recording]
    start: int
    operands: tuple[str, ...]
    expected: tuple[bytes | None, ...]
    volatile: bool
    source: int = 0
    table: weakref.ref[Object] | None = None
    title: object = ""  # its str
    arrived: bool = False  # the expected descriptors were present at least once

    def differs(self, content: bytes) -> int | None:
        """The first descriptor whose bytes in ``content`` differ from the expected ones."""
        for at, data in enumerate(self.expected):
            if data is not None and content[at * DESCRIPTOR_SIZE :][:DESCRIPTOR_SIZE] != data:
                return at
        return None

    def reads_as(self, other: Reader) -> bool:
        """Whether both read the same descriptors of one table, bound the same way, in one list."""
        return (
            self.expected is other.expected
            and self.recording == other.recording
            and self.start == other.start
        )

    @property
    def is_needed(self) -> bool:
        """Whether the GPU has yet to execute the command, or its list may still be submitted."""
        recording = self.recording()
        return recording is not None and recording.is_needed

    @property
    def is_submitted(self) -> bool:
        recording = self.recording()
        return recording is not None and recording.submitted is not None

    @property
    def when_done(self) -> str:
        """The hint: what to wait for."""
        recording = self.recording()
        if recording is None or recording.submitted is None:
            return ""
        return when_done(*recording.submitted)

    @property
    def list_name(self) -> str:
        """The name of the command list."""
        recording = self.recording()
        if recording is None:
            return "a command list"
        return recording.owner or str((recording.recorder and recording.recorder()) or "a command list")

    def __str__(self) -> str:
        """``the dispatch of compiled operator 'relu' (command 3 of command list 'frame')``."""
        return f"{self.command.brief} (command {self.command.number} of {self.list_name})"

    @property
    def context(self) -> str:
        """The line that recorded it, for the context of a report."""
        at = f" at {self.command.recorded_at}" if self.command.recorded_at else ""
        table = f" with {self.title}" if self.title else ""
        place = f"command {self.command.number} of {self.list_name}"
        return f"{self.command.name} was recorded{at}{table} as {place}"


class DescriptorUses:
    """The binders and readers of every descriptor of one device."""

    def __init__(self, descriptors: Descriptors) -> None:
        self._binders: ByPlace[Binder] = ByPlace(descriptors)
        self._readers: ByPlace[list[Reader]] = ByPlace(descriptors)

    def bound(self, handles: Sequence[int], binder: Binder) -> None:
        """A binding table has written these descriptors."""
        self._binders.tidy()
        for handle in handles:
            self._binders[handle] = binder

    def binder(self, handle: int) -> Binder | None:
        """The binding table that wrote the descriptor last."""
        return self._binders.get(handle)

    def add(self, reader: Reader, recording: Recording) -> None:
        """A command that reads descriptors was recorded.

        One reader represents all commands of a list that use one table with the same bindings.
        """
        readers = self._readers.setdefault(reader.start, [])
        if readers and readers[-1].reads_as(reader):
            return
        recording.readers.append(reader)
        self._readers.tidy()
        for i in range(len(reader.operands)):
            readers = self._readers.setdefault(reader.start + i * DESCRIPTOR_SIZE, [])
            count = len(readers)
            if count >= 8 and not count & (count - 1):  # most of them are finished
                readers[:] = [each for each in readers if each.is_needed]
            readers.append(reader)

    def readers(self, handle: int) -> Iterable[Reader]:
        """The recorded commands that still need the descriptor, latest first."""
        readers = self._readers.get(handle)
        if readers and readers[0].recording() is None:
            readers[:] = [each for each in readers if each.recording() is not None]
        if not readers:
            return ()
        return (each for each in reversed(readers) if each.is_needed)
