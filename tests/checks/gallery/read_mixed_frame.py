"""The second frame has a smaller batch than the first, and all of the first is read again."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "READ_MIXED"


def relu(stage: Stage, rows: int) -> object:
    batch = tensor([rows, 8])
    desc = dml.ActivationReluOperatorDesc(input_tensor=batch, output_tensor=batch)
    compiled = stage.compile(desc, f"{rows} rows")
    stage.initialize(compiled)
    return compiled


def run(stage: Stage, fixed: bool) -> None:
    four, three = relu(stage, 4), relu(stage, 3)
    images, act, result = (
        stage.filled("images", 128),
        stage.buffer("act", 128),
        stage.buffer("result", 128),
    )
    for write, read in ((four, four), (three, three if fixed else four)):
        stage.dispatch(write, [images], [act])
        stage.barrier()
        stage.dispatch(read, [act], [result])
        stage.run()
