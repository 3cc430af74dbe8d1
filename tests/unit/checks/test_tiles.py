"""What commands do with tiles: exact by elements, by fences, and by what is mapped when they run."""

from __future__ import annotations

from typing import Any

import pytest

from dmlemu import chaos, d3d12, dml
from dmlemu.checks.tiles.check import TileOrder
from dmlemu.d3d12 import Policy
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.testing.stage import UAV, Stage, States, other_queue, tensor

pytestmark = pytest.mark.dmlemu(expect=["*"])
TILE = 65536


@pytest.fixture(params=[Policy.LAZY, Policy.EAGER, *map(chaos, range(3))], ids=str)
def stage(request: pytest.FixtureRequest) -> Stage:
    stage = Stage(policy=request.param)
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    return stage


def reserved(stage: Stage, tiles: int) -> Any:
    return stage.device.create_reserved_resource(d3d12.ResourceDesc.buffer(tiles * TILE, UAV), States.COMMON)


def heap(stage: Stage, tiles: int) -> Any:
    return stage.device.create_heap(d3d12.HeapDesc(tiles * TILE))


def said(stage: Stage) -> list[str]:
    """What is not about the tensors of the operator."""
    ids = [stored.report.id for stored in stage.device.reports]
    return [id for id in ids if id != "TENSOR_PADDED_OUT"]


def identity(stage: Stage, sizes: list[int], strides: list[int]) -> Any:
    """An initialised operator that writes packed numbers with strides."""
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor(sizes), output_tensor=tensor(sizes, strides)
    )
    operator = stage.compile(desc, "copy")
    stage.initialize(operator)
    return operator


# --- NULL tiles ---


