"""``dmlemu campaign``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from argparse import (
    SUPPRESS,
    Action,
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import printable, shorten
from ..frontends.usage import HELP, UsageError, check_distinct

if TYPE_CHECKING:
    from .campaign import Result

__all__ = ["add_command"]

_ABOUT = """\
Tries every case of something, made by index from one seed, on all CPUs of this machine or on the workers of
a Dask scheduler. Results land in one file (--database): killed anywhere, the same command goes on where it
stood, on another machine too, if the file is there.

WHAT is one of
  MODEL.json           a DxDispatch model; options of 'dmlemu run' behind --args
                         --layouts N   each dispatch in other layouts, from its recorded inputs
                         --seeds N     the whole model under chaos, with its own barriers
  FILE.dmlrec          a record of dispatches: --layouts and --seeds together
  FILE.py::FUNCTION    a test that uses @dmlemu.testing.layouts (--layouts), or a function without
                       parameters that makes its device itself (--seeds)
  operators[:PATTERN]  random legal descs of each operator beside its NumPy reference, and those of ONNX
                       Runtime, onnx.reference, PyTorch, torchvision and SciPy that are installed:
                         --layouts N   descs of each operator; --seeds N: each of them under chaos
  float-math:FUNCTION  a function of FLOAT32 for all 2^32 inputs, such as float-math:exp
  PROGRAM              what 'dmlemu exec' runs; its arguments behind --args: --seeds

Failures are shown once for each cause: the operator or program, what was compared, and what is wrong with
the first differing element. The smallest of each cause is reduced, to files in the folder --output.

Exits with 0 when nothing failed, 1 when something did, 2 for wrong usage, 130 after Ctrl-C."""

_EXAMPLES = """\
examples:
  dmlemu campaign net.json --layouts 10000 --isa all --watch
  dmlemu campaign tests/test_net.py::test_attention --layouts 10000
  dmlemu campaign operators --budget 2h --html failures.html
  dmlemu campaign ./program --seeds 1000 --args --its-option
  dmlemu campaign net.dmlrec --layouts 100000 --scheduler tcp://head:8786"""


def add_command(commands: Any) -> None:
    """Adds it to the command line."""
    parser = commands.add_parser(
        "campaign",
        allow_abbrev=False,
        formatter_class=RawDescriptionHelpFormatter,
        help=HELP["campaign"],
        description=_ABOUT,
        epilog=_EXAMPLES,
    )
    parser.add_argument("what", metavar="WHAT", help="see above")
    cases = parser.add_argument_group("which cases")
    cases.add_argument("--layouts", type=_count, metavar="N", help="how many layouts to try")
    cases.add_argument("--seeds", type=_count, metavar="N", help="how many seeds of chaos to try")
    cases.add_argument(
        "--isa", default="", metavar="NAMES", help="instruction sets: all, or names such as generic,avx2"
    )
    cases.add_argument(
        "--threads", type=_numbers, default=(), metavar="N,...", help="threads of the kernels (default: 1)"
    )
    cases.add_argument(
        "--strictness", default="", metavar="LEVELS", help="runtime, debug, strict (default: strict)"
    )
    cases.add_argument(
        "--oracles",
        metavar="NAMES",
        help="what judges operators besides their references: none, or some of onnxruntime, onnx.reference, "
        "torch, torchvision, scipy (default: all that are installed)",
    )
    cases.add_argument(
        "--list-oracles", action=_ListOracles, help="say which oracle has which operators, and exit"
    )
    cases.add_argument("--seed", type=int, default=0, metavar="N", help="draws other cases (default: 0)")
    cases.add_argument("--case", type=int, metavar="INDEX", help="run this case alone, without a worker")
    cases.add_argument(
        "--args",
        nargs="...",
        default=[],
        metavar="ARGS",
        help="all that follows: arguments of the program, or options of 'dmlemu run' for a model",
    )
    how = parser.add_argument_group("how they run")
    how.add_argument(
        "--budget", type=_seconds, metavar="TIME", help="begin nothing new after 90s, 10m, 2h (default: none)"
    )
    how.add_argument(
        "--hang", type=_seconds, default=60.0, metavar="TIME", help="what a case may take (default: 60s)"
    )
    how.add_argument(
        "--workers",
        type=_workers,
        metavar="N",
        help="on this machine (default: one for each CPU); 0: in this process, without Dask",
    )
    how.add_argument(
        "--piece",
        type=_seconds,
        default=1.0,
        metavar="TIME",
        help="the work of a piece, which is handed out at once (default: 1s)",
    )
    how.add_argument("--scheduler", metavar="ADDRESS", help="of a Dask scheduler, such as tcp://head:8786")
    how.add_argument(
        "--database",
        type=Path,
        default=Path("campaign.db"),
        metavar="FILE",
        help="where results go (default: campaign.db)",
    )
    how.add_argument("--watch", action="store_true", help="show pieces, rate, failures and the time left")
    out = parser.add_argument_group("what it writes about failures")
    out.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        help="for the reduced failures (default: campaign-failures; '' reduces nothing)",
    )
    out.add_argument("--html", type=Path, metavar="FILE", help="a page with a picture of each cause")
    out.add_argument("--junit", type=Path, metavar="FILE", help="JUnit XML, with a test case for each cause")
    out.add_argument("--sarif", type=Path, metavar="FILE", help="SARIF, with a result for each cause")
    parser.set_defaults(run=_campaign)


