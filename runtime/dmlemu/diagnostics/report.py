"""HRESULTs, severities, reports, and the exception that carries a report.

A :class:`Report` is the single form of every message; :meth:`Report.text` and :meth:`Report.json`
are its two renderings, and :class:`Error` carries one.
"""

from __future__ import annotations

import errno
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from dataclasses import field as dataclass_field
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Protocol

from ..frozen import Frozen
from ..suggestions import nearest, question
from .location import end_at_program
from .spelling import elide, printable, quote

if TYPE_CHECKING:
    from ..pictures import Cells, Layout, Tensor

__all__ = [
    "HOST_IS_FULL",
    "Error",
    "ErrorWatch",
    "HResult",
    "Report",
    "Severity",
    "Strictness",
    "TextChoice",
    "loading",
]

RULE_LINE = re.compile(r"^  rule: .*$", re.MULTILINE)
"""The line of :meth:`Report.text` that names the rule."""

_OF_PICTURE = ("layouts", "faulty_byte", "cells")
_MOST_LINE = 8000  # of an entry of a report, which may show a whole layout


class HResult(IntEnum):
    """HRESULT values that the API returns (as unsigned numbers)."""

    S_OK = 0
    S_FALSE = 1
    E_NOTIMPL = 0x80004001
    E_NOINTERFACE = 0x80004002
    E_POINTER = 0x80004003
    E_ABORT = 0x80004004
    E_FAIL = 0x80004005
    E_UNEXPECTED = 0x8000FFFF
    E_ACCESSDENIED = 0x80070005
    E_HANDLE = 0x80070006
    E_OUTOFMEMORY = 0x8007000E
    E_INVALIDARG = 0x80070057
    DXGI_ERROR_INVALID_CALL = 0x887A0001
    DXGI_ERROR_NOT_FOUND = 0x887A0002
    DXGI_ERROR_MORE_DATA = 0x887A0003
    DXGI_ERROR_UNSUPPORTED = 0x887A0004
    DXGI_ERROR_DEVICE_REMOVED = 0x887A0005
    DXGI_ERROR_DEVICE_HUNG = 0x887A0006
    DXGI_ERROR_DEVICE_RESET = 0x887A0007
    DXGI_ERROR_DRIVER_INTERNAL_ERROR = 0x887A0020
    DXGI_ERROR_SDK_COMPONENT_MISSING = 0x887A002D


class Severity(IntEnum):
    """Mirrors ``D3D12_MESSAGE_SEVERITY``."""

    CORRUPTION = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    MESSAGE = 4


class TextChoice(str, Enum):
    """An enum whose members may be given by their texts."""

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        """ValueError: there is no such member."""
        texts = [each.value for each in cls]
        near = question(nearest(value, texts)) if isinstance(value, str) else ""
        expected = f"{', '.join(texts[:-1])} or {texts[-1]}{f' ({near})' if near else ''}"
        raise ValueError(f"{quote(value)} is not a {cls.__name__.lower()}; expected {expected}.")


class Strictness(TextChoice):
    """How mistakes are handled.

    ``runtime``: as Windows without the debug layer; void methods do not raise, the list fails at
    ``close`` or the device is removed.  ``debug``: raise where the debug layer would print.
    ``strict`` (default): raise, enforce every documented rule, and fill what the documentation leaves
    undefined with poison.
    """

    RUNTIME = "runtime"
    DEBUG = "debug"
    STRICT = "strict"


