"""All checks by id, from the modules in ``declarations``: adding a group edits no list."""

from __future__ import annotations

import importlib
import os
import re
from functools import cache
from types import ModuleType

from . import declarations
from .declaration import Declaration

__all__ = ["catalogue", "groups", "title"]


@cache
def groups() -> dict[str, tuple[Declaration, ...]]:
    """The declarations of each group, by the name of its module, in the order of the groups' letters."""
    files = os.listdir(declarations.__path__[0])  # pkgutil conceals that it failed
    names = [file.removesuffix(".py") for file in files if file.endswith(".py") and file != "__init__.py"]
    loaded = {name: importlib.import_module(f"{declarations.__name__}.{name}") for name in names}
    order = sorted(loaded.items(), key=lambda item: (not _letter(item[1]), _letter(item[1]), item[0]))
    return {name: tuple(module.DECLARATIONS) for name, module in order}


def _letter(module: ModuleType) -> str:
    """``a`` of ``Group a: ...``; for groups without one, empty."""
    found = re.match(r"Group (\w.*?):", module.__doc__ or "")
    return found[1] if found else ""


def title(group: str) -> str:
    """What a group is about: the first sentence of its module's docstring, without the letter."""
    doc = importlib.import_module(f"{declarations.__name__}.{group}").__doc__ or group
    text = re.sub(r"^Group \w.*?: ", "", doc.splitlines()[0])
    text = text.partition(". ")[0].rstrip(".").replace("``", "")
    return text[:1].upper() + text[1:]


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
