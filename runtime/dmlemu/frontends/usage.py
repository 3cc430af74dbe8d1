"""The error of wrong arguments on the command line."""

from __future__ import annotations

import os
import stat
from argparse import ArgumentTypeError
from pathlib import Path

from ..errors import shorten
from ..reporting import form_of

__all__ = ["UsageError", "check_distinct", "report_file"]


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


def check_distinct(files: dict[str, Path | None]) -> None:
    """UsageError: two of these options name one file.  Pipes and devices may serve two."""
    seen: dict[object, str] = {}
    for name, path in files.items():
        if path is None:
            continue
        try:
            state = path.stat()
            key: object = (state.st_dev, state.st_ino)
            if not stat.S_ISREG(state.st_mode):
                continue
        except (OSError, ValueError):  # not there yet, or no name of a file
            key = os.path.abspath(path)
        if key in seen:
            raise UsageError(f"{seen[key]} and {name} name one file, {path}; each needs its own")
        seen[key] = name
