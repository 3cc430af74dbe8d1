"""Layouts as SVG: one document without references, for light and dark pages."""

from __future__ import annotations

from html import escape

from .model import Buffer, Cell, Grid, Row, Unit
from .tensor import Index, Tensor

__all__ = ["svg"]

_CHARACTER, _HEIGHT, _GAP, _MARGIN, _WIDTH = 7.3, 22, 18, 12, 920
_COLUMNS = 12  # of a grid
_HUES = 12
_STYLE = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1a1a1a; }
.title { font-weight: 600; } .small { font-size: 10px; fill: #666; } .middle { text-anchor: middle; }
rect { stroke: #777; } .padding { fill: url(#hatched); } .shared { stroke: #d00000; stroke-width: 2.5; }
@media (prefers-color-scheme: dark) {
text { fill: #e8e8e8; } .small { fill: #aaa; } rect { stroke: #999; } .shared { stroke: #ff5c5c; } }
"""


def svg(buffer: Buffer) -> str:
    """The document."""
    page = _Page(buffer)
    for number, tensor in enumerate(buffer.tensors):
        page.title(str(tensor))
        page.grids(number, tensor)
    page.ruler()
    return page.document()


class _Page:
    """Draws from the top to the bottom."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.y = float(_MARGIN)
        self.right = 0.0
        self.parts: list[str] = []
        self.names: dict[tuple[int, int], str] = {}  # class names by tensor and bit

    def document(self) -> str:
        width, height = self.right + _MARGIN, self.y
        about = escape("; ".join(map(str, self.buffer.tensors)))
        hover = "".join(
            f"svg:has(.{name}:hover) .{name} rect {{ stroke: #0b62d6; stroke-width: 3; }}\n"
            for name in self.names.values()
        )
        hues = "".join(_colour(i, 85) for i in range(_HUES))
        dark = "".join(_colour(i, 28) for i in range(_HUES))
        style = f"{_STYLE}{hues}@media (prefers-color-scheme: dark) {{\n{dark}}}\n{hover}"
        hatched = (
            '<pattern id="hatched" width="6" height="6" patternUnits="userSpaceOnUse">'
            '<path d="M0 6 L6 0" stroke="#999" stroke-width="1"/></pattern>'
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{about}">\n'
            f"<style>{style}</style>\n<defs>{hatched}</defs>\n" + "\n".join(self.parts) + "\n</svg>\n"
        )

    def title(self, text: str) -> None:
        self.text(_MARGIN, self.y + 14, text, "title")
        self.y += _HEIGHT + 4

    def text(self, x: float, y: float, text: str, kind: str = "") -> None:
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(text)}</text>')
        if "middle" not in kind:
            self.right = max(self.right, x + len(text) * _CHARACTER)

    def box(self, x: float, width: float, kind: str, label: str, about: str) -> None:
        """A cell at :attr:`y`; ``kind``: class names, of the element's group first."""
        group, _, colour = kind.partition(" ")
        self.parts.append(
            f'<g class="{group}"><title>{escape(about)}</title>'
            f'<rect x="{x:.1f}" y="{self.y:.1f}" width="{width:.1f}" height="{_HEIGHT}" class="{colour}"/>'
            f'<text x="{x + width / 2:.1f}" y="{self.y + 15:.1f}" class="middle">{escape(label)}</text></g>'
        )
        self.right = max(self.right, x + width)

    # --- grids ---

    def grids(self, number: int, tensor: Tensor) -> None:
        width = _cell_width(f"\u2191{tensor.offset + tensor.size}")
        top, x, bottom = self.y, float(_MARGIN), self.y
        for grid in self.buffer.grids(tensor, _COLUMNS):
            wide = _GAP if grid is None else max(len(row or ()) for row in grid.rows) * width + _GAP
            if x + wide > _WIDTH and x > _MARGIN:
                x, top = float(_MARGIN), bottom
            self.y = top
            self.grid(number, tensor, grid, x, width)
            x, bottom = x + wide, max(bottom, self.y)
        self.y = bottom + 6

    def grid(self, number: int, tensor: Tensor, grid: Grid | None, x: float, width: float) -> None:
        self.text(x, self.y + 10, "\u2026" if grid is None else f"byte of {grid.title}", "small")
        self.y += 16
        for row in [] if grid is None else grid.rows:
            for column, cell in enumerate(row or [None]):
                self.cell(number, tensor, cell, x + column * width, width)
            self.y += _HEIGHT
        self.y += 8

    def cell(self, number: int, tensor: Tensor, cell: Cell | None, x: float, width: float) -> None:
        if cell is None:
            self.text(x + width / 2, self.y + 15, "\u2026", "middle")
            return
        label = f"{cell.repeats}{cell.byte}{'+' if cell.half else ''}"
        name, colour = self.name(number, tensor.bit(cell.index)), _hue(tensor, cell.index)
        self.box(x, width, f"{name} {colour}", label, _about(tensor, cell.index))

    def name(self, number: int, bit: int) -> str:
        return self.names.setdefault((number, bit), f"e{number}-{bit}")

    # --- the ruler ---

    def ruler(self) -> None:
        tensors = self.buffer.tensors
        labels = [each.spell(tuple(max(0, size - 1) for size in each.sizes)) for each in tensors]
        width = max(map(_cell_width, [*labels, str(max(each.offset + each.size for each in tensors))]))
        margin = max((len(each.name) for each in tensors), default=0) * _CHARACTER + _MARGIN
        self.y += 4
        self.text(_MARGIN, self.y + 14, "memory: the element in each place", "title")
        self.y += _HEIGHT
        for row in self.buffer.rows(max(1, int((_WIDTH - margin) / width))):
            if row.gap:
                self.text(_MARGIN, self.y + 12, f"\u2026 {row.gap} bytes further", "small")
                self.y += _HEIGHT
            self.row(row, margin + 4, width)

    def row(self, row: Row, x: float, width: float) -> None:
        for column, unit in enumerate(row.units):
            byte = str(unit.bit // 8) if unit.bit % 8 == 0 else "+"
            self.text(x + (column + 0.5) * width, self.y + 10, byte, "small middle")
        self.y += 14
        for number, tensor in enumerate(self.buffer.tensors):
            if tensor.name:
                self.text(_MARGIN, self.y + 15, tensor.name)
            for column, unit in enumerate(row.units):
                self.unit(unit, number, tensor, x + column * width, width)
            self.y += _HEIGHT
        self.y += 8

    def unit(self, unit: Unit, number: int, tensor: Tensor, x: float, width: float) -> None:
        found = unit.elements[number]
        where = f"byte {unit.bit // 8}"
        if not found:
            self.box(x, width, "none padding", "", f"{where}: no element")
            return
        label = tensor.spell(found[0]) if unit.begins[number] else "\u00b7\u00b7"
        colour = _hue(tensor, found[0]) + (" shared" if unit.is_shared else "")
        about = "; ".join(_about(tensor, index) for index in found)
        self.box(x, width, f"{self.name(number, tensor.bit(found[0]))} {colour}", label, about)


def _cell_width(label: str) -> float:
    return max(30.0, len(label) * _CHARACTER + 8)


def _colour(i: int, light: int) -> str:
    return f".c{i} {{ fill: hsl({i * 360 // _HUES} 65% {light}%); }}\n"


def _hue(tensor: Tensor, index: Index) -> str:
    """A colour for each coordinate along the shortest axis."""
    if not tensor.axes:
        return "c0"
    axis = min(tensor.axes, key=lambda axis: tensor.sizes[axis])
    return f"c{index[axis] * max(1, _HUES // tensor.sizes[axis]) % _HUES}"


def _about(tensor: Tensor, index: Index) -> str:
    bit = tensor.bit(index)
    name = f"{tensor.name} " if tensor.name else ""
    if tensor.bits < 8:
        return f"{name}element {index}: {'upper' if bit % 8 else 'lower'} half of byte {bit // 8}"
    return f"{name}element {index}: bytes {bit // 8} to {bit // 8 + tensor.bits // 8 - 1}"
