"""Descs of C programs: operator, graph, tensor and binding descs read from memory by their declarations.

Interface pointers in them become objects through the function given to :class:`DescReader`.  What a desc says
is checked by the call that takes it; this module refuses only what cannot be read: unknown types, NULL where
a count says there is something, counts above the limits, descs nested deeper than DirectML nests them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

from ..d3d12.core.c_memory import MEMORY, MOST_ELEMENTS, read, read_array, read_blob, read_text
from ..diagnostics.declaration import Declaration
from ..diagnostics.rule import error_of
from ..errors import Error
from .binding.binding_table import BindingTableDesc
from .declared import declared
from .declared.schema import Field, FieldKind, OperatorDesc, operator_fields
from .enums import BindingType, GraphEdgeType, GraphNodeType, OperatorType, TensorDataType, TensorType
from .lowering.graph_structs import (
    ConstantDataGraphNodeDesc,
    GraphDesc,
    InputGraphEdgeDesc,
    IntermediateGraphEdgeDesc,
    OperatorGraphNodeDesc,
    OutputGraphEdgeDesc,
)
from .rows import OP_FIELD_RANGE, TENSOR_DTYPE, TENSOR_RANK
from .structs import BindingDesc, BufferArrayBinding, BufferBinding, ScalarUnion, ScaleBias, Size2D
from .tensor_desc import TENSOR_DIMENSION_COUNT_MAX1, BufferTensorDesc

__all__ = ["DescReader"]

_TYPED = struct.Struct("@IQ")  # DML_TENSOR_DESC, _OPERATOR_DESC, _BINDING_DESC, _GRAPH_NODE_DESC: Type, Desc
_TENSOR = struct.Struct("@IIIQQQI")
_GRAPH = struct.Struct("@IIIQIQIQIQ")
_BUFFER = struct.Struct("@QQQ")
_BUFFERS = struct.Struct("@IQ")
_TABLE = struct.Struct("@QQQI")
_NODE = struct.Struct("@QQ")
_CONSTANT = struct.Struct("@QQQ")
_MOST_CONSTANT = 1 << 32  # bytes of a constant node: those of the largest tensor
_BINDING_TYPES = frozenset(map(int, BindingType))
_NOTHING, _ONE_BUFFER = BindingType.NONE, BindingType.BUFFER  # found faster than members of the class
_MOST_STRIDES = 4096  # of an array that is no tensor's Sizes; the operator's own rules allow less

_Made = TypeVar("_Made")
_Edge = TypeVar("_Edge", InputGraphEdgeDesc, OutputGraphEdgeDesc, IntermediateGraphEdgeDesc)


class _Member(NamedTuple):
    """A field of an operator's struct: the numbers of its value and of its count (-1: none) in the struct."""

    field: Field
    at: int
    count_at: int


class _Layout(NamedTuple):
    members: tuple[_Member, ...]
    format: struct.Struct


_FORMATS = {
    FieldKind.UINT: "I",
    FieldKind.INT: "i",
    FieldKind.FLOAT: "f",
    FieldKind.BOOL: "I",
    FieldKind.ENUM: "I",
    FieldKind.SCALAR_UNION: "Q",
    FieldKind.SIZE_2D: "II",
}  # all others are pointers
_ELEMENTS = {FieldKind.UINT_ARRAY: "I", FieldKind.INT_ARRAY: "i", FieldKind.FLOAT_ARRAY: "f"}


@cache
def _layout(kind: Any) -> _Layout:
    """How the struct of an operator lies in memory."""
    members, counts, formats = [], dict[str, int](), ""
    for field in operator_fields(kind):
        if field.count and field.count not in counts:
            counts[field.count] = len(formats)
            formats += "I"
        members.append(_Member(field, len(formats), counts.get(field.count, -1)))
        formats += _FORMATS.get(field.kind, "Q")
    return _Layout(tuple(members), struct.Struct(f"@{formats}"))