def _campaign(parsed: Namespace) -> int:
    from .campaign import run
    from .report import summary, write_reports
    from .watch import Watch

    files = {"--html": parsed.html, "--junit": parsed.junit, "--sarif": parsed.sarif}
    check_distinct({"the database": parsed.database, **files})
    output: Path | None = Path("campaign-failures") if parsed.output is None else parsed.output
    if output is not None and str(output) in ("", "."):
        output = None
    options = {
        "layouts": parsed.layouts,
        "seeds": parsed.seeds,
        "isa": parsed.isa,
        "threads": parsed.threads,
        "strictness": [each for each in parsed.strictness.split(",") if each],
        "seed": parsed.seed,
        "arguments": parsed.args,
        "oracles": _oracles(parsed.oracles),
    }
    if parsed.case is not None:
        return _one_case(parsed, options)
    watch = Watch(shorten(parsed.what, 60))

    def started() -> Result:
        return run(
            parsed.what,
            **options,
            budget=parsed.budget,
            hang=parsed.hang,
            database=parsed.database,
            workers=parsed.workers,
            piece=parsed.piece,
            scheduler=parsed.scheduler,
            reduce_to=output,
            progress=watch.tell if parsed.watch else None,
            tell=watch.say,
        )

    try:
        if parsed.watch:
            with watch:
                found = started()
        else:
            found = started()
    except UsageError as error:
        print(str(error), file=sys.stderr)
        return 2
    for line in summary(found):
        print(printable(line))
    write_reports(found, html=parsed.html, junit=parsed.junit, sarif=parsed.sarif)
    if found.is_interrupted:
        return 130
    return 1 if found.causes or 0 < found.done == found.undrawn else 0


class _ListOracles(Action):
    """Prints the table of oracles; no subject is needed."""

    def __init__(self, option_strings: Sequence[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=SUPPRESS, **more)

    def __call__(self, parser: ArgumentParser, *_: Any) -> None:
        from .oracles import installed, table_rows

        for operator, names in table_rows():
            print(f"{operator:44}{', '.join(names)}")
        print(f"\nInstalled: {', '.join(map(str, installed())) or 'none'}")
        parser.exit()


def _oracles(text: str | None) -> list[str] | None:
    if text is None:
        return None
    return [] if text == "none" else text.split(",")


def _one_case(parsed: Namespace, options: dict[str, Any]) -> int:
    """Runs a case here, where a debugger sees it."""
    from .campaign import planned
    from .child import Opened
    from .executors import fits_this_process
    from .subjects import Unusable

    try:
        spec = planned(parsed.what, **options)
        if not 0 <= parsed.case < spec.total:
            raise UsageError(f"--case {parsed.case}: the campaign has the cases 0 to {spec.total - 1}")
        configuration = spec.configuration(parsed.case)
        if not fits_this_process(configuration):  # it keeps the variables that it started with
            command = [sys.executable, "-m", "dmlemu", *sys.argv[1:]]
            return subprocess.run(command, env=configuration.environment()).returncode
        subject = Opened().of(spec, configuration, parsed.hang)
    except (UsageError, Unusable) as error:
        print(str(error), file=sys.stderr)
        return 2
    print(printable(subject.describe(parsed.case)))
    outcome = subject.run(parsed.case, parsed.hang)
    for failure in outcome.failures:
        print(f"{failure.subject}: {failure.rule}: {failure.kind}")
        print(os.linesep.join(printable(line) for line in failure.message.splitlines()))
    for dissent in outcome.dissents:
        print(printable(dissent.message.splitlines()[0]))
    if not outcome.is_drawn:
        print("The case was not drawn: nothing was tried.")
    return 1 if outcome.failures or not outcome.is_drawn else 0


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 2**40:
        raise ArgumentTypeError(f"{shorten(text)} is not a number of cases")
    return int(text)


def _workers(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) > 1024:
        raise ArgumentTypeError(f"{shorten(text)} is not a number of workers")
    return int(text)


def _numbers(text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() and 1 <= int(part) <= 1024 for part in parts):
        raise ArgumentTypeError(f"{shorten(text)} is not a list of numbers of threads such as 1,2,5")
    return tuple(int(part) for part in parts)


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(s|m|min|h|d)?", text, re.ASCII)
    if found is None or float(found[1]) == 0:
        raise ArgumentTypeError(f"{shorten(text)} is not a time such as 90s, 10m or 2h")
    seconds = float(found[1]) * {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}[found[2] or "s"]
    if seconds > 10**9:
        raise ArgumentTypeError(f"{shorten(text)} is more than 30 years")
    return seconds
