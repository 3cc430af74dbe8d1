"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import HAZARDS
from ...diagnostics.report import Severity

MAP_RACE = HAZARDS.reported(
    "MAP_RACE",
    "the CPU changed bytes of mapped memory that a command was still to read or write",
    Severity.ERROR,
    When.EXECUTE,
    "The GPU executes the command some time after ExecuteCommandLists: it may read the old bytes, the new "
    "ones, or some of each; where both write, either value may remain. The same holds for memory that the "
    "CPU maps through another buffer, and for tiles of its heap. If the queue waits for a fence before that"
    " command, the CPU may write until it sets the fence, or hands a signal that sets it to another queue. "
    "The elements that indices select (GATHER_ELEMENTS) are known only when the command runs, and are not "
    "compared.",
    "Wait for a fence value that is signalled after the command before the bytes are written again, or "
    "write to another part of the buffer; or have the queue wait for a fence, and set it when the "
    "bytes are written.",
    rule="MP6: ID3D12Resource::Map",
)
