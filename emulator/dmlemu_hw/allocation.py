"""Heaps and allocations: the objects that own memory; freed with the last reference."""

from __future__ import annotations

import sys
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from .reservation import Reservation
from .storage import Mapped, Storage

if TYPE_CHECKING:

    class Owner(Protocol):
        """What heaps and allocations need from the memory that created them.

        ``to_free`` receives the entry of each closed or destroyed object; ``free_closed`` frees them, and
        ``free_collected`` if that is possible without waiting.
        """

        @property
        def to_free(self) -> deque[Entry]: ...

        def free_closed(self) -> None: ...

        def free_collected(self) -> None: ...


class Entry(weakref.ref[Any]):
    """The memory's record of a heap or an allocation: a weak reference that outlives the object.

    ``mapped`` therefore lives until the memory has freed the entry.  ``registered``: the memory may have it
    in its tables; False before that, and once it has been freed and the event emitted.
    """

    # Until construction is complete:
    address = 0
    kind = ""
    label = ""
    mapped: Mapped | None = None
    offset = 0
    registered = False
    serial = 0
    size = 0

    @property
    def host(self) -> int:
        return 0 if self.mapped is None else self.mapped.host + self.offset

    def describe(self) -> str:
        """For messages: label and size, or the serial when it has no label."""
        return f"{self.label or f'allocation {self.serial}'} ({self.size} bytes)"


class Owned:
    """Base of heaps and allocations: they are freed with the last reference."""

    _closing = True  # until construction is complete
    entry: Entry

    def __init__(
        self,
        memory: Owner,
        kind: str,
        mapped: Mapped,
        serial: int,
        address: int,
        offset: int,
        size: int,
        label: str,
    ) -> None:
        self.size = size
        self.serial = serial
        self._memory = memory
        self.entry = entry = Entry(self, memory.to_free.append)  # C code: nothing interrupts it
        entry.kind, entry.serial, entry.address, entry.size = kind, serial, address, size
        entry.label, entry.mapped, entry.offset = label, mapped, offset
        self._closing = False

    @property
    def label(self) -> str:
        """The name used in messages and events."""
        return self.entry.label

    @label.setter
    def label(self, label: str) -> None:
        self.entry.label = label

    @property
    def closed(self) -> bool:
        """Whether it has been freed."""
        return self._closing or self.entry.mapped is None

    def close(self) -> None:
        """Frees it; further calls do nothing."""
        if not self._closing:
            self._memory.to_free.append(self.entry)
            self._closing = True
            self._memory.free_closed()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing() and not self._closing:  # the modules of subscribers may be gone
            self._memory.to_free.append(self.entry)
            self._closing = True
            self._memory.free_collected()

    def describe(self) -> str:
        """For messages."""
        raise NotImplementedError

    def opened(self) -> Mapped:
        mapped = self.entry.mapped
        if self._closing or mapped is None:
            raise ValueError(f"{self.describe()} is closed.")
        return mapped


class Heap(Owned):
    """``size`` bytes of memory, ``capacity`` after rounding up; mirrors ``ID3D12Heap``.

    The bytes stay alive while an allocation or a mapped tile uses them.
    """

    def __init__(self, memory: Owner, storage: Storage, size: int, serial: int, label: str) -> None:
        super().__init__(memory, "heap", storage, serial, 0, 0, size, label)
        self.capacity = storage.capacity

    def describe(self) -> str:
        """For messages: the label, or the serial when it has none."""
        return self.label or f"heap {self.serial}"

    def storage(self) -> Storage:
        storage = self.opened()
        assert isinstance(storage, Storage)
        return storage


class Allocation(Owned):
    """GPU virtual addresses [address, address + size), mapped at ``host`` in this process.

    ``heap`` and ``offset`` are the location of a placed allocation; ``heap`` is None for a reserved one.
    ``is_buffer``: addresses of commands may refer to it; not so descriptors, queries and what is the device's
    own.
    """

    is_buffer = True

    def __init__(
        self,
        memory: Owner,
        mapped: Mapped,
        address: int,
        size: int,
        heap: Heap | None,
        offset: int,
        label: str,
        serial: int,
    ) -> None:
        self.address = address
        self.host = mapped.host + offset
        self.heap = heap
        self.offset = offset
        super().__init__(
            memory, "reserved" if heap is None else "placed", mapped, serial, address, offset, size, label
        )

    @property
    def kind(self) -> str:
        return "placed" if self.heap is not None else "reserved"

    def buffer(self) -> memoryview:
        """The bytes themselves, writable, no copy; they stay mapped while the view lives.

        ValueError: the allocation is closed.
        """
        return self.opened().export(self.offset, self.size)

    def heap_buffer(self) -> memoryview:
        """All bytes of the heap that contains a placed allocation, as :meth:`buffer`."""
        mapped = self.opened()
        assert isinstance(mapped, Storage)
        return mapped.export(0, mapped.capacity)

    def describe(self) -> str:
        """For messages: label and size, or the serial when it has no label."""
        return self.entry.describe()

    def reservation(self) -> Reservation:
        mapped = self.opened()
        if not isinstance(mapped, Reservation):
            raise ValueError(f"{self.describe()} is not a reserved allocation: it has no tiles.")
        return mapped
