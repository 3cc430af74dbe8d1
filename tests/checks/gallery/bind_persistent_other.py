"""The operator is executed with another persistent resource than its initializer filled."""

from dmlemu.testing.stage import OWNED, Stage, give_weights, product, run_with_weights

CHECK = "BIND_PERSISTENT_CHANGED"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.compile(product(OWNED), "layer")
    first, second = stage.buffer("first"), stage.filled("second")
    give_weights(stage, layer, stage.filled("weights"), first)
    run_with_weights(
        stage,
        layer,
        stage.filled("image"),
        stage.buffer("output"),
        first if fixed else second,
    )
