"""Which bytes count as written: never too few, and exactly those where the program leaves no doubt."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dmlemu import Error, Severity, Strictness, d3d12, dml
from dmlemu.checks.analysis.host_writes import _PATTERN
from dmlemu.checks.initialisation import check as initialisation
from dmlemu.checks.initialisation.check import Initialisation
from dmlemu.d3d12 import HeapType, Range, ResourceStates
from thorough import part_of

UAV = d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
NOTHING = Range(0, 0)
COMPUTE = d3d12.CommandListType.COMPUTE
FLOAT32, UINT32, UINT8 = dml.TensorDataType.FLOAT32, dml.TensorDataType.UINT32, dml.TensorDataType.UINT8
STATES = {HeapType.UPLOAD: ResourceStates.GENERIC_READ, HeapType.READBACK: ResourceStates.COPY_DEST}
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


class Ground:
    """A strict device, a list that is always open, and the shadow memory of its check."""

    def __init__(self) -> None:
        self.device = d3d12.create_device(
            d3d12.Adapter(dedicated_memory=1 << 26), strictness=Strictness.STRICT
        )
        self.dml = dml.create_device(self.device)
        self.recorder = self.dml.create_command_recorder()
        self.queue = self.device.create_command_queue(d3d12.CommandQueueDesc(COMPUTE))
        self.allocator = self.device.create_command_allocator(COMPUTE)
        self.list = self.device.create_command_list(0, COMPUTE, self.allocator)
        kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
        visible = d3d12.DescriptorHeapFlags.SHADER_VISIBLE
        self.heap = self.device.create_descriptor_heap(d3d12.DescriptorHeapDesc(kind, 256, visible))
        self.list.set_descriptor_heaps([self.heap])
        self.step = self.device.get_descriptor_handle_increment_size(kind)
        self.descriptors = 0
        self.fence = self.device.create_fence()
        self.value = 0
        self.check = next(each for each in self.device.checks if isinstance(each, Initialisation))

    # --- buffers ---

    def buffer(self, width: int = 256, kind: HeapType = HeapType.DEFAULT, *, zeroed: bool = True) -> Any:
        """A committed buffer."""
        flags = d3d12.HeapFlags.NONE if zeroed else d3d12.HeapFlags.CREATE_NOT_ZEROED
        desc = d3d12.ResourceDesc.buffer(width, UAV if kind == HeapType.DEFAULT else d3d12.ResourceFlags.NONE)
        state = STATES.get(kind, ResourceStates.COMMON)
        return self.device.create_committed_resource(d3d12.HeapProperties(kind), flags, desc, state)

    def placed(self, count: int, width: int = 256, kind: HeapType = HeapType.UPLOAD) -> list[Any]:
        """Buffers over the same bytes."""
        heap = self.device.create_heap(d3d12.HeapDesc(width, d3d12.HeapProperties(kind)))
        desc = d3d12.ResourceDesc.buffer(width, UAV if kind == HeapType.DEFAULT else d3d12.ResourceFlags.NONE)
        state = STATES.get(kind, ResourceStates.COMMON)
        return [self.device.create_placed_resource(heap, 0, desc, state) for _ in range(count)]

    def written(self, buffer: Any) -> set[int]:
        """The bytes of a buffer that count as written."""
        start, width = buffer.get_gpu_virtual_address(), buffer.get_desc().width
        runs = self.check.shadow.written_runs(start, width)
        return {byte - start for begin, end in runs for byte in range(begin, end)}

    # --- running ---

    def submit(self) -> None:
        """Executes the list, and opens it again; the GPU has not run yet."""
        self.list.close()
        self.queue.execute_command_lists([self.list])
        self.value += 1
        self.queue.signal(self.fence, self.value)
        self.list.reset(self.allocator)
        self.list.set_descriptor_heaps([self.heap])

    def run(self) -> None:
        """:meth:`submit`, and waits."""
        self.submit()
        self.fence.wait(self.value)

    def read(self, buffer: Any) -> Bytes:
        """What the GPU sees in a buffer."""
        width = buffer.get_desc().width
        target = self.buffer(width, HeapType.READBACK)
        self.list.copy_buffer_region(target, 0, buffer, 0, width)
        self.run()
        with target.map() as memory:
            return np.frombuffer(bytes(memory[:]), np.uint8)

    def dispatch(self, desc: dml.OperatorDesc, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Runs an operator, with a temporary resource if it needs one."""
        compiled = self.dml.compile_operator(self.dml.create_operator(desc))
        self.dispatch_compiled(compiled, inputs, outputs)

    def dispatch_compiled(self, compiled: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Initialises and runs; returns the temporary resource."""
        initializer = self.dml.create_operator_initializer([compiled])
        self.recorder.record_dispatch(self.list, initializer, self.table(initializer))
        self.run()
        table, size = self.table(compiled), compiled.get_binding_properties().temporary_resource_size
        table.bind_inputs([dml.BufferBinding(each) for each in inputs])
        table.bind_outputs([dml.BufferBinding(each) for each in outputs])
        temporary = self.buffer(size) if size else None
        if temporary is not None:
            table.bind_temporary_resource(dml.BufferBinding(temporary))
        self.recorder.record_dispatch(self.list, compiled, table)
        self.run()
        return temporary

    def table(self, dispatchable: Any) -> Any:
        count = dispatchable.get_binding_properties().required_descriptor_count
        skip, self.descriptors = self.descriptors * self.step, self.descriptors + count
        cpu = self.heap.get_cpu_descriptor_handle_for_heap_start() + skip
        gpu = self.heap.get_gpu_descriptor_handle_for_heap_start() + skip
        return self.dml.create_binding_table(dml.BindingTableDesc(dispatchable, cpu, gpu, count))


@pytest.fixture
def ground() -> Ground:
    return Ground()


def fill(ground: Ground, buffer: Any, data: Bytes | None = None) -> None:
    """Writes a whole buffer by way of an upload."""
    width = buffer.get_desc().width
    source = ground.buffer(width, HeapType.UPLOAD)
    with source.map(0, NOTHING) as memory:
        memory[:] = bytes(np.ones(width, np.uint8) if data is None else data)
    ground.list.copy_buffer_region(buffer, 0, source, 0, width)
    ground.run()


def identity(
    sizes: Sequence[int], strides: Sequence[int] | None, data_type: Any = FLOAT32, **more: Any
) -> Any:
    """Copies a packed tensor to one of these strides."""
    return dml.ElementWiseIdentityOperatorDesc(
        input_tensor=dml.BufferTensorDesc(data_type, sizes),
        output_tensor=dml.BufferTensorDesc(data_type, sizes, strides, **more),
    )


# --- stores of the CPU: exactly right where that is possible ---


class Store:
    """Elements of an array over mapped memory that the CPU stores to."""

    def __init__(self, dtype: str, offset: int, count: int, step: int, content: str, seed: int) -> None:
        self.dtype, self.content, self.seed = np.dtype(dtype), content, seed
        self.offset, self.count, self.step = offset, count, step

    def __repr__(self) -> str:
        return f"{self.dtype}[{self.offset}::{self.step}] * {self.count}, {self.content}"

    def bytes(self, width: int) -> Bytes:
        """The bytes of the buffer that it stores to."""
        elements = self.offset + self.step * np.arange(self.count)
        size = self.dtype.itemsize
        found = (elements[:, None] * size + np.arange(size)).ravel()
        return found[found < width // size * size]

    def data(self, at: Bytes) -> Bytes:
        """What it stores there: also bytes that are as the memory may have been filled."""
        random = np.random.default_rng(self.seed)
        if self.content == "zeros":
            return np.zeros(len(at), np.uint8)
        data = random.integers(0, 256, len(at), np.uint8)
        if self.content == "small":  # none is the pattern's
            data &= 0x7F
        if self.content == "nearly the pattern":  # but for one byte of each element
            other = np.where(at % 4 == (at[:1] if self.dtype.itemsize < 4 else self.seed) % 4, 0x55, 0)
            data = _PATTERN[at % len(_PATTERN)] ^ other.astype(np.uint8)
        if self.content == "the pattern":
            data = _PATTERN[at % len(_PATTERN)].copy()
        return data

    def run(self, memory: Any, width: int) -> tuple[Bytes, Bytes]:
        at = self.bytes(width)
        data = self.data(at)
        array = memory.view(self.dtype)
        array[self.offset :: self.step][: len(at) // self.dtype.itemsize] = data.view(self.dtype)
        return at, data


def stores(dtypes: Sequence[str], steps: Sequence[int], *contents: str) -> st.SearchStrategy[Store]:
    return st.builds(
        Store,
        st.sampled_from(dtypes),
        st.integers(0, 40),
        st.integers(1, 24),
        st.sampled_from(steps),
        st.sampled_from(["random", "zeros", "nearly the pattern", *contents]),
        st.integers(0, 2**32 - 1),
    )


quick = settings(max_examples=part_of(60), deadline=None, suppress_health_check=[*HealthCheck])
widths = st.sampled_from([16, 64, 256, 1000, 65536 + 512])


@quick
@given(st.lists(stores(["<f4", "<u8", "<i4"], [1, 4, 7]), max_size=4), widths, st.booleans(), st.booleans())
def test_arrays_over_memory_that_is_not_read_are_exact(
    drawn: list[Store], width: int, at_unmap: bool, is_read: bool
) -> None:
    """Whatever is stored: zeros, the bytes that stood there but for some.  The rest reads as zeros."""
    ground = Ground()
    buffer = ground.buffer(width, HeapType.UPLOAD)
    expected, bytes_of_gpu = np.zeros(width, bool), np.zeros(width, np.uint8)
    memory = buffer.map(0, NOTHING)
    for each in drawn:
        at, data = each.run(memory, width)
        expected[at], bytes_of_gpu[at] = True, data
        if is_read:  # the GPU between the stores
            assert np.array_equal(ground.read(buffer)[expected], bytes_of_gpu[expected])
    if at_unmap:
        buffer.unmap(0, None)
    else:
        ground.submit()
    got = ground.written(buffer)
    assert set(np.flatnonzero(expected).tolist()) <= got
    # A single untouched word counts as written: it may be one that was stored to.
    unsure = _single_words(expected)
    assert got <= set(np.flatnonzero(expected | unsure).tolist())
    seen = ground.read(buffer)
    assert np.array_equal(seen[~unsure], bytes_of_gpu[~unsure])


def test_single_words_that_nobody_stores_to_stay_zeros() -> None:
    ground = Ground()
    buffer = ground.buffer(48, HeapType.UPLOAD)
    rows = buffer.map(0, NOTHING).view(np.float32).reshape(3, 4)
    rows[:, :3] = 1.0
    buffer.unmap(0, None)
    seen = ground.read(buffer).view(np.float32).reshape(3, 4)
    assert seen.tolist() == [[1.0, 1.0, 1.0, 0.0]] * 3
    assert ground.written(buffer) == {16 * row + byte for row in range(3) for byte in range(12)}


def _single_words(stored: Bytes) -> Bytes:
    """Bytes of words that nobody stored to and whose neighbours were stored to."""
    whole = len(stored) // 4
    words = stored[: whole * 4].reshape(whole, 4).any(1)
    single = ~words & np.append(words[1:], False) & np.append(False, words[:-1])
    return np.append(np.repeat(single, 4), np.zeros(len(stored) % 4, bool))


@quick
@given(st.lists(st.tuples(st.integers(0, 255), st.integers(0, 40), st.booleans()), max_size=8), st.booleans())
def test_stores_through_mapped_memory_are_exact(rows: list[tuple[int, int, bool]], is_read: bool) -> None:
    ground = Ground()
    buffer = ground.buffer(256, HeapType.UPLOAD)
    memory = buffer.map(0, None if is_read else NOTHING)
    expected: set[int] = set()
    for begin, count, single in rows:
        end = begin + 1 if single else min(begin + count, 256)
        if single:
            memory[begin] = 0
        else:
            memory[begin:end] = bytes(end - begin)
        expected |= set(range(begin, end))
        assert ground.written(buffer) == expected
    buffer.unmap(0, NOTHING if not rows else None)
    assert ground.written(buffer) == expected


@quick
@given(st.integers(0, 63), st.integers(0, 63), st.integers(0, 63), st.integers(0, 63))
def test_unmap_tells_what_was_written(a: int, b: int, c: int, d: int) -> None:
    """Of an array over memory that may be read, all that Unmap tells counts, and nothing else."""
    ground = Ground()
    buffer = ground.buffer(64, HeapType.UPLOAD)
    memory = buffer.map()
    first, last = sorted((a, b))
    memory.view(np.uint8, first, last - first)[:] = 5
    begin, end = sorted((c, d))
    buffer.unmap(0, Range(begin, end))
    assert ground.written(buffer) == set(range(first, last)) & set(range(begin, end))


def test_an_array_over_memory_that_may_be_read_counts_as_written(ground: Ground) -> None:
    buffer = ground.buffer(256, HeapType.UPLOAD)
    array = buffer.map().view(np.uint8, 16, 32)
    assert ground.written(buffer) == set()  # nothing is visible yet
    ground.submit()
    assert ground.written(buffer) == set(range(16, 48)) and not array.any()


@pytest.mark.parametrize("value", [0, 1, 255])
def test_many_gaps_of_one_word_are_no_accident(ground: Ground, value: int) -> None:
    """Every second element of a tensor."""
    buffer = ground.buffer(256, HeapType.UPLOAD)
    with buffer.map(0, NOTHING) as memory:
        memory.view(np.float32)[::2] = value
    assert ground.written(buffer) == {i for i in range(256) if i % 8 < 4}
    assert set(ground.read(buffer).view(np.float32)[1::2]) == {0}


@quick
@given(
    stores(["u1", "<u2", "<f4"], [1, 2, 3, 9]).map(lambda drawn: (drawn, True))
    | stores(["u1", "<u2"], [1]).map(lambda drawn: (drawn, False)),
    st.integers(0, 256),
)
def test_what_the_cpu_stores_is_not_lost(case: tuple[Store, bool], told: int) -> None:
    """It reaches the GPU, whether it is found or not, and whatever Unmap tells."""
    (drawn, zeroed), ground = case, Ground()
    buffer = ground.buffer(256, HeapType.UPLOAD, zeroed=zeroed)
    with buffer.map(0, NOTHING) as memory:
        at, data = drawn.run(memory, 256)
        buffer.map(0, NOTHING)
        buffer.unmap(0, Range(0, told))
    assert np.array_equal(ground.read(buffer)[at], data)


@quick
@given(stores(["u1", "<u2"], [1, 2, 3, 9], "the pattern"), st.integers(0, 3))
def test_small_elements_may_be_any(drawn: Store, offset: int) -> None:
    """In zeroed memory nothing is known of what an array of bytes reaches: all of it counts as written."""
    ground = Ground()
    buffer = ground.buffer(256, HeapType.UPLOAD)
    with buffer.map(0, NOTHING) as memory:
        floats = memory.view(np.float32, 0, 16)  # the same bytes, by words
        at, data = drawn.run(memory, 256)
        if offset % 2:
            floats[:] = 1
            data[at < 64] = floats.view(np.uint8)[at[at < 64]]
    assert ground.written(buffer) >= set(at.tolist())
    expected = np.zeros(256, np.uint8)
    if offset % 2:
        expected[:64] = floats.view(np.uint8)
    expected[at] = data
    assert np.array_equal(ground.read(buffer), expected)


def _small(width: int, stored: Bytes) -> Bytes:
    """Runs of 8 or more bytes that nobody stored to but for 3 at each end: of those it is known."""
    runs = np.flatnonzero(np.diff(~stored, prepend=False, append=False)).reshape(-1, 2)
    known = np.zeros(width, bool)
    for first, last in runs[runs[:, 1] - runs[:, 0] >= 8]:
        known[first + 3 : last - 3] = True
    return known


@quick
@given(
    stores(["u1", "<u2", "<f2"], [1, 2, 3, 9, 20]),
    st.sampled_from([None, "before", "behind"]),
    st.booleans(),
)
def test_arrays_of_small_elements_tell_runs_that_nobody_stored_to(
    drawn: Store, floats: str | None, is_read: bool
) -> None:
    """Where memory is not zeroed a run of 8 bytes or more is no accident; what was stored is never lost."""
    ground = Ground()
    buffer = ground.buffer(256, HeapType.UPLOAD, zeroed=False)
    expected = np.zeros(256, np.uint8)
    stored = np.zeros(256, bool)
    drawn.content = "zeros" if drawn.content == "zeros" else "small"
    with buffer.map(0, NOTHING) as memory:
        if floats == "before":  # the same bytes, by words
            memory.view(np.float32, 0, 4)[:] = 1
            expected[:16], stored[:16] = np.ones(4, np.float32).view(np.uint8), True
        at, data = drawn.run(memory, 256)
        expected[at], stored[at] = data, True
        if is_read:
            assert np.array_equal(ground.read(buffer)[stored], expected[stored])
        if floats == "behind":
            memory.view(np.float32, 128, 4)[:] = 1
            expected[128:144], stored[128:144] = np.ones(4, np.float32).view(np.uint8), True
    known = _small(256, stored)
    got = ground.written(buffer)
    assert got >= set(np.flatnonzero(stored).tolist())
    assert not got & set(np.flatnonzero(known).tolist())
    assert np.array_equal(ground.read(buffer)[stored], expected[stored])


# --- sequences of anything ---


class Model:
    """Bytes: those that must count as written, those that may, and what the GPU sees."""

    def __init__(self, width: int) -> None:
        self.must, self.may = np.zeros(width, bool), np.zeros(width, bool)
        self.value = np.zeros(width, np.uint8)

    def write(self, at: Bytes, data: Bytes) -> None:
        self.value[at], self.may[at] = data, True

    def copy(self, to: int, source: Model, start: int, size: int) -> None:
        for name in ("must", "may", "value"):
            getattr(self, name)[to : to + size] = getattr(source, name)[start : start + size].copy()


WIDTH = 128
GROUPS = ((0,), (1, 2), (1, 2))  # which mapped buffers stand on the same bytes


class Calls:
    """Random calls on three mapped buffers, two of them over the same bytes, and two that are not mapped."""

    def __init__(self) -> None:
        self.ground = Ground()
        shared = Model(WIDTH)
        self.uploads = [self.ground.buffer(WIDTH, HeapType.UPLOAD), *self.ground.placed(2, WIDTH)]
        self.models = [Model(WIDTH), shared, shared]
        self.targets = [self.ground.buffer(WIDTH) for _ in range(2)]
        self.target_models = [Model(WIDTH) for _ in range(2)]
        self.maps: list[list[Any]] = [[], [], []]
        self.stored: list[list[Bytes]] = [[], [], []]  # through arrays, and not visible yet
        self.is_loose = [False] * 3  # of what arrays reach nothing more is known
        self.handed_out = [False] * 3

    def map(self, which: int, reads: bool) -> None:
        self.maps[which].append(self.uploads[which].map(0, None if reads else NOTHING))
        if reads:
            self.loosen(which)

    def loosen(self, which: int) -> None:
        for each in GROUPS[which]:
            self.is_loose[each] = True
            if self.handed_out[each]:
                self.models[each].may[:] = True

    def unmap(self, which: int) -> None:
        if not self.maps[which]:
            return
        self.uploads[which].unmap(0, None)
        self.maps[which].pop()
        self.see(which)
        if not self.maps[which]:
            self.handed_out[which] = False
        if not any(self.maps[each] for each in GROUPS[which]):
            for each in GROUPS[which]:
                self.is_loose[each] = False

    def store(self, which: int, drawn: Store) -> None:
        if self.maps[which]:
            at, data = drawn.run(self.maps[which][-1], WIDTH)
            self.handed_out[which] = True
            if self.is_loose[which] or drawn.dtype.itemsize < 4:
                self.loosen(which)
            self.models[which].write(at, data)
            self.stored[which].append(at)

    def put(self, which: int, begin: int, count: int) -> None:
        if self.maps[which]:
            at = np.arange(begin, min(begin + count, WIDTH))
            self.maps[which][-1][begin : begin + count] = bytes(len(at))
            self.models[which].write(at, np.zeros(len(at), np.uint8))
            self.models[which].must[at] = True

    def fill(self, which: int, target: int) -> None:
        self.put(which, 0, WIDTH)
        self.copy(which, target, 0, 0, WIDTH)

    def see(self, *maps: int) -> None:
        for each in maps:
            for at in self.stored[each]:
                self.models[each].must[at] = True
            self.stored[each] = []

    def copy(self, which: int, target: int, to: int, start: int, size: int) -> None:
        size = min(size, WIDTH - to, WIDTH - start)
        self.ground.list.copy_buffer_region(self.targets[target], to, self.uploads[which], start, size)
        self.ground.run()
        self.see(0, 1, 2)
        self.target_models[target].copy(to, self.models[which], start, size)

    def dispatch(self, source: int) -> None:
        """Into four columns of the other target; only what is written is read."""
        model, other = self.target_models[source], self.target_models[1 - source]
        if model.must[:64].all():
            desc = identity([4, 4], [8, 1])
            self.ground.dispatch(desc, [self.targets[source]], [self.targets[1 - source]])
            self.see(0, 1, 2)
            at = (np.arange(4)[:, None] * 32 + np.arange(16)).ravel()
            other.write(at, model.value[:64])
            other.must[at] = True

    def check(self, *, values: bool = False) -> None:
        pairs = [*zip(self.uploads, self.models, strict=True)]
        for buffer, model in [*pairs, *zip(self.targets, self.target_models, strict=True)]:
            written = np.zeros(WIDTH, bool)
            written[list(self.ground.written(buffer))] = True
            unsure = _single_words(model.may) | np.repeat(model.may.reshape(-1, 4).any(1), 4)
            assert not (model.must & ~written).any(), "too small"
            assert not (written & ~model.may & ~unsure).any(), "too large"
            if values:
                seen = self.ground.read(buffer)
                self.see(0, 1, 2)
                sure = ~_single_words(model.may)
                assert np.array_equal(seen[sure], model.value[sure])

    def check_values(self) -> None:
        self.check(values=True)


which, places, counts = st.integers(0, 2), st.integers(0, WIDTH - 1), st.integers(0, WIDTH)
calls = st.one_of(
    st.tuples(st.just("map"), which, st.booleans()),
    st.tuples(st.just("map"), which, st.just(False)),
    st.tuples(st.just("unmap"), which),
    st.tuples(st.just("store"), which, stores(["u1", "<u2", "<f4", "<u8"], [1, 2, 5])),
    st.tuples(st.just("put"), which, places, counts),
    st.tuples(st.just("copy"), which, st.integers(0, 1), places, places, counts),
    st.tuples(st.just("fill"), which, st.integers(0, 1)),
    st.tuples(st.just("dispatch"), st.integers(0, 1)),
    st.tuples(st.just("check_values")),
)


@settings(quick, max_examples=part_of(120))
@given(st.lists(calls, min_size=1, max_size=14))
def test_what_counts_as_written_is_never_too_small(program: list[tuple[Any, ...]]) -> None:
    """Random maps, stores, copies and dispatches: nothing is lost, nothing is said that is not so."""
    sequence = Calls()
    for name, *arguments in program:
        getattr(sequence, name)(*arguments)
        sequence.check()
    sequence.check_values()
    serious = [each for each in sequence.ground.device.reports if each.report.severity <= Severity.WARNING]
    assert not serious


# --- maps ---


def test_a_second_array_leaves_alone_what_was_stored_through_the_first(ground: Ground) -> None:
    buffer = ground.buffer(256, HeapType.UPLOAD)
    with buffer.map(0, NOTHING) as memory:
        memory.view(np.uint32)[20] = 7
        memory.view(np.uint32, 64, 8)[0] = 9
        memory.view(np.uint32)[40] = 11
    seen = ground.read(buffer).view(np.uint32)
    assert {i: int(seen[i]) for i in np.flatnonzero(seen)} == {20: 7, 16: 9, 40: 11}
    assert ground.written(buffer) == {byte for word in (16, 20, 40) for byte in range(4 * word, 4 * word + 4)}


def test_the_cpu_reads_zeros_once_it_may_read(ground: Ground) -> None:
    buffer = ground.buffer(256, HeapType.UPLOAD)
    array = buffer.map(0, NOTHING).view(np.uint32)
    array[3] = 5
    assert array[10] != 0  # the pattern
    buffer.map(0, Range(0, 4))
    assert np.flatnonzero(array).tolist() == [3] and array[3] == 5


def test_a_buffer_over_the_same_bytes_shows_no_pattern(ground: Ground) -> None:
    """Neither to the CPU nor to the GPU, nor are its stores lost."""
    first, second = ground.placed(2)
    array = first.map(0, NOTHING).view(np.uint32)
    array[3] = 5
    assert not np.delete(ground.read(second).view(np.uint32), 3).any()
    assert array[10] != 0  # it is back: stores are still told apart
    other = second.map(0, NOTHING).view(np.uint32)
    other[7] = 6
    first.unmap(0, None)
    assert ground.read(second).view(np.uint32)[[3, 7]].tolist() == [5, 6]
    assert ground.written(first) == ground.written(second) == {*range(12, 16), *range(28, 32)}
    reading = first.map().view(np.uint32)
    assert np.flatnonzero(reading).tolist() == [3, 7]


def test_many_maps_are_open_at_once(ground: Ground) -> None:
    buffers = [ground.buffer(64, HeapType.UPLOAD) for _ in range(20)]
    arrays = [each.map(0, NOTHING).view(np.uint32) for each in buffers]
    for i, array in enumerate(arrays):
        array[i % 16] = i + 1
    ground.submit()
    for i, each in enumerate(buffers):
        at = i % 16
        assert ground.written(each) == set(range(4 * at, 4 * at + 4))
    for each in buffers[::2]:
        each.unmap(0, None)
    assert all(np.count_nonzero(ground.read(each).view(np.uint32)) == 1 for each in buffers)


def test_a_buffer_that_is_released_while_it_is_mapped_leaves_no_pattern(ground: Ground) -> None:
    first, second = ground.placed(2)
    array = first.map(0, NOTHING).view(np.uint32)
    array[3] = 5
    first.release()
    assert ground.written(second) == set(range(12, 16))
    seen = ground.read(second).view(np.uint32)
    assert np.flatnonzero(seen).tolist() == [3]


def test_a_map_keeps_no_buffer_alive(ground: Ground) -> None:
    """A buffer that is collected while it is mapped leaves no pattern either."""
    first, second = ground.placed(2)
    first.map(0, NOTHING).view(np.uint32)[3] = 5
    gone = weakref.ref(first)
    del first
    gc.collect()
    assert gone() is None
    seen = ground.read(second).view(np.uint32)
    assert np.flatnonzero(seen).tolist() == [3]
    assert not ground.check._host.patterned and not ground.check._host._maps


def test_a_fork_leaves_the_parent_alone(ground: Ground) -> None:
    buffer = ground.buffer(256, HeapType.UPLOAD)
    array = buffer.map(0, NOTHING).view(np.uint32)
    array[:8] = 1
    child = os.fork()
    if child == 0:
        status = 1
        try:
            del ground, buffer, array
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    buffer.unmap(0, None)
    assert ground.written(buffer) == set(range(32))
    assert not ground.read(buffer)[32:].any()


def test_collected_arrays_and_maps_change_nothing(ground: Ground) -> None:
    buffer = ground.buffer(256, HeapType.UPLOAD)
    for i in range(8):
        buffer.map(0, NOTHING).view(np.uint32, 8 * i, 1)[0] = i
        gc.collect()
    for _ in range(8):
        buffer.unmap(0, None)
    assert ground.written(buffer) == {8 * i + k for i in range(8) for k in range(4)}


# --- what commands write and leave undefined ---


def test_gaps_of_an_output_keep_what_they_are(ground: Ground) -> None:
    source, target = ground.buffer(64), ground.buffer(256)
    fill(ground, source)
    ground.dispatch(identity([4, 4], [16, 1]), [source], [target])
    assert ground.written(target) == {64 * row + byte for row in range(4) for byte in range(16)}


@pytest.mark.parametrize("total", [8, 16])
def test_the_tail_of_an_output_keeps_what_it_is(ground: Ground, total: int) -> None:
    """Bytes after the last element up to TotalTensorSizeInBytes."""
    source, full, empty = ground.buffer(64), ground.buffer(64), ground.buffer(64)
    fill(ground, source)
    fill(ground, full)
    desc = identity([5], None, UINT8, total_tensor_size_in_bytes=total)
    for target, written in ((full, set(range(64))), (empty, set(range(5)))):
        ground.dispatch(desc, [source], [target])
        assert ground.written(target) == written


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_what_was_left_undefined_stays_so_however_much_is_written_elsewhere(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not a zero from the buffer's creation."""
    monkeypatch.setattr(initialisation, "_KEPT", 2)
    source, target, other = (ground.buffer(64) for _ in range(3))
    fill(ground, source, np.uint32([7, *[0] * 15]).view(np.uint8))
    fill(ground, target)
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=dml.BufferTensorDesc(UINT32, [2]),
        output_count_tensor=dml.BufferTensorDesc(UINT32, [1]),
        output_coordinates_tensor=dml.BufferTensorDesc(UINT32, [2, 1]),
    )
    ground.dispatch(desc, [source], [ground.buffer(16), target])
    for _ in range(4):
        ground.list.copy_buffer_region(other, 0, source, 0, 64)
        ground.run()
    with pytest.raises(Error, match=r"from byte 4 of .*, which a command long ago left undefined") as raised:
        ground.dispatch(identity([8], None, UINT8), [target], [other])
    assert raised.value.report.severity is Severity.ERROR


