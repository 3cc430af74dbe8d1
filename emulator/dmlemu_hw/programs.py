"""Programs: compute shaders as the GPU knows them, by number.

A packet names a program and has the DWORDs of its root arguments; the program says, for each range of
registers of the shader, which of them lead to its views.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from .descriptors import DESCRIPTOR_SIZE, DescriptorKind
from .formats import formats_of
from .kernels import ffi, lib
from .shader_watch import MOST_BYTES, Watch

__all__ = ["Kind", "NativeCode", "Program", "ProgramRange", "Source", "WatchedCode", "words_at", "words_of"]

_UAV, _SRV, _CBV = 0x8, 0x40, 0x1  # D3D12_RESOURCE_STATES
_STATES = {DescriptorKind.UAV: _UAV, DescriptorKind.SRV: _SRV, DescriptorKind.CBV: _CBV}


class Kind(IntEnum):
    """``enum dmlk_shader_kind``: what a range of registers is declared as."""

    CBUFFER = lib.DMLK_SHADER_KIND_CBUFFER
    TYPED = lib.DMLK_SHADER_KIND_TYPED
    RAW = lib.DMLK_SHADER_KIND_RAW
    STRUCTURED = lib.DMLK_SHADER_KIND_STRUCTURED


class Source(IntEnum):
    """What the root argument of a range is."""

    CONSTANTS = 0  # the DWORDs themselves
    ROOT = 1  # the address of a buffer
    TABLE = 2  # the GPU handle of a descriptor


class ProgramRange(NamedTuple):
    """A range of registers, and where its views come from.

    ``name``: in messages.  ``descriptor``: the kind of its descriptors.  ``word``: the first DWORD of its
    root argument.  ``first``: the place of its first descriptor in the table.  ``count``: of descriptors, 0:
    up to the end of the heap; of CONSTANTS, the number of DWORDs.  ``stride``: bytes of a structured buffer's
    element. ``element``: the type of a typed buffer's: ``"float"``; of a structured one's numbers, if all
    have one.  ``has_counter``: the shader uses the UAV's counter.
    ``is_volatile``: its descriptors may be written until the list is submitted.  ``register``:
    ``"t1, space2"``, in numbers ``lower`` and ``space``.
    """

    name: str
    kind: Kind
    descriptor: DescriptorKind
    source: Source
    word: int
    first: int = 0
    count: int = 1  # type: ignore[assignment]  # not the method of tuples
    stride: int = 0
    element: str = ""
    has_counter: bool = False
    is_volatile: bool = False
    register: str = ""
    lower: int = 0
    space: int = 0

    def view(self, index: int) -> str:
        """What the shader calls one of its views: ``"u5 (space 2) 'sums[1]'"``; ``"u5"``: it has no name."""
        letter = {DescriptorKind.UAV: "u", DescriptorKind.SRV: "t"}.get(self.descriptor, "b")
        space = f" (space {self.space})" if self.space else ""
        place = "" if self.count == 1 or self.source is Source.CONSTANTS else f"[{index}]"
        name = "" if self.name == self.register else f" '{self.name}{place}'"
        return f"{letter}{self.lower + index}{space}{name}"

    @property
    def title(self) -> str:
        """The name, for the beginning of a sentence, too: names of shaders are not to be capitalized."""
        return f"'{self.name}'"

    @property
    def state(self) -> int:
        """The ``D3D12_RESOURCE_STATES`` that its buffers must be in."""
        return _STATES[self.descriptor]

    @property
    def writes(self) -> bool:
        return self.descriptor is DescriptorKind.UAV


class WatchedCode(NamedTuple):
    """Native code of the same shader that tells ``dmlk_shader_call.watch`` of each access.

    ``threads`` of a group along x, y and z; ``lanes`` of a wave.  ``order_matters``: its results may depend
    on the order of groups, without a race.
    """

    address: int
    threads: tuple[int, int, int]
    lanes: int
    shared_bytes: int
    frame_bytes: int
    order_matters: bool
    keeper: object

    def watch(self, *, most_bytes: int = MOST_BYTES, in_parts: bool = False) -> Watch:
        """A watch of one dispatch; ``most_bytes`` of memory for it, ``in_parts`` as of :class:`.Watch`."""
        x, y, z = self.threads
        return Watch(x * y * z, self.lanes, self.shared_bytes, most_bytes=most_bytes, in_parts=in_parts)


class NativeCode(Protocol):
    """What runs a shader; it may be made when it is first asked for.

    ``address``: of a ``dmlk_shader_group``.  ``frame_bytes``: memory in which the waves of a group wait.
    """

    @property
    def address(self) -> int: ...
    @property
    def frame_bytes(self) -> int: ...


class Program:
    """A shader that the GPU can run, with its bindings.

    ``label``: of the pipeline state, for messages.  ``code`` lives as long as the program.
    ``words``: DWORDs of its root arguments.  ``threads``: of a group.  ``uses_heap``: it reads descriptors of
    the heap that is set.  ``watched`` makes the code for :attr:`watched`.
    """

    def __init__(
        self,
        label: str,
        code: NativeCode,
        ranges: tuple[ProgramRange, ...],
        *,
        words: int,
        threads: int,
        shared_bytes: int = 0,
        uses_heap: bool = False,
        watched: Callable[[], WatchedCode | None] | None = None,
        flush: bool = False,
    ) -> None:
        self.serial = 0
        self.label = label
        self.code = code
        self.ranges = ranges
        self.words = words
        self.threads = threads
        self.shared_bytes = shared_bytes
        self.flush = flush
        self.uses_heap = uses_heap
        self._watched = watched
        self._watched_code: WatchedCode | None = None
        self.closed = False
        self.wants = [want_of(each) for each in ranges]

    @property
    def watched(self) -> WatchedCode | None:
        """The code that tells of each access, made when it is first asked for; None: there is none."""
        if self._watched is not None:
            self._watched_code, self._watched = self._watched(), None
        return self._watched_code

    def close(self) -> None:
        """The GPU cannot run it any more."""
        self.closed = True

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """The names of what a dispatch accesses: the ranges, their counters, and what is no range."""
        counters = (f"the counter of {each.title}" for each in self.ranges)
        others = ("ResourceDescriptorHeap", "pArgumentBuffer", "pCountBuffer")
        return (*(each.title for each in self.ranges), *counters, *others)

    def counter_operand(self, number: int) -> int:
        return len(self.ranges) + number

    @property
    def heap_operand(self) -> int:
        return 2 * len(self.ranges)

    def place_of(self, operand: int, arguments: bytes) -> int:
        """Where the first descriptor of an operand is; 0: it has none."""
        if not 0 <= operand < len(self.ranges) or self.ranges[operand].source is not Source.TABLE:
            return 0
        each = self.ranges[operand]
        return address_in(arguments, each.word) + each.first * DESCRIPTOR_SIZE

    def state_of(self, operand: int) -> int:
        """The ``D3D12_RESOURCE_STATES`` in which an operand's buffer must be."""
        count = len(self.ranges)
        if operand < count:
            return self.ranges[operand].state
        if operand < 2 * count:
            return _UAV
        return _UAV | _SRV | _CBV if operand == self.heap_operand else 0x200  # INDIRECT_ARGUMENT


def want_of(each: ProgramRange) -> Any:
    """The ``dmlk_shader_want`` of a range, and what it points to."""
    sizes = ffi.new("uint8_t[256]", formats_of(each.element)) if each.kind is Kind.TYPED else ffi.NULL
    want = ffi.new(
        "dmlk_shader_want *",
        {
            "kind": int(each.kind),
            "descriptor": int(each.descriptor),
            "stride": each.stride,
            "has_counter": each.has_counter,
            "sizes": sizes,
        },
    )
    return want, sizes


def words_of(value: int) -> tuple[int, int]:
    """The two DWORDs of an address or a handle."""
    return value & 0xFFFFFFFF, value >> 32


def words_at(arguments: bytes, word: int, count: int) -> tuple[int, ...]:
    """DWORDs of root arguments.  struct.error: they are too short."""
    return struct.unpack_from(f"<{count}I", arguments, 4 * word)


def address_in(arguments: bytes, word: int) -> int:
    """The address or the handle at a DWORD of root arguments.  struct.error: they are too short."""
    found: int = struct.unpack_from("<Q", arguments, 4 * word)[0]
    return found
