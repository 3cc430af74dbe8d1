"""Well-known compute shaders, each with what NumPy says of it.

A function takes the number of lanes of a wave and gives the case.  Inputs are loaded, never constants of the
source: DXC computes with constants itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cases import (
    R8G8B8A8_UINT,
    R8G8B8A8_UNORM,
    R32_FLOAT,
    R32_UINT,
    Case,
    Expected,
    cbuffer,
    raw,
    structured,
    typed,
)

__all__ = ["CLASSICS"]

CLASSICS: dict[str, Callable[[int], Case]] = {}


def classic(make: Callable[[int], Case]) -> Callable[[int], Case]:
    CLASSICS[make.__name__] = make
    return make


def draw(name: str) -> np.random.Generator:
    return np.random.default_rng(list(name.encode()))


def floats(name: str, *shape: int) -> NDArray[np.float32]:
    return draw(name).standard_normal(shape).astype(np.float32)


def words(name: str, count: int, below: int = 1 << 32) -> NDArray[np.uint32]:
    return draw(name).integers(0, below, count, np.uint64).astype(np.uint32)


def zeros(count: int, dtype: Any = np.uint32) -> NDArray[Any]:
    return np.zeros(count, dtype)


def packed(*values: Any) -> bytes:
    """Numbers one behind the other, as a constant buffer has those of 4 bytes."""
    return b"".join(value.tobytes() for value in values)


@classic
def saxpy(wave: int) -> Case:
    x, y, a = floats("x", 1000), floats("y", 1000), np.float32(1.7)
    source = """
cbuffer C : register(b0) { float a; uint count; };
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u0);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    if (id.x < count) y[id.x] += a * x[id.x];
}"""
    buffers = {"b0": cbuffer(packed(a, np.uint32(990))), "t0": structured(x), "u0": structured(y)}
    result = np.concatenate([y[:990] + a * x[:990], y[990:]])
    return Case("saxpy", source, buffers, (16, 1, 1), expected={"u0": Expected(result)})


@classic
def reduction(wave: int) -> Case:
    x = floats("reduction", 4, 256)
    source = """
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> sums : register(u0);
groupshared float part[256];
[numthreads(256, 1, 1)]
void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex, uint3 group : SV_GroupID) {
    part[i] = x[id.x];
    GroupMemoryBarrierWithGroupSync();
    for (uint step = 128; step > 0; step >>= 1) {
        if (i < step) part[i] += part[i + step];
        GroupMemoryBarrierWithGroupSync();
    }
    if (i == 0) sums[group.x] = part[0];
}"""
    part = x.copy()
    while part.shape[1] > 1:
        half = part.shape[1] // 2
        part = part[:, :half] + part[:, half:]
    buffers = {"t0": structured(x), "u0": structured(zeros(4, np.float32))}
    return Case("reduction", source, buffers, (4, 1, 1), expected={"u0": Expected(part[:, 0])})


@classic
def prefix_sum(wave: int) -> Case:
    x = words("prefix", 256)
    source = """
ByteAddressBuffer x : register(t0);
RWByteAddressBuffer sums : register(u0);
groupshared uint part[2][256];
[numthreads(256, 1, 1)] void main(uint i : SV_GroupIndex) {
    part[0][i] = x.Load(4 * i);
    uint from = 0;
    for (uint step = 1; step < 256; step <<= 1) {
        GroupMemoryBarrierWithGroupSync();
        part[1 - from][i] = part[from][i] + (i >= step ? part[from][i - step] : 0);
        from = 1 - from;
    }
    sums.Store(4 * i, part[from][i]);
}"""
    buffers = {"t0": raw(x), "u0": raw(zeros(256))}
    expected = {"u0": Expected(np.cumsum(x, dtype=np.uint32))}
    return Case("prefix_sum", source, buffers, expected=expected)


@classic
def bitonic_sort(wave: int) -> Case:
    x = floats("sort", 512)
    source = """
