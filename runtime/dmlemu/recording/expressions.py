"""Values as Python: descs of operators and of Direct3D 12, arrays."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import Field, fields
from enum import Enum, Flag
from typing import Any

import numpy as np

from .. import dml
from ..dml.declared.schema import FieldKind, OperatorDesc, operator_fields
from ..dml.tensor_desc import BufferTensorDesc
from ..errors import Error
from .model import Array
from .program import Bytes

__all__ = ["WIDTH", "array_text", "call_text", "dtype_of", "expression", "listed", "quoted"]

WIDTH = 100


def dtype_of(kind: dml.TensorDataType) -> np.dtype[Any]:
    return np.dtype(kind.name.lower())


def quoted(text: str) -> str:
    """A string literal, with double quotes where Python and JSON agree."""
    return json.dumps(text) if text.isascii() and text.isprintable() else repr(text)


def listed(items: Sequence[str | None]) -> str:
    return f"[{', '.join(str(each) for each in items)}]"


def call_text(function: str, arguments: Sequence[str]) -> str:
    """A call; long ones with a line for each argument."""
    flat = f"{function}({', '.join(arguments)})"
    lines = "".join(f"    {each}".replace("\n", "\n    ") + ",\n" for each in arguments)
    return flat if len(flat) < WIDTH else f"{function}(\n{lines})"


def array_text(kind: dml.TensorDataType, data: Bytes) -> str:
    """An expression for the elements; NaNs and infinities by their bytes."""
    array: Array = data.view(dtype_of(kind))
    if not data.any():
        return f"np.zeros({array.size}, np.{array.dtype.name})"
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        unsigned = f"uint{8 * array.itemsize}"
        return f"np.array({array.view(unsigned).tolist()}, np.{unsigned}).view(np.{array.dtype.name})"
    return f"np.array({array.tolist()}, np.{array.dtype.name})"


def expression(value: Any, indent: int = 0) -> str:
    """A desc, or a value of one, as Python; long calls with a line for each argument."""
    if isinstance(value, Flag):
        kind = _class(value)
        names = [f"{kind}.{each.name}" for each in type(value) if each and each & value]
        return " | ".join(names) or f"{kind}(0)"
    if isinstance(value, Enum):
        return f"{_class(value)}.{value.name}"
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(expression(each, indent) for each in value)}]"
    if isinstance(value, BufferTensorDesc):
        return _tensor(value)
    if not hasattr(value, "__dataclass_fields__"):
        return repr(value)
    kept = [each for each in fields(value) if isinstance(value, OperatorDesc) or not _is_default(value, each)]
    arguments = {each.name: expression(getattr(value, each.name)) for each in kept}
    if isinstance(value, OperatorDesc):
        arguments.update(_scalars(value))
    name = _class(value)
    flat = f"{name}({', '.join(f'{key}={text}' for key, text in arguments.items())})"
    if not isinstance(value, OperatorDesc) or len(flat) + indent < WIDTH:
        return flat
    lines = [f"    {key}={text},\n".replace("\n    ", "\n        ") for key, text in arguments.items()]
    return f"{name}(\n{''.join(lines)})"


def _is_default(value: Any, field: Field[Any]) -> bool:
    given = getattr(value, field.name)
    return type(given) is type(field.default) and given == field.default


def _class(value: Any) -> str:
    """``dml.GemmOperatorDesc``, ``d3d12.RootParameter1``."""
    return f"{type(value).__module__.split('.')[1]}.{type(value).__name__}"


def _scalars(desc: OperatorDesc) -> dict[str, str]:
    """The DML_SCALAR_UNIONs of a desc as numbers, where that gives the same bytes."""
    found = {}
    for field in operator_fields(type(desc)):
        if field.kind is not FieldKind.SCALAR_UNION:
            continue
        value, source = getattr(desc, field.name), getattr(desc, field.type_from)
        kind = source.data_type if isinstance(source, BufferTensorDesc) else dml.TensorDataType(source)
        with suppress(Error):
            number = value.value(kind)
            if np.isfinite(number) and dml.ScalarUnion.of(kind, number) == value:
                found[field.name] = f"dml.ScalarUnion.of({expression(kind)}, {number})"
    return found


def _tensor(desc: BufferTensorDesc) -> str:
    """Only what is not implied."""
    arguments = [expression(desc.data_type), str(list(desc.sizes))]
    if desc.strides is not None:
        arguments.append(str(list(desc.strides)))
    plain = BufferTensorDesc(desc.data_type, desc.sizes, desc.strides)
    if desc.size_in_bytes != plain.size_in_bytes:
        arguments.append(f"total_tensor_size_in_bytes={desc.size_in_bytes}")
    if desc.guaranteed_base_offset_alignment:
        arguments.append(f"guaranteed_base_offset_alignment={desc.guaranteed_base_offset_alignment}")
    if desc.flags:
        arguments.append(f"flags={expression(desc.flags)}")
    return f"dml.BufferTensorDesc({', '.join(arguments)})"
