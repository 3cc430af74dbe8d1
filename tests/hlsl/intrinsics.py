"""Functions and operations of HLSL, each with what NumPy says of it: those that the classics do not use.

Arguments are loaded, as DXC computes with constants itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cases import R32_SINT, R32_UINT, Case, Expected, raw, structured, typed
from .classics import draw, floats, words, zeros

__all__ = ["INTRINSICS"]

INTRINSICS: dict[str, Callable[[int], Case]] = {}
R32G32_UINT = 17
Rows = Sequence[tuple[str, Callable[..., Any]]]
NARROW = ("-enable-16bit-types", "-Wno-everything")


def intrinsic(make: Callable[[int], Case]) -> Callable[[int], Case]:
    INTRINSICS[make.__name__] = make
    return make


def table(
    name: str,
    rows: Rows,
    inputs: Sequence[NDArray[Any]],
    given: str,
    result: str,
    dtype: Any,
    ulps: int = 0,
    **more: Any,
) -> Case:
    """An expression of ``a``, ``b`` and ``c`` in each row, and what it is; a thread for each element."""
    letters, count = "abc"[: len(inputs)], len(inputs[0])
    lines = [f"StructuredBuffer<{given}> in_{x} : register(t{n});" for n, x in enumerate(letters)]
    lines += [
        f"RWStructuredBuffer<{result}> o : register(u0);",
        f"[numthreads({count}, 1, 1)] void main(uint i : SV_GroupIndex) {{",
        *(f"    const {given} {x} = in_{x}[i];" for x in letters),
        *(f"    o[i * {len(rows)} + {at}] = {text};" for at, (text, _) in enumerate(rows)),
        "}",
    ]
    with np.errstate(all="ignore"):
        values = [np.asarray(function(*inputs)).astype(dtype) for _, function in rows]
    expected = np.stack(values, 1)
    buffers = {f"t{n}": structured(each) for n, each in enumerate(inputs)}
    buffers["u0"] = structured(np.zeros_like(expected))
    return Case(
        name, "\n".join(lines), buffers, expected={"u0": Expected(expected.ravel(), ulps=ulps)}, **more
    )


def numbers(name: str) -> NDArray[np.float32]:
    special = np.float32([0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 0.5, 1.5, 2.5, -0.5, -1.5, 1e20, -3e9, 1])
    return np.concatenate([special, 4 * floats(name, 32 - len(special))])


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(*(value.astype(np.float64) for value in values))


# --- floats ---


@intrinsic
def functions_that_are_exact(wave: int) -> Case:
    rows: Rows = [
        ("floor(a)", lambda a, b, c: np.floor(a)),
        ("ceil(a)", lambda a, b, c: np.ceil(a)),
        ("trunc(a)", lambda a, b, c: np.trunc(a)),
        ("round(a)", lambda a, b, c: np.rint(a)),
        ("abs(a)", lambda a, b, c: np.abs(a)),
        ("sqrt(abs(a))", lambda a, b, c: np.sqrt(np.abs(a))),
        ("frac(a)", lambda a, b, c: a - np.floor(a)),
        ("saturate(abs(b))", lambda a, b, c: np.fmin(np.abs(b), 1)),
        ("min(b, c)", lambda a, b, c: np.minimum(b, c)),
        ("isnan(a)", lambda a, b, c: np.isnan(a)),
        ("isinf(a)", lambda a, b, c: np.isinf(a)),
        ("isfinite(a)", lambda a, b, c: np.isfinite(a)),
        ("f16tof32(f32tof16(b))", lambda a, b, c: b.astype(np.float16).astype(np.float32)),
        ("mad(a, b, c)", lambda a, b, c: a * b + c),
        ("dot(float2(b, c), float2(c, b))", lambda a, b, c: b * c + c * b),
        ("dot(float3(b, c, 3), float3(b, b, c))", lambda a, b, c: b * b + c * b + 3 * c),
        (
            "dot(float4(b, c, b, 5), float4(c, c, 7, c))",
            lambda a, b, c: ((b * c + c * c) + b * np.float32(7)) + np.float32(5) * c,
        ),
    ]
    inputs = [numbers("exact"), floats("exact b", 32), floats("exact c", 32)]
    return table("functions_that_are_exact", rows, inputs, "float", "float", np.float32, arguments=("-Gis",))


NEAR: Rows = [
    ("sin(a)", in_double(np.sin)),
    ("cos(a)", in_double(np.cos)),
    ("tan(a)", in_double(np.tan)),
    ("asin(a)", in_double(np.arcsin)),
    ("acos(a)", in_double(np.arccos)),
    ("atan(a)", in_double(np.arctan)),
    ("sinh(a)", in_double(np.sinh)),
    ("cosh(a)", in_double(np.cosh)),
    ("tanh(a)", in_double(np.tanh)),
    ("exp2(a)", in_double(np.exp2)),
    ("log2(a)", in_double(np.log2)),
]


@intrinsic
def functions_of_float(wave: int) -> Case:
    rsqrt = ("rsqrt(a)", lambda a: np.float32(1) / np.sqrt(a))
    near = [*NEAR, rsqrt]
    inputs = [numbers("near")]
    return table("functions_of_float", near, inputs, "float", "float", np.float32, ulps=1, lavapipe=False)


@intrinsic
def functions_of_half(wave: int) -> Case:
    rows = [(text, lambda a, f=function: f(a).astype(np.float32)) for text, function in NEAR]
    with np.errstate(over="ignore"):
        inputs = [numbers("half").astype(np.float16)]
    more: dict[str, Any] = {"target": "cs_6_2", "arguments": NARROW, "lavapipe": False}
    return table("functions_of_half", rows, inputs, "float16_t", "float16_t", np.float16, ulps=1, **more)


@intrinsic
def functions_of_double(wave: int) -> Case:
    rows: Rows = [
        ("fma(a, b, c)", lambda a, b, c: a * b + c),  # the products of small whole numbers are exact
        ("asdouble(asuint(float(b)), asuint(float(c)))", made_double),
        ("double(float(a * 1e30))", lambda a, b, c: (a * 1e30).astype(np.float32)),
        ("double(int(a))", lambda a, b, c: np.trunc(a)),
    ]
    inputs = [np.trunc(100 * floats(f"double {x}", 16)).astype(np.float64) for x in "abc"]
    return table("functions_of_double", rows, inputs, "double", "double", np.float64, target="cs_6_2")


def made_double(a: Any, b: Any, c: Any) -> Any:
    low, high = (value.astype(np.float32).view(np.uint32).astype(np.uint64) for value in (b, c))
    return (high << np.uint64(32) | low).view(np.float64)


# --- integers ---


def sum_of_differences(a: Any, b: Any, c: Any) -> Any:
    """msad4: bytes of the reference that are 0 do not count; here of the first of four places."""
    reference, source = a.view(np.uint8).reshape(-1, 4).astype(int), b.view(np.uint8).reshape(-1, 4)
    return c + np.where(reference, np.abs(reference - source), 0).sum(1)


def dot_of_bytes(kind: Any) -> Callable[..., Any]:
    def dot(a: Any, b: Any, c: Any) -> Any:
        left, right = (value.view(kind).reshape(-1, 4).astype(np.int64) for value in (a, b))
        return (left * right).sum(1) + c

    return dot


def packed(low: int, high: int, clamp: bool) -> Callable[..., Any]:
    """Four bytes of ``a``, ``b``, ``c`` and ``a``, taken as int."""

    def pack(a: Any, b: Any, c: Any) -> Any:
        columns = np.stack([a, b, c, a], 1).view(np.int32)
        columns = np.clip(columns, low, high) if clamp else columns
        return np.ascontiguousarray(columns.astype(np.uint8)).view(np.uint32)[:, 0]

    return pack


def each_bit_length(values: Any) -> Any:
    return np.array([int(value).bit_length() - 1 for value in values])


@intrinsic
def functions_of_integers(wave: int) -> Case:
    rows: Rows = [
        ("countbits(a)", lambda a, b, c: [int(value).bit_count() for value in a]),
        ("reversebits(a)", lambda a, b, c: [int(f"{value:032b}"[::-1], 2) for value in a]),
        ("firstbithigh(a)", lambda a, b, c: each_bit_length(a)),
        ("firstbithigh(int(a))", lambda a, b, c: each_bit_length(np.where(a >> 31, ~a, a))),
        ("firstbitlow(a)", lambda a, b, c: each_bit_length(a & -a)),
        ("mad(a, b, c)", lambda a, b, c: a * b + c),
        ("uint(mad(int(a), int(b), int(c)))", lambda a, b, c: a * b + c),
        ("max(int(a), int(b))", lambda a, b, c: np.maximum(a.view(np.int32), b.view(np.int32))),
        ("min(int(a), int(b))", lambda a, b, c: np.minimum(a.view(np.int32), b.view(np.int32))),
        ("max(a, b)", lambda a, b, c: np.maximum(a, b)),
        ("min(a, b)", lambda a, b, c: np.minimum(a, b)),
        ("clamp(a, b, c)", lambda a, b, c: np.minimum(np.maximum(a, b), c)),
        (
            "uint(clamp(int(a), int(b), int(c)))",
            lambda a, b, c: np.minimum(np.maximum(a.view("i4"), b.view("i4")), c.view("i4")),
        ),
        ("msad4(a, uint2(b, a), uint4(c, 0, 0, 0)).x", sum_of_differences),
        ("dot4add_u8packed(a, b, c)", dot_of_bytes(np.uint8)),
        ("dot4add_i8packed(a, b, c)", dot_of_bytes(np.int8)),
        ("uint(pack_u8(uint4(a, b, c, a)))", packed(0, 255, False)),
        ("uint(pack_s8(int4(a, b, c, a)))", packed(0, 255, False)),
        ("uint(pack_clamp_u8(int4(a, b, c, a)))", packed(0, 255, True)),
        ("uint(pack_clamp_s8(int4(a, b, c, a)))", packed(-128, 127, True)),
        ("unpack_u8u32(uint8_t4_packed(a)).y", lambda a, b, c: a >> 8 & 255),
        ("unpack_s8s32(int8_t4_packed(a)).w", lambda a, b, c: a.view(np.int32) >> 24),
        (
            "AddUint64(uint2(a, b), uint2(c, a)).y",
            lambda a, b, c: b + a + (a.astype(np.uint64) + c >> np.uint64(32)).astype(np.uint32),
        ),
    ]
    inputs = [words("integers a", 32), words("integers b", 32), words("integers c", 32)]
    inputs[0][:4] = [0, 1, 0x80000000, 0xFFFFFFFF]
    for each in inputs:
        each[16:] = np.int32(each[16:].view(np.int32) >> 22).view(np.uint32)  # some that bytes nearly hold
    inputs[0][20:24] &= 0xFF00FFFF
    # DXC has no SPIR-V for packed bytes.
    return table(
        "functions_of_integers", rows, inputs, "uint", "uint", np.uint32, target="cs_6_6", lavapipe=False
    )


@intrinsic
def bits_of_16(wave: int) -> Case:
    rows: Rows = [
        ("asuint16(abs(asfloat16(a)))", lambda a, b: a & 0x7FFF),
        ("uint16_t(countbits(a))", lambda a, b: [int(value).bit_count() for value in a]),
        ("reversebits(a)", lambda a, b: [int(f"{value:016b}"[::-1], 2) for value in a]),
        ("uint16_t(firstbithigh(a))", lambda a, b: each_bit_length(a)),
        ("uint16_t(firstbitlow(a))", lambda a, b: each_bit_length(a.astype(int) & -a.astype(int))),
        (
            "uint16_t(max(int16_t(a), int16_t(b)))",
            lambda a, b: np.maximum(a.view(np.int16), b.view(np.int16)),
        ),
        ("asuint16(saturate(asfloat16(a)))", saturated),
    ]
    inputs = [words("bits a", 32, 1 << 16).astype(np.uint16), words("bits b", 32, 1 << 16).astype(np.uint16)]
    inputs[0][:3] = [0, 1, 0xFFFF]
    more: dict[str, Any] = {"target": "cs_6_2", "arguments": NARROW, "lavapipe": False}
    return table("bits_of_16", rows, inputs, "uint16_t", "uint16_t", np.uint16, **more)


def saturated(a: Any, b: Any) -> Any:
    half = a.view(np.float16)
    return np.where(half > 0, np.fmin(half, np.float16(1)), np.float16(0)).astype(np.float16).view(np.uint16)


@intrinsic
def dot_of_halves(wave: int) -> Case:
    """Products of halves are exact in float, and so are sums of two of small numbers."""
    a, c = np.float16(8 * floats("halves", 2, 32)), np.trunc(100 * floats("halves c", 32))
    source = """
