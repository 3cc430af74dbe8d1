"""Compiled graphs: what is computed, inputs and constants, layouts of tensors, errors."""

from __future__ import annotations

import gc
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.graph import (
    CompiledGraph,
    Expression,
    Graph,
    TensorProperties,
    average_pooling,
    convolution,
    element_wise_identity,
    gemm,
    interleaved_bytes,
    interleaved_channel,
    packed,
    reduce,
    relu,
    top_k,
    transpose,
)
from dmlemu.testing.strategies import layouts_of

T = dml.TensorDataType
DEVICE = dml.create_device(dmlemu.d3d12.create_device(dmlemu.d3d12.Adapter()))  # the default one stays free
IMAGE = np.random.default_rng(1).standard_normal((1, 3, 6, 5), np.float32)
WEIGHTS = np.random.default_rng(2).standard_normal((4, 3, 3, 3), np.float32)


def network(graph: Graph, **constant: Any) -> tuple[Expression, Expression]:
    """Its input and its output."""
    x = graph.input([1, 3, 6, 5], name="x")
    w = graph.constant(WEIGHTS, **constant)
    y = relu(convolution(x, w, start_padding=[1, 1], end_padding=[1, 1]) + 0.5)
    return x, average_pooling(y, window_size=[2, 2], strides=[2, 2], include_padding=False) * 2


def test_the_values_are_those_of_the_operators(graph: Graph) -> None:
    x, w = graph.input([2, 3], name="x"), np.arange(12, dtype=np.float32).reshape(3, 4)
    y = relu(gemm(x, graph.constant(w)) - 10)
    run = graph.compile(y)
    first, second = np.float32([[1, 2, 3], [-1, -2, -3]]), np.ones((2, 3), np.float32)

    np.testing.assert_array_equal(run(x=first), np.maximum(0, first @ w - 10))
    np.testing.assert_array_equal(run(x=second), np.maximum(0, second @ w - 10))
    np.testing.assert_array_equal(run.run({x: first}), np.maximum(0, first @ w - 10))


def test_one_expression_gives_an_array_and_several_a_list(graph: Graph) -> None:
    x = graph.input([2], name="x")
    array = np.float32([1, 2])

    assert graph.compile(x + 1)(x=array).tolist() == [2, 3]
    assert [each.tolist() for each in graph.compile([x + 1])(x=array)] == [[2, 3]]
    both = graph.compile([x + 1, x * 2])
    assert [each.tolist() for each in both(x=array)] == [[2, 3], [2, 4]]


def test_tensors_between_can_be_kept(graph: Graph) -> None:
    x = graph.input([2], name="x")
    y = x + 1
    run = graph.compile(y * 3, keep=[y, transpose(y), x, graph.constant(np.float32([7]))])

    values = [each.tolist() for each in run(x=np.float32([1, 2]))]
    assert values == [[6, 9], [2, 3], [2, 3], [1, 2], [7]]


def test_only_what_is_needed_is_compiled_and_given(graph: Graph) -> None:
    x, y = graph.input([2], name="x"), graph.input([2], name="y")
    total, other = x + y, x * 2

    run = graph.compile(other)
    assert [each.name for each in run.inputs] == ["x"]
    assert "graph of 1 node" in repr(run)
    assert run(x=np.float32([1, 2])).tolist() == [2, 4]
    with pytest.raises(TypeError, match=r"'y' is no input of this graph \(x\)"):
        run(x=np.float32([1, 2]), y=np.float32([1, 2]))
    assert len(graph.compile(total).inputs) == 2


def test_several_outputs_of_an_operator(graph: Graph) -> None:
    values, indices = top_k(graph.input([4], name="x"), axis=0, k=2)
    found = graph.compile([indices, values])(x=np.float32([3, 9, 1, 7]))
    assert [each.tolist() for each in found] == [[3, 1], [7, 9]] or found[1].max() == 9
    assert found[0].dtype == np.uint32


def test_an_output_may_be_asked_for_twice(graph: Graph) -> None:
    x = graph.input([2], name="x")
    y = x + 1
    assert [each.tolist() for each in graph.compile([y, y])(x=np.float32([1, 2]))] == [[2, 3], [2, 3]]


# --- inputs and constants ---


