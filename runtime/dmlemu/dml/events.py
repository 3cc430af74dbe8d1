"""What happens to objects of DirectML, for those who listen to a device's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .dispatchable import CompiledOperator, Operator
    from .graph_checks import Graph
    from .structs import GraphDesc

__all__ = ["GraphCompiled", "OperatorCreated"]


class OperatorCreated(NamedTuple):
    """CreateOperator has accepted a desc."""

    operator: Operator


class GraphCompiled(NamedTuple):
    """CompileGraph has accepted a graph; ``graph`` is what it was checked into."""

    desc: GraphDesc
    graph: Graph
    compiled: CompiledOperator
