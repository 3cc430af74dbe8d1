"""Group e where the gallery stops: what the program can know, what must stay silent, and what is named."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dmlemu import Error, Strictness, d3d12, dml
from dmlemu.errors import HResult
from dmlemu.testing.stage import UAV, Stage, States, identity, other_queue

# Tests that must stay silent say so themselves.
pytestmark = pytest.mark.dmlemu(
    expect=["OBJECT_*", "ALLOC_*", "LIST_EXECUTED_*", "QUEUE_EMPTY_*", "FENCE_BACK*"]
)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def said(stage: Stage) -> list[str]:
    """Ids of all that was reported."""
    return [each.report.id for each in stage.device.reports]


def caught(call: Callable[[], object]) -> Any:
    """The report that the call raises."""
    with pytest.raises(Error) as error:
        call()
    return error.value.report


def copying(stage: Stage, target: Any = None) -> Any:
    """A buffer that the submitted list reads."""
    source = stage.filled("source")
    stage.list.copy_resource(target or stage.buffer("target"), source)
    stage.submit()
    return source


# --- what the program knows ---


def wait(stage: Stage) -> None:
    stage.fence.wait(stage.fence_value)


def poll(stage: Stage) -> None:
    while stage.fence.get_completed_value() < stage.fence_value:
        pass


def event(stage: Stage) -> None:
    reached = threading.Event()
    stage.fence.set_event_on_completion(stage.fence_value, reached)
    assert reached.wait(10)


def several(stage: Stage) -> None:
    other = stage.device.create_fence(1)
    stage.device.set_event_on_multiple_fence_completion([other, stage.fence], [1, stage.fence_value])


def by_another_queue(stage: Stage) -> None:
    """The copy queue waits for this one, and the host for the copy queue."""
    copies = other_queue(stage, "COPY")
    copies.queue.wait(stage.fence, stage.fence_value)
    copies.queue.signal(copies.fence, 1)
    copies.fence.wait(1)


def a_later_list(stage: Stage) -> None:
    """What is done later in the same queue tells of what was before."""
    wait_value = stage.fence_value + 1
    stage.queue.signal(stage.fence, wait_value)
    stage.fence.wait(wait_value)


@pytest.mark.parametrize("knows", [wait, poll, event, several, by_another_queue, a_later_list])
def test_every_way_to_know_is_known(stage: Stage, knows: Callable[[Stage], None]) -> None:
    source = copying(stage)
    knows(stage)
    source.release()
    stage.allocator.reset()
    stage.queue.execute_command_lists([])

    assert said(stage) == ["QUEUE_EMPTY_SUBMIT"]


def test_a_value_signalled_before_the_list_tells_nothing(stage: Stage) -> None:
    early = stage.device.create_fence()
    stage.queue.signal(early, 1)
    source = copying(stage)
    early.wait(1)

    report = caught(source.release)
    assert "before the GPU has finished CopyResource (command 1)" in report.message
    assert (
        report.hint
        == "Wait first until fence 'done' reaches 2, which command queue 'compute' signals after it."
    )
    assert report.properties["fence_value"] == "2" and report.properties["queue"] == "command queue 'compute'"


def test_having_waited_for_another_queue_tells_nothing(stage: Stage) -> None:
    source, copies = copying(stage), other_queue(stage, "COPY")
    copies.queue.signal(copies.fence, 1)
    copies.fence.wait(1)
    while stage.queue.hardware.pending:
        stage.device.context.gpu.step()

    report = caught(source.release)
    assert "can be known to have finished" in report.message
    assert "has been executed here" in report.context[1]


def test_debug_sees_only_what_is_pending() -> None:
    stage = Stage(Strictness.DEBUG)
    source, copies = copying(stage), other_queue(stage, "COPY")
    target = stage.buffer("other")
    copies.queue.signal(copies.fence, 1)
    copies.fence.wait(1)
    while stage.queue.hardware.pending:
        stage.device.context.gpu.step()
    source.release()
    assert said(stage) == []

    stage.wait()
    stage.list.copy_resource(target, stage.buffer("source"))
    stage.submit()
    assert caught(target.release).id == "OBJECT_DELETED_IN_USE"


def test_runtime_sees_nothing() -> None:
    stage = Stage(Strictness.RUNTIME)
    copying(stage).release()
    stage.allocator.reset()

    assert said(stage) == []


def test_without_a_signal_the_advice_is_to_signal(stage: Stage) -> None:
    source = stage.filled("source")
    stage.list.copy_resource(stage.buffer("target"), source)
    stage.list.close()
    stage.queue.execute_command_lists([stage.list])

    report = caught(source.release)
    assert report.hint.startswith("Signal a fence on command queue 'compute' after it and wait")
    assert "fence" not in report.properties


# --- what is needed ---


def test_release_is_done_all_the_same_and_the_device_stays_usable(stage: Stage) -> None:
    target = stage.host_buffer("target", 256, "READBACK")
    stage.list.copy_resource(target, stage.filled("source"))
    stage.submit()
    assert caught(stage.allocator.release).id == "OBJECT_DELETED_IN_USE"  # the GPU has the commands
    stage.fence.wait(stage.fence_value)

    with target.map() as memory:
        assert memory.view("f4")[3] == 4
    assert stage.allocator.released


def test_each_queue_has_its_own_work(stage: Stage) -> None:
    """Both lists are the first of their queue."""
    copies = other_queue(stage, "COPY")
    one, two = stage.buffer("one"), stage.buffer("two")
    for each, source in ((stage, one), (copies, two)):
        each.list.copy_resource(stage.buffer("target"), source)
        each.submit()

    assert "of command list 'frame'" in caught(one.release).message
    report = caught(two.release)
    assert "of command list 'copy'" in report.message and report.properties["queue"] == "command queue 'copy'"


def test_an_allocator_that_was_released_takes_its_commands_along(stage: Stage) -> None:
    stage.list.copy_resource(stage.buffer("target"), stage.filled("source"))
    stage.list.close()
    stage.allocator.release()

    report = caught(lambda: stage.queue.execute_command_lists([stage.list]))
    assert report.message == (
        "Command list 'frame' is executed, and command allocator 'frames', which it was recorded with, "
        "has been released."
    )
    assert "It was released at test_lists.py:" in report.context[0]


def test_what_may_go_at_once(stage: Stage) -> None:
    operator = stage.copy_operator("copy")
    source, target = stage.filled("source"), stage.buffer("target")
    table = stage.table(operator)
    table.bind_inputs([dml.BufferBinding(source)])
    table.bind_outputs([dml.BufferBinding(target)])
    stage.recorder.record_dispatch(stage.list, operator, table)
    stage.submit()
    for thing in (table, stage.recorder, stage.list, stage.fence, stage.queue):
        thing.release()

    assert said(stage) == []


def test_a_placed_buffer_keeps_its_heap(stage: Stage) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(65536))
    desc = d3d12.ResourceDesc.buffer(256, UAV)
    placed = stage.device.create_placed_resource(heap, 0, desc, States.COMMON)
    stage.list.copy_resource(placed, stage.filled("source"))
    stage.submit()
    heap.release()

    assert said(stage) == []


def test_barriers_need_their_buffers_too(stage: Stage) -> None:
    act, other = stage.buffer("act"), stage.buffer("other")
    barriers = [d3d12.ResourceBarrier.uav(act), d3d12.ResourceBarrier.aliasing(None, other)]
    stage.list.resource_barrier(barriers)
    stage.submit()

    assert "ResourceBarrier (command 1)" in caught(act.release).message
    assert "ResourceBarrier (command 2)" in caught(other.release).message


def test_a_barrier_that_was_refused_needs_nothing(stage: Stage) -> None:
    act, state = stage.buffer("act"), States.COPY_SOURCE
    good = d3d12.ResourceBarrier.transition(act, States.COMMON, state)
    wrong = d3d12.ResourceBarrier.transition(act, state, state)
    with pytest.raises(Error):
        stage.list.resource_barrier([good, wrong])
    stage.submit()
    act.release()

    assert said(stage) == []


def test_a_copy_of_no_bytes_needs_nothing(stage: Stage) -> None:
    source, target = stage.buffer("source"), stage.buffer("target")
    stage.list.copy_buffer_region(target, 0, source, 0, 0)
    stage.list.set_marker(1, "next")
    stage.submit()
    source.release()
    target.release()

    assert said(stage) == []


def test_the_last_command_is_named(stage: Stage) -> None:
    source = stage.filled("source")
    for i in range(3):
        stage.list.copy_resource(stage.buffer(f"target {i}"), source)
    stage.submit()

    assert "CopyResource (command 3)" in caught(source.release).message


def test_a_block_left_by_an_exception_says_nothing(stage: Stage) -> None:
    with pytest.raises(KeyboardInterrupt), stage.filled("source") as source:
        stage.list.copy_resource(stage.buffer("target"), source)
        stage.submit()
        raise KeyboardInterrupt

    assert source.released and said(stage) == []


def test_garbage_collection_says_nothing(stage: Stage) -> None:
    copying(stage)  # nobody holds the buffers
    stage.wait()

    assert said(stage) == []


def test_after_removal_nothing_is_needed(stage: Stage) -> None:
    source = copying(stage)
    stage.device.remove_device()
    for thing in (source, stage.allocator, stage.heap, stage.list):
        thing.release()

    assert said(stage) == []


def test_what_was_released_is_told_where(stage: Stage) -> None:
    upload = stage.host_buffer("upload")
    upload.release()
    report = caught(lambda: stage.list.copy_resource(stage.buffer("target"), upload))

    assert report.id == "OBJECT_DELETED_IN_USE"
    assert report.context[0].startswith("It was released at test_lists.py:")


def test_a_refused_list_may_be_executed_no_more_and_the_others_may(stage: Stage) -> None:
    source = stage.filled("source")
    stage.list.copy_resource(stage.buffer("target"), source)
    stage.list.close()
    source.release()
    for _ in range(2):
        with pytest.raises(Error) as error:
            stage.queue.execute_command_lists([stage.list])
        assert error.value.hresult is HResult.DXGI_ERROR_INVALID_CALL
    stage.allocator.reset()
    stage.list.reset(stage.allocator)
    stage.list.copy_resource(stage.buffer("target"), stage.buffer("source"))
    stage.run()


# --- lists ---


def test_a_list_may_be_executed_again_once_that_is_known(stage: Stage) -> None:
    copying(stage)
    for _ in range(3):
        stage.fence.wait(stage.fence_value)
        stage.queue.execute_command_lists([stage.list])
        stage.fence_value += 1
        stage.queue.signal(stage.fence, stage.fence_value)

    assert said(stage) == []


def test_a_list_may_be_recorded_again_with_another_allocator_at_once(stage: Stage) -> None:
    copying(stage)
    stage.list.reset(stage.device.create_command_allocator(d3d12.CommandListType.COMPUTE))
    stage.list.copy_resource(stage.buffer("target"), stage.buffer("source"))
    stage.submit()

    assert said(stage) == []


def test_empty_lists_are_one_remark(stage: Stage) -> None:
    kind = d3d12.CommandListType.COMPUTE
    empty = stage.device.create_command_list(0, kind, stage.device.create_command_allocator(kind))
    empty.close()

    def execute() -> None:
        stage.fence_value += 1
        stage.queue.signal(stage.fence, stage.fence_value)
        stage.fence.wait(stage.fence_value)
        stage.queue.execute_command_lists([empty])

    for _ in range(2):
        execute()
    stage.queue.signal(stage.fence, stage.fence_value + 1)
    stage.fence.wait(stage.fence_value + 1)
    stage.queue.execute_command_lists([empty])  # on another line

    assert [(each.report.id, each.count) for each in stage.device.reports] == [("QUEUE_EMPTY_SUBMIT", 3)]


def test_a_list_that_only_initialises_is_not_empty(stage: Stage) -> None:
    """Where there are no weights to copy, the GPU has nothing to do; the program has recorded something."""
    other = other_queue(stage, "DIRECT")
    compiled = stage.compile(identity(), "copy")
    initializer = stage.dml.create_operator_initializer([compiled])
    stage.recorder.record_dispatch(other.list, initializer, stage.table(initializer))
    other.submit()
    other.wait()
    assert said(stage) == []


# --- fences ---


def test_fences_are_judged_in_the_order_of_execution(stage: Stage) -> None:
    """The lower value is told later and set before: the first queue waits for it."""
    shared, copies = stage.device.create_fence(), other_queue(stage, "COPY")
    stage.queue.wait(shared, 1)
    stage.queue.signal(shared, 2)
    copies.queue.signal(shared, 1)
    shared.wait(2)

    assert said(stage) == []


def test_equal_values_and_new_fences_at_an_old_address_say_nothing(stage: Stage) -> None:
    addresses = []
    for value in range(20, 0, -1):
        fence = stage.device.create_fence(value)
        fence.signal(value)
        stage.queue.signal(fence, value + 1)
        fence.wait(value + 1)
        addresses.append(fence.hardware.address)
        del fence

    assert len(set(addresses)) < len(addresses) and said(stage) == []


def test_a_released_fence_says_nothing(stage: Stage) -> None:
    fence = stage.device.create_fence(5)
    stage.queue.signal(fence, 7)
    fence.release()  # it ends at the highest value
    stage.run()

    assert said(stage) == []


def test_both_lines_of_a_fence_that_goes_back(stage: Stage) -> None:
    fence = stage.device.create_fence(5)
    fence.signal(3)
    stored = list(stage.device.reports)
    assert [each.report.message for each in stored] == [f"F{str(fence)[1:]} is set back from 5 to 3."]
    first, second = stored[0].report.context
    assert first.startswith("Set to 5 by its creation at test_lists.py:")
    assert second.startswith("Set to 3 by Signal of the host at test_lists.py:")


# --- states: who brought them about ---


@pytest.mark.dmlemu(expect=["STATE_*"])
def test_a_state_comes_from_the_command_that_changed_it_last(stage: Stage) -> None:
    source, act = stage.filled("source"), stage.buffer("act")
    turn = d3d12.ResourceBarrier.transition
    stage.list.copy_resource(act, source)
    with pytest.raises(Error):
        stage.list.resource_barrier(
            [
                turn(act, States.COPY_DEST, States.UNORDERED_ACCESS),
                turn(source, States.COPY_DEST, States.COMMON),
            ]
        )
    report = caught(lambda: stage.list.copy_resource(stage.buffer("target"), act))
    assert "Its state comes from CopyResource (command 1 of command list 'frame'" in report.context[0]
    stage.list.resource_barrier(turn(act, States.COPY_DEST, States.UNORDERED_ACCESS))
    report = caught(lambda: stage.list.copy_resource(stage.buffer("target"), act))
    assert "Its state comes from ResourceBarrier (command 2 of command list 'frame'" in report.context[0]
    assert (
        report.hint == "Record a transition of buffer 'act' from UNORDERED_ACCESS to COPY_SOURCE before it."
    )


def test_a_split_barrier_that_was_begun_elsewhere_is_told(stage: Stage) -> None:
    act, flags = stage.filled("act"), d3d12.ResourceBarrierFlags
    turn = d3d12.ResourceBarrier.transition
    stage.list.resource_barrier(turn(act, States.COMMON, States.COPY_SOURCE, flags=flags.BEGIN_ONLY))
    stage.run()
    stage.list.copy_resource(stage.buffer("target"), act)
    report = caught(stage.submit)
    assert report.id == "STATE_SPLIT"
    assert "It was begun by ResourceBarrier (command 1 of command list 'frame'" in report.context[0]


def test_what_is_in_flight_keeps_nothing_alive(stage: Stage) -> None:
    before = stage.device.context.adapter.query_memory_budget().current_usage
    for _ in range(3):
        data = np.full(5 << 20, 1, np.uint8)
        source = stage.host_buffer("upload", data.nbytes)
        stage.list.copy_buffer_region(stage.buffer("target", data.nbytes), 0, source, 0, 16)
        stage.submit()
        while stage.queue.hardware.pending:  # executed, and nothing awaited
            stage.device.context.gpu.step()
        stage.device.context.submissions.forget_done()
        stage.list.reset(stage.device.create_command_allocator(d3d12.CommandListType.COMPUTE))
        del source

    assert stage.device.context.adapter.query_memory_budget().current_usage <= before + (10 << 20)
