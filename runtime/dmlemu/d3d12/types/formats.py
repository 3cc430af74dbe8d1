"""Element layouts of the ``DXGI_FORMAT`` values that typed buffer views support."""

from __future__ import annotations

import re

from ...frozen import Frozen
from .enums import Format


class FormatInfo(Frozen):
    """Layout of one element: bits per component in memory order, and their type."""

    bits: tuple[int, ...]
    kind: str  # FLOAT, UINT, SINT, UNORM, SNORM

    @property
    def size(self) -> int:
        """Bytes per element."""
        return sum(self.bits) // 8


_NAME = re.compile(r"(?P<components>(?:[RGBA]\d+)+)_(?P<kind>FLOAT|UINT|SINT|UNORM|SNORM)")


def _read(format: Format) -> FormatInfo | None:
    match = _NAME.fullmatch(format.name)
    if match is None:
        return None
    bits = tuple(int(each) for each in re.findall(r"\d+", match["components"]))
    return FormatInfo(bits, match["kind"]) if sum(bits) % 8 == 0 else None


# The formats whose names give the layout; depth, block-compressed, video and typeless formats are not
# allowed for a typed buffer.
TYPED: dict[int, FormatInfo] = {int(format): info for format in Format if (info := _read(format)) is not None}
