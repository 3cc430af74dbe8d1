"""Buffer tensors: ``DML_BUFFER_TENSOR_DESC``, its size calculation, and the rules TN1 to TN8.

Sizes and strides count elements; a dimension of stride 0 repeats.  Documented at
https://learn.microsoft.com/windows/win32/api/directml/ns-directml-dml_buffer_tensor_desc and
https://learn.microsoft.com/windows/ai/directml/dml-helper-functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import as_integer, number_of, quote
from ..frozen import Frozen
from .enums import FeatureLevel, TensorDataType, TensorFlags
from .overlap import shared_element
from .rows import (
    TN1,
    TN2,
    TN3,
    TN4,
    TN5,
    TN6,
    TN7,
    TN8,
    TensorField,
)

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..pictures import Layout, Tensor

__all__ = [
    "MINIMUM_BUFFER_TENSOR_ALIGNMENT",
    "PERSISTENT_BUFFER_ALIGNMENT",
    "TEMPORARY_BUFFER_ALIGNMENT",
    "TENSOR_DIMENSION_COUNT_MAX",
    "TENSOR_DIMENSION_COUNT_MAX1",
    "BufferTensorDesc",
    "calc_buffer_tensor_size",
    "data_type_hint",
    "element_bits",
    "spell_data_type",
]

TENSOR_DIMENSION_COUNT_MAX = 5
TENSOR_DIMENSION_COUNT_MAX1 = 8
MINIMUM_BUFFER_TENSOR_ALIGNMENT = 16
TEMPORARY_BUFFER_ALIGNMENT = 256
PERSISTENT_BUFFER_ALIGNMENT = 256

_U32 = 2**32 - 1
_U64 = 2**64 - 1
_STRUCT = "DML_BUFFER_TENSOR_DESC"
_T = TensorDataType

_OWNED = int(TensorFlags.OWNED_BY_DML)
_BITS = {
    _T.UNKNOWN: 0,
    _T.UINT4: 4,
    _T.INT4: 4,
    _T.UINT8: 8,
    _T.INT8: 8,
    _T.UINT16: 16,
    _T.INT16: 16,
    _T.FLOAT16: 16,
    _T.UINT32: 32,
    _T.INT32: 32,
    _T.FLOAT32: 32,
    _T.UINT64: 64,
    _T.INT64: 64,
    _T.FLOAT64: 64,
}

# NumPy has no types of 4 bits: an array has a whole int8 or uint8 for each element.
_DTYPES: dict[TensorDataType, np.dtype[Any]] = {
    kind: np.dtype(kind.name.lower() if bits >= 8 else kind.name.lower().replace("4", "8"))
    for kind, bits in _BITS.items()
    if bits
}
_TYPES = {dtype: kind for kind, dtype in _DTYPES.items() if _BITS[kind] >= 8}


def element_bits(data_type: TensorDataType) -> int:
    """Bits of one element: 4, 8, 16, 32 or 64; 0 for ``UNKNOWN``."""
    return _BITS[data_type]


def calc_buffer_tensor_size(
    data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None = None
) -> int:
    """The minimum TotalTensorSizeInBytes of a tensor, as the published ``DMLCalcBufferTensorSize``.

    ``strides`` None means packed.  The result is a multiple of 4; 0 for ``UNKNOWN`` and for a tensor
    without elements.  The published helper adds strided indices in 32 bits and wraps; this one does not.

    Raises :class:`dmlemu.Error` (E_INVALIDARG) as :class:`BufferTensorDesc` does.
    """
    tensor = BufferTensorDesc(data_type, sizes, strides, 0)
    return _least_size(tensor.data_type, tensor.sizes, tensor.strides)


def _least_size(data_type: TensorDataType, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    count = prod(sizes)
    if strides is not None and count:
        count = 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    size = (count * _BITS[data_type] + 7) // 8
    return (size + 3) // 4 * 4


class BufferTensorDesc(Frozen, many=True):
    """Mirrors ``DML_BUFFER_TENSOR_DESC`` (and the ``DML_TENSOR_DESC`` around it).

    ``sizes`` and ``strides`` count elements, one number per dimension; ``strides`` None means packed,
    the last dimension fastest.  ``total_tensor_size_in_bytes`` None takes the least size that holds
    the tensor (see :func:`calc_buffer_tensor_size`).

    Raises :class:`dmlemu.Error` (E_INVALIDARG) immediately for values that the C struct cannot hold:
    non-integers and integers out of the field's range.  The rules of DirectML are checked where DirectML
    checks them, in ``create_operator``.
    """

    data_type: TensorDataType
    sizes: Sequence[int]
    strides: Sequence[int] | None = None
    total_tensor_size_in_bytes: int | None = None
    guaranteed_base_offset_alignment: int = 0
    flags: TensorFlags = TensorFlags.NONE

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "data_type", _data_type(self.data_type))
        put(self, "sizes", _u32_array("Sizes", self.sizes))
        if self.strides is not None:
            put(self, "strides", _u32_array("Strides", self.strides))
            if len(self.strides) != len(self.sizes):
                raise TN4.strides(
                    given=number_of(len(self.strides), "value"),
                    expected=number_of(len(self.sizes), "value"),
                    rank=len(self.sizes),
                )
        if type(self.flags) is not TensorFlags:
            put(self, "flags", TensorFlags(_unsigned("Flags", self.flags, _U32)))
        align = _unsigned("GuaranteedBaseOffsetAlignment", self.guaranteed_base_offset_alignment, _U32)
        put(self, "guaranteed_base_offset_alignment", align)
        total = self.total_tensor_size_in_bytes
        if total is None:
            total = _least_size(self.data_type, self.sizes, self.strides)
        else:
            total = _unsigned("TotalTensorSizeInBytes", total, _U64)
        put(self, "total_tensor_size_in_bytes", total)

    @classmethod
    def from_array(cls, array: Any) -> BufferTensorDesc:
        """The desc of an array's elements as they lie in its memory, from its first element on.

        ``array``: of NumPy, or what speaks DLPack or ``__array__``.  A C-contiguous array gives no strides.
        ``bool`` arrays are UINT8.  Raises TypeError for a dtype that DirectML does not have, ValueError for
        negative strides and for strides in fractions of elements.
        """
        array = array_of(array)
        dtype = np.dtype(np.uint8) if array.dtype == np.bool_ else array.dtype
        data_type = _TYPES.get(dtype)
        if data_type is None:
            raise TypeError(f"An array of {array.dtype} has no DML_TENSOR_DATA_TYPE.")
        if array.flags.c_contiguous:
            return cls(data_type, array.shape)
        strides = [0 if size == 1 else step for size, step in zip(array.shape, array.strides, strict=True)]
        if any(step < 0 or step % dtype.itemsize for step in strides):
            raise ValueError(
                f"The strides of the array ({array.strides} bytes) are not multiples >= 0 of the "
                f"{dtype.itemsize} bytes of an element; numpy.ascontiguousarray copies it so that they are."
            )
        return cls(data_type, array.shape, [step // dtype.itemsize for step in strides])

    @property
    def rank(self) -> int:
        """DimensionCount."""
        return len(self.sizes)

    @cached_property
    def element_count(self) -> int:
        """Logical elements: the product of the sizes."""
        return prod(self.sizes)

    @cached_property
    def effective_strides(self) -> tuple[int, ...]:
        """The strides in elements, computed when the desc has none."""
        if self.strides is not None:
            return tuple(self.strides)
        strides, step = [], 1
        for size in reversed(self.sizes):
            strides.append(step)
            step *= size
        return tuple(reversed(strides))

    @property
    def size_in_bytes(self) -> int:
        """TotalTensorSizeInBytes as a number."""
        assert self.total_tensor_size_in_bytes is not None  # __post_init__ computed it
        return self.total_tensor_size_in_bytes

    @property
    def extent_in_bytes(self) -> int:
        """From the start of the first element to the end of the last one; the rest is padding."""
        last = sum((n - 1) * stride for n, stride in zip(self.sizes, self.effective_strides, strict=True))
        return ((last + 1) * element_bits(self.data_type) + 7) // 8

    @property
    def least_size_in_bytes(self) -> int:
        """The least ``total_tensor_size_in_bytes`` for these sizes and strides."""
        return _least_size(self.data_type, self.sizes, self.strides)

    @property
    def owned_by_dml(self) -> bool:
        return bool(int(self.flags) & _OWNED)  # enums' own & is Python code

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of an array with the tensor's elements.

        For INT4 and UINT4, which NumPy does not have, int8 and uint8: one element per item of the array, two
        per byte in memory.  Raises NotImplementedError for UNKNOWN.
        """
        dtype = _DTYPES.get(self.data_type)
        if dtype is None:
            raise NotImplementedError(f"{self.data_type.name} has no NumPy dtype")
        return dtype

    def layout(self, name: str = "", offset: int = 0) -> Layout:
        """A picture of where the elements lie: text for the terminal, SVG, and itself in a notebook.

        ``name`` and ``offset`` (bytes) say what it is called and where in its buffer it begins;
        ``layout.beside(other)`` draws two tensors of one buffer.
        """
        from ..pictures import Layout

        return Layout([_placed(self, name, offset)])

    def check(self, field: str, operation: str, level: FeatureLevel, *, output: bool) -> None:
        """The rules TN1 to TN8 for a tensor field of an operator (``field``: "OutputTensor").

        Raises :class:`dmlemu.Error` with E_INVALIDARG for the first violated rule.
        """
        rules = _Rules(self, field, operation)
        rules.type_and_rank(level)
        rules.extent()
        rules.total_and_alignment()
        rules.flags(output)
        if output:
            rules.no_overlap()


