"""Group f, first half: the states that barriers and commands name."""

from .. import ids
from ..declaration import Declaration, When, refused
from ..message_id import MessageId
from ..report import Strictness

_RULE = "Using Resource Barriers to Synchronize Resource States in Direct3D 12"


def _refused(
    id: str, title: str, when: When, why: str, fix: str, rule: str, *message_ids: MessageId
) -> Declaration:
    return refused(id, title, when, why, fix, f"{rule}: {_RULE}", *message_ids, level=Strictness.DEBUG)


DECLARATIONS = (
    _refused(
        ids.STATE_BEFORE,
        "the state that a transition starts from, or that a command needs, is not the state of the buffer",
        When.RECORD,
        "The driver flushes and invalidates caches according to the states in barriers. A wrong state leaves stale "
        "bytes; Close fails, or the device is removed.",
        "Start from the state that the report names. Buffers are COMMON when ExecuteCommandLists begins, and their "
        "first use promotes them.",
        "ST1 to ST8",
        MessageId.RESOURCE_BARRIER_BEFORE_AFTER_MISMATCH,
        MessageId.INVALID_SUBRESOURCE_STATE,
        MessageId.RESOURCE_BARRIER_POSSIBLE_BEFORE_AFTER_MISMATCH,
    ),
    _refused(
        ids.STATE_SAME,
        "a transition leads from a state to itself",
        When.RECORD,
        "It does nothing where a barrier was intended. Between two dispatches that both use UNORDERED_ACCESS, only a UAV "
        "barrier orders them.",
        "Record a UAV barrier, or remove the transition.",
        "ST7",
        MessageId.RESOURCE_BARRIER_MATCHING_STATES,
    ),
    _refused(
        ids.STATE_COMBO,
        "a barrier names a state that cannot exist, or that the buffer cannot have",
        When.RECORD,
        "A write state cannot be combined with others, UNORDERED_ACCESS needs a buffer created with ALLOW_UNORDERED_ACCESS, and buffers "
        "of UPLOAD and READBACK heaps never change their state.",
        "Name one write state, or any set of read states, that the buffer's flags and heap allow.",
        "ST6, ST9, ST16",
        MessageId.RESOURCE_BARRIER_INVALID_COMBINATION,
        MessageId.RESOURCE_BARRIER_RESERVED_BITS,
        MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
        MessageId.RESOURCE_BARRIER_INVALID_HEAP,
        MessageId.RESOURCE_BARRIER_DUPLICATE_SUBRESOURCE_TRANSITIONS,
    ),
    _refused(
        ids.STATE_SPLIT,
        "the halves of a split barrier do not fit, or the buffer is used between them",
        When.RECORD,
        "Between BEGIN_ONLY and END_ONLY the buffer is in neither state: the driver may be moving it.",
        "End the barrier with the same states that it began with, and use the buffer only after that.",
        "ST13",
        MessageId.RESOURCE_BARRIER_INVALID_COMBINED_FLAGS,
        MessageId.RESOURCE_BARRIER_MISMATCHING_BEGIN_END,
        MessageId.RESOURCE_BARRIER_UNMATCHED_END,
        MessageId.RESOURCE_BARRIER_INVALID_SPLIT_BARRIER,
    ),
    _refused(
        ids.STATE_FOR_DISPATCH,
        "a bound buffer is not in UNORDERED_ACCESS, and cannot be promoted to it, when a dispatch is recorded",
        When.RECORD,
        "DirectML binds all buffers as unordered access views, inputs too. In another state the caches of the shader "
        "may hold other bytes than the copy wrote.",
        "Record a transition to UNORDERED_ACCESS between the copy and the dispatch, or submit them in separate "
        "ExecuteCommandLists calls.",
        "ST1, ST3",
        MessageId.GPU_BASED_VALIDATION_INCOMPATIBLE_RESOURCE_STATE,
    ),
    _refused(
        ids.STATE_COPY_QUEUE,
        "a COPY queue is given a buffer that is not COMMON, because a split barrier holds it",
        When.SUBMIT,
        "Copy engines know only COMMON, COPY_SOURCE and COPY_DEST: what was begun elsewhere must be ended there.",
        "End the split barrier, with END_ONLY, on the queue that began it.",
        "ST17",
        MessageId.NON_COMMON_RESOURCE_IN_COPY_QUEUE,
    ),
    _refused(
        ids.BARRIER_DESC,
        "a barrier names no resource, a subresource that does not exist, or is of an unknown type",
        When.RECORD,
        "None of the barriers of the call is recorded; in C++, only Close fails, without the reason.",
        "Create barriers with ResourceBarrier.transition, .uav and .aliasing.",
        "ST10, ST11",
        MessageId.RESOURCE_BARRIER_NULL_POINTER,
        MessageId.RESOURCE_BARRIER_INVALID_SUBRESOURCE,
        MessageId.RESOURCE_BARRIER_INVALID_TYPE,
        MessageId.RESOURCE_BARRIER_ZERO_BARRIERS,
    ),
)
