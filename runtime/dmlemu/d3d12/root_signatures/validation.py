"""What a root signature may be: the same rules for a desc that is serialized and for bytes that are read."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from typing import NamedTuple

from ...errors import capital
from ..types.arguments import outside
from ..types.enums import (
    ComparisonFunc,
    DescriptorRangeFlags,
    DescriptorRangeType,
    Filter,
    RootDescriptorFlags,
    RootParameterType,
    RootSignatureFlags,
    ShaderVisibility,
    StaticBorderColor,
    TextureAddressMode,
)
from ..types.root_signature import (
    DESCRIPTOR_RANGE_OFFSET_APPEND,
    FLOAT32_MAX,
    UNBOUNDED,
    DescriptorRange1,
    RootConstants,
    RootDescriptor1,
    RootDescriptorTable1,
    RootParameter1,
    RootSignatureDesc1,
    StaticSamplerDesc,
)
from .rows import RG1, RG2, RG3, RG4, RG5, RG6, RG8

__all__ = ["MOST_DWORDS", "cost", "range_offsets", "validate"]

MOST_DWORDS = 64
_LAST = 0xFFFF_FFFF  # of registers and of descriptors
_FIRST_RESERVED_SPACE = 0xFFFF_FFF0
_MOST_ANISOTROPY = 16
_LEAST_BIAS, _MOST_BIAS = -16.0, 15.99

_DATA = (
    RootDescriptorFlags.DATA_VOLATILE,
    RootDescriptorFlags.DATA_STATIC_WHILE_SET_AT_EXECUTE,
    RootDescriptorFlags.DATA_STATIC,
)
_RANGE_TYPES = {
    RootParameterType.TYPE_32BIT_CONSTANTS: DescriptorRangeType.CBV,
    RootParameterType.CBV: DescriptorRangeType.CBV,
    RootParameterType.SRV: DescriptorRangeType.SRV,
    RootParameterType.UAV: DescriptorRangeType.UAV,
}
_LETTERS = {
    DescriptorRangeType.SRV: "t",
    DescriptorRangeType.UAV: "u",
    DescriptorRangeType.CBV: "b",
    DescriptorRangeType.SAMPLER: "s",
}


def validate(desc: RootSignatureDesc1, where: str, operation: str) -> None:
    """Raises the error of the first rule that the root signature breaks.

    ``where``: the argument that it is, which begins the names of fields.  ``operation``: the call.
    """
    _Validation(where, operation).check(desc)


def cost(desc: RootSignatureDesc1) -> int:
    """What all parameters cost, in DWORDs."""
    return sum(map(_cost, desc.parameters))


def _cost(parameter: RootParameter1) -> int:
    if isinstance(parameter.parameter, RootConstants):
        return parameter.parameter.num_32bit_values
    return 1 if isinstance(parameter.parameter, RootDescriptorTable1) else 2


def range_offsets(ranges: tuple[DescriptorRange1, ...]) -> tuple[int, ...]:
    """Where the ranges of a table begin, in descriptors from the table's start; 2**32: nowhere, as the range
    is appended to one without an end."""
    offsets, end = [], 0
    for each in ranges:
        given = each.offset_in_descriptors_from_table_start
        begin = end if given == DESCRIPTOR_RANGE_OFFSET_APPEND else given
        offsets.append(begin)
        end = _LAST + 1 if each.num_descriptors == UNBOUNDED else begin + each.num_descriptors
    return tuple(offsets)


class _Registers(NamedTuple):
    """Registers of one kind and space; compared by the first."""

    first: int
    last: int
    what: str

    def spelled(self, letter: str, space: int) -> str:
        end = "" if self.last == self.first else "..." if self.last == _LAST else f" to {letter}{self.last}"
        return f"{letter}{self.first}{end}" + (f" of space {space}" if space else "")


class _Validation:
    def __init__(self, where: str, operation: str) -> None:
        self._where, self._operation = where, operation
        self._taken: dict[tuple[int, DescriptorRangeType, int], list[_Registers]] = {}
        """By visibility, kind and space, in their order."""

    def check(self, desc: RootSignatureDesc1) -> None:
        known = sum(RootSignatureFlags)
        if desc.flags & ~known:
            raise RG6.signature(field=f"{self._where}.Flags", given=desc.flags, operation=self._operation)
        for number, each in enumerate(desc.parameters):
            self._parameter(each, number)
        for number, sampler in enumerate(desc.static_samplers):
            self._static_sampler(sampler, number)
        # A local root signature is for raytracing, where the limit is that of a shader record.
        if cost(desc) > MOST_DWORDS and not desc.flags & RootSignatureFlags.LOCAL_ROOT_SIGNATURE:
            raise RG1.cost(field=f"{self._where}.pParameters", given=cost(desc), operation=self._operation)

    # --- parameters ---

    def _parameter(self, given: RootParameter1, number: int) -> None:
        field, what = f"{self._where}.pParameters[{number}]", f"root parameter {number}"
        if given.parameter_type not in list(RootParameterType):
            raise RG2.parameter_type(
                field=f"{field}.ParameterType",
                given=given.parameter_type,
                operation=self._operation,
                number=number,
            )
        self._visibility(given.shader_visibility, field, what)
        if isinstance(given.parameter, RootDescriptorTable1):
            self._table(given.parameter.descriptor_ranges, f"{field}.DescriptorTable", what, given)
            return
        kind = _RANGE_TYPES[RootParameterType(given.parameter_type)]
        if isinstance(given.parameter, RootDescriptor1):
            field += ".Descriptor"
            self._data_flags(given.parameter.flags, sum(RootDescriptorFlags), field, what)
        else:
            field += ".Constants"
            self._word(given.parameter.num_32bit_values, f"{field}.Num32BitValues")
        register, space = given.parameter.shader_register, given.parameter.register_space
        self._word(register, f"{field}.ShaderRegister")
        self._take(_Registers(register, register, what), kind, space, given.shader_visibility, field)

    def _word(self, value: int, field: str) -> None:
        if not 0 <= value <= _LAST:
            raise outside(value, field, "a number of 32 bits, without a sign")

    def _visibility(self, given: int, field: str, what: str) -> None:
        if given not in list(ShaderVisibility):
            raise RG2.visibility(
                field=f"{field}.ShaderVisibility", given=given, operation=self._operation, what=what
            )

    # --- tables ---

    def _table(
        self, ranges: tuple[DescriptorRange1, ...], field: str, what: str, parameter: RootParameter1
    ) -> None:
        for number, (each, begin) in enumerate(zip(ranges, range_offsets(ranges), strict=True)):
            place, name = f"{field}.pDescriptorRanges[{number}]", f"range {number} of {what}"
            self._range(each, begin, place, name)
            self._not_mixed(each, ranges[0], place, name)
            kind = DescriptorRangeType(each.range_type)
            is_sampler = kind is DescriptorRangeType.SAMPLER
            self._data_flags(each.flags, sum(DescriptorRangeFlags), place, name, is_sampler=is_sampler)
            first = each.base_shader_register
            last = _LAST if each.num_descriptors == UNBOUNDED else first + each.num_descriptors - 1
            registers = _Registers(first, last, name)
            self._take(registers, kind, each.register_space, parameter.shader_visibility, place)

    def _range(self, given: DescriptorRange1, begin: int, field: str, what: str) -> None:
        """Its type, and that it has descriptors and registers with numbers of 32 bits."""
        count, first = given.num_descriptors, given.base_shader_register
        if given.range_type not in list(DescriptorRangeType):
            raise RG3.type(
                field=f"{field}.RangeType", given=given.range_type, operation=self._operation, what=what
            )
        self._word(count, f"{field}.NumDescriptors")
        self._word(first, f"{field}.BaseShaderRegister")
        offset = f"{field}.OffsetInDescriptorsFromTableStart"
        self._word(given.offset_in_descriptors_from_table_start, offset)
        if count == 0:
            raise RG3.empty(field=f"{field}.NumDescriptors", operation=self._operation, what=what)
        if begin > _LAST:
            raise RG3.appended(field=offset, operation=self._operation, what=capital(what))
        if count == UNBOUNDED:
            return
        for rule, start in ((RG3.registers, first), (RG3.descriptors, begin)):
            if start + count - 1 > _LAST:
                raise rule(
                    field=f"{field}.NumDescriptors",
                    given=count,
                    operation=self._operation,
                    what=capital(what),
                    first=start,
                )

    def _not_mixed(self, given: DescriptorRange1, first: DescriptorRange1, field: str, what: str) -> None:
        is_sampler = given.range_type == DescriptorRangeType.SAMPLER
        if is_sampler != (first.range_type == DescriptorRangeType.SAMPLER):
            raise RG4.mixed(
                field=f"{field}.RangeType",
                given=given.range_type,
                expected="a view" if is_sampler else "SAMPLER",
                operation=self._operation,
                what=capital(what),
                others="views" if is_sampler else "samplers",
            )

    def _data_flags(self, given: int, known: int, field: str, what: str, *, is_sampler: bool = False) -> None:
        field += ".Flags"
        data = [each for each in _DATA if given & each]
        if given & ~known:
            kind = RootDescriptorFlags if known == sum(RootDescriptorFlags) else DescriptorRangeFlags
            breach, expected = RG6.unknown, f"bits of {_c_name(kind)}"
        elif is_sampler and data:
            breach, expected = RG6.of_sampler, RG6.of_sampler.expected
        elif len(data) > 1:
            breach, expected = RG6.several, RG6.several.expected
        elif given & _DATA[-1] and given & DescriptorRangeFlags.DESCRIPTORS_VOLATILE:
            breach, expected = RG6.volatile_descriptors, RG6.volatile_descriptors.expected
        else:
            return
        raise breach(field=field, given=given, expected=expected, operation=self._operation, what=what)

    # --- registers ---

    def _take(
        self, given: _Registers, kind: DescriptorRangeType, space: int, visibility: int, field: str
    ) -> None:
        """Notes registers as those of a parameter; they are no other's that the same shaders see."""
        self._word(space, f"{field}.RegisterSpace")
        if space >= _FIRST_RESERVED_SPACE:
            raise RG2.space(
                field=f"{field}.RegisterSpace",
                given=f"0x{space:X}",
                operation=self._operation,
                what=given.what,
            )
        seen = list(ShaderVisibility) if visibility == ShaderVisibility.ALL else [visibility, 0]
        for each in seen:
            taken = self._taken.get((each, kind, space), [])
            at = bisect_left(taken, given)
            for other in taken[max(at - 1, 0) : at + 1]:
                if other.first <= given.last and given.first <= other.last:
                    raise self._overlap(given, other, kind, space, field)
        insort(self._taken.setdefault((visibility, kind, space), []), given)

    def _overlap(
        self, given: _Registers, other: _Registers, kind: DescriptorRangeType, space: int, field: str
    ) -> Exception:
        letter = _LETTERS[kind]
        base = "BaseShaderRegister" if field.endswith("]") and "Ranges" in field else "ShaderRegister"
        return RG5.overlap(
            field=f"{field}.{base}",
            given=given.spelled(letter, space),
            operation=self._operation,
            what=capital(given.what),
            registers=given.spelled(letter, space),
            other=other.what,
            other_registers=other.spelled(letter, space),
        )

    # --- static samplers ---

    def _static_sampler(self, given: StaticSamplerDesc, number: int) -> None:
        field, what = f"{self._where}.pStaticSamplers[{number}]", f"static sampler {number}"
        self._visibility(given.shader_visibility, field, what)
        is_comparison = given.filter & 0x180 == 0x80
        rows = [
            ("Filter", given.filter, Filter),
            ("AddressU", given.address_u, TextureAddressMode),
            ("AddressV", given.address_v, TextureAddressMode),
            ("AddressW", given.address_w, TextureAddressMode),
            ("BorderColor", given.border_color, StaticBorderColor),
        ]
        if is_comparison:
            rows.append(("ComparisonFunc", given.comparison_func, ComparisonFunc))
        for name, value, kind in rows:
            if value not in list(kind) or (kind is ComparisonFunc and not value):
                self._wrong_sampler(field, number, name, value, f"a member of {_c_name(kind)}")
        if not 0 <= given.max_anisotropy <= _MOST_ANISOTROPY:
            self._wrong_sampler(field, number, "MaxAnisotropy", given.max_anisotropy, "0 to 16")
        if not _LEAST_BIAS <= given.mip_lod_bias <= _MOST_BIAS:
            self._wrong_sampler(field, number, "MipLODBias", given.mip_lod_bias, "-16 to 15.99")
        for name, limit in (("MinLOD", given.min_lod), ("MaxLOD", given.max_lod)):
            if math.isnan(limit) or (abs(limit) > FLOAT32_MAX and not math.isinf(limit)):
                self._wrong_sampler(field, number, name, limit, "a number that a FLOAT can hold")
        self._word(given.comparison_func, f"{field}.ComparisonFunc")
        self._word(given.shader_register, f"{field}.ShaderRegister")
        registers = _Registers(given.shader_register, given.shader_register, what)
        self._take(
            registers, DescriptorRangeType.SAMPLER, given.register_space, given.shader_visibility, field
        )

    def _wrong_sampler(self, field: str, number: int, name: str, given: object, expected: str) -> None:
        raise RG8.value(
            field=f"{field}.{name}",
            given=given,
            expected=expected,
            operation=self._operation,
            name=name,
            number=number,
        )


def _c_name(kind: type) -> str:
    return "D3D12" + "".join(f"_{each}" if each.isupper() else each.upper() for each in kind.__name__).upper()
