"""Operations of DXIL that DXC makes of no HLSL, but other compilers may, put in the place of a division.

https://github.com/microsoft/DirectXShaderCompiler/blob/main/docs/DXIL.rst
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlemu.shaders import (
    Constant,
    UnsupportedShader,
    Value,
    compile_shader,
    native,
    read_container,
    read_module,
)
from dmlemu.shaders.dxc import CompilerMissing, compile_hlsl
from dmlemu.shaders.values import Function, Instruction, Type

from .test_native import OK, Call, scale

pytest.importorskip("llvmlite")

INT, WIDE, BIT = Type("int", 32), Type("int", 64), Type("int", 1)
NARROW, HALF, FLOAT, DOUBLE = Type("int", 16), Type("float", 16), Type("float", 32), Type("float", 64)
THREADS = 20
ALL = 0xFFFFFFFF

Make = Callable[[list[Instruction], Value, Value], Value]
"""Adds instructions that make an i32 of two, the varying and the uniform one."""


def add(made: list[Instruction], name: str, type: Type, *operands: Value, **more: Any) -> Instruction:
    made.append(Instruction(type, name, list(operands), **more))
    return made[-1]


def call(made: list[Instruction], name: str, opcode: int, type: Type, *operands: Value) -> Instruction:
    signature = Type("function", elements=(type, INT, *(each.type for each in operands)))
    function = Function(Type("pointer", elements=(signature,)), f"dx.op.{name}")
    return add(made, "call", type, function, Constant(INT, opcode), *operands)


def number(value: int, type: Type = INT) -> Constant:
    return Constant(type, value)


def simple(name: str, opcode: int, *more: int) -> Make:
    """Of the two numbers behind ``more``."""
    return lambda made, a, b: call(made, name, opcode, INT, *map(number, more), a, b)


def of_two(name: str, opcode: int, type: Type = INT) -> Make:
    """Two results, high and low, or quotient and remainder, or difference and borrow; combined."""

    def make(made: list[Instruction], a: Value, b: Value) -> Value:
        pair = call(made, name, opcode, Type("struct", elements=(INT, type)), a, b)
        first = add(made, "extractvalue", INT, pair, indices=(0,))
        second = add(made, "extractvalue", type, pair, indices=(1,))
        if type is BIT:
            second = add(made, "zext", INT, second)
        return add(made, "add", INT, add(made, "mul", INT, first, number(3)), second)

    return make


def through(*steps: tuple[str, Type] | tuple[str, int, Type]) -> Make:
    """Casts, and operations of one argument, of the varying number one after the other."""

    def make(made: list[Instruction], a: Value, b: Value) -> Value:
        for name, *opcode, type in steps:
            a = call(made, name, opcode[0], type, a) if opcode else add(made, name, type, a)  # type: ignore[arg-type]
        return a

    return make


def run(make: Make, given: np.ndarray[Any, Any], wave: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the threads store."""
    container = read_container((Path(__file__).parent / "containers" / "graph.dxil").read_bytes())
    module = read_module(container.program.bitcode)
    block = next(function for function in module.functions if function.blocks).blocks[0]
    at = next(at for at, made in enumerate(block.instructions) if made.name == "udiv")
    quotient, made = block.instructions[at], list[Instruction]()
    result = make(made, *quotient.operands)
    after = [copy(each) for each in block.instructions[at + 1 :]]
    for each in after:
        each.operands = [result if operand is quotient else operand for operand in each.operands]
    block.instructions[at:] = [*made, *after]
    monkeypatch.setattr(native, "read_module", lambda *_: module)
    monkeypatch.setattr(native, "_compile", native._compile.__wrapped__)  # it would keep what it made
    shader = compile_shader(container, wave=wave)
    found = np.zeros(THREADS, np.uint32)
    assert Call(shader.address, [given, found], (1, 1, 1)).run() == OK
    return [int(each) for each in found]


def signed(value: int, bits: int = 32) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def field(value: int, width: int, offset: int, extend: bool) -> int:
    """Ibfe and Ubfe: the lowest five bits of width and offset count."""
    width, offset = width & 31, offset & 31
    found = value >> offset & (1 << min(width, 32 - offset)) - 1
    return signed(found, min(width, 32 - offset)) if extend and width else found


def as_float(value: int) -> float:
    return float(np.uint32(value).view(np.float32))


def normal(value: int) -> int:
    return int(np.isfinite(as_float(value)) and abs(as_float(value)) >= np.finfo(np.float32).tiny)


