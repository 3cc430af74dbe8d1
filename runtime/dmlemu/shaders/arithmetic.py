"""What instructions of DXIL on numbers become.

DXIL marks operations on floats ``fast`` and leaves to LLVM what Direct3D defines; here no operation is
``fast``, and

- a float becomes the nearest integer that its type has, and NaN 0 (``ftoi``, ``ftou``);
- a division by zero gives all ones, and the least number by -1 gives itself;
- what is undefined is 0.

https://microsoft.github.io/DirectX-Specs/d3d/archive/D3D11_3_FunctionalSpec.htm (22.10 and following)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .errors import UnsupportedShader
from .text import Lanes, constant, llvm_type
from .values import Instruction, Type

if TYPE_CHECKING:
    from .lanes import Wave

__all__ = ["INSTRUCTIONS", "cast", "divide", "first_lane"]

_Result = Lanes | tuple[Lanes, ...] | None


def _add(wave: Wave, made: Instruction) -> Lanes:
    left, right = (wave.value(operand) for operand in made.operands)
    sign = 1 if made.name == "add" else -1
    if left.step is None or right.step is None or left.step == right.step == 0:
        return wave.code.apply(f"{made.name} {{T}} {{0}}, {{1}}", left, right)
    text = wave.code.new(f"{made.name} {left.type} {left.text}, {right.text}")
    return Lanes(left.type, text, _step(left.step + sign * right.step, made.type))


def _multiply(wave: Wave, made: Instruction) -> Lanes:
    left, right = (wave.value(operand) for operand in made.operands)
    if not _is_number(right):
        left, right = right, left
    if not _is_number(right) or left.step in (None, 0):
        return wave.code.apply("mul {T} {0}, {1}", left, right)
    text = wave.code.new(f"mul {left.type} {left.text}, {right.text}")
    return Lanes(left.type, text, _step((left.step or 0) * int(right.text), made.type))


def _shift(wave: Wave, made: Instruction) -> Lanes:
    """By the right operand modulo the bits of the type: its lowest bits, where they are a power of two."""
    left, right = (wave.value(operand) for operand in made.operands)
    bits = made.type.bits
    if _is_number(right):
        by = int(right.text) % bits
        if made.name == "shl" and left.step:
            text = wave.code.new(f"shl {left.type} {left.text}, {by}")
            return Lanes(left.type, text, _step(left.step << by, made.type))
        right = Lanes(right.type, str(by), 0)
    else:
        right = wave.code.apply("urem {T} {0}, {1}", right, Lanes(right.type, str(bits), 0))
    return wave.code.apply(f"{made.name} {{T}} {{0}}, {{1}}", left, right)


def _or(wave: Wave, made: Instruction) -> Lanes:
    left, right = (wave.value(operand) for operand in made.operands)
    return wave.code.apply(f"{made.name} {{T}} {{0}}, {{1}}", left, right)


def divide(wave: Wave, name: str, left: Lanes, right: Lanes) -> Lanes:
    """``name``: udiv, urem, sdiv or srem."""
    code, kind = wave.code, left.type
    bits = int(kind[1:])
    one, zero, ones = Lanes(kind, "1", 0), Lanes(kind, "0", 0), Lanes(kind, "-1", 0)
    by_zero = code.apply("icmp eq {T} {0}, {1}", right, zero, type="i1")
    unsafe = by_zero
    if name[0] == "s":
        least = Lanes(kind, str(-(1 << (bits - 1))), 0)
        is_least = code.apply("icmp eq {T} {0}, {1}", left, least, type="i1")
        is_minus_one = code.apply("icmp eq {T} {0}, {1}", right, ones, type="i1")
        unsafe = code.apply(
            "or {T} {0}, {1}", by_zero, code.apply("and {T} {0}, {1}", is_least, is_minus_one)
        )
    if _is_number(right) and right.text not in ("0", "-1"):
        return code.apply(f"{name} {{T}} {{0}}, {{1}}", left, right)
    safe = code.apply(f"{name} {{T}} {{0}}, {{1}}", left, code.select(unsafe, one, right))
    return code.select(by_zero, ones, safe)


def _divide(wave: Wave, made: Instruction) -> Lanes:
    left, right = (wave.value(operand) for operand in made.operands)
    return divide(wave, made.name, left, right)


def _float(wave: Wave, made: Instruction) -> Lanes:
    left, right = (wave.value(operand) for operand in made.operands)
    if made.name != "frem":
        return wave.code.apply(f"{made.name} {{T}} {{0}}, {{1}}", left, right)
    if left.type == "half":
        widened = (wave.code.apply("fpext {T} {0} to {R}", each, type="float") for each in (left, right))
        return wave.code.apply("fptrunc {T} {0} to {R}", _remainder(wave, *widened), type="half")
    return _remainder(wave, left, right)


def _remainder(wave: Wave, left: Lanes, right: Lanes) -> Lanes:
    """By a function in C: the exact remainder, as C's ``fmod``."""
    name = "dmlk_shader_remainders" if left.type == "float" else "dmlk_shader_double_remainders"
    given, out = f"ptr {wave.array(left)}, ptr {wave.array(right)}", wave.result(left.type)
    wave.code.do(f"call void @{name}({given}, ptr {out}, i32 {wave.code.lanes})")
    found = wave.loaded(left.type, out)
    return first_lane(wave, found) if left.uniform and right.uniform else found


