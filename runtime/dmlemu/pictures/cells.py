"""The picture of a few cells in a row, such as bytes or lanes, and of what was done to them."""

from __future__ import annotations

from .cells_model import CellRow
from .cells_svg import svg
from .cells_text import text
from .picture import Picture

__all__ = ["Cells"]


class Cells(CellRow, Picture):
    """Cells and what was done to them; ``str()`` is for the terminal, :meth:`svg` a picture."""

    def __repr__(self) -> str:
        return f"<Cells {self.title}>"

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """For a terminal of ``width`` columns (None: this one); ``colour``: with ANSI colours."""
        return text(self, width, colour)

    def svg(self) -> str:
        """An SVG document."""
        return svg(self)
