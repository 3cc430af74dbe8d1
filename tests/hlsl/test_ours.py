"""Shaders as native code of ours: the classics, random ones, and what DXC's containers hold now and then."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from dmlemu.shaders import UnsupportedShader, native, read_container, read_module
from dmlemu.shaders.dxc import CompilerMissing, compile_hlsl
from dmlemu.shaders.operations import OPERATIONS
from dmlemu_hw.kernels import instruction_sets
from thorough import part_of

from . import ours
from .cases import Case, Expected, differences, raw, structured, typed
from .classics import CLASSICS
from .intrinsics import INTRINSICS
from .lockstep import TYPES
from .random_shaders import random_case
from .random_structs import constants_case, structs_case
from .reduce import verdict

try:
    pytest.importorskip("llvmlite")
    compile_hlsl("[numthreads(1, 1, 1)] void main() {}")
except CompilerMissing as absent:
    pytestmark = pytest.mark.skip(str(absent))

WAVES = (4, 8, 16, 32, 64)


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("name", [*CLASSICS, *INTRINSICS])
def test_classics(name: str, wave: int) -> None:
    case = {**CLASSICS, **INTRINSICS}[name](wave)
    assert not differences(case, ours.run(case, wave))


@pytest.fixture
def plainly(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """LLVM makes code as it does of huge shaders."""
    monkeypatch.setattr(native, "_MOST_TUNED", -1)
    native._compile.cache_clear()
    yield
    native._compile.cache_clear()


@pytest.mark.usefixtures("plainly")
@pytest.mark.parametrize("name", CLASSICS)
def test_classics_made_plainly(name: str) -> None:
    case = CLASSICS[name](16)
    assert not differences(case, ours.run(case, 16))


def _sum_of_loads(count: int) -> str:
    return "o.Store(4 * i, " + " + ".join(f"a[i + {n}]" for n in range(count)) + ");"


def test_a_huge_expression() -> None:
    values = np.arange(64, dtype=np.uint32) * 2654435761
    found = np.frombuffer(run(_sum_of_loads(700), 64, values), np.uint32)[:64]
    assert np.array_equal(found, np.cumsum(values[::-1], dtype=np.uint32)[::-1])


def test_more_accesses_than_are_translated() -> None:
    body = "o.Store(4 * i, " + " + ".join(f"a[i * {n + 2}]" for n in range(1600)) + ");"
    with pytest.raises(UnsupportedShader, match=r"1603 accesses .* at most 1000 .* split it"):
        run(body, 64, np.zeros(64, np.uint32))


def watched(case: Case, wave: int) -> set[str]:
    """The kinds of what is told of a case, whose result is right."""
    found, findings = ours.run_watched(case, wave)
    assert not differences(case, found)
    return {each.kind for each in findings}


@pytest.mark.parametrize("name", [*CLASSICS, *INTRINSICS])
def test_nothing_is_told_of_classics(name: str) -> None:
    told = watched({**CLASSICS, **INTRINSICS}[name](16), 16)
    assert told == ({"OUTSIDE"} if name == "out_of_bounds" else set())


@pytest.mark.parametrize("seed", range(part_of(12)))
def test_no_race_is_told_of_random_shaders(seed: int) -> None:
    wave = WAVES[seed % 5]
    for case in (random_case(seed, wave), structs_case(seed), constants_case(seed)):
        assert watched(case, wave) <= {"OUTSIDE"}


def test_every_operation_is_in_one_of_them() -> None:
    """Or in the tests of what DXC makes of no HLSL, or of the heap."""
    elsewhere = {"Bfi", "CBufferLoad", "CreateHandleFromHeap", "IMul", "Ibfe", "IsNormal", "UDiv", "UMul"}
    elsewhere |= {"LegacyDoubleToFloat", "LegacyDoubleToSInt32", "LegacyDoubleToUInt32", "USubb", "Ubfe"}
    elsewhere |= {f"Bitcast{a}{bits}to{b}{bits}" for a, b in ("IF", "FI") for bits in (16, 32, 64)}
    assert {each.name for each in OPERATIONS.values()} - _operations_of_all() == elsewhere


def _operations_of_all() -> set[str]:
    found = set()
    for make in [*CLASSICS.values(), *INTRINSICS.values()]:
        case = make(8)
        code = compile_hlsl(case.source, case.entry, case.target, case.arguments)
        module = read_module(read_container(code).program.bitcode)
        for function in module.functions:
            for made in (made for block in function.blocks for made in block.instructions):
                if made.name == "call" and getattr(made.operands[1], "value", None) in OPERATIONS:
                    found.add(OPERATIONS[made.operands[1].value].name)
    return found


@pytest.mark.parametrize("name", CLASSICS)
def test_the_order_of_groups_does_not_matter(name: str) -> None:
    case = CLASSICS[name](8)
    assert not differences(case, ours.run(case, 8, order=12345))


REFUSED = "refused: Loop must have break."
"""DXC's own validator, of loops that end (findings/dxc-refuses-loops-that-end.sh)."""