@quick
@given(st.lists(st.integers(0, 1), min_size=8, max_size=8))
def test_rows_past_the_count_become_undefined(elements: list[int]) -> None:
    ground = Ground()
    source, count, rows = ground.buffer(32), ground.buffer(16), ground.buffer(64)
    fill(ground, source, np.array(elements, np.uint32).view(np.uint8))
    fill(ground, rows)
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=dml.BufferTensorDesc(UINT32, [8]),
        output_count_tensor=dml.BufferTensorDesc(UINT32, [1]),
        output_coordinates_tensor=dml.BufferTensorDesc(UINT32, [8, 1]),
    )
    ground.dispatch(desc, [source], [count, rows])
    assert ground.written(count) == set(range(4))
    assert ground.written(rows) == {*range(4 * sum(elements)), *range(32, 64)}


def test_a_temporary_resource_is_undefined_after_its_dispatch(ground: Ground) -> None:
    source, target = ground.buffer(64), ground.buffer(64)
    fill(ground, source)
    layout = dml.BufferTensorDesc(FLOAT32, [16])
    node = dml.ElementWiseAbsOperatorDesc(input_tensor=layout, output_tensor=layout)
    nodes = [dml.OperatorGraphNodeDesc(ground.dml.create_operator(node)) for _ in range(2)]
    graph = dml.GraphDesc(
        input_count=1,
        output_count=1,
        nodes=nodes,
        input_edges=[dml.InputGraphEdgeDesc(0, 0, 0)],
        intermediate_edges=[dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)],
        output_edges=[dml.OutputGraphEdgeDesc(1, 0, 0)],
    )
    temporary = ground.dispatch_compiled(ground.dml.compile_graph(graph), [source], [target])
    assert temporary is not None and ground.written(temporary) == set()
    assert ground.written(target) == set(range(64))


