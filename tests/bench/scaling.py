"""Cases of the plots: how speed changes with the size and with the order of the axes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

import peers
from cases import COPIED, Case, Work, beside, convolution, copy_into, listed, tensor
from dmlemu import d3d12, dml
from dmlemu.dml.enums import TensorDataType as T

SIZES = [10**k for k in range(2, 9)]
COPY_ORDERS, CONVOLUTION_ORDERS = "copy into", "conv 3x3 64>64 56x56 u8*s8 of"


def size_cases(device: d3d12.Device) -> Iterator[Case]:
    """Packed tensors of a hundred to a hundred million elements."""
    for n in SIZES:
        yield from _size_cases(device, n)


def _size_cases(device: d3d12.Device, n: int) -> Iterator[Case]:
    rng = np.random.default_rng(6)
    f32, u32, size = tensor(T.FLOAT32, [n]), tensor(T.UINT32, [n]), str(n)
    a = rng.random(n, dtype=np.float32)
    out = np.empty_like(a)
    add = dml.ElementWiseAddOperatorDesc(a_tensor=f32, b_tensor=f32, output_tensor=f32)
    ours = listed(device, add, {"a_tensor": a, "b_tensor": a})
    calls = beside({"numpy": lambda: np.add(a, a, out=out)})
    yield Case("add float32", size, ours, calls, Work(12 * n, "copy"))

    bits, counts = a.view(np.uint32), out.view(np.uint32)
    bit_count = dml.ElementWiseBitCountOperatorDesc(input_tensor=u32, output_tensor=u32)
    ours = listed(device, bit_count, {"input_tensor": bits})
    calls = beside(peers.numpy_bit_count(bits, counts))
    yield Case("bit count uint32", size, ours, calls, Work(8 * n, "copy"))

    half = a * (rng.random(n, dtype=np.float32) < 0.5)
    nonzero = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=f32,
        output_count_tensor=tensor(T.UINT32, [1]),
        output_coordinates_tensor=tensor(T.UINT32, [n, 1]),
    )
    ours = listed(device, nonzero, {"input_tensor": half})
    calls = beside({"numpy": lambda: np.argwhere(half)})
    yield Case("nonzero coordinates float32", size, ours, calls, Work(6 * n, "copy"))


def _letters(order: tuple[int, ...]) -> str:
    return "".join("NCHW"[axis] for axis in order)


def copy_order_cases(device: d3d12.Device) -> Iterator[Case]:
    """An NCHW tensor into every order of its axes."""
    x = np.random.default_rng(7).random(COPIED, dtype=np.float32)
    for order in itertools.permutations(range(4)):
        view = x.transpose(order)
        out = np.empty(view.shape, np.float32)
        calls = {"numpy": lambda v=view, o=out: np.copyto(o, v)}
        if peers.torch_reads_arrays():
            calls["torch"] = peers.torch_copy(view, out)
        ours = copy_into(device, order, x)
        yield Case(COPY_ORDERS, _letters(order), ours, beside(calls), Work(2 * x.nbytes, "copy"))


def convolution_order_cases(device: d3d12.Device) -> Iterator[Case]:
    """Input and result in every order of their axes."""
    rng = np.random.default_rng(8)
    x = rng.integers(0, 256, (1, 64, 56, 56), dtype=np.uint8)
    w = rng.integers(-128, 128, (64, 64, 3, 3), dtype=np.int8)
    c = peers.Convolution(x, w, stride=1, padding=1, groups=1)
    calls = beside(peers.convolution_peers(c))
    # N is 1: where it stands changes nothing
    for axes in itertools.permutations((1, 2, 3)):
        order = (0, *axes)
        ours = listed(device, *convolution(c, (order, order)))
        yield Case(CONVOLUTION_ORDERS, _letters(order), ours, calls, Work(c.operations, "int8"))
