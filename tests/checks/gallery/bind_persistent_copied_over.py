"""A copy into a pool also hits the weights that an initializer left there."""

from dmlemu import dml
from dmlemu.testing.stage import OWNED, Stage, give_weights, product, run_with_weights

CHECK = "BIND_PERSISTENT_CHANGED"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    pool, source = stage.buffer("pool", 1024), stage.filled("source")
    weights = dml.BufferBinding(pool, 256, 256)
    give_weights(stage, layer, stage.filled("weights"), weights)
    stage.list.copy_buffer_region(pool, 512 if fixed else 200, source, 0, 100)
    stage.run()
    run_with_weights(
        stage, layer, stage.filled("image"), stage.buffer("output"), weights
    )
