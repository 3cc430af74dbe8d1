"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS, LISTS, RESOURCES, SHADERS
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import HResult, Severity, Strictness
from ...diagnostics.rule import Breach, Rule
from ..barriers.rows import LIST_TYPE
from ..core.rows import COPY_NULL, DESC_KIND, DESC_UNINIT
from ..descriptors.rows import DESC_HEAP_NOT_VISIBLE

BIND_RANGE = BINDINGS.refused(
    "BIND_RANGE",
    "Offset and SizeInBytes reach past the end of the buffer",
    When.BIND,
    "The bytes after a buffer belong to another object, or are unmapped.",
    "Offset + SizeInBytes is at most the Width of the resource; SizeInBytes counts from Offset on.",
    api="DML",
    message_ids=(MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,),
    rule="DML_BUFFER_BINDING",
)

DESC_HEAP_NOT_SET = BINDINGS.refused(
    "DESC_HEAP_NOT_SET",
    "the list has no descriptor heap set, or another than the table's",
    When.RECORD,
    "A GPU has one heap of views at a time. Descriptors in another one are not found.",
    "Call SetDescriptorHeaps with the heap of the table's GPU handle before RecordDispatch; Reset of a list"
    " clears it.",
    message_ids=(
        MessageId.SET_DESCRIPTOR_HEAP_INVALID,
        MessageId.SET_DESCRIPTOR_TABLE_INVALID,
    ),
    rule="ID3D12GraphicsCommandList::SetDescriptorHeaps",
)


COPY_RANGE = RESOURCES.refused(
    "COPY_RANGE",
    "the bytes of a copy or of an immediate write do not lie in the buffer, or widths differ",
    When.RECORD,
    "The command is not recorded. CopyResource copies whole buffers, which have the same width.",
    "Let offset + size stay within the width of both buffers; CopyBufferRegion copies parts.",
    message_ids=(
        MessageId.COPYBUFFERREGION_DSTRANGEOUTOFBOUNDS,
        MessageId.COPYBUFFERREGION_SRCRANGEOUTOFBOUNDS,
    ),
    rule="ID3D12GraphicsCommandList::CopyBufferRegion",
)

COPY_SAME = RESOURCES.refused(
    "COPY_SAME",
    "a buffer, or memory that two buffers share, is copied onto itself, or two bytes of a destination "
    "are the same byte of memory",
    When.RECORD,
    "A buffer has one state, and it cannot be COPY_SOURCE and COPY_DEST at once, even if the ranges are "
    "apart. Through two buffers over the same memory a copy must not read what it writes, nor write a tile "
    "of a heap through two tiles of a reserved buffer: its parts have no order.",
    "Copy by way of a second buffer, or place a second one over the same memory if the ranges are apart; "
    "copy to each tile of a heap once.",
    rule="ID3D12GraphicsCommandList::CopyBufferRegion",
    message_ids=(MessageId.COPY_ON_SAME_SUBRESOURCE,),
)

LIST_CLOSED = LISTS.refused(
    "LIST_CLOSED",
    "a command is recorded into a closed list, or a list is closed twice or executed though its Close failed",
    When.RECORD,
    "The command is lost: on Windows the call does nothing, and only the debug layer says so.",
    "Call Reset with an allocator first; it opens the list.",
    level=Strictness.DEBUG,
    rule="ID3D12GraphicsCommandList::Close",
)

LIST_OPEN = LISTS.refused(
    "LIST_OPEN",
    "a list is executed or reset while it is open, or its allocator is reset",
    When.CALL,
    "On Windows executing an open list removes the device, and all its objects with it.",
    "Close the list first.",
    rule="ID3D12GraphicsCommandList::Reset",
)

ALLOC_SHARED = LISTS.refused(
    "ALLOC_SHARED",
    "a second list is opened with an allocator that an open list records with",
    When.CALL,
    "Both would write their commands into the same memory.",
    "Close the first list, or give each list an allocator of its own.",
    rule="ID3D12GraphicsCommandList::Reset",
)

