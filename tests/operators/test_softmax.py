"""The softmax family: SOFTMAX, LOG_SOFTMAX and HARDMAX, with and without Axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import assert_parts_have_the_same_bits, compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, shapes, tensors, values

from dmlemu import dml, evaluate
from dmlemu.dml import BufferTensorDesc, OperatorType
from dmlemu.dml import TensorDataType as T

NAN, INF = float("nan"), float("inf")
SOFTMAX, LOG, HARD = (
    dml.ActivationSoftmax1OperatorDesc,
    dml.ActivationLogSoftmax1OperatorDesc,
    dml.ActivationHardmax1OperatorDesc,
)
FIRST = [
    dml.ActivationSoftmaxOperatorDesc,
    dml.ActivationLogSoftmaxOperatorDesc,
    dml.ActivationHardmaxOperatorDesc,
]
each_kind = pytest.mark.parametrize("kind", [SOFTMAX, LOG, HARD], ids=lambda kind: kind.TYPE.name)
each_first = pytest.mark.parametrize("kind", FIRST, ids=lambda kind: kind.TYPE.name)


def run(kind: Any, numbers: Any, axes: list[int] | None = None, data_type: T = T.FLOAT32) -> Array:
    """Of a first version without axes."""
    x = np.array(numbers, dtype_of(data_type))
    packed = tensor(data_type, *x.shape)
    fields: Any = {} if axes is None else {"axes": axes}
    desc = kind(input_tensor=packed, output_tensor=packed, **fields)
    return compare(desc, {"input_tensor": x}, scale=np.ones_like(x))["output_tensor"]


def test_softmax() -> None:
    assert run(SOFTMAX, [0, 0, 0, 0], [0]).tolist() == [0.25] * 4
    three = np.float32([1, 3]) / np.float32(4)
    assert run(SOFTMAX, [0, np.log(3)], [0]).tolist() == pytest.approx(three.tolist(), rel=1e-6)
    assert run(SOFTMAX, [[5]], [0, 1]).tolist() == [[1]]


def test_the_errors_of_exponential_and_sum_add_up() -> None:
    """To 3 units in the last place: one exponential is too small here, the other one too large."""
    run(SOFTMAX, [float.fromhex("-0x1.a36d7p+2"), float.fromhex("0x1.4ed652p+2")], [0])


def test_log_softmax() -> None:
    assert run(LOG, [0, 0], [0]).tolist() == [np.float32(-np.log(2))] * 2
    assert run(LOG, [0, -335], [0]).tolist() == [0, -335]


def test_hardmax_takes_the_first_of_equal_elements() -> None:
    assert run(HARD, [[3, 7, 7], [2, 1, 0]], [1]).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert run(HARD, [[3, 7, 7], [8, 7, 0]], [0]).tolist() == [[0, 1, 1], [1, 0, 0]]
    assert run(HARD, [[0, 1], [1, 0]], [1, 0]).tolist() == [[0, 1], [0, 0]]
    assert run(HARD, [[-0.0, 0.0]], [1]).tolist() == [[1, 0]]


def test_large_numbers_do_not_overflow() -> None:
    """ONNX's test_softmax_large_number."""
    x = [[0, 1, 2, 3], [10000, 10001, 10002, 10003]]
    first, second = run(SOFTMAX, x, [1])

    assert first.tolist() == pytest.approx(second.tolist(), rel=2.0**-22)
    assert first.sum() == pytest.approx(1, rel=1e-6)
    assert run(LOG, x, [1])[1].tolist() == pytest.approx([-3.4401896, -2.4401896, -1.4401897, -0.44018966])


def test_special_numbers_in_a_group() -> None:
    assert run(SOFTMAX, [-INF, 0, 0], [0]).tolist() == [0, 0.5, 0.5]
    assert run(LOG, [-INF, 0, 0], [0]).tolist() == [-INF] + [np.float32(-np.log(2))] * 2
    for kind in (SOFTMAX, LOG):
        x = [[NAN, 1, 2], [INF, 1, 2], [-INF, -INF, -INF], [1, 2, 3]]
        assert np.isnan(run(kind, x, [1])).all(1).tolist() == [True, True, True, False]
    assert run(HARD, [[NAN, 1, 2], [NAN, NAN, NAN], [INF, INF, 0], [NAN, -INF, NAN]], [1]).tolist() == [
        [0, 0, 1],
        [1, 0, 0],
        [1, 0, 0],
        [0, 1, 0],
    ]


def test_axes_are_one_group_and_need_not_be_adjacent() -> None:
    x = np.zeros((2, 3, 4), np.float32)

    assert np.unique(run(SOFTMAX, x, [2, 0])).tolist() == [np.float32(1 / 8)]
    assert run(HARD, x, [2, 0]).sum((0, 2)).tolist() == [1, 1, 1]


@each_first
def test_the_first_version_works_on_rows(kind: Any) -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3) % 4
    newer = {FIRST[0]: SOFTMAX, FIRST[1]: LOG, FIRST[2]: HARD}[kind]

    assert run(kind, x).tolist() == run(newer, x, [3]).tolist()
    assert run(kind, np.ones((1, 1, 3, 1))).shape == (1, 1, 3, 1)
    assert run(kind, [1, 2, 3]).shape == (3,)


