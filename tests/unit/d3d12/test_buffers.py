"""Buffers: rules RB1 to RB12, PL1 to PL5, RS1 to RS9, VA1, AI1, TX1, CF1."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dmlemu import Error, HResult, Severity, Strictness, d3d12
from dmlemu.d3d12 import (
    ClearValue,
    Format,
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    Resource,
    ResourceBarrier,
    ResourceDesc,
    ResourceDimension,
    ResourceFlags,
    SampleDesc,
    TextureLayout,
    TiledResourceCoordinate,
    TileMappingFlags,
    TileRangeFlags,
    TileRegionSize,
)

from .stage import INVALID, INVALID_CALL, STATE, UAV, Stage, fails, remarks

GOOD = ResourceDesc.buffer(256)
TILE = 65536


def create(stage: Stage, desc: ResourceDesc, how: str, state: STATE = STATE.COMMON) -> Resource:
    if how == "committed":
        return stage.device.create_committed_resource(HeapProperties(), HeapFlags.NONE, desc, state)
    if how == "placed":
        heap = stage.device.create_heap(HeapDesc(1 << 20))
        return stage.device.create_placed_resource(heap, 0, desc, state)
    return stage.device.create_reserved_resource(desc, state)


HOW = pytest.mark.parametrize("how", ["committed", "placed", "reserved"])


@HOW
@pytest.mark.parametrize(
    "change, message_id",
    [
        ({"dimension": ResourceDimension.UNKNOWN}, 597),
        ({"dimension": 9}, 597),
        ({"width": 0}, 597),
        ({"width": -1}, 597),
        ({"height": 2}, 597),
        ({"depth_or_array_size": 0}, 597),
        ({"mip_levels": 0}, 722),
        ({"mip_levels": 2}, 722),
        ({"format": Format.R32_FLOAT}, 738),
        ({"sample_desc": SampleDesc(2, 0)}, 723),
        ({"sample_desc": SampleDesc(1, 1)}, 723),
        ({"layout": TextureLayout.UNKNOWN}, 724),
        ({"layout": TextureLayout.LAYOUT_64KB_UNDEFINED_SWIZZLE}, 724),
    ],
)
def test_RB1_description(stage: Stage, how: str, change: dict[str, Any], message_id: int) -> None:
    with fails("RB1", INVALID, message_id):
        create(stage, replace(GOOD, **change), how)
    create(stage, GOOD, how)


@HOW
def test_RB1_no_description(stage: Stage, how: str) -> None:
    with fails("RB1", INVALID, 604):
        create(stage, None, how)  # type: ignore[arg-type]


def test_RB1_textures_are_not_emulated(stage: Stage) -> None:
    with pytest.raises(Error, match="TEXTURE2D is not emulated"):
        create(stage, replace(GOOD, dimension=ResourceDimension.TEXTURE2D), "committed")


@HOW
@pytest.mark.parametrize("alignment", [1, 4096, 4194304])
def test_RB2_alignment(stage: Stage, how: str, alignment: int) -> None:
    with fails("RB2", INVALID, 721):
        create(stage, replace(GOOD, alignment=alignment), how)


@pytest.mark.parametrize("alignment", [0, TILE])
def test_RB2_alignment_reads_65536(stage: Stage, alignment: int) -> None:
    assert create(stage, replace(GOOD, alignment=alignment), "committed").get_desc().alignment == TILE


def test_RB2_tight_alignment_is_not_supported(stage: Stage) -> None:
    with fails("RB2", INVALID, 599):
        create(stage, replace(GOOD, flags=ResourceFlags.USE_TIGHT_ALIGNMENT), "committed")


@HOW
@pytest.mark.parametrize(
    "flag",
    [
        ResourceFlags.ALLOW_SIMULTANEOUS_ACCESS,
        ResourceFlags.ALLOW_DEPTH_STENCIL,
        ResourceFlags.DENY_SHADER_RESOURCE,
        ResourceFlags.DENY_SHADER_RESOURCE | UAV,
        ResourceFlags.ALLOW_CROSS_ADAPTER,
        ResourceFlags.VIDEO_DECODE_REFERENCE_ONLY,
        0x8000,
    ],
)
def test_RB3_flags(stage: Stage, how: str, flag: ResourceFlags) -> None:
    with fails("RB3", INVALID, 599):
        create(stage, replace(GOOD, flags=flag), how)


@HOW
@pytest.mark.parametrize(
    "flags", [ResourceFlags.DENY_SHADER_RESOURCE, ResourceFlags.DENY_SHADER_RESOURCE | UAV]
)
@pytest.mark.layer("RES_DESC")
def test_RB3_the_runtime_takes_deny_shader_resource(how: str, flags: ResourceFlags, runtime: Stage) -> None:
    stage = runtime
    desc = replace(GOOD, flags=flags)

    assert create(stage, desc, how).get_desc().flags == flags
    assert stage.device.get_resource_allocation_info(0, [desc]).size_in_bytes == TILE
    assert stage.device.get_copyable_footprints(desc).total_bytes == GOOD.width


@pytest.mark.layer("RES_DESC")
def test_RB3_a_readback_buffer_that_shaders_may_not_read_works_at_the_runtime(runtime: Stage) -> None:
    stage = runtime
    source = stage.upload(np.arange(256, dtype=np.uint8))
    target = stage.buffer(256, HeapType.READBACK, ResourceFlags.DENY_SHADER_RESOURCE)
    commands, _ = stage.record()
    commands.copy_resource(target, source)
    stage.run(commands)

    assert target.map().view().tolist() == list(range(256))


def test_RB3_render_target_buffers_exist(stage: Stage) -> None:
    flags = ResourceFlags.ALLOW_RENDER_TARGET | UAV

    assert create(stage, replace(GOOD, flags=flags), "committed").get_desc().flags == flags


def test_RB4_clear_value(stage: Stage) -> None:
    clear = ClearValue(Format.R32_FLOAT)
    heap = stage.device.create_heap(HeapDesc(TILE))
    device = stage.device

    with fails("RB4", INVALID, 815):
        device.create_committed_resource(HeapProperties(), HeapFlags.NONE, GOOD, STATE.COMMON, clear)
    with fails("RB4", INVALID, 815):
        device.create_placed_resource(heap, 0, GOOD, STATE.COMMON, clear)
    with fails("RB4", INVALID, 815):
        device.create_reserved_resource(GOOD, STATE.COMMON, clear)


@pytest.mark.parametrize("kind", [HeapType.UPLOAD, HeapType.READBACK])
@pytest.mark.parametrize("flag", [UAV, ResourceFlags.ALLOW_RENDER_TARGET])
def test_RB5_host_heaps_hold_no_buffer_that_shaders_write(
    stage: Stage, kind: HeapType, flag: ResourceFlags
) -> None:
    with fails("RB5", INVALID, 599):
        stage.buffer(heap=kind, flags=flag)
    heap = stage.device.create_heap(HeapDesc(TILE, HeapProperties(kind)))
    with fails("RB5", INVALID, 599):
        stage.device.create_placed_resource(heap, 0, ResourceDesc.buffer(4, flag), STATE.COMMON)


@pytest.mark.parametrize(
    "kind, state",
    [
        (HeapType.UPLOAD, STATE.COPY_DEST),
        (HeapType.UPLOAD, STATE.RESOLVE_SOURCE),
        (HeapType.READBACK, STATE.GENERIC_READ),
        (HeapType.READBACK, STATE.COPY_SOURCE),
    ],
)
def test_RB6_initial_states_of_host_heaps(stage: Stage, kind: HeapType, state: STATE) -> None:
    with fails("RB6", INVALID, 741):
        stage.buffer(heap=kind, state=state)


@pytest.mark.parametrize(
    "kind, state",
    [
        (HeapType.UPLOAD, STATE.GENERIC_READ),
        (HeapType.UPLOAD, STATE.COMMON),
        (HeapType.UPLOAD, STATE.COPY_SOURCE),
        (HeapType.READBACK, STATE.COPY_DEST),
        (HeapType.READBACK, STATE.COMMON),
        (HeapType.GPU_UPLOAD, STATE.COPY_DEST),
        (HeapType.DEFAULT, STATE.GENERIC_READ),
        (HeapType.DEFAULT, STATE.UNORDERED_ACCESS),
    ],
)
@pytest.mark.dmlemu(expect=["RES_STATE_*"])
def test_RB6_legal_initial_states(stage: Stage, kind: HeapType, state: STATE) -> None:
    stage.buffer(heap=kind, state=state)


@pytest.mark.parametrize(
    "state, message_id",
    [
        (STATE.COPY_DEST | STATE.COPY_SOURCE, 526),
        (STATE.COPY_DEST | STATE.UNORDERED_ACCESS, 526),
        (STATE.DEPTH_READ, 523),
        (STATE.RENDER_TARGET, 523),
        (0x4000, 522),
        (1 << 40, 522),
    ],
)
def test_RB7_state_combinations(stage: Stage, state: STATE, message_id: int) -> None:
    with fails("RB7", INVALID, message_id):
        stage.buffer(state=state)


def test_RB7_uav_state_needs_the_flag(stage: Stage) -> None:
    with fails("RB7", INVALID, 523):
        stage.buffer(flags=ResourceFlags.NONE, state=STATE.UNORDERED_ACCESS)


@HOW
@pytest.mark.parametrize("state", [STATE.UNORDERED_ACCESS, STATE.RENDER_TARGET, STATE.DEPTH_READ])
@pytest.mark.layer("RES_DESC", "RES_STATE_IGNORED")
def test_RB8_the_runtime_asks_no_flag_for_a_state_that_it_ignores(
    how: str, state: STATE, runtime: Stage
) -> None:
    stage = runtime
    buffer = create(stage, replace(GOOD, flags=ResourceFlags.NONE), how, state)
    commands, _ = stage.record()
    commands.resource_barrier(ResourceBarrier.transition(buffer, STATE.COMMON, STATE.COPY_SOURCE))
    stage.run(commands)

    assert stage.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.parametrize("state", [STATE.COPY_DEST | STATE.UNORDERED_ACCESS, 1 << 40])
def test_RB7_the_runtime_refuses_what_is_no_state(state: STATE, runtime: Stage) -> None:
    with fails("RB7", INVALID):
        runtime.buffer(state=state)


@pytest.mark.dmlemu(expect=["RES_STATE_IGNORED"])
def test_RB8_initial_state_is_ignored(stage: Stage) -> None:
    buffer = stage.buffer(state=STATE.COPY_SOURCE)

    assert remarks(stage) == [1328]
    assert not stage.read(buffer).any()
    upload = stage.upload(np.arange(4))
    commands, _ = stage.record()
    other = stage.buffer(state=STATE.COPY_SOURCE, width=32)
    commands.copy_resource(other, upload)  # promoted from COMMON, regardless of the requested state
    stage.run(commands)


@pytest.mark.dmlemu(expect=["RES_DESC"])
@pytest.mark.parametrize("kind", [HeapType.UPLOAD, HeapType.READBACK])
def test_RB12_most_bytes_of_buffers_that_the_cpu_sees(kind: HeapType) -> None:
    stage = Stage(memory=1 << 34)
    stage.buffer(0xFFFF_0000, kind)
    stage.buffer(1 << 32)
    assert not list(stage.device.reports)
    stage.buffer(0xFFFF_0001, kind)
    (stored,) = stage.device.reports
    assert (stored.id, stored.severity, stored.d3d12_id) == ("RES_DESC", Severity.WARNING, 597)


def test_RB9_a_failure_leaves_nothing_behind(stage: Stage) -> None:
    before = stage.device.report_live_device_objects()
    used = stage.adapter.query_memory_budget().current_usage

    for desc in (replace(GOOD, width=0), replace(GOOD, flags=ResourceFlags.DENY_SHADER_RESOURCE)):
        with pytest.raises(Error, match=r"[Bb]uffer"):
            create(stage, desc, "committed")
    assert stage.device.report_live_device_objects() == before
    assert stage.adapter.query_memory_budget().current_usage == used


def test_RB11_heap_properties(stage: Stage) -> None:
    buffer = stage.device.create_committed_resource(
        HeapProperties(HeapType.UPLOAD), HeapFlags.CREATE_NOT_ZEROED, GOOD, STATE.GENERIC_READ
    )
    heap = stage.device.create_heap(
        HeapDesc(TILE, HeapProperties(HeapType.READBACK), 0, HeapFlags.ALLOW_ONLY_BUFFERS)
    )
    placed = stage.device.create_placed_resource(heap, 0, GOOD, STATE.COPY_DEST)

    properties, flags = buffer.get_heap_properties()
    assert (properties.type, flags) == (HeapType.UPLOAD, HeapFlags.CREATE_NOT_ZEROED)
    properties, flags = placed.get_heap_properties()
    assert (properties.type, flags) == (HeapType.READBACK, HeapFlags.ALLOW_ONLY_BUFFERS)


def test_RB11_memory_is_counted_in_64_KiB(stage: Stage) -> None:
    before = stage.adapter.query_memory_budget().current_usage
    buffer = stage.buffer(TILE + 1)

    assert stage.adapter.query_memory_budget().current_usage == before + 2 * TILE
    buffer.close()
    assert stage.adapter.query_memory_budget().current_usage == before


# --- placed ---


@pytest.mark.parametrize("offset", [-TILE, 1, 256, 4096, TILE - 1])
def test_PL1_offset_alignment(stage: Stage, offset: int) -> None:
    heap = stage.device.create_heap(HeapDesc(4 * TILE))

    with fails("PL1"):
        stage.device.create_placed_resource(heap, offset, GOOD, STATE.COMMON)
    stage.device.create_placed_resource(heap, 3 * TILE, GOOD, STATE.COMMON)


@pytest.mark.parametrize("offset, width", [(0, 2 * TILE + 1), (TILE, TILE + 1), (2 * TILE, 1)])
def test_PL2_range(stage: Stage, offset: int, width: int) -> None:
    heap = stage.device.create_heap(HeapDesc(TILE + 1))  # capacity: 2 tiles

    with fails("PL2", INVALID, 923):
        stage.device.create_placed_resource(heap, offset, ResourceDesc.buffer(width), STATE.COMMON)
    stage.device.create_placed_resource(heap, 0, ResourceDesc.buffer(2 * TILE), STATE.COMMON)


def test_PL2_names_with_braces(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(TILE))
    heap.set_name("{0} {x} {}")

    with pytest.raises(Error, match=r"'\{0\} \{x\} \{\}'"):
        stage.device.create_placed_resource(heap, TILE, GOOD, STATE.COMMON)


def test_PL3_heap_must_take_buffers(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(TILE, flags=HeapFlags.DENY_BUFFERS))

    with fails("PL3"):
        stage.device.create_placed_resource(heap, 0, GOOD, STATE.COMMON)
    with fails("PL3"):
        stage.device.create_placed_resource(None, 0, GOOD, STATE.COMMON)  # type: ignore[arg-type]


def test_PL4_overlapping_buffers_are_the_same_bytes(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(2 * TILE))
    whole = stage.device.create_placed_resource(heap, 0, ResourceDesc.buffer(2 * TILE), STATE.COMMON)
    tail = stage.device.create_placed_resource(heap, TILE, GOOD, STATE.COMMON)
    data = np.arange(256, dtype=np.uint8)
    commands, _ = stage.record()
    commands.copy_resource(tail, stage.upload(data))
    commands.resource_barrier(ResourceBarrier.aliasing(tail, whole))
    stage.run(commands)

    assert whole.get_gpu_virtual_address() != tail.get_gpu_virtual_address()
    np.testing.assert_array_equal(stage.read(whole)[TILE : TILE + 256], data)


def test_PL5_a_placed_buffer_outlives_its_heap_object(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(TILE))
    buffer = stage.device.create_placed_resource(heap, 0, GOOD, STATE.COMMON)
    heap.close()

    assert not stage.read(buffer).any()


def test_PL5_residency_is_the_heaps(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(TILE))
    buffer = stage.device.create_placed_resource(heap, 0, GOOD, STATE.COMMON)
    stage.device.evict([heap])
    commands, _ = stage.record()
    commands.copy_resource(buffer, stage.upload(np.zeros(256, np.uint8)))

    with fails("RD2", INVALID_CALL, 608):
        stage.submit(commands)


# --- addresses ---


def test_VA1_addresses(stage: Stage) -> None:
    buffers = [stage.buffer(1 + i * TILE) for i in range(3)]
    reserved = stage.device.create_reserved_resource(GOOD, STATE.COMMON)
    addresses = [each.get_gpu_virtual_address() for each in [*buffers, reserved]]

    assert all(address > 0 and address % TILE == 0 for address in addresses)
    assert len(set(addresses)) == 4
    stage.device.evict([buffers[0]])
    assert buffers[0].get_gpu_virtual_address() == addresses[0]


def test_VA1_same_program_same_addresses() -> None:
    def addresses() -> list[int]:
        stage = Stage()
        return [stage.buffer(1000 * i + 1).get_gpu_virtual_address() for i in range(5)]

    assert addresses() == addresses()


# --- reserved ---


def reserve(stage: Stage, tiles: int) -> Resource:
    return stage.device.create_reserved_resource(ResourceDesc.buffer(tiles * TILE, UAV), STATE.COMMON)


def numbered(stage: Stage, tiles: int) -> Any:
    """A heap whose tile i is filled with i + 1."""
    heap = stage.device.create_heap(HeapDesc(tiles * TILE, flags=HeapFlags.ALLOW_ONLY_BUFFERS))
    window = stage.device.create_placed_resource(heap, 0, ResourceDesc.buffer(tiles * TILE), STATE.COMMON)
    commands, _ = stage.record()
    commands.copy_resource(window, stage.upload(np.repeat(np.arange(1, tiles + 1, dtype=np.uint8), TILE)))
    stage.run(commands)
    return heap


def seen(stage: Stage, buffer: Resource) -> list[int]:
    """The first byte of every tile, each tile being uniform."""
    rows = stage.read(buffer).reshape(-1, TILE)
    assert (rows == rows[:, :1]).all()
    return [int(row[0]) for row in rows]


def test_RS1_reserved_buffers_are_row_major(stage: Stage) -> None:
    desc = replace(GOOD, layout=TextureLayout.LAYOUT_64KB_UNDEFINED_SWIZZLE)

    with fails("RB1", INVALID, 724):
        stage.device.create_reserved_resource(desc, STATE.COMMON)
    assert reserve(stage, 1).get_desc().flags == UAV


@pytest.mark.dmlemu(expect=["MEM_NULL_TILE"])
def test_RS2_starts_unmapped_with_an_address(stage: Stage) -> None:
    buffer = reserve(stage, 2)

    assert buffer.get_gpu_virtual_address()
    assert seen(stage, buffer) == [0, 0]


def test_RS3_no_map_and_no_heap(stage: Stage) -> None:
    buffer = reserve(stage, 1)

    with fails("RS3", INVALID, 822):
        buffer.map()
    with fails("RS3", INVALID, 901):
        buffer.get_heap_properties()


def test_RS4_only_reserved_resources_have_tiles(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(TILE))

    with fails("RS4", INVALID, 493):
        stage.queue.update_tile_mappings(stage.buffer(TILE), None, None, heap)
    with fails("RS4", INVALID, 493):
        stage.queue.update_tile_mappings(None, None, None, heap)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "start, size",
    [
        (TiledResourceCoordinate(0, 1), TileRegionSize(1)),
        (TiledResourceCoordinate(0, 0, 1), TileRegionSize(1)),
        (TiledResourceCoordinate(0, 0, 0, 1), TileRegionSize(1)),
        (TiledResourceCoordinate(3), TileRegionSize(2)),
        (TiledResourceCoordinate(-1), TileRegionSize(1)),
        (TiledResourceCoordinate(0), TileRegionSize(0)),
        (TiledResourceCoordinate(0), TileRegionSize(2, True, 1, 1, 1)),
        (TiledResourceCoordinate(0), TileRegionSize(2, True, 1, 2, 1)),
    ],
)
def test_RS4_regions(stage: Stage, start: TiledResourceCoordinate, size: TileRegionSize) -> None:
    heap = stage.device.create_heap(HeapDesc(8 * TILE))
    buffer = reserve(stage, 4)

    with fails("RS4", INVALID, 493):
        stage.queue.update_tile_mappings(buffer, [start], [size], heap, None, [0], None)
    stage.queue.update_tile_mappings(buffer, None, None, heap)


START = TiledResourceCoordinate
SIZE = TileRegionSize
NONE, NULL, SKIP, REUSE = (
    TileRangeFlags.NONE,
    TileRangeFlags.NULL,
    TileRangeFlags.SKIP,
    TileRangeFlags.REUSE_SINGLE_TILE,
)


@pytest.mark.parametrize(
    "arguments, expected",
    [
        # whole resource from the heap's start
        ((None, None, "heap"), [1, 2, 3, 4]),
        ((None, None, "heap", None, [2], None), [3, 4, 5, 6]),
        # one region from the origin
        ((None, [SIZE(2)], "heap", None, [4], None), [5, 6, 0, 0]),
        # no sizes: one tile each
        (([START(3), START(1)], None, "heap", None, [0, 7], None), [0, 8, 0, 1]),
        (([START(3), START(1)], None, "heap", None, [4], None), [0, 6, 0, 5]),
        # counts: one range over several regions, several ranges over one region
        (([START(0), START(3)], [SIZE(2), SIZE(1)], "heap", [NONE], [5], [3]), [6, 7, 0, 8]),
        (([START(0)], [SIZE(4)], "heap", None, [7, 0], [1, 3]), [8, 1, 2, 3]),
        # several ranges without counts: one tile each
        (([START(0)], [SIZE(3)], "heap", None, [6, 4, 2], None), [7, 5, 3, 0]),
        # flags
        (([START(0)], [SIZE(4)], "heap", [REUSE], [5], [4]), [6, 6, 6, 6]),
        (([START(0)], [SIZE(4)], "heap", [NONE, NULL, NONE], [0, 0, 1], [1, 2, 1]), [1, 0, 0, 2]),
        (([START(0)], [SIZE(2, True, 2, 1, 1)], "heap", None, [0], None), [1, 2, 0, 0]),
        # later regions win
        (([START(0), START(0)], [SIZE(2), SIZE(1)], "heap", None, [0, 4], [2, 1]), [5, 2, 0, 0]),
    ],
)
def test_RS5_mappings(stage: Stage, arguments: tuple[Any, ...], expected: list[int]) -> None:
    stage.device.reports.suppress("MEM_NULL_TILE", "NULL tiles are read to see that they are")
    heap = numbered(stage, 8)
    buffer = reserve(stage, 4)
    stage.queue.update_tile_mappings(buffer, *[heap if each == "heap" else each for each in arguments])

    assert seen(stage, buffer) == expected


@pytest.mark.dmlemu(expect=["MEM_NULL_TILE"])
def test_RS5_null_and_skip_over_a_mapped_buffer(stage: Stage) -> None:
    heap = numbered(stage, 8)
    buffer = reserve(stage, 4)
    queue = stage.queue
    queue.update_tile_mappings(buffer, None, None, heap)
    queue.update_tile_mappings(buffer, [START(0)], [SIZE(4)], heap, [SKIP, NULL, NONE], [0, 0, 6], [1, 1, 2])
    assert seen(stage, buffer) == [1, 0, 7, 8]

    queue.update_tile_mappings(buffer, None, None, None, [NULL], None, None)
    assert seen(stage, buffer) == [0, 0, 0, 0]
    queue.update_tile_mappings(buffer, None, None, heap, [SKIP], None, None)
    assert seen(stage, buffer) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "arguments",
    [
        ((None, [SIZE(1), SIZE(1)], "heap", None, [0], None)),  # sizes of two regions, no starts
        (([START(0)], [SIZE(1), SIZE(1)], "heap", None, [0], None)),
        (([], [], "heap", None, [0], None)),
        ((None, None, "heap", [NONE], [0], [3])),  # 3 of 4 tiles
        ((None, None, "heap", [NONE], [0], [5])),  # 5 of 4 tiles
        ((None, None, "heap", [NULL, NONE], [0, 0], [-1, 5])),
        ((None, None, "heap", [NONE, NONE], [0, 4], None)),  # 2 of 4 tiles
        ((None, None, "heap", [NONE, NONE], [0], None)),  # arrays of different lengths
        ((None, None, "heap", [8], [0], None)),
        ((None, None, "heap", [NONE | NULL | SKIP], [0], None)),
        ((None, None, "heap", None, [5], None)),  # past the heap
        ((None, None, "heap", None, [-1], None)),
        ((None, None, "heap", [REUSE], [8], None)),
        ((None, None, None, None, [0], None)),  # no heap
        (([START(0)], [SIZE(4)], "heap", [NONE, NULL], None, [2, 2])),  # no offsets
        ((None, None, "heap", None, [0], None, TileMappingFlags(4))),
    ],
)
@pytest.mark.dmlemu(expect=["MEM_NULL_TILE"])
def test_RS5_bad_arguments(stage: Stage, arguments: tuple[Any, ...]) -> None:
    heap = stage.device.create_heap(HeapDesc(8 * TILE))
    buffer = reserve(stage, 4)

    with fails("RS5", INVALID, 493):
        stage.queue.update_tile_mappings(buffer, *[heap if each == "heap" else each for each in arguments])
    assert seen(stage, buffer) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "arguments, expected",
    [
        (([START(0)], [SIZE(4)], "heap", [NONE], [2], [9]), [3, 4, 5, 6]),  # 11 tiles would run past the heap
        (([START(0), START(1)], [SIZE(4), SIZE(2)], "heap", [NULL, NONE], [0, 3], [4, 3]), [0, 4, 5, 0]),
        (([START(1)], None, "heap", [REUSE, NONE], [5, 7], [3, 4]), [0, 6, 0, 0]),
        (([START(0)], [SIZE(2)], "heap", [SKIP, NONE, NONE], [0, 4, 99], [1, 1, 1]), [0, 5, 0, 0]),
    ],
)
@pytest.mark.layer("MEM_NULL_TILE*", "TILE_MAPPING")
def test_RS5_the_runtime_maps_what_the_regions_need(
    arguments: tuple[Any, ...], expected: list[int], runtime: Stage
) -> None:
    stage = runtime
    heap, buffer = numbered(stage, 8), reserve(stage, 4)
    stage.queue.update_tile_mappings(buffer, *[heap if each == "heap" else each for each in arguments])

    assert seen(stage, buffer) == expected
    assert stage.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.layer("TILE_MAPPING")
def test_RS5_ranges_with_fewer_tiles_remove_a_runtime_device(runtime: Stage) -> None:
    stage = runtime
    heap, buffer = numbered(stage, 8), reserve(stage, 4)
    stage.queue.update_tile_mappings(buffer, None, None, heap, None, [0], [3])
    assert stage.device.get_device_removed_reason() is INVALID_CALL


@pytest.mark.dmlemu(expect=["MEM_NULL_TILE"])
def test_RS6_mapping_is_queue_work(stage: Stage) -> None:
    heap = numbered(stage, 2)
    buffer = reserve(stage, 1)
    early = stage.buffer(TILE, HeapType.READBACK)
    late = stage.buffer(TILE, HeapType.READBACK)
    first, _ = stage.record()
    first.copy_resource(early, buffer)
    second, _ = stage.record()
    second.copy_resource(late, buffer)

    stage.submit(first)
    stage.queue.update_tile_mappings(buffer, None, None, heap)
    stage.submit(second)
    stage.finish()

    assert early.map().view()[0] == 0
    assert late.map().view()[0] == 1


def test_RS7_several_buffers_share_tiles(stage: Stage) -> None:
    """One allocation as three buffers, each in a different state, as TensorFlow does."""
    heap = stage.device.create_heap(HeapDesc(2 * TILE, flags=HeapFlags.ALLOW_ONLY_BUFFERS))
    uav, source, target = (reserve(stage, 2) for _ in range(3))
    for each in (uav, source, target):
        stage.queue.update_tile_mappings(each, [START(0)], [SIZE(2)], heap, [NONE], [0], [2])
    data = np.arange(TILE // 4, dtype=np.uint32)
    commands, _ = stage.record()
    commands.copy_buffer_region(target, 0, stage.upload(data), 0, TILE)
    commands.resource_barrier(ResourceBarrier.aliasing(None, None))
    commands.copy_buffer_region(target, TILE, source, 0, TILE)
    commands.resource_barrier([ResourceBarrier.uav(None), ResourceBarrier.aliasing(None, None)])
    stage.run(commands)

    np.testing.assert_array_equal(stage.read(uav).view(np.uint32), np.tile(data, 2))


def test_RS7_heap_must_take_buffers(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(TILE, flags=HeapFlags.DENY_BUFFERS))

    with fails("RS7", INVALID, 493):
        stage.queue.update_tile_mappings(reserve(stage, 1), None, None, heap)


@pytest.mark.dmlemu(expect=["MEM_NULL_TILE"])
def test_RS8_null_tiles_read_0_and_drop_writes(stage: Stage) -> None:
    buffer = reserve(stage, 1)
    commands, _ = stage.record()
    commands.copy_resource(buffer, stage.upload(np.full(TILE, 7, np.uint8)))
    stage.run(commands)

    assert seen(stage, buffer) == [0]


@pytest.mark.layer("OBJECT_DELETED_IN_USE")
def test_RS8_heap_released_while_mapped(runtime: Stage) -> None:
    """The bytes are kept; legal only while they are not accessed."""
    stage = runtime
    heap = numbered(stage, 1)
    buffer = reserve(stage, 1)
    stage.queue.update_tile_mappings(buffer, None, None, heap)
    stage.finish()
    heap.close()

    assert seen(stage, buffer) == [1]


@pytest.mark.parametrize("strictness", [Strictness.DEBUG, Strictness.STRICT])
def test_RS5_bad_mapping_keeps_the_device(strictness: Strictness) -> None:
    stage = Stage(strictness)
    with fails("RS5", INVALID, 493):
        stage.queue.update_tile_mappings(reserve(stage, 1), None, None, None)
    assert stage.device.get_device_removed_reason() is HResult.S_OK


@pytest.mark.layer("TILE_MAPPING")
def test_RS5_bad_mapping_removes_a_runtime_device(runtime: Stage) -> None:
    stage = runtime
    stage.queue.update_tile_mappings(reserve(stage, 1), None, None, None)
    assert stage.device.get_device_removed_reason() is INVALID_CALL


def test_RS_copy_tile_mappings_is_not_emulated(stage: Stage) -> None:
    with pytest.raises(Error, match="CopyTileMappings is not emulated"):
        stage.queue.copy_tile_mappings()


# --- sizes ---


@pytest.mark.dmlemu(expect=["RES_DESC"])
def test_AI1_allocation_info(stage: Stage) -> None:
    info = stage.device.get_resource_allocation_info

    assert info(0, []) == type(info(0, []))(0, 1)
    one = info(0, [ResourceDesc.buffer(1)])
    assert (one.size_in_bytes, one.alignment) == (TILE, TILE)
    several = info(0, [ResourceDesc.buffer(TILE + 1), ResourceDesc.buffer(5), ResourceDesc.buffer(TILE)])
    assert (several.size_in_bytes, several.alignment) == (4 * TILE, TILE)
    assert info(0, [GOOD, replace(GOOD, height=2)]).size_in_bytes == 2**64 - 1


@pytest.mark.dmlemu(expect=["RES_DESC"])
def test_AI1_an_invalid_alignment_is_reported(stage: Stage) -> None:
    info = stage.device.get_resource_allocation_info(0, [replace(GOOD, alignment=4096)])
    assert (info.size_in_bytes, info.alignment) == (2**64 - 1, TILE)
    assert remarks(stage) == [721]


def test_AI1_the_runtime_says_nothing_of_an_invalid_alignment() -> None:
    runtime = Stage(Strictness.RUNTIME)
    info = runtime.device.get_resource_allocation_info(0, [replace(GOOD, alignment=4096)])
    assert info.size_in_bytes == 2**64 - 1 and not list(runtime.device.reports)


def _texture(width: int, height: int, format: Format, **more: Any) -> ResourceDesc:
    plain = replace(GOOD, dimension=ResourceDimension.TEXTURE2D, layout=TextureLayout.UNKNOWN)
    return replace(plain, width=width, height=height, format=format, **more)


MIB = 1 << 20


@pytest.mark.parametrize(
    "desc, size, alignment",
    [
        (_texture(1024, 1024, Format.R8G8B8A8_UNORM), 4 * MIB, TILE),
        (_texture(1024, 1024, Format.R32G32B32A32_FLOAT, depth_or_array_size=3), 48 * MIB, TILE),
        (_texture(1024, 1024, Format.BC1_UNORM), MIB // 2, TILE),
        (_texture(1024, 1024, Format.BC7_UNORM), MIB, TILE),
        (_texture(1023, 1021, Format.BC3_UNORM), MIB, TILE),
        (_texture(1024, 1024, Format.D32_FLOAT_S8X24_UINT), 8 * MIB, TILE),
        (_texture(1024, 1024, Format.R10G10B10A2_UNORM), 4 * MIB, TILE),
        (_texture(1024, 1024, Format.R9G9B9E5_SHAREDEXP), 4 * MIB, TILE),
        (_texture(2, 2, Format.A8_UNORM), TILE, TILE),
        (_texture(2, 2, Format.A8_UNORM, alignment=4096), 4096, 4096),
        (_texture(64, 64, Format.R32_FLOAT, alignment=4096), 16384, 4096),
        (_texture(512, 512, Format.R32_FLOAT, mip_levels=2), MIB + MIB // 4, TILE),
        (_texture(512, 512, Format.R8_UNORM, sample_desc=SampleDesc(4, 0)), 4 * MIB, 4 * MIB),
        (_texture(512, 512, Format.R8_UNORM, sample_desc=SampleDesc(4, 0), alignment=TILE), MIB, TILE),
    ],
)
def test_TX1_sizes_of_textures(stage: Stage, desc: ResourceDesc, size: int, alignment: int) -> None:
    info = stage.device.get_resource_allocation_info(0, [desc])
    assert (info.size_in_bytes, info.alignment) == (size, alignment)


def test_TX1_a_whole_chain_of_mips(stage: Stage) -> None:
    size = stage.device.get_resource_allocation_info
    whole = size(0, [_texture(256, 256, Format.R32_FLOAT, mip_levels=0)])
    assert whole == size(0, [_texture(256, 256, Format.R32_FLOAT, mip_levels=9)])


def test_TX1_textures_and_buffers_lie_one_behind_the_other(stage: Stage) -> None:
    descs = [ResourceDesc.buffer(5), _texture(512, 512, Format.R8_UNORM, sample_desc=SampleDesc(8, 0))]
    whole, places = stage.device.get_resource_allocation_info1(0, descs)
    assert [each.offset for each in places] == [0, 4 * MIB] and whole.size_in_bytes == 8 * MIB


@pytest.mark.dmlemu(expect=["RES_DESC"])
@pytest.mark.parametrize(
    "change, message_id",
    [
        ({"width": 16385}, 597),
        ({"height": 0}, 597),
        ({"depth_or_array_size": 2049}, 597),
        ({"depth_or_array_size": 0}, 597),
        ({"format": Format.UNKNOWN}, 738),
        ({"format": 9999}, 738),
        ({"mip_levels": 12}, 722),
        ({"sample_desc": SampleDesc(3, 0)}, 723),
        ({"sample_desc": SampleDesc(4, 0), "mip_levels": 2}, 723),
        ({"layout": TextureLayout.ROW_MAJOR}, 724),
        ({"alignment": 4096}, 721),
        ({"alignment": 512}, 721),
    ],
)
def test_TX1_invalid_textures(stage: Stage, change: dict[str, Any], message_id: int) -> None:
    desc = replace(_texture(1024, 1024, Format.R8G8B8A8_UNORM), **change)
    assert stage.device.get_resource_allocation_info(0, [desc]).size_in_bytes == 2**64 - 1
    assert remarks(stage) == [message_id]


def test_TX1_other_textures_are_refused_by_name(stage: Stage) -> None:
    video = _texture(16, 16, Format.NV12)
    for desc in (replace(video, dimension=ResourceDimension.TEXTURE3D), video):
        with pytest.raises(Error) as refused:
            stage.device.get_resource_allocation_info(0, [desc])
        assert refused.value.hresult is HResult.E_NOTIMPL
    with pytest.raises(Error, match="A resource of dimension TEXTURE2D is not emulated"):
        create(stage, _texture(16, 16, Format.R8_UNORM), "committed")


# --- reserved buffers: tiles ---


def test_RS9_the_tiles_of_a_buffer(stage: Stage) -> None:
    buffer = create(stage, replace(GOOD, width=3 * TILE + 1), "reserved")
    tiling = stage.device.get_resource_tiling(buffer)
    assert tiling.num_tiles_for_entire_resource == 4
    assert tiling.standard_tile_shape_for_non_packed_mips == d3d12.TileShape(65536, 1, 1)
    assert tiling.packed_mip_desc == d3d12.PackedMipInfo()
    assert tiling.subresource_tilings == (d3d12.SubresourceTiling(4, 1, 1, 0),)
    assert stage.device.get_resource_tiling(buffer, 1).subresource_tilings == ()
    assert stage.device.get_resource_tiling(buffer, 0, 0).subresource_tilings == ()


def test_RS9_what_is_not_reserved_has_no_tiles(stage: Stage) -> None:
    tiling = stage.device.get_resource_tiling(stage.buffer())
    assert tiling.num_tiles_for_entire_resource == 0 and tiling.subresource_tilings == ()
    with pytest.raises(Error):
        stage.device.get_resource_tiling(None)  # type: ignore[arg-type]


def test_AI1_more_bytes_than_a_size_can_say(stage: Stage) -> None:
    largest = ResourceDesc.buffer(2**64 - 1)
    half = ResourceDesc.buffer(2**63)
    for descs in ([largest], [half, half]):
        assert stage.device.get_resource_allocation_info(0, descs).size_in_bytes == 2**64 - 1


@pytest.mark.parametrize("width, pitch", [(1, 256), (256, 256), (257, 512)])
def test_CF1_footprint_of_a_buffer(stage: Stage, width: int, pitch: int) -> None:
    footprints = stage.device.get_copyable_footprints(ResourceDesc.buffer(width), 0, 1, 512)
    (layout,) = footprints.layouts

    assert layout.offset == 512
    assert (layout.footprint.format, layout.footprint.width) == (Format.UNKNOWN, width)
    assert (layout.footprint.height, layout.footprint.depth, layout.footprint.row_pitch) == (1, 1, pitch)
    assert (footprints.num_rows, footprints.row_size_in_bytes) == ((1,), (width,))
    assert footprints.total_bytes == width


@pytest.mark.dmlemu(expect=["RES_DESC"])
@pytest.mark.parametrize(
    "desc, first, count",
    [
        (replace(GOOD, height=2), 0, 1),
        (GOOD, 1, 1),
        (GOOD, 0, 2),
        (ResourceDesc.buffer(2**32 - 255), 0, 1),  # its row pitch is no UINT
    ],
)
def test_CF1_bad_arguments_fill_with_ones(stage: Stage, desc: ResourceDesc, first: int, count: int) -> None:
    footprints = stage.device.get_copyable_footprints(desc, first, count)

    assert footprints.total_bytes == 2**64 - 1
    assert footprints.layouts[0].footprint.width == 2**32 - 1
    assert footprints.row_size_in_bytes == (2**64 - 1,) * count
    assert stage.device.info_queue.get_num_stored_messages() == 1
