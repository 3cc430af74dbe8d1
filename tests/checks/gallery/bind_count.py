"""Two buffers for an operator of one input."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "BIND_COUNT"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("copy")
    image = dml.BufferBinding(stage.filled("image"))
    table = stage.table(copy)
    table.bind_inputs([image] if fixed else [image, image])
