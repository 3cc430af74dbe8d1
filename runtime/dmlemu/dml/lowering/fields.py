"""The tensors of an operator desc, in the order of their bindings."""

from __future__ import annotations

from collections.abc import Iterator

from ..declared.schema import FieldKind, OperatorDesc, operator_fields
from .compile import TensorField

__all__ = ["tensor_fields"]


def tensor_fields(desc: OperatorDesc) -> tuple[TensorField, ...]:
    """The tensors of an operator desc, inputs before outputs; each has a binding of its own."""
    fields = list(_tensor_fields(desc))
    return tuple([f for f in fields if not f.output] + [f for f in fields if f.output])


def _tensor_fields(desc: OperatorDesc) -> Iterator[TensorField]:
    for item in operator_fields(type(desc)):
        if not item.is_tensor:
            continue
        output = item.kind is FieldKind.OUTPUT_TENSOR
        value = getattr(desc, item.name)
        if not item.array:
            yield TensorField(item.c_name, item.name, None, value, output)
            continue
        for i, tensor in enumerate(value if isinstance(value, tuple) else ()):
            yield TensorField(f"{item.c_name}[{i}]", item.name, i, tensor, output)