class Report(Frozen):
    """One message.

    ``id`` is the stable name of the check, ``rule`` the rule's id and where it is written, ``field``
    the path as the user wrote it (``OutputTensor.Sizes[2]``), ``given`` and ``expected`` the values.
    ``ranges`` are bytes or elements, each in words; ``created_at`` is the line that created the object.
    ``layouts``: the tensors that :meth:`svg` draws; ``faulty_byte``: the byte of their buffer that it shows
    wherever parts are left out.  ``cells``: what it draws in their place, of threads that access memory.
    """

    id: str
    message: str
    api: str = "D3D12"
    severity: Severity = Severity.ERROR
    operation: str = ""
    field: str = ""
    given: str = ""
    expected: str = ""
    object: str = ""
    ranges: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    created_at: str = ""
    hint: str = ""
    rule: str = ""
    d3d12_id: int = 0
    properties: dict[str, str] = dataclass_field(default_factory=dict)
    layouts: tuple[Tensor, ...] = ()
    faulty_byte: int | None = None
    cells: Cells | None = None

    def __repr__(self) -> str:
        return f"<{self.severity.name} {self.id}: {elide(printable(self.message), 140)}>"

    @property
    def rule_url(self) -> str | None:
        """The URL of the documentation that the rule names; None if no page is known."""
        with loading():
            from .rule_pages import page

        return page(self.rule)

    @property
    def rule_says(self) -> str:
        """The sentences of the rules that ``rule`` names; empty if it names only a page."""
        return " ".join(_sentences(self.rule))

    @property
    def picture(self) -> Layout | Cells | None:
        """What :meth:`svg` draws, whose ``text()`` is for a terminal; None: there is nothing to draw."""
        if not self.layouts:
            return self.cells
        with loading():
            from ..pictures import Layout, grouped

        return Layout(grouped(self.layouts), self.faulty_byte)

    def svg(self) -> str:
        """A picture of the tensors in memory, or what threads of a shader did there; empty: there is none."""
        picture = self.picture
        return "" if picture is None else picture.svg()

    def html(self, hresult: HResult | None = None) -> str:
        """The report as a part of an HTML page: its text, and the picture of :meth:`svg` if there is one.

        The rule is a link to :attr:`rule_url`.
        """
        return as_html(self, self.text(hresult))

    def _repr_html_(self) -> str:
        return self.html()

    def spelled(self) -> Report:
        """The report with the lines of its call sites, which a front end may spell as late as here."""
        return self if _speller is None else _speller(self)

    def text(self, hresult: HResult | None = None, *, spell: bool = True) -> str:
        """The report as text: one sentence first, then where, why and what to do.

        Bounded in size, and without terminal control characters.  ``spell``: see :meth:`spelled`.
        """
        self = self.spelled() if spell else self
        place = f" [{self.operation}]" if self.operation else ""
        lines = [f"{self.api} {self.severity.name} {self.id}{place}", self.message]
        if self.given or self.expected:
            name = f"{self.field}: " if self.field else ""
            lines.append(f"  {name}given {self.given}; expected {self.expected}")
        if self.object:
            line = f", created at {self.created_at}"
            is_named = not self.created_at or self.created_at in self.object
            lines.append(f"  object: {self.object}{'' if is_named else line}")
        lines += [f"  range: {line}" for line in self.ranges]
        context = [f"  - {line}" for line in self.context]
        pictures = {line for line in context if "\n" in line}  # layouts have lines of their own
        lines += context
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        if self.rule:
            lines.append(f"  rule: {self.rule}")
            lines += [line for sentence in _sentences(self.rule) for line in _wrapped(sentence)]
        if self.d3d12_id:
            lines.append(f"  D3D12_MESSAGE_ID: {self.d3d12_id}")
        if hresult is not None:
            lines.append(f"  HRESULT 0x{int(hresult):08X} {hresult.name}")
        return "\n".join(_printed(line, line in pictures) for line in lines)

    def key(self) -> str:
        """A text that identifies the report.  No lines are looked up for INFO, which few read."""
        return self.text(spell=self.severity <= Severity.WARNING)

    def json(self, hresult: HResult | None = None, *, count: int = 1, **more: Any) -> str:
        """The report as one JSON line: every field but those of the picture, ``rule_url``, ``rule_says``, its
        count, and ``more``.

        Long texts are elided in the middle, as in :meth:`text`.
        """
        with loading():
            import json

        spelled = asdict(self.spelled())
        value = {name: _elided(field) for name, field in spelled.items() if name not in _OF_PICTURE}
        value["severity"] = self.severity.name
        value["rule_url"] = self.rule_url
        value["rule_says"] = self.rule_says
        value["hresult"] = None if hresult is None else hresult.name
        return json.dumps({**value, "count": count, **more}, default=str)


# Lines in columns are not to be wrapped, however narrow the page is.
_COLUMNS = re.compile(r"(?:^.*\S {2,}\S.*(?:\n|\Z))+", re.MULTILINE)
_UNBROKEN = "display: block; white-space: pre; overflow-x: auto"
_COLOURS = {Severity.CORRUPTION: "#d00000", Severity.ERROR: "#d00000", Severity.WARNING: "#c77700"}


