"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import RESOURCES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity, Strictness
from ...diagnostics.rule import Rule

RES_DESC = RESOURCES.refused(
    "RES_DESC",
    "a heap or a buffer is described as none can be",
    When.CREATE,
    "Nothing is created: a buffer is one row of bytes (Height, DepthOrArraySize, MipLevels and "
    "SampleDesc.Count 1, Format UNKNOWN, Layout ROW_MAJOR), and a heap's type, page property and pool must "
    "fit each other.",
    "Start from ResourceDesc.buffer(size, flags) and HeapProperties(type), and change only what you need.",
    rule="RB1 to RB7, HP1 to HP9: D3D12_RESOURCE_DESC, D3D12_HEAP_DESC",
    message_ids=(
        MessageId.RESOURCE_BARRIER_RESERVED_BITS,
        MessageId.RESOURCE_BARRIER_MISSING_BIND_FLAGS,
        MessageId.RESOURCE_BARRIER_INVALID_COMBINATION,
        MessageId.CREATERESOURCE_INVALIDDIMENSIONS,
        MessageId.CREATERESOURCE_INVALIDMISCFLAGS,
        MessageId.CREATERESOURCE_INVALIDDESC,
        MessageId.CREATEHEAP_NULLDESC,
        MessageId.CREATEHEAP_INVALIDSIZE,
        MessageId.CREATEHEAP_UNRECOGNIZEDHEAPTYPE,
        MessageId.CREATEHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
        MessageId.CREATEHEAP_UNRECOGNIZEDMEMORYPOOL,
        MessageId.CREATEHEAP_INVALIDPROPERTIES,
        MessageId.CREATEHEAP_INVALIDALIGNMENT,
        MessageId.CREATEHEAP_UNRECOGNIZEDMISCFLAGS,
        MessageId.CREATEHEAP_INVALIDMISCFLAGS,
        MessageId.CREATERESOURCEANDHEAP_NULLHEAPPROPERTIES,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPTYPE,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDCPUPAGEPROPERTIES,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDMEMORYPOOL,
        MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPPROPERTIES,
        MessageId.CREATERESOURCEANDHEAP_UNRECOGNIZEDHEAPMISCFLAGS,
        MessageId.CREATERESOURCEANDHEAP_INVALIDHEAPMISCFLAGS,
        MessageId.GETCUSTOMHEAPPROPERTIES_UNRECOGNIZEDHEAPTYPE,
        MessageId.GETCUSTOMHEAPPROPERTIES_INVALIDHEAPTYPE,
        MessageId.CREATERESOURCE_INVALIDALIGNMENT,
        MessageId.CREATERESOURCE_INVALIDMIPLEVELS,
        MessageId.CREATERESOURCE_INVALIDSAMPLEDESC,
        MessageId.CREATERESOURCE_INVALIDLAYOUT,
        MessageId.CREATERESOURCE_INVALIDFORMAT,
        MessageId.RESOURCE_BARRIER_INVALID_HEAP,
        MessageId.CREATERESOURCE_INVALIDCLEARVALUE,
        MessageId.GETHEAPPROPERTIES_INVALIDRESOURCE,
        MessageId.GETCOPYABLEFOOTPRINTS_UNSUPPORTED_BUFFER_WIDTH,
    ),
)

HEAP_RANGE = RESOURCES.refused(
    "HEAP_RANGE",
    "a buffer is placed where its heap has no room for it",
    When.CREATE,
    "Nothing is created. A placed buffer starts at a multiple of 65536 and takes its width rounded up to 65536.",
    "Add up the sizes that GetResourceAllocationInfo returns, and create a heap of that size.",
    rule="PL1 to PL3: ID3D12Device::CreatePlacedResource",
    message_ids=(
        MessageId.CREATERESOURCE_INVALIDALIGNMENT,
        MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
    ),
)

TILE_MAPPING = RESOURCES.refused(
    "TILE_MAPPING",
    "the regions and ranges of UpdateTileMappings do not fit the buffer, the heap or each other",
    When.CALL,
    "On Windows the device is removed at once; here nothing is mapped.",
    "Count in tiles of 65536 bytes, and let the heap ranges hold as many tiles as the regions.",
    rule="RS4 to RS7: ID3D12CommandQueue::UpdateTileMappings",
    message_ids=(MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,),
)

MAP_HEAP = RESOURCES.refused(
    "MAP_HEAP",
    "Map or Unmap is called on a buffer that the CPU cannot see",
    When.CALL,
    "A DEFAULT heap is in GPU memory, which the CPU cannot address.",
    "Write into an UPLOAD buffer and copy it into this one, or copy this one into a READBACK buffer and "
    "read that after a fence.",
    rule="MP1: ID3D12Resource::Map",
    message_ids=(
        MessageId.MAP_INVALIDHEAP,
        MessageId.UNMAP_INVALIDHEAP,
    ),
)

