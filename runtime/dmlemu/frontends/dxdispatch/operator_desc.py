"""Operator descs from JSON, generically: the operators' declarations define the fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from dmlemu.diagnostics.rows import OP_NOT_EMULATED
from dmlemu.dml.declared import find_operator
from dmlemu.dml.declared.definition import definition_class
from dmlemu.dml.declared.schema import Field, FieldKind, OperatorDesc, camel, operator_fields
from dmlemu.dml.enums import OperatorType, TensorDataType, TensorFlags, TensorType
from dmlemu.dml.structs import ScalarUnion, ScaleBias, Size2D
from dmlemu.dml.tensor_desc import BufferTensorDesc
from dmlemu.errors import Error
from dmlemu.frontends.rows import MODEL_VALUE

from .errors import ModelError, add_context, quoted
from .initial_values import dtype_of
from .node import Node

__all__ = ["located", "read_operator_desc", "read_tensor_desc"]

_OF_DISPATCHABLES = ("Type", "type", "Desc", "desc", "bindings", "executionFlags", "dmlCompileType")
_OF_TENSORS = (
    *("Type", "Desc", "DataType", "Flags", "DimensionCount", "Sizes", "Strides", "TotalTensorSizeInBytes"),
    "GuaranteedBaseOffsetAlignment",
)
_ARRAYS = (FieldKind.UINT_ARRAY, FieldKind.INT_ARRAY, FieldKind.FLOAT_ARRAY)


def read_operator_desc(node: Node, *, fused: bool = False) -> OperatorDesc:
    """The desc of ``{Type, Desc: {...}}`` or ``{Type, ...}``; ``type`` and ``desc`` are accepted too.

    A fused activation (``fused``) has no tensors of its own.
    """
    type_node = node.get("Type") or node.get("type")
    if type_node is None:
        raise node.missing("Type")
    cls = _operator(type_node)
    fields = desc_node(node)
    known = [each.c_name for each in operator_fields(cls)]
    counts = [each.count for each in operator_fields(cls) if each.count]
    fields.refuse_misspelt([*known, *counts, *_OF_DISPATCHABLES])
    values: dict[str, Any] = {}
    for field in operator_fields(cls):
        values[field.name] = _read_field(fields, field, cls, fused)
    try:
        return cls(**values)
    except Error as error:
        raise located(error, fields) from None


def desc_node(node: Node) -> Node:
    """The node with the fields: ``Desc`` or ``desc`` if there is one, else ``node`` itself."""
    return node.get("Desc") or node.get("desc") or node


def located(error: Error, desc: Node, *context: str) -> ModelError:
    """An error of the API about ``desc``, with its field as a path of the model."""
    report = add_context(error.report, *context)
    path = _locate(desc, report.field) if report.field else desc.path
    return ModelError(dataclasses.replace(report, field=path))


def _locate(node: Node, c_path: str) -> str:
    """Resolves ``OutputTensor.Sizes[2]`` from ``node``, through any ``Desc`` in between."""
    head, _, rest = c_path.partition(".")
    name = head.partition("[")[0]
    if isinstance(node.value, dict) and name not in node.value:
        inner = desc_node(node)
        if inner is not node:
            return _locate(inner, c_path)
    path = f"{node.path}.{head}"
    member = node.value.get(name) if isinstance(node.value, dict) else None
    return _locate(Node(member, path), rest) if rest else path


def _operator(node: Node) -> type[OperatorDesc]:
    name = node.string()
    shown = quoted(name)
    try:
        cls = find_operator(name)
    except ValueError:
        from ...suggestions import nearest, question

        near = nearest(name.removeprefix("DML_OPERATOR_"), OperatorType.__members__)
        hint = question([f"DML_OPERATOR_{each}" for each in near])
        node.fail(MODEL_VALUE, f"({shown}) is not a DML_OPERATOR_TYPE", shown, "an operator's name", hint)
    if definition_class(cls.TYPE) is None:
        what = f"({shown}) is an operator that is not emulated"
        node.fail(OP_NOT_EMULATED, what, shown, "an emulated operator", hint="'dmlemu explain' lists them")
    return cls


# --- fields ---


def _read_field(desc: Node, field: Field, cls: type[OperatorDesc], fused: bool) -> Any:
    if fused and field.is_tensor:
        return None
    count = desc[field.count].uint32() if field.count else None
    node = desc.get(field.c_name)
    if node is None:
        if _may_be_absent(field, cls):
            return None
        raise desc.missing(field.c_name)
    if field.array or field.kind in _ARRAYS:
        return tuple(_read_value(item, field, desc) for item in _counted(node, field.count, count))
    return _read_value(node, field, desc)


def _may_be_absent(field: Field, cls: type[OperatorDesc]) -> bool:
    """Only pointers that may be null in C; dmlemu's own defaults are not part of the format."""
    if field.optional:
        return True
    default = next(item.default for item in dataclasses.fields(cls) if item.name == field.name)
    return field.kind in _ARRAYS and default is None


def _counted(node: Node, name: str, count: int | None) -> list[Node]:
    """The first ``count`` elements: C reads no others."""
    elements = node.elements()
    if count is not None and count > len(elements):
        what = f"has fewer elements ({len(elements)}) than {name} ({count})"
        node.fail(MODEL_VALUE, what, len(elements), f"{name} ({count})")
    return elements[:count]


