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
    is not an output already.
    """
    found: dict[Port, Port] = {}
    results = set(graph.results)
    for number in graph.order:
        node = graph.nodes[number]
        if not isinstance(node, Operator) or not _copies(node.program):
            continue
        output, source = (number, 0), graph.sources[number, 0]
        source = found.get(source, source)
        written = [output] if source[0] == GRAPH else [output, source]
        if not all(_is_dense(graph.tensor(port)) for port in written) or _reads_beyond(graph, output):
            continue
        if output in results:
            if not _is_written_by_operator(graph, source) or source in results:
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


def _layout(operand: Operand) -> Sequence[tuple[int, int]]:
    """Sizes and strides of the dimensions that have more than one index."""
    return [each for each in zip(operand.sizes, operand.strides, strict=True) if each[0] > 1]


def _is_dense(desc: BufferTensorDesc) -> bool:
    """Whether the tensor has no gaps, whose bytes are undefined: reading them is reported."""
    return prod(desc.sizes) * desc.dtype.itemsize == owned_bytes(desc)


def _reads_beyond(graph: Graph, output: Port) -> bool:
    """Whether a node reads bytes that the copy does not write, as its layout is another."""
    copied = graph.extent(output)
    for (node, number), source in graph.sources.items():
        if source == output:
            desc = graph.inputs(node)[number].desc
            assert desc is not None  # edges end at tensors that are present
            if owned_bytes(desc) > copied:
                return True
    return False


def _is_written_by_operator(graph: Graph, port: Port) -> bool:
    return port[0] != GRAPH and isinstance(graph.nodes[port[0]], Operator)
