"""Quantized models: fused, in floats, by ONNX Runtime, and by the reference implementation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import Array, model, node

from dmlemu.graph import interleaved_bytes, packed, random_layouts
from dmlemu.onnx import InferenceSession, ModelError

SCALE, ZERO = 0.05, 3


class Net:
    """A model under construction: x, y .. are its inputs, of bytes."""

    def __init__(self, opset: int = 21) -> None:
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}

    def constant(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(node(op, inputs, name, **attributes))
        return name

    def dequantized(self, x: str | Array, scale: Any = SCALE, zero: Any = ZERO, **attributes: Any) -> str:
        """An input by its name, or a constant; ``zero`` None: absent."""
        array = self.inputs[x] if isinstance(x, str) else x
        parameters = [self.constant(np.asarray(scale, np.float32))]
        if zero is not None:
            parameters.append(self.constant(np.broadcast_to(np.asarray(zero, array.dtype), np.shape(scale))))
        source = x if isinstance(x, str) else self.constant(x)
        return self.add("DequantizeLinear", source, *parameters, **attributes)

    def quantized(self, x: str, scale: Any = SCALE, zero: Any = ZERO, dtype: Any = np.uint8, **a: Any) -> str:
        return self.add(
            "QuantizeLinear", x, self.constant(np.float32(scale)), self.constant(dtype(zero)), **a
        )

    def model(self, *outputs: str) -> onnx.ModelProto:
        element = onnx.helper.np_dtype_to_tensor_dtype
        bare = model(
            self.nodes,
            [(name, int(element(each.dtype)), each.shape) for name, each in self.inputs.items()],
            [(name, onnx.TensorProto.UNDEFINED, None) for name in outputs],
            self.constants,
            opset=self.opset,
        )
        inferred = onnx.shape_inference.infer_shapes(bare, strict_mode=True)
        assert all(each.type.tensor_type.elem_type for each in inferred.graph.output)
        return inferred


def bytes_of(*shape: int, dtype: Any = np.uint8, seed: int = 1) -> Array:
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def fused(session: InferenceSession) -> list[str]:
    """The operators that stand for several."""
    return [each.op for each in session.placed if each.parts]


def onnxruntime_of(made: onnx.ModelProto, feeds: Mapping[str, Array], *, optimises: bool) -> list[Array]:
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.x64quantprecision", "1")  # no sums of 16 bits, which saturate
    if not optimises:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found: list[Array] = session.run(None, dict(feeds))
    return found


def steps(a: Sequence[Array], b: Sequence[Array]) -> int:
    """The greatest distance of integers."""
    for x, y in zip(a, b, strict=True):
        assert x.dtype == y.dtype and x.shape == y.shape
    return max(int(np.abs(x.astype(int) - y.astype(int)).max()) for x, y in zip(a, b, strict=True))


def check(net: Net, output: str, expected: Sequence[str], unit: int, policy: Any = packed) -> list[Array]:
    """The result of the fused model differs by ``unit`` steps at most from that in floats and from those of
    ONNX Runtime, which fuses or not, and of the reference implementation; ``expected`` has run fused."""
    made = net.model(output)
    session = InferenceSession(made, host="error", policy=policy)
    found = session.run(None, net.inputs)
    assert fused(session) == list(expected), session.describe()
    floats = InferenceSession(made, host="error", fuse_quantized=False, policy=policy)
    others = [floats.run(None, net.inputs)]
    assert fused(floats) == []
    others += [onnxruntime_of(made, net.inputs, optimises=each) for each in (False, True)]
    if net.opset >= 19:
        others.append(onnx.reference.ReferenceEvaluator(made).run(None, net.inputs))
    assert [steps(found, each) <= unit for each in others] == [True] * len(others)
    return found


# --- products ---


@pytest.mark.parametrize(
    "policy", [packed, interleaved_bytes, random_layouts(3)], ids=["packed", "interleaved", "random"]
)
@pytest.mark.parametrize("limit", ["", "Relu", "Clip"])
@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, 0), (np.uint8, 120), (np.int8, -5)])
def test_a_convolution_of_bytes(policy: Any, limit: str, dtype: Any, zero: int) -> None:
    net = Net()
    net.inputs["x"] = bytes_of(1, 3, 6, 5, dtype=dtype)
    scales = np.float32([0.01, 0.02, 0.03, 0.04])
    x = net.dequantized("x", zero=zero)
    w = net.dequantized(bytes_of(4, 3, 3, 3, dtype=np.int8), scales, [0] * 4, axis=0)
    b = net.dequantized(np.int32([5, -800, 2000, 9]), scales * np.float32(SCALE), [0] * 4, axis=0)
    y = net.add("Conv", x, w, b, pads=[1, 1, 1, 1], strides=[2, 1])
    if limit == "Clip":
        y = net.add("Clip", y, net.constant(np.float32(-10)), net.constant(np.float32(20)))
    elif limit:
        y = net.add(limit, y)
    found = check(net, net.quantized(y, 0.3, zero, dtype), ["QLinearConv"], 1, policy)
    assert len(np.unique(found[0])) > 10


def test_an_absent_zero_point_is_0() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(1, 2, 4, 4, dtype=np.int8)
    x, w = net.dequantized("x", zero=None), net.dequantized(bytes_of(3, 2, 1, 1, dtype=np.int8), 0.01, None)
    y = net.add("QuantizeLinear", net.add("Conv", x, w), net.constant(np.float32(0.1)))
    check(net, y, ["QLinearConv"], 1)


def test_nodes_of_onnx_runtime_are_fused_as_well() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(2, 3, 4)
    net.quantized(net.add("MaxPool", net.dequantized("x"), kernel_shape=[2]))
    for each in net.nodes:
        each.domain = "com.microsoft" if each.op_type != "MaxPool" else ""
    element, shape = onnx.TensorProto.UINT8, [2, 3, 4]
    last = net.nodes[-1].output[0]
    made = model(net.nodes, [("x", element, shape)], [(last, element, [2, 3, 3])], net.constants)
    made.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
    session = InferenceSession(made, host="error")
    found = session.run(None, net.inputs)
    assert fused(session) == ["MaxPool"]
    assert steps(found, onnxruntime_of(made, net.inputs, optimises=False)) == 0


def test_a_bias_of_another_scale_is_added_in_floats() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(1, 2, 4, 4)
    x, w = net.dequantized("x"), net.dequantized(bytes_of(3, 2, 1, 1, dtype=np.int8), 0.01, 0)
    b = net.dequantized(np.int32([5, -8, 20]), 0.1, 0)
    check(net, net.quantized(net.add("Conv", x, w, b), 0.1), [], 1)


@pytest.mark.parametrize("op", ["MatMul", "Gemm", "transposed Gemm"])
def test_products_of_matrices(op: str) -> None:
    """A Gemm has a bias; the scales are those of the columns."""
    net = Net()
    net.inputs["x"] = bytes_of(3, 7)
    scales = np.linspace(0.01, 0.05, 4, dtype=np.float32)
    transposed = op.startswith("transposed")
    w = bytes_of(*((4, 7) if transposed else (7, 4)), dtype=np.int8)
    inputs = [net.dequantized("x"), net.dequantized(w, scales, [0] * 4, axis=0 if transposed else 1)]
    if op == "MatMul":
        y = net.add("MatMul", *inputs)
    else:
        bias = net.dequantized(np.int32([50, -80, 20, 0]), scales * np.float32(SCALE), [0] * 4, axis=0)
        y = net.add("Gemm", *inputs, bias, transB=int(transposed))
    check(net, net.quantized(y, 0.3, 100), ["QLinearMatMul" if op == "MatMul" else "QGemm"], 1)


@pytest.mark.parametrize("shape", [(4,), (1, 4), (4, 1), (4, 4), (1,)])
def test_biases_of_columns_rows_and_elements(shape: tuple[int, ...]) -> None:
    net = Net()
    net.inputs["x"] = bytes_of(4, 7)
    w = net.dequantized(bytes_of(7, 4, dtype=np.int8), 0.01, 0)
    bias = net.dequantized(
        (np.arange(np.prod(shape)) * 1000).astype(np.int32).reshape(shape),
        np.float32(SCALE) * np.float32(0.01),
        0,
    )
    y = net.add("Gemm", net.dequantized("x"), w, bias)
    check(net, net.quantized(y, 0.3, 100), ["QGemm"], 1)


def test_scales_along_the_depth_of_a_product_run_in_floats() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(3, 4)
    w = net.dequantized(bytes_of(4, dtype=np.int8), np.float32([0.01, 0.02, 0.03, 0.04]), [0] * 4, axis=0)
    check(net, net.quantized(net.add("MatMul", net.dequantized("x"), w), 0.3, 100), [], 1)


def test_weights_that_the_model_quantizes() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(1, 2, 4, 4)
    scales, zeros = net.constant(np.float32([0.01, 0.02, 0.03])), net.constant(np.int8([0, 0, 0]))
    w = net.constant(np.random.default_rng(3).normal(size=(3, 2, 1, 1)).astype(np.float32))
    q = net.add("QuantizeLinear", w, scales, zeros, axis=0)
    y = net.add("Conv", net.dequantized("x"), net.add("DequantizeLinear", q, scales, zeros, axis=0))
    check(net, net.quantized(y, 0.1, 100), ["QLinearConv"], 1)


def test_a_product_of_two_inputs_and_more_dimensions() -> None:
    net = Net()
    net.inputs["x"], net.inputs["y"] = bytes_of(2, 3, 4, 5), bytes_of(2, 3, 5, 2, seed=2)
    y = net.add("MatMul", net.dequantized("x"), net.dequantized("y", 0.02, 130))
    check(net, net.quantized(y, 0.2, 90), ["QLinearMatMul"], 1)


# --- of each element, and averages ---


@pytest.mark.parametrize("op", ["Add", "Sum", "Sub"])
@pytest.mark.parametrize("relu", [False, True])
def test_sums(op: str, relu: bool) -> None:
    net = Net()
    net.inputs["x"], net.inputs["y"] = bytes_of(2, 3, 4), bytes_of(3, 1, dtype=np.int8, seed=2)
    y = net.add(op, net.dequantized("x"), net.dequantized("y", 0.07, -20))
    y = net.add("Relu", y) if relu else y
    check(net, net.quantized(y, 0.08, 100), ["QLinearAdd"], 0)


@pytest.mark.parametrize("op", ["Mul", "turned Mul", "Div"])
def test_products_with_a_number(op: str) -> None:
    net = Net()
    net.inputs["x"] = bytes_of(2, 3, 4)
    x, factor = net.dequantized("x"), net.dequantized(np.uint8([[[[90]]]]), 0.02, 100)
    inputs = (factor, x) if op.startswith("turned") else (x, factor)
    found = check(net, net.quantized(net.add(op.split()[-1], *inputs), 0.02, 100), ["QLinearAdd"], 1)
    assert found[0].shape == (1, 2, 3, 4)


def test_a_product_of_two_tensors_runs_in_floats() -> None:
    net = Net()
    net.inputs["x"], net.inputs["y"] = bytes_of(2, 3), bytes_of(2, 3, seed=2)
    check(net, net.quantized(net.add("Mul", net.dequantized("x"), net.dequantized("y"))), [], 0)


@pytest.mark.parametrize("op", ["AveragePool", "GlobalAveragePool"])
@pytest.mark.parametrize("shape", [(1, 2, 5, 6), (2, 3, 7)])
def test_averages(op: str, shape: tuple[int, ...]) -> None:
    net = Net()
    net.inputs["x"] = bytes_of(*shape)
    attributes = {"kernel_shape": [3] * (len(shape) - 2)} if op == "AveragePool" else {}
    y = net.add(op, net.dequantized("x"), **attributes)
    check(net, net.quantized(y, 0.04, 7), [f"QLinear{op}"], 1)


# --- operators that keep values ---


def _shape(*sizes: int) -> Array:
    return np.array(sizes, np.int64)


class Kept(NamedTuple):
    """``more``: inputs behind the data."""

    more: Sequence[Array | None] = ()
    attributes: Mapping[str, Any] = {}
    inputs: int = 1


KEPT: dict[str, Kept] = {
    "Reshape": Kept([_shape(2, -1)]),
    "Flatten": Kept(),
    "Unsqueeze": Kept([_shape(0, 3)]),
    "Transpose": Kept(attributes={"perm": [0, 2, 3, 1]}),
    "Expand": Kept([_shape(3, 1, 1, 1, 1)]),
    "Tile": Kept([_shape(1, 2, 1, 3)]),
    "Slice": Kept([_shape(1), _shape(3), _shape(2)]),
    "Gather": Kept([_shape(1, 0)], {"axis": 1}),
    "DepthToSpace": Kept(attributes={"blocksize": 2}),
    "SpaceToDepth": Kept(attributes={"blocksize": 2}),
    "MaxPool": Kept(attributes={"kernel_shape": [2, 3], "strides": [1, 2]}),
    "ReduceMax": Kept([_shape(2)]),
    "ReduceMin": Kept([_shape(1)]),
    "Concat": Kept(attributes={"axis": 2}, inputs=3),
    "Max": Kept(inputs=2),
    "Min": Kept(inputs=2),
    "Resize": Kept([None, np.float32([1, 1, 2, 1.5])], {"nearest_mode": "floor"}),
    "Pad": Kept([_shape(0, 0, 1, 0, 0, 0, 0, 2)]),
}


@pytest.mark.parametrize("op", KEPT)
@pytest.mark.parametrize(("dtype", "zero"), [(np.uint8, 7), (np.int8, -9)])
def test_operators_that_keep_values_run_on_the_bytes(op: str, dtype: Any, zero: int) -> None:
    case, net = KEPT[op], Net()
    for number in range(case.inputs):
        net.inputs[f"x{number}"] = bytes_of(2, 4, 4, 6, dtype=dtype, seed=number)
    data = [net.dequantized(name, zero=zero) for name in net.inputs]
    more = ["" if each is None else net.constant(each) for each in case.more]
    y = net.quantized(net.add(op, *data, *more, **case.attributes), zero=zero, dtype=dtype)
    check(net, y, [op], 0)


def test_a_choice_runs_on_the_bytes() -> None:
    net = Net()
    net.inputs["x"], net.inputs["y"] = bytes_of(2, 3), bytes_of(2, 3, seed=2)
    condition = net.constant(np.array([True, False, True]))
    y = net.add("Where", condition, net.dequantized("x"), net.dequantized("y"))
    check(net, net.quantized(y), ["Where"], 0)


@pytest.mark.parametrize(("op", "zero", "expected"), [("Relu", 7, "QLinearClip"), ("Relu", 0, "Identity")])
def test_limits_run_on_the_bytes(op: str, zero: int, expected: str) -> None:
    net = Net()
    net.inputs["x"] = bytes_of(3, 50)
    y = net.quantized(net.add(op, net.dequantized("x", zero=zero)), zero=zero)
    made = net.model(y)
    session = InferenceSession(made, host="error")
    [found] = session.run(None, net.inputs)
    np.testing.assert_array_equal(found, np.maximum(net.inputs["x"], zero))
    assert fused(session) == ([expected] if expected != "Identity" else [])
    assert not any("Linear" in each.op for each in session.placed if each.op != expected)


@pytest.mark.parametrize("op", ["Reshape", "MaxPool", "Concat", "Pad", "Relu"])
def test_another_scale_or_zero_point_runs_in_floats(op: str) -> None:
    case = KEPT.get(op, Kept())
    for parameters in ({"scale": 0.06}, {"zero": ZERO + 1}, {"dtype": np.int8}):
        net = Net()
        for number in range(case.inputs):
            net.inputs[f"x{number}"] = bytes_of(2, 4, 4, 6, seed=number)
        data = [net.dequantized(name) for name in net.inputs]
        more = [net.constant(each) for each in case.more if each is not None]
        check(net, net.quantized(net.add(op, *data, *more, **case.attributes), **parameters), [], 0)


def test_other_padding_than_zeros_runs_in_floats() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(2, 3)
    pads, value = net.constant(_shape(0, 1, 0, 0)), net.constant(np.float32(1))
    check(net, net.quantized(net.add("Pad", net.dequantized("x"), pads, value)), [], 0)
    net = Net()
    net.inputs["x"] = bytes_of(2, 3)
    pads = net.constant(_shape(0, 1, 0, 0))
    check(net, net.quantized(net.add("Pad", net.dequantized("x"), pads, mode="reflect")), ["Pad"], 0)


@pytest.mark.parametrize("mode", ["edge", "reflect"])
def test_a_number_for_padding_that_is_copied_from_the_tensor(mode: str) -> None:
    """It is a float, and means nothing."""
    net = Net()
    net.inputs["x"] = bytes_of(2, 3)
    pads, value = net.constant(_shape(0, 1, 0, 0)), net.constant(np.float32(1))
    check(net, net.quantized(net.add("Pad", net.dequantized("x"), pads, value, mode=mode)), ["Pad"], 0)
    axes = net.constant(_shape(1))
    net.nodes.clear()
    pads = net.constant(_shape(1, 0))
    padded = net.add("Pad", net.dequantized("x"), pads, value, axes, mode=mode)
    check(net, net.quantized(padded), ["Pad"], 0)


def test_an_interpolation_runs_in_floats() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(1, 2, 4, 4)
    y = net.add("Resize", net.dequantized("x"), "", net.constant(np.float32([1, 1, 2, 2])), mode="linear")
    check(net, net.quantized(y), [], 1)


# --- what is not fused ---


def test_a_result_that_is_read_elsewhere_stays() -> None:
    net = Net()
    net.inputs["x"], net.inputs["y"] = bytes_of(2, 3), bytes_of(2, 3, seed=2)
    y = net.add("Add", net.dequantized("x"), net.dequantized("y"))
    q = net.quantized(y)
    for outputs in ([q, y], [q, net.add("Neg", y)]):
        session = InferenceSession(net.model(*outputs), host="error")
        found = session.run(None, net.inputs)
        assert fused(session) == []
        expected = onnx.reference.ReferenceEvaluator(net.model(*outputs)).run(None, net.inputs)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-6)


def test_what_the_device_has_not_runs_in_floats() -> None:
    """Of 16 bits DirectML has no sum; Reshape needs none."""
    net = Net()
    net.inputs["x"], net.inputs["y"] = (bytes_of(2, 3, dtype=np.uint16, seed=each) for each in (1, 2))
    y = net.add("Add", net.dequantized("x", zero=9), net.dequantized("y", zero=7))
    y = net.quantized(net.add("Reshape", y, net.constant(_shape(6))), zero=9, dtype=np.uint16)
    check(net, y, [], 0)
    net = Net()
    net.inputs["x"] = bytes_of(2, 3, dtype=np.int16)
    y = net.add("Reshape", net.dequantized("x"), net.constant(_shape(6)))
    check(net, net.quantized(y, dtype=np.int16), ["Reshape"], 0)


def test_parameters_that_are_computed_run_in_floats() -> None:
    net = Net()
    net.inputs["x"], net.inputs["scale"] = bytes_of(2, 3), np.array(0.05, np.float32)
    x = net.add("DequantizeLinear", "x", "scale", net.constant(np.uint8(3)))
    y = net.add("Reshape", x, net.constant(_shape(6)))
    check(net, net.add("QuantizeLinear", y, "scale", net.constant(np.uint8(3))), [], 0)


def test_kept_intermediates_are_those_of_the_model() -> None:
    net = Net()
    net.inputs["x"] = bytes_of(2, 3)
    x = net.dequantized("x")
    made = net.model(net.quantized(net.add("Transpose", x)))
    session = InferenceSession(made, keep_intermediates=True)
    assert session.run([x], net.inputs)[0].dtype == np.float32
    assert fused(session) == []


@pytest.mark.parametrize("limit", [np.array("1"), np.zeros(0, np.float32)], ids=["string", "empty"])
def test_a_limit_that_is_none_is_refused_as_without_fusing(limit: Array) -> None:
    net = Net()
    net.inputs["x"] = bytes_of(2, 3)
    y = net.add("Clip", net.dequantized("x"), net.constant(limit))
    nodes = [*net.nodes, node("QuantizeLinear", [y, "c0", "c1"], "q")]
    constants = [
        (name, each.astype(object) if each.dtype.kind == "U" else each)
        for name, each in net.constants.items()
    ]
    made = model(nodes, [("x", onnx.TensorProto.UINT8, [2, 3])], [("q", onnx.TensorProto.UINT8, [2, 3])])
    made.graph.initializer.extend(onnx.numpy_helper.from_array(each, name) for name, each in constants)
    with pytest.raises(ModelError, match="Clip"):
        InferenceSession(made).run(None, net.inputs)


def test_a_quotient_by_zero_runs_in_floats() -> None:
    """Of the NaN that 0 / 0 is, numerics="onnx" makes the least byte."""
    net = Net()
    net.inputs["x"] = np.uint8([[0, ZERO, 9]])
    divided = net.add("Div", net.dequantized("x"), net.dequantized(np.uint8([ZERO])))
    made = net.model(net.quantized(divided))
    for numerics, of_nan in (("directml", ZERO), ("onnx", 0)):
        session = InferenceSession(made, host="error", numerics=numerics)
        assert session.run(None, net.inputs)[0].tolist() == [[0, of_nan, 255]]
        assert fused(session) == []


def test_a_sum_that_is_a_scale_is_not_fused() -> None:
    """ONNX Runtime's optimiser fuses it, and then refuses the model."""
    net = Net()
    net.inputs["x"], net.inputs["data"] = np.array(23, np.uint8), np.float32([1, 2, -1])
    scale = net.add("Add", net.dequantized("x"), net.dequantized(np.uint8(ZERO)))
    made = net.model(net.add("QuantizeLinear", "data", scale, net.constant(np.uint8(3))))
    session = InferenceSession(made, host="error")
    assert session.run(None, net.inputs)[0].tolist() == [4, 5, 2]
    assert onnxruntime_of(made, net.inputs, optimises=False)[0].tolist() == [4, 5, 2]
    assert fused(session) == []


