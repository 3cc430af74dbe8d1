"""Group c where the gallery stops: what must stay silent, what is exact, and what the GPU really does."""

from __future__ import annotations

import gc
import itertools
import threading
import weakref
from collections.abc import Callable
from itertools import product as indices
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu import Error, Strictness, d3d12, dml
from dmlemu.d3d12.core.descriptor_uses import ByPlace
from dmlemu.dml.binding import aliasing
from dmlemu.dml.binding.aliasing import Meeting, Place
from dmlemu.errors import Severity
from dmlemu.testing.stage import (
    OWNED,
    UAV,
    OtherQueue,
    Stage,
    States,
    descriptor_heap,
    give_weights,
    half_product,
    identity,
    other_queue,
    product,
    raw_view,
    run_with_weights,
    slot,
    tensor,
)
from dmlemu_hw.events import Footprint
from dmlemu_hw.footprints import element_at, meet
from thorough import part_of

Binding = dml.BufferBinding
VOLATILE = dml.ExecutionFlags.DESCRIPTORS_VOLATILE
DIRECT = d3d12.CommandListType.DIRECT
KIND = d3d12.DescriptorHeapType.CBV_SRV_UAV
TILE = 65536

# Tests that must stay silent say so themselves.
pytestmark = pytest.mark.dmlemu(expect=["BIND_*", "DESC_*", "OP_NOT_INITIALIZED*"])


@pytest.fixture
def stage() -> Stage:
    return Stage()


def said(stage: Stage) -> list[str]:
    """Ids of all that was reported, remarks aside."""
    return [each.report.id for each in stage.device.reports if each.report.severity <= Severity.WARNING]


