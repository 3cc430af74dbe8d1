"""Random structs in structured and constant buffers: where each number stands, by NumPy and by HLSL's rules.

In a structured buffer members are aligned as those of a struct in C, which NumPy computes (``align=True``).
In a constant buffer what does not fit into the rest of a row of 16 bytes begins the next one, and structs,
arrays and each of their elements begin one
(https://learn.microsoft.com/windows/win32/direct3dhlsl/dx-graphics-hlsl-packing-rules).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .cases import Buffer, Case, Expected, cbuffer, structured

__all__ = ["constants_case", "structs_case"]

_CODES = {
    "float": "f4",
    "int": "i4",
    "uint": "u4",
    "bool": "u4",
    "double": "f8",
    "uint64_t": "u8",
    "int64_t": "i8",
    "float16_t": "f2",
    "int16_t": "i2",
    "uint16_t": "u2",
}
_NARROW = ("float16_t", "int16_t", "uint16_t")
_OF_MATRICES = ("float", "int", "uint")
"""DXC has places of its own for numbers of other sizes (findings/dxc-matrices-of-16-and-64-bits.sh)."""
_THREADS = 8
_ROW = 16
_MOST_NUMBERS = 60


@dataclass(frozen=True)
class Scalar:
    name: str


@dataclass(frozen=True)
class Vector:
    of: Scalar
    count: int


@dataclass(frozen=True)
class Matrix:
    of: Scalar
    rows: int
    columns: int
    row_major: bool


@dataclass(frozen=True)
class Array:
    of: Node
    count: int


@dataclass(frozen=True)
class Struct:
    name: str
    members: tuple[tuple[str, Node], ...]


Node: TypeAlias = Scalar | Vector | Matrix | Array | Struct


@dataclass(frozen=True)
class Number:
    """A number in a node: how HLSL names it, the fields and indices in NumPy, its type and place."""

    text: str
    path: tuple[str | int, ...]
    scalar: str
    byte: int = 0
    """In a constant buffer."""
    has_open_row: bool = True
    """Whether its row may be loaded (findings/dxc-refuses-a-row-of-a-matrix.sh)."""


class Drawn:
    """A struct, with the structs in it, which are declared first.  ``lavapipe``: one that it may have."""

    def __init__(self, seed: int, lavapipe: bool) -> None:
        self.random, self.lavapipe = random.Random(f"struct {seed}"), lavapipe
        self.structs: list[Struct] = []
        narrow = self.random.random() < 0.5
        self.scalars = [name for name in _CODES if narrow or name not in _NARROW]
        if self.random.random() < 0.3:
            self.scalars = [name for name in self.scalars if name not in ("double", "uint64_t", "int64_t")]
        self.narrow = narrow
        while True:
            self.structs.clear()
            self.whole = self.struct(2)
            if len(list(numbers_of(self.whole))) <= _MOST_NUMBERS:
                break

    def struct(self, depth: int) -> Struct:
        members = tuple(
            (f"m{n}", self.node(depth)) for n in range(self.random.randint(1 if depth < 2 else 2, 5))
        )
        self.structs.append(Struct(f"S{len(self.structs)}", members))
        return self.structs[-1]

    def node(self, depth: int) -> Node:
        scalar = Scalar(self.random.choice(self.scalars))
        kind = self.random.random()
        if depth and kind < 0.15:
            return self.struct(depth - 1)
        if depth and kind < 0.35:
            return Array(self.node(depth - 1), self.random.randint(2, 4))
        if kind < 0.6:
            return Vector(scalar, self.random.randint(2, 4))
        if kind < 0.75 and scalar.name in _OF_MATRICES:
            rows, columns = self.random.randint(2, 4), self.random.randint(2, 4)
            row_major = self.random.random() < 0.4
            if self.lavapipe and not row_major:
                scalar = Scalar("float")  # DXC has no SPIR-V for others
            return Matrix(scalar, rows, columns, row_major)
        return scalar

    def options(self) -> tuple[str, tuple[str, ...]]:
        arguments = ("-enable-16bit-types", "-Wno-everything") if self.narrow else ("-Wno-everything",)
        targets = ["cs_6_2", "cs_6_6"] if self.narrow else ["cs_6_0", "cs_6_2", "cs_6_6"]
        return self.random.choice(targets), arguments

    def value(self, scalar: str, count: int) -> NDArray[Any]:
        dtype = np.dtype(_CODES[scalar])
        if scalar == "bool":
            return np.array([self.random.choice([0, 1]) for _ in range(count)], dtype)
        if dtype.kind == "f":
            return np.array([self.random.uniform(-100, 100) for _ in range(count)]).astype(dtype)
        bits = 8 * dtype.itemsize
        return np.array([self.random.getrandbits(bits) for _ in range(count)], np.uint64).astype(dtype)


# --- declarations ---


def declared(name: str, node: Node) -> str:
    counts = ""
    while isinstance(node, Array):
        counts, node = f"{counts}[{node.count}]", node.of
    return f"{type_of(node)} {name}{counts};"


def type_of(node: Node) -> str:
    if isinstance(node, Vector):
        return f"{node.of.name}{node.count}"
    if isinstance(node, Matrix):
        order = "row_major " if node.row_major else ""
        return f"{order}{node.of.name}{node.rows}x{node.columns}"
    assert isinstance(node, (Scalar, Struct))
    return node.name


def declarations(structs: list[Struct]) -> str:
    return "\n".join(
        f"struct {each.name} {{ {' '.join(declared(*member) for member in each.members)} }};"
        for each in structs
    )


def numbers_of(node: Node, text: str = "", path: tuple[str | int, ...] = ()) -> Iterator[Number]:
    if isinstance(node, Scalar):
        yield Number(text, path, node.name)
    elif isinstance(node, Vector):
        for n in range(node.count):
            yield Number(f"{text}.{'xyzw'[n]}", (*path, n), node.of.name)
    elif isinstance(node, Matrix):
        for row in range(node.rows):
            for column in range(node.columns):
                at = (row, column) if node.row_major else (column, row)
                yield Number(f"{text}[{row}][{column}]", (*path, *at), node.of.name)
    elif isinstance(node, Array):
        for n in range(node.count):
            yield from numbers_of(node.of, f"{text}[{n}]", (*path, n))
    else:
        for name, member in node.members:
            yield from numbers_of(member, f"{text}.{name}", (*path, name))


# --- where numbers stand ---


def dtype_of(node: Node) -> np.dtype[Any]:
    if isinstance(node, Scalar):
        return np.dtype(_CODES[node.name])
    if isinstance(node, Vector):
        return np.dtype((dtype_of(node.of), (node.count,)))
    if isinstance(node, Matrix):
        sizes = (node.rows, node.columns) if node.row_major else (node.columns, node.rows)
        return np.dtype((dtype_of(node.of), sizes))
    if isinstance(node, Array):
        return np.dtype((dtype_of(node.of), (node.count,)))
    return np.dtype([(name, dtype_of(member)) for name, member in node.members], align=True)


def place_of(values: NDArray[Any], number: Number) -> tuple[NDArray[Any], tuple[Any, ...]]:
    """An array of numbers and the index in it of one number of each struct."""
    index: list[Any] = [slice(None)]
    for step in number.path:
        if isinstance(step, str):
            values, index = values[tuple(index)][step], [slice(None)]
        else:
            index.append(step)
    return values, tuple(index)


def packed(node: Node, byte: int, text: str) -> tuple[list[Number], int]:
    """The numbers of a node that comes behind ``byte`` in a constant buffer, and where it ends."""
    if isinstance(node, (Scalar, Vector)):
        scalar, count = (node.of, node.count) if isinstance(node, Vector) else (node, 1)
        size = np.dtype(_CODES[scalar.name]).itemsize
        byte = -(-byte // size) * size
        if byte % _ROW + size * count > _ROW:
            byte = -(-byte // _ROW) * _ROW
        names = [f"{text}.{letter}" for letter in "xyzw"[:count]] if isinstance(node, Vector) else [text]
        made = [Number(name, (), scalar.name, byte + size * n) for n, name in enumerate(names)]
        return made, byte + size * count
    byte = -(-byte // _ROW) * _ROW
    found: list[Number] = []
    if isinstance(node, Struct):
        for name, member in node.members:
            more, byte = packed(member, byte, f"{text}.{name}")
            found += more
        return found, byte
    for n in range(node.count if isinstance(node, Array) else node.rows if node.row_major else node.columns):
        byte = -(-byte // _ROW) * _ROW
        if isinstance(node, Array):
            more, byte = packed(node.of, byte, f"{text}[{n}]")
        else:
            length = node.columns if node.row_major else node.rows
            more, byte = packed(Vector(node.of, length), byte, text)
            is_open = node.row_major or node.rows <= node.columns
            places = [(n, k) if node.row_major else (k, n) for k in range(length)]
            more = [
                Number(f"{text}[{row}][{column}]", (), each.scalar, each.byte, is_open)
                for (row, column), each in zip(places, more, strict=True)
            ]
        found += more
    return found, byte


# --- shaders ---


def changed(scalar: str) -> tuple[str, Any]:
    """What becomes of a number, in HLSL and in NumPy."""
    if scalar == "bool":
        return "!{0}", lambda x: (x == 0).astype(x.dtype)
    if _CODES[scalar][0] == "f":
        return "-{0}", np.negative
    return f"{{0}} + {scalar}(77)", lambda x: x + x.dtype.type(77)


class Outputs:
    """A buffer for the numbers of each type that threads store by themselves, and the lines that do."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.kept: dict[str, list[NDArray[Any]]] = {}
        self.lines: list[str] = []

    def add(self, scalar: str, text: str, values: NDArray[Any]) -> None:
        """A number for each thread."""
        kept = self.kept.setdefault(scalar, [])
        text = f"({text}) ? 1 : 0" if scalar == "bool" else text
        self.lines.append(f"    o_{scalar}[{_THREADS * len(kept)} + i] = {text};")
        kept.append(values)

    def declared(self) -> str:
        return "\n".join(
            f"RWStructuredBuffer<{'uint' if scalar == 'bool' else scalar}> o_{scalar} : register(u{number});"
            for number, scalar in enumerate(self.kept, self.first)
        )

    def add_to(self, buffers: dict[str, Buffer], expected: dict[str, Expected]) -> None:
        for number, values in enumerate(self.kept.values(), self.first):
            whole = np.concatenate(values)
            buffers[f"u{number}"] = structured(np.zeros_like(whole))
            expected[f"u{number}"] = Expected(whole)


