"""Descriptors: 32 bytes each in heap memory, laid out as ``struct dmlk_descriptor``.

The GPU handle of a descriptor is the GPU virtual address of its bytes.  The CPU handle is that address plus a
constant, so that neither is valid in place of the other.
"""

from __future__ import annotations

import struct
import weakref
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from .allocation import Allocation
from .events import EventStream
from .kernels import ffi, lib
from .lock import Lock
from .memory import END_ADDRESS, Memory

_DESCRIPTOR = struct.Struct("<BBHIQQQ")  # struct dmlk_descriptor
DESCRIPTOR_SIZE = _DESCRIPTOR.size
DESCRIPTOR_RAW: int = lib.DMLK_DESCRIPTOR_RAW

_CPU_HANDLES = 16 * END_ADDRESS

assert ffi.sizeof("dmlk_descriptor") == DESCRIPTOR_SIZE == 32


class DescriptorKind(IntEnum):
    """``enum dmlk_descriptor_kind``."""

    UNWRITTEN = 0
    CBV = 1
    SRV = 2
    UAV = 3


_UAV = int(DescriptorKind.UAV)


class Descriptor(NamedTuple):
    """A view of ``size`` bytes at ``address`` (0: null descriptor).

    ``stride`` is the element size of a structured buffer, ``format`` a DXGI_FORMAT value, ``flags`` may
    contain DESCRIPTOR_RAW.
    """

    kind: DescriptorKind
    flags: int = 0
    stride: int = 0
    format: int = 0
    address: int = 0
    size: int = 0
    counter_address: int = 0

    def encode(self) -> bytes:
        """The 32 bytes.  ValueError: a value does not fit its field."""
        try:
            return _DESCRIPTOR.pack(
                self.kind,
                self.flags,
                self.stride,
                self.format,
                self.address,
                self.size,
                self.counter_address,
            )
        except struct.error as error:
            raise ValueError(f"A number of the descriptor does not fit its field ({error}).") from None

    @staticmethod
    def raw_uav(format: int, address: int, size: int) -> bytes:
        """The 32 bytes of a raw UAV; address and size 0: a null descriptor."""
        return _DESCRIPTOR.pack(_UAV, DESCRIPTOR_RAW, 0, format, address, size, 0)

    @staticmethod
    def decode(data: bytes | memoryview) -> Descriptor:
        """Decodes 32 bytes.  ValueError: the size differs, or the descriptor kind is unknown."""
        if len(data) != DESCRIPTOR_SIZE:
            raise ValueError(f"A descriptor has {len(data)} bytes; expected {DESCRIPTOR_SIZE}.")
        kind, *rest = _DESCRIPTOR.unpack(data)
        return Descriptor(DescriptorKind(kind), *rest)


