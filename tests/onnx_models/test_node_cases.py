"""The backend tests of the onnx package: each gives the right result, where the list says that it runs."""

from __future__ import annotations

from typing import Any

import node_cases
import onnx
import pytest

PARTS = 24
OTHERS = pytest.param("others", marks=pytest.mark.long(parts=4))


def _cases() -> list[Any]:
    return [*node_cases.file_cases(), *node_cases.cases()]


@pytest.mark.dmlemu(expect=["*"])  # what is looked for in them is a result
@pytest.mark.parametrize("which", ["few", OTHERS])
@pytest.mark.parametrize("part", range(PARTS))
def test_each_case_is_right_where_the_list_says_that_it_runs(part: int, which: str) -> None:
    if onnx.__version__ != "1.23.2":
        pytest.skip(f"the list is of onnx 1.23.2, and this is {onnx.__version__}")
    listed, wrong = node_cases.listed(), []
    for case in _cases()[part::PARTS]:
        if (node_cases.title(case) in node_cases.few()) is not (which == "few"):
            continue
        expected = listed.get(node_cases.title(case), "device")
        if expected.startswith("left out"):
            assert node_cases.left_out(case.name), case.name
            continue
        try:
            where = node_cases.run(case)
        except AssertionError as error:
            wrong.append(str(error))
            continue
        if where != expected:
            wrong.append(f"{node_cases.title(case)} runs on {where}; the list says {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("part", range(PARTS))
def test_layouts_of_the_tensors_between_operators_change_no_result(part: int) -> None:
    listed, wrong = node_cases.listed(), []
    for number, case in enumerate(_cases()[part::PARTS]):
        if listed.get(node_cases.title(case), "device") != "device":
            continue
        try:
            node_cases.run(case, layouts=number)
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


def test_most_node_cases_run_on_the_device_alone() -> None:
    listed = [where for name, where in node_cases.listed().items() if "/" not in name]
    assert len(node_cases.cases()) - len(listed) >= 1500
    assert len(node_cases.cases()) - sum(each.startswith("left out") for each in listed) >= 1700


@pytest.mark.parametrize(
    ("kind", "count"), [("pytorch-converted", 82), ("pytorch-operator", 35), ("simple", 23)]
)
def test_models_of_files_run(kind: str, count: int) -> None:
    if onnx.__version__ != "1.23.2":
        pytest.skip(f"the list is of onnx 1.23.2, and this is {onnx.__version__}")
    listed = node_cases.listed()
    names = [node_cases.title(case) for case in node_cases.file_cases() if case.kind == kind]
    assert len(names) == count
    assert sum(listed.get(name, "").startswith("left out") for name in names) <= 2
