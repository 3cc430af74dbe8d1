"""Device children: the device, its context, and hardware objects released with the child."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...errors import CallSite
from .device_context import DeviceContext
from .object import Object, released_at
from .rows import CL9

if TYPE_CHECKING:
    from ..device.device import Device


class DeviceChild(Object):
    """An object of one device, which it keeps alive; mirrors ``ID3D12DeviceChild``.

    For the layers above Direct3D 12: ``context`` is shared with the device, ``number`` is its place in the
    order of creation, ``residency`` its count of MakeResident and Evict, ``evicted_at`` the last Evict.
    """

    kind = "object of a device"

    def __init__(self, context: DeviceContext) -> None:
        super().__init__()
        self.context = context
        self._device = cast("Device", context.device)
        self.residency = 1
        self.evicted_at: CallSite | None = None
        self.number = context.register(self)

    def _own(self, *things: Any) -> None:
        """Names the hardware objects after this object and releases them with it.

        Garbage collection of the object releases them too.  No registry may refer to them: they refer to the
        device, and so to the object.
        """
        self._hardware = things
        self._renamed()

    def get_device(self) -> Device:
        """``ID3D12DeviceChild::GetDevice`` (nf-d3d12-id3d12devicechild-getdevice)."""
        return self._device

    def check_open(self, operation: str) -> None:
        """Raises when the object has been released: in C++ the program would crash here or later."""
        if self.released:
            raise CL9.called_after_release(self, operation=operation, context=released_at(self))

    def _release(self, *, emit: bool) -> None:
        if not self.released:
            super()._release(emit=emit)
            self._free()
            try:
                if emit:
                    self.context.emit_released(self)
            finally:
                self.context.forget(self.number)

    def _free(self) -> None:
        """Frees the object's GPU resources; called once, when it is released."""
        for each in self._hardware:
            each.close()
