"""Running kernels with every load and store tested: how the kernels themselves are tested.

Each kernel is compiled a second time, so that what it does to its tensors is compared with what their
descriptions allow, byte by byte (``kernels_c/analysis/sanitizer.h``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import kernels
from .frozen import Frozen
from .kernels import ffi, lib

__all__ = ["Checker", "Finding", "checked"]

_PREFIX = "DMLK_"
KINDS: tuple[str, ...] = tuple(
    name.removeprefix(_PREFIX)
    for _, name in sorted(ffi.typeof("enum dmlk_finding_kind").elements.items())
    if name.startswith(_PREFIX + "MEM_")
)


class Finding(Frozen):
    """What was found of one kind (``struct dmlk_finding``): how often, and the first.

    ``kind`` is an ``enum dmlk_finding_kind`` without its prefix, such as ``"MEM_GAP_WRITE"``; ``tensor``
    counts those of the packet; ``offset`` is in bytes from the tensor's first, ``size`` in bytes.
    """

    kind: str
    count: int
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
    """What :func:`checked` found (``struct dmlk_checker``)."""

    def __init__(self) -> None:
        self._checker = ffi.new("dmlk_checker *")

    @property
    def dispatches(self) -> int:
        """How many dispatches were checked."""
        return int(self._checker.dispatches)

    @property
    def findings(self) -> list[Finding]:
        """One for each kind that was found."""
        found = ((kind, self._checker.findings[i]) for i, kind in enumerate(KINDS))
        return [_finding(kind, finding) for kind, finding in found if finding.count]


def _finding(kind: str, finding: Any) -> Finding:
    kernel = kernels.name(finding.kernel)
    return Finding(kind, finding.count, kernel, finding.tensor, finding.offset, finding.address, finding.size)


@contextmanager
def checked() -> Iterator[Checker]:
    """Kernels that the calling thread runs meanwhile are run checked, and their results compared.

    Takes twice the memory of the outputs, and many times as long.
    """
    checker = Checker()
    before = lib.dmlk_set_checker(checker._checker)
    try:
        yield checker
    finally:
        lib.dmlk_set_checker(before)
