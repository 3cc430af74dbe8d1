"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import PROVENANCE
from ...diagnostics.report import Severity

LAYOUT_HANDOVER = PROVENANCE.reported(
    "LAYOUT_HANDOVER",
    "a dispatch reads a tensor through another layout than it was written through",
    Severity.WARNING,
    When.EXECUTE,
    "All bytes were written, so nothing faults: but the elements that arrive are not the elements that were"
    " meant, or not in that order. Views of a tensor are not reported: slices, reshapes, broadcasts, axes "
    "that are split or joined, 64-bit integers whose lower words were written as UINT32. Axes that are "
    "transposed with their sizes, as is often meant, are an INFO, once for each writer and reader. What "
    "FILL_VALUE_CONSTANT and FILL_VALUE_SEQUENCE write may be the bits of another type: types are not "
    "compared there, and another layout of elements of that size is an INFO.",
    "Give the reading tensor the data type, sizes and strides of the one that was written; to change the "
    "order of the elements, dispatch an ELEMENT_WISE_IDENTITY from one layout to the other.",
    rule="DML_BUFFER_TENSOR_DESC",
)

READ_MIXED = PROVENANCE.reported(
    "READ_MIXED",
    "a dispatch reads a tensor that the last write filled only in part; the rest is older",
    Severity.WARNING,
    When.EXECUTE,
    "The rest is what happened to lie there: a cleared byte, a row of the previous frame, the end of "
    "another tensor. Results look plausible and change with what ran before.",
    "Compare the offsets in bytes and the sizes of the two tensors that are named. A tensor that is meant "
    "to be filled bit by bit is cleared by itself, from its first byte to its last, not with the memory "
    "around it.",
    rule="DML_BUFFER_BINDING; DML_BUFFER_TENSOR_DESC",
)

MEM_PADDING_READ = PROVENANCE.reported(
    "MEM_PADDING_READ",
    "a dispatch reads bytes that follow the last element of an output, inside its TotalTensorSizeInBytes",
    Severity.INFO,
    When.EXECUTE,
    "DirectML may overwrite these bytes when it writes the output. Devices are known to keep them, and "
    "programs of Microsoft's rely on it, so they are kept here, too. Only chaos overwrites them, in its "
    "mode 'padding'.",
    "Read only elements that were written, or write the bytes that follow them after the dispatch.",
    rule="TN11: DML_BUFFER_TENSOR_DESC",
)

READ_NOT_COMPARED = PROVENANCE.reported(
    "READ_NOT_COMPARED",
    "a dispatch reads a tensor with too many elements to find the writer of each",
    Severity.MESSAGE,
    When.EXECUTE,
    "Several writes with gaps overlap there, and more than four million elements would have to be "
    "examined one by one. LAYOUT_HANDOVER and READ_MIXED are not reported for this read.",
    "No change is needed. A smaller test of the same program is compared exactly.",
    no_example="It takes tensors of more than four million elements with gaps.",
)

WRITTEN_NEVER_READ = PROVENANCE.reported(
    "WRITTEN_NEVER_READ",
    "nobody reads an upload, a copy or the output of a dispatch before the program ends",
    Severity.INFO,
    When.EXIT,
    "Either the work is unnecessary, or it went to the wrong place and its reader takes other bytes. "
    "It is a WARNING if LAYOUT_HANDOVER or READ_MIXED was reported for a tensor like it, or next to it. "
    "Only what was written before the CPU last read results is reported, and only if none of its "
    "bytes, and no other output of the dispatch, was read.",
    "Compare its offset with the one that the reader is bound at, or remove the work.",
    rule="DML_BUFFER_BINDING",
)

OVERWRITTEN_UNREAD = PROVENANCE.reported(
    "OVERWRITTEN_UNREAD",
    "an output or a copy is written over as a whole before anybody has read it",
    Severity.INFO,
    When.EXIT,
    "The second write is too early, or at the wrong place: memory that two tensors share is given to the "
    "second while the first is still to be read. It is a WARNING if LAYOUT_HANDOVER or READ_MIXED was "
    "reported for a tensor like it, or next to it. A command that repeats, as in every frame, may overwrite "
    "its own output.",
    "Compare the offsets of the two, and move the readers of the first before the second.",
    rule="DML_BUFFER_BINDING",
)
