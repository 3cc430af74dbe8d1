"""Rows of this room: its checks, and the rules that its calls keep."""

from ..d3d12.core.rows import BIND_FOREIGN_DEVICE, DESC_HEAP_KIND, DEVICE_REMOVED, OBJECT_DELETED_IN_USE
from ..d3d12.descriptors.rows import DESC_HEAP_NOT_VISIBLE
from ..d3d12.lists.rows import DESC_HEAP_NOT_SET
from ..diagnostics.declaration import When
from ..diagnostics.groups import BINDINGS, GRAPHS, TENSORS
from ..diagnostics.message_id import MessageId
from ..diagnostics.report import HResult, Severity, Strictness
from ..diagnostics.rule import Breach, Rule

OP_WINDOW_COUNT = TENSORS.reported(
    "OP_WINDOW_COUNT",
    "the output of a convolution or pooling has another size than the window has positions",
    Severity.INFO,
    When.CREATE,
    "Every element of the output is computed, and what its window covers outside of the input is padding. "
    "Some programs rely on that: the gradient of a filter as a convolution, poolings whose size is rounded "
    "up. Where nobody intended it, a size, a stride or a padding is wrong, and results are shifted, missing"
    " or made of padding.",
    "Compute the size as the operator's reference page says; or set EndPadding so that it has the size wanted.",
    rule="the operator's page",
)

OP_FIELD_IGNORED = TENSORS.reported(
    "OP_FIELD_IGNORED",
    "a field has a value that the operator does not use",
    Severity.INFO,
    When.CREATE,
    "A forward convolution has no OutputPadding: the value changes nothing.",
    "Set it to 0.",
    rule="the operator's page",
)

OP_DIMENSION_COUNT = TENSORS.reported(
    "OP_DIMENSION_COUNT",
    "tensors of GATHER_ND or SCATTER_ND have different DimensionCounts",
    Severity.INFO,
    When.CREATE,
    "The pages want one DimensionCount, filled up with sizes of 1 in front. The operator counts "
    "dimensions from the last one, so that other counts mean the same; TensorFlow's DirectML plugin "
    "passes them.",
    "Give all tensors one DimensionCount, with sizes of 1 in front.",
    rule="the operator's page",
)

OP_INDEX_ROWS = TENSORS.reported(
    "OP_INDEX_ROWS",
    "IndicesTensor of GATHER has sizes other than 1 before its last IndexDimensions",
    Severity.INFO,
    When.CREATE,
    "No page says what these dimensions mean. Here, as on GPUs, parts of InputTensor have indices of their "
    "own, one row after the other; a neural processor was seen to take the first row for all.",
    "Use GATHER_ND1 with BatchDimensionCount, or one GATHER for each row.",
    rule="the operator's page",
)

TENSOR_RANK = TENSORS.refused(
    "TENSOR_RANK",
    "DimensionCount is outside of 1 to 8 (1 to 5 below feature level 3.0), or not allowed for the operator",
    When.CREATE,
    "Every operator has its list of dimension counts; CreateOperator returns E_INVALIDARG for others.",
    "Add dimensions of size 1 in front, or merge neighbours that are contiguous in memory.",
    rule="TN2: DML_BUFFER_TENSOR_DESC",
)

TENSOR_SIZE_ZERO = TENSORS.refused(
    "TENSOR_SIZE_ZERO",
    "a size of a tensor is 0",
    When.CREATE,
    "A tensor without elements cannot be described; CreateOperator returns E_INVALIDARG.",
    "Leave the operator out when there is nothing to compute.",
    rule="DML_BUFFER_TENSOR_DESC",
)

TENSOR_DTYPE = TENSORS.refused(
    "TENSOR_DTYPE",
    "the data type is not one that the operator takes, or differs where one type is demanded",
    When.CREATE,
    "Operators do not convert: each tensor has its list of types, which grew with the feature levels.",
    "Put a CAST in front, or take a type of the list in the operator's reference page.",
    rule="DML_BUFFER_TENSOR_DESC",
)

TENSOR_TOTAL_SMALL = TENSORS.refused(
    "TENSOR_TOTAL_SMALL",
    "TotalTensorSizeInBytes is less than what sizes and strides reach",
    When.CREATE,
    "The operator would access bytes that do not belong to the tensor.",
    "Compute it as DMLCalcBufferTensorSize does: up to the last element, rounded up to 4.",
    rule="DML_BUFFER_TENSOR_DESC",
)

