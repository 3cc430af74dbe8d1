"""Copies that a graph does not need: IDENTITY without ScaleBias, and CAST to the same type, in one layout.

Their output is the tensor that they read, under another name, so that nodes behind them read that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..tensor_desc import BufferTensorDesc
from .compile import KernelCall, Operand, Program, owned_bytes
from .dispatchable import Operator
from .graph_checks import GRAPH, Graph, Port

__all__ = ["needless_copies"]

_COPIES = ("copy", "cast")  # of one type: both copy bits


def needless_copies(graph: Graph) -> dict[Port, Port]:
    """The outputs of nodes that need not run: each with the tensor that it is.

    A copy to an output of the graph runs, unless an operator can write that output directly: one whose tensor
    has the same elements and is not an output already.
    """
    found: dict[Port, Port] = {}
    results, extents, sizes = set(graph.results), _read_extents(graph), _read_sizes(graph)
    for number in graph.order:
        node = graph.nodes[number]
        if not isinstance(node, Operator) or not _copies(node.program):
            continue
        output, source = (number, 0), graph.sources[number, 0]
        source = found.get(source, source)
        written = [output] if source[0] == GRAPH else [output, source]
        if not all(_is_dense(graph.tensor(port)) for port in written):
            continue
        if extents.get(output, 0) > graph.extent(output):  # of that the copy writes only a part
            continue
        if sizes.get(output, 0) > _size(graph, source):  # the reader's range would reach behind the source's
            continue
        if output in results:
            if source in results or not _can_be_written(graph, source, output):
                continue
            results.add(source)
        found[output] = source
    return found


def _copies(program: Program) -> bool:
    """Whether it is one call that copies all bits of one tensor to another of the same layout."""
    return len(program.calls) == 1 and program.calls[0].kernel in _COPIES and _same_bytes(program.calls[0])


def _same_bytes(call: KernelCall) -> bool:
    source, target = call.operands
    return source.data_type is target.data_type and _layout(source) == _layout(target)


def _layout(tensor: Operand | BufferTensorDesc) -> Sequence[tuple[int, int]]:
    """Sizes and strides of the dimensions that have more than one index."""
    strides = tensor.strides if isinstance(tensor, Operand) else tensor.effective_strides
    return [each for each in zip(tensor.sizes, strides, strict=True) if each[0] > 1]


def _is_dense(desc: BufferTensorDesc) -> bool:
    """Whether the tensor has no gaps, whose bytes are undefined: reading them is reported."""
    return prod(desc.sizes) * desc.dtype.itemsize == owned_bytes(desc)


def _read_extents(graph: Graph) -> dict[Port, int]:
    """The bytes that nodes read of each tensor, up to the last element of the longest layout."""
    extents: dict[Port, int] = {}
    for (node, number), source in graph.sources.items():
        desc = graph.inputs(node)[number].desc
        assert desc is not None  # edges end at tensors that are present
        extents[source] = max(extents.get(source, 0), owned_bytes(desc))
    return extents


def _read_sizes(graph: Graph) -> dict[Port, int]:
    """The largest total size, padding included, of the tensors through which nodes read each tensor."""
    sizes: dict[Port, int] = {}
    for (node, number), source in graph.sources.items():
        desc = graph.inputs(node)[number].desc
        assert desc is not None
        sizes[source] = max(sizes.get(source, 0), desc.size_in_bytes)
    return sizes


def _size(graph: Graph, source: Port) -> int:
    """The bytes of a tensor; of an input of the graph, those that a binding of it must have."""
    if source[0] == GRAPH:
        return max(reader.size_in_bytes for reader in graph.readers[source[1]])
    return graph.tensor(source).size_in_bytes


def _can_be_written(graph: Graph, source: Port, output: Port) -> bool:
    """Whether an operator writes ``source``, with the elements of ``output`` and no others."""
    if source[0] == GRAPH or not isinstance(graph.nodes[source[0]], Operator):
        return False
    written, copied = graph.tensor(source), graph.tensor(output)
    return (
        written.data_type is copied.data_type
        and written.size_in_bytes <= copied.size_in_bytes
        and _layout(written) == _layout(copied)
    )
