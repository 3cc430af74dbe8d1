"""What networks of language are made of: attention, recurrence, products of few rows, products of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

import peers
from cases import Array, Call, Case, Work, beside, listed, random_numbers, tensor
from dmlemu import d3d12, dml
from dmlemu.dml.enums import TensorDataType as T

_RNG = np.random.default_rng(12)


def sequence_cases(device: d3d12.Device) -> Iterator[Case]:
    for tokens in (128, 512):
        yield _attention(device, tokens)
    for kind in ("LSTM", "GRU", "RNN"):
        for items in (1, 8):
            yield _recurrent(device, kind, 128, items, 512)
    for transposed in (False, True):
        for m, k, n in ((1, 4096, 4096), (4, 4096, 4096), (8, 768, 3072), (128, 768, 3072)):
            yield _thin(device, m, k, n, transposed)
    for types in ("u8*s8", "s8*s8", "u8*u8"):
        for m, k, n in ((256, 256, 256), (1024, 1024, 1024), (1, 4096, 4096), (128, 768, 3072)):
            yield _bytes(device, types, m, k, n)
    yield _bytes(device, "u8*s8", 4096, 4096, 4096)
    yield _quantized(device, 128, 768, 3072)


def _normal(*sizes: int) -> Array:
    return _RNG.normal(0, 0.5, sizes).astype(np.float32)


def _tensors(*arrays: Array) -> list[Any]:
    t = peers.torch()
    return [t.frombuffer(bytearray(each.tobytes()), dtype=t.float32).reshape(each.shape) for each in arrays]


def _attention(device: d3d12.Device, tokens: int, heads: int = 12, size: int = 64) -> Case:
    wide = heads * size
    inputs = {name: _normal(1, tokens, wide) for name in ("query", "key", "value")}
    packed = tensor(T.FLOAT32, [1, tokens, wide])
    desc = dml.MultiheadAttentionOperatorDesc(
        query_tensor=packed,
        key_tensor=packed,
        value_tensor=packed,
        output_tensor=packed,
        scale=size**-0.5,
        mask_filter_value=-10000.0,
        head_count=heads,
        mask_type=dml.MultiheadAttentionMaskType.NONE,
    )
    calls: dict[str, Call] = {
        "ORT": peers.onnx_session(
            "MultiHeadAttention", inputs, TensorProto.FLOAT, 3, domain="com.microsoft", num_heads=heads
        )
    }
    t = peers.torch()
    if t is not None:
        q, k, v = (
            each.reshape(1, tokens, heads, size).transpose(1, 2) for each in _tensors(*inputs.values())
        )
        functional = t.nn.functional
        attend = getattr(functional, "scaled_dot_product_attention", None)
        weigh = getattr(functional, "_scaled_dot_product_attention", None)  # its name in PyTorch 1
        calls["torch"] = lambda: (attend or weigh)(q, k, v)
    ours = listed(device, desc, {f"{name}_tensor": each for name, each in inputs.items()})
    work = Work(4.0 * tokens * tokens * wide, "float32")
    return Case(f"attention 12 heads {tokens} x 64", "f32", ours, beside(calls), work)


_GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}


def _recurrent(device: d3d12.Device, kind: str, steps: int, items: int, units: int) -> Case:
    sigmoid, tanh = dml.ActivationSigmoidOperatorDesc(), dml.ActivationTanhOperatorDesc()
    functions = {"RNN": [tanh], "LSTM": [sigmoid, tanh, tanh], "GRU": [sigmoid, tanh]}[kind]
    own = {
        "RNN": {},
        "LSTM": {"clip_threshold": 0.0, "use_clip_threshold": False, "couple_input_forget": False},
        "GRU": {"linear_before_reset": True},
    }[kind]
    rows = _GATES[kind] * units
    x, w, r = _normal(steps, items, units), _normal(1, rows, units) * 0.1, _normal(1, rows, units) * 0.1
    make: Any = {"RNN": dml.RnnOperatorDesc, "LSTM": dml.LstmOperatorDesc, "GRU": dml.GruOperatorDesc}[kind]
    desc = make(
        input_tensor=tensor(T.FLOAT32, [1, *x.shape]),
        weight_tensor=tensor(T.FLOAT32, [1, *w.shape]),
        recurrence_tensor=tensor(T.FLOAT32, [1, *r.shape]),
        output_sequence_tensor=tensor(T.FLOAT32, [steps, 1, items, units]),
        activation_descs=functions,
        direction=dml.RecurrentNetworkDirection.FORWARD,
        **own,
    )
    more = {"linear_before_reset": 1} if kind == "GRU" else {}
    session = peers.onnx_session(
        kind, {"x": x}, TensorProto.FLOAT, 4, {"w": w, "r": r}, hidden_size=units, **more
    )
    calls: dict[str, Call] = {"ORT": session}
    t = peers.torch()
    if t is not None:
        network = getattr(t.nn, kind)(units, units, bias=False)
        (given,) = _tensors(x)
        calls["torch"] = lambda: _without_gradient(network, given)
    ours = listed(device, desc, {"input_tensor": x, "weight_tensor": w, "recurrence_tensor": r})
    work = Work(4.0 * steps * items * rows * units, "float32")
    return Case(f"{kind} {steps} steps {units} units", f"batch {items}", ours, beside(calls), work)


def _without_gradient(function: Any, *arguments: Any) -> object:
    with peers.torch().no_grad():
        return function(*arguments)


def _thin(device: d3d12.Device, m: int, k: int, n: int, transposed: bool) -> Case:
    """``transposed``: the columns of b are contiguous."""
    a, b = _normal(m, k), _normal(n, k) if transposed else _normal(k, n)
    transform = dml.MatrixTransform.TRANSPOSE if transposed else dml.MatrixTransform.NONE
    desc = dml.GemmOperatorDesc(
        a_tensor=tensor(T.FLOAT32, [1, 1, m, k]),
        b_tensor=tensor(T.FLOAT32, [1, 1, *b.shape]),
        output_tensor=tensor(T.FLOAT32, [1, 1, m, n]),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=transform,
        alpha=1.0,
        beta=0.0,
    )
    out, y = np.empty((m, n), np.float32), b.T if transposed else b
    calls: dict[str, Call] = {
        "numpy": lambda: np.matmul(a, y, out=out),
        "ORT": peers.onnx_session("Gemm", {"a": a, "b": b}, TensorProto.FLOAT, 2, transB=int(transposed)),
    }
    moved = Work(4.0 * (m * k + k * n + m * n), "copy")
    work = moved if m < 16 else Work(2.0 * m * n * k, "float32")
    ours = listed(device, desc, {"a_tensor": a, "b_tensor": b})
    return Case(f"gemm {m}x{k}x{n} f32", "NT" if transposed else "NN", ours, beside(calls), work)


_BYTES = {"u8": (T.UINT8, np.uint8), "s8": (T.INT8, np.int8)}


def _bytes(device: d3d12.Device, types: str, m: int, k: int, n: int) -> Case:
    (a_type, a_dtype), (b_type, b_dtype) = (_BYTES[each] for each in types.split("*"))
    a, b = random_numbers(_RNG, a_dtype, (m, k)), random_numbers(_RNG, b_dtype, (k, n))
    desc = dml.MatrixMultiplyIntegerOperatorDesc(
        a_tensor=tensor(a_type, [1, 1, m, k]),
        b_tensor=tensor(b_type, [1, 1, k, n]),
        output_tensor=tensor(T.INT32, [1, 1, m, n]),
    )
    session = peers.onnx_session("MatMulInteger", {"a": a}, TensorProto.INT32, 2, {"b": b})
    bound = peers.onnx_session("MatMulInteger", {"a": a, "b": b}, TensorProto.INT32, 2)
    calls = {"ORT (b constant)": session, "ORT": bound}
    ours = listed(device, desc, {"a_tensor": a, "b_tensor": b})
    work = Work(2.0 * m * n * k, "int8")
    return Case(f"integer product {m}x{k}x{n}", types, ours, beside(calls), work)


def _quantized(device: d3d12.Device, m: int, k: int, n: int) -> Case:
    a, b = random_numbers(_RNG, np.uint8, (m, k)), random_numbers(_RNG, np.int8, (k, n))
    one = tensor(T.FLOAT32, [1, 1, 1, 1])
    desc = dml.QuantizedLinearMatrixMultiplyOperatorDesc(
        a_tensor=tensor(T.UINT8, [1, 1, m, k]),
        a_scale_tensor=one,
        a_zero_point_tensor=tensor(T.UINT8, [1, 1, 1, 1]),
        b_tensor=tensor(T.INT8, [1, 1, k, n]),
        b_scale_tensor=one,
        output_scale_tensor=one,
        output_zero_point_tensor=tensor(T.UINT8, [1, 1, 1, 1]),
        output_tensor=tensor(T.UINT8, [1, 1, m, n]),
    )
    scales = [np.float32(each) for each in (0.02, 0.03, 40)]
    zero, other = np.uint8(7), np.int8(0)
    constants = {
        "a_scale": scales[0],
        "a_zero": zero,
        "b": b,
        "b_scale": scales[1],
        "b_zero": other,
        "y_scale": scales[2],
        "y_zero": zero,
    }
    constants = {name: np.asarray(each) for name, each in constants.items()}
    session = peers.onnx_session("QLinearMatMul", {"a": a}, TensorProto.UINT8, 2, constants)
    contents = {
        "a_tensor": a,
        "b_tensor": b,
        "a_scale_tensor": np.full(1, scales[0]),
        "b_scale_tensor": np.full(1, scales[1]),
        "output_scale_tensor": np.full(1, scales[2]),
        "a_zero_point_tensor": np.full(1, zero),
        "output_zero_point_tensor": np.full(1, zero),
    }
    ours = listed(device, desc, contents)
    work = Work(2.0 * m * n * k, "int8")
    return Case(f"quantized product {m}x{k}x{n}", "u8*s8", ours, beside({"ORT (b constant)": session}), work)
