"""Strategies of tensor descs: everything they promise occurs, and all of it is legal, or illegal for one
reason."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc
from dmlemu.dml import TensorDataType as T
from dmlemu.errors import Error
from dmlemu.testing import IllegalTensorDesc, LayoutKind, illegal_tensor_descs, layouts_of, tensor_descs
from dmlemu.testing.strategies import DATA_TYPES, INPUT_ONLY, KINDS

from .search import occurs, smallest

NEWEST = max(dml.FeatureLevel)
SIZES = [2, 1, 3]
BITS = {"4": 4, "8": 8, "6": 16, "2": 32}  # by the last digit of the type's name; 64 below


def bits(data_type: T) -> int:
    return 64 if data_type.name.endswith("64") else BITS[data_type.name[-1]]


def places(desc: BufferTensorDesc) -> list[int]:
    """Where each element stands, in elements, in logical order."""
    strides = desc.effective_strides
    return [
        sum(i * s for i, s in zip(index, strides, strict=True))
        for index in product(*(range(n) for n in desc.sizes))
    ]


def is_dense(desc: BufferTensorDesc) -> bool:
    return sorted(places(desc)) == list(range(prod(desc.sizes)))


def is_nested(desc: BufferTensorDesc) -> bool:
    """Each dimension steps over all that the faster ones reach."""
    reach = 0
    for stride, size in sorted(zip(desc.effective_strides, desc.sizes, strict=True)):
        if size > 1 and stride <= reach:
            return False
        reach += (size - 1) * stride
    return True


def repeats(desc: BufferTensorDesc) -> bool:
    return any(n > 1 and s == 0 for n, s in zip(desc.sizes, desc.effective_strides, strict=True))


def least(desc: BufferTensorDesc) -> int:
    return -(-(max(places(desc)) + 1) * bits(desc.data_type) // 32) * 4


SHOWS = {
    "packed": lambda desc: desc.strides is None,
    "padded": lambda desc: not is_dense(desc) and is_nested(desc) and not repeats(desc),
    "permuted": lambda desc: is_dense(desc) and places(desc) != list(range(6)),
    "reversed": lambda desc: list(desc.strides or ()) == [1, 2, 2],
    "interleaved": lambda desc: not is_nested(desc) and len(set(places(desc))) == 6,
    "broadcast": lambda desc: repeats(desc) and len(set(places(desc))) > 1,
    "overlapping": lambda desc: not repeats(desc) and len(set(places(desc))) < 6,
    "size_1": lambda desc: is_dense(desc) and desc.effective_strides[1] not in (1, 3),
    "larger_total": lambda desc: desc.size_in_bytes > least(desc),
    "aligned": lambda desc: desc.guaranteed_base_offset_alignment > 0,
    "owned": lambda desc: desc.owned_by_dml,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_layout_occurs(kind: LayoutKind) -> None:
    assert set(SHOWS) == set(KINDS)
    occurs(layouts_of(SIZES, T.FLOAT32, kinds=[kind]), SHOWS[kind])
    occurs(layouts_of(SIZES, T.FLOAT32), SHOWS[kind])
    if kind not in INPUT_ONLY:
        occurs(layouts_of(SIZES, T.FLOAT32, output=True), SHOWS[kind])


@given(layouts_of(SIZES, T.FLOAT32, kinds=["packed", "larger_total"]))
def test_no_other_kinds_than_those_asked_for(desc: BufferTensorDesc) -> None:
    assert desc.strides is None and not desc.guaranteed_base_offset_alignment and not desc.flags


@given(layouts_of(SIZES, T.FLOAT32, kinds=["padded"]))
def test_padded_keeps_the_order_of_dimensions_unless_permuted_is_asked_for(desc: BufferTensorDesc) -> None:
    assert places(desc) == sorted(places(desc))


def test_kinds_are_checked() -> None:
    with pytest.raises(ValueError, match="'pakced' is not a kind of layout; there are packed, padded"):
        layouts_of(SIZES, T.FLOAT32, kinds=["pakced"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="an output cannot be broadcast or owned"):
        tensor_descs(kinds=["broadcast", "owned"], output=True)
    with pytest.raises(ValueError, match="not the text 'packed'"):
        layouts_of(SIZES, T.FLOAT32, kinds="packed")  # type: ignore[arg-type]


@pytest.mark.parametrize("output", [False, True])
@settings(max_examples=150)
@given(data=st.data())
def test_tensor_descs_are_legal(output: bool, data: st.DataObject) -> None:
    desc = data.draw(tensor_descs(output=output))

    desc.check("Tensor", "CreateOperator", NEWEST, output=output)
    assert not broken_rules(desc, output)


@pytest.mark.parametrize("data_type", DATA_TYPES, ids=lambda kind: kind.name)
def test_every_type_occurs_and_can_be_asked_for(data_type: T) -> None:
    occurs(tensor_descs(), lambda desc: desc.data_type is data_type)
    assert occurs(tensor_descs(data_types=[data_type]), lambda _: True).data_type is data_type


@pytest.mark.parametrize("rank", range(1, 9))
def test_every_rank_occurs(rank: int) -> None:
    occurs(tensor_descs(), lambda desc: desc.rank == rank)


def test_examples_shrink_to_the_plainest() -> None:
    assert smallest(tensor_descs(data_types=[T.INT8])) == BufferTensorDesc(T.INT8, [1])
    assert smallest(tensor_descs(), lambda desc: desc.rank == 3) == BufferTensorDesc(T.FLOAT32, [1, 1, 1])
    padded = smallest(tensor_descs(data_types=[T.INT8], output=True), lambda desc: not is_dense(desc))
    assert padded == BufferTensorDesc(T.INT8, [2], [2])
    shared = smallest(tensor_descs(data_types=[T.INT8]), lambda d: len(set(places(d))) < len(places(d)))
    assert shared == BufferTensorDesc(T.INT8, [2], [0])


# --- illegal ones ---


def broken_rules(desc: BufferTensorDesc, output: bool) -> set[str]:
    """The documented rules, each by itself, told from the desc by brute force."""
    strides, found = desc.effective_strides, set()
    element = max(1, bits(desc.data_type) // 8) if desc.data_type is not T.UNKNOWN else 0
    alignment, flags = desc.guaranteed_base_offset_alignment, int(desc.flags)
    extent = 1 + sum((n - 1) * s for n, s in zip(desc.sizes, strides, strict=True)) if all(desc.sizes) else 0
    if desc.data_type is T.UNKNOWN:
        found.add("TENSOR_DTYPE")
    if not 1 <= desc.rank <= 8:
        found.add("TENSOR_RANK")
    if 0 in desc.sizes:
        found.add("TENSOR_SIZE_ZERO")
    if max(prod(desc.sizes), extent) >= 2**32:
        found.add("TENSOR_INDEX_OVERFLOW")
    if desc.data_type is not T.UNKNOWN and desc.size_in_bytes * 8 < extent * bits(desc.data_type):
        found.add("TENSOR_TOTAL_SMALL")
    if desc.size_in_bytes % 4:
        found.add("TENSOR_TOTAL_UNALIGNED")
    if alignment and (alignment.bit_count() != 1 or alignment < element):
        found.add("TENSOR_ALIGN_BAD")
    if flags not in (0, 1) or (flags and output):
        found.add("OP_FIELD_RANGE")
    if output and all(desc.sizes) and prod(desc.sizes) < 10_000 and len(set(places(desc))) < prod(desc.sizes):
        found.add("TENSOR_OUT_BROADCAST" if repeats(desc) else "TENSOR_OUT_OVERLAP")
    return found


CHECKS = {
    "OP_FIELD_RANGE",
    "TENSOR_ALIGN_BAD",
    "TENSOR_DTYPE",
    "TENSOR_INDEX_OVERFLOW",
    "TENSOR_OUT_BROADCAST",
    "TENSOR_OUT_OVERLAP",
    "TENSOR_RANK",
    "TENSOR_SIZE_ZERO",
    "TENSOR_TOTAL_SMALL",
    "TENSOR_TOTAL_UNALIGNED",
}


@settings(max_examples=200)
@given(illegal_tensor_descs())
def test_illegal_descs_break_one_rule_and_are_refused_for_it(case: IllegalTensorDesc) -> None:
    desc, check, output = case

    assert broken_rules(desc, output) == {check}
    with pytest.raises(Error) as caught:
        desc.check("Tensor", "CreateOperator", NEWEST, output=output)
    assert caught.value.report.id == check


@pytest.mark.parametrize("check", sorted(CHECKS))
def test_every_rule_is_broken(check: str) -> None:
    desc = smallest(illegal_tensor_descs(data_types=[T.INT64]), lambda case: case.check == check).desc

    assert desc.rank <= 2 or check == "TENSOR_RANK"
    assert desc.data_type is (T.UNKNOWN if check == "TENSOR_DTYPE" else T.INT64)
