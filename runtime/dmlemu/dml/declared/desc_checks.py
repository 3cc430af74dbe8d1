"""All checks of an operator desc: its declaration, then its definition's rules."""

from __future__ import annotations

from ..enums import FeatureLevel
from .definition import definition_of, unmet
from .schema import OperatorDesc
from .validation import DescValidator


def check_operator(desc: OperatorDesc, level: FeatureLevel, operation: str) -> None:
    """Checks the declaration and the rules of an operator desc on a device of feature level ``level``.

    The tensor descs' own rules (sizes, strides, total size, alignment) are checked elsewhere and first.
    ``operation`` is the call named in the report.  Raises :class:`dmlemu.Error` (E_INVALIDARG).
    """
    check = DescValidator(desc, level, operation)
    check.feature_level()
    check.attributes()
    check.tensors()
    for demand in unmet(definition_of(desc).RULES, desc, level):
        check.refuse(demand)