def packed_desc(array: npt.NDArray[Any]) -> BufferTensorDesc | None:
    """The desc of an array's elements, which are contiguous; None where no tensor can have them."""
    data_type = _TYPES.get(np.dtype(np.uint8) if array.dtype == np.bool_ else array.dtype)
    if data_type is None or not array.size or array.ndim > TENSOR_DIMENSION_COUNT_MAX1:
        return None
    return BufferTensorDesc(data_type, array.shape or (1,))


def array_of(data: Any) -> npt.NDArray[Any]:
    """A NumPy array of anything array-like, without a copy where that is possible; also by DLPack alone."""
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        return np.from_dlpack(data)
    return np.asarray(data)


def _placed(desc: BufferTensorDesc, name: str, offset: int) -> Tensor:
    """The tensor as pictures draw it."""
    from ..pictures import Tensor

    bits, kind = element_bits(desc.data_type), desc.data_type.name
    return Tensor(name, kind, bits, tuple(desc.sizes), desc.effective_strides, offset, desc.size_in_bytes)


class _Rules:
    """The checks of one tensor, with the context for their messages."""

    def __init__(self, desc: BufferTensorDesc, field: str, operation: str) -> None:
        self.desc, self.field, self.operation = desc, field, operation

    def type_and_rank(self, level: FeatureLevel) -> None:
        desc = self.desc
        if desc.data_type is TensorDataType.UNKNOWN:
            raise TN1.dtype(field=f"{self.field}.DataType", operation=self.operation)
        most = TENSOR_DIMENSION_COUNT_MAX1 if level >= FeatureLevel.LEVEL_3_0 else TENSOR_DIMENSION_COUNT_MAX
        if not 1 <= desc.rank <= most:
            raise TN2.rank(
                field=f"{self.field}.DimensionCount",
                given=desc.rank,
                expected=f"1 to {most}",
                operation=self.operation,
                most=most,
                level=level.name.removeprefix("LEVEL_"),
            )

    def extent(self) -> None:
        desc = self.desc
        for i, size in enumerate(desc.sizes):
            if size == 0:
                raise TN3.zero(field=f"{self.field}.Sizes[{i}]", operation=self.operation)
        if desc.element_count > _U32:
            raise TN3.too_many_elements(
                field=f"{self.field}.Sizes",
                given=number_of(desc.element_count, "element"),
                expected=f"<= {_U32} elements",
                operation=self.operation,
            )
        extent = 1 + sum((n - 1) * s for n, s in zip(desc.sizes, desc.effective_strides, strict=True))
        if extent > _U32:
            raise TN3.too_wide(
                field=f"{self.field}.Strides",
                given=number_of(extent, "element"),
                expected=f"<= {_U32} elements",
                operation=self.operation,
            )

    def total_and_alignment(self) -> None:
        desc, total = self.desc, self.desc.size_in_bytes
        least = _least_size(desc.data_type, desc.sizes, desc.strides)
        if total < least:
            raise TN6.total_small(
                field=f"{self.field}.TotalTensorSizeInBytes",
                given=total,
                expected=f">= {least}",
                hint=self._strides_in_bytes(total),
                operation=self.operation,
                layouts=(_placed(self.desc, self.field, 0),),
                least=least,
            )
        if total % 4:
            raise TN6.total_unaligned(
                field=f"{self.field}.TotalTensorSizeInBytes", given=total, operation=self.operation
            )
        align, element = desc.guaranteed_base_offset_alignment, (element_bits(desc.data_type) + 7) // 8
        if align and (align & (align - 1) or align < element):
            raise TN7.align_bad(
                field=f"{self.field}.GuaranteedBaseOffsetAlignment",
                given=align,
                expected=f"0 or a power of two >= {element}",
                operation=self.operation,
                element_size=element,
            )

    def _strides_in_bytes(self, total: int) -> str:
        """The hint for strides in bytes: divided by the element size, they give exactly the total size."""
        desc, width = self.desc, element_bits(self.desc.data_type) // 8
        strides = desc.effective_strides
        if width < 2 or desc.strides is None or any(stride % width for stride in strides):
            return ""
        elements = [stride // width for stride in strides]
        if _least_size(desc.data_type, desc.sizes, elements) != total:
            return ""
        return f"Strides count elements, not bytes: as {elements} they reach exactly the {total} bytes."

    def flags(self, output: bool) -> None:
        flags = self.desc.flags
        unknown = int(flags) & ~int(TensorFlags.OWNED_BY_DML)
        if unknown:
            raise TN8.unknown_bits(
                field=f"{self.field}.Flags",
                given=f"0x{int(flags):X}",
                operation=self.operation,
                unknown=f"{unknown:X}",
            )
        if output and flags:
            raise TN8.owned_output(field=f"{self.field}.Flags", operation=self.operation)

    def no_overlap(self) -> None:
        desc = self.desc
        if desc.strides is None:
            return
        for i, (size, stride) in enumerate(zip(desc.sizes, desc.strides, strict=True)):
            if stride == 0 and size > 1:
                raise TN5.out_broadcast(
                    field=f"{self.field}.Strides[{i}]",
                    operation=self.operation,
                    layouts=(_placed(self.desc, self.field, 0),),
                    size=size,
                    dimension=i,
                )
        pair = shared_element(desc.sizes, desc.strides)
        if pair is not None:
            first, second = pair
            offset = sum(i * s for i, s in zip(first, desc.strides, strict=True))
            raise TN5.out_overlap(
                field=f"{self.field}.Strides",
                given=list(desc.strides),
                operation=self.operation,
                layouts=(_placed(self.desc, self.field, 0),),
                first=first,
                second=second,
                offset=offset,
            )


def _data_type(value: object) -> TensorDataType:
    if type(value) is TensorDataType:
        return value
    try:
        return TensorDataType(as_integer(value))  # type: ignore[arg-type]
    except ValueError:
        raise TN1.data_type(
            given=spell_data_type(value), hint=data_type_hint(value), operation="BufferTensorDesc"
        ) from None


def spell_data_type(value: object) -> str:
    """What was given for a data type: ``numpy.float32``, whether as a scalar type or as a dtype."""
    dtype = _numpy_type(value)
    return quote(value) if dtype is None or isinstance(value, str) else f"numpy.{dtype.name}"


def data_type_hint(value: object) -> str:
    """The DML_TENSOR_DATA_TYPE of what NumPy calls a data type, or of a name; empty for anything else."""
    if isinstance(value, str) and value in TensorDataType.__members__:
        return f"use dml.TensorDataType.{value}"
    dtype = _numpy_type(value)
    if dtype is None:
        return ""
    kind = _TYPES.get(dtype.newbyteorder("="))
    if kind is None:
        return f"DirectML has no data type for NumPy's {dtype.name}"
    return (
        f"NumPy's {dtype.name} is dml.TensorDataType.{kind.name}; "
        "dml.BufferTensorDesc.from_array takes data type, sizes and strides from an array"
    )


def _numpy_type(value: object) -> np.dtype[Any] | None:
    """The dtype that a dtype, a scalar type of NumPy or one's name is; None for anything else."""
    if isinstance(value, np.dtype | str) or (isinstance(value, type) and issubclass(value, np.generic)):
        with suppress(Exception):  # what NumPy says of a text that names no type
            return np.dtype(value)
    return None


def _unsigned(field: str, value: object, most: int) -> int:
    """``value`` as an int of a C field; accepts NumPy integers, not bool."""
    if type(value) is int and 0 <= value <= most:
        return value
    number = as_integer(value)
    if number is not None and 0 <= number <= most:
        return number
    expected = "UINT64" if most == _U64 else "UINT"
    raise TensorField.not_a_number(
        field=field, given=quote(value), expected=f"an integer, 0 to {most}", type=expected
    )


def _u32_array(field: str, values: object) -> tuple[int, ...]:
    if not isinstance(values, (str, bytes)) and isinstance(values, Iterable):
        items = None
        with suppress(Exception):  # any exception of the value's own method
            items = list(values)
        if items is not None:
            if all(type(value) is int and 0 <= value <= _U32 for value in items):  # nearly always
                return tuple(items)
            return tuple(_unsigned(f"{field}[{i}]", value, _U32) for i, value in enumerate(items))
    raise TensorField.not_a_sequence(field=field, given=quote(values))
