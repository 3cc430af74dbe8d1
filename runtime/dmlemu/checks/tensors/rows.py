"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import TENSORS
from ...diagnostics.report import Severity

TENSOR_TOTAL_LARGE = TENSORS.reported(
    "TENSOR_TOTAL_LARGE",
    "TotalTensorSizeInBytes is at least twice what sizes and strides reach",
    Severity.INFO,
    When.CREATE,
    "It is legal: what follows the last element is padding, which DirectML may overwrite. It is often a "
    "stale size, or a number of bytes multiplied by the element size once more.",
    "Compute it as DMLCalcBufferTensorSize does: up to the last element, rounded up to 4.",
    rule="TN6: DML_BUFFER_TENSOR_DESC",
)

TENSOR_STRIDE_BYTES = TENSORS.reported(
    "TENSOR_STRIDE_BYTES",
    "the strides are exactly the bytes between the elements of a packed tensor",
    Severity.INFO,
    When.CREATE,
    "Strides count elements. Given in bytes they reach as many times too far as an element has bytes, "
    "and the operator reads or writes every second or every fourth element. A view of one of several "
    "interleaved channels looks the same, so this is only an INFO report; where TotalTensorSizeInBytes "
    "proves the mistake, TENSOR_TOTAL_SMALL reports it.",
    "Divide the strides by the element size, or omit them: None means packed.",
    rule="TN4: DML_BUFFER_TENSOR_DESC",
)

TENSOR_LAYOUT_GUESS = TENSORS.reported(
    "TENSOR_LAYOUT_GUESS",
    "sizes in the order of NCHW have strides listed in the order of NHWC, or the reverse",
    Severity.WARNING,
    When.CREATE,
    "Strides[i] is the step of Sizes[i]. Strides listed in the order in which the dimensions lie in "
    "memory mix the dimensions up: the operator reads some elements twice and others never.",
    "Permute the strides, not the sizes: NCHW sizes [N, C, H, W] that lie as NHWC have strides [H*W*C, 1, "
    "W*C, C].",
    rule="TN4: DML_BUFFER_TENSOR_DESC",
)

TENSOR_IN_OVERLAP = TENSORS.reported(
    "TENSOR_IN_OVERLAP",
    "two elements of an input are the same bytes, other than by stride 0",
    Severity.INFO,
    When.CREATE,
    "It is legal for inputs (sliding windows are made so) and often a stride that is too small.",
    "Compute each stride as the product of the sizes that follow it, in the order in memory.",
    rule="TN4: DML_BUFFER_TENSOR_DESC",
)

TENSOR_PADDED_OUT = TENSORS.reported(
    "TENSOR_PADDED_OUT",
    "an output has gaps between its elements",
    Severity.INFO,
    When.CREATE,
    "The operator writes elements only: the bytes in the gaps keep their contents. Code that reads the "
    "buffer as if it were packed reads old contents.",
    "Read it back with the same strides; fill the buffer before if the gaps matter.",
    rule="TN11: DML_BUFFER_TENSOR_DESC",
)
