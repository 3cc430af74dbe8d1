"""What is measured of the operators that index, and of the random generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

import peers
from cases import Call, Case, Work, beside, listed, tensor
from dmlemu import d3d12, dml
from dmlemu.dml.enums import TensorDataType as T

FLOAT = TensorProto.FLOAT


def indexing_cases(device: d3d12.Device) -> Iterator[Case]:
    rng = np.random.default_rng(7)
    yield from _gathers(device, rng)
    yield from _scatters(device, rng)
    yield _one_hot(device, rng)
    yield _random(device)


def _gathers(device: d3d12.Device, rng: np.random.Generator) -> Iterator[Case]:
    """Rows of an embedding, elements of a long vector, elements along a row."""
    for rows, width, count in ((30_000, 256, 4096), (1_000_000, 1, 1_000_000)):
        x, indices = rng.random((rows, width), np.float32), rng.integers(0, rows, count)
        desc = dml.GatherOperatorDesc(
            input_tensor=tensor(T.FLOAT32, [rows, width]),
            indices_tensor=tensor(T.INT64, [1, count]),
            output_tensor=tensor(T.FLOAT32, [count, width]),
            axis=0,
            index_dimensions=1,
        )
        out = np.empty((count, width), np.float32)
        calls: dict[str, Call] = {
            "numpy": lambda x=x, i=indices, o=out: np.take(x, i, 0, o, "clip"),
            "ORT": peers.onnx_session("Gather", {"x": x, "i": indices}, FLOAT, rank=2, axis=0),
        }
        ours = listed(device, desc, {"input_tensor": x, "indices_tensor": indices})
        work = Work(2 * out.nbytes + indices.nbytes, "copy")
        yield Case(f"gather {count} rows of {width} f32", f"of {rows}", ours, beside(calls), work)
    for axis in (0, 1):
        x, indices = rng.random((1000, 1000), np.float32), rng.integers(0, 1000, (1000, 1000))
        square = tensor(T.FLOAT32, [1000, 1000])
        desc_e = dml.GatherElementsOperatorDesc(
            input_tensor=square, indices_tensor=tensor(T.INT64, [1000, 1000]), output_tensor=square, axis=axis
        )
        inputs = {"x": x, "i": indices}
        calls = {
            "numpy": lambda x=x, i=indices, a=axis: np.take_along_axis(x, i, a),
            "ORT": peers.onnx_session("GatherElements", inputs, FLOAT, rank=2, axis=axis),
        }
        ours = listed(device, desc_e, {"input_tensor": x, "indices_tensor": indices})
        work = Work(2 * x.nbytes + indices.nbytes, "copy")
        yield Case("gather elements 1e6 f32", f"axis {axis}", ours, beside(calls), work)


def _scatters(device: d3d12.Device, rng: np.random.Generator) -> Iterator[Case]:
    """Permutations: no element is written twice."""
    for axis in (0, 1):
        x, updates = (rng.random((1000, 1000), np.float32) for _ in range(2))
        indices = rng.permuted(np.indices((1000, 1000))[axis], axis=axis)
        square = tensor(T.FLOAT32, [1000, 1000])
        desc = dml.ScatterElementsOperatorDesc(
            input_tensor=square,
            indices_tensor=tensor(T.INT64, [1000, 1000]),
            updates_tensor=square,
            output_tensor=square,
            axis=axis,
        )

        def numpy_scatter(x: Any = x, i: Any = indices, u: Any = updates, a: int = axis) -> None:
            np.put_along_axis(x.copy(), i, u, a)

        inputs = {"x": x, "i": indices, "u": updates}
        calls: dict[str, Call] = {
            "numpy": numpy_scatter,
            "ORT": peers.onnx_session("ScatterElements", inputs, FLOAT, rank=2, axis=axis),
        }
        contents = {"input_tensor": x, "indices_tensor": indices, "updates_tensor": updates}
        work = Work(4 * x.nbytes + indices.nbytes, "copy")
        yield Case(
            "scatter elements 1e6 f32", f"axis {axis}", listed(device, desc, contents), beside(calls), work
        )
    x, updates = rng.random((30_000, 256), np.float32), rng.random((4096, 256), np.float32)
    indices = rng.permutation(30_000)[:4096].reshape(4096, 1)
    desc_nd = dml.ScatterNdOperatorDesc(
        input_tensor=tensor(T.FLOAT32, [30_000, 256]),
        indices_tensor=tensor(T.INT64, [4096, 1]),
        updates_tensor=tensor(T.FLOAT32, [4096, 256]),
        output_tensor=tensor(T.FLOAT32, [30_000, 256]),
        input_dimension_count=2,
        indices_dimension_count=2,
    )

    def numpy_rows() -> None:
        x.copy()[indices[:, 0]] = updates

    inputs = {"x": x, "i": indices, "u": updates}
    calls = {"numpy": numpy_rows, "ORT": peers.onnx_session("ScatterND", inputs, FLOAT, rank=2)}
    contents = {"input_tensor": x, "indices_tensor": indices, "updates_tensor": updates}
    work = Work(2 * x.nbytes + 2 * updates.nbytes, "copy")
    yield Case(
        "scatter 4096 rows of 256 f32", "of 30000", listed(device, desc_nd, contents), beside(calls), work
    )


def _one_hot(device: d3d12.Device, rng: np.random.Generator) -> Case:
    indices = rng.integers(0, 1000, (4096, 1))
    desc = dml.OneHotOperatorDesc(
        indices_tensor=tensor(T.INT64, [4096, 1]),
        values_tensor=tensor(T.FLOAT32, [1, 2]),
        output_tensor=tensor(T.FLOAT32, [4096, 1000]),
        axis=1,
    )
    off_on = np.float32([0, 1])

    def numpy_one_hot() -> None:
        np.put_along_axis(np.zeros((4096, 1000), np.float32), indices, 1, 1)

    calls: dict[str, Call] = {
        "numpy": numpy_one_hot,
        "ORT": peers.onnx_session(
            "OneHot", {"i": indices[:, 0]}, FLOAT, rank=2, constants={"d": np.int64(1000), "v": off_on}
        ),
    }
    ours = listed(device, desc, {"indices_tensor": indices, "values_tensor": off_on})
    return Case("one hot 4096 of 1000 f32", "axis 1", ours, beside(calls), Work(4096 * 4000.0, "copy"))


def _random(device: d3d12.Device) -> Case:
    """NumPy's Philox has twice as wide words."""
    state = tensor(T.UINT32, [1, 1, 1, 6])
    desc = dml.RandomGeneratorOperatorDesc(
        input_state_tensor=state,
        output_tensor=tensor(T.UINT32, [1, 1, 1000, 1000]),
        output_state_tensor=state,
        type=dml.RandomGeneratorType.PHILOX_4X32_10,
    )
    generator = np.random.Philox(1)
    calls: dict[str, Call] = {"numpy": lambda: generator.random_raw(500_000)}
    ours = listed(device, desc, {"input_state_tensor": np.zeros(6, np.uint32)})
    return Case("random generator 1e6 u32", "packed", ours, beside(calls))
