"""Initialization and RecordDispatch (api 2.8 and 2.10): requirements, guarantees, packets."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from dmlemu import d3d12, dml
from dmlemu.errors import Error, HResult, Strictness
from dmlemu_hw.memory import POISON_BYTE
from dmlemu_hw.packets import FLAG_JOINED, FLAG_POISON, DiscardPacket, DispatchPacket, decode

from .world import OWNED, States, World, add, gemm, half_gemm, identity, refused, tensor

Binding = dml.BufferBinding
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def world() -> World:
    return World()


def weights(world: World) -> tuple[dml.CompiledOperator, d3d12.Resource, d3d12.Resource, d3d12.Resource]:
    """A GEMM whose B is OWNED_BY_DML, with A, B and a persistent buffer."""
    compiled = world.compile(gemm(flags=OWNED), name="gemm")
    a, b, persistent = (world.buffer(name=name) for name in ("a", "b", "persistent"))
    world.write(a, A)
    world.write(b, B)
    return compiled, a, b, persistent


def run(world: World, compiled: dml.CompiledOperator, a: Any, persistent: dml.BufferBinding) -> Any:
    output = world.buffer()
    table = world.bound(compiled, [Binding(a), None, None], [Binding(output)])
    table.bind_persistent_resource(persistent)
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    return world.read(output, count=8)


# --- 2.8: the initializer ---


def test_2_8_owned_inputs_move_into_the_persistent_resource(world: World) -> None:
    compiled, a, b, persistent = weights(world)
    size = compiled.get_binding_properties().persistent_resource_size
    assert size >= B.nbytes
    place = Binding(persistent, 256, size)
    world.initialize(compiled, [None, Binding(b, 0, B.nbytes), None], place)
    world.execute()
    world.write(b, np.zeros_like(B))  # a later change has no effect
    b.release()
    assert run(world, compiled, a, place) == (A @ B).ravel().tolist()
    assert run(world, compiled, a, place) == (A @ B).ravel().tolist()


def test_2_8_owned_inputs_keep_their_layout(world: World) -> None:
    """B transposed by its strides, with a gap: the bytes are copied, the layout is the desc's."""
    desc = gemm(flags=OWNED, strides=(0, 0, 1, 5))
    compiled = world.compile(desc)
    a, b, persistent = world.buffer(), world.buffer(), world.buffer()
    world.write(a, A)
    columns = np.full((4, 5), np.nan, np.float32)
    columns[:, :3] = B.T
    world.write(b, columns)
    world.initialize(compiled, [None, Binding(b), None], Binding(persistent))
    assert run(world, compiled, a, Binding(persistent)) == (A @ B).ravel().tolist()


def test_2_8_from_an_upload_heap(world: World) -> None:
    compiled, a, _, persistent = weights(world)
    upload = world.buffer(heap=d3d12.HeapType.UPLOAD)
    with upload.map() as memory:
        np.asarray(memory)[: B.nbytes] = np.frombuffer(B.tobytes(), np.uint8)
    world.initialize(compiled, [None, Binding(upload, 0, B.nbytes), None], Binding(persistent))
    assert run(world, compiled, a, Binding(persistent)) == (A @ B).ravel().tolist()


def test_2_8_several_operators_in_one_dispatch(world: World) -> None:
    first, a, b, place_of_first = weights(world)
    plain = world.compile(identity())
    second, _, c, place_of_second = weights(world)
    world.write(c, 2 * B)
    initializer = world.dml.create_operator_initializer([first, plain, second])
    properties = initializer.get_binding_properties()
    assert properties.required_descriptor_count == 4
    assert properties.persistent_resource_size == 0
    table = world.table(initializer, 32)
    inputs = [dml.BufferArrayBinding([None, Binding(each), None]) for each in (b, c)]
    table.bind_inputs([inputs[0], None, inputs[1]])
    table.bind_outputs([Binding(place_of_first), None, Binding(place_of_second)])
    world.recorder.record_dispatch(world.list, initializer, table)
    world.execute()
    assert run(world, first, a, Binding(place_of_first)) == (A @ B).ravel().tolist()
    assert run(world, second, a, Binding(place_of_second)) == (2 * A @ B).ravel().tolist()
    assert plain.initialized_at is not None