ALLOC_RESET_IN_FLIGHT = LISTS.reported(
    "ALLOC_RESET_IN_FLIGHT",
    "an allocator is reset while a list recorded with it is still to be executed, or may be",
    Severity.CORRUPTION,
    When.CALL,
    "The commands of the list are in the memory of the allocator. Reset reuses it for the next recording, "
    "and the GPU executes whatever is there then.",
    "Wait for a fence value that is signalled after the list before Reset, or take turns with several "
    "allocators, one per frame in flight.",
    rule="CL7: ID3D12CommandAllocator::Reset",
    message_ids=(
        MessageId.COMMAND_ALLOCATOR_SYNC,
        MessageId.COMMAND_ALLOCATOR_RESET,
    ),
    level=Strictness.DEBUG,
)

_NO_EXAMPLE = "The program would have to contain a compiled shader."

DISPATCH_STATE = SHADERS.refused(
    "DISPATCH_STATE",
    "a dispatch of a shader is recorded while something that the shader needs is not set on the list",
    When.RECORD,
    "The GPU would run another shader, or read its buffers from arguments that nobody has given.",
    "Before Dispatch call SetPipelineState, SetComputeRootSignature and the SetComputeRoot... of each parameter "
    "that the shader uses. Reset, ClearState and DirectML's RecordDispatch unset all of it, another root signature "
    "the arguments, another descriptor heap the tables.",
    message_ids=(
        MessageId.COMMAND_LIST_PIPELINE_STATE_NOT_SET,
        MessageId.COMMAND_LIST_DISPATCH_ROOT_SIGNATURE_NOT_SET,
        MessageId.COMMAND_LIST_DISPATCH_ROOT_SIGNATURE_MISMATCH,
        MessageId.COMMAND_LIST_DESCRIPTOR_TABLE_NOT_SET,
        MessageId.COMMAND_LIST_ROOT_CONSTANT_BUFFER_VIEW_NOT_SET,
        MessageId.COMMAND_LIST_ROOT_SHADER_RESOURCE_VIEW_NOT_SET,
        MessageId.COMMAND_LIST_ROOT_UNORDERED_ACCESS_VIEW_NOT_SET,
    ),
    rule="CM3: ID3D12GraphicsCommandList::Dispatch",
    no_example=_NO_EXAMPLE,
)

DISPATCH_GROUPS = SHADERS.refused(
    "DISPATCH_GROUPS",
    "a dispatch has more groups along a dimension than 65535",
    When.RECORD,
    "The command is not recorded, and Close fails.",
    "Spread the groups over two dimensions, and let the shader compute its index from both.",
    message_ids=(MessageId.OVERSIZED_DISPATCH,),
    rule="CM3: ID3D12GraphicsCommandList::Dispatch",
    no_example=_NO_EXAMPLE,
)

ROOT_ARGUMENT = SHADERS.refused(
    "ROOT_ARGUMENT",
    "a root argument does not fit its parameter, or a pipeline state or root signature that is set is none",
    When.RECORD,
    "The command is not recorded, and Close fails.",
    "Give each parameter what the root signature says it is: a table the handle of a descriptor of the heap that is "
    "set, a root descriptor an address in a buffer, constants no more than there are.",
    message_ids=(
        MessageId.SET_DESCRIPTOR_TABLE_INVALID,
        MessageId.SET_ROOT_CONSTANT_INVALID,
        MessageId.SET_ROOT_CONSTANT_BUFFER_VIEW_INVALID,
        MessageId.SET_ROOT_SHADER_RESOURCE_VIEW_INVALID,
        MessageId.SET_ROOT_UNORDERED_ACCESS_VIEW_INVALID,
    ),
    rule="ID3D12GraphicsCommandList::SetComputeRootSignature",
)

INDIRECT_BUFFER = SHADERS.refused(
    "INDIRECT_BUFFER",
    "the buffers of an ExecuteIndirect do not contain its commands, or these are for another root signature",
    When.RECORD,
    "The command is not recorded, and Close fails.",
    "Let offset + (MaxCommandCount - 1) * ByteStride + the size of a command stay within the argument buffer, and "
    "the four bytes of the count within the count buffer; offsets are multiples of 4.",
    message_ids=(MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS,),
    rule="CM6: ID3D12GraphicsCommandList::ExecuteIndirect",
    no_example=_NO_EXAMPLE,
)

