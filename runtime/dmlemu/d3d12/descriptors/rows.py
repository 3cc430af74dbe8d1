"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS
from ...diagnostics.message_id import MessageId
from ...diagnostics.rule import Breach, Rule
from ..core.rows import DESC_HEAP_KIND, DESC_INDEX

DESC_HEAP_NOT_VISIBLE = BINDINGS.refused(
    "DESC_HEAP_NOT_VISIBLE",
    "the GPU handle is not of a shader-visible heap",
    When.BIND,
    "The GPU can only read descriptors in heaps created with SHADER_VISIBLE.",
    "Create the heap with D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE.",
    rule="DML_BINDING_TABLE_DESC",
)


RES_VIEW = BINDINGS.refused(
    "RES_VIEW",
    "the desc of a view does not fit its buffer or itself",
    When.CREATE,
    "The view would show bytes past the end of the buffer, or bytes in a form that no shader can read. "
    "Direct3D removes the device.",
    "FirstElement and NumElements count elements of the view's format, or dwords of a raw view, not bytes.",
    message_ids=(
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDDIMENSIONS,
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDDESC,
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDFORMAT,
        MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDFLAGS,
        MessageId.CREATESHADERRESOURCEVIEW_INVALIDDESC,
        MessageId.CREATESHADERRESOURCEVIEW_INVALIDFORMAT,
        MessageId.CREATESHADERRESOURCEVIEW_INVALIDDIMENSIONS,
    ),
    rule="D3D12_BUFFER_UAV",
)

# --- rules ---


class DH1(Rule):
    says = "A known type, at least one descriptor, shader-visible only where shaders see it."
    call = "D3D12_DESCRIPTOR_HEAP_DESC"
    operation = "CreateDescriptorHeap"

    none = Breach(
        DESC_HEAP_KIND,
        "{field} is {given}.",
        given=None,
        message_id=MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
    )
    type = Breach(
        DESC_HEAP_KIND,
        "Descriptor heap type ({given}) is not known.",
        field="pDescriptorHeapDesc.Type",
        expected="a member of D3D12_DESCRIPTOR_HEAP_TYPE",
        message_id=MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
    )
    num_descriptors = Breach(
        DESC_HEAP_KIND,
        "Number of descriptors ({given}) is not one that a heap can have.",
        field="pDescriptorHeapDesc.NumDescriptors",
        expected="at least 1",
        message_id=MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
    )
    flags = Breach(
        DESC_HEAP_KIND,
        "Descriptor heap flags ({given}) have bits that are not known.",
        field="pDescriptorHeapDesc.Flags",
        expected="NONE or SHADER_VISIBLE",
        message_id=MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
    )
    node_mask = Breach(
        DESC_HEAP_KIND,
        "Node mask ({given}) names nodes that the device does not have.",
        field="pDescriptorHeapDesc.NodeMask",
        expected="0 or 1",
        message_id=MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
    )
    never_visible = Breach(
        DESC_HEAP_KIND,
        "A heap of type {heap_type} is SHADER_VISIBLE, and shaders cannot see its descriptors.",
        field="pDescriptorHeapDesc.Flags",
        expected="NONE",
        message_id=MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
    )


class DH2(Rule):
    says = "At most 1,000,000 shader-visible views and 2048 samplers."
    call = "D3D12_DESCRIPTOR_HEAP_DESC"
    operation = "CreateDescriptorHeap"

    too_many = Breach(
        DESC_HEAP_KIND,
        "Number of descriptors ({given}) is above what a shader-visible heap can hold.",
        field="pDescriptorHeapDesc.NumDescriptors",
        message_id=MessageId.CREATE_DESCRIPTOR_HEAP_LARGE_NUM_DESCRIPTORS,
    )


class DH3(Rule):
    says = "Only shader-visible heaps have GPU handles."
    call = "ID3D12DescriptorHeap::GetGPUDescriptorHandleForHeapStart"

    not_visible = Breach(
        DESC_HEAP_NOT_VISIBLE,
        "The GPU handle of {object} is requested, and the heap is not shader-visible.",
        field="this",
        message_id=MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
    )


