"""The programs of the checks' pages: each with one mistake, its report, and the correction."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

__all__ = ["GALLERY", "GOLDEN", "Program", "examples", "read", "specialised"]

_INSTALLED = Path(__file__).parent / "check_gallery"  # by kernels_c/CMakeLists.txt
_FOLDER = _INSTALLED if _INSTALLED.exists() else Path(__file__).parents[3] / "tests" / "checks"
GALLERY = _FOLDER / "gallery"
GOLDEN = _FOLDER / "golden"


def examples(check: str = "") -> Iterator[Program]:
    """The programs of the gallery, of one check or of all."""
    for path in sorted(GALLERY.glob("*.py")):
        if path.stem != "__init__" and (not check or _check_of(path.read_text(encoding="utf-8")) == check):
            yield read(path)


@dataclass(frozen=True)
class Program:
    """A program of the gallery; lines of source by their numbers in its file.

    ``report`` names lines by their numbers in the wrong program as it is shown.  ``adapter``: whether the
    program wants an adapter of its own, ``ADAPTER``.
    """

    check: str
    about: str
    wrong: dict[int, str]
    right: dict[int, str]
    report: str
    picture: str  # the file's name on the pages, or ""
    file: str
    adapter: bool

    def markdown(self) -> tuple[str, str, str]:
        """The wrong program under its heading, its report, and what corrects it."""
        return (
            f"## {self.about}\n\n```python\n{self.listing()}\n```",
            f"```text\n{self.report.rstrip()}\n```",
            f"What corrects it:\n\n```diff\n{self.correction()}\n```",
        )

    def listing(self) -> str:
        """The wrong program, which runs as it is and prints the report."""
        call = f"Stage({'**ADAPTER' if self.adapter else ''}).show(run)"
        return "\n".join([*self.wrong.values(), "", "", call])

    def correction(self) -> str:
        """The difference that makes it silent."""
        lines = unified_diff(list(self.wrong.values()), list(self.right.values()), n=1, lineterm="")
        return "\n".join(line for line in list(lines)[2:] if not line.startswith("@@"))


def read(path: Path) -> Program:
    """A module of the gallery."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    check = _check_of(source)
    about = (ast.get_docstring(tree) or "").splitlines()[0].rstrip(".")
    wrong = specialised(source, fixed=False)
    golden, picture = GOLDEN / f"{path.stem}.txt", GOLDEN / f"{path.stem}.picture"
    assert check, f"{path} names no check"
    return Program(
        check=check,
        about=about,
        wrong=wrong,
        right=specialised(source, fixed=True),
        report=_renumbered(golden.read_text(encoding="utf-8"), path.name, wrong) if golden.exists() else "",
        picture=f"{path.stem}.svg" if picture.exists() else "",
        file=path.name,
        adapter=re.search("^ADAPTER =", source, re.MULTILINE) is not None,
    )


def _renumbered(report: str, file: str, lines: dict[int, str]) -> str:
    """A report whose lines are those of the program that is left."""
    places = {number: place for place, number in enumerate(lines, 1)}

    def place(found: re.Match[str]) -> str:
        return f"{file}:{places[int(found[1])]}"

    return re.sub(rf"\b{re.escape(file)}:(\d+)", place, report)


def _check_of(source: str) -> str:
    found = re.search(r'^CHECK = "(\w+)"', source, re.MULTILINE)
    return found[1] if found else ""


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
