"""Messages on whose bytes a dispatch reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...diagnostics.report import Severity
from ...pictures import Tensor as Drawn
from ..analysis.provenance import Author, Source, Write
from ..analysis.tensor_relation import Relation, Tensor, first_moved
from ..analysis.unread import UnreadWrite
from ..framework.names import NamedCommand
from ..lineage import layout, spell

__all__ = ["Suspect", "Unread", "handover", "mixed", "not_compared", "unread"]

_LISTED = 8
_CELLS = 6  # of a picture
_SEARCHED = 64  # for the first difference


def handover(command: NamedCommand, tensor: Tensor, source: Source, relation: Relation) -> dict[str, Any]:
    """A tensor is read through another layout."""
    write = source.write
    assert write is not None and write.tensor is not None
    advice: dict[str, Any] = {} if relation.is_mistake else {"severity": Severity.INFO}
    return advice | {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}, but {spell(write.author)} wrote "
        f"these bytes as {_named(write.tensor)}: {relation.value}{_example(write.tensor, tensor, relation)}.",
        "field": f"{tensor.path}.{'DataType' if relation is Relation.OTHER_TYPE else 'Strides'}",
        "given": _bare(tensor),
        "expected": _bare(write.tensor),
        "context": (command.context, *_picture(write.tensor, tensor)),
        "layouts": _drawn(write.tensor, tensor),
        "cause": (command.command.site, command.command.name, tensor.path, relation),
    }


class Suspect(NamedTuple):
    """A read that was reported as wrong."""

    id: str
    begin: int  # of the physical memory
    end: int
    tensor: Tensor
    command: str

    def explains(self, write: Write) -> bool:
        """Whether it may have been meant to read that write: the same tensor, or one beside it."""
        near = self.end - self.begin
        if write.begin < self.end + near and write.end > self.begin - near:
            return True
        return write.tensor is not None and _elements(write.tensor) == _elements(self.tensor)


class Unread(NamedTuple):
    """A write that nobody read, in words; ``suspect``: the read that was perhaps meant to."""

    text: str
    by: Author | None
    suspect: Suspect | None
    cause: Any

    @staticmethod
    def of(found: UnreadWrite, suspects: Iterable[Suspect]) -> Unread:
        write, author = found.write, found.author
        who = spell(author) if author.command is None else author.command.of(author.list)
        name = "" if write.tensor is None else f" ({write.tensor.path})"
        place = found.where.replace(name, "")  # it is said before
        text = f"what {who} wrote{_as(write)}{' to ' if place else ''}{place}"
        suspect = next((each for each in suspects if each.explains(write)), None)
        return Unread(text, found.by, suspect, text)


def unread(found: list[Unread]) -> dict[str, Any]:
    """Writes that nobody read; several are listed in the context."""
    first, *others = found
    more = f", nor {len(others)} other write{'s' if len(others) > 1 else ''}" if others else ""
    if first.by is not None:
        message = f"Nobody read {first.text} before {spell(first.by)} wrote over it{more}."
    else:
        message = f"Nobody read {first.text}{more}."
    listed = tuple(f"Nobody read {each.text}" for each in others[: _LISTED - 1])
    rest = (f"... and {len(others) + 1 - _LISTED} more",) if len(others) >= _LISTED else ()
    words: dict[str, Any] = {"message": message, "context": (*listed, *rest), "cause": first.cause}
    if first.suspect is not None:
        suspect = first.suspect
        words["severity"] = Severity.WARNING
        words["context"] = (
            f"{suspect.id}: {suspect.command} reads {_named(suspect.tensor)} instead, or beside it",
        )
    return words


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


def _picture(written: Tensor, read: Tensor) -> list[str]:
    """The elements of both tensors in the same bytes, around the first byte in which they differ."""
    step, base = max(1, min(written.bits, read.bits) // 8), max(written.address, read.address)

    def cells(begin: int, count: int) -> list[tuple[str, str, str]]:
        places = [begin + i * step for i in range(count)]
        return [(str(each - read.address), _cell(written, each), _cell(read, each)) for each in places]

    differs = (i for i, (_, one, other) in enumerate(cells(base, _SEARCHED)) if one != other)
    shown = cells(base + max(0, next(differs, 0) - 1) * step, _CELLS)
    widths = [max(map(len, column)) for column in shown]
    titles = f"byte of {read.path}", "written as element", "read as element"
    margin = max(map(len, titles))
    return [
        " ".join([title.ljust(margin), *(cell.rjust(width) for cell, width in zip(row, widths, strict=True))])
        for title, row in zip(titles, zip(*shown, strict=True), strict=True)
    ]


def _drawn(written: Tensor, read: Tensor) -> tuple[Drawn, ...]:
    """Both tensors, for the picture of the report."""
    base = min(written.address, read.address)
    return tuple(
        Drawn(
            f"{each.path} ({what})",
            each.data_type.name,
            each.bits,
            each.sizes,
            each.strides,
            each.address - base,
            each.byte([size - 1 for size in each.sizes]) - each.address + max(1, each.bits // 8),
        )
        for each, what in ((written, "written"), (read, "read"))
    )


def _cell(tensor: Tensor, address: int) -> str:
    """The element that begins at the byte, ``..`` where one goes on, ``-`` where there is none."""
    element = tensor.element(address)
    if element is None:
        return "-"
    return _at(element) if tensor.byte(element) == address else ".."


def _as(write: Write) -> str:
    return "" if write.tensor is None else f" as {_named(write.tensor)}"


def _elements(tensor: Tensor) -> tuple[object, ...]:
    return tensor.data_type, *(size for size in tensor.sizes if size > 1)


def _count(size: int, width: int) -> str:
    count, unit = (size // width, "element") if size % width == 0 else (size, "byte")
    return f"{count} {unit}{'' if count == 1 else 's'}"


def _named(tensor: Tensor) -> str:
    return f"{tensor.path} {_bare(tensor)}".strip()


def _bare(tensor: Tensor) -> str:
    return layout(tensor._replace(path=""))


def _at(element: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, element))})"
