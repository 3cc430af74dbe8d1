"""The output stands between two rows of the input, and is bound a bit too far.

That the ranges of bytes overlap is not a mistake.  What counts is whether an element does.
"""

from dmlemu import dml
from dmlemu.testing.stage import Stage, tensor

CHECK = "BIND_ALIAS"


def run(stage: Stage, fixed: bool) -> None:
    rows = tensor([2, 4], [16, 1])  # bytes 0 to 15, and 64 to 79
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=rows, output_tensor=tensor([2, 4])
    )
    copy = stage.compile(desc, "copy")
    stage.initialize(copy)
    pool = stage.filled("pool")
    between = dml.BufferBinding(pool, 16 if fixed else 48, 32)
    stage.dispatch(copy, [dml.BufferBinding(pool)], [between])
    stage.run()
