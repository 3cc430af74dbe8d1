"""Several threads: who gets in while a list is executed, what it may change meanwhile, and the lock."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import pytest

from dmlemu_hw import events, kernels, packets
from dmlemu_hw.allocation import Allocation
from dmlemu_hw.chaos import Chaos, Mode
from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorHeap, DescriptorKind
from dmlemu_hw.faults import FaultKind, GpuFault
from dmlemu_hw.gpu import Gpu, Policy, QueueKind
from dmlemu_hw.lock import Lock
from dmlemu_hw.packets import PacketWriter
from dmlemu_hw.queue import Queue
from dmlemu_hw.storage import TILE_SIZE

MOST = 60.0  # seconds; nothing here waits that long


class Work:
    """A queue with a list of equal dispatches, which a thread executes: more than it will ever come to."""

    def __init__(self, gpu: Gpu, elements: int = 1 << 20, count: int = 50_000) -> None:
        self.gpu = gpu
        self.memory: Allocation = gpu.memory.place(gpu.memory.create_heap(TILE_SIZE), 0, TILE_SIZE)
        self.heap: DescriptorHeap = gpu.descriptors.create_heap(2, True)
        for i in range(2):
            view = Descriptor(DescriptorKind.UAV, DESCRIPTOR_RAW, 0, 39, self.memory.address + 4 * i, 4)
            gpu.descriptors.write(self.heap.cpu_start + 32 * i, view)
        tensors = [packets.tensor(slot, 3, 1, (elements,), (0,), 4) for slot in range(2)]
        writer = PacketWriter()
        writer.dispatch(kernels.number("copy"), self.heap.gpu_start, tensors, b"", 0)
        self.queue: Queue = gpu.create_queue(QueueKind.DIRECT)
        self.queue.submit([(1, writer.bytes() * count)])
        self.fence = gpu.create_fence()
        self.queue.signal(self.fence, 1)
        self.raised: list[BaseException] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def begin(self) -> Work:
        """Returns in the middle of the list."""
        self.start()
        while self.gpu.clock.now < 3:
            assert self._thread.is_alive()
        assert self.is_running()
        return self

    def is_running(self) -> bool:
        return self.queue.completed == 0

    def end(self) -> None:
        self._thread.join(MOST)
        assert not self._thread.is_alive()

    def stop(self) -> None:
        """Ends the list, which must still be running."""
        assert self.is_running()
        self.gpu.remove(GpuFault(FaultKind.REMOVED, "stopped"))
        self.end()
        assert not self.raised

    def _run(self) -> None:
        try:
            self.gpu.wait(self.fence, 1)
        except BaseException as error:
            self.raised.append(error)


def ignore(event: object) -> None:
    pass


CALLS: list[Callable[[Work], object]] = [
    lambda work: work.gpu.create_fence(),
    lambda work: work.gpu.create_queue(QueueKind.COPY),
    lambda work: work.gpu.memory.place(work.gpu.memory.create_heap(TILE_SIZE), 0, TILE_SIZE),
    lambda work: work.gpu.create_fence().signal(1),
    lambda work: work.gpu.create_queue(QueueKind.COPY).signal(work.gpu.create_fence(), 1),
    lambda work: work.gpu.descriptors.create_heap(1, False),
    lambda work: work.gpu.descriptors.read(work.heap.cpu_start),
    lambda work: work.gpu.step(),
]


@pytest.mark.parametrize("elements, count", [(1 << 20, 50_000), (1 << 14, 100_000)], ids=["long", "short"])
@pytest.mark.parametrize("watched", [False, True])
def test_other_threads_get_in_between_two_dispatches(
    gpu: Gpu, elements: int, count: int, watched: bool
) -> None:
    if watched:
        gpu.events.subscribe(ignore, events.Accessing, events.Executed)
    work = Work(gpu, elements, count).begin()
    for call in CALLS:
        call(work)
    work.stop()


def test_other_threads_get_in_under_chaos() -> None:
    gpu = Gpu(name="test", memory_bytes=64 << 20, policy=Chaos(1, frozenset({Mode.ORDER})))
    work = Work(gpu, count=3000).begin()
    gpu.create_fence()
    work.stop()
    gpu.close()


def test_a_thread_that_polls_all_the_time_does_not_stop_the_gpu(gpu: Gpu) -> None:
    work = Work(gpu, 1, 100_000)
    work.start()
    polls = 0
    while work.fence.observe() < 1:
        gpu.step()
        gpu.create_fence()
        polls += 1
    work.end()
    assert polls > 0 and not work.raised


def test_memory_released_meanwhile_is_missing_in_the_next_dispatch(gpu: Gpu) -> None:
    work = Work(gpu).begin()
    work.memory.close()
    work.end()
    (raised,) = work.raised
    assert isinstance(raised, GpuFault) and raised.kind is FaultKind.DESCRIPTOR_STALE
    assert raised.list_serial == 1 and raised.command > 0


def test_descriptors_written_meanwhile_are_read_by_the_next_dispatch(gpu: Gpu) -> None:
    work = Work(gpu).begin()
    other = gpu.memory.place(gpu.memory.create_heap(4), 0, 4)
    view = Descriptor(DescriptorKind.UAV, DESCRIPTOR_RAW, 0, 39, other.address, 4)
    work.memory.buffer()[:4] = b"abcd"
    gpu.descriptors.write(work.heap.cpu_start + 32, view)
    while bytes(other.buffer()) != b"abcd":
        assert work.is_running()
    work.stop()


def view(memory: Allocation) -> bytes:
    return Descriptor(DescriptorKind.UAV, DESCRIPTOR_RAW, 0, 39, memory.address, 4).encode()


def test_DH10_descriptors_written_in_the_middle_of_dispatches_are_old_or_new(gpu: Gpu) -> None:
    """A program may not do so; what it does not bind stays as it is."""
    work = Work(gpu, 1 << 12, 100_000)
    targets = [gpu.memory.place(gpu.memory.create_heap(4), 0, 4) for _ in range(5)]
    work.memory.buffer()[:4] = b"abcd"
    work.begin()
    turns = 0
    while turns < 2_000 or not all(bytes(each.buffer()) == b"abcd" for each in targets[::2]):
        work.heap.put(1, view(targets[turns % 3 * 2]))
        turns += 1
    work.stop()
    assert [bytes(each.buffer()) for each in targets[1::2]] == [bytes(4)] * 2


def test_DH10_a_null_descriptor_written_in_the_middle_of_dispatches_is_a_fault(gpu: Gpu) -> None:
    work = Work(gpu, 1 << 12, 100_000).begin()
    work.heap.put(1, Descriptor.raw_uav(39, 0, 0))
    work.end()
    (raised,) = work.raised
    assert isinstance(raised, GpuFault) and raised.kind is FaultKind.BAD_DESCRIPTOR


def test_removal_meanwhile_ends_the_list_and_the_wait(gpu: Gpu) -> None:
    work = Work(gpu).begin()
    work.stop()
    assert not work.queue.pending and work.fence.value == 2**64 - 1


def test_callbacks_of_a_removal_run_at_once(gpu: Gpu) -> None:
    work = Work(gpu).begin()
    called: list[int] = []
    fence = gpu.create_fence()
    fence.on_value(1, lambda: called.append(1))
    gpu.remove(GpuFault(FaultKind.REMOVED, "by the other thread"))
    assert called == [1]
    work.end()
    assert not work.raised and gpu.fault is not None and gpu.fault.message == "by the other thread"


def test_two_threads_that_wait_for_the_same_gpu_both_end(gpu: Gpu) -> None:
    """The one that does not run the GPU neither takes part nor counts as one that waits for ever."""
    both = [Work(gpu, count=50), Work(gpu, count=50)]
    for work in both:
        work.start()
    for work in both:
        work.end()
        assert not work.raised and work.fence.value == 1


def test_a_wait_with_a_timeout_ends_while_another_thread_runs(gpu: Gpu) -> None:
    work = Work(gpu).begin()
    assert not gpu.wait(gpu.create_fence(), 1, timeout=0.01)
    work.stop()


def test_eager_submit_has_run_when_it_returns_though_another_thread_runs() -> None:
    gpu = Gpu(name="test", memory_bytes=64 << 20, policy=Policy.EAGER)
    memory = gpu.memory.place(gpu.memory.create_heap(TILE_SIZE), 0, TILE_SIZE)
    wrong: list[int] = []

    def submit(place: int) -> None:
        queue = gpu.create_queue(QueueKind.DIRECT)
        for i in range(1, 200):
            writer = PacketWriter()
            for _ in range(20):
                writer.write_immediate([(memory.address + 4 * place, i, 0)])
            ticket = queue.submit([(1, writer.bytes())])
            if not queue.done(ticket) or memory.buffer()[4 * place] != i:
                wrong.append(i)

    threads = [threading.Thread(target=submit, args=(place,)) for place in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MOST)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong
    gpu.close()


def test_a_value_that_is_taken_back_at_once_has_ended_the_waits_of_other_threads(gpu: Gpu) -> None:
    fences = [gpu.create_fence() for _ in range(2)]
    waits: list[Callable[[], object]] = [
        lambda: gpu.wait(fences[0], 5),
        lambda: gpu.wait_for([(fence, 5) for fence in fences], all, str),
        lambda: gpu.wait_for([(fence, 5) for fence in fences], any, str),
    ]
    threads = [threading.Thread(target=wait, daemon=True) for wait in waits]
    before = sys.getswitchinterval()
    for thread in threads:
        thread.start()
    while len(fences[0]._queued_waits) < 3:
        time.sleep(0.001)
    sys.setswitchinterval(10)  # none of the threads runs meanwhile
    try:
        for fence in fences:
            fence.signal(5)
            fence.signal(0)
    finally:
        sys.setswitchinterval(before)
    for thread in threads:
        thread.join(MOST)
        assert not thread.is_alive()
    assert not gpu.wait(fences[0], 1, timeout=0.0)
    assert not fences[0]._queued_waits and not fences[1]._queued_waits  # none is left behind


# --- the lock ---


def test_the_lock_is_reentrant_and_knows_its_thread() -> None:
    lock = Lock()
    with lock:
        with lock:
            assert lock.is_mine()
        assert lock.is_mine()
    assert not lock.is_mine()
    with pytest.raises(RuntimeError, match="does not hold the lock"):
        lock.__exit__(None, None, None)
    with pytest.raises(TypeError):
        Lock(1)  # type: ignore[call-arg]


def test_giving_way_lets_all_in_that_wait() -> None:
    lock, entered = Lock(), []

    def enter(number: int) -> None:
        with lock:
            entered.append(number)

    threads = [threading.Thread(target=enter, args=(i,)) for i in range(5)]
    with lock:
        assert not lock.give_way()  # nobody waits
        for thread in threads:
            thread.start()
        while lock.waiting < 5:
            pass
        with lock:
            assert not lock.give_way()  # whoever holds it twice relies on it
        assert not entered
        while lock.waiting:  # within a hundredth of a second each, on a busy machine
            assert lock.give_way() and lock.is_mine()
        assert sorted(entered) == [0, 1, 2, 3, 4]
    for thread in threads:
        thread.join(MOST)
    with lock:
        assert lock.waiting == 0


class Ring(Exception):
    pass


def _ring(_number: int, _frame: FrameType | None) -> None:
    raise Ring


def test_an_exception_while_waiting_leaves_the_lock_to_the_others() -> None:
    lock, held, leave = Lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait(MOST)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(MOST)
    before = signal.signal(signal.SIGALRM, _ring)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    try:
        with pytest.raises(Ring), lock:
            pytest.fail("entered")
        assert not lock.is_mine() and lock.waiting == 0
    finally:
        signal.signal(signal.SIGALRM, before)
    leave.set()
    thread.join(MOST)
    with lock:
        assert lock.is_mine()


def test_exceptions_at_any_moment_leave_the_lock_free_or_held_by_its_thread() -> None:
    """Three threads compete; the main one is interrupted while it enters, leaves and gives way."""
    lock, inside, going, rings, gave = Lock(), [0], [True], 0, 0

    def compete() -> None:
        while going[0]:
            with lock:
                inside[0] += 1
                assert inside[0] == 1
                inside[0] -= 1

    threads = [threading.Thread(target=compete) for _ in range(3)]
    for thread in threads:
        thread.start()
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        while rings < 100 or not gave:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + 0.00001 * (rings % 97))
                while True:
                    with lock:
                        assert lock.is_mine() and inside[0] == 0
                        gave += lock.give_way()
                        assert lock.is_mine() and inside[0] == 0
            except Ring:
                rings += 1
            assert not lock.is_mine()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        going[0] = False
    for thread in threads:
        thread.join(MOST)
        assert not thread.is_alive()
    with lock:
        assert lock.waiting == 0


def test_a_poll_runs_a_piece_of_a_list_and_keeps_the_order(gpu: Gpu) -> None:
    """A list of dispatches of a millisecond and more; another queue's entry waits until it is done."""
    gpu.has_native_threads = True
    work, other = Work(gpu, 1 << 21, 32), gpu.create_queue(QueueKind.COPY)
    fence = gpu.create_fence()
    other.signal(fence, 1)
    polls = 0
    while work.is_running():
        assert fence.value == 0
        gpu.poll()
        polls += 1
    assert polls > 2
    while work.fence.value < 1 or fence.value < 1:
        gpu.poll()


def test_a_poll_runs_a_whole_list_where_all_threads_are_those_of_python(gpu: Gpu) -> None:
    """What a program sees does not depend on how fast this machine is."""
    work = Work(gpu, 1 << 21, 8)
    gpu.poll()
    assert not work.is_running()
