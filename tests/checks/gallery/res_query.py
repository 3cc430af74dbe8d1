"""Two timestamps are resolved from the second slot on, and the heap has two."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage

CHECK = "QUERY"


def run(stage: Stage, fixed: bool) -> None:
    heap = stage.device.create_query_heap(
        d3d12.QueryHeapDesc(d3d12.QueryHeapType.TIMESTAMP, 2)
    )
    buffer = stage.host_buffer("times", 16, "READBACK")
    stage.list.end_query(heap, d3d12.QueryType.TIMESTAMP, 0)
    stage.list.end_query(heap, d3d12.QueryType.TIMESTAMP, 1)
    first = 0 if fixed else 1
    stage.list.resolve_query_data(heap, d3d12.QueryType.TIMESTAMP, first, 2, buffer, 0)
    stage.run()
