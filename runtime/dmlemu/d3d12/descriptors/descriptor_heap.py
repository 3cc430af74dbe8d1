"""Descriptor heaps, and copying descriptors between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE
from dmlemu_hw.descriptors import DescriptorHeap as HardwareDescriptorHeap

from ...errors import CallSite, call_site, number_of
from ..core.device_child import DeviceChild
from ..core.events import DescriptorsWritten
from ..core.features import MAX_SAMPLERS, MAX_VIEWS
from ..core.info_queue import spell, spell_handle
from ..core.rows import DH4
from ..types.arguments import instance, integer, integers
from ..types.enums import DescriptorHeapFlags, DescriptorHeapType
from ..types.structs import DescriptorHeapDesc
from .rows import DH1, DH2, DH3, DH5, DH6

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext

_UINT32_MAX = 2**32 - 1


class DescriptorHeap(DeviceChild):
    """An array of 32-byte descriptors; mirrors ``ID3D12DescriptorHeap``.

    Handles are plain ints: add multiples of ``device.get_descriptor_handle_increment_size(type)``.
    """

    kind = "descriptor heap"

    def __init__(
        self, context: DeviceContext, desc: DescriptorHeapDesc, heap: HardwareDescriptorHeap
    ) -> None:
        super().__init__(context)
        self._desc = replace(desc, node_mask=1)
        self.hardware = heap
        self._own(heap)

    def get_desc(self) -> DescriptorHeapDesc:
        """``ID3D12DescriptorHeap::GetDesc``."""
        return self._desc

    def get_cpu_descriptor_handle_for_heap_start(self) -> int:
        """``ID3D12DescriptorHeap::GetCPUDescriptorHandleForHeapStart``."""
        return self.hardware.cpu_start

    def get_gpu_descriptor_handle_for_heap_start(self) -> int:
        """The GPU handle of the first descriptor; 0 when the heap is not shader-visible (DH3).

        Mirrors ``ID3D12DescriptorHeap::GetGPUDescriptorHandleForHeapStart``.
        """
        if not self.hardware.shader_visible:
            error = DH3.not_visible(self, given=self._desc.flags, expected=DescriptorHeapFlags.SHADER_VISIBLE)
            self.context.object_to(error)
        return self.hardware.gpu_start


def check_desc(desc: DescriptorHeapDesc | None) -> None:
    """DH1, DH2."""

    if desc is None:
        field, expected = "pDescriptorHeapDesc", "a D3D12_DESCRIPTOR_HEAP_DESC"
        raise DH1.none(field=field, expected=expected)
    instance(desc, DescriptorHeapDesc, "descriptor_heap_desc")
    if desc.type not in list(DescriptorHeapType):
        raise DH1.type(given=desc.type)
    if not 1 <= desc.num_descriptors <= _UINT32_MAX:
        raise DH1.num_descriptors(given=desc.num_descriptors)
    if int(desc.flags) & ~int(DescriptorHeapFlags.SHADER_VISIBLE):
        raise DH1.flags(given=desc.flags)
    if desc.node_mask not in (0, 1):
        raise DH1.node_mask(given=desc.node_mask)
    if not desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
        return
    if desc.type in (DescriptorHeapType.RTV, DescriptorHeapType.DSV):
        raise DH1.never_visible(given=desc.flags, heap_type=spell(desc.type))
    limit = MAX_VIEWS if desc.type == DescriptorHeapType.CBV_SRV_UAV else MAX_SAMPLERS
    if desc.num_descriptors > limit:
        raise DH2.too_many(given=desc.num_descriptors, expected=f"at most {limit}")


def find_slot(
    context: DeviceContext, cpu_handle: int, operation: str, field: str
) -> tuple[DescriptorHeap, int]:
    """The heap and index of a CPU handle (DH4); raises if the handle belongs to no heap."""
    found = context.gpu.descriptors.locate(integer(cpu_handle, field))
    heap = None if found is None else context.descriptor_heaps.get(found[0].cpu_start)
    assert heap is None or isinstance(heap, DescriptorHeap)
    if found is None or heap is None:
        raise DH4.in_no_heap(
            field=field,
            given=spell_handle(cpu_handle),
            expected=f"the start of a heap plus a multiple of {DESCRIPTOR_SIZE} inside it",
            operation=operation,
        )
    return heap, found[1]


def write_descriptors(
    context: DeviceContext,
    rows: Sequence[tuple[HardwareDescriptorHeap, int, int]],
    operation: str,
    work: Callable[[], None],
    writer: object = "",
    site: CallSite | None = None,
) -> None:
    """Runs ``work``, which writes ranges of descriptors (heap, index, count), and emits events for them."""
    if not context.events.wants(DescriptorsWritten):
        work()
        return
    before = [heap.content(index, count) for heap, index, count in rows]
    work()
    site = site or call_site()
    context.emit(
        *(
            DescriptorsWritten(heap.place(index), old, heap.content(index, count), operation, writer, site)
            for (heap, index, count), old in zip(rows, before, strict=True)
        )
    )


def row_of(context: DeviceContext, cpu_handle: int, count: int) -> tuple[HardwareDescriptorHeap, int, int]:
    """The heap, index and number of descriptors from a handle that was checked."""
    found = context.gpu.descriptors.locate(cpu_handle)
    assert found is not None
    return (*found, count)


def copy_descriptors(
    context: DeviceContext,
    dest_starts: Sequence[int],
    dest_sizes: Sequence[int] | None,
    src_starts: Sequence[int],
    src_sizes: Sequence[int] | None,
    type: DescriptorHeapType,
    operation: str,
) -> None:
    """DH5, DH6: copies the source ranges, one after the other, into the destination ranges."""
    integer(type, "descriptor_heaps_type")
    destination = _ranges(dest_starts, dest_sizes, "Dest", operation)
    source = _ranges(src_starts, src_sizes, "Src", operation)
    given, wanted = sum(count for _, count in source), sum(count for _, count in destination)
    if given != wanted:
        raise DH6.sums_differ(
            given=number_of(given, "descriptor"),
            expected=number_of(wanted, "descriptor"),
            page=f"ID3D12Device::{operation}",
            operation=operation,
            sources=given,
            destinations=wanted,
        )
    for start, count in source:
        _check_range(context, start, count, type, operation, "pSrcDescriptorRangeStarts", is_source=True)
    for start, count in destination:
        _check_range(context, start, count, type, operation, "pDestDescriptorRangeStarts", is_source=False)
    _check_apart(destination, source, operation)
    pairs = _pairs(destination, source)

    def copy() -> None:
        for to, origin, count in pairs:
            context.gpu.descriptors.copy(to, origin, count)

    write_descriptors(context, [row_of(context, to, count) for to, _, count in pairs], operation, copy)


def _ranges(
    starts: Sequence[int], sizes: Sequence[int] | None, side: str, operation: str
) -> list[tuple[int, int]]:
    starts = integers(starts, f"p{side}DescriptorRangeStarts")
    if sizes is None:
        return [(start, 1) for start in starts]
    sizes = integers(sizes, f"p{side}DescriptorRangeSizes")
    if len(sizes) != len(starts):
        raise DH6.counts_differ(
            field=f"p{side}DescriptorRangeSizes",
            given=number_of(len(sizes), "size"),
            expected=number_of(len(starts), "size"),
            page=f"ID3D12Device::{operation}",
            operation=operation,
            starts=len(starts),
            sizes=len(sizes),
        )
    return list(zip(starts, sizes, strict=True))


def _check_range(
    context: DeviceContext,
    start: int,
    count: int,
    type: DescriptorHeapType,
    operation: str,
    field: str,
    is_source: bool,
) -> None:
    if count == 0:
        return
    heap, index = find_slot(context, start, operation, field)
    desc = heap.get_desc()
    if count < 0 or index + count > desc.num_descriptors:
        raise DH6.past_the_end(
            field=field,
            given=f"{count} from index {index} on",
            expected=f"at most {desc.num_descriptors - index}",
            page=f"ID3D12Device::{operation}",
            operation=operation,
            count=count,
            index=index,
            heap=heap,
            heap_size=desc.num_descriptors,
        )
    if desc.type != type:
        raise DH6.other_type(
            given=type, expected=desc.type, page=f"ID3D12Device::{operation}", operation=operation, heap=heap
        )
    if is_source and desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
        raise DH5.copied_from_visible(
            heap,
            field=field,
            given=spell_handle(start),
            page=f"ID3D12Device::{operation}",
            operation=operation,
        )


def _check_apart(destination: list[tuple[int, int]], source: list[tuple[int, int]], operation: str) -> None:
    """No destination range may overlap another range."""
    spans = [(start, start + count * DESCRIPTOR_SIZE, True) for start, count in destination if count]
    spans += [(start, start + count * DESCRIPTOR_SIZE, False) for start, count in source if count]
    spans.sort()
    for (_, end, first_written), (start, _, second_written) in pairwise(spans):
        if start < end and (first_written or second_written):
            raise DH6.ranges_overlap(
                given=spell_handle(start),
                page=f"ID3D12Device::{operation}",
                operation=operation,
            )


def _pairs(destination: list[tuple[int, int]], source: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Splits both lists of ranges at the boundaries of either: (destination, source, count) each."""
    pairs = []
    rest = list(reversed(source))
    for start, count in destination:
        while count:
            origin, left = rest.pop()
            taken = min(count, left)
            if taken:
                pairs.append((start, origin, taken))
            start, count = start + taken * DESCRIPTOR_SIZE, count - taken
            if left > taken:
                rest.append((origin + taken * DESCRIPTOR_SIZE, left - taken))
    return pairs
