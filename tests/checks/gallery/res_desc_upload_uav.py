"""A buffer that dispatches are to write is created in an UPLOAD heap."""

from dmlemu import d3d12
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "RES_DESC"


def run(stage: Stage, fixed: bool) -> None:
    kind = d3d12.HeapType.DEFAULT if fixed else d3d12.HeapType.UPLOAD
    state = States.COMMON if fixed else States.GENERIC_READ
    stage.device.create_committed_resource(
        d3d12.HeapProperties(kind),
        d3d12.HeapFlags.NONE,
        d3d12.ResourceDesc.buffer(256, UAV),
        state,
    )
