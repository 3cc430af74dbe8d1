"""``dmlemu adapters``, ``explain`` and ``checks``: what there is, for people and as JSON."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from .. import d3d12
from ..diagnostics.reporting.files import print_text
from ..suggestions import nearest, question
from .dxdispatch.printing import format_bytes
from .usage import HELP, UsageError

if TYPE_CHECKING:
    from ..diagnostics.declaration import Declaration
    from ..diagnostics.rule import Rule
    from ..dml.declared.schema import OperatorDesc

__all__ = ["add_commands", "print_adapters"]


def add_commands(commands: Any) -> None:
    """Adds the commands to the command line."""
    adapters = commands.add_parser("adapters", help=HELP["adapters"])
    adapters.set_defaults(run=_adapters)
    explain = commands.add_parser("explain", help=HELP["explain"])
    name = explain.add_argument("name", nargs="?", metavar="NAME", help="for instance GEMM, HAZARD_RAW or Q2")
    name.completer = _names
    explain.set_defaults(run=_explain)
    checks = commands.add_parser("checks", help=HELP["checks"])
    check = checks.add_argument(
        "check", nargs="?", metavar="ID", help="for instance HAZARD_RAW; a pattern lists those that match"
    )
    check.completer = _checks_named
    checks.set_defaults(run=_checks)
    for each in (adapters, explain, checks):
        each.add_argument("--json", action="store_true", dest="as_json", help="print JSON for programs")


def _names(**_: Any) -> list[str]:
    """For the completion of shells: operators and checks."""
    from ..dml.declared import declared

    return [kind.name for kind in declared()] + _checks_named()


def _checks_named(**_: Any) -> list[str]:
    from ..checks import catalogue

    return list(catalogue())


def _print_page(text: str) -> None:
    """Markdown: on a terminal by rich, if the extra ``cli`` is installed."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.markdown import Markdown
        except ImportError:
            pass
        else:
            Console().print(Markdown(text))
            return
    print(text, end="")


def _print_json(value: Any) -> int:
    print(json.dumps(value, indent=2, ensure_ascii=False))
    return 0


# --- adapters ---


def _adapters(parsed: Namespace) -> int:
    if parsed.as_json:
        return _print_json([_adapter(each) for each in d3d12.create_adapter_list()])
    print_adapters()
    return 0


def _adapter(adapter: d3d12.Adapter) -> dict[str, Any]:
    names = ("is_hardware", "is_integrated", "dedicated_adapter_memory", "dedicated_system_memory")
    return {
        "driver_description": adapter.driver_description,
        "driver_version": _version(adapter),
        **{name: getattr(adapter, name) for name in names},
        "shared_system_memory": adapter.shared_system_memory,
    }


def _version(adapter: d3d12.Adapter) -> str:
    return ".".join(str(adapter.driver_version >> shift & 0xFFFF) for shift in (48, 32, 16, 0))


def print_adapters() -> None:
    """The emulated adapters, as DxDispatch prints those of Windows."""
    for adapter in d3d12.create_adapter_list():
        print(
            adapter.driver_description,
            f"-Version: {_version(adapter)}",
            f"-Hardware: {str(adapter.is_hardware).lower()}",
            f"-Integrated: {str(adapter.is_integrated).lower()}",
            f"-Dedicated Adapter Memory: {format_bytes(adapter.dedicated_adapter_memory)}",
            f"-Dedicated System Memory: {format_bytes(adapter.dedicated_system_memory)}",
            f"-Shared System Memory: {format_bytes(adapter.shared_system_memory)}",
            "",
            sep="\n",
        )


# --- operators ---


def _explain(parsed: Namespace) -> int:
    from ..checks import catalogue
    from ..diagnostics.catalogue import rules
    from ..dml.declared import find_operator

    name = (parsed.name or "").upper()
    if not name:
        return _list_operators(parsed.as_json)
    if name in catalogue():
        return _explain_check(catalogue()[name], parsed.as_json)
    if name in rules():
        return _explain_rule(rules()[name], parsed.as_json)
    try:
        operator = find_operator(name)
    except ValueError:
        near = (
            question(nearest(name.removeprefix("DML_OPERATOR_"), _names()))
            or "'dmlemu explain' lists the operators"
        )
        raise UsageError(f"no operator, check or rule is called {name}; {near}") from None
    if parsed.as_json:
        return _print_json(_operator(operator))
    from ..dml.operator_page import describe

    _print_page(describe(operator))
    return 0


