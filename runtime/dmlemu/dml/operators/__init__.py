"""The operators: one module per operator, and the folder is the list.

``from dmlemu import dml; dml.ConvolutionIntegerOperatorDesc`` imports just that operator's module.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .base import OperatorDesc

__all__ = ["find", "load_all"]

_SUFFIX = "OperatorDesc"


@cache
def _stems() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py") if path.stem != "base"))


@cache
def load_all() -> None:
    """Imports every operator module, so that the registry holds every declared operator."""
    for stem in _stems():
        import_module(f"{__name__}.{stem}")


def find(name: str) -> type[OperatorDesc] | None:
    """The desc class called ``name`` (``ElementWiseAdd1OperatorDesc``), or None.

    Tries the module of that name, then that of its root (``element_wise_add``), then all.
    """
    if not name.endswith(_SUFFIX):
        return None
    whole = name[: -len(_SUFFIX)].lower()
    wanted = {whole, re.sub(r"\d+$", "", whole)}
    for stem in _stems():
        if stem.replace("_", "") in wanted:
            found: type[OperatorDesc] | None = getattr(import_module(f"{__name__}.{stem}"), name, None)
            if found is not None:
                return found
    load_all()
    from .base import registry

    return next((desc for desc in registry().values() if desc.__name__ == name), None)