def selecting(ground: Ground, *, doubles: bool) -> dml.CompiledOperator:
    """A graph that gathers the elements of 6 whose mask is not 0; ``doubles``: adds their indices before."""
    count, rows = dml.BufferTensorDesc(UINT32, [1]), dml.BufferTensorDesc(UINT32, [6, 1])
    index, values = dml.BufferTensorDesc(UINT32, [6]), dml.BufferTensorDesc(FLOAT32, [6])
    descs = [
        dml.NonzeroCoordinatesOperatorDesc(
            input_tensor=dml.BufferTensorDesc(UINT8, [6]),
            output_count_tensor=count,
            output_coordinates_tensor=rows,
        ),
        dml.ElementWiseAddOperatorDesc(a_tensor=index, b_tensor=index, output_tensor=index)
        if doubles
        else identity([6], None, UINT32),
        dml.GatherElementsOperatorDesc(
            input_tensor=values, indices_tensor=index, output_tensor=values, axis=0
        ),
    ]
    return ground.dml.compile_graph(
        dml.GraphDesc(
            input_count=2,
            output_count=2,
            nodes=[dml.OperatorGraphNodeDesc(ground.dml.create_operator(desc)) for desc in descs],
            input_edges=[dml.InputGraphEdgeDesc(1, 0, 0), dml.InputGraphEdgeDesc(0, 2, 0)],
            intermediate_edges=[
                dml.IntermediateGraphEdgeDesc(0, 1, 1, 0),
                *([dml.IntermediateGraphEdgeDesc(0, 1, 1, 1)] if doubles else []),
                dml.IntermediateGraphEdgeDesc(1, 0, 2, 1),
            ],
            output_edges=[dml.OutputGraphEdgeDesc(2, 0, 0), dml.OutputGraphEdgeDesc(0, 0, 1)],
        )
    )


