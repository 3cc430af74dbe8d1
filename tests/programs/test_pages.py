"""The pages of the documentation: each is linked, links lead somewhere, and what is to be pasted works."""

from __future__ import annotations

import code
import contextlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_tutorial import ROOT, TRIES_LAYOUTS, Block, blocks, quoted_file, same

DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "tests/README.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
    *sorted(DOCS.rglob("*.md")),
]


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """The files that a page links, with the part behind ``#``; code and addresses of the web are none."""
    text = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:", target):
            name, _, anchor = target.partition("#")
            yield (page.parent / name).resolve() if name else page, anchor


def anchors(page: Path) -> set[str]:
    """What its headings are called in addresses."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_linked_from_another() -> None:
    linked = {target for page in PAGES for target, _ in links(page) if target != page}
    missing = [page for page in sorted(DOCS.rglob("*.md")) if page not in linked]
    assert not missing, "no page links " + ", ".join(str(page.relative_to(ROOT)) for page in missing)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        assert target.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(target), f"{page}: {target}#{anchor}"


def test_every_decision_is_listed_with_a_sentence() -> None:
    rows = re.findall(
        r"^\| \[(\d{4})\]\(([\w.-]+)\) \| (.+\.) \|$", (DECISIONS / "README.md").read_text(), re.MULTILINE
    )
    assert [name for _, name, _ in rows] == [page.name for page in sorted(DECISIONS.glob("[0-9]*.md"))]
    assert all(name.startswith(number) and "|" not in sentence for number, name, sentence in rows)


def test_no_page_names_a_package_index() -> None:
    """dmlemu is on none: what is installed comes from a clone or a wheel."""
    for page in [*PAGES, *ROOT.glob("runtime/**/*.py")]:
        assert not re.search(r"pip install [-\w ]*['\"]?dmlemu\b", page.read_text()), page


CODE = {"c", "cmake", "cpp", "diff", "json", "python", "sh", "yaml"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_fits_the_page(page: Path) -> None:
    """Without scrolling; what commands print is as long as it is."""
    code = [each for each in blocks(page) if each.language in CODE]
    lines = [line for each in code for line in each.text.splitlines() if len(line) > 88]
    assert not lines, "\n".join(lines)


# --- pasted into the plain prompt ---


def pasted(page: Path) -> list[Block]:
    """The blocks to paste: all of Python but those that begin with the path of a file, which they quote."""
    return [each for each in blocks(page) if each.language == "python" and not quoted_file(each)]


CAMPAIGNS = ("ten-thousand-layouts", "campaigns-on-a-cluster")
GUIDES = [
    *(ROOT / "README.md", *sorted(DOCS.glob("tutorial/*.md"))),
    # Programs of clients, in environments of their own: tests/clients.  Campaigns run files: unit/campaign.
    *(
        page
        for page in sorted(DOCS.glob("guide/*.md"))
        if not page.match("run-a-*-program.md") and page.stem not in CAMPAIGNS
    ),
]
PASTED = [page for page in GUIDES if pasted(page)]


def test_the_guides_are_pasted() -> None:
    names = {page.name for page in PASTED}
    assert {"README.md", "01-first-program.md", "chaos.md", "fault-injection.md"} <= names
    assert {"find-a-layout-bug.md", "test-your-layouts.md", "write-a-check.md"} <= names


def at_a_console(texts: list[str], folder: Path) -> list[tuple[str, str]]:
    """What a prompt in this process writes to stdout and stderr about each text, followed by Enter.

    It does not show the values of expressions, as a page does not.
    """
    console, told = code.InteractiveConsole({"__name__": "__main__"}, "<stdin>"), []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "displayhook", lambda value: None)
        for text in texts:
            output, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
                for line in f"{text}\n".splitlines():
                    console.push(line)
            told.append((output.getvalue(), errors.getvalue()))
    return told


END = "# the end of a block\n"


def at_the_prompt(texts: list[str], folder: Path) -> list[tuple[str, str]]:
    """The same of ``python -i``, to which the text is pasted."""
    end = f"print({END!r}, end='', flush=True); print({END!r}, end='', file=__import__('sys').stderr)\n"
    given = "__import__('sys').displayhook = lambda value: None\n"
    given += "".join(f"{text}\n{end}" for text in texts)
    done = subprocess.run(
        [sys.executable, "-i", "-q"], input=given, cwd=folder, capture_output=True, text=True, timeout=110
    )
    return list(zip(done.stdout.split(END)[:-1], done.stderr.split(END)[:-1], strict=True))


def shown_after(page: Path, block: Block) -> str:
    """What the page shows behind a block; reports name lines of the prompt instead of the page's."""
    found = blocks(page)
    after = found[found.index(block) + 1 :][:1]
    return re.sub(r"[\w.-]+\.md:", "...:", after[0].text) if after and after[0].language == "text" else ""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, id=page.name, marks=pytest.mark.long if TRIES_LAYOUTS.search(page.read_text()) else ()
        )
        for page in PASTED
    ],
)
@pytest.mark.dmlemu(expect=["*"])  # the mistakes that pages show
@pytest.mark.usefixtures("no_devices_of_other_tests")
def test_blocks_can_be_pasted_into_the_prompt(page: Path, tmp_path: Path) -> None:
    found = pasted(page)
    # What the second declares would stay here.
    prompt = at_the_prompt if page.name in ("README.md", "write-a-check.md") else at_a_console
    told = prompt([each.text for each in found], tmp_path)
    assert len(told) == len(found)
    for block, (output, errors) in zip(found, told, strict=True):
        assert "Traceback" not in errors and "Error: " not in errors, f"{page.name}:{block.line}\n{errors}"
        shown = shown_after(page, block)
        assert same(shown, output), f"{page.name}:{block.line}\n{output}"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def f():\n    a = 1\n\n    return a\n", "IndentationError"),
        ("for i in range(2):\n    pass\nprint(i)\n", "SyntaxError"),
        ("print(nowhere)\n", "NameError"),
    ],
)
def test_the_prompt_is_a_plain_one(text: str, error: str, tmp_path: Path) -> None:
    for prompt in (at_the_prompt, at_a_console):
        [(_, told)] = prompt([text], tmp_path)
        assert error in told
