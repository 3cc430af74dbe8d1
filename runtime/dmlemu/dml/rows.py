"""Rows of this room: its checks, and the rules that its calls keep."""

from ..diagnostics.declaration import When
from ..diagnostics.groups import BINDINGS, GRAPHS, TENSORS
from ..diagnostics.message_id import MessageId
from ..diagnostics.report import Severity
from ..diagnostics.rule import Rule

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
    "The pages want one DimensionCount, filled up with sizes of 1 in front. The operator counts dimensions "
    "from the last one, so that other counts say the same; TensorFlow's DirectML plugin passes them.",
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
    "Add dimensions of size 1 in front, or merge neighbours that lie one behind the other in memory.",
    rule="TN2: DML_BUFFER_TENSOR_DESC",
)

TENSOR_SIZE_ZERO = TENSORS.refused(
    "TENSOR_SIZE_ZERO",
    "a size of a tensor is 0",
    When.CREATE,
    "A tensor without elements cannot be described; CreateOperator returns E_INVALIDARG.",
    "Leave the operator out when there is nothing to compute.",
    rule="TN3: DML_BUFFER_TENSOR_DESC",
)

TENSOR_DTYPE = TENSORS.refused(
    "TENSOR_DTYPE",
    "the data type is not one that the operator takes, or differs where one type is demanded",
    When.CREATE,
    "Operators do not convert: each tensor has its list of types, which grew with the feature levels.",
    "Put a CAST in front, or take a type of the list in the operator's reference page.",
    rule="TN1: DML_BUFFER_TENSOR_DESC",
)

TENSOR_TOTAL_SMALL = TENSORS.refused(
    "TENSOR_TOTAL_SMALL",
    "TotalTensorSizeInBytes is less than what sizes and strides reach",
    When.CREATE,
    "The operator would access bytes that do not belong to the tensor.",
    "Compute it as DMLCalcBufferTensorSize does: up to the last element, rounded up to 4.",
    rule="TN6: DML_BUFFER_TENSOR_DESC",
)

TENSOR_TOTAL_UNALIGNED = TENSORS.refused(
    "TENSOR_TOTAL_UNALIGNED",
    "TotalTensorSizeInBytes is not a multiple of 4",
    When.CREATE,
    "DirectML reads and writes whole 32-bit words inside of a tensor's total size.",
    "Round it up to a multiple of 4; the buffer must hold the rounded size.",
    rule="TN6: DML_BUFFER_TENSOR_DESC",
)

TENSOR_INDEX_OVERFLOW = TENSORS.refused(
    "TENSOR_INDEX_OVERFLOW",
    "elements or strided extent of a tensor pass 32 bits",
    When.CREATE,
    "Sizes and strides are UINTs, and the published size helper adds strided indices in 32 bits: it wraps "
    "and gives a size that is far too small.",
    "Split the tensor.",
    rule="TN3: DML_BUFFER_TENSOR_DESC",
)

TENSOR_ALIGN_BAD = TENSORS.refused(
    "TENSOR_ALIGN_BAD",
    "GuaranteedBaseOffsetAlignment is neither 0 nor a power of two of at least the element size",
    When.CREATE,
    "It is a promise about the offsets at which the tensor will be bound.",
    "Pass 0 when nothing is known, else the power of two that every bound offset is a multiple of.",
    rule="TN7: DML_BUFFER_TENSOR_DESC",
)

TENSOR_OUT_BROADCAST = TENSORS.refused(
    "TENSOR_OUT_BROADCAST",
    "an output has stride 0 in a dimension of more than one element",
    When.CREATE,
    "All elements of that dimension would be written to one place, in no particular order.",
    "Give outputs strides that set every element apart; stride 0 is for inputs.",
    rule="TN5: DML_BUFFER_TENSOR_DESC",
)

TENSOR_OUT_OVERLAP = TENSORS.refused(
    "TENSOR_OUT_OVERLAP",
    "two elements of an output are the same bytes",
    When.CREATE,
    "Which of the two remains depends on the order of the work, which differs from GPU to GPU.",
    "Make each stride at least the extent of the dimensions inside of it.",
    rule="TN5: DML_BUFFER_TENSOR_DESC",
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
    "Some drivers map leading dimensions to thread groups, of which there are at most 65535 per axis: "
    "CreateOperator then fails on one card and not on another.",
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
    rule="2.6: DML_EXECUTION_FLAGS",
)

