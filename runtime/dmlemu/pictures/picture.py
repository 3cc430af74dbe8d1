"""What pictures of memory have in common."""

from __future__ import annotations

__all__ = ["Picture"]


class Picture:
    """A picture as text and as SVG; ``str()`` is for the terminal, and in a notebook it shows itself."""

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """For a terminal of ``width`` columns (None: this one); ``colour``: with ANSI colours."""
        raise NotImplementedError

    def svg(self) -> str:
        """An SVG document."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        return self.svg()
