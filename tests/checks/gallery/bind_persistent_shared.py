"""Two operators share one persistent resource: the second initializer overwrites the first one's weights."""

from dmlemu.testing.stage import OWNED, Stage, give_weights, product, run_with_weights

CHECK = "BIND_PERSISTENT_CHANGED"


def run(stage: Stage, fixed: bool) -> None:
    first, second = (
        stage.compile(product(OWNED), name) for name in ("first", "second")
    )
    persistent = stage.buffer("persistent")
    other = stage.buffer("other") if fixed else persistent
    give_weights(stage, first, stage.filled("weights 1"), persistent)
    give_weights(stage, second, stage.filled("weights 2"), other)
    run_with_weights(
        stage, first, stage.filled("image"), stage.buffer("output"), persistent
    )
