"""Variables of a shader: local arrays, of which each lane has its own, groupshared ones, and constants.

A pointer is a variable and a place in it in bytes.  Every index is compared with the number of elements:
what is outside reads 0, and is not written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .errors import MalformedShader, UnsupportedShader
from .text import Lanes, llvm_type
from .values import Constant, Global, Instruction, Type, Value

if TYPE_CHECKING:
    from .lanes import Wave

__all__ = ["INSTRUCTIONS", "Memory", "initial", "is_local", "size_of", "variable_of", "zero"]

_MOST_STEPS = 64
_MOST_LOCAL = 1 << 20
"""Bytes of local variables of all lanes of a wave: they stand on the stack of a thread."""


@dataclass(frozen=True)
class Memory:
    base: str
    local: bool
    """Each lane has its own: the numbers of all lanes at one place stand together."""


@dataclass(frozen=True)
class _Place:
    memory: Memory
    offset: Lanes
    """In bytes, an i32."""
    inside: Lanes | None
    """Whether all indices were; None: they are known to be."""


def size_of(type: Type) -> int:
    """Bytes; all members are aligned to their size."""
    return _layout(type)[0]


def _layout(type: Type) -> tuple[int, int]:
    """Bytes and alignment."""
    if type.is_number:
        if type.bits < 16:
            raise UnsupportedShader(f"a variable of type {type}")
        return type.bits // 8, type.bits // 8
    if type.kind in ("array", "vector"):
        size, align = _layout(type.element)
        return size * type.count, align
    if type.kind == "struct":
        end, most = 0, 1
        for member in type.elements:
            size, align = _layout(member)
            end = (end + align - 1) // align * align + size
            most = max(most, align)
        return (end + most - 1) // most * most, most
    raise UnsupportedShader(f"a variable of type {type}")


def variable_of(pointer: Value) -> Value:
    """What a pointer points into: a ``Global``, an ``alloca``, or what is neither."""
    for _step in range(_MOST_STEPS):
        if not isinstance(pointer, Instruction) or pointer.name not in ("getelementptr", "addrspacecast"):
            return pointer
        pointer = pointer.operands[0]
    raise MalformedShader("a pointer that is made in too many steps", "part DXIL")


def is_local(pointer: Value) -> bool:
    return isinstance(variable_of(pointer), Instruction)


def _allocate(wave: Wave, made: Instruction) -> None:
    size = size_of(made.type.element)
    bytes = size * wave.target.lanes
    wave.local_bytes += bytes
    if wave.local_bytes > _MOST_LOCAL:
        raise UnsupportedShader(
            f"local variables of {wave.local_bytes // wave.target.lanes} bytes or more for each thread; "
            f"there is room for {_MOST_LOCAL // wave.target.lanes}"
        )
    base = wave.code.alloca(f"[{bytes} x i8], align 64")
    wave.code.zeros.append(f"  call void @llvm.memset.p0.i64(ptr {base}, i8 0, i64 {bytes}, i1 false)")
    wave.memory[made] = Memory(base, local=True)


def _place(wave: Wave, pointer: Value) -> _Place:
    variable_of(pointer)  # ends where pointers are made of each other
    zero = Lanes("i32", "0", 0)
    if isinstance(pointer, Global):
        return _Place(_variable(wave, pointer), zero, None)
    if isinstance(pointer, Instruction):
        if pointer.name == "alloca" and pointer in wave.memory:
            return _Place(wave.memory[pointer], zero, None)
        if pointer.name == "getelementptr":
            return _element(wave, pointer)
        if pointer.name == "addrspacecast" or _keeps_size(pointer):
            return _place(wave, pointer.operands[0])
    raise UnsupportedShader("a pointer that control flow or a cast selects")


def _keeps_size(pointer: Instruction) -> bool:
    """A number is read as one of another type, as ``asfloat`` does."""
    if pointer.name != "bitcast":
        return False
    before, after = pointer.operands[0].type.element, pointer.type.element
    return before.is_number and after.is_number and before.bits == after.bits


def _variable(wave: Wave, variable: Global) -> Memory:
    if variable.groupshared:
        place = wave.target.shared[variable]
        return Memory(wave.code.new(f"getelementptr i8, ptr %shared, i64 {place}"), local=False)
    if variable not in wave.globals:
        wave.globals[variable] = f"@v{len(wave.globals)}"
    return Memory(wave.globals[variable], local=False)


def _element(wave: Wave, pointer: Instruction) -> _Place:
    base, first, *indices = pointer.operands
    at = _place(wave, base)
    if not isinstance(first, Constant) or first.value not in (0, None):
        raise UnsupportedShader("arithmetic on pointers beyond a variable")
    kind, offset, inside = base.type.element, at.offset, at.inside
    for index in indices:
        if kind.kind == "struct":
            number = wave.number(index, "the member of a struct")
            step = sum(size_of(member) for member in kind.elements[:number])
            offset = _sum(wave, offset, Lanes("i32", str(_member_offset(kind, number) if step else 0), 0))
            kind = kind.elements[number]
            continue
        found = _as_i32(wave, wave.value(index))
        if not (found.text.isdigit() and found.uniform and int(found.text) < kind.count):
            code = wave.code
            fits = code.apply("icmp ult {T} {0}, {1}", found, Lanes("i32", str(kind.count), 0), type="i1")
            inside = fits if inside is None else code.apply("and {T} {0}, {1}", inside, fits)
        kind = kind.element
        offset = _sum(wave, offset, _scaled(wave, found, size_of(kind)))
    return _Place(at.memory, offset, inside)


def _member_offset(type: Type, number: int) -> int:
    end = 0
    for member in type.elements[: number + 1]:
        size, align = _layout(member)
        end = (end + align - 1) // align * align + size
    return end - _layout(type.elements[number])[0]


def _as_i32(wave: Wave, index: Lanes) -> Lanes:
    """An index of another width: outside stays outside."""
    if index.type == "i32":
        return index
    if int(index.type[1:]) < 32:
        return wave.code.apply("sext {T} {0} to {R}", index, type="i32")
    most = Lanes(index.type, str(0x7FFFFFFF), 0)
    least = wave.code.intrinsic(f"llvm.umin.{wave.code.suffix(index)}", index.type, index, most)
    return wave.code.apply("trunc {T} {0} to {R}", least, type="i32")


def _scaled(wave: Wave, index: Lanes, size: int) -> Lanes:
    if index.step is not None:
        if index.text.isdigit():
            return Lanes("i32", str(int(index.text) * size), index.step * size)
        return Lanes("i32", wave.code.new(f"mul i32 {index.text}, {size}"), index.step * size)
    return wave.code.apply("mul {T} {0}, {1}", index, Lanes("i32", str(size), 0))


def _sum(wave: Wave, left: Lanes, right: Lanes) -> Lanes:
    if left.text == "0" and left.uniform:
        return right
    if right.text == "0" and right.uniform:
        return left
    if left.step is not None and right.step is not None:
        return Lanes("i32", wave.code.new(f"add i32 {left.text}, {right.text}"), left.step + right.step)
    return wave.code.apply("add {T} {0}, {1}", left, right)


# --- loads and stores ---


def _lane_offsets(wave: Wave, at: _Place, size: int) -> Lanes:
    """Where each lane's number stands, as an i64; outside of the variable: at its beginning."""
    code = wave.code
    offset = at.offset
    if at.memory.local:
        lanes = Lanes("i32", code.steps("i32", size))
        offset = code.apply(
            "add {T} {0}, {1}",
            code.apply("mul {T} {0}, {1}", offset, Lanes("i32", str(code.lanes), 0)),
            lanes,
        )
    if at.inside is not None:
        offset = code.select(at.inside, offset, Lanes("i32", "0", 0))
    return code.apply("zext {T} {0} to {R}", offset, type="i64")


