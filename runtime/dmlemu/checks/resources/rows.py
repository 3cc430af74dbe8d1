"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import RESOURCES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity

HEAP_OVERLAP = RESOURCES.reported(
    "HEAP_OVERLAP",
    "one ExecuteCommandLists call uses two placed buffers over the same bytes, one of them to be written, "
    "without an aliasing barrier",
    Severity.INFO,
    When.EXECUTE,
    "Buffers may share memory, and each sees what was written through the other, so this may be intended. "
    "If not, an offset is too small, and one buffer overwrites the other.",
    "Place the second buffer after the first, whose size is its width rounded up to 65536; or record an "
    "aliasing barrier between the uses.",
    rule="PL4, AL1: Memory Aliasing and Data Inheritance",
    message_ids=(MessageId.HEAP_ADDRESS_RANGE_INTERSECTS_MULTIPLE_BUFFERS,),
)

READBACK_EARLY = RESOURCES.reported(
    "READBACK_EARLY",
    "the CPU reads bytes that a command writes before a fence shows that the command is done",
    Severity.ERROR,
    When.CALL,
    "ExecuteCommandLists only submits the lists. The copy runs some time later, and until then the buffer "
    "holds what it held before, or a part of both.",
    "Signal a fence after ExecuteCommandLists, wait for its value, and map the buffer then.",
    rule="MP6: ID3D12Resource::Map",
)

RES_LEAK = RESOURCES.reported(
    "RES_LEAK",
    "a program that releases its objects and its device has left some objects unreleased",
    Severity.WARNING,
    When.EXIT,
    "Every object keeps the device and its memory: in C++ the memory is leaked until the process ends.",
    "Release the objects that are listed, or use them in 'with' blocks; the report says what holds them.",
    rule="ID3D12DebugDevice::ReportLiveDeviceObjects",
    message_ids=(
        MessageId.LIVE_OBJECT_SUMMARY,
        MessageId.LIVE_DEVICE,
    ),
)
