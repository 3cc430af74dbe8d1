"""Graphs: rules GR1 to GR9, and results of graphs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dmlemu
from dmlemu import dml
from dmlemu.dml.lowering import compile
from dmlemu.errors import HResult, Strictness

from .world import F32, OWNED, Levels, World, add, gemm, half_gemm, identity, refused, tensor

I32, INT8 = dml.TensorDataType.INT32, dml.TensorDataType.INT8
Array = np.ndarray[Any, np.dtype[Any]]
ABCD = np.array([1, 2, 3, 4], np.float32)


def make(
    world: World,
    descs: Sequence[dml.OperatorDesc | Array],
    *,
    inputs: Sequence[tuple[int, int, int]] = (),
    between: Sequence[tuple[int, int, int, int]] = (),
    outputs: Sequence[tuple[int, int, int]] = (),
    counts: tuple[int, int] | None = None,
) -> dml.GraphDesc:
    """A graph of operators and constants; edges are the numbers of their structs, in the structs' order."""
    if counts is None:
        counts = 1 + max((e[0] for e in inputs), default=-1), 1 + max((e[2] for e in outputs), default=-1)
    return dml.GraphDesc(
        *counts,
        [
            dml.ConstantDataGraphNodeDesc(desc)
            if isinstance(desc, np.ndarray)
            else dml.OperatorGraphNodeDesc(world.dml.create_operator(desc), f"node {i}")
            for i, desc in enumerate(descs)
        ],
        [dml.InputGraphEdgeDesc(*edge) for edge in inputs],
        [dml.OutputGraphEdgeDesc(*edge) for edge in outputs],
        [dml.IntermediateGraphEdgeDesc(*edge) for edge in between],
    )


def run(
    world: World,
    compiled: dml.CompiledOperator,
    arrays: Mapping[int, Array],
    outputs: Sequence[tuple[int, Any]],
    owned: Sequence[int] = (),
) -> list[Any]:
    """Initializes and dispatches; ``outputs``: element count and type of each output."""
    buffers: dict[int, dml.BufferBinding] = {}
    for i, array in arrays.items():
        buffer = world.buffer(max(256, array.nbytes), f"in {i}")
        world.write(buffer, array)
        buffers[i] = dml.BufferBinding(buffer)
    count = len(compiled.inputs)
    properties = compiled.get_binding_properties()
    persistent = temporary = None
    if properties.persistent_resource_size:
        persistent = dml.BufferBinding(world.buffer(properties.persistent_resource_size, "persistent"))
    kept = [buffers[i] if i in owned else None for i in range(count)] if owned else None
    world.initialize(compiled, kept, persistent)
    results = [world.buffer(4096, f"out {i}") for i in range(len(outputs))]
    given = [None if i in owned else buffers.get(i) for i in range(count)]
    table = world.bound(compiled, given, [dml.BufferBinding(buffer) for buffer in results])
    if properties.temporary_resource_size:
        temporary = dml.BufferBinding(world.buffer(properties.temporary_resource_size, "temporary"))
        table.bind_temporary_resource(temporary)
    if persistent:
        table.bind_persistent_resource(persistent)
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    pairs = zip(results, outputs, strict=True)
    return [world.read(buffer, dtype, count) for buffer, (count, dtype) in pairs]


def relu(count: int = 4) -> dml.OperatorDesc:
    return dml.ActivationReluOperatorDesc(input_tensor=tensor(count), output_tensor=tensor(count))


FOUR = (4, np.float32)


def chain(world: World, **changes: Any) -> dml.GraphDesc:
    """(a + b) through RELU: the graph that the rule tests modify."""
    edges: dict[str, Any] = {
        "inputs": [(0, 0, 0), (1, 0, 1)],
        "between": [(0, 0, 1, 0)],
        "outputs": [(1, 0, 0)],
        "descs": [add(), relu()],
    } | changes
    return make(world, edges.pop("descs"), **edges)


def chain_works(world: World) -> bool:
    compiled = world.dml.compile_graph(chain(world))
    return run(world, compiled, {0: ABCD, 1: np.float32(-2) * np.ones(4, np.float32)}, [FOUR]) == [
        [0, 0, 1, 2]
    ]


# --- GR1: edges and cycles ---


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"inputs": [(0, 0, 0), (1, 2, 1)]}, "InputEdges[1].ToNodeIndex"),
        ({"inputs": [(0, 0, 0), (1, 0, 2)]}, "InputEdges[1].ToNodeInputIndex"),
        ({"inputs": [(0, 0, 0), (2, 0, 1)], "counts": (2, 1)}, "InputEdges[1].GraphInputIndex"),
        ({"inputs": [(0, 0, 0), (-1, 0, 1)]}, "InputEdges[1].GraphInputIndex"),
        ({"inputs": [(0, 0, 0), (1.0, 0, 1)], "counts": (2, 1)}, "InputEdges[1].GraphInputIndex"),
        ({"between": [(2, 0, 1, 0)]}, "IntermediateEdges[0].FromNodeIndex"),
        ({"between": [(0, 1, 1, 0)]}, "IntermediateEdges[0].FromNodeOutputIndex"),
        ({"between": [(0, 0, 2**32, 0)]}, "IntermediateEdges[0].ToNodeIndex"),
        ({"between": [(0, 0, 1, 1)]}, "IntermediateEdges[0].ToNodeInputIndex"),
        ({"outputs": [(2, 0, 0)]}, "OutputEdges[0].FromNodeIndex"),
        ({"outputs": [(1, True, 0)]}, "OutputEdges[0].FromNodeOutputIndex"),
        ({"outputs": [(1, 0, 1)], "counts": (2, 1)}, "OutputEdges[0].GraphOutputIndex"),
    ],
)
def test_GR1_an_index_out_of_range(changes: Any, field: str) -> None:
    world = World()
    with refused("GRAPH_INDEX", "GR1", field):
        world.dml.compile_graph(chain(world, **changes))
    assert chain_works(world)


