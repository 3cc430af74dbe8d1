"""What is bound to a buffer over time, in the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import pairwise

from .memory_model import Memory, Use, row_label

__all__ = ["text"]

_LABEL = 34  # columns for the name of a command
_LEGEND = "W written  R read  X both  \u00b7 lives  ! shared with another tensor while both live"


def text(picture: Memory, width: int | None, colour: bool) -> str:
    """A row for each command with a column for each part of the buffer, and what was bound."""
    width = width or shutil.get_terminal_size((100, 24)).columns
    heading = picture.title if len(picture.title) <= width else picture.title[: width - 1] + "\u2026"
    lines = [_paint(heading, "1", colour)]
    if picture.uses:
        label = min(_LABEL, width // 2)
        cell = len(str(picture.size)) + 1
        columns = picture.columns(max(1, (width - label - cell) // cell))
        lines += ["", "byte".ljust(label) + "".join(str(edge).ljust(cell) for edge in columns)]
        lines += _rows(picture, columns, label, cell, width, colour)
        lines += ["", _LEGEND[:width]]
    for note in picture.notes():
        lines.append(_paint(note, "31;1", colour) if picture.clashing else note)
    return "\n".join(line.rstrip() for line in lines)


def _paint(line: str, code: str, colour: bool) -> str:
    return f"\x1b[{code}m{line}\x1b[0m" if colour else line


def _rows(
    picture: Memory, columns: list[int], label: int, cell: int, width: int, colour: bool
) -> Iterator[str]:
    for number in picture.rows():
        if number is None:
            yield "\u2026"
            continue
        name = row_label(number, picture.commands[number])
        name = name if len(name) < label else name[: label - 2] + "\u2026"
        uses = picture.of(number)
        cells = (_cell(picture, uses, number, begin, end, cell, colour) for begin, end in pairwise(columns))
        yield name.ljust(label) + "".join(cells)
        for use in uses:
            mark = "!" if picture.is_red(use) else " "
            line = f"  {mark} {use.verb} {use.operand or 'it'}: {use.place}"
            line = line if len(line) <= width else line[: width - 1] + "\u2026"
            yield _paint(line, "31" if mark == "!" else "2", colour)


def _cell(
    picture: Memory, uses: list[Use], number: int, begin: int, end: int, cell: int, colour: bool
) -> str:
    """What happens to bytes [begin, end) in a row."""
    here = [use for use in uses if use.begin < end and begin < use.end]
    lives = [
        life
        for life in picture.lives
        if life.begin < end and begin < life.end and life.first <= number <= life.last
    ]
    is_red = any(low < end and begin < high for life in lives for low, high in life.clashes)
    if here:
        reads, changes = any(use.reads for use in here), any(use.changes for use in here)
        letter = "X" if reads and changes else "W" if changes else "R"
    else:
        letter = "\u00b7" if lives else " "
    shown = letter * (cell - 1)
    if is_red and letter != " ":
        shown = (shown[:-1] + "!") if cell > 2 else "!"
        return _paint(shown, "31;1", colour) + " "
    return shown + " "
