"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import INITIALISATION
from ...diagnostics.report import Severity

MEM_UNINIT_READ = INITIALISATION.reported(
    "MEM_UNINIT_READ",
    "a dispatch reads bytes that nobody has written, or that a command left undefined",
    Severity.ERROR,
    When.EXECUTE,
    "On a GPU such bytes hold whatever was there: results differ from run to run and from card to card. "
    "Buffers that are created zeroed hold zeros, which is defined but rarely intended: that is a WARNING.",
    "Upload everything that is read, or give the tensor the sizes and strides of what was uploaded. Rows "
    "past OutputCount and temporary resources are undefined after the dispatch: do not read them.",
    rule="D3D12_HEAP_FLAG_CREATE_NOT_ZEROED; DML_BUFFER_TENSOR_DESC",
)

MEM_POISON_READ = INITIALISATION.reported(
    "MEM_POISON_READ",
    "a dispatch reads its temporary resource before it has written it",
    Severity.CORRUPTION,
    When.EXECUTE,
    "The contents of a temporary resource are undefined when a dispatch begins. The operator itself is at "
    "fault, or a graph whose edges reinterpret the bytes of a tensor with gaps. It is a WARNING where a "
    "node copies, casts, slices or gathers rows past a count, as a graph cannot leave them out: the "
    "elements that it makes of them are undefined, and MEM_UNINIT_READ reports who reads them.",
    "Give the tensors on both sides of the graph's edge the same sizes and strides; otherwise report it as "
    "a bug of the emulator.",
    rule="BT11: IDMLBindingTable::BindTemporaryResource",
)
