"""Reading and checking of ONNX models."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from ..errors import shorten
from .calls import MICROSOFT
from .nodes import subgraphs
from .tensors import MOST_BYTES, Array, dense_array

__all__ = ["Loaded", "ModelError", "load", "load_model", "names_of", "sentence"]


class ModelError(ValueError):
    """The model, or what it is given, is not what it should be; the text says where."""


class Loaded(NamedTuple):
    """A checked model, and its initialisers as arrays.

    The large ones are not in ``model`` where it was read here: their bytes would be in memory twice.
    """

    model: onnx.ModelProto
    known: dict[str, Array]


def load_model(model: onnx.ModelProto | bytes | str | os.PathLike[str]) -> onnx.ModelProto:
    """A checked model, with its external data.

    External data is read from files in the model's folder alone.  Raises :class:`ModelError` for a file that
    cannot be read, that is not a model, or that breaks ONNX's rules; for operator sets newer than those of
    the installed onnx package.
    """
    loaded, name = _opened(model)
    _check(loaded, name)
    return loaded


def load(model: onnx.ModelProto | bytes | str | os.PathLike[str]) -> Loaded:
    """As :func:`load_model`, with the initialisers as arrays.

    ModelError, too: the elements of one are not those of its shape.
    """
    loaded, name = _opened(model)
    constants = {} if loaded is model else _take_constants(loaded)
    light = _check(loaded, name, constants)
    return Loaded(loaded if loaded is model else light, _known_values(loaded.graph, constants))


def _opened(model: Any) -> tuple[onnx.ModelProto, str]:
    """The model as it is, and how errors call it."""
    if isinstance(model, onnx.ModelProto):
        return _without_alias(model), "the model"
    if isinstance(model, bytes):
        return _without_alias(_parsed(model, "the model")), "the model"
    if not isinstance(model, str | os.PathLike):
        raise TypeError(f"model must be a file, bytes or a ModelProto, not {type(model).__name__}.")
    return _without_alias(_read(Path(model))), str(model)


_ALIAS = "ai.onnx"


def _without_alias(model: onnx.ModelProto) -> onnx.ModelProto:
    """Without the other name of ONNX's domain "", which the onnx package does not take for the same."""
    if not any(each.domain == _ALIAS for each in _with_domains(model)):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    for each in _with_domains(made):
        if each.domain == _ALIAS:
            each.domain = ""
    return made


def _with_domains(model: onnx.ModelProto) -> Iterator[Any]:
    """Nodes, and operator sets that are imported, those of functions included."""
    yield from model.opset_import
    yield from _all_nodes(model.graph.node)
    for function in model.functions:
        yield from function.opset_import
        yield from _all_nodes(function.node)


Tensors = Mapping[str, onnx.TensorProto]


def _check(loaded: onnx.ModelProto, name: str, constants: Tensors | None = None) -> onnx.ModelProto:
    """Checks a model; returns it without its large initialisers.

    ``constants``: what was taken out of it, and is as initialisers are.
    """
    if not _is_text(loaded):
        raise ModelError(f"{name} is not an ONNX model: it has names that are not UTF-8.")
    _check_opsets(loaded, name)
    weights = _weights(loaded)
    light = _without(weights, loaded) if weights else loaded
    try:
        onnx.checker.check_model(_checkable(light, {**weights, **(constants or {})}))
        _check_types(light.graph)
    except (onnx.checker.ValidationError, ValueError) as error:
        raise ModelError(f"{name} is not a valid ONNX model: {sentence(error)}") from None
    return light


_MANY, _DIMENSIONS = 1 << 10, 32  # elements; what NumPy allows
_FIELD = onnx.ModelProto.DESCRIPTOR.fields[0]
_MESSAGE, _STRING = _FIELD.TYPE_MESSAGE, _FIELD.TYPE_STRING
_NUMBERS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")


def _weights(model: onnx.ModelProto) -> Tensors:
    """The large initialisers of raw bytes, of which there is nothing to check but the number of bytes."""
    initialisers = model.graph.initializer
    if len({each.name for each in initialisers}) < len(initialisers):
        return {}  # the checker says so
    given = {each.name for each in model.graph.input}
    return {
        each.name: each
        for each in initialisers
        if each.name and (model.ir_version >= 4 or each.name in given) and _is_large(each)
    }


