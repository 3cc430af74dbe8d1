"""The event stream: every check, tracer and profiler is a subscriber; the core contains none of them.

Whoever has something to tell writes ``if events: events.emit(...)``, so that nothing is computed
when nobody listens.  The layers above emit events of their own on the same stream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, overload

from .frozen import Frozen
from .kernels import ffi, lib

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
    """How a command touches some elements.  ``operand`` counts its tensors or buffers.

    ``access``: READ, WRITE, both, or UNDEFINE, which leaves contents that nobody may rely on; or MAYBE_READ
    alone: a kernel chooses by data which of these elements it reads, and its choice is not known.
    """

    operand: int
    access: int
    footprint: Footprint


class Accesses(Sequence[Access]):
    """What one command touches: so many structs ``dmlk_footprint`` at ``pointer``, read on demand."""

    def __init__(self, pointer: Any, length: int, content: bytes | None = None) -> None:
        self.pointer = pointer
        self._length = length
        self._content = content

    @property
    def content(self) -> bytes:
        """The bytes of the structs: equal for all commands that touch the same elements in the same way."""
        content = self._content
        if content is None:
            content = self._content = bytes(_buffer(self.pointer, _SIZE * self._length))
        return content

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


class Allocated(NamedTuple):
    """Memory came into being.  ``kind``: heap, placed or reserved; heaps have no address."""

    kind: str
    serial: int
    address: int
    size: int
    label: str
    heap: int = 0  # serial of the heap that a placed allocation lies in
    offset: int = 0


class Freed(NamedTuple):
    """The heap, placed or reserved allocation was given up.

    Garbage collection may bring this at any moment, on any thread: only take a note of it.
    """

    kind: str
    serial: int
    address: int
    size: int
    label: str


class Mapped(Frozen):
    """Tiles of a reserved allocation got new memory; ``heap`` 0 means NULL.

    When the host had no more mappings only some of them, which OutOfMemory tells.
    """

    allocation: int
    tile: int
    count: int
    heap: int
    heap_tile: int
    reuse: bool


class TilesMapped(NamedTuple):
    """A queue has executed the change of tiles that it was given as this ticket."""

    queue: int
    ticket: int


class Recorded(NamedTuple):
    """The host recorded a command (emitted by whoever owns the packet writer)."""

    list_serial: int
    command: int
    opcode: int
    label: str = ""


class Submitted(NamedTuple):
    """Lists were handed to a queue; the last one has the ticket, those before it the numbers before."""

    queue: int
    ticket: int
    lists: tuple[int, ...]


class Queued(NamedTuple):
    """The host handed something else to a queue: a signal, a wait or a change of tiles.

    ``fence`` and ``value``: what is signalled or awaited, else 0.
    """

    queue: int
    ticket: int
    opcode: int
    fence: int = 0
    value: int = 0


class Executing(NamedTuple):
    """The command that is about to run, and all that it will touch; ``packet`` holds its bytes.

    ``joined``: it is a further part of what the command before began; nothing comes between them.
    ``continues``: the next one is a further part of it.
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
    """An :class:`Executing` of a command that may touch memory: of all but barriers, markers and the like.

    Who subscribes to ``Executing`` gets these too; who subscribes to these is spared the others.
    """

    __slots__ = ()


class LeftUndefined(NamedTuple):
    """A command ran, and by its own word left elements undefined that it was to write."""

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
    """A barrier was reached; the numbers are D3D12's, address 0 stands for any resource."""

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
    """A fence got a value.  ``queue`` 0: from the host, which also gives it the first."""

    queue: int
    fence: int
    value: int


class Waited(NamedTuple):
    """A queue went past a wait.  ``queue`` 0: the host knows that the fence has reached this value."""

    queue: int
    fence: int
    value: int


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
)
Callback = Callable[[Any], None]


class _Callbacks(dict[type, tuple[Callback, ...]]):
    """By the kind of event, looked up among the subscriptions when first asked for."""

    def __init__(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions

    def __missing__(self, kind: type) -> tuple[Callback, ...]:
        listeners = [each for each in self._subscriptions if not each.kinds or issubclass(kind, each.kinds)]
        self[kind] = tuple(each.callback for each in listeners)
        return self[kind]


class EventStream:
    """Calls its subscribers, in the order in which they subscribed; false while there are none.

    ``on_exception`` is called with whatever a subscriber raises, before it leaves :meth:`emit`.
    """

    def __init__(self) -> None:
        self.on_exception: Callable[[BaseException], None] | None = None
        self._subscriptions: tuple[Subscription, ...] = ()
        self._callbacks = _Callbacks(())
        self._lock = threading.RLock()  # any thread may subscribe

    def __bool__(self) -> bool:
        return bool(self._subscriptions)

    def subscribe(
        self, callback: Callback, *kinds: type, kept: list[Subscription] | None = None
    ) -> Subscription:
        """From now on ``callback`` gets every event of these kinds (none named: all of them).

        ``kept`` gets the subscription before it begins, so that the handler of a signal that raises
        leaves none that nobody can close.

        It is called on the thread that runs the GPU and must not wait for the GPU.  What it raises
        leaves the call that ran the GPU.
        """
        if not callable(callback):
            raise TypeError(f"callback must be callable, got {callback!r}.")
        for kind in kinds:
            if not isinstance(kind, type):
                raise TypeError(f"kinds must be classes of events, got {kind!r}.")
        subscription = Subscription(self, callback, kinds)
        if kept is not None:
            kept.append(subscription)
        with self._lock:
            self._set((*self._subscriptions, subscription))
        return subscription

    def wants(self, kind: type) -> bool:
        """Does anybody listen to such events?"""
        return bool(self._callbacks[kind])

    def emit(self, event: object) -> None:
        try:
            for callback in self._callbacks[type(event)]:
                callback(event)
        except BaseException as error:
            if self.on_exception is not None:
                self.on_exception(error)
            raise

    def _set(self, subscriptions: tuple[Subscription, ...]) -> None:
        self._subscriptions = subscriptions
        self._callbacks = _Callbacks(subscriptions)

    def _remove(self, subscription: Subscription) -> None:
        with self._lock:
            self._set(tuple(each for each in self._subscriptions if each is not subscription))


class Subscription:
    """Ends with :meth:`close`, or as a context manager."""

    def __init__(self, stream: EventStream, callback: Callback, kinds: tuple[type, ...]) -> None:
        self.callback = callback
        self.kinds = kinds
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