def indexed(numbers: list[Number], chooser: random.Random) -> Iterator[tuple[str, list[Number]]]:
    """Some numbers with one index left open, ``{}``, and those that it chooses of."""
    with_index = [number for number in numbers if "[" in number.text]
    for number in chooser.sample(with_index, min(6, len(with_index))):
        places = list(re.finditer(r"\[\d+\]", number.text))
        if not number.has_open_row:
            del places[-2]
        found = chooser.choice(places)
        before, after = number.text[: found.start()], number.text[found.end() :]
        pattern = re.compile(rf"{re.escape(before)}\[\d+\]{re.escape(after)}")
        yield f"{before}[{{}}]{after}", [each for each in numbers if pattern.fullmatch(each.text)]


def drawn_indices(chooser: random.Random) -> NDArray[np.uint32]:
    return np.array([chooser.randrange(_THREADS) for _ in range(_THREADS)], np.uint32)


def structs_case(seed: int, lavapipe: bool = False) -> Case:
    """Threads read structs of a buffer and write them, changed, whole or number by number."""
    drawn = Drawn(seed, lavapipe)
    target, arguments = drawn.options()
    whole, choose, at = drawn.whole, drawn.random, drawn_indices(drawn.random)
    values = np.zeros(_THREADS, dtype_of(whole))
    result, outputs = (
        np.zeros(_THREADS, values.dtype),
        Outputs(1),
    )  # zeros_like leaves what is between numbers
    numbers = list(numbers_of(whole))
    copies, lines = choose.random() < 0.5, list[str]()
    for number in numbers:
        held, index = place_of(values, number)
        held[index] = drawn.value(number.scalar, _THREADS)
        moved = held[index][at]
        text, function = changed(number.scalar)
        is_changed = choose.random() < 0.5
        source, to = (f"{name}{number.text}" for name in (("v", "v") if copies else ("x[at[i]]", "y[i]")))
        if is_changed or not copies:
            lines.append(f"    {to} = {text.format(source) if is_changed else source};")
        after, place = place_of(result, number)
        after[place] = function(moved) if is_changed else moved
    for text, among in indexed(numbers, choose):
        columns = [place_of(values, number) for number in among]
        table = np.stack([held[index] for held, index in columns])
        outputs.add(
            among[0].scalar,
            f"x[i]{text}".format(f"at[i] % {len(among)}"),
            table[at % len(among), range(_THREADS)],
        )
    body = [f"    {whole.name} v = x[at[i]];", *lines, "    y[i] = v;"] if copies else lines
    source = f"""{declarations(drawn.structs)}
StructuredBuffer<{whole.name}> x : register(t0);
StructuredBuffer<uint> at : register(t1);
RWStructuredBuffer<{whole.name}> y : register(u0);
{outputs.declared()}
[numthreads({_THREADS}, 1, 1)] void main(uint i : SV_GroupIndex) {{
""" + "\n".join([*body, *outputs.lines, "}"])
    stride = values.dtype.itemsize
    buffers = {
        "t0": structured(values.tobytes(), stride),
        "t1": structured(at),
        "u0": structured(bytes(values.nbytes), stride),
    }
    expected = {"u0": Expected(np.frombuffer(result.tobytes(), np.uint16))}
    outputs.add_to(buffers, expected)
    return Case(f"structs {seed}", source, buffers, target=target, arguments=arguments, expected=expected)


