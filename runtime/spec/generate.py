"""Generates the operator descs and enums of ``dmlemu.dml`` and the report from the facts.

``operators.json`` and ``enums.json`` hold the facts, ``choices.json`` the decisions on questions that the
sources leave open.  Undecided questions are listed in ``report.md``, which must state that none is left.
Run ``python runtime/spec/generate.py``; with ``--check`` it only lists files that are out of date.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DML = HERE.parent / "dmlemu" / "dml"
WIDTH = 110

Facts = dict[str, Any]

OPERATORS: Facts = json.loads((HERE / "operators.json").read_text())
ENUMS: Facts = json.loads((HERE / "enums.json").read_text())
CHOICES: Facts = json.loads((HERE / "choices.json").read_text())


def snake(name: str) -> str:
    """``OutputROITensor`` -> ``output_roi_tensor``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def camel(name: str) -> str:
    """``output_roi_tensor`` -> ``OutputRoiTensor``."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def enum_name(c_name: str) -> str:
    """``DML_TENSOR_DATA_TYPE`` -> ``TensorDataType``."""
    return camel(c_name.removeprefix("DML_").lower())


def operator_name(struct: str) -> str:
    """``DML_GEMM_OPERATOR_DESC`` -> ``GEMM``."""
    return struct.removeprefix("DML_").removesuffix("_OPERATOR_DESC")


def level(name: str) -> str:
    """``DML_FEATURE_LEVEL_1_0`` -> ``1_0``."""
    return name.removeprefix("DML_FEATURE_LEVEL_")


# --- open questions ---


def undecided() -> Iterator[str]:
    """A sentence for each question that neither the facts nor the choices answer."""
    for struct, facts in OPERATORS.items():
        name = operator_name(struct)
        if facts["in_place"] is None and name not in CHOICES["in_place"]:
            yield f"{name}: may the output be bound where an input is?"
        for note in facts["unsure"]:
            if note.startswith("CONFLICT") and name not in CHOICES["tables"] | CHOICES["settled"]:
                yield f"{name}: {note}"
        for at, table in facts["tensor_support"].items():
            for tensor, allowed in table.items():
                if not (allowed["dtypes"] and allowed["dims"]) and name not in CHOICES["tables"]:
                    yield f"{name}.{tensor}: which ranks and data types at {level(at)}?"
        types = [field["name"] for field in facts["fields"] if field["type"] == "DML_TENSOR_DATA_TYPE"]
        for field in facts["fields"]:
            if field["type"] == "DML_SCALAR_UNION" and len(types) != 1:
                yield f"{name}.{field['name']}: which field gives its type?"
            if field["type"].startswith("DML_") and field["type"] not in ENUMS | _STRUCTS:
                yield f"{name}.{field['name']}: what is {field['type']}?"
    for kind in ("in_place", "tables", "settled"):
        for name in CHOICES[kind]:
            if f"DML_{name}_OPERATOR_DESC" not in OPERATORS:
                yield f"choices.json decides {kind} of {name}, which DirectML does not have"


def report() -> str:
    questions = list(undecided())
    head = "# What the facts leave open\n\nWritten by `generate.py`.\n\n"
    return head + ("\n".join(f"- {each}" for each in questions) or "Nothing.") + "\n"


# --- enums ---


def enums() -> str:
    values = {struct: facts["value"] for struct, facts in OPERATORS.items()}
    operators = {"INVALID": 0} | {operator_name(struct): value for struct, value in values.items()}
    operators["SCATTER"] = operators["SCATTER_ELEMENTS"]  # the older name of the same operator
    known = ENUMS | {"DML_OPERATOR_TYPE": {"flags": False, "members": operators}}
    names = ",\n".join(f'    "{enum_name(each)}"' for each in sorted(known))
    return _HEAD_OF_ENUMS + f"__all__ = [\n{names},\n]\n" + "".join(_enum(*each) for each in known.items())


def _enum(c_name: str, facts: Facts) -> str:
    base = "IntFlag" if facts["flags"] else "IntEnum"
    members = "\n".join(
        f"    {name} = {hex(value) if value >= 0x1000 else value}" for name, value in facts["members"].items()
    )
    return f'\n\nclass {enum_name(c_name)}({base}):\n    """Mirrors ``{c_name}``."""\n\n{members}\n'


_HEAD_OF_ENUMS = '''\
"""The enums of DirectML.h: members keep their names without the prefix, and their numbers.

