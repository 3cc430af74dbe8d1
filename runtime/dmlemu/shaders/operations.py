"""The operations of DXIL, ``dx.op.*``: a row for each in ``OPERATIONS``, by its opcode.

https://github.com/microsoft/DirectXShaderCompiler/blob/main/docs/DXIL.rst
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import arithmetic, buffers, wave_operations
from .errors import MalformedShader, UnsupportedShader
from .pointers import zero
from .text import Lanes, llvm_type
from .values import Function, Instruction, Value

if TYPE_CHECKING:
    from .lanes import Wave

__all__ = ["OPERATIONS", "Operation", "ThreadIds", "call", "is_varying"]

Result = Lanes | tuple[Lanes, ...] | None


@dataclass(frozen=True)
class Operation:
    name: str
    """As DXIL.rst spells it."""
    write: Callable[[Wave, Instruction], Result]
    source: str = ""
    """When its result varies though its operands do not: ``lanes``: always; ``memory``: in a linear
    region; ``wave``: there, and never elsewhere, whatever its operands are."""


class ThreadIds:
    """``SV_GroupThreadID`` and its relatives; lane 0 is number ``%first`` of the group.

    Threads have their numbers in the order of SV_GroupIndex.  Where a shader has quads and its group is even
    along x and y, four numbers are a square of 2 x 2 threads (shader model 6.6).
    """

    def __init__(self, wave: Wave) -> None:
        x, y, _z = wave.target.threads
        self.wave = wave
        self.squares = x % 2 == y % 2 == 0 and _has_quads(wave.function)
        self.number = Lanes("i32", "%first", 1)

    @property
    def flattened(self) -> Lanes:
        """SV_GroupIndex."""
        if not self.squares:
            return self.number
        code, (x, y, _z) = self.wave.code, self.wave.target.threads
        total = self.in_group(0)
        for dimension, stride in ((1, x), (2, x * y)):
            scaled = code.apply("mul {T} {0}, {1}", self.in_group(dimension), Lanes("i32", str(stride), 0))
            total = code.apply("add {T} {0}, {1}", total, scaled)
        return total

    def is_uniform(self, dimension: int) -> bool:
        """Of SV_GroupThreadID."""
        x, y, _z = self.wave.target.threads
        if self.squares:
            return self.wave.target.threads[dimension] == 1
        lanes = self.wave.target.lanes
        whole = (1, x, x * y)[dimension]
        return self.wave.target.threads[dimension] == 1 or (dimension > 0 and whole % lanes == 0)

    def in_group(self, dimension: int) -> Lanes:
        code, (x, y, z) = self.wave.code, self.wave.target.threads
        if dimension > 2:
            raise MalformedShader(f"dimension {dimension} of a thread", "part DXIL")
        if (x, y, z)[dimension] == 1:
            return Lanes("i32", "0", 0)
        if self.squares:
            return self._in_squares(dimension)
        if y == z == 1:
            return self.number
        if x % code.lanes == 0 or (dimension > 0 and self.is_uniform(dimension)):
            first = Lanes("i32", "%first", 0)
            found = self._along(first, dimension)
            return Lanes("i32", found.text, 1 if dimension == 0 else 0)
        return self._along(Lanes("i32", code.vector(self.number)), dimension)

    def _along(self, index: Lanes, dimension: int) -> Lanes:
        code, (x, y, _z) = self.wave.code, self.wave.target.threads
        if dimension == 0:
            return code.apply("urem {T} {0}, {1}", index, Lanes("i32", str(x), 0))
        over = code.apply("udiv {T} {0}, {1}", index, Lanes("i32", str(x if dimension == 1 else x * y), 0))
        return over if dimension == 2 else code.apply("urem {T} {0}, {1}", over, Lanes("i32", str(y), 0))

    def _in_squares(self, dimension: int) -> Lanes:
        code, (x, y, _z) = self.wave.code, self.wave.target.threads
        number = Lanes("i32", code.vector(self.number))
        square = code.apply("udiv {T} {0}, {1}", number, Lanes("i32", "4", 0))
        if dimension == 2:
            return code.apply("udiv {T} {0}, {1}", square, Lanes("i32", str(x * y // 4), 0))
        if dimension == 1:
            square = code.apply("udiv {T} {0}, {1}", square, Lanes("i32", str(x // 2), 0))
            number = code.apply("lshr {T} {0}, {1}", number, Lanes("i32", "1", 0))
        within = code.apply("urem {T} {0}, {1}", square, Lanes("i32", str((x, y)[dimension] // 2), 0))
        twice = code.apply("shl {T} {0}, {1}", within, Lanes("i32", "1", 0))
        odd = code.apply("and {T} {0}, {1}", number, Lanes("i32", "1", 0))
        return code.apply("or {T} {0}, {1}", twice, odd)

    def in_grid(self, dimension: int) -> Lanes:
        code = self.wave.code
        inside = self.in_group(dimension)
        begin = code.new(f"mul i32 %group.{'xyz'[dimension]}, {self.wave.target.threads[dimension]}")
        if inside.step is None:
            return code.apply("add {T} {0}, {1}", inside, Lanes("i32", begin, 0))
        return Lanes("i32", code.new(f"add i32 {inside.text}, {begin}"), inside.step)


def _has_quads(function: Function) -> bool:
    """Whether an operation is between the four lanes of a quad."""
    return any(
        made.name == "call" and getattr(made.operands[1], "value", None) in _OF_QUADS
        for block in function.blocks
        for made in block.instructions
        if len(made.operands) > 1
    )


def is_varying(ids: ThreadIds, made: Instruction, linear: bool, varying: set[Value]) -> bool:
    """Whether the result of a call may differ between the lanes that run together, where ``varying`` do."""
    operation = _operation(made)
    if operation is None:
        return False
    if operation.name in ("ThreadId", "ThreadIdInGroup"):
        return not ids.is_uniform(min(2, ids.wave.number(made.operands[2], "a dimension")))
    if operation.source == "wave":
        read = made.operands[3:4] if operation.name == "WaveReadLaneAt" else []
        return linear or not varying.isdisjoint(read)
    return (
        operation.source == "lanes"
        or (operation.source == "memory" and linear)
        or not varying.isdisjoint(made.operands)
    )


def call(wave: Wave, made: Instruction) -> Result:
    operation = _operation(made)
    return None if operation is None else operation.write(wave, made)


def _operation(made: Instruction) -> Operation | None:
    """None: debug information, or how long a local variable is used."""
    function = made.operands[0]
    assert isinstance(function, Function)
    if function.name.startswith(("llvm.dbg.", "llvm.lifetime.")):
        return None
    if not function.name.startswith("dx.op.") or len(made.operands) < 2:
        raise UnsupportedShader(f"a call of {function.name}; functions of the source are to be inlined")
    opcode = getattr(made.operands[1], "value", None)
    found = OPERATIONS.get(opcode) if isinstance(opcode, int) else None
    if found is None:
        raise UnsupportedShader(
            f"operation {function.name} (opcode {opcode}) is not emulated; "
            "the reference of shaders lists those that are"
        )
    return found


def _given(wave: Wave, made: Instruction) -> list[Lanes]:
    return [wave.value(operand) for operand in made.operands[2:]]


# --- arithmetic ---


def _simple(template: str) -> Callable[[Wave, Instruction], Lanes]:
    return lambda wave, made: wave.code.apply(template, *_given(wave, made))


def _llvm(name: str, more: str = "") -> Callable[[Wave, Instruction], Lanes]:
    """A function of LLVM whose result has the type of its operands."""

    def write(wave: Wave, made: Instruction) -> Lanes:
        given = _given(wave, made)
        return wave.code.intrinsic(
            f"llvm.{name}.{wave.code.suffix(*given)}", given[0].type, *given, more=more
        )

    return write


def _number_of(kind: str, value: float) -> Lanes:
    """A float that all of LLVM's types write alike."""
    if kind == "half":
        return Lanes(kind, {0.0: "0xH0000", 1.0: "0xH3C00"}[value], 0)
    return Lanes(kind, f"{value:.1f}", 0)


