"""Each row of the table of oracles, over descs that are drawn as in a campaign: those that compute a case
agree with the reference, and a reference that is wrong is told."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from dmlemu import dml
from dmlemu.campaign.oracles import (
    ROWS,
    WITHOUT,
    Verdict,
    against,
    installed,
    judge,
    spell_verdicts,
    table_rows,
)
from dmlemu.campaign.subjects import Request, open_subject, plan
from dmlemu.dml import OperatorType
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.definition import emulated, example_of
from dmlemu.testing.conformance import small_inputs

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("scipy")

FEW, MANY = 8, 200
SELECTIVE = sorted(name for name, row in ROWS.items() if row.passes)
"""Rows that pass over a part of their operator: what they take is most likely to be wrong."""


class Case(NamedTuple):
    desc: Any
    inputs: dict[str, Any]
    expected: dict[str, Any]
    verdicts: list[Verdict]


def cases(name: str, count: int) -> Iterator[Case]:
    """What a campaign draws, without running it."""
    subject: Any = open_subject(plan(Request(f"operators:{name}", layouts=count)))
    for index in range(count):
        drawn = subject._case(index)
        drawn.only_judged = True
        if subject._draw(drawn, index):
            inputs = small_inputs(drawn.desc, drawn.values)
            yield Case(drawn.desc, inputs, drawn.desc.reference(inputs), drawn.verdicts)


@cache
def able(name: str) -> list[str]:
    """The installed ones that have a function for it."""
    there = {each.name for each in installed()}
    (names,) = (names for operator, names in table_rows() if operator == name)
    return [each for each in names if each in there]


def skip_without_oracle(name: str) -> None:
    if not able(name):
        (names,) = (names for operator, names in table_rows() if operator == name)
        pytest.skip(f"{name} is judged by {' and '.join(names)}, which is not installed")


def assert_agreed(name: str, count: int) -> int:
    """Returns how many were judged."""
    judged = 0
    for case in cases(name, count):
        judged += bool(case.verdicts)
        wrong = [each for each in case.verdicts if not each.agrees]
        assert wrong == [], f"{spell_verdicts(case.verdicts)}\n{case.desc!r}"
    return judged


@pytest.mark.parametrize("name", SELECTIVE)
def test_oracles_agree_with_the_reference(name: str) -> None:
    skip_without_oracle(name)
    assert_agreed(name, FEW)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(ROWS))
def test_oracles_agree_in_hundreds_of_cases(name: str) -> None:
    skip_without_oracle(name)
    assert assert_agreed(name, MANY) >= 3


@pytest.mark.parametrize("name", SELECTIVE)
def test_a_wrong_reference_is_told(name: str) -> None:
    """One element of an output is another; if several judge it, the reference is outvoted."""
    skip_without_oracle(name)
    case = next((case for case in cases(name, MANY) if case.verdicts), None)
    assert case is not None, "no case was judged"
    output = next(iter(case.verdicts[0].results)).partition("[")[0]
    wrong = {**case.expected, output: planted(case.expected[output])}
    found = judge(case.desc, case.inputs, wrong, installed())

    assert {each.oracle for each in found} == {each.oracle for each in case.verdicts}
    judges = [each for each in found if output in {key.partition("[")[0] for key in each.results}]
    assert judges and not any(each.agrees for each in judges)
    assert len(judges) == 1 or len(against(found)) == 2


def planted(value: Any) -> Any:
    """With another first element."""
    if isinstance(value, list):
        return [planted(value[0]), *value[1:]]
    found = np.array(value)
    first = found.flat[0]
    found.flat[0] = first + 1 if found.dtype.kind == "f" and np.isfinite(first) else 1 - min(first, 1)
    return found


def test_each_operator_has_a_row_or_a_reason() -> None:
    names = {each.name for each in emulated()}

    assert set(ROWS) | set(WITHOUT) == names and not set(ROWS) & set(WITHOUT)
    assert all(text.strip() for text in WITHOUT.values())


# --- what is passed over ---


def judges_of(name: str, changes: dict[str, Any], inputs: dict[str, Any] | None = None) -> set[str]:
    """Who judges the operator's example with these changes, of those that the tests always have."""
    desc: Any = replace(example_of(declared()[OperatorType[name]]), **changes)
    arrays = {**small_inputs(desc, 5), **(inputs or {})}
    found = judge(desc, arrays, desc.reference(arrays), installed())
    assert all(each.agrees for each in found), spell_verdicts(found)
    return {each.oracle.name for each in found} & {"onnxruntime", "onnx.reference", "scipy"}


