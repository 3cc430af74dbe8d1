"""A graph of expressions as a picture: a box for each node, a row for each step, edges with their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from dmlemu.graph import Expression
from dmlemu.graph.expression import InputNode, Node, OperatorNode, reachable

__all__ = ["graph_svg"]

_WIDTH, _HEIGHT, _GAP, _STEP, _MARGIN, _LANE = 190, 40, 26, 82, 8, 18
_STYLE = """\
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1a1a1a; text-anchor: middle; }
.small { font-size: 10px; fill: #666; }
.edge { fill: none; stroke: #777; stroke-width: 1.3; } .arrow { fill: #777; }
rect { stroke: #777; }
.operator { fill: hsl(210 65% 90%); } .input { fill: hsl(120 50% 90%); } .constant { fill: hsl(45 70% 90%); }
@media (prefers-color-scheme: dark) {
text { fill: #e8e8e8; } .small { fill: #aaa; } rect, .edge { stroke: #999; } .arrow { fill: #999; }
.operator { fill: hsl(210 40% 26%); } .input { fill: hsl(120 30% 24%); }
.constant { fill: hsl(45 40% 24%); } }
"""


class _Place(NamedTuple):
    x: float  # of the middle
    y: float


def graph_svg(outputs: Sequence[Expression], about: str) -> str:
    """The nodes that ``outputs`` need, from top to bottom.  ``about``: what the picture shows, in words."""
    nodes = reachable(outputs)
    edges = [(source, node) for node in nodes for source in _sources(node)]
    rows = _rows(nodes)
    far = [number for number, (source, node) in enumerate(edges) if rows[node] - rows[source.node] > 1]
    places = _places(nodes, rows, _MARGIN + _LANE * len(far))
    parts = []
    for number, (source, node) in enumerate(edges):
        lane = _MARGIN + _LANE * far.index(number) if number in far else None
        parts.append(_edge(places[source.node], places[node], source, lane))
    parts += [_box(node, places[node]) for node in nodes]
    width = max(place.x for place in places.values()) + _WIDTH / 2 + _MARGIN
    height = max(place.y for place in places.values()) + _HEIGHT + _MARGIN
    size = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    arrow = f'<marker id="arrow" {size} orient="auto">'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(about)}">\n'
        f"<style>\n{_STYLE}</style>\n<defs>{arrow}"
        f'<path class="arrow" d="M0 0 L8 4 L0 8 z"/></marker></defs>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _sources(node: Node) -> list[Expression]:
    return [each for each in node.sources if each is not None]


def _rows(nodes: Sequence[Node]) -> dict[Node, int]:
    """A node lies in the row below the lowest of those that it reads; inputs just above who reads them."""
    rows: dict[Node, int] = {}
    for node in nodes:
        rows[node] = max((rows[source.node] + 1 for source in _sources(node)), default=0)
    for node in reversed(nodes):
        readers = [rows[each] for each in nodes if any(source.node is node for source in _sources(each))]
        if not _sources(node) and readers:
            rows[node] = min(readers) - 1
    return rows


def _places(nodes: Sequence[Node], rows: Mapping[Node, int], margin: float) -> dict[Node, _Place]:
    widths = [list(rows.values()).count(row) for row in range(max(rows.values()) + 1)]
    used = dict.fromkeys(rows.values(), 0)
    found = {}
    for node in sorted(nodes, key=lambda node: (rows[node], not _sources(node))):
        row = rows[node]
        left = (max(widths) - widths[row]) * (_WIDTH + _GAP) / 2
        x = margin + _WIDTH / 2 + left + used[row] * (_WIDTH + _GAP)
        found[node] = _Place(x, _MARGIN + row * _STEP)
        used[row] += 1
    return found


def _box(node: Node, place: _Place) -> str:
    kind = {OperatorNode: "operator", InputNode: "input"}.get(type(node), "constant")
    sizes = ", ".join(
        f"{each.data_type.name} {list(each.sizes)}" for each in node.outputs if each is not None
    )
    return (
        f'<rect class="{kind}" x="{place.x - _WIDTH / 2:.1f}" y="{place.y:.1f}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" rx="5"/>'
        f'<text x="{place.x:.1f}" y="{place.y + 17:.1f}">{escape(node.name)}</text>'
        f'<text class="small" x="{place.x:.1f}" y="{place.y + 32:.1f}">{escape(sizes)}</text>'
    )


def _edge(start: _Place, end: _Place, source: Expression, lane: float | None) -> str:
    """To the next row, or in a lane of its own on the left."""
    if lane is None:
        top, bottom = start.y + _HEIGHT, end.y - 1
        middle = (top + bottom) / 2
        bend = f"C{start.x:.1f} {middle:.1f} {end.x:.1f} {middle:.1f}"
        way = f"M{start.x:.1f} {top:.1f} {bend} {end.x:.1f} {bottom:.1f}"
    else:
        top, bottom = start.y + _HEIGHT / 2, end.y + _HEIGHT / 2
        left, right = start.x - _WIDTH / 2, end.x - _WIDTH / 2 - 1
        way = f"M{left:.1f} {top:.1f} H{lane:.1f} V{bottom:.1f} H{right:.1f}"
    title = f"{source.data_type.name} {list(source.sizes)}, strides {list(source.strides)}"
    return f'<path class="edge" marker-end="url(#arrow)" d="{way}"><title>{escape(title)}</title></path>'
