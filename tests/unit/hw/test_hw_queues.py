"""Queues, fences and the scheduler: order, waits, deadlocks, threads, removal."""

import gc
import sys
import threading
import time
from collections import deque

import pytest

from dmlemu_hw import events, host, packets
from dmlemu_hw.allocation import Allocation
from dmlemu_hw.chaos import Chaos, Mode
from dmlemu_hw.descriptors import Descriptor, DescriptorKind
from dmlemu_hw.faults import Deadlock, FaultKind, GpuFault, OutOfMemory
from dmlemu_hw.fence import U64_MAX
from dmlemu_hw.gpu import Gpu, Policy, QueueKind
from dmlemu_hw.kernels import lib
from dmlemu_hw.storage import TILE_SIZE


@pytest.fixture
def log(gpu: Gpu) -> Allocation:
    return gpu.memory.place(gpu.memory.create_heap(TILE_SIZE), 0, TILE_SIZE)


def write(address: int, value: int) -> bytes:
    """A list of one command: writes a u32."""
    writer = packets.PacketWriter()
    writer.write_immediate([(address, value, 0)])
    return writer.bytes()


def bad_list() -> bytes:
    return write(8, 1)


def read(log: Allocation, index: int = 0) -> int:
    return int.from_bytes(log.buffer()[4 * index : 4 * index + 4], "little")


