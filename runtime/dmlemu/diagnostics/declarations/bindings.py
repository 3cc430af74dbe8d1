"""Group c: binding tables and descriptors, and what the GPU finds through them."""

from .. import ids
from ..declaration import Declaration, When, refused
from ..message_id import MessageId
from ..report import Severity, Strictness

_CORRUPTION, _ERROR = Severity.CORRUPTION, Severity.ERROR
_BIND, _RECORD, _SUBMIT, _EXECUTE = When.BIND, When.RECORD, When.SUBMIT, When.EXECUTE


def _refused(
    id: str,
    title: str,
    why: str,
    fix: str,
    rule: str,
    when: When = _BIND,
    message_ids: tuple[MessageId, ...] = (),
    api: str = "D3D12",
) -> Declaration:
    return refused(id, title, when, why, fix, rule, *message_ids, api=api)


def _fault(
    id: str,
    title: str,
    severity: Severity,
    why: str,
    fix: str,
    rule: str,
    message_ids: tuple[MessageId, ...] = (),
) -> Declaration:
    """The GPU cannot execute the command, and is removed."""
    level = Strictness.RUNTIME
    return Declaration(id, title, severity, _EXECUTE, why, fix, rule, message_ids, refusal=True, level=level)


_BINDINGS = (
    _refused(
        ids.BIND_COUNT,
        "there are more or fewer bindings than the operator has tensors",
        "Bindings belong to tensors by their position, so an optional tensor that is left out moves all behind it. "
        "DirectML removes the device.",
        "Bind one entry per tensor field of the operator's struct, in its order; DML_BINDING_TYPE_NONE stands for an "
        "optional tensor that is not used.",
        "BT5: IDMLBindingTable::BindInputs",
        api="DML",
    ),
    _refused(
        ids.BIND_TYPE,
        "a tensor that needs a buffer gets none, or one that is absent gets a buffer",
        "DirectML knows from the operator's desc which tensors there are, and removes the device when the bindings "
        "say otherwise.",
        "Bind a buffer exactly for the tensors that the desc has, and DML_BINDING_TYPE_NONE for the others. An "
        "initializer takes one BUFFER_ARRAY per operator.",
        "BT6: IDMLBindingTable::BindInputs",
        api="DML",
    ),
    _refused(
        ids.BIND_SIZE_SMALL,
        "a bound range has fewer bytes than its tensor",
        "The operator would read or write past the range, into whatever is there. DirectML removes the device.",
        "Bind at least TotalTensorSizeInBytes. Sizes count elements: multiply by the element size when you compute "
        "SizeInBytes.",
        "BT8: DML_BUFFER_BINDING",
        api="DML",
    ),
    _refused(
        ids.BIND_RANGE,
        "Offset and SizeInBytes reach past the end of the buffer",
        "The bytes after a buffer belong to another object, or are unmapped.",
        "Offset + SizeInBytes is at most the Width of the resource; SizeInBytes counts from Offset on.",
        "BT8: DML_BUFFER_BINDING",
        message_ids=(
            MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
            MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,
        ),
        api="DML",
    ),
    _refused(
        ids.BIND_OFFSET_ALIGN,
        "the offset of a binding is not as aligned as it must be",
        "Tensors begin at multiples of 16 bytes, or of the GuaranteedBaseOffsetAlignment that their desc promised; "
        "temporary and persistent resources at multiples of 256. Kernels are compiled to rely on that.",
        "Round offsets up when you suballocate buffers.",
        "BT8: DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT",
        api="DML",
    ),
    _refused(
        ids.BIND_HEAP_TYPE,
        "a buffer lies in a heap of a type that dispatches cannot use",
        "A dispatch accesses its buffers as UAVs, which upload and readback heaps do not allow. Only an initializer may "
        "read its inputs from an upload heap.",
        "Copy the data into a buffer in a heap of type DEFAULT with CopyBufferRegion, and bind that.",
        "BT9: IDMLBindingTable",
        api="DML",
    ),
    _refused(
        ids.BIND_NOT_UAV,
        "a buffer was created without D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS",
        "DirectML binds every buffer as an unordered access view, inputs too.",
        "Create the buffer with ALLOW_UNORDERED_ACCESS.",
        "BT8: IDMLBindingTable",
        api="DML",
    ),
    _refused(
        ids.BIND_OWNED_BY_DML,
        "a tensor flagged OWNED_BY_DML is bound at execution, or is not bound at initialisation",
        "The flag hands the tensor's data over to DirectML: the initializer copies it into the persistent resource, "
        "and executions use that copy.",
        "Bind the tensor to the initializer, and DML_BINDING_TYPE_NONE to the operator; or leave the flag out.",
        "BT7: DML_TENSOR_FLAG_OWNED_BY_DML",
        api="DML",
    ),
    _refused(
        ids.BIND_TEMP_MISSING,
        "a dispatch needs a temporary resource, and none is bound",
        "The operator keeps results between its steps there. Without it the device is removed.",
        "Bind a buffer of at least TemporaryResourceSize bytes, as GetBindingProperties returns for this "
        "dispatchable; it changes with sizes, flags and device.",
        "BT11: IDMLBindingTable::BindTemporaryResource",
        when=_RECORD,
        api="DML",
    ),
    _refused(
        ids.BIND_TEMP_SMALL,
        "the range bound as temporary resource is smaller than the dispatch needs",
        "The operator keeps results between its steps there, and would write past the end. DirectML removes the device.",
        "Bind at least TemporaryResourceSize bytes of this dispatchable: an initializer has its own size, and a "
        "buffer that several dispatches share needs the largest of theirs.",
        "BT11: IDMLBindingTable::BindTemporaryResource",
        api="DML",
    ),
    _refused(
        ids.BIND_PERSISTENT_MISSING,
        "a dispatch needs a persistent resource, and none is bound",
        "It holds what the initializer prepared: weights, constants. It is bound for every dispatch, not only once.",
        "Bind the buffer that was the initializer's output, with at least PersistentResourceSize bytes.",
        "BT12: IDMLBindingTable::BindPersistentResource",
        when=_RECORD,
        api="DML",
    ),
    _refused(
        ids.BIND_PERSISTENT_SMALL,
        "the range bound as persistent resource is smaller than the operator needs",
        "It holds what the initializer prepared: weights, constants. A part of it would be read as something else. "
        "DirectML removes the device.",
        "Bind at least PersistentResourceSize bytes of the compiled operator, the same range that was the "
        "initializer's output.",
        "BT12: IDMLBindingTable::BindPersistentResource",
        api="DML",
    ),
    _refused(
        ids.BIND_ALIAS,
        "a dispatch writes bytes that it also uses otherwise",
        "Threads of a dispatch run in any order: some read their input after others have overwritten it. Only operators "
        "documented as in place may have their output where their input is, in the very same layout.",
        "Give the output bytes of its own. What counts are the elements, not the ranges: interleaved columns are fine.",
        "BT10: Binding in DirectML",
        when=_RECORD,
        api="DML",
    ),
    _refused(
        ids.BIND_OUT_OUT,
        "two outputs of a dispatch share bytes",
        "Which of the two values remains depends on the order of threads.",
        "Give each output bytes of its own, up to its TotalTensorSizeInBytes.",
        "BT10: Binding in DirectML",
        when=_RECORD,
        api="DML",
    ),
    _refused(
        ids.BIND_LATE,
        "a table is bound again after RecordDispatch, before its list was executed",
        "RecordDispatch copies no bindings: they are in the descriptor heap, where the GPU reads them when it "
        "executes. Binding again changes the dispatch that was recorded before.",
        "Use another table, over other descriptors, for the next dispatch. Operators compiled with DESCRIPTORS_VOLATILE "
        "may be bound until their list is executed.",
        "BT14: IDMLBindingTable",
        when=_RECORD,
        message_ids=(MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,),
        api="DML",
    ),
    _refused(
        ids.BIND_FOREIGN_DEVICE,
        "an object of another DirectML or Direct3D 12 device is used",
        "Objects of different devices cannot be used together, even on one adapter.",
        "Create all objects that are used together from one device.",
        "DD4: IDMLDevice",
    ),
    _refused(
        ids.BIND_THREAD,
        "two threads are inside methods of one binding table at the same time",
        "Binding tables are not thread-safe: the calls would write over each other's descriptors.",
        "Give each thread a table of its own, or take turns with a lock. One thread after the other is fine.",
        "BT14: IDMLBindingTable",
        api="DML",
    ),
    _refused(
        ids.BIND_TABLE_EMPTY,
        "a binding table without a desc is used",
        "A table that was created or reset without a DML_BINDING_TABLE_DESC has neither a dispatchable nor "
        "descriptors.",
        "Reset it with a desc first.",
        "BT1: IDMLBindingTable::Reset",
        api="DML",
    ),
    _refused(
        ids.BIND_TABLE_OTHER,
        "RecordDispatch gets a table that was made for another dispatchable",
        "The order of descriptors in a table is that of its own dispatchable: another one would read the wrong buffers.",
        "Create or reset the table with the dispatchable that is recorded.",
        "2.10: IDMLCommandRecorder::RecordDispatch",
        when=_RECORD,
        api="DML",
    ),
)

