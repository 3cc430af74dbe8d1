"""A compiled shader: its native code, and the ranges of registers that it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CompiledShader", "Range"]


@dataclass(frozen=True)
class Range:
    """A declared range of registers of one resource.

    ``register_class``: ``"t"``, ``"u"``, ``"b"`` or ``"s"``.  ``kind``: ``"cbuffer"``, ``"typed"``,
    ``"raw"``, ``"structured"`` or ``"sampler"``.
    """

    register_class: str
    kind: str
    space: int
    lower: int
    count: int = 1
    """0: unbounded."""
    stride: int = 0
    """Of a structured buffer's element."""
    bytes: int = 0
    """Of a cbuffer."""
    element: str = ""
    """Of a typed buffer: ``"float"``, ``"uint"``, ``"int"``, ``"half"``."""
    counter: bool = False
    """The shader uses the counter of a structured UAV."""
    name: str = ""
    """From the part STAT where it is there, else ``"u0"`` or ``"t1, space2"``."""

    @property
    def register(self) -> str:
        """``"t1, space2"``, ``"u0"``, ``"t4 to t7"``, ``"t2 and all behind it"``."""
        letter, space = self.register_class, f", space{self.space}" if self.space else ""
        first = f"{letter}{self.lower}"
        if self.count == 0:
            return f"{first} and all behind it{space}"
        return f"{first}{f' to {letter}{self.lower + self.count - 1}' if self.count > 1 else ''}{space}"


@dataclass(frozen=True)
class CompiledShader:
    """``address``: of the native code (``dmlk_shader_group``), which lives as long as this object."""

    name: str
    """The entry."""
    threads: tuple[int, int, int]
    wave: int
    """Lanes of a wave."""
    ranges: tuple[Range, ...]
    uses_heap: bool
    """It uses ResourceDescriptorHeap."""
    address: int
    shared_bytes: int
    frame_bytes: int
    key: bytes
    """The hash of the DXIL, for caches."""
