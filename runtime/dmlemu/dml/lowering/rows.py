"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import GRAPHS

GRAPH_EDGE_MISMATCH = GRAPHS.refused(
    "GRAPH_EDGE_MISMATCH",
    "an edge connects tensors that do not fit: their TotalTensorSizeInBytes, or who owns them; as INFO, "
    "when tensors of the same sizes have different strides",
    When.CREATE,
    "Along an edge the bytes of one tensor become those of the other, as they are. So there must be as "
    "many; and with other strides every element is found at another index: a transposition without an "
    "operator, or a mistake.",
    "Make the producer's output desc and the consumer's input desc describe the same bytes; an identity "
    "between them can write another layout.",
    rule="GR3: DML_GRAPH_DESC",
)

GRAPH_INPUT_UNSET = GRAPHS.refused(
    "GRAPH_INPUT_UNSET",
    "an input of a node has no edge, or two",
    When.CREATE,
    "A node's input has exactly one source; without one the operator would read nothing.",
    "Add the missing edge of InputEdges or IntermediateEdges, or remove the second one.",
    rule="GR2: DML_GRAPH_DESC",
)

GRAPH_OUTPUT_UNSET = GRAPHS.refused(
    "GRAPH_OUTPUT_UNSET",
    "an output of the graph has no producer, or two",
    When.CREATE,
    "Every graph output is the output of exactly one node.",
    "Give OutputEdges one edge for each GraphOutputIndex below OutputCount.",
    rule="GR1: DML_GRAPH_DESC",
)

GRAPH_INDEX = GRAPHS.refused(
    "GRAPH_INDEX",
    "an edge names a node, an input or an output that does not exist",
    When.CREATE,
    "Indices count from 0 in the lists of the desc; optional tensors that are absent are counted too.",
    "Count the operator's bindings in the order of its struct, absent optional ones included.",
    rule="GR1: DML_GRAPH_DESC",
)

GRAPH_CYCLE = GRAPHS.refused(
    "GRAPH_CYCLE",
    "the intermediate edges of a graph form a cycle",
    When.CREATE,
    "No node of the cycle could run first.",
    "Break the cycle: feed one of the inputs from outside the graph.",
    rule="GR1: DML_GRAPH_DESC",
)
