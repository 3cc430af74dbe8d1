"""A newcomer: a fresh clone, built as the README says, in which every block of every page is executed.

Blocks of Python are pasted in the order of their page, commands are given to a shell in the clone.  What is
not executed stands in ``NOT_RUN`` with its reason, by page and first line; a block that is neither fails.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 1800

pytestmark = [pytest.mark.long, pytest.mark.timeout(BUILD_SECONDS + 600)]

NOT_RUN = {
    (
        "README.md",
        "make run",
    ): "the programs of 'make run' are run by test_tutorial.py; 'make test' is this suite",
    ("README.md", "make wheel"): "builds a wheel for another environment: tests/wheel_smoke.py",
    (
        "docs/guide/pictures-and-timelines.md",
        "dmlemu run MODEL.json",
    ): "names of files stand for the reader's own",
    ("docs/guide/pictures-and-timelines.md", "with dmlemu.trace"): "a pattern with '...'",
    (
        "docs/guide/find-a-bug-in-cpp.md",
        "dmlemu exec valgrind",
    ): "takes a minute; tests of the C ABI run valgrind",
    (
        "docs/guide/step-through-a-program.md",
        "dmlemu step PROGRAM.py",
    ): "names of files stand for the reader's own",
    (
        "docs/guide/step-through-a-program.md",
        "dmlemu step --script",
    ): "test_step.py runs it, with its program",
    ("docs/guide/step-through-a-program.md", "from dmlemu.stepping"): "a pattern with '...'",
    (
        "docs/guide/port-a-cpp-program.md",
        "apt-get install",
    ): "needs an administrator; the clone is the fixture",
    (
        "docs/guide/port-a-cpp-program.md",
        "CMAKE_TOOLCHAIN_FILE=",
    ): "PROJECT stands for the reader's own; test_compat.py builds one",
    ("docs/comparison.md", "gcc examples/comparison"): "needs Oclgrind: test_comparison.py runs it",
    (
        "docs/guide/find-the-wrong-node.md",
        "$ dmlemu diff net.onnx",
    ): "its model is made by the blocks of Python",
    ("docs/tutorial/08-fences.md", "CPU       upload"): "a drawing",
    ("docs/tutorial/12-numbers.md", "FLOAT16   s"): "a drawing",
    (
        "examples/resnet50/README.md",
        "$ python examples/resnet50",
    ): "test_resnet50.py runs it; its weights take long",
}
"""Blocks without a program to run, by page and the beginning of their first line."""

OF_CLIENTS = re.compile(r"docs/guide/run-a-\w+-program\.md|tests/clients/")
"""Pages about packages that are installed into environments of their own."""

OF_A_PROJECT = "docs/guide/use-it-in-ci.md"
"""A page about another repository: ``test_ci_guide.py`` lays it out."""


class Block(NamedTuple):
    page: str
    line: int
    info: str  # what stands behind the fence: ``python``, ``python run``, ``c kernels_c/...``
    text: str

    @property
    def name(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def kind(self) -> str:
        """``python``, ``shell``, or why it is not executed."""
        first = self.text.partition("\n")[0]
        for (page, start), reason in NOT_RUN.items():
            if self.page == page and first.startswith(start):
                return reason
        if OF_CLIENTS.match(self.page):
            return "needs an environment of its own: make test-clients"
        if self.page == OF_A_PROJECT:
            return "belongs to a repository of its own: test_ci_guide.py"
        language, _, source = self.info.partition(" ")
        if language in ("text", "diff", "c", "json"):
            return f"{language}: what is printed, or a quotation"
        if re.match(r"# (examples/[\w/.-]+)$", first) or source not in ("", "run"):
            return "quotes a file of the repository"
        if language == "python" and self.page.startswith("docs/reference/operators/"):
            return "the source of an operator's reference: tests/operators compare with it"
        if language == "python":
            if re.match(r" *\d+  ", first):
                return "a listing with line numbers: tests/checks runs the gallery"
            return "python"
        return "shell"


def blocks(root: Path, page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    found: Block | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if found is None and line.startswith("```"):
            found = Block(str(page.relative_to(root)), number + 1, line[3:].strip(), "")
        elif found is not None and line == "```":
            yield found
            found = None
        elif found is not None:
            found = found._replace(text=f"{found.text}{line}\n")
    assert found is None, f"{page}: a block does not end"


def pages(root: Path) -> list[Path]:
    found = subprocess.run(["git", "ls-files", "*.md"], cwd=root, capture_output=True, text=True, check=True)
    return [root / name for name in found.stdout.splitlines() if name != "CHANGELOG.md"]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh clone of what is committed, after ``make dev``."""
    folder = tmp_path_factory.mktemp("newcomer") / "dmlemu"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DMLEMU_", "VIRTUAL_"))
    }
    built = subprocess.run(
        ["make", "dev"], cwd=folder, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS
    )
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    return folder


