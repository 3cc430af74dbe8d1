"""Three timestamps are resolved, and only two were written."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "QUERY_NOT_ENDED"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_query_heap(
        d3d12.QueryHeapDesc(d3d12.QueryHeapType.TIMESTAMP, 3)
    )
    buffer = stage.host_buffer("times", 24, "READBACK")
    stage.list.end_query(heap, d3d12.QueryType.TIMESTAMP, 0)
    stage.list.end_query(heap, d3d12.QueryType.TIMESTAMP, 1)
    stage.list.resolve_query_data(
        heap, d3d12.QueryType.TIMESTAMP, 0, 2 if fixed else 3, buffer, 0
    )
    stage.run()
