"""A buffer was created without ALLOW_UNORDERED_ACCESS."""

from dmlemu import d3d12, dml
from dmlemu.testing.stage import UAV, Stage, States

CHECK = "BIND_NOT_UAV"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    desc = d3d12.ResourceDesc.buffer(256, UAV if fixed else d3d12.ResourceFlags.NONE)
    image = stage.device.create_committed_resource(
        d3d12.HeapProperties(), d3d12.HeapFlags.NONE, desc, States.COMMON
    )
    image.set_name("image")
    stage.table(copy).bind_inputs([dml.BufferBinding(image)])
