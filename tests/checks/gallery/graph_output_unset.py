"""An output of the graph that no node gives."""

from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "GRAPH_OUTPUT_UNSET"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4])
    stage.dml.compile_graph(
        chain(stage, layout, layout, output_count=1 if fixed else 2)
    )
