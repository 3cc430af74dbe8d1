"""RNN, LSTM and GRU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from activations import activation
from examples import example, refused, tensor
from harness import given
from hypothesis import strategies as st
from strategies import Array

import dmlemu
from dmlemu import dml
from dmlemu.dml import OperatorType
from dmlemu.dml import RecurrentNetworkDirection as D
from dmlemu.dml import TensorDataType as T
from dmlemu_hw.kernel_sanitizer import checked

SIGMOID, TANH = dml.ActivationSigmoidOperatorDesc(), dml.ActivationTanhOperatorDesc()
GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
USUAL = {"RNN": [TANH], "LSTM": [SIGMOID, TANH, TANH], "GRU": [SIGMOID, TANH]}
OWN = {
    "RNN": {},
    "LSTM": {"clip_threshold": 0.0, "use_clip_threshold": False, "couple_input_forget": False},
    "GRU": {"linear_before_reset": False},
}
DESCS = {"RNN": dml.RnnOperatorDesc, "LSTM": dml.LstmOperatorDesc, "GRU": dml.GruOperatorDesc}


def some(*sizes: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 0.5, sizes).astype(np.float32)


def run(kind: str, inputs: dict[str, Array], direction: D = D.FORWARD, **fields: Any) -> dict[str, Array]:
    """All outputs, compared with the reference; checked and fast kernels agree."""
    x, h = inputs["input_tensor"], inputs["recurrence_tensor"].shape[3]
    d, (_, t, b, _) = 1 + (direction is D.BIDIRECTIONAL), x.shape
    data_type = T.FLOAT16 if x.dtype == np.float16 else T.FLOAT32
    descs = {name: tensor(data_type, *each.shape) for name, each in inputs.items()}
    if "sequence_lengths_tensor" in inputs:
        descs["sequence_lengths_tensor"] = tensor(T.UINT32, 1, 1, 1, b)
    descs["output_sequence_tensor"] = tensor(data_type, t, d, b, h)
    names = ["output_single_tensor", *(["output_cell_single_tensor"] if kind == "LSTM" else [])]
    descs |= {name: tensor(data_type, 1, d, b, h) for name in names}
    usual = {"activation_descs": USUAL[kind] * d, "direction": direction, **OWN[kind]}
    desc = DESCS[kind](**descs, **{**usual, **fields})
    with checked() as checker:
        found = dmlemu.evaluate(desc, **inputs)
    assert not checker.findings, "; ".join(map(str, checker.findings))
    nudge = 1 + 4 * np.finfo(x.dtype).eps
    nudged = desc.reference(
        {name: each * x.dtype.type(nudge) if each.dtype == x.dtype else each for name, each in inputs.items()}
    )
    for name, expected in desc.reference(inputs).items():
        error = 4e-3 if data_type is T.FLOAT16 else 2e-5
        # Each step multiplies the error of the one before: steep activations, by hundreds.
        steep = 2 * float(np.abs(nudged[name].astype(np.float64) - expected).max())
        np.testing.assert_allclose(found[name], expected, rtol=error, atol=error + steep, err_msg=name)
    return found


def weights(kind: str, t: int, b: int, i: int, h: int, d: int = 1) -> dict[str, Array]:
    rows = GATES[kind] * h
    return {
        "input_tensor": some(1, t, b, i),
        "weight_tensor": some(1, d, rows, i, seed=1),
        "recurrence_tensor": some(1, d, rows, h, seed=2),
    }


def test_a_network_of_one_unit_by_hand() -> None:
    """h = 2 x + h / 2: 2, then 4 + 1."""
    one = {
        "weight_tensor": np.full((1, 1, 1, 1), 2, np.float32),
        "recurrence_tensor": np.full((1, 1, 1, 1), 0.5, np.float32),
    }
    inputs = {"input_tensor": np.float32([1, 2]).reshape(1, 2, 1, 1), **one}
    identity = [dml.ActivationIdentityOperatorDesc()]
    forward = run("RNN", inputs, activation_descs=identity)
    assert forward["output_sequence_tensor"].ravel().tolist() == [2, 5]
    backward = run("RNN", inputs, D.BACKWARD, activation_descs=identity)
    assert backward["output_sequence_tensor"].ravel().tolist() == [4, 4]
    assert backward["output_single_tensor"].ravel().tolist() == [4]


def test_lengths_end_sequences_and_a_backward_one_begins_there() -> None:
    one = {
        "weight_tensor": np.ones((1, 1, 1, 1), np.float32),
        "recurrence_tensor": np.ones((1, 1, 1, 1), np.float32),
    }
    x = np.float32([[1, 10, 100], [2, np.nan, 200], [4, np.nan, 400]]).reshape(1, 3, 3, 1)
    lengths = np.uint32([3, 1, 0]).reshape(1, 1, 1, 3)
    inputs = {
        "input_tensor": x,
        **one,
        "sequence_lengths_tensor": lengths,
        "hidden_init_tensor": np.full((1, 1, 3, 1), 0.5, np.float32),
    }
    identity = [dml.ActivationIdentityOperatorDesc()]
    found = run("RNN", inputs, D.BACKWARD, activation_descs=identity)
    assert found["output_sequence_tensor"].reshape(3, 3).tolist() == [
        [7.5, 10.5, 0],
        [6.5, 0, 0],
        [4.5, 0, 0],
    ]
    assert found["output_single_tensor"].ravel().tolist() == [7.5, 10.5, 0.5]


def test_the_output_gate_sees_the_new_cell() -> None:
    """ONNX's test_lstm_with_peepholes tells it from the old one."""
    inputs = {
        "input_tensor": np.float32([[1, 2, 3, 4], [5, 6, 7, 8]]).reshape(1, 1, 2, 4),
        "weight_tensor": np.full((1, 1, 12, 4), 0.1, np.float32),
        "recurrence_tensor": np.full((1, 1, 12, 3), 0.1, np.float32),
        "peephole_tensor": np.full((1, 1, 1, 9), 0.1, np.float32),
    }
    found = run("LSTM", inputs)["output_single_tensor"]
    np.testing.assert_allclose(found[0, 0, :, 0], [0.375069, 0.680131], atol=2e-6)


