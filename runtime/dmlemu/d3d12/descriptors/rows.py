"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS
from ...diagnostics.message_id import MessageId
from ...diagnostics.rule import Rule

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

# --- rules ---


class DH1(Rule):
    says = "A known type, at least one descriptor, shader-visible only where shaders see it."


class DH2(Rule):
    says = "At most 1,000,000 shader-visible views and 2048 samplers."


class DH3(Rule):
    says = "Only shader-visible heaps have GPU handles."
    call = "ID3D12DescriptorHeap::GetGPUDescriptorHandleForHeapStart"


class DH6(Rule):
    says = "As many sources as destinations, of one type, not overlapping."


class DH9(Rule):
    says = "Descriptors are written at once, and read when the GPU executes."


class DH10(Rule):
    says = "Slots that submitted work needs do not change."
    untested = "DirectML's binding tables check it (`BT14`), other slots are not followed yet"


class DH11(Rule):
    says = "Resource binding tier 3: all of a heap."
    untested = "root signatures are not emulated"


class VW1(Rule):
    says = "Constant buffers: address and size multiples of 256, at most 65536, inside one buffer."


class VW2(Rule):
    says = "Raw views: R32_TYPELESS, no stride, start a multiple of 16 bytes."


class VW3(Rule):
    says = "Structured views: Format UNKNOWN, stride a multiple of 4 up to 2048."


class VW4(Rule):
    says = "Typed views: a format with components and a type, no stride."


class VW5(Rule):
    says = "An unordered access view needs ALLOW_UNORDERED_ACCESS."


class VW6(Rule):
    says = "At least one element, and all inside the buffer."


class VW7(Rule):
    says = "A buffer has no default view: a description of dimension BUFFER is needed."


class VW8(Rule):
    says = "Counters: of structured views, at a multiple of 4, inside the counter's buffer."
    call = "the counter of a structured unordered access view."


class VW9(Rule):
    says = "Without a resource: a null descriptor."