class reports:
    """``with reports("DESC_OVERWRITTEN"):`` - the call inside raises that report; nothing else is said."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.text = ""

    def __enter__(self) -> reports:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        assert isinstance(error, Error), error
        self.text = str(error)
        assert error.report.id == self.id, self.text
        return True


def read(stage: Stage, buffer: Any, count: int = 4) -> list[float]:
    """The first elements of a buffer."""
    back = stage.host_buffer("back", 4 * count, "READBACK")
    stage.list.copy_buffer_region(back, 0, buffer, 0, 4 * count)
    stage.run()
    with back.map() as memory:
        return list(np.asarray(memory).view(np.float32)[:count])


def constant(stage: Stage, name: str, value: float) -> Any:
    """A buffer of 64 equal elements."""
    made, upload = stage.buffer(name), stage.host_buffer(f"{name}, upload")
    with upload.map(0, d3d12.Range(0, 0)) as memory:
        memory[:] = np.full(64, value, np.float32).tobytes()
    stage.list.copy_buffer_region(made, 0, upload, 0, 256)
    stage.run()
    return made


# --- descriptors ---


def test_the_gpu_reads_the_descriptor_that_was_written_too_early(stage: Stage) -> None:
    """The report is no theory: the dispatch computes with the other buffer."""
    copy, output = stage.copy_operator("copy"), stage.buffer("output")
    image, other = constant(stage, "image", 1), constant(stage, "other", 9)
    stage.dispatch(copy, [image], [output])
    stage.submit()
    with reports("DESC_OVERWRITTEN") as caught:
        stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))
    assert (
        "UAV of bytes [0, 256) of buffer 'image'; it holds UAV of bytes [0, 256) of buffer 'other'"
        in caught.text
    )
    stage.wait()
    assert read(stage, output) == [9, 9, 9, 9]


def test_a_descriptor_overwritten_before_execution_is_read_too(stage: Stage) -> None:
    copy, output = stage.copy_operator("copy"), stage.buffer("output")
    image, other = constant(stage, "image", 1), constant(stage, "other", 9)
    stage.dispatch(copy, [image], [output])
    stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))
    with reports("DESC_OVERWRITTEN") as caught:
        stage.submit()
    assert "CreateUnorderedAccessView at test_bindings.py" in caught.text
    stage.fence.signal(100)  # the Signal of submit() did not come to pass
    stage.queue.signal(stage.fence, 101)
    stage.fence_value = 101
    stage.wait()
    assert read(stage, output) == [9, 9, 9, 9]


def test_a_table_that_is_refused_changes_nothing(stage: Stage) -> None:
    copy, output = stage.copy_operator("copy"), stage.buffer("output")
    image, other = constant(stage, "image", 1), constant(stage, "other", 9)
    table = stage.dispatch(copy, [image], [output])
    stage.submit()
    for each in (table, stage.table(copy, first=0)):
        with reports("DESC_OVERWRITTEN"):
            each.bind_inputs([Binding(other)])
    stage.wait()
    assert read(stage, output) == [1, 1, 1, 1]


def test_the_same_descriptor_again_is_no_change(stage: Stage) -> None:
    copy, image = stage.copy_operator("copy"), stage.filled("image")
    stage.dispatch(copy, [image], [stage.buffer("output")])
    stage.device.create_unordered_access_view(image, None, raw_view(64), slot(stage, 0))
    stage.submit()
    stage.device.create_unordered_access_view(image, None, raw_view(64), slot(stage, 0))
    stage.wait()
    assert said(stage) == []


def test_other_slots_may_change(stage: Stage) -> None:
    copy, other = stage.copy_operator("copy"), stage.filled("other")
    stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.submit()
    stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 2))
    stage.wait()
    assert said(stage) == []


def test_a_list_that_never_runs_needs_nothing(stage: Stage) -> None:
    copy, other = stage.copy_operator("copy"), stage.filled("other")
    stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))
    stage.list.close()
    stage.list.reset(stage.allocator)
    stage.list.set_descriptor_heaps([stage.heap])
    stage.table(copy, first=0).bind_inputs([Binding(other)])
    assert said(stage) == []


def test_a_table_recorded_in_two_lists_is_needed_by_both(stage: Stage) -> None:
    copy, image = stage.copy_operator("copy"), stage.filled("image")
    table = stage.dispatch(copy, [image], [stage.buffer("output")])
    kind = d3d12.CommandListType.COMPUTE
    allocator = stage.device.create_command_allocator(kind)
    second = stage.device.create_command_list(0, kind, allocator)
    second.set_descriptor_heaps([stage.heap])
    stage.recorder.record_dispatch(second, copy, table)
    second.close()
    second.reset(allocator)  # the later recording is gone
    with reports("BIND_LATE"):
        table.bind_inputs([Binding(image)])


def test_a_gpu_that_is_done_early_is_no_excuse(stage: Stage) -> None:
    """What counts is what the program awaited, not how far the emulated GPU happened to come."""
    copy, other = stage.copy_operator("copy"), stage.filled("other")
    stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.submit()
    stage.device.context.gpu.drain()
    with reports("DESC_OVERWRITTEN"):
        stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))


def test_looking_at_the_fence_is_as_good_as_waiting(stage: Stage) -> None:
    copy, other = stage.copy_operator("copy"), stage.filled("other")
    stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.submit()
    stage.device.context.gpu.drain()
    assert stage.fence.get_completed_value() == stage.fence_value
    stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))
    assert said(stage) == []


def test_without_a_signal_the_advice_is_to_queue_one(stage: Stage) -> None:
    copy, other = stage.copy_operator("copy"), stage.filled("other")
    stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.list.close()
    stage.queue.execute_command_lists([stage.list])
    with reports("DESC_OVERWRITTEN") as caught:
        stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))
    assert "no Signal is queued" in caught.text


def test_constant_and_shader_resource_views_overwrite_too(stage: Stage) -> None:
    copy, other = stage.copy_operator("copy"), stage.filled("other")
    stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.submit()
    address = other.get_gpu_virtual_address()
    with reports("DESC_OVERWRITTEN") as caught:
        desc = d3d12.ConstantBufferViewDesc(address, 256)
        stage.device.create_constant_buffer_view(desc, slot(stage, 0))
    assert "CBV of bytes" in caught.text


def test_clears_need_their_descriptor(stage: Stage) -> None:
    target, other = stage.buffer("target"), stage.filled("other")
    hidden = descriptor_heap(stage, 1, visible=False)
    cpu = hidden.get_cpu_descriptor_handle_for_heap_start()
    gpu = stage.heap.get_gpu_descriptor_handle_for_heap_start()
    for handle in (cpu, slot(stage, 0)):
        stage.device.create_unordered_access_view(target, None, raw_view(64), handle)
    stage.list.resource_barrier(
        [d3d12.ResourceBarrier.transition(target, States.COMMON, States.UNORDERED_ACCESS)]
    )
    stage.list.clear_unordered_access_view_uint(gpu, cpu, target, (1, 1, 1, 1))
    stage.submit()
    with reports("DESC_OVERWRITTEN") as caught:
        stage.device.create_unordered_access_view(other, None, raw_view(64), slot(stage, 0))
    assert "ClearUnorderedAccessViewUint" in caught.text


def test_a_volatile_operator_may_be_bound_by_views_until_its_list_is_executed(stage: Stage) -> None:
    copy = stage.compile(identity(), "copy", flags=VOLATILE)
    stage.initialize(copy)
    image, output = constant(stage, "image", 3), stage.buffer("output")
    stage.recorder.record_dispatch(stage.list, copy, stage.table(copy))
    for index, buffer in enumerate((output, output)):
        stage.device.create_unordered_access_view(buffer, None, raw_view(64), slot(stage, index))
    stage.device.create_unordered_access_view(image, None, raw_view(64), slot(stage, 0))
    stage.submit()
    with reports("DESC_OVERWRITTEN"):
        stage.device.create_unordered_access_view(output, None, raw_view(64), slot(stage, 0))
    stage.device.create_unordered_access_view(image, None, raw_view(64), slot(stage, 0))
    stage.wait()
    assert read(stage, output) == [3, 3, 3, 3]


def test_released_heaps_are_forgotten(stage: Stage) -> None:
    table: ByPlace[int] = ByPlace(stage.device.context.gpu.descriptors)
    heap = descriptor_heap(stage, 5000, visible=True)
    first, kept = heap.get_gpu_descriptor_handle_for_heap_start(), stage.heap
    for place in (kept.get_gpu_descriptor_handle_for_heap_start(), *range(first, first + 32 * 5000, 32)):
        table[place] = place
    table.tidy()
    assert len(table) == 5001
    heap.release()
    table._limit = 5000
    table.tidy()
    assert list(table) == [kept.get_gpu_descriptor_handle_for_heap_start()]


def test_nothing_of_what_was_executed_is_kept(stage: Stage) -> None:
    layer = Layer(stage)
    layer.run()
    alive = weakref.ref(layer.compiled)
    del layer
    gc.collect()
    assert alive() is None


# --- descriptors in two places ---


class Staged:
    """Tables that write into a heap of the CPU, and copies to where the GPU reads."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.copy = stage.copy_operator("copy")
        self.heap = descriptor_heap(stage, 2, visible=False)
        self.cpu = self.heap.get_cpu_descriptor_handle_for_heap_start()

    def table(self, index: int, source: Any, target: Any) -> Any:
        gpu = self.stage.heap.get_gpu_descriptor_handle_for_heap_start() + 32 * index
        table = self.stage.dml.create_binding_table(dml.BindingTableDesc(self.copy, self.cpu, gpu, 2))
        table.bind_inputs([Binding(source)])
        table.bind_outputs([Binding(target)])
        return table

    def arrive(self, index: int) -> None:
        self.stage.device.copy_descriptors_simple(2, slot(self.stage, index), self.cpu, KIND)


