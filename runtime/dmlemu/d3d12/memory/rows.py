"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import RESOURCES, STATES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import HResult, Severity, Strictness
from ...diagnostics.rows import OUT_OF_MEMORY
from ...diagnostics.rule import Breach, Rule

RES_DESC = RESOURCES.refused(
    "RES_DESC",
    "the description of a heap or a buffer is invalid",
    When.CREATE,
    "Nothing is created: a buffer is one row of bytes (Height, DepthOrArraySize, MipLevels and "
    "SampleDesc.Count 1, Format UNKNOWN, Layout ROW_MAJOR), and a heap's type, page property and pool must "
    "fit each other.",
    "Start from ResourceDesc.buffer(size, flags) and HeapProperties(type), and change only what you need.",
    message_ids=(
        MessageId.CREATEHEAP_UNRECOGNIZEDHEAPTYPE,
        MessageId.CREATEHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
        MessageId.CREATEHEAP_UNRECOGNIZEDMEMORYPOOL,
        MessageId.CREATEHEAP_INVALIDPROPERTIES,
        MessageId.CREATEHEAP_UNRECOGNIZEDMISCFLAGS,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPTYPE,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDMEMORYPOOL,
        MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPPROPERTIES,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPMISCFLAGS,
        MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPMISCFLAGS,
    ),
    rule="D3D12_RESOURCE_DESC, D3D12_HEAP_DESC",
)

HEAP_RANGE = RESOURCES.refused(
    "HEAP_RANGE",
    "a buffer is placed where its heap has no room for it",
    When.CREATE,
    "Nothing is created. A placed buffer starts at a multiple of 65536 and takes its width rounded up to 65536.",
    "Add up the sizes that GetResourceAllocationInfo returns, and create a heap of that size.",
    rule="ID3D12Device::CreatePlacedResource",
)

TILE_MAPPING = RESOURCES.refused(
    "TILE_MAPPING",
    "the regions and ranges of UpdateTileMappings do not fit the buffer, the heap or each other",
    When.CALL,
    "On Windows the device is removed at once; here nothing is mapped.",
    "Count in tiles of 65536 bytes, and let the heap ranges hold as many tiles as the regions.",
    rule="ID3D12CommandQueue::UpdateTileMappings",
)

MAP_HEAP = RESOURCES.refused(
    "MAP_HEAP",
    "Map or Unmap is called on a buffer that the CPU cannot see",
    When.CALL,
    "A DEFAULT heap is in GPU memory, which the CPU cannot address.",
    "Write into an UPLOAD buffer and copy it into this one, or copy this one into a READBACK buffer and "
    "read that after a fence.",
    message_ids=(
        MessageId.MAP_INVALIDHEAP,
        MessageId.UNMAP_INVALIDHEAP,
    ),
    rule="ID3D12Resource::Map",
)

MAP_RANGE = RESOURCES.refused(
    "MAP_RANGE",
    "the range or the subresource of Map or Unmap does not exist",
    When.CALL,
    "The call fails. A range names the bytes that the CPU reads or has written, counted from the buffer's "
    "start.",
    "Give byte offsets inside the buffer, or no range: that means all of it.",
    level=Strictness.DEBUG,
    message_ids=(
        MessageId.MAP_INVALIDSUBRESOURCE,
        MessageId.UNMAP_INVALIDSUBRESOURCE,
        MessageId.MAP_INVALIDRANGE,
        MessageId.UNMAP_INVALIDRANGE,
    ),
    rule="ID3D12Resource::Map",
)

UNMAP_NOT_MAPPED = RESOURCES.refused(
    "UNMAP_NOT_MAPPED",
    "Unmap is called more often than Map, or mapped memory is used after Unmap",
    When.CALL,
    "The pointer returned by Map is no longer valid: a write through it may go anywhere.",
    "Count Unmap as often as Map: 'with buffer.map() as memory:' does it. UPLOAD buffers may stay mapped "
    "while the GPU reads them.",
    level=Strictness.DEBUG,
    rule="ID3D12Resource::Unmap",
)

QUERY = RESOURCES.refused(
    "QUERY",
    "a query heap or a timestamp command has arguments that do not fit",
    When.RECORD,
    "The command is not recorded. A timestamp query has no BeginQuery, and its slot must lie in a heap "
    "that fits the list's type.",
    "Use EndQuery with type TIMESTAMP, and resolve to a multiple of 8.",
    rule="ID3D12GraphicsCommandList::ResolveQueryData",
)

