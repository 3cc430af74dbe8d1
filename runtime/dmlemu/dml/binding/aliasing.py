"""Aliasing: whether bindings of one dispatch share bytes that it writes (BT10), exact to the element.

Interleaved outputs, such as columns of a matrix, are allowed; a single shared byte is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from dmlemu_hw.events import Footprint

from ...diagnostics.declaration import Declaration
from ..lowering.compile import Access
from ..lowering.dispatchable import CompiledOperator, Dispatchable, Role, Slot, Touch
from ..rows import BIND_ALIAS, BIND_OUT_OUT
from ..tensor_desc import BufferTensorDesc, element_bits

__all__ = [
    "Clash",
    "Meeting",
    "Place",
    "alias_reason",
    "clash_picture",
    "find_clash",
    "one_layout",
    "touches",
]


_LOOKED_AT = 4096  # elements searched for the first that differs


class Place(NamedTuple):
    """A slot and the address bound to it, of the kind that the ``Meet`` function uses."""

    slot: Slot
    address: int


class Clash(NamedTuple):
    """Two bindings share a byte; ``second`` is the one to move.

    ``byte`` is its address in the first binding, ``second_byte`` in the second; ``is_to_first`` and
    ``is_to_second`` describe it in each, for messages.
    """

    first: Place
    second: Place
    byte: int
    second_byte: int
    is_to_first: str
    is_to_second: str


class Meeting(NamedTuple):
    """The lowest shared byte, as its address in each of the two bindings."""

    first: int
    second: int


Meet = Callable[[Footprint, Footprint], Meeting | None]


def touches(dispatchable: Dispatchable, slot: Slot) -> tuple[Touch, ...]:
    """The bytes that a dispatch accesses in a slot's binding."""
    found = dispatchable.touches.get(slot)
    if found is None:
        found = dispatchable.touches[slot] = tuple(_touches(dispatchable, slot))
    return found


def _touches(dispatchable: Dispatchable, slot: Slot) -> Iterator[Touch]:
    if slot.desc is None or slot.role in (Role.TEMPORARY, Role.PERSISTENT):
        yield Touch(_bytes(0, slot.size))
        return
    graph = isinstance(dispatchable, CompiledOperator) and dispatchable.operator is None
    if graph and slot.role is Role.INPUT:  # its nodes may read it in several layouts
        yield from _reads(dispatchable, slot)
        return
    yield Touch(_elements(slot.desc))
    extent = slot.desc.extent_in_bytes
    if slot.role is Role.OUTPUT and extent < slot.size:
        yield Touch(_bytes(extent, slot.size - extent), padding=True)


def _reads(dispatchable: Dispatchable, slot: Slot) -> Iterator[Touch]:
    operands = (each for call in dispatchable.calls for each in call.operands)
    layouts = {
        Footprint(each.offset, element_bits(each.data_type), each.sizes, each.strides)
        for each in operands
        if each.slot == slot.descriptor and each.access & Access.READ
    }
    yield from map(Touch, sorted(layouts))


def _elements(desc: BufferTensorDesc) -> Footprint:
    return Footprint(0, element_bits(desc.data_type), tuple(desc.sizes), tuple(desc.effective_strides))


def _bytes(start: int, size: int) -> Footprint:
    return Footprint(start, 8, (size,), (1,))


def find_clash(
    dispatchable: Dispatchable, places: Sequence[Place], meet: Meet, same: Callable[[Place, Place], bool]
) -> Clash | None:
    """The first two bindings that share a byte which the dispatch writes, except legal in-place execution.

    ``meet`` finds the lowest byte that two footprints share; ``same`` tests whether two bindings of one
    layout are the same bytes.
    """
    for a, b in combinations(places, 2):
        roles = {a.slot.role, b.slot.role}
        if roles <= {Role.INPUT, Role.PERSISTENT}:
            continue  # both are only read
        in_place = roles == {Role.INPUT, Role.OUTPUT} and dispatchable.in_place
        if in_place and one_layout(a.slot, b.slot) and same(a, b):
            continue
        first, second = (b, a) if a.slot.role is Role.OUTPUT and b.slot.role is not Role.OUTPUT else (a, b)
        clash = _meet(dispatchable, first, second, meet)
        if clash is not None:
            return clash
    return None


def _meet(dispatchable: Dispatchable, first: Place, second: Place, meet: Meet) -> Clash | None:
    clashes = []
    for x in touches(dispatchable, first.slot):
        for y in touches(dispatchable, second.slot):
            if x.padding and y.padding:
                continue  # neither content is defined
            found = meet(x.at(first.address), y.at(second.address))
            if found is None:
                continue
            clash = Clash(
                first,
                second,
                found.first,
                found.second,
                x.describe(found.first - first.address),
                y.describe(found.second - second.address),
            )
            if dispatchable.in_place and clash.is_to_first == clash.is_to_second:
                clash = _where_elements_differ(x, y, clash, meet) or clash
            clashes.append(clash)
    return min(clashes, key=lambda clash: clash.byte, default=None)


def _where_elements_differ(x: Touch, y: Touch, clash: Clash, meet: Meet) -> Clash | None:
    """The lowest shared byte, among the first elements, that belongs to different elements."""
    a, b = x.at(clash.first.address), y.at(clash.second.address)
    sizes = a.sizes
    if a.element_bits % 8:
        return None
    count = min(prod(sizes), _LOOKED_AT)
    indices = np.stack(np.unravel_index(np.arange(count), sizes), axis=1)
    places = indices @ np.asarray(a.strides, np.int64)
    for at in np.argsort(places, kind="stable"):
        index = tuple(int(i) for i in indices[at])
        one = a._replace(
            address=a.address + int(places[at]) * a.element_bits // 8,
            sizes=(1,) * len(sizes),
        )
        found = meet(one, b)
        if found is None:
            continue
        words = x.name(index), y.describe(found.second - clash.second.address)
        if words[0] != words[1]:
            return Clash(clash.first, clash.second, found.first, found.second, *words)
    return None


def clash_picture(clash: Clash, start: int) -> dict[str, Any]:
    """Both bindings in the first one's buffer, which begins at address ``start``: fields of a report."""
    shift = clash.byte - clash.second_byte
    second = clash.second.address + shift
    start = min(start, second)  # in buffers that share memory, one may begin before
    places = ((clash.first.slot, clash.first.address), (clash.second.slot, second))
    layouts = tuple(slot.drawn(address - start) for slot, address in places)
    return {"layouts": layouts, "faulty_byte": clash.byte - start}


def alias_reason(dispatchable: Dispatchable, clash: Clash) -> tuple[Declaration, str]:
    """The check that a clash violates, and the reason for the message."""
    roles = {clash.first.slot.role, clash.second.slot.role}
    if roles == {Role.OUTPUT}:
        return BIND_OUT_OUT, "both are written"
    if roles != {Role.INPUT, Role.OUTPUT}:
        return BIND_ALIAS, "one of them is written"
    if not dispatchable.in_place:
        return BIND_ALIAS, "the operator cannot work in place"
    return (
        BIND_ALIAS,
        "the operator works in place only with the same offset, sizes, strides and total size",
    )


def one_layout(a: Slot, b: Slot) -> bool:
    """Whether both have the same elements at the same addresses (in-place execution)."""
    first, second = a.desc, b.desc
    return (
        first is not None
        and second is not None
        and first.data_type == second.data_type
        and first.sizes == second.sizes
        and first.effective_strides == second.effective_strides
        and first.size_in_bytes == second.size_in_bytes
    )
