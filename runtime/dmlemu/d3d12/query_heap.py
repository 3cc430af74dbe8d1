"""Query heaps: where timestamps stand until they are resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlemu_hw.memory import Allocation

from ..errors import Error
from .enums import MessageId, QueryHeapType
from .object import DeviceChild
from .reports import failure, not_implemented, spell
from .resource import _close_at_end
from .structs import QueryHeapDesc

if TYPE_CHECKING:
    from .device import Device

QUERY_SIZE = 8
TIMESTAMP_TYPES = (QueryHeapType.TIMESTAMP, QueryHeapType.COPY_QUEUE_TIMESTAMP)


class QueryHeap(DeviceChild):
    """An array of 64-bit timestamps; mirrors ``ID3D12QueryHeap``.  Slots never written read 0."""

    kind = "query heap"

    def __init__(self, device: Device, desc: QueryHeapDesc, allocation: Allocation) -> None:
        super().__init__(device)
        self._desc = desc
        self._allocation = allocation
        self._end = _close_at_end(self, allocation)
        allocation.label = f"{self.kind} #{self.serial}"

    def set_name(self, name: str) -> None:
        super().set_name(name)
        self._allocation.label = name

    def release(self) -> None:
        super().release()
        self._end()


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
