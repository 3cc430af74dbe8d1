"""InferenceSession: ONNX models on the emulated device."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from .. import d3d12, dml
from ..graph import Policy, packed
from . import operators  # noqa: F401  (fills the table of lowerings)
from .hosting import Host
from .loading import ModelError, load_model, names_of
from .nodes import Work
from .points import Placed, Point, Program
from .tensors import element_type_of

__all__ = ["InferenceSession", "NodeArg"]

_TYPES = {"float32": "float", "float64": "double"}  # NumPy's names that are not ONNX Runtime's


class NodeArg(NamedTuple):
    """An input or output.  ``type`` is ``tensor(float)``; a name or None in ``shape`` is not fixed."""

    name: str
    type: str
    shape: list[int | str | None]


class InferenceSession:
    """An ONNX model that runs on the emulated device, with the method names of ONNX Runtime.

    ``model``: a file, its bytes, or a ``ModelProto``.  Nodes become DirectML operators, which are compiled
    into graphs the first time that the model runs with inputs of these shapes, and kept.  What depends on
    shapes and constants alone is computed when a graph is compiled.  What DirectML cannot do (sizes that
    depend on data, sequences, strings) runs between the graphs on the host, by the reference implementation
    of the onnx package; :meth:`describe` shows what runs where, and why.

    ``device``: by default a new one of the highest feature level on the default adapter.
    ``free_dimensions``: sizes by the names that the model gives to dimensions that are not fixed.
    ``policy``: how tensors between operators are laid out in memory, see :mod:`dmlemu.graph.policies`.
    ``host="error"``: a node that cannot run on the device is an error instead.  ``keep_intermediates``:
    :meth:`run` can return all tensors of the model. ``values`` has the tensors of the last run by name.

    Raises :class:`ModelError`, a ValueError, for a model that cannot be read or is not valid.
    """

    def __init__(
        self,
        model: onnx.ModelProto | bytes | str | os.PathLike[str],
        *,
        device: dml.Device | None = None,
        free_dimensions: Mapping[str, int] | None = None,
        policy: Policy = packed,
        execution_flags: dml.ExecutionFlags = dml.ExecutionFlags.NONE,
        host: str = "run",
        keep_intermediates: bool = False,
    ) -> None:
        if host not in ("run", "error"):
            raise ValueError(f"host ({host!r}) must be 'run' or 'error'.")
        self.model = load_model(model)
        if device is None:
            device = dml.create_device(d3d12.create_device(d3d12.create_adapter_list()[0]))
        graph = self.model.graph
        opsets = {_domain(each.domain): each.version for each in self.model.opset_import}
        known = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
        self._inputs = [each for each in graph.input if each.name not in known]
        self._free = dict(free_dimensions or {})
        self._program = Program(
            device,
            tuple(each.name for each in graph.output),
            tuple(self.model.functions),
            Host(self.model.functions),
            policy,
            execution_flags,
            refuses_host=host == "error",
            keeps=keep_intermediates,
        )
        work = [Work(node, opsets) for node in graph.node]
        self._start = Point(self._program, work, known)
        self._placed: list[list[Placed]] = []
        self.values: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<InferenceSession {self.model.graph.name}: {names_of(self._inputs)}>"

    # --- ONNX Runtime's methods ---

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that have no initialiser."""
        return [_argument(each, self._free) for each in self._inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [_argument(each, self._free) for each in self.model.graph.output]

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any]) -> list[Any]:
        """The outputs of these names, or all, for arrays by the names of the inputs.

        Raises :class:`ModelError` for an input that is missing, is not one of the model's or does not fit its
        type and shape; for an output that the model does not have; with ``host="error"`` for a node that
        cannot run on the device.  :class:`dmlemu.Error` when a DirectML call fails.
        """
        self.values = values = self._checked(input_feed)
        names = list(self._program.outputs if output_names is None else output_names)
        self._placed = []
        point: Point | None = self._start
        while point is not None:
            values.update(point.known)
            segment = point.segment(values)
            self._placed.append(list(segment.placed))
            segment.run(values, self._program.host)
            point = segment.next
        missing = [name for name in names if name not in values]
        if missing:
            raise ModelError(
                f"The model has no output {missing[0]!r}; it has {names_of(self.model.graph.output)}. "
                "Other tensors are kept if keep_intermediates is set."
            )
        return [values[name] for name in names]

    def _checked(self, feed: Mapping[str, Any]) -> dict[str, Any]:
        arguments = {each.name: each for each in self.get_inputs()}
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
                value = np.asarray(value)
                _check_array(argument, value, sizes)
            values[name] = value
        return values

    # --- our own ---

    def describe(self) -> str:
        """What ran where in the last run: segments of the device, and nodes of the host with the reason."""
        if not self._placed:
            return "The model has not run yet; it is compiled for the shapes of its first inputs."
        lines = []
        for placed in self._placed:
            counts: dict[str, int] = {}
            for each in placed:
                if each.where == "device":
                    counts[each.op] = counts.get(each.op, 0) + 1
            if counts:
                text = ", ".join(op if count == 1 else f"{op} x{count}" for op, count in counts.items())
                lines.append(f"device: {sum(counts.values())} nodes: {text}")
            folded = sum(each.where == "folded" for each in placed)
            if folded:
                lines.append(f"computed when compiled: {folded} nodes")
            lines += [
                f"host: {each.op} {each.name}: {each.reason}" for each in placed if each.where == "host"
            ]
        return "\n".join(lines)

    @property
    def placed(self) -> list[Placed]:
        """Where each node of the last run ran."""
        return [each for placed in self._placed for each in placed]


def _domain(domain: str) -> str:
    return "" if domain == "ai.onnx" else domain


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


def _check_array(argument: NodeArg, array: Any, sizes: dict[str, int]) -> None:
    """Type and shape; the same name is the same size in all inputs."""
    if argument.type != "tensor(string)":
        given = onnx.helper.tensor_dtype_to_np_dtype(element_type_of(array))
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
