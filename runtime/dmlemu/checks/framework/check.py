"""Check: base class of the subscribers of a device's event stream that report what they find."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from dmlemu_hw.events import Foresight, Subscription

from ...diagnostics.catalogue import catalogue
from ...diagnostics.declaration import Declaration, When
from ...diagnostics.rule import report_of
from ...dml.rows import BIND_LATE, DESC_RANGE_SHARED
from ...errors import Strictness, is_object, loading
from .names import Names

if TYPE_CHECKING:
    from ...d3d12.device.device import Device

__all__ = ["Check", "on"]

_Method = TypeVar("_Method", bound=Callable[..., None])

_OVERWRITING = (
    DESC_RANGE_SHARED.id,
    BIND_LATE.id,
)  # the GPU then finds other descriptors than were recorded


def on(*kinds: type) -> Callable[[_Method], _Method]:
    """Marks a method of a check as the handler of events of these kinds."""

    def mark(method: _Method) -> _Method:
        method._event_kinds = kinds  # type: ignore[attr-defined]
        return method

    return mark


class Check:
    """A subscriber: methods marked with :func:`on` receive events, and :meth:`report` reports a mistake.

    ``declarations`` are the checks, by id, that it may report.  It is created for one device, by
    ``device.checks.add(TheCheck)``; built-in ones are created at strictness ``level`` and above.  One that is
    a ``Foresight``, too, gets no events of the commands that it foresees.  Its methods are called one at a
    time.  They must not wait for the GPU, and ``Freed`` events, which garbage collection may cause at any
    moment, must only be noted.
    """

    declarations: ClassVar[tuple[Declaration, ...]] = ()
    level: ClassVar[Strictness] = Strictness.STRICT

    def __init__(self, device: Device) -> None:
        self._device = weakref.ref(device)
        self.names = Names(device)
        self._subscriptions: list[Subscription] = []

    def __repr__(self) -> str:
        device = self._device()
        return f"<check {type(self).__name__} of {'a device that is gone' if device is None else device}>"

    @cached_property
    def _declared(self) -> dict[str, Declaration]:
        """Its declarations by id; those of dmlemu itself with the rules that are reported as them."""
        with loading():
            known = catalogue()
        return {each.id: known.get(each.id, each) for each in self.declarations}

    @property
    def device(self) -> Device:
        """The watched device."""
        device = self._device()
        assert device is not None
        return device

    def report(
        self,
        check: str | Declaration,
        message: str,
        *,
        cause: Hashable = None,
        operation: str = "",
        api: str = "",
        **more: Any,
    ) -> None:
        """Reports a finding of a declared check, or of one with that id.

        ``message`` is one sentence; ``operation`` is where it happened, in words; ``more`` are further
        fields of :class:`dmlemu.Report`; ``object`` may be the object itself.  Reports of one ``cause``
        are one report with a count.
        """
        id = check if isinstance(check, str) else check.id
        declaration = self._declared.get(id)
        if declaration is None:
            raise ValueError(f"{type(self).__name__} reports {id}, which is not one of its declarations.")
        it = more.get("object", "")
        if is_object(it):
            more.setdefault("created_at", it.created_at)
            more["object"] = str(it)
        if declaration.when in (When.SUBMIT, When.EXECUTE):
            more["hint"] = self._with_cause(more.get("hint", ""))
        report = report_of(declaration, message, api=api, operation=operation, **more)
        self.device.reports.add(report, cause)

    def _with_cause(self, hint: str) -> str:
        """The hint; behind descriptors that were overwritten, the GPU executes what nobody has recorded."""
        first = next((id for id in _OVERWRITING if self.device.reports.has(id)), "")
        note = f"this may be a consequence of {first}, reported before: fix that first" if first else ""
        return "; ".join(filter(None, (hint, note)))

    def start(self) -> None:
        """Subscribes the marked methods."""
        stream = self.device.events
        foresight = self if isinstance(self, Foresight) else None
        for name in dir(type(self)):
            method = getattr(type(self), name, None)
            kinds = getattr(method, "_event_kinds", None)
            if kinds is not None:
                stream.subscribe(getattr(self, name), *kinds, kept=self._subscriptions, foresight=foresight)

    def end(self) -> None:
        """To be overridden: reports what is only known at the end of the device."""

    def stop(self) -> None:
        """Ends the subscriptions."""
        for subscription in self._subscriptions:
            subscription.close()
        self._subscriptions = []
