"""Chaos: a program for every mode that only this mode exposes, and that programs which are right stay right."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import ChaosMode, Error, Strictness, d3d12, dml
from dmlemu.reporting import defaults

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "checks"))

from stage import FLOAT32, Stage, States, tensor  # noqa: E402

SEEDS = range(6)
MODES = list(ChaosMode)
ONES = np.ones(64, np.float32)


class Ground(Stage):
    """A device that answers as Windows without the debug layer: nothing but results tells of a mistake."""

    def __init__(self, policy: Any, strictness: Strictness = Strictness.RUNTIME) -> None:
        super().__init__(strictness, policy=policy)

    def read(self, buffer: Any, size: int = 256) -> Any:
        """The bytes of a buffer as FLOAT32, once everything is done."""
        readback = self.host_buffer("readback", size, "READBACK")
        self.list.copy_buffer_region(readback, 0, buffer, 0, size)
        self.run()
        with readback.map() as memory:
            return np.asarray(memory).view(np.float32).copy()

    def put(self, buffer: Any, values: Any, offset: int = 0) -> None:
        """Records a copy of ``values`` into the buffer."""
        data = np.ascontiguousarray(values).tobytes()
        upload = self.host_buffer("upload", len(data))
        with upload.map(0, d3d12.Range(0, 0)) as memory:
            memory[:] = data
        self.list.copy_buffer_region(buffer, offset, upload, 0, len(data))
        self.uploads = [*getattr(self, "uploads", []), upload]

    def transition(self, buffer: Any, before: Any, after: Any) -> None:
        self.list.resource_barrier([d3d12.ResourceBarrier.transition(buffer, before, after)])


# --- one wrong program for each mode; ``fixed`` is what its author should have written ---


def order(policy: Any, fixed: bool) -> Any:
    """Two dispatches, the second reads what the first writes, and there is no barrier between."""
    ground = Ground(policy)
    copy = ground.copy_operator("copy", 64)
    a, b, c = ground.filled("a"), ground.buffer("b"), ground.buffer("c")
    ground.dispatch(copy, [a], [b])
    if fixed:
        ground.barrier(b)
    ground.dispatch(copy, [b], [c])
    ground.transition(c, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    return ground.read(c)


def poison(policy: Any, fixed: bool) -> Any:
    """A sum that starts with memory that was never zeroed."""
    ground = Ground(policy)
    total = ground.buffer("total", flags=d3d12.HeapFlags.CREATE_NOT_ZEROED)
    layout = tensor([64])
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=layout, b_tensor=layout, output_tensor=layout)
    add = ground.compile(desc, "add")
    ground.initialize(add)
    ones, result = ground.buffer("ones"), ground.buffer("result")
    ground.put(ones, ONES)
    if fixed:
        ground.put(total, 0 * ONES)
    ground.run()
    ground.dispatch(add, [total, ones], [result])
    ground.transition(result, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    return ground.read(result)


def placement(policy: Any, fixed: bool) -> Any:
    """An address is put together with ``|``, as if the buffer were aligned to its size."""
    ground = Ground(policy)
    table = ground.buffer("table", 1 << 17)
    start = table.get_gpu_virtual_address()
    target = start + 65536 if fixed else start | 65536
    ground.list.write_buffer_immediate([d3d12.WriteBufferImmediateParameter(target, 0x3F800000)])
    ground.run()
    return ground.read(table, 1 << 17)


def weights(policy: Any, fixed: bool) -> Any:
    """A checkpoint is saved from the persistent resource, where the weights seem to lie as they were bound."""
    ground = Ground(policy)
    owned = dml.TensorFlags.OWNED_BY_DML
    a, b, y = tensor([1, 1, 2, 8]), tensor([1, 1, 8, 8], flags=owned), tensor([1, 1, 2, 8])
    none = dml.MatrixTransform.NONE
    desc = dml.GemmOperatorDesc(
        a_tensor=a, b_tensor=b, output_tensor=y, trans_a=none, trans_b=none, alpha=1.0, beta=0.0
    )
    gemm = ground.compile(desc, "dense")
    bound = ground.filled("weights")
    size = gemm.get_binding_properties().persistent_resource_size
    persistent, x, out = ground.buffer("persistent", size), ground.filled("x", 64), ground.buffer("y", 64)
    initializer = ground.dml.create_operator_initializer([gemm])
    table = ground.table(initializer)
    inputs = [None, dml.BufferBinding(bound), None]
    table.bind_inputs([dml.BufferArrayBinding(inputs)])
    table.bind_outputs([dml.BufferBinding(persistent)])
    ground.recorder.record_dispatch(ground.list, initializer, table)
    ground.barrier()
    table = ground.table(gemm)
    table.bind_inputs([dml.BufferBinding(x), None, None])
    table.bind_outputs([dml.BufferBinding(out)])
    table.bind_persistent_resource(dml.BufferBinding(persistent))
    ground.recorder.record_dispatch(ground.list, gemm, table)
    saved = bound if fixed else persistent
    ground.transition(saved, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    ground.transition(out, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    ground.run()
    return np.concatenate([ground.read(out, 64), ground.read(saved)])


def visibility(policy: Any, fixed: bool) -> Any:
    """Mapped memory is written after ExecuteCommandLists; a queue wait keeps the GPU from running before."""
    ground = Ground(policy)
    upload, target = ground.host_buffer("upload"), ground.buffer("target")
    memory = upload.map(0, d3d12.Range(0, 0))
    gate = ground.device.create_fence()
    ground.queue.wait(gate, 1)
    ground.list.copy_buffer_region(target, 0, upload, 0, 256)
    if fixed:
        memory[:] = ONES.tobytes()
    ground.submit()
    memory[:] = ONES.tobytes()
    gate.signal(1)
    ground.wait()
    upload.unmap()
    return ground.read(target)


def padding(policy: Any, fixed: bool) -> Any:
    """A number of the program's own stands in the bytes that round up the size of an output."""
    ground = Ground(policy)
    layout = tensor([3], total_tensor_size_in_bytes=16)
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor([3]), output_tensor=layout)
    copy = ground.compile(desc, "copy")
    ground.initialize(copy)
    source, target, own = ground.filled("source", 16), ground.buffer("target", 16), ground.buffer("own", 16)
    ground.put(own if fixed else target, np.float32([7]), offset=12)
    ground.run()
    ground.dispatch(copy, [dml.BufferBinding(source, 0, 16)], [target])
    ground.transition(target, States.UNORDERED_ACCESS, States.COPY_SOURCE)
    ground.run()
    number = ground.read(own if fixed else target, 16)[3]
    return np.append(ground.read(target, 16)[:3], number)