_DESCRIPTORS = (
    _refused(
        ids.DESC_COUNT,
        "a binding table has fewer descriptors than its dispatchable needs",
        "The table would write past its range, over the descriptors of something else.",
        "Take SizeInDescriptors from RequiredDescriptorCount of this dispatchable, and a heap that has room for all.",
        "BT2: DML_BINDING_TABLE_DESC",
        api="DML",
    ),
    _refused(
        ids.DESC_HEAP_NOT_VISIBLE,
        "the GPU handle is not of a shader-visible heap",
        "The GPU can only read descriptors in heaps created with SHADER_VISIBLE.",
        "Create the heap with D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE.",
        "BT2: DML_BINDING_TABLE_DESC",
        message_ids=(
            MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
            MessageId.SET_DESCRIPTOR_HEAP_INVALID,
        ),
    ),
    _refused(
        ids.DESC_HEAP_KIND,
        "a descriptor heap cannot be used for that",
        "Views of buffers are in heaps of type CBV_SRV_UAV; the CPU cannot read shader-visible heaps, so they are no "
        "source of copies.",
        "Use a heap of type CBV_SRV_UAV, and one without SHADER_VISIBLE to copy from.",
        "DH1: D3D12_DESCRIPTOR_HEAP_DESC",
        message_ids=(
            MessageId.CREATE_DESCRIPTOR_HEAP_INVALID_DESC,
            MessageId.INVALID_DESCRIPTOR_HANDLE,
            MessageId.COPY_DESCRIPTORS_WRITE_ONLY_DESCRIPTOR,
            MessageId.CREATE_DESCRIPTOR_HEAP_LARGE_NUM_DESCRIPTORS,
            MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
        ),
    ),
    _refused(
        ids.DESC_HEAP_NOT_SET,
        "the list has no descriptor heap set, or another than the table's",
        "A GPU has one heap of views at a time. Descriptors in another one are not found.",
        "Call SetDescriptorHeaps with the heap of the table's GPU handle before RecordDispatch; Reset of a list clears it.",
        "BT2: ID3D12GraphicsCommandList::SetDescriptorHeaps",
        when=_RECORD,
        message_ids=(
            MessageId.SET_DESCRIPTOR_HEAP_INVALID,
            MessageId.SET_DESCRIPTOR_TABLE_INVALID,
            MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
        ),
    ),
    _refused(
        ids.DESC_RANGE_SHARED,
        "two binding tables over the same descriptors are in use at the same time",
        "The GPU reads descriptors when it executes. If two tables wrote the same ones, both dispatches use the "
        "buffers of the second.",
        "Give each dispatch in flight a range of its own: add RequiredDescriptorCount of each to the next one's handles.",
        "BT14: IDMLBindingTable",
        when=_RECORD,
        message_ids=(MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,),
        api="DML",
    ),
    _refused(
        ids.DESC_INDEX,
        "a descriptor handle is past its heap, or of none",
        "Handles are numbers: the start of a heap plus a multiple of the increment. Past the end is other memory.",
        "Compare the index with NumDescriptors, and take the increment from GetDescriptorHandleIncrementSize.",
        "DH4: D3D12_CPU_DESCRIPTOR_HANDLE",
        when=When.CALL,
        message_ids=(
            MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_HEAP_INDEX_OUT_OF_BOUNDS,
            MessageId.INVALID_DESCRIPTOR_HANDLE,
            MessageId.COPY_DESCRIPTORS_INVALID_RANGES,
        ),
    ),
    _refused(
        ids.RES_VIEW,
        "the desc of a view does not fit its buffer or itself",
        "The view would show bytes behind the buffer, or bytes in a form that no shader can read. Direct3D removes the "
        "device.",
        "FirstElement and NumElements count elements of the view's format, or dwords of a raw view, not bytes.",
        "VW6: D3D12_BUFFER_UAV",
        when=When.CREATE,
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
    ),
)