def selected(ground: Ground, *, doubles: bool = False) -> Any:
    """Where the graph left the two elements that it found, and four that are undefined."""
    values, mask, found, count = (ground.buffer(64) for _ in range(4))
    fill(ground, values)
    fill(ground, found)
    fill(ground, mask, np.array([0, 1, 0, 1, 0, 0, *[0] * 58], np.uint8))
    ground.dispatch_compiled(selecting(ground, doubles=doubles), [values, mask], [found, count])
    return found


@pytest.mark.dmlemu(expect=["MEM_POISON_READ", "MEM_INDEX_VALUE", "MEM_UNINIT_READ"])
def test_rows_past_a_count_are_moved_through_a_graph(ground: Ground) -> None:
    """That is a WARNING; an ERROR follows only where somebody reads what was made of them."""
    found, result = selected(ground), ground.buffer(64)
    reports = [each.report for each in ground.device.reports if each.report.id == "MEM_POISON_READ"]
    assert {each.severity for each in reports} == {Severity.WARNING}
    assert all(each.message.endswith("what it makes of that element is undefined, too.") for each in reports)
    assert ground.written(found) == {*range(8), *range(24, 64)}
    ground.dispatch(identity([2], None), [found], [result])
    with pytest.raises(Error, match=r"element \(2\) .* of compiled .* left undefined") as raised:
        ground.dispatch(identity([3], None), [found], [result])
    assert raised.value.report.id == "MEM_UNINIT_READ"


