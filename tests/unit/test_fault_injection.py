"""Fault injection: when faults occur, what is recorded, and how every object behaves afterwards."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest

import dmlemu
from dmlemu import Error, HResult, Strictness, d3d12, dml
from dmlemu.testing import faults
from dmlemu.testing.stage import Stage, States, tensor
from internal_methods import INTERNAL
from list_commands import COMMANDS, Objects

HUNG, REMOVED = HResult.DXGI_ERROR_DEVICE_HUNG, HResult.DXGI_ERROR_DEVICE_REMOVED
FOREVER = 2**64 - 1
VIEWS = d3d12.DescriptorHeapType.CBV_SRV_UAV
COMPUTE = d3d12.CommandListType.COMPUTE
GUID = UUID(int=7)


def chain(stage: Stage) -> Any:
    """Three dispatches in a row, 'first', 'second' and 'third', and the last result read back."""
    buffers = [stage.filled("a"), stage.buffer("b"), stage.buffer("c"), stage.buffer("d")]
    for name, source, target in zip(["first", "second", "third"], buffers, buffers[1:], strict=False):
        stage.dispatch(stage.copy_operator(name, 64), [source], [target])
        stage.barrier(target)
        stage.run()
    readback = stage.host_buffer("readback", kind="READBACK")
    stage.list.copy_buffer_region(readback, 0, buffers[-1], 0, 256)
    stage.run()
    with readback.map() as memory:
        return np.asarray(memory).view(np.float32).copy()


EXPECTED = np.arange(1, 65, dtype=np.float32)


class TestRemoval:
    def test_after_every_command(self) -> None:
        """Until the program runs through, it ends with the fault, at the next command each time."""
        numbers = []
        for n in itertools.count():
            stage = Stage()
            with faults.removal(stage.device, after=n) as fault:
                try:
                    assert np.array_equal(chain(stage), EXPECTED)
                except Error as error:
                    assert (error.hresult, error.report.id) == (HUNG, "DEVICE_REMOVED")
                    assert f"executed before: {n})" in error.report.message
            assert fault.happened == (stage.device.get_device_removed_reason() is HUNG)
            if not fault.happened:
                assert fault.seen == n
                assert stage.device.removal_record is None
                break
            record = stage.device.removal_record
            assert record is not None and record.command is not None and record.reason is HUNG
            numbers.append(record.command.name)
        assert len(numbers) > 12
        assert numbers.count("CopyBufferRegion") == 2
        assert sum(name.startswith("Dispatch of ") for name in numbers) == 3

    @pytest.mark.parametrize("name", ["first", "second", "third", "CopyBufferRegion"])
    def test_at_a_name(self, name: str) -> None:
        stage = Stage()
        with pytest.raises(Error), faults.removal(stage.device, at=name) as fault:
            chain(stage)
        assert fault.happened and fault.seen == 0
        record = stage.device.removal_record
        assert record is not None and record.command is not None
        assert name in record.command.name
        assert bool(record.operator) == (name != "CopyBufferRegion")

    def test_at_the_second_of_a_name(self) -> None:
        stage = Stage()
        with pytest.raises(Error), faults.removal(stage.device, at="CopyBufferRegion", after=1):
            chain(stage)
        record = stage.device.removal_record
        assert record is not None
        (queue,) = record.queues
        assert any("'third'" in crumb.name for crumb in queue.executed)

    def test_a_name_that_never_comes(self) -> None:
        stage = Stage()
        with faults.removal(stage.device, at="fir") as fault:  # names are whole
            chain(stage)
        assert not fault.happened and fault.seen == 0

    def test_the_command_is_not_executed(self) -> None:
        stage = Stage()
        source, target = stage.filled("source"), stage.host_buffer("target", kind="READBACK")
        mapped = target.map()
        stage.list.copy_buffer_region(target, 0, source, 0, 256)
        with pytest.raises(Error), faults.removal(stage.device, at="CopyBufferRegion"):
            stage.run()
        assert not any(mapped[:])

    def test_by_any_call_that_runs_the_gpu(self) -> None:
        stage = Stage(policy=d3d12.Policy.EAGER)
        source, target = stage.filled("source"), stage.buffer("target")
        stage.list.copy_buffer_region(target, 0, source, 0, 256)
        stage.list.close()
        with faults.removal(stage.device), pytest.raises(Error, match="Fault injection"):
            stage.queue.execute_command_lists([stage.list])

    def test_runtime_tells_by_the_reason_alone(self) -> None:
        stage = Stage(Strictness.RUNTIME)
        stage.list.copy_buffer_region(stage.buffer("to"), 0, stage.buffer("from"), 0, 256)
        with faults.removal(stage.device) as fault:
            stage.submit()
            assert stage.fence.wait(stage.fence_value)
        assert fault.happened
        assert stage.device.get_device_removed_reason() is HUNG
        assert stage.dml.get_device_removed_reason() is HUNG

    def test_who_waits_is_released(self) -> None:
        stage, event = Stage(Strictness.RUNTIME), threading.Event()
        never = stage.device.create_fence()
        stage.queue.wait(never, 1)
        never.set_event_on_completion(5, event)
        other = stage.device.create_command_queue(d3d12.CommandQueueDesc(COMPUTE))
        stage.list.close()
        with faults.removal(stage.device):
            other.execute_command_lists([stage.list])
            assert stage.fence.wait(1)
        assert event.is_set()
        assert never.get_completed_value() == FOREVER

    def test_leaves_nothing_behind(self) -> None:
        stage = Stage(Strictness.RUNTIME)
        assert not stage.device.events
        with (
            faults.removal(stage.device),
            faults.out_of_memory(stage.dml),
            faults.memory_budget(stage.dml, 0),
        ):
            assert stage.device.events
        assert not stage.device.events
        assert np.array_equal(chain(stage), EXPECTED)

    def test_only_its_own_device(self) -> None:
        stage, other = Stage(), Stage()
        with faults.removal(other.device):
            assert np.array_equal(chain(stage), EXPECTED)

    def test_under_chaos_the_command_is_the_one_that_was_recorded(self) -> None:
        stage = Stage(policy=dmlemu.chaos(5))
        source = stage.filled("source", 4096)
        for i in range(8):
            stage.list.copy_buffer_region(stage.buffer(f"target {i}", 4096), 0, source, 0, 4096)
        with pytest.raises(Error, match=r"runs under chaos\(5\)"), faults.removal(stage.device, after=4):
            stage.run()
        record = stage.device.removal_record
        assert record is not None and record.command is not None
        ran = [crumb.command for crumb in record.queues[0].executed[-4:]]
        assert len({*ran, record.command.command}) == 5

    @pytest.mark.parametrize("wrong", [{"after": -1}, {"after": 1.5}, {"at": 5}, {"at": None}])
    def test_wrong_arguments(self, wrong: dict[str, Any]) -> None:
        with (
            pytest.raises((Error, TypeError), match=next(iter(wrong))),
            faults.removal(Stage().device, **wrong),
        ):
            pass


@pytest.mark.parametrize(
    "fault", [faults.removal, faults.out_of_memory, lambda it: faults.memory_budget(it, 1)]
)
def test_only_devices_have_faults(fault: Any) -> None:
    with (
        pytest.raises(TypeError, match=r"device must be a d3d12\.Device or a dml\.Device, not str"),
        fault("gpu"),
    ):
        pass


class TestRecord:
    def test_it_tells_where_and_what_ran_before(self) -> None:
        stage = Stage()
        a, b, upload = stage.filled("a"), stage.buffer("b"), stage.host_buffer("upload")
        copy = stage.copy_operator("conv1", 64)
        stage.list.copy_buffer_region(b, 0, upload, 0, 16)
        transition = d3d12.ResourceBarrier.transition(b, States.COPY_DEST, States.UNORDERED_ACCESS)
        stage.list.resource_barrier([transition])
        stage.dispatch(copy, [a], [b])
        with pytest.raises(Error), faults.removal(stage.device, at="conv1"):
            stage.run()
        record = stage.device.removal_record
        assert record is not None and record.command is not None
        assert record.queue == "command queue 'compute'"
        assert record.operator == "compiled operator 'conv1' (DML_OPERATOR_ELEMENT_WISE_IDENTITY)"
        assert (record.command.list, record.command.command) == ("command list 'frame'", 3)
        assert record.command.recorded_at.startswith("test_fault_injection.py:")
        (queue,) = record.queues
        assert [crumb.name for crumb in queue.executed[-3:]] == [
            "SetDescriptorHeaps",
            "CopyBufferRegion",
            "ResourceBarrier",
        ]
        text = record.text()
        assert text.startswith("The device was removed with DXGI_ERROR_DEVICE_HUNG.\nFault injection")
        assert "  at: command queue 'compute', command list 'frame', command 3: Dispatch of" in text
        assert "command list 'frame', command 1: CopyBufferRegion (test_fault_injection.py:" in text
        assert "command queue 'compute' (2 entries not done) last executed:" in text
        value = json.loads(record.json())
        assert (value["reason"], value["report"]["id"]) == ("DXGI_ERROR_DEVICE_HUNG", "DEVICE_REMOVED")
        assert value["queues"][0]["executed"][-1]["name"] == "ResourceBarrier"
        assert value["command"]["command"] == 3

    def test_a_real_fault_tells_the_address_and_its_owner(self) -> None:
        stage = Stage(Strictness.RUNTIME)
        target, source = stage.buffer("target"), stage.buffer("source")
        address = source.get_gpu_virtual_address()
        stage.list.copy_buffer_region(target, 0, source, 0, 256)
        stage.submit()
        source.release()
        stage.fence.wait(stage.fence_value)
        record = stage.device.removal_record
        assert record is not None and record.command is not None
        assert (record.address, record.command.name) == (address, "CopyBufferRegion")
        assert record.owner == "buffer 'source', which has been released"
        assert f"  address: {address:#x}, buffer 'source', which has been released" in record.text()

    @pytest.mark.dmlemu(expect=["MEM_OOB_WRITE"])
    def test_a_live_owner_is_named(self) -> None:
        stage = Stage()
        small = stage.buffer("small", 16)
        stage.list.writer.copy_buffer(small.get_gpu_virtual_address(), 0, 1 << 20)
        stage.list.announce(2, "CopyBufferRegion")
        with pytest.raises(Error):
            stage.run()
        record = stage.device.removal_record
        assert record is not None
        assert (record.owner, record.address) == ("buffer 'small'", small.get_gpu_virtual_address())

    def test_remove_device(self) -> None:
        stage = Stage()
        chain(stage)
        stage.list.copy_buffer_region(stage.buffer("to"), 0, stage.buffer("from"), 0, 256)
        stage.submit()
        stage.device.remove_device()
        record = stage.device.removal_record
        assert record is not None
        assert (record.reason, record.command, record.queue, record.address) == (REMOVED, None, "", 0)
        (queue,) = record.queues
        assert queue.pending == 2
        assert queue.executed[-1].name == "CopyBufferRegion"
        assert "RemoveDevice" in record.text() and json.loads(record.json())["command"] is None

    def test_a_refused_call_at_runtime(self) -> None:
        stage = Stage(Strictness.RUNTIME)
        stage.queue.execute_command_lists([stage.list])  # it is open
        record = stage.device.removal_record
        assert record is not None
        assert (record.reason, record.report.id) == (HResult.DXGI_ERROR_INVALID_CALL, "LIST_OPEN")
        assert record.queues == ()

    def test_the_first_reason_stays(self) -> None:
        stage = Stage()
        stage.list.close()
        with pytest.raises(Error), faults.removal(stage.device):
            stage.queue.execute_command_lists([stage.list])
            stage.queue.signal(stage.fence, 1)
            stage.fence.wait(1)
        record = stage.device.removal_record
        stage.device.remove_device()
        assert stage.device.removal_record is record
        assert stage.device.get_device_removed_reason() is HUNG

    def test_other_queues_are_told_too(self) -> None:
        stage = Stage()
        chain(stage)
        other = stage.device.create_command_queue(d3d12.CommandQueueDesc(COMPUTE))
        other.set_name("idle")
        other.wait(stage.fence, 1000)
        stage.list.close()
        with pytest.raises(Error), faults.removal(stage.device):
            stage.queue.execute_command_lists([stage.list])
            stage.queue.signal(stage.fence, 99)
            stage.fence.wait(99)
        record = stage.device.removal_record
        assert record is not None
        told = {queue.queue: (bool(queue.executed), queue.pending) for queue in record.queues}
        assert told == {"command queue 'compute'": (True, 2), "command queue 'idle'": (False, 1)}
        assert "    nothing" in record.text()

    def test_a_list_recorded_again_leaves_its_own_crumbs(self) -> None:
        stage = Stage()
        a, b = stage.filled("a"), stage.buffer("b")
        for _ in range(3):
            stage.list.copy_buffer_region(b, 0, a, 0, 16)
            stage.run()
        stage.list.copy_buffer_region(b, 0, a, 0, 16)
        with pytest.raises(Error), faults.removal(stage.device, at="CopyBufferRegion"):
            stage.run()
        record = stage.device.removal_record
        assert record is not None
        names = [crumb.name for crumb in record.queues[0].executed]
        assert names[-2:] == ["CopyBufferRegion", "SetDescriptorHeaps"]


CREATORS: dict[str, Callable[[Stage], Any]] = {
    "CreateHeap": lambda s: s.device.create_heap(d3d12.HeapDesc(1 << 16)),
    "CreateCommittedResource": lambda s: s.buffer("buffer"),
    "CreateReservedResource": lambda s: s.device.create_reserved_resource(
        d3d12.ResourceDesc.buffer(1 << 16), States.COMMON
    ),
    "CreateDescriptorHeap": lambda s: s.device.create_descriptor_heap(
        d3d12.DescriptorHeapDesc(VIEWS, 4, d3d12.DescriptorHeapFlags.NONE)
    ),
    "CreateQueryHeap": lambda s: s.device.create_query_heap(d3d12.QueryHeapDesc(count=4)),
    "CreateFence": lambda s: s.device.create_fence(),
    "CreateCommandQueue": lambda s: s.device.create_command_queue(),
    "CreateCommandAllocator": lambda s: s.device.create_command_allocator(COMPUTE),
    "CreateCommandList1": lambda s: s.device.create_command_list1(0, COMPUTE),
    "CreateCommandRecorder": lambda s: s.dml.create_command_recorder(),
    "CreateBindingTable": lambda s: s.dml.create_binding_table(),
    "CreateOperatorInitializer": lambda s: s.dml.create_operator_initializer(),
}


class TestMemory:
    def test_every_allocating_call_fails_once(self) -> None:
        """The program sees E_OUTOFMEMORY, nothing is lost by it, and then it runs."""
        operations = []
        for n in itertools.count(1):
            stage = Stage()
            before = stage.device.context.gpu.memory.used
            with faults.out_of_memory(stage.device, at=n) as fault:
                try:
                    chain(stage)
                except Error as error:
                    assert (error.hresult, error.report.id) == (HResult.E_OUTOFMEMORY, "OUT_OF_MEMORY")
                    assert f"as allocating call {n}." in error.report.message
                    operations.append(error.report.operation)
            assert stage.device.get_device_removed_reason() == 0
            if not fault.happened:
                assert fault.seen == n - 1
                break
            assert stage.device.context.gpu.memory.used == before
            stage.list.close()
            stage.list.reset(stage.allocator)
            stage.list.set_descriptor_heaps([stage.heap])
            assert np.array_equal(chain(stage), EXPECTED)
        assert {"CreateCommittedResource", "CreateOperator", "CompileOperator", "Map"} <= set(operations)

    @pytest.mark.parametrize("operation", CREATORS)
    @pytest.mark.parametrize("strictness", [Strictness.STRICT, Strictness.RUNTIME])
    def test_it_fails_by_name_and_then_works(self, operation: str, strictness: Strictness) -> None:
        stage = Stage(strictness)
        live = len(stage.device.report_live_device_objects())
        used = stage.device.context.gpu.memory.used
        with faults.out_of_memory(stage.device) as fault, pytest.raises(Error) as raised:
            CREATORS[operation](stage)
        assert raised.value.hresult is HResult.E_OUTOFMEMORY
        assert (raised.value.report.operation, fault.happened) == (operation, True)
        assert stage.device.context.gpu.memory.used == used
        assert len(stage.device.report_live_device_objects()) == live
        assert CREATORS[operation](stage) is not None

    def test_calls_that_allocate_nothing_do_not_count(self) -> None:
        stage = Stage()
        buffer = stage.buffer("buffer")
        with faults.out_of_memory(stage.device) as fault:
            stage.barrier(buffer)
            stage.run()
            stage.device.make_resident([buffer])
            buffer.get_gpu_virtual_address()
        assert fault.seen == 0

    @pytest.mark.parametrize("wrong", [0, -1, "x"])
    def test_wrong_arguments(self, wrong: Any) -> None:
        with pytest.raises((Error, TypeError), match="at"), faults.out_of_memory(Stage().device, at=wrong):
            pass

    def test_every_budget(self) -> None:
        """What does not fit fails in the middle of its call, and gives back what it had."""
        failures = 0
        for tiles in itertools.count():
            stage = Stage()
            before = stage.device.context.gpu.memory.used
            with faults.memory_budget(stage.device, before + tiles * 65536):
                assert stage.device.context.adapter.query_memory_budget().budget == before + tiles * 65536
                try:
                    chain(stage)
                    break
                except Error as error:
                    assert error.hresult is HResult.E_OUTOFMEMORY
                    assert error.report.operation == "CreateCommittedResource"
                    failures += 1
            assert stage.device.context.gpu.memory.used == before
            stage.list.close()
            stage.list.reset(stage.allocator)
            stage.list.set_descriptor_heaps([stage.heap])
            assert np.array_equal(chain(stage), EXPECTED)
        assert failures > 2

    def test_a_budget_below_what_is_in_use(self) -> None:
        stage = Stage()
        source, target = stage.filled("source"), stage.buffer("target")
        with faults.memory_budget(stage.dml, 0):
            with pytest.raises(Error) as raised:
                stage.buffer("more")
            assert "at most 0 bytes" in raised.value.report.expected
            stage.list.copy_buffer_region(target, 0, source, 0, 16)
            stage.run()  # what is there works on
        stage.buffer("more")

    def test_no_addresses_are_left(self) -> None:
        """The memory of a buffer is there, its addresses are not: it is given back."""
        stage = Stage()
        memory = stage.device.context.gpu.memory
        before, place = memory.used, memory._next_address
        memory._next_address = 1 << 47
        for operation in ("CreateCommittedResource", "CreateDescriptorHeap", "CreateQueryHeap"):
            with pytest.raises(Error) as raised:
                CREATORS[operation](stage)
            assert raised.value.hresult is HResult.E_OUTOFMEMORY
            assert memory.used == before
        memory._next_address = place
        assert np.array_equal(chain(stage), EXPECTED)


# --- how every object behaves once the device is gone ---


def removed(call: Callable[[], Any]) -> None:
    with pytest.raises(Error) as raised:
        call()
    assert raised.value.hresult is REMOVED, raised.value


def nothing(call: Callable[[], Any]) -> None:
    """A void method."""
    assert call() is None


def works(call: Callable[[], Any]) -> None:
    """It asks or changes only what the program itself holds."""
    call()


def works_if_strict(call: Callable[[], Any]) -> None:
    try:
        call()
    except ValueError as error:
        assert "must belong to a device of strictness strict" in str(error)


def binds_nothing(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match="buffer must be one that"):
        call()


def unsupported(call: Callable[[], Any]) -> None:
    with pytest.raises(Error) as raised:
        call()
    assert raised.value.hresult is HResult.E_NOTIMPL


def is_open(call: Callable[[], Any]) -> None:
    with pytest.raises(Error) as raised:
        call()
    assert raised.value.report.id == "LIST_OPEN"


def gives(expected: Any) -> Callable[[Callable[[], Any]], None]:
    def check(call: Callable[[], Any]) -> None:
        assert call() == expected

    return check


Row = tuple[Callable[[Callable[[], Any]], None], Callable[["World", Any], Any]]

# For every public method: what it does on a removed device, and a call of it.
OBJECT: dict[str, Row] = {
    "set_name": (works, lambda w, x: x.set_name("still here")),
    "set_private_data": (works, lambda w, x: x.set_private_data(GUID, b"data")),
    "get_private_data": (gives(b"data"), lambda w, x: x.get_private_data(GUID)),
    "set_private_data_interface": (works, lambda w, x: x.set_private_data_interface(GUID, w)),
    "register_destruction_callback": (gives(1), lambda w, x: x.register_destruction_callback(print)),
    "unregister_destruction_callback": (nothing, lambda w, x: x.unregister_destruction_callback(1)),
}
LAST: dict[str, Row] = {
    "release": (nothing, lambda w, x: x.release()),
    "close": (nothing, lambda w, x: x.close()),
}
CHILD: dict[str, Row] = {**OBJECT, "get_device": (works, lambda w, x: x.get_device()), **LAST}


def unsupported_row(name: str) -> Row:
    return unsupported, lambda w, x: getattr(x, name)()


def recorded_row(name: str) -> Row:
    return nothing, lambda w, x: getattr(x, name)(*COMMANDS[name].takes(w.objects))


NOT_EMULATED = (
    "atomic_copy_buffer_uint, atomic_copy_buffer_uint64, barrier, copy_texture_region, copy_tiles, "
    "discard_resource, draw_indexed_instanced, draw_instanced, execute_bundle, resolve_subresource, "
    "set_predication"
)


def watched(w: World, x: d3d12.Resource) -> str:
    """The picture of a buffer's memory, which is watched from here on."""
    with dmlemu.watch_memory(w.device):
        return x.map_picture().text(80)


