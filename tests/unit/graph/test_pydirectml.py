"""PyDirectML's module: scripts, its classes, its functions."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import pydirectml as dml

SCRIPT = Path(__file__).parent / "pydirectml_script.py"
F32 = dml.TensorDataType.FLOAT32

FUNCTIONS = [
    "activation_identity",
    "activation_linear",
    "activation_relu",
    "activation_sigmoid",
    "activation_soft_max",
    "activation_tanh",
    "add",
    "average_pooling",
    "batch_normalization",
    "convolution",
    "divide",
    "gather",
    "gemm",
    "gru",
    "input_tensor",
    "join",
    "local_response_normalization",
    "max_pooling",
    "mean_variance_normalization",
    "multiply",
    "padding",
    "reinterpret",
    "slice",
    "subtract",
    "up_sample_2d",
    "value_scale_2d",
]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", "dmlemu.pydirectml", *map(str, arguments)]
    return subprocess.run(program, capture_output=True, text=True)


def test_a_script_runs() -> None:
    done = run(SCRIPT, 3)

    assert done.stderr == ""
    assert done.stdout.startswith("dml.Device on GPU: dml.TensorDesc of type 1 and shape [1, 1, 1, 10]")


def test_the_command_without_a_script() -> None:
    assert run().stderr.startswith("usage: python -m dmlemu.pydirectml SCRIPT.py")
    assert run("nowhere.py").stderr == "dmlemu.pydirectml: there is no file nowhere.py\n"


class Graph:
    """A builder, and inputs with their data."""

    def __init__(self) -> None:
        self.device = dml.Device()
        self.builder = dml.GraphBuilder(self.device)
        self.bindings: list[dml.Binding] = []

    def input(self, data: Any, *desc: Any) -> dml.Expression:
        array = np.asarray(data, np.float32)
        made = dml.TensorDesc(F32, *(desc or (list(array.shape),)))
        tensor = dml.input_tensor(self.builder, len(self.bindings), made)
        self.bindings.append(dml.Binding(tensor, array))
        return tensor

    def values(self, *outputs: dml.Expression) -> list[np.ndarray[Any, Any]]:
        model = self.builder.build(dml.ExecutionFlags.NONE, outputs)
        return [np.array(each) for each in self.device.compute(model, self.bindings, outputs)]


@pytest.fixture
def graph() -> Graph:
    return Graph()


X = np.float32([[[[1, -2], [3, 4]], [[0.5, 6], [-7, 8]]]])


def test_all_functions_are_there() -> None:
    assert all(inspect.isfunction(getattr(dml, name)) for name in FUNCTIONS)


def test_members_of_enums_are_names_of_the_module() -> None:
    assert dml.FLOAT32 is dml.TensorDataType.FLOAT32
    assert dml.GEMM is dml.OperatorType.GEMM
    assert dml.NONE is dml.ExecutionFlags.NONE  # the last of several


def test_forms_of_a_tensor_desc() -> None:
    owned = dml.TensorFlags.OWNED_BY_DML
    plain = dml.TensorDesc(F32, [1, 2, 3, 4])
    assert (plain.sizes, plain.strides, plain.flags) == ([1, 2, 3, 4], None, dml.TensorFlags.NONE)
    assert (plain.total_tensor_size_in_bytes, plain.guaranteed_base_offset_alignment) == (96, 0)
    assert dml.TensorDesc(F32, [2, 3], [0, 1]).total_tensor_size_in_bytes == 12
    assert dml.TensorDesc(F32, owned, [2, 3]).flags is owned
    channels = dml.TensorDesc(F32, [1, 2, 3, 4], dml.TensorPolicy.interleaved_channel)
    assert channels.strides == [24, 1, 8, 2]
    assert dml.TensorDesc(data_type=F32, sizes=[2], tensor_policy=dml.TensorPolicy.default).strides is None
    whole = dml.TensorDesc(F32, owned, [2, 3], [4, 1], 64, 16)
    assert (whole.total_tensor_size_in_bytes, whole.guaranteed_base_offset_alignment) == (64, 16)
    assert repr(whole) == "dml.TensorDesc of type 1 and shape [2, 3] with flags 1"
    with pytest.raises(TypeError, match="No form of TensorDesc takes these arguments"):
        dml.TensorDesc(F32)


def test_operators(graph: Graph) -> None:
    a, b = graph.input([[1, 2], [3, 4]]), graph.input([[5, 6], [7, 9]])
    x, y = np.float32([[1, 2], [3, 4]]), np.float32([[5, 6], [7, 9]])

    found = graph.values(a + b, a - b, a * b, a / b, b % a, -a, a + 2.0, 2.0 - a, a * 3.0, 1.0 / a, a / 2.0)
    expected = [x + y, x - y, x * y, x / y, np.fmod(y, x), -x, x + 2, 2 - x, x * 3, 1 / x, x / 2]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, want)
    a += b
    np.testing.assert_array_equal(graph.values(a)[0], x + y)


def test_operators_do_not_repeat_sizes(graph: Graph) -> None:
    a, b = graph.input([[1, 2], [3, 4]]), graph.input([[1, 2]])

    with pytest.raises(dmlemu.Error, match="operators do not broadcast by size"):
        a + b
    for other in (1.5, "1"):
        with pytest.raises(TypeError, match="unsupported operand"):
            a % other


def test_functions_of_one_tensor(graph: Graph) -> None:
    x, one = graph.input(X), graph.input(X[:, :1])
    found = graph.values(
        dml.activation_identity(x),
        dml.activation_linear(x, 2, 1),
        dml.activation_relu(x),
        dml.activation_sigmoid(x),
        dml.activation_tanh(x),
        dml.value_scale_2d(one, 2.0, [-1]),
        dml.padding(x, dml.PaddingMode.CONSTANT, 9.0, [0, 0, 0, 1], [0, 0, 0, 0]),
        dml.slice(x, [0, 1, 0, 0], [1, 1, 2, 2], [1, 1, 1, -1]),
        dml.average_pooling(x, [1, 1], [2, 2], [0, 0], [0, 0], False),
        dml.up_sample_2d(x, dml.Size2D(2, 1), dml.InterpolationMode.NEAREST_NEIGHBOR),
        dml.mean_variance_normalization(x, None, None, [2, 3], False, 0.0),
        dml.local_response_normalization(x, True, 1, 0.0, 1.0, 2.0),
    )
    expected = [
        X,
        2 * X + 1,
        np.maximum(X, 0),
        1 / (1 + np.exp(-X)),
        np.tanh(X),
        2 * X[:, :1] - 1,
        np.pad(X, ((0, 0), (0, 0), (0, 0), (1, 0)), constant_values=9),
        X[:, 1:, :, ::-1],
        X.mean((2, 3), keepdims=True),
        X.repeat(2, 3),
        X - X.mean((2, 3), keepdims=True),
        X / 2,
    ]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_functions_of_several_tensors(graph: Graph) -> None:
    x, y = graph.input(X), graph.input(X * 2 + 1)
    mean, variance, scale, bias = (graph.input(np.full((1, 2, 1, 1), n)) for n in (1, 4, 3, 5))
    relu = dml.FusedActivation(dml.OperatorType.ACTIVATION_RELU)
    leaky = dml.FusedActivation(dml.OperatorType.ACTIVATION_LEAKY_RELU, 0.5)
    other = X * 2 + 1
    found = graph.values(
        dml.add(x, y, relu),
        dml.add(x, y, leaky),
        dml.subtract(x, y),
        dml.multiply(x, y),
        dml.divide(y, x),
        dml.gemm(x, y, trans_b=dml.MatrixTransform.TRANSPOSE, alpha=2),
        dml.gemm(x, y, x, beta=0.5),
        dml.join([x, y], 1),
        dml.batch_normalization(x, mean, variance, scale, bias, True, 0.0),
    )
    total, turned = X + other, other.swapaxes(2, 3)
    expected = [
        np.maximum(total, 0),
        np.where(total < 0, total / 2, total),
        X - other,
        X * other,
        other / X,
        2 * (X @ turned),
        X @ other + X / 2,
        np.concatenate([X, other], 1),
        3 * (X - 1) / 2 + 5,
    ]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_max_pooling_and_its_indices(graph: Graph) -> None:
    pooled = dml.max_pooling(graph.input(X), window_sizes=[2, 2], output_indices=True)
    assert pooled.indices is not None
    values, indices = graph.values(pooled.values, pooled.indices)

    assert (values.ravel().tolist(), indices.ravel().tolist()) == ([4, 8], [3, 7])
    assert indices.dtype == np.uint32
    assert dml.max_pooling(graph.input(X), [2, 2]).indices is None


@pytest.mark.parametrize("option", list(dml.OutputOptions))
def test_gru(graph: Graph, option: dml.OutputOptions) -> None:
    x, w, r = (graph.input(np.ones(sizes)) for sizes in ((1, 3, 1, 2), (1, 1, 3, 2), (1, 1, 3, 1)))
    names = dml.OperatorType.ACTIVATION_SIGMOID, dml.OperatorType.ACTIVATION_TANH
    outputs = dml.gru(
        x,
        w,
        r,
        activation_descs=[dml.FusedActivation(name) for name in names],
        direction=dml.RecurrentNetworkDirection.FORWARD,
        output_options=option,
    )
    present = [each for each in outputs if each is not None]
    assert (outputs.sequence is None, outputs.single is None) == {
        dml.OutputOptions.Both: (False, False),
        dml.OutputOptions.Sequence: (False, True),
        dml.OutputOptions.Single: (True, False),
    }[option]
    values, h = graph.values(*present), 0.0
    for _ in range(3):
        gate = 1 / (1 + np.exp(-2 - h))
        h = (1 - gate) * np.tanh(2 + gate * h) + gate * h
    assert values[-1].ravel()[-1] == pytest.approx(h)


def test_gather(graph: Graph) -> None:
    """Indices are a tensor of integers, whose bytes the binding's floats are."""
    x = graph.input([[[[1, 2, 3, 4]]]])
    desc = dml.TensorDesc(dml.TensorDataType.UINT32, [1, 1, 1, 2])
    indices = dml.input_tensor(graph.builder, 1, desc)
    graph.bindings.append(dml.Binding(indices, np.uint32([3, 1]).view(np.float32)))
    (found,) = graph.values(dml.gather(x, indices, 3, 1))
    assert found.ravel().tolist() == [4, 2]


