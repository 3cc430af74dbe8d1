"""Descriptor heaps, and copying descriptors between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE
from dmlemu_hw.descriptors import DescriptorHeap as HardwareDescriptorHeap

from ...errors import CallSite, call_site, number_of
from ..core.device_child import DeviceChild
from ..core.events import DescriptorsWritten
from ..core.features import MAX_SAMPLERS, MAX_VIEWS
from ..core.info_queue import refusal, spell, spell_handle
from ..core.rows import DESC_INDEX
from ..types.arguments import instance, integer, integers
from ..types.enums import DescriptorHeapFlags, DescriptorHeapType, MessageId
from ..types.structs import DescriptorHeapDesc
from .rows import DESC_HEAP_KIND, DESC_HEAP_NOT_VISIBLE

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
            error = refusal(
                DESC_HEAP_NOT_VISIBLE,
                f"The GPU handle of {self} is requested, and the heap is not shader-visible.",
                operation="GetGPUDescriptorHandleForHeapStart",
                rule="DH3: ID3D12DescriptorHeap::GetGPUDescriptorHandleForHeapStart",
                message_id=MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
                field="this",
                given=self._desc.flags,
                expected=DescriptorHeapFlags.SHADER_VISIBLE,
                object=self,
            )
            self.context.object_to(error)
        return self.hardware.gpu_start


def check_desc(desc: DescriptorHeapDesc | None) -> None:
    """DH1, DH2."""

    refused = partial(
        refusal, DESC_HEAP_KIND, operation="CreateDescriptorHeap", page="D3D12_DESCRIPTOR_HEAP_DESC"
    )

    invalid = MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC
    if desc is None:
        field, expected = "pDescriptorHeapDesc", "a D3D12_DESCRIPTOR_HEAP_DESC"
        raise refused(
            f"{field} is {{given}}.",
            field=field,
            given=None,
            expected=expected,
            rule="DH1",
            message_id=invalid,
        )
    instance(desc, DescriptorHeapDesc, "descriptor_heap_desc")
    if desc.type not in list(DescriptorHeapType):
        raise refused(
            "Descriptor heap type ({given}) is not known.",
            field="pDescriptorHeapDesc.Type",
            given=desc.type,
            expected="a member of D3D12_DESCRIPTOR_HEAP_TYPE",
            rule="DH1",
            message_id=invalid,
        )
    if not 1 <= desc.num_descriptors <= _UINT32_MAX:
        raise refused(
            "Number of descriptors ({given}) is not one that a heap can have.",
            field="pDescriptorHeapDesc.NumDescriptors",
            given=desc.num_descriptors,
            expected="at least 1",
            rule="DH1",
            message_id=invalid,
        )
    if int(desc.flags) & ~int(DescriptorHeapFlags.SHADER_VISIBLE):
        raise refused(
            "Descriptor heap flags ({given}) have bits that are not known.",
            field="pDescriptorHeapDesc.Flags",
            given=desc.flags,
            expected="NONE or SHADER_VISIBLE",
            rule="DH1",
            message_id=invalid,
        )
    if desc.node_mask not in (0, 1):
        raise refused(
            "Node mask ({given}) names nodes that the device does not have.",
            field="pDescriptorHeapDesc.NodeMask",
            given=desc.node_mask,
            expected="0 or 1",
            rule="DH1",
            message_id=invalid,
        )
    if not desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
        return
    if desc.type in (DescriptorHeapType.RTV, DescriptorHeapType.DSV):
        raise refused(
            f"A heap of type {spell(desc.type)} is SHADER_VISIBLE, and shaders cannot see its descriptors.",
            field="pDescriptorHeapDesc.Flags",
            given=desc.flags,
            expected="NONE",
            rule="DH1",
            message_id=invalid,
        )
    limit = MAX_VIEWS if desc.type == DescriptorHeapType.CBV_SRV_UAV else MAX_SAMPLERS
    if desc.num_descriptors > limit:
        raise refused(
            "Number of descriptors ({given}) is above what a shader-visible heap can hold.",
            field="pDescriptorHeapDesc.NumDescriptors",
            given=desc.num_descriptors,
            expected=f"at most {limit}",
            rule="DH2",
            message_id=MessageId.CREATE_DESCRIPTOR_HEAP_LARGE_NUM_DESCRIPTORS,
        )


def find_slot(
    context: DeviceContext, cpu_handle: int, operation: str, field: str
) -> tuple[DescriptorHeap, int]:
    """The heap and index of a CPU handle (DH4); raises if the handle belongs to no heap."""
    found = context.gpu.descriptors.locate(integer(cpu_handle, field))
    heap = None if found is None else context.descriptor_heaps.get(found[0].cpu_start)
    assert heap is None or isinstance(heap, DescriptorHeap)
    if found is None or heap is None:
        raise refusal(
            DESC_INDEX,
            "CPU descriptor handle ({given}) belongs to no descriptor heap.",
            operation=operation,
            rule="DH4: D3D12_CPU_DESCRIPTOR_HANDLE",
            message_id=MessageId.INVALID_DESCRIPTOR_HANDLE,
            field=field,
            given=spell_handle(cpu_handle),
            expected=f"the start of a heap plus a multiple of {DESCRIPTOR_SIZE} inside it",
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
        raise _refused_ranges(
            f"The source ranges hold {given} descriptors and the destination ranges {wanted}.",
            field="pSrcDescriptorRangeSizes",
            given=number_of(given, "descriptor"),
            expected=number_of(wanted, "descriptor"),
            operation=operation,
            rule=f"DH6: ID3D12Device::{operation}",
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


_refused_ranges = partial(refusal, DESC_INDEX, message_id=MessageId.COPY_DESCRIPTORS_INVALID_RANGES)


def _ranges(
    starts: Sequence[int], sizes: Sequence[int] | None, side: str, operation: str
) -> list[tuple[int, int]]:
    starts = integers(starts, f"p{side}DescriptorRangeStarts")
    if sizes is None:
        return [(start, 1) for start in starts]
    sizes = integers(sizes, f"p{side}DescriptorRangeSizes")
    if len(sizes) != len(starts):
        raise _refused_ranges(
            f"There are {len(starts)} range starts and {len(sizes)} range sizes.",
            field=f"p{side}DescriptorRangeSizes",
            given=number_of(len(sizes), "size"),
            expected=number_of(len(starts), "size"),
            operation=operation,
            rule=f"DH6: ID3D12Device::{operation}",
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
        raise _refused_ranges(
            f"The {count} descriptors from index {index} on run past {heap} of {desc.num_descriptors}.",
            field=field,
            given=f"{count} from index {index} on",
            expected=f"at most {desc.num_descriptors - index}",
            operation=operation,
            rule=f"DH6: ID3D12Device::{operation}",
        )
    if desc.type != type:
        raise _refused_ranges(
            f"{heap} is of type {spell(desc.type)}, and descriptors of type {spell(type)} are copied.",
            field="DescriptorHeapsType",
            given=type,
            expected=desc.type,
            operation=operation,
            rule=f"DH6: ID3D12Device::{operation}",
        )
    if is_source and desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
        raise refusal(
            DESC_HEAP_KIND,
            f"Descriptors are copied out of {heap}, which is shader-visible: the CPU can only write it.",
            operation=operation,
            rule=f"DH5: ID3D12Device::{operation}",
            message_id=MessageId.COPY_DESCRIPTORS_WRITE_ONLY_DESCRIPTOR,
            field=field,
            given=spell_handle(start),
            expected="a handle of a heap without SHADER_VISIBLE",
            object=heap,
        )


def _check_apart(destination: list[tuple[int, int]], source: list[tuple[int, int]], operation: str) -> None:
    """No destination range may overlap another range."""
    spans = [(start, start + count * DESCRIPTOR_SIZE, True) for start, count in destination if count]
    spans += [(start, start + count * DESCRIPTOR_SIZE, False) for start, count in source if count]
    spans.sort()
    for (_, end, first_written), (start, _, second_written) in pairwise(spans):
        if start < end and (first_written or second_written):
            raise _refused_ranges(
                f"Two descriptor ranges overlap at handle {spell_handle(start)}.",
                field="pDestDescriptorRangeStarts",
                given=spell_handle(start),
                expected="ranges that do not overlap",
                operation=operation,
                rule=f"DH6: ID3D12Device::{operation}",
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
