"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS
from ...diagnostics.message_id import MessageId
from ...diagnostics.rule import Breach, Rule

ROOT_SIGNATURE = BINDINGS.refused(
    "ROOT_SIGNATURE",
    "the desc of a root signature contradicts itself, or asks for more than one can hold",
    When.CREATE,
    "It is not serialized, or no root signature is made of it (E_INVALIDARG): a shader would not know "
    "where its registers come from.",
    "Give each register to one parameter; samplers have tables of their own; all parameters together cost at "
    "most 64 DWORDs.",
    message_ids=(MessageId.CREATE_ROOT_SIGNATURE_INVALID_CONFIGURATION,),
    rule="D3D12_ROOT_SIGNATURE_DESC",
)

ROOT_SIGNATURE_BLOB = BINDINGS.refused(
    "ROOT_SIGNATURE_BLOB",
    "bytes that should hold a root signature hold none, or are damaged",
    When.CREATE,
    "Nothing is created (E_INVALIDARG).",
    "Give the bytes that D3D12SerializeVersionedRootSignature returned, or those of a shader whose source has "
    "the attribute RootSignature.",
    message_ids=(
        MessageId.CREATE_ROOT_SIGNATURE_BLOB_NOT_FOUND,
        MessageId.CREATE_ROOT_SIGNATURE_DESERIALIZE_FAILED,
    ),
    rule="ID3D12Device::CreateRootSignature",
)

_INVALID = MessageId.CREATE_ROOT_SIGNATURE_INVALID_CONFIGURATION


class RG1(Rule):
    says = (
        "All parameters together cost at most 64 DWORDs: a descriptor table 1, a root descriptor 2, "
        "a root constant 1."
    )
    call = "Root Signature Limits"
    operation = ""

    cost = Breach(
        ROOT_SIGNATURE,
        "The parameters of the root signature cost {given} DWORDs.",
        expected="at most 64",
        hint="Put the constants into a buffer, or root descriptors into a table.",
        message_id=_INVALID,
    )


class RG2(Rule):
    says = "Types and visibilities are known; register spaces from 0xFFFFFFF0 are the system's."
    call = "D3D12_ROOT_PARAMETER1"
    operation = ""

    parameter_type = Breach(
        ROOT_SIGNATURE,
        "The type of root parameter {number} ({given}) is not known.",
        expected="a member of D3D12_ROOT_PARAMETER_TYPE",
        message_id=_INVALID,
    )
    visibility = Breach(
        ROOT_SIGNATURE,
        "The visibility of {what} ({given}) is not known.",
        expected="a member of D3D12_SHADER_VISIBILITY",
        message_id=_INVALID,
    )
    space = Breach(
        ROOT_SIGNATURE,
        "The register space of {what} ({given}) is reserved for the system.",
        expected="at most 0xFFFFFFEF",
        message_id=_INVALID,
    )


class RG3(Rule):
    says = (
        "A range has a known type and at least one descriptor, and its registers and descriptors have numbers of "
        "32 bits; behind a range without an end no other is appended."
    )
    call = "D3D12_DESCRIPTOR_RANGE1"
    operation = ""

    type = Breach(
        ROOT_SIGNATURE,
        "The type of {what} ({given}) is not known.",
        expected="a member of D3D12_DESCRIPTOR_RANGE_TYPE",
        message_id=_INVALID,
    )
    empty = Breach(
        ROOT_SIGNATURE,
        "The number of descriptors of {what} is 0.",
        given=0,
        expected="at least 1 (0xFFFFFFFF: no end)",
        message_id=_INVALID,
    )
    registers = Breach(
        ROOT_SIGNATURE,
        "{what} begins at register {first} and has {given} descriptors, so that it ends above the last register.",
        expected="registers up to 0xFFFFFFFF",
        message_id=_INVALID,
    )
    descriptors = Breach(
        ROOT_SIGNATURE,
        "{what} begins at descriptor {first} of its table and has {given} descriptors, more than a table can "
        "have.",
        expected="descriptors up to 0xFFFFFFFF",
        message_id=_INVALID,
    )
    appended = Breach(
        ROOT_SIGNATURE,
        "{what} is appended to a range that has no end.",
        given="D3D12_DESCRIPTOR_RANGE_OFFSET_APPEND",
        expected="an offset, or the range without an end as the last of its table",
        message_id=_INVALID,
    )


