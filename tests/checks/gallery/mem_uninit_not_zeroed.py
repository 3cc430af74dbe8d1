"""A buffer of a heap that is not zeroed is read before anybody has written it."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "MEM_UNINIT_READ"


def run(stage: Stage, fixed: bool) -> None:
    copy = stage.copy_operator("accumulate", count=16)
    total = stage.buffer("total", 64, heap_flags=d3d12.HeapFlags.CREATE_NOT_ZEROED)
    result = stage.buffer("result", 64)
    if fixed:
        stage.list.copy_buffer_region(total, 0, stage.filled("zeros", 64), 0, 64)
        stage.run()
    stage.dispatch(copy, [total], [result])
    stage.run()