def _read_value(node: Node, field: Field, desc: Node) -> Any:
    if field.kind is FieldKind.ENUM:
        assert field.enum is not None  # enumeration() demands it
        return node.enum(field.enum)
    if field.kind is FieldKind.SCALAR_UNION:
        return _scalar_union(node, _scalar_type(desc, field))
    return _READERS[field.kind](node)


def read_tensor_desc(node: Node) -> BufferTensorDesc:
    """The tensor of ``{DataType, Sizes, ...}``, or of the same in ``Desc`` beside a ``Type``."""
    type_node = node.get("Type")
    if type_node is not None and type_node.enum(TensorType) is not TensorType.BUFFER:
        type_node.fail(
            MODEL_VALUE,
            f"({type_node.shown()}) is not an existing type of tensor",
            type_node.shown(),
            "BUFFER",
        )
    node = node.get("Desc") or node
    node.refuse_misspelt(_OF_TENSORS)
    sizes, strides = node["Sizes"].elements(), node.get("Strides")
    count_node = node.get("DimensionCount")
    count = len(sizes) if count_node is None else count_node.uint32()
    total = _optional_integer(node, "TotalTensorSizeInBytes", Node.uint64)
    flags = node.get("Flags")
    try:
        return BufferTensorDesc(
            node["DataType"].enum(TensorDataType),
            [size.uint32() for size in _counted(node["Sizes"], "DimensionCount", count)],
            _strides(strides, count),
            total or None,  # 0 asks for the computed size
            _optional_integer(node, "GuaranteedBaseOffsetAlignment", Node.uint32) or 0,
            TensorFlags.NONE if flags is None else flags.flags(TensorFlags),
        )
    except Error as error:
        raise located(error, node) from None


def _strides(node: Node | None, count: int) -> list[int] | None:
    """Absent and empty both mean packed."""
    if node is None or not node.as_array():
        return None
    return [stride.uint32() for stride in _counted(node, "DimensionCount", count)]


def _optional_integer(node: Node, name: str, read: Callable[[Node], int]) -> int | None:
    member = node.get(name)
    return None if member is None else read(member)


def _float32(node: Node) -> float:
    """Rounded as the FLOAT of the C struct rounds it."""
    with np.errstate(over="ignore"):
        return float(np.float32(node.number()))


def _scale_bias(node: Node) -> ScaleBias:
    return ScaleBias(_float32(node["Scale"]), _float32(node["Bias"]))


def _size_2d(node: Node) -> Size2D:
    return Size2D(node["Width"].uint32(), node["Height"].uint32())


def _scalar_type(desc: Node, field: Field) -> Node:
    """The node that holds the data type: a field of its own, or a tensor's DataType."""
    node = desc[camel(field.type_from)]
    return (node.get("Desc") or node)["DataType"] if isinstance(node.value, dict) else node


def _scalar_union(node: Node, type_node: Node) -> ScalarUnion:
    """A number, or an object with the union's member: ``{"Float32": 1.5}``."""
    data_type = type_node.enum(TensorDataType)
    try:
        dtype = dtype_of(data_type)
    except KeyError:
        type_node.fail(MODEL_VALUE, f"({data_type.name}) is not a type of DML_SCALAR_UNION", data_type.name)
    if isinstance(node.value, dict):
        name = dtype.name.title().replace("Uint", "UInt")
        if dtype == np.float16:  # the union has no Float16: its bits are given
            bits = node["UInt16"].integer(0, 0xFFFF)
            return ScalarUnion(bits.to_bytes(2, "little").ljust(8, b"\0"))
        node = node[name]
    elif type(node.value) not in (int, float):
        node.refuse("a number, or an object with a member of DML_SCALAR_UNION")
    if dtype.kind == "f":
        value: float = node.number()
        with np.errstate(over="ignore"):
            raw = np.array(value).astype(np.float32 if dtype.itemsize < 8 else dtype).astype(dtype).tobytes()
        return ScalarUnion(raw.ljust(8, b"\0"))
    limits = np.iinfo(dtype)
    return ScalarUnion.of(data_type, node.integer(int(limits.min), int(limits.max)))


def _activation(node: Node) -> OperatorDesc:
    return read_operator_desc(node, fused=True)


_READERS: dict[FieldKind, Callable[[Node], Any]] = {
    FieldKind.INPUT_TENSOR: read_tensor_desc,
    FieldKind.OUTPUT_TENSOR: read_tensor_desc,
    FieldKind.UINT: Node.uint32,
    FieldKind.UINT_ARRAY: Node.uint32,
    FieldKind.INT: lambda node: node.integer(-(2**31), 2**31 - 1),
    FieldKind.INT_ARRAY: lambda node: node.integer(-(2**31), 2**31 - 1),
    FieldKind.FLOAT: _float32,
    FieldKind.FLOAT_ARRAY: _float32,
    FieldKind.BOOL: Node.boolean,
    FieldKind.SCALE_BIAS: _scale_bias,
    FieldKind.SIZE_2D: _size_2d,
    FieldKind.OPERATOR_DESC: _activation,
}
