"""Rows of this room: its checks, and the rules that its calls keep."""

from ...diagnostics.declaration import When
from ...diagnostics.groups import GRAPHS
from ...diagnostics.report import Severity

GRAPH_INPUT_UNUSED = GRAPHS.reported(
    "GRAPH_INPUT_UNUSED",
    "an input of a graph has no edge",
    Severity.INFO,
    When.CREATE,
    "DirectML accepts it and still requires a binding for the input: often an edge was forgotten.",
    "Add the edge, or lower InputCount.",
    rule="GR5: DML_GRAPH_DESC",
)