def agrees(seed: int, lavapipe: bool = False) -> bool:
    """In a process of its own: a shader that is compiled wrongly may end it.  False: DXC refuses the seed."""
    wave = WAVES[seed % 5]
    case = random_case(seed, wave, lavapipe)
    found = verdict(case, lambda case: ours.run(case, wave))
    if found[0] == REFUSED:
        return False
    assert found == ("same", ""), case.name
    return True


@pytest.mark.parametrize("seed", range(part_of(20)))
def test_random_shaders(seed: int) -> None:
    if not agrees(seed):
        pytest.skip(REFUSED)


@pytest.mark.parametrize("make", [structs_case, constants_case])
@pytest.mark.parametrize("seed", range(part_of(60)))
def test_random_structs(make: Callable[[int], Case], seed: int) -> None:
    case = make(seed)
    assert not differences(case, ours.run(case, WAVES[seed % 5]))


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("block", range(20))
def test_more_random_shaders(block: int) -> None:
    seeds = range(1000 + 20 * block, 1020 + 20 * block)
    passed_over = [seed for seed in seeds if not agrees(seed, lavapipe=seed % 2 == 1)]
    assert len(passed_over) < 3, passed_over
    if passed_over:
        pytest.skip(f"seeds {passed_over} are {REFUSED} The others of the block agree")


def run(body: str, count: int, *values: np.ndarray, before: str = "", type: str = "uint") -> bytes:
    """What ``body`` writes to ``o``, with a thread for each element of ``a`` and ``b``."""
    inputs = "".join(f"StructuredBuffer<{type}> {name} : register(t{n});\n" for n, name in enumerate("ab"))
    source = f"""{inputs}RWByteAddressBuffer o : register(u0);
{before}
[numthreads({count}, 1, 1)] void main(uint i : SV_GroupIndex) {{ {body} }}"""
    buffers = {f"t{n}": structured(value) for n, value in enumerate(values)}
    case = Case("one", source, {**buffers, "u0": raw(np.zeros(2 * count, np.uint32))})
    return ours.run(case, 8)["u0"]


def test_a_contiguous_access_may_begin_before_the_variable() -> None:
    body = "s[i] = a[i]; GroupMemoryBarrierWithGroupSync(); o.Store(4 * i, i >= 5 ? s[i - 5] : 0);"
    a = np.arange(32, dtype=np.uint32) + 7
    found = run(body, 32, a, a, before="groupshared uint s[32];")
    assert not Expected(np.concatenate([np.zeros(5, np.uint32), a[:-5]])).difference(found)


