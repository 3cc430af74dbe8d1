"""An operator's example with numbers, for its page: the definition's example desc on simple values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from .declared.definition import definition_class, definition_of, example_of
from .declared.schema import FieldKind, OperatorDesc, operator_fields
from .tensor_desc import BufferTensorDesc, element_bits

__all__ = ["changed", "example_lines", "page_example", "page_inputs"]


def example_lines(cls: type[OperatorDesc]) -> list[str]:
    """Fields, inputs and outputs of the example; empty if the operator is not emulated."""
    if definition_class(cls.TYPE) is None:
        return []
    desc = page_example(cls)
    inputs = page_inputs(desc)
    outputs = definition_of(desc).reference(inputs)
    return [*_attributes(desc), *_tensors(desc, inputs), *_tensors(desc, outputs)]


def page_example(cls: type[OperatorDesc]) -> OperatorDesc:
    """The definition's example, with tensors that can be read on a page."""
    desc, definition = example_of(cls), definition_class(cls.TYPE)
    assert definition is not None  # it has an example
    return changed(desc, definition.page_changes())


def page_inputs(desc: OperatorDesc) -> dict[str, Any]:
    """The inputs of ``desc``, which is the example of a page."""
    given, inputs = definition_of(desc).PAGE_INPUTS, {}
    for place, item in enumerate(item for item in operator_fields(type(desc)) if _is_input(desc, item)):
        tensor, values = getattr(desc, item.name), given.get(item.name)
        inputs[item.name] = _simple(tensor, 7 * place) if values is None else _array(tensor, values)
    return inputs


def changed(desc: OperatorDesc, changes: Mapping[str, Any]) -> OperatorDesc:
    """With other fields, those of ``changes`` that it has; of packed tensors the sizes are given."""
    made = {}
    for name, value in changes.items():
        if name in type(desc).__dataclass_fields__:
            tensor = getattr(desc, name)
            resized = isinstance(tensor, BufferTensorDesc) and value is not None
            made[name] = BufferTensorDesc(tensor.data_type, value) if resized else value
    return replace(desc, **made)


def _is_input(desc: OperatorDesc, item: Any) -> bool:
    return item.kind is FieldKind.INPUT_TENSOR and getattr(desc, item.name) is not None


def _array(tensor: BufferTensorDesc, values: Any) -> np.ndarray[Any, Any]:
    return np.asarray(values).astype(tensor.dtype).reshape(tensor.sizes)


def _simple(tensor: Any, start: int) -> Any:
    """Small numbers of both signs where the type has them; unsigned ones may be indices of anything."""
    if not isinstance(tensor, BufferTensorDesc):
        return [_simple(each, start + place) for place, each in enumerate(tensor)]
    count = start + np.arange(int(np.prod(tensor.sizes)))
    most = 16 if element_bits(tensor.data_type) == 4 else 17  # from -8 on
    values = count * 5 % 3 if tensor.dtype.kind == "u" else count * 5 % most - 8
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
        tensors = getattr(desc, name)
        for place, array in enumerate(value if isinstance(value, list) else [value]):
            which = f"[{place}]" if isinstance(value, list) else ""
            tensor = tensors[place] if isinstance(value, list) else tensors
            yield ""
            yield f"{c_names[name]}{which}, {tensor.data_type.name}, Sizes {_shown(array.shape)}"
            yield from _matrices(array)


def _matrices(array: np.ndarray[Any, Any]) -> Iterator[str]:
    """The two last dimensions as rows of a matrix, each with the coordinates before them."""
    matrices = array.reshape((1,) * (2 - array.ndim) + array.shape)
    form = "{:.4g}" if array.dtype.kind == "f" else "{}"
    texts = np.vectorize(form.format, otypes=[object])(matrices)
    width = max(map(len, texts.ravel()))
    outer = matrices.shape[:-2]
    for place in product(*map(range, outer)):
        label = f"  [{', '.join(map(str, place))}]" if int(np.prod(outer)) > 1 else " "
        for row, line in enumerate(texts[place]):
            head = label if row == 0 else " " * len(label)
            yield head + "".join(f" {text:>{width}}" for text in line)