def test_nothing_of_a_coupled_forget_gate_is_read() -> None:
    inputs = weights("LSTM", 3, 2, 4, 5)
    inputs |= {"bias_tensor": some(1, 1, 1, 40, seed=3), "peephole_tensor": some(1, 1, 1, 15, seed=4)}
    expected = run("LSTM", inputs, couple_input_forget=True)
    for name, rows in (("weight_tensor", slice(10, 15)), ("recurrence_tensor", slice(10, 15))):
        inputs[name][:, :, rows] = np.nan
    for rows in (slice(10, 15), slice(30, 35)):
        inputs["bias_tensor"][..., rows] = np.nan
    inputs["peephole_tensor"][..., 10:] = np.nan
    desc_found = run("LSTM", inputs, couple_input_forget=True)
    for name, found in desc_found.items():
        np.testing.assert_array_equal(found, expected[name])


@given(st.data())
def test_any_network(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(GATES)))
    direction = data.draw(st.sampled_from(D))
    d = 1 + (direction is D.BIDIRECTIONAL)
    t, b, i = (data.draw(st.integers(1, most)) for most in (4, 10, 6))
    h = data.draw(st.sampled_from([1, 2, 5, 48, 50]))
    inputs = weights(kind, t, b, i, h, d)
    more = {"bias_tensor": (1, 1, d, 2 * GATES[kind] * h), "hidden_init_tensor": (1, d, b, h)}
    fields: dict[str, Any] = {}
    if kind == "LSTM":
        more |= {"cell_mem_init_tensor": (1, d, b, h), "peephole_tensor": (1, 1, d, 3 * h)}
        flags = {
            "use_clip_threshold": data.draw(st.booleans()),
            "couple_input_forget": data.draw(st.booleans()),
        }
        fields = {"clip_threshold": 0.5, **flags}
    elif kind == "GRU":
        fields = {"linear_before_reset": data.draw(st.booleans())}
    inputs |= {name: some(*sizes, seed=7) for name, sizes in more.items() if data.draw(st.booleans())}
    dtype = data.draw(st.sampled_from([np.float32, np.float16]))
    inputs = {name: each.astype(dtype) for name, each in inputs.items()}
    if data.draw(st.booleans()):
        inputs["sequence_lengths_tensor"] = np.uint32(
            data.draw(st.lists(st.integers(0, t), min_size=b, max_size=b))
        ).reshape(1, 1, 1, b)
    smooth = [
        OperatorType[f"ACTIVATION_{name}"]
        for name in ("TANH", "SIGMOID", "SOFTSIGN", "HARD_SIGMOID", "SCALED_TANH")
    ]
    drawn = [data.draw(st.sampled_from(smooth).flatmap(activation)) for _ in range(d * len(USUAL[kind]))]
    run(kind, inputs, direction, activation_descs=drawn, **fields)


