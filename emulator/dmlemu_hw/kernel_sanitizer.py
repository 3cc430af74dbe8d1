"""Runs kernels with every load and store checked, to test the kernels themselves.

Each kernel is compiled a second time with checked accesses, which are compared byte by byte with what the
tensor descriptions allow (``kernels_c/analysis/sanitizer.h``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from . import kernels
from .kernels import ffi, lib

__all__ = ["Checker", "Finding", "checked"]

_PREFIX = "DMLK_"
KINDS: tuple[str, ...] = tuple(
    name.removeprefix(_PREFIX)
    for _, name in sorted(ffi.typeof("enum dmlk_finding_kind").elements.items())
    if name.startswith(_PREFIX + "MEM_")
)


class Finding(NamedTuple):
    """The findings of one kind (``struct dmlk_finding``): their number, and the first.

    ``kind`` is an ``enum dmlk_finding_kind`` without its prefix, such as ``"MEM_GAP_WRITE"``; ``tensor`` is
    the index in the packet; ``offset`` is in bytes from the tensor's first byte, ``size`` in bytes.
    """

    kind: str
    count: int  # type: ignore[assignment]  # not the method of tuples
    kernel: str
    tensor: int
    offset: int
    address: int
    size: int

    def __str__(self) -> str:
        times = f", and {self.count - 1} more" if self.count > 1 else ""
        return (
            f"{self.kind}: kernel '{self.kernel}', tensor {self.tensor}, bytes [{self.offset}, "
            f"{self.offset + self.size}) at {self.address:#x}{times}"
        )


class Checker:
    """The findings of :func:`checked` (``struct dmlk_checker``)."""

    def __init__(self) -> None:
        self._checker = ffi.new("dmlk_checker *")

    @property
    def dispatches(self) -> int:
        """The number of checked dispatches."""
        return int(self._checker.dispatches)

    @property
    def findings(self) -> list[Finding]:
        """One for each kind found."""
        found = ((kind, self._checker.findings[i]) for i, kind in enumerate(KINDS))
        return [_finding(kind, finding) for kind, finding in found if finding.count]


def _finding(kind: str, finding: Any) -> Finding:
    kernel = kernels.name(finding.kernel)
    return Finding(kind, finding.count, kernel, finding.tensor, finding.offset, finding.address, finding.size)


@contextmanager
def checked() -> Iterator[Checker]:
    """Runs the kernels of the calling thread checked, and compares their results with the normal build.

    Takes twice the memory of the outputs, and many times as long.
    """
    checker = Checker()
    before = lib.dmlk_set_checker(checker._checker)
    try:
        yield checker
    finally:
        lib.dmlk_set_checker(before)
