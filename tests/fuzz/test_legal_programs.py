"""Random legal programs under all checks: nothing is reported, and what is read back is what NumPy computes.

The machine keeps the rules by a simple model of its own: a transition or a UAV barrier before every use that
follows another one in the same ExecuteCommandLists call, a fence wait before anything of the CPU's is used
again, a fence between queues.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import dmlemu
from dmlemu import Severity, Strictness, d3d12, dml
from dmlemu.d3d12 import Policy

States = d3d12.ResourceStates
COMPUTE = d3d12.CommandListType.COMPUTE
BYTES, WORDS, SLOTS = 256, 64, 48
# How sixteen elements lie in a buffer of 64: sizes and strides.
LAYOUTS = [((16,), None), ((4, 4), (8, 1)), ((4, 4), (1, 4)), ((2, 8), (32, 2)), ((16,), (4,))]

picks = st.integers(0, 3)
layouts = st.sampled_from(LAYOUTS)


def places(layout: Any) -> np.ndarray[Any, Any]:
    """The word at which each element stands, in logical order."""
    sizes, strides = layout
    strides = strides or [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]
    index = np.indices(sizes).reshape(len(sizes), -1)
    return np.asarray(sum(i * stride for i, stride in zip(index, strides, strict=True)))


class Legal(RuleBasedStateMachine):
    """Four buffers, two queues, three lists in rotation."""

    policy: Any = Policy.LAZY

    def __init__(self) -> None:
        super().__init__()
        adapter = d3d12.Adapter(dedicated_memory=1 << 26, policy=self.policy)
        self.device = d3d12.create_device(adapter, strictness=Strictness.STRICT)
        self.dml = dml.create_device(self.device)
        self.recorder = self.dml.create_command_recorder()
        self.queues = [self.device.create_command_queue(d3d12.CommandQueueDesc(COMPUTE)) for _ in range(2)]
        self.fence, self.value, self.last_queue = self.device.create_fence(), 0, 0
        kind, visible = d3d12.DescriptorHeapType.CBV_SRV_UAV, d3d12.DescriptorHeapFlags.SHADER_VISIBLE
        self.heap = self.device.create_descriptor_heap(d3d12.DescriptorHeapDesc(kind, SLOTS, visible))
        self.step = self.device.get_descriptor_handle_increment_size(kind)
        self.free = SLOTS
        self.lists: list[Any] = []
        for _ in range(3):
            allocator = self.device.create_command_allocator(COMPUTE)
            made = self.device.create_command_list(0, COMPUTE, allocator)
            made.close()
            self.lists.append([made, allocator, 0])  # the fence value behind its last submission
        self.buffers = [self._buffer(d3d12.HeapType.DEFAULT) for _ in range(4)]
        self.content = [np.zeros(WORDS, np.uint32) for _ in self.buffers]
        self.written = [np.zeros(WORDS, bool) for _ in self.buffers]
        self.uploads: list[list[Any]] = []
        self.operators: dict[Any, Any] = {}
        self.states: dict[int, Any] = {}
        self._open()
        for i in range(2):
            self.upload(i, 77 * i, WORDS, 3)
        self.submit(0)

    def _buffer(self, kind: d3d12.HeapType) -> Any:
        uav = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
        host = {d3d12.HeapType.UPLOAD: States.GENERIC_READ, d3d12.HeapType.READBACK: States.COPY_DEST}
        flags = d3d12.ResourceFlags.NONE if kind in host else uav
        desc, state = d3d12.ResourceDesc.buffer(BYTES, flags), host.get(kind, States.COMMON)
        none = d3d12.HeapFlags.NONE
        return self.device.create_committed_resource(d3d12.HeapProperties(kind), none, desc, state)

    # --- lists and order ---

    def _open(self) -> None:
        """The next list records; its allocator is reset when the GPU is known to be done with it."""
        self.lists.append(self.lists.pop(0))
        self.list, allocator, value = self.lists[-1]
        self.fence.wait(value)
        allocator.reset()
        self.list.reset(allocator)
        self.list.set_descriptor_heaps([self.heap])
        self.states = {}

    def use(self, index: int, state: Any) -> None:
        """What must stand before a command that uses the buffer in this state."""
        buffer, before = self.buffers[index], self.states.get(index)
        if before is not None and before != state:
            self.list.resource_barrier([d3d12.ResourceBarrier.transition(buffer, before, state)])
        elif before == States.UNORDERED_ACCESS:
            self.list.resource_barrier([d3d12.ResourceBarrier.uav(buffer)])
        self.states[index] = state

    def submit(self, queue: int) -> None:
        self.list.close()
        if queue != self.last_queue:
            self.queues[queue].wait(self.fence, self.value)
        self.queues[queue].execute_command_lists([self.list])
        self.value, self.last_queue = self.value + 1, queue
        self.queues[queue].signal(self.fence, self.value)
        self.lists[-1][2] = self.value
        self._open()

    # --- what a program does ---

    @rule(to=picks, numbers=st.integers(0, 2**32 - 1), count=st.integers(1, WORDS), how=st.integers(0, 3))
    def upload(self, to: int, numbers: int, count: int, how: int) -> None:
        """The first words of a buffer, from fresh or finished upload memory, mapped in one of four ways."""
        values = (np.arange(count, dtype=np.uint64) * 2654435761 + numbers).astype(np.uint32)
        values[::5] = 0
        done = [each for each in self.uploads if each[1] <= self.fence.get_completed_value()]
        entry = done[0] if done else [self._buffer(d3d12.HeapType.UPLOAD), 0]
        if not done:
            self.uploads.append(entry)
        source, data = entry[0], values.tobytes()
        if how == 0:
            with source.map(0, d3d12.Range(0, 0)) as memory:
                memory.view(np.uint32)[:count] = values
        elif how == 1:
            source.map()[: len(data)] = data
            source.unmap(0, d3d12.Range(0, len(data)))
        elif how == 2:
            np.asarray(source.map())[: len(data)] = np.frombuffer(data, np.uint8)
            source.unmap()
        else:
            with source.map(0, d3d12.Range(0, 0)) as memory:
                memory[: len(data)] = data
        self.use(to, States.COPY_DEST)
        self.list.copy_buffer_region(self.buffers[to], 0, source, 0, len(data))
        entry[1] = self.value + 1
        self.content[to][:count], self.written[to][:count] = values, True

    @rule(source=picks, to=picks, start=st.integers(0, 48), count=st.integers(1, 16))
    def copy(self, source: int, to: int, start: int, count: int) -> None:
        """Copies carry along what was written, and what was not."""
        if source == to:
            return
        self.use(source, States.COPY_SOURCE)
        self.use(to, States.COPY_DEST)
        pair = self.buffers[to], self.buffers[source]
        self.list.copy_buffer_region(pair[0], 4 * start, pair[1], 4 * (48 - start), 4 * count)
        there, origin = slice(start, start + count), slice(48 - start, 48 - start + count)
        self.content[to][there] = self.content[source][origin]
        self.written[to][there] = self.written[source][origin]

    @rule(source=picks, to=picks, first=layouts, second=layouts)
    def dispatch(self, source: int, to: int, first: Any, second: Any) -> None:
        """Copies sixteen elements from layout to layout, if all of them were written."""
        reads, writes = places(first), places(second)
        if source == to or not self.written[source][reads].all():
            return
        sizes = first[0]
        if second[0] != sizes:
            second = (sizes, None)
            writes = places(second)
        operator = self._operator(first, second)
        if self.free + 2 > SLOTS:  # the descriptors are free again once all is done
            self.submit(self.last_queue)
            self.fence.wait(self.value)
            self.free = 0
        self.use(source, States.UNORDERED_ACCESS)
        self.use(to, States.UNORDERED_ACCESS)
        cpu = self.heap.get_cpu_descriptor_handle_for_heap_start() + self.free * self.step
        gpu = self.heap.get_gpu_descriptor_handle_for_heap_start() + self.free * self.step
        self.free += 2
        table = self.dml.create_binding_table(dml.BindingTableDesc(operator, cpu, gpu, 2))
        table.bind_inputs([dml.BufferBinding(self.buffers[source])])
        table.bind_outputs([dml.BufferBinding(self.buffers[to])])
        self.recorder.record_dispatch(self.list, operator, table)
        self.content[to][writes] = self.content[source][reads]
        self.written[to][writes] = True

    @rule(source=picks, between=picks, to=picks, first=layouts, second=layouts)
    def chain(self, source: int, between: int, to: int, first: Any, second: Any) -> None:
        """Two dispatches, the second of which reads what the first wrote."""
        self.dispatch(source, between, first, second)
        self.dispatch(between, to, second, LAYOUTS[0])

    def _operator(self, first: Any, second: Any) -> Any:
        key = (first, second)
        if key not in self.operators:
            u32 = dml.TensorDataType.UINT32
            tensors = [dml.BufferTensorDesc(u32, sizes, strides) for sizes, strides in key]
            desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensors[0], output_tensor=tensors[1])
            compiled = self.dml.compile_operator(self.dml.create_operator(desc))
            initializer = self.dml.create_operator_initializer([compiled])
            table = self.dml.create_binding_table(dml.BindingTableDesc(initializer, 0, 0, 0))
            self.recorder.record_dispatch(self.list, initializer, table)
            self.operators[key] = compiled
        return self.operators[key]

    @rule(queue=st.integers(0, 1))
    def execute(self, queue: int) -> None:
        self.submit(queue)

    @rule()
    def wait(self) -> None:
        self.fence.wait(self.value)

    @rule(source=picks)
    def read_back(self, source: int) -> None:
        """Every byte that was written is what the model says."""
        readback = self._buffer(d3d12.HeapType.READBACK)
        self.use(source, States.COPY_SOURCE)
        self.list.copy_resource(readback, self.buffers[source])
        self.submit(self.last_queue)
        self.fence.wait(self.value)
        with readback.map() as memory:
            got = memory.view(np.uint32).copy()
        known = self.written[source]
        assert got[known].tolist() == self.content[source][known].tolist()

    def teardown(self) -> None:
        self.submit(0)
        self.fence.wait(self.value)
        self.device.checks.end()
        said = [each.report for each in self.device.reports if each.report.severity <= Severity.WARNING]
        assert not said, said[0].text()


def run(policy: Any, examples: int, steps: int) -> None:
    machine = type("LegalProgram", (Legal,), {"policy": policy})
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    profile = settings(max_examples=examples, stateful_step_count=steps, suppress_health_check=quiet)
    run_state_machine_as_test(machine, settings=profile)


@pytest.mark.parametrize("policy", [Policy.LAZY, Policy.EAGER], ids=lambda policy: policy.value)
def test_legal_programs_are_silent(policy: Policy) -> None:
    run(policy, examples=12, steps=40)


def test_legal_programs_compute_the_same_under_chaos() -> None:
    run(dmlemu.chaos(3), examples=12, steps=40)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_ten_thousand_legal_steps() -> None:
    run(Policy.LAZY, examples=100, steps=100)
