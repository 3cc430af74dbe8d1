"""The event stream: checks, tracers and profilers are subscribers; the core contains none of them.

Emitters write ``if events: events.emit(...)``, so that no event is computed without subscribers.  The layers
above emit their own events on the same stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from types import TracebackType
from typing import Any, NamedTuple, overload

from .kernels import ffi, lib
from .packets import is_joined

READ: int = lib.DMLK_READ
WRITE: int = lib.DMLK_WRITE
UNDEFINE: int = lib.DMLK_UNDEFINE
MAYBE_READ: int = lib.DMLK_MAYBE_READ

_SIZE = ffi.sizeof("dmlk_footprint")
_buffer = ffi.buffer


class Footprint(NamedTuple):
    """The elements that a command reads or writes: a strided pattern, not a byte range.

    ``address`` is the GPU virtual address of element (0, 0, ...); ``strides`` count elements.
    """

    address: int
    element_bits: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def byte_range(self) -> tuple[int, int]:
        """First byte and the byte after the last one (GPU virtual addresses)."""
        last = sum((size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True))
        return self.address, self.address + ((last + 1) * self.element_bits + 7) // 8


class Access(NamedTuple):
    """How a command accesses elements.  ``operand`` is the index of its tensor or buffer.

    ``access``: READ, WRITE, both, or UNDEFINE, which leaves the contents undefined; or MAYBE_READ alone:
    which of these elements the kernel reads is not known: it depends on data, or takes too many footprints.
    """

    operand: int
    access: int
    footprint: Footprint


class Accesses(Sequence[Access]):
    """What one command accesses: ``length`` structs ``dmlk_footprint`` at ``pointer``, decoded on demand.

    ``owner``: the array that they are a part of.
    """

    def __init__(self, pointer: Any, length: int, content: bytes | None = None, owner: Any = None) -> None:
        self.pointer = pointer
        self._length = length
        self._owner = owner
        if content is not None:
            self.content = content

    @cached_property
    def content(self) -> bytes:
        """The bytes of the structs: equal for all commands that access the same elements in the same way."""
        return bytes(_buffer(self.pointer, _SIZE * self._length))

    @cached_property
    def not_followed(self) -> Sequence[Access]:
        """Those that are MAYBE_READ."""
        pointer, maybe = self.pointer, MAYBE_READ
        return [self[i] for i in range(self._length) if pointer[i].access == maybe]

    @staticmethod
    def of(accesses: Sequence[Access]) -> Accesses:
        """The structs for these accesses."""
        array = ffi.new("dmlk_footprint[]", max(1, len(accesses)))
        for entry, (operand, access, footprint) in zip(array, accesses, strict=False):
            entry.address, entry.end = footprint.byte_range
            entry.operand, entry.access = operand, access
            entry.bits, entry.rank = footprint.element_bits, len(footprint.sizes)
            for i, (size, stride) in enumerate(zip(footprint.sizes, footprint.strides, strict=True)):
                entry.sizes[i], entry.strides[i] = size, stride
        return Accesses(array, len(accesses))

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Access: ...
    @overload
    def __getitem__(self, index: slice) -> list[Access]: ...
    def __getitem__(self, index: int | slice) -> Access | list[Access]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(f"access {index} of {self._length}")
        entry = self.pointer[index % self._length]
        rank = entry.rank
        sizes, strides = tuple(entry.sizes[0:rank]), tuple(entry.strides[0:rank])
        return Access(entry.operand, entry.access, Footprint(entry.address, entry.bits, sizes, strides))

    def __iter__(self) -> Iterator[Access]:
        return (self[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


NO_ACCESSES = Accesses.of(())


class Stretch:
    """Consecutive dispatches and UAV barriers on any resource, with the descriptors of one moment.

    Of each packet: its ``accesses`` (of a barrier, NO_ACCESSES), whether it is ``joined`` to the one before,
    and whether it ``continues`` in the one behind.  ``offsets`` and ``firsts``: where each begins, in bytes,
    and its footprints, in the array ``footprints``; both have an entry for the end.
    """

    def __init__(
        self, data: bytes, content: bytes, counts: list[int], offsets: list[int], follows: bool
    ) -> None:
        self.packets = data
        self.content = content
        self.offsets = offsets
        self.count = len(counts)
        self.firsts = [0, *accumulate(counts)]
        self.footprints: Any = ffi.new("dmlk_footprint[]", max(1, self.firsts[-1]))
        ffi.memmove(self.footprints, content, len(content))
        self.joined = [is_joined(data, at) for at in offsets[:-1]]
        self.continues = [*self.joined[1:], follows]
        self.accesses: list[Accesses] = []
        known: dict[bytes, Accesses] = {}
        for first, end in pairwise(self.firsts):
            part = content[first * _SIZE : end * _SIZE]
            made = (
                Accesses(self.footprints + first, end - first, part, self.footprints) if part else NO_ACCESSES
            )
            self.accesses.append(known.setdefault(part, made))
        self.contents = {part for part in known if part}

    def has(self, data: bytes, start: int, count: int, content: bytes) -> bool:
        """Whether these are its packets, the contents of their accesses, and what follows."""
        end = start + self.offsets[-1]
        return (
            count == self.count
            and content == self.content
            and data[start:end] == self.packets
            and is_joined(data, end) == self.continues[-1]
        )


class Allocated(NamedTuple):
    """Memory was allocated.  ``kind``: heap, placed or reserved; heaps have no address."""

    kind: str
    serial: int
    address: int
    size: int
    label: str
    heap: int = 0  # serial of the heap that contains a placed allocation
    offset: int = 0


class Freed(NamedTuple):
    """The heap, placed or reserved allocation was freed.

    Garbage collection may emit this at any moment, on any thread: subscribers may only record it.
    """

    kind: str
    serial: int
    address: int
    size: int
    label: str


class Mapped(NamedTuple):
    """Tiles of a reserved allocation were mapped; ``heap`` 0 means NULL.

    Only some of them are mapped when the host ran out of mappings; OutOfMemory is raised then.
    """

    allocation: int
    tile: int
    count: int  # type: ignore[assignment]  # not the method of tuples
    heap: int
    heap_tile: int
    reuse: bool


class TilesMapped(NamedTuple):
    """A queue has executed the tile mapping update with this ticket."""

    queue: int
    ticket: int


class Recorded(NamedTuple):
    """The host recorded a command (emitted by the owner of the packet writer)."""

    list_serial: int
    command: int
    opcode: int
    label: str = ""


class Submitted(NamedTuple):
    """Command lists were submitted; the last has this ticket, the others the consecutive ones before it."""

    queue: int
    ticket: int
    lists: tuple[int, ...]


class Queued(NamedTuple):
    """The host queued a signal, a wait or a tile mapping update.

    ``fence`` and ``value``: what is signalled or awaited, else 0.
    """

    queue: int
    ticket: int
    opcode: int
    fence: int = 0
    value: int = 0


class Executing(NamedTuple):
    """A command is about to run, with all its accesses; ``packet`` holds its bytes.

    ``joined``: it continues the previous command; nothing runs between them.  ``continues``: the next command
    continues this one.
    """

    queue: int
    ticket: int
    list_serial: int
    command: int
    opcode: int
    packet: bytes
    joined: bool
    accesses: Accesses
    continues: bool = False


class Accessing(Executing):
    """An :class:`Executing` of a command that may access memory: all but barriers, markers and the like.

    Subscribers to ``Executing`` receive these too; subscribers to this class do not receive the others.
    """

    __slots__ = ()


class LeftUndefined(NamedTuple):
    """A command ran, and reported that it left part of its output undefined."""

    queue: int
    ticket: int
    list_serial: int
    command: int
    access: Access


class Executed(NamedTuple):
    """A command ran from tick ``start`` to ``end``."""

    queue: int
    ticket: int
    list_serial: int
    command: int
    opcode: int
    packet: bytes
    start: int
    end: int


class Barrier(NamedTuple):
    """A barrier was executed; values are D3D12's, address 0 stands for any resource."""

    queue: int
    ticket: int
    list_serial: int
    command: int
    kind: int
    address: int
    address_after: int
    before: int
    after: int
    flags: int


