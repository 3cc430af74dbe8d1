"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import RESOURCES
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity, Strictness

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
