"""Call sites: the line of the program that called the emulator, and where a traceback leaves it."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType

__all__ = ["CallSite", "call_site", "caller", "end_at_program", "program_entry", "spell_site"]

_PACKAGE = os.path.dirname(os.path.dirname(__file__))  # dmlemu


def program_entry(error: BaseException) -> TracebackType | None:
    """The innermost entry of the traceback that is the program's; None: the error left no call of ours."""
    found, entry = None, error.__traceback__
    while entry is not None:
        if not _names_us(entry.tb_frame):
            found = entry
        entry = entry.tb_next
    return found


def end_at_program(error: BaseException) -> None:
    """Has the traceback end where the program called us; whoever holds it sees it cut."""
    last = program_entry(error)
    if last is not None:
        last.tb_next = None


def _names_us(frame: FrameType) -> bool:
    """The device's own code, and generated code, which has no file: its module says whose it is."""
    return str(frame.f_globals.get("__name__")).startswith(("dmlemu.", "dmlemu_hw."))


CallSite = tuple[str, int]  # file and line


def call_site() -> CallSite | None:
    """The innermost frame outside this package: where the user's program stands.

    None: it has no lines in Python, since the command line runs it.
    """
    inner = sys._getframe()
    frame = inner.f_back
    while frame is not None and (frame.f_code.co_filename.startswith(_PACKAGE) or _names_us(frame)):
        inner, frame = frame, frame.f_back
    if frame is None or inner.f_globals.get("__name__") in ("dmlemu.cli", "__main__"):  # -m dmlemu
        return None
    return frame.f_code.co_filename, frame.f_lineno


def spell_site(site: CallSite | None) -> str:
    """``file:line``; empty for None."""
    return "" if site is None else f"{os.path.basename(site[0])}:{site[1]}"


def caller() -> str:
    """:func:`call_site` in words."""
    return spell_site(call_site())
