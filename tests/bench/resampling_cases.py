"""What is measured of RESAMPLE: images of 64 channels, enlarged and reduced, in both orders of the axes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

import peers
from cases import Call, Case, Work, beside, listed, tensor
from dmlemu import d3d12, dml
from dmlemu.dml.enums import AxisDirection, InterpolationMode
from dmlemu.dml.enums import TensorDataType as T

BATCH, CHANNELS, SIDE = 8, 64, 112
LINEAR, NEAREST = InterpolationMode.LINEAR, InterpolationMode.NEAREST_NEIGHBOR


def resampling_cases(device: d3d12.Device) -> Iterator[Case]:
    for mode, side, antialiased in (
        (LINEAR, 224, False),
        (LINEAR, 160, False),
        (LINEAR, 56, False),
        (LINEAR, 56, True),
        (NEAREST, 224, False),
        (NEAREST, 80, False),
    ):
        for channels_last in (False, True):
            yield _case(device, mode, side, antialiased, channels_last)


def _case(
    device: d3d12.Device, mode: InterpolationMode, side: int, antialiased: bool, channels_last: bool
) -> Case:
    small, large = [BATCH, CHANNELS, SIDE, SIDE], [BATCH, CHANNELS, side, side]
    x = np.random.default_rng(12).random(small, np.float32)
    if channels_last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))

    def image(sizes: list[int]) -> dml.BufferTensorDesc:
        _, channels, height, width = sizes
        row = width * channels
        return tensor(T.FLOAT32, sizes, [height * row, 1, row, channels] if channels_last else None)

    factor = side / SIDE
    desc = dml.Resample3OperatorDesc(
        input_tensor=image(small),
        output_tensor=image(large),
        interpolation_mode=mode,
        rounding_direction=AxisDirection.DECREASING,
        scales=[1.0, 1.0, factor, factor],
        input_pixel_offsets=[0.5] * 4,
        output_pixel_offsets=[-0.5] * 4,
        antialiased=antialiased,
    )
    calls: dict[str, Call] = {"ORT": _onnx(x, mode, side, antialiased, channels_last)}
    if (torch := peers.torch()) is not None:
        calls["torch"] = _torch(torch, x, mode, side, antialiased, channels_last)
    bytes_moved = 4.0 * BATCH * CHANNELS * (SIDE * SIDE + side * side)
    name = f"resample {mode.name.split('_')[0].lower()}{' antialiased' * antialiased} {SIDE} > {side}"
    ours = listed(device, desc, {"input_tensor": x})
    return Case(name, "NHWC" if channels_last else "NCHW", ours, beside(calls), Work(bytes_moved, "copy"))


def _onnx(x: Any, mode: InterpolationMode, side: int, antialiased: bool, channels_last: bool) -> Call:
    ratio = side / SIDE
    scales = np.float32([1, ratio, ratio, 1] if channels_last else [1, 1, ratio, ratio])
    return peers.onnx_session(
        "Resize",
        {"x": x},
        TensorProto.FLOAT,
        4,
        {"roi": np.zeros(0, np.float32), "scales": scales},
        opset=18,
        mode="linear" if mode is LINEAR else "nearest",
        antialias=int(antialiased),
        nearest_mode="floor",
    )


def _torch(
    torch: Any, x: Any, mode: InterpolationMode, side: int, antialiased: bool, channels_last: bool
) -> Call:
    tensor_ = torch.frombuffer(x.reshape(-1), dtype=torch.float32).reshape(x.shape)
    if channels_last:
        tensor_ = tensor_.permute(0, 3, 1, 2)
    fields: dict[str, Any] = {"mode": "nearest-exact"}
    if mode is LINEAR:
        fields = {"mode": "bilinear", "align_corners": False, "antialias": antialiased}
    return lambda: torch.nn.functional.interpolate(tensor_, (side, side), **fields)
