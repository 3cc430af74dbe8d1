"""Call sites: the line of the program that called the emulator, and where tracebacks are cut."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType, ModuleType, TracebackType
from typing import Any, TypeVar

__all__ = [
    "CallSite",
    "begins_program",
    "call_site",
    "caller",
    "end_at_program",
    "note_source",
    "program_entry",
    "set_late_spelling",
    "set_provider",
    "skip_frames",
    "source_of",
    "spell_late",
    "spell_site",
]

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep  # dmlemu/


def program_entry(error: BaseException) -> TracebackType | None:
    """The program's innermost entry of the traceback; None: the error was not raised by a call of dmlemu."""
    found, entry = None, error.__traceback__
    while entry is not None:
        if not _is_our_code(entry.tb_frame):
            found = entry
        entry = entry.tb_next
    return found


def end_at_program(error: BaseException) -> None:
    """Ends the traceback at the program's call; every holder of the traceback sees it cut."""
    last = program_entry(error)
    if last is not None:
        last.tb_next = None


def _is_our_code(frame: FrameType) -> bool:
    """The device's own code, and generated code without a file: both are recognised by module."""
    return str(frame.f_globals.get("__name__")).startswith(("dmlemu.", "dmlemu_hw."))


# --- call sites ---

MOST_FRAMES = 3  # frames stored in a call site


class CallSite:
    """Where the program called: up to three of its frames, the innermost first.

    A frame is what the provider of call sites captured (:func:`set_provider`): a code object with the
    offset of an instruction, for Python, or any object that ``str`` formats.  Formatting is deferred until a
    report needs it.  Call sites are equal when their innermost frames are on the same line.
    """

    __slots__ = ("_first", "_frames")

    def __init__(self, frames: Sequence[object]) -> None:
        self._frames = frames
        self._first: tuple[str, int] | None = None

    @property
    def line(self) -> tuple[str, int]:
        """File and line of the innermost frame; the line is 0 for a frame that is not Python's."""
        if self._first is None:
            self._first = _line(self._frames[0])
        return self._first

    @property
    def lines(self) -> tuple[tuple[str, int], ...]:
        """:attr:`line` of every frame."""
        return (self.line, *map(_line, self._frames[1:]))

    @property
    def innermost(self) -> str:
        """``file:line`` of the innermost frame."""
        return _spell(self.line)

    def __str__(self) -> str:
        """``file:line``, with the lines that called it, if they are the program's own."""
        first, *outer = map(_spell, self.lines)
        return f"{first} (called from {', '.join(outer)})" if outer else first

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallSite) and self.line == other.line

    def __hash__(self) -> int:
        return hash(self.line)


def _line(frame: Any) -> tuple[str, int]:
    if not isinstance(frame, tuple):
        return str(frame), 0
    code, offset = frame
    lines = (line for start, end, line in code.co_lines() if start <= offset < end)
    return code.co_filename, next(lines, None) or code.co_firstlineno


def _spell(line: tuple[str, int]) -> str:
    if not line[1]:
        return line[0]
    name = os.path.basename(line[0])
    note_source(name, *line)
    return f"{name}:{line[1]}"


_sources: dict[tuple[str, int], str] = {}  # the paths of lines in reports


def note_source(name: str, path: str, line: int) -> None:
    """A text names a line by the name of its file alone: :func:`source_of` knows the path."""
    if _sources.setdefault((name, line), path) != path:
        _sources[name, line] = ""  # of two files


def source_of(name: str, line: int) -> str:
    """The path of a line in a report, relative to the current folder if it is below; empty: it is not
    known.
    """
    path = _sources.get((name, line), "")
    if not path or not os.path.exists(path):
        return ""
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith(os.pardir) else relative


def call_site() -> CallSite | None:
    """The program's current call site, from the front end (:func:`set_provider`) or from Python's frames.

    The innermost frame is the first one outside this package and outside of helpers; the others follow
    it outwards, until the standard library or an installed package is reached.  None: the program has no
    Python lines, as when the command line runs it.
    """
    if _provider is not None:
        return _provider()
    inner = sys._getframe()
    frame = inner.f_back
    found: list[tuple[CodeType, int]] = []
    while frame is not None:
        code = frame.f_code
        owner = _owners.get(code.co_filename) or _owner_of(frame)
        if owner is _EMULATOR:
            if found and code in _beginnings:
                break
            inner = frame
        elif owner is _PROGRAM or (owner is _INSTALLED and not found):
            if not found and inner.f_globals.get("__name__") in ("dmlemu.cli", "__main__"):  # -m dmlemu
                return None
            found.append((code, frame.f_lasti))
            if len(found) == MOST_FRAMES:
                break
        elif owner is _INSTALLED:
            break
        frame = frame.f_back
    return CallSite(found) if found else None


_EMULATOR, _HELPER, _INSTALLED, _PROGRAM = "emulator", "helper", "installed", "program"
_packages = [each for each in sys.path if each.endswith(("site-packages", "dist-packages"))]
_INSTALLED_FOLDERS = tuple(f"{each}{os.sep}" for each in (os.path.dirname(os.__file__), *_packages))
_owners: dict[str, str] = {}  # by file
_helpers = {"contextlib"}  # names of modules; this one leaves contexts for the program


def _owner_of(frame: FrameType) -> str:
    """Whom a frame's code belongs to; cached for its file, if it has one."""
    file = frame.f_code.co_filename
    if file.startswith(_PACKAGE) or _is_our_code(frame):
        owner = _EMULATOR
    elif frame.f_globals.get("__dmlemu_helper__") or frame.f_globals.get("__name__") in _helpers:
        owner = _HELPER
    else:
        owner = _INSTALLED if file.startswith(_INSTALLED_FOLDERS) or file.startswith("<frozen") else _PROGRAM
    if file[:1] != "<":  # otherwise files of many modules have this name
        _owners[file] = owner
    return owner


_beginnings: set[CodeType] = set()
_Function = TypeVar("_Function", bound=Callable[..., Any])


def begins_program(function: _Function) -> _Function:
    """Decorates a function of ours that runs a program: call sites do not name the lines that called it."""
    _beginnings.add(function.__code__)
    return function


def skip_frames(*modules: ModuleType) -> None:
    """Makes call sites skip the frames of these modules, as those of modules with ``__dmlemu_helper__``.

    For modules of a program that only forward calls: a report then names the lines that called them.
    """
    _helpers.update(module.__name__ for module in modules)
    _owners.clear()


_provider: Callable[[], CallSite | None] | None = None


def set_provider(provider: Callable[[], CallSite | None] | None) -> Callable[[], CallSite | None] | None:
    """Sets what provides call sites; None: Python's frames.  Returns the previous provider.

    ``provider`` is called for every recorded command: it only captures, and leaves formatting to
    ``str`` of the frames that it puts into the :class:`CallSite`.
    """
    global _provider
    before, _provider = _provider, provider
    return before


def spell_site(site: CallSite | None) -> str:
    """``file:line``, with the lines that called this one; empty for None."""
    return "" if site is None else str(site)


_spell_late: Callable[[Any], Any] | None = None


def set_late_spelling(spell: Callable[[Any], Any]) -> None:
    """Sets what :func:`spell_late` calls, for a front end whose call sites are spelled late."""
    global _spell_late
    _spell_late = spell


def spell_late(value: Any) -> Any:
    """What goes into a file, a text or lists and dictionaries of texts, with the lines of its call sites."""
    return value if _spell_late is None else _spell_late(value)


def caller() -> str:
    """:func:`call_site` in words."""
    return spell_site(call_site())
