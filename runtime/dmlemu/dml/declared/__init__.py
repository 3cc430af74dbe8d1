"""DirectML's declarations of operators (``descs``, generated), and what checks a desc against them.

``from dmlemu import dml; dml.ConvolutionIntegerOperatorDesc`` imports the declarations only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ...errors import loading
from ..enums import OperatorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .schema import OperatorDesc

__all__ = ["declared", "find_operator"]


@cache
def declared() -> Mapping[OperatorType, type[OperatorDesc]]:
    """The desc class of every operator of DirectML."""
    with loading():
        from . import descs

    found = (getattr(descs, name) for name in descs.__all__)
    return {desc.TYPE: desc for desc in sorted(found, key=lambda desc: desc.TYPE)}


def find_operator(name: str) -> type[OperatorDesc]:
    """The desc of the operator named ``DML_OPERATOR_GEMM`` or ``GEMM``; ValueError: DirectML has none."""
    suffix = name.removeprefix("DML_OPERATOR_")
    if suffix not in OperatorType.__members__ or suffix == "INVALID":
        with loading():
            from ...suggestions import nearest, question

        near = question(nearest(suffix, [each for each in OperatorType.__members__ if each != "INVALID"]))
        hint = f" ({near})" if near else ""
        raise ValueError(f"DirectML has no operator named {name!r}{hint}.")
    return declared()[OperatorType[suffix]]
