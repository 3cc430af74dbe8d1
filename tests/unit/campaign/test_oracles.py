"""Campaigns over operators, judged by other implementations besides the NumPy references."""

from __future__ import annotations

import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu import campaign
from dmlemu.campaign.database import Database
from dmlemu.campaign.model import JUDGES, Dissent, Outcome, Piece, PieceResult, identity
from dmlemu.campaign.oracles import PACKAGES, Oracle, against, installed, judge, spell_verdicts, table_rows
from dmlemu.campaign.oracles.rows import ROWS, Node, Row
from dmlemu.campaign.subjects import Request, open_subject, plan, plan_again
from dmlemu.campaign.worker import Refused, close, run_piece
from dmlemu.dml import OperatorType
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated, example_of
from dmlemu.frontends.usage import UsageError
from dmlemu.testing.conformance import small_inputs

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("scipy")


@pytest.fixture
def here(tmp_path: Path) -> dict[str, Any]:
    return {"database": tmp_path / "campaign.db", "workers": 0, "tell": lambda text: None}


def plain_example(name: str) -> Any:
    """The operator alone: without what is fused or scaled."""
    desc: Any = example_of(declared()[OperatorType[name]])
    names = {each.name for each in fields(desc)} & {"fused_activation", "scale_bias"}
    return replace(desc, **dict.fromkeys(names))


def verdicts_on(name: str) -> list[Any]:
    """With the first inputs that an oracle takes: some indices are outside, some lengths 0."""
    desc = plain_example(name)
    for seed in range(1, 12):
        inputs = small_inputs(desc, seed)
        found = judge(desc, inputs, desc.reference(inputs), installed())
        if found:
            return found
    return []


# Only PyTorch, or nothing, has what their examples ask: several axes, factors for each element.  Of what is
# drawn in test_oracle_rows.py some is judged.
WITHOUT = {
    "ACTIVATION_HARDMAX1",
    "ARGMAX",
    "ARGMIN",
    "AVERAGE_POOLING_GRAD",
    "BATCH_NORMALIZATION",
    "CONVOLUTION_INTEGER",
    "DEQUANTIZE",
    "ELEMENT_WISE_DEQUANTIZE_LINEAR",
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
    "ELEMENT_WISE_QUANTIZE_LINEAR",
    "ELEMENT_WISE_ROUND",
    "MATRIX_MULTIPLY_INTEGER",
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
    "QUANTIZE",
    "QUANTIZED_LINEAR_AVERAGE_POOLING",
    "QUANTIZED_LINEAR_CONVOLUTION",
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
    "SPACE_TO_DEPTH1",
}


@pytest.mark.parametrize("name", sorted(set(ROWS) - WITHOUT))
def test_no_reference_is_outvoted_on_its_example(name: str) -> None:
    found = verdicts_on(name)
    there = {each.name for each in installed()}
    able = {each for operator, names in table_rows() for each in names if operator == name} & there

    assert found or not able, name
    assert against(found) == [], spell_verdicts(found)


def test_the_table_is_of_operators() -> None:
    assert {name for name, _ in table_rows()} <= {each.name for each in emulated()}
    assert all(names for _, names in table_rows())


def test_whole_numbers_are_equal_or_differ() -> None:
    desc = plain_example("ELEMENT_WISE_BIT_AND")
    inputs = small_inputs(desc, 1)
    expected = desc.reference(inputs)
    wrong = {"output_tensor": expected["output_tensor"] ^ 1}

    assert all(each.agrees for each in judge(desc, inputs, expected, installed()))
    found = judge(desc, inputs, wrong, installed())
    assert len(against(found)) == 2 and "ELEMENT" not in spell_verdicts(found)
    assert "onnx.reference" in spell_verdicts(found)


