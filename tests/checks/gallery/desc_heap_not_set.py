"""A list is reset and recorded again without SetDescriptorHeaps."""

from dmlemu.testing.stage import Stage

CHECK = "DESC_HEAP_NOT_SET"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.copy_operator("copy")
    image = stage.filled("image")
    stage.list.close()
    stage.list.reset(stage.allocator)
    if fixed:
        stage.list.set_descriptor_heaps([stage.heap])
    stage.dispatch(copy, [image], [stage.buffer("output")])
    stage.run()
