"""Serialized DirectML graphs: the FlatBuffers files that ONNX Runtime's DirectML provider writes.

The root table is ``dml.ir.DmlGraphDesc``: nodes in topological order, whose inputs and outputs are named; an
edge joins an output and the inputs of the same name, or a graph input or output.  A constant is stored in the
file, or is named: it then lies in ``<name>.bin`` beside it and becomes an OWNED_BY_DML input of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from dmlemu import dml
from dmlemu.diagnostics.declaration import Declaration
from dmlemu.dml.declared import find_operator
from dmlemu.dml.declared.schema import Field, FieldKind, OperatorDesc, operator_fields
from dmlemu.dml.enums import TensorDataType
from dmlemu.errors import Error, quote
from dmlemu.frontends.rows import MODEL_MISSING, MODEL_NAME, MODEL_TYPE, MODEL_VALUE

from ...frozen import Frozen
from .errors import ModelError, add_context, model_error, quoted
from .flatbuffer import Table, root_table

__all__ = ["ConstantNode", "OperatorNode", "SerializedGraph", "read_graph"]

Port = tuple[int, int]  # a node, and one of its inputs or outputs


class OperatorNode(Frozen):
    """A node that runs an operator; ``path`` is its place in the file."""

    name: str
    path: str
    desc: OperatorDesc


class ConstantNode(Frozen, eq=False):
    """A node whose output is ``data``."""

    name: str
    path: str
    data: bytes


class SerializedGraph(Frozen, eq=False):
    """A graph without its named constants' bytes.

    ``constants``: the names of these, each once; they are graph inputs behind ``input_names``.
    ``inputs`` maps a node's input to the number of a graph input, ``sources`` to another node's output, and
    ``outputs`` the number of a graph output to a node's output.
    """

    input_names: tuple[str, ...]
    output_names: tuple[str, ...]
    constants: tuple[str, ...]
    nodes: tuple[OperatorNode | ConstantNode, ...]
    inputs: Mapping[Port, int]
    sources: Mapping[Port, Port]
    outputs: Mapping[int, Port]

    def create(self, device: dml.Device) -> dml.GraphDesc:
        """The desc for CompileGraph, its operators created on ``device``.

        Raises :class:`ModelError` at the node whose operator is refused.
        """
        return dml.GraphDesc(
            len(self.input_names) + len(self.constants),
            len(self.output_names),
            [_create(device, node) for node in self.nodes],
            [dml.InputGraphEdgeDesc(number, *to) for to, number in self.inputs.items()],
            [dml.OutputGraphEdgeDesc(*start, number) for number, start in self.outputs.items()],
            [dml.IntermediateGraphEdgeDesc(*start, *to) for to, start in self.sources.items()],
        )


def read_graph(data: bytes) -> SerializedGraph:
    """The graph in a file's bytes; ModelError for a damaged file, or a name or desc that is wrong."""
    return _Reader(root_table(data)).graph()


def _create(
    device: dml.Device, node: OperatorNode | ConstantNode
) -> dml.OperatorGraphNodeDesc | dml.ConstantDataGraphNodeDesc:
    if isinstance(node, ConstantNode):
        return dml.ConstantDataGraphNodeDesc(node.data, node.name)
    try:
        return dml.OperatorGraphNodeDesc(device.create_operator(node.desc), node.name)
    except Error as error:
        raise _located(error, node.path, f"While creating the operator of node {quoted(node.name)}") from None


def _located(error: Error, path: str, *context: str) -> ModelError:
    """An error of the API about the part of the graph at ``path``."""
    report = add_context(error.report, *context)
    field = f"{path}.{report.field}" if report.field else path
    return ModelError(replace(report, field=field))


