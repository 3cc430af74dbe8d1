"""What is done when a session starts: nodes become part of others, shapes are computed, weights are moved."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import model, node

from dmlemu.onnx import InferenceSession, ModelError
from dmlemu.onnx.nodes import Work
from dmlemu.onnx.shapes import computed
from dmlemu_hw import kernels

FLOAT = onnx.TensorProto.FLOAT
Array = np.ndarray[Any, np.dtype[Any]]


def kernels_of(session: InferenceSession, values: dict[str, Any]) -> list[str]:
    """The kernels of the first segment."""
    [segment] = session._start(values).segments
    assert segment.compiled is not None
    return [kernels.name(call.kernel) for call in segment.compiled.operator.calls]


def normalized(
    *, groups: int = 1, bias: bool = True, variance: Any = None, given: tuple[str, ...] = ()
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A convolution, then BatchNormalization; ``given``: what is an input of the model, not a constant."""
    rng = np.random.default_rng(groups)
    numbers = {name: rng.normal(size=6).astype(np.float32) for name in ("scale", "offset", "mean")}
    numbers["variance"] = rng.uniform(0.5, 2, 6).astype(np.float32)
    if variance is not None:
        numbers["variance"] = np.full(6, variance, np.float32)
    constants = {"w": rng.normal(size=(6, 4 // groups, 3, 3)).astype(np.float32), **numbers}
    if bias:
        constants["b"] = rng.normal(size=6).astype(np.float32)
    feeds = {"x": rng.normal(size=(2, 4, 5, 7)).astype(np.float32)}
    feeds.update((name, constants.pop(name)) for name in given)
    nodes = [
        node("Conv", ["x", "w", *["b"] * bias], "made", group=groups, pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["made", "scale", "offset", "mean", "variance"], "y"),
    ]
    inputs = [(name, FLOAT, each.shape) for name, each in feeds.items()]
    return model(nodes, inputs, [("y", FLOAT, (2, 6, 5, 7))], constants), feeds


def expected(network: onnx.ModelProto, feeds: dict[str, Array]) -> Array:
    reference: Array = onnx.reference.ReferenceEvaluator(network).run(None, feeds)[0]
    return reference


@pytest.mark.parametrize(("groups", "bias"), list(itertools.product([1, 2], [True, False])))
def test_normalization_by_constants(groups: int, bias: bool) -> None:
    network, feeds = normalized(groups=groups, bias=bias)
    session = InferenceSession(network, host="error")
    np.testing.assert_allclose(session.run(None, feeds)[0], expected(network, feeds), 1e-5, 1e-5)
    assert kernels_of(session, feeds) == ["convolution_float"]


@pytest.mark.parametrize("given", ["scale", "w", "b"])
def test_normalization_by_inputs(given: str) -> None:
    network, feeds = normalized(given=(given,))
    session = InferenceSession(network, host="error")
    np.testing.assert_allclose(session.run(None, feeds)[0], expected(network, feeds), 1e-5, 1e-5)
    assert kernels_of(session, feeds) == ["convolution_float", "normalize_given"]


def test_normalization_by_a_factor_that_is_no_number() -> None:
    """The square root of a negative variance."""
    network, feeds = normalized(variance=-1.0)
    session = InferenceSession(network, host="error")
    assert np.isnan(session.run(None, feeds)[0]).all()
    assert kernels_of(session, feeds) == ["convolution_float", "normalize_given"]


def test_what_is_before_a_normalization_can_be_asked_for() -> None:
    network, feeds = normalized()
    session = InferenceSession(network, host="error", keep_intermediates=True)
    made, y = session.run(["made", "y"], feeds)
    network.graph.output.append(onnx.helper.make_tensor_value_info("made", FLOAT, [2, 6, 5, 7]))
    both = onnx.reference.ReferenceEvaluator(network).run(["made", "y"], feeds)
    np.testing.assert_allclose(made, both[0], 1e-5, 1e-5)
    np.testing.assert_allclose(y, both[1], 1e-5, 1e-5)


def test_a_replaced_initialiser() -> None:
    """It is no constant where the run gives its array."""
    network, feeds = normalized()
    network.graph.input.append(onnx.helper.make_tensor_value_info("mean", FLOAT, [6]))
    session = InferenceSession(network, host="error")
    session.run(None, feeds)
    feeds["mean"] = np.zeros(6, np.float32)
    np.testing.assert_allclose(session.run(None, feeds)[0], expected(network, feeds), 1e-5, 1e-5)
    assert kernels_of(session, feeds) == ["convolution_float", "normalize_given"]


WHOLE = np.arange(6, dtype=np.int64) - 2


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Shape", [np.zeros((2, 3, 4), np.float32)], {}),
        ("Shape", [np.zeros((2, 3, 4), np.float32)], {"start": -2}),
        ("Shape", [np.zeros((2, 3, 4), np.float32)], {"start": 2, "end": 1}),
        ("Size", [np.zeros((2, 3, 4), np.float32)], {}),
        ("Concat", [WHOLE, WHOLE[:2]], {"axis": -1}),
        ("Cast", [WHOLE], {"to": onnx.TensorProto.INT32}),
        *(
            ("Slice", [WHOLE, *(np.array([each], np.int64) for each in given)], {})
            for given in ((1, 4), (-2, 99, 0), (-1, -(2**63), -1, -2), (4, 1, 0, 1), (-99, -1, 0, 1))
        ),
        ("Gather", [WHOLE, np.array(-1)], {}),
        ("Gather", [WHOLE.reshape(2, 3), np.array([[0, 2]])], {"axis": 1}),
    ],
)
def test_shapes_without_the_reference_implementation(
    op: str, inputs: list[Array], attributes: dict[str, Any]
) -> None:
    names = [f"x{number}" for number in range(len(inputs))]
    made = node(op, names, "y", **attributes)
    described = [(name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape)
                 for name, each in zip(names, inputs, strict=True)]  # fmt: skip
    network = model([made], described, [("y", attributes.get("to", onnx.TensorProto.INT64), None)])
    [wanted] = onnx.reference.ReferenceEvaluator(network).run(None, dict(zip(names, inputs, strict=True)))

    found = computed(Work(made, {"": 21}), inputs)

    assert found is not None and (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


def test_a_slice_backwards_from_in_front_of_the_first_element() -> None:
    """Of which the reference implementation makes nothing; by ONNX's text it begins with the first one."""
    made = node("Slice", ["x", "start", "end", "axis", "step"], "y")
    found = computed(Work(made, {"": 21}), [WHOLE, *(np.array([each]) for each in (-9, -99, 0, -1))])
    assert found is not None and found.tolist() == [-2]


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Cast", [WHOLE], {"to": FLOAT}),
        ("Cast", [WHOLE + 2**40], {"to": onnx.TensorProto.INT32}),
        ("Gather", [WHOLE, np.array(6)], {}),
        ("Slice", [WHOLE, *(np.array([each]) for each in (0, 1, 0, 0))], {}),
        ("Concat", [WHOLE, WHOLE.astype(np.float32)], {"axis": 0}),
    ],
)
def test_what_is_left_to_it(op: str, inputs: list[Array], attributes: dict[str, Any]) -> None:
    names = [f"x{number}" for number in range(len(inputs))]
    assert computed(Work(node(op, names, "y", **attributes), {"": 21}), inputs) is None