@pytest.mark.parametrize("owned", [True, False])
def test_constants(graph: Graph, owned: bool) -> None:
    _, y = network(graph, owned_by_dml=owned)
    run = graph.compile(y)

    assert [source.owned for source in run.sources] == [False, owned]
    first = run(x=IMAGE)
    assert first.shape == (1, 4, 3, 2)
    np.testing.assert_array_equal(first, run(x=IMAGE))
    np.testing.assert_array_equal(first, dmlemu.evaluate(network(Graph(DEVICE))[1], x=IMAGE))
    assert bool(run.operator.get_binding_properties().persistent_resource_size) is owned


def test_a_constant_may_have_any_layout_and_type(graph: Graph) -> None:
    array = np.arange(6, dtype=np.int8).reshape(2, 3)
    strided = graph.constant(array, dml.BufferTensorDesc(T.INT8, [2, 3], [1, 2]))

    assert strided.strides == (1, 2)
    assert dmlemu.evaluate(strided).tolist() == array.tolist()
    assert dmlemu.evaluate(graph.constant(array[:, ::-1])).tolist() == array[:, ::-1].tolist()
    assert graph.constant(np.array(True)).data_type is T.UINT8
    with pytest.raises(TypeError, match="complex64 has no DML_TENSOR_DATA_TYPE"):
        graph.constant(np.complex64(1))


def test_a_constant_does_not_change_with_its_array(graph: Graph) -> None:
    array = np.float32([1, 2])
    constant = graph.constant(array)
    array[:] = 9
    assert dmlemu.evaluate(constant).tolist() == [1, 2]


def test_inputs(graph: Graph) -> None:
    desc = dml.BufferTensorDesc(T.FLOAT16, [2, 3], [1, 2], 16)
    x = graph.input(desc, name="x")
    array = np.arange(6, dtype=np.float16).reshape(2, 3)

    assert x.desc == desc
    assert dmlemu.evaluate(x + 1, x=array).tolist() == (array + 1).tolist()
    assert [graph.input([1]).name, graph.input([1]).name] == ["input1", "input2"]
    with pytest.raises(ValueError, match="has an input named 'x' already"):
        graph.input([1], name="x")


def test_an_owned_input_is_given_once(graph: Graph) -> None:
    owned = dml.BufferTensorDesc(T.FLOAT32, [2], flags=dml.TensorFlags.OWNED_BY_DML)
    x, w = graph.input([2], name="x"), graph.input(owned, name="w")
    run = graph.compile(x * w)
    one, two = np.float32([1, 2]), np.float32([5, 7])

    assert run(x=one, w=two).tolist() == [5, 14]
    assert run(x=two).tolist() == [25, 49]
    with pytest.raises(TypeError, match="'w' is no input of this graph any more: DirectML owns it"):
        run(x=one, w=one)
    run.close()
    with pytest.raises(TypeError, match="The graph's input 'w' is missing"):
        run(x=one)
    assert run(x=one, w=one).tolist() == [1, 4]


def test_arrays_that_do_not_fit(graph: Graph) -> None:
    x = graph.input([2], name="x")
    run = graph.compile(x + 1)

    with pytest.raises(TypeError, match="The graph's input 'x' is missing"):
        run()
    with pytest.raises(dmlemu.Error, match="shape"):
        run(x=np.zeros(3, np.float32))
    with pytest.raises(dmlemu.Error, match="float64"):
        run(x=np.zeros(2))
    assert run(x=np.float32([1, 2])).tolist() == [2, 3]


def test_inputs_are_given_once_and_by_expressions_of_the_graph(graph: Graph) -> None:
    x, array = graph.input([2], name="x"), np.float32([1, 2])
    y = x + 1
    run = graph.compile(y)

    with pytest.raises(TypeError, match="arrays must be a dict by input or name, not list"):
        run.run([array])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="The input 'x' is given twice"):
        run.run({x: array, "x": array})
    for other in (Graph(graph.device).input([2], name="x"), y):
        with pytest.raises(TypeError, match=r"<Expression .*> is no input of this graph\."):
            run.run({other: array})
    assert run.run({x: array}).tolist() == [2, 3]


def test_inputs_without_names_get_free_ones(graph: Graph) -> None:
    graph.input([1], name="input1")
    assert [graph.input([1]).name for _ in range(2)] == ["input2", "input3"]
    graph.input([1], name="input4")
    assert graph.input([1]).name == "input5"