def test_2_8_nothing_to_initialise(world: World) -> None:
    initializer = world.dml.create_operator_initializer()
    assert initializer.get_binding_properties() == dml.BindingProperties(0, 0, 0)
    table = world.dml.create_binding_table(dml.BindingTableDesc(initializer, 0, 0, 0))
    world.recorder.record_dispatch(world.list, initializer, table)
    world.execute()
    assert world.works()


def test_2_8_reset_serves_other_operators(world: World) -> None:
    compiled, a, b, persistent = weights(world)
    initializer = world.dml.create_operator_initializer([world.compile(identity())])
    table = world.table(initializer, 32)
    initializer.reset([compiled])
    assert initializer.get_binding_properties().required_descriptor_count == 2
    with refused("DESC_COUNT", "BT2", "SizeInDescriptors"):  # the table was made for less
        table.bind_inputs([dml.BufferArrayBinding([None, Binding(b), None])])
    table.reset(world.table_desc(initializer, 32))
    table.bind_inputs([dml.BufferArrayBinding([None, Binding(b), None])])
    table.bind_outputs([Binding(persistent)])
    world.recorder.record_dispatch(world.list, initializer, table)
    world.execute()
    assert run(world, compiled, a, Binding(persistent)) == (A @ B).ravel().tolist()
    with refused("OP_FIELD_RANGE", "2.8", "CompiledOperators[1]"):
        initializer.reset([compiled, identity()])  # type: ignore[list-item]
    with refused("OP_FIELD_RANGE", "2.8", "CompiledOperators"):
        initializer.reset(compiled)  # type: ignore[arg-type]
    assert initializer.operators == (compiled,)


def test_2_8_repeats_are_tolerated(world: World) -> None:
    compiled, a, b, persistent = weights(world)
    for _ in range(3):
        world.initialize(compiled, [None, Binding(b), None], Binding(persistent))
        assert run(world, compiled, a, Binding(persistent)) == (A @ B).ravel().tolist()


def test_2_8_the_initializer_takes_buffer_arrays(world: World) -> None:
    compiled, _, b, _ = weights(world)
    table = world.table(world.dml.create_operator_initializer([compiled]))
    with refused("BIND_TYPE", "BT6", "Bindings[0].Type"):
        table.bind_inputs([Binding(b)])
    with refused("BIND_COUNT", "BT5", "BindingCount"):
        table.bind_inputs([None, None])
    table.bind_inputs([dml.BufferArrayBinding([Binding(), Binding(b), Binding(None, 0, 0)])])
    assert world.works()


def test_BT5_a_buffer_array_has_an_entry_for_each_input(world: World) -> None:
    compiled, _, b, _ = weights(world)
    table = world.table(world.dml.create_operator_initializer([compiled]))
    with refused("BIND_COUNT", "BT5", "Bindings[0].BindingCount"):
        table.bind_inputs([dml.BufferArrayBinding([None, Binding(b)])])
    table.bind_inputs([dml.BufferArrayBinding([None, Binding(b), None])])
    assert world.works()


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_2_8_dispatched_before_it_is_initialised(world: World) -> None:
    compiled = world.compile(identity(), name="first layer")
    table = world.bound(compiled, [Binding(world.buffer())], [Binding(world.buffer())])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.list.close()
    with refused("OP_NOT_INITIALIZED", "2.8", "Dispatchable") as caught:
        world.queue.execute_command_lists([world.list])
    assert "'first layer'" in caught.report.message
    assert caught.report.operation == "ExecuteCommandLists"
    recorded, called = caught.report.context
    assert recorded.startswith("Recorded by RecordDispatch into command list")
    assert "at test_dispatch.py:" in recorded and called.startswith("While calling ExecuteCommandLists")
    late = world.list
    kind = d3d12.CommandListType.COMPUTE
    allocator = world.d3d12.create_command_allocator(kind)
    world.list = world.session.list = world.d3d12.create_command_list(0, kind, allocator)
    world.initialize(compiled)
    world.list.close()
    world.queue.execute_command_lists([world.list, late])  # this order is legal
    world.list.reset(world.allocator)
    assert world.works()


def test_2_8_a_dropped_submission_initialises_nothing(world: World) -> None:
    first, second = world.compile(identity()), world.compile(identity())
    world.initialize(first)
    table = world.bound(second, [Binding(world.buffer())], [Binding(world.buffer())])
    world.recorder.record_dispatch(world.list, second, table)
    world.list.close()
    with pytest.raises(Error):
        world.queue.execute_command_lists([world.list])
    assert first.initialized_at is None


