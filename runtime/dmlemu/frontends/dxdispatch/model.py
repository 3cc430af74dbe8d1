"""A DxDispatch model: resources, dispatchables and commands, read from JSON and checked.

The format is that of https://github.com/microsoft/DirectML/blob/master/DxDispatch/doc/Guide.md.
Members that the guide does not name are ignored, as DxDispatch ignores them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from dmlemu.dml.enums import ExecutionFlags, TensorDataType
from dmlemu.errors import shorten
from dmlemu.frontends.rows import MODEL_NAME, MODEL_UNSUPPORTED, MODEL_VALUE

from ...frozen import Frozen
from .errors import ModelError, add_context, model_error, quoted
from .files import EVERYWHERE, File, Folders, exists
from .hlsl_file import Shader, read_shader
from .initial_values import InitialValues, dtype_of, read_initial_values
from .json_text import read_json
from .node import Node
from .onnx_file import OnnxFile, read_onnx
from .operator_desc import desc_node, read_operator_desc
from .serialized_graph import SerializedGraph, read_graph

__all__ = [
    "AnyDispatchable",
    "BindPoint",
    "BindingSource",
    "Bindings",
    "Command",
    "DispatchCommand",
    "Dispatchable",
    "GraphDispatchable",
    "HlslDispatchable",
    "Model",
    "OnnxDispatchable",
    "PrintCommand",
    "ResourceDesc",
    "WriteFileCommand",
    "read_model",
]


class ResourceDesc(Frozen):
    """One buffer; ``initial`` None means "deferred": an ONNX dispatchable allocates it.

    Then ``shape`` is that of the output.
    """

    name: str
    path: str
    initial: InitialValues | None
    size_in_bytes: int
    unpadded_size: int
    shape: tuple[int, ...] | None = None

    @property
    def data_type(self) -> TensorDataType:
        return self.initial.data_type if self.initial else TensorDataType.UNKNOWN

    @property
    def element_count(self) -> int:
        """Elements of the buffer, without the padding up to 4 bytes."""
        return self.unpadded_size // dtype_of(self.data_type).itemsize


class BindingSource(Frozen):
    """A resource named in a binding: ``offset`` in bytes; ``shape``: of an ONNX tensor, () for none.

    For views of shaders: ``first`` and ``count`` in elements (0: all that follow), ``format``: a
    DXGI_FORMAT by name, ``counter``: a resource, at ``counter_offset``.
    """

    resource: str
    path: str
    offset: int
    shape: tuple[int, ...] = ()
    first: int = 0
    count: int = 0
    format: str = ""
    counter: str = ""
    counter_offset: int = 0


Bindings: TypeAlias = Mapping[str, tuple[BindingSource, ...]]


class BindPoint(Frozen):
    """A tensor field of an operator, to which ``count`` buffers are bound; ``present``: it is in the desc."""

    name: str
    count: int
    output: bool
    present: bool = True


class Dispatchable(Frozen):
    """A DirectML operator and the buffers that initialise its OWNED_BY_DML tensors.

    ``graph``: it is compiled as the only node of a graph.
    """

    name: str
    path: str
    node: Node  # the fields of the desc, for messages
    desc: OperatorDesc
    execution_flags: ExecutionFlags
    bindings: Bindings
    graph: bool = False

    @property
    def bind_points(self) -> list[BindPoint]:
        """In the order of the API: inputs, then outputs, each in the order of the struct."""
        points = []
        for field in operator_fields(type(self.desc)):
            if field.is_tensor:
                value = getattr(self.desc, field.name)
                count = len(value) if field.array else 1
                output = field.kind is FieldKind.OUTPUT_TENSOR
                points.append(BindPoint(field.c_name, count, output, value is not None))
        return sorted(points, key=lambda point: point.output)


class GraphDispatchable(Frozen):
    """A serialized graph, and the files of its named constants, in their order."""

    name: str
    path: str
    graph: SerializedGraph
    files: tuple[File, ...]
    execution_flags: ExecutionFlags

    @property
    def bind_points(self) -> list[BindPoint]:
        """Inputs, then the constants, to which nothing is bound at dispatch, then outputs."""
        graph = self.graph
        inputs = [BindPoint(name, 1, False) for name in graph.input_names]
        constants = [BindPoint(name, 1, False, False) for name in graph.constants]
        return inputs + constants + [BindPoint(name, 1, True) for name in graph.output_names]


class OnnxDispatchable(Frozen):
    """An ONNX model; what is not bound is made by rule, or not looked at."""

    name: str
    path: str
    file: OnnxFile

    @property
    def bind_points(self) -> list[BindPoint]:
        """Inputs, then outputs."""
        inputs = [BindPoint(each.name, 1, False) for each in self.file.inputs]
        return inputs + [BindPoint(each.name, 1, True) for each in self.file.outputs]


class HlslDispatchable(Frozen):
    """A compute shader; its bind points are the resources of the source, by name."""

    name: str
    path: str
    shader: Shader

    @property
    def bind_points(self) -> list[BindPoint]:
        return [BindPoint(each.name, 1, each.register_class == "u") for each in self.shader.ranges]


AnyDispatchable: TypeAlias = Dispatchable | GraphDispatchable | OnnxDispatchable | HlslDispatchable


class DispatchCommand(Frozen):
    """``groups``: of threads, for a shader."""

    dispatchable: str
    bindings: Bindings
    path: str
    text: str
    groups: tuple[int, int, int] = (1, 1, 1)


class PrintCommand(Frozen):
    resource: str
    verbose: bool
    path: str
    text: str


class WriteFileCommand(Frozen):
    resource: str
    target: str
    dimensions: tuple[int, ...]
    path: str
    text: str


Command: TypeAlias = DispatchCommand | PrintCommand | WriteFileCommand


class Model(Frozen):
    """``folder``: the folder of the file."""

    folder: Path
    resources: Mapping[str, ResourceDesc]
    dispatchables: Mapping[str, AnyDispatchable]
    commands: tuple[Command, ...]


def read_model(
    path: Path,
    input_path: Path | None = None,
    output_path: Path | None = None,
    *,
    allow_paths: bool = False,
) -> Model:
    """Reads and checks ``path``; files named in it are next to it, or under ``input_path``.

    They must be in the model's folder, the current one or the given ones, links resolved,
    unless ``allow_paths``.

    Raises :class:`ModelError` for the first mistake.  Only the model and the
    headers of ``.npy`` files are read, and nothing is allocated.
    """
    if not exists(path) and input_path is not None:
        path = input_path / path
    base = path.parent if input_path is None else input_path
    folders = Folders.of(path.parent, Path(), input_path, output_path)
    try:
        return _read_model(path, base, EVERYWHERE if allow_paths else folders)
    except ModelError as error:
        raise ModelError(replace(error.report, operation=str(path))) from None


def _read_model(path: Path, base: Path, folders: Folders) -> Model:
    if path.suffix.lower() == ".onnx":
        message = f"{path} is an ONNX model, not a JSON model that names one."
        raise model_error(MODEL_UNSUPPORTED, "$", message, given=".onnx", expected="a JSON model")
    root = Node(read_json(path))
    root.as_object()
    resources = {name: _resource(name, node, base, folders) for name, node in root["resources"].members()}
    dispatchables = {
        name: _dispatchable(name, node, resources, base, folders)
        for name, node in root["dispatchables"].members()
    }
    commands = [_command(node, resources, dispatchables) for node in root["commands"].elements()]
    return Model(path.parent, resources, dispatchables, tuple(commands))


# --- resources ---

_OF_RESOURCES = ("initialValues", "initialValuesDataType", "initialValuesOffsetInBytes", "sizeInBytes")
_OF_BINDINGS = (
    *("name", "elementCount", "elementOffset", "elementSizeInBytes", "counter", "counterOffsetBytes"),
    *("format", "shape"),
)


def _resource(name: str, node: Node, base: Path, folders: Folders) -> ResourceDesc:
    node.refuse_misspelt(_OF_RESOURCES)
    if node["initialValues"].value == "deferred":
        return ResourceDesc(name, node.path, None, 0, 0)
    initial = read_initial_values(node, base, folders)
    size_node, offset_node = node.get("sizeInBytes"), node.get("initialValuesOffsetInBytes")
    # Only a computed size is rounded up to the 4 bytes that DirectML counts in.
    size = (initial.size + 3) // 4 * 4 if size_node is None else size_node.uint64()
    offset = 0 if offset_node is None else offset_node.uint64()
    if initial.size + offset > size:
        place = size_node or node
        what = f"({size}) is less than the initial values need ({initial.size + offset} bytes)"
        place.fail(MODEL_VALUE, what, size, f">= {initial.size + offset}")
    return ResourceDesc(name, node.path, initial, size, initial.size if size_node is None else size)


# --- dispatchables ---


def _dispatchable(
    name: str, node: Node, resources: Mapping[str, ResourceDesc], base: Path, folders: Folders
) -> AnyDispatchable:
    type_node = node["type"]
    kind = type_node.string()
    if kind.lower() == "dmlserializedgraph":
        return _graph_dispatchable(name, node, base, folders)
    if kind.lower() == "onnx":
        return OnnxDispatchable(name, node.path, read_onnx(node, base, folders))
    if kind.lower() == "hlsl":
        return HlslDispatchable(name, node.path, read_shader(node, base, folders))
    desc = read_operator_desc(node)
    node.refuse_misspelt(("type", "desc", "Desc", "bindings", "executionFlags", "dmlCompileType"))
    bindings = node.get("bindings")
    result = Dispatchable(
        name,
        node.path,
        desc_node(node),
        desc,
        _execution_flags(node),
        {} if bindings is None else _bindings(bindings, resources),
        _is_graph(node.get("dmlCompileType")),
    )
    if bindings is not None:
        _check_names(bindings, result, [point for point in result.bind_points if not point.output])
    return result


def _graph_dispatchable(name: str, node: Node, base: Path, folders: Folders) -> GraphDispatchable:
    """The graph of a file, with the files of its constants beside it."""
    source = node["sourcePath"]
    file = folders.source(source.string(), base, source.path)
    try:
        graph = read_graph(file.read_whole())
        files = [_constant_file(file, constant, folders) for constant in graph.constants]
    except ModelError as error:
        raise ModelError(add_context(error.report, f"In {shorten(str(file.path))} ({source.path})")) from None
    return GraphDispatchable(name, node.path, graph, tuple(files), _execution_flags(node))


def _constant_file(graph: File, name: str, folders: Folders) -> File:
    """The file of a named constant, beside the graph's; it is opened to see that it is there."""
    file = folders.file(graph.path.parent / f"{name}.bin", f"constant {quoted(name)}")
    file.size()
    return file


