"""The descriptor heap of a recorded dispatch is evicted before the list is executed."""

from dmlemu.testing.stage import Stage

CHECK = "RES_NOT_RESIDENT"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    copy = stage.copy_operator("copy")
    stage.dispatch(copy, [stage.filled("input")], [stage.buffer("output")])
    stage.device.evict([stage.heap])
    if fixed:
        stage.device.make_resident([stage.heap])
    stage.run()
