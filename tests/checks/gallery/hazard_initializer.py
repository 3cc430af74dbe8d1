"""An operator is dispatched in the list that initialises it: its weights may not be there yet."""

from dmlemu.testing.stage import OWNED, Stage, product, record_product, record_weights

CHECK = "HAZARD_RAW"


def run(stage: Stage, fixed: bool) -> None:
    dense = stage.compile(product(OWNED), "dense")
    weights, image, output = (
        stage.filled("weights"),
        stage.filled("image"),
        stage.buffer("output"),
    )
    persistent = stage.buffer(
        "persistent", dense.get_binding_properties().persistent_resource_size
    )
    record_weights(stage, dense, weights, persistent)
    if fixed:
        stage.barrier(persistent)
    record_product(stage, dense, image, output, persistent)
    stage.run()
