"""The bytes behind an output's last element are used: a dispatch may overwrite them."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "MEM_PADDING_READ"


def run(stage: Stage, fixed: bool) -> None:
    half = dml.TensorDataType.FLOAT16
    three, four = tensor([3], data_type=half), tensor([4], data_type=half)
    write = stage.compile(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=three, output_tensor=three),
        "write",
    )
    layout = three if fixed else four
    read = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=layout, output_tensor=layout),
        "read",
    )
    stage.initialize(write, read)
    source, row, result = (
        stage.filled("source"),
        stage.filled("row"),
        stage.buffer("result"),
    )
    stage.dispatch(write, [source], [row])
    stage.barrier(row)
    stage.dispatch(read, [row], [result])
    stage.run()
