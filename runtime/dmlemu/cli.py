"""The ``dmlemu`` command."""

from __future__ import annotations

import argparse
import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO
from warnings import catch_warnings, simplefilter

from dmlemu.errors import Error, Severity, Strictness, printable, shorten
from dmlemu.files import Output
from dmlemu.frontends.usage import HELP, UsageError, add_record_options, check_distinct, report_file
from dmlemu.reporting import ReportFile, Stored, defaults, forget, how_to_see, print_annotation, print_reports

if TYPE_CHECKING:
    from dmlemu import d3d12
    from dmlemu.frontends.dxdispatch import ModelError, Options
    from dmlemu.recording import Comparison, Progress

__all__ = ["command_parser", "main"]

_STRICTNESS = "which checks run (default: strict)"

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code: 0, 1 when something is wrong, 130 when interrupted.

    Wrong usage exits with 2, as :mod:`argparse` does.
    """
    try:
        return _handled(arguments)
    except KeyboardInterrupt:  # a second one, while the first one ended the command
        return 130


def _handled(arguments: Sequence[str] | None) -> int:
    _prepare_streams()
    code = 1
    try:
        code = _command(arguments)
    except KeyboardInterrupt:  # before what imports: it may have ended an import in the middle
        code = 130
    except SystemExit:  # before what imports, too: the version and help are to be fast
        raise
    except (Error, _model_error(), UsageError) as error:
        _print_error(str(error))
    except BrokenPipeError:  # "dmlemu ... | head"
        pass
    except (MemoryError, OSError) as error:  # of this machine, not of the emulated one
        text = _output_error(error) or printable(str(error)) or "this machine has no more memory"
        _print_error(f"dmlemu: error: {text}")
    finally:
        forget()  # the command has printed what there is to say about reports
        for stream in (sys.stdout, sys.stderr):
            _flush(stream)
    return code


def _model_error() -> type[ModelError]:
    """What a front end raises; imported when something was raised."""
    from dmlemu.frontends.dxdispatch import ModelError

    return ModelError


def _command(arguments: Sequence[str] | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else arguments
        asks = "_ARGCOMPLETE" in os.environ  # a shell asks how the line may go on
        parser = command_parser(None if asks else given[0] if given else "")
        if asks:
            with suppress(ImportError):
                import argcomplete

                argcomplete.autocomplete(parser)
        parsed = parser.parse_args(given)
        code: int = parsed.run(parsed)
    except SystemExit:  # of argparse, which may have printed help
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def _prepare_streams() -> None:
    """A closed stream (``>&-``) accepts all output; names of a model may contain any Unicode character."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _print_error(text: str) -> None:
    """Prints to stderr, if it can be written."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def _output_error(error: Exception) -> str:
    """What is wrong with the standard output, if that is what failed: files have their names."""
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return f"the standard output cannot be written: {error.strerror}"
    return ""


def _flush(stream: TextIO) -> None:
    """The reader may be gone or the disk full: without this Python would fail again at exit."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _Parser(argparse.ArgumentParser):
    """Escapes control characters in the arguments that its messages quote."""

    def error(self, message: str) -> NoReturn:
        super().error(shorten(message, 2000))


