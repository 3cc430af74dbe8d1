"""Allocators, lists and queues: rules CL1 to CL13, Q1 to Q5."""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Callable
from functools import reduce
from operator import or_

import numpy as np
import pytest

from dmlemu import Error, HResult, Strictness
from dmlemu.d3d12 import (
    BufferUav,
    CommandList,
    CommandListFlags,
    CommandListType,
    CommandQueueDesc,
    CommandQueueFlags,
    CommandQueuePriority,
    Format,
    HeapDesc,
    HeapType,
    QueryType,
    Resource,
    ResourceBarrier,
    ResourceDesc,
    UnorderedAccessViewDesc,
)
from dmlemu_hw.packets import MarkerPacket, decode
from list_commands import COMMANDS, Objects, Row

from .stage import BUNDLE, COMPUTE, COPY, DIRECT, INVALID, INVALID_CALL, STATE, Stage, fails, remarks

E_FAIL = HResult.E_FAIL
TYPES = [DIRECT, BUNDLE, COMPUTE, COPY]


def test_a_list_that_is_submitted_alone_takes_few_calls() -> None:
    """Of Python functions, from ExecuteCommandLists to the fence: it takes little else."""
    stage, calls = Stage(Strictness.RUNTIME), 0
    commands, _ = stage.record()
    commands.resource_barrier([ResourceBarrier.uav(None)])
    stage.run(commands)

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        stage.run(commands)
    finally:
        sys.setprofile(None)
    assert calls < 140


@pytest.mark.parametrize("type", [-1, 99])
def test_CL1_allocator_types(stage: Stage, type: CommandListType) -> None:
    with fails("CL1"):
        stage.device.create_command_allocator(type)


def test_CL1_video_is_not_emulated(stage: Stage) -> None:
    with pytest.raises(Error, match="VIDEO_DECODE is not emulated"):
        stage.device.create_command_allocator(CommandListType.VIDEO_DECODE)


@pytest.mark.parametrize("type", TYPES)
def test_CL2_lists_are_created_open(stage: Stage, type: CommandListType) -> None:
    commands, _ = stage.record(type)

    assert commands.get_type() == type
    commands.close()


def test_CL2_allocator(stage: Stage) -> None:
    device, allocator = stage.device, stage.device.create_command_allocator(DIRECT)

    with fails("CL2", INVALID, 1313):
        device.create_command_list(0, DIRECT, None)  # type: ignore[arg-type]
    with fails("CL2", INVALID, 549):
        device.create_command_list(0, COMPUTE, allocator)
    with fails("CL2", INVALID, 1155):
        device.create_command_list(0, 99, allocator)  # type: ignore[arg-type]
    with fails("HP7"):
        device.create_command_list(2, DIRECT, allocator)
    with fails("OB3"):
        device.create_command_list(0, DIRECT, Stage().device.create_command_allocator(DIRECT))
    device.create_command_list(1, DIRECT, allocator)


def test_CL2_the_initial_state_is_a_pipeline_state_of_the_device(stage: Stage) -> None:
    allocator = stage.device.create_command_allocator(DIRECT)

    for wrong in (object(), Objects(Stage().device).pipeline):
        with fails("OB3"):
            stage.device.create_command_list(0, DIRECT, allocator, wrong)  # type: ignore[arg-type]
    commands = stage.device.create_command_list(0, DIRECT, allocator)
    commands.close()
    with fails("OB3"):
        commands.reset(allocator, object())  # type: ignore[arg-type]
    commands.reset(allocator)


def test_CL3_create_command_list1_is_closed(stage: Stage) -> None:
    commands = stage.device.create_command_list1(0, DIRECT)

    with fails("CL5", E_FAIL, 547):
        commands.close()
    with fails("Q2", INVALID_CALL, 1131):
        stage.queue.execute_command_lists([commands])
    commands.reset(stage.device.create_command_allocator(DIRECT))
    stage.run(commands)


def test_CL3_arguments(stage: Stage) -> None:
    with fails("CL3", INVALID, 1155):
        stage.device.create_command_list1(0, 99)  # type: ignore[arg-type]
    with fails("CL3"):
        stage.device.create_command_list1(0, DIRECT, CommandListFlags(1))


