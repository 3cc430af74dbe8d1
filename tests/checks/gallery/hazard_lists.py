"""Two lists are executed by one call: that orders nothing between them."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "HAZARD_RAW"


def run(stage: Stage, fixed: bool) -> None:
    convolve, activate = stage.copy_operator("conv1"), stage.copy_operator("relu1")
    image, act, result = (
        stage.filled("image"),
        stage.buffer("act"),
        stage.buffer("result"),
    )
    kind = d3d12.CommandListType.COMPUTE
    allocator = stage.device.create_command_allocator(kind)
    second = stage.device.create_command_list(0, kind, allocator)
    second.set_name("second half")
    second.set_descriptor_heaps([stage.heap])
    stage.dispatch(convolve, [image], [act])
    first, stage.list = stage.list, second
    stage.dispatch(activate, [act], [result])
    for each in (first, second):
        each.close()
    if fixed:
        stage.queue.execute_command_lists([first])
        stage.queue.execute_command_lists([second])
    else:
        stage.queue.execute_command_lists([first, second])
    stage.queue.signal(stage.fence, 100)
    stage.fence.wait(100)
