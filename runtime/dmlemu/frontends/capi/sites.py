"""Call sites of C++ programs: return addresses, spelled as file, line and function when a report needs them.
In a program that runs Python, the lines of its scripts come first.

Names of objects, which have the line that made them, are composed long before anybody reads them.  So the
text of a call site is a single character that stands for it, from planes of Unicode for private use; what is
printed goes through :func:`spell_text` or ``Report.spelled``, which put the lines in its place.

Sentences name a call site by file and line alone.  Its function, the helper that it called and its callers
stand once in a report, in a line that is about it: the object's, or one of the context outside of
parentheses.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import count
from typing import Any

from ...d3d12.core.c_memory import MEMORY, read_bytes
from ...diagnostics.location import CallSite, note_source, set_late_spelling, set_provider
from ...diagnostics.report import Report, set_speller
from . import symbols
from ._capi import ffi, lib

__all__ = ["install", "spell_text", "want_frames"]

# Code that only forwards calls: the program's own line is the one that called it.
_HELPERS = re.compile(
    r"(?:^|/)(d3dx12\w*|DirectMLX|dmlemu|wrladapter|dxcore_interface)\.h:|/(?:wrl|wil)/\w+\.h:|/include/c\+\+/|/bits/"
)
_HELPING_FUNCTIONS = re.compile(r"(Microsoft::WRL|std)::")
_SYSTEM = re.compile(
    r"/(libc|libstdc\+\+|libc\+\+|libc\+\+abi|libgcc_s|libpthread|ld-linux[^/]*"
    r"|_capi|_cffi_backend|libpython3[^/]*|libffi|_ctypes)(\.[^/]*)?\.so[^/]*$"  # between a callback and main
    r"|/python3[^/]*$"
)
_MOST_LINES = 3  # of the program
_OF_AUTOGRAPH = "__autograph_generated_file"  # begins the names of TensorFlow's temporary files

_FIRST, _LAST = 0xF0000, 0x10FFFF  # characters for private use
_MARKS = re.compile(rf"[{chr(_FIRST)}-{chr(_LAST)}]|\\U00(?:0f|10)[0-9a-f]{{4}}")  # quoted texts are escaped

# Fields of struct capi_site: return addresses; texts and number of each line of Python; how many of these
# lines there are; how many files were unloaded.
_LINE = "QIIQIIQq"
_FRAMES = struct.Struct(f"@{lib.CAPI_FRAMES}Q{lib.CAPI_LINES * _LINE}qQ")
_ENCODINGS = {1: "latin-1", 2: "utf-16", 4: "utf-32"}  # by the bytes of a character
_NO_PYTHON = "on a thread that runs no Python"
_THIS_ENDIAN = "-le" if sys.byteorder == "little" else "-be"
_sites: dict[bytes, CallSite] = {}  # by these
_unloads = 0  # of the latest: what is at the addresses of those before may be other code
_stacks: dict[str, _Stack] = {}  # by their marks
_numbers = count()
_is_unknown_said = False


def install() -> None:
    """Call sites are from now on those of the program that calls the vtables."""
    set_provider(_site)
    set_speller(_spell_report)
    set_late_spelling(_spell_late)


def want_frames() -> None:
    """Call sites have all their frames, not only the innermost one."""
    lib.capi_want_frames()


def _site() -> CallSite | None:
    global _unloads
    at = lib.capi_frames()
    key = MEMORY[at : at + _FRAMES.size]
    found = _sites.get(key)
    if found is None:
        fields = _FRAMES.unpack(key)
        frames = tuple(filter(None, fields[: lib.CAPI_FRAMES]))
        *lines, line_count, unloads = fields[lib.CAPI_FRAMES :]
        if not frames:
            return None
        if unloads != _unloads:
            _sites.clear()
            _unloads = unloads
        found = _sites[key] = CallSite((_Stack(frames, _python_lines(lines, line_count)),))
    return found


def _python_lines(fields: list[int], count: int) -> list[symbols.Line] | None:
    """The lines of the program's Python, which are read before its call returns; None: it has no Python."""
    if count < 0:
        _say_unknown()
        return None
    rows = [fields[i * len(_LINE) :][: len(_LINE)] for i in range(count)]
    return [_python_line(*row) for row in rows]


