"""Graph lowering: the kernel calls of the nodes, with operands redirected to where the tensors are stored.

Tensors connected to graph inputs and outputs are stored in the bound buffers, other tensors between nodes
in the temporary resource, and constants in the persistent resource.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...frozen import changed
from ..tensor_desc import BufferTensorDesc
from .compile import (
    ABSENT,
    PERSISTENT,
    TEMPORARY,
    Access,
    KernelCall,
    Lowered,
    Operand,
    TensorField,
    owned_bytes,
)
from .copies import needless_copies
from .dispatchable import Operator
from .fusion import fused_calls, share_memory
from .graph_checks import GRAPH, Graph, Port
from .memory_plan import plan_memory
from .rows import R2_7

__all__ = ["lower_graph"]

Place = tuple[int, int]  # slot, and offset in bytes


def lower_graph(graph: Graph, *, optimized: bool = True, fused: bool = True) -> Lowered:
    """The calls of a checked graph, its inputs and outputs as fields.

    ``optimized``: copies that change nothing are left out.  ``fused``: calls are fused.

    Raises :class:`dmlemu.Error` (E_OUTOFMEMORY) when a resource would have 2**64 bytes or more.
    """
    lowered = Lowered((*_input_fields(graph), *_output_fields(graph)))
    places: dict[Port, Place] = {(GRAPH, i): (i, 0) for i in range(graph.input_count)}
    for i, readers in graph.readers.items():
        if readers[0].owned_by_dml:
            lowered.own(i, max(map(owned_bytes, readers)))
    _place_constants(graph, lowered, places)
    copies = needless_copies(graph) if optimized else {}
    outputs = dict(enumerate(graph.results, graph.input_count))
    for slot, port in outputs.items():
        places.setdefault(copies.get(port, port), (slot, 0))
    for number in graph.order:
        node = graph.nodes[number]
        if (number, 0) in copies:
            places[number, 0] = places[copies[number, 0]]
        elif isinstance(node, Operator):
            _lower_node(graph, number, node, lowered, places)
    for slot, port in outputs.items():
        source, offset = places[port]
        if source != slot:  # the second output that this tensor feeds
            name = _name(graph, port, is_output=True) if source == TEMPORARY else ""
            lowered.calls.append(_copy(graph.tensor(port), source, offset, slot, name))
    if fused:
        share_memory(lowered)
    plan_memory(lowered, fused_calls(lowered.calls) if fused else ())
    _check_size(lowered)
    return lowered


def _input_fields(graph: Graph) -> Iterator[TensorField]:
    """A graph input's requirements: the largest size and alignment of all nodes that read it."""
    for i in range(graph.input_count):
        readers = graph.readers.get(i)
        desc: BufferTensorDesc | None = None
        if readers:
            largest = max(readers, key=lambda reader: reader.size_in_bytes)
            alignment = max(reader.guaranteed_base_offset_alignment for reader in readers)
            desc = changed(largest, guaranteed_base_offset_alignment=alignment)
        yield TensorField(f"Inputs[{i}]", "inputs", i, desc, False, unused=desc is None)


def _output_fields(graph: Graph) -> Iterator[TensorField]:
    for i, port in enumerate(graph.results):
        yield TensorField(f"Outputs[{i}]", "outputs", i, graph.tensor(port), True)


def _place_constants(graph: Graph, lowered: Lowered, places: dict[Port, Place]) -> None:
    for number, node in enumerate(graph.nodes):
        if isinstance(node, bytes):
            offset = lowered.reserve_persistent(len(node))
            lowered.constants.append((offset, node))
            places[number, 0] = PERSISTENT, offset


def _lower_node(
    graph: Graph, number: int, node: Operator, lowered: Lowered, places: dict[Port, Place]
) -> None:
    """Adds the calls of a node; the tensors that it reads have been placed before."""
    program = node.program
    for i, field in enumerate(graph.outputs(number)):
        if field.desc is not None and (number, i) not in places:
            places[number, i] = TEMPORARY, lowered.reserve_temporary(field.desc.size_in_bytes)
    moved: dict[int, Place] = {TEMPORARY: (TEMPORARY, lowered.temporary_size)}
    names = {
        TEMPORARY: f"TemporaryResource of {graph.title(number)}"
    }  # of what lies in the temporary resource
    for _, size in program.temporaries:
        lowered.reserve_temporary(size)
    inputs = len(graph.inputs(number))
    for slot, field in enumerate(program.fields):
        if field.desc is not None:
            port = (number, slot - inputs) if field.output else graph.sources[number, slot]
            moved[slot] = places[port]
            if places[port][0] == TEMPORARY:
                own = (number, slot - inputs if field.output else slot)
                names[slot] = _name(graph, own, is_output=field.output)

    def move(operand: Operand) -> Operand:
        if operand.slot == ABSENT:
            return operand
        slot, offset = moved[operand.slot]
        name = names.get(operand.slot, operand.name)
        return changed(operand, slot=slot, offset=operand.offset + offset, name=name)

    for call in program.calls:
        lowered.calls.append(changed(call, operands=tuple(map(move, call.operands))))


def _name(graph: Graph, port: Port, *, is_output: bool) -> str:
    """A tensor that lies in the temporary resource: ``InputTensor of Nodes[1] (DML_OPERATOR_CAST;
    IntermediateEdges[0] in TemporaryResource)``."""
    number, index = port
    field = (graph.outputs if is_output else graph.inputs)(number)[index]
    edge = "" if is_output else f"IntermediateEdges[{graph.edges[port]}] "
    return f"{field.path} of {graph.title(number, f'; {edge}in TemporaryResource')}"


def _copy(desc: BufferTensorDesc, source: int, offset: int, target: int, name: str) -> KernelCall:
    """Copies a tensor's elements, and not its gaps, to the start of another slot; ``name``: what it reads."""
    layout = (desc.data_type, tuple(desc.sizes), desc.effective_strides, desc.size_in_bytes)
    return KernelCall(
        "copy",
        (Operand(source, Access.READ, *layout, offset, name=name), Operand(target, Access.WRITE, *layout)),
    )


def _check_size(lowered: Lowered) -> None:
    for what, size in (("temporary", lowered.temporary_size), ("persistent", lowered.persistent_size)):
        if size >= 2**64:
            raise R2_7.of_memory(given=size, role=what)
