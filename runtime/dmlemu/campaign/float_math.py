"""Functions of one FLOAT32 for all 2^32 inputs, beside NumPy in FLOAT64."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..dml import BufferTensorDesc, OperatorDesc, TensorDataType
from ..dml.declared import declared
from ..dml.declared.definition import definition_class, emulated
from ..dml.declared.schema import operator_fields
from ..dml.enums import FeatureLevel
from ..dml.operators.families.element_wise import Unary, UnaryBits
from ..evaluation import evaluate
from ..frontends.usage import UsageError
from ..suggestions import nearest
from .model import Failure, Outcome, Spec
from .subjects import Subject, with_cases

__all__ = ["Errors", "FloatMath", "errors_of", "functions"]

Array = np.ndarray[Any, np.dtype[Any]]

_BLOCK = 1 << 18  # inputs of a case


class Errors(NamedTuple):
    """Of a function in a range of inputs: the largest error in units in the last place of the exact result
    (infinite for a wrong NaN, infinity or sign of zero), the bits of the input that has it, and how many
    inputs have an error above the bound.  Exact is NumPy in FLOAT64, whose own error is below a millionth of
    such a unit."""

    worst: float
    at: int
    above: int


@cache  # each block asks twice, and all operators are looked at
def functions() -> dict[str, type[OperatorDesc]]:
    """The descs of the functions by name: operators of one FLOAT32 tensor that need nothing else."""
    found = {}
    for operator in sorted(emulated()):
        cls, definition = declared()[operator], definition_class(operator)
        needed = [each for each in operator_fields(cls) if not (each.optional or each.is_tensor)]
        if (
            definition is None
            or not issubclass(definition, Unary)
            or issubclass(definition, UnaryBits)
            or needed
        ):
            continue
        if _is_of_floats(cls):
            found[_name(operator.name)] = cls
    return found


def _name(operator: str) -> str:
    """``ELEMENT_WISE_EXP``: ``exp``."""
    return operator.removeprefix("ELEMENT_WISE_").removeprefix("ACTIVATION_").lower()


def _is_of_floats(cls: type[OperatorDesc]) -> bool:
    tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, 1])
    desc = cls(**{each.name: tensor for each in operator_fields(cls) if each.is_tensor})
    allowed = desc.allowed(max(FeatureLevel))
    return set(allowed) == {"input_tensor", "output_tensor"} and all(
        TensorDataType.FLOAT32 in each.data_types for each in allowed.values()
    )


def errors_of(function: str, first: int, count: int) -> Errors:
    """The errors of a function for the inputs with the bits ``first`` to ``first + count - 1``."""
    cls = functions()[function]
    definition: Any = definition_class(cls.TYPE)
    x = np.arange(first, first + count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    tensor = BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 1, count])
    desc: Any = cls(input_tensor=tensor, output_tensor=tensor)
    ours = evaluate(desc, input_tensor=x.reshape(1, 1, 1, count))["output_tensor"].reshape(-1)
    with np.errstate(all="ignore"):
        exact = np.asarray(definition(desc).function(x.astype(np.float64)), np.float64)
        errors = _units(ours, exact)
    at = int(errors.argmax())
    return Errors(float(errors[at]), first + at, int((errors > bound_of(function)).sum()))


def bound_of(function: str) -> float:
    """The largest error that is allowed, in units: half of one is the rounding to FLOAT32."""
    definition: Any = definition_class(functions()[function].TYPE)
    return float(definition.ULPS) + 0.5


def _units(ours: Array, exact: Array) -> Array:
    """0 where both are NaN, or the same infinity; infinite where only one is, or where signs differ."""
    rounded = exact.astype(np.float32)
    exponents = np.maximum(np.frexp(exact)[1], -125)
    errors: Array = np.abs(ours.astype(np.float64) - exact) / np.ldexp(1.0, exponents - 24)
    errors[~np.isfinite(ours) | ~np.isfinite(rounded) | (np.signbit(ours) != np.signbit(rounded))] = np.inf
    errors[(np.isinf(ours) & (ours == rounded)) | (np.isnan(ours) & np.isnan(exact))] = 0
    return errors


class FloatMath(Subject):
    """``float-math:FUNCTION``; a case is a block of inputs with consecutive bits."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        self._function = _function(spec.what)

    @classmethod
    def planned(cls, spec: Spec) -> Spec:
        """All inputs."""
        digest = hashlib.sha256(_function(spec.what).encode()).hexdigest()
        return with_cases(spec, spec.what, digest, (1 << 32) // _BLOCK)

    def run(self, index: int, limit: float) -> Outcome:
        """A failure is a block with an error above the bound."""
        first = index % self.spec.cases * _BLOCK
        found = errors_of(self._function, first, _BLOCK)
        outcome = Outcome(worst=found.worst, at=_spell(found.at))
        if found.above:
            bound = bound_of(self._function)
            outcome.failures.append(
                Failure(
                    index,
                    self._function,
                    "largest error",
                    "infinite" if np.isinf(found.worst) else f"above {bound:g} units",
                    f"{self._function}: {found.above} of {_BLOCK} inputs from {first:#010x} on have an error "
                    f"above {bound:g} units in the last place; the largest, {found.worst:.4g}, has "
                    f"{_spell(found.at)}",
                    found.above,
                )
            )
        return outcome

    def describe(self, index: int) -> str:
        """The inputs."""
        first = index % self.spec.cases * _BLOCK
        return f"{self._function} of the {_BLOCK} floats with the bits {first:#010x} and following"


def _spell(bits: int) -> str:
    return f"{float(np.uint32(bits).view(np.float32)).hex()} ({bits:#010x})"


def _function(what: str) -> str:
    name = what.partition(":")[2]
    if name not in functions():
        near = nearest(name, list(functions()), 1)
        hint = f"did you mean float-math:{near[0]}? " if near else ""
        raise UsageError(f"{what}: there is no such function; {hint}There are {', '.join(functions())}")
    return name