class Signalled(NamedTuple):
    """A fence value was set.  ``queue`` 0: by the host, which also sets the initial value."""

    queue: int
    fence: int
    value: int


class Waited(NamedTuple):
    """A queue completed a wait.  ``queue`` 0: the host observed that the fence has reached this value."""

    queue: int
    fence: int
    value: int


class HostWaiting(NamedTuple):
    """A host thread blocks until fences (address, value) are reached; :class:`HostResumed` follows on it."""

    fences: tuple[tuple[int, int], ...]


class HostResumed(NamedTuple):
    """The wait is over: the fences are reached, its time is up, or it raises."""

    fences: tuple[tuple[int, int], ...]


class Decided(NamedTuple):
    """Chaos chose among permitted behaviors: ``mode`` as in :class:`.chaos.Mode`, ``what`` in words.

    ``queue``: the serial of the queue that it is about; 0: of none.
    """

    mode: str
    what: str
    queue: int = 0


Event = (
    Allocated
    | Freed
    | Mapped
    | TilesMapped
    | Recorded
    | Submitted
    | Queued
    | Executing
    | Accessing
    | LeftUndefined
    | Executed
    | Barrier
    | Signalled
    | Waited
    | HostWaiting
    | HostResumed
    | Decided
)
Callback = Callable[[Any], None]


