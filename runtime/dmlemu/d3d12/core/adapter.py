"""Adapters: each one is a separate simulated GPU."""

from __future__ import annotations

import math
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from dmlemu_hw.chaos import Chaos
from dmlemu_hw.gpu import Policy
from dmlemu_hw.memory import Memory

from ...errors import Error
from ...reporting import defaults
from ..types.arguments import choice, integer, number, outside, text
from ..types.enums import FeatureLevel, SegmentGroup
from ..types.structs import HardwareId, Luid, MemoryBudget
from .host_events import notifier

if TYPE_CHECKING:
    from .host_events import Event
    from .object import Object

DEFAULT_NAME = "dmlemu Virtual GPU"
DEFAULT_MEMORY = 8 << 30  # bytes; they cost nothing until touched

_DRIVER_VERSION = (0, 1, 0, 0)
_VENDOR_ID, _DEVICE_ID = 0xD311, 0x0001  # not assigned to any vendor

_TIMEOUT = "DMLEMU_GPU_TIMEOUT"
_DEFAULT_TIMEOUT = 2.0  # seconds, as Windows' timeout detection

_lock = threading.Lock()
_next_luid = 1
_adapters: weakref.WeakSet[Adapter] = weakref.WeakSet()


def _free_locks() -> None:
    """Replaces the locks in a forked process: a thread that held one exists only in the parent."""
    global _lock
    _lock = threading.Lock()
    for adapter in _adapters:
        adapter.lock = threading.RLock()


os.register_at_fork(after_in_child=_free_locks)


def _new_luid() -> Luid:
    global _next_luid
    with _lock:
        low_part = _next_luid
        _next_luid += 1
    return Luid(low_part)


