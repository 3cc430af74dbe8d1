"""One queue resolves the timestamps that another one takes, and no fence lies between."""

from dmlemu import d3d12
from dmlemu.testing.stage import Stage, other_queue

CHECK = "HAZARD_QUEUE"


def run(stage: Stage, fixed: bool) -> None:
    times, result = (
        stage.device.create_query_heap(d3d12.QueryHeapDesc(count=2)),
        stage.buffer("result"),
    )
    times.set_name("times")
    direct = other_queue(stage, "DIRECT")
    direct.fence.set_name("taken")
    timestamp = d3d12.QueryType.TIMESTAMP
    direct.list.end_query(times, timestamp, 0)
    direct.submit()
    stage.list.resolve_query_data(times, timestamp, 0, 1, result, 0)
    if fixed:
        stage.queue.wait(direct.fence, 1)
    stage.submit()
    stage.wait()
    direct.wait()
