"""Writes that nobody reads: what is told of them, and what is not."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from dmlemu import Severity, d3d12, dml
from dmlemu.testing.stage import OWNED, UAV, Stage, States, chain, give_weights, product, tensor

pytestmark = pytest.mark.dmlemu(expect=["*"])
IDS = ("WRITTEN_NEVER_READ", "OVERWRITTEN_UNREAD")
TILE = 65536


def told(stage: Stage) -> list[str]:
    """The messages at the end."""
    stage.device.checks.end()
    return [each.report.message for each in stage.device.reports if each.report.id in IDS]


def looked(stage: Stage, buffer: Any) -> list[str]:
    """The CPU reads the buffer, and the program ends."""
    stage.read(buffer, np.uint8, 16)
    return told(stage)


def halves(buffer: Any, size: int = 64) -> tuple[dml.BufferBinding, dml.BufferBinding]:
    return dml.BufferBinding(buffer, 0, size), dml.BufferBinding(buffer, size, size)


# --- dispatches ---


def test_an_output_that_nobody_reads_is_told_once() -> None:
    stage = Stage()
    copy, image = stage.copy_operator("copy"), stage.filled("image", 64)
    unused, result = stage.buffer("unused", 64), stage.buffer("result", 64)
    for _ in range(3):
        stage.dispatch(copy, [image], [unused])
        stage.dispatch(copy, [image], [result])
        stage.run()
    [message] = looked(stage, result)
    assert "Nobody read what the dispatch of compiled operator 'copy'" in message
    assert message.endswith("to bytes [0, 64) of buffer 'unused'.")
    assert len(told(stage)) == 1


def test_a_program_that_looks_at_nothing_is_told_nothing() -> None:
    stage = Stage()
    copy, image = stage.copy_operator("copy"), stage.filled("image", 64)
    stage.dispatch(copy, [image], [stage.buffer("unused", 64)])
    stage.run()
    assert told(stage) == []


def test_what_comes_after_the_last_look_is_not_told() -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    stage.dispatch(copy, [image], [result])
    stage.read(result, np.float32)
    stage.dispatch(copy, [image], [stage.buffer("next frame", 64)])
    stage.run()
    assert told(stage) == []


def test_of_several_outputs_one_is_enough() -> None:
    stage = Stage()
    desc = dml.TopKOperatorDesc(
        input_tensor=tensor([1, 1, 1, 16]),
        output_value_tensor=tensor([1, 1, 1, 4]),
        output_index_tensor=tensor([1, 1, 1, 4], data_type=dml.TensorDataType.UINT32),
        axis=3,
        k=4,
    )
    top = stage.compile(desc, "top")
    stage.initialize(top)
    values, indices = stage.buffer("values", 16), stage.buffer("indices", 16)
    stage.dispatch(top, [stage.filled("image", 64)], [values, indices])
    assert looked(stage, values) == []


def test_a_read_of_the_gaps_is_no_read() -> None:
    stage = Stage()
    rows, packed = tensor([4, 4], [8, 1]), tensor([4, 4])
    gaps, three = tensor([3, 4], [8, 1]), tensor([3, 4])
    write, read = (
        stage.compile(dml.ElementWiseIdentityOperatorDesc(input_tensor=a, output_tensor=b), name)
        for a, b, name in ((packed, rows, "write"), (gaps, three, "read"))
    )
    stage.initialize(write, read)
    arena, result = stage.upload("arena", np.zeros(32, np.float32)), stage.buffer("result", 48)
    stage.dispatch(write, [stage.filled("image", 64)], [dml.BufferBinding(arena, 0, 112)])
    stage.barrier()
    stage.dispatch(read, [dml.BufferBinding(arena, 16, 80)], [result])
    [message] = looked(stage, result)
    assert "the dispatch of compiled operator 'write'" in message


def gatherer(stage: Stage) -> Any:
    """An operator that takes two of eight rows."""
    indices = tensor([1, 1, 1, 2], data_type=dml.TensorDataType.UINT32)
    desc = dml.GatherOperatorDesc(
        input_tensor=tensor([1, 1, 8, 4]),
        indices_tensor=indices,
        output_tensor=tensor([1, 1, 2, 4]),
        axis=2,
        index_dimensions=1,
    )
    gather = stage.compile(desc, "gather")
    stage.initialize(gather)
    return gather


def test_rows_that_indices_choose_count_as_read() -> None:
    stage = Stage()
    gather = gatherer(stage)
    source = stage.upload("table", np.arange(32, dtype=np.float32))
    chosen = stage.upload("chosen", np.uint32([1, 5]))
    result = stage.buffer("result", 32)
    stage.dispatch(gather, [source, chosen], [result])
    assert looked(stage, result) == []


def test_a_command_that_repeats_may_overwrite_itself() -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    other = stage.buffer("other", 64)
    for target in (result, other, result, other):
        for _ in range(2):
            stage.dispatch(copy, [image], [target])
            stage.barrier()
    stage.run()
    stage.read(other, np.float32)
    assert looked(stage, result) == []


def test_a_clear_that_nobody_reads_is_not_told() -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    arena = stage.buffer("arena", 256)
    stage.write(arena, np.zeros(256, np.uint8))
    left, right = halves(arena)
    stage.dispatch(copy, [image], [left])
    stage.barrier()
    stage.dispatch(copy, [left], [right])
    stage.barrier()
    stage.dispatch(copy, [right], [result])
    assert looked(stage, result) == []


def test_many_are_one_report() -> None:
    stage = Stage()
    image, result = stage.filled("image", 64), stage.buffer("result", 64)
    unused = [stage.buffer(f"unused {i}", 64) for i in range(12)]
    for i, each in enumerate([*unused, result]):
        stage.dispatch(stage.copy_operator(f"copy {i}"), [image], [each])
    [message] = looked(stage, result)
    assert message.endswith("'unused 0', nor 11 other writes.")
    [report] = [each.report for each in stage.device.reports if each.report.id in IDS]
    assert len(report.context) == 8
    assert report.context[-1] == "... and 4 more"


# --- the CPU ---


def test_a_readback_buffer_that_stays_mapped_counts_as_read() -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    readback = stage.host_buffer("readback", 64, "READBACK")
    memory = readback.map()
    for _ in range(2):
        stage.dispatch(copy, [image], [result])
        stage.run()
        stage.list.copy_resource(readback, result)
        stage.run()
    assert memory[0] == 0
    assert told(stage) == []


@pytest.mark.parametrize("used", [False, True])
def test_an_upload_heap_that_nobody_reads(used: bool) -> None:
    stage = Stage()
    source, result = stage.host_buffer("weights", 256), stage.buffer("result", 256)
    with source.map(0, d3d12.Range(0, 0)) as memory:
        memory[0:64] = b"w" * 64
        memory[128:192] = b"x" * 64
    stage.write(result, np.zeros(64, np.float32))
    if used:
        stage.list.copy_buffer_region(result, 0, source, 128, 16)
    messages = looked(stage, result)
    assert len(messages) == (0 if used else 1)
    assert used or "what the CPU wrote to bytes [0, 64) of buffer 'weights'" in messages[0]


def test_each_declared_tensor_of_an_upload_stands_for_itself() -> None:
    stage = Stage()
    copy, result = stage.copy_operator("copy"), stage.buffer("result", 64)
    weights = stage.upload("weights", np.ones(64, np.float32))
    for i in range(3):
        weights.expect(64 * i, tensor([16]), f"bias {i}")
    stage.dispatch(copy, [dml.BufferBinding(weights, 64, 64)], [result])
    [message] = looked(stage, result)
    assert "'bias 0'" in message
    assert message.endswith("nor 1 other write.")


def test_a_released_buffer_is_named() -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    unused = stage.buffer("unused", 256)
    stage.dispatch(copy, [image], [dml.BufferBinding(unused, 128, 64)])
    stage.dispatch(copy, [image], [result])
    stage.run()
    unused.release()
    [message] = looked(stage, result)
    assert message.endswith("to bytes [128, 192) of buffer 'unused', now released.")


def bias_elsewhere(stage: Stage) -> None:
    """An arena is cleared, a bias uploaded to byte 1024 of it, and bound at byte 256."""
    row = tensor([4])
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=row, b_tensor=row, output_tensor=row)
    add = stage.compile(desc, "add")
    stage.initialize(add)
    arena = stage.upload("arena", np.zeros(1024, np.float32))
    stage.write(arena, np.ones(4, np.float32), 1024)
    result = stage.buffer("result", 16)
    stage.dispatch(add, [stage.filled("image", 16), dml.BufferBinding(arena, 256, 16)], [result])
    stage.read(result, np.float32)


def messages_of(device: d3d12.Device) -> list[str]:
    return [each.report.message for each in device.reports if each.report.id in IDS]


def test_releasing_the_device_ends_the_program() -> None:
    stage = Stage()
    bias_elsewhere(stage)
    assert messages_of(stage.device) == []
    stage.device.release()  # the session still has its queue and its list
    [message] = messages_of(stage.device)
    assert message.endswith(" to bytes [1024, 1040) of buffer 'arena', now released.")
    device = stage.device
    del stage
    gc.collect()
    assert messages_of(device) == [message]
    assert [each.count for each in device.reports if each.report.id in IDS] == [1]


def test_a_device_released_with_work_in_flight_has_not_ended() -> None:
    stage = Stage()
    copy, unread = stage.copy_operator("copy"), stage.filled("unread", 64)
    result, other = stage.buffer("result", 64), stage.buffer("other", 64)
    stage.dispatch(copy, [stage.filled("image", 64)], [result])
    stage.read(result, np.float32)
    stage.dispatch(copy, [unread], [other])
    stage.submit()
    stage.device.release()
    assert messages_of(stage.device) == []  # it is about to be read
    stage.wait()
    assert told(stage) == []


# --- initializers, graphs, checks that start anew ---


@pytest.mark.parametrize("used", [False, True])
def test_weights_that_an_initializer_takes_are_read(used: bool) -> None:
    stage = Stage()
    compiled = stage.compile(product(OWNED), "product")
    weights, persistent, result = (
        stage.buffer("weights", 64),
        stage.buffer("kept"),
        stage.buffer("result", 64),
    )
    wrong = stage.filled("source", 64)
    stage.list.copy_resource(weights, wrong)
    stage.run()
    give_weights(stage, compiled, weights if used else wrong, persistent)
    stage.dispatch(compiled, [stage.filled("a", 64), None, None], [result], persistent=persistent)
    messages = looked(stage, result)
    assert len(messages) == (0 if used else 1)
    assert used or "buffer 'weights'" in messages[0]


def test_tensors_inside_a_graph_are_not_told() -> None:
    stage = Stage()
    graph = stage.dml.compile_graph(chain(stage, tensor([16]), tensor([16])))
    stage.initialize(graph)
    unused, result = stage.buffer("unused", 64), stage.buffer("result", 64)
    image = stage.filled("image", 64)
    for target in (unused, result):
        stage.dispatch(graph, [image], [target])
    [message] = looked(stage, result)
    assert "buffer 'unused'" in message
    assert "other" not in message


def test_checks_that_start_anew_know_of_nothing_before() -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    stage.dispatch(copy, [image], [stage.buffer("unused", 64)])
    stage.run()
    stage.device.checks.rest()
    stage.device.checks.resume()
    stage.dispatch(copy, [image], [result])
    assert looked(stage, result) == []


# --- memory under several buffers ---


def placed(stage: Stage, heap: Any, name: str) -> Any:
    made = stage.device.create_placed_resource(heap, 0, d3d12.ResourceDesc.buffer(64, UAV), States.COMMON)
    made.set_name(name)
    return made


@pytest.mark.parametrize("used", [False, True])
def test_buffers_in_one_place(used: bool) -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    heap = stage.device.create_heap(d3d12.HeapDesc(TILE))
    first, second = placed(stage, heap, "first"), placed(stage, heap, "second")
    stage.dispatch(copy, [image], [first])
    stage.list.resource_barrier([d3d12.ResourceBarrier.aliasing(first, second)])
    if used:  # the same bytes, through the other buffer
        stage.dispatch(copy, [second], [result])
    else:
        stage.dispatch(stage.copy_operator("again"), [image], [second])
        stage.barrier()
        stage.dispatch(copy, [second], [result])
    messages = looked(stage, result)
    assert len(messages) == (0 if used else 1)
    assert used or "'again' (DML_OPERATOR_ELEMENT_WISE_IDENTITY)" in messages[0]


def test_tiles_that_are_mapped_elsewhere() -> None:
    stage = Stage()
    copy, image, result = stage.copy_operator("copy"), stage.filled("image", 64), stage.buffer("result", 64)
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    first, second = (
        stage.device.create_reserved_resource(d3d12.ResourceDesc.buffer(TILE, UAV), States.COMMON)
        for _ in range(2)
    )
    for buffer, tile in ((first, 0), (second, 1)):
        stage.queue.update_tile_mappings(buffer, heap=heap, heap_range_start_offsets=[tile])
        stage.dispatch(copy, [image], [dml.BufferBinding(buffer, 0, 64)])
        stage.run()
    stage.queue.update_tile_mappings(second, heap=heap, heap_range_start_offsets=[0])
    stage.dispatch(copy, [dml.BufferBinding(second, 0, 64)], [result])
    [message] = looked(stage, result)
    assert message.count("Nobody read") == 1


@pytest.mark.parametrize("accepted", [False, True])
def test_a_warning_beside_a_wrong_read(accepted: bool) -> None:
    stage = Stage()
    if accepted:
        stage.device.reports.suppress("READ_MIXED", "the rest is multiplied by 0")
    copy, image = stage.copy_operator("copy"), stage.filled("image", 64)
    arena, result = stage.upload("arena", np.zeros(256, np.uint8)), stage.buffer("result", 64)
    stage.dispatch(copy, [image], [dml.BufferBinding(arena, 0, 64)])
    stage.dispatch(copy, [image], [dml.BufferBinding(arena, 128, 64)])
    stage.barrier()
    stage.dispatch(copy, [dml.BufferBinding(arena, 32, 64)], [result])
    assert len(looked(stage, result)) == 1
    severities = {each.report.id: each.report.severity for each in stage.device.reports}
    assert severities["READ_MIXED"] is Severity.WARNING
    assert severities["WRITTEN_NEVER_READ"] is (Severity.INFO if accepted else Severity.WARNING)


def test_readers_that_repeat_read_whatever_was_written_by_then() -> None:
    stage = Stage()
    makers = [stage.copy_operator(f"maker {i}") for i in range(3)]
    reader, image = stage.copy_operator("reader"), stage.filled("image", 64)
    act, result = stage.buffer("act", 64), stage.buffer("result", 64)
    for _ in range(2):
        for maker in makers:
            stage.dispatch(maker, [image], [act])
            stage.barrier()
            stage.dispatch(reader, [act], [result])
            stage.run()
    assert looked(stage, result) == []


def test_tables_that_are_written_anew_count_as_read() -> None:
    stage = Stage()
    gather, makers = gatherer(stage), [stage.copy_operator(f"maker {i}", 32) for i in range(2)]
    image, chosen = stage.filled("image", 128), stage.upload("chosen", np.uint32([1, 5]))
    table, result = stage.buffer("table", 128), stage.buffer("result", 32)
    for maker in (*makers, *makers):
        stage.dispatch(maker, [image], [table])
        stage.barrier()
        stage.dispatch(gather, [table, chosen], [result])
        stage.run()
    assert looked(stage, result) == []
