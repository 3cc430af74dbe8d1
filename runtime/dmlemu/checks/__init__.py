"""Checks: subscribers of a device's event stream that find mistakes and explain them."""

from .catalogue import catalogue, groups
from .check import Check, on
from .declaration import Declaration, When
from .manager import Checks, attach
from .names import NamedCommand, Names

__all__ = [
    "Check",
    "Checks",
    "Declaration",
    "NamedCommand",
    "Names",
    "When",
    "attach",
    "catalogue",
    "groups",
    "on",
]
