"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import SHADERS
from ...diagnostics.message_id import MessageId
from ...diagnostics.rule import Breach, Rule

_NO_EXAMPLE = "The program would have to contain a compiled shader."

SHADER_CODE = SHADERS.refused(
    "SHADER_CODE",
    "the bytes of a pipeline state's shader are not a compute shader",
    When.CREATE,
    "Nothing is created (E_INVALIDARG).",
    "Compile the source to a container of DXIL: dxc -T cs_6_0 -E main shader.hlsl -Fo shader.dxil.",
    message_ids=(MessageId.CREATESHADER_INVALIDBYTECODE,),
    rule="D3D12_SHADER_BYTECODE",
    no_example=_NO_EXAMPLE,
)

SHADER_BINDING = SHADERS.refused(
    "SHADER_BINDING",
    "the root signature of a pipeline state does not bind a register that the shader uses",
    When.CREATE,
    "The shader would not know where its views are: nothing is created (E_INVALIDARG).",
    "Give the root signature a parameter, visible to ALL, with the register and its space: a descriptor table, "
    "constants for a constant buffer, or a root descriptor for a constant buffer or a raw or structured buffer.",
    message_ids=(
        MessageId.CREATECOMPUTEPIPELINESTATE_CS_ROOT_SIGNATURE_MISMATCH,
        MessageId.CREATECOMPUTEPIPELINESTATE_MISSING_ROOT_SIGNATURE,
    ),
    rule="ID3D12Device::CreateComputePipelineState",
    no_example=_NO_EXAMPLE,
)

PIPELINE_DESC = SHADERS.refused(
    "PIPELINE_DESC",
    "the desc of a pipeline state contains a value that it cannot have",
    When.CREATE,
    "Nothing is created (E_INVALIDARG).",
    "Give the fields of D3D12_COMPUTE_PIPELINE_STATE_DESC, or a stream that has each subobject once.",
    message_ids=(
        MessageId.CREATEPIPELINESTATE_INVALIDCACHEDBLOB,
        MessageId.CREATEPIPELINESTATE_CACHEDBLOBDESCMISMATCH,
        MessageId.CREATEPIPELINESTATE_INVALID_FLAGS,
        MessageId.CREATEPIPELINESTATE_DUPLICATE_SUBOBJECT,
        MessageId.CREATEPIPELINESTATE_UNKNOWN_SUBOBJECT,
        MessageId.CREATEPIPELINESTATE_CANNOT_DEDUCE_TYPE,
    ),
    rule="D3D12_COMPUTE_PIPELINE_STATE_DESC",
    no_example=_NO_EXAMPLE,
)

COMMAND_SIGNATURE = SHADERS.refused(
    "COMMAND_SIGNATURE",
    "the desc of a command signature contradicts itself or its root signature",
    When.CREATE,
    "Nothing is created (E_INVALIDARG): the GPU would not know where the arguments of a command are.",
    "End the arguments with one DISPATCH; before it come root arguments, sorted by their parameters. "
    "ByteStride is at least their size: 12 for the groups, 8 for an address, 4 for each constant.",
    rule="D3D12_COMMAND_SIGNATURE_DESC",
)


class PS1(Rule):
    says = (
        "CreateComputePipelineState: a shader, no flags, node mask 0 or 1, and a cached blob, if one is given, "
        "of GetCachedBlob of a pipeline state with the same shader and root signature."
    )
    call = "ID3D12Device::CreateComputePipelineState"

    none = Breach(PIPELINE_DESC, "No desc is given.", field="pDesc", given=None, expected="a desc")
    no_shader = Breach(
        SHADER_CODE,
        "The desc has no shader.",
        field="CS",
        given=None,
        expected="the bytes of a compute shader",
    )
    unreadable = Breach(
        SHADER_CODE,
        "The file of the shader cannot be read ({reason}).",
        field="CS",
        expected="the bytes of a compute shader, or the path of a file that contains them",
    )
    bytecode = Breach(
        SHADER_CODE,
        "The bytes are not a compute shader: {reason}.",
        field="CS",
        expected="a container of DXIL",
        message_id=MessageId.CREATESHADER_INVALIDBYTECODE,
    )
    flags = Breach(
        PIPELINE_DESC,
        "Pipeline state flags ({given}) are not possible here.",
        field="Flags",
        expected="NONE",
        message_id=MessageId.CREATEPIPELINESTATE_INVALID_FLAGS,
    )
    node_mask = Breach(
        PIPELINE_DESC, "The node mask names a node that does not exist.", field="NodeMask", expected="0 or 1"
    )
    cached_blob = Breach(
        PIPELINE_DESC,
        "The cached blob is not one that GetCachedBlob has returned.",
        field="CachedPSO",
        expected="the bytes that GetCachedBlob returned, or nothing",
        message_id=MessageId.CREATEPIPELINESTATE_INVALIDCACHEDBLOB,
    )
    cached_desc = Breach(
        PIPELINE_DESC,
        "The cached blob is of a pipeline state with another {what}.",
        field="CachedPSO",
        given="a blob of another pipeline state",
        expected="that of a pipeline state with the same shader and root signature",
        message_id=MessageId.CREATEPIPELINESTATE_CACHEDBLOBDESCMISMATCH,
    )


