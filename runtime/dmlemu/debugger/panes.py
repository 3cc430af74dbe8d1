"""The panes of the debugger as text: functions of a cursor, a width and a height."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

import numpy as np
from rich.text import Text

from ..errors import printable
from ..pictures import Layout, Tensor
from ..pictures.tensor import Index, shown
from ..stepping import Buffer, Moment, read_tensor
from ..stepping.model import COMMAND
from .cursor import Cursor

__all__ = ["descriptors", "details", "fences", "listing", "memory", "reports", "resources", "timeline"]

_CHANGED, _CURSOR, _BOTH = "black on yellow", "reverse", "bold underline black on bright_yellow"
_DIM, _HEAD, _WRONG = "dim", "bold", "bold red"
_CELL = 8  # characters of a value

Ranges = list[tuple[int, int]]


def _line(width: int, *parts: tuple[str, str]) -> Text:
    """One line, cut at the width."""
    line = Text(no_wrap=True, end="")
    for text, style in parts:
        line.append(printable(text), style)
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _page(lines: Sequence[Text], height: int) -> Text:
    return Text("\n", no_wrap=True, end="").join(lines[: max(0, height)])


def _wrapped(text: str, width: int, style: str) -> list[Text]:
    """A text in as many lines as it takes."""
    return [_line(width, (each, style)) for each in wrap(text, max(20, width), subsequent_indent="  ")]


def _window(count: int, at: int, height: int) -> range:
    """The rows that are shown: as many as fit, ``at`` in the middle."""
    first = min(max(0, at - height // 2), max(0, count - height))
    return range(first, min(count, first + height))


# --- the moments ---


def timeline(cursor: Cursor, width: int, height: int) -> Text:
    """The moments around the current one, with a heading for each list that a queue executes."""
    moments = cursor.run.moments
    if not moments:
        return _page([_line(width, ("Nothing happened on a device.", _DIM))], height)
    lines: list[Text] = []
    current = 0
    for at in _window(len(moments), cursor.moment, height):
        moment = moments[at]
        before = moments[at - 1] if at else None
        if moment.kind == COMMAND and (before is None or before.submission != moment.submission):
            lines.append(_line(width, (f"{moment.list}, on {moment.queue}", _HEAD)))
        if at == cursor.moment:
            current = len(lines)
        lines.append(_moment(moment, width, at == cursor.moment))
    return _page([lines[i] for i in _window(len(lines), current, height)], height)


def _moment(moment: Moment, width: int, is_current: bool) -> Text:
    pointer = "\u25b6" if is_current else " "
    mark = "\u2716" if moment.failed else "!" if moment.reports else " "
    style = _CURSOR if is_current else "" if moment.kind == COMMAND else _DIM
    wrong = _WRONG if moment.failed or moment.reports else style
    number = (f"{pointer}{moment.number:5}", style)
    if moment.kind == COMMAND:
        return _line(width, number, (f"{mark}", wrong), (f"{moment.packet:3} {_short(moment.name)}", style))
    who = "queue" if moment.queue else "host"
    return _line(width, number, (mark, wrong), (f"{who}: {moment.name} {moment.text}", style))


def _short(name: str) -> str:
    """``'add' (ELEMENT_WISE_ADD)`` of a dispatch; other commands as they are."""
    return name.removeprefix("Dispatch of compiled operator ").replace("(DML_OPERATOR_", "(")


def details(cursor: Cursor, width: int, height: int) -> Text:
    """What the current moment is, and what it accesses."""
    moment = cursor.here
    if moment is None:
        notes = cursor.run.notes or ["No moment was kept."]
        return _page([line for each in notes for line in _wrapped(each, width, "")], height)
    name = _short(moment.name)
    if len(name) + 2 + len(moment.site) <= width:
        lines = [_line(width, (f"{name}  ", _HEAD), (moment.site, _DIM))]
    else:
        lines = [_line(width, (name, _HEAD)), _line(width, (moment.site, _DIM))]
    if moment.failed:
        lines.append(_line(width, ("The GPU stopped here: the device was removed.", _WRONG)))
    for each in moment.reports:
        lines.append(_line(width, (f"{each.severity.name} {each.id}: {each.message}", _WRONG)))
    at = 0
    for operand in cursor.operands:
        assert operand.buffer is not None
        is_shown = operand is cursor.operand
        where = f"{cursor.run.buffers[operand.buffer].name}, bytes [{operand.begin}, {operand.end})"
        style = _CURSOR if is_shown else ""
        at = len(lines) if is_shown else at
        through = "" if operand.descriptor is None else f", descriptor {operand.descriptor[1]}"
        lines.append(_line(width, (f"{operand.access} {operand.name}: {where}{through}", style)))
        if operand.tensor is not None:
            lines.append(_line(width, (f"  {str(operand.tensor).partition(': ')[2]}", _DIM)))
    if moment.fields:
        lines += _wrapped(", ".join(f"{name} {value}" for name, value in moment.fields), width, "")
    lines += _wrapped(moment.text, width, _DIM)
    if cursor.moment == len(cursor.run.moments) - 1:
        for note in cursor.run.notes:
            lines += _wrapped(note, width, _WRONG)
    skipped = max(0, at - height + 2)  # so that the operand that is shown has room, and its layout
    return _page([lines[0], *lines[1 + skipped :]], height)


# --- memory ---


def memory(cursor: Cursor, width: int, height: int) -> Text:
    """The buffer that is shown, in the view that is chosen, with what the moment has changed."""
    buffer = cursor.buffer
    if buffer is None:
        return _page([_line(width, ("No buffer yet.", _DIM))], height)
    lines = [_line(width, (f"{buffer.name}, {buffer.size} bytes, byte {cursor.byte}", _HEAD))]
    lines.append(_line(width, (_history(cursor), "")))
    if not buffer.lives(cursor.moment):
        lines.append(_line(width, ("It does not exist at this moment.", _WRONG)))
    left = height - len(lines)
    tensor = cursor.tensor
    if tensor is None or cursor.form == "bytes":
        lines += _bytes(cursor, width, left)
    elif cursor.form == "tensor":
        lines += _elements(cursor, tensor, width, left)
    else:
        layouts = [tensor]
        for each in cursor.operands:
            if each.buffer == buffer.number and each.tensor is not None and each.tensor not in layouts:
                layouts.append(each.tensor)
        picture = Layout(layouts).around(cursor.byte).text(width)
        lines += [_line(width, (each, "")) for each in picture.splitlines()]
    return _page(lines, height)


def _history(cursor: Cursor) -> str:
    """Who wrote the byte, and who will."""
    buffer = cursor.buffer
    assert buffer is not None
    run, at = cursor.run, (buffer.number, cursor.byte)
    moments = run.moments
    last = run.next_writer(cursor.moment + 1, -1, *at)
    later = run.next_writer(cursor.moment, 1, *at)
    written = "never written" if last is None else f"written by {last} {_short(moments[last].name)}"
    return written + ("" if later is None else f", next by {later} {_short(moments[later].name)}")


def _bytes(cursor: Cursor, width: int, height: int) -> list[Text]:
    """Lines of 16 bytes, or 8 where there is no room."""
    buffer = cursor.buffer
    assert buffer is not None
    per_line = 16 if width >= 58 else 8
    lines = -(-buffer.size // per_line)
    changed = cursor.run.changed(buffer.number, cursor.moment)
    found = []
    for row in _window(lines, cursor.byte // per_line, height):
        begin = row * per_line
        content = cursor.run.content(buffer.number, cursor.moment, begin, begin + per_line)
        parts = [(f"{begin:8} ", _DIM)]
        for i, each in enumerate(content.data):
            text = f"{each:02x}" if content.knows(i, i + 1) else "??"
            style = _style(begin + i, begin + i + 1, changed, cursor.byte)
            parts += [(text, style), ("  " if i % 4 == 3 else " ", "")]
        found.append(_line(width, *parts))
    return found


def _style(begin: int, end: int, changed: Ranges, byte: int) -> str:
    is_changed = any(first < end and begin < last for first, last in changed)
    if begin <= byte < end:
        return _BOTH if is_changed else _CURSOR
    return _CHANGED if is_changed else ""


def _elements(cursor: Cursor, tensor: Tensor, width: int, height: int) -> list[Text]:
    """Planes of the tensor with its values; parts that do not fit are left out in between."""
    lines = [_line(width, (str(tensor), _DIM))]
    if not tensor.element_count:
        return lines
    at = tensor.at(cursor.byte * 8)
    focus = at[0] if at else None
    rows = max(1, min(tensor.sizes[-2] if len(tensor.sizes) > 1 else 1, height - 3))
    planes = tensor.planes(max(1, (height - 1) // (rows + 1)), focus)
    for plane in planes:
        if plane is None:
            lines.append(_line(width, ("\u2026", _DIM)))
            continue
        if len(tensor.sizes) > 2:
            lines.append(_line(width, (f"({', '.join(map(str, plane))}, y, x)", _DIM)))
        lines += _plane(cursor, tensor, plane, focus, width, rows)
    return lines


def _plane(
    cursor: Cursor, tensor: Tensor, plane: Index, focus: Index | None, width: int, height: int
) -> Iterator[Text]:
    rows, columns = ([1, 1, *tensor.sizes])[-2:]
    y_at, x_at = ([None, None, *focus])[-2:] if focus is not None else (None, None)
    cells = shown(columns, max(1, width // (_CELL + 1)), x_at)
    assert cursor.buffer is not None
    changed = cursor.run.changed(cursor.buffer.number, cursor.moment)
    for y in shown(rows, max(1, height), y_at):
        if y is None:
            yield _line(width, ("\u2026".rjust(_CELL), _DIM))
            continue
        parts: list[tuple[str, str]] = []
        for x in cells:
            if x is None:
                parts.append(("\u2026 ", _DIM))
                continue
            index = (*plane, y, x)[-len(tensor.sizes) :]
            parts += [_value(cursor, tensor, index, changed), (" ", "")]
        yield _line(width, *parts)


def _value(cursor: Cursor, tensor: Tensor, index: Index, changed: Ranges) -> tuple[str, str]:
    """An element with its style."""
    buffer, run = cursor.buffer, cursor.run
    assert buffer is not None
    begin = tensor.bit(index) // 8
    end = begin + max(1, tensor.bits // 8)
    content = run.content(buffer.number, cursor.moment, begin, end)
    style = _style(begin, end, changed, cursor.byte)
    if len(content.data) < end - begin:
        return "outside".rjust(_CELL), _WRONG
    if content.unknown:
        return "?".rjust(_CELL), style
    one = tensor._replace(sizes=(1,), strides=(1,), offset=begin, size=end - begin)
    if tensor.bits == 4 and tensor.bit(index) % 8:
        content = content._replace(data=bytes([content.data[0] >> 4]))
    return _number(read_tensor(content.data, one)[0]).rjust(_CELL), style


def _number(value: np.generic) -> str:
    text = f"{value:.4g}" if isinstance(value, np.floating) else str(value)
    return text if len(text) <= _CELL else f"{text[: _CELL - 1]}\u2026"


# --- everything else ---


def resources(cursor: Cursor, width: int, height: int) -> Text:
    """The living buffers with their states."""
    run, used = cursor.run, {each.buffer: each.access for each in cursor.operands}
    states, before = run.states(cursor.moment), run.states(cursor.moment - 1)
    living = run.living(cursor.moment)
    numbers = [each.number for each in living]
    shown_number = cursor.buffer.number if cursor.buffer else -1
    at = numbers.index(shown_number) if shown_number in numbers else 0
    lines = []
    for i in _window(len(living), at, height):
        each = living[i]
        state = states[each.number]
        is_new = state != before.get(each.number, state)
        shares = [
            other.name.removeprefix("buffer ")
            for other in living
            if other is not each and other.memory == each.memory >= 0 and _overlap(each, other)
        ]
        lines.append(
            _line(
                width,
                (each.name.removeprefix("buffer "), _CURSOR if each.number == shown_number else ""),
                (f"  {each.size} bytes  {each.heap_type}  ", _DIM),
                (state, _CHANGED if is_new else ""),
                (f"  {used[each.number]}" if each.number in used else "", _HEAD),
                (f"  shares bytes with {', '.join(shares)}" if shares else "", _WRONG),
            )
        )
    return _page(lines or [_line(width, ("No buffer exists.", _DIM))], height)


def _overlap(a: Buffer, b: Buffer) -> bool:
    return a.offset < b.offset + b.size and b.offset < a.offset + a.size


def descriptors(cursor: Cursor, width: int, height: int) -> Text:
    """What the descriptor heaps hold; those that the moment uses are marked."""
    run, used = cursor.run, {each.descriptor: each.name for each in cursor.operands}
    before = run.descriptors(cursor.moment - 1)
    rows = sorted(run.descriptors(cursor.moment).items())
    at = next((i for i, (place, _) in enumerate(rows) if place in used), 0)
    lines = []
    for i in _window(len(rows), at, height):
        (heap, index), text = rows[i]
        is_new = before.get((heap, index)) != text
        name = used.get((heap, index))
        writer = run.descriptor_versions.since(cursor.moment, (heap, index))
        lines.append(
            _line(
                width,
                (f"{run.heaps[heap].name.removeprefix('descriptor ')} [{index}] ", ""),
                (f"{name} " if name else "", _HEAD),
                (text, _CHANGED if is_new else ""),
                ("" if writer is None else f"  written by {writer}", _DIM),
            )
        )
    return _page(lines or [_line(width, ("No descriptor has been written.", _DIM))], height)


def listing(cursor: Cursor, width: int, height: int) -> Text:
    """The list that is executed, disassembled, with the current packet."""
    here = cursor.here
    found = None if here is None else cursor.run.listing(cursor.moment)
    if here is None or found is None:
        return _page([_line(width, ("This moment is not a command of a list.", _DIM))], height)
    rows = list(found.lines())
    at = next((i for i, (packet, _) in enumerate(rows) if packet == here.packet), 0)
    lines = []
    for packet, text in (rows[i] for i in _window(len(rows), at, height)):
        if packet < 0:
            lines.append(_line(width, (_short(text), _HEAD)))
        else:
            style = _CURSOR if packet == here.packet else ""
            lines.append(_line(width, (f"{packet:5} {text}", style)))
    return _page(lines, height)


def fences(cursor: Cursor, width: int, height: int) -> Text:
    """The values of the fences."""
    run = cursor.run
    before = run.fence_values(cursor.moment - 1)
    lines = [
        _line(
            width,
            (f"{run.fences[number]} = ", ""),
            (
                "removed" if value == 2**64 - 1 else str(value),
                _CHANGED if before.get(number) != value else "",
            ),
        )
        for number, value in run.fence_values(cursor.moment).items()
    ]
    return _page(lines or [_line(width, ("No fence exists.", _DIM))], height)


def reports(cursor: Cursor, width: int, height: int) -> Text:
    """The reports of the moment in full, else a list of all."""
    here = cursor.here
    if here is not None and here.reports:
        lines = []
        for each in here.reports:
            for text in each.text().splitlines():
                lines += _wrapped(text, width, "")
        return _page(lines, height)
    found = [
        _line(width, (f"{moment.number:5} ", _DIM), (f"{each.severity.name} {each.id}: {each.message}", ""))
        for moment in cursor.run.moments
        for each in moment.reports
    ]
    return _page(found or [_line(width, ("Nothing was reported.", _DIM))], height)