TENSOR_TOTAL_UNALIGNED = TENSORS.refused(
    "TENSOR_TOTAL_UNALIGNED",
    "TotalTensorSizeInBytes is not a multiple of 4",
    When.CREATE,
    "DirectML reads and writes whole 32-bit words inside of a tensor's total size.",
    "Round it up to a multiple of 4; the buffer must hold the rounded size.",
    rule="DML_BUFFER_TENSOR_DESC",
)

TENSOR_INDEX_OVERFLOW = TENSORS.refused(
    "TENSOR_INDEX_OVERFLOW",
    "elements or strided extent of a tensor pass 32 bits",
    When.CREATE,
    "Sizes and strides are UINTs, and the published size helper adds strided indices in 32 bits: it wraps "
    "and gives a size that is far too small.",
    "Split the tensor.",
    rule="DML_BUFFER_TENSOR_DESC",
)

TENSOR_ALIGN_BAD = TENSORS.refused(
    "TENSOR_ALIGN_BAD",
    "GuaranteedBaseOffsetAlignment is neither 0 nor a power of two of at least the element size",
    When.CREATE,
    "It is a promise about the offsets at which the tensor will be bound.",
    "Pass 0 when nothing is known, else the power of two that every bound offset is a multiple of.",
    rule="DML_BUFFER_TENSOR_DESC",
)

TENSOR_OUT_BROADCAST = TENSORS.refused(
    "TENSOR_OUT_BROADCAST",
    "an output has stride 0 in a dimension of more than one element",
    When.CREATE,
    "All elements of that dimension would be written to one place, in no particular order.",
    "Give outputs strides that set every element apart; stride 0 is for inputs.",
    rule="DML_BUFFER_TENSOR_DESC",
)

TENSOR_OUT_OVERLAP = TENSORS.refused(
    "TENSOR_OUT_OVERLAP",
    "two elements of an output are the same bytes",
    When.CREATE,
    "Which of the two remains depends on the order of the work, which differs from GPU to GPU.",
    "Make each stride at least the extent of the dimensions inside of it.",
    rule="DML_BUFFER_TENSOR_DESC",
)

OP_SHAPE = TENSORS.refused(
    "OP_SHAPE",
    "a size does not follow from the other tensors' sizes as the operator demands",
    When.CREATE,
    "Output sizes are not computed for you: DirectML compares them with what follows from the inputs.",
    "Compute the size as the operator's reference page says.",
    rule="the operator's page",
)

OP_FIELD_RANGE = TENSORS.refused(
    "OP_FIELD_RANGE",
    "a field of a desc has a value that it cannot have",
    When.CREATE,
    "Axes, counts, modes and windows are checked against the tensors when the operator is created.",
    "Take a value of the range that the report names.",
    rule="the operator's page",
)

OP_OPTIONAL = TENSORS.refused(
    "OP_OPTIONAL",
    "an optional tensor is given, or missing, against the operator's rule",
    When.CREATE,
    "Some optional tensors belong together, or exclude each other.",
    "Give both or neither, as the report says.",
    rule="the operator's page",
)

OP_FUSED_ACTIVATION = TENSORS.refused(
    "OP_FUSED_ACTIVATION",
    "the activation cannot be fused into this operator at this feature level",
    When.CREATE,
    "Only certain activations run inside of another operator; the list grew with the feature levels.",
    "Run the activation as an operator of its own.",
    rule="TN10: fused activations",
)

OP_FEATURE_LEVEL = TENSORS.refused(
    "OP_FEATURE_LEVEL",
    "an operator, a field or a call is newer than the device's feature level",
    When.CREATE,
    "A DirectML of that level does not know it.",
    "Create the device with a higher feature level, or use what came before.",
    rule="DML_FEATURE_LEVEL",
)

OP_LIMIT = TENSORS.refused(
    "OP_LIMIT",
    "a leading size is above what the adapter's profile takes",
    When.CREATE,
    "Some drivers map leading dimensions to thread groups, at most 65535 per axis: CreateOperator then "
    "fails on one card and not on another.",
    "Split the tensor along that dimension, or merge it with a neighbour.",
    rule="D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION",
)