class PS2(Rule):
    says = (
        "The root signature, given or the shader's own, binds each range of registers that the shader uses by "
        "one parameter that is visible to ALL. Root descriptors are for constant buffers, and raw and structured "
        "buffers without a counter; a shader that reads ResourceDescriptorHeap needs "
        "CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED."
    )
    call = "ID3D12Device::CreateComputePipelineState"

    missing = Breach(
        SHADER_BINDING,
        "No root signature is given, and the shader has none of its own.",
        field="pRootSignature",
        given=None,
        expected="a root signature, or a shader whose source has one as an attribute",
        message_id=MessageId.CREATECOMPUTEPIPELINESTATE_MISSING_ROOT_SIGNATURE,
    )
    not_bound = Breach(
        SHADER_BINDING,
        "The shader uses {name} ({what} at {register}), which {signature} does not bind.",
        field="pRootSignature",
        message_id=MessageId.CREATECOMPUTEPIPELINESTATE_CS_ROOT_SIGNATURE_MISMATCH,
    )
    root_descriptor = Breach(
        SHADER_BINDING,
        "{name} ({what} at {register}) is bound by a root descriptor, which cannot be one of {what}.",
        field="pRootSignature",
        hint="Bind it by a descriptor table.",
        message_id=MessageId.CREATECOMPUTEPIPELINESTATE_CS_ROOT_SIGNATURE_MISMATCH,
    )
    heap = Breach(
        SHADER_BINDING,
        "The shader reads ResourceDescriptorHeap, which {signature} does not allow.",
        field="pRootSignature",
        expected="the flag CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED",
        message_id=MessageId.CREATECOMPUTEPIPELINESTATE_CS_ROOT_SIGNATURE_MISMATCH,
    )


class PS3(Rule):
    says = (
        "CreatePipelineState: the stream has each subobject once; of VS, MS and CS one is given, CS, and the others "
        "are missing or NULL. Subobjects of other pipelines are ignored; graphics pipelines are refused by name."
    )
    call = "ID3D12Device2::CreatePipelineState"

    twice = Breach(
        PIPELINE_DESC,
        "The stream has the subobject {given} twice.",
        expected="each subobject once",
        message_id=MessageId.CREATEPIPELINESTATE_DUPLICATE_SUBOBJECT,
    )
    unknown = Breach(
        PIPELINE_DESC,
        "Subobject type ({given}) is not known.",
        expected="a member of D3D12_PIPELINE_STATE_SUBOBJECT_TYPE",
        message_id=MessageId.CREATEPIPELINESTATE_UNKNOWN_SUBOBJECT,
    )
    no_shader = Breach(
        PIPELINE_DESC,
        "The stream has no compute shader.",
        field="pPipelineStateSubobjectStream",
        given="no subobject CS",
        expected="a subobject CS",
        message_id=MessageId.CREATEPIPELINESTATE_CANNOT_DEDUCE_TYPE,
    )
    several = Breach(
        PIPELINE_DESC,
        "The stream has shaders of several kinds of pipelines.",
        field="pPipelineStateSubobjectStream",
        expected="one of VS, MS and CS; the others NULL",
        message_id=MessageId.CREATEPIPELINESTATE_CANNOT_DEDUCE_TYPE,
    )


class CS1(Rule):
    says = (
        "CreateCommandSignature: one DISPATCH, the last argument, and root arguments before it in the order of "
        "their parameters, each of the parameter's type and inside of its constants; a root signature if and only "
        "if there are some; ByteStride a multiple of 4 and at least their size."
    )
    call = "ID3D12Device::CreateCommandSignature"

    none = Breach(COMMAND_SIGNATURE, "No desc is given.", field="pDesc", given=None, expected="a desc")
    last = Breach(
        COMMAND_SIGNATURE,
        "The arguments of a command do not end with its only DISPATCH.",
        expected="one DISPATCH, as the last argument",
    )
    type = Breach(
        COMMAND_SIGNATURE,
        "Argument type ({given}) is not known.",
        expected="a member of D3D12_INDIRECT_ARGUMENT_TYPE",
    )
    stride = Breach(
        COMMAND_SIGNATURE,
        "The commands of {size} bytes do not fit a ByteStride of {given}.",
        field="ByteStride",
    )
    order = Breach(
        COMMAND_SIGNATURE,
        "Arguments {before} and {field} are not sorted by their root parameters.",
        hint="Sort the arguments; those of one parameter's constants come in the order of the constants.",
    )
    parameter = Breach(
        COMMAND_SIGNATURE,
        "An argument is of root parameter {given}, and the root signature has {count}.",
    )
    parameter_type = Breach(
        COMMAND_SIGNATURE, "An argument of type {type} is for root parameter {index}, which is {what}."
    )
    constants = Breach(
        COMMAND_SIGNATURE,
        "An argument sets constants {given} of root parameter {index}, which has {count}.",
    )
    root_signature = Breach(
        COMMAND_SIGNATURE,
        "A command signature {has} root arguments, and {given} is given.",
        field="pRootSignature",
    )
    node_mask = Breach(
        COMMAND_SIGNATURE,
        "The node mask names a node that does not exist.",
        field="NodeMask",
        expected="0 or 1",
    )
