"""Operator descs as the JSON of DxDispatch models: the reverse of :mod:`.operator_desc`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import Enum, IntFlag
from typing import Any

import numpy as np

from dmlemu.dml.declared.schema import ARRAYS, Field, FieldKind, OperatorDesc, operator_fields
from dmlemu.dml.enums import TensorDataType, TensorFlags
from dmlemu.dml.structs import ScalarUnion, ScaleBias, Size2D
from dmlemu.dml.tensor_desc import BufferTensorDesc

from .initial_values import dtype_of
from .node import Node, enum_prefix
from .operator_desc import read_operator_desc

__all__ = ["write_operator_desc", "write_tensor_desc"]


def write_operator_desc(desc: OperatorDesc) -> dict[str, Any]:
    """``{Type, Desc}``, which :func:`read_operator_desc` reads.  ValueError: the format cannot hold it."""
    written = _operator(desc)
    if _operator(read_operator_desc(Node(written))) != written:
        raise ValueError(f"DxDispatch JSON cannot hold this DML_OPERATOR_{desc.TYPE.name}")
    return written


def write_tensor_desc(desc: BufferTensorDesc) -> dict[str, Any]:
    """The members of ``DML_BUFFER_TENSOR_DESC``, without those that are absent or 0."""
    written: dict[str, Any] = {
        "DataType": _enum(desc.data_type),
        "DimensionCount": desc.rank,
        "Sizes": list(desc.sizes),
    }
    if desc.strides is not None:
        written["Strides"] = list(desc.strides)
    written["TotalTensorSizeInBytes"] = desc.size_in_bytes
    if desc.guaranteed_base_offset_alignment:
        written["GuaranteedBaseOffsetAlignment"] = desc.guaranteed_base_offset_alignment
    if desc.flags:
        prefix = enum_prefix(TensorFlags)
        written["Flags"] = [f"{prefix}{flag.name}" for flag in TensorFlags if flag & desc.flags]
    return written


def _operator(desc: OperatorDesc) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for field in operator_fields(type(desc)):
        value = getattr(desc, field.name)
        if field.count and field.count not in fields:
            fields[field.count] = 0 if value is None else len(value)
        if value is None:
            continue
        if field.array or field.kind in ARRAYS:
            fields[field.c_name] = [_value(each, field, desc) for each in value]
        else:
            fields[field.c_name] = _value(value, field, desc)
    return {"Type": f"DML_OPERATOR_{desc.TYPE.name}", "Desc": fields}


def _value(value: Any, field: Field, desc: OperatorDesc) -> Any:
    if field.kind is FieldKind.SCALAR_UNION:
        source = getattr(desc, field.type_from)
        data_type = source.data_type if isinstance(source, BufferTensorDesc) else TensorDataType(source)
        return _scalar(value, data_type)
    return _WRITERS[field.kind](value)


def _enum(value: Enum) -> str:
    assert not isinstance(value, IntFlag)
    return f"{enum_prefix(type(value))}{value.name}"


def _float(value: float) -> float | str:
    """The FLOAT of the C struct; what JSON has no number for is a word."""
    with np.errstate(over="ignore"):
        return _number(float(np.float32(value)))


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "nan"
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"


def _scalar(value: ScalarUnion, data_type: TensorDataType) -> Mapping[str, Any]:
    try:
        dtype = dtype_of(data_type)
    except KeyError:
        raise ValueError(f"DML_SCALAR_UNION has no member for {data_type.name}") from None
    read = np.uint16 if dtype == np.float16 else dtype
    number = np.frombuffer(value.bytes, read, 1)[0].item()
    member = np.dtype(read).name.title().replace("Uint", "UInt")
    return {member: _number(number) if isinstance(number, float) else number}


def _same(value: Any) -> Any:
    return value


def _scale_bias(value: ScaleBias) -> dict[str, Any]:
    return {"Scale": _float(value.scale), "Bias": _float(value.bias)}


def _size_2d(value: Size2D) -> dict[str, int]:
    return {"Width": value.width, "Height": value.height}


_WRITERS: dict[FieldKind, Callable[[Any], Any]] = {
    FieldKind.INPUT_TENSOR: write_tensor_desc,
    FieldKind.OUTPUT_TENSOR: write_tensor_desc,
    FieldKind.UINT: _same,
    FieldKind.UINT_ARRAY: _same,
    FieldKind.INT: _same,
    FieldKind.INT_ARRAY: _same,
    FieldKind.FLOAT: _float,
    FieldKind.FLOAT_ARRAY: _float,
    FieldKind.BOOL: bool,
    FieldKind.ENUM: _enum,
    FieldKind.SCALE_BIAS: _scale_bias,
    FieldKind.SIZE_2D: _size_2d,
    FieldKind.OPERATOR_DESC: _operator,
}
