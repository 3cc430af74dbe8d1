"""Classes of tensor elements: NaN, infinity, limits of the type; and where such values first appear.

For checks of values.  Detection only: no knowledge of operators or messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag
from math import prod
from typing import Any, NamedTuple

from . import packets
from .kernels import ffi, lib

__all__ = ["Classes", "Source", "Values", "View", "element", "find_born", "scan"]


class Classes(IntFlag):
    """Classes of elements (bits of ``enum dmlk_value_class``)."""

    NAN = 1 << lib.DMLK_VALUE_NAN
    INFINITY = 1 << lib.DMLK_VALUE_INFINITY


class View(NamedTuple):
    """Elements in host memory (``struct dmlk_view``): ``data`` is a buffer that starts at element 0.

    ``data_type`` is an ``enum dmlk_type``; ``strides`` are in elements, 0 repeats.
    """

    data: Any
    data_type: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


class Source(NamedTuple):
    """The input elements that the elements of an output were computed from (``struct dmlk_source``).

    Output element i depends on all elements of ``sizes`` and ``strides``, starting at element i of ``outer``;
    ``outer`` has the sizes of the output.  Element-wise: no sizes.  A matrix of a product: ``outer`` steps
    along its rows and has stride 0 along the output's columns, ``sizes`` are those of a row.
    """

    outer: View
    sizes: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()


class Values(NamedTuple):
    """Statistics of a tensor's elements (``struct dmlk_values``).

    ``count`` elements, repeated ones counted each time; among them the numbers of NaNs, infinities, zeros of
    either sign, and values that are the lowest or highest finite number of the type.  ``first_...``: index of
    the first one, last axis fastest; None: there is none.  ``min`` and ``max`` are of the finite elements,
    None without any.
    """

    count: int  # type: ignore[assignment]  # not the method of tuples
    nans: int
    infinities: int
    zeros: int
    lowest: int
    highest: int
    first_nan: int | None
    first_infinity: int | None
    first_zero: int | None
    first_lowest: int | None
    first_highest: int | None
    min: float | None
    max: float | None


_NONE = 2**64 - 1


def scan(view: View) -> Values:
    """Scans every element.  ValueError: the view exceeds its data; NotImplementedError: 4-bit elements."""
    values = ffi.new("dmlk_values *")
    struct, _keep = _struct(view)
    _raise(lib.dmlk_scan_values(struct, values), view)
    fields = [values.count, *values.counts]
    fields += [None if first == _NONE else first for first in values.firsts]
    for extreme in (values.min, values.max):
        fields.append(_number(view.data_type, extreme) if values.has_finite else None)
    return Values(*fields)


def find_born(output: View, classes: Classes, sources: Sequence[Source], start: int = 0) -> int | None:
    """Index of the first element, from ``start`` on, that is of one of the classes although all elements that
    it was computed from are finite; None: there is none.

    ValueError: a view exceeds its data, or the sizes of an ``outer`` differ from the output's;
    NotImplementedError: 4-bit elements.
    """
    keep = []
    structs = ffi.new("dmlk_source[]", max(1, len(sources)))
    for struct, source in zip(structs, sources, strict=False):
        outer, data = _struct(source.outer)
        inner, _ = _struct(View(b"", source.outer.data_type, source.sizes or (1,), source.strides or (1,)))
        struct.outer, struct.inner = outer[0], inner[0]
        keep.append(data)
    struct, data = _struct(output)
    index = ffi.new("uint64_t *")
    _raise(lib.dmlk_find_born(struct, classes, structs, len(sources), start, index), output)
    return None if index[0] == _NONE else int(index[0])


def element(view: View, number: int) -> float:
    """One element by index (last axis fastest): an int for integer types.

    IndexError: out of range; ValueError and NotImplementedError as in :func:`scan`.
    """
    if not 0 <= number < prod(view.sizes):
        raise IndexError(f"element {number} of {prod(view.sizes)}")
    struct, _keep = _struct(view)
    value = ffi.new("dmlk_number *")
    _raise(lib.dmlk_read_element(struct, number, value), view)
    return _number(view.data_type, value)


def _struct(view: View) -> tuple[Any, Any]:
    """The ``dmlk_view *``, and the objects that must outlive it."""
    rank = len(view.sizes)
    if not 1 <= rank <= packets.MAX_RANK or rank != len(view.strides):
        raise ValueError(f"A view has {rank} sizes and {len(view.strides)} strides; expected equal, 1 to 8.")
    data = ffi.from_buffer("uint8_t[]", view.data)
    struct = ffi.new("dmlk_view *")
    struct.base, struct.byte_size = data, len(data)
    struct.type, struct.rank = view.data_type, rank
    struct.sizes[0:rank], struct.strides[0:rank] = view.sizes, view.strides
    return struct, data


def _number(data_type: int, number: Any) -> float:
    name = packets.type_name(data_type)
    value: float = number.f if name.startswith("FLOAT") else number.u if name.startswith("U") else number.i
    return value


def _raise(status: int, view: View) -> None:
    if status == lib.DMLK_NOT_IMPLEMENTED:
        raise NotImplementedError(f"Elements of {packets.type_name(view.data_type)} are not looked at yet.")
    if status != lib.DMLK_OK:
        name = {
            lib.DMLK_BAD_PACKET: "its type, sizes or strides make no sense, or do not fit those of another",
            lib.DMLK_BAD_ADDRESS: "its data are not aligned to its elements",
            lib.DMLK_OUT_OF_RANGE: "its elements leave its data",
        }[status]
        raise ValueError(f"A view of sizes {view.sizes} and strides {view.strides} is not a tensor: {name}.")
