"""An ONNX model of a DxDispatch model: run on what is bound to its tensors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, TypeAlias

import numpy as np

from dmlemu.errors import shorten
from dmlemu.frontends.rows import MODEL_ONNX, MODEL_VALUE

from ...frozen import Frozen
from ..onnx_inputs import as_shape, given_sizes, made_array, pairs, sizes_of_denotations, sizes_of_names
from ..progress import ProgressBar
from ..usage import UsageError
from .device import Device
from .errors import ModelError, model_error, quoted
from .initial_values import InitialValues
from .model import Bindings, BindingSource, Model, OnnxDispatchable
from .onnx_file import OnnxTensor
from .options import OnnxInputs, Options
from .resources import Resources

__all__ = ["OnnxOverrides", "OnnxRunner", "binding_lines"]

Shape: TypeAlias = tuple[int | str | None, ...]

Array = np.ndarray[Any, np.dtype[Any]]


class OnnxOverrides(Frozen):
    """What the command line says of the ONNX models of a model: it holds where JSON says something else."""

    sizes: Mapping[str, int]
    denoted: Mapping[str, int]
    shapes: Mapping[str, tuple[int, ...]]
    numerics: str

    @classmethod
    def of(cls, model: Model, options: Options) -> OnnxOverrides:
        """UsageError: an option names nothing of any ONNX model, or is not what it must be."""
        files = [each.file for each in model.dispatchables.values() if isinstance(each, OnnxDispatchable)]
        inputs = options.onnx_inputs
        if inputs.file is not None:
            raise UsageError("--inputs: a JSON model binds resources to the inputs of ONNX models")
        if not files and (inputs != OnnxInputs() or options.print_onnx_bindings or options.numerics):
            raise UsageError(
                "-b, -f, -F, -p and --numerics are options of ONNX models, and the JSON model names none"
            )
        given = cls(
            given_sizes(inputs.dimensions, "-f"),
            given_sizes(inputs.denotations, "-F"),
            {name: _shape(name, text) for name, text in pairs(inputs.bindings, "-b").items()},
            options.numerics or "directml",
        )
        tensors = [tensor.name for file in files for tensor in (*file.inputs, *file.outputs)]
        _check("-f", given.sizes, (name for file in files for name in file.dimensions))
        _check("-F", given.denoted, (name for file in files for name in file.denotations))
        _check("-b", given.shapes, tensors)
        return given


def _shape(name: str, text: str) -> tuple[int, ...]:
    shape = as_shape(text)
    if shape is None:
        raise UsageError(f"-b {name}={text}: expected a shape; a JSON model binds a resource with the file")
    return shape


def _check(option: str, given: Iterable[str], names: Iterable[str]) -> None:
    known = dict.fromkeys(names)
    for name in given:
        if name not in known:
            there = ", ".join(known) or "none"
            raise UsageError(f"{option} {name}: no ONNX model of the JSON model has it; there is {there}")


class OnnxRunner:
    """Mirrors the steps of DxDispatch's ONNX dispatchable."""

    def __init__(
        self, device: Device, model: OnnxDispatchable, resources: Resources, overrides: OnnxOverrides
    ) -> None:
        self._device, self._resources = device, resources
        self._model, self._file, self._overrides = model, model.file, overrides
        self._bindings: Bindings = {}
        self._shapes: dict[str, Shape] = {}
        self._feeds: dict[str, Array] = {}
        self._bar = ProgressBar()

    def initialize(self) -> None:
        """Makes the session.  Its graphs are compiled when the shapes are known, at the first dispatch."""
        from dmlemu.onnx import InferenceSession, ModelError

        file, given = self._file, self._overrides
        free = sizes_of_denotations(file.model, {**file.denoted, **given.denoted})
        free |= {**file.sizes, **{name: given.sizes[name] for name in file.dimensions & given.sizes.keys()}}
        self._free = free
        try:
            self._session = InferenceSession(
                file.model,
                device=self._device.dml,
                free_dimensions=free,
                numerics=given.numerics,
                progress=self._bar.tell,
            )
        except ModelError as error:
            raise self._failed(error) from None

    def bind(self, bindings: Bindings) -> None:
        """Reads what is bound to inputs, and makes the others by rule; ModelError: something does not fit."""
        self._bindings = bindings
        inputs = {each.name: tuple(each.shape) for each in self._session.get_inputs()}
        outputs = {each.name: tuple(each.shape) for each in self._session.get_outputs()}
        if None in map(_fixed, outputs.values()):
            outputs |= self._inferred
        shapes = {name: self._shape(name, known) for name, known in (outputs | inputs).items()}
        given = {name: fixed for name in inputs if (fixed := _fixed(shapes[name])) is not None}
        named = sizes_of_names(inputs, given)
        for name in inputs:  # a dimension that nothing fixes is 1
            shapes[name] = tuple(
                size if isinstance(size, int) else named.get(size or "", 1) for size in shapes[name]
            )
        self._shapes = shapes
        for tensor in self._file.outputs:
            self._check_output(tensor)
        self._read_inputs()

    def dispatch(self) -> None:
        """Runs the model as often as the options say, and writes the outputs that are bound."""
        from dmlemu.onnx import ModelError

        results: list[Any] = []
        with self._bar, self._device.timed():
            for number in range(self._device.options.dispatch_repeat):
                if number:  # what is bound to an input may be an output, too
                    self._write_outputs(results)
                    self._read_inputs()
                try:
                    results = self._session.run(None, self._feeds)
                except ModelError as error:
                    raise self._failed(error) from None
        self._write_outputs(results)

    def binding_lines(self) -> list[str]:
        """The lines of ``-p``, for what is bound now."""
        lines = []
        for kind, tensors in (("Input", self._file.inputs), ("Output", self._file.outputs)):
            for tensor in tensors:
                sources = self._bindings.get(tensor.name, ())
                is_explicit = any(kind == "Input" or self._is_there_before(each) for each in sources)
                lines += binding_lines(kind, tensor, self._shapes[tensor.name], is_explicit=is_explicit)
        return lines

    def notes(self) -> list[str]:
        """The nodes that ran on the host, and why."""
        return [line for line in self._session.describe().splitlines() if line.startswith("host:")]

    def _failed(self, error: Exception) -> ModelError:
        return model_error(MODEL_ONNX, self._model.path, str(error))

    # --- shapes ---

    @cached_property
    def _inferred(self) -> dict[str, Shape]:
        """The shapes of outputs that follow from the sizes that are given to dimensions."""
        import onnx

        model = onnx.ModelProto()
        model.CopyFrom(self._file.model)
        for value in (*model.graph.input, *model.graph.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in self._free:
                    dim.dim_value = self._free[dim.dim_param]
        try:
            model = onnx.shape_inference.infer_shapes(model, data_prop=True)
        except (onnx.shape_inference.InferenceError, ValueError):  # what is wrong, running it says
            return {}
        return {each.name: _sizes(each) for each in model.graph.output}

    def _shape(self, name: str, known: Shape) -> Shape:
        """That of ``-b``, of the binding, or of the model, in which sizes may be open."""
        given = self._overrides.shapes.get(name, ())
        if given and not _fits(given, known):
            raise UsageError(f"-b {name}={_text(given)}: the model's shape is {_text(known)}")
        for source in self._bindings.get(name, ()):
            if source.shape and not given:
                given = source.shape
                if not _fits(given, known):
                    what = f"({_text(given)}) is not a shape that the model allows for {quoted(name)}"
                    raise _error(f"{source.path}.shape", what, _text(given), _text(known))
        return given or known

    def _check_output(self, tensor: OnnxTensor) -> None:
        """A resource is bound to a shape that is known before the model runs, and is large enough."""
        shape = self._shapes[tensor.name]
        for source in filter(self._is_there_before, self._bindings.get(tensor.name, ())):
            if _fixed(shape) is None:
                what = f"binds {quoted(source.resource)} to {quoted(tensor.name)}, whose shape is not fixed"
                hint = "The binding may have a shape; a deferred resource needs none."
                raise _error(source.path, what, _text(shape), "a shape", hint)
            self._check_size(tensor, source)

    def _check_size(self, tensor: OnnxTensor, source: BindingSource) -> int:
        """The bytes of a tensor; ModelError: the resource has fewer."""
        shape = self._shapes[tensor.name]
        size = prod(_fixed(shape) or ()) * tensor.dtype.itemsize
        there = self._resources.desc(source.resource, source.path).size_in_bytes
        if size > there:
            what = (
                f"binds {quoted(source.resource)}, which has {there} bytes, to {quoted(tensor.name)}, "
                f"{tensor.type} of shape {_text(shape)}, which needs {size}"
            )
            raise _error(source.path, what, f"{there} bytes", f">= {size} bytes")
        return size

    def _is_there_before(self, source: BindingSource) -> bool:
        return not self._resources.is_deferred(source.resource)

    # --- elements ---

    def _read_inputs(self) -> None:
        self._feeds = {
            tensor.name: self._input(number, tensor) for number, tensor in enumerate(self._file.inputs)
        }

    def _input(self, number: int, tensor: OnnxTensor) -> Array:
        shape = self._shapes[tensor.name]
        for source in self._bindings.get(tensor.name, ()):
            size = self._check_size(tensor, source)
            data = self._device.download(self._resources.find(source.resource, source.path))
            return data[:size].view(tensor.dtype).reshape(shape)
        try:
            return made_array(number, tensor.dtype, _fixed(shape) or ())
        except ValueError as error:
            what = f"has the input {quoted(tensor.name)}, which cannot be made: {error}"
            raise _error(self._model.path, what, _text(shape), "a smaller shape") from None

    def _write_outputs(self, results: Sequence[Any]) -> None:
        for tensor, value in zip(self._file.outputs, results, strict=True):
            for source in self._bindings.get(tensor.name, ()):
                self._write(tensor, source, value)

    def _write(self, tensor: OnnxTensor, source: BindingSource, value: Any) -> None:
        """Into the resource; a deferred one is made."""
        array = np.asarray(value, order="C")
        resources, name = self._resources, source.resource
        data_type = tensor.data_type
        assert data_type is not None  # checked when the model was read
        if resources.is_deferred(name):
            values = InitialValues(data_type, array.nbytes, lambda target: _fill(target, array))
            buffer = self._device.initial(max(4, -(-array.nbytes // 4) * 4), values, name)
            self._device.run()
            resources.resolve(name, buffer, values, array.shape)
            return
        shape = self._shapes[tensor.name]
        if array.shape != shape:
            what = f"gives {quoted(tensor.name)} the shape {_text(shape)}, and the model makes another"
            raise _error(source.path, what, _text(shape), _text(array.shape))
        if array.size:
            self._device.write(resources.find(name, source.path), array.view(_bits(array)))


def _sizes(value: Any) -> Shape:
    dims = value.type.tensor_type.shape.dim
    return tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or None for dim in dims)


def _fixed(shape: Shape) -> tuple[int, ...] | None:
    """The shape, if no size in it is open."""
    sizes = tuple(size for size in shape if isinstance(size, int))
    return sizes if len(sizes) == len(shape) else None


def _fits(shape: Shape, known: Shape) -> bool:
    if not known:  # a scalar, or a shape that the model does not say
        return True
    fixed = zip(shape, known, strict=False)
    return len(shape) == len(known) and all(size == open or not isinstance(open, int) for size, open in fixed)


def _fill(target: Array, array: Array) -> None:
    target[:] = array.reshape(-1).view(np.uint8)


def _bits(array: Array) -> np.dtype[Any]:
    """BOOL is UINT8 in DirectML."""
    return np.dtype(np.uint8) if array.dtype == np.bool_ else array.dtype


def _text(shape: Sequence[int | str | None]) -> str:
    return f"[{','.join('?' if size is None else shorten(str(size)) for size in shape)}]"


def _error(path: str, what: str, given: str, expected: str, hint: str = "") -> ModelError:
    return model_error(MODEL_VALUE, path, f"{path} {what}.", given=given, expected=expected, hint=hint)


def binding_lines(kind: str, tensor: OnnxTensor, shape: Shape, *, is_explicit: bool) -> list[str]:
    """DxDispatch's lines about a tensor: where its elements lie, its type and its shape."""
    where = "explicit" if is_explicit else "deferred" if _fixed(shape) is None else "implicit"
    return [
        f"{kind} Tensor {quoted(tensor.name)}:",
        f"  Resource  = {where} ({'CPU' if tensor.data_type is None else 'DirectX'})",
        f"  Data Type = {tensor.type}",
        f"  Shape     = {_text([size if isinstance(size, int) else -1 for size in shape])}",
        "",
    ]
