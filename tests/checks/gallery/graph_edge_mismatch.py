"""Two nodes whose connected tensors differ in size."""

from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "GRAPH_EDGE_MISMATCH"


def run(stage: Stage, fixed: bool) -> None:
    second = tensor([2, 3] if fixed else [2, 2])
    stage.dml.compile_graph(chain(stage, tensor([2, 3]), second))
