"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import LISTS, RESOURCES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import HResult, Severity, Strictness
from ...diagnostics.rule import Breach, Rule
from ..barriers.rows import LIST_TYPE
from ..lists.rows import ALLOC_RESET_IN_FLIGHT, LIST_CLOSED, LIST_OPEN

RES_NOT_RESIDENT = RESOURCES.refused(
    "RES_NOT_RESIDENT",
    "a list uses an object that has been evicted, or an object is evicted more often than it was made "
    "resident",
    When.SUBMIT,
    "The GPU would access memory that may have been reused.",
    "Call MakeResident before ExecuteCommandLists; calls are counted, like references.",
    level=Strictness.DEBUG,
    message_ids=(
        MessageId.INVALID_USE_OF_NON_RESIDENT_RESOURCE,
        MessageId.MAKERESIDENT_NULLOBJECTARRAY,
        MessageId.EVICT_NULLOBJECTARRAY,
    ),
    rule="Residency",
)

FENCE_VALUE = LISTS.refused(
    "FENCE_VALUE",
    "a fence value is not an unsigned 64-bit number, or no fence is given",
    When.CALL,
    "The call fails.",
    "Count values up from 1.",
    rule="ID3D12Device::CreateFence",
)

FENCE_FLAGS = LISTS.refused(
    "FENCE_FLAGS",
    "fence flags are not known, or the fences and values of a wait for several do not fit",
    When.CALL,
    "The call fails.",
    "Give as many values as fences, at least one, and flags ALL or ANY.",
    rule="ID3D12Device1::SetEventOnMultipleFenceCompletion",
)

LIST_EXECUTED_TWICE = LISTS.reported(
    "LIST_EXECUTED_TWICE",
    "a list is executed again before the GPU has finished it",
    Severity.ERROR,
    When.SUBMIT,
    "A list may be in flight only once. On Windows the device is removed.",
    "Wait for a fence value that is signalled after the first execution, or record a second list.",
    rule="Q3: ID3D12CommandQueue::ExecuteCommandLists",
    message_ids=(MessageId.COMMAND_LIST_SYNC,),
    level=Strictness.DEBUG,
)

QUEUE_EMPTY_SUBMIT = LISTS.reported(
    "QUEUE_EMPTY_SUBMIT",
    "ExecuteCommandLists gets no lists or a list without commands (reported), or a list that was never "
    "recorded (refused)",
    Severity.INFO,
    When.SUBMIT,
    "It does nothing, and still costs as much as a real submission. Often the commands went into another list.",
    "Remove the call, or record commands into the list.",
    rule="Q2: ID3D12CommandQueue::ExecuteCommandLists",
    message_ids=(MessageId.CANNOT_EXECUTE_EMPTY_COMMAND_LIST,),
)


# --- rules ---


class Q1(Rule):
    says = "Queues of type DIRECT, COMPUTE, COPY; known flags and priority."
    call = "D3D12_COMMAND_QUEUE_DESC"
    operation = "CreateCommandQueue"

    none = Breach(
        LIST_TYPE, "pDesc is {given}.", field="pDesc", given=None, expected="a D3D12_COMMAND_QUEUE_DESC"
    )
    type = Breach(
        LIST_TYPE,
        "A queue of type ({given}) cannot exist.",
        field="pDesc.Type",
        expected="DIRECT, COMPUTE or COPY",
        message_id=MessageId.CREATE_QUEUE_INVALID_TYPE,
    )
    flags = Breach(
        LIST_TYPE,
        "Command queue flags ({given}) have bits that are not known.",
        field="pDesc.Flags",
        expected="members of D3D12_COMMAND_QUEUE_FLAGS",
        message_id=MessageId.CREATE_QUEUE_INVALID_FLAGS,
    )
    priority = Breach(
        LIST_TYPE,
        "Command queue priority ({given}) is not known.",
        field="pDesc.Priority",
        expected="a member of D3D12_COMMAND_QUEUE_PRIORITY",
        message_id=MessageId.CREATE_QUEUE_INVALID_PRIORITY,
    )
    node = Breach(
        LIST_TYPE,
        "Node mask ({given}) names nodes that the device does not have.",
        field="pDesc.NodeMask",
        expected="0 or 1",
        message_id=MessageId.CREATE_QUEUE_INVALID_TYPE,
    )