def test_one_oracle_alone_changes_nothing(here: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference, which says what the documents say, decides; the dissent is kept."""
    right = ROWS["ELEMENT_WISE_ERF"]
    monkeypatch.setitem(ROWS, "ELEMENT_WISE_ERF", right._replace(scipy=lambda s, o, x: x + 7))
    found = campaign.run("operators:ELEMENT_WISE_ERF", layouts=6, **here)

    assert found and found.causes == []
    by_name = {each.oracle.partition(" ")[0]: each for each in found.judged}
    assert by_name["scipy"].cases == by_name["scipy"].dissents > 0
    first = by_name["scipy"].first
    assert first is not None and "in the reference" in first.message
    assert by_name["onnxruntime"].cases > 0 and by_name["onnxruntime"].dissents == 0


def test_two_that_agree_outvote_the_reference(
    here: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ROWS, "ELEMENT_WISE_ABS", Row(lambda o, x: Node("Identity", [x - 5])))
    found = campaign.run(
        "operators:ELEMENT_WISE_ABS", layouts=4, oracles=["onnxruntime", "onnx.reference"], **here
    )

    (cause, *_) = found.causes
    assert cause.smallest.rule == "oracles of output_tensor"
    assert "The reference is outvoted: onnxruntime" in cause.smallest.message


def test_a_wrong_kernel_is_shown_with_what_oracles_say(
    here: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the device was wrong: they agree with the reference."""
    import dmlemu

    evaluate = dmlemu.evaluate

    def wrong(desc: Any, **more: Any) -> Any:
        return {name: -1 - value for name, value in evaluate(desc, **more).items()}

    monkeypatch.setattr(dmlemu, "evaluate", wrong)
    found = campaign.run("operators:ACTIVATION_RELU", layouts=2, oracles=["onnxruntime"], **here)

    assert found.causes[0].smallest.rule == "reference of output_tensor"
    assert "As the reference: onnxruntime " in found.causes[0].smallest.message


def test_the_database_says_which_oracles_judged_a_case(here: dict[str, Any]) -> None:
    oracles = ["onnxruntime", "scipy"]
    campaign.run("operators:ACTIVATION_SIGMOID", layouts=5, oracles=oracles, **here)

    with sqlite3.connect(here["database"]) as database:
        rows = database.execute("SELECT judges FROM pieces ORDER BY first").fetchall()
    digits = "".join(text for (text,) in rows)
    assert len(digits) == 5 and set(digits) <= set("0123") and "2" in {*digits, "2" if "3" in digits else ""}
    spec = plan(Request("operators:ACTIVATION_SIGMOID", layouts=5, oracles=("onnxruntime", "scipy")))
    subject = open_subject(spec)
    for index, digit in enumerate(digits):
        assert ("scipy" in subject.describe(index)) == bool(JUDGES.index(digit) & 2)


def test_without_oracles_nothing_is_judged(here: dict[str, Any]) -> None:
    found = campaign.run("operators:ACTIVATION_RELU", layouts=2, oracles=[], **here)

    assert found and found.judged == []


def test_a_worker_without_the_same_oracles_is_refused() -> None:
    spec = plan(Request("operators:ACTIVATION_RELU", layouts=2))
    other = replace(spec, oracles=("onnxruntime 0.1",))

    with pytest.raises(UsageError, match=r"judged by onnxruntime 0\.1, which is not installed \(there: "):
        plan_again(other)
    try:
        with pytest.raises(Refused, match=r"is refused: .* onnxruntime 0\.1"):
            run_piece(other, identity(), Piece(0, 1), limit=60)
    finally:
        close()


def test_a_digit_has_a_bit_for_each_oracle(tmp_path: Path) -> None:
    oracles = tuple(f"{name} 1" for name in PACKAGES)
    spec = replace(plan(Request("operators:GEMM", layouts=4)), oracles=oracles)
    result = PieceResult(Piece(0, 2))
    result.add(Outcome(judges=2 ** len(oracles) - 1))
    result.add(Outcome(judges=1))
    with Database(tmp_path / "campaign.db", spec, identity()) as database:
        database.add([result])

        assert [each.cases for each in database.judged()] == [2, *[1] * (len(oracles) - 1)]


def test_dissents_are_counted_once(tmp_path: Path) -> None:
    spec = replace(plan(Request("operators:GEMM", layouts=4)), oracles=("a 1", "b 1"))
    result = PieceResult(Piece(0, 2))
    result.add(Outcome(judges=3, dissents=[Dissent(0, "b 1", "differs")]))
    result.add(Outcome(judges=2))
    with Database(tmp_path / "campaign.db", spec, identity()) as database:
        database.add([result])
        database.add([result])

        assert [(each.oracle, each.cases, each.dissents) for each in database.judged()] == [
            ("a 1", 1, 0),
            ("b 1", 2, 1),
        ]


# --- chaos ---


def test_operators_under_chaos(here: dict[str, Any]) -> None:
    """Each desc with each seed; where indices repeat, the order of updates is left open."""
    found = campaign.run("operators:*SCATTER*", layouts=3, seeds=4, **here)

    assert found and found.total == 2 * 3 * 4
    spec = plan(Request("operators:*SCATTER*", layouts=3, seeds=4))
    subject: Any = open_subject(spec)
    cases = [subject._case(index) for index in range(spec.total)]
    assert {str(each.chaos.seed) for each in cases} == {"0", "1", "2", "3"}
    assert len({(each.operator, each.values) for each in cases}) == 2 * 3
    assert "chaos(" in subject.describe(0)


def test_what_fails_under_chaos_alone_is_repeated_by_its_program(
    here: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dmlemu
    from dmlemu.campaign.operators import Operators
    from dmlemu.reporting import defaults

    evaluate = dmlemu.evaluate

    def wrong(desc: Any, **more: Any) -> Any:
        found = evaluate(desc, **more)
        return (
            {name: value + np.ones((), value.dtype) for name, value in found.items()}
            if defaults.policy
            else found
        )

    monkeypatch.setattr(dmlemu, "evaluate", wrong)
    found = campaign.run("operators:ACTIVATION_RELU", layouts=1, seeds=2, oracles=[], **here)
    assert [each.smallest.rule for each in found.causes] == ["reference of output_tensor under chaos"]

    subject = Operators(found.spec)
    reduced = subject.reduce(found.causes[0].smallest, tmp_path / "relu")
    (program,) = reduced.files
    monkeypatch.setattr(defaults, "policy", None)  # what the program sets is undone
    with pytest.raises(AssertionError, match="elements of output_tensor differ"):
        exec(compile(program.read_text(), str(program), "exec"), {})


def test_an_oracle_has_a_name_and_a_version() -> None:
    assert str(Oracle("scipy", "1.2")) == "scipy 1.2"
    assert {each.name for each in installed()} >= {"onnxruntime", "onnx.reference", "scipy"}