# --- others ---


def test_describe_names_what_is_fused() -> None:
    net = Net()
    net.inputs["x"], net.inputs["y"] = bytes_of(2, 3), bytes_of(2, 3, seed=2)
    y = net.add("Add", net.dequantized("x"), net.dequantized("y"))
    session = InferenceSession(net.model(net.quantized(net.add("Relu", y))))
    session.run(None, net.inputs)
    assert session.describe().splitlines() == [
        "device: 1 nodes: QLinearAdd",
        "fused: DequantizeLinear, Add, Relu, QuantizeLinear to QLinearAdd",
    ]


def test_constants_of_opset_13_are_dequantized_when_compiled() -> None:
    """The reference implementation has DequantizeLinear from opset 19 on."""
    net = Net(opset=13)
    net.inputs["x"] = np.float32([[1, 2, 3]])
    w = net.dequantized(bytes_of(3, 2, dtype=np.int8), [0.1, 0.2], [1, 2], axis=1)
    made = net.model(net.add("MatMul", "x", w))
    session = InferenceSession(made, host="error")
    [found] = session.run(None, net.inputs)
    [expected] = onnxruntime_of(made, net.inputs, optimises=False)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert [each.op for each in session.placed if each.where == "folded"] == ["DequantizeLinear"]


_OPERATORS: dict[str, Callable[[Net, str], str]] = {
    "Relu": lambda net, x: net.add("Relu", x),
    "Sigmoid": lambda net, x: net.add("Sigmoid", x),
    "Transpose": lambda net, x: net.add("Transpose", x, perm=[0, 1, 3, 2]),
    "MaxPool": lambda net, x: net.add("MaxPool", x, kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
    "AveragePool": lambda net, x: net.add("AveragePool", x, kernel_shape=[2, 2], pads=[1, 1, 0, 0]),
    "Mul": lambda net, x: net.add("Mul", x, net.dequantized(np.uint8([90]), 0.01, 10)),
    "Conv": lambda net, x: net.add(
        "Conv", x, net.dequantized(bytes_of(3, 3, 1, 1, dtype=np.int8), [0.01, 0.02, 0.005], [0] * 3, axis=0)
    ),
}


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(_OPERATORS)), st.booleans()), min_size=1, max_size=4),
    st.sampled_from([0, 7, 128]),
)
def test_random_chains_differ_by_a_step_for_each_product(chain: list[tuple[str, bool]], zero: int) -> None:
    """Each result that is quantized anew may be a step from the one in floats, and each product enlarges that
    by its weights, whose sums are at most 4 here."""
    net = Net()
    net.inputs["x"] = bytes_of(1, 3, 4, 5)
    x, tolerance = net.dequantized("x", zero=zero), 0
    for op, is_named_anew in chain:
        x = net.quantized(_OPERATORS[op](net, x), SCALE, zero)
        tolerance = tolerance * 4 + 1 if op in ("Conv", "AveragePool", "Mul") else tolerance
        x = net.add("Identity", x) if is_named_anew else x
        x = net.add("DequantizeLinear", x, net.constant(np.float32(SCALE)), net.constant(np.uint8(zero)))
    made = net.model(net.quantized(x, SCALE, zero))
    session = InferenceSession(made, host="error")
    floats = InferenceSession(made, host="error", fuse_quantized=False)
    assert steps(session.run(None, net.inputs), floats.run(None, net.inputs)) <= tolerance
    computing = [op for op, _ in chain if op not in ("Sigmoid", "Relu")]
    assert len(fused(session)) >= len(computing)


