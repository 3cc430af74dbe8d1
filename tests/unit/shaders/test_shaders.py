"""Containers and DXIL of compute shaders that DXC has compiled; make_containers.py says from what."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from dmlemu.cli import main
from dmlemu.shaders import (
    Constant,
    Function,
    Instruction,
    MalformedShader,
    Module,
    ShaderError,
    UnsupportedShader,
    bitstream,
    listing,
    module,
    read_container,
    read_module,
)
from dmlemu.shaders.bitstream import Record

CONTAINERS = Path(__file__).parent / "containers"
NAMES = sorted(path.stem for path in CONTAINERS.glob("*.dxil"))


def container_bytes(name: str) -> bytes:
    return (CONTAINERS / f"{name}.dxil").read_bytes()


def part_at(data: bytes, name: str) -> int:
    """Where the name of a part stands."""
    return data.index(name.encode() + struct.pack("<I", len(read_container(data).parts[name])))


def renamed(data: bytes, name: str, other: bytes) -> bytes:
    place = part_at(data, name)
    return data[:place] + other + data[place + 4 :]


def module_of(name: str) -> Module:
    return read_module(read_container(container_bytes(name)).program.bitcode)


def body(module: Module) -> list[Instruction]:
    (entry,) = (function for function in module.functions if function.blocks)
    return [instruction for block in entry.blocks for instruction in block.instructions]


def operations(module: Module) -> list[str]:
    return [
        made.operands[0].name
        for made in body(module)
        if made.name == "call" and isinstance(made.operands[0], Function)
    ]


def test_a_container_says_what_the_runtime_needs() -> None:
    container = read_container(container_bytes("histogram"))
    assert container.program.target == "cs_6_0"
    assert container.validation is not None
    assert container.validation.threads == (32, 1, 1)
    assert [(r.register, r.kind) for r in container.validation.resources] == [
        ("b0", "cbuffer"),
        ("t1", "typed SRV"),
        ("u1, space2", "raw UAV"),
    ]
    assert (container.validation.resources[1].lower, container.validation.resources[1].upper) == (1, 4)


def test_a_module_has_the_instructions_of_the_source() -> None:
    module = module_of("saxpy")
    assert [made.name for made in body(module) if made.name[0] == "f"] == ["fmul", "fadd"]
    assert operations(module).count("dx.op.bufferLoad.f32") == 2
    (compare,) = (made for made in body(module) if made.name == "icmp")
    assert compare.predicate == "ult"
    multiply = next(made for made in body(module) if made.name == "fmul")
    assert all(isinstance(operand, Instruction) for operand in multiply.operands)


def test_groupshared_memory_and_its_barrier() -> None:
    module = module_of("sum")
    (shared,) = (variable for variable in module.globals if variable.groupshared)
    assert shared.type.element.count == 8 * 16
    assert operations(module).count("dx.op.barrier") == 1
    assert "dx.op.waveActiveOp.f32" in operations(module)


def test_a_loop_refers_to_values_that_follow() -> None:
    phis = [made for made in body(module_of("local")) if made.name == "phi"]
    assert phis
    for phi in phis:
        assert len(phi.operands) == len(phi.targets)
        assert all(isinstance(operand, (Constant, Instruction)) for operand in phi.operands)


def test_constant_arrays_keep_their_numbers() -> None:
    (weights,) = (variable for variable in module_of("local").globals if variable.name == "weights")
    assert isinstance(weights.initializer, Constant) and isinstance(weights.initializer.value, tuple)
    numbers = [struct.unpack("<f", struct.pack("<I", part.value))[0] for part in weights.initializer.value]  # type: ignore[attr-defined]
    assert numbers == [0.5, -1.25, 3, struct.unpack("<f", struct.pack("<f", 1e30))[0]]


def test_a_switch_has_its_cases() -> None:
    (switch,) = (made for made in body(module_of("histogram")) if made.name == "switch")
    assert switch.indices == (1, 2, 5)
    assert len(switch.targets) == 4


def test_lines_of_the_source_come_from_the_debug_part() -> None:
    container = read_container(container_bytes("saxpy_debug"))
    assert container.debug is not None
    lines = {made.line for made in body(read_module(container.debug.bitcode, "part ILDB"))}
    source = (CONTAINERS.parent / "sources.hlsl").read_text().splitlines()
    (line,) = (number for number, text in enumerate(source, 1) if "y[id.x] += a * x[id.x]" in text)
    assert line in lines


@pytest.mark.parametrize("name", NAMES)
def test_the_command_lists_every_container(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["shader", str(CONTAINERS / f"{name}.dxil")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("compute shader for cs_6_") and "block 0" in out and "llvm.dbg" not in out


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda data: b"", MalformedShader, "32 bytes or more"),
        (lambda data: b"DXBD" + data[4:], MalformedShader, "DXBC"),
        (lambda data: data[:-1], MalformedShader, "bytes are there"),
        (lambda data: renamed(data, "DXIL", b"SHEX"), UnsupportedShader, "dxc -T cs_6_0"),
        (lambda data: renamed(data, "DXIL", b"ABCD"), MalformedShader, "no part DXIL"),
    ],
)
def test_a_container_that_is_none_says_why(
    change: Callable[[bytes], bytes], error: type[ShaderError], words: str
) -> None:
    with pytest.raises(error, match=words):
        read_container(change(container_bytes("saxpy")))


def test_other_kinds_of_shaders_are_refused_by_name() -> None:
    data = bytearray(container_bytes("saxpy"))
    data[part_at(bytes(data), "DXIL") + 8 + 2] = 0  # D3D10_SB_PIXEL_SHADER
    with pytest.raises(UnsupportedShader, match="pixel shader"):
        read_container(bytes(data))


def test_a_file_that_is_no_shader_is_an_error_of_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.dxil"
    file.write_bytes(b"nothing")
    assert main(["shader", str(file)]) == 1
    assert "x.dxil: a container has 32 bytes or more" in capsys.readouterr().err
    assert main(["shader", str(tmp_path / "absent")]) == 1


def test_types_that_grow_with_each_level_are_refused() -> None:
    reader = module._Reader("a test")
    block = bitstream.Block(17, [Record(3, ())])
    block.items.extend(Record(18, (0, number, number)) for number in range(40))  # 2 ** 40 floats
    with pytest.raises(UnsupportedShader, match="elements"):
        reader._types(block)
    reader = module._Reader("a test")
    block = bitstream.Block(17, [Record(3, ())])
    block.items.extend(Record(8, (number, 0)) for number in range(10_000))
    with pytest.raises(UnsupportedShader, match="33 deep"):
        reader._types(block)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_containers_raise_one_error_and_nothing_else(name: str) -> None:
    """Bits, bytes and words of the whole container and of the bitcode alone, and every length."""
    draw = random.Random(name)
    whole = container_bytes(name)
    bitcode = read_container(whole).program.bitcode
    refused = 0
    for _ in range(400):
        data, begin = (bytearray(whole), 32) if draw.random() < 0.3 else (bytearray(bitcode), 4)
        for _ in range(draw.choice((1, 1, 2, 8))):
            place = draw.randrange(begin, len(data))
            data[place] = draw.choice((data[place] ^ 1 << draw.randrange(8), 0, 255, draw.randrange(256)))
        if draw.random() < 0.2:
            del data[draw.randrange(len(data)) :]
        try:
            if data[:4] == b"DXBC":
                container = read_container(bytes(data))
                listing(container, read_module(container.program.bitcode))
            else:
                read_module(bytes(data))
        except ShaderError:
            refused += 1
    assert refused > 100
