"""The reference page of ONNX's operators: where each runs, from the lowerings, ONNX's schemas and the node
tests of the onnx package."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import onnx

from dmlemu.dml.events import GraphCompiled
from dmlemu.onnx import InferenceSession
from dmlemu.onnx.calls import LOWERINGS

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "onnx_models"))

import node_cases

Operator = tuple[str, str]  # domain and name

_HEAD = """# ONNX operators

Where each operator of ONNX runs, of the operator sets up to {opset}, which onnx {version} has. Generated from
the functions in `runtime/dmlemu/onnx/operators`, ONNX's schemas and the package's node tests, which all run
in `make test`; [Run an ONNX model](../guide/onnx.md) says what that means.

**since**: the operator set that brought it, and the one that changed it last.

**runs as**:

- *one operator* of DirectML, or a composition of *2 to 5 operators*: as many as three of its node tests need.
- *the body of its function*: ONNX defines it by other operators, which take its place.
- *host*: the implementation of the onnx package.

**cases**: the node tests that have it, with those of its `_expanded` body, and where they run. Nobody can
compute what those expect that are left out.

Of the {total} node tests, {device} run on the device alone, {both} on the device and the host, {host} on the
host; {left_out} are left out. Those on the host have types that DirectML does not have, FLOAT64 for most of
its operators, strings, sequences, or sizes that depend on data. An operator that runs on the device may run
on the host in a model, too: `describe()` says why.
"""
_SAMPLED = 3
_WHERE = ("device", "device and host", "host", "left out")

# What the session does itself.
_OWN = {
    "Constant": "known when compiled",
    "Identity": "another name",
    "If": "the branch that is taken",
    "Loop": "its turns, one after another",
    "Scan": "its turns, one after another",
    "Shape": "known when compiled",
    "Size": "known when compiled",
}
_DOMAINS = {
    "": "ONNX",
    "ai.onnx.ml": "ONNX-ML",
    "ai.onnx.preview": "Previews",
    "ai.onnx.preview.training": "Previews of training",
    "com.microsoft": "ONNX Runtime's own",
}


def page() -> str:
    """The text of the page."""
    found = where()
    totals = Counter(found.values())
    text = _HEAD.format(
        opset=onnx.defs.onnx_opset_version(),
        version=onnx.__version__,
        total=f"{len(found):,}",
        device=f"{totals['device']:,}",
        both=totals["device and host"],
        host=totals["host"],
        left_out=totals["left out"],
    )
    schemas = _schemas()
    cases = _cases_of()
    ours = {key for key in LOWERINGS if key[0] in _DOMAINS}  # others stand for several operators
    by_domain: dict[str, list[Operator]] = defaultdict(list)
    for each in sorted({*schemas, *ours, *cases}):
        by_domain[each[0]].append(each)
    for domain, operators in by_domain.items():
        text += f"\n## {_DOMAINS.get(domain, domain)}\n\n"
        if domain:
            text += f"The domain `{domain}`.\n\n"
        text += "| operator | since | runs as | cases | device | device and host | host | left out |\n"
        text += "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        for each in operators:
            text += _row(each, schemas.get(each, []), cases.get(each, []))
    return text


def count() -> str:
    """A sentence's beginning: how many node tests run on the device alone."""
    found = where()
    return f"{sum(each == 'device' for each in found.values()):,} of the {len(found):,} node tests"


def is_of_the_list() -> bool:
    """Whether the installed onnx package is the one whose cases are listed."""
    return f"onnx {onnx.__version__} " in node_cases.LIST.read_text().partition("\n")[0]


@cache
def where() -> dict[str, str]:
    """Where each node test runs, by name: one of ``_WHERE``."""
    listed = node_cases.listed()
    return {
        case.name: listed.get(case.name, "device").partition(":")[0].strip() for case in node_cases.cases()
    }


def _schemas() -> dict[Operator, list[onnx.defs.OpSchema]]:
    found: dict[Operator, list[onnx.defs.OpSchema]] = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        found[schema.domain, schema.name].append(schema)
    return found


def _cases_of() -> dict[Operator, list[Any]]:
    """The cases of each operator: of an expanded one, that of the case whose body it is."""
    by_name = {case.name: case for case in node_cases.cases()}
    found: dict[Operator, list[Any]] = defaultdict(list)
    for name, case in by_name.items():
        base = by_name.get(name.partition("_expanded")[0], case)
        for key in dict.fromkeys((node.domain, node.op_type) for node in base.model.graph.node):
            found[key].append(case)
    return found


def _row(operator: Operator, schemas: Sequence[onnx.defs.OpSchema], cases: Sequence[Any]) -> str:
    versions = sorted(schema.since_version for schema in schemas) or [1]
    since = f"{versions[0]}" if len(versions) == 1 else f"{versions[0]}, {versions[-1]}"
    counts = Counter(where()[case.name] for case in cases)
    numbers = " | ".join(str(counts[each] or "") for each in _WHERE)
    runs_as = _runs_as(operator, schemas, cases)
    return f"| {operator[1]} | {since} | {runs_as} | {len(cases) or ''} | {numbers} |\n"


def _runs_as(operator: Operator, schemas: Sequence[onnx.defs.OpSchema], cases: Sequence[Any]) -> str:
    on_device = [case for case in cases if where()[case.name] == "device" and _is_alone(case, operator)]
    if operator in LOWERINGS:
        return _operators(on_device)
    if not operator[0] and operator[1] in _OWN:
        return _OWN[operator[1]]
    has_body = any(each.has_function or each.has_context_dependent_function for each in schemas)
    return "the body of its function" if has_body and on_device else "host"


def _is_alone(case: Any, operator: Operator) -> bool:
    nodes = case.model.graph.node
    return len(nodes) == 1 and (nodes[0].domain, nodes[0].op_type) == operator


def _operators(cases: Sequence[Any]) -> str:
    """How many operators of DirectML a few of the cases need."""
    step = max(1, len(cases) // _SAMPLED)
    counts = sorted(filter(None, map(_count, cases[::step][:_SAMPLED])))
    if not counts:
        return "operators of DirectML"
    least, most = counts[0], counts[-1]
    if most == 1:
        return "one operator"
    return f"{most} operators" if least == most else f"{least} to {most} operators"


def _count(case: Any) -> int:
    """The operators of the graphs that a case compiles."""
    counts: list[int] = []
    device = node_cases.device()
    subscription = device.get_parent_device().events.subscribe(
        lambda event: counts.append(len(event.desc.nodes)), GraphCompiled
    )
    try:
        InferenceSession(case.model, device=device).run(None, _inputs(case))
    finally:
        subscription.close()
    return sum(counts)


def _inputs(case: Any) -> Mapping[str, Any]:
    given = case.data_sets[0][0]
    arrays = [
        onnx.numpy_helper.to_array(each) if isinstance(each, onnx.TensorProto) else each for each in given
    ]
    return dict(zip([each.name for each in case.model.graph.input], arrays, strict=False))