class TestOrder:
    def test_lazy_runs_nothing_until_the_host_waits(self, gpu, log):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        ticket = queue.submit([(1, write(log.address, 5))])
        done = queue.signal(fence, 1)
        assert (read(log), fence.value, queue.done(ticket)) == (0, 0, False)
        assert gpu.wait(fence, 1)
        assert (read(log), fence.value, queue.done(done), queue.completed) == (5, 1, True, 2)

    def test_eager_runs_at_submit_signal_and_wait(self, eager_gpu):
        log = eager_gpu.memory.place(eager_gpu.memory.create_heap(4), 0, 4)
        queue, fence = eager_gpu.create_queue(QueueKind.DIRECT), eager_gpu.create_fence()
        assert queue.done(queue.submit([(1, write(log.address, 5))]))
        assert read(log) == 5
        queue.signal(fence, 3)
        assert fence.value == 3
        queue.wait(fence, 4)
        assert not queue.done(queue.submit([(1, write(log.address, 6))]))
        fence.signal(4)
        assert read(log) == 6

    def test_a_value_seen_once_counts_when_a_subscriber_raises(self, gpu):
        """The fence goes back before the queue gets its turn again."""

        def interrupt(event: object) -> None:
            raised.append(event)
            if len(raised) == 1:
                raise KeyError

        raised: list[object] = []
        queue, (f, g, h) = gpu.create_queue(QueueKind.DIRECT), [gpu.create_fence() for _ in range(3)]
        f.signal(1)
        g.signal(1)
        queue.wait(f, 1)
        queue.wait(g, 1)
        queue.signal(h, 7)
        gpu.events.subscribe(interrupt, events.Waited)
        with pytest.raises(KeyError):
            gpu.wait(h, 7)
        g.signal(0)
        assert gpu.wait(h, 7)

    def test_FN3_a_value_seen_once_counts_before_the_wait_is_at_the_head(self, gpu):
        queue, (f, g, h) = gpu.create_queue(QueueKind.DIRECT), [gpu.create_fence() for _ in range(3)]
        queue.wait(g, 1)
        queue.wait(f, 8)
        queue.signal(h, 7)
        f.signal(8)
        f.signal(0)
        g.signal(1)
        assert gpu.wait(h, 7)
        assert (f.value, queue.pending) == (0, deque())

    def test_FN3_a_value_that_a_queue_sets_counts_as_well(self, gpu):
        queue, other = gpu.create_queue(QueueKind.DIRECT), gpu.create_queue(QueueKind.COMPUTE)
        f, g, h = [gpu.create_fence() for _ in range(3)]
        for wait in [(g, 1), (f, 3), (f, 8), (f, 5), (f, 9)]:
            queue.wait(*wait)
            queue.signal(h, wait[1])
        other.signal(f, 8)
        other.signal(f, 0)
        other.signal(g, 1)
        gpu.drain()
        assert h.value == 5  # 9 was never reached
        f.signal(9)
        assert gpu.wait(h, 9)

    def test_FN3_a_value_that_the_fence_had_before_the_wait_does_not_count(self, gpu):
        queue, (f, h) = gpu.create_queue(QueueKind.DIRECT), [gpu.create_fence() for _ in range(2)]
        f.signal(8)
        f.signal(0)
        queue.wait(f, 8)
        queue.signal(h, 7)
        gpu.drain()
        assert h.value == 0
        f.signal(8)
        assert gpu.wait(h, 7)

    def test_FN3_a_signal_that_is_interrupted_ends_the_waits_later(self, gpu, monkeypatch):
        def interrupt(self: object) -> None:
            raise KeyboardInterrupt

        queue, (f, h) = gpu.create_queue(QueueKind.DIRECT), [gpu.create_fence() for _ in range(2)]
        queue.wait(f, 8)
        queue.signal(h, 7)
        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(type(f), "end_waits", interrupt)
            f.signal(8)
        assert f.value == 8
        queue.signal(h, 9)  # whatever changes next
        assert gpu.wait(h, 9)

    def test_Q3_lists_of_one_submission_run_in_order(self, gpu, log):
        queue = gpu.create_queue(QueueKind.DIRECT)
        assert queue.submit([(i, write(log.address, i)) for i in range(1, 4)]) == 3
        seen = []
        while gpu.step():
            seen.append(read(log))
        assert seen == [1, 2, 3]

    def test_steps_until_a_condition_holds(self, gpu, log):
        queue = gpu.create_queue(QueueKind.DIRECT)
        queue.submit([(i, write(log.address, i)) for i in range(1, 4)])
        assert gpu.step(until=lambda: read(log) == 2)
        assert read(log) == 2
        assert gpu.step(until=lambda: False) and read(log) == 3
        assert not gpu.step(until=lambda: False)

    def test_steps_until_a_condition_holds_let_callbacks_come_between(self, gpu):
        queue, f, seen = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence(), []
        f.on_value(1, lambda: seen.append(f.value))
        for value in (1, 2):
            queue.signal(f, value)
        assert gpu.step(until=lambda: False)
        assert seen == [1]

    def test_nothing_submitted(self, gpu):
        queue = gpu.create_queue(QueueKind.DIRECT)
        assert queue.done(queue.submit([]))
        assert not gpu.step()

    def test_queues_take_turns_in_the_order_of_creation(self, gpu, log):
        queues = [gpu.create_queue(QueueKind.COMPUTE) for _ in range(3)]
        for number, queue in reversed(list(enumerate(queues))):
            queue.submit([(1, write(log.address, 10 * number + i)) for i in range(3 - number)])
        seen = []
        while gpu.step():
            seen.append(read(log))
        assert seen == [0, 10, 20, 1, 11, 2]

    def test_labels_and_kinds(self, gpu):
        named, plain = gpu.create_queue(QueueKind.COPY, "uploads"), gpu.create_queue(QueueKind.COMPUTE)
        assert [(each.label, each.kind) for each in gpu.queues] == [("uploads", 3), ("compute queue 2", 2)]
        assert gpu.queues == [named, plain]

    def test_a_closed_queue_finishes_and_is_forgotten(self, gpu, log):
        first, second = gpu.create_queue(QueueKind.DIRECT), gpu.create_queue(QueueKind.DIRECT)
        first.submit([(1, write(log.address, 5))])
        first.close()
        assert gpu.queues == [first, second]
        gpu.drain()
        assert gpu.queues == [second]
        assert read(log) == 5
        second.close()
        assert gpu.queues == []