StructuredBuffer<float16_t2> a : register(t0);
StructuredBuffer<float> c : register(t1);
RWStructuredBuffer<float> o : register(u0);
[numthreads(32, 1, 1)] void main(uint i : SV_GroupIndex) { o[i] = dot2add(a[i], a[31 - i], c[i]); }"""
    products = a.astype(np.float32) * a.astype(np.float32)[:, ::-1]
    pairs = np.ascontiguousarray(a.T)
    buffers = {"t0": structured(pairs, 4), "t1": structured(c), "u0": structured(zeros(32, np.float32))}
    expected = {"u0": Expected(products[0] + products[1] + c, ulps=2, absolute=1e-4)}
    return Case(
        "dot_of_halves", source, buffers, (1, 1, 1), "main", "cs_6_4", NARROW, expected, lavapipe=False
    )


@intrinsic
def access_of_mapped_memory(wave: int) -> Case:
    x = words("mapped", 32)
    source = """
StructuredBuffer<uint> x : register(t0);
RWStructuredBuffer<uint> o : register(u0);
[numthreads(32, 1, 1)] void main(uint i : SV_GroupIndex) {
    uint status, value = x.Load(i, status);
    o[i] = CheckAccessFullyMapped(status) ? value : 0;
}"""
    buffers = {"t0": structured(x), "u0": structured(zeros(32))}
    return Case("access_of_mapped_memory", source, buffers, expected={"u0": Expected(x)}, lavapipe=False)


# --- waves ---


def in_waves(
    wave: int, active: NDArray[np.bool_], values: NDArray[Any], function: Callable[..., Any]
) -> NDArray[np.uint32]:
    """``function(values, lanes)`` of the threads of each wave that are active, a number for each of them."""
    found, threads = np.zeros(len(values), np.uint32), np.arange(len(values))
    for first in range(0, len(values), wave):
        members = threads[(threads // wave == first // wave) & active]
        if len(members):
            found[members] = function(values[members], members - first)
    return found


def matched(word: int) -> Callable[..., Any]:
    def match(values: Any, lanes: Any) -> list[int]:
        masks = [sum(1 << int(lane) for lane in lanes[values == value]) for value in values]
        return [mask >> 32 * word & 0xFFFFFFFF for mask in masks]

    return match


def before(combine: Callable[[Any, Any], Any], start: int) -> Callable[..., Any]:
    """Of the lanes before each that have the same lowest three bits."""

    def prefix(values: Any, lanes: Any) -> list[int]:
        found = []
        for at, value in enumerate(values):
            total = start
            for other in values[:at][(values[:at] & 7) == (value & 7)]:
                total = combine(total, int(other)) & 0xFFFFFFFF
            found.append(total)
        return found

    return prefix


@intrinsic
def waves_of_equal_lanes(wave: int) -> Case:
    """WaveMatch, and prefixes of the lanes that it finds, in a branch that not all threads take."""
    source = """