def test_an_array_of_integers_is_read_as_floats() -> None:
    body = "uint x[4] = { a[i], b[i], 5, 6 }; x[a[i] & 3] = 7; o.Store(4 * i, asuint(asfloat(x[i & 3]) * 2));"
    a, b = np.arange(8, dtype=np.uint32), np.float32([1, 2, 3, 4, 5, 6, 7, 8]).view(np.uint32)
    rows = np.stack([a, b, np.full(8, 5, np.uint32), np.full(8, 6, np.uint32)], 1)
    rows[np.arange(8), a & 3] = 7
    floats = (rows[np.arange(8), np.arange(8) & 3].view(np.float32) * 2).view(np.uint32)
    assert not Expected(floats).difference(run(body, 8, a, b))


def test_values_cross_regions_that_lanes_pass_by() -> None:
    """A loop that lanes leave by a return makes blocks that all lanes pass, some without their values."""
    body = """
    if (a[0] == 3) {
        for (uint k = 0; k < a[i]; ++k) {
            uint end = a[(k + i) % 8] % 3;
            for (uint j = 0; j < end; ++j) if (b[(j + k + i) % 8] == 4) return;
        }
    }
    for (uint n = 0; n < 4; ++n)
        if (i < n) for (uint m = 0; m < a[1] % 5; ++m) o.InterlockedAdd(4 * i, n + m);
    o.InterlockedAdd(4 * i, 1000);"""
    a, b = np.array([3, 4, 2, 0, 1, 5, 6, 2], np.uint32), np.array([0, 4, 1, 2, 9, 3, 5, 6], np.uint32)
    expected = np.zeros(8, np.uint32)
    for i in range(8):
        if any(b[(j + k + i) % 8] == 4 for k in range(int(a[i])) for j in range(int(a[(k + i) % 8]) % 3)):
            continue
        expected[i] = 1000 + sum(n + m for n in range(4) if i < n for m in range(4))
    assert not Expected(expected).difference(run(body, 8, a, b))


@pytest.mark.parametrize("step", [0x40000000, 0x10000000, 0xF0000000])
def test_indices_that_wrap_around_between_lanes(step: int) -> None:
    """The index of a structured buffer has 32 bits: 4 * 0x40000000 is 0."""
    a = np.arange(32, dtype=np.uint32) + 7
    at = np.arange(32, dtype=np.uint32) * np.uint32(step) + np.uint32(1)
    expected = np.where(at < 32, a[at % 32], 0).astype(np.uint32)
    assert not Expected(expected).difference(run(f"o.Store(4 * i, a[i * {step} + 1]);", 32, a, a))


@pytest.mark.parametrize(
    ("name", "arguments"), [("int16_t", ("-enable-16bit-types",)), ("min16int", ("-Wno-everything",))]
)
def test_negative_numbers_of_16_bits_in_a_typed_buffer_of_32(name: str, arguments: tuple[str, ...]) -> None:
    a = np.int32([-1, -300, 5, 0, 32767, -32768, 7, 1])
    source = f"""Buffer<int> a : register(t0); RWBuffer<{name}> o : register(u0);
[numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {{ o[i] = {name}(a[i]); }}"""
    buffers = {"t0": typed(a, 43), "u0": typed(np.zeros(8, np.int32), 43)}
    case = Case("one", source, buffers, target="cs_6_2", arguments=arguments)
    assert not Expected(a).difference(ours.run(case, 8)["u0"])


@pytest.mark.parametrize("shared", [False, True])
def test_elements_of_arrays_are_used_in_another_block_than_their_index(shared: bool) -> None:
    """DXC makes one pointer for all uses of an element; a break makes the loop one that lanes leave alone."""
    before, array = ("groupshared uint f[64];", "f[8 * i + {}]") if shared else ("", "f[{}]")
    at, k = array.format("at"), array.format("k")
    body = f"""{"" if shared else "uint f[8];"} uint s = 0, k;
    for (k = 0; k < 8; ++k) {k} = k * i;
    [loop] for (k = 0; k < a[i]; ++k) {{
        uint at = (a[(k + i) & 7] * 3 + k) & 7;
        {at} += k + 1;
        [branch] if ((a[k] ^ i) & 1) {{ {at} *= 2; if (k == 4) break; }}
        s += {at};
    }}
    o.Store(4 * i, s);"""
    a = np.array([3, 4, 2, 0, 1, 5, 6, 2], np.uint32)
    expected = np.zeros(8, np.uint32)
    for i in range(8):
        f = [k * i for k in range(8)]
        for k in range(int(a[i])):
            at = (int(a[(k + i) & 7]) * 3 + k) & 7
            f[at] += k + 1
            if (int(a[k]) ^ i) & 1:
                f[at] *= 2
                if k == 4:
                    break
            expected[i] += f[at]
    assert not Expected(expected).difference(run(body, 8, a, a, before=before))


