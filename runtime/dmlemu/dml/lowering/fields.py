"""The tensors of an operator desc, in the order of their bindings."""

from __future__ import annotations

from ..declared.schema import FieldKind, OperatorDesc, tensor_items
from .compile import TensorField

__all__ = ["tensor_fields"]


def tensor_fields(desc: OperatorDesc) -> tuple[TensorField, ...]:
    """The tensors of an operator desc, inputs before outputs; each has a binding of its own."""
    inputs: list[TensorField] = []
    outputs: list[TensorField] = []
    for item in tensor_items(type(desc)):
        is_output = item.kind is FieldKind.OUTPUT_TENSOR
        fields = outputs if is_output else inputs
        value = getattr(desc, item.name)
        if not item.array:
            fields.append(TensorField(item.c_name, item.name, None, value, is_output))
            continue
        for i, tensor in enumerate(value if isinstance(value, tuple) else ()):
            fields.append(TensorField(f"{item.c_name}[{i}]", item.name, i, tensor, is_output))
    return (*inputs, *outputs)
