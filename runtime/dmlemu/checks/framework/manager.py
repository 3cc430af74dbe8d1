"""``device.checks``: the checks that watch a device."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dmlemu_hw.events import Subscription

from ...diagnostics.catalogue import catalogue, is_built_in
from ...diagnostics.declaration import Declaration
from ...diagnostics.report import loading
from ...diagnostics.rows import CHECKS_RESTARTED
from ...diagnostics.rule import report_of
from ...errors import Strictness, quote
from ...reporting import at_end, defaults
from .check import Check

if TYPE_CHECKING:
    from ...d3d12.device.device import Device
    from ..analysis.happens_before import HappensBefore
    from ..analysis.in_flight import InFlight
    from ..lineage import Lineage

__all__ = ["Checks", "attach"]


class Checks:
    """The checks of one device; iterates over them.

    ``resting``: those that wait for :meth:`resume`.
    """

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)
        self._checks: dict[type[Check], Check] = {}
        self._clocks: HappensBefore | None = None
        self._flights: InFlight | None = None
        self._following: list[Subscription] = []  # subscriptions of clocks and flights
        self.resting: list[type[Check]] = []
        device.events.on_exception = self.rest_after

    def __repr__(self) -> str:
        return f"<Checks: {len(self._checks)} attached>"

    def __iter__(self) -> Iterator[Check]:
        return iter(list(self._checks.values()))

    @property
    def clocks(self) -> HappensBefore:
        """The happens-before clocks; for checks that ask in their ``__init__``."""
        if self._clocks is None:
            device = self._device()
            assert device is not None
            with loading():  # no device of strictness `runtime` needs it
                from ..analysis.happens_before import HappensBefore

            clocks = HappensBefore(device.context.gpu)
            clocks.follow(device.events, self._following)
            self._clocks = clocks
        return self._clocks

    @property
    def flights(self) -> InFlight:
        """The submissions in flight, for checks that ask in their ``__init__``."""
        if self._flights is None:
            device = self._device()
            assert device is not None
            with loading():
                from ..analysis.in_flight import InFlight

            flights = InFlight(device.context.submissions, self.clocks)
            flights.follow(device.events, self._following)
            self._flights = flights
        return self._flights

    def rest(self) -> None:
        """An exception such as KeyboardInterrupt has ended a call midway: the checks' state may be wrong.

        Built-in checks are removed until :meth:`resume`, which starts them without any history.
        """
        for kind in [each for each in self._checks if each in _builtin()]:
            if kind not in self.resting:
                self.resting.append(kind)
            self.remove(kind)
        while self._following:
            self._following[-1].close()
            self._following.pop()
        self._clocks = self._flights = None

    def rest_after(self, error: BaseException) -> None:
        """Calls :meth:`rest` if the exception may have been raised anywhere."""
        if not isinstance(error, Exception):
            self.rest()

    def resume(self) -> None:
        """To be called when the GPU is idle: the checks start anew, which is reported."""
        device = self._device()
        assert device is not None
        while self.resting:
            self.add(self.resting[0])
            self.resting.pop(0)
        text = "An exception ended a call in the middle; the checks have no record of anything before that."
        device.reports.add(report_of(CHECKS_RESTARTED, text))

    def lineage(self, address: int) -> Lineage:
        """What the byte at a GPU virtual address comes from; see ``d3d12.Device.lineage``."""
        with loading():
            from ..provenance.check import WhoseBytes

        for check in self:
            if isinstance(check, WhoseBytes):
                return check.lineage(address)
        raise ValueError(
            "resource must belong to a device of strictness strict: only that level tracks who wrote what."
        )

    def add(self, kind: type[Check]) -> Check:
        """Adds a check of this class to the device; returns it.

        TypeError: it is not such a class.  ValueError: it declares an id of a built-in check.
        """
        device = self._device()
        assert device is not None
        if kind not in self._checks:
            _inspect(kind)
            check = kind(device)
            if not hasattr(check, "_subscriptions"):
                raise TypeError(f"{kind.__name__}.__init__ must call super().__init__(device).")
            more = {each.id: each for each in kind.declarations if not is_built_in(each)}
            if more:
                device.reports.declared.update(more)
            self._checks[kind] = check
            check.start()
        return self._checks[kind]

    def remove(self, kind: type[Check]) -> None:
        """Removes the check of that class, if there is one."""
        check = self._checks.get(kind)
        if check is not None:
            check.stop()
            self._checks.pop(kind, None)

    def end(self) -> None:
        """The device or the program ends, or the program asks: checks report what is only known then."""
        for check in self:
            check.end()


def _inspect(kind: type[Check]) -> None:
    """Raises if the class cannot be a check."""
    if not isinstance(kind, type) or not issubclass(kind, Check):
        raise TypeError(f"check must be a class made from dmlemu.checks.Check, not {quote(kind)}.")
    for each in kind.declarations:
        if not isinstance(each, Declaration):
            raise TypeError(
                f"{kind.__name__}.declarations must hold Declarations, not {type(each).__name__}."
            )
        if not is_built_in(each) and each.id in catalogue():
            raise ValueError(f"{kind.__name__} declares {each.id}, which is a check of dmlemu itself.")


def attach(device: Device) -> None:
    """Adds to a new device the checks whose ``level`` its strictness reaches (none at ``runtime``)."""
    checks = device.context.checks = Checks(device)
    _attached.add(checks)
    device.reports.built_in = catalogue
    for id, reason in defaults.suppressions.items():
        device.reports.check_suppression(id, reason)
    if device.context.strictness is Strictness.RUNTIME:
        return
    for kind in _builtin():
        if device.context.strictness is Strictness.STRICT or kind.level is Strictness.DEBUG:
            device.checks.add(kind)


_attached: weakref.WeakSet[Checks] = weakref.WeakSet()


def _end_all() -> None:
    """The program ends: so do the devices that it has not released, and that no thread uses."""
    for checks in list(_attached):
        device = checks._device()
        if device is not None and not device.context.has_ended:
            device.context.gpu.lock.call_if_free(device.context.end_checks)
            device.reports.deliver()


at_end.append(_end_all)


@cache
def _builtin() -> tuple[type[Check], ...]:
    """The classes in ``CHECKS`` of every subject, a folder that has a module ``check``."""
    subjects = sorted(path.parent.name for path in Path(__file__).parents[1].glob("*/check.py"))
    modules = [
        importlib.import_module(f"dmlemu.checks.{name}.check") for name in subjects if name != "framework"
    ]
    return tuple(kind for module in modules for kind in module.CHECKS)
