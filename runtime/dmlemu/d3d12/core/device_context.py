"""Device context, shared by a device's objects and the layers above: GPU, reports, submissions, removal."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dmlemu_hw.allocation import Heap as HardwareHeap
from dmlemu_hw.events import EventStream
from dmlemu_hw.faults import Deadlock, FaultKind, ForeignProcess, GpuFault
from dmlemu_hw.fence import Fence
from dmlemu_hw.gpu import Gpu
from dmlemu_hw.lock import Lock

from ...errors import CallSite, Error, HResult, Report, Severity, Strictness, call_site
from ...reporting import Reporter, Response
from .descriptor_uses import DescriptorUses
from .events import CallBegun, ObjectReleased
from .faults import fault_error
from .info_queue import InfoQueue, not_a, spell_object
from .names import Names
from .object import Object, released_at
from .removal import RemovalRecord, removal_record
from .rows import (
    CL9,
    DEV5,
    FN3,
    OB3,
    RM2,
)
from .submissions import Submissions

if TYPE_CHECKING:
    from ...pictures.memory_map import MemoryMap
    from .adapter import Adapter

    class LateCopies(Protocol):
        """Copies of mapped memory under chaos; see ``delayed_visibility``."""

        def map(self, resource: Any) -> memoryview: ...

        def unmap(self, resource: Any, *, last: bool) -> None: ...

    class MemoryUses(Protocol):
        """What a watch of memory has seen; see ``tracing.memory``."""

        def picture(self, buffer: Any) -> MemoryMap: ...


__all__ = ["DeviceContext"]

_Result = TypeVar("_Result")
RemovalWatcher = Callable[[HResult, Report], None]
RemovalWatchers = weakref.WeakValueDictionary[int, RemovalWatcher]


def tell(watchers: RemovalWatchers, reason: HResult, cause: Report) -> None:
    """Calls those that live; other threads may add some."""
    for reference in watchers.valuerefs():
        watcher = reference()
        if watcher is not None:
            watcher(reason, cause)


def removal_lines(reason: HResult, cause: Report) -> tuple[str, ...]:
    """What a call on a removed device says about the removal."""
    return (f"Removed with {reason.name}: {cause.message}",)


class DeviceContext:
    """The internal interface of a device; each of its objects holds it as ``context``.

    It does not keep the device alive; references to the device or to one of its objects do.

    ``gpu``: the hardware.  ``strictness``; ``has_layer``: it is not ``runtime``, so the rules of the debug
    layer are looked at.  ``raises``: calls that break them raise, and invalid calls of void methods do; if
    not, every call does what it does on Windows without a debug layer, and what is wrong is reported.
    ``reports`` and ``info_queue`` receive reports and messages.  ``checks``: attached by the checks layer.
    ``removed``: why the device was removed, with its ``removal_record``; None while it is not.
    ``references``: the number that create_device returned (DEV5).  ``children``: the living objects in
    creation order.  ``resources`` by address, ``descriptor_heaps`` by CPU handle, ``recordings`` by serial;
    ``names``: their names in messages.  ``host_heaps``: the CPU-visible heaps.  ``submissions``: work that
    queues have not completed.  ``descriptor_uses``: writers and readers of descriptors.  ``late_visibility``:
    copies of mapped memory under chaos.  ``memory_uses``: of the latest watch.  ``watches``: of host events
    that are not set yet, for which the GPU must run by itself.
    ``submitting``: held by the call that assigns tickets of queues.  ``maps_lock``: buffers may
    be mapped from any thread (MP8).
    """

    def __init__(
        self, gpu: Gpu, strictness: Strictness, adapter: Adapter, device: Object, *, raises: bool
    ) -> None:
        self.gpu = gpu
        self.strictness = strictness
        self.has_layer = strictness is not Strictness.RUNTIME
        self.raises = raises and self.has_layer
        self.layer = _Layer(self)
        if not raises:  # as on Windows, a wait that nobody ends does not return
            gpu.has_native_threads = True
        gpu.on_stuck = partial(_tell_stuck, weakref.ref(self))
        self.adapter = adapter
        self._device = weakref.ref(device)
        self.reports = Reporter(None if self.raises else Response.COLLECT, refuses=raises)
        self.submitting, self.maps_lock = Lock(), Lock()
        locks = (gpu.lock, self.submitting, self.maps_lock)
        self.reports.may_call_out = lambda: not any(lock.is_mine() for lock in locks)
        if gpu.chaos is not None:
            self.reports.context = (f"The GPU runs under {gpu.chaos}",)
        self.info_queue = InfoQueue(self.reports, enabled=self.has_layer)
        self.checks: Any = None
        self.removed: HResult | None = None
        self._removal_cause: Report | None = None
        self._removal_watchers: RemovalWatchers = weakref.WeakValueDictionary()
        self.removal_record: RemovalRecord | None = None
        self.references = 1
        self.has_ended = False
        self._ended_behind = -1  # submissions before the checks reported what is known at the end
        self.children: weakref.WeakValueDictionary[int, Object] = weakref.WeakValueDictionary()
        self._child_numbers = itertools.count(1)
        self._serials: dict[str, Iterator[int]] = {}
        self.names = Names(gpu)
        self.resources, self.recordings = self.names.resources, self.names.recordings
        self.descriptor_heaps: weakref.WeakValueDictionary[int, Object] = weakref.WeakValueDictionary()
        self.host_heaps: weakref.WeakSet[HardwareHeap] = weakref.WeakSet()
        self._recording_numbers = itertools.count(1)
        self.submissions = Submissions()
        self._forgotten_at = 0  # what the GPU had executed when the completed ones were dropped
        self.descriptor_uses = DescriptorUses(gpu.descriptors)
        self.late_visibility: LateCopies | None = None
        self.memory_uses: MemoryUses | None = None
        self.watches: set[object] = set()

    @property
    def device(self) -> Object:
        """The device itself, which each of its objects keeps alive."""
        device = self._device()
        assert device is not None
        return device

    @property
    def events(self) -> EventStream:
        """The event stream of the device."""
        return self.gpu.events

    def __str__(self) -> str:
        return str(self.device)

    # --- events and messages ---

    def here(self) -> CallSite | None:
        """The program's line, for messages; empty at strictness runtime."""
        return call_site() if self.has_layer else None

    def emit(self, *events: object) -> None:
        """Emits events of the API; raises the errors that checks report for them."""
        if self.gpu.events:
            try:
                with self.gpu.lock:
                    for event in events:
                        self.gpu.events.emit(event)
            except BaseException as error:
                self._rest_checks(error)
                raise
            self.reports.raise_pending()

    def emit_released(self, thing: Object) -> None:
        """The program released an object of the device, or the device itself."""
        if self.gpu.events.wants(ObjectReleased):
            self.emit(ObjectReleased(thing))

    def begin_call(self, operation: str) -> None:
        """Emits the start of a call that returns an HRESULT; a subscriber may make it fail."""
        if self.gpu.events.wants(CallBegun):
            self.emit(CallBegun(operation))

    def inform(self, error: Error, severity: Severity | None = None) -> None:
        """Stores a message that is not an error; does nothing at strictness runtime."""
        if self.has_layer:
            self.reports.add(error.report if severity is None else replace(error.report, severity=severity))
            self.reports.raise_pending()

    def keep(self, error: Error) -> None:
        """Stores an error that the failing call raises itself."""
        if self.has_layer:
            self.reports.add(error.report, hresult=error.hresult)
            error.is_stored = True

    def object_to(self, error: Error) -> None:
        """Handles an error that only the debug layer reports: raises or keeps it."""
        if self.raises:
            raise error
        self.keep(error)

    def checked(self, rule: Callable[[bool], _Result]) -> _Result:
        """Runs a rule; it gets True if it should reject only what the runtime rejects."""
        result = rule(not self.raises)
        if self.has_layer and not self.raises:
            with self.layer:
                rule(False)
        return result

    def _rest_checks(self, error: BaseException) -> None:
        """Such an exception may have interrupted a check."""
        if self.checks is not None:
            self.checks.rest_after(error)

    def _resume_checks(self) -> None:
        if not any(queue.pending for queue in self.gpu.queues):
            self.checks.resume()

    # --- running the GPU ---

    def run_gpu(self, work: Callable[[], _Result], otherwise: _Result, *, raising: bool = True) -> _Result:
        """Runs an action that may make the GPU execute; GPU faults become errors (RM3).

        ``raising``: if False, reports that are to be raised are left to the next call.
        """
        try:
            if self.checks is not None and self.checks.resting:
                self._resume_checks()
            result = work()
            executed = self.gpu.executed
            if executed != self._forgotten_at:
                self.submissions.forget_done()
                self._forgotten_at = executed
            if raising:
                self.reports.raise_pending()
            return result
        except GpuFault as fault:
            error = fault_error(self.names, fault, self.reports.context)
            if fault.kind is not FaultKind.REMOVED:
                self.remove(HResult.DXGI_ERROR_DEVICE_HUNG, error.report)
                if fault.kind is not FaultKind.INJECTED:  # not an error of the program
                    self.keep(error)
            if not self.raises:
                return otherwise
            raise error from None
        except Deadlock as deadlock:
            raise _never(deadlock.text, _deadlock_hint(deadlock)) from None
        except ForeignProcess as error:
            raise self._foreign(error) from None
        except BaseException as error:  # raised by a signal handler; a kernel interrupted by it is a fault
            self._rest_checks(error)
            if self.gpu.fault is not None and self.removed is None:
                self.remove(
                    HResult.DXGI_ERROR_DEVICE_HUNG,
                    fault_error(self.names, self.gpu.fault, self.reports.context).report,
                )
            raise

    def let_run(self) -> None:
        """Lets the GPU run by itself while a host event is pending: the program may wait outside dmlemu."""
        if self.watches:
            self.run_gpu(self.gpu.drain, None)

    def watch(self, pairs: list[tuple[Fence, int]], *, all_of_them: bool, fire: Callable[[], object]) -> None:
        """Sets the event once all, or any, of the fences have reached their values.

        Fences may reach them on several threads at once: what counts is done in one step each.
        """
        self.check_process()
        left = list(range(len(pairs) if all_of_them else 1))
        watch = object()
        self.watches.add(watch)

        def reached(fence: Fence, value: int) -> None:
            if not left:  # any of them, and another one was the first
                return
            fence.observe(value)
            try:
                number = left.pop()
            except IndexError:
                return
            if number == 0:
                self.watches.discard(watch)
                fire()

        for each, value in pairs:
            each.on_value(value, partial(reached, each, value))
        self.let_run()

    # --- removal ---

    def reject(self, error: Error) -> None:
        """A void method got invalid arguments: raises, or removes the device, as on Windows."""
        if error.hresult is HResult.E_NOTIMPL or self.raises:
            raise error
        self.keep(error)
        self.remove(HResult.DXGI_ERROR_INVALID_CALL, error.report)

    def on_removal(self, watcher: RemovalWatcher) -> None:
        """Calls ``watcher`` with the reason and its report once the device is removed; now, if it is already.

        The caller must keep it.
        """
        self._removal_watchers[id(watcher)] = watcher
        if self.removed is not None and self._removal_cause is not None:
            watcher(self.removed, self._removal_cause)

    def remove(self, reason: HResult, report: Report) -> None:
        """Removes the device; the first reason is kept."""
        if self.removed is None:
            self._removal_cause, self.removed = report, reason  # in this order: other threads read both
            tell(self._removal_watchers, reason, report)
            self.gpu.remove(GpuFault(FaultKind.REMOVED, report.message))
            self.removal_record = removal_record(self.names, self.submissions, reason, report)

    def removal_lines(self) -> tuple[str, ...]:
        """Why the device was removed, for the calls that fail from then on; empty if it is not."""
        if self.removed is None or self._removal_cause is None:
            return ()
        return removal_lines(self.removed, self._removal_cause)

    # --- rules of every call ---

    def check_process(self) -> None:
        """A forked process cannot use its parent's devices."""
        try:
            self.gpu.memory.check_process()
        except ForeignProcess as error:
            raise self._foreign(error) from None

    def _foreign(self, error: ForeignProcess) -> Error:
        return DEV5.forked(operation="", context=(str(error),), device=self)

    def check_alive(self, operation: str) -> None:
        """Raises DXGI_ERROR_DEVICE_REMOVED after removal (RM2); also raises when the device was released or
        belongs to another process."""
        self.check_process()
        if self.has_ended:
            raise DEV5.deleted_in_use(self.device, operation=operation)
        if self.removed is None:
            if self.gpu.events.subscriptions:
                self.begin_call(operation)
            return
        raise RM2.removed(self.device, operation=operation, context=self.removal_lines())

    def check_child(self, child: object, kind: type[Object], operation: str, field: str) -> None:
        """Checks that an argument is a live object of the right kind and of this device (OB3, CL9)."""
        owner = getattr(child, "context", None)
        if isinstance(child, kind) and owner is self and not child.released:
            return
        if not isinstance(child, kind):
            what = f"is not {'an' if kind.kind.startswith('o') else 'a'} {kind.kind}"
        elif owner is not self:
            what = "belongs to another device"
        else:
            what = "has been released"
        given = child.title() if isinstance(child, Object) else spell_object(child)
        released = what == "has been released"
        broken = CL9.argument_released if released else OB3.foreign_device
        raise broken(
            child if isinstance(child, Object) else "",
            message=not_a(field, child, what) if child is None else f"{field} ({given}) {what}.",
            field=field,
            given=given,
            expected=f"a live {kind.kind.removesuffix(' of a device')} of the device",
            page=operation,
            operation=operation,
            context=released_at(child) if released and isinstance(child, Object) else (),
        )

    # --- objects and their names ---

    def register(self, child: Object) -> int:
        """Assigns a new object its serial within its kind; returns its number within the device."""
        child.serial = next(self._serials.setdefault(child.kind, itertools.count(1)))
        number = next(self._child_numbers)
        self.children[number] = child
        return number

    def live_children(self) -> list[Object]:
        """The objects that live, in the order of their creation; other threads may make and release some."""
        references = self.children.valuerefs()  # a copy, made in one step
        return [child for reference in references if (child := reference()) is not None]

    def forget(self, number: int) -> None:
        """The object with that number was released."""
        self.children.pop(number, None)
        if self.references == 0:
            self.end_if_unused()

    def end_program(self) -> None:
        """The program has released the device: unless work is pending, checks report what the end shows.

        Objects that are left may keep the device until the process ends, where nobody would read it.
        """
        if not any(each.pending for each in self.gpu.queues):
            self.end_checks()

    def end_checks(self) -> None:
        """Checks report what is known at the end, once unless more was submitted since."""
        if self.checks is not None and self._ended_behind != self.submissions.count:
            self._ended_behind = self.submissions.count
            self.checks.end()

    def end_if_unused(self) -> None:
        """Destroys the device when all references and its last object are released (DEV5)."""
        if self.children or self.has_ended:
            return
        self.has_ended = True
        self.adapter.forget(self.device)
        self.end_checks()
        self.gpu.close()
        self.reports.raise_pending()

    def next_recording(self) -> int:
        """The serial of a new recording."""
        return next(self._recording_numbers)


