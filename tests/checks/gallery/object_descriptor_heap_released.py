"""The descriptor heap of a dispatch is released before the GPU has read the descriptors."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("views")
    operator = stage.copy_operator("copy")
    stage.dispatch(operator, [stage.filled("source")], [stage.buffer("target")])
    stage.submit()
    if fixed:
        stage.wait()
        stage.list.close()
    stage.heap.release()
