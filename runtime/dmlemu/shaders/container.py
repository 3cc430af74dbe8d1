"""The container of a compiled shader (``DXBC``): a header, and parts with names of four characters.

Its layout is that of ``hlsl::DxilContainerHeader`` in DxilContainer.h of microsoft/DirectXShaderCompiler.
The digest is not compared: what DXC writes on Linux has none (all zero).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from .errors import MalformedShader, UnsupportedShader

__all__ = [
    "Container",
    "Program",
    "Resource",
    "Validation",
    "read_container",
    "read_parts",
    "write_container",
]

_HEADER = struct.Struct("<4s16sHHII")
_PART = struct.Struct("<4sI")
_PROGRAM = struct.Struct("<II4sIII")
_MOST_PARTS = 64
_COMPUTE = 5


@dataclass(frozen=True)
class Program:
    """``DxilProgramHeader`` and the bitcode behind it."""

    major: int
    minor: int
    bitcode: bytes

    @property
    def target(self) -> str:
        return f"cs_{self.major}_{self.minor}"


@dataclass(frozen=True)
class Resource:
    """A record of ``PSVResourceBindInfo``: a range of registers that the shader uses."""

    type: int
    space: int
    lower: int
    upper: int
    """The last register, 0xFFFFFFFF: unbounded."""

    @property
    def register(self) -> str:
        letter = {1: "s", 2: "b", 3: "t", 4: "t", 5: "t"}.get(self.type, "u")
        space = f", space{self.space}" if self.space else ""
        return f"{letter}{self.lower}{space}"

    @property
    def kind(self) -> str:
        return _RESOURCE_TYPES.get(self.type, f"type {self.type}")


_RESOURCE_TYPES = {
    1: "sampler",
    2: "cbuffer",
    3: "typed SRV",
    4: "raw SRV",
    5: "structured SRV",
    6: "typed UAV",
    7: "raw UAV",
    8: "structured UAV",
    9: "structured UAV with counter",
}


@dataclass(frozen=True)
class Validation:
    """The part ``PSV0`` (``PSVRuntimeInfo``): what the runtime needs to know without reading the code."""

    least_wave: int
    most_wave: int
    """0 and 0xFFFFFFFF: any wave size."""
    threads: tuple[int, int, int] | None
    resources: tuple[Resource, ...]


@dataclass(frozen=True)
class Container:
    parts: dict[str, bytes]
    """By name, in their order."""
    program: Program
    validation: Validation | None
    root_signature: bytes | None
    """The part ``RTS0``."""
    debug: Program | None
    """The part ``ILDB``: the same program with the lines of its source."""


def read_container(data: bytes) -> Container:
    """Parses the bytes of a compute shader.  Raises ``ShaderError``, and nothing else, for any bytes."""
    parts = read_parts(data)
    if "DXIL" not in parts:
        if "SHEX" in parts or "SHDR" in parts:
            raise UnsupportedShader(
                "the container holds DXBC byte code of shader model 5 or older, which is not emulated; "
                "compile the source to DXIL: dxc -T cs_6_0"
            )
        raise MalformedShader("the container has no part DXIL", f"parts: {', '.join(parts) or 'none'}")
    validation = parts.get("PSV0")
    return Container(
        parts,
        _program(parts["DXIL"], "DXIL"),
        None if validation is None else _validation(validation),
        parts.get("RTS0"),
        _program(parts["ILDB"], "ILDB") if "ILDB" in parts else None,
    )


def write_container(parts: dict[str, bytes]) -> bytes:
    """A container with these parts, in their order.  Its digest is all zero, as that of DXC on Linux."""
    sizes = [_PART.size + len(each) for each in parts.values()]
    first = _HEADER.size + 4 * len(parts)
    offsets = [first + sum(sizes[:i]) for i in range(len(parts))]
    head = _HEADER.pack(b"DXBC", bytes(16), 1, 0, first + sum(sizes), len(parts))
    body = [_PART.pack(name.encode("ascii"), len(each)) + each for name, each in parts.items()]
    return b"".join([head, struct.pack(f"<{len(offsets)}I", *offsets), *body])


def read_parts(data: bytes) -> dict[str, bytes]:
    """The parts of a container by name, in their order.  Raises ``ShaderError``, and nothing else, for any
    bytes."""
    if len(data) < _HEADER.size:
        raise MalformedShader(f"a container has {_HEADER.size} bytes or more", f"{len(data)} bytes")
    magic, _digest, major, _minor, size, count = _HEADER.unpack_from(data)
    if magic != b"DXBC":
        raise MalformedShader("a container begins with the characters DXBC", f"bytes {magic.hex(' ')}")
    if major != 1:
        raise UnsupportedShader(f"the container has version {major}; version 1 is known")
    if size > len(data) or size < _HEADER.size:
        raise MalformedShader(f"the header gives {size} bytes", f"{len(data)} bytes are there")
    if count > _MOST_PARTS or _HEADER.size + 4 * count > size:
        raise MalformedShader(f"the header gives {count} parts", f"{size} bytes")
    parts: dict[str, bytes] = {}
    for number, offset in enumerate(struct.unpack_from(f"<{count}I", data, _HEADER.size)):
        if offset + _PART.size > size:
            raise MalformedShader(f"part {number} begins at byte {offset}", f"the container has {size} bytes")
        tag, length = _PART.unpack_from(data, offset)
        begin = offset + _PART.size
        name = tag.decode("ascii", errors="backslashreplace")
        if begin + length > size:
            raise MalformedShader(f"part {name} has {length} bytes", f"{size - begin} are left")
        if name in parts:
            raise MalformedShader(f"part {name} is there twice", f"part {number}")
        parts[name] = data[begin : begin + length]
    return parts


def program_of_part(container: Container, name: str) -> Program:
    """Of a part that holds a module, such as ``STAT``."""
    return _program(container.parts[name], name)


def _program(part: bytes, name: str) -> Program:
    if len(part) < _PROGRAM.size:
        raise MalformedShader(
            f"the header of a program has {_PROGRAM.size} bytes", f"part {name}: {len(part)}"
        )
    version, words, magic, _dxil, offset, size = _PROGRAM.unpack_from(part)
    kind, major, minor = version >> 16, version >> 4 & 0xF, version & 0xF
    if magic != b"DXIL":
        raise MalformedShader("a program begins with the characters DXIL", f"bytes {magic.hex(' ')}")
    if kind != _COMPUTE:
        raise UnsupportedShader(f"the program is a {_kind(kind)}; compute shaders run here (dxc -T cs_6_0)")
    begin = 8 + offset  # counted from the characters DXIL
    if offset < 16 or begin + size > len(part) or words * 4 > len(part):
        raise MalformedShader(
            f"bitcode of {size} bytes at byte {begin}", f"part {name} has {len(part)} bytes"
        )
    return Program(major, minor, part[begin : begin + size])


def _kind(kind: int) -> str:
    kinds = ["pixel", "vertex", "geometry", "hull", "domain", "compute"]
    other = {6: "library of shaders", 13: "mesh shader", 14: "amplification shader"}
    return f"{kinds[kind]} shader" if kind < len(kinds) else other.get(kind, f"shader of kind {kind}")


def _validation(part: bytes) -> Validation:
    """``PSVRuntimeInfo0`` to 3 have 24, 36, 48 and 52 bytes, each with the fields of the one before first."""
    words = len(part) // 4
    numbers = struct.unpack_from(f"<{words}I", part)
    if not words or not 24 <= numbers[0] <= len(part) - 4:
        raise MalformedShader("the part PSV0 is shorter than its header", f"{len(part)} bytes")
    header = numbers[1 : 1 + numbers[0] // 4]
    threads = (header[9], header[10], header[11]) if numbers[0] >= 48 else None
    at = 1 + len(header)
    count = numbers[at] if at < words else 0
    resources: list[Resource] = []
    if count:
        stride = numbers[at + 1] // 4 if at + 1 < words else 0
        if stride < 4 or at + 2 + count * stride > words:
            raise MalformedShader(f"the part PSV0 gives {count} resources", f"{len(part)} bytes")
        for first in range(at + 2, at + 2 + count * stride, stride):
            resources.append(Resource(*numbers[first : first + 4]))
    return Validation(header[4], header[5], threads, tuple(resources))
