"""Two lists are recorded at the same time with one allocator."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "ALLOC_SHARED"


def run(stage: Stage, fixed: bool) -> None:
    kind = d3d12.CommandListType.COMPUTE
    allocator = stage.device.create_command_allocator(kind)
    first = stage.device.create_command_list(0, kind, allocator)
    first.set_name("forward")
    if fixed:
        allocator = stage.device.create_command_allocator(kind)
    stage.device.create_command_list(0, kind, allocator)
