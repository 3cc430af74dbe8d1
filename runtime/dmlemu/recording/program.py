"""A record as one program: dispatches on shared buffers, and what the buffers hold at first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from math import gcd, lcm
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .. import dml
from ..dml.tensor_desc import BufferTensorDesc, element_bits
from ..errors import capital
from ..evaluation import pack_tensor
from .file import RecordError
from .model import Array, Dispatch, Place, Record, RecordedTensor, Work
from .shader_calls import is_constants, read_only, view_steps

__all__ = [
    "Call",
    "Program",
    "Upload",
    "call_of",
    "cannot_run",
    "contents",
    "fitted",
    "laid_bytes",
    "mended",
    "packed",
    "program_of",
]

_MOST_BYTES = 1 << 30  # of all buffers
_GAP = 256  # bytes: what remains between tensors that lie far apart; offsets modulo this are kept

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Upload(NamedTuple):
    """``size`` bytes that come from the CPU, or from a command that is not repeated.

    What they are is decided by their first readers.
    """

    place: Place
    size: int


class Call(NamedTuple):
    """A dispatch; ``arrays`` are the elements that its inputs had (None for outputs).

    ``places``: None for a tensor with a buffer of its own.
    """

    work: Work
    places: tuple[Place | None, ...]
    arrays: tuple[Array | None, ...]
    site: str

    def bound(self) -> Iterator[tuple[RecordedTensor, Place, Array | None]]:
        """The tensors that lie in the program's buffers."""
        for tensor, place, array in zip(self.work.tensors, self.places, self.arrays, strict=True):
            if place is not None:
                yield tensor, place, array


Step = Upload | Call


class Program(NamedTuple):
    """``buffers`` are names.  ``array`` gives the constants of graphs by key.

    ``slack``: bytes of each buffer after its last tensor.  A check may ask whether an upload was larger than
    the tensor that is read from it.
    """

    buffers: tuple[str, ...]
    steps: tuple[Step, ...]
    array: Callable[[str], Array]
    slack: int = _GAP

    @property
    def calls(self) -> list[Call]:
        return [each for each in self.steps if isinstance(each, Call)]

    @property
    def level(self) -> dml.FeatureLevel:
        return max((each.work.level for each in self.calls), default=dml.FeatureLevel.LEVEL_1_0)

    @property
    def element_count(self) -> int:
        """Of all tensors."""
        return sum(tensor.desc.element_count for call in self.calls for tensor in call.work.tensors)

    def sizes(self) -> list[int]:
        """The bytes of each buffer."""
        found = [0] * len(self.buffers)
        for place, size in _ranges(self.calls):
            end = place.offset + size + self.slack
            found[place.buffer] = max(found[place.buffer], -(-end // 4) * 4)
        return found


def _ranges(steps: Sequence[Step]) -> Iterator[tuple[Place, int]]:
    for step in steps:
        if isinstance(step, Upload):
            yield step
        else:
            yield from ((place, tensor.desc.size_in_bytes) for tensor, place, _ in step.bound())


# --- from a record ---


def program_of(record: Record) -> tuple[Program, list[str]]:
    """The program that a record describes, and sentences about what is missing from it.

    Raises :class:`RecordError` for one that is too large.
    """
    steps: list[Step] = []
    notes: list[str] = []
    written = sorted(record.written, key=lambda each: each.before)
    at = 0
    for dispatch in record.dispatches:
        while at < len(written) and written[at].before <= dispatch.number:
            steps.append(Upload(written[at].place, written[at].size))
            at += 1
        reason = cannot_run(dispatch)
        if not reason:
            steps.append(call_of(record, dispatch))
            continue
        notes.append(f"{capital(str(dispatch))}, was taken for an upload of its outputs: {reason}.")
        for i, tensor in dispatch.tensors(output=True):
            place = dispatch.where[i]
            if place is not None:
                steps.append(Upload(place, tensor.desc.extent_in_bytes))
    return mended(fitted(Program(tuple(record.buffers), tuple(steps), record.array))), notes


def call_of(record: Record, dispatch: Dispatch) -> Call:
    """A dispatch that can be run again."""
    arrays = [
        None if key is None or tensor.output else record.array(key)
        for key, tensor in zip(dispatch.contents, dispatch.work.tensors, strict=True)
    ]
    return Call(dispatch.work, dispatch.where, tuple(arrays), dispatch.site)


def fitted(program: Program) -> Program:
    """Packed, with buffers that can be bound.  RecordError: it is too large."""
    program = packed(_separated(program))
    size = sum(program.sizes())
    if size > _MOST_BYTES:
        raise RecordError(f"The record's buffers take {size} bytes; at most {_MOST_BYTES} can be run again.")
    return program


def cannot_run(dispatch: Dispatch) -> str:
    """Why a dispatch cannot be run again; empty if it can."""
    if isinstance(dispatch.work.desc, str):
        return dispatch.work.desc
    if not dispatch.is_complete:
        return "its contents are not recorded"
    for i, place in enumerate(dispatch.where):
        if dispatch.work.is_shader and place is None and not is_constants(dispatch.work, i):
            return "one of its views lay in no buffer of the program"
    return ""


def _separated(program: Program) -> Program:
    """A shader needs a buffer in one state for what it reads and in another for what it writes, and resources
    of one heap are one buffer of a record: of these, what does not overlap becomes buffers of its own."""
    shared = {buffer for call in program.calls for buffer in _in_two_states(call)}
    parts = {buffer: _Parts(program, buffer) for buffer in shared}
    names = list(program.buffers)
    for buffer in sorted(parts):
        parts[buffer].first = len(names)
        names += [program.buffers[buffer]] * len(parts[buffer])
    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Upload):
            part = parts.get(step.place.buffer)
            steps += [step] if part is None else part.uploads(step)
        else:
            places = (
                parts[place.buffer].place(place) if place is not None and place.buffer in parts else place
                for place in step.places
            )
            steps.append(step._replace(places=tuple(places)))
    return program._replace(buffers=tuple(names), steps=tuple(steps))


def _in_two_states(call: Call) -> set[int]:
    if not call.work.is_shader:
        return set()
    read, written = set(read_only(call.work)), set()
    for i, tensor in enumerate(call.work.tensors):
        if tensor.output:
            written.add(i)
    found = [{place.buffer for i in each if (place := call.places[i])} for each in (read, written)]
    return found[0] & found[1]


class _Parts:
    """The parts of a buffer that do not overlap; ``first``: the number of the first one's new buffer."""

    first = 0

    def __init__(self, program: Program, buffer: int) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        for place, size in sorted(_ranges(program.calls)):
            if place.buffer != buffer:
                continue
            if self._ends and place.offset < self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], place.offset + size)
            else:
                self._begins.append(place.offset)
                self._ends.append(place.offset + size)

    def __len__(self) -> int:
        return len(self._begins)

    def place(self, place: Place) -> Place:
        return Place(self.first + bisect_right(self._begins, place.offset) - 1, place.offset)

    def uploads(self, upload: Upload) -> Iterator[Upload]:
        begin, end = upload.place.offset, upload.place.offset + upload.size
        for number, (first, last) in enumerate(zip(self._begins, self._ends, strict=True)):
            if begin < last and first < end:
                at = max(begin, first)
                yield Upload(Place(self.first + number, at), min(end, last) - at)