RWStructuredBuffer<float> x : register(u0);
groupshared float s[512];
[numthreads(256, 1, 1)] void main(uint i : SV_GroupIndex) {
    s[i] = x[i];
    s[i + 256] = x[i + 256];
    for (uint size = 2; size <= 512; size <<= 1)
        for (uint step = size >> 1; step > 0; step >>= 1) {
            GroupMemoryBarrierWithGroupSync();
            uint a = 2 * i - (i & (step - 1)), b = a + step;
            float low = s[a], high = s[b];
            if ((low > high) == ((a & size) == 0)) { s[a] = high; s[b] = low; }
        }
    GroupMemoryBarrierWithGroupSync();
    x[i] = s[i];
    x[i + 256] = s[i + 256];
}"""
    return Case("bitonic_sort", source, {"u0": structured(x)}, expected={"u0": Expected(np.sort(x))})


@classic
def histogram(wave: int) -> Case:
    x = draw("histogram").integers(0, 256, 4000, np.uint8) & draw("mask").integers(0, 256, 4000, np.uint8)
    source = """
ByteAddressBuffer bytes : register(t0);
RWStructuredBuffer<uint> counts : register(u0);
groupshared uint part[256];
[numthreads(128, 1, 1)] void main(uint3 id : SV_DispatchThreadID, uint i : SV_GroupIndex) {
    part[i] = 0;
    part[i + 128] = 0;
    GroupMemoryBarrierWithGroupSync();
    uint size;
    bytes.GetDimensions(size);
    for (uint at = 4 * id.x; at < size; at += 4 * 128 * 2) {
        uint four = bytes.Load(at);
        for (uint k = 0; k < 4; ++k) InterlockedAdd(part[four >> 8 * k & 255], 1);
    }
    GroupMemoryBarrierWithGroupSync();
    InterlockedAdd(counts[i], part[i]);
    InterlockedAdd(counts[i + 128], part[i + 128]);
}"""
    buffers = {"t0": raw(x), "u0": structured(zeros(256))}
    expected = {"u0": Expected(np.bincount(x, minlength=256).astype(np.uint32))}
    return Case("histogram", source, buffers, (2, 1, 1), expected=expected)


def matrix_product(name: str, dtype: Any, hlsl: str, target: str, *arguments: str) -> Case:
    """A product of 48 x 64 by 64 x 32, in tiles of 16 by 16; sums in the order of the rows."""
    a, b = floats("a", 48, 64).astype(dtype), floats("b", 64, 32).astype(dtype)
    source = f"""
StructuredBuffer<{hlsl}> a : register(t0), b : register(t1);
RWStructuredBuffer<{hlsl}> c : register(u0);
groupshared {hlsl} tileA[16][16], tileB[16][16];
[numthreads(16, 16, 1)] void main(uint3 id : SV_DispatchThreadID, uint3 at : SV_GroupThreadID) {{
    {hlsl} sum = 0;
    for (uint k = 0; k < 64; k += 16) {{
        tileA[at.y][at.x] = a[id.y * 64 + k + at.x];
        tileB[at.y][at.x] = b[(k + at.y) * 32 + id.x];
        GroupMemoryBarrierWithGroupSync();
        for (uint i = 0; i < 16; ++i) {{
            precise {hlsl} product = tileA[at.y][i] * tileB[i][at.x];
            precise {hlsl} next = sum + product;
            sum = next;
        }}
        GroupMemoryBarrierWithGroupSync();
    }}
    c[id.y * 32 + id.x] = sum;
}}"""
    sums = np.zeros((48, 32), dtype)
    for k in range(64):
        sums = sums + a[:, k : k + 1] * b[k]
    buffers = {"t0": structured(a), "t1": structured(b), "u0": structured(zeros(48 * 32, dtype))}
    return Case(name, source, buffers, (2, 3, 1), "main", target, arguments, {"u0": Expected(sums)})


@classic
def matrix_product_float(wave: int) -> Case:
    return matrix_product("matrix_product_float", np.float32, "float", "cs_6_0")


@classic
def matrix_product_half(wave: int) -> Case:
    return matrix_product("matrix_product_half", np.float16, "float16_t", "cs_6_2", "-enable-16bit-types")


@classic
def matrix_product_double(wave: int) -> Case:
    return matrix_product("matrix_product_double", np.float64, "double", "cs_6_0")


@classic
def transpose(wave: int) -> Case:
    x = floats("transpose", 40, 72)
    source = """
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u0);
groupshared float tile[8][9];
[numthreads(8, 8, 1)] void main(uint3 at : SV_GroupThreadID, uint3 group : SV_GroupID) {
    tile[at.y][at.x] = x[(group.y * 8 + at.y) * 72 + group.x * 8 + at.x];
    GroupMemoryBarrierWithGroupSync();
    y[(group.x * 8 + at.y) * 40 + group.y * 8 + at.x] = tile[at.x][at.y];
}"""
    buffers = {"t0": structured(x), "u0": structured(zeros(x.size, np.float32))}
    return Case("transpose", source, buffers, (9, 5, 1), expected={"u0": Expected(np.ascontiguousarray(x.T))})


@classic
def stencil(wave: int) -> Case:
    x = floats("stencil", 20, 30)
    source = """
