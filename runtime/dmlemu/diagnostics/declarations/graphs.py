"""Group b: compiling, and graphs."""

from .. import ids
from ..declaration import Declaration, When, refused
from ..report import Severity

_RULE = "DML_GRAPH_DESC"


def _refused(id: str, title: str, why: str, fix: str, rule: str = _RULE) -> Declaration:
    return refused(id, title, When.CREATE, why, fix, rule, api="DML")


ADVICE = (
    Declaration(
        ids.GRAPH_INPUT_UNUSED,
        "an input of a graph has no edge",
        Severity.INFO,
        When.CREATE,
        why="DirectML accepts it and still requires a binding for the input: often an edge was forgotten.",
        fix="Add the edge, or lower InputCount.",
        rule=f"GR5: {_RULE}",
        api="DML",
    ),
    _refused(
        ids.GRAPH_EDGE_MISMATCH,
        "an edge connects tensors that do not fit: their TotalTensorSizeInBytes, or who owns them; as INFO, when "
        "tensors of the same sizes have different strides",
        why="Along an edge the bytes of one tensor become those of the other, as they are. So there must be as many; "
        "and with other strides every element is found at another index: a transposition without an operator, or "
        "a mistake.",
        fix="Make the producer's output desc and the consumer's input desc describe the same bytes; an identity "
        "between them can write another layout.",
        rule=f"GR3: {_RULE}",
    ),
)

DECLARATIONS = (
    *ADVICE,
    Declaration(
        ids.GRAPH_FUSION_DIVERGES,
        "a fused activation gives another result than the same activation as an operator of its own",
        Severity.WARNING,
        When.TEST,
        why="Fused, a result is rounded once; unfused, what goes from one operator to the other is rounded to the "
        "tensor's type, and may overflow it. A driver is free to fuse or not, so that results differ between cards. "
        "On request: `dmlemu.testing.fusion.compare_fused` runs both.",
        fix="Scale the values so that both ways agree, or keep the tensor between them in FLOAT32.",
        rule="TN10: fused activations",
        api="DML",
    ),
    _refused(
        ids.GRAPH_INPUT_UNSET,
        "an input of a node has no edge, or two",
        why="A node's input has exactly one source; without one the operator would read nothing.",
        fix="Add the missing edge of InputEdges or IntermediateEdges, or remove the second one.",
        rule=f"GR2: {_RULE}",
    ),
    _refused(
        ids.GRAPH_OUTPUT_UNSET,
        "an output of the graph has no producer, or two",
        why="Every graph output is the output of exactly one node.",
        fix="Give OutputEdges one edge for each GraphOutputIndex below OutputCount.",
        rule=f"GR1: {_RULE}",
    ),
    _refused(
        ids.GRAPH_INDEX,
        "an edge names a node, an input or an output that does not exist",
        why="Indices count from 0 in the lists of the desc; optional tensors that are absent are counted too.",
        fix="Count the operator's bindings in the order of its struct, absent optional ones included.",
        rule=f"GR1: {_RULE}",
    ),
    _refused(
        ids.GRAPH_CYCLE,
        "the intermediate edges of a graph form a cycle",
        why="No node of the cycle could run first.",
        fix="Break the cycle: feed one of the inputs from outside the graph.",
        rule=f"GR1: {_RULE}",
    ),
    _refused(
        ids.EXEC_FLAG_BAD,
        "execution flags have unknown bits",
        why="DirectML returns E_INVALIDARG for flags that its version does not know.",
        fix="Pass members of DML_EXECUTION_FLAGS only.",
        rule="2.6: DML_EXECUTION_FLAGS",
    ),
)