QUERY_NOT_ENDED = RESOURCES.reported(
    "QUERY_NOT_ENDED",
    "timestamps are resolved that no command has written",
    Severity.WARNING,
    When.SUBMIT,
    "On a card such a result is undefined; here it is 0.",
    "Resolve only queries that EndQuery has ended, in an earlier list or before in the same one.",
    rule="QY5: ID3D12GraphicsCommandList::ResolveQueryData",
    message_ids=(MessageId.RESOLVE_QUERY_INVALID_QUERY_STATE,),
    level=Strictness.DEBUG,
)

RES_STATE_IGNORED = RESOURCES.reported(
    "RES_STATE_IGNORED",
    "a buffer is created in another state than COMMON",
    Severity.WARNING,
    When.CREATE,
    "Buffers start COMMON whatever the initial state says, and the first use promotes them to the state "
    "that it needs.",
    "Create buffers of DEFAULT heaps in D3D12_RESOURCE_STATE_COMMON.",
    rule="RB8: ID3D12Device::CreateCommittedResource",
    message_ids=(MessageId.CREATERESOURCE_STATE_IGNORED,),
    level=Strictness.DEBUG,
)

UNMAP_RANGE = RESOURCES.reported(
    "UNMAP_RANGE",
    "the written range of Unmap leaves out bytes that the program has written, or is not empty on a "
    "READBACK buffer",
    Severity.WARNING,
    When.CALL,
    "Where caches are not coherent, only the range passed to Unmap becomes visible to the GPU; capture "
    "tools record nothing else. The CPU has no reason to write into a READBACK buffer.",
    "Pass the range that was written; no range means the whole buffer, an empty one means nothing.",
    rule="MP5: ID3D12Resource::Unmap",
    message_ids=(MessageId.UNMAP_RANGE_NOT_EMPTY,),
    level=Strictness.DEBUG,
)

STATE_COMBO = STATES.refused(
    "STATE_COMBO",
    "a barrier names a state that cannot exist, or that the buffer cannot have",
    When.RECORD,
    "A write state cannot be combined with others, UNORDERED_ACCESS needs a buffer created with "
    "ALLOW_UNORDERED_ACCESS, and buffers of UPLOAD and READBACK heaps never change their state.",
    "Name one write state, or any set of read states, that the buffer's flags and heap allow.",
    level=Strictness.DEBUG,
    rule="Using Resource Barriers to Synchronize Resource States in Direct3D 12",
)


# --- rules ---


class HP1(Rule):
    says = (
        "The size is positive; the capacity is rounded up to 64 KiB, GetDesc returns the size as requested."
    )
    call = "D3D12_HEAP_DESC"
    operation = "CreateHeap"

    not_positive = Breach(
        RES_DESC,
        "Heap size ({given}) is not positive.",
        field="pDesc.SizeInBytes",
        expected="at least 1",
        message_id=MessageId.CREATEHEAP_INVALIDSIZE,
    )


class HP2(Rule):
    says = "Alignment 0, 65536 or 4194304."
    call = "D3D12_HEAP_DESC"
    operation = "CreateHeap"

    alignment = Breach(
        RES_DESC,
        "Heap alignment ({given}) is not one that heaps can have.",
        field="pDesc.Alignment",
        expected="0, 65536 or 4194304",
        message_id=MessageId.CREATEHEAP_INVALIDALIGNMENT,
    )


class HP3(Rule):
    says = "A known type; page property and pool UNKNOWN, but known for CUSTOM."
    call = "D3D12_HEAP_PROPERTIES"

    type = Breach(
        RES_DESC,
        "Heap type ({given}) is not known.",
        expected="a member of D3D12_HEAP_TYPE",
    )
    page = Breach(
        RES_DESC,
        "CPU page property ({given}) is not known.",
        expected="a member of D3D12_CPU_PAGE_PROPERTY",
    )
    pool = Breach(
        RES_DESC,
        "Memory pool ({given}) is not known.",
        expected="a member of D3D12_MEMORY_POOL",
    )
    not_page = Breach(
        RES_DESC,
        "A heap has CPU page property ({given}), and its type is not CUSTOM.",
    )
    not_pool = Breach(
        RES_DESC,
        "A heap has memory pool ({given}), and its type is not CUSTOM.",
    )
    custom_page = Breach(
        RES_DESC,
        "A CUSTOM heap has CPU page property {given}.",
        expected="NOT_AVAILABLE, WRITE_COMBINE or WRITE_BACK",
    )
    custom_pool = Breach(
        RES_DESC,
        "A CUSTOM heap has memory pool {given}.",
        expected="L0 or L1",
    )


