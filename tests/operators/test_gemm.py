"""GEMM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from activations import ACTIVATIONS, activation
from examples import EXAMPLES, accepted, example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, filled, tensors, values

from dmlemu import dml, evaluate
from dmlemu.dml import FeatureLevel, MatrixTransform, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.operators.families.conversion import float64

O = OperatorType.GEMM  # noqa: E741
NONE, TRANSPOSE = MatrixTransform.NONE, MatrixTransform.TRANSPOSE
NAN = float("nan")


def gemm(a: Any, b: Any, c: Any = None, data_type: T = T.FLOAT32, **more: Any) -> Array:
    """2-D matrices; by default Alpha = Beta = 1 and no transforms."""
    given = {"alpha": 1.0, "beta": 1.0, "trans_a": NONE, "trans_b": NONE, **more}
    dtype = dml.BufferTensorDesc(data_type, [1]).dtype
    inputs = {"a_tensor": np.array(a, dtype), "b_tensor": np.array(b, dtype)}
    if c is not None:
        inputs["c_tensor"] = np.array(c, dtype)
    m = inputs["a_tensor"].shape[1 if given["trans_a"] else 0]
    n = inputs["b_tensor"].shape[0 if given["trans_b"] else 1]
    descs = {name: tensor(data_type, *array.shape) for name, array in inputs.items()}
    op = dml.GemmOperatorDesc(**descs, output_tensor=tensor(data_type, m, n), **given)
    return compare(op, inputs)["output_tensor"]


A, B = [[1, 2, 3], [4, 5, 6]], [[1, 0], [0, 1], [1, 1]]


def test_alpha_a_b_plus_beta_c() -> None:
    assert gemm(A, B).tolist() == [[4, 5], [10, 11]]
    assert gemm(A, B, [[1, 2], [3, 4]], alpha=2, beta=10).tolist() == [[18, 30], [50, 62]]


def test_transforms_swap_the_last_two_dimensions() -> None:
    at, bt = np.transpose(A), np.transpose(B)

    assert gemm(at, B, trans_a=TRANSPOSE).tolist() == [[4, 5], [10, 11]]
    assert gemm(A, bt, trans_b=TRANSPOSE).tolist() == [[4, 5], [10, 11]]
    assert gemm(at, bt, trans_a=TRANSPOSE, trans_b=TRANSPOSE).tolist() == [[4, 5], [10, 11]]


def test_beta_0_ignores_c() -> None:
    assert gemm(A, B, [[NAN, NAN], [NAN, NAN]], beta=0).tolist() == [[4, 5], [10, 11]]


def test_without_c_beta_does_not_matter() -> None:
    assert gemm(A, B, beta=NAN).tolist() == [[4, 5], [10, 11]]


def test_float16_is_accumulated_in_more_bits() -> None:
    """As FLOAT16 the sum would stick at 2048, and 256 * 256 would be infinite."""
    assert gemm([[1] * 4096], [[1]] * 4096, data_type=T.FLOAT16).tolist() == [[4096]]
    assert gemm([[256]], [[256]], [[-30016]], data_type=T.FLOAT16).tolist() == [[35520]]


def test_the_activation_sees_the_unrounded_product_of_float16() -> None:
    shift = dml.ActivationLinearOperatorDesc(alpha=1.0, beta=-2048.0)

    found = gemm([[2048, 1]], [[1], [1]], data_type=T.FLOAT16, fused_activation=shift)

    assert found.tolist() == [[1]]


def test_a_fused_clip_has_bounds_of_the_outputs_type() -> None:
    """0.1 as FLOAT16 is 0.0999755859375."""
    clip = dml.ElementWiseClipOperatorDesc(min=0.0, max=0.1)

    assert gemm([[1]], [[1]], data_type=T.FLOAT16, fused_activation=clip).tolist() == [[0.0999755859375]]
    assert gemm([[-1]], [[1]], fused_activation=clip).tolist() == [[0]]
    scaled = dml.ElementWiseClipOperatorDesc(min=0.0, max=9.0, scale_bias=dml.ScaleBias(2.0, 1.0))
    assert gemm([[3]], [[1]], fused_activation=scaled).tolist() == [[7]]


def test_a_fused_softmax_is_that_of_the_rows_or_axes_of_the_product() -> None:
    a, b = [[0, 1], [2, 0]], [[0, 1], [1, 0]]  # the product is [[1, 0], [0, 2]]
    low, high = 1 / (1 + np.exp(1)), 1 / (1 + np.exp(2))

    for data_type, error in ((T.FLOAT32, 1e-7), (T.FLOAT16, 1e-3)):
        rows = gemm(a, b, data_type=data_type, fused_activation=dml.ActivationSoftmaxOperatorDesc())
        assert np.allclose(rows, [[1 - low, low], [high, 1 - high]], atol=error)
        columns = dml.ActivationSoftmax1OperatorDesc(axes=[0])
        found = gemm(a, b, data_type=data_type, fused_activation=columns)
        assert np.allclose(found, [[1 - low, high], [low, 1 - high]], atol=error)


def test_TN10_softmax_is_fusable_from_6_1_on() -> None:
    accepted(example(O, fused_activation=dml.ActivationSoftmaxOperatorDesc()), FeatureLevel.LEVEL_6_1)
    op = example(O, fused_activation=dml.ActivationSoftmax1OperatorDesc(axes=[1, 3]))
    accepted(op, FeatureLevel.LEVEL_6_1)
    given, expected = "DML_OPERATOR_ACTIVATION_SOFTMAX1", "feature level 6_1 or higher"
    refused(op, "OP_FUSED_ACTIVATION", "FusedActivation.Type", given, expected, level=FeatureLevel.LEVEL_6_0)
    op = example(O, fused_activation=dml.ActivationSoftmax1OperatorDesc(axes=[4]))
    refused(op, "OP_FIELD_RANGE", "FusedActivation.Axes[0]", 4, "0 to 3")


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    small = st.integers(1, 9)
    batch = data.draw(st.lists(st.integers(1, 3), max_size=2))
    m, n, k = data.draw(small), data.draw(small), data.draw(st.one_of(small, st.just(40)))
    trans_a, trans_b = (
        data.draw(st.sampled_from(MatrixTransform)),
        data.draw(st.sampled_from(MatrixTransform)),
    )
    shapes = {
        "a_tensor": [*batch, *([k, m] if trans_a else [m, k])],
        "b_tensor": [*batch, *([n, k] if trans_b else [k, n])],
    }
    if data.draw(st.booleans()):
        shapes["c_tensor"] = [*batch, m, n]
    descs = {name: data.draw(tensors(data_type, sizes)) for name, sizes in shapes.items()}
    fused = data.draw(st.none() | st.sampled_from(ACTIVATIONS).flatmap(activation))
    op = dml.GemmOperatorDesc(
        **descs,
        output_tensor=data.draw(tensors(data_type, [*batch, m, n], output=True)),
        trans_a=trans_a,
        trans_b=trans_b,
        alpha=data.draw(st.sampled_from([1.0, 0.5, -2.0, 0.0])),
        beta=data.draw(st.sampled_from([1.0, 0.0, 0.25, -1.0])),
        fused_activation=fused,
    )

    # Activations jump at some values: before them only exact products.
    kinds = ["small"] if fused else ["small", "moderate"]
    inputs = {name: filled(desc, data.draw(values(*kinds)))[1] for name, desc in descs.items()}
    compare(op, inputs, scale=None if fused else magnitude(op, inputs), offset=data.draw(offsets))


def magnitude(op: Any, inputs: dict[str, Array]) -> Array:
    """What the rounding errors of the sums are proportional to."""
    absolute = {name: np.abs(np.nan_to_num(float64(x), posinf=0, neginf=0)) for name, x in inputs.items()}
    a, b = absolute["a_tensor"], absolute["b_tensor"]
    a = a.swapaxes(-1, -2) if op.trans_a else a
    b = b.swapaxes(-1, -2) if op.trans_b else b
    total = abs(op.alpha) * (a @ b)
    if op.c_tensor is not None:
        total = total + abs(op.beta) * absolute["c_tensor"]
    return np.asarray(total)


# --- rules ---


def test_k_is_the_same_in_a_and_b() -> None:
    report = refused(example(O, b_tensor=tensor(T.FLOAT32, 2, 3, 6, 4)), "OP_SHAPE", "BTensor.Sizes[3]", 4, 5)
    assert "ATensor.Sizes[3], with TransA NONE and TransB TRANSPOSE" in report.message

    refused(example(O, trans_b=NONE), "OP_SHAPE", "BTensor.Sizes[2]", 6, 5)
    refused(example(O, trans_a=TRANSPOSE), "OP_SHAPE", "BTensor.Sizes[3]", 5, 4)


def test_broadcasting_needs_strides() -> None:
    refused(example(O, b_tensor=tensor(T.FLOAT32, 2, 1, 6, 5)), "OP_NO_BROADCAST", "BTensor.Sizes[1]", 1, 3)
    op = example(O, c_tensor=tensor(T.FLOAT32, 2, 3, 1, 6))

    report = refused(op, "OP_NO_BROADCAST", "CTensor.Sizes[2]", 1, 4)
    assert "stride 0" in report.hint


def test_c_may_be_absent() -> None:
    accepted(example(O, c_tensor=None))


def test_TN10_clip_is_fusable_from_6_0_on() -> None:
    op = example(O, fused_activation=dml.ElementWiseClipOperatorDesc(min=0.0, max=6.0))

    accepted(op, FeatureLevel.LEVEL_6_0)
    level, given = FeatureLevel.LEVEL_5_2, "DML_OPERATOR_ELEMENT_WISE_CLIP"
    expected = "feature level 6_0 or higher"
    refused(op, "OP_FUSED_ACTIVATION", "FusedActivation.Type", given, expected, level=level)


def test_TN10_clip1_is_not_fusable() -> None:
    op = example(O, fused_activation=EXAMPLES[OperatorType.ELEMENT_WISE_CLIP1])

    given = "DML_OPERATOR_ELEMENT_WISE_CLIP1"
    refused(op, "OP_FUSED_ACTIVATION", "FusedActivation.Type", given, "a fusable activation")


@pytest.mark.parametrize("transform", dml.MatrixTransform)
@pytest.mark.parametrize(("m", "k", "n"), [(1, 600, 64), (7, 300, 48), (50, 20, 112), (70, 530, 64)])
def test_a_matrix_that_is_packed_once_gives_the_same_bits(
    m: int, k: int, n: int, transform: dml.MatrixTransform
) -> None:
    random = np.random.default_rng(1)
    turned = transform is dml.MatrixTransform.TRANSPOSE
    a = random.normal(0, 1, (1, 2, m, k)).astype(np.float32)
    b = random.normal(0, 1, (1, 2, n, k) if turned else (1, 2, k, n)).astype(np.float32)
    found = []
    for flags in (dml.TensorFlags.OWNED_BY_DML, dml.TensorFlags.NONE):
        op = dml.GemmOperatorDesc(
            a_tensor=dml.BufferTensorDesc(T.FLOAT32, list(a.shape)),
            b_tensor=dml.BufferTensorDesc(T.FLOAT32, list(b.shape), flags=flags),
            output_tensor=dml.BufferTensorDesc(T.FLOAT32, [1, 2, m, n]),
            trans_a=dml.MatrixTransform.NONE,
            trans_b=transform,
            alpha=1.0,
            beta=0.0,
        )
        found.append(evaluate(op, a_tensor=a, b_tensor=b)["output_tensor"])
    assert np.array_equal(found[0].view(np.uint32), found[1].view(np.uint32))
    assert np.abs(found[0]).max() > 1