def test_one_staging_range_serves_many_tables(stage: Stage) -> None:
    staged = Staged(stage)
    sources = [constant(stage, f"source {i}", i) for i in range(2)]
    targets = [stage.buffer(f"target {i}") for i in range(2)]
    tables = []
    for i in range(2):
        tables.append(staged.table(2 * i, sources[i], targets[i]))
        staged.arrive(2 * i)
    for table in tables:
        stage.recorder.record_dispatch(stage.list, staged.copy, table)
    stage.run()
    assert [read(stage, each)[0] for each in targets] == [0, 1]
    assert said(stage) == []


def test_descriptors_may_be_copied_after_record_dispatch(stage: Stage) -> None:
    staged = Staged(stage)
    target = stage.buffer("target")
    table = staged.table(0, constant(stage, "source", 5), target)
    stage.recorder.record_dispatch(stage.list, staged.copy, table)
    staged.arrive(0)
    stage.run()
    assert read(stage, target) == [5, 5, 5, 5]
    assert said(stage) == []


def test_descriptors_copied_after_execute_command_lists_are_late(stage: Stage) -> None:
    staged = Staged(stage)
    table = staged.table(0, stage.filled("source"), stage.buffer("target"))
    stage.recorder.record_dispatch(stage.list, staged.copy, table)
    stage.list.close()
    with reports("DESC_NOT_COPIED"):
        stage.queue.execute_command_lists([stage.list])
    staged.arrive(0)  # told once is enough
    assert said(stage) == ["DESC_NOT_COPIED"]


def test_the_wrong_descriptors_were_copied(stage: Stage) -> None:
    """The copy came before the second bind: what the GPU reads is that of the first table."""
    staged = Staged(stage)
    first, second, target = constant(stage, "first", 1), constant(stage, "second", 2), stage.buffer("target")
    staged.table(0, first, target)
    staged.arrive(0)
    table = staged.table(0, second, target)
    stage.recorder.record_dispatch(stage.list, staged.copy, table)
    with reports("DESC_NOT_COPIED") as caught:
        stage.submit()
    assert (
        "given UAV of bytes [0, 256) of buffer 'first'; expected UAV of bytes [0, 256) of buffer 'second'"
        in caught.text
    )