EMPTY_DISPATCH = SHADERS.reported(
    "EMPTY_DISPATCH",
    "a dispatch has no groups, or an ExecuteIndirect no commands",
    Severity.WARNING,
    When.RECORD,
    "It does nothing.",
    "Leave it out, or look where its number of groups comes from.",
    message_ids=(MessageId.EMPTY_DISPATCH, MessageId.EXECUTE_INDIRECT_ZERO_COMMAND_COUNT),
    rule="CM3: ID3D12GraphicsCommandList::Dispatch",
    level=Strictness.DEBUG,
    no_example=_NO_EXAMPLE,
)

# --- rules ---


class KnownListType(Rule, label=""):
    """Whatever is created with a type of command lists has an existing one."""

    unknown = Breach(
        LIST_TYPE,
        "Command list type ({given}) is not known.",
        field="type",
        expected="DIRECT, BUNDLE, COMPUTE or COPY",
        message_id=MessageId.CREATE_COMMAND_LIST_INVALID_COMMAND_LIST_TYPE,
    )


class DH8(Rule):
    says = "SetDescriptorHeaps: shader-visible, at most one of each type."
    call = "ID3D12GraphicsCommandList::SetDescriptorHeaps"

    none = Breach(
        DESC_HEAP_NOT_VISIBLE,
        "No heap is given.",
        given=None,
        expected="a descriptor heap",
        message_id=MessageId.SET_DESCRIPTOR_HEAP_INVALID,
    )
    not_visible = Breach(
        DESC_HEAP_NOT_VISIBLE,
        "{heap} is not shader-visible.",
        message_id=MessageId.SET_DESCRIPTOR_HEAP_INVALID,
    )
    second_of_its_type = Breach(
        DESC_HEAP_NOT_VISIBLE,
        "{heap} is the second heap of type {given}.",
        expected="at most one heap of each type",
        message_id=MessageId.SET_DESCRIPTOR_HEAP_INVALID,
    )


class CL4(Rule):
    says = "One open list per allocator."

    allocator = Breach(
        ALLOC_SHARED,
        "{recording} records with {object}, and a second list is opened on it.",
        field="pAllocator",
        given="an allocator in use",
        expected="one that no open list uses",
        message_id=MessageId.COMMAND_ALLOCATOR_CONTENTION,
    )


class CL5(Rule):
    says = "Close of a closed list: E_FAIL."
    call = "Close"
    hresult = HResult.E_FAIL

    closed = Breach(LIST_CLOSED, "{object} is closed twice.", message_id=MessageId.COMMAND_LIST_CLOSED)


class CL6(Rule):
    says = "Reset of an open list: E_FAIL; right after ExecuteCommandLists it is legal."
    call = "ID3D12GraphicsCommandList::Reset"
    hresult = HResult.E_FAIL

    open = Breach(LIST_OPEN, "{object} is reset while it is open.", message_id=MessageId.COMMAND_LIST_OPEN)
    no_packets = Breach(
        LIST_OPEN, "{object} is open: it has no packets before Close.", message_id=MessageId.COMMAND_LIST_OPEN
    )


class CL7(Rule):
    says = (
        "An allocator is not reset while a list records with it, nor while the GPU executes one, or may do so "
        "as far as the program can know."
    )
    call = "ID3D12CommandAllocator::Reset"
    operation = "ID3D12CommandAllocator::Reset"
    hresult = HResult.E_FAIL

    open = Breach(
        LIST_OPEN,
        "{object} is reset while {recording} records with it.",
        hint="Close the command list first.",
        message_id=MessageId.COMMAND_ALLOCATOR_CANNOT_RESET,
    )
    reset_in_flight = Breach(
        ALLOC_RESET_IN_FLIGHT,
        "{object} is reset before the GPU has finished {owner}, which was recorded with it.",
        severity=Severity.CORRUPTION,
        message_id=MessageId.COMMAND_ALLOCATOR_SYNC,
    )


class CL8(Rule):
    says = "Several recordings from one allocator without a reset."


class CL10(Rule):
    says = "A list is recorded by one thread."
    untested = "not checked"


class CL11(Rule):
    says = "Recording methods are void; see above. On a closed list they are wrong (ignored at `runtime`)."
    hresult = HResult.E_FAIL

    closed = Breach(
        LIST_CLOSED,
        "{operation} is called on {object}, which is closed.",
        message_id=MessageId.COMMAND_LIST_CLOSED,
    )


class CL12(Rule):
    says = "A recording starts without descriptor heaps."


