"""Operations between the lanes of a wave (DXIL.rst, shader model 6.0); what is not plain is done in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .errors import MalformedShader
from .text import Lanes
from .values import Instruction

if TYPE_CHECKING:
    from .lanes import Wave

__all__ = ["ROWS"]

_Write = Callable[["Wave", Instruction], Lanes | tuple[Lanes, ...] | None]
_ALL_EQUAL, _READ_AT, _ACTIVE, _BIT, _PREFIX, _QUAD_AT, _QUAD, _MATCH, _MULTI = (
    115,
    117,
    119,
    120,
    121,
    122,
    123,
    165,
    166,
)


def _index(wave: Wave, made: Instruction) -> Lanes:
    return Lanes("i32", "0", 1)


def _count(wave: Wave, made: Instruction) -> Lanes:
    return Lanes("i32", str(wave.code.lanes), 0)


def _first(wave: Wave) -> str:
    """The first lane that runs, as an i64."""
    if wave.mask is None:
        return "0"
    return wave.code.new(f"call i64 @llvm.cttz.i64(i64 {wave.mask_bits(wave.mask)}, i1 true)")


def _is_first(wave: Wave, made: Instruction) -> Lanes:
    code = wave.code
    first = code.new(f"trunc i64 {_first(wave)} to i32") if wave.mask is not None else "0"
    return code.apply(
        "icmp eq {T} {0}, {1}", Lanes("i32", code.steps("i32", 1)), Lanes("i32", first, 0), type="i1"
    )


def _bits_of(wave: Wave, value: Lanes) -> str:
    """Of the lanes that run, those where a bool is true, as an i64."""
    return wave.mask_bits(wave.both(wave.mask, wave.code.vector(value)))


def _any(wave: Wave, made: Instruction) -> Lanes:
    bits = _bits_of(wave, wave.value(made.operands[2]))
    return Lanes("i1", wave.code.new(f"icmp ne i64 {bits}, 0"), 0)


def _all(wave: Wave, made: Instruction) -> Lanes:
    bits = _bits_of(wave, wave.value(made.operands[2]))
    return Lanes("i1", wave.code.new(f"icmp eq i64 {bits}, {wave.mask_bits(wave.mask)}"), 0)


def _ballot(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    code = wave.code
    bits = _bits_of(wave, wave.value(made.operands[2]))
    low = code.new(f"trunc i64 {bits} to i32")
    high = code.new(f"trunc i64 {code.new(f'lshr i64 {bits}, 32')} to i32")
    return tuple(Lanes("i32", text, 0) for text in (low, high, "0", "0"))


def _count_bits(wave: Wave, made: Instruction) -> Lanes:
    code = wave.code
    found = code.new(f"call i64 @llvm.ctpop.i64(i64 {_bits_of(wave, wave.value(made.operands[2]))})")
    return Lanes("i32", code.new(f"trunc i64 {found} to i32"), 0)


def _count_before(wave: Wave, made: Instruction) -> Lanes:
    """Of the lanes before each."""
    code = wave.code
    bits = Lanes("i64", _bits_of(wave, wave.value(made.operands[2])), 0)
    below = [f"i64 {_signed((1 << lane) - 1)}" for lane in range(code.lanes)]
    before = code.apply("and {T} {0}, {1}", bits, Lanes("i64", f"<{', '.join(below)}>"))
    found = code.intrinsic(f"llvm.ctpop.{code.suffix(before)}", "i64", before)
    return code.apply("trunc {T} {0} to {R}", found, type="i32")


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _read_first(wave: Wave, made: Instruction) -> Lanes:
    code, value = wave.code, wave.value(made.operands[2])
    if value.uniform:
        return value
    kind = code.vector_type(value.type)
    return Lanes(value.type, code.new(f"extractelement {kind} {code.vector(value)}, i64 {_first(wave)}"), 0)


_TYPES = {"half": 0, "float": 1, "double": 2, "i16": 3, "i32": 4, "i64": 5, "i1": 7}
"""In ``dmlk_shader_type``; unsigned integers come three later."""


def _between(
    wave: Wave, opcode: int, value: Lanes, kind: int = 0, unsigned: bool = False, more: Lanes | None = None
) -> Lanes:
    """By ``dmlk_shader_wave``; an i64 for each lane."""
    if value.type not in _TYPES:
        raise MalformedShader(f"a wave operation on {value.type}", "part DXIL")
    code = wave.code
    type = _TYPES[value.type] + (3 if unsigned and value.type in ("i16", "i32", "i64") else 0)
    given = wave.array(wave.as_bits(value))
    other = given if more is None else wave.array(wave.as_bits(more))
    out = wave.result("i64")
    code.do(
        f"call void @dmlk_shader_wave(i32 {opcode}, i32 {kind}, i32 {type}, ptr {given}, ptr {other}, "
        f"i64 {wave.mask_bits(wave.mask)}, ptr {out}, i32 {code.lanes})"
    )
    return wave.loaded("i64", out)


def _same(wave: Wave, found: Lanes, kind: str) -> Lanes:
    """One value of all lanes."""
    vector = wave.code.vector_type("i64")
    first = wave.code.new(f"extractelement {vector} {found.text}, i64 0")
    return wave.from_bits(Lanes("i64", first, 0), kind)


def _all_equal(wave: Wave, made: Instruction) -> Lanes:
    return _same(wave, _between(wave, _ALL_EQUAL, wave.value(made.operands[2])), "i1")


def _tell(wave: Wave, opcode: int, lanes: Lanes | None = None) -> None:
    """What watches the dispatch learns which lanes are read."""
    if wave.target.checked:
        read = "null" if lanes is None else wave.array(lanes)
        wave.code.do(
            f"call void @dmlk_shader_lanes(ptr %call, ptr %state, i32 {wave.line}, i32 {opcode}, ptr {read}, "
            f"i64 {wave.mask_bits(wave.mask)})"
        )


def _read_at(wave: Wave, made: Instruction) -> Lanes:
    value, lane = wave.value(made.operands[2]), wave.value(made.operands[3])
    _tell(wave, _READ_AT, lane)
    found = _between(wave, _READ_AT, value, more=lane)
    if lane.uniform:
        return _same(wave, found, value.type)
    return wave.from_bits(found, value.type)


def _active(wave: Wave, made: Instruction) -> Lanes:
    """WaveActiveOp: 0 sum, 1 product, 2 min, 3 max; then whether integers are unsigned."""
    value = wave.value(made.operands[2])
    kind = wave.number(made.operands[3], "a wave operation")
    unsigned = wave.number(made.operands[4], "the sign of a wave operation") == 1
    return _same(wave, _between(wave, _ACTIVE, value, _kind(kind, 4), unsigned), value.type)


def _kind(kind: int, count: int) -> int:
    if kind >= count:
        raise MalformedShader(f"kind {kind} of a wave operation", "part DXIL")
    return kind


def _active_bit(wave: Wave, made: Instruction) -> Lanes:
    """WaveActiveBit: 0 and, 1 or, 2 xor."""
    value = wave.value(made.operands[2])
    kind = _kind(wave.number(made.operands[3], "a wave operation"), 3)
    return _same(wave, _between(wave, _BIT, value, 4 + kind, unsigned=True), value.type)


def _prefix(wave: Wave, made: Instruction) -> Lanes:
    value = wave.value(made.operands[2])
    kind = _kind(wave.number(made.operands[3], "a wave operation"), 2)
    unsigned = wave.number(made.operands[4], "the sign of a wave operation") == 1
    return wave.from_bits(_between(wave, _PREFIX, value, kind, unsigned), value.type)


def _quad_at(wave: Wave, made: Instruction) -> Lanes:
    value, lane = wave.value(made.operands[2]), wave.value(made.operands[3])
    return wave.from_bits(_between(wave, _QUAD_AT, value, more=lane), value.type)


def _quad(wave: Wave, made: Instruction) -> Lanes:
    value = wave.value(made.operands[2])
    kind = _kind(wave.number(made.operands[3], "a quad operation"), 3)
    return wave.from_bits(_between(wave, _QUAD, value, kind), value.type)


def _match(wave: Wave, made: Instruction) -> tuple[Lanes, ...]:
    code = wave.code
    found = _between(wave, _MATCH, wave.value(made.operands[2]))
    low = code.apply("trunc {T} {0} to {R}", found, type="i32")
    high = code.apply("lshr {T} {0}, {1}", found, Lanes("i64", "32", 0))
    zero = Lanes("i32", "0", 0)
    return low, code.apply("trunc {T} {0} to {R}", high, type="i32"), zero, zero


def _group_of(wave: Wave, made: Instruction, first: int) -> Lanes:
    """Four words of a mask for each lane; the first two count."""
    code = wave.code
    low, high = (wave.as_bits(wave.value(operand)) for operand in made.operands[first : first + 2])
    return code.apply("or {T} {0}, {1}", low, code.apply("shl {T} {0}, {1}", high, Lanes("i64", "32", 0)))


def _multi(wave: Wave, made: Instruction) -> Lanes:
    """WaveMultiPrefixOp: 0 sum, 1 and, 2 or, 3 xor, 4 product."""
    value = wave.value(made.operands[2])
    kind = (0, 4, 5, 6, 1)[_kind(wave.number(made.operands[7], "a wave operation"), 5)]
    unsigned = wave.number(made.operands[8], "the sign of a wave operation") == 1
    group = _group_of(wave, made, 3)
    return wave.from_bits(_between(wave, _MULTI, value, kind, unsigned, group), value.type)


def _multi_count(wave: Wave, made: Instruction) -> Lanes:
    """WaveMultiPrefixBitCount: the sum of bools."""
    value = wave.code.apply("zext {T} {0} to {R}", wave.value(made.operands[2]), type="i32")
    return wave.from_bits(_between(wave, _MULTI, value, more=_group_of(wave, made, 3)), "i32")


ROWS: dict[int, tuple[str, _Write, str]] = {
    110: ("WaveIsFirstLane", _is_first, "lanes"),
    111: ("WaveGetLaneIndex", _index, "lanes"),
    112: ("WaveGetLaneCount", _count, ""),
    113: ("WaveAnyTrue", _any, "wave"),
    114: ("WaveAllTrue", _all, "wave"),
    _ALL_EQUAL: ("WaveActiveAllEqual", _all_equal, "wave"),
    116: ("WaveActiveBallot", _ballot, "wave"),
    _READ_AT: ("WaveReadLaneAt", _read_at, "wave"),
    118: ("WaveReadLaneFirst", _read_first, "wave"),
    _ACTIVE: ("WaveActiveOp", _active, "wave"),
    _BIT: ("WaveActiveBit", _active_bit, "wave"),
    _PREFIX: ("WavePrefixOp", _prefix, "lanes"),
    _QUAD_AT: ("QuadReadLaneAt", _quad_at, "lanes"),
    _QUAD: ("QuadOp", _quad, "lanes"),
    135: ("WaveAllBitCount", _count_bits, "wave"),
    136: ("WavePrefixBitCount", _count_before, "lanes"),
    _MATCH: ("WaveMatch", _match, "lanes"),
    _MULTI: ("WaveMultiPrefixOp", _multi, "lanes"),
    167: ("WaveMultiPrefixBitCount", _multi_count, "lanes"),
}
"""Name, what writes it, and whether its result differs between lanes (see ``operations.Operation``)."""
