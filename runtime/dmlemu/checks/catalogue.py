"""All checks by id, from the modules in ``declarations``: adding a group edits no list."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from . import declarations
from .declaration import Declaration

__all__ = ["catalogue", "groups"]


@cache
def groups() -> dict[str, tuple[Declaration, ...]]:
    """The declarations of each group, by the name of its module."""
    found = {}
    for module in sorted(pkgutil.iter_modules(declarations.__path__), key=lambda each: each.name):
        loaded = importlib.import_module(f"{declarations.__name__}.{module.name}")
        found[module.name] = tuple(loaded.DECLARATIONS)
    return found


@cache
def catalogue() -> dict[str, Declaration]:
    """Every declared check.  ValueError: an id is declared twice."""
    found: dict[str, Declaration] = {}
    for rows in groups().values():
        for row in rows:
            if row.id in found:
                raise ValueError(f"Check {row.id} is declared twice.")
            found[row.id] = row
    return found
