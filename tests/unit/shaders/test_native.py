"""Native code of shaders: waves of every size give what NumPy computes, and changed modules do no harm."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dmlemu.shaders import (
    CompilerMissing,
    Constant,
    MalformedShader,
    Module,
    ShaderError,
    UnsupportedShader,
    Value,
    compile_shader,
    native,
    read_container,
    read_module,
    wave_sizes,
)
from dmlemu.shaders.program import write_program
from dmlemu.shaders.ranges import ranges_of
from dmlemu_hw.kernels import ffi, lib

pytest.importorskip("llvmlite")

CONTAINERS = Path(__file__).parent / "containers"
WAVES = (4, 8, 16, 32, 64)
OK, STOPPED, OUT_OF_RANGE = lib.DMLK_OK, lib.DMLK_STOPPED, lib.DMLK_OUT_OF_RANGE


class Call:
    """A ``dmlk_shader_call`` of native code with one view in each range."""

    def __init__(
        self, address: int, arrays: Sequence[npt.NDArray[Any]], groups: tuple[int, int, int]
    ) -> None:
        self.views = ffi.new("dmlk_shader_view[]", len(arrays))
        self.ranges = ffi.new("dmlk_shader_range[]", len(arrays))
        self.fault = ffi.new("dmlk_shader_fault *")
        self.kept = [ffi.from_buffer("uint8_t[]", array) for array in arrays]
        for number, (memory, array) in enumerate(zip(self.kept, arrays, strict=True)):
            view = self.views[number]
            view.base, view.bytes, view.stride, view.format = memory, array.nbytes, 4, 42
            self.ranges[number].views, self.ranges[number].count = self.views + number, 1
        self.call = ffi.new("dmlk_shader_call *")
        self.call.run = ffi.cast("dmlk_shader_group *", address)
        self.call.ranges, self.call.groups, self.call.fault = self.ranges, groups, self.fault

    def run(self, seconds: float = 30) -> int:
        status: int = lib.dmlk_run_shader_within(self.call, seconds, ffi.new("int *"))
        return status


def run(
    name: str, arrays: Sequence[npt.NDArray[Any]], groups: tuple[int, int, int], wave: int, flags: int = 0
) -> Call:
    shader = compile_shader(read_container((CONTAINERS / f"{name}.dxil").read_bytes()), wave=wave)
    made = Call(shader.address, arrays, groups)
    made.call.shared_bytes, made.call.frame_bytes = shader.shared_bytes, shader.frame_bytes
    for number in range(len(arrays)):
        made.views[number].flags = flags
    made.status = made.run()
    return made


def scale(a: float, n: int) -> npt.NDArray[np.uint32]:
    """The cbuffer of sources.hlsl."""
    return np.array([np.float32(a).view(np.uint32), n, 0, 0], np.uint32)


@pytest.mark.parametrize("wave", WAVES)
@pytest.mark.parametrize("n", [0, 1, 63, 100, 192])
def test_saxpy(wave: int, n: int) -> None:
    random_numbers = np.random.default_rng(n)
    x, y = (random_numbers.random(192, np.float32) for _ in range(2))
    expected = y.copy()
    expected[:n] += np.float32(2.5) * x[:n]
    assert run("saxpy", [x, y, scale(2.5, n)], (3, 1, 1), wave).status == OK
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("wave", WAVES)
def test_what_is_outside_reads_0_and_is_not_written(wave: int) -> None:
    x = np.ones(70, np.float32)
    memory = np.zeros(192, np.float32)
    assert run("saxpy", [x, memory[:100], scale(2, 192)], (3, 1, 1), wave).status == OK
    np.testing.assert_array_equal(memory, np.repeat(np.float32([2, 0]), [70, 122]))


@pytest.mark.parametrize("wave", WAVES)
def test_a_root_descriptor_ends_the_dispatch(wave: int) -> None:
    x, y = np.ones(70, np.float32), np.zeros(192, np.float32)
    made = run("saxpy", [x, y, scale(2, 192)], (3, 1, 1), wave, lib.DMLK_SHADER_ROOT)
    assert made.status == OUT_OF_RANGE
    fault = made.fault
    assert (fault.kind, fault.access, fault.bytes) == (1, lib.DMLK_SHADER_READ, 4)
    assert fault.offset == 4 * (64 * fault.group[0] + fault.thread) >= x.nbytes


@pytest.mark.parametrize("wave", WAVES)
def test_groupshared_memory_barriers_and_waves(wave: int) -> None:
    """Columns of 8 rows are summed; WaveActiveSum adds what the wave's threads of the first row have."""
    n = 32
    x = np.random.default_rng(1).integers(0, 9, 8 * n).astype(np.float32)
    y = np.zeros(n, np.float32)
    assert run("sum", [x, y, scale(0, n)], (2, 1, 1), wave).status == OK
    totals = x.reshape(8, n).sum(0)
    per_wave = min(wave, 16)
    waves = totals.reshape(-1, per_wave).sum(1).repeat(per_wave)
    np.testing.assert_array_equal(y, totals + waves)


