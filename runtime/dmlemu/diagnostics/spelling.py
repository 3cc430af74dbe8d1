"""Formatting of values in messages: bounded in size, and printable."""

from __future__ import annotations

import operator
import re
import reprlib
from enum import Enum, IntFlag
from typing import Any, NamedTuple

__all__ = [
    "Words",
    "as_integer",
    "capital",
    "elide",
    "is_object",
    "not_a",
    "number_of",
    "printable",
    "quote",
    "sentence",
    "shorten",
    "speak",
    "spell",
    "spell_object",
]

_MOST_CHARACTERS = 200  # of a text; of a value half as many
_MOST_BITS = 128  # of a number written out; Python itself refuses above 4300 digits


class _Quote(reprlib.Repr):
    """A short ``repr``, also of containers."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = 16
        self.maxstring = self.maxother = _MOST_CHARACTERS // 2

    def repr_int(self, x: int, level: int) -> str:
        bits = x.bit_length()
        return repr(x) if bits <= _MOST_BITS else f"an integer of {bits} bits"


_quote = _Quote().repr


def shorten(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text for a message: long texts are elided in the middle, unprintable characters escaped."""
    return printable(elide(text, most))


def elide(text: str, most: int) -> str:
    """The text; if it is long, its middle is replaced by the count of omitted characters."""
    if len(text) <= most:
        return text
    half = max(most - 30, most // 2) // 2  # the count takes less than 30 itself
    return f"{text[:half]} ... {len(text) - 2 * half} characters ... {text[-half:]}"


def capital(text: str) -> str:
    """The text as a sentence begins; all but its first letter stays."""
    return text[:1].upper() + text[1:]


def printable(text: str) -> str:
    """The text with control characters escaped, so that a terminal does not interpret them.

    This includes newlines, and marks that change the direction of writing.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def quote(value: object) -> str:
    """A value in Python's notation, shortened; never raises.  What C has another word for is in its words."""
    if value is None or isinstance(value, bool):
        return words.truth[value] if value is not None else words.null
    try:
        return shorten(_quote(value), _MOST_CHARACTERS // 2)
    except Exception:  # whatever the value's own ``__repr__`` raises
        return f"<{type(value).__name__}>"


class Words(NamedTuple):
    """What messages call no object, and the values of a BOOL: the words of the program's language."""

    null: str
    truth: tuple[str, str]


PYTHON = Words("None", ("False", "True"))
C = Words("NULL", ("FALSE", "TRUE"))
words = PYTHON


def speak(language: Words) -> None:
    """Sets the language of all messages: C programs have no ``None``."""
    global words
    words = language


def spell(value: Any) -> str:
    """A value for a message, shortened; never raises.

    Enum members by name, flags joined by ``|``, API objects by name (without where they were
    created), texts as they are, everything else in Python's notation.
    """
    if isinstance(value, IntFlag):
        return _spell_flags(value)
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, str):
        return shorten(value)
    if is_object(value):
        title: str = value.title()
        return title
    return quote(value)


def spell_object(value: object) -> str:
    """An argument of the wrong type: an API object by its name, anything else by its type."""
    if value is None:
        return words.null
    return str(value) if is_object(value) else type(value).__name__


def not_a(field: str, value: object, what: str) -> str:
    """The sentence about an argument of the wrong type: ``what`` is ``is no fence``; none: it is NULL."""
    return f"{field} is {words.null}." if value is None else f"{field} ({spell_object(value)}) {what}."


def number_of(count: int, noun: str) -> str:
    """``1 value``, ``2 values``: a number that is not the value of the field that a report is about."""
    return f"{count} {noun}{'s' * (count != 1)}"


def is_object(value: object) -> bool:
    """Whether it is an object of the API, which has a name for messages."""
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


def sentence(message: str) -> str:
    """The message with a capital letter, if it begins with an object's title; field names stay unchanged."""
    return capital(message) if re.match(r"[a-z ]+ ['#]", message) else message


def as_integer(value: object) -> int | None:
    """The value as an int; None if it is no integer.  NumPy's integers are accepted, bools are not."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except Exception:  # whatever the value's own method raises
        return None
