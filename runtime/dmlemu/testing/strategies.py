"""Strategies of tensor descs: every kind of legal layout, and descs that break one rule each.

Sizes, strides, gaps and offsets are drawn one by one, and the plainest (packed, few dimensions, small
sizes) first: failures shrink to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from math import prod
from typing import Any, Literal, NamedTuple, get_args

from hypothesis import strategies as st

from ..dml import TENSOR_DIMENSION_COUNT_MAX1, BufferTensorDesc, TensorDataType, TensorFlags
from ..dml.overlap import shared_element
from ..dml.rows import (
    OP_FIELD_RANGE,
    TENSOR_ALIGN_BAD,
    TENSOR_DTYPE,
    TENSOR_INDEX_OVERFLOW,
    TENSOR_OUT_BROADCAST,
    TENSOR_OUT_OVERLAP,
    TENSOR_RANK,
    TENSOR_SIZE_ZERO,
    TENSOR_TOTAL_SMALL,
    TENSOR_TOTAL_UNALIGNED,
)
from ..dml.tensor_desc import element_bits

__all__ = [
    "DATA_TYPES",
    "INPUT_ONLY",
    "KINDS",
    "IllegalTensorDesc",
    "LayoutKind",
    "illegal_tensor_descs",
    "layouts_of",
    "shapes",
    "tensor_descs",
]

LayoutKind = Literal[
    # strides: a layout has exactly one of these kinds
    "packed",
    "padded",
    "permuted",
    "reversed",
    "interleaved",
    "broadcast",
    "overlapping",
    # options that may be combined with each
    "size_1",
    "larger_total",
    "aligned",
    "owned",
]
"""What a layout may be.

``packed``: no strides; ``padded``: gaps between elements, rows or planes; ``permuted``: dimensions in
another order; ``reversed``: the first dimension fastest; ``interleaved``: rows that run between the
elements of other rows; ``broadcast``: strides of 0; ``overlapping``: windows that share elements.