PROGRAMS: dict[ChaosMode, Callable[[Any, bool], Any]] = {
    ChaosMode.ORDER: order,
    ChaosMode.POISON: poison,
    ChaosMode.PLACEMENT: placement,
    ChaosMode.WEIGHTS: weights,
    ChaosMode.VISIBILITY: visibility,
    ChaosMode.PADDING: padding,
}


def expected_of(mode: ChaosMode) -> Any:
    return PROGRAMS[mode](d3d12.Policy.LAZY, True)


def outcomes(
    mode: ChaosMode, fixed: bool, modes: Iterable[ChaosMode], seeds: Iterable[int] = SEEDS
) -> list[bool]:
    """For each seed: is the result right?"""
    expected = expected_of(mode)
    chosen = list(modes)
    results = [PROGRAMS[mode](dmlemu.chaos(seed, chosen), fixed) for seed in seeds]
    return [np.array_equal(result, expected) for result in results]


@pytest.mark.parametrize("mode", MODES)
class TestModes:
    def test_the_program_seems_right(self, mode: ChaosMode) -> None:
        assert np.array_equal(PROGRAMS[mode](d3d12.Policy.LAZY, False), expected_of(mode))

    def test_its_mode_exposes_it(self, mode: ChaosMode) -> None:
        assert not all(outcomes(mode, False, [mode]))

    def test_no_other_mode_does(self, mode: ChaosMode) -> None:
        others = [other for other in MODES if other is not mode]
        assert all(outcomes(mode, False, others))
        for other in others:
            assert all(outcomes(mode, False, [other], [0, 1])), other

    def test_once_fixed_it_is_right_in_all_modes(self, mode: ChaosMode) -> None:
        assert all(outcomes(mode, True, MODES))

    def test_one_seed_repeats_bit_by_bit(self, mode: ChaosMode) -> None:
        for seed in SEEDS:
            first, second = (PROGRAMS[mode](dmlemu.chaos(seed), False) for _ in range(2))
            assert first.tobytes() == second.tobytes()