def _extreme(compare: str) -> Callable[[Wave, Instruction], Lanes]:
    """The number of a number and NaN; the second of two that are equal."""

    def write(wave: Wave, made: Instruction) -> Lanes:
        code, (left, right) = wave.code, _given(wave, made)
        first = code.apply(f"fcmp {compare} {{T}} {{0}}, {{1}}", left, right, type="i1")
        alone = code.apply("fcmp uno {T} {0}, {1}", right, right, type="i1")
        return code.select(code.apply("or {T} {0}, {1}", first, alone), left, right)

    return write


def _saturate(wave: Wave, made: Instruction) -> Lanes:
    """NaN is 0."""
    code, (value,) = wave.code, _given(wave, made)
    zero, one = _number_of(value.type, 0.0), _number_of(value.type, 1.0)
    above = code.apply("fcmp ogt {T} {0}, {1}", value, zero, type="i1")
    positive = code.select(above, value, zero)
    below = code.apply("fcmp olt {T} {0}, {1}", positive, one, type="i1")
    return code.select(below, positive, one)


def _class(test: int) -> Callable[[Wave, Instruction], Lanes]:
    """``test``: bits of ``llvm.is.fpclass``."""

    def write(wave: Wave, made: Instruction) -> Lanes:
        (value,) = _given(wave, made)
        name = f"llvm.is.fpclass.{wave.code.suffix(value)}"
        return wave.code.intrinsic(name, "i1", value, more=f", i32 {test}")

    return write


def _function(wave: Wave, made: Instruction) -> Lanes:
    """By a function in C, in FLOAT32."""
    code, (value,) = wave.code, _given(wave, made)
    kind = value.type
    if kind == "half":
        value = code.apply("fpext {T} {0} to {R}", value, type="float")
    if value.type != "float":
        raise UnsupportedShader(f"this function of {value.type}")
    opcode = wave.number(made.operands[1], "an opcode")
    out = wave.result("float")
    code.do(
        f"call void @dmlk_shader_floats(i32 {opcode}, ptr {wave.array(value)}, ptr {out}, i32 {code.lanes})"
    )
    found = wave.loaded("float", out)
    if value.uniform:
        found = arithmetic.first_lane(wave, found)
    return code.apply("fptrunc {T} {0} to {R}", found, type="half") if kind == "half" else found


