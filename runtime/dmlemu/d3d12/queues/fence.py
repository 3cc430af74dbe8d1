"""Fences: 64-bit values that host and queues signal and wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dmlemu_hw.fence import Fence as HardwareFence

from ...errors import number_of
from ..core.device_child import DeviceChild
from ..core.host_events import Event, notifier
from ..types.arguments import integer, integers, number, outside, sequence
from ..types.enums import FenceFlags, MultipleFenceWaitFlags
from ..types.structs import UINT64_MAX
from .rows import FN1, FN7

if TYPE_CHECKING:
    from ..core.device_context import DeviceContext


def check_flags(flags: FenceFlags) -> None:
    """FN1."""
    integer(flags, "flags")
    known = int(FenceFlags.SHARED | FenceFlags.SHARED_CROSS_ADAPTER | FenceFlags.NON_MONITORED)
    if int(flags) & ~known:
        raise FN1.flags(given=flags)


def check_value(value: int, operation: str, field: str) -> None:
    """Checks that a fence value is an unsigned 64-bit number."""
    if type(value) is int and 0 <= value <= UINT64_MAX:  # as nearly always
        return
    if not 0 <= integer(value, field) <= UINT64_MAX:
        raise FN1.value(field=field, given=value, page=operation, operation=operation)


def check_timeout(timeout: float) -> float:
    """Seconds."""
    seconds = number(timeout, "timeout")
    if not seconds >= 0:
        raise outside(timeout, "timeout", "0 or more seconds, or None", "is not a valid timeout")
    return seconds


class Fence(DeviceChild):
    """A 64-bit value that host and queues signal and wait for; mirrors ``ID3D12Fence``."""

    kind = "fence"

    def __init__(self, context: DeviceContext, fence: HardwareFence, flags: FenceFlags) -> None:
        super().__init__(context)
        self.hardware = fence
        self._flags = flags
        self._own(fence)

    def get_completed_value(self) -> int:
        """The current value; 2**64 - 1 once the device is removed.

        Mirrors ``ID3D12Fence::GetCompletedValue`` (nf-d3d12-id3d12fence-getcompletedvalue).  Each
        call lets the GPU take one step afterwards, so that a polling loop terminates.
        """
        value = self.hardware.observe()
        self.context.run_gpu(self.context.gpu.poll, None)
        return value

    def get_creation_flags(self) -> FenceFlags:
        """``ID3D12Fence1::GetCreationFlags``."""
        return self._flags

    def signal(self, value: int) -> None:
        """Sets the value from the host, immediately; it may decrease (FN2).

        Mirrors ``ID3D12Fence::Signal`` (nf-d3d12-id3d12fence-signal).
        """
        self.context.check_alive("Signal")
        self.check_open("Signal")
        check_value(value, "ID3D12Fence::Signal", "Value")
        self.context.run_gpu(lambda: self.hardware.signal(value), None)
        self.context.let_run()

    def set_event_on_completion(self, value: int, event: Event | int | None = None) -> None:
        """Sets ``event`` once the fence reaches ``value``; None blocks until then (FN4).

        ``event``: an object with ``set()``, such as a ``threading.Event``, or the number of an
        eventfd.  Mirrors ``ID3D12Fence::SetEventOnCompletion``
        (nf-d3d12-id3d12fence-seteventoncompletion).  Blocking raises FENCE_NEVER when nothing can
        signal the value.  An exception of ``set()`` is raised from the call in which the fence reached
        the value, such as ``signal`` or ``wait``, after that call is done and all other events are set.
        """
        self.check_open("SetEventOnCompletion")
        check_value(value, "ID3D12Fence::SetEventOnCompletion", "Value")
        if event is None:
            self.wait(value)
            return
        self.context.watch([(self.hardware, value)], all_of_them=True, fire=notifier(event))

    def wait(self, value: int, timeout: float | None = None) -> bool:
        """Runs the GPU until the fence reaches ``value``; False when ``timeout`` seconds pass before.

        Not in Direct3D 12, where SetEventOnCompletion and a wait for the event do this.  Raises
        FENCE_NEVER when, without a timeout, nothing can signal the value.  The timeout is checked between
        commands.  An exception during a long command, such as KeyboardInterrupt, aborts the command and
        removes the device (DXGI_ERROR_DEVICE_HUNG): its results are undefined.
        """
        self.check_open("Wait")
        check_value(value, "Wait", "Value")
        if timeout is not None:
            timeout = check_timeout(timeout)
        return self.context.run_gpu(lambda: self.context.gpu.wait(self.hardware, value, timeout), True)

    def _free(self) -> None:  # releases whatever waits for it (FN6)
        self.context.run_gpu(self.hardware.close, None)


def check_multiple(fences: Sequence[Fence], values: Sequence[int], flags: MultipleFenceWaitFlags) -> None:
    """FN7."""

    if integer(flags, "flags") not in (MultipleFenceWaitFlags.ALL, MultipleFenceWaitFlags.ANY):
        raise FN7.flags(given=flags)
    if len(fences) != len(values):
        raise FN7.fence_values(
            given=number_of(len(values), "value"),
            expected=number_of(len(fences), "value"),
            fences=len(fences),
            values=len(values),
        )
    if not fences:
        raise FN7.num_fences()


def set_event_on_multiple(
    context: DeviceContext,
    fences: Sequence[Fence],
    fence_values: Sequence[int],
    flags: MultipleFenceWaitFlags = MultipleFenceWaitFlags.ALL,
    event: Event | int | None = None,
) -> None:
    """``ID3D12Device1::SetEventOnMultipleFenceCompletion`` (FN7)."""
    fences, fence_values = sequence(fences, "fences"), integers(fence_values, "fence_values")
    check_multiple(fences, fence_values, flags)
    pairs = list(zip(fences, fence_values, strict=True))
    for i, (each, value) in enumerate(pairs):
        context.check_child(each, Fence, "SetEventOnMultipleFenceCompletion", f"ppFences[{i}]")
        check_value(value, "SetEventOnMultipleFenceCompletion", f"pFenceValues[{i}]")
    all_of_them = flags == MultipleFenceWaitFlags.ALL
    if event is not None:
        context.watch(
            [(each.hardware, value) for each, value in pairs], all_of_them=all_of_them, fire=notifier(event)
        )
        return
    awaited = [(each.hardware, value) for each, value in pairs]

    def why() -> str:
        texts = ", ".join(f"{each} to reach {value} (it is {each.hardware.value})" for each, value in pairs)
        return f"Waiting for {'all' if all_of_them else 'any'} of {texts} would never end."

    which = all if all_of_them else any
    context.run_gpu(lambda: context.gpu.wait_for(awaited, which, why), True)