MAP_RANGE = RESOURCES.refused(
    "MAP_RANGE",
    "the range or the subresource of Map or Unmap does not exist",
    When.CALL,
    "The call fails. A range names the bytes that the CPU reads or has written, counted from the buffer's "
    "start.",
    "Give byte offsets inside the buffer, or no range: that means all of it.",
    rule="MP2, MP5: ID3D12Resource::Map",
    message_ids=(
        MessageId.MAP_INVALIDSUBRESOURCE,
        MessageId.UNMAP_INVALIDSUBRESOURCE,
        MessageId.MAP_INVALIDRANGE,
        MessageId.UNMAP_INVALIDRANGE,
    ),
    level=Strictness.DEBUG,
)

UNMAP_NOT_MAPPED = RESOURCES.refused(
    "UNMAP_NOT_MAPPED",
    "Unmap is called more often than Map, or mapped memory is used after Unmap",
    When.CALL,
    "The pointer returned by Map is no longer valid: a write through it may go anywhere.",
    "Count Unmap as often as Map: 'with buffer.map() as memory:' does it. UPLOAD buffers may stay mapped "
    "while the GPU reads them.",
    rule="MP4: ID3D12Resource::Unmap",
    message_ids=(MessageId.RESOURCE_UNMAP_NOTMAPPED,),
    level=Strictness.DEBUG,
)

QUERY = RESOURCES.refused(
    "QUERY",
    "a query heap or a timestamp command has arguments that do not fit",
    When.RECORD,
    "The command is not recorded. A timestamp has no begin, and its slot must lie in a heap that fits the "
    "list's type.",
    "Use EndQuery with type TIMESTAMP, and resolve to a multiple of 8.",
    rule="QY1 to QY3: ID3D12GraphicsCommandList::ResolveQueryData",
    message_ids=(
        MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
        MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS,
        MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS,
    ),
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
    "Unmap says that nothing, or less than the program has written, was written, or that a READBACK buffer was",
    Severity.WARNING,
    When.CALL,
    "Where caches are not coherent, only the range passed to Unmap becomes visible to the GPU; capture "
    "tools record nothing else. The CPU has no reason to write into a READBACK buffer.",
    "Pass the range that was written; no range means the whole buffer, an empty one means nothing.",
    rule="MP5: ID3D12Resource::Unmap",
    message_ids=(MessageId.UNMAP_RANGE_NOT_EMPTY,),
    level=Strictness.DEBUG,
)

# --- rules ---


class HP1(Rule):
    says = "The size is positive; the capacity is rounded up to 64 KiB, GetDesc tells the size as asked."


class HP2(Rule):
    says = "Alignment 0, 65536 or 4194304."


class HP3(Rule):
    says = "A known type; page property and pool UNKNOWN, but known for CUSTOM."


class HP4(Rule):
    says = "CUSTOM heaps in video memory are never WRITE_BACK."


class HP5(Rule):
    says = "Known flags; not everything denied. Tier 2: categories may mix."


class HP6(Rule):
    says = "No ALLOW_DISPLAY on a heap, no DENY_* on a committed resource."


class HP7(Rule):
    says = "Node masks 0 or 1; told as 1."
    call = "the device has one node."


class HP8(Rule):
    says = "GetCustomHeapProperties tells what a heap type stands for."
    call = "GetCustomHeapProperties."


class HP9(Rule):
    says = "A description is needed."


class HP10(Rule):
    says = "Memory is zero unless CREATE_NOT_ZEROED, which is poison (0xCB) at strictness `strict`."


class RB1(Rule):
    says = "One row of bytes: Height, DepthOrArraySize, MipLevels 1, Format UNKNOWN, one sample, ROW_MAJOR."
    call = "the desc, whose sampler feedback region must be empty."


class RB2(Rule):
    says = "Alignment 0 or 65536, told as 65536. Tight alignment is not supported."


class RB3(Rule):
    says = (
        "No flags that are for textures. The runtime of Windows takes DENY_SHADER_RESOURCE alone, and so does "
        "strictness `runtime`; the documents, and the other levels, want it with ALLOW_DEPTH_STENCIL."
    )


class RB4(Rule):
    says = "No optimized clear value."


class RB5(Rule):
    says = "UPLOAD and READBACK heaps hold no buffer that shaders write."


class RB6(Rule):
    says = (
        "Initial state in an UPLOAD heap: GENERIC_READ, a part of it or COMMON; in a READBACK heap: COPY_DEST "
        "or COMMON."
    )


class RB7(Rule):
    says = (
        "A state is one write state or read states only, and the buffer has the flag that it needs. At "
        "strictness `runtime` no flag is needed for an initial state, which is ignored (RB8)."
    )