def test_GR1_an_input_of_a_constant() -> None:
    world = World()
    with refused("GRAPH_INDEX", "GR1", "InputEdges[2].ToNodeInputIndex") as caught:
        world.dml.compile_graph(
            chain(world, descs=[add(), relu(), ABCD], inputs=[(0, 0, 0), (1, 0, 1), (0, 2, 0)])
        )
    assert "names no input of Nodes[2] (constant data); there are 0." in caught.report.message


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"inputs": [(0, 0, 0), (1, 0, 1), (1, 0, 0)]}, "InputEdges[2].ToNodeInputIndex"),
        ({"between": [(0, 0, 1, 0), (0, 0, 1, 0)]}, "IntermediateEdges[1].ToNodeInputIndex"),
        ({"between": [(0, 0, 1, 0), (1, 0, 0, 1)]}, "IntermediateEdges[1].ToNodeInputIndex"),
    ],
)
def test_GR1_a_node_input_with_two_edges(changes: Any, field: str) -> None:
    world = World()
    with refused("GRAPH_INPUT_UNSET", "GR1", field):
        world.dml.compile_graph(chain(world, **changes))
    assert chain_works(world)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"counts": (2, 2)}, "OutputEdges"),
        ({"outputs": [], "counts": (2, 1)}, "OutputEdges"),
        ({"outputs": [(1, 0, 0), (0, 0, 0)]}, "OutputEdges[1].GraphOutputIndex"),
    ],
)
def test_GR1_a_graph_output_with_no_edge_or_two(changes: Any, field: str) -> None:
    world = World()
    with refused("GRAPH_OUTPUT_UNSET", "GR1", field):
        world.dml.compile_graph(chain(world, **changes))
    assert chain_works(world)


def test_GR1_cycle() -> None:
    world = World()
    with refused("GRAPH_CYCLE", "GR1", "IntermediateEdges[1]") as caught:
        world.dml.compile_graph(
            make(
                world,
                [relu(), add(), relu(), relu()],
                inputs=[(0, 0, 0)],
                between=[(0, 0, 1, 0), (2, 0, 1, 1), (1, 0, 3, 0), (3, 0, 2, 0)],
                outputs=[(3, 0, 0)],
            )
        )
    assert sorted(set(caught.report.given.split(" -> "))) == ["Nodes[1]", "Nodes[2]", "Nodes[3]"]
    with refused("GRAPH_CYCLE", "GR1", "IntermediateEdges[0]"):
        world.dml.compile_graph(make(world, [relu()], between=[(0, 0, 0, 0)], outputs=[(0, 0, 0)]))
    assert chain_works(world)


def test_GR1_one_source_feeds_many() -> None:
    """One graph input goes to three node inputs; one node output to two nodes and two graph outputs."""
    world = World()
    compiled = world.dml.compile_graph(
        make(
            world,
            [add(), add(), relu()],
            inputs=[(0, 0, 0), (0, 0, 1), (0, 1, 1)],
            between=[(0, 0, 1, 0), (0, 0, 2, 0)],
            outputs=[(0, 0, 0), (1, 0, 1), (0, 0, 2), (2, 0, 3)],
        )
    )
    results = run(world, compiled, {0: ABCD}, [FOUR] * 4)
    assert results == [(n * ABCD).tolist() for n in (2, 3, 2, 2)]


# --- GR2: what must be connected ---


@pytest.mark.parametrize("changes", [{"inputs": [(0, 0, 0)]}, {"between": []}])
def test_GR2_a_node_input_without_edge(changes: Any) -> None:
    world = World()
    with refused("GRAPH_INPUT_UNSET", "GR2", "Nodes[0]" if "inputs" in changes else "Nodes[1]") as caught:
        world.dml.compile_graph(chain(world, **changes))
    assert "'node " in caught.report.message
    assert chain_works(world)


def test_GR2_an_absent_tensor_has_no_edge() -> None:
    world = World()
    edges = {"inputs": [(0, 0, 0), (1, 0, 1)], "outputs": [(0, 0, 0)]}
    arrays = {0: np.arange(6, dtype=np.float32), 1: np.arange(12, dtype=np.float32)}
    compiled = world.dml.compile_graph(make(world, [gemm()], **edges))  # type: ignore[arg-type]
    product = arrays[0].reshape(2, 3) @ arrays[1].reshape(3, 4)
    assert run(world, compiled, arrays, [(8, np.float32)]) == [product.ravel().tolist()]
    edges["inputs"].append((2, 0, 2))
    with refused("GRAPH_EDGE_MISMATCH", "GR2", "InputEdges[2].ToNodeInputIndex") as caught:
        world.dml.compile_graph(make(world, [gemm()], **edges))  # type: ignore[arg-type]
    assert "names CTensor of Nodes[0] ('node 0', DML_OPERATOR_GEMM)" in caught.report.message


def test_GR2_outputs_may_be_unused() -> None:
    """NONZERO_COORDINATES has two outputs; only the second is connected."""
    world = World()
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=tensor(4),
        output_count_tensor=dml.BufferTensorDesc(dml.TensorDataType.UINT32, [1]),
        output_coordinates_tensor=dml.BufferTensorDesc(dml.TensorDataType.UINT32, [4, 4]),
    )
    compiled = world.dml.compile_graph(make(world, [desc], inputs=[(0, 0, 0)], outputs=[(0, 1, 0)]))
    [rows] = run(world, compiled, {0: np.array([0, 5, 0, 6], np.float32)}, [(8, np.uint32)])
    assert rows == [0, 0, 0, 1, 0, 0, 0, 3]


# --- GR3: bytes pass along an edge ---


def test_GR3_total_sizes_differ() -> None:
    world = World()
    larger = dml.ActivationReluOperatorDesc(
        input_tensor=tensor(4, total_tensor_size_in_bytes=20), output_tensor=tensor(4)
    )
    with refused("GRAPH_EDGE_MISMATCH", "GR3", "IntermediateEdges[0]") as caught:
        world.dml.compile_graph(chain(world, descs=[add(), larger]))
    assert (caught.report.given, caught.report.expected) == ("16 bytes", "20 bytes")
    assert chain_works(world)


def test_GR3_strides_are_not_converted() -> None:
    """The producer writes columns first, the consumer reads the same bytes rows first."""
    world = World()
    columns = tensor(2, 3, strides=(6, 6, 1, 2))
    producer = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor(2, 3), output_tensor=columns)
    consumer = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor(6), output_tensor=tensor(6))
    compiled = world.dml.compile_graph(
        make(world, [producer, consumer], inputs=[(0, 0, 0)], between=[(0, 0, 1, 0)], outputs=[(1, 0, 0)])
    )
    values = np.arange(6, dtype=np.float32)
    assert run(world, compiled, {0: values}, [(6, np.float32)]) == [values.reshape(2, 3).T.ravel().tolist()]