OP_NO_BROADCAST = TENSORS.refused(
    "OP_NO_BROADCAST",
    "a tensor has size 1 where the operator does not broadcast by itself",
    When.CREATE,
    "Element-wise operators require equal sizes; broadcasting is done with strides.",
    "Give the full size and stride 0 in that dimension.",
    rule="the operator's page",
)

EXEC_FLAG_BAD = GRAPHS.refused(
    "EXEC_FLAG_BAD",
    "execution flags have unknown bits",
    When.CREATE,
    "DirectML returns E_INVALIDARG for flags that its version does not know.",
    "Pass members of DML_EXECUTION_FLAGS only.",
    rule="DML_EXECUTION_FLAGS",
)

BIND_TYPE = BINDINGS.refused(
    "BIND_TYPE",
    "a tensor that needs a buffer gets none, or one that is absent gets a buffer",
    When.BIND,
    "DirectML knows from the operator's desc which tensors there are, and removes the device when the "
    "bindings say otherwise.",
    "Bind a buffer exactly for the tensors that the desc has, and DML_BINDING_TYPE_NONE for the others. An "
    "initializer takes one BUFFER_ARRAY per operator.",
    api="DML",
    rule="IDMLBindingTable::BindInputs",
)

BIND_TEMP_MISSING = BINDINGS.refused(
    "BIND_TEMP_MISSING",
    "a dispatch needs a temporary resource, and none is bound",
    When.RECORD,
    "The operator keeps results between its steps there. Without it the device is removed.",
    "Bind a buffer of at least TemporaryResourceSize bytes, as GetBindingProperties returns for this "
    "dispatchable; it changes with sizes, flags and device.",
    api="DML",
    rule="IDMLBindingTable::BindTemporaryResource",
)

BIND_PERSISTENT_MISSING = BINDINGS.refused(
    "BIND_PERSISTENT_MISSING",
    "a dispatch needs a persistent resource, and none is bound",
    When.RECORD,
    "It holds what the initializer prepared: weights, constants. It is bound for every dispatch, not only once.",
    "Bind the buffer that was the initializer's output, with at least PersistentResourceSize bytes.",
    api="DML",
    rule="IDMLBindingTable::BindPersistentResource",
)

BIND_TABLE_OTHER = BINDINGS.refused(
    "BIND_TABLE_OTHER",
    "RecordDispatch gets a table that was made for another dispatchable",
    When.RECORD,
    "The order of descriptors in a table is that of its own dispatchable: another one would read the wrong "
    "buffers.",
    "Create or reset the table with the dispatchable that is recorded.",
    api="DML",
    rule="IDMLCommandRecorder::RecordDispatch",
)

DESC_RANGE_SHARED = BINDINGS.refused(
    "DESC_RANGE_SHARED",
    "two binding tables over the same descriptors are in use at the same time",
    When.RECORD,
    "The GPU reads descriptors when it executes. If two tables wrote the same ones, both dispatches use the"
    " buffers of the second.",
    "Give each dispatch in flight a range of its own: add RequiredDescriptorCount of each to the next one's"
    " handles.",
    level=Strictness.DEBUG,
    api="DML",
    rule="IDMLBindingTable",
)

BIND_PERSISTENT_CHANGED = BINDINGS.reported(
    "BIND_PERSISTENT_CHANGED",
    "an operator runs with another persistent resource than its initializer filled, or with one that was "
    "written",
    Severity.CORRUPTION,
    When.EXECUTE,
    "A persistent resource holds weights in a form that only DirectML knows. Any other write to it gives "
    "wrong results without an error.",
    "Keep the buffer, its offset and its contents as long as the operator is used, and give each operator "
    "bytes of its own.",
    rule="2.8: IDMLOperatorInitializer",
    api="DML",
)

OP_NOT_INITIALIZED = BINDINGS.reported(
    "OP_NOT_INITIALIZED",
    "an operator is dispatched before its initializer has finished",
    Severity.ERROR,
    When.EXECUTE,
    "Each compiled operator is initialised once before its first dispatch, even if it owns no tensors. "
    "Before that its results are undefined.",
    "Execute an operator initializer for it first. On another queue, let that Wait for a fence that is "
    "signalled after the initializer.",
    rule="2.8: IDMLOperatorInitializer",
    api="DML",
)

