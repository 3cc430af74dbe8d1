"""Descriptor heaps, and copying descriptors between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from dmlemu_hw.descriptors import DESCRIPTOR_SIZE
from dmlemu_hw.descriptors import DescriptorHeap as HardwareDescriptorHeap

from ..errors import Error, call_site
from .arguments import instance, integer, integers
from .device_child import DeviceChild
from .enums import DescriptorHeapFlags, DescriptorHeapType, MessageId
from .events import DescriptorsWritten
from .info_queue import failure, spell, spell_handle
from .structs import DescriptorHeapDesc

if TYPE_CHECKING:
    from .device_context import DeviceContext

# Limits of shader-visible heaps (DH2).
MAX_VIEWS = 1_000_000
MAX_SAMPLERS = 2048
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
        if not self._desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
            error = failure(
                "DESC_HEAP_NOT_VISIBLE",
                f"The GPU handle of {self} is asked for, and the heap is not shader-visible.",
                operation="GetGPUDescriptorHandleForHeapStart",
                rule="DH3: ID3D12DescriptorHeap::GetGPUDescriptorHandleForHeapStart",
                message_id=MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
                field="this",
                given=self._desc.flags,
                expected=DescriptorHeapFlags.SHADER_VISIBLE,
                object=self,
            )
            if not self.context.is_runtime:
                raise error
        return self.hardware.gpu_start


def check_desc(desc: DescriptorHeapDesc) -> None:
    """DH1, DH2."""

    def bad(
        rule: str, field: str, given: object, expected: str, message: str, message_id: MessageId
    ) -> Error:
        return failure(
            "DESC_HEAP_KIND",
            message,
            operation="CreateDescriptorHeap",
            rule=f"{rule}: D3D12_DESCRIPTOR_HEAP_DESC",
            message_id=message_id,
            field=f"pDescriptorHeapDesc.{field}",
            given=given,
            expected=expected,
        )

    instance(desc, DescriptorHeapDesc, "descriptor_heap_desc")
    invalid = MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC
    if desc.type not in list(DescriptorHeapType):
        message = f"Descriptor heap type ({spell(desc.type)}) is not known."
        raise bad("DH1", "Type", desc.type, "a member of D3D12_DESCRIPTOR_HEAP_TYPE", message, invalid)
    if not 1 <= desc.num_descriptors <= _UINT32_MAX:
        message = f"Number of descriptors ({desc.num_descriptors}) is not one that a heap can have."
        raise bad("DH1", "NumDescriptors", desc.num_descriptors, "at least 1", message, invalid)
    if int(desc.flags) & ~int(DescriptorHeapFlags.SHADER_VISIBLE):
        message = f"Descriptor heap flags ({spell(desc.flags)}) have bits that are not known."
        raise bad("DH1", "Flags", desc.flags, "NONE or SHADER_VISIBLE", message, invalid)
    if desc.node_mask not in (0, 1):
        message = f"Node mask ({desc.node_mask}) names nodes that the device does not have."
        raise bad("DH1", "NodeMask", desc.node_mask, "0 or 1", message, invalid)
    if not desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
        return
    if desc.type in (DescriptorHeapType.RTV, DescriptorHeapType.DSV):
        message = (
            f"A heap of type {spell(desc.type)} is to be shader-visible, and shaders cannot see such views."
        )
        raise bad("DH1", "Flags", desc.flags, "NONE", message, invalid)
    limit = MAX_VIEWS if desc.type == DescriptorHeapType.CBV_SRV_UAV else MAX_SAMPLERS
    if desc.num_descriptors > limit:
        message = (
            f"Number of descriptors ({desc.num_descriptors}) is above what a shader-visible heap can hold."
        )
        large = MessageId.CREATE_DESCRIPTOR_HEAP_LARGE_NUM_DESCRIPTORS
        raise bad("DH2", "NumDescriptors", desc.num_descriptors, f"at most {limit}", message, large)


def find_slot(
    context: DeviceContext, cpu_handle: int, operation: str, field: str
) -> tuple[DescriptorHeap, int]:
    """The heap and index that a CPU handle means (DH4); raises for any other number."""
    found = context.gpu.descriptors.locate(integer(cpu_handle, field))
    heap = None if found is None else context.descriptor_heaps.get(found[0].cpu_start)
    assert heap is None or isinstance(heap, DescriptorHeap)
    if found is None or heap is None:
        raise failure(
            "DESC_INDEX",
            f"CPU descriptor handle ({spell_handle(cpu_handle)}) belongs to no descriptor heap.",
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
    rows: Sequence[tuple[int, int]],
    operation: str,
    work: Callable[[], None],
    writer: str = "",
) -> None:
    """Does the ``work`` that writes rows of descriptors, (CPU handle, count) each, and tells of it."""
    if not context.events.wants(DescriptorsWritten):
        work()
        return
    descriptors, site = context.gpu.descriptors, call_site()
    before = [descriptors.content(*row) for row in rows]
    work()
    context.tell(
        *(
            DescriptorsWritten(
                descriptors.place(row[0]), old, descriptors.content(*row), operation, writer, site
            )
            for row, old in zip(rows, before, strict=True)
        )
    )


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
        raise _bad_ranges(
            f"The source ranges hold {given} descriptors and the destination ranges {wanted}.",
            operation,
            "pSrcDescriptorRangeSizes",
            given,
            wanted,
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

    write_descriptors(context, [(to, count) for to, _, count in pairs], operation, copy)


def _ranges(
    starts: Sequence[int], sizes: Sequence[int] | None, side: str, operation: str
) -> list[tuple[int, int]]:
    starts = integers(starts, f"p{side}DescriptorRangeStarts")
    if sizes is None:
        return [(start, 1) for start in starts]
    sizes = integers(sizes, f"p{side}DescriptorRangeSizes")
    if len(sizes) != len(starts):
        raise _bad_ranges(
            f"There are {len(starts)} range starts and {len(sizes)} range sizes.",
            operation,
            f"p{side}DescriptorRangeSizes",
            len(sizes),
            len(starts),
        )
    return list(zip(starts, sizes, strict=True))


def _bad_ranges(message: str, operation: str, field: str, given: object, expected: object) -> Error:
    return failure(
        "DESC_INDEX",
        message,
        operation=operation,
        rule=f"DH6: ID3D12Device::{operation}",
        message_id=MessageId.COPY_DESCRIPTORS_INVALID_RANGES,
        field=field,
        given=given,
        expected=expected,
    )


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
        raise _bad_ranges(
            f"The {count} descriptors from index {index} on run past {heap} of {desc.num_descriptors}.",
            operation,
            field,
            f"{count} from index {index} on",
            f"at most {desc.num_descriptors - index}",
        )
    if desc.type != type:
        raise _bad_ranges(
            f"{heap} is of type {spell(desc.type)}, and descriptors of type {spell(type)} are copied.",
            operation,
            "DescriptorHeapsType",
            type,
            desc.type,
        )
    if is_source and desc.flags & DescriptorHeapFlags.SHADER_VISIBLE:
        raise failure(
            "DESC_HEAP_KIND",
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
    """No destination range may meet another range."""
    spans = [(start, start + count * DESCRIPTOR_SIZE, True) for start, count in destination if count]
    spans += [(start, start + count * DESCRIPTOR_SIZE, False) for start, count in source if count]
    spans.sort()
    for (_, end, first_written), (start, _, second_written) in pairwise(spans):
        if start < end and (first_written or second_written):
            raise _bad_ranges(
                f"Two descriptor ranges meet at handle {spell_handle(start)}.",
                operation,
                "pDestDescriptorRangeStarts",
                spell_handle(start),
                "ranges that do not overlap",
            )


def _pairs(destination: list[tuple[int, int]], source: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Cuts both rows of ranges where either one is cut: (to, from, count) each."""
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
