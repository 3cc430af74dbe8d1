"""InferenceSession: inputs, errors, what runs where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import Array, model, node
from onnx import TensorProto as T
from onnx import helper

from dmlemu.graph import interleaved_channel, random_layouts
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
    assert len(session._start.segments) == 2


@pytest.mark.parametrize("policy", [interleaved_channel, random_layouts(1), random_layouts(2)])
def test_layouts_between_operators_change_no_result(policy: Any) -> None:
    x = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    expected = InferenceSession(network()).run(None, {"x": x})[0]
    made = InferenceSession(network(), policy=policy).run(None, {"x": x})[0]
    np.testing.assert_allclose(made, expected, rtol=1e-5)


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
