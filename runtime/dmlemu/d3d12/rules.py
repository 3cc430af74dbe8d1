"""The rules for heaps and buffers: what the create methods check before they create anything.

Every function raises :class:`dmlemu.Error`; ``operation`` is the API method's name, ``path`` the
field that holds the struct.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .arguments import instance, integer
from .enums import (
    CpuPageProperty,
    Format,
    HeapFlags,
    HeapType,
    MemoryPool,
    MessageId,
    ResourceDimension,
    ResourceFlags,
    ResourceStates,
    TextureLayout,
)
from .reports import failure, not_implemented, spell
from .states import COPY_DEST, GENERIC_READ, KNOWN_STATES, is_combination
from .structs import (
    DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT,
    DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT,
    HeapDesc,
    HeapProperties,
    ResourceDesc,
    SampleDesc,
)

TILE = DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT

_HEAP_TYPES = frozenset(int(each) for each in HeapType)
_DENY_ALL = int(HeapFlags.DENY_BUFFERS | HeapFlags.DENY_RT_DS_TEXTURES | HeapFlags.DENY_NON_RT_DS_TEXTURES)
_NOT_EMULATED_HEAP_FLAGS = (
    HeapFlags.SHARED
    | HeapFlags.SHARED_CROSS_ADAPTER
    | HeapFlags.HARDWARE_PROTECTED
    | HeapFlags.ALLOW_WRITE_WATCH
    | HeapFlags.TOOLS_USE_MANUAL_WRITE_TRACKING
)


def _all_bits(flags: Any) -> int:
    bits = 0
    for member in flags:
        bits |= int(member)
    return bits


_KNOWN_HEAP_FLAGS = _all_bits(HeapFlags.__members__.values())


def round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


@dataclass(frozen=True)
class _HeapMessages:
    """CreateHeap and CreateCommittedResource report the same faults under numbers of their own."""

    type: MessageId
    page: MessageId
    pool: MessageId
    properties: MessageId
    unknown_flags: MessageId
    flags: MessageId


HEAP_MESSAGES = _HeapMessages(
    MessageId.CREATEHEAP_UNRECOGNIZEDHEAPTYPE,
    MessageId.CREATEHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
    MessageId.CREATEHEAP_UNRECOGNIZEDMEMORYPOOL,
    MessageId.CREATEHEAP_INVALIDPROPERTIES,
    MessageId.CREATEHEAP_UNRECOGNIZEDMISCFLAGS,
    MessageId.CREATEHEAP_INVALIDMISCFLAGS,
)
COMMITTED_MESSAGES = _HeapMessages(
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPTYPE,
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDMEMORYPOOL,
    MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPPROPERTIES,
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPMISCFLAGS,
    MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPMISCFLAGS,
)


def check_heap_properties(
    properties: HeapProperties, operation: str, path: str, messages: _HeapMessages
) -> None:
    """HP3, HP4, HP7: type, page property, pool and node masks fit each other."""

    def bad(
        rule: str, field: str, given: Any, expected: str, message: str, message_id: MessageId
    ) -> Exception:
        return failure(
            "RES_DESC",
            message,
            operation=operation,
            rule=f"{rule}: D3D12_HEAP_PROPERTIES",
            message_id=message_id,
            field=f"{path}.{field}",
            given=given,
            expected=expected,
        )

    kind, page, pool = properties.type, properties.cpu_page_property, properties.memory_pool_preference
    if kind not in _HEAP_TYPES:
        raise bad(
            "HP3",
            "Type",
            kind,
            "a member of D3D12_HEAP_TYPE",
            f"Heap type ({spell(kind)}) is not known.",
            messages.type,
        )
    if page not in list(CpuPageProperty):
        raise bad(
            "HP3",
            "CPUPageProperty",
            page,
            "a member of D3D12_CPU_PAGE_PROPERTY",
            f"CPU page property ({spell(page)}) is not known.",
            messages.page,
        )
    if pool not in list(MemoryPool):
        raise bad(
            "HP3",
            "MemoryPoolPreference",
            pool,
            "a member of D3D12_MEMORY_POOL",
            f"Memory pool ({spell(pool)}) is not known.",
            messages.pool,
        )
    if kind != HeapType.CUSTOM:
        if page != CpuPageProperty.UNKNOWN:
            raise bad(
                "HP3",
                "CPUPageProperty",
                page,
                "UNKNOWN",
                f"A heap of type {spell(kind)} chooses a CPU page property ({spell(page)}).",
                messages.properties,
            )
        if pool != MemoryPool.UNKNOWN:
            raise bad(
                "HP3",
                "MemoryPoolPreference",
                pool,
                "UNKNOWN",
                f"A heap of type {spell(kind)} chooses a memory pool ({spell(pool)}).",
                messages.properties,
            )
    else:
        if page == CpuPageProperty.UNKNOWN:
            raise bad(
                "HP3",
                "CPUPageProperty",
                page,
                "NOT_AVAILABLE, WRITE_COMBINE or WRITE_BACK",
                "A CUSTOM heap leaves its CPU page property UNKNOWN.",
                messages.properties,
            )
        if pool == MemoryPool.UNKNOWN:
            raise bad(
                "HP3",
                "MemoryPoolPreference",
                pool,
                "L0 or L1",
                "A CUSTOM heap leaves its memory pool UNKNOWN.",
                messages.properties,
            )
        if pool == MemoryPool.L1 and page == CpuPageProperty.WRITE_BACK:
            raise bad(
                "HP4",
                "CPUPageProperty",
                page,
                "NOT_AVAILABLE or WRITE_COMBINE",
                "A CUSTOM heap in video memory (L1) has the CPU page property WRITE_BACK.",
                messages.properties,
            )
    check_node_mask(properties.creation_node_mask, operation, f"{path}.CreationNodeMask")
    check_node_mask(properties.visible_node_mask, operation, f"{path}.VisibleNodeMask")


def check_node_mask(mask: int, operation: str, field: str) -> None:
    """HP7: the device has one node."""
    if integer(mask, field) not in (0, 1):
        raise failure(
            "RES_DESC",
            f"Node mask ({mask}) names nodes that the device does not have.",
            operation=operation,
            rule="HP7: D3D12_HEAP_PROPERTIES",
            field=field,
            given=mask,
            expected="0 or 1",
        )


def full_properties(properties: HeapProperties) -> HeapProperties:
    """As GetDesc and GetHeapProperties tell them: node masks read 1 (HP7)."""
    return replace(properties, creation_node_mask=1, visible_node_mask=1)


def custom_properties(kind: HeapType) -> HeapProperties:
    """What a heap type stands for on a discrete adapter (HP8)."""
    page = {
        HeapType.DEFAULT: CpuPageProperty.NOT_AVAILABLE,
        HeapType.UPLOAD: CpuPageProperty.WRITE_COMBINE,
        HeapType.READBACK: CpuPageProperty.WRITE_BACK,
        HeapType.GPU_UPLOAD: CpuPageProperty.WRITE_COMBINE,
    }[kind]
    local = kind in (HeapType.DEFAULT, HeapType.GPU_UPLOAD)
    return HeapProperties(HeapType.CUSTOM, page, MemoryPool.L1 if local else MemoryPool.L0, 1, 1)


def is_cpu_visible(properties: HeapProperties) -> bool:
    """MP1: may resources in such a heap be mapped?"""
    if properties.type == HeapType.CUSTOM:
        return properties.cpu_page_property != CpuPageProperty.NOT_AVAILABLE
    return properties.type != HeapType.DEFAULT


def _check_known_heap_flags(flags: int, operation: str, path: str, messages: _HeapMessages) -> None:
    if flags & ~_KNOWN_HEAP_FLAGS:
        raise failure(
            "RES_DESC",
            f"Heap flags ({spell(HeapFlags(flags))}) have bits that are not known.",
            operation=operation,
            rule="HP5: D3D12_HEAP_FLAGS",
            message_id=messages.unknown_flags,
            field=path,
            given=HeapFlags(flags),
            expected="members of D3D12_HEAP_FLAGS",
        )
    missing = HeapFlags(flags) & _NOT_EMULATED_HEAP_FLAGS
    if missing:
        raise not_implemented(operation, f"Heap flag {spell(missing)}")


def check_heap_desc(desc: HeapDesc | None) -> None:
    """HP1 to HP7 and HP9."""
    operation = "CreateHeap"
    if desc is None:
        raise failure(
            "RES_DESC",
            "No heap description is given.",
            operation=operation,
            rule="HP9: ID3D12Device::CreateHeap",
            message_id=MessageId.CREATEHEAP_NULLDESC,
            field="pDesc",
            given=None,
            expected="a D3D12_HEAP_DESC",
        )
    instance(desc, HeapDesc, "desc")
    if desc.size_in_bytes <= 0:
        raise failure(
            "RES_DESC",
            f"Heap size ({desc.size_in_bytes}) is not positive.",
            operation=operation,
            rule="HP1: D3D12_HEAP_DESC",
            message_id=MessageId.CREATEHEAP_INVALIDSIZE,
            field="pDesc.SizeInBytes",
            given=desc.size_in_bytes,
            expected="at least 1",
        )
    alignments = (0, DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT, DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT)
    if desc.alignment not in alignments:
        raise failure(
            "RES_DESC",
            f"Heap alignment ({desc.alignment}) is not one that heaps can have.",
            operation=operation,
            rule="HP2: D3D12_HEAP_DESC",
            message_id=MessageId.CREATEHEAP_INVALIDALIGNMENT,
            field="pDesc.Alignment",
            given=desc.alignment,
            expected="0, 65536 or 4194304",
        )
    check_heap_properties(desc.properties, operation, "pDesc.Properties", HEAP_MESSAGES)
    flags = int(desc.flags)
    _check_known_heap_flags(flags, operation, "pDesc.Flags", HEAP_MESSAGES)
    if flags & _DENY_ALL == _DENY_ALL:
        raise failure(
            "RES_DESC",
            "The heap denies buffers and both kinds of textures: nothing could lie in it.",
            operation=operation,
            rule="HP5: D3D12_HEAP_FLAGS",
            message_id=MessageId.CREATEHEAP_INVALIDMISCFLAGS,
            field="pDesc.Flags",
            given=HeapFlags(flags),
            expected="at most two of DENY_BUFFERS, DENY_RT_DS_TEXTURES, DENY_NON_RT_DS_TEXTURES",
        )
    if flags & HeapFlags.ALLOW_DISPLAY:
        raise failure(
            "RES_DESC",
            "The heap has flag ALLOW_DISPLAY, which only committed resources may have.",
            operation=operation,
            rule="HP6: D3D12_HEAP_FLAGS",
            message_id=MessageId.CREATEHEAP_INVALIDMISCFLAGS,
            field="pDesc.Flags",
            given=HeapFlags(flags),
            expected="no ALLOW_DISPLAY",
        )


def check_committed_heap(properties: HeapProperties | None, flags: HeapFlags) -> None:
    """HP3 to HP7 for the implicit heap of a committed resource."""
    operation = "CreateCommittedResource"
    if properties is None:
        raise failure(
            "RES_DESC",
            "No heap properties are given.",
            operation=operation,
            rule="HP9: ID3D12Device::CreateCommittedResource",
            message_id=MessageId.CREATERESOURCEANDHEAP_NULLHEAPPROPERTIES,
            field="pHeapProperties",
            given=None,
            expected="a D3D12_HEAP_PROPERTIES",
        )
    instance(properties, HeapProperties, "heap_properties")
    check_heap_properties(properties, operation, "pHeapProperties", COMMITTED_MESSAGES)
    bits = integer(flags, "heap_flags")
    _check_known_heap_flags(bits, operation, "HeapFlags", COMMITTED_MESSAGES)
    refused = bits & (_DENY_ALL | HeapFlags.ALLOW_DISPLAY)
    if refused:
        raise failure(
            "RES_DESC",
            f"A committed buffer has heap flags ({spell(HeapFlags(refused))}) that are for shared heaps.",
            operation=operation,
            rule="HP6: D3D12_HEAP_FLAGS",
            message_id=MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPMISCFLAGS,
            field="HeapFlags",
            given=HeapFlags(bits),
            expected="no DENY_*, ALLOW_ONLY_* or ALLOW_DISPLAY flag",
        )


# --- buffers ---

_REFUSED_BUFFER_FLAGS = (
    # flag, why
    (ResourceFlags.ALLOW_SIMULTANEOUS_ACCESS, "which only textures may have: all buffers allow it anyway"),
    (ResourceFlags.ALLOW_DEPTH_STENCIL, "which only textures may have"),
    (ResourceFlags.DENY_SHADER_RESOURCE, "which goes with ALLOW_DEPTH_STENCIL only"),
    (ResourceFlags.ALLOW_CROSS_ADAPTER, "which needs a heap shared between adapters"),
    (ResourceFlags.VIDEO_DECODE_REFERENCE_ONLY, "which only textures may have"),
    (ResourceFlags.VIDEO_ENCODE_REFERENCE_ONLY, "which only textures may have"),
)
_KNOWN_RESOURCE_FLAGS = _all_bits(ResourceFlags)


def _bad_desc(
    rule: str, field: str, given: Any, expected: str, message: str, operation: str, message_id: MessageId
) -> Exception:
    return failure(
        "RES_DESC",
        message,
        operation=operation,
        rule=f"{rule}: D3D12_RESOURCE_DESC",
        message_id=message_id,
        field=f"pDesc.{field}",
        given=given,
        expected=expected,
    )


def check_resource_desc(desc: ResourceDesc | None, operation: str) -> ResourceDesc:
    """RB1 to RB3: a legal buffer, returned as GetDesc tells it."""
    if desc is None:
        raise failure(
            "RES_DESC",
            "No resource description is given.",
            operation=operation,
            rule=f"RB1: ID3D12Device::{operation}",
            message_id=MessageId.CREATERESOURCE_INVALIDDESC,
            field="pDesc",
            given=None,
            expected="a D3D12_RESOURCE_DESC",
        )
    instance(desc, ResourceDesc, "desc")
    if desc.dimension != ResourceDimension.BUFFER:
        if desc.dimension in (
            ResourceDimension.TEXTURE1D,
            ResourceDimension.TEXTURE2D,
            ResourceDimension.TEXTURE3D,
        ):
            raise not_implemented(operation, f"A resource of dimension {spell(desc.dimension)}")
        raise _bad_desc(
            "RB1",
            "Dimension",
            desc.dimension,
            "BUFFER",
            f"Resource dimension ({spell(desc.dimension)}) is not known.",
            operation,
            MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
        )
    _check_buffer_shape(desc, operation)
    _check_buffer_flags(desc, operation)
    return replace(desc, alignment=DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT, flags=ResourceFlags(desc.flags))


def _check_buffer_shape(desc: ResourceDesc, operation: str) -> None:
    if desc.width < 1:
        raise _bad_desc(
            "RB1",
            "Width",
            desc.width,
            "at least 1",
            f"Buffer width ({desc.width}) is not positive.",
            operation,
            MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
        )
    for field, given in (("Height", desc.height), ("DepthOrArraySize", desc.depth_or_array_size)):
        if given != 1:
            raise _bad_desc(
                "RB1",
                field,
                given,
                "1",
                f"A buffer has {field} ({given}), and it is one row of bytes.",
                operation,
                MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
            )
    if desc.mip_levels != 1:
        raise _bad_desc(
            "RB1",
            "MipLevels",
            desc.mip_levels,
            "1",
            f"A buffer has MipLevels ({desc.mip_levels}).",
            operation,
            MessageId.CREATERESOURCE_INVALIDMIPLEVELS,
        )
    if desc.format != Format.UNKNOWN:
        raise _bad_desc(
            "RB1",
            "Format",
            desc.format,
            "UNKNOWN",
            f"A buffer has Format ({spell(desc.format)}): views have formats, buffers have not.",
            operation,
            MessageId.CREATERESOURCE_INVALIDFORMAT,
        )
    if desc.sample_desc != SampleDesc(1, 0):
        samples = f"{{{desc.sample_desc.count}, {desc.sample_desc.quality}}}"
        raise _bad_desc(
            "RB1",
            "SampleDesc",
            samples,
            "{1, 0}",
            f"A buffer has SampleDesc ({samples}).",
            operation,
            MessageId.CREATERESOURCE_INVALIDSAMPLEDESC,
        )
    if desc.layout != TextureLayout.ROW_MAJOR:
        raise _bad_desc(
            "RB1",
            "Layout",
            desc.layout,
            "ROW_MAJOR",
            f"A buffer has Layout ({spell(desc.layout)}).",
            operation,
            MessageId.CREATERESOURCE_INVALIDLAYOUT,
        )
    if desc.alignment not in (0, DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT):
        raise _bad_desc(
            "RB2",
            "Alignment",
            desc.alignment,
            "0 or 65536",
            f"Buffer alignment ({desc.alignment}) is not one that buffers can have.",
            operation,
            MessageId.CREATERESOURCE_INVALIDALIGNMENT,
        )


def _check_buffer_flags(desc: ResourceDesc, operation: str) -> None:
    flags = int(desc.flags)

    def bad(rule: str, message: str, expected: str) -> Exception:
        return _bad_desc(
            rule,
            "Flags",
            ResourceFlags(flags),
            expected,
            message,
            operation,
            MessageId.CREATERESOURCE_INVALIDMISCFLAGS,
        )

    if flags & ~_KNOWN_RESOURCE_FLAGS:
        raise bad(
            "RB3",
            f"Resource flags ({spell(ResourceFlags(flags))}) have bits that are not known.",
            "members of D3D12_RESOURCE_FLAGS",
        )
    for flag, why in _REFUSED_BUFFER_FLAGS:
        if flags & flag:
            raise bad("RB3", f"A buffer has flag {spell(flag)}, {why}.", f"no {spell(flag)}")
    if flags & ResourceFlags.USE_TIGHT_ALIGNMENT:
        raise bad(
            "RB2",
            "A buffer has flag USE_TIGHT_ALIGNMENT, which the device does not support.",
            "no USE_TIGHT_ALIGNMENT: D3D12_FEATURE_D3D12_TIGHT_ALIGNMENT says NOT_SUPPORTED",
        )
    if flags & ResourceFlags.RAYTRACING_ACCELERATION_STRUCTURE:
        raise not_implemented(operation, "A ray-tracing acceleration structure")


def check_clear_value(value: object | None, operation: str) -> None:
    """RB4."""
    if value is not None:
        raise failure(
            "RES_DESC",
            "A buffer has an optimized clear value, which only textures may have.",
            operation=operation,
            rule=f"RB4: ID3D12Device::{operation}",
            message_id=MessageId.CREATERESOURCE_INVALIDCLEARVALUE,
            field="pOptimizedClearValue",
            given=type(value).__name__,
            expected="None",
        )


def check_heap_type_of_buffer(desc: ResourceDesc, kind: HeapType, operation: str) -> None:
    """RB5: UPLOAD and READBACK heaps hold no buffer that shaders write."""
    flags = int(desc.flags) & (ResourceFlags.ALLOW_UNORDERED_ACCESS | ResourceFlags.ALLOW_RENDER_TARGET)
    if flags and kind in (HeapType.UPLOAD, HeapType.READBACK):
        raise failure(
            "RES_DESC",
            f"A buffer in a heap of type {spell(kind)} has flag {spell(ResourceFlags(flags))}.",
            operation=operation,
            rule=f"RB5: D3D12_HEAP_TYPE_{spell(kind)}",
            message_id=MessageId.CREATERESOURCE_INVALIDMISCFLAGS,
            field="pDesc.Flags",
            given=ResourceFlags(desc.flags),
            expected="neither ALLOW_UNORDERED_ACCESS nor ALLOW_RENDER_TARGET",
        )


def allowed_states(kind: HeapType) -> int | None:
    """The states in which a buffer of an UPLOAD or READBACK heap stays for ever (RB6, ST6); else None."""
    if kind == HeapType.UPLOAD:
        return GENERIC_READ
    return COPY_DEST if kind == HeapType.READBACK else None


def check_initial_state(
    state: ResourceStates, desc: ResourceDesc, kind: HeapType | None, operation: str
) -> None:
    """RB6, RB7: the state in which a buffer may be created; ``kind`` is None for reserved resources."""

    def bad(rule: str, message: str, expected: str, message_id: MessageId) -> Exception:
        return failure(
            "RES_DESC",
            message,
            operation=operation,
            rule=f"{rule}: D3D12_RESOURCE_STATES",
            message_id=message_id,
            field="InitialResourceState",
            given=ResourceStates(bits),
            expected=expected,
        )

    bits = integer(state, "initial_state")
    text = spell(ResourceStates(bits))
    if bits & ~KNOWN_STATES:
        raise bad(
            "RB7",
            f"Initial state ({text}) has bits that are not known.",
            "members of D3D12_RESOURCE_STATES",
            MessageId.RESOURCE_BARRIER_RESERVED_BITS,
        )
    if not is_combination(bits):
        raise bad(
            "RB7",
            f"Initial state ({text}) joins a write state with another state.",
            "one write state alone, or read states only",
            MessageId.RESOURCE_BARRIER_INVALID_COMBINATION,
        )
    allowed = None if kind is None else allowed_states(kind)
    if allowed is not None and bits & ~allowed:
        assert kind is not None
        raise bad(
            "RB6",
            f"Initial state ({text}) is not one that a heap of type {spell(kind)} allows.",
            f"{spell(ResourceStates(allowed))} or COMMON",
            MessageId.RESOURCE_BARRIER_INVALID_HEAP,
        )
    missing = missing_flag(bits, int(desc.flags))
    if missing is not None:
        raise bad(
            "RB7",
            f"Initial state ({text}) needs flag {spell(missing)}, which the buffer lacks.",
            f"a state that flags ({spell(desc.flags)}) allow",
            MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
        )


_FLAGS_OF_STATES = tuple(
    (int(states), int(flag))
    for states, flag in (
        (ResourceStates.UNORDERED_ACCESS, ResourceFlags.ALLOW_UNORDERED_ACCESS),
        (ResourceStates.RENDER_TARGET, ResourceFlags.ALLOW_RENDER_TARGET),
        (ResourceStates.DEPTH_READ | ResourceStates.DEPTH_WRITE, ResourceFlags.ALLOW_DEPTH_STENCIL),
        (
            ResourceStates.RAYTRACING_ACCELERATION_STRUCTURE,
            ResourceFlags.RAYTRACING_ACCELERATION_STRUCTURE,
        ),
    )
)


def missing_flag(state: int, flags: int) -> ResourceFlags | None:
    """The resource flag that a state needs and the resource lacks (RB7, ST16)."""
    for states, flag in _FLAGS_OF_STATES:
        if state & states and not flags & flag:
            return ResourceFlags(flag)
    return None


def check_placement(desc: ResourceDesc, heap: HeapDesc, heap_name: str, offset: int) -> None:
    """PL1 to PL3: a buffer fits where it is placed."""
    operation = "CreatePlacedResource"
    offset = integer(offset, "heap_offset")
    if offset < 0 or offset % desc.alignment:
        raise failure(
            "HEAP_RANGE",
            f"Heap offset ({offset}) is not a multiple of the buffer's alignment ({desc.alignment}).",
            operation=operation,
            rule="PL1: ID3D12Device::CreatePlacedResource",
            message_id=MessageId.CREATERESOURCE_INVALIDALIGNMENT,
            field="HeapOffset",
            given=offset,
            expected=f"a multiple of {desc.alignment}",
            object=heap_name,
        )
    size, capacity = round_up(desc.width, TILE), round_up(heap.size_in_bytes, TILE)
    if offset + size > capacity:
        raise failure(
            "HEAP_RANGE",
            f"A buffer of {size} bytes at heap offset ({offset}) runs {offset + size - capacity} bytes past "
            f"the {capacity} bytes of {heap_name}.",
            operation=operation,
            rule="PL2: ID3D12Device::CreatePlacedResource",
            message_id=MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
            field="HeapOffset",
            given=offset,
            expected=f"at most {capacity - size}"
            if size <= capacity
            else f"a buffer of at most {capacity} bytes",
            object=heap_name,
        )
    if heap.flags & HeapFlags.DENY_BUFFERS:
        raise failure(
            "RES_DESC",
            "A buffer is placed in a heap that denies buffers.",
            operation=operation,
            rule="PL3: D3D12_HEAP_FLAGS",
            field="pHeap",
            given=HeapFlags(heap.flags),
            expected="a heap without DENY_BUFFERS",
            object=heap_name,
        )
