"""InferenceSession: ONNX models on the emulated device."""

from __future__ import annotations

import copy
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import onnx

from .. import d3d12, dml
from ..errors import as_integer
from ..graph import Policy, interleaved_bytes, packed
from . import operators  # noqa: F401  (fills the table of lowerings)
from .fusing import Fused, fuse
from .hosting import Host
from .loading import ModelError, load, names_of, sentence
from .nodes import Work
from .points import Placed, Point, Program, Progress, no_progress
from .tensors import element_type_of

__all__ = ["NUMERICS", "InferenceSession", "ModelMetadata", "NodeArg"]

NUMERICS = ("directml", "onnx")
"""Whose results there are where ONNX's specification is silent."""

_TYPES = {"float32": "float", "float64": "double"}  # NumPy's names that are not ONNX Runtime's


class NodeArg(NamedTuple):
    """An input or output.  ``type`` is ``tensor(float)``; a name or None in ``shape`` is not fixed."""

    name: str
    type: str
    shape: list[int | str | None]


class ModelMetadata(NamedTuple):
    """What the model's file says about it."""

    custom_metadata_map: dict[str, str]
    description: str
    domain: str
    graph_description: str
    graph_name: str
    producer_name: str
    version: int


class InferenceSession:
    """An ONNX model that runs on the emulated device, with the method names of ONNX Runtime.

    ``model``: a file, its bytes, or a ``ModelProto``.  Nodes become DirectML operators, which are compiled
    into graphs the first time that the model runs with inputs of these shapes, and kept.  What depends on
    shapes and constants alone is computed when a graph is compiled.  What DirectML cannot do (sizes that
    depend on data, sequences, strings) runs between the graphs on the host, by the reference implementation
    of the onnx package; :meth:`describe` shows what runs where, and why.

    ``device``: by default a new one of the highest feature level on the default adapter.
    ``free_dimensions``: sizes by the names that the model gives to dimensions that are not fixed.
    ``policy``: how tensors between operators are laid out in memory, see :mod:`dmlemu.graph.policies`; by
    default packed, but channels last for images of FLOAT32 that convolutions compute, unless the model has
    an LRN, and for images of bytes of a quantized model whose convolutions have one group.
    ``host="error"``: a node that cannot run on the device is an error instead.
    ``numerics``: where ONNX's specification is silent (a NaN in ``Max``, casts of numbers out of range ...),
    results are DirectML's, and :meth:`describe` names the nodes; ``"onnx"`` adds operators for the results of
    the onnx package and of ONNX Runtime.
    ``keep_intermediates``: :meth:`run` can return all tensors of the model.
    ``fuse_quantized``: of a quantized model, DequantizeLinear, an operator and QuantizeLinear become one
    operator on the bytes, whose results may differ by one step of the output's scale; False, or
    ``keep_intermediates``: they run one by one, in floats.
    ``progress``: a function that is called with what is done now, ``"compile"`` or ``"run"``, how many nodes
    are done, and of how many.

    :meth:`close`, or the end of a ``with`` block, releases the compiled graphs and their buffers.

    ``values`` has the tensors of the last run by name, ``model`` the checked model; of one that was read from
    a file or bytes, large initialisers are not in it.

    Raises :class:`ModelError`, a ValueError, for a model that cannot be read or is not valid.
    """

    def __init__(
        self,
        model: onnx.ModelProto | bytes | str | os.PathLike[str],
        *,
        device: dml.Device | None = None,
        free_dimensions: Mapping[str, int] | None = None,
        policy: Policy | None = None,
        execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
        host: str = "run",
        numerics: str = "directml",
        keep_intermediates: bool = False,
        fuse_quantized: bool = True,
        progress: Progress = no_progress,
    ) -> None:
        if host not in ("run", "error"):
            raise ValueError(f"host ({host!r}) must be 'run' or 'error'.")
        if numerics not in NUMERICS:
            raise ValueError(f"numerics ({numerics!r}) must be 'directml' or 'onnx'.")
        self.model, self._known = load(model)
        if device is None:
            device = dml.create_device(d3d12.create_device())
        graph = self.model.graph
        if policy is None and any(node.op_type == "LRN" for node in graph.node):
            policy = packed  # LRN takes three times as long channels last
        opsets = {each.domain: each.version for each in self.model.opset_import}
        self._free = free = _checked_sizes(free_dimensions or {}, graph)
        arguments = {each.name: _argument(each, free) for each in graph.input}
        self._inputs = [each for name, each in arguments.items() if name not in self._known]
        self._overridable = {name: each for name, each in arguments.items() if name in self._known}
        self._program = Program(
            device,
            tuple(each.name for each in graph.output),
            tuple(self.model.functions),
            Host(self.model.functions),
            policy,
            _usual_policy(graph),
            execution_flags,
            refuses_host=host == "error",
            keeps=keep_intermediates,
            progress=progress,
            nodes=len(graph.node),
            numerics=numerics,
        )
        self._work = [Work(node, opsets) for node in graph.node]
        self._fuses = fuse_quantized and not keep_intermediates
        self._starts: dict[frozenset[str], Point] = {}  # by the initialisers that are given
        self._lock = threading.RLock()
        self._closed = self._runs = False
        self._placed: list[list[Placed]] = []
        self.values: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<InferenceSession {self.model.graph.name}: {names_of(self._inputs)}>"

    def __enter__(self) -> InferenceSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Releases the compiled graphs with their buffers, the initialisers and the arrays of the last run.

        Waits for the end of a run.  Afterwards :meth:`run` raises a RuntimeError; what the model has and
        :meth:`describe` are still there.
        """
        with self._lock:
            self._closed = True
            if not self._runs:  # a function that the run called closes it; then its end releases
                self._release()

    def _release(self) -> None:
        for point in self._starts.values():
            point.close()
        self._starts, self._known, self.values = {}, {}, {}

    # --- ONNX Runtime's methods ---

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that have no initialiser."""
        return list(self._inputs)

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have an initialiser: :meth:`run` takes an array for them, too."""
        return list(self._overridable.values())

    def get_outputs(self) -> list[NodeArg]:
        return [_argument(each, self._free) for each in self.model.graph.output]

    def get_modelmeta(self) -> ModelMetadata:
        model = self.model
        return ModelMetadata(
            {each.key: each.value for each in model.metadata_props},
            model.doc_string,
            model.domain,
            model.graph.doc_string,
            model.graph.name,
            model.producer_name,
            model.model_version,
        )

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        """The outputs of these names, or all, for arrays by the names of the inputs.

        Raises :class:`ModelError` for an input that is missing, is not one of the model's or does not fit its
        type and shape; for an output that the model does not have; with ``host="error"`` for a node that
        cannot run on the device.  :class:`dmlemu.Error` when a DirectML call fails.  RuntimeError: the
        session is closed.
        """
        if isinstance(output_names, str):
            raise TypeError(f"output_names must be a list of names or None, not {output_names!r}.")
        if not isinstance(input_feed, Mapping):
            raise TypeError(f"input_feed must be a dict of arrays, not {type(input_feed).__name__}.")
        with self._lock:  # the graphs have one set of buffers each
            if self._closed:
                raise RuntimeError(f"{self!r} is closed; make another InferenceSession to run the model.")
            outer = self._runs
            try:
                self._runs = True
                return self._run(output_names, input_feed)
            finally:
                self._runs = outer
                if self._closed and not outer:
                    self._release()

    def _run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        self.values = values = self._checked(input_feed)
        names = list(self._program.outputs if output_names is None else output_names)
        self._placed = []
        own: set[str] = set()  # what no constant, input or value of the host shares memory with
        point: Point | None = self._start(values)
        while point is not None:
            values.update(point.known)
            segment = point.segment(values)
            self._placed.append(list(segment.placed))
            self._program.progress("run", self._program.done(point.work), self._program.nodes)
            segment.run(values, self._program.host)
            own.update(name for name, *_ in segment.outputs)
            point = segment.next
        missing = [name for name in names if name not in values]
        if missing:
            raise ModelError(
                f"The model has no output {missing[0]!r}; it has {names_of(self.model.graph.output)}. "
                "Other tensors are kept if keep_intermediates is set."
            )
        return [values[name] if name in own else copy.deepcopy(values[name]) for name in names]

    def _start(self, values: Mapping[str, Any]) -> Point:
        """Where the model begins, with the initialisers that no value replaces."""
        replaced = frozenset(name for name in values if name in self._known)
        if replaced not in self._starts:
            known = {name: value for name, value in self._known.items() if name not in replaced}
            fused = Fused(self._work, {})
            if self._fuses:
                fused = fuse(self._work, known, self._program.outputs)
            self._starts[replaced] = Point(self._program, fused.work, {**known, **fused.known})
        return self._starts[replaced]

    def _checked(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {each.name: each for each in self._inputs}
        arguments |= {name: self._overridable[name] for name in feed if name in self._overridable}
        for name in feed:
            if name not in arguments:
                raise ModelError(f"The model has no input {name!r}; it has {names_of(self._inputs)}.")
        values: dict[str, Any] = {}
        sizes: dict[str, int] = {}
        for name, argument in arguments.items():
            if name not in feed:
                raise ModelError(f"The input {name!r} is missing; the model has {names_of(self._inputs)}.")
            value = feed[name]
            if argument.type.startswith("tensor"):
                value = _array(name, value)
                _check_array(argument, value, sizes)
            elif argument.type == "sequence_type" and not isinstance(value, list | tuple):
                raise ModelError(f"The input {name!r} is a {type(value).__name__}; expected a list.")
            values[name] = value
        return values

    # --- our own ---

    def describe(self) -> str:
        """What ran where in the last run: segments of the device, and nodes of the host with the reason.

        Behind them, what DirectML's operators compute otherwise than implementations of ONNX; nothing with
        ``numerics="onnx"``.
        """
        if not self._placed:
            return "The model has not run yet; it is compiled for the shapes of its first inputs."
        lines = []
        for placed in self._placed:
            counts: dict[str, int] = {}
            for each in placed:
                if each.where == "device":
                    counts[each.op] = counts.get(each.op, 0) + 1
            if counts:
                lines.append(f"device: {sum(counts.values())} nodes: {_counted(counts)}")
            lines += _fused_lines(placed)
            folded = sum(each.where == "folded" for each in placed)
            if folded:
                lines.append(f"computed when compiled: {folded} nodes")
            lines += [
                f"host: {each.op} {each.name}: {each.reason}" for each in placed if each.where == "host"
            ]
        return "\n".join([*lines, *self._differences()])

    def _differences(self) -> list[str]:
        found: dict[str, Counter[str]] = {}
        for each in self.placed:
            for text in each.differences:
                found.setdefault(text, Counter())[each.op] += 1
        return [f"as DirectML: {_counted(counts)}: {text}" for text, counts in found.items()]

    @property
    def placed(self) -> list[Placed]:
        """Where each node of the last run ran."""
        return [each for placed in self._placed for each in placed]


def _fused_lines(placed: Sequence[Placed]) -> list[str]:
    """Which operators stand for several, and for which."""
    counts: dict[tuple[str, tuple[str, ...]], int] = {}
    for each in placed:
        if each.parts and each.where == "device":
            key = each.op, tuple(dict.fromkeys(each.parts))
            counts[key] = counts.get(key, 0) + 1
    return [
        f"fused: {', '.join(parts)} to {op}" + (f" x{count}" if count > 1 else "")
        for (op, parts), count in counts.items()
    ]


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(op if count == 1 else f"{op} x{count}" for op, count in counts.items())


def _argument(value: onnx.ValueInfoProto, free: Mapping[str, int]) -> NodeArg:
    if not value.type.HasField("tensor_type"):
        return NodeArg(value.name, value.type.WhichOneof("value") or "undefined", [])
    tensor = value.type.tensor_type
    name = str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)) if tensor.elem_type else "undefined"
    name = "string" if tensor.elem_type == onnx.TensorProto.STRING else _TYPES.get(name, name)
    shape: list[int | str | None] = []
    for each in tensor.shape.dim:
        size = each.dim_value if each.HasField("dim_value") and each.dim_value >= 0 else None
        named = each.dim_param if each.dim_param.isidentifier() else None  # "?" and "-1" name nothing
        shape.append(size if size is not None else free.get(each.dim_param, named))
    return NodeArg(value.name, f"tensor({name})", shape)


def _usual_policy(graph: onnx.GraphProto) -> Policy:
    """The layouts with which a quantized model runs fastest; packed for others.

    Convolutions of several groups store sums in a packed tensor, which costs more than the others gain.
    """
    is_quantized = any(node.op_type in ("QuantizeLinear", "QLinearConv") for node in graph.node)
    groups = (each.i for node in graph.node for each in node.attribute if each.name == "group")
    return interleaved_bytes if is_quantized and all(each == 1 for each in groups) else packed


def _checked_sizes(given: Mapping[str, int], graph: onnx.GraphProto) -> dict[str, int]:
    """Sizes by the names of dimensions; ModelError: the model names no such one."""
    if not isinstance(given, Mapping):
        raise TypeError(f"free_dimensions must be a dict of sizes, not {type(given).__name__}.")
    values = (*graph.input, *graph.output)
    named = {each.dim_param for value in values for each in value.type.tensor_type.shape.dim} - {""}
    for name, size in given.items():
        if name not in named:
            names = ", ".join(map(repr, sorted(named))) or "none"
            raise ModelError(f"The model names no dimension {name!r}; it names {names}.")
        if as_integer(size) is None or size < 0:
            raise ModelError(f"free_dimensions: the size of {name!r} is {size!r}; expected a whole number.")
    return dict(given)


def _array(name: str, value: Any) -> Any:
    try:
        return np.asarray(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ModelError(f"The input {name!r} is not an array: {sentence(error)}") from None


def _element_type(name: str, array: Any) -> int:
    if array.dtype.byteorder == ">" or array.dtype.kind not in "biufcOSUV":
        raise ModelError(
            f"The input {name!r} is of the NumPy type {array.dtype.str}, which ONNX does not have."
        )
    return element_type_of(array)


def _check_array(argument: NodeArg, array: Any, sizes: dict[str, int]) -> None:
    """Type and shape; the same name is the same size in all inputs."""
    if argument.type != "tensor(string)":
        given = onnx.helper.tensor_dtype_to_np_dtype(_element_type(argument.name, array))
        name = _TYPES.get(str(given), str(given))
        if argument.type not in (f"tensor({name})", "tensor(undefined)"):
            raise ModelError(
                f"The input {argument.name!r} is of type {name}; expected {argument.type[7:-1]}."
            )
    fits = len(argument.shape) == array.ndim
    for size, expected in zip(array.shape, argument.shape, strict=False):
        wanted = sizes.setdefault(expected, size) if isinstance(expected, str) else expected
        fits = fits and wanted in (None, size)
    if not fits and argument.shape:
        shape = ", ".join("?" if each is None else str(each) for each in argument.shape)
        raise ModelError(f"The input {argument.name!r} has shape {list(array.shape)}; expected [{shape}].")