StructuredBuffer<uint> x : register(t0);
RWStructuredBuffer<uint> o : register(u0);
[numthreads(64, 1, 1)] void main(uint i : SV_GroupIndex) {
    uint value = x[i], at = 10 * i;
    if (value & 24) {
        uint4 same = WaveMatch(value & 7);
        o[at] = same.x | same.z;
        o[at + 1] = same.y | same.w;
        o[at + 2] = WaveMultiPrefixSum(value, same);
        o[at + 3] = WaveMultiPrefixProduct(value, same);
        o[at + 4] = WaveMultiPrefixBitAnd(value, same);
        o[at + 5] = WaveMultiPrefixBitOr(value, same);
        o[at + 6] = WaveMultiPrefixBitXor(value, same);
        o[at + 7] = WaveMultiPrefixCountBits(value & 32, same);
        o[at + 8] = WaveMatch(float(value & 1)).x;
        o[at + 9] = uint(WaveMultiPrefixSum(float16_t(value & 32), same));
    }
}"""
    x = words("equal lanes", 64)
    active, thirty_two = (x & 24) != 0, lambda total, value: total + (value & 32)
    columns = [
        (x & 7, matched(0)),
        (x & 7, matched(1)),
        (x, before(lambda total, value: total + value, 0)),
        (x, before(lambda total, value: total * value, 1)),
        (x, before(lambda total, value: total & value, 0xFFFFFFFF)),
        (x, before(lambda total, value: total | value, 0)),
        (x, before(lambda total, value: total ^ value, 0)),
        (x, before(lambda total, value: total + (value >> 5 & 1), 0)),
        (x & 1, matched(0)),
        (x, before(thirty_two, 0)),
    ]
    rows = np.stack([in_waves(wave, active, *column) for column in columns], 1)
    buffers = {"t0": structured(x), "u0": structured(np.zeros_like(rows))}
    return Case(
        "waves_of_equal_lanes",
        source,
        buffers,
        target="cs_6_5",
        arguments=NARROW,
        expected={"u0": Expected(rows)},
        lavapipe=False,  # DXC has no SPIR-V for them
    )


@intrinsic
def lanes_of_waves(wave: int) -> Case:
    """What each lane reads of others, and what all lanes have alike."""
    source = """
