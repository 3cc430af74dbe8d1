"""Two tensors lie in one buffer; the second is bound at an offset in elements instead of bytes."""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "READ_MIXED"


def run(stage: Stage, fixed: bool) -> None:
    row = tensor([16])
    relu = stage.compile(
        dml.ActivationReluOperatorDesc(input_tensor=row, output_tensor=row), "relu"
    )
    stage.initialize(relu)
    first, second = stage.filled("first", 64), stage.filled("second", 64)
    arena, result = stage.buffer("arena", 128), stage.buffer("result", 64)
    stage.dispatch(relu, [first], [dml.BufferBinding(arena, 0, 64)])
    stage.dispatch(relu, [second], [dml.BufferBinding(arena, 64, 64)])
    stage.barrier()
    stage.dispatch(relu, [dml.BufferBinding(arena, 64 if fixed else 16, 64)], [result])
    stage.run()