# --- what is wrong ---


def test_bindings_that_do_not_fit(graph: Graph) -> None:
    x, y = graph.input([1, 2]), graph.input([3, 4])
    total = x + y
    model = graph.builder.build(dml.ExecutionFlags.NONE, [total])

    with pytest.raises(ValueError, match=r"data has 4 bytes as FLOAT32, but .* has 8"):
        dml.Binding(x, [1])
    with pytest.raises(ValueError, match="inputs has 1 bindings; the model reads input 1, too"):
        graph.device.compute(model, graph.bindings[:1], [total])
    with pytest.raises(ValueError, match="outputs are not those that the model was built for"):
        graph.device.compute(model, graph.bindings, [x])
    with pytest.raises(ValueError, match="has an input with the index 0 already"):
        dml.input_tensor(graph.builder, 0, dml.TensorDesc(F32, [1]))


def test_bindings_in_another_order(graph: Graph) -> None:
    x, y = graph.input([1, 2]), graph.input([3, 4])
    total = x + y
    model = graph.builder.build(dml.ExecutionFlags.NONE, [total])

    with pytest.raises(ValueError, match=r"inputs\[0\] is the binding of <Expression input 1"):
        graph.device.compute(model, graph.bindings[::-1], [total])
    with pytest.raises(TypeError, match=r"outputs must be a pydirectml\.Expression, not int"):
        graph.device.compute(model, graph.bindings, [1])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"gemm\(\): a tensor must be a pydirectml\.Expression, not int"):
        dml.gemm(x, 1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"mean_variance_normalization\(\) needs epsilon"):
        dml.mean_variance_normalization(x, None, None, [0], True)
    with pytest.raises(TypeError, match=r"device must be a pydirectml\.Device"):
        dml.GraphBuilder(None)  # type: ignore[arg-type]
