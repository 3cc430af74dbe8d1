"""Base of all DirectML objects, and construction of DirectML errors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from ..d3d12.core.object import Object
from ..d3d12.core.rows import BIND_FOREIGN_DEVICE, OBJECT_DELETED_IN_USE
from ..diagnostics import refusal as refusals
from .device_context import DeviceContext

if TYPE_CHECKING:
    from .device import Device

__all__ = ["DeviceChild", "check_own", "not_implemented", "refusal"]

refusal = partial(refusals.refusal, api="DML")
not_implemented = partial(refusals.not_implemented, api="DML")


class DeviceChild(Object):
    """An object of one DirectML device, which it keeps alive; mirrors ``IDMLDeviceChild``."""

    def __init__(self, context: DeviceContext) -> None:
        super().__init__()
        self.context = context
        self._device = cast("Device", context.device)
        self.serial = context.count(self.kind)

    def get_device(self) -> Device:
        """The DirectML device; mirrors ``IDMLDeviceChild::GetDevice``."""
        return self._device

    def _release(self, *, emit: bool) -> None:
        if not self.released:
            super()._release(emit=emit)
            if emit:
                self.context.d3d12.emit_released(self)


def check_own(context: DeviceContext, child: DeviceChild, field: str, operation: str) -> None:
    """Checks that ``child`` was created by the device and is not released."""
    if child.released:
        raise refusal(
            OBJECT_DELETED_IN_USE,
            f"{field} ({child}) was released.",
            operation=operation,
            rule="2.10: IDMLDevice",
            field=field,
            given="a released object",
            expected="a live object",
            object=child,
        )
    if child.context is not context:
        raise refusal(
            BIND_FOREIGN_DEVICE,
            f"{field} ({child.title()}) belongs to another DirectML device.",
            operation=operation,
            rule="DD4: IDMLDevice",
            field=field,
            given=f"{child.title()} of {child.context}",
            expected=f"an object of {context}",
            object=child,
        )
