"""One emulated GPU: wires memory, descriptors, queues, fences, clock and events together."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

from . import packets, signals
from .chaos import Chaos, Mode
from .clock import Clock
from .descriptors import Descriptors
from .events import EventStream, HostResumed, HostWaiting
from .faults import Deadlock, GpuFault
from .fence import Fence, Fences
from .lock import Lock
from .memory import Memory
from .processor import Processor
from .queue import Queue, QueueKind
from .scheduler import Policy, Scheduler

__all__ = ["Gpu", "Policy", "QueueKind"]

_LOOK_AGAIN = 0.05  # seconds; how often a sleeping wait checks that other threads are alive
_WARN_AFTER = 2.0  # seconds; then a wait that only another thread can end is reported
_TELL_AFTER = 30.0  # seconds; then it is reported even if a thread that has signalled before is alive
_SHARE = 0.00025  # seconds that the GPU runs before it gives way once more
_SHORT = 0.001  # seconds after which a poll returns between two commands


class _Waiter:
    """A thread that waits, and runs the GPU meanwhile."""


class _Sleeper:
    """A sleeping thread; removed when the function that created it exits, normally or not."""

    def __init__(self, forever: bool) -> None:
        self.forever = forever
        self.thread = threading.get_native_id()
        self.over = False
        self._lock = threading.Lock()
        self._lock.acquire()

    def sleep(self, seconds: float) -> None:
        """Sleeps until :meth:`wake`, for at most ``seconds``."""
        self._lock.acquire(timeout=seconds)

    def wake(self) -> None:
        """Idempotent; calls must not overlap.  The thread counts as awake from now on, before it runs."""
        self.over = True
        if self._lock.locked():
            self._lock.release()


def _say(text: str, signallers: Sequence[str]) -> None:
    print(f"dmlemu: {text}", *signallers, sep="\n", file=sys.stderr, flush=True)


class Gpu:
    """A GPU with its own memory.  All public calls, of its parts too, may come from any thread.

    ``poison``: fills undefined contents with the poison byte, under chaos with random ones.
    ``overwrites_tails``: chaos fills the bytes after an output, too.  ``write_order``: draws the order in
    which a scatter writes (``order`` of a dispatch packet).  ``fault``: why the GPU was removed, or None.
    ``has_native_threads``: threads that Python does not know may signal, so that no wait is a deadlock.
    ``on_stuck`` is called, without a lock, with the state of a wait for which nothing could run for a while,
    and a sentence for each thread that has queued or signalled something before and is elsewhere.
    ``shader_limit``: seconds that a dispatch of a shader may take; 0: any number.
    ``executed`` counts how often the GPU executed an entry, or a part of one, or dropped entries.
    """

    def __init__(
        self, *, name: str, memory_bytes: int, policy: Policy | Chaos = Policy.LAZY, poison: bool = True
    ) -> None:
        self.name = name
        self.chaos = policy if isinstance(policy, Chaos) else None
        self.policy = Policy.LAZY if isinstance(policy, Chaos) else Policy(policy)
        self._randoms = {mode: None if self.chaos is None else self.chaos.random(mode) for mode in Mode}
        self.poison = poison or self.random(Mode.POISON) is not None
        self.overwrites_tails = self.random(Mode.PADDING) is not None
        order = None if self.chaos is None else self.chaos.random(Mode.ORDER)
        self.write_order = 0 if order is None else order.randrange(1, packets.ORDERS)
        self.fault: GpuFault | None = None
        self.has_native_threads = False
        self.on_stuck: Callable[[str, Sequence[str]], None] = _say
        self.clock = Clock()
        self.events = EventStream()
        self.lock = self._lock = Lock()  # held while events are emitted
        self.memory = Memory(memory_bytes, self.events, self._lock, self.random)
        self.descriptors = Descriptors(self.memory, self._lock, self.events)
        self._fences = Fences(self.memory, self.events, self._lock)
        self._scheduler = Scheduler(self._fences, self.events, self.random(Mode.ORDER))
        self._processor = Processor(
            self.memory, self._fences, self.clock, self.events, self.random, self._give_way
        )
        self._fences.after_host_signal = self._changed
        self._queue_serial = 0
        self.executed = 0
        self._runner = 0  # the thread that runs an entry; 0: none does
        self._may_give_way_at = 0.0
        self._wake = threading.RLock()  # a Condition does not survive an exception inside it
        self._changes = 0
        self._sleepers: list[weakref.ref[_Sleeper]] = []
        # Threads in wait_until; each has the value, which goes with it even if a signal handler raises.
        self._waiters: weakref.WeakValueDictionary[int, _Waiter] = weakref.WeakValueDictionary()
        self._feeders = set[int]()  # the system's numbers of threads that have queued entries or signalled
        self._dead_at = -1  # value of _changes when all threads were found to wait

    def random(self, mode: Mode) -> Random | None:
        """The random generator of a chaos mode; None: the mode is off."""
        return self._randoms[mode]

    @property
    def shader_limit(self) -> float:
        return self._processor.shader_limit

    @shader_limit.setter
    def shader_limit(self, seconds: float) -> None:
        self._processor.shader_limit = seconds

    @property
    def queues(self) -> list[Queue]:
        """In order of creation, without closed empty queues."""
        return [queue for queue in self._scheduler.queues if queue.pending or not queue.closed]

    def create_queue(self, kind: QueueKind, label: str = "", owner: weakref.ref[Any] | None = None) -> Queue:
        """A new, empty queue.  ``owner``: see :class:`Queue`."""
        self.memory.check_process()
        with self._lock:
            self._queue_serial += 1
            queue = Queue(
                QueueKind(kind),
                label or f"{QueueKind(kind).name.lower()} queue {self._queue_serial}",
                self._queue_serial,
                self.memory,
                self.events,
                self._lock,
                self._changed,
                owner,
            )
            if self.fault is not None:
                queue.remove()
            self._scheduler.queues = [*self.queues, queue]
            return queue

    def create_fence(self, initial_value: int = 0) -> Fence:
        """A new fence.  ValueError: the value is not a u64."""
        return self._fences.create(initial_value)

    def find_fence(self, address: int) -> Fence | None:
        """The fence whose value is at the address."""
        return self._fences.find(address)

    def step(self, end: float | None = None, until: Callable[[], bool] | None = None) -> bool:
        """Runs one queue entry; False: nothing can run, or another thread runs an entry.

        ``until``: runs further entries until it returns true, there is something else to do between two
        entries, or nothing can run.  Threads that wait for the lock get it between two commands; the entry is
        then continued here, whatever they did.  A command list is suspended when ``time.monotonic()`` reaches
        ``end``; the next step of its queue resumes it.  GpuFault: the entry could not be executed.  The GPU
        is then removed, as it is when an exception such as KeyboardInterrupt stopped a kernel.
        """
        self.memory.check_process()
        if self._runner:  # another thread, for whose next command nobody needs to wait, or this one
            return False
        if self.memory.to_free:
            self.memory.free_closed()
        try:
            with self._lock:
                if self._runner:  # another thread, or this one, which an event subscriber called
                    return False
                self._runner = threading.get_ident()
                try:
                    self._give_way()
                    found = more = self._run_next(end)
                    while more and until is not None:
                        if until() or self.memory.to_free or self._fences.due:
                            break
                        self._give_way()
                        more = self._run_next(end)
                    return found
                finally:
                    self._runner = 0
        finally:
            if self.memory.to_free:
                self.memory.free_closed()
            if self._fences.due:
                self._fences.fire()

    def poll(self) -> None:
        """Runs one queue entry; with native threads, of a list only what begins within a millisecond, and
        nothing while another of them waits, which runs what there is.

        Otherwise nothing depends on time, so that a program which polls gets the same answers each time; nor
        in a random order, where each step draws.  GpuFault as :meth:`step`.
        """
        if not (self.memory.to_free or self._fences.due or any(queue.pending for queue in self.queues)):
            self.memory.check_process()
            return  # programs poll idle GPUs often
        is_short = self.has_native_threads and self.random(Mode.ORDER) is None
        if is_short and self._others_wait():
            self.memory.check_process()
            return
        self.step(time.monotonic() + _SHORT if is_short else None)

    def drain(self) -> None:
        """Runs until nothing can run.  GpuFault as :meth:`step`."""
        while True:
            changes, others_ran = self._changes, self._others_run()
            if not self.step():
                if not (others_ran or self._others_run() or self._changes != changes):
                    return
                self._sleep(changes, time.monotonic() + _LOOK_AGAIN, str, others_ran)

    def wait(self, fence: Fence, value: int, timeout: float | None = None) -> bool:
        """Runs the GPU until the fence has reached the value; False: ``timeout`` seconds passed.

        Another thread may set the fence to a lower value before this one wakes up: the wait is over then,
        too.  The time is checked between commands: a running command is not interrupted.  GpuFault: a command
        could not be executed.  Deadlock: no timeout, nothing can run, and no other thread could signal.
        """

        def why() -> str:
            text = f"Waiting for {fence.describe()} to reach {value} would never end: it is {fence.value}."
            return f"{text}\n{self._scheduler.signals(fence.address)}"

        return self.wait_for([(fence, value)], all, why, timeout)

    def wait_for(
        self,
        pairs: Sequence[tuple[Fence, int]],
        which: Callable[[Iterable[bool]], bool],
        why: Callable[[], str],
        timeout: float | None = None,
    ) -> bool:
        """:meth:`wait` for ``which`` (all or any) of several fences."""
        reached = [fence.value >= value for fence, value in pairs]
        if not which(reached):
            self._tell(HostWaiting, pairs)
            try:
                reached = self._wait_for(pairs, which, why, timeout)
            finally:
                self._tell(HostResumed, pairs)
        if self.events.subscriptions:
            for (fence, value), is_reached in zip(pairs, reached, strict=True):
                if is_reached:
                    fence.observe(value)
        return which(reached)

    def _tell(self, event: type[HostWaiting] | type[HostResumed], pairs: Sequence[tuple[Fence, int]]) -> None:
        if self.events.callbacks[event]:
            awaited = tuple((fence.address, value) for fence, value in pairs)
            with self._lock:
                self.events.emit(event(awaited))

    def _wait_for(
        self,
        pairs: Sequence[tuple[Fence, int]],
        which: Callable[[Iterable[bool]], bool],
        why: Callable[[], str],
        timeout: float | None,
    ) -> list[bool]:
        """Which of the fences have reached their values, when the wait is over."""
        self.memory.check_process()
        queue_wait = self._fences.queue_wait
        waits = [(fence, value, queue_wait(fence, value)) for fence, value in pairs]

        def reached() -> list[bool]:
            return [wait.over or fence.value >= value for fence, value, wait in waits]

        def one_is_reached() -> bool:
            return wait.over or fence.value >= value

        (fence, value, wait), *others = waits
        try:
            self.wait_until((lambda: which(reached())) if others else one_is_reached, why, timeout)
            return reached()
        finally:
            for fence, _, wait in waits:
                if not wait.over:
                    fence.give_up(wait)

    def wait_until(
        self, reached: Callable[[], bool], why: Callable[[], str], timeout: float | None = None
    ) -> bool:
        """:meth:`wait` for any condition; ``why`` words the Deadlock, before the list of blocked queues.

        Other threads that never signal (a thread pool, a debugger) prevent the detection of a deadlock: after
        two seconds in which nothing could run, ``on_stuck`` gets what is awaited; after 30 seconds, if a
        thread that has queued or signalled something before is elsewhere in the program.
        """
        thread = threading.get_ident()
        outer = self._waiters.get(thread)
        waiter = self._waiters[thread] = _Waiter()  # noqa: F841 (it lives as long as the call)
        try:
            return self._wait_until(reached, why, timeout)
        finally:
            if outer is None:
                self._waiters.pop(thread, None)
            else:
                self._waiters[thread] = outer

    def _wait_until(self, reached: Callable[[], bool], why: Callable[[], str], timeout: float | None) -> bool:
        end = None if timeout is None else time.monotonic() + timeout
        idle_since = time.monotonic()
        is_told = end is not None
        while True:
            changes, others_ran = self._changes, self._others_run()
            if reached():
                return True
            if self._run_in_wait(end, reached):
                if end is not None and not time.monotonic() < end:
                    return reached()
                idle_since = time.monotonic()
            elif not self._sleep(changes, end, why, others_ran):
                return reached()
            elif self._others_run():
                idle_since = time.monotonic()
            elif not is_told and time.monotonic() > idle_since + _WARN_AFTER:
                signallers = self._signallers()
                if signallers and time.monotonic() < idle_since + _TELL_AFTER:
                    continue
                is_told = True
                self.on_stuck(self._explain(why).replace(" would never end", " goes on", 1), signallers)

    def _run_in_wait(self, end: float | None, reached: Callable[[], bool]) -> bool:
        """:meth:`step` for a wait; where signals are blocked, they are let in every now and then."""
        if signals.let_in is None:
            return self.step(end, reached if end is None else None)
        turn = time.monotonic() + signals.OFTEN
        if end is None:
            found = self.step(turn, lambda: reached() or time.monotonic() >= turn)
        else:
            found = self.step(min(end, turn))
        if time.monotonic() >= turn:
            signals.look()
        return found

    def remove(self, fault: GpuFault) -> None:
        """Removes the device: queues are emptied, fences read 2**64 - 1, nothing runs any more."""
        with self._lock:
            if self.fault is None:
                fault.progress = tuple(map(self._processor.progress, self.queues))
                self.fault = fault
                for queue in self.queues:
                    queue.remove()
                self._fences.remove_all()
                self.executed += 1
        self._notify()
        if not self._runs():
            self._fences.fire()

    def close(self) -> None:
        """Returns the GPU's memory to the host; mapped views stay readable."""
        with self._lock:
            for queue in self.queues:
                queue.remove()
        self.memory.close()

    def _run_next(self, end: float | None) -> bool:
        queue = self._scheduler.next_queue()
        if queue is None:
            self._scheduler.refresh()
            queue = self._scheduler.next_queue()
        if queue is None:
            return False
        try:
            self._processor.run(queue, end)
        except GpuFault as fault:
            self.remove(fault)
            if fault.interrupt is not None:
                raise fault.interrupt from None
            raise
        finally:
            self.executed += 1
        self._notify()
        return True

    def _runs(self) -> bool:
        """Whether this thread runs an entry."""
        return self._runner == threading.get_ident()

    def _others_run(self) -> bool:
        """Whether another thread runs an entry."""
        return self._runner not in (0, threading.get_ident())

    def _others_wait(self) -> bool:
        """Whether another thread waits, and so runs what there is."""
        return len(self._waiters) > (threading.get_ident() in self._waiters)

    def _signallers(self) -> list[str]:
        """Sentences about the threads that have signalled before and do not wait here for ever, too."""
        with self._wake:
            waiting = {
                each.thread for ref in self._sleepers if (each := ref()) and each.forever and not each.over
            }
        found = []
        for thread in sorted(self._feeders - waiting - {threading.get_native_id()}):
            try:
                with open(f"/proc/self/task/{thread}/comm", errors="replace") as file:
                    name = file.read().strip()
            except OSError:  # it has ended
                self._feeders.discard(thread)
            else:
                found.append(
                    f"  - Thread {thread} ('{name}') has queued or signalled before, and could again"
                )
        return found

    def _give_way(self) -> None:
        """Lets the threads in that wait for the lock; called by the running thread between two commands.

        Each time costs as much as many short commands: the GPU runs for a while before the next one.
        """
        if self._lock.waiting and time.monotonic() >= self._may_give_way_at:
            self._lock.give_way()
            self._may_give_way_at = time.monotonic() + _SHARE

    def _changed(self) -> None:
        """Called when an entry was queued or the host signalled a fence."""
        self._feeders.add(threading.get_native_id())
        self._notify()
        if self.policy is Policy.EAGER:
            self.drain()
        elif self._runner != threading.get_ident():
            if self._fences.due:
                self._fences.fire()
            if self._scheduler.draws_steps:
                for _ in range(self._scheduler.steps_before_host()):
                    self.step()

    def _notify(self) -> None:
        with self._wake:
            self._changes += 1
            if self._sleepers:
                self._wake_all()

    def _sleep(
        self, changes: int, end: float | None, why: Callable[[], str], others_ran: bool = False
    ) -> bool:
        """Waits until another thread has changed something; False: timed out.

        ``others_ran``: another thread ran an entry when the caller began to look for one: if it has ended,
        there may be one now.  Deadlock: every other thread has ended or waits here too.
        """
        with self._wake:
            if self._changes != changes or (others_ran and not self._others_run()):
                return True
            left = _LOOK_AGAIN if end is None else end - time.monotonic()
            if not left > 0:  # NaN ends too
                return False
            sleeper = _Sleeper(end is None)
            may_sleep = (
                self.has_native_threads
                or others_ran
                or self._others_run()
                or not sleeper.forever
                or self._sleeping_forever() + 1 < threading.active_count()
            )
            if may_sleep:
                self._sleepers.append(weakref.ref(sleeper))
        try:
            if may_sleep:
                sleeper.sleep(min(left, _LOOK_AGAIN))
                signals.look()
        finally:
            sleeper.over = True
        with self._wake:
            if may_sleep and (not sleeper.forever or self._dead_at != self._changes):
                return True
            # All threads wait here, and each raises.
            self._dead_at = self._changes
            self._wake_all()
        # Evaluated without holding _wake: they take the lock.
        raise Deadlock(self._explain(why), is_circular=self._scheduler.has_circular_wait())

    def _explain(self, why: Callable[[], str]) -> str:
        with self._lock:  # nobody completes the entries that it looks at
            return "\n".join(part for part in (why(), self._scheduler.blocked()) if part)

    def _sleeping_forever(self) -> int:
        """The number of threads that do.  Call with _wake held, as below."""
        self._sleepers = [each for each in self._sleepers if (sleeper := each()) and not sleeper.over]
        return sum(sleeper.forever for each in self._sleepers if (sleeper := each()))

    def _wake_all(self) -> None:
        for each in self._sleepers:
            if (sleeper := each()) is not None:
                sleeper.wake()
        self._sleepers = [each for each in self._sleepers if (sleeper := each()) and not sleeper.over]
