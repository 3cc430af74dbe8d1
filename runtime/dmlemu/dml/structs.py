"""The small structs of DirectML.h that descs and bindings contain."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..d3d12.types.c_types import FLOAT, UINT64
from ..errors import quote
from ..frozen import Frozen
from .enums import BindingType, TensorDataType
from .rows import ScalarUnionValue
from .tensor_desc import BufferTensorDesc, element_bits

if TYPE_CHECKING:
    from ..d3d12 import Resource
    from ..pictures import Layout

__all__ = [
    "BindingDesc",
    "BindingProperties",
    "BufferArrayBinding",
    "BufferBinding",
    "ScalarUnion",
    "ScaleBias",
    "Size2D",
]


class ScaleBias(Frozen):
    """Mirrors ``DML_SCALE_BIAS``: the operator works on ``x * scale + bias``."""

    scale: FLOAT
    bias: FLOAT


class Size2D(Frozen):
    """Mirrors ``DML_SIZE_2D``."""

    width: int
    height: int


class ScalarUnion(Frozen):
    """Mirrors ``DML_SCALAR_UNION``: 8 bytes, read as the data type that the desc names elsewhere."""

    bytes: bytes = b"\0" * 8

    def __post_init__(self) -> None:
        if not isinstance(self.bytes, (bytes, bytearray)) or len(self.bytes) != 8:
            raise ScalarUnionValue.bytes(given=quote(self.bytes))
        object.__setattr__(self, "bytes", bytes(self.bytes))

    @classmethod
    def of(cls, data_type: TensorDataType, value: float) -> ScalarUnion:
        """``value`` in the member of ``data_type``; the other bytes are 0.

        Raises :class:`dmlemu.Error` (E_INVALIDARG) when the type cannot hold the value, or has 4 bits,
        for which the union has no member.
        """
        dtype = _member_type(data_type)
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            expected = f"an integer, {limits.min} to {limits.max}"
            fits = _is_number(value) and isfinite(value) and int(value) == value
            fits = fits and limits.min <= value <= limits.max
        else:
            expected, fits = "a number", _is_number(value)
        if not fits:
            name = TensorDataType(data_type).name
            raise ScalarUnionValue.value(given=quote(value), expected=expected, data_type=name)
        number = int(value) if dtype.kind in "iu" else value
        with np.errstate(over="ignore"):  # values out of range become infinite, as in C
            return cls(np.array(number, dtype).tobytes().ljust(8, b"\0"))

    def value(self, data_type: TensorDataType) -> int | float:
        """The member of ``data_type``; E_INVALIDARG for types without a member."""
        dtype = _member_type(data_type)
        number: int | float = np.frombuffer(self.bytes, dtype, 1)[0].item()
        return number


def _member_type(data_type: TensorDataType) -> np.dtype[Any]:
    """The NumPy type of a member of the union."""
    tensor = BufferTensorDesc(data_type, [1])
    if element_bits(tensor.data_type) < 8:
        name = tensor.data_type.name
        raise ScalarUnionValue.no_member(given=quote(name), data_type=name)
    return tensor.dtype


def _is_number(value: object) -> bool:
    """A real number that a double can hold."""
    if not isinstance(value, (int, float, np.integer, np.floating)):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


class BufferBinding(Frozen, many=True):
    """Mirrors ``DML_BUFFER_BINDING``: a byte range of a buffer; ``buffer`` None is an empty entry.

    Beyond the API: ``size_in_bytes`` None means everything from ``offset`` to the end of the buffer.
    """

    buffer: Resource | None = None
    offset: int = 0
    size_in_bytes: int | None = None

    def layout(self, tensor_desc: BufferTensorDesc, name: str = "") -> Layout:
        """A picture of where the elements of a tensor lie in the buffer when it is bound like this.

        See :meth:`BufferTensorDesc.layout`; :meth:`BindingTable.layout` draws what a table binds.
        """
        return tensor_desc.layout(name, self.offset)


class BufferArrayBinding(Frozen):
    """Mirrors ``DML_BUFFER_ARRAY_BINDING``: one entry per input tensor of an operator to initialize."""

    bindings: Sequence[BufferBinding | None] = ()


class BindingDesc(Frozen, many=True):
    """Mirrors ``DML_BINDING_DESC``.

    Wherever one is expected, ``None``, a :class:`BufferBinding` or a :class:`BufferArrayBinding` is
    accepted for NONE, BUFFER and BUFFER_ARRAY.
    """

    type: BindingType = BindingType.NONE
    desc: BufferBinding | BufferArrayBinding | None = None

    @classmethod
    def none(cls) -> BindingDesc:
        """Nothing is bound."""
        return _NONE

    @classmethod
    def buffer(
        cls, buffer: Resource | None, offset: int = 0, size_in_bytes: int | None = None
    ) -> BindingDesc:
        """A byte range of a buffer: see :class:`BufferBinding`."""
        return cls(BindingType.BUFFER, BufferBinding(buffer, offset, size_in_bytes))

    @classmethod
    def buffer_array(cls, bindings: Sequence[BufferBinding | None]) -> BindingDesc:
        """The inputs of one operator, for its initializer."""
        return cls(BindingType.BUFFER_ARRAY, BufferArrayBinding(bindings))


_NONE = BindingDesc()

Binding: TypeAlias = "BindingDesc | BufferBinding | BufferArrayBinding | None"


class BindingProperties(Frozen, many=True):
    """Mirrors ``DML_BINDING_PROPERTIES``: descriptors and bytes that a dispatchable needs."""

    required_descriptor_count: int = 0
    temporary_resource_size: UINT64 = 0
    persistent_resource_size: UINT64 = 0
