"""A part of a timeline as SVG: what :func:`dmlemu.trace` has noted, each event as wide as the others.

Perfetto shows times; a picture that is the same on every machine shows their order.
"""

from __future__ import annotations

import re
import textwrap
from html import escape
from typing import Any, NamedTuple

__all__ = ["svg"]

_LEFT, _WIDE, _HIGH, _GAP, _MARGIN = 80, 116, 56, 30, 12
_CHARACTERS = 16  # of a line in a box
_STYLE = """
text { font: 10.5px ui-monospace, Menlo, Consolas, monospace; fill: #1a1a1a; }
.track { font-weight: 600; } .small { font-size: 10px; fill: #666; } .middle { text-anchor: middle; }
rect { fill: #dfe8f4; stroke: #6b87ab; } .blocked { fill: #eee; stroke: #bbb; stroke-dasharray: 4 3; }
.lane { stroke: #ddd; } path { fill: none; stroke-width: 1.6; }
.submitted { stroke: #777; } .fence { stroke: #c2560c; } .data { stroke: #1c6fb5; }
@media (prefers-color-scheme: dark) {
text { fill: #e8e8e8; } .small { fill: #aaa; } rect { fill: #22354d; stroke: #7f9cc2; }
.blocked { fill: #2a2a2a; stroke: #777; } .lane { stroke: #444; }
.submitted { stroke: #aaa; } .fence { stroke: #ff9a57; } .data { stroke: #6db3f2; } }
"""

Event = dict[str, Any]


class _Box(NamedTuple):
    """Something on a track, in these columns."""

    event: Event
    track: int
    first: int
    last: int


def svg(events: list[Event], tracks: dict[int, str]) -> str:
    """Draws slices, instants and the arrows between them.  ``tracks``: which threads, and names."""
    boxes = _boxes(events, list(tracks))
    columns = 1 + max(each.last for each in boxes)
    width = _LEFT + columns * _WIDE + _MARGIN
    height = 2 * _MARGIN + len(tracks) * (_HIGH + _GAP) + 8
    parts = []
    for row, name in enumerate(tracks.values()):
        y = _top(row) + _HIGH / 2
        parts.append(f'<line x1="{_LEFT}" x2="{width - _MARGIN}" y1="{y}" y2="{y}" class="lane"/>')
        parts.append(f'<text x="{_MARGIN}" y="{y + 4}" class="track">{escape(name)}</text>')
    parts += _arrows(events, boxes)
    parts += [_drawn(each) for each in boxes]
    legend = "grey: submitted; orange: a fence; blue: data. Order, not duration."
    parts.append(f'<text x="{_MARGIN}" y="{height - _MARGIN}" class="small">{legend}</text>')
    about = ", ".join(tracks.values())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="timeline of {escape(about)}">\n'
        f"<style>{_STYLE}</style>\n<defs>{_heads()}</defs>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _boxes(events: list[Event], tracks: list[int]) -> list[_Box]:
    """A column for each event, in order; what is blocked takes those of what happens meanwhile."""
    shown = sorted(
        (each for each in events if each["ph"] in "Xi" and each["tid"] in tracks), key=lambda each: each["ts"]
    )
    moments = [each for each in shown if not _is_blocked(each)]
    found = [_Box(each, tracks.index(each["tid"]), at, at) for at, each in enumerate(moments)]
    for each in filter(_is_blocked, shown):
        end = each["ts"] + each["dur"]
        during = [at for at, other in enumerate(moments) if each["ts"] < other["ts"] < end]
        if during:
            found.insert(0, _Box(each, tracks.index(each["tid"]), during[0], during[-1]))
    return found


def _is_blocked(event: Event) -> bool:
    return str(event["name"]).startswith("blocked")


def _top(track: int) -> float:
    return _MARGIN + track * (_HIGH + _GAP)


def _drawn(box: _Box) -> str:
    x, y = _LEFT + box.first * _WIDE + 4, _top(box.track)
    wide = (box.last - box.first + 1) * _WIDE - 8
    name = re.sub(r" \(.*\)", "", str(box.event["name"])).replace(" of compiled operator", "")
    lines = textwrap.wrap(
        name.replace("CommandLists", " CommandLists"), _CHARACTERS * (1 + box.last - box.first)
    )
    middle = y + _HIGH / 2 + 4 - 6.5 * (len(lines) - 1)
    text = "".join(
        f'<text x="{x + wide / 2}" y="{middle + 13 * i}" class="middle">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    kind = ' class="blocked"' if _is_blocked(box.event) else ""
    return (
        f"<g><title>{escape(str(box.event['name']))}</title>"
        f'<rect x="{x}" y="{y}" width="{wide}" height="{_HIGH}" rx="4"{kind}/>{text}</g>'
    )


def _arrows(events: list[Event], boxes: list[_Box]) -> list[str]:
    """Those whose both ends are shown."""
    begins = {each["id"]: each for each in events if each["ph"] == "s"}
    found = []
    for event in events:
        if event["ph"] == "f" and event["id"] in begins:
            begin, end = _at(begins[event["id"]], boxes), _at(event, boxes)
            if begin and end and begin.track != end.track:
                found.append(_arrow(begin, end, event["name"]))
    return found


def _at(event: Event, boxes: list[_Box]) -> _Box | None:
    """The box in which an arrow begins or ends; where that is not shown, the next one of its track."""
    after = (
        each
        for each in boxes
        if not _is_blocked(each.event)
        and each.event["tid"] == event["tid"]
        and each.event["ts"] >= event["ts"]
    )
    return min(after, key=lambda each: each.first, default=None)


def _arrow(begin: _Box, end: _Box, kind: str) -> str:
    is_down = begin.track < end.track
    x, right = _LEFT + (begin.last + 0.75) * _WIDE, _LEFT + (end.first + 0.25) * _WIDE
    y = _top(begin.track) + (_HIGH if is_down else 0)
    bottom = _top(end.track) + (0 if is_down else _HIGH)
    bend = (y + bottom) / 2
    return (
        f'<path d="M{x} {y} C{x} {bend} {right} {bend} {right} {bottom}" class="{kind}" '
        f'marker-end="url(#{kind})"/>'
    )


def _heads() -> str:
    """The heads of arrows, in their colours."""
    return "".join(
        f'<marker id="{kind}" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="6" markerHeight="6" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8" class="{kind}"/></marker>'
        for kind in ("submitted", "fence", "data")
    )