def _execution_flags(node: Node) -> ExecutionFlags:
    flags = node.get("executionFlags")
    return ExecutionFlags.NONE if flags is None else flags.flags(ExecutionFlags)


def _is_graph(node: Node | None) -> bool:
    if node is None or node.string() == "DmlCompileOp":
        return False
    if node.string() == "DmlCompileGraph":
        return True
    node.fail(
        MODEL_VALUE,
        f"({node.shown()}) is not a compile type",
        node.shown(),
        "DmlCompileOp or DmlCompileGraph",
    )


# --- bindings ---


def _bindings(node: Node, resources: Mapping[str, ResourceDesc]) -> Bindings:
    return {
        name: tuple(
            _binding(source, resources)
            for source in (value.elements() if isinstance(value.value, list) else [value])
        )
        for name, value in node.members()
    }


def _binding(node: Node, resources: Mapping[str, ResourceDesc]) -> BindingSource:
    if isinstance(node.value, dict):
        node.refuse_misspelt(_OF_BINDINGS)
        resource = _named(node["name"], resources)
        offset, shape = _offset(node, resource, resources), _shape(node)
        return BindingSource(resource.name, node.path, offset, shape, *_view(node))
    if not isinstance(node.value, str):
        node.refuse("the name of a resource, or an object with that name")
    return BindingSource(_named(node, resources).name, node.path, 0)