# --- evaluate ---


def test_evaluate_takes_expressions(graph: Graph) -> None:
    x = graph.input([2], name="x")
    y = x + 1
    array = np.float32([1, 2])

    assert dmlemu.evaluate(y, {x: array}).tolist() == [2, 3]
    assert dmlemu.evaluate(y, x=array).tolist() == [2, 3]
    assert [each.tolist() for each in dmlemu.evaluate([y, x, y * 2], {"x": array})] == [
        [2, 3],
        [1, 2],
        [4, 6],
    ]
    assert dmlemu.evaluate(y, {x: array}, execution_flags=dml.ExecutionFlags.DISABLE_META_COMMANDS).size == 2


def test_what_evaluate_refuses(graph: Graph) -> None:
    y = graph.input([2], name="x") + 1

    with pytest.raises(TypeError, match="must be left out for expressions"):
        dmlemu.evaluate(y, {}, device=graph.device)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="desc must be an operator desc, an expression"):
        dmlemu.evaluate([1], {})  # type: ignore[list-item]
    with pytest.raises(TypeError, match="desc must be an operator desc, an expression"):
        dmlemu.evaluate(memoryview(np.zeros((2, 2))))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="inputs are for expressions"):
        desc = y.node.operator.desc  # type: ignore[attr-defined]
        dmlemu.evaluate(desc, {"x": np.zeros(2, np.float32)})


# --- layouts ---


def test_policies_lay_out_what_operators_make(graph: Graph) -> None:
    x = graph.input([1, 3, 4, 5])

    assert element_wise_identity(x).desc.strides is None
    graph.policy = interleaved_channel
    assert element_wise_identity(x).strides == (60, 1, 15, 3)
    assert element_wise_identity(graph.input([2, 3])).desc.strides is None
    graph.policy = interleaved_bytes
    assert element_wise_identity(x).desc.strides is None
    assert element_wise_identity(graph.input([1, 3, 4, 5], T.INT8)).strides == (60, 1, 15, 3)
    assert element_wise_identity(graph.input([3, 4, 5], T.INT8)).desc.strides is None
    graph.policy = lambda data_type, sizes: TensorProperties(None, 256, 256)
    made = element_wise_identity(x).desc
    assert (made.size_in_bytes, made.guaranteed_base_offset_alignment) == (256, 256)
    graph.policy = packed
    assert element_wise_identity(x).desc.size_in_bytes == 240
    graph.policy = lambda data_type, sizes: sizes  # type: ignore[assignment,return-value]
    with pytest.raises(TypeError, match="A tensor policy returns TensorProperties, not tuple"):
        element_wise_identity(x)


def test_a_policy_that_the_device_refuses(graph: Graph) -> None:
    graph.policy = lambda data_type, sizes: TensorProperties([0] * len(sizes))
    with pytest.raises(dmlemu.Error, match="TENSOR_OUT_BROADCAST"):
        element_wise_identity(graph.input([2, 3]))


@given(st.data())
def test_no_layout_changes_the_values(data: st.DataObject) -> None:
    def any_layout(data_type: T, sizes: tuple[int, ...]) -> TensorProperties:
        drawn = data.draw(layouts_of(sizes, data_type, output=True))
        return TensorProperties(
            drawn.strides, drawn.total_tensor_size_in_bytes, drawn.guaranteed_base_offset_alignment
        )

    usual, other = Graph(DEVICE), Graph(DEVICE, policy=any_layout)
    found = [dmlemu.evaluate(network(each)[1], x=IMAGE) for each in (usual, other)]
    np.testing.assert_array_equal(*found)


# --- compiling ---


def test_nodes_are_called_by_name_and_line(graph: Graph) -> None:
    """What CompileGraph says of the graph names the line of the expression."""
    x = graph.input([2, 2], name="x")
    y = element_wise_identity(relu(x, name="rectified"))
    turned = element_wise_identity(transpose(y), name="turned")
    before = set(map(id, graph.device.get_parent_device().reports))
    graph.compile(turned)

    reports = graph.device.get_parent_device().reports
    (report,) = (each for each in reports if id(each) not in before)
    assert report.id == "GRAPH_EDGE_MISMATCH"
    assert f"'turned at {turned.location}'" in report.message
    assert f"'element_wise_identity at {y.location}'" in report.message


