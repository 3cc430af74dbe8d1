"""Pictures of the reports on shaders: of what a finding says, with its labels in its cells."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from dmlemu.checks.shaders.check import _CHECKS
from dmlemu.checks.shaders.messages import Shader, View
from dmlemu.checks.shaders.pictures import cells
from dmlemu.diagnostics.report import Report
from dmlemu.pictures import Cells
from dmlemu_hw.programs import WatchedCode
from dmlemu_hw.shader_watch import Finding, Side

LANES, SHARED = 32, 128
CODE = WatchedCode(0, (64, 1, 1), LANES, SHARED, 0, False, None)
SHADER = Shader("pipeline state 'x'", CODE.threads)
VALUES = View("u0 'values'", 4, 64, "FLOAT32")
THREAD = "thread ({}, 0, 0) of group ({}, 0, 0)"


def side(thread: int = 0, group: int = 0, line: int = 7, access: str = "write", size: int = 4) -> Side:
    return Side((group, 0, 0), thread, line, access, 0, size)


def finding(kind: str, offset: int = 0, later: Side | None = None, earlier: Side | None = None) -> Finding:
    return Finding(kind, later or side(), earlier or side(3, 1, 9, "read"), offset, 0, 1)


def drawn(found: Finding, view: View | None = VALUES) -> Cells:
    picture = cells(SHADER, found, view, CODE)
    assert picture is not None
    root = ElementTree.fromstring(picture.svg())
    assert root.get("aria-label") == picture.title
    return picture


def marks(picture: Cells) -> Iterator[tuple[str, str, int, int, bool]]:
    """Label of the row, label, first and last cell, whether it is red."""
    for row in picture.rows:
        for mark in row.marks:
            yield row.label, mark.label, mark.begin, mark.end - 1, mark.is_red


def test_every_kind_has_a_picture_but_a_dispatch_that_does_not_end() -> None:
    for kind in _CHECKS:
        found = finding(kind)._replace(values=(b"1234", b"5678"))
        picture = cells(SHADER, found, VALUES, CODE)
        assert (picture is None) == (kind == "ORDER_ENDLESS"), kind
        report = Report("SHADER_RACE", "A sentence.", cells=picture)
        assert ("<svg" in report.html()) == (picture is not None)
        assert pickle.loads(pickle.dumps(report)) == report
        assert report.picture is picture and "cells" not in report.json()


@pytest.mark.parametrize("kind", ["RACE", "RACE_SAME"])
def test_a_race_marks_the_bytes_that_both_access(kind: str) -> None:
    picture = drawn(finding(kind, 8))
    assert picture.title == "u0 'values': 64 bytes, elements of 4 bytes"
    assert list(marks(picture)) == [
        (f"{THREAD.format(3, 1)}, line 9", "reads", 2, 2, True),
        (f"{THREAD.format(0, 0)}, line 7", "writes", 2, 2, True),
    ]
    assert [ruler.label(2) for ruler in picture.rulers] == ["8", "2"]
    assert not picture.is_hatched(2)


def test_a_race_of_small_numbers_has_small_cells() -> None:
    picture = drawn(finding("RACE", 6, side(size=2), side(1, access="atomic", size=2)))
    assert [each[1:] for each in marks(picture)] == [("atomic", 3, 3, True), ("writes", 3, 3, True)]
    assert [ruler.label(3) for ruler in picture.rulers] == ["6", "1"]


@pytest.mark.parametrize("kind", ["SHARED_RACE", "SHARED_RACE_SAME"])
def test_a_race_in_groupshared_memory(kind: str) -> None:
    picture = drawn(finding(kind, 32), None)
    assert picture.title == "groupshared memory: 128 bytes" and picture.name == "groupshared memory"
    assert [each[1:4] for each in marks(picture)] == [("reads", 8, 8), ("writes", 8, 8)]


def test_an_access_outside_stands_beside_the_view() -> None:
    picture = drawn(finding("OUTSIDE", 64))
    assert list(marks(picture)) == [(f"{THREAD.format(0, 0)}, line 7", "writes", 16, 16, True)]
    assert picture.is_hatched(16) and not picture.is_hatched(15)
    assert picture.columns() == [*range(17)] and picture.notes == ("hatched: outside of the view",)


def test_an_access_far_outside_and_of_an_empty_view() -> None:
    far = (1 << 64) - 4
    assert drawn(finding("OUTSIDE", far)).columns()[-2:] == [None, far // 4]
    assert drawn(finding("OUTSIDE", 8), VALUES._replace(size=0)).columns() == [2]


def test_a_view_whose_size_is_no_multiple_of_four_bytes() -> None:
    picture = drawn(finding("OUTSIDE", 8), View("u0", 0, 10, "UINT32"))
    assert picture.count == 5
    assert [each[2:4] for each in marks(picture)] == [(4, 5)]
    assert [picture.is_hatched(cell) for cell in (4, 5)] == [False, True]


def test_an_access_outside_of_groupshared_memory() -> None:
    known = drawn(finding("SHARED_OUTSIDE", 128), None)
    assert [each[1:4] for each in marks(known)] == [("writes", 32, 32)]
    assert known.notes == ("hatched: outside of groupshared memory",)
    unknown = drawn(finding("SHARED_OUTSIDE", (1 << 64) - 1), None)
    assert unknown.count == 32 and [ruler.label(-1) for ruler in unknown.rulers] == ["?"]
    assert [each[2] for each in marks(unknown)] == [-1]


def test_unwritten_groupshared_memory_is_hatched() -> None:
    picture = drawn(finding("SHARED_UNWRITTEN", 12, side(access="read", size=12)), None)
    assert [each[1:4] for each in marks(picture)] == [("reads", 3, 5)]
    assert [picture.is_hatched(cell) for cell in range(2, 7)] == [False, True, True, True, False]


def test_the_lanes_that_wait_and_those_that_do_not() -> None:
    picture = drawn(finding("WAIT_OF_SOME_LANES", 0b110, side(33, access=""), side(32, access="")))
    assert picture.title == "a wave of group (0, 0, 0), with threads 32 to 63"
    assert list(marks(picture)) == [
        ("at the barrier, line 7", "waits", 1, 2, False),
        ("not at this barrier", "absent", 0, 0, True),
        ("not at this barrier", "absent", 3, 31, True),
    ]
    assert picture.rulers[0].label(1) == "33"


def test_the_last_wave_of_a_group_has_no_more_lanes_than_threads() -> None:
    code = CODE._replace(threads=(40, 1, 1))
    found = finding("WAIT_OF_SOME_LANES", 1, side(32), side(33))
    picture = cells(Shader("x", code.threads), found, None, code)
    assert picture is not None and picture.count == 8


def test_waves_of_a_group_at_a_barrier_and_not() -> None:
    ended = drawn(finding("WAIT_IN_VAIN", 0, side(0, access=""), side(32, line=0, access="")))
    assert ended.title == "group (0, 0, 0): 64 threads in waves of 32"
    assert list(marks(ended)) == [
        ("at the barrier, line 7", "waits", 0, 0, False),
        ("ended, or at fewer barriers", "absent", 1, 1, True),
    ]
    elsewhere = drawn(finding("WAIT_ELSEWHERE", 0, side(32, access=""), side(0, line=9, access="")))
    assert [each[:3] for each in marks(elsewhere)] == [
        ("at the barrier, line 7", "waits", 1),
        ("at the barrier, line 9", "waits", 0),
    ]


@pytest.mark.parametrize(
    "kind, lane, hatched, note",
    [
        ("LANE_OUTSIDE", 63, [32, 63], "hatched: the wave has 32 lanes"),
        ("LANE_OUTSIDE", (1 << 32) - 1, [32, (1 << 32) - 1], "hatched: the wave has 32 lanes"),
        ("LANE_INACTIVE", 5, [5], "hatched: not active"),
    ],
)
def test_the_lane_that_is_read(kind: str, lane: int, hatched: list[int], note: str) -> None:
    picture = drawn(finding(kind, lane, side(34, access="")))
    assert [each[1:4] for each in marks(picture)] == [("reads", 2, 2), ("?", lane, lane)]
    assert [cell for cell in (2, 5, 31, 32, 63, (1 << 32) - 1) if cell in hatched] == hatched
    assert all(map(picture.is_hatched, hatched)) and not picture.is_hatched(2)
    assert picture.notes == (note,)


def test_a_number_in_both_orders_of_groups() -> None:
    found = finding("ORDER", 4, side(0, 7, access="write"), side(0, 0, 7, ""))
    picture = drawn(found._replace(values=(b"\0\0\x80?", b"\0\0\0@")))
    assert list(marks(picture)) == [
        ("one order: nobody writes there", "1.0", 1, 1, True),
        (f"the reverse one: {THREAD.format(0, 7)}, line 7", "2.0", 1, 1, True),
    ]
    wide = drawn(found._replace(offset=8, values=(b"\1" + bytes(7), b"\2" + bytes(7))))
    assert [each[1:4] for each in marks(wide)] == [("1", 1, 1), ("2", 1, 1)]
    counter = View("the counter of u0", 0, 4, "UINT32")
    counted = finding("ORDER_COUNTER")._replace(values=(b"\1\0\0\0", b"\2\0\0\0"))
    assert [each[1] for each in marks(drawn(counted, counter))] == ["1", "2"]


@pytest.mark.parametrize("name", ["<b>&\"'", "\0\x1b[31m\ud800\ufffe\u202e", "x" * 100_000])
def test_hostile_names_stay_text(name: str) -> None:
    view = View(f"u0 '{name}'", 4, 1 << 40, "FLOAT32")
    picture = drawn(finding("RACE", 1 << 39), view)
    picture.svg().encode()
    assert len(picture.svg()) < 12_000 and len(picture.title) < 400
    assert picture.title.isprintable()
    report = Report("SHADER_RACE", "A sentence.", cells=picture)
    assert "<b>" not in report.html() and "</section>" in report.html()
