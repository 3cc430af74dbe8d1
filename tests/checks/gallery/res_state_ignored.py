"""A buffer is created in the state of its first use, as textures are."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "RES_STATE_IGNORED"


def run(stage: Stage, fixed: bool) -> None:
    state = States.COMMON if fixed else States.UNORDERED_ACCESS
    stage.device.create_committed_resource(
        d3d12.HeapProperties(),
        d3d12.HeapFlags.NONE,
        d3d12.ResourceDesc.buffer(256, UAV),
        state,
    )
