"""A buffer is evicted to make room, and a list that uses it is executed all the same."""

from dmlemu.testing.stage import Stage

CHECK = "RES_NOT_RESIDENT"


def run(stage: Stage, fixed: bool) -> None:
    source, target = stage.filled("weights"), stage.buffer("copy")
    stage.list.copy_resource(target, source)
    stage.device.evict([source])
    if fixed:
        stage.device.make_resident([source])
    stage.run()
