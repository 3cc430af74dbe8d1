"""The result of a layer in FLOAT16 is read as FLOAT32."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "LAYOUT_HANDOVER"


def run(stage: Stage, fixed: bool) -> None:
    half = tensor([16], data_type=dml.TensorDataType.FLOAT16)
    read = half if fixed else tensor([8])
    first = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=half, output_tensor=half), "first"
    )
    second = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=read, output_tensor=read), "second"
    )
    stage.initialize(first, second)
    weights, act, result = (
        stage.filled("weights", 32),
        stage.buffer("act", 32),
        stage.buffer("result", 32),
    )
    stage.dispatch(first, [weights], [act])
    stage.barrier()
    stage.dispatch(second, [act], [result])
    stage.run()
