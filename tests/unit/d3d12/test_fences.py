"""Fences: rules FN1 to FN8."""

from __future__ import annotations

import _thread
import os
import sys
import threading
import time

import numpy as np
import pytest

from dmlemu import Error, HResult, Severity, Strictness
from dmlemu.d3d12 import FenceFlags, MultipleFenceWaitFlags, Policy

from .stage import COMPUTE, DIRECT, INVALID, REMOVED, Stage, fails, remarks

U64_MAX = 2**64 - 1


@pytest.mark.parametrize("flags", [8, 0x100])
def test_FN1_flags(stage: Stage, flags: FenceFlags) -> None:
    with fails("FN1", INVALID, 1007):
        stage.device.create_fence(0, flags)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_FN1_values_are_64_bits(stage: Stage, value: int) -> None:
    with fails("FN1"):
        stage.device.create_fence(value)
    for call in (stage.fence.signal, stage.fence.wait, stage.fence.set_event_on_completion):
        with fails("FN1"):
            call(value)
    for call in (stage.queue.signal, stage.queue.wait):
        with fails("FN1"):
            call(stage.fence, value)


def test_FN1_initial_value_and_flags(stage: Stage) -> None:
    fence = stage.device.create_fence(42, FenceFlags.NON_MONITORED)

    assert fence.get_completed_value() == 42
    assert fence.get_creation_flags() == FenceFlags.NON_MONITORED


def test_FN2_signals_of_host_and_queue(stage: Stage) -> None:
    fence = stage.device.create_fence()
    fence.signal(5)
    assert fence.get_completed_value() == 5
    stage.queue.signal(fence, 9)
    assert fence.get_completed_value() == 5  # the GPU runs when the host waits
    fence.wait(9)
    assert fence.get_completed_value() == 9


@pytest.mark.parametrize(
    "strictness",
    [
        Strictness.RUNTIME,
        *(
            pytest.param(each, marks=pytest.mark.dmlemu(expect=["FENCE_BACKWARDS"]))
            for each in (Strictness.DEBUG, Strictness.STRICT)
        ),
    ],
)
@pytest.mark.parametrize("by_host", [True, False])
def test_FN3_a_wait_is_over_once_the_value_was_reached_also_behind_another(
    strictness: Strictness, by_host: bool
) -> None:
    stage = Stage(strictness)
    first, second, done = (stage.device.create_fence() for _ in range(3))
    for fence in (first, second):
        for value in range(1, 9):
            stage.queue.wait(fence, value)
    stage.queue.signal(done, 1)
    if by_host:
        second.signal(8)
    else:
        stage.queue_of(COMPUTE).signal(second, 8)
        second.wait(8)
    second.signal(0)
    assert not done.wait(1, timeout=0.01)
    first.signal(8)
    assert done.wait(1)  # FENCE_NEVER if the wait had lost it


@pytest.mark.dmlemu(expect=["FENCE_BACKWARDS"])
def test_FN2_rewinding_is_legal_and_remarked(stage: Stage) -> None:
    fence = stage.device.create_fence(5)
    fence.signal(3)
    assert fence.get_completed_value() == 3
    stage.queue.signal(fence, 2)
    stage.finish()

    assert fence.get_completed_value() == 2
    assert remarks(stage) == [1078, 1078]


def test_FN2_fence_is_needed(stage: Stage) -> None:
    for call in (stage.queue.signal, stage.queue.wait):
        with fails("FN2"):
            call(None, 1)  # type: ignore[arg-type]
        with fails("OB3"):
            call(Stage().fence, 1)


@pytest.mark.dmlemu(expect=["FENCE_BACKWARDS"])
def test_FN3_a_satisfied_wait_stays_satisfied(stage: Stage) -> None:
    gate, done = stage.device.create_fence(), stage.device.create_fence()
    stage.queue.wait(gate, 2)
    stage.queue.signal(done, 1)
    gate.signal(2)
    gate.signal(0)
    done.wait(1)


def test_FN3_wait_may_come_before_the_signal(stage: Stage) -> None:
    gate, done = stage.device.create_fence(), stage.device.create_fence()
    stage.queue.wait(gate, 1)
    stage.queue.signal(done, 1)
    stage.queue_of(COMPUTE).signal(gate, 1)
    done.wait(1)