class _Version(argparse.Action):
    """Reads the version only on request: reading a package's metadata takes long."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        import dmlemu

        print(f"dmlemu {dmlemu.__version__}")
        parser.exit()


def command_parser(command: str | None = None) -> argparse.ArgumentParser:
    """With all commands; or with the one that is given; or, where that is none, with the names and summaries
    of all, which is enough for help: the modules that know the options of commands import most of dmlemu."""
    parser = _Parser(
        prog="dmlemu", description="A hardware emulator of the DirectML / Direct3D 12 compute API."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show program's version number and exit")
    commands = parser.add_subparsers(metavar="COMMAND")
    parser.set_defaults(run=partial(_list_commands, parser))
    if command is None:
        for name in HELP:
            if name not in commands.choices:  # some add several
                _add_command(name, commands)
    elif command in HELP:
        _add_command(command, commands)
    else:
        for name, text in HELP.items():
            commands.add_parser(name, help=text)
    return parser


def _add_command(name: str, commands: argparse._SubParsersAction[_Parser]) -> None:
    """Adds a command with its options, and those that are declared beside it."""
    if name == "run":
        _add_run(commands)
    elif name in ("diff", "replay", "reduce"):
        _add_records(commands)
    elif name in ("exec", "capi"):
        from dmlemu.frontends.capi import command as native

        native.add_commands(commands)
    elif name in ("layout", "shader"):
        from dmlemu.frontends import layout, shader

        layout.add_command(commands)
        shader.add_command(commands)
    elif name == "step":
        from dmlemu.debugger import command as step

        step.add_command(commands)
    elif name == "campaign":
        from dmlemu.campaign import command as campaign

        campaign.add_command(commands)
    else:
        from dmlemu.frontends import catalogue

        catalogue.add_commands(commands)


def _add_run(commands: argparse._SubParsersAction[_Parser]) -> None:
    from dmlemu.frontends import dxdispatch

    run = commands.add_parser(
        "run",
        allow_abbrev=False,
        help=HELP["run"],
        description="Runs a DxDispatch JSON model, or an ONNX model.",
    )
    dxdispatch.add_options(run)
    run.add_argument(
        "--report",
        type=report_file,
        metavar="FILE",
        help="write all reports: JSON lines (.jsonl, .json), text (.txt), a page with pictures (.html), "
        "SARIF (.sarif) or Code Quality of GitLab (.codequality.json)",
    )
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
    add_record_options(run)
    run.set_defaults(run=_run)


def _list_commands(parser: argparse.ArgumentParser, _: argparse.Namespace) -> int:
    """Without a command; wrong usage."""
    parser.print_help(sys.stderr)
    print("\ndmlemu: error: a COMMAND is missing", file=sys.stderr)
    return 2


def _add_records(commands: argparse._SubParsersAction[_Parser]) -> None:
    """The commands on records of dispatches."""
    from dmlemu.frontends.dxdispatch import add_onnx_inputs
    from dmlemu_hw import kernels

    diff = commands.add_parser(
        "diff",
        allow_abbrev=False,
        help=HELP["diff"],
        description="Compares a record with another one, with arrays, or with the operators' references; "
        "an ONNX model, tensor by tensor, with another implementation. "
        "Exits with 0 when nothing differs, 1 when something does, 2 when a file cannot be used.",
    )
    diff.add_argument("a", type=Path, metavar="A", help="a record (.dmlrec) or an ONNX model (.onnx)")
    diff.add_argument("b", type=Path, nargs="?", metavar="B", help="a record, or an .npz of expected arrays")
    diff.add_argument("--reference", action="store_true", help="compare with the operators' references")
    onnx = diff.add_argument_group("options of ONNX models")
    onnx.add_argument(
        "--against",
        choices=("reference", "onnxruntime"),
        help="compare with the onnx package's implementation (default), or with ONNX Runtime",
    )
    add_onnx_inputs(onnx)
    onnx.add_argument(
        "--layout",
        metavar="LAYOUT",
        help="how the tensors between operators lie in memory: packed (default), nhwc, random:SEED",
    )
    diff.set_defaults(run=_diff_command)
    replay = commands.add_parser(
        "replay",
        allow_abbrev=False,
        help=HELP["replay"],
        description="Runs each dispatch again from its inputs, and compares the bits of its outputs. "
        "Exits with 0, 1 and 2 as diff does.",
    )
    replay.add_argument("file", type=Path, metavar="FILE.dmlrec", help="a record")
    replay.add_argument(
        "--strictness", choices=[each.value for each in Strictness], default="strict", help=_STRICTNESS
    )
    supported = [name for name, is_supported in kernels.instruction_sets().items() if is_supported]
    replay.add_argument(
        "--isa",
        choices=supported,
        metavar="SET",
        help="the largest instruction set that kernels may use, such as generic or avx2",
    )
    replay.add_argument("--chaos", type=int, metavar="SEED", help="run under dmlemu.chaos(SEED)")
    replay.add_argument("--layouts", type=int, metavar="SEED", help="draw other layouts for the tensors")
    replay.set_defaults(run=partial(_compare, _replay))
    reduce = commands.add_parser(
        "reduce",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        help=HELP["reduce"],
        description=_REDUCE,
        epilog=_REDUCE_EXAMPLES,
    )
    reduce.add_argument("file", type=Path, metavar="FILE.dmlrec", help="a record")
    reduce.add_argument(
        "--while",
        dest="shows",
        required=True,
        metavar="WHAT",
        help="the id of a check (see 'dmlemu checks'), diff, or module:function; see above",
    )
    reduce.add_argument(
        "--output",
        type=Path,
        metavar="STEM",
        help="where to write: STEM.dmlrec, STEM.json and STEM.py (default: FILE.reduced)",
    )
    reduce.add_argument(
        "--strictness", choices=[each.value for each in Strictness], default="strict", help=_STRICTNESS
    )
    reduce.set_defaults(run=_reduce)


_REDUCE = """\
Makes the smallest program that still shows WHAT: the fewest dispatches, then the
smallest tensors (with the order of their strides, and as much padding as matters),
then small offsets and plain numbers, and fewer groups of compute shaders, whose
views stay. Each attempt is run. The result is written as a record, as a DxDispatch
JSON model, and as a Python program, with the shaders that these two read beside
them; model and program are run, too. If a model cannot express something, the
output names it.

