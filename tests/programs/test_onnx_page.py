"""The reference page of ONNX operators: its rows follow from lowerings, schemas and the node tests."""

from __future__ import annotations

import re
import sys

import pytest
from test_tutorial import ROOT

sys.path.insert(0, str(ROOT / "docs"))

import onnx_pages

from dmlemu.onnx.calls import LOWERINGS

pytestmark = [
    pytest.mark.long,  # makes all node tests
    pytest.mark.dmlemu(expect=["*"]),  # what is looked for in them is a result
]


def row(name: str, domain: str = "") -> list[str]:
    """The cells of an operator: since, runs as, cases, device, both, host, left out."""
    cases = onnx_pages._cases_of().get((domain, name), [])
    text = onnx_pages._row((domain, name), onnx_pages._schemas().get((domain, name), []), cases)
    return [cell.strip() for cell in text.strip("|\n").split("|")][1:]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Relu", ["1, 14", "one operator", "2", "2", "", "", ""]),
        ("NonZero", ["9, 13", "host", "1", "", "", "1", ""]),
        ("Mish", ["18, 22", "the body of its function", "2", "2", "", "", ""]),
        ("RandomNormal", ["1, 22", "host", "", "", "", "", ""]),
        ("Shape", ["1, 25", "known when compiled", "11", "11", "", "", ""]),
    ],
)
def test_rows(name: str, expected: list[str]) -> None:
    if not onnx_pages.is_of_the_list():
        pytest.skip("the list of node tests is of another onnx package")
    assert row(name) == expected


def test_a_composition_says_how_many_operators_it_needs() -> None:
    assert re.fullmatch(r"(\d+ to )?\d+ operators", row("BitShift")[1])


def test_an_operator_of_onnx_runtime_has_a_row_though_onnx_has_no_schema() -> None:
    name = next(name for domain, name in LOWERINGS if domain == "com.microsoft")
    assert row(name, "com.microsoft")[:2] == ["1", "operators of DirectML"]


def test_the_page_has_a_row_for_each_operator_and_counts_each_case_once() -> None:
    text = onnx_pages.page()
    for domain, name in {*onnx_pages._schemas(), *LOWERINGS}:
        assert domain not in onnx_pages._DOMAINS or f"\n| {name} | " in text, (domain, name)
    total = re.search(
        r"Of the ([\d,]+) node tests, ([\d,]+) .* (\d+) on the device and.* (\d+) on the\s", text
    )
    assert total is not None and int(total[1].replace(",", "")) == len(onnx_pages.where())


def test_the_guide_says_how_many_node_tests_run_on_the_device() -> None:
    if onnx_pages.is_of_the_list():
        assert onnx_pages.count() in (ROOT / "docs" / "guide" / "onnx.md").read_text()
