"""An input of the graph that nothing reads."""

from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "GRAPH_INPUT_UNUSED"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([4])
    stage.dml.compile_graph(chain(stage, layout, layout, input_count=1 if fixed else 2))
