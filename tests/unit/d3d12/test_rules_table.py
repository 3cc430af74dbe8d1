"""docs/reference/rules-d3d12.md lists every rule once, with tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

from rules_table import known_tests, rows

HERE = Path(__file__).parent
PAGE = "rules-d3d12.md"
SOURCE = HERE.parents[2] / "runtime" / "dmlemu" / "d3d12"

COUNTS = {
    "DEV": 11, "HP": 10, "RB": 12, "PL": 5, "RS": 9, "MP": 8, "ST": 19, "DH": 11, "VW": 9, "CL": 13,
    "Q": 5, "CM": 5, "QY": 5, "FN": 8, "RM": 3, "RD": 2, "OB": 3, "VA": 1, "AI": 1, "TX": 1, "CF": 1, "EB": 1,
    "AL": 1, "OR": 1,
}  # fmt: skip
IDS = {f"{family}{i}" for family, count in COUNTS.items() for i in range(1, count + 1)}


def test_every_rule_stands_there_once() -> None:
    ids = [row[0] for row in rows(PAGE)]
    assert len(ids) == len(set(ids))
    assert set(ids) == IDS


def test_every_row_names_tests_that_exist_or_says_why_not() -> None:
    known = known_tests(HERE)
    for id, _, cell in rows(PAGE):
        names = re.findall(r"`(test_\w+)`", cell)
        assert names or cell.startswith("none"), id
        for name in names:
            assert any(test.startswith(name) for test in known), (id, name)
        if not cell.startswith("none"):
            assert f"test_{id}_" in names, (id, "has no test of its own")


def test_every_test_of_a_rule_is_of_a_rule_in_the_table() -> None:
    for test in known_tests(HERE):
        match = re.match(r"test_([A-Z]+\d+)_", test)
        assert match is None or match[1] in IDS, test


def test_every_rule_that_a_report_can_name_is_in_the_table() -> None:
    families = "|".join(COUNTS)
    pattern = re.compile(rf"""["']((?:{families})\d+)["':]""")
    for path in SOURCE.rglob("*.py"):
        for id in pattern.findall(path.read_text()):
            assert id in IDS, (path.name, id)
