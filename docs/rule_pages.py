"""The pages that name every rule and its tests: prose from ``docs/rules``, tables from the rules' rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from dmlemu.diagnostics.catalogue import rules
from dmlemu.diagnostics.rule import Rule

__all__ = ["pages"]

TEXTS = Path(__file__).parent / "rules"
TESTS = Path(__file__).parents[1] / "tests" / "unit"


def pages() -> dict[str, str]:
    """Each page by its file name.  In the prose a line ``@HP RB`` stands for the table of these families."""
    paths = {path.name.removesuffix(".md.in"): path for path in sorted(TEXTS.glob("*.md.in"))}
    texts = {stem: path.read_text(encoding="utf-8") for stem, path in paths.items()}
    return {f"rules-{stem}.md": _page(text, TESTS / stem) for stem, text in texts.items()}


def _page(text: str, tests: Path) -> str:
    return re.sub(
        r"^@(.*)$", lambda found: "\n".join(_table(found[1].split(), tests)), text, flags=re.MULTILINE
    )


def _table(families: list[str], tests: Path) -> Iterator[str]:
    yield "| id | rule | tests |\n| --- | --- | --- |"
    for family in families:
        for label, rule in rules().items():
            if label == family or re.fullmatch(rf"{re.escape(family)}\d+", label):
                yield f"| {label} | {rule.says} | {_tests(rule, tests)} |"


def _tests(rule: type[Rule], folder: Path) -> str:
    """The files with tests that are named by the rule, ``test_HP2_alignment``."""
    if rule.untested:
        return f"none: {rule.untested}"
    prefix = f"test_{rule.label.replace('.', '_')}_"
    files = dict.fromkeys(file for file, name in _named_tests(folder) if name.startswith(prefix))
    return ", ".join(f"`{file}`" for file in files)


@cache
def _named_tests(folder: Path) -> list[tuple[str, str]]:
    """The tests of the folder's files, each with the name of its file."""
    return [
        (path.name, name)
        for path in sorted(folder.glob("test_*.py"))
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
