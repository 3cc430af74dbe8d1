"""What the emulator says when something is wrong: HRESULTs, reports and the exception that carries them.

A :class:`Report` is the single form of every message; :meth:`Report.text` and :meth:`Report.json`
are its two renderings, and :class:`Error` carries one.
"""

from __future__ import annotations

import errno
import operator
import re
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from dataclasses import field as dataclass_field
from enum import Enum, IntEnum, IntFlag
from typing import Any, ClassVar, Protocol

from dmlemu_hw.frozen import Frozen

from .diagnostics.location import (
    CallSite as CallSite,
)
from .diagnostics.location import (
    call_site as call_site,
)
from .diagnostics.location import (
    caller as caller,
)
from .diagnostics.location import (
    end_at_program as end_at_program,
)
from .diagnostics.location import (
    program_entry as program_entry,
)
from .diagnostics.location import (
    skip_frames as skip_frames,
)
from .diagnostics.location import (
    spell_site as spell_site,
)


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


class Strictness(str, Enum):
    """How mistakes are answered.

    ``runtime``: as Windows does without the debug layer; void methods do not raise, the list fails at
    ``close`` or the device is removed.  ``debug``: raise where the debug layer would print.
    ``strict`` (default): raise, and hold the program to the documents' every word; what they leave
    undefined is filled with poison.
    """

    RUNTIME = "runtime"
    DEBUG = "debug"
    STRICT = "strict"


class Report(Frozen):
    """One message.

    ``id`` is the stable name of the check, ``rule`` the rule's id and where it is written, ``field``
    the path as the user wrote it (``OutputTensor.Sizes[2]``), ``given`` and ``expected`` the values.
    ``ranges`` are bytes or elements, each in words; ``created_at`` is the line that created the object.
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

    def text(self, hresult: HResult | None = None) -> str:
        """The report for people: one sentence first, then where, why and what to do.

        Of bounded size, and without characters that a terminal would act upon.
        """
        place = f" [{self.operation}]" if self.operation else ""
        lines = [f"{self.api} {self.severity.name} {self.id}{place}", self.message]
        if self.given or self.expected:
            name = f"{self.field}: " if self.field else ""
            lines.append(f"  {name}given {self.given}; expected {self.expected}")
        if self.object:
            line = f", created at {self.created_at}"
            told = not self.created_at or self.created_at in self.object
            lines.append(f"  object: {self.object}{'' if told else line}")
        lines += [f"  range: {line}" for line in self.ranges]
        context = [f"  - {line}" for line in self.context]
        pictures = {line for line in context if "\n" in line}  # of layouts: these have lines of their own
        lines += context
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        if self.rule:
            lines.append(f"  rule: {self.rule}")
        if self.d3d12_id:
            lines.append(f"  D3D12_MESSAGE_ID: {self.d3d12_id}")
        if hresult is not None:
            lines.append(f"  HRESULT 0x{int(hresult):08X} {hresult.name}")
        return "\n".join(_printed(line, line in pictures) for line in lines)

    def json(self, hresult: HResult | None = None, *, count: int = 1, **more: Any) -> str:
        """The report as one JSON line: every field, how often it came up, and ``more``.

        The middle of long texts is left out, as in :meth:`text`.
        """
        with loading():
            import json

        value = {name: _elided(field) for name, field in asdict(self).items()}
        value["severity"] = self.severity.name
        value["hresult"] = None if hresult is None else hresult.name
        return json.dumps({**value, "count": count, **more}, default=str)


class Error(Exception):
    """A call failed: ``hresult`` is what the real API returns, ``report`` says why."""

    _watch: ClassVar[ErrorWatch | None] = None
    _watched_by: ErrorWatch | None = None  # until that one has seen where it got to

    def __init__(self, hresult: HResult, report: Report) -> None:
        super().__init__(report.text(hresult))
        self.hresult = hresult
        self.report = report
        if self._watch is not None:
            self._watch.created(self)

    def __del__(self) -> None:
        if self._watch is not None:
            self._watch.forgotten(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """How it goes to another process: by default with its text alone."""
        return type(self), (self.hresult, self.report), {**self.__dict__, "_watched_by": None}

    def _render_traceback_(self) -> list[str]:
        """What IPython shows: its own traceback, which ends at the program's line."""
        from IPython import get_ipython  # type: ignore[import-not-found]  # it is the caller

        end_at_program(self)
        shown: list[str] = get_ipython().InteractiveTB.structured_traceback(
            type(self), self, self.__traceback__, tb_offset=1
        )
        return shown


class ErrorWatch(Protocol):
    """Who sees every error, whether it is raised or not: the pytest plugin."""

    def created(self, error: Error) -> None: ...

    def forgotten(self, error: Error) -> None:
        """It ends, and still has its traceback."""


