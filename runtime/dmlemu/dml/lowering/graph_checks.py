"""Graph validation (GR1 to GR6), and the checked graph as input to lowering."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...errors import as_integer, not_a, number_of, quote, spell_object
from ..enums import FeatureLevel, TensorDataType
from ..object import check_own
from ..tensor_desc import BufferTensorDesc
from .compile import TensorField, owned_bytes
from .dispatchable import Operator
from .graph_structs import (
    ConstantDataGraphNodeDesc,
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
)
from .rows import (
    GR1,
    GR2,
    GR3,
    GR4,
    GR6,
    GR9,
    R2_7,
)

if TYPE_CHECKING:
    from ..device_context import DeviceContext

__all__ = ["GRAPH", "Graph", "Port", "check_graph"]

_OPERATION = "CompileGraph"
_MOST_BINDINGS = 1_000_000  # descriptors of the largest shader-visible heap

Port = tuple[int, int]
"""A node and the number of one of its inputs or outputs; ``GRAPH`` and the number of a graph input."""

GRAPH = -1


class Graph:
    """A valid graph.

    ``nodes`` are operators and the bytes of constants; ``order`` is their topological order; ``sources``
    maps a node's input to the output that feeds it, ``edges`` to the number of the intermediate edge,
    ``results`` each graph output to a node's output, and ``readers`` a graph input to the tensors of the
    nodes that read it.
    """

    def __init__(self) -> None:
        self.input_count = 0
        self.nodes: list[Operator | bytes] = []
        self.names: list[str | None] = []
        self.order: list[int] = []
        self.sources: dict[Port, Port] = {}
        self.edges: dict[Port, int] = {}
        self.results: list[Port] = []
        self.readers: dict[int, list[BufferTensorDesc]] = {}
        self._fields: list[tuple[list[TensorField], list[TensorField]]] = []

    def add(self, node: Operator | bytes, name: str | None) -> None:
        if isinstance(node, bytes):
            desc = BufferTensorDesc(TensorDataType.UINT32, (len(node) // 4,))
            fields: tuple[TensorField, ...] = (TensorField("Data", "data", None, desc, True),)
        else:
            fields = node.program.fields
        self.nodes.append(node)
        self.names.append(name)
        self._fields.append(([f for f in fields if not f.output], [f for f in fields if f.output]))

    def title(self, number: int, more: str = "") -> str:
        """``Nodes[1] ('relu', DML_OPERATOR_ACTIVATION_RELU)``; ``more`` stands behind it."""
        node, given = self.nodes[number], self.names[number]
        kind = node.type_name if isinstance(node, Operator) else "constant data"
        name = "" if given is None else f"'{given:.60}', "
        return f"Nodes[{number}] ({name}{kind}{more})"

    def inputs(self, node: int) -> list[TensorField]:
        return self._fields[node][0]

    def outputs(self, node: int) -> list[TensorField]:
        return self._fields[node][1]

    def tensor(self, output: Port) -> BufferTensorDesc:
        """The tensor of a node's output."""
        desc = self.outputs(output[0])[output[1]].desc
        assert desc is not None  # edges start at tensors that are present
        return desc

    def extent(self, output: Port) -> int:
        """Bytes up to the end of its last element."""
        return owned_bytes(self.tensor(output))


def check_graph(context: DeviceContext, desc: GraphDesc) -> Graph:
    """The graph that ``desc`` describes.

    Raises :class:`dmlemu.Error` (E_INVALIDARG) for the first violated rule.
    """
    if not isinstance(desc, GraphDesc):
        raise R2_7.desc(
            message=not_a("Desc", desc, "is not a DML_GRAPH_DESC"),
            given=spell_object(desc),
            page="DML_GRAPH_DESC",
        )
    return _Checks(context, desc).graph


