"""The README, the tutorial and guides with programs run: each ``python`` block in order, what it prints
compared with the ``text`` block that follows.  A block that begins with the path of a file quotes that file
and must stand in it."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

__dmlemu_helper__ = True  # reports name lines of what it runs

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("[0-9]*.md")),
    ROOT / "docs" / "guide" / "digits.md",
    ROOT / "docs" / "guide" / "pictures-and-timelines.md",
    ROOT / "docs" / "guide" / "test-your-layouts.md",
]


@dataclass(frozen=True)
class Block:
    """A fenced block: ``line`` is where its first line stands in the page."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(each[1], each[2], text.count("\n", 0, each.start()) + 2) for each in found]


def same(expected: str, got: str) -> bool:
    """Equal; ``...`` stands for anything."""
    return doctest.OutputChecker().check_output(expected, got, doctest.ELLIPSIS)


def quoted_file(block: Block) -> str | None:
    match = re.match(r"# (examples/[\w/.-]+)\n", block.text)
    return match[1] if match else None


def stands_in(quote: str, source: str) -> bool:
    """The quote's lines, at one indentation, are consecutive lines of the source."""
    wanted = [line.rstrip() for line in quote.strip("\n").splitlines()]
    lines = [line.rstrip() for line in source.splitlines()]
    for start in range(len(lines) - len(wanted) + 1):
        indent = len(lines[start]) - len(lines[start].lstrip())
        here = [line[indent:] for line in lines[start : start + len(wanted)]]
        if here == wanted:
            return True
    return False


@pytest.fixture(params=PAGES, ids=lambda page: page.name)
def page(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_there_are_pages() -> None:
    assert [page.name for page in PAGES][:2] == ["README.md", "01-first-program.md"]


# What the mistakes and exercises of a page make the device report, each id at least once.
REPORTED = {
    "01-first-program.md": ["STATE_FOR_DISPATCH"],
    "02-where-an-element-lies.md": ["TENSOR_LAYOUT_GUESS", "TENSOR_OUT_OVERLAP"],
    "03-several-tensors-in-one-buffer.md": ["BIND_ALIAS", "BIND_OFFSET_ALIGN", "MEM_UNINIT_READ"],
    "04-descriptors-and-binding-tables.md": ["DESC_OVERWRITTEN"],
    "05-the-life-of-a-list.md": [
        "ALLOC_RESET_IN_FLIGHT",
        "ALLOC_SHARED",
        "LIST_CLOSED",
        "LIST_EXECUTED_TWICE",
        "LIST_OPEN",
    ],
    "06-states.md": ["STATE_BEFORE", "STATE_FOR_DISPATCH"],
    "07-barriers.md": ["HAZARD_ALIAS"],
    "08-fences.md": ["ALLOC_RESET_IN_FLIGHT", "HAZARD_QUEUE"],
    "09-initialisation.md": ["BIND_PERSISTENT_CHANGED"],
    "10-graphs.md": ["GRAPH_INPUT_UNSET"],
    "11-reports-and-removal.md": ["HAZARD_RAW", "MEM_UNINIT_READ", "OBJECT_DELETED_IN_USE"],
    "12-numbers.md": ["VAL_FP16_OVERFLOW"],
    "13-graphs-as-expressions.md": ["OP_SHAPE"],
    "14-threads-of-a-shader.md": ["SHADER_RACE_SHARED", "SHADER_SHARED_UNINITIALISED"],
    "pictures-and-timelines.md": ["READ_MIXED"],
}

# Tries a program in hundreds of layouts, which takes seconds.
TRIES_LAYOUTS = re.compile(r"^@layouts\(", re.MULTILINE)


def marks(page: Path) -> list[pytest.MarkDecorator]:
    reported = pytest.mark.dmlemu(expect=REPORTED.get(page.name, []))
    return [reported, pytest.mark.long] if TRIES_LAYOUTS.search(page.read_text()) else [reported]


def programs() -> list[Path]:
    """The pages with blocks of their own, and not only quotes."""
    return [
        page
        for page in PAGES
        if any(each.language == "python" and not quoted_file(each) for each in blocks(page))
    ]


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name, marks=marks(page)) for page in programs()])
@pytest.mark.dmlemu(expect=["TENSOR_TOTAL_SMALL*"])  # a page catches and prints one
@pytest.mark.usefixtures("no_devices_of_other_tests")
def test_page_runs_as_printed(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__tutorial__"}
    found = blocks(page)
    ran = 0
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language != "python" or quoted_file(block):
            continue
        where = f"{page.name}:{block.line}"
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        expected = following.text if following is not None and following.language == "text" else ""
        assert same(expected, printed.getvalue()), f"{where} printed\n{printed.getvalue()}"
        ran += 1
    assert ran


def test_quotes_stand_in_the_files(page: Path) -> None:
    for block in blocks(page):
        path = quoted_file(block)
        if path is not None:
            quote = block.text.split("\n", 1)[1]
            assert stands_in(quote, (ROOT / path).read_text()), f"{page.name}:{block.line} is not in {path}"


def test_commands_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    """``console`` blocks: ``$ make NAME`` lines are what the Makefile runs; only ``run`` is tried here."""
    for block in blocks(page):
        if block.language != "console" or not block.text.startswith("$ make run\n"):
            continue
        command = [sys.executable, str(ROOT / "examples" / "digits" / "digits.py")]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
        assert done.returncode == 0, done.stderr
        expected = block.text.split("\n", 1)[1]
        assert same(expected, done.stdout), f"{page.name}:{block.line} printed\n{done.stdout}"


@pytest.mark.parametrize(
    ("quote", "source", "found"),
    [
        ("a\n  b\n", "    a\n      b\n    c\n", True),
        ("a\nb\n", "    a\n      b\n", False),
        ("a\nc\n", "a\nb\nc\n", False),
        ("a\n\nb\n", "  a\n\n  b\n", True),
    ],
)
def test_quotes_are_found_at_any_indentation(quote: str, source: str, found: bool) -> None:
    assert stands_in(quote, source) is found