def test_copied_and_then_overwritten_is_another_mistake(stage: Stage) -> None:
    staged = Staged(stage)
    table = staged.table(0, stage.filled("source"), stage.buffer("target"))
    stage.recorder.record_dispatch(stage.list, staged.copy, table)
    staged.arrive(0)
    stage.device.create_unordered_access_view(stage.buffer("other"), None, raw_view(64), slot(stage, 1))
    with reports("DESC_OVERWRITTEN"):
        stage.submit()


def test_a_volatile_operator_bound_in_another_heap_must_be_copied_as_well(stage: Stage) -> None:
    staged = Staged(stage)
    staged.copy = stage.compile(identity(), "copy", flags=VOLATILE)
    stage.initialize(staged.copy)
    table = staged.table(0, stage.filled("source"), stage.buffer("target"))
    stage.recorder.record_dispatch(stage.list, staged.copy, table)
    with reports("DESC_NOT_COPIED"):
        stage.submit()


# --- tables that share descriptors ---


def test_tables_may_share_descriptors_one_after_the_other(stage: Stage) -> None:
    copy, output = stage.copy_operator("copy"), stage.buffer("output")
    for value in range(3):
        table = stage.table(copy, first=0)
        table.bind_inputs([Binding(constant(stage, f"image {value}", value))])
        table.bind_outputs([Binding(output)])
        stage.recorder.record_dispatch(stage.list, copy, table)
        stage.run()
        assert read(stage, output)[0] == value
    assert said(stage) == []


@pytest.mark.parametrize("is_closed", [False, True])
def test_a_list_that_was_never_executed_and_is_gone_needs_no_descriptors(
    stage: Stage, is_closed: bool
) -> None:
    copy, image, output = stage.copy_operator("copy"), stage.filled("image"), stage.buffer("output")
    allocator = stage.device.create_command_allocator(DIRECT)
    lost = stage.device.create_command_list(0, DIRECT, allocator)
    lost.set_descriptor_heaps([stage.heap])
    table = stage.table(copy, first=0)
    table.bind_inputs([Binding(image)])
    table.bind_outputs([Binding(output)])
    stage.recorder.record_dispatch(lost, copy, table)
    if is_closed:
        lost.close()
    del lost
    gc.collect()
    other = stage.table(copy, first=0)
    other.bind_inputs([Binding(stage.filled("other"))])  # DESC_RANGE_SHARED while the list is there
    allocator.reset()  # LIST_OPEN while the list is open
    stage.device.create_command_list(0, DIRECT, allocator).close()  # ALLOC_SHARED while it is open
    assert said(stage) == []


def test_a_table_whose_descriptors_are_gone_cannot_be_recorded_again(stage: Stage) -> None:
    copy, image, output = stage.copy_operator("copy"), stage.filled("image"), stage.buffer("output")
    first = stage.dispatch(copy, [image], [output])
    stage.run()
    second = stage.table(copy, first=0)
    second.bind_inputs([Binding(stage.filled("other"))])
    with reports("DESC_RANGE_SHARED"):
        stage.recorder.record_dispatch(stage.list, copy, first)
    first.bind_inputs([Binding(image)])
    stage.recorder.record_dispatch(stage.list, copy, first)
    stage.run()


def test_two_tables_that_bind_the_same_are_one(stage: Stage) -> None:
    copy, image, output = stage.copy_operator("copy"), stage.filled("image"), stage.buffer("output")
    tables = [stage.table(copy, first=0) for _ in range(2)]
    for table in tables:
        table.bind_inputs([Binding(image)])
        table.bind_outputs([Binding(output)])
    stage.recorder.record_dispatch(stage.list, copy, tables[0])
    stage.run()
    assert said(stage) == []


@pytest.mark.parametrize("method", ["bind_inputs", "bind_outputs", "reset", "record_dispatch"])
def test_threads_take_turns_or_are_told(stage: Stage, method: str) -> None:
    copy = stage.copy_operator("copy")
    table = stage.dispatch(copy, [stage.filled("image")], [stage.buffer("output")])
    stage.run()
    bindings = [Binding(stage.filled("other"))]
    calls: dict[str, Callable[[], None]] = {
        "bind_inputs": lambda: table.bind_inputs(bindings),
        "bind_outputs": lambda: table.bind_outputs(bindings),
        "reset": lambda: table.reset(None),
        "record_dispatch": lambda: stage.recorder.record_dispatch(stage.list, copy, table),
    }
    raised: list[Error] = []

    def work() -> None:
        try:
            calls[method]()
        except Error as error:
            raised.append(error)

    with table.alone("BindInputs"):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert [each.report.id for each in raised] == ["BIND_THREAD"]
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    assert len(raised) == 1


