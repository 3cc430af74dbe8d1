"""Query heaps: timestamp storage, and the argument checks of query commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from dmlemu_hw.allocation import Allocation

from ...errors import CallSite, Error, Severity, spell_site
from ..core.device_child import DeviceChild
from ..core.info_queue import not_implemented, refusal, spell
from ..types.arguments import instance, integer
from ..types.enums import CommandListType, MessageId, QueryHeapType, QueryType
from ..types.structs import QueryHeapDesc
from .resource import Resource
from .rows import QUERY, QUERY_NOT_ENDED

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext
    from ..lists.list_recorder import ListRecorder

QUERY_SIZE = 8
TIMESTAMP_TYPES = (QueryHeapType.TIMESTAMP, QueryHeapType.COPY_QUEUE_TIMESTAMP)


class QueryHeap(DeviceChild):
    """An array of 64-bit timestamps; mirrors ``ID3D12QueryHeap``.  Unwritten slots read as 0."""

    kind = "query heap"

    def __init__(self, context: DeviceContext, desc: QueryHeapDesc, allocation: Allocation) -> None:
        super().__init__(context)
        self._desc = desc
        self.allocation = allocation
        self.ended: set[int] = set()  # the queries that submitted lists have ended; not at strictness runtime
        self._own(allocation)


def check_desc(desc: QueryHeapDesc | None) -> None:
    """QY1."""

    refused = partial(
        refusal,
        QUERY,
        operation="CreateQueryHeap",
        rule="QY1: D3D12_QUERY_HEAP_DESC",
        message_id=MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
    )

    if desc is None:
        raise refused("pDesc is {given}.", field="pDesc", given=None, expected="a D3D12_QUERY_HEAP_DESC")
    instance(desc, QueryHeapDesc, "desc")
    if desc.type not in list(QueryHeapType):
        raise refused(
            "Query heap type ({given}) is not known.",
            field="pDesc.Type",
            given=desc.type,
            expected="a member of D3D12_QUERY_HEAP_TYPE",
        )
    if not 1 <= desc.count < 2**32:
        raise refused(
            "Number of queries ({given}) is not one that a heap can have.",
            field="pDesc.Count",
            given=desc.count,
            expected="at least 1",
        )
    if desc.node_mask not in (0, 1):
        raise refused(
            "Node mask ({given}) names nodes that the device does not have.",
            field="pDesc.NodeMask",
            given=desc.node_mask,
            expected="0 or 1",
        )
    if desc.type not in TIMESTAMP_TYPES:
        raise not_implemented("CreateQueryHeap", f"A query heap of type {spell(desc.type)}")


def begin_error(type: QueryType) -> Error:
    """QY2: timestamps have EndQuery only."""
    return refusal(
        QUERY,
        f"A query of type {spell(type)} is begun, and timestamps have EndQuery only.",
        field="Type",
        given=type,
        expected="EndQuery of type TIMESTAMP",
        operation="BeginQuery",
        rule="QY2: ID3D12GraphicsCommandList::BeginQuery",
        message_id=MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS,
    )


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
    operation, wrong = "ResolveQueryData", MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS

    refused = partial(
        refusal,
        QUERY,
        operation=operation,
        rule=f"QY3: ID3D12GraphicsCommandList::{operation}",
        message_id=wrong,
    )

    _check_slots(command_list, heap, type, start, count, operation)
    integer(offset, "aligned_destination_buffer_offset")
    if destination is None:
        raise refused("No destination is given.", field="pDestinationBuffer", given=None, expected="a buffer")
    command_list.context.check_child(destination, Resource, operation, "pDestinationBuffer")
    field, size, width = "AlignedDestinationBufferOffset", QUERY_SIZE * count, destination.width
    if offset < 0 or offset % QUERY_SIZE:
        raise refused(
            "Destination offset ({given}) is not a multiple of 8.",
            field=field,
            given=offset,
            expected="a multiple of 8",
        )
    if offset + size > width:
        raise refused(
            f"{count} results of 8 bytes at offset {offset} run past {destination} of {width} bytes.",
            field=field,
            given=offset,
            expected=f"at most {width - size}",
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
    error = refusal(
        QUERY_NOT_ENDED,
        f"ResolveQueryData of {command_list} resolves queries of {heap} that were never ended.",
        operation="ExecuteCommandLists",
        rule="QY5: ID3D12GraphicsCommandList::ResolveQueryData",
        message_id=MessageId.RESOLVE_QUERY_INVALID_QUERY_STATE,
        field="StartIndex",
        given=f"[{start}, {start + count})",
        expected=f"ended queries: {queries} {'is' if len(missing) == 1 else 'are'} not",
        object=heap,
        context=(f"ResolveQueryData was recorded at {spell_site(at)}",) if at else (),
    )
    heap.context.inform(error, Severity.WARNING)


def _check_slots(
    command_list: ListRecorder, heap: QueryHeap, type: QueryType, start: int, count: int, operation: str
) -> None:
    ends = operation == "EndQuery"
    rule = "QY2" if ends else "QY3"
    wrong = (
        MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS
        if ends
        else MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS
    )

    refused = partial(
        refusal,
        QUERY,
        operation=operation,
        rule=f"{rule}: ID3D12GraphicsCommandList::{operation}",
        message_id=wrong,
    )

    if heap is None:
        raise refused("No query heap is given.", field="pQueryHeap", given=None, expected="a query heap")
    command_list.context.check_child(heap, QueryHeap, operation, "pQueryHeap")
    kind, size = heap._desc.type, heap._desc.count
    integer(start, "index")
    integer(count, "num_queries")
    if integer(type, "type") != QueryType.TIMESTAMP:
        raise refused(
            f"Query type ({spell(type)}) does not fit {heap} of type {spell(kind)}.",
            field="Type",
            given=type,
            expected=QueryType.TIMESTAMP,
        )
    copies = command_list.type == CommandListType.COPY
    wanted = QueryHeapType.COPY_QUEUE_TIMESTAMP if copies else QueryHeapType.TIMESTAMP
    if kind != wanted:
        raise refused(
            f"A list of type {spell(command_list.type)} uses {heap} of type {spell(kind)}.",
            field="pQueryHeap",
            given=kind,
            expected=wanted,
        )
    if start < 0 or count < 0 or start + count > size:
        raise refused(
            f"Queries [{start}, {start + count}) run past {heap} of {size} queries.",
            field="Index" if ends else "StartIndex",
            given=start if ends else f"[{start}, {start + count})",
            expected=f"within [0, {size})",
        )
