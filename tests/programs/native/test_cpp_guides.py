"""The guides for C++ programs: what they tell to type is typed, and prints what they show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "programs"))
from test_tutorial import blocks, same  # noqa: E402

PORT = ROOT / "docs" / "guide" / "port-a-cpp-program.md"
BUG = ROOT / "docs" / "guide" / "find-a-bug-in-cpp.md"
SHADERS = ROOT / "docs" / "guide" / "shaders.md"
NEEDED = ("g++", "gdb", "pkg-config", "addr2line")

pytestmark = [
    pytest.mark.skipif(
        not all(map(shutil.which, NEEDED)) or not Path("/usr/include/directx/d3d12.h").exists(),
        reason="one of the packages that the guide names is not installed",
    ),
]


@pytest.mark.parametrize("page", [PORT, BUG, SHADERS], ids=lambda page: page.stem)
def test_what_is_typed_prints_what_is_shown(page: Path, tmp_path: Path) -> None:
    if page is SHADERS:
        pytest.importorskip("llvmlite", reason="the extra hlsl is not installed")
    for folder in ("cpp", "shaders"):
        shutil.copytree(ROOT / "examples" / folder, tmp_path / "examples" / folder)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DMLEMU_")}
    found = [each for each in blocks(page) if each.language in ("sh", "text")]
    for block, following in zip(found, [*found[1:], None], strict=True):
        if block.language == "text":
            continue
        done = subprocess.run(
            ["bash", "-c", block.text],
            cwd=tmp_path,
            env={**environment, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=110,
        )
        shown = following is not None and following.language == "text"
        expected = following.text if shown and following is not None else ""
        assert same(expected, done.stdout), f"{page.name}:{block.line}\n{done.stdout}"


def test_the_gate_installs_what_the_guide_does() -> None:
    (names,) = re.findall(r"^apt-get install (.*)$", PORT.read_text(), re.MULTILINE)
    gate = (ROOT / ".ci" / "run").read_text()
    for name in set(names.split()) - {"binutils"}:  # gcc brings them
        assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", gate), name
