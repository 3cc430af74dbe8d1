"""The error of wrong arguments on the command line."""

from __future__ import annotations

import os
import stat
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path

from ..errors import shorten
from ..reporting import form_of

__all__ = ["UsageError", "add_record_options", "check_distinct", "report_file"]


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


def add_record_options(parser: ArgumentParser) -> None:
    """``--record`` and what is recorded."""
    parser.add_argument(
        "--record", type=Path, metavar="FILE.dmlrec", help="write what each dispatch reads and writes"
    )
    parser.add_argument(
        "--record-only",
        default="*",
        metavar="PATTERN",
        help="record only operators whose names match, such as conv*",
    )
    parser.add_argument(
        "--record-limit",
        type=_bytes,
        metavar="SIZE",
        help="most bytes of elements in the record: 64M, 2G (default: 1G); a warning lists what was left out",
    )


def _bytes(text: str) -> int:
    """``64M``: bytes, with a binary unit."""
    number, unit = (text[:-1], text[-1].upper()) if text[-1:].isalpha() else (text, "")
    if not number.isascii() or not number.isdecimal() or unit not in ("", "K", "M", "G"):
        raise ArgumentTypeError(f"{shorten(text)} is not a size such as 64M")
    return int(number) << 10 * ("", "K", "M", "G").index(unit)


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
