"""What operators do to memory: every byte of a buffer before and after a dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples import EXAMPLES, exchanged
from harness import in_array
from strategies import Array, Values
from test_large import packed, permuted

from dmlemu import d3d12, dml
from dmlemu.dml import BufferTensorDesc, OperatorType
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.operators.schema import OperatorDesc
from dmlemu.evaluation import unpack_tensor
from operator_families import each_operator

# Indices and lengths that are read from inputs are whatever numbers stand there.
pytestmark = pytest.mark.dmlemu(expect=["MEM_INDEX_VALU*"])  # not of each

GAP = 272  # bytes between tensors; keeps every offset at an odd multiple of 16

each_example = each_operator("desc", EXAMPLES.__getitem__)


def sharers(desc: OperatorDesc) -> list[tuple[str, list[str]]]:
    """Each output, and the inputs of its type and sizes: an operator that works in place may find any of them
    where it writes."""
    tensors = [field for field in tensor_fields(desc) if field.desc is not None]
    found = []
    for output in (each for each in tensors if each.output):
        inputs = [each.path for each in tensors if not each.output and alike(each.desc, output.desc)]
        if inputs:
            found.append((output.path, inputs))
    return found


def alike(a: BufferTensorDesc | None, b: BufferTensorDesc | None) -> bool:
    return a is not None and b is not None and (a.data_type, a.sizes) == (b.data_type, b.sizes)


each_in_place = each_operator(
    "desc",
    EXAMPLES.__getitem__,
    [operator for operator, desc in EXAMPLES.items() if desc.IN_PLACE and sharers(desc)],
)


@pytest.fixture(scope="module")
def device() -> dml.Device:
    return dml.create_device(d3d12.create_device(d3d12.Adapter(name="memory test")))


@each_example
def test_TN11_nothing_is_written_outside_the_outputs(device: dml.Device, desc: OperatorDesc) -> None:
    desc = padded(desc)
    places = layout(desc)
    before = random_bytes(desc, places)

    after = dispatch(device, desc, before, places)

    allowed = np.zeros(before.size, bool)
    for field in tensor_fields(desc):
        if field.output and field.desc is not None:
            allowed[places[field.path] :][: field.desc.size_in_bytes] = True
    changed = before != after
    assert not (changed & ~allowed).any()
    assert changed.any()
    assert_results(desc, before, after, places)


@each_in_place
@pytest.mark.parametrize(
    ("sizes", "kind"), [((1, 2, 3, 5), "extreme"), ((1, 2, 73, 517), "bits")], ids=["short", "long"]
)
@pytest.mark.parametrize("tensor_of", [packed, permuted])
def test_BT10_an_output_may_be_any_input_like_it(
    device: dml.Device, desc: OperatorDesc, tensor_of: Any, sizes: tuple[int, ...], kind: str
) -> None:
    """Each of them alone, and all of them at once; long rows are for vectors and threads."""
    desc = resized(desc, sizes, tensor_of)
    places = layout(desc)
    before = random_bytes(desc, places, kind)
    for output, inputs in sharers(desc):
        for shared in [[each] for each in inputs] + [inputs] * (len(inputs) > 1):
            apart = {**places, **dict.fromkeys(shared, places[shared[0]])}
            in_place = {**apart, output: places[shared[0]]}

            assert_same_outputs(device, desc, before, apart, in_place)


@pytest.mark.parametrize("operator", [OperatorType.ADAM_OPTIMIZER, OperatorType.RANDOM_GENERATOR])
def test_BT10_a_state_may_be_replaced(device: dml.Device, operator: OperatorType) -> None:
    """Of ADAM_OPTIMIZER the parameters and both moments at once."""
    desc = EXAMPLES[operator]
    if operator is OperatorType.ADAM_OPTIMIZER:
        desc = resized(desc, (1, 2, 73, 517), packed)
    apart = layout(desc)
    replaced = {path: "In" + path[3:] for path in apart if path.startswith("Out")}
    in_place = {path: apart[replaced[path]] if replaced.get(path) in apart else apart[path] for path in apart}
    assert len(set(apart.values()) - set(in_place.values())) == (1 if "OutputStateTensor" in apart else 3)

    assert_same_outputs(device, desc, random_bytes(desc, apart), apart, in_place)


def resized(desc: OperatorDesc, sizes: Sequence[int], tensor_of: Any) -> Any:
    """The desc with other sizes for the tensors that have those of the first output; a state keeps them."""
    if desc.TYPE is OperatorType.RANDOM_GENERATOR:
        return desc
    fields = [field for field in tensor_fields(desc) if field.desc is not None]
    before = next(field.desc.sizes for field in fields if field.output and field.desc is not None)
    for field in fields:
        if field.desc is not None and field.desc.sizes == before:
            desc = exchanged(desc, field.path, tensor_of(field.desc.data_type, list(sizes)))
    return desc


def assert_same_outputs(
    device: dml.Device, desc: OperatorDesc, before: Array, apart: dict[str, int], in_place: dict[str, int]
) -> None:
    """All bits of them, wherever the tensors lie."""
    one, other = (dispatch(device, desc, before, places) for places in (apart, in_place))
    for field in tensor_fields(desc):
        if field.output and field.desc is not None:
            got, want = (
                unpack_tensor(field.desc, memory[places[field.path] :][: field.desc.size_in_bytes].copy())
                for memory, places in ((other, in_place), (one, apart))
            )
            assert got.tobytes() == want.tobytes(), (field.path, in_place)


def padded(desc: OperatorDesc) -> Any:
    """The desc with outputs whose rows have gaps and whose total size is larger than need be."""
    for field in tensor_fields(desc):
        if field.output and field.desc is not None:
            sizes, strides, step = field.desc.sizes, [], 1
            for size in reversed(sizes):
                strides.insert(0, step + 1)
                step = (step + 1) * size
            last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) + 1
            total = (last * field.desc.dtype.itemsize + 3) // 4 * 4 + 12
            desc = exchanged(desc, field.path, BufferTensorDesc(field.desc.data_type, sizes, strides, total))
    return desc


def layout(desc: OperatorDesc) -> dict[str, int]:
    """Where each tensor starts in the buffer; "end" is its size."""
    places, end = {}, GAP
    for field in tensor_fields(desc):
        if field.desc is not None:
            places[field.path] = end
            end = (end + field.desc.size_in_bytes + GAP) // 16 * 16
    return {**places, "end": end}


def random_bytes(desc: OperatorDesc, places: dict[str, int], kind: str = "small") -> Array:
    """A buffer of random bytes, with numbers of this kind where inputs lie."""
    memory = np.frombuffer(np.random.default_rng(5).bytes(places["end"]), np.uint8).copy()
    for seed, field in enumerate(tensor_fields(desc)):
        if field.desc is not None and not field.output:
            count = field.desc.size_in_bytes // field.desc.dtype.itemsize
            numbers = Values(kind, seed).memory(field.desc.data_type, count)
            if field.name == "sequence_lengths_tensor":
                numbers %= 2  # longer ones than the sequence are reported
            memory[places[field.path] :][: numbers.nbytes] = numbers.view(np.uint8)
    return memory


def assert_results(desc: OperatorDesc, before: Array, after: Array, places: dict[str, int]) -> None:
    def read(memory: Array, name: str, tensor: BufferTensorDesc) -> Array:
        return unpack_tensor(tensor, memory[places[name] :][: tensor.size_in_bytes].copy())

    inputs: dict[str, Any] = {}
    outputs: dict[str, Any] = {}
    for field in tensor_fields(desc):
        if field.desc is not None:
            found, memory = (outputs, after) if field.output else (inputs, before)
            value = read(memory, field.path, field.desc)
            if field.index is None:
                found[field.name] = value
            else:
                found.setdefault(field.name, []).append(value)
    for name, want in desc.reference(inputs).items():
        if name == "output_coordinates_tensor":
            rows = int(outputs["output_count_tensor"].ravel()[0])
            assert outputs[name][..., :rows, :].tolist() == want[..., :rows, :].tolist()
        else:
            for got, each in zip(in_array(outputs[name]), in_array(want), strict=True):
                np.testing.assert_allclose(got, each, rtol=2e-6, atol=1e-6)


def dispatch(device: dml.Device, desc: OperatorDesc, memory: Array, places: dict[str, int]) -> Array:
    """One buffer holds all tensors: uploads it, runs ``desc``, and reads all of it back."""
    parent, states = device.get_parent_device(), d3d12.ResourceStates

    def buffer(heap: Any, flags: Any, state: Any, size: int = memory.size) -> d3d12.Resource:
        resource = d3d12.ResourceDesc.buffer(size, flags)
        properties = d3d12.HeapProperties(heap)
        return parent.create_committed_resource(properties, d3d12.HeapFlags.NONE, resource, state)

    none, unordered = d3d12.ResourceFlags.NONE, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
    upload = buffer(d3d12.HeapType.UPLOAD, none, states.GENERIC_READ)
    gpu = buffer(d3d12.HeapType.DEFAULT, unordered, states.COPY_DEST)
    readback = buffer(d3d12.HeapType.READBACK, none, states.COPY_DEST)
    with upload.map() as mapped:
        np.asarray(mapped)[:] = memory

    compiled = device.compile_operator(device.create_operator(desc))
    properties = compiled.get_binding_properties()
    heap_type, visible = d3d12.DescriptorHeapType.CBV_SRV_UAV, d3d12.DescriptorHeapFlags.SHADER_VISIBLE
    count = properties.required_descriptor_count
    heap = parent.create_descriptor_heap(d3d12.DescriptorHeapDesc(heap_type, count, visible))
    cpu, where = (
        heap.get_cpu_descriptor_handle_for_heap_start(),
        heap.get_gpu_descriptor_handle_for_heap_start(),
    )
    table = device.create_binding_table(dml.BindingTableDesc(compiled, cpu, where, count))
    fields = tensor_fields(desc)
    for output, bind in ((False, table.bind_inputs), (True, table.bind_outputs)):
        bind(
            [
                field.desc and dml.BufferBinding(gpu, places[field.path], field.desc.size_in_bytes)
                for field in fields
                if field.output is output
            ]
        )
    if properties.temporary_resource_size:
        temporary = buffer(
            d3d12.HeapType.DEFAULT, unordered, states.UNORDERED_ACCESS, properties.temporary_resource_size
        )
        table.bind_temporary_resource(dml.BufferBinding(temporary, 0, properties.temporary_resource_size))

    kind = d3d12.CommandListType.COMPUTE
    queue = parent.create_command_queue(d3d12.CommandQueueDesc(kind))
    commands = parent.create_command_list(0, kind, parent.create_command_allocator(kind))
    commands.copy_resource(gpu, upload)
    transition = d3d12.ResourceBarrier.transition
    commands.resource_barrier([transition(gpu, states.COPY_DEST, states.UNORDERED_ACCESS)])
    commands.set_descriptor_heaps([heap])
    recorder, initializer = device.create_command_recorder(), device.create_operator_initializer([compiled])
    nothing = dml.BindingTableDesc(initializer, cpu, where, 0)
    recorder.record_dispatch(commands, initializer, device.create_binding_table(nothing))
    recorder.record_dispatch(commands, compiled, table)
    commands.resource_barrier([transition(gpu, states.UNORDERED_ACCESS, states.COPY_SOURCE)])
    commands.copy_resource(readback, gpu)
    commands.close()
    queue.execute_command_lists([commands])
    fence = parent.create_fence(0)
    queue.signal(fence, 1)
    fence.wait(1)
    with readback.map() as mapped:
        return np.asarray(mapped).copy()