def weighted() -> tuple[onnx.ModelProto, dict[str, Array]]:
    """Weights of 16 KiB, as an initialiser and as a Constant."""
    rng = np.random.default_rng(3)
    first, second = rng.normal(size=(2, 64, 64)).astype(np.float32)
    nodes = [
        node("Constant", [], "second", value=onnx.numpy_helper.from_array(second)),
        node("MatMul", ["x", "first"], "made"),
        node("MatMul", ["made", "second"], "y"),
    ]
    network = model(nodes, [("x", FLOAT, (2, 64))], [("y", FLOAT, (2, 64))], {"first": first})
    return network, {"x": rng.normal(size=(2, 64)).astype(np.float32)}


def test_large_weights_of_a_file_are_kept_once(tmp_path: Path) -> None:
    network, feeds = weighted()
    onnx.save(network, tmp_path / "model.onnx")

    sessions = [
        InferenceSession(each) for each in (tmp_path / "model.onnx", network.SerializeToString(), network)
    ]

    for session in sessions:
        np.testing.assert_allclose(session.run(None, feeds)[0], expected(network, feeds), 1e-4, 1e-4)
        assert session.get_overridable_initializers() == []
    assert [len(each.model.graph.initializer) for each in sessions] == [0, 0, 1]
    assert [len(each.model.graph.node) for each in sessions] == [2, 2, 3]
    assert len(network.graph.input) == 1


def test_a_large_constant_of_the_name_of_an_input_is_refused() -> None:
    network, _ = weighted()
    network.graph.input.append(onnx.helper.make_tensor_value_info("second", FLOAT, (64, 64)))
    for given in (network, network.SerializeToString()):
        with pytest.raises(ModelError, match="'second' has been used"):
            InferenceSession(given)


@pytest.mark.parametrize("kind", ["initialiser", "Constant", "twice", "unknown input"])
def test_wrong_large_weights(kind: str) -> None:
    """Refused as small ones are."""
    network, feeds = weighted()
    graph = network.graph
    if kind == "initialiser":
        graph.initializer[0].raw_data = graph.initializer[0].raw_data[:-4]
    elif kind == "Constant":
        graph.node[0].attribute[0].t.raw_data += b"1234"
    elif kind == "twice":
        graph.node[0].output[0] = "first"
    else:
        graph.node[1].input[1] = "third"
    with pytest.raises(ModelError):
        InferenceSession(network.SerializeToString()).run(None, feeds)