@each_first
def test_the_effective_rank_is_at_most_2(kind: Any) -> None:
    packed = tensor(T.FLOAT32, 1, 2, 3, 4)
    op = kind(input_tensor=packed, output_tensor=packed)

    report = refused(op, "OP_SHAPE", "InputTensor.Sizes[1]", 2, 1)
    assert "effective rank" in report.message
    accepted(kind(input_tensor=tensor(T.FLOAT32, 2, 4), output_tensor=tensor(T.FLOAT32, 2, 4)))


@each_kind
def test_there_is_an_axis(kind: Any) -> None:
    refused(example(kind.TYPE, axes=[]), "OP_FIELD_RANGE", "AxisCount", 0, "1 or more")


@each_kind
@given(st.data())
def test_any_layout(kind: Any, data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    sizes = data.draw(shapes())
    axes = data.draw(st.lists(st.integers(0, len(sizes) - 1), min_size=1, unique=True))
    source = data.draw(tensors(data_type, sizes))
    op = kind(input_tensor=source, output_tensor=data.draw(tensors(data_type, sizes, output=True)), axes=axes)
    _, x = filled(source, data.draw(values("extreme", "small")))

    compare(op, {"input_tensor": x}, scale=np.ones_like(x, np.float64), offset=data.draw(offsets))


@each_kind
@pytest.mark.parametrize(
    ("sizes", "axis"), [((40_000,), 0), ((3000, 19), 0), ((2, 3000, 19), 1), ((100, 300), 0), ((19, 3000), 1)]
)
def test_groups_in_blocks(kind: Any, sizes: tuple[int, ...], axis: int) -> None:
    """Groups that the caches do not hold: exponentials are computed again, to the same bits.  Long ones
    across memory: in several blocks."""
    x = np.random.default_rng(1).normal(0, 3, sizes).astype(np.float32)
    packed = tensor(T.FLOAT32, *sizes)
    desc = kind(input_tensor=packed, output_tensor=packed, axes=[axis])
    got = evaluate(desc, input_tensor=x)["output_tensor"]

    want = desc.reference({"input_tensor": x})["output_tensor"]
    np.testing.assert_allclose(got, want, rtol=2e-7)


@pytest.mark.parametrize("kind", [SOFTMAX, LOG], ids=lambda kind: kind.TYPE.name)
@pytest.mark.parametrize("length", [15, 16, 17, 31, 64, 100, 4095, 4097])
def test_contiguous_groups_give_the_bits_of_others(kind: Any, length: int) -> None:
    """Groups that are near each other in memory pass through the loops one by one.  Exponentials are relative
    to the largest element where one is not small."""
    x = np.random.default_rng(length).normal(0, 3, (9, length)).astype(np.float32)
    special = x.copy()
    special[1, -1], special[2, 0], special[3], special[4, 0], special[5] = NAN, INF, -INF, 41, x[5] - 1000
    found, beside = set(), set()
    for strides in [(length, 1), (length + 3, 1), (1, 9), (2 * length, 2)]:
        layout = BufferTensorDesc(T.FLOAT32, [9, length], strides)
        desc = kind(input_tensor=layout, output_tensor=layout, axes=[1])
        found.add(evaluate(desc, input_tensor=x)["output_tensor"].tobytes())
        beside.add(evaluate(desc, input_tensor=special)["output_tensor"].tobytes())

    assert len(found) == len(beside) == 1
    rows = [0, 6, 7, 8]
    together, alone = (
        np.frombuffer(each.pop(), np.float32).reshape(9, length)[rows] for each in (beside, found)
    )
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("kind", [SOFTMAX, LOG], ids=lambda kind: kind.TYPE.name)
def test_outputs_past_the_caches(kind: Any) -> None:
    x = np.random.default_rng(8).normal(0, 3, (45_000, 101)).astype(np.float32)
    x[7] += 50

    def result(x: Array, axis: int) -> Array:
        packed = tensor(T.FLOAT32, *x.shape)
        desc = kind(input_tensor=packed, output_tensor=packed, axes=[axis])
        return evaluate(desc, input_tensor=x)["output_tensor"]

    assert_parts_have_the_same_bits(result, x)


def test_scipy_agrees() -> None:
    special = pytest.importorskip("scipy.special")
    x = np.random.default_rng(2).normal(0, 5, (4, 5, 6))

    for axes in ([0], [1, 2], [0, 1, 2]):
        got = run(SOFTMAX, x, axes)
        np.testing.assert_allclose(
            got, special.softmax(x.astype(np.float32).astype(float), tuple(axes)), rtol=3e-7
        )
        got = run(LOG, x, axes)
        np.testing.assert_allclose(
            got, special.log_softmax(x.astype(np.float32).astype(float), tuple(axes)), rtol=3e-7
        )


@pytest.mark.parametrize("kind", [*FIRST[1:], LOG, HARD], ids=lambda kind: kind.TYPE.name)
def test_log_softmax_and_hardmax_cannot_be_fused(kind: Any) -> None:
    fields: dict[str, Any] = {"axes": [3]} if kind in (LOG, HARD) else {}
    op = example(OperatorType.GEMM, fused_activation=kind(input_tensor=None, output_tensor=None, **fields))

    name = f"DML_OPERATOR_{kind.TYPE.name}"
    refused(op, "OP_FUSED_ACTIVATION", "FusedActivation.Type", name, "a fusable activation")
