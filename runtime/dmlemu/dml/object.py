"""What every DirectML object has, and how DirectML's errors are made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..d3d12.object import Object
from ..errors import Error, HResult, Report, Severity, caller, spell

if TYPE_CHECKING:
    from .device import Device

__all__ = ["DeviceChild", "at_call", "failure", "not_implemented"]


class DeviceChild(Object):
    """An object of one DirectML device, which it keeps alive; mirrors ``IDMLDeviceChild``."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self._device = device
        self.serial = device._count(self.kind)

    def get_device(self) -> Device:
        """The DirectML device; mirrors ``IDMLDeviceChild::GetDevice``."""
        return self._device


def failure(
    id: str,
    message: str,
    *,
    operation: str,
    rule: str,
    hresult: HResult = HResult.E_INVALIDARG,
    field: str = "",
    given: Any = "",
    expected: Any = "",
    object: Any = "",
    hint: str = "",
    severity: Severity = Severity.ERROR,
    d3d12_id: int = 0,
    context: tuple[str, ...] = (),
) -> Error:
    """One error of DirectML: ``id`` is the check's stable name, ``rule`` the rule's id and its page."""
    report = Report(
        id=id,
        api="DML",
        message=message,
        severity=severity,
        operation=operation,
        field=field,
        given=spell(given),
        expected=spell(expected),
        object=spell(object),
        hint=hint,
        context=(*context, *_place(operation)),
        rule=rule,
        d3d12_id=d3d12_id,
    )
    return Error(hresult, report)


def at_call(error: Error) -> Error:
    """``error`` with the line of the user's call."""
    report = error.report
    return Error(error.hresult, replace(report, context=report.context + _place(report.operation)))


def _place(operation: str) -> tuple[str, ...]:
    place = caller()
    return (f"While calling {operation} at {place}",) if place else ()


def not_implemented(operation: str, what: str, hint: str = "") -> Error:
    """What the emulator does not do, by name."""
    return failure(
        "OP_NOT_EMULATED",
        f"{what} is not emulated.",
        operation=operation,
        rule="",
        hresult=HResult.E_NOTIMPL,
        hint=hint,
    )
