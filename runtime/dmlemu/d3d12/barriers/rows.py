"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import LISTS, STATES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Strictness
from ...diagnostics.rule import Breach, Rule
from ..memory.rows import STATE_COMBO

LIST_TYPE = LISTS.refused(
    "LIST_TYPE",
    "the types of a list, its allocator, its queue or its commands do not fit",
    When.CALL,
    "Copy engines only copy, and compute engines do not draw: the command has no meaning there. On Windows "
    "Close fails, or the device is removed.",
    "Create queue, allocator and list with one type; DirectML needs COMPUTE or DIRECT.",
    rule="D3D12_COMMAND_LIST_TYPE",
)

STATE_BEFORE = STATES.refused(
    "STATE_BEFORE",
    "the state that a transition starts from, or that a command needs, is not the state of the buffer",
    When.RECORD,
    "The driver flushes and invalidates caches according to the states in barriers. A wrong state leaves "
    "stale bytes; Close fails, or the device is removed.",
    "Start from the state that the report names. Buffers are COMMON when ExecuteCommandLists begins, and "
    "their first use promotes them.",
    message_ids=(
        MessageId.RESOURCE_BARRIER_BEFORE_AFTER_MISMATCH,
        MessageId.INVALID_SUBRESOURCE_STATE,
        MessageId.RESOURCE_BARRIER_POSSIBLE_BEFORE_AFTER_MISMATCH,
    ),
    level=Strictness.DEBUG,
    rule="ST1, ST3, ST6, ST8: Using Resource Barriers to Synchronize Resource States in Direct3D 12",
)

STATE_SAME = STATES.refused(
    "STATE_SAME",
    "a transition goes from a state to itself",
    When.RECORD,
    "It does nothing where a barrier was intended. Between two dispatches that both use UNORDERED_ACCESS, "
    "only a UAV barrier orders them.",
    "Record a UAV barrier, or remove the transition.",
    level=Strictness.DEBUG,
    rule="Using Resource Barriers to Synchronize Resource States in Direct3D 12",
)


STATE_SPLIT = STATES.refused(
    "STATE_SPLIT",
    "the halves of a split barrier do not fit, or the buffer is used between them",
    When.RECORD,
    "Between BEGIN_ONLY and END_ONLY the buffer is in neither state: the driver may be moving it.",
    "End the barrier with the same states that it began with, and use the buffer only after that.",
    level=Strictness.DEBUG,
    message_ids=(
        MessageId.RESOURCE_BARRIER_MISMATCHING_BEGIN_END,
        MessageId.RESOURCE_BARRIER_UNMATCHED_END,
    ),
    rule="Using Resource Barriers to Synchronize Resource States in Direct3D 12",
)

STATE_FOR_DISPATCH = STATES.refused(
    "STATE_FOR_DISPATCH",
    "a bound buffer is not in UNORDERED_ACCESS, and cannot be promoted to it, when a dispatch is recorded",
    When.RECORD,
    "DirectML binds all buffers as unordered access views, inputs too. In another state the caches of the "
    "shader may hold other bytes than the copy wrote.",
    "Record a transition to UNORDERED_ACCESS between the copy and the dispatch, or submit them in separate "
    "ExecuteCommandLists calls.",
    message_ids=(MessageId.GPU_BASED_VALIDATION_INCOMPATIBLE_RESOURCE_STATE,),
    level=Strictness.DEBUG,
    rule="ST1, ST3: Using Resource Barriers to Synchronize Resource States in Direct3D 12",
)

STATE_COPY_QUEUE = STATES.refused(
    "STATE_COPY_QUEUE",
    "a COPY queue is given a buffer that is not COMMON, because a split barrier holds it",
    When.SUBMIT,
    "Copy engines know only COMMON, COPY_SOURCE and COPY_DEST: what was begun elsewhere must be ended there.",
    "End the split barrier, with END_ONLY, on the queue that began it.",
    message_ids=(MessageId.NON_COMMON_RESOURCE_IN_COPY_QUEUE,),
    level=Strictness.DEBUG,
    rule="ST17: Using Resource Barriers to Synchronize Resource States in Direct3D 12",
)

BARRIER_DESC = STATES.refused(
    "BARRIER_DESC",
    "a barrier names no resource, a subresource that does not exist, or is of an unknown type",
    When.RECORD,
    "None of the barriers of the call is recorded; in C++, only Close fails, without the reason.",
    "Create barriers with ResourceBarrier.transition, .uav and .aliasing.",
    level=Strictness.DEBUG,
    rule="Using Resource Barriers to Synchronize Resource States in Direct3D 12",
)

# --- rules ---


class ST1(Rule):
    says = "A command uses a buffer in the state that it is in."


class ST2(Rule):
    says = "A buffer in COMMON is promoted by its first use."


class ST3(Rule):
    says = "Promoted reads join; a promoted write needs a transition to leave."


class ST4(Rule):
    says = "Everything decays to COMMON at the end of each ExecuteCommandLists, not between its lists."


class ST5(Rule):
    says = "A buffer that is really COMMON may be named in any state before a transition."


class ST6(Rule):
    says = (
        "UPLOAD stays GENERIC_READ, READBACK stays COPY_DEST. A transition to COMMON would leave that "
        "state, and one from COMMON starts in a state that the buffer never had (only the debug layer "
        "checks this); both are legal if the buffer was created in COMMON."
    )
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    not_of_the_heap = Breach(
        STATE_COMBO,
        "{object}, in a heap of type {heap_type}, has no state ({given}).",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_HEAP,
    )


