"""What a dispatch that the C side refused did wrong, in words."""

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
}


def dispatch_fault(status: int, fault: Any, packet: DispatchPacket, memory: Memory) -> GpuFault:
    """The fault that stands for a status of ``dmlk_dispatch`` and its ``dmlk_fault``."""
    kind = _KINDS.get(status, FaultKind.BAD_PACKET)
    known = packet.kernel < kernels.count()
    kernel = f"kernel '{kernels.name(packet.kernel)}'" if known else f"kernel {packet.kernel}"
    tensor = kernel
    if fault.tensor != SLOT_NONE:
        tensor = f"tensor {fault.tensor} of {kernel}"
        if fault.slot != SLOT_NONE:
            tensor += f" (descriptor slot {fault.slot})"
    elif kind not in (FaultKind.NOT_IMPLEMENTED, FaultKind.OUT_OF_MEMORY, FaultKind.STOPPED):
        kind = FaultKind.BAD_PACKET  # the kernel itself refuses
    if kind is FaultKind.BAD_ADDRESS:
        message = _bad_address(fault, packet, tensor, memory)
    elif kind is FaultKind.BAD_DESCRIPTOR:
        message = _bad_descriptor(fault, packet, tensor)
    elif kind is FaultKind.OUT_OF_RANGE:
        message = _out_of_range(fault, packet, tensor)
    elif kind is FaultKind.NOT_IMPLEMENTED:
        types = ", ".join(packets.type_name(each.data_type) for each in packet.tensors if not each.absent)
        message = f"There is no code of {kernel} for tensors of {types}."
    elif kind is FaultKind.OUT_OF_MEMORY:
        message = f"The host has no memory left for {kernel}."
    elif kind is FaultKind.STOPPED:
        message = (
            f"The dispatch of {kernel} was interrupted by the host while it ran; its results are undefined."
        )
    else:
        message = f"The packet's {tensor} makes no sense: its size, type or rank is malformed."
    return GpuFault(kind, message, address=fault.address)


def _bad_address(fault: Any, packet: DispatchPacket, tensor: str, memory: Memory) -> str:
    where = memory.whereabouts(fault.address)
    allocation = memory.find(fault.address)
    if fault.address == packet.table + DESCRIPTOR_SIZE * fault.slot:
        return f"The descriptor of {tensor} at {fault.address:#x} lies in {where}."
    if allocation is None:
        return f"Address {fault.address:#x} of {tensor} lies in {where}."
    past = fault.address + fault.needed - (allocation.address + allocation.size)
    if past > 0:
        return f"The {fault.needed} bytes of {tensor} at {fault.address:#x} run {past} bytes past {where}."
    return (
        f"Address {fault.address:#x} of {tensor} is not a multiple of the element size; it lies in {where}."
    )


def _bad_descriptor(fault: Any, packet: DispatchPacket, tensor: str) -> str:
    kind = fault.given
    if kind == DescriptorKind.UNWRITTEN:
        return f"The descriptor of {tensor} at {fault.address:#x} was never written."
    known = kind in list(DescriptorKind)
    name = DescriptorKind(kind).name if known else f"of the unknown kind {kind}"
    access = packet.tensors[fault.tensor].access
    if kind == DescriptorKind.UAV or (kind == DescriptorKind.SRV and access == packets.READ):
        return f"The descriptor of {tensor} at {fault.address:#x} is a null descriptor ({name})."
    need = "a UAV or an SRV" if access == packets.READ else "a UAV, as the tensor is written"
    return f"The descriptor of {tensor} at {fault.address:#x} is {name}; it must be {need}."


def _out_of_range(fault: Any, packet: DispatchPacket, tensor: str) -> str:
    operand = packet.tensors[fault.tensor]
    if fault.needed == operand.offset + operand.byte_size:
        return f"The view of {tensor} has {fault.given} bytes, but the tensor ends at byte {fault.needed}."
    return f"The elements of {tensor} need {fault.needed} bytes, but the tensor has {fault.given}."
