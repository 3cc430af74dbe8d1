"""Operator documentation from its declaration: the reference page, and the output of ``explain``."""

from __future__ import annotations

import dataclasses
import inspect
import sqlite3
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from .declared.definition import Definition, definition_class, ulps_of
from .declared.schema import (
    Allowed,
    Field,
    FieldKind,
    OperatorDesc,
    Table,
    camel,
    level_name,
    operator_fields,
    tables,
    tables_of_members,
)
from .enums import FeatureLevel, TensorDataType
from .operator_example import example_lines

__all__ = ["LAYOUTS", "MEASURED", "describe", "documentation", "measured_rows", "spans", "summary"]

MEASURED = Path(__file__).parent / "operators" / "measured.db"
"""What was compared with the references: the database of the campaign that ``make measured`` runs, which
takes ten minutes.  A clone does not have it before."""

LAYOUTS = (
    *("packed", "permuted", "padded", "broadcast", "overlapping", "longer than needed"),
    *("at an offset", "owned by DirectML"),
)

_KINDS = {
    FieldKind.INPUT_TENSOR: "input tensor",
    FieldKind.OUTPUT_TENSOR: "output tensor",
    FieldKind.OPERATOR_DESC: "operator desc",
}


def documentation(desc: type[OperatorDesc]) -> str:
    """The URL of Microsoft's documentation of the operator."""
    return (desc.__doc__ or "").split()[-1]


