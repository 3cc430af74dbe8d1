"""The ONNX model of a dispatchable of type ``onnx``: its tensors, and given sizes of dimensions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dmlemu.dml.enums import TensorDataType
from dmlemu.errors import shorten
from dmlemu.frontends.rows import MODEL_NAME, MODEL_ONNX, MODEL_UNSUPPORTED, MODEL_VALUE

from ...frozen import Frozen
from .errors import model_error, quoted
from .files import Folders
from .node import Node

__all__ = ["OnnxFile", "OnnxTensor", "read_onnx"]

_NAMES = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64", "BOOL": "UINT8"}  # of ONNX's types, as DirectML has them
_NOT_OF_RESOURCES = ("UNKNOWN", "INT4", "UINT4")
_DATA_TYPES = {each.name: each for each in TensorDataType if each.name not in _NOT_OF_RESOURCES}
_LEVELS = {"graphOptimizationLevel": (0, 1, 2, 99), "loggingLevel": (0, 1, 2, 3, 4)}
_OF_ONNX = (
    *("type", "sourcePath", "freeDimensionNameOverrides", "freeDimensionDenotationOverrides"),
    *("sessionOptionsConfigEntries", *_LEVELS),
)


class OnnxTensor(Frozen):
    """An input or output.  ``type`` is ONNX's name, ``FLOAT``, or ``sequence_type`` and the like."""

    name: str
    type: str

    @property
    def data_type(self) -> TensorDataType | None:
        """What a resource that is bound to it holds; None: no resource can."""
        return _DATA_TYPES.get(_NAMES.get(self.type, self.type))

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of its elements, if it has a :attr:`data_type`."""
        return np.dtype(bool if self.type == "BOOL" else _NAMES.get(self.type, self.type).lower())


class OnnxFile(Frozen):
    """A checked model; ``sizes`` and ``denoted``: sizes of dimensions by name and by denotation."""

    model: Any  # an onnx.ModelProto; the package may be missing
    inputs: tuple[OnnxTensor, ...]
    outputs: tuple[OnnxTensor, ...]
    sizes: Mapping[str, int]
    denoted: Mapping[str, int]
    dimensions: frozenset[str]
    denotations: frozenset[str]


def read_onnx(node: Node, base: Path, folders: Folders) -> OnnxFile:
    """Reads and checks the model that a dispatchable names.

    Raises :class:`ModelError`: the file cannot be read or is not a valid model, it names no such dimension,
    an option has no meaning here, or the onnx package is missing.
    """
    node.refuse_misspelt(_OF_ONNX)
    source = node["sourcePath"]
    file = folders.source(source.string(), base, source.path)
    file.size()  # it can be opened
    model = _loaded(file.place, source)
    initialised = {each.name for each in (*model.graph.initializer, *_sparse(model.graph))}
    inputs = [_tensor(each) for each in model.graph.input if each.name not in initialised]
    for each in inputs:
        if each.data_type is None:
            what = f"has the input {quoted(each.name)}, whose type {each.type} no resource can hold"
            source.fail(MODEL_UNSUPPORTED, what, each.type, ", ".join(_DATA_TYPES))
    values = (*model.graph.input, *model.graph.output)
    dims = [dim for each in values for dim in each.type.tensor_type.shape.dim]
    names = frozenset(dim.dim_param for dim in dims) - {""}
    denotations = frozenset(dim.denotation for dim in dims) - {""}
    _check_options(node)
    return OnnxFile(
        model,
        tuple(inputs),
        tuple(map(_tensor, model.graph.output)),
        _overrides(node.get("freeDimensionNameOverrides"), names, "dimension"),
        _overrides(node.get("freeDimensionDenotationOverrides"), denotations, "denotation"),
        names,
        denotations,
    )


def _loaded(place: Path, source: Node) -> Any:
    try:
        from dmlemu.onnx.loading import ModelError, load_model
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "onnx":
            raise
        what = f"({source.shown()}) cannot be read: ONNX models need the package onnx"
        hint = "the extra 'onnx' of dmlemu brings it"
        source.fail(MODEL_UNSUPPORTED, what, "no package onnx", "the package onnx", hint)
    try:
        return load_model(place)
    except ModelError as error:
        raise model_error(MODEL_ONNX, source.path, str(error), given=source.shown()) from None


def _sparse(graph: Any) -> list[Any]:
    return [each.values for each in graph.sparse_initializer]


def _tensor(value: Any) -> OnnxTensor:
    """That of an ``onnx.ValueInfoProto``."""
    import onnx

    kind = value.type.WhichOneof("value") or "undefined_type"
    if kind != "tensor_type":
        return OnnxTensor(value.name, kind)
    return OnnxTensor(value.name, onnx.TensorProto.DataType.Name(value.type.tensor_type.elem_type))


def _overrides(node: Node | None, names: frozenset[str], what: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, value in () if node is None else node.members():
        if name not in names:
            expected = ", ".join(map(quoted, sorted(names)[:12])) or f"no {what} is named"
            value.fail(MODEL_NAME, f"names no {what} of the ONNX model", quoted(name), expected)
        if not value.uint32():
            value.fail(MODEL_VALUE, "(0) is not a size", 0, ">= 1")
        found[name] = value.uint32()
    return found


def _check_options(node: Node) -> None:
    """The levels change nothing here; entries for ONNX Runtime might have changed what runs."""
    for name, allowed in _LEVELS.items():
        level = node.get(name)
        if level is not None and level.uint32() not in allowed:
            level.fail(
                MODEL_VALUE, f"({level.shown()}) is not a level", level.shown(), _shown_levels(allowed)
            )
    entries = node.get("sessionOptionsConfigEntries")
    for name, entry in () if entries is None else entries.members():
        entry.string()
        what = "is an option of ONNX Runtime, which does not run the model here"
        entry.fail(MODEL_UNSUPPORTED, what, shorten(name), "no entries")


def _shown_levels(allowed: tuple[int, ...]) -> str:
    return ", ".join(map(str, allowed))
