"""A node whose input has no edge."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "GRAPH_INPUT_UNSET"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4])
    edges = [dml.InputGraphEdgeDesc(0, 0, 0)] if fixed else []
    stage.dml.compile_graph(chain(stage, layout, layout, input_edges=edges))