class Place(NamedTuple):
    """Where a queue has come to: the first command that is executed next."""

    queue: int
    ticket: int
    list_serial: int
    command: int


class Foresight:
    """A subscriber that knows beforehand about which commands it would have nothing to say.

    Where all subscribers to the events of commands do, these commands run together, without events.  As it
    is here, dispatches and barriers do not concern it.
    """

    def foresees(self, stretch: Stretch, place: Place) -> int:
        """How many packets of the stretch, which begins at the place, need no events.

        All that they would change is what :meth:`passed` does.  Until then no events are emitted.
        """
        return stretch.count

    def passed(self, stretch: Stretch, place: Place, first: int, end: int) -> None:
        """Packets [first, end) of the stretch were executed; the last one may have failed."""


class _Callbacks(dict[type, tuple[Callback, ...]]):
    """Callbacks by event class, collected from the subscriptions on first use."""

    def __init__(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions

    def __missing__(self, kind: type) -> tuple[Callback, ...]:
        listeners = [each for each in self._subscriptions if not each.kinds or issubclass(kind, each.kinds)]
        self[kind] = tuple(each.callback for each in listeners)
        return self[kind]

    @cached_property
    def foresights(self) -> tuple[Foresight, ...] | None:
        """Those of all subscribers to the events of commands; None: one of them has none."""
        found: dict[Foresight, None] = {}
        for each in self._subscriptions:
            if each.kinds and not any(issubclass(kind, each.kinds) for kind in _OF_COMMANDS):
                continue
            if each.foresight is None:
                return None
            found[each.foresight] = None
        return tuple(found)


_OF_COMMANDS = (Executing, Accessing, LeftUndefined, Barrier, Executed)


class EventStream:
    """Calls its subscribers in the order of subscription; false while there are none.

    ``subscriptions``: to ask whether there are any, where a call would take too long.  ``callbacks``: those
    for events of a class, in that order; replaced when they change.  ``emitted`` changes with each event.
    ``on_exception`` is called with an exception of a subscriber before it propagates from :meth:`emit`.
    """

    def __init__(self) -> None:
        self.on_exception: Callable[[BaseException], None] | None = None
        self.callbacks = _Callbacks(())
        self.emitted = 0
        self.subscriptions: tuple[Subscription, ...] = ()
        self._lock = threading.RLock()  # any thread may subscribe

    def __bool__(self) -> bool:
        return bool(self.subscriptions)

    def subscribe(
        self,
        callback: Callback,
        *kinds: type,
        kept: list[Subscription] | None = None,
        foresight: Foresight | None = None,
    ) -> Subscription:
        """Calls ``callback`` with every later event of these classes (none given: all events).

        ``kept`` receives the subscription before it becomes active, so that it can be closed even when a
        signal handler raises here.  ``foresight`` says which commands the callback need not see.

        The callback runs on the thread that runs the GPU and must not wait for the GPU.  Its exceptions
        propagate from the call that ran the GPU.
        """
        if not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}.")
        for kind in kinds:
            if not isinstance(kind, type):
                raise TypeError(f"kinds must be classes of events, got {kind!r}.")
        subscription = Subscription(self, callback, kinds, foresight)
        if kept is not None:
            kept.append(subscription)
        with self._lock:
            self._set((*self.subscriptions, subscription))
        return subscription

    def wants(self, kind: type) -> bool:
        """Whether there are subscribers for events of this class."""
        return bool(self.callbacks[kind])

    def emit(self, event: object) -> None:
        self.emitted += 1
        try:
            for callback in self.callbacks[type(event)]:
                callback(event)
        except BaseException as error:
            if self.on_exception is not None:
                self.on_exception(error)
            raise

    def _set(self, subscriptions: tuple[Subscription, ...]) -> None:
        self.subscriptions = subscriptions
        self.callbacks = _Callbacks(subscriptions)

    def _remove(self, subscription: Subscription) -> None:
        with self._lock:
            self._set(tuple(each for each in self.subscriptions if each is not subscription))


class Subscription:
    """Ends with :meth:`close`, or as a context manager."""

    def __init__(
        self,
        stream: EventStream,
        callback: Callback,
        kinds: tuple[type, ...],
        foresight: Foresight | None = None,
    ) -> None:
        self.callback = callback
        self.kinds = kinds
        self.foresight = foresight
        self._stream = stream

    def close(self) -> None:
        self._stream._remove(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
