"""The heap of the timestamps is released before they are resolved."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "OBJECT_DELETED_IN_USE"


def run(stage: Stage, fixed: bool) -> None:
    times = stage.device.create_query_heap(
        d3d12.QueryHeapDesc(d3d12.QueryHeapType.TIMESTAMP, 1)
    )
    times.set_name("times")
    buffer = stage.host_buffer("resolved", 8, "READBACK")
    stage.list.end_query(times, d3d12.QueryType.TIMESTAMP, 0)
    stage.list.resolve_query_data(times, d3d12.QueryType.TIMESTAMP, 0, 1, buffer, 0)
    stage.submit()
    if fixed:
        stage.wait()
    times.release()