def test_GR3_types_are_not_converted() -> None:
    world = World()
    bits = dml.BufferTensorDesc(I32, (1, 1, 1, 4))
    flip = dml.ElementWiseBitXorOperatorDesc(a_tensor=bits, b_tensor=bits, output_tensor=bits)
    compiled = world.dml.compile_graph(
        make(
            world,
            [identity(), flip],
            inputs=[(0, 0, 0), (1, 1, 1)],
            between=[(0, 0, 1, 0)],
            outputs=[(1, 0, 0)],
        )
    )
    sign = np.full(4, -(2**31), np.int32)
    assert run(world, compiled, {0: ABCD, 1: sign}, [FOUR]) == [[-1, -2, -3, -4]]


def test_GR3_readers_of_one_graph_input_may_differ() -> None:
    """The binding must satisfy all readers: the largest size and alignment."""
    world = World()
    small = dml.ActivationReluOperatorDesc(
        input_tensor=tensor(2, guaranteed_base_offset_alignment=64), output_tensor=tensor(2)
    )
    desc = make(world, [relu(), small], inputs=[(0, 0, 0), (0, 1, 0)], outputs=[(0, 0, 0), (1, 0, 1)])
    compiled = world.dml.compile_graph(desc)
    table, buffer = world.table(compiled), world.buffer()
    with refused("BIND_SIZE_SMALL", "BT8", "Inputs[0].SizeInBytes"):
        table.bind_inputs([dml.BufferBinding(buffer, 0, 8)])
    with refused("BIND_OFFSET_ALIGN", "TN7", "Inputs[0].Offset"):
        table.bind_inputs([dml.BufferBinding(buffer, 32)])
    assert run(world, compiled, {0: -ABCD}, [FOUR, (2, np.float32)]) == [[0] * 4, [0] * 2]


# --- GR4: OWNED_BY_DML inputs ---


@pytest.mark.parametrize("source", ["operator", "constant"])
def test_GR4_only_graph_inputs_can_be_owned(source: str) -> None:
    world = World()
    first = add() if source == "operator" else ABCD
    inputs = [(0, 0, 0), (1, 0, 1)] if source == "operator" else []
    with refused("GRAPH_EDGE_MISMATCH", "GR4", "IntermediateEdges[0].ToNodeInputIndex"):
        world.dml.compile_graph(chain(world, descs=[first, identity(flags=OWNED)], inputs=inputs))
    assert chain_works(world)


def test_GR4_all_readers_agree() -> None:
    world = World()
    for a, b in ((OWNED, dml.TensorFlags.NONE), (dml.TensorFlags.NONE, OWNED)):
        nodes = [identity(flags=a), identity(flags=b)]
        desc = make(world, nodes, inputs=[(0, 0, 0), (0, 1, 0)], outputs=[(0, 0, 0), (1, 0, 1)])
        with refused("GRAPH_EDGE_MISMATCH", "GR4", "InputEdges[1].GraphInputIndex"):
            world.dml.compile_graph(desc)
    assert chain_works(world)


def test_GR4_owned_inputs_are_bound_at_initialization_only() -> None:
    """One owned input feeds two nodes in different layouts; it is kept once."""
    world = World()
    twice = dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor(4),
        b_tensor=tensor(4, strides=(4, 4, 4, 2), total_tensor_size_in_bytes=32, flags=OWNED),
        output_tensor=tensor(4),
    )
    compiled = world.dml.compile_graph(
        make(
            world,
            [twice, add(flags=OWNED)],
            inputs=[(0, 0, 0), (1, 0, 1), (1, 1, 0)],
            between=[(0, 0, 1, 1)],
            outputs=[(1, 0, 0)],
        )
    )
    assert compiled.get_binding_properties().persistent_resource_size == 256
    weights = np.arange(8, dtype=np.float32)
    with refused("BIND_OWNED_BY_DML", "BT7", "Inputs[1]"):
        world.table(compiled).bind_inputs([dml.BufferBinding(world.buffer())] * 2)
    result = run(world, compiled, {0: 100 * ABCD, 1: weights}, [FOUR], owned=[1])
    assert result == [(100 * ABCD + weights[::2] + weights[:4]).tolist()]


# --- GR5: inputs without edges ---


def test_GR5_an_unused_input_is_bound_or_not() -> None:
    world = World()
    compiled = world.dml.compile_graph(chain(world, inputs=[(1, 0, 0), (3, 0, 1)], counts=(5, 1)))
    assert len(compiled.inputs) == 5
    assert run(world, compiled, {1: ABCD, 3: ABCD}, [FOUR]) == [(2 * ABCD).tolist()]
    assert run(world, compiled, dict.fromkeys(range(5), ABCD), [FOUR]) == [(2 * ABCD).tolist()]
    with refused("BIND_COUNT", "BT5", "BindingCount"):
        world.table(compiled).bind_inputs([dml.BufferBinding(world.buffer())] * 2)


def test_GR5_nothing_of_an_unused_input_is_read() -> None:
    """So it may even overlap an output; but it must be a buffer."""
    world = World()
    compiled = world.dml.compile_graph(
        make(world, [identity()], inputs=[(0, 0, 0)], outputs=[(0, 0, 0)], counts=(2, 1))
    )
    source, target = world.buffer(), world.buffer()
    world.write(source, ABCD)
    world.initialize(compiled)
    binding = dml.BufferBinding(target)
    table = world.bound(compiled, [dml.BufferBinding(source), binding], [binding])
    with refused("BIND_TYPE", "BT8", "Inputs[1].Buffer"):
        table.bind_inputs([dml.BufferBinding(source), dml.BufferBinding(None)])
    world.recorder.record_dispatch(world.list, compiled, table)
    world.execute()
    assert world.read(target) == ABCD.tolist()


# --- GR6: constants ---


