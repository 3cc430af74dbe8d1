"""Validation rules of heaps and buffers, checked by the create methods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...frozen import Frozen
from ..core.info_queue import not_implemented, spell, spell_object
from ..core.states import COPY_DEST, GENERIC_READ, KNOWN_STATES, is_combination
from ..types.arguments import instance, integer
from ..types.enums import (
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
from ..types.structs import (
    DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT,
    DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT,
    ClearValue,
    HeapDesc,
    HeapProperties,
    MipRegion,
    ResourceDesc,
    ResourceDesc1,
    SampleDesc,
)
from .rows import (
    HP1,
    HP2,
    HP3,
    HP4,
    HP5,
    HP6,
    HP7,
    HP8,
    HP9,
    PL1,
    PL2,
    PL3,
    RB1,
    RB2,
    RB3,
    RB4,
    RB5,
    RB6,
    RB7,
)

TILE = DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT


def round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _bits(flags: Iterable[Any]) -> int:
    bits = 0
    for member in flags:
        bits |= int(member)
    return bits


# --- heaps ---

_HEAP_TYPES = frozenset(int(each) for each in HeapType)
_PAGE_PROPERTIES = frozenset(int(each) for each in CpuPageProperty)
_MEMORY_POOLS = frozenset(int(each) for each in MemoryPool)
_KNOWN_HEAP_FLAGS = _bits(HeapFlags.__members__.values())
_DENY_ALL = int(HeapFlags.DENY_BUFFERS | HeapFlags.DENY_RT_DS_TEXTURES | HeapFlags.DENY_NON_RT_DS_TEXTURES)
_DISPLAY = int(HeapFlags.ALLOW_DISPLAY)
_NOT_EMULATED_HEAP_FLAGS = (
    HeapFlags.SHARED_CROSS_ADAPTER
    | HeapFlags.HARDWARE_PROTECTED
    | HeapFlags.ALLOW_WRITE_WATCH
    | HeapFlags.TOOLS_USE_MANUAL_WRITE_TRACKING
)
_HEAP_ALIGNMENTS = (0, DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT, DEFAULT_MSAA_RESOURCE_PLACEMENT_ALIGNMENT)


class _HeapMessages(Frozen):
    """CreateHeap and CreateCommittedResource report the same errors with different message ids."""

    type: MessageId
    page: MessageId
    pool: MessageId
    properties: MessageId
    unknown_flags: MessageId
    flags: MessageId


_HEAP_MESSAGES = _HeapMessages(
    MessageId.CREATEHEAP_UNRECOGNIZEDHEAPTYPE,
    MessageId.CREATEHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
    MessageId.CREATEHEAP_UNRECOGNIZEDMEMORYPOOL,
    MessageId.CREATEHEAP_INVALIDPROPERTIES,
    MessageId.CREATEHEAP_UNRECOGNIZEDMISCFLAGS,
    MessageId.CREATEHEAP_INVALIDMISCFLAGS,
)
_COMMITTED_MESSAGES = _HeapMessages(
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPTYPE,
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDMEMORYPOOL,
    MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPPROPERTIES,
    MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPMISCFLAGS,
    MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPMISCFLAGS,
)


def check_heap_desc(desc: HeapDesc | None) -> None:
    """HP1 to HP7 and HP9: the argument of CreateHeap."""
    operation = "CreateHeap"
    if desc is None:
        raise HP9.none()
    desc = instance(desc, HeapDesc, "desc")
    size, alignment, flags = desc.size_in_bytes, desc.alignment, int(desc.flags)

    if size <= 0:
        raise HP1.not_positive(given=size)
    if alignment not in _HEAP_ALIGNMENTS:
        raise HP2.alignment(given=alignment)
    _check_heap_properties(desc.properties, operation, "pDesc.Properties", _HEAP_MESSAGES)
    _check_known_heap_flags(flags, operation, "pDesc.Flags", _HEAP_MESSAGES)
    given = HeapFlags(flags)
    if flags & _DENY_ALL == _DENY_ALL:
        raise HP5.flags(given=given, operation="CreateHeap")
    if flags & _DISPLAY != 0:
        raise HP6.flags(given=given, operation="CreateHeap")


def check_committed_heap(properties: HeapProperties | None, heap_flags: HeapFlags) -> None:
    """HP3 to HP7 and HP9: the implicit heap of CreateCommittedResource."""
    operation, messages = "CreateCommittedResource", _COMMITTED_MESSAGES
    if properties is None:
        raise HP9.no_heap_properties(operation=operation, page=f"ID3D12Device::{operation}")
    properties = instance(properties, HeapProperties, "heap_properties")
    _check_heap_properties(properties, operation, "pHeapProperties", messages)
    flags = integer(heap_flags, "heap_flags")
    _check_known_heap_flags(flags, operation, "HeapFlags", messages)
    if flags & (_DENY_ALL | _DISPLAY) != 0:
        raise HP6.for_several_resources(
            given=HeapFlags(flags), message_id=messages.flags, operation="CreateCommittedResource"
        )


def _check_heap_properties(
    properties: HeapProperties, operation: str, path: str, messages: _HeapMessages
) -> None:
    """HP3, HP4, HP7: type, page property, pool and node masks are consistent."""
    kind, page, pool = properties.type, properties.cpu_page_property, properties.memory_pool_preference
    type_field, page_field, pool_field = (
        f"{path}.Type",
        f"{path}.CPUPageProperty",
        f"{path}.MemoryPoolPreference",
    )
    custom, no_page, no_pool = kind == HeapType.CUSTOM, page == 0, pool == 0
    video_back = custom and pool == MemoryPool.L1 and page == CpuPageProperty.WRITE_BACK
    wrong = messages.properties
    if kind not in _HEAP_TYPES:
        raise HP3.type(field=type_field, given=kind, message_id=messages.type, operation=operation)
    if page not in _PAGE_PROPERTIES:
        raise HP3.page(field=page_field, given=page, message_id=messages.page, operation=operation)
    if pool not in _MEMORY_POOLS:
        raise HP3.pool(field=pool_field, given=pool, message_id=messages.pool, operation=operation)
    if not custom and not no_page:
        raise HP3.not_page(
            field=page_field,
            given=page,
            expected=CpuPageProperty.UNKNOWN,
            message_id=wrong,
            operation=operation,
        )
    if not custom and not no_pool:
        raise HP3.not_pool(
            field=pool_field, given=pool, expected=MemoryPool.UNKNOWN, message_id=wrong, operation=operation
        )
    if custom and no_page:
        raise HP3.custom_page(field=page_field, given=page, message_id=wrong, operation=operation)
    if custom and no_pool:
        raise HP3.custom_pool(field=pool_field, given=pool, message_id=wrong, operation=operation)
    if video_back:
        raise HP4.page(field=page_field, given=page, message_id=wrong, operation=operation)
    check_node_mask(properties.creation_node_mask, operation, f"{path}.CreationNodeMask")
    check_node_mask(properties.visible_node_mask, operation, f"{path}.VisibleNodeMask")


def check_node_mask(mask: int, operation: str, field: str) -> None:
    """HP7: the device has one node."""
    known = integer(mask, field) in (0, 1)
    if not known:
        raise HP7.no_such_node(field=field, given=mask, operation=operation)


def _check_known_heap_flags(flags: int, operation: str, field: str, messages: _HeapMessages) -> None:
    unknown, given = flags & ~_KNOWN_HEAP_FLAGS != 0, HeapFlags(flags & 0xFFFF_FFFF_FFFF_FFFF)
    if unknown:
        raise HP5.unknown_bits(
            field=field, given=given, message_id=messages.unknown_flags, operation=operation
        )
    missing = given & _NOT_EMULATED_HEAP_FLAGS
    if missing:
        raise not_implemented(operation, f"Heap flag {spell(missing)}")


def full_properties(properties: HeapProperties) -> HeapProperties:
    """As GetDesc and GetHeapProperties return them: node masks are 1 (HP7)."""
    return replace(properties, creation_node_mask=1, visible_node_mask=1)


# The properties of each heap type on a discrete adapter (HP8).
_CUSTOM_PROPERTIES = {
    HeapType.DEFAULT: (CpuPageProperty.NOT_AVAILABLE, MemoryPool.L1),
    HeapType.UPLOAD: (CpuPageProperty.WRITE_COMBINE, MemoryPool.L0),
    HeapType.READBACK: (CpuPageProperty.WRITE_BACK, MemoryPool.L0),
    HeapType.GPU_UPLOAD: (CpuPageProperty.WRITE_COMBINE, MemoryPool.L1),
}


def custom_properties(node_mask: int, kind: HeapType) -> HeapProperties:
    """HP8: GetCustomHeapProperties."""
    operation, number = "GetCustomHeapProperties", integer(kind, "heap_type")
    check_node_mask(node_mask, operation, "nodeMask")
    if number == HeapType.CUSTOM:
        raise HP8.custom(given=kind)
    if number not in _CUSTOM_PROPERTIES:
        raise HP8.unknown(given=kind)
    page, pool = _CUSTOM_PROPERTIES[HeapType(number)]
    return HeapProperties(HeapType.CUSTOM, page, pool, 1, 1)


def is_cpu_visible(properties: HeapProperties) -> bool:
    """MP1: whether resources in such a heap may be mapped."""
    if properties.type == HeapType.CUSTOM:
        return properties.cpu_page_property != CpuPageProperty.NOT_AVAILABLE
    return properties.type != HeapType.DEFAULT


# --- buffers ---

_KNOWN_RESOURCE_FLAGS = _bits(ResourceFlags)
_TEXTURES = (ResourceDimension.TEXTURE1D, ResourceDimension.TEXTURE2D, ResourceDimension.TEXTURE3D)
_REFUSED_BUFFER_FLAGS = (
    # flag, why
    (ResourceFlags.ALLOW_SIMULTANEOUS_ACCESS, "which only textures may have: all buffers allow it anyway"),
    (ResourceFlags.ALLOW_DEPTH_STENCIL, "which only textures may have"),
    (ResourceFlags.DENY_SHADER_RESOURCE, "which goes with ALLOW_DEPTH_STENCIL only"),
    (ResourceFlags.ALLOW_CROSS_ADAPTER, "which needs a heap shared between adapters"),
    (ResourceFlags.VIDEO_DECODE_REFERENCE_ONLY, "which only textures may have"),
    (ResourceFlags.VIDEO_ENCODE_REFERENCE_ONLY, "which only textures may have"),
)


def check_resource_desc(desc: ResourceDesc | None, operation: str, is_runtime: bool) -> ResourceDesc:
    """RB1 to RB3: checks a buffer's desc; returns it as GetDesc does.

    ``is_runtime``: only what the Windows runtime rejects is an error, not everything the documents forbid.
    """
    if desc is None:
        raise RB1.none(operation=operation, page=f"ID3D12Device::{operation}")
    desc = instance(desc, ResourceDesc, "desc")
    if desc.dimension in _TEXTURES:
        raise not_implemented(operation, f"A resource of dimension {spell(desc.dimension)}")
    if isinstance(desc, ResourceDesc1):
        desc = _without_region(desc, operation)
    _check_buffer_shape(desc, operation)
    _check_buffer_flags(desc, operation, is_runtime)
    return replace(desc, alignment=DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT)


def _without_region(desc: ResourceDesc1, operation: str) -> ResourceDesc:
    """RB1: the desc, whose sampler feedback region must be empty."""
    region = desc.sampler_feedback_mip_region
    text = f"{{{region.width}, {region.height}, {region.depth}}}"
    if region != MipRegion():
        raise RB1.sampler_feedback_mip_region(given=text, operation=operation)
    names = ResourceDesc.__dataclass_fields__
    return ResourceDesc(*(getattr(desc, name) for name in names))


def _check_buffer_shape(desc: ResourceDesc, operation: str) -> None:
    dimension, width, height, depth = desc.dimension, desc.width, desc.height, desc.depth_or_array_size
    mips, format, samples = desc.mip_levels, desc.format, desc.sample_desc
    layout, alignment = desc.layout, desc.alignment
    sample_text = f"{{{samples.count}, {samples.quality}}}"
    if dimension != ResourceDimension.BUFFER:
        raise RB1.dimension(
            given=dimension,
            expected=ResourceDimension.BUFFER,
            page="D3D12_RESOURCE_DESC",
            operation=operation,
        )
    if width < 1:
        raise RB1.width(given=width, page="D3D12_RESOURCE_DESC", operation=operation)
    if height != 1:
        raise RB1.height(given=height, page="D3D12_RESOURCE_DESC", operation=operation)
    if depth != 1:
        raise RB1.depth_or_array_size(given=depth, page="D3D12_RESOURCE_DESC", operation=operation)
    if mips != 1:
        raise RB1.mip_levels(given=mips, page="D3D12_RESOURCE_DESC", operation=operation)
    if format != Format.UNKNOWN:
        raise RB1.format(
            given=format, expected=Format.UNKNOWN, page="D3D12_RESOURCE_DESC", operation=operation
        )
    if samples != SampleDesc(1, 0):
        raise RB1.sample_desc(given=sample_text, page="D3D12_RESOURCE_DESC", operation=operation)
    if layout != TextureLayout.ROW_MAJOR:
        raise RB1.layout(
            given=layout, expected=TextureLayout.ROW_MAJOR, page="D3D12_RESOURCE_DESC", operation=operation
        )
    if alignment not in (0, TILE):
        raise RB2.alignment(given=alignment, operation=operation)


def _check_buffer_flags(desc: ResourceDesc, operation: str, is_runtime: bool) -> None:
    flags = int(desc.flags)
    if not flags & ~int(ResourceFlags.ALLOW_UNORDERED_ACCESS | ResourceFlags.ALLOW_RENDER_TARGET):
        return
    page = "D3D12_RESOURCE_FLAGS"
    if flags & ~_KNOWN_RESOURCE_FLAGS:
        raise RB3.flags(given=desc.flags, operation=operation)
    for flag, why in _REFUSED_BUFFER_FLAGS:
        if is_runtime and flag == ResourceFlags.DENY_SHADER_RESOURCE:
            continue  # the runtime accepts this flag without ALLOW_DEPTH_STENCIL
        if flags & int(flag):
            name = spell(flag)
            raise RB3.flag(given=desc.flags, expected=f"no {name}", operation=operation, flag=name, why=why)
    if flags & int(ResourceFlags.USE_TIGHT_ALIGNMENT):
        raise RB2.tight(given=desc.flags, operation=operation, page=page)
    if flags & int(ResourceFlags.RAYTRACING_ACCELERATION_STRUCTURE):
        raise not_implemented(operation, "A ray-tracing acceleration structure")


def check_buffer(
    desc: ResourceDesc | None,
    initial_state: ResourceStates,
    clear_value: object | None,
    kind: HeapType | None,
    operation: str,
    is_runtime: bool,
) -> ResourceDesc:
    """RB1 to RB7: checks a buffer's desc for heap type ``kind`` (None: reserved).

    Returns it as GetDesc does.
    """
    desc = check_resource_desc(desc, operation, is_runtime)
    given = "D3D12_CLEAR_VALUE" if isinstance(clear_value, ClearValue) else spell_object(clear_value)
    if clear_value is not None:
        raise RB4.optimized_clear_value(given=given, page=f"ID3D12Device::{operation}", operation=operation)
    _check_flags_in_heap(desc, kind, operation)
    state = integer(initial_state, "initial_state")
    _check_initial_state(state, desc, kind, operation, is_runtime)
    return desc


def _check_flags_in_heap(desc: ResourceDesc, kind: HeapType | None, operation: str) -> None:
    written = int(desc.flags) & int(ResourceFlags.ALLOW_UNORDERED_ACCESS | ResourceFlags.ALLOW_RENDER_TARGET)
    broken = written != 0 and kind in (HeapType.UPLOAD, HeapType.READBACK)
    if broken:
        raise RB5.flags(given=desc.flags, operation=operation, heap_type=spell(kind))


def allowed_states(kind: HeapType | None) -> int | None:
    """The fixed states of a buffer in an UPLOAD or READBACK heap (RB6, ST6); else None."""
    if kind == HeapType.UPLOAD:
        return GENERIC_READ
    return COPY_DEST if kind == HeapType.READBACK else None


def _check_initial_state(
    state: int, desc: ResourceDesc, kind: HeapType | None, operation: str, is_runtime: bool
) -> None:
    """RB6, RB7.  The runtime requires no flag for an initial state that it ignores (RB8)."""
    fixed, missing = allowed_states(kind), missing_flag(state, int(desc.flags))
    if is_runtime and not state & ResourceStates.RAYTRACING_ACCELERATION_STRUCTURE:
        missing = None
    given = ResourceStates(state & 0xFFFF_FFFF_FFFF_FFFF)
    unknown = state & ~KNOWN_STATES != 0
    outside = fixed is not None and state & ~fixed != 0
    stays = f"{spell(ResourceStates(fixed or 0))} or COMMON"
    if unknown:
        raise RB7.unknown_bits(given=given, operation=operation)
    if not is_combination(state):
        raise RB7.write_and_more(given=given, operation=operation)
    if outside:
        raise RB6.not_of_the_heap(given=given, expected=stays, operation=operation, heap_type=spell(kind))
    if missing is not None:
        raise RB7.flag_missing(
            given=given,
            expected=f"a buffer with flag {spell(missing)}",
            operation=operation,
            missing=spell(missing),
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
    """PL1 to PL3: checks that a buffer fits at its offset in the heap."""
    offset = integer(offset, "heap_offset")
    size, capacity = round_up(desc.width, TILE), round_up(heap.size_in_bytes, TILE)
    misplaced = offset < 0 or offset % TILE != 0
    room = f"at most {capacity - size}" if size <= capacity else f"a buffer of at most {capacity} bytes"
    denied = int(heap.flags) & int(HeapFlags.DENY_BUFFERS) != 0
    takes = f"{desc.width} bytes" if size == desc.width else f"{desc.width} bytes, which takes {size},"
    if misplaced:
        raise PL1.misaligned(heap_name, given=offset)
    if offset + size > capacity:
        raise PL2.past_the_end(heap_name, given=offset, expected=room, size=takes, capacity=capacity)
    if denied:
        raise PL3.denies_buffers(heap_name, given=heap.flags)


def check_heap_given(heap: object | None) -> None:
    """PL3: CreatePlacedResource needs a heap."""
    if heap is None:
        raise PL3.none()
