"""The commands went into another list than the one that is executed."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "QUEUE_EMPTY_SUBMIT"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    kind = d3d12.CommandListType.COMPUTE
    copies = stage.device.create_command_list(
        0, kind, stage.device.create_command_allocator(kind)
    )
    copies.set_name("copies")
    (copies if fixed else stage.list).copy_resource(target, source)
    copies.close()
    stage.queue.execute_command_lists([copies])
