"""Group e: lists, allocators, queues, fences, and what the GPU still needs."""

from .. import ids
from ..declaration import Declaration, When, refused
from ..message_id import MessageId
from ..report import Severity, Strictness

_DEBUG = Strictness.DEBUG


REFUSALS = (
    refused(
        ids.LIST_CLOSED,
        "a command is recorded into a closed list, or a list is closed twice or executed though its Close failed",
        When.RECORD,
        "The command is lost: on Windows the call does nothing, and only the debug layer says so.",
        "Call Reset with an allocator first; it opens the list.",
        "CL5, CL11: ID3D12GraphicsCommandList::Close",
        MessageId.COMMAND_LIST_CLOSED,
        MessageId.EXECUTECOMMANDLISTS_FAILEDCOMMANDLIST,
        level=_DEBUG,
    ),
    refused(
        ids.LIST_OPEN,
        "a list is executed or reset while it is open, or its allocator is reset",
        When.CALL,
        "On Windows executing an open list removes the device, and all its objects with it.",
        "Close the list first.",
        "CL6, CL7, Q2: ID3D12GraphicsCommandList::Reset",
        MessageId.COMMAND_LIST_OPEN,
        MessageId.EXECUTECOMMANDLISTS_OPENCOMMANDLIST,
        MessageId.COMMAND_ALLOCATOR_CANNOT_RESET,
    ),
    refused(
        ids.ALLOC_SHARED,
        "a second list is opened with an allocator that an open list records with",
        When.CALL,
        "Both would write their commands into the same memory.",
        "Close the first list, or give each list an allocator of its own.",
        "CL4: ID3D12GraphicsCommandList::Reset",
        MessageId.COMMAND_ALLOCATOR_CONTENTION,
    ),
    refused(
        ids.LIST_TYPE,
        "the types of a list, its allocator, its queue or its commands do not fit",
        When.CALL,
        "Copy engines only copy, and compute engines do not draw: the command has no meaning there. On Windows Close "
        "fails, or the device is removed.",
        "Create queue, allocator and list with one type; DirectML needs COMPUTE or DIRECT.",
        "CL2, CL13, Q1, Q2: D3D12_COMMAND_LIST_TYPE",
        MessageId.RESOURCE_BARRIER_INVALID_COMMAND_LIST_TYPE,
        MessageId.WRONG_COMMAND_ALLOCATOR_TYPE,
        MessageId.EXECUTECOMMANDLISTS_BUNDLENOTSUPPORTED,
        MessageId.EXECUTECOMMANDLISTS_COMMANDLISTMISMATCH,
        MessageId.CREATE_QUEUE_INVALID_TYPE,
        MessageId.CREATE_QUEUE_INVALID_FLAGS,
        MessageId.CREATE_QUEUE_INVALID_PRIORITY,
        MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
        MessageId.CREATE_COMMAND_LIST_INVALID_COMMAND_LIST_TYPE,
        MessageId.CREATECOMMANDLIST_NULL_COMMANDALLOCATOR,
    ),
    refused(
        ids.FENCE_NEVER,
        "the program waits for a fence value that nothing can bring about any more",
        When.EXECUTE,
        "On real hardware the program hangs here: it waits for a Signal that was never queued, or queues wait "
        "for one another.",
        "Queue the Signal before the wait, on a queue that does not itself wait for what comes after.",
        "FN3: ID3D12CommandQueue::Wait",
    ),
    refused(
        ids.FENCE_VALUE,
        "a fence value is no unsigned 64-bit number, or no fence is given",
        When.CALL,
        "The call fails.",
        "Count values up from 1.",
        "FN1, FN2: ID3D12Device::CreateFence",
    ),
    refused(
        ids.FENCE_FLAGS,
        "fence flags are not known, or the fences and values of a wait for several do not fit",
        When.CALL,
        "The call fails.",
        "Give as many values as fences, at least one, and flags ALL or ANY.",
        "FN1, FN7: ID3D12Device1::SetEventOnMultipleFenceCompletion",
        MessageId.CREATE_FENCE_INVALID_FLAGS,
        MessageId.SETEVENTONMULTIPLEFENCECOMPLETION_INVALIDFLAGS,
    ),
    refused(
        ids.FENCE_EVENT,
        "the event to be set is the number of no eventfd",
        When.CALL,
        "No event could be set: the program would wait indefinitely.",
        "Give an object with a method set(), such as a threading.Event, or the number that os.eventfd returned.",
        "FN8: ID3D12Fence::SetEventOnCompletion",
    ),
)

