"""The next frame is bound over the descriptors of the frame before, which the GPU has not finished."""

from dmlemu import dml
from dmlemu.testing.stage import Stage

CHECK = "DESC_OVERWRITTEN"


def run(stage: Stage, fixed: bool) -> None:
    stage.heap.set_name("heap")
    stage.fence.set_name("done")
    copy = stage.copy_operator("copy")
    frames = [dml.BufferBinding(stage.filled(f"frame {i}")) for i in range(2)]
    stage.dispatch(copy, frames[:1], [stage.buffer("output")])  # descriptors 0 and 1
    stage.submit()
    if fixed:
        stage.wait()
    stage.table(copy, first=0).bind_inputs(frames[1:])
