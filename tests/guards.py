"""Guards of breaches that no test passes: what breaks a rule needs a legal neighbour that does not.

    make guards     (python tests/guards.py FILE; FILE: what `coverage run --branch` wrote)

A guard is the nearest ``if`` or ``except`` around the expression that names the breach; where a function has
none, its calls are looked at.  Passed: the run went past it to another line than the ones that it guards.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from coverage import CoverageData

from breaches import all_breaches
from dmlemu.diagnostics.rule import ALL_RULES

SOURCE = Path(__file__).parents[1] / "runtime" / "dmlemu"
BREACHES = {each.partition(".")[2] for each in all_breaches()}
RULES = {rule.__name__ for rule in ALL_RULES} | {"rule", "_type_rule"}  # what holds one of several rules
WITHOUT_GUARD = {"QY2.type"}  # BeginQuery is always refused, and its neighbour is EndQuery
Lines = range


class Module:
    """A source file, and the steps from line to line that the run took in it; negative: out of a function."""

    def __init__(self, path: Path, steps: Iterable[tuple[int, int]]) -> None:
        self.path, self.steps = path, set(steps)
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """What contains the node in its function, outwards, each with its part that does."""
        while not isinstance(node, ast.FunctionDef | ast.Module):
            parent = self.parents[node]
            yield parent, node
            node = parent

    def leaves(self, origin: Lines, *without: Lines) -> bool:
        """Whether the run went from these lines to any but those."""
        return any(
            start in origin and end not in origin and not any(end in each for each in without)
            for start, end in self.steps
        )


def lines(*nodes: ast.AST) -> Lines:
    return range(nodes[0].lineno, nodes[-1].end_lineno + 1)  # type: ignore[attr-defined]


def named(node: ast.AST) -> str:
    """The last part of a name: ``rule`` of ``self.rule``."""
    if isinstance(node, ast.Call):
        return named(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_breach(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in BREACHES and named(node.value) in RULES


class Guards:
    def __init__(self, data: CoverageData) -> None:
        files = sorted(SOURCE.rglob("*.py"))
        self.modules = [Module(path, data.arcs(str(path)) or ()) for path in files]

    @cache  # noqa: B019
    def calls(self, function: str) -> list[tuple[Module, ast.AST]]:
        return [
            (module, node)
            for module in self.modules
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and named(node) == function
        ]

    def is_passed(self, module: Module, node: ast.AST, depth: int = 3) -> bool:
        for parent, part in module.around(node):
            if isinstance(parent, ast.If) and part is not parent.test:
                guarded = parent.body if part in parent.body else parent.orelse
                return module.leaves(lines(parent.test), lines(*guarded))
            if isinstance(parent, ast.Try) and isinstance(part, ast.ExceptHandler):
                return module.leaves(lines(*parent.body), *(lines(each) for each in parent.handlers))
            if isinstance(parent, ast.FunctionDef):
                if any(self._returns(module, parent, part)):
                    return True
                found = self.calls(parent.name) if depth else []
                return any(self.is_passed(*call, depth - 1) for call in found)
        return False

    @staticmethod
    def _returns(module: Module, function: ast.FunctionDef, failing: ast.AST) -> Iterator[bool]:
        """Whether a function was left by another statement than the one that fails."""
        return (
            start in lines(function) and end < 0 and start not in lines(failing)
            for start, end in module.steps
        )

    def never_passed(self) -> Iterator[str]:
        for module in self.modules:
            for node in ast.walk(module.tree):
                if not is_breach(node) or ast.unparse(node) in WITHOUT_GUARD:
                    continue
                if not self.is_passed(module, node):
                    place = module.path.relative_to(SOURCE)
                    yield f"{place}:{node.lineno}: {ast.unparse(node)}"  # type: ignore[attr-defined]


def main(path: str) -> int:
    data = CoverageData(path)
    data.read()
    found = list(Guards(data).never_passed())
    print("\n".join(found) or "Every guard of a breach was passed.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
