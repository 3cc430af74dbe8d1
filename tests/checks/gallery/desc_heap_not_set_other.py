"""Another heap is set on the list than the one in which the table has its descriptors."""

from dmlemu.testing.stage import Stage, descriptor_heap

CHECK = "DESC_HEAP_NOT_SET"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("frame heap")
    copy = stage.copy_operator("copy")
    image = stage.filled("image")
    other = descriptor_heap(stage, 64, visible=True)
    other.set_name("other heap")
    stage.list.set_descriptor_heaps([stage.heap if fixed else other])
    stage.dispatch(copy, [image], [stage.buffer("output")])
    stage.run()