def test_at_strictness_runtime_nobody_looks() -> None:
    stage = Stage(Strictness.RUNTIME)
    copy, output = stage.copy_operator("copy"), stage.buffer("output")
    image, other = constant(stage, "image", 1), constant(stage, "other", 9)
    table = stage.dispatch(copy, [image], [output])
    stage.submit()
    table.bind_inputs([Binding(other)])
    stage.wait()
    assert read(stage, output) == [9, 9, 9, 9]


# --- persistent resources ---


class Layer:
    """A product that owns its weights, in a persistent buffer."""

    def __init__(self, stage: Stage, persistent: Any = None) -> None:
        self.stage = stage
        self.compiled = stage.compile(product(OWNED), "layer")
        self.persistent = persistent or stage.buffer("persistent", 512)
        self.weights = stage.filled("weights")
        self.image, self.output = stage.filled("image"), stage.buffer("output")
        self.give()

    def give(self) -> None:
        give_weights(self.stage, self.compiled, self.weights, self.persistent)

    def run(self) -> None:
        run_with_weights(self.stage, self.compiled, self.image, self.output, self.persistent)


def test_2_8_initialised_twice_is_tolerated(stage: Stage) -> None:
    layer = Layer(stage)
    layer.run()
    layer.give()
    layer.run()
    assert said(stage) == []


def test_2_8_initialised_again_after_the_buffer_was_used_for_something_else(stage: Stage) -> None:
    layer = Layer(stage)
    stage.list.copy_buffer_region(layer.persistent, 0, layer.image, 0, 64)
    stage.run()
    layer.give()
    layer.run()
    assert said(stage) == []


def test_2_8_a_buffer_that_is_not_used_any_more_may_be_written(stage: Stage) -> None:
    layer = Layer(stage)
    layer.run()
    stage.list.copy_buffer_region(layer.persistent, 0, layer.image, 0, 64)
    stage.run()
    assert said(stage) == []


def test_2_8_bytes_behind_the_persistent_resource_are_free(stage: Stage) -> None:
    layer = Layer(stage)
    size = layer.compiled.get_binding_properties().persistent_resource_size
    stage.list.copy_buffer_region(layer.persistent, size, layer.image, 0, 64)
    stage.run()
    layer.run()
    assert said(stage) == []


@pytest.mark.parametrize("hit", [False, True])
def test_2_8_exactly_the_elements_of_an_output_count(stage: Stage, hit: bool) -> None:
    """An output of two elements, 1 KiB apart: the persistent resource stands between them or not."""
    pool = stage.buffer("pool", 2048)
    layer = Layer(stage, Binding(pool, 512, 256))
    apart = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor([2]), output_tensor=tensor([2], [128 if hit else 256])
    )
    spread = stage.compile(apart, "spread")
    stage.initialize(spread)
    stage.dispatch(spread, [stage.filled("two")], [Binding(pool)])
    stage.run()
    if not hit:
        layer.run()
        assert said(stage) == []
        return
    with reports("BIND_PERSISTENT_CHANGED") as caught:
        layer.run()
    assert "first byte 512 of buffer 'pool' through OutputTensor" in caught.text


def test_2_8_a_clear_of_an_alias_is_a_write(stage: Stage) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(TILE))
    desc = d3d12.ResourceDesc.buffer(512, UAV)
    persistent, alias = (stage.device.create_placed_resource(heap, 0, desc, States.COMMON) for _ in range(2))
    alias.set_name("alias")
    layer = Layer(stage, persistent)
    first = stage.descriptors_used
    hidden = descriptor_heap(stage, 1, visible=False)
    cpu = hidden.get_cpu_descriptor_handle_for_heap_start()
    gpu = stage.heap.get_gpu_descriptor_handle_for_heap_start() + 32 * first
    for handle in (cpu, slot(stage, first)):
        stage.device.create_unordered_access_view(alias, None, raw_view(4, 16), handle)
    stage.descriptors_used += 1
    stage.list.resource_barrier(
        [d3d12.ResourceBarrier.transition(alias, States.COMMON, States.UNORDERED_ACCESS)]
    )
    stage.list.clear_unordered_access_view_uint(gpu, cpu, alias, (0, 0, 0, 0))
    stage.run()
    with reports("BIND_PERSISTENT_CHANGED") as caught:
        layer.run()
    assert "ClearUnorderedAccessViewUint" in caught.text
    assert "first byte 64 of buffer 'alias'" in caught.text