DESC_COUNT = BINDINGS.refused(
    "DESC_COUNT",
    "a binding table has fewer descriptors than its dispatchable needs",
    When.BIND,
    "The table would write past its range, over the descriptors of something else.",
    "Take SizeInDescriptors from RequiredDescriptorCount of this dispatchable, and a heap that has room for"
    " all.",
    api="DML",
    rule="DML_BINDING_TABLE_DESC",
)

BIND_THREAD = BINDINGS.refused(
    "BIND_THREAD",
    "two threads are inside methods of one binding table at the same time",
    When.BIND,
    "Binding tables are not thread-safe: the calls would write over each other's descriptors.",
    "Give each thread a table of its own, or take turns with a lock. One thread after the other is fine.",
    level=Strictness.DEBUG,
    api="DML",
    rule="IDMLBindingTable",
)

BIND_ALIAS = BINDINGS.refused(
    "BIND_ALIAS",
    "a dispatch writes bytes that it also uses otherwise",
    When.RECORD,
    "Threads of a dispatch run in any order: some read their input after others have overwritten it. Only "
    "operators documented as in place may have their output where their input is, in the very same layout.",
    "Give the output bytes of its own. What counts are the elements, not the ranges: interleaved columns "
    "are fine.",
    level=Strictness.DEBUG,
    api="DML",
    rule="Binding in DirectML",
)

BIND_OUT_OUT = BINDINGS.refused(
    "BIND_OUT_OUT",
    "two outputs of a dispatch share bytes",
    When.RECORD,
    "Which of the two values remains depends on the order of threads.",
    "Give each output bytes of its own, up to its TotalTensorSizeInBytes.",
    level=Strictness.DEBUG,
    api="DML",
    rule="Binding in DirectML",
)

BIND_LATE = BINDINGS.refused(
    "BIND_LATE",
    "a table is bound again after RecordDispatch, before its list was executed",
    When.RECORD,
    "RecordDispatch copies no bindings: they are in the descriptor heap, where the GPU reads them when it "
    "executes. Binding again changes the dispatch that was recorded before.",
    "Use another table, over other descriptors, for the next dispatch. Operators compiled with "
    "DESCRIPTORS_VOLATILE may be bound until their list is executed.",
    level=Strictness.DEBUG,
    api="DML",
    rule="IDMLBindingTable",
)

DESC_OVERWRITTEN = BINDINGS.reported(
    "DESC_OVERWRITTEN",
    "a descriptor is written that recorded or submitted work still needs",
    Severity.CORRUPTION,
    When.SUBMIT,
    "The GPU reads descriptors when it executes, some time after ExecuteCommandLists: it then finds the new"
    " one and reads or writes the wrong buffer, depending on timing.",
    "Wait for the fence value that is signalled after the list before you write its descriptors again, "
    "or use others: a ring of as many ranges as there are frames in flight.",
    rule="DH10: ID3D12DescriptorHeap; BT14: IDMLBindingTable",
    message_ids=(MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,),
)

BIND_OFFSET_ALIGN = BINDINGS.refused(
    "BIND_OFFSET_ALIGN",
    "the offset of a binding does not have the required alignment",
    When.BIND,
    "Tensors begin at multiples of 16 bytes, or of the GuaranteedBaseOffsetAlignment that their desc "
    "promised; temporary and persistent resources at multiples of 256. Kernels are compiled to rely on "
    "that.",
    "Round offsets up when you suballocate buffers.",
    api="DML",
    rule="DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT",
)


# --- rules ---


class DD1(Rule):
    says = (
        "A minimum feature level above the device's is DXGI_ERROR_UNSUPPORTED. The emulated level is chosen by "
        "`create_device(feature_level=)`."
    )
    call = "DMLCreateDevice1"

    d3_d12_device = Breach(OP_FIELD_RANGE, "", field="D3D12Device", expected="a Direct3D 12 device")
    minimum_feature_level = Breach(
        OP_FEATURE_LEVEL,
        "MinimumFeatureLevel ({given}) is above the device's ({level}).",
        field="MinimumFeatureLevel",
        hresult=HResult.DXGI_ERROR_UNSUPPORTED,
    )
    flags = Breach(EXEC_FLAG_BAD, "Flags ({given}) has unknown bits.", field="Flags")


