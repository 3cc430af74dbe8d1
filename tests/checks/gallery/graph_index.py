"""An edge that names a node that does not exist."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "GRAPH_INDEX"


def run(stage: Stage, fixed: bool) -> None:
    layout, last = tensor([4]), 1 if fixed else 2
    stage.dml.compile_graph(
        chain(stage, layout, layout, output_edges=[dml.OutputGraphEdgeDesc(last, 0, 0)])
    )
