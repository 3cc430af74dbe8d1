"""What campaigns have compared with the references, and how it is printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from examples import EXAMPLES, tensor

from dmlemu import dml
from dmlemu.campaign.database import Database
from dmlemu.campaign.model import Outcome, Piece, PieceResult, Spec, identity
from dmlemu.dml import BufferTensorDesc, FeatureLevel, OperatorType, operator_page
from dmlemu.dml import TensorDataType as T
from dmlemu.testing.coverage import cells_of, layouts_of_desc

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
    assert operator_page.spans(ranks) == text


def test_what_is_compared_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of two campaigns; a level counts for the table that it uses."""
    file = tmp_path / "measured.db"
    for seed, level in ((1, None), (2, FeatureLevel.LEVEL_2_0)):
        spec = Spec("operators", "operators", "", seed=seed, cases=1)
        result = PieceResult(Piece(0, 1))
        result.add(Outcome(cells=list(cells_of(GEMM, 0, level))))
        with Database(file, spec, identity()) as database:
            database.add([result])
    monkeypatch.setattr(operator_page, "MEASURED", file)

    page = operator_page.describe(dml.GemmOperatorDesc)

    assert "| from level | field | data types | packed | broadcast |\n" in page
    assert "| 1_0 | ATensor | FLOAT32 | 4 | |\n" in page
    assert "| 1_0 | CTensor | FLOAT32 | | 4 |\n" in page
    assert "not reached (a rule may exclude some):\n\n- from level 1_0, ATensor: FLOAT16\n" in page
    assert "Not measured here" in operator_page.describe(dml.CastOperatorDesc)
    monkeypatch.setattr(operator_page, "definition_class", lambda type: None)  # as if it was not emulated
    assert "## Tested" not in operator_page.describe(dml.CastOperatorDesc)


def test_without_the_file_pages_say_how_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_page, "MEASURED", tmp_path / "measured.db")

    assert operator_page.measured_rows() == []
    assert "## Tested\n\nNot measured here: `make measured`" in operator_page.describe(dml.GemmOperatorDesc)