``size_1``: dimensions of size 1 have any stride; ``larger_total``: TotalTensorSizeInBytes is larger than
need be; ``aligned``: GuaranteedBaseOffsetAlignment is set; ``owned``: the flag OWNED_BY_DML.
"""

KINDS: tuple[LayoutKind, ...] = get_args(LayoutKind)
INPUT_ONLY: frozenset[LayoutKind] = frozenset({"broadcast", "overlapping", "owned"})
"""Kinds that no output may be."""

_STRIDES: tuple[LayoutKind, ...] = KINDS[: KINDS.index("size_1")]
_MORE: tuple[LayoutKind, ...] = ("broadcast", "padded", "broadcast")
"""Drawn more often: which dimensions repeat or have gaps are many different layouts."""

DATA_TYPES = tuple(kind for kind in TensorDataType if kind is not TensorDataType.UNKNOWN)
"""All data types, those of 4 bits too."""


def shapes(min_rank: int = 1, max_rank: int = 8, max_elements: int = 400) -> st.SearchStrategy[list[int]]:
    """Sizes with few enough elements for a quick test; many ranks, some dimensions of size 1."""
    size = st.one_of(st.integers(1, 4), st.sampled_from([1, 5, 7, 16, 17, 33, 130]))
    lists = st.lists(size, min_size=min_rank, max_size=max_rank)
    return lists.map(lambda sizes: limited(sizes, max_elements))


def limited(sizes: Sequence[int], most: int) -> list[int]:
    """Shortens dimensions from the front until no more than ``most`` elements are left."""
    sizes = list(sizes)
    for i in range(len(sizes)):
        if prod(sizes) > most:
            sizes[i] = max(1, min(sizes[i], most // max(1, prod(sizes) // sizes[i])))
    return sizes


def layouts_of(
    sizes: Sequence[int],
    data_type: TensorDataType,
    *,
    kinds: Collection[LayoutKind] | None = None,
    output: bool = False,
) -> st.SearchStrategy[BufferTensorDesc]:
    """Tensor descs of the given sizes and type in any legal layout, or in those of ``kinds``.

    An ``output`` gets no layout that only inputs may have.  Without a kind of strides among ``kinds`` the
    layouts are packed.

    Raises ValueError for an unknown kind, or when no kind is left for an output.
    """
    chosen = chosen_kinds(kinds, output=output)
    return _layouts(tuple(sizes), data_type, chosen)


def chosen_kinds(kinds: Collection[LayoutKind] | None, *, output: bool) -> tuple[LayoutKind, ...]:
    """The requested kinds that are possible, in the order of shrinking."""
    if isinstance(kinds, str):
        raise ValueError(f"kinds must be a list of kinds, not the text {kinds!r}")
    wanted = KINDS if kinds is None else tuple(kinds)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not a kind of layout; there are {', '.join(KINDS)}")
    possible = tuple(kind for kind in KINDS if kind in wanted and not (output and kind in INPUT_ONLY))
    if not possible:
        raise ValueError(f"an output cannot be {' or '.join(wanted) or 'of no kind'}")
    return possible


@st.composite
def _layouts(
    draw: st.DrawFn, sizes: tuple[int, ...], data_type: TensorDataType, kinds: tuple[LayoutKind, ...]
) -> BufferTensorDesc:
    """Every layout of every kind and rank takes as many draws, and dimensions of size 1 take theirs after
    the others, so that an example can shrink to a plainer kind and to fewer dimensions."""
    of_strides = [kind for kind in (*_STRIDES, *_MORE) if kind in kinds]
    kind = draw(st.sampled_from(of_strides or ["packed"]))
    reorder = draw(st.booleans()) and "permuted" in kinds
    most = max(TENSOR_DIMENSION_COUNT_MAX1, len(sizes))
    drawn = draw(_lists(most))
    numbers = [0] * len(sizes)
    for d in sorted(range(len(sizes)), key=lambda d: (sizes[d] == 1, -d)):
        numbers[d] = drawn.pop()
    strides = _MAKERS[kind](sizes, numbers, reorder)
    if "size_1" in kinds and draw(_rarely):
        steps = packed_strides(sizes) if strides is None else strides
        strides = [n if size == 1 else step for n, size, step in zip(numbers, sizes, steps, strict=True)]
    desc = BufferTensorDesc(data_type, sizes, strides)
    if "larger_total" in kinds and draw(_rarely):
        total = desc.size_in_bytes + draw(st.sampled_from([4, 8, 64]))
        desc = replace(desc, total_tensor_size_in_bytes=total)
    if "aligned" in kinds and draw(_rarely):
        desc = replace(desc, guaranteed_base_offset_alignment=draw(_alignments(data_type)))
    if "owned" in kinds and draw(_rarely):
        desc = replace(desc, flags=TensorFlags.OWNED_BY_DML)
    return desc


_rarely = st.integers(0, 4).map(lambda n: n == 4)


def _element_bytes(data_type: TensorDataType) -> int:
    return (element_bits(data_type) + 7) // 8


def _alignments(data_type: TensorDataType) -> st.SearchStrategy[int]:
    least = _element_bytes(data_type)
    return st.sampled_from([size for size in (1, 2, 4, 8, 16, 64, 256) if size >= least])


# --- strides, derived from a number from 0 to 95 for each dimension; 0 is plainest ---

_GAPS, _ENDS, _RANKS = 4, 3, 8


@cache
def _lists(length: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, _GAPS * _ENDS * _RANKS - 1), min_size=length, max_size=length)


def packed_strides(sizes: Sequence[int], order: Sequence[int] | None = None) -> list[int]:
    """Strides without gaps; the last dimension of ``order`` is the fastest."""
    strides, step = [0] * len(sizes), 1
    for d in reversed(range(len(sizes)) if order is None else order):
        strides[d] = step
        step *= sizes[d]
    return strides


def _order(numbers: Sequence[int]) -> list[int]:
    return sorted(range(len(numbers)), key=lambda d: numbers[d] // (_GAPS * _ENDS))


def _padded(sizes: Sequence[int], numbers: Sequence[int], reorder: bool) -> list[int]:
    """Gaps between the elements of a dimension, and after the last one."""
    strides, step = [0] * len(sizes), 1
    for d in reversed(_order(numbers) if reorder else range(len(sizes))):
        strides[d] = step + numbers[d] % _GAPS
        step = strides[d] * (sizes[d] - 1) + step + numbers[d] // _GAPS % _ENDS
    return strides


def _interleaved(sizes: Sequence[int], numbers: Sequence[int], reorder: bool) -> list[int]:
    """Any strides that place each element separately; a nested layout when these do not."""
    strides = [1 + n for n in numbers]
    return strides if shared_element(sizes, strides) is None else _reversed(sizes)


def _reversed(sizes: Sequence[int]) -> list[int]:
    return packed_strides(sizes, range(len(sizes))[::-1])


def _broadcast(sizes: Sequence[int], numbers: Sequence[int], reorder: bool) -> list[int]:
    once = [1 if n % 2 else size for size, n in zip(sizes, numbers, strict=True)]
    strides = packed_strides(once, _order(numbers) if reorder else None)
    return [0 if n % 2 else stride for stride, n in zip(strides, numbers, strict=True)]


_Maker = Callable[[Sequence[int], Sequence[int], bool], "list[int] | None"]
_MAKERS: dict[str, _Maker] = {
    "packed": lambda sizes, numbers, reorder: None,
    "padded": _padded,
    "permuted": lambda sizes, numbers, reorder: packed_strides(sizes, _order(numbers)),
    "reversed": lambda sizes, numbers, reorder: _reversed(sizes),
    "interleaved": _interleaved,
    "broadcast": _broadcast,
    "overlapping": lambda sizes, numbers, reorder: [n % 6 for n in numbers],
}


# --- whole descs ---


def tensor_descs(
    *,
    data_types: Collection[TensorDataType] = DATA_TYPES,
    min_rank: int = 1,
    max_rank: int = TENSOR_DIMENSION_COUNT_MAX1,
    max_elements: int = 400,
    kinds: Collection[LayoutKind] | None = None,
    output: bool = False,
) -> st.SearchStrategy[BufferTensorDesc]:
    """Legal ``DML_BUFFER_TENSOR_DESC`` of any data type, rank, sizes and layout (see :func:`layouts_of`).

    Legal at feature level 3_0 and above; below, ``max_rank`` is 5.
    """
    chosen_kinds(kinds, output=output)
    types = st.sampled_from(sorted(data_types))
    sizes = shapes(min_rank, max_rank, max_elements)
    return st.tuples(sizes, types).flatmap(lambda both: layouts_of(*both, kinds=kinds, output=output))


class IllegalTensorDesc(NamedTuple):
    """A tensor desc that breaks one rule: ``check`` is the id of the report that refuses it.

    ``output``: as an output tensor it is refused; as an input it may be legal.
    """

    desc: BufferTensorDesc
    check: str
    output: bool


def illegal_tensor_descs(
    *, data_types: Collection[TensorDataType] = DATA_TYPES
) -> st.SearchStrategy[IllegalTensorDesc]:
    """Tensor descs that break exactly one of the rules that hold for every operator (TN1 to TN8)."""
    types = st.sampled_from(sorted(data_types))
    return st.one_of(*(types.flatmap(broken) for broken in _BROKEN))


def _base(data_type: TensorDataType) -> st.SearchStrategy[BufferTensorDesc]:
    return shapes(max_rank=4, max_elements=60).flatmap(
        lambda sizes: layouts_of(sizes, data_type, output=True)
    )


@st.composite
def _unknown_type(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    desc = replace(draw(_base(data_type)), data_type=TensorDataType.UNKNOWN)
    return IllegalTensorDesc(desc, TENSOR_DTYPE.id, draw(st.booleans()))


@st.composite
def _rank(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    rank = draw(st.sampled_from([0, 9, 10, 16]))
    sizes = [draw(st.integers(1, 2)) for _ in range(rank)]
    return IllegalTensorDesc(BufferTensorDesc(data_type, sizes), TENSOR_RANK.id, draw(st.booleans()))


@st.composite
def _zero_size(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    desc = draw(_base(data_type))
    sizes = list(desc.sizes)
    sizes[draw(st.integers(0, desc.rank - 1))] = 0
    return IllegalTensorDesc(replace(desc, sizes=sizes), TENSOR_SIZE_ZERO.id, draw(st.booleans()))


@st.composite
def _too_many_elements(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """More elements than 32 bits count, all at one place: an input, and its extent is small."""
    sizes = [2**16, 2**16 + draw(st.integers(0, 9)), *draw(shapes(0, 3, 9))]
    return IllegalTensorDesc(
        BufferTensorDesc(data_type, sizes, [0] * len(sizes)), TENSOR_INDEX_OVERFLOW.id, False
    )


@st.composite
def _too_far(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Few elements, the last one further away than 32 bits reach."""
    stride = 2**32 - 1 - draw(st.integers(0, 9))
    desc = BufferTensorDesc(data_type, [2, draw(st.integers(11, 20))], [stride, 1])
    return IllegalTensorDesc(desc, TENSOR_INDEX_OVERFLOW.id, draw(st.booleans()))


