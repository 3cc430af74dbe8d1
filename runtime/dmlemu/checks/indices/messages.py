"""Messages on indices in tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..framework.names import NamedCommand

__all__ = ["outside", "race", "scattered"]


def outside(
    command: NamedCommand,
    packet: bytes,
    bad: Any,
    tensors: tuple[str, str],
    element: tuple[int, ...],
    is_written: bool,
) -> dict[str, Any]:
    """An index out of range; ``tensors``: the one that contains it, and the one it indexes, which may be written."""
    indices, target = tensors
    size = bad.size
    value = bad.value.f if bad.is_float else bad.value.i if bad.is_signed else bad.value.u
    instead = f"index {size - 1 if value > 0 else 0} is used instead"  # also of a NaN
    place = f"element {_at(element)} of {indices}"
    least, most = -size if bad.is_signed else 0, size - 1
    what, several = "index", "indices"
    limit = f"{target}.Sizes[{bad.axis}] is {size}"
    if target.startswith("the flattened"):
        limit = f"{target} has {size} elements"
    if bad.is_length:
        instead = f"{0 if value < 0 else size} is used instead"
        limit = f"{target} has room for {size} in dimension {bad.axis}"
        what, several, least, most, is_written = "length", "lengths", 0, size, False
    others = (
        f"; {bad.count - 1} more {f'{what} is' if bad.count == 2 else f'{several} are'} out of range, too"
        if bad.count > 1
        else ""
    )
    return {
        "message": f"{command.command.name} reads {what} {value} from {place}, but {limit}: "
        f"{'its update is not written' if is_written else instead}{others}.",
        "given": value,
        "expected": f"{least} to {most}",
        "operation": command.place,
        "context": (command.context,),
        "cause": (command.command.site or packet, command.command.name, indices),
    }


def race(
    command: NamedCommand,
    packet: bytes,
    found: Any,
    *,
    written: Sequence[int | float],
    target: tuple[int, ...],
    values: Sequence[tuple[int, ...]],
    indices: Sequence[tuple[int, ...]],
) -> dict[str, Any]:
    """Two values for one element; ``target``, ``values`` and ``indices`` are coordinates in these tensors."""
    names = command.command.operands
    both = f"{written[0]} and {written[1]}"
    others = (
        f"; {found.count - 1} more {'place is' if found.count == 2 else 'places are'} selected twice, too"
        if found.count > 1
        else ""
    )
    return {
        "message": f"{command.command.name} writes {both} in undefined order to element {_at(target)} of {names[found.target]}, "
        f"from elements {_at(values[0])} and {_at(values[1])} of {names[found.values]}: elements "
        f"{_at(indices[0])} and {_at(indices[1])} of {names[found.indices]} both select it{others}.",
        "given": both,
        "expected": "one value",
        "operation": command.place,
        "context": (command.context,),
        "cause": (command.command.site or packet, command.command.name, names[found.indices]),
    }


def _at(element: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, element))})"


def scattered(command: NamedCommand, target: str) -> dict[str, Any]:
    """Too many separate elements of a tensor are read to be tracked."""
    return {
        "message": f"{command.command.name} reads elements of {target} that are too scattered to be followed: hazards "
        "and reads of unwritten memory there are not reported.",
        "operation": command.place,
        "context": (command.context,),
    }
