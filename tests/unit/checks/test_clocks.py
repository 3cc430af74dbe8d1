"""What fences tell, and to whom: apart from how far the emulated GPU has come."""

from __future__ import annotations

import weakref
from types import SimpleNamespace

import pytest

from dmlemu.checks.analysis.happens_before import FenceValue, HappensBefore
from dmlemu_hw.events import Queued, Signalled, Submitted, Waited
from dmlemu_hw.packets import Opcode

FENCE, OTHER = 100, 200
A, B, C = 1, 2, 3  # queues


class Course(HappensBefore):
    """Hands work to queues; tickets are counted as queues do."""

    def __init__(self) -> None:
        super().__init__()
        self.tickets = dict.fromkeys((A, B, C), 0)
        for fence in (FENCE, OTHER):
            self.signalled(Signalled(0, fence, 0))

    def _next(self, queue: int) -> int:
        self.tickets[queue] += 1
        return self.tickets[queue]

    def submit(self, queue: int, lists: int = 1) -> int:
        """Returns the ticket of the last list."""
        self.tickets[queue] += lists
        self.handed(Submitted(queue, self.tickets[queue], tuple(range(lists))))
        return self.tickets[queue]

    def hand(self, queue: int, opcode: Opcode, fence: int = 0, value: int = 0) -> None:
        self.handed(Queued(queue, self._next(queue), opcode, fence, value))

    def signal(self, queue: int, value: int, fence: int = FENCE) -> None:
        """Handed over and executed; queue 0 is the host."""
        if queue:
            self.hand(queue, Opcode.SIGNAL, fence, value)
        self.signalled(Signalled(queue, fence, value))

    def wait(self, queue: int, value: int, fence: int = FENCE) -> None:
        if queue:
            self.hand(queue, Opcode.WAIT, fence, value)
        self.waited(Waited(queue, fence, value))


def test_a_signal_tells_of_all_before_it() -> None:
    clocks = Course()
    work = clocks.submit(A)
    clocks.signal(A, 1)
    later = clocks.submit(A)
    clocks.wait(B, 1)
    assert work <= clocks.of(B)[A] < later


def test_who_awaits_a_low_value_knows_only_what_it_tells() -> None:
    clocks = Course()
    for value in (1, 2, 3):
        clocks.submit(A)
        clocks.signal(A, value)
    clocks.wait(B, 0)
    assert clocks.of(B) == {}
    clocks.wait(0, 2)
    assert clocks.host == {A: 4}


def test_between_two_values_the_next_one_tells() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 10)
    clocks.wait(0, 7)
    assert clocks.host == {A: 2}


def test_knowledge_is_passed_on() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.wait(B, 1)
    clocks.signal(B, 1, OTHER)
    clocks.wait(C, 1, OTHER)
    assert clocks.of(C) == {A: 2, B: 2}


def test_work_relies_on_what_the_host_knew_when_it_handed_it_over() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    early = clocks.submit(B)
    clocks.wait(0, 1)
    late = clocks.submit(B)
    clocks.start(B, early)
    assert clocks.of(B) == {}
    clocks.start(B, late)
    assert clocks.of(B) == {A: 2}


def test_a_queue_s_signal_too_relies_on_what_the_host_knew() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.wait(0, 1)
    clocks.signal(B, 1, OTHER)  # nothing was ever executed on B
    clocks.wait(C, 1, OTHER)
    assert clocks.of(C)[A] == 2


def test_the_host_s_signal_tells_what_the_host_knows() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.signal(0, 5, OTHER)
    clocks.wait(B, 5, OTHER)
    assert clocks.of(B) == {}
    clocks.wait(0, 1)
    clocks.signal(0, 6, OTHER)
    clocks.wait(B, 6, OTHER)
    assert clocks.of(B) == {A: 2}


def test_of_two_who_may_have_released_a_wait_only_what_both_knew_counts() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.submit(B)
    clocks.signal(A, 1)
    clocks.signal(B, 2)
    clocks.wait(0, 1)
    assert clocks.host == {}
    clocks.wait(0, 2)
    assert clocks.host == {B: 2}


def test_a_value_that_is_signalled_twice_tells_what_the_first_signal_did() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.wait(0, 1)
    assert clocks.host == {A: 2}


