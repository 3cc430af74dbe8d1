"""The reference page of each check: its declaration, and the gallery's programs with their reports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from dmlemu.checks import Declaration, catalogue, groups
from dmlemu.checks.framework.describe import levels
from dmlemu.d3d12 import MessageId
from dmlemu.diagnostics.catalogue import title

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "tests" / "checks" / "gallery"
GOLDEN = ROOT / "tests" / "checks" / "golden"


def pages() -> dict[str, str]:
    """Every page and picture by its file name."""
    programs: dict[str, list[Program]] = {}
    for path in sorted(GALLERY.glob("*.py")):
        if path.stem != "__init__":
            program = read(path)
            programs.setdefault(program.check, []).append(program)
    texts = {f"{id}.md": "\n".join(_page(check, programs.get(id, []))) for id, check in catalogue().items()}
    pictures = {f"pictures/{path.name}": path.read_text(encoding="utf-8") for path in GOLDEN.glob("*.svg")}
    return {**texts, **pictures, "README.md": "\n".join(_index())}


_HOW_TO_RUN = """
The programs on the pages stand in `tests/checks/gallery`. `stage` is `tests/checks/stage.py`: a device
with a queue, an open list and a fence, and short words for what every program does. To run one, here
`hazard_raw_dispatch`, from the repository's root (with `fixed=True` it is corrected, and says nothing):

```
PYTHONPATH=tests/checks .venv/bin/python -c \\
  "from stage import Stage; from gallery.hazard_raw_dispatch import run; run(Stage(), fixed=False)"
```"""


def _index() -> Iterator[str]:
    yield "# Checks\n"
    yield "Everything that the emulator tells its user, by its stable id."
    yield "`dmlemu checks` prints the same list, `dmlemu checks ID` one check."
    yield _HOW_TO_RUN
    for group, checks in groups().items():
        yield f"\n## {title(group)}\n"
        yield "| check | severity | reported |\n| --- | --- | --- |"
        for check in checks:
            about = check.title.replace("|", "\\|")
            yield f"| [{check.id}]({check.id}.md) | {check.severity.name} | {check.when.value}: {about} |"
    yield ""


def _page(check: Declaration, programs: list[Program]) -> Iterator[str]:
    yield f"# {check.id}\n"
    yield f"{check.severity.name}, {check.when.value}, at strictness {levels(check.level)}.\n"
    yield f"Reported when {check.title}.\n"
    yield f"**Why.** {check.why}\n"
    yield f"**Fix.** {check.fix}\n"
    if check.rule:
        yield f"**Rule.** {check.rule}\n"
    if check.message_ids:
        numbers = [f"{_message(number)} ({int(number)})" for number in check.message_ids]
        yield f"**D3D12_MESSAGE_ID.** {', '.join(numbers)}\n"
    if check.refusal:
        yield "**Suppress.** Not possible: the call itself refuses and does nothing. Catch `dmlemu.Error`."
    else:
        yield f'**Suppress.** `device.reports.suppress("{check.id}", "the reason")`'
    if check.no_example:
        yield f"\n**Example.** {check.no_example}"
    for program in programs:
        yield from _example(program)
    yield ""


def _message(number: int) -> str:
    return MessageId(number).name if number in list(MessageId) else "no name here"


def _example(program: Program) -> Iterator[str]:
    yield f"\n## {program.about}\n"
    yield f"```python\n{program.listing()}\n```\n"
    yield f"```text\n{program.report.rstrip()}\n```\n"
    if program.picture:
        yield f"![The tensors of the report in memory](pictures/{program.picture})\n"
    yield f"What corrects it:\n\n```diff\n{program.correction()}\n```"


# --- programs ---


@dataclass(frozen=True)
class Program:
    """A program of the gallery; lines of source by their numbers."""

    check: str
    about: str
    wrong: dict[int, str]
    right: dict[int, str]
    report: str
    picture: str  # the file's name, or ""

    def listing(self) -> str:
        """The wrong program, each line with the number that the report knows it by."""
        return "\n".join(f"{number:3}  {line}" if line else "" for number, line in self.wrong.items())

    def correction(self) -> str:
        """The difference that makes it silent."""
        lines = unified_diff(list(self.wrong.values()), list(self.right.values()), n=1, lineterm="")
        return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))


def read(path: Path) -> Program:
    """A module of the gallery."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    found = re.search(r'^CHECK = "(\w+)"', source, re.MULTILINE)
    about = (ast.get_docstring(tree) or "").splitlines()[0].rstrip(".")
    golden, picture = GOLDEN / f"{path.stem}.txt", GOLDEN / f"{path.stem}.svg"
    assert found, f"{path} names no check"
    return Program(
        check=found[1],
        about=about,
        wrong=specialised(source, fixed=False),
        right=specialised(source, fixed=True),
        report=golden.read_text(encoding="utf-8") if golden.exists() else "",
        picture=picture.name if picture.exists() else "",
    )


