"""Messages on indices in tensors."""

from __future__ import annotations

from typing import Any

from ..framework.names import NamedCommand

__all__ = ["outside", "scattered"]


def outside(
    command: NamedCommand, packet: bytes, bad: Any, tensors: tuple[str, str], element: tuple[int, ...]
) -> dict[str, Any]:
    """An index out of range; ``tensors``: the one that contains it, and the one it indexes."""
    indices, target = tensors
    size = bad.size
    value = bad.value.i if bad.is_signed else bad.value.u
    nearest = 0 if value < 0 else size - 1
    place = f"element ({', '.join(map(str, element))}) of {indices}"
    least = -size if bad.is_signed else 0
    others = (
        f"; {bad.count - 1} more {'index is' if bad.count == 2 else 'indices are'} out of range, too"
        if bad.count > 1
        else ""
    )
    return {
        "message": f"{command.command.name} reads index {value} from {place}, but {target}.Sizes[{bad.axis}] is {size}: "
        f"index {nearest} is used instead{others}.",
        "given": value,
        "expected": f"{least} to {size - 1}",
        "operation": command.place,
        "context": (command.context,),
        "cause": (command.command.site or packet, command.command.name, indices),
    }


def scattered(command: NamedCommand, target: str) -> dict[str, Any]:
    """Too many separate elements of a tensor are read to be tracked."""
    return {
        "message": f"{command.command.name} reads elements of {target} that are too scattered to be followed: hazards "
        "and reads of unwritten memory there are not reported.",
        "operation": command.place,
        "context": (command.context,),
    }
