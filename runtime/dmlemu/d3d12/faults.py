"""What the GPU ran into, in the words of the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dmlemu_hw.faults import FaultKind, GpuFault
from dmlemu_hw.packets import Opcode, decode_one

from ..errors import Error, HResult, Severity
from .enums import MessageId
from .reports import failure

if TYPE_CHECKING:
    from .gpu_at_work import GpuAtWork
    from .recording import Command

_ENTRY_NAMES = {
    Opcode.EXECUTE: "ExecuteCommandLists",
    Opcode.SIGNAL: "Signal",
    Opcode.WAIT: "Wait",
    Opcode.MAP_TILES: "UpdateTileMappings",
}

# Check, message number: the nearest of the real ones.
_CHECKS = {
    FaultKind.BAD_PACKET: ("GPU_BAD_PACKET", None),
    FaultKind.BAD_ADDRESS: ("MEM_OOB_ACCESS", MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE),
    FaultKind.BAD_DESCRIPTOR: ("DESC_UNINIT", MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_UNINITIALIZED),
    FaultKind.OUT_OF_RANGE: ("BIND_RANGE", MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS),
    FaultKind.NOT_IMPLEMENTED: ("OP_NOT_EMULATED", None),
    FaultKind.OUT_OF_MEMORY: ("OUT_OF_MEMORY", None),
    FaultKind.HEAP_RELEASED: ("OBJECT_DELETED_IN_USE", MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE),
    FaultKind.STOPPED: ("GPU_STOPPED", None),
    FaultKind.REMOVED: ("DEVICE_REMOVED", MessageId.DEVICE_REMOVAL_PROCESS_AT_FAULT),
}


def fault_error(device: GpuAtWork, fault: GpuFault) -> Error:
    """The error for a fault: names the command, its list and queue, and the resource at the address."""
    memory = device._gpu.memory
    check, message_id = _CHECKS[fault.kind]
    if fault.address and memory.find(fault.address) is None and memory.find_freed(fault.address) is not None:
        check, message_id = "OBJECT_DELETED_IN_USE", MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE
    command = _command_name(device, fault)
    where = _place(device, fault)
    context = [f"While the GPU executed {command}{where}"]
    if fault.address:
        context.append(f"Address {fault.address:#x} is {memory.whereabouts(fault.address)}")
    return failure(
        check,
        fault.message,
        operation=command,
        rule="RM3: a GPU fault removes the device",
        hresult=HResult.DXGI_ERROR_DEVICE_HUNG,
        message_id=message_id,
        object=device._name_address(fault.address) if fault.address else "",
        severity=Severity.CORRUPTION,
        context=tuple(context),
        is_call=False,
    )


def _command(device: GpuAtWork, fault: GpuFault) -> Command | None:
    recording = device._recordings.get(fault.list_serial)
    known = recording is not None and fault.command < len(recording.commands)
    return recording.commands[fault.command] if recording is not None and known else None


def _command_name(device: GpuAtWork, fault: GpuFault) -> str:
    command = _command(device, fault)
    if command is not None:
        return command.name
    try:
        return _ENTRY_NAMES[decode_one(fault.packet).opcode]
    except (ValueError, KeyError):
        return "a command"


def _place(device: GpuAtWork, fault: GpuFault) -> str:
    recording, command = device._recordings.get(fault.list_serial), _command(device, fault)
    if recording is None or command is None:
        return f" on {fault.queue}"
    return f" (command {command.number} of {recording.owner}) on {fault.queue}"