def first_lane(wave: Wave, value: Lanes) -> Lanes:
    """Of a vector whose elements are equal."""
    kind = wave.code.vector_type(value.type)
    return Lanes(value.type, wave.code.new(f"extractelement {kind} {value.text}, i64 0"), 0)


def _compare(wave: Wave, made: Instruction) -> Lanes:
    left, right = (wave.value(operand) for operand in made.operands)
    return wave.code.apply(f"{made.name} {made.predicate} {{T}} {{0}}, {{1}}", left, right, type="i1")


def _select(wave: Wave, made: Instruction) -> Lanes:
    condition, left, right = (wave.value(operand) for operand in made.operands)
    return wave.code.select(condition, left, right)


def _cast(wave: Wave, made: Instruction) -> Lanes | None:
    if made.type.kind == "pointer":
        return None  # for llvm.lifetime.start; a load or store through it says that it is not supported
    return cast(wave, made.name, wave.value(made.operands[0]), made.type)


def cast(wave: Wave, name: str, value: Lanes, type: Type) -> Lanes:
    code = wave.code
    kind = llvm_type(type)
    if name == "fptrunc" and value.type == "double" and kind == "half":
        value = _to_odd_float(wave, value)
    if name in ("fptosi", "fptoui"):
        suffix = code.suffix(value)
        integers = kind if value.uniform else f"v{code.lanes}{kind}"
        return code.intrinsic(f"llvm.{name}.sat.{integers}.{suffix}", kind, value)
    if name == "trunc" and value.step:
        return Lanes(kind, code.new(f"trunc {value.type} {value.text} to {kind}"), _step(value.step, type))
    return code.apply(f"{name} {{T}} {{0}} to {{R}}", value, type=kind)


def _to_odd_float(wave: Wave, value: Lanes) -> Lanes:
    """A double as a float, towards zero, whose last bit says if something was cut off: what is rounded from
    it to a half is rounded once.  LLVM would call a function that need not be there."""
    code = wave.code
    near = code.apply("fptrunc {T} {0} to {R}", value, type="float")
    back = code.apply("fpext {T} {0} to {R}", near, type="double")
    sizes = (code.intrinsic(f"llvm.fabs.{code.suffix(each)}", "double", each) for each in (back, value))
    beyond = code.apply("fcmp ogt {T} {0}, {1}", *sizes, type="i1")
    inexact = code.apply("fcmp one {T} {0}, {1}", back, value, type="i1")
    bits = code.apply("bitcast {T} {0} to {R}", near, type="i32")
    more, odd = (code.apply("zext {T} {0} to {R}", each, type="i32") for each in (beyond, inexact))
    found = code.apply("or {T} {0}, {1}", code.apply("sub {T} {0}, {1}", bits, more), odd)
    return code.apply("bitcast {T} {0} to {R}", found, type="float")


def _extract(wave: Wave, made: Instruction) -> Lanes:
    parts = wave.parts(made.operands[0])
    if len(made.indices) != 1 or made.indices[0] >= len(parts):
        raise UnsupportedShader("extractvalue of a member that is not a number")
    return parts[made.indices[0]]


def _is_number(value: Lanes) -> bool:
    """Whether it is a constant."""
    return value.uniform and value.text.lstrip("-").isdigit()


def _step(step: int, type: Type) -> int:
    """As the type wraps it; what grows by nothing is not told from a uniform value."""
    return int(constant(type, step))


INSTRUCTIONS: dict[str, Callable[[Wave, Instruction], _Result]] = {
    **dict.fromkeys(("add", "sub"), _add),
    "mul": _multiply,
    **dict.fromkeys(("shl", "lshr", "ashr"), _shift),
    **dict.fromkeys(("and", "or", "xor"), _or),
    **dict.fromkeys(("udiv", "urem", "sdiv", "srem"), _divide),
    **dict.fromkeys(("fadd", "fsub", "fmul", "fdiv", "frem"), _float),
    **dict.fromkeys(("icmp", "fcmp"), _compare),
    "select": _select,
    **dict.fromkeys(
        (
            "trunc",
            "zext",
            "sext",
            "fptoui",
            "fptosi",
            "uitofp",
            "sitofp",
            "fptrunc",
            "fpext",
            "bitcast",
        ),
        _cast,
    ),
    "extractvalue": _extract,
}
