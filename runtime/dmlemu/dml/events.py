"""DirectML events, emitted on the device's event stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..errors import CallSite
    from .lowering.dispatchable import CompiledOperator, Dispatchable, Operator
    from .lowering.graph_checks import Graph
    from .lowering.graph_structs import GraphDesc

__all__ = ["DispatchRecorded", "GraphCompiled", "OperatorCreated"]


class OperatorCreated(NamedTuple):
    """CreateOperator accepted a desc."""

    operator: Operator


class GraphCompiled(NamedTuple):
    """CompileGraph accepted a graph; ``graph`` is its checked form."""

    desc: GraphDesc
    graph: Graph
    compiled: CompiledOperator


class DispatchRecorded(NamedTuple):
    """RecordDispatch recorded a dispatch, starting at command ``first`` of the list.

    ``table`` is the GPU handle of its descriptors.  ``persistent``: the operators that it initializes, or
    the one that it runs, with address (0: not bound) and size in bytes of the persistent resource.
    """

    list_serial: int
    first: int
    dispatchable: Dispatchable
    table: int
    persistent: tuple[tuple[CompiledOperator, int, int], ...]
    site: CallSite | None
