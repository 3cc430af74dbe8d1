"""The guide of pictures and timelines: what its programs print stands below them."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "pictures-and-timelines.md"


def test_the_programs_print_what_the_guide_says(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(\w*)\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    names: dict[str, object] = {}
    printed = ""
    compared = 0
    for kind, text in blocks:
        if kind == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(text, names)
            printed = output.getvalue()
        elif kind == "text":
            assert printed == text
            compared += 1
    assert compared == 2
    assert (tmp_path / "run.json").exists()
