"""KeyboardInterrupt at random moments of public calls; afterwards everything is usable and nothing is lost.

``python tests/fuzz/fuzz_interrupts.py --seconds 20 --seed 1``: exits with 1 and prints the seed on failure.

Python runs the handlers of signals where functions begin and where C functions have returned: there, inside
of dmlemu, a profiler raises.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.d3d12 import (
    CommandListType,
    HeapDesc,
    HeapFlags,
    HeapProperties,
    HeapType,
    ResourceDesc,
    ResourceStates,
)
from dmlemu_hw.kernels import lib

WIDTH = 256
TILE = 65536
FOUR = np.arange(4, dtype=np.float32).reshape(1, 1, 1, 4)
TENSOR = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 1, 4])
ADD = dml.ElementWiseAddOperatorDesc(a_tensor=TENSOR, b_tensor=TENSOR, output_tensor=TENSOR)
INSIDE = (os.path.dirname(dmlemu.__file__) + os.sep, os.sep + "dmlemu_hw" + os.sep)


class Countdown:
    """Raises KeyboardInterrupt at the ``left``-th moment from now on; ``place`` is where."""

    def __init__(self, left: int) -> None:
        self.left = left
        self.place = ""

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if event not in ("call", "c_return") or not any(part in frame.f_code.co_filename for part in INSIDE):
            return
        self.left -= 1
        if self.left == 0:
            self.place = f"{event} in {frame.f_code.co_filename}:{frame.f_lineno}"
            raise KeyboardInterrupt


@contextmanager
def interrupted(countdown: Countdown) -> Iterator[None]:
    """The block may end early."""
    sys.setprofile(countdown)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)


class World:
    """A device, objects that outlive every interrupt, and what is done with them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.device = d3d12.create_device(d3d12.Adapter(dedicated_memory=64 << 20))
        self.dml = dml.create_device(self.device)
        self.queue = self.device.create_command_queue()
        self.fence = self.device.create_fence()
        self.value = 0
        self.allocator = self.device.create_command_allocator(CommandListType.DIRECT)
        self.list = self.device.create_command_list(0, CommandListType.DIRECT, self.allocator)
        self.list.close()
        self.upload = self.buffer(HeapType.UPLOAD)
        self.middle = self.buffer(HeapType.DEFAULT)
        self.readback = self.buffer(HeapType.READBACK)
        self.reserved = self.device.create_reserved_resource(
            ResourceDesc.buffer(4 * TILE), ResourceStates.COMMON
        )
        self.tiles = self.device.create_heap(HeapDesc(4 * TILE))
        self.steps: list[Callable[[], object]] = [
            self.round_trip,
            self.evaluate,
            self.evaluate_alone,
            self.create_and_release,
            self.create_and_drop,
            self.map_tiles,
            self.new_device,
        ]
        self.lengths = dict.fromkeys(self.steps, 0)  # how many moments each has

    def buffer(self, kind: HeapType) -> d3d12.Resource:
        states = {
            HeapType.UPLOAD: ResourceStates.GENERIC_READ,
            HeapType.READBACK: ResourceStates.COPY_DEST,
            HeapType.DEFAULT: ResourceStates.COMMON,
        }
        desc = ResourceDesc.buffer(WIDTH)
        return self.device.create_committed_resource(HeapProperties(kind), HeapFlags.NONE, desc, states[kind])

    # --- what is interrupted ---

    def round_trip(self) -> None:
        """Upload, two copies, readback."""
        data = np.frombuffer(self.random.randbytes(WIDTH), np.uint8)
        with self.upload.map(0, d3d12.Range(0, 0)) as memory:
            memory.view()[:] = data
        self.allocator.reset()
        self.list.reset(self.allocator)
        self.list.copy_buffer_region(self.middle, 0, self.upload, 0, WIDTH)
        states = ResourceStates.COPY_DEST, ResourceStates.COPY_SOURCE
        self.list.resource_barrier([d3d12.ResourceBarrier.transition(self.middle, *states)])
        self.list.copy_buffer_region(self.readback, 0, self.middle, 0, WIDTH)
        self.list.close()
        self.queue.execute_command_lists([self.list])
        self.finish()
        with self.readback.map() as memory:
            assert np.array_equal(memory.view(), data)

    def finish(self) -> None:
        self.value += 1
        self.queue.signal(self.fence, self.value)
        self.fence.wait(self.value)

    def evaluate(self) -> None:
        result = dmlemu.evaluate(ADD, device=self.dml, a_tensor=FOUR, b_tensor=FOUR)
        assert result["output_tensor"].tolist() == (2 * FOUR).tolist()

    def evaluate_alone(self) -> None:
        result = dmlemu.evaluate(ADD, a_tensor=FOUR, b_tensor=FOUR)
        assert result["output_tensor"].tolist() == (2 * FOUR).tolist()

    def make(self) -> list[Any]:
        heap = self.device.create_heap(HeapDesc(TILE))
        return [
            heap,
            self.device.create_placed_resource(heap, 0, ResourceDesc.buffer(WIDTH), ResourceStates.COMMON),
            self.buffer(HeapType.DEFAULT),
            self.device.create_reserved_resource(ResourceDesc.buffer(2 * TILE), ResourceStates.COMMON),
            self.device.create_descriptor_heap(d3d12.DescriptorHeapDesc(num_descriptors=4)),
            self.device.create_query_heap(d3d12.QueryHeapDesc(count=2)),
            self.device.create_command_queue(),
            self.device.create_fence(),
        ]

    def create_and_release(self) -> None:
        for each in reversed(self.make()):
            each.release()

    def create_and_drop(self) -> None:
        self.make()

    def map_tiles(self) -> None:
        self.queue.update_tile_mappings(self.reserved, None, None, self.tiles)
        self.finish()

    def new_device(self) -> None:
        d3d12.create_device(d3d12.Adapter(dedicated_memory=1 << 20)).release()

    # --- what must hold ---

    def settle(self) -> None:
        """What a program does that goes on after Ctrl-C."""
        self.finish()
        if self.list.is_open:
            self.list.close()
        for buffer in (self.upload, self.readback):
            while buffer.map_count:
                buffer.unmap()

    def check(self) -> None:
        assert not self.device.context.gpu.lock.is_mine()
        assert self.device.get_device_removed_reason() == 0, self.device.removal_record
        self.settle()
        for step in self.steps:
            step()

    def holdings(self) -> tuple[int, int, int, int]:
        """Open files, mappings of the host, bytes in use, queues."""
        for _ in range(3):
            gc.collect()
        gpu = self.device.context.gpu
        self.finish()
        files, used = len(os.listdir("/proc/self/fd")), gpu.memory.used
        return files, lib.dmlk_count_mappings(), used, len(gpu.queues)

    def step(self) -> str:
        """One interrupted step; returns what it was."""
        step = self.random.choice(self.steps)
        if not self.lengths[step]:
            countdown = Countdown(-1)
            with interrupted(countdown):
                step()
            self.lengths[step] = -1 - countdown.left
        countdown = Countdown(self.random.randint(1, self.lengths[step]))
        with interrupted(countdown):
            step()
        return f"{step.__name__}, {countdown.place}"


def fuzz(seconds: float, seed: int) -> int:
    """The number of interrupts.  AssertionError or whatever a call raises: something is broken."""
    sys.unraisablehook = lambda _: None  # what is raised in finalizers goes nowhere
    end, count = time.monotonic() + seconds, 0
    world = World(seed)
    world.check()
    world.check()
    before = world.holdings()
    last: list[str] = []
    try:
        while time.monotonic() < end:
            for _ in range(10):
                last = [*last[-9:], world.step()]
                count += 1
                world.settle()
            world.check()
            now = world.holdings()
            # Checks that start anew may have fewer mappings for a while.
            assert all(a <= b for a, b in zip(now, before, strict=True)), (now, before)
    except BaseException:
        print("The last interrupts:", *last, sep="\n  ", file=sys.stderr)
        raise
    return count


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=None)
    arguments = parser.parse_args()
    seed = random.randrange(1 << 32) if arguments.seed is None else arguments.seed
    try:
        count = fuzz(arguments.seconds, seed)
    except BaseException:
        traceback.print_exc()
        print(f"fuzz_interrupts failed: --seed {seed} repeats it", file=sys.stderr)
        return 1
    print(f"fuzz_interrupts: {count} interrupts, seed {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
