"""Runs a model on an emulated device and prints the lines of DxDispatch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import prod
from pathlib import Path

import numpy as np

from dmlemu import d3d12
from dmlemu.diagnostics.location import CallSite, set_provider
from dmlemu.dml.enums import TensorDataType
from dmlemu.errors import Error, printable, quote, shorten
from dmlemu.frontends.rows import MODEL_VALUE

from .device import Device
from .dispatchable import DmlDispatchable, create_dispatchable
from .errors import add_context, model_error, quoted
from .files import EVERYWHERE, File, Folders
from .hlsl_dispatchable import HlslRunner
from .initial_values import dtype_of
from .model import Command, Dispatchable, DispatchCommand, Model, PrintCommand, ResourceDesc, WriteFileCommand
from .npy import npy_header
from .onnx_dispatchable import OnnxOverrides, OnnxRunner
from .options import Options
from .printing import format_values, format_values_verbose
from .resources import Resources
from .timing import Samples, dispatch_lines

__all__ = ["run_model"]

_MOST_TEXT = 2000  # characters of a command shown by --print_commands


def run_model(model: Model, adapter: d3d12.Adapter, options: Options, log: Callable[[str], None]) -> None:
    """Runs every command of ``model``; ``log`` receives the lines of standard output.

    Raises :class:`ModelError` for mistakes in the model and :class:`dmlemu.Error` for API calls
    that fail, with the dispatchable or command that made them.
    """
    targets = _targets(model, options)
    overrides = OnnxOverrides.of(model, options)
    device = Device(adapter, options)
    log(f"Running on '{adapter.driver_description}'")
    Executor(model, targets, overrides, device, options, log).run()


def _targets(model: Model, options: Options) -> dict[str, File]:
    """The files that commands write, by the commands' places in the model."""
    base = options.output_path or Path.cwd()
    folders = EVERYWHERE if options.allow_paths else Folders.of(model.folder, Path.cwd(), options.output_path)
    return {
        command.path: folders.target(base / command.target, f"{command.path}.targetPath")
        for command in model.commands
        if isinstance(command, WriteFileCommand)
    }