class HP4(Rule):
    says = "CUSTOM heaps in video memory are never WRITE_BACK."
    call = "D3D12_HEAP_PROPERTIES"

    page = Breach(
        RES_DESC,
        "A CUSTOM heap in video memory (L1) has the CPU page property {given}.",
        expected="NOT_AVAILABLE or WRITE_COMBINE",
    )


class HP5(Rule):
    says = "Known flags; not everything denied. Tier 2: categories may mix."
    call = "D3D12_HEAP_FLAGS"

    flags = Breach(
        RES_DESC,
        "The heap denies buffers and both kinds of textures ({given}): nothing could lie in it.",
        field="pDesc.Flags",
        expected="at most two of three DENY_* flags",
        message_id=MessageId.CREATEHEAP_INVALIDMISCFLAGS,
    )
    unknown_bits = Breach(
        RES_DESC,
        "Heap flags ({given}) have bits that are not known.",
        expected="members of D3D12_HEAP_FLAGS",
    )


class HP6(Rule):
    says = "No ALLOW_DISPLAY on a heap, no DENY_* on a committed resource."
    call = "D3D12_HEAP_FLAGS"

    flags = Breach(
        RES_DESC,
        "The heap has flags ({given}), and only committed resources may have them.",
        field="pDesc.Flags",
        expected="no ALLOW_DISPLAY",
        message_id=MessageId.CREATEHEAP_INVALIDMISCFLAGS,
    )
    for_several_resources = Breach(
        RES_DESC,
        "A committed buffer has heap flags ({given}) that are for heaps of several resources.",
        field="HeapFlags",
        expected="no DENY_*, ALLOW_ONLY_* or ALLOW_DISPLAY flag",
    )


class HP7(Rule):
    says = "Node masks 0 or 1; reported as 1."
    call = "D3D12_HEAP_PROPERTIES"

    no_such_node = Breach(
        RES_DESC,
        "Node mask ({given}) names nodes that do not exist.",
        expected="0 or 1",
    )


class HP8(Rule):
    says = "GetCustomHeapProperties returns the properties that a heap type stands for."
    call = "ID3D12Device::GetCustomHeapProperties"

    custom = Breach(
        RES_DESC,
        "Heap type ({given}) has no fixed properties.",
        field="heapType",
        expected="DEFAULT, UPLOAD, READBACK or GPU_UPLOAD",
        message_id=MessageId.GETCUSTOMHEAPPROPERTIES_INVALIDHEAPTYPE,
    )
    unknown = Breach(
        RES_DESC,
        "Heap type ({given}) has no fixed properties.",
        field="heapType",
        expected="DEFAULT, UPLOAD, READBACK or GPU_UPLOAD",
        message_id=MessageId.GETCUSTOMHEAPPROPERTIES_UNRECOGNIZEDHEAPTYPE,
    )


class HP9(Rule):
    says = "A description is needed."
    call = "ID3D12Device::CreateHeap"

    none = Breach(
        RES_DESC,
        "{field} is {given}.",
        field="pDesc",
        given=None,
        expected="a D3D12_HEAP_DESC",
        message_id=MessageId.CREATEHEAP_NULLDESC,
    )
    no_heap_properties = Breach(
        RES_DESC,
        "{field} is {given}.",
        field="pHeapProperties",
        given=None,
        expected="a D3D12_HEAP_PROPERTIES",
        message_id=MessageId.CREATERESOURCEANDHEAP_NULLHEAPPROPERTIES,
    )


class HP10(Rule):
    says = "Memory is zero unless CREATE_NOT_ZEROED, which is poison (0xCB) at strictness `strict`."