class _Checks:
    """Reads a desc part by part; each part relies on the checks of the preceding ones."""

    def __init__(self, context: DeviceContext, desc: GraphDesc) -> None:
        self.context, self.desc, self.graph = context, desc, Graph()
        self.graph.input_count = self._count("InputCount", desc.input_count)
        self.output_count = self._count("OutputCount", desc.output_count)
        self._nodes()
        self._input_edges()
        self._intermediate_edges()
        self._every_input_is_fed()
        self._output_edges()
        self._order()

    def _count(self, field: str, value: object) -> int:
        number = _integer(value)
        if not 0 <= number <= _MOST_BINDINGS:
            raise R2_7.too_many_bindings(
                field=field, given=quote(value), expected=f"0 to {_MOST_BINDINGS}", page="DML_GRAPH_DESC"
            )
        return number

    # --- nodes ---

    def _nodes(self) -> None:
        nodes = _list("Nodes", self.desc.nodes, (OperatorGraphNodeDesc, ConstantDataGraphNodeDesc))
        if not nodes:
            raise R2_7.no_nodes(page="DML_GRAPH_DESC")
        for i, node in enumerate(nodes):
            path = f"Nodes[{i}]"
            if isinstance(node, ConstantDataGraphNodeDesc):
                self.graph.add(self._constant(path, node), node.name)
                continue
            if not isinstance(node.operator, Operator):
                raise R2_7.not_an_operator(
                    message=not_a(f"{path}.Operator", node.operator, "is not an operator"),
                    field=f"{path}.Operator",
                    given=spell_object(node.operator),
                    page="DML_GRAPH_DESC",
                )
            check_own(self.context, node.operator, f"{path}.Operator", _OPERATION)
            self.graph.add(node.operator, node.name)

    def _constant(self, path: str, node: ConstantDataGraphNodeDesc) -> bytes:
        level = self.context.level
        if level < FeatureLevel.LEVEL_6_2:
            raise GR6.feature_level(field=f"{path}.Type", level=level.name)
        data = node.data
        numbers = isinstance(data, np.ndarray) and not data.dtype.hasobject
        if not numbers and not isinstance(data, (bytes, bytearray, memoryview)):
            raise GR6.field_range(
                message=not_a(f"{path}.Data", data, "is neither bytes nor an array of numbers"),
                field=f"{path}.Data",
                given=spell_object(data),
            )
        copy = data.tobytes() if isinstance(data, (np.ndarray, memoryview)) else bytes(data)
        if not copy or len(copy) % 4:
            field, expected = f"{path}.DataSize", "a multiple of 4, at least 4"
            raise GR6.wrong_size(field=field, given=len(copy), expected=expected)
        return copy

    def _name(self, number: int) -> str:
        return self.graph.title(number)

    # --- edges ---

    def _input_edges(self) -> None:
        owned_by: dict[int, str] = {}
        for i, edge in enumerate(_list("InputEdges", self.desc.input_edges, (InputGraphEdgeDesc,))):
            path = f"InputEdges[{i}]"
            start = _index(
                f"{path}.GraphInputIndex",
                edge.graph_input_index,
                self.graph.input_count,
                lambda: "input of the graph",
            )
            port, reader = self._to(path, edge)
            readers = self.graph.readers.setdefault(start, [])
            first = owned_by.setdefault(start, path)
            if readers and readers[0].owned_by_dml != reader.owned_by_dml:
                given, expected = ("", "not ") if reader.owned_by_dml else ("not ", "")
                message = (
                    f"{path} feeds input {start} of the graph to a tensor that is {given}OWNED_BY_DML, "
                    f"{first} to one that is {expected}OWNED_BY_DML."
                )
                given, expected = f"{given}OWNED_BY_DML", f"{expected}OWNED_BY_DML"
                raise GR4.edge_mismatch(
                    message=message, field=f"{path}.GraphInputIndex", given=given, expected=expected
                )
            readers.append(reader)
            self.graph.sources[port] = GRAPH, start

    def _intermediate_edges(self) -> None:
        edges = _list("IntermediateEdges", self.desc.intermediate_edges, (IntermediateGraphEdgeDesc,))
        for i, edge in enumerate(edges):
            path = f"IntermediateEdges[{i}]"
            source = self._from(path, edge)
            port, reader = self._to(path, edge)
            if reader.owned_by_dml:
                raise GR4.owned_input(
                    field=f"{path}.ToNodeInputIndex",
                    path=path,
                    producer=self._name(source[0]),
                    input=self._input(port),
                )
            size = self.graph.tensor(source).size_in_bytes
            if size != reader.size_in_bytes:
                self._sizes_differ(path, source, port, size, reader.size_in_bytes)
            self.graph.sources[port] = source
            self.graph.edges[port] = i

    def _sizes_differ(self, path: str, source: Port, port: Port, given: int, expected: int) -> NoReturn:
        constant = isinstance(self.graph.nodes[source[0]], bytes)
        broken = GR6.sizes_differ if constant else GR3.sizes_differ
        raise broken(
            field=path,
            given=number_of(given, "byte"),
            expected=number_of(expected, "byte"),
            output=self._output(source),
            input=self._input(port),
            member="DataSize" if constant else "TotalTensorSizeInBytes",
            output_size=given,
            input_size=expected,
        )

    def _output_edges(self) -> None:
        results: dict[int, tuple[Port, str]] = {}
        for i, edge in enumerate(_list("OutputEdges", self.desc.output_edges, (OutputGraphEdgeDesc,))):
            path = f"OutputEdges[{i}]"
            source = self._from(path, edge)
            field = f"{path}.GraphOutputIndex"
            end = _index(field, edge.graph_output_index, self.output_count, lambda: "output of the graph")
            if end in results:
                raise GR1.output_fed_twice(field=field, path=path, index=end, other_edge=results[end][1])
            results[end] = source, path
        for end in range(self.output_count):
            if end not in results:
                raise GR1.output_not_fed(
                    expected=f"an edge with GraphOutputIndex {end}", index=end, output_count=self.output_count
                )
            self.graph.results.append(results[end][0])

    def _from(self, path: str, edge: OutputGraphEdgeDesc | IntermediateGraphEdgeDesc) -> Port:
        """The output where an edge starts."""
        graph = self.graph
        node = _index(f"{path}.FromNodeIndex", edge.from_node_index, len(graph.nodes), lambda: "node")
        outputs, field = graph.outputs(node), f"{path}.FromNodeOutputIndex"
        output = _index(
            field, edge.from_node_output_index, len(outputs), lambda: f"output of {self._name(node)}"
        )
        if outputs[output].desc is None:
            self._absent(field, f"{self._output((node, output))}")
        return node, output

    def _to(
        self, path: str, edge: InputGraphEdgeDesc | IntermediateGraphEdgeDesc
    ) -> tuple[Port, BufferTensorDesc]:
        """The node's input where an edge ends, and its tensor; raises if it has another edge."""
        graph = self.graph
        node = _index(f"{path}.ToNodeIndex", edge.to_node_index, len(graph.nodes), lambda: "node")
        inputs, field = graph.inputs(node), f"{path}.ToNodeInputIndex"
        index = _index(field, edge.to_node_input_index, len(inputs), lambda: f"input of {self._name(node)}")
        port, desc = (node, index), inputs[index].desc
        if desc is None:
            self._absent(field, self._input(port))
        if port in graph.sources:
            raise GR1.input_fed_twice(field=field, path=path, input=self._input(port))
        return port, desc

    def _absent(self, field: str, tensor: str) -> NoReturn:
        raise GR2.absent(field=field, tensor=tensor)

    def _input(self, port: Port) -> str:
        return f"{self.graph.inputs(port[0])[port[1]].path} of {self._name(port[0])}"

    def _output(self, port: Port) -> str:
        return f"{self.graph.outputs(port[0])[port[1]].path} of {self._name(port[0])}"

    # --- the whole graph ---

    def _every_input_is_fed(self) -> None:
        for node in range(len(self.graph.nodes)):
            for index, field in enumerate(self.graph.inputs(node)):
                if field.desc is not None and (node, index) not in self.graph.sources:
                    raise GR2.not_fed(
                        field=f"Nodes[{node}]",
                        expected=f"an edge with ToNodeIndex {node} and ToNodeInputIndex {index}",
                        input=self._input((node, index)),
                    )

    def _order(self) -> None:
        """The topological order; of the nodes that are ready, the first in the list comes first."""
        sorter: TopologicalSorter[int] = TopologicalSorter()
        for node in range(len(self.graph.nodes)):
            sorter.add(node)
        for (node, _), (source, _) in self.graph.sources.items():
            if source != GRAPH:
                sorter.add(node, source)
        try:
            sorter.prepare()
        except CycleError as error:
            self._cycle(error.args[1])
        ready: list[int] = []
        while sorter.is_active():
            for node in sorter.get_ready():
                heappush(ready, node)
            node = heappop(ready)
            self.graph.order.append(node)
            sorter.done(node)

    def _cycle(self, nodes: Sequence[int]) -> NoReturn:
        """The error for a cycle; the last of ``nodes`` equals the first."""
        steps = set(pairwise(nodes))
        edges = enumerate(self.desc.intermediate_edges)
        first = next(i for i, edge in edges if (edge.from_node_index, edge.to_node_index) in steps)
        shown = " -> ".join(f"Nodes[{node}]" for node in nodes[:12]) + (" -> ..." if len(nodes) > 12 else "")
        raise GR1.cycle(field=f"IntermediateEdges[{first}]", given=shown)


