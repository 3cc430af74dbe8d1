"""An operator's example with numbers, for its page: the definition's example desc on simple values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from .operators.definition import definition_class, definition_of, example_of
from .operators.schema import FieldKind, OperatorDesc, operator_fields
from .tensor_desc import BufferTensorDesc

__all__ = ["example_lines"]

_MOST_ELEMENTS = 72
"""Longer tensors are not printed: the example is left out."""


def example_lines(cls: type[OperatorDesc]) -> list[str]:
    """Fields, inputs and outputs of the example; empty if there is none that fits a page."""
    if definition_class(cls.TYPE) is None:
        return []
    desc = example_of(cls)
    tensors = [item.name for item in operator_fields(cls) if _is_input(desc, item)]
    inputs = {name: _simple(getattr(desc, name), 7 * place) for place, name in enumerate(tensors)}
    outputs = definition_of(desc).reference(inputs)
    if any(array.size > _MOST_ELEMENTS for array in _arrays({**inputs, **outputs})):
        return []
    return [*_attributes(desc), *_tensors(desc, inputs), *_tensors(desc, outputs)]


def _is_input(desc: OperatorDesc, item: Any) -> bool:
    return item.kind is FieldKind.INPUT_TENSOR and getattr(desc, item.name) is not None


def _arrays(by_field: Mapping[str, Any]) -> Iterator[np.ndarray[Any, Any]]:
    for value in by_field.values():
        yield from value if isinstance(value, list) else [value]


def _simple(tensor: Any, start: int) -> Any:
    """Small numbers of both signs where the type has them; unsigned ones may be indices of anything."""
    if not isinstance(tensor, BufferTensorDesc):
        return [_simple(each, start + place) for place, each in enumerate(tensor)]
    count = start + np.arange(int(np.prod(tensor.sizes)))
    values = count * 5 % 3 if tensor.dtype.kind == "u" else count * 5 % 17 - 8
    return (values / (2 if tensor.dtype.kind == "f" else 1)).astype(tensor.dtype).reshape(tensor.sizes)


def _attributes(desc: OperatorDesc) -> Iterator[str]:
    for item in operator_fields(type(desc)):
        value = getattr(desc, item.name)
        if not item.is_tensor and value is not None:
            yield f"{item.c_name} = {_shown(value)}"


def _shown(value: Any) -> str:
    if isinstance(value, tuple | list):
        return "{" + ", ".join(map(_shown, value)) + "}"
    return str(getattr(value, "name", value))


def _tensors(desc: OperatorDesc, arrays: Mapping[str, Any]) -> Iterator[str]:
    c_names = {item.name: item.c_name for item in operator_fields(type(desc))}
    for name, value in arrays.items():
        for place, array in enumerate(value if isinstance(value, list) else [value]):
            which = f"[{place}]" if isinstance(value, list) else ""
            yield ""
            yield f"{c_names[name]}{which}, {array.dtype.name.upper()}, Sizes {_shown(array.shape)}"
            yield from _matrices(array)


def _matrices(array: np.ndarray[Any, Any]) -> Iterator[str]:
    """The two last dimensions as rows of a matrix, each with the coordinates before them."""
    matrices = array.reshape((1,) * (2 - array.ndim) + array.shape)
    texts = np.vectorize(lambda x: f"{x:.4g}", otypes=[object])(matrices)
    width = max(map(len, texts.ravel()))
    outer = matrices.shape[:-2]
    for place in product(*map(range, outer)):
        label = f"  [{', '.join(map(str, place))}]" if int(np.prod(outer)) > 1 else " "
        for row, line in enumerate(texts[place]):
            head = label if row == 0 else " " * len(label)
            yield head + "".join(f" {text:>{width}}" for text in line)
