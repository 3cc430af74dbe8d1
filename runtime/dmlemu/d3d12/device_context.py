"""The part of a device that runs the GPU: what faults and deadlocks become, events, and removal."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from dmlemu_hw.events import EventStream
from dmlemu_hw.faults import Deadlock, FaultKind, ForeignProcess, GpuFault
from dmlemu_hw.gpu import Gpu

from ..diagnostics import ids
from ..errors import CallSite, Error, HResult, Report, Severity, Strictness, call_site
from ..reporting import Reporter, Response
from .events import CallBegun, ObjectReleased
from .faults import fault_error
from .info_queue import InfoQueue, refusal
from .object import Object
from .recording import Recording
from .removal import RemovalRecord, removal_record
from .submissions import Submissions

if TYPE_CHECKING:
    from .command_queue import CommandQueue
    from .fence import Fence
    from .resource import Resource

_Result = TypeVar("_Result")


class GpuAtWork(Object):
    """Base of the device: a GPU, its queues, and what its addresses and lists are called in messages."""

    def __init__(self, gpu: Gpu, strictness: Strictness) -> None:
        super().__init__()
        self._gpu = gpu
        self._strictness = strictness
        self._is_runtime = strictness is Strictness.RUNTIME
        self.reports = Reporter(Response.COLLECT if self._is_runtime else None)
        if gpu.chaos is not None:
            self.reports.context = (f"The GPU runs under {gpu.chaos}",)
        self.info_queue = InfoQueue(self.reports, enabled=not self._is_runtime)
        self.checks: Any = None  # the layer of checks attaches them
        self._removed: HResult | None = None
        self.removal_record: RemovalRecord | None = None
        """What is known of the device's end, kept after it; None while it lives."""
        self._queues: weakref.WeakSet[CommandQueue] = weakref.WeakSet()
        self._resources: weakref.WeakValueDictionary[int, Resource] = weakref.WeakValueDictionary()
        self._recordings: weakref.WeakValueDictionary[int, Recording] = weakref.WeakValueDictionary()
        self._recording_numbers = itertools.count(1)
        self._pending = Submissions(gpu.lock)
        self._watchers = 0  # events outside that are still to be set: the GPU must run by itself

    @property
    def events(self) -> EventStream:
        """Everything that happens on the device, for those who subscribe."""
        return self._gpu.events

    def _here(self) -> CallSite | None:
        """The program's line, for messages; at strictness runtime nobody needs it."""
        return None if self._is_runtime else call_site()

    def _tell(self, *events: object) -> None:
        """Emits events of the API; raises what a check has to say of them."""
        if self._gpu.events:
            try:
                with self._gpu.lock:
                    for event in events:
                        self._gpu.events.emit(event)
            except BaseException as error:
                self._rest_checks(error)
                raise
            self.reports.raise_pending()

    def _rest_checks(self, error: BaseException) -> None:
        """What leaves a call so may have ended a check in the middle."""
        if self.checks is not None:
            self.checks.rest_after(error)

    def _resume_checks(self) -> None:
        if not any(queue.pending for queue in self._gpu.queues):
            self.checks.resume()

    def _tell_released(self, thing: Object) -> None:
        """The program released an object of the device, or the device itself."""
        if self._gpu.events.wants(ObjectReleased):
            self._tell(ObjectReleased(thing))

    def _begin_call(self, operation: str) -> None:
        """Tells that a call that may fail begins; who listens may let it fail."""
        if self._gpu.events.wants(CallBegun):
            self._tell(CallBegun(operation))

    def _run_gpu(self, work: Callable[[], _Result], otherwise: _Result) -> _Result:
        """Does something that may let the GPU execute; its faults become errors (RM3)."""
        try:
            if self.checks is not None and self.checks.is_resting:
                self._resume_checks()
            result = work()
            self._pending.forget_done()
            self.reports.raise_pending()
            return result
        except GpuFault as fault:
            error = fault_error(self, fault)
            if fault.kind is not FaultKind.REMOVED:
                self._remove(HResult.DXGI_ERROR_DEVICE_HUNG, error.report)
                if fault.kind is not FaultKind.INJECTED:  # that one is no mistake of the program
                    self._keep(error)
            if self._is_runtime:
                return otherwise
            raise error from None
        except Deadlock as deadlock:
            sentence, *queues = deadlock.text.splitlines()
            raise refusal(
                ids.FENCE_NEVER,
                sentence,
                context=tuple(line.removeprefix("  - ") for line in queues),
                hint=_way_out(deadlock.text),
                operation="ID3D12Fence::SetEventOnCompletion",
                rule="FN3: ID3D12CommandQueue::Wait",
                hresult=HResult.E_FAIL,
            ) from None
        except ForeignProcess as error:
            raise self._foreign(error) from None
        except BaseException as error:  # raised by the handler of a signal; a kernel that ran then is a fault
            self._rest_checks(error)
            if self._gpu.fault is not None and self._removed is None:
                self._remove(HResult.DXGI_ERROR_DEVICE_HUNG, fault_error(self, self._gpu.fault).report)
            raise

    def _check_process(self) -> None:
        """A forked process has no part in its parent's devices."""
        try:
            self._gpu.memory.check_process()
        except ForeignProcess as error:
            raise self._foreign(error) from None

    def _foreign(self, error: ForeignProcess) -> Error:
        return refusal(
            ids.DEVICE_FORKED,
            f"{self} is used in a process that was forked from its own.",
            operation="fork",
            rule="DEV5: D3D12CreateDevice",
            hresult=HResult.E_FAIL,
            context=(str(error),),
            hint="Create a device in the process that uses it, or start processes by 'spawn'.",
        )

    def _let_run(self) -> None:
        """While an event outside is to be set, nobody may ever wait through us: the GPU runs by itself."""
        if self._watchers:
            self._run_gpu(self._gpu.drain, None)

    def _watch(
        self, pairs: list[tuple[Fence, int]], *, all_of_them: bool, fire: Callable[[], object]
    ) -> None:
        """Fires once all, or any, of the fences have reached their values."""
        self._check_process()
        left = len(pairs) if all_of_them else 1
        self._watchers += 1

        def reached(fence: Fence, value: int) -> None:
            nonlocal left
            fence._fence.observe(value)
            left -= 1
            if left == 0:
                self._watchers -= 1
                fire()

        for each, value in pairs:
            each._fence.on_value(value, partial(reached, each, value))
        self._let_run()

    def _reject(self, error: Error) -> None:
        """A void method got bad arguments: raises, or at strictness runtime removes the device."""
        if error.hresult is HResult.E_NOTIMPL or not self._is_runtime:
            raise error
        self._remove(HResult.DXGI_ERROR_INVALID_CALL, error.report)

    def _remove(self, reason: HResult, report: Report) -> None:
        if self._removed is None:
            self._removed = reason
            self._gpu.remove(GpuFault(FaultKind.REMOVED, report.message))
            self.removal_record = removal_record(self, reason, report)

    def _info(self, error: Error, severity: Severity | None = None) -> None:
        """Says what is worth saying and no error; at strictness runtime nobody listens."""
        if not self._is_runtime:
            self.reports.add(error.report if severity is None else replace(error.report, severity=severity))
            self.reports.raise_pending()

    def _keep(self, error: Error) -> None:
        """Stores an error that the call at fault tells by itself."""
        if not self._is_runtime:
            self.reports.add(error.report, hresult=error.hresult)

    # --- names for what the GPU sees ---

    def _next_recording(self) -> int:
        return next(self._recording_numbers)

    def _resource_at(self, address: int) -> Resource | None:
        """The live buffer that holds a GPU virtual address."""
        allocation = self._gpu.memory.find(address)
        return None if allocation is None else self._resources.get(allocation.address)

    def _name_address(self, address: int) -> str:
        resource = self._resource_at(address)
        return self._gpu.memory.whereabouts(address) if resource is None else str(resource)


def _way_out(deadlock: str) -> str:
    if "in a circle" in deadlock:
        return "Queue one of these signals before the wait of its queue."
    return "Queue a Signal to that value before anything waits for it; no other thread is there that could."