def _view(node: Node) -> tuple[int, int, str, str, int]:
    """What describes a view of a shader; ``_read_unused`` has checked the types."""
    numbers = [node.get(name) for name in ("elementOffset", "elementCount", "counterOffsetBytes")]
    first, count, counter_offset = (0 if each is None else each.uint64() for each in numbers)
    texts = [node.get(name) for name in ("format", "counter")]
    format, counter = ("" if each is None else each.string() for each in texts)
    return first, count, format, counter, counter_offset


def _shape(node: Node) -> tuple[int, ...]:
    """The shape that an ONNX tensor is given; other dispatchables do not look at it."""
    shape = node.get("shape")
    return () if shape is None else tuple(size.integer(-(2**63), 2**63 - 1) for size in shape.elements())


def _offset(node: Node, resource: ResourceDesc, resources: Mapping[str, ResourceDesc]) -> int:
    """elementOffset in bytes."""
    _read_unused(node, resources)
    offset_node, size_node = node.get("elementOffset"), node.get("elementSizeInBytes")
    element_size = 0 if size_node is None else size_node.uint64()
    if offset_node is None or not offset_node.uint64():
        return 0
    if not element_size and resource.data_type is not TensorDataType.UNKNOWN:
        element_size = dtype_of(resource.data_type).itemsize
    offset = offset_node.uint64() * element_size
    if offset >= resource.size_in_bytes:
        size = resource.size_in_bytes
        what = f"({offset_node.value}) is byte {offset} of {quoted(resource.name)}, which has {size}"
        offset_node.fail(MODEL_VALUE, what, offset_node.value, "an element inside the resource")
    return offset


def _read_unused(node: Node, resources: Mapping[str, ResourceDesc]) -> None:
    """Checks members that describe shader views: DirectML ignores them, but their types must be right."""
    for name in ("elementCount", "counterOffsetBytes"):
        if (member := node.get(name)) is not None:
            member.uint64()
    if (view_format := node.get("format")) is not None:
        view_format.string()
    if (counter := node.get("counter")) is not None:
        _named(counter, resources)


