"""A COMPUTE list is created with the allocator of the copy queue's lists."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "LIST_TYPE"


def run(stage: Stage, fixed: bool) -> None:
    types = d3d12.CommandListType
    allocator = stage.device.create_command_allocator(
        types.COMPUTE if fixed else types.COPY
    )
    allocator.set_name("uploads")
    stage.device.create_command_list(0, types.COMPUTE, allocator)
