"""What every DirectML object has, and how DirectML's errors are made."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ..d3d12.object import Object
from ..diagnostics import refusal as refusals

if TYPE_CHECKING:
    from .device import Device

__all__ = ["DeviceChild", "not_implemented", "refusal"]

refusal = partial(refusals.refusal, api="DML")
not_implemented = partial(refusals.not_implemented, api="DML")


class DeviceChild(Object):
    """An object of one DirectML device, which it keeps alive; mirrors ``IDMLDeviceChild``."""

    def __init__(self, device: Device) -> None:
        super().__init__()
        self._device = device
        self.serial = device._count(self.kind)

    def get_device(self) -> Device:
        """The DirectML device; mirrors ``IDMLDeviceChild::GetDevice``."""
        return self._device

    def _release(self, *, tell: bool) -> None:
        if not self._released:
            super()._release(tell=tell)
            if tell:
                self._device.get_parent_device()._tell_released(self)