class CL13(Rule):
    says = "A list records only commands that its type allows."

    not_of_the_list = Breach(
        LIST_TYPE,
        "{operation} is called on {object}, which is of type {given}.",
        field="this",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_COMMAND_LIST_TYPE,
    )


class CopiedBuffer(Rule, label=""):
    """What is copied is a buffer."""

    null = Breach(COPY_NULL, "A buffer is copied, and {field} is {given}.", given=None, expected="a buffer")


class CM1(CopiedBuffer):
    says = (
        "CopyBufferRegion: two different buffers, ranges inside, any byte. Only the debug layer checks "
        "that the buffers are different: at strictness `runtime` bytes are copied within one."
    )
    call = "ID3D12GraphicsCommandList::CopyBufferRegion"

    src_buffer = Breach(
        COPY_SAME,
        "{object} is both source and destination of a copy.",
        field="pSrcBuffer",
        expected="another buffer",
        hint="Two buffers placed over the same memory can be source and destination.",
        message_id=MessageId.COPY_ON_SAME_SUBRESOURCE,
    )
    past_the_end = Breach(
        COPY_RANGE, "The {size} bytes at offset {offset} {where} {object}, which has {width}."
    )


class CM2(CopiedBuffer):
    says = "CopyResource: two different buffers of one width."
    call = "ID3D12GraphicsCommandList::CopyResource"

    same = Breach(
        COPY_SAME,
        "{object} is copied onto itself.",
        expected="another buffer",
        message_id=MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
    )
    widths_differ = Breach(
        COPY_RANGE,
        "{source} of {given} bytes is copied into {object} of {expected} bytes.",
        hint="CopyBufferRegion copies parts of buffers.",
        message_id=MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
    )


class CM3(Rule):
    says = (
        "Dispatch: at most 65535 groups along each dimension; a pipeline state is set, a root signature equal to its "
        "own, and each argument that the shader uses, with tables that lie in the heap. None is after RecordDispatch. "
        "No buffer is written as one view and read as another. A dispatch without groups gives a warning."
    )
    call = "ID3D12GraphicsCommandList::Dispatch"

    groups = Breach(
        DISPATCH_GROUPS,
        "{field} ({given}) is not a number of groups that can be dispatched.",
        expected="0 to 65535",
        message_id=MessageId.OVERSIZED_DISPATCH,
    )
    empty = Breach(
        EMPTY_DISPATCH,
        "A dispatch of {given} groups does nothing.",
        field="ThreadGroupCount",
        expected="at least one along each dimension",
        message_id=MessageId.EMPTY_DISPATCH,
    )
    no_pipeline = Breach(
        DISPATCH_STATE,
        "{operation} is called on {object} while no pipeline state is set.",
        field="pipeline state",
        given=None,
        expected="one set by SetPipelineState",
        message_id=MessageId.COMMAND_LIST_PIPELINE_STATE_NOT_SET,
    )
    no_root_signature = Breach(
        DISPATCH_STATE,
        "{operation} is called on {object} while no root signature is set.",
        field="root signature",
        given=None,
        expected="one set by SetComputeRootSignature",
        message_id=MessageId.COMMAND_LIST_DISPATCH_ROOT_SIGNATURE_NOT_SET,
    )
    other_root_signature = Breach(
        DISPATCH_STATE,
        "{pipeline} is dispatched with another root signature than its own.",
        field="root signature",
        message_id=MessageId.COMMAND_LIST_DISPATCH_ROOT_SIGNATURE_MISMATCH,
    )
    not_set = Breach(
        DISPATCH_STATE,
        "{pipeline} reads {name} from {which}root parameter {index} ({what}), which is not set.",
        field="root arguments",
    )
    past_the_heap = Breach(
        DISPATCH_STATE,
        "The table with {name} of {pipeline} does not lie in {heap}.",
        field="root arguments",
        message_id=MessageId.SET_DESCRIPTOR_TABLE_INVALID,
    )
    two_states = Breach(
        DISPATCH_STATE,
        "{object} is written as {written} and read as {read} by one dispatch: it cannot be in UNORDERED_ACCESS and "
        "{state} at once.",
        field="views",
        hint="Read it as an unordered access view, too.",
        message_id=MessageId.GPU_BASED_VALIDATION_INCOMPATIBLE_RESOURCE_STATE,
    )


