"""``dmlemu run model.onnx``: inputs from files or made by rule, a run, printed outputs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu import d3d12, dml
from dmlemu.errors import shorten

from .dxdispatch.options import Options
from .dxdispatch.printing import format_values
from .dxdispatch.timing import Samples, dispatch_lines
from .usage import UsageError

if TYPE_CHECKING:
    from dmlemu.onnx import InferenceSession, NodeArg

__all__ = ["diff_onnx", "run_onnx"]

Array = np.ndarray[Any, np.dtype[Any]]

_DTYPES = {"float": "float32", "double": "float64"}
_MOST_PRINTED = 1000  # elements of an output


def run_onnx(path: Path, adapter: d3d12.Adapter, options: Options, log: Callable[[str], None]) -> None:
    """Runs an ONNX model once, or as often as the options say, and prints its outputs.

    UsageError: the onnx package is missing, the model is not valid, or an input does not fit.
    """
    try:
        from dmlemu.onnx import InferenceSession, ModelError
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    free = {name: _size(size, text) for text in options.free_dimensions for name, size in [_pair(text, "-f")]}
    device = d3d12.create_device(adapter, strictness=options.strictness)
    try:
        session = InferenceSession(path, device=dml.create_device(device), free_dimensions=free)
        feeds = _feeds(session, options.bindings, log)
        log(f"Running on '{adapter.driver_description}'")
        results = _repeated(session, feeds, path, options, log)
    except ModelError as error:
        raise UsageError(str(error)) from None
    if options.print_onnx_bindings:
        _print_bindings(session, log)
    for argument, value in zip(session.get_outputs(), results, strict=True):
        log(f"Resource '{shorten(argument.name)}': {_text(value)}")
    for line in session.describe().splitlines():
        if line.startswith("host:"):
            log(line)


def _repeated(
    session: InferenceSession,
    feeds: Mapping[str, Any],
    path: Path,
    options: Options,
    log: Callable[[str], None],
) -> list[Any]:
    times: list[float] = []
    results: list[Any] = []
    start = time.perf_counter()
    limit = options.milliseconds_to_run
    while len(times) < max(1, options.dispatch_iterations):
        begin = time.perf_counter()
        results = session.run(None, feeds)
        times.append((time.perf_counter() - begin) * 1000)
        if limit is not None and (time.perf_counter() - start) * 1000 > limit:
            break
    for line in dispatch_lines(
        path.name, Samples(times), Samples([]), options.warmup_samples, options.timing_verbosity
    ):
        log(line)
    return results


def diff_onnx(
    path: Path,
    bindings: Sequence[str],
    free_dimensions: Sequence[str],
    against: str,
    layouts: int | None,
    log: Callable[[str], None],
) -> int:
    """Prints the first node whose output differs from another implementation's; returns 1 if there is one."""
    try:
        from dmlemu.graph import packed, random_layouts
        from dmlemu.onnx import InferenceSession, ModelError, compare
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    try:
        free = {name: _size(size, text) for text in free_dimensions for name, size in [_pair(text, "-f")]}
        session = InferenceSession(path, free_dimensions=free)
        policy = packed if layouts is None else random_layouts(layouts)
        found = compare(session.model, _feeds(session, bindings, log), against=against, policy=policy)
    except ModelError as error:
        raise UsageError(str(error)) from None
    log(str(found) if found is not None else f"No tensor differs from {against}.")
    return 0 if found is None else 1


def _missing(error: ModuleNotFoundError) -> Exception:
    """What to raise where a module is missing."""
    if (error.name or "").partition(".")[0] != "onnx":
        return error
    return UsageError("ONNX models need the package onnx, which the extra 'onnx' of dmlemu brings")


# --- inputs ---


def _pair(text: str, option: str) -> tuple[str, str]:
    """``name=value``, or as DxDispatch has it ``name:value``."""
    parts = re.split("[=:]", text, maxsplit=1)
    if len(parts) < 2 or not all(parts):
        raise UsageError(f"{option} {text}: expected NAME=VALUE")
    return parts[0], parts[1]


def _size(text: str, option: str) -> int:
    if not text.isdecimal() or not int(text):
        raise UsageError(f"-f {option}: expected a size of at least 1")
    return int(text)


def _feeds(
    session: InferenceSession, bindings: Sequence[str], log: Callable[[str], None]
) -> dict[str, Array]:
    given = dict(_pair(text, "-b") for text in bindings)
    arguments = {each.name: each for each in session.get_inputs()}
    for name in given:
        if name not in arguments:
            raise UsageError(
                f"-b {name}: the model has no such input; it has {', '.join(arguments) or 'none'}"
            )
    return {name: _feed(argument, given.get(name, ""), log) for name, argument in arguments.items()}


def _feed(argument: NodeArg, given: str, log: Callable[[str], None]) -> Array:
    """The array of a file, or one made by rule of a shape that is given or the model's."""
    if given and not re.fullmatch(r"\[?\d+(,\d+)*\]?", given):
        try:
            found: Array = np.load(given, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise UsageError(f"-b {argument.name}: {given} cannot be read as .npy: {error}") from None
        return found
    if given:
        shape = [int(each) for each in given.strip("[]").split(",")]
    else:
        shape = [_fixed(argument, each, log) for each in argument.shape]
    return _made(argument, shape)


def _fixed(argument: NodeArg, size: int | str | None, log: Callable[[str], None]) -> int:
    if isinstance(size, int):
        return size
    log(f"Input '{argument.name}': dimension {size or '?'} is not fixed and is taken as 1; -f or -b sets it.")
    return 1


def _made(argument: NodeArg, shape: Sequence[int]) -> Array:
    """Floats of [-1, 1), and whole numbers of 0 and 1: the same in each run."""
    name = argument.type.removeprefix("tensor(").removesuffix(")")
    try:
        dtype = np.dtype(_DTYPES.get(name, name))
    except TypeError:
        raise UsageError(
            f"the input {argument.name!r} is {argument.type}: give an array with -b NAME=FILE.npy"
        ) from None
    rng = np.random.default_rng(0)
    if dtype.kind == "f":
        return rng.uniform(-1, 1, shape).astype(dtype)
    return rng.integers(0, 2, shape).astype(dtype)


# --- outputs ---


def _text(value: Any) -> str:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return shorten(str(value), 2000)
    flat = np.ravel(value)
    numbers = flat.astype(np.uint8) if flat.dtype == np.bool_ else flat
    text = format_values(numbers[:_MOST_PRINTED])
    return text if flat.size <= _MOST_PRINTED else f"{text}, ... ({flat.size} elements)"


def _print_bindings(session: InferenceSession, log: Callable[[str], None]) -> None:
    for kind, arguments in (("Input", session.get_inputs()), ("Output", session.get_outputs())):
        for each in arguments:
            shape = ", ".join("?" if size is None else str(size) for size in each.shape)
            log(f"{kind} '{shorten(each.name)}': {each.type} [{shape}]")
