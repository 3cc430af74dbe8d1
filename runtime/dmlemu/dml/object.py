"""Base of all DirectML objects, and construction of DirectML errors."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from ..d3d12.core.object import Object
from ..diagnostics import unsupported
from .device_context import DeviceContext
from .rows import DD4, R2_10

if TYPE_CHECKING:
    from .device import Device

__all__ = ["DeviceChild", "check_own", "not_implemented"]

not_implemented = partial(unsupported.not_implemented, api="DML")


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
        raise R2_10.deleted_in_use(child, field=field, operation=operation)
    if child.context is not context:
        raise DD4.foreign_device(
            child,
            field=field,
            given=f"{child.title()} of {child.context}",
            expected=f"an object of {context}",
            operation=operation,
            title=child.title(),
        )
