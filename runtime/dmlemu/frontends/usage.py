"""The error of wrong arguments on the command line."""

from __future__ import annotations

from ..errors import shorten

__all__ = ["UsageError"]


class UsageError(Exception):
    """A name given on the command line does not exist."""

    def __str__(self) -> str:
        return f"dmlemu: error: {shorten(self.args[0], 2000)}"
