"""Buffer tensor descs: DMLCalcBufferTensorSize and the rules TN1 to TN8, each violated alone."""

from __future__ import annotations

import itertools
import time
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlemu import Session, d3d12, dml
from dmlemu.dml.overlap import shared_element
from dmlemu.errors import Error, HResult

T = dml.TensorDataType
LEVELS = dml.FeatureLevel
U32 = 2**32 - 1


def refused(
    desc: dml.BufferTensorDesc, *, output: bool = False, level: LEVELS = LEVELS.LEVEL_6_4
) -> tuple[str, str, str]:
    """Checks a desc that violates one rule: (check id, rule id, field)."""
    with pytest.raises(Error) as caught:
        desc.check("OutputTensor" if output else "InputTensor", "CreateOperator", level, output=output)
    assert caught.value.hresult is HResult.E_INVALIDARG
    report = caught.value.report
    assert report.field in report.message
    return report.id, report.rule.split(":")[0], report.field


def accepted(desc: dml.BufferTensorDesc, *, output: bool = False, level: LEVELS = LEVELS.LEVEL_6_4) -> bool:
    desc.check("Tensor", "CreateOperator", level, output=output)
    return True


def f32(sizes: list[int], strides: list[int] | None = None, **fields: int) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(T.FLOAT32, sizes, strides, **fields)


# --- DMLCalcBufferTensorSize ---


@pytest.mark.parametrize(
    ("data_type", "sizes", "strides", "expected"),
    [
        (T.FLOAT32, [1, 2, 3, 4], None, 96),
        (T.FLOAT16, [3], None, 8),  # 6 bytes, rounded up
        (T.UINT8, [1], None, 4),
        (T.FLOAT64, [2, 2], None, 32),
        (T.INT64, [3], [5], 88),
        (T.INT8, [2, 3], [8, 2], 16),  # last element at 8 + 4
        (T.FLOAT32, [4, 4], [0, 1], 16),
        (T.UINT4, [5], None, 4),  # 20 bits
        (T.INT4, [9], None, 8),  # 36 bits
        (T.UINT4, [2, 3], [9, 1], 8),  # last nibble is 11
        (T.UNKNOWN, [4], None, 0),
        (T.FLOAT32, [0, 4], [4, 1], 0),
    ],
)
def test_calc_buffer_tensor_size(
    data_type: T, sizes: list[int], strides: list[int] | None, expected: int
) -> None:
    assert dml.calc_buffer_tensor_size(data_type, sizes, strides) == expected


@given(
    st.sampled_from([kind for kind in T if kind != T.UNKNOWN]),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 50)), min_size=1, max_size=8),
)
def test_calc_buffer_tensor_size_reaches_just_the_last_element(
    kind: T, dimensions: list[tuple[int, int]]
) -> None:
    sizes, strides = [n for n, _ in dimensions], [s for _, s in dimensions]
    bits = {"4": 4, "8": 8, "16": 16, "32": 32, "64": 64}[kind.name.lstrip("UINTFLOA")]
    last = sum((n - 1) * s for n, s in dimensions)
    size = dml.calc_buffer_tensor_size(kind, sizes, strides)
    assert size % 4 == 0
    assert size * 8 >= (last + 1) * bits > (size - 4) * 8


# --- the dataclass ---


def test_total_size_is_computed_when_left_out() -> None:
    assert f32([2, 3]).total_tensor_size_in_bytes == 24
    assert f32([2, 3], [8, 1]).total_tensor_size_in_bytes == 44


def test_descs_are_values() -> None:
    assert f32([2, 3]) == f32([2, 3])  # sizes are kept as tuples
    assert hash(f32([2, 3])) == hash(f32([2, 3]))
    assert f32([2, 3]).effective_strides == (3, 1)
    with pytest.raises(AttributeError):
        f32([2, 3]).sizes = (1,)  # type: ignore[misc]