LIFETIMES = (
    Declaration(
        ids.ALLOC_RESET_IN_FLIGHT,
        "an allocator is reset while a list recorded with it is still to be executed, or may be",
        Severity.CORRUPTION,
        When.CALL,
        why="The commands of the list are in the memory of the allocator. Reset reuses it for the next recording, and "
        "the GPU executes whatever is there then.",
        fix="Wait for a fence value that is signalled behind the list before Reset, or take turns with several "
        "allocators, one per frame in flight.",
        rule="CL7: ID3D12CommandAllocator::Reset",
        message_ids=(MessageId.COMMAND_ALLOCATOR_SYNC, MessageId.COMMAND_ALLOCATOR_RESET),
        level=_DEBUG,
    ),
    Declaration(
        ids.OBJECT_EVICTED_IN_USE,
        "an object is evicted while a list that needs it is still to be executed, or may be",
        Severity.CORRUPTION,
        When.CALL,
        why="The memory may be reused at once, and the GPU reads or writes whatever is there then.",
        fix="Wait for a fence value that is signalled behind the list before Evict.",
        rule="RD2: ID3D12Device::Evict",
        message_ids=(MessageId.OBJECT_EVICTED_WHILE_STILL_IN_USE,),
        level=_DEBUG,
    ),
    Declaration(
        ids.OBJECT_RESET_IN_USE,
        "an operator initializer is reset while a list that it was recorded into is still to be executed, or may be",
        Severity.CORRUPTION,
        When.CALL,
        why="The GPU uses the operators of the initializer; Reset replaces them.",
        fix="Wait for a fence value that is signalled behind the list before Reset, or create another initializer.",
        rule="2.8: IDMLOperatorInitializer::Reset",
        level=_DEBUG,
    ),
    Declaration(
        ids.LIST_EXECUTED_TWICE,
        "a list is executed again before the GPU has finished it",
        Severity.ERROR,
        When.SUBMIT,
        why="A list may be in flight only once. On Windows the device is removed.",
        fix="Wait for a fence value that is signalled behind the first execution, or record a second list.",
        rule="Q3: ID3D12CommandQueue::ExecuteCommandLists",
        message_ids=(MessageId.COMMAND_LIST_SYNC,),
        level=_DEBUG,
    ),
    Declaration(
        ids.OBJECT_DELETED_IN_USE,
        "an object is released while the GPU may need it, or used after its release",
        Severity.CORRUPTION,
        When.CALL,
        why="Lists keep no references. The GPU reads and writes the memory all the same, which may by then belong "
        "to another object, or be unmapped: the device is removed.",
        fix="Release buffers, descriptor heaps, allocators, compiled operators and initializers after a fence value "
        "that is signalled behind the last list that needs them.",
        rule="CL9: IUnknown::Release",
        message_ids=(MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE,),
        level=_DEBUG,
    ),
)

REMARKS = (
    Declaration(
        ids.QUEUE_EMPTY_SUBMIT,
        "ExecuteCommandLists gets no lists, or one without commands (remarks), or one that was never recorded (refused)",
        Severity.INFO,
        When.SUBMIT,
        why="It does nothing, and still costs as much as a real submission. Often the commands went into another list.",
        fix="Remove the call, or record commands into the list.",
        rule="Q2: ID3D12CommandQueue::ExecuteCommandLists",
        message_ids=(MessageId.CANNOT_EXECUTE_EMPTY_COMMAND_LIST,),
    ),
    Declaration(
        ids.FENCE_ZERO_WAIT,
        "a queue waits for a fence to reach 0",
        Severity.WARNING,
        When.CALL,
        why="Every fence has reached 0 when it is created: the wait has no effect, and the intended order does not "
        "exist.",
        fix="Count values up from 1 and signal before waiting.",
        rule="FN3: ID3D12CommandQueue::Wait",
        message_ids=(MessageId.FENCE_ZERO_WAIT,),
        level=_DEBUG,
    ),
)

FENCES = (
    Declaration(
        ids.FENCE_BACKWARDS,
        "a fence gets a lower value than it has",
        Severity.WARNING,
        When.EXECUTE,
        why="It is allowed but rarely intended: a wait for a value in between ends at once or never, depending on "
        "timing.",
        fix="Let the values of a fence only rise; give each queue a fence of its own.",
        rule="FN2: ID3D12Fence::Signal",
        message_ids=(MessageId.FENCE_INVALIDOPERATION,),
        level=_DEBUG,
    ),
)

DECLARATIONS = (*REFUSALS, *LIFETIMES, *REMARKS, *FENCES)
