"""InferenceSession: inputs, errors, what runs where."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from models import Array, model, node
from onnx import TensorProto as T
from onnx import helper

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.graph import interleaved_channel, packed, random_layouts
from dmlemu.onnx import InferenceSession, ModelError


def relu() -> onnx.ModelProto:
    return model([node("Relu", ["x"], "y")], [("x", T.FLOAT, ["n", 3])], [("y", T.FLOAT, ["n", 3])])


X = np.array([[-1, 0, 2]], np.float32)


def network() -> onnx.ModelProto:
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.normal(size=(4, 3, 3, 3)).astype(np.float32),
        "m": rng.normal(size=(4, 5)).astype(np.float32),
    }
    nodes = [
        node("Conv", ["x", "w"], "c", pads=[1, 1, 1, 1]),
        node("Relu", ["c"], "r"),
        node("GlobalAveragePool", ["r"], "p"),
        node("Flatten", ["p"], "f"),
        node("MatMul", ["f", "m"], "y"),
    ]
    return model(nodes, [("x", T.FLOAT, ["n", 3, 8, 8])], [("y", T.FLOAT, ["n", 5])], constants)


def test_a_file_runs(tmp_path: Path) -> None:
    onnx.save(relu(), tmp_path / "relu.onnx")
    session = InferenceSession(tmp_path / "relu.onnx")
    assert [tuple(each) for each in session.get_inputs()] == [("x", "tensor(float)", ["n", 3])]
    assert [tuple(each) for each in session.get_outputs()] == [("y", "tensor(float)", ["n", 3])]
    assert session.run(None, {"x": X})[0].tolist() == [[0, 0, 2]]


def test_a_graph_is_compiled_once_for_each_shape() -> None:
    session = InferenceSession(relu().SerializeToString())
    for _ in range(2):
        for rows in (1, 2):
            x = np.repeat(X, rows, 0)
            assert session.run(["y"], {"x": x})[0].tolist() == [[0, 0, 2]] * rows
    assert len(session._starts[frozenset()].segments) == 2


@pytest.mark.parametrize("policy", [packed, interleaved_channel, random_layouts(1), random_layouts(2)])
def test_layouts_between_operators_change_no_result(policy: Any) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    expected = InferenceSession(network()).run(None, {"x": x})[0]
    made = InferenceSession(network(), policy=policy).run(None, {"x": x})[0]
    np.testing.assert_allclose(made, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("groups", "data_type", "more", "layouts"),
    [
        (1, T.FLOAT, [], "last last last"),
        (4, T.FLOAT, [], "last last last"),  # depthwise: as its input
        (2, T.FLOAT, [], "last first first"),
        (1, T.FLOAT16, [], "first first first"),
        (1, T.FLOAT, [node("LRN", ["c"], "d", size=3)], "first first first"),
    ],
)
def test_images_of_convolutions_have_channels_last(
    groups: int, data_type: int, more: list[onnx.NodeProto], layouts: str
) -> None:
    nodes = [
        node("Conv", ["x", "w"], "a"),
        node("Conv", ["a", "v"], "b", group=groups),
        node("Relu", ["b"], "c"),
        *more,
    ]
    dtype = onnx.helper.tensor_dtype_to_np_dtype(data_type)
    constants = {"w": np.ones((4, 3, 1, 1), dtype), "v": np.ones((4, 4 // groups, 1, 1), dtype)}
    y = nodes[-1].output[0]
    made = model(nodes, [("x", data_type, [1, 3, 5, 6])], [(y, data_type, [1, 4, 5, 6])], constants)
    session = InferenceSession(made)
    session.run(None, {"x": np.ones((1, 3, 5, 6), dtype)})
    [segment] = session._starts[frozenset()].segments
    assert segment.compiled is not None
    calls = segment.compiled.operator.calls[:3]
    found = ["last" if each.operands[-1].strides[-3] == 1 else "first" for each in calls]
    assert found == layouts.split()


def test_shapes_are_computed_when_the_model_is_compiled() -> None:
    nodes = [
        node("Shape", ["x"], "s"),
        node("Gather", ["s", "zero"], "rows"),
        node("Concat", ["rows", "minus"], "to", axis=0),
        node("Reshape", ["x", "to"], "y"),
    ]
    constants = {"zero": np.array([0]), "minus": np.array([-1])}
    session = InferenceSession(
        model(nodes, [("x", T.FLOAT, ["n", 2, 2])], [("y", T.FLOAT, ["n", 4])], constants)
    )
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    assert session.run(None, {"x": x})[0].tolist() == x.reshape(2, 4).tolist()
    assert [(each.op, each.where) for each in session.placed] == [
        ("Shape", "folded"),
        ("Gather", "folded"),
        ("Concat", "folded"),
        ("Reshape", "device"),
    ]


def test_known_numbers_are_those_of_the_specification() -> None:
    nodes = [
        node("Slice", ["x", "start", "start", "axis", "step"], "a"),
        node("ReduceSum", ["i"], "b"),
        node("GlobalMaxPool", ["image"], "c"),
    ]
    constants: dict[str, Array] = {
        "x": np.float32([1, 2]),
        "start": np.array([-3]),
        "axis": np.array([0]),
        "step": np.array([-1]),
        "i": np.int32([1, 2]),
        "image": np.float32([[[1, 2]]]),
    }
    made = model(nodes, [], [(name, T.UNDEFINED, None) for name in "abc"], constants)
    a, b, c = InferenceSession(made).run(None, {})
    assert a.tolist() == [1]  # a start is not in front of the first element
    assert b.dtype == np.int32 and b.tolist() == [3]
    assert c.tolist() == [[[2]]]


def test_values_that_are_given_as_inputs_are_read_and_compiled_for() -> None:
    nodes = [node("TopK", ["x", "k"], "y", "i")]
    session = InferenceSession(
        model(
            nodes, [("x", T.FLOAT, [4]), ("k", T.INT64, [1])], [("y", T.FLOAT, ["m"]), ("i", T.INT64, ["m"])]
        )
    )
    x = np.array([3, 1, 4, 2], np.float32)
    assert [each.tolist() for each in session.run(None, {"x": x, "k": np.array([2])})] == [[4, 3], [2, 0]]
    assert [each.tolist() for each in session.run(None, {"x": x, "k": np.array([1])})] == [[4], [2]]


def test_sizes_that_depend_on_data_are_the_hosts() -> None:
    nodes = [
        node("Relu", ["x"], "r"),
        node("NonZero", ["r"], "where"),
        node("Cast", ["where"], "y", to=T.FLOAT),
    ]
    session = InferenceSession(model(nodes, [("x", T.FLOAT, [1, 3])], [("y", T.FLOAT, ["k", "m"])]))
    assert session.describe().startswith("The model has not run yet")
    assert session.run(None, {"x": X})[0].tolist() == [[0], [2]]
    assert session.describe().splitlines() == [
        "device: 1 nodes: Relu",
        "host: NonZero where: no DirectML operators are known for NonZero",
        "device: 1 nodes: Cast",
        "as DirectML: Relu: a NaN counts as no number",
    ]


def test_the_host_can_be_refused() -> None:
    nodes = [node("NonZero", ["x"], "y")]
    session = InferenceSession(
        model(nodes, [("x", T.FLOAT, [1, 3])], [("y", T.INT64, ["k", "m"])]), host="error"
    )
    with pytest.raises(
        ModelError, match="NonZero 'y' cannot run on the device: no DirectML operators are known"
    ):
        session.run(None, {"x": X})


def test_a_branch_is_taken_by_the_value_of_its_condition() -> None:
    branches = {
        name: helper.make_graph(
            [node(op, ["x"], f"{name} y")],
            name,
            [],
            [helper.make_tensor_value_info(f"{name} y", T.FLOAT, [1, 3])],
        )
        for name, op in (("then_branch", "Relu"), ("else_branch", "Neg"))
    }
    nodes = [
        node("ReduceSum", ["x"], "sum"),
        node("Greater", ["sum", "zero"], "c"),
        node("If", ["c"], "y", **branches),
    ]
    session = InferenceSession(
        model(
            nodes, [("x", T.FLOAT, [1, 3])], [("y", T.FLOAT, [1, 3])], {"zero": np.float32(0).reshape(1, 1)}
        )
    )
    assert session.run(None, {"x": X})[0].tolist() == [[0, 0, 2]]
    assert session.run(None, {"x": -X})[0].tolist() == [[-1, 0, 2]]


def test_intermediate_tensors_can_be_kept() -> None:
    session = InferenceSession(network(), keep_intermediates=True)
    x = np.ones((1, 3, 8, 8), np.float32)
    pooled, out = session.run(["p", "y"], {"x": x})
    assert pooled.shape == (1, 4, 1, 1) and out.shape == (1, 5)


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        ({}, "The input 'x' is missing"),
        ({"z": X}, "The model has no input 'z'; it has 'x'"),
        ({"x": X.astype(np.float64)}, "The input 'x' is of type double; expected float"),
        ({"x": X[0]}, r"The input 'x' has shape \[3\]; expected \[n, 3\]"),
        ({"x": X[:, :2]}, r"The input 'x' has shape \[1, 2\]; expected \[n, 3\]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(feed: dict[str, Array], message: str) -> None:
    session = InferenceSession(relu())
    with pytest.raises(ModelError, match=message):
        session.run(None, feed)
    assert session.run(None, {"x": X})[0].tolist() == [[0, 0, 2]]


def test_an_output_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(ModelError, match="The model has no output 'z'; it has 'y'"):
        InferenceSession(relu()).run(["z"], {"x": X})


def test_free_dimensions_are_fixed_by_name() -> None:
    session = InferenceSession(relu(), free_dimensions={"n": 2})
    with pytest.raises(ModelError, match=r"expected \[2, 3\]"):
        session.run(None, {"x": X})


# --- files that are not what they should be ---


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no\.onnx cannot be read: No such file"):
        InferenceSession(tmp_path / "no.onnx")


@pytest.mark.parametrize("data", [b"", b"not a model", relu().SerializeToString()[:-7]])
def test_bytes_that_are_no_model_are_refused(data: bytes) -> None:
    with pytest.raises(ModelError, match=r"is not an? (valid )?ONNX model"):
        InferenceSession(data)


def test_an_operator_set_of_the_future_is_refused() -> None:
    made = relu()
    made.opset_import[0].version = 999
    with pytest.raises(ModelError, match=r"uses operator set 999; onnx .* knows those up to"):
        InferenceSession(made)


def test_a_cycle_is_refused() -> None:
    nodes = [node("Add", ["x", "b"], "a"), node("Relu", ["a"], "b")]
    made = model(nodes, [("x", T.FLOAT, [3])], [("b", T.FLOAT, [3])])
    with pytest.raises(ModelError, match="is not a valid ONNX model"):
        InferenceSession(made)


@pytest.mark.parametrize("location", ["../weights.bin", "/etc/hostname", "missing.bin"])
def test_external_data_is_read_in_the_models_folder_alone(tmp_path: Path, location: str) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(12))
    folder = tmp_path / "model"
    folder.mkdir()
    made = model([node("Add", ["x", "w"], "y")], [("x", T.FLOAT, [3])], [("y", T.FLOAT, [3])])
    weights = made.graph.initializer.add(name="w", data_type=T.FLOAT, dims=[3], data_location=T.EXTERNAL)
    weights.external_data.add(key="location", value=location)
    (folder / "net.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ModelError, match=r"External data of .* cannot be read"):
        InferenceSession(folder / "net.onnx")


def test_external_data_that_is_too_long_is_refused(tmp_path: Path) -> None:
    made = model([node("Add", ["x", "w"], "y")], [("x", T.FLOAT, [3])], [("y", T.FLOAT, [3])])
    weights = made.graph.initializer.add(name="w", data_type=T.FLOAT, dims=[3], data_location=T.EXTERNAL)
    weights.external_data.add(key="location", value="weights.bin")
    (tmp_path / "weights.bin").write_bytes(bytes(17))
    (tmp_path / "net.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ModelError, match=r"'w' has 17 bytes, and its shape \[3\] needs 12"):
        InferenceSession(tmp_path / "net.onnx")


def test_external_data_is_read(tmp_path: Path) -> None:
    made = model(
        [node("Add", ["x", "w"], "y")],
        [("x", T.FLOAT, [3])],
        [("y", T.FLOAT, [3])],
        {"w": np.ones(3, np.float32)},
    )
    onnx.save_model(made, tmp_path / "net.onnx", save_as_external_data=True, size_threshold=0)
    session = InferenceSession(tmp_path / "net.onnx")
    assert session.run(None, {"x": X[0]})[0].tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    "output",
    [
        onnx.ValueInfoProto(name="y"),
        onnx.helper.make_tensor_value_info("y", T.FLOAT, None),
        onnx.helper.make_tensor_value_info("y", T.UNDEFINED, [3]),
    ],
    ids=["bare", "no shape", "no element type"],
)
def test_an_output_may_lack_its_type_and_shape(output: onnx.ValueInfoProto) -> None:
    made = model([node("Relu", ["x"], "y")], [("x", T.FLOAT, [3])], [])
    made.graph.output.append(output)
    session = InferenceSession(made)
    assert session.run(None, {"x": X[0]})[0].tolist() == [0, 0, 2]
    assert session.get_outputs()[0].name == "y" and made.graph.output[0] == output


# --- initialisers, names, branches and loops ---


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21, "own" : 1]>\n{text}')


def test_an_input_with_an_initialiser_may_be_given_or_left_out() -> None:
    session = InferenceSession(
        parsed(
            "g (float[1, 3] x, float[1, 3] w) => (float[1, 3] y) <float[1, 3] w = {1, 2, 3}> {y = Add(x, w)}"
        )
    )
    assert [each.name for each in session.get_inputs()] == ["x"]
    assert [each.name for each in session.get_overridable_initializers()] == ["w"]
    for _ in range(2):
        assert session.run(None, {"x": X})[0].tolist() == [[0, 2, 5]]
        assert session.run(None, {"x": X, "w": X})[0].tolist() == [[-2, 0, 4]]
    with pytest.raises(ModelError, match=r"The input 'w' has shape \[3\]"):
        session.run(None, {"x": X, "w": X[0]})


def test_a_sparse_initialiser_is_an_initialiser() -> None:
    made = parsed("g (float[1, 3] x) => (float[1, 3] y) <float[1, 3] w = {1, 2, 3}> {y = Add(x, w)}")
    del made.graph.initializer[:]
    sparse = made.graph.sparse_initializer.add(dims=[1, 3])
    sparse.values.CopyFrom(helper.make_tensor("w", T.FLOAT, [1], [5.0]))
    sparse.indices.CopyFrom(helper.make_tensor("", T.INT64, [1, 2], [0, 1]))
    assert InferenceSession(made).run(None, {"x": X})[0].tolist() == [[-1, 5, 2]]
    sparse.dims[:] = [1, 1]
    with pytest.raises(ModelError, match=r"(The initialiser 'w' cannot be read|is not a valid ONNX model)"):
        InferenceSession(made)
    sparse.dims[:] = [1, 1 << 40]
    with pytest.raises(ModelError, match="larger than any buffer"):
        InferenceSession(made)


@pytest.mark.parametrize(("imported", "named"), [("", "ai.onnx"), ("ai.onnx", ""), ("ai.onnx", "ai.onnx")])
def test_the_domain_of_onnx_has_two_names(imported: str, named: str) -> None:
    """On the device, in a branch, in a function, and on the host."""
    made = parsed(
        """g (float[1, 3] x, bool c) => (int64[2, n] y) {
            z = If (c) <then_branch = a () => (float[1, 3] z) { z = Relu(x) },
                        else_branch = b () => (float[1, 3] z) { z = Identity(x) }>
            f = own.Twice(z)
            y = NonZero(f)
        }
        <domain: "own", opset_import: ["" : 21]> Twice (a) => (b) { b = Add(a, a) }"""
    )
    branch = made.graph.node[0].attribute[0].g
    for each in (*made.graph.node, *branch.node, *made.functions[0].node):
        each.domain = each.domain or named
    for each in (made.opset_import[0], made.functions[0].opset_import[0]):
        each.domain = imported
    before = made.SerializeToString()
    for given in (made, before):
        [y] = InferenceSession(given).run(None, {"x": X, "c": np.array(True)})
        assert y.tolist() == [[0], [2]]
    assert made.SerializeToString() == before


def sparse_tensor() -> onnx.SparseTensorProto:
    """0, 5, 0."""
    values = helper.make_tensor("w", T.FLOAT, [1], [5.0])
    return helper.make_sparse_tensor(values, helper.make_tensor("places", T.INT64, [1], [1]), [3])


def test_a_constant_may_be_sparse() -> None:
    made = parsed("g (float[1, 3] x) => (float[1, 3] y) {y = Add(x, w)}")
    made.graph.node.insert(0, node("Constant", [], "w", sparse_value=sparse_tensor()))
    assert InferenceSession(made).run(None, {"x": X})[0].tolist() == [[-1, 5, 2]]


@pytest.mark.parametrize("op", ["If", "Loop"])
def test_initialisers_of_branches_and_loops_may_be_sparse(op: str) -> None:
    """A Loop runs more turns than are unrolled on the host."""
    for turns in (2, 3000) if op == "Loop" else (1,):
        made = parsed(
            """g (float[1, 3] x, bool c, int64 n) => (float[1, 3] y) {
                y = If (c) <then_branch = a () => (float[1, 3] z) { z = Add(x, w) },
                            else_branch = b () => (float[1, 3] z) { z = Identity(x) }>
            }"""
            if op == "If"
            else """g (float[1, 3] x, bool c, int64 n) => (float[1, 3] y) {
                y = Loop (n, c, x) <body = a (int64 i, bool d, float[1, 3] v) => (bool e, float[1, 3] z) {
                    e = Identity(d) z = Add(v, w)
                }>
            }"""
        )
        body = next(each.g for each in made.graph.node[0].attribute if each.name in ("then_branch", "body"))
        body.sparse_initializer.append(sparse_tensor())
        [y] = InferenceSession(made).run(None, {"x": X, "c": np.array(True), "n": np.array(turns)})
        assert y.tolist() == [[-1, 5 * turns, 2]]


def test_outputs_belong_to_the_caller() -> None:
    """Constants of the model, inputs under another name, and what the host passes on are copied."""
    made = parsed(
        """g (float[1, 3] x) => (float[1, 3] a, float[1, 3] b, int64[2] c, seq(float[1, 3]) d) {
            a = Identity(w) b = Identity(x) c = Shape(x) d = SequenceConstruct(x, w)
        }"""
    )
    made.graph.initializer.append(onnx.numpy_helper.from_array(X + 1, "w"))
    session, x = InferenceSession(made), X.copy()
    for _ in range(2):
        a, b, c, (d, e) = session.run(None, {"x": x})
        for found, expected in ((x, X), (a, X + 1), (b, X), (c, [1, 3]), (d, X), (e, X + 1)):
            np.testing.assert_array_equal(found, expected)
        for each in (a, b, c, d, e):
            each += 7


def test_branches_may_make_tensors_of_the_same_names() -> None:
    """k is a constant of one branch, and computed in another one behind a node of the host."""
    text = """
    g (float[3] x, bool c) => (float[3] y, float[k, m] z) {
        y = If (c) <
            then_branch = a () => (float[3] t) <float[3] k = {5, 5, 5}> {t = Add(x, k)},
            else_branch = b () => (float[3] t) {t = Neg(x)}
        >
        n = NonZero(y)
        f = Cast<to = 1>(n)
        z = If (c) <
            then_branch = d () => (float[1, 3] t) {k = Mul(f, f) t = Add(k, k)},
            else_branch = e () => (float[1, 3] t) {t = Neg(f)}
        >
    }"""
    session = InferenceSession(parsed(text))
    for condition in (True, False, True):
        y, z = session.run(None, {"x": np.float32([1, 2, 3]), "c": np.array(condition)})
        assert y.tolist() == ([6, 7, 8] if condition else [-1, -2, -3])
        assert z.tolist() == ([[0, 2, 8]] if condition else [[0, -1, -2]])


def test_loops_may_have_initialisers_of_the_same_name() -> None:
    turn = (
        "(int64 i, bool c, float[3] v) => (bool d, float[3] w) "
        "<float[3] k = {%s}> {d = Identity(c) w = %s(v, k)}"
    )
    text = f"""
    g (float[3] x, int64 n, bool c) => (float[3] z) {{
        y = Loop(n, c, x) <body = a {turn % ("1, 2, 3", "Add")}>
        z = Loop(n, c, y) <body = b {turn % ("4, 5, 6", "Mul")}>
    }}"""
    session = InferenceSession(parsed(text))
    feed = {"x": np.float32([1, 1, 1]), "n": np.array(2), "c": np.array(True)}
    assert session.run(None, feed)[0].tolist() == [3 * 16, 5 * 25, 7 * 36]


@pytest.mark.parametrize(("turns", "condition"), [(0, True), (-1, True), (3, False)])
def test_a_loop_of_no_turns_has_empty_scan_outputs(turns: int, condition: bool) -> None:
    text = """
    g (float[3] x, int64 n, bool c) => (float[3] y, float[k, 3] s) {
        y, s = Loop(n, c, x) <body = b (int64 i, bool d, float[3] v) => (bool e, float[3] w, float[3] u) {
            e = Identity(d) w = Add(v, v) u = Identity(w)
        }>
    }"""
    session = InferenceSession(parsed(text))
    y, s = session.run(None, {"x": X[0], "n": np.array(turns), "c": np.array(condition)})
    assert y.tolist() == X[0].tolist() and s.shape == (0, 3) and s.dtype == np.float32


def test_a_scan_of_no_turns_has_empty_scan_outputs() -> None:
    text = """
    g (float[3] x, float[t, 3] s) => (float[3] y, float[t, 3] o) {
        y, o = Scan <num_scan_inputs = 1, body = b (float[3] v, float[3] e) => (float[3] w, float[3] f) {
            w = Add(v, e) f = Mul(w, x)
        }>(x, s)
    }"""
    y, o = InferenceSession(parsed(text)).run(None, {"x": X[0], "s": np.zeros((0, 3), np.float32)})
    assert y.tolist() == X[0].tolist() and o.shape == (0, 3)


def test_functions_may_be_in_any_order() -> None:
    """The outer one reads what the host computes, and calls one that is defined behind it."""
    functions = """
    <domain: "own", opset_import: ["" : 21, "own" : 1]> outer (a) => (o) {n = NonZero(a) o = own.inner(n)}
    <domain: "own", opset_import: ["" : 21]> inner (a) => (o) {f = Cast<to = 1>(a) o = Neg(f)}"""
    session = InferenceSession(
        parsed(f"g (float[1, 3] x) => (float[k, m] y) {{y = own.outer(x)}}\n{functions}")
    )
    assert session.run(None, {"x": X})[0].tolist() == [[0, 0], [0, -2]]


def test_functions_that_become_very_many_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlemu.onnx.points._MOST_NODES", 500)
    bodies = "".join(
        f'<domain: "own", opset_import: ["" : 21, "own" : 1]> '
        f"f{i} (a) => (b) {{t = own.f{i + 1}(a) b = own.f{i + 1}(t)}}\n"
        for i in range(30)
    )
    last = '<domain: "own", opset_import: ["" : 21]> f30 (a) => (b) {b = Relu(a)}'
    session = InferenceSession(
        parsed(f"g (float[1, 3] x) => (float[1, 3] y) {{y = own.f0(x)}}\n{bodies}{last}")
    )
    with pytest.raises(ModelError, match="become more than 500 nodes"):
        session.run(None, {"x": X})


# --- models that are valid, but not what they should be ---


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "y = own.Unknown(x)",
            "Unknown 'y' cannot run on the device.*cannot run on the host: the onnx package",
        ),
        ("y = Transpose <perm = [5, 0]>(x)", "Transpose 'y' cannot run on the host: .*out of bounds"),
        (
            "s = Constant <value_ints = [2, 2]>() y = Reshape(x, s)",
            r"Its inputs: x float32 \[1, 3\], s int64",
        ),
        ("z = Constant <value_floats = [1.0, 2.0]>() y = Add(x, z)", r"Its inputs: x .*, z float32 \[2\]"),
        (
            "s = Constant <value_ints = [1099511627776]>() y = ConstantOfShape(s)",
            "ConstantOfShape 'y': its output 'y' of shape .* has 4398046511104 bytes",
        ),
        ("s = Constant <value_ints = [1099511627776, 3]>() y = Expand(x, s)", "Expand 'y': its output 'y'"),
        (
            "s = Constant <value_ints = [90000, 1]>() t = Constant <value_ints = [1, 90000]>() "
            "i = Constant <value_ints = [0]>() a = Gather <axis = 1>(x, i) "
            "b = Expand(a, s) c = Expand(a, t) y = Mul(b, c)",
            "Mul 'y': its output 'y' of shape .* bytes",
        ),
        ("a = Constant <value_int = 0>() y = Range(a, a, a)", "^Range 'y' cannot run on the host: division"),
        ("y = Cast <to = 99>(x)", "Cast 'y'"),
        (
            'p = Constant <value_ints = [0, 1, 0, 0]>() c = Constant <value_string = "1">() y = Pad(x, p, c)',
            "Pad 'y'",
        ),
        ("s = Constant <value_ints = [0, -4]>() y = Unsqueeze(x, s)", "Unsqueeze 'y' cannot run on the host"),
    ],
)
def test_what_cannot_be_computed_is_a_model_error(body: str, message: str) -> None:
    session = InferenceSession(parsed(f"g (float[1, 3] x) => (float y) {{{body}}}"))
    for _ in range(2):
        with pytest.raises(ModelError, match=message):
            session.run(None, {"x": X})


def test_an_element_type_that_onnx_does_not_have_is_refused() -> None:
    made = relu()
    made.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(ModelError, match="'x' has the element type 99"):
        InferenceSession(made)


def test_control_characters_of_a_model_are_escaped() -> None:
    made = relu()
    made.graph.output[0].name = "\x1b[2J"
    with pytest.raises(ModelError) as caught:
        InferenceSession(made)
    assert str(caught.value).isprintable()


def test_bytes_of_a_model_that_are_changed_raise_model_errors_only() -> None:
    whole = relu().SerializeToString()
    rng = np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(whole)
        for place in rng.integers(len(data), size=rng.integers(1, 4)):
            data[place] = rng.integers(256)
        try:
            session = InferenceSession(bytes(data))
            session.run(None, {each.name: X for each in session.get_inputs()})
        except ModelError as error:
            assert str(error).isprintable()


# --- arguments that are not what they should be ---


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0], 2.0], "The input 'x' is not an array"),
        (None, "The input 'x' is of type object"),
        (X.astype(">f4"), "is of the NumPy type >f4"),
        (np.zeros((1, 3), "M8[s]"), r"is of the NumPy type <M8\[s\]"),
    ],
)
def test_values_that_are_no_arrays_of_the_type_are_refused(value: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        InferenceSession(relu()).run(None, {"x": value})


def test_arguments_of_other_kinds_are_refused_by_name() -> None:
    session = InferenceSession(relu())
    with pytest.raises(TypeError, match="input_feed must be a dict of arrays, not ndarray"):
        session.run(None, X)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="output_names must be a list of names or None, not 'y'"):
        session.run("y", {"x": X})
    with pytest.raises(TypeError, match="model must be a file, bytes or a ModelProto, not int"):
        InferenceSession(3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="free_dimensions must be a dict of sizes, not list"):
        InferenceSession(relu(), free_dimensions=[3])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("free", "message"),
    [({"m": 3}, "The model names no dimension 'm'; it names 'n'"), ({"n": "a"}, "the size of 'n' is 'a'")],
)
def test_free_dimensions_that_do_not_fit_are_refused(free: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        InferenceSession(relu(), free_dimensions=free)


def test_a_sequence_is_a_list() -> None:
    session = InferenceSession(
        parsed("g (seq(float[3]) s) => (float[n] y) {a = ConcatFromSequence<axis = 0>(s) y = Relu(a)}")
    )
    with pytest.raises(ModelError, match="The input 's' is a int; expected a list"):
        session.run(None, {"s": 3})
    assert session.run(None, {"s": [X[0], X[0]]})[0].tolist() == [0, 0, 2, 0, 0, 2]


# --- many runs ---


def test_segments_of_very_many_values_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlemu.onnx.points._KEPT_SEGMENTS", 4)
    session = InferenceSession(relu())
    for rows in (*range(1, 8), 1, 7):
        assert session.run(None, {"x": np.repeat(X, rows, 0)})[0].tolist() == [[0, 0, 2]] * rows
        assert len(session._starts[frozenset()].segments) <= 4


def test_a_segment_that_runs_again_and_again_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of one shape among many, nor of one value."""
    monkeypatch.setattr("dmlemu.onnx.points._KEPT_SEGMENTS", 3)
    compiled: list[int] = []
    text = "g (float[n, 3] x, int64[1] k) => (float[n, m] y, int64[n, m] i) {y, i = TopK (x, k)}"
    session = InferenceSession(parsed(text), progress=lambda what, *_: compiled.append(what == "compile"))
    for rows, k in ((2, 1), (2, 2), (3, 1), (4, 2), (2, 3)):
        session.run(None, {"x": np.repeat(X, rows, 0), "k": np.array([k])})
        compiled.clear()
        session.run(None, {"x": np.repeat(X, 2, 0), "k": np.array([1])})
        assert not any(compiled)