def as_integer(value: object) -> int | None:
    """The value as an int; None for what is no integer.  numpy's integers count, truth values do not."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except Exception:  # whatever the value's own method raises
        return None


def failure(
    id: str,
    message: str,
    *,
    api: str,
    operation: str,
    rule: str,
    hresult: HResult = HResult.E_INVALIDARG,
    message_id: int | None = None,
    field: str = "",
    given: Any = "",
    expected: Any = "",
    object: Any = "",
    hint: str = "",
    severity: Severity = Severity.ERROR,
    context: tuple[str, ...] = (),
    is_call: bool = True,
) -> Error:
    """One error of ``api``; ``id`` is the check's stable name.

    ``rule``: the rule's id and the page that states it, ``TN6: DML_BUFFER_TENSOR_DESC``.
    ``message_id``: the nearest D3D12_MESSAGE_ID.  ``is_call``: the user's call is at fault, so that its
    line is worth telling.
    """
    place = caller() if is_call else ""
    if place:
        context = (*context, f"While calling {operation} at {place}" if operation else f"Called at {place}")
    report = Report(
        id=id,
        api=api,
        message=sentence(message),
        severity=severity,
        operation=operation,
        field=field,
        given=spell(given),
        expected=spell(expected),
        object=str(object) if is_object(object) else spell(object),
        hint=hint,
        rule=rule,
        context=context,
        created_at=object.created_at if is_object(object) else "",
        d3d12_id=message_id or 0,
    )
    return Error(hresult, report)


def sentence(message: str) -> str:
    """The message with a capital letter, if it begins with what an object is called; fields keep theirs."""
    return message[:1].upper() + message[1:] if re.match(r"[a-z ]+ ['#]", message) else message


def not_implemented(operation: str, what: str, hint: str = "", *, api: str) -> Error:
    """What the emulator does not do raises, by name."""
    return failure(
        "OP_NOT_EMULATED",
        f"{what} is not emulated.",
        api=api,
        operation=operation,
        rule="",
        hresult=HResult.E_NOTIMPL,
        hint=hint,
    )


# --- values in messages ---

_MOST_CHARACTERS = 200  # of a text; of a value half as many
_MOST_LINE = 8000  # of an entry of a report, which may show a whole layout
_MOST_BITS = 128  # of a number that is spelled out; Python itself refuses to above 4300 digits


class _Quote(reprlib.Repr):
    """``repr`` that is short, of containers too."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = 16
        self.maxstring = self.maxother = _MOST_CHARACTERS // 2

    def repr_int(self, x: int, level: int) -> str:
        bits = x.bit_length()
        return repr(x) if bits <= _MOST_BITS else f"an integer of {bits} bits"


_quote = _Quote().repr


def shorten(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text for a message: the middle of a long one is left out, and what cannot be printed is spelled."""
    return printable(elide(text, most))


def elide(text: str, most: int) -> str:
    """The text; of a long one the middle is left out, with a count of what that was."""
    if len(text) <= most:
        return text
    half = max(most - 30, most // 2) // 2  # the count takes less than 30 itself
    return f"{text[:half]} ... {len(text) - 2 * half} characters ... {text[-half:]}"


def printable(text: str) -> str:
    """The text with its control characters spelled, so that a terminal shows them and does not obey them.

    Newlines are among them, as are the marks that change the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _elided(value: Any) -> Any:
    """What a field of a report holds, with short texts."""
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


def quote(value: object) -> str:
    """A value as it is written in Python, shortened; never raises."""
    try:
        return shorten(_quote(value), _MOST_CHARACTERS // 2)
    except Exception:  # whatever the value's own ``__repr__`` raises
        return f"<{type(value).__name__}>"


def spell(value: Any) -> str:
    """A value for a message, shortened; never raises.

    Enum members by name, flags joined by ``|``, API objects by what they are called (where they were
    created is for the sentence to say), texts as they are, the rest as it is written in Python.
    """
    if isinstance(value, IntFlag):
        return _spell_flags(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):
        return shorten(value)
    if is_object(value):
        title: str = value._title()
        return title
    return quote(value)


def spell_object(value: object) -> str:
    """An argument of the wrong type: an API object by its name, anything else by its type."""
    return str(value) if is_object(value) else type(value).__name__


def is_object(value: object) -> bool:
    """An object of the API, which has a name for messages."""
    return hasattr(type(value), "set_private_data")


def _spell_flags(value: IntFlag) -> str:
    members = type(value).__members__
    bits = int(value)
    for name, member in members.items():
        if int(member) == bits:
            return name
    names = []
    for name, member in members.items():
        bit = int(member)
        if bit and bit & (bit - 1) == 0 and bits & bit:
            names.append(name)
            bits &= ~bit
    if bits:
        names.append(f"0x{bits:X}")
    return " | ".join(names)


HOST_IS_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the host says when it has no open files or no memory left."""


@contextmanager
def loading() -> Iterator[None]:
    """Around imports inside of calls: E_OUTOFMEMORY when no open files are left for them."""
    try:
        yield
    except OSError as error:
        if error.errno not in HOST_IS_FULL:
            raise
        raise failure(
            "OUT_OF_MEMORY",
            f"A part of dmlemu cannot be loaded ({error.strerror}).",
            api="D3D12",
            operation="import",
            rule="",
            hresult=HResult.E_OUTOFMEMORY,
            hint="Close files or release devices that are no longer used.",
        ) from None
