"""SizeInBytes is a number of elements."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "BIND_SIZE_SMALL"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([1, 1, 3, 3])
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=layout, output_tensor=layout
    )
    copy = stage.compile(desc, "copy")
    image = stage.filled("image")
    elements = 9
    table = stage.table(copy)
    table.bind_inputs(
        [dml.BufferBinding(image, 0, 4 * elements if fixed else elements)]
    )