def test_2_8_another_persistent_resource(world: World) -> None:
    compiled, a, b, persistent = weights(world)
    world.initialize(compiled, [None, Binding(b), None], Binding(persistent))
    world.execute()
    for other in (Binding(persistent, 256), Binding(world.buffer())):
        table = world.bound(compiled, [Binding(a), None, None], [Binding(world.buffer())])
        table.bind_persistent_resource(other)
        world.recorder.record_dispatch(world.list, compiled, table)
        world.list.close()
        with refused("BIND_PERSISTENT_CHANGED", "2.8", "PersistentResource"):
            world.queue.execute_command_lists([world.list])
        world.list.reset(world.allocator)
        world.list.set_descriptor_heaps([world.heap])
    assert run(world, compiled, a, Binding(persistent)) == (A @ B).ravel().tolist()


@pytest.mark.layer("OP_NOT_INITIALIZED*")
def test_2_8_runtime_does_not_look(runtime: World) -> None:
    world = runtime
    compiled, source, target = world.compile(identity()), world.buffer(), world.buffer()
    world.write(source, np.array([1, 2, 3, 4], np.float32))
    table = world.bound(compiled, [Binding(source)], [Binding(target)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(target) == [1, 2, 3, 4]


def test_BT7_at_runtime_an_operator_computes_in_place(runtime: World) -> None:
    world = runtime
    compiled, both = world.compile(add()), world.buffer()
    world.initialize(compiled)
    world.write(both, np.ones(4, np.float32))
    table = world.bound(compiled, [Binding(both), Binding(both)], [Binding(both)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(both) == [2, 2, 2, 2]


# --- 2.10: RecordDispatch ---


def ready(world: World) -> tuple[dml.CompiledOperator, dml.BindingTable, d3d12.Resource, d3d12.Resource]:
    compiled = world.compile(identity())
    world.initialize(compiled)
    source, target = world.buffer(name="in"), world.buffer(name="out")
    world.write(source, np.array([1, 2, 3, 4], np.float32))
    return compiled, world.bound(compiled, [Binding(source)], [Binding(target)]), source, target


@pytest.mark.parametrize(
    ("field", "arguments"),
    [("CommandList", (None, 1, 2)), ("Dispatchable", (0, None, 2)), ("Bindings", (0, 1, "table"))],
)
def test_2_10_arguments(world: World, field: str, arguments: tuple[Any, ...]) -> None:
    compiled, table, _, _ = ready(world)
    fitting = (world.list, compiled, table)
    given = [fitting[each] if isinstance(each, int) else each for each in arguments]
    with refused("OP_FIELD_RANGE", "2.10", field):
        world.recorder.record_dispatch(*given)
    assert world.works()


def test_2_10_the_list_is_open(world: World) -> None:
    compiled, table, _, target = ready(world)
    world.list.close()
    with refused("LIST_CLOSED", "CL11", "", HResult.E_FAIL):
        world.recorder.record_dispatch(world.list, compiled, table)
    world.list.reset(world.allocator)
    world.list.set_descriptor_heaps([world.heap])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(target) == [1, 2, 3, 4]


def test_2_10_the_list_is_direct_or_compute(world: World) -> None:
    compiled, table, _, _ = ready(world)
    for kind in (d3d12.CommandListType.COPY, d3d12.CommandListType.BUNDLE):
        allocator = world.d3d12.create_command_allocator(kind)
        wrong = world.d3d12.create_command_list(0, kind, allocator)
        with refused("LIST_TYPE", "CL13", "this"):
            world.recorder.record_dispatch(wrong, compiled, table)
    kind = d3d12.CommandListType.DIRECT
    direct = world.d3d12.create_command_list(0, kind, world.d3d12.create_command_allocator(kind))
    direct.set_descriptor_heaps([world.heap])
    world.recorder.record_dispatch(direct, compiled, table)
    assert world.works()


def test_2_10_the_table_is_for_this_dispatchable(world: World) -> None:
    compiled, table, _, _ = ready(world)
    other = world.compile(identity())
    with refused("BIND_TABLE_OTHER", "2.10", "Bindings"):
        world.recorder.record_dispatch(world.list, other, table)
    table.reset(None)
    with refused("BIND_TABLE_OTHER", "2.10", "Bindings"):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.works()


@pytest.mark.parametrize("missing", ["InputTensor", "OutputTensor"])
def test_2_10_mandatory_bindings(world: World, missing: str) -> None:
    compiled, table, source, target = ready(world)
    table.reset(world.table_desc(compiled))
    if missing == "InputTensor":
        table.bind_outputs([Binding(target)])
    else:
        table.bind_inputs([Binding(source)])
    with refused("BIND_TYPE", "2.10", missing):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.works()


@pytest.mark.parametrize("state", [States.COPY_SOURCE, States.COPY_DEST])
def test_2_10_resources_are_unordered_access(world: World, state: d3d12.ResourceStates) -> None:
    compiled, table, source, target = ready(world)
    transition = d3d12.ResourceBarrier.transition
    for buffer in (source, target):
        world.list.resource_barrier([transition(buffer, States.COMMON, state)])
        with pytest.raises(Error) as caught:
            world.recorder.record_dispatch(world.list, compiled, table)
        assert caught.value.report.id == "STATE_FOR_DISPATCH"
        assert str(buffer) in caught.value.report.message
        world.list.resource_barrier([transition(buffer, state, States.UNORDERED_ACCESS)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(target) == [1, 2, 3, 4]


def test_2_10_a_rejected_dispatch_records_nothing(world: World) -> None:
    compiled, table, _, target = ready(world)
    table.bind_outputs([Binding(target, 0, 16)])
    world.list.resource_barrier([d3d12.ResourceBarrier.transition(target, States.COMMON, States.COPY_SOURCE)])
    count = world.list.writer.count
    with pytest.raises(Error):
        world.recorder.record_dispatch(world.list, compiled, table)
    assert world.list.writer.count == count
    world.execute()
    assert world.works()


def test_2_10_the_same_operator_twice_in_one_list(world: World) -> None:
    compiled, table, _, target = ready(world)
    after = world.buffer()
    second = world.bound(compiled, [Binding(target)], [Binding(after)], first=4)
    world.recorder.record_dispatch(world.list, compiled, table)
    world.list.resource_barrier([d3d12.ResourceBarrier.uav(target)])
    world.recorder.record_dispatch(world.list, compiled, second)
    world.execute()
    assert world.read(after) == [1, 2, 3, 4]


@pytest.mark.layer("BIND_LATE", "DESC_OVERWRITTEN*", "OP_NOT_INITIALIZED*")
def test_2_10_descriptors_are_read_when_the_gpu_executes(runtime: World) -> None:
    """At strictness runtime binding again too early is not detected, as on Windows."""
    world = runtime
    compiled = world.compile(identity())
    early, late, target = world.buffer(), world.buffer(), world.buffer()
    world.write(early, np.array([1, 1, 1, 1], np.float32))
    world.write(late, np.array([9, 9, 9, 9], np.float32))
    table = world.bound(compiled, [Binding(early)], [Binding(target)])
    world.recorder.record_dispatch(world.list, compiled, table)
    table.bind_inputs([Binding(late)])
    world.execute()
    assert world.read(target) == [9, 9, 9, 9]


def test_2_10_recording_keeps_no_table_and_no_recorder(world: World) -> None:
    compiled, table, _, target = ready(world)
    recorder = world.dml.create_command_recorder()
    recorder.record_dispatch(world.list, compiled, table)
    alive = [weakref.ref(table), weakref.ref(recorder)]
    del table, recorder
    gc.collect()
    assert [each() for each in alive] == [None, None]
    world.execute()
    assert world.read(target) == [1, 2, 3, 4]


@pytest.mark.layer("BIND_COUNT")
def test_2_10_after_removal_recordings_are_dropped(runtime: World) -> None:
    world = runtime
    compiled, table, _, _ = ready(world)
    world.table(compiled, 8).bind_inputs([])
    count = world.list.writer.count
    world.recorder.record_dispatch(world.list, compiled, table)
    world.recorder.record_dispatch(None, None, None)  # type: ignore[arg-type]
    assert world.list.writer.count == count


# --- packets ---


def recorded(world: World) -> list[Any]:
    return list(decode(world.list.writer.bytes()))


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_one_dispatch_is_one_packet_per_kernel_call(world: World) -> None:
    compiled = world.compile(half_gemm(), name="layer")
    world.initialize(compiled)
    buffers = [Binding(world.buffer()) for _ in range(4)]
    table = world.bound(compiled, [*buffers[:2], None], buffers[2:3])
    table.bind_temporary_resource(buffers[3])
    before = len(recorded(world))
    world.recorder.record_dispatch(world.list, compiled, table)
    first, *calls, last = recorded(world)[before:]
    assert isinstance(first, DiscardPacket) and isinstance(last, DiscardPacket)
    assert (first.byte_count, last.byte_count) == (compiled.temporary.size,) * 2
    assert (first.flags, last.flags) == (FLAG_POISON, FLAG_JOINED)
    assert all(call.flags & FLAG_JOINED for call in calls)
    assert all(isinstance(call, DispatchPacket) and call.flags & FLAG_POISON for call in calls)
    assert len({call.table for call in calls}) == 1
    assert [[t.slot for t in call.tensors if not t.absent] for call in calls] == [[0, 1, 4], [4, 3]]
    commands = world.list.recording.commands[before:]  # type: ignore[union-attr]
    assert {(command.name, command.number) for command in commands} == {(f"Dispatch of {compiled}", before)}
    world.execute()


def test_poison_is_for_strict_only() -> None:
    world = World(Strictness.DEBUG)
    compiled = world.compile(half_gemm())
    buffers = [Binding(world.buffer()) for _ in range(4)]
    table = world.bound(compiled, [*buffers[:2], None], buffers[2:3])
    table.bind_temporary_resource(buffers[3])
    world.recorder.record_dispatch(world.list, compiled, table)
    packets = [packet for packet in recorded(world) if not isinstance(packet, DispatchPacket)]
    assert not any(isinstance(packet, DiscardPacket) for packet in packets)
    assert all(not p.flags & FLAG_POISON for p in recorded(world) if isinstance(p, DispatchPacket))


@pytest.mark.dmlemu(expect=["MEM_UNINIT_READ"])
def test_temporary_contents_start_as_poison(world: World) -> None:
    """The rest of the temporary buffer, beyond the size asked for, is left alone."""
    compiled = world.compile(half_gemm())
    world.initialize(compiled)
    size = compiled.get_binding_properties().temporary_resource_size
    temporary = world.buffer()
    world.write(temporary, np.arange(size // 4 + 4, dtype=np.uint32))
    buffers = [Binding(world.buffer()) for _ in range(3)]
    table = world.bound(compiled, [*buffers[:2], None], buffers[2:])
    table.bind_temporary_resource(Binding(temporary))
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    last = world.read(temporary, np.uint32, 5, size - 4)
    assert last == [POISON_BYTE * 0x01010101, *range(size // 4, size // 4 + 4)]


def test_strided_and_offset_bindings(world: World) -> None:
    desc = dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor(2, 2, strides=(8, 8, 1, 4)), b_tensor=tensor(2, 2), output_tensor=tensor(2, 2)
    )
    compiled = world.compile(desc)
    world.initialize(compiled)
    buffer = world.buffer()
    world.write(buffer, np.array([1, 2, -1, -1, 3, 4], np.float32), 64)
    world.write(buffer, np.array([10, 20, 30, 40], np.float32), 160)
    table = world.bound(compiled, [Binding(buffer, 64, 24), Binding(buffer, 160, 16)], [Binding(buffer, 256)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(buffer, offset=256) == [11, 23, 32, 44]


def test_add_still_works_after_everything(world: World) -> None:
    compiled = world.compile(add())
    world.initialize(compiled)
    buffer = world.buffer()
    world.write(buffer, np.array([1, 2, 3, 4], np.float32))
    place = Binding(buffer, 0, 16)
    table = world.bound(compiled, [place, place], [place])  # in place, both inputs
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(buffer) == [2, 4, 6, 8]


def test_TN11_nothing_else_is_written(world: World) -> None:
    """Neither inputs, nor bytes before an output's offset, nor bytes after its total size."""
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=tensor(2, 2, strides=(9, 9, 3, 1), total_tensor_size_in_bytes=32),
        output_tensor=tensor(2, 2, strides=(9, 9, 1, 3), total_tensor_size_in_bytes=24),
    )
    compiled = world.compile(desc)
    world.initialize(compiled)
    before = np.arange(64, dtype=np.float32)
    source, target = world.buffer(), world.buffer()
    world.write(source, before)
    world.write(target, before)
    table = world.bound(compiled, [Binding(source, 32, 64)], [Binding(target, 64, 64)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(source, count=64) == before.tolist()
    after = world.read(target, count=64)
    assert after[:16] == before[:16].tolist()
    assert after[22:] == before[22:].tolist()
    assert [after[16 + k] for k in (0, 1, 3, 4)] == [8, 11, 9, 12]  # columns become rows