WHAT is one of
  CHECK-ID         a check reports something
  diff             an output differs from the reference of its operator
  module:function  function(run) is true; run.reports, run.ids, run.record and
                   run.error say what happened. The current folder is searched.

An attempt that reports an error of another check does not count. The same record
gives the same result. Ctrl-C ends the search and writes the best program so far.
Exits with 0; with 2 when the record does not show WHAT or cannot be used; with 130
after Ctrl-C.

A record has dispatches, what they read, and where; no barriers, fences,
descriptors, declared layouts, shapes of uploaded arrays, uploads that nobody reads
or memory that nobody wrote: reports about those cannot be reduced."""

_REDUCE_EXAMPLES = """\
examples:
  dmlemu run net.json --record net.dmlrec
  dmlemu reduce net.dmlrec --while LAYOUT_HANDOVER
  dmlemu run net.reduced.json --strictness strict
  dmlemu reduce net.dmlrec --while mychecks:has_negative_output"""


def _reduce(parsed: argparse.Namespace) -> int:
    """Writes the reduced program; 2: the record does not show it, or is not what it should be."""
    from dmlemu.recording import RecordError, reduce

    stem: Path = parsed.output or parsed.file.with_name(f"{parsed.file.stem}.reduced")
    if not stem.name or not stem.parent.is_dir():  # before a long search
        raise UsageError(f"--output {stem}: expected the beginning of a file's name in a folder that exists")
    target = stem.with_name(f"{stem.name}.dmlrec")
    if target.exists() and parsed.file.exists() and target.samefile(parsed.file):
        raise UsageError(f"--output {stem}: {target} is the record that is to be reduced")
    bar = _Bar(sys.stderr)
    try:
        found = reduce(parsed.file, _predicate(parsed.shows), strictness=parsed.strictness, progress=bar.show)
        bar.end()
        files = found.save(stem)
    except (OSError, RecordError) as error:
        bar.end()
        failed: BaseException | None = error
        while failed is not None:
            _print_error(f"dmlemu: error: {printable(str(failed))}")
            failed = failed.__cause__
        return 2
    for line in str(found).splitlines():
        print(printable(line))
    for path in files:
        how = {".json": f"dmlemu run {path} {found.run_options}", ".py": f"python {path}"}.get(path.suffix)
        print(printable(f"{path}: {how}" if how else f"{path}"))
    return 130 if found.is_interrupted else 0


def _predicate(shows: str) -> Any:
    """The function that ``module:function`` names, or the text itself."""
    module, colon, name = shows.partition(":")
    if not colon:
        return shows
    from importlib import import_module

    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"--while {shows}: {error}") from None
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise UsageError(f"--while {shows}: it is not a function")
    return found


class _Bar:
    """Progress of a reduction: one line of a terminal, or nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream if stream.isatty() else None

    def show(self, progress: Progress) -> None:
        """Draws it anew: how much of the elements and dispatches is gone."""
        if self._stream is None:
            return
        left = (
            progress.dispatches / max(1, progress.first_dispatches)
            + progress.elements / max(1, progress.first_elements)
        ) / 2
        done = round((1 - left) * 30)
        text = (
            f"[{'#' * done}{'.' * (30 - done)}] {progress.dispatches} of {progress.first_dispatches} "
            f"dispatches, {progress.elements} elements, run {progress.runs}"
        )
        with suppress(OSError):
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()

    def end(self) -> None:
        """Removes the line."""
        if self._stream is not None:
            with suppress(OSError):
                self._stream.write("\r\x1b[K")
                self._stream.flush()


