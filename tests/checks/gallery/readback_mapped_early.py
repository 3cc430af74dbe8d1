"""A READBACK buffer stays mapped, and is read each frame: in the second one before the GPU is done."""

from dmlemu.testing.stage import Stage

CHECK = "READBACK_EARLY"


def run(stage: Stage, fixed: bool) -> None:
    result, readback = (
        stage.filled("result"),
        stage.host_buffer("readback", 256, "READBACK"),
    )
    memory = readback.map()
    for frame in range(2):
        stage.list.copy_resource(readback, result)
        stage.submit()
        if frame == 0 or fixed:
            stage.wait()
        print(memory[0:4])