def test_numpy_integers_are_welcome() -> None:
    desc = dml.BufferTensorDesc(T.FLOAT32, np.array([2, 3]), np.array([3, 1], np.uint8), np.int64(24))
    assert desc.sizes == (2, 3)
    assert all(type(n) is int for n in (*desc.sizes, *desc.strides, desc.total_tensor_size_in_bytes))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("Sizes[1]", {"sizes": [2, -1]}),
        ("Sizes[0]", {"sizes": [2**32]}),
        ("Sizes[0]", {"sizes": [1.0]}),
        ("Sizes[0]", {"sizes": [True]}),
        ("Sizes[0]", {"sizes": [np.bool_(True)]}),
        ("Sizes[0]", {"sizes": [None]}),
        ("Sizes[0]", {"sizes": ["x" * 10_000]}),
        ("Sizes", {"sizes": 4}),
        ("Sizes", {"sizes": None}),
        ("Sizes", {"sizes": "12"}),
        ("Strides[0]", {"sizes": [2], "strides": [-4]}),
        ("Strides[0]", {"sizes": [2], "strides": [2**40]}),
        ("TotalTensorSizeInBytes", {"sizes": [2], "total_tensor_size_in_bytes": 2**64}),
        ("TotalTensorSizeInBytes", {"sizes": [2], "total_tensor_size_in_bytes": 8.0}),
        ("GuaranteedBaseOffsetAlignment", {"sizes": [2], "guaranteed_base_offset_alignment": -16}),
        ("Flags", {"sizes": [2], "flags": "OWNED_BY_DML"}),
    ],
)
def test_what_the_struct_cannot_hold_is_refused_at_once(field: str, arguments: dict[str, object]) -> None:
    with pytest.raises(Error) as caught:
        dml.BufferTensorDesc(T.FLOAT32, **arguments)  # type: ignore[arg-type]
    assert caught.value.hresult is HResult.E_INVALIDARG
    assert caught.value.report.field == field
    assert len(str(caught.value)) < 500


# --- TN1: data type ---


def test_TN1_unknown_data_type() -> None:
    desc = dml.BufferTensorDesc(T.UNKNOWN, [1, 1, 1, 1])
    assert refused(desc) == ("TENSOR_DTYPE", "TN1", "InputTensor.DataType")


def test_TN1_no_data_type_at_all() -> None:
    with pytest.raises(Error) as caught:
        dml.BufferTensorDesc(14, [1])  # type: ignore[arg-type]
    assert (caught.value.report.id, caught.value.report.field) == ("TENSOR_DTYPE", "DataType")


# --- TN2: rank ---


@pytest.mark.parametrize("rank", [0, 9, 1000])
def test_TN2_rank(rank: int) -> None:
    assert refused(f32([1] * rank)) == ("TENSOR_RANK", "TN2", "InputTensor.DimensionCount")


@pytest.mark.parametrize("rank", [6, 8])
def test_TN2_rank_below_feature_level_3_0(rank: int) -> None:
    desc = f32([1] * rank)
    assert accepted(desc, level=LEVELS.LEVEL_3_0)
    field = "InputTensor.DimensionCount"
    assert refused(desc, level=LEVELS.LEVEL_2_1) == ("TENSOR_RANK", "TN2", field)


def test_TN2_names_the_level_once() -> None:
    with pytest.raises(Error) as caught:
        f32([1] * 9).check("InputTensor", "CreateOperator", LEVELS.LEVEL_6_4, output=False)
    assert caught.value.report.message.endswith("the limit of feature level 6_4.")


# --- TN3: extent ---


def test_TN3_size_zero() -> None:
    assert refused(f32([1, 0, 3])) == ("TENSOR_SIZE_ZERO", "TN3", "InputTensor.Sizes[1]")


def test_TN3_element_count() -> None:
    assert accepted(f32([1, U32]))
    assert refused(f32([65536, 65536])) == ("TENSOR_INDEX_OVERFLOW", "TN3", "InputTensor.Sizes")
    # Broadcasting does not reduce the count.
    broadcast = f32([65536, 65536], [0, 1])
    assert refused(broadcast) == ("TENSOR_INDEX_OVERFLOW", "TN3", "InputTensor.Sizes")


def test_TN3_extent() -> None:
    assert accepted(f32([2], [U32 - 1]))
    assert refused(f32([2], [U32])) == ("TENSOR_INDEX_OVERFLOW", "TN3", "InputTensor.Strides")


# --- TN4: strides ---