def test_evaluators_of_the_host_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlemu.onnx.hosting._KEPT", 3)
    session = InferenceSession(
        parsed("g (float[n, 3] x) => (int64[2, m] y) {s = Shape(x) a = Expand(x, s) y = NonZero(a)}")
    )
    for rows in (*range(1, 8), 1, 7):
        assert session.run(None, {"x": np.repeat(X, rows, 0)})[0].shape == (2, 2 * rows)
        assert len(session._program.host._made) <= 3


def test_threads_may_share_a_session() -> None:
    session = InferenceSession(network())
    feeds = [{"x": np.full((1, 3, 8, 8), number, np.float32)} for number in range(4)]
    expected = [session.run(None, feed)[0].tolist() for feed in feeds]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda feed: session.run(None, feed)[0].tolist(), feeds * 5))
    assert found == expected * 5


def test_a_session_runs_again_after_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    session = InferenceSession(network())
    feed = {"x": np.ones((1, 3, 8, 8), np.float32)}

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    for target in ("dmlemu.graph.Graph.compile", "dmlemu.Session.run"):
        for _ in range(2):  # the first time, and when the graph is compiled
            with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
                patch.setattr(target, interrupted)
                session.run(None, feed)
            assert session.run(None, feed)[0].shape == (1, 5)


