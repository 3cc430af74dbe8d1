"""Rule solving: descs that satisfy all rules, and descs that break exactly one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..dml import FeatureLevel, OperatorDesc
from ..dml.declared.definition import definition_of, unmet
from ..dml.declared.rules import Rule
from ..dml.declared.values import Choose

__all__ = ["Broken", "broken", "solved"]

_MOST_CHANGES = 100


def solved(
    desc: OperatorDesc, level: FeatureLevel, choose: Choose, keep: str = "", usual: bool = False
) -> OperatorDesc:
    """The desc with values replaced where a rule refuses them, except at the path ``keep``.

    ``usual``: by the rules of what is usual, too.  LookupError: the rules and the operator's table have no
    value in common, or the search does not end.
    """
    definition = definition_of(desc)
    rules = [*definition.RULES, *(definition.USUAL if usual else ())]
    for _ in range(_MOST_CHANGES):
        wrong = (demand for demand in unmet(rules, desc, level) if demand.place.path(desc) != keep)
        demand = next(wrong, None)
        if demand is None:
            return desc
        place = demand.place
        desc = place.put(desc, demand.allowed.pick(choose, place.domain(desc, level)))
    raise LookupError


class Broken(NamedTuple):
    """A desc that breaks ``rule`` at ``path``, and nothing else."""

    desc: OperatorDesc
    rule: Rule
    path: str


def broken(desc: OperatorDesc, level: FeatureLevel) -> Iterator[Broken]:
    """From a legal desc, for every value that a rule constrains: descs in which only this value is wrong.

    Values that depend on the changed one are changed too, so that no second rule is broken.
    """
    rules = definition_of(desc).RULES
    for rule in rules:
        for demand in rule.demands(desc, level):
            path = demand.place.path(desc)
            for value in demand.allowed.outside(demand.place.domain(desc, level)):
                try:
                    changed = solved(demand.place.put(desc, value), level, _least, keep=path)
                except LookupError:
                    continue
                if [each.place.path(changed) for each in unmet(rules, changed, level)] == [path]:
                    yield Broken(changed, rule, path)


def _least(low: int, high: int) -> int:
    return low