METHODS: dict[str, dict[str, Row]] = {
    "device": {
        **OBJECT,
        "check_feature_support": (works, lambda w, x: x.check_feature_support(d3d12.Feature.D3D12_OPTIONS)),
        "copy_descriptors": (nothing, lambda w, x: x.copy_descriptors([0], None, [0], None, VIEWS)),
        "copy_descriptors_simple": (nothing, lambda w, x: x.copy_descriptors_simple(1, 0, 0, VIEWS)),
        "create_command_allocator": (removed, lambda w, x: x.create_command_allocator(COMPUTE)),
        "create_command_list": (removed, lambda w, x: x.create_command_list(0, COMPUTE, w.allocator)),
        "create_command_list1": (removed, lambda w, x: x.create_command_list1(0, COMPUTE)),
        "create_command_queue": (removed, lambda w, x: x.create_command_queue()),
        "create_command_queue1": (
            removed,
            lambda w, x: x.create_command_queue1(d3d12.CommandQueueDesc(), UUID(int=1)),
        ),
        **{
            f"create_committed_resource{n}": (
                removed,
                lambda w, x, n=n: getattr(x, f"create_committed_resource{n}")(
                    d3d12.HeapProperties(), d3d12.HeapFlags.NONE, w.desc, *([States.COMMON] if n < 3 else [])
                ),
            )
            for n in (1, 2, 3)
        },
        "create_heap1": (removed, lambda w, x: x.create_heap1(d3d12.HeapDesc(65536))),
        "create_placed_resource1": (
            removed,
            lambda w, x: x.create_placed_resource1(w.heap, 0, w.desc, States.COMMON),
        ),
        "create_placed_resource2": (removed, lambda w, x: x.create_placed_resource2(w.heap, 0, w.desc)),
        "create_reserved_resource1": (
            removed,
            lambda w, x: x.create_reserved_resource1(w.desc, States.COMMON),
        ),
        "create_reserved_resource2": (removed, lambda w, x: x.create_reserved_resource2(w.desc)),
        "enqueue_make_resident": (
            removed,
            lambda w, x: x.enqueue_make_resident(0, [w.buffer], w.fence, FOREVER),
        ),
        "get_copyable_footprints1": (works, lambda w, x: x.get_copyable_footprints1(w.desc)),
        "get_resource_allocation_info1": (works, lambda w, x: x.get_resource_allocation_info1(0, [w.desc])),
        "get_resource_allocation_info2": (works, lambda w, x: x.get_resource_allocation_info2(0, [w.desc])),
        "get_resource_allocation_info3": (works, lambda w, x: x.get_resource_allocation_info3(0, [w.desc])),
        "open_existing_heap_from_address": unsupported_row("open_existing_heap_from_address"),
        "open_existing_heap_from_address1": unsupported_row("open_existing_heap_from_address1"),
        "open_existing_heap_from_file_mapping": unsupported_row("open_existing_heap_from_file_mapping"),
        "set_background_processing_mode": (removed, lambda w, x: x.set_background_processing_mode(0, 0)),
        "set_residency_priority": (removed, lambda w, x: x.set_residency_priority([w.buffer], [1])),
        "set_stable_power_state": (removed, lambda w, x: x.set_stable_power_state(True)),
        "shader_cache_control": (removed, lambda w, x: x.shader_cache_control(1, 1)),
        "create_command_signature": (removed, lambda w, x: x.create_command_signature(None)),
        "create_committed_resource": (removed, lambda w, x: w.stage.buffer("new")),
        "create_compute_pipeline_state": (removed, lambda w, x: x.create_compute_pipeline_state(None)),
        "create_constant_buffer_view": (nothing, lambda w, x: x.create_constant_buffer_view(None, w.handle)),
        "create_descriptor_heap": (
            removed,
            lambda w, x: x.create_descriptor_heap(d3d12.DescriptorHeapDesc(VIEWS, 4)),
        ),
        "create_fence": (removed, lambda w, x: x.create_fence()),
        "create_heap": (removed, lambda w, x: x.create_heap(d3d12.HeapDesc(65536))),
        "create_placed_resource": (
            removed,
            lambda w, x: x.create_placed_resource(w.heap, 0, w.desc, States.COMMON),
        ),
        "create_query_heap": (removed, lambda w, x: x.create_query_heap(d3d12.QueryHeapDesc(count=1))),
        "create_reserved_resource": (removed, lambda w, x: x.create_reserved_resource(w.desc, States.COMMON)),
        "create_pipeline_state": (removed, lambda w, x: x.create_pipeline_state({})),
        "create_root_signature": (removed, lambda w, x: x.create_root_signature(0, b"")),
        "create_shader_resource_view": (
            nothing,
            lambda w, x: x.create_shader_resource_view(w.buffer, None, w.handle),
        ),
        "create_shared_handle": unsupported_row("create_shared_handle"),
        "create_unordered_access_view": (
            nothing,
            lambda w, x: x.create_unordered_access_view(w.buffer, None, None, w.handle),
        ),
        "try_create_unordered_access_view": (
            removed,
            lambda w, x: x.try_create_unordered_access_view(w.buffer, None, None, w.handle),
        ),
        "try_create_shader_resource_view": (
            removed,
            lambda w, x: x.try_create_shader_resource_view(None, None, w.handle),
        ),
        "try_create_constant_buffer_view": (
            removed,
            lambda w, x: x.try_create_constant_buffer_view(None, w.handle),
        ),
        "create_query_heap1": (removed, lambda w, x: x.create_query_heap1(d3d12.QueryHeapDesc(count=1))),
        "resolve_query_data": unsupported_row("resolve_query_data"),
        "register_trim_notification_callback": (
            removed,
            lambda w, x: x.register_trim_notification_callback(print),
        ),
        "unregister_trim_notification_callback": (
            nothing,
            lambda w, x: x.unregister_trim_notification_callback(w.trim_cookie),
        ),
        "get_configuration_desc": (works, lambda w, x: x.get_configuration_desc()),
        "get_resource_tiling": (works, lambda w, x: x.get_resource_tiling(w.buffer)),
        "evict": (removed, lambda w, x: x.evict([w.buffer])),
        "get_adapter_luid": (works, lambda w, x: x.get_adapter_luid()),
        "get_copyable_footprints": (works, lambda w, x: x.get_copyable_footprints(w.desc)),
        "get_custom_heap_properties": (
            works,
            lambda w, x: x.get_custom_heap_properties(0, d3d12.HeapType.DEFAULT),
        ),
        "lineage": (works_if_strict, lambda w, x: x.lineage(w.upload, 0)),
        "get_descriptor_handle_increment_size": (
            gives(32),
            lambda w, x: x.get_descriptor_handle_increment_size(VIEWS),
        ),
        "get_device_removed_reason": (gives(HUNG), lambda w, x: x.get_device_removed_reason()),
        "get_node_count": (gives(1), lambda w, x: x.get_node_count()),
        "get_resource_allocation_info": (works, lambda w, x: x.get_resource_allocation_info(0, [w.desc])),
        "make_resident": (removed, lambda w, x: x.make_resident([w.buffer])),
        "open_shared_handle": unsupported_row("open_shared_handle"),
        "remove_device": (nothing, lambda w, x: x.remove_device()),
        "report_live_device_objects": (works, lambda w, x: x.report_live_device_objects()),
        "mark": (works, lambda w, x: x.mark("after it")),
        "set_event_on_multiple_fence_completion": (
            nothing,
            lambda w, x: x.set_event_on_multiple_fence_completion([w.fence], [FOREVER]),
        ),
        **LAST,
    },
    "queue": {
        **OBJECT,
        "begin_event": (nothing, lambda w, x: x.begin_event(1, "region")),
        "copy_tile_mappings": unsupported_row("copy_tile_mappings"),
        "end_event": (nothing, lambda w, x: x.end_event()),
        "execute_command_lists": (nothing, lambda w, x: x.execute_command_lists([w.closed_list])),
        "get_clock_calibration": (works, lambda w, x: x.get_clock_calibration()),
        "get_desc": (works, lambda w, x: x.get_desc()),
        "get_timestamp_frequency": (works, lambda w, x: x.get_timestamp_frequency()),
        "set_marker": (nothing, lambda w, x: x.set_marker(1, "here")),
        "signal": (removed, lambda w, x: x.signal(w.fence, 1)),
        "update_tile_mappings": (nothing, lambda w, x: x.update_tile_mappings(w.reserved, heap=w.heap)),
        "wait": (removed, lambda w, x: x.wait(w.fence, 1)),
        **CHILD,
    },
    "list": {
        **OBJECT,
        **{name: recorded_row(name) for name in COMMANDS},
        "begin_query": (nothing, lambda w, x: x.begin_query(w.queries, d3d12.QueryType.TIMESTAMP, 0)),
        "disassemble": (is_open, lambda w, x: x.disassemble()),
        "get_type": (gives(COMPUTE), lambda w, x: x.get_type()),
        **{name: unsupported_row(name) for name in NOT_EMULATED.split(", ")},
        "reset": (removed, lambda w, x: x.reset(w.allocator)),
        **{name: row for name, row in CHILD.items() if name not in LAST},
        "close": (removed, lambda w, x: x.close()),
        "release": LAST["release"],
    },
    "allocator": {"reset": (removed, lambda w, x: x.reset()), **CHILD},
    "fence": {
        **OBJECT,
        "get_completed_value": (gives(FOREVER), lambda w, x: x.get_completed_value()),
        "get_creation_flags": (works, lambda w, x: x.get_creation_flags()),
        "set_event_on_completion": (nothing, lambda w, x: x.set_event_on_completion(FOREVER)),
        "signal": (removed, lambda w, x: x.signal(3)),
        "wait": (gives(True), lambda w, x: x.wait(FOREVER)),
        **CHILD,
    },
    "heap": {"get_desc": (works, lambda w, x: x.get_desc()), **CHILD},
    "mapped": {"view": (works, lambda w, x: x.view(np.float32))},
    "upload": {
        **OBJECT,
        "get_desc": (works, lambda w, x: x.get_desc()),
        "get_desc1": (works, lambda w, x: x.get_desc1()),
        "get_gpu_virtual_address": (works, lambda w, x: x.get_gpu_virtual_address()),
        "expect": (works, lambda w, x: x.expect(0, tensor([4]), "name")),
        "get_heap_properties": (works, lambda w, x: x.get_heap_properties()),
        "map": (removed, lambda w, x: x.map()),
        "map_picture": (works, lambda w, x: watched(w, x)),
        "unmap": (nothing, lambda w, x: x.unmap()),
        "read_from_subresource": unsupported_row("read_from_subresource"),
        "write_to_subresource": unsupported_row("write_to_subresource"),
        **CHILD,
    },
    "views": {
        "get_desc": (works, lambda w, x: x.get_desc()),
        "get_cpu_descriptor_handle_for_heap_start": (
            works,
            lambda w, x: x.get_cpu_descriptor_handle_for_heap_start(),
        ),
        "get_gpu_descriptor_handle_for_heap_start": (
            works,
            lambda w, x: x.get_gpu_descriptor_handle_for_heap_start(),
        ),
        **CHILD,
    },
    "queries": CHILD,
    "adapter": {
        "is_feature_level_supported": (
            gives(True),
            lambda w, x: x.is_feature_level_supported(d3d12.FeatureLevel.LEVEL_11_0),
        ),
        "is_valid": (gives(True), lambda w, x: x.is_valid()),
        "query_memory_budget": (works, lambda w, x: x.query_memory_budget()),
        "register_video_memory_budget_change_notification_event": (
            gives(1),
            lambda w, x: x.register_video_memory_budget_change_notification_event(threading.Event()),
        ),
        "unregister_video_memory_budget_change_notification": (
            nothing,
            lambda w, x: x.unregister_video_memory_budget_change_notification(1),
        ),
    },
    "dml": {
        **OBJECT,
        "check_feature_support": (
            removed,
            lambda w, x: x.check_feature_support(
                dml.Feature.TENSOR_DATA_TYPE_SUPPORT,
                dml.FeatureQueryTensorDataTypeSupport(dml.TensorDataType.FLOAT32),
            ),
        ),
        "compile_graph": (removed, lambda w, x: x.compile_graph(dml.GraphDesc(0, 0, ()))),
        "compile_operator": (removed, lambda w, x: x.compile_operator(w.operator)),
        "create_binding_table": (removed, lambda w, x: x.create_binding_table()),
        "create_command_recorder": (removed, lambda w, x: x.create_command_recorder()),
        "create_operator": (removed, lambda w, x: x.create_operator(w.operator.desc)),
        "create_operator_initializer": (removed, lambda w, x: x.create_operator_initializer()),
        "evict": (removed, lambda w, x: x.evict([w.compiled])),
        "get_device_removed_reason": (gives(HUNG), lambda w, x: x.get_device_removed_reason()),
        "get_parent_device": (works, lambda w, x: x.get_parent_device()),
        "make_resident": (removed, lambda w, x: x.make_resident([w.compiled])),
        **LAST,
    },
    "operator": CHILD,
    "compiled": {
        "get_binding_properties": (gives(dml.BindingProperties()), lambda w, x: x.get_binding_properties()),
        **CHILD,
    },
    "initializer": {
        "get_binding_properties": (gives(dml.BindingProperties()), lambda w, x: x.get_binding_properties()),
        "reset": (removed, lambda w, x: x.reset()),
        **CHILD,
    },
    "table": {
        "bind_inputs": (nothing, lambda w, x: x.bind_inputs([])),
        "bind_outputs": (nothing, lambda w, x: x.bind_outputs([])),
        "bind_persistent_resource": (nothing, lambda w, x: x.bind_persistent_resource()),
        "bind_temporary_resource": (nothing, lambda w, x: x.bind_temporary_resource()),
        "layout": (binds_nothing, lambda w, x: x.layout(w.buffer)),
        "reset": (removed, lambda w, x: x.reset()),
        **CHILD,
    },
    "recorder": {
        "record_dispatch": (nothing, lambda w, x: x.record_dispatch(w.list, w.compiled, w.table)),
        **CHILD,
    },
}