OPERATIONS: dict[str, tuple[Make, Callable[[int, int], int]]] = {
    "IMul": (of_two("binaryWithTwoOuts.i32", 41), lambda a, b: _halves(signed(a) * signed(b))),
    "UMul": (of_two("binaryWithTwoOuts.i32", 42), lambda a, b: _halves(a * b)),
    "UDiv": (of_two("binaryWithTwoOuts.i32", 43), lambda a, b: (a // b * 3 + a % b) if b else 4 * ALL),
    "USubb": (of_two("binaryWithCarryOrBorrow.i32", 45, BIT), lambda a, b: (a - b & ALL) * 3 + (a < b)),
    "Ibfe": (simple("tertiary.i32", 51, 37), lambda a, b: field(b, 37, a, True)),
    "Ibfe of no bits": (simple("tertiary.i32", 51, 32), lambda a, b: 0),
    "Ubfe": (simple("tertiary.i32", 52, 7), lambda a, b: field(b, 7, a, False)),
    "Bfi": (
        simple("quaternary.i32", 53, 9, 27),
        lambda a, b: (b & ~(0x1F << 27) | (a & 0x1F) << 27) & ALL,
    ),
    "IsNormal": (
        through(("bitcast", FLOAT), ("isSpecialFloat.f32", 11, BIT), ("zext", INT)),
        lambda a, b: normal(a),
    ),
    "LegacyDoubleToFloat": (
        through(("uitofp", DOUBLE), ("legacyDoubleToFloat", 132, FLOAT), ("bitcast", INT)),
        lambda a, b: int(np.float32(a).view(np.uint32)),
    ),
    "LegacyDoubleToSInt32": (
        through(("uitofp", DOUBLE), ("legacyDoubleToSInt32", 133, INT)),
        lambda a, b: min(a, 0x7FFFFFFF),
    ),
    "LegacyDoubleToUInt32": (
        through(("sitofp", DOUBLE), ("legacyDoubleToUInt32", 134, INT)),
        lambda a, b: max(0, signed(a)),
    ),
    "Bitcasts of 16 bits": (
        through(
            ("trunc", NARROW), ("bitcastI16toF16", 124, HALF), ("bitcastF16toI16", 125, NARROW), ("zext", INT)
        ),
        lambda a, b: a & 0xFFFF,
    ),
    "Bitcasts of 32 bits": (
        through(("bitcastI32toF32", 126, FLOAT), ("bitcastF32toI32", 127, INT)),
        lambda a, b: a,
    ),
    "Bitcasts of 64 bits": (
        through(
            ("zext", WIDE), ("bitcastI64toF64", 128, DOUBLE), ("bitcastF64toI64", 129, WIDE), ("trunc", INT)
        ),
        lambda a, b: a,
    ),
}


def _halves(product: int) -> int:
    return (product >> 32) * 3 + (product & ALL)


@pytest.mark.parametrize("wave", [4, 32])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_that_hlsl_does_not_have(name: str, wave: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make, meaning = OPERATIONS[name]
    given = np.random.default_rng(len(name)).integers(0, 1 << 32, THREADS + 1, np.uint32)
    given[2:8] = [0, 1, 0x7F800000, 0x80000000, 0x00400000, ALL]
    for uniform in (int(given[0]), 0, 3):
        given[0] = uniform
        with monkeypatch.context() as patched:
            found = run(make, given, wave, patched)
        assert found == [meaning(int(each), uniform) & ALL for each in given[1:]]


@pytest.mark.parametrize("wave", [4, 32])
def test_a_number_at_a_byte_of_a_constant_buffer(wave: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """CBufferLoad, in the place of CBufferLoadLegacy, which loads rows."""
    container = read_container((Path(__file__).parent / "containers" / "saxpy.dxil").read_bytes())
    module = read_module(container.program.bitcode)
    for block in next(function for function in module.functions if function.blocks).blocks:
        for each in block.instructions:
            row = each.operands[0] if each.name == "extractvalue" else None
            if isinstance(row, Instruction) and "cbufferLoadLegacy" in row.operands[0].name:  # type: ignore[attr-defined]
                made: list[Instruction] = []
                number_at = call(
                    made, "cbufferLoad", 58, each.type, row.operands[2], number(4 * each.indices[0])
                )
                each.name, each.operands, each.indices = "call", number_at.operands, ()
    monkeypatch.setattr(native, "read_module", lambda *_: module)
    monkeypatch.setattr(native, "_compile", native._compile.__wrapped__)  # it would keep what it made
    shader = compile_shader(container, wave=wave)
    x, y = (np.random.default_rng(seed).random(64, np.float32) for seed in (1, 2))
    expected = np.concatenate([y[:50] + np.float32(2.5) * x[:50], y[50:]])
    assert Call(shader.address, [x, y, scale(2.5, 50)], (1, 1, 1)).run() == OK
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("function", ["QuadAny", "QuadAll"])
def test_what_is_not_emulated_is_refused_by_name(function: str) -> None:
    source = f"""RWStructuredBuffer<uint> o : register(u0);
[numthreads(8, 1, 1)] void main(uint i : SV_GroupIndex) {{ o[i] = {function}(o[i] == 1) ? 1 : 2; }}"""
    try:
        code = compile_hlsl(source, "main", "cs_6_7")
    except CompilerMissing as error:
        pytest.skip(str(error))
    with pytest.raises(UnsupportedShader, match=r"dx\.op\.quadVote.*; the reference of shaders lists those"):
        compile_shader(read_container(code))
