"""What the host may do to a GPU at any moment: interrupt it, run out of time, fork."""

from __future__ import annotations

import gc
import itertools
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from dmlemu_hw import kernels, packets, signals
from dmlemu_hw.allocation import Allocation, Heap
from dmlemu_hw.descriptors import DESCRIPTOR_RAW, Descriptor, DescriptorHeap, DescriptorKind
from dmlemu_hw.events import Allocated, Freed
from dmlemu_hw.faults import FaultKind, ForeignProcess
from dmlemu_hw.fence import Fence
from dmlemu_hw.gpu import Gpu, QueueKind
from dmlemu_hw.kernels import lib
from dmlemu_hw.packets import PacketWriter
from dmlemu_hw.storage import TILE_SIZE


class Alarm(Exception):
    pass


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raises Alarm in the main thread, once."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def data(gpu: Gpu, size: int) -> Allocation:
    return gpu.memory.place(gpu.memory.create_heap(size), 0, size)


def long_copy(gpu: Gpu) -> tuple[bytes, DescriptorHeap, Allocation]:
    """A dispatch that would take minutes: 2^40 elements, all in one place."""
    memory = data(gpu, 8)
    heap = gpu.descriptors.create_heap(2, True)
    for i in range(2):
        view = Descriptor(DescriptorKind.UAV, DESCRIPTOR_RAW, 0, 39, memory.address + 4 * i, 4)
        gpu.descriptors.write(heap.cpu_start + 32 * i, view)
    tensors = [packets.tensor(slot, 3, 1, (1 << 20, 1 << 20), (0, 0), 4) for slot in range(2)]
    writer = PacketWriter()
    writer.dispatch(kernels.number("copy"), heap.gpu_start, tensors, b"", 0)
    return writer.bytes(), heap, memory


def test_an_exception_ends_a_kernel_and_removes_the_gpu(gpu: Gpu) -> None:
    packet, *_keep = long_copy(gpu)
    queue, fence = gpu.create_queue(QueueKind.DIRECT, "main"), gpu.create_fence()
    queue.submit([(7, packet)])
    queue.signal(fence, 1)
    begin = time.monotonic()
    with alarm(0.05), pytest.raises(Alarm):
        gpu.wait(fence, 1)
    assert time.monotonic() - begin < 3
    assert gpu.fault is not None and gpu.fault.kind is FaultKind.STOPPED
    assert "The dispatch of kernel 'copy' was interrupted by the host" in gpu.fault.message
    assert (gpu.fault.queue, gpu.fault.list_serial, gpu.fault.command) == ("main", 7, 0)
    assert fence.value == 2**64 - 1