Buffer<float> x : register(t0);
RWBuffer<float> y : register(u0);
float at(int2 p) { return all(p >= 0) && all(p < int2(30, 20)) ? x[p.y * 30 + p.x] : 0; }
[numthreads(8, 4, 1)] void main(int3 id : SV_DispatchThreadID) {
    if (id.x >= 30 || id.y >= 20) return;
    precise float sum = at(id.xy);
    const int2 steps[4] = { int2(1, 0), int2(-1, 0), int2(0, 1), int2(0, -1) };
    [loop] for (int k = 0; k < 4; ++k) sum += at(id.xy + steps[k]) * 0.25;
    y[id.y * 30 + id.x] = sum;
}"""
    around = np.pad(x, 1)
    quarter = np.float32(0.25)
    sums = x + around[1:-1, 2:] * quarter
    sums = sums + around[1:-1, :-2] * quarter
    sums = sums + around[2:, 1:-1] * quarter
    sums = sums + around[:-2, 1:-1] * quarter
    buffers = {"t0": typed(x, R32_FLOAT), "u0": typed(zeros(600, np.float32), R32_FLOAT)}
    return Case("stencil", source, buffers, (4, 5, 1), expected={"u0": Expected(sums)})


def image_to_tensor(name: str, element: str, number: str, format: int) -> Case:
    pixels = draw("image").integers(0, 256, (12, 20, 4), np.uint8)
    source = f"""
cbuffer C : register(b0) {{ float3 mean; uint width; float3 scale; uint height; }};
Buffer<{element}> image : register(t0);
RWStructuredBuffer<float> tensor : register(u0);
[numthreads(8, 8, 1)] void main(uint3 id : SV_DispatchThreadID) {{
    if (id.x >= width || id.y >= height) return;
    precise float3 color = {number};
    precise float3 value = (color - mean) * scale;
    for (uint c = 0; c < 3; ++c) tensor[(c * height + id.y) * width + id.x] = value[c];
}}"""
    mean, scale = np.float32([0.485, 0.456, 0.406]), np.float32([4.4, 4.5, 4.3])
    color = pixels[..., :3].astype(np.float32) / np.float32(255)
    tensor = np.ascontiguousarray(((color - mean) * scale).transpose(2, 0, 1))
    constants = packed(mean, np.uint32(20), scale, np.uint32(12))
    buffers = {
        "b0": cbuffer(constants),
        "t0": typed(pixels, format),
        "u0": structured(zeros(720, np.float32)),
    }
    expected = {"u0": Expected(tensor, absolute=1e-6)}  # a channel of UNORM, and x / 255
    return Case(name, source, buffers, (3, 2, 1), expected=expected)


@classic
def image_to_tensor_unorm(wave: int) -> Case:
    number = "image[id.y * width + id.x].rgb"
    return image_to_tensor("image_to_tensor_unorm", "float4", number, R8G8B8A8_UNORM)


@classic
def image_to_tensor_uint(wave: int) -> Case:
    number = "float3(image[id.y * width + id.x].rgb) / 255"
    return image_to_tensor("image_to_tensor_uint", "uint4", number, R8G8B8A8_UINT)


@classic
def arg_max(wave: int) -> Case:
    x = np.round(floats("arg_max", 3, 300), 1)  # has ties; the first wins
    source = """