@st.composite
def _small_total(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    desc = draw(_base(data_type))
    least = BufferTensorDesc(data_type, desc.sizes, desc.strides).size_in_bytes
    total = 4 * draw(st.integers(0, least // 4 - 1))
    desc = replace(desc, total_tensor_size_in_bytes=total)
    return IllegalTensorDesc(desc, TENSOR_TOTAL_SMALL.id, draw(st.booleans()))


@st.composite
def _unaligned_total(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    desc = draw(_base(data_type))
    total = desc.size_in_bytes + draw(st.integers(1, 3))
    desc = replace(desc, total_tensor_size_in_bytes=total)
    return IllegalTensorDesc(desc, TENSOR_TOTAL_UNALIGNED.id, draw(st.booleans()))


@st.composite
def _bad_alignment(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Not a power of two, or less than an element."""
    too_small = [size for size in (1, 2, 4) if size < _element_bytes(data_type)]
    alignment = draw(st.sampled_from([3, 12, 24, 48, 100, 2**31 + 1, *too_small]))
    desc = replace(draw(_base(data_type)), guaranteed_base_offset_alignment=alignment)
    return IllegalTensorDesc(desc, TENSOR_ALIGN_BAD.id, draw(st.booleans()))


@st.composite
def _flags(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Unknown ones, or an output that belongs to DirectML."""
    owned_output = draw(st.booleans())
    flags = TensorFlags.OWNED_BY_DML if owned_output else draw(st.sampled_from([2, 4, 2**31]))
    desc = replace(draw(_base(data_type)), flags=TensorFlags(flags))
    return IllegalTensorDesc(desc, OP_FIELD_RANGE.id, owned_output or draw(st.booleans()))


@st.composite
def _output_broadcast(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    sizes = [*draw(shapes(0, 3, max_elements=20)), draw(st.integers(2, 4))]
    repeated = draw(st.sampled_from([d for d, size in enumerate(sizes) if size > 1]))
    strides = packed_strides([1 if d == repeated else size for d, size in enumerate(sizes)])
    strides[repeated] = 0
    return IllegalTensorDesc(BufferTensorDesc(data_type, sizes, strides), TENSOR_OUT_BROADCAST.id, True)


@st.composite
def _output_overlap(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Rows that begin inside the row before."""
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    sizes, strides = [rows, columns], [draw(st.integers(1, columns - 1)), 1]
    if draw(st.booleans()):
        sizes, strides = sizes[::-1], strides[::-1]
    return IllegalTensorDesc(BufferTensorDesc(data_type, sizes, strides), TENSOR_OUT_OVERLAP.id, True)


_BROKEN: tuple[Callable[[Any], st.SearchStrategy[IllegalTensorDesc]], ...] = (
    _unknown_type,
    _rank,
    _zero_size,
    _too_many_elements,
    _too_far,
    _small_total,
    _unaligned_total,
    _bad_alignment,
    _flags,
    _output_broadcast,
    _output_overlap,
)