class RB1(Rule):
    says = "One row of bytes: Height, DepthOrArraySize, MipLevels 1, Format UNKNOWN, one sample, ROW_MAJOR."
    call = "D3D12_RESOURCE_DESC1"

    sampler_feedback_mip_region = Breach(
        RES_DESC,
        "A buffer has SamplerFeedbackMipRegion ({given}), which only feedback textures have.",
        field="pDesc.SamplerFeedbackMipRegion",
        expected="{0, 0, 0}",
        message_id=MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
    )
    dimension = Breach(
        RES_DESC,
        "Resource dimension ({given}) is not known.",
        field="pDesc.Dimension",
        message_id=MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
    )
    width = Breach(
        RES_DESC,
        "Buffer width ({given}) is not positive.",
        field="pDesc.Width",
        expected="at least 1",
        message_id=MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
    )
    height = Breach(
        RES_DESC,
        "A buffer has Height ({given}), and it is one row of bytes.",
        field="pDesc.Height",
        expected=1,
        message_id=MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
    )
    depth_or_array_size = Breach(
        RES_DESC,
        "A buffer has DepthOrArraySize ({given}), and it is one row of bytes.",
        field="pDesc.DepthOrArraySize",
        expected=1,
        message_id=MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
    )
    mip_levels = Breach(
        RES_DESC,
        "A buffer has MipLevels ({given}).",
        field="pDesc.MipLevels",
        expected=1,
        message_id=MessageId.CREATERESOURCE_INVALIDMIPLEVELS,
    )
    format = Breach(
        RES_DESC,
        "A buffer has Format ({given}): only its views have formats.",
        field="pDesc.Format",
        message_id=MessageId.CREATERESOURCE_INVALIDFORMAT,
    )
    sample_desc = Breach(
        RES_DESC,
        "A buffer has SampleDesc ({given}).",
        field="pDesc.SampleDesc",
        expected="{1, 0}",
        message_id=MessageId.CREATERESOURCE_INVALIDSAMPLEDESC,
    )
    layout = Breach(
        RES_DESC,
        "A buffer has Layout ({given}).",
        field="pDesc.Layout",
        message_id=MessageId.CREATERESOURCE_INVALIDLAYOUT,
    )
    none = Breach(
        RES_DESC,
        "{field} is {given}.",
        field="pDesc",
        given=None,
        expected="a desc",
        message_id=MessageId.CREATERESOURCE_INVALIDDESC,
    )


class RB2(Rule):
    says = "Alignment 0 or 65536, reported as 65536. Tight alignment is not supported."
    call = "D3D12_RESOURCE_DESC"

    alignment = Breach(
        RES_DESC,
        "Buffers cannot have alignment ({given}).",
        field="pDesc.Alignment",
        expected="0 or 65536",
        message_id=MessageId.CREATERESOURCE_INVALIDALIGNMENT,
    )

    tight = Breach(
        RES_DESC,
        "A buffer has flag USE_TIGHT_ALIGNMENT, which the device does not support.",
        field="pDesc.Flags",
        expected="no USE_TIGHT_ALIGNMENT: D3D12_FEATURE_D3D12_TIGHT_ALIGNMENT says NOT_SUPPORTED",
        message_id=MessageId.CREATERESOURCE_INVALIDMISCFLAGS,
    )


class RB3(Rule):
    says = (
        "No flags that are for textures. The runtime of Windows takes DENY_SHADER_RESOURCE alone, and so does "
        "strictness `runtime`; the documents, and the other levels, want it with ALLOW_DEPTH_STENCIL."
    )
    call = "D3D12_RESOURCE_FLAGS"

    flag = Breach(
        RES_DESC,
        "A buffer has flag {flag}, {why}.",
        field="pDesc.Flags",
        message_id=MessageId.CREATERESOURCE_INVALIDMISCFLAGS,
    )
    flags = Breach(
        RES_DESC,
        "Resource flags ({given}) are not known.",
        field="pDesc.Flags",
        expected="members of D3D12_RESOURCE_FLAGS",
        message_id=MessageId.CREATERESOURCE_INVALIDMISCFLAGS,
    )


class RB4(Rule):
    says = "No optimized clear value."

    optimized_clear_value = Breach(
        RES_DESC,
        "A buffer has an optimized clear value ({given}), which only textures may have.",
        field="pOptimizedClearValue",
        expected=None,
        message_id=MessageId.CREATERESOURCE_INVALIDCLEARVALUE,
    )


