"""docs/guide/add-an-operator.md shows the real files, and its example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(
    r"^```(\w+) ?(\S*)\n(.*?)^```$",
    (ROOT / "docs/guide/add-an-operator.md").read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("path", "text"), [(path, text) for _, path, text in BLOCKS if path])
def test_excerpts_are_the_real_files(path: str, text: str) -> None:
    """Each line of the excerpt stands in the file, in this order."""
    source = iter((ROOT / path).read_text().splitlines())
    for line in text.splitlines():
        if line.strip():
            assert any(line == other for other in source), f"{path} has no line {line!r} here"


def test_the_example_runs() -> None:
    (example,) = (text for language, path, text in BLOCKS if language == "python" and not path)

    exec(compile(example, "add-an-operator.md", "exec"), {})
