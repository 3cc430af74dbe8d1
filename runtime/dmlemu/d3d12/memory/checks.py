"""Validation rules of heaps and buffers, checked by the create methods.

Most rules are rows of a table: whether the rule is violated, its id, the field and its value, the expected
value, the nearest D3D12_MESSAGE_ID, and the message (``{}`` is the value given).  The first violated rule
raises :class:`dmlemu.Error`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...diagnostics.declaration import Declaration
from ...frozen import Frozen
from ..core.info_queue import not_implemented, refusal, spell, spell_object
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
from .rows import HEAP_RANGE, RES_DESC

TILE = DEFAULT_RESOURCE_PLACEMENT_ALIGNMENT

_Row = tuple[bool, str, str, Any, Any, int, str]


def round_up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def _check(
    rows: Iterable[_Row], operation: str, page: str, check: Declaration = RES_DESC, object: Any = ""
) -> None:
    """Raises for the first violated rule; ``page`` is the page that documents the rules."""
    for broken, rule, field, given, expected, message_id, sentence in rows:
        if broken:
            raise refusal(
                check,
                sentence.replace("{}", spell(given), 1),
                operation=operation,
                rule=f"{rule}: {page}",
                message_id=message_id,
                field=field,
                given=given,
                expected=expected,
                object=object,
            )


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
    _require(desc, "HP9", operation, "pDesc", "a D3D12_HEAP_DESC", MessageId.CREATEHEAP_NULLDESC)
    desc = instance(desc, HeapDesc, "desc")
    size, alignment, flags = desc.size_in_bytes, desc.alignment, int(desc.flags)
    size_id, alignment_id = MessageId.CREATEHEAP_INVALIDSIZE, MessageId.CREATEHEAP_INVALIDALIGNMENT
    # fmt: off
    _check((
        (size <= 0, "HP1", "pDesc.SizeInBytes", size, "at least 1",
         size_id, "Heap size ({}) is not positive."),
        (alignment not in _HEAP_ALIGNMENTS, "HP2", "pDesc.Alignment", alignment, "0, 65536 or 4194304",
         alignment_id, "Heap alignment ({}) is not one that heaps can have."),
    ), operation, "D3D12_HEAP_DESC")
    # fmt: on
    _check_heap_properties(desc.properties, operation, "pDesc.Properties", _HEAP_MESSAGES)
    _check_known_heap_flags(flags, operation, "pDesc.Flags", _HEAP_MESSAGES)
    given, wrong = HeapFlags(flags), MessageId.CREATEHEAP_INVALIDMISCFLAGS
    # fmt: off
    _check((
        (flags & _DENY_ALL == _DENY_ALL, "HP5", "pDesc.Flags", given, "at most two of three DENY_* flags",
         wrong, "The heap denies buffers and both kinds of textures ({}): nothing could lie in it."),
        (flags & _DISPLAY != 0, "HP6", "pDesc.Flags", given, "no ALLOW_DISPLAY",
         wrong, "The heap has flags ({}), and only committed resources may have them."),
    ), operation, "D3D12_HEAP_FLAGS")
    # fmt: on


def check_committed_heap(properties: HeapProperties | None, heap_flags: HeapFlags) -> None:
    """HP3 to HP7 and HP9: the implicit heap of CreateCommittedResource."""
    operation, messages = "CreateCommittedResource", _COMMITTED_MESSAGES
    null = MessageId.CREATERESOURCEANDHEAP_NULLHEAPPROPERTIES
    _require(properties, "HP9", operation, "pHeapProperties", "a D3D12_HEAP_PROPERTIES", null)
    properties = instance(properties, HeapProperties, "heap_properties")
    _check_heap_properties(properties, operation, "pHeapProperties", messages)
    flags = integer(heap_flags, "heap_flags")
    _check_known_heap_flags(flags, operation, "HeapFlags", messages)
    # fmt: off
    _check((
        (flags & (_DENY_ALL | _DISPLAY) != 0, "HP6", "HeapFlags", HeapFlags(flags),
         "no DENY_*, ALLOW_ONLY_* or ALLOW_DISPLAY flag", messages.flags,
         "A committed buffer has heap flags ({}) that are for heaps of several resources."),
    ), operation, "D3D12_HEAP_FLAGS")
    # fmt: on


def _require(value: object, rule: str, operation: str, field: str, expected: str, message_id: int) -> None:
    """Checks that a pointer argument is not null."""
    row = (value is None, rule, field, value, expected, message_id, f"{field} is {{}}.")
    _check((row,), operation, f"ID3D12Device::{operation}")


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
    # fmt: off
    _check((
        (kind not in _HEAP_TYPES, "HP3", type_field, kind, "a member of D3D12_HEAP_TYPE",
         messages.type, "Heap type ({}) is not known."),
        (page not in _PAGE_PROPERTIES, "HP3", page_field, page, "a member of D3D12_CPU_PAGE_PROPERTY",
         messages.page, "CPU page property ({}) is not known."),
        (pool not in _MEMORY_POOLS, "HP3", pool_field, pool, "a member of D3D12_MEMORY_POOL",
         messages.pool, "Memory pool ({}) is not known."),
        (not custom and not no_page, "HP3", page_field, page, CpuPageProperty.UNKNOWN,
         wrong, "A heap has CPU page property ({}), and its type is not CUSTOM."),
        (not custom and not no_pool, "HP3", pool_field, pool, MemoryPool.UNKNOWN,
         wrong, "A heap has memory pool ({}), and its type is not CUSTOM."),
        (custom and no_page, "HP3", page_field, page, "NOT_AVAILABLE, WRITE_COMBINE or WRITE_BACK",
         wrong, "A CUSTOM heap has CPU page property {}."),
        (custom and no_pool, "HP3", pool_field, pool, "L0 or L1",
         wrong, "A CUSTOM heap has memory pool {}."),
        (video_back, "HP4", page_field, page, "NOT_AVAILABLE or WRITE_COMBINE",
         wrong, "A CUSTOM heap in video memory (L1) has the CPU page property {}."),
    ), operation, "D3D12_HEAP_PROPERTIES")
    # fmt: on
    check_node_mask(properties.creation_node_mask, operation, f"{path}.CreationNodeMask")
    check_node_mask(properties.visible_node_mask, operation, f"{path}.VisibleNodeMask")


def check_node_mask(mask: int, operation: str, field: str) -> None:
    """HP7: the device has one node."""
    known = integer(mask, field) in (0, 1)
    row = (not known, "HP7", field, mask, "0 or 1", 0, "Node mask ({}) names nodes that do not exist.")
    _check((row,), operation, "D3D12_HEAP_PROPERTIES")


def _check_known_heap_flags(flags: int, operation: str, field: str, messages: _HeapMessages) -> None:
    unknown, given = flags & ~_KNOWN_HEAP_FLAGS != 0, HeapFlags(flags & 0xFFFF_FFFF_FFFF_FFFF)
    sentence = "Heap flags ({}) have bits that are not known."
    expected = "members of D3D12_HEAP_FLAGS"
    row = (unknown, "HP5", field, given, expected, messages.unknown_flags, sentence)
    _check((row,), operation, "D3D12_HEAP_FLAGS")
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
    invalid = MessageId.GETCUSTOMHEAPPROPERTIES_INVALIDHEAPTYPE
    unknown = MessageId.GETCUSTOMHEAPPROPERTIES_UNRECOGNIZEDHEAPTYPE
    sentence = "Heap type ({}) has no fixed properties."
    expected = "DEFAULT, UPLOAD, READBACK or GPU_UPLOAD"
    rows = (
        (number == HeapType.CUSTOM, "HP8", "heapType", kind, expected, invalid, sentence),
        (number not in _CUSTOM_PROPERTIES, "HP8", "heapType", kind, expected, unknown, sentence),
    )
    _check(rows, operation, f"ID3D12Device::{operation}")
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
    _require(desc, "RB1", operation, "pDesc", "a desc", MessageId.CREATERESOURCE_INVALIDDESC)
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
    sentence = "A buffer has SamplerFeedbackMipRegion ({}), which only feedback textures have."
    row = (
        region != MipRegion(),
        "RB1",
        "pDesc.SamplerFeedbackMipRegion",
        text,
        "{0, 0, 0}",
        MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
        sentence,
    )
    _check((row,), operation, "D3D12_RESOURCE_DESC1")
    names = ResourceDesc.__dataclass_fields__
    return ResourceDesc(*(getattr(desc, name) for name in names))


def _check_buffer_shape(desc: ResourceDesc, operation: str) -> None:
    dimensions = MessageId.CREATERESOURCE_INVALIDDIMENSIONS
    dimension, width, height, depth = desc.dimension, desc.width, desc.height, desc.depth_or_array_size
    mips, format, samples = desc.mip_levels, desc.format, desc.sample_desc
    layout, alignment = desc.layout, desc.alignment
    sample_text = f"{{{samples.count}, {samples.quality}}}"
    # fmt: off
    _check((
        (dimension != ResourceDimension.BUFFER, "RB1", "pDesc.Dimension", dimension, ResourceDimension.BUFFER,
         dimensions, "Resource dimension ({}) is not known."),
        (width < 1, "RB1", "pDesc.Width", width, "at least 1",
         dimensions, "Buffer width ({}) is not positive."),
        (height != 1, "RB1", "pDesc.Height", height, 1,
         dimensions, "A buffer has Height ({}), and it is one row of bytes."),
        (depth != 1, "RB1", "pDesc.DepthOrArraySize", depth, 1,
         dimensions, "A buffer has DepthOrArraySize ({}), and it is one row of bytes."),
        (mips != 1, "RB1", "pDesc.MipLevels", mips, 1,
         MessageId.CREATERESOURCE_INVALIDMIPLEVELS, "A buffer has MipLevels ({})."),
        (format != Format.UNKNOWN, "RB1", "pDesc.Format", format, Format.UNKNOWN,
         MessageId.CREATERESOURCE_INVALIDFORMAT, "A buffer has Format ({}): only its views have formats."),
        (samples != SampleDesc(1, 0), "RB1", "pDesc.SampleDesc", sample_text, "{1, 0}",
         MessageId.CREATERESOURCE_INVALIDSAMPLEDESC, "A buffer has SampleDesc ({})."),
        (layout != TextureLayout.ROW_MAJOR, "RB1", "pDesc.Layout", layout, TextureLayout.ROW_MAJOR,
         MessageId.CREATERESOURCE_INVALIDLAYOUT, "A buffer has Layout ({})."),
        (alignment not in (0, TILE), "RB2", "pDesc.Alignment", alignment, "0 or 65536",
         MessageId.CREATERESOURCE_INVALIDALIGNMENT, "Buffers cannot have alignment ({})."),
    ), operation, "D3D12_RESOURCE_DESC")
    # fmt: on


def _check_buffer_flags(desc: ResourceDesc, operation: str, is_runtime: bool) -> None:
    flags, field, wrong = int(desc.flags), "pDesc.Flags", MessageId.CREATERESOURCE_INVALIDMISCFLAGS
    if not flags & ~int(ResourceFlags.ALLOW_UNORDERED_ACCESS | ResourceFlags.ALLOW_RENDER_TARGET):
        return
    unknown = flags & ~_KNOWN_RESOURCE_FLAGS != 0
    tight = flags & int(ResourceFlags.USE_TIGHT_ALIGNMENT) != 0
    rows: list[_Row] = [
        (
            unknown,
            "RB3",
            field,
            desc.flags,
            "members of D3D12_RESOURCE_FLAGS",
            wrong,
            "Resource flags ({}) are not known.",
        )
    ]
    for flag, why in _REFUSED_BUFFER_FLAGS:
        if is_runtime and flag == ResourceFlags.DENY_SHADER_RESOURCE:
            continue  # the runtime accepts this flag without ALLOW_DEPTH_STENCIL
        sentence = f"A buffer has flag {spell(flag)}, {why}."
        rows.append((flags & int(flag) != 0, "RB3", field, desc.flags, f"no {spell(flag)}", wrong, sentence))
    expected = "no USE_TIGHT_ALIGNMENT: D3D12_FEATURE_D3D12_TIGHT_ALIGNMENT says NOT_SUPPORTED"
    sentence = "A buffer has flag USE_TIGHT_ALIGNMENT, which the device does not support."
    rows.append((tight, "RB2", field, desc.flags, expected, wrong, sentence))
    _check(rows, operation, "D3D12_RESOURCE_FLAGS")
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
    wrong = MessageId.CREATERESOURCE_INVALIDCLEARVALUE
    sentence = "A buffer has an optimized clear value ({}), which only textures may have."
    row = (clear_value is not None, "RB4", "pOptimizedClearValue", given, None, wrong, sentence)
    _check((row,), operation, f"ID3D12Device::{operation}")
    _check_flags_in_heap(desc, kind, operation)
    state = integer(initial_state, "initial_state")
    _check_initial_state(state, desc, kind, operation, is_runtime)
    return desc


def _check_flags_in_heap(desc: ResourceDesc, kind: HeapType | None, operation: str) -> None:
    written = int(desc.flags) & int(ResourceFlags.ALLOW_UNORDERED_ACCESS | ResourceFlags.ALLOW_RENDER_TARGET)
    broken = written != 0 and kind in (HeapType.UPLOAD, HeapType.READBACK)
    expected = "neither ALLOW_UNORDERED_ACCESS nor ALLOW_RENDER_TARGET"
    sentence = f"A buffer in a heap of type {spell(kind)} has flags ({{}}), and shaders cannot write it."
    wrong = MessageId.CREATERESOURCE_INVALIDMISCFLAGS
    row = (broken, "RB5", "pDesc.Flags", desc.flags, expected, wrong, sentence)
    _check((row,), operation, "D3D12_HEAP_TYPE")


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
    field, given = "InitialResourceState", ResourceStates(state & 0xFFFF_FFFF_FFFF_FFFF)
    unknown = state & ~KNOWN_STATES != 0
    outside = fixed is not None and state & ~fixed != 0
    stays = f"{spell(ResourceStates(fixed or 0))} or COMMON"
    join = "Initial state ({}) joins a write state with another."
    lacking = f"Initial state ({{}}) needs flag {spell(missing)}."
    outer = f"A heap of type {spell(kind)} allows no initial state ({{}})."
    # fmt: off
    _check((
        (unknown, "RB7", field, given, "members of D3D12_RESOURCE_STATES",
         MessageId.RESOURCE_BARRIER_RESERVED_BITS, "Initial state ({}) has bits that are not known."),
        (not is_combination(state), "RB7", field, given, "one write state alone, or read states only",
         MessageId.RESOURCE_BARRIER_INVALID_COMBINATION, join),
        (outside, "RB6", field, given, stays,
         MessageId.RESOURCE_BARRIER_INVALID_HEAP, outer),
        (missing is not None, "RB7", field, given, f"a buffer with flag {spell(missing)}",
         MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS, lacking),
    ), operation, "D3D12_RESOURCE_STATES")
    # fmt: on


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
    operation, offset = "CreatePlacedResource", integer(offset, "heap_offset")
    size, capacity = round_up(desc.width, TILE), round_up(heap.size_in_bytes, TILE)
    misplaced = offset < 0 or offset % TILE != 0
    room = f"at most {capacity - size}" if size <= capacity else f"a buffer of at most {capacity} bytes"
    denied = int(heap.flags) & int(HeapFlags.DENY_BUFFERS) != 0
    takes = f"{desc.width} bytes" if size == desc.width else f"{desc.width} bytes, which takes {size},"
    outside = f"A buffer of {takes} at heap offset ({{}}) runs past the {capacity} bytes of {heap_name}."
    # fmt: off
    _check((
        (misplaced, "PL1", "HeapOffset", offset, "a multiple of 65536",
         MessageId.CREATERESOURCE_INVALIDALIGNMENT, "Heap offset ({}) is not a multiple of 65536."),
        (offset + size > capacity, "PL2", "HeapOffset", offset, room,
         MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE, outside),
        (denied, "PL3", "pHeap", heap.flags, "a heap without DENY_BUFFERS",
         0, "A buffer is placed in a heap that denies buffers ({})."),
    ), operation, f"ID3D12Device::{operation}", HEAP_RANGE, heap_name)
    # fmt: on


def check_heap_given(heap: object | None) -> None:
    """PL3: CreatePlacedResource needs a heap."""
    _require(heap, "PL3", "CreatePlacedResource", "pHeap", "a heap", 0)
