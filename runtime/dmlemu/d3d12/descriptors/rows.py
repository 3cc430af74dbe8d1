"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS
from ...diagnostics.message_id import MessageId

DESC_HEAP_NOT_VISIBLE = BINDINGS.refused(
    "DESC_HEAP_NOT_VISIBLE",
    "the GPU handle is not of a shader-visible heap",
    When.BIND,
    "The GPU can only read descriptors in heaps created with SHADER_VISIBLE.",
    "Create the heap with D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE.",
    rule="BT2: DML_BINDING_TABLE_DESC",
    message_ids=(
        MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
        MessageId.SET_DESCRIPTOR_HEAP_INVALID,
    ),
)

DESC_HEAP_KIND = BINDINGS.refused(
    "DESC_HEAP_KIND",
    "a descriptor heap cannot be used for that",
    When.BIND,
    "Views of buffers are in heaps of type CBV_SRV_UAV; the CPU cannot read shader-visible heaps, so they "
    "are no source of copies.",
    "Use a heap of type CBV_SRV_UAV, and one without SHADER_VISIBLE to copy from.",
    rule="DH1: D3D12_DESCRIPTOR_HEAP_DESC",
    message_ids=(
        MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
        MessageId.INVALID_DESCRIPTOR_HANDLE,
        MessageId.COPY_DESCRIPTORS_WRITE_ONLY_DESCRIPTOR,
        MessageId.CREATE_DESCRIPTOR_HEAP_LARGE_NUM_DESCRIPTORS,
        MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
    ),
)

RES_VIEW = BINDINGS.refused(
    "RES_VIEW",
    "the desc of a view does not fit its buffer or itself",
    When.CREATE,
    "The view would show bytes behind the buffer, or bytes in a form that no shader can read. Direct3D "
    "removes the device.",
    "FirstElement and NumElements count elements of the view's format, or dwords of a raw view, not bytes.",
    rule="VW6: D3D12_BUFFER_UAV",
    message_ids=(
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDDIMENSIONS,
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDRESOURCE,
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDDESC,
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDFORMAT,
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDFLAGS,
        MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_RESOURCE,
        MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_DESC,
        MessageId.CREATE_UNORDEREDACCESS_VIEW_INVALID_COUNTER_USAGE,
        MessageId.CREATESHADERRESOURCEVIEW_INVALIDDESC,
        MessageId.CREATESHADERRESOURCEVIEW_INVALIDFORMAT,
        MessageId.CREATESHADERRESOURCEVIEW_INVALIDDIMENSIONS,
    ),
)