def specialised(source: str, fixed: bool) -> dict[int, str]:
    """The program as if ``fixed`` were a constant: the lines that are left, by their numbers."""
    tree = ast.parse(source)
    lines = dict(enumerate(source.splitlines(), 1))
    values = [node for node in ast.walk(tree) if isinstance(node, ast.IfExp) and _names_fixed(node.test)]
    for value in sorted(values, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        _choose_value(lines, value, source, fixed)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _names_fixed(node.test):
            _choose_branch(lines, node, fixed)
        elif isinstance(node, ast.Assign) and ast.unparse(node).startswith("CHECK ="):
            _drop(lines, node.lineno, node.lineno)
    if ast.get_docstring(tree) is not None:  # the page's heading
        _drop(lines, 1, tree.body[0].end_lineno or 1)
    return _tidy({number: _without_name(line, fixed) for number, line in lines.items()})


def _names_fixed(test: ast.expr) -> bool:
    return ast.unparse(test) in ("fixed", "not fixed")


def _is_true(test: ast.expr, fixed: bool) -> bool:
    return fixed if isinstance(test, ast.Name) else not fixed


def _drop(lines: dict[int, str], first: int, last: int) -> None:
    for number in range(first, last + 1):
        lines.pop(number, None)


def _choose_value(lines: dict[int, str], node: ast.IfExp, source: str, fixed: bool) -> None:
    """``a if fixed else b`` becomes one of the two."""
    text = ast.get_source_segment(source, node.body if _is_true(node.test, fixed) else node.orelse) or ""
    last = node.end_lineno or node.lineno
    before, after = lines[node.lineno][: node.col_offset], lines[last][node.end_col_offset :]
    if before.endswith("(") and after.startswith(")") and not re.search(r"[\w\]]\($", before):
        before, after = before[:-1], after[1:]
    _drop(lines, node.lineno + 1, last)
    lines[node.lineno] = before + " ".join(text.split()) + after


def _choose_branch(lines: dict[int, str], node: ast.If, fixed: bool) -> None:
    """What stands under ``if fixed:`` or its ``else`` moves to the left, or goes."""
    end = node.end_lineno or node.lineno
    last_of_body = node.body[-1].end_lineno or node.lineno
    if _is_true(node.test, fixed):
        kept, first, last = node.body, node.lineno + 1, last_of_body
    elif node.orelse:
        kept, first, last = node.orelse, node.orelse[0].lineno, end
    else:
        kept, first, last = [], end + 1, end
    for number in range(node.lineno, end + 1):
        if not first <= number <= last:
            lines.pop(number, None)
        elif number in lines:
            indent = kept[0].col_offset - node.col_offset
            lines[number] = lines[number][indent:] if lines[number][:indent].isspace() else lines[number]


def _without_name(line: str, fixed: bool) -> str:
    """Where ``fixed`` is still named: as a parameter it goes, elsewhere it is its value."""
    if line.lstrip().startswith("def "):
        line = re.sub(r", fixed(: bool)?(?=[,)])", "", line)
    line = re.sub(r"\bnot fixed\b", str(not fixed), line)
    return re.sub(r"\bfixed\b", str(fixed), line)


def _tidy(lines: dict[int, str]) -> dict[int, str]:
    """No blank line at the ends, and never two."""
    kept: dict[int, str] = {}
    last = ""
    for number, line in sorted(lines.items()):
        if line.strip() or last:
            kept[number] = line
        last = line.strip()
    if not last:
        kept.popitem()
    return kept