class ST7(Rule):
    says = "The states before and after differ."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    same = Breach(
        STATE_SAME,
        "A transition of {object} goes from state ({state}) to itself.",
        expected="another state than StateBefore",
        message_id=MessageId.RESOURCE_BARRIER_MATCHING_STATES,
    )


class ST8(Rule):
    says = "The state before is the tracked one, within a list and across the lists of one call."


class ST9(Rule):
    says = "No write state joined with others, no unknown bits."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    unknown_bits = Breach(
        STATE_COMBO,
        "State ({given}) has unknown bits.",
        expected="members of D3D12_RESOURCE_STATES",
        message_id=MessageId.RESOURCE_BARRIER_RESERVED_BITS,
    )
    write_and_more = Breach(
        STATE_COMBO,
        "State ({given}) joins a write state with another.",
        expected="one write state, or reads",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_COMBINATION,
    )


class ST10(Rule):
    says = "A resource, its one subresource, a known type."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    barriers = Breach(
        BARRIER_DESC,
        "No array of barriers is given.",
        field="pBarriers",
        given=None,
        expected="a barrier, or a sequence of barriers",
        message_id=MessageId.RESOURCE_BARRIER_NULL_POINTER,
    )
    not_a_barrier = Breach(
        BARRIER_DESC,
        "",
        expected="a D3D12_RESOURCE_BARRIER",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_TYPE,
    )
    other_contents = Breach(
        BARRIER_DESC,
        "Barrier type ({given}) does not match its contents.",
        expected="TRANSITION, ALIASING or UAV with its struct",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_TYPE,
    )
    no_resource = Breach(
        BARRIER_DESC,
        "A transition names no resource.",
        given=None,
        expected="a resource",
        message_id=MessageId.RESOURCE_BARRIER_NULL_POINTER,
    )
    no_such_subresource = Breach(
        BARRIER_DESC,
        "Subresource ({given}) of {object} does not exist: a buffer has one.",
        expected="0 or ALL_SUBRESOURCES",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_SUBRESOURCE,
    )


class ST11(Rule):
    says = "A call without barriers gives a warning."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    num_barriers = Breach(
        BARRIER_DESC,
        "ResourceBarrier is called with no barriers.",
        field="NumBarriers",
        given=0,
        expected="at least 1",
        message_id=MessageId.RESOURCE_BARRIER_ZERO_BARRIERS,
    )


class ST12(Rule):
    says = "Several transitions of one buffer in one call give a warning."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    combo = Breach(
        STATE_COMBO,
        "One ResourceBarrier call holds several transitions of {object}.",
        message_id=MessageId.RESOURCE_BARRIER_DUPLICATE_SUBRESOURCE_TRANSITIONS,
    )


class ST13(Rule):
    says = "The two halves of a split barrier match, and nothing uses the buffer between them."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    unknown_flags = Breach(
        STATE_SPLIT,
        "Barrier flags ({given}) are not allowed.",
        expected="NONE, BEGIN_ONLY or END_ONLY",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_COMBINED_FLAGS,
    )
    not_a_transition = Breach(
        STATE_SPLIT,
        "A barrier of type {type} is split, and only transitions can be.",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_SPLIT_BARRIER,
    )


class ST14(Rule):
    says = "Barriers count in array order; when one is wrong, none is recorded."


class ST15(Rule):
    says = (
        "UAV barriers name a buffer or all; missing ones are reported when the commands are executed (`HAZARD_RAW`,"
        " `HAZARD_WAR`, `HAZARD_WAW`)."
    )


class ST16(Rule):
    says = "UNORDERED_ACCESS needs the flag."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    flag_missing = Breach(
        STATE_COMBO,
        "A UAV barrier names {object}, which lacks flag {expected}.",
        message_id=MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
    )
    flag_lacking = Breach(
        STATE_COMBO,
        "State ({given}) needs flag {missing}, which {object} lacks.",
        message_id=MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
    )


class ST17(Rule):
    says = (
        "COPY lists know COMMON, COPY_DEST and COPY_SOURCE, and buffers reach a COPY queue in COMMON: "
        "all of them decay to it, except those in the middle of a split barrier (`STATE_COPY_QUEUE`)."
    )
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    type = Breach(
        LIST_TYPE,
        "A list of type COPY has a UAV barrier.",
        expected="a transition or an aliasing barrier",
        message_id=MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
    )
    not_of_the_list = Breach(
        LIST_TYPE,
        "State ({given}) is not one that a list of type {list_type} can express.",
        message_id=MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
    )


class ST18(Rule):
    says = "COMPUTE lists know no pixel, index or drawing states."
    call = "ID3D12GraphicsCommandList::ResourceBarrier"

    type = Breach(
        LIST_TYPE,
        "State ({given}) is not one that a list of type {list_type} can express.",
        message_id=MessageId.RESOURCE_BARRIER_MISMATCHING_COMMAND_LIST_TYPE,
    )


class ST19(Rule):
    says = "Several queues may read a buffer. A write that no fence orders is reported (`HAZARD_QUEUE`)."


class EB1(Rule):
    says = "Enhanced barriers."
    untested = (
        "EnhancedBarriersSupported is FALSE, and Barrier raises E_NOTIMPL "
        "(`test_CL_unsupported_methods_say_so`); so there are no checks of their sync, access and ranges"
    )


class AL1(Rule):
    says = "Aliasing barriers; data is inherited between buffers over the same memory."


class OR1(Rule):
    says = (
        "Work starts in order; copies to the same bytes keep their order. The emulated GPU executes a list "
        "strictly in order."
    )
