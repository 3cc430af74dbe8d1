"""Heaps: rules HP1 to HP10."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dmlemu import HResult, Strictness
from dmlemu.d3d12 import (
    CpuPageProperty,
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    MemoryPool,
    ResourceDesc,
    ResourceStates,
)

from .stage import INVALID, STATE, Stage, fails

GOOD = HeapDesc(65536)
CUSTOM = HeapType.CUSTOM
WRITE_BACK, WRITE_COMBINE, NOT_AVAILABLE, UNKNOWN = (
    CpuPageProperty.WRITE_BACK,
    CpuPageProperty.WRITE_COMBINE,
    CpuPageProperty.NOT_AVAILABLE,
    CpuPageProperty.UNKNOWN,
)
L0, L1 = MemoryPool.L0, MemoryPool.L1


def commit(stage: Stage, properties: HeapProperties, flags: HeapFlags = HeapFlags.NONE) -> None:
    state = {HeapType.UPLOAD: STATE.GENERIC_READ, HeapType.READBACK: STATE.COPY_DEST}.get(
        properties.type, STATE.COMMON
    )
    stage.device.create_committed_resource(properties, flags, ResourceDesc.buffer(256), state)


@pytest.mark.parametrize("size", [0, -1])
def test_HP1_size(stage: Stage, size: int) -> None:
    with fails("HP1", INVALID, 624):
        stage.device.create_heap(HeapDesc(size))
    stage.device.create_heap(GOOD)


def test_HP1_odd_size_is_legal_and_reported_as_asked(stage: Stage) -> None:
    heap = stage.device.create_heap(HeapDesc(100_001))

    assert heap.get_desc().size_in_bytes == 100_001
    stage.device.create_placed_resource(heap, 0, ResourceDesc.buffer(100_001), STATE.COMMON)


@pytest.mark.parametrize("alignment", [1, 4096, 131072, 8388608])
def test_HP2_alignment(stage: Stage, alignment: int) -> None:
    with fails("HP2", INVALID, 629):
        stage.device.create_heap(replace(GOOD, alignment=alignment))
    stage.device.create_heap(GOOD)


@pytest.mark.parametrize("alignment, told", [(0, 65536), (65536, 65536), (4194304, 4194304)])
def test_HP2_legal_alignments(stage: Stage, alignment: int, told: int) -> None:
    heap = stage.device.create_heap(replace(GOOD, alignment=alignment))

    assert heap.get_desc().alignment == told


@pytest.mark.parametrize(
    "properties, create_heap_id, committed_id",
    [
        (HeapProperties(9), 625, 635),  # type: ignore[arg-type]
        (HeapProperties(HeapType.DEFAULT, 7), 626, 636),  # type: ignore[arg-type]
        (HeapProperties(HeapType.DEFAULT, UNKNOWN, 7), 627, 637),  # type: ignore[arg-type]
        (HeapProperties(HeapType.DEFAULT, WRITE_BACK), 628, 638),
        (HeapProperties(HeapType.UPLOAD, UNKNOWN, L0), 628, 638),
        (HeapProperties(HeapType.GPU_UPLOAD, WRITE_COMBINE), 628, 638),
        (HeapProperties(CUSTOM, UNKNOWN, L0), 628, 638),
        (HeapProperties(CUSTOM, WRITE_BACK), 628, 638),
    ],
)
def test_HP3_properties(
    stage: Stage, properties: HeapProperties, create_heap_id: int, committed_id: int
) -> None:
    with fails("HP3", INVALID, create_heap_id):
        stage.device.create_heap(replace(GOOD, properties=properties))
    with fails("HP3", INVALID, committed_id):
        commit(stage, properties)
    stage.buffer()


def test_HP4_video_memory_is_never_write_back(stage: Stage) -> None:
    properties = HeapProperties(CUSTOM, WRITE_BACK, L1)

    with fails("HP4", INVALID, 628):
        stage.device.create_heap(replace(GOOD, properties=properties))
    with fails("HP4", INVALID, 638):
        commit(stage, properties)


@pytest.mark.parametrize(
    "page, pool",
    [(NOT_AVAILABLE, L0), (WRITE_COMBINE, L0), (WRITE_BACK, L0), (NOT_AVAILABLE, L1), (WRITE_COMBINE, L1)],
)
def test_HP4_legal_custom_heaps(stage: Stage, page: CpuPageProperty, pool: MemoryPool) -> None:
    properties = HeapProperties(CUSTOM, page, pool)

    stage.device.create_heap(replace(GOOD, properties=properties))
    commit(stage, properties)


def test_HP5_denying_everything(stage: Stage) -> None:
    flags = HeapFlags.DENY_BUFFERS | HeapFlags.DENY_RT_DS_TEXTURES | HeapFlags.DENY_NON_RT_DS_TEXTURES

    with fails("HP5", INVALID, 631):
        stage.device.create_heap(replace(GOOD, flags=flags))


def test_HP5_unknown_flags(stage: Stage) -> None:
    with fails("HP5", INVALID, 630):
        stage.device.create_heap(replace(GOOD, flags=HeapFlags(0x40000)))
    with fails("HP5", INVALID, 639):
        commit(stage, HeapProperties(), HeapFlags(0x40000))


@pytest.mark.parametrize(
    "flags",
    [
        HeapFlags.ALLOW_ALL_BUFFERS_AND_TEXTURES,
        HeapFlags.ALLOW_ONLY_BUFFERS,
        HeapFlags.ALLOW_ONLY_NON_RT_DS_TEXTURES,
        HeapFlags.DENY_BUFFERS,
    ],
)
def test_HP5_tier_2_heaps_may_mix(stage: Stage, flags: HeapFlags) -> None:
    assert stage.device.create_heap(replace(GOOD, flags=flags)).get_desc().flags == flags


def test_HP6_display_and_deny_flags(stage: Stage) -> None:
    with fails("HP6", INVALID, 631):
        stage.device.create_heap(replace(GOOD, flags=HeapFlags.ALLOW_DISPLAY))
    for flags in (HeapFlags.ALLOW_ONLY_BUFFERS, HeapFlags.DENY_BUFFERS, HeapFlags.ALLOW_DISPLAY):
        with fails("HP6", INVALID, 640):
            commit(stage, HeapProperties(), flags)


@pytest.mark.parametrize("field", ["creation_node_mask", "visible_node_mask"])
def test_HP7_node_masks(stage: Stage, field: str) -> None:
    with fails("HP7"):
        stage.device.create_heap(replace(GOOD, properties=replace(HeapProperties(), **{field: 2})))
    with fails("HP7"):
        commit(stage, replace(HeapProperties(), **{field: 3}))


def test_HP7_masks_read_1(stage: Stage) -> None:
    properties = stage.device.create_heap(GOOD).get_desc().properties
    committed, _ = stage.buffer().get_heap_properties()

    assert (properties.creation_node_mask, properties.visible_node_mask) == (1, 1)
    assert (committed.creation_node_mask, committed.visible_node_mask) == (1, 1)


@pytest.mark.parametrize(
    "kind, page, pool",
    [
        (HeapType.DEFAULT, NOT_AVAILABLE, L1),
        (HeapType.UPLOAD, WRITE_COMBINE, L0),
        (HeapType.READBACK, WRITE_BACK, L0),
        (HeapType.GPU_UPLOAD, WRITE_COMBINE, L1),
    ],
)
def test_HP8_custom_heap_properties(
    stage: Stage, kind: HeapType, page: CpuPageProperty, pool: MemoryPool
) -> None:
    properties = stage.device.get_custom_heap_properties(0, kind)

    assert properties == HeapProperties(CUSTOM, page, pool, 1, 1)
    stage.device.create_heap(replace(GOOD, properties=properties))


@pytest.mark.parametrize("kind, message_id", [(CUSTOM, 644), (9, 643)])
def test_HP8_types_without_properties(stage: Stage, kind: HeapType, message_id: int) -> None:
    with fails("HP8", INVALID, message_id):
        stage.device.get_custom_heap_properties(0, kind)


def test_HP9_no_description(stage: Stage) -> None:
    with fails("HP9", INVALID, 623):
        stage.device.create_heap(None)  # type: ignore[arg-type]
    with fails("HP9", INVALID, 634):
        stage.device.create_committed_resource(
            None,  # type: ignore[arg-type]
            HeapFlags.NONE,
            ResourceDesc.buffer(4),
            STATE.COMMON,
        )


def test_HP10_memory_is_zeroed(stage: Stage) -> None:
    assert not stage.read(stage.buffer(1000)).any()


@pytest.mark.parametrize("strictness, byte", [(Strictness.STRICT, 0xCB), (Strictness.DEBUG, 0)])
def test_HP10_not_zeroed_memory_is_poison_under_strict(strictness: Strictness, byte: int) -> None:
    stage = Stage(strictness)
    buffer = stage.device.create_committed_resource(
        HeapProperties(), HeapFlags.CREATE_NOT_ZEROED, ResourceDesc.buffer(1000), STATE.COMMON
    )
    heap = stage.device.create_heap(replace(GOOD, flags=HeapFlags.CREATE_NOT_ZEROED))
    placed = stage.device.create_placed_resource(heap, 0, ResourceDesc.buffer(1000), ResourceStates.COMMON)

    np.testing.assert_array_equal(stage.read(buffer), byte)
    np.testing.assert_array_equal(stage.read(placed), byte)


def test_RB10_out_of_memory() -> None:
    stage = Stage(memory=1 << 20)
    full = stage.device.create_heap(HeapDesc(1 << 20))

    with fails("HP1", HResult.E_OUTOFMEMORY, 633):
        stage.device.create_heap(GOOD)
    with fails("RB10", HResult.E_OUTOFMEMORY, 603):
        stage.buffer()
    full.close()
    stage.buffer()


def test_RB10_beyond_the_address_space(stage: Stage) -> None:
    with fails("RB10", HResult.E_OUTOFMEMORY, 603):
        stage.buffer(2**63)
    with fails("RB10", HResult.E_OUTOFMEMORY, 603):
        stage.device.create_reserved_resource(ResourceDesc.buffer(2**60), STATE.COMMON)