@pytest.mark.parametrize("groups", [1, 2])
def test_images_of_bytes_have_their_channels_last(groups: int) -> None:
    """By default, if convolutions have one group; the bytes are those of packed tensors."""
    net = Net()
    random = np.random.default_rng(3)
    net.inputs = {"x": random.integers(0, 256, (1, 8, 6, 5), dtype=np.uint8)}
    last = net.dequantized("x")
    for _ in range(2):
        weights = random.integers(-128, 128, (8, 8 // groups, 3, 3), dtype=np.int8)
        convolved = net.add("Conv", last, net.dequantized(weights, zero=0), pads=[1] * 4, group=groups)
        quantized = net.quantized(convolved, scale=8)
        last = net.add(
            "DequantizeLinear", quantized, net.constant(np.float32(8)), net.constant(np.uint8(ZERO))
        )
    made = net.model(last)
    sessions = [InferenceSession(made), InferenceSession(made, policy=packed)]
    results = [each.run(None, net.inputs)[0] for each in sessions]
    np.testing.assert_array_equal(*results)
    assert sessions[0]._program.usual is (interleaved_bytes if groups == 1 else packed)
    floats = model([node("Relu", ["x"], "y")], [("x", 1, [2])], [("y", 1, [2])])
    assert InferenceSession(floats)._program.usual is packed