class CM4(Rule):
    says = (
        "ClearUnorderedAccessView: the handle of the heap that is set (at strictness `runtime` of any "
        "shader-visible heap, as on Windows), the same view where the CPU can read it, its resource in state "
        "UNORDERED_ACCESS; raw views and typed ones of every format that FORMAT_SUPPORT claims, element ranges."
        " Floats are converted by the data conversion rules; FLOAT16 is rounded to nearest even."
    )

    not_of_the_set_heap = Breach(
        DESC_HEAP_NOT_SET,
        "The GPU descriptor handle is not of the shader-visible heap that is set on the list.",
        message_id=MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
    )
    resource = Breach(
        DESC_KIND,
        "No resource is given.",
        field="pResource",
        given=None,
        expected="the viewed resource",
        message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR,
    )
    values = Breach(
        DESC_KIND, "Values holds {count} numbers, and a clear takes 4.", field="Values", expected="4 numbers"
    )
    uninit = Breach(DESC_UNINIT, "The CPU descriptor handle holds no unordered access view.")
    kind = Breach(DESC_KIND, "The CPU descriptor handle holds no unordered access view.")
    structured = Breach(
        DESC_KIND,
        "A structured view (StructureByteStride {stride}) of {object} is cleared.",
        given="a structured view",
        expected="a raw or typed view",
        message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INCOMPATIBLE_WITH_STRUCTURED_BUFFERS,
    )
    other_resource = Breach(
        DESC_KIND,
        "The view that is cleared is not of {object}.",
        field="pResource",
        message_id=MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR,
    )
    past_the_view = Breach(BIND_RANGE, "Elements {given} do not lie in the view of {elements} elements.")
    not_a_uint = Breach(
        DESC_KIND, "{field} ({given}) is not an unsigned 32-bit number.", expected="0 to 2**32 - 1"
    )


class CM5(Rule):
    says = "WriteBufferImmediate: addresses multiples of 4 inside a buffer in state COPY_DEST."
    call = "ID3D12GraphicsCommandList2::WriteBufferImmediate"

    modes = Breach(COPY_RANGE, "The modes are not one per write.", field="pModes")
    misaligned = Breach(COPY_RANGE, "Address ({given}) is not a multiple of 4.", expected="a multiple of 4")
    value_too_large = Breach(
        COPY_RANGE, "Value ({given}) is not an unsigned 32-bit number.", expected="0 to 2**32 - 1"
    )
    unknown_mode = Breach(
        COPY_RANGE, "Mode ({given}) is not known.", expected="a member of D3D12_WRITEBUFFERIMMEDIATE_MODE"
    )
    in_no_buffer = Breach(
        COPY_RANGE,
        "The 4 bytes at address ({given}) lie in no buffer.",
        expected="an address inside a buffer",
    )


class CM6(Rule):
    says = (
        "ExecuteIndirect: the argument buffer contains MaxCommandCount commands, the count buffer 4 bytes; offsets are "
        "multiples of 4; both are in state INDIRECT_ARGUMENT; the command signature's root signature is the one that "
        "is set. What a dispatch needs is needed here (CM3), except what the commands set."
    )
    call = "ID3D12GraphicsCommandList::ExecuteIndirect"

    no_buffer = Breach(
        INDIRECT_BUFFER,
        "No argument buffer is given.",
        given=None,
        expected="a buffer",
        message_id=MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS,
    )
    most = Breach(
        INDIRECT_BUFFER,
        "{field} ({given}) is not an unsigned 32-bit number.",
        field="MaxCommandCount",
        expected="0 to 2**32 - 1",
        message_id=MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS,
    )
    misaligned = Breach(
        INDIRECT_BUFFER,
        "{field} ({given}) is not a multiple of 4.",
        expected="a multiple of 4",
        message_id=MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS,
    )
    past_the_end = Breach(
        INDIRECT_BUFFER,
        "The {size} bytes at offset {offset} do not lie in {object}, which has {width}.",
        message_id=MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS,
    )
    other_root_signature = Breach(
        INDIRECT_BUFFER,
        "{signature} sets arguments of another root signature than the one that is set.",
        field="pCommandSignature",
        message_id=MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS,
    )
    no_commands = Breach(
        EMPTY_DISPATCH,
        "An ExecuteIndirect of no commands does nothing.",
        field="MaxCommandCount",
        given=0,
        expected="at least 1",
        message_id=MessageId.EXECUTE_INDIRECT_ZERO_COMMAND_COUNT,
    )