class RB5(Rule):
    says = "UPLOAD and READBACK heaps hold no buffer that shaders write."
    call = "D3D12_HEAP_TYPE"

    flags = Breach(
        RES_DESC,
        "A buffer in a heap of type {heap_type} has flags ({given}), and shaders cannot write it.",
        field="pDesc.Flags",
        expected="neither ALLOW_UNORDERED_ACCESS nor ALLOW_RENDER_TARGET",
        message_id=MessageId.CREATERESOURCE_INVALIDMISCFLAGS,
    )


class RB6(Rule):
    says = (
        "Initial state in an UPLOAD heap: GENERIC_READ, a part of it or COMMON; in a READBACK heap: COPY_DEST "
        "or COMMON."
    )
    call = "D3D12_RESOURCE_STATES"

    not_of_the_heap = Breach(
        RES_DESC,
        "A heap of type {heap_type} allows no initial state ({given}).",
        field="InitialResourceState",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_HEAP,
    )


class RB7(Rule):
    says = (
        "A state is one write state or read states only, and the buffer has the flag that it needs. At "
        "strictness `runtime` no flag is needed for an initial state, which is ignored (RB8)."
    )
    call = "D3D12_RESOURCE_STATES"

    unknown_bits = Breach(
        RES_DESC,
        "Initial state ({given}) has bits that are not known.",
        field="InitialResourceState",
        expected="members of D3D12_RESOURCE_STATES",
        message_id=MessageId.RESOURCE_BARRIER_RESERVED_BITS,
    )
    write_and_more = Breach(
        RES_DESC,
        "Initial state ({given}) joins a write state with another.",
        field="InitialResourceState",
        expected="one write state alone, or read states only",
        message_id=MessageId.RESOURCE_BARRIER_INVALID_COMBINATION,
    )
    flag_missing = Breach(
        RES_DESC,
        "Initial state ({given}) needs flag {missing}.",
        field="InitialResourceState",
        message_id=MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
    )

    flag_lacking = Breach(
        STATE_COMBO,
        "State ({given}) needs flag {missing}, which {object} lacks.",
        message_id=MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
    )


class RB8(Rule):
    says = "The initial state of a buffer is ignored: it starts COMMON (a warning, as on Windows)."

    ignored = Breach(
        RES_STATE_IGNORED,
        "Initial state ({given}) is ignored: buffers start COMMON.",
        field="InitialResourceState",
        message_id=MessageId.CREATERESOURCE_STATE_IGNORED,
    )


class RB9(Rule):
    says = "A failed creation leaves nothing behind."


class RB10(Rule):
    says = "E_OUTOFMEMORY above the adapter's memory or the address space."


class RB11(Rule):
    says = "A committed buffer has a heap of its own, rounded up to 64 KiB."


class RB12(Rule):
    says = (
        "In an UPLOAD or READBACK heap a buffer has at most 0xFFFF0000 bytes. A larger one is created; the "
        "debug layer warns (`RES_DESC`)."
    )
    call = "D3D12_HEAP_TYPE"

    width = Breach(
        RES_DESC,
        "A buffer in a heap of type {heap_type} has width ({given}).",
        field="pDesc.Width",
        message_id=MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
    )


class PL1(Rule):
    says = "The heap offset is a multiple of 65536."
    call = "ID3D12Device::CreatePlacedResource"

    misaligned = Breach(
        HEAP_RANGE,
        "Heap offset ({given}) is not a multiple of 65536.",
        field="HeapOffset",
        expected="a multiple of 65536",
        message_id=MessageId.CREATERESOURCE_INVALIDALIGNMENT,
    )


class PL2(Rule):
    says = "The buffer fits the heap's capacity."
    call = "ID3D12Device::CreatePlacedResource"

    past_the_end = Breach(
        HEAP_RANGE,
        "A buffer of {size} at heap offset ({given}) runs past the {capacity} bytes of {object}.",
        field="HeapOffset",
        message_id=MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
    )


class PL3(Rule):
    says = "The heap takes buffers; its type's rules hold."
    call = "ID3D12Device::CreatePlacedResource"

    denies_buffers = Breach(
        HEAP_RANGE,
        "A buffer is placed in a heap that denies buffers ({given}).",
        field="pHeap",
        expected="a heap without DENY_BUFFERS",
    )
    none = Breach(
        RES_DESC,
        "{field} is {given}.",
        field="pHeap",
        given=None,
        expected="a heap",
    )