BIND_TYPE = BINDINGS.refused(
    "BIND_TYPE",
    "a tensor that needs a buffer gets none, or one that is absent gets a buffer",
    When.BIND,
    "DirectML knows from the operator's desc which tensors there are, and removes the device when the "
    "bindings say otherwise.",
    "Bind a buffer exactly for the tensors that the desc has, and DML_BINDING_TYPE_NONE for the others. An "
    "initializer takes one BUFFER_ARRAY per operator.",
    rule="BT6: IDMLBindingTable::BindInputs",
    api="DML",
)

BIND_TEMP_MISSING = BINDINGS.refused(
    "BIND_TEMP_MISSING",
    "a dispatch needs a temporary resource, and none is bound",
    When.RECORD,
    "The operator keeps results between its steps there. Without it the device is removed.",
    "Bind a buffer of at least TemporaryResourceSize bytes, as GetBindingProperties returns for this "
    "dispatchable; it changes with sizes, flags and device.",
    rule="BT11: IDMLBindingTable::BindTemporaryResource",
    api="DML",
)

BIND_PERSISTENT_MISSING = BINDINGS.refused(
    "BIND_PERSISTENT_MISSING",
    "a dispatch needs a persistent resource, and none is bound",
    When.RECORD,
    "It holds what the initializer prepared: weights, constants. It is bound for every dispatch, not only once.",
    "Bind the buffer that was the initializer's output, with at least PersistentResourceSize bytes.",
    rule="BT12: IDMLBindingTable::BindPersistentResource",
    api="DML",
)

BIND_TABLE_OTHER = BINDINGS.refused(
    "BIND_TABLE_OTHER",
    "RecordDispatch gets a table that was made for another dispatchable",
    When.RECORD,
    "The order of descriptors in a table is that of its own dispatchable: another one would read the wrong "
    "buffers.",
    "Create or reset the table with the dispatchable that is recorded.",
    rule="2.10: IDMLCommandRecorder::RecordDispatch",
    api="DML",
)

DESC_RANGE_SHARED = BINDINGS.refused(
    "DESC_RANGE_SHARED",
    "two binding tables over the same descriptors are in use at the same time",
    When.RECORD,
    "The GPU reads descriptors when it executes. If two tables wrote the same ones, both dispatches use the"
    " buffers of the second.",
    "Give each dispatch in flight a range of its own: add RequiredDescriptorCount of each to the next one's"
    " handles.",
    rule="BT14: IDMLBindingTable",
    message_ids=(MessageId.STATIC_DESCRIPTOR_INVALID_DESCRIPTOR_CHANGE,),
    api="DML",
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
    "signalled behind the initializer.",
    rule="2.8: IDMLOperatorInitializer",
    api="DML",
)

# --- rules ---


class DD1(Rule):
    says = (
        "A minimum feature level above the device's is DXGI_ERROR_UNSUPPORTED. The emulated level is chosen by "
        "`create_device(feature_level=)`."
    )
    call = "DMLCreateDevice1"


class DD2(Rule):
    says = (
        "The DEBUG flag needs the Direct3D debug layer before DirectML 1.10 (level 5_2): "
        "DXGI_ERROR_SDK_COMPONENT_MISSING. From then on mistakes are printed."
    )
    call = "DML_CREATE_DEVICE_FLAGS"


class DD3(Rule):
    says = "Every call makes a new device, which keeps its Direct3D 12 device alive."


class DD4(Rule):
    says = "Objects of different DirectML devices, or of different Direct3D 12 devices, are not mixed."
    call = "IDMLDevice"


class DD5(Rule):
    says = (
        "CheckFeatureSupport: an unknown feature is DXGI_ERROR_UNSUPPORTED, a wrong struct E_INVALIDARG; the "
        "highest supported level of the list is returned."
    )
    call = "IDMLDevice::CheckFeatureSupport"


class DD6(Rule):
    says = "The data types that clients ask for are supported, and IDENTITY compiles."


class DD7(Rule):
    says = "MakeResident and Evict take compiled operators and initializers, and count."