def _take_constants(model: onnx.ModelProto) -> Tensors:
    """Takes large tensors of Constant nodes, as which some tools write all weights, out of a model."""
    nodes = model.graph.node
    names = {each.name for each in (*model.graph.initializer, *model.graph.input)}
    found = [
        (number, each)
        for number, each in enumerate(nodes)
        if each.op_type == "Constant"
        and not each.domain
        and not each.input
        and len(each.output) == 1
        and each.output[0] not in names
        and [(one.name, one.type) for one in each.attribute] == [("value", onnx.AttributeProto.TENSOR)]
        and _is_large(each.attribute[0].t)
    ]
    taken = {each.output[0]: each.attribute[0].t for _, each in found}
    if model.ir_version < 4 or len(taken) < len(found):
        return {}
    for number, _ in reversed(found):
        del nodes[number]
    return taken


def _is_large(tensor: onnx.TensorProto) -> bool:
    """Whether it is many elements as raw bytes, and nothing else.

    By what its shape says: to measure a message, protocol buffers encode it.
    """
    return (
        len(tensor.dims) <= _DIMENSIONS
        and math.prod(tensor.dims) > _MANY
        and tensor.data_type in _KNOWN_TYPES
        and all(size >= 0 for size in tensor.dims)
        and tensor.HasField("raw_data")
        and not tensor.HasField("segment")
        and not tensor.external_data
        and not any(len(getattr(tensor, name)) for name in _NUMBERS)
    )


_KNOWN_TYPES = set(onnx.TensorProto.DataType.values()) - {
    onnx.TensorProto.UNDEFINED,
    onnx.TensorProto.STRING,
}


