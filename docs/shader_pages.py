"""The reference page of compute shaders: operations of DXIL, as the table of the emulator has them."""

from __future__ import annotations

from dmlemu.shaders.arithmetic import INSTRUCTIONS
from dmlemu.shaders.operations import OPERATIONS
from dmlemu.shaders.pointers import INSTRUCTIONS as ON_VARIABLES
from dmlemu.shaders.spelled import HLSL

__all__ = ["page"]

HEAD = """# What compute shaders may use

Generated from the tables of the emulator (`runtime/dmlemu/shaders/operations.py`). The
[guide](../guide/shaders.md) shows how a shader runs beside DirectML. Whatever a shader uses
that is not here is refused by its name when its pipeline state is created.

## Operations of DXIL

HLSL becomes operations of
[DXIL](https://github.com/microsoft/DirectXShaderCompiler/blob/main/docs/DXIL.rst), which
`dmlemu shader FILE` lists with their opcodes.

| opcode | operation | in HLSL |
| --- | --- | --- |
"""

TAIL = """
## Instructions

{instructions}

## Resources

| in HLSL | what is bound |
| --- | --- |
| `cbuffer`, `ConstantBuffer` | CBV, root CBV, root constants |
| `StructuredBuffer`, `RWStructuredBuffer` | SRV, UAV, root SRV and UAV |
| `AppendStructuredBuffer`, counters | UAV with a counter |
| `ByteAddressBuffer`, `RWByteAddressBuffer` | raw SRV and UAV, root SRV and UAV |
| `Buffer`, `RWBuffer` | typed SRV and UAV |
| arrays of these, also unbounded ones | descriptor tables |
| `ResourceDescriptorHeap` (shader model 6.6) | the heap that is set |

Not emulated, and refused by name: textures and samplers, shaders other than compute shaders,
byte code of shader model 5 (DXBC), pointers or resources that control flow selects.

## What is defined here

| question | answer |
| --- | --- |
| size of a wave | 32 where wave operations are used, otherwise 16; 4 to 64 as the shader asks |
| float to integer | the nearest of the type; NaN is 0 |
| division by zero, of the least number by -1 | all ones; the number itself |
| shifts | by the lowest 5 bits (16-bit types: 4, 64-bit: 6) |
| sums and products | rounded one by one, never fused unless the source says `fma` |
| sin, cos, exp2, log2 and others | computed in double, rounded once: the same on every CPU |
| denormal numbers of `float` | kept; `-denorm ftz` flushes them |
| reads and writes outside of a view | 0; dropped |
| typed buffers of `R10G10B10A2`, `R11G11B10_FLOAT`, `B8G8R8A8_UNORM` | converted by Direct3D's rules |
| views of sRGB formats, `R9G9B9E5_SHAREDEXP`, `B8G8R8X8_UNORM` | refused |
| typed buffers of 64-bit elements | views of two components, `R32G32_UINT` |
| atomic operations at unaligned addresses | exact, one after the other |
| outside of a root descriptor's resource | the device is removed, with a report |
| groupshared memory of more than 32,768 bytes | refused |
| local variables of more than 1 MiB for a wave | refused |
"""


def page() -> str:
    rows = [
        f"| {opcode} | {operation.name} | {_spelled(operation.name)} |"
        for opcode, operation in sorted(OPERATIONS.items())
    ]
    names = sorted({*INSTRUCTIONS, *ON_VARIABLES, "phi", "br", "switch", "ret", "call"})
    instructions = ", ".join(f"`{name}`" for name in names)
    return HEAD + "\n".join(rows) + "\n" + TAIL.format(instructions=_wrapped(instructions))


def _spelled(name: str) -> str:
    return ", ".join(f"`{each}`" for each in HLSL.get(name, "").split(", ") if each)


def _wrapped(text: str, width: int = 88) -> str:
    lines, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) >= width:
            lines.append(line)
            line = ""
        line += f" {word}" if line else word
    return "\n".join([*lines, line])
