"""Binding tables: rules BT1 to BT16, each violated alone, and legal uses."""

from __future__ import annotations

import itertools
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12, dml
from dmlemu.dml.binding import binding_checks, binding_table
from dmlemu.errors import Error, HResult, Strictness

from .world import F32, OWNED, UAV, Levels, World, add, gemm, half_gemm, identity, refused, tensor

Binding = dml.BufferBinding
Heap = d3d12.HeapType


@pytest.fixture
def world() -> World:
    return World()


def test_BT1_an_empty_table_needs_a_desc(world: World) -> None:
    table = world.dml.create_binding_table()
    with refused("BIND_TABLE_EMPTY", "BT1", ""):
        table.bind_inputs([Binding(world.buffer())])
    table.reset(world.table_desc(world.compile(identity())))
    table.bind_inputs([Binding(world.buffer())])
    assert world.works()


@pytest.mark.parametrize("wrong", [None, "conv", 5])
def test_BT1_dispatchable(world: World, wrong: Any) -> None:
    desc = dml.BindingTableDesc(wrong, 0, 0, 1)
    with refused("OP_FIELD_RANGE", "BT1", "Dispatchable"):
        world.dml.create_binding_table(desc)
    assert world.works()


def test_BT1_the_table_shares_the_device(world: World) -> None:
    table = world.table(world.compile(identity()))
    assert table.get_device() is world.dml
    assert table.dispatchable is not None


def test_BT2_size_in_descriptors(world: World) -> None:
    compiled = world.compile(identity())
    with refused("DESC_COUNT", "BT2", "SizeInDescriptors") as caught:
        world.dml.create_binding_table(world.table_desc(compiled, size=1))
    assert (caught.report.given, caught.report.expected) == ("1", ">= 2")
    world.dml.create_binding_table(world.table_desc(compiled, size=3))
    assert world.works()


@pytest.mark.parametrize("field", ["CPUDescriptorHandle", "GPUDescriptorHandle", "SizeInDescriptors"])
@pytest.mark.parametrize("wrong", [-1, None, 1.5])
def test_BT2_handles_and_size_are_numbers(world: World, field: str, wrong: Any) -> None:
    compiled = world.compile(identity())
    fitting = world.table_desc(compiled)
    numbers = {
        "CPUDescriptorHandle": fitting.cpu_descriptor_handle,
        "GPUDescriptorHandle": fitting.gpu_descriptor_handle,
        "SizeInDescriptors": fitting.size_in_descriptors,
    }
    with refused("OP_FIELD_RANGE", "BT2", field):
        world.dml.create_binding_table(dml.BindingTableDesc(compiled, *(numbers | {field: wrong}).values()))
    world.dml.create_binding_table(dml.BindingTableDesc(compiled, *numbers.values()))
    assert world.works()


def test_BT2_the_range_fits_its_heap(world: World) -> None:
    compiled = world.compile(identity())
    with refused("DESC_COUNT", "BT2", "CPUDescriptorHandle"):
        world.dml.create_binding_table(world.table_desc(compiled, first=63))
    world.dml.create_binding_table(world.table_desc(compiled, first=62))
    assert world.works()


def test_BT2_gpu_handle_of_a_visible_heap(world: World) -> None:
    desc = world.table_desc(world.compile(identity()))
    hidden = world.descriptors(8, visible=False)
    cpu = hidden.get_cpu_descriptor_handle_for_heap_start()
    with refused("DESC_HEAP_NOT_VISIBLE", "BT2", "GPUDescriptorHandle"):
        world.dml.create_binding_table(dml.BindingTableDesc(desc.dispatchable, cpu, cpu, 2))
    with refused("DESC_HEAP_KIND", "BT2", "CPUDescriptorHandle"):
        world.dml.create_binding_table(
            dml.BindingTableDesc(desc.dispatchable, 0, desc.gpu_descriptor_handle, 2)
        )
    assert world.works()


def test_BT2_another_heap_and_a_copy(world: World) -> None:
    """CPU handles of a heap that is not visible: the program copies the range before it submits."""
    compiled = world.compile(identity())
    world.initialize(compiled)
    hidden = world.descriptors(8, visible=False)
    visible = world.table_desc(compiled)
    cpu = hidden.get_cpu_descriptor_handle_for_heap_start()
    table = world.dml.create_binding_table(
        dml.BindingTableDesc(compiled, cpu, visible.gpu_descriptor_handle, 2)
    )
    source, target = world.buffer(), world.buffer()
    world.write(source, np.array([1, 2, 3, 4], np.float32))
    table.bind_inputs([Binding(source)])
    table.bind_outputs([Binding(target)])
    world.recorder.record_dispatch(world.list, compiled, table)
    kind = d3d12.DescriptorHeapType.CBV_SRV_UAV
    world.d3d12.copy_descriptors_simple(2, visible.cpu_descriptor_handle, cpu, kind)
    world.execute()
    assert world.read(target) == [1, 2, 3, 4]


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_BT2_the_heap_is_set_on_the_list(world: World) -> None:
    compiled = world.compile(identity())
    world.initialize(compiled)
    table = world.bound(compiled, [Binding(world.buffer())], [Binding(world.buffer())])
    for heaps in ([], [world.descriptors(8)]):
        world.list.set_descriptor_heaps(heaps)
        with refused("DESC_HEAP_NOT_SET", "BT2", "Bindings"):
            world.recorder.record_dispatch(world.list, compiled, table)
    world.list.set_descriptor_heaps([world.heap])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.works()