def _pointers(wave: Wave, at: _Place, size: int) -> str:
    code = wave.code
    offsets = code.vector(_lane_offsets(wave, at, size))
    return code.new(f"getelementptr i8, ptr {at.memory.base}, {code.vector_type('i64')} {offsets}")


def _mask(wave: Wave, at: _Place) -> str:
    if at.inside is None:
        return wave.mask_vector(wave.mask)
    return wave.both(wave.mask, wave.code.vector(at.inside))


def _together(wave: Wave, at: _Place, size: int) -> str | None:
    """Where the numbers of all lanes stand one after the other; None: they do not."""
    code = wave.code
    if at.memory.local:
        if not at.offset.uniform:
            return None
        offset = code.new(f"mul i32 {at.offset.text}, {code.lanes}")
    elif at.offset.step == size:
        offset = at.offset.text
    else:
        return None
    # Signed: lane 0 may be outside, before the beginning, and others inside.
    wide = code.new(f"sext i32 {offset} to i64")
    return code.new(f"getelementptr i8, ptr {at.memory.base}, i64 {wide}")


def _load(wave: Wave, made: Instruction) -> Lanes:
    code, kind = wave.code, llvm_type(made.type)
    at, size = _place(wave, made.operands[0]), made.type.bits // 8
    wave.accessed_shared(made.operands[0], at.offset, at.inside, size, kind="read")
    if at.offset.uniform and not at.memory.local:
        offset = at.offset.text
        if at.inside is not None:
            offset = code.new(f"select i1 {at.inside.text}, i32 {offset}, i32 0")
        wide = code.new(f"zext i32 {offset} to i64")
        one = code.new(f"getelementptr i8, ptr {at.memory.base}, i64 {wide}")
        found = Lanes(kind, code.new(f"load {kind}, ptr {one}, align {size}"), 0)
        return found if at.inside is None else code.select(at.inside, found, zero(kind))
    vector = code.vector_type(kind)
    place = _together(wave, at, size)
    if place is not None and at.inside is None and (at.memory.local or wave.mask is None):
        return Lanes(kind, code.new(f"load {vector}, ptr {place}, align {size}"))
    mask = _mask(wave, at)
    if place is not None:
        return Lanes(
            kind,
            code.new(
                f"call {vector} @llvm.masked.load.{code.suffix(Lanes(kind, ''))}.p0(ptr {place}, i32 {size}, "
                f"{code.vector_type('i1')} {mask}, {vector} zeroinitializer)"
            ),
        )
    return Lanes(kind, wave.gather(kind, _pointers(wave, at, size), size, mask))


