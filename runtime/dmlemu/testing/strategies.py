"""Strategies of tensor descs: every kind of legal layout, and descs that break one rule each.

Sizes, strides, gaps and offsets are drawn one by one, and what is plain (packed, few dimensions, small
sizes) is drawn first: failures shrink to it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from math import prod
from typing import Any, Literal, NamedTuple, get_args

from hypothesis import strategies as st

from ..dml import TENSOR_DIMENSION_COUNT_MAX1, BufferTensorDesc, TensorDataType, TensorFlags
from ..dml.overlap import shared_element
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
    # strides, of which a layout has one kind
    "packed",
    "padded",
    "permuted",
    "reversed",
    "interleaved",
    "broadcast",
    "overlapping",
    # what may come on top of each
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
    """The kinds asked for that are possible, in the order of shrinking."""
    if isinstance(kinds, str):
        raise ValueError(f"kinds must be a list of kinds, not the text {kinds!r}")
    wanted = KINDS if kinds is None else tuple(kinds)
    unknown = [kind for kind in wanted if kind not in KINDS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no kind of layout; there are {', '.join(KINDS)}")
    possible = tuple(kind for kind in KINDS if kind in wanted and not (output and kind in INPUT_ONLY))
    if not possible:
        raise ValueError(f"an output cannot be {' or '.join(wanted) or 'of no kind'}")
    return possible


@st.composite
def _layouts(
    draw: st.DrawFn, sizes: tuple[int, ...], data_type: TensorDataType, kinds: tuple[LayoutKind, ...]
) -> BufferTensorDesc:
    of_strides = [kind for kind in _STRIDES if kind in kinds] or ["packed"]
    kind = draw(st.sampled_from(of_strides))
    strides: list[int] | None = None
    if kind != "packed":
        strides = draw(_STRATEGIES[kind](sizes, "permuted" in kinds))
    if "size_1" in kinds and draw(_rarely) and 1 in sizes:  # drawn for all sizes: see _each
        steps = packed_strides(sizes) if strides is None else strides
        odd = draw(_each(st.sampled_from([1, 0, 2, 3, 1000]), sizes))
        strides = [any_ if size == 1 else step for size, step, any_ in zip(sizes, steps, odd, strict=True)]
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


# --- strides; a strategy's second argument says whether dimensions may change their order ---


def packed_strides(sizes: Sequence[int], order: Sequence[int] | None = None) -> list[int]:
    """Strides without gaps; the last dimension of ``order`` is the fastest."""
    strides, step = [0] * len(sizes), 1
    for d in reversed(range(len(sizes)) if order is None else order):
        strides[d] = step
        step *= sizes[d]
    return strides


def _each(numbers: st.SearchStrategy[int], sizes: Sequence[int]) -> st.SearchStrategy[list[int]]:
    """A number for each dimension.

    As many are drawn for every rank, and the last dimension gets the last one: so an example shrinks to
    fewer dimensions without turning into another layout.
    """
    most = max(TENSOR_DIMENSION_COUNT_MAX1, len(sizes))
    lists = st.lists(numbers, min_size=most, max_size=most)
    return lists.map(lambda drawn: drawn[most - len(sizes) :])


_gaps = st.integers(0, 3)
_ranks = st.integers(0, TENSOR_DIMENSION_COUNT_MAX1 - 1)


def _orders(sizes: Sequence[int]) -> st.SearchStrategy[list[int]]:
    """Dimensions in any order, the fastest last."""
    ranked = _each(_ranks, sizes)
    return ranked.map(lambda ranks: sorted(range(len(sizes)), key=lambda d: ranks[d]))


def _permuted(sizes: Sequence[int], _: bool) -> st.SearchStrategy[list[int]]:
    return _orders(sizes).map(lambda order: packed_strides(sizes, order))


def _reversed(sizes: Sequence[int], _: bool) -> st.SearchStrategy[list[int]]:
    return st.just(packed_strides(sizes, range(len(sizes))[::-1]))


@st.composite
def _padded(draw: st.DrawFn, sizes: Sequence[int], reorder: bool) -> list[int]:
    between, after = draw(_each(_gaps, sizes)), draw(_each(_gaps, sizes))
    order = draw(_orders(sizes)) if reorder else range(len(sizes))
    strides, step = [0] * len(sizes), 1
    for d in reversed(order):
        strides[d] = step + between[d]
        step = strides[d] * (sizes[d] - 1) + step + after[d]
    return strides


def _interleaved(sizes: Sequence[int], _: bool) -> st.SearchStrategy[list[int]]:
    """Any strides that give each element a place of its own; a nested layout when those drawn do not."""
    nested = packed_strides(sizes, range(len(sizes))[::-1])
    drawn = _each(st.integers(1, 2 * prod(sizes)), sizes)
    return drawn.map(lambda strides: strides if shared_element(sizes, strides) is None else nested)


@st.composite
def _broadcast(draw: st.DrawFn, sizes: Sequence[int], reorder: bool) -> list[int]:
    repeats = draw(_each(st.integers(0, 1), sizes))
    order = draw(_orders(sizes)) if reorder else None
    strides = packed_strides([1 if repeat else n for n, repeat in zip(sizes, repeats, strict=True)], order)
    return [0 if repeat else stride for stride, repeat in zip(strides, repeats, strict=True)]


def _overlapping(sizes: Sequence[int], _: bool) -> st.SearchStrategy[list[int]]:
    return _each(st.integers(0, 5), sizes)


_STRATEGIES: dict[str, Callable[[Sequence[int], bool], st.SearchStrategy[list[int]]]] = {
    "padded": _padded,
    "permuted": _permuted,
    "reversed": _reversed,
    "interleaved": _interleaved,
    "broadcast": _broadcast,
    "overlapping": _overlapping,
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
    return IllegalTensorDesc(desc, "TENSOR_DTYPE", draw(st.booleans()))


@st.composite
def _rank(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    rank = draw(st.sampled_from([0, 9, 10, 16]))
    sizes = [draw(st.integers(1, 2)) for _ in range(rank)]
    return IllegalTensorDesc(BufferTensorDesc(data_type, sizes), "TENSOR_RANK", draw(st.booleans()))


@st.composite
def _zero_size(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    desc = draw(_base(data_type))
    sizes = list(desc.sizes)
    sizes[draw(st.integers(0, desc.rank - 1))] = 0
    return IllegalTensorDesc(replace(desc, sizes=sizes), "TENSOR_SIZE_ZERO", draw(st.booleans()))


@st.composite
def _too_many_elements(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """More elements than 32 bits count, all at one place: an input, and its extent is small."""
    sizes = [2**16, 2**16 + draw(st.integers(0, 9)), *draw(shapes(0, 3, 9))]
    return IllegalTensorDesc(
        BufferTensorDesc(data_type, sizes, [0] * len(sizes)), "TENSOR_INDEX_OVERFLOW", False
    )


@st.composite
def _too_far(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Few elements, the last one further away than 32 bits reach."""
    stride = 2**32 - 1 - draw(st.integers(0, 9))
    desc = BufferTensorDesc(data_type, [2, draw(st.integers(11, 20))], [stride, 1])
    return IllegalTensorDesc(desc, "TENSOR_INDEX_OVERFLOW", draw(st.booleans()))