StructuredBuffer<float> x : register(t0);
RWBuffer<uint> place : register(u0);
groupshared float best[64];
groupshared uint where[64];
[numthreads(64, 1, 1)] void main(uint i : SV_GroupIndex, uint3 group : SV_GroupID) {
    float most = x[group.x * 300 + i];
    uint at = i;
    for (uint k = i + 64; k < 300; k += 64) {
        float value = x[group.x * 300 + k];
        if (value > most) { most = value; at = k; }
    }
    best[i] = most;
    where[i] = at;
    GroupMemoryBarrierWithGroupSync();
    for (uint step = 32; step; step >>= 1) {
        if (i < step) {
            bool same = best[i + step] == best[i];
            if (best[i + step] > best[i] || (same && where[i + step] < where[i])) {
                best[i] = best[i + step];
                where[i] = where[i + step];
            }
        }
        GroupMemoryBarrierWithGroupSync();
    }
    if (i == 0) place[group.x] = where[0];
}"""
    buffers = {"t0": structured(x), "u0": typed(zeros(3), R32_UINT)}
    expected = {"u0": Expected(x.argmax(1).astype(np.uint32))}
    return Case("arg_max", source, buffers, (3, 1, 1), expected=expected)


@classic
def byte_search(wave: int) -> Case:
    text = b"the cat sat on the mat; that other cat ate the rat at the gate " * 5
    text += bytes(-len(text) % 4)
    source = """
