"""A node whose input has no edge."""

from stage import Stage, chain, tensor

from dmlemu import dml

CHECK = "GRAPH_INPUT_UNSET"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4])
    edges = [dml.InputGraphEdgeDesc(0, 0, 0)] if fixed else []
    stage.dml.compile_graph(chain(stage, layout, layout, input_edges=edges))