def _without(weights: Tensors, model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of a model without some of its initialisers."""
    light = onnx.ModelProto()
    for field, value in model.ListFields():
        if field.name != "graph":
            _set(light, field.name, value)
    for field, value in model.graph.ListFields():
        if field.name == "initializer":
            value = [each for each in value if each.name not in weights]
        _set(light.graph, field.name, value)
    return light


def _set(message: Any, name: str, value: Any) -> None:
    """Copies a field of another message of its kind."""
    target = getattr(message, name)
    if hasattr(target, "extend"):
        target.extend(value)
    elif hasattr(target, "CopyFrom"):
        target.CopyFrom(value)
    else:
        setattr(message, name, value)


def _read(path: Path) -> onnx.ModelProto:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from None
    loaded = _parsed(data, str(path))
    try:
        external = [each for each in _tensors(loaded) if onnx.external_data_helper.uses_external_data(each)]
        _check_lengths(external, path.parent)
        if external:
            onnx.external_data_helper.load_external_data_for_model(loaded, str(path.parent))
    except (OSError, ValueError, KeyError, onnx.checker.ValidationError) as error:
        raise ModelError(f"External data of {path} cannot be read: {sentence(error)}") from None
    return loaded


def _check_lengths(tensors: Iterable[onnx.TensorProto], folder: Path) -> None:
    """ValueError: external data is longer than its tensor; it would be read all the same."""
    for tensor in tensors:
        info = onnx.external_data_helper.ExternalDataInfo(tensor)
        location = Path(info.location)
        if location.is_absolute() or ".." in location.parts or not (folder / location).is_file():
            continue  # the onnx package refuses it
        given = (folder / location).stat().st_size - (info.offset or 0)
        given = min(given, info.length) if info.length else given
        needed = math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
        name = shorten(tensor.name)
        if given > needed:
            raise ValueError(f"{name!r} has {given} bytes, and its shape {list(tensor.dims)} needs {needed}")
        if given > MOST_BYTES:
            raise ValueError(f"{name!r} has {given} bytes, more than the {MOST_BYTES} of the largest tensor")


def _tensors(message: Any) -> Iterator[onnx.TensorProto]:
    """All within a message of protocol buffers."""
    open_ = [message]
    while open_:
        message = open_.pop()
        if isinstance(message, onnx.TensorProto):
            yield message
            continue
        for field, value in message.ListFields():
            if field.type == _MESSAGE:
                open_ += value if hasattr(value, "extend") else [value]


def _parsed(data: bytes, name: str) -> onnx.ModelProto:
    loaded = onnx.ModelProto()
    try:
        loaded.ParseFromString(data)
    except Exception as error:  # the exception's type differs between implementations of protobuf
        raise ModelError(f"{name} is not an ONNX model: {sentence(error)}") from None
    if not loaded.graph.node and not loaded.graph.output:
        raise ModelError(f"{name} is not an ONNX model: it has no graph.")
    return loaded


def _check_types(graph: onnx.GraphProto) -> None:
    """ValueError: an input or output has an element type that ONNX does not have."""
    known = onnx.TensorProto.DataType.values()
    for each in (*graph.input, *graph.output):
        given = each.type.tensor_type.elem_type
        if given not in known:
            raise ValueError(f"{each.name!r} has the element type {given}, which ONNX does not have")


def _known_values(graph: onnx.GraphProto, constants: Tensors) -> dict[str, Array]:
    """The initialisers by name, and the constants that are as they are; sparse ones as arrays.

    ModelError: the elements of one are not those of its shape.
    """
    known: dict[str, Array] = {}
    name = ""
    try:
        for name, each in (*((each.name, each) for each in graph.initializer), *constants.items()):
            known[name] = onnx.numpy_helper.to_array(each)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            known[name] = dense_array(sparse)
    except (ValueError, TypeError, IndexError) as error:
        raise ModelError(f"The initialiser {name!r} cannot be read: {sentence(error)}") from error
    return known


def _check_opsets(model: onnx.ModelProto, name: str) -> None:
    newest = onnx.defs.onnx_opset_version()
    for each in model.opset_import:
        if not each.domain and each.version > newest:
            raise ModelError(
                f"{name} uses operator set {each.version}; onnx {onnx.__version__} knows those up to "
                f"{newest}. Install a newer onnx package."
            )


_UNKNOWN_BEFORE = {"LayerNormalization": 17, "SimplifiedLayerNormalization": 1 << 30}
"""Operators that ONNX Runtime writes without its domain, and the operator sets that have them."""


def _checkable(model: onnx.ModelProto, weights: Tensors) -> onnx.ModelProto:
    """A copy for the checker, which demands more than ONNX Runtime and we do.

    ``weights``, which it lacks, are inputs; outputs have types and shapes; operators that ONNX Runtime writes
    without its domain have it.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    inputs = {each.name for each in model.graph.input}
    for name, each in weights.items():
        if name not in inputs:
            made.graph.input.append(onnx.helper.make_tensor_value_info(name, each.data_type, each.dims))
    for output in made.graph.output:
        if output.type.WhichOneof("value") in (None, "tensor_type"):
            tensor = output.type.tensor_type
            tensor.elem_type = tensor.elem_type or onnx.TensorProto.FLOAT
            tensor.shape.SetInParent()
    versions = [each.version for each in made.opset_import if not each.domain]
    for node in _all_nodes(made.graph.node):
        known_from = _UNKNOWN_BEFORE.get(node.op_type, 0)
        if not node.domain and any(version < known_from for version in versions):
            node.domain = MICROSOFT
            if all(each.domain != MICROSOFT for each in made.opset_import):
                made.opset_import.append(onnx.helper.make_opsetid(MICROSOFT, 1))
    return made


def _all_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Those of branches and loops, too."""
    for node in nodes:
        yield node
        for inner in subgraphs(node):
            yield from _all_nodes(inner.node)


def _is_text(message: Any) -> bool:
    """Whether all names are: protocol buffers give those that are not UTF-8 as bytes."""
    open_ = [message]
    while open_:
        message = open_.pop()
        if isinstance(message, onnx.TensorProto):  # its elements may be very many
            if type(message.name) is not str:
                return False
            continue
        for field, value in message.ListFields():
            if field.type == _MESSAGE:
                open_ += value if hasattr(value, "extend") else [value]
            elif (
                field.type == _STRING
                and type(value) is not str
                and (type(value) is bytes or bytes in map(type, value))
            ):
                return False
    return True


def sentence(error: BaseException) -> str:
    """The first line of an exception's text."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = shorten(lines[0], 500) if lines else type(error).__name__
    return text if text.endswith(".") else f"{text}."


def names_of(values: Iterable[Any]) -> str:
    return ", ".join(repr(each.name) for each in values) or "none"
