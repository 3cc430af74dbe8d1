"""A list is created open, and the loop resets it before the first frame."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "LIST_OPEN"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    kind = d3d12.CommandListType.COMPUTE
    allocator = stage.device.create_command_allocator(kind)
    commands = stage.device.create_command_list(0, kind, allocator)
    commands.set_name("copies")
    if fixed:
        commands.close()
    commands.reset(allocator)
    commands.copy_resource(target, source)
    commands.close()
    stage.queue.execute_command_lists([commands])
