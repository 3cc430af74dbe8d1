"""``dmlemu exec`` and ``dmlemu capi``: C++ programs run on the emulator as they are."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ...errors import Strictness, printable
from ...files import open_regular
from ..usage import HELP, add_record_options, check_distinct, report_file

__all__ = ["Ended", "NotStarted", "add_commands", "run_program"]

_BUG = 70  # EX_SOFTWARE
_COMPILE = "compile it with the options of 'dmlemu capi --cflags' and 'dmlemu capi --libs'"
_PASSED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def add_commands(commands: Any) -> None:
    """Adds both commands to the command line."""
    run = commands.add_parser(
        "exec",
        allow_abbrev=False,
        help=HELP["exec"],
        description="Runs a program that is linked with libd3d12, libdxcore and libdirectml, a Python "
        "program with packages that load them (python SCRIPT.py, or SCRIPT.py for the python3 of the PATH), "
        "or a debugger or script that starts one. With --debug and --strict, reports name the lines of the "
        "program, for Python programs those of their scripts. Exits with the program's own status, with 1 "
        "where that is 0 and an error was reported (with --werror: also a warning, or if no device was "
        "created), and with 128 + n after signal n.",
    )
    levels = run.add_mutually_exclusive_group()
    for level, what in (("debug", "the checks of the debug layer of Windows"), ("strict", "every check")):
        levels.add_argument(
            f"--{level}", action="store_const", const=level, dest="strictness", help=f"run {what}"
        )
    levels.add_argument(
        "--strictness",
        choices=[each.value for each in Strictness],
        help="which checks run (default: what the program enables; runtime runs none)",
    )
    run.add_argument("--chaos", type=int, metavar="SEED", help="run under dmlemu.chaos(SEED)")
    run.add_argument(
        "--report",
        type=report_file,
        metavar="FILE",
        help="write all reports, in the forms of 'dmlemu run --report'",
    )
    add_record_options(run)
    run.add_argument(
        "--trace",
        type=Path,
        metavar="FILE.json",
        help="write a timeline, which https://ui.perfetto.dev shows",
    )
    run.add_argument(
        "--html",
        type=Path,
        metavar="FILE",
        help="write a page with memory, descriptors and reports at each command",
    )
    run.add_argument(
        "--werror",
        action="store_true",
        help="exit with 1 also if a warning was reported, or if no device was created",
    )
    run.add_argument(
        "--suppress",
        action="append",
        default=[],
        metavar="ID=REASON",
        help="do not report a check, for a reason that is printed",
    )
    run.add_argument(
        "--list-objects",
        action="store_true",
        help="with --strict: list the objects that are left at the end of a Python program, however many",
    )
    run.add_argument(
        "--break", action="store_true", dest="stops", help="raise SIGTRAP at each new report, for gdb"
    )
    run.add_argument("program", metavar="PROGRAM", help="the program, or a debugger or script")
    run.add_argument("arguments", nargs="...", metavar="ARGS", help="its arguments")
    run.set_defaults(run=_exec)
    capi = commands.add_parser("capi", help=HELP["capi"])
    what = capi.add_mutually_exclusive_group(required=True)
    for name, value, text in (
        ("cflags", _cflags, "options of the compiler"),
        ("libs", _libs, "options of the linker"),
        ("libdir", _libdir, "the folder of the libraries"),
        ("cmake", _cmake, "the value of dmlemu_DIR, for find_package(dmlemu)"),
        ("toolchain", _toolchain, "CMAKE_TOOLCHAIN_FILE for projects that are written for Windows"),
        ("valgrind-suppressions", _suppressions, "the file for valgrind's --suppressions"),
    ):
        what.add_argument(f"--{name}", action="store_const", const=value, dest="what", help=text)
    capi.set_defaults(run=_print)


def _prefix() -> Path:
    """The folder of the headers and libraries: the package as it is installed, an editable one included."""
    from . import _capi

    return Path(_capi.__file__).parents[2]


def _libdir() -> str:
    return str(_prefix() / "lib")


def _cflags() -> str:
    include = _prefix() / "include"
    return f"-I{include / 'compat'} -I{include} -I/usr/include/wsl/stubs"


def _libs() -> str:
    # Microsoft's IIDs as variables, which d3dx12.h uses: in a package only where there is the package.
    guids = " -lDirectX-Guids" if any(Path("/usr/lib").glob("*/libDirectX-Guids.a")) else ""
    return f"-L{_libdir()} -ldirectml -ldxcore -ldxgi -ld3d12 -ldl{guids}"


def _cmake() -> str:
    """The value of dmlemu_DIR, for find_package(dmlemu)."""
    return str(_prefix() / "lib" / "cmake" / "dmlemu")


def _toolchain() -> str:
    """The value of CMAKE_TOOLCHAIN_FILE, for projects that know only Windows."""
    return str(_prefix() / "lib" / "cmake" / "dmlemu" / "dmlemu-windows.cmake")


def _suppressions() -> str:
    """The value of valgrind's --suppressions."""
    return str(_prefix() / "lib" / "valgrind.supp")


