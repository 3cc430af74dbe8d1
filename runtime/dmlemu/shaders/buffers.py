"""Loads and stores of buffers through views, each compared with the view's bytes.

The address of an element is computed with 64 bits.  Reads outside of a view give 0 and writes are dropped,
for each component by itself; what lies outside of a root descriptor's resource is told to
``dmlk_shader_outside``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dmlemu_hw.kernels import ffi

from .errors import MalformedShader, UnsupportedShader
from .ranges import KINDS, LETTERS
from .text import Lanes
from .values import Constant, Function, Instruction, Value

if TYPE_CHECKING:
    from .lanes import Wave

__all__ = ["Handle", "View", "component_size", "handle_of", "load", "store", "view_of"]

_VIEW_BYTES = ffi.sizeof("dmlk_shader_view")
_BYTES_AT, _STRIDE_AT = (ffi.offsetof("dmlk_shader_view", name) for name in ("bytes", "stride"))
_MOST_AHEAD = 1 << 16
"""What is so near below 2**32 is outside of every view."""


@dataclass(frozen=True)
class Handle:
    """What ``createHandle`` names: a view of a range, or of the heap (``place`` None)."""

    place: int | None
    lower: int
    index: Lanes
    """The register, or the place in the heap."""
    kind: str
    stride: int


@dataclass(frozen=True)
class View:
    handle: Handle
    pointer: Lanes
    """Of the struct ``dmlk_shader_view``."""
    base: Lanes
    bytes: Lanes


def handle_of(wave: Wave, value: Value) -> Handle:
    """What makes the handle is looked at where it is used."""
    if (
        not isinstance(value, Instruction)
        or value.name != "call"
        or not isinstance(value.operands[0], Function)
    ):
        raise UnsupportedShader("a resource that control flow selects")
    name = value.operands[0].name
    if name.startswith("dx.op.createHandleFromBinding"):
        return _from_binding(wave, value)
    if name.startswith("dx.op.createHandleFromHeap"):
        return Handle(None, 0, wave.value(value.operands[2]), "", 0)
    if name.startswith("dx.op.annotateHandle"):
        return _annotated(wave, value)
    if name.startswith("dx.op.createHandle"):
        letter = _letter(wave.number(value.operands[2], "the class of a resource"))
        number = wave.number(value.operands[3], "the number of a range")
        same = [place for place, each in enumerate(wave.target.ranges) if each.register_class == letter]
        if number >= len(same):
            raise MalformedShader(f"range {number} of {len(same)} of class {letter}", "part DXIL")
        return _of_range(wave, same[number], wave.value(value.operands[4]))
    raise UnsupportedShader(f"{name} as a resource")


def _letter(number: int) -> str:
    if number >= len(LETTERS):
        raise MalformedShader(f"a resource of class {number}", "part DXIL")
    return LETTERS[number]


def _of_range(wave: Wave, place: int, index: Lanes) -> Handle:
    found = wave.target.ranges[place]
    if found.kind == "sampler":
        raise UnsupportedShader("samplers are not emulated, as there are no textures")
    return Handle(place, found.lower, index, found.kind, found.stride)


def _from_binding(wave: Wave, value: Instruction) -> Handle:
    binding = value.operands[2]
    parts = binding.value if isinstance(binding, Constant) else None
    numbers = [0] * 4
    if isinstance(parts, tuple):
        numbers = [wave.number(part, "a binding") for part in parts]
    lower, _upper, space, kind = numbers
    letter = _letter(kind)
    for place, each in enumerate(wave.target.ranges):
        if (each.register_class, each.lower, each.space) == (letter, lower, space):
            return _of_range(wave, place, wave.value(value.operands[3]))
    raise MalformedShader(f"register {letter}{lower}, space {space} is not declared", "part DXIL")


def _annotated(wave: Wave, value: Instruction) -> Handle:
    handle = handle_of(wave, value.operands[2])
    properties = value.operands[3]
    parts = properties.value if isinstance(properties, Constant) else None
    first, second = (
        (wave.number(part, "a property") for part in parts) if isinstance(parts, tuple) else (0, 0)
    )
    kind = KINDS.get(first & 0xFF)
    if kind in (None, "sampler"):
        raise UnsupportedShader(
            "the shader uses a texture; textures are not emulated: put the data in a buffer"
        )
    return replace(handle, kind=kind, stride=second if kind == "structured" else 0)


def view_of(wave: Wave, value: Value) -> View:
    """The view that a handle names; where there is none, one of no bytes."""
    code, handle = wave.code, handle_of(wave, value)
    views, count = wave.range(handle.place)
    wide = code.apply("zext {T} {0} to {R}", _from_lower(wave, handle), type="i64")
    inside = code.apply("icmp ult {T} {0}, {1}", wide, Lanes("i64", count, 0), type="i1")
    none = Lanes("ptr", "@no_view", 0)
    if wide.uniform:
        place = code.new(f"getelementptr [{_VIEW_BYTES} x i8], ptr {views}, i64 {wide.text}")
        return _read_view(wave, handle, code.select(inside, Lanes("ptr", place, 0), none))
    places = code.new(
        f"getelementptr [{_VIEW_BYTES} x i8], ptr {views}, {code.vector_type('i64')} {code.vector(wide)}"
    )
    pointer = code.select(inside, Lanes("ptr", places), none)
    base = wave.gather("ptr", pointer.text, 8, "splat (i1 true)")
    return View(handle, pointer, Lanes("ptr", base), _field(wave, pointer, "i64", _BYTES_AT))


def _read_view(wave: Wave, handle: Handle, pointer: Lanes) -> View:
    """Of a pointer that all lanes have alike."""
    code = wave.code
    base = code.new(f"load ptr, ptr {pointer.text}, !invariant.load !0")
    return View(handle, pointer, Lanes("ptr", base, 0), _field(wave, pointer, "i64", _BYTES_AT))


def _field(wave: Wave, pointer: Lanes, kind: str, at: int) -> Lanes:
    """A number in the views that the lanes have."""
    code = wave.code
    if pointer.uniform:
        place = code.new(f"getelementptr i8, ptr {pointer.text}, i64 {at}")
        return Lanes(kind, code.new(f"load {kind}, ptr {place}, !invariant.load !0"), 0)
    place = code.new(f"getelementptr i8, {code.vector_type('ptr')} {pointer.text}, i64 {at}")
    return Lanes(kind, wave.gather(kind, place, component_size(kind), "splat (i1 true)"))


def stride_of(wave: Wave, view: View) -> Lanes:
    """What the view says of its elements, in bytes: an i32."""
    return _field(wave, view.pointer, "i32", _STRIDE_AT)


def _from_lower(wave: Wave, handle: Handle) -> Lanes:
    index = handle.index
    if handle.lower == 0:
        return index
    if index.uniform and index.text.isdigit():
        return Lanes("i32", str(int(index.text) - handle.lower), 0)
    return wave.code.apply("sub {T} {0}, {1}", index, Lanes("i32", str(handle.lower), 0))


# --- where an element is ---


def offset_of(wave: Wave, index: Lanes, scale: int, more: Lanes) -> Lanes:
    """``index * scale + more`` as an i64.

    Indices that grow from lane to lane may wrap around between two lanes; so lane 0 counts from the last
    lane's index.  Those that grow fast wrap around more often: they are a vector.
    """
    code = wave.code
    step = index.step or 0
    ahead = step * (code.lanes - 1)
    if more.uniform and 0 < ahead < _MOST_AHEAD:
        last = code.new(f"zext i32 {code.new(f'add i32 {index.text}, {ahead}')} to i64")
        first = code.new(f"sub i64 {last}, {ahead}")
        scaled = Lanes("i64", code.new(f"mul i64 {first}, {scale}"), step * scale)
    else:
        if index.step:
            index = Lanes("i32", code.vector(index))
        wide = code.apply("zext {T} {0} to {R}", index, type="i64")
        scaled = wide if scale == 1 else code.apply("mul {T} {0}, {1}", wide, Lanes("i64", str(scale), 0))
    if more.uniform and more.text == "0":
        return scaled
    if more.step:
        more = Lanes("i32", code.vector(more))
    wide = code.apply("zext {T} {0} to {R}", more, type="i64")
    if scaled.step and wide.uniform:
        return Lanes("i64", code.new(f"add i64 {scaled.text}, {wide.text}"), scaled.step)
    return code.apply("add {T} {0}, {1}", _vector(wave, scaled) if scaled.step else scaled, wide)


def _vector(wave: Wave, value: Lanes) -> Lanes:
    return Lanes(value.type, wave.code.vector(value))


def plus(wave: Wave, offset: Lanes, more: int) -> Lanes:
    if more == 0:
        return offset
    if offset.step is not None:
        return Lanes("i64", wave.code.new(f"add i64 {offset.text}, {more}"), offset.step)
    return wave.code.apply("add {T} {0}, {1}", offset, Lanes("i64", str(more), 0))


def aligned(wave: Wave, offset: Lanes, to: int) -> Lanes:
    """Rounded down: the lowest bits of an address are ignored."""
    mask = Lanes("i64", str(-to), 0)
    if offset.step is not None and offset.step % to == 0:
        return Lanes("i64", wave.code.new(f"and i64 {offset.text}, {-to}"), offset.step)
    return wave.code.apply("and {T} {0}, {1}", _vector(wave, offset) if offset.step else offset, mask)


def inside_of(wave: Wave, view: View, offset: Lanes, size: int) -> Lanes:
    """Whether ``size`` bytes at ``offset`` are in the view.  An offset below 0 is a large one, and is not."""
    code = wave.code
    offset = _vector(wave, offset) if offset.step else offset
    suffix = code.suffix(view.bytes)
    ends = code.intrinsic(f"llvm.usub.sat.{suffix}", "i64", view.bytes, Lanes("i64", str(size - 1), 0))
    return code.apply("icmp ult {T} {0}, {1}", offset, ends, type="i1")


def pointers(wave: Wave, view: View, offset: Lanes) -> str:
    """Of each lane."""
    code = wave.code
    offsets = code.vector(offset)
    kind = "ptr" if view.base.uniform else code.vector_type("ptr")
    return code.new(f"getelementptr i8, {kind} {view.base.text}, {code.vector_type('i64')} {offsets}")


# --- loads and stores of a component ---


def load(wave: Wave, view: View, offset: Lanes, kind: str, size: int) -> Lanes:
    """A number of ``size`` bytes, which each lane reads at its offset."""
    wave.accessed(view, offset, size, "read")
    if view.base.uniform and offset.uniform:
        return _load_one(wave, view, offset, kind, size)
    if not (view.base.uniform and offset.step == size):
        return _load_each(wave, view, offset, kind, size)
    code, vector = wave.code, wave.code.vector_type(kind)
    fast, slow, end = (code.name(hint) for hint in ("together", "each", "loaded"))
    code.do(f"br i1 {_all_together(wave, view, offset, size)}, label %{fast}, label %{slow}, !prof !1")
    code.label(fast)
    place = code.new(f"getelementptr i8, ptr {view.base.text}, i64 {offset.text}")
    together = code.new(f"load {vector}, ptr {place}, align {min(size, 4)}")
    code.do(f"br label %{end}")
    code.label(slow)

    def one_by_one(view: View, offset: Lanes) -> Lanes:
        return _load_each(wave, view, offset, kind, size)

    each = _aside(wave, f"load.{kind}", view, offset, vector, one_by_one)
    code.do(f"br label %{end}")
    code.label(end)
    return Lanes(kind, code.new(f"phi {vector} [{together}, %{fast}], [{each}, %{slow}]"))


def _all_together(wave: Wave, view: View, offset: Lanes, size: int) -> str:
    """Whether all lanes run, and what they access is in the view."""
    code = wave.code
    end = code.new(f"add i64 {offset.text}, {size * code.lanes}")
    inside = code.new(f"icmp ule i64 {end}, {view.bytes.text}")
    positive = code.new(f"icmp sge i64 {offset.text}, 0")
    found = code.new(f"and i1 {inside}, {positive}")
    if wave.mask is None:
        return found
    bits = code.new(f"bitcast {code.vector_type('i1')} {wave.mask} to i{code.lanes}")
    return code.new(f"and i1 {found}, {code.new(f'icmp eq i{code.lanes} {bits}, -1')}")


def _aside(
    wave: Wave,
    name: str,
    view: View,
    offset: Lanes,
    result: str,
    write: Callable[[View, Lanes], Lanes | None],
    value: Lanes | None = None,
) -> str:
    """Calls a function that does for each lane what is rarely needed; it is written once for all places."""
    code = wave.code
    offsets, mask = code.vector(offset), wave.mask_vector(wave.mask)
    offset_type = code.vector_type("i64")
    given = f"ptr {view.pointer.text}, {offset_type} {offsets}, {code.vector_type('i1')} {mask}"
    taken = f"ptr %view, {offset_type} %offsets, {code.vector_type('i1')} %mask"
    if value is not None:
        given += f", {code.vector_type(value.type)} {code.vector(value)}"
        taken += f", {code.vector_type(value.type)} %value"

    def body() -> Lanes | None:
        return write(_read_view(wave, view.handle, Lanes("ptr", "%view", 0)), Lanes("i64", "%offsets"))

    return wave.aside(name, result, taken, given, body)


def _load_one(wave: Wave, view: View, offset: Lanes, kind: str, size: int) -> Lanes:
    code = wave.code
    inside = inside_of(wave, view, offset, size)
    if view.handle.kind != "cbuffer":
        wave.outside(view, offset, size, inside, "read")
    place = code.new(f"getelementptr i8, ptr {view.base.text}, i64 {offset.text}")
    safe = code.select(inside, Lanes("ptr", place, 0), Lanes("ptr", "@zeros", 0))
    constant = ", !invariant.load !0" if view.handle.kind == "cbuffer" else ""
    return Lanes(kind, code.new(f"load {kind}, ptr {safe.text}, align {min(size, 4)}{constant}"), 0)


def _load_each(wave: Wave, view: View, offset: Lanes, kind: str, size: int) -> Lanes:
    inside = inside_of(wave, view, offset, size)
    wave.outside(view, offset, size, inside, "read")
    mask = wave.both(wave.mask, wave.code.vector(inside))
    return Lanes(kind, wave.gather(kind, pointers(wave, view, offset), min(size, 4), mask))


def store(wave: Wave, view: View, offset: Lanes, value: Lanes, size: int) -> None:
    """Of lanes that write to one place, the last one's value stays."""
    wave.accessed(view, offset, size, "write", value)
    code = wave.code
    if not (view.base.uniform and offset.step == size):
        _store_each(wave, view, offset, value, size)
        return
    fast, slow, end = (code.name(hint) for hint in ("together", "each", "stored"))
    value = Lanes(value.type, code.vector(value))
    code.do(f"br i1 {_all_together(wave, view, offset, size)}, label %{fast}, label %{slow}, !prof !1")
    code.label(fast)
    place = code.new(f"getelementptr i8, ptr {view.base.text}, i64 {offset.text}")
    code.do(f"store {code.vector_type(value.type)} {value.text}, ptr {place}, align {min(size, 4)}")
    code.do(f"br label %{end}")
    code.label(slow)
    given = Lanes(value.type, "%value")
    _aside(
        wave,
        f"store.{value.type}",
        view,
        offset,
        "void",
        lambda view, offset: _store_each(wave, view, offset, given, size),
        value,
    )
    code.do(f"br label %{end}")
    code.label(end)


def _store_each(wave: Wave, view: View, offset: Lanes, value: Lanes, size: int) -> None:
    inside = inside_of(wave, view, offset, size)
    wave.outside(view, offset, size, inside, "write")
    mask = wave.both(wave.mask, wave.code.vector(inside))
    wave.scatter(value.type, wave.code.vector(value), pointers(wave, view, offset), min(size, 4), mask)


def component_size(kind: str) -> int:
    return {"half": 2, "float": 4, "double": 8}.get(kind) or int(kind[1:]) // 8
