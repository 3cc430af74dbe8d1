"""The picture of tensors in one buffer, as text and as SVG."""

from __future__ import annotations

from .model import Buffer
from .picture import Picture
from .svg import svg
from .text import text

__all__ = ["Layout"]


class Layout(Buffer, Picture):
    """Where the elements of tensors lie in a buffer; ``str()`` is for the terminal, :meth:`svg` a picture.

    Made by ``BufferTensorDesc.layout()``.  Of large tensors the first and last parts are shown, and what is
    around :meth:`around`.  In a notebook it shows itself.
    """

    def beside(self, other: Layout) -> Layout:
        """The tensors of both in one buffer: bytes that both use are marked."""
        return Layout([*self.tensors, *other.tensors], self._focus)

    def around(self, byte: int) -> Layout:
        """Shows this byte of the buffer, and what is around it, wherever parts are left out."""
        return Layout(self.tensors, byte)

    def __repr__(self) -> str:
        return f"<Layout {'; '.join(map(str, self.tensors))}>"

    def text(self, width: int | None = None, *, colour: bool = False) -> str:
        """For a terminal of ``width`` columns (None: this one); ``colour``: with ANSI colours."""
        return text(self, width, colour)

    def svg(self) -> str:
        """An SVG document: hovering over an element shows its bytes."""
        return svg(self)