def _print(parsed: Namespace) -> int:
    print(parsed.what())
    return 0


def _exec(parsed: Namespace) -> int:
    if parsed.suppress:
        from .settings import check_suppression

        try:
            for row in parsed.suppress:
                id, _, reason = row.partition("=")
                check_suppression(id, reason)
        except ValueError as error:
            print(f"dmlemu: error: --suppress: {error}", file=sys.stderr)
            return 2
    check_distinct({f"--{name}": getattr(parsed, name) for name in ("report", "record", "trace", "html")})
    with TemporaryDirectory(prefix="dmlemu-exec-") as folder:
        try:
            ended = run_program(parsed.program, parsed.arguments, _options(parsed), Path(folder))
        except NotStarted as error:
            print(f"dmlemu: error: {error}", file=sys.stderr)
            return error.status
    status, found = ended
    if last := _last_line(found, status):
        print(f"dmlemu: {last}", file=sys.stderr)
    if "bug" in found:
        return _BUG
    is_wrong = "error" in found or (parsed.werror and ("warning" in found or not _devices(found)))
    if status == 0 and is_wrong:
        return 1
    return 128 - status if status < 0 else status


class NotStarted(Exception):
    """A program that cannot be started, or is refused; ``status``: that of ``dmlemu exec``."""

    def __init__(self, why: str, status: int) -> None:
        super().__init__(why)
        self.status = status


class Ended(NamedTuple):
    """How a program ended: its status, negative after a signal, and what it has noted, by kind."""

    status: int
    noted: dict[str, str]


def run_program(program: str, arguments: Sequence[str], options: dict[str, str], folder: Path) -> Ended:
    """Runs a program with our libraries to its end.

    ``options``: variables of ours.  ``folder``: an empty one, which lasts as long as the program.
    NotStarted: it was not started.
    """
    from .python_programs import Refused, command_of, variables

    notes = folder / "notes"
    sys.stdout.flush()
    try:
        command = command_of(program, arguments)
        ours = _environment(notes) | options | variables(command, Path(_libdir()), folder)
        status = _run(command, ours)
    except Refused as error:
        raise NotStarted(printable(str(error)), 2) from None
    except OSError as error:
        raise NotStarted(f"'{printable(program)}' {_unstartable(program, error)}", 127) from None
    lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
    rows = (line.partition(" ") for line in reversed(lines))  # the first of a kind counts
    return Ended(status, {kind: text for kind, _, text in rows})


def _devices(found: dict[str, str]) -> bool:
    """Whether a device was created."""
    return not found.keys().isdisjoint(("watched", "unwatched"))