def test_BT3_no_descriptors_no_heap(world: World) -> None:
    """An initializer with nothing to do needs neither a heap nor valid handles."""
    compiled = world.compile(identity())
    initializer = world.dml.create_operator_initializer([compiled])
    assert initializer.get_binding_properties() == dml.BindingProperties(0, 0, 0)
    world.list.set_descriptor_heaps([])
    table = world.dml.create_binding_table(dml.BindingTableDesc(initializer, 2**64 - 1, 2**64 - 1, 0))
    table.bind_inputs()
    table.bind_outputs([None])
    table.bind_temporary_resource()
    table.bind_persistent_resource(None)
    world.recorder.record_dispatch(world.list, initializer, table)
    world.execute()
    assert world.works()


def test_BT3_compiled_operators_need_descriptors(world: World) -> None:
    assert world.compile(identity()).get_binding_properties().required_descriptor_count >= 1


def test_BT4_the_table_may_go_after_record_dispatch(world: World) -> None:
    compiled = world.compile(identity())
    world.initialize(compiled)
    source, target = world.buffer(), world.buffer()
    world.write(source, np.array([5, 6, 7, 8], np.float32))
    table = world.bound(compiled, [Binding(source)], [Binding(target)])
    world.recorder.record_dispatch(world.list, compiled, table)
    table.reset()
    table.release()
    del table
    world.execute()
    assert world.read(target) == [5, 6, 7, 8]


@pytest.mark.parametrize("extra", [[], [None, None]], ids=["too few", "too many"])
def test_BT5_count_includes_optional_tensors(world: World, extra: list[None]) -> None:
    table = world.table(world.compile(gemm()))
    binding = Binding(world.buffer())
    with refused("BIND_COUNT", "BT5", "BindingCount") as caught:
        table.bind_inputs([binding, binding, *extra])
    assert caught.report.expected == "3"
    table.bind_inputs([binding, binding, None])
    assert world.works()


def test_BT5_output_count(world: World) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_COUNT", "BT5", "BindingCount"):
        table.bind_outputs([Binding(world.buffer())] * 2)
    assert world.works()


@pytest.mark.parametrize("wrong", [5, "inputs", {"InputTensor": None}])
def test_BT5_bindings_are_a_list(world: World, wrong: Any) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_TYPE", "BT5", "Bindings"):
        table.bind_inputs(wrong)
    with refused("BIND_TYPE", "BT6", "Bindings[0]"):
        table.bind_inputs([wrong])
    assert world.works()


def test_BT6_required_tensor_bound_as_none(world: World) -> None:
    table = world.table(world.compile(add(), name="sum"))
    with refused("BIND_TYPE", "BT6", "BTensor") as caught:
        table.bind_inputs([Binding(world.buffer()), dml.BindingDesc.none()])
    assert "DML_OPERATOR_ELEMENT_WISE_ADD" in caught.report.object
    for part in ("BTensor (binding 1)", "'sum'", "DML_BINDING_TYPE_NONE"):
        assert part in caught.report.message
    assert world.works()


def test_BT6_absent_tensor_bound_to_a_buffer(world: World) -> None:
    table = world.table(world.compile(gemm()))
    binding = Binding(world.buffer())
    with refused("BIND_TYPE", "BT6", "CTensor") as caught:
        table.bind_inputs([binding, binding, binding])
    assert "DML_BINDING_TYPE_BUFFER" in caught.report.message
    assert caught.report.hint == "bind DML_BINDING_TYPE_NONE"
    assert world.works()


def test_BT6_buffer_array_for_a_tensor(world: World) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_TYPE", "BT6", "InputTensor"):
        table.bind_inputs([dml.BufferArrayBinding([Binding(world.buffer())])])
    assert world.works()


@pytest.mark.parametrize(
    "desc",
    [
        dml.BindingDesc(dml.BindingType.BUFFER, None),
        dml.BindingDesc(dml.BindingType.NONE, Binding(None)),
        dml.BindingDesc(7, None),  # type: ignore[arg-type]
    ],
)
def test_BT6_type_and_desc_agree(world: World, desc: dml.BindingDesc) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_TYPE", "BT6", "Bindings[0]"):
        table.bind_inputs([desc])
    assert world.works()


