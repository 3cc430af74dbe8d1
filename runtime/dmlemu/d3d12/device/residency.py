"""MakeResident and Evict: residency counts of objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..core.device_child import DeviceChild
from ..core.device_context import DeviceContext
from ..core.events import Evicted
from ..descriptors.descriptor_heap import DescriptorHeap
from ..memory.query_heap import QueryHeap
from ..memory.resource import Heap, Resource
from ..types.arguments import sequence
from ..types.enums import MessageId
from .rows import RD1


def check_objects(context: DeviceContext, objects: Sequence[DeviceChild], operation: str) -> int:
    """Checks the objects of a call that changes no counts; returns how many they are."""
    context.check_alive(operation)
    chosen = None if objects is None else sequence(objects, "objects")
    _check_pageables(context, chosen, operation, 0)
    return len(chosen or ())


def make_resident(context: DeviceContext, objects: Sequence[DeviceChild]) -> None:
    """RD1: increments each object's residency count."""
    context.check_alive("MakeResident")
    for each in _check_pageables(context, objects, "MakeResident", MessageId.MAKERESIDENT_NULLOBJECTARRAY):
        each.residency += 1


def evict(context: DeviceContext, objects: Sequence[DeviceChild]) -> None:
    """RD1, RD2: decrements the counts; at 0, lists that use the object must not be executed."""
    context.check_alive("Evict")
    chosen = _check_pageables(context, objects, "Evict", MessageId.EVICT_NULLOBJECTARRAY)
    for each, count in Counter(chosen).items():
        if each.residency < count:
            raise RD1.not_resident(each)
    here = context.here()
    for each in chosen:
        each.residency -= 1
        each.evicted_at = here
    context.emit(*(Evicted(each) for each in dict.fromkeys(chosen) if each.residency == 0))


def _check_pageables(
    context: DeviceContext, objects: Sequence[DeviceChild] | None, operation: str, message_id: int
) -> list[DeviceChild]:
    if objects is None:
        raise RD1.objects(message_id=message_id, page=f"ID3D12Device::{operation}", operation=operation)
    objects = sequence(objects, "objects")
    for i, each in enumerate(objects):
        context.check_child(each, DeviceChild, operation, f"ppObjects[{i}]")
    return [each for each in objects if isinstance(each, Heap | Resource | DescriptorHeap | QueryHeap)]
