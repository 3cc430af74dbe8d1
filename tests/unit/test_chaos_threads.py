"""Chaos with several host threads: each one's right program stays right, and the stagings lose nothing."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import Strictness, d3d12, dml
from dmlemu.d3d12.memory.delayed_visibility import Staging

States, Kinds = d3d12.ResourceStates, d3d12.HeapType
COMPUTE, VIEWS = d3d12.CommandListType.COMPUTE, d3d12.DescriptorHeapType.CBV_SRV_UAV
TILE = 65536
COUNT = 1024  # FLOAT32 elements of each buffer
THREADS, ROUNDS = 3, 8


@pytest.fixture(autouse=True)
def _fine_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Shared:
    """What the threads share: the device, the operator, and heaps for the buffers that the CPU sees."""

    def __init__(self, seed: int, strictness: Strictness) -> None:
        adapter = d3d12.Adapter(dedicated_memory=1 << 26, policy=dmlemu.chaos(seed))
        self.device = d3d12.create_device(adapter, strictness=strictness)
        self.dml = dml.create_device(self.device)
        row = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [COUNT])
        add = dml.ElementWiseAddOperatorDesc(a_tensor=row, b_tensor=row, output_tensor=row)
        self.operator = self.dml.compile_operator(self.dml.create_operator(add))
        self.heaps = {
            kind: self.device.create_heap(d3d12.HeapDesc(THREADS * TILE, d3d12.HeapProperties(kind)))
            for kind in (Kinds.UPLOAD, Kinds.READBACK)
        }
        visible = d3d12.DescriptorHeapFlags.SHADER_VISIBLE
        views = d3d12.DescriptorHeapDesc(VIEWS, 16 * (THREADS + 1), visible)
        self.descriptors = self.device.create_descriptor_heap(views)

    def table(self, dispatchable: Any, place: int) -> dml.BindingTable:
        """A binding table over the descriptors from ``16 * place`` on."""
        offset = 16 * place * self.device.get_descriptor_handle_increment_size(VIEWS)
        cpu = self.descriptors.get_cpu_descriptor_handle_for_heap_start() + offset
        gpu = self.descriptors.get_gpu_descriptor_handle_for_heap_start() + offset
        size = dispatchable.get_binding_properties().required_descriptor_count
        return self.dml.create_binding_table(dml.BindingTableDesc(dispatchable, cpu, gpu, size))

    def initialize(self, worker: Worker) -> None:
        """Initialises the operator, once for all threads."""
        initializer = self.dml.create_operator_initializer([self.operator])
        worker.list.set_descriptor_heaps([self.descriptors])
        worker.recorder.record_dispatch(worker.list, initializer, self.table(initializer, THREADS))
        worker.finish()


class Worker:
    """Adds numbers to a buffer of its own, round by round, and sees whether the sums are right."""

    def __init__(self, shared: Shared, number: int) -> None:
        device, self.shared, self.number = shared.device, shared, number
        self.queue = device.create_command_queue(d3d12.CommandQueueDesc(COMPUTE))
        self.fence, self.value = device.create_fence(), 0
        self.allocator = device.create_command_allocator(COMPUTE)
        self.list = device.create_command_list(0, COMPUTE, self.allocator)
        self.recorder = shared.dml.create_command_recorder()
        self.sum, self.term, self.next = (self._buffer() for _ in range(3))
        self.problems: list[str] = []

    def _buffer(self) -> d3d12.Resource:
        desc = d3d12.ResourceDesc.buffer(4 * COUNT, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS)
        none, default = d3d12.HeapFlags.NONE, d3d12.HeapProperties()
        return self.shared.device.create_committed_resource(default, none, desc, States.COMMON)

    def _host_buffer(self, kind: Any) -> d3d12.Resource:
        state = States.GENERIC_READ if kind == Kinds.UPLOAD else States.COPY_DEST
        desc, heap = d3d12.ResourceDesc.buffer(4 * COUNT), self.shared.heaps[kind]
        return self.shared.device.create_placed_resource(heap, self.number * TILE, desc, state)

    def finish(self) -> None:
        """Executes the list, waits for the GPU and opens the list again."""
        self.list.close()
        self.queue.execute_command_lists([self.list])
        self.value += 1
        self.queue.signal(self.fence, self.value)
        self.fence.wait(self.value)
        self.allocator.reset()
        self.list.reset(self.allocator)

    def _table(self) -> dml.BindingTable:
        table = self.shared.table(self.shared.operator, self.number)
        bindings = [dml.BufferBinding(each, 0, 4 * COUNT) for each in (self.sum, self.term, self.next)]
        table.bind_inputs(bindings[:2])
        table.bind_outputs(bindings[2:])
        return table

    def run(self) -> None:
        try:
            self._rounds(np.random.default_rng(self.number))
        except Exception:
            self.problems.append(traceback.format_exc())

    def _rounds(self, random: np.random.Generator) -> None:
        upload, readback = self._host_buffer(Kinds.UPLOAD), self._host_buffer(Kinds.READBACK)
        table, expected = self._table(), np.zeros(COUNT, np.float32)
        with upload.map(0, d3d12.Range(0, 0)) as memory:
            memory.view(np.float32)[:] = expected
        self.list.copy_resource(self.sum, upload)
        self.finish()
        for i in range(ROUNDS):
            term = random.integers(0, 1000, COUNT).astype(np.float32)
            expected += term
            with upload.map(0, d3d12.Range(0, 0)) as memory:
                memory.view(np.float32)[:] = term
            self._record(upload, readback, table)
            self.finish()
            with readback.map() as memory:
                wrong = np.flatnonzero(memory.view(np.float32) != expected)
            if wrong.size:
                self.problems.append(
                    f"thread {self.number}, round {i}: {wrong.size} elements from {wrong[0]} on"
                )

    def _record(self, upload: d3d12.Resource, readback: d3d12.Resource, table: dml.BindingTable) -> None:
        turn, work = d3d12.ResourceBarrier.transition, self.list
        work.set_descriptor_heaps([self.shared.descriptors])
        work.copy_resource(self.term, upload)
        work.resource_barrier([turn(self.term, States.COPY_DEST, States.UNORDERED_ACCESS)])
        self.recorder.record_dispatch(work, self.shared.operator, table)
        work.resource_barrier([turn(self.next, States.UNORDERED_ACCESS, States.COPY_SOURCE)])
        work.resource_barrier([turn(self.sum, States.UNORDERED_ACCESS, States.COPY_DEST)])
        work.copy_resource(self.sum, self.next)
        work.copy_resource(readback, self.next)


@pytest.mark.parametrize("strictness", list(Strictness))
@pytest.mark.parametrize("seed", range(4))
def test_threads_with_queues_of_their_own(seed: int, strictness: Strictness) -> None:
    shared = Shared(seed, strictness)
    workers = [Worker(shared, number) for number in range(THREADS)]
    shared.initialize(workers[0])
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [problem for worker in workers for problem in worker.problems] == []
    assert shared.device.get_device_removed_reason() is dmlemu.HResult.S_OK


@pytest.mark.parametrize("seed", range(3))
def test_one_buffer_mapped_by_several_threads(seed: int) -> None:
    """MP8: maps are counted, and what each thread writes to its part reaches the GPU."""
    shared = Shared(seed, Strictness.DEBUG)
    worker = Worker(shared, 0)
    upload, readback = worker._host_buffer(Kinds.UPLOAD), worker._host_buffer(Kinds.READBACK)
    problems: list[str] = []

    def write(number: int) -> None:
        try:
            for value in range(50):
                memory = upload.map(0, d3d12.Range(0, 0))
                memory.view(np.float32)[number::THREADS] = value
                upload.unmap()
        except Exception:
            problems.append(traceback.format_exc())

    threads = [threading.Thread(target=write, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    with pytest.raises(dmlemu.Error, match="not mapped"):
        upload.unmap()
    worker.list.copy_resource(readback, upload)
    worker.finish()
    assert readback.map().view(np.float32).tolist() == [49.0] * COUNT


def test_what_the_cpu_writes_while_its_copy_is_brought_up_to_date_is_kept() -> None:
    """Another thread's wait brings what the GPU has changed; bytes beside that are left alone."""
    size = 1 << 14
    gpu = np.zeros(size, np.uint8)
    staging = Staging(memoryview(gpu))  # type: ignore[arg-type]
    cpu = np.frombuffer(staging.memory, np.uint8)

    def write() -> None:
        for i in range(size // 2):  # the lower half is the CPU's
            cpu[i] = 1

    for i in range(20):
        cpu[: size // 2] = 0
        staging.to_gpu(0, size)
        thread = threading.Thread(target=write)
        thread.start()
        while thread.is_alive():
            gpu[size // 2 :] = (int(gpu[-1]) + 1) % 256
            staging.to_cpu(0, size)
        assert np.count_nonzero(cpu[: size // 2]) == size // 2, i
        assert (cpu[size // 2 :] == gpu[-1]).all()