def test_TN4_strides_per_dimension() -> None:
    with pytest.raises(Error) as caught:
        f32([2, 3], [1])
    report = caught.value.report
    assert (report.id, report.field, report.rule[:3]) == ("TENSOR_RANK", "Strides", "TN4")
    (where,) = report.context
    assert where.startswith("While calling BufferTensorDesc at test_tensor_desc.py:")


@pytest.mark.parametrize("strides", [[12, 4, 1], [1, 4, 12], [0, 0, 0], [1, 1, 1], [7, 0, 2]])
def test_TN4_any_order_broadcast_and_overlap_are_legal_for_inputs(strides: list[int]) -> None:
    assert accepted(f32([2, 3, 4], strides))


# --- TN5: output elements have distinct addresses ---


def test_TN5_output_broadcast() -> None:
    desc = f32([2, 3], [0, 1])
    assert refused(desc, output=True) == ("TENSOR_OUT_BROADCAST", "TN5", "OutputTensor.Strides[0]")
    assert accepted(desc)
    assert accepted(f32([1, 3], [0, 1]), output=True)  # a dimension of one element repeats nothing


def test_TN5_output_overlap() -> None:
    desc = f32([2, 4], [2, 1])
    assert refused(desc, output=True) == ("TENSOR_OUT_OVERLAP", "TN5", "OutputTensor.Strides")
    assert accepted(desc)
    with pytest.raises(Error, match=r"elements \(0, 2\) and \(1, 0\) at one address"):
        desc.check("OutputTensor", "CreateOperator", LEVELS.LEVEL_6_4, output=True)


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [
        ([2, 3, 4], [12, 4, 1]),
        ([2, 3, 4], [1, 2, 6]),  # permuted
        ([2, 3, 4], [100, 10, 1]),  # padded
        ([3, 2], [2, 3]),  # interleaved: 0 2 4 and 3 5 7
    ],
)
def test_TN5_outputs_without_overlap(sizes: list[int], strides: list[int]) -> None:
    assert accepted(f32(sizes, strides), output=True)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 40)), min_size=1, max_size=5))
def test_TN5_overlap_test_is_exact(dimensions: list[tuple[int, int]]) -> None:
    sizes, strides = [n for n, _ in dimensions], [s for _, s in dimensions]

    def address(index: tuple[int, ...]) -> int:
        return sum(i * s for i, s in zip(index, strides, strict=True))

    places = {address(index) for index in itertools.product(*map(range, sizes))}
    pair = shared_element(sizes, strides)
    assert (pair is None) == (len(places) == prod(sizes))
    if pair is not None:
        first, second = pair
        assert first != second
        assert address(first) == address(second)
        assert all(0 <= i < n for index in pair for i, n in zip(index, sizes, strict=True))


@pytest.mark.parametrize(
    ("sizes", "strides", "overlaps"),
    [
        ([16] * 8, [2**28 - k * 7919 for k in range(8)], True),
        ([65536, 65535], [65536, 65537], False),
        ([2] * 8, [2**24 + 2**k for k in range(8)], False),  # sums of different powers
        ([15, 16, 13, 14, 15, 16, 13, 11], [9999991 + 65537 * k * k for k in range(8)], True),
        ([2**31, 2], [1, 2**31], False),
        ([2**31, 2], [1, 2**31 - 1], True),
        ([3, 2**29], [2**29 - 1, 3], False),
    ],
)
def test_TN5_overlap_test_never_hangs(sizes: list[int], strides: list[int], overlaps: bool) -> None:
    start = time.perf_counter()
    assert (shared_element(sizes, strides) is not None) == overlaps
    assert time.perf_counter() - start < 5


# --- TN6: total size ---


def test_TN6_total_too_small() -> None:
    field = "InputTensor.TotalTensorSizeInBytes"
    assert refused(f32([2, 3], total_tensor_size_in_bytes=20)) == ("TENSOR_TOTAL_SMALL", "TN6", field)
    strided = f32([2, 3], [8, 1], total_tensor_size_in_bytes=40)
    assert refused(strided) == ("TENSOR_TOTAL_SMALL", "TN6", field)


