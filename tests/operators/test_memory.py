"""What operators do to memory: every byte of a buffer before and after a dispatch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import pytest
from examples import EXAMPLES, exchanged
from harness import given, in_array
from hypothesis import strategies as st
from strategies import ALL_TYPES, Array, Values, shapes
from test_large import packed, permuted

from dmlemu import Strictness, d3d12, dml
from dmlemu.dml import BufferTensorDesc, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu.dml.lowering.fields import tensor_fields
from dmlemu.dml.tensor_desc import element_bits
from dmlemu.evaluation import unpack_tensor
from dmlemu.testing import layouts_of
from dmlemu.testing.strategies import KINDS
from operator_families import each_operator

# Indices and lengths that are read from inputs are whatever numbers stand there.
pytestmark = pytest.mark.dmlemu(expect=["MEM_INDEX_VALU*"])  # not of each

LAYOUTS = [each for each in KINDS if each != "aligned"]
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


@pytest.fixture(scope="module")
def devices() -> list[dml.Device]:
    """One of each strictness."""
    return [
        dml.create_device(d3d12.create_device(d3d12.Adapter(name=each.value), strictness=each))
        for each in Strictness
    ]


@each_example
def test_TN11_nothing_is_written_outside_the_outputs(device: dml.Device, desc: OperatorDesc) -> None:
    desc = padded(desc)
    places = layout(desc)
    before = random_bytes(desc, places)

    after = dispatch(device, desc, before, places)

    changed = before != after
    assert not (changed & ~elements_of(desc, places)).any()
    assert changed.any()
    assert_results(desc, before, after, places)


@each_example
def test_TN11_every_strictness_leaves_the_same_bytes(devices: list[dml.Device], desc: OperatorDesc) -> None:
    desc = padded(desc)
    places = layout(desc)

    assert_same_everywhere(devices, desc, random_bytes(desc, places), places)


@given(st.data(), 60)
def test_TN11_every_strictness_leaves_the_same_bytes_in_any_layout(
    devices: list[dml.Device], data: st.DataObject
) -> None:
    sizes = data.draw(shapes(max_elements=60))
    data_type = data.draw(st.sampled_from(ALL_TYPES))
    source = BufferTensorDesc(data_type, sizes)
    target = data.draw(layouts_of(sizes, data_type, kinds=LAYOUTS, output=True))
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=source, output_tensor=target)
    places = layout(desc)

    assert_same_everywhere(devices, desc, random_bytes(desc, places, "bits"), places)


def test_TN11_upper_words_of_64_bit_numbers_are_kept(devices: list[dml.Device]) -> None:
    """Clients that keep INT64 as UINT32 in every second word rely on their upper words, the last one too."""
    index = BufferTensorDesc(T.UINT32, [1, 1, 1, 4], [0, 0, 0, 2], 32)
    top = dml.TopK1OperatorDesc(
        input_tensor=BufferTensorDesc(T.FLOAT32, [1, 1, 1, 5]),
        output_value_tensor=BufferTensorDesc(T.FLOAT32, [1, 1, 1, 4]),
        output_index_tensor=index,
        axis=3,
        k=4,
        axis_direction=dml.AxisDirection.DECREASING,
    )
    nonzero = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=BufferTensorDesc(T.FLOAT32, [1, 1, 1, 3]),
        output_count_tensor=BufferTensorDesc(T.UINT32, [1, 1, 1, 1], None, 8),
        output_coordinates_tensor=BufferTensorDesc(T.UINT32, [1, 1, 3, 1], [0, 0, 2, 2], 24),
    )
    for desc, numbers, expected in (
        (top, [1, 5, 3, 4, 2], {"OutputIndexTensor": [1, 3, 2, 4]}),
        (nonzero, [7, 0, 8], {"OutputCountTensor": [2], "OutputCoordinatesTensor": [0, 2]}),
    ):
        places = layout(desc)
        memory = np.zeros(places["end"], np.uint8)
        memory[places["InputTensor"] :][: 4 * len(numbers)] = np.float32(numbers).view(np.uint8)
        for device in devices:
            after = dispatch(device, desc, memory, places)
            for path, want in expected.items():
                assert after[places[path] :][: 8 * len(want)].view(np.int64).tolist() == want


@pytest.mark.parametrize("is_fused", [True, False])
def test_TN11_every_strictness_leaves_the_same_bytes_behind_a_graph(
    devices: list[dml.Device], is_fused: bool
) -> None:
    plain = BufferTensorDesc(T.FLOAT16, [1, 1, 3, 3])
    target = BufferTensorDesc(T.FLOAT16, [1, 1, 3, 3], [0, 0, 5, 1], 40)
    places = {"InputTensor": 16, "OutputTensor": 64, "end": 128}
    memory = np.frombuffer(np.random.default_rng(3).bytes(128), np.uint8).copy()
    descs = [
        dml.ElementWiseAbsOperatorDesc(input_tensor=plain, output_tensor=plain),
        dml.ActivationReluOperatorDesc(input_tensor=plain, output_tensor=target),
    ]
    flags = dml.ExecutionFlags.NONE if is_fused else dml.ExecutionFlags.DISABLE_META_COMMANDS
    found = []
    for device in devices:
        nodes = [dml.OperatorGraphNodeDesc(device.create_operator(desc)) for desc in descs]
        graph = dml.GraphDesc(
            input_count=1,
            output_count=1,
            nodes=nodes,
            input_edges=[dml.InputGraphEdgeDesc(0, 0, 0)],
            intermediate_edges=[dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)],
            output_edges=[dml.OutputGraphEdgeDesc(1, 0, 0)],
        )
        whole = dml.ElementWiseAbsOperatorDesc(input_tensor=plain, output_tensor=target)
        found.append(dispatch(device, whole, memory, places, device.compile_graph(graph, flags)))
    assert all((each == found[0]).all() for each in found)
    assert (memory == found[0])[~elements_of(whole, places)].all()
    assert (memory != found[0]).any()


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


def elements_of(desc: OperatorDesc, places: dict[str, int]) -> Array:
    """Which bytes belong to elements of outputs."""
    marks = np.zeros(places["end"], bool)
    for field in tensor_fields(desc):
        if field.output and field.desc is not None:
            mark(marks[places[field.path] :], field.desc, field.desc.sizes)
    return marks


def mark(marks: Array, tensor: BufferTensorDesc, sizes: Sequence[int]) -> None:
    """The bytes of the first elements of a tensor."""
    bits = element_bits(tensor.data_type)
    steps = (np.arange(size) * stride for size, stride in zip(sizes, tensor.effective_strides, strict=True))
    starts = reduce(np.add.outer, steps).ravel() * bits // 8
    for byte in range(max(1, bits // 8)):
        marks[starts + byte] = True


def assert_same_everywhere(
    devices: list[dml.Device], desc: OperatorDesc, before: Array, places: dict[str, int]
) -> None:
    """Every byte but those of undefined elements; nothing but elements changes."""
    first, *others = (dispatch(device, desc, before, places) for device in devices)
    assert (before == first)[~elements_of(desc, places)].all()
    undefined = np.zeros(before.size, bool)
    if isinstance(desc, dml.NonzeroCoordinatesOperatorDesc):  # rows past the count
        count = int(first[places["OutputCountTensor"] :][:4].view(np.uint32)[0])
        tensor, here = desc.output_coordinates_tensor, undefined[places["OutputCoordinatesTensor"] :]
        mark(here, tensor, tensor.sizes)
        rows = np.zeros_like(here)
        mark(rows, tensor, [*tensor.sizes[:-2], count, tensor.sizes[-1]])
        here[rows] = False
    for other in others:
        assert (first == other)[~undefined].all()


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


def dispatch(
    device: dml.Device,
    desc: OperatorDesc,
    memory: Array,
    places: dict[str, int],
    compiled: dml.CompiledOperator | None = None,
) -> Array:
    """One buffer holds all tensors: uploads it, runs ``desc``, and reads all of it back.

    ``compiled``: what is dispatched instead, with the same tensors.
    """
    parent, states = device.get_parent_device(), d3d12.ResourceStates

    def buffer(heap: Any, flags: Any, state: Any, size: int = memory.size) -> d3d12.Resource:
        resource = d3d12.ResourceDesc.buffer(size, flags)
        properties = d3d12.HeapProperties(heap)
        return parent.create_committed_resource(properties, d3d12.HeapFlags.NONE, resource, state)

    none, unordered = d3d12.ResourceFlags.NONE, d3d12.ResourceFlags.ALLOW_UNORDERED_ACCESS
    upload = buffer(d3d12.HeapType.UPLOAD, none, states.GENERIC_READ)
    gpu = buffer(d3d12.HeapType.DEFAULT, unordered, states.COMMON)
    readback = buffer(d3d12.HeapType.READBACK, none, states.COPY_DEST)
    with upload.map() as mapped:
        np.asarray(mapped)[:] = memory

    compiled = compiled or device.compile_operator(device.create_operator(desc))
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
            d3d12.HeapType.DEFAULT, unordered, states.COMMON, properties.temporary_resource_size
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
