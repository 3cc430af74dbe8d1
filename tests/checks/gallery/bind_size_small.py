"""SizeInBytes is a number of elements."""

from stage import Stage, tensor

from dmlemu import dml

CHECK = "BIND_SIZE_SMALL"


def run(stage: Stage, fixed: bool) -> None:
    layout = tensor([1, 1, 3, 3])
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout)
    copy = stage.compile(desc, "copy")
    image = stage.filled("image")
    elements = 9
    table = stage.table(copy)
    table.bind_inputs([dml.BufferBinding(image, 0, 4 * elements if fixed else elements)])
