"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import LISTS, RESOURCES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity, Strictness
from ...diagnostics.rule import Rule

RES_NOT_RESIDENT = RESOURCES.refused(
    "RES_NOT_RESIDENT",
    "a list uses what has been evicted, or something is evicted more often than it was made resident",
    When.SUBMIT,
    "The GPU would access memory that may have been reused.",
    "Call MakeResident before ExecuteCommandLists; calls are counted, like references.",
    rule="RD1, RD2: Residency",
    message_ids=(
        MessageId.INVALID_USE_OF_NON_RESIDENT_RESOURCE,
        MessageId.MAKERESIDENT_NULLOBJECTARRAY,
        MessageId.EVICT_NULLOBJECTARRAY,
        MessageId.EVICT_UNDERFLOW,
    ),
    level=Strictness.DEBUG,
)

FENCE_VALUE = LISTS.refused(
    "FENCE_VALUE",
    "a fence value is no unsigned 64-bit number, or no fence is given",
    When.CALL,
    "The call fails.",
    "Count values up from 1.",
    rule="FN1, FN2: ID3D12Device::CreateFence",
)

FENCE_FLAGS = LISTS.refused(
    "FENCE_FLAGS",
    "fence flags are not known, or the fences and values of a wait for several do not fit",
    When.CALL,
    "The call fails.",
    "Give as many values as fences, at least one, and flags ALL or ANY.",
    rule="FN1, FN7: ID3D12Device1::SetEventOnMultipleFenceCompletion",
    message_ids=(
        MessageId.CREATE_FENCE_INVALID_FLAGS,
        MessageId.SETEVENTONMULTIPLEFENCECOMPLETION_INVALIDFLAGS,
    ),
)

LIST_EXECUTED_TWICE = LISTS.reported(
    "LIST_EXECUTED_TWICE",
    "a list is executed again before the GPU has finished it",
    Severity.ERROR,
    When.SUBMIT,
    "A list may be in flight only once. On Windows the device is removed.",
    "Wait for a fence value that is signalled behind the first execution, or record a second list.",
    rule="Q3: ID3D12CommandQueue::ExecuteCommandLists",
    message_ids=(MessageId.COMMAND_LIST_SYNC,),
    level=Strictness.DEBUG,
)

QUEUE_EMPTY_SUBMIT = LISTS.reported(
    "QUEUE_EMPTY_SUBMIT",
    "ExecuteCommandLists gets no lists, or one without commands (remarks), or one that was never recorded "
    "(refused)",
    Severity.INFO,
    When.SUBMIT,
    "It does nothing, and still costs as much as a real submission. Often the commands went into another list.",
    "Remove the call, or record commands into the list.",
    rule="Q2: ID3D12CommandQueue::ExecuteCommandLists",
    message_ids=(MessageId.CANNOT_EXECUTE_EMPTY_COMMAND_LIST,),
)

FENCE_ZERO_WAIT = LISTS.reported(
    "FENCE_ZERO_WAIT",
    "a queue waits for a fence to reach 0",
    Severity.WARNING,
    When.CALL,
    "Every fence has reached 0 when it is created: the wait has no effect, and the intended order does not "
    "exist.",
    "Count values up from 1 and signal before waiting.",
    rule="FN3: ID3D12CommandQueue::Wait",
    message_ids=(MessageId.FENCE_ZERO_WAIT,),
    level=Strictness.DEBUG,
)

# --- rules ---


class Q1(Rule):
    says = "Queues of type DIRECT, COMPUTE, COPY; known flags and priority."
    call = "D3D12_COMMAND_QUEUE_DESC"


class Q2(Rule):
    says = (
        "Executed lists are of the queue's type, closed, not failed, no bundles, recorded, and their allocator "
        "was not reset."
    )
    call = "ID3D12CommandQueue::ExecuteCommandLists"


class Q3(Rule):
    says = (
        "Lists run in array order; a pending one, or one that may be as far as the program can know, is not "
        "submitted again."
    )
    call = "ID3D12CommandQueue::ExecuteCommandLists"


class Q4(Rule):
    says = "All work of a queue is in call order."


class Q5(Rule):
    says = "Markers take any metadata."


class FN1(Rule):
    says = "Known flags, 64-bit values."
    call = "ID3D12Device::CreateFence"


class FN2(Rule):
    says = "Host and queues may set any value; one that is lower than the fence has then is remarked."


class FN4(Rule):
    says = "Each event fires once, at once if reached; without an event the call blocks."


class FN5(Rule):
    says = "After removal every fence reads 2^64 - 1, and all waits are over."


class FN6(Rule):
    says = "Releasing a fence releases what waits for it; queues share fences."


class FN7(Rule):
    says = "All or any of several fences."


class RD2(Rule):
    says = "What is not resident is not used."
    call = "ID3D12Device::Evict"