class _Reader:
    """Reads the nodes in order; an input's name must belong to a graph input or to a node before."""

    def __init__(self, root: Table) -> None:
        self._root = root
        self._input_names = root.strings(1, "graphInputNames")
        self._output_names = root.strings(2, "graphOutputNames")
        self._graph_inputs = _numbered(self._input_names, "graphInputNames")
        self._graph_outputs = _numbered(self._output_names, "graphOutputNames")
        self._producers: dict[str, Port] = {}
        self._constants: dict[str, int] = {}  # output names of named constants: their graph inputs
        self._files: dict[str, int] = {}  # of named constants: their graph inputs
        self._nodes: list[OperatorNode | ConstantNode] = []
        self._inputs: dict[Port, int] = {}
        self._sources: dict[Port, Port] = {}
        self._outputs: dict[int, Port] = {}

    def graph(self) -> SerializedGraph:
        for table in self._root.tables(0, "nodes"):
            self._node(table)
        missing = [name for i, name in enumerate(self._output_names) if i not in self._outputs]
        if missing:
            _fail(MODEL_NAME, "graphOutputNames", f"has {quoted(missing[0])}, which no node writes")
        return SerializedGraph(
            tuple(self._input_names),
            tuple(self._output_names),
            tuple(self._files),
            tuple(self._nodes),
            self._inputs,
            self._sources,
            self._outputs,
        )

    def _node(self, table: Table) -> None:
        kind, name = table.scalar(0, "desc_type", "B"), table.string(2, "name")
        outputs = table.strings(4, "outputNames")
        number = len(self._nodes)
        if kind == 2:
            desc = table.table(1, "desc")
            if not self._constant(table, desc, name, outputs):
                return
        elif kind == 1:
            inputs = table.strings(3, "inputNames")
            desc = table.table(1, "desc")
            self._nodes.append(OperatorNode(name, table.path, self._operator(desc, inputs, outputs)))
            for i, source in enumerate(inputs):
                if source:
                    self._join((number, i), source, f"{table.place('inputNames')}[{i}]")
        else:
            _fail(MODEL_VALUE, table.place("desc_type"), f"({kind}) is neither an operator nor a constant")
        for i, target in enumerate(outputs):
            if target:
                self._produce((number, i), target, f"{table.place('outputNames')}[{i}]")

    def _constant(self, table: Table, desc: Table, name: str, outputs: Sequence[str]) -> bool:
        """Adds a constant; whether it is a node of the graph, and not an input."""
        kind = desc.scalar(0, "data_type", "B")
        if kind == 2:
            data = desc.table(1, "data").data(0, "data")
            self._nodes.append(ConstantNode(name, table.path, data))
            return True
        if kind != 1:
            _fail(MODEL_VALUE, desc.place("data_type"), f"({kind}) is neither a name nor data")
        file = desc.table(1, "data").string(0, "name")
        if not file:
            _fail(MODEL_VALUE, desc.place("data.name"), "is empty; it names the constant's file")
        number = self._files.setdefault(file, len(self._input_names) + len(self._files))
        for i, output in enumerate(outputs):
            if output:
                self._unused(output, f"{table.place('outputNames')}[{i}]")
                self._constants[output] = number
        return False

    def _join(self, port: Port, name: str, path: str) -> None:
        graph_input = self._graph_inputs.get(name, self._constants.get(name))
        if graph_input is not None:
            self._inputs[port] = graph_input
        elif name in self._producers:
            self._sources[port] = self._producers[name]
        else:
            _fail(
                MODEL_NAME,
                path,
                f"({quoted(name)}) is neither an input of the graph nor an output of a node before this one",
                quoted(name),
            )

    def _produce(self, port: Port, name: str, path: str) -> None:
        self._unused(name, path)
        self._producers[name] = port
        if name in self._graph_outputs:
            self._outputs[self._graph_outputs[name]] = port

    def _unused(self, name: str, path: str) -> None:
        """Checks that nothing else writes the tensor."""
        if name in self._producers or name in self._constants or name in self._graph_inputs:
            what = f"({quoted(name)}) is already written by another node, or is an input of the graph"
            _fail(MODEL_NAME, path, what, quoted(name), "a name of its own")

    def _operator(self, table: Table, inputs: Sequence[str], outputs: Sequence[str]) -> OperatorDesc:
        cls = _operator_class(table)
        tensors = {
            FieldKind.INPUT_TENSOR: _Tensors(table.tables(1, "inputs"), inputs, self._constants),
            FieldKind.OUTPUT_TENSOR: _Tensors(table.tables(2, "outputs"), outputs, {}),
        }
        attributes = _Attributes(table, 3, cls)
        values: dict[str, Any] = {}
        for field in operator_fields(cls):
            if field.is_tensor:
                side = tensors[field.kind]
                values[field.name] = side.rest() if field.array else side.next(field, table.path)
            else:
                values[field.name] = attributes.value(field)
        for side in tensors.values():
            side.check_all_read(table.path)
        return _built(cls, values, table.path)