def as_html(report: Report, text: str, others: Sequence[str] = ()) -> str:
    """``text`` and the picture of the report, as a part of an HTML page; its rule is a link to its page.

    ``others``: further objects that have the same report, folded up.
    """
    with loading():
        from html import escape

    first, _, rest = text.partition("\n")
    style = (
        f"border-left: 4px solid {_COLOURS.get(report.severity, '#777')}; padding-left: 1em; margin: 1em 0"
    )
    rest, url = escape(rest), report.rule_url
    if url is not None:
        rest = RULE_LINE.sub(rf'<a href="{escape(url)}">\g<0></a>', rest)
    rest = _COLUMNS.sub(lambda lines: f'<span style="{_UNBROKEN}">{lines[0].rstrip()}</span>', rest)
    shown = f"<strong>{escape(first)}</strong>\n{rest}"
    pre = f'<pre style="white-space: pre-wrap">{shown}</pre>'
    if others:
        count = "1 other object" if len(others) == 1 else f"{len(others)} other objects"
        lines = escape("\n".join(_printed(each, False) for each in others))
        pre += f"\n<details><summary>The same of {count}</summary><pre>{lines}</pre></details>"
    drawn = report.svg()
    picture = f'<div style="overflow-x: auto">{drawn}</div>' if drawn else ""
    return f'<section style="{style}">\n{pre}\n{picture}</section>\n'


def _wrapped(sentence: str) -> list[str]:
    with loading():
        from textwrap import wrap

    return wrap(sentence, 100, initial_indent="    ", subsequent_indent="    ", break_long_words=False)


def _no_sentences(rule: str) -> list[str]:
    return []


_sentences: Callable[[str], list[str]] = _no_sentences


def set_sentences(sentences: Callable[[str], list[str]]) -> None:
    """Sets what finds the sentences of the rules that a text names: the rows are loaded later than this."""
    global _sentences
    _sentences = sentences


_speller: Callable[[Report], Report] | None = None


def set_speller(speller: Callable[[Report], Report]) -> None:
    """Sets what :meth:`Report.spelled` calls, for a front end whose call sites are spelled late."""
    global _speller
    _speller = speller


def _elided(value: Any) -> Any:
    """A field of a report, with long texts elided."""
    if isinstance(value, str):
        return elide(value, _MOST_LINE)
    if isinstance(value, tuple):
        return tuple(map(_elided, value))
    if isinstance(value, dict):
        return {_elided(name): _elided(each) for name, each in value.items()}
    return value


def _printed(entry: str, is_picture: bool) -> str:
    entry = elide(entry, _MOST_LINE)
    return "\n".join(map(printable, entry.split("\n"))) if is_picture else printable(entry)


class Error(Exception):
    """A call failed: ``hresult`` is what the real API returns, ``report`` says why.

    ``is_stored``: the reports of the device have it.
    """

    __module__ = "dmlemu"  # tracebacks show the public name

    _watch: ClassVar[ErrorWatch | None] = None
    _watched_by: ErrorWatch | None = None  # until it has seen where the error got to

    def __init__(self, hresult: HResult, report: Report) -> None:
        super().__init__(report.text(hresult, spell=False))
        self.hresult = hresult
        self.report = report
        self.is_stored = False
        if self._watch is not None:
            self._watch.created(self)

    def __del__(self) -> None:
        if self._watch is not None:
            self._watch.forgotten(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickling: by default only the text would be kept."""
        return type(self), (self.hresult, self.report), {**self.__dict__, "_watched_by": None}

    def _render_traceback_(self) -> list[str]:
        """For IPython: its own traceback, cut at the program's line."""
        ipython: Any = sys.modules["IPython"]  # it is the caller
        end_at_program(self)
        shown: list[str] = ipython.get_ipython().InteractiveTB.structured_traceback(
            type(self), self, self.__traceback__, tb_offset=1
        )
        return shown


class ErrorWatch(Protocol):
    """Is notified of every error, raised or swallowed; used by the pytest plugin."""

    def created(self, error: Error) -> None: ...

    def forgotten(self, error: Error) -> None:
        """The error is released; its traceback is still available."""


HOST_IS_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the host says when it has no open files or no memory left."""


@contextmanager
def loading() -> Iterator[None]:
    """For imports inside of calls: raises E_OUTOFMEMORY when no file descriptors are left for them."""
    try:
        yield
    except OSError as error:
        if error.errno not in HOST_IS_FULL:
            raise
        report = Report(
            "OUT_OF_MEMORY",
            f"A part of dmlemu cannot be loaded ({error.strerror}).",
            operation="import",
            hint="Close files or release devices that are no longer used.",
        )  # without its declaration, which may be what cannot be loaded
        raise Error(HResult.E_OUTOFMEMORY, report) from None
