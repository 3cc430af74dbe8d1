"""The operators: one module per operator, and the folder is the list.

``from dmlemu import dml; dml.ConvolutionIntegerOperatorDesc`` imports just that operator's module.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import OperatorDesc

__all__ = ["find", "load_all"]

_SUFFIX = "OperatorDesc"


@cache
def _stems() -> tuple[str, ...]:
    files = (
        name for name in os.listdir(os.path.dirname(__file__)) if name[0] != "_" and name.endswith(".py")
    )
    return tuple(sorted(name[:-3] for name in files if name != "base.py"))


@cache
def load_all() -> None:
    """Imports every operator module, so that the registry holds every declared operator."""
    for stem in _stems():
        import_module(f"{__name__}.{stem}")


def find(name: str) -> type[OperatorDesc] | None:
    """The desc class called ``name`` (``ElementWiseAdd1OperatorDesc``), or None.

    Looks first where the name begins as the module's does: ``element_wise_add``, ``activation``.
    """
    if not name.endswith(_SUFFIX):
        return None
    own = [stem for stem in _stems() if name.lower().startswith(stem.replace("_", ""))]
    for stem in sorted(own, key=len, reverse=True):
        found: type[OperatorDesc] | None = getattr(import_module(f"{__name__}.{stem}"), name, None)
        if found is not None:
            return found
    load_all()
    from .base import registry

    return next((desc for desc in registry().values() if desc.__name__ == name), None)