def _say_unknown() -> None:
    """Says once that lines of the program's Python are not known, if reports should have them."""
    global _is_unknown_said
    version = lib.capi_version_without_lines()
    if not version or _is_unknown_said:
        return
    _is_unknown_said = True
    name = ffi.string(version).decode().partition(" ")[0]
    print(
        f"dmlemu: reports name no lines of Python: this build of Python {name} is no usual build of one of "
        "3.9 to 3.13, whose frames dmlemu can read.",
        file=sys.stderr,
        flush=True,
    )


def _python_line(
    file: int,
    file_size: int,
    file_width: int,
    name: int,
    name_size: int,
    name_width: int,
    _: int,
    number: int,
) -> symbols.Line:
    function = _text(name, name_size, name_width)
    path = _text(file, file_size, file_width)
    return symbols.Line(f"{path}:{number}", "" if function == "<module>" else _explained(path, function))


def _explained(path: str, function: str) -> str:
    """The name of a function; of one that TensorFlow wrote to a temporary file, from what."""
    if not os.path.basename(path).startswith(_OF_AUTOGRAPH):
        return function
    return f"{function}, which AutoGraph made from {function.removeprefix('tf__')}"


def _text(address: int, size: int, width: int) -> str:
    encoding = _ENCODINGS.get(width, "latin-1") + (_THIS_ENDIAN if width > 1 else "")
    return read_bytes(address, size).decode(encoding, "replace")


class _Stack:
    """A place in machine code, by the return addresses of the call and of its callers.

    The files are found at once, since they may be unloaded later; lines only when they are asked for.
    """

    __slots__ = ("_lines", "_mark", "_text", "places", "python")

    def __init__(self, addresses: tuple[int, ...], python: list[symbols.Line] | None) -> None:
        self.places = [_place(each) for each in addresses]
        self.python = python
        self._lines: list[str] = []
        self._text = ""
        number = _FIRST + next(_numbers)
        self._mark = chr(number) if number <= _LAST else ""
        if self._mark:
            _stacks[self._mark] = self

    def __str__(self) -> str:
        return self._mark or self.text

    @property
    def text(self) -> str:
        """The program's own line, with its function, the helper that it called, if any, and its callers."""
        self._spell()
        return self._text

    @property
    def lines(self) -> list[str]:
        """``file:line`` of the program's own frames, the innermost first; a symbol where there is no line."""
        self._spell()
        return self._lines

    def _spell(self) -> None:
        if not self._text:
            symbols.look_up(self.places)
            self._lines, self._text = _spell(self.places, self.python)


def spell_text(text: str) -> str:
    """A text with the lines of its call sites."""
    stacks = _stacks_in([text])
    return _replace_marks(text, {mark: stack.text for mark, stack in stacks.items()})


def _spell_late(value: Any) -> Any:
    """A value with all its texts: a call site in full, one inside of another text with its line alone."""
    stacks = _stacks_in([value])
    short = _short(list(stacks.values()))
    return _each_text(
        value, lambda text: stacks[text].text if text in stacks else _replace_marks(text, short)
    )


def _spell_report(report: Report) -> Report:
    """A report with the lines of its call sites."""
    fields = {name: getattr(report, name) for name in report.__dataclass_fields__}
    stacks = _stacks_in(fields.values())
    if not stacks:
        return report
    short = _short(list(stacks.values()))
    told: set[str] = set()  # whose full text the report has

    def sentence(text: str) -> str:
        return _replace_marks(text, short)

    def line(text: str) -> str:
        """A line of the context: the full text of what is outside of parentheses, once."""

        def spelled(match: re.Match[str]) -> str:
            mark = _unescaped(match[0])
            before = text[: match.start()]
            if mark not in stacks or mark in told or before.count("(") > before.count(")"):
                return sentence(match[0])
            told.add(mark)
            return stacks[mark].text

        return _MARKS.sub(spelled, text)

    changed = {name: _each_text(value, sentence) for name, value in fields.items()}
    changed["object"] = spell_text(_without_line(report.object, report.created_at))
    changed["created_at"] = line(report.created_at)
    changed["context"] = _each_text(report.context, line)
    return replace(report, **{name: value for name, value in changed.items() if value != fields[name]})


