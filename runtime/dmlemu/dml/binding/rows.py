"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity
from ...diagnostics.rule import Rule

BIND_COUNT = BINDINGS.refused(
    "BIND_COUNT",
    "there are more or fewer bindings than the operator has tensors",
    When.BIND,
    "Bindings belong to tensors by their position, so an optional tensor that is left out moves all behind "
    "it. DirectML removes the device.",
    "Bind one entry per tensor field of the operator's struct, in its order; DML_BINDING_TYPE_NONE stands "
    "for an optional tensor that is not used.",
    rule="BT5: IDMLBindingTable::BindInputs",
    api="DML",
)

BIND_SIZE_SMALL = BINDINGS.refused(
    "BIND_SIZE_SMALL",
    "a bound range has fewer bytes than its tensor",
    When.BIND,
    "The operator would read or write past the range, into whatever is there. DirectML removes the device.",
    "Bind at least TotalTensorSizeInBytes. Sizes count elements: multiply by the element size when you "
    "compute SizeInBytes.",
    rule="BT8: DML_BUFFER_BINDING",
    api="DML",
)

BIND_OFFSET_ALIGN = BINDINGS.refused(
    "BIND_OFFSET_ALIGN",
    "the offset of a binding is not as aligned as it must be",
    When.BIND,
    "Tensors begin at multiples of 16 bytes, or of the GuaranteedBaseOffsetAlignment that their desc "
    "promised; temporary and persistent resources at multiples of 256. Kernels are compiled to rely on "
    "that.",
    "Round offsets up when you suballocate buffers.",
    rule="BT8: DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT",
    api="DML",
)

BIND_HEAP_TYPE = BINDINGS.refused(
    "BIND_HEAP_TYPE",
    "a buffer lies in a heap of a type that dispatches cannot use",
    When.BIND,
    "A dispatch accesses its buffers as UAVs, which upload and readback heaps do not allow. Only an "
    "initializer may read its inputs from an upload heap.",
    "Copy the data into a buffer in a heap of type DEFAULT with CopyBufferRegion, and bind that.",
    rule="BT9: IDMLBindingTable",
    api="DML",
)

BIND_NOT_UAV = BINDINGS.refused(
    "BIND_NOT_UAV",
    "a buffer was created without D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS",
    When.BIND,
    "DirectML binds every buffer as an unordered access view, inputs too.",
    "Create the buffer with ALLOW_UNORDERED_ACCESS.",
    rule="BT8: IDMLBindingTable",
    api="DML",
)

BIND_OWNED_BY_DML = BINDINGS.refused(
    "BIND_OWNED_BY_DML",
    "a tensor flagged OWNED_BY_DML is bound at execution, or is not bound at initialisation",
    When.BIND,
    "The flag hands the tensor's data over to DirectML: the initializer copies it into the persistent "
    "resource, and executions use that copy.",
    "Bind the tensor to the initializer, and DML_BINDING_TYPE_NONE to the operator; or leave the flag out.",
    rule="BT7: DML_TENSOR_FLAG_OWNED_BY_DML",
    api="DML",
)

BIND_TEMP_SMALL = BINDINGS.refused(
    "BIND_TEMP_SMALL",
    "the range bound as temporary resource is smaller than the dispatch needs",
    When.BIND,
    "The operator keeps results between its steps there, and would write past the end. DirectML removes the"
    " device.",
    "Bind at least TemporaryResourceSize bytes of this dispatchable: an initializer has its own size, and a"
    " buffer that several dispatches share needs the largest of theirs.",
    rule="BT11: IDMLBindingTable::BindTemporaryResource",
    api="DML",
)

BIND_PERSISTENT_SMALL = BINDINGS.refused(
    "BIND_PERSISTENT_SMALL",
    "the range bound as persistent resource is smaller than the operator needs",
    When.BIND,
    "It holds what the initializer prepared: weights, constants. A part of it would be read as something "
    "else. DirectML removes the device.",
    "Bind at least PersistentResourceSize bytes of the compiled operator, the same range that was the "
    "initializer's output.",
    rule="BT12: IDMLBindingTable::BindPersistentResource",
    api="DML",
)

BIND_ALIAS = BINDINGS.refused(
    "BIND_ALIAS",
    "a dispatch writes bytes that it also uses otherwise",
    When.RECORD,
    "Threads of a dispatch run in any order: some read their input after others have overwritten it. Only "
    "operators documented as in place may have their output where their input is, in the very same layout.",
    "Give the output bytes of its own. What counts are the elements, not the ranges: interleaved columns "
    "are fine.",
    rule="BT10: Binding in DirectML",
    api="DML",
)

