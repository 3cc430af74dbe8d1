"""Text of declarations for the command line."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill, shorten

from ...diagnostics.catalogue import breaches_of, groups
from ...diagnostics.declaration import Declaration
from ...diagnostics.rule import Rule, rules_named
from ...diagnostics.rule_pages import pages
from ...errors import Strictness

__all__ = ["advice_on_suppressing", "describe", "describe_rule", "levels", "listing"]

_WIDTH = 100


def listing(names: set[str]) -> str:
    """One line for each of these checks, by group."""
    parts = []
    for group, rows in groups().items():
        lines = [_line(row) for row in rows if row.id in names]
        if lines:
            parts.append("\n".join([group.title, *lines]))
    return "\n\n".join(parts)


def _line(check: Declaration) -> str:
    return f"  {check.id:27} {check.severity.name:10} {shorten(check.title, 70, placeholder=' ...')}"


def describe(check: Declaration) -> str:
    """Everything that a check's declaration contains."""
    return "\n\n".join(
        paragraph if "https://" in paragraph else fill(paragraph, _WIDTH) for paragraph in _paragraphs(check)
    )


def _paragraphs(check: Declaration) -> Iterator[str]:
    yield f"{check.id} ({check.severity.name}, {check.when.value})"
    yield f"Reported when {check.title}."
    yield f"Why: {check.why}"
    yield f"Fix: {check.fix}"
    if check.rule:
        yield "\n".join([f"Rule: {check.rule}", *map("  {}".format, pages(check.rule))])
    rules = dict.fromkeys([*rules_named(check.rule), *(each.rule for each in breaches_of(check.id))])
    for rule in (each for each in rules if each.label):
        yield f"{rule.label}: {rule.says}{_message_ids(rule, check.id)}"
    if check.message_ids:
        yield f"D3D12_MESSAGE_ID: {', '.join(str(int(each)) for each in check.message_ids)}"
    yield f"Speaks at strictness {levels(check.level)}."
    yield advice_on_suppressing(check)


def describe_rule(rule: type[Rule]) -> str:
    """Everything that a rule's row contains, and the checks that report it."""
    checks = sorted({each.check.id for each in rule.breaches()})
    paragraphs = [f"{rule.label}: {rule.says}"]
    if rule.call:
        paragraphs.append("\n".join([f"Documented by {rule.call}", *map("  {}".format, pages(rule.call))]))
    paragraphs += [f"{id} reports it{_message_ids(rule, id)}." for id in checks]
    if rule.untested:
        paragraphs.append(f"Not tested: {rule.untested}")
    return "\n\n".join(each if "https://" in each else fill(each, _WIDTH) for each in paragraphs)


def _message_ids(rule: type[Rule], id: str) -> str:
    """`` (D3D12_MESSAGE_ID 544, 837)``: those of the breaches of a rule that are reported as this check."""
    found = dict.fromkeys(
        int(each.message_id) for each in rule.breaches() if each.check.id == id and each.message_id
    )
    return f" (D3D12_MESSAGE_ID {', '.join(map(str, found))})" if found else ""


def levels(level: Strictness) -> str:
    """The levels at which a check of that level is enabled."""
    order = [Strictness.STRICT, Strictness.DEBUG, Strictness.RUNTIME]
    return ", ".join(each.value for each in order[: order.index(level) + 1])


def advice_on_suppressing(check: Declaration) -> str:
    """How to suppress a check, or why it cannot be suppressed."""
    if check.refusal:
        has_effect = check.level is not Strictness.RUNTIME  # where calls do not raise
        others = (
            f" Under 'dmlemu exec' it has its effect: --suppress {check.id}=REASON." if has_effect else ""
        )
        return (
            "It cannot be suppressed: the call itself refuses and does nothing. "
            f"Change the call, or handle its failure.{others}"
        )
    return f'Suppress it with device.reports.suppress("{check.id}", "the reason").'
