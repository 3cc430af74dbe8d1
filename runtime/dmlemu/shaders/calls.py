"""What native code of a shader calls: functions of LLVM on vectors, and those of
``kernels_c/shaders/shader.h``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from dmlemu_hw.kernels import ffi

from .pointers import variable_of
from .text import Code, Lanes
from .values import Global, Value

if TYPE_CHECKING:
    from .buffers import View
    from .lanes import Target

__all__ = ["Calls", "declarations"]

_RANGES_AT, _HEAP_AT = (ffi.offsetof("dmlk_shader_call", name) for name in ("ranges", "heap"))
_ACCESS = {"read": 1, "write": 2, "atomic": 3}
_MOST_STEP = (1 << 31) - 1
_COUNTER = 4  # DMLK_SHADER_COUNTER
_MOST_KNOWN = 32  # lanes whose words are looked up at once: their bits are in 8 bytes, from any byte on


class Calls:
    """The part of ``Wave`` that writes calls."""

    code: Code
    target: Target
    mask: str | None
    line: int | str
    """Of the source; 0: not known."""

    def __init__(self) -> None:
        self.asides: dict[str, list[str]] = {}
        """Functions for what is rarely needed, by their names."""
        self.globals: dict[Global, str] = {}
        """Constant variables that the shader reads, by their name."""

    def mask_vector(self, mask: str | None) -> str:
        return "splat (i1 true)" if mask is None else mask

    def mask_bits(self, mask: str | None) -> str:
        """As an i64."""
        lanes = self.target.lanes
        if mask is None:
            return str(-1 if lanes == 64 else (1 << lanes) - 1)
        bits = self.code.new(f"bitcast {self.code.vector_type('i1')} {mask} to i{lanes}")
        return bits if lanes == 64 else self.code.new(f"zext i{lanes} {bits} to i64")

    def range(self, place: int | None) -> tuple[str, str]:
        """The views of a range, and their number; None: those of the heap."""
        code = self.code
        if place is None:
            heap = code.new(f"getelementptr i8, ptr %call, i64 {_HEAP_AT}")
            at = code.new(f"load ptr, ptr {heap}, !invariant.load !0")
        else:
            where = code.new(f"getelementptr i8, ptr %call, i64 {_RANGES_AT}")
            ranges = code.new(f"load ptr, ptr {where}, !invariant.load !0")
            at = code.new(f"getelementptr i8, ptr {ranges}, i64 {16 * place}")
        views = code.new(f"load ptr, ptr {at}, !invariant.load !0")
        count = code.new(f"getelementptr i8, ptr {at}, i64 8")
        return views, code.new(f"load i64, ptr {count}, !invariant.load !0")

    def gather(self, kind: str, places: str, align: int, mask: str) -> str:
        code = self.code
        vector = code.vector_type(kind)
        suffix = f"v{code.lanes}p0" if kind == "ptr" else code.suffix(Lanes(kind, ""))
        return code.new(
            f"call {vector} @llvm.masked.gather.{suffix}.v{code.lanes}p0({code.vector_type('ptr')} {places}, "
            f"i32 {align}, {code.vector_type('i1')} {mask}, {vector} zeroinitializer)"
        )

    def scatter(self, kind: str, vector: str, places: str, align: int, mask: str) -> None:
        code = self.code
        suffix = code.suffix(Lanes(kind, ""))
        code.do(
            f"call void @llvm.masked.scatter.{suffix}.v{code.lanes}p0({code.vector_type(kind)} {vector}, "
            f"{code.vector_type('ptr')} {places}, i32 {align}, {code.vector_type('i1')} {mask})"
        )

    # --- arguments that are arrays of a number for each lane ---

    def array(self, value: Lanes) -> str:
        """The values of the lanes in memory."""
        kind = self.code.vector_type(value.type)
        place = self.code.alloca(kind)
        self.code.do(f"store {kind} {self.code.vector(value)}, ptr {place}")
        return place

    def result(self, kind: str) -> str:
        """Memory for what a function writes."""
        return self.code.alloca(self.code.vector_type(kind))

    def loaded(self, kind: str, place: str) -> Lanes:
        return Lanes(kind, self.code.new(f"load {self.code.vector_type(kind)}, ptr {place}"))

    def as_bits(self, value: Lanes) -> Lanes:
        """The bits of a number as an i64."""
        code, kind = self.code, value.type
        if value.step:
            value = Lanes(kind, code.vector(value))
        bits = {"half": "i16", "float": "i32", "double": "i64"}.get(kind)
        if bits:
            value = code.apply("bitcast {T} {0} to {R}", value, type=bits)
        return value if value.type == "i64" else code.apply("zext {T} {0} to {R}", value, type="i64")

    def from_bits(self, value: Lanes, kind: str) -> Lanes:
        code = self.code
        bits = {"half": "i16", "float": "i32", "double": "i64"}.get(kind, kind)
        if bits != "i64":
            value = code.apply("trunc {T} {0} to {R}", value, type=bits)
        return value if bits == kind else code.apply("bitcast {T} {0} to {R}", value, type=kind)

    def atomic(self, operation: int, places: str, value: Lanes, expected: Lanes, size: int) -> Lanes:
        """``places``: a vector of pointers, NULL where nothing is done.  Returns what was there before."""
        code = self.code
        given = [
            self.array(each) for each in (Lanes("ptr", places), self.as_bits(value), self.as_bits(expected))
        ]
        old = self.result("i64")
        code.do(
            f"call void @dmlk_shader_atomic(i32 {operation}, ptr {given[0]}, ptr {given[1]}, ptr {given[2]}, "
            f"ptr {old}, i64 {self.mask_bits(self.mask)}, i32 {size}, i32 {code.lanes})"
        )
        return self.from_bits(self.loaded("i64", old), value.type)

    # --- what is told about accesses ---

    def outside(self, view: View, offset: Lanes, size: int, inside: Lanes, kind: str) -> None:
        """Tells of lanes that access what is not in the view; it matters for root descriptors."""
        code, bits = self.code, self.code.vector_type("i1")
        tell, on = code.name("outside"), code.name("on")
        mask = self.mask_vector(self.mask)
        if inside.uniform:
            code.do(f"br i1 {inside.text}, label %{on}, label %{tell}, !prof !1")
        else:
            mask = code.new(f"xor {bits} {inside.text}, splat (i1 true)")
            if self.mask is not None:
                mask = code.new(f"and {bits} {mask}, {self.mask}")
            none = code.new(f"icmp eq i{code.lanes} {code.new(f'bitcast {bits} {mask} to i{code.lanes}')}, 0")
            code.do(f"br i1 {none}, label %{on}, label %{tell}, !prof !1")
        code.label(tell)
        views, offsets = code.vector_type("ptr"), code.vector_type("i64")
        self.aside(
            "outside",
            "void",
            f"i32 %kind, i32 %size, {views} %views, {offsets} %offsets, {bits} %mask",
            f"i32 {_ACCESS[kind]}, i32 {size}, {views} {code.vector(view.pointer)}, "
            f"{offsets} {code.vector(offset)}, {bits} {mask}",
            self._outside,
        )
        code.do(f"br label %{on}")
        code.label(on)

    def _outside(self) -> None:
        views, offsets = self.array(Lanes("ptr", "%views")), self.array(Lanes("i64", "%offsets"))
        self.code.do(
            f"call void @dmlk_shader_outside(ptr %call, ptr %group, i32 %first, i32 {self.line}, "
            f"i32 %kind, ptr {views}, ptr {offsets}, i32 %size, i64 {self.mask_bits(self.mask)})"
        )

    def aside(self, name: str, result: str, taken: str, given: str, body: Callable[[], Lanes | None]) -> str:
        """Calls a function that ``body`` writes with the parameters ``taken``, once in the module.

        In it the lanes that run are ``%mask``.  Returns the name of its result.
        """
        about = "ptr %call, ptr %group, i32 %first, i32 "
        if name not in self.asides:
            outer = self.code, self.mask, self.line
            self.code, self.mask, self.line = Code(outer[0].lanes), "%mask", "%line"
            made = body()
            self.asides[name] = [
                f"define private {result} @aside.{name}({about}%line, {taken}) noinline cold nounwind {{",
                *self.code.allocas,
                *self.code.lines,
                "  ret void" if made is None else f"  ret {result} {made.text}",
                "}",
            ]
            self.code, self.mask, self.line = outer
        call = f"call {result} @aside.{name}({about}{self.line}, {given})"
        if result == "void":
            self.code.do(call)
            return ""
        return self.code.new(call)

    def accessed(self, view: View, offset: Lanes, size: int, kind: str, value: Lanes | None = None) -> None:
        """Tells what watches the dispatch of an access to a buffer; ``value``: what is written."""
        if not self.target.checked:
            return
        if view.pointer.uniform and offset.step is not None and 0 <= offset.step <= _MOST_STEP:
            written = "null" if value is None else self.array(value)
            self.code.do(
                f"call void @dmlk_shader_accessed_row(ptr %call, ptr %state, i32 {self.line}, "
                f"i32 {_ACCESS[kind]}, ptr {view.pointer.text}, i64 {offset.text}, i32 {offset.step}, "
                f"i32 {size}, ptr {written}, i64 {self.mask_bits(self.mask)})"
            )
            return
        views, offsets = self.array(view.pointer), self.array(offset)
        what = f"i32 {_ACCESS[kind]}, " if value is None else ""
        given = "" if value is None else f"ptr {self.array(value)}, "
        self.code.do(
            f"call void @dmlk_shader_{'accessed' if value is None else 'stored'}(ptr %call, ptr %state, "
            f"i32 {self.line}, {what}ptr {views}, ptr {offsets}, {given}i32 {size}, "
            f"i64 {self.mask_bits(self.mask)})"
        )

    def counted(self, view: View) -> None:
        """The same for the counter of a view."""
        if self.target.checked:
            self.code.do(
                f"call void @dmlk_shader_accessed(ptr %call, ptr %state, i32 {self.line}, i32 {_COUNTER}, "
                f"ptr {self.array(view.pointer)}, ptr null, i32 4, i64 {self.mask_bits(self.mask)})"
            )

    def accessed_typed(self, view: View, index: Lanes, kind: str) -> None:
        """The same where the view's format says how many bytes an element has."""
        if self.target.checked:
            views, indices = self.array(view.pointer), self.array(index)
            self.code.do(
                f"call void @dmlk_shader_accessed_typed(ptr %call, ptr %state, i32 {self.line}, "
                f"i32 {_ACCESS[kind]}, ptr {views}, ptr {indices}, i64 {self.mask_bits(self.mask)})"
            )

    def accessed_shared(
        self,
        pointer: Value,
        offset: Lanes,
        inside: Lanes | None,
        size: int,
        kind: str,
        value: Lanes | None = None,
    ) -> None:
        """The same for groupshared memory."""
        root = variable_of(pointer)
        if not self.target.checked or not isinstance(root, Global) or not root.groupshared:
            return
        code = self.code
        place = Lanes("i32", str(self.target.shared[root]), 0)
        if offset.step is not None:
            first = code.new(f"add i32 {offset.text}, {place.text}")
            step = (offset.step + _MOST_STEP + 1) % (1 << 32) - _MOST_STEP - 1
            fits = "-1" if inside is None else self.mask_bits(code.vector(inside))
            written = "null" if value is None else self.array(value)
            tell, on = code.name("tell"), code.name("on")
            is_row = kind == "read" and size == 4 and step in (0, 4) and code.lanes <= _MOST_KNOWN
            if is_row:
                self._skip_known(first, code.lanes if step else 1, inside, tell, on)
            code.do(
                f"call void @dmlk_shader_shared_row(ptr %call, ptr %state, i32 {self.line}, "
                f"i32 {_ACCESS[kind]}, i32 {first}, i32 {step}, i32 {size}, ptr {written}, "
                f"i64 {fits}, i64 {self.mask_bits(self.mask)})"
            )
            if is_row:
                code.do(f"br label %{on}")
                code.label(on)
            return
        at = code.apply(
            "add {T} {0}, {1}", Lanes("i32", code.vector(offset)) if offset.step else offset, place
        )
        wide = code.apply("zext {T} {0} to {R}", at, type="i64")
        if inside is not None:
            wide = code.select(inside, wide, Lanes("i64", "-1", 0))
        what = f"i32 {_ACCESS[kind]}, " if value is None else ""
        given = "" if value is None else f"ptr {self.array(value)}, "
        code.do(
            f"call void @dmlk_shader_shared{'' if value is None else '_stored'}(ptr %call, ptr %state, "
            f"i32 {self.line}, {what}ptr {self.array(wide)}, {given}i32 {size}, "
            f"i64 {self.mask_bits(self.mask)})"
        )

    def _skip_known(self, first: str, words: int, inside: Lanes | None, tell: str, on: str) -> None:
        """Goes to ``on`` if reads of as many words of groupshared memory, from byte ``first`` on, need not be
        told, else to ``tell``: see ``dmlk_watched_wave``.  Lanes read one after another, or all one word."""
        code = self.code
        if inside is not None:
            fits, go = inside.text, code.name("inside")
            if not inside.uniform:
                bits = code.new(f"bitcast {code.vector_type('i1')} {inside.text} to i{code.lanes}")
                fits = code.new(f"icmp eq i{code.lanes} {bits}, -1")
            code.do(f"br i1 {fits}, label %{go}, label %{tell}")
            code.label(go)
        word = code.new(f"lshr i32 {first}, 2")
        byte = code.new(f"zext i32 {code.new(f'lshr i32 {first}, 5')} to i64")
        place = code.new(f"getelementptr i8, ptr {self._known('ptr', 'known')}, i64 {byte}")
        shift = code.new(f"zext i32 {code.new(f'and i32 {word}, 7')} to i64")
        bits = code.new(f"lshr i64 {code.new(f'load i64, ptr {place}, align 1')}, {shift}")
        ones = (1 << words) - 1
        found = code.new(f"icmp eq i64 {code.new(f'and i64 {bits}, {ones}')}, {ones}")
        if words > 1 or self.mask is not None:
            code.do(f"br i1 {found}, label %{on}, label %{tell}")
        else:
            other = code.name("other")
            code.do(f"br i1 {found}, label %{on}, label %{other}")
            code.label(other)
            self._set_simple(word, tell, on)
        code.label(tell)

    def _set_simple(self, word: str, tell: str, on: str) -> None:
        """Does itself what a simple read of a word by all lanes does."""
        code, simple = self.code, self.code.name("simple")
        number = code.new(f"sub i32 {word}, {self._known('i32', 'simple_first')}")
        near = code.new(f"icmp ult i32 {number}, 64")
        shift = code.new(f"zext i32 {code.new(f'and i32 {number}, 63')} to i64")
        bits = code.new(f"lshr i64 {self._known('i64', 'simple')}, {shift}")
        here = code.new(f"icmp eq i32 {self._known('i32', 'simple_line')}, {self.line}")
        both = code.new(f"and i1 {near}, {here}")
        found = code.new(f"and i1 {both}, {code.new(f'trunc i64 {bits} to i1')}")
        code.do(f"br i1 {found}, label %{simple}, label %{tell}")
        code.label(simple)
        at = code.new(f"zext i32 {word} to i64")
        cell = code.new(f"getelementptr [16 x i8], ptr {self._known('ptr', 'cells')}, i64 {at}")
        code.do(f"store <2 x i64> {self._known('<2 x i64>', 'pair')}, ptr {cell}, align 8")
        code.do(f"br label %{on}")

    def _known(self, kind: str, name: str) -> str:
        """A member of ``dmlk_watched_wave``."""
        code, at = self.code, ffi.offsetof("dmlk_watched_wave", name)
        return code.new(f"load {kind}, ptr {code.new(f'getelementptr i8, ptr %state, i64 {at}')}, align 4")


_CALL = re.compile(r"call ([^@]*?) ?@((?:llvm|dmlk)[\w.]*)\((.*)\)")


def declarations(lines: Iterable[str]) -> list[str]:
    """The functions that lines call, with the types of what they are given."""
    found: dict[str, str] = {}
    for line in lines:
        match = _CALL.search(line)
        if match and match[2] not in found and not match[2].startswith("llvm.coro."):
            given = ", ".join(map(_type_of, _arguments(match[3])))
            found[match[2]] = f"declare {match[1]} @{match[2]}({given})"
    return list(found.values())


def _arguments(text: str) -> Sequence[str]:
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [*parts, text[begin:].strip()] if text else []


def _type_of(argument: str) -> str:
    return argument[: argument.index(">") + 1] if argument.startswith("<") else argument.split(" ")[0]
