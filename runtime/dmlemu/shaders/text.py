"""Text of LLVM's language: values of one lane or of all lanes of a wave, and instructions on them.

https://llvm.org/docs/LangRef.html (opaque pointers, LLVM 20 or newer).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from .values import Type

__all__ = ["Code", "Lanes", "constant", "llvm_type"]


@dataclass(frozen=True)
class Lanes:
    """A value of each lane.  ``step``: by how much it grows from lane to lane; 0: all have the same; None:
    a vector.

    ``text`` is the vector, or else the value of lane 0.  Only integers grow.
    """

    type: str
    text: str
    step: int | None = None

    @property
    def uniform(self) -> bool:
        return self.step == 0


class Code:
    """Lines of a function, for waves of ``lanes`` lanes."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.zeros: list[str] = []
        """Stores of zero to some of them."""
        self._numbers = count()

    def name(self, hint: str = "t") -> str:
        return f"{hint}{next(self._numbers)}"

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def new(self, text: str) -> str:
        """A new value; returns its name with %."""
        made = f"%t{next(self._numbers)}"
        self.lines.append(f"  {made} = {text}")
        return made

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def alloca(self, type: str, zero: bool = False) -> str:
        """Memory that lives as long as the wave."""
        made = f"%a{next(self._numbers)}"
        self.allocas.append(f"  {made} = alloca {type}")
        if zero:
            self.zeros.append(f"  store {type} zeroinitializer, ptr {made}")
        return made

    # --- vectors ---

    def vector_type(self, type: str) -> str:
        return f"<{self.lanes} x {type}>"

    def splat(self, type: str, text: str) -> str:
        """A vector of one value."""
        if not text.startswith("%"):
            return f"splat ({type} {text})" if text not in ("zeroinitializer", "null") else "zeroinitializer"
        kind = self.vector_type(type)
        one = self.new(f"insertelement {kind} poison, {type} {text}, i64 0")
        return self.new(f"shufflevector {kind} {one}, {kind} poison, <{self.lanes} x i32> zeroinitializer")

    def steps(self, type: str, step: int) -> str:
        """The vector 0, step, 2 step, ..."""
        bits = int(type[1:])
        numbers = (f"{type} {_wrapped(step * lane, bits)}" for lane in range(self.lanes))
        return f"<{', '.join(numbers)}>"

    def vector(self, value: Lanes) -> str:
        if value.step is None:
            return value.text
        made = self.splat(value.type, value.text)
        if value.step == 0:
            return made
        return self.new(f"add {self.vector_type(value.type)} {made}, {self.steps(value.type, value.step)}")

    def apply(self, template: str, *operands: Lanes, type: str = "") -> Lanes:
        """An instruction, with {T} for the type of the first operand and {0}, {1}, ... for the operands'
        texts.

        ``type``: of the result, if it differs.
        """
        made = type or operands[0].type
        if all(operand.uniform for operand in operands):
            texts = [operand.text for operand in operands]
            return Lanes(made, self.new(template.format(*texts, T=operands[0].type, R=made)), 0)
        texts = [self.vector(operand) for operand in operands]
        kinds = {"T": self.vector_type(operands[0].type), "R": self.vector_type(made)}
        return Lanes(made, self.new(template.format(*texts, **kinds)))

    def intrinsic(self, name: str, result: str, *operands: Lanes, more: str = "") -> Lanes:
        """A function of LLVM on each lane, such as ``llvm.sqrt``; ``more``: arguments that are constants.

        Operands are scalars if all of them are uniform, otherwise vectors; ``name`` says which (see
        ``suffix``).
        """
        types = [operand.type for operand in operands]
        if all(operand.uniform for operand in operands):
            given = ", ".join(f"{kind} {each.text}" for kind, each in zip(types, operands, strict=True))
            return Lanes(result, self.new(f"call {result} @{name}({given}{more})"), 0)
        vectors = [self.vector(operand) for operand in operands]
        given = ", ".join(
            f"{self.vector_type(kind)} {each}" for kind, each in zip(types, vectors, strict=True)
        )
        return Lanes(result, self.new(f"call {self.vector_type(result)} @{name}({given}{more})"))

    def suffix(self, *values: Lanes) -> str:
        """How LLVM's overloaded functions name the type: ``f32``, ``v16f32``."""
        kind = {"half": "f16", "float": "f32", "double": "f64"}.get(values[0].type, values[0].type)
        return kind if all(value.uniform for value in values) else f"v{self.lanes}{kind}"

    def select(self, condition: Lanes, left: Lanes, right: Lanes) -> Lanes:
        if condition.uniform and not (left.uniform and right.uniform):
            kind = self.vector_type(left.type)
            a, b = self.vector(left), self.vector(right)
            return Lanes(left.type, self.new(f"select i1 {condition.text}, {kind} {a}, {kind} {b}"))
        if condition.uniform:
            return Lanes(
                left.type,
                self.new(f"select i1 {condition.text}, {left.type} {left.text}, {right.type} {right.text}"),
                0,
            )
        kind, bits = self.vector_type(left.type), self.vector_type("i1")
        a, b = self.vector(left), self.vector(right)
        return Lanes(left.type, self.new(f"select {bits} {condition.text}, {kind} {a}, {kind} {b}"))


def llvm_type(type: Type) -> str:
    """Of a number."""
    if type.kind == "int":
        return f"i{type.bits}"
    return {16: "half", 32: "float", 64: "double"}[type.bits]


def constant(type: Type, bits: int) -> str:
    """Of a number, by its bits."""
    if type.kind == "int":
        return ("true" if bits else "false") if type.bits == 1 else str(_wrapped(bits, type.bits))
    if type.bits == 16:
        return f"0xH{bits:04X}"
    return f"0x{_widened(bits) if type.bits == 32 else bits:016X}"


def _widened(bits: int) -> int:
    """The bits of the double that a float is, as LLVM writes floats; a NaN keeps its bits."""
    sign, exponent, fraction = bits >> 31, bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        exponent = 0x7FF
    elif exponent:
        exponent += 1023 - 127
    elif fraction:
        shift = 24 - fraction.bit_length()
        exponent, fraction = 1023 - 126 - shift, fraction << shift & 0x7FFFFF
    return sign << 63 | exponent << 52 | fraction << 29


def _wrapped(number: int, bits: int) -> int:
    """As a signed number."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number