class RB8(Rule):
    says = "The initial state of a buffer is ignored: it starts COMMON (a warning, as on Windows)."


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
    call = "the debug layer warns of more bytes than GPUs let the CPU see."


class PL1(Rule):
    says = "The heap offset is a multiple of 65536."


class PL2(Rule):
    says = "The buffer fits the heap's capacity."


class PL3(Rule):
    says = "The heap takes buffers; its type's rules hold."
    call = "CreatePlacedResource needs a heap."


class PL4(Rule):
    says = (
        "Placed buffers may overlap: they are the same bytes. Used in one ExecuteCommandLists call without an "
        "aliasing barrier they are remarked (`HEAP_OVERLAP`), in conflict reported (`HAZARD_ALIAS`)."
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
        "GetResourceAllocationInfo lays resources one behind the other; 2^64 - 1 for an invalid one, which is "
        "reported."
    )


class TX1(Rule):
    says = (
        "It gives the size of a TEXTURE2D, too: its texels, rounded up to 64 KiB, to 4 KiB where a small "
        "texture asks for it, or to 4 MiB with several samples. On a card it may be more."
    )
    call = "D3D12_RESOURCE_DESC"


class CF1(Rule):
    says = "GetCopyableFootprints of a buffer: one row; all ones for wrong arguments."
    call = "ID3D12Device::GetCopyableFootprints"


class RS1(Rule):
    says = "Tiled resources tier 2; a reserved buffer follows RB1."


class RS2(Rule):
    says = "It has an address at once, and all tiles are NULL."


class RS3(Rule):
    says = "No Map, no GetHeapProperties."
    call = "ID3D12Resource::GetHeapProperties"


class RS4(Rule):
    says = "UpdateTileMappings counts tiles of 64 KiB in one row, of a reserved buffer."


class RS5(Rule):
    says = (
        "Regions and ranges with all their defaults; their sums are equal; they fit resource and heap. At "
        "strictness `runtime` ranges with more tiles than the regions map what the regions need, as on Windows."
    )
    call = "ID3D12CommandQueue::UpdateTileMappings"


class RS6(Rule):
    says = "Mapping is queue work, in order with lists."


class RS7(Rule):
    says = "Several buffers may map the same tile; the heap takes buffers."


class RS8(Rule):
    says = "NULL tiles read 0 and drop writes; a released heap stays mapped."


class RS9(Rule):
    says = "GetResourceTiling: one subresource, a row of tiles; nothing for a buffer that is not reserved."


class MP1(Rule):
    says = "Only heaps that the CPU sees."
    call = "whether resources in such a heap may be mapped."


class MP2(Rule):
    says = "Subresource 0."


class MP3(Rule):
    says = "A null pointer for the data is legal."
    untested = "Python has no out pointers"


class MP4(Rule):
    says = "The memory starts at byte 0; maps are counted; Unmap without Map is wrong."
    call = "ID3D12Resource::Unmap"


class MP5(Rule):
    says = (
        "Ranges lie in the buffer; empty ones say nothing is read or written; a written READBACK buffer, and a "
        "written range that leaves out what was written through the map, are remarked (`UNMAP_RANGE`). NULL "
        "ranges are not remarked: they are the default of every Python call."
    )
    call = "ID3D12Resource::Unmap"


class MP6(Rule):
    says = (
        "A mapped UPLOAD buffer may be read by the GPU, and what is read must not change meanwhile "
        "(`MAP_RACE`): from ExecuteCommandLists on or, where the queue waits for a fence first, from the moment"
        " at which that may get its value. A mapped READBACK buffer may be written: the emulated memory is "
        "coherent. It is not read before a fence value that the program has awaited tells that the writing is "
        "done (`READBACK_EARLY`)."
    )


class MP7(Rule):
    says = (
        "What the CPU writes is seen by the next ExecuteCommandLists, without Unmap; and by a list that waits "
        "for a fence which is signalled afterwards."
    )


class MP8(Rule):
    says = "Any thread may map and unmap. After removal Map fails and Unmap works."


class QY1(Rule):
    says = "Query heaps of timestamps, at least one."
    call = "D3D12_QUERY_HEAP_DESC"


class QY2(Rule):
    says = "A timestamp is ended, not begun, in a slot of a heap that fits the list's type."
    call = "timestamps have EndQuery only."


class QY3(Rule):
    says = "Resolved to a multiple of 8 inside a buffer in state COPY_DEST; slots never written give 0."


class QY4(Rule):
    says = "Timestamps grow with work; the frequency is constant."


class QY5(Rule):
    says = "Only queries that an executed list has ended are resolved (remark of the debug layer)."
    call = "a list that resolves queries is submitted."
