"""What is said at the end of a program that has not read its reports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dmlemu import Report, Severity
from dmlemu.reporting import Reporter, Stored

LINE = "dmlemu: {}: nobody has read device.reports; DMLEMU_REPORT=FILE writes them.\n"
START = """
import os, sys, threading
import numpy as np
import dmlemu
from dmlemu import d3d12, dml

session = dmlemu.Session()
device = session.device

def wrong(session=session):
    fence = session.device.create_fence(5)
    fence.signal(1)  # FENCE_BACKWARDS, a WARNING

"""
WARNING = LINE.format("1 WARNING")
PROGRAMS = {
    "right": ("pass", ""),
    "unread": ("wrong()", WARNING),
    "once": (
        "report = dmlemu.Report('FENCE_BACKWARDS', 'x', severity=dmlemu.Severity.WARNING)\n"
        "for i in range(3): device.reports.add(report)",
        WARNING,
    ),
    "closed": ("wrong(); session.close()", WARNING),
    "of a device that is gone": ("wrong(); session.close(); del session, device", WARNING),
    "of two devices": ("wrong(); wrong(other := dmlemu.Session())", LINE.format("2 WARNING")),
    "INFO alone": ("session.barrier(); session.run()", ""),
    "iterated": ("wrong(); list(device.reports)", ""),
    "iterated later": ("wrong(); session.close(); print([each.id for each in device.reports])", ""),
    "summarized": ("wrong(); device.reports.summary()", ""),
    "in the info queue": ("wrong(); list(device.info_queue)", ""),
    "taken by a sink": ("device.reports.add_sink(lambda stored: None); wrong()", ""),
    "taken by a sink of all": ("dmlemu.reporting.defaults.sinks.append(lambda stored: None); wrong()", ""),
    "suppressed": ("device.reports.suppress('FENCE_BACKWARDS', 'as intended'); wrong()", "D3D12 WARNING "),
    "raised": (
        "device.reports.responses[dmlemu.Severity.WARNING] = 'raise'\n"
        "try:\n    wrong()\nexcept dmlemu.Error: pass",
        "",
    ),
    "not raised yet": (
        "device.reports.responses[dmlemu.Severity.WARNING] = 'raise'\n"
        "device.reports.add(dmlemu.Report('FENCE_BACKWARDS', 'x', severity=dmlemu.Severity.WARNING))",
        WARNING,
    ),
    "at the end, without a call": (
        "wrong(); session.barrier(); session.run()",
        LINE.format("1 WARNING, 1 INFO"),
    ),
    "in another thread": ("t = threading.Thread(target=wrong); t.start(); t.join()", WARNING),
    "stderr closed": ("wrong(); sys.stderr.close()", ""),
    "no stderr": ("wrong(); sys.stderr = None", ""),
    "fork": ("wrong()\nif os.fork() == 0: sys.exit(0)\nos.wait()", WARNING),
    "wait in a thread": (
        "queue = session.queue; queue.wait(session.fence, 100)\n"
        "threading.Thread(target=session.fence.wait, args=(100,), daemon=True).start(); wrong()",
        WARNING,
    ),
}


def environment(**variables: str) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if name != "DMLEMU_REPORT"}, **variables}


def ended(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START + code],
        capture_output=True,
        text=True,
        env=environment(**variables),
        timeout=60,
    )


# Runs each program in a process of its own, which is forked after the imports: they take longer than it does.
EACH = """
import json, os, sys
import numpy
from dmlemu import checks, d3d12, dml

for name, code in json.load(sys.stdin).items():
    if not (child := os.fork()):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), 2)
        exec(code)
        break
    print(name, os.waitpid(child, 0)[1], sep=": ", flush=True)
"""


@pytest.fixture(scope="module")
def stderr_of_each(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("programs")
    given = json.dumps({name: START + code for name, (code, _) in PROGRAMS.items()})
    done = subprocess.run(
        [sys.executable, "-c", EACH],
        input=given,
        cwd=folder,
        capture_output=True,
        text=True,
        env=environment(),
        timeout=100,
    )
    texts = {name: (folder / name).read_text() for name in PROGRAMS}
    assert [f"{name}: 0" for name in PROGRAMS] == [
        line
        for line in done.stdout.splitlines()
        if not line.startswith("[")  # a program prints a list
    ], texts
    return texts


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_last_line_of_a_program(stderr_of_each: dict[str, str], name: str) -> None:
    expected, found = PROGRAMS[name][1], stderr_of_each[name]
    if expected.endswith(" "):
        assert found.startswith(expected) and "nobody" not in found
    else:
        assert found == expected


def test_after_an_exception_nothing_is_said_about_what_was_not_done() -> None:
    done = ended("session.barrier(); session.run(); wrong(); raise ValueError('wrong')")
    assert done.stderr.endswith(f"ValueError: wrong\n{WARNING}")


def test_a_file_instead(tmp_path: Path) -> None:
    """It has what is found at the end, too."""
    file = tmp_path / "reports.txt"
    done = ended("wrong(); session.barrier(); session.run()", DMLEMU_REPORT=str(file))
    assert (done.stderr, done.returncode) == ("", 0)
    assert "D3D12 WARNING FENCE_BACKWARDS" in file.read_text() and "BARRIER_USELESS" in file.read_text()


def test_a_file_that_cannot_be_written() -> None:
    done = ended("", DMLEMU_REPORT="/nowhere/file")
    assert "ValueError: DMLEMU_REPORT is '/nowhere/file'; expected a file that can be written" in done.stderr


@pytest.mark.parametrize("options", [[], ["--dmlemu=strict"]])
def test_no_line_behind_pytest(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "test_it.py").write_text(f"{START}\ndef test_it():\n    wrong()\n")
    quick = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]  # which loads all of hypothesis
    command = [sys.executable, "-m", "pytest", "-q", *quick, *options, "test_it.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.dmlemu(expect=["FENCE_BACKWARDS"])
def test_fields_of_a_stored_report() -> None:
    reporter = Reporter()
    reporter.add(Report("FENCE_BACKWARDS", "The fence is set back.", severity=Severity.WARNING))
    reporter.add(Report("FENCE_BACKWARDS", "The fence is set back.", severity=Severity.WARNING))
    (stored,) = reporter
    assert (stored.id, stored.severity, stored.message) == (
        "FENCE_BACKWARDS",
        Severity.WARNING,
        "The fence is set back.",
    )
    assert stored.count == 2 and "d3d12_id" in dir(stored)
    with pytest.raises(AttributeError, match="Stored and its Report have no field 'idd'"):
        _ = stored.idd
    with pytest.raises(AttributeError):
        _ = Stored.__new__(Stored).report  # as copy and pickle ask for it