class _Tensors:
    """The inputs or the outputs of a node: a name for each field, a desc for each that is present."""

    def __init__(self, tables: Sequence[Table], names: Sequence[str], owned: Mapping[str, int]) -> None:
        self._tables, self._names, self._owned = list(tables), list(names), owned
        self._read = self._named = 0

    def next(self, field: Field, path: str) -> dml.BufferTensorDesc | None:
        """The tensor of one field; None when its name is empty."""
        name = self._names[self._named] if self._named < len(self._names) else ""
        self._named += 1
        if not name:
            return None
        if self._read == len(self._tables):
            _fail(MODEL_MISSING, path, f"has no desc for {field.c_name} ({quoted(name)})")
        return self._tensor(name)

    def rest(self) -> tuple[dml.BufferTensorDesc, ...]:
        """All tensors that are left, for an array field."""
        result = []
        while self._read < len(self._tables):
            name = self._names[self._named] if self._named < len(self._names) else ""
            self._named += 1
            result.append(self._tensor(name))
        return tuple(result)

    def check_all_read(self, path: str) -> None:
        if self._read < len(self._tables):
            table = self._tables[self._read]
            _fail(MODEL_VALUE, table.path, "has no name, or belongs to no field of the operator")

    def _tensor(self, name: str) -> dml.BufferTensorDesc:
        table = self._tables[self._read]
        self._read += 1
        flags = dml.TensorFlags.OWNED_BY_DML if name in self._owned else dml.TensorFlags.NONE
        strides = table.vector(2, "strides", "I")
        try:
            return dml.BufferTensorDesc(
                _data_type(table),
                table.vector(1, "sizes", "I"),
                strides if table.has(2) else None,
                table.scalar(3, "totalTensorSizeInBytes", "Q") or None,  # 0 asks for the computed size
                0,
                flags,
            )
        except Error as error:
            raise _located(error, table.path) from None


class _Attributes:
    """The attributes of an operator or of a fused activation, by name: fields of its struct."""

    def __init__(self, table: Table, number: int, cls: type[OperatorDesc]) -> None:
        self._table = table
        self._by_name: dict[str, Table] = {}
        known = {name for field in operator_fields(cls) for name in (field.c_name, field.count) if name}
        for attribute in table.tables(number, "attributes"):
            name = attribute.string(0, "name")
            if name and name not in known and attribute.scalar(1, "val_type", "B"):  # absent ones have none
                what = f"({quoted(name)}) is not a field of {cls.TYPE.name}"
                _fail(MODEL_NAME, attribute.place("name"), what, quoted(name), quote(sorted(known)))
            if name in self._by_name:
                path = attribute.place("name")
                _fail(
                    MODEL_NAME,
                    path,
                    f"({quoted(name)}) is there twice",
                    quoted(name),
                    "a name of its own",
                )
            self._by_name[name] = attribute

    def value(self, field: Field) -> Any:
        """None for one that is absent; required fields are then refused by CreateOperator."""
        attribute = self._by_name.get(field.c_name)
        if attribute is None or not attribute.scalar(1, "val_type", "B"):
            return None
        value = _READERS[field.kind](attribute, field)
        if not field.count:
            return value
        count = self._count(field.count)
        if count is not None and count > len(value):
            what = f"has fewer elements ({len(value)}) than {field.count} ({count})"
            _fail(MODEL_VALUE, attribute.place("val"), what, len(value), f"{field.count} ({count})")
        return tuple(value)[:count]

    def _count(self, name: str) -> int | None:
        attribute = self._by_name.get(name)
        return None if attribute is None else int(_member(attribute, "UInt32", "I")[0])


# --- values of attributes ---

# The members of the union AttributeFieldVariant, numbered from 1.
_VARIANTS = (
    "",
    "Activation",
    "ActivationArray",
    "UInt32",
    "UInt64",
    "Int32",
    "Float32",
    "UIntArray",
    "IntArray",
    "FloatArray",
    "ScaleBias",
    "Size2D",
    "ScalarUnionData",
    "Bool",
)


def _check_variant(attribute: Table, variant: str) -> None:
    given = attribute.scalar(1, "val_type", "B")
    name = _VARIANTS[given] if given < len(_VARIANTS) else str(given)
    if name != variant:
        path = attribute.place("val_type")
        what = f"({name}) is not {variant}, the type of {quoted(attribute.string(0, 'name'))}"
        _fail(MODEL_TYPE, path, what, name, variant)


def _member(attribute: Table, variant: str, form: str) -> tuple[Any, ...]:
    """The members of a struct in the union."""
    _check_variant(attribute, variant)
    return attribute.members(2, "val", form)


def _array(attribute: Table, variant: str, form: str) -> tuple[Any, ...]:
    _check_variant(attribute, variant)
    return attribute.table(2, "val").vector(0, "data", form)


