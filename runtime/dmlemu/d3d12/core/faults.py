"""GPU faults, reported in terms of the API."""

from __future__ import annotations

from typing import Any

from dmlemu_hw.descriptors import DescriptorKind
from dmlemu_hw.events import WRITE
from dmlemu_hw.faults import FaultKind, GpuFault
from dmlemu_hw.packets import DispatchPacket, Opcode, decode_one, type_name

from ...diagnostics.rows import OP_NOT_EMULATED, OUT_OF_MEMORY
from ...diagnostics.rule import error_of
from ...errors import Error, HResult, Severity
from ..types.enums import MessageId
from .names import Names
from .recording import Command
from .rows import (
    DESC_INDEX,
    DESC_KIND,
    DESC_STALE,
    DESC_UNINIT,
    DEVICE_REMOVED,
    GPU_BAD_PACKET,
    GPU_STOPPED,
    GPU_TIMEOUT,
    INDIRECT_ARGUMENTS,
    MEM_MISALIGNED,
    MEM_OOB_READ,
    MEM_OOB_WRITE,
    OBJECT_DELETED_IN_USE,
)

ENTRY_NAMES = {
    Opcode.EXECUTE: "ExecuteCommandLists",
    Opcode.SIGNAL: "Signal",
    Opcode.WAIT: "Wait",
    Opcode.MAP_TILES: "UpdateTileMappings",
}

_CORRUPTION, _ERROR = Severity.CORRUPTION, Severity.ERROR

# fmt: off
# Check, the nearest D3D12_MESSAGE_ID, severity.
_CHECKS = {
    FaultKind.BAD_PACKET:   (GPU_BAD_PACKET, 0, _CORRUPTION),
    FaultKind.BAD_ADDRESS:  (MEM_OOB_READ, MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE, _CORRUPTION),
    FaultKind.OUT_OF_RANGE: (MEM_OOB_READ, MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,
                             _CORRUPTION),
    FaultKind.MISALIGNED:   (MEM_MISALIGNED, 0, _ERROR),
    FaultKind.DESCRIPTOR_UNWRITTEN:
        (DESC_UNINIT, MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_UNINITIALIZED, _ERROR),
    FaultKind.DESCRIPTOR_STALE:
        (DESC_STALE, MessageId.DESCRIPTOR_HANDLE_WITH_INVALID_RESOURCE, _ERROR),
    FaultKind.BAD_DESCRIPTOR:
        (DESC_KIND, MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_TYPE_MISMATCH, _ERROR),
    FaultKind.DESCRIPTOR_OUTSIDE:
        (DESC_INDEX, MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_HEAP_INDEX_OUT_OF_BOUNDS, _ERROR),
    FaultKind.NOT_IMPLEMENTED: (OP_NOT_EMULATED, 0, _CORRUPTION),
    FaultKind.OUT_OF_MEMORY:   (OUT_OF_MEMORY, 0, _CORRUPTION),
    FaultKind.PROGRAM_RELEASED:
        (OBJECT_DELETED_IN_USE, MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE, _CORRUPTION),
    FaultKind.BAD_ARGUMENT:
        (INDIRECT_ARGUMENTS, MessageId.EXECUTE_INDIRECT_INVALID_PARAMETERS, _CORRUPTION),
    FaultKind.OUTSIDE_ROOT:
        (MEM_OOB_READ, MessageId.GPU_BASED_VALIDATION_ROOT_DESCRIPTOR_ACCESS_OUT_OF_BOUNDS, _CORRUPTION),
    FaultKind.TIMED_OUT: (GPU_TIMEOUT, MessageId.DEVICE_REMOVAL_PROCESS_AT_FAULT, _CORRUPTION),
    FaultKind.HEAP_RELEASED:
        (OBJECT_DELETED_IN_USE, MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE, _CORRUPTION),
    FaultKind.STOPPED: (GPU_STOPPED, 0, _CORRUPTION),
    FaultKind.INJECTED: (DEVICE_REMOVED, 0, _ERROR),
    FaultKind.REMOVED: (DEVICE_REMOVED, MessageId.DEVICE_REMOVAL_PROCESS_AT_FAULT, _CORRUPTION),
}
# fmt: on

_RULES = {
    DESC_UNINIT.id: "DH7: ID3D12DescriptorHeap",
    DESC_STALE.id: "BT13: IDMLBindingTable",
    DESC_KIND.id: "BT4: IDMLBindingTable",
    DESC_INDEX.id: "DH4: D3D12_GPU_DESCRIPTOR_HANDLE",
    MEM_OOB_READ.id: "BT8: IDMLBindingTable",
    MEM_OOB_WRITE.id: "BT8: IDMLBindingTable",
    MEM_MISALIGNED.id: "BT8: IDMLBindingTable",
}
_OF_SHADERS = "CM3: ID3D12GraphicsCommandList::Dispatch"


