"""A gallery of wrong C++ programs: each report names the line and its function, and changes nothing else."""

from __future__ import annotations

import re
import shutil
from contextlib import ExitStack
from pathlib import Path

from toolchain import DMLEMU, HERE, Built, marked_lines, needs_compiler, start

pytestmark = needs_compiler

SOURCE = "wrong.cpp"
GDB = "set pagination off\nset style enabled off\nrun\nwhile 1\nbt 6\ncontinue\nend\n"


def functions() -> dict[int, str]:
    """The function that each line of the source belongs to."""
    found, name = {}, ""
    for number, text in enumerate((HERE / SOURCE).read_text(encoding="utf-8").splitlines(), 1):
        match = re.match(r"static void (\w+)\(\)", text)
        name = match[1] if match else name
        found[number] = name
    return found


def test_reports_name_lines_and_functions_and_change_nothing(built: Built, tmp_path: Path) -> None:
    program = built("wrong")
    script = tmp_path / "script"
    script.write_text(GDB, encoding="utf-8")
    gdb = ["gdb", "-q", "-batch", "-x", script, "--args", program] if shutil.which("gdb") else ["true"]
    with ExitStack() as stack:
        running = [
            stack.enter_context(start(*DMLEMU, "exec", *options, *command))
            for options, command in (
                (["--strictness", "runtime"], [program]),
                (["--strictness", "debug"], [program]),
                (["--strict"], [program]),
                (["--strict", "--break"], gdb),
            )
        ]
        (plain, silence), (debug, _), (strict, reports), (stops, _) = [
            process.communicate(timeout=110) for process in running
        ]
    assert [process.returncode for process in running[:3]] == [0, 1, 1], reports
    assert silence.startswith("dmlemu: ") and silence.endswith("; --strict looks for the cause.\n"), silence
    assert silence.count("\n") == 1
    assert plain == debug == strict

    marks = marked_lines(SOURCE)
    checks = [name for name in marks if name.isupper()]
    assert len(checks) >= 20
    blocks = reports.split("\n\n")
    function = functions()
    for id in checks:
        for line in marks[id]:
            at = f"at {SOURCE}:{line} in {function[line]}"
            said = [each for each in blocks if each.splitlines()[0].split()[2:3] == [id] and at in each]
            assert said, f"no {id} {at}:\n{reports}"
            for row in said[0].splitlines():
                if row.startswith("  object: ") and "device" not in row:
                    assert re.search(r"created at \w+\.(cpp|h):\d+ in [\w:]+", row), row
    assert reports.count("a bug of dmlemu") == 0

    if shutil.which("gdb") is not None:
        stopped = {int(line) for line in re.findall(rf"^#\d+ .*\b{SOURCE}:(\d+)$", stops, re.MULTILINE)}
        expected = {line for id in checks for line in marks.get(f"stop {id}", marks[id])}
        assert expected <= stopped, stops
        slots = re.findall(r"^#0 .* in (\S+) \(\) from ", stops, re.MULTILINE)
        assert len(slots) >= len(checks)
        assert all(re.match(r"I[DM]\w+_\w+$|Object_Released$", each) for each in slots), slots
