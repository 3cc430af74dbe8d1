"""Call sites of C++ programs: return addresses, spelled as file, line and function when a report needs them.

Names of objects, which have the line that made them, are composed long before anybody reads them.  So the
text of a call site is a single character that stands for it, from planes of Unicode for private use; what is
printed goes through :func:`spell_text` or ``Report.spelled``, which put the lines in its place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from ...diagnostics.location import CallSite, set_provider
from ...diagnostics.report import Report, set_speller
from . import symbols
from ._capi import ffi, lib

__all__ = ["install", "spell_text", "want_frames"]

# Code that only forwards calls: the program's own line is the one that called it.
_HELPERS = re.compile(
    r"(?:^|/)(d3dx12\w*|DirectMLX|wrladapter|dxcore_interface)\.h:|/(?:wrl|wil)/\w+\.h:|/include/c\+\+/|/bits/"
)
_HELPING_FUNCTIONS = re.compile(r"(Microsoft::WRL|std)::")
_SYSTEM = re.compile(r"/(libc|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|libpthread|ld-linux[^/]*)\.so[^/]*$")
_MOST_LINES = 3  # of the program

_FIRST, _LAST = 0xF0000, 0x10FFFF  # characters for private use
_MARKS = re.compile(rf"[{chr(_FIRST)}-{chr(_LAST)}]|\\U00(?:0f|10)[0-9a-f]{{4}}")  # quoted texts are escaped

_sites: dict[bytes, CallSite] = {}  # by their return addresses
_stacks: dict[str, _Stack] = {}  # by their marks
_numbers = count()


def install() -> None:
    """Call sites are from now on those of the program that calls the vtables."""
    set_provider(_site)
    set_speller(_spell_report)


def want_frames() -> None:
    """Call sites have all their frames, not only the innermost one."""
    lib.capi_want_frames()


def _site() -> CallSite | None:
    site = lib.capi_frames()
    frames = site.frames
    if not frames[0]:
        return None
    key = ffi.buffer(frames)[: 8 * site.count]
    found = _sites.get(key)
    if found is None:
        found = _sites[key] = CallSite((_Stack(tuple(frames[0 : site.count])),))
    return found


class _Stack:
    """A place in machine code, by the return addresses of the call and of its callers.

    The files are found at once, since they may be unloaded later; lines only when they are asked for.
    """

    __slots__ = ("_mark", "_text", "places")

    def __init__(self, addresses: tuple[int, ...]) -> None:
        self.places = [_place(each) for each in addresses]
        self._text = ""
        number = _FIRST + next(_numbers)
        self._mark = chr(number) if number <= _LAST else ""
        if self._mark:
            _stacks[self._mark] = self

    def __str__(self) -> str:
        return self._mark or self.spell()

    def spell(self) -> str:
        if not self._text:
            symbols.look_up(self.places)
            self._text = _spell(self.places)
        return self._text


def spell_text(text: str) -> str:
    """A text with the lines of its call sites."""
    return str(_spelling([text])(text))


def _spell_report(report: Report) -> Report:
    """A report with the lines of its call sites."""
    fields = {name: getattr(report, name) for name in report.__dataclass_fields__}
    spell = _spelling(fields.values())
    changed = {name: spell(value) for name, value in fields.items()}
    return replace(report, **{name: value for name, value in changed.items() if value != fields[name]})


def _spelling(values: Any) -> Callable[[Any], Any]:
    """A function that spells such values, after all call sites in them were looked up together."""
    found: set[str] = set()

    def each_text(value: Any, change: Callable[[str], str]) -> Any:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, tuple):
            return tuple(each_text(each, change) for each in value)
        if isinstance(value, dict):
            return {name: each_text(each, change) for name, each in value.items()}
        return value

    def collect(text: str) -> str:
        found.update(map(_unescaped, _MARKS.findall(text)))
        return text

    for value in values:
        each_text(value, collect)
    stacks = {mark: _stacks[mark] for mark in found & _stacks.keys()}
    symbols.look_up(place for stack in stacks.values() for place in stack.places)

    def line(match: re.Match[str]) -> str:
        stack = stacks.get(_unescaped(match[0]))
        return match[0] if stack is None else stack.spell()

    def spell(text: str) -> str:
        return _MARKS.sub(line, text)

    return lambda value: each_text(value, spell)


def _unescaped(mark: str) -> str:
    return mark if len(mark) == 1 else chr(int(mark[2:], 16))


def _place(address: int) -> symbols.Place:
    """The file at a return address, and the address in it of the call; system libraries have none."""
    file = ffi.new("char[4096]")
    offset = lib.capi_place(address, file, len(file))
    path = os.fsdecode(ffi.string(file)) if offset else ""
    if offset and not path:
        path = os.path.realpath("/proc/self/exe")
    if not path or _SYSTEM.search(path):
        return symbols.Place("", address)
    return symbols.Place(path, offset - 1)  # inside of the call instruction


def _spell(places: list[symbols.Place]) -> str:
    """The program's own line, with the helper that it called, if any, and the lines that called it."""
    own: list[str] = []
    helper = ""
    for place in places:
        for line in symbols.lines(place):
            if _HELPERS.search(line.source) or _HELPING_FUNCTIONS.match(line.function):
                helper = helper or os.path.basename(line.source) or line.function
            else:
                own.append(f"{line}, through {helper}" if helper and not own else str(line))
            if line.function.partition("+")[0] == "main" or len(own) == _MOST_LINES:
                return _join(own, helper)
    return _join(own, helper) if own or helper else f"0x{places[0].offset:X}"


def _join(own: list[str], helper: str) -> str:
    first, *callers = own or [helper]
    return f"{first} (called from {', '.join(callers)})" if callers else first
