"""Group a: descriptions of tensors and operators."""

from .. import ids
from ..declaration import Declaration, When, refused
from ..report import Severity

_TENSOR = "DML_BUFFER_TENSOR_DESC"


def _advice(id: str, title: str, severity: Severity, why: str, fix: str, rule: str) -> Declaration:
    return Declaration(id, title, severity, When.CREATE, why, fix, f"{rule}: {_TENSOR}", api="DML")


def _refused(id: str, title: str, why: str, fix: str, rule: str) -> Declaration:
    return refused(id, title, When.CREATE, why, fix, rule, api="DML")


ADVICE = (
    _advice(
        ids.TENSOR_TOTAL_LARGE,
        "TotalTensorSizeInBytes is at least twice what sizes and strides reach",
        Severity.INFO,
        "It is legal: what follows the last element is padding, which DirectML may overwrite. It is often a stale "
        "size, or a number of bytes multiplied by the element size once more.",
        "Compute it as DMLCalcBufferTensorSize does: up to the last element, rounded up to 4.",
        "TN6",
    ),
    _advice(
        ids.TENSOR_STRIDE_BYTES,
        "the strides are exactly the bytes between the elements of a packed tensor",
        Severity.INFO,
        "Strides count elements. Given in bytes they reach as many times too far as an element has bytes, and the "
        "operator reads or writes every second or every fourth element. A view of one of several interleaved "
        "channels looks the same, so this is a remark; when TotalTensorSizeInBytes proves the mistake, "
        "TENSOR_TOTAL_SMALL reports it.",
        "Divide the strides by the element size, or omit them: None means packed.",
        "TN4",
    ),
    _advice(
        ids.TENSOR_LAYOUT_GUESS,
        "sizes in the order of NCHW have strides listed in the order of NHWC, or the reverse",
        Severity.WARNING,
        "Strides[i] is the step of Sizes[i]. Strides listed in the order in which the dimensions lie in memory "
        "mix the dimensions up: the operator reads elements twice and others never.",
        "Permute the strides, not the sizes: NCHW sizes [N, C, H, W] that lie as NHWC have strides "
        "[H*W*C, 1, W*C, C].",
        "TN4",
    ),
    _advice(
        ids.TENSOR_IN_OVERLAP,
        "two elements of an input are the same bytes, other than by stride 0",
        Severity.INFO,
        "It is legal for inputs (sliding windows are made so) and often a stride that is too small.",
        "Compute each stride as the product of the sizes behind it, in the order in memory.",
        "TN4",
    ),
    _advice(
        ids.TENSOR_PADDED_OUT,
        "an output has gaps between its elements",
        Severity.INFO,
        "The operator writes elements only: the bytes in the gaps keep their contents. Code that reads the buffer "
        "as if it were packed reads old contents.",
        "Read it back with the same strides; fill the buffer before if the gaps matter.",
        "TN11",
    ),
)


def _unusual(id: str, title: str, why: str, fix: str) -> Declaration:
    return Declaration(id, title, Severity.INFO, When.CREATE, why, fix, "the operator's page", api="DML")


UNUSUAL = (
    _unusual(
        ids.OP_WINDOW_COUNT,
        "the output of a convolution or pooling has another size than the window has positions",
        "Every element of the output is computed, and what its window covers outside of the input is padding. Some "
        "programs rely on that: the gradient of a filter as a convolution, poolings whose size is rounded up. Where "
        "nobody intended it, a size, a stride or a padding is wrong, and results are shifted, missing or made of "
        "padding.",
        "Compute the size as the operator's reference page says; or set EndPadding so that it has the size wanted.",
    ),
    _unusual(
        ids.OP_FIELD_IGNORED,
        "a field has a value that the operator does not use",
        "A forward convolution has no OutputPadding: the value changes nothing.",
        "Set it to 0.",
    ),
    _unusual(
        ids.OP_DIMENSION_COUNT,
        "tensors of GATHER_ND or SCATTER_ND have different DimensionCounts",
        "The pages want one DimensionCount, filled up with sizes of 1 in front. The operator counts dimensions from the "
        "last one, so that other counts say the same; TensorFlow's DirectML plugin passes them.",
        "Give all tensors one DimensionCount, with sizes of 1 in front.",
    ),
    _unusual(
        ids.OP_INDEX_ROWS,
        "IndicesTensor of GATHER has sizes other than 1 before its last IndexDimensions",
        "No page says what these dimensions mean. Here, as on GPUs, parts of InputTensor have indices of their own, "
        "one row after the other; a neural processor was seen to take the first row for all.",
        "Use GATHER_ND1 with BatchDimensionCount, or one GATHER for each row.",
    ),
)

