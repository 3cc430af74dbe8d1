"""The Direct3D 12 side of running a model: one queue, one list, buffers up and down, timestamps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.d3d12 import HeapType, ResourceBarrier, ResourceFlags, ResourceStates
from dmlemu.diagnostics import ids
from dmlemu.diagnostics.refusal import declared, report_of
from dmlemu.errors import Error, HResult, Report, elide

from .initial_values import InitialValues
from .options import Options
from .timing import Samples

__all__ = ["MOST_NAME", "Device"]

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

MOST_NAME = 1000  # characters of a name of the model that objects of the API get

_INITIAL_STATE = {
    HeapType.DEFAULT: ResourceStates.COMMON,
    HeapType.UPLOAD: ResourceStates.GENERIC_READ,
    HeapType.READBACK: ResourceStates.COPY_DEST,
}


class Device:
    """A queue with the one command list that everything is recorded into, executed and waited for."""

    def __init__(self, adapter: d3d12.Adapter, options: Options) -> None:
        self.d3d = d3d12.create_device(adapter, strictness=options.strictness)
        flags = dml.CreateDeviceFlags.DEBUG if options.debug else dml.CreateDeviceFlags.NONE
        self.dml = dml.create_device(self.d3d, flags, options.dml_feature_level)
        self.fence = self.d3d.create_fence(0)
        no_timeout = d3d12.CommandQueueFlags.DISABLE_GPU_TIMEOUT
        queue_flags = no_timeout if options.disable_gpu_timeout else d3d12.CommandQueueFlags.NONE
        self.queue = self.d3d.create_command_queue(
            d3d12.CommandQueueDesc(type=options.queue_type, flags=queue_flags)
        )
        self.allocator = self.d3d.create_command_allocator(options.queue_type)
        self.queue.set_name("of the model")
        self.list = self.d3d.create_command_list(0, options.queue_type, self.allocator)
        self.list.set_name("of the model")
        self.recorder = self.dml.create_command_recorder()
        self._options = options
        self._temporary: list[d3d12.Object] = []
        self._timestamps = _Timestamps(self.d3d, options.max_gpu_time_measurements)

    # --- buffers ---

    def create_buffer(self, size: int, heap: HeapType = HeapType.DEFAULT, name: str = "") -> d3d12.Resource:
        """A committed buffer; those of the default heap may be bound."""
        default = heap is HeapType.DEFAULT
        flags = ResourceFlags.ALLOW_UNORDERED_ACCESS if default else ResourceFlags.NONE
        buffer = self.d3d.create_committed_resource(
            d3d12.HeapProperties(type=heap),
            d3d12.HeapFlags.NONE,
            d3d12.ResourceDesc.buffer(size, flags),
            _INITIAL_STATE[heap],
        )
        buffer.set_name(elide(name, MOST_NAME))
        return buffer

    def upload(self, size: int, initial: InitialValues, name: str) -> d3d12.Resource:
        """A default-heap buffer, with the copy of its initial values recorded."""
        buffer = self.create_buffer(size, name=name)
        upload = self.create_buffer(size, HeapType.UPLOAD, "upload of " + name)
        self.keep_until_executed(upload)
        initial.write(np.asarray(upload.map(0))[: initial.size])
        upload.unmap(0)
        self._transition(buffer, ResourceStates.UNORDERED_ACCESS, ResourceStates.COPY_DEST)
        self.list.copy_resource(buffer, upload)
        self._transition(buffer, ResourceStates.COPY_DEST, ResourceStates.UNORDERED_ACCESS)
        return buffer

    def download(self, buffer: d3d12.Resource) -> Bytes:
        """The bytes of a buffer, through a readback heap."""
        readback = self.create_buffer(buffer.get_desc().width, HeapType.READBACK, "download")
        with readback:
            self._transition(buffer, ResourceStates.UNORDERED_ACCESS, ResourceStates.COPY_SOURCE)
            self.list.copy_resource(readback, buffer)
            self._transition(buffer, ResourceStates.COPY_SOURCE, ResourceStates.UNORDERED_ACCESS)
            self.execute_and_wait()
            return self.read(readback)

    def read(self, readback: d3d12.Resource) -> Bytes:
        data = np.array(readback.map(0), np.uint8)
        readback.unmap(0, d3d12.Range(0, 0))
        return data

    def _transition(self, buffer: d3d12.Resource, before: ResourceStates, after: ResourceStates) -> None:
        self.list.resource_barrier([ResourceBarrier.transition(buffer, before, after)])

    # --- execution ---

    def keep_until_executed(self, item: d3d12.Object) -> None:
        self._temporary.append(item)

    def record_dispatch(self, dispatchable: dml.CompiledOperator, table: dml.BindingTable) -> None:
        """The repeated dispatch between two timestamps, with the barriers that were asked for."""
        barriers = [ResourceBarrier.uav(None)] * self._options.uav_barrier
        barriers += [ResourceBarrier.aliasing(None, None)] * self._options.aliasing_barrier
        self._timestamps.record(self.list)
        for _ in range(self._options.dispatch_repeat):
            self.recorder.record_dispatch(self.list, dispatchable, table)
            if barriers:
                self.list.resource_barrier(barriers)
        self._timestamps.record(self.list)

    def execute_and_wait(self) -> None:
        """Runs what was recorded and starts a new list; raises if the device was removed."""
        self.list.close()
        self.queue.execute_command_lists([self.list])
        try:
            value = self.fence.get_completed_value() + 1
            self.queue.signal(self.fence, value)
            self.fence.set_event_on_completion(value, None)
        finally:  # after a removal these calls fail, too
            self.check_removed()
        self.allocator.reset()
        self.list.reset(self.allocator)
        for item in self._temporary:
            item.release()
        self._temporary.clear()

    def check_removed(self) -> None:
        """Raises if a device was removed, with the mistake that removed it."""
        reason, record = self.d3d.get_device_removed_reason(), self.d3d.removal_record
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
        with self.create_buffer(8 * len(kept), HeapType.READBACK, "timestamps") as readback:
            heap, timestamp = self._timestamps.heap, d3d12.QueryType.TIMESTAMP
            self.list.resolve_query_data(heap, timestamp, 0, len(kept), readback, 0)
            self.execute_and_wait()
            ticks = self.read(readback).view(np.uint64)[kept]
        per_sample = self.queue.get_timestamp_frequency() * self._options.dispatch_repeat / 1000
        return Samples(((ticks[1::2] - ticks[::2]) / per_sample).tolist(), lost)


def _removed(which: str, reason: HResult, cause: Report | None, where: tuple[str, ...] = ()) -> Error:
    """``cause``: what the device said when it was removed; at strictness ``runtime`` nobody has heard it."""
    message = f"The {which} device was removed ({reason.name})."
    if cause is None:
        report = report_of(declared(ids.DEVICE_REMOVED), message, message_id=0)
    else:
        context = (*cause.context, *where)
        report = replace(cause, id=ids.DEVICE_REMOVED, message=f"{message} {cause.message}", context=context)
    return Error(HResult.DXGI_ERROR_DEVICE_REMOVED, report)


class _Timestamps:
    """Pairs of timestamp queries; when the heap is full the oldest pairs are overwritten."""

    def __init__(self, device: d3d12.Device, pairs: int) -> None:
        desc = d3d12.QueryHeapDesc(type=d3d12.QueryHeapType.TIMESTAMP, count=max(1, 2 * pairs))
        self.heap = device.create_query_heap(desc)
        self._capacity, self._count = 2 * pairs, 0

    def record(self, command_list: d3d12.CommandList) -> None:
        if self._capacity:
            index = self._count % self._capacity
            command_list.end_query(self.heap, d3d12.QueryType.TIMESTAMP, index)
            self._count += 1

    def take(self) -> tuple[list[int], int]:
        """The indices of the timestamps that are left, oldest first, and how many pairs are lost."""
        first = max(0, self._count - self._capacity)
        kept = [i % self._capacity for i in range(first, self._count)]
        self._count = 0
        return kept, first // 2
