"""Each row of the table of oracles, over descs that are drawn as in a campaign: those that compute a case
agree with the reference, and a reference that is wrong is told."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from dmlemu.campaign.oracles import (
    ROWS,
    WITHOUT,
    Verdict,
    against,
    installed,
    judge,
    spell_verdicts,
    table_rows,
)
from dmlemu.campaign.subjects import Request, open_subject, plan
from dmlemu.dml.declared.definition import emulated
from dmlemu.testing.conformance import small_inputs

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("scipy")

FEW, MANY = 8, 200
SELECTIVE = sorted(name for name, row in ROWS.items() if row.passes)
"""Rows that pass over a part of their operator: what they take is most likely to be wrong."""


class Case(NamedTuple):
    desc: Any
    inputs: dict[str, Any]
    expected: dict[str, Any]
    verdicts: list[Verdict]


def cases(name: str, count: int) -> Iterator[Case]:
    """What a campaign draws, without running it."""
    subject: Any = open_subject(plan(Request(f"operators:{name}", layouts=count)))
    for index in range(count):
        drawn = subject._case(index)
        drawn.only_judged = True
        if subject._draw(drawn, index):
            inputs = small_inputs(drawn.desc, drawn.values)
            yield Case(drawn.desc, inputs, drawn.desc.reference(inputs), drawn.verdicts)


@cache
def able(name: str) -> list[str]:
    """The installed ones that have a function for it."""
    there = {each.name for each in installed()}
    (names,) = (names for operator, names in table_rows() if operator == name)
    return [each for each in names if each in there]


def skip_without_oracle(name: str) -> None:
    if not able(name):
        (names,) = (names for operator, names in table_rows() if operator == name)
        pytest.skip(f"{name} is judged by {' and '.join(names)}, which is not installed")


def assert_agreed(name: str, count: int) -> int:
    """Returns how many were judged."""
    judged = 0
    for case in cases(name, count):
        judged += bool(case.verdicts)
        wrong = [each for each in case.verdicts if not each.agrees]
        assert wrong == [], f"{spell_verdicts(case.verdicts)}\n{case.desc!r}"
    return judged


@pytest.mark.parametrize("name", SELECTIVE)
def test_oracles_agree_with_the_reference(name: str) -> None:
    skip_without_oracle(name)
    assert_agreed(name, FEW)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(ROWS))
def test_oracles_agree_in_hundreds_of_cases(name: str) -> None:
    skip_without_oracle(name)
    assert assert_agreed(name, MANY) >= 3


@pytest.mark.parametrize("name", SELECTIVE)
def test_a_wrong_reference_is_told(name: str) -> None:
    """One element of an output is another; if several judge it, the reference is outvoted."""
    skip_without_oracle(name)
    case = next((case for case in cases(name, MANY) if case.verdicts), None)
    assert case is not None, "no case was judged"
    output = next(iter(case.verdicts[0].results)).partition("[")[0]
    wrong = {**case.expected, output: planted(case.expected[output])}
    found = judge(case.desc, case.inputs, wrong, installed())

    assert {each.oracle for each in found} == {each.oracle for each in case.verdicts}
    judges = [each for each in found if output in {key.partition("[")[0] for key in each.results}]
    assert judges and not any(each.agrees for each in judges)
    assert len(judges) == 1 or len(against(found)) == 2


def planted(value: Any) -> Any:
    """With another first element."""
    if isinstance(value, list):
        return [planted(value[0]), *value[1:]]
    found = np.array(value)
    first = found.flat[0]
    found.flat[0] = first + 1 if found.dtype.kind == "f" and np.isfinite(first) else 1 - min(first, 1)
    return found


def test_each_operator_has_a_row_or_a_reason() -> None:
    names = {each.name for each in emulated()}

    assert set(ROWS) | set(WITHOUT) == names and not set(ROWS) & set(WITHOUT)
    assert all(text.strip() for text in WITHOUT.values())
