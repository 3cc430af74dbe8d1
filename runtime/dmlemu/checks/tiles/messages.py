"""Messages on tiles of reserved buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dmlemu_hw.events import READ, WRITE, Access
from dmlemu_hw.storage import TILE_SIZE

from ...d3d12.core.recording import Command
from ...errors import spell_site
from ..analysis.in_flight import Flight
from ..framework.names import NamedCommand
from ..lists.messages import calling, known, state

if TYPE_CHECKING:
    from ...d3d12.memory.resource import Heap, Resource

__all__ = [
    "evicted_heap",
    "mapped_twice",
    "needed_heap",
    "null_tile",
    "overlaps_itself",
    "unordered",
    "used_heap",
]

_VERBS = {READ: "reads", WRITE: "writes", READ | WRITE: "updates"}


def null_tile(command: NamedCommand, access: Access, buffer: Resource, byte: int) -> dict[str, Any]:
    """A command accesses a NULL tile; ``byte``: the first such byte of the buffer."""
    operand = command.operand(access)
    what = "0 is read" if access.access == READ else "what it writes is dropped"
    return {
        "message": f"{command.command.name} {_VERBS.get(access.access, 'uses')} {buffer.part(byte, byte + 1)}"
        f"{f' as {operand}' if operand else ''}, which lies in tile {byte // TILE_SIZE}, and that is mapped to no "
        f"memory: {what}.",
        "operation": command.place,
        "object": buffer,
        "context": (command.context,),
        "properties": {"buffer": buffer.title(), "tile": str(byte // TILE_SIZE)},
        "cause": (
            command.command.site,
            command.command.name,
            operand,
            buffer.title(),
            access.access & READ,
        ),
    }


def overlaps_itself(
    command: NamedCommand, access: Access, buffer: Resource, byte: int, other: int
) -> dict[str, Any]:
    """Two bytes of an output, or of a copy's destination, and of the buffer, are the same byte of a heap."""
    operand = command.operand(access)
    elements = "elements of " if command.command.name.startswith("Dispatch ") else ""
    return {
        "message": f"{command.command.name} writes bytes {byte} and {other} of {buffer.title()} as "
        f"{elements}{operand}, and tiles {byte // TILE_SIZE} and {other // TILE_SIZE} are mapped to one tile of a heap: they "
        "are the same byte.",
        "operation": command.place,
        "object": buffer,
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, operand, buffer.title()),
    }


def needed_heap(
    heap: Heap,
    buffer: Resource,
    flight: Flight,
    command: Command,
    is_done: bool,
    advice: str,
    *,
    call: str,
    happens: str,
) -> dict[str, Any]:
    """A heap is released or evicted while commands may need its tiles."""
    return {
        "message": f"{heap.title()} is {happens} before the GPU {known(is_done)} {command} of {flight}, which needs "
        f"tiles of it through {buffer.title()}.",
        "operation": call,
        "object": heap,
        "context": (command.context(flight.owner), state(flight, is_done), calling(call)),
        "hint": advice,
    }


def used_heap(heap: str, buffer: Resource, flight: Flight, command: Command) -> dict[str, Any]:
    """A command is executed that needs tiles of a released heap."""
    handed = (
        f"While calling ExecuteCommandLists at {spell_site(flight.handed_at)}" if flight.handed_at else ""
    )
    return {
        "message": f"{command.name} needs tiles of {heap} through {buffer.title()}, and the heap has been released.",
        "operation": "ExecuteCommandLists",
        "object": buffer,
        "context": (command.context(flight.owner), *((handed,) if handed else ())),
    }


def evicted_heap(heap: Heap, buffer: Resource, flight: Flight, command: Command) -> dict[str, Any]:
    """A command is executed that needs tiles of a heap that is not resident."""
    at = spell_site(heap.evicted_at)
    return {
        "message": f"{command.name} needs tiles of {heap.title()} through {buffer.title()}, and the heap is not "
        "resident.",
        "operation": "ExecuteCommandLists",
        "object": heap,
        "context": (command.context(flight.owner), *((f"It was evicted at {at}",) if at else ())),
        "hint": "Call MakeResident before the list is executed.",
    }


def unordered(command: NamedCommand, mapping: str, buffer: Resource, tile: int) -> dict[str, Any]:
    """A command accesses a tile that another queue maps; ``mapping``: that call, with its queue."""
    return {
        "message": f"{command.command.name} on {command.queue} uses tile {tile} of {buffer.title()}, which "
        f"{mapping} maps, and no fence orders the two.",
        "operation": command.place,
        "object": buffer,
        "context": (command.context,),
        "properties": {"buffer": buffer.title(), "tile": str(tile), "command": str(command.number)},
        "cause": (command.command.site, command.command.name, mapping, buffer.title()),
    }


def mapped_twice(first: str, second: str, buffer: Resource, tile: int) -> dict[str, Any]:
    """Two queues map the same tile."""
    return {
        "message": f"{second} maps tile {tile} of {buffer.title()}, which {first} maps too, and no fence orders the "
        "two.",
        "operation": "UpdateTileMappings",
        "object": buffer,
        "properties": {"buffer": buffer.title(), "tile": str(tile)},
        "cause": (first, second, buffer.title()),
    }
