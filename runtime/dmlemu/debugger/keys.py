"""The keys of the debugger."""

from ..errors import printable
from ..frontends.usage import UsageError

__all__ = ["KEYS", "key_name", "keys_of"]

KEYS = (
    ("n", "p", "next, previous moment (also down, up)"),
    ("c", "C", "next, previous command of a list"),
    ("d", "D", "next, previous dispatch"),
    ("l", "L", "next, previous list"),
    ("r", "R", "next, previous report"),
    ("w", "W", "next, previous writer of the byte"),
    ("/", "", "ask for a text, and go to the next moment that contains it"),
    ("f", "F", "next, previous moment that contains it"),
    ("home", "end", "first, last moment"),
    ("o", "O", "next, previous operand; memory follows the moments"),
    ("b", "B", "next, previous buffer; memory stays at it"),
    ("right", "left", "next, previous element"),
    ("]", "[", "16 elements on, back"),
    ("@", "g", "ask for a byte, for the number of a moment"),
    ("v", "", "memory as tensor, bytes, picture"),
    ("tab", "shift+tab", "resources, descriptors, fences, reports, list"),
    (">", "<", "the list of moments wider, narrower"),
    ("z", "", "those alone on the screen, for long reports; again: all panes"),
    ("?", "q", "this help; leave"),
)
"""Keys, those that go back, and what they do."""

_NAMES = {
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "@": "at",
    "?": "question_mark",
    "/": "slash",
    ">": "greater_than_sign",
    "<": "less_than_sign",
}


def keys_of(text: str) -> list[str]:
    """The keys of a text with spaces between them; ``/TEXT`` is short for its keys and enter."""
    known = {*(key for row in KEYS for key in row[:2]), *"0123456789", "down", "up", "enter", "escape"}
    keys: list[str] = []
    for word in text.split():
        if word.startswith("/") and len(word) > 1 and word.isprintable():
            keys += [*word, "enter"]
        elif word in known:
            keys.append(word)
        else:
            raise UsageError(
                f"--script: {printable(word)} is not a key; expected {' '.join(sorted(known - {''}))}, /TEXT"
            )
    return keys


def key_name(key: str) -> str:
    """Textual's name of a key."""
    return _NAMES.get(key, key)