class TestFences:
    def test_FN1_initial_value(self, gpu):
        assert gpu.create_fence(7).value == 7
        assert gpu.create_fence(U64_MAX).value == U64_MAX

    @pytest.mark.parametrize("value", [-1, 1 << 64])
    def test_a_value_is_a_u64(self, gpu, value):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        for call in [
            lambda: gpu.create_fence(value),
            lambda: fence.signal(value),
            lambda: fence.on_value(value, print),
            lambda: queue.signal(fence, value),
            lambda: queue.wait(fence, value),
        ]:
            with pytest.raises(ValueError):
                call()
        assert queue.submitted == 0

    def test_FN2_a_signal_may_rewind(self, gpu):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence(9)
        fence.signal(3)
        assert fence.value == 3
        queue.signal(fence, 2)
        gpu.drain()
        assert fence.value == 2

    def test_FN3_a_wait_may_come_before_the_signal_exists(self, gpu, log):
        consumer, producer = gpu.create_queue(QueueKind.COMPUTE), gpu.create_queue(QueueKind.COPY)
        fence, end = gpu.create_fence(), gpu.create_fence()
        consumer.wait(fence, 1)
        consumer.submit([(2, write(log.address, 2))])
        consumer.signal(end, 1)
        gpu.drain()
        assert read(log) == 0
        producer.submit([(1, write(log.address + 4, 1))])
        producer.signal(fence, 1)
        assert gpu.wait(end, 1)
        assert (read(log, 0), read(log, 1)) == (2, 1)

    def test_FN3_a_wait_that_was_satisfied_stays_so(self, gpu, log):
        queue, fence = gpu.create_queue(QueueKind.COMPUTE), gpu.create_fence()
        queue.wait(fence, 5)
        queue.submit([(1, write(log.address, 1))])
        fence.signal(5)
        fence.signal(0)
        gpu.drain()
        assert read(log) == 1

    def test_FN3_a_value_reached_when_the_wait_is_queued_counts(self, gpu, log):
        queue, fence = gpu.create_queue(QueueKind.COMPUTE), gpu.create_fence(5)
        queue.wait(fence, 5)
        fence.signal(0)
        queue.submit([(1, write(log.address, 1))])
        gpu.drain()
        assert read(log) == 1

    def test_FN3_only_the_wait_at_the_head_sees_a_value(self, gpu, log):
        queue, fence = gpu.create_queue(QueueKind.COMPUTE), gpu.create_fence()
        queue.wait(fence, 5)
        queue.wait(fence, 6)
        queue.submit([(1, write(log.address, 1))])
        fence.signal(5)
        gpu.drain()
        fence.signal(0)
        assert (queue.completed, read(log)) == (1, 0)

    def test_FN3_wait_for_0_is_satisfied_at_once(self, gpu, log):
        queue, fence = gpu.create_queue(QueueKind.COMPUTE), gpu.create_fence()
        queue.wait(fence, 0)
        queue.submit([(1, write(log.address, 1))])
        gpu.drain()
        assert read(log) == 1

    def test_FN3_a_queue_that_waits_for_its_own_past_signal(self, gpu):
        queue, fence = gpu.create_queue(QueueKind.COMPUTE), gpu.create_fence()
        queue.signal(fence, 2)
        queue.wait(fence, 2)
        queue.signal(fence, 3)
        assert gpu.wait(fence, 3)

    def test_FN4_callbacks_fire_once_even_if_the_fence_goes_back(self, gpu):
        fence, calls = gpu.create_fence(), []
        fence.on_value(2, lambda: calls.append("two"))
        fence.on_value(2, lambda: calls.append("two again"))
        fence.on_value(3, lambda: calls.append("three"))
        fence.signal(1)
        assert calls == []
        fence.signal(2)
        fence.signal(0)
        fence.signal(2)
        assert calls == ["two", "two again"]
        fence.signal(9)
        assert calls[2:] == ["three"]

    def test_FN4_a_reached_value_calls_back_at_once(self, gpu):
        calls = []
        gpu.create_fence(5).on_value(5, lambda: calls.append(1))
        assert calls == [1]

    def test_FN4_callbacks_of_a_queue_signal_may_use_the_gpu(self, gpu, log):
        queue, fence, end = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence(), gpu.create_fence()

        def go_on() -> None:
            queue.submit([(2, write(log.address, 2))])
            queue.signal(end, 1)
            assert gpu.wait(end, 1)

        fence.on_value(1, go_on)
        queue.signal(fence, 1)
        gpu.drain()
        assert (read(log), end.value) == (2, 1)

    def test_FN6_closing_a_fence_releases_who_waits(self, gpu, log):
        queue, fence, calls = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence(), []
        queue.wait(fence, 5)
        queue.submit([(1, write(log.address, 1))])
        queue.wait(fence, 6)
        queue.signal(fence, 1)
        fence.on_value(5, lambda: calls.append(1))
        fence.close()
        gpu.drain()
        assert (read(log), calls, queue.completed) == (1, [1], 4)

    def test_a_fence_named_in_a_queue_lives_until_the_entry_ran(self, gpu):
        queue = gpu.create_queue(QueueKind.DIRECT)
        fence = gpu.create_fence(5)
        address = fence.address
        queue.wait(fence, 5)
        del fence
        gc.collect()
        assert gpu.create_fence().address != address
        gpu.drain()
        gc.collect()
        assert address in [fence.address for fence in [gpu.create_fence(), gpu.create_fence()]]

    def test_more_fences_than_a_page_holds(self, gpu):
        fences = [gpu.create_fence(i) for i in range(TILE_SIZE // 8 + 10)]
        assert [fence.value for fence in fences] == list(range(len(fences)))
        assert len({fence.address for fence in fences}) == len(fences)


class TestWaiting:
    def test_wait_runs_no_more_than_needed(self, gpu, log):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        queue.signal(fence, 1)
        queue.submit([(1, write(log.address, 1))])
        assert gpu.wait(fence, 1)
        assert read(log) == 0

    def test_a_value_never_reached_times_out(self, gpu):
        start = time.monotonic()
        assert not gpu.wait(gpu.create_fence(), 1, timeout=0.02)
        assert time.monotonic() - start >= 0.02

    def test_timeout_0_polls_and_makes_progress(self, gpu):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        for value in (1, 2):
            queue.signal(fence, value)
        assert not gpu.wait(fence, 2, timeout=0)
        assert gpu.wait(fence, 2, timeout=0)

    def test_a_deadlock_names_queues_fences_and_values(self, gpu):
        one, two = gpu.create_queue(QueueKind.DIRECT, "one"), gpu.create_queue(QueueKind.COPY, "two")
        red, blue = gpu.create_fence(), gpu.create_fence(3)
        red.label = "red"
        one.wait(red, 7)
        one.signal(blue, 4)
        two.wait(blue, 4)
        two.signal(red, 7)
        with pytest.raises(Deadlock) as error:
            gpu.wait(blue, 4)
        assert error.value.text.splitlines() == [
            "Waiting for fence 2 to reach 4 would never end: it is 3.",
            "  - one would set it to 4, but is blocked",
            "  - one waits for red to reach 7; it is 0, and two would set it, but is "
            "blocked (1 entry behind)",
            "  - two waits for fence 2 to reach 4; it is 3, and one would set it, but is "
            "blocked (1 entry behind)",
            "  - Circular wait: one -> two -> one",
        ]
        assert error.value.is_circular
        with pytest.raises(Deadlock) as error:  # of several fences, for example
            gpu.wait_until(lambda: False, lambda: "Waiting would never end.")
        assert len(error.value.text.splitlines()) == 4
        assert error.value.is_circular
        red.signal(7)
        assert gpu.wait(blue, 4)

    def test_a_deadlock_without_a_circle_says_that_nobody_signals(self, gpu):
        queue, red, blue = gpu.create_queue(QueueKind.DIRECT, "one"), gpu.create_fence(), gpu.create_fence()
        queue.signal(red, 1)
        queue.wait(red, 2)
        queue.signal(blue, 1)
        queue.signal(blue, 2)
        with pytest.raises(Deadlock) as error:
            gpu.wait(blue, 1)
        assert error.value.text.splitlines()[3:] == [
            "  - one waits for fence 1 to reach 2; it is 1, and no such signal is queued (2 entries behind)",
        ]
        assert not error.value.is_circular

    def test_waiting_for_what_nobody_signals_is_a_deadlock(self, gpu):
        with pytest.raises(Deadlock, match="would never end: it is 0"):
            gpu.wait(gpu.create_fence(), 1)

    def test_another_thread_may_signal(self, gpu):
        fence = gpu.create_fence()
        thread = threading.Timer(0.05, lambda: fence.signal(1))
        thread.start()
        assert gpu.wait(fence, 1)
        thread.join()

    def test_another_thread_may_submit(self, gpu, log):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()

        def work() -> None:
            queue.submit([(1, write(log.address, 1))])
            queue.signal(fence, 1)

        thread = threading.Timer(0.05, work)
        thread.start()
        assert gpu.wait(fence, 1)
        assert read(log) == 1
        thread.join()

    def test_a_deadlock_is_seen_when_the_last_other_thread_ends(self, gpu):
        thread = threading.Timer(0.05, lambda: None)
        thread.start()
        with pytest.raises(Deadlock):
            gpu.wait(gpu.create_fence(), 1)
        thread.join()

    def test_a_wait_that_only_another_thread_can_end_says_so(self, gpu, monkeypatch):
        """A thread that sleeps may signal one day: no deadlock, but no silence either."""
        monkeypatch.setattr("dmlemu_hw.gpu._WARN_AFTER", 0.1)
        fence = gpu.create_fence()
        warned = threading.Event()
        late = threading.Thread(target=lambda: warned.wait(20) and fence.signal(3))
        late.start()
        texts: list[str] = []
        gpu.on_stuck = lambda text, signallers: (texts.append(text), warned.set())
        assert gpu.wait(fence, 3)
        late.join()
        assert len(texts) == 1
        assert "to reach 3 goes on: it is 0." in texts[0]

    @pytest.mark.parametrize("is_known", [True, False])
    def test_a_wait_for_a_thread_that_has_signalled_before_is_no_news(self, gpu, monkeypatch, is_known):
        """It is elsewhere in the program: PyTorch has a thread that waits for the signals of another one."""
        monkeypatch.setattr("dmlemu_hw.gpu._WARN_AFTER", 0.05)
        fence, told = gpu.create_fence(), threading.Event()
        gpu.on_stuck = lambda text, signallers: told.set()
        before = [threading.Thread(target=fence.signal, args=[1])]
        if is_known:
            fence.signal(2)
        else:  # who has signalled has ended
            before[0].start()
            before[0].join()
        waiter = threading.Thread(target=gpu.wait, args=[fence, 3])
        waiter.start()
        is_told = told.wait(0.6 if is_known else 20)
        fence.signal(3)
        waiter.join()
        assert is_told != is_known

    def test_a_long_wait_beside_a_thread_that_has_signalled_before_is_told_once(self, gpu, monkeypatch):
        monkeypatch.setattr("dmlemu_hw.gpu._WARN_AFTER", 0.05)
        monkeypatch.setattr("dmlemu_hw.gpu._TELL_AFTER", 0.2)
        fence, told, calls = gpu.create_fence(), threading.Event(), []
        gpu.on_stuck = lambda text, signallers: (calls.append((text, signallers)), told.set())
        fence.signal(1)
        waiter = threading.Thread(target=gpu.wait, args=[fence, 3])
        waiter.start()
        assert told.wait(20)
        waiter.join(0.3)  # it would be told again
        fence.signal(3)
        waiter.join()
        ((text, signallers),) = calls
        assert "to reach 3 goes on: it is 1." in text
        assert [each.split()[2] for each in signallers] == [str(threading.get_native_id())]

    def test_a_poll_leaves_the_work_to_a_native_thread_that_waits(self, gpu):
        gpu.has_native_threads = True
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        ran_on = []

        class Waiting(threading.Thread):
            def run(self) -> None:
                gpu.wait(fence, 2)

        waiter = Waiting()
        waiter.start()
        while not gpu._others_wait():
            pass
        with gpu.events.subscribe(lambda event: ran_on.append(threading.get_ident()), events.Signalled):
            queue.signal(fence, 1)
            while fence.value < 1:
                gpu.poll()
        assert set(ran_on) == {waiter.ident}
        fence.signal(2)
        waiter.join()
        queue.signal(fence, 3)
        gpu.poll()  # nobody else would
        assert fence.value == 3

    def test_a_thread_that_an_exception_took_out_of_a_wait_leaves_the_work_to_polls(self, gpu):
        """A program may keep the exception, and with it the frames of the wait."""
        gpu.has_native_threads = True
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        kept = []

        def refuse(event: object) -> None:
            raise ValueError("no")

        def wait() -> None:
            try:
                gpu.wait(fence, 2)
            except ValueError as error:
                kept.append(error)

        with gpu.events.subscribe(refuse, events.Signalled):
            queue.signal(fence, 1)
            waiter = threading.Thread(target=wait)
            waiter.start()
            waiter.join()
        assert kept
        queue.signal(fence, 3)
        gpu.poll()
        assert fence.value == 3

    def test_a_wait_inside_a_wait_leaves_the_outer_one_known(self, gpu):
        gpu.has_native_threads = True
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        inner, seen = gpu.create_fence(7), []
        queue.signal(fence, 1)

        def reached() -> bool:
            gpu.wait_until(lambda: inner.value == 7, str)
            other = threading.Thread(target=lambda: seen.append(gpu._others_wait()))
            other.start()
            other.join()
            return fence.value == 1

        assert gpu.wait_until(reached, str)
        assert seen and all(seen)
        assert not gpu._waiters

    @pytest.mark.parametrize("policy", Policy)
    def test_what_a_thread_that_ran_leaves_behind_is_run(self, policy, monkeypatch):
        """It ran when this thread looked, and had ended when this thread wanted to sleep."""
        gpu = Gpu(name="test", memory_bytes=1 << 20, policy=policy)
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        step = gpu.step

        def late(*arguments: object) -> bool:
            found = step(*arguments)
            gpu._runner = 0
            return found

        monkeypatch.setattr(gpu, "step", late)
        gpu._runner = -1
        queue.signal(fence, 1)
        assert policy is Policy.LAZY or fence.value == 1
        assert gpu.wait(fence, 1)

    @pytest.mark.parametrize("is_blocked", [False, True])
    def test_threads_submit_while_others_look_at_what_is_queued(self, is_blocked):
        """One chooses an order for what is queued; one says what queues wait for."""
        gpu = Gpu(name="test", memory_bytes=1 << 20, policy=Chaos(1, (Mode.ORDER,)))
        log = gpu.memory.place(gpu.memory.create_heap(TILE_SIZE), 0, TILE_SIZE)
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        if is_blocked:
            queue.wait(fence, 1)
        for _ in range(300):
            queue.submit([(1, write(log.address, 1))], start=False)
        ends = threading.Event()

        def submit() -> None:
            while not ends.is_set():
                queue.submit([(1, write(log.address, 1))], start=False)

        thread = threading.Thread(target=submit)
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            thread.start()
            for _ in range(100):
                if is_blocked:
                    assert "waits for" in gpu._scheduler.blocked()
                else:
                    assert gpu.step()
        finally:
            ends.set()
            thread.join()
            sys.setswitchinterval(before)

    def test_programs_write_descriptors_and_submit_while_the_gpu_is_busy(self, gpu):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        heap = gpu.descriptors.create_heap(4, shader_visible=True)
        encoded = Descriptor(DescriptorKind.UAV).encode()

        def prepare() -> None:
            heap.put(1, encoded)
            queue.signal(fence, 1)
            gpu.poll()

        with gpu.lock:  # as between two commands of a list
            gpu._runner = threading.get_ident()
            thread = threading.Thread(target=prepare, daemon=True)
            thread.start()
            thread.join(20)
            assert not thread.is_alive()
            gpu._runner = 0
        assert heap.content(1, 1) == encoded
        assert gpu.wait(fence, 1)
        heap.close()
        with pytest.raises(ValueError):
            heap.put(1, encoded)

    def test_threads_that_all_wait_are_a_deadlock(self, gpu):
        errors = []

        def wait() -> None:
            try:
                gpu.wait(gpu.create_fence(), 1)
            except Deadlock as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        with pytest.raises(Deadlock):
            gpu.wait(gpu.create_fence(), 1)
        thread.join()
        assert len(errors) == 1

    def test_many_threads_submit_and_wait(self, gpu, log):
        def work(number: int) -> None:
            queue, fence = gpu.create_queue(QueueKind.COMPUTE), gpu.create_fence()
            for i in range(30):
                queue.submit([(1, write(log.address + 4 * number, i))])
                queue.signal(fence, i + 1)
                assert gpu.wait(fence, i + 1)
                heap = gpu.memory.create_heap(10)
                gpu.memory.place(heap, 0, 10).close()
                heap.close()
                assert read(log, number) == i
            done.append(number)

        done: list[int] = []
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(done) == [0, 1, 2, 3]


class TestRemoval:
    @pytest.mark.parametrize("policy", Policy)
    def test_FN5_a_fault_removes_the_gpu(self, policy):
        gpu = Gpu(name="test", memory_bytes=1 << 20, policy=policy)
        queue, other = gpu.create_queue(QueueKind.DIRECT, "main"), gpu.create_queue(QueueKind.COPY)
        fence, calls = gpu.create_fence(), []
        fence.on_value(100, lambda: calls.append(1))
        other.wait(fence, 50)
        with pytest.raises(GpuFault) as error:
            queue.submit([(1, b""), (42, write(gpu.create_fence().address, 0) + bad_list())])
            gpu.wait(fence, 1)
        fault = error.value
        assert gpu.fault is fault
        assert (fault.kind, fault.address, fault.queue) == (FaultKind.BAD_ADDRESS, 8, "main")
        assert (fault.list_serial, fault.command, fault.packet) == (42, 1, bad_list())
        assert fence.value == U64_MAX
        assert calls == [1]
        assert all(not each.pending and each.done(each.submitted) for each in gpu.queues)
        assert gpu.wait(fence, 1)
        assert not gpu.step()

    def test_after_removal_nothing_runs_and_nothing_fails(self, gpu):
        queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
        gpu.remove(GpuFault(FaultKind.REMOVED, "The program removed the device."))
        gpu.remove(GpuFault(FaultKind.REMOVED, "again"))
        assert gpu.fault is not None
        assert gpu.fault.message == "The program removed the device."
        later = gpu.create_queue(QueueKind.COPY)
        for each in (queue, later):
            assert each.done(each.submit([(1, bad_list())]))
            assert each.done(each.signal(fence, 1))
            assert each.done(each.wait(fence, 1))
        fence.signal(3)
        assert fence.value == gpu.create_fence().value == U64_MAX
        calls = []
        fence.on_value(1 << 60, lambda: calls.append(1))
        assert calls == [1]
        gpu.drain()

    def test_removal_wakes_a_sleeping_wait(self, gpu):
        fault = GpuFault(FaultKind.REMOVED, "gone")
        thread = threading.Timer(0.05, lambda: gpu.remove(fault))
        thread.start()
        assert gpu.wait(gpu.create_fence(), 1)
        thread.join()

    def test_the_text_of_a_fault_says_where(self, gpu):
        queue = gpu.create_queue(QueueKind.DIRECT, "main")
        queue.submit([(42, bad_list())])
        with pytest.raises(GpuFault) as error:
            gpu.drain()
        assert str(error.value).splitlines() == [
            "Address 0x8 lies in no allocation.",
            "  - in main, list 42, command 0",
        ]


@pytest.fixture
def limit_mappings():
    gc.collect()  # nothing else gives any back meanwhile
    yield lib.dmlk_limit_mappings
    host._limit_mappings()


class TestTileMappings:
    def test_RS6_mapping_is_ordered_with_the_queue(self, gpu, log):
        queue = gpu.create_queue(QueueKind.DIRECT)
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        reserved = gpu.memory.reserve(2 * TILE_SIZE)
        placed = gpu.memory.place(heap, 0, 2 * TILE_SIZE)
        queue.submit([(1, write(reserved.address, 1))])  # NULL: dropped
        queue.map_tiles(reserved, [(0, 1, heap, 1, False), (1, 1, heap, 0, False)])
        queue.submit([(2, write(reserved.address, 2))])
        queue.map_tiles(reserved, [(0, 2, None, 0, False)])
        queue.submit([(3, write(reserved.address, 3))])
        assert not reserved.buffer()[0]
        gpu.drain()
        assert (placed.buffer()[0], placed.buffer()[TILE_SIZE], reserved.buffer()[0]) == (0, 2, 0)

    def test_RS5_later_regions_win(self, gpu):
        queue = gpu.create_queue(QueueKind.DIRECT)
        heap = gpu.memory.create_heap(2 * TILE_SIZE)
        gpu.memory.place(heap, 0, 1).buffer()[0] = 9
        reserved = gpu.memory.reserve(TILE_SIZE)
        queue.map_tiles(reserved, [(0, 1, heap, 1, False), (0, 1, heap, 0, False)])
        gpu.drain()
        assert reserved.buffer()[0] == 9

    def test_RS4_bad_tiles_are_refused_at_once(self, gpu):
        queue, reserved = gpu.create_queue(QueueKind.DIRECT), gpu.memory.reserve(TILE_SIZE)
        with pytest.raises(ValueError):
            queue.map_tiles(reserved, [(1, 1, None, 0, False)])
        assert not queue.pending

    def test_mapping_anew_takes_no_more_of_the_host_than_remains(self, gpu, limit_mappings):
        queue, heap = gpu.create_queue(QueueKind.DIRECT), gpu.memory.create_heap(2 * TILE_SIZE)
        reserved = gpu.memory.reserve(40 * TILE_SIZE)
        gc.collect()
        before = lib.dmlk_count_mappings()
        limit_mappings(before + 39)
        for tile in (0, 1, 0):
            queue.map_tiles(reserved, [(0, 40, heap, tile, True)])
            gpu.drain()
            assert lib.dmlk_count_mappings() == before + 39
        queue.map_tiles(reserved, [(0, 40, None, 0, False), (0, 40, heap, 1, True)])
        gpu.drain()
        queue.map_tiles(reserved, [(5, 2, heap, 0, False)])
        gpu.drain()
        with pytest.raises(OutOfMemory, match="The host refuses to map 60 tiles"):
            queue.map_tiles(gpu.memory.reserve(60 * TILE_SIZE), [(0, 60, heap, 0, True)])

    def test_what_a_queued_mapping_may_remove_is_not_counted_on(self, gpu, limit_mappings):
        queue, heap = gpu.create_queue(QueueKind.DIRECT), gpu.memory.create_heap(TILE_SIZE)
        reserved = gpu.memory.reserve(40 * TILE_SIZE)
        queue.map_tiles(reserved, [(0, 40, heap, 0, True)])
        gpu.drain()
        limit_mappings(lib.dmlk_count_mappings() + 10)
        queue.map_tiles(reserved, [(0, 40, None, 0, False)])
        with pytest.raises(OutOfMemory, match="The host refuses to map 40 tiles"):
            queue.map_tiles(reserved, [(0, 40, heap, 0, True)])
        gpu.drain()
        queue.map_tiles(reserved, [(0, 40, heap, 0, True)])  # what was removed is free again
        gpu.drain()

    def test_a_heap_released_too_early_is_a_fault(self, gpu):
        queue, reserved = gpu.create_queue(QueueKind.DIRECT), gpu.memory.reserve(TILE_SIZE, "weights")
        heap = gpu.memory.create_heap(TILE_SIZE)
        queue.map_tiles(reserved, [(0, 1, heap, 0, False)])
        heap.close()
        with pytest.raises(GpuFault, match=r"weights .* mapped to heap 2, which has been released") as error:
            gpu.drain()
        assert error.value.kind is FaultKind.HEAP_RELEASED

    def test_a_reserved_range_released_too_early_is_a_fault(self, gpu):
        queue, reserved = gpu.create_queue(QueueKind.DIRECT), gpu.memory.reserve(TILE_SIZE, "weights")
        queue.map_tiles(reserved, [(0, 1, None, 0, False)])
        reserved.close()
        with pytest.raises(GpuFault, match="lies in weights, which has been released"):
            gpu.drain()