def _fraction(wave: Wave, made: Instruction) -> Lanes:
    code, (value,) = wave.code, _given(wave, made)
    below = code.intrinsic(f"llvm.floor.{code.suffix(value)}", value.type, value)
    return code.apply("fsub {T} {0}, {1}", value, below)


def _reciprocal_root(wave: Wave, made: Instruction) -> Lanes:
    code, (value,) = wave.code, _given(wave, made)
    root = code.intrinsic(f"llvm.sqrt.{code.suffix(value)}", value.type, value)
    return code.apply("fdiv {T} {0}, {1}", _number_of(value.type, 1.0), root)


def _multiply_add(wave: Wave, made: Instruction) -> Lanes:
    """Rounded twice."""
    code, (a, b, c) = wave.code, _given(wave, made)
    letter = "f" if a.type in ("half", "float", "double") else ""
    return code.apply(
        f"{letter}add {{T}} {{0}}, {{1}}", code.apply(f"{letter}mul {{T}} {{0}}, {{1}}", a, b), c
    )


def _dot(wave: Wave, made: Instruction) -> Lanes:
    """Products from the first on, added one after the other."""
    code, given = wave.code, _given(wave, made)
    half = len(given) // 2
    total: Lanes | None = None
    for left, right in zip(given[:half], given[half:], strict=True):
        product = code.apply("fmul {T} {0}, {1}", left, right)
        total = product if total is None else code.apply("fadd {T} {0}, {1}", total, product)
    assert total is not None
    return total


def _bit_count(name: str) -> Callable[[Wave, Instruction], Lanes]:
    """The result has 32 bits."""

    def write(wave: Wave, made: Instruction) -> Lanes:
        (value,) = _given(wave, made)
        found = wave.code.intrinsic(f"llvm.{name}.{wave.code.suffix(value)}", value.type, value)
        return _to_i32(wave, found)

    return write


def _to_i32(wave: Wave, value: Lanes) -> Lanes:
    bits = int(value.type[1:])
    if bits == 32:
        return value
    return wave.code.apply(f"{'trunc' if bits > 32 else 'zext'} {{T}} {{0}} to {{R}}", value, type="i32")


def _first_bit(name: str, signed: bool = False) -> Callable[[Wave, Instruction], Lanes]:
    """From the top (``ctlz``) or the bottom (``cttz``); -1 where there is none.  Signed: the first that is
    not the sign."""

    def write(wave: Wave, made: Instruction) -> Lanes:
        code, (value,) = wave.code, _given(wave, made)
        zero = Lanes(value.type, "0", 0)
        if signed:
            negative = code.apply("icmp slt {T} {0}, {1}", value, zero, type="i1")
            turned = code.apply("xor {T} {0}, {1}", value, Lanes(value.type, "-1", 0))
            value = code.select(negative, turned, value)
        count = code.intrinsic(f"llvm.{name}.{code.suffix(value)}", value.type, value, more=", i1 false")
        none = code.apply("icmp eq {T} {0}, {1}", value, zero, type="i1")
        return code.select(none, Lanes("i32", "-1", 0), _to_i32(wave, count))

    return write