def test_CL4_one_open_list_per_allocator(stage: Stage) -> None:
    first, allocator = stage.record()

    with fails("CL4", INVALID, 540):
        stage.device.create_command_list(0, DIRECT, allocator)
    second = stage.device.create_command_list1(0, DIRECT)
    with fails("CL4", INVALID, 540):
        second.reset(allocator)
    first.close()
    second.reset(allocator)


def test_CL4_releasing_a_list_frees_its_allocator(stage: Stage) -> None:
    first, allocator = stage.record()
    first.release()

    stage.device.create_command_list(0, DIRECT, allocator)


def test_CL5_close_twice(stage: Stage) -> None:
    commands, _ = stage.record()
    commands.close()

    with fails("CL5", E_FAIL, 547):
        commands.close()
    stage.run(commands)


def test_CL6_reset_of_an_open_list(stage: Stage) -> None:
    commands, _ = stage.record()

    with fails("CL6", E_FAIL, 544):
        commands.reset(stage.device.create_command_allocator(DIRECT))
    commands.close()


def test_CL6_reset_right_after_execute(stage: Stage) -> None:
    targets = [stage.buffer() for _ in range(3)]
    commands, _ = stage.record()
    for i, target in enumerate(targets):
        commands.copy_resource(target, stage.upload(np.full(256, i + 1, np.uint8)))
        stage.submit(commands)
        commands.reset(stage.device.create_command_allocator(DIRECT))
    commands.close()
    stage.finish()

    assert [stage.read(each)[0] for each in targets] == [1, 2, 3]


def test_CL7_allocator_reset_while_a_list_records(stage: Stage) -> None:
    commands, allocator = stage.record()

    with fails("CL7", E_FAIL, 543):
        allocator.reset()
    commands.close()
    allocator.reset()


def test_CL7_allocator_reset_in_flight(stage: Stage) -> None:
    commands, allocator = stage.record()
    commands.copy_resource(stage.buffer(), stage.buffer())
    stage.submit(commands)

    with fails("CL7", E_FAIL, 552):
        allocator.reset()
    stage.finish()
    allocator.reset()


@pytest.mark.layer("ALLOC_RESET_IN_FLIGHT")
def test_CL7_at_runtime_an_allocator_resets_any_time(runtime: Stage) -> None:
    stage = runtime
    commands, allocator = stage.record()
    stage.submit(commands)
    allocator.reset()


def test_CL8_several_recordings_without_allocator_reset(stage: Stage) -> None:
    commands, allocator = stage.record()
    buffer = stage.buffer()
    for value in (1, 2):
        commands.copy_resource(buffer, stage.upload(np.full(256, value, np.uint8)))
        stage.run(commands)
        assert stage.read(buffer)[0] == value
        commands.reset(allocator)


@pytest.mark.dmlemu(expect=["OBJECT_DELETED_IN_USE"])
def test_CL9_a_released_resource_faults_when_executed(stage: Stage) -> None:
    buffer, source = stage.buffer(), stage.buffer()
    source.set_name("weights")
    commands, _ = stage.record()
    commands.copy_resource(buffer, source)
    stage.submit(commands)
    with fails("CL9", INVALID_CALL, 921):
        source.close()

    with pytest.raises(Error) as caught:
        stage.finish()
    assert caught.value.hresult is HResult.DXGI_ERROR_DEVICE_HUNG
    assert caught.value.report.id == "OBJECT_DELETED_IN_USE" and caught.value.report.d3d12_id == 921
    assert "'weights'" in str(caught.value)


@pytest.mark.parametrize("strictness", list(Strictness))
def test_CL9_a_list_that_needs_a_released_resource_is_not_executed(strictness: Strictness) -> None:
    stage = Stage(strictness)
    buffer, source = stage.buffer(), stage.buffer()
    commands, _ = stage.record()
    commands.copy_resource(buffer, source)
    commands.close()
    source.close()

    if strictness is Strictness.RUNTIME:  # not checked: the GPU faults
        stage.queue.execute_command_lists([commands])
        stage.finish()
        assert stage.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG
        return
    with fails("CL9", INVALID_CALL, 921):
        stage.queue.execute_command_lists([commands])
    assert stage.read(buffer)[0] == 0


