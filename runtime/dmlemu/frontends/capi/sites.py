"""Call sites of C++ programs: return addresses, spelled as file and line when a report needs them."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from ...diagnostics.location import CallSite, set_provider
from ._capi import lib

__all__ = ["install"]


def install() -> None:
    """Call sites are from now on those of the program that calls the vtables."""
    set_provider(_site)


def _site() -> CallSite | None:
    address = lib.capi_caller()
    return CallSite((_Frame(address),)) if address else None


class _Frame:
    """A place in machine code, by the return address of a call."""

    __slots__ = ("_address",)

    def __init__(self, address: int) -> None:
        self._address = address

    def __str__(self) -> str:
        return _spell(self._address)


@cache
def _spell(address: int) -> str:
    """``file:line`` with debug information, ``file+offset`` without."""
    file, offset = _locate(address)
    if not file:
        return f"0x{address:X}"
    try:
        command = ["addr2line", "-e", file, hex(offset - 1)]  # inside of the call instruction
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        answer = ""
    line = answer.partition(" (discriminator")[0].strip()
    if not line or line.startswith("??") or line.endswith((":?", ":0")):
        return f"{Path(file).name}+0x{offset:X}"
    return Path(line).name


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