def reserved(stage: Stage, name: str, heap: Any, tile: int) -> Any:
    """A reserved buffer of one tile, over a tile of a heap."""
    desc = d3d12.ResourceDesc.buffer(TILE, UAV)
    made = stage.device.create_reserved_resource(desc, States.COMMON)
    made.set_name(name)
    remap(stage, made, heap, tile)
    return made


def remap(stage: Stage, buffer: Any, heap: Any, tile: int) -> None:
    stage.queue.update_tile_mappings(
        buffer, heap=heap, heap_range_start_offsets=[tile], range_tile_counts=[1]
    )


@pytest.mark.parametrize("tile", [0, 1])
def test_2_8_writes_through_tiles(stage: Stage, tile: int) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    layer = Layer(stage, reserved(stage, "persistent", heap, 0))
    other = reserved(stage, "other", heap, tile)
    stage.list.copy_buffer_region(other, 100, layer.image, 0, 64)
    stage.run()
    if tile == 1:
        layer.run()
        assert said(stage) == []
        return
    with reports("BIND_PERSISTENT_CHANGED") as caught:
        layer.run()
    assert "first byte 100 of buffer 'other'" in caught.text


@pytest.mark.dmlemu(expect=["MEM_UNINIT*"])
@pytest.mark.parametrize("tile", [0, 1])
def test_2_8_other_tiles_under_a_persistent_resource(stage: Stage, tile: int) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    persistent = reserved(stage, "persistent", heap, 0)
    layer = Layer(stage, persistent)
    remap(stage, persistent, heap, tile)
    if tile == 0:  # the same one
        layer.run()
        assert said(stage) == []
        return
    with pytest.raises(Error) as caught:
        layer.run()
    assert "BIND_PERSISTENT_CHANGED" in said(stage), caught.value
    assert any("UpdateTileMappings" in each.report.message for each in stage.device.reports)


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_2_8_a_temporary_resource_over_weights_destroys_them(stage: Stage) -> None:
    pool = stage.buffer("pool", 1024)
    layer = Layer(stage, Binding(pool, 0, 256))
    half = half_product(stage, "half")
    a, b, output = (stage.filled(name) for name in ("a", "b", "c"))
    table = stage.table(half)
    table.bind_inputs([Binding(a), Binding(b), None])
    table.bind_outputs([Binding(output)])
    table.bind_temporary_resource(Binding(pool, 0, 512))
    stage.recorder.record_dispatch(stage.list, half, table)
    stage.run()
    with reports("BIND_PERSISTENT_CHANGED") as caught:
        layer.run()
    assert "TemporaryResource" in caught.text


# --- initialisation across queues ---


def start_elsewhere(stage: Stage, *, early: bool = False) -> tuple[Any, OtherQueue]:
    """An operator whose initializer was handed to another queue; ``early``: after a signal."""
    copy = stage.compile(identity(), "copy")
    loading = other_queue(stage, "DIRECT")
    if early:
        loading.fence_value += 1
        loading.queue.signal(loading.fence, loading.fence_value)
    initializer = stage.dml.create_operator_initializer([copy])
    stage.recorder.record_dispatch(loading.list, initializer, stage.table(initializer))
    loading.submit()
    return copy, loading


def test_2_8_the_host_may_wait_for_the_initializer(stage: Stage) -> None:
    image, output = stage.filled("image"), stage.buffer("output")
    copy, loading = start_elsewhere(stage)
    loading.wait()
    stage.dispatch(copy, [image], [output])
    stage.run()
    assert said(stage) == []


def test_2_8_a_wait_for_too_low_a_value_orders_nothing(stage: Stage) -> None:
    image, output = stage.filled("image"), stage.buffer("output")
    copy, loading = start_elsewhere(stage, early=True)
    stage.queue.wait(loading.fence, loading.fence_value - 1)
    stage.dispatch(copy, [image], [output])
    with reports("OP_NOT_INITIALIZED") as caught:
        stage.run()
    assert "Wait for fence 'direct' to reach 2" in caught.text


def test_2_8_that_the_initializer_happened_to_run_before_is_no_excuse(stage: Stage) -> None:
    image, output = stage.filled("image"), stage.buffer("output")
    copy, _ = start_elsewhere(stage)
    stage.device.context.gpu.drain()
    stage.dispatch(copy, [image], [output])
    with reports("OP_NOT_INITIALIZED"):
        stage.run()


def test_2_8_one_ordered_initializer_is_enough(stage: Stage) -> None:
    image, output = stage.filled("image"), stage.buffer("output")
    copy, _ = start_elsewhere(stage)
    stage.initialize(copy)
    stage.dispatch(copy, [image], [output])
    stage.run()
    assert said(stage) == []


