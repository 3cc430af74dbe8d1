"""Inputs of which an operator reads only a part: the rest may be unwritten, or written meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from dmlemu import dml
from dmlemu.errors import Severity
from dmlemu.reporting import Response
from dmlemu.testing.stage import Stage, identity, product, tensor

INT32, UINT8 = dml.TensorDataType.INT32, dml.TensorDataType.UINT8
SIDE = 12  # rows and columns of the image; a row is three words of 4 bytes

pytestmark = pytest.mark.dmlemu(expect=["HAZARD_*", "MEM_*"])


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.device.reports.responses = dict.fromkeys(Severity, Response.COLLECT)
    return made


def said(stage: Stage) -> list[str]:
    return [f"{each.report.id}: {each.report.message}" for each in stage.device.reports]


def convolution(stage: Stage, stride: int, window: int, dilation: int = 1, padding: int = 0) -> Any:
    """Along both axes of an image of UINT8; it is initialised."""
    result = (SIDE + padding - (window - 1) * dilation - 1) // stride + 1
    desc = dml.ConvolutionIntegerOperatorDesc(
        input_tensor=tensor([1, 1, SIDE, SIDE], data_type=UINT8),
        filter_tensor=tensor([1, 1, window, window], data_type=UINT8),
        output_tensor=tensor([1, 1, result, result], data_type=INT32),
        strides=[stride, stride],
        dilations=[dilation, dilation],
        start_padding=[padding, padding],
        end_padding=[0, 0],
        group_count=1,
    )
    compiled = stage.compile(desc, "filter")
    stage.initialize(compiled)
    return compiled


def test_rows_left_over_at_the_end_need_not_be_written(stage: Stage) -> None:
    """Windows cover rows 0 to 10 of 12; columns too, but a copy fills whole rows."""
    compiled = convolution(stage, stride=2, window=3)
    image, upload = stage.buffer("image", SIDE * SIDE), stage.filled("upload", SIDE * SIDE)
    stage.list.copy_buffer_region(image, 0, upload, 0, 11 * SIDE)
    stage.run()
    stage.dispatch(compiled, [image, None, stage.filled("window", 12), None], [stage.buffer("sums", 100)])
    stage.run()

    assert said(stage) == []


def test_the_last_row_that_a_window_covers_must_be_written(stage: Stage) -> None:
    compiled = convolution(stage, stride=2, window=3)
    image, upload = stage.buffer("image", SIDE * SIDE), stage.filled("upload", SIDE * SIDE)
    stage.list.copy_buffer_region(image, 0, upload, 0, 10 * SIDE)
    stage.run()
    stage.dispatch(compiled, [image, None, stage.filled("window", 12), None], [stage.buffer("sums", 100)])
    stage.run()

    [only] = said(stage)
    assert only.startswith("MEM_UNINIT_READ") and "reads element (0, 0, 10, 0) of InputTensor" in only


def test_an_element_is_named_as_the_tensor_counts_it(stage: Stage) -> None:
    """Rows and columns 1, 3, 5 ... are read: the first one lies in the padding."""
    compiled = convolution(stage, stride=2, window=1, padding=1)
    image, upload = stage.buffer("image", SIDE * SIDE), stage.filled("upload", SIDE * SIDE)
    stage.list.copy_buffer_region(image, 0, upload, 0, 4 * SIDE)
    stage.run()
    stage.dispatch(compiled, [image, None, stage.filled("window", 4), None], [stage.buffer("sums", 196)])
    stage.run()

    [only] = said(stage)
    assert "reads element (0, 0, 5, 1) of InputTensor" in only
    assert f"byte {5 * SIDE + 1} " in only


@pytest.mark.parametrize(
    ("offset", "count", "expected"),
    [
        (16, 4, []),
        (16, 8, []),
        (32, 5, ["byte 48 of buffer 'image', element (0, 0, 4, 0)"]),
        (48, 4, ["bytes [48, 57) of buffer 'image', elements (0, 0, 4, 0) to (0, 0, 4, 8)"]),
    ],
)
def test_rows_between_windows_may_be_written_meanwhile(
    stage: Stage, offset: int, count: int, expected: list[str]
) -> None:
    """Every fourth place of every fourth row is read; ``count`` words from the offset on are written."""
    compiled = convolution(stage, stride=4, window=1)
    mend = stage.compile(identity(count), "mend")
    stage.initialize(mend)
    image, window = stage.filled("image", SIDE * SIDE), stage.filled("window", 4)
    source = stage.filled("new", 64)
    stage.dispatch(compiled, [image, None, window, None], [stage.buffer("sums", 36)])
    stage.dispatch(mend, [source], [dml.BufferBinding(image, offset, SIDE * SIDE - offset)])
    stage.run()

    found = [stored.report for stored in stage.device.reports]
    assert [each.id for each in found] == ["HAZARD_WAR"] * len(expected)
    assert [each.ranges[0].partition(": ")[2] for each in found] == expected


@pytest.mark.parametrize(("beta", "expected"), [(0.0, []), (1.0, ["MEM_UNINIT_READ"])])
def test_what_counts_nothing_need_not_be_written(stage: Stage, beta: float, expected: list[str]) -> None:
    compiled = stage.compile(product(beta=beta, c_tensor=tensor([1, 1, 4, 4])), "product")
    stage.initialize(compiled)
    a, b, output = stage.filled("a", 64), stage.filled("b", 64), stage.buffer("output", 64)
    stage.dispatch(compiled, [a, b, stage.buffer("c", 64)], [output])
    stage.run()

    assert [each.partition(":")[0] for each in said(stage)] == expected


def test_places_between_windows_need_not_be_written(stage: Stage) -> None:
    """Windows of 2 x 2, five apart: rows 0, 1, 5, 6, 10 and 11, which take several footprints."""
    compiled = convolution(stage, stride=5, window=2)
    image, upload = stage.buffer("image", SIDE * SIDE), stage.filled("upload", SIDE * SIDE)
    for row in (0, 5, 10):
        stage.list.copy_buffer_region(image, row * SIDE, upload, row * SIDE, 2 * SIDE)
    stage.run()
    stage.dispatch(compiled, [image, None, stage.filled("window", 4), None], [stage.buffer("sums", 36)])
    stage.run()

    assert said(stage) == []


@pytest.mark.parametrize(
    ("first", "count", "expected"),
    [
        (32, 7, False),  # the end of row 2, rows 3 and 4
        (32, 8, True),  # up to (5, 0) to (5, 3)
        (80, 1, True),  # (6, 8) to (6, 11), of which 10 and 11 are read
        (96, 6, False),
        (96, 7, True),
    ],
)
def test_places_between_windows_may_be_written_meanwhile(
    stage: Stage, first: int, count: int, expected: bool
) -> None:
    """``count`` words from byte ``first`` on; rows 2 to 4 and 7 to 9 are of no window."""
    compiled = convolution(stage, stride=5, window=2)
    mend = stage.compile(identity(count), "mend")
    stage.initialize(mend)
    image, window = stage.filled("image", SIDE * SIDE), stage.filled("window", 4)
    source = stage.filled("new", 64)
    stage.dispatch(compiled, [image, None, window, None], [stage.buffer("sums", 36)])
    stage.dispatch(mend, [source], [dml.BufferBinding(image, first, SIDE * SIDE - first)])
    stage.run()

    assert [each.partition(":")[0] for each in said(stage)] == ["HAZARD_WAR"] * expected
