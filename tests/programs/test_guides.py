"""The guides, run as they are printed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_tutorial import ROOT, blocks, same

import dmlemu
from dmlemu import reporting

__dmlemu_helper__ = True  # reports name lines of what it runs

GUIDES = ROOT / "docs" / "guide"
LAYOUT_BUG, OWN_CHECK = GUIDES / "find-a-layout-bug.md", GUIDES / "write-a-check.md"
BUILD_GRAPH, ONNX, WRONG_NODE = (
    GUIDES / name for name in ("build-a-graph.md", "onnx.md", "find-the-wrong-node.md")
)
CHAOS, FAULTS = GUIDES / "chaos.md", GUIDES / "fault-injection.md"
SESSION, WRONG_DISPATCH = GUIDES / "session.md", GUIDES / "find-the-wrong-dispatch.md"
SHADERS = GUIDES / "shaders.md"

needs_dxc = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("compushady", "llvmlite"))),
    reason="the extra hlsl is not installed",
)
pytestmark = pytest.mark.dmlemu(expect=["*"])  # reports are what the pages are about


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A page may write files, and say what holds for every device."""
    monkeypatch.chdir(tmp_path)
    before = list(reporting.on_created)
    yield
    reporting.on_created[:] = before


@pytest.mark.parametrize(
    "page",
    [
        *(SESSION, BUILD_GRAPH, ONNX, WRONG_NODE, LAYOUT_BUG, WRONG_DISPATCH, OWN_CHECK, CHAOS, FAULTS),
        pytest.param(SHADERS, marks=needs_dxc),
    ],
    ids=lambda page: page.stem,
)
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


def test_a_check_is_short_and_has_no_private_door() -> None:
    check = blocks(OWN_CHECK)[0].text
    code = check[check.index("    def __init__") :].splitlines()
    assert len([line for line in code if line.strip()]) <= 26
    assert not re.search(r"\._[a-z]|import _|dmlemu_hw", check)
    assert "class WeightsWrittenOnce(Check)" in check


def test_every_mode_of_chaos_is_explained() -> None:
    rows = re.findall(r"^\| `(\w+)` \|", CHAOS.read_text(), re.MULTILINE)
    assert rows == [mode.value for mode in dmlemu.ChaosMode]
