"""Query heaps: timestamp storage, and the argument checks of query commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dmlemu_hw.allocation import Allocation

from ...errors import CallSite, Error, Severity, spell_site
from ..core.device_child import DeviceChild
from ..core.info_queue import not_implemented, spell
from ..types.arguments import instance, integer
from ..types.enums import CommandListType, MessageId, QueryHeapType, QueryType
from ..types.structs import QueryHeapDesc
from .resource import Resource
from .rows import QY1, QY2, QY3, QY5, QuerySlots

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext
    from ..lists.list_recorder import ListRecorder

QUERY_SIZE = 8
TIMESTAMP_TYPES = (QueryHeapType.TIMESTAMP, QueryHeapType.COPY_QUEUE_TIMESTAMP)


_SLOTS: dict[str, type[QuerySlots]] = {"EndQuery": QY2, "ResolveQueryData": QY3}


class QueryHeap(DeviceChild):
    """An array of 64-bit timestamps; mirrors ``ID3D12QueryHeap``.  Unwritten slots read as 0."""

    kind = "query heap"

    def __init__(self, context: DeviceContext, desc: QueryHeapDesc, allocation: Allocation) -> None:
        super().__init__(context)
        self._desc = desc
        self.allocation = allocation
        allocation.is_buffer = False
        self.ended: set[int] = set()  # the queries that submitted lists have ended; not at strictness runtime
        self._own(allocation)


def check_desc(desc: QueryHeapDesc | None) -> None:
    """QY1."""

    if desc is None:
        raise QY1.none()
    instance(desc, QueryHeapDesc, "desc")
    if desc.type not in list(QueryHeapType):
        raise QY1.type(given=desc.type)
    if not 1 <= desc.count < 2**32:
        raise QY1.count(given=desc.count)
    if desc.node_mask not in (0, 1):
        raise QY1.node_mask(given=desc.node_mask)
    if desc.type not in TIMESTAMP_TYPES:
        raise not_implemented("CreateQueryHeap", f"A query heap of type {spell(desc.type)}")


def begin_error(type: QueryType) -> Error:
    """QY2: timestamps have EndQuery only."""
    return QY2.type(given=type)


def check_end(command_list: ListRecorder, heap: QueryHeap, type: QueryType, index: int) -> None:
    """QY2."""
    _check_slots(command_list, heap, type, index, 1, "EndQuery")


def check_resolve(
    command_list: ListRecorder,
    heap: QueryHeap,
    type: QueryType,
    start: int,
    count: int,
    destination: Resource,
    offset: int,
) -> None:
    """QY3."""
    operation = "ResolveQueryData"

    _check_slots(command_list, heap, type, start, count, operation)
    integer(offset, "aligned_destination_buffer_offset")
    if destination is None:
        raise QY3.destination_buffer()
    command_list.context.check_child(destination, Resource, operation, "pDestinationBuffer")
    field, size, width = "AlignedDestinationBufferOffset", QUERY_SIZE * count, destination.width
    if offset < 0 or offset % QUERY_SIZE:
        raise QY3.query(field=field, given=offset)
    if offset + size > width:
        raise QY3.past_the_end(
            field=field,
            given=offset,
            expected=f"at most {width - size}",
            count=count,
            destination=destination,
            width=width,
        )


def mark_ended(heap: QueryHeap, index: int) -> Callable[[], None] | None:
    """A list that ends a query is submitted.  Returns what undoes it."""
    if index in heap.ended:
        return None
    heap.ended.add(index)
    return partial(heap.ended.discard, index)


def check_ended(command_list: str, heap: QueryHeap, start: int, count: int, at: CallSite | None) -> None:
    """QY5: a list that resolves queries is submitted."""
    missing = [index for index in range(start, start + count) if index not in heap.ended]
    if not missing:
        return
    rest = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
    queries = ", ".join(map(str, missing[:8])) + rest
    error = QY5.never_ended(
        heap,
        given=f"[{start}, {start + count})",
        expected=f"ended queries: {queries} {('is' if len(missing) == 1 else 'are')} not",
        context=(f"ResolveQueryData was recorded at {spell_site(at)}",) if at else (),
        command_list=command_list,
    )
    heap.context.inform(error, Severity.WARNING)


def _check_slots(
    command_list: ListRecorder, heap: QueryHeap, type: QueryType, start: int, count: int, operation: str
) -> None:
    ends = operation == "EndQuery"
    invalid = (
        MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS
        if ends
        else MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS
    )
    page = f"ID3D12GraphicsCommandList::{operation}"
    rule = _SLOTS[operation]
    if heap is None:
        raise rule.heap(operation=operation, page=page, message_id=invalid)
    command_list.context.check_child(heap, QueryHeap, operation, "pQueryHeap")
    kind, size = heap._desc.type, heap._desc.count
    integer(start, "index")
    integer(count, "num_queries")
    if integer(type, "type") != QueryType.TIMESTAMP:
        raise rule.query_type(
            given=type, operation=operation, page=page, message_id=invalid, heap=heap, heap_type=spell(kind)
        )
    copies = command_list.type == CommandListType.COPY
    wanted = QueryHeapType.COPY_QUEUE_TIMESTAMP if copies else QueryHeapType.TIMESTAMP
    if kind != wanted:
        raise rule.heap_kind(
            given=kind,
            expected=wanted,
            operation=operation,
            page=page,
            message_id=invalid,
            list_type=spell(command_list.type),
            heap=heap,
        )
    if start < 0 or count < 0 or start + count > size:
        queries = f"[{start}, {start + count})"
        raise rule.slots(
            field="Index" if ends else "StartIndex",
            given=start if ends else queries,
            expected=f"within [0, {size})",
            operation=operation,
            page=page,
            message_id=invalid,
            queries=queries,
            heap=heap,
            heap_size=size,
        )