def _named(node: Node, resources: Mapping[str, ResourceDesc]) -> ResourceDesc:
    name = node.string()
    if name not in resources:
        what = f"({quoted(name)}) names no resource of the model"
        node.fail(MODEL_NAME, what, quoted(name), _list(resources, "resources"))
    return resources[name]


def _check_names(node: Node, dispatchable: AnyDispatchable, points: Iterable[BindPoint]) -> None:
    """Checks that every name is a bind point and has the number of buffers it takes."""
    counts = {point.name: point.count for point in points}
    for name, value in node.members():
        if name not in counts:
            what = f"names no bind point of {quoted(dispatchable.name)}"
            value.fail(MODEL_NAME, what, quoted(name), _list(counts, "bind points"))
        given = len(value.value) if isinstance(value.value, list) else 1
        if given != counts[name]:
            what = f"binds {given} resources to {name}, which takes {counts[name]}"
            value.fail(MODEL_VALUE, what, given, counts[name])


def _check_onnx_bindings(node: Node, dispatchable: OnnxDispatchable) -> None:
    """What DxDispatch refuses of bindings to the tensors of ONNX models."""
    tensors = {each.name: each for each in (*dispatchable.file.inputs, *dispatchable.file.outputs)}
    for name, value in node.members():
        source = value.elements()[0] if isinstance(value.value, list) else value
        tensor = tensors[name]
        if tensor.data_type is None:
            what = f"binds {quoted(name)}, whose type {tensor.type} no resource can hold"
            source.fail(MODEL_UNSUPPORTED, what, tensor.type, "no binding")
        if not isinstance(source.value, dict):
            continue
        for member in ("counter", "elementOffset"):
            place = source.get(member)
            if place is not None and place.value != 0:
                place.fail(MODEL_UNSUPPORTED, "is not possible for a tensor of an ONNX model", place.shown())
        shape = source.get("shape")
        for size in [] if shape is None else shape.elements():
            size.uint32()


def _list(names: Iterable[str], what: str) -> str:
    shown = [quoted(name) for name in names]
    return ", ".join(shown[:12]) + (", ..." if len(shown) > 12 else "") or f"no {what} are defined"


# --- commands ---


def _command(
    node: Node,
    resources: Mapping[str, ResourceDesc],
    dispatchables: Mapping[str, AnyDispatchable],
) -> Command:
    type_node = node["type"]
    kind, text = type_node.string().lower(), json.dumps(node.value, ensure_ascii=False, separators=(",", ":"))
    if kind == "dispatch":
        return _dispatch(node, resources, dispatchables, text)
    if kind == "print":
        verbose = node.get("verbose")
        resource = _named(node["resource"], resources)
        return PrintCommand(resource.name, verbose is not None and verbose.boolean(), node.path, text)
    if kind == "writefile":
        return _write_file(node, resources, text)
    type_node.fail(
        MODEL_VALUE,
        f"({type_node.shown()}) is not a command",
        type_node.shown(),
        "dispatch, print or writeFile",
    )


def _dispatch(
    node: Node,
    resources: Mapping[str, ResourceDesc],
    dispatchables: Mapping[str, AnyDispatchable],
    text: str,
) -> DispatchCommand:
    name = node["dispatchable"].string()
    if name not in dispatchables:
        what = f"({quoted(name)}) names no dispatchable of the model"
        expected = _list(dispatchables, "dispatchables")
        node["dispatchable"].fail(MODEL_NAME, what, quoted(name), expected)
    groups = node.get("threadGroupCount")
    counts = [1, 1, 1] if groups is None else groups.uint32_array()
    if groups is not None and len(counts) != 3:
        groups.fail(MODEL_VALUE, f"({groups.shown()}) is not three numbers", groups.shown(), "[x, y, z]")
    bindings = _bindings(node["bindings"], resources)
    dispatchable = dispatchables[name]
    _check_names(node["bindings"], dispatchable, dispatchable.bind_points)
    if isinstance(dispatchable, OnnxDispatchable):
        _check_onnx_bindings(node["bindings"], dispatchable)
    x, y, z = counts
    return DispatchCommand(name, bindings, node.path, text, (x, y, z))


def _write_file(node: Node, resources: Mapping[str, ResourceDesc], text: str) -> WriteFileCommand:
    resource = _named(node["resource"], resources)
    target = node["targetPath"]
    suffix = Path(target.string()).suffix.lower()
    if suffix in (".jpg", ".png"):
        what = f"({quoted(target.string())}) is an image, and images are not supported"
        target.fail(MODEL_UNSUPPORTED, what, suffix, ".npy, or any other name for raw bytes")
    if not Path(target.string()).name:
        target.fail(MODEL_VALUE, f"({target.shown()}) names no file", target.shown(), "a file name")
    dimensions = node.get("dimensions")
    sizes = () if dimensions is None else tuple(dimensions.uint32_array())
    return WriteFileCommand(resource.name, target.string(), sizes, node.path, text)
