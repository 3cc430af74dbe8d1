"""What is measured of the tests' descs, and how it is printed."""

from __future__ import annotations

from pathlib import Path

import measured
import pytest
from examples import EXAMPLES, tensor

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType, operator_page
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.definition import emulated
from dmlemu.testing.coverage import layouts_of_desc

GEMM = EXAMPLES[OperatorType.GEMM]


@pytest.mark.parametrize(
    ("desc", "expected"),
    [
        (tensor(T.INT8, 2, 3), "packed"),
        (tensor(T.INT8, 2, 1, 3, strides=[3, 99, 1]), "packed"),
        (tensor(T.INT8, 2, 3, strides=[1, 2]), "permuted"),
        (tensor(T.INT8, 2, 3, strides=[4, 1]), "padded"),
        (tensor(T.INT8, 2, 3, strides=[2, 4]), "permuted, padded"),
        (tensor(T.INT8, 2, 3, strides=[0, 1]), "broadcast"),
        (tensor(T.INT8, 2, 3, strides=[1, 1]), "overlapping"),
        (BufferTensorDesc(T.INT8, [2, 2], None, 8), "packed, longer than needed"),
        (BufferTensorDesc(T.INT8, [4], flags=dml.TensorFlags.OWNED_BY_DML), "packed, owned by DirectML"),
    ],
)
def test_layouts(desc: BufferTensorDesc, expected: str) -> None:
    assert ", ".join(layouts_of_desc(desc, False)) == expected


def test_an_offset_is_a_layout_too() -> None:
    assert layouts_of_desc(tensor(T.INT8, 4), True) == ("packed", "at an offset")


@pytest.mark.parametrize(("ranks", "text"), [({1, 2, 3, 8}, "1-3,8"), ({4}, "4"), ({1, 3, 4}, "1,3-4")])
def test_spans(ranks: set[int], text: str) -> None:
    assert measured.spans(ranks) == text


def test_what_is_compared_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of two processes; a level counts for the table that it uses."""
    monkeypatch.setattr(measured, "FOLDER", str(tmp_path / "parts"))
    for process, level in ((1, None), (2, FeatureLevel.LEVEL_2_0)):
        monkeypatch.setattr(measured, "_cells", set())
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        measured.record(GEMM, 0, level)
        measured.write()
    file = tmp_path / "measured.txt"
    file.write_text(measured.merged((tmp_path / "parts").iterdir()))
    monkeypatch.setattr(operator_page, "MEASURED", file)

    page = operator_page.describe(dml.GemmOperatorDesc)

    assert "| from level | field | data types | packed | broadcast |\n" in page
    assert "| 1_0 | ATensor | FLOAT32 | 4 | |\n" in page
    assert "| 1_0 | CTensor | FLOAT32 | | 4 |\n" in page
    assert "Not measured here" in operator_page.describe(dml.CastOperatorDesc)
    monkeypatch.setattr(operator_page, "definition_class", lambda type: None)  # as if it was not emulated
    assert "## Tested" not in operator_page.describe(dml.CastOperatorDesc)


def test_without_the_file_pages_say_how_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_page, "MEASURED", tmp_path / "measured.txt")

    assert operator_page.measured_rows() == []
    assert "## Tested\n\nNot measured here: `make measured`" in operator_page.describe(dml.GemmOperatorDesc)


def test_an_operator_that_was_not_compared_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "measured.txt"
    monkeypatch.setattr(measured, "MEASURED", file)
    monkeypatch.setattr("sys.argv", ["measured.py", str(tmp_path / "parts")])
    (tmp_path / "parts").mkdir()
    rows = {each: f"{each.name},1_0,InputTensor,FLOAT32,packed,4\n" for each in emulated()}
    (tmp_path / "parts" / "1.txt").write_text(
        "".join(rows[each] for each in rows if each != OperatorType.GEMM)
    )

    assert measured.main() == 1
    assert capsys.readouterr().err == "nothing was compared with the references of GEMM\n"
    assert not file.exists()

    (tmp_path / "parts" / "2.txt").write_text(rows[OperatorType.GEMM])
    assert measured.main() == 0
    assert "GEMM;1_0;InputTensor;FLOAT32;4;;;;;;;\n" in file.read_text()


def test_nothing_is_recorded_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "FOLDER", None)
    monkeypatch.setattr(measured, "_cells", set())
    measured.record(GEMM, 0, None)

    assert not measured._cells
