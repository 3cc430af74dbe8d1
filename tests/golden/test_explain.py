"""``dmlemu explain``: what it prints is derived, so its text is not kept as a file."""

from __future__ import annotations

import pytest

from dmlemu import dml
from dmlemu.cli import main
from dmlemu.dml.declared import declared
from dmlemu.dml.operator_page import describe


def test_list_has_a_line_for_every_operator(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(kind.name for kind in declared())
    assert all(len(line.split()) > 1 and len(line) <= 110 for line in lines)


@pytest.mark.parametrize("name", ["GEMM", "gemm", "DML_OPERATOR_GEMM", "dml_operator_gemm"])
def test_page_of_an_operator(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", name]) == 0
    assert capsys.readouterr().out == describe(dml.GemmOperatorDesc)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("ELEMENT_WISE_EXP", ["FLOAT32 | 2 ULP | FLOAT32", "FLOAT16 | 1 ULP | computed in FLOAT32 or more"]),
        ("GEMM", ["FLOAT32 | 2 ULP + 2^-20 of the sum", "FLOAT16 | 1 ULP + 2^-20 of the sum"]),
        ("LSTM", ["FLOAT32 | 64 ULP + 2^-16 of the largest", "FLOAT16 | 1 ULP + 2^-16 of the largest"]),
        ("CAST", [f"{each} | 0 ULP | both round" for each in ("FLOAT32", "FLOAT16", "FLOAT64")]),
        ("ELEMENT_WISE_BIT_COUNT", []),  # has no floats
    ],
)
def test_a_page_says_how_far_floats_may_be_off(
    name: str, rows: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", name]) == 0
    _, _, accuracy = capsys.readouterr().out.partition("\n## Accuracy\n")
    found = [line for line in accuracy.partition("\n## ")[0].splitlines() if line.startswith("| FLOAT")]

    assert len(found) == len(rows)
    assert all(line.startswith(f"| {row}") for line, row in zip(found, rows, strict=True))
