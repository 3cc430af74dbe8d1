"""Delayed visibility of mapped memory: the CPU works on a copy that is synchronized at defined points.

Under chaos, CPU writes become visible to the GPU at ExecuteCommandLists or Unmap (MP7), or at a signal that
may unblock a queue (MP6).  GPU writes become visible to the CPU at Map or when it has observed a fence value.
Direct3D 12 guarantees nothing earlier.
"""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dmlemu_hw.allocation import Heap as HardwareHeap
from dmlemu_hw.chaos import Mode
from dmlemu_hw.events import Decided, Queued, Signalled, Submitted, Waited
from dmlemu_hw.gpu import Gpu
from dmlemu_hw.packets import Opcode

from .resource import HostAccessed, HostMapped, Resource

_PIECE = 1 << 20  # bytes compared at a time

Array = np.ndarray[Any, np.dtype[np.uint8]]


class Staging:
    """A copy of ``memory`` for the CPU.  Both sides may write; if both wrote a byte, the CPU's value wins.

    Other host threads may write the copy at any moment, so only bytes that the GPU has changed may be
    written to it.  All other accesses require the GPU's lock.
    """

    def __init__(self, memory: memoryview) -> None:
        self._gpu: Array = np.frombuffer(memory, np.uint8)
        self._cpu: Array = np.zeros(len(memory), np.uint8)
        self._seen: Array = np.zeros(len(memory), np.uint8)  # contents at the last synchronization

    @property
    def memory(self) -> memoryview:
        """The copy, writable."""
        return memoryview(self._cpu)  # type: ignore[arg-type]

    def to_gpu(self, begin: int, end: int) -> bool:
        """Copies the bytes that the CPU has changed to the GPU's memory; whether there are any."""
        found = False
        for part in _pieces(begin, end):
            cpu, seen = self._cpu[part], self._seen[part]
            if not np.array_equal(cpu, seen):
                changed = cpu != seen
                self._gpu[part][changed] = seen[changed] = cpu[changed]
                found = True
        return found

    def to_cpu(self, begin: int, end: int) -> bool:
        """Copies the bytes that the GPU has changed to the CPU's copy; whether there are any."""
        found = False
        for part in _pieces(begin, end):
            gpu, cpu, seen = self._gpu[part], self._cpu[part], self._seen[part]
            if not np.array_equal(gpu, seen):
                # Bytes that the CPU has changed too keep its value, which to_gpu copies later.
                changed = (gpu != seen) & (cpu == seen)
                cpu[changed] = seen[changed] = gpu[changed]
                found = True
        return found


def _pieces(begin: int, end: int) -> list[slice]:
    return [slice(start, min(start + _PIECE, end)) for start in range(begin, end, _PIECE)]


class LateVisibility:
    """The stagings of a device's mapped heaps, synchronized on events of the device.

    Events arrive with the GPU's lock held; methods called by any thread take it.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._lock = gpu.lock
        self._heaps: weakref.WeakKeyDictionary[HardwareHeap, _Mapped] = weakref.WeakKeyDictionary()
        self._stream = gpu.events
        self._follows_checks = False
        self._stream.subscribe(self._on_host, Submitted, Queued, Signalled)
        self._stream.subscribe(self._on_waited, Waited)

    def map(self, resource: Resource) -> memoryview:
        """The CPU's view of a buffer, synchronized; called once until the last :meth:`unmap`."""
        heap, begin, end = _place(resource)
        with self._lock:
            if not self._follows_checks:
                self._follows_checks = True
                self._stream.subscribe(self._on_mapped, HostMapped)
                self._stream.subscribe(self._on_accessed, HostAccessed)
            mapped = self._heaps.get(heap)
            if mapped is None:
                mapped = self._heaps[heap] = _Mapped(Staging(resource.allocation.heap_buffer()))
            mapped.ranges[begin, end] += 1
            return mapped.staging.memory[begin:end]

    def unmap(self, resource: Resource, *, last: bool) -> None:
        """Makes the CPU's writes visible to the GPU; writes after the last Unmap never become visible."""
        heap, begin, end = _place(resource)
        with self._lock:
            mapped = self._heaps[heap]
            has_changed = mapped.staging.to_gpu(begin, end)
            if last:
                mapped.write_only.discard(resource.address)
                mapped.ranges[begin, end] -= 1
                mapped.ranges += Counter()  # drops entries with count 0
                if not mapped.ranges:
                    del self._heaps[heap]
            self._show(has_changed, "CPU")

    def _on_mapped(self, event: HostMapped) -> None:
        heap, begin, end = _place(event.resource)
        mapped = self._heaps.get(heap)
        if mapped is None:
            return  # unmapped by another thread meanwhile
        if event.maps == 1 and event.read == (0, 0):
            mapped.write_only.add(event.resource.address)
        elif event.read != (0, 0):
            mapped.write_only.discard(event.resource.address)
        self._show(mapped.staging.to_cpu(begin, end), "GPU")

    def _on_accessed(self, event: HostAccessed) -> None:
        """A check may have filled bytes outside the read range with a pattern, to detect the CPU's writes."""
        heap, begin, _ = _place(event.resource)
        mapped = self._heaps.get(heap)
        if mapped is not None and event.reads and event.resource.address in mapped.write_only:
            mapped.staging.to_cpu(begin + event.begin, begin + event.end)

    def _on_host(self, event: Submitted | Queued | Signalled) -> None:
        if isinstance(event, Signalled) and event.queue:
            return  # that was the GPU
        if isinstance(event, Queued) and event.opcode != Opcode.SIGNAL:
            return  # unblocks no queue
        for mapped in list(self._heaps.values()):
            for begin, end in mapped.ranges:
                self._show(mapped.staging.to_gpu(begin, end), "CPU")

    def _on_waited(self, event: Waited) -> None:
        if event.queue == 0:  # the host
            for mapped in list(self._heaps.values()):
                for begin, end in mapped.ranges:
                    self._show(mapped.staging.to_cpu(begin, end), "GPU")

    def _show(self, has_changed: bool, writer: str) -> None:
        """Tells subscribers that writes have become visible."""
        if has_changed and self._stream.wants(Decided):
            other = "GPU" if writer == "CPU" else "CPU"
            what = f"the {writer}'s writes to mapped memory become visible to the {other} only now"
            self._stream.emit(Decided(Mode.VISIBILITY.value, what))


@dataclass
class _Mapped:
    """A mapped heap: its mapped bytes, the map counts, and buffers that the CPU only writes."""

    staging: Staging
    ranges: Counter[tuple[int, int]] = field(default_factory=Counter)
    write_only: set[int] = field(default_factory=set)  # their addresses


def _place(resource: Resource) -> tuple[HardwareHeap, int, int]:
    """The heap of a buffer, and the buffer's byte range in it."""
    allocation = resource.allocation
    assert allocation.heap is not None  # reserved buffers cannot be mapped
    return allocation.heap, allocation.offset, allocation.offset + resource.width
