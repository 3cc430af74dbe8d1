"""``dmlemu step``: the step debugger."""

from __future__ import annotations

import asyncio
import shlex
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Strictness
from ..frontends.usage import UsageError

if TYPE_CHECKING:
    from ..stepping import Run

__all__ = ["add_command"]

_SIZE = (120, 40)


def add_command(commands: Any) -> None:
    """Adds the command to the command line."""
    step = commands.add_parser(
        "step",
        allow_abbrev=False,
        help="step through what the GPU did",
        description="Runs a program to its end or its failure, then shows each command that the emulated GPU "
        "has executed, with memory, descriptors, states, fences and reports as they were: forward and back. "
        "Press ? for the keys.",
        epilog="for instance: dmlemu step model.json; dmlemu step --script 'r W' program.py",
    )
    step.add_argument("program", type=Path, metavar="PROGRAM", help="MODEL.json, SCRIPT.py or RECORD.dmlrec")
    step.add_argument("arguments", nargs="...", metavar="ARGS", help="of the script")
    step.add_argument(
        "--strictness",
        choices=[each.value for each in Strictness],
        help="for a model or a record (default: strict); a script gives its own",
    )
    step.add_argument(
        "--script",
        metavar="KEYS",
        help="press these keys, print the screen, and leave; or those in a file of this name",
    )
    step.add_argument(
        "--screenshot", type=Path, metavar="FILE.svg", help="with --script: write the screen as a picture"
    )
    step.add_argument(
        "--size",
        type=_size,
        default=_SIZE,
        metavar="COLUMNSxLINES",
        help="of the screen with --script (default: 120x40)",
    )
    step.add_argument(
        "--html", type=Path, metavar="FILE", help="write the run as one page for a browser, and leave"
    )
    step.set_defaults(run=_step)


def _size(text: str) -> tuple[int, int]:
    columns, _, lines = text.partition("x")
    if not (
        columns.isdecimal() and lines.isdecimal() and 40 <= int(columns) <= 500 and 12 <= int(lines) <= 300
    ):
        from argparse import ArgumentTypeError

        raise ArgumentTypeError(f"'{text}' is no size of a screen, such as 120x40")
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
            "dmlemu step needs Textual, which is not installed: pip install 'dmlemu[step]'"
        ) from None
    from .programs import observe_program

    strictness = None if parsed.strictness is None else Strictness(parsed.strictness)
    run = observe_program(parsed.program, parsed.arguments, strictness=strictness)
    if parsed.script is None:
        Debugger(run, parsed.program.name).run()
    else:
        print(asyncio.run(_scripted(run, parsed)))
    return 0


def _write_page(parsed: Namespace) -> int:
    """The run as a page, which needs no Textual."""
    from ..stepping.page import write_page
    from .programs import observe_program

    if parsed.script is not None:
        raise UsageError("--html and --script exclude each other")
    open(parsed.html, "w").close()  # a file that cannot be written is said before the run
    strictness = None if parsed.strictness is None else Strictness(parsed.strictness)
    run = observe_program(parsed.program, parsed.arguments, strictness=strictness)
    write_page(run, parsed.html, parsed.program.name)
    return 0


async def _scripted(run: Run, parsed: Namespace) -> str:
    """Presses keys without a terminal; the screen as text."""
    from .app import Debugger

    app = Debugger(run, parsed.program.name)
    async with app.run_test(size=parsed.size) as pilot:
        for key in _keys(parsed.script):
            await pilot.press(key)
        await pilot.pause()
        if parsed.screenshot is not None:
            parsed.screenshot.write_text(app.export_screenshot(title=parsed.program.name), encoding="utf-8")
        lines = app.screen._compositor.render_strips()  # Textual has no public way to read its screen
        return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)


_NAMES = {"[": "left_square_bracket", "]": "right_square_bracket", "@": "at", "#": "number_sign"}
_NAMES["?"] = "question_mark"


def _keys(script: str) -> list[str]:
    """Keys between spaces, from the argument or the file that it names, in which # begins a comment."""
    try:
        is_file = Path(script).is_file()
    except (OSError, ValueError):
        is_file = False
    words = (
        shlex.split(Path(script).read_text(encoding="utf-8"), comments=True) if is_file else script.split()
    )
    return [_NAMES.get(word, word) for word in words]
