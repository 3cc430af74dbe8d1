"""The picture of what is bound to a buffer over time, as text and as SVG."""

from __future__ import annotations

from .memory_map_svg import svg
from .memory_map_text import text
from .memory_model import Memory
from .picture import Picture

__all__ = ["MemoryMap"]


class MemoryMap(Memory, Picture):
    """Everything bound to a buffer over time; ``str()`` is for the terminal, :meth:`svg` a picture.

    Made by ``buffer.map_picture()``.  Each row is a command or a map of the host, in order of execution.  A
    tensor, that is a range of a buffer that a dispatch bound, lives from the command that wrote it (for one
    that was only read: the last copy or map that wrote into it) to the last that used it before it was
    written anew.  Where a tensor is written while another one of the same elements lives, both are red.
    Of many commands the first and last are shown, and those with red.  In a notebook it shows itself.
    """

    def __repr__(self) -> str:
        return f"<MemoryMap of {self.title}: {len(self.uses)} uses by {len(self.numbers)} commands>"

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """For a terminal of ``width`` columns (None: this one); ``colour``: with ANSI colours."""
        return text(self, width, colour)

    def svg(self) -> str:
        """An SVG document: hovering over a use names it."""
        return svg(self)
