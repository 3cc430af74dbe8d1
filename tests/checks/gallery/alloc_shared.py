"""Two lists are recorded at the same time with one allocator."""

from stage import Stage

from dmlemu import d3d12

CHECK = "ALLOC_SHARED"


def run(stage: Stage, fixed: bool) -> None:
    stage.allocator.set_name("frame allocator")
    kind = d3d12.CommandListType.COMPUTE
    allocator = stage.device.create_command_allocator(kind) if fixed else stage.allocator
    stage.device.create_command_list(0, kind, allocator)
