"""``device.checks``: which checks watch a device."""

from __future__ import annotations

import importlib
import pkgutil
import weakref
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from ..errors import Strictness
from ..reporting import defaults
from . import builtin
from .catalogue import catalogue
from .check import Check

if TYPE_CHECKING:
    from ..d3d12.device import Device

__all__ = ["Checks", "attach"]


class Checks:
    """The checks of one device; iterates over them."""

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)
        self._checks: dict[type[Check], Check] = {}

    def __iter__(self) -> Iterator[Check]:
        return iter(list(self._checks.values()))

    def add(self, kind: type[Check]) -> Check:
        """Has a check of this class watch the device from now on; returns it."""
        device = self._device()
        assert device is not None
        if kind not in self._checks:
            device.reports.declared.update((each.id, each) for each in kind.declarations)
            self._checks[kind] = kind(device)
            self._checks[kind].start()
        return self._checks[kind]

    def remove(self, kind: type[Check]) -> None:
        """Ends the watch of that class; nothing happens when there is none."""
        check = self._checks.pop(kind, None)
        if check is not None:
            check.stop()

    def end(self) -> None:
        """The device ends, or the program wants to know now: checks tell what only the end shows."""
        for check in self:
            check.end()


def attach(device: Device) -> None:
    """Gives a new device its checks: those whose ``level`` its strictness reaches (none at ``runtime``)."""
    device.checks = Checks(device)
    device.reports.declared.update(catalogue())
    for id in defaults.suppressions:
        device.reports.check_suppression(id)
    if device._strictness is Strictness.RUNTIME:
        return
    for kind in _builtin():
        if device._strictness is Strictness.STRICT or kind.level is Strictness.DEBUG:
            device.checks.add(kind)


@cache
def _builtin() -> tuple[type[Check], ...]:
    names = sorted(module.name for module in pkgutil.iter_modules(builtin.__path__))
    modules = [importlib.import_module(f"{builtin.__name__}.{name}") for name in names]
    return tuple(kind for module in modules for kind in module.CHECKS)
