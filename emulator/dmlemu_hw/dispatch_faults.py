"""Messages for dispatches that the C side rejected."""

from __future__ import annotations

from typing import Any

from . import kernels, packets
from .descriptors import DESCRIPTOR_SIZE, DescriptorKind
from .faults import FaultKind, GpuFault
from .kernels import lib
from .memory import Memory
from .packets import SLOT_NONE, DispatchPacket

_KINDS = {
    lib.DMLK_BAD_PACKET: FaultKind.BAD_PACKET,
    lib.DMLK_BAD_ADDRESS: FaultKind.BAD_ADDRESS,
    lib.DMLK_BAD_DESCRIPTOR: FaultKind.BAD_DESCRIPTOR,
    lib.DMLK_OUT_OF_RANGE: FaultKind.OUT_OF_RANGE,
    lib.DMLK_NOT_IMPLEMENTED: FaultKind.NOT_IMPLEMENTED,
    lib.DMLK_OUT_OF_MEMORY: FaultKind.OUT_OF_MEMORY,
    lib.DMLK_STOPPED: FaultKind.STOPPED,
    lib.DMLK_BAD_ACCESS: FaultKind.BAD_PACKET,
}
_OF_TENSORS = (FaultKind.BAD_ADDRESS, FaultKind.BAD_DESCRIPTOR, FaultKind.OUT_OF_RANGE)


def dispatch_fault(status: int, fault: Any, packet: DispatchPacket, memory: Memory) -> GpuFault:
    """The fault for a status of ``dmlk_dispatch`` and its ``dmlk_fault``."""
    kind = _KINDS.get(status, FaultKind.BAD_PACKET)
    known = packet.kernel < kernels.count()
    kernel = f"kernel '{kernels.name(packet.kernel)}'" if known else f"kernel {packet.kernel}"
    if fault.tensor != SLOT_NONE and kind in _OF_TENSORS:
        return _tensor_fault(kind, fault, packet, kernel, memory)
    if status == lib.DMLK_BAD_ACCESS:
        message = (
            f"Tensor {fault.tensor} of {kernel} (descriptor slot {fault.slot}) is an output, "
            "but the packet gives it READ access only; it needs WRITE access."
        )
    elif kind is FaultKind.NOT_IMPLEMENTED:
        types = ", ".join(packets.type_name(each.data_type) for each in packet.tensors if not each.absent)
        message = f"There is no code of {kernel} for tensors of {types}."
    elif kind is FaultKind.OUT_OF_MEMORY:
        message = f"The host has no memory left for {kernel}."
    elif kind is FaultKind.STOPPED:
        message = (
            f"The dispatch of {kernel} was interrupted by the host while it ran; its results are undefined."
        )
    else:  # the kernel rejects its constants, or the packet does not decode
        kind = FaultKind.BAD_PACKET
        tensor = f"tensor {fault.tensor} of {kernel}" if fault.tensor != SLOT_NONE else kernel
        message = f"The packet's {tensor} is malformed: its size, type or rank is not valid."
    return GpuFault(kind, message, address=fault.address)


def _tensor_fault(
    kind: FaultKind, fault: Any, packet: DispatchPacket, kernel: str, memory: Memory
) -> GpuFault:
    """The fault of one tensor: its descriptor, or the memory that the descriptor refers to."""
    tensor = f"tensor {fault.tensor} of {kernel} (descriptor slot {fault.slot})"
    handle = packet.table + DESCRIPTOR_SIZE * fault.slot
    if kind is FaultKind.BAD_ADDRESS:
        kind, message = _bad_address(fault, handle, tensor, memory)
    elif kind is FaultKind.BAD_DESCRIPTOR:
        kind, message = _bad_descriptor(fault, packet, tensor)
    else:
        message = _out_of_range(fault, packet, tensor)
    return GpuFault(
        kind,
        message,
        address=fault.address,
        handle=handle,
        operand=fault.tensor,
        access=packet.tensors[fault.tensor].access,
        needed=fault.needed,
        given=fault.given,
    )


def _bad_address(fault: Any, handle: int, tensor: str, memory: Memory) -> tuple[FaultKind, str]:
    where = memory.describe_address(fault.address)
    allocation = memory.find(fault.address)
    if fault.address == handle:
        released = memory.find_freed(handle) is not None
        kind = FaultKind.BAD_ADDRESS if released else FaultKind.DESCRIPTOR_OUTSIDE
        return kind, f"The descriptor of {tensor} at {fault.address:#x} lies in {where}."
    if allocation is None:
        released = memory.find_freed(fault.address) is not None
        kind = FaultKind.DESCRIPTOR_STALE if released else FaultKind.BAD_ADDRESS
        return kind, f"Address {fault.address:#x} of {tensor} lies in {where}."
    past = fault.address + fault.needed - (allocation.address + allocation.size)
    if past > 0:
        message = f"The {fault.needed} bytes of {tensor} at {fault.address:#x} run {past} bytes past {where}."
        return FaultKind.BAD_ADDRESS, message
    message = (
        f"Address {fault.address:#x} of {tensor} is not a multiple of the element size; it lies in {where}."
    )
    return FaultKind.MISALIGNED, message


def _bad_descriptor(fault: Any, packet: DispatchPacket, tensor: str) -> tuple[FaultKind, str]:
    kind = fault.given
    if kind == DescriptorKind.UNWRITTEN:
        message = f"The descriptor of {tensor} at {fault.address:#x} was never written."
        return FaultKind.DESCRIPTOR_UNWRITTEN, message
    known = kind in list(DescriptorKind)
    name = DescriptorKind(kind).name if known else f"of the unknown kind {kind}"
    access = packet.tensors[fault.tensor].access
    if kind == DescriptorKind.UAV or (kind == DescriptorKind.SRV and access == packets.READ):
        message = f"The descriptor of {tensor} at {fault.address:#x} is a null descriptor ({name})."
    else:
        need = "a UAV or an SRV" if access == packets.READ else "a UAV, as the tensor is written"
        message = f"The descriptor of {tensor} at {fault.address:#x} is {name}; it must be {need}."
    return FaultKind.BAD_DESCRIPTOR, message


def _out_of_range(fault: Any, packet: DispatchPacket, tensor: str) -> str:
    operand = packet.tensors[fault.tensor]
    if fault.needed == operand.offset + operand.byte_size:
        return f"The view of {tensor} has {fault.given} bytes, but the tensor ends at byte {fault.needed}."
    return f"The elements of {tensor} need {fault.needed} bytes, but the tensor has {fault.given}."