def test_what_cannot_be_compiled(graph: Graph) -> None:
    x = graph.input([2])

    with pytest.raises(TypeError, match="outputs must be an Expression or a list of them, not int"):
        graph.compile(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="policy must be a function, not NoneType"):
        Graph(graph.device, policy=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name must be a str"):
        graph.input([1], name=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="desc must be a BufferTensorDesc"):
        graph.constant([1.5], [1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="outputs must be expressions, not int"):
        graph.compile([1])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="belongs to another graph"):
        Graph(graph.device).compile(x + 1)
    with pytest.raises(ValueError, match="at least one output"):
        graph.compile([])
    with pytest.raises(dmlemu.Error, match="EXEC_FLAG_BAD"):
        graph.compile(x + 1, flags=1024)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"device must be a dmlemu\.dml\.Device, not NoneType"):
        Graph(None)  # type: ignore[arg-type]


def test_a_program_may_bind_the_operator_itself(graph: Graph) -> None:
    _, y = network(graph)
    run = graph.compile(y, name="network")
    with dmlemu.Session(graph.device) as session:
        image, weights = session.upload("x", IMAGE), session.upload("w", WEIGHTS)
        result = session.buffer("y", run.outputs[0].desc.size_in_bytes)
        store, scratch = session.persistent_buffer(run.operator), session.temporary_buffer(run.operator)
        session.initialize(run.operator, inputs=[[None, weights]], persistent=[store])
        session.barrier()
        session.dispatch(run.operator, [image, None], [result], persistent=store, temporary=scratch)
        found = session.read(result, np.float32, y.sizes)

    np.testing.assert_array_equal(found, run(x=IMAGE))
    assert run.operator.name == "network"


def test_a_closed_graph_runs_again(graph: Graph) -> None:
    _, y = network(graph)
    with graph.compile(y) as run:
        first = run(x=IMAGE)
    assert isinstance(run, CompiledGraph)
    np.testing.assert_array_equal(run(x=IMAGE), first)
    run.close()
    run.close()


def test_a_graph_runs_again_after_an_exception(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    _, y = network(graph)
    run = graph.compile(y)
    first, original = run(x=IMAGE), d3d12.CommandQueue.execute_command_lists
    for number in (1, 2):  # of what the next call executes: initialisation, dispatch
        turns = iter([None] * (number - 1))

        def interrupted(queue: d3d12.CommandQueue, lists: Any, turns: Any = turns) -> None:
            if next(turns, KeyboardInterrupt) is not None:
                raise KeyboardInterrupt
            original(queue, lists)

        with monkeypatch.context() as patch:
            patch.setattr(d3d12.CommandQueue, "execute_command_lists", interrupted)
            run.close()
            with pytest.raises(KeyboardInterrupt):
                run(x=IMAGE)
        np.testing.assert_array_equal(run(x=IMAGE), first)


@pytest.mark.parametrize("number", [1, 2])  # of what a first call executes: initialisation, dispatch
def test_a_graph_runs_again_while_the_gpu_still_executes_what_was_interrupted(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    _, y = network(graph)
    run = graph.compile(y)
    first = run(x=IMAGE)
    run.close()
    original, turns = d3d12.CommandQueue.execute_command_lists, itertools.count(1)

    def interrupted(queue: d3d12.CommandQueue, lists: Any) -> None:
        original(queue, lists)
        if next(turns) == number:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(d3d12.CommandQueue, "execute_command_lists", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(x=IMAGE)
    gc.collect()
    np.testing.assert_array_equal(run(x=IMAGE), first)


def test_a_graph_that_only_reduces(graph: Graph) -> None:
    x = graph.input([3, 4], name="x")
    total = reduce(x, function=dml.ReduceFunction.SUM, axes=[1])
    assert dmlemu.evaluate(total, x=np.ones((3, 4), np.float32)).tolist() == [[4], [4], [4]]


def test_constants_keep_their_alignment(graph: Graph) -> None:
    """Two in one buffer, the second of which begins at a multiple of more than the usual 256 bytes."""
    far = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [3], None, None, 4096)
    for owned in (True, False):
        first = graph.constant(np.float32([1, 2, 3]), owned_by_dml=owned)
        second = graph.constant(np.float32([10, 20, 30]), far, owned_by_dml=owned)
        assert graph.compile(first + second)().tolist() == [11, 22, 33]