@pytest.mark.parametrize("data", [b"", b"12345", np.zeros(3, np.uint8)])
def test_GR6_data_size_is_a_multiple_of_4(data: Any) -> None:
    world = World()
    with refused("OP_FIELD_RANGE", "GR6", "Nodes[0].DataSize"):
        world.dml.compile_graph(dml.GraphDesc(0, 0, [dml.ConstantDataGraphNodeDesc(data)]))


@pytest.mark.parametrize("data", [None, 16, "text", [1.0], np.array([None])])
def test_GR6_data_is_bytes(data: Any) -> None:
    world = World()
    with refused("OP_FIELD_RANGE", "GR6", "Nodes[0].Data"):
        world.dml.compile_graph(dml.GraphDesc(0, 0, [dml.ConstantDataGraphNodeDesc(data)]))


def test_GR6_data_size_is_the_consumers_total_size() -> None:
    world = World()
    for size in (3, 5):
        desc = make(
            world,
            [np.zeros(size, np.float32), relu()],
            between=[(0, 0, 1, 0)],
            outputs=[(1, 0, 0)],
        )
        with refused("GRAPH_EDGE_MISMATCH", "GR6", "IntermediateEdges[0]"):
            world.dml.compile_graph(desc)


def test_GR6_constants_came_with_level_6_2() -> None:
    for level in (Levels.LEVEL_6_1, Levels.LEVEL_6_2):
        world = World(level=level)
        desc = make(world, [ABCD, relu()], between=[(0, 0, 1, 0)], outputs=[(1, 0, 0)])
        if level < Levels.LEVEL_6_2:
            with refused("OP_FEATURE_LEVEL", "GR6", "Nodes[0].Type"):
                world.dml.compile_graph(desc)
        else:
            assert run(world, world.dml.compile_graph(desc), {}, [FOUR]) == [ABCD.tolist()]


@pytest.mark.parametrize("kind", [np.asarray, bytearray, memoryview])
def test_GR6_data_is_copied_at_compile(monkeypatch: pytest.MonkeyPatch, kind: Callable[[Any], Any]) -> None:
    """And may be longer than one packet carries, feed several nodes, and be an output of the graph."""
    monkeypatch.setattr(compile, "_CONSTANT_CHUNK", 8)
    world = World()
    data = kind(ABCD.copy())
    desc = make(
        world,
        [ABCD, add(), add()],
        inputs=[(0, 1, 0)],
        between=[(0, 0, 1, 1), (1, 0, 2, 0), (0, 0, 2, 1)],
        outputs=[(2, 0, 0), (0, 0, 1)],
    )
    nodes = [dml.ConstantDataGraphNodeDesc(data), *desc.nodes[1:]]
    compiled = world.dml.compile_graph(replace(desc, nodes=nodes))
    memoryview(data).cast("B")[:4] = b"\xff" * 4
    results = run(world, compiled, {0: 10 * ABCD}, [FOUR, FOUR])
    assert results == [(12 * ABCD).tolist(), ABCD.tolist()]


# --- GR7 to GR9: the result ---


def test_GR7_a_compiled_operator_like_any_other() -> None:
    world = World()
    compiled = world.dml.compile_graph(chain(world), dml.ExecutionFlags.DESCRIPTORS_VOLATILE)
    compiled.set_name("tower")
    assert isinstance(compiled, dml.CompiledOperator)
    assert str(compiled) == "compiled operator 'tower' (graph of 2 nodes)"
    assert compiled.get_binding_properties() == dml.BindingProperties(4, 256, 0)
    assert compiled.operator is None
    assert chain_works(world)


def test_GR7_needs_its_own_initializer() -> None:
    world = World()
    node = world.compile(relu())
    world.initialize(node)
    compiled = world.dml.compile_graph(make(world, [relu()], inputs=[(0, 0, 0)], outputs=[(0, 0, 0)]))
    buffers = [dml.BufferBinding(world.buffer()) for _ in range(2)]
    table = world.bound(compiled, buffers[:1], buffers[1:])
    world.recorder.record_dispatch(world.list, compiled, table)
    with refused("OP_NOT_INITIALIZED", "2.8", "Dispatchable"):
        world.execute()


def test_GR7_initialized_together_with_operators() -> None:
    """One initializer for a graph with a constant and an owned input, and for a plain operator."""
    world = World()
    graph = world.dml.compile_graph(
        make(
            world,
            [ABCD, add(flags=OWNED)],
            inputs=[(0, 1, 0)],
            between=[(0, 0, 1, 1)],
            outputs=[(1, 0, 0)],
        )
    )
    plain = world.compile(identity(flags=OWNED))
    sizes = [each.get_binding_properties().persistent_resource_size for each in (graph, plain)]
    assert sizes == [512, 256]
    weights, kept = world.buffer(), [world.buffer(size) for size in sizes]
    world.write(weights, ABCD)
    initializer = world.dml.create_operator_initializer([graph, plain])
    table = world.table(initializer, 32)
    table.bind_inputs([dml.BufferArrayBinding([dml.BufferBinding(weights)])] * 2)
    table.bind_outputs([dml.BufferBinding(buffer) for buffer in kept])
    world.recorder.record_dispatch(world.list, initializer, table)
    world.execute()
    for i, (compiled, expected) in enumerate(((graph, 2 * ABCD), (plain, ABCD))):
        target = world.buffer()
        table = world.bound(compiled, [None], [dml.BufferBinding(target)])
        table.bind_persistent_resource(dml.BufferBinding(kept[i]))
        world.recorder.record_dispatch(world.list, compiled, table)
        world.execute()
        assert world.read(target) == expected.tolist()


def test_GR7_outputs_meet_no_inputs() -> None:
    """Nodes may run in any order, so nothing in a graph works in place, not even a lone node."""
    world = World()
    compiled = world.dml.compile_graph(make(world, [identity()], inputs=[(0, 0, 0)], outputs=[(0, 0, 0)]))
    world.initialize(compiled)
    binding = dml.BufferBinding(world.buffer())
    table = world.bound(compiled, [binding], [binding])
    with refused("BIND_ALIAS", "BT10", "Outputs[0]"):
        world.recorder.record_dispatch(world.list, compiled, table)