def test_a_device_that_was_removed_is_not_replaced_by_the_host() -> None:
    device = dml.create_device(d3d12.create_device(d3d12.Adapter()))
    session = InferenceSession(
        model([node("Neg", ["x"], "y")], [("x", T.FLOAT, [1, 3])], [("y", T.FLOAT, [1, 3])]), device=device
    )
    device.get_parent_device().remove_device()
    for _ in range(2):
        with pytest.raises(dmlemu.Error, match="DEVICE_REMOVED"):
            session.run(None, {"x": X})


def test_a_loop_without_a_condition_runs_its_turns_on_the_host_too() -> None:
    """More turns than are unrolled; the reference implementation would run none."""
    body = helper.make_graph(
        [node("Identity", ["go"], "on"), *(node("Add", [f"s{i}", "one"], f"s{i + 1}") for i in range(3))],
        "body",
        [
            helper.make_tensor_value_info("turn", T.INT64, []),
            helper.make_tensor_value_info("go", T.BOOL, []),
            helper.make_tensor_value_info("s0", T.FLOAT, [1]),
        ],
        [
            helper.make_tensor_value_info("on", T.BOOL, []),
            helper.make_tensor_value_info("s3", T.FLOAT, [1]),
        ],
    )
    made = model(
        [node("Loop", ["turns", "", "x"], "y", body=body)],
        [("turns", T.INT64, []), ("x", T.FLOAT, [1])],
        [("y", T.FLOAT, [1])],
        {"one": np.ones(1, np.float32)},
    )
    session = InferenceSession(made)
    for turns, where in ((2, "device"), (1000, "host")):
        feeds = {"turns": np.array(turns), "x": np.zeros(1, np.float32)}
        assert session.run(None, feeds)[0].tolist() == [3 * turns]
        assert {each.where for each in session.placed} == {where}


