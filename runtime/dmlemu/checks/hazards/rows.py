"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import HAZARDS
from ...diagnostics.report import Severity

_WHY = (
    "Commands of a queue start in order, but they may overlap: without a barrier between them one may read "
    "or write bytes before or after the other does. The result depends on the GPU and on timing."
)
_FIX = (
    "Record a UAV barrier on the buffer between two dispatches, or a transition where its state changes. A "
    "UAV barrier without a resource orders all of them; so does the end of an ExecuteCommandLists call."
)
_RULE = "ST15: Using UAV barriers and resource state barriers in DirectML"

HAZARD_RAW = HAZARDS.reported(
    "HAZARD_RAW",
    "a command reads bytes that an earlier one writes, and no barrier orders the two",
    Severity.ERROR,
    When.EXECUTE,
    _WHY,
    _FIX,
    rule=_RULE,
)

HAZARD_WAR = HAZARDS.reported(
    "HAZARD_WAR",
    "a command writes bytes that an earlier one reads, and no barrier orders the two",
    Severity.ERROR,
    When.EXECUTE,
    _WHY,
    _FIX,
    rule=_RULE,
)

HAZARD_WAW = HAZARDS.reported(
    "HAZARD_WAW",
    "two commands write the same bytes, or use them as temporary memory, and no barrier orders the two",
    Severity.ERROR,
    When.EXECUTE,
    _WHY,
    "Record a UAV barrier on the buffer between two dispatches, or a transition where its state changes. A "
    "UAV barrier without a resource orders all of them; so does the end of an ExecuteCommandLists call. "
    "Dispatches that share a temporary resource need one as well, or a resource each.",
    rule=_RULE,
)

HAZARD_QUEUE = HAZARDS.reported(
    "HAZARD_QUEUE",
    "two queues touch the same bytes, one of them writes, and no fence orders the two commands",
    Severity.ERROR,
    When.EXECUTE,
    "Queues run concurrently, whatever the order in which work was submitted. Barriers order nothing "
    "between queues. UpdateTileMappings writes the page table, and every access to those tiles reads it.",
    "Signal a fence on the first queue after the command, and let the other queue, or the CPU before "
    "it submits to that queue, wait for the value.",
    rule="ST19: Multi-engine synchronization",
)

HAZARD_ALIAS = HAZARDS.reported(
    "HAZARD_ALIAS",
    "commands touch the same bytes through two buffers over the same memory, one of them writes, and "
    "no aliasing barrier orders the two",
    Severity.ERROR,
    When.EXECUTE,
    "A barrier on one buffer does not order accesses through another buffer over the same memory, so the "
    "commands may overlap.",
    "Record an aliasing barrier from one buffer to the other between the commands, or execute them in "
    "separate ExecuteCommandLists calls.",
    rule="AL1: D3D12_RESOURCE_ALIASING_BARRIER",
)

BARRIER_ELSEWHERE = HAZARDS.reported(
    "BARRIER_ELSEWHERE",
    "commands that conflict are ordered only by the accident that a barrier on another resource comes between",
    Severity.WARNING,
    When.EXECUTE,
    "A barrier that names a resource orders the accesses to that resource. Here and on many GPUs it makes "
    "whole commands wait, but no document promises that: a driver may flush and wait for the named resource"
    " alone.",
    "Name the resource that both commands access, or give the UAV barrier no resource.",
    rule=_RULE,
)

BARRIER_USELESS = HAZARDS.reported(
    "BARRIER_USELESS",
    "a UAV barrier, whenever it was executed, was never the first to order two accesses that conflict",
    Severity.INFO,
    When.EXIT,
    "Each barrier makes the GPU wait until it is idle. A barrier on the wrong buffer may also mean a "
    "missing one. A barrier after an operator initializer is not reported: which of them write nothing "
    "is up to the device.",
    "Remove the barrier. Dispatches that only read the same bytes need none, and neither do commands of "
    "different ExecuteCommandLists calls.",
    rule=_RULE,
)
