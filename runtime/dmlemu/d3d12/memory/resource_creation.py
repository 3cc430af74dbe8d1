"""Creation of heaps, buffers and query heaps: checks, memory, the object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar

from dmlemu_hw.allocation import Allocation
from dmlemu_hw.allocation import Heap as HardwareHeap
from dmlemu_hw.faults import OutOfMemory
from dmlemu_hw.memory import Memory

from ...diagnostics.rows import OUT_OF_MEMORY
from ...diagnostics.rule import error_of
from ...errors import HResult, Severity
from ...frozen import Frozen
from ..core.device_context import DeviceContext
from ..core.info_queue import spell
from ..types.enums import HeapFlags, HeapType, MessageId, ResourceStates
from ..types.structs import ClearValue, HeapDesc, HeapProperties, QueryHeapDesc, ResourceDesc
from . import checks as rules
from . import query_heap
from .query_heap import QueryHeap
from .resource import Heap, Resource
from .rows import RB8, RB12

_Result = TypeVar("_Result")


class OutOfMemoryGuard(Frozen):
    """Converts the hardware's out-of-memory error into the error of a create method.

    ``field`` is empty if the size depends on no argument.
    """

    operation: str
    rule: str
    field: str
    message_id: int

    def run(self, work: Callable[[], _Result]) -> _Result:
        """The result of ``work``; E_OUTOFMEMORY when memory is exhausted."""
        try:
            return work()
        except OutOfMemory as error:
            left = max(0, error.budget - error.used)
            raise error_of(
                OUT_OF_MEMORY,
                str(error),
                operation=self.operation,
                rule=f"{self.rule}: ID3D12Device::{self.operation}",
                hresult=HResult.E_OUTOFMEMORY,
                message_id=self.message_id,
                field=self.field,
                given=f"{error.needed} bytes" if self.field else "",
                expected=f"at most {left} bytes: the rest is in use" if self.field else "",
            ) from None


def _out_of_memory_for_buffer(operation: str) -> OutOfMemoryGuard:
    return OutOfMemoryGuard(operation, "RB10", "pDesc.Width", MessageId.CREATERESOURCE_OUTOFMEMORY_RETURN)


def _place(memory: Memory, heap: HardwareHeap) -> tuple[HardwareHeap, Allocation]:
    """An allocation over a whole new heap; the heap is freed when no address range is available."""
    try:
        return heap, memory.place(heap, 0, heap.size)
    except OutOfMemory:
        heap.close()
        raise


def create_heap(context: DeviceContext, desc: HeapDesc) -> Heap:
    """``ID3D12Device::CreateHeap``."""
    context.check_alive("CreateHeap")
    rules.check_heap_desc(desc)
    memory, size, poison = context.gpu.memory, desc.size_in_bytes, _poisons(context, desc.flags)
    lacking = OutOfMemoryGuard(
        "CreateHeap", "HP1", "pDesc.SizeInBytes", MessageId.CREATEHEAP_OUTOFMEMORY_RETURN
    )
    heap = lacking.run(lambda: memory.create_heap(size, poison=poison))
    alignment = desc.alignment or rules.TILE
    properties = rules.full_properties(desc.properties)
    desc = replace(desc, alignment=alignment, properties=properties, flags=HeapFlags(desc.flags))
    made = Heap(context, desc, heap)
    if rules.is_cpu_visible(properties):
        context.host_heaps.add(heap)
    return made


def _check(
    context: DeviceContext,
    desc: ResourceDesc | None,
    state: ResourceStates,
    clear_value: ClearValue | None,
    kind: HeapType | None,
    operation: str,
) -> ResourceDesc:
    return context.checked(
        lambda is_runtime: rules.check_buffer(desc, state, clear_value, kind, operation, is_runtime)
    )


def create_committed(
    context: DeviceContext,
    heap_properties: HeapProperties,
    heap_flags: HeapFlags,
    desc: ResourceDesc,
    initial_resource_state: ResourceStates,
    optimized_clear_value: ClearValue | None = None,
) -> Resource:
    """``ID3D12Device::CreateCommittedResource``."""
    operation = "CreateCommittedResource"
    context.check_alive(operation)
    rules.check_committed_heap(heap_properties, heap_flags)
    kind = HeapType(heap_properties.type)
    desc = _check(context, desc, initial_resource_state, optimized_clear_value, kind, operation)
    width, poison = desc.width, _poisons(context, heap_flags)
    allocate = partial(context.gpu.memory.create_heap, mappable=False)
    lacking = _out_of_memory_for_buffer(operation)
    heap, allocation = lacking.run(lambda: _place(context.gpu.memory, allocate(width, poison=poison)))
    resource = Resource(
        context,
        desc,
        allocation,
        created_as="committed",
        properties=rules.full_properties(heap_properties),
        heap_flags=HeapFlags(heap_flags),
        implicit_heap=heap,
    )
    return _finish(resource, initial_resource_state, operation)


def create_placed(
    context: DeviceContext,
    heap: Heap,
    heap_offset: int,
    desc: ResourceDesc,
    initial_state: ResourceStates,
    optimized_clear_value: ClearValue | None = None,
) -> Resource:
    """``ID3D12Device::CreatePlacedResource``."""
    operation = "CreatePlacedResource"
    context.check_alive(operation)
    rules.check_heap_given(heap)
    context.check_child(heap, Heap, operation, "pHeap")
    properties = heap.get_desc().properties
    kind = HeapType(properties.type)
    desc = _check(context, desc, initial_state, optimized_clear_value, kind, operation)
    rules.check_placement(desc, heap.get_desc(), str(heap), heap_offset)
    memory, width = context.gpu.memory, desc.width
    lacking = _out_of_memory_for_buffer(operation)
    allocation = lacking.run(lambda: memory.place(heap.hardware, heap_offset, width))
    resource = Resource(
        context,
        desc,
        allocation,
        created_as="placed",
        properties=properties,
        heap_flags=heap.get_desc().flags,
        heap=heap,
    )
    return _finish(resource, initial_state, operation)


def create_reserved(
    context: DeviceContext,
    desc: ResourceDesc,
    initial_state: ResourceStates,
    optimized_clear_value: ClearValue | None = None,
) -> Resource:
    """``ID3D12Device::CreateReservedResource``."""
    operation = "CreateReservedResource"
    context.check_alive(operation)
    desc = _check(context, desc, initial_state, optimized_clear_value, None, operation)
    memory, width = context.gpu.memory, desc.width
    allocation = _out_of_memory_for_buffer(operation).run(lambda: memory.reserve(width))
    resource = Resource(context, desc, allocation, created_as="reserved", properties=None)
    return _finish(resource, initial_state, operation)


def create_query_heap(context: DeviceContext, desc: QueryHeapDesc) -> QueryHeap:
    """``ID3D12Device::CreateQueryHeap``."""
    context.check_alive("CreateQueryHeap")
    query_heap.check_desc(desc)
    memory, size = context.gpu.memory, query_heap.QUERY_SIZE * desc.count
    lacking = OutOfMemoryGuard("CreateQueryHeap", "QY1", "pDesc.Count", 0)
    heap, allocation = lacking.run(lambda: _place(memory, memory.create_heap(size, mappable=False)))
    heap.close()  # the allocation keeps the bytes
    return QueryHeap(context, desc, allocation)


def _poisons(context: DeviceContext, flags: HeapFlags) -> bool:
    return context.gpu.poison and bool(flags & HeapFlags.CREATE_NOT_ZEROED)


_MOST_BYTES_OF_HOST = 0xFFFF_0000  # of a buffer in an UPLOAD or READBACK heap


def _look_at_width(resource: Resource, operation: str) -> None:
    """RB12: the debug layer warns of more bytes than GPUs let the CPU see."""
    width = resource.get_desc().width
    if resource.fixed_states is None or width <= _MOST_BYTES_OF_HOST:
        return
    error = RB12.width(
        resource,
        given=width,
        expected=f"at most {_MOST_BYTES_OF_HOST}",
        operation=operation,
        heap_type=spell(resource.heap_type),
    )
    resource.context.inform(error, Severity.WARNING)


def _finish(resource: Resource, state: ResourceStates, operation: str) -> Resource:
    """Registers a created buffer by address; warns if its initial state is ignored (RB8)."""
    context = resource.context
    resource.began_common = state == ResourceStates.COMMON
    context.resources[resource.address] = resource
    if state != ResourceStates.COMMON and resource.fixed_states is None and context.info_queue.enabled:
        error = RB8.ignored(
            resource,
            given=ResourceStates(state),
            expected=ResourceStates.COMMON,
            page=f"ID3D12Device::{operation}",
            operation=operation,
        )
        context.inform(error, Severity.WARNING)
    _look_at_width(resource, operation)
    return resource
