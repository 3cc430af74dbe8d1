"""The ``dmlemu`` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dmlemu import d3d12
from dmlemu.errors import Error, Severity
from dmlemu.frontends import dxdispatch
from dmlemu.frontends.dxdispatch.printing import format_bytes
from dmlemu.reporting import ReportFile, Stored, defaults, print_reports

__all__ = ["main"]


class _UsageError(Exception):
    """Something that was asked for on the command line does not exist."""

    def __str__(self) -> str:
        return f"dmlemu: error: {self.args[0]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code: 0, 1 when something is wrong, 130 when interrupted.

    Wrong usage leaves with 2, as :mod:`argparse` does.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names of a model may be any Unicode
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.run(parsed)
        sys.stdout.flush()
    except (Error, dxdispatch.ModelError, _UsageError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # "dmlemu ... | head"
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (MemoryError, OSError) as error:  # of this machine, not of the emulated one
        print(f"dmlemu: error: {error or 'this machine has no more memory'}", file=sys.stderr)
        return 1
    return code


class _Version(argparse.Action):
    """Finds out the version only when it is asked for: reading a package's metadata takes long."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"dmlemu {version('dmlemu')}")
        parser.exit()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dmlemu", description="A hardware emulator of the DirectML / Direct3D 12 compute API."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser(
        "run",
        allow_abbrev=False,
        help="run a DxDispatch JSON model",
        description="Runs a DxDispatch JSON model.",
    )
    dxdispatch.add_options(run)
    run.add_argument(
        "--report", type=Path, metavar="FILE", help="write what is reported: JSON lines, or text into a .txt"
    )
    run.set_defaults(run=_run)
    adapters = commands.add_parser("adapters", help="list the emulated adapters")
    adapters.set_defaults(run=_adapters)
    explain = commands.add_parser("explain", help="describe an operator, or list the operators")
    explain.add_argument("operator", nargs="?", metavar="OPERATOR", help="for instance GEMM")
    explain.set_defaults(run=_explain)
    checks = commands.add_parser("checks", help="list the checks, or explain one")
    checks.add_argument(
        "check", nargs="?", metavar="ID", help="for instance HAZARD_RAW; a pattern lists those that match"
    )
    checks.set_defaults(run=_checks)
    return parser


def _run(parsed: argparse.Namespace) -> int:
    options = dxdispatch.options_from(parsed)
    if options.show_adapters:
        _adapters(parsed)
    elif options.model is None:
        raise _UsageError("the model is missing; see 'dmlemu run --help'")
    if options.model is not None:
        with _told(parsed.report):
            model = dxdispatch.read_model(
                options.model, options.input_path, options.output_path, allow_paths=options.allow_paths
            )
            dxdispatch.run_model(model, _adapter(options.adapter), options, _log)
    return 0


@contextmanager
def _told(path: Path | None) -> Iterator[None]:
    """Writes what devices report to a file, and prints it at the end: if nothing failed, only warnings."""
    told: dict[tuple[str, str], Stored] = {}  # by id and message: what is raised may have more context
    raised = ("", "")
    file = None if path is None else ReportFile(path)

    def take(stored: Stored) -> None:
        told.setdefault((stored.report.id, stored.report.message), stored)
        if file is not None:
            file(stored)

    defaults.sinks.append(take)
    try:
        yield
    except (Error, dxdispatch.ModelError) as error:
        raised = (error.report.id, error.report.message)
        if raised not in told:
            take(Stored(error.report, hresult=error.hresult if isinstance(error, Error) else None))
        raise
    finally:
        defaults.sinks.remove(take)
        if file is not None:
            file.close()
        sys.stdout.flush()
        least = Severity.WARNING if raised == ("", "") else Severity.INFO
        left = (stored for key, stored in told.items() if key != raised)
        print_reports(stored for stored in left if stored.report.severity <= least)


def _log(line: str) -> None:
    print(line, flush=True)


def _adapter(part: str) -> d3d12.Adapter:
    adapters = d3d12.create_adapter_list()
    for adapter in adapters:
        if part in adapter.driver_description:
            return adapter
    names = ", ".join(f"'{adapter.driver_description}'" for adapter in adapters)
    raise _UsageError(f"no adapter has '{part}' in its name; there is {names}")


def _adapters(parsed: argparse.Namespace) -> int:
    for adapter in d3d12.create_adapter_list():
        number = adapter.driver_version
        print(
            adapter.driver_description,
            "-Version: " + ".".join(str(number >> shift & 0xFFFF) for shift in (48, 32, 16, 0)),
            f"-Hardware: {str(adapter.is_hardware).lower()}",
            f"-Integrated: {str(adapter.is_integrated).lower()}",
            f"-Dedicated Adapter Memory: {format_bytes(adapter.dedicated_adapter_memory)}",
            f"-Dedicated System Memory: {format_bytes(adapter.dedicated_system_memory)}",
            f"-Shared System Memory: {format_bytes(adapter.shared_system_memory)}",
            "",
            sep="\n",
        )
    return 0


def _explain(parsed: argparse.Namespace) -> int:
    from dmlemu.dml.describe import describe, summary
    from dmlemu.dml.operators.base import find_operator, registry

    if parsed.operator is None:
        for kind, operator in sorted(registry().items(), key=lambda item: item[0].name):
            print(f"{kind.name:30} {summary(operator)}")
        return 0
    try:
        print(describe(find_operator(parsed.operator.upper())), end="")
    except (ValueError, NotImplementedError) as error:
        raise _UsageError(str(error)) from None
    return 0


def _checks(parsed: argparse.Namespace) -> int:
    from difflib import get_close_matches
    from fnmatch import fnmatchcase

    from dmlemu.checks import catalogue
    from dmlemu.checks.describe import describe, listing

    pattern = (parsed.check or "*").upper()
    found = {id for id in catalogue() if fnmatchcase(id, pattern)}
    if not found:
        near = get_close_matches(pattern, catalogue(), 1)
        hint = f"; did you mean {near[0]}?" if near else "; 'dmlemu checks' lists all"
        raise _UsageError(f"no check is called {pattern}{hint}")
    print(describe(catalogue()[pattern]) if pattern in found else listing(found))
    return 0
