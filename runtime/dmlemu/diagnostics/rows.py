"""Rows of this room: its checks, and the rules that its calls keep."""

from .declaration import When
from .groups import DEVICES, REPORTS, RESOURCES, TENSORS
from .message_id import MessageId
from .report import Severity, Strictness

OP_NOT_EMULATED = TENSORS.refused(
    "OP_NOT_EMULATED",
    "something is asked for that the emulator does not do",
    When.CREATE,
    "The call returns E_NOTIMPL instead of a wrong result.",
    "See the reference of operators for what is implemented.",
)

OUT_OF_MEMORY = RESOURCES.refused(
    "OUT_OF_MEMORY",
    "the adapter's memory, or this machine's, is used up",
    When.CREATE,
    "Nothing is created (E_OUTOFMEMORY).",
    "Release what is no longer used once the GPU is done with it, or give the adapter more memory: "
    "d3d12.Adapter(dedicated_memory=...).",
    message_ids=(
        MessageId.CREATERESOURCE_OUTOFMEMORY_RETURN,
        MessageId.CREATEHEAP_OUTOFMEMORY_RETURN,
    ),
    rule="RB10: ID3D12Device::CreateCommittedResource",
)

ARGUMENT_RANGE = DEVICES.refused(
    "ARGUMENT_RANGE",
    "a number is larger than any field of the API, or is not one that the argument can be",
    When.CALL,
    "The call fails, and does nothing; in C a number that is too large would be cut off.",
    "Give a number of up to 64 bits, one of those that the API defines for the argument.",
    rule="Python's integers have no limit, the API's do",
)

REPORT_LIMIT = REPORTS.reported(
    "REPORT_LIMIT",
    "a device has stored 100 different reports of one check",
    Severity.MESSAGE,
    When.EXECUTE,
    "Further reports are only counted, in the count of this one; errors are still raised.",
    "Begin with the first report of the check. device.reports.clear() removes all reports.",
    level=Strictness.RUNTIME,
    no_example="The example would be a hundred reports.",
)

CHECKS_RESTARTED = REPORTS.reported(
    "CHECKS_RESTARTED",
    "an exception such as KeyboardInterrupt has ended a call in the middle",
    Severity.MESSAGE,
    When.EXECUTE,
    "A check that was interrupted may have missed events. All checks are restarted once the GPU is idle, "
    "without any earlier state.",
    "No change is needed. Mistakes that involve work from before the exception are not reported.",
    level=Strictness.DEBUG,
    no_example="The example would have to be interrupted at one moment.",
)