class World:
    """One of everything, on a device that a fault has removed; the attributes are the keys of METHODS."""

    def __init__(self, strictness: Strictness) -> None:
        stage = self.stage = Stage(strictness)
        self.device, self.dml, self.queue, self.fence = stage.device, stage.dml, stage.queue, stage.fence
        self.list, self.allocator, self.views = stage.list, stage.allocator, stage.heap
        self.adapter, self.recorder = stage.device.context.adapter, stage.recorder
        self.handle = self.views.get_cpu_descriptor_handle_for_heap_start()
        self.trim_cookie = self.device.register_trim_notification_callback(print)
        self.desc = d3d12.ResourceDesc.buffer(65536)
        self.buffer, self.upload = stage.buffer("buffer"), stage.host_buffer("upload")
        self.mapped = self.upload.map()
        self.heap = self.device.create_heap(d3d12.HeapDesc(1 << 17))
        self.reserved = self.device.create_reserved_resource(self.desc, States.COMMON)
        self.queries = self.device.create_query_heap(d3d12.QueryHeapDesc(count=4))
        self.objects = Objects(self.device)
        layout = tensor([16])
        desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
        self.operator = self.dml.create_operator(desc)
        self.compiled = self.dml.compile_operator(self.operator)
        self.initializer = self.dml.create_operator_initializer([self.compiled])
        self.table = stage.table(self.compiled)
        allocator = self.device.create_command_allocator(COMPUTE)
        self.closed_list = self.device.create_command_list(0, COMPUTE, allocator)
        self.closed_list.set_marker(1, "work")
        self.closed_list.close()
        with faults.removal(self.device) as fault:
            self.queue.execute_command_lists([self.closed_list])
            self.queue.signal(self.fence, 1)
            try:
                self.fence.wait(1)
            except Error:
                assert strictness is not Strictness.RUNTIME
        assert fault.happened


