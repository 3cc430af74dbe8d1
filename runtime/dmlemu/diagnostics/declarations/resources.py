"""Group d: resources, heaps, mapped memory, copies."""

from .. import ids
from ..declaration import Declaration, When, refused
from ..message_id import MessageId
from ..report import Severity, Strictness

_CREATE, _CALL, _RECORD, _EXECUTE = When.CREATE, When.CALL, When.RECORD, When.EXECUTE
_DEBUG = Strictness.DEBUG


REFUSALS = (
    refused(
        ids.RES_DESC,
        "a heap or a buffer is described as none can be",
        _CREATE,
        "Nothing is created: a buffer is one row of bytes (Height, DepthOrArraySize, MipLevels and SampleDesc.Count "
        "1, Format UNKNOWN, Layout ROW_MAJOR), and a heap's type, page property and pool must fit each other.",
        "Start from ResourceDesc.buffer(size, flags) and HeapProperties(type), and change only what you need.",
        "RB1 to RB7, HP1 to HP9: D3D12_RESOURCE_DESC, D3D12_HEAP_DESC",
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
    refused(
        ids.HEAP_RANGE,
        "a buffer is placed where its heap has no room for it",
        _CREATE,
        "Nothing is created. A placed buffer starts at a multiple of 65536 and takes its width rounded up to "
        "65536.",
        "Add up the sizes that GetResourceAllocationInfo returns, and create a heap of that size.",
        "PL1 to PL3: ID3D12Device::CreatePlacedResource",
        MessageId.CREATERESOURCE_INVALIDALIGNMENT,
        MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
    ),
    refused(
        ids.TILE_MAPPING,
        "the regions and ranges of UpdateTileMappings do not fit the buffer, the heap or each other",
        _CALL,
        "On Windows the device is removed at once; here nothing is mapped.",
        "Count in tiles of 65536 bytes, and let the heap ranges hold as many tiles as the regions.",
        "RS4 to RS7: ID3D12CommandQueue::UpdateTileMappings",
        MessageId.UPDATETILEMAPPINGS_INVALID_PARAMETER,
    ),
    refused(
        ids.OUT_OF_MEMORY,
        "the adapter's memory, or this machine's, is used up",
        _CREATE,
        "Nothing is created (E_OUTOFMEMORY).",
        "Release what is no longer used once the GPU is done with it, or give the adapter more memory: "
        "d3d12.Adapter(dedicated_memory=...).",
        "RB10: ID3D12Device::CreateCommittedResource",
        MessageId.CREATERESOURCE_OUTOFMEMORY_RETURN,
        MessageId.CREATEHEAP_OUTOFMEMORY_RETURN,
    ),
    refused(
        ids.RES_NOT_RESIDENT,
        "a list uses what has been evicted, or something is evicted more often than it was made resident",
        When.SUBMIT,
        "The GPU would access memory that may have been reused.",
        "Call MakeResident before ExecuteCommandLists; calls are counted, like references.",
        "RD1, RD2: Residency",
        MessageId.INVALID_USE_OF_NON_RESIDENT_RESOURCE,
        MessageId.MAKERESIDENT_NULLOBJECTARRAY,
        MessageId.EVICT_NULLOBJECTARRAY,
        MessageId.EVICT_UNDERFLOW,
        level=_DEBUG,
    ),
    refused(
        ids.MAP_HEAP,
        "Map or Unmap is called on a buffer that the CPU cannot see",
        _CALL,
        "A DEFAULT heap is in GPU memory, which the CPU cannot address.",
        "Write into an UPLOAD buffer and copy it into this one, or copy this one into a READBACK buffer and read "
        "that after a fence.",
        "MP1: ID3D12Resource::Map",
        MessageId.MAP_INVALIDHEAP,
        MessageId.UNMAP_INVALIDHEAP,
    ),
    refused(
        ids.MAP_RANGE,
        "the range or the subresource of Map or Unmap does not exist",
        _CALL,
        "The call fails. A range names the bytes that the CPU reads or has written, counted from the buffer's start.",
        "Give byte offsets inside the buffer, or no range: that means all of it.",
        "MP2, MP5: ID3D12Resource::Map",
        MessageId.MAP_INVALIDSUBRESOURCE,
        MessageId.UNMAP_INVALIDSUBRESOURCE,
        MessageId.MAP_INVALIDRANGE,
        MessageId.UNMAP_INVALIDRANGE,
        level=_DEBUG,
    ),
    refused(
        ids.UNMAP_NOT_MAPPED,
        "Unmap is called more often than Map, or mapped memory is used after Unmap",
        _CALL,
        "The pointer returned by Map is no longer valid: a write through it may go anywhere.",
        "Count Unmap as often as Map: 'with buffer.map() as memory:' does it. UPLOAD buffers may stay mapped "
        "while the GPU reads them.",
        "MP4: ID3D12Resource::Unmap",
        MessageId.RESOURCE_UNMAP_NOTMAPPED,
        level=_DEBUG,
    ),
    refused(
        ids.COPY_NULL,
        "a copy has no buffer as source or destination",
        _RECORD,
        "The command is not recorded. In C++, only Close fails, without the reason.",
        "Give both buffers.",
        "CM1, CM2: ID3D12GraphicsCommandList::CopyBufferRegion",
        MessageId.COPYBUFFERREGION_NULLDST,
        MessageId.COPYBUFFERREGION_NULLSRC,
        MessageId.COPYRESOURCE_NULLDST,
        MessageId.COPYRESOURCE_NULLSRC,
    ),
    refused(
        ids.COPY_RANGE,
        "the bytes of a copy or of an immediate write do not lie in the buffer, or widths differ",
        _RECORD,
        "The command is not recorded. CopyResource copies whole buffers, which have the same width.",
        "Let offset + size stay within the width of both buffers; CopyBufferRegion copies parts.",
        "CM1, CM2, CM5: ID3D12GraphicsCommandList::CopyBufferRegion",
        MessageId.COPYBUFFERREGION_DSTRANGEOUTOFBOUNDS,
        MessageId.COPYBUFFERREGION_SRCRANGEOUTOFBOUNDS,
        MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
    ),
    refused(
        ids.COPY_SAME,
        "a buffer, or memory that two buffers share, is copied onto itself, "
        "or two bytes of a destination are one",
        _RECORD,
        "A buffer has one state, and it cannot be COPY_SOURCE and COPY_DEST at once, even if the ranges are apart. "
        "Through two buffers over the same memory a copy must not read what it writes, nor write a tile of a heap "
        "through two tiles of a reserved buffer: its parts have no order.",
        "Copy by way of a second buffer, or place a second one over the same memory if the ranges are apart; copy to "
        "each tile of a heap once.",
        "CM1, CM2: ID3D12GraphicsCommandList::CopyBufferRegion",
        MessageId.COPY_ON_SAME_SUBRESOURCE,
        MessageId.COPYRESOURCE_INVALIDSRCRESOURCE,
    ),
    refused(
        ids.QUERY,
        "a query heap or a timestamp command has arguments that do not fit",
        _RECORD,
        "The command is not recorded. A timestamp has no begin, and its slot must lie in a heap that fits the "
        "list's type.",
        "Use EndQuery with type TIMESTAMP, and resolve to a multiple of 8.",
        "QY1 to QY3: ID3D12GraphicsCommandList::ResolveQueryData",
        MessageId.CREATEQUERY_HEAP_INVALID_PARAMETERS,
        MessageId.BEGIN_END_QUERY_INVALID_PARAMETERS,
        MessageId.RESOLVE_QUERY_DATA_INVALID_PARAMETERS,
    ),
)

REMARKS = (
    Declaration(
        ids.QUERY_NOT_ENDED,
        "timestamps are resolved that no command has written",
        Severity.WARNING,
        When.SUBMIT,
        why="On a card such a result is undefined; here it is 0.",
        fix="Resolve only queries that EndQuery has ended, in an earlier list or before in the same one.",
        rule="QY5: ID3D12GraphicsCommandList::ResolveQueryData",
        message_ids=(MessageId.RESOLVE_QUERY_INVALID_QUERY_STATE,),
        level=_DEBUG,
    ),
    Declaration(
        ids.RES_STATE_IGNORED,
        "a buffer is created in another state than COMMON",
        Severity.WARNING,
        _CREATE,
        why="Buffers start COMMON whatever the initial state says, and the first use promotes them to the state that "
        "it needs.",
        fix="Create buffers of DEFAULT heaps in D3D12_RESOURCE_STATE_COMMON.",
        rule="RB8: ID3D12Device::CreateCommittedResource",
        message_ids=(MessageId.CREATERESOURCE_STATE_IGNORED,),
        level=_DEBUG,
    ),
)

ADVICE = (
    Declaration(
        ids.UNMAP_RANGE,
        "Unmap says that nothing, or less than the program has written, was written, or that a READBACK buffer was",
        Severity.WARNING,
        _CALL,
        why="Where caches are not coherent, only the range passed to Unmap becomes visible to the GPU; capture tools "
        "record nothing else. The CPU has no reason to write into a READBACK buffer.",
        fix="Pass the range that was written; no range means the whole buffer, an empty one means nothing.",
        rule="MP5: ID3D12Resource::Unmap",
        message_ids=(MessageId.UNMAP_RANGE_NOT_EMPTY,),
        level=_DEBUG,
    ),
    Declaration(
        ids.HEAP_OVERLAP,
        "one ExecuteCommandLists call uses two placed buffers over the same bytes, one of them to be written, without "
        "an aliasing barrier",
        Severity.INFO,
        _EXECUTE,
        why="Buffers may share memory, and each sees what was written through the other, so this may be intended. "
        "If not, an offset is too small, and one buffer overwrites the other.",
        fix="Place the second buffer after the first, whose size is its width rounded up to 65536; or record an "
        "aliasing barrier between the uses.",
        rule="PL4, AL1: Memory Aliasing and Data Inheritance",
        message_ids=(MessageId.HEAP_ADDRESS_RANGE_INTERSECTS_MULTIPLE_BUFFERS,),
    ),
    Declaration(
        ids.READBACK_EARLY,
        "the CPU reads bytes that a command writes before a fence tells that the command is done",
        Severity.ERROR,
        _CALL,
        why="ExecuteCommandLists only submits the lists. The copy runs some time later, and until then the buffer "
        "holds what it held before, or a part of both.",
        fix="Signal a fence behind ExecuteCommandLists, wait for its value, and map the buffer then.",
        rule="MP6: ID3D12Resource::Map",
    ),
    Declaration(
        ids.RES_LEAK,
        "a program that releases its objects and its device has left some objects unreleased",
        Severity.WARNING,
        When.EXIT,
        why="Every object keeps the device and its memory: in C++ the memory is leaked until the process ends.",
        fix="Release the objects that are listed, or use them in 'with' blocks; the report says what holds them.",
        rule="ID3D12DebugDevice::ReportLiveDeviceObjects",
        message_ids=(MessageId.LIVE_OBJECT_SUMMARY, MessageId.LIVE_DEVICE),
    ),
)

DECLARATIONS = (*REFUSALS, *REMARKS, *ADVICE)
