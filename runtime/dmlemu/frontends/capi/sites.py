"""Call sites of C++ programs: return addresses, spelled as file and line when a report needs them."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from ...diagnostics.location import CallSite, set_provider
from ._capi import lib

__all__ = ["install", "want_frames"]

# Code that only forwards calls: the program's own line is the one that called it.
_HELPERS = re.compile(
    r"(d3dx12\w*|DirectMLX|wrladapter|dxcore_interface)\.h:|/wrl/\w+\.h:|/include/c\+\+/|/bits/"
)


def install() -> None:
    """Call sites are from now on those of the program that calls the vtables."""
    set_provider(_site)


def want_frames() -> None:
    """Call sites have all their frames, not only the innermost one."""
    lib.capi_want_frames()


def _site() -> CallSite | None:
    site = lib.capi_frames()
    return CallSite((_Stack(site),)) if site.frames[0] else None


class _Stack:
    """A place in machine code: a ``struct capi_site``."""

    __slots__ = ("_site",)

    def __init__(self, site: Any) -> None:
        self._site = site

    def __str__(self) -> str:
        return _spell(tuple(self._site.frames[0 : self._site.count]))


@cache
def _spell(addresses: tuple[int, ...]) -> str:
    """The program's own line, and the line of the helper that it called, if there is one."""
    helper = ""
    for address in addresses:
        for line in _lines(address):
            name = line.rpartition("/")[2]
            if not _HELPERS.search(line):
                return f"{name} (in {helper})" if helper else name
            helper = helper or name
    return helper


@cache
def _lines(address: int) -> list[str]:
    """``path:line`` with debug information, inlined functions first; else ``file+offset``."""
    file, offset = _locate(address)
    if not file:
        return [f"0x{address:X}"]
    try:
        command = ["addr2line", "-i", "-e", file, hex(offset - 1)]  # inside of the call instruction
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        answer = ""
    lines = [line.partition(" (discriminator")[0].strip() for line in answer.splitlines()]
    known = [line for line in lines if not line.startswith("??") and not line.endswith((":?", ":0"))]
    return known or [f"{Path(file).name}+0x{offset:X}"]


def _locate(address: int) -> tuple[str, int]:
    """The file mapped at an address, and the address as its symbols count it."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        rows = [line.split(maxsplit=5) for line in maps]
    first: dict[str, int] = {}  # where the first mapping of each file starts
    for row in rows:
        if len(row) < 6:
            continue
        start, end = (int(each, 16) for each in row[0].split("-"))
        file = row[5].strip()
        base = first.setdefault(file, start - int(row[2], 16))
        if start <= address < end and file.startswith("/"):
            return file, address - (base if _is_relocated(file) else 0)
    return "", 0


@cache
def _is_relocated(file: str) -> bool:
    """Whether the file's addresses count from where it is mapped: shared objects and PIE."""
    try:
        with open(file, "rb") as opened:
            return opened.read(18)[16:18] == b"\x03\0"  # ET_DYN
    except OSError:
        return True
