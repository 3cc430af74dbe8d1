"""Quads: four threads that read each other, a square of 2 x 2 where a group is even along x and y."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dmlemu.shaders import compile_shader, read_container
from dmlemu.shaders.dxc import CompilerMissing, compile_hlsl

from .test_native import Call

pytest.importorskip("llvmlite")

HEAD = """
RWStructuredBuffer<float4> y;
[numthreads(8, 4, 2)] void main(uint3 t : SV_GroupThreadID, uint i : SV_GroupIndex)"""
X, Y, Z = np.arange(64) % 8, np.arange(64) // 8 % 4, np.arange(64) // 32


def run(body: str, wave: int) -> npt.NDArray[np.float32]:
    try:
        code = compile_hlsl(f"{HEAD} {{ {body} }}", "main", "cs_6_6")
    except CompilerMissing as error:
        pytest.skip(str(error))
    shader = compile_shader(read_container(code), wave=wave)
    found = np.zeros((64, 4), np.float32)
    assert Call(shader.address, [found], (1, 1, 1)).run() == 0
    return found


@pytest.mark.parametrize("wave", [4, 8, 16, 32, 64])
def test_threads_read_across_x_y_and_the_diagonal(wave: int) -> None:
    def value(x: Any, y: Any) -> Any:
        return x + 100 * y + 10000 * Z

    found = run(
        "float v = t.x + 100 * t.y + 10000 * t.z;"
        "float3 across = float3(QuadReadAcrossX(v), QuadReadAcrossY(v), QuadReadAcrossDiagonal(v));"
        "y[i] = float4(across, QuadReadLaneAt(v, 2));",
        wave,
    )
    expected = [value(X ^ 1, Y), value(X, Y ^ 1), value(X ^ 1, Y ^ 1), value(X & ~1, Y | 1)]
    np.testing.assert_array_equal(found, np.stack(expected, 1))


@pytest.mark.parametrize("wave", [4, 16, 64])
def test_derivatives(wave: int) -> None:
    def value(x: Any, y: Any) -> Any:
        return (x * x + 100 * y * y * (x + 1)).astype(np.float32)

    found = run(
        "float v = t.x * t.x + 100.0 * t.y * t.y * (t.x + 1);"
        "y[i] = float4(ddx_coarse(v), ddy_coarse(v), ddx_fine(v), ddy_fine(v));",
        wave,
    )
    x, y = X & ~1, Y & ~1
    coarse = [value(x + 1, y) - value(x, y), value(x, y + 1) - value(x, y)]
    fine = [value(x + 1, Y) - value(x, Y), value(X, y + 1) - value(X, y)]
    np.testing.assert_array_equal(found, np.stack([*coarse, *fine], 1))
