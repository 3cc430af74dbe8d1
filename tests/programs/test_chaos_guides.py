"""The guides to chaos and to fault injection, run as they are printed."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from test_tutorial import ROOT, blocks, same

import dmlemu

GUIDES = [ROOT / "docs" / "guide" / f"{name}.md" for name in ("chaos", "fault-injection")]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_page_prints_what_is_shown(page: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__guide__"}
    found = blocks(page)
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)
            expected = following.text if following is not None and following.language == "text" else ""
            assert same(expected, printed.getvalue()), f"{page.name}:{block.line}\n{printed.getvalue()}"


def test_every_mode_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", GUIDES[0].read_text(), re.MULTILINE)
    assert rows == [mode.value for mode in dmlemu.ChaosMode]
