"""A run of a user's graph: tensors in GPU memory, byte for byte as their descs say."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dmlemu_hw.memory import POISON_BYTE

from .. import d3d12, dml
from ..errors import Severity, Strictness

__all__ = ["Memory", "Placed", "Run", "Stage", "private_stage"]

Array = np.ndarray[Any, np.dtype[Any]]
Work = dml.OperatorDesc | dml.GraphDesc | dml.Operator | dml.CompiledOperator

_GUARD = 16  # bytes between tensors, at least
_FIRST = 48  # no tensor begins where the buffer does
_ALIGNMENT = dml.MINIMUM_BUFFER_TENSOR_ALIGNMENT
_PAGE = 1 << 16
_COMPUTE = d3d12.CommandListType.COMPUTE
_STATES = {
    d3d12.HeapType.DEFAULT: d3d12.ResourceStates.COMMON,
    d3d12.HeapType.UPLOAD: d3d12.ResourceStates.GENERIC_READ,
    d3d12.HeapType.READBACK: d3d12.ResourceStates.COPY_DEST,
}


@dataclass(frozen=True)
class Placed:
    """A tensor with its place in the buffer; ``offset`` counts bytes from the buffer's begin."""

    name: str
    desc: dml.BufferTensorDesc
    output: bool
    offset: int

    @property
    def end(self) -> int:
        return self.offset + self.desc.size_in_bytes

    @cached_property
    def elements(self) -> Array:
        """Where each element begins, in bytes from the tensor's begin, by logical index."""
        places = np.zeros(self.desc.sizes, np.int64)
        for d, (size, stride) in enumerate(zip(self.desc.sizes, self.desc.effective_strides, strict=True)):
            shape = [1] * self.desc.rank
            shape[d] = size
            places += np.arange(size, dtype=np.int64).reshape(shape) * stride
        return places * self.desc.dtype.itemsize

    @cached_property
    def bytes(self) -> Array:
        """The place of each element's bytes in the buffer: a row for each element, in logical order."""
        item = self.desc.dtype.itemsize
        places: Array = (self.offset + self.elements.reshape(-1))[:, None] + np.arange(item)
        return places

    def read(self, memory: Array) -> Array:
        """The logical values, from the bytes of the whole buffer."""
        values: Array = memory[self.bytes].view(self.desc.dtype).reshape(self.desc.sizes)
        return values

    def write(self, memory: Array, values: Array) -> None:
        memory[self.bytes] = np.ascontiguousarray(values).reshape(-1, 1).view(np.uint8)


