"""What indices choose: checks see these elements, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from stage import Stage, identity, tensor

import dmlemu
from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.diagnostics.location import set_provider
from dmlemu.errors import Severity
from dmlemu.reporting import Response

UINT32 = dml.TensorDataType.UINT32

pytestmark = pytest.mark.dmlemu(expect=["HAZARD_*", "MEM_*"])


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    return made


def said(stage: Stage) -> list[str]:
    return [each.report.id for each in stage.device.reports]


def gather(stage: Stage, size: int, count: int) -> Any:
    desc = dml.GatherElementsOperatorDesc(
        input_tensor=tensor([size]),
        indices_tensor=tensor([count], data_type=UINT32),
        output_tensor=tensor([count]),
        axis=0,
    )
    compiled = stage.compile(desc, "pick")
    stage.initialize(compiled)
    return compiled


@pytest.mark.parametrize(
    ("indices", "expected"),
    [([0, 3, 1, 8], []), ([0, 3, 4, 8], ["HAZARD_WAR"]), ([7, 7, 7, 7], ["HAZARD_WAR"])],
)
def test_what_is_not_chosen_may_be_written_meanwhile(
    stage: Stage, indices: list[int], expected: list[str]
) -> None:
    """Elements 4 to 7 are written."""
    pick, mend = gather(stage, 16, 4), stage.compile(identity(4), "mend")
    stage.initialize(mend)
    table, source = stage.filled("table", 64), stage.filled("new", 16)
    stage.dispatch(pick, [table, stage.upload("places", np.uint32(indices))], [stage.buffer("result")])
    stage.dispatch(mend, [source], [dml.BufferBinding(table, 16, 16)])
    stage.run()

    assert said(stage) == expected


def test_of_too_many_pieces_nothing_is_reported_but_that(stage: Stage) -> None:
    """Half of the table was never written; the other dispatch writes to what is chosen."""
    count = 4096
    pick, mend = gather(stage, 2 * count, count), stage.compile(identity(4), "mend")
    stage.initialize(mend)
    table, source = stage.buffer("table", 8 * count), stage.filled("new", 16)
    places = np.random.default_rng(1).permutation(2 * count)[:count].astype(np.uint32)
    chosen = stage.upload("places", places)
    for _ in range(2):
        stage.dispatch(pick, [table, chosen], [stage.buffer("result", 4 * count)])
        stage.dispatch(mend, [source], [dml.BufferBinding(table, 16, 16)])
        stage.run()

    assert said(stage) == ["MEM_READS_SCATTERED"]


def test_indices_that_were_written_by_the_dispatch_before(stage: Stage) -> None:
    """When the lists are handed over, the buffer still holds other indices."""
    pick = gather(stage, 16, 4)
    places = stage.upload("places", np.uint32([90, 91, 92, 93]))
    right = stage.upload("right", np.uint32([1, 2, 3, 4]))
    layout = tensor([4], data_type=UINT32)
    copy = stage.compile(
        dml.ElementWiseIdentityOperatorDesc(input_tensor=layout, output_tensor=layout), "copy"
    )
    stage.initialize(copy)
    stage.dispatch(copy, [right], [places])
    stage.barrier(places)
    stage.dispatch(pick, [stage.filled("table", 64), places], [stage.buffer("result")])
    stage.run()

    assert said(stage) == []


@pytest.mark.parametrize("seed", range(3))
def test_chaos_keeps_the_order_of_barriers(seed: int) -> None:
    stage = Stage(policy=dmlemu.chaos(seed, {"order"}))
    stage.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)

    test_indices_that_were_written_by_the_dispatch_before(stage)


def test_a_nan_that_was_chosen_was_not_born(stage: Stage) -> None:
    stage.device.checks.add(Values)
    values = np.arange(16, dtype=np.float32)
    values[[3, 9]] = np.nan
    table, places = stage.upload("table", values), stage.upload("places", np.uint32([3, 0, 15, 9]))
    stage.dispatch(gather(stage, 16, 4), [table, places], [stage.buffer("result")])
    stage.run()

    assert said(stage) == []


def test_an_index_is_told_of_once_for_each_line(stage: Stage) -> None:
    pick = gather(stage, 16, 4)
    table, places = stage.filled("table", 64), stage.upload("places", np.uint32([3, 16, 15, 9]))
    result = stage.buffer("result")
    for _ in range(3):
        stage.dispatch(pick, [table, places], [result])
        stage.barrier(result)
    stage.run()

    [stored] = stage.device.reports
    report = stored.report
    assert (report.id, report.severity, report.given, report.expected) == (
        "MEM_INDEX_VALUE",
        Severity.WARNING,
        16,
        "0 to 15",
    )
    assert "index 16 from element (1) of IndicesTensor" in report.message


def test_without_lines_each_dispatch_is_a_cause(stage: Stage) -> None:
    """As under ``dmlemu run``."""
    pick = gather(stage, 16, 4)
    table, result = stage.filled("table", 64), stage.buffer("result")
    places = [stage.upload(f"places {i}", np.uint32([3, i, 15, 9])) for i in (16, 17)]
    before = set_provider(lambda: None)
    try:
        for each in places:
            stage.dispatch(pick, [table, each], [result])
            stage.barrier(result)
        stage.run()
    finally:
        set_provider(before)

    assert [each.report.given for each in stage.device.reports] == [16, 17]


# --- scatters ---


def scatter(stage: Stage, size: int, count: int) -> Any:
    desc = dml.ScatterElementsOperatorDesc(
        input_tensor=tensor([size]),
        indices_tensor=tensor([count], data_type=UINT32),
        updates_tensor=tensor([count]),
        output_tensor=tensor([size]),
        axis=0,
    )
    compiled = stage.compile(desc, "put")
    stage.initialize(compiled)
    return compiled


def run_scatter(stage: Stage, indices: list[int], updates: Any) -> None:
    put = scatter(stage, 8, len(indices))
    inputs = [stage.filled("table", 32), stage.upload("places", np.uint32(indices)), updates]
    stage.dispatch(put, inputs, [stage.buffer("result")])
    stage.run()


@pytest.mark.parametrize(
    ("indices", "updates", "expected"),
    [
        ([1, 2, 3], [5, 5, 5], None),
        ([1, 2, 1], [5, 6, 5], None),
        ([1, 1, 2], [0.0, -0.0, 5], "writes 0.0 and -0.0 in undefined order to element (1) of OutputTensor"),
        ([3, 1, 1, 1], [1, 5, 5, 6], "from elements (2) and (3) of UpdatesTensor"),
        ([5, 3, 5, 3], [1, 2, 3, 4], "select it; 1 more place is selected twice, too"),
    ],
)
def test_updates_of_one_element(
    stage: Stage, indices: list[int], updates: list[float], expected: str | None
) -> None:
    """Silent if the values are bit by bit the same: then their order does not matter."""
    run_scatter(stage, indices, stage.upload("new", np.float32(updates)))

    assert said(stage) == ([] if expected is None else ["MEM_SCATTER_RACE"])
    assert expected is None or expected in next(iter(stage.device.reports)).report.message


def test_an_update_whose_index_is_outside_is_not_read(stage: Stage) -> None:
    """The second one was never written."""
    new, first = stage.buffer("new", 16), stage.compile(identity(1), "first")
    stage.initialize(first)
    stage.dispatch(first, [stage.filled("one", 4)], [new])
    stage.barrier(new)
    run_scatter(stage, [2, 8], new)

    assert said(stage) == ["MEM_INDEX_VALUE"]
    assert "its update is not written" in next(iter(stage.device.reports)).report.message


def test_the_coordinates_of_tuples_and_blocks(stage: Stage) -> None:
    """Two blocks of two; they differ in their second elements."""
    desc = dml.ScatterNdOperatorDesc(
        input_tensor=tensor([2, 3, 2]),
        indices_tensor=tensor([1, 3, 2], data_type=dml.TensorDataType.INT32),
        updates_tensor=tensor([1, 3, 2]),
        output_tensor=tensor([2, 3, 2]),
        input_dimension_count=3,
        indices_dimension_count=2,
    )
    put = stage.compile(desc, "put")
    stage.initialize(put)
    tuples = np.int32([[1, 2], [0, 5], [-1, -1]])
    new = stage.upload("new", np.float32([[1, 2], [3, 4], [1, 9]]))
    inputs = [stage.filled("table", 48), stage.upload("places", tuples), new]
    stage.dispatch(put, inputs, [stage.buffer("result")])
    stage.run()

    index, race = (each.report.message for each in stage.device.reports)
    assert "index 5 from element (0, 1, 1) of IndicesTensor, but OutputTensor.Sizes[1] is 3" in index
    assert "writes 2.0 and 9.0 in undefined order to element (1, 2, 1) of OutputTensor" in race
    assert "from elements (0, 0, 1) and (0, 2, 1) of UpdatesTensor" in race
    assert "elements (0, 0, 0) and (0, 2, 0) of IndicesTensor both select it." in race