def public_methods(thing: Any) -> set[str]:
    return {
        name for name in dir(type(thing)) if not name.startswith("_") and callable(getattr(type(thing), name))
    }


@pytest.fixture(params=[Strictness.STRICT, Strictness.DEBUG, Strictness.RUNTIME], ids=lambda each: each.value)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    yield World(request.param)


@pytest.mark.parametrize("name", METHODS)
def test_RM2_every_method_after_removal(world: World, name: str) -> None:
    """1.20: creation, Map, Signal, Close, Reset fail; void methods do nothing; the rest still answers."""
    thing = getattr(world, name)
    assert set(METHODS[name]) == public_methods(thing) - INTERNAL
    for check, call in METHODS[name].values():
        check(lambda call=call: call(world, thing))  # type: ignore[misc]
    assert world.device.get_device_removed_reason() is HUNG
    assert world.device.removal_record is not None


def test_RM2_mapped_memory_stays_until_unmap(world: World) -> None:
    world.mapped[:4] = b"abcd"
    assert bytes(world.mapped[:4]) == b"abcd"
    world.upload.unmap()
    with pytest.raises(Error):
        world.mapped[:4]


def test_RM2_everything_is_given_back_in_the_end(world: World) -> None:
    adapter = world.adapter
    for thing in (*world.device.report_live_device_objects(), world.dml, world.device):
        thing.release()
    assert adapter.query_memory_budget().current_usage == 0
    device = d3d12.create_device(adapter)  # a new one works
    assert device.get_device_removed_reason() == 0


def test_RM2_evaluate_says_why(world: World) -> None:
    layout = tensor([4])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
    with pytest.raises(Error) as raised:
        dmlemu.evaluate(desc, device=world.dml, input_tensor=np.ones(4, np.float32))
    assert raised.value.hresult is REMOVED


def test_evaluate_survives_faults() -> None:
    """A private device that is gone is replaced; memory that ran out is no reason to start anew."""
    layout = tensor([4])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
    device = dml.create_device(d3d12.create_device(d3d12.Adapter(dedicated_memory=1 << 24)))
    ones = np.ones(4, np.float32)
    for n in itertools.count(1):
        with faults.out_of_memory(device, at=n) as fault:
            try:
                dmlemu.evaluate(desc, device=device, input_tensor=ones)
            except Error as error:
                assert error.hresult is HResult.E_OUTOFMEMORY
        if not fault.happened:
            break
        (result,) = dmlemu.evaluate(desc, device=device, input_tensor=ones).values()
        assert np.array_equal(result, ones)