def test_BT7_owned_input_at_execution(world: World) -> None:
    compiled = world.compile(gemm(flags=OWNED))
    binding = Binding(world.buffer())
    table = world.table(compiled)
    with refused("BIND_OWNED_BY_DML", "BT7", "BTensor"):
        table.bind_inputs([binding, binding, None])
    table.bind_inputs([binding, None, None])
    assert world.works()


def test_BT7_owned_input_missing_at_initialization(world: World) -> None:
    initializer = world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))])
    table = world.table(initializer)
    with refused("BIND_OWNED_BY_DML", "BT7", "CompiledOperators[0].BTensor"):
        table.bind_inputs([dml.BufferArrayBinding([None, None, None])])
    with refused("BIND_OWNED_BY_DML", "BT7", "CompiledOperators[0].ATensor"):
        binding = Binding(world.buffer())
        table.bind_inputs([dml.BufferArrayBinding([binding, binding, None])])
    assert world.works()


def test_BT8_resource_is_given(world: World) -> None:
    table = world.table(world.compile(identity()))
    for wrong in (None, "buffer"):
        with refused("BIND_TYPE", "BT8", "InputTensor.Buffer"):
            table.bind_inputs([Binding(wrong)])  # type: ignore[arg-type]
    assert world.works()


@pytest.mark.parametrize("offset", [4, 8, 17])
def test_BT8_offset_alignment(world: World, offset: int) -> None:
    table = world.table(world.compile(identity()))
    buffer = world.buffer(name="activations")
    with refused("BIND_OFFSET_ALIGN", "BT8", "InputTensor.Offset") as caught:
        table.bind_inputs([Binding(buffer, offset, 16)])
    assert "'activations'" in caught.report.message
    table.bind_inputs([Binding(buffer, 16, 16)])
    assert world.works()


def test_TN7_guaranteed_alignment_at_bind(world: World) -> None:
    table = world.table(world.compile(identity(guaranteed_base_offset_alignment=64)))
    buffer = world.buffer()
    with refused("BIND_OFFSET_ALIGN", "TN7", "InputTensor.Offset"):
        table.bind_inputs([Binding(buffer, 48, 16)])
    table.bind_inputs([Binding(buffer, 128, 16)])
    assert world.works()


def test_BT8_size(world: World) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_SIZE_SMALL", "BT8", "OutputTensor.SizeInBytes") as caught:
        table.bind_outputs([Binding(world.buffer(), 0, 12)])
    assert (caught.report.given, caught.report.expected) == ("12", ">= 16")
    table.bind_outputs([Binding(world.buffer(), 0, 64)])
    assert world.works()


@pytest.mark.parametrize("size", [4097 - 16, 2**63])
def test_BT8_range(world: World, size: int) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_RANGE", "BT8", "InputTensor.SizeInBytes"):
        table.bind_inputs([Binding(world.buffer(4096), 16, size)])
    table.bind_inputs([Binding(world.buffer(4096), 16, 4080)])
    assert world.works()


def test_BT8_range_tells_what_was_written(world: World) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_RANGE", "BT8", "InputTensor.SizeInBytes") as caught:
        table.bind_inputs([Binding(world.buffer(4096), 4080, 24)])
    assert "SizeInBytes (24) from Offset (4080)" in caught.report.message
    assert caught.report.given == "24" and caught.report.expected.startswith("<= 16,")


def test_BT8_offset_past_the_end(world: World) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_RANGE", "BT8", "InputTensor.Offset") as caught:
        table.bind_inputs([Binding(world.buffer(4096), 8192, 16)])
    assert caught.report.given == "8192"
    with refused("BIND_SIZE_SMALL", "BT8", "InputTensor.SizeInBytes"):
        table.bind_inputs([Binding(world.buffer(4096), 4096)])  # nothing is left
    assert world.works()


@pytest.mark.parametrize("wrong", [-16, 1.5, "16", True, 2**64])
def test_BT8_offset_is_a_number(world: World, wrong: Any) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_RANGE", "BT8", "InputTensor.Offset"):
        table.bind_inputs([Binding(world.buffer(), wrong, 16)])
    assert world.works()


def test_BT8_unordered_access(world: World) -> None:
    table = world.table(world.compile(identity()))
    plain = world.buffer(name="plain", flags=d3d12.ResourceFlags.NONE)
    with refused("BIND_NOT_UAV", "BT8", "InputTensor.Buffer") as caught:
        table.bind_inputs([Binding(plain)])
    assert "'plain'" in caught.report.message
    assert world.works()


