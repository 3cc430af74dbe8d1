"""The error of wrong arguments on the command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from pathlib import Path

from ..errors import shorten
from ..reporting import form_of

__all__ = ["UsageError", "report_file"]


class UsageError(Exception):
    """A name given on the command line does not exist."""

    def __str__(self) -> str:
        return f"dmlemu: error: {shorten(self.args[0], 2000)}"


def report_file(text: str) -> Path:
    """The value of ``--report``."""
    try:
        form_of(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return Path(text)