def _scale_bias(attribute: Table, _: Field) -> dml.ScaleBias:
    return dml.ScaleBias(*_member(attribute, "ScaleBias", "2f"))


def _size_2d(attribute: Table, _: Field) -> dml.Size2D:
    return dml.Size2D(*_member(attribute, "Size2D", "2I"))


def _scalar_union(attribute: Table, _: Field) -> dml.ScalarUnion:
    _check_variant(attribute, "ScalarUnionData")
    scalar = attribute.table(2, "val")
    if scalar.scalar(0, "data_type", "B") != 1:
        _fail(MODEL_TYPE, scalar.place("data_type"), "is not ByteArray, the raw bytes of a scalar")
    return dml.ScalarUnion(scalar.members(1, "data", "8s")[0])


def _activation(attribute: Table, field: Field) -> Any:
    _check_variant(attribute, "ActivationArray" if field.array else "Activation")
    value = attribute.table(2, "val")
    if not field.array:
        return _activation_desc(value)
    return tuple(_activation_desc(table) for table in value.tables(0, "data"))


def _activation_desc(table: Table) -> OperatorDesc:
    """A fused activation: it has no tensors of its own, nor another activation."""
    cls = _operator_class(table)
    attributes = _Attributes(table, 1, cls)
    fields = operator_fields(cls)
    values = {
        field.name: None
        if field.is_tensor or field.kind is FieldKind.OPERATOR_DESC
        else attributes.value(field)
        for field in fields
    }
    return _built(cls, values, table.path)


_READERS: dict[FieldKind, Callable[[Table, Field], Any]] = {
    FieldKind.UINT: lambda attribute, _: _member(attribute, "UInt32", "I")[0],
    FieldKind.ENUM: lambda attribute, _: _member(attribute, "UInt32", "I")[0],
    FieldKind.INT: lambda attribute, _: _member(attribute, "Int32", "i")[0],
    FieldKind.FLOAT: lambda attribute, _: _member(attribute, "Float32", "f")[0],
    FieldKind.BOOL: lambda attribute, _: bool(_member(attribute, "Bool", "B")[0]),
    FieldKind.UINT_ARRAY: lambda attribute, _: _array(attribute, "UIntArray", "I"),
    FieldKind.INT_ARRAY: lambda attribute, _: _array(attribute, "IntArray", "i"),
    FieldKind.FLOAT_ARRAY: lambda attribute, _: _array(attribute, "FloatArray", "f"),
    FieldKind.SCALE_BIAS: _scale_bias,
    FieldKind.SIZE_2D: _size_2d,
    FieldKind.SCALAR_UNION: _scalar_union,
    FieldKind.OPERATOR_DESC: _activation,
}


# --- names ---


def _operator_class(table: Table) -> type[OperatorDesc]:
    name = table.string(0, "type")
    try:
        return find_operator(name)
    except ValueError:
        what = f"({quoted(name)}) is not a DML_OPERATOR_TYPE"
        _fail(MODEL_VALUE, table.place("type"), what, quoted(name), "an operator's name")


def _data_type(table: Table) -> TensorDataType:
    name = table.string(0, "dataType")
    known = TensorDataType.__members__.get(name.removeprefix("DML_TENSOR_DATA_TYPE_"))
    if known is None:
        what = f"({quoted(name)}) is not a DML_TENSOR_DATA_TYPE"
        _fail(MODEL_VALUE, table.place("dataType"), what, quoted(name), quote([*TensorDataType.__members__]))
    return known


def _built(cls: type[OperatorDesc], values: Mapping[str, Any], path: str) -> OperatorDesc:
    """The desc; fields that are None keep their default."""
    try:
        return cls(**{name: value for name, value in values.items() if value is not None})
    except Error as error:
        raise _located(error, path) from None
    except TypeError as error:  # a required field is absent
        _fail(MODEL_MISSING, path, f"lacks fields of {cls.TYPE.name}: {error}")


def _numbered(names: Sequence[str], path: str) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for i, name in enumerate(names):
        if not name or name in numbers:
            what = f"({quoted(name)}) is empty or there twice"
            _fail(MODEL_NAME, f"{path}[{i}]", what, quoted(name), "a name of its own")
        numbers[name] = i
    return numbers


def _fail(id: Declaration, path: str, what: str, given: object = "", expected: object = "") -> NoReturn:
    """``what`` is a clause that follows the place in the file."""
    raise model_error(id, path, f"{path} of the serialized graph {what}.", given=given, expected=expected)