class Q2(Rule):
    says = (
        "Executed lists are of the queue's type, closed, not failed, recorded and not bundles, and "
        "their allocator was not reset."
    )
    call = "ID3D12CommandQueue::ExecuteCommandLists"
    hresult = HResult.DXGI_ERROR_INVALID_CALL

    none = Breach(LIST_TYPE, "No command list is given.", given=None, expected="a command list")
    bundle = Breach(
        LIST_TYPE, "{list} is a bundle.", message_id=MessageId.EXECUTECOMMANDLISTS_BUNDLENOTSUPPORTED
    )
    type = Breach(
        LIST_TYPE,
        "{list} of type {given} is executed on {object} of type {expected}.",
        message_id=MessageId.EXECUTECOMMANDLISTS_COMMANDLISTMISMATCH,
    )
    open = Breach(
        LIST_OPEN,
        "{list} is executed while it is open.",
        given="an open list",
        expected="a closed list",
        message_id=MessageId.EXECUTECOMMANDLISTS_OPENCOMMANDLIST,
    )
    failed = Breach(
        LIST_CLOSED,
        "{list} is executed, and its Close failed.",
        given="a failed list",
        expected="a list whose Close succeeded",
        message_id=MessageId.EXECUTECOMMANDLISTS_FAILEDCOMMANDLIST,
    )
    never_recorded = Breach(
        QUEUE_EMPTY_SUBMIT,
        "{list} has never been recorded.",
        given="an empty list",
        expected="a recorded list",
        hint="Reset it with an allocator, which opens it; record, and close it.",
        message_id=MessageId.CANNOT_EXECUTE_EMPTY_COMMAND_LIST,
    )
    reset = Breach(
        ALLOC_RESET_IN_FLIGHT,
        "{list} is executed, and its {allocator} has been reset since Close.",
        given="a list whose commands are gone",
        expected="a list recorded since",
        hint="Reset the allocator once the GPU has finished all lists that were recorded with it.",
        message_id=MessageId.COMMAND_ALLOCATOR_RESET,
    )
    no_lists = Breach(
        QUEUE_EMPTY_SUBMIT,
        "ExecuteCommandLists is called with no lists.",
        field="NumCommandLists",
        given=0,
        expected="at least 1",
        message_id=MessageId.CANNOT_EXECUTE_EMPTY_COMMAND_LIST,
    )


class Q3(Rule):
    says = (
        "Lists run in array order; a list that is pending, or may be pending as far as the program can "
        "know, is not submitted again."
    )
    call = "ID3D12CommandQueue::ExecuteCommandLists"
    hresult = HResult.DXGI_ERROR_INVALID_CALL

    twice = Breach(
        LIST_EXECUTED_TWICE,
        "{list} appears twice in one ExecuteCommandLists call.",
        expected="a list that is not pending",
        message_id=MessageId.COMMAND_LIST_SYNC,
    )
    pending = Breach(
        LIST_EXECUTED_TWICE,
        "{list} is executed again while the GPU has not finished it.",
        expected="a list that is not pending",
        message_id=MessageId.COMMAND_LIST_SYNC,
    )


class Q4(Rule):
    says = "All work of a queue is in call order."


class Q5(Rule):
    says = "Markers take any metadata."


class FN1(Rule):
    says = "Known flags, 64-bit values."
    call = "ID3D12Device::CreateFence"

    flags = Breach(
        FENCE_FLAGS,
        "Fence flags ({given}) have bits that are not known.",
        field="Flags",
        expected="members of D3D12_FENCE_FLAGS",
        message_id=MessageId.CREATE_FENCE_INVALID_FLAGS,
    )
    value = Breach(
        FENCE_VALUE, "Fence value ({given}) is not an unsigned 64-bit number.", expected="0 to 2**64 - 1"
    )


class FN2(Rule):
    says = "Host and queues may set any value; one that is lower than the fence's value then gives a warning (`FENCE_BACKWARDS`)."

    fence = Breach(FENCE_VALUE, "No fence is given.", field="pFence", given=None, expected="a fence")


class FN4(Rule):
    says = "Each event fires once, at once if reached; without an event the call blocks."


class FN5(Rule):
    says = "After removal every fence reads 2^64 - 1, and all waits are over."


class FN6(Rule):
    says = "Releasing a fence releases what waits for it; queues share fences."


class FN7(Rule):
    says = "All or any of several fences."
    call = "ID3D12Device1::SetEventOnMultipleFenceCompletion"

    flags = Breach(
        FENCE_FLAGS,
        "Multiple fence wait flags ({given}) have bits that are not known.",
        field="Flags",
        expected="ALL or ANY",
        message_id=MessageId.SETEVENTONMULTIPLEFENCECOMPLETION_INVALIDFLAGS,
    )
    fence_values = Breach(FENCE_FLAGS, "There are {fences} fences and {values} values.", field="pFenceValues")
    num_fences = Breach(FENCE_FLAGS, "No fence is given.", field="NumFences", given=0, expected="at least 1")


class RD2(Rule):
    says = "Objects that are not resident are not used."
    call = "ID3D12Device::Evict"
    operation = "ExecuteCommandLists"
    hresult = HResult.DXGI_ERROR_INVALID_CALL

    not_resident = Breach(
        RES_NOT_RESIDENT,
        "{owner} uses {object}, {which} is not resident.",
        hint="Call MakeResident before the list is executed.",
        message_id=MessageId.INVALID_USE_OF_NON_RESIDENT_RESOURCE,
    )
