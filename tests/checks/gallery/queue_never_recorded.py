"""A list from CreateCommandList1, which has no allocator yet, is executed."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "QUEUE_EMPTY_SUBMIT"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("source"), stage.buffer("target")
    kind = d3d12.CommandListType.COMPUTE
    commands = stage.device.create_command_list1(0, kind)
    commands.set_name("copies")
    if fixed:
        commands.reset(stage.device.create_command_allocator(kind))
        commands.copy_resource(target, source)
        commands.close()
    stage.queue.execute_command_lists([commands])
