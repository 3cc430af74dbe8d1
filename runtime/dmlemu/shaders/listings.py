"""A compiled shader as text: what it binds, and its instructions."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from .container import Container
from .values import Block, Constant, Function, Global, Instruction, Module, Value

__all__ = ["listing"]

_OPERATION = "dx.op."
_FEATURES = {  # bits of the part SFI0, D3D_SHADER_REQUIRES_* of d3d12shader.h
    0x1: "doubles",
    0x800: "typed UAV loads of more formats",
    0x4000: "wave operations",
    0x8000: "64-bit integers",
    0x40000: "native 16-bit types",
    0x400000: "64-bit atomics on typed resources",
    0x800000: "64-bit atomics on groupshared memory",
    0x2000000: "ResourceDescriptorHeap",
}


def listing(container: Container, module: Module) -> str:
    """Lines of text: target, threads, registers, groupshared variables, then each function by blocks."""
    return "\n".join([*_header(container), *_variables(module), *_functions(module)]) + "\n"


def _header(container: Container) -> Iterator[str]:
    known = container.validation
    threads = known and known.threads
    group = f", {' x '.join(map(str, threads))} threads in a group" if threads else ""
    yield f"compute shader for {container.program.target}{group}"
    yield "parts: " + ", ".join(f"{name} ({len(part)} bytes)" for name, part in container.parts.items())
    features = container.parts.get("SFI0", b"")
    if len(features) == 8 and any(features):
        bits = struct.unpack("<Q", features)[0]
        yield "needs: " + ", ".join(
            _FEATURES.get(bit, f"feature 0x{bit:x}") for bit in (1 << n for n in range(64)) if bits & bit
        )
    if known and known.least_wave:
        yield f"waves of {known.least_wave} to {known.most_wave} lanes"
    for resource in known.resources if known else ():
        yield f"{resource.register}: {resource.kind}{_range(resource.lower, resource.upper)}"
    if container.root_signature is not None:
        yield f"root signature of {len(container.root_signature)} bytes"


def _range(lower: int, upper: int) -> str:
    if upper == 0xFFFFFFFF:
        return ", unbounded array"
    return "" if upper <= lower else f", array of {upper - lower + 1}"


def _variables(module: Module) -> Iterator[str]:
    for variable in module.globals:
        place = "groupshared" if variable.groupshared else "constant" if variable.constant else "variable"
        yield f"{place} {_printable(variable.name)}: {variable.type.element}"


def _functions(module: Module) -> Iterator[str]:
    for function in module.functions:
        if function.blocks:
            yield ""
            yield f"{_printable(function.name)}:"
            yield from _instructions(function)


def _instructions(function: Function) -> Iterator[str]:
    names = {id(argument): f"%a{number}" for number, argument in enumerate(function.arguments)}
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.type.kind != "void":
                names[id(instruction)] = f"%{len(names)}"
    line = 0
    for block in function.blocks:
        yield f"  block {block.number}"
        for instruction in block.instructions:
            if _is_debug(instruction):
                continue
            if instruction.line and instruction.line != line:
                line = instruction.line
                yield f"    ; line {line}"
            yield f"    {_instruction(instruction, names)}"


def _is_debug(made: Instruction) -> bool:
    """It says which variable of the source a value belongs to."""
    return (
        made.name == "call"
        and isinstance(made.operands[0], Function)
        and made.operands[0].name.startswith("llvm.dbg.")
    )


def _instruction(made: Instruction, names: dict[int, str]) -> str:
    shown = f"{names[id(made)]} = " if id(made) in names else ""
    return f"{shown}{_action(made, [_operand(operand, names) for operand in made.operands])}"


def _action(made: Instruction, operands: list[str]) -> str:
    if made.name == "call":
        return f"{operands[0]}({', '.join(operands[1:])})"
    if made.name == "phi":
        pairs = zip(operands, made.targets, strict=True)
        return f"phi {made.type} {', '.join(f'{value} from block {block.number}' for value, block in pairs)}"
    if made.name == "br":
        return _branch(operands, made.targets)
    if made.name == "switch":
        cases = zip(made.indices, made.targets[1:], strict=True)
        to = "".join(f", {value}: block {block.number}" for value, block in cases)
        return f"switch {operands[0]}{to}, else block {made.targets[0].number}"
    kind = made.operands[0].type if made.name in ("icmp", "fcmp") else made.type
    words = [made.name, made.predicate, str(kind) if kind.kind != "void" else "", ", ".join(operands)]
    return " ".join(filter(None, words)) + "".join(f"[{index}]" for index in made.indices)


def _branch(operands: list[str], targets: list[Block]) -> str:
    if not operands:
        return f"br block {targets[0].number}"
    return f"br {operands[0]}, block {targets[0].number}, else block {targets[1].number}"


def _operand(value: Value, names: dict[int, str]) -> str:
    if isinstance(value, Function):  # an operation's name ends with its type
        name = value.name.removeprefix(_OPERATION)
        return _printable(name.rpartition(".")[0] or name if value.name.startswith(_OPERATION) else name)
    if isinstance(value, Global):
        return f"@{_printable(value.name)}"
    if isinstance(value, Constant):
        return _constant(value)
    if id(value) in names:
        return names[id(value)]
    assert isinstance(value, Instruction)  # an expression of constants
    return f"({_action(value, [_operand(operand, names) for operand in value.operands])})"


def _constant(constant: Constant) -> str:
    value = constant.value
    if value is None:
        return "undef"
    if isinstance(value, tuple):
        return f"{constant.type} {{...}}"
    if constant.type.kind == "float":
        size = constant.type.bits // 8
        number = struct.unpack(f"<{'  e f   d'[size]}", value.to_bytes(size, "little"))[0]
        return f"{number:g}" if number == number else f"NaN 0x{value:x}"
    if constant.type.kind == "int" and constant.type.bits > 1 and value >> (constant.type.bits - 1):
        return str(value - (1 << constant.type.bits))
    return str(value)


def _printable(name: str) -> str:
    """Names are any bytes; those of variables are mangled as Visual C++ does: ``\\x01?name@@...``."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in name)
