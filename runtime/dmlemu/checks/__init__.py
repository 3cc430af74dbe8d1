"""Checks: subscribers of a device's event stream that find mistakes and report them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..diagnostics.catalogue import catalogue, groups
from ..diagnostics.declaration import Declaration, When
from ..diagnostics.report import loading
from .framework.check import Check, on
from .framework.manager import Checks, attach
from .framework.names import NamedCommand, Names

if TYPE_CHECKING:
    from .lineage import Lineage, Step

__all__ = [
    "Check",
    "Checks",
    "Declaration",
    "Lineage",
    "NamedCommand",
    "Names",
    "Step",
    "When",
    "attach",
    "catalogue",
    "groups",
    "on",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    """Imports what draws pictures when it is asked for: programs without checks start faster."""
    if name not in ("Lineage", "Step"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with loading():
        from . import lineage
    return getattr(lineage, name)
