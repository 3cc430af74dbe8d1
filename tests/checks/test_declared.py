"""What the source raises and reports is what is declared: ids, and their D3D12_MESSAGE_IDs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from dmlemu import Error, Severity
from dmlemu.checks import catalogue
from dmlemu.d3d12 import MessageId
from dmlemu.diagnostics import ids
from dmlemu.diagnostics.refusal import refusal

SOURCE = Path(__file__).parents[2] / "runtime" / "dmlemu"
DECLARED = catalogue()
CONSTANTS = {value for name, value in vars(ids).items() if name.isupper()}


@dataclass
class Raised:
    """One call that makes a report; ``ids`` and ``message_ids`` are those that it can have.

    They are empty where these come from a table or a parameter.
    """

    where: str
    ids: set[str] = field(default_factory=set)
    message_ids: set[int] = field(default_factory=set)
    chooses: bool = False
    is_without_page: bool = False


class Module:
    """The calls of one module."""

    def __init__(self, path: Path) -> None:
        self.name = path.relative_to(SOURCE).as_posix()
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}

    def attributes(self, owner: str) -> Iterator[ast.Attribute]:
        return (node for node in self.nodes if isinstance(node, ast.Attribute) and _of(node, owner))

    def calls(self) -> Iterator[Raised]:
        """Those of ``refusal``, and of what binds some of its arguments."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and _name(node.func) in ("refusal", "refused", "_refused"):
                yield self._raised(node, self._bound(node))

    def _bound(self, call: ast.Call) -> ast.Call | None:
        """The ``partial(refusal, ...)`` that a call goes through."""
        found = [
            part
            for scope in self._scopes(call)
            for node in ast.walk(scope)
            if _name_given_by(node) == _name(call.func)
            for part in ast.walk(node)
            if isinstance(part, ast.Call) and _name(part.func) == "partial"
        ]
        return found[0] if found else None

    def _scopes(self, node: ast.AST) -> Iterator[ast.AST]:
        """The functions around a node, innermost first, then the module."""
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, ast.FunctionDef | ast.Module):
                yield node

    def _raised(self, call: ast.Call, bound: ast.Call | None) -> Raised:
        raised = Raised(f"{self.name}:{call.lineno}")
        arguments = [*(bound.args[1:] if bound else ()), *call.args]
        chosen = {
            each.arg: each.value for part in (bound, call) if part is not None for each in part.keywords
        }
        raised.ids = {part.attr for part in self._parts(arguments[0]) if _of(part, "ids")}
        if "message_id" in chosen:
            parts = list(self._parts(chosen["message_id"]))
            raised.chooses = True
            raised.message_ids = {MessageId[part.attr] for part in parts if _of(part, "MessageId")}
        rule = chosen.get("rule")
        if isinstance(rule, ast.Constant) and "page" not in chosen:
            raised.is_without_page = re.fullmatch(r"[A-Z]+\d+", rule.value) is not None
        return raised

    def _parts(self, value: ast.expr) -> Iterator[ast.Attribute]:
        """The constants that a value can be."""
        if isinstance(value, ast.Name):
            found = (list(_assigned(scope, value.id)) for scope in self._scopes(value))
            sources = next(filter(None, found), [])
            for source in sources:
                yield from self._parts(source)
        else:
            yield from (part for part in ast.walk(value) if isinstance(part, ast.Attribute))


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _name_given_by(node: ast.AST) -> str:
    """What an assignment or a property defines."""
    if isinstance(node, ast.Assign):
        return _name(node.targets[0])
    return node.name if isinstance(node, ast.FunctionDef) else ""


def _of(node: ast.Attribute, owner: str) -> bool:
    return _name(node.value) == owner


def _assigned(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """The values that a function or module gives a name, by assignment or as the rows of a literal table."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            yield from _matched(node.targets[0], node.value, name)
        elif isinstance(node, ast.For) and isinstance(node.iter, ast.Tuple):
            for row in node.iter.elts:
                yield from _matched(node.target, row, name)


def _matched(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    if isinstance(target, ast.Name) and target.id == name:
        yield value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _matched(inner, part, name)


@cache
def modules() -> list[Module]:
    return [
        Module(path)
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "ids.py" and path.parent.name != "declarations"
    ]


@cache
def raised_anywhere() -> list[Raised]:
    return [raised for module in modules() for raised in module.calls()]


def test_ids_are_constants() -> None:
    """A typing error in one is an error of mypy."""
    texts = [
        f"{module.name}:{node.lineno} {node.value}"
        for module in modules()
        for node in module.nodes
        if isinstance(node, ast.Constant) and node.value in CONSTANTS
    ]
    assert not texts
    assert {name: value for name, value in vars(ids).items() if name.isupper()} == {id: id for id in DECLARED}


def test_the_calls_are_found() -> None:
    assert len(raised_anywhere()) > 150
    assert len([raised for raised in raised_anywhere() if raised.ids]) > 0.8 * len(raised_anywhere())


def test_raised_message_ids_are_declared() -> None:
    """That of each call is one of those of its check; with several, the call says which."""
    wrong = []
    for raised in raised_anywhere():
        for id in raised.ids if len(raised.ids) == 1 else ():
            several = len(DECLARED[id].message_ids) > 1
            undeclared = raised.message_ids - set(DECLARED[id].message_ids)
            if undeclared or (several and not raised.chooses):
                wrong.append(f"{raised.where} {id}: {sorted(undeclared) or 'chooses none'}")
    assert not wrong, "\n".join(wrong)


def test_message_ids_of_tables_are_declared() -> None:
    """Those that a module names at all, in tables and parameters too, belong to checks that it names."""
    wrong = {}
    for module in modules():
        named = {attribute.attr for attribute in module.attributes("ids")}
        message_ids = {MessageId[attribute.attr] for attribute in module.attributes("MessageId")}
        declared = {each for id in named & set(DECLARED) for each in DECLARED[id].message_ids}
        declared.add(MessageId.STRING_FROM_APPLICATION)  # of messages that the program itself adds
        if message_ids - declared:
            wrong[module.name] = sorted(message_ids - declared)
    assert not wrong


def test_rules_name_their_pages() -> None:
    """``rule="QY1"`` is nothing that a reader can find without a page."""
    assert not [raised.where for raised in raised_anywhere() if raised.is_without_page]


def test_an_undeclared_message_id_is_refused() -> None:
    with pytest.raises(ValueError, match="FENCE_VALUE declares no message ids, and not 729"):
        refusal(ids.FENCE_VALUE, "A value.", message_id=MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS)


def test_the_only_message_id_is_that_of_the_report() -> None:
    assert refusal(ids.UNMAP_NOT_MAPPED, "A buffer.").report.d3d12_id == MessageId.RESOURCE_UNMAP_NOTMAPPED
    assert refusal(ids.UNMAP_NOT_MAPPED, "A buffer.", message_id=0).report.d3d12_id == 0


def test_a_refusal_says_the_given_value_once() -> None:
    error = refusal(
        ids.RES_DESC, "{field} ({given}) is no {expected}.", field="Width", given=-1, expected="size"
    )
    assert isinstance(error, Error)
    report = error.report
    assert report.message == "Width (-1) is no size."
    assert (report.field, report.given, report.expected) == ("Width", "-1", "size")
    assert (report.severity, report.rule) == (Severity.ERROR, DECLARED[ids.RES_DESC].rule)