class RG4(Rule):
    says = "A table has samplers, or views, but not both: they are in different heaps."
    call = "D3D12_DESCRIPTOR_RANGE1"
    operation = ""

    mixed = Breach(
        ROOT_SIGNATURE,
        "{what} is of type {given}, and the ranges before it in its table are {others}.",
        message_id=_INVALID,
    )


class RG5(Rule):
    says = "A register that a shader sees belongs to one parameter or static sampler."
    call = "D3D12_ROOT_SIGNATURE_DESC"
    operation = ""

    overlap = Breach(
        ROOT_SIGNATURE,
        "{what} has {registers}, and {other}, which the same shaders see, has {other_registers}.",
        expected="registers of one parameter only",
        message_id=_INVALID,
    )


class RG6(Rule):
    says = (
        "Flags have known bits; of DATA_VOLATILE, DATA_STATIC_WHILE_SET_AT_EXECUTE and DATA_STATIC at most one "
        "is set, for samplers none, and DATA_STATIC needs descriptors that are static."
    )
    call = "Root Signature Version 1.1"
    operation = ""

    signature = Breach(
        ROOT_SIGNATURE,
        "The flags of the root signature ({given}) have bits that are not known.",
        expected="bits of D3D12_ROOT_SIGNATURE_FLAGS",
        message_id=_INVALID,
    )
    unknown = Breach(
        ROOT_SIGNATURE,
        "The flags of {what} ({given}) have bits that are not known.",
        message_id=_INVALID,
    )
    several = Breach(
        ROOT_SIGNATURE,
        "The flags of {what} ({given}) say more than one thing of its data.",
        expected="at most one of DATA_VOLATILE, DATA_STATIC_WHILE_SET_AT_EXECUTE and DATA_STATIC",
        message_id=_INVALID,
    )
    of_sampler = Breach(
        ROOT_SIGNATURE,
        "The flags of {what} ({given}) say something of its data, and samplers have none.",
        expected="no DATA_ flag",
        message_id=_INVALID,
    )
    volatile_descriptors = Breach(
        ROOT_SIGNATURE,
        "The flags of {what} ({given}) let its descriptors change, but not the data behind them.",
        expected="DATA_STATIC without DESCRIPTORS_VOLATILE, or DATA_STATIC_WHILE_SET_AT_EXECUTE",
        message_id=_INVALID,
    )


class RG7(Rule):
    says = (
        "D3D12SerializeRootSignature writes version 1.0, D3D12SerializeVersionedRootSignature 1.0 and 1.1; "
        "1.2 is not emulated."
    )
    call = "D3D12SerializeVersionedRootSignature"

    version = Breach(
        ROOT_SIGNATURE,
        "Version {given} of root signatures is not one that {operation} takes.",
    )


class RG8(Rule):
    says = (
        "Static samplers have members of their enumerations, MaxAnisotropy up to 16, MipLODBias -16 to 15.99."
    )
    call = "D3D12_STATIC_SAMPLER_DESC"
    operation = ""

    value = Breach(
        ROOT_SIGNATURE,
        "{name} of static sampler {number} is {given}.",
        message_id=_INVALID,
    )


class RG9(Rule):
    says = "The bytes are a container with a part RTS0, whose offsets and counts lie inside of it."
    call = "ID3D12Device::CreateRootSignature"

    not_found = Breach(
        ROOT_SIGNATURE_BLOB,
        "The container has no root signature.",
        expected="a part RTS0",
        message_id=MessageId.CREATE_ROOT_SIGNATURE_BLOB_NOT_FOUND,
    )
    damaged = Breach(
        ROOT_SIGNATURE_BLOB,
        "The bytes of the root signature are damaged: {what}.",
        expected="as many as their header and the counts in them say",
        message_id=MessageId.CREATE_ROOT_SIGNATURE_DESERIALIZE_FAILED,
    )
