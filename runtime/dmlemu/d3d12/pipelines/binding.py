"""Binding: which root parameter leads to the views of each range of a shader's registers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dmlemu_hw.descriptors import DescriptorKind
from dmlemu_hw.programs import Kind, ProgramRange, Source

from ...errors import Error
from ..root_signatures.validation import range_offsets
from ..types.enums import DescriptorRangeFlags, DescriptorRangeType, RootParameterType
from ..types.root_signature import (
    UNBOUNDED,
    RootConstants,
    RootDescriptor1,
    RootDescriptorTable1,
)
from .root_signature import Parameter, RootSignature
from .rows import PS2

if TYPE_CHECKING:
    from ...shaders import Range

__all__ = ["bind", "describe"]

_CLASSES = {
    "t": (DescriptorRangeType.SRV, RootParameterType.SRV, DescriptorKind.SRV),
    "u": (DescriptorRangeType.UAV, RootParameterType.UAV, DescriptorKind.UAV),
    "b": (DescriptorRangeType.CBV, RootParameterType.CBV, DescriptorKind.CBV),
}
_KINDS = {
    "cbuffer": Kind.CBUFFER,
    "typed": Kind.TYPED,
    "raw": Kind.RAW,
    "structured": Kind.STRUCTURED,
}
_LETTERS = {"SRV": "t", "UAV": "u", "CBV": "b", "SAMPLER": "s"}


class _Bound(NamedTuple):
    """Registers that a parameter binds.

    ``end`` None: all behind the first.  ``first``: the place in the table.  ``is_volatile``: the descriptors
    may be written until the list is submitted.
    """

    parameter: Parameter
    letter: str
    space: int
    lower: int
    end: int | None
    first: int = 0
    is_volatile: bool = False

    def __str__(self) -> str:
        """``"u0 in a descriptor table (parameter 1)"``."""
        space = f", space{self.space}" if self.space else ""
        last = ""
        if self.end is None:
            last = " and all behind it"
        elif self.end > self.lower + 1:
            last = f" to {self.letter}{self.end - 1}"
        hidden = f", visible to {self.parameter.struct.shader_visibility.name} alone"
        seen = "" if self.parameter.is_visible else hidden
        where = f"{self.parameter} (parameter {self.parameter.index}{seen})"
        return f"{self.letter}{self.lower}{last}{space} in {where}"

    def holds(self, each: Range) -> bool:
        """Whether all registers of the range are among these."""
        if (self.letter, self.space) != (each.register_class, each.space) or each.lower < self.lower:
            return False
        return self.end is None or (each.count > 0 and each.lower + each.count <= self.end)


def bind(ranges: Sequence[Range], signature: RootSignature, *, uses_heap: bool) -> tuple[ProgramRange, ...]:
    """Where the views of each range come from.  PS2: the root signature does not bind one of them."""
    if uses_heap and not signature.indexes_heap:
        raise PS2.heap(signature, given=signature.desc.flags, signature=signature.title())
    bound = list(_bound(signature))
    return tuple(_bind(each, bound, signature) for each in ranges)


def describe(each: Range) -> str:
    """``"a structured UAV with elements of 16 bytes"``."""
    view = {"t": "SRV", "u": "UAV"}.get(each.register_class, "")
    if each.kind == "cbuffer":
        return "a constant buffer"
    if each.kind == "sampler":
        return "a sampler"
    if each.kind == "structured":
        counter = " and a counter" if each.counter else ""
        return f"a structured {view} with elements of {each.stride} bytes{counter}"
    return f"a {each.kind} {view}{f' of {each.element}' if each.element else ''}"


def _bound(signature: RootSignature) -> Iterator[_Bound]:
    for parameter in signature.parameters:
        what = parameter.struct.parameter
        if isinstance(what, RootConstants):
            yield _Bound(parameter, "b", what.register_space, what.shader_register, what.shader_register + 1)
        elif isinstance(what, RootDescriptor1):
            letter = _LETTERS[parameter.type.name]
            lower = what.shader_register
            yield _Bound(parameter, letter, what.register_space, lower, lower + 1)
        else:
            assert isinstance(what, RootDescriptorTable1)
            firsts = range_offsets(what.descriptor_ranges)
            for each, first in zip(what.descriptor_ranges, firsts, strict=True):
                letter = _LETTERS[DescriptorRangeType(each.range_type).name]
                lower, count = each.base_shader_register, each.num_descriptors
                end = None if count == UNBOUNDED else lower + count
                is_volatile = bool(each.flags & DescriptorRangeFlags.DESCRIPTORS_VOLATILE)
                yield _Bound(parameter, letter, each.register_space, lower, end, first, is_volatile)


def _bind(each: Range, bound: list[_Bound], signature: RootSignature) -> ProgramRange:
    found = next((one for one in bound if one.holds(each) and one.parameter.is_visible), None)
    if found is None:
        raise _not_bound(each, bound, signature)
    kind, descriptor = _KINDS[each.kind], _CLASSES[each.register_class][2]
    parameter, name = found.parameter, each.name or each.register
    if parameter.type is RootParameterType.TYPE_32BIT_CONSTANTS:
        words = parameter.words
        where = Source.CONSTANTS, parameter.word, 0, words
        return ProgramRange(
            name, kind, descriptor, *where, register=each.register, lower=each.lower, space=each.space
        )
    if parameter.type is RootParameterType.DESCRIPTOR_TABLE:
        source, first = Source.TABLE, found.first + each.lower - found.lower
    else:
        if kind is Kind.TYPED or each.counter:
            raise PS2.root_descriptor(
                signature,
                given=f"a root descriptor (parameter {parameter.index})",
                expected="a descriptor table",
                name=f"'{name}'",
                what=describe(each),
                register=each.register,
            )
        source, first = Source.ROOT, 0
    return ProgramRange(
        name,
        kind,
        descriptor,
        source,
        parameter.word,
        first,
        each.count,
        each.stride if kind is Kind.STRUCTURED else 0,
        each.element,
        each.counter,
        found.is_volatile,
        each.register,
        each.lower,
        each.space,
    )


def _not_bound(each: Range, bound: list[_Bound], signature: RootSignature) -> Error:
    """What the root signature has at that place, or of that class."""
    same = [one for one in bound if one.letter == each.register_class and one.space == each.space]
    near = same or [one for one in bound if one.letter == each.register_class] or bound
    return PS2.not_bound(
        signature,
        given="; ".join(map(str, near)) or "a root signature without parameters",
        expected=each.register,
        name=f"'{each.name or each.register}'",
        what=describe(each),
        register=each.register,
        signature=signature.title(),
    )
