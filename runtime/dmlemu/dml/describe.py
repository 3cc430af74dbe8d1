"""An operator in words, from its declaration: the page of the reference, and what ``explain`` prints."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from .enums import FeatureLevel, ReduceFunction
from .operators.base import (
    Allowed,
    Field,
    FieldKind,
    OperatorDesc,
    camel,
    level_name,
    operator_fields,
)
from .operators.reduce import SUPPORT_BY_FUNCTION, ReduceOperatorDesc

__all__ = ["describe", "documentation", "summary"]

_KINDS = {
    FieldKind.INPUT_TENSOR: "input tensor",
    FieldKind.OUTPUT_TENSOR: "output tensor",
    FieldKind.OPERATOR_DESC: "operator desc",
}


def documentation(desc: type[OperatorDesc]) -> str:
    """Where Microsoft documents the operator."""
    page = f"ns-directml-dml_{desc.TYPE.name.lower()}_operator_desc"
    if desc.INTRODUCED >= FeatureLevel.LEVEL_5_1:
        return f"https://learn.microsoft.com/windows/ai/directml/api/{page}"
    return f"https://learn.microsoft.com/windows/win32/api/directml/{page}"


def describe(desc: type[OperatorDesc]) -> str:
    """The operator's page in Markdown: what it does, its fields, types by feature level, its reference."""
    name = desc.TYPE.name
    place = "may be bound where an input is" if desc.IN_PLACE else "must not overlap an input"
    parts = [
        f"# {name}",
        f"`DML_OPERATOR_{name}` ({desc.TYPE.value}), `DML_{name}_OPERATOR_DESC`; in Python "
        f"`dml.{desc.__name__}`.\nSince feature level {level_name(desc.INTRODUCED)}. The output {place}.\n"
        f"[Microsoft's page]({documentation(desc)})",
        inspect.cleandoc(desc.__doc__ or ""),
        "## Fields",
        "\n".join(_fields(desc)),
        "## Ranks and data types",
        "A device uses the table of the highest feature level that is not above its own.",
        "\n".join(_tables(desc)),
        "## Reference",
        "The definition the kernels are tested against.",
        "```python\n" + "\n".join(_reference(desc)) + "\n```",
    ]
    return "\n\n".join(parts) + "\n"


def summary(desc: type[OperatorDesc]) -> str:
    """The first sentence of the operator's documentation, in one line."""
    text = " ".join((desc.__doc__ or "").replace("``", "").split())
    return textwrap.shorten(text.split(". ")[0].rstrip("."), 76, placeholder=" ...")


def _fields(desc: type[OperatorDesc]) -> Iterator[str]:
    yield "| field | in Python | what | |"
    yield "| --- | --- | --- | --- |"
    counted: set[str] = set()
    for item in operator_fields(desc):
        if item.count and item.count not in counted:
            counted.add(item.count)
            yield f"| `{item.count}` | | UINT | the length of `{item.name}` |"
        yield f"| `{item.c_name}` | `{item.name}` | {_what(item)} | {_need(item)} |"


def _what(item: Field) -> str:
    if item.kind is FieldKind.ENUM and item.enum is not None:
        names = list(item.enum.__members__)
        return ", ".join(names) if len(names) <= 4 else f"`dml.{item.enum.__name__}`"
    if item.type_from:
        return f"{item.kind.value} of the type that `{camel(item.type_from)}` names"
    what = _KINDS.get(item.kind, item.kind.value.removeprefix("const "))
    return f"array of {what}s" if item.array else what


def _need(item: Field) -> str:
    if item.fusable:
        return "required; absent in a fused activation"
    return "optional" if item.optional else "required"


def _tables(desc: type[OperatorDesc]) -> Iterator[str]:
    yield "| from level | field | dimensions | data types |"
    yield "| --- | --- | --- | --- |"
    if desc is ReduceOperatorDesc:
        for function in ReduceFunction:
            yield from _rows(SUPPORT_BY_FUNCTION[function], f"{function.name}: ")
    else:
        yield from _rows(desc.SUPPORT)


def _rows(support: Any, prefix: str = "") -> Iterator[str]:
    for level, table in sorted(support.items()):
        rows: dict[Allowed, list[str]] = {}
        for name, allowed in table.items():
            rows.setdefault(allowed, []).append(camel(name))
        for allowed, names in rows.items():
            kinds = ", ".join(kind.name for kind in sorted(allowed.data_types))
            ranks = f"{allowed.min_rank} to {allowed.max_rank}"
            if allowed.min_rank == allowed.max_rank:
                ranks = str(allowed.min_rank)
            yield f"| {level_name(level)} | {prefix}{', '.join(names)} | {ranks} | {kinds} |"


def _reference(desc: type[OperatorDesc]) -> Iterator[str]:
    """The source of ``reference``, or of the function of an element that its family applies."""
    own: Callable[..., Any] | None = vars(desc).get("reference") or vars(desc).get("function")
    source = inspect.getsource(own or desc.reference)
    yield textwrap.dedent(source).rstrip()