def test_CL9_garbage_collection_of_a_queue_frees_nothing_under_its_work(stage: Stage) -> None:
    def hand_over() -> Resource:
        queue = stage.device.create_command_queue()
        target = stage.buffer(heap=HeapType.READBACK)
        commands, _ = stage.record()
        commands.copy_resource(target, stage.upload(np.full(256, 5, np.uint8)))
        commands.close()
        queue.execute_command_lists([commands])
        queue.signal(stage.fence, 1)
        return target

    target = hand_over()  # queue, list, allocator and source are released
    gc.collect()
    stage.fence.wait(1)
    assert target.map().view()[0] == 5


def test_CL9_garbage_collection_of_a_heap_leaves_a_queued_mapping_alone(stage: Stage) -> None:
    def hand_over() -> Resource:
        buffer = stage.device.create_reserved_resource(ResourceDesc.buffer(65536), STATE.COMMON)
        heap = stage.device.create_heap(HeapDesc(65536))
        stage.queue.update_tile_mappings(buffer, None, None, heap)
        return buffer

    buffer = hand_over()
    gc.collect()
    stage.run(stage.record()[0])
    assert stage.read(buffer)[0] == 0


def test_CL9_a_released_resource_cannot_be_recorded(stage: Stage) -> None:
    buffer, source = stage.buffer(), stage.buffer()
    source.close()
    commands, _ = stage.record()

    with fails("CL9", INVALID, 921):
        commands.copy_resource(buffer, source)


def test_CL9_garbage_collection_frees_nothing_under_recorded_work(stage: Stage) -> None:
    buffer = stage.buffer()
    commands, _ = stage.record()
    commands.copy_resource(buffer, stage.upload(np.full(256, 5, np.uint8)))  # no other reference
    stage.run(commands)

    assert stage.read(buffer)[0] == 5


@pytest.mark.parametrize("operation", COMMANDS)
@pytest.mark.parametrize("strictness", list(Strictness))
def test_CL11_calls_on_a_closed_list(operation: str, strictness: Strictness) -> None:
    stage = Stage(strictness)
    commands, _ = stage.record()
    commands.close()
    arguments = COMMANDS[operation].takes(Objects(stage.device))

    if strictness is Strictness.RUNTIME:
        getattr(commands, operation)(*arguments)
    else:
        with fails("CL11", E_FAIL, 547):
            getattr(commands, operation)(*arguments)
    stage.run(commands)


@pytest.mark.parametrize("strictness", [Strictness.DEBUG, Strictness.STRICT])
def test_CL11_wrong_calls_raise_and_are_not_recorded(strictness: Strictness) -> None:
    stage = Stage(strictness)
    commands, _ = stage.record()
    buffer = stage.buffer()
    commands.copy_resource(buffer, stage.upload(np.full(256, 5, np.uint8)))
    with fails("CM1", INVALID, 841):
        commands.copy_buffer_region(buffer, 250, stage.buffer(), 0, 10)
    stage.run(commands)

    assert stage.read(buffer)[255] == 5


@pytest.mark.layer("COPY_RANGE")
def test_CL11_wrong_calls_make_a_runtime_close_fail(runtime: Stage) -> None:
    stage = runtime
    commands, allocator = stage.record()
    commands.copy_buffer_region(stage.buffer(), 250, stage.buffer(), 0, 10)
    commands.copy_resource(stage.buffer(8), stage.buffer(4))

    with fails("CM1", INVALID, 841):  # the first of the two errors
        commands.close()
    allocator.reset()
    commands.reset(allocator)
    stage.run(commands)
    assert stage.device.get_device_removed_reason() is HResult.S_OK


def test_CL12_heaps_are_forgotten_by_reset_and_clear_state(stage: Stage) -> None:
    buffer, host, heap = stage.buffer(64), stage.heap(), stage.heap(visible=True)
    cpu = host.get_cpu_descriptor_handle_for_heap_start()
    gpu = heap.get_gpu_descriptor_handle_for_heap_start()
    view = UnorderedAccessViewDesc(Format.R32_UINT, buffer=BufferUav(0, 16))
    for start in (cpu, heap.get_cpu_descriptor_handle_for_heap_start()):
        stage.device.create_unordered_access_view(buffer, None, view, start)
    commands, allocator = stage.record()

    def clear() -> None:
        commands.clear_unordered_access_view_uint(gpu, cpu, buffer, (7, 0, 0, 0))

    def clear_is_refused_without_heap() -> None:
        with fails("CM4"):
            clear()
        commands.set_descriptor_heaps([heap])
        clear()

    clear_is_refused_without_heap()
    commands.clear_state()
    clear_is_refused_without_heap()
    commands.close()
    commands.reset(allocator)
    clear_is_refused_without_heap()
    stage.run(commands)
    assert stage.read(buffer).view(np.uint32).tolist() == [7] * 16


