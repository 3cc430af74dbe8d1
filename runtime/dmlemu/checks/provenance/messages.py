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


def handover(
    command: NamedCommand, tensor: Tensor, source: Source, relation: Relation, base: int
) -> dict[str, Any]:
    """A tensor is read through another layout; ``base``: where its buffer begins."""
    write = source.write
    assert write is not None and write.tensor is not None
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}, but {spell(write.author)} wrote "
        f"these bytes as {_named(write.tensor)}: {relation.value}{_example(write.tensor, tensor, relation)}.",
        "field": f"{tensor.path}.{'DataType' if relation is Relation.OTHER_TYPE else 'Strides'}",
        "given": _bare(tensor),
        "expected": _bare(write.tensor),
        "context": (command.context, *_picture(write.tensor, tensor)),
        **_picture_of(base, tensor, write, _first_difference(write.tensor, tensor)),
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
        place = found.where.replace(name, "")  # the text names it already
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


def mixed(command: NamedCommand, tensor: Tensor, newer: Source, older: Source, base: int) -> dict[str, Any]:
    """A tensor is a mixture; ``base``: where its buffer begins."""
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
        **_picture_of(base, tensor, newer.write, older.first, "written last"),
    }


def padding(command: NamedCommand, tensor: Tensor, source: Source, base: int, where: str) -> dict[str, Any]:
    """A tensor is read beyond the last element of an output; ``base``: where its buffer begins."""
    write = source.write
    assert write is not None and write.tensor is not None
    element = tensor.element(source.first)
    what = tensor.path if element is None else f"element {_at(element)} of {tensor.path}"
    return {
        "message": f"{command.command.name} reads {what} from {where}, which follow the last element of "
        f"{_named(write.tensor)}, which {spell(write.author)} wrote: they kept their contents, which DirectML does "
        "not promise.",
        "context": (command.context,),
        "cause": (command.command.site, command.command.name, tensor.path, "padding"),
        **_picture_of(base, tensor, write, source.first, "written"),
    }


def not_compared(command: NamedCommand, tensor: Tensor) -> dict[str, Any]:
    """A tensor is too large."""
    return {
        "message": f"{command.command.name} reads {tensor.path} as {_bare(tensor)}, from several writes with gaps: the "
        "writer of each element is not looked up.",
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


def _first_difference(written: Tensor, read: Tensor) -> int:
    """The first byte that is in other elements of the two; among those that are compared, else the first one."""
    step, base = max(1, min(written.bits, read.bits) // 8), max(written.address, read.address)
    places = range(base, base + _SEARCHED * step, step)
    return next((each for each in places if _cell(written, each) != _cell(read, each)), base)


def _picture(written: Tensor, read: Tensor) -> list[str]:
    """The elements of both tensors in the same bytes, around the first byte in which they differ."""
    step, base = max(1, min(written.bits, read.bits) // 8), max(written.address, read.address)
    begin = max(base, _first_difference(written, read) - step)
    places = range(begin, begin + _CELLS * step, step)
    shown = [(str(each - read.address), _cell(written, each), _cell(read, each)) for each in places]
    widths = [max(map(len, column)) for column in shown]
    titles = f"byte of {read.path}", "written as element", "read as element"
    margin = max(map(len, titles))
    return [
        " ".join([title.ljust(margin), *(cell.rjust(width) for cell, width in zip(row, widths, strict=True))])
        for title, row in zip(titles, zip(*shown, strict=True), strict=True)
    ]


def _picture_of(base: int, read: Tensor, write: Write, faulty: int, what: str = "written") -> dict[str, Any]:
    """What was written and what is read, in the buffer that begins at ``base``, for the report's picture."""
    base = min(base, write.begin)  # in buffers that share memory, one may begin before
    if write.tensor is not None:
        written = _drawn(write.tensor, what, base)
    else:
        written = Drawn.of_bytes(f"bytes ({what})", write.begin - base, write.end - write.begin)
    return {"layouts": (written, _drawn(read, "read", base)), "faulty_byte": faulty - base}


def _drawn(tensor: Tensor, what: str, base: int) -> Drawn:
    end = tensor.byte([size - 1 for size in tensor.sizes]) + max(1, tensor.bits // 8)
    return Drawn(
        f"{tensor.path} ({what})",
        tensor.data_type.name,
        tensor.bits,
        tensor.sizes,
        tensor.strides,
        tensor.address - base,
        end - tensor.address,
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