def _compare(compare: Callable[[argparse.Namespace], Comparison], parsed: argparse.Namespace) -> int:
    """Prints a comparison; 2: a file is not what it should be."""
    from dmlemu.recording import RecordError

    if getattr(parsed, "isa", None) is not None and os.environ.get("DMLEMU_ISA") != parsed.isa:
        return _replay_elsewhere(parsed)
    try:
        found = compare(parsed)
    except (OSError, RecordError) as error:
        _print_error(f"dmlemu: error: {printable(str(error))}")
        return 2
    for line in str(found).splitlines():
        print(printable(line))
    return 0 if found else 1


def _diff_command(parsed: argparse.Namespace) -> int:
    of_onnx = {
        "-b": parsed.binding_shape,
        "-f": parsed.onnx_free_dim_name_override,
        "-F": parsed.onnx_free_dim_denotation_override,
        "--inputs": parsed.inputs,
        "--against": parsed.against,
        "--layout": parsed.layout,
        "--numerics": parsed.numerics,
    }
    is_onnx = parsed.a.suffix.lower() == ".onnx"
    others = {"B": parsed.b, "--reference": parsed.reference} if is_onnx else of_onnx
    for option, value in others.items():
        if value is not None and value is not False and value != []:
            kind = ("records", "an ONNX model") if is_onnx else ("ONNX models", "a record")
            _print_error(str(UsageError(f"{option} is for {kind[0]}, and {parsed.a} is {kind[1]}")))
            return 2
    if not is_onnx:
        return _compare(_diff, parsed)
    from dmlemu.frontends.dxdispatch import onnx_inputs_from
    from dmlemu.frontends.onnx_models import diff_onnx

    inputs = onnx_inputs_from(parsed)
    try:
        against, layout = parsed.against or "reference", parsed.layout or "packed"
        return diff_onnx(parsed.a, inputs, against, layout, parsed.numerics or "directml", _log)
    except (Error, UsageError) as error:  # 1 is for a difference
        _print_error(str(error))
        return 2


def _diff(parsed: argparse.Namespace) -> Comparison:
    from dmlemu.recording import RecordError, diff

    if (parsed.b is None) is not parsed.reference:
        raise RecordError("diff takes a second file, or --reference.")
    return diff(parsed.a, parsed.b, reference=parsed.reference)


