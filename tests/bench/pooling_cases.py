"""Poolings of images in both orders of their axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

import peers
from cases import TYPES, Array, Case, Work, beside, listed, random_numbers, tensor
from dmlemu import d3d12, dml
from dmlemu.dml.enums import TensorDataType as T

# name, type, images, channels, size, window, stride, padding
POOLINGS = [
    ("max 3x3 s2 64 112x112", "f32", 1, 64, 112, 3, 2, 1),
    ("max 3x3 s2 64 112x112 batch 8", "f32", 8, 64, 112, 3, 2, 1),
    ("max 3x3 s1 64 56x56", "f32", 1, 64, 56, 3, 1, 1),
    ("max 2x2 s2 64 112x112", "f32", 1, 64, 112, 2, 2, 0),
    ("max 3x3 s2 64 112x112", "f16", 1, 64, 112, 3, 2, 1),
    ("max 3x3 s2 64 112x112", "u8", 1, 64, 112, 3, 2, 1),
    ("max 3x3 s2 64 112x112", "s8", 1, 64, 112, 3, 2, 1),
    ("max with positions 3x3 s2 64 112x112", "f32", 1, 64, 112, 3, 2, 1),
    ("average 3x3 s2 64 112x112", "f32", 1, 64, 112, 3, 2, 1),
    ("average 2x2 s2 64 112x112", "f32", 1, 64, 112, 2, 2, 0),
    ("average of all 2048 7x7", "f32", 1, 2048, 7, 7, 1, 0),
    ("average of all 2048 7x7 batch 8", "f32", 8, 2048, 7, 7, 1, 0),
    ("average of all 2048 7x7", "f16", 1, 2048, 7, 7, 1, 0),
    ("quantized average 3x3 s2 64 112x112", "u8", 1, 64, 112, 3, 2, 1),
    ("quantized average of all 2048 7x7", "u8", 1, 2048, 7, 7, 1, 0),
    ("L2 3x3 s2 64 112x112", "f32", 1, 64, 112, 3, 2, 1),
]


def pooling_cases(device: d3d12.Device) -> Iterator[Case]:
    rng = np.random.default_rng(12)
    for name, type_name, images, channels, size, window, stride, padding in POOLINGS:
        data_type, dtype = TYPES[type_name]
        x = random_numbers(rng, dtype, (images, channels, size, size))
        out_size = (size + 2 * padding - window) // stride + 1
        sizes = [images, channels, out_size, out_size]
        shape = {"window_size": [window] * 2, "strides": [stride] * 2, "dilations": [1, 1]}
        pads = {"start_padding": [padding] * 2, "end_padding": [padding] * 2}
        for layout, order in (("NCHW", (0, 1, 2, 3)), ("NHWC strides", (0, 2, 3, 1))):
            tensors = {
                "input_tensor": tensor(data_type, list(x.shape), peers.strides_of(order, x.shape)),
                "output_tensor": tensor(data_type, sizes, peers.strides_of(order, sizes)),
            }
            desc, contents = _operator(name, tensors, shape | pads)
            contents["input_tensor"] = np.ascontiguousarray(x.transpose(order))
            work = Work(float((x.size + math.prod(sizes)) * x.itemsize), "copy")
            calls = beside(_peers(name, x, window, stride, padding, order))
            yield Case(f"pooling {name} {type_name}", layout, listed(device, desc, contents), calls, work)


def _operator(name: str, tensors: dict[str, Any], shape: dict[str, Any]) -> tuple[Any, dict[str, Array]]:
    if name.startswith("max"):
        positions = None
        if "positions" in name:
            output = tensors["output_tensor"]
            positions = tensor(T.UINT32, list(output.sizes), list(output.strides))
        return dml.MaxPooling2OperatorDesc(**tensors, **shape, output_indices_tensor=positions), {}
    if name.startswith("L2"):
        return dml.LpPooling1OperatorDesc(**tensors, **shape, p=2), {}
    if name.startswith("quantized"):
        scale = tensor(T.FLOAT32, [1, 1, 1, 1])
        scales = {f"{side}_scale_tensor": scale for side in ("input", "output")}
        desc = dml.QuantizedLinearAveragePoolingOperatorDesc(
            **tensors, **scales, **shape, include_padding=False
        )
        return desc, {name: np.full(1, 0.5, np.float32) for name in scales}
    return dml.AveragePooling1OperatorDesc(**tensors, **shape, include_padding=False), {}


def _peers(name: str, x: Array, window: int, stride: int, padding: int, order: tuple[int, ...]) -> Any:
    """ONNX Runtime in its own layout; it has no FLOAT16, and no quantized poolings in ONNX."""
    calls = {}
    node = {"max": "MaxPool", "average": "AveragePool", "L2": "LpPool"}.get(name.split()[0])
    if node is not None and x.dtype != np.float16:
        element = (
            TensorProto.FLOAT
            if x.dtype == np.float32
            else TensorProto.UINT8
            if x.dtype == np.uint8
            else TensorProto.INT8
        )
        calls["ORT" if order[1] == 1 else "ORT (NCHW)"] = peers.onnx_session(
            node, {"x": x}, element, 4, kernel_shape=[window] * 2, strides=[stride] * 2, pads=[padding] * 4
        )
    function = {"max": "max_pool2d", "average": "avg_pool2d"}.get(name.split()[0])
    if (
        peers.torch() is not None
        and function is not None
        and x.dtype == np.float32
        and "positions" not in name
    ):
        more = (
            (window, stride, padding) if name.startswith("max") else (window, stride, padding, False, False)
        )
        calls["torch"] = peers.torch_pooling(function, x, order[1] != 1, *more)
    return calls
