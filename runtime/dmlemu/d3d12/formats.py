"""What a typed buffer view needs to know of a ``DXGI_FORMAT``."""

from __future__ import annotations

import re

from dmlemu_hw.frozen import Frozen

from .enums import Format


class FormatInfo(Frozen):
    """Layout of one element: bits per component in memory order, and how they are read."""

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


# The formats whose name says everything; depth, block-compressed, video and typeless ones are no
# formats for a typed buffer.
TYPED: dict[int, FormatInfo] = {int(format): info for format in Format if (info := _read(format)) is not None}