StructuredBuffer<uint> x : register(t0);
RWStructuredBuffer<uint> o : register(u0);
[numthreads(64, 1, 1)] void main(uint i : SV_GroupIndex) {
    uint value = x[i], at = 9 * i, lanes = WaveGetLaneCount();
    o[at] = WaveReadLaneAt(value, (WaveGetLaneIndex() * 3 + 1) % lanes);
    o[at + 1] = WaveReadLaneAt(value, lanes - 1);
    o[at + 2] = WaveActiveAllEqual(value) ? 1 : 2;
    o[at + 3] = WaveActiveAllEqual(i / lanes) ? 1 : 2;
    o[at + 4] = WaveActiveBitAnd(value | 0xF0F0F0F0);
    o[at + 5] = WaveActiveBitOr(value & 0x0F0F0F0F);
    o[at + 6] = WaveActiveBitXor(value);
    o[at + 7] = WaveActiveAllTrue(value & 6) ? 1 : 2;
    o[at + 8] = WaveActiveAnyTrue(value % 41 == 1) ? 1 : 2;
}"""
    x = words("lanes", 64)
    every = np.ones(64, bool)

    def all_alike(function: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda values, lanes: np.full(len(values), function(values), np.uint32)

    columns = [
        lambda values, lanes: values[(lanes * 3 + 1) % wave],
        all_alike(lambda values: values[-1]),
        all_alike(lambda values: 2),
        all_alike(lambda values: 1),
        all_alike(lambda values: np.bitwise_and.reduce(values | 0xF0F0F0F0)),
        all_alike(lambda values: np.bitwise_or.reduce(values & 0x0F0F0F0F)),
        all_alike(np.bitwise_xor.reduce),
        all_alike(lambda values: 1 if ((values & 6) != 0).all() else 2),
        all_alike(lambda values: 1 if (values % 41 == 1).any() else 2),
    ]
    rows = np.stack([in_waves(wave, every, x, column) for column in columns], 1)
    buffers = {"t0": structured(x), "u0": structured(np.zeros_like(rows))}
    return Case("lanes_of_waves", source, buffers, expected={"u0": Expected(rows)})


@intrinsic
def quads_in_a_row(wave: int) -> Case:
    """A group that is not even along y has quads of four threads in a row."""
    source = """
