"""Pictures of cells in a row: what is marked is shown, however many cells there are."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu.pictures import Cells
from dmlemu.pictures.cells_model import SOMEWHERE, Mark, Row, Ruler

SVG = "{http://www.w3.org/2000/svg}"


def picture(count: int, *marks: Mark, hatched: tuple[int, int] = (0, 0)) -> Cells:
    rows = tuple(Row(f"row {i}", (mark,)) for i, mark in enumerate(marks))
    return Cells("title", "cells", count, (Ruler("byte", 0, 4),), rows, hatched, ("note",))


def boxes(cells: Cells) -> list[str]:
    """The classes of all boxes."""
    root = ElementTree.fromstring(cells.svg())
    return [each.get("class", "") for each in root.iter(f"{SVG}rect")]


def labels(cells: Cells) -> list[str]:
    root = ElementTree.fromstring(cells.svg())
    return [each.text or "" for each in root.iter(f"{SVG}text")]


def test_a_short_row_is_shown_whole() -> None:
    assert picture(16).columns() == list(range(16))
    assert picture(3, Mark(3, 4, "writes")).columns() == [0, 1, 2, 3]


def test_of_many_cells_the_ends_and_what_is_around_marks_are_shown() -> None:
    middle = picture(1000, Mark(500, 501, "reads"))
    assert middle.columns() == [0, 1, 2, None, *range(498, 503), None, 998, 999]


def test_one_cell_alone_is_not_left_out() -> None:
    assert picture(100, Mark(2, 3, "reads")).columns(3) == [0, 1, 2, None, 99]


def test_what_is_far_outside_is_shown_and_nothing_before_it() -> None:
    far = picture(4, Mark(1 << 62, (1 << 62) + 1, "writes", "write", is_red=True))
    assert far.columns() == [0, 1, 2, 3, None, 1 << 62]
    assert str(4 << 62) in labels(far)


def test_a_place_that_is_not_known_is_the_last_one() -> None:
    unknown = picture(2, Mark(SOMEWHERE, SOMEWHERE + 1, "writes"))
    assert unknown.columns() == [0, 1, SOMEWHERE]
    assert unknown.text(80).splitlines()[2:4] == ["byte  0 4      ?", "cells · ·     ░░"]


def test_no_cells_at_all() -> None:
    nothing = picture(0)
    assert nothing.columns() == [] and boxes(nothing) == []
    assert nothing.text(80) == "title\n\nbyte\ncells\n\nnote"


def test_rulers_count_bytes_and_elements() -> None:
    assert [Ruler("element", 0, 4, 12).label(i) for i in (0, 2, 3, SOMEWHERE)] == ["0", "0", "1", "?"]
    assert Ruler("thread", 16).label(3) == "19"


def test_marks_are_coloured_and_red_ones_lie_over_others() -> None:
    drawn = picture(3, Mark(1, 2, "reads", "read", is_red=True), hatched=(2, 3))
    assert boxes(drawn) == ["inside", "inside", "hatched", "cell", "cell", "read shared"]
    assert labels(drawn).count("reads") == 1


def test_the_text_says_the_same() -> None:
    drawn = picture(3, Mark(1, 2, "reads", is_red=True), Mark(0, 2, "w"), hatched=(2, 3))
    assert drawn.text(80).splitlines() == [
        *("title", ""),
        *("byte  0      4  8", "cells ·      · ░░", "row 0   reads!", "row 1 w      w", "", "note"),
    ]
    assert str(drawn).startswith("title") and "\x1b[31;1m" in drawn.text(80, colour=True)


def test_names_are_escaped_and_labels_are_not_cut() -> None:
    hostile = "<script>&\"'" * 20
    drawn = Cells(hostile, hostile, 1, (Ruler(hostile),), (Row(hostile, ()),), notes=(hostile,))
    assert [each for each in labels(drawn) if each != "0"] == [hostile] * 5
    root = ElementTree.fromstring(drawn.svg())
    assert root.get("aria-label") == hostile
    assert float(root.get("width", "0")) > len(hostile) * 7
    assert max(map(len, drawn.text(60).splitlines())) <= 60


@given(
    st.integers(0, 1 << 40),
    st.lists(st.tuples(st.integers(0, 1 << 64), st.integers(1, 40), st.booleans()), max_size=40),
    st.integers(40, 200),
)
def test_pictures_are_small_and_show_the_red_cell(
    count: int, marks: list[tuple[int, int, bool]], width: int
) -> None:
    drawn = picture(count, *(Mark(begin, begin + size, "!", "read", red) for begin, size, red in marks))
    columns = drawn.columns()
    assert len(columns) <= 2 * 16 + 1
    cells = [each for each in columns if each is not None]
    assert cells == sorted(set(cells))
    red = next((begin for begin, _, is_red in marks if is_red), None)
    assert red is None or red in cells
    assert columns.count(None) < len(cells) or not columns
    assert len(boxes(drawn)) == len(cells) * (1 + len(marks))
    for line in drawn.text(width).splitlines()[:1]:
        assert len(line) <= width


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_are_as_short_as_the_terminal_where_one_column_fits(width: int) -> None:
    row = Row("a label that is as long as that of a thread of a group", (Mark(70, 71, "writes", "write"),))
    drawn = Cells("title", "the view", 200, (Ruler("byte"),), (row,))
    lines = drawn.text(width).splitlines()
    assert max(map(len, lines)) <= width
    assert "writes" in lines[-1] and re.search(r"\b70\b", lines[2])