OF_DESCRIPTORS = (
    Declaration(
        ids.DESC_OVERWRITTEN,
        "a descriptor is written that recorded or submitted work still needs",
        _CORRUPTION,
        _SUBMIT,
        why="The GPU reads descriptors when it executes, some time after ExecuteCommandLists: it then finds the new "
        "one and reads or writes the wrong buffer, depending on timing.",
        fix="Wait for the fence value behind the list before you write its descriptors again, or use others: a ring of "
        "as many ranges as there are frames in flight.",
        rule="DH10: ID3D12DescriptorHeap; BT14: IDMLBindingTable",
        message_ids=(MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,),
    ),
    Declaration(
        ids.DESC_NOT_COPIED,
        "a table writes its descriptors in another place than the GPU reads, and they were not copied there",
        _ERROR,
        _SUBMIT,
        why="The CPU and the GPU handle of a table may be of different heaps; then the program copies the whole range "
        "itself. Without that the GPU reads the old descriptors.",
        fix="Call CopyDescriptors after binding and before ExecuteCommandLists, or give the table both handles of the "
        "same shader-visible slot.",
        rule="BT2: DML_BINDING_TABLE_DESC",
        message_ids=(MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_UNINITIALIZED,),
        api="DML",
    ),
)

AT_EXECUTION = (
    Declaration(
        ids.BIND_PERSISTENT_CHANGED,
        "an operator runs with another persistent resource than its initializer filled, or with one that was written",
        _CORRUPTION,
        _EXECUTE,
        why="A persistent resource holds weights in a form that only DirectML knows. Any other write to it "
        "gives wrong results without an error.",
        fix="Keep the buffer, its offset and its contents as long as the operator is used, and give each operator bytes "
        "of its own.",
        rule="2.8: IDMLOperatorInitializer",
        api="DML",
    ),
    Declaration(
        ids.OP_NOT_INITIALIZED,
        "an operator is dispatched before its initializer has finished",
        _ERROR,
        _EXECUTE,
        why="Each compiled operator is initialised once before its first dispatch, even if it owns no tensors. Before "
        "that its results are undefined.",
        fix="Execute an operator initializer for it first. On another queue, let that Wait for a fence that is "
        "signalled behind the initializer.",
        rule="2.8: IDMLOperatorInitializer",
        api="DML",
    ),
    *(row for row in _BINDINGS if row.id in (ids.BIND_ALIAS, ids.BIND_OUT_OUT)),
)

