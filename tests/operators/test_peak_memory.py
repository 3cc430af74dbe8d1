"""No dispatch copies a tensor: beside its tensors it takes a few MiB at most, whatever the layout.

Measured in a process of its own, where nothing else takes or gives back memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dmlemu import Strictness, d3d12, dml
from dmlemu.dml import BufferTensorDesc, MatrixTransform, ReduceFunction
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu.dml.lowering.fields import tensor_fields

BENCH = Path(__file__).parents[1] / "bench"
MOST = 8 << 20
NAMES = (
    """
add, transposed clip, cast, identity into all axes reversed, reduction, nonzero coordinates,
convolution, convolution with channels last, depthwise convolution, product, transposed product
""".replace("\n", " ")
    .strip()
    .split(", ")
)


def main() -> None:
    """Prints a JSON object: by case the bytes at the peak beside what its tensors take."""
    sys.path.insert(0, str(BENCH))
    from dispatch import PreparedDispatch

    extra = {}
    for name, desc, contents in cases():
        with d3d12.create_device(strictness=Strictness.RUNTIME) as device:
            prepared = PreparedDispatch(device, desc, contents)  # its inputs are in memory, its output is not
            before = status("VmRSS")
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
            prepared.run()
            extra[name] = status("VmHWM") - before - output_bytes(desc)
    print(json.dumps(extra))


def status(field: str) -> int:
    """Bytes in memory: VmRSS now, VmHWM at the peak."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{field}:"))


def output_bytes(desc: Any) -> int:
    return sum(
        each.desc.total_tensor_size_in_bytes for each in tensor_fields(desc) if each.output and each.desc
    )


def cases() -> Iterator[tuple[str, OperatorDesc, dict[str, Any]]]:
    """Tensors of 16 MiB and more: twice what a dispatch may take, and more."""
    yield from element_wise_cases()
    for name, groups, last in (
        ("convolution", 1, False),
        ("convolution with channels last", 1, True),
        ("depthwise convolution", 64, False),
    ):
        yield name, *convolution(64, 768, groups, last)
    for name, transform in (
        ("product", MatrixTransform.NONE),
        ("transposed product", MatrixTransform.TRANSPOSE),
    ):
        yield name, *product(2048, transform)


def element_wise_cases() -> Iterator[tuple[str, OperatorDesc, dict[str, Any]]]:
    sizes = [8, 1024, 1024]
    x = np.random.default_rng(1).random(sizes, dtype=np.float32) - 0.5
    packed, swapped = (
        BufferTensorDesc(T.FLOAT32, sizes),
        BufferTensorDesc(T.FLOAT32, sizes, [1 << 20, 1, 1024]),
    )
    reverse = BufferTensorDesc(T.FLOAT32, sizes, [1, 8, 8 << 10])
    unary = {"input_tensor": packed, "output_tensor": packed}
    one, two = {"input_tensor": x}, {"a_tensor": x, "b_tensor": x}
    yield "add", dml.ElementWiseAddOperatorDesc(a_tensor=packed, b_tensor=packed, output_tensor=packed), two
    clip: dict[str, Any] = unary | {"input_tensor": swapped}
    yield "transposed clip", dml.ElementWiseClipOperatorDesc(**clip, min=-0.1, max=0.1), one
    half: dict[str, Any] = unary | {"output_tensor": BufferTensorDesc(T.FLOAT16, sizes)}
    yield "cast", dml.CastOperatorDesc(**half), one
    reversed_axes: dict[str, Any] = unary | {"output_tensor": reverse}
    yield "identity into all axes reversed", dml.ElementWiseIdentityOperatorDesc(**reversed_axes), one
    sums: dict[str, Any] = {
        "input_tensor": swapped,
        "output_tensor": BufferTensorDesc(T.FLOAT32, [8, 1024, 1]),
    }
    yield "reduction", dml.ReduceOperatorDesc(function=ReduceFunction.SUM, **sums, axes=[2]), one
    nonzero = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=packed,
        output_count_tensor=BufferTensorDesc(T.UINT32, [1]),
        output_coordinates_tensor=BufferTensorDesc(T.UINT32, [x.size, 3]),
    )
    yield "nonzero coordinates", nonzero, one


def convolution(channels: int, size: int, groups: int, last: bool) -> tuple[OperatorDesc, dict[str, Any]]:
    shape, filters = [1, channels, size, size], [channels, channels // groups, 3, 3]
    strides = [channels * size * size, 1, size * channels, channels] if last else None
    desc = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=BufferTensorDesc(T.UINT8, shape, strides),
        filter_tensor=BufferTensorDesc(T.INT8, filters),
        output_tensor=BufferTensorDesc(T.INT32, shape, strides),
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
        group_count=groups,
    )
    return desc, {"input_tensor": np.ones(shape, np.uint8), "filter_tensor": np.ones(filters, np.int8)}


def product(n: int, transform: MatrixTransform) -> tuple[OperatorDesc, dict[str, Any]]:
    matrix, a = BufferTensorDesc(T.FLOAT32, [1, 1, n, n]), np.ones((n, n), np.float32)
    tensors = {"a_tensor": matrix, "b_tensor": matrix, "output_tensor": matrix}
    desc = dml.GemmOperatorDesc(**tensors, trans_a=transform, trans_b=transform, alpha=1.0, beta=0.0)
    return desc, {"a_tensor": a, "b_tensor": a}


def test_a_dispatch_takes_its_tensors_and_8_mib() -> None:
    # What is freed goes back to the host, so that no case lives on what an earlier one left.
    allocator = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
    command, environment = [sys.executable, __file__], os.environ | allocator
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    extra: dict[str, int] = json.loads(done.stdout)

    assert set(extra) == set(NAMES)
    assert {name: size for name, size in extra.items() if size > MOST} == {}


if __name__ == "__main__":
    main()
