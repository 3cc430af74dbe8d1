"""No barrier stands between a dispatch and the one that reads its result; most of the time that works."""

from dmlemu import Strictness, d3d12
from dmlemu.testing import stable
from dmlemu.testing.stage import Stage, States

CHECK = "VAL_UNSTABLE"


def run(stage, fixed):
    def twice():
        stage = Stage(Strictness.RUNTIME)  # no check looks at it
        copy = stage.copy_operator("copy", 64)
        a, b, c = (
            stage.filled("a"),
            stage.buffer("b"),
            stage.host_buffer("c", kind="READBACK"),
        )
        stage.dispatch(copy, [a], [b])
        if fixed:
            transition = d3d12.ResourceBarrier.transition(
                b, States.UNORDERED_ACCESS, States.COPY_SOURCE
            )
            stage.list.resource_barrier([transition])
        stage.list.copy_buffer_region(c, 0, b, 0, 256)
        stage.run()
        with c.map() as memory:
            return memory.view("f4").copy()

    stable(twice)