@pytest.mark.dmlemu(expect=["FENCE_ZERO_WAIT"])
def test_FN3_zero_wait_is_remarked(stage: Stage) -> None:
    stage.queue.wait(stage.fence, 0)
    assert remarks(stage) == [1424]
    stage.finish()


def test_FN3_a_wait_that_never_ends(stage: Stage) -> None:
    gate = stage.device.create_fence()
    gate.set_name("gate")
    stage.queue.set_name("main")
    stage.queue.wait(gate, 7)

    with pytest.raises(Error) as caught:
        stage.finish()
    assert caught.value.report.id == "FENCE_NEVER"
    assert "'gate'" in str(caught.value) and "'main'" in str(caught.value)
    assert stage.device.get_device_removed_reason() is HResult.S_OK
    gate.signal(7)
    stage.fence.wait(1)


def test_FN3_two_queues_that_wait_for_each_other(stage: Stage) -> None:
    a, b = stage.device.create_fence(), stage.device.create_fence()
    stage.queue.wait(a, 1)
    stage.queue.signal(b, 1)
    stage.queue_of(COMPUTE).wait(b, 1)
    stage.queue_of(COMPUTE).signal(a, 1)

    with pytest.raises(Error, match="never end"):
        b.wait(1)


@pytest.mark.dmlemu(expect=["FENCE_BACKWARDS"])
def test_FN4_event_fires_at_once_or_later_and_once(stage: Stage) -> None:
    class Counter:
        count = 0

        def set(self) -> None:
            self.count += 1

    fence, counter = stage.device.create_fence(3), Counter()
    fence.set_event_on_completion(3, counter)
    assert counter.count == 1
    fence.set_event_on_completion(5, counter)
    fence.set_event_on_completion(5, counter)
    fence.signal(4)
    assert counter.count == 1
    fence.signal(6)
    assert counter.count == 3
    fence.signal(0)
    fence.signal(6)
    assert counter.count == 3


@pytest.mark.dmlemu(expect=["FENCE_BACKWARDS"])
def test_FN4_rewinding_does_not_cancel(stage: Stage) -> None:
    fence, event = stage.device.create_fence(3), threading.Event()
    fence.set_event_on_completion(4, event)
    fence.signal(0)
    assert not event.is_set()
    fence.signal(4)
    assert event.is_set()


def test_FN4_no_event_blocks(stage: Stage) -> None:
    buffer = stage.buffer()
    commands, _ = stage.record()
    commands.copy_resource(buffer, stage.upload(np.full(256, 3, np.uint8)))
    stage.submit(commands)
    stage.queue.signal(stage.fence, 1)
    stage.fence.set_event_on_completion(1, None)

    assert stage.fence.get_completed_value() == 1
    assert stage.queue.hardware.submitted == stage.queue.hardware.completed


@pytest.mark.parametrize("policy", list(Policy))
def test_FN4_an_event_outside_needs_no_wait_through_us(policy: Policy) -> None:
    """The program may block on its own event: the GPU must run by itself."""
    stage = Stage(policy=policy)
    early, late = threading.Event(), threading.Event()
    stage.queue.signal(stage.fence, 1)
    stage.fence.set_event_on_completion(1, early)
    assert early.is_set()
    stage.fence.set_event_on_completion(2, late)
    commands, _ = stage.record()
    stage.submit(commands)
    assert not late.is_set()
    stage.queue.signal(stage.fence, 2)
    assert late.is_set()


def test_FN5_removal_releases_everything(stage: Stage) -> None:
    fence, event = stage.device.create_fence(), threading.Event()
    fence.set_event_on_completion(10, event)
    stage.queue.wait(fence, 10)
    stage.device.remove_device()

    assert event.is_set()
    assert fence.get_completed_value() == U64_MAX
    assert fence.wait(10)
    fence.set_event_on_completion(11, None)
    with fails("RM2", REMOVED):
        fence.signal(1)


def test_FN6_releasing_a_fence_releases_its_waits(stage: Stage) -> None:
    gate, event = stage.device.create_fence(), threading.Event()
    gate.set_event_on_completion(5, event)
    stage.queue.wait(gate, 5)
    gate.close()
    stage.finish()

    assert event.is_set()
    with fails("CL9", INVALID, 921):
        gate.signal(1)


def test_FN6_one_fence_on_two_queues(stage: Stage) -> None:
    for type, value in ((DIRECT, 100), (COMPUTE, 7)):
        stage.queue_of(type).signal(stage.fence, value)
    stage.fence.wait(100)