def test_a_fence_that_went_back_tells_of_its_second_way() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 5)
    clocks.signal(0, 0)
    clocks.submit(A)
    clocks.signal(A, 5)
    clocks.wait(0, 3)
    assert clocks.host == {A: 4}


def test_a_wait_that_was_over_before_the_fence_went_back_knows_its_first_way() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.hand(B, Opcode.WAIT, FENCE, 5)
    clocks.signal(A, 5)
    clocks.signal(0, 1)
    clocks.waited(Waited(B, FENCE, 5))
    assert clocks.of(B) == {A: 2}


def test_a_queued_signal_may_have_been_first() -> None:
    """The host cannot tell which of two queues has set the fence, whichever did it here."""
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.submit(B)
    clocks.hand(B, Opcode.SIGNAL, FENCE, 2)
    clocks.wait(0, 1)
    assert clocks.host == {}
    assert clocks.is_shared(FenceValue(FENCE, 1), A, 1)


def test_a_queued_signal_of_a_lower_value_was_not_first() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 5)
    clocks.hand(B, Opcode.SIGNAL, FENCE, 3)
    clocks.wait(0, 4)
    assert clocks.host == {A: 2}
    clocks.wait(C, 5)
    assert clocks.of(C) == {A: 2}


def test_a_queued_signal_behind_a_wait_or_a_call_of_the_host_that_knows_changes_nothing() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.hand(B, Opcode.WAIT, FENCE, 1)
    clocks.hand(B, Opcode.SIGNAL, FENCE, 2)
    clocks.wait(0, 1)
    assert clocks.host == {A: 2}
    clocks.hand(C, Opcode.SIGNAL, FENCE, 3)
    clocks.wait(0, 1)
    assert clocks.host == {A: 2}


def test_lists_of_one_call_have_one_end() -> None:
    clocks = Course()
    last = clocks.submit(A, lists=3)
    assert clocks.start(A, 1) == last == 3


@pytest.mark.parametrize("is_idle", [False, True])
def test_work_is_done_for_all_when_host_and_queues_know(is_idle: bool) -> None:
    clocks = Course()
    started = clocks.submit(B)
    clocks.start(B, started)
    if is_idle:
        clocks.signal(B, 1, OTHER)
    clocks.submit(A)
    clocks.signal(A, 1)
    assert clocks.done_for_all(A) == 0
    clocks.wait(0, 1)
    assert clocks.done_for_all(A) == (2 if is_idle else 0)
    clocks.wait(B, 1)
    assert clocks.done_for_all(A) == 2


def test_a_fence_keeps_no_more_values_than_are_needed() -> None:
    clocks = Course()
    for value in range(1, 5000):
        clocks.signal(A, value)
        if value % 10 == 0:
            clocks.wait(0, value)
    assert len(clocks._fences[FENCE].values) <= 128
    assert len(clocks._queues[A].signals) <= 128
    clocks.wait(0, 4998)
    assert clocks.host == {A: 4998}


def test_values_that_nobody_has_awaited_are_all_known() -> None:
    clocks = Course()
    for value in range(1, 5000):
        clocks.submit(A)
        clocks.signal(A, value)
    clocks.wait(B, 7)
    assert clocks.of(B) == {A: 14}
    signal = clocks.signal_after(A, 13)
    assert signal is not None
    assert signal.value == 7


def test_a_fence_that_goes_back_again_and_again_keeps_little() -> None:
    clocks = Course()
    for _ in range(1000):
        clocks.submit(A)
        clocks.signal(A, 1)
        clocks.signal(0, 0)
    fence = clocks._fences[FENCE]
    assert len(fence.values) + len(fence.former) <= 4
    clocks.waited(Waited(B, FENCE, 1))
    assert clocks.of(B) == {A: 2000}


class Hardware:
    """What clocks ask of a GPU: here queue ``alive`` and all fences are."""

    def __init__(self) -> None:
        self.alive = {A}

    @property
    def queues(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(serial=serial) for serial in self.alive]

    def find_fence(self, address: int) -> int:
        return address