class DH6(Rule):
    says = "As many sources as destinations, of one type, not overlapping."

    sums_differ = Breach(
        DESC_INDEX,
        "The source ranges hold {sources} descriptors and the destination ranges {destinations}.",
        field="pSrcDescriptorRangeSizes",
        message_id=MessageId.COPY_DESCRIPTORS_INVALID_RANGES,
    )
    counts_differ = Breach(
        DESC_INDEX,
        "There are {starts} range starts and {sizes} range sizes.",
        message_id=MessageId.COPY_DESCRIPTORS_INVALID_RANGES,
    )
    past_the_end = Breach(
        DESC_INDEX,
        "The {count} descriptors from index {index} on run past {heap} of {heap_size}.",
        message_id=MessageId.COPY_DESCRIPTORS_INVALID_RANGES,
    )
    other_type = Breach(
        DESC_INDEX,
        "{heap} is of type {expected}, and descriptors of type {given} are copied.",
        field="DescriptorHeapsType",
        message_id=MessageId.COPY_DESCRIPTORS_INVALID_RANGES,
    )
    ranges_overlap = Breach(
        DESC_INDEX,
        "Two descriptor ranges overlap at handle {given}.",
        field="pDestDescriptorRangeStarts",
        expected="ranges that do not overlap",
        message_id=MessageId.COPY_DESCRIPTORS_INVALID_RANGES,
    )


class DH9(Rule):
    says = "Descriptors are written at once, and read when the GPU executes."


class DH10(Rule):
    says = (
        "Slots that submitted work needs do not change, nor those of a recorded dispatch of a shader; with "
        "DESCRIPTORS_VOLATILE these may until submission. Of tables without an end they are not tracked."
    )


class DH11(Rule):
    says = "Resource binding tier 3: a table may be all of a heap, and descriptors that no shader uses unwritten."


class VW1(Rule):
    says = "Constant buffers: address and size multiples of 256, at most 65536, inside one buffer."
    call = "D3D12_CONSTANT_BUFFER_VIEW_DESC"
    operation = "CreateConstantBufferView"

    address_misaligned = Breach(
        RES_VIEW,
        "Address ({given}) of the constant buffer is not a multiple of 256.",
        field="pDesc.BufferLocation",
        expected="a multiple of 256",
        message_id=MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_DESC,
    )
    size_misaligned = Breach(
        RES_VIEW,
        "Size ({given}) of the constant buffer is not a multiple of 256.",
        field="pDesc.SizeInBytes",
        expected="a multiple of 256",
        message_id=MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_DESC,
    )
    too_large = Breach(
        RES_VIEW,
        "Size ({given}) of the constant buffer is above what a shader can see.",
        field="pDesc.SizeInBytes",
        message_id=MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_DESC,
    )
    in_no_buffer = Breach(
        RES_VIEW,
        "The {size} bytes at address ({given}) lie in {where}.",
        field="pDesc.BufferLocation",
        expected="a range inside one buffer",
        message_id=MessageId.CREATE_CONSTANT_BUFFER_VIEW_INVALID_RESOURCE,
    )


class VW2(Rule):
    says = "Raw views: R32_TYPELESS, no stride, start a multiple of 16 bytes."

    flags = Breach(
        RES_VIEW,
        "Buffer view flags ({given}) have bits that are not known.",
        field="pDesc.Buffer.Flags",
        expected="NONE or RAW",
    )
    first_element = Breach(
        RES_VIEW,
        "A raw view starts at byte {start} of {resource}, which is not a multiple of 16.",
        field="pDesc.Buffer.FirstElement",
        expected="a multiple of 4",
    )
    format = Breach(RES_VIEW, "A raw view has Format ({given}).", field="pDesc.Format")
    structure_byte_stride = Breach(
        RES_VIEW,
        "A raw view has StructureByteStride ({given}).",
        field="pDesc.Buffer.StructureByteStride",
        expected=0,
    )


class VW3(Rule):
    says = "Structured views: Format UNKNOWN, stride a multiple of 2 up to 2048."

    structure_byte_stride = Breach(
        RES_VIEW,
        "A structured view has StructureByteStride ({given}).",
        field="pDesc.Buffer.StructureByteStride",
    )