class DD2(Rule):
    says = (
        "The DEBUG flag needs the Direct3D debug layer before DirectML 1.10 (level 5_2): "
        "DXGI_ERROR_SDK_COMPONENT_MISSING. From then on mistakes are printed."
    )
    call = "DML_CREATE_DEVICE_FLAGS"
    operation = "DMLCreateDevice1"
    hresult = HResult.DXGI_ERROR_SDK_COMPONENT_MISSING

    flags = Breach(
        OP_FIELD_RANGE,
        "Flags (DEBUG) needs the Direct3D 12 debug layer before DirectML 1.10.",
        field="Flags",
        given="DEBUG",
        expected="NONE, or a d3d12 device of strictness debug or strict",
    )


class DD3(Rule):
    says = "Every call makes a new device, which keeps its Direct3D 12 device alive."


class DD4(Rule):
    says = "Objects of different DirectML devices, or of different Direct3D 12 devices, are not mixed."
    call = "IDMLDevice"
    api = "DML"

    command_list = Breach(
        BIND_FOREIGN_DEVICE,
        "{command_list} belongs to another Direct3D 12 device than {device}.",
        field="CommandList",
    )
    foreign_device = Breach(BIND_FOREIGN_DEVICE, "{field} ({title}) belongs to another DirectML device.")

    other_device = Breach(
        BIND_FOREIGN_DEVICE, "{title} is bound to {resource} of another Direct3D 12 device."
    )


class DD5(Rule):
    says = (
        "CheckFeatureSupport: an unknown feature is DXGI_ERROR_UNSUPPORTED, a wrong struct E_INVALIDARG; the "
        "highest supported level of the list is returned."
    )
    call = "IDMLDevice::CheckFeatureSupport"

    feature_level = Breach(
        OP_FEATURE_LEVEL, "{field} ({given}) is not supported.", hresult=HResult.DXGI_ERROR_UNSUPPORTED
    )
    requested_feature_levels = Breach(
        OP_FIELD_RANGE,
        "{field} ({given}) is not {expected}.",
        field="RequestedFeatureLevels",
        expected="a list of levels",
    )


class DD6(Rule):
    says = "The data types that clients ask for are supported, and IDENTITY compiles."


class DD7(Rule):
    says = "MakeResident and Evict take compiled operators and initializers, and count."

    field_range = Breach(OP_FIELD_RANGE, "{field} ({given}) is not {expected}.", expected="a resident object")


class DD8(Rule):
    says = "A compiled operator keeps its operator."


class TN1(Rule):
    says = (
        "Tensors are buffer tensor descs of a known data type that the operator allows at the device's feature "
        "level."
    )
    call = "DML_BUFFER_TENSOR_DESC"

    dtype = Breach(
        TENSOR_DTYPE, "{field} ({given}) is not a data type.", given="UNKNOWN", expected="a known type"
    )
    data_type = Breach(
        TENSOR_DTYPE,
        "DataType ({given}) is not a DML_TENSOR_DATA_TYPE.",
        field="DataType",
        expected="a DML_TENSOR_DATA_TYPE",
    )


class TN2(Rule):
    says = "DimensionCount is 1 to 8, below level 3_0 1 to 5, and within the operator's limits."
    call = "DML_BUFFER_TENSOR_DESC"

    rank = Breach(
        TENSOR_RANK,
        "{field} ({given}) is not between 1 and {most}, the limit of feature level {level}.",
    )


class TN3(Rule):
    says = "Sizes are at least 1; elements and strided extent are at most 2^32 - 1."
    call = "DML_BUFFER_TENSOR_DESC"

    too_many_elements = Breach(TENSOR_INDEX_OVERFLOW, "{field} hold {given}, more than 32 bits can count.")
    too_wide = Breach(
        TENSOR_INDEX_OVERFLOW,
        "{field} spread the tensor over {given}, more than 32 bits can address.",
    )
    zero = Breach(
        TENSOR_SIZE_ZERO,
        "{field} ({given}) is zero; a tensor has no empty dimension.",
        given=0,
        expected=">= 1",
    )