def test_GR7_nothing_of_the_desc_is_kept() -> None:
    world = World()
    desc = chain(world)
    compiled = world.dml.compile_graph(desc)
    node = weakref.ref(desc.nodes[0].operator)  # type: ignore[union-attr]
    del desc
    gc.collect()
    assert node() is None
    assert run(world, compiled, {0: ABCD, 1: ABCD}, [FOUR]) == [(2 * ABCD).tolist()]


def test_GR8_one_node_takes_the_graphs_bindings() -> None:
    """GEMM itself takes three inputs, C being NONE; the graph takes its two."""
    world = World()
    bare = world.compile(gemm())
    graph = world.dml.compile_graph(make(world, [gemm()], inputs=[(1, 0, 0), (0, 0, 1)], outputs=[(0, 0, 0)]))
    a, b = np.arange(6, dtype=np.float32), np.arange(12, dtype=np.float32)
    assert (len(bare.inputs), len(graph.inputs)) == (3, 2)
    binding = dml.BufferBinding(world.buffer())
    with refused("BIND_COUNT", "BT5", "BindingCount"):
        world.table(graph).bind_inputs([binding, binding, None])
    product = a.reshape(2, 3) @ b.reshape(3, 4)
    assert run(world, graph, {1: a, 0: b}, [(8, np.float32)]) == [product.ravel().tolist()]


def test_GR9_names_are_optional() -> None:
    world = World()
    desc = chain(world)
    bare = replace(
        desc,
        nodes=[replace(node, name=None) for node in desc.nodes],
        input_edges=[replace(edge, name="x") for edge in desc.input_edges],
    )
    compiled = world.dml.compile_graph(bare)
    assert run(world, compiled, {0: ABCD, 1: ABCD}, [FOUR]) == [(2 * ABCD).tolist()]
    wrong = replace(desc, output_edges=[replace(desc.output_edges[0], name=7)])  # type: ignore[arg-type]
    with refused("OP_FIELD_RANGE", "GR9", "OutputEdges[0].Name"):
        world.dml.compile_graph(wrong)


# --- invalid arguments ---


@pytest.mark.parametrize(
    ("member", "value", "field"),
    [
        ("nodes", None, "Nodes"),
        ("nodes", [], "NodeCount"),
        ("nodes", [None], "Nodes[0]"),
        ("nodes", [dml.OperatorGraphNodeDesc(None)], "Nodes[0].Operator"),  # type: ignore[arg-type]
        ("input_edges", 3, "InputEdges"),
        ("input_edges", [dml.OutputGraphEdgeDesc(0, 0, 0)], "InputEdges[0]"),
        ("output_edges", ["x"], "OutputEdges[0]"),
        ("intermediate_edges", {}, "IntermediateEdges"),
        ("input_count", -1, "InputCount"),
        ("input_count", 2**32 - 1, "InputCount"),
        ("output_count", "1", "OutputCount"),
    ],
)
def test_2_7_other_things_are_refused_with_their_field(member: str, value: Any, field: str) -> None:
    world = World()
    with refused("OP_FIELD_RANGE", "2.7", field):
        world.dml.compile_graph(replace(chain(world), **{member: value}))
    assert chain_works(world)


def test_2_7_no_graph_at_all() -> None:
    world = World()
    with refused("OP_FIELD_RANGE", "2.7", "Desc"):
        world.dml.compile_graph(None)  # type: ignore[arg-type]


def test_2_7_unknown_flags() -> None:
    world = World()
    with refused("EXEC_FLAG_BAD", "2.6", "Flags"):
        world.dml.compile_graph(chain(world), 8)  # type: ignore[arg-type]


def test_2_7_operators_of_another_device_and_released_ones() -> None:
    world, other = World(), World()
    with refused("BIND_FOREIGN_DEVICE", "DD4", "Nodes[0].Operator"):
        world.dml.compile_graph(chain(other))
    desc = chain(world)
    desc.nodes[1].operator.release()  # type: ignore[union-attr]
    with refused("OBJECT_DELETED_IN_USE", "2.10", "Nodes[1].Operator"):
        world.dml.compile_graph(desc)


def test_2_7_before_level_2_1_there_are_no_graphs() -> None:
    with refused("OP_FEATURE_LEVEL", "IDMLDevice1", "", HResult.E_NOINTERFACE):
        World(level=Levels.LEVEL_2_0).dml.compile_graph(None)  # type: ignore[arg-type]
    assert chain_works(World(level=Levels.LEVEL_2_1))


def test_2_7_larger_than_any_buffer() -> None:
    world = World()
    huge = tensor(4, total_tensor_size_in_bytes=2**64 - 4)
    nodes = [
        dml.ActivationReluOperatorDesc(input_tensor=tensor(4), output_tensor=huge),
        dml.ActivationReluOperatorDesc(input_tensor=huge, output_tensor=tensor(4)),
    ]
    desc = make(world, nodes, inputs=[(0, 0, 0)], between=[(0, 0, 1, 0)], outputs=[(1, 0, 0)])
    with refused("OUT_OF_MEMORY", "2.7", "", HResult.E_OUTOFMEMORY):
        world.dml.compile_graph(desc)
    owned = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=replace(huge, flags=OWNED), output_tensor=tensor(4)
    )
    graph = world.dml.compile_graph(make(world, [owned], inputs=[(0, 0, 0)], outputs=[(0, 0, 0)]))
    assert graph.get_binding_properties().persistent_resource_size == 256
    world.dml.create_operator_initializer([graph])


# --- copies that are left out, and memory that tensors share ---

PLAIN = dml.ExecutionFlags.DISABLE_META_COMMANDS


def cast(source: dml.TensorDataType, target: dml.TensorDataType) -> dml.OperatorDesc:
    tensors = (dml.BufferTensorDesc(each, (1, 1, 1, 4)) for each in (source, target))
    return dml.CastOperatorDesc(input_tensor=next(tensors), output_tensor=next(tensors))


def calls(world: World, graph: dml.GraphDesc) -> tuple[int, int]:
    """How many kernel calls a graph makes, compiled with all its copies and without the needless ones."""
    plain, compiled = (world.dml.compile_graph(graph, flags) for flags in (PLAIN, dml.ExecutionFlags.NONE))
    found = [run(world, each, {0: ABCD - 2}, [FOUR] * graph.output_count) for each in (plain, compiled)]
    assert found[0] == found[1]
    return len(plain.calls), len(compiled.calls)


