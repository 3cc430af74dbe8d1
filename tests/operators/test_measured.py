"""What is measured of the tests' descs, and how it is printed."""

from __future__ import annotations

from pathlib import Path

import measured
import pytest
from examples import EXAMPLES, tensor
from test_every_operator import places

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType, operator_page
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared.definition import emulated
from dmlemu.dml.declared.schema import camel, level_name

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
    assert ", ".join(measured.layouts(desc, False)) == expected


def test_an_offset_is_a_layout_too() -> None:
    assert measured.layouts(tensor(T.INT8, 4), True) == ("packed", "at an offset")


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
    assert "Not measured yet" in operator_page.describe(dml.CastOperatorDesc)
    monkeypatch.setattr(operator_page, "definition_class", lambda type: None)  # as if it was not emulated
    assert "## Tested" not in operator_page.describe(dml.CastOperatorDesc)


def test_each_type_at_each_level_of_each_operator_was_compared() -> None:
    """What the package says of its tests; :func:`test_each_type_at_each_level` compares them."""
    rows = [line.split(";")[:4] for line in operator_page.MEASURED.read_text().splitlines()[1:]]
    found = {(*row, each) for *row, types in rows for each in types.split(",")}
    wanted = {
        (operator.name, level_name(place.level), camel(place.field), place.data_type.name)
        for operator in emulated()
        for place in places(operator)
    }

    assert len({name for name, *_ in wanted}) == 177 and len(wanted) > 4500
    assert not sorted(wanted - found)


def test_nothing_is_recorded_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "FOLDER", None)
    monkeypatch.setattr(measured, "_cells", set())
    measured.record(GEMM, 0, None)

    assert not measured._cells


def test_cells_undo_merged(tmp_path: Path) -> None:
    rows = {
        ("GATHER", "1_0", "InputTensor", "FLOAT32", "packed", 4),
        ("GATHER", "1_0", "InputTensor", "FLOAT16", "packed", 4),
        ("GATHER", "3_0", "InputTensor", "INT8", "at an offset", 1),
        ("GATHER", "3_0", "InputTensor", "INT8", "at an offset", 2),
        ("GATHER", "3_0", "InputTensor", "INT8", "at an offset", 5),
    }
    part = tmp_path / "1.txt"
    part.write_text("".join(",".join(map(str, row)) + "\n" for row in rows))

    assert measured.cells(measured.merged([part])) == rows
