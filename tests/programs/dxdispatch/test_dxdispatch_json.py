"""JSON text: what DxDispatch's parser accepts is accepted, everything else is refused with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dmlemu.frontends.dxdispatch import ModelError
from dmlemu.frontends.dxdispatch.json_text import BadNumber, parse_json, read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, 2,], }', {"a": [1, 2]}),
        ('// line\n{"a": /* block\n */ 1} ', {"a": 1}),
        ('{"a": [1, // last\n 2, /* gone */ ] /* , */ , }', {"a": [1, 2]}),
        ('{"a": "// no comment /* , ] */", "b": ",]"}', {"a": "// no comment /* , ] */", "b": ",]"}),
        (r'{"a": "quote \" // still inside ,]"}', {"a": 'quote " // still inside ,]'}),
        ("[1] trailing text is ignored", [1]),
        ("[[1,],]", [[1]]),
        ('"\\ud83d\\ude00"', "\U0001f600"),
        ("18446744073709551615", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_what_dxdispatch_accepts(text: str, value: object) -> None:
    assert parse_json(text, "m.json") == value


def test_integers_beyond_64_bits_are_floating_point() -> None:
    value = parse_json("[18446744073709551616, -9223372036854775809]", "m.json")
    assert value == [2.0**64, -(2.0**63)]
    assert [type(number) for number in value] == [float, float]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_numbers_that_json_lacks_are_kept_for_a_message_with_their_path(text: str) -> None:
    [value] = parse_json(f"[{text}]", "m.json")
    assert isinstance(value, BadNumber)
    assert value == text


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("{", 1, 2),
        ('{\n  "a": 1,\n  "b" 2\n}', 3, 7),
        ("[,]", 1, 2),
        ("[1,,]", 1, 4),
        ("{,}", 1, 2),
        ('{"a": }', 1, 7),
        ('/* one\n two */ {"a": x}', 2, 15),
        ('["unterminated // ,]', 1, 2),
        ("[1 2]", 1, 4),
        ("[01]", 1, 3),
        ("['single']", 1, 2),
        ('["control \x01"]', 1, 11),
    ],
)
def test_syntax_errors_name_line_and_column(text: str, line: int, column: int) -> None:
    with pytest.raises(ModelError, match=rf"m\.json, line {line}, column {column} is not valid JSON"):
        parse_json(text, "m.json")


@pytest.mark.parametrize("text", ["", " \n\t", "/* only a comment */", "// never closed /* \n"])
def test_empty(text: str) -> None:
    with pytest.raises(ModelError, match=r"m\.json is empty"):
        parse_json(text, "m.json")


@pytest.mark.parametrize("depth", [101, 1000, 200_000])
def test_deep_nesting(depth: int) -> None:
    with pytest.raises(ModelError, match="nested more than 100 deep"):
        parse_json("[" * depth + "]" * depth, "m.json")


def test_nesting_that_is_allowed() -> None:
    value = parse_json("[" * 100 + "]" * 100 + "[" * 1000, "m.json")
    assert isinstance(value, list)


def test_duplicate_members() -> None:
    with pytest.raises(ModelError, match="two members named 'a'"):
        parse_json('{"x": {"a": 1, "b": 2, "a": 3}}', "m.json")


def test_half_a_surrogate_pair() -> None:
    with pytest.raises(ModelError, match="half a surrogate pair"):
        parse_json('{"\\ud800": 1}', "m.json")


@pytest.mark.parametrize(
    "text", ['"' * 100_001, '\\"' * 100_000, "/*" * 100_000, ", " * 100_000, "//" * 99_999]
)
def test_hostile_text_takes_linear_time(text: str) -> None:
    with pytest.raises(ModelError):
        parse_json("[" + text, "m.json")


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b'{\n"a": "\xff"}')
    with pytest.raises(ModelError, match=r"is not UTF-8: byte 8, in line 2, is 0xFF"):
        read_json(path)


def test_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(b"\xef\xbb\xbf[1]")
    assert read_json(path) == [1]


@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.json", "cannot be read"), (".", "is a directory"), ("\0", "cannot be read")],
)
def test_unreadable(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        read_json(tmp_path / name)


# --- large and hostile texts ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[18446744073709551615, 18446744073709551616]", [2**64 - 1, float(2**64)]),
        ("[-9223372036854775808, -9223372036854775809]", [-(2**63), -float(2**63 + 1)]),
        ("[1e308, 123456789012345678e100]", [1e308, 123456789012345678e100]),
        ("[" + "1" * 5000 + "]", [BadNumber("1" * 5000)]),
        ("[1e999, -1E+0999]", [BadNumber("1e999"), BadNumber("-1E+0999")]),
        ("[0.1234567890123456789]", [0.1234567890123456789]),
        (r"""{"a\\": 1, // "b": 2
            "c\"//": [1, /* ] */ 2,],}""", {"a\\": 1, 'c"//': [1, 2]}),
    ],
)  # fmt: skip
def test_numbers_and_extensions_among_each_other(text: str, value: Any) -> None:
    read = parse_json(text, "model.json")
    assert read == value
    assert repr(read) == repr(value)


@pytest.mark.parametrize(
    "text", ["[" * 101 + "]" * 101, '{"a":' * 100_000, "// x\n" + "[" * 100_000, '[{"a":' * 51]
)
def test_nesting_is_refused_at_any_depth(text: str) -> None:
    with pytest.raises(
        ModelError, match=r"line [12]: values are nested more than 100 deep|is not valid JSON"
    ):
        parse_json(text, "model.json")


def test_a_hundred_levels_are_read() -> None:
    assert parse_json("[" * 100 + "]" * 100 + "[" * 9, "model.json") is not None
    assert parse_json("[[]" + ", []" * 1000 + "]", "model.json") == [[]] * 1001
