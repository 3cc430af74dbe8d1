"""docs/reference/left-open.md names every operator whose page says that Microsoft's leaves something open."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from dmlemu.dml.declared.definition import definition_class, emulated

TABLE = (Path(__file__).parents[2] / "docs/reference/left-open.md").read_text()
IS_OPEN = re.compile(
    "(documentation|[Pp]ages?|DirectML) (does not|leaves|promises|says otherwise|is unfinished|has|asks)"
    "|MEM_INDEX_VALUE"
)
QUANTIZATION = ("QUANTIZE_LINEAR", "LINEAR_ADD")  # in rows for all of them


def test_each_choice_has_a_row() -> None:
    texts = {each: " ".join(inspect.getdoc(definition_class(each)).split()) for each in emulated()}  # type: ignore
    chosen = [each.name.rstrip("0123456789") for each, text in texts.items() if IS_OPEN.search(text)]

    assert len(chosen) > 20
    assert not [name for name in chosen if name not in TABLE and not name.endswith(QUANTIZATION)]
