"""Cells as SVG: one document without references, for light and dark pages."""

from __future__ import annotations

from html import escape

from .cells_model import CellRow, Row

__all__ = ["svg"]

_CHARACTER, _HEIGHT, _GAP, _MARGIN = 7.3, 22, 6, 12
_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1a1a1a; }
.title { font-weight: 600; } .small { font-size: 10px; fill: #666; } .middle { text-anchor: middle; }
.cell { fill: none; stroke: #ccc; } .inside { fill: #e8eef8; stroke: #9ab; }
.hatched { fill: url(#hatched); stroke: #777; }
.write { fill: #f2b36b; stroke: #96601c; } .read { fill: #8fc3e8; stroke: #2a648f; }
.both { fill: #c3a2e0; stroke: #6b3f93; } .shared { stroke: #d00000; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
text { fill: #e8e8e8; } .small { fill: #aaa; }
.cell { stroke: #444; } .inside { fill: #26303f; stroke: #678; }
.write { fill: #8a5310; } .read { fill: #1f567d; } .both { fill: #5d3484; } .shared { stroke: #ff5c5c; } }
"""
_HATCHED = (
    '<defs><pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse">'
    '<path d="M0 6 L6 0" stroke="#999" stroke-width="1"/></pattern></defs>'
)


def svg(cells: CellRow) -> str:
    """The document."""
    return _Page(cells).document()


class _Page:
    """Draws from the top to the bottom; ``places``: the left edge and the width of each column."""

    def __init__(self, cells: CellRow) -> None:
        self.cells = cells
        self.columns = cells.columns()
        names = [each.name for each in cells.rulers] + [cells.name] + [row.label for row in cells.rows]
        self.y = float(_MARGIN)
        self.right = _MARGIN + max(map(len, names)) * _CHARACTER + _GAP
        self.places: list[tuple[float, float]] = []
        for cell in self.columns:
            wide = self.width(cell)
            self.places.append((self.right, wide))
            self.right += wide
        self.parts: list[str] = []

    def width(self, cell: int | None) -> float:
        """Of a column: as its longest label."""
        if cell is None:
            return 22
        labels = [each.label(cell) for each in self.cells.rulers]
        labels += [mark.label for row in self.cells.rows if (mark := row.at(cell)) is not None]
        return max(34.0, max(map(len, labels)) * _CHARACTER + 8)

    def document(self) -> str:
        cells = self.cells
        self.text(_MARGIN, 14, cells.title, "title")
        self.y += _HEIGHT
        for ruler in cells.rulers:
            self.line(ruler.name, ["\u2026" if each is None else ruler.label(each) for each in self.columns])
        self.own_row()
        for row in cells.rows:
            self.row(row)
        for note in cells.notes:
            self.text(_MARGIN, 12, note, "small")
            self.y += 16
        width, height = self.right + _MARGIN, self.y + _MARGIN / 2
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(cells.title)}">\n'
            f"<style>{_STYLE}</style>\n{_HATCHED}\n" + "\n".join(self.parts) + "\n</svg>\n"
        )

    def text(self, x: float, down: float, text: str, kind: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{self.y + down:.1f}" class="{kind}">{escape(text)}</text>')
        if "middle" not in kind:
            self.right = max(self.right, x + len(text) * _CHARACTER)

    def line(self, name: str, labels: list[str]) -> None:
        """Numbers above the cells."""
        self.text(_MARGIN, 11, name, "small")
        for (x, wide), label in zip(self.places, labels, strict=True):
            self.text(x + wide / 2, 11, label, "small middle")
        self.y += 16

    def own_row(self) -> None:
        self.text(_MARGIN, 15, self.cells.name)
        for cell, (x, wide) in zip(self.columns, self.places, strict=True):
            if cell is None:
                self.text(x + wide / 2, 15, "\u2026", "middle")
            else:
                self.box(x, wide, "hatched" if self.cells.is_hatched(cell) else "inside", "")
        self.y += _HEIGHT + _GAP

    def row(self, row: Row) -> None:
        self.text(_MARGIN, 15, row.label)
        for red in (False, True):  # their thicker edges lie over those of others
            for cell, (x, wide) in zip(self.columns, self.places, strict=True):
                mark = None if cell is None else row.at(cell)
                if cell is not None and red == (mark is not None and mark.is_red):
                    kind = (mark.kind if mark is not None else "") or "cell"
                    self.box(x, wide, f"{kind} shared" if red else kind, mark.label if mark else "")
        self.y += _HEIGHT + _GAP

    def box(self, x: float, wide: float, kind: str, label: str) -> None:
        self.parts.append(
            f'<rect x="{x:.1f}" y="{self.y:.1f}" width="{wide:.1f}" height="{_HEIGHT}" class="{kind}"/>'
        )
        if label:
            self.text(x + wide / 2, 15, label, "middle")
