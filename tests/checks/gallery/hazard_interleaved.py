"""A dispatch reads columns of a matrix, and the next one writes between them: one column is in both."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "HAZARD_WAR"


def run(stage: Stage, fixed: bool) -> None:
    columns = 4 if fixed else 5  # of rows of 16 FLOAT32
    strided, packed = tensor([4, columns], [16, 1]), tensor([4, columns])
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=strided, output_tensor=packed
    )
    read = stage.compile(desc, "read columns")
    stage.initialize(read)
    write = stage.copy_operator("write a part of row 2", 4)
    matrix, more, result = (
        stage.filled("matrix"),
        stage.filled("more"),
        stage.buffer("result"),
    )
    stage.dispatch(read, [matrix], [result])
    stage.dispatch(
        write, [more], [dml.BufferBinding(matrix, 2 * 64 + 16, 16)]
    )  # columns 4 to 7
    stage.run()