BOTH, RUNTIME = {"onnxruntime", "onnx.reference"}, {"onnxruntime"}
LENGTHS = {"sequence_lengths_tensor": np.array([[[[3, 3]]]], np.uint32)}
SHORT = {"sequence_lengths_tensor": np.array([[[[3, 1]]]], np.uint32)}
NONE = {"sequence_lengths_tensor": np.array([[[[3, 0]]]], np.uint32)}


@pytest.mark.parametrize(
    ("name", "changes", "inputs", "judges"),
    [
        ("LSTM", {"use_clip_threshold": False, "couple_input_forget": False}, LENGTHS, BOTH),
        ("LSTM", {"use_clip_threshold": True, "clip_threshold": 0.5}, LENGTHS, RUNTIME),
        ("LSTM", {"use_clip_threshold": False, "couple_input_forget": True}, LENGTHS, RUNTIME),
        ("GRU", {}, SHORT, RUNTIME),
        ("GRU", {}, NONE, set()),
        ("RNN", {"activation_descs": [dml.ActivationEluOperatorDesc(alpha=0.5)] * 2}, LENGTHS, RUNTIME),
        ("RNN", {"activation_descs": [dml.ActivationGeluOperatorDesc()] * 2}, LENGTHS, set()),
        ("MULTIHEAD_ATTENTION", {}, None, BOTH),
        ("MULTIHEAD_ATTENTION", {"scale": -0.5}, None, set()),
        ("RESAMPLE2", {}, None, BOTH | {"scipy"}),
        ("RESAMPLE2", {"input_pixel_offsets": [0.25] * 4}, None, {"scipy"}),
        ("RESAMPLE3", {"antialiased": True, "scales": [1.0, 1.0, 0.5, 0.5]}, None, BOTH),
        ("SCATTER_ELEMENTS", {}, None, BOTH),
    ],
)
def test_what_a_package_has_otherwise_is_passed_over(
    name: str, changes: dict[str, Any], inputs: dict[str, Any] | None, judges: set[str]
) -> None:
    assert judges_of(name, changes, inputs) == judges


@pytest.mark.parametrize(("indices", "judges"), [([0, 2], BOTH), ([2, 2], set()), ([0, 3], set())])
def test_two_updates_of_one_element_are_passed_over(indices: list[int], judges: set[str]) -> None:
    """And one that is outside."""
    row, two = (dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [1, 1, 1, n]) for n in (3, 2))
    changes = {
        "input_tensor": row,
        "indices_tensor": replace(two, data_type=dml.TensorDataType.UINT32),
        "updates_tensor": two,
        "output_tensor": row,
        "axis": 3,
    }
    given = np.array(indices, np.uint32).reshape(1, 1, 1, 2)

    assert judges_of("SCATTER_ELEMENTS", changes, {"indices_tensor": given}) == judges


def test_images_outside_the_batch_are_passed_over() -> None:
    desc: Any = example_of(declared()[OperatorType.ROI_ALIGN])
    tensor = desc.batch_indices_tensor
    inside, outside = (np.full(tensor.sizes, n, tensor.dtype) for n in (0, desc.input_tensor.sizes[0]))

    assert "scipy" in judges_of("ROI_ALIGN", {}, {"batch_indices_tensor": inside})
    assert judges_of("ROI_ALIGN", {}, {"batch_indices_tensor": outside}) == set()