ALLOWED = {
    **COMMANDS,
    "begin_query": Row({DIRECT}, lambda w: [None, QueryType.TIMESTAMP, 0]),  # which no list can record
}


@pytest.mark.dmlemu(expect=["*"])  # other rules may object
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("operation", ALLOWED)
def test_CL13_which_list_type_records_what(stage: Stage, operation: str, type: CommandListType) -> None:
    allowed, takes = ALLOWED[operation]
    arguments = takes(Objects(stage.device))
    commands, _ = stage.record(type)
    if type in allowed:
        try:
            getattr(commands, operation)(*arguments)
        except Error as error:
            assert not error.report.rule.startswith("CL13")
    else:
        with fails("CL13", INVALID, 537):
            getattr(commands, operation)(*arguments)
    commands.close()


@pytest.mark.parametrize(
    "method",
    ["draw_instanced", "set_predication", "discard_resource", "barrier"],
)
def test_CL_unsupported_methods_say_so(stage: Stage, method: str) -> None:
    commands, _ = stage.record()

    with pytest.raises(Error, match="is not emulated") as caught:
        getattr(commands, method)(1, 1, 1)
    assert caught.value.hresult is HResult.E_NOTIMPL


# --- queues ---


@pytest.mark.parametrize(
    "desc, message_id",
    [
        (CommandQueueDesc(BUNDLE), 909),
        (CommandQueueDesc(CommandListType.NONE), 909),
        (CommandQueueDesc(99), 909),  # type: ignore[arg-type]
        (CommandQueueDesc(flags=CommandQueueFlags(8)), 910),
        (CommandQueueDesc(priority=7), 920),
        (CommandQueueDesc(node_mask=2), None),
    ],
)
def test_Q1_description(stage: Stage, desc: CommandQueueDesc, message_id: int | None) -> None:
    with fails("Q1", INVALID, message_id):
        stage.device.create_command_queue(desc)


def test_a_queue_for_video_is_not_emulated(stage: Stage) -> None:
    with pytest.raises(Error, match="A queue of type VIDEO_DECODE is not emulated") as raised:
        stage.device.create_command_queue(CommandQueueDesc(CommandListType.VIDEO_DECODE))
    assert raised.value.hresult is HResult.E_NOTIMPL


def test_Q1_node_mask_reads_1(stage: Stage) -> None:
    desc = CommandQueueDesc(COMPUTE, CommandQueuePriority.HIGH, CommandQueueFlags.DISABLE_GPU_TIMEOUT)
    told = stage.device.create_command_queue(desc).get_desc()

    assert told == CommandQueueDesc(COMPUTE, 100, CommandQueueFlags.DISABLE_GPU_TIMEOUT, 1)


def bundle(stage: Stage) -> CommandList:
    commands, _ = stage.record(BUNDLE)
    commands.close()
    return commands


def other_type(stage: Stage) -> CommandList:
    commands, _ = stage.record(COMPUTE)
    commands.close()
    return commands


def open_list(stage: Stage) -> CommandList:
    return stage.record()[0]


def without_commands(stage: Stage) -> CommandList:
    commands, allocator = stage.record()
    commands.close()
    allocator.reset()
    return commands


def never_recorded(stage: Stage) -> CommandList:
    return stage.device.create_command_list1(0, DIRECT)


WRONG_LISTS = [
    (bundle, 835),
    (other_type, 836),
    (open_list, 837),
    (without_commands, 541),
    (never_recorded, 1131),
]


