"""Other implementations of what operators compute, which judge the NumPy references.

:data:`~.rows.ROWS` says which function of ONNX, PyTorch, torchvision and SciPy is which operator; the modules
of this folder add their rows to it.  What is not there, or is called in a way that an implementation does not
have, it does not judge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...dml.declared.definition import definition_of
from ...dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from ...testing.conformance import defined_outputs, in_array, kind_of
from . import (  # noqa: F401  # each adds its rows
    attention,
    generators,
    gradients,
    indexed,
    quantized,
    recurrent,
    regions,
    resampling,
    table,
)
from .packages import PACKAGES, Package
from .rows import ROWS, WITHOUT

__all__ = [
    "PACKAGES",
    "ROWS",
    "WITHOUT",
    "Oracle",
    "Verdict",
    "against",
    "installed",
    "judge",
    "named",
    "spell_verdicts",
    "table_rows",
]

Array = np.ndarray[Any, np.dtype[Any]]

RTOL, ATOL = 1e-3, 1e-5
"""As ``dmlemu run --compare`` has them for ONNX Runtime; ten times as much for FLOAT16.  States and averages
of sums besides have the part of the largest result that their definition allows (``LARGEST_ERROR``)."""


class Oracle(NamedTuple):
    """An implementation that is installed."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class Verdict(NamedTuple):
    """What an oracle says of a case.  ``output``: the first field that differs from the reference, or "";
    then ``kind`` and ``text`` are about its first wrong element.  ``results``: what it computed."""

    oracle: Oracle
    output: str
    kind: str
    text: str
    results: Mapping[str, Array]

    @property
    def agrees(self) -> bool:
        """With the reference."""
        return not self.output


def installed() -> tuple[Oracle, ...]:
    """The oracles that this environment has."""
    found = ((name, each.version()) for name, each in PACKAGES.items())
    return tuple(Oracle(name, version) for name, version in found if version is not None)


def named(names: Iterable[str]) -> tuple[Oracle, ...]:
    """The installed ones of these names; ValueError: one is unknown, or not installed."""
    there = {each.name: each for each in installed()}
    found = []
    for name in names:
        if name not in PACKAGES:
            raise ValueError(f"{name!r} is no oracle; there are {', '.join(PACKAGES)}")
        if name not in there:
            raise ValueError(f"{name} is not installed: pip install {PACKAGES[name].pip}")
        found.append(there[name])
    return tuple(found)


def table_rows() -> list[tuple[str, list[str]]]:
    """Each operator that an oracle can judge, and which ones have a function for it."""
    return [
        (operator, [name for name, each in PACKAGES.items() if each.function(row) is not None])
        for operator, row in sorted(ROWS.items())
    ]


def judge(
    desc: OperatorDesc, inputs: Mapping[str, Any], expected: Mapping[str, Any], oracles: Iterable[Oracle]
) -> list[Verdict]:
    """The verdicts of those that compute what ``desc`` says; ``expected``: of its NumPy reference."""
    row = ROWS.get(desc.TYPE.name)
    if row is None:
        return []
    arrays = [inputs.get(each.name) for each in operator_fields(type(desc)) if _is_input(each)]
    found = []
    for oracle in oracles:
        results = _results(PACKAGES[oracle.name], row, desc, arrays, expected)
        if results:
            found.append(_verdict(oracle, results, definition_of(desc).LARGEST_ERROR))
    return found


def _is_input(field: Any) -> bool:
    return field.kind is FieldKind.INPUT_TENSOR


def _results(
    package: Package, row: Any, desc: OperatorDesc, arrays: list[Any], expected: Mapping[str, Any]
) -> dict[str, tuple[Array, Array]]:
    """What it computed and what the reference has, in the types of the outputs; empty: it does not compute
    this."""
    function = package.function(row)
    if function is None:
        return {}
    try:
        with np.errstate(all="ignore"):
            results = package.compute(function, desc, arrays)
        return {} if results is None else _pairs(desc, results, expected)
    except Exception:  # of any type: of its packages, or of a function that has no such call
        return {}


def _pairs(desc: OperatorDesc, results: Any, expected: Mapping[str, Any]) -> dict[str, tuple[Array, Array]]:
    """Of each tensor what is given and what is wanted; empty: they have other sizes."""
    if not isinstance(results, Mapping):
        results = {next(iter(expected)): results}
    given = {
        name: [np.asarray(each) for each in value] if isinstance(value, list) else np.asarray(value)
        for name, value in results.items()
    }
    counts = Counter[str]()
    found: dict[str, tuple[Array, Array]] = {}
    for name, got, want in defined_outputs(desc, given, expected):
        if got.shape != want.shape:
            return {}
        key = f"{name}[{counts[name]}]" if len(in_array(expected[name])) > 1 else name
        counts[name] += 1
        found[key] = got.astype(want.dtype, copy=False), want
    return found


def _verdict(oracle: Oracle, results: Mapping[str, tuple[Array, Array]], part: float) -> Verdict:
    """``part``: of the largest number, see :func:`_differs`."""
    computed = {name: got for name, (got, _) in results.items()}
    for name, (got, want) in results.items():
        wrong = _differs(got, want, part)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            text = f"{oracle}: {name}{list(at)} is {got[at]!r}, in the reference {want[at]!r}"
            return Verdict(oracle, name, kind_of(got[at], want[at]), text, computed)
    return Verdict(oracle, "", "", "", computed)


def _differs(one: Array, other: Array, part: float = 0.0) -> Array:
    """Which elements differ by more than the tolerance; whole numbers must be equal.  ``part``: what sums
    whose terms may cancel each other are allowed besides, of the largest number or of 1."""
    found: Array
    if other.dtype.kind != "f":
        found = one != other
        return found
    wide = 10 if other.dtype == np.float16 else 1
    with np.errstate(all="ignore"):
        a, b = one.astype(np.float64), other.astype(np.float64)
        equal = (a == b) | (np.isnan(a) & np.isnan(b))
        largest = np.max(np.abs(b[np.isfinite(b)]), initial=1)
        found = ~(equal | (np.abs(a - b) <= wide * (ATOL + RTOL * np.abs(b) + part * largest)))
        return found


def against(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """The first two that differ from the reference and agree with each other: with fewer, the reference
    decides, which is what the documents say."""
    different = [each for each in verdicts if not each.agrees]
    for number, one in enumerate(different):
        for other in different[number + 1 :]:
            if one.results.keys() == other.results.keys() and not any(
                _differs(one.results[name], other.results[name]).any() for name in one.results
            ):
                return [one, other]
    return []


def spell_verdicts(verdicts: Iterable[Verdict]) -> str:
    """For a message: who agrees with the reference, and what the others say."""
    found = list(verdicts)
    agreeing = ", ".join(str(each.oracle) for each in found if each.agrees)
    lines = [f"As the reference: {agreeing}."] if agreeing else []
    return "\n".join([*lines, *(each.text for each in found if not each.agrees)])