_FAULTS = (
    _fault(
        ids.DESC_UNINIT,
        "the GPU uses a descriptor that was never written",
        _ERROR,
        "A new descriptor heap has undefined contents: a GPU reads from anywhere, or hangs.",
        "Bind every tensor, or create the view, before the list is executed.",
        "DH7: ID3D12DescriptorHeap",
        (
            MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_UNINITIALIZED,
            MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
        ),
    ),
    _fault(
        ids.DESC_STALE,
        "the GPU uses a descriptor of a buffer that was released",
        _ERROR,
        "A descriptor is an address; it keeps no buffer alive. The memory may belong to something else by then.",
        "Keep the buffers alive until the fence behind the list was reached.",
        "BT13: IDMLBindingTable",
        (
            MessageId.DESCRIPTOR_HANDLE_WITH_INVALID_RESOURCE,
            MessageId.GPU_BASED_VALIDATION_INVALID_RESOURCE,
        ),
    ),
    _fault(
        ids.DESC_KIND,
        "the GPU finds a descriptor of a kind that it cannot use",
        _ERROR,
        "Outputs need an unordered access view. A null descriptor describes no memory.",
        "Leave the descriptors of a binding table to the table: their order and kind are internal to DirectML.",
        "BT4: IDMLBindingTable",
        (
            MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_TYPE_MISMATCH,
            MessageId.CLEARUNORDEREDACCESSVIEW_INCOMPATIBLE_WITH_STRUCTURED_BUFFERS,
            MessageId.CLEARUNORDEREDACCESSVIEW_INVALID_RESOURCE_PTR,
            MessageId.CLEAR_UNORDERED_ACCESS_VIEW_INVALID_DESCRIPTOR_HANDLE,
        ),
    ),
    _fault(
        ids.MEM_OOB_READ,
        "the GPU reads outside of the range that was bound",
        _CORRUPTION,
        "What lies behind the range belongs to something else; the result depends on it.",
        "Bind all bytes of the tensor. Descriptors that the program writes itself must show as many.",
        "BT8: DML_BUFFER_BINDING",
        (
            MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,
            MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
        ),
    ),
    _fault(
        ids.MEM_OOB_WRITE,
        "the GPU writes outside of the range that was bound",
        _CORRUPTION,
        "What lies behind the range belongs to something else, which is overwritten.",
        "Bind all bytes of the tensor. Descriptors that the program writes itself must show as many.",
        "BT8: DML_BUFFER_BINDING",
        (
            MessageId.GPU_BASED_VALIDATION_RESOURCE_ACCESS_OUT_OF_BOUNDS,
            MessageId.HEAP_ADDRESS_RANGE_HAS_NO_RESOURCE,
        ),
    ),
    _fault(
        ids.MEM_MISALIGNED,
        "a tensor begins where no element of its type can stand",
        _ERROR,
        "GPUs load elements at multiples of their size; others are read wrong or not at all.",
        "Begin tensors at multiples of 16 bytes.",
        "BT8: DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT",
    ),
)

DECLARATIONS = (
    *_BINDINGS,
    *_DESCRIPTORS,
    *OF_DESCRIPTORS,
    *(row for row in AT_EXECUTION if row not in _BINDINGS),
    *_FAULTS,
)
