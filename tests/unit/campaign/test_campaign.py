"""Campaigns in one process and on this machine: cases, failures, what goes on after an end."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from dmlemu import campaign
from dmlemu.campaign.campaign import Result
from dmlemu.campaign.database import Cause
from dmlemu.campaign.model import Failure, Piece, PieceResult, Spec, identity
from dmlemu.campaign.report import summary, write_reports
from dmlemu.campaign.schedule import Schedule
from dmlemu.campaign.subjects import Reduced, Request, Unusable, plan
from dmlemu.campaign.worker import Refused, close, run_piece
from dmlemu.cli import main
from dmlemu.frontends.usage import UsageError

PROGRAMS = Path(__file__).with_name("programs.py")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    return Path(shutil.copy(PROGRAMS, tmp_path))


@pytest.fixture
def here(tmp_path: Path) -> dict[str, Any]:
    """Options of a campaign in this process."""
    return {"database": tmp_path / "campaign.db", "workers": 0, "tell": lambda text: None}


def causes(found: campaign.Result) -> list[tuple[str, str, str]]:
    return [each.smallest.cause for each in found.causes]


# --- what is found ---


def test_a_right_test_of_layouts_passes(programs: Path, here: dict[str, Any]) -> None:
    found = campaign.run(f"{programs}::test_right", layouts=30, **here)

    assert found and (found.done, found.total, found.causes) == (30, 30, [])


def test_a_wrong_test_of_layouts_is_reduced_to_a_program(
    programs: Path, here: dict[str, Any], tmp_path: Path
) -> None:
    found = campaign.run(f"{programs}::test_wrong", layouts=30, reduce_to=tmp_path / "out", **here)

    assert not found
    assert causes(found)[0] == ("test_wrong, y", "LAYOUT_RESULT", "another number")
    (program,) = found.reduced[0].files
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "LayoutError" in done.stderr and "x=([1, 2]," in program.read_text()  # two elements are enough


def test_what_is_never_drawn_has_not_passed(
    programs: Path, here: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = campaign.run(f"{programs}::test_never_drawn", layouts=3, **here)

    assert not found and (found.done, found.undrawn, found.causes) == (3, 3, [])
    assert "3 of these cases were not drawn" in "\n".join(summary(found))
    write_reports(found, html=tmp_path / "page.html")
    assert "3 cases, which have neither passed nor failed" in (tmp_path / "page.html").read_text()
    options = ["--layouts", "3", "--workers", "0", "--database", str(here["database"])]
    assert main(["campaign", f"{programs}::test_never_drawn", *options]) == 1
    assert main(["campaign", f"{programs}::test_never_drawn", *options, "--case", "1"]) == 1
    assert "The case was not drawn" in capsys.readouterr().out


def test_results_in_sarif_have_lines(programs: Path, here: dict[str, Any], tmp_path: Path) -> None:
    """Of the test that is wrong; of the call that raises."""
    lines = programs.read_text().splitlines()
    for name, options, line in (
        ("test_wrong", {"layouts": 10}, '    kinds=["packed", "padded", "permuted"],'),
        ("exits_politely", {"seeds": 4}, "        raise SystemExit(5)"),
    ):
        found = campaign.run(f"{programs}::{name}", **options, **here)
        write_reports(found, sarif=tmp_path / "found.sarif")
        (log,) = json.loads((tmp_path / "found.sarif").read_text())["runs"]
        (place,) = log["results"][0]["locations"]
        assert place["physicalLocation"]["artifactLocation"]["uri"].endswith("programs.py")
        number = place["physicalLocation"]["region"]["startLine"]
        assert line in lines[number - 5 : number + 5], (name, number)


def test_a_missing_barrier_is_found_by_seeds(programs: Path, here: dict[str, Any]) -> None:
    assert campaign.run(f"{programs}::with_a_barrier", seeds=20, **here)
    found = campaign.run(f"{programs}::without_a_barrier", seeds=20, **here)

    assert causes(found) == [("without_a_barrier", "VAL_UNSTABLE", "raised")]
    assert 1 < found.causes[0].count < 20


def test_a_missing_barrier_in_a_model_is_found_by_seeds(
    programs: Path, here: dict[str, Any], tmp_path: Path
) -> None:
    """At strictness runtime: by what it computes, not by a check; the program that repeats it fails alone."""
    what, options = f"{programs}::a_model_without_a_barrier", {"strictness": ["runtime"], "seeds": 20}
    found = campaign.run(what, reduce_to=tmp_path / "out", **options, **here)

    assert causes(found) == [("a_model_without_a_barrier", "VAL_UNSTABLE", "raised")]
    assert 1 < found.causes[0].count < 20
    (program,) = found.reduced[0].files
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "under chaos mode 'order'" in done.stderr


def test_a_model_of_dxdispatch_waits_for_each_dispatch(here: dict[str, Any]) -> None:
    """So what it computes cannot depend on barriers; the check of strict devices misses them."""
    options = ["--post_dispatch_barriers", "none", "--dispatch_repeat", "2"]
    model = str(PROGRAMS.with_name("net.json"))

    assert campaign.run(model, seeds=5, strictness=["runtime"], arguments=options, **here)


def test_a_model_and_its_record_in_other_layouts(here: dict[str, Any], tmp_path: Path) -> None:
    model, record = PROGRAMS.with_name("net.json"), tmp_path / "net.dmlrec"
    command = [sys.executable, "-m", "dmlemu", "run", model, "--record", record]
    subprocess.run(command, check=True, capture_output=True, timeout=60)

    assert campaign.run(str(model), layouts=4, **here)
    assert campaign.run(str(model), seeds=3, **here)
    found = campaign.run(str(record), layouts=3, seeds=2, **here)
    assert found and found.total == 6


def test_a_model_without_barriers_fails_for_what_is_reported(here: dict[str, Any]) -> None:
    options = ["--post_dispatch_barriers", "none", "--dispatch_repeat", "2"]
    found = campaign.run(str(PROGRAMS.with_name("net.json")), seeds=2, arguments=options, **here)

    assert causes(found) == [("net.json", "HAZARD_WAW", "raised")]
    assert found.causes[0].count == 2


def test_operators_equal_their_references(here: dict[str, Any]) -> None:
    found = campaign.run("operators:ELEMENT_WISE_A*", layouts=2, **here)

    assert found and found.total == 20
    with sqlite3.connect(here["database"]) as database:
        operators = database.execute("SELECT count(DISTINCT operator) FROM coverage").fetchone()
    assert operators == (10,)


def test_a_function_is_compared_for_each_float(here: dict[str, Any]) -> None:
    found = campaign.run("float-math:exp", budget=1e-6, **here)  # nothing begins
    assert (found.done, found.total) == (0, 16384)

    from dmlemu.campaign.float_math import errors_of, functions

    for name in functions():
        for first in (0, 0x7F7FFFF0, 0x7FFFFFF0, 0xFF7FFFF0, 0xFFFFFFF0):
            assert errors_of(name, first, 32 if first < 0xFFFFFFF0 else 16).above == 0, (name, first)
    ones = errors_of("exp", 0x3F800000, 1 << 10)
    assert 0.3 < ones.worst < 2 and ones.above == 0
    assert errors_of("sqrt", 0, 1 << 10).worst <= 0.5
    assert errors_of("abs", 0xFFFFFF00, 256) == (0, 0xFFFFFF00, 0)  # NaNs


@pytest.mark.parametrize(
    ("ours", "exact", "error"),
    [
        (0.0, 0.0, 0),
        (0.0, -0.0, np.inf),
        (-0.0, 1e-60, np.inf),
        (2.0**-149, 1e-60, 1),
        (np.inf, 1e39, 0),
        (-np.inf, 1e39, np.inf),
        (3.4e38, 1e39, np.inf),
        (np.nan, 1, np.inf),
        (1, np.nan, np.inf),
        (-np.nan, np.nan, 0),
        (1 + 2.0**-23, 1, 1),
    ],
)
def test_errors_are_units_of_the_exact_result(ours: float, exact: float, error: float) -> None:
    from dmlemu.campaign import float_math

    with np.errstate(over="ignore", invalid="ignore"):
        found = float_math._units(np.array([ours], np.float32), np.array([float(exact)]))
    assert found == pytest.approx(error, abs=1e-9)


def test_the_same_case_is_drawn_everywhere(programs: Path) -> None:
    spec = plan(Request("operators", layouts=3))
    other = plan(Request("operators", layouts=3, seed=1))

    assert spec.random(7) == plan(Request("operators", layouts=3)).random(7)
    assert spec.random(7) != other.random(7) and spec.key != other.key


# --- where it goes on ---


def test_the_same_call_goes_on_where_it_stood(programs: Path, here: dict[str, Any], tmp_path: Path) -> None:
    def stop_at_10(state: campaign.State) -> None:
        if state.done >= 10:
            raise KeyboardInterrupt

    what = f"{programs}::test_wrong"
    first = campaign.run(what, layouts=40, progress=stop_at_10, piece=0.01, **here)
    assert first.is_interrupted and 10 <= first.done < 40
    again = campaign.run(what, layouts=40, **here)
    assert again.done == 40 and not again.is_interrupted

    alone = campaign.run(what, layouts=40, **{**here, "database": tmp_path / "alone.db"})
    assert again.failures == alone.failures != []
    with sqlite3.connect(here["database"]) as database:
        ranges = [Piece(*row) for row in database.execute("SELECT first, count FROM pieces ORDER BY first")]
    assert ranges[0].first == 0 and ranges[-1].end == 40
    assert all(a.end == b.first for a, b in pairwise(ranges))


def test_another_input_is_another_campaign(programs: Path, here: dict[str, Any]) -> None:
    campaign.run(f"{programs}::test_right", layouts=3, **here)
    programs.write_text(programs.read_text() + "\n# changed\n")

    ran: list[int] = []
    campaign.run(f"{programs}::test_right", layouts=3, progress=lambda state: ran.append(state.done), **here)
    assert ran  # the cases run again


def test_two_campaigns_do_not_write_one_file(programs: Path, here: dict[str, Any]) -> None:
    def second(state: campaign.State) -> None:
        with pytest.raises(UsageError, match="another campaign is writing"):
            campaign.run(f"{programs}::test_right", layouts=2, **here)

    campaign.run(f"{programs}::test_right", layouts=2, progress=second, **here)


def test_a_file_of_something_else_stays(programs: Path, here: dict[str, Any]) -> None:
    here["database"].write_text("my notes")

    with pytest.raises(UsageError, match="is not the database of a campaign"):
        campaign.run(f"{programs}::test_right", layouts=2, **here)
    assert here["database"].read_text() == "my notes"


# --- faults ---


@pytest.mark.parametrize(
    ("name", "rule", "kind", "case"),
    [
        ("kills_its_process", "does not end the process", "crash", 3),
        ("hangs", "ends within its limit", "hang", 2),
    ],
)
def test_a_case_that_ends_its_process_is_a_failure(
    programs: Path, name: str, rule: str, kind: str, case: int
) -> None:
    spec = plan(Request(f"{programs}::{name}", seeds=5))
    try:
        result = run_piece(spec, identity(), Piece(0, 5), limit=5)
    finally:
        close()

    (failure,) = result.failures
    assert (failure.index, failure.rule, failure.kind) == (case, rule, kind)
    assert f"Case {case} of seed 0" in failure.message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fails_without_chaos", "fails_without_chaos fails without chaos, too: AssertionError"),
        ("makes_no_device", "makes_no_device makes no device that chaos could change"),
        ("exits_without_chaos", "3 times the process ended with status 7 before the first case"),
        (
            "counts_its_runs",
            r"counts_its_runs itself is not deterministic: without chaos the second run returns "
            r"something else \(2, before 1\)",
        ),
        ("hangs_without_chaos", "does not come to its first case within 3 seconds"),
    ],
)
def test_what_fails_without_chaos_is_refused(programs: Path, name: str, message: str) -> None:
    spec = plan(Request(f"{programs}::{name}", seeds=5))
    try:
        with pytest.raises(Unusable, match=message):
            run_piece(spec, identity(), Piece(0, 5), limit=3)
    finally:
        close()


def test_a_refusal_is_of_the_whole_campaign(programs: Path, here: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="fails without chaos, too: AssertionError"):
        campaign.run(f"{programs}::fails_without_chaos", seeds=5, **here)


def test_a_case_that_exits_is_a_failure(programs: Path, here: dict[str, Any]) -> None:
    assert causes(campaign.run(f"{programs}::exits_politely", seeds=5, **here)) == [
        ("exits_politely", "SystemExit", "raised")
    ]
    spec = plan(Request(f"{programs}::exits", seeds=5))
    try:
        (failure,) = run_piece(spec, identity(), Piece(0, 5), limit=30).failures
    finally:
        close()
    assert failure.index == 3 and "3 times the process ended with status 0" in failure.message


def test_a_case_that_forks_runs_once(programs: Path, here: dict[str, Any]) -> None:
    found = campaign.run(f"{programs}::forks", seeds=4, **here)

    assert found and (found.done, found.total) == (4, 4)


def test_a_process_that_ends_once_loses_nothing(programs: Path) -> None:
    spec = plan(Request(f"{programs}::kills_its_process_once", seeds=5))
    try:
        result = run_piece(spec, identity(), Piece(0, 5), limit=60)
    finally:
        close()

    assert programs.with_suffix(".count").exists() and result.failures == []


def test_workers_of_another_build_are_refused(programs: Path) -> None:
    spec = plan(Request(f"{programs}::test_right", layouts=2))
    other = identity()._replace(build="0123456789ab")

    with pytest.raises(Refused, match=r"is refused: it has dmlemu .*expected .*0123456789ab"):
        run_piece(spec, other, Piece(0, 1), limit=5)


def test_workers_with_another_input_are_refused(programs: Path) -> None:
    spec = plan(Request(f"{programs}::test_right", layouts=2))
    programs.write_text(programs.read_text() + "\n# changed\n")
    try:
        with pytest.raises(Refused, match="has other contents here"):
            run_piece(spec, identity(), Piece(0, 1), limit=5)
    finally:
        close()


@pytest.mark.parametrize(
    ("what", "options", "message"),
    [
        ("nothing", {}, "is nothing that a campaign can be about"),
        ("operators:GEM", {}, "did you mean operators:GEMM"),
        ("float-math:exp", {"seeds": 3}, "--seeds is not for this kind of subject"),
        ("operators", {"oracles": ["spscipy"]}, "--oracles: 'spscipy' is no oracle; there are onnxruntime"),
        ("float-math:exp", {"oracles": []}, "--oracles is not for this kind of subject"),
        ("float-math:expp", {}, "did you mean float-math:exp"),
        ("net.onnx", {}, "a campaign takes no ONNX model; record it"),
        ("missing.json", {"layouts": 3}, "No such file"),
        ("operators", {"layouts": 0}, "--layouts is 0"),
        ("operators", {"isa": "mmx"}, "mmx is no instruction set"),
        (f"{PROGRAMS}::test_with_a_fixture", {}, "takes tmp_path: a campaign calls the function itself"),
        (f"{PROGRAMS}::test_nothing", {}, "has no function test_nothing"),
        (f"{PROGRAMS}::test_right", {"seeds": 3}, "is a test of layouts"),
    ],
)
def test_what_cannot_be_tried_is_said(
    here: dict[str, Any], what: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        campaign.run(what, **options, **here)
    assert not here["database"].exists()


# --- the schedule ---


def test_configurations_take_turns_and_pieces_grow() -> None:
    spec = Spec(
        "operators", "operators", "", cases=1000, configurations=plan(Request("operators")).configurations * 2
    )
    schedule = Schedule(spec, [Piece(0, 10), Piece(500, 100)])
    assert schedule.left == 2000 - 110

    first, second = schedule.take(), schedule.take()
    assert first == Piece(1000, 1) and second == Piece(1001, 1)  # the other configuration has nothing yet
    assert first is not None
    schedule.done(PieceResult(first, seconds=0.001))
    assert schedule.take() == Piece(1002, 8)


def test_pieces_cover_what_is_open_once() -> None:
    spec = Spec("operators", "operators", "", cases=100)
    schedule = Schedule(spec, [Piece(10, 5), Piece(40, 60)])
    taken = list(iter(schedule.take, None))

    numbers = [index for each in taken for index in range(each.first, each.end)]
    assert sorted(numbers) == [*range(10), *range(15, 40)]
    schedule.give_back(taken[3])
    assert schedule.take() == taken[3]


def test_failures_are_grouped_by_cause(tmp_path: Path) -> None:
    from dmlemu.campaign.database import Database

    spec = Spec("operators", "operators", "", cases=100)
    some = [Failure(index, "GEMM", "reference", "NaN", "text", size=9 - index) for index in range(3)]
    with Database(tmp_path / "campaign.db", spec, identity()) as database:
        result = PieceResult(Piece(0, 10), [*some, Failure(4, "GEMM", "reference", "zero", "text")])
        database.add([result])
        database.add([result])  # once more: nothing changes

        assert [(each.count, each.smallest.index) for each in database.causes()] == [(3, 2), (1, 4)]
        assert list(database.done()) == [Piece(0, 10)]


@pytest.mark.parametrize("name", ["a\0b\x1b]]>", os.fsdecode(b"\xff.json"), "</script>\ufffe\n"])
def test_reports_of_any_names_can_be_read(name: str, tmp_path: Path) -> None:
    """Names of files and messages of programs may be any."""
    cause = Cause(2, Failure(0, name, name, name, name))
    reduced = Reduced(name, (Path(name),))
    found = Result(
        Spec("model", name, "", cases=3), 1, 1.0, [cause], [], [name], (1.0, name), reduced=[reduced]
    )
    page, junit, sarif = (tmp_path / each for each in ("page.html", "junit.xml", "found.sarif"))
    write_reports(found, html=page, junit=junit, sarif=sarif)
    assert "</script>" not in page.read_text()
    case = ElementTree.parse(junit).findall(".//testcase")[1]
    assert case.get("classname")
    assert json.loads(sarif.read_text())["runs"][0]["results"]
