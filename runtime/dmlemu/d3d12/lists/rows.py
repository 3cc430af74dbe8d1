"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS, LISTS, RESOURCES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity, Strictness
from ...diagnostics.rule import Rule

BIND_RANGE = BINDINGS.refused(
    "BIND_RANGE",
    "Offset and SizeInBytes reach past the end of the buffer",
    When.BIND,
    "The bytes after a buffer belong to another object, or are unmapped.",
    "Offset + SizeInBytes is at most the Width of the resource; SizeInBytes counts from Offset on.",
    rule="BT8: DML_BUFFER_BINDING",
    message_ids=(
        MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
        MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,
    ),
    api="DML",
)

DESC_HEAP_NOT_SET = BINDINGS.refused(
    "DESC_HEAP_NOT_SET",
    "the list has no descriptor heap set, or another than the table's",
    When.RECORD,
    "A GPU has one heap of views at a time. Descriptors in another one are not found.",
    "Call SetDescriptorHeaps with the heap of the table's GPU handle before RecordDispatch; Reset of a list"
    " clears it.",
    rule="BT2: ID3D12GraphicsCommandList::SetDescriptorHeaps",
    message_ids=(
        MessageId.SET_DESCRIPTOR_HEAP_INVALID,
        MessageId.SET_DESCRIPTOR_TABLE_INVALID,
        MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
    ),
)

COPY_NULL = RESOURCES.refused(
    "COPY_NULL",
    "a copy has no buffer as source or destination",
    When.RECORD,
    "The command is not recorded. In C++, only Close fails, without the reason.",
    "Give both buffers.",
    rule="CM1, CM2: ID3D12GraphicsCommandList::CopyBufferRegion",
    message_ids=(
        MessageId.COPYBUFFERREGION_NULLDST,
        MessageId.COPYBUFFERREGION_NULLSRC,
        MessageId.COPYRESOURCE_NULLDST,
        MessageId.COPYRESOURCE_NULLSRC,
    ),
)

COPY_RANGE = RESOURCES.refused(
    "COPY_RANGE",
    "the bytes of a copy or of an immediate write do not lie in the buffer, or widths differ",
    When.RECORD,
    "The command is not recorded. CopyResource copies whole buffers, which have the same width.",
    "Let offset + size stay within the width of both buffers; CopyBufferRegion copies parts.",
    rule="CM1, CM2, CM5: ID3D12GraphicsCommandList::CopyBufferRegion",
    message_ids=(
        MessageId.COPYBUFFERREGION_DSTRANGEOUTOFBOUNDS,
        MessageId.COPYBUFFERREGION_SRCRANGEOUTOFBOUNDS,
        MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
    ),
)

COPY_SAME = RESOURCES.refused(
    "COPY_SAME",
    "a buffer, or memory that two buffers share, is copied onto itself, or two bytes of a destination are one",
    When.RECORD,
    "A buffer has one state, and it cannot be COPY_SOURCE and COPY_DEST at once, even if the ranges are "
    "apart. Through two buffers over the same memory a copy must not read what it writes, nor write a tile "
    "of a heap through two tiles of a reserved buffer: its parts have no order.",
    "Copy by way of a second buffer, or place a second one over the same memory if the ranges are apart; "
    "copy to each tile of a heap once.",
    rule="CM1, CM2: ID3D12GraphicsCommandList::CopyBufferRegion",
    message_ids=(
        MessageId.COPY_ON_SAME_SUBRESOURCE,
        MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
    ),
)

LIST_CLOSED = LISTS.refused(
    "LIST_CLOSED",
    "a command is recorded into a closed list, or a list is closed twice or executed though its Close failed",
    When.RECORD,
    "The command is lost: on Windows the call does nothing, and only the debug layer says so.",
    "Call Reset with an allocator first; it opens the list.",
    rule="CL5, CL11: ID3D12GraphicsCommandList::Close",
    message_ids=(
        MessageId.COMMAND_LIST_CLOSED,
        MessageId.EXECUTECOMMANDLISTS_FAILEDCOMMANDLIST,
    ),
    level=Strictness.DEBUG,
)

