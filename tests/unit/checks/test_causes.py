"""One report for each cause, with a count: a loop repeats one, a helper function records several."""

from __future__ import annotations

import numpy as np
import pytest

from dmlemu import dml
from dmlemu.checks.initialisation.check import Initialisation
from dmlemu.checks.values import Values
from dmlemu.reporting import Response
from dmlemu.testing.stage import Stage, identity, other_queue, tensor

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
    values, result = stage.upload("values", np.full(4, 3e9, np.float32)), stage.buffer("result")
    for _ in range(3):
        for operator in operators:
            stage.dispatch(operator, [values], [result])
            stage.barrier()
        stage.run()
    assert counts(stage) == [("VAL_INF_BORN", 3), ("VAL_INF_BORN", 3)]


def test_reads_of_nothing_in_a_loop_are_one(stage: Stage) -> None:
    operator, never, result = (
        stage.copy_operator("copy"),
        stage.buffer("never", 64),
        stage.buffer("result", 64),
    )
    for _ in range(3):
        stage.dispatch(operator, [never], [result])
        stage.run()
    assert counts(stage) == [("MEM_UNINIT_READ", 3)]


def test_what_was_found_is_not_looked_for_again_because_of_new_memory(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches: list[int] = []
    search = Initialisation._last
    monkeypatch.setattr(Initialisation, "_last", lambda *each: searches.append(1) or search(*each))
    operator, never = stage.copy_operator("copy"), stage.buffer("never", 64)
    result, made = stage.buffer("result", 64), []
    for _ in range(3):
        stage.dispatch(operator, [never], [result])
        stage.run()
        if not made:
            first = len(searches)
        made.append(stage.buffer("another", 64))
    assert counts(stage) == [("MEM_UNINIT_READ", 3)]
    assert len(searches) == first > 0


# --- initializers without weights, which execute no command ---


def initialize_elsewhere(stage: Stage, count: int) -> list[object]:
    """Operators that a list of another queue initialises, without a fence."""
    other = other_queue(stage, "DIRECT")
    operators = [stage.compile(identity(), f"operator {i}") for i in range(count)]
    for operator in operators:
        initializer = stage.dml.create_operator_initializer([operator])
        stage.recorder.record_dispatch(other.list, initializer, stage.table(initializer))
    other.submit()
    return operators


def test_each_operator_of_a_list_of_initializers_is_told(stage: Stage) -> None:
    source, result = stage.filled("source", 64), stage.buffer("result", 64)
    for operator in initialize_elsewhere(stage, 3):
        stage.dispatch(operator, [source], [result])
        stage.barrier()
    stage.run()
    assert counts(stage) == [("OP_NOT_INITIALIZED", 1)] * 3


def test_an_initializer_in_the_list_itself_is_enough(stage: Stage) -> None:
    copy, source = stage.copy_operator("copy"), stage.filled("source", 64)
    [operator] = initialize_elsewhere(stage, 1)
    initializer = stage.dml.create_operator_initializer([operator])
    stage.recorder.record_dispatch(stage.list, initializer, stage.table(initializer))
    stage.dispatch(copy, [source], [stage.buffer("first", 64)])
    stage.dispatch(operator, [source], [stage.buffer("second", 64)])
    stage.run()
    assert counts(stage) == []