class Adapter:
    """A simulated GPU; mirrors ``IDXCoreAdapter``.

    ``dedicated_memory`` is its memory in bytes; creation that exceeds it fails with E_OUTOFMEMORY.
    ``policy`` selects when it executes: ``LAZY`` when the host waits, ``EAGER`` at submission,
    ``dmlemu.chaos(seed)`` in any order that the documentation allows.  None takes the policy of
    ``dmlemu.reporting.defaults`` when a device is created, or ``LAZY`` if none is set.  The attributes are
    the DXCore properties of the same names.

    ``max_gemm_batch`` imitates drivers that reject GEMM tensors with a leading size above a limit, such
    as 65535; None: no limit.

    ``gpu_timeout``: seconds after which a dispatch of a shader removes the device, as Windows does; 0:
    never, None: as the variable DMLEMU_GPU_TIMEOUT says, else 2.  On queues with the flag
    DISABLE_GPU_TIMEOUT it may take any time.
    """

    is_hardware = True
    is_integrated = False
    is_detachable = False
    dedicated_system_memory = 0
    driver_version = (
        _DRIVER_VERSION[0] << 48 | _DRIVER_VERSION[1] << 32 | _DRIVER_VERSION[2] << 16 | _DRIVER_VERSION[3]
    )

    def __init__(
        self,
        name: str = DEFAULT_NAME,
        dedicated_memory: int = DEFAULT_MEMORY,
        policy: Policy | Chaos | None = None,
        max_gemm_batch: int | None = None,
        gpu_timeout: float | None = None,
    ) -> None:
        self.driver_description = text(name, "name")
        self.dedicated_adapter_memory = integer(dedicated_memory, "dedicated_memory")
        self.shared_system_memory = self.dedicated_adapter_memory
        self._policy: Policy | Chaos | None = policy
        if policy is not None and not isinstance(policy, Chaos):
            self._policy = choice(policy, Policy, "policy", "dmlemu.chaos(seed)")
        self.max_gemm_batch = None if max_gemm_batch is None else integer(max_gemm_batch, "max_gemm_batch")
        self._gpu_timeout = None if gpu_timeout is None else _seconds(gpu_timeout)
        self.hardware_id = HardwareId(_VENDOR_ID, _DEVICE_ID, 0, 0)
        self.instance_luid = _new_luid()
        self.lock = threading.RLock()
        self._budget_events: dict[int, Callable[[], object]] = {}  # by cookie
        self._next_budget_cookie = 1
        self._device: weakref.ref[Object] | None = None
        self._memory: weakref.ref[Memory] | None = None
        _adapters.add(self)

    def __repr__(self) -> str:
        return f"<adapter '{self.driver_description}' {self.instance_luid.low_part}>"

    @property
    def policy(self) -> Policy | Chaos:
        """The policy given, or the current default."""
        return self._policy or defaults.policy or Policy.LAZY

    @property
    def gpu_timeout(self) -> float:
        """Seconds that a dispatch of a shader may take; 0: any number.

        ValueError: the variable DMLEMU_GPU_TIMEOUT is no such number.
        """
        if self._gpu_timeout is not None:
            return self._gpu_timeout
        given = os.environ.get(_TIMEOUT, "")
        try:
            return _seconds(float(given)) if given else _DEFAULT_TIMEOUT
        except (ValueError, Error):
            raise ValueError(f"{_TIMEOUT} is {given!r}; expected seconds, 0 or more.") from None

    def is_valid(self) -> bool:
        """``IDXCoreAdapter::IsValid``: always true, as a simulated GPU cannot be unplugged."""
        return True

    def is_feature_level_supported(self, level: FeatureLevel) -> bool:
        """Whether a device of that feature level can be created."""
        from .features import MAX_FEATURE_LEVEL

        return integer(level, "level") <= MAX_FEATURE_LEVEL

    def query_memory_budget(self, segment_group: SegmentGroup = SegmentGroup.LOCAL) -> MemoryBudget:
        """``IDXCoreAdapter::QueryState`` of ``AdapterMemoryBudget``: budget and current usage, in bytes.

        Buffers of every heap type count as LOCAL.  E_INVALIDARG: no such segment group.
        """
        if integer(segment_group, "segmentGroup") not in list(SegmentGroup):
            raise outside(segment_group, "segmentGroup", "LOCAL or NON_LOCAL", "is not a segment group")
        if segment_group == SegmentGroup.NON_LOCAL:
            return MemoryBudget(self.shared_system_memory, 0)
        memory = None if self._memory is None else self._memory()
        if memory is None or not memory.is_own:
            return MemoryBudget(self.dedicated_adapter_memory, 0)
        return MemoryBudget(memory.budget, memory.used)

    def register_video_memory_budget_change_notification_event(self, event: Event | int) -> int:
        """Sets an event, an object with ``set()`` or an eventfd, when the budget changes; returns a cookie.

        The budget is constant unless ``dmlemu.testing.faults.memory_budget`` changes it.  Mirrors
        ``IDXGIAdapter3::RegisterVideoMemoryBudgetChangeNotificationEvent``.  E_HANDLE: no eventfd.
        """
        notify = notifier(event)
        with self.lock:
            cookie = self._next_budget_cookie
            self._next_budget_cookie += 1
            self._budget_events[cookie] = notify
        return cookie

    def unregister_video_memory_budget_change_notification(self, cookie: int) -> None:
        """E_INVALIDARG: no event has that cookie.

        Mirrors ``IDXGIAdapter3::UnregisterVideoMemoryBudgetChangeNotification``.
        """
        with self.lock:
            found = self._budget_events.pop(integer(cookie, "dwCookie"), None)
        if found is None:
            expected = "a cookie that RegisterVideoMemoryBudgetChangeNotificationEvent returned"
            raise outside(cookie, "dwCookie", expected, "is not the cookie of a registered event")

    # --- for the device ---

    def budget_changed(self) -> None:
        """The budget of the device's memory is another one."""
        with self.lock:
            events = list(self._budget_events.values())
        for notify in events:
            notify()

    @property
    def device(self) -> Object | None:
        """The adapter's living device; in a forked process the parent's device, which is unusable there."""
        return None if self._device is None else self._device()

    def use(self, device: Object, memory: Memory) -> None:
        """A device of the adapter has been created."""
        self._device, self._memory = weakref.ref(device), weakref.ref(memory)

    def forget(self, device: Object) -> None:
        """The device of the adapter was destroyed."""
        with self.lock:
            if self.device is device:
                self._device = self._memory = None


def _seconds(given: float) -> float:
    seconds = number(given, "gpu_timeout")
    if not 0 <= seconds < math.inf:
        raise outside(given, "gpu_timeout", "seconds, 0 or more")
    return seconds


_default: Adapter | None = None


def create_adapter_list() -> list[Adapter]:
    """The adapters of this machine: one simulated GPU, the same object every time.

    Mirrors ``IDXCoreAdapterFactory::CreateAdapterList``.
    """
    global _default
    with _lock:
        existing = _default
    if existing is None:
        adapter = Adapter()
        with _lock:
            existing = _default = _default or adapter
    return [existing]