@pytest.mark.parametrize("knows", ["nobody", "the host", "all"])
def test_queues_that_are_gone_are_forgotten_when_all_know_their_work(knows: str) -> None:
    clocks, hardware = Course(), Hardware()
    clocks._gpu = weakref.ref(hardware)  # type: ignore[arg-type]
    told: list[int] = []
    clocks.watchers.append(told.extend)
    clocks.tickets |= dict.fromkeys(range(10, 1000), 0)
    clocks.start(A, clocks.submit(A))  # goes on all the time
    for queue in range(10, 1000):
        hardware.alive |= {queue}
        clocks.submit(queue)
        clocks.signal(queue, queue)
        if knows != "nobody":
            clocks.wait(0, queue)
        if knows == "all":
            clocks.wait(A, queue)
            clocks.start(A, clocks.submit(A))
        hardware.alive -= {queue}
    if knows == "all":
        assert len(told) > 900
        assert len(clocks._queues) + len(clocks.host) + len(clocks.of(A)) < 300
        assert clocks.is_done(clocks.of(A), 10, 1)
    else:  # the list that A executes may conflict with their work
        assert not told
        assert not clocks.is_done(clocks.of(A), 10, 1)


def test_living_queues_that_rest_are_forgotten_too_and_work_again() -> None:
    clocks, hardware = Course(), Hardware()
    clocks._gpu = weakref.ref(hardware)  # type: ignore[arg-type]
    told: list[int] = []
    clocks.watchers.append(told.extend)
    clocks.tickets |= dict.fromkeys(range(10, 1000), 0)
    for queue in range(10, 1000):
        hardware.alive |= {queue}
        clocks.start(queue, clocks.submit(queue))
        clocks.signal(queue, queue)
        clocks.wait(0, queue)
    assert len(told) > 900
    assert len(clocks._queues) + len(clocks.host) < 300
    assert sum(len(each.clock) for each in clocks._queues.values()) < 10_000  # of them all, half a million
    again = clocks.submit(10)
    clocks.start(10, again)
    for clock in (clocks.host, clocks.of(11)):
        assert clocks.is_done(clock, 10, 1)
        assert not clocks.is_done(clock, 10, again)


def test_a_queued_wait_relies_on_the_value_that_ended_it() -> None:
    clocks = Course()
    clocks.hand(B, Opcode.WAIT, FENCE, 1)
    work = clocks.submit(A)
    clocks.signal(A, 1)
    clocks.wait(0, 1)
    clocks.signal(0, 0)
    later = clocks.submit(A)
    clocks.signal(A, 1)
    clocks.waited(Waited(B, FENCE, 1))
    assert work <= clocks.of(B)[A] < later


def test_a_wait_queued_after_the_fence_went_back_relies_on_the_second_signal() -> None:
    clocks = Course()
    clocks.submit(A)
    clocks.signal(A, 1)
    clocks.wait(0, 1)
    clocks.signal(0, 0)
    clocks.hand(B, Opcode.WAIT, FENCE, 1)
    work = clocks.submit(A)
    clocks.signal(A, 1)
    clocks.waited(Waited(B, FENCE, 1))
    assert clocks.of(B)[A] >= work


def test_a_queue_may_have_waited_before_another_set_the_fence_back() -> None:
    clocks = Course()
    work = clocks.submit(A)
    clocks.signal(A, 1)
    clocks.signal(A, 0)
    later = clocks.submit(A)
    clocks.signal(A, 1)
    clocks.wait(B, 1)
    assert work <= clocks.of(B)[A] < later


def test_a_queue_may_have_waited_before_the_first_of_several_times_that_the_fence_went_back() -> None:
    """A's signal may have ended the wait of C, unless the host knew that the fence went back after it."""
    for host_knows in (False, True):
        clocks = Course()
        clocks.submit(A)
        clocks.signal(A, 1)
        clocks.signal(A, 0)
        clocks.signal(A, 1, OTHER)
        if host_knows:
            clocks.wait(0, 1, OTHER)
        work = clocks.submit(B)
        clocks.signal(B, 1)
        clocks.signal(B, 0)
        clocks.hand(C, Opcode.WAIT, FENCE, 1)
        clocks.wait(A, 1)
        clocks.signal(A, 1)
        clocks.waited(Waited(C, FENCE, 1))
        assert (clocks.of(C).get(B, 0) >= work) == host_knows


def test_waits_that_are_over_are_forgotten() -> None:
    clocks = Course()
    for value in range(1, 100):
        clocks.signal(A, value)
        clocks.wait(B, value)
    assert not clocks._fences[FENCE].waits
