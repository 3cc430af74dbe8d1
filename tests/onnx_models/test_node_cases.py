"""The node tests of the onnx package: each gives the right result, where the list says that it runs."""

from __future__ import annotations

import node_cases
import onnx
import pytest

PARTS = 24


@pytest.mark.dmlemu(expect=["*"])  # what is looked for in them is a result
@pytest.mark.parametrize("expanded", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("part", range(PARTS))
def test_each_case_is_right_where_the_list_says_that_it_runs(part: int, expanded: bool) -> None:
    """Expanded: the function of an operator as a graph of others, which have cases of their own."""
    if onnx.__version__ != "1.23.2":
        pytest.skip(f"the list is of onnx 1.23.2, and this is {onnx.__version__}")
    listed, wrong = node_cases.listed(), []
    for case in node_cases.cases()[part::PARTS]:
        if ("_expanded" in case.name) is not expanded:
            continue
        expected = listed.get(case.name, "device")
        if expected.startswith("left out"):
            assert node_cases.left_out(case.name), case.name
            continue
        try:
            where = node_cases.run(case)
        except AssertionError as error:
            wrong.append(str(error))
            continue
        if where != expected:
            wrong.append(f"{case.name} runs on {where}; the list says {expected}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.long
@pytest.mark.dmlemu(expect=["*"])
@pytest.mark.parametrize("part", range(PARTS))
def test_layouts_of_the_tensors_between_operators_change_no_result(part: int) -> None:
    listed, wrong = node_cases.listed(), []
    for number, case in enumerate(node_cases.cases()[part::PARTS]):
        if listed.get(case.name, "device") != "device":
            continue
        try:
            node_cases.run(case, layouts=number)
        except AssertionError as error:
            wrong.append(str(error))
    assert not wrong, "\n".join(wrong)


def test_most_cases_run_on_the_device_alone() -> None:
    listed = list(node_cases.listed().values())
    assert len(node_cases.cases()) - len(listed) >= 1500
    assert len(node_cases.cases()) - sum(each.startswith("left out") for each in listed) >= 1700
