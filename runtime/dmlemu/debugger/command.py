"""``dmlemu step``: the step debugger."""

from __future__ import annotations

import asyncio
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Strictness, printable
from ..files import Output, read_text
from ..frontends.usage import HELP, UsageError, check_distinct
from .keys import key_name, keys_of

if TYPE_CHECKING:
    from ..stepping import Run

__all__ = ["add_command"]

_SIZE = (120, 40)
_MOST_SCRIPT = 1 << 20  # bytes


def add_command(commands: Any) -> None:
    """Adds the command to the command line."""
    step = commands.add_parser(
        "step",
        allow_abbrev=False,
        help=HELP["step"],
        description="Runs a program to its end or its failure, then shows each command that the emulated GPU "
        "has executed, with memory, descriptors, states, fences and reports as they were: forward and back. "
        "Press ? for the keys.",
        epilog="for instance: dmlemu step model.json; dmlemu step --script 'r W' program.py; dmlemu step "
        "./program; dmlemu step python train.py",
    )
    step.add_argument(
        "program",
        metavar="PROGRAM",
        help="MODEL.json, SCRIPT.py that uses the Python API, RECORD.dmlrec, or what dmlemu exec runs: a C++ "
        "program, or python with a script of PyTorch, TensorFlow or PyDirectML",
    )
    step.add_argument("arguments", nargs="...", metavar="ARGS", help="arguments of the script or program")
    step.add_argument(
        "--strictness",
        choices=[each.value for each in Strictness],
        help="which checks run (default: strict); a script that uses the Python API sets its own",
    )
    step.add_argument(
        "--script",
        metavar="KEYS",
        help="press these keys, or those in a file of this name; print the screen, and exit",
    )
    step.add_argument(
        "--screenshot", type=Path, metavar="FILE.svg", help="with --script: write the screen as a picture"
    )
    step.add_argument(
        "--size",
        type=_size,
        default=_SIZE,
        metavar="COLUMNSxLINES",
        help="size of the screen with --script (default: 120x40)",
    )
    step.add_argument(
        "--html", type=Path, metavar="FILE", help="write the run as one page for a browser, and exit"
    )
    step.set_defaults(run=_step)


def _size(text: str) -> tuple[int, int]:
    columns, _, lines = text.partition("x")
    if not (
        columns.isdecimal() and lines.isdecimal() and 40 <= int(columns) <= 500 and 12 <= int(lines) <= 300
    ):
        raise ArgumentTypeError(f"'{text}' is not a screen size such as 120x40")
    return int(columns), int(lines)


def _step(parsed: Namespace) -> int:
    if parsed.screenshot is not None and parsed.script is None:
        raise UsageError("--screenshot needs --script, which may be empty")
    if parsed.html is not None:
        return _write_page(parsed)
    try:
        from .app import Debugger
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("textual", "rich"):
            raise
        raise UsageError(
            "dmlemu step needs Textual, which is not installed: install dmlemu with its extra step, "
            "dmlemu[step], or textual alone"
        ) from None
    if parsed.script is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        given = " ".join(parsed.arguments)
        raise UsageError(
            "dmlemu step needs a terminal, or one of --script and --html before PROGRAM"
            + (f"; the arguments after PROGRAM ({given}) are its own" if given else "")
        )
    screenshot = None if parsed.screenshot is None else Output(parsed.screenshot)
    run = _observed(parsed)
    if parsed.script is None:
        Debugger(run, _title(parsed)).run()
    else:
        found, picture = press(run, _title(parsed), _words(parsed.script), parsed.size)
        print(found)
        if screenshot is not None:
            screenshot.write(picture)
    return 0


def _write_page(parsed: Namespace) -> int:
    """The run as a page, which needs no Textual; 1: the program failed."""
    from ..stepping.page import page

    if parsed.script is not None:
        raise UsageError("--html and --script exclude each other")
    output = Output(parsed.html)  # a file that cannot be written fails before the run
    run = _observed(parsed)
    for note in run.notes:
        print(f"dmlemu step: {printable(note)}", file=sys.stderr)
    output.write(page(run, _title(parsed)))
    return 1 if run.failure else 0


def _title(parsed: Namespace) -> str:
    """The name of the program; of the script, where a Python runs one."""
    from .programs import is_native

    script = next((each for each in parsed.arguments if each.endswith(".py")), "")
    return Path(script if script and is_native(parsed.program) else parsed.program).name


def _observed(parsed: Namespace) -> Run:
    from .programs import observe_program

    check_distinct(
        {"the program": Path(parsed.program), "--html": parsed.html, "--screenshot": parsed.screenshot}
    )
    strictness = None if parsed.strictness is None else Strictness(parsed.strictness)
    return observe_program(parsed.program, parsed.arguments, strictness=strictness)


def press(run: Run, title: str, keys: Sequence[str], size: tuple[int, int]) -> tuple[str, str]:
    """Presses keys without a terminal; the screen as text and as SVG.  ``size``: columns and lines."""
    from .app import Debugger

    async def pressed() -> tuple[str, str]:
        app = Debugger(run, title)
        async with app.run_test(size=size) as pilot:
            await pilot.press(*map(key_name, keys))
            await pilot.pause()
            return app.text(), app.picture()

    return asyncio.run(pressed())


def _words(script: str) -> list[str]:
    """Keys between spaces, from the argument or the file that it names, in which # begins a comment."""
    try:
        is_file = Path(script).is_file()
    except (OSError, ValueError):
        is_file = False
    lines = read_text(script, _MOST_SCRIPT).splitlines() if is_file else [script]
    return keys_of(" ".join(line.partition("#")[0] for line in lines))
