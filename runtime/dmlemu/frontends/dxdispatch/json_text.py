"""JSON as DxDispatch reads it: comments and trailing commas are allowed, bare NaN and Infinity are not.

DxDispatch's parser also stops after the root value, so whatever follows it is ignored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dmlemu.frontends.rows import MODEL_JSON

from .errors import ModelError, model_error, quoted
from .files import read_whole

__all__ = ["BadNumber", "parse_json", "read_json"]

# They search a text without escapes (:func:`_masked`): a string then ends at the next quote.  Each
# alternative matches to the end of the text when it is not closed, so that scanning stays linear.
_STRING_OR_COMMENT = re.compile(r'"[^"]*"?|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(r'"[^"]*"?|,(?=[ \t\r\n]*[\]}])')
_STRING_OR_BRACKET = re.compile(r'"[^"]*"?|[\[\]{}]')
# Only these numbers may need a double or a BadNumber instead of what Python reads.
_LARGE_NUMBERS = (re.compile(r"[0-9]{19}"), re.compile(r"[eE]\+?[0-9]{3}"))  # faster as separate expressions
_SURROGATE = re.compile(r"\\u[dD][89abAB]")
_SPACE = " \t\r\n"
_MOST_DEPTH = 100


class BadNumber(str):
    """A number that JSON cannot hold (NaN, Infinity, 1e999), as the file wrote it.

    It is reported where a number is read, because only then its place in the model is known.
    """


def read_json(path: Path) -> Any:
    """The root value of a JSON file.

    Raises :class:`ModelError` when the file cannot be read or is not valid JSON (with line and column).
    """
    data = read_whole(path, "$")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        given = f"0x{data[error.start]:02X}"
        message = f"{path} is not UTF-8: byte {error.start}, in line {line}, is {given}."
        raise model_error(MODEL_JSON, "$", message, given=given, expected="UTF-8 text") from None
    return parse_json(text, str(path))


def parse_json(text: str, source: str) -> Any:
    """The root value of ``text``; ``source`` names the file in messages."""
    try:
        value = _decode(text, source)  # plain JSON needs no preprocessing
    except json.JSONDecodeError:
        text = _without_extensions(text)
        if not text.strip(_SPACE):
            message = f"{source} is empty."
            raise model_error(MODEL_JSON, "$", message, given="nothing", expected="a JSON object") from None
        try:
            value = _decode(text, source)
        except json.JSONDecodeError as error:
            raise _syntax_error(source, text, error) from None
    if _SURROGATE.search(text):
        _check_surrogates(value, source)
    return value


def _decode(text: str, source: str) -> Any:
    start = len(text) - len(text.lstrip(_SPACE))
    try:
        has_large_numbers = any(pattern.search(text) for pattern in _LARGE_NUMBERS)
        value, _ = _decoder(source, has_large_numbers).raw_decode(text, start)
    except RecursionError:
        raise _too_deep(text, source) from None
    if not _is_shallow(value):
        raise _too_deep(text, source)
    return value


def _decoder(source: str, has_large_numbers: bool) -> json.JSONDecoder:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
            message = f"{source} has an object with two members named {quoted(twice)}."
            raise model_error(MODEL_JSON, "$", message, given="two", expected="one member of each name")
        return result

    return json.JSONDecoder(
        object_pairs_hook=members,
        parse_int=_integer if has_large_numbers else int,
        parse_float=_float if has_large_numbers else float,
        parse_constant=BadNumber,
    )


def _integer(text: str) -> int | float | BadNumber:
    """An integer beyond 64 bits becomes a floating-point number, as in DxDispatch."""
    if len(text) <= 20:
        value = int(text)
        if -(2**63) <= value < 2**64:
            return value
    return _float(text)


def _float(text: str) -> float | BadNumber:
    value = float(text)
    return BadNumber(text) if value in (float("inf"), -float("inf")) else value


def _masked(text: str) -> str:
    """The text, of equal length, without the escapes that hide a quote."""
    return text.replace(r"\\", "__").replace(r"\"", "__")


def _without_extensions(text: str) -> str:
    """Replaces comments and trailing commas by spaces, so that lines and columns stay the same."""
    text = _blanked(text, _STRING_OR_COMMENT)

    def is_trailing(comma: int) -> bool:
        before = comma - 1
        while before >= 0 and text[before] in _SPACE:
            before -= 1
        return before >= 0 and text[before] not in "[{,:"  # "[,]" is not a list with a trailing comma

    return _blanked(text, _STRING_OR_LAST_COMMA, is_trailing)


def _blanked(text: str, pattern: re.Pattern[str], is_meant: Callable[[int], bool] | None = None) -> str:
    """Replaces matches outside of strings by spaces; ``is_meant`` is called with the start of each match."""
    parts, done = [], 0
    for match in pattern.finditer(_masked(text)):
        start, end = match.span()
        if text[start] != '"' and (is_meant is None or is_meant(start)):
            parts += [text[done:start], re.sub(r"[^\n]+", lambda line: " " * len(line[0]), text[start:end])]
            done = end
    return "".join([*parts, text[done:]])


def _is_shallow(value: Any) -> bool:
    """A nesting limit well below Python's recursion limit."""
    boxes, kinds = [[value]], {dict, list}
    for _ in range(_MOST_DEPTH + 1):
        # A large model consists mostly of lists of numbers: their types are checked in C.
        boxes = [box for box in boxes if not kinds.isdisjoint(map(type, box))]
        inner = [each for box in boxes for each in box if type(each) in kinds]
        if not inner:
            return True
        boxes = [list(each.values()) if type(each) is dict else each for each in inner if each]
    return False


def _too_deep(text: str, source: str) -> ModelError:
    """The error for a text that :func:`_is_shallow` refuses, with the line where it becomes too deep."""
    depth, place = 0, 0
    for match in _STRING_OR_BRACKET.finditer(_masked(text)):
        depth += (match[0] in "[{") - (match[0] in "]}")
        place = match.start()
        if depth > _MOST_DEPTH:
            break
    line = text.count("\n", 0, place) + 1
    message = f"{source}, line {line}: values are nested more than {_MOST_DEPTH} deep."
    return model_error(MODEL_JSON, "$", message, given=depth, expected=f"at most {_MOST_DEPTH} levels")


def _syntax_error(source: str, text: str, error: json.JSONDecodeError) -> ModelError:
    reason = error.msg[:1].lower() + error.msg[1:]
    snippet = " ".join(text[error.pos : error.pos + 40].split())
    return model_error(
        MODEL_JSON,
        "$",
        f"{source}, line {error.lineno}, column {error.colno} is not valid JSON: {reason}.",
        given=f"'{snippet}'" if snippet else "the end of the file",
        expected="JSON",
    )


def _check_surrogates(value: object, source: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        message = f"{source} has a string with half a surrogate pair."
        raise model_error(MODEL_JSON, "$", message, expected="complete \\uD8xx\\uDCxx pairs") from None
