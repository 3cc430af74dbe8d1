"""A graph's second node reads the gap that the first one leaves between its rows."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, chain, tensor

CHECK = "MEM_POISON_READ"


def run(stage: Stage, fixed: bool) -> None:
    first = tensor([2, 3], None if fixed else [4, 1])
    second = tensor([2, 3] if fixed else [7])
    graph = stage.dml.compile_graph(chain(stage, first, second))
    graph.set_name("rows")
    stage.initialize(graph)
    table = stage.table(graph)
    table.bind_inputs([dml.BufferBinding(stage.filled("image"))])
    table.bind_outputs([dml.BufferBinding(stage.buffer("result"))])
    size = graph.get_binding_properties().temporary_resource_size
    if size:  # without gaps the first copy is left out
        table.bind_temporary_resource(
            dml.BufferBinding(stage.buffer("temporary"), 0, size)
        )
    stage.recorder.record_dispatch(stage.list, graph, table)
    stage.run()