@pytest.mark.parametrize("heap", [Heap.UPLOAD, Heap.READBACK])
def test_BT9_heap_type_at_execution(world: World, heap: d3d12.HeapType) -> None:
    table = world.table(world.compile(identity()))
    with refused("BIND_HEAP_TYPE", "BT9", "InputTensor.Buffer") as caught:
        table.bind_inputs([Binding(world.buffer(heap=heap))])
    assert (caught.report.given, caught.report.expected) == (heap.name, "DEFAULT")
    assert "DML_OPERATOR_ELEMENT_WISE_IDENTITY" in caught.report.object
    assert world.works()


CUSTOM = d3d12.HeapProperties(Heap.CUSTOM, d3d12.CpuPageProperty.WRITE_BACK, d3d12.MemoryPool.L0)


@pytest.mark.parametrize("heap", [Heap.UPLOAD, Heap.DEFAULT, CUSTOM], ids=["UPLOAD", "DEFAULT", "CUSTOM"])
def test_BT9_heaps_of_an_initializers_inputs(
    world: World, heap: d3d12.HeapType | d3d12.HeapProperties
) -> None:
    table = world.table(world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))]))
    table.bind_inputs([dml.BufferArrayBinding([None, Binding(world.buffer(heap=heap)), None])])
    assert world.works()


def test_BT9_initializer_never_reads_a_readback_heap(world: World) -> None:
    table = world.table(world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))]))
    field = "CompiledOperators[0].BTensor.Buffer"
    with refused("BIND_HEAP_TYPE", "BT9", field):
        binding = Binding(world.buffer(heap=Heap.READBACK))
        table.bind_inputs([dml.BufferArrayBinding([None, binding, None])])
    assert world.works()


def test_BT9_custom_heaps_came_with_feature_level_2_0() -> None:
    world = World(level=Levels.LEVEL_1_0)
    table = world.table(world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))]))
    with refused("BIND_HEAP_TYPE", "BT9", "CompiledOperators[0].BTensor.Buffer"):
        binding = Binding(world.buffer(heap=CUSTOM))
        table.bind_inputs([dml.BufferArrayBinding([None, binding, None])])
    assert world.works()


def test_BT9_persistent_resource_of_an_initializer(world: World) -> None:
    table = world.table(world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))]))
    with refused("BIND_HEAP_TYPE", "BT9", "PersistentResource[0].Buffer"):
        table.bind_outputs([Binding(world.buffer(heap=Heap.UPLOAD))])
    assert world.works()


TILE = 65536
TILES = 4


def mapped_tiles(world: World) -> tuple[d3d12.Resource, Any]:
    """A reserved buffer over the tiles of a CUSTOM heap, and the heap's bytes as mapped by the host."""
    heap = world.d3d12.create_heap(d3d12.HeapDesc(TILES * TILE, CUSTOM))
    desc = d3d12.ResourceDesc.buffer(TILES * TILE, UAV)
    reserved = world.d3d12.create_reserved_resource(desc, d3d12.ResourceStates.COMMON)
    world.queue.update_tile_mappings(reserved, heap=heap, heap_range_start_offsets=[0])
    placed = world.d3d12.create_placed_resource(heap, 0, desc, d3d12.ResourceStates.COMMON)
    return reserved, placed.map()


def test_BT9_the_host_may_write_to_tiles_of_a_bound_buffer() -> None:
    """A reserved buffer has no heap type; indices stay valid even if the host changes them meanwhile."""
    world = World(Strictness.RUNTIME)
    source, mapped = mapped_tiles(world)
    target, values = world.buffer(), np.asarray(mapped).view(np.float32)
    rows, columns = 1024, values.size - 2 * 1024  # rows that overlap: the kernel takes long over few bytes
    compiled = prepared(
        world,
        dml.ArgmaxOperatorDesc(
            input_tensor=tensor(rows, columns, strides=(0, 0, 2, 1)),
            output_tensor=dml.BufferTensorDesc(dml.TensorDataType.UINT32, (1, 1, rows, 1)),
            axes=(3,),
            axis_direction=dml.AxisDirection.INCREASING,
        ),
    )
    world.execute()
    over = threading.Event()

    def write() -> None:  # the largest index changes a moment later
        for largest in itertools.cycle(range(1, 1000)):
            values[::32] = largest
            if over.is_set():
                return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(10):
            table = world.bound(compiled, [Binding(source)], [Binding(target)])
            world.recorder.record_dispatch(world.list, compiled, table)
            world.execute()
            assert max(world.read(target, np.uint32, rows)) < columns
    finally:
        over.set()
        thread.join()


# --- BT10: written bytes overlap nothing else ---


def prepared(world: World, desc: dml.OperatorDesc) -> dml.CompiledOperator:
    compiled = world.compile(desc)
    world.initialize(compiled)
    return compiled


