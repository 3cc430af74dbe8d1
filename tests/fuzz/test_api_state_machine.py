"""Random programs, legal and not: every call answers with dmlemu.Error or a TypeError that names its
argument, nothing hangs, and the device still works afterwards unless the program got it removed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

import dmlemu
from dmlemu import Error, HResult, Strictness, d3d12, dml
from dmlemu.d3d12 import Policy
from thorough import THOROUGH, part_of

KINDS = [d3d12.CommandListType.COMPUTE, d3d12.CommandListType.DIRECT, d3d12.CommandListType.COPY]
States = d3d12.ResourceStates
UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
VIEWS = d3d12.DescriptorHeapType.CBV_SRV_UAV


def mostly(legal: Sequence[Any], *junk: Any) -> st.SearchStrategy[Any]:
    """Programs get far only when few of their arguments are wrong."""
    return st.sampled_from([*legal] * (1 + 15 * len(junk) // len(legal)) + [*junk])


picks = mostly(range(16), 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48)  # of an object; from 37 on: junk
sizes = mostly([16, 64, 256, 4096, 65536], 0, 3, -1, 2**40, 2**64, 2**200, 1.5, "x", None)
offsets = mostly([0, 0, 0, 16, 256], 4, 1, -4, 65536, 2**63, None, "x")
slots = mostly(range(16), -1, 16, 17)
values = mostly([1, 2, 3, 4], 0, 2**64 - 1, 2**64, -1, None, 0.5)
states = mostly(
    [States.COMMON, States.COMMON, States.UNORDERED_ACCESS, States.COPY_DEST, States.COPY_SOURCE],
    *(States.GENERIC_READ, States.COPY_DEST | States.UNORDERED_ACCESS, 2**40, None, "x"),
)
kinds = mostly([KINDS[0], KINDS[0], KINDS[0], *KINDS], d3d12.CommandListType.BUNDLE, 77, None)
JUNK = [None, 5, "x", [], object(), np.zeros(2), float("nan"), b"", d3d12.HeapDesc(65536)]


def identity() -> dml.OperatorDesc:
    tensor = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4])
    return dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor, output_tensor=tensor)


class Programs(RuleBasedStateMachine):
    """Calls anything with anything; the pools hold what calls returned, released objects too."""

    strictness: Strictness
    policy: Policy

    def __init__(self) -> None:
        super().__init__()
        self.adapter = d3d12.Adapter(dedicated_memory=1 << 28, policy=self.policy)
        self.device = d3d12.create_device(self.adapter, strictness=self.strictness)
        self.dml = dml.create_device(self.device)
        names = "buffers heaps queues allocators lists fences tables descriptors queries dispatchables maps"
        self.pools: dict[str, list[Any]] = {name: [] for name in names.split()}
        foreign = d3d12.create_device(d3d12.Adapter(dedicated_memory=1 << 20), strictness=self.strictness)
        self.junk = [*JUNK, foreign.create_fence(), foreign.create_command_allocator(KINDS[0]), self.device]
        self._start()

    def _start(self) -> None:
        """One of everything that works together."""
        device, default = self.device, d3d12.HeapProperties()
        none = d3d12.HeapFlags.NONE
        upload, plain = d3d12.HeapProperties(d3d12.HeapType.UPLOAD), d3d12.ResourceDesc.buffer(4096)
        for _ in range(2):
            desc = d3d12.ResourceDesc.buffer(4096, UAV)
            self.add("buffers", device.create_committed_resource, default, none, desc, States.COMMON)
        self.add("buffers", device.create_committed_resource, upload, none, plain, States.GENERIC_READ)
        self.add("maps", self.pools["buffers"][-1].map)
        self.add("heaps", device.create_heap, d3d12.HeapDesc(1 << 18))
        self.add("queues", device.create_command_queue, d3d12.CommandQueueDesc(KINDS[0]))
        self.add("allocators", device.create_command_allocator, KINDS[0])
        self.add("lists", device.create_command_list, 0, KINDS[0], self.pools["allocators"][0])
        self.add("fences", device.create_fence)
        self.add("queries", device.create_query_heap, d3d12.QueryHeapDesc(count=4))
        visible = d3d12.DescriptorHeapFlags.SHADER_VISIBLE
        for flags in (visible, d3d12.DescriptorHeapFlags.NONE):
            self.add("descriptors", device.create_descriptor_heap, d3d12.DescriptorHeapDesc(VIEWS, 16, flags))
        compiled = self.dml.compile_operator(self.dml.create_operator(identity()))
        self.recorder = self.dml.create_command_recorder()
        self.pools["dispatchables"].append(compiled)
        self.add("dispatchables", self.dml.create_operator_initializer, [compiled])

    def call(self, work: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return work(*arguments)
        except Error as error:
            assert error.report.message and len(str(error)) < 4000
            error.report.json()
        except TypeError as error:
            assert " must " in str(error), error
        return None

    def add(self, pool: str, work: Callable[..., Any], *arguments: Any) -> None:
        made = self.call(work, *arguments)
        if made is not None:
            self.pools[pool].append(made)

    def get(self, pool: str, pick: int) -> Any:
        items = self.pools[pool]
        return items[-1 - pick % len(items)] if items and pick < 37 else self.junk[pick % len(self.junk)]

    def on(self, pool: str, pick: int, method: str, *arguments: Any) -> Any:
        """Calls a method of an object of the pool."""
        items = self.pools[pool]
        return self.call(getattr(items[-1 - pick % len(items)], method), *arguments) if items else None

    # --- creating ---

    @rule(
        heap=mostly([*d3d12.HeapType], 0, "x"),
        flags=mostly([d3d12.HeapFlags.NONE], *d3d12.HeapFlags, 2**31, None),
        size=sizes,
        uav=mostly([UAV, d3d12.ResourceFlags.NONE], 2**20),
        state=mostly([None], *States),
    )
    def create_buffer(self, heap: Any, flags: Any, size: Any, uav: Any, state: Any) -> None:
        if state is None:
            fixed = {d3d12.HeapType.UPLOAD: States.GENERIC_READ, d3d12.HeapType.READBACK: States.COPY_DEST}
            state = fixed.get(heap, States.COMMON)

        def work() -> Any:
            desc = d3d12.ResourceDesc.buffer(size, uav)
            return self.device.create_committed_resource(d3d12.HeapProperties(heap), flags, desc, state)

        self.add("buffers", work)

    @rule(heap=picks, offset=offsets, size=sizes, state=states, reserved=st.booleans())
    def place_buffer(self, heap: int, offset: Any, size: Any, state: Any, reserved: bool) -> None:
        def work() -> Any:
            desc = d3d12.ResourceDesc.buffer(size, UAV)
            if reserved:
                return self.device.create_reserved_resource(desc, state)
            return self.device.create_placed_resource(self.get("heaps", heap), offset, desc, state)

        self.add("buffers", work)

    @rule(size=sizes, kind=mostly([*d3d12.HeapType], None))
    def create_heap(self, size: Any, kind: Any) -> None:
        self.add("heaps", lambda: self.device.create_heap(d3d12.HeapDesc(size, d3d12.HeapProperties(kind))))

    @rule(kind=kinds, allocator=picks, opened=st.booleans(), value=values)
    def create_for_lists(self, kind: Any, allocator: int, opened: bool, value: Any) -> None:
        device = self.device
        self.add("queues", lambda: device.create_command_queue(d3d12.CommandQueueDesc(kind)))
        self.add("allocators", device.create_command_allocator, kind)
        if opened:
            self.add("lists", device.create_command_list, 0, kind, self.get("allocators", allocator))
        else:
            self.add("lists", device.create_command_list1, 0, kind)
        self.add("fences", device.create_fence, value)

    @rule(count=values, visible=mostly([0, 1], 2, None))
    def create_descriptors(self, count: Any, visible: Any) -> None:
        def work() -> Any:
            return self.device.create_descriptor_heap(d3d12.DescriptorHeapDesc(VIEWS, count, visible))

        self.add("descriptors", work)
        self.add("queries", lambda: self.device.create_query_heap(d3d12.QueryHeapDesc(count=count)))

    @rule(buffer=picks, first=offsets, count=sizes, heap=picks, slot=slots)
    def create_view(self, buffer: int, first: Any, count: Any, heap: int, slot: int) -> None:
        def work() -> None:
            view = d3d12.UnorderedAccessViewDesc(d3d12.Format.R32_UINT, buffer=d3d12.BufferUav(first, count))
            resource = self.get("buffers", buffer)
            self.device.create_unordered_access_view(resource, None, view, self.handle(heap, slot, gpu=False))

        self.call(work)

    def handle(self, heap: int, slot: int, *, gpu: bool) -> Any:
        """A descriptor handle; a made-up one of what has none."""
        found = self.get("descriptors", heap)
        if not isinstance(found, d3d12.DescriptorHeap):
            return found
        start = self.call(
            found.get_gpu_descriptor_handle_for_heap_start
            if gpu
            else found.get_cpu_descriptor_handle_for_heap_start
        )
        return 32 * slot if start is None else start + 32 * slot

    # --- DirectML ---

    @rule(pick=picks, flags=mostly([0, 1], 2**20, None), bind=st.booleans())
    def create_operator(self, pick: int, flags: Any, bind: bool) -> None:
        operator = self.call(self.dml.create_operator, identity() if pick < 37 else self.junk[pick % 9])
        self.add("dispatchables", self.dml.compile_operator, operator, flags)
        if bind:
            chosen = [self.get("dispatchables", pick)]
            self.add("dispatchables", self.dml.create_operator_initializer, chosen)

    @rule(operator=picks, heap=picks, slot=slots, count=values, reset=st.booleans())
    def create_table(self, operator: int, heap: int, slot: int, count: Any, reset: bool) -> None:
        def desc() -> Any:
            cpu, gpu = (self.handle(heap, slot, gpu=gpu) for gpu in (False, True))
            return dml.BindingTableDesc(self.get("dispatchables", operator), cpu, gpu, count)

        if reset:
            self.on("tables", heap, "reset", desc())
        else:
            self.add("tables", lambda: self.dml.create_binding_table(desc()))

    @rule(
        table=picks,
        method=st.sampled_from(["bind_inputs", "bind_outputs", "bind_temporary_resource"]),
        buffer=picks,
        offset=offsets,
        size=sizes,
    )
    def bind(self, table: int, method: str, buffer: int, offset: Any, size: Any) -> None:
        binding: Any = dml.BufferBinding(self.get("buffers", buffer), offset, size)
        self.on("tables", table, method, binding if method == "bind_temporary_resource" else [binding])

    @rule(commands=picks, operator=picks, table=picks)
    def dispatch(self, commands: int, operator: int, table: int) -> None:
        found = [
            self.get(*each) for each in (("lists", commands), ("dispatchables", operator), ("tables", table))
        ]
        self.call(self.recorder.record_dispatch, *found)

    @rule(commands=picks, heap=mostly([0], 1, 39), buffers=st.tuples(picks, picks))
    def record_whole_dispatch(self, commands: int, heap: int, buffers: Sequence[int]) -> None:
        """All that a dispatch needs, in order."""
        target, heaps = self.pools["dispatchables"][0], self.pools["descriptors"]
        self.on("lists", commands, "set_descriptor_heaps", heaps[:1])
        self.on("lists", commands, "resource_barrier", [d3d12.ResourceBarrier.uav(None)])
        first = len(heaps) - 1 + heap
        cpu, gpu = self.handle(first, 0, gpu=False), self.handle(first, 0, gpu=True)
        desc = dml.BindingTableDesc(target, cpu, gpu, 2)
        table = self.call(self.dml.create_binding_table, desc)
        if table is not None:
            source, result = (dml.BufferBinding(self.get("buffers", each), 0, 16) for each in buffers)
            self.call(table.bind_inputs, [source])
            self.call(table.bind_outputs, [result])
            self.call(self.recorder.record_dispatch, self.get("lists", commands), target, table)

    # --- recording ---

    @rule(commands=picks, result=picks, to=offsets, source=picks, start=offsets, size=sizes)
    def copy(self, commands: int, result: int, to: Any, source: int, start: Any, size: Any) -> None:
        a, b = self.get("buffers", result), self.get("buffers", source)
        if size == 64:
            self.on("lists", commands, "copy_resource", a, b)
        else:
            self.on("lists", commands, "copy_buffer_region", a, to, b, start, size)

    @rule(commands=picks, buffer=picks, before=states, after=states, flags=mostly([0], 1, 2, 3))
    def transition(self, commands: int, buffer: int, before: Any, after: Any, flags: Any) -> None:
        def work() -> None:
            resource = self.get("buffers", buffer)
            barrier = d3d12.ResourceBarrier.transition(resource, before, after, 0, flags)
            self.on("lists", commands, "resource_barrier", [barrier])

        self.call(work)

    @rule(commands=picks, a=picks, b=picks)
    def other_barriers(self, commands: int, a: int, b: int) -> None:
        first, second = self.get("buffers", a), self.get("buffers", b)
        barriers = [d3d12.ResourceBarrier.uav(first), d3d12.ResourceBarrier.aliasing(first, second)]
        self.on("lists", commands, "resource_barrier", barriers)

    @rule(commands=picks, heap=picks, slot=slots, buffer=picks, color=values, real=st.booleans())
    def clear(self, commands: int, heap: int, slot: int, buffer: int, color: Any, real: bool) -> None:
        method = f"clear_unordered_access_view_{'float' if real else 'uint'}"
        first = len(self.pools["descriptors"]) - 1
        gpu, cpu = self.handle(first, slot, gpu=True), self.handle(heap, slot, gpu=False)
        self.on("lists", commands, "set_descriptor_heaps", self.pools["descriptors"][:1])
        self.on("lists", commands, method, gpu, cpu, self.get("buffers", buffer), [color] * 4)

    @rule(commands=picks, queries=picks, index=values, count=values, buffer=picks, offset=offsets)
    def query(self, commands: int, queries: int, index: Any, count: Any, buffer: int, offset: Any) -> None:
        heap, kind, target = (
            self.get("queries", queries),
            d3d12.QueryType.TIMESTAMP,
            self.get("buffers", buffer),
        )
        self.on("lists", commands, "end_query", heap, kind, index)
        self.on("lists", commands, "resolve_query_data", heap, kind, index, count, target, offset)

    @rule(commands=picks, buffer=picks, offset=offsets, value=values)
    def write_immediate(self, commands: int, buffer: int, offset: Any, value: Any) -> None:
        def work() -> None:
            resource = self.get("buffers", buffer)
            start = resource.get_gpu_virtual_address() if isinstance(resource, d3d12.Resource) else 0
            address = start + offset if isinstance(offset, int) else offset
            write = d3d12.WriteBufferImmediateParameter(address, value)
            self.on("lists", commands, "write_buffer_immediate", [write])

        self.call(work)

    @rule(kind=kinds)
    def begin(self, kind: Any) -> None:
        """A list that can be recorded at once."""
        allocator = self.call(self.device.create_command_allocator, kind)
        self.add("lists", self.device.create_command_list, 0, kind, allocator)

    @rule(queue=picks, commands=picks, fence=picks, signal=st.booleans())
    def finish(self, queue: int, commands: int, fence: int, signal: bool) -> None:
        """Runs a list to its end."""
        self.on("lists", commands, "close")
        self.on("queues", queue, "execute_command_lists", [self.get("lists", commands)])
        reached = self.on("fences", fence, "get_completed_value")
        if signal and reached is not None:
            self.on("queues", queue, "signal", self.get("fences", fence), reached + 1)
            self.on("fences", fence, "wait", reached + 1, 0.01)

    @rule(commands=picks)
    def close(self, commands: int) -> None:
        self.on("lists", commands, "close")

    @rule(commands=picks, allocator=picks, first=st.booleans())
    def reset(self, commands: int, allocator: int, first: bool) -> None:
        if first:
            self.on("allocators", allocator, "reset")
        self.on("lists", commands, "reset", self.get("allocators", allocator))

    # --- running ---

    @rule(queue=picks, lists=st.lists(picks, max_size=2), close=st.booleans())
    def execute(self, queue: int, lists: Sequence[int], close: bool) -> None:
        chosen = [self.get("lists", each) for each in lists]
        for each in chosen:
            if close and isinstance(each, d3d12.CommandList):
                self.call(each.close)
        self.on("queues", queue, "execute_command_lists", chosen)

    @rule(queue=picks, fence=picks, value=values, method=st.sampled_from(["signal", "signal", "wait"]))
    def queue_fence(self, queue: int, fence: int, value: Any, method: str) -> None:
        self.on("queues", queue, method, self.get("fences", fence), value)

    @rule(fence=picks, value=values, timeout=st.sampled_from([0, 0.001, 0.01]))
    def wait(self, fence: int, value: Any, timeout: float) -> None:
        self.on("fences", fence, "wait", value, timeout)

    @rule(fence=picks, value=values, signal=st.booleans())
    def host_fence(self, fence: int, value: Any, signal: bool) -> None:
        if signal:
            self.on("fences", fence, "signal", value)
        else:
            self.on("fences", fence, "set_event_on_completion", value, threading.Event())
        self.on("fences", fence, "get_completed_value")

    @rule(
        queue=picks, buffer=picks, heap=picks, tile=values, count=values, flags=st.sampled_from([0, 1, 2, 4])
    )
    def map_tiles(self, queue: int, buffer: int, heap: int, tile: Any, count: Any, flags: int) -> None:
        def work() -> None:
            arguments = (
                *([d3d12.TiledResourceCoordinate(tile)], [d3d12.TileRegionSize(count)]),
                *(self.get("heaps", heap), [flags], [tile], [count]),
            )
            self.on("queues", queue, "update_tile_mappings", self.get("buffers", buffer), *arguments)

        self.call(work)

    # --- memory of the host, residency, lifetime ---

    @rule(buffer=picks, begin=offsets, end=offsets, unmap=st.booleans())
    def map(self, buffer: int, begin: Any, end: Any, unmap: bool) -> None:
        def work() -> Any:
            extent = None if begin == 256 else d3d12.Range(begin, end)
            return self.on("buffers", buffer, "unmap" if unmap else "map", 0, extent)

        self.add("maps", work)

    @precondition(lambda self: self.pools["maps"])
    @rule(pick=picks, offset=offsets, count=sizes, dtype=mostly([np.uint8, np.float32], "S0", object))
    def touch(self, pick: int, offset: Any, count: Any, dtype: Any) -> None:
        array = self.on("maps", pick, "view", dtype, offset, count)
        if array is not None:
            array[:] = 1

    @rule(pool=st.sampled_from(["buffers", "heaps", "lists"]), pick=picks, evict=st.booleans())
    def page(self, pool: str, pick: int, evict: bool) -> None:
        chosen = [self.get(pool, pick)]
        self.call(self.device.evict if evict else self.device.make_resident, chosen)

    @rule(pool=st.sampled_from(["buffers", "heaps", "queues", "lists", "fences", "descriptors"]), pick=picks)
    def release(self, pool: str, pick: int) -> None:
        self.on(pool, pick, "release")

    @rule(pool=st.sampled_from(["allocators", "tables", "queries", "dispatchables"]), pick=picks)
    def release_more(self, pool: str, pick: int) -> None:
        self.on(pool, pick, "release")

    @rule(pool=st.sampled_from(["buffers", "heaps", "queues", "lists", "fences", "descriptors"]), pick=picks)
    def forget(self, pool: str, pick: int) -> None:
        """The last reference may go while the GPU still needs the object."""
        if len(self.pools[pool]) > 2:
            self.pools[pool].pop(1 + pick % (len(self.pools[pool]) - 1))

    @rule(pick=picks)
    def end_device(self, pick: int) -> None:
        if pick == 37:
            self.call(self.device.release)
        if pick == 38:
            self.call(self.device.remove_device)

    # --- the end ---

    def teardown(self) -> None:
        device = d3d12.create_device(self.adapter)
        data = np.arange(4, dtype=np.float32)
        try:
            result = dmlemu.evaluate(identity(), device=dml.create_device(device), input_tensor=data)
        except Error:
            # Work of the program that still waited may have been wrong.
            assert device.get_device_removed_reason() is not HResult.S_OK
        else:
            assert np.array_equal(result["output_tensor"], data)


pytestmark = pytest.mark.dmlemu(expect=["*"])  # programs of every kind, illegal ones too
EACH = [(strictness, policy) for strictness in (Strictness.STRICT, Strictness.RUNTIME) for policy in Policy]
each = pytest.mark.parametrize(("strictness", "policy"), EACH)


def default_cases() -> list[Any]:
    """Both kinds of strictness with one policy each; the other pairs are long."""
    short = (Strictness.STRICT, Policy.LAZY), (Strictness.RUNTIME, Policy.EAGER)
    return [pytest.param(*pair, marks=[] if pair in short else [pytest.mark.long]) for pair in EACH]


def run(strictness: Strictness, policy: Policy, examples: int, steps: int) -> None:
    machine = type("Machine", (Programs,), {"strictness": strictness, "policy": policy})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    chosen = settings(
        max_examples=examples, deadline=None, stateful_step_count=steps, suppress_health_check=checks
    )
    run_state_machine_as_test(machine, settings=chosen)


@pytest.mark.parametrize(("strictness", "policy"), default_cases())
def test_programs(strictness: Strictness, policy: Policy) -> None:
    run(strictness, policy, examples=part_of(100), steps=100 if THOROUGH else 60)


@pytest.mark.long
@pytest.mark.timeout(3600)
@each
def test_many_programs(strictness: Strictness, policy: Policy) -> None:
    run(strictness, policy, examples=500, steps=300)
