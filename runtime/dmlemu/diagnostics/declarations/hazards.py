"""Group f, second half: what barriers and fences must order."""

from .. import ids
from ..declaration import Declaration, When
from ..report import Severity

_WHY = (
    "Commands of a queue start in order, but they may overlap: without a barrier between them the one may "
    "see what the other has not done yet, or has done already. The result depends on the card and on chance."
)
_FIX = (
    "Record a UAV barrier on the buffer between two dispatches, or a transition where its state changes. A UAV "
    "barrier without a resource orders all of them; the end of an ExecuteCommandLists call does so too."
)
_RULE = "ST15: Using UAV barriers and resource state barriers in DirectML"

HAZARD_DECLARATIONS = (
    Declaration(
        ids.HAZARD_RAW,
        "a command reads bytes that an earlier one writes, and no barrier orders the two",
        Severity.ERROR,
        When.EXECUTE,
        why=_WHY,
        fix=_FIX,
        rule=_RULE,
    ),
    Declaration(
        ids.HAZARD_WAR,
        "a command writes bytes that an earlier one reads, and no barrier orders the two",
        Severity.ERROR,
        When.EXECUTE,
        why=_WHY,
        fix=_FIX,
        rule=_RULE,
    ),
    Declaration(
        ids.HAZARD_WAW,
        "two commands write the same bytes, or use them as temporary memory, and no barrier orders the two",
        Severity.ERROR,
        When.EXECUTE,
        why=_WHY,
        fix=f"{_FIX} Dispatches that share a temporary resource need one as well, or a resource each.",
        rule=_RULE,
    ),
    Declaration(
        ids.HAZARD_QUEUE,
        "two queues touch the same bytes, one of them writes, and no fence orders the two commands",
        Severity.ERROR,
        When.EXECUTE,
        why="Queues run at the same time, whatever the order in which they were given their work. Barriers order "
        "nothing between them. UpdateTileMappings writes the page table, and all that goes through those tiles reads it.",
        fix="Signal a fence on the one queue behind the command, and let the other queue, or the CPU that feeds it, "
        "wait for that value.",
        rule="ST19: Multi-engine synchronization",
    ),
    Declaration(
        ids.HAZARD_ALIAS,
        "commands touch the same bytes through two buffers over one memory, one of them writes, and no aliasing "
        "barrier orders the two",
        Severity.ERROR,
        When.EXECUTE,
        why="A barrier that names one buffer says nothing of another over the same memory, so that the commands may "
        "overlap.",
        fix="Record an aliasing barrier from the one buffer to the other between the commands, or execute them by "
        "separate ExecuteCommandLists calls.",
        rule="AL1: D3D12_RESOURCE_ALIASING_BARRIER",
    ),
    Declaration(
        ids.BARRIER_USELESS,
        "a UAV barrier, whenever it was executed, was never the first to order two accesses that conflict",
        Severity.INFO,
        When.EXIT,
        why="Each barrier makes the GPU wait until it is idle. One on the wrong buffer may also be a hazard elsewhere.",
        fix="Leave the barrier out. Dispatches that only read the same bytes need none, and neither do commands of "
        "different ExecuteCommandLists calls.",
        rule=_RULE,
    ),
)

MAP_DECLARATIONS = (
    Declaration(
        ids.MAP_RACE,
        "the CPU changed bytes of mapped memory that a command was still to read or write",
        Severity.ERROR,
        When.EXECUTE,
        why="The GPU executes the command some time after ExecuteCommandLists: it may read the old bytes, the new ones, "
        "or some of each, and of what both write either may be left. The same holds for memory that the CPU sees through "
        "another buffer, and for tiles of its heap. If the queue waits for a fence before that command, the "
        "CPU may write until it sets the fence, or hands a signal that sets it to another queue. What indices choose of a "
        "tensor (GATHER_ELEMENTS) is known only when the command runs, and not compared.",
        fix="Wait for a fence value that is signalled behind the command before the bytes are written again, or write "
        "to another part of the buffer; or have the queue wait for a fence, and set it when the bytes are written.",
        rule="MP6: ID3D12Resource::Map",
    ),
)

DECLARATIONS = (*HAZARD_DECLARATIONS, *MAP_DECLARATIONS)