def in_a_row(
    world: World, descs: Sequence[dml.OperatorDesc], outputs: Sequence[int] = (-1,)
) -> dml.GraphDesc:
    """Each node reads the one before; ``outputs``: the nodes whose results are outputs of the graph."""
    between = [(i, 0, i + 1, 0) for i in range(len(descs) - 1)]
    results = [(node % len(descs), 0, i) for i, node in enumerate(outputs)]
    return make(world, descs, inputs=[(0, 0, 0)], between=between, outputs=results)


@pytest.mark.parametrize(
    ("descs", "outputs", "left"),
    [
        ([relu(), identity(), relu()], [-1], 2),
        ([identity(), relu()], [-1], 1),
        ([relu(), identity()], [-1], 1),  # relu writes the output
        ([relu(), cast(F32, F32), identity(), cast(F32, F32)], [-1], 1),
        ([relu(), cast(F32, I32), cast(I32, F32)], [-1], 3),  # they round
        ([identity()], [-1], 1),  # from an input to an output
        ([relu(), identity()], [0, 1], 2),  # both are outputs
        ([relu(), identity(), identity()], [1, 2], 2),
        ([relu(), identity(), identity(), relu()], [1, 3], 2),
    ],
)
def test_needless_copies(descs: Sequence[dml.OperatorDesc], outputs: Sequence[int], left: int) -> None:
    world = World()
    assert calls(world, in_a_row(world, descs, outputs)) == (len(descs), left)


def test_copies_between_layouts_stay() -> None:
    world = World()
    swapped = dml.BufferTensorDesc(F32, (1, 1, 2, 2), (4, 4, 1, 2))
    packed = dml.BufferTensorDesc(F32, (1, 1, 2, 2))
    copy = dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=swapped)
    assert calls(world, in_a_row(world, [relu(), copy, relu()])) == (3, 3)


def test_a_copy_of_less_than_what_is_read_stays() -> None:
    """The reader's layout reaches behind the copied elements, which a graph input may not have."""
    world = World()
    narrow = dml.BufferTensorDesc(F32, (1, 1, 1, 2), total_tensor_size_in_bytes=16)
    copy = dml.ElementWiseIdentityOperatorDesc(input_tensor=narrow, output_tensor=narrow)
    graph = in_a_row(world, [copy, relu()])
    assert len(world.dml.compile_graph(graph).calls) == 2


def test_a_copy_of_an_input_that_is_padded_at_its_end_stays() -> None:
    """The reader's range is longer than the binding that the graph asks for."""
    world = World()
    packed = dml.BufferTensorDesc(F32, (1, 1, 1, 4))
    padded = dml.BufferTensorDesc(F32, (1, 1, 1, 4), total_tensor_size_in_bytes=32)
    copy = dml.ElementWiseIdentityOperatorDesc(input_tensor=packed, output_tensor=padded)
    reader = dml.ActivationReluOperatorDesc(input_tensor=padded, output_tensor=packed)
    compiled = world.dml.compile_graph(in_a_row(world, [copy, reader]))
    assert len(compiled.calls) == 2
    assert run(world, compiled, {0: ABCD - 2}, [FOUR]) == [[0, 0, 1, 2]]


@pytest.mark.parametrize("strides", [None, (4, 4, 4, 2)], ids=["fewer elements", "gaps"])
def test_a_copy_of_some_elements_to_an_output_stays(strides: Any) -> None:
    """The operator before it would write elements of the output that are not the copy's."""
    world = World()
    part = dml.BufferTensorDesc(F32, (1, 1, 1, 2), strides, total_tensor_size_in_bytes=16)
    target = dml.BufferTensorDesc(F32, (1, 1, 1, 2), strides)
    copy = dml.ElementWiseIdentityOperatorDesc(input_tensor=part, output_tensor=target)
    (found,) = run(world, world.dml.compile_graph(in_a_row(world, [relu(), copy])), {0: ABCD}, [FOUR])
    assert found == ([1, 2, 0, 0] if strides is None else [1, 0, 3, 0])


@pytest.mark.parametrize("sizes", [(16, 64, 64, 16), (16, 64, 16, 16), (64, 16, 64, 16), (16, 16, 64, 64)])
def test_copies_between_tensors_of_other_total_sizes(sizes: Sequence[int]) -> None:
    """A tensor may be padded at its end; the copy reads or writes less, or more."""

    def padded(size: int) -> dml.BufferTensorDesc:
        return dml.BufferTensorDesc(F32, (1, 1, 1, 4), total_tensor_size_in_bytes=size)

    def node(kind: type[Any], source: int, target: int) -> dml.OperatorDesc:
        desc: dml.OperatorDesc = kind(input_tensor=padded(source), output_tensor=padded(target))
        return desc

    world = World()
    a, b, c, d = sizes
    relu_, copy = dml.ActivationReluOperatorDesc, dml.ElementWiseIdentityOperatorDesc
    for descs in (
        [node(relu_, a, b), node(copy, b, c), node(relu_, c, d)],
        [node(copy, a, b), node(relu_, b, d)],
        [node(relu_, a, b), node(copy, b, c)],
    ):
        graph = world.dml.compile_graph(in_a_row(world, descs))
        assert run(world, graph, {0: ABCD - 2}, [FOUR]) == [[0, 0, 1, 2]]


def test_a_second_output_keeps_its_gaps() -> None:
    world = World()
    gaps = dml.BufferTensorDesc(F32, (1, 1, 1, 2), (4, 4, 4, 2))
    packed = dml.BufferTensorDesc(F32, (1, 1, 1, 2))
    node = dml.ActivationReluOperatorDesc(input_tensor=packed, output_tensor=gaps)
    graph = make(world, [node], inputs=[(0, 0, 0)], outputs=[(0, 0, 0), (0, 0, 1)])
    (copy,) = world.dml.compile_graph(graph).calls[1:]
    assert {(each.sizes, each.strides) for each in copy.operands} == {((1, 1, 1, 2), (4, 4, 4, 2))}


def test_a_chain_takes_the_memory_of_two_tensors() -> None:
    world = World()
    graph = world.dml.compile_graph(in_a_row(world, [relu() for _ in range(9)]))
    assert graph.get_binding_properties().temporary_resource_size == 2 * 256
    assert run(world, graph, {0: ABCD - 2}, [FOUR]) == [[0, 0, 1, 2]]