class DD8(Rule):
    says = "A compiled operator keeps its operator."


class TN1(Rule):
    says = (
        "Tensors are buffer tensor descs of a known data type that the operator allows at the device's feature "
        "level."
    )


class TN2(Rule):
    says = "DimensionCount is 1 to 8, below level 3_0 1 to 5, and within the operator's limits."


class TN3(Rule):
    says = "Sizes are at least 1; elements and strided extent are at most 2^32 - 1."


class TN4(Rule):
    says = (
        "No strides means packed; given, there is one per dimension: any order, 0 repeats, inputs may overlap "
        "themselves."
    )


class TN5(Rule):
    says = (
        "Every element of an output has a place of its own. The documents only imply it; the test is exact for "
        "every layout."
    )


class TN6(Rule):
    says = "TotalTensorSizeInBytes is a multiple of 4 and holds the last element; more is padding."


class TN7(Rule):
    says = (
        "GuaranteedBaseOffsetAlignment is 0 or a power of two of at least the element size; bound offsets keep "
        "it."
    )


class TN8(Rule):
    says = "Only inputs are OWNED_BY_DML; other flags are unknown."


class TN9(Rule):
    says = "Operator rules: sizes, types, optional tensors. A fused activation has no tensors."


class TN10(Rule):
    says = "What can be fused into what, from which level on."


class TN11(Rule):
    says = (
        "Nothing is written but the outputs' own bytes; padding inside TotalTensorSizeInBytes may be. Here it "
        "is kept at every strictness, and chaos overwrites what follows the last element "
        "([0024](../decisions/0024-what-lies-between-elements-is-kept.md))."
    )


class R2_6(Rule, label="2.6"):
    says = "CompileOperator takes operators of its own device and known flags. No flag changes a result."
    call = "DML_EXECUTION_FLAGS"


class R2_8(Rule, label="2.8"):
    says = (
        "An operator is initialised before its first dispatch, in submission order; owned inputs are copied "
        "then; its persistent resource stays where and what it is; repeats are tolerated. At strictness "
        "`strict` it is checked at ExecuteCommandLists, and what queues and other commands do when the GPU "
        "executes."
    )


class R2_10(Rule, label="2.10"):
    says = (
        "RecordDispatch: an open DIRECT or COMPUTE list, the table's own dispatchable, everything bound, "
        "buffers in state UNORDERED_ACCESS."
    )
    call = "IDMLDevice"


class R2_11(Rule, label="2.11"):
    says = (
        "Removal: by the Direct3D 12 device, or by a mistake at strictness `runtime`; it does not spread to "
        "other devices. The reason after a wrong bind is E_INVALIDARG: the documents name none."
    )
    call = "IDMLDevice::GetDeviceRemovedReason"


class BT2(Rule):
    says = (
        "SizeInDescriptors is at least the required count; the range lies in a descriptor heap; the GPU "
        "handle's heap is shader-visible and set on the list. CPU handles of another heap are legal if the "
        "program copies the range before ExecuteCommandLists, which is checked at `strict`."
    )
    call = "the error of a handle of no descriptor, or with fewer than ``size`` descriptors behind it."


class BT10(Rule):
    says = (
        "Outputs meet nothing else that the dispatch uses; in-place operators may share an input's bytes in the"
        " same layout. What counts are elements, and the padding of outputs: interleaved tensors are fine. Seen"
        " through aliased placed buffers at RecordDispatch; at `strict`, through tiles of reserved ones and for"
        " operators with DESCRIPTORS_VOLATILE, when the GPU executes. Not checked at `runtime`."
    )
    call = "the error if written bytes overlap another binding, except for documented in-place execution."


class BT11(Rule):
    says = "A temporary resource exactly when one is needed: offset a multiple of 256, large enough, DEFAULT."


class BT12(Rule):
    says = "The same for the persistent resource; never for an initializer."


class BT14(Rule):
    says = (
        "Descriptors are not written while a recorded dispatch needs them; with DESCRIPTORS_VOLATILE they may "
        "be until submission. Not checked at `runtime`. Nor do two tables share descriptors, and at `strict` "
        "views and copies are watched too. Two threads are never inside one table at a time."
    )
    call = "the error if another table has overwritten a descriptor of this one."