class Executor:
    """The buffers and dispatchables of a model on a device."""

    def __init__(
        self,
        model: Model,
        targets: Mapping[str, File],
        overrides: OnnxOverrides,
        device: Device,
        options: Options,
        log: Callable[[str], None],
    ) -> None:
        self._model, self._targets = model, targets
        self._device, self._options, self._log = device, options, log
        self._resources = Resources(model.resources)
        for desc in model.resources.values():
            if desc.initial is not None:
                with _While(f"creating resource {quoted(desc.name)}", desc.path):
                    buffer = device.initial(desc.size_in_bytes, desc.initial, desc.name)
                self._resources.add(desc.name, buffer)
        if any(desc.initial is not None for desc in model.resources.values()):
            device.run()  # a list without commands would be reported
        self._dispatchables = {
            name: create_dispatchable(device, dispatchable, self._resources, overrides)
            for name, dispatchable in model.dispatchables.items()
        }
        for name, dispatchable in self._dispatchables.items():
            self._initialize(name, dispatchable)

    def _initialize(self, name: str, dispatchable: DmlDispatchable | OnnxRunner | HlslRunner) -> None:
        model = self._model.dispatchables[name]
        if isinstance(model, Dispatchable):
            self._log("Compiling op using IDMLDevice1::CompileGraph" if model.graph else "Compile Op")
        start = time.perf_counter()
        with _While(f"initializing dispatchable {quoted(name)}", model.path):
            dispatchable.initialize()
        if self._options.timing_verbosity >= 1:
            self._log(f"Initialize {quoted(name)}: {_milliseconds_since(start):.4f} ms")

    def run(self) -> None:
        for index, command in enumerate(self._model.commands):
            if self._options.print_commands:
                self._log(f"[StartCmd][{index:04}]\t: {shorten(command.text, _MOST_TEXT)}")
            self._run_command(command)
            if self._options.print_commands:
                self._log(f"[EndCmd][{index:04}]\t: hr=0x00000000 \n")

    def _run_command(self, command: Command) -> None:
        if isinstance(command, DispatchCommand):
            self._dispatch(command)
        elif isinstance(command, PrintCommand):
            self._print(command)
        else:
            self._write_file(command)

    # --- dispatch ---

    def _dispatch(self, command: DispatchCommand) -> None:
        options, dispatchable = self._options, self._dispatchables[command.dispatchable]
        cpu: list[float] = []
        loop_start, timed_out = time.perf_counter(), False
        while len(cpu) < options.dispatch_iterations and not timed_out:
            start = time.perf_counter()
            if isinstance(dispatchable, HlslRunner):
                dispatchable.groups = command.groups
            with _While(f"binding resources to {quoted(command.dispatchable)}", command.path):
                dispatchable.bind(command.bindings)
            if options.print_onnx_bindings and not cpu:
                for line in dispatchable.binding_lines():
                    self._log(line)
            dispatch_start = time.perf_counter()
            with _While(f"dispatching {quoted(command.dispatchable)}", command.path):
                dispatchable.dispatch()
            cpu.append(_milliseconds_since(dispatch_start) / options.dispatch_repeat)
            pause = max(0.0, options.dispatch_interval - _milliseconds_since(start))
            limit = options.milliseconds_to_run
            timed_out = limit is not None and _milliseconds_since(loop_start) + pause > limit
            if pause and not timed_out:
                time.sleep(pause / 1000)
        if cpu:
            gpu = self._device.gpu_samples()
            warmup, verbosity = options.warmup_samples, options.timing_verbosity
            for line in dispatch_lines(command.dispatchable, Samples(cpu), gpu, warmup, verbosity):
                self._log(line)
            for line in dispatchable.notes():
                self._log(line)

    # --- print and writeFile ---

    def _print(self, command: PrintCommand) -> None:
        desc, data = self._download(command.resource, command.path)
        if desc.data_type is TensorDataType.UNKNOWN:
            message = f"{command.path} cannot print {quoted(command.resource)}: its values have mixed types."
            raise model_error(MODEL_VALUE, command.path, message, given="UNKNOWN", expected="one data type")
        assert desc.initial is not None  # a deferred resource has no data to download
        dtype = dtype_of(desc.data_type)
        # The initialised elements are shown, not the padding after them.
        values = data[: desc.initial.size // dtype.itemsize * dtype.itemsize].view(dtype)
        if command.verbose:
            self._log(f"Resource {quoted(command.resource)}:\n{format_values_verbose(values)}")
        else:
            self._log(f"Resource {quoted(command.resource)}: {format_values(values)}")

    def _write_file(self, command: WriteFileCommand) -> None:
        desc, data = self._download(command.resource, command.path)
        target = self._targets[command.path]
        parts = _npy(command, desc, data) if target.path.suffix.lower() == ".npy" else [data.tobytes()]
        target.write(parts)
        self._log(f"Resource {quoted(command.resource)} written to '{printable(str(target.path))}'")

    def _download(
        self, name: str, path: str
    ) -> tuple[ResourceDesc, np.ndarray[tuple[int], np.dtype[np.uint8]]]:
        buffer = self._resources.find(name, path)
        with _While(f"reading resource {quoted(name)}", path):
            return self._resources.desc(name, path), self._device.download(buffer)


def _npy(
    command: WriteFileCommand, desc: ResourceDesc, data: np.ndarray[tuple[int], np.dtype[np.uint8]]
) -> list[bytes]:
    """Header and elements; without dimensions the whole buffer is one row."""
    if desc.data_type is TensorDataType.UNKNOWN:
        message = (
            f"{command.path} cannot write {quoted(command.resource)} as .npy: its values have mixed types."
        )
        raise model_error(MODEL_VALUE, command.path, message, given="UNKNOWN", expected="one data type")
    dtype = dtype_of(desc.data_type)
    shape = command.dimensions or (desc.element_count,) if desc.shape is None else desc.shape
    size = prod(shape) * dtype.itemsize
    if size > len(data):
        path = f"{command.path}.dimensions"
        message = (
            f"{path} {quote(list(shape))} need {size} bytes, but {quoted(command.resource)} has {len(data)}."
        )
        raise model_error(MODEL_VALUE, path, message, given=f"{size} bytes", expected=f"<= {len(data)}")
    return [npy_header(dtype, shape), data[:size].tobytes()]


def _milliseconds_since(start: float) -> float:
    return (time.perf_counter() - start) * 1000


class _While:
    """Adds the current dispatchable or command to an error of the API; call sites are places in the model."""

    def __init__(self, doing: str, path: str) -> None:
        self._doing = f"{doing} ({path})"
        self._site = CallSite([path])

    def __enter__(self) -> None:
        self._provider = set_provider(lambda: self._site)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        set_provider(self._provider)
        if isinstance(error, Error):
            raise Error(error.hresult, add_context(error.report, f"While {self._doing}")) from None
