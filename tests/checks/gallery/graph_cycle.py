"""Two nodes that wait for each other."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "GRAPH_CYCLE"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4])
    back = [] if fixed else [dml.IntermediateGraphEdgeDesc(1, 0, 0, 0)]
    forth = [dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)]
    start = [dml.InputGraphEdgeDesc(0, 0, 0)] if fixed else []
    stage.dml.compile_graph(
        chain(stage, layout, layout, input_edges=start, intermediate_edges=forth + back)
    )