@pytest.mark.parametrize("make, message_id", WRONG_LISTS)
@pytest.mark.parametrize("strictness", list(Strictness))
def test_Q2_wrong_lists(
    make: Callable[[Stage], CommandList], message_id: int, strictness: Strictness
) -> None:
    stage = Stage(strictness)
    good, _ = stage.record()
    buffer = stage.buffer()
    good.copy_resource(buffer, stage.upload(np.full(256, 1, np.uint8)))
    good.close()
    lists = [good, make(stage)]

    if strictness is Strictness.RUNTIME:
        stage.queue.execute_command_lists(lists)
        assert stage.device.get_device_removed_reason() is INVALID_CALL
        return
    with fails("Q2", INVALID_CALL, message_id):
        stage.queue.execute_command_lists(lists)
    assert stage.device.get_device_removed_reason() is HResult.S_OK
    assert stage.read(buffer)[0] == 0  # the whole call was dropped
    stage.run(good)


@pytest.mark.layer("COPY_NULL", "LIST_CLOSED")
def test_Q2_failed_list(runtime: Stage) -> None:
    stage = runtime
    commands, _ = stage.record()
    commands.copy_resource(stage.buffer(), None)  # type: ignore[arg-type]
    with fails("CM2", INVALID, 945):
        commands.close()
    stage.queue.execute_command_lists([commands])

    assert stage.device.get_device_removed_reason() is INVALID_CALL
    record = stage.device.removal_record
    assert record is not None and record.report.d3d12_id == 838


def test_Q2_no_list(stage: Stage) -> None:
    with fails("Q2", INVALID_CALL):
        stage.queue.execute_command_lists([None])  # type: ignore[list-item]
    with fails("OB3"):
        foreign = Stage()
        stage.queue.execute_command_lists([without_commands(foreign)])


def test_Q2_no_lists_at_all(stage: Stage) -> None:
    stage.queue.execute_command_lists([])

    assert remarks(stage) == [1131]


def test_Q3_lists_run_in_array_order(stage: Stage) -> None:
    buffer = stage.buffer()
    lists = []
    for value in (1, 2):
        commands, _ = stage.record()
        commands.copy_resource(buffer, stage.upload(np.full(256, value, np.uint8)))
        commands.resource_barrier(ResourceBarrier.transition(buffer, STATE.COPY_DEST, STATE.COMMON))
        lists.append(commands)
    stage.run(*lists)

    assert stage.read(buffer)[0] == 2


@pytest.mark.parametrize("strictness", list(Strictness))
def test_Q3_a_pending_list_is_not_submitted_again(strictness: Strictness) -> None:
    stage = Stage(strictness)
    commands, _ = stage.record()
    stage.submit(commands)

    if strictness is Strictness.RUNTIME:
        stage.submit(commands)
        assert stage.device.get_device_removed_reason() is INVALID_CALL
        return
    with fails("Q3", INVALID_CALL, 553):
        stage.submit(commands)
    stage.finish()
    stage.run(commands)


def test_Q3_not_twice_in_one_call(stage: Stage) -> None:
    commands, _ = stage.record()
    commands.close()

    with fails("Q3", INVALID_CALL, 553):
        stage.queue.execute_command_lists([commands, commands])
    stage.run(commands)


def test_Q4_queue_order(stage: Stage) -> None:
    """The copy comes after a wait that the host ends, and the signal after the copy."""
    gate, done = stage.device.create_fence(), stage.device.create_fence()
    buffer, source = stage.buffer(heap=HeapType.READBACK), stage.buffer(heap=HeapType.UPLOAD)
    commands, _ = stage.record()
    commands.copy_resource(buffer, source)
    commands.close()
    source.map()[0] = 9
    stage.queue.wait(gate, 1)
    stage.queue.execute_command_lists([commands])
    stage.queue.signal(done, 1)
    stage.device.context.gpu.drain()
    assert done.get_completed_value() == 0
    assert buffer.allocation.buffer()[0] == 0

    gate.signal(1)
    done.wait(1)
    assert buffer.map()[0] == 9


@pytest.mark.parametrize("metadata, text", [(0, "läuft".encode("utf-16-le") + b"\0\0"), (1, b"l\xe4uft\0")])
def test_Q5_markers(stage: Stage, metadata: int, text: bytes) -> None:
    commands, _ = stage.record()
    commands.begin_event(metadata, "läuft")
    commands.set_marker(2, b"any bytes")
    commands.end_event()
    for where in (commands, stage.queue):
        where.set_marker(7, b"")
        where.begin_event(0, "")
        where.end_event()
    packets = [each for each in decode(commands.writer.bytes()) if isinstance(each, MarkerPacket)]
    stage.run(commands)

    assert (packets[0].metadata, packets[0].data) == (metadata, text)
    assert (packets[1].metadata, packets[1].data, packets[2].kind) == (2, b"any bytes", 2)