class PL4(Rule):
    says = (
        "Placed buffers may overlap: they are the same bytes. Used in one ExecuteCommandLists call without an "
        "aliasing barrier this gives an INFO message (`HEAP_OVERLAP`); a conflict is reported (`HAZARD_ALIAS`)."
    )


class PL5(Rule):
    says = (
        "A placed buffer keeps its heap alive, so that the heap may be released at any time; residency is the "
        "heap's."
    )


class VA1(Rule):
    says = "Addresses are multiples of 65536, never change, and are the same in every run."


class AI1(Rule):
    says = (
        "GetResourceAllocationInfo lays resources out contiguously; 2^64 - 1 for an invalid one, which is "
        "reported."
    )


class TX1(Rule):
    says = (
        "It gives the size of a TEXTURE2D, too: its texels, rounded up to 64 KiB, to 4 KiB where a small "
        "texture asks for it, or to 4 MiB with several samples. On a card it may be more."
    )
    call = "D3D12_RESOURCE_DESC"

    field = Breach(
        RES_DESC,
        "A texture has {member} ({given}).",
    )


class CF1(Rule):
    says = "GetCopyableFootprints of a buffer: one row; all ones for wrong arguments."
    call = "ID3D12Device::GetCopyableFootprints"

    first_subresource = Breach(
        RES_DESC,
        "Subresources {given} do not exist: a buffer has one.",
        field="FirstSubresource",
        expected="[0, 1)",
        message_id=MessageId.GETCOPYABLEFOOTPRINTS_UNSUPPORTED_BUFFER_WIDTH,
    )
    width = Breach(
        RES_DESC,
        "Buffer width ({given}) does not fit a footprint.",
        field="pResourceDesc.Width",
        message_id=MessageId.GETCOPYABLEFOOTPRINTS_UNSUPPORTED_BUFFER_WIDTH,
    )


class RS1(Rule):
    says = "Tiled resources tier 2; a reserved buffer follows RB1."


class RS2(Rule):
    says = "It has an address at once, and all tiles are NULL."


class RS3(Rule):
    says = "No Map, no GetHeapProperties."
    call = "ID3D12Resource::GetHeapProperties"

    no_heap = Breach(
        RES_DESC,
        "A reserved resource has no heap whose properties could be returned.",
        field="this",
        given="a reserved resource",
        expected="a committed or placed resource",
        message_id=MessageId.GETHEAPPROPERTIES_INVALIDRESOURCE,
    )

    not_visible = Breach(
        MAP_HEAP,
        "{operation} is called on {object}, which is {given}: the CPU cannot see it.",
        field="this",
        expected="a heap of type UPLOAD, READBACK or GPU_UPLOAD, or a CUSTOM one that the CPU can see",
    )