def test_doubles_become_halves_in_one_rounding() -> None:
    """1 + 2**-11 lies between two halves: what is a little more is the upper one, though not as a float."""
    ends = [
        1 + 2**-11,
        1 + 2**-11 + 2**-40,
        -65519.99999999999,
        65520,
        2**-25,
        2**-25 + 2**-60,
        np.nan,
        1e300,
    ]
    a, b = np.float64(ends), np.float64([1, 2, 3, 4, 5, 6, 7, 8])
    source = """StructuredBuffer<double> a : register(t0); RWStructuredBuffer<float16_t> o : register(u0);
[numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) { o[i] = float16_t(a[i]); }"""
    for values in (a, -a, b):
        with np.errstate(over="ignore"):
            expected = values.astype(np.float16)
        buffers = {"t0": structured(values), "u0": structured(np.zeros(8, np.float16))}
        case = Case("one", source, buffers, target="cs_6_2", arguments=("-enable-16bit-types",))
        assert not Expected(expected).difference(ours.run(case, 8)["u0"])


@pytest.mark.parametrize("kind", ["uint", "int", "uint16_t", "uint64_t", "int64_t"])
def test_integers_become_halves_in_one_rounding(kind: str) -> None:
    """2049 and 2051 lie between two halves; what rounds above 65504 is infinite."""
    dtype = TYPES[kind].dtype
    ends = np.array([0, 1, 2049, 2051, 65519, 65520, 65535, -1], np.int64).astype(dtype)
    source = f"""StructuredBuffer<{kind}> a : register(t0); RWStructuredBuffer<float16_t> o : register(u0);
[numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {{ o[i] = float16_t(a[i]); }}"""
    with np.errstate(over="ignore"):
        expected = ends.astype(np.float64).astype(np.float16)
    buffers = {"t0": structured(ends), "u0": structured(np.zeros(8, np.float16))}
    case = Case("one", source, buffers, target="cs_6_2", arguments=("-enable-16bit-types",))
    assert not Expected(expected).difference(ours.run(case, 8)["u0"])


def test_atomic_operations_that_are_not_aligned() -> None:
    """D3D12 leaves them open; here they are exact, on every CPU."""
    source = """RWByteAddressBuffer m : register(u0);
[numthreads(256, 1, 1)] void main(uint i : SV_DispatchThreadID) {
    m.InterlockedAdd64(4, (1ull << 32) + i);
}"""
    held = np.array([5, 0xFFFFFFFF, 7, 9], np.uint32)
    case = Case("one", source, {"u0": raw(held)}, (4, 1, 1), target="cs_6_6")
    sum = (7 << 32 | 0xFFFFFFFF) + (1024 << 32) + 1024 * 1023 // 2
    expected = np.array([5, sum & 0xFFFFFFFF, sum >> 32, 9], np.uint32)
    assert not Expected(expected).difference(ours.run(case, 32)["u0"])


