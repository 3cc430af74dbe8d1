"""``dmlemu explain``: what it prints is derived, so its text is not kept as a file."""

from __future__ import annotations

import pytest

from dmlemu import dml
from dmlemu.cli import main
from dmlemu.dml.operator_page import describe
from dmlemu.dml.operators import declared


def test_list_has_a_line_for_every_operator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(kind.name for kind in declared())
    assert all(len(line.split()) > 1 and len(line) <= 110 for line in lines)


@pytest.mark.parametrize("name", ["GEMM", "gemm", "DML_OPERATOR_GEMM", "dml_operator_gemm"])
def test_page_of_an_operator(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    assert capsys.readouterr().out == describe(dml.GemmOperatorDesc)
