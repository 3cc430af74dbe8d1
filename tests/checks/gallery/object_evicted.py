"""A buffer is evicted while the GPU still reads it."""

from dmlemu.testing.stage import Stage

CHECK = "OBJECT_EVICTED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    stage.fence.set_name("done")
    source, target = stage.filled("weights"), stage.buffer("copy")
    stage.list.copy_resource(target, source)
    stage.submit()
    if fixed:
        stage.wait()
    stage.device.evict([source])