DECLARATIONS = (
    *ADVICE,
    *UNUSUAL,
    _refused(
        ids.TENSOR_RANK,
        "DimensionCount is outside of 1 to 8 (1 to 5 below feature level 3.0), or not allowed for the operator",
        why="Every operator has its list of dimension counts; CreateOperator returns E_INVALIDARG for others.",
        fix="Add dimensions of size 1 in front, or merge neighbours that lie one behind the other in memory.",
        rule=f"TN2: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_SIZE_ZERO,
        "a size of a tensor is 0",
        why="A tensor without elements cannot be described; CreateOperator returns E_INVALIDARG.",
        fix="Leave the operator out when there is nothing to compute.",
        rule=f"TN3: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_DTYPE,
        "the data type is not one that the operator takes, or differs where one type is demanded",
        why="Operators do not convert: each tensor has its list of types, which grew with the feature levels.",
        fix="Put a CAST in front, or take a type of the list in the operator's reference page.",
        rule=f"TN1: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_TOTAL_SMALL,
        "TotalTensorSizeInBytes is less than what sizes and strides reach",
        why="The operator would access bytes that do not belong to the tensor.",
        fix="Compute it as DMLCalcBufferTensorSize does: up to the last element, rounded up to 4.",
        rule=f"TN6: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_TOTAL_UNALIGNED,
        "TotalTensorSizeInBytes is not a multiple of 4",
        why="DirectML reads and writes whole 32-bit words inside of a tensor's total size.",
        fix="Round it up to a multiple of 4; the buffer must hold the rounded size.",
        rule=f"TN6: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_INDEX_OVERFLOW,
        "elements or strided extent of a tensor pass 32 bits",
        why="Sizes and strides are UINTs, and the published size helper adds strided indices in 32 bits: it wraps "
        "and gives a size that is far too small.",
        fix="Split the tensor.",
        rule=f"TN3: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_ALIGN_BAD,
        "GuaranteedBaseOffsetAlignment is neither 0 nor a power of two of at least the element size",
        why="It is a promise about the offsets at which the tensor will be bound.",
        fix="Pass 0 when nothing is known, else the power of two that every bound offset is a multiple of.",
        rule=f"TN7: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_OUT_BROADCAST,
        "an output has stride 0 in a dimension of more than one element",
        why="All elements of that dimension would be written to one place, in no particular order.",
        fix="Give outputs strides that set every element apart; stride 0 is for inputs.",
        rule=f"TN5: {_TENSOR}",
    ),
    _refused(
        ids.TENSOR_OUT_OVERLAP,
        "two elements of an output are the same bytes",
        why="Which of the two remains depends on the order of the work, which differs from GPU to GPU.",
        fix="Make each stride at least the extent of the dimensions inside of it.",
        rule=f"TN5: {_TENSOR}",
    ),
    _refused(
        ids.OP_SHAPE,
        "a size does not follow from the other tensors' sizes as the operator demands",
        why="Output sizes are not computed for you: DirectML compares them with what follows from the inputs.",
        fix="Compute the size as the operator's reference page says.",
        rule="the operator's page",
    ),
    _refused(
        ids.OP_FIELD_RANGE,
        "a field of a desc has a value that it cannot have",
        why="Axes, counts, modes and windows are checked against the tensors when the operator is created.",
        fix="Take a value of the range that the report names.",
        rule="the operator's page",
    ),
    _refused(
        ids.OP_OPTIONAL,
        "an optional tensor is given, or missing, against the operator's rule",
        why="Some optional tensors belong together, or exclude each other.",
        fix="Give both or neither, as the report says.",
        rule="the operator's page",
    ),
    _refused(
        ids.OP_FUSED_ACTIVATION,
        "the activation cannot be fused into this operator at this feature level",
        why="Only certain activations run inside of another operator; the list grew with the feature levels.",
        fix="Run the activation as an operator of its own.",
        rule="TN10: fused activations",
    ),
    _refused(
        ids.OP_FEATURE_LEVEL,
        "an operator, a field or a call is newer than the device's feature level",
        why="A DirectML of that level does not know it.",
        fix="Create the device with a higher feature level, or use what came before.",
        rule="DML_FEATURE_LEVEL",
    ),
    _refused(
        ids.OP_LIMIT,
        "a leading size is above what the adapter's profile takes",
        why="Some drivers map leading dimensions to thread groups, of which there are at most 65535 per axis: "
        "CreateOperator then fails on one card and not on another.",
        fix="Split the tensor along that dimension, or merge it with a neighbour.",
        rule="D3D12_CS_DISPATCH_MAX_THREAD_GROUPS_PER_DIMENSION",
    ),
    _refused(
        ids.OP_NO_BROADCAST,
        "a tensor has size 1 where the operator does not broadcast by itself",
        why="Element-wise operators require equal sizes; broadcasting is done with strides.",
        fix="Give the full size and stride 0 in that dimension.",
        rule="the operator's page",
    ),
    _refused(
        ids.OP_NOT_EMULATED,
        "something is asked for that the emulator does not do",
        why="The call returns E_NOTIMPL instead of a wrong result.",
        fix="See the reference of operators for what is implemented.",
        rule="",
    ),
)
