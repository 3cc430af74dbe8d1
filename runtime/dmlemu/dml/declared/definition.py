"""Operator definitions: the rules of a desc, the kernels that run it, its reference in NumPy.

A definition is one class in a module of ``dml/operators``, which is found by the operator's name.  Numbered
variants of one operator, and operators of one family, share a class.  DirectML's other operators have a desc
but no definition: they are declared, not emulated.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import loading
from ..enums import OperatorType, TensorDataType

if TYPE_CHECKING:
    from ...d3d12.core.adapter import Adapter
    from ..enums import FeatureLevel
    from ..lowering.compile import Program
    from .rules import Demand, Rule
    from .schema import OperatorDesc

__all__ = ["Definition", "definition_class", "definition_of", "emulated", "example_of", "ulps_of", "unmet"]

_OPERATORS = f"{__package__.rpartition('.')[0]}.operators"

_DEFINED: dict[OperatorType, type[Definition]] = {}


class Definition:
    """The definition of one desc; subclasses name their operators: ``class Gemm(Definition, of="GEMM")``.

    A subclass without ``of`` is a family.  The docstring is the operator's documentation.
    """

    desc: Any
    """The desc, of the class annotated in the subclass."""

    FUSABLE: ClassVar[bool] = False
    """Whether every operator with a FusedActivation accepts it, from the level that introduced it."""

    ULPS: ClassVar[int] = 0
    """How far a float may be from the reference, in units in the last place of the output's type.

    The reference computes in FLOAT64 and rounds once; so do the kernels, with their own exp, log etc.
    """

    ULPS_REASON: ClassVar[str] = "both compute in more bits, by functions of their own, and round once"
    """Why results differ by ULPS; printed on the operator's page."""

    SUM_ERROR: ClassVar[float] = 0.0
    """How far besides, for sums in another order: this part of the sum of the terms' absolute values."""

    LARGEST_ERROR: ClassVar[float] = 0.0
    """How far besides, for states that pass their errors on: this part of the largest result, or of 1."""

    KEEPS_NANS: bool = False
    """Whether elements are copied or converted, not computed: NaNs keep their sign and payload."""

    PAGE_INPUTS: ClassVar[Mapping[str, Any]] = {}
    """Inputs of the example on the operator's page that are not arbitrary numbers, such as regions."""

    RULES: ClassVar[Sequence[Rule]] = ()
    """Shape and field rules, in the order of their checks; ranks and data types are checked before."""

    USUAL: ClassVar[Sequence[Rule]] = ()
    """Rules about what a desc usually looks like.  One that differs is computed all the same; a strict device
    reports it, by the id of the demand."""

    def __init_subclass__(cls, *, of: str = "") -> None:
        for name in of.split():
            _DEFINED[OperatorType[name]] = cls

    def __init__(self, desc: OperatorDesc) -> None:
        self.desc = desc

    def lower(self, program: Program) -> None:
        """Adds the kernel calls that run this operator to ``program``."""
        raise NotImplementedError

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """See :meth:`OperatorDesc.reference`."""
        raise NotImplementedError

    @classmethod
    def largest_leading_size(cls, adapter: Adapter) -> int | None:
        """An adapter's limit for the sizes before the last two of its tensors; None: there is none."""
        return None

    @classmethod
    def example(cls) -> dict[str, Any]:
        """The fields of a small desc that is legal from the operator's first feature level; of numbered
        variants each takes those that it has."""
        raise NotImplementedError

    @classmethod
    def page_changes(cls) -> dict[str, Any]:
        """How the example on the operator's page differs, so that its numbers can be followed: sizes of
        tensors (None: no tensor) and other fields."""
        return {}


def ulps_of(definition: Definition | type[Definition], data_type: TensorDataType) -> int:
    """The ULPS of one type: FLOAT16 is computed with many more bits than it has.  A desc's fused activation
    has errors of its own."""
    fused = getattr(getattr(definition, "desc", None), "fused_activation", None)
    ulps = definition.ULPS + (0 if fused is None else definition_of(fused).ULPS)
    return min(ulps, 1) if data_type is TensorDataType.FLOAT16 else ulps


def unmet(rules: Iterable[Rule], desc: OperatorDesc, level: FeatureLevel) -> Iterator[Demand]:
    """The violated demands of the rules; stops after a wrong value that later rules compute with."""
    for rule in rules:
        if rule.holds(desc):
            continue
        for demand in rule.demands(desc, level):
            if demand.place.value(desc) not in demand.allowed:
                yield demand
                if demand.place.first:
                    return


def definition_of(desc: OperatorDesc) -> Definition:
    """The definition of a desc.  NotImplementedError: its operator is not emulated."""
    found = definition_class(desc.TYPE)
    if found is None:
        raise NotImplementedError(f"DML_OPERATOR_{desc.TYPE.name} is not emulated.")
    return found(desc)


def example_of(desc: type[OperatorDesc]) -> OperatorDesc:
    """The example that its definition gives.  NotImplementedError: the operator is not emulated."""
    definition = definition_class(desc.TYPE)
    if definition is None:
        raise NotImplementedError(f"DML_OPERATOR_{desc.TYPE.name} is not emulated.")
    own = desc.__dataclass_fields__
    return desc(**{name: value for name, value in definition.example().items() if name in own})


def definition_class(type: OperatorType) -> type[Definition] | None:
    """The definition of an operator, or None; loads the modules that it may be in, the longest name first."""
    if type not in _DEFINED:
        modules = _modules()
        own = [beginning for beginning in modules if type.name.lower().startswith(beginning)]
        for beginning in sorted(own, key=len, reverse=True):
            _load(modules[beginning])
            if type in _DEFINED:
                break
    return _DEFINED.get(type)


@cache
def emulated() -> frozenset[OperatorType]:
    """Every operator that has a definition."""
    for module in sorted({*_modules().values()}):
        _load(module)
    return frozenset(_DEFINED)


def _load(module: str) -> None:
    with loading():
        import_module(f"{_OPERATORS}.{module}")


@cache
def _modules() -> dict[str, str]:
    """The modules of definitions, by what the names of their operators begin with."""
    operators = import_module(_OPERATORS)
    names = os.listdir(operators.__path__[0])
    modules = {name[:-3]: name[:-3] for name in names if name.endswith(".py") and name != "__init__.py"}
    listed = {each: module for module, beginnings in operators.FAMILIES.items() for each in beginnings}
    return modules | listed
