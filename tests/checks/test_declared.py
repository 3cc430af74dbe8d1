"""The rules of the API as rows: what they say, who raises their breaches, and which tests they name."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from inspect import signature
from pathlib import Path

import pytest

from dmlemu import Error, Severity
from dmlemu.d3d12.memory.rows import RES_DESC
from dmlemu.d3d12.queues.rows import Q2
from dmlemu.diagnostics.catalogue import rules
from dmlemu.diagnostics.rule import ALL_RULES, Breach, Rule, error_of

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "runtime" / "dmlemu"
TESTS = {"d3d12": ROOT / "tests" / "unit" / "d3d12", "dml": ROOT / "tests" / "unit" / "dml"}
RULES = rules()
BREACHES = [
    (rule, name, each) for rule in ALL_RULES for name, each in vars(rule).items() if isinstance(each, Breach)
]
NAMED = {rule.__name__: rule for rule in ALL_RULES}
GIVEN = {"field", "given", "expected", "object", "operation"}  # words of every message
PARAMETERS = set(signature(Breach.__call__).parameters)


@cache
def trees() -> list[ast.Module]:
    return [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))]


def named_tests(layer: str) -> set[str]:
    """The names of the layer's unit tests."""
    texts = (path.read_text(encoding="utf-8") for path in TESTS[layer].glob("test_*.py"))
    return {name for text in texts for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}


def layer_of(rule: type[Rule]) -> str:
    return rule.__module__.split(".")[1]


def breaches_in(value: ast.expr) -> list[tuple[type[Rule], str]]:
    """The breaches that an expression can be: ``Q2.open``, or one of several."""
    if isinstance(value, ast.IfExp):
        return breaches_in(value.body) + breaches_in(value.orelse)
    if not isinstance(value, ast.Attribute) or not isinstance(value.value, ast.Name):
        return []
    rule = NAMED.get(value.value.id)
    return [(rule, value.attr)] if rule is not None and hasattr(rule, value.attr) else []


@cache
def calls() -> list[tuple[type[Rule], str, ast.Call]]:
    """The calls ``Q2.open(...)`` of the source, and those of methods ``error(Q2.open, ...)``, which add what
    several breaches share.  The breach may also be a variable that the function chooses."""
    found = []
    for tree in trees():
        for scope in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            chosen = {
                target.id: node.value
                for node in ast.walk(scope)
                if isinstance(node, ast.Assign)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
            for node in ast.walk(scope):
                if isinstance(node, ast.Call):
                    is_helped = isinstance(node.func, ast.Attribute) and node.func.attr == "error"
                    value = node.args[0] if is_helped and node.args else node.func
                    if isinstance(value, ast.Name):
                        value = chosen.get(value.id, value)
                    found += [(rule, name, node) for rule, name in breaches_in(value)]
    return found


@cache
def shared_words() -> set[str]:
    """The words that methods ``error`` add."""
    return {
        each.arg
        for tree in trees()
        for scope in ast.walk(tree)
        if isinstance(scope, ast.FunctionDef) and scope.name == "error"
        for call in ast.walk(scope)
        if isinstance(call, ast.Call)
        for each in call.keywords
        if each.arg is not None
    }


def words_of(call: ast.Call) -> set[str | None]:
    """The keywords of a call, and None if it passes a dictionary on."""
    return {each.arg for each in call.keywords}


def said_by(rule: type[Rule], name: str) -> set[str]:
    """The words of a breach's message."""
    return set(re.findall(r"\{(\w+)\}", getattr(rule, name).message))


def test_every_rule_says_something() -> None:
    assert [label for label, rule in RULES.items() if not re.fullmatch(r"[A-Z0-9`].*\.", rule.says)] == []


def test_every_rule_has_a_test_or_a_reason() -> None:
    known = {layer: named_tests(layer) for layer in TESTS}
    wrong = []
    for label, rule in RULES.items():
        prefix = f"test_{label.replace('.', '_')}_"
        has_test = any(name.startswith(prefix) for name in known[layer_of(rule)])
        if has_test == bool(rule.untested):
            wrong.append(label)
    assert not wrong


@pytest.mark.parametrize("layer", TESTS)
def test_every_test_of_a_rule_is_of_a_declared_one(layer: str) -> None:
    prefixes = tuple(f"test_{label.replace('.', '_')}_" for label in RULES)
    named = [name for name in named_tests(layer) if re.match(r"test_([A-Z]{1,3}\d+|\d_\d+)_", name)]
    assert [name for name in named if not name.startswith(prefixes)] == []


def test_every_breach_is_raised() -> None:
    """Its name stands in the source, behind its rule or a variable that holds one."""
    used = {node.attr for tree in trees() for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert [f"{rule.__name__}.{name}" for rule, name, _ in BREACHES if name not in used] == []


def test_every_word_of_a_message_is_given() -> None:
    wrong = []
    for rule, name, call in calls():
        is_helped = isinstance(call.func, ast.Attribute) and call.func.attr == "error"
        words = said_by(rule, name) - GIVEN - (shared_words() if is_helped else set())
        keywords = words_of(call)
        if None not in keywords and not words <= keywords and "message" not in keywords:
            wrong.append(f"{rule.__name__}.{name} lacks {sorted(words - keywords)}")
    assert not wrong


def test_every_word_that_is_given_is_in_the_message() -> None:
    said: dict[ast.Call, set[str]] = defaultdict(set)
    for rule, name, call in calls():
        said[call] |= said_by(rule, name)
    wrong = {ast.unparse(call): words_of(call) - PARAMETERS - words - {None} for call, words in said.items()}
    assert {call: words for call, words in wrong.items() if words} == {}


def test_a_breach_has_a_message() -> None:
    texts = {
        (rule, name) for rule, name, call in calls() if any(each.arg == "message" for each in call.keywords)
    }
    assert [
        f"{r.__name__}.{name}" for r, name, each in BREACHES if not each.message and (r, name) not in texts
    ] == []


def test_a_report_prints_the_sentence_of_its_rule() -> None:
    report = Q2.open(None, list="a list").report
    assert f"  rule: Q2: {Q2.call}\n    Executed lists are of the queue's type" in report.text()
    assert report.rule_says == Q2.says


def test_a_refusal_says_the_given_value_once() -> None:
    error = error_of(
        RES_DESC, "{field} ({given}) is no {expected}.", field="Width", given=-1, expected="size"
    )
    assert isinstance(error, Error)
    report = error.report
    assert report.message == "Width (-1) is no size."
    assert (report.field, report.given, report.expected) == ("Width", "-1", "size")
    assert (report.severity, report.rule) == (Severity.ERROR, RES_DESC.rule)