StructuredBuffer<uint> x : register(t0);
RWStructuredBuffer<uint> o : register(u0);
[numthreads(64, 1, 1)] void main(uint i : SV_GroupIndex) {
    uint value = x[i], at = 4 * i;
    o[at] = QuadReadAcrossX(value);
    o[at + 1] = QuadReadAcrossY(value);
    o[at + 2] = QuadReadAcrossDiagonal(value);
    o[at + 3] = QuadReadLaneAt(value, 2);
}"""
    x, i = words("quads", 64), np.arange(64)
    rows = np.stack([x[i ^ 1], x[i ^ 2], x[i ^ 3], x[i & ~3 | 2]], 1)
    buffers = {"t0": structured(x), "u0": structured(np.zeros_like(rows))}
    return Case("quads_in_a_row", source, buffers, expected={"u0": Expected(rows)})


@intrinsic
def derivatives_in_a_row(wave: int) -> Case:
    source = """
StructuredBuffer<float> x : register(t0);
RWStructuredBuffer<float4> o : register(u0);
[numthreads(64, 1, 1)] void main(uint i : SV_GroupIndex) {
    float value = x[i];
    o[i] = float4(ddx_coarse(value), ddy_coarse(value), ddx_fine(value), ddy_fine(value));
}"""
    x, i = floats("derivatives", 64), np.arange(64)
    coarse, row, column = i & ~3, i & ~1, i & ~2
    differences = [x[coarse + 1] - x[coarse], x[coarse + 2] - x[coarse], x[row + 1] - x[row]]
    rows = np.stack([*differences, x[column + 2] - x[column]], 1)
    buffers = {"t0": structured(x), "u0": structured(np.zeros_like(rows), 16)}
    expected = {"u0": Expected(rows)}
    return Case(
        "derivatives_in_a_row", source, buffers, (1, 1, 1), "main", "cs_6_6", (), expected, lavapipe=False
    )


# --- atomic operations ---

ATOMICS: dict[str, Callable[..., None]] = {
    "Add": np.add.at,
    "And": np.bitwise_and.at,
    "Or": np.bitwise_or.at,
    "Xor": np.bitwise_xor.at,
    "Min": np.minimum.at,
    "Max": np.maximum.at,
}
DECLARED = {
    "raw": "RWByteAddressBuffer m : register(u0);",
    "structured": "RWStructuredBuffer<{0}> m : register(u0);",
    "typed": "RWBuffer<{0}> m : register(u0);",
    "groupshared": "RWStructuredBuffer<{0}> m : register(u0);\ngroupshared {0} s[64];",
}


def atomics(memory: str, kind: str, dtype: Any) -> Case:
    """Each operation on eight numbers of its own, and exchanges by each thread of a number of its own.

    Typed buffers of 64 bits have elements of two components, also where they are signed.
    """
    wide, name = np.dtype(dtype).itemsize == 8, f"atomics_{memory}_{kind}"
    size, suffix = (8, "64") if wide and memory == "raw" else (np.dtype(dtype).itemsize, "")
    place = "s[{0}]" if memory == "groupshared" else "m[{0}]"
    lines = []
    for row, word in enumerate([*ATOMICS, "Exchange", "CompareExchange"]):
        own, at = row >= len(ATOMICS), f"{8 * row} + i % 8"
        more = "compared[i], value, old" if word == "CompareExchange" else "value" + ", old" * own
        where = f"64 + {64 * (word != 'Exchange')} + id" if own else at
        if own and memory == "groupshared":
            continue
        if memory == "raw":
            lines.append(f"    m.Interlocked{word}{suffix}({size} * ({where}), {more});")
        else:
            lines.append(f"    Interlocked{word}({place.format(where)}, {more});")
        if own:
            lines.append(f"    o[{64 * (word != 'Exchange')} + id] = old;")
    first = ["    for (uint k = i; k < 64; k += 32) s[k] = m[k];", "    GroupMemoryBarrierWithGroupSync();"]
    last = ["    GroupMemoryBarrierWithGroupSync();", "    for (uint n = i; n < 64; n += 32) m[n] = s[n];"]
    shared = memory == "groupshared"
    groups = 1 if shared else 2
    source = "\n".join(
        [
            f"StructuredBuffer<{kind}> x : register(t0), compared : register(t1);",
            DECLARED[memory].format(kind),
            f"RWStructuredBuffer<{kind}> o : register(u1);",
            "[numthreads(32, 1, 1)] void main(uint i : SV_GroupIndex, uint id : SV_DispatchThreadID) {",
            f"    {kind} value = x[id], old = 0;",
            *(first if shared else []),
            *lines,
            *(last if shared else []),
            "}",
        ]
    )
    numbers = draw(name).integers(0, 1 << 64, 64 * 5, np.uint64).astype(dtype)
    x, compared, held = numbers[:64], numbers[64:128], numbers[128:].copy()
    held[128:160] = compared[:32]  # of half of the threads the numbers are equal
    held[160:192] &= 0xFF
    buffers = {"t0": structured(x), "t1": structured(compared), "u1": structured(np.zeros(128, dtype))}
    formats = {"uint": R32_UINT, "int": R32_SINT, "uint64_t": R32G32_UINT, "int64_t": R32G32_UINT}
    make = {"raw": raw, "typed": lambda values: typed(values, formats[kind])}.get(memory, structured)
    buffers["u0"] = make(held)
    after, old, given = held.copy(), held[64:192].copy(), x[: 32 * groups]
    for row, function in enumerate(ATOMICS.values()):
        function(after, 8 * row + np.arange(32 * groups) % 8, given)
    after[64:128] = x
    after[128:192] = np.where(held[128:192] == compared, x, held[128:192])
    if shared:
        after[64:] = held[64:]
    expected = {"u0": Expected(after)} | ({} if shared else {"u1": Expected(old)})
    target = "cs_6_6" if wide else "cs_6_0"
    by_lavapipe = not wide or memory not in ("raw", "typed")  # DXC has no SPIR-V for those
    return Case(name, source, buffers, (groups, 1, 1), "main", target, (), expected, lavapipe=by_lavapipe)


for memory_ in DECLARED:
    for kind_, dtype_ in {
        "uint": np.uint32,
        "int": np.int32,
        "uint64_t": np.uint64,
        "int64_t": np.int64,
    }.items():
        if memory_ != "raw" or kind_ in ("uint", "uint64_t"):
            INTRINSICS[f"atomics_{memory_}_{kind_}"] = lambda wave, m=memory_, k=kind_, d=dtype_: atomics(
                m, k, d
            )