def measured_rows() -> list[list[str]]:
    """Operator, level, tensor, data types, and for each of ``LAYOUTS`` the ranks; no rows where it was not
    made."""
    if not MEASURED.exists():
        return []
    with closing(sqlite3.connect(f"{MEASURED.as_uri()}?mode=ro", uri=True)) as database:
        cells = database.execute(
            "SELECT DISTINCT operator, level, tensor, data_type, layout, rank FROM coverage"
        ).fetchall()
    ranks: dict[tuple[str, ...], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for *place, layout, rank in cells:
        ranks[tuple(place)][layout].add(rank)
    types: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for (operator, level, name, data_type), found in sorted(ranks.items()):
        by_layout = [spans(found[layout]) if layout in found else "" for layout in LAYOUTS]
        row = operator, level, name, *by_layout
        types[row].append(data_type)
    return sorted([*key[:3], ",".join(on), *key[3:]] for key, on in types.items())


def spans(ranks: Iterable[int]) -> str:
    """``1-4,8``."""
    ordered, parts = sorted(ranks), list[str]()
    while ordered:
        n = next((i for i, rank in enumerate(ordered) if rank != ordered[0] + i), len(ordered))
        parts.append(f"{ordered[0]}-{ordered[n - 1]}" if n > 1 else str(ordered[0]))
        ordered = ordered[n:]
    return ",".join(parts)


def describe(desc: type[OperatorDesc]) -> str:
    """The operator's page in Markdown: description, fields and their rules, types, reference code."""
    name = desc.TYPE.name
    place = "may be bound where an input is" if desc.IN_PLACE else "must not overlap an input"
    parts = [
        f"# {name}",
        f"`DML_OPERATOR_{name}` ({desc.TYPE.value}), `DML_{name}_OPERATOR_DESC`; in Python "
        f"`dml.{desc.__name__}`.\nSince feature level {level_name(desc.INTRODUCED)}. The output {place}.\n"
        f"[Microsoft's page]({documentation(desc)})",
        _meaning(desc),
        "## Fields",
        "\n".join(_fields(desc)),
        *_rules(desc),
        *_example(desc),
        "## Ranks and data types",
        "A device uses the table of the highest feature level that is not above its own.",
        "\n".join(_tables(desc)),
        *_reference(desc),
        *_accuracy(desc),
        *_measured(desc),
    ]
    return "\n\n".join(parts) + "\n"


def _meaning(desc: type[OperatorDesc]) -> str:
    """The description: the definition's docstring, or the formula of the facts if there is none."""
    definition = definition_class(desc.TYPE)
    if definition is not None:
        return inspect.cleandoc(definition.__doc__ or "")
    formula = "\n".join(inspect.cleandoc(desc.__doc__ or "").split("\n\n")[1:-1])
    return f"Not emulated yet: CreateOperator raises E_NOTIMPL.\n\n```text\n{formula}\n```"


def summary(desc: type[OperatorDesc], width: int = 66) -> str:
    """The first sentence of the operator's documentation, in one line of at most ``width`` characters."""
    definition = definition_class(desc.TYPE)
    if definition is None:
        return "(not emulated)"
    text = " ".join((definition.__doc__ or "").replace("``", "").split())
    return textwrap.shorten(text.split(". ")[0].rstrip("."), width, placeholder=" ...")


def _fields(desc: type[OperatorDesc]) -> Iterator[str]:
    yield "| field | in Python | what | |"
    yield "| --- | --- | --- | --- |"
    counted: set[str] = set()
    for item in operator_fields(desc):
        if item.count and item.count not in counted:
            counted.add(item.count)
            yield f"| `{item.count}` | | UINT | the length of `{item.name}` |"
        yield f"| `{item.c_name}` | `{item.name}` | {_what(item)} | {_need(item)} |"


def _rules(desc: type[OperatorDesc]) -> Iterator[str]:
    """The sentences of the definition's rules, in the order in which they are checked."""
    definition = definition_class(desc.TYPE)
    if definition is not None and definition.RULES:
        yield "## Rules"
        yield "\n".join(f"- {rule.sentence(desc)}" for rule in definition.RULES)
    if definition is not None and definition.USUAL:
        yield "Usual; a desc that differs is computed all the same, and a strict device reports it:"
        yield "\n".join(f"- {rule.sentence(desc)}" for rule in definition.USUAL)


def _example(desc: type[OperatorDesc]) -> Iterator[str]:
    lines = example_lines(desc)
    if lines:
        yield "## Example"
        yield f"```text\n{chr(10).join(lines).strip()}\n```"


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
    if desc.TABLES_BY:
        for member, support in sorted(tables_of_members(desc).items()):
            yield from _rows(desc, support, f"{member}: ")
    else:
        yield from _rows(desc, tables(desc))


def _rows(desc: type[OperatorDesc], support: Mapping[FeatureLevel, Table], prefix: str = "") -> Iterator[str]:
    c_names = {item.name: item.c_name for item in operator_fields(desc)}
    for level, table in sorted(support.items()):
        rows: dict[Allowed, list[str]] = {}
        for name, allowed in table.items():
            rows.setdefault(allowed, []).append(c_names[name])
        for allowed, names in rows.items():
            kinds = ", ".join(kind.name for kind in sorted(allowed.data_types))
            ranks = f"{allowed.min_rank} to {allowed.max_rank}"
            if allowed.min_rank == allowed.max_rank:
                ranks = str(allowed.min_rank)
            yield f"| {level_name(level)} | {prefix}{', '.join(names)} | {ranks} | {kinds} |"


def _reference(desc: type[OperatorDesc]) -> Iterator[str]:
    """The source of ``reference``, or of the function of an element that its family applies."""
    definition = definition_class(desc.TYPE)
    if definition is None:
        return
    own: Callable[..., Any] | None = vars(definition).get("reference") or vars(definition).get("function")
    if isinstance(own, np.ufunc):
        source = f"function = np.{own.__name__}"
    else:
        source = inspect.getsource(own or definition.reference)
    yield "## Reference"
    yield "The definition the kernels are tested against."
    yield f"```python\n{textwrap.dedent(source).rstrip()}\n```"


def _accuracy(desc: type[OperatorDesc]) -> Iterator[str]:
    """How far the tests let each type of float be from the reference, and why."""
    definition, types = definition_class(desc.TYPE), _float_outputs(desc)
    if definition is None or not types:
        return
    yield "## Accuracy"
    yield "How far floats may be from the reference, in units in the last place (ULP); integers are equal."
    rows = ["| data type | at most | because |", "| --- | --- | --- |"]
    for data_type in types:
        ulps = ulps_of(definition, data_type)
        reason = definition.ULPS_REASON if ulps else "both round the same number"
        if ulps < definition.ULPS:
            reason = "computed in FLOAT32 or more bits, then rounded"
        rows.append(f"| {data_type.name} | {ulps} ULP{_besides(definition)} | {reason} |")
    yield "\n".join(rows)
    if any(field.name == "fused_activation" for field in dataclasses.fields(desc)):
        yield "A fused activation adds its own ULP."


def _besides(definition: type[Definition]) -> str:
    """The part of an error that is not counted in ULP."""
    text = ""
    if definition.SUM_ERROR:
        text += f" + {_power(definition.SUM_ERROR)} of the sum of the absolute values of the terms"
    if definition.LARGEST_ERROR:
        text += f" + {_power(definition.LARGEST_ERROR)} of the largest result, or of 1"
    return text


def _power(error: float) -> str:
    return f"2^{round(np.log2(error))}"


def _float_outputs(desc: type[OperatorDesc]) -> list[TensorDataType]:
    """The types of floats that a table of any level allows for an output."""
    outputs = {item.name for item in operator_fields(desc) if item.kind is FieldKind.OUTPUT_TENSOR}
    supports = tables_of_members(desc).values() if desc.TABLES_BY else [tables(desc)]
    allowed = {
        data_type
        for support in supports
        for table in support.values()
        for name, each in table.items()
        if name in outputs
        for data_type in each.data_types
    }
    return sorted(each for each in allowed if each.name.startswith("FLOAT"))


def _measured(desc: type[OperatorDesc]) -> Iterator[str]:
    """Tables of what was compared with the reference, and of what was not."""
    if definition_class(desc.TYPE) is None:
        return
    yield "## Tested"
    rows = [row for name, *row in measured_rows() if name == desc.TYPE.name]
    if not rows:
        yield "Not measured here: `make measured` in a clone adds the table, in ten minutes."
        return
    yield "Compared with the reference, by the layout of a tensor, were these numbers of dimensions:"
    used = [i for i, _ in enumerate(LAYOUTS, 3) if any(row[i] for row in rows)]
    heads = ["from level", "field", "data types", *(LAYOUTS[i - 3] for i in used)]
    table = [heads, ["---"] * len(heads)]
    for row in rows:
        ranks = [row[i].replace("-", " to ") for i in used]
        table.append([*row[:2], *(each.replace(",", ", ") for each in (row[2], *ranks))])
    yield "\n".join(
        f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |") for cells in table
    )
    missing = _not_reached(desc, rows)
    if missing:
        yield "Allowed by the tables, and not reached (a rule may exclude some):"
        yield "\n".join(f"- {line}" for line in missing)


def _not_reached(desc: type[OperatorDesc], rows: Iterable[Sequence[str]]) -> list[str]:
    """Types of a field of the tables for which no rank was compared."""
    found = {(row[0], row[1], each) for row in rows for each in row[2].split(",")}
    supports = tables_of_members(desc).values() if desc.TABLES_BY else [tables(desc)]
    missing: dict[tuple[str, str], set[str]] = defaultdict(set)
    for support in supports:
        for level, table in support.items():
            for name, allowed in table.items():
                of_field = level_name(level), camel(name)
                missing[of_field].update(
                    each.name for each in allowed.data_types if (*of_field, each.name) not in found
                )
    return [
        f"from level {level}, {field}: {', '.join(sorted(each))}"
        for (level, field), each in missing.items()
        if each
    ]
