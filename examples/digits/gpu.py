"""What a Direct3D 12 program needs before it can compute: device, queue, fence, buffers, descriptors.

Nothing here is about digits.  Each function is one idiom of the API, written out once:
``Gpu`` owns the objects, ``Step`` is a compiled operator with its buffers, ``Commands`` is a command
list under way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from dmlemu import d3d12, dml

Array = np.ndarray[Any, Any]
Thing = TypeVar("Thing", bound=d3d12.Object)

COMPUTE = d3d12.CommandListType.COMPUTE
COPY_DEST = d3d12.ResourceStates.COPY_DEST
COPY_SOURCE = d3d12.ResourceStates.COPY_SOURCE
UNORDERED_ACCESS = d3d12.ResourceStates.UNORDERED_ACCESS
DESCRIPTORS = 256  # places in the descriptor heap
TIMESTAMPS = 4096  # places in the query heap: two for each command list


@dataclass
class Step:
    """An operator that is ready to be dispatched.

    ``inputs`` and ``outputs`` hold one buffer per tensor of the operator's desc, in the desc's order;
    None stands for an optional tensor that is absent.  ``owned`` holds the buffers of tensors flagged
    OWNED_BY_DML by their place among the inputs: DirectML reads those once, at initialisation.
    """

    name: str
    operator: dml.CompiledOperator
    inputs: Sequence[d3d12.Resource | None]
    outputs: Sequence[d3d12.Resource]
    owned: Mapping[int, d3d12.Resource]
    persistent: d3d12.Resource | None
    temporary: d3d12.Resource | None
    table: dml.BindingTable


@dataclass
class Counts:
    """What was recorded so far; ``lists`` has the name of each command list."""

    lists: list[str] = field(default_factory=list)
    dispatches: int = 0
    copies: int = 0
    barriers: int = 0


class Gpu:
    """A device with one compute queue.  Leaving the ``with`` block releases everything made through it."""

    def __init__(self) -> None:
        self._owned = ExitStack()
        self.counts = Counts()
        self.adapter = d3d12.create_adapter_list()[0]
        self.device = self.keep(d3d12.create_device(self.adapter))
        self.dml = self.keep(dml.create_device(self.device))
        self.queue = self.keep(self.device.create_command_queue(d3d12.CommandQueueDesc(type=COMPUTE)))
        self.allocator = self.keep(self.device.create_command_allocator(COMPUTE))
        self.fence = self.keep(self.device.create_fence())
        self.fence_value = 0
        self.recorder = self.keep(self.dml.create_command_recorder())
        self.descriptors = self.keep(
            self.device.create_descriptor_heap(
                d3d12.DescriptorHeapDesc(
                    type=d3d12.DescriptorHeapType.CBV_SRV_UAV,
                    num_descriptors=DESCRIPTORS,
                    flags=d3d12.DescriptorHeapFlags.SHADER_VISIBLE,
                )
            )
        )
        self.descriptors_used = 0
        self.query_heap = self.keep(
            self.device.create_query_heap(
                d3d12.QueryHeapDesc(type=d3d12.QueryHeapType.TIMESTAMP, count=TIMESTAMPS)
            )
        )
        self.timestamps = self.readback_buffer("timestamps", 8 * TIMESTAMPS)

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, *exception: object) -> None:
        self._owned.close()

    def keep(self, thing: Thing) -> Thing:
        """Releases ``thing`` when this GPU is left, after everything that was made later."""
        self._owned.enter_context(thing)
        return thing

    # --- buffers ---

    def _buffer(
        self,
        name: str,
        size: int,
        heap: d3d12.HeapType,
        flags: d3d12.ResourceFlags,
        state: d3d12.ResourceStates,
    ) -> d3d12.Resource:
        size = (size + 3) // 4 * 4  # a tensor's size in bytes is a multiple of 4
        buffer = self.keep(
            self.device.create_committed_resource(
                d3d12.HeapProperties(type=heap),
                d3d12.HeapFlags.NONE,
                d3d12.ResourceDesc.buffer(size, flags),
                state,
            )
        )
        buffer.set_name(name)
        return buffer

    def buffer(self, name: str, size: int) -> d3d12.Resource:
        """GPU memory that operators may read and write; the CPU cannot see it."""
        flags = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
        return self._buffer(name, size, d3d12.HeapType.DEFAULT, flags, d3d12.ResourceStates.COMMON)

    def upload_buffer(self, name: str, data: Array) -> d3d12.Resource:
        """Memory the CPU writes and the GPU copies from, filled with ``data``."""
        state, none = d3d12.ResourceStates.GENERIC_READ, d3d12.ResourceFlags.NONE
        buffer = self._buffer(name, data.nbytes, d3d12.HeapType.UPLOAD, none, state)
        with buffer.map(read_range=d3d12.Range(0, 0)) as memory:  # the CPU will not read
            memory.view(data.dtype, count=data.size)[:] = data.reshape(-1)
        return buffer

    def readback_buffer(self, name: str, size: int) -> d3d12.Resource:
        """Memory the GPU copies to and the CPU reads."""
        none = d3d12.ResourceFlags.NONE
        return self._buffer(name, size, d3d12.HeapType.READBACK, none, COPY_DEST)

    @staticmethod
    def read(buffer: d3d12.Resource, dtype: Any, shape: Sequence[int]) -> Array:
        """A copy of what a readback buffer holds.  Wait for the GPU first."""
        count = int(np.prod(shape))
        data = buffer.map().view(dtype, count=count).reshape(shape).copy()
        buffer.unmap(written_range=d3d12.Range(0, 0))  # the CPU wrote nothing
        return data

    # --- operators ---

    def step(
        self,
        name: str,
        desc: dml.OperatorDesc,
        inputs: Sequence[d3d12.Resource | None],
        outputs: Sequence[d3d12.Resource],
        owned: Mapping[int, d3d12.Resource] | None = None,
    ) -> Step:
        """Compiles ``desc`` and binds its buffers.  It must be initialised before it is dispatched."""
        operator = self.keep(
            self.dml.compile_operator(self.dml.create_operator(desc), dml.ExecutionFlags.NONE)
        )
        operator.set_name(name)
        needs = operator.get_binding_properties()
        persistent = temporary = None
        if needs.persistent_resource_size:
            persistent = self.buffer(f"{name}, persistent", needs.persistent_resource_size)
        if needs.temporary_resource_size:
            temporary = self.buffer(f"{name}, temporary", needs.temporary_resource_size)
        table = self._binding_table(operator)
        table.bind_inputs([None if buffer is None else dml.BufferBinding(buffer) for buffer in inputs])
        table.bind_outputs([dml.BufferBinding(buffer) for buffer in outputs])
        if persistent:
            table.bind_persistent_resource(dml.BufferBinding(persistent))
        if temporary:
            table.bind_temporary_resource(dml.BufferBinding(temporary))
        return Step(name, operator, inputs, outputs, owned or {}, persistent, temporary, table)

    def _binding_table(self, dispatchable: dml.Dispatchable) -> dml.BindingTable:
        """A binding table over the next free places of the descriptor heap."""
        count = dispatchable.get_binding_properties().required_descriptor_count
        increment = self.device.get_descriptor_handle_increment_size(d3d12.DescriptorHeapType.CBV_SRV_UAV)
        offset = self.descriptors_used * increment
        self.descriptors_used += count
        return self.keep(
            self.dml.create_binding_table(
                dml.BindingTableDesc(
                    dispatchable=dispatchable,
                    cpu_descriptor_handle=self.descriptors.get_cpu_descriptor_handle_for_heap_start()
                    + offset,
                    gpu_descriptor_handle=self.descriptors.get_gpu_descriptor_handle_for_heap_start()
                    + offset,
                    size_in_descriptors=count,
                )
            )
        )

    # --- command lists ---

    @contextmanager
    def record(self, name: str) -> Iterator[Commands]:
        """Records a command list and submits it.  The GPU runs it later: see ``wait``."""
        commands = Commands(self, name)
        yield commands
        commands.submit()

    def wait(self, value: int | None = None) -> None:
        """Waits until the GPU has done everything that was submitted, or the list numbered ``value``."""
        self.fence.wait(self.fence_value if value is None else value)

    def seconds(self) -> dict[str, float]:
        """GPU time of all lists submitted so far, by their names.  Wait first."""
        names = self.counts.lists
        total = dict.fromkeys(names, 0.0)
        ticks = self.read(self.timestamps, np.uint64, (len(names), 2))
        for name, (before, after) in zip(names, ticks.tolist(), strict=True):
            total[name] += (after - before) / self.queue.get_timestamp_frequency()
        return total


@dataclass
class Commands:
    """A command list being recorded.  Counts what goes in, and takes the GPU's time at both ends."""

    gpu: Gpu
    name: str
    list: d3d12.CommandList = field(init=False)

    def __post_init__(self) -> None:
        gpu = self.gpu
        self.list = gpu.keep(gpu.device.create_command_list(0, COMPUTE, gpu.allocator))
        self.list.set_name(f"{self.name} (list {len(gpu.counts.lists)})")
        self.list.set_descriptor_heaps([gpu.descriptors])
        self.first_query = 2 * len(gpu.counts.lists)
        self.list.end_query(gpu.query_heap, d3d12.QueryType.TIMESTAMP, self.first_query)

    def submit(self) -> None:
        """Ends the recording and hands the list to the queue, then tells the fence to count it."""
        gpu, heap, first = self.gpu, self.gpu.query_heap, self.first_query
        self.list.end_query(heap, d3d12.QueryType.TIMESTAMP, first + 1)
        self.list.resolve_query_data(heap, d3d12.QueryType.TIMESTAMP, first, 2, gpu.timestamps, 8 * first)
        self.list.close()
        gpu.queue.execute_command_lists([self.list])
        gpu.fence_value += 1
        gpu.queue.signal(gpu.fence, gpu.fence_value)
        gpu.counts.lists.append(self.name)

    def copy(
        self, destination: d3d12.Resource, offset: int, source: d3d12.Resource, source_offset: int, size: int
    ) -> None:
        """Copies ``size`` bytes between buffers in the states COPY_DEST and COPY_SOURCE."""
        self.list.copy_buffer_region(destination, offset, source, source_offset, size)
        self.gpu.counts.copies += 1

    def transition(
        self, before: d3d12.ResourceStates, after: d3d12.ResourceStates, *buffers: d3d12.Resource
    ) -> None:
        """Whatever was done to the buffers in the one state ends before anything begins in the other."""
        self._barrier([d3d12.ResourceBarrier.transition(buffer, before, after) for buffer in buffers])

    def initialise(self, steps: Sequence[Step]) -> None:
        """Prepares operators for their first dispatch: DirectML takes the tensors that it is to own."""
        gpu = self.gpu
        initializer = gpu.keep(gpu.dml.create_operator_initializer([step.operator for step in steps]))
        table = gpu._binding_table(initializer)
        table.bind_inputs([self._owned_inputs(step) for step in steps])
        table.bind_outputs(
            [None if step.persistent is None else dml.BufferBinding(step.persistent) for step in steps]
        )
        temporary_size = initializer.get_binding_properties().temporary_resource_size
        if temporary_size:
            table.bind_temporary_resource(
                dml.BufferBinding(gpu.buffer("initializer, temporary", temporary_size))
            )
        gpu.recorder.record_dispatch(self.list, initializer, table)
        gpu.counts.dispatches += 1
        self._barrier([d3d12.ResourceBarrier.uav(None)])

    @staticmethod
    def _owned_inputs(step: Step) -> dml.BufferArrayBinding | None:
        """One entry per input of the operator; only those flagged OWNED_BY_DML have a buffer."""
        if not step.owned:
            return None
        entries = [step.owned.get(i) for i in range(len(step.inputs))]
        return dml.BufferArrayBinding([None if each is None else dml.BufferBinding(each) for each in entries])

    def dispatch(self, step: Step) -> None:
        """Runs an operator; whatever comes after may use what it writes."""
        self.gpu.recorder.record_dispatch(self.list, step.operator, step.table)
        self.gpu.counts.dispatches += 1
        self._barrier([d3d12.ResourceBarrier.uav(buffer) for buffer in step.outputs])

    def _barrier(self, barriers: Sequence[d3d12.ResourceBarrier]) -> None:
        self.list.resource_barrier(barriers)
        self.gpu.counts.barriers += len(barriers)
