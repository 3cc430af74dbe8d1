"""A dispatch writes its output over weights that lie in the same placed memory."""

from dmlemu import d3d12
from dmlemu.testing.stage import (
    OWNED,
    UAV,
    Stage,
    States,
    give_weights,
    product,
    run_with_weights,
)

CHECK = "BIND_PERSISTENT_CHANGED"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_heap(d3d12.HeapDesc(1 << 17))
    desc = d3d12.ResourceDesc.buffer(256, UAV)
    persistent = stage.device.create_placed_resource(heap, 0, desc, States.COMMON)
    scratch = stage.device.create_placed_resource(
        heap, 1 << 16 if fixed else 0, desc, States.COMMON
    )
    persistent.set_name("persistent")
    scratch.set_name("scratch")
    layer, copy = stage.compile(product(OWNED), "layer"), stage.copy_operator("copy")
    give_weights(stage, layer, stage.filled("weights"), persistent)
    stage.dispatch(copy, [stage.filled("image")], [scratch])
    stage.run()
    run_with_weights(
        stage, layer, stage.filled("a"), stage.buffer("output"), persistent
    )