@pytest.mark.parametrize("kind", sorted(GATES))
def test_onnx_runtime(kind: str) -> None:
    """Both directions, with lengths and biases."""
    runtime, onnx = pytest.importorskip("onnxruntime"), pytest.importorskip("onnx")
    t, b, i, h, g = 6, 3, 7, 60, GATES[kind]
    inputs = weights(kind, t, b, i, h, 2)
    inputs |= {
        "bias_tensor": some(1, 1, 2, 2 * g * h, seed=3),
        "hidden_init_tensor": some(1, 2, b, h, seed=4),
    }
    inputs["sequence_lengths_tensor"] = np.uint32([6, 2, 4]).reshape(1, 1, 1, b)
    fields: dict[str, Any] = {}
    if kind == "LSTM":
        inputs |= {
            "cell_mem_init_tensor": some(1, 2, b, h, seed=5),
            "peephole_tensor": some(1, 1, 2, 3 * h, seed=6),
        }
    if kind == "GRU":
        fields = {"linear_before_reset": True}
    names = [
        "input_tensor",
        "weight_tensor",
        "recurrence_tensor",
        "bias_tensor",
        "sequence_lengths_tensor",
        "hidden_init_tensor",
    ]
    names += ["cell_mem_init_tensor", "peephole_tensor"] if kind == "LSTM" else []
    given = {name: inputs[name][0] for name in names}
    given["bias_tensor"] = given["bias_tensor"][0]
    given["sequence_lengths_tensor"] = given["sequence_lengths_tensor"].reshape(b).astype(np.int32)
    if kind == "LSTM":
        given["peephole_tensor"] = given["peephole_tensor"][0]
    kinds = {"sequence_lengths_tensor": onnx.TensorProto.INT32}
    outputs = ["y", "y_h", *(["y_c"] if kind == "LSTM" else [])]
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    node = onnx.helper.make_node(kind, names, outputs, hidden_size=h, direction="bidirectional", **more)
    float_kind = onnx.TensorProto.FLOAT
    infos = [onnx.helper.make_tensor_value_info(n, kinds.get(n, float_kind), given[n].shape) for n in names]
    results = [onnx.helper.make_tensor_value_info(n, float_kind, None) for n in outputs]
    graph = onnx.helper.make_graph([node], "g", infos, results)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 14)], ir_version=8)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    expected = session.run(None, given)
    found = run(kind, inputs, D.BIDIRECTIONAL, **fields)
    np.testing.assert_allclose(found["output_sequence_tensor"], expected[0], atol=2e-5)
    np.testing.assert_allclose(found["output_single_tensor"][0], expected[1], atol=2e-5)
    if kind == "LSTM":
        np.testing.assert_allclose(found["output_cell_single_tensor"][0], expected[2], atol=2e-5)


# --- rules ---


def test_functions_of_several_elements_are_refused() -> None:
    softmax = dml.ActivationSoftmaxOperatorDesc()
    op = example(OperatorType.RNN, activation_descs=[TANH, softmax])
    report = refused(
        op,
        "OP_FUSED_ACTIVATION",
        "ActivationDescs[1].Type",
        "DML_OPERATOR_ACTIVATION_SOFTMAX",
        "a fusable activation",
    )
    assert "DML_OPERATOR_RNN" in report.message


def test_an_output_is_required() -> None:
    op = example(OperatorType.GRU, output_sequence_tensor=None, output_single_tensor=None)
    refused(op, "OP_OPTIONAL", "OutputSequenceTensor", "none", "a tensor desc")


@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
def test_a_length_past_the_end_is_reported() -> None:
    inputs = {**weights("RNN", 3, 2, 4, 5), "sequence_lengths_tensor": np.uint32([9, 3]).reshape(1, 1, 1, 2)}
    run("RNN", inputs)
