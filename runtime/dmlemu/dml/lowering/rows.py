"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import GRAPHS
from ...diagnostics.report import HResult
from ...diagnostics.rows import OUT_OF_MEMORY
from ...diagnostics.rule import Breach, Rule
from ..rows import OP_FEATURE_LEVEL, OP_FIELD_RANGE

GRAPH_EDGE_MISMATCH = GRAPHS.refused(
    "GRAPH_EDGE_MISMATCH",
    "an edge connects tensors that do not fit: their TotalTensorSizeInBytes, or who owns them; as INFO, "
    "when tensors of the same sizes have different strides",
    When.CREATE,
    "Along an edge the bytes of one tensor become the bytes of the other, unchanged, so both must have "
    "the same number of bytes. With other strides every element is found at another index: a "
    "transposition without an operator, or a mistake.",
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
    rule="DML_GRAPH_DESC",
)

GRAPH_OUTPUT_UNSET = GRAPHS.refused(
    "GRAPH_OUTPUT_UNSET",
    "an output of the graph has no producer, or two",
    When.CREATE,
    "Every graph output is the output of exactly one node.",
    "Give OutputEdges one edge for each GraphOutputIndex below OutputCount.",
    rule="DML_GRAPH_DESC",
)

GRAPH_INDEX = GRAPHS.refused(
    "GRAPH_INDEX",
    "an edge names a node, an input or an output that does not exist",
    When.CREATE,
    "Indices count from 0 in the lists of the desc; optional tensors that are absent are counted too.",
    "Count the operator's bindings in the order of its struct, absent optional ones included.",
    rule="DML_GRAPH_DESC",
)

GRAPH_CYCLE = GRAPHS.refused(
    "GRAPH_CYCLE",
    "the intermediate edges of a graph form a cycle",
    When.CREATE,
    "No node of the cycle could run first.",
    "Break the cycle: feed one of the inputs from outside the graph.",
    rule="DML_GRAPH_DESC",
)

# --- rules ---


class GR1(Rule):
    says = (
        "Indices name what exists. A node's input has one edge, an output of the graph has one; inputs of the "
        "graph and outputs of nodes may have many. There is no cycle."
    )
    call = "DML_GRAPH_DESC"
    operation = "CompileGraph"

    cycle = Breach(
        GRAPH_CYCLE, "The intermediate edges form a cycle: {given}.", expected="a graph without cycles"
    )
    no_such = Breach(GRAPH_INDEX, "{field} ({given}) names no {kind}; there {are} {count}.")
    input_fed_twice = Breach(
        GRAPH_INPUT_UNSET,
        "{path} feeds {input}, which another edge already feeds.",
        given="two edges",
        expected="one edge for each input",
    )
    output_fed_twice = Breach(
        GRAPH_OUTPUT_UNSET,
        "{path} feeds output {index} of the graph, which {other_edge} already feeds.",
        given="two edges",
        expected="one edge for each output",
    )
    output_not_fed = Breach(
        GRAPH_OUTPUT_UNSET,
        "OutputEdges has no edge for output {index} of the graph's {output_count}.",
        field="OutputEdges",
        given="no edge",
    )


class GR2(Rule):
    says = "Every input that the operator's desc has is fed, and no absent one. Outputs may stay unused."
    call = "DML_GRAPH_DESC"
    operation = "CompileGraph"

    absent = Breach(
        GRAPH_EDGE_MISMATCH,
        "{field} names {tensor}, which is absent in the operator's desc.",
        given="an absent tensor",
        expected="no edge",
    )
    not_fed = Breach(GRAPH_INPUT_UNSET, "{input} is not fed by any edge.", given="no edge")


class GR3(Rule):
    says = (
        "Bytes pass along an edge between nodes: sizes, strides and types may differ, TotalTensorSizeInBytes "
        "may not."
    )
    call = "DML_GRAPH_DESC"
    operation = "CompileGraph"

    sizes_differ = Breach(
        GRAPH_EDGE_MISMATCH,
        "{field} connects {output} with {input}, but {member} ({output_size}) differs from TotalTensorSizeInBytes "
        "({input_size}).",
    )


class GR4(Rule):
    says = (
        "Only inputs of the graph feed OWNED_BY_DML tensors, and all readers of such an input are flagged; it "
        "is bound at initialisation."
    )
    call = "DML_GRAPH_DESC"
    operation = "CompileGraph"

    edge_mismatch = Breach(GRAPH_EDGE_MISMATCH, "")
    owned_input = Breach(
        GRAPH_EDGE_MISMATCH,
        "{path} feeds an output of {producer} to {input}, which is OWNED_BY_DML; only an input of the graph can"
        " be.",
        given="OWNED_BY_DML",
        expected="an edge of InputEdges",
    )


class GR5(Rule):
    says = "An input of the graph may have no edge; a buffer is bound to it, or NONE."


class GR6(Rule):
    says = (
        "Constants, from level 6_2 on, have the size of the tensors they feed, a multiple of 4; they are copied"
        " at CompileGraph."
    )
    call = "DML_GRAPH_DESC"
    operation = "CompileGraph"

    feature_level = Breach(
        OP_FEATURE_LEVEL,
        "{field} (CONSTANT) requires LEVEL_6_2; this device has {level}.",
        given="CONSTANT",
        expected="OPERATOR",
    )
    field_range = Breach(OP_FIELD_RANGE, "", expected="bytes or an array of numbers")
    wrong_size = Breach(OP_FIELD_RANGE, "{field} ({given}) is not {expected}.")
    sizes_differ = Breach(
        GRAPH_EDGE_MISMATCH,
        "{field} connects {output} with {input}, but {member} ({output_size}) differs from TotalTensorSizeInBytes "
        "({input_size}).",
    )


class GR7(Rule):
    says = (
        "The result is a compiled operator with the graph's inputs and outputs and an initializer run "
        "of its own; it keeps none of the nodes' operators. Outputs share no bytes with inputs."
    )


class GR8(Rule):
    says = "A graph of one node takes the graph's bindings, not the operator's."


class GR9(Rule):
    says = "Names are optional."
    call = "DML_GRAPH_DESC"
    operation = "CompileGraph"

    field_range = Breach(OP_FIELD_RANGE, "", expected="a string or None")


class R2_7(Rule, label="2.7"):
    says = (
        "CompileGraph is there from level 2_1 on (E_NOINTERFACE); a graph has at least one node, operators of "
        "its own device, and known flags."
    )
    call = "IDMLDevice1::CompileGraph"
    api = "DML"

    of_memory = Breach(
        OUT_OF_MEMORY,
        "The {role} resource of the graph would have {given} bytes.",
        expected="less than 2^64 bytes",
        hresult=HResult.E_OUTOFMEMORY,
    )
    desc = Breach(OP_FIELD_RANGE, "", field="Desc", expected="a DML_GRAPH_DESC")
    field_range = Breach(OP_FIELD_RANGE, "")
    too_many_bindings = Breach(
        OP_FIELD_RANGE, "{field} ({given}) is not a number of bindings that a descriptor heap can hold."
    )
    no_nodes = Breach(
        OP_FIELD_RANGE,
        "NodeCount (0) is zero; a graph has at least one node.",
        field="NodeCount",
        given=0,
        expected=">= 1",
    )
    not_an_operator = Breach(OP_FIELD_RANGE, "", expected="an operator")
