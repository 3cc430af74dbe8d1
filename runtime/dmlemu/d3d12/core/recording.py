"""Recordings: what a command list records between Reset and Close, and what each list type allows."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from dmlemu_hw.packets import Opcode
from dmlemu_hw.queue import Queue as HardwareQueue

from ...errors import CallSite, spell_site
from ..types.enums import CommandListType
from .object import Object

_DIRECT = CommandListType.DIRECT
_COMPUTE = CommandListType.COMPUTE
_COPY = CommandListType.COPY
_BUNDLE = CommandListType.BUNDLE

# The list types that may record each command (CL13).
TRANSFER = frozenset({_DIRECT, _COMPUTE, _COPY})
SHADING = frozenset({_DIRECT, _COMPUTE})
SETTING = frozenset({_DIRECT, _COMPUTE, _BUNDLE})
IMMEDIATE = frozenset({_DIRECT, _COMPUTE, _COPY, _BUNDLE})
DRAWING = frozenset({_DIRECT})


class Command(NamedTuple):
    """The description of a recorded command, for messages; it keeps no object alive.

    ``name``: ``CopyBufferRegion``, or the dispatched operator.  ``number`` counts the list's commands from 0;
    the packets of one dispatch share it.  ``operands``: the names of the packet's operands.  ``opcode``: None
    where the list is gone.
    """

    name: str
    number: int
    operands: tuple[str, ...] = ()
    site: CallSite | None = None
    opcode: Opcode | None = None

    def __str__(self) -> str:
        """``CopyBufferRegion (command 3)``, in the middle of a sentence."""
        return f"{self.within} (command {self.number})"

    @property
    def brief(self) -> str:
        """The name in the middle of a sentence, without the details in parentheses."""
        return self.within.rsplit(" (", 1)[0] if self.name.endswith(")") else self.within

    @property
    def within(self) -> str:
        """The name in the middle of a sentence."""
        return f"the d{self.name[1:]}" if self.name.startswith("Dispatch ") else self.name

    @property
    def recorded_at(self) -> str:
        """``file:line``; empty at strictness ``runtime``."""
        return spell_site(self.site)

    def of(self, owner: str) -> str:
        """``CopyResource (command 1 of command list 'frame', recorded at model.py:12)``."""
        at = f", recorded at {self.recorded_at}" if self.recorded_at else ""
        return f"{self.within} (command {self.number} of {owner}{at})"

    def context(self, owner: str) -> str:
        """A line for the context of a report; ``owner`` is the list."""
        at = f" at {self.recorded_at}" if self.site else ""
        return f"{self.name} was recorded{at} as command {self.number} of {owner}"


@dataclass(eq=False)
class Recording:
    """One list's commands from Reset to Close, and what executing them requires.

    ``needs`` are the objects that its commands refer to, each with the index of the last such command.  It
    keeps them alive: garbage collection does not free them under submitted work.  An explicit release
    does, and the GPU then faults.
    """

    serial: int
    allocator: Object
    generation: int
    owner: str = ""
    needs: dict[Object, int] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)  # one per packet
    readers: list[Any] = field(default_factory=list)  # what its commands read: see DescriptorUses
    # Last checks of ExecuteCommandLists, in recording order; each returns a function that undoes it.
    on_submit: list[Callable[[], Callable[[], None] | None]] = field(default_factory=list)
    submitted: tuple[HardwareQueue, int] | None = None
    executed_at: CallSite | None = None  # where ExecuteCommandLists was called
    packets: bytes = b""
    recorder: weakref.ref[Object] | None = None  # the command list
    is_current: bool = True  # the command list has not started another one

    @cached_property
    def needed(self) -> dict[weakref.ref[Object], int]:
        """``needs`` of a closed list, and its allocator (-1), as weak references."""
        needed: dict[weakref.ref[Object], int] = {weakref.ref(each): at for each, at in self.needs.items()}
        needed[weakref.ref(self.allocator)] = -1
        return needed

    @property
    def is_pending(self) -> bool:
        """Whether it is submitted and the GPU has not finished it."""
        return self.submitted is not None and not self.submitted[0].done(self.submitted[1])

    def need(self, thing: Object) -> Command | None:
        """The last command that refers to the object."""
        at = self.needs.get(thing, len(self.commands))
        return self.commands[at] if at < len(self.commands) else None

    def named(self, packet: int, owner: str = "") -> str:
        """``CopyResource (command 1 of command list 'frame', recorded at model.py:12)``; empty: unknown."""
        if not 0 <= packet < len(self.commands):
            return ""
        return self.commands[packet].of(owner or self.owner)

    @property
    def pending(self) -> str:
        """Where it was submitted, for the context of a report on a pending recording."""
        at = f" at {spell_site(self.executed_at)}" if self.executed_at else ""
        queue = self.submitted[0].label if self.submitted is not None else "no queue"
        return f"{self.owner} was handed to {queue}{at} and is pending"

    def find_released(self) -> Object | None:
        """A released object that executing it needs."""
        if self.allocator.released:
            return self.allocator
        return next((thing for thing in self.needs if thing.released), None)

    @property
    def is_needed(self) -> bool:
        """Whether the GPU has yet to execute it, or its list may still be submitted."""
        if self.submitted is None:
            return self.is_current and self.recorder is not None and self.recorder() is not None
        return self.is_pending
