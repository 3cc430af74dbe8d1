"""Two lists of one call are recorded apart, and the second does not know how the first leaves the buffer."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, States

CHECK = "STATE_BEFORE"


def run(stage: Stage, fixed: bool) -> None:
    source, act, target = (
        stage.filled("source"),
        stage.buffer("act"),
        stage.buffer("target"),
    )
    kind = d3d12.CommandListType.COMPUTE
    second = stage.device.create_command_list(
        0, kind, stage.device.create_command_allocator(kind)
    )
    second.set_name("second")
    stage.list.copy_resource(act, source)
    if fixed:
        leave = d3d12.ResourceBarrier.transition(
            act, States.COPY_DEST, States.COPY_SOURCE
        )
        stage.list.resource_barrier(leave)
    second.copy_resource(target, act)
    for each in (stage.list, second):
        each.close()
    stage.queue.execute_command_lists([stage.list, second])
