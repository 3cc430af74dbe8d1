"""Threads that do everything at once on one device; right programs stay right, and nobody waits for ever.

``python tests/fuzz/fuzz_threads.py --seconds 20 --seed 1``: exits with 1 and prints the seed on failure.  The
seed draws what each thread does; when it does it, the machine decides.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import queue as queues
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import dmlemu
from dmlemu import Session, Strictness, d3d12, dml
from dmlemu.d3d12 import (
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    MultipleFenceWaitFlags,
    ResourceDesc,
    ResourceFlags,
    ResourceStates,
)

THREADS = 5
TILE = 65536
COUNT = 1024  # FLOAT32 elements of a buffer
MOST = 60.0  # seconds; nothing takes that long unless it hangs
TENSOR = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [COUNT])
IDENTITY = dml.ElementWiseIdentityOperatorDesc(
    input_tensor=TENSOR, output_tensor=TENSOR, scale_bias=dml.ScaleBias(1.0, 1.0)
)


class Shared:
    """What all threads use: the device, queues, an operator, buffers, and what they hand to each other."""

    def __init__(self, seed: int, policy: str, strictness: Strictness) -> None:
        chosen = dmlemu.chaos(seed) if policy == "chaos" else d3d12.Policy(policy)
        adapter = d3d12.Adapter(dedicated_memory=256 << 20, policy=chosen)
        self.device = d3d12.create_device(adapter, strictness=strictness)
        self.dml = dml.create_device(self.device)
        self.session = Session(self.dml)  # used under the mutex
        self.mutex = threading.Lock()
        self.queues = [self.session.queue] + [
            self.device.create_command_queue(self.session.queue.get_desc()) for _ in range(2)
        ]
        self.operator = self.session.compile(IDENTITY, "identity")
        self.session.initialize(self.operator)
        self.session.run()
        self.wanted: queues.SimpleQueue[tuple[d3d12.Fence, int]] = queues.SimpleQueue()
        self.upload = self.session.buffer("shared", 4 * COUNT, HeapType.UPLOAD)
        self.handed: queues.SimpleQueue[Any] = queues.SimpleQueue()
        self.end = 0.0

    def serve(self) -> None:
        """Signals what another thread waits for."""
        try:
            fence, value = self.wanted.get_nowait()
        except queues.Empty:
            return
        fence.signal(value)


class Worker:
    """A thread with objects of its own."""

    def __init__(self, shared: Shared, seed: int) -> None:
        self.shared, self.random = shared, random.Random(seed)
        self.device = shared.device
        self.session = Session(shared.dml, descriptors=256)
        self.other = self.device.create_fence()
        self.steps = 0
        self.problems: list[str] = []
        self.doing = ""
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        choices: list[Callable[[], object]] = [
            *([self.round_trip] * 4),
            self.churn,
            self.churn,
            self.hand_over,
            self.take_over,
            self.shared_list,
            self.residency,
            self.map_shared,
            self.tiles,
            self.ask,
            self.shared.serve,
        ]
        try:
            while time.monotonic() < self.shared.end and not self.problems:
                step = self.random.choice(choices)
                self.doing = step.__name__
                step()
                self.steps += 1
        except Exception:
            self.problems.append(f"in {self.doing}:\n{traceback.format_exc()}")
        finally:
            while not self.shared.wanted.empty():
                self.shared.serve()

    # --- steps ---

    def round_trip(self) -> None:
        """Uploads, runs the operator a few times, and reads back."""
        session, times = self.session, self.random.randint(1, 30)
        session.queue = self.random.choice(self.shared.queues)
        values = np.full(COUNT, self.random.randint(0, 999), np.float32)
        with (
            session._upload_buffer("values", values) as source,
            session._buffer("back", 4 * COUNT, HeapType.READBACK) as back,
        ):
            both = [session._buffer(name, 4 * COUNT, HeapType.DEFAULT) for name in ("a", "b")]
            session.list.copy_buffer_region(both[0], 0, source, 0, 4 * COUNT)
            session.transition(ResourceStates.COPY_DEST, ResourceStates.UNORDERED_ACCESS, both[0])
            session.descriptors_used = 0
            for i in range(times):
                table = session.bind(self.shared.operator, [both[i % 2]], [both[(i + 1) % 2]])
                session.recorder.record_dispatch(session.list, self.shared.operator, table)
                session.barrier()
            last = both[times % 2]
            session.transition(ResourceStates.UNORDERED_ACCESS, ResourceStates.COPY_SOURCE, last)
            session.list.copy_buffer_region(back, 0, last, 0, 4 * COUNT)
            self.finish()
            found = session._read_mapped(back, np.dtype(np.float32), COUNT, 0)
            for each in both:
                each.release()
        if not np.array_equal(found, values + times):
            self.problems.append(f"round trip of {times}: {found[0]} instead of {values[0] + times}")

    def finish(self) -> None:
        """Executes the session's list and waits in some way."""
        session = self.session
        session.submit()
        self.random.choice([self._wait, self._event, self._eventfd, self._poll, self._look, self._several])(
            session.fence, session.fence_value
        )
        session.wait()

    @staticmethod
    def _wait(fence: d3d12.Fence, value: int) -> None:
        fence.set_event_on_completion(value)

    @staticmethod
    def _event(fence: d3d12.Fence, value: int) -> None:
        event = threading.Event()
        fence.set_event_on_completion(value, event)
        assert event.wait(MOST), "the event was not set"
        assert fence.get_completed_value() >= value

    @staticmethod
    def _eventfd(fence: d3d12.Fence, value: int) -> None:
        if not hasattr(os, "eventfd"):
            return
        event = os.eventfd(0)
        try:
            fence.set_event_on_completion(value, event)
            assert os.eventfd_read(event) == 1
        finally:
            os.close(event)
        assert fence.get_completed_value() >= value

    @staticmethod
    def _poll(fence: d3d12.Fence, value: int) -> None:
        while fence.get_completed_value() < value:
            pass

    @staticmethod
    def _look(fence: d3d12.Fence, value: int) -> None:
        while not fence.wait(value, timeout=0.0005):
            pass

    def _several(self, fence: d3d12.Fence, value: int) -> None:
        """This fence, and one that only the CPU signals."""
        flags = self.random.choice(list(MultipleFenceWaitFlags))
        next_value = self.other.get_completed_value() + 1
        event = self.random.choice([None, threading.Event()])
        if flags == MultipleFenceWaitFlags.ALL:
            self.other.signal(next_value)
        fences, values = [fence, self.other], [value, next_value]
        self.device.set_event_on_multiple_fence_completion(fences, values, flags, event)
        if event is not None:
            assert event.wait(MOST), "the event was not set"
        assert fence.get_completed_value() >= value

    def churn(self) -> None:
        """Creates objects and releases them."""
        device = self.device
        heap = device.create_heap(HeapDesc(2 * TILE))
        desc = ResourceDesc.buffer(TILE, ResourceFlags.ALLOW_UNORDERED_ACCESS)
        made: list[Any] = [
            heap,
            device.create_placed_resource(heap, TILE, desc, ResourceStates.COMMON),
            device.create_committed_resource(HeapProperties(), HeapFlags.NONE, desc, ResourceStates.COMMON),
            device.create_reserved_resource(ResourceDesc.buffer(2 * TILE), ResourceStates.COMMON),
            device.create_descriptor_heap(d3d12.DescriptorHeapDesc(num_descriptors=4)),
            device.create_query_heap(d3d12.QueryHeapDesc(count=2)),
            device.create_command_queue(),
            device.create_fence(),
            self.shared.dml.create_operator(IDENTITY),
        ]
        made[-2].signal(3)
        made[-3].signal(made[-2], 4)
        made[-2].wait(4)
        made[2].set_name("churned")
        for each in reversed(made):
            if self.random.random() < 0.8:
                each.release()

    def hand_over(self) -> None:
        """Makes a buffer with an upload that is still queued; another thread waits for it."""
        session = self.session
        buffer = session._buffer("handed", 4 * COUNT, HeapType.DEFAULT)
        value = self.random.randint(0, 999)
        with session._upload_buffer("handed, upload", np.full(COUNT, value, np.float32)) as source:
            session.list.copy_buffer_region(buffer, 0, source, 0, 4 * COUNT)
            session.submit()
            self.shared.handed.put((buffer, value, session.fence, session.fence_value))
            session.wait()

    def take_over(self) -> None:
        try:
            buffer, value, fence, awaited = self.shared.handed.get_nowait()
        except queues.Empty:
            return
        session = self.session
        session.queue.wait(fence, awaited)
        found = session.read(buffer, np.float32)
        fence.wait(awaited)
        buffer.release()
        if not (found == value).all():
            self.problems.append(f"handed over: {found[0]} instead of {value}")

    def shared_list(self) -> None:
        """A list and an allocator that one thread made and all use, under a mutex."""
        with self.shared.mutex:
            session = self.shared.session
            session.list.set_marker(0, b"by a thread")
            session.run()

    def residency(self) -> None:
        buffer = self.session._buffer("evicted", TILE, HeapType.DEFAULT)
        self.device.evict([buffer])
        self.device.make_resident([buffer])
        self.session.queue = self.random.choice(self.shared.queues)
        self.session.list.set_marker(0, b"between")
        self.finish()
        self.device.evict([buffer])
        buffer.release()

    def map_shared(self) -> None:
        self.shared.upload.map(0, d3d12.Range(0, 0)).view(np.float32)[0] = 1
        self.shared.upload.unmap()

    def tiles(self) -> None:
        """Maps tiles of a reserved buffer, copies through it, and unmaps them."""
        session = self.session
        session.queue = self.random.choice(self.shared.queues)
        heap = self.device.create_heap(HeapDesc(2 * TILE, flags=HeapFlags.ALLOW_ONLY_BUFFERS))
        buffer = self.device.create_reserved_resource(ResourceDesc.buffer(2 * TILE), ResourceStates.COMMON)
        session.queue.update_tile_mappings(buffer, None, None, heap)
        values = np.full(COUNT, self.random.randint(0, 999), np.float32)
        with (
            session._upload_buffer("for tiles", values) as source,
            session._buffer("back", 4 * COUNT, HeapType.READBACK) as back,
        ):
            session.list.copy_buffer_region(buffer, TILE, source, 0, 4 * COUNT)
            session.transition(ResourceStates.COPY_DEST, ResourceStates.COPY_SOURCE, buffer)
            session.list.copy_buffer_region(back, 0, buffer, TILE, 4 * COUNT)
            self.finish()
            found = session._read_mapped(back, np.dtype(np.float32), COUNT, 0)
        if not np.array_equal(found, values):
            self.problems.append(f"tiles: {found[0]} instead of {values[0]}")
        buffer.release()
        heap.release()

    def ask(self) -> None:
        """Waits for what another thread signals, while it serves those that ask likewise."""
        fence = self.device.create_fence()
        self.shared.wanted.put((fence, 5))
        while not fence.wait(5, timeout=0.002):
            self.shared.serve()
        fence.release()