class DescriptorHeap:
    """``count`` descriptors; mirrors ``ID3D12DescriptorHeap`` of type CBV_SRV_UAV.

    ``cpu_start`` and ``gpu_start`` are the handles of the first one; ``gpu_start`` is 0 when the heap
    is not shader-visible.
    """

    def __init__(self, owner: Descriptors, allocation: Allocation, count: int, shader_visible: bool) -> None:
        self.count = count
        self.shader_visible = shader_visible
        self.cpu_start = allocation.address + _CPU_HANDLES
        self.gpu_start = allocation.address if shader_visible else 0
        self.allocation = allocation
        self._owner = owner
        self._bytes = ffi.buffer(ffi.cast("char *", allocation.host), count * DESCRIPTOR_SIZE)

    @property
    def label(self) -> str:
        return self.allocation.label

    @label.setter
    def label(self, label: str) -> None:
        self.allocation.label = label

    def holds(self, address: int) -> bool:
        """Whether the address is one of its bytes; False for a closed heap."""
        allocation = self.allocation
        return 0 <= address - allocation.address < allocation.size and not allocation.closed

    def place(self, index: int) -> int:
        """See :meth:`Descriptors.place`."""
        return self.allocation.address + index * DESCRIPTOR_SIZE

    def put(self, index: int, encoded: bytes) -> None:
        """Writes encoded descriptors.  ValueError: they do not lie in the heap, or it is closed.

        A dispatch that runs meanwhile may read old bytes, new ones, or some of both: no program may write
        what a submitted list reads, static or volatile (DH10).  Kernels check a copy of their own.
        """
        if self._owner.is_watched():
            with self._owner._lock:
                self._put(index, encoded)
        else:  # without the lock, for which the program would wait while kernels run
            self._put(index, encoded)

    def _put(self, index: int, encoded: bytes) -> None:
        start = index * DESCRIPTOR_SIZE
        mapped = self.allocation.entry.mapped  # noqa: F841 (another thread may close the heap meanwhile)
        self.check(index, len(encoded) // DESCRIPTOR_SIZE)
        self._bytes[start : start + len(encoded)] = encoded

    def content(self, index: int, count: int) -> bytes:
        """The bytes of ``count`` descriptors.  ValueError: they do not lie in the heap, or it is closed."""
        start = index * DESCRIPTOR_SIZE
        with self._owner._lock:
            self.check(index, count)
            data: bytes = self._bytes[start : start + count * DESCRIPTOR_SIZE]
            return data

    def check(self, index: int, count: int) -> None:
        """ValueError: ``count`` descriptors do not lie in the heap, or it is closed."""
        if self.allocation.closed or not 0 <= index <= self.count - count:
            raise ValueError(
                f"{count} descriptors from {index} on do not lie in "
                f"{self.label or 'the heap'} of {self.count}."
            )

    def bytes_at(self, index: int, count: int) -> object:
        """Pointer to ``count`` descriptors.  ValueError: they do not lie in the heap, or it is closed."""
        self.check(index, count)
        return ffi.cast("uint8_t *", self.allocation.host + index * DESCRIPTOR_SIZE)

    def close(self) -> None:
        """Frees the heap; its handles are never reused."""
        self._owner._heaps.pop(self.allocation.address, None)
        self.allocation.close()


def _no_heap() -> None:
    pass


class Descriptors:
    """All descriptor heaps of one GPU."""

    def __init__(self, memory: Memory, lock: Lock, events: EventStream) -> None:
        self._memory = memory
        self._events = events
        self._lock = lock
        self._heaps: weakref.WeakValueDictionary[int, DescriptorHeap] = weakref.WeakValueDictionary()
        self._last: Callable[[], DescriptorHeap | None] = _no_heap  # the one that was found last

    def is_watched(self) -> bool:
        """Whether somebody is told what the GPU reads, so that nothing may change between two commands."""
        return bool(self._events.subscriptions)

    def create_heap(self, count: int, shader_visible: bool, label: str = "") -> DescriptorHeap:
        """A heap of ``count`` unwritten descriptors.  ValueError: ``count`` is not positive.  OutOfMemory."""
        if count <= 0:
            raise ValueError(f"The number of descriptors ({count}) is not positive.")
        with self._lock:
            size = count * DESCRIPTOR_SIZE
            memory = self._memory.create_heap(size, mappable=False, label=label)
            try:
                allocation = self._memory.place(memory, 0, size, label)
            finally:
                memory.close()  # the allocation keeps the bytes
            allocation.is_buffer = False
            heap = DescriptorHeap(self, allocation, count, shader_visible)
            self._heaps[allocation.address] = heap
        self._memory.free_closed()
        return heap

    def locate(self, cpu_handle: int) -> tuple[DescriptorHeap, int] | None:
        """The heap and index of the descriptor at a CPU handle; None: not the handle of a live descriptor."""
        return self._locate(cpu_handle - _CPU_HANDLES)

    def locate_gpu(self, gpu_handle: int) -> tuple[DescriptorHeap, int] | None:
        """As :meth:`locate`, for a GPU handle; only shader-visible heaps have one."""
        found = self._locate(gpu_handle)
        return found if found is not None and found[0].shader_visible else None

    def locate_place(self, place: int) -> tuple[DescriptorHeap, int] | None:
        """As :meth:`locate`, for the address of a descriptor's bytes (:meth:`place`)."""
        return self._locate(place)

    def write(self, cpu_handle: int, descriptor: Descriptor) -> None:
        """Writes a descriptor.  ValueError: no such handle."""
        self.put(cpu_handle, descriptor.encode())

    def put(self, cpu_handle: int, encoded: bytes) -> None:
        """Writes encoded descriptors.  ValueError: no such handle."""
        with self._lock:
            ffi.memmove(self._host(cpu_handle, len(encoded) // DESCRIPTOR_SIZE), encoded, len(encoded))

    def read(self, cpu_handle: int) -> Descriptor:
        """The descriptor at the handle.  ValueError: no such handle."""
        with self._lock:
            return Descriptor.decode(bytes(ffi.buffer(self._host(cpu_handle, 1), DESCRIPTOR_SIZE)))

    def content(self, handle: int, count: int) -> bytes:
        """The bytes of ``count`` descriptors from a CPU or GPU handle on.  ValueError: no such handle."""
        cpu_handle = handle if handle >= _CPU_HANDLES else handle + _CPU_HANDLES
        with self._lock:
            return bytes(ffi.buffer(self._host(cpu_handle, count), count * DESCRIPTOR_SIZE))

    @staticmethod
    def place(cpu_handle: int) -> int:
        """Address of the descriptor's bytes: its GPU handle, if the heap is shader-visible."""
        return cpu_handle - _CPU_HANDLES

    def copy(self, destination: int, source: int, count: int) -> None:
        """Copies ``count`` descriptors between CPU handles.  ValueError: a range exceeds its heap."""
        if count < 0:
            raise ValueError(f"The number of descriptors ({count}) is negative.")
        if count == 0:
            return
        with self._lock:
            ffi.memmove(self._host(destination, count), self._host(source, count), count * DESCRIPTOR_SIZE)

    def _locate(self, address: int) -> tuple[DescriptorHeap, int] | None:
        heap = self._last()
        if heap is None or not heap.holds(address):
            heap = self._find(address)
            if heap is None:
                return None
            self._last = weakref.ref(heap)
        index, rest = divmod(address - heap.allocation.address, DESCRIPTOR_SIZE)
        return None if rest else (heap, index)

    def _find(self, address: int) -> DescriptorHeap | None:
        allocation = self._memory.find(address)
        return None if allocation is None else self._heaps.get(allocation.address)

    def _host(self, cpu_handle: int, count: int) -> object:
        found = self.locate(cpu_handle)
        if found is None:
            raise ValueError(f"CPU descriptor handle {cpu_handle:#x} belongs to no descriptor heap.")
        heap, index = found
        return heap.bytes_at(index, count)