def test_the_metadata_is_that_of_onnx_runtime() -> None:
    given = onnx.parser.parse_model(
        """
        <ir_version: 10, opset_import: ["" : 21], producer_name: "maker", domain: "org.example",
         model_version: 3, doc_string: "all of it", metadata_props: ["classes": "cat, dog"]>
        net (float[2] x) => (float[2] y) { y = Relu (x) }
        """
    )
    given.graph.doc_string = "a graph"
    found = InferenceSession(given).get_modelmeta()
    runtime = pytest.importorskip("onnxruntime")
    expected = runtime.InferenceSession(given.SerializeToString()).get_modelmeta()
    assert found.custom_metadata_map == {"classes": "cat, dog"}
    assert {name: getattr(expected, name) for name in found._fields} == found._asdict()


def test_a_session_that_is_closed_keeps_no_buffers_and_does_not_run() -> None:
    device = d3d12.create_device()
    before = device.context.gpu.memory.used
    with InferenceSession(network(), device=dml.create_device(device)) as session:
        for rows in (1, 2):
            session.run(None, {"x": np.ones((rows, 3, 8, 8), np.float32)})
        assert device.context.gpu.memory.used > before
    assert device.context.gpu.memory.used == before
    assert session.values == {} and session.describe().startswith("device: ")
    with pytest.raises(RuntimeError, match=r"^<InferenceSession .*: 'x'> is closed; make another"):
        session.run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})
    session.close()  # again


def test_a_session_may_be_closed_while_it_runs() -> None:
    device = d3d12.create_device()
    before = device.context.gpu.memory.used

    def close(what: str, done: int, of: int) -> None:
        if what == "run":
            session.close()

    session = InferenceSession(relu(), device=dml.create_device(device), progress=close)
    assert session.run(None, {"x": X})[0].tolist() == [[0, 0, 2]]
    assert device.context.gpu.memory.used == before
    with pytest.raises(RuntimeError, match="is closed"):
        session.run(None, {"x": X})
