"""The pages of the Python API: which names stand on which page.  Sphinx takes their text from docstrings."""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from importlib import import_module
from inspect import isroutine, signature
from pathlib import Path
from types import ModuleType
from typing import Any, get_origin
from uuid import UUID

from dmlemu.d3d12 import Object
from dmlemu.graph import FUNCTIONS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from internal_methods import INTERNAL

_MODULES = {
    "dmlemu": "Sessions, evaluation, reports, chaos",
    "dmlemu.d3d12": "Direct3D 12",
    "dmlemu.dml": "DirectML",
    "dmlemu.graph": "Graphs as expressions",
    "dmlemu.reporting": "What a device reports",
    "dmlemu.checks": "Checks",
    "dmlemu.recording": "Records of dispatches",
    "dmlemu.testing": "Support for test suites",
    "dmlemu.testing.faults": "Fault injection",
    "dmlemu.testing.stage": "What the programs of the checks' pages stand on",
}
# Mirrors of large headers: a page of their own for each kind of name.
_SPLIT = {"dmlemu.d3d12", "dmlemu.dml"}


def pages() -> dict[str, str]:
    """Every page by its file name."""
    texts = {}
    rows = ["# Python API\n", "From the docstrings, as `help` prints them.\n", "| module | |\n| --- | --- |"]
    for name, about in _MODULES.items():
        module = import_module(name)
        stem = name.removeprefix("dmlemu.").replace(".", "-")
        rows.append(f"| [`{name}`]({stem}.md) | {about} |")
        if name not in _SPLIT:
            operators = list(FUNCTIONS.values()) if name == "dmlemu.graph" else []
            page = _page(module, f"{name}: {about}", lambda value, these=operators: value not in these)
            texts[f"{stem}.md"] = "\n".join([*page, *(_operators() if operators else ())])
            continue
        texts[f"{stem}.md"] = "\n".join(_page(module, f"{name}: {about}", _is_object))
        for suffix, of, wanted in (("structs", "Structs", _is_struct), ("enums", "Enums", _is_enum)):
            texts[f"{stem}-{suffix}.md"] = "\n".join(
                _page(module, f"{of} of {name}", wanted, with_text=False)
            )
            rows.append(f"| [{of} of `{name}`]({stem}-{suffix}.md) | |")
    rows.append(
        "\nOperator descs, such as `dml.GemmOperatorDesc`, are on the [pages of the operators]"
        "(../reference/operators/README.md).\n"
    )
    return {**texts, "README.md": "\n".join(rows)}


def _page(
    module: ModuleType, heading: str, wanted: Callable[[Any], bool], with_text: bool = True
) -> Iterator[str]:
    yield f"# {heading}\n"
    yield "```{eval-rst}"
    if with_text:
        yield f".. automodule:: {module.__name__}\n"
    else:
        yield f".. currentmodule:: {module.__name__}\n"
    named = {name: getattr(module, name) for name in module.__all__}
    here = {name: each for name, each in named.items() if not isinstance(each, ModuleType) and wanted(each)}
    constants = {
        name: value for name, value in here.items() if not isinstance(value, type) and not isroutine(value)
    }
    for name, value in here.items():
        if name not in constants:
            yield from _entry(module, name, value)
    yield "```\n"
    if constants:
        yield "## Values\n\n| name | value |\n| --- | --- |"
        yield from (f"| `{name}` | `{_shown(value)}` |" for name, value in constants.items())
        yield ""


def _operators() -> Iterator[str]:
    """The functions of operators, by the operators' pages."""
    yield "## Functions of operators\n\n| function | short name | operator |\n| --- | --- | --- |"
    short = {function.__name__: name for name, function in FUNCTIONS.items() if name != function.__name__}
    for name in sorted({function.__name__ for function in FUNCTIONS.values()}):
        also = f"`{short[name]}`" if name in short else ""
        yield f"| `{name}` | {also} | [{name.upper()}](../reference/operators/{name}.md) |"
    yield ""


def _shown(value: Any) -> str:
    """A number, an IID or a type; of objects their class."""
    if isinstance(value, (int, UUID)):
        return str(int(value) if isinstance(value, int) else value)
    return str(value) if get_origin(value) else type(value).__name__


def _entry(module: ModuleType, name: str, value: Any) -> Iterator[str]:
    if isroutine(value):
        yield f".. autofunction:: {module.__name__}.{name}\n"
        return
    first = next(each for each in _MODULES if getattr(import_module(each), name, None) is value)
    if first != module.__name__:
        yield f"``{name}`` is :class:`{first}.{name}`.\n"
        return
    made = issubclass(value, Object) and "context" in signature(value).parameters  # by a method of a device
    yield f".. autoclass:: {first}.{name}{'()' if made else ''}"
    yield "   :members:"
    if module.__name__ == "dmlemu.graph":
        yield "   :exclude-members: unary, binary, evaluate, evaluate_all"
    if module.__name__ in _SPLIT and _is_object(value):
        yield f"   :exclude-members: {', '.join(sorted(INTERNAL))}"
    if _is_enum(value):
        yield "   :undoc-members:"
    elif not issubclass(value, BaseException):
        yield "   :inherited-members: object, tuple, str, int"
    yield ""


def _is_enum(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, enum.Enum)


def _is_struct(value: Any) -> bool:
    return isinstance(value, type) and is_dataclass(value)


def _is_object(value: Any) -> bool:
    return not _is_enum(value) and not _is_struct(value)
