"""The Direct3D 12 side of running a model: a queue, a list, uploads, read-backs, timestamps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.d3d12 import HeapType, ResourceBarrier, ResourceStates
from dmlemu.d3d12.core.rows import DEVICE_REMOVED
from dmlemu.diagnostics.rule import report_of
from dmlemu.errors import Error, HResult, Report, elide
from dmlemu.session import Session

from .initial_values import InitialValues
from .options import Options
from .timing import Samples

__all__ = ["MOST_NAME", "Device"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

MOST_NAME = 1000  # characters of a model's name used as an object name


class Device(Session):
    """A session with one command list, into which everything is recorded, executed and waited for."""

    def __init__(self, adapter: d3d12.Adapter, options: Options) -> None:
        flags = dml.CreateDeviceFlags.DEBUG if options.debug else dml.CreateDeviceFlags.NONE
        no_timeout = d3d12.CommandQueueFlags.DISABLE_GPU_TIMEOUT
        queue_flags = no_timeout if options.disable_gpu_timeout else d3d12.CommandQueueFlags.NONE
        device = d3d12.create_device(adapter, strictness=options.strictness)
        super().__init__(
            dml.create_device(device, flags, options.dml_feature_level),
            queue=d3d12.CommandQueueDesc(type=options.queue_type, flags=queue_flags),
            descriptors=0,  # each binding has a heap of its own
        )
        self.queue.set_name("of the model")
        self.list.set_name("of the model")
        self.options = options
        self._temporary: list[d3d12.Object] = []
        self._timestamps = _Timestamps(self.device, options.max_gpu_time_measurements)

    # --- buffers ---

    def buffer(
        self,
        name: str,
        size: int,
        heap: HeapType = HeapType.DEFAULT,
        *,
        heap_flags: d3d12.HeapFlags = d3d12.HeapFlags.NONE,
    ) -> d3d12.Resource:
        """A buffer whose name is shortened for messages."""
        return super().buffer(elide(name, MOST_NAME), size, heap, heap_flags=heap_flags)

    def initial(self, size: int, initial: InitialValues, name: str) -> d3d12.Resource:
        """A default-heap buffer, with the copy of its initial values recorded."""
        buffer = self.buffer(name, size)
        upload = self.buffer("upload of " + name, size, HeapType.UPLOAD)
        self.keep_until_executed(upload)
        initial.write(np.asarray(upload.map(0))[: initial.size])
        upload.unmap(0)
        self.transition(ResourceStates.UNORDERED_ACCESS, ResourceStates.COPY_DEST, buffer)
        self.list.copy_resource(buffer, upload)
        self.transition(ResourceStates.COPY_DEST, ResourceStates.UNORDERED_ACCESS, buffer)
        return buffer

    def download(self, buffer: d3d12.Resource) -> Bytes:
        """The bytes of a buffer, copied through a readback heap."""
        with self.readback_buffer("download", buffer.get_desc().width) as readback:
            self.transition(ResourceStates.UNORDERED_ACCESS, ResourceStates.COPY_SOURCE, buffer)
            self.list.copy_resource(readback, buffer)
            self.transition(ResourceStates.COPY_SOURCE, ResourceStates.UNORDERED_ACCESS, buffer)
            self.run()
            return self.read(readback, np.uint8)

    # --- execution ---

    def keep_until_executed(self, item: d3d12.Object) -> None:
        self._temporary.append(item)

    def record_dispatch(self, dispatchable: dml.CompiledOperator, table: dml.BindingTable) -> None:
        self.record_repeated(lambda: self.recorder.record_dispatch(self.list, dispatchable, table))

    def record_repeated(self, record: Callable[[], None]) -> None:
        """Records the repeated dispatch between two timestamps, with the requested barriers."""
        barriers = [ResourceBarrier.uav(None)] * self.options.uav_barrier
        barriers += [ResourceBarrier.aliasing(None, None)] * self.options.aliasing_barrier
        self._timestamps.record(self.list)
        for _ in range(self.options.dispatch_repeat):
            record()
            if barriers:
                self.list.resource_barrier(barriers)
        self._timestamps.record(self.list)

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Takes the time of what is dispatched inside of the block on other queues."""
        if self._timestamps.record(self.list):
            self.run()
        yield
        if self._timestamps.record(self.list):
            self.run()

    def wait(self) -> None:
        """Waits as a session does; raises if a device was removed, with the mistake that removed it."""
        try:
            self.fence.wait(self.fence_value)
        finally:  # after a removal this call fails too
            self.check_removed()
        super().wait()
        for item in self._temporary:
            item.release()
        self._temporary.clear()

    def check_removed(self) -> None:
        """Raises if a device was removed, with the mistake that removed it."""
        reason, record = self.device.get_device_removed_reason(), self.device.removal_record
        if reason != HResult.S_OK:
            where = (
                () if record is None or record.command is None else (f"At {record.queue}, {record.command}",)
            )
            raise _removed("Direct3D 12", reason, None if record is None else record.report, where)
        reason, cause = self.dml.get_device_removed_reason(), self.dml.removed_by
        if reason != HResult.S_OK:
            raise _removed("DirectML", reason, None if cause is None else cause.report)

    def gpu_samples(self) -> Samples:
        """Milliseconds of each dispatch since the last call, from the GPU's timestamps."""
        kept, lost = self._timestamps.take()
        if not kept:
            return Samples([])
        with self.readback_buffer("timestamps", 8 * len(kept)) as readback:
            heap, timestamp = self._timestamps.heap, d3d12.QueryType.TIMESTAMP
            self.list.resolve_query_data(heap, timestamp, 0, len(kept), readback, 0)
            self.run()
            ticks = self.read(readback, np.uint64)[kept]
        per_sample = self.queue.get_timestamp_frequency() * self.options.dispatch_repeat / 1000
        return Samples(((ticks[1::2] - ticks[::2]) / per_sample).tolist(), lost)


def _removed(which: str, reason: HResult, cause: Report | None, where: tuple[str, ...] = ()) -> Error:
    """``cause``: the device's report of its removal; at strictness ``runtime`` it was not raised."""
    message = f"The {which} device was removed ({reason.name})."
    if cause is None:
        report = report_of(DEVICE_REMOVED, message, message_id=0)
    else:
        context = (*cause.context, *where)
        report = replace(cause, id=DEVICE_REMOVED.id, message=f"{message} {cause.message}", context=context)
    return Error(HResult.DXGI_ERROR_DEVICE_REMOVED, report)


class _Timestamps:
    """Pairs of timestamp queries; when the heap is full the oldest pairs are overwritten."""

    def __init__(self, device: d3d12.Device, pairs: int) -> None:
        desc = d3d12.QueryHeapDesc(type=d3d12.QueryHeapType.TIMESTAMP, count=max(1, 2 * pairs))
        self.heap = device.create_query_heap(desc)
        self._capacity, self._count = 2 * pairs, 0

    def record(self, command_list: d3d12.CommandList) -> bool:
        """False: none is kept, and nothing is recorded."""
        if not self._capacity:
            return False
        index = self._count % self._capacity
        command_list.end_query(self.heap, d3d12.QueryType.TIMESTAMP, index)
        self._count += 1
        return True

    def take(self) -> tuple[list[int], int]:
        """The indices of the remaining timestamps, oldest first, and how many pairs were overwritten."""
        first = max(0, self._count - self._capacity)
        kept = [i % self._capacity for i in range(first, self._count)]
        self._count = 0
        return kept, first // 2
