"""13 bytes are written, and those that round them up to 16 too, while one of these may still be read."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "HAZARD_WAR"
UINT8 = dml.TensorDataType.UINT8


def run(stage: Stage, fixed: bool) -> None:
    def compiled(
        name: str, source: dml.BufferTensorDesc, target: dml.BufferTensorDesc
    ) -> object:
        desc = dml.ElementWiseIdentityOperatorDesc(
            input_tensor=source, output_tensor=target
        )
        made = stage.compile(desc, name)
        stage.initialize(made)
        return made

    line, ends = tensor([13], data_type=UINT8), tensor([2], [30], data_type=UINT8)
    write = compiled("write a line", line, line)
    read = compiled("read the ends", ends, tensor([2], data_type=UINT8))
    lines, new, result = (
        stage.filled("lines"),
        stage.filled("new line"),
        stage.buffer("result"),
    )
    second = dml.BufferBinding(lines, 16, 16)
    stage.dispatch(read, [lines], [result])
    if fixed:
        stage.barrier(lines)
    stage.dispatch(write, [new], [second])
    stage.run()
