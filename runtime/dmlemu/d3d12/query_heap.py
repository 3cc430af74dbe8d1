"""Query heaps: where timestamps stand until they are resolved, and what the commands on them check."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dmlemu_hw.allocation import Allocation

from ..errors import Error
from .arguments import instance, integer
from .device_child import DeviceChild
from .enums import CommandListType, MessageId, QueryHeapType, QueryType
from .info_queue import failure, not_implemented, spell
from .resource import Resource
from .structs import QueryHeapDesc

if TYPE_CHECKING:
    from .device_context import DeviceContext
    from .list_recorder import ListRecorder

QUERY_SIZE = 8
TIMESTAMP_TYPES = (QueryHeapType.TIMESTAMP, QueryHeapType.COPY_QUEUE_TIMESTAMP)


class QueryHeap(DeviceChild):
    """An array of 64-bit timestamps; mirrors ``ID3D12QueryHeap``.  Slots never written read 0."""

    kind = "query heap"

    def __init__(self, context: DeviceContext, desc: QueryHeapDesc, allocation: Allocation) -> None:
        super().__init__(context)
        self._desc = desc
        self.allocation = allocation
        self._own(allocation)


def check_desc(desc: QueryHeapDesc) -> None:
    """QY1."""

    def bad(message: str, field: str, given: object, expected: str) -> Error:
        return failure(
            "QUERY",
            message,
            operation="CreateQueryHeap",
            rule="QY1: D3D12_QUERY_HEAP_DESC",
            message_id=MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
            field=f"pDesc.{field}",
            given=given,
            expected=expected,
        )

    instance(desc, QueryHeapDesc, "desc")
    if desc.type not in list(QueryHeapType):
        message = f"Query heap type ({spell(desc.type)}) is not known."
        raise bad(message, "Type", desc.type, "a member of D3D12_QUERY_HEAP_TYPE")
    if not 1 <= desc.count < 2**32:
        raise bad(
            f"Number of queries ({desc.count}) is not one that a heap can have.",
            "Count",
            desc.count,
            "at least 1",
        )
    if desc.node_mask not in (0, 1):
        message = f"Node mask ({desc.node_mask}) names nodes that the device does not have."
        raise bad(message, "NodeMask", desc.node_mask, "0 or 1")
    if desc.type not in TIMESTAMP_TYPES:
        raise not_implemented("CreateQueryHeap", f"A query heap of type {spell(desc.type)}")


def _bad_query(
    operation: str, rule: str, message: str, field: str, given: Any, expected: Any, message_id: MessageId
) -> Error:
    return failure(
        "QUERY",
        message,
        operation=operation,
        rule=f"{rule}: ID3D12GraphicsCommandList::{operation}",
        message_id=message_id,
        field=field,
        given=given,
        expected=expected,
    )


def begin_error(type: QueryType) -> Error:
    """QY2: timestamps only end."""
    message = f"A query of type {spell(type)} is begun, and a timestamp only ends."
    wrong = MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS
    return _bad_query("BeginQuery", "QY2", message, "Type", type, "EndQuery of type TIMESTAMP", wrong)


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

    def bad(message: str, field: str, given: Any, expected: Any) -> Error:
        return _bad_query(operation, "QY3", message, field, given, expected, wrong)

    _check_slots(command_list, heap, type, start, count, operation)
    integer(offset, "aligned_destination_buffer_offset")
    if destination is None:
        raise bad("No destination is given.", "pDestinationBuffer", None, "a buffer")
    command_list.context.check_child(destination, Resource, operation, "pDestinationBuffer")
    field, size, width = "AlignedDestinationBufferOffset", QUERY_SIZE * count, destination.width
    if offset < 0 or offset % QUERY_SIZE:
        raise bad(f"Destination offset ({offset}) is not a multiple of 8.", field, offset, "a multiple of 8")
    if offset + size > width:
        message = f"{count} results of 8 bytes at offset {offset} run past {destination} of {width} bytes."
        raise bad(message, field, offset, f"at most {width - size}")


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

    def bad(message: str, field: str, given: Any, expected: Any) -> Error:
        return _bad_query(operation, rule, message, field, given, expected, wrong)

    if heap is None:
        raise bad("No query heap is given.", "pQueryHeap", None, "a query heap")
    command_list.context.check_child(heap, QueryHeap, operation, "pQueryHeap")
    kind, size = heap._desc.type, heap._desc.count
    integer(start, "index")
    integer(count, "num_queries")
    if integer(type, "type") != QueryType.TIMESTAMP:
        message = f"Query type ({spell(type)}) does not fit {heap} of type {spell(kind)}."
        raise bad(message, "Type", type, QueryType.TIMESTAMP)
    copies = command_list.type == CommandListType.COPY
    wanted = QueryHeapType.COPY_QUEUE_TIMESTAMP if copies else QueryHeapType.TIMESTAMP
    if kind != wanted:
        message = f"A list of type {spell(command_list.type)} uses {heap} of type {spell(kind)}."
        raise bad(message, "pQueryHeap", kind, wanted)
    if start < 0 or count < 0 or start + count > size:
        message = f"Queries [{start}, {start + count}) run past {heap} of {size} queries."
        raise bad(message, "Index" if ends else "StartIndex", start, f"within [0, {size})")