class VW4(Rule):
    says = "Typed views: a format with components and a type, no stride."

    format = Breach(
        RES_VIEW,
        "A typed buffer view has Format ({given}).",
        field="pDesc.Format",
        expected="a format with components and a type, such as R32_UINT",
    )
    structure_byte_stride = Breach(
        RES_VIEW,
        "A typed view has StructureByteStride ({given}).",
        field="pDesc.Buffer.StructureByteStride",
        expected=0,
    )


class VW5(Rule):
    says = "An unordered access view needs ALLOW_UNORDERED_ACCESS."

    resource = Breach(
        RES_VIEW,
        "{resource} lacks flag ALLOW_UNORDERED_ACCESS, and an unordered access view of it is created.",
        field="pResource",
        message_id=MessageId.CREATEUNORDEREDACCESSVIEW_INVALIDRESOURCE,
    )


class VW6(Rule):
    says = "At least one element, and all inside the buffer."

    num_elements = Breach(
        RES_VIEW,
        "A view of {resource} has NumElements ({given}).",
        field="pDesc.Buffer.NumElements",
        expected="at least 1",
    )
    past_the_end = Breach(
        RES_VIEW,
        "{given} elements of {element_size} bytes from element {first_element} on run past {resource} of "
        "{width} bytes.",
        field="pDesc.Buffer.NumElements",
    )


class VW7(Rule):
    says = "A buffer has no default view: a description of dimension BUFFER is needed."

    none = Breach(
        RES_VIEW, "", field="pDesc", given=None, expected="a description: a buffer has no default view"
    )
    not_a_buffer = Breach(
        RES_VIEW,
        "View dimension ({given}) is not that of a buffer.",
        field="pDesc.ViewDimension",
        expected="BUFFER",
    )


class VW8(Rule):
    says = "Counters: of structured views, at a multiple of 4, inside the counter's buffer."
    call = "D3D12_UNORDERED_ACCESS_VIEW_DESC"
    operation = "CreateUnorderedAccessView"

    not_structured = Breach(
        RES_VIEW,
        "{counter} is the counter of a view that is not structured.",
        field="pDesc.Buffer.StructureByteStride",
        expected="at least 4, no RAW",
        message_id=MessageId.CREATE_UNORDEREDACCESS_VIEW_INVALID_COUNTER_USAGE,
    )
    misaligned = Breach(
        RES_VIEW,
        "CounterOffsetInBytes ({given}) is not a multiple of 4.",
        field="pDesc.Buffer.CounterOffsetInBytes",
        expected="a multiple of 4",
        message_id=MessageId.CREATE_UNORDEREDACCESS_VIEW_INVALID_COUNTER_USAGE,
    )
    past_the_end = Breach(
        RES_VIEW,
        "CounterOffsetInBytes ({given}) lies outside {counter} of {width} bytes.",
        field="pDesc.Buffer.CounterOffsetInBytes",
        message_id=MessageId.CREATE_UNORDEREDACCESS_VIEW_INVALID_COUNTER_USAGE,
    )
    offset_without_counter = Breach(
        RES_VIEW,
        "CounterOffsetInBytes ({given}) is given without a counter resource.",
        field="pDesc.Buffer.CounterOffsetInBytes",
        expected="0",
        message_id=MessageId.CREATE_UNORDEREDACCESS_VIEW_INVALID_COUNTER_USAGE,
    )


class VW9(Rule):
    says = "Without a resource: a null descriptor."


class DH5(Rule):
    says = (
        "Descriptors are not copied out of a shader-visible heap, and the CPU handle of a clear is not "
        "in one."
    )

    copied_from_visible = Breach(
        DESC_HEAP_KIND,
        "Descriptors are copied out of {object}, which is shader-visible: the CPU can only write it.",
        expected="a handle of a heap without SHADER_VISIBLE",
        message_id=MessageId.COPY_DESCRIPTORS_WRITE_ONLY_DESCRIPTOR,
    )
    cleared_from_visible = Breach(
        DESC_HEAP_KIND,
        "The CPU descriptor handle is of {object}, which is shader-visible: it cannot be read.",
        message_id=MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
    )
