"""Root signatures as bytes: what DXC writes, what is refused, and bytes that are damaged."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from dmlemu import Error, HResult
from dmlemu.d3d12 import (
    DESCRIPTOR_RANGE_OFFSET_APPEND,
    UNBOUNDED,
    ComparisonFunc,
    DescriptorRange,
    DescriptorRange1,
    DescriptorRangeFlags,
    DescriptorRangeType,
    Filter,
    RootConstants,
    RootDescriptor,
    RootDescriptor1,
    RootDescriptorFlags,
    RootDescriptorTable,
    RootParameter,
    RootParameter1,
    RootParameterType,
    RootSignatureDesc,
    RootSignatureDesc1,
    RootSignatureFlags,
    RootSignatureVersion,
    ShaderVisibility,
    StaticBorderColor,
    StaticSamplerDesc,
    TextureAddressMode,
    VersionedRootSignatureDesc,
    create_root_signature_deserializer,
    create_versioned_root_signature_deserializer,
    serialize_root_signature,
    serialize_versioned_root_signature,
)
from dmlemu.d3d12.root_signatures.deserializer import read_root_signature
from dmlemu.d3d12.root_signatures.validation import cost, range_offsets
from dmlemu.shaders.container import read_parts, write_container

from .signature_sources import DRAWN, WRITTEN, Signature, drawn

FROM_DXC: dict[str, dict[str, str | None]] = json.loads(
    (Path(__file__).parent / "root_signatures.json").read_text()
)
VERSIONS = {"1_0": RootSignatureVersion.VERSION_1_0, "1_1": RootSignatureVersion.VERSION_1_1}
TYPES = {"SRV": 0, "UAV": 1, "CBV": 2, "Sampler": 3}
SRV, UAV, CBV, SAMPLER = DescriptorRangeType
P1, R1 = RootParameter1, DescriptorRange1


# --- the signatures that DXC compiled ---


def desc_of(given: Signature, version: str) -> VersionedRootSignatureDesc:
    is_1_0 = version == "1_0"
    flags = sum((RootSignatureFlags[each] for each in given["flags"]), RootSignatureFlags.NONE)
    samplers = tuple(map(sampler_of, given["samplers"]))
    desc: RootSignatureDesc | RootSignatureDesc1
    if is_1_0:
        desc = RootSignatureDesc(tuple(map(parameter_1_0, given["parameters"])), samplers, flags)
    else:
        desc = RootSignatureDesc1(tuple(map(parameter_1_1, given["parameters"])), samplers, flags)
    return VersionedRootSignatureDesc(VERSIONS[version], desc)


def parameter_1_0(given: dict[str, Any]) -> RootParameter:
    visibility = ShaderVisibility[given["visibility"]]
    place = (given.get("register", 0), given.get("space", 0))
    if given["kind"] == "Table":
        rows = given["ranges"]
        ranges = [
            DescriptorRange(
                DescriptorRangeType(TYPES[r["kind"]]), r["count"], r["register"], r["space"], r["offset"]
            )
            for r in rows
        ]
        return RootParameter.descriptor_table(ranges, visibility)
    if given["kind"] == "Constants":
        return RootParameter.constants(given["count"], *place, visibility)
    return RootParameter(RootParameterType[given["kind"]], RootDescriptor(*place), visibility)


def parameter_1_1(given: dict[str, Any]) -> RootParameter1:
    visibility = ShaderVisibility[given["visibility"]]
    place = (given.get("register", 0), given.get("space", 0))
    if given["kind"] == "Table":
        return RootParameter1.descriptor_table([range_1_1(each) for each in given["ranges"]], visibility)
    if given["kind"] == "Constants":
        return RootParameter1.constants(given["count"], *place, visibility)
    flags = sum((RootDescriptorFlags[each] for each in given["flags"]), RootDescriptorFlags.NONE)
    return RootParameter1(RootParameterType[given["kind"]], RootDescriptor1(*place, flags), visibility)


def range_1_1(given: dict[str, Any]) -> DescriptorRange1:
    flags = sum((DescriptorRangeFlags[each] for each in given["flags"]), DescriptorRangeFlags.NONE)
    kind = DescriptorRangeType(TYPES[given["kind"]])
    return R1(kind, given["count"], given["register"], given["space"], flags, given["offset"])


def sampler_of(given: dict[str, Any]) -> StaticSamplerDesc:
    return StaticSamplerDesc(
        Filter[given["filter"]],
        TextureAddressMode[given["addressU"]],
        TextureAddressMode[given["addressV"]],
        TextureAddressMode[given["addressW"]],
        given["mipLODBias"],
        given["maxAnisotropy"],
        ComparisonFunc[given["comparisonFunc"]],
        StaticBorderColor[given["borderColor"]],
        given["minLOD"],
        given["maxLOD"],
        given["register"],
        given["space"],
        ShaderVisibility[given["visibility"]],
    )


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", WRITTEN)
def test_bytes_are_those_of_dxc(name: str, version: str) -> None:
    expected = FROM_DXC[version][name]
    assert expected is not None
    made = serialize_versioned_root_signature(desc_of(WRITTEN[name], version))
    assert made.hex() == expected


@pytest.mark.parametrize("version", VERSIONS)
def test_drawn_signatures_are_written_or_refused_as_by_dxc(version: str) -> None:
    written = 0
    for seed in DRAWN:
        expected = FROM_DXC[version][str(seed)]
        desc = desc_of(drawn(seed), version)
        if expected is None:
            with pytest.raises(Error) as refused:
                serialize_versioned_root_signature(desc)
            assert refused.value.report.id == "ROOT_SIGNATURE", seed
            continue
        made = serialize_versioned_root_signature(desc)
        assert expected == sha256(made).hexdigest()[:16], seed
        again = create_versioned_root_signature_deserializer(made).get_unconverted_root_signature_desc()
        assert serialize_versioned_root_signature(again) == made
        assert again.desc.parameters == desc.desc.parameters
        written += 1
    assert len(DRAWN) / 3 < written < len(DRAWN)


# --- rules ---


def signature(*parameters: RootParameter1, **more: Any) -> VersionedRootSignatureDesc:
    return VersionedRootSignatureDesc(VERSIONS["1_1"], RootSignatureDesc1(parameters, **more))


def table(*ranges: DescriptorRange1, visibility: ShaderVisibility = ShaderVisibility.ALL) -> RootParameter1:
    return P1.descriptor_table(ranges, visibility)


def refused(rule: str, desc: VersionedRootSignatureDesc, field: str) -> Error:
    """The error: in the desc of its version, and of bytes that say the same, where bytes can."""
    with pytest.raises(Error) as raised:
        serialize_versioned_root_signature(desc)
    error = raised.value
    assert error.hresult is HResult.E_INVALIDARG and error.report.id == "ROOT_SIGNATURE"
    assert error.report.rule.startswith(f"{rule}: ")
    assert error.report.field == f"pRootSignature.Desc_1_1.{field}"
    return error


def test_RG1_a_root_signature_costs_at_most_64_dwords() -> None:
    views = [P1.shader_resource_view(i) for i in range(16)]
    tables = [table(R1(UAV, 1, i)) for i in range(16)]
    full = signature(*views, *tables, P1.constants(16, 0))
    serialize_versioned_root_signature(full)
    assert isinstance(full.desc, RootSignatureDesc1) and cost(full.desc) == 64
    over = signature(*views, *tables, P1.constants(17, 0))
    assert refused("RG1", over, "pParameters").report.given == "65"


def test_RG1_a_local_root_signature_has_another_limit() -> None:
    local = RootSignatureFlags.LOCAL_ROOT_SIGNATURE
    serialize_versioned_root_signature(signature(P1.constants(65, 0), flags=local))


def test_RG2_types_visibilities_and_spaces() -> None:
    unknown = RootParameter1(9, RootDescriptor1(0))  # type: ignore[arg-type]
    refused("RG2", signature(unknown), "pParameters[0].ParameterType")
    seen = P1.constants(1, 0, visibility=8)  # type: ignore[arg-type]
    refused("RG2", signature(seen), "pParameters[0].ShaderVisibility")
    place = P1.constant_buffer_view(0, 0xFFFF_FFF0)
    refused("RG2", signature(place), "pParameters[0].Descriptor.RegisterSpace")
    serialize_versioned_root_signature(signature(P1.constant_buffer_view(0, 0xFFFF_FFEF)))


@pytest.mark.parametrize(
    ("ranges", "name"),
    [
        ([R1(4, 1, 0)], "RangeType"),  # type: ignore[arg-type]
        ([R1(SRV, 0, 0)], "NumDescriptors"),
        ([R1(SRV, 2, 0xFFFF_FFFF)], "NumDescriptors"),
        ([R1(SRV, 2, 0, offset_in_descriptors_from_table_start=0xFFFF_FFFE)], ""),
        ([R1(SRV, 3, 0, offset_in_descriptors_from_table_start=0xFFFF_FFFE)], "NumDescriptors"),
        ([R1(SRV, UNBOUNDED, 0), R1(UAV, 1, 0)], "OffsetInDescriptorsFromTableStart"),
        ([R1(SRV, UNBOUNDED, 0), R1(UAV, 1, 0, offset_in_descriptors_from_table_start=3)], ""),
    ],
)
def test_RG3_ranges(ranges: list[DescriptorRange1], name: str) -> None:
    desc = signature(table(*ranges))
    if not name:
        serialize_versioned_root_signature(desc)
        return
    last = len(ranges) - 1
    refused("RG3", desc, f"pParameters[0].DescriptorTable.pDescriptorRanges[{last}].{name}")


def test_RG3_where_the_ranges_of_a_table_begin() -> None:
    at = DESCRIPTOR_RANGE_OFFSET_APPEND
    rows = [(2, at), (3, at), (1, 20), (UNBOUNDED, at), (1, 7), (1, at), (UNBOUNDED, at), (1, at)]
    ranges = tuple(R1(SRV, n, 0, offset_in_descriptors_from_table_start=to) for n, to in rows)
    assert range_offsets(ranges) == (0, 2, 20, 21, 7, 8, 9, 2**32)


def test_RG4_samplers_have_tables_of_their_own() -> None:
    for first, second in ((SRV, SAMPLER), (SAMPLER, CBV)):
        desc = signature(table(R1(first, 1, 0), R1(second, 1, 0)))
        refused("RG4", desc, "pParameters[0].DescriptorTable.pDescriptorRanges[1].RangeType")


ALL, PIXEL, MESH = ShaderVisibility.ALL, ShaderVisibility.PIXEL, ShaderVisibility.MESH


@pytest.mark.parametrize(
    ("parameters", "is_legal"),
    [
        ([P1.constants(1, 3), P1.constant_buffer_view(3)], False),
        ([P1.shader_resource_view(3), P1.unordered_access_view(3)], True),
        ([P1.shader_resource_view(3), P1.shader_resource_view(3, 1)], True),
        ([P1.shader_resource_view(3, visibility=PIXEL), P1.shader_resource_view(3, visibility=MESH)], True),
        ([P1.shader_resource_view(3, visibility=PIXEL), P1.shader_resource_view(3)], False),
        ([P1.shader_resource_view(3), P1.shader_resource_view(3, visibility=PIXEL)], False),
        ([table(R1(UAV, UNBOUNDED, 2)), P1.unordered_access_view(1000)], False),
        ([table(R1(UAV, UNBOUNDED, 2)), P1.unordered_access_view(1)], True),
        ([table(R1(UAV, 4, 2)), P1.unordered_access_view(5)], False),
        ([table(R1(UAV, 4, 2)), P1.unordered_access_view(6)], True),
        ([P1.unordered_access_view(9), P1.unordered_access_view(2), table(R1(UAV, 20, 0))], False),
        ([P1.unordered_access_view(9), table(R1(UAV, 9, 0)), table(R1(UAV, 9, 10))], True),
    ],
)
def test_RG5_a_register_belongs_to_one_parameter(parameters: list[RootParameter1], is_legal: bool) -> None:
    if is_legal:
        serialize_versioned_root_signature(signature(*parameters))
        return
    last = parameters[-1]
    member = {0: "DescriptorTable.pDescriptorRanges[0].Base", 1: "Constants."}
    name = member.get(last.parameter_type, "Descriptor.") + "ShaderRegister"
    refused("RG5", signature(*parameters), f"pParameters[{len(parameters) - 1}].{name}")


def test_RG5_static_samplers_have_registers_too() -> None:
    samplers = [StaticSamplerDesc(shader_register=3)]
    desc = signature(table(R1(SAMPLER, 4, 0)), static_samplers=samplers)
    error = refused("RG5", desc, "pStaticSamplers[0].ShaderRegister")
    assert "range 0 of root parameter 0" in str(error) and "s0 to s3" in str(error)


def test_RG5_many_ranges_take_no_square_of_time() -> None:
    """Tens of thousands of ranges, each of which is compared with its neighbours only."""
    ranges = [R1(SRV, 1, 2 * i) for i in range(30_000)]
    data = serialize_versioned_root_signature(signature(table(*ranges)))
    assert len(read_root_signature(data).parameters) == 1


D, F = DescriptorRangeFlags, RootDescriptorFlags


@pytest.mark.parametrize(
    ("parameter", "field"),
    [
        (table(R1(SRV, 1, 0, 0, D(0x10))), "DescriptorTable.pDescriptorRanges[0]"),
        (table(R1(SRV, 1, 0, 0, D.DATA_STATIC | D.DATA_VOLATILE)), "DescriptorTable.pDescriptorRanges[0]"),
        (
            table(R1(UAV, 1, 0, 0, D.DATA_STATIC | D.DESCRIPTORS_VOLATILE)),
            "DescriptorTable.pDescriptorRanges[0]",
        ),
        (table(R1(SAMPLER, 1, 0, 0, D.DATA_VOLATILE)), "DescriptorTable.pDescriptorRanges[0]"),
        (P1.shader_resource_view(0, flags=F(1)), "Descriptor"),
        (P1.shader_resource_view(0, flags=F.DATA_STATIC | F.DATA_VOLATILE), "Descriptor"),
    ],
)
def test_RG6_flags_that_contradict(parameter: RootParameter1, field: str) -> None:
    refused("RG6", signature(parameter), f"pParameters[0].{field}.Flags")


def test_RG6_flags() -> None:
    refused("RG6", signature(flags=RootSignatureFlags(0x1000)), "Flags")
    serialize_versioned_root_signature(signature(flags=RootSignatureFlags(0xFFF)))
    for flags in (D.DESCRIPTORS_VOLATILE | D.DATA_STATIC_WHILE_SET_AT_EXECUTE, D.DATA_STATIC):
        serialize_versioned_root_signature(signature(table(R1(CBV, 1, 0, 0, flags))))


def test_RG7_versions() -> None:
    old, new = RootSignatureDesc(), RootSignatureDesc1()
    assert serialize_root_signature(old) == serialize_versioned_root_signature(
        VersionedRootSignatureDesc(VERSIONS["1_0"], old)
    )
    for call in (
        lambda: serialize_root_signature(old, RootSignatureVersion.VERSION_1_1),
        lambda: serialize_versioned_root_signature(VersionedRootSignatureDesc(7, new)),  # type: ignore[arg-type]
        lambda: deserializer(old).get_root_signature_desc_at_version(0),  # type: ignore[arg-type]
        lambda: create_root_signature_deserializer(container(struct.pack("<6I", 9, 0, 24, 0, 24, 0))),
    ):
        with pytest.raises(Error) as raised:
            call()
        assert raised.value.report.rule.startswith("RG7: ")
        assert raised.value.hresult is HResult.E_INVALIDARG


def test_RG7_version_1_2_is_not_emulated() -> None:
    new = VersionedRootSignatureDesc(RootSignatureVersion.VERSION_1_2, RootSignatureDesc1())
    for call in (
        lambda: serialize_versioned_root_signature(new),
        lambda: deserializer(RootSignatureDesc()).get_root_signature_desc_at_version(new.version),
        lambda: create_root_signature_deserializer(container(struct.pack("<6I", 3, 0, 24, 0, 24, 0))),
    ):
        with pytest.raises(Error, match=r"Version 1\.2") as raised:
            call()
        assert raised.value.hresult is HResult.E_NOTIMPL and raised.value.report.hint


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Filter", 2),
        ("AddressU", 0),
        ("AddressV", 6),
        ("AddressW", -1),
        ("BorderColor", 5),
        ("MaxAnisotropy", 17),
        ("MipLODBias", -16.5),
        ("MipLODBias", 16.0),
        ("MipLODBias", float("nan")),
        ("MinLOD", float("nan")),
        ("MaxLOD", 1e39),
    ],
)
def test_RG8_static_samplers(name: str, given: Any) -> None:
    fields = {"MipLODBias": "mip_lod_bias", "MinLOD": "min_lod", "MaxLOD": "max_lod"}
    snake = fields.get(name) or "".join(f"_{c.lower()}" if c.isupper() else c for c in name)[1:]
    samplers = [StaticSamplerDesc(), StaticSamplerDesc(**{snake: given, "shader_register": 1})]
    refused("RG8", signature(static_samplers=samplers), f"pStaticSamplers[1].{name}")


def test_RG8_only_filters_that_compare_need_a_function() -> None:
    none = ComparisonFunc.NONE
    serialize_versioned_root_signature(signature(static_samplers=[StaticSamplerDesc(comparison_func=none)]))
    compares = StaticSamplerDesc(Filter.COMPARISON_ANISOTROPIC, comparison_func=none)
    refused("RG8", signature(static_samplers=[compares]), "pStaticSamplers[0].ComparisonFunc")


@pytest.mark.parametrize("number", [-1, 2**32])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: P1.constants(n, 0),
        lambda n: P1.constants(1, n),
        lambda n: P1.shader_resource_view(0, n),
        lambda n: table(R1(SRV, n, 0)),
        lambda n: table(R1(SRV, 1, n)),
        lambda n: table(R1(SRV, 1, 0, n)),
        lambda n: table(R1(SRV, 1, 0, offset_in_descriptors_from_table_start=n)),
    ],
)
def test_numbers_have_32_bits(make: Callable[[int], RootParameter1], number: int) -> None:
    with pytest.raises(Error, match="32 bits"):
        serialize_versioned_root_signature(signature(make(number)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: RootSignatureDesc([P1.constants(1, 0)]),  # type: ignore[arg-type]
        lambda: RootSignatureDesc1(P1.constants(1, 0)),  # type: ignore[arg-type]
        lambda: RootSignatureDesc1([], [1]),  # type: ignore[arg-type, list-item]
        lambda: RootDescriptorTable([R1(SRV, 1, 0)]),  # type: ignore[arg-type]
        lambda: RootParameter1(RootParameterType.CBV, RootConstants(0, 0, 1)),
        lambda: RootParameter1(RootParameterType.DESCRIPTOR_TABLE, RootDescriptor1(0)),
        lambda: RootParameter(77, "x"),  # type: ignore[arg-type]
        lambda: VersionedRootSignatureDesc(VERSIONS["1_1"], RootSignatureDesc()),
        lambda: VersionedRootSignatureDesc(VERSIONS["1_0"], RootSignatureDesc1()),
        lambda: StaticSamplerDesc(mip_lod_bias="1"),  # type: ignore[arg-type]
        lambda: serialize_root_signature(RootSignatureDesc1()),  # type: ignore[arg-type]
        lambda: serialize_versioned_root_signature(None),  # type: ignore[arg-type]
        lambda: create_root_signature_deserializer(None),
    ],
)
def test_another_type_is_a_type_error(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError):
        make()


# --- reading ---


def deserializer(desc: RootSignatureDesc) -> Any:
    return create_versioned_root_signature_deserializer(serialize_root_signature(desc))


def container(part: bytes) -> bytes:
    return write_container({"RTS0": part})


def test_version_1_0_says_that_all_is_volatile() -> None:
    ranges = [DescriptorRange(SRV, 2, 0), DescriptorRange(UAV, 1, 4, 0, 9)]
    samplers = RootParameter.descriptor_table([DescriptorRange(SAMPLER, 1, 0)])
    parameters = [
        RootParameter.descriptor_table(ranges),
        samplers,
        RootParameter.constants(2, 5),
        RootParameter.constant_buffer_view(0),
        RootParameter.shader_resource_view(8),
        RootParameter.unordered_access_view(0, 1, PIXEL),
    ]
    read = deserializer(RootSignatureDesc(parameters))
    volatile = D.DESCRIPTORS_VOLATILE | D.DATA_VOLATILE
    assert read.get_root_signature_desc_at_version(VERSIONS["1_1"]) == signature(
        table(R1(SRV, 2, 0, 0, volatile), R1(UAV, 1, 4, 0, volatile, 9)),
        table(R1(SAMPLER, 1, 0, 0, D.DESCRIPTORS_VOLATILE)),
        P1.constants(2, 5),
        P1.constant_buffer_view(0, flags=F.DATA_VOLATILE),
        P1.shader_resource_view(8, flags=F.DATA_VOLATILE),
        P1.unordered_access_view(0, 1, F.DATA_VOLATILE, PIXEL),
    )
    unconverted = VersionedRootSignatureDesc(VERSIONS["1_0"], RootSignatureDesc(parameters))
    assert read.get_root_signature_desc_at_version(VERSIONS["1_0"]) == unconverted
    assert read.get_unconverted_root_signature_desc() == unconverted


def test_version_1_1_as_version_1_0_has_no_flags() -> None:
    desc = signature(table(R1(SRV, 1, 0, 0, D.DATA_STATIC)), P1.unordered_access_view(0, flags=F.DATA_STATIC))
    data = serialize_versioned_root_signature(desc)
    expected = RootSignatureDesc(
        [RootParameter.descriptor_table([DescriptorRange(SRV, 1, 0)]), RootParameter.unordered_access_view(0)]
    )
    assert create_root_signature_deserializer(data).get_root_signature_desc() == expected
    read = create_versioned_root_signature_deserializer(memoryview(data))
    assert read.get_root_signature_desc_at_version(VERSIONS["1_0"]).desc == expected
    assert read.get_unconverted_root_signature_desc() == desc


def test_RG9_a_container_without_a_root_signature() -> None:
    for parts, given in (({}, "no part"), ({"DXIL": b""}, "parts DXIL")):
        with pytest.raises(Error) as raised:
            create_root_signature_deserializer(write_container(parts))
        assert raised.value.report.rule.startswith("RG9: ") and raised.value.report.given == given
        assert raised.value.report.id == "ROOT_SIGNATURE_BLOB"


def damaged(data: bytes) -> Error:
    with pytest.raises(Error) as raised:
        create_root_signature_deserializer(data)
    assert raised.value.hresult is HResult.E_INVALIDARG
    return raised.value


def test_RG9_bytes_that_are_no_container() -> None:
    for data in (b"", b"DXBC", bytes(64), b"\0" * 4 + container(bytes(24))[4:]):
        assert damaged(data).report.id == "ROOT_SIGNATURE_BLOB"


@pytest.mark.parametrize(
    ("part", "what"),
    [
        (struct.pack("<5I", 2, 0, 24, 0, 24), "those of the header have 24 bytes"),
        (struct.pack("<6I", 2, 1, 24, 0, 24, 0), "parameters have 12 bytes at byte 24"),
        (struct.pack("<6I", 2, 0xFFFF_FFFF, 24, 0, 24, 0), "parameters have 51539607540 bytes"),
        (struct.pack("<6I", 2, 0, 24, 0xFFFF_FFFF, 24, 0), "static samplers have 223338299340 bytes"),
        (
            struct.pack("<9I", 2, 1, 24, 0, 0, 0, 0, 0, 36),
            "those of a descriptor table have 8 bytes at byte 36",
        ),
        (struct.pack("<9I", 2, 1, 24, 0, 0, 0, 1, 0, 30), "root constants have 12 bytes at byte 30"),
        (struct.pack("<9I", 2, 1, 24, 0, 0, 0, 2, 0, 2**32 - 1), "those of a root descriptor have 12 bytes"),
        (
            struct.pack("<11I", 2, 1, 24, 0, 0, 0, 0, 0, 36, 2**28, 0),
            "descriptor ranges have 6442450944 bytes",
        ),
    ],
)
def test_RG9_counts_and_offsets_outside_of_the_part(part: bytes, what: str) -> None:
    assert what in str(damaged(container(part)))


def test_RG9_arrays_that_share_their_bytes() -> None:
    """A few bytes cannot stand for many tables, each with many ranges."""
    parameters = struct.pack("<3I", 0, 0, 24 + 12 * 60) * 60
    ranges = struct.pack("<6I", 0, 1, 0, 0, 0, 0) * 1000
    head = struct.pack("<6I", 2, 60, 24, 0, 0, 0)
    part = head + parameters + struct.pack("<2I", 1000, 24 + 12 * 60 + 8) + ranges
    assert "another's" in str(damaged(container(part)))


def test_a_parameter_of_an_unknown_type_is_refused_when_it_is_read() -> None:
    part = struct.pack("<9I", 2, 1, 24, 0, 36, 0, 5, 0, 2**32 - 1)
    assert damaged(container(part)).report.rule.startswith("RG2: ")


@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("name", WRITTEN)
def test_damaged_bytes_are_read_or_refused(name: str) -> None:
    """Cut, and with bits flipped and words replaced: a root signature or one clear error."""
    data = serialize_versioned_root_signature(desc_of(WRITTEN[name], "1_1"))
    draw = random.Random(name)
    tried = [data[:length] for length in range(len(data))]
    for _ in range(600):
        some = bytearray(data)
        for _ in range(draw.randint(1, 3)):
            at = draw.randrange(len(some))
            if draw.randrange(2):
                some[at] ^= 1 << draw.randrange(8)
            else:
                word = draw.choice([0, 1, 2**31, 2**32 - 1, len(some), draw.randrange(300)])
                some[at & ~3 : (at & ~3) + 4] = struct.pack("<I", word)
        tried.append(bytes(some[: len(data)]))
    outcomes = {try_to_read(each) for each in tried}
    assert {"read", "ROOT_SIGNATURE_BLOB"} <= outcomes
    assert outcomes <= {"read", "ROOT_SIGNATURE_BLOB", "ROOT_SIGNATURE", "OP_NOT_EMULATED"}


def try_to_read(data: bytes) -> str:
    try:
        found = create_versioned_root_signature_deserializer(data).get_unconverted_root_signature_desc()
    except Error as error:
        return error.report.id
    serialize_versioned_root_signature(found)
    return "read"


# --- what CreateRootSignature takes ---


def test_static_samplers_and_local_root_signatures_are_refused_by_name() -> None:
    read = read_root_signature(serialize_versioned_root_signature(signature(P1.constants(4, 0))))
    assert read == RootSignatureDesc1([P1.constants(4, 0)])
    for more, what in (
        ({"static_samplers": [StaticSamplerDesc()]}, "static sampler"),
        ({"flags": RootSignatureFlags.LOCAL_ROOT_SIGNATURE}, "LOCAL_ROOT_SIGNATURE"),
    ):
        with pytest.raises(Error, match=what) as raised:
            read_root_signature(serialize_versioned_root_signature(signature(**more)))
        assert raised.value.hresult is HResult.E_NOTIMPL and raised.value.report.hint


def test_parts_of_a_container() -> None:
    parts = {"ABCD": b"12", "RTS0": b"", "XYZW": bytes(5)}
    assert read_parts(write_container(parts)) == parts
