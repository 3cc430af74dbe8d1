"""The pages of the tutorial as notebooks, build/notebooks: ``make site`` offers them beside the pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, v4, write

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md"))
ANSWER, END = "<details><summary>Answer</summary>", "</details>"


def notebook(page: Path) -> NotebookNode:
    """A page's blocks of Python become cells, and what it prints their output."""
    cells: list[NotebookNode] = []
    answer = False
    for part in re.split(
        r"^(```.*?^```\n)", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    ):
        language, code = part[3:].split("\n", 1) if part.startswith("```") else ("", part)
        code = code.removesuffix("```\n").rstrip("\n")
        if language == "python":
            cells.append(v4.new_code_cell(code, metadata=_hidden(answer)))
        elif language == "text" and cells and cells[-1].cell_type == "code" and not cells[-1].outputs:
            cells[-1].outputs = [v4.new_output("stream", text=f"{_without_page(code)}\n")]
        elif text := _prose(part).strip():
            cells.append(v4.new_markdown_cell(text))
        answer = part.rfind(ANSWER) > part.rfind(END) if ANSWER in part or END in part else answer
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return v4.new_notebook(cells=cells, metadata=kernel)


def _hidden(answer: bool) -> dict[str, Any]:
    """An answer is folded until the reader opens it."""
    return {"jupyter": {"source_hidden": True}} if answer else {}


def _without_page(text: str) -> str:
    """Reports name the page's lines: in a notebook it is those of a cell."""
    return re.sub(r"\b\d\d-[\w-]+\.md:", "...:", text)


def _prose(text: str) -> str:
    """Links to other pages of the tutorial lead to their notebooks; a notebook alone has no other files."""
    text = text.replace(ANSWER, "**Answer**").replace(END, "")
    text = re.sub(r"\]\((\d\d-[\w-]+)\.md\)", r"](\1.ipynb)", text)
    return re.sub(r"\[([^]]+)\]\((?!\w+:|\d\d-)[^)]+\)", r"\1", text)


def main(folder: Path = ROOT / "build" / "notebooks") -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        write(notebook(page), folder / f"{page.stem}.ipynb")
    return 0


if __name__ == "__main__":
    sys.exit(main())