@pytest.mark.parametrize("flags", [MultipleFenceWaitFlags.ALL, MultipleFenceWaitFlags.ANY])
def test_FN7_multiple_fences(stage: Stage, flags: MultipleFenceWaitFlags) -> None:
    fences = [stage.device.create_fence() for _ in range(3)]
    event = threading.Event()
    stage.device.set_event_on_multiple_fence_completion(fences, [1, 2, 3], flags, event)
    fences[1].signal(2)
    assert event.is_set() == (flags == MultipleFenceWaitFlags.ANY)
    fences[0].signal(1)
    fences[2].signal(3)
    assert event.is_set()


@pytest.mark.parametrize("flags", [MultipleFenceWaitFlags.ALL, MultipleFenceWaitFlags.ANY])
def test_FN7_fences_that_several_threads_signal_at_once(stage: Stage, flags: MultipleFenceWaitFlags) -> None:
    """The event is set once, and the device then no longer runs the GPU for it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for value in range(1, 40):
            fences = [stage.device.create_fence() for _ in range(4)]
            event, times = threading.Event(), []
            event.set = lambda times=times: times.append(1)  # type: ignore[method-assign, misc]
            stage.device.set_event_on_multiple_fence_completion(fences, [value] * 4, flags, event)
            threads = [threading.Thread(target=fence.signal, args=(value,)) for fence in fences]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert times == [1]
    finally:
        sys.setswitchinterval(before)
    assert not stage.device.context.watches


def test_an_event_is_set_when_another_thread_runs_the_gpu_to_the_value(stage: Stage) -> None:
    """Each thread's event is set by whoever gets there; none is lost."""
    problems: list[str] = []

    def work() -> None:
        queue, fence = stage.device.create_command_queue(), stage.device.create_fence()
        for value in range(1, 60):
            queue.signal(fence, value)
            event = threading.Event()
            fence.set_event_on_completion(value, event)
            if not event.wait(20):
                problems.append(f"{fence} has {fence.get_completed_value()} and no event at {value}")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_FN7_blocking(stage: Stage) -> None:
    a, b = stage.device.create_fence(), stage.device.create_fence()
    stage.queue.signal(a, 1)
    wait = stage.device.set_event_on_multiple_fence_completion
    wait([a, b], [1, 1], MultipleFenceWaitFlags.ANY)
    assert a.get_completed_value() == 1
    with pytest.raises(Error, match="would never end"):
        wait([a, b], [1, 1], MultipleFenceWaitFlags.ALL)
    b.signal(1)
    wait([a, b], [1, 1])


def test_FN7_arguments(stage: Stage) -> None:
    wait = stage.device.set_event_on_multiple_fence_completion

    with fails("FN7", INVALID, 975):
        wait([stage.fence], [0], MultipleFenceWaitFlags(2))
    with fails("FN7"):
        wait([stage.fence], [0, 1])
    with fails("FN7"):
        wait([], [])


def test_FN8_an_int_is_an_eventfd(stage: Stage) -> None:
    if not hasattr(os, "eventfd"):
        pytest.skip("no eventfd")
    handle = os.eventfd(0, os.EFD_NONBLOCK)
    try:
        stage.queue.signal(stage.fence, 1)
        stage.fence.set_event_on_completion(1, handle)
        assert os.eventfd_read(handle) == 1
    finally:
        os.close(handle)


@pytest.mark.parametrize("handle", [-1, 9999, 2**70])
def test_FN8_no_open_file(stage: Stage, handle: int) -> None:
    with fails("FN8", HResult.E_HANDLE):
        stage.fence.set_event_on_completion(1, handle)
    stage.finish()


def test_wait_with_timeout(stage: Stage) -> None:
    assert not stage.fence.wait(1, timeout=0.01)
    stage.queue.signal(stage.fence, 1)
    assert stage.fence.wait(1, timeout=5)


def test_polling_ends(stage: Stage) -> None:
    commands, _ = stage.record()
    commands.copy_resource(stage.buffer(), stage.buffer())
    stage.submit(commands)
    stage.queue.signal(stage.fence, 1)
    for _ in range(10):
        if stage.fence.get_completed_value() == 1:
            break
    else:
        raise AssertionError("polling made no progress")


def test_another_thread_may_signal(stage: Stage) -> None:
    timer = threading.Timer(0.05, lambda: stage.fence.signal(1))
    timer.start()
    stage.fence.wait(1)
    timer.join()


