"""HAZARD_QUEUE for queries that two queues use, in whatever order the emulated GPU takes its turns."""

from __future__ import annotations

from typing import Any

import pytest

from dmlemu import chaos, d3d12
from dmlemu.d3d12 import Policy
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.testing.stage import OtherQueue, Stage, other_queue

pytestmark = pytest.mark.dmlemu(expect=["HAZARD_QUEUE*"])
TIMESTAMP = d3d12.QueryType.TIMESTAMP


class Times:
    """Two queues and a query heap; a mistake is only collected."""

    def __init__(self, policy: object) -> None:
        self.stage = Stage(policy=policy)
        self.stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
        self.direct = other_queue(self.stage, "DIRECT")
        self.result = self.stage.buffer("result")
        self.heap = self.new_heap()

    def new_heap(self) -> Any:
        return self.stage.device.create_query_heap(d3d12.QueryHeapDesc(count=4))

    def take(self, where: Stage | OtherQueue, index: int = 0) -> None:
        where.list.end_query(self.heap, TIMESTAMP, index)

    def resolve(self, where: Stage | OtherQueue, first: int = 0, count: int = 1) -> None:
        where.list.resolve_query_data(self.heap, TIMESTAMP, first, count, self.result, 64 * (first == 0))

    def end(self) -> list[str]:
        """Waits for both queues; what was said of each query."""
        self.stage.wait()
        self.direct.wait()
        reports = [each.report for each in self.stage.device.reports if each.report.id == "HAZARD_QUEUE"]
        return [each.message.partition(" query ")[2].partition(" ")[0] for each in reports]


@pytest.fixture(params=[Policy.LAZY, Policy.EAGER, *map(chaos, range(4))], ids=str)
def times(request: pytest.FixtureRequest) -> Times:
    return Times(request.param)


def test_no_fence(times: Times) -> None:
    times.take(times.direct, 2)
    times.take(times.direct, 1)
    times.direct.submit()
    times.resolve(times.stage, 1, 2)
    times.stage.submit()
    said = times.end()
    assert said[0] == "1" or said == ["2", "1"], "the lowest of a command, or one for each that writes"


def test_both_write(times: Times) -> None:
    for each in (times.direct, times.stage):
        times.take(each)
        each.submit()
    assert times.end() == ["0"]


def test_a_fence_between_the_queues(times: Times) -> None:
    times.take(times.direct)
    times.direct.submit()
    times.stage.queue.wait(times.direct.fence, 1)
    times.resolve(times.stage)
    times.stage.submit()
    assert times.end() == []


def test_the_host_waits_between(times: Times) -> None:
    times.take(times.direct)
    times.direct.submit()
    times.direct.wait()
    times.resolve(times.stage)
    times.stage.submit()
    times.stage.wait()
    times.take(times.direct)
    times.direct.submit()
    times.direct.wait()
    times.stage.submit()
    assert times.stage.device.reports.summary() == ""


def test_a_fence_that_is_signalled_too_early(times: Times) -> None:
    fence = times.stage.device.create_fence()
    times.direct.queue.signal(fence, 1)
    times.take(times.direct)
    times.direct.submit()
    times.stage.queue.wait(fence, 1)
    times.resolve(times.stage)
    times.stage.submit()
    assert times.end() == ["0"]


def test_queries_of_their_own(times: Times) -> None:
    times.take(times.direct, 0)
    times.direct.submit()
    times.take(times.stage, 1)
    times.resolve(times.stage, 1)
    times.stage.submit()
    assert times.end() == []


def test_another_heap_at_the_place_of_one_that_is_gone(times: Times) -> None:
    """The program waits for its end, by the other queue's fence alone."""
    times.take(times.direct)
    times.direct.submit()
    times.direct.wait()
    for _ in range(3):
        times.heap.release()
        times.heap = times.new_heap()
        times.take(times.stage)
        times.stage.submit()
        times.stage.wait()
    times.stage.submit()
    times.direct.submit()
    assert times.end() == []