def zero(kind: str) -> Lanes:
    return Lanes(kind, {"half": "0xH0000", "float": "0.0", "double": "0.0", "i1": "false"}.get(kind, "0"), 0)


def _store(wave: Wave, made: Instruction) -> None:
    code = wave.code
    at, value = _place(wave, made.operands[0]), wave.value(made.operands[1])
    kind, size = value.type, made.operands[1].type.bits // 8
    wave.accessed_shared(made.operands[0], at.offset, at.inside, size, "write", value)
    if not at.memory.base.startswith("%"):
        raise MalformedShader("a store to a constant", "part DXIL")
    vector = code.vector(value)
    place = _together(wave, at, size)
    if place is not None and at.inside is None and wave.mask is None:
        code.do(f"store {code.vector_type(kind)} {vector}, ptr {place}, align {size}")
        return
    mask = _mask(wave, at)
    if place is not None:
        code.do(
            f"call void @llvm.masked.store.{code.suffix(Lanes(kind, ''))}.p0("
            f"{code.vector_type(kind)} {vector}, ptr {place}, i32 {size}, {code.vector_type('i1')} {mask})"
        )
        return
    wave.scatter(kind, vector, _pointers(wave, at, size), size, mask)


def _atomic(wave: Wave, made: Instruction) -> tuple[Lanes, ...] | Lanes:
    """``atomicrmw`` and ``cmpxchg`` of groupshared memory."""
    pointer, *rest = made.operands
    at, size = _place(wave, pointer), rest[-1].type.bits // 8
    if at.memory.local or size not in (4, 8):
        raise UnsupportedShader(f"an atomic operation on {rest[-1].type} of a local variable or of this size")
    wave.accessed_shared(pointer, at.offset, at.inside, size, kind="atomic")
    code = wave.code
    kind = code.vector_type("ptr")
    mask, places = _mask(wave, at), _pointers(wave, at, size)
    places = code.new(f"select {code.vector_type('i1')} {mask}, {kind} {places}, {kind} zeroinitializer")
    values = [wave.value(each) for each in rest]
    if made.name == "cmpxchg":
        old = wave.atomic(10, places, values[1], values[0], size)
        return old, code.apply("icmp eq {T} {0}, {1}", old, values[0], type="i1")
    if made.predicate not in _OPERATIONS:
        raise UnsupportedShader(f"atomicrmw {made.predicate}")
    return wave.atomic(_OPERATIONS[made.predicate], places, values[0], values[0], size)


_OPERATIONS = {
    "add": 0,
    "and": 1,
    "or": 2,
    "xor": 3,
    "min": 4,
    "max": 5,
    "umin": 6,
    "umax": 7,
    "xchg": 8,
    "sub": 9,
}


def initial(variable: Global) -> str:
    """The bytes of a constant variable, as an array."""
    data = bytearray(size_of(variable.type.element))
    if variable.initializer is not None:
        _fill(data, 0, variable.initializer)
    numbers = ", ".join(f"i8 {byte}" for byte in data)
    return f"[{len(data)} x i8] [{numbers}]"


def _fill(data: bytearray, at: int, value: Value) -> None:
    if not isinstance(value, Constant):
        raise UnsupportedShader("a variable whose initial value is an address")
    if isinstance(value.value, tuple):
        for number, part in enumerate(value.value):
            array = value.type.kind != "struct"
            step = size_of(value.type.element) * number if array else _member_offset(value.type, number)
            _fill(data, at + step, part)
    elif value.value and value.type.is_number:
        size = size_of(value.type)
        data[at : at + size] = value.value.to_bytes(size, "little")


INSTRUCTIONS: dict[str, Callable[[Wave, Instruction], Lanes | tuple[Lanes, ...] | None]] = {
    "alloca": _allocate,
    "getelementptr": lambda wave, made: None,
    "addrspacecast": lambda wave, made: None,
    "load": _load,
    "store": _store,
    "atomicrmw": _atomic,
    "cmpxchg": _atomic,
}