def _replay(parsed: argparse.Namespace) -> Comparison:
    from dmlemu import chaos
    from dmlemu.recording import replay

    return replay(
        parsed.file,
        strictness=parsed.strictness,
        chaos=None if parsed.chaos is None else chaos(parsed.chaos),
        layouts=parsed.layouts,
    )


def _replay_elsewhere(parsed: argparse.Namespace) -> int:
    """In a process of its own: a process keeps the instructions that it started with."""
    from subprocess import run

    command = [sys.executable, "-m", "dmlemu", "replay"]
    for name in ("isa", "strictness", "chaos", "layouts"):
        if getattr(parsed, name) is not None:
            command.append(f"--{name}={getattr(parsed, name)}")
    sys.stdout.flush()
    return run([*command, "--", parsed.file], env={**os.environ, "DMLEMU_ISA": parsed.isa}).returncode


def _run(parsed: argparse.Namespace) -> int:
    from dmlemu.frontends import catalogue, dxdispatch

    options = dxdispatch.options_from(parsed)
    if options.show_adapters:
        catalogue.print_adapters()
    elif options.model is None:
        raise UsageError("the model is missing; see 'dmlemu run --help'")
    if options.model is not None:
        _check_model_name(options.model)
        outputs = {f"--{name}": getattr(parsed, name) for name in ("report", "trace", "html", "record")}
        check_distinct({"the model": options.model, **outputs})
        failures = _Failures()
        file = _Reports(parsed.report, str(options.model), failures)
        with _reports_written(file):
            program = _program(options)
            adapter = _adapter(options.adapter)
            with (  # only now: a run that cannot begin leaves the files of an earlier one alone
                _traced(parsed.trace, failures),
                _shown(parsed.html, options.model, failures),
                _recorded(parsed.record, parsed.record_only, parsed.record_limit, failures),
            ):
                program(adapter)
        if options.strictness is Strictness.RUNTIME:
            _print_error("dmlemu: no checks ran at strictness runtime; strict looks for mistakes.")
        return 1 if failures.were_told else 0
    return 0


def _program(options: Options) -> Callable[[d3d12.Adapter], None]:
    """What runs the model on an adapter; a JSON model is read and checked first."""
    from dmlemu.frontends import dxdispatch
    from dmlemu.frontends.onnx_models import run_onnx

    path = options.model
    assert path is not None
    if path.suffix.lower() == ".onnx":
        return lambda adapter: run_onnx(path, adapter, options, _log)
    model = dxdispatch.read_model(
        path, options.input_path, options.output_path, allow_paths=options.allow_paths
    )
    return lambda adapter: dxdispatch.run_model(model, adapter, options, _log)


def _check_model_name(path: Path) -> None:
    """UsageError: it is something else that a command of ours runs."""
    other = {
        ".py": f"python {path}, or with PyTorch, TensorFlow or PyDirectML: dmlemu exec python {path}",
        ".dmlrec": f"dmlemu replay {path}",
    }.get(path.suffix.lower())
    if other is not None:
        raise UsageError(f"{path} is not a JSON or ONNX model, which 'dmlemu run' runs; try: {other}")


class _Failures:
    """Files that could not be written.  Each is printed and ends nothing: other results are not lost."""

    were_told = False

    @contextmanager
    def of(self, what: str, path: Path) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            _print_error(f"dmlemu: error: {_unwritable(what, path, error)}")
            self.were_told = True


def _unwritable(what: str, path: Path, error: OSError | ValueError) -> str:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"{what} cannot be written to '{shorten(str(path), 2000)}': {reason}"


def _output(what: str, path: Path) -> Output:
    """A file of the run; UsageError, before anything runs: it cannot be written."""
    try:
        return Output(path)
    except (OSError, ValueError) as error:
        raise UsageError(_unwritable(what, path, error)) from None


