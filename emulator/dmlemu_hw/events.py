"""The event stream: every check, tracer and profiler is a subscriber; the core contains none of them.

Whoever has something to tell writes ``if events: events.emit(...)``, so that nothing is computed
when nobody listens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType


@dataclass(frozen=True)
class Footprint:
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


@dataclass(frozen=True)
class Allocated:
    """Memory came into being.  ``kind``: heap, placed or reserved; heaps have no address."""

    kind: str
    serial: int
    address: int
    size: int
    label: str
    heap: int = 0  # serial of the heap that a placed allocation lies in
    offset: int = 0


@dataclass(frozen=True)
class Freed:
    """The heap, placed or reserved allocation was given up."""

    kind: str
    serial: int
    address: int
    size: int
    label: str


@dataclass(frozen=True)
class Mapped:
    """Tiles of a reserved allocation got new memory; ``heap`` 0 means NULL."""

    allocation: int
    tile: int
    count: int
    heap: int
    heap_tile: int
    reuse: bool


@dataclass(frozen=True)
class Recorded:
    """The host recorded a command (emitted by whoever owns the packet writer)."""

    list_serial: int
    command: int
    opcode: int
    label: str = ""


@dataclass(frozen=True)
class Submitted:
    """Lists were handed to a queue; the last one has the ticket, those before it the numbers before."""

    queue: int
    ticket: int
    lists: tuple[int, ...]


@dataclass(frozen=True)
class Executed:
    """A command ran from tick ``start`` to ``end``.  ``packet`` holds its bytes."""

    queue: int
    ticket: int
    list_serial: int
    command: int
    opcode: int
    packet: bytes
    start: int
    end: int


@dataclass(frozen=True)
class RangeRead:
    """The command that is about to run reads these elements; ``operand`` counts its operands."""

    queue: int
    ticket: int
    list_serial: int
    command: int
    operand: int
    footprint: Footprint


@dataclass(frozen=True)
class RangeWritten:
    """The command that is about to run writes these elements."""

    queue: int
    ticket: int
    list_serial: int
    command: int
    operand: int
    footprint: Footprint


@dataclass(frozen=True)
class Barrier:
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


@dataclass(frozen=True)
class Signalled:
    """A fence got a value.  ``queue`` 0: from the host."""

    queue: int
    fence: int
    value: int


@dataclass(frozen=True)
class Waited:
    """A queue went past a wait."""

    queue: int
    fence: int
    value: int


Event = (
    Allocated
    | Freed
    | Mapped
    | Recorded
    | Submitted
    | Executed
    | RangeRead
    | RangeWritten
    | Barrier
    | Signalled
    | Waited
)
Callback = Callable[[Event], None]


class EventStream:
    """Calls its subscribers, in the order in which they subscribed; false while there are none."""

    def __init__(self) -> None:
        self._subscriptions: tuple[Subscription, ...] = ()

    def __bool__(self) -> bool:
        return bool(self._subscriptions)

    def subscribe(self, callback: Callback) -> Subscription:
        """From now on ``callback`` gets every event, on the thread that runs the GPU.

        It must not wait for the GPU.  What it raises leaves the call that ran the GPU.
        """
        subscription = Subscription(self, callback)
        self._subscriptions = (*self._subscriptions, subscription)
        return subscription

    def emit(self, event: Event) -> None:
        for subscription in self._subscriptions:
            subscription.callback(event)

    def _remove(self, subscription: Subscription) -> None:
        self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)


class Subscription:
    """Ends with :meth:`close`, or as a context manager."""

    def __init__(self, stream: EventStream, callback: Callback) -> None:
        self.callback = callback
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
