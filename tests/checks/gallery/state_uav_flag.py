"""A buffer that was created without ALLOW_UNORDERED_ACCESS is to be written by a dispatch."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "STATE_COMBO"


def run(stage: Stage, fixed: bool) -> None:
    flags = UAV if fixed else d3d12.ResourceFlags.NONE
    act = stage.device.create_committed_resource(
        d3d12.HeapProperties(),
        d3d12.HeapFlags.NONE,
        d3d12.ResourceDesc.buffer(256, flags),
        States.COMMON,
    )
    act.set_name("act")
    stage.list.copy_resource(act, stage.filled("source"))
    to_write = d3d12.ResourceBarrier.transition(
        act, States.COPY_DEST, States.UNORDERED_ACCESS
    )
    stage.list.resource_barrier(to_write)
    stage.run()
