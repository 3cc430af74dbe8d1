"""The tutorial as notebooks: the cells of a page run in a kernel and print what the page shows."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import pytest
from test_tutorial import ROOT, blocks, same

sys.path.insert(0, str(ROOT / "docs"))
pytest.importorskip("nbclient", reason="the extra site is not installed")

import nbformat
from nbclient import NotebookClient
from notebooks import ANSWER, PAGES, notebook


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(
        each.text for each in cell.outputs if each.output_type == "stream" and each.name == "stdout"
    )


def test_there_is_a_notebook_for_each_page() -> None:
    assert len(PAGES) == 14


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_notebook_has_the_blocks_of_its_page(page: Path) -> None:
    made = notebook(page)
    nbformat.validate(made)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    found = blocks(page)
    assert [cell.source for cell in code] == [
        each.text.rstrip("\n") for each in found if each.language == "python"
    ]
    shown = [
        after.text
        for block, after in pairwise(found)
        if (block.language, after.language) == ("python", "text")
    ]
    assert len(shown) == len([cell for cell in code if cell.outputs])
    prose = "".join(cell.source for cell in made.cells if cell.cell_type == "markdown")
    assert "details>" not in prose and ".md" not in prose
    assert prose.count("**Answer**") == page.read_text().count(ANSWER) == 2
    assert any(cell.metadata.get("jupyter") for cell in code)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=() if page in (PAGES[0], PAGES[-1]) else pytest.mark.long)
        for page in PAGES  # test_tutorial.py runs the same blocks
    ],
)
def test_a_notebook_prints_what_its_page_shows(page: Path) -> None:
    made = notebook(page)
    expected = [printed(cell) for cell in made.cells if cell.cell_type == "code"]
    NotebookClient(made, timeout=100, kernel_name="python3").execute()
    for cell, shown in zip([cell for cell in made.cells if cell.cell_type == "code"], expected, strict=True):
        assert same(shown, printed(cell)), f"{cell.source}\nprinted\n{printed(cell)}"
