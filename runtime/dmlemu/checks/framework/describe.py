"""Text of declarations for the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import fill, shorten

from ...diagnostics.catalogue import groups, title
from ...diagnostics.declaration import Declaration
from ...errors import Strictness

__all__ = ["advice_on_suppressing", "describe", "levels", "listing", "pages"]

_WIDTH = 100


def listing(names: set[str]) -> str:
    """One line for each of these checks, by group."""
    parts = []
    for group, rows in groups().items():
        lines = [_line(row) for row in rows if row.id in names]
        if lines:
            parts.append("\n".join([title(group), *lines]))
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
    if check.message_ids:
        yield f"D3D12_MESSAGE_ID: {', '.join(str(int(each)) for each in check.message_ids)}"
    yield f"Speaks at strictness {levels(check.level)}."
    yield advice_on_suppressing(check)


def pages(rule: str) -> list[str]:
    """Microsoft's pages on the methods, interfaces and structs that a rule names, as URLs."""
    found = re.findall(
        r"\b(I(?:D3D12|DML)\w+)(?:::(\w+))?|\b((?:D3D12|DML)_\w+_(?:DESC|BINDING|HANDLE))\b", rule
    )
    return [_url(*names) for names in dict.fromkeys(found)]


def _url(interface: str, method: str, struct: str) -> str:
    header = "directml" if (interface or struct).startswith(("IDML", "DML")) else "d3d12"
    kind = "ns" if struct else "nf" if method else "nn"
    page = "-".join(filter(None, (interface, method, struct))).lower()
    return f"https://learn.microsoft.com/windows/win32/api/{header}/{kind}-{header}-{page}"


def levels(level: Strictness) -> str:
    """The levels at which a check of that level is enabled."""
    order = [Strictness.STRICT, Strictness.DEBUG, Strictness.RUNTIME]
    return ", ".join(each.value for each in order[: order.index(level) + 1])


def advice_on_suppressing(check: Declaration) -> str:
    """How to suppress a check, or why it cannot be suppressed."""
    if check.refusal:
        return (
            "It cannot be suppressed: the call itself refuses and does nothing. "
            "Change the call, or catch dmlemu.Error."
        )
    return f'Suppress it with device.reports.suppress("{check.id}", "the reason").'
