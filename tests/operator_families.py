"""Which operators the tests of every operator run for by default: one of each family.

A family has one base class, one set of fields and one set of rules; an operator whose class has no base
beside ``Definition`` is a family of its own, with its numbered variants.  Nothing is listed: an operator that
is added joins its family or begins one.  ``make test-long`` runs these tests for all operators, and
``operators/test_every_operator.py`` runs each operator by default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from functools import wraps
from typing import Any

import pytest

from dmlemu.dml import OperatorType
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import Definition, definition_class, emulated
from dmlemu.dml.declared.schema import operator_fields

_DEFINITIONS = {definition_class(operator) for operator in emulated()}


def kernel_family(operator: OperatorType) -> type[Definition]:
    """The base class that operators share which run alike; the definition itself if there is none."""
    base = definition_class(operator)
    assert base is not None
    while base in _DEFINITIONS and base.__bases__[0] is not Definition:  # a numbered variant, or of a family
        base = base.__bases__[0]
    return base


def family(operator: OperatorType) -> Hashable:
    """The same for operators whose generic tests would find the same mistakes."""
    desc, definition = declared()[operator], definition_class(operator)
    assert definition is not None
    base = definition.__bases__[0]
    if base is Definition:
        return definition
    fields = frozenset((item.kind, item.optional, item.array) for item in operator_fields(desc))
    return base, fields, frozenset(map(type, definition.RULES)), desc.IN_PLACE


# Of several, the newest: numbered variants have more fields and more types than the first one.
REPRESENTATIVES = frozenset({family(operator): operator for operator in sorted(emulated())}.values())

# For tests that take seconds and look at what is around operators (strategies, chaos, rules at every level):
# every third of those that run in different ways.
FEW_REPRESENTATIVES = frozenset(
    sorted({kernel_family(each): each for each in sorted(emulated())}.values())[::3]
)


def each_operator(
    name: str,
    value: Callable[[OperatorType], Any] = lambda operator: operator,
    operators: Iterable[OperatorType] = emulated(),
    by_default: Collection[OperatorType] = REPRESENTATIVES,
) -> pytest.MarkDecorator:
    """Runs a test with ``name`` set to ``value`` of each operator; by default, of those in ``by_default``."""
    return pytest.mark.parametrize(
        name,
        [
            pytest.param(
                value(operator),
                id=operator.name,
                marks=() if operator in by_default else pytest.mark.long,
            )
            for operator in sorted(operators)
        ],
    )


def faults(check: Callable[[Any], None], operators: Iterable[OperatorType], value: Callable[..., Any]) -> str:
    """What a check says of each operator that fails it, all at once."""
    found = []
    for operator in sorted(operators):
        try:
            check(value(operator))
        except (Exception, pytest.fail.Exception) as fault:
            found.append(f"{operator.name}: {type(fault).__name__}: {fault}")
    return "\n\n".join(found)


def one_case(
    value: Callable[[OperatorType], Any], by_default: Collection[OperatorType] = REPRESENTATIVES
) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """As :func:`each_operator`, for a check of generated tables: one test for all operators in
    ``by_default``, which lists everything that fails, and a long one for the others."""
    others = set(emulated()) - set(by_default)
    cases = [pytest.param(by_default, id="by default")]
    if others:
        cases.append(pytest.param(others, id="others", marks=pytest.mark.long))

    def decorated(check: Callable[[Any], None]) -> Callable[..., None]:
        @wraps(check)
        def test(operators: Collection[OperatorType]) -> None:
            found = faults(check, operators, value)
            assert not found, found

        del test.__wrapped__  # type: ignore[attr-defined]  # pytest looks for the arguments there
        return pytest.mark.parametrize("operators", cases)(test)

    return decorated
