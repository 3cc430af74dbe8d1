"""Lifetimes of objects that submitted lists need, empty lists, and fences that go back (group e)."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from dmlemu_hw.events import Queued, Signalled, Submitted
from dmlemu_hw.packets import Opcode

from ...d3d12.core.events import Evicted, ObjectReleased
from ...d3d12.core.object import Object
from ...d3d12.core.recording import Recording
from ...d3d12.core.rows import FENCE_ZERO_WAIT, OBJECT_DELETED_IN_USE
from ...d3d12.lists.command_allocator import AllocatorReset
from ...d3d12.lists.rows import ALLOC_RESET_IN_FLIGHT
from ...d3d12.memory.resource import Heap, Resource
from ...d3d12.queues.rows import LIST_EXECUTED_TWICE, QUEUE_EMPTY_SUBMIT
from ...dml.lowering.dispatchable import InitializerReset
from ...errors import CallSite, Strictness, call_site
from ..analysis.in_flight import Flight, FlightCheck
from ..framework.check import Check, on
from . import messages
from .rows import FENCE_BACKWARDS, OBJECT_EVICTED_IN_USE, OBJECT_RESET_IN_USE

if TYPE_CHECKING:
    from ...d3d12.device.device import Device

CHECKS: tuple[type[Check], ...]


class Lifetimes(FlightCheck):
    """Objects released, reset or reused before the program can know that the GPU is done with them."""

    declarations = (
        ALLOC_RESET_IN_FLIGHT,
        OBJECT_EVICTED_IN_USE,
        OBJECT_RESET_IN_USE,
        LIST_EXECUTED_TWICE,
        OBJECT_DELETED_IN_USE,
    )
    level = Strictness.DEBUG

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._lists: WeakValueDictionary[int, Flight] = WeakValueDictionary()  # the last flight of each

    @on(ObjectReleased)
    def released(self, event: ObjectReleased) -> None:
        """Something was released."""
        self._look(OBJECT_DELETED_IN_USE.id, event.object, "Release", "released")

    @on(Evicted)
    def evicted(self, event: Evicted) -> None:
        """Something is not resident any more; of a heap: the buffers in it."""
        self._look(OBJECT_EVICTED_IN_USE.id, event.object, "Evict", "evicted", with_buffers=True)

    @on(InitializerReset)
    def initializer_reset(self, event: InitializerReset) -> None:
        """An initializer was reset to other operators."""
        operation = "IDMLOperatorInitializer::Reset"
        self._look(OBJECT_RESET_IN_USE.id, event.initializer, operation, "reset")

    def _look(self, id: str, thing: Object, call: str, happens: str, *, with_buffers: bool = False) -> None:
        """Does the GPU still need the object, or (``with_buffers``) a buffer placed in it?"""
        for flight in self.in_flight():
            placed = _placed(thing, flight) if with_buffers else None
            needed = thing if flight.needs_it(thing) else placed
            if needed is not None:
                is_done, advice = self.is_done(flight), self.advice(flight)
                words = messages.needed(
                    thing, flight, is_done, advice, call=call, happens=happens, needed=needed
                )
                self.report(id, properties=self.properties(flight), **words)
                return

    @on(AllocatorReset)
    def reset(self, event: AllocatorReset) -> None:
        """An allocator was reset; while the GPU has not executed its lists, the call itself fails."""
        for flight in self.in_flight():
            if flight.needs_it(event.allocator):
                words = messages.reset_early(event.allocator, flight, self.advice(flight))
                self.report(ALLOC_RESET_IN_FLIGHT.id, properties=self.properties(flight), **words)
                return

    def took_off(self, flight: Flight, recording: Recording | None) -> None:
        """A list was executed; while the GPU has not executed it, a second call itself fails."""
        before = self._lists.get(flight.serial) if recording is not None else None
        if before is not None and before in self.in_flight():
            words = messages.executed_twice(before, self.advice(before))
            self.report(LIST_EXECUTED_TWICE.id, properties=self.properties(before), **words)
        self._lists[flight.serial] = flight


def _placed(thing: Object, flight: Flight) -> Object | None:
    """A buffer that the work needs and that is placed in the heap ``thing``."""
    if not isinstance(thing, Heap):
        return None
    things = (reference() for reference in flight.needs)
    return next((each for each in things if isinstance(each, Resource) and each.heap is thing), None)


class EmptyLists(Check):
    """Lists that hold no commands."""

    declarations = (QUEUE_EMPTY_SUBMIT, FENCE_ZERO_WAIT)

    @on(Submitted)
    def submitted(self, event: Submitted) -> None:
        """Some lists were executed."""
        for serial in event.lists:
            recording = self.device.context.recordings.get(serial)
            if recording is None or recording.commands or recording.on_submit:
                continue  # initializers without weights record no commands, but are not nothing
            words = messages.empty_list(recording.owner, self.names.queue(event.queue))
            self.report(QUEUE_EMPTY_SUBMIT.id, cause=recording.owner, **words)


class _Last(NamedTuple):
    """The last value of a fence, and who set it."""

    fence: int  # serial of the fence: addresses may be reused
    value: int
    queue: int  # 0: the host
    site: CallSite | None
    is_creation: bool


class Fences(Check):
    """Tracks the values of fences in the order in which they are set."""

    declarations = (FENCE_BACKWARDS,)
    level = Strictness.DEBUG

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self._last: dict[int, _Last] = {}
        self._sites: defaultdict[int, deque[CallSite | None]] = defaultdict(deque)

    @on(Queued)
    def queued(self, event: Queued) -> None:
        """A Signal was queued: its line is known now, its order later."""
        if event.opcode == Opcode.SIGNAL:
            self._sites[event.queue].append(call_site())

    @on(Signalled)
    def signalled(self, event: Signalled) -> None:
        """A fence was set to a value."""
        sites = self._sites.get(event.queue)
        site = sites.popleft() if sites else None if event.queue else call_site()
        if sites is not None and not sites:
            del self._sites[event.queue]
        fence = self.device.context.gpu.find_fence(event.fence)
        if fence is None or fence.closed:
            return
        before = self._last.get(event.fence)
        is_first = before is None or before.fence != fence.serial
        now = _Last(fence.serial, event.value, event.queue, site, is_first and not event.queue)
        if before is not None and not is_first and event.value < before.value:
            words = messages.backwards(
                fence.describe(), now.value, self._who(now), before.value, self._who(before)
            )
            self.report(FENCE_BACKWARDS.id, **words)
        self._last[event.fence] = now

    def _who(self, last: _Last) -> str:
        name = self.names.queue(last.queue) if last.queue else "the host"
        return messages.setter("" if last.is_creation else name, last.site)


CHECKS = (Lifetimes, EmptyLists, Fences)