# --- results of graphs ---


def test_add_activation_reduce() -> None:
    world = World()
    elu = dml.ActivationEluOperatorDesc(input_tensor=tensor(2, 3), output_tensor=tensor(2, 3), alpha=0.5)
    total = dml.ElementWiseAddOperatorDesc(
        a_tensor=tensor(2, 3), b_tensor=tensor(2, 3, strides=(0, 0, 0, 1)), output_tensor=tensor(2, 3)
    )
    reduce = dml.ReduceOperatorDesc(
        function=dml.ReduceFunction.SUM, input_tensor=tensor(2, 3), output_tensor=tensor(2, 1), axes=[3]
    )
    compiled = world.dml.compile_graph(
        make(
            world,
            [reduce, elu, total],  # the last runs first
            inputs=[(0, 2, 0), (1, 2, 1)],
            between=[(2, 0, 1, 0), (1, 0, 0, 0)],
            outputs=[(0, 0, 0)],
        )
    )
    a, b = np.linspace(-3, 3, 6, dtype=np.float32), np.array([-1, 0, 1], np.float32)
    x = a.reshape(2, 3).astype(float) + b
    expected = np.where(x < 0, 0.5 * np.expm1(x), x).sum(axis=1)
    [result] = run(world, compiled, {0: a, 1: b}, [(2, np.float32)])
    assert np.allclose(result, expected, rtol=1e-6)


def test_diamond() -> None:
    """x -> RELU(x), CLIP(x) -> their sum, with a node's own temporary in between (FLOAT16 GEMM)."""
    world = World()
    clip = dml.ElementWiseClipOperatorDesc(input_tensor=tensor(4), output_tensor=tensor(4), min=-1.5, max=2.5)
    compiled = world.dml.compile_graph(
        make(
            world,
            [identity(), relu(), half_gemm(), clip, add()],
            inputs=[(0, 0, 0), (1, 2, 0), (2, 2, 1)],
            between=[(0, 0, 1, 0), (0, 0, 3, 0), (1, 0, 4, 0), (3, 0, 4, 1)],
            outputs=[(4, 0, 0), (2, 0, 1)],
        )
    )
    x = np.array([-2, -1, 2, 3], np.float32)
    a, b = np.arange(-3, 3, dtype=np.float16), np.arange(12, dtype=np.float16)
    results = run(world, compiled, {0: x, 1: a, 2: b}, [FOUR, (8, np.float16)])
    product = np.maximum(a.reshape(2, 3) @ b.reshape(3, 4), 0)
    assert results == [(np.maximum(x, 0) + x.clip(-1.5, 2.5)).tolist(), product.ravel().tolist()]


def test_int8_convolution_and_cast() -> None:
    """The weights are OWNED_BY_DML, the zero point is a constant."""
    world = World()
    convolve = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=dml.BufferTensorDesc(INT8, (1, 2, 3, 3)),
        input_zero_point_tensor=dml.BufferTensorDesc(INT8, (1, 1, 1, 1)),
        filter_tensor=dml.BufferTensorDesc(INT8, (2, 2, 2, 2), flags=OWNED),
        output_tensor=dml.BufferTensorDesc(I32, (1, 2, 2, 2)),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[0, 0],
        end_padding=[0, 0],
        group_count=1,
    )
    cast = dml.CastOperatorDesc(
        input_tensor=dml.BufferTensorDesc(I32, (1, 1, 1, 8)),
        output_tensor=dml.BufferTensorDesc(F32, (1, 1, 1, 8)),
    )
    compiled = world.dml.compile_graph(
        make(
            world,
            [convolve, cast, np.array([3, 0, 0, 0], np.int8)],
            inputs=[(0, 0, 0), (1, 0, 2)],
            between=[(2, 0, 0, 1), (0, 0, 1, 0)],
            outputs=[(1, 0, 0)],
        )
    )
    random = np.random.default_rng(5)
    x = random.integers(-128, 128, (2, 3, 3)).astype(np.int8)
    w = random.integers(-128, 128, (2, 2, 2, 2)).astype(np.int8)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(int) - 3, (2, 2), axis=(1, 2))
    expected = np.einsum("chwij,kcij->khw", windows, w.astype(int))
    arrays = {0: np.append(x.ravel(), np.zeros(2, np.int8)), 1: w}
    assert run(world, compiled, arrays, [(8, np.float32)], owned=[1]) == [expected.ravel().tolist()]


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_constant_filter_is_kept_as_an_owned_one(nodes: int) -> None:
    """Once, in the layout that the kernel reads fastest, however many nodes read it."""
    filters = np.random.default_rng(6).integers(-128, 128, (16, 4, 3, 2)).astype(np.int8)

    def convolution(flags: dml.TensorFlags) -> dml.OperatorDesc:
        sizes = {"input_tensor": (1, 4, 5, 6), "filter_tensor": filters.shape, "output_tensor": (1, 16, 3, 5)}
        types = dict(zip(sizes, (INT8, INT8, I32), strict=True))
        tensors = {name: dml.BufferTensorDesc(types[name], each) for name, each in sizes.items()}
        tensors["filter_tensor"] = replace(tensors["filter_tensor"], flags=flags)
        return dml.ConvolutionIntegerOperatorDesc(
            **tensors,  # type: ignore[arg-type]
            strides=[1, 1],
            dilations=[1, 1],
            start_padding=[0, 0],
            end_padding=[0, 0],
            group_count=1,
        )

    world, every = World(), range(nodes)
    outputs = [(i, 0, i) for i in every]
    owned = make(
        world,
        [convolution(OWNED) for _ in every],
        inputs=[(0, i, 0) for i in every] + [(1, i, 2) for i in every],
        outputs=outputs,
    )
    constant = make(
        world,
        [*(convolution(dml.TensorFlags.NONE) for _ in every), filters],
        inputs=[(0, i, 0) for i in every],
        between=[(nodes, 0, i, 2) for i in every],
        outputs=outputs,
    )
    x = np.random.default_rng(7).integers(-128, 128, (4, 5, 6)).astype(np.int8)
    results, layouts = [], []
    for graph, arrays, kept in ((owned, {0: x, 1: filters}, [1]), (constant, {0: x}, [])):
        compiled = world.dml.compile_graph(graph)
        assert compiled.get_binding_properties().persistent_resource_size == 512 + 512  # filters, their sums
        assert all(call.operands[4].sizes == (16, 3, 2) for call in compiled.calls)
        layouts.append([call.operands[2].strides for call in compiled.calls])
        results.append(run(world, compiled, arrays, [(240, np.int32)] * nodes, owned=kept))
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(int), (3, 2), axis=(1, 2))
    expected = np.einsum("chwij,kcij->khw", windows, filters.astype(int)).ravel().tolist()
    assert results == [[expected] * nodes] * 2
    bound = world.compile(convolution(dml.TensorFlags.NONE)).calls[0].operands[2].strides
    assert layouts[0] == layouts[1] and bound not in layouts[1]


