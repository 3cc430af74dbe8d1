"""What a module of DXIL consists of: types, values, instructions, blocks and metadata, as plain data.

Values refer to each other in circles: they have no text of their own.

The names are LLVM's (https://releases.llvm.org/3.7.1/docs/LangRef.html), of which DXIL is a subset
(DXIL.rst of microsoft/DirectXShaderCompiler).
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "Block",
    "Constant",
    "Function",
    "Global",
    "Instruction",
    "Metadata",
    "Module",
    "Type",
    "Value",
]


@dataclass(frozen=True)
class Type:
    """``kind``: void, int, float (of any size), pointer, struct, array, vector, function, label, metadata."""

    kind: str
    bits: int = 0
    """Of int and float."""
    elements: tuple[Type, ...] = ()
    """Members of a struct; element of an array, vector or pointer; result and parameters of a function."""
    count: int = 0
    """Of an array or vector; address space of a pointer; 1: a struct is packed, a function is variadic."""
    name: str = ""

    @property
    def element(self) -> Type:
        return self.elements[0]

    @property
    def is_number(self) -> bool:
        return self.kind in ("int", "float")

    def __str__(self) -> str:
        if self.kind == "int":
            return f"i{self.bits}"
        if self.kind == "float":
            return {16: "half", 32: "float", 64: "double"}[self.bits]
        if self.kind == "pointer":
            return f"{self.element}{f' addrspace({self.count})' if self.count else ''}*"
        if self.kind == "array":
            return f"[{self.count} x {self.element}]"
        if self.kind == "vector":
            return f"<{self.count} x {self.element}>"
        if self.kind == "struct":
            return f"%{self.name}" if self.name else f"{{ {', '.join(map(str, self.elements))} }}"
        if self.kind == "function":
            return f"{self.element} ({', '.join(map(str, self.elements[1:]))})"
        return self.kind


@dataclass(eq=False, repr=False)
class Value:
    type: Type


@dataclass(eq=False, repr=False)
class Constant(Value):
    """``value``: an int (the bits of a float; 0: of an aggregate, all zero), a tuple; None: undefined."""

    value: int | tuple[Value, ...] | None = None


@dataclass(eq=False, repr=False)
class Global(Value):
    """A variable outside of functions; ``type`` is the pointer to it.  Address space 3 is groupshared."""

    name: str = ""
    constant: bool = False
    initializer: Value | None = None

    @property
    def groupshared(self) -> bool:
        return self.type.count == 3


@dataclass(eq=False, repr=False)
class Instruction(Value):
    """``name``: LLVM's word, such as add, fcmp, call, br, phi."""

    name: str = ""
    operands: list[Value] = field(default_factory=list)
    """Of call: the function, then its arguments; of phi: the values; of store: pointer, value."""
    predicate: str = ""
    """Of icmp and fcmp, such as ult; of atomicrmw: the operation."""
    targets: list[Block] = field(default_factory=list)
    """Of br: true, false; of switch: the default, then the cases; of phi: where each value comes from."""
    indices: tuple[int, ...] = ()
    """Of extractvalue and insertvalue; the values of the cases of a switch, as unsigned numbers."""
    line: int = 0
    """Of the source, where the container has it; else 0."""

    @property
    def computed_late(self) -> bool:
        """A pointer or a handle of a resource: what uses it computes it, from its operands."""
        return self.type.kind == "pointer" or self.type.name == "dx.types.Handle"

    @property
    def used(self) -> list[Value]:
        """What is there when the instruction runs: its operands, and those of what is computed late."""
        found = dict.fromkeys(self.operands)
        waiting = [] if self.name == "phi" else list(self.operands)
        while waiting:
            operand = waiting.pop()
            if isinstance(operand, Instruction) and operand.computed_late:
                waiting += [each for each in operand.operands if each not in found]
                found.update(dict.fromkeys(operand.operands))
        return list(found)


@dataclass(eq=False, repr=False)
class Block:
    number: int
    instructions: list[Instruction] = field(default_factory=list)

    @property
    def successors(self) -> list[Block]:
        last = self.instructions[-1]
        return last.targets if last.name in ("br", "switch") else []


@dataclass(eq=False, repr=False)
class Function(Value):
    """``type`` is the pointer to it.  Without blocks it is only declared, as the operations ``dx.op.*``."""

    name: str = ""
    arguments: list[Value] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    """Those that are texts, such as ``fp32-denorm-mode``."""

    @property
    def signature(self) -> Type:
        return self.type.element


Metadata = str | Value | tuple["Metadata | None", ...]
"""A string, a value, or a node of others."""


@dataclass
class Module:
    globals: list[Global] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)
    named: dict[str, list[tuple[Metadata | None, ...]]] = field(default_factory=dict)
    """Metadata by name, such as dx.entryPoints."""
