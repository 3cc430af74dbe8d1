"""Lines and functions of addresses in files of machine code, by addr2line, and by their symbols alone."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from typing import IO, NamedTuple

__all__ = ["Line", "Place", "lines", "look_up"]


class Place(NamedTuple):
    """An address as the symbols of a file count it; without a file there is nothing to be known."""

    file: str
    offset: int


class Line(NamedTuple):
    """``source``: path and number of a line; empty without debug information.  ``function``: its short name,
    or the symbol and the distance from it; without a symbol (not ``is_named``) the file and the distance."""

    source: str
    function: str
    is_named: bool = True

    @property
    def place(self) -> str:
        """``file:line``, or the symbol."""
        return os.path.basename(self.source) or self.function

    def __str__(self) -> str:
        return f"{self.place} in {self.function}" if self.source and self.function else self.place


_known: dict[Place, list[Line]] = {}


def lines(place: Place) -> list[Line]:
    """The lines of an address that was looked up, inlined functions first."""
    return _known.get(place, [])


def look_up(places: Iterable[Place]) -> None:
    """Finds the lines of all that are not known yet, with one process for each file."""
    files: dict[str, list[int]] = {}
    for place in sorted(set(places) - _known.keys()):
        if place.file:
            files.setdefault(place.file, []).append(place.offset)
    for file, offsets in files.items():
        found = _addr2line(file, offsets)
        for offset in offsets:
            with_source = [line for line in found.get(offset, []) if line.source]
            names = [line.function for line in found.get(offset, [])]
            _known[Place(file, offset)] = with_source or _by_symbol(file, offset, names[0] if names else "")


def _addr2line(file: str, offsets: list[int]) -> dict[int, list[Line]]:
    """What addr2line answers; nothing if there is none."""
    command = ["addr2line", "-a", "-f", "-i", "-C", "-e", file]
    asked = "".join(f"{offset:#x}\n" for offset in offsets)
    try:
        answer = subprocess.run(command, input=asked, capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[int, list[Line]] = {}
    rows = iter(answer.splitlines())
    current: list[Line] = []
    for row in rows:
        if row.startswith("0x"):
            current = found[int(row, 16)] = []
            continue
        source = next(rows, "").partition(" (discriminator")[0].strip()
        if source.startswith("??") or source.endswith((":?", ":0")):
            source = ""
        current.append(Line(source, "" if row.startswith("??") else short_name(row)))
    return found


def short_name(function: str) -> str:
    """A demangled name without parameters and result."""
    end = len(re.sub(r"( const| volatile| &+|\[clone [^]]*\])+$", "", function))
    if function[end - 1 : end] == ")":
        depth = 0
        for i in range(end - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(function[i], 0)
            if depth == 0:
                end = i
                break
    depth, begin = 0, 0
    for i, letter in enumerate(function[:end]):
        depth += {"<": 1, "(": 1, "{": 1, ">": -1, ")": -1, "}": -1}.get(letter, 0)
        if letter == " " and depth == 0 and not function[:i].endswith("operator"):
            begin = i + 1
    return function[begin:end] or function


def _by_symbol(file: str, offset: int, name: str) -> list[Line]:
    """``function+distance (file)`` without debug information; ``file+offset`` without symbols."""
    functions = _functions(file)
    at = bisect_right(functions, (offset + 1,)) - 1
    base = os.path.basename(file)
    call = offset + 1  # where it returns to
    if at < 0 or not functions[at][0] <= offset < functions[at][0] + functions[at][1]:
        return [Line("", f"{base}+{call:#x}", is_named=False)]
    start, _, symbol = functions[at]
    return [Line("", f"{name or symbol}+{call - start:#x} ({base})")]


@cache
def _functions(file: str) -> list[tuple[int, int, str]]:
    """Address, size and name of the functions in a file's symbol tables."""
    try:
        with open(file, "rb") as opened:
            return sorted(_read_functions(opened))
    except (OSError, struct.error, IndexError):
        return []


_SYMBOL_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
_FUNCTION = 2  # STT_FUNC


def _read_functions(file: IO[bytes]) -> Iterator[tuple[int, int, str]]:
    """Of an ELF file of 64 bits."""

    def content(section: tuple[int, ...]) -> bytes:
        file.seek(section[4])
        return file.read(section[5])

    head = file.read(64)
    if head[:6] != b"\x7fELF\x02\x01":
        return
    file.seek(struct.unpack_from("<Q", head, 0x28)[0])
    size, count = struct.unpack_from("<HH", head, 0x3A)
    sections = list(struct.iter_unpack("<IIQQQQIIQQ", file.read(size * count)))
    for section in sections:
        if section[1] in _SYMBOL_TABLES:
            names = content(sections[section[6]])
            for name, kind, _, _, address, length in struct.iter_unpack("<IBBHQQ", content(section)):
                if kind & 15 == _FUNCTION and address:
                    yield address, length, names[name : names.index(b"\0", name)].decode("utf-8", "replace")
