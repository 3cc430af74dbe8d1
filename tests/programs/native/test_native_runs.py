"""Runs of native programs, seen by ``dmlemu step``, as pages and as records."""

from __future__ import annotations

import html
import json
import re
import signal
import sys
from pathlib import Path

import pytest
from toolchain import DMLEMU, Built, marked_lines, needs_compiler, run, start

pytestmark = needs_compiler


def document(page: Path) -> dict[str, object]:
    """What a page shows."""
    text = page.read_text(encoding="utf-8")
    (data,) = re.findall(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)
    found: dict[str, object] = json.loads(html.unescape(data))
    return found


def moments(page: Path) -> dict[str, dict[str, object]]:
    """The moments of a page, by their names."""
    return {each["name"]: each for each in document(page)["moments"]}  # type: ignore[attr-defined]


def test_a_program_is_stepped_through(built: Built) -> None:
    pytest.importorskip("textual")
    program = built("additions")
    done = run(*DMLEMU, "step", "--script", "p n", "--size", "160x40", program)
    assert done.returncode == 0, done.stderr
    screen = done.stdout[done.stdout.index("\u256d") :]
    assert "WARNING LAYOUT_HANDOVER" in screen and "strides [8, 8, 4, 1]" in screen
    assert re.search(r"program\.h:\d+ in Gpu::record \(called from .*, additions\.cpp:\d+ ", screen), screen
    assert "written by" in screen


@pytest.mark.parametrize(
    "command", [["step", "--html"], ["exec", "--strict", "--html"]], ids=lambda each: each[0]
)
def test_a_page_has_the_lines_of_the_program(built: Built, command: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = run(*DMLEMU, *command, page, built("additions"))
    assert done.returncode == 0, done.stderr
    found = moments(page)
    (line,) = marked_lines("additions.cpp")["mark"]
    assert found["mark"]["text"] == "before the dispatch"
    assert str(found["mark"]["site"]).startswith(f"additions.cpp:{line} in run")
    (dispatch,) = [each for each in found.values() if each["dispatch"] and each["reports"]]
    assert "additions.cpp" in str(dispatch["site"]) and "LAYOUT_HANDOVER" in str(dispatch["reports"])
    assert document(page)["title"] == "additions"
    assert not re.search(r"[\U000F0000-\U0010FFFF]|\\ud[b-f]", page.read_text())  # they stand for call sites


def test_a_program_of_python_shows_the_lines_of_its_script(built: Built, tmp_path: Path) -> None:
    page, script = tmp_path / "page.html", tmp_path / "script.py"
    script.write_text(f"import ctypes\n\nctypes.CDLL({str(built('additions.so'))!r}).run(0)\n")
    done = run(*DMLEMU, "step", "--html", page, sys.executable, script)
    assert done.returncode == 0, done.stderr
    assert document(page)["title"] == "script.py"
    assert str(moments(page)["mark"]["site"]).startswith("script.py:3, through ")


@pytest.mark.parametrize(
    ("how", "signal_"),
    [("crash", signal.SIGSEGV), ("several", signal.SIGSEGV), ("throw", signal.SIGABRT)],
    ids=["crash", "several", "throw"],
)
@pytest.mark.parametrize("mode", ["direct", "isolated"])
def test_a_program_that_crashes_leaves_what_it_did(
    built: Built, how: str, signal_: signal.Signals, mode: str, tmp_path: Path
) -> None:
    """It ends by its own signal all the same."""
    page, record = tmp_path / "page.html", tmp_path / "run.dmlrec"
    command = ["exec", "--html", page, "--record", record, built("additions"), how]
    done = run(*DMLEMU, *command, DMLEMU_CAPI_MODE=mode)
    assert done.returncode == 128 + signal_
    assert "mark" in moments(page)
    assert run(*DMLEMU, "replay", record).returncode == 0
    page.unlink()
    done = run(*DMLEMU, "step", "--html", page, built("additions"), how, DMLEMU_CAPI_MODE=mode)
    assert done.returncode == 1
    assert document(page)["notes"] == [f"The program ended by {signal_.name}."]
    assert "mark" in moments(page)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_hangs_leaves_what_it_did(
    built: Built, number: signal.Signals, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    with start(*DMLEMU, "exec", "--html", page, built("additions"), "hang") as process:
        assert process.stdout is not None
        while process.stdout.readline() != "waiting\n":
            pass
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == 128 + number
    assert "mark" in moments(page)


def test_what_a_program_may_be(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no program\n")
    for program, said in (
        (tmp_path / "missing", "cannot be run: No such file or directory"),
        (text, "chmod +x"),
        ("no-such-program", "on the PATH"),
    ):
        done = run(*DMLEMU, "step", "--html", tmp_path / "page.html", program)
        assert done.returncode == 1 and said in done.stderr, done
        assert not (tmp_path / "page.html").exists()
    done = run(*DMLEMU, "step", "--html", tmp_path / "page.html", "sh", "-c", "exit 3")
    assert done.returncode == 1
    assert document(tmp_path / "page.html")["notes"] == [
        "The program has left nothing to step through. The emulator was not started.",
        "The program ended with exit code 3.",
    ]


NEGATIVE = """
def negative(run):
    record = run.record
    keys = (key for each in record.dispatches for key in each.contents if key is not None)
    return any((record.array(key) < 0).any() for key in keys)
"""


def test_records_are_compared_replayed_and_reduced(built: Built, tmp_path: Path) -> None:
    """With the lines of the program; the reduced program is one of Python."""
    records = {name: tmp_path / f"{name}.dmlrec" for name in ("right", "other")}
    for name, record in records.items():
        assert run(*DMLEMU, "exec", "--strict", "--record", record, built("additions"), name).returncode == 0
    done = run(*DMLEMU, "diff", *records.values())
    assert done.returncode == 1
    assert "ELEMENT_WISE_IDENTITY" in done.stdout and "additions.cpp:" in done.stdout, done.stdout
    assert run(*DMLEMU, "diff", records["right"], records["right"]).returncode == 0
    assert run(*DMLEMU, "replay", "--layouts", "1", "--chaos", "1", records["right"]).returncode == 0
    page = tmp_path / "page.html"
    assert run(*DMLEMU, "step", "--html", page, records["right"]).returncode == 0
    assert any(each["dispatch"] for each in moments(page).values())
    (tmp_path / "signs.py").write_text(NEGATIVE)
    done = run(*DMLEMU, "reduce", records["other"], "--while", "signs:negative", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("1 of 1 dispatch, 2 of 12 elements still show negative "), done.stdout
    assert run(sys.executable, tmp_path / "other.reduced.py").returncode == 0
