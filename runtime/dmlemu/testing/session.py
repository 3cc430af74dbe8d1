"""The emulated device of a layout test: buffers, a queue, and lists that run at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence

import numpy as np

from .. import d3d12, dml
from ..errors import Severity, Strictness
from .memory import Array

__all__ = ["Record", "Stage", "private_stage"]

Record = Callable[[d3d12.CommandList], object]

_PAGE = 1 << 16
_COMPUTE = d3d12.CommandListType.COMPUTE
_STATES = d3d12.ResourceStates
_INITIAL = {
    d3d12.HeapType.DEFAULT: _STATES.COMMON,
    d3d12.HeapType.UPLOAD: _STATES.GENERIC_READ,
    d3d12.HeapType.READBACK: _STATES.COPY_DEST,
}


class _Private(threading.local):
    """The stage of this thread, on a device of its own; a forked process makes a new one."""

    process = 0
    stage: Stage | None = None
    inherited: tuple[Stage | None, ...] = ()  # of the parent process; never given up here


_private = _Private()


def private_stage() -> Stage:
    """A stage on a private device of the highest feature level, kept for the next run."""
    stage = _private.stage
    if stage is None or _private.process != os.getpid() or stage.is_removed():
        _private.inherited += (stage,)
        adapter = d3d12.Adapter(name="dmlemu.testing")
        parent = d3d12.create_device(adapter, strictness=Strictness.STRICT)
        parent.reports.deny(Severity.INFO)  # odd layouts are tried on purpose
        stage = _private.stage = Stage(dml.create_device(parent))
        _private.process = os.getpid()
    return stage


class Stage:
    """A queue, descriptors, and buffers that only grow."""

    def __init__(self, device: dml.Device) -> None:
        self.device = device
        self._parent = device.get_parent_device()
        self._queue = self._parent.create_command_queue(d3d12.CommandQueueDesc(_COMPUTE))
        self._fence = self._parent.create_fence(0)
        self._recorder = device.create_command_recorder()
        self._done = 0
        self._buffers: dict[str, d3d12.Resource] = {}
        self._descriptors: tuple[d3d12.DescriptorHeap, int] | None = None

    def is_removed(self) -> bool:
        return self.device.get_device_removed_reason() != 0

    def tensors(self, size: int) -> d3d12.Resource:
        """The buffer for the tensors, of at least so many bytes; the same one until it is too small."""
        return self._buffer("tensors", size)

    def dispatch(
        self,
        compiled: dml.CompiledOperator,
        inputs: Sequence[dml.BufferBinding | None],
        outputs: Sequence[dml.BufferBinding | None],
    ) -> Record:
        """Initialises and runs a compiled operator, once :meth:`execute` takes it."""
        properties = compiled.get_binding_properties()
        persistent = self._resource("persistent", properties.persistent_resource_size)
        owned = [field.desc is not None and field.desc.owned_by_dml for field in compiled.fields]
        initializer = self.device.create_operator_initializer([compiled])
        skip = initializer.descriptor_count
        heap = self._heap(skip + compiled.descriptor_count)

        prepare = self.device.create_binding_table(self._range(heap, initializer, 0))
        if any(owned):
            kept = [each if mine else None for each, mine in zip(inputs, owned, strict=False)]
            prepare.bind_inputs([dml.BufferArrayBinding(kept)])
        if persistent is not None:
            prepare.bind_outputs([persistent])

        table = self.device.create_binding_table(self._range(heap, compiled, skip))
        table.bind_inputs([None if mine else each for each, mine in zip(inputs, owned, strict=False)])
        table.bind_outputs(outputs)
        temporary = self._resource("temporary", properties.temporary_resource_size)
        if temporary is not None:
            table.bind_temporary_resource(temporary)
        if persistent is not None:
            table.bind_persistent_resource(persistent)

        def record(commands: d3d12.CommandList) -> None:
            commands.set_descriptor_heaps([heap])
            self._recorder.record_dispatch(commands, initializer, prepare)
            commands.resource_barrier([d3d12.ResourceBarrier.uav(None)])
            self._recorder.record_dispatch(commands, compiled, table)

        return record

    def execute(self, *, upload: Array | None = None, work: Record | None = None, download: int = 0) -> Array:
        """Puts bytes at the begin of the tensors' buffer, runs ``work``, and waits; returns the first
        ``download`` bytes.  All of it is one list, which is forgotten when an error interrupts it."""
        allocator = self._parent.create_command_allocator(_COMPUTE)
        commands = self._parent.create_command_list(0, _COMPUTE, allocator)
        if upload is not None:
            self._upload(commands, upload)
        if work is not None:
            if upload is not None:
                self._transition(commands, _STATES.COPY_DEST, _STATES.UNORDERED_ACCESS)
            work(commands)
        if download:
            before = _STATES.UNORDERED_ACCESS if work is not None else _STATES.COPY_DEST
            if upload is not None or work is not None:
                self._transition(commands, before, _STATES.COPY_SOURCE)
            back = self._buffer("readback", download, d3d12.HeapType.READBACK)
            commands.copy_buffer_region(back, 0, self.tensors(download), 0, download)
        commands.close()
        self._submit(commands)
        return self._read(download)

    def _upload(self, commands: d3d12.CommandList, image: Array) -> None:
        source = self._buffer("upload", image.size, d3d12.HeapType.UPLOAD)
        with source.map(0, d3d12.Range(0, 0)) as mapped:
            np.asarray(mapped)[: image.size] = image
        commands.copy_buffer_region(self.tensors(image.size), 0, source, 0, image.size)

    def _transition(
        self, commands: d3d12.CommandList, before: d3d12.ResourceStates, after: d3d12.ResourceStates
    ) -> None:
        commands.resource_barrier([d3d12.ResourceBarrier.transition(self.tensors(0), before, after)])

    def _submit(self, commands: d3d12.CommandList) -> None:
        self._queue.execute_command_lists([commands])
        self._done += 1
        self._queue.signal(self._fence, self._done)
        self._fence.wait(self._done)

    def _read(self, size: int) -> Array:
        if not size:
            return np.zeros(0, np.uint8)
        with self._buffer("readback", size, d3d12.HeapType.READBACK).map(0, d3d12.Range(0, size)) as mapped:
            content: Array = np.asarray(mapped)[:size].copy()
        return content

    def _resource(self, name: str, size: int) -> dml.BufferBinding | None:
        return dml.BufferBinding(self._buffer(name, size), 0, size) if size else None

    def _buffer(self, name: str, size: int, heap: d3d12.HeapType = d3d12.HeapType.DEFAULT) -> d3d12.Resource:
        buffer = self._buffers.get(name)
        if buffer is None or buffer.get_desc().width < size:
            gpu = heap is d3d12.HeapType.DEFAULT
            flags = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS if gpu else d3d12.ResourceFlags.NONE
            desc = d3d12.ResourceDesc.buffer(max(_PAGE, 1 << max(0, size - 1).bit_length()), flags)
            buffer = self._parent.create_committed_resource(
                d3d12.HeapProperties(heap), d3d12.HeapFlags.NONE, desc, _INITIAL[heap]
            )
            buffer.set_name(f"layouts {name}")
            self._buffers[name] = buffer
        return buffer

    def _heap(self, count: int) -> d3d12.DescriptorHeap:
        if self._descriptors is None or self._descriptors[1] < count:
            kind, visible = d3d12.DescriptorHeapType.CBV_SRV_UAV, d3d12.DescriptorHeapFlags.SHADER_VISIBLE
            count = max(64, 2 * count)
            heap = self._parent.create_descriptor_heap(d3d12.DescriptorHeapDesc(kind, count, visible))
            self._descriptors = heap, count
        return self._descriptors[0]

    def _range(
        self, heap: d3d12.DescriptorHeap, dispatchable: dml.Dispatchable, first: int
    ) -> dml.BindingTableDesc:
        kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
        skip = first * self._parent.get_descriptor_handle_increment_size(kind)
        cpu = heap.get_cpu_descriptor_handle_for_heap_start() + skip
        gpu = heap.get_gpu_descriptor_handle_for_heap_start() + skip
        return dml.BindingTableDesc(dispatchable, cpu, gpu, dispatchable.descriptor_count)
