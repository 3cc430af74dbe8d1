"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import BINDINGS
from ...diagnostics.message_id import MessageId
from ...diagnostics.report import Severity

DESC_NOT_COPIED = BINDINGS.reported(
    "DESC_NOT_COPIED",
    "a table writes its descriptors in another place than the GPU reads, and they were not copied there",
    Severity.ERROR,
    When.SUBMIT,
    "The CPU and the GPU handle of a table may be of different heaps; then the program copies the whole "
    "range itself. Without that the GPU reads the old descriptors.",
    "Call CopyDescriptors after binding and before ExecuteCommandLists, or give the table both handles of "
    "the same shader-visible slot.",
    rule="BT2: DML_BINDING_TABLE_DESC",
    message_ids=(MessageId.GPU_BASED_VALIDATION_DESCRIPTOR_UNINITIALIZED,),
    api="DML",
)
