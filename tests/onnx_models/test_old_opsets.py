"""Operators as older operator sets have them, on the device: attributes instead of inputs, other defaults."""

from __future__ import annotations

from typing import Any

import node_cases
import numpy as np
import pytest
from models import Array
from oracles import Case, compare, model_of, oracles

from dmlemu.onnx import InferenceSession


def x(*shape: int, dtype: Any = np.float32) -> Array:
    return (np.arange(np.prod(shape)).reshape(shape) / 2 - 2).astype(dtype)


ONES, ZEROS = np.ones(3, np.float32), np.zeros(3, np.float32)
CASES = [
    Case("Squeeze", [x(1, 2, 1, 3)], {"axes": [0, 2]}, 7),
    Case("Squeeze", [x(1, 2, 1, 3)], {}, 11),
    Case("Unsqueeze", [x(2, 3)], {"axes": [0, 3]}, 7),
    Case("Clip", [x(2, 3)], {"min": -1.0, "max": 0.25}, 7),
    Case("Clip", [x(2, 3)], {}, 10),
    Case("Clip", [x(2, 3), np.float32(-1)], {}, 11),
    Case("Pad", [x(2, 3)], {"pads": [0, 1, 2, 0], "value": 1.5}, 7),
    Case("Pad", [x(2, 3)], {"pads": [0, 1, 1, 2], "mode": "reflect"}, 10),
    Case("Slice", [x(3, 4)], {"starts": [1, -3], "ends": [9, -1]}, 7),
    Case("Slice", [x(3, 4)], {"starts": [1], "ends": [3], "axes": [1]}, 9),
    Case("Slice", [x(3, 4), np.array([2]), np.array([0]), np.array([1]), np.array([-1])], {}, 10),
    Case("Split", [x(4, 6)], {"axis": 1, "split": [2, 4]}, 7, outputs=2),
    Case("Split", [x(4, 6)], {}, 11, outputs=2),
    Case("TopK", [x(2, 5)], {"k": 2}, 7, outputs=2),
    Case("TopK", [x(3, 2), np.array([2])], {"axis": 0}, 10, outputs=2),
    Case("TopK", [x(2, 5), np.array([2])], {"largest": 0}, 11, outputs=2),
    Case("Dropout", [x(2, 3)], {"ratio": 0.75}, 7),
    Case("Dropout", [x(2, 3)], {"ratio": 0.75}, 10),
    Case("BatchNormalization", [x(2, 3, 2), ONES * 2, ONES, ZEROS, ONES * 4], {"epsilon": 0.5}, 7),
    Case("BatchNormalization", [x(2, 3, 2), ONES * 2, ONES, ZEROS, ONES * 4], {}, 9),
    Case("BatchNormalization", [x(2, 3, 2), ONES * 2, ONES, ZEROS, ONES * 4], {}, 14),
    Case("Upsample", [x(1, 1, 2, 3)], {"scales": [1.0, 1.0, 2.0, 3.0]}, 7),
    Case("Upsample", [x(1, 1, 2, 3), np.float32([1, 1, 2, 2])], {"mode": "linear"}, 9),
    Case("Resize", [x(1, 1, 2, 3), np.float32([1, 1, 2, 2])], {}, 10),
    Case("ReduceSum", [x(2, 3)], {"axes": [1], "keepdims": 0}, 7),
    Case("ReduceMax", [x(2, 3)], {"axes": [-1]}, 11),
    Case("ReduceMean", [x(2, 3)], {}, 13),
    Case("Flatten", [x(2, 3, 4)], {"axis": 2}, 7),
    Case("Gemm", [x(2, 3), x(3, 2), x(2)], {"alpha": 0.5}, 7),
    Case("Gemm", [x(2, 3), x(2, 3), x(1, 2)], {"transB": 1}, 9),
    Case("Softmax", [x(2, 3, 2)], {"axis": 1}, 7),
    Case("Hardmax", [x(2, 3, 2)], {}, 11),
    Case("AveragePool", [x(1, 1, 5)], {"kernel_shape": [2], "count_include_pad": 1, "pads": [1, 0]}, 7),
    Case("MaxPool", [x(1, 1, 5)], {"kernel_shape": [2], "strides": [2]}, 8, outputs=2),
    Case("PRelu", [x(2, 3), np.float32([0.5])], {}, 7),
    Case("Scatter", [x(3, 2), np.array([[1, 0]]), x(1, 2)], {"axis": 0}, 9),
    Case("OneHot", [np.array([1, -1, 2]), np.array([3]), np.float32([0, 2])], {}, 9),
    Case("Cast", [x(2, 3)], {"to": 6}, 7),
    Case("CumSum", [x(2, 3), np.array(1)], {"reverse": 1}, 11),
    Case("Mod", [np.array([5, -5]), np.array([3, 3])], {}, 10),
    Case("DequantizeLinear", [np.uint8([[1, 2], [3, 4]]), np.float32(0.5), np.uint8(1)], {}, 10),
    Case("QuantizeLinear", [x(2, 3), np.float32(0.5), np.int8(1)], {}, 10),
    Case("LRN", [x(1, 3, 2, 2)], {"size": 3}, 7),
    Case("LpNormalization", [x(2, 3)], {"p": 2}, 7),
    Case("InstanceNormalization", [x(2, 3, 4), ONES, ZEROS], {}, 7),
    Case("RNN", [x(2, 1, 2), x(1, 2, 2), x(1, 2, 2)], {"hidden_size": 2}, 7, outputs=2),
    Case("GRU", [x(2, 1, 2) / 4, x(1, 6, 2) / 4, x(1, 6, 2) / 4], {"hidden_size": 2}, 7, outputs=2),
    Case("LSTM", [x(2, 1, 2) / 4, x(1, 8, 2) / 4, x(1, 8, 2) / 4], {"hidden_size": 2}, 7, outputs=3),
    Case("GridSample", [x(1, 1, 2, 2), x(1, 1, 2, 2) / 4], {"mode": "bilinear"}, 16),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{each.op}-{each.opset}" for each in CASES])
def test_an_operator_of_an_older_set(case: Case) -> None:
    expected = oracles(case)
    assert expected
    made, feeds = model_of(case)
    session = InferenceSession(made, device=node_cases.device(), host="error")
    compare(case, session.run(None, feeds), expected)