@st.composite
def _small_total(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    desc = draw(_base(data_type))
    least = BufferTensorDesc(data_type, desc.sizes, desc.strides).size_in_bytes
    total = 4 * draw(st.integers(0, least // 4 - 1))
    desc = replace(desc, total_tensor_size_in_bytes=total)
    return IllegalTensorDesc(desc, "TENSOR_TOTAL_SMALL", draw(st.booleans()))


@st.composite
def _unaligned_total(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    desc = draw(_base(data_type))
    total = desc.size_in_bytes + draw(st.integers(1, 3))
    desc = replace(desc, total_tensor_size_in_bytes=total)
    return IllegalTensorDesc(desc, "TENSOR_TOTAL_UNALIGNED", draw(st.booleans()))


@st.composite
def _bad_alignment(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Not a power of two, or less than an element."""
    too_small = [size for size in (1, 2, 4) if size < _element_bytes(data_type)]
    alignment = draw(st.sampled_from([3, 12, 24, 48, 100, 2**31 + 1, *too_small]))
    desc = replace(draw(_base(data_type)), guaranteed_base_offset_alignment=alignment)
    return IllegalTensorDesc(desc, "TENSOR_ALIGN_BAD", draw(st.booleans()))


@st.composite
def _flags(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Unknown ones, or an output that belongs to DirectML."""
    owned_output = draw(st.booleans())
    flags = TensorFlags.OWNED_BY_DML if owned_output else draw(st.sampled_from([2, 4, 2**31]))
    desc = replace(draw(_base(data_type)), flags=TensorFlags(flags))
    return IllegalTensorDesc(desc, "OP_FIELD_RANGE", owned_output or draw(st.booleans()))


@st.composite
def _output_broadcast(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    sizes = draw(shapes(max_rank=4, max_elements=60).filter(lambda sizes: max(sizes) > 1))
    repeated = draw(st.sampled_from([d for d, size in enumerate(sizes) if size > 1]))
    strides = packed_strides([1 if d == repeated else size for d, size in enumerate(sizes)])
    strides[repeated] = 0
    return IllegalTensorDesc(BufferTensorDesc(data_type, sizes, strides), "TENSOR_OUT_BROADCAST", True)


@st.composite
def _output_overlap(draw: st.DrawFn, data_type: TensorDataType) -> IllegalTensorDesc:
    """Rows that begin inside the row before."""
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    sizes, strides = [rows, columns], [draw(st.integers(1, columns - 1)), 1]
    if draw(st.booleans()):
        sizes, strides = sizes[::-1], strides[::-1]
    return IllegalTensorDesc(BufferTensorDesc(data_type, sizes, strides), "TENSOR_OUT_OVERLAP", True)


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