def _wide_multiply(extend: str) -> Callable[[Wave, Instruction], tuple[Lanes, ...]]:
    """The high and the low half."""

    def write(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
        code, given = wave.code, _given(wave, made)
        left, right = (code.apply(f"{extend} {{T}} {{0}} to {{R}}", each, type="i64") for each in given)
        product = code.apply("mul {T} {0}, {1}", left, right)
        high = code.apply("lshr {T} {0}, {1}", product, Lanes("i64", "32", 0))
        return tuple(code.apply("trunc {T} {0} to {R}", each, type="i32") for each in (high, product))

    return write


def _divide(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    left, right = _given(wave, made)
    return tuple(arithmetic.divide(wave, name, left, right) for name in ("udiv", "urem"))


def _carry(name: str, compare: str) -> Callable[[Wave, Instruction], tuple[Lanes, ...]]:
    def write(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
        code, (left, right) = wave.code, _given(wave, made)
        found = code.apply(f"{name} {{T}} {{0}}, {{1}}", left, right)
        beyond = (found, left) if name == "add" else (left, right)
        return found, code.apply(f"icmp {compare} {{T}} {{0}}, {{1}}", *beyond, type="i1")

    return write


def _field(signed: bool) -> Callable[[Wave, Instruction], Lanes]:
    """Ibfe and Ubfe: ``width`` bits from ``offset`` on; both count modulo 32."""

    def write(wave: Wave, made: Instruction) -> Lanes:
        code, (width, offset, value) = wave.code, _given(wave, made)
        w, o = (code.apply("and {T} {0}, {1}", each, Lanes("i32", "31", 0)) for each in (width, offset))
        end = code.apply("add {T} {0}, {1}", w, o)
        high = code.apply("sub {T} {0}, {1}", Lanes("i32", "32", 0), end)
        left = code.intrinsic(f"llvm.smax.{code.suffix(high)}", "i32", high, Lanes("i32", "0", 0))
        shifted = code.apply("shl {T} {0}, {1}", value, left)
        amount = code.apply("add {T} {0}, {1}", left, o)
        name = "ashr" if signed else "lshr"
        found = code.apply(f"{name} {{T}} {{0}}, {{1}}", shifted, amount)
        nothing = code.apply("icmp eq {T} {0}, {1}", w, Lanes("i32", "0", 0), type="i1")
        return code.select(nothing, Lanes("i32", "0", 0), found)

    return write


def _insert(wave: Wave, made: Instruction) -> Lanes:
    """Bfi: ``width`` bits of the value at ``offset`` of the other."""
    code, (width, offset, value, other) = wave.code, _given(wave, made)
    w, o = (code.apply("and {T} {0}, {1}", each, Lanes("i32", "31", 0)) for each in (width, offset))
    ones = code.apply("shl {T} {0}, {1}", Lanes("i32", "-1", 0), w)
    mask = code.apply("xor {T} {0}, {1}", ones, Lanes("i32", "-1", 0))
    placed = code.apply("shl {T} {0}, {1}", mask, o)
    inserted = code.apply("and {T} {0}, {1}", code.apply("shl {T} {0}, {1}", value, o), placed)
    kept = code.apply(
        "and {T} {0}, {1}", other, code.apply("xor {T} {0}, {1}", placed, Lanes("i32", "-1", 0))
    )
    return code.apply("or {T} {0}, {1}", inserted, kept)


def _byte(wave: Wave, value: Lanes, number: int, signed: bool = False) -> Lanes:
    code = wave.code
    up = code.apply("shl {T} {0}, {1}", value, Lanes("i32", str(24 - 8 * number), 0))
    return code.apply(f"{'ashr' if signed else 'lshr'} {{T}} {{0}}, {{1}}", up, Lanes("i32", "24", 0))


def _sum_of_differences(wave: Wave, made: Instruction) -> Lanes:
    """Msad: of the bytes of the reference that are not 0."""
    code, (reference, source, total) = wave.code, _given(wave, made)
    zero = Lanes("i32", "0", 0)
    for number in range(4):
        left, right = _byte(wave, reference, number), _byte(wave, source, number)
        difference = code.apply("sub {T} {0}, {1}", left, right)
        size = code.intrinsic(f"llvm.abs.{code.suffix(difference)}", "i32", difference, more=", i1 false")
        none = code.apply("icmp eq {T} {0}, {1}", left, zero, type="i1")
        total = code.apply("add {T} {0}, {1}", total, code.select(none, zero, size))
    return total


def _dot_of_bytes(signed: bool) -> Callable[[Wave, Instruction], Lanes]:
    def write(wave: Wave, made: Instruction) -> Lanes:
        code, (total, left, right) = wave.code, _given(wave, made)
        for number in range(4):
            a, b = (_byte(wave, each, number, signed) for each in (left, right))
            total = code.apply("add {T} {0}, {1}", total, code.apply("mul {T} {0}, {1}", a, b))
        return total

    return write


def _dot_of_halves(wave: Wave, made: Instruction) -> Lanes:
    code, (total, *given) = wave.code, _given(wave, made)
    ax, ay, bx, by = (code.apply("fpext {T} {0} to {R}", each, type="float") for each in given)
    for left, right in ((ax, bx), (ay, by)):
        total = code.apply("fadd {T} {0}, {1}", total, code.apply("fmul {T} {0}, {1}", left, right))
    return total


def _derivative(along: int, kept: int) -> Callable[[Wave, Instruction], Lanes]:
    """The difference of two lanes of a quad: bit ``along`` of their numbers; ``kept``: bits that stay."""

    def write(wave: Wave, made: Instruction) -> Lanes:
        code, (value,) = wave.code, _given(wave, made)
        vector, kind = code.vector(value), code.vector_type(value.type)

        def of(more: int) -> Lanes:
            lanes = ", ".join(f"i32 {(lane & ~3) | (lane & kept) | more}" for lane in range(code.lanes))
            return Lanes(
                value.type,
                code.new(f"shufflevector {kind} {vector}, {kind} poison, <{code.lanes} x i32> <{lanes}>"),
            )

        return code.apply("fsub {T} {0}, {1}", of(along), of(0))

    return write


# --- conversions ---


def _make_double(wave: Wave, made: Instruction) -> Lanes:
    code, given = wave.code, _given(wave, made)
    low, high = (code.apply("zext {T} {0} to {R}", each, type="i64") for each in given)
    joined = code.apply("or {T} {0}, {1}", low, code.apply("shl {T} {0}, {1}", high, Lanes("i64", "32", 0)))
    return code.apply("bitcast {T} {0} to {R}", joined, type="double")


def _split_double(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    code, (value,) = wave.code, _given(wave, made)
    bits = code.apply("bitcast {T} {0} to {R}", value, type="i64")
    high = code.apply("lshr {T} {0}, {1}", bits, Lanes("i64", "32", 0))
    return tuple(code.apply("trunc {T} {0} to {R}", each, type="i32") for each in (bits, high))


def _bits(wave: Wave, made: Instruction) -> Lanes:
    (value,) = _given(wave, made)
    return wave.code.apply("bitcast {T} {0} to {R}", value, type=llvm_type(made.type))


def _to_half(wave: Wave, made: Instruction) -> Lanes:
    """The bits of a half in an i32; to nearest, ties to even."""
    code, (value,) = wave.code, _given(wave, made)
    half = code.apply("fptrunc {T} {0} to {R}", value, type="half")
    bits = code.apply("bitcast {T} {0} to {R}", half, type="i16")
    return code.apply("zext {T} {0} to {R}", bits, type="i32")


def _from_half(wave: Wave, made: Instruction) -> Lanes:
    code, (value,) = wave.code, _given(wave, made)
    bits = code.apply("trunc {T} {0} to {R}", value, type="i16")
    half = code.apply("bitcast {T} {0} to {R}", bits, type="half")
    return code.apply("fpext {T} {0} to {R}", half, type="float")


def _convert(name: str) -> Callable[[Wave, Instruction], Lanes]:
    def write(wave: Wave, made: Instruction) -> Lanes:
        (value,) = _given(wave, made)
        return arithmetic.cast(wave, name, value, made.type)

    return write


def _unpack(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    """Unpack4x8: mode 0 unsigned, 1 signed; to 16 or 32 bits."""
    code = wave.code
    signed = wave.number(made.operands[2], "the mode of unpack") == 1
    value = wave.value(made.operands[3])
    kind = llvm_type(made.type.elements[0])
    found = [_byte(wave, value, number, signed) for number in range(4)]
    return tuple(
        each if kind == "i32" else code.apply("trunc {T} {0} to {R}", each, type=kind) for each in found
    )


def _pack(wave: Wave, made: Instruction) -> Lanes:
    """Pack4x8: mode 0 the lowest bits, 1 clamped unsigned, 2 clamped signed."""
    code = wave.code
    mode = wave.number(made.operands[2], "the mode of pack")
    total = Lanes("i32", "0", 0)
    for number, operand in enumerate(made.operands[3:7]):
        value = wave.value(operand)
        if value.type == "i16":
            value = code.apply("sext {T} {0} to {R}", value, type="i32")
        if mode:
            least, most = ((0, 255), (-128, 127))[mode - 1]
            suffix = code.suffix(value)
            value = code.intrinsic(f"llvm.smax.{suffix}", "i32", value, Lanes("i32", str(least), 0))
            value = code.intrinsic(f"llvm.smin.{suffix}", "i32", value, Lanes("i32", str(most), 0))
        byte = code.apply("and {T} {0}, {1}", value, Lanes("i32", "255", 0))
        total = code.apply(
            "or {T} {0}, {1}", total, code.apply("shl {T} {0}, {1}", byte, Lanes("i32", str(8 * number), 0))
        )
    return total


# --- buffers ---


def _nothing(wave: Wave, made: Instruction) -> None:
    """A handle: what uses it looks at how it was made."""


def _used(wave: Wave, made: Instruction) -> set[int]:
    """The members of a struct that anybody reads."""
    return {
        user.indices[0] for user in wave.users.get(made, ()) if user.name == "extractvalue" and user.indices
    }


def _load_row(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    """CBufferLoadLegacy: 16 bytes of a constant buffer."""
    view = buffers.view_of(wave, made.operands[2])
    row = buffers.offset_of(wave, wave.value(made.operands[3]), 16, Lanes("i32", "0", 0))
    return _components(wave, made, view, row, range(len(made.type.elements)))


def _load_constant(wave: Wave, made: Instruction) -> Lanes:
    """CBufferLoad: a number at a byte."""
    view = buffers.view_of(wave, made.operands[2])
    kind = llvm_type(made.type)
    offset = buffers.offset_of(wave, wave.value(made.operands[3]), 1, Lanes("i32", "0", 0))
    return buffers.load(wave, view, offset, kind, buffers.component_size(kind))


def _components(
    wave: Wave, made: Instruction, view: buffers.View, offset: Lanes, numbers: range
) -> tuple[Lanes, ...]:
    kind = llvm_type(made.type.elements[0])
    size, used = buffers.component_size(kind), _used(wave, made)
    found = []
    for number, member in enumerate(made.type.elements):
        if number in used and number in numbers:
            place = buffers.plus(wave, offset, size * number)
            found.append(buffers.load(wave, view, place, kind, size))
        else:
            found.append(zero(llvm_type(member)))
    if len(made.type.elements) == 5 and 4 in used:
        found[4] = Lanes("i32", "1", 0)  # all of the memory is there
    return tuple(found)


def _offset(wave: Wave, view: buffers.View, first: Value, second: Value, size: int) -> Lanes:
    """Of an element of a raw or structured buffer, in bytes."""
    index, zero = wave.value(first), Lanes("i32", "0", 0)
    if view.handle.kind == "structured":
        found = buffers.offset_of(wave, index, view.handle.stride, wave.value(second))
    else:
        found = buffers.offset_of(wave, index, 1, zero)
    return buffers.aligned(wave, found, min(size, 4))


def _load(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    """BufferLoad and RawBufferLoad."""
    view = buffers.view_of(wave, made.operands[2])
    if view.handle.kind == "typed":
        return _load_typed(wave, made, view)
    kind = llvm_type(made.type.elements[0])
    offset = _offset(wave, view, made.operands[3], made.operands[4], buffers.component_size(kind))
    return _components(wave, made, view, offset, range(4))


def _store(wave: Wave, made: Instruction) -> None:
    """BufferStore and RawBufferStore: the components of the mask."""
    view = buffers.view_of(wave, made.operands[2])
    mask = wave.number(made.operands[9], "the mask of a store")
    if view.handle.kind == "typed":
        _store_typed(wave, made, view)
        return
    size = buffers.component_size(llvm_type(made.operands[5].type))
    offset = _offset(wave, view, made.operands[3], made.operands[4], size)
    for number in range(4):
        if mask >> number & 1:
            place = buffers.plus(wave, offset, size * number)
            buffers.store(wave, view, place, wave.value(made.operands[5 + number]), size)


_TYPED = {
    "float": (1, "float"),
    "half": (1, "float"),
    "i32": (7, "i32"),
    "i16": (3, "i32"),
    "i64": (7, "i32"),
}
"""Number in ``dmlk_shader_type`` and type of what C reads and writes, by the type of the shader."""


def _typed_element(wave: Wave, made: Instruction, view: buffers.View, kind: str) -> tuple[str, str]:
    """The views and the index of each lane, in memory."""
    if kind not in _TYPED or kind == "i64":
        raise UnsupportedShader(f"a typed buffer of {kind}")
    return wave.array(view.pointer), wave.array(wave.value(made.operands[3]))


def _load_typed(wave: Wave, made: Instruction, view: buffers.View) -> tuple[Lanes, ...]:
    code, kind = wave.code, llvm_type(made.type.elements[0])
    views, indices = _typed_element(wave, made, view, kind)
    number, wide = _TYPED[kind]
    out = code.alloca(f"[{4 * code.lanes} x {wide}], align 64")
    wave.accessed_typed(view, wave.value(made.operands[3]), "read")
    code.do(
        f"call void @dmlk_shader_load_typed(ptr {views}, ptr {indices}, i64 {wave.mask_bits(wave.mask)}, "
        f"i32 {number}, ptr {out}, i32 {code.lanes})"
    )
    uniform = view.pointer.uniform and wave.value(made.operands[3]).uniform
    found = []
    for component in range(4):
        place = code.new(f"getelementptr i8, ptr {out}, i64 {4 * code.lanes * component}")
        each = wave.loaded(wide, place)
        if uniform:
            each = _first_active(wave, each)
        if wide != kind:
            each = code.apply(
                f"{'fptrunc' if wide == 'float' else 'trunc'} {{T}} {{0}} to {{R}}", each, type=kind
            )
        found.append(each)
    return (*found, Lanes("i32", "1", 0))


def _first_active(wave: Wave, value: Lanes) -> Lanes:
    """Of the first lane that runs."""
    code = wave.code
    if wave.mask is None:
        return arithmetic.first_lane(wave, value)
    lane = code.new(f"call i64 @llvm.cttz.i64(i64 {wave.mask_bits(wave.mask)}, i1 true)")
    kind = code.vector_type(value.type)
    return Lanes(value.type, code.new(f"extractelement {kind} {value.text}, i64 {lane}"), 0)


def _store_typed(wave: Wave, made: Instruction, view: buffers.View) -> None:
    code, kind = wave.code, llvm_type(made.operands[5].type)
    views, indices = _typed_element(wave, made, view, kind)
    number, wide = _TYPED[kind]
    given = code.alloca(f"[{4 * code.lanes} x {wide}], align 64")
    for component in range(4):
        value = wave.value(made.operands[5 + component])
        if wide != kind:
            value = code.apply(
                f"{'fpext' if wide == 'float' else 'zext'} {{T}} {{0}} to {{R}}", value, type=wide
            )
        place = code.new(f"getelementptr i8, ptr {given}, i64 {4 * code.lanes * component}")
        code.do(f"store {code.vector_type(wide)} {code.vector(value)}, ptr {place}")
    wave.accessed_typed(view, wave.value(made.operands[3]), "write")
    code.do(
        f"call void @dmlk_shader_store_typed(ptr {views}, ptr {indices}, i64 {wave.mask_bits(wave.mask)}, "
        f"i32 {number}, ptr {given}, i32 {code.lanes})"
    )


def _place_of_atomic(wave: Wave, made: Instruction, operands: tuple[Value, Value], size: int) -> str:
    """A pointer for each lane, NULL where it is outside of the view."""
    code = wave.code
    view = buffers.view_of(wave, made.operands[2])
    first, second = operands
    if view.handle.kind == "typed":
        offset = buffers.offset_of(wave, wave.value(first), size, Lanes("i32", "0", 0))
    else:
        offset = _offset(wave, view, first, second, size)
    wave.accessed(view, offset, size, "atomic")
    inside = buffers.inside_of(wave, view, offset, size)
    wave.outside(view, offset, size, inside, "atomic")
    kind = code.vector_type("ptr")
    places = buffers.pointers(wave, view, offset)
    return code.new(
        f"select {code.vector_type('i1')} {code.vector(inside)}, {kind} {places}, {kind} zeroinitializer"
    )


def _atomic(wave: Wave, made: Instruction) -> Lanes:
    operation = wave.number(made.operands[3], "an atomic operation")
    if operation > 8:
        raise MalformedShader(f"atomic operation {operation}", "part DXIL")
    value = wave.value(made.operands[7])
    size = buffers.component_size(value.type)
    places = _place_of_atomic(wave, made, (made.operands[4], made.operands[5]), size)
    return wave.atomic(operation, places, value, value, size)


def _exchange(wave: Wave, made: Instruction) -> Lanes:
    expected, value = wave.value(made.operands[6]), wave.value(made.operands[7])
    size = buffers.component_size(value.type)
    places = _place_of_atomic(wave, made, (made.operands[3], made.operands[4]), size)
    return wave.atomic(10, places, value, expected, size)


def _count(wave: Wave, made: Instruction) -> Lanes:
    """BufferUpdateCounter: what an increment returns is the old number, and a decrement the new one."""
    code = wave.code
    view = buffers.view_of(wave, made.operands[2])
    step = wave.number(made.operands[3], "the step of a counter")
    step = step - 256 if step > 127 else step
    out = wave.result("i32")
    wave.counted(view)
    code.do(
        f"call void @dmlk_shader_count(ptr {wave.array(view.pointer)}, i32 {step}, "
        f"i64 {wave.mask_bits(wave.mask)}, ptr {out}, i32 {code.lanes})"
    )
    return wave.loaded("i32", out)


def _dimensions(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    """GetDimensions: elements, or bytes of a raw buffer; then the stride of a structured one."""
    code = wave.code
    view = buffers.view_of(wave, made.operands[2])
    size = view.bytes
    if view.handle.kind == "raw":
        size = code.apply("and {T} {0}, {1}", size, Lanes("i64", "-4", 0))
    else:
        stride = Lanes("i64", str(view.handle.stride), 0)
        if view.handle.kind == "typed":
            stride = code.apply("zext {T} {0} to {R}", buffers.stride_of(wave, view), type="i64")
        size = arithmetic.divide(wave, "udiv", size, stride)
    zero = Lanes("i32", "0", 0)
    second = Lanes("i32", str(view.handle.stride), 0) if view.handle.kind == "structured" else zero
    return code.apply("trunc {T} {0} to {R}", size, type="i32"), second, zero, zero


def _fully_mapped(wave: Wave, made: Instruction) -> Lanes:
    """All memory of a buffer is there."""
    return Lanes("i1", "true", 0)


# --- threads ---


def _barrier(wave: Wave, made: Instruction) -> None:
    """Bit 0 of its mode: all threads of the group meet."""
    mode = wave.number(made.operands[2], "the mode of a barrier")
    code = wave.code
    if wave.target.checked:
        code.do(
            f"call void @dmlk_shader_barrier(ptr %call, ptr %state, i32 {wave.line}, i32 {mode}, "
            f"i64 {wave.mask_bits(wave.mask)})"
        )
    if mode & 1 and wave.target.suspends:
        _compute_before(wave, made)
        go = code.name("go")
        state = code.new("call i8 @llvm.coro.suspend(token none, i1 false)")
        code.do(f"switch i8 {state}, label %suspend [i8 0, label %{go} i8 1, label %suspend]")
        code.label(go)


def _compute_before(wave: Wave, barrier: Instruction) -> None:
    """Vectors that are needed after a barrier are computed before it, and once.

    LLVM would save all that they are computed from, and compute them again; it does not see through memory
    that is marked volatile.
    """
    block = wave.block.instructions
    before = dict.fromkeys(block[: block.index(barrier)])
    for made in before:
        value = wave.values.get(made)
        if made in wave.hidden:
            continue
        later = any(user.name == "phi" or user not in before for user in wave.users.get(made, ()))
        if later and made.name in arithmetic.INSTRUCTIONS and isinstance(value, Lanes) and value.step is None:
            kind, place = wave.code.vector_type(value.type), wave.result(value.type)
            wave.code.do(f"store volatile {kind} {value.text}, ptr {place}")
            wave.values[made] = Lanes(value.type, wave.code.new(f"load volatile {kind}, ptr {place}"))
            wave.hidden.add(made)


def _thread(which: str) -> Callable[[Wave, Instruction], Lanes]:
    def write(wave: Wave, made: Instruction) -> Lanes:
        if which == "flattened":
            return wave.ids.flattened
        dimension = wave.number(made.operands[2], "a dimension")
        if which == "group":
            return Lanes("i32", f"%group.{'xyz'[min(dimension, 2)]}", 0)
        return wave.ids.in_grid(dimension) if which == "grid" else wave.ids.in_group(dimension)

    return write


_OF_QUADS = (83, 84, 85, 86, 122, 123)

OPERATIONS: dict[int, Operation] = {
    6: Operation("FAbs", _llvm("fabs")),
    7: Operation("Saturate", _saturate),
    8: Operation("IsNaN", _class(0x003)),
    9: Operation("IsInf", _class(0x204)),
    10: Operation("IsFinite", _class(0x1F8)),
    11: Operation("IsNormal", _class(0x108)),
    12: Operation("Cos", _function),
    13: Operation("Sin", _function),
    14: Operation("Tan", _function),
    15: Operation("Acos", _function),
    16: Operation("Asin", _function),
    17: Operation("Atan", _function),
    18: Operation("Hcos", _function),
    19: Operation("Hsin", _function),
    20: Operation("Htan", _function),
    21: Operation("Exp", _function),
    22: Operation("Frc", _fraction),
    23: Operation("Log", _function),
    24: Operation("Sqrt", _llvm("sqrt")),
    25: Operation("Rsqrt", _reciprocal_root),
    26: Operation("Round_ne", _llvm("roundeven")),
    27: Operation("Round_ni", _llvm("floor")),
    28: Operation("Round_pi", _llvm("ceil")),
    29: Operation("Round_z", _llvm("trunc")),
    30: Operation("Bfrev", _llvm("bitreverse")),
    31: Operation("Countbits", _bit_count("ctpop")),
    32: Operation("FirstbitLo", _first_bit("cttz")),
    33: Operation("FirstbitHi", _first_bit("ctlz")),
    34: Operation("FirstbitSHi", _first_bit("ctlz", signed=True)),
    35: Operation("FMax", _extreme("ogt")),
    36: Operation("FMin", _extreme("olt")),
    37: Operation("IMax", _llvm("smax")),
    38: Operation("IMin", _llvm("smin")),
    39: Operation("UMax", _llvm("umax")),
    40: Operation("UMin", _llvm("umin")),
    41: Operation("IMul", _wide_multiply("sext")),
    42: Operation("UMul", _wide_multiply("zext")),
    43: Operation("UDiv", _divide),
    44: Operation("UAddc", _carry("add", "ult")),
    45: Operation("USubb", _carry("sub", "ult")),
    46: Operation("FMad", _multiply_add),
    47: Operation("Fma", _llvm("fma")),
    48: Operation("IMad", _multiply_add),
    49: Operation("UMad", _multiply_add),
    50: Operation("Msad", _sum_of_differences),
    51: Operation("Ibfe", _field(signed=True)),
    52: Operation("Ubfe", _field(signed=False)),
    53: Operation("Bfi", _insert),
    54: Operation("Dot2", _dot),
    55: Operation("Dot3", _dot),
    56: Operation("Dot4", _dot),
    57: Operation("CreateHandle", _nothing),
    58: Operation("CBufferLoad", _load_constant, "memory"),
    59: Operation("CBufferLoadLegacy", _load_row, "memory"),
    68: Operation("BufferLoad", _load, "memory"),
    69: Operation("BufferStore", _store),
    70: Operation("BufferUpdateCounter", _count, "lanes"),
    71: Operation("CheckAccessFullyMapped", _fully_mapped),
    72: Operation("GetDimensions", _dimensions),
    78: Operation("AtomicBinOp", _atomic, "lanes"),
    79: Operation("AtomicCompareExchange", _exchange, "lanes"),
    80: Operation("Barrier", _barrier),
    83: Operation("DerivCoarseX", _derivative(1, 0), "lanes"),
    84: Operation("DerivCoarseY", _derivative(2, 0), "lanes"),
    85: Operation("DerivFineX", _derivative(1, 2), "lanes"),
    86: Operation("DerivFineY", _derivative(2, 1), "lanes"),
    93: Operation("ThreadId", _thread("grid")),
    94: Operation("GroupId", _thread("group")),
    95: Operation("ThreadIdInGroup", _thread("inside")),
    96: Operation("FlattenedThreadIdInGroup", _thread("flattened"), "lanes"),
    101: Operation("MakeDouble", _make_double),
    102: Operation("SplitDouble", _split_double),
    **{opcode: Operation(*row) for opcode, row in wave_operations.ROWS.items()},
    124: Operation("BitcastI16toF16", _bits),
    125: Operation("BitcastF16toI16", _bits),
    126: Operation("BitcastI32toF32", _bits),
    127: Operation("BitcastF32toI32", _bits),
    128: Operation("BitcastI64toF64", _bits),
    129: Operation("BitcastF64toI64", _bits),
    130: Operation("LegacyF32ToF16", _to_half),
    131: Operation("LegacyF16ToF32", _from_half),
    132: Operation("LegacyDoubleToFloat", _convert("fptrunc")),
    133: Operation("LegacyDoubleToSInt32", _convert("fptosi")),
    134: Operation("LegacyDoubleToUInt32", _convert("fptoui")),
    139: Operation("RawBufferLoad", _load, "memory"),
    140: Operation("RawBufferStore", _store),
    162: Operation("Dot2AddHalf", _dot_of_halves),
    163: Operation("Dot4AddI8Packed", _dot_of_bytes(signed=True)),
    164: Operation("Dot4AddU8Packed", _dot_of_bytes(signed=False)),
    216: Operation("AnnotateHandle", _nothing),
    217: Operation("CreateHandleFromBinding", _nothing),
    218: Operation("CreateHandleFromHeap", _nothing),
    219: Operation("Unpack4x8", _unpack),
    220: Operation("Pack4x8", _pack),
}
