"""Bytes that a dispatch touches of one binding."""

from __future__ import annotations

from typing import NamedTuple

from dmlemu_hw.events import Footprint
from dmlemu_hw.footprints import element_at


class Touch(NamedTuple):
    """Bytes that a dispatch touches of one binding; addresses count from the binding's first byte.

    ``padding``: bytes after the last element up to TotalTensorSizeInBytes, which may be overwritten.
    """

    footprint: Footprint
    padding: bool = False

    def at(self, address: int) -> Footprint:
        return self.footprint._replace(address=self.footprint.address + address)

    def describe(self, byte: int) -> str:
        """``element (0, 2, 1)``, or what else the byte is; ``byte`` counts from the binding's first."""
        if self.padding:
            return "a byte after the last element, which may be overwritten,"
        element = element_at(self.footprint, byte)
        return "an element" if element is None else self.name(element)

    def name(self, element: tuple[int, ...]) -> str:
        """``element (0, 2, 1)``."""
        if len(element) == 1 and self.footprint.element_bits == 8:
            return f"byte {element[0] * self.footprint.strides[0]}"
        return f"element ({', '.join(map(str, element))})"
