"""Upload, initialise, execute, read back: no transition between the upload and the initializer."""

from stage import OWNED, Stage, States, product, record_product, record_weights

from dmlemu import d3d12

CHECK = "STATE_FOR_DISPATCH"


def run(stage: Stage, fixed: bool) -> None:
    Barrier = d3d12.ResourceBarrier
    first, second = (stage.compile(product(OWNED), name) for name in ("first layer", "second layer"))
    image, weights, source = (
        stage.filled("image", 64),
        stage.buffer("weights", 64),
        stage.filled("source", 64),
    )
    kept, act, result = (stage.buffer(name, 256) for name in ("persistent", "act", "result"))
    more_kept, readback = stage.buffer("persistent 2", 256), stage.host_buffer("readback", 256, "READBACK")

    stage.list.copy_resource(weights, source)
    if fixed:
        stage.list.resource_barrier(Barrier.transition(weights, States.COPY_DEST, States.UNORDERED_ACCESS))
    record_weights(stage, first, weights, kept)
    record_weights(stage, second, weights, more_kept)
    stage.list.resource_barrier([Barrier.uav(kept), Barrier.uav(more_kept)])
    record_product(stage, first, image, act, kept)
    stage.list.resource_barrier(Barrier.uav(act))
    record_product(stage, second, act, result, more_kept)
    stage.list.resource_barrier(Barrier.transition(result, States.UNORDERED_ACCESS, States.COPY_SOURCE))
    stage.list.copy_resource(readback, result)
    stage.run()
