"""Run by ``check.py`` with each wheel, where the wheel is for: prints digests of what it computes.

They must be the same everywhere.  It imports nothing but the package.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

import dmlemu
from dmlemu import d3d12, dml
from dmlemu.dml import BufferTensorDesc
from dmlemu.dml import TensorDataType as T
from dmlemu.graph import Graph, convolution, relu
from dmlemu.testing import stable

Array = np.ndarray[Any, Any]


def seeds() -> dict[str, Array]:
    """The three operators that the emulator began with."""
    random = np.random.default_rng(1)
    words = random.integers(0, 1 << 32, (5, 77), np.uint64).astype(np.uint32)
    image = random.integers(0, 256, (2, 5, 9, 11), np.uint64).astype(np.uint8)
    filters = random.integers(-128, 128, (6, 5, 3, 3), np.int64).astype(np.int8)
    bits = dml.ElementWiseBitCountOperatorDesc(
        input_tensor=BufferTensorDesc(T.UINT32, [5, 77]), output_tensor=BufferTensorDesc(T.UINT8, [5, 77])
    )
    nonzero = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=BufferTensorDesc(T.UINT32, [5, 77]),
        output_count_tensor=BufferTensorDesc(T.UINT32, [1]),
        output_coordinates_tensor=BufferTensorDesc(T.UINT32, [385, 2]),
    )
    sums = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=BufferTensorDesc(T.UINT8, [2, 5, 9, 11]),
        filter_tensor=BufferTensorDesc(T.INT8, [6, 5, 3, 3]),
        output_tensor=BufferTensorDesc(T.INT32, [2, 6, 4, 5]),
        strides=[2, 2],
        dilations=[1, 1],
        start_padding=[0, 0],
        end_padding=[0, 0],
        group_count=1,
    )
    found = {
        "bits": dmlemu.evaluate(bits, input_tensor=words)["output_tensor"],
        "sums": dmlemu.evaluate(sums, input_tensor=image, filter_tensor=filters)["output_tensor"],
    }
    places = dmlemu.evaluate(nonzero, input_tensor=words & 1)
    return found | {"count": places["output_count_tensor"], "places": places["output_coordinates_tensor"]}


def library() -> dict[str, Array]:
    """Where C libraries differ: angles beyond 2^25 that are no floats, powers of integers above 2^53."""
    values = (np.arange(1, 2001, dtype=np.int64) ** 3).astype(np.float32).reshape(1, 1, 1, -1)
    desc = BufferTensorDesc(T.FLOAT32, values.shape)
    found = {}
    for kind in ("Sin", "Cos", "Tan"):
        operator = getattr(dml, f"ElementWise{kind}OperatorDesc")
        scaled = operator(input_tensor=desc, output_tensor=desc, scale_bias=dml.ScaleBias(1.1e5, 0.3))
        found[kind] = dmlemu.evaluate(scaled, input_tensor=values)["output_tensor"]
    bases, exponents = np.arange(64, dtype=np.int32) - 20, (np.arange(64) % 23).astype(np.float32)
    power = dml.ElementWisePowOperatorDesc(
        input_tensor=BufferTensorDesc(T.INT32, [1, 1, 1, 64]),
        exponent_tensor=BufferTensorDesc(T.FLOAT32, [1, 1, 1, 64]),
        output_tensor=BufferTensorDesc(T.INT32, [1, 1, 1, 64]),
    )
    inputs = {"input_tensor": bases.reshape(1, 1, 1, 64), "exponent_tensor": exponents.reshape(1, 1, 1, 64)}
    return found | {"powers": dmlemu.evaluate(power, **inputs)["output_tensor"]}


def network() -> Array:
    """One graph."""
    random = np.random.default_rng(2)
    graph = Graph(dml.create_device(d3d12.create_device(d3d12.Adapter())))
    x = graph.input([1, 3, 8, 8], name="x")
    weights = graph.constant(random.standard_normal((4, 3, 3, 3), np.float32) / 5, name="weights")
    y = relu(convolution(x, weights, start_padding=[1, 1], end_padding=[1, 1]) + 0.5)
    found: Array = graph.compile(y)(x=random.standard_normal((1, 3, 8, 8), np.float32))
    return found


def main() -> None:
    """Prints a line for each result."""
    found = seeds() | library() | {"network": network(), "network under chaos": np.asarray(stable(network))}
    for name, values in found.items():
        print(
            name, hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=8).hexdigest(), sep="\t"
        )


if __name__ == "__main__":
    main()
