"""UpdateTileMappings: matches regions of a reserved buffer with ranges of a heap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dmlemu_hw.allocation import Heap as HardwareHeap

from ...errors import number_of
from ...frozen import Frozen
from ..core.info_queue import refusal
from ..types.arguments import instance, integer, integers, sequence
from ..types.enums import HeapFlags, MessageId, TileMappingFlags, TileRangeFlags
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
from .rows import TILE_MAPPING

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


_refused = partial(
    refusal,
    TILE_MAPPING,
    operation="UpdateTileMappings",
    page="ID3D12CommandQueue::UpdateTileMappings",
    message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
)


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
        raise _refused(
            "No resource is given.",
            field="pResource",
            given=None,
            expected="a reserved resource",
            rule="RS4",
        )
    context.check_child(resource, Resource, "UpdateTileMappings", "pResource")
    resource.check_open("UpdateTileMappings")
    if resource.created_as != "reserved":
        raise _refused(
            f"{resource} is a {resource.created_as} resource: it has no tiles.",
            field="pResource",
            given=resource.created_as,
            expected="reserved",
            object=resource,
            rule="RS4",
        )
    if integer(mapping.flags, "flags") not in (TileMappingFlags.NONE, TileMappingFlags.NO_HAZARD):
        raise _refused(
            "Flags ({given}) are not known.",
            field="Flags",
            given=mapping.flags,
            expected="NONE or NO_HAZARD",
            rule="RS5",
        )
    regions = _regions(mapping)
    total = sum(count for _, count in regions)
    ranges = _ranges(mapping, total)
    given = sum(count for _, _, count in ranges)
    if given != total:
        error = _refused(
            f"The heap ranges hold {given} tiles and the resource regions {total}.",
            field="pRangeTileCounts",
            given=number_of(given, "tile"),
            expected=number_of(total, "tile"),
            object=resource,
            rule="RS5",
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
            raise _refused(
                f"There are {len(sizes)} region sizes and no region starts.",
                field="pResourceRegionStartCoordinates",
                given=None,
                expected=f"{len(sizes)} coordinates",
                rule="RS5",
            )
        starts = [TiledResourceCoordinate()]
    if sizes is None:
        sizes = [TileRegionSize(1)] * len(starts)
    if len(starts) != len(sizes):
        raise _refused(
            f"There are {len(starts)} region starts and {len(sizes)} region sizes.",
            field="pResourceRegionSizes",
            given=number_of(len(sizes), "size"),
            expected=number_of(len(starts), "size"),
            rule="RS5",
        )
    if not starts:
        raise _refused(
            "There are no regions.",
            field="NumResourceRegions",
            given=0,
            expected="at least 1",
            rule="RS5",
        )
    rows = enumerate(zip(starts, sizes, strict=True))
    return [_region(mapping.resource, i, start, size, tiles) for i, (start, size) in rows]


def _region(
    resource: Resource, index: int, start: TiledResourceCoordinate, size: TileRegionSize, tiles: int
) -> tuple[int, int]:
    field = f"pResourceRegionStartCoordinates[{index}]"
    if start.subresource != 0 or start.y != 0 or start.z != 0:
        raise _refused(
            "A coordinate leaves the one row of tiles that a buffer has.",
            field=field,
            given=f"X {start.x}, Y {start.y}, Z {start.z}, Subresource {start.subresource}",
            expected="Y, Z and Subresource 0",
            rule="RS4",
        )
    count = size.num_tiles
    if size.use_box and size.width * size.height * size.depth != count:
        raise _refused(
            f"The box of a region does not hold its NumTiles ({count}).",
            field=f"pResourceRegionSizes[{index}]",
            given=f"{size.width} x {size.height} x {size.depth}",
            expected=number_of(count, "tile"),
            rule="RS4",
        )
    if size.use_box and (size.height != 1 or size.depth != 1):
        raise _refused(
            "The box of a region leaves the one row of tiles that a buffer has.",
            field=f"pResourceRegionSizes[{index}]",
            given=f"{size.height} x {size.depth}",
            expected="1 x 1",
            rule="RS4",
        )
    if start.x < 0 or count < 1 or start.x + count > tiles:
        size_of_all = f"{tiles} of 65536 bytes"
        raise _refused(
            f"Tiles [{start.x}, {start.x + count}) do not lie in {resource}, which has {size_of_all}.",
            field=field,
            given=f"[{start.x}, {start.x + count})",
            expected=f"within [0, {tiles})",
            object=resource,
            rule="RS4",
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
        raise _refused(
            "The arrays of heap ranges differ in length.",
            field="NumRanges",
            given=f"arrays of {' and '.join(str(len(each)) for each in given)}",
            expected="equal lengths",
            rule="RS5",
        )
    flags = [_NONE] * number if range_flags is None else range_flags
    for i, flag in enumerate(flags):
        if flag not in (_NONE, _NULL, _SKIP, _REUSE):
            raise _refused(
                "Range flags ({given}) are not one of those allowed.",
                field=f"pRangeFlags[{i}]",
                given=TileRangeFlags(flag),
                expected="NONE, NULL, SKIP or REUSE_SINGLE_TILE",
                rule="RS5",
            )
    if heap_starts is None:
        if number > 1 and any(flag in (_NONE, _REUSE) for flag in flags):
            raise _refused(
                "No heap offsets are given.",
                field="pHeapRangeStartOffsets",
                given=None,
                expected="an offset per range",
                rule="RS5",
            )
        heap_starts = [0] * number
    if counts is None:
        counts = [total] if number == 1 else [1] * number
    for i, count in enumerate(counts):
        if count < 0:
            raise _refused(
                "The number of tiles of a range ({given}) is negative.",
                field=f"pRangeTileCounts[{i}]",
                given=count,
                expected="at least 0",
                rule="RS5",
            )
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
            raise _refused(
                "No heap is given, and a range maps tiles of one.",
                field="pHeap",
                given=None,
                expected="a heap, or only ranges with flag NULL or SKIP",
                rule="RS5",
            )
        return
    context.check_child(heap, Heap, "UpdateTileMappings", "pHeap")
    if heap.get_desc().flags & HeapFlags.DENY_BUFFERS:
        raise _refused(
            f"{heap} denies buffers.",
            field="pHeap",
            given=heap.get_desc().flags,
            expected="a heap without DENY_BUFFERS",
            object=heap,
            rule="RS7",
        )
    tiles = round_up(heap.get_desc().size_in_bytes, TILE) // TILE
    for i, (flag, start, count) in used:
        needed = 1 if flag == _REUSE else count
        if start < 0 or count < 1 or start + needed > tiles:
            raise _refused(
                f"Tiles [{start}, {start + needed}) do not lie in {heap} of {tiles} tiles.",
                field=f"pHeapRangeStartOffsets[{i}]",
                given=f"[{start}, {start + needed})",
                expected=f"within [0, {tiles})",
                object=heap,
                rule="RS5",
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