def _last_line(found: dict[str, str], status: int) -> str:
    """What exec says where no device had checks.  ``found``: what the program has noted."""
    cause = found.get("removed") or found.get("failed")
    if "watched" in found:
        return ""
    if not _devices(found):
        if status < 0 and not cause:  # it was ended, perhaps before it came to that
            return ""
        why = f": {cause}." if cause else "." if "started" in found else ": the emulator was not started."
        return f"0 devices were created{why}"
    if cause:
        return f"{cause}; --strict looks for the cause."
    return "no checks ran at strictness runtime; --strict looks for mistakes."


def _unstartable(program: str, error: OSError) -> str:
    """Why a program cannot be started, and what to do."""
    what = f"cannot be run: {error.strerror or error}"
    name = shlex.quote(program)
    if isinstance(error, FileNotFoundError) and os.sep not in program:
        is_here = os.path.exists(program)
        return f"{what} on the PATH{f'; the one of this folder is ./{name}' if is_here else ''}"
    try:
        with open_regular(program) as file:
            head = file.read(4)
    except (OSError, ValueError):
        return what
    if head[:2] == b"MZ":
        return f"cannot be run: it is a Windows program. With its source: {_COMPILE}"
    suffix = os.path.splitext(program)[1].lower()
    if suffix == ".json":
        return f"{what}. A JSON model is run by: dmlemu run {name}"
    if suffix in (".c", ".cc", ".cpp", ".cxx"):
        return f"{what}. It is a source: {_COMPILE}"
    if isinstance(error, PermissionError) and not os.access(program, os.X_OK):
        return f"{what}; if it is a program: chmod +x {name}"
    return what


def _run(command: list[str], environment: dict[str, str]) -> int:
    """The status of a program, as ``Popen`` has it.  Signals that are sent to this process go to the program;
    those of the terminal it gets anyway.  It finds the signals and open files that this process was given."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_PASSED})
    on_end = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored there is no status

    def restore() -> None:
        signal.signal(signal.SIGCHLD, on_end)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    try:
        process = subprocess.Popen(command, env=environment, close_fds=False, preexec_fn=restore)
        while process.poll() is None:
            info = signal.sigwaitinfo({signal.SIGCHLD, *_PASSED})
            if info.si_signo in _PASSED and info.si_code <= 0:  # not of the kernel
                process.send_signal(info.si_signo)
        return process.returncode
    finally:
        restore()


def _environment(notes: Path) -> dict[str, str]:
    """The environment of the program: where our libraries and this Python are."""
    libraries = [_libdir(), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {
        **os.environ,
        "LD_LIBRARY_PATH": ":".join(libraries),
        "DMLEMU_PYTHON": sys.executable,
        "DMLEMU_EXEC": str(notes),
    }


def _options(parsed: Namespace) -> dict[str, str]:
    """The options, as variables."""
    given = {
        "DMLEMU_STRICTNESS": parsed.strictness,
        "DMLEMU_CHAOS": None if parsed.chaos is None else str(parsed.chaos),
        "DMLEMU_REPORT": None if parsed.report is None else str(parsed.report.absolute()),
        "DMLEMU_RECORD": None if parsed.record is None else str(parsed.record.absolute()),
        "DMLEMU_RECORD_ONLY": None if parsed.record_only == "*" else parsed.record_only,
        "DMLEMU_RECORD_LIMIT": None if parsed.record_limit is None else str(parsed.record_limit),
        "DMLEMU_TRACE": None if parsed.trace is None else str(parsed.trace.absolute()),
        "DMLEMU_HTML": None if parsed.html is None else str(parsed.html.absolute()),
        "DMLEMU_ALL_OBJECTS": "1" if parsed.list_objects else None,
        "DMLEMU_BREAK": "1" if parsed.stops else None,
        "DMLEMU_SUPPRESS": "\n".join(parsed.suppress) or None,
    }
    return {name: value for name, value in given.items() if value is not None}
