"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import INDICES
from ...diagnostics.report import Severity

MEM_INDEX_VALUE = INDICES.reported(
    "MEM_INDEX_VALUE",
    "a dispatch finds an index outside of the dimension that it chooses from",
    Severity.WARNING,
    When.EXECUTE,
    "The documents do not say which element such an index reads or writes, and drivers differ. Here a "
    "gather reads the nearest one that exists, so the result looks plausible and is wrong; a scatter writes"
    " nothing.",
    "Compute the indices for the sizes of the tensor that is bound. A negative index counts from the "
    "end, if the indices have a signed type; as UINT32 it is a large number.",
    rule="the operator's page, IndicesTensor",
)

MEM_SCATTER_RACE = INDICES.reported(
    "MEM_SCATTER_RACE",
    "a scatter writes two different values to one element",
    Severity.WARNING,
    When.EXECUTE,
    "Two equal indices are invalid, and the documents do not say which of their updates remains: a GPU "
    "writes them at the same time. Here the last one in row-major order remains, under dmlemu.chaos one "
    "that the seed draws. Updates with the same bits are not reported: the result is the same in any order.",
    "Give each element at most one index. To combine several updates of one element, add or reduce them first.",
    rule="DML_SCATTER_OPERATOR_DESC and DML_SCATTER_ND_OPERATOR_DESC, description",
)

MEM_READS_SCATTERED = INDICES.reported(
    "MEM_READS_SCATTERED",
    "a dispatch reads elements that are too scattered to be followed",
    Severity.MESSAGE,
    When.EXECUTE,
    "The elements that indices or windows with gaps select are tracked as up to 1024 regular pieces of the "
    "tensor, 32 along an axis for windows. If there are more, hazards and reads of unwritten memory in that"
    " tensor are not reported for this dispatch.",
    "No change is needed. A smaller test of the same program is tracked exactly.",
)
