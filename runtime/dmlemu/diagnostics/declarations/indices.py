"""Group g, of indices: tensors whose elements choose elements of other tensors."""

from .. import ids
from ..declaration import Declaration, When
from ..report import Severity

DECLARATIONS = (
    Declaration(
        ids.MEM_INDEX_VALUE,
        "a dispatch finds an index outside of the dimension that it chooses from",
        Severity.WARNING,
        When.EXECUTE,
        why="The documents do not say which element such an index reads, and drivers differ. Here it is the nearest "
        "one that exists, so the result looks plausible and is wrong.",
        fix="Compute the indices for the sizes of the tensor that is bound. A negative index counts from the end, if "
        "the indices have a signed type; of UINT32 it is a large number.",
        rule="the operator's page, IndicesTensor",
    ),
    Declaration(
        ids.MEM_READS_SCATTERED,
        "a dispatch reads elements that are too scattered to be followed",
        Severity.MESSAGE,
        When.EXECUTE,
        why="The elements that indices or windows with gaps select are tracked as up to 1024 regular pieces of the "
        "tensor, 32 along an axis for windows. If there are more, hazards and reads of unwritten memory in that "
        "tensor are not reported for this dispatch.",
        fix="No change is needed. A smaller test of the same program is tracked exactly.",
    ),
)
