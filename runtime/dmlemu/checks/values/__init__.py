"""Checks of what dispatches compute, on request: ``device.checks.add(dmlemu.checks.values.Values)``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .on_request import Values as Values

__all__ = ["Values"]


def __getattr__(name: str) -> Any:
    """The rows are loaded with every device, the check with those that ask for it."""
    if name != "Values":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .on_request import Values

    return Values