PASTE = """
import contextlib, io, json, os, sys, tempfile, traceback
os.chdir(tempfile.mkdtemp())
failures = []
for page, texts in json.load(sys.stdin):
    namespace = {"__name__": "__main__"}
    for name, text in texts:
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, name, "exec"), namespace)
        except BaseException:
            failures.append(f"{name}\\n{traceback.format_exc()[-1500:]}")
            break
print(json.dumps(failures))
"""


def test_every_block_of_python_runs(clone: Path) -> None:
    given = []
    for page in pages(clone):
        texts = [(each.name, each.text) for each in blocks(clone, page) if each.kind == "python"]
        if texts:
            given.append((page.name, texts))
    assert sum(len(texts) for _, texts in given) > 130
    failures: list[str] = []
    for each in given:  # a process for each page: what one page sets for all devices is not the next one's
        done = subprocess.run(
            [clone / ".venv/bin/python", "-c", PASTE],
            input=json.dumps([each]),
            cwd=clone,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        failures += json.loads(done.stdout.splitlines()[-1])
    assert not failures, "\n\n".join(failures)


def commands(block: Block) -> str:
    """What is typed: in a block with prompts the lines behind ``$``, else all."""
    typed = re.findall(r"^\$ (.*)$", block.text, re.MULTILINE)
    return "\n".join(typed) + "\n" if typed else block.text


def unexpected(output: str) -> list[str]:
    """The last lines of tracebacks, except those of the mistakes that the guides plant."""
    ends = re.findall(r"^Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(\S.*)", output, re.MULTILINE)
    return [end for end in ends if not end.startswith("dmlemu.")]


def test_tracebacks_are_told_from_planted_mistakes() -> None:
    frame = '  File "a.py", line 1, in <module>\n    x\n    ^\n'
    head = "before\nTraceback (most recent call last):\n"
    assert unexpected(f"{head}{frame}NameError: x\nafter\n") == ["NameError: x"]
    assert unexpected(f"{head}{frame}dmlemu.Error: D3D12 ERROR X\nsaid\n") == []
    assert unexpected("Traceback is a word\n") == []


def test_every_command_runs(clone: Path) -> None:
    shell = shutil.which("bash")
    environment = {**os.environ, "PATH": f"{clone / '.venv/bin'}:{os.environ['PATH']}"}
    missing = [tool for tool in ("bash", "g++", "gdb", "cmake", "pkg-config") if not shutil.which(tool)]
    if missing:
        pytest.skip(f"the guides for C++ need {', '.join(missing)}")
    ran, failures = 0, []
    for page in pages(clone):
        found = [each for each in blocks(clone, page) if each.kind == "shell"]
        if not found:
            continue
        # One shell for a page, since later blocks use what earlier ones made; it stops at no error, because
        # the wrong programs of the guides fail on purpose.
        script = "".join(f"{commands(each)}\necho '{each.name} left with' $? >&2\n" for each in found)
        done = subprocess.run(
            [str(shell)],
            input=script,
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
        )
        left = dict(re.findall(r"^(\S+:\d+) left with (\d+)$", done.stderr, re.MULTILINE))
        for each in found:
            ran += 1
            is_lost = "command not found" in done.stderr or unexpected(done.stdout + done.stderr)
            if left.get(each.name) not in ("0", "1") or is_lost:
                failures.append(f"{each.name} left with {left.get(each.name)}\n{done.stderr[-2000:]}")
    assert ran > 10
    assert not failures, "\n\n".join(failures)


def test_what_is_not_run_has_a_reason_and_exists() -> None:
    found = {(each.page, each.text) for page in pages(ROOT) for each in blocks(ROOT, page)}
    for page, start in NOT_RUN:
        assert any(name == page and text.startswith(start) for name, text in found), f"{page}: {start}"