class TN4(Rule):
    says = (
        "No strides means packed; given, there is one per dimension: any order, 0 repeats, inputs may overlap "
        "themselves."
    )
    call = "DML_BUFFER_TENSOR_DESC"
    operation = "BufferTensorDesc"

    strides = Breach(TENSOR_RANK, "{field} has {given}, but DimensionCount is {rank}.", field="Strides")


class TN5(Rule):
    says = (
        "Every element of an output has a place of its own. The documents only imply it; the test is exact for "
        "every layout."
    )
    call = "DML_BUFFER_TENSOR_DESC"

    out_overlap = Breach(
        TENSOR_OUT_OVERLAP,
        "{field} put elements {first} and {second} at one address, {offset} elements from the start.",
        expected="a separate address for each element",
    )
    out_broadcast = Breach(
        TENSOR_OUT_BROADCAST,
        "{field} (0) gives the {size} elements of dimension {dimension} of an output one address.",
        given=0,
        expected=">= 1",
    )


class TN6(Rule):
    says = "TotalTensorSizeInBytes is a multiple of 4 and holds the last element; more is padding."
    call = "DML_BUFFER_TENSOR_DESC"

    total_small = Breach(
        TENSOR_TOTAL_SMALL, "{field} ({given}) is less than the {least} bytes that sizes and strides reach."
    )
    total_unaligned = Breach(
        TENSOR_TOTAL_UNALIGNED, "{field} ({given}) is not a multiple of 4.", expected="a multiple of 4"
    )


class TN7(Rule):
    says = (
        "GuaranteedBaseOffsetAlignment is 0 or a power of two of at least the element size; bound offsets keep "
        "it."
    )
    call = "DML_BUFFER_TENSOR_DESC"

    align_bad = Breach(
        TENSOR_ALIGN_BAD,
        "{field} ({given}) is not a power of two of at least the element size ({element_size}).",
    )

    offset = Breach(
        BIND_OFFSET_ALIGN,
        "{title} is bound at Offset ({given}) of {resource}, which is not a multiple of {alignment}, {alignment_name}.",
    )


class TN8(Rule):
    says = "Only inputs are OWNED_BY_DML; other flags are unknown."
    call = "DML_BUFFER_TENSOR_DESC"

    unknown_bits = Breach(
        OP_FIELD_RANGE, "{field} has unknown bits (0x{unknown}).", expected="NONE or OWNED_BY_DML"
    )
    owned_output = Breach(
        OP_FIELD_RANGE,
        "{field} (OWNED_BY_DML) is set on an output; only inputs can be OWNED_BY_DML.",
        given="OWNED_BY_DML",
        expected="NONE",
    )


class TN9(Rule):
    says = "Operator rules: sizes, types, optional tensors. A fused activation has no tensors."


class TN10(Rule):
    says = "Which activations can be fused into which operators, and from which feature level on."


class TN11(Rule):
    says = (
        "Nothing is written but the outputs' own bytes; padding inside TotalTensorSizeInBytes may be. Here it "
        "is kept at every strictness, and chaos overwrites what follows the last element "
        "([0024](../decisions/0024-what-lies-between-elements-is-kept.md))."
    )


class R2_6(Rule, label="2.6"):
    says = "CompileOperator takes operators of its own device and known flags. No flag changes a result."
    call = "DML_EXECUTION_FLAGS"

    flags = Breach(EXEC_FLAG_BAD, "Flags ({given}) has unknown bits.", field="Flags")


class R2_8(Rule, label="2.8"):
    says = (
        "An operator is initialised before its first dispatch, in submission order; owned inputs are "
        "copied then; its persistent resource keeps its place and its contents; repeated "
        "initialisation is tolerated. Strictness `strict` checks this at ExecuteCommandLists, and "
        "checks what other queues and commands do when the GPU executes."
    )
    call = "IDMLCommandRecorder::RecordDispatch"

    dispatchable = Breach(
        OP_NOT_INITIALIZED,
        "{title} is dispatched, and no initializer of it has been executed before.",
        field="Dispatchable",
        given="not initialized",
        expected="initialized",
        hint="record an operator initializer for it, earlier in this list or in one submitted before",
    )
    persistent_resource = Breach(
        BIND_PERSISTENT_CHANGED,
        "{title} is dispatched with {given} as its persistent resource, but its initializer has filled "
        "{expected}.",
        field="PersistentResource",
        severity=Severity.CORRUPTION,
    )
    field_range = Breach(OP_FIELD_RANGE, "")