LIST_OPEN = LISTS.refused(
    "LIST_OPEN",
    "a list is executed or reset while it is open, or its allocator is reset",
    When.CALL,
    "On Windows executing an open list removes the device, and all its objects with it.",
    "Close the list first.",
    rule="CL6, CL7, Q2: ID3D12GraphicsCommandList::Reset",
    message_ids=(
        MessageId.COMMAND_LIST_OPEN,
        MessageId.EXECUTECOMMANDLISTS_OPENCOMMANDLIST,
        MessageId.COMMAND_ALLOCATOR_CANNOT_RESET,
    ),
)

ALLOC_SHARED = LISTS.refused(
    "ALLOC_SHARED",
    "a second list is opened with an allocator that an open list records with",
    When.CALL,
    "Both would write their commands into the same memory.",
    "Close the first list, or give each list an allocator of its own.",
    rule="CL4: ID3D12GraphicsCommandList::Reset",
    message_ids=(MessageId.COMMAND_ALLOCATOR_CONTENTION,),
)

ALLOC_RESET_IN_FLIGHT = LISTS.reported(
    "ALLOC_RESET_IN_FLIGHT",
    "an allocator is reset while a list recorded with it is still to be executed, or may be",
    Severity.CORRUPTION,
    When.CALL,
    "The commands of the list are in the memory of the allocator. Reset reuses it for the next recording, "
    "and the GPU executes whatever is there then.",
    "Wait for a fence value that is signalled behind the list before Reset, or take turns with several "
    "allocators, one per frame in flight.",
    rule="CL7: ID3D12CommandAllocator::Reset",
    message_ids=(
        MessageId.COMMAND_ALLOCATOR_SYNC,
        MessageId.COMMAND_ALLOCATOR_RESET,
    ),
    level=Strictness.DEBUG,
)

# --- rules ---


class DH5(Rule):
    says = "A shader-visible heap is no source of copies and no CPU handle of a clear."


class DH8(Rule):
    says = "SetDescriptorHeaps: shader-visible, at most one of each type."
    call = "the heaps by type."


class CL4(Rule):
    says = "One open list per allocator."


class CL5(Rule):
    says = "Close of a closed list: E_FAIL."
    call = "Close"


class CL6(Rule):
    says = "Reset of an open list: E_FAIL; right after ExecuteCommandLists it is legal."
    call = "disassemble"


class CL7(Rule):
    says = (
        "An allocator is not reset while a list records with it, nor while the GPU executes one, or may do so "
        "as far as the program can know."
    )
    call = "ID3D12CommandAllocator::Reset"


class CL8(Rule):
    says = "Several recordings from one allocator without a reset."


class CL10(Rule):
    says = "A list is recorded by one thread."
    untested = "not checked"


class CL11(Rule):
    says = "Recording methods are void; see above. On a closed list they are wrong (ignored at `runtime`)."


class CL12(Rule):
    says = "A recording starts without descriptor heaps."


class CL13(Rule):
    says = "Which list type may record what."


class CM1(Rule):
    says = (
        "CopyBufferRegion: two different buffers, ranges inside, any byte. That they are two only the debug "
        "layer looks at: at strictness `runtime` bytes are copied within one."
    )
    call = "the error of a copy within one buffer, which only the debug layer looks at."


class CM2(Rule):
    says = "CopyResource: two different buffers of one width."


class CM3(Rule):
    says = "Dispatch."
    untested = "shaders are not emulated, Dispatch raises E_NOTIMPL (`test_CL_unsupported_methods_say_so`)"


class CM4(Rule):
    says = (
        "ClearUnorderedAccessView: the handle of the heap that is set (at strictness `runtime` of any "
        "shader-visible heap, as on Windows), the same view where the CPU can read it, its resource in state "
        "UNORDERED_ACCESS; raw views and typed ones of every format that FORMAT_SUPPORT claims, element ranges."
        " Floats are converted by the data conversion rules; FLOAT16 is rounded to nearest even."
    )
    call = "the element ranges to be cleared, empty for all."


class CM5(Rule):
    says = "WriteBufferImmediate: addresses multiples of 4 inside a buffer in state COPY_DEST."
    call = "the buffers written, each with its (address, value, mode)."
