"""What indices choose: checks see these elements, and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dmlemu
from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.diagnostics.location import set_provider
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.testing.stage import Stage, identity, tensor

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


def test_windows_with_more_gaps_than_are_followed(stage: Stage) -> None:
    """Elements between the windows were never written; windows of 32 elements are followed, of 33 not."""
    for window, expected in ((32, []), (33, ["MEM_READS_SCATTERED"])):
        pool = dml.AveragePoolingOperatorDesc(
            input_tensor=tensor([1, 1, 1, 34 * 40]),
            output_tensor=tensor([1, 1, 1, 40]),
            strides=[1, 34],
            window_size=[1, window],
            start_padding=[0, 0],
            end_padding=[0, 0],
            include_padding=False,
        )
        compiled = stage.compile(pool, "pool")
        stage.initialize(compiled)
        image, full = stage.buffer("image", 4 * 34 * 40), stage.filled("full", 4 * 34 * 40)
        for row in range(40):
            stage.list.copy_buffer_region(image, 4 * 34 * row, full, 0, 4 * window)
        stage.run()
        stage.dispatch(compiled, [image], [stage.buffer("result", 4 * 40)])
        stage.run()
        assert said(stage) == expected


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


@pytest.mark.parametrize(("batch", "used"), [(-1, 0), (2, 1), (np.inf, 1), (np.nan, 0)])
def test_an_index_may_be_a_float(stage: Stage, batch: float, used: int) -> None:
    """The first of the five numbers of a region; it is truncated, and the others may be any."""
    desc = dml.RoiPoolingOperatorDesc(
        input_tensor=tensor([2, 1, 1, 1]),
        roi_tensor=tensor([1, 1, 3, 5]),
        output_tensor=tensor([3, 1, 1, 1]),
        spatial_scale=1.0,
        pooled_size=dml.Size2D(1, 1),
    )
    pool = stage.compile(desc, "pool")
    stage.initialize(pool)
    regions = np.float32([[1.9, -7, -7, 9, 9], [-0.9, 0, 0, 0, 0], [batch, 0, 0, 0, 0]])
    stage.dispatch(
        pool, [stage.filled("image", 8), stage.upload("regions", regions)], [stage.buffer("result")]
    )
    stage.run()

    [stored] = stage.device.reports
    assert (stored.report.id, stored.report.expected) == ("MEM_INDEX_VALUE", "0 to 1")
    assert f"reads index {float(batch)} from element (2, 0) of ROITensor" in stored.report.message
    assert f"InputTensor.Sizes[0] is 2: index {used} is used instead." in stored.report.message


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