def _without_line(object: str, made: str) -> str:
    """An object of a report, which says by itself where the object was made."""
    return (
        object.replace(f" (created at {made})", "").replace(f", created at {made})", ")") if made else object
    )


def _short(stacks: list[_Stack]) -> dict[str, str]:
    """What sentences say, by the marks: the innermost line; the first one that differs, where a function of
    the program made several of a report's objects."""
    groups: dict[str, list[_Stack]] = {}
    for stack in stacks:
        groups.setdefault(stack.lines[0], []).append(stack)
    found: dict[str, str] = {}
    for group in groups.values():
        depth = min(len(stack.lines) for stack in group)
        kinds = len({stack.text for stack in group})
        telling = (i for i in range(depth) if len({stack.lines[i] for stack in group}) == kinds)
        level = next(telling, 0)
        found.update((str(stack), stack.lines[level]) for stack in group)
    return found


def _stacks_in(values: Iterable[Any]) -> dict[str, _Stack]:
    """The call sites in texts, by their marks, after all were looked up together."""
    found: list[str] = []

    def collect(text: str) -> str:
        found.extend(map(_unescaped, _MARKS.findall(text)))
        return text

    for value in values:
        _each_text(value, collect)
    stacks = {mark: _stacks[mark] for mark in dict.fromkeys(found) if mark in _stacks}
    symbols.look_up(place for stack in stacks.values() for place in stack.places)
    return stacks


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    """A value with each text in it changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_each_text(each, change) for each in value]
    if isinstance(value, tuple):
        return tuple(_each_text(each, change) for each in value)
    if isinstance(value, dict):
        return {_each_text(name, change): _each_text(each, change) for name, each in value.items()}
    return value


def _replace_marks(text: str, texts: dict[str, str]) -> str:
    return _MARKS.sub(lambda match: texts.get(_unescaped(match[0]), match[0]), text)


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


def _spell(places: list[symbols.Place], python: list[symbols.Line] | None) -> tuple[list[str], str]:
    """The lines of :class:`_Stack` and its text."""
    own, helper = _native_lines(places)
    if python:
        return _join(python, next((str(line) for line in own if line.is_named), ""))
    if own:
        lines, text = _join(own, helper.place if helper is not None else "")
    else:
        lines = [helper.place if helper is not None else f"0x{places[0].offset:X}"]
        text = lines[0]
    runs_main = any(line.function.partition("+")[0] == "main" for line in own)
    return lines, text if python is None or runs_main else f"{text}, {_NO_PYTHON}"


def _native_lines(places: list[symbols.Place]) -> tuple[list[symbols.Line], symbols.Line | None]:
    """The program's own lines, and the helper that the innermost one called, if any."""
    own: list[symbols.Line] = []
    helper: symbols.Line | None = None
    for place in places:
        for line in symbols.lines(place):
            if _HELPERS.search(line.source) or _HELPING_FUNCTIONS.match(line.function):
                helper = helper if own else helper or line
                continue
            own.append(line)
            if line.function.partition("+")[0] == "main" or len(own) == _MOST_LINES:
                return own, helper
    return own, helper


def _join(own: list[symbols.Line], through: str) -> tuple[list[str], str]:
    """The places of lines, and all in words; ``through``: what the innermost one called."""
    for line in own:
        file, _, number = line.source.rpartition(":")
        if number.isdecimal():
            note_source(os.path.basename(file), file, int(number))
    first, *callers = map(str, own)
    called = f" (called from {', '.join(callers)})" if callers else ""
    return [each.place for each in own], f"{first}{f', through {through}' if through else ''}{called}"
