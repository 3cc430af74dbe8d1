"""The catalogue is complete: every id in the source is declared, every declared one is used and shown."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from gallery_programs import load
from test_gallery import PROGRAMS

from dmlemu.checks import catalogue, groups
from dmlemu.frontends import check_examples

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "runtime" / "dmlemu"

ID = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)+")
IDS = catalogue()
WORDS = {id.partition("_")[0] for id in IDS}  # with which ids begin


def names_in(path: Path) -> dict[str, int]:
    """Texts in a file's code that look like ids, by line; what a module exports are no ids."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported = [node for node in tree.body if isinstance(node, ast.Assign | ast.AugAssign)]
    skipped = {id(part) for node in exported if "__all__" in ast.unparse(node) for part in ast.walk(node)}
    return {
        node.value: node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
    }


def sources() -> list[Path]:
    return list(SOURCE.rglob("*.py"))


def test_every_id_in_the_source_is_declared() -> None:
    unknown = [
        f"{path.relative_to(SOURCE)}:{line} {name}"
        for path in sources()
        for name, line in names_in(path).items()
        if ID.fullmatch(name) and name.partition("_")[0] in WORDS and name not in IDS
    ]
    assert not unknown


def test_every_declared_id_is_used() -> None:
    """Its row is named where it is reported, or by a breach."""
    used: set[str] = set()
    for path in sources():
        found = re.findall(
            r"(?<![\"\w])([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*)\b(?! = [A-Z]+\.re)", path.read_text(encoding="utf-8")
        )
        used |= set(found)
    assert sorted(set(IDS) - used) == []


def test_every_declared_id_has_a_program_or_a_reason() -> None:
    shown = {load(name).CHECK for name in PROGRAMS}
    assert sorted(id for id, check in IDS.items() if id not in shown and not check.no_example) == []
    assert sorted(id for id in shown if IDS[id].no_example) == []


def test_declarations_read_well() -> None:
    for check in IDS.values():
        assert not re.match(r"(A|An|The|When) |.*\.$", check.title), f"Reported when {check.title}"
        for text in (check.why, check.fix, check.no_example or "Shown."):
            assert re.match(r"[A-Z`].*\.$", text, re.DOTALL), f"{check.id}: {text}"
    titles = [group.title for group in groups()]
    assert len(set(titles)) == len(titles) and all(titles)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_shown_as_wrong_and_as_right(name: str) -> None:
    program = check_examples.read(check_examples.GALLERY / f"{name}.py")
    for lines in (program.wrong, program.right):
        text = "\n".join(lines.values())
        ast.parse(text)
        assert not re.search(r"\bfixed\b", text) and "CHECK" not in text
    assert program.wrong != program.right and program.about and program.report


SMALL = '''"""About it."""

CHECK = "X"


def run(stage, fixed: bool) -> None:
    size = 4 if fixed else 8
    if fixed:
        stage.barrier()
    for i in range(2):
        if not fixed:
            stage.wrong(i)
        else:
            stage.right(i)
    stage.end(size, (1 if fixed else 0) + 1, visible=not fixed)
'''


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        (
            False,
            {
                6: "def run(stage) -> None:",
                7: "    size = 8",
                10: "    for i in range(2):",
                12: "        stage.wrong(i)",
                15: "    stage.end(size, 0 + 1, visible=True)",
            },
        ),
        (
            True,
            {
                6: "def run(stage) -> None:",
                7: "    size = 4",
                9: "    stage.barrier()",
                10: "    for i in range(2):",
                14: "        stage.right(i)",
                15: "    stage.end(size, 1 + 1, visible=False)",
            },
        ),
    ],
)
def test_a_program_as_if_fixed_were_a_constant(fixed: bool, expected: dict[int, str]) -> None:
    assert check_examples.specialised(SMALL, fixed) == expected
