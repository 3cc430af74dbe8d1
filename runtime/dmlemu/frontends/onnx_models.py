"""``dmlemu run model.onnx``: inputs from files or made by rule, a run, printed outputs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from dmlemu import d3d12
from dmlemu.errors import shorten

from .dxdispatch.device import Device
from .dxdispatch.onnx_dispatchable import binding_lines
from .dxdispatch.onnx_file import OnnxTensor
from .dxdispatch.options import OnnxInputs, Options
from .dxdispatch.printing import format_values
from .dxdispatch.timing import Samples, dispatch_lines
from .onnx_inputs import as_shape, given_sizes, made_array, pairs, sizes_of_denotations, sizes_of_names
from .progress import ProgressBar
from .usage import UsageError

if TYPE_CHECKING:
    from dmlemu.graph import Policy
    from dmlemu.onnx import InferenceSession, NodeArg

__all__ = ["diff_onnx", "run_onnx"]

Array = np.ndarray[Any, np.dtype[Any]]

_DTYPES = {"float": "float32", "double": "float64"}
_MOST_DIGITS = 18  # of a seed
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
    device = Device(adapter, options)
    try:
        inputs = options.onnx_inputs
        model, free = _with_sizes(path, inputs)
        bar = ProgressBar()
        session = InferenceSession(
            model,
            device=device.dml,
            free_dimensions=free,
            numerics=options.numerics or "directml",
            progress=bar.tell,
        )
        feeds = _feeds(session, inputs, log)
        log(f"Running on '{adapter.driver_description}'")
        if options.print_onnx_bindings:
            _print_bindings(session, feeds, log)
        with bar:
            times, results = _repeated(device, session, feeds, options)
        gpu = device.gpu_samples()
    except ModelError as error:
        raise UsageError(str(error)) from None
    for line in dispatch_lines(
        path.name, Samples(times), gpu, options.warmup_samples, options.timing_verbosity
    ):
        log(line)
    for argument, value in zip(session.get_outputs(), results, strict=True):
        log(f"Resource '{shorten(argument.name)}': {_text(value)}")
    for line in session.describe().splitlines():
        if line.startswith("host:"):
            log(line)


def _repeated(
    device: Device, session: InferenceSession, feeds: Mapping[str, Any], options: Options
) -> tuple[list[float], list[Any]]:
    """The milliseconds of each run, and the results of the last one."""
    times: list[float] = []
    results: list[Any] = []
    start = time.perf_counter()
    limit = options.milliseconds_to_run
    while len(times) < max(1, options.dispatch_iterations):
        with device.timed():
            begin = time.perf_counter()
            for _ in range(options.dispatch_repeat):
                results = session.run(None, feeds)
            taken = (time.perf_counter() - begin) * 1000
        times.append(taken / options.dispatch_repeat)
        if limit is not None and (time.perf_counter() - start) * 1000 > limit:
            break
        time.sleep(max(0, options.dispatch_interval - taken) / 1000)
    return times, results


def diff_onnx(
    path: Path, inputs: OnnxInputs, against: str, layout: str, numerics: str, log: Callable[[str], None]
) -> int:
    """Prints the first node whose output differs from another implementation's; returns 1 if there is one.

    ``layout``: that of the tensors between operators, ``packed``, ``nhwc`` or ``random:SEED``.
    """
    try:
        from dmlemu.onnx import InferenceSession, ModelError, compare
    except ModuleNotFoundError as error:
        raise _missing(error) from None
    policy = _policy(layout)
    try:
        model, free = _with_sizes(path, inputs)
        session = InferenceSession(model, free_dimensions=free)
        feeds = _feeds(session, inputs, log)
        with ProgressBar() as bar:
            found = compare(
                model,
                feeds,
                against=against,
                free_dimensions=free,
                policy=policy,
                numerics=numerics,
                progress=bar.tell,
            )
    except ModelError as error:
        raise UsageError(str(error)) from None
    log(str(found) if found is not None else f"No tensor differs from {against}.")
    return 0 if found is None else 1


def _policy(layout: str) -> Policy:
    from dmlemu.graph import interleaved_channel, packed, random_layouts

    kind, _, seed = layout.partition(":")
    if kind == "random" and seed.isdecimal() and len(seed) <= _MOST_DIGITS:
        return random_layouts(int(seed))
    policies: dict[str, Policy] = {"packed": packed, "nhwc": interleaved_channel}
    if layout not in policies:
        raise UsageError(
            f"--layout {layout}: expected packed, nhwc or random:SEED, with a whole number as SEED"
        )
    return policies[layout]


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
}


def _refuse_options(options: Options) -> None:
    """UsageError: one is given that changes nothing for an ONNX model."""
    for name, option in _OF_JSON_MODELS.items():
        if getattr(options, name) != getattr(Options(), name):
            raise UsageError(f"{option} is an option of JSON models; an ONNX model runs without it")


# --- inputs ---


def _with_sizes(path: Path, inputs: OnnxInputs) -> tuple[Any, dict[str, int]]:
    """The model, and the sizes of dimensions by their names: the options ``-f`` and ``-F``."""
    from dmlemu.onnx import ModelError
    from dmlemu.onnx.loading import load_model

    named, denoted = given_sizes(inputs.dimensions, "-f"), given_sizes(inputs.denotations, "-F")
    if not denoted:
        return path, named
    model = load_model(path)
    known = {dim.denotation for each in model.graph.input for dim in each.type.tensor_type.shape.dim} - {""}
    for name in denoted:
        if name not in known:
            there = ", ".join(map(repr, sorted(known))) or "none"
            raise ModelError(f"The model has no denotation {name!r}; it has {there}.")
    return model, sizes_of_denotations(model, denoted) | named


def _feeds(session: InferenceSession, inputs: OnnxInputs, log: Callable[[str], None]) -> dict[str, Array]:
    given = pairs(inputs.bindings, "-b")
    feeds = {} if inputs.file is None else _read_all(inputs.file)
    arguments = {each.name: each for each in session.get_inputs()}
    overridable = session.get_overridable_initializers()
    arguments.update((each.name, each) for each in overridable if each.name in (*given, *feeds))
    for option, names in (("-b", given), ("--inputs", feeds)):
        for name in names:
            if name not in arguments:
                there = ", ".join(arguments) or "none"
                raise UsageError(f"{option} {name}: the model has no such input; it has {there}")
    for name in given:
        if name in feeds:
            raise UsageError(f"-b {name}={given[name]}: {inputs.file} has an array for this input, too")
    shapes = {name: argument.shape for name, argument in arguments.items()}
    fixed: dict[str, Sequence[int]] = {name: array.shape for name, array in feeds.items()}
    for name, text in given.items():
        shape = as_shape(text)
        if shape is None:
            feeds[name] = _read(text, name)
        fixed[name] = feeds[name].shape if shape is None else shape
    named = sizes_of_names(shapes, fixed)
    for number, (name, argument) in enumerate(arguments.items()):
        if not argument.type.startswith("tensor"):
            raise UsageError(f"the input {name!r} is no tensor: run the model from Python")
        if name not in feeds:
            sizes = fixed.get(name) or [_fixed(argument, each, named, log) for each in argument.shape]
            feeds[name] = _made(number, argument, sizes)
    return feeds


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


def _read_all(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file by name; never pickled ones."""
    what = f"--inputs {path}: it cannot be read"
    try:
        with open(path, "rb") as file:
            found = np.load(file, allow_pickle=False)
            if isinstance(found, np.ndarray):
                raise UsageError(f"--inputs {path}: expected an .npz of arrays by name; -b takes one array")
            return dict(found)
    except OSError as error:
        raise UsageError(f"{what}: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError, BadZipFile) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise UsageError(f"{what} as .npz: {lines[0]}") from None


def _fixed(
    argument: NodeArg, size: int | str | None, named: Mapping[str, int], log: Callable[[str], None]
) -> int:
    if isinstance(size, int):
        return size
    if size is not None and size in named:
        return named[size]
    log(f"Input '{argument.name}': dimension {size or '?'} is not fixed and is taken as 1; -f or -b sets it.")
    return 1


def _made(number: int, argument: NodeArg, shape: Sequence[int]) -> Array:
    name = argument.type.removeprefix("tensor(").removesuffix(")")
    try:
        dtype = np.dtype(_DTYPES.get(name, name))
    except TypeError:
        raise UsageError(
            f"the input {argument.name!r} is {argument.type}: give an array with -b NAME=FILE.npy"
        ) from None
    try:
        return made_array(number, dtype, shape)
    except ValueError as error:
        raise UsageError(f"the input {argument.name!r} cannot be made: {error}") from None


# --- outputs ---


def _text(value: Any) -> str:
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "biuf":
        return shorten(str(value), 2000)
    flat = np.ravel(value)
    numbers = flat.astype(np.uint8) if flat.dtype == np.bool_ else flat
    text = format_values(numbers[:_MOST_PRINTED])
    return text if flat.size <= _MOST_PRINTED else f"{text}, ... ({flat.size} elements)"


def _print_bindings(
    session: InferenceSession, feeds: Mapping[str, Array], log: Callable[[str], None]
) -> None:
    """As DxDispatch: the shapes of inputs that are run on, and of outputs as far as the model says them."""
    inputs = [*session.get_inputs(), *session.get_overridable_initializers()]
    for kind, arguments in (("Input", inputs), ("Output", session.get_outputs())):
        for each in arguments:
            shape = feeds[each.name].shape if each.name in feeds else tuple(each.shape)
            name = each.type.removeprefix("tensor(").removesuffix(")").upper()
            for line in binding_lines(kind, OnnxTensor(each.name, name), shape, is_explicit=False):
                log(line)
