"""Campaigns: every layout, every seed, every operator, on one machine or on many.

:func:`run` tries the cases of a subject, which are made by index from one seed, in pieces that any worker
can run; results land in one SQLite file, with which the same call goes on where it stood.  ``dmlemu
campaign`` is the same from the command line.  Workers are those of Dask (the extra ``campaign``); without it,
``workers=0``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .campaign import Result as Result
    from .campaign import State as State
    from .campaign import run as run
    from .model import Failure as Failure

__all__ = ["Failure", "Result", "State", "run"]

_PLACES = {"Failure": "model", "Result": "campaign", "State": "campaign", "run": "campaign"}


def __getattr__(name: str) -> Any:
    """A worker's process imports no scheduler."""
    from importlib import import_module

    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)