Documented at https://learn.microsoft.com/windows/win32/api/directml/ (enumerations).
Written by runtime/spec/generate.py.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

'''

# --- operator descs ---

_STRUCTS = {"DML_SIZE_2D": "Size2D", "DML_SCALAR_UNION": "ScalarUnion"}
_NUMBERS = {"UINT": "uint", "INT": "int32", "FLOAT": "float32", "float": "float32", "BOOL": "boolean"}
_PYTHON = {"uint": "int", "int32": "int", "float32": "float", "boolean": "bool"}
_OLDER_NAMES = {"ScatterOperatorDesc": "ScatterElementsOperatorDesc"}


def descs() -> str:
    used = sorted(
        {enum_name(f["type"]) for o in OPERATORS.values() for f in o["fields"] if f["type"] in ENUMS}
    )
    classes = [f"{camel(operator_name(struct).lower())}OperatorDesc" for struct in OPERATORS]
    names = sorted([*classes, *_OLDER_NAMES])
    imported = ",\n    ".join(sorted({*used, "OperatorType"}))
    listed = ",\n".join(f'    "{name}"' for name in names)
    head = _HEAD_OF_DESCS.replace("ENUMS", imported).replace("NAMES", listed)
    older = (f"\n\n{name} = {newer}\n" for name, newer in _OLDER_NAMES.items())
    return (
        head + "".join("\n\n" + desc(struct, facts) for struct, facts in OPERATORS.items()) + "".join(older)
    )


def desc(struct: str, facts: Facts) -> str:
    """The class of one operator."""
    name = operator_name(struct)
    fused = name in CHOICES["fused"]
    in_place = CHOICES["in_place"].get(name, [facts["in_place"]])[0]
    lines = [
        f"class {camel(name.lower())}OperatorDesc(",
        "    OperatorDesc,",
        f"    type=OperatorType.{name},",
        f'    introduced="{level(facts["introduced"])}",',
        f"    in_place={in_place},",
        *_tables_argument(name, facts),
        "):",
        *_docstring(struct, facts),
        "",
    ]
    counts = {field["count_field"] for field in facts["fields"]}
    shapes = list(facts["tensor_support"].values())[-1]
    types = [snake(field["name"]) for field in facts["fields"] if field["type"] == "DML_TENSOR_DATA_TYPE"]
    for field in facts["fields"]:
        if field["name"] not in counts:
            lines.append(_field(field, fused, types, shapes.get(field["name"], {}).get("sizes")))
    return "\n".join(lines) + "\n"


def _docstring(struct: str, facts: Facts) -> list[str]:
    text = f"{facts['formula']}".replace("\\", "\\\\").replace('"""', "'''")
    body = textwrap.wrap(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    lines = [f'"""Mirrors ``{struct}``.', "", *body, "", f'{page(struct, facts)}\n    """']
    return [f"    {line}" if line else "" for line in lines]


def page(struct: str, facts: Facts) -> str:
    """The URL of Microsoft's documentation of the operator."""
    new = tuple(map(int, level(facts["introduced"]).split("_"))) >= (5, 1)
    root = "windows/ai/directml/api" if new else "windows/win32/api/directml"
    return f"https://learn.microsoft.com/{root}/ns-directml-{struct.lower()}"


def _tables_argument(name: str, facts: Facts) -> list[str]:
    by_function = facts.get("tensor_support_by_function")
    if by_function is None:
        return ['    tables="""', *[f"    {row}" for row in _rows(name, facts["tensor_support"])], '    """,']
    grouped: dict[tuple[str, ...], list[str]] = {}
    for function, support in by_function.items():
        grouped.setdefault(tuple(_rows(name, support)), []).append(
            function.removeprefix("DML_REDUCE_FUNCTION_")
        )
    lines = ['    tables_by="function",', "    tables={"]
    for rows, functions in grouped.items():
        lines += [
            f'        "{" ".join(functions)}": """',
            *[f"        {row}" for row in rows],
            '        """,',
        ]
    return [*lines, "    },"]


def _rows(name: str, support: Facts) -> list[str]:
    """``1_0 ATensor BTensor: 4-5 FLOAT32``: from that level on, these tensors have these ranks and types."""
    rows = []
    for at, table in support.items():
        grouped: dict[tuple[str, str], list[str]] = {}
        for tensor, allowed in table.items():
            low, high = allowed["dims"]
            ranks = str(low) if low == high else f"{low}-{high}"
            grouped.setdefault((ranks, " ".join(allowed["dtypes"])), []).append(tensor)
        rows += [f"{level(at)} {' '.join(who)}: {ranks} {types}" for (ranks, types), who in grouped.items()]
    chosen = CHOICES["tables"].get(name, {"lines": []})["lines"]
    levels = {row.split()[0] for row in chosen}
    rows = [row for row in rows if row.split()[0] not in levels] + chosen
    return sorted(rows, key=lambda row: tuple(map(int, row.split()[0].split("_"))))


def _field(field: Facts, fused: bool, types: list[str], shape: str | None) -> str:
    name, kind = snake(field["name"]), field["type"]
    arguments = [] if camel(name) == field["name"] else [f'c_name="{field["name"]}"']
    call, annotation = _call_and_annotation(field, fused, types, arguments)
    if field["count_field"]:
        arguments.insert(0, f'count="{field["count_field"]}"')
        annotation = f"Sequence[{annotation}]"
    if field["optional"] or (fused and field["kind"] != "attribute"):
        arguments.insert(0, "default=None")
        annotation += " | None"
    if fused and field["kind"] != "attribute":
        arguments.append("fusable=True")
    elif field["optional"] and kind in _NUMBERS:
        raise ValueError(f"optional {kind}")
    line = f"    {name}: {annotation} = schema.{call}({', '.join(arguments)})"
    comment = f"  # {shape}" if shape else ""
    return line + comment if len(line + comment) <= WIDTH else line


def _call_and_annotation(
    field: Facts, fused: bool, types: list[str], arguments: list[str]
) -> tuple[str, str]:
    kind = field["type"]
    element = kind.removeprefix("const ").removesuffix("*")
    if field["kind"] != "attribute":
        return field["kind"], "BufferTensorDesc"
    if kind in _NUMBERS:
        return _NUMBERS[kind], _PYTHON[_NUMBERS[kind]]
    if element in _NUMBERS:
        return f"{_NUMBERS[element]}_array", _PYTHON[_NUMBERS[element]]
    if kind in ENUMS:
        arguments.append(enum_name(kind))
        return "enumeration", enum_name(kind)
    if kind == "DML_SCALAR_UNION":
        arguments.append(f'type_from="{types[0]}"')
        return "scalar_union", "ScalarUnion"
    if kind == "DML_SIZE_2D":
        return "size_2d", "Size2D"
    if element == "DML_SCALE_BIAS":
        return "scale_bias", "ScaleBias"
    if element == "DML_OPERATOR_DESC":
        return "operator_desc", "OperatorDesc"
    raise ValueError(kind)


_HEAD_OF_DESCS = '''\
"""Every operator desc of DirectML.h, in the order of DML_OPERATOR_TYPE.

Written by runtime/spec/generate.py.  Comments beside tensors are the dimensions that the newest table of
the operator's page names; [x] is optional.  Operator definitions (rules, kernels, reference) are in
``dml/operators``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..enums import (
    ENUMS,
)
from ..structs import ScalarUnion, ScaleBias, Size2D
from ..tensor_desc import BufferTensorDesc
from . import schema
from .schema import OperatorDesc

__all__ = [
NAMES,
]
'''


def main() -> int:
    texts = {
        DML / "enums.py": enums(),
        DML / "declared" / "descs.py": descs(),
        HERE / "report.md": report(),
    }
    wrong = [path for path, text in texts.items() if not path.exists() or path.read_text() != text]
    questions = list(undecided())
    for question in questions:
        print(f"not decided: {question}", file=sys.stderr)
    if "--check" in sys.argv[1:]:
        for path in wrong:
            print(f"{path} is not what the facts say: run make docs", file=sys.stderr)
        return 1 if wrong or questions else 0
    for path in wrong:
        path.write_text(texts[path])
    return 1 if questions else 0


if __name__ == "__main__":
    sys.exit(main())
