"""Compute shaders: beside lavapipe and NumPy, what watching costs, and how long a pipeline takes to make.

Everything is measured in turns, and the fastest turn counts: ratios of one run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.hlsl.cases import Case, cbuffer, structured
from tests.hlsl.oracle import Lavapipe, missing

from dmlemu.shaders import CompiledShader, compile_shader, native, read_container
from dmlemu.shaders.dxc import compile_hlsl
from dmlemu_hw.kernels import ffi, lib, threads
from dmlemu_hw.shader_watch import Watch

SAXPY = """
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u0);
cbuffer numbers : register(b0) { uint n; float a; };
[numthreads(256, 1, 1)] void main(uint3 group : SV_GroupID, uint thread : SV_GroupIndex) {
    const uint i = (group.y * 1024 + group.x) * 256 + thread;
    if (i < n) y[i] += a * x[i];
}
"""
PRODUCT = """
StructuredBuffer<float> a : register(t0);
StructuredBuffer<float> b : register(t1);
RWStructuredBuffer<float> c : register(u0);
cbuffer numbers : register(b0) { uint n; };
groupshared float left[16][16], right[16][16];
[numthreads(16, 16, 1)] void main(uint3 id : SV_DispatchThreadID, uint3 at : SV_GroupThreadID) {
    float sum = 0;
    for (uint k = 0; k < n; k += 16) {
        left[at.y][at.x] = a[id.y * n + k + at.x];
        right[at.y][at.x] = b[(k + at.y) * n + id.x];
        GroupMemoryBarrierWithGroupSync();
        for (uint i = 0; i < 16; ++i) sum += left[at.y][i] * right[i][at.x];
        GroupMemoryBarrierWithGroupSync();
    }
    c[id.y * n + id.x] = sum;
}
"""


class Ours:
    """A case as our native code; ``checked``: watched."""

    def __init__(self, case: Case, checked: bool) -> None:
        container = read_container(compile_hlsl(case.source, case.entry, case.target, case.arguments))
        self.shader = compile_shader(container, checked=checked)
        self.checked = checked
        self.arrays = [in_pages(case.buffers[each.register].data) for each in self.shader.ranges]
        self.views = ffi.new("dmlk_shader_view[]", len(self.arrays))
        self.ranges = ffi.new("dmlk_shader_range[]", len(self.arrays))
        self.fault = ffi.new("dmlk_shader_fault *")
        for number, array in enumerate(self.arrays):
            self.views[number].base, self.views[number].bytes = (
                ffi.from_buffer("uint8_t[]", array),
                len(array),
            )
            self.views[number].id = number
            if self.shader.ranges[number].register_class != "u":  # as a dispatch does: nobody writes it
                self.views[number].flags = lib.DMLK_SHADER_READ_ONLY
            self.ranges[number].views, self.ranges[number].count = self.views + number, 1
        self.call = ffi.new("dmlk_shader_call *")
        self.call.run = ffi.cast("dmlk_shader_group *", self.shader.address)
        self.call.ranges, self.call.groups, self.call.fault = self.ranges, case.groups, self.fault
        self.call.shared_bytes, self.call.frame_bytes = self.shader.shared_bytes, self.shader.frame_bytes

    def run(self) -> None:
        if not self.checked:
            assert lib.dmlk_run_shader(self.call) == 0
            return
        x, y, z = self.shader.threads
        watch = Watch(x * y * z, self.shader.wave, self.shader.shared_bytes, in_parts=True)
        self.call.watch = watch.pointer
        assert lib.dmlk_run_shader(self.call) == 0
        assert not watch.finish() and not watch.doubtful


def in_pages(data: bytes) -> np.ndarray:
    """A copy that begins with a page, as buffers of the device do."""
    room = np.empty(len(data) + 4096, np.uint8)
    begin = -room.ctypes.data % 4096
    array = room[begin : begin + len(data)]
    array[:] = np.frombuffer(data, np.uint8)
    return array


def seconds(run: Callable[..., Any], *given: Any) -> float:
    begin = time.perf_counter()
    run(*given)
    return time.perf_counter() - begin


def saxpy(n: int) -> tuple[Case, Callable[[], Any]]:
    x, y = (np.random.default_rng(seed).random(n, np.float32) for seed in range(2))
    numbers = np.array([n, np.float32(2.5).view(np.uint32), 0, 0], np.uint32)
    buffers = {"t0": structured(x), "u0": structured(y), "b0": cbuffer(numbers)}
    groups = -(-n // 256)
    case = Case("saxpy", SAXPY, buffers, (1024, -(-groups // 1024), 1))

    def by_numpy() -> None:
        np.add(y, x * np.float32(2.5), out=y)

    return case, by_numpy


def product(n: int) -> tuple[Case, Callable[[], Any]]:
    a, b = (np.random.default_rng(seed).random((n, n), np.float32) for seed in range(2))
    buffers = {
        "t0": structured(a.ravel()),
        "t1": structured(b.ravel()),
        "u0": structured(np.zeros(n * n, np.float32)),
        "b0": cbuffer(np.array([n, 0, 0, 0], np.uint32)),
    }
    return Case("product", PRODUCT, buffers, (n // 16, n // 16, 1)), lambda: a @ b


def beside(title: str, case: Case, by_numpy: Callable[[], Any], turns: int) -> float:
    """Prints the row; returns our time."""
    ours = Ours(case, checked=False)
    best = dict.fromkeys(("ours", "lavapipe", "numpy"), float("inf"))
    with Lavapipe.opened(8) as device:
        for _ in range(turns):
            best["ours"] = min(best["ours"], *(seconds(ours.run) for _ in range(3)))
            best["numpy"] = min(best["numpy"], *(seconds(by_numpy) for _ in range(3)))
            best["lavapipe"] = min(best["lavapipe"], device.run_timed(case, 1)[1])
    row = f"{title:<28} {best['ours'] * 1e3:9.2f} ms"
    for peer in ("lavapipe", "numpy"):
        row += f"   {peer} {best[peer] * 1e3:.2f} ms, ratio {best['ours'] / best[peer]:.2f}"
    print(row, flush=True)
    return best["ours"]


def bandwidth(n: int, turns: int) -> float:
    """Bytes in a second that copies of NumPy read and write, on all threads."""
    from concurrent.futures import ThreadPoolExecutor

    source, target = np.ones(n, np.float32), np.empty(n, np.float32)
    parts = np.linspace(0, n, threads() + 1).astype(int)
    pieces = [slice(begin, end) for begin, end in pairwise(parts)]

    def copy(piece: slice) -> None:
        np.copyto(target[piece], source[piece])

    with ThreadPoolExecutor(threads()) as pool:
        best = min(seconds(lambda: list(pool.map(copy, pieces))) for _ in range(3 * turns))
    return 2 * source.nbytes / best


def watching(title: str, case: Case, turns: int) -> None:
    plain, watched = Ours(case, checked=False), Ours(case, checked=True)
    one = min(seconds(plain.run) for _ in range(3 * turns))
    other = min(seconds(watched.run) for _ in range(turns))
    print(f"{title:<28} {other * 1e3:9.2f} ms   not watched {one * 1e3:.2f} ms, ratio {other / one:.1f}")


def creation(turns: int) -> None:
    """Of a shader of 100 lines, each an operation or two; and of its code, which its first dispatch makes."""
    lines = [f"    v = v * {1 + i / 64} + sin(v.yzwx) * {i};" for i in range(24)]
    lines += [f"    if (v.x > {i}) v.y += x[id.x + {i}]; else v.z = max(v.z, v.w + {i});" for i in range(24)]
    lines += [f"    n = (n ^ (n >> {1 + i % 15})) * {2654435761 + 2 * i}u;" for i in range(24)]
    lines += [f"    v.w += asfloat(n & {0x3FFFFF}u) + v.x / (v.y + {i + 1});" for i in range(24)]
    source = "\n".join(
        [
            "StructuredBuffer<float> x : register(t0); RWStructuredBuffer<float4> y : register(u0);",
            "[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {",
            "    float4 v = x[id.x]; uint n = id.x;",
            *lines,
            "    y[id.x] = v;",
            "}",
        ]
    )
    data = compile_hlsl(source, "main", "cs_6_0")

    def make() -> CompiledShader:
        native._compile.cache_clear()
        return compile_shader(read_container(data))

    best = min(seconds(make) for _ in range(3 * turns))
    code = min(seconds(attrgetter("address"), make()) for _ in range(3 * turns))
    print(f"{'pipeline of 101 lines':<28} {best * 1e3:9.2f} ms   its code, when it runs {code * 1e3:.2f} ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=5, help="of each measurement")
    turns = parser.parse_args().turns
    reason = missing()
    if reason is not None:
        print(f"shaders are not measured: the comparison {reason}")
        return 0
    print(f"{threads()} threads")
    n = 25_000_000
    case, by_numpy = saxpy(n)
    ours = beside("SAXPY of 25,000,000", case, by_numpy, turns)
    copied = bandwidth(n, turns)
    print(f"{'':<28} {100 * 12 * n / ours / copied:9.0f} % of the bandwidth of a copy")
    case, by_numpy = product(1024)
    beside("product of 1024, tiled", case, by_numpy, turns)
    watching("SAXPY of 1,000,000, watched", saxpy(1_000_000)[0], turns)
    watching("product of 256, watched", product(256)[0], turns)
    creation(turns)
    return 0


if __name__ == "__main__":
    sys.exit(main())
