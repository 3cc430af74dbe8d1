"""The consumer reads the producer's bytes in another layout."""

from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "GRAPH_EDGE_MISMATCH"


def run(stage: Stage, fixed: bool) -> None:
    second = tensor([2, 3], None if fixed else [1, 2])
    stage.dml.compile_graph(chain(stage, tensor([2, 3]), second))