@pytest.mark.dmlemu(expect=["MEM_POISON_READ", "MEM_INDEX_VALUE"])
def test_rows_past_a_count_that_a_graph_computes_with(ground: Ground) -> None:
    with pytest.raises(Error) as raised:
        selected(ground, doubles=True)
    assert raised.value.report.severity is Severity.CORRUPTION


def test_copies_carry_it_along(ground: Ground) -> None:
    source, target = ground.buffer(256, HeapType.UPLOAD), ground.buffer(256)
    fill(ground, target)
    with source.map(0, NOTHING) as memory:
        memory[10:20] = bytes(10)
    ground.list.copy_buffer_region(target, 100, source, 0, 40)
    ground.run()
    assert ground.written(target) == {*range(100), *range(110, 120), *range(140, 256)}


def test_memory_that_is_not_zeroed_may_be_written_all_the_same(ground: Ground) -> None:
    buffer = ground.buffer(256, HeapType.UPLOAD, zeroed=False)
    with buffer.map(0, NOTHING) as memory:
        memory.view(np.float32)[8:16] = 0
    assert ground.written(buffer) == set(range(32, 64))


# --- aliases ---


def test_placed_buffers_over_the_same_bytes_know_the_same(ground: Ground) -> None:
    first, second = ground.placed(2, kind=HeapType.DEFAULT)
    fill(ground, first)
    assert ground.written(second) == set(range(256))