class R2_10(Rule, label="2.10"):
    says = (
        "RecordDispatch: an open DIRECT or COMPUTE list, the table's own dispatchable, everything bound, "
        "buffers in state UNORDERED_ACCESS."
    )
    call = "IDMLDevice"
    api = "DML"

    bindings = Breach(
        BIND_TABLE_OTHER, "{bindings} is for {dispatchable}, not for {title}.", field="Bindings"
    )
    field_range = Breach(OP_FIELD_RANGE, "")
    deleted_in_use = Breach(
        OBJECT_DELETED_IN_USE,
        "{field} ({object}) was released.",
        given="a released object",
        expected="a live object",
        message_id=MessageId.OBJECT_DELETED_WHILE_STILL_IN_USE,
    )

    unbound = Breach(BIND_TYPE, "{field} of {title} is not bound; it needs {size} bytes.", given="no binding")


class R2_11(Rule, label="2.11"):
    says = (
        "Removal: by the Direct3D 12 device, or by a mistake at strictness `runtime`; it does not spread to "
        "other devices. The reason after a wrong bind is E_INVALIDARG: the documents name none."
    )
    call = "IDMLDevice::GetDeviceRemovedReason"
    api = "DML"
    hresult = HResult.DXGI_ERROR_DEVICE_REMOVED

    removed = Breach(DEVICE_REMOVED, "The DirectML device is removed {why}.")


class BT2(Rule):
    says = (
        "SizeInDescriptors is at least the required count; the range lies in a descriptor heap; the GPU "
        "handle's heap is shader-visible and set on the list. CPU handles of another heap are legal if the "
        "program copies the range before ExecuteCommandLists, which is checked at `strict`."
    )
    call = "DML_BINDING_TABLE_DESC"
    api = "DML"

    bindings = Breach(
        DESC_HEAP_NOT_SET,
        "The descriptors of {bindings} lie in {expected}, but {set_heap} set on {command_list}.",
        field="Bindings",
        hint="call SetDescriptorHeaps with the heap of the table before RecordDispatch",
    )
    too_few = Breach(
        DESC_COUNT,
        "{field} ({given}) leaves {left} descriptors of its heap, less than SizeInDescriptors ({size}).",
    )
    size_in_descriptors = Breach(
        DESC_COUNT,
        "SizeInDescriptors ({given}) is less than the {needed} descriptors of {dispatchable}.",
        field="SizeInDescriptors",
        hint="absent optional tensors, temporary and persistent resources have descriptors too",
    )
    in_no_heap = Breach(
        DESC_HEAP_KIND, "{field} ({given}) lies in no {kind}.", message_id=MessageId.INVALID_DESCRIPTOR_HANDLE
    )
    in_no_visible_heap = Breach(
        DESC_HEAP_NOT_VISIBLE,
        "{field} ({given}) lies in no {kind}.",
        message_id=MessageId.DESCRIPTOR_HEAP_NOT_SHADER_VISIBLE,
    )
    not_a_number = Breach(
        OP_FIELD_RANGE,
        "{field} ({given}) is not a number that the field can hold.",
        expected="an unsigned integer",
    )


class BT10(Rule):
    says = (
        "Outputs share no bytes with anything else that the dispatch uses; in-place operators may "
        "share an input's bytes in the same layout. What counts are elements, and the padding of "
        "outputs: interleaved tensors are fine. Seen through aliased placed buffers at RecordDispatch; "
        "at `strict`, through tiles of reserved ones and for operators with DESCRIPTORS_VOLATILE, when "
        "the GPU executes. Not checked at `runtime`."
    )

    both_written = Breach(
        BIND_OUT_OUT, "{second} of {title} overlaps {first}, and {why}.", expected="bytes of its own"
    )
    aliased = Breach(
        BIND_ALIAS, "{second} of {title} overlaps {first}, and {why}.", expected="bytes of its own"
    )


