"""UpdateTileMappings: regions of a reserved buffer meet ranges of a heap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dmlemu_hw.allocation import Heap as HardwareHeap
from dmlemu_hw.frozen import Frozen

from ..errors import Error, HResult
from .arguments import instance, integer, integers, sequence
from .enums import HeapFlags, MessageId, TileMappingFlags, TileRangeFlags
from .info_queue import failure, spell
from .resource import Heap, Resource
from .rules import TILE, round_up
from .structs import TiledResourceCoordinate, TileRegionSize

if TYPE_CHECKING:
    from .device_context import DeviceContext

_Struct = TypeVar("_Struct")
Region = tuple[int, int, "HardwareHeap | None", int, bool]  # tile, count, heap, heap tile, reuse
_Range = tuple[int, int, int]  # flags, heap tile, count

_NONE = int(TileRangeFlags.NONE)
_NULL = int(TileRangeFlags.NULL)
_SKIP = int(TileRangeFlags.SKIP)
_REUSE = int(TileRangeFlags.REUSE_SINGLE_TILE)


class TileMapping(Frozen):
    """The arguments of ``UpdateTileMappings``."""

    resource: Resource
    starts: Sequence[TiledResourceCoordinate] | None
    sizes: Sequence[TileRegionSize] | None
    heap: Heap | None
    range_flags: Sequence[int] | None
    heap_starts: Sequence[int] | None
    counts: Sequence[int] | None
    flags: TileMappingFlags


def _bad(rule: str, message: str, field: str, given: Any, expected: Any, object: Any = "") -> Error:
    return failure(
        "TILE_MAPPING",
        message,
        operation="UpdateTileMappings",
        rule=f"{rule}: ID3D12CommandQueue::UpdateTileMappings",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
        field=field,
        given=given,
        expected=expected,
        object=object,
    )


def check_mappings(context: DeviceContext, mapping: TileMapping) -> list[Region]:
    """RS4, RS5, RS7: the mappings to be made, in order; raises for arguments that do not fit."""
    resource = mapping.resource
    if resource is None:
        raise _bad("RS4", "No resource is given.", "pResource", None, "a reserved resource")
    context.check_child(resource, Resource, "UpdateTileMappings", "pResource")
    resource.check_open("UpdateTileMappings")
    if resource.created_as != "reserved":
        message = f"{resource} is a {resource.created_as} resource: it has no tiles."
        raise _bad("RS4", message, "pResource", resource.created_as, "reserved", resource)
    if integer(mapping.flags, "flags") not in (TileMappingFlags.NONE, TileMappingFlags.NO_HAZARD):
        raise _bad(
            "RS5",
            f"Flags ({spell(mapping.flags)}) are not known.",
            "Flags",
            mapping.flags,
            "NONE or NO_HAZARD",
        )
    regions = _regions(mapping)
    total = sum(count for _, count in regions)
    ranges = _ranges(mapping, total)
    given = sum(count for _, _, count in ranges)
    if given > total and context.is_runtime:
        ranges = list(_first_tiles(ranges, total))
    elif given != total:
        message = f"The heap ranges hold {given} tiles and the resource regions {total}."
        raise _bad("RS5", message, "pRangeTileCounts", given, total, resource)
    _check_heap(context, mapping, ranges)
    heap = None if mapping.heap is None else mapping.heap.hardware
    return list(_join(regions, ranges, heap))


def _regions(mapping: TileMapping) -> list[tuple[int, int]]:
    """The regions as (first tile, tiles)."""
    tiles = round_up(mapping.resource.width, TILE) // TILE
    starts = _structs(mapping.starts, TiledResourceCoordinate, "pResourceRegionStartCoordinates")
    sizes = _structs(mapping.sizes, TileRegionSize, "pResourceRegionSizes")
    if starts is None:
        if sizes is None:
            return [(0, tiles)]
        if len(sizes) != 1:
            message = f"There are {len(sizes)} region sizes and no region starts."
            raise _bad("RS5", message, "pResourceRegionStartCoordinates", None, f"{len(sizes)} coordinates")
        starts = [TiledResourceCoordinate()]
    if sizes is None:
        sizes = [TileRegionSize(1)] * len(starts)
    if len(starts) != len(sizes):
        message = f"There are {len(starts)} region starts and {len(sizes)} region sizes."
        raise _bad("RS5", message, "pResourceRegionSizes", len(sizes), len(starts))
    if not starts:
        raise _bad("RS5", "There are no regions.", "NumResourceRegions", 0, "at least 1")
    rows = enumerate(zip(starts, sizes, strict=True))
    return [_region(mapping.resource, i, start, size, tiles) for i, (start, size) in rows]


def _region(
    resource: Resource, index: int, start: TiledResourceCoordinate, size: TileRegionSize, tiles: int
) -> tuple[int, int]:
    field = f"pResourceRegionStartCoordinates[{index}]"
    if start.subresource != 0 or start.y != 0 or start.z != 0:
        given = f"X {start.x}, Y {start.y}, Z {start.z}, Subresource {start.subresource}"
        message = "A coordinate leaves the one row of tiles that a buffer has."
        raise _bad("RS4", message, field, given, "Y, Z and Subresource 0")
    count = size.num_tiles
    if size.use_box and size.width * size.height * size.depth != count:
        given = f"{size.width} x {size.height} x {size.depth}"
        message = f"The box of a region does not hold its NumTiles ({count})."
        raise _bad("RS4", message, f"pResourceRegionSizes[{index}]", given, count)
    if size.use_box and (size.height != 1 or size.depth != 1):
        message = "The box of a region leaves the one row of tiles that a buffer has."
        raise _bad("RS4", message, f"pResourceRegionSizes[{index}]", f"{size.height} x {size.depth}", "1 x 1")
    if start.x < 0 or count < 1 or start.x + count > tiles:
        size_of_all = f"{tiles} of 65536 bytes"
        message = f"Tiles [{start.x}, {start.x + count}) do not lie in {resource}, which has {size_of_all}."
        given, expected = f"[{start.x}, {start.x + count})", f"within [0, {tiles})"
        raise _bad("RS4", message, field, given, expected, resource)
    return start.x, count


def _ranges(mapping: TileMapping, total: int) -> list[_Range]:
    """The heap ranges, with the defaults of what is None."""
    range_flags, heap_starts, counts = (
        None if each is None else integers(each, field)
        for each, field in (
            (mapping.range_flags, "pRangeFlags"),
            (mapping.heap_starts, "pHeapRangeStartOffsets"),
            (mapping.counts, "pRangeTileCounts"),
        )
    )
    given = [each for each in (range_flags, heap_starts, counts) if each is not None]
    number = len(given[0]) if given else 1
    if any(len(each) != number for each in given):
        message = "The arrays of heap ranges differ in length."
        raise _bad(
            "RS5", message, "NumRanges", " and ".join(str(len(each)) for each in given), "equal lengths"
        )
    flags = [_NONE] * number if range_flags is None else range_flags
    for i, flag in enumerate(flags):
        if flag not in (_NONE, _NULL, _SKIP, _REUSE):
            message = f"Range flags ({spell(TileRangeFlags(flag))}) are not one of those allowed."
            raise _bad(
                "RS5",
                message,
                f"pRangeFlags[{i}]",
                TileRangeFlags(flag),
                "NONE, NULL, SKIP or REUSE_SINGLE_TILE",
            )
    if heap_starts is None:
        if number > 1 and any(flag in (_NONE, _REUSE) for flag in flags):
            raise _bad(
                "RS5", "No heap offsets are given.", "pHeapRangeStartOffsets", None, "an offset per range"
            )
        heap_starts = [0] * number
    if counts is None:
        counts = [total] if number == 1 else [1] * number
    for i, count in enumerate(counts):
        if count < 0:
            message = f"The number of tiles of a range ({count}) is negative."
            raise _bad("RS5", message, f"pRangeTileCounts[{i}]", count, "at least 0")
    return list(zip(flags, heap_starts, counts, strict=True))


def _first_tiles(ranges: list[_Range], total: int) -> Iterator[_Range]:
    """The ranges without what follows their first ``total`` tiles."""
    for flag, start, count in ranges:
        if total:
            taken = min(count, total)
            yield flag, start, taken
            total -= taken


def _structs(value: Sequence[_Struct] | None, kind: type[_Struct], field: str) -> list[_Struct] | None:
    if value is None:
        return None
    return [instance(each, kind, f"{field}[{i}]") for i, each in enumerate(sequence(value, field))]


def _check_heap(context: DeviceContext, mapping: TileMapping, ranges: list[_Range]) -> None:
    used = [(i, each) for i, each in enumerate(ranges) if each[0] in (_NONE, _REUSE)]
    heap = mapping.heap
    if heap is None:
        if used:
            message = "No heap is given, and a range maps tiles of one."
            raise _bad("RS5", message, "pHeap", None, "a heap, or only ranges with flag NULL or SKIP")
        return
    context.check_child(heap, Heap, "UpdateTileMappings", "pHeap")
    if heap.get_desc().flags & HeapFlags.DENY_BUFFERS:
        raise _bad(
            "RS7",
            f"{heap} denies buffers.",
            "pHeap",
            heap.get_desc().flags,
            "a heap without DENY_BUFFERS",
            heap,
        )
    tiles = round_up(heap.get_desc().size_in_bytes, TILE) // TILE
    for i, (flag, start, count) in used:
        needed = 1 if flag == _REUSE else count
        if start < 0 or count < 1 or start + needed > tiles:
            message = f"Tiles [{start}, {start + needed}) do not lie in {heap} of {tiles} tiles."
            field = f"pHeapRangeStartOffsets[{i}]"
            raise _bad("RS5", message, field, f"[{start}, {start + needed})", f"within [0, {tiles})", heap)


def _join(
    regions: list[tuple[int, int]], ranges: list[_Range], heap: HardwareHeap | None
) -> Iterator[Region]:
    """Walks both rows side by side and cuts them where either one is cut."""
    rest = list(reversed(ranges))
    for tile, count in regions:
        while count:
            flag, heap_tile, left = rest.pop()
            taken = min(count, left)
            if taken and flag != _SKIP:
                source = None if flag == _NULL else heap
                yield tile, taken, source, heap_tile if source is not None else 0, flag == _REUSE
            tile, count = tile + taken, count - taken
            if left > taken:
                rest.append((flag, heap_tile if flag == _REUSE else heap_tile + taken, left - taken))