def test_CL9_released_objects_are_not_usable(stage: Stage) -> None:
    commands, allocator = stage.record()
    queue, fence, upload = stage.queue, stage.device.create_fence(), stage.buffer(heap=HeapType.UPLOAD)
    for thing in (commands, allocator, queue, fence, upload):
        thing.release()

    for call in (
        lambda: commands.close(),
        lambda: commands.reset(allocator),
        lambda: commands.set_marker(0, ""),
        lambda: allocator.reset(),
        lambda: queue.execute_command_lists([]),
        lambda: queue.signal(fence, 1),
        lambda: queue.update_tile_mappings(upload),
        lambda: fence.signal(1),
        lambda: fence.wait(1),
        lambda: upload.map(),
    ):
        with fails("CL9", INVALID, 921):
            call()


def test_Q4_queues_and_lists_from_several_threads(stage: Stage) -> None:
    """Each thread records its own lists; all submit to one queue and wait."""
    sums: list[int] = []

    def work(value: int) -> None:
        source, target = stage.buffer(heap=HeapType.UPLOAD), stage.buffer(heap=HeapType.READBACK)
        source.map().view()[:] = value
        fence = stage.device.create_fence()
        for turn in range(1, 20):
            commands, _ = stage.record()
            commands.copy_resource(target, source)
            commands.close()
            stage.queue.execute_command_lists([commands])
            stage.queue.signal(fence, turn)
            fence.wait(turn)
        sums.append(int(target.map().view().sum()) // 256)

    threads = [threading.Thread(target=work, args=(value,)) for value in (1, 2, 3, 4)]
    stage.queue_of(DIRECT)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(sums) == [1, 2, 3, 4]


# --- what packets declare ---


@pytest.mark.parametrize("operation", COMMANDS)
def test_the_states_that_a_command_asks_for_are_those_of_its_opcode(stage: Stage, operation: str) -> None:
    objects, (commands, _) = Objects(stage.device), stage.record()
    objects.prepare(commands)

    getattr(commands, operation)(*COMMANDS[operation].takes(objects))

    assert commands.recording is not None
    declared = [each.opcode.effects for each in commands.recording.commands if each.opcode is not None]
    states = reduce(or_, [each.reads | each.writes for each in declared], 0)
    assert states == reduce(or_, [track.uses for track in commands.recording.tracks.values()], 0)


# --- packets as text ---


def test_a_closed_list_can_be_disassembled(stage: Stage) -> None:
    a, b = stage.buffer(64), stage.filled(np.arange(16, dtype=np.float32))
    commands, _ = stage.record()
    commands.copy_buffer_region(a, 16, b, 32, 8)
    commands.resource_barrier([ResourceBarrier.uav(a), ResourceBarrier.uav(None)])
    commands.close()
    source, target = b.get_gpu_virtual_address() + 32, a.get_gpu_virtual_address() + 16
    lines = commands.disassemble().splitlines()
    assert [re.sub(r" \(test_lists.py:\d+\)$", "", line) for line in lines] == [
        "CopyBufferRegion",
        f"   0 0x000000 COPY_BUFFER {target:#x} <- {source:#x} 8 bytes",
        "ResourceBarrier",
        f"   1 0x000020 BARRIER uav {a.get_gpu_virtual_address():#x}",
        "ResourceBarrier",
        "   2 0x000048 BARRIER uav any",
    ]
    assert all(re.search(r"\(test_lists.py:\d+\)$", line) for line in lines[::2])
    stage.run(commands)
    assert commands.disassemble().splitlines() == lines


def test_only_a_closed_list_can_be_disassembled(stage: Stage) -> None:
    commands, _ = stage.record()
    with fails("CL6", E_FAIL):
        commands.disassemble()
    commands.close()
    assert commands.disassemble() == ""
    assert stage.device.create_command_list1(0, DIRECT, CommandListFlags.NONE).disassemble() == ""
    commands.release()
    with fails("CL9"):
        commands.disassemble()
