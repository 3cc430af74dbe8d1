"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import LISTS
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity, Strictness

OBJECT_EVICTED_IN_USE = LISTS.reported(
    "OBJECT_EVICTED_IN_USE",
    "an object is evicted while a list that needs it is still to be executed, or may be",
    Severity.CORRUPTION,
    When.CALL,
    "The memory may be reused at once, and the GPU reads or writes whatever is there then.",
    "Wait for a fence value that is signalled after the list before Evict.",
    rule="RD2: ID3D12Device::Evict",
    message_ids=(MessageId.OBJECT_EVICTED_WHILE_STILL_IN_USE,),
    level=Strictness.DEBUG,
)

OBJECT_RESET_IN_USE = LISTS.reported(
    "OBJECT_RESET_IN_USE",
    "an operator initializer is reset while a list that it was recorded into is still to be executed, or may be",
    Severity.CORRUPTION,
    When.CALL,
    "The GPU uses the operators of the initializer; Reset replaces them.",
    "Wait for a fence value that is signalled after the list before Reset, or create another initializer.",
    rule="2.8: IDMLOperatorInitializer::Reset",
    level=Strictness.DEBUG,
)

FENCE_BACKWARDS = LISTS.reported(
    "FENCE_BACKWARDS",
    "a fence gets a lower value than it has",
    Severity.WARNING,
    When.EXECUTE,
    "It is allowed but rarely intended: a wait for a value in between ends at once or never, depending on "
    "timing.",
    "Let the values of a fence only rise; give each queue a fence of its own.",
    rule="FN2: ID3D12Fence::Signal",
    message_ids=(MessageId.FENCE_INVALIDOPERATION,),
    level=Strictness.DEBUG,
)