def constants_case(seed: int, lavapipe: bool = False) -> Case:
    """Threads store every number of a constant buffer, and some at indices that they load."""
    drawn = Drawn(seed, lavapipe)
    target, arguments = drawn.options()
    choose, at, outputs = drawn.random, drawn_indices(drawn.random), Outputs(0)
    numbers, end = list[Number](), 0
    for name, member in drawn.whole.members:
        more, end = packed(member, end, name)
        numbers += more
    data, values = bytearray(end), dict[str, NDArray[Any]]()
    for number in numbers:
        value = values[number.text] = drawn.value(number.scalar, 1)
        data[number.byte : number.byte + value.nbytes] = value.tobytes()
        outputs.add(number.scalar, number.text, np.repeat(value, _THREADS))
    for text, among in indexed(numbers, choose):
        table = np.concatenate([values[number.text] for number in among])
        outputs.add(among[0].scalar, text.format(f"at[i] % {len(among)}"), table[at % len(among)])
    buffers: dict[str, Buffer] = {"b0": cbuffer(bytes(data)), "t0": structured(at)}
    expected: dict[str, Expected] = {}
    outputs.add_to(buffers, expected)
    members = " ".join(declared(*member) for member in drawn.whole.members)
    source = f"""{declarations([each for each in drawn.structs if each is not drawn.whole])}
cbuffer Constants : register(b0) {{ {members} }};
StructuredBuffer<uint> at : register(t0);
{outputs.declared()}
[numthreads({_THREADS}, 1, 1)] void main(uint i : SV_GroupIndex) {{
""" + "\n".join([*outputs.lines, "}"])
    return Case(f"constants {seed}", source, buffers, target=target, arguments=arguments, expected=expected)