def test_divisions_by_zero_and_out_of_range() -> None:
    """The arguments are loaded: what DXC makes of constants is its own."""
    a = np.array([7, 0, 0x80000000, 0x80000000, 0xFFFFFFF9, 5], np.uint32)
    b = np.array([0, 0, 0xFFFFFFFF, 0, 2, 0xFFFFFFFE], np.uint32)
    ones, least = 0xFFFFFFFF, 0x80000000
    for expression, expected in {
        "a[i] / b[i]": [ones, ones, 0, ones, 0x7FFFFFFC, 0],
        "a[i] % b[i]": [ones, ones, least, ones, 1, 5],
        "int(a[i]) / int(b[i])": [ones, ones, least, ones, -3 & ones, -2 & ones],
        "int(a[i]) % int(b[i])": [ones, ones, 0, ones, -1 & ones, 1],
    }.items():
        found = run(f"o.Store(4 * i, {expression});", 6, a, b)
        assert not Expected(np.array(expected, np.uint32)).difference(found), expression


@pytest.mark.parametrize(
    ("cast", "expected"),
    [
        ("int(a[i])", [0, 0x7FFFFFFF, 0x80000000, 0x7FFFFFFF, -1 & 0xFFFFFFFF, 0x7FFFFFFF]),
        ("uint(a[i])", [0, 0xFFFFFFFF, 0, 3000000000, 0, 0xFFFFFFFF]),
    ],
)
@pytest.mark.parametrize("type", ["float", "double"])
def test_conversions_are_clamped(cast: str, expected: list[int], type: str) -> None:
    a = np.array([np.nan, np.inf, -np.inf, 3e9, -1.5, 1e20], TYPES[type].dtype)
    found = run(f"o.Store(4 * i, {cast});", 6, a, a, type=type)
    assert not Expected(np.array(expected, np.uint32)).difference(found)


# --- CPUs that lack instructions ---

SETS = [name for name in ("generic", "avx2", "avx512") if instruction_sets()[name]]


@pytest.fixture(params=SETS if platform.machine() == "x86_64" else [])
def instructions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Code is for the CPUs of that set alone."""
    monkeypatch.setenv("DMLEMU_ISA", request.param)
    native._compile.cache_clear()
    yield request.param
    native._compile.cache_clear()


def test_halves_on_each_cpu(instructions: str) -> None:
    """Every half as a float, and floats around every half as halves; without F16C these are calls."""
    source = """StructuredBuffer<float16_t> a : register(t0); StructuredBuffer<float> b : register(t1);
RWStructuredBuffer<float> wide : register(u0); RWStructuredBuffer<float16_t> narrow : register(u1);
[numthreads(64, 1, 1)] void main(uint3 at : SV_DispatchThreadID)
{ wide[at.x] = float(a[at.x]); narrow[at.x] = float16_t(b[at.x]); }"""
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    bits = halves.astype(np.float32).view(np.uint32) + np.random.default_rng(1).integers(0, 1 << 14, 1 << 16)
    floats = bits.astype(np.uint32).view(np.float32)
    buffers = {"t0": structured(halves), "t1": structured(floats)}
    buffers |= {
        "u0": structured(np.zeros(1 << 16, np.float32)),
        "u1": structured(np.zeros(1 << 16, np.float16)),
    }
    case = Case("one", source, buffers, (1024, 1, 1), target="cs_6_2", arguments=("-enable-16bit-types",))
    found = ours.run(case, 16)
    with np.errstate(over="ignore"):
        assert not Expected(halves.astype(np.float32)).difference(found["u0"])
        assert not Expected(floats.astype(np.float16)).difference(found["u1"])


def test_roundings_on_each_cpu(instructions: str) -> None:
    a = np.float32([0.5, 1.5, -2.5, 2.4999998, -0.2, 8388609, 1e30, -1e30])
    body = "o.Store(4 * i, asuint(round(a[i]))); o.Store(32 + 4 * i, asuint(floor(a[i]) + frac(a[i])));"
    expected = np.concatenate([np.round(a), np.floor(a) + (a - np.floor(a))])
    assert not Expected(expected).difference(run(body, 8, a, a, type="float"))


@pytest.mark.parametrize("seed", range(part_of(2)))
def test_random_shaders_on_each_cpu(instructions: str, seed: int) -> None:
    assert agrees(seed)