def _explain_rule(rule: type[Rule], as_json: bool) -> int:
    from ..checks.framework.describe import describe_rule

    if as_json:
        checks = sorted({each.check.id for each in rule.breaches()})
        return _print_json({"label": rule.label, "says": rule.says, "call": rule.call, "checks": checks})
    _print_page(describe_rule(rule))
    return 0


def _list_operators(as_json: bool) -> int:
    from ..dml.declared import declared
    from ..dml.operator_page import summary

    operators = sorted(declared().items(), key=lambda item: item[0].name)
    if as_json:
        return _print_json([_summary(operator) for _, operator in operators])
    for kind, operator in operators:
        print(f"{kind.name:43} {summary(operator)}")
    return 0


def _summary(operator: type[OperatorDesc]) -> dict[str, Any]:
    from ..dml.declared.schema import level_name
    from ..dml.operator_page import documentation, summary

    return {
        "name": operator.TYPE.name,
        "value": operator.TYPE.value,
        "since_level": level_name(operator.INTRODUCED),
        "in_place": operator.IN_PLACE,
        "summary": summary(operator),
        "documentation": documentation(operator),
    }


def _operator(operator: type[OperatorDesc]) -> dict[str, Any]:
    from ..dml.declared.schema import level_name, operator_fields, tables, tables_of_members

    fields: list[dict[str, Any]] = [
        {
            "name": item.c_name,
            "python_name": item.name,
            "kind": item.kind.value,
            "array": item.array,
            "optional": item.optional or item.fusable,
            "enum": item.enum.__name__ if item.enum else None,
        }
        for item in operator_fields(operator)
    ]
    c_names = {item.name: item.c_name for item in operator_fields(operator)}
    members = tables_of_members(operator) if operator.TABLES_BY else {"": tables(operator)}
    rows = [
        {
            "member": member or None,
            "level": level_name(level),
            "field": c_names[name],
            "dimensions": [allowed.min_rank, allowed.max_rank],
            "data_types": [kind.name for kind in sorted(allowed.data_types)],
        }
        for member, support in sorted(members.items())
        for level, table in sorted(support.items())
        for name, allowed in table.items()
    ]
    return {**_summary(operator), "fields": fields, "tables": rows}


# --- checks ---


def _checks(parsed: Namespace) -> int:
    from fnmatch import fnmatchcase

    from ..checks import catalogue
    from ..checks.framework.describe import listing

    pattern = (parsed.check or "*").upper()
    found = {id for id in catalogue() if fnmatchcase(id, pattern)}
    if not found:
        near = question(nearest(pattern, catalogue())) or "'dmlemu checks' lists all"
        raise UsageError(f"no check is called {pattern}; {near}")
    if pattern in found:
        return _explain_check(catalogue()[pattern], parsed.as_json)
    if parsed.as_json:
        return _print_json([_check(check) for id, check in catalogue().items() if id in found])
    print(listing(found))
    return 0


def _explain_check(check: Declaration, as_json: bool) -> int:
    from ..checks.framework.describe import describe
    from .check_examples import examples

    found = list(examples(check.id))
    if as_json:
        shown = [
            {
                "about": each.about,
                "program": each.listing(),
                "report": each.report,
                "correction": each.correction(),
            }
            for each in found
        ]
        return _print_json({**_check(check), "examples": shown})
    print_text(describe(check), sys.stdout)
    for each in found:
        print()
        _print_page("\n\n".join(each.markdown()) + "\n")
    return 0


def _check(check: Declaration) -> dict[str, Any]:
    names = ("id", "title", "why", "fix", "rule", "api", "refusal")
    return {
        **{name: getattr(check, name) for name in names},
        "severity": check.severity.name,
        "when": check.when.value,
        "strictness": check.level.value,
        "message_ids": [int(each) for each in check.message_ids],
    }
