"""Messages on resources and mapped memory."""

from __future__ import annotations

from typing import Any

from ...d3d12.memory.resource import Resource
from ..analysis.in_flight import Flight
from ..lists.messages import calling, known, state

__all__ = ["early_read", "leak", "overlap", "unmap_range"]

_LISTED = 16  # objects listed in one report


def early_read(
    buffer: Resource, begin: int, end: int, flight: Flight, packet: int, is_done: bool
) -> dict[str, Any]:
    """The CPU reads bytes that a pending command may still write."""
    command = flight.commands[packet]
    return {
        "message": f"The CPU reads {buffer.part(begin, end)} before the GPU {known(is_done)} "
        f"{command} of {flight}, which writes them.",
        "object": buffer,
        "context": (command.context(flight.owner), state(flight, is_done)),
    }


def overlap(first: Resource, second: Resource, begin: int, end: int, lists: list[str]) -> dict[str, Any]:
    """Two placed buffers that share bytes are used together."""
    heap = first.heap
    places = [
        f"{each.title()} takes [{each.allocation.offset}, {each.allocation.offset + each.width}) of the heap"
        for each in (first, second)
    ]
    return {
        "message": f"{first.title()} and {second.title()} share bytes [{begin}, {end}) of "
        f"{heap.title() if heap else 'a heap'}, and one ExecuteCommandLists call uses both without an aliasing "
        "barrier.",
        "operation": "ExecuteCommandLists",
        "object": str(second),  # no reference is kept
        "created_at": second.created_at,
        "context": (*places, f"The call executed {' and '.join(lists)}", calling("ExecuteCommandLists")),
    }


def unmap_range(
    buffer: Resource, written: tuple[int, int], declared: list[tuple[int, int]]
) -> dict[str, Any]:
    """The ranges given to Unmap do not cover what was written."""
    ranges = " and ".join(f"[{begin}, {end})" for begin, end in declared)
    declares = f"declares only {ranges}" if declared else "declares nothing"
    return {
        "message": f"Bytes [{written[0]}, {written[1]}) of {buffer.title()} were written, and Unmap {declares} as written.",
        "operation": "Unmap",
        "field": "pWrittenRange",
        "given": ranges or "an empty range",
        "expected": f"a range that holds [{written[0]}, {written[1]})",
        "object": buffer,
        "context": (calling("Unmap"),),
    }


def leak(device: str, lines: list[str]) -> dict[str, Any]:
    """Objects outlive the device's release."""
    count = len(lines)
    more = [f"and {count - _LISTED} more"] if count > _LISTED else []
    return {
        "message": f"{device} is released, and {count} of its objects {'is' if count == 1 else 'are'} not.",
        "operation": "Release",
        "object": device,
        "context": (*lines[:_LISTED], *more, calling("Release")),
    }
