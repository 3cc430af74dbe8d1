"""docs/reference/rules-dml.md lists every rule once, with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from rules_table import known_tests, rows

HERE = Path(__file__).parent
PAGE = "rules-dml.md"

IDS = (
    {f"DD{i}" for i in range(1, 9)}
    | {f"TN{i}" for i in range(1, 12)}
    | {f"BT{i}" for i in range(1, 17)}
    | {f"GR{i}" for i in range(1, 10)}
    | {"2.6", "2.7", "2.8", "2.10", "2.11"}
)


def test_every_rule_stands_there_once() -> None:
    ids = [row[0] for row in rows(PAGE)]
    assert len(ids) == len(set(ids))
    assert set(ids) == IDS


def test_every_row_names_tests_that_exist() -> None:
    known = known_tests(HERE)
    for id, _, cell in rows(PAGE):
        names = re.findall(r"`(test_\w+)`", cell)
        assert names, id
        for name in names:
            assert any(test.startswith(name) for test in known), (id, name)


def test_every_test_of_a_rule_is_of_a_rule_in_the_table() -> None:
    named = [name for *_, cell in rows(PAGE) for name in re.findall(r"`(test_\w+)`", cell)]
    for test in known_tests(HERE):
        if re.match(r"test_([A-Z]{2}\d+|\d+_\d+)_", test):
            assert any(test.startswith(name) for name in named), test
