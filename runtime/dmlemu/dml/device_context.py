"""Device context, shared by a DirectML device's objects: Direct3D 12 context, level, removal."""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from typing import Any

from .. import d3d12
from ..d3d12.core.device_context import RemovalWatcher, RemovalWatchers, removal_lines, tell
from ..errors import Error, HResult, shorten
from .enums import CreateDeviceFlags, FeatureLevel
from .rows import R2_11

__all__ = ["DeviceContext", "removed_error"]


class DeviceContext:
    """The internal interface of a DirectML device; its objects hold it as ``context``.

    It does not keep the device alive.  ``d3d12``: the context of the Direct3D 12 device, with the same
    ``gpu`` and ``strictness``.  ``level``: the feature level.  ``removed_by``: the error that removed the
    device (strictness ``runtime``).  ``evaluator``: what ``dmlemu.evaluate`` keeps between calls.
    """

    def __init__(
        self, device: d3d12.Object, parent: d3d12.Device, flags: CreateDeviceFlags, level: FeatureLevel
    ) -> None:
        self._device = weakref.ref(device)
        self.d3d12 = parent.context
        self.gpu = parent.context.gpu
        self.strictness = parent.context.strictness
        self.level = level
        self._flags = flags
        self._reason = HResult.S_OK
        self._removal_watchers: RemovalWatchers = weakref.WeakValueDictionary()
        self.removed_by: Error | None = None
        self.evaluator: Any = None
        self._counts: Counter[str] = Counter()

    @property
    def device(self) -> d3d12.Object:
        """The device itself, which each of its objects keeps alive."""
        device = self._device()
        assert device is not None
        return device

    def __str__(self) -> str:
        return str(self.device)

    def count(self, kind: str) -> int:
        """The serial of a new object within its kind."""
        self._counts[kind] += 1
        return self._counts[kind]

    def emit(self, event: object) -> None:
        """Emits an event on the stream of the Direct3D 12 device."""
        self.d3d12.emit(event)

    # --- removal ---

    @property
    def removed_reason(self) -> HResult:
        """S_OK, or why this device, or the Direct3D 12 device, was removed."""
        if self._reason != HResult.S_OK:
            return self._reason
        return self.d3d12.removed or HResult.S_OK

    def on_removal(self, watcher: RemovalWatcher) -> None:
        """Calls ``watcher`` with the reason and its report once this or the Direct3D 12 device is removed,
        perhaps twice.

        The caller must keep it.
        """
        self._removal_watchers[id(watcher)] = watcher
        if self.removed_by is not None:
            watcher(self._reason, self.removed_by.report)
        self.d3d12.on_removal(watcher)

    def is_removed(self) -> bool:
        """Whether the device is removed; void methods then do nothing."""
        return self.d3d12.removed is not None or self._reason is not HResult.S_OK

    def check_alive(self, operation: str) -> None:
        """Raises DXGI_ERROR_DEVICE_REMOVED once the device is removed."""
        if self.is_removed():
            raise removed_error(operation, f"({self.removed_reason.name})", self._removal_lines())
        self.d3d12.begin_call(operation)

    def _removal_lines(self) -> tuple[str, ...]:
        """What removed this device, or else the Direct3D 12 device."""
        if self.removed_by is None:
            return self.d3d12.removal_lines()
        return removal_lines(self._reason, self.removed_by.report)

    def reject(self, error: Error) -> None:
        """A void method failed: raises, or removes the device, as on Windows."""
        if self.d3d12.raises:
            raise error
        self.d3d12.keep(error)
        if self.removed_by is None:  # the first reason is kept
            self.removed_by = error
            self._reason = error.hresult
            tell(self._removal_watchers, error.hresult, error.report)
        if self._flags & CreateDeviceFlags.DEBUG:
            print(f"[DIRECTML ERROR]: {shorten(error.report.message, 2000)}", file=sys.stderr)


def removed_error(operation: str, why: str, cause: tuple[str, ...]) -> Error:
    """The error of calls on a removed device.  ``cause``: see :func:`.removal_lines`."""
    return R2_11.removed(operation=operation, context=cause, why=why)