def test_rows_that_leave_a_null_tile_out_are_silent(stage: Stage) -> None:
    image, output = stage.filled("image", 256), reserved(stage, 3)
    operator = identity(stage, [2, 16], [2 * TILE // 4, 1])
    starts, one = [d3d12.TiledResourceCoordinate(i) for i in (0, 2)], d3d12.TileRegionSize(1)
    stage.queue.update_tile_mappings(output, starts, [one, one], heap(stage, 2), None, [0], [2])
    stage.dispatch(operator, [image], [output])
    stage.run()
    assert said(stage) == []


def test_tiles_that_were_taken_away_are_null_again(stage: Stage) -> None:
    image, output = stage.filled("image", 256), reserved(stage, 1)
    stage.queue.update_tile_mappings(output, heap=heap(stage, 1))
    stage.list.copy_buffer_region(output, 0, image, 0, 256)
    stage.run()
    assert said(stage) == []
    stage.queue.update_tile_mappings(output, range_flags=[d3d12.TileRangeFlags.NULL])
    stage.list.copy_buffer_region(output, 0, image, 0, 256)
    stage.run()
    assert said(stage) == ["MEM_NULL_TILE"]


# --- outputs that overlap themselves ---


def alike(stage: Stage, operator: Any) -> list[str]:
    image, output = stage.filled("image", 256), reserved(stage, 2)
    reuse = [d3d12.TileRangeFlags.REUSE_SINGLE_TILE]
    stage.queue.update_tile_mappings(output, heap=heap(stage, 1), range_flags=reuse)
    stage.dispatch(operator, [image], [output])
    stage.run()
    return said(stage)


def test_elements_beside_each_other_in_one_tile_are_silent(stage: Stage) -> None:
    assert alike(stage, identity(stage, [2, 16], [TILE // 4 + 16, 1])) == []


def test_one_element_that_is_shared_is_told(stage: Stage) -> None:
    assert alike(stage, identity(stage, [2, 16], [TILE // 4 + 15, 1])) == ["TENSOR_OUT_OVERLAP"]
    *_, stored = stage.device.reports
    assert f"writes bytes 60 and {TILE + 60} of " in stored.report.message


# --- heaps ---


def test_a_heap_may_be_released_when_its_tiles_are_taken_away(stage: Stage) -> None:
    first, second, pool = heap(stage, 1), heap(stage, 1), reserved(stage, 1)
    image, gate = stage.filled("image", 256), stage.device.create_fence()
    stage.queue.update_tile_mappings(pool, heap=first)
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.run()
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.queue.update_tile_mappings(pool, heap=second)
    stage.queue.wait(gate, 1)
    stage.submit()
    first.release()
    gate.signal(1)
    stage.wait()
    assert said(stage) == []


def test_a_heap_is_in_use_though_its_tiles_will_be_taken_away_behind_the_list(stage: Stage) -> None:
    first, second, pool = heap(stage, 1), heap(stage, 1), reserved(stage, 1)
    image = stage.filled("image", 256)
    stage.queue.update_tile_mappings(pool, heap=first)
    stage.run()
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.submit()
    stage.queue.update_tile_mappings(pool, heap=second)
    first.release()
    stage.wait()
    assert said(stage) == ["OBJECT_DELETED_IN_USE"]


def test_another_queue_takes_the_tiles_away_before_the_list_begins(stage: Stage) -> None:
    first, second, pool, copy = heap(stage, 1), heap(stage, 1), reserved(stage, 1), other_queue(stage, "COPY")
    image = stage.filled("image", 256)
    copy.queue.update_tile_mappings(pool, heap=first)
    copy.queue.signal(copy.fence, 1)
    copy.fence.wait(1)
    stage.queue.wait(copy.fence, 2)
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.submit()
    copy.queue.update_tile_mappings(pool, heap=second)
    copy.queue.signal(copy.fence, 2)
    first.release()
    stage.wait()
    copy.list.close()
    assert said(stage) == []


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize("order", ["mapped before", "mapped later"])
def test_the_heap_that_another_queue_maps_before_the_list_begins(
    stage: Stage, order: str, resident: bool
) -> None:
    """What counts is whether the heap is resident that the tiles are in when the list uses them."""
    first, second, pool, copy = heap(stage, 1), heap(stage, 1), reserved(stage, 1), other_queue(stage, "COPY")
    image, gate = stage.filled("image", 256), stage.device.create_fence()
    stage.queue.update_tile_mappings(pool, heap=first)
    stage.run()
    stage.device.evict([first if resident else second])
    if order == "mapped before":
        copy.queue.wait(gate, 1)
        copy.queue.update_tile_mappings(pool, heap=second)
        copy.queue.signal(copy.fence, 1)
    stage.queue.wait(copy.fence, 1)
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.submit()
    if order == "mapped later":
        copy.queue.update_tile_mappings(pool, heap=second)
        copy.queue.signal(copy.fence, 1)
    gate.signal(1)
    stage.wait()
    copy.list.close()
    assert said(stage) == ([] if resident else ["RES_NOT_RESIDENT"])


@pytest.mark.parametrize("resident", [False, True])
def test_a_heap_that_another_queue_maps_behind_the_list(stage: Stage, resident: bool) -> None:
    first, second, pool, copy = heap(stage, 1), heap(stage, 1), reserved(stage, 1), other_queue(stage, "COPY")
    image, gate = stage.filled("image", 256), stage.device.create_fence()
    stage.queue.update_tile_mappings(pool, heap=first)
    stage.run()
    stage.device.evict([second if resident else first])
    copy.queue.wait(gate, 1)
    copy.queue.update_tile_mappings(pool, heap=second)
    copy.queue.signal(copy.fence, 1)
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.submit()
    stage.queue.signal(gate, 1)
    stage.wait()
    stage.device.make_resident([first])
    copy.fence.wait(1)
    copy.list.close()
    assert said(stage) == ([] if resident else ["RES_NOT_RESIDENT"])


def test_a_heap_whose_tiles_another_queue_takes_away_behind_the_list_is_in_use(stage: Stage) -> None:
    first, second, pool, copy = heap(stage, 1), heap(stage, 1), reserved(stage, 1), other_queue(stage, "COPY")
    image, go = stage.filled("image", 256), stage.device.create_fence()
    stage.queue.update_tile_mappings(pool, heap=first)
    stage.run()
    stage.queue.wait(go, 1)
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.submit()
    copy.queue.wait(stage.fence, stage.fence_value)
    copy.queue.update_tile_mappings(pool, heap=second)
    copy.queue.signal(copy.fence, 1)
    stage.device.evict([first])
    go.signal(1)
    stage.wait()
    copy.fence.wait(1)
    copy.list.close()
    assert said(stage) == ["RES_NOT_RESIDENT"]


# --- the page table and other queues ---


@pytest.mark.parametrize("order", ["fence", "host", "none"])
def test_tiles_that_another_queue_maps(stage: Stage, order: str) -> None:
    pool, image, copy = reserved(stage, 1), stage.filled("image", 256), other_queue(stage, "COPY")
    copy.queue.update_tile_mappings(pool, heap=heap(stage, 1))
    copy.queue.signal(copy.fence, 1)
    if order == "fence":
        stage.queue.wait(copy.fence, 1)
    if order == "host":
        copy.fence.wait(1)
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    stage.run()
    copy.fence.wait(1)
    assert ("HAZARD_QUEUE" in said(stage)) == (order == "none")
    copy.list.close()


def test_other_tiles_than_those_that_the_command_uses(stage: Stage) -> None:
    pool, image, copy = reserved(stage, 2), stage.filled("image", 256), other_queue(stage, "COPY")
    memory = heap(stage, 2)
    stage.queue.update_tile_mappings(pool, heap=memory)
    stage.run()
    stage.list.copy_buffer_region(pool, 0, image, 0, 256)
    copy.queue.update_tile_mappings(pool, [d3d12.TiledResourceCoordinate(1)], None, memory, None, [1])
    copy.queue.signal(copy.fence, 1)
    stage.run()
    copy.fence.wait(1)
    # The mapping on the first queue covered all tiles, and was known to be done by the host.
    assert said(stage) == []
    copy.list.close()


@pytest.mark.parametrize("is_ordered", [True, False])
def test_two_queues_map_one_tile(stage: Stage, is_ordered: bool) -> None:
    pool, memory, copy = reserved(stage, 1), heap(stage, 2), other_queue(stage, "COPY")
    stage.queue.update_tile_mappings(pool, heap=memory)
    stage.queue.signal(stage.fence, 1)
    if is_ordered:
        copy.queue.wait(stage.fence, 1)
    copy.queue.update_tile_mappings(pool, heap=memory, heap_range_start_offsets=[1])
    copy.queue.signal(copy.fence, 1)
    copy.fence.wait(1)
    stage.fence.wait(1)
    assert said(stage) == ([] if is_ordered else ["HAZARD_QUEUE"])
    for each in (copy.list, stage.list):
        each.close()


def test_what_all_know_to_be_done_is_forgotten(stage: Stage) -> None:
    [check] = (each for each in stage.device.checks if isinstance(each, TileOrder))
    pool, image = reserved(stage, 1), stage.filled("image")
    stage.queue.update_tile_mappings(pool, heap=heap(stage, 1))
    for frame in range(10):
        for i in range(20):
            stage.list.copy_buffer_region(pool, 64 * (20 * frame + i), image, 0, 64)
        stage.run()
    assert len(check._through[pool.address]) < 100