class Memory:
    """Tensors in one buffer, with poison between them and between their elements."""

    def __init__(self, descs: Mapping[str, dml.BufferTensorDesc], outputs: Sequence[str]) -> None:
        self.tensors: dict[str, Placed] = {}
        end = _FIRST
        for name, desc in descs.items():
            alignment = max(_ALIGNMENT, desc.guaranteed_base_offset_alignment)
            start = -(-end // alignment) * alignment
            placed = self.tensors[name] = Placed(name, desc, name in outputs, start)
            end = placed.end + _GUARD
        self.size = -(-end // 4) * 4

    def image(self, values: Mapping[str, Array], fill: int = POISON_BYTE) -> Array:
        """The bytes before a run: the inputs' values, ``fill`` in the outputs, and poison everywhere else."""
        image = np.full(self.size, POISON_BYTE, np.uint8)
        for name, placed in self.tensors.items():
            if placed.output:
                image[placed.offset : placed.end] = fill
            else:
                placed.write(image, values[name])
        return image


class Run:
    """What the decorator :func:`layouts` hands to a test as ``run``.

    Calling it runs an operator or a graph on the bytes of the test's tensors.
    """

    def __init__(self, stage: Stage, memory: Memory, image: Array) -> None:
        self._stage = stage
        self._memory = memory
        self._buffer = stage.upload(image)

    @property
    def device(self) -> dml.Device:
        """The DirectML device on which the tensors live."""
        return self._stage.device

    def __call__(
        self,
        work: Work,
        inputs: Sequence[str | None] | None = None,
        outputs: Sequence[str | None] | None = None,
        *,
        flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
    ) -> None:
        """Compiles, initialises, binds and executes ``work``, and waits for it.

        ``work`` is an operator desc, a ``GraphDesc``, an operator or a compiled operator.  ``inputs`` and
        ``outputs`` name what is bound to it, in the order of ``bind_inputs`` and ``bind_outputs``, None
        for an absent tensor; left out, the test's tensors are bound in their order.

        Raises :class:`dmlemu.Error` as the DirectML calls do; TypeError when what is bound does not
        match in number.
        """
        compiled = self._compiled(work, flags)
        bound = [
            self._bindings(compiled, names, output) for names, output in ((inputs, False), (outputs, True))
        ]
        self._stage.dispatch(compiled, *bound)

    def binding(self, name: str) -> dml.BufferBinding:
        """Where a tensor lives, for programs that bind and record by themselves.

        The buffer is in the state COMMON, before the test and between its calls of ``run``.
        """
        placed = self._placed(name)
        return dml.BufferBinding(self._buffer, placed.offset, placed.desc.size_in_bytes)

    def array(self, name: str) -> Array:
        """The logical values of a tensor as they are now, in an array of their own."""
        return self._placed(name).read(self._bytes())

    def _bytes(self) -> Array:
        """All bytes of the buffer in which the tensors live."""
        return self._stage.download(self._memory.size)

    def _placed(self, name: str) -> Placed:
        placed = self._memory.tensors.get(name)
        if placed is None:
            raise TypeError(
                f"{name!r} is no tensor of this test; there are {', '.join(self._memory.tensors)}"
            )
        return placed

    def _compiled(self, work: Work, flags: dml.ExecutionFlags) -> dml.CompiledOperator:
        if isinstance(work, dml.CompiledOperator):
            return work
        if isinstance(work, dml.GraphDesc):
            return self.device.compile_graph(work, flags)
        operator = work if isinstance(work, dml.Operator) else self.device.create_operator(work)
        return self.device.compile_operator(operator, flags)

    def _bindings(
        self, compiled: dml.CompiledOperator, names: Sequence[str | None] | None, output: bool
    ) -> list[dml.BufferBinding | None]:
        fields = [field for field in compiled._fields if field.output is output]
        if names is None:
            mine = [name for name, placed in self._memory.tensors.items() if placed.output is output]
            present = [field for field in fields if field.desc is not None]
            if len(mine) != len(present):
                raise _miscount(compiled, mine, [field.path for field in present], output)
            rest = iter(mine)
            names = [None if field.desc is None else next(rest) for field in fields]
        if len(names) != len(fields):
            raise _miscount(compiled, names, [field.path for field in fields], output)
        return [None if name is None else self.binding(name) for name in names]


def _miscount(
    compiled: dml.CompiledOperator, names: Sequence[str | None], paths: Sequence[str], output: bool
) -> TypeError:
    kind = "output" if output else "input"
    return TypeError(
        f"run() binds {len(names)} {kind}s ({', '.join(map(str, names)) or 'none'}), but "
        f"{compiled.type_name} has {len(paths)} ({', '.join(paths) or 'none'})"
    )


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


_Record = Callable[[d3d12.CommandList], object]


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

    def upload(self, image: Array) -> d3d12.Resource:
        """A GPU buffer that begins with these bytes; the same one every time, until it is too small."""
        source = self._buffer("upload", image.size, d3d12.HeapType.UPLOAD)
        target = self._buffer("tensors", image.size)
        with source.map(0, d3d12.Range(0, 0)) as mapped:
            np.asarray(mapped)[: image.size] = image
        self._execute(lambda commands: commands.copy_buffer_region(target, 0, source, 0, image.size))
        return target

    def download(self, size: int) -> Array:
        """The first bytes of that buffer."""
        source = self._buffer("tensors", size)
        target = self._buffer("readback", size, d3d12.HeapType.READBACK)
        self._execute(lambda commands: commands.copy_buffer_region(target, 0, source, 0, size))
        with target.map(0, d3d12.Range(0, size)) as mapped:
            content: Array = np.asarray(mapped)[:size].copy()
        return content

    def dispatch(
        self,
        compiled: dml.CompiledOperator,
        inputs: Sequence[dml.BufferBinding | None],
        outputs: Sequence[dml.BufferBinding | None],
    ) -> None:
        """Initialises and runs a compiled operator, and waits for it."""
        properties = compiled.get_binding_properties()
        persistent = self._resource("persistent", properties.persistent_resource_size)
        owned = [field.desc is not None and field.desc.owned_by_dml for field in compiled._fields]
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

        self._execute(record)

    def _execute(self, record: _Record) -> None:
        """Runs a new list to its end; a list that was not finished for an error is forgotten."""
        allocator = self._parent.create_command_allocator(_COMPUTE)
        commands = self._parent.create_command_list(0, _COMPUTE, allocator)
        record(commands)
        commands.close()
        self._queue.execute_command_lists([commands])
        self._done += 1
        self._queue.signal(self._fence, self._done)
        self._fence.wait(self._done)

    def _resource(self, name: str, size: int) -> dml.BufferBinding | None:
        return dml.BufferBinding(self._buffer(name, size), 0, size) if size else None

    def _buffer(self, name: str, size: int, heap: d3d12.HeapType = d3d12.HeapType.DEFAULT) -> d3d12.Resource:
        buffer = self._buffers.get(name)
        if buffer is None or buffer.get_desc().width < size:
            gpu = heap is d3d12.HeapType.DEFAULT
            flags = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS if gpu else d3d12.ResourceFlags.NONE
            desc = d3d12.ResourceDesc.buffer(max(_PAGE, 1 << (size - 1).bit_length()), flags)
            buffer = self._parent.create_committed_resource(
                d3d12.HeapProperties(heap), d3d12.HeapFlags.NONE, desc, _STATES[heap]
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
