"""Upload, initialise, execute, read back: no transition between the last operator and the copy."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States, TwoLayers

CHECK = "STATE_BEFORE"


def run(stage: Stage, fixed: bool) -> None:
    Barrier = d3d12.ResourceBarrier
    layers = TwoLayers(stage)

    layers.upload()
    stage.list.resource_barrier(
        Barrier.transition(layers.weights, States.COPY_DEST, States.UNORDERED_ACCESS)
    )
    layers.initialize()
    stage.list.resource_barrier(
        [Barrier.uav(layers.kept), Barrier.uav(layers.more_kept)]
    )
    layers.dispatch_first()
    stage.list.resource_barrier(Barrier.uav(layers.act))
    layers.dispatch_second()
    if fixed:
        stage.list.resource_barrier(
            Barrier.transition(
                layers.result, States.UNORDERED_ACCESS, States.COPY_SOURCE
            )
        )
    layers.read_back()
