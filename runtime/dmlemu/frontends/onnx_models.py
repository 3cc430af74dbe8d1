"""``dmlemu run model.onnx``: inputs from files or made by rule, a run, printed outputs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from math import prod
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
_MAX_ELEMENTS = 2**32 - 1  # of an input that is made by rule; larger ones fit no tensor
_MOST_PRINTED = 1000  # elements of an output


def run_onnx(path: Path, adapter: d3d12.Adapter, options: Options, log: Callable[[str], None]) -> None:
    """Runs an ONNX model once, or as often as the options say, and prints its outputs.

    UsageError: the onnx package is missing, the model is not valid, or an input does not fit.
    """
    try:
        from dmlemu.onnx import InferenceSession, ModelError
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    _refuse_options(options)
    free = _sizes(options.free_dimensions)
    flags = dml.CreateDeviceFlags.DEBUG if options.debug else dml.CreateDeviceFlags.NONE
    device = d3d12.create_device(adapter, strictness=options.strictness)
    try:
        session = InferenceSession(
            path,
            device=dml.create_device(device, flags, options.dml_feature_level),
            free_dimensions=free,
        )
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
        time.sleep(max(0, options.dispatch_interval - times[-1]) / 1000)
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
        session = InferenceSession(path, free_dimensions=_sizes(free_dimensions))
        policy = packed if layouts is None else random_layouts(layouts)
        found = compare(path, _feeds(session, bindings, log), against=against, policy=policy)
    except ModelError as error:
        raise UsageError(str(error)) from None
    log(str(found) if found is not None else f"No tensor differs from {against}.")
    return 0 if found is None else 1


def _missing(error: ModuleNotFoundError) -> Exception:
    """What to raise where a module is missing."""
    if (error.name or "").partition(".")[0] != "onnx":
        return error
    return UsageError("ONNX models need the package onnx, which the extra 'onnx' of dmlemu brings")


_OF_JSON_MODELS = {
    "input_path": "--input_path",
    "output_path": "--output_path",
    "allow_paths": "--allow-paths",
    "print_commands": "--print_commands",
    "queue_type": "-q",
    "uav_barrier": "--post_dispatch_barriers",
    "aliasing_barrier": "--post_dispatch_barriers",
    "disable_gpu_timeout": "--disable_gpu_timeout",
    "dispatch_repeat": "-r",
    "max_gpu_time_measurements": "--max_gpu_time_measurements",
}


def _refuse_options(options: Options) -> None:
    """UsageError: one is given that changes nothing for an ONNX model."""
    for name, option in _OF_JSON_MODELS.items():
        if getattr(options, name) != getattr(Options(), name):
            raise UsageError(f"{option} is an option of JSON models; an ONNX model runs without it")


# --- inputs ---


def _pair(text: str, option: str) -> tuple[str, str]:
    """``name=value``, or as DxDispatch has it ``name:value``."""
    parts = re.split("[=:]", text, maxsplit=1)
    if len(parts) < 2 or not all(parts):
        raise UsageError(f"{option} {text}: expected NAME=VALUE")
    return parts[0], parts[1]


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, value = _pair(text, option)
        if name in found:
            raise UsageError(f"{option} {text}: {name} is given twice, {found[name]} before")
        found[name] = value
    return found


def _sizes(texts: Sequence[str]) -> dict[str, int]:
    """The options ``-f``."""
    return {name: _size(size, f"{name}={size}") for name, size in _pairs(texts, "-f").items()}


def _size(text: str, option: str) -> int:
    if not text.isdecimal() or len(text) > 10 or not int(text):
        raise UsageError(f"-f {option}: expected a size of at least 1, of at most 10 digits")
    return int(text)


def _feeds(
    session: InferenceSession, bindings: Sequence[str], log: Callable[[str], None]
) -> dict[str, Array]:
    given = _pairs(bindings, "-b")
    arguments = {each.name: each for each in session.get_inputs()}
    overridable = session.get_overridable_initializers()
    arguments.update((each.name, each) for each in overridable if each.name in given)
    for name in given:
        if name not in arguments:
            raise UsageError(
                f"-b {name}: the model has no such input; it has {', '.join(arguments) or 'none'}"
            )
    return {name: _feed(argument, given.get(name, ""), log) for name, argument in arguments.items()}


def _feed(argument: NodeArg, given: str, log: Callable[[str], None]) -> Array:
    """The array of a file, or one made by rule of a shape that is given or the model's."""
    if not argument.type.startswith("tensor"):
        raise UsageError(f"the input {argument.name!r} is no tensor: run the model from Python")
    if given and not re.fullmatch(r"(\[)?\d{1,18}(,\d{1,18})*(?(1)\])", given):
        return _read(given, argument.name)
    if given:
        shape = [int(each) for each in given.strip("[]").split(",")]
    else:
        shape = [_fixed(argument, each, log) for each in argument.shape]
    return _made(argument, shape)


def _read(path: str, name: str) -> Array:
    """The array of an .npy file; never a pickled one."""
    try:
        with open(path, "rb") as file:
            found: Array = np.lib.format.read_array(file, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"-b {name}: {path} cannot be read: {error.strerror}") from None
    except (ValueError, EOFError, MemoryError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise UsageError(f"-b {name}: {path} cannot be read as .npy: {lines[0]}") from None
    return found


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
    try:
        if prod(shape) > _MAX_ELEMENTS:
            raise MemoryError
        made = rng.uniform(-1, 1, shape) if dtype.kind == "f" else rng.integers(0, 2, shape)
        return np.asarray(made, dtype)
    except (ValueError, OverflowError, MemoryError):
        raise UsageError(f"the input {argument.name!r} of shape {list(shape)} is too large") from None


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
