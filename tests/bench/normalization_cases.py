"""Normalisation of groups and with given statistics, beside ONNX Runtime and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

import peers
from cases import Call, Case, Work, beside, listed, tensor
from dmlemu import d3d12, dml
from dmlemu.dml.enums import TensorDataType as T

_RNG = np.random.default_rng(11)


def normalization_cases(device: d3d12.Device) -> Iterator[Case]:
    for rows in (128, 4096):
        yield _layer(device, rows, 768)
    for sizes in ([1, 64, 56, 56], [8, 256, 14, 14]):
        yield _batch(device, sizes)
        yield _instance(device, sizes)
    yield _batch(device, [1, 64, 56, 56], channels_last=True)
    yield _local_response(device, [1, 64, 55, 55])
    yield _lp(device, 1000, 1000)
    yield _value_scale(device, [8, 3, 224, 224])


def _normal(*sizes: int) -> np.ndarray:
    return _RNG.normal(1, 1, sizes).astype(np.float32)


def _node(name: str, inputs: dict[str, np.ndarray], **attributes: Any) -> Call:
    constants = {key: value for key, value in inputs.items() if key != "x"}
    x = inputs["x"]
    return peers.onnx_session(name, {"x": x}, TensorProto.FLOAT, x.ndim, constants, **attributes)


def _tensors(*arrays: np.ndarray) -> list[Any]:
    return [peers.torch().tensor(each.tolist()) for each in arrays]


def _layer(device: d3d12.Device, rows: int, width: int) -> Case:
    x, scale, bias = _normal(rows, width), _normal(width), _normal(width)
    packed, one = tensor(T.FLOAT32, [rows, width]), tensor(T.FLOAT32, [1, width])
    desc = dml.MeanVarianceNormalization1OperatorDesc(
        input_tensor=packed,
        scale_tensor=one,
        bias_tensor=one,
        output_tensor=packed,
        axes=[1],
        normalize_variance=True,
        epsilon=1e-5,
    )
    calls = {"ORT": _node("LayerNormalization", {"x": x, "scale": scale, "bias": bias}, axis=1)}
    if peers.torch() is not None:
        t, given = peers.torch(), _tensors(x, scale, bias)
        calls["torch"] = lambda: t.nn.functional.layer_norm(given[0], [width], *given[1:])
    ours = listed(device, desc, {"input_tensor": x, "scale_tensor": scale, "bias_tensor": bias})
    return Case("layer normalization f32", f"{rows}x{width}", ours, beside(calls), Work(2 * x.nbytes, "copy"))


def _batch(device: d3d12.Device, sizes: list[int], channels_last: bool = False) -> Case:
    """The peers' images have their channels first."""
    x, (scale, bias, mean) = _normal(*sizes), _normal(3, sizes[1])
    variance = mean * mean
    strides = peers.strides_of([0, 2, 3, 1], sizes) if channels_last else None
    packed, one = tensor(T.FLOAT32, sizes, strides), tensor(T.FLOAT32, [1, sizes[1], 1, 1])
    names = ("mean_tensor", "variance_tensor", "scale_tensor", "bias_tensor")
    contents = dict(zip(names, (mean, variance, scale, bias), strict=True))
    desc = dml.BatchNormalizationOperatorDesc(
        input_tensor=packed,
        mean_tensor=one,
        variance_tensor=one,
        scale_tensor=one,
        bias_tensor=one,
        output_tensor=packed,
        spatial=True,
        epsilon=1e-5,
    )
    constants = {"x": x, "scale": scale, "bias": bias, "mean": mean, "variance": variance}
    calls = {"ORT": _node("BatchNormalization", constants)}
    if peers.torch() is not None:
        t, given = peers.torch(), _tensors(x, mean, variance, scale, bias)
        calls["torch"] = lambda: t.nn.functional.batch_norm(*given)
    ours = listed(device, desc, {"input_tensor": x, **contents})
    layout = "x".join(map(str, sizes)) + (" NHWC" if channels_last else "")
    return Case("batch normalization f32", layout, ours, beside(calls), Work(2 * x.nbytes, "copy"))


def _instance(device: d3d12.Device, sizes: list[int]) -> Case:
    x, ones, zeros = _normal(*sizes), np.ones(sizes[1], np.float32), np.zeros(sizes[1], np.float32)
    packed = tensor(T.FLOAT32, sizes)
    desc = dml.MeanVarianceNormalizationOperatorDesc(
        input_tensor=packed,
        output_tensor=packed,
        cross_channel=False,
        normalize_variance=True,
        epsilon=1e-5,
    )
    calls = {"ORT": _node("InstanceNormalization", {"x": x, "scale": ones, "bias": zeros})}
    if peers.torch() is not None:
        t, given = peers.torch(), _tensors(x)
        calls["torch"] = lambda: t.nn.functional.instance_norm(given[0])
    ours = listed(device, desc, {"input_tensor": x})
    layout = "x".join(map(str, sizes))
    return Case("instance normalization f32", layout, ours, beside(calls), Work(2 * x.nbytes, "copy"))


def _local_response(device: d3d12.Device, sizes: list[int]) -> Case:
    x, packed = _normal(*sizes), tensor(T.FLOAT32, sizes)
    desc = dml.LocalResponseNormalizationOperatorDesc(
        input_tensor=packed,
        output_tensor=packed,
        cross_channel=True,
        local_size=5,
        alpha=1e-4,
        beta=0.75,
        bias=1.0,
    )
    calls = {"ORT": _node("LRN", {"x": x}, size=5, alpha=1e-4, beta=0.75, bias=1.0)}
    ours = listed(device, desc, {"input_tensor": x})
    layout = "x".join(map(str, sizes))
    return Case("local response f32", layout, ours, beside(calls), Work(2 * x.nbytes, "copy"))


def _lp(device: d3d12.Device, rows: int, width: int) -> Case:
    x, packed = _normal(rows, width), tensor(T.FLOAT32, [rows, width])
    desc = dml.LpNormalizationOperatorDesc(
        input_tensor=packed, output_tensor=packed, axis=1, epsilon=1e-5, p=2
    )
    calls = {"ORT": _node("LpNormalization", {"x": x}, axis=1, p=2)}
    if peers.torch() is not None:
        t, given = peers.torch(), _tensors(x)
        calls["torch"] = lambda: t.nn.functional.normalize(given[0])
    ours = listed(device, desc, {"input_tensor": x})
    return Case("lp normalization f32", f"{rows}x{width}", ours, beside(calls), Work(2 * x.nbytes, "copy"))


def _value_scale(device: d3d12.Device, sizes: list[int]) -> Case:
    x, packed = _normal(*sizes), tensor(T.FLOAT32, sizes)
    bias = [0.25 * channel for channel in range(sizes[1])]
    desc = dml.ValueScale2dOperatorDesc(input_tensor=packed, output_tensor=packed, scale=0.5, bias=bias)
    of_channels, out = np.array(bias, np.float32).reshape(-1, 1, 1), np.empty_like(x)
    calls: dict[str, Call] = {"numpy": lambda: np.add(np.multiply(x, 0.5, out=out), of_channels, out=out)}
    ours = listed(device, desc, {"input_tensor": x})
    layout = "x".join(map(str, sizes))
    return Case("value scale f32", layout, ours, beside(calls), Work(2 * x.nbytes, "copy"))