class RS4(Rule):
    says = "UpdateTileMappings counts tiles of 64 KiB in one row, of a reserved buffer."
    call = "ID3D12CommandQueue::UpdateTileMappings"

    resource = Breach(
        TILE_MAPPING,
        "No resource is given.",
        field="pResource",
        given=None,
        expected="a reserved resource",
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    mapping = Breach(
        TILE_MAPPING,
        "{object} is a {given} resource: it has no tiles.",
        field="pResource",
        expected="reserved",
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    not_in_the_row = Breach(
        TILE_MAPPING,
        "A coordinate leaves the one row of tiles that a buffer has.",
        expected="Y, Z and Subresource 0",
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    box_too_small = Breach(
        TILE_MAPPING,
        "The box of a region does not hold its NumTiles ({count}).",
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    box_leaves_the_row = Breach(
        TILE_MAPPING,
        "The box of a region leaves the one row of tiles that a buffer has.",
        expected="1 x 1",
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    past_the_end = Breach(
        TILE_MAPPING,
        "Tiles {given} do not lie in {object}, which has {tiles} of 65536 bytes.",
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )


class RS5(Rule):
    says = (
        "Regions and ranges with all their defaults; their sums are equal; they fit resource and heap. At "
        "strictness `runtime` ranges with more tiles than the regions map what the regions need, as on Windows."
    )
    call = "ID3D12CommandQueue::UpdateTileMappings"
    hresult = HResult.E_OUTOFMEMORY

    of_memory = Breach(
        OUT_OF_MEMORY,
        "",
        hint="Map tiles that lie side by side in the heap in one range, or release resources.",
    )

    flags = Breach(
        TILE_MAPPING,
        "Flags ({given}) are not known.",
        field="Flags",
        expected="NONE or NO_HAZARD",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    sums_differ = Breach(
        TILE_MAPPING,
        "The heap ranges hold {range_tiles} tiles and the resource regions {region_tiles}.",
        field="pRangeTileCounts",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    resource_region_sizes = Breach(
        TILE_MAPPING,
        "There are {starts} region starts and {sizes} region sizes.",
        field="pResourceRegionSizes",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    num_resource_regions = Breach(
        TILE_MAPPING,
        "There are no regions.",
        field="NumResourceRegions",
        given=0,
        expected="at least 1",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    num_ranges = Breach(
        TILE_MAPPING,
        "The arrays of heap ranges differ in length.",
        field="NumRanges",
        expected="equal lengths",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    resource_region_start_coordinates = Breach(
        TILE_MAPPING,
        "There are {sizes} region sizes and no region starts.",
        field="pResourceRegionStartCoordinates",
        given=None,
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    mapping = Breach(
        TILE_MAPPING,
        "Range flags ({given}) are not allowed.",
        expected="NONE, NULL, SKIP or REUSE_SINGLE_TILE",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    no_offsets = Breach(
        TILE_MAPPING,
        "No heap offsets are given.",
        field="pHeapRangeStartOffsets",
        given=None,
        expected="an offset per range",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    negative_count = Breach(
        TILE_MAPPING,
        "The number of tiles of a range ({given}) is negative.",
        expected="at least 0",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    no_heap = Breach(
        TILE_MAPPING,
        "No heap is given, and a range maps tiles of one.",
        field="pHeap",
        given=None,
        expected="a heap, or only ranges with flag NULL or SKIP",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )
    past_the_heap = Breach(
        TILE_MAPPING,
        "Tiles {given} do not lie in {object} of {tiles} tiles.",
        hresult=HResult.E_INVALIDARG,
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )


class RS6(Rule):
    says = "Mapping is queue work, in order with lists."


class RS7(Rule):
    says = "Several buffers may map the same tile; the heap takes buffers."
    call = "ID3D12CommandQueue::UpdateTileMappings"

    denies_buffers = Breach(
        TILE_MAPPING,
        "{object} denies buffers.",
        field="pHeap",
        expected="a heap without DENY_BUFFERS",
        message_id=MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    )


class RS8(Rule):
    says = "NULL tiles read 0 and drop writes; a released heap stays mapped."


class RS9(Rule):
    says = "GetResourceTiling: one subresource, a row of tiles; nothing for a buffer that is not reserved."


class MP1(Rule):
    says = "Only heaps that the CPU sees."

    not_visible = Breach(
        MAP_HEAP,
        "{operation} is called on {object}, which is {given}: the CPU cannot see it.",
        field="this",
        expected="a heap of type UPLOAD, READBACK or GPU_UPLOAD, or a CUSTOM one that the CPU can see",
    )


class MP2(Rule):
    says = "Subresource 0."

    subresource = Breach(
        MAP_RANGE,
        "Subresource ({given}) does not exist: a buffer has one.",
        field="Subresource",
        expected="0",
    )


class MP3(Rule):
    says = "A null pointer for the data is legal."
    untested = "Python has no out pointers"


class MP4(Rule):
    says = "The memory starts at byte 0; maps are counted; Unmap without Map is wrong."
    call = "ID3D12Resource::Unmap"

    not_mapped = Breach(
        UNMAP_NOT_MAPPED,
        "The mapped memory of {object} is used after Unmap.",
    )
    unmapped_twice = Breach(
        UNMAP_NOT_MAPPED,
        "Unmap is called on {object}, which is not mapped.",
        message_id=MessageId.RESOURCE_UNMAP_NOTMAPPED,
    )


class MP5(Rule):
    says = (
        "Ranges lie in the buffer; empty ones say nothing is read or written; a written READBACK buffer, and a "
        "written range that leaves out what was written through the map, give a warning (`UNMAP_RANGE`). NULL "
        "ranges give none: they are the default of every Python call."
    )
    call = "ID3D12Resource::Unmap"

    readback_written = Breach(
        UNMAP_RANGE,
        "Unmap declares bytes {given} of {object}, a READBACK buffer, as written.",
        field="pWrittenRange",
        expected="an empty range",
        severity=Severity.WARNING,
        message_id=MessageId.UNMAP_RANGE_NOT_EMPTY,
    )
    past_the_end = Breach(
        MAP_RANGE,
        "Range ({given}) runs past the buffer of {width} bytes.",
    )


class MP6(Rule):
    says = (
        "A mapped UPLOAD buffer may be read by the GPU, and what is read must not change meanwhile "
        "(`MAP_RACE`): from ExecuteCommandLists on or, where the queue waits for a fence first, from "
        "the moment at which that may get its value. A mapped READBACK buffer may be written: the "
        "emulated memory is coherent. It is not read before a fence value that the program has awaited "
        "shows that the writing is done (`READBACK_EARLY`)."
    )


class MP7(Rule):
    says = (
        "What the CPU writes is seen by the next ExecuteCommandLists, without Unmap; and by a list that waits "
        "for a fence which is signalled afterwards."
    )


class MP8(Rule):
    says = "Any thread may map and unmap. After removal Map fails and Unmap works."


class QuerySlots(Rule, label=""):
    """The queries that a command names exist, and fit the list."""

    heap = Breach(QUERY, "No query heap is given.", field="pQueryHeap", given=None, expected="a query heap")
    query_type = Breach(
        QUERY,
        "Query type ({given}) does not fit {heap} of type {heap_type}.",
        field="Type",
        expected="TIMESTAMP",
    )
    heap_kind = Breach(QUERY, "A list of type {list_type} uses {heap} of type {given}.", field="pQueryHeap")
    slots = Breach(QUERY, "Queries {queries} run past {heap} of {heap_size} queries.")


class QY1(Rule):
    says = "Query heaps of timestamps, at least one."
    call = "D3D12_QUERY_HEAP_DESC"
    operation = "CreateQueryHeap"

    none = Breach(
        QUERY,
        "pDesc is {given}.",
        field="pDesc",
        given=None,
        expected="a D3D12_QUERY_HEAP_DESC",
        message_id=MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
    )
    type = Breach(
        QUERY,
        "Query heap type ({given}) is not known.",
        field="pDesc.Type",
        expected="a member of D3D12_QUERY_HEAP_TYPE",
        message_id=MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
    )
    count = Breach(
        QUERY,
        "Number of queries ({given}) is not one that a heap can have.",
        field="pDesc.Count",
        expected="at least 1",
        message_id=MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
    )
    node_mask = Breach(
        QUERY,
        "Node mask ({given}) names nodes that the device does not have.",
        field="pDesc.NodeMask",
        expected="0 or 1",
        message_id=MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
    )


class QY2(QuerySlots):
    says = "A timestamp is ended, not begun, in a slot of a heap that fits the list's type."
    call = "ID3D12GraphicsCommandList::BeginQuery"

    type = Breach(
        QUERY,
        "A query of type {given} is begun, and timestamps have EndQuery only.",
        field="Type",
        expected="EndQuery of type TIMESTAMP",
        message_id=MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS,
    )


class QY3(QuerySlots):
    says = "Resolved to a multiple of 8 inside a buffer in state COPY_DEST; slots never written give 0."
    call = "ID3D12GraphicsCommandList::ResolveQueryData"

    destination_buffer = Breach(
        QUERY,
        "No destination is given.",
        field="pDestinationBuffer",
        given=None,
        expected="a buffer",
        message_id=MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS,
    )
    query = Breach(
        QUERY,
        "Destination offset ({given}) is not a multiple of 8.",
        expected="a multiple of 8",
        message_id=MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS,
    )
    past_the_end = Breach(
        QUERY,
        "{count} results of 8 bytes at offset {given} run past {destination} of {width} bytes.",
        message_id=MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS,
    )


class QY4(Rule):
    says = "Timestamps grow with work; the frequency is constant."


class QY5(Rule):
    says = "Only queries that an executed list has ended are resolved (a warning of the debug layer)."
    call = "ID3D12GraphicsCommandList::ResolveQueryData"
    operation = "ExecuteCommandLists"

    never_ended = Breach(
        QUERY_NOT_ENDED,
        "ResolveQueryData of {command_list} resolves queries of {object} that were never ended.",
        field="StartIndex",
        message_id=MessageId.RESOLVE_QUERY_INVALID_QUERY_STATE,
    )
