"""A program releases what it made, but for one list and a buffer that the list names."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "RES_LEAK"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("weights"), stage.buffer("scratch")
    kind = d3d12.CommandListType.COMPUTE
    copies = stage.device.create_command_list(
        0, kind, stage.device.create_command_allocator(kind)
    )
    copies.set_name("copies")
    copies.copy_resource(target, source)
    copies.close()
    for thing in stage.device.report_live_device_objects():
        if thing not in (copies, source) or fixed:
            thing.release()
    stage.device.release()