def _list(field: str, value: object, kinds: tuple[type[Any], ...]) -> list[Any]:
    """A list of descs of these kinds."""
    expected = " or ".join(kind.__name__ for kind in kinds)
    if not isinstance(value, (list, tuple)):
        raise R2_7.field_range(
            message=not_a(field, value, "is not a list"),
            field=field,
            given=spell_object(value),
            expected=f"a list of {expected}",
            page="DML_GRAPH_DESC",
        )
    for i, item in enumerate(value):
        path = f"{field}[{i}]"
        if not isinstance(item, kinds):
            raise R2_7.field_range(
                message=not_a(path, item, f"is not of type {expected}"),
                field=path,
                given=spell_object(item),
                expected=expected,
                page="DML_GRAPH_DESC",
            )
        if item.name is not None and not isinstance(item.name, str):
            raise GR9.field_range(
                message=not_a(f"{path}.Name", item.name, "is not a string"),
                field=f"{path}.Name",
                given=spell_object(item.name),
            )
    return list(value)


def _integer(value: object) -> int:
    """The index; -1 if the value is not a number."""
    number = as_integer(value)
    return -1 if number is None else number


def _index(field: str, value: object, count: int, what: Callable[[], str]) -> int:
    number = _integer(value)
    if not 0 <= number < count:
        shown = quote(value)
        raise GR1.no_such(
            field=field,
            given=shown,
            expected=f"0 to {count - 1}" if count else "no edge",
            kind=what(),
            are="is" if count == 1 else "are",
            count=count,
        )
    return number