def fault_error(names: Names, fault: GpuFault, circumstances: tuple[str, ...]) -> Error:
    """The error for a fault: names the command, its list and queue, and the resource at the address."""
    memory = names.gpu.memory
    check, message_id, severity = _CHECKS[fault.kind]
    if check is MEM_OOB_READ and fault.access & WRITE:
        check = MEM_OOB_WRITE
    if fault.kind is FaultKind.BAD_ADDRESS and _is_freed(names, fault.address):
        check, message_id = OBJECT_DELETED_IN_USE, MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE
    command = names.command(fault.list_serial, fault.command)
    name = _command_name(command, fault)
    executed = name if command is None else command.within
    lines = [f"While the GPU executed {executed}{_place(names, fault)}"]
    if command is not None and command.recorded_at:
        lines.append(f"It was recorded at {command.recorded_at}")
    if fault.address and fault.address != fault.handle:
        lines.append(f"Address {fault.address:#x} is {memory.describe_address(fault.address)}")
    if fault.kind is FaultKind.OUT_OF_RANGE:
        last = memory.describe_address(fault.address + fault.needed - 1)
        lines.append(f"The last byte of the tensor would lie in {last}")
    removal = "RM3: a GPU fault removes the device"
    rule = _OF_SHADERS if _is_shader(fault) and fault.operand >= 0 else _RULES.get(check.id, "")
    return error_of(
        check,
        _message(names, fault, command),
        operation=name,
        rule=f"{rule}; {removal}" if rule else removal,
        hresult=HResult.DXGI_ERROR_DEVICE_HUNG,
        message_id=message_id,
        object=names.address(fault.address) if fault.address else "",
        severity=severity,
        context=(*lines, *circumstances),
        is_call=False,
        **_picture(names, fault, command),
    )


def _picture(names: Names, fault: GpuFault, command: Command | None) -> dict[str, Any]:
    """A tensor that is larger than its descriptor's range, and the bytes of it behind that range."""
    if fault.kind is not FaultKind.OUT_OF_RANGE or fault.operand < 0 or fault.given >= fault.needed:
        return {}
    try:
        packet = decode_one(fault.packet)
    except ValueError:
        return {}
    allocation = names.gpu.memory.find(fault.address)
    if not isinstance(packet, DispatchPacket) or allocation is None:
        return {}
    from ...pictures import Tensor

    used, start = packet.tensors[fault.operand], fault.address - allocation.address
    operands = () if command is None else command.operands
    name = operands[fault.operand] if fault.operand < len(operands) else "tensor"
    kind = type_name(used.data_type)
    bits = int("".join(filter(str.isdigit, kind)))  # all names of types end with them
    tensor = Tensor(name, kind, bits, used.sizes, used.strides, start + used.offset, used.byte_size)
    outside = Tensor.of_bytes("outside of the view", start + fault.given, fault.needed - fault.given)
    return {"layouts": (tensor, outside), "faulty_byte": start + fault.given}


def _command_name(command: Command | None, fault: GpuFault) -> str:
    if command is not None:
        return command.name
    try:
        return ENTRY_NAMES[decode_one(fault.packet).opcode]
    except (ValueError, KeyError):
        return "a command"


def _place(names: Names, fault: GpuFault) -> str:
    recording, command = (
        names.recordings.get(fault.list_serial),
        names.command(fault.list_serial, fault.command),
    )
    if recording is None or command is None:
        return f" on {fault.queue}"
    return f" (command {command.number} of {recording.owner}) on {fault.queue}"


def _is_shader(fault: GpuFault) -> bool:
    opcode = int.from_bytes(fault.packet[:4], "little")
    return opcode in (Opcode.DISPATCH_SHADER, Opcode.EXECUTE_INDIRECT)


def _is_freed(names: Names, address: int) -> bool:
    memory = names.gpu.memory
    return bool(address) and memory.find(address) is None and memory.find_freed(address) is not None


def _message(names: Names, fault: GpuFault, command: Command | None) -> str:
    """The message with the operand's API name; the hardware's message when the operand is unknown."""
    if command is None or not 0 <= fault.operand < len(command.operands):
        return fault.message
    what = f"{command.operands[fault.operand]} of {command.brief}"
    if _is_shader(fault) and not fault.handle:
        return fault.message  # of a root argument
    through = f"{what} is {_DONE[fault.access]} through {names.place(fault.handle)}"
    where = names.gpu.memory.describe_address(fault.address)
    if fault.kind is FaultKind.DESCRIPTOR_UNWRITTEN:
        return f"{through}, which was never written."
    if fault.kind is FaultKind.DESCRIPTOR_STALE:
        return f"{through}, a view of {where}."
    if fault.kind is FaultKind.DESCRIPTOR_OUTSIDE:
        return f"The descriptor of {what} would lie in {where}."
    if fault.kind is FaultKind.BAD_DESCRIPTOR and fault.expected:
        return f"{through}, which holds {fault.found}; the shader declares {fault.expected}."
    if fault.kind is FaultKind.BAD_DESCRIPTOR:
        return f"{through}, which holds {_spell_kind(fault)}."
    if fault.kind is FaultKind.OUT_OF_RANGE:
        shown = names.bytes_at(fault.address, fault.given)
        return f"{through}, which covers {fault.given} bytes ({shown}); the tensor needs {fault.needed}."
    if fault.kind is FaultKind.BAD_ADDRESS:
        return f"{through}; its {fault.needed} bytes do not all lie in memory: they begin in {where}."
    if fault.kind is FaultKind.MISALIGNED:
        return f"{what} begins in {where}, which is misaligned for {_elements(fault)}."
    return fault.message


_DONE = {0: "used", 1: "read", 2: "written", 3: "read and written"}


def _spell_kind(fault: GpuFault) -> str:
    """The contents of a descriptor that cannot be used."""
    known = fault.given in list(DescriptorKind)
    kind = f"a {DescriptorKind(fault.given).name}" if known else "bytes that are not a descriptor"
    wanted = "a UAV" if fault.access & WRITE else "a UAV or an SRV"
    if known and (fault.given == DescriptorKind.UAV or (kind == "a SRV" and not fault.access & WRITE)):
        return "a null descriptor"
    return f"{kind.replace('a SRV', 'an SRV')} and must hold {wanted}"


def _elements(fault: GpuFault) -> str:
    """``UINT64 elements``."""
    try:
        packet = decode_one(fault.packet)
    except ValueError:
        return "its elements"
    if not isinstance(packet, DispatchPacket):
        return "its elements"
    return f"{type_name(packet.tensors[fault.operand].data_type)} elements"
