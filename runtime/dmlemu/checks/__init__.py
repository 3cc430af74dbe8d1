"""Checks: subscribers of a device's event stream that find mistakes and report them."""

from ..diagnostics.catalogue import catalogue, groups
from ..diagnostics.declaration import Declaration, When
from .framework.check import Check, on
from .framework.manager import Checks, attach
from .framework.names import NamedCommand, Names
from .lineage import Lineage, Step

__all__ = [
    "Check",
    "Checks",
    "Declaration",
    "Lineage",
    "NamedCommand",
    "Names",
    "Step",
    "When",
    "attach",
    "catalogue",
    "groups",
    "on",
]
