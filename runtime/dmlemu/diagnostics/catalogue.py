"""All rows: the checks by id and by group, and the rules by label.

Every module of the package that is named ``rows`` belongs to it: a new room edits no list.
"""

from __future__ import annotations

import importlib
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from .declaration import Declaration
from .groups import GROUPS, Group
from .report import loading, set_sentences
from .rule import ALL_RULES, RULES, Breach, Rule, rules_named

__all__ = ["breaches_of", "catalogue", "groups", "is_built_in", "rules"]

_PACKAGE = Path(__file__).parents[1]


@cache
def _load() -> None:
    """Imports all rows."""
    for folder, _, files in os.walk(_PACKAGE, onerror=_fail):
        if "rows.py" in files:
            parts = Path(folder).relative_to(_PACKAGE).parts
            importlib.import_module(".".join(("dmlemu", *parts, "rows")))


def _fail(error: OSError) -> None:
    raise error


@cache
def groups() -> dict[Group, tuple[Declaration, ...]]:
    """The checks of each group by id, in the order of the reference."""
    _load()
    return {group: tuple(_completed(group.rows[id]) for id in sorted(group.rows)) for group in GROUPS}


@cache
def catalogue() -> dict[str, Declaration]:
    """Every declared check by id, with the rules and the D3D12_MESSAGE_IDs of its breaches."""
    return {row.id: row for rows in groups().values() for row in rows}


def is_built_in(declaration: Declaration) -> bool:
    """Whether it is a row of dmlemu itself, and not one of the same id."""
    return any(group.rows.get(declaration.id) is declaration for group in GROUPS)


@cache
def rules() -> dict[str, type[Rule]]:
    """Every rule by its label, in the order of letters and numbers: ``CL9`` before ``CL10``."""
    _load()
    return {label: RULES[label] for label in sorted(RULES, key=_order)}


def _sentences(text: str) -> list[str]:
    """Those of all rules that a text names: rooms that the program has not used yet are loaded now."""
    with loading():
        rules()
    return [rule.says for rule in rules_named(text)]


set_sentences(_sentences)


def _order(label: str) -> list[tuple[str, int]]:
    return [(letters, int(digits or 0)) for letters, digits in re.findall(r"([^\d]*)(\d*)", label)]


def breaches_of(id: str) -> tuple[Breach, ...]:
    """The ways to break a rule that are reported as this check, by rule."""
    return _breaches().get(id, ())


@cache
def _breaches() -> dict[str, tuple[Breach, ...]]:
    """The breaches of each check by its id."""
    _load()
    found: dict[str, list[Breach]] = {}
    for rule in sorted(ALL_RULES, key=lambda rule: _order(rule.label)):
        for each in rule.breaches():
            found.setdefault(each.check.id, []).append(each)
    return {id: tuple(breaches) for id, breaches in found.items()}


def _completed(row: Declaration) -> Declaration:
    """The declaration with what its breaches add: the labels of their rules, and D3D12_MESSAGE_IDs."""
    breaches = breaches_of(row.id)
    ids = (int(each.message_id) for each in breaches if each.message_id)
    rule, named = row.rule, {each.label for each in rules_named(row.rule)}
    labels = dict.fromkeys(each.rule.label for each in breaches if each.rule.label)
    if row.refusal and labels and not named:
        rule = ": ".join(filter(None, (", ".join(labels), row.rule)))
    return replace(row, rule=rule, message_ids=tuple(dict.fromkeys((*row.message_ids, *ids))))
