"""Messages on whose bytes a dispatch reads."""

from __future__ import annotations

from typing import Any

from ..analysis.provenance import Source, Write
from ..analysis.tensor_relation import Relation, Tensor, first_moved
from ..framework.names import NamedCommand
from ..lineage import layout, spell

__all__ = ["handover", "mixed", "not_compared"]


def handover(command: NamedCommand, tensor: Tensor, source: Source, relation: Relation) -> dict[str, Any]:
    """A tensor is read through another layout."""
    write = source.write
    assert write is not None and write.tensor is not None
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}, but {spell(write.author)} wrote "
        f"these bytes as {_named(write.tensor)}: {relation.value}{_example(write.tensor, tensor, relation)}.",
        "field": f"{tensor.path}.{'DataType' if relation is Relation.OTHER_TYPE else 'Strides'}",
        "given": _bare(tensor),
        "expected": _bare(write.tensor),
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, tensor.path, relation),
    }


def mixed(command: NamedCommand, tensor: Tensor, newer: Source, older: Source) -> dict[str, Any]:
    """A tensor is a mixture."""
    assert newer.write is not None and older.write is not None
    here = tensor.element(older.first)
    width = max(1, tensor.bits // 8)
    first = "" if here is None else f", element {_at(here)} first,"
    are = "is" if older.size == width else "are"
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}: {spell(newer.write.author)} wrote "
        f"{_count(newer.size, width)} of it{_as(newer.write)}, but {_count(older.size, width)}{first} {are} older, "
        f"from {spell(older.write.author)}{_as(older.write)}.",
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, tensor.path, "mixed"),
    }


def not_compared(command: NamedCommand, tensor: Tensor) -> dict[str, Any]:
    """A tensor is too large."""
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}, from several writes with gaps: who "
        "wrote each element is not looked for.",
        "operation": command.place,
        "context": (command.context,),
    }


def _example(written: Tensor, read: Tensor, relation: Relation) -> str:
    """An element that is not where it was."""
    if relation not in (Relation.OTHER_STRIDES, Relation.OTHER_ROWS, Relation.SWAPPED_SIZES):
        return ""
    moved = first_moved(written, read) if len(written.sizes) == len(read.sizes) else None
    if moved is None:
        return ""
    element, there = moved
    what = (
        "lies between the elements that were written" if there is None else f"is element {_at(there)} there"
    )
    return f"; element {_at(element)} {what}"


def _as(write: Write) -> str:
    return "" if write.tensor is None else f" as {_named(write.tensor)}"


def _count(size: int, width: int) -> str:
    count, unit = (size // width, "element") if size % width == 0 else (size, "byte")
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _named(tensor: Tensor) -> str:
    return f"{tensor.path} {_bare(tensor)}".strip()


def _bare(tensor: Tensor) -> str:
    return layout(tensor._replace(path=""))


def _at(element: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, element))})"