class DescReader:
    """Reads the descs that a method was given by address.

    ``objects`` maps an interface pointer to its object, None for NULL; it may raise.  All methods raise
    :class:`dmlemu.Error` (E_INVALIDARG), with the path of the field, for what cannot be read.
    """

    def __init__(self, operation: str, objects: Callable[[int], Any]) -> None:
        self.operation = operation
        self._objects = objects

    # --- operators ---

    def operator(self, address: int) -> OperatorDesc:
        """The desc that a ``DML_OPERATOR_DESC`` holds."""
        if not address:
            raise self._refused("Desc", None, "an operator desc")
        return self._operator(address, "", 0)

    def _operator(self, address: int, path: str, depth: int) -> OperatorDesc:
        number, desc = _TYPED.unpack_from(MEMORY, address)
        known = number in list(OperatorType) and number != OperatorType.INVALID
        if not known:
            raise self._refused(f"{path}Type", number, "a DML_OPERATOR_TYPE")
        kind = declared()[OperatorType(number)]
        if not desc:
            raise self._refused(f"{path}Desc", None, f"a DML_{kind.TYPE.name}_OPERATOR_DESC")
        layout = _layout(kind)  # type: ignore[arg-type]  # mypy does not know that classes are hashable
        row = layout.format.unpack_from(MEMORY, desc)
        values = {}
        for member in layout.members:
            count = row[member.count_at] if member.count_at >= 0 else 0
            values[member.field.name] = self._value(member, row, count, path, depth)
        return kind(**values)

    def _value(self, member: _Member, row: tuple[Any, ...], count: int, path: str, depth: int) -> Any:
        field, value = member.field, row[member.at]
        path += field.c_name
        match field.kind:
            case FieldKind.INPUT_TENSOR | FieldKind.OUTPUT_TENSOR:
                return self._each(field, value, count, path, self.tensor)
            case FieldKind.OPERATOR_DESC:
                if value and depth:
                    raise self._refused(path, "a nested operator desc", "NULL in an activation")
                nested = partial(self._nested, depth=depth + 1)
                return self._each(field, value, count, path, nested)
            case FieldKind.UINT_ARRAY | FieldKind.INT_ARRAY | FieldKind.FLOAT_ARRAY:
                if not value and field.optional:
                    return None
                return self._array(_ELEMENTS[field.kind], value, count, path, _MOST_STRIDES)
            case FieldKind.BOOL:
                return bool(value) if value in (0, 1) else value
            case FieldKind.SCALAR_UNION:
                return ScalarUnion(value.to_bytes(8, "little"))
            case FieldKind.SIZE_2D:
                return Size2D(value, row[member.at + 1])
            case FieldKind.SCALE_BIAS:
                return read(ScaleBias, value)
        return value

    def _nested(self, address: int, path: str, depth: int) -> OperatorDesc:
        return self._operator(address, f"{path}.", depth)

    def _each(
        self, field: Field, address: int, count: int, path: str, make: Callable[[int, str], _Made]
    ) -> _Made | tuple[_Made, ...] | None:
        """One tensor or operator desc, or an array of them; None for NULL, which the operator may allow."""
        if not field.array:
            return make(address, path) if address else None
        if not address and field.optional:
            return None
        rows = self._array("IQ", address, count, path, MOST_ELEMENTS)
        return tuple(make(address + i * _TYPED.size, f"{path}[{i}]") for i in range(len(rows)))

    def tensor(self, address: int, path: str) -> BufferTensorDesc:
        """The desc that a ``DML_TENSOR_DESC`` holds."""
        number, desc = _TYPED.unpack_from(MEMORY, address)
        if number != TensorType.BUFFER:
            raise self._refused(f"{path}.Type", number, "DML_TENSOR_TYPE_BUFFER")
        if not desc:
            raise self._refused(f"{path}.Desc", None, "a DML_BUFFER_TENSOR_DESC")
        data_type, flags, rank, sizes, strides, total, alignment = _TENSOR.unpack_from(MEMORY, desc)
        if data_type not in list(TensorDataType):
            raise self._refused(f"{path}.DataType", data_type, "a DML_TENSOR_DATA_TYPE", TENSOR_DTYPE)
        most = TENSOR_DIMENSION_COUNT_MAX1
        if rank > most:
            raise self._refused(f"{path}.DimensionCount", rank, f"1 to {most}", TENSOR_RANK)
        return BufferTensorDesc(
            data_type,
            self._array("I", sizes, rank, f"{path}.Sizes", most),
            self._array("I", strides, rank, f"{path}.Strides", most) if strides else None,
            total,
            alignment,
            flags,
        )

    # --- graphs ---

    def graph(self, address: int) -> GraphDesc:
        """A ``DML_GRAPH_DESC``."""
        if not address:
            raise self._refused("Desc", None, "a graph desc")
        row = _GRAPH.unpack_from(MEMORY, address)
        inputs, outputs, count, nodes, *edges = row
        return GraphDesc(
            inputs,
            outputs,
            [self._node(pair, f"Nodes[{i}]") for i, pair in self._typed(nodes, count, "Nodes")],
            self._edges(GraphEdgeType.INPUT, InputGraphEdgeDesc, edges[1], edges[0], "InputEdges"),
            self._edges(GraphEdgeType.OUTPUT, OutputGraphEdgeDesc, edges[3], edges[2], "OutputEdges"),
            self._edges(
                GraphEdgeType.INTERMEDIATE,
                IntermediateGraphEdgeDesc,
                edges[5],
                edges[4],
                "IntermediateEdges",
            ),
        )

    def _node(self, typed: tuple[int, int], path: str) -> OperatorGraphNodeDesc | ConstantDataGraphNodeDesc:
        number, desc = typed
        if number not in (GraphNodeType.OPERATOR, GraphNodeType.CONSTANT):
            raise self._refused(f"{path}.Type", number, "OPERATOR or CONSTANT")
        if not desc:
            raise self._refused(f"{path}.Desc", None, "the desc of a node")
        if number == GraphNodeType.OPERATOR:
            pointer, name = _NODE.unpack_from(MEMORY, desc)
            return OperatorGraphNodeDesc(self._objects(pointer), read_text(name))
        data, size, name = _CONSTANT.unpack_from(MEMORY, desc)
        values = read_blob(
            data, size, f"{path}.Data", self.operation, most=_MOST_CONSTANT, check=OP_FIELD_RANGE
        )
        return ConstantDataGraphNodeDesc(values, read_text(name))

    def _edges(
        self, edge: GraphEdgeType, kind: type[_Edge], address: int, count: int, path: str
    ) -> list[_Edge]:
        layout = struct.Struct("@" + "I" * (len(fields(kind)) - 1) + "Q")
        make: Callable[..., _Edge] = kind
        edges = []
        for i, (number, desc) in self._typed(address, count, path):
            if number != edge:
                raise self._refused(f"{path}[{i}].Type", number, edge.name)
            if not desc:
                raise self._refused(f"{path}[{i}].Desc", None, "the desc of an edge")
            *indices, name = layout.unpack_from(MEMORY, desc)
            edges.append(make(*indices, read_text(name)))
        return edges

    # --- bindings ---

    def binding(self, address: int) -> BindingDesc | None:
        """A ``DML_BINDING_DESC``; None for NULL."""
        return self._binding(*_TYPED.unpack_from(MEMORY, address)) if address else None

    def bindings(self, address: int, count: int) -> list[BindingDesc]:
        """An array of ``DML_BINDING_DESC``."""
        if not address or count > MOST_ELEMENTS:
            self._array("IQ", address, count, "Bindings", MOST_ELEMENTS)  # refuses, if there is a count
        size = _TYPED.size
        rows = [_TYPED.unpack_from(MEMORY, each) for each in range(address, address + count * size, size)]
        return [self._binding(number, desc, i) for i, (number, desc) in enumerate(rows)]

    def _binding(self, number: int, desc: int, index: int | None = None) -> BindingDesc:
        """``index``: in the array; None: the method has only one."""
        if number == _ONE_BUFFER and desc:
            pointer, offset, size = _BUFFER.unpack_from(MEMORY, desc)
            return BindingDesc(_ONE_BUFFER, BufferBinding(self._objects(pointer), offset, size))
        if number == _NOTHING:
            return BindingDesc.none()
        path = "Binding" if index is None else f"Bindings[{index}]"
        if number not in _BINDING_TYPES:
            raise self._refused(f"{path}.Type", number, "NONE, BUFFER or BUFFER_ARRAY")
        if not desc:
            raise self._refused(f"{path}.Desc", None, f"the desc of a {BindingType(number).name} binding")
        count, address = _BUFFERS.unpack_from(MEMORY, desc)
        rows = self._array("QQQ", address, count, f"{path}.Bindings", MOST_ELEMENTS)
        return BindingDesc(BindingType.BUFFER_ARRAY, BufferArrayBinding([self._buffer(*row) for row in rows]))

    def _buffer(self, pointer: int, offset: int, size: int) -> BufferBinding:
        return BufferBinding(self._objects(pointer), offset, size)

    def binding_table(self, address: int) -> BindingTableDesc | None:
        """A ``DML_BINDING_TABLE_DESC``; None for NULL."""
        if not address:
            return None
        pointer, cpu, gpu, size = _TABLE.unpack_from(MEMORY, address)
        return BindingTableDesc(self._objects(pointer), cpu, gpu, size)

    # --- parts ---

    def _typed(self, address: int, count: int, path: str) -> Iterator[tuple[int, tuple[int, int]]]:
        return enumerate(self._array("IQ", address, count, path, MOST_ELEMENTS))

    def _array(self, kind: str, address: int, count: int, path: str, most: int) -> list[Any]:
        return read_array(kind, address, count, path, self.operation, most=most, check=OP_FIELD_RANGE)

    def _refused(self, field: str, given: object, expected: str, id: Declaration = OP_FIELD_RANGE) -> Error:
        return error_of(
            id,
            "{field} ({given}) is not {expected}.",
            operation=self.operation,
            field=field,
            given=given,
            expected=expected,
            rule=f"IDMLDevice::{self.operation}",
            api="DML",
        )
