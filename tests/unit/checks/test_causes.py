"""One report for each cause, with a count: a loop repeats one, a helper function records several."""

from __future__ import annotations

import numpy as np
import pytest
from stage import Stage, tensor, upload

from dmlemu import dml
from dmlemu.checks.values import Values
from dmlemu.reporting import Response

pytestmark = pytest.mark.dmlemu(expect=["*"])


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.device.reports.responses = dict.fromkeys(made.device.reports.responses, Response.COLLECT)
    return made


def counts(stage: Stage) -> list[tuple[str, int]]:
    return [(stored.report.id, stored.count) for stored in stage.device.reports]


def test_a_hazard_in_a_loop_is_one(stage: Stage) -> None:
    first, second = stage.copy_operator("first"), stage.copy_operator("second")
    a, b, c = stage.filled("a", 64), stage.buffer("b", 64), stage.buffer("c", 64)
    for _ in range(3):
        stage.dispatch(first, [a], [b])
        stage.dispatch(second, [b], [c])
        stage.run()
    assert counts(stage) == [("HAZARD_RAW", 3)]


def test_hazards_of_operators_that_one_line_records_are_several(stage: Stage) -> None:
    layers = [stage.copy_operator(f"layer {i}") for i in range(4)]
    a, b = stage.filled("a", 64), stage.buffer("b", 64)
    for i, layer in enumerate(layers):
        stage.dispatch(layer, [a if i % 2 == 0 else b], [b if i % 2 == 0 else a])
        if i % 2:
            stage.barrier()
    stage.run()
    assert sorted(counts(stage)) == [("HAZARD_RAW", 1)] * 2 + [("HAZARD_WAR", 1)] * 2


def test_a_value_in_a_loop_is_one(stage: Stage) -> None:
    stage.device.checks.add(Values)
    layout = tensor([4])
    desc = dml.ActivationLinearOperatorDesc(input_tensor=layout, output_tensor=layout, alpha=1e30, beta=0.0)
    operators = [stage.compile(desc, name) for name in ("one", "two")]
    stage.initialize(*operators)
    values, result = upload(stage, "values", np.full(4, 3e9, np.float32)), stage.buffer("result")
    for _ in range(3):
        for operator in operators:
            stage.dispatch(operator, [values], [result])
            stage.barrier()
        stage.run()
    assert counts(stage) == [("VAL_INF_BORN", 3), ("VAL_INF_BORN", 3)]
