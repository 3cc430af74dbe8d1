"""JSON as DxDispatch reads it: comments and trailing commas are welcome, bare NaN and Infinity are not.

DxDispatch's parser also stops after the root value, so whatever follows it is ignored.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from .errors import ModelError, model_error
from .files import read_file

__all__ = ["BadNumber", "parse_json", "read_json"]

# Each alternative matches to the end of the text when it is not closed, so that scanning stays linear.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"?|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_STRING_OR_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"?|,(?=[ \t\r\n]*[\]}])', re.DOTALL)
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile(r"\\u[dD][89abAB]")
_SPACE = " \t\r\n"
_MOST_DEPTH = 100


class BadNumber(str):
    """A number that JSON cannot hold (NaN, Infinity, 1e999), as the file wrote it.

    It is reported where a number is read, because only there its place in the model is known.
    """


def read_json(path: Path) -> Any:
    """The root value of a JSON file.

    Raises :class:`ModelError` when the file cannot be read or is no JSON (with line and column).
    """
    data = read_file(path, "$")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        given = f"0x{data[error.start]:02X}"
        message = f"{path} is not UTF-8: byte {error.start}, in line {line}, is {given}."
        raise model_error("MODEL_JSON", "$", message, given=given, expected="UTF-8 text") from None
    return parse_json(text, str(path))


def parse_json(text: str, source: str) -> Any:
    """The root value of ``text``; ``source`` names the file in messages."""
    text = _without_extensions(text)
    start = len(text) - len(text.lstrip(_SPACE))
    if start == len(text):
        raise model_error("MODEL_JSON", "$", f"{source} is empty.", given="nothing", expected="a JSON object")
    _check_depth(text, source)
    try:
        value, _ = _decoder(source).raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise _syntax_error(source, text, error) from None
    if _SURROGATE.search(text):
        _check_surrogates(value, source)
    return value


def _decoder(source: str) -> json.JSONDecoder:
    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
            message = f"{source} has an object with two members named '{twice:.60}'."
            raise model_error("MODEL_JSON", "$", message, given="two", expected="one member of each name")
        return result

    return json.JSONDecoder(
        object_pairs_hook=members, parse_int=_integer, parse_float=_float, parse_constant=BadNumber
    )


def _integer(text: str) -> int | float | BadNumber:
    """What 64 bits cannot hold is a floating-point number, as in DxDispatch."""
    if len(text) <= 20:
        value = int(text)
        if -(2**63) <= value < 2**64:
            return value
    return _float(text)


def _float(text: str) -> float | BadNumber:
    value = float(text)
    return BadNumber(text) if value in (float("inf"), -float("inf")) else value


def _without_extensions(text: str) -> str:
    """Comments and trailing commas become spaces, so that lines and columns stay."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found.startswith('"') else re.sub(r"[^\n]", " ", found)

    text = _STRING_OR_COMMENT.sub(blank, text)

    def comma(match: re.Match[str]) -> str:
        before = match.start() - 1
        while before >= 0 and text[before] in _SPACE:
            before -= 1
        # "[,]" is no list with a trailing comma
        stays = match.group() != "," or before < 0 or text[before] in "[{,:"
        return match.group() if stays else " "

    return _STRING_OR_LAST_COMMA.sub(comma, text)


def _check_depth(text: str, source: str) -> None:
    """A limit of our own, far from where Python's recursion ends."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        found = match.group()
        depth += (found in "[{") - (found in "]}")
        if depth > _MOST_DEPTH:
            line = text.count("\n", 0, match.start()) + 1
            message = f"{source}, line {line}: values are nested more than {_MOST_DEPTH} deep."
            expected = f"at most {_MOST_DEPTH} levels"
            raise model_error("MODEL_JSON", "$", message, given=depth, expected=expected)
        if depth <= 0:
            return  # what follows the root is not read


def _syntax_error(source: str, text: str, error: json.JSONDecodeError) -> ModelError:
    reason = error.msg[:1].lower() + error.msg[1:]
    snippet = " ".join(text[error.pos : error.pos + 40].split())
    return model_error(
        "MODEL_JSON",
        "$",
        f"{source}, line {error.lineno}, column {error.colno} is no JSON: {reason}.",
        given=f"'{snippet}'" if snippet else "the end of the file",
        expected="JSON",
    )


def _check_surrogates(value: object, source: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        message = f"{source} has a string with half a surrogate pair."
        raise model_error("MODEL_JSON", "$", message, expected="complete \\uD8xx\\uDCxx pairs") from None