def test_a_long_kernel_and_a_wait_let_signals_in(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a host that blocks them: more than once, and before the end."""
    packet, *_keep = long_copy(gpu)
    queue, fence = gpu.create_queue(QueueKind.DIRECT, "main"), gpu.create_fence()
    looks = []

    def look() -> None:
        looks.append(gpu.queues[0].pending)
        if len(looks) % 2 == 0:
            raise Alarm

    monkeypatch.setattr(signals, "let_in", look)
    gpu.has_native_threads = True
    with pytest.raises(Alarm):
        gpu.wait(fence, 1)
    queue.submit([(7, packet)])
    queue.signal(fence, 1)
    with pytest.raises(Alarm):
        gpu.wait(fence, 1)
    assert len(looks) == 4


def test_a_signal_whose_handler_returns_does_not_end_a_kernel(gpu: Gpu) -> None:
    packet, *_keep = long_copy(gpu)
    queue, rings = gpu.create_queue(QueueKind.DIRECT), []

    def ring(_number: int, _frame: FrameType | None) -> None:
        rings.append(1)
        if len(rings) == 3:
            raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.15)
    try:
        queue.submit([(1, packet)])
        with pytest.raises(Alarm):
            gpu.drain()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(rings) >= 3  # one more may be on its way


def test_waiting_with_a_timeout_stops_inside_a_list_and_goes_on_there(gpu: Gpu) -> None:
    memory = data(gpu, 32 << 20)
    log = data(gpu, 8)
    writer = PacketWriter()
    for i in range(64):
        for _ in range(8):
            writer.copy_buffer(memory.address, memory.address + (16 << 20), 16 << 20)
        writer.write_immediate([(log.address, i + 1, 0)])
    queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
    queue.submit([(1, writer.bytes())])
    queue.signal(fence, 1)
    assert not gpu.wait(fence, 1, 0.02)
    assert queue.completed == 0
    assert log.buffer()[0] < 64
    before = gpu.clock.now
    assert gpu.wait(fence, 1, 60)
    assert log.buffer()[0] == 64
    assert gpu.clock.now > before


@pytest.mark.parametrize("timeout", [float("nan"), -1.0, 0.0])
def test_timeouts_that_are_over_at_once(gpu: Gpu, timeout: float) -> None:
    assert not gpu.wait(gpu.create_fence(), 1, timeout)


@pytest.mark.parametrize("size", [float("nan"), 4096.0, "4096", None])
def test_sizes_that_are_no_integers_change_nothing(gpu: Gpu, size: object) -> None:
    heap = gpu.memory.create_heap(64)
    used = gpu.memory.used
    for call in (
        lambda: gpu.memory.create_heap(size),  # type: ignore[arg-type]
        lambda: gpu.memory.reserve(size),  # type: ignore[arg-type]
        lambda: gpu.memory.place(heap, 0, size),  # type: ignore[arg-type]
        lambda: gpu.memory.place(heap, size, 1),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            call()
    assert gpu.memory.used == used
    first, second = gpu.memory.reserve(64), gpu.memory.place(heap, 0, 64)
    assert second.address - first.address == 2 * TILE_SIZE


def test_what_nobody_holds_is_given_up(gpu: Gpu) -> None:
    before = gpu.memory.used
    gpu.memory.create_heap(TILE_SIZE)
    data(gpu, TILE_SIZE)
    gpu.descriptors.create_heap(4, True)
    gc.collect()
    assert gpu.memory.used == before


def rush(gpu: Gpu, held: list[object]) -> None:
    """Every kind of change of the GPU's state.  What its work needs is in ``held``."""
    memory = data(gpu, 2 * TILE_SIZE)
    held.append(memory)
    reserved = gpu.memory.reserve(2 * TILE_SIZE)
    held.append(reserved)
    queue, fence = gpu.create_queue(QueueKind.DIRECT), gpu.create_fence()
    held.append(fence)
    assert memory.heap is not None
    queue.map_tiles(reserved, [(0, 1, memory.heap, 1, False)])
    writer = PacketWriter()
    writer.write_immediate([(reserved.address, 1, 0)])
    queue.wait(fence, 1)
    queue.submit([(1, writer.bytes())])
    queue.signal(fence, 2)
    fence.signal(1)
    gpu.wait(fence, 2)
    assert memory.buffer()[TILE_SIZE] == 1
    queue.close()


@contextmanager
def exception_at(moment: int) -> Iterator[list[bool]]:
    """Raises Alarm at that moment of the block, and catches it; the list is empty if the block ended before.

    The moments are those at which Python runs the handlers of signals: functions begin, C functions have
    returned.
    """
    is_raised: list[bool] = []

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        nonlocal moment
        if "dmlemu_hw" in frame.f_code.co_filename and event in ("call", "c_return"):
            moment -= 1
            if moment == 0:
                is_raised.append(True)
                raise Alarm

    sys.setprofile(profile)
    try:
        yield is_raised
    except Alarm:
        pass
    finally:
        sys.setprofile(None)


def test_exceptions_at_any_moment_leave_the_gpu_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """For many n, the n-th place where the handler of a signal could raise does."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # what is raised in finalizers goes nowhere
    gpu = Gpu(name="test", memory_bytes=64 << 20)
    kept = data(gpu, 64)
    gpu.create_fence()  # its page stays
    gc.collect()
    used, mappings, seed = gpu.memory.used, lib.dmlk_count_mappings(), random.Random(1)
    segments, count = gpu.memory.segments()
    live = [segments[i].address for i in range(count) if segments[i].size]
    for _ in range(400):
        held: list[object] = []
        with exception_at(seed.randrange(1, 1200)):
            rush(gpu, held)
        assert not gpu._lock.is_mine()
        while held:  # work that was queued needs it until it is done
            fence = held[-1]
            if isinstance(fence, Fence):
                fence.signal(1)
            gpu.drain()
            del held[-1], fence
        assert gpu.fault is None
        assert gpu.memory.find(kept.address) is kept
        rush(gpu, [])
        for queue in gpu.queues:
            queue.close()
    gc.collect()
    assert gpu.memory.used == used
    assert lib.dmlk_count_mappings() == mappings
    segments, count = gpu.memory.segments()
    assert [segments[i].address for i in range(count) if segments[i].size] == live
    done: list[bool] = []
    other = threading.Thread(target=lambda: (rush(gpu, []), done.append(True)), daemon=True)
    other.start()
    other.join(10)
    assert done
    gpu.close()


def change_heap(gpu: Gpu, held: list[object]) -> None:
    heap = gpu.memory.create_heap(TILE_SIZE, poison=True)
    held.append(heap)
    heap.close()


def change_placed(gpu: Gpu, held: list[object]) -> None:
    heap = gpu.memory.create_heap(TILE_SIZE, mappable=False)
    allocation = gpu.memory.place(heap, 0, 64)
    heap.close()
    del allocation


def change_tiles(gpu: Gpu, held: list[object]) -> None:
    heap, reserved = gpu.memory.create_heap(2 * TILE_SIZE), gpu.memory.reserve(4 * TILE_SIZE)
    held.append(reserved)  # tiles of an interrupted mapping are mapped again by the test
    gpu.memory.map_tiles(reserved, 0, 3, heap, 1, reuse=True)
    gpu.memory.map_tiles(reserved, 2, 2, heap, 0)
    gpu.memory.map_tiles(reserved, 1, 2, None, 0)


def change_table(gpu: Gpu, held: list[object]) -> None:
    """The table of addresses grows and is compacted."""
    allocations = [gpu.memory.reserve(1) for _ in range(70)]
    while allocations:
        allocations.pop()


@pytest.mark.parametrize("change", [change_heap, change_placed, change_tiles, change_table])
def test_an_exception_at_each_moment_of_a_change(
    change: Callable[[Gpu, list[object]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each place where the handler of a signal could raise, it does."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    gpu = Gpu(name="test", memory_bytes=64 << 20)
    live: set[int] = set()
    gpu.events.subscribe(lambda event: live.add(event.serial), Allocated)
    gpu.events.subscribe(lambda event: live.discard(event.serial), Freed)
    kept = data(gpu, 64)
    gc.collect()  # mappings that other tests have left
    before = (gpu.memory.used, lib.dmlk_count_mappings(), len(live))
    moments = itertools.count(1) if change is not change_table else itertools.count(1, 29)
    for moment in moments:
        held: list[object] = []
        with exception_at(moment) as is_raised:
            change(gpu, held)
        assert not gpu.lock.is_mine()
        for each in held:
            if isinstance(each, Allocation):
                gpu.memory.map_tiles(each, 0, 4, None, 0)
                assert gpu.memory.has_null_tiles
            else:
                assert isinstance(each, Heap)
                each.close()
                assert gpu.memory.used == before[0]
            del each
        held.clear()
        gc.collect(0)
        gpu.memory.free_closed()
        assert (gpu.memory.used, lib.dmlk_count_mappings(), len(live)) == before
        assert not gpu.memory.has_null_tiles
        segments, count = gpu.memory.segments()
        assert [segments[i].address for i in range(count) if segments[i].size] == [kept.address]
        assert gpu.memory.find(kept.address + 63) is kept
        assert (gpu.memory.find(kept.address + TILE_SIZE)) is None
        after = data(gpu, 64)
        assert gpu.memory.find(after.address) is after
        del after
        if not is_raised:
            break
    assert moment > 50


class TestCallbacks:
    def test_a_chain_of_signals_does_not_recurse(self, gpu: Gpu) -> None:
        fence, calls = gpu.create_fence(), []

        def again() -> None:
            calls.append(fence.value)
            if len(calls) < 5000:
                fence.on_value(len(calls) + 1, again)
                fence.signal(len(calls) + 1)

        fence.on_value(1, again)
        fence.signal(1)
        assert calls == list(range(1, 5001))

    def test_registering_for_what_is_reached_does_not_recurse(self, gpu: Gpu) -> None:
        fence, calls = gpu.create_fence(1), []

        def again() -> None:
            calls.append(1)
            if len(calls) < 5000:
                fence.on_value(1, again)

        fence.on_value(1, again)
        assert len(calls) == 5000

    def test_one_that_raises_does_not_keep_others_from_being_called(self, gpu: Gpu) -> None:
        fence, calls = gpu.create_fence(), []

        def bad() -> None:
            raise ZeroDivisionError

        fence.on_value(1, bad)
        fence.on_value(1, lambda: calls.append(1))
        with pytest.raises(ZeroDivisionError):
            fence.signal(1)
        assert (calls, fence.value) == ([1], 1)
        fence.signal(2)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that is what is tested
def test_a_forked_process_is_refused(gpu: Gpu) -> None:
    heap, fence, queue = gpu.memory.create_heap(64), gpu.create_fence(3), gpu.create_queue(QueueKind.DIRECT)
    calls = (
        lambda: gpu.memory.create_heap(64),
        lambda: gpu.memory.reserve(64),
        lambda: gpu.memory.place(heap, 0, 64),
        lambda: gpu.create_fence(),
        lambda: fence.signal(4),
        lambda: fence.on_value(4, int),
        lambda: queue.signal(fence, 4),
        lambda: queue.submit([(1, b"")]),
        lambda: gpu.create_queue(QueueKind.DIRECT),
        gpu.step,
        lambda: gpu.wait(fence, 4, 0.01),
    )
    child = os.fork()
    if child == 0:
        refused = 0
        for call in calls:
            try:
                call()  # type: ignore[no-untyped-call]
            except ForeignProcess as error:
                refused += str(os.getpid()) in str(error)
        fence.close()  # gives up what this process holds, and nothing else
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(calls)
    assert fence.value == 3