def test_the_order_does_not_depend_on_the_order_of_edges() -> None:
    """Independent nodes run in the order of the list."""
    world = World()
    nodes, inputs = [relu(i + 1) for i in range(9)], [(i, i, 0) for i in range(9)]
    outputs = [(i, 0, i) for i in range(9)]
    graphs = [
        world.dml.compile_graph(make(world, nodes, inputs=inputs[::step], outputs=outputs[::step]))
        for step in (1, -1)
    ]
    assert graphs[0].calls == graphs[1].calls


def test_removed_device() -> None:
    world = World(Strictness.RUNTIME)
    desc = chain(world)
    world.table(world.compile(add())).bind_inputs([])
    with pytest.raises(dmlemu.Error) as caught:
        world.dml.compile_graph(desc)
    assert caught.value.hresult == HResult.DXGI_ERROR_DEVICE_REMOVED


# --- random graphs against NumPy ---

SHAPE = (1, 2, 1, 3)
LAYOUTS = [None, (6, 3, 3, 1), (6, 1, 2, 2)]  # both of the same total size


def _tensor(strides: Any, owned: bool = False) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(F32, SHAPE, strides, flags=OWNED if owned else dml.TensorFlags.NONE)


def _unary(kind: type[dml.OperatorDesc], a: dml.BufferTensorDesc, out: dml.BufferTensorDesc) -> Any:
    return kind(input_tensor=a, output_tensor=out)  # type: ignore[call-arg]


Element = tuple[int, type[dml.OperatorDesc], Callable[..., Array]]
ELEMENTS: list[Element] = [
    (2, dml.ElementWiseAddOperatorDesc, np.add),
    (1, dml.ElementWiseIdentityOperatorDesc, np.positive),
    (1, dml.ActivationReluOperatorDesc, lambda x: np.maximum(x, np.float32(0))),
]


def _view(memory: Array, strides: Any) -> Array:
    """The elements of a tensor of SHAPE in 6 floats."""
    packed = strides or (6, 3, 3, 1)
    return np.lib.stride_tricks.as_strided(memory, SHAPE, [4 * stride for stride in packed])


@st.composite
def graphs(draw: Any) -> Any:
    """Nodes in an order in which they can run, then shuffled; each reads inputs, constants or nodes."""
    kinds = [draw(st.sampled_from(ELEMENTS)) for _ in range(draw(st.integers(1, 7)))]
    input_count, constant_count = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    layouts = st.sampled_from(LAYOUTS)
    nodes = []
    for i, (arity, *_) in enumerate(kinds):
        sources = [("input", k) for k in range(input_count)] + [
            ("constant", k) for k in range(constant_count)
        ]
        sources += [("node", k) for k in range(i)]
        reads = [(draw(st.sampled_from(sources)), draw(layouts)) for _ in range(arity)]
        nodes.append((reads, draw(layouts)))
    results = draw(st.lists(st.integers(0, len(nodes) - 1), min_size=1, max_size=4))
    numbers = draw(st.permutations(range(len(nodes) + constant_count)))
    owned = draw(st.sets(st.integers(0, input_count - 1)))
    return kinds, nodes, results, numbers, owned, input_count, constant_count


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 2**32 - 1))
def test_random_graphs(graph: Any, seed: int) -> None:
    kinds, nodes, results, numbers, owned, input_count, constant_count = graph
    random, world = np.random.default_rng(seed), World()
    values = {("input", k): random.integers(-9, 9, 6).astype(np.float32) for k in range(input_count)}
    values |= {("constant", k): random.integers(-9, 9, 6).astype(np.float32) for k in range(constant_count)}
    place = {("node", k): numbers[k] for k in range(len(nodes))}
    place |= {("constant", k): numbers[len(nodes) + k] for k in range(constant_count)}
    descs: dict[int, Any] = {place["constant", k]: values["constant", k] for k in range(constant_count)}
    inputs, between = [], []
    for i, ((_, kind, function), (reads, layout)) in enumerate(zip(kinds, nodes, strict=True)):
        tensors = [_tensor(strides, source[0] == "input" and source[1] in owned) for source, strides in reads]
        names = ["input_tensor"] if len(tensors) == 1 else ["a_tensor", "b_tensor"]
        fields = dict(zip(names, tensors, strict=True))
        descs[place["node", i]] = kind(**fields, output_tensor=_tensor(layout))  # type: ignore[call-arg]
        memory = np.zeros(6, np.float32)
        _view(memory, layout)[...] = function(*(_view(values[source], strides) for source, strides in reads))
        values["node", i] = memory
        for k, (source, _) in enumerate(reads):
            if source[0] == "input":
                inputs.append((source[1], place["node", i], k))
            else:
                between.append((place[source], 0, place["node", i], k))
    used = {edge[0] for edge in inputs}
    desc = make(
        world,
        [descs[number] for number in sorted(descs)],
        inputs=inputs,
        between=between,
        outputs=[(place["node", k], 0, i) for i, k in enumerate(results)],
        counts=(input_count, len(results)),
    )
    arrays = {k: values["input", k] for k in used}
    for flags in (dml.ExecutionFlags.NONE, PLAIN):
        compiled = world.dml.compile_graph(desc, flags)
        found = run(world, compiled, arrays, [(6, np.float32)] * len(results), sorted(owned & used))
        assert found == [values["node", k].tolist() for k in results]