class BT14(Rule):
    says = (
        "Descriptors are not written while a recorded dispatch needs them; with DESCRIPTORS_VOLATILE they may "
        "be until submission. Not checked at `runtime`. Nor do two tables share descriptors, and at `strict` "
        "views and copies are watched too. Two threads are never inside one table at a time."
    )
    call = "IDMLCommandRecorder::RecordDispatch"
    api = "DML"

    overwritten = Breach(
        DESC_RANGE_SHARED,
        "{field} of {title} was bound in {where}, which {writer} has overwritten.",
        hint="give each binding table descriptors of its own",
        message_id=MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,
    )
    two_threads = Breach(
        BIND_THREAD,
        "Thread '{thread}' calls {operation} of {object} while thread '{other_thread}' is inside {other_method} of it.",
        field="this",
        expected="one thread at a time",
        hint="give each thread a binding table of its own, or hold a lock around the calls",
    )

    bound = Breach(
        DESC_OVERWRITTEN,
        "{field} of {title} is bound in {where}, which {reader} still needs{operand}.",
        given="a descriptor in use",
        expected="a descriptor that no recorded dispatch needs",
        message_id=MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,
        severity=Severity.CORRUPTION,
    )
    late = Breach(
        BIND_LATE,
        "{field} of {title} is bound after RecordDispatch has recorded {reader} with this table.",
        given="a descriptor in use",
        expected="a descriptor that no recorded dispatch needs",
        hint="bind everything before RecordDispatch, and use another table for the next dispatch",
        message_id=MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,
    )
    shared = Breach(
        DESC_RANGE_SHARED,
        "{field} of {title} is bound in {where}, which is also a descriptor of {owner}, and {reader} still needs "
        "it{operand}.",
        given="a descriptor in use",
        expected="a descriptor that no recorded dispatch needs",
        hint="give each binding table descriptors of its own",
        message_id=MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,
    )


class DeviceCall(Rule, label=""):
    """Arguments of methods of the DirectML device."""

    call = "IDMLDevice1"

    feature_level = Breach(
        OP_FEATURE_LEVEL,
        "IDMLDevice1 requires LEVEL_2_1; this device has {given}.",
        expected="LEVEL_2_1 or higher",
        hresult=HResult.E_NOINTERFACE,
    )
    field_range = Breach(OP_FIELD_RANGE, "{field} ({given}) is not {expected}.")
    limit = Breach(OP_LIMIT, "{field} ({given}) is above this adapter's limit for a leading size ({limit}).")


class ScalarUnionValue(Rule, label=""):
    """A value has a member of the union that holds it."""

    call = "DML_SCALAR_UNION"
    operation = "ScalarUnion"

    no_member = Breach(
        OP_FIELD_RANGE,
        "DML_SCALAR_UNION has no member for {data_type}.",
        field="DataType",
        expected="8 to 64 bits",
    )
    bytes = Breach(OP_FIELD_RANGE, "Bytes ({given}) is not 8 bytes.", field="Bytes", expected="8 bytes")
    value = Breach(OP_FIELD_RANGE, "{given} does not fit {data_type}.", field="Value")


class TensorField(Rule, label=""):
    """Fields of a buffer tensor desc are numbers."""

    call = "DML_BUFFER_TENSOR_DESC"
    operation = "BufferTensorDesc"

    not_a_number = Breach(OP_FIELD_RANGE, "{field} ({given}) is not a {type}.")
    not_a_sequence = Breach(
        OP_FIELD_RANGE, "{field} ({given}) is not a sequence of UINT.", expected="one integer per dimension"
    )


class Evaluated(Rule, label=""):
    """Arrays of `evaluate` have the types and sizes of their tensors."""

    call = "DML_BUFFER_TENSOR_DESC"
    operation = "evaluate"

    dtype = Breach(TENSOR_DTYPE, "{field} has dtype {given}; expected {expected}.")
    shape = Breach(OP_SHAPE, "{field} has shape {given}; expected {expected}.")
    strides = Breach(
        OP_SHAPE,
        "{field} has different values for elements that share a place: strides {given}; expected {expected}.",
        expected="one value for each place",
    )
    value = Breach(OP_FIELD_RANGE, "{field} has an element of {given}; {data_type} holds {expected}.")