def test_BT10_in_place(world: World) -> None:
    """IDENTITY may work in place: same range, same layout."""
    compiled = prepared(world, identity())
    buffer = world.buffer()
    world.write(buffer, np.array([1, 2, 3, 4], np.float32), 32)
    table = world.bound(compiled, [Binding(buffer, 32, 16)], [Binding(buffer, 32, 16)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(buffer, offset=32) == [1, 2, 3, 4]


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_BT10_in_place_at_another_offset(world: World) -> None:
    buffer = world.buffer()
    wide = dml.BufferTensorDesc(F32, (1, 1, 2, 4))
    compiled = prepared(world, dml.ElementWiseIdentityOperatorDesc(input_tensor=wide, output_tensor=wide))
    table = world.bound(compiled, [Binding(buffer, 0, 32)], [Binding(buffer, 16, 32)])
    with refused("BIND_ALIAS", "BT10", "OutputTensor") as caught:
        world.recorder.record_dispatch(world.list, compiled, table)
    assert "bytes [16, 48)" in caught.report.message
    assert "bytes [0, 32)" in caught.report.message
    table.bind_outputs([Binding(buffer, 32, 32)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.works()


def test_BT10_in_place_with_another_layout(world: World) -> None:
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor(2, 2), output_tensor=tensor(2, 2, strides=(4, 4, 1, 2))
    )
    compiled, buffer = prepared(world, desc), world.buffer()
    table = world.bound(compiled, [Binding(buffer)], [Binding(buffer)])
    with refused("BIND_ALIAS", "BT10", "OutputTensor") as caught:
        world.recorder.record_dispatch(world.list, compiled, table)
    assert "strides" in caught.report.message
    assert world.works()


def test_BT10_operators_that_cannot_work_in_place(world: World) -> None:
    compiled, buffer = prepared(world, gemm()), world.buffer()
    other = Binding(world.buffer())
    table = world.bound(compiled, [Binding(buffer), other, None], [Binding(buffer)])
    with refused("BIND_ALIAS", "BT10", "OutputTensor"):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.works()


def test_BT10_inputs_may_overlap(world: World) -> None:
    compiled, source, target = prepared(world, add()), world.buffer(), world.buffer()
    world.write(source, np.array([1, 2, 3, 4], np.float32))
    table = world.bound(compiled, [Binding(source), Binding(source)], [Binding(target)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(target) == [2, 4, 6, 8]


def nonzero() -> dml.OperatorDesc:
    return dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=tensor(4),
        output_count_tensor=dml.BufferTensorDesc(dml.TensorDataType.UINT32, (1, 1, 1, 1)),
        output_coordinates_tensor=dml.BufferTensorDesc(dml.TensorDataType.UINT32, (1, 1, 4, 4)),
    )


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_BT10_outputs_may_not_overlap(world: World) -> None:
    compiled, buffer = prepared(world, nonzero()), world.buffer()
    source = [Binding(world.buffer())]
    table = world.bound(compiled, source, [Binding(buffer, 48, 16), Binding(buffer, 0, 64)])
    with refused("BIND_OUT_OUT", "BT10", "OutputCoordinatesTensor"):
        world.recorder.record_dispatch(world.list, compiled, table)
    table.bind_outputs([Binding(buffer, 64, 16), Binding(buffer, 0, 64)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.works()


def test_BT10_sees_through_placed_resources(world: World) -> None:
    """Two placed buffers over one heap are the same bytes, at different addresses."""
    heap = world.d3d12.create_heap(d3d12.HeapDesc(1 << 20))
    common = d3d12.ResourceStates.COMMON
    desc = d3d12.ResourceDesc.buffer(4096, UAV)
    a, b = (world.d3d12.create_placed_resource(heap, 0, desc, common) for _ in range(2))
    compiled = prepared(world, gemm())
    table = world.bound(compiled, [Binding(a), Binding(world.buffer()), None], [Binding(b)])
    with refused("BIND_ALIAS", "BT10", "OutputTensor"):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.works()


# --- BT11, BT12: temporary and persistent resources ---


def test_BT11_needed(world: World) -> None:
    table = world.table(world.compile(half_gemm()))
    with refused("BIND_TEMP_MISSING", "BT11", "TemporaryResource"):
        table.bind_temporary_resource(None)
    assert world.works()


def test_BT11_not_needed(world: World) -> None:
    table = world.table(world.compile(identity()))
    table.bind_temporary_resource(None)
    table.bind_temporary_resource(dml.BindingDesc.none())
    with refused("BIND_TYPE", "BT11", "TemporaryResource"):
        table.bind_temporary_resource(Binding(world.buffer()))
    assert world.works()


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_BT11_not_bound_at_all(world: World) -> None:
    compiled = prepared(world, half_gemm())
    buffers = [Binding(world.buffer()) for _ in range(3)]
    table = world.bound(compiled, [*buffers[:2], None], buffers[2:])
    with refused("BIND_TEMP_MISSING", "BT11", "TemporaryResource"):
        world.recorder.record_dispatch(world.list, compiled, table)
    table.bind_temporary_resource(Binding(world.buffer()))
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.works()


def test_BT11_alignment_and_size(world: World) -> None:
    compiled = world.compile(half_gemm())
    size = compiled.get_binding_properties().temporary_resource_size
    assert size > 0
    table, buffer = world.table(compiled), world.buffer()
    with refused("BIND_OFFSET_ALIGN", "BT11", "TemporaryResource.Offset"):
        table.bind_temporary_resource(Binding(buffer, 128, size))
    with refused("BIND_TEMP_SMALL", "BT11", "TemporaryResource.SizeInBytes"):
        table.bind_temporary_resource(Binding(buffer, 256, size - 4))
    with refused("BIND_HEAP_TYPE", "BT9", "TemporaryResource.Buffer"):
        table.bind_temporary_resource(Binding(world.buffer(heap=Heap.UPLOAD)))
    table.bind_temporary_resource(Binding(buffer, 256, size + 256))
    assert world.works()


def test_BT11_temporary_meets_no_tensor(world: World) -> None:
    compiled = prepared(world, half_gemm())
    buffers = [Binding(world.buffer()) for _ in range(3)]
    table = world.bound(compiled, [*buffers[:2], None], buffers[2:])
    table.bind_temporary_resource(Binding(buffers[0].buffer))
    with refused("BIND_ALIAS", "BT10", "TemporaryResource"):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.works()


def test_BT12_needed(world: World) -> None:
    compiled = world.compile(gemm(flags=OWNED))
    table, buffer = world.table(compiled), world.buffer()
    with refused("BIND_PERSISTENT_MISSING", "BT12", "PersistentResource"):
        table.bind_persistent_resource(None)
    with refused("BIND_OFFSET_ALIGN", "BT12", "PersistentResource.Offset"):
        table.bind_persistent_resource(Binding(buffer, 16))
    with refused("BIND_PERSISTENT_SMALL", "BT12", "PersistentResource.SizeInBytes"):
        table.bind_persistent_resource(Binding(buffer, 0, 16))
    table.bind_persistent_resource(Binding(buffer))
    assert world.works()


Bind = Callable[[dml.BindingTable, Any], None]
ONE_BUFFER = pytest.mark.parametrize(
    ("rule", "desc", "bind"),
    [
        ("BT11", half_gemm(), dml.BindingTable.bind_temporary_resource),
        ("BT12", gemm(flags=OWNED), dml.BindingTable.bind_persistent_resource),
    ],
    ids=["BT11", "BT12"],
)
WRONG_BUFFERS: dict[str, tuple[Callable[[World], Any], str, str]] = {
    "buffer": (lambda world: Binding(None), "BIND_TYPE", "Buffer"),
    "no UAV": (lambda world: Binding(world.buffer(flags=d3d12.ResourceFlags.NONE)), "BIND_NOT_UAV", "Buffer"),
    "number": (lambda world: Binding(world.buffer(), -256), "BIND_RANGE", "Offset"),
    "alignment": (lambda world: Binding(world.buffer(), 128), "BIND_OFFSET_ALIGN", "Offset"),
    "small": (lambda world: Binding(world.buffer(), 0, 4), "BIND_{}_SMALL", "SizeInBytes"),
    "offset": (lambda world: Binding(world.buffer(4096), 8192, 1), "BIND_RANGE", "Offset"),
    "range": (lambda world: Binding(world.buffer(4096), 256, 4096), "BIND_RANGE", "SizeInBytes"),
}


@ONE_BUFFER
@pytest.mark.parametrize("wrong", WRONG_BUFFERS)
def test_BT11_and_BT12_demand_of_a_buffer_what_BT8_does(
    world: World, rule: str, desc: dml.OperatorDesc, bind: Bind, wrong: str
) -> None:
    table = world.table(world.compile(desc))
    make, check, member = WRONG_BUFFERS[wrong]
    name, field = {"BT11": ("TEMP", "TemporaryResource"), "BT12": ("PERSISTENT", "PersistentResource")}[rule]
    with refused(check.format(name), rule, f"{field}.{member}"):
        bind(table, make(world))
    bind(table, Binding(world.buffer(4096), 256, 3840))
    assert world.works()


def test_BT12_not_needed(world: World) -> None:
    compiled = world.compile(identity())
    initializer = world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))])
    for dispatchable in (compiled, initializer):
        table = world.table(dispatchable)
        table.bind_persistent_resource(None)
        with refused("BIND_TYPE", "BT12", "PersistentResource"):
            table.bind_persistent_resource(Binding(world.buffer()))
    assert world.works()


def test_BT12_not_bound_at_all(world: World) -> None:
    compiled = world.compile(gemm(flags=OWNED))
    table = world.bound(compiled, [Binding(world.buffer()), None, None], [Binding(world.buffer())])
    with refused("BIND_PERSISTENT_MISSING", "BT12", "PersistentResource"):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.works()


def test_BT13_released_buffer(world: World) -> None:
    table, buffer = world.table(world.compile(identity())), world.buffer(name="gone")
    buffer.release()
    with refused("OBJECT_DELETED_IN_USE", "BT13", "InputTensor.Buffer"):
        table.bind_inputs([Binding(buffer)])
    assert world.works()


def test_BT13_a_released_table_keeps_no_buffer(world: World) -> None:
    compiled = world.compile(identity())
    source, target = world.buffer(flags=UAV), world.buffer()  # the session does not know the source
    table = world.bound(compiled, [Binding(source)], [Binding(target)])
    gone = weakref.ref(source)
    del source
    assert gone() is not None
    table.release()
    assert gone() is None


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_BT13_one_temporary_for_several_dispatches(world: World) -> None:
    compiled = prepared(world, half_gemm())
    temporary = Binding(world.buffer())
    for first in (0, 10):
        buffers = [Binding(world.buffer()) for _ in range(3)]
        table = world.bound(compiled, [*buffers[:2], None], buffers[2:], first)
        table.bind_temporary_resource(temporary)
        world.recorder.record_dispatch(world.list, compiled, table)
        world.list.resource_barrier([d3d12.ResourceBarrier.uav(temporary.buffer)])
    world.execute()
    assert world.works()


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_BT14_rebinding_too_early(world: World) -> None:
    compiled = prepared(world, identity())
    source, target = Binding(world.buffer()), Binding(world.buffer())
    table = world.bound(compiled, [source], [target])
    world.recorder.record_dispatch(world.list, compiled, table)
    with refused("BIND_LATE", "BT14", "InputTensor"):
        table.bind_inputs([Binding(world.buffer())])
    world.execute()  # legal once the GPU has finished
    table.bind_inputs([Binding(world.buffer())])
    assert world.works()


def test_BT14_another_table_over_the_same_descriptors(world: World) -> None:
    compiled = prepared(world, identity())
    buffers = [Binding(world.buffer()) for _ in range(4)]
    table = world.bound(compiled, buffers[:1], buffers[1:2])
    world.recorder.record_dispatch(world.list, compiled, table)
    other = world.table(compiled)
    with refused("DESC_RANGE_SHARED", "BT14", "InputTensor") as caught:
        other.bind_inputs(buffers[2:3])
    assert caught.report.d3d12_id == 1001
    other.reset(world.table_desc(compiled, first=8))  # another range immediately
    other.bind_inputs(buffers[2:3])
    world.list.close()
    world.list.reset(world.d3d12.create_command_allocator(d3d12.CommandListType.COMPUTE))
    table.bind_inputs(buffers[2:3])  # the recording was discarded without running
    world.list.set_descriptor_heaps([world.heap])
    assert world.works()


def test_BT14_volatile_descriptors_may_change_until_submission(world: World) -> None:
    compiled = world.compile(identity(), dml.ExecutionFlags.DESCRIPTORS_VOLATILE)
    world.initialize(compiled)
    source, target = world.buffer(), world.buffer()
    world.write(source, np.array([1, 2, 3, 4], np.float32))
    table = world.table(compiled)
    world.recorder.record_dispatch(world.list, compiled, table)  # nothing is bound yet
    table.bind_inputs([Binding(world.buffer())])
    table.bind_inputs([Binding(source)])
    table.bind_outputs([Binding(target)])
    world.list.close()
    world.queue.execute_command_lists([world.list])
    with refused("DESC_OVERWRITTEN", "BT14", "InputTensor"):
        table.bind_inputs([Binding(world.buffer())])
    world.queue.signal(world.fence, 100)
    world.fence.wait(100)
    world.session.fence_value = 100
    world.allocator.reset()
    world.list.reset(world.allocator)
    world.list.set_descriptor_heaps([world.heap])
    assert world.read(target) == [1, 2, 3, 4]


def test_BT15_reset_clears_every_binding(world: World) -> None:
    compiled = prepared(world, identity())
    table = world.bound(compiled, [Binding(world.buffer())], [Binding(world.buffer())])
    table.reset(world.table_desc(compiled))
    with refused("BIND_TYPE", "2.10", "InputTensor"):
        world.recorder.record_dispatch(world.list, compiled, table)
    table.reset(None)
    assert table.dispatchable is None
    assert world.works()


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_BT15_a_failed_reset_changes_nothing(world: World) -> None:
    compiled = prepared(world, identity())
    table = world.bound(compiled, [Binding(world.buffer())], [Binding(world.buffer())])
    with refused("DESC_COUNT", "BT2", "SizeInDescriptors"):
        table.reset(world.table_desc(compiled, size=0))
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.works()


def test_BT16_count_zero(world: World) -> None:
    table = world.table(world.compile(identity()))
    for bind in (table.bind_inputs, table.bind_outputs):
        for nothing in (None, []):
            with refused("BIND_COUNT", "BT16", "BindingCount"):
                bind(nothing)
    initializer = world.dml.create_operator_initializer([world.compile(identity())])
    table = world.table(initializer)
    table.bind_inputs(None)
    table.bind_outputs([])
    assert world.works()


def test_a_failed_bind_writes_nothing(world: World) -> None:
    compiled = prepared(world, add())
    a, b, target = world.buffer(), world.buffer(), world.buffer()
    world.write(a, np.array([1, 2, 3, 4], np.float32))
    world.write(b, np.array([10, 20, 30, 40], np.float32))
    table = world.bound(compiled, [Binding(a), Binding(b)], [Binding(target)])
    with pytest.raises(Error):
        table.bind_inputs([Binding(target), Binding(b, 3)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(target) == [11, 22, 33, 44]


# --- strictness runtime: errors of void methods remove the DirectML device ---


@pytest.mark.layer("BIND_*")
@pytest.mark.parametrize(
    "mistake",
    [
        lambda world, table: table.bind_inputs([]),
        lambda world, table: table.bind_inputs([None]),
        lambda world, table: table.bind_outputs([Binding(world.buffer(), 0, 4)]),
        lambda world, table: table.bind_temporary_resource(Binding(world.buffer())),
        lambda world, table: world.recorder.record_dispatch(world.list, table.dispatchable, table),
    ],
)
def test_BT5_BT6_runtime_removes_the_device(
    mistake: Callable[[World, dml.BindingTable], None], runtime: World
) -> None:
    world = runtime
    compiled = world.compile(identity())
    table = world.table(compiled)
    mistake(world, table)
    assert world.dml.get_device_removed_reason() is HResult.E_INVALIDARG
    assert world.dml.removed_by is not None
    assert world.d3d12.get_device_removed_reason() is HResult.S_OK
    table.bind_inputs([])  # void methods do nothing now
    with pytest.raises(Error) as caught:
        world.dml.create_operator(identity())
    assert caught.value.hresult is HResult.DXGI_ERROR_DEVICE_REMOVED
    world.dml = world.session.dml = dml.create_device(world.d3d12)
    world.recorder = world.session.recorder = world.dml.create_command_recorder()
    assert world.works()


_NUMBERS = (0, 4, 8, 15, 16, 32, 64, 2**64, -16, True, np.int64(16), None)


@pytest.mark.dmlemu(
    expect=[
        "BIND_HEAP_TYPE",
        "BIND_OFFSET_ALIGN",
        "BIND_RANGE",
        "BIND_SIZE_SMALL",
        "BIND_TYPE",
        "OBJECT_DELETED_IN_USE",
    ]
)
def test_plain_bindings_are_bound_as_the_checks_of_all_bindings_bind_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = world.table(world.compile(identity()))
    buffers = [world.buffer(), world.buffer(heap=Heap.UPLOAD, flags=d3d12.ResourceFlags.NONE), None]
    released = world.buffer()
    released.release()

    def outcomes() -> list[Any]:
        found: list[Any] = []
        for buffer, offset, size in itertools.product([*buffers, released], _NUMBERS, _NUMBERS):
            try:
                table.bind_inputs([Binding(buffer, offset, size)])  # type: ignore[arg-type]
                found.append(dict(table.bound))
            except Error as error:
                found.append(error.report.message)
        return found

    plain = outcomes()
    monkeypatch.setattr(binding_checks, "_is_plain", lambda *_: False)
    assert plain == outcomes()
    assert {type(each) for each in plain} == {dict, str}


def test_an_output_of_an_initializer_that_was_reset_meanwhile(world: World) -> None:
    """By another thread, between finding the slot and reporting what is wrong with its binding."""
    initializer = world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))])
    (slot,) = initializer.outputs
    initializer.reset([])
    check = binding_checks.SlotCheck(world.dml.context, initializer, slot)
    with pytest.raises(Error, match=re.escape(slot.path)):
        check.find(dml.BindingDesc(dml.BindingType.NONE, None))


def test_an_initializer_that_is_reset_while_its_outputs_are_counted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another thread: the binding is one of those that there were."""
    initializer = world.dml.create_operator_initializer([world.compile(gemm(flags=OWNED))])
    table = world.table(initializer)
    counted = binding_table.counted

    def reset_meanwhile(*arguments: Any) -> Any:
        found = counted(*arguments)
        initializer.reset([])
        return found

    with monkeypatch.context() as patch:
        patch.setattr(binding_table, "counted", reset_meanwhile)
        with pytest.raises(Error, match=r"PersistentResource\[0\]"):
            table.bind_outputs(
                [dml.BindingDesc(dml.BindingType.BUFFER_ARRAY, dml.BufferArrayBinding([None]))]
            )
    assert world.works()