def test_eager_runs_at_submission() -> None:
    stage = Stage(policy=Policy.EAGER)
    buffer = stage.buffer(heap=stage.filled(np.zeros(4, np.uint8)).heap_type)
    commands, _ = stage.record()
    commands.copy_resource(buffer, stage.upload(np.full(256, 3, np.uint8)))
    stage.submit(commands)
    stage.queue.signal(stage.fence, 1)

    assert stage.fence.hardware.value == 1


@pytest.mark.dmlemu(expect=["OBJECT_*"])
@pytest.mark.parametrize("strictness", list(Strictness))
def test_eager_faults_come_from_submission(strictness: Strictness) -> None:
    stage = Stage(strictness, Policy.EAGER)
    gate, source = stage.device.create_fence(), stage.buffer()
    commands, _ = stage.record()
    commands.copy_resource(stage.buffer(), source)
    stage.queue.wait(gate, 1)
    stage.submit(commands)
    if strictness is Strictness.RUNTIME:
        source.close()
        gate.signal(1)
    else:
        with pytest.raises(Error, match="is released before"):
            source.close()
        with pytest.raises(Error, match="has been released"):
            gate.signal(1)
    assert stage.device.get_device_removed_reason() is HResult.DXGI_ERROR_DEVICE_HUNG


# --- threads that Python does not know ---


def test_FN3_a_native_thread_may_end_a_wait(runtime: Stage) -> None:
    fence = runtime.fence
    _thread.start_new_thread(lambda: (time.sleep(0.1), fence.signal(1)), ())  # not in threading.enumerate()
    fence.wait(1)
    assert fence.get_completed_value() == 1


def test_FN3_a_thread_that_was_woken_may_signal(stage: Stage) -> None:
    """It has not run yet when its own signaller has ended."""
    first, second = stage.device.create_fence(), stage.device.create_fence()

    def worker() -> None:
        first.wait(1)
        second.signal(1)

    threads = [threading.Thread(target=worker), threading.Timer(0.05, first.signal, [1])]
    for each in threads:
        each.start()
    second.wait(1)
    for each in threads:
        each.join()


@pytest.mark.parametrize("raises", [False, True])
def test_FN3_a_wait_that_goes_on_is_told_and_no_warning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raises: bool
) -> None:
    """A thread waits before another one queues the signal."""
    monkeypatch.setattr("dmlemu_hw.gpu._WARN_AFTER", 0.05)
    stage = Stage(raises=raises)
    stage.queue.wait(stage.fence, 1)
    late = stage.device.create_fence()
    stage.queue.signal(late, 1)

    def signal() -> None:
        time.sleep(0.5)
        stage.queue_of(COMPUTE).signal(stage.fence, 1)

    signaller = threading.Thread(target=signal)
    signaller.start()
    late.set_event_on_completion(1)
    signaller.join()
    (stored,) = stage.device.reports
    assert stored.report.severity is Severity.MESSAGE
    assert "would never end" not in stored.report.message
    assert "waits for fence" in "".join(stored.report.context)
    assert stored.report.message in capsys.readouterr().err


@pytest.mark.dmlemu(expect=["HAZARD_QUEUE"])
def test_what_the_gpu_finds_fails_no_call_on_a_device_that_does_not_raise() -> None:
    """Neither the wait that runs the GPU nor calls of another thread meanwhile."""
    stage = Stage(raises=False)
    source, target = stage.filled(np.arange(64, dtype=np.uint8)), stage.buffer(64)
    is_over, outcomes = threading.Event(), [0]

    def call() -> None:
        while not is_over.is_set():
            stage.device.create_fence().signal(1)
            list_, _ = stage.record()
            list_.close()
            outcomes[0] += 1
        outcomes.append(1)

    other = threading.Thread(target=call)
    other.start()
    for _ in range(5):
        fences = [stage.device.create_fence(), stage.device.create_fence()]
        for type, fence in zip((DIRECT, COMPUTE), fences, strict=True):
            commands, _ = stage.record(type)
            commands.copy_buffer_region(target, 0, source, 0, 64)  # on both queues, and nothing orders them
            stage.submit(commands)
            stage.queue_of(type).signal(fence, 1)
        for fence in fences:
            fence.wait(1)
    is_over.set()
    other.join()
    assert [stored.report.id for stored in stage.device.reports] == ["HAZARD_QUEUE"]
    assert outcomes[0] > 0 and outcomes[1:] == [1]