ByteAddressBuffer text : register(t0);
ByteAddressBuffer word : register(t1);
cbuffer C : register(b0) { uint length; };
RWByteAddressBuffer found : register(u0); // how often; the first place; the last; then all of them
uint letter(ByteAddressBuffer from, uint at) { return from.Load(at & ~3u) >> 8 * (at & 3) & 255; }
[numthreads(32, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    uint size;
    text.GetDimensions(size);
    if (id.x + length > size) return;
    for (uint k = 0; k < length; ++k)
        if (letter(text, id.x + k) != letter(word, k)) return;
    uint place;
    found.InterlockedAdd(0, 1, place);
    found.InterlockedMin(4, id.x);
    found.InterlockedMax(8, id.x);
    found.Store(12 + 4 * place, id.x);
}"""
    places = [at for at in range(len(text)) if text.startswith(b"at", at)]
    first = np.array([len(places), places[0], places[-1]], np.uint32)
    buffers = {
        "t0": raw(text),
        "t1": raw(b"at  "),
        "b0": cbuffer(packed(np.uint32(2))),
        "u0": raw(np.array([0, 0xFFFFFFFF, 0] + [0] * len(places), np.uint32)),
    }
    groups = (-(-len(text) // 32), 1, 1)
    rows = np.sort(np.concatenate([first, np.array(places, np.uint32)]))
    expected = {"u0": Expected(rows, unordered=True)}
    return Case("byte_search", source, buffers, groups, expected=expected)


@classic
def mandelbrot(wave: int) -> Case:
    source = """
RWStructuredBuffer<uint> steps : register(u0);
cbuffer C : register(b0) { float2 corner, size; };
[numthreads(8, 8, 1)] void main(uint3 id : SV_DispatchThreadID) {
    precise float2 c = corner + size * float2(id.xy), z = 0;
    uint n = 0;
    while (n < 100) {
        precise float2 square = z * z;
        precise float far = square.x + square.y;
        if (far > 4) break;
        precise float2 next = float2(square.x - square.y, (z.x + z.x) * z.y) + c;
        z = next;
        ++n;
    }
    steps[id.y * 32 + id.x] = n;
}"""
    corner, size = np.float32([-2, -1.2]), np.float32([0.09, 0.1])
    x = corner[0] + size[0] * np.arange(32, dtype=np.float32)
    y = corner[1] + size[1] * np.arange(24, dtype=np.float32)
    cx, cy = np.broadcast_to(x, (24, 32)), np.broadcast_to(y[:, None], (24, 32))
    zx, zy, counts = np.zeros_like(cx), np.zeros_like(cx), np.zeros(cx.shape, np.uint32)
    inside = np.ones(cx.shape, bool)
    for _ in range(100):
        inside = inside & ~(zx * zx + zy * zy > 4)
        nx, ny = zx * zx - zy * zy + cx, (zx + zx) * zy + cy
        zx, zy = np.where(inside, nx, zx), np.where(inside, ny, zy)
        counts += inside
    buffers = {"b0": cbuffer(packed(corner, size)), "u0": structured(zeros(768))}
    return Case("mandelbrot", source, buffers, (4, 3, 1), expected={"u0": Expected(counts)})


@classic
def append_consume(wave: int) -> Case:
    x = words("append", 100, 1000)
    source = """
ConsumeStructuredBuffer<uint> from : register(u0);
AppendStructuredBuffer<uint2> even : register(u1);
RWStructuredBuffer<uint> odd : register(u2);
[numthreads(20, 1, 1)] void main() {
    uint value = from.Consume();
    if (value & 1) odd[odd.IncrementCounter()] = value;
    else even.Append(uint2(value, value * value));
}"""
    even, odd = x[x % 2 == 0], x[x % 2 == 1]
    buffers = {
        "u0": structured(x, counter=100),
        "u1": structured(zeros(200), 8, counter=0),
        "u2": structured(zeros(100), counter=0),
    }
    expected = {
        "u0.counter": Expected(zeros(1)),
        "u1.counter": Expected(np.array([len(even)], np.uint32)),
        "u2.counter": Expected(np.array([len(odd)], np.uint32)),
        "u1": Expected(np.stack([even, even * even], 1), unordered=True),
        "u2": Expected(odd, unordered=True),
    }
    return Case("append_consume", source, buffers, (5, 1, 1), expected=expected)


@classic
def indirect_arguments(wave: int) -> Case:
    source = """
ByteAddressBuffer counts : register(t0);
struct Arguments { uint number; uint3 groups; };
RWStructuredBuffer<Arguments> arguments : register(u0);
[numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {
    Arguments made;
    made.number = i;
    made.groups = uint3((counts.Load(4 * i) + 63) / 64, 1, 1);
    arguments[i] = made;
}"""
    counts = words("indirect", 8, 5000)
    rows = np.stack([np.arange(8, dtype=np.uint32), (counts + 63) // 64, *np.ones((2, 8), np.uint32)], 1)
    buffers = {"t0": raw(counts), "u0": structured(zeros(32), 16)}
    return Case("indirect_arguments", source, buffers, expected={"u0": Expected(rows)})


@classic
def thread_numbers(wave: int) -> Case:
    source = """
struct Numbers { uint3 thread, inGroup, group; uint index; };
RWStructuredBuffer<Numbers> numbers : register(u0);
[numthreads(3, 4, 2)] void main(uint3 id : SV_DispatchThreadID, uint3 at : SV_GroupThreadID,
                                uint3 group : SV_GroupID, uint i : SV_GroupIndex) {
    Numbers made = { id, at, group, i };
    numbers[i + 24 * (group.x + 2 * (group.y + 3 * group.z))] = made;
}"""
    z, y, x, k, j, i = (part.ravel() for part in np.indices((2, 3, 2, 2, 4, 3)))
    columns = [3 * x + i, 4 * y + j, 2 * z + k, i, j, k, x, y, z, i + 3 * (j + 4 * k)]
    rows = np.stack(columns, 1).astype(np.uint32)
    buffers = {"u0": structured(zeros(rows.size), 40)}
    return Case("thread_numbers", source, buffers, (2, 3, 2), expected={"u0": Expected(rows)})


@classic
def out_of_bounds(wave: int) -> Case:
    """Reads of views give 0 for each component that is outside; writes there are dropped."""
    source = """
ByteAddressBuffer bytes : register(t0);
StructuredBuffer<uint2> pairs : register(t1);
RWByteAddressBuffer read : register(u0);
RWStructuredBuffer<uint> written : register(u1);
[numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {
    read.Store4(16 * i, bytes.Load4(4 * i));
    read.Store2(128 + 8 * i, pairs[i]);
    written[3 * i] = i + 1;
}"""
    data, pairs = words("outside", 6), words("pairs", 10)
    padded = np.concatenate([data, zeros(16)])
    reads = np.concatenate([np.stack([padded[i : i + 4] for i in range(8)]).ravel(), pairs, zeros(6)])
    writes = zeros(10)
    writes[::3] = [1, 2, 3, 4]
    buffers = {
        "t0": raw(data),
        "t1": structured(pairs, 8),
        "u0": raw(zeros(48)),
        "u1": structured(zeros(10)),
    }
    expected = {"u0": Expected(reads), "u1": Expected(writes)}
    return Case("out_of_bounds", source, buffers, expected=expected)


@classic
def constants_and_structs(wave: int) -> Case:
    """How a constant buffer is packed, and a struct is laid out; matrices are column-major in both."""
    source = """
struct Mixed { float a; uint3 b; float2x3 c; bool d; };
cbuffer C : register(b0) { float p; float3 q; float r[2]; float s; float2x2 t; };
StructuredBuffer<Mixed> x : register(t0);
RWStructuredBuffer<Mixed> y : register(u0);
RWStructuredBuffer<float> z : register(u1);
[numthreads(4, 1, 1)] void main(uint i : SV_GroupIndex) {
    Mixed m = x[i];
    m.a = -m.a;
    m.b = m.b.zxy;
    m.c[1] = m.c[0] + m.c[1];
    m.d = !m.d;
    y[i] = m;
    const float constants[11] = { p, q, r[0], r[1], s, t[0][0], t[0][1], t[1][0], t[1][1] };
    z[i] = constants[i];
    z[i + 4] = constants[i + 4];
    if (i < 3) z[i + 8] = constants[i + 8];
}"""
    numbers = floats("constants", 24)  # rows of four
    at = [0, 1, 2, 3, 4, 8, 9, 12, 16, 13, 17]
    dtype = np.dtype([("a", "f4"), ("b", "u4", 3), ("c", "f4", (3, 2)), ("d", "u4")])
    mixed = np.frombuffer(words("mixed", 44, 1 << 30).tobytes(), dtype).copy()
    mixed["d"] = [0, 1, 2, 3]
    made = mixed.copy()
    made["a"] = -mixed["a"]
    made["b"] = mixed["b"][:, [2, 0, 1]]
    made["c"][:, :, 1] = mixed["c"][:, :, 0] + mixed["c"][:, :, 1]
    made["d"] = [1, 0, 0, 0]
    buffers = {
        "b0": cbuffer(numbers),
        "t0": structured(mixed),
        "u0": structured(np.zeros_like(mixed)),
        "u1": structured(zeros(11, np.float32)),
    }
    expected = {"u0": Expected(made.view(np.uint32)), "u1": Expected(numbers[at])}
    return Case("constants_and_structs", source, buffers, expected=expected)


@classic
def wave_operations(wave: int) -> Case:
    """Sums, prefixes and ballots of the lanes that take a branch; a compaction by them."""
    source = """
StructuredBuffer<uint> x : register(t0);
RWStructuredBuffer<uint4> y : register(u0);
RWStructuredBuffer<uint> kept : register(u1);
RWStructuredBuffer<uint> count : register(u2);
[numthreads(64, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {
    uint value = x[id.x];
    uint4 made = { WaveGetLaneIndex(), WaveActiveSum(value), WavePrefixSum(value), WaveReadLaneFirst(value) };
    if (value & 1) {
        made.w = WaveActiveBallot(value & 2).x;
        uint place = WavePrefixCountBits(true);
        uint all = WaveActiveCountBits(true), begin = 0;
        if (WaveIsFirstLane()) InterlockedAdd(count[0], all, begin);
        kept[WaveReadLaneFirst(begin) + place] = value;
    }
    y[id.x] = made;
}"""
    x = words("waves", 192, 1000)
    lanes = x.reshape(-1, wave)
    sums = np.broadcast_to(lanes.sum(1, keepdims=True), lanes.shape)
    prefix = np.cumsum(lanes, 1) - lanes
    bit = np.where(np.arange(wave) < 32, 1 << np.arange(wave) % 32, 0)
    bits = ((lanes & 3 == 3) * bit).sum(1, keepdims=True)
    last = np.where(lanes & 1, bits, lanes[:, :1])
    number = np.broadcast_to(np.arange(wave), lanes.shape)
    rows = np.stack([number, sums, prefix, last], -1).astype(np.uint32)
    odd = x[x & 1 == 1]
    buffers = {
        "t0": structured(x),
        "u0": structured(zeros(768), 16),
        "u1": structured(zeros(192)),
        "u2": structured(zeros(1)),
    }
    expected = {
        "u0": Expected(rows),
        "u1": Expected(odd, unordered=True),
        "u2": Expected(np.array([len(odd)], np.uint32)),
    }
    return Case("wave_operations", source, buffers, (3, 1, 1), expected=expected)


@classic
def hash_64(wave: int) -> Case:
    """FNV-1a in 64 bits of strings of different lengths."""
    source = """
ByteAddressBuffer text : register(t0);
StructuredBuffer<uint2> pieces : register(t1);
RWStructuredBuffer<uint64_t> hashes : register(u0);
[numthreads(32, 1, 1)] void main(uint i : SV_GroupIndex) {
    uint64_t hash = 0xcbf29ce484222325ull;
    for (uint k = pieces[i].x; k < pieces[i].y; ++k) {
        hash ^= text.Load(k & ~3u) >> 8 * (k & 3) & 255;
        hash *= 0x100000001b3ull;
    }
    hashes[i] = hash;
}"""
    text = draw("hash").integers(0, 256, 400, np.uint8)
    pieces = np.sort(words("pieces", 64, 400).reshape(32, 2), 1)
    hashes = np.zeros(32, np.uint64)
    for i, (begin, end) in enumerate(pieces):
        value = 0xCBF29CE484222325
        for byte in text[begin:end]:
            value = (value ^ int(byte)) * 0x100000001B3 % (1 << 64)
        hashes[i] = value
    buffers = {"t0": raw(text), "t1": structured(pieces, 8), "u0": structured(zeros(32, np.uint64))}
    return Case("hash_64", source, buffers, expected={"u0": Expected(hashes)})


@classic
def softmax(wave: int) -> Case:
    source = """
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float> y : register(u0);
groupshared float part[64];
[numthreads(64, 1, 1)] void main(uint i : SV_GroupIndex, uint3 group : SV_GroupID) {
    float value = x[group.x * 64 + i];
    part[i] = value;
    GroupMemoryBarrierWithGroupSync();
    for (uint step = 32; step; step >>= 1) {
        if (i < step) part[i] = max(part[i], part[i + step]);
        GroupMemoryBarrierWithGroupSync();
    }
    float power = exp(value - part[0]);
    GroupMemoryBarrierWithGroupSync();
    part[i] = power;
    GroupMemoryBarrierWithGroupSync();
    for (uint half_ = 32; half_; half_ >>= 1) {
        if (i < half_) part[i] += part[i + half_];
        GroupMemoryBarrierWithGroupSync();
    }
    y[group.x * 64 + i] = power / part[0];
}"""
    x = 5 * floats("softmax", 2, 64)
    power = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    result = (power / power.sum(1, keepdims=True)).astype(np.float32)
    buffers = {"t0": structured(x), "u0": structured(zeros(128, np.float32))}
    expected = {"u0": Expected(result, ulps=80)}
    return Case("softmax", source, buffers, (2, 1, 1), expected=expected)