@pytest.mark.parametrize("kind", [HeapType.DEFAULT, HeapType.UPLOAD])
def test_tiles_know_what_was_written_behind_them(ground: Ground, kind: HeapType) -> None:
    """Also while the heap's own buffer is mapped, and shows zeros to nobody else than the GPU."""
    heap = ground.device.create_heap(d3d12.HeapDesc(2 * 65536, d3d12.HeapProperties(kind)))
    flags = UAV if kind == HeapType.DEFAULT else d3d12.ResourceFlags.NONE
    desc, state = d3d12.ResourceDesc.buffer(65536, flags), STATES.get(kind, ResourceStates.COMMON)
    placed = ground.device.create_placed_resource(heap, 65536, desc, state)
    tiled = ground.device.create_reserved_resource(d3d12.ResourceDesc.buffer(65536), ResourceStates.COMMON)
    assert len(ground.written(tiled)) == 65536  # NULL tiles hold certain zeros
    ground.queue.update_tile_mappings(tiled, None, None, heap, None, [1])
    if kind == HeapType.DEFAULT:
        source = ground.buffer(64)
        fill(ground, source)
        ground.list.copy_buffer_region(placed, 128, source, 0, 64)
        ground.run()
    else:
        placed.map(0, NOTHING).view(np.uint32)[32:48] = 0x01010101
        ground.run()
    assert ground.written(tiled) == ground.written(placed) == set(range(128, 192))
    seen = ground.read(tiled)
    assert set(seen[128:192].tolist()) == {1} and not seen[:128].any() and not seen[192:].any()


