"""The input is bound where the CPU wrote it: in an upload heap."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_HEAP_TYPE"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    upload = stage.host_buffer("upload")
    image = stage.buffer("image")
    stage.list.copy_buffer_region(image, 0, upload, 0, 256)
    stage.run()
    table = stage.table(copy)
    table.bind_inputs([dml.BufferBinding(image if fixed else upload)])