def packed(program: Program) -> Program:
    """Without buffers, uploads and distances that no dispatch needs."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for place, size in _ranges(program.calls):
        spans.setdefault(place.buffer, []).append((place.offset, place.offset + size))
    steps_of: dict[int, list[tuple[int, int]]] = {}
    for call in program.calls:
        for tensor, offset, element in view_steps(call.work):
            at = call.places[tensor]
            if at is not None:
                steps_of.setdefault(at.buffer, []).append((at.offset + offset, element))
    numbers = {buffer: number for number, buffer in enumerate(sorted(spans))}
    maps = {
        buffer: _Squeezed(each, program.slack, steps_of.get(buffer, [])) for buffer, each in spans.items()
    }

    def moved(place: Place) -> Place:
        return Place(numbers[place.buffer], maps[place.buffer](place.offset))

    steps: list[Step] = []
    for step in program.steps:
        if isinstance(step, Call):
            steps.append(step._replace(places=tuple(None if p is None else moved(p) for p in step.places)))
        elif step.place.buffer in maps:
            begin, end = moved(step.place), maps[step.place.buffer](step.place.offset + step.size)
            if end > begin.offset:
                steps.append(Upload(begin, end - begin.offset))
    taken: dict[str, int] = {}
    names = []
    for buffer in sorted(spans):
        name = program.buffers[buffer] or "buffer"
        taken[name] = taken.get(name, 0) + 1
        names.append(name if taken[name] == 1 else f"{name} #{taken[name]}")
    return program._replace(buffers=tuple(names), steps=tuple(steps))


class _Squeezed:
    """New offsets: gaps between tensors become shorter, to the same offset modulo ``_GAP``.

    ``steps``: offsets that become multiples of a number, if they can: where views of shaders begin.
    """

    def __init__(self, spans: list[tuple[int, int]], slack: int, steps: list[tuple[int, int]]) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._moved: list[int] = []
        for begin, end in sorted(spans):
            if self._begins and begin <= self._ends[-1] + _GAP:
                self._ends[-1] = max(self._ends[-1], end)
                continue
            self._begins.append(begin)
            self._ends.append(end)
        wanted: list[list[tuple[int, int]]] = [[] for _ in self._begins]
        for offset, step in steps:
            at = bisect_right(self._begins, offset) - 1
            wanted[at].append((offset - self._begins[at], step))
        free = 0
        for begin, end, some in zip(self._begins, self._ends, wanted, strict=True):
            self._moved.append(_place_behind(free, begin, some))
            free = self._moved[-1] + end - begin
        self._ends[-1] += slack

    def __call__(self, offset: int) -> int:
        at = bisect_right(self._begins, offset) - 1
        if at < 0:
            return self._moved[0]
        return self._moved[at] + min(offset, self._ends[at]) - self._begins[at]


def _place_behind(free: int, begin: int, wanted: list[tuple[int, int]]) -> int:
    """The first place from ``free`` on, rounded up, that is ``begin`` modulo ``_GAP`` and from which each
    offset of ``wanted`` is a multiple of its number, as far as that is possible."""
    place, period = begin % _GAP, _GAP
    for offset, step in wanted:
        for more in range(step // gcd(step, period)):
            if (place + more * period + offset) % step == 0:
                place += more * period
                period = lcm(period, step)
                break
    free = -(-free // _GAP) * _GAP
    return place + max(0, -(-(free - place) // period)) * period


# --- what the buffers hold ---


def contents(program: Program) -> tuple[list[Bytes], dict[int, Bytes]]:
    """The bytes of each buffer at the beginning, and those of each upload by its step."""
    initial = [
        _content(program.steps, Place(number, 0), size)[0] for number, size in enumerate(program.sizes())
    ]
    uploads = {
        number: _content(program.steps[number + 1 :], each.place, each.size)[0]
        for number, each in enumerate(program.steps)
        if isinstance(each, Upload)
    }
    return initial, uploads


def mended(program: Program) -> Program:
    """With an upload before each dispatch that reads other bytes than a dispatch before it did, where
    none of the program writes in between.
    """
    steps = list(program.steps)
    for number, size in enumerate(program.sizes()):
        at, place = 0, Place(number, 0)
        while True:
            _, clash = _content(steps[at:], place, size)
            if clash is None:
                break
            at += clash[0]
            place, size = clash[1], clash[2]
            steps.insert(at, Upload(place, size))
            at += 1
            place, size = Place(number, 0), program.sizes()[number]
            if at > 2 * len(program.steps):
                break
    return program._replace(steps=tuple(steps))


def _content(steps: Sequence[Step], place: Place, size: int) -> tuple[Bytes, tuple[int, Place, int] | None]:
    """What ``size`` bytes at ``place`` hold before these steps, by what they read; bytes that nobody reads
    are 0.  And the first step that reads something else, with those bytes."""
    data, is_open = np.zeros(size, np.uint8), np.ones(size, np.bool_)
    is_known = np.zeros(size, np.bool_)
    clash: tuple[int, Place, int] | None = None
    for number, step in enumerate(steps):
        if isinstance(step, Upload):
            if not is_open.any():
                break
            if step.place.buffer == place.buffer:
                begin = max(0, step.place.offset - place.offset)
                is_open[begin : max(0, step.place.offset + step.size - place.offset)] = False
            continue
        for tensor, at, array in sorted(step.bound(), key=lambda each: each[0].output):
            first = at.offset - place.offset
            here = slice(max(0, first), max(0, first + tensor.desc.extent_in_bytes))
            if at.buffer != place.buffer or not is_open[here].any():
                continue
            there = slice(here.start - first, here.start - first + len(is_open[here]))
            mask = _mask(tensor.desc)[there] & is_open[here]
            if array is None:
                is_open[here] &= ~mask
                continue
            values = laid_bytes(tensor.desc, array)[there]
            other = mask & is_known[here] & (data[here] != values)
            if clash is None and other.any():
                clash = number, at, tensor.desc.extent_in_bytes
            new = mask & ~is_known[here]
            data[here][new] = values[new]
            is_known[here] |= mask
    return data, clash


def _elements(desc: BufferTensorDesc, memory: Bytes, dtype: Any) -> Any:
    """The elements of a tensor in its bytes."""
    flat = memory[: desc.extent_in_bytes].view(dtype)
    strides = [each * flat.itemsize for each in desc.effective_strides]
    return as_strided(flat, tuple(desc.sizes), strides)


def _mask(desc: BufferTensorDesc) -> Any:
    """Which bytes of its extent belong to elements."""
    bits = element_bits(desc.data_type)
    if bits < 8:
        return np.ones(desc.extent_in_bytes, np.bool_)
    memory = np.zeros(desc.extent_in_bytes, np.uint8)
    _elements(desc, memory, f"u{bits // 8}")[...] = np.array(-1, f"i{bits // 8}").astype(f"u{bits // 8}")
    return memory != 0


def laid_bytes(desc: BufferTensorDesc, array: Array) -> Bytes:
    """The bytes of its extent; where elements share a place, the last one counts."""
    if element_bits(desc.data_type) < 8:
        return pack_tensor(desc, array)[: desc.extent_in_bytes]
    memory = np.zeros(desc.extent_in_bytes, np.uint8)
    _elements(desc, memory, array.dtype)[...] = array
    return memory
