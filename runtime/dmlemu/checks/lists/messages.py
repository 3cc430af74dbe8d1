"""Messages on objects that the GPU still needs, and on fences."""

from __future__ import annotations

from typing import Any

from ...d3d12.core.object import Object
from ...errors import CallSite, caller, spell_site
from ..analysis.in_flight import Flight

__all__ = [
    "backwards",
    "calling",
    "empty_list",
    "executed_twice",
    "known",
    "needed",
    "reset_early",
    "setter",
    "state",
]


def calling(operation: str, doing: str = "calling") -> str:
    """A context line: the calling line of the program."""
    place = caller()
    return f"While {doing} {operation}{f' at {place}' if place else ''}"


def known(is_done: bool) -> str:
    """``before the GPU`` ... ``it``: the emulated GPU may have finished earlier than others would."""
    return "can be known to have finished" if is_done else "has finished"


def state(flight: Flight, is_done: bool) -> str:
    """A context line: the progress of the work."""
    handed = f"{flight} was handed to {flight.label}"
    if flight.handed_at:
        handed += f" at {spell_site(flight.handed_at)}"
    if is_done:
        return (
            f"{handed} and has been executed here, but no fence value that the program has awaited says so: "
            "another GPU may be slower"
        )
    return f"{handed} and is pending"


def needed(
    thing: Object, flight: Flight, is_done: bool, advice: str, *, call: str, happens: str, needed: Object
) -> dict[str, Any]:
    """An object is released, evicted or reset while the GPU may need it or something placed in it."""
    command = flight.command_of(needed)
    needs = "which needs it" if needed is thing else f"which needs {needed.title()} in it"
    context: tuple[str, ...] = ()
    if command is None:
        what = f"{flight}, which was recorded with it"
    elif flight.owner:
        what, context = f"{command} of {flight}, {needs}", (command.context(flight.owner),)
    else:
        what = f"{command.name}, {needs}"
    return {
        "message": f"{thing.title()} is {happens} before the GPU {known(is_done)} {what}.",
        "operation": call,
        "object": thing,
        "context": (*context, state(flight, is_done), calling(call)),
        "hint": advice,
    }


def reset_early(allocator: Object, flight: Flight, advice: str) -> dict[str, Any]:
    """An allocator is reset while its commands are not known to have been executed."""
    operation = "ID3D12CommandAllocator::Reset"
    return {
        "message": f"{allocator.title()} is reset before the GPU {known(True)} {flight}, which was recorded with it.",
        "operation": operation,
        "object": allocator,
        "context": (state(flight, True), calling(operation)),
        "hint": advice,
    }


def executed_twice(flight: Flight, advice: str) -> dict[str, Any]:
    """A list is executed again while it is not known to have finished."""
    return {
        "message": f"{flight} is executed again before the GPU {known(True)} it.",
        "operation": "ExecuteCommandLists",
        "object": flight.owner,
        "context": (state(flight, True), calling("ExecuteCommandLists")),
        "hint": advice,
    }


def empty_list(owner: str, queue: str) -> dict[str, Any]:
    """A list without commands."""
    return {
        "message": f"{owner} is executed and holds no commands.",
        "operation": "ExecuteCommandLists",
        "object": owner,
        "context": (calling(f"ExecuteCommandLists of {queue}"),),
    }


def setter(name: str, site: CallSite | None) -> str:
    """What set a fence: a queue, the host, or (empty) its creation."""
    what = f"Signal of {name}" if name else "its creation"
    return f"{what} at {spell_site(site)}" if site else what


def backwards(fence: str, value: int, by: str, before: int, by_before: str) -> dict[str, Any]:
    """A fence gets a lower value than it had."""
    return {
        "message": f"{fence} is set back from {before} to {value}.",
        "operation": "Signal",
        "field": "Value",
        "given": str(value),
        "expected": f"at least {before}",
        "object": fence,
        "context": (f"Set to {before} by {by_before}", f"Set to {value} by {by}"),
    }
