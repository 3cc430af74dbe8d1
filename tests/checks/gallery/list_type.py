"""A list of type DIRECT is executed on a COMPUTE queue."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "LIST_TYPE"


def run(stage: Stage, fixed: bool) -> None:
    kind = d3d12.CommandListType.COMPUTE if fixed else d3d12.CommandListType.DIRECT
    commands = stage.device.create_command_list(
        0, kind, stage.device.create_command_allocator(kind)
    )
    commands.set_name("copies")
    commands.copy_resource(stage.buffer("target"), stage.filled("source"))
    commands.close()
    stage.queue.execute_command_lists([commands])