def fuzz(seconds: float, seed: int, policy: str, strictness: Strictness) -> int:
    """The number of steps.  AssertionError: a wrong value, an error, a report, or a thread that hangs."""
    faulthandler.dump_traceback_later(seconds + MOST, exit=True)
    shared = Shared(seed, policy, strictness)
    workers = [Worker(shared, 1000 * seed + i) for i in range(THREADS)]
    shared.end = time.monotonic() + seconds
    for worker in workers:
        worker.thread.start()
    for worker in workers:
        worker.thread.join()
    problems = [problem for worker in workers for problem in worker.problems]
    problems += [stored.report.text() for stored in shared.device.reports]
    faulthandler.cancel_dump_traceback_later()
    assert not problems, "\n".join(problems)
    assert shared.device.get_device_removed_reason() is dmlemu.HResult.S_OK
    assert not shared.device.context.gpu.lock.waiting
    return sum(worker.steps for worker in workers)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--policy", choices=["lazy", "eager", "chaos"], action="append")
    parser.add_argument("--strictness", choices=[each.value for each in Strictness], action="append")
    arguments = parser.parse_args()
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    ways = [
        (policy, Strictness(strictness))
        for policy in arguments.policy or ("lazy", "eager", "chaos")
        for strictness in arguments.strictness or ("runtime", "strict")
    ]
    sys.setswitchinterval(1e-4)
    for policy, strictness in ways:
        try:
            count = fuzz(arguments.seconds / len(ways), seed, policy, strictness)
        except BaseException:
            traceback.print_exc()
            again = f"--seed {seed} --policy {policy} --strictness {strictness.value}"
            print(f"fuzz_threads failed: {again} draws the same steps", file=sys.stderr)
            return 1
        print(f"fuzz_threads: {count} steps, {policy}, {strictness.value}, seed {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