def test_TN6_total_unaligned() -> None:
    desc = dml.BufferTensorDesc(T.UINT8, [2], total_tensor_size_in_bytes=6)
    field = "InputTensor.TotalTensorSizeInBytes"
    assert refused(desc) == ("TENSOR_TOTAL_UNALIGNED", "TN6", field)


def test_TN6_larger_totals_are_padding() -> None:
    assert accepted(f32([2, 3], total_tensor_size_in_bytes=2**40), output=True)


# --- TN7: guaranteed alignment ---


@pytest.mark.parametrize("alignment", [2, 3, 24, 2**31 + 4])
def test_TN7_alignment(alignment: int) -> None:
    desc = f32([4], guaranteed_base_offset_alignment=alignment)
    field = "InputTensor.GuaranteedBaseOffsetAlignment"
    assert refused(desc) == ("TENSOR_ALIGN_BAD", "TN7", field)


@pytest.mark.parametrize("alignment", [0, 4, 16, 2**31])
def test_TN7_good_alignment(alignment: int) -> None:
    assert accepted(f32([4], guaranteed_base_offset_alignment=alignment))


# --- TN8: flags ---


def test_TN8_output_owned_by_dml() -> None:
    desc = f32([4], flags=dml.TensorFlags.OWNED_BY_DML)
    assert accepted(desc)
    assert refused(desc, output=True) == ("OP_FIELD_RANGE", "TN8", "OutputTensor.Flags")


def test_TN8_unknown_flags() -> None:
    assert refused(f32([4], flags=2)) == ("OP_FIELD_RANGE", "TN8", "InputTensor.Flags")


# --- NumPy's data types are not DirectML's ---


FROM_ARRAY = "dml.BufferTensorDesc.from_array takes data type, sizes and strides from an array"


@pytest.mark.parametrize(
    ("given", "spelled", "hint"),
    [
        (np.float32, "numpy.float32", f"NumPy's float32 is dml.TensorDataType.FLOAT32; {FROM_ARRAY}"),
        (np.dtype(np.int8), "numpy.int8", f"NumPy's int8 is dml.TensorDataType.INT8; {FROM_ARRAY}"),
        (np.dtype(">u2"), "numpy.uint16", f"NumPy's uint16 is dml.TensorDataType.UINT16; {FROM_ARRAY}"),
        ("f2", "'f2'", f"NumPy's float16 is dml.TensorDataType.FLOAT16; {FROM_ARRAY}"),
        ("UINT4", "'UINT4'", "use dml.TensorDataType.UINT4"),
        (np.complex64, "numpy.complex64", "DirectML has no data type for NumPy's complex64"),
        (float, "<class 'float'>", ""),
        ("words", "'words'", ""),
        (99, "99", ""),
    ],
)
def test_a_type_of_numpy_is_told_with_ours(given: Any, spelled: str, hint: str) -> None:
    device = dml.create_device(d3d12.create_device())
    member = dml.ScalarUnion()
    fill = dml.FillValueConstantOperatorDesc(
        output_tensor=dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, [4]),
        value_data_type=given,
        value=member,
    )
    asked = dml.FeatureQueryTensorDataTypeSupport(given)
    for field, call in (
        ("DataType", lambda: dml.BufferTensorDesc(given, [4])),
        ("DataType", lambda: dml.ScalarUnion.of(given, 1)),
        ("DataType", lambda: device.check_feature_support(dml.Feature.TENSOR_DATA_TYPE_SUPPORT, asked)),
        ("ValueDataType", lambda: device.create_operator(fill)),
    ):
        with pytest.raises(Error) as raised:
            call()
        report = raised.value.report
        assert report.message == f"{field} ({spelled}) is not a DML_TENSOR_DATA_TYPE."
        assert (report.given, report.expected, report.hint) == (spelled, "a DML_TENSOR_DATA_TYPE", hint)


def test_our_types_are_none_of_numpy() -> None:
    with Session() as s:
        buffer = s.upload("x", np.zeros(4, np.float32))
        with pytest.raises(
            TypeError, match=r"not <TensorDataType.FLOAT32: 1>: np.float32 has its elements\."
        ):
            s.read(buffer, dml.TensorDataType.FLOAT32)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"not <TensorDataType.UINT4: 12>\."):
            s.read(buffer, dml.TensorDataType.UINT4)  # type: ignore[arg-type]
