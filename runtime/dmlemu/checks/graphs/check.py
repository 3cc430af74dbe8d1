"""Group b: advice on graphs that CompileGraph accepts and that are probably mistakes."""

from __future__ import annotations

from typing import Any

from ...dml.events import GraphCompiled
from ...dml.lowering.graph_checks import GRAPH, Graph, Port
from ...dml.lowering.rows import GRAPH_EDGE_MISMATCH
from ...errors import Severity
from ..framework.check import Check, on
from .rows import GRAPH_INPUT_UNUSED


class GraphAdvice(Check):
    """Checks every compiled graph."""

    declarations = (GRAPH_INPUT_UNUSED, GRAPH_EDGE_MISMATCH)

    @on(GraphCompiled)
    def look(self, event: GraphCompiled) -> None:
        """Reports unread inputs, and edges between different layouts."""
        graph = event.graph
        for index in range(graph.input_count):
            if index not in graph.readers:
                message = f"Input {index} of the graph's {graph.input_count} has no edge: nothing reads it."
                self._say(GRAPH_INPUT_UNUSED.id, event, message, "InputEdges", f"an edge for input {index}")
        for port, source in graph.sources.items():
            if source[0] != GRAPH and not isinstance(graph.nodes[source[0]], bytes):
                self._edge(event, source, port)

    def _edge(self, event: GraphCompiled, source: Port, port: Port) -> None:
        """The same logical tensor in two layouts: the bytes are passed unchanged, so elements move."""
        graph = event.graph
        writer, reader = graph.tensor(source), graph.inputs(port[0])[port[1]].desc
        assert reader is not None
        if writer.data_type != reader.data_type or tuple(writer.sizes) != tuple(reader.sizes):
            return
        given, expected = reader.effective_strides, writer.effective_strides
        if all(a == b or size == 1 for a, b, size in zip(given, expected, reader.sizes, strict=True)):
            return
        numbers = [i for i, edge in enumerate(event.desc.intermediate_edges) if _ends(edge) == port]
        field = f"IntermediateEdges[{numbers[0]}]" if numbers else "IntermediateEdges"
        producer, consumer = _name(event, source, output=True), _name(event, port, output=False)
        message = (
            f"{producer} has Strides ({list(expected)}), and {consumer}, which reads its bytes as they are, "
            f"has Strides ({list(given)}): the same sizes in another order."
        )
        drawn = [
            desc.layout(f"{name} ({what})").tensors[0]
            for desc, name, what in ((writer, "output", "written"), (reader, "input", "read"))
        ]
        self._say(
            GRAPH_EDGE_MISMATCH.id,
            event,
            message,
            field,
            str(list(expected)),
            str(list(given)),
            layouts=tuple(drawn),
        )

    def _say(
        self,
        id: str,
        event: GraphCompiled,
        message: str,
        field: str,
        expected: str,
        given: str = "no edge",
        **more: Any,
    ) -> None:
        self.report(
            id,
            message,
            api="DML",
            operation="CompileGraph",
            field=field,
            given=given,
            expected=expected,
            severity=Severity.INFO,
            object=str(event.compiled),
            **more,
        )


def _ends(edge: object) -> Port:
    return edge.to_node_index, edge.to_node_input_index  # type: ignore[attr-defined]


def _name(event: GraphCompiled, port: Port, *, output: bool) -> str:
    """``OutputTensor of Nodes[1] ('relu')``."""
    graph: Graph = event.graph
    fields = graph.outputs(port[0]) if output else graph.inputs(port[0])
    name = event.desc.nodes[port[0]].name
    shown = f" ('{name:.60}')" if name else ""
    return f"{fields[port[1]].path} of Nodes[{port[0]}]{shown}"


CHECKS = (GraphAdvice,)