class SC1(Rule):
    says = (
        "SetPipelineState, SetComputeRootSignature, ExecuteIndirect: the object is given. Of a root signature with "
        "CBV_SRV_UAV_HEAP_DIRECTLY_INDEXED the heap is set first."
    )

    none = Breach(ROOT_ARGUMENT, "{operation} is called with {given}.", given=None)
    heap_first = Breach(
        ROOT_ARGUMENT,
        "{signature} lets shaders index the descriptor heap, and none is set.",
        field="pRootSignature",
        expected="a heap set by SetDescriptorHeaps before it",
    )


class SC2(Rule):
    says = "SetComputeRoot...: a parameter of the root signature that is set, and of the method's type."

    no_root_signature = Breach(
        ROOT_ARGUMENT,
        "{operation} is called on {object} while no root signature is set.",
        field="root signature",
        expected="one set by SetComputeRootSignature",
        message_id=MessageId.COMMAND_LIST_DISPATCH_ROOT_SIGNATURE_NOT_SET,
    )
    index = Breach(
        ROOT_ARGUMENT,
        "{field} ({given}) is not below the number of parameters of {object} ({count}).",
        field="RootParameterIndex",
    )
    type = Breach(
        ROOT_ARGUMENT,
        "{operation} is called for root parameter {index}, which is {what}.",
        field="RootParameterIndex",
    )


class SC3(Rule):
    says = "SetComputeRootDescriptorTable: a handle of the heap that SetDescriptorHeaps has set."

    not_of_the_set_heap = Breach(
        ROOT_ARGUMENT,
        "The GPU descriptor handle of a table is not of the shader-visible heap that is set on the list.",
        field="BaseDescriptor",
        message_id=MessageId.SET_DESCRIPTOR_TABLE_INVALID,
    )


class SC4(Rule):
    says = (
        "SetComputeRoot32BitConstants: numbers of 32 bits, as many as the parameter has from the offset on."
    )

    past_the_end = Breach(
        ROOT_ARGUMENT,
        "Constants {given} do not lie in root parameter {index}, which has {count}.",
        field="DestOffsetIn32BitValues",
        message_id=MessageId.SET_ROOT_CONSTANT_INVALID,
    )
    size = Breach(
        ROOT_ARGUMENT,
        "Constants are given as {given}, and each has 4.",
        field="pSrcData",
        expected="a multiple of 4 bytes",
        message_id=MessageId.SET_ROOT_CONSTANT_INVALID,
    )
    too_large = Breach(
        ROOT_ARGUMENT,
        "{field} ({given}) is not a number of 32 bits.",
        expected="-2**31 to 2**32 - 1, or a float",
        message_id=MessageId.SET_ROOT_CONSTANT_INVALID,
    )


class SC5(Rule):
    says = (
        "SetComputeRootConstantBufferView: an address in a buffer, a multiple of 256; of a shader resource view or an "
        "unordered access view, a multiple of 4."
    )

    misaligned = Breach(
        ROOT_ARGUMENT, "{field} ({given}) is not a multiple of {alignment}.", field="BufferLocation"
    )
    in_no_buffer = Breach(
        ROOT_ARGUMENT,
        "{field} ({given}) lies in no buffer.",
        field="BufferLocation",
        expected="an address inside a buffer",
    )


class CL2(KnownListType):
    says = "A list is created open, with a free allocator of its type."

    allocator = Breach(
        LIST_TYPE,
        "No command allocator is given.",
        field="pAllocator",
        given=None,
        expected="a command allocator",
        message_id=MessageId.CREATECOMMANDLIST_NULL_COMMANDALLOCATOR,
    )
    type = Breach(
        LIST_TYPE,
        "{object} is of type {given}, and the list of type {expected}.",
        field="pAllocator",
        message_id=MessageId.WRONG_COMMAND_ALLOCATOR_TYPE,
    )


class CL1(KnownListType):
    says = "Allocators of type DIRECT, BUNDLE, COMPUTE, COPY."


class CL3(KnownListType):
    says = "CreateCommandList1 makes a closed list without one."
    call = "ID3D12Device4::CreateCommandList1"

    flags = Breach(LIST_TYPE, "Command list flags ({given}) are not known.", field="flags")
