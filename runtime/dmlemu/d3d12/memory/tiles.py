"""UpdateTileMappings: matches regions of a reserved buffer with ranges of a heap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from dmlemu_hw.allocation import Heap as HardwareHeap

from ...errors import number_of
from ...frozen import Frozen
from ..types.arguments import instance, integer, integers, sequence
from ..types.enums import HeapFlags, TileMappingFlags, TileRangeFlags
from ..types.structs import (
    PackedMipInfo,
    ResourceTiling,
    SubresourceTiling,
    TiledResourceCoordinate,
    TileRegionSize,
    TileShape,
)
from .checks import TILE, round_up
from .resource import Heap, Resource
from .rows import RS4, RS5, RS7

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

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


def resource_tiling(resource: Resource, first: int, count: int) -> ResourceTiling:
    """GetResourceTiling (RS9): nothing for what has no tiles."""
    if resource.created_as != "reserved":
        return ResourceTiling(0, PackedMipInfo(), TileShape(), ())
    tiles = round_up(resource.width, TILE) // TILE
    subresources = (SubresourceTiling(tiles, 1, 1, 0),)
    wanted = subresources[first : first + count]
    return ResourceTiling(tiles, PackedMipInfo(), TileShape(TILE, 1, 1), wanted)


def check_mappings(context: DeviceContext, mapping: TileMapping) -> list[Region]:
    """RS4, RS5, RS7: the mappings to be made, in order; raises for invalid arguments."""
    resource = mapping.resource
    if resource is None:
        raise RS4.resource()
    context.check_child(resource, Resource, "UpdateTileMappings", "pResource")
    resource.check_open("UpdateTileMappings")
    if resource.created_as != "reserved":
        raise RS4.mapping(resource, given=resource.created_as)
    if integer(mapping.flags, "flags") not in (TileMappingFlags.NONE, TileMappingFlags.NO_HAZARD):
        raise RS5.flags(given=mapping.flags)
    regions = _regions(mapping)
    total = sum(count for _, count in regions)
    ranges = _ranges(mapping, total)
    given = sum(count for _, _, count in ranges)
    if given != total:
        error = RS5.sums_differ(
            resource,
            given=number_of(given, "tile"),
            expected=number_of(total, "tile"),
            range_tiles=given,
            region_tiles=total,
        )
        if given < total:
            raise error
        context.object_to(error)
        ranges = list(_first_tiles(ranges, total))
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
            raise RS5.resource_region_start_coordinates(
                expected=f"{len(sizes)} coordinates", sizes=len(sizes)
            )
        starts = [TiledResourceCoordinate()]
    if sizes is None:
        sizes = [TileRegionSize(1)] * len(starts)
    if len(starts) != len(sizes):
        raise RS5.resource_region_sizes(
            given=number_of(len(sizes), "size"),
            expected=number_of(len(starts), "size"),
            starts=len(starts),
            sizes=len(sizes),
        )
    if not starts:
        raise RS5.num_resource_regions()
    rows = enumerate(zip(starts, sizes, strict=True))
    return [_region(mapping.resource, i, start, size, tiles) for i, (start, size) in rows]


def _region(
    resource: Resource, index: int, start: TiledResourceCoordinate, size: TileRegionSize, tiles: int
) -> tuple[int, int]:
    field = f"pResourceRegionStartCoordinates[{index}]"
    if start.subresource != 0 or start.y != 0 or start.z != 0:
        raise RS4.not_in_the_row(
            field=field, given=f"X {start.x}, Y {start.y}, Z {start.z}, Subresource {start.subresource}"
        )
    count = size.num_tiles
    if size.use_box and size.width * size.height * size.depth != count:
        raise RS4.box_too_small(
            field=f"pResourceRegionSizes[{index}]",
            given=f"{size.width} x {size.height} x {size.depth}",
            expected=number_of(count, "tile"),
            count=count,
        )
    if size.use_box and (size.height != 1 or size.depth != 1):
        raise RS4.box_leaves_the_row(
            field=f"pResourceRegionSizes[{index}]", given=f"{size.height} x {size.depth}"
        )
    if start.x < 0 or count < 1 or start.x + count > tiles:
        raise RS4.past_the_end(
            resource,
            field=field,
            given=f"[{start.x}, {start.x + count})",
            expected=f"within [0, {tiles})",
            tiles=tiles,
        )
    return start.x, count


def _ranges(mapping: TileMapping, total: int) -> list[_Range]:
    """The heap ranges, with defaults for arrays that are None."""
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
        raise RS5.num_ranges(given=f"arrays of {' and '.join(str(len(each)) for each in given)}")
    flags = [_NONE] * number if range_flags is None else range_flags
    for i, flag in enumerate(flags):
        if flag not in (_NONE, _NULL, _SKIP, _REUSE):
            raise RS5.mapping(field=f"pRangeFlags[{i}]", given=TileRangeFlags(flag))
    if heap_starts is None:
        if number > 1 and any(flag in (_NONE, _REUSE) for flag in flags):
            raise RS5.no_offsets()
        heap_starts = [0] * number
    if counts is None:
        counts = [total] if number == 1 else [1] * number
    for i, count in enumerate(counts):
        if count < 0:
            raise RS5.negative_count(field=f"pRangeTileCounts[{i}]", given=count)
    return list(zip(flags, heap_starts, counts, strict=True))


def _first_tiles(ranges: list[_Range], total: int) -> Iterator[_Range]:
    """The ranges, truncated to their first ``total`` tiles."""
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
            raise RS5.no_heap()
        return
    context.check_child(heap, Heap, "UpdateTileMappings", "pHeap")
    if heap.get_desc().flags & HeapFlags.DENY_BUFFERS:
        raise RS7.denies_buffers(heap, given=heap.get_desc().flags)
    tiles = round_up(heap.get_desc().size_in_bytes, TILE) // TILE
    for i, (flag, start, count) in used:
        needed = 1 if flag == _REUSE else count
        if start < 0 or count < 1 or start + needed > tiles:
            raise RS5.past_the_heap(
                heap,
                field=f"pHeapRangeStartOffsets[{i}]",
                given=f"[{start}, {start + needed})",
                expected=f"within [0, {tiles})",
                tiles=tiles,
            )


def _join(
    regions: list[tuple[int, int]], ranges: list[_Range], heap: HardwareHeap | None
) -> Iterator[Region]:
    """Splits both lists at the boundaries of either."""
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