class _Layer:
    """``with context.layer``: rules that only a debug layer knows; they raise, or are reported."""

    def __init__(self, context: DeviceContext) -> None:
        self._raises, self._keep = context.raises, context.keep

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if self._raises or not isinstance(error, Error):
            return False
        self._keep(error)
        return True


def _never(text: str, hint: str) -> Error:
    """A wait does not end; ``text``: what for, and the state of the queues."""
    sentence, *queues = text.splitlines()
    return FN3.never(
        message=sentence,
        hint=hint,
        operation="ID3D12Fence::SetEventOnCompletion",
        context=tuple(line.removeprefix("  - ") for line in queues),
    )


def _tell_stuck(context: weakref.ref[DeviceContext], text: str, signallers: Sequence[str]) -> None:
    """Nothing could run for a while; the wait goes on.  Reported at once, since the program may hang.

    No warning: another thread may be about to signal.  ``signallers``: those that have done so before, after
    a wait that was long for that.
    """
    device = context()
    if device is not None:
        hint = "Another thread has to signal that value: nothing that is queued does."
        error = _never("\n".join((text, *signallers)), hint)
        report = replace(error.report, severity=Severity.INFO if signallers else Severity.MESSAGE)
        print(f"{report.text()}\n", file=sys.stderr, flush=True)
        device.reports.add(report)


def _deadlock_hint(deadlock: Deadlock) -> str:
    if deadlock.is_circular:
        return "Queue one of these signals before the wait of its queue."
    return "Queue a Signal to that value before anything waits for it; there is no other thread that could."
