"""Values of a model while a segment is built: known arrays, and tensors of the device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
import onnx

from .. import graph as g
from ..dml.enums import TensorDataType
from ..dml.tensor_desc import BufferTensorDesc
from ..graph import Expression, Graph, Policy, packed, reinterpret
from ..graph.expression import GraphBase

__all__ = [
    "DATA_TYPES",
    "MOST_BYTES",
    "NARROW",
    "Array",
    "Tensor",
    "broadcast_shapes",
    "by_channel",
    "copied",
    "data_type_of",
    "dense_array",
    "device_array",
    "element_type_of",
    "fitted",
    "host_array",
    "sizes_of",
    "with_policy",
]

Array = np.ndarray[Any, np.dtype[Any]]

_ONNX = onnx.TensorProto
DATA_TYPES: dict[int, TensorDataType] = {
    _ONNX.FLOAT: TensorDataType.FLOAT32,
    _ONNX.FLOAT16: TensorDataType.FLOAT16,
    _ONNX.DOUBLE: TensorDataType.FLOAT64,
    _ONNX.INT4: TensorDataType.INT4,
    _ONNX.INT8: TensorDataType.INT8,
    _ONNX.INT16: TensorDataType.INT16,
    _ONNX.INT32: TensorDataType.INT32,
    _ONNX.INT64: TensorDataType.INT64,
    _ONNX.UINT4: TensorDataType.UINT4,
    _ONNX.UINT8: TensorDataType.UINT8,
    _ONNX.UINT16: TensorDataType.UINT16,
    _ONNX.UINT32: TensorDataType.UINT32,
    _ONNX.UINT64: TensorDataType.UINT64,
    _ONNX.BOOL: TensorDataType.UINT8,
}
"""DirectML's types of ONNX's; BOOL is a UINT8 of 0 or 1."""

NARROW = (TensorDataType.INT4, TensorDataType.UINT4)
"""Of 4 bits; an array has an int8 or uint8 for each element."""

MAX_RANK = 8
MOST_BYTES = (1 << 32) - 4
"""What a tensor of DirectML may have."""


broadcast_shapes = lru_cache(maxsize=1024)(np.broadcast_shapes)
"""As NumPy's: networks repeat few shapes."""


def data_type_of(element_type: int) -> TensorDataType | None:
    """DirectML's type of ``TensorProto.DataType``, or None."""
    return DATA_TYPES.get(element_type)


def sizes_of(shape: Sequence[int]) -> tuple[int, ...]:
    """The sizes of a tensor of the device: a scalar has one dimension there."""
    return tuple(shape) or (1,)


class Tensor:
    """A value of the model: ``array`` if it is known, else ``expression``, which is on the device.

    ``shape`` is ONNX's: () for a scalar.  A known array is put on the device the first time an operator there
    reads it.  What is neither (a sequence, an optional) has no shape and stays on the host.
    """

    def __init__(
        self,
        name: str,
        element_type: int,
        shape: tuple[int, ...] | None,
        *,
        array: Array | None = None,
        expression: Expression | None = None,
    ) -> None:
        self.name = name
        self.element_type = element_type
        self.shape = shape
        self.array = array
        self.expression = expression

    def __repr__(self) -> str:
        kind = "known" if self.array is not None else "on the device" if self.expression else "on the host"
        return f"<Tensor {self.name} {list(self.shape or ())} {kind}>"

    @classmethod
    def known(cls, name: str, array: Any) -> Tensor:
        array = np.asarray(array)
        return cls(name, element_type_of(array), array.shape, array=array)

    @property
    def is_known(self) -> bool:
        return self.array is not None

    @property
    def is_tensor(self) -> bool:
        return self.shape is not None

    @property
    def can_be_on_device(self) -> bool:
        return (
            self.shape is not None
            and len(self.shape) <= MAX_RANK
            and 0 not in self.shape
            and self.element_type in DATA_TYPES
        )

    def on_device(self, graph: Graph) -> Expression:
        """The tensor of the device; the caller has checked that it can be one."""
        if self.expression is None:
            assert self.array is not None and self.shape is not None
            array = np.ascontiguousarray(self.array).reshape(sizes_of(self.shape))
            desc = BufferTensorDesc(DATA_TYPES[self.element_type], array.shape)
            self.expression = _constant(graph, device_array(array), desc, self.name)
        return self.expression


def _constant(graph: Graph, array: Array, desc: BufferTensorDesc, name: str) -> Expression:
    """A constant; those of one element are shared: models have the same ones again and again."""
    if array.size > 1:
        return graph.constant(array, desc, name=name)
    key = desc.data_type, array.shape, array.tobytes()
    found = graph.numbers.get(key)
    if found is None:
        found = graph.numbers[key] = graph.constant(array, desc, name=name)
    return found


def device_array(array: Array) -> Array:
    """With elements of the type that the device's tensors have in NumPy."""
    if array.dtype == np.bool_:
        return array.view(np.uint8)
    if array.dtype.kind == "V" and array.dtype.name in ("int4", "uint4"):
        return array.astype(np.int8 if array.dtype.name == "int4" else np.uint8)
    return array


def host_array(array: Array, element_type: int) -> Array:
    """The reverse, of an array of the device: with elements of ONNX's type."""
    dtype = onnx.helper.tensor_dtype_to_np_dtype(element_type)
    if dtype == np.bool_:
        return array.view(np.bool_)
    return array.astype(dtype) if data_type_of(element_type) in NARROW else array


def element_type_of(array: Array) -> int:
    """``TensorProto.DataType`` of an array's elements."""
    return _element_type(array.dtype)


@lru_cache
def _element_type(dtype: np.dtype[Any]) -> int:
    if dtype.kind in "OSU":
        return int(_ONNX.STRING)
    return int(onnx.helper.np_dtype_to_tensor_dtype(dtype))


def dense_array(sparse: onnx.SparseTensorProto) -> Array:
    """A sparse tensor as an array.

    ValueError: it is larger than any tensor of the device, or its indices are outside of it.
    """
    values, indices = (onnx.numpy_helper.to_array(each) for each in (sparse.values, sparse.indices))
    shape = tuple(sparse.dims)
    if math.prod(shape) * values.itemsize > MOST_BYTES:
        raise ValueError(f"shape {list(shape)} is larger than any buffer")
    made: Array = np.zeros(math.prod(shape), values.dtype)
    places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), shape)
    made[places] = values
    return made.reshape(shape)


# --- views ---


@contextmanager
def with_policy(graph: GraphBase, policy: Policy) -> Iterator[None]:
    """What is made meanwhile is laid out by another policy than the graph's."""
    before, graph.policy = graph.policy, policy
    try:
        yield
    finally:
        graph.policy = before


def copied(x: Expression) -> Expression:
    """A packed copy of the elements that ``x`` reads."""
    with with_policy(x.graph, packed):
        made: Expression = g.element_wise_identity(x)
    return made


def by_channel(x: Expression, rank: int) -> Expression:
    """Numbers for the channels of a tensor of ``rank`` dimensions."""
    return fitted(x, (1, math.prod(x.sizes), *(1,) * (rank - 2)))


def fitted(x: Expression, shape: Sequence[int]) -> Expression:
    """``x``, whose elements in order are those of a tensor of another shape."""
    sizes = sizes_of(shape)
    if x.sizes == sizes:
        return x
    try:
        return reinterpret(x, sizes)
    except ValueError:  # it is not packed
        return reinterpret(copied(x), sizes)
