"""The structs of graph descs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...frozen import Frozen
from .dispatchable import Operator


class OperatorGraphNodeDesc(Frozen, many=True):
    """Mirrors ``DML_OPERATOR_GRAPH_NODE_DESC``: a node of a graph that runs an operator."""

    operator: Operator
    name: str | None = None


class ConstantDataGraphNodeDesc(Frozen, eq=False):
    """Mirrors ``DML_CONSTANT_DATA_GRAPH_NODE_DESC``: a node whose only output is these bytes.

    ``data`` is copied by ``compile_graph``; its size, DataSize, is a multiple of 4.  From feature level
    6_2 on.
    """

    data: bytes | bytearray | memoryview | np.ndarray[Any, Any]
    name: str | None = None


class InputGraphEdgeDesc(Frozen, many=True):
    """Mirrors ``DML_INPUT_GRAPH_EDGE_DESC``: an input of the graph feeds an input of a node."""

    graph_input_index: int
    to_node_index: int
    to_node_input_index: int
    name: str | None = None


class OutputGraphEdgeDesc(Frozen):
    """Mirrors ``DML_OUTPUT_GRAPH_EDGE_DESC``: an output of a node is an output of the graph."""

    from_node_index: int
    from_node_output_index: int
    graph_output_index: int
    name: str | None = None


class IntermediateGraphEdgeDesc(Frozen, many=True):
    """Mirrors ``DML_INTERMEDIATE_GRAPH_EDGE_DESC``: an output of a node feeds an input of another."""

    from_node_index: int
    from_node_output_index: int
    to_node_index: int
    to_node_input_index: int
    name: str | None = None


class GraphDesc(Frozen):
    """Mirrors ``DML_GRAPH_DESC``; the other counts of the struct are the lengths of the lists.

    Inputs and outputs of a node are counted as its operator's bindings are: in the order of the struct,
    arrays element by element, absent optional tensors included.
    """

    input_count: int
    output_count: int
    nodes: Sequence[OperatorGraphNodeDesc | ConstantDataGraphNodeDesc]
    input_edges: Sequence[InputGraphEdgeDesc] = ()
    output_edges: Sequence[OutputGraphEdgeDesc] = ()
    intermediate_edges: Sequence[IntermediateGraphEdgeDesc] = ()
