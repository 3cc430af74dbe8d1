"""The ranges of registers that a shader declares, read from the metadata of its module and from part STAT."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .container import Container, program_of_part
from .errors import MalformedShader, UnsupportedShader
from .module import read_module
from .values import Constant, Metadata, Module

__all__ = ["KINDS", "LETTERS", "Range", "ranges_of", "read_ranges", "threads_of"]

LETTERS = "tubs"
"""By DXIL's resource class: SRV, UAV, CBV, sampler."""
KINDS = {10: "typed", 11: "raw", 12: "structured", 13: "cbuffer", 14: "sampler"}
"""By DXIL's resource kind; the others are textures and what ray tracing uses."""
_COMPONENTS = {
    2: "short",
    3: "ushort",
    4: "int",
    5: "uint",
    6: "int64",
    7: "uint64",
    8: "half",
    9: "float",
    10: "double",
    11: "half",
    12: "half",
    13: "float",
    14: "float",
}
"""By DXIL's component type; 11 to 14 are snorm and unorm, which are read as floats."""
_NUMBERS = {
    ("float", 16, False): "half",
    ("float", 32, False): "float",
    ("float", 64, False): "double",
    ("int", 16, True): "short",
    ("int", 16, False): "ushort",
    ("int", 32, True): "int",
    ("int", 32, False): "uint",
    ("int", 64, True): "int64",
    ("int", 64, False): "uint64",
}
"""By kind, bits, and whether they are signed, which only the name of a buffer's type says."""
_SIGNED = re.compile(r"<(?:vector<|matrix<)?(?:int|short|long|min16int)")


@dataclass(frozen=True)
class Range:
    """Registers of one declared resource, as ``D3D12_SHADER_INPUT_BIND_DESC`` says them.

    https://learn.microsoft.com/windows/win32/api/d3d12shader/ns-d3d12shader-d3d12_shader_input_bind_desc
    """

    register_class: str
    """``t``: SRV, ``u``: UAV, ``b``: cbuffer, ``s``: sampler."""
    kind: str
    """``cbuffer``, ``typed``, ``raw``, ``structured`` or ``sampler``."""
    space: int
    lower: int
    count: int = 1
    """0: unbounded."""
    stride: int = 0
    """Bytes of an element of a structured buffer."""
    bytes: int = 0
    """Of a cbuffer."""
    element: str = ""
    """The component type of a typed buffer, and of a structured one all of whose numbers are of one type."""
    counter: bool = False
    """A structured UAV whose hidden counter is used."""
    name: str = ""
    """The name in the source where the container has its reflection (part STAT); else that of the
    register."""

    @property
    def register(self) -> str:
        """``"t1, space2"``, ``"u0"``, ``"t4 to t7"``, ``"t2 and all behind it"``."""
        letter, space = self.register_class, f", space{self.space}" if self.space else ""
        first = f"{letter}{self.lower}"
        if self.count == 0:
            return f"{first} and all behind it{space}"
        return f"{first}{f' to {letter}{self.lower + self.count - 1}' if self.count > 1 else ''}{space}"


def read_ranges(container: Container, module: Module | None = None) -> tuple[Range, ...]:
    """In the order in which the native code expects them.  Raises ``ShaderError``, such as for textures.

    ``module``: that of part DXIL, where it has been read already.
    """
    names: dict[tuple[str, int, int], str] = {}
    if "STAT" in container.parts:
        names = _names(container)
    return ranges_of(module or read_module(container.program.bitcode), names)


def ranges_of(module: Module, names: dict[tuple[str, int, int], str] | None = None) -> tuple[Range, ...]:
    found = []
    for register_class, record in _records(module):
        made = _range(register_class, record)
        name = _text(record, 2) or (names or {}).get((register_class, made.space, made.lower), "")
        found.append(Range(**{**made.__dict__, "name": name or made.register}))
    return tuple(found)


def threads_of(module: Module) -> tuple[int, int, int]:
    """``numthreads`` of the entry, from its metadata."""
    (entry,) = module.named.get("dx.entryPoints", [()])[:1] or [()]
    properties = entry[4] if len(entry) > 4 else None
    tags = properties if isinstance(properties, tuple) else ()
    for tag, value in zip(tags[::2], tags[1::2], strict=False):
        if _number(tag) == 4 and isinstance(value, tuple) and len(value) == 3:
            x, y, z = map(_number, value)
            if x > 0 and y > 0 and z > 0 and x * y * z <= 1024:
                return x, y, z
            raise MalformedShader(
                f"numthreads is {x}, {y}, {z}; their product is 1 to 1024", "dx.entryPoints"
            )
    raise MalformedShader("the entry has no numthreads", "dx.entryPoints")


def _records(module: Module) -> Iterable[tuple[str, tuple[Metadata | None, ...]]]:
    resources = module.named.get("dx.resources", [])
    for letter, records in zip(LETTERS, resources[0] if resources else (), strict=False):
        for record in records if isinstance(records, tuple) else ():
            if not isinstance(record, tuple) or len(record) < 7:
                raise MalformedShader("a resource of the module has fewer than 7 fields", "dx.resources")
            yield letter, record


def _range(letter: str, record: tuple[Metadata | None, ...]) -> Range:
    space, lower, count, kind = (_number(part) for part in record[3:7])
    if letter == "b":
        return Range(letter, "cbuffer", space, lower, _count(count), bytes=kind)
    if letter == "s":
        return Range(letter, "sampler", space, lower, _count(count))
    if kind not in KINDS:
        raise UnsupportedShader(
            f"the shader uses a texture ({letter}{lower}, space {space}); textures are not emulated: "
            "put the data in a buffer"
        )
    last = record[-1] if isinstance(record[-1], tuple) else ()
    tags = {_number(tag): _number(value) for tag, value in zip(last[::2], last[1::2], strict=False)}
    return Range(
        letter,
        KINDS[kind],
        space,
        lower,
        _count(count),
        stride=tags.get(1, 0),
        element=_element(kind, tags.get(0, 0), record[1]),
        counter=letter == "u" and len(record) > 8 and bool(_number(record[8])),
    )


def _element(kind: int, component: int, variable: Metadata | None) -> str:
    if KINDS[kind] == "typed":
        return _COMPONENTS.get(component, "")
    return _numbers_of(variable) if KINDS[kind] == "structured" else ""


def _numbers_of(variable: Metadata | None) -> str:
    """The type of all numbers in an element of a structured buffer; "": there are several, or none."""
    parts, found, name = [variable.type] if isinstance(variable, Constant) else [], set(), ""
    while parts:
        part = parts.pop()
        name = name or part.name
        parts += part.elements
        if part.is_number:
            found.add((part.kind, part.bits))
    if len(found) != 1:
        return ""
    kind, bits = found.pop()
    is_signed = kind == "int" and _SIGNED.search(name) is not None
    return _NUMBERS.get((kind, bits, is_signed), "")


def _count(count: int) -> int:
    return 0 if count == 0xFFFFFFFF else count


def _number(part: Metadata | None) -> int:
    if isinstance(part, Constant) and isinstance(part.value, int):
        return part.value
    raise MalformedShader("a number is missing", "the metadata of the module")


def _text(record: tuple[Metadata | None, ...], place: int) -> str:
    part = record[place]
    return part if isinstance(part, str) else ""


def _names(container: Container) -> dict[tuple[str, int, int], str]:
    """By class, space and first register."""
    module = read_module(program_of_part(container, "STAT").bitcode, "part STAT")
    found = {}
    for letter, record in _records(module):
        found[letter, _number(record[3]), _number(record[4])] = _text(record, 2)
    return found
