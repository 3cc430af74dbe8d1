"""One list is recorded twice and executed on two queues: what the first one writes the second one reads."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, other_queue

CHECK = "HAZARD_QUEUE"


def run(stage: Stage, fixed: bool) -> None:
    layer = stage.copy_operator("layer")
    image, act, result = (
        stage.filled("image"),
        stage.buffer("act"),
        stage.buffer("result"),
    )
    other = other_queue(stage, "COMPUTE")
    other.queue.set_name("second")
    allocator = stage.device.create_command_allocator(d3d12.CommandListType.COMPUTE)
    stage.dispatch(layer, [image], [act])
    stage.submit()
    stage.list.reset(allocator)
    stage.list.set_descriptor_heaps([stage.heap])
    stage.dispatch(layer, [act], [result])
    stage.list.close()
    if fixed:
        other.queue.wait(stage.fence, stage.fence_value)
    other.queue.execute_command_lists([stage.list])
    other.queue.signal(other.fence, 1)
    other.fence.wait(1)
    stage.fence.wait(stage.fence_value)