BIND_OUT_OUT = BINDINGS.refused(
    "BIND_OUT_OUT",
    "two outputs of a dispatch share bytes",
    When.RECORD,
    "Which of the two values remains depends on the order of threads.",
    "Give each output bytes of its own, up to its TotalTensorSizeInBytes.",
    rule="BT10: Binding in DirectML",
    api="DML",
)

BIND_LATE = BINDINGS.refused(
    "BIND_LATE",
    "a table is bound again after RecordDispatch, before its list was executed",
    When.RECORD,
    "RecordDispatch copies no bindings: they are in the descriptor heap, where the GPU reads them when it "
    "executes. Binding again changes the dispatch that was recorded before.",
    "Use another table, over other descriptors, for the next dispatch. Operators compiled with "
    "DESCRIPTORS_VOLATILE may be bound until their list is executed.",
    rule="BT14: IDMLBindingTable",
    message_ids=(MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,),
    api="DML",
)

BIND_THREAD = BINDINGS.refused(
    "BIND_THREAD",
    "two threads are inside methods of one binding table at the same time",
    When.BIND,
    "Binding tables are not thread-safe: the calls would write over each other's descriptors.",
    "Give each thread a table of its own, or take turns with a lock. One thread after the other is fine.",
    rule="BT14: IDMLBindingTable",
    api="DML",
)

BIND_TABLE_EMPTY = BINDINGS.refused(
    "BIND_TABLE_EMPTY",
    "a binding table without a desc is used",
    When.BIND,
    "A table that was created or reset without a DML_BINDING_TABLE_DESC has neither a dispatchable nor "
    "descriptors.",
    "Reset it with a desc first.",
    rule="BT1: IDMLBindingTable::Reset",
    api="DML",
)

DESC_COUNT = BINDINGS.refused(
    "DESC_COUNT",
    "a binding table has fewer descriptors than its dispatchable needs",
    When.BIND,
    "The table would write past its range, over the descriptors of something else.",
    "Take SizeInDescriptors from RequiredDescriptorCount of this dispatchable, and a heap that has room for"
    " all.",
    rule="BT2: DML_BINDING_TABLE_DESC",
    api="DML",
)

DESC_OVERWRITTEN = BINDINGS.reported(
    "DESC_OVERWRITTEN",
    "a descriptor is written that recorded or submitted work still needs",
    Severity.CORRUPTION,
    When.SUBMIT,
    "The GPU reads descriptors when it executes, some time after ExecuteCommandLists: it then finds the new"
    " one and reads or writes the wrong buffer, depending on timing.",
    "Wait for the fence value behind the list before you write its descriptors again, or use others: a ring"
    " of as many ranges as there are frames in flight.",
    rule="DH10: ID3D12DescriptorHeap; BT14: IDMLBindingTable",
    message_ids=(MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,),
)

# --- rules ---


class BT1(Rule):
    says = "A table without a desc is empty; with one it has a dispatchable of its device."


class BT3(Rule):
    says = "Where no descriptors are required the handles are not looked at."


class BT4(Rule):
    says = "The table may be reset or released right after RecordDispatch."


class BT5(Rule):
    says = "As many bindings as tensors, optional ones included."


class BT6(Rule):
    says = "NONE exactly where a tensor is absent; a buffer exactly where one is wanted."


class BT7(Rule):
    says = "OWNED_BY_DML inputs are bound at initialisation, and NONE at execution."


class BT8(Rule):
    says = (
        "A resource, an offset that is a multiple of 16, at least TotalTensorSizeInBytes, inside the buffer, "
        "with ALLOW_UNORDERED_ACCESS. A smaller range removes the DirectML device even where the buffer goes on"
        " behind it, and even if the elements that matter are inside."
    )


class BT9(Rule):
    says = (
        "Heaps of type DEFAULT; an initializer's inputs may also lie in UPLOAD heaps and, from level 2_0, in "
        "CUSTOM ones. Reserved buffers have no heap type and pass, whatever heaps their tiles lie in."
    )


class BT13(Rule):
    says = "Buffers are not kept alive by a table; one temporary buffer may serve many dispatches."


class BT15(Rule):
    says = "Reset forgets all bindings."


class BT16(Rule):
    says = "Binding nothing at all is legal only where nothing is wanted."