# --- bindings that meet ---


def test_BT10_outputs_may_be_interleaved(stage: Stage) -> None:
    """The columns of one matrix as input and output: no element is shared."""
    columns = tensor([4, 4], [8, 1])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=columns, output_tensor=columns)
    copy = stage.compile(desc, "copy")
    stage.initialize(copy)
    matrix = stage.filled("matrix")
    stage.dispatch(copy, [Binding(matrix)], [Binding(matrix, 16)])
    stage.run()
    assert read(stage, matrix, 16) == [1, 2, 3, 4, 1, 2, 3, 4, 9, 10, 11, 12, 9, 10, 11, 12]
    assert said(stage) == []


def test_BT10_padding_of_an_output_may_be_overwritten(stage: Stage) -> None:
    """Bytes after the last element, up to TotalTensorSizeInBytes, are no place for an input."""
    padded = tensor([4], total_tensor_size_in_bytes=32)
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor([4]), output_tensor=padded)
    copy, pool = stage.compile(desc, "copy"), stage.filled("pool")
    stage.initialize(copy)
    with reports("BIND_ALIAS") as caught:
        stage.dispatch(copy, [Binding(pool, 16, 16)], [Binding(pool, 0, 32)])
    assert "a byte after the last element, which may be overwritten, of OutputTensor" in caught.text
    stage.dispatch(copy, [Binding(pool, 32, 16)], [Binding(pool, 0, 32)])


def test_BT10_graph_inputs_count_in_all_layouts_of_their_readers(stage: Stage) -> None:
    """Two nodes read one graph input, the even and the odd elements: together that is all of it."""
    nodes, inputs, outputs = [], [], []
    for i in range(2):
        desc = dml.ElementWiseIdentityOperatorDesc(
            input_tensor=tensor([4], [2], total_tensor_size_in_bytes=32) if i == 0 else tensor([8]),
            output_tensor=tensor([4] if i == 0 else [8]),
        )
        nodes.append(dml.OperatorGraphNodeDesc(stage.dml.create_operator(desc)))
        inputs.append(dml.InputGraphEdgeDesc(0, i, 0))
        outputs.append(dml.OutputGraphEdgeDesc(i, 0, i))
    graph = stage.dml.compile_graph(dml.GraphDesc(1, 2, nodes, inputs, outputs, []))
    slots = graph.inputs[0]
    seen = {touch.footprint.sizes for touch in aliasing.touches(graph, slots[0])}
    assert seen == {(4,), (8,)}


def test_BT10_a_volatile_operator_is_looked_at_when_it_is_executed(stage: Stage) -> None:
    layer = stage.compile(product(), "layer", flags=VOLATILE)
    stage.initialize(layer)
    a, b = stage.filled("a"), stage.filled("b")
    table = stage.table(layer)
    stage.recorder.record_dispatch(stage.list, layer, table)
    table.bind_inputs([Binding(a), Binding(b), None])
    table.bind_outputs([Binding(b)])
    with reports("BIND_ALIAS") as caught:
        stage.run()
    assert "OutputTensor (bytes [0, 64) of buffer 'b')" in caught.text


def test_BT10_in_place_through_tiles(stage: Stage) -> None:
    """An operator that may work in place may do so through two mappings of one tile."""
    copy = stage.copy_operator("copy")
    heap = stage.device.create_heap(d3d12.HeapDesc(2 * TILE))
    source, target = reserved(stage, "source", heap, 0), reserved(stage, "target", heap, 0)
    stage.list.copy_buffer_region(source, 0, stage.filled("image"), 0, 256)
    stage.run()
    stage.dispatch(copy, [source], [target])
    stage.run()
    with reports("BIND_ALIAS"):
        stage.dispatch(copy, [source], [Binding(target, 16)])
        stage.run()


LAYOUT = st.tuples(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6)), min_size=1, max_size=3),
    st.sampled_from([8, 16, 32]),
    st.integers(0, 12),
)


@given(LAYOUT, LAYOUT)
@settings(max_examples=part_of(300), deadline=None)
def test_meet_and_element_at_against_sets_of_bytes(a: Any, b: Any) -> None:
    def footprint(layout: Any) -> Footprint:
        dimensions, bits, start = layout
        sizes, strides = zip(*dimensions, strict=True)
        return Footprint(4096 + 4 * start, bits, sizes, strides)

    def covered(each: Footprint) -> dict[int, tuple[int, ...]]:
        found: dict[int, tuple[int, ...]] = {}
        width = each.element_bits // 8
        for index in indices(*map(range, each.sizes)):
            begin = each.address + width * sum(i * s for i, s in zip(index, each.strides, strict=True))
            for byte in range(begin, begin + width):
                found.setdefault(byte, index)
        return found

    first, second = footprint(a), footprint(b)
    shared = covered(first).keys() & covered(second).keys()
    assert meet(first, second) == min(shared, default=None)
    for byte in range(4090, 4096 + 100):
        assert element_at(first, byte) == covered(first).get(byte)