# --- what is said of it ---


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_a_forgotten_last_element_is_told(ground: Ground) -> None:
    """Through an array of floats; the GPU reads the zero of creation."""
    upload, target, result = ground.buffer(64, HeapType.UPLOAD), ground.buffer(64), ground.buffer(64)
    with upload.map(0, NOTHING) as memory:
        memory.view(np.float32)[:15] = 1
    ground.list.copy_buffer_region(target, 0, upload, 0, 64)
    ground.run()
    ground.dispatch(identity([16], None), [target], [result])
    (stored,) = ground.device.reports
    assert stored.report.id == "MEM_UNINIT_READ" and "element (15)" in stored.report.message
    assert ground.read(result).view(np.float32).tolist() == [1.0] * 15 + [0.0]


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_a_known_cause_is_counted_and_not_searched_for_again(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, result = ground.buffer(64), ground.buffer(64)
    searched: list[int] = []
    last = ground.check._last
    monkeypatch.setattr(ground.check, "_last", lambda address: searched.append(address) or last(address))
    compiled = ground.dml.compile_operator(ground.dml.create_operator(identity([16], None)))
    initializer = ground.dml.create_operator_initializer([compiled])
    ground.recorder.record_dispatch(ground.list, initializer, ground.table(initializer))
    ground.run()
    table = ground.table(compiled)
    table.bind_inputs([dml.BufferBinding(target)])
    table.bind_outputs([dml.BufferBinding(result)])

    def times(count: int) -> int:
        """How often it was searched for in so many dispatches."""
        searched.clear()
        for _ in range(count):
            ground.recorder.record_dispatch(ground.list, compiled, table)
            ground.list.resource_barrier([d3d12.ResourceBarrier.uav(None)])
        ground.run()
        return len(searched)

    assert times(1) > 0
    assert times(5) == 0
    (stored,) = ground.device.reports
    assert stored.count == 6
    # Something has happened to the byte: what was known of it may be wrong.
    ground.list.copy_buffer_region(target, 0, ground.buffer(64), 0, 64)
    ground.run()
    assert times(2) > 0
    assert sum(stored.count for stored in ground.device.reports) == 8
    ground.device.reports.clear()
    assert times(1) > 0
    assert sum(stored.count for stored in ground.device.reports) == 1


@pytest.mark.parametrize(("first", "count"), [(0, 32), (4, 28), (16, 16)])
def test_what_is_written_is_never_told(ground: Ground, first: int, count: int) -> None:
    """An array that begins or ends anywhere: what lies in it is written, whatever was stored."""
    for dtype in (np.uint8, np.uint16, np.float32):
        upload, target, result = ground.buffer(256, HeapType.UPLOAD), ground.buffer(256), ground.buffer(256)
        with upload.map(0, NOTHING) as memory:
            array = memory.view(dtype)
            array[first : first + count] = 0
        size = count * array.itemsize // 4 * 4
        start = first * array.itemsize
        ground.list.copy_buffer_region(target, 0, upload, start, size)
        ground.run()
        ground.dispatch(identity([size // 4], None), [target], [result])
    assert list(ground.device.reports) == []


@pytest.mark.parametrize("strides", [None, [7, 2], [0, 3]])
def test_gaps_of_weights_need_not_be_written(ground: Ground, strides: list[int] | None) -> None:
    """Neither between the elements nor behind the last one."""
    weights = dml.BufferTensorDesc(UINT8, [3, 3], strides, flags=dml.TensorFlags.OWNED_BY_DML)
    packed = dml.BufferTensorDesc(UINT8, [3, 3])
    desc = dml.ElementWiseBitXorOperatorDesc(a_tensor=packed, b_tensor=weights, output_tensor=packed)
    compiled = ground.dml.compile_operator(ground.dml.create_operator(desc))
    upload, source, result = ground.buffer(64, HeapType.UPLOAD), ground.buffer(64), ground.buffer(64)
    fill(ground, source, np.zeros(64, np.uint8))
    rows, columns = weights.effective_strides
    with upload.map(0, NOTHING) as memory:
        for i in range(9):
            memory[i // 3 * rows + i % 3 * columns] = 10 + i // 3 * rows + i % 3 * columns
    persistent = ground.buffer(compiled.get_binding_properties().persistent_resource_size)
    initializer = ground.dml.create_operator_initializer([compiled])
    table = ground.table(initializer)
    table.bind_inputs([dml.BufferArrayBinding([None, dml.BufferBinding(upload)])])
    table.bind_outputs([dml.BufferBinding(persistent)])
    ground.recorder.record_dispatch(ground.list, initializer, table)
    ground.run()
    table = ground.table(compiled)
    table.bind_inputs([dml.BufferBinding(source), None])
    table.bind_outputs([dml.BufferBinding(result)])
    table.bind_persistent_resource(dml.BufferBinding(persistent))
    ground.recorder.record_dispatch(ground.list, compiled, table)
    ground.run()
    expected = [10 + i // 3 * rows + i % 3 * columns for i in range(9)]
    assert ground.read(result)[:9].tolist() == expected
    assert list(ground.device.reports) == []