@pytest.mark.parametrize("wave", WAVES)
def test_local_arrays_and_loops(wave: int) -> None:
    n, weights = 5, np.float32([0.5, -1.25, 3, 1e30])
    y = np.zeros(8, np.float32)
    assert run("local", [y, scale(0, n)], (2, 1, 1), wave).status == OK
    # Threads with one x write to one place, each its own value of z: the one that is written last stays.
    possible: list[set[float]] = [set() for _ in y]
    for x in range(8):
        for row in range(2):
            kept = np.float32([1, 2, 3, 4])
            for i in range(n):
                kept[i * x & 3] += weights[i + row & 3]
            possible[x] |= {float(each) for each in kept[:2]}
    assert all(float(value) in values for value, values in zip(y, possible, strict=True))


def test_wave_sizes_are_those_of_the_shader() -> None:
    container = read_container((CONTAINERS / "saxpy.dxil").read_bytes())
    assert wave_sizes(container) == WAVES
    with pytest.raises(UnsupportedShader, match="waves of 128"):
        compile_shader(container, wave=128)


def test_code_is_made_once() -> None:
    data = (CONTAINERS / "saxpy.dxil").read_bytes()
    first, again = (compile_shader(read_container(data), wave=16) for _ in range(2))
    assert first is again
    assert compile_shader(read_container(data), wave=8) is not first


def test_code_is_made_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def engine(text: str) -> object:
        made.append(text)
        return make(text)

    make = native._engine
    monkeypatch.setattr(native, "_engine", engine)
    native._compile.cache_clear()
    shader = compile_shader(read_container((CONTAINERS / "saxpy.dxil").read_bytes()))
    assert made == []
    assert shader.address == shader.address and shader.frame_bytes == 0
    assert len(made) == 1


def test_without_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "llvmlite.binding", None)
    container = read_container((CONTAINERS / "saxpy.dxil").read_bytes())
    native._compile.cache_clear()
    with pytest.raises(CompilerMissing, match="the extra 'hlsl'"):
        compile_shader(container)


# --- modules with changes that a reader accepts ---


def change(module: Module, random_numbers: random.Random) -> None:
    """Operands become others of their type, constants other numbers, branches go elsewhere."""
    (function,) = (each for each in module.functions if each.blocks)
    made = [each for block in function.blocks for each in block.instructions]
    values: list[Value] = [*made, *(operand for each in made for operand in each.operands)]
    for _ in range(random_numbers.choice((1, 1, 2, 5))):
        each, kind = random_numbers.choice(made), random_numbers.randrange(3)
        if kind == 0 and each.operands:
            at = random_numbers.randrange(len(each.operands))
            same = [value for value in values if value.type == each.operands[at].type]
            each.operands[at] = random_numbers.choice(same)
        elif kind == 1 and each.targets:
            each.targets[random_numbers.randrange(len(each.targets))] = random_numbers.choice(function.blocks)
        elif kind == 2:
            change_constant(each.operands, random_numbers)


def change_constant(operands: list[Value], random_numbers: random.Random) -> None:
    numbers = [at for at, operand in enumerate(operands) if isinstance(operand, Constant)]
    numbers = [at for at in numbers if operands[at].type.kind == "int"]
    if numbers:
        at = random_numbers.choice(numbers)
        value = random_numbers.choice((0, 1, 255, 1 << 31, (1 << 32) - 1, random_numbers.randrange(230)))
        operands[at] = Constant(operands[at].type, value & ((1 << operands[at].type.bits) - 1))


@pytest.mark.parametrize(
    "seed", [*range(40), *(pytest.param(n, marks=pytest.mark.long) for n in range(40, 2000))]
)
def test_a_changed_module_is_refused_or_runs(seed: int) -> None:
    random_numbers = random.Random(seed)
    name = random_numbers.choice(sorted(CONTAINERS.glob("*.dxil")))
    module = read_module(read_container(name.read_bytes()).program.bitcode)
    change(module, random_numbers)
    llvm = native._llvm().llvm_version_info[0]
    try:
        ranges = ranges_of(module)
        with native.refusing():
            text, shared, waves = write_program(
                module, ranges, lanes=random_numbers.choice(WAVES[:3]), checked=False, llvm=llvm
            )
        code = native.Code(text, waves)
        address = code.address
    except ShaderError:
        return
    memory = [np.zeros(random_numbers.choice((4, 64, 4096)), np.uint8) for _ in ranges]
    made = Call(address, memory, (2, 1, 1))
    made.call.shared_bytes = shared
    made.call.frame_bytes = code.frame_bytes
    assert made.run(0.2) in (OK, STOPPED)


def test_operands_that_dxil_does_not_permit() -> None:
    with pytest.raises(MalformedShader, match="operands that DXIL does not permit"), native.refusing():
        raise IndexError("list index out of range")
