"""GetResourceAllocationInfo for buffers and TEXTURE2D, GetCopyableFootprints for buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...errors import Error, HResult
from ..types.arguments import integer
from ..types.enums import Format, ResourceDimension
from ..types.structs import (
    TEXTURE_DATA_PITCH_ALIGNMENT,
    UINT64_MAX,
    CopyableFootprints,
    PlacedSubresourceFootprint,
    ResourceAllocationInfo,
    ResourceAllocationInfo1,
    ResourceDesc,
    SubresourceFootprint,
)
from .checks import TILE, check_resource_desc, round_up
from .rows import CF1
from .texture_sizes import texture_size

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

_UINT16_MAX = 2**16 - 1
_UINT32_MAX = 2**32 - 1


def resource_allocation_infos(
    context: DeviceContext, descs: Sequence[ResourceDesc]
) -> tuple[ResourceAllocationInfo, tuple[ResourceAllocationInfo1, ...]]:
    """The descs placed consecutively, each aligned up, and the place of each.

    An invalid one, which is reported, makes the size of all 2**64 - 1, and there are no places (AI1); so do
    more bytes than a size can say.
    """
    end, alignment, places = 0, 1, []
    for desc in descs:
        try:
            size, own = _size_and_alignment(desc, not context.raises)
        except Error as error:
            if error.hresult is HResult.E_NOTIMPL:
                raise
            context.keep(error)
            return ResourceAllocationInfo(UINT64_MAX, TILE), ()
        start = round_up(end, own)
        places.append(ResourceAllocationInfo1(start, own, size))
        end, alignment = start + size, max(alignment, own)
    total = round_up(end, alignment)
    if total > UINT64_MAX:
        return ResourceAllocationInfo(UINT64_MAX, TILE), ()
    return ResourceAllocationInfo(total, alignment), tuple(places)


def _size_and_alignment(desc: ResourceDesc, is_runtime: bool) -> tuple[int, int]:
    """Of one resource; raises for a wrong desc."""
    operation = "GetResourceAllocationInfo"
    if isinstance(desc, ResourceDesc) and desc.dimension == ResourceDimension.TEXTURE2D:
        return texture_size(desc, operation)
    desc = check_resource_desc(desc, operation, is_runtime)
    return round_up(desc.width, TILE), desc.alignment


def copyable_footprints(
    context: DeviceContext,
    desc: ResourceDesc,
    first_subresource: int,
    num_subresources: int,
    base_offset: int,
) -> CopyableFootprints:
    """The footprint of a buffer; all fields are all ones when the arguments are invalid (CF1)."""
    first_subresource = integer(first_subresource, "first_subresource")
    num_subresources = integer(num_subresources, "num_subresources")
    base_offset = integer(base_offset, "base_offset")
    try:
        desc = check_resource_desc(desc, "GetCopyableFootprints", not context.raises)
        _check_footprint_range(desc, first_subresource, num_subresources)
    except Error as error:
        if error.hresult is HResult.E_NOTIMPL:
            raise
        count = min(max(0, num_subresources), _UINT16_MAX)
        ones = SubresourceFootprint(Format.UNKNOWN, _UINT32_MAX, _UINT32_MAX, _UINT32_MAX, _UINT32_MAX)
        context.keep(error)
        return CopyableFootprints(
            (PlacedSubresourceFootprint(UINT64_MAX, ones),) * count,
            (_UINT32_MAX,) * count,
            (UINT64_MAX,) * count,
            UINT64_MAX,
        )
    if num_subresources == 0:
        return CopyableFootprints((), (), (), 0)
    row_pitch = round_up(desc.width, TEXTURE_DATA_PITCH_ALIGNMENT)
    footprint = SubresourceFootprint(Format.UNKNOWN, desc.width, 1, 1, row_pitch)
    layout = PlacedSubresourceFootprint(base_offset, footprint)
    return CopyableFootprints((layout,), (1,), (desc.width,), desc.width)


def _check_footprint_range(desc: ResourceDesc, first: int, count: int) -> None:
    if first != 0 or count not in (0, 1):
        raise CF1.first_subresource(given=f"[{first}, {first + count})")
    if round_up(desc.width, TEXTURE_DATA_PITCH_ALIGNMENT) > _UINT32_MAX:
        raise CF1.width(given=desc.width, expected=f"at most {_UINT32_MAX // 256 * 256}")