def bytes_of(place: Place) -> set[int]:
    """All that a tensor touches when it is bound there."""
    layout = place.slot.desc
    assert layout is not None
    strides = layout.effective_strides
    elements = indices(*map(range, layout.sizes))
    starts = [sum(i * s for i, s in zip(index, strides, strict=True)) for index in elements]
    return {place.address + 4 * start + byte for start in starts for byte in range(4)}


def meet_here(a: Footprint, b: Footprint) -> Meeting | None:
    byte = meet(a, b)
    return None if byte is None else Meeting(byte, byte)


INPUT_STRIDES = st.tuples(st.integers(0, 8), st.integers(0, 8))
OUTPUT_STRIDES = st.sampled_from([(3, 1), (1, 2), (5, 1), (1, 4), (3, 8)])
OFFSETS = st.tuples(*[st.integers(0, 6)] * 3)


def elements_of(place: Place) -> dict[int, set[tuple[int, int]]]:
    """The elements that stand at each byte."""
    assert place.slot.desc is not None
    rows, columns = place.slot.desc.effective_strides
    found: dict[int, set[tuple[int, int]]] = {}
    for i, j, byte in itertools.product(range(2), range(3), range(4)):
        found.setdefault(place.address + 4 * (i * rows + j * columns) + byte, set()).add((i, j))
    return found


@given(INPUT_STRIDES, INPUT_STRIDES, OUTPUT_STRIDES, OFFSETS)
@settings(max_examples=part_of(150), deadline=None)
def test_BT10_against_sets_of_bytes(a: Any, b: Any, output: Any, offsets: tuple[int, int, int]) -> None:
    """ADD over inputs of any layout: the output meets one of them just where a byte is shared."""
    tensors = [tensor((2, 3), strides) for strides in (a, b, output)]
    desc = dml.ElementWiseAddOperatorDesc(a_tensor=tensors[0], b_tensor=tensors[1], output_tensor=tensors[2])
    add = Stage().compile(desc, "add")
    slots = [*(slots[0] for slots in add.inputs), *add.outputs]
    places = [Place(each, 4096 + 16 * offset) for each, offset in zip(slots, offsets, strict=True)]
    target = places[2]
    clash = aliasing.find_clash(add, places, meet_here, lambda x, y: x.address == y.address)
    expected = [
        place
        for place in places[:2]
        if bytes_of(place) & bytes_of(target)
        and not (place.address == target.address and aliasing.one_layout(place.slot, target.slot))
    ]
    assert (clash is not None) == bool(expected)
    if clash is not None:
        shared = bytes_of(clash.first) & bytes_of(target)
        here, there = elements_of(clash.first), elements_of(target)
        differing = [byte for byte in shared if here[byte] != there[byte]]
        assert clash.byte == min(differing or shared), "the first byte that is another element to each"
        assert (clash.is_to_first == clash.is_to_second) == (not differing)


# --- what the GPU finds ---


def volatile_copy(stage: Stage) -> Any:
    copy = stage.compile(identity(), "copy", flags=VOLATILE)
    stage.initialize(copy)
    return copy


@pytest.mark.parametrize("strictness", list(Strictness))
def test_a_fault_removes_the_device_and_says_why(strictness: Strictness) -> None:
    stage = Stage(strictness)
    copy = volatile_copy(stage)
    stage.recorder.record_dispatch(stage.list, copy, stage.table(copy))
    stage.submit()
    if strictness is Strictness.RUNTIME:
        stage.fence.wait(stage.fence_value)
    else:
        with reports("DESC_UNINIT") as caught:
            stage.fence.wait(stage.fence_value)
        assert "InputTensor of the dispatch of compiled operator 'copy'" in caught.text
    assert stage.device.get_device_removed_reason().name == "DXGI_ERROR_DEVICE_HUNG"


def test_a_null_descriptor_is_no_tensor(stage: Stage) -> None:
    copy = volatile_copy(stage)
    stage.recorder.record_dispatch(stage.list, copy, stage.table(copy))
    stage.device.create_unordered_access_view(None, None, raw_view(16), slot(stage, 0))
    stage.submit()
    with reports("DESC_KIND") as caught:
        stage.fence.wait(stage.fence_value)
    assert "which holds a null descriptor" in caught.text
