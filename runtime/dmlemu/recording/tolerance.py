"""How far an output may be from what is expected: data of the operators' definitions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from ..dml.declared.definition import definition_of
from ..dml.declared.schema import OperatorDesc, operator_fields
from ..dml.enums import TensorDataType
from ..dml.tensor_desc import BufferTensorDesc
from .model import Array, Dispatch, Record

__all__ = ["Tolerance", "pick", "recorded_inputs", "tolerance_of"]


class Tolerance(NamedTuple):
    """``ulps``: units in the last place of the expected value.  ``slack``: for each element, besides."""

    ulps: int
    slack: Any

    def __str__(self) -> str:
        more = ", and more where terms of sums cancel" if np.any(self.slack) else ""
        return f"the tolerance is {self.ulps} ULP{more}"

    def holds(self, given: Array, expected: Array) -> Any:
        """For each element: equal (a NaN to any NaN, 0 to -0), or no further away than allowed."""
        with np.errstate(all="ignore"):
            if given.dtype.kind != "f":
                return given == expected
            same = (given == expected) | (np.isnan(given) & np.isnan(expected))
            limit = np.finfo(expected.dtype).max  # a result next to the largest number may be infinity
            a, b = (np.clip(each.astype(np.float64), -limit, limit) for each in (given, expected))
            spacing = np.abs(np.spacing(np.clip(expected, -limit, limit)).astype(np.float64))
            return same | (np.abs(a - b) <= self.ulps * spacing + self.slack)


def tolerance_of(record: Record, dispatch: Dispatch, path: str, expected: Array) -> Tolerance:
    """For an output of a dispatch; for that of a graph the sum of its operators' tolerances."""
    definitions = [definition_of(desc) for desc in dispatch.work.descs]
    ulps = sum(each.ULPS for each in definitions)
    if expected.dtype.kind != "f" or not any(each.SUM_ERROR or each.LARGEST_ERROR for each in definitions):
        return Tolerance(ulps, 0.0)
    with np.errstate(all="ignore"):
        finite = np.abs(expected[np.isfinite(expected)]).astype(np.float64)
    largest = max(1.0, float(finite.max(initial=0.0)))
    if isinstance(dispatch.work.desc, OperatorDesc) and definitions[0].SUM_ERROR:
        terms = _terms(record, dispatch, dispatch.work.desc, path)
        return Tolerance(ulps, definitions[0].SUM_ERROR * terms)
    return Tolerance(ulps, sum(max(each.SUM_ERROR, each.LARGEST_ERROR) for each in definitions) * largest)


def _terms(record: Record, dispatch: Dispatch, desc: OperatorDesc, path: str) -> Any:
    """For each element what its terms would add up to if they did not cancel each other."""
    if not dispatch.is_complete:
        return 0.0
    changed: dict[str, Any] = {}
    for each in fields(desc):
        value = getattr(desc, each.name)
        if isinstance(value, BufferTensorDesc) and value.dtype.kind == "f":
            changed[each.name] = BufferTensorDesc(TensorDataType.FLOAT32, value.sizes)
        elif each.name in ("alpha", "beta"):
            changed[each.name] = abs(value)
        elif each.name == "fused_activation":
            changed[each.name] = None
    inputs = {
        name: np.abs(np.nan_to_num(array.astype(np.float64), posinf=0, neginf=0))
        for name, array in recorded_inputs(record, dispatch, desc).items()
    }
    with np.errstate(all="ignore"):
        terms = pick(replace(desc, **changed).reference(inputs), desc, path)
    return np.nan_to_num(np.asarray(terms, np.float64), posinf=0)


def recorded_inputs(record: Record, dispatch: Dispatch, desc: OperatorDesc) -> dict[str, Any]:
    """The recorded inputs as a reference takes them: by field name."""
    by_path = {
        tensor.path: record.array(dispatch.contents[i] or "") for i, tensor in dispatch.tensors(output=False)
    }
    inputs: dict[str, Any] = {}
    for each in operator_fields(type(desc)):
        if each.array:
            count = len(getattr(desc, each.name) or ()) if each.is_tensor else 0
            arrays = [by_path.get(f"{each.c_name}[{i}]") for i in range(count)]
            if any(array is not None for array in arrays):
                inputs[each.name] = arrays
        elif each.c_name in by_path:
            inputs[each.name] = by_path[each.c_name]
    return inputs


def pick(found: Mapping[str, Any], desc: OperatorDesc, path: str) -> Any:
    """The result for a tensor by its path (``OutputTensors[1]``)."""
    name, _, index = path.removesuffix("]").partition("[")
    own = next(each.name for each in operator_fields(type(desc)) if each.c_name == name)
    return found[own][int(index)] if index else found[own]