@contextmanager
def _traced(path: Path | None, failures: _Failures) -> Iterator[None]:
    """Traces devices created inside of the block."""
    if path is None:
        yield
        return
    from dmlemu.tracing import trace

    tracing = trace(None, _output("the timeline", path))
    tracing.__enter__()
    try:
        yield
    finally:
        with failures.of("the timeline", path):
            tracing.__exit__(None, None, None)


@contextmanager
def _shown(path: Path | None, model: Path, failures: _Failures) -> Iterator[None]:
    """Writes what devices created inside of the block do as a page."""
    if path is None:
        yield
        return
    from dmlemu.stepping import observe
    from dmlemu.stepping.page import page

    output, observation = _output("the page", path), observe(None)
    try:
        with observation:
            yield
    finally:
        with failures.of("the page", path):
            output.write(page(observation.run, model.name))


@contextmanager
def _recorded(path: Path | None, only: str, limit: int | None, failures: _Failures) -> Iterator[None]:
    """Records what devices created inside of the block dispatch."""
    if path is None:
        yield
        return
    from dmlemu.recording import LIMIT, RecordWarning, record

    output = _output("the record", path)
    with catch_warnings():
        simplefilter("ignore", RecordWarning)  # printed below
        recording = record(None, output, only=only, limit=LIMIT if limit is None else limit)
        recording.__enter__()
        try:
            yield
        finally:
            with failures.of("the record", path):
                recording.__exit__(None, None, None)
            for note in recording.record.notes:
                _print_error(f"dmlemu: the record is not complete: {printable(note)}")


class _Reports:
    """The file of ``--report``, if there is one."""

    def __init__(self, path: Path | None, model: str, failures: _Failures) -> None:
        self._path, self.model, self._failures = path, model, failures
        self._file: ReportFile | None = None
        if path is not None:
            with failures.of("the reports", path):
                self._file = ReportFile(path, model)

    def add(self, stored: Stored) -> None:
        if self._file is not None:
            self._file(stored)

    @property
    def has_pictures(self) -> bool:
        return self._path is not None and self._path.suffix == ".html"

    def close(self) -> None:
        if self._file is not None and self._path is not None:
            with self._failures.of("the reports", self._path):
                self._file.close()


@contextmanager
def _reports_written(file: _Reports) -> Iterator[None]:
    """Writes the devices' reports to a file, and prints them at the end: only warnings if nothing failed."""
    printed: dict[tuple[str, str], Stored] = {}  # by id and message: a raised report may have more context
    raised = ("", "")

    def take(stored: Stored) -> None:
        printed.setdefault((stored.report.id, stored.report.message), stored)
        file.add(stored)

    defaults.sinks.append(take)
    try:
        yield
    except (Error, _model_error()) as error:
        raised = (error.report.id, error.report.message)
        if raised not in printed:
            take(Stored(error.report, hresult=error.hresult if isinstance(error, Error) else None))
        raise
    finally:
        defaults.sinks.remove(take)
        file.close()
        found = printed.values()
        is_wrong = any(each.report.severity <= Severity.WARNING and not each.suppressed for each in found)
        least = Severity.INFO if is_wrong else Severity.WARNING  # an INFO may be the cause
        shown = {key: stored for key, stored in printed.items() if stored.report.severity <= least}
        print_reports(stored for key, stored in shown.items() if key != raised)
        if not file.has_pictures and (pictures := how_to_see(shown.values())):
            _print_error(pictures)
        for stored in printed.values():
            if stored.report.severity <= Severity.WARNING:
                print_annotation(stored, file.model)


def _log(line: str) -> None:
    print(line, flush=True)


def _adapter(part: str) -> d3d12.Adapter:
    from dmlemu import d3d12

    adapters = d3d12.create_adapter_list()
    for adapter in adapters:
        if part in adapter.driver_description:
            return adapter
    names = ", ".join(f"'{adapter.driver_description}'" for adapter in adapters)
    raise UsageError(f"no adapter has '{part}' in its name; there is {names}")
