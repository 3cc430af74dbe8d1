"""What is bound to a buffer over time, as SVG: bytes to the right, time downwards."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from .memory_model import Life, Memory, Use, row_label

__all__ = ["svg"]

_LABEL, _WIDTH, _ROW, _MARGIN, _COLUMNS = 330, 560, 26, 12, 24
_LONGEST = 44  # characters of a command's name
_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1a1a1a; }
.title { font-weight: 600; } .small { font-size: 10px; fill: #666; } .middle { text-anchor: middle; }
.operand { font-size: 10px; pointer-events: none; }
.red { fill: #d00000; } .line { stroke: #ddd; } .life { fill: #e8eef8; stroke: #9ab; }
.write { fill: #f2b36b; stroke: #96601c; } .read { fill: #8fc3e8; stroke: #2a648f; }
.both { fill: #c3a2e0; stroke: #6b3f93; } .shared { stroke: #d00000; stroke-width: 2.5; }
.clash { fill: #d00000; fill-opacity: 0.2; }
@media (prefers-color-scheme: dark) {
text { fill: #e8e8e8; } .small { fill: #aaa; } .red { fill: #ff7070; } .line { stroke: #444; }
.life { fill: #26303f; stroke: #678; } .write { fill: #8a5310; } .read { fill: #1f567d; }
.both { fill: #5d3484; } .shared { stroke: #ff5c5c; } }
"""


def svg(picture: Memory) -> str:
    """The document."""
    return _Page(picture).document()


class _Page:
    """Draws a picture; ``tops``: where the rows of commands begin."""

    def __init__(self, picture: Memory) -> None:
        self.picture = picture
        self.edges = picture.columns(_COLUMNS)
        self.parts: list[str] = []
        self.tops: dict[int, float] = {}
        self.y = float(_MARGIN)

    def document(self) -> str:
        picture = self.picture
        self.text(_MARGIN, picture.title, "title")
        self.y += _ROW
        if picture.uses:
            self.axis()
            self.rows()
            for life in picture.lives:
                self.life(life)
            for use in picture.uses:
                self.use(use)
            for life in picture.clashing:
                self.clashes(life)
            self.text(_MARGIN, "orange: written; blue: read; violet: both; pale: lives", "small")
            self.y += 18
        for note in picture.notes():
            self.text(_MARGIN, note, "red" if picture.clashing else "")
            self.y += 18
        width, height = 2 * _MARGIN + _LABEL + _WIDTH, self.y + _MARGIN
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
            f'viewBox="0 0 {width} {height:.0f}" role="img" aria-label="{escape(picture.title)}">\n'
            f"<style>{_STYLE}</style>\n" + "\n".join(self.parts) + "\n</svg>\n"
        )

    def text(self, x: float, text: str, kind: str = "", down: float = 14) -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{self.y + down:.1f}" class="{kind}">{escape(text)}</text>')

    def x(self, byte: int) -> float:
        """Where a byte lies: every column is as wide as the others."""
        wide = _WIDTH / (len(self.edges) - 1)
        for i, (begin, end) in enumerate(pairwise(self.edges)):
            if byte <= end:
                return _MARGIN + _LABEL + wide * (i + max(0, byte - begin) / (end - begin))
        return float(_MARGIN + _LABEL + _WIDTH)

    def axis(self) -> None:
        self.text(_MARGIN, "byte", "small")
        free = 0.0
        for edge in self.edges:
            x, half = self.x(edge), len(str(edge)) * 3.2
            if x - half >= free:
                self.text(x, str(edge), "small middle")
                free = x + half + 4
        self.y += 22

    def rows(self) -> None:
        left, right = _MARGIN + _LABEL, _MARGIN + _LABEL + _WIDTH
        for number in self.picture.rows():
            if number is None:
                self.text(_MARGIN, "\u2026", down=18)
            else:
                self.tops[number] = self.y
                self.label(number)
            self.y += _ROW
            self.parts.append(
                f'<line x1="{left}" x2="{right}" y1="{self.y:.1f}" y2="{self.y:.1f}" class="line"/>'
            )
        self.y += 8

    def label(self, number: int) -> None:
        command = self.picture.commands[number]
        name = row_label(number, command)
        name = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "\u2026"
        about = ", ".join(filter(None, (command.name, command.place, command.recorded_at)))
        self.parts.append(
            f'<text x="{_MARGIN}" y="{self.y + 17:.1f}"><title>{escape(about)}</title>{escape(name)}</text>'
        )

    def box(self, begin: int, end: int, top: float, bottom: float, kind: str, about: str) -> None:
        x, right = self.x(max(0, begin)), self.x(end)
        self.parts.append(
            f'<rect x="{x:.1f}" y="{top:.1f}" width="{max(2, right - x):.1f}" height="{bottom - top:.1f}" '
            f'rx="3" class="{kind}"><title>{escape(about)}</title></rect>'
        )

    def life(self, life: Life) -> None:
        rows = [top for number, top in self.tops.items() if life.first <= number <= life.last]
        if not rows:
            return
        kind = "life shared" if life.clashes else "life"
        self.box(life.begin, life.end, min(rows) + 2, max(rows) + _ROW - 2, kind, str(life))

    def use(self, use: Use) -> None:
        top = self.tops.get(use.command)
        if top is None:
            return
        kind = "both" if use.reads and use.writes else "write" if use.changes else "read"
        command = self.picture.commands[use.command]
        about = f"{use.command} {command.name} {use.verb} {use.operand or 'it'}: {use.place}"
        kind += " shared" if self.picture.is_red(use) else ""
        self.box(use.begin, use.end, top + 4, top + _ROW - 4, kind, about)
        left, right = self.x(max(0, use.begin)), self.x(use.end)
        if len(use.label) * 6.3 + 8 <= right - left:
            x, y = (left + right) / 2, top + 17
            self.parts.append(
                f'<text x="{x:.1f}" y="{y:.1f}" class="operand middle">{escape(use.label)}</text>'
            )

    def clashes(self, life: Life) -> None:
        rows = [top for number, top in self.tops.items() if life.first <= number <= life.last]
        for begin, end in life.clashes if rows else []:
            about = f"bytes [{begin}, {end}): two tensors use them while both live"
            self.box(begin, end, min(rows) + 2, max(rows) + _ROW - 2, "clash", about)
