"""Normalisation: MEAN_VARIANCE_, BATCH_, LOCAL_RESPONSE_ and LP_NORMALIZATION, and their gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from examples import accepted, example, refused, tensor
from harness import compare, given
from hypothesis import strategies as st
from strategies import Array, dtype_of, filled, values
from test_memory import assert_same_outputs
from test_memory import layout as places_of

from dmlemu import Strictness, d3d12, dml, evaluate
from dmlemu.dml import FeatureLevel, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.testing import operator_descs

NAN, INF = float("nan"), float("inf")
O = OperatorType  # noqa: E741
FORWARD = [
    O.MEAN_VARIANCE_NORMALIZATION,
    O.MEAN_VARIANCE_NORMALIZATION1,
    O.MEAN_VARIANCE_NORMALIZATION2,
    O.BATCH_NORMALIZATION,
    O.BATCH_NORMALIZATION_TRAINING,
    O.LP_NORMALIZATION,
    O.LOCAL_RESPONSE_NORMALIZATION,
]
GRADIENTS = [
    O.BATCH_NORMALIZATION_GRAD,
    O.BATCH_NORMALIZATION_TRAINING_GRAD,
    O.LOCAL_RESPONSE_NORMALIZATION_GRAD,
]
each_kind = pytest.mark.parametrize("kind", [*FORWARD, *GRADIENTS], ids=lambda kind: kind.name)
each_gradient = pytest.mark.parametrize("kind", GRADIENTS, ids=lambda kind: kind.name)


def mvn(numbers: Any, axes: list[int], *, scale: Any = None, bias: Any = None, **more: Any) -> Array:
    x = np.array(numbers, np.float32)
    inputs = {"input_tensor": x}
    fields = {"use_mean": True, "use_variance": True, "epsilon": 0.0, **more}
    for name, given_ in (("scale_tensor", scale), ("bias_tensor", bias)):
        if given_ is not None:
            inputs[name] = np.array(given_, np.float32)
            fields[name] = tensor(T.FLOAT32, *inputs[name].shape)
    packed = tensor(T.FLOAT32, *x.shape)
    desc = dml.MeanVarianceNormalization2OperatorDesc(
        input_tensor=packed, output_tensor=packed, axes=axes, **fields
    )
    return compare(desc, inputs)["output_tensor"]


def test_mean_and_variance_of_each_group() -> None:
    x = [[1, 3], [4, 8]]

    assert mvn(x, [1]).tolist() == [[-1, 1], [-1, 1]]
    assert mvn(x, [0]).tolist() == [[-1, -1], [1, 1]]
    assert mvn(x, [1], epsilon=3.0)[0].tolist() == [-0.5, 0.5]  # the variance is 1
    assert mvn([0, 0, 4, 4], [0], epsilon=0.0).tolist() == [-1, -1, 1, 1]


def test_what_is_used_of_the_statistics() -> None:
    x = [[1, 3], [4, 8]]

    assert mvn(x, [1], use_variance=False).tolist() == [[-1, 1], [-2, 2]]
    assert mvn([[6, 8]], [1], use_mean=False, epsilon=14.0).tolist() == [[0.75, 1]]  # root mean square
    assert mvn(x, [1], use_mean=False, use_variance=False, bias=[[1], [2]]).tolist() == [[2, 4], [6, 10]]


def test_scale_and_bias_are_broadcast() -> None:
    x = [[1, 3], [4, 8]]

    assert mvn(x, [1], scale=[[1, 2]]).tolist() == [[-1, 2], [-1, 2]]
    assert mvn(x, [1], scale=[[3]], bias=[[1], [2]]).tolist() == [[-2, 4], [-1, 5]]
    assert mvn(x, [1], scale=[[1, 2], [3, 4]], bias=[[10, 20]]).tolist() == [[9, 22], [7, 24]]


def test_a_variance_of_0() -> None:
    assert np.isnan(mvn([[5, 5, 5]], [1])).all()
    assert mvn([[5, 5, 5]], [1], epsilon=1e-5).tolist() == [[0, 0, 0]]
    assert mvn([[0.1] * 1000], [1], epsilon=1e-30).tolist() == [[0] * 1000]


def test_special_numbers_in_a_group() -> None:
    x = [[NAN, 1, 2], [INF, 1, 2], [1, 2, INF], [-INF, INF, 2], [1, 1, 4]]

    assert np.isnan(mvn(x, [1])).all(1).tolist() == [True, True, True, True, False]
    found = mvn(x, [1], use_variance=False)
    assert found[1].tolist()[1:] == found[2].tolist()[:2] == [-INF, -INF]
    assert found[4].tolist() == [-1, -1, 2]


def test_large_means_and_outliers_keep_the_precision() -> None:
    """Sums of squares alone would lose all of it."""
    numbers = np.random.default_rng(3).integers(0, 64, 1000).astype(np.float32)
    far = mvn([numbers + np.float32(2**23)], [1])
    np.testing.assert_array_max_ulp(far, mvn([numbers], [1]), maxulp=1)
    numbers[0] = 1e12  # the element that is subtracted first
    mvn([numbers], [1])
    mvn([[3e38, -3e38, 3e38]], [1])


def test_the_first_versions_are_the_second() -> None:
    x = np.random.default_rng(4).normal(0, 1, (2, 3, 2, 4)).astype(np.float32)
    packed = tensor(T.FLOAT32, *x.shape)
    both: dict[str, Any] = {"input_tensor": packed, "output_tensor": packed, "epsilon": 0.5}
    for cross, axes in ((True, [1, 2, 3]), (False, [2, 3])):
        for divide in (True, False):
            first = dml.MeanVarianceNormalizationOperatorDesc(
                **both, cross_channel=cross, normalize_variance=divide
            )
            second = dml.MeanVarianceNormalization1OperatorDesc(**both, axes=axes, normalize_variance=divide)
            want = mvn(x, axes, use_variance=divide, epsilon=0.5).tolist()
            assert compare(first, {"input_tensor": x})["output_tensor"].tolist() == want
            assert compare(second, {"input_tensor": x})["output_tensor"].tolist() == want


@pytest.mark.parametrize("kind", FORWARD[:2], ids=lambda kind: kind.name)
def test_scale_and_bias_are_given_together_below_5_2(kind: OperatorType) -> None:
    alone = example(kind, bias_tensor=None)

    accepted(alone, FeatureLevel.LEVEL_5_2)
    report = refused(
        alone, "OP_OPTIONAL", "BiasTensor", "none", "a tensor desc", level=FeatureLevel.LEVEL_5_1
    )
    assert "ScaleTensor is given" in report.message
    accepted(example(kind, scale_tensor=None, bias_tensor=None), FeatureLevel.LEVEL_2_1)


def test_the_scale_of_channels_is_not_broadcast_below_4_0() -> None:
    one = tensor(T.FLOAT32, 1, 1, 1, 1)
    op = example(O.MEAN_VARIANCE_NORMALIZATION1, scale_tensor=one)

    accepted(op, FeatureLevel.LEVEL_4_0)
    refused(op, "OP_NO_BROADCAST", "ScaleTensor.Sizes[1]", 1, 3, level=FeatureLevel.LEVEL_3_1)


# --- batch normalisation ---


def batch(x: Any, mean: Any, variance: Any, scale: Any, bias: Any, epsilon: float = 0.0) -> Any:
    names = ("input_tensor", "mean_tensor", "variance_tensor", "scale_tensor", "bias_tensor")
    inputs = dict(
        zip(names, (np.array(each, np.float32) for each in (x, mean, variance, scale, bias)), strict=True)
    )
    descs: dict[str, Any] = {name: tensor(T.FLOAT32, *array.shape) for name, array in inputs.items()}
    desc = dml.BatchNormalizationOperatorDesc(
        **descs, output_tensor=descs["input_tensor"], spatial=True, epsilon=epsilon
    )
    return compare(desc, inputs)["output_tensor"].tolist()


def test_given_statistics() -> None:
    x = [[1, 2], [3, 4]]

    assert batch(x, [[1, 0]], [[4, 16]], [[1, 1]], [[0, 0]]) == [[0, 0.5], [1, 1]]
    assert batch(x, [[1]], [[1]], [[2]], [[10]], 3.0) == [[10, 11], [12, 13]]
    assert batch(x, [[1], [2]], [[1, 4]], [[1, 2], [3, 4]], [[0.5]]) == [[0.5, 1.5], [3.5, 4.5]]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("magnitude", [1e-36, 1e-20, 1, 1e18, 1e30])
def test_outputs_are_good_to_a_unit_where_the_bias_cancels_the_rest(
    magnitude: float, channels_last: bool
) -> None:
    """``compare`` allows one unit.  Numbers near the zero of each channel, ordinary and special ones."""
    random = np.random.default_rng(7)
    channels, count = 11, 1100
    mean, scale, zero = random.normal(0, magnitude, (3, channels)).astype(np.float32)
    scale /= np.float32(magnitude)
    variance = random.uniform(0.5, 2, channels).astype(np.float32)
    variance *= np.float32(min(magnitude, 1e15)) ** 2
    factor = scale / np.sqrt(np.float64(1e-30) + variance)
    bias = ((mean - zero) * factor).astype(np.float32)
    x = random.normal(0, magnitude, (channels, count)).astype(np.float32)
    x[:, ::3] = zero[:, None] * (1 + np.arange(-180, 187)[: x[:, ::3].shape[1]] * 2.0**-23)
    near = np.abs((np.float64(x) - mean[:, None]) * factor[:, None] + bias[:, None])
    x[near < 2.0**-28 * np.abs(mean * factor)[:, None]] = 0  # FLOAT64 is not good to a unit there, either
    x[:, 5:400:60] = mean[:, None]
    x[1::2, 7::200] = [[NAN, INF, -INF, 0, -0.0, 3e38]]
    sizes, order = [1, channels, 1, count], [0, 3, 2, 1]
    strides = [int(np.prod([sizes[i] for i in order[order.index(d) + 1 :]])) for d in range(4)]
    image = tensor(T.FLOAT32, *sizes, strides=strides if channels_last else None)
    names = ("mean_tensor", "variance_tensor", "scale_tensor", "bias_tensor")
    one = tensor(T.FLOAT32, 1, channels, 1, 1)
    desc = dml.BatchNormalizationOperatorDesc(
        input_tensor=image, output_tensor=image, **dict.fromkeys(names, one), spatial=True, epsilon=1e-30
    )
    each = (array.reshape(1, channels, 1, 1) for array in (mean, variance, scale, bias))
    compare(desc, {"input_tensor": x.reshape(sizes), **dict(zip(names, each, strict=True))})


def test_spatial_matters_below_4_0() -> None:
    op = example(O.BATCH_NORMALIZATION, mean_tensor=tensor(T.FLOAT32, 1, 3, 1, 1))

    accepted(op, FeatureLevel.LEVEL_4_0)
    report = refused(op, "OP_SHAPE", "MeanTensor.Sizes[2]", 1, 2, level=FeatureLevel.LEVEL_3_1)
    assert "Spatial is FALSE" in report.message


def test_statistics_of_training_are_outputs() -> None:
    x = np.float32([[1, 10], [3, 30]])
    image, groups = tensor(T.FLOAT32, 2, 2), tensor(T.FLOAT32, 1, 2)
    desc = dml.BatchNormalizationTrainingOperatorDesc(
        input_tensor=image,
        scale_tensor=groups,
        bias_tensor=groups,
        fused_add_tensor=image,
        output_tensor=image,
        output_mean_tensor=groups,
        output_variance_tensor=groups,
        epsilon=0.0,
        fused_activation=dml.ActivationReluOperatorDesc(),
    )
    inputs = {
        "input_tensor": x,
        "scale_tensor": np.float32([[2, 1]]),
        "bias_tensor": np.float32([[0, 5]]),
        "fused_add_tensor": np.float32([[1, 1], [1, 1]]),
    }
    found = compare(desc, inputs)

    assert found["output_mean_tensor"].tolist() == [[2, 20]]
    assert found["output_variance_tensor"].tolist() == [[1, 100]]
    assert found["output_tensor"].tolist() == [[0, 5], [3, 7]]


def test_gradients_of_batch_normalization() -> None:
    image, groups = tensor(T.FLOAT32, 3, 1), tensor(T.FLOAT32, 1, 1)
    inputs = {
        "input_tensor": np.float32([[1], [2], [6]]),
        "input_gradient_tensor": np.float32([[1], [0], [2]]),
        "mean_tensor": np.float32([[3]]),
        "variance_tensor": np.float32([[3]]),
        "scale_tensor": np.float32([[4]]),
    }
    fields: dict[str, Any] = {name: image if len(array) == 3 else groups for name, array in inputs.items()}
    fields |= {"output_gradient_tensor": image, "epsilon": 1.0}
    fields |= dict.fromkeys(["output_scale_gradient_tensor", "output_bias_gradient_tensor"], groups)
    found = compare(dml.BatchNormalizationGradOperatorDesc(**fields), inputs)
    trained = compare(dml.BatchNormalizationTrainingGradOperatorDesc(**fields), inputs)

    assert found["output_gradient_tensor"].ravel().tolist() == [2, 0, 4]
    for each in (found, trained):  # (1 * -2 + 2 * 3) / 2
        assert each["output_scale_gradient_tensor"].tolist() == [[2]]
        assert each["output_bias_gradient_tensor"].tolist() == [[3]]
    # gc = 0, -1, 1 and c = -2, -1, 3; the mean of g * c is 4 / 3, so the slope 1 / 3.
    want = 2 * np.array([2 / 3, -2 / 3, 0])
    np.testing.assert_allclose(trained["output_gradient_tensor"].ravel(), want, rtol=1e-6, atol=1e-15)


# --- LP_NORMALIZATION ---


def lp(x: Any, p: int, axis: int = 1, epsilon: float = 1e-5) -> Any:
    array = np.array(x, np.float32)
    packed = tensor(T.FLOAT32, *array.shape)
    desc = dml.LpNormalizationOperatorDesc(
        input_tensor=packed, output_tensor=packed, axis=axis, epsilon=epsilon, p=p
    )
    return compare(desc, {"input_tensor": array})["output_tensor"].tolist()


def test_lines_have_norm_1() -> None:
    assert lp([[1, -3]], 1) == [[0.25, -0.75]]
    assert lp([[3, -4]], 2) == pytest.approx(np.float32([[0.6, -0.8]]))
    assert lp([[3, 8], [4, 6]], 2, 0) == pytest.approx(np.float32([[0.6, 0.8], [0.8, 0.6]]))
    assert lp([[1e30, 1e30]], 2) == pytest.approx(np.float32([[0.5**0.5] * 2]))


def test_epsilon_is_the_least_norm() -> None:
    assert lp([[0, 0]], 2) == lp([[0, 0]], 1) == [[0, 0]]
    assert lp([[0.5, -0.25]], 1, epsilon=2.0) == [[0.25, -0.125]]
    assert np.isnan(lp([[0, 0]], 2, epsilon=0.0)).all()
    refused(example(O.LP_NORMALIZATION, p=3), "OP_FIELD_RANGE", "P", 3, "1 to 2")


# --- LOCAL_RESPONSE_NORMALIZATION ---


def local(x: Any, size: int, *, cross: bool = True, alpha: float = 1.0, beta: float = 1.0) -> Any:
    array = np.array(x, np.float32)
    packed = tensor(T.FLOAT32, *array.shape)
    desc = dml.LocalResponseNormalizationOperatorDesc(
        input_tensor=packed,
        output_tensor=packed,
        cross_channel=cross,
        local_size=size,
        alpha=alpha * size,
        beta=beta,
        bias=1.0,
    )
    return compare(desc, {"input_tensor": array})["output_tensor"]


def test_regions_of_channels() -> None:
    x = np.float32([1, 2, 3, 4]).reshape(1, 4, 1, 1)

    squares = x.ravel() ** 2
    assert local(x, 1).ravel().tolist() == (x.ravel() / (1 + squares)).tolist()
    want = x.ravel() / (1 + np.float32([1 + 4, 1 + 4 + 9, 4 + 9 + 16, 9 + 16]))
    assert local(x, 3).ravel().tolist() == want.tolist()
    want = x.ravel() / (1 + np.float32([1 + 4, 4 + 9, 9 + 16, 16]))  # an even size has one more after
    assert local(x, 2).ravel().tolist() == want.tolist()
    want = x.ravel() / (1 + squares.sum())
    assert local(x, 4_000_000_000, alpha=2.0**-32 * 2**32).ravel() == pytest.approx(want, rel=1e-6)


def test_regions_of_a_channel_are_squares() -> None:
    x = np.ones((1, 2, 3, 4), np.float32)

    found = 1 / local(x, 3, cross=False) - 1
    np.testing.assert_allclose(found[0, 0], [[4, 6, 6, 4], [6, 9, 9, 6], [4, 6, 6, 4]], rtol=1e-5)
    np.testing.assert_array_equal(found[0, 0], found[0, 1])


# --- every operator ---


@each_kind
@given(st.data(), examples=60)
def test_any_layout(kind: OperatorType, data: st.DataObject) -> None:
    desc = data.draw(operator_descs(kind))
    inputs: dict[str, Array] = {}
    for name in type(desc).__dataclass_fields__:
        found = getattr(desc, name)
        if isinstance(found, dml.BufferTensorDesc) and not name.startswith("output"):
            _, inputs[name] = filled(found, data.draw(values("small")))
    for name in {"variance_tensor"} & inputs.keys():
        inputs[name] = np.abs(inputs[name])
    compare(desc, inputs)


@pytest.mark.parametrize(
    ("sizes", "axes"), [((40_000,), [0]), ((3000, 19), [0]), ((2, 300, 19, 3), [1, 3]), ((19, 3001), [1])]
)
@pytest.mark.parametrize("data_type", [T.FLOAT32, T.FLOAT16], ids=lambda each: each.name)
@pytest.mark.parametrize("adds", [False, True])
def test_bits_do_not_depend_on_layouts(
    sizes: tuple[int, ...], axes: list[int], data_type: T, adds: bool
) -> None:
    x = np.random.default_rng(1).normal(5, 3, sizes).astype(dtype_of(data_type))
    kept = [1 if d in axes else size for d, size in enumerate(sizes)]
    strides = [int(np.prod(sizes[:d])) for d in range(len(sizes))]  # the first dimension is the nearest
    found = []
    for layout in (None, strides):
        packed = tensor(data_type, *sizes, strides=layout)
        groups = tensor(data_type, *kept)
        desc = dml.BatchNormalizationTrainingOperatorDesc(
            input_tensor=packed,
            scale_tensor=groups,
            bias_tensor=groups,
            fused_add_tensor=packed if adds else None,
            output_tensor=packed,
            output_mean_tensor=groups,
            output_variance_tensor=groups,
            epsilon=1e-5,
        )
        factors = np.random.default_rng(2).normal(0, 1, (2, *kept)).astype(x.dtype)
        inputs = {"input_tensor": x, "scale_tensor": factors[0], "bias_tensor": factors[1]}
        if adds:
            inputs["fused_add_tensor"] = x[::-1].copy()
        found.append(evaluate(desc, **inputs))

    for name, want in found[0].items():
        assert np.array_equal(want, found[1][name]), name
    expected = desc.reference(inputs)
    for name, want in expected.items():
        np.testing.assert_allclose(found[0][name], want, rtol=1e-3 if x.itemsize == 2 else 2e-7)


@pytest.mark.parametrize("nearest", [0, 1], ids=["across", "along"])
@pytest.mark.parametrize("sizes", [(7, 600), (600, 7), (3, 5000), (19, 300)])
def test_bits_do_not_depend_on_the_strides_of_the_scale(sizes: tuple[int, int], nearest: int) -> None:
    """One scale and bias for each group, with stride 0 and as copies; then one copy differs."""
    random = np.random.default_rng(3)
    groups = sizes[0]
    x = random.normal(5, 3, sizes).astype(np.float32)
    scale, bias = random.normal(0, 1, (2, groups, 1)).astype(np.float32)
    packed = tensor(T.FLOAT32, *sizes, strides=[1, groups] if nearest == 0 else None)

    def found(scale: Array, bias: Array, factors: dml.BufferTensorDesc) -> Array:
        desc = dml.MeanVarianceNormalization2OperatorDesc(
            input_tensor=packed,
            scale_tensor=factors,
            bias_tensor=factors,
            output_tensor=packed,
            axes=[1],
            use_mean=True,
            use_variance=True,
            epsilon=1e-5,
        )
        inputs = {"input_tensor": x, "scale_tensor": scale, "bias_tensor": bias}
        return compare(desc, inputs)["output_tensor"]

    scales, biases = (np.broadcast_to(each, sizes).copy() for each in (scale, bias))
    expected = found(scales, biases, tensor(T.FLOAT32, *sizes, strides=[1, 0]))
    assert np.array_equal(found(scales, biases, packed), expected)
    one, other = found(scale[:1] + 0 * scales, bias[:1] + 0 * biases, packed), scale[0, 0] + 0 * scales
    assert np.array_equal(
        one, found(other, bias[0, 0] + 0 * biases, tensor(T.FLOAT32, *sizes, strides=[0, 0]))
    )
    scales[1, -1] += 1
    changed = found(scales, biases, packed)
    assert np.array_equal(np.delete(changed, 1, 0), np.delete(expected, 1, 0))
    assert changed[1, -1] != expected[1, -1]


@pytest.mark.parametrize("channels_last", [False, True])
def test_bits_do_not_depend_on_whether_the_output_replaces_the_input(
    channels_last: bool,
) -> None:
    device = dml.create_device(d3d12.create_device(strictness=Strictness.RUNTIME))
    channels, height, width = 19, 41, 30
    strides = [1, 1, channels * width, channels] if channels_last else None
    image = tensor(T.FLOAT32, 1, channels, height, width, strides=strides)
    one = tensor(T.FLOAT32, 1, channels, 1, 1)
    names = ("mean_tensor", "variance_tensor", "scale_tensor", "bias_tensor")
    desc = dml.BatchNormalizationOperatorDesc(
        input_tensor=image, output_tensor=image, **dict.fromkeys(names, one), spatial=True, epsilon=1e-5
    )
    places = places_of(desc)
    numbers = np.random.default_rng(4).integers(32, 128, places["end"] // 4).astype(np.float32) / 64
    numbers[places["BiasTensor"] // 4 :][:channels:2] = 0  # where x is the mean, all cancels

    in_place = {**places, "OutputTensor": places["InputTensor"]}
    assert_same_outputs(device, desc, numbers.view(np.uint8), places, in_place)


def forward_of(kind: OperatorType, x: Array, inputs: Mapping[str, Array]) -> Array:
    """The output of the operator whose gradient ``kind`` is, of an input in FLOAT64."""
    if kind is O.LOCAL_RESPONSE_NORMALIZATION_GRAD:
        y = np.zeros_like(x)
        for c in range(x.shape[1]):
            region = x[:, max(0, c - 1) : c + 3]
            y[:, c] = x[:, c] / (1 + 0.75 / 4 * (region**2).sum(1)) ** 0.5
        return y
    axes = (0, 2, 3)
    of_input = kind is O.BATCH_NORMALIZATION_TRAINING_GRAD
    mean = x.mean(axes, keepdims=True) if of_input else inputs["mean_tensor"]
    variance = x.var(axes, keepdims=True) if of_input else inputs["variance_tensor"]
    y = (x - mean) / np.sqrt(variance + 0.5) * inputs["scale_tensor"]
    return y


@each_gradient
def test_gradients_are_those_of_finite_differences(kind: OperatorType) -> None:
    fields = {"local_size": 4} if kind is O.LOCAL_RESPONSE_NORMALIZATION_GRAD else {}
    desc = example(kind, **fields)
    rng = np.random.default_rng(5)
    sizes = desc.input_tensor.sizes
    x, g = rng.normal(1, 1, (2, *sizes)).astype(np.float32)
    inputs = {"input_tensor": x, "input_gradient_tensor": g}
    if not fields:
        axes = (0, 2, 3)
        inputs |= {"mean_tensor": x.mean(axes, keepdims=True), "variance_tensor": x.var(axes, keepdims=True)}
        inputs["scale_tensor"] = rng.normal(1, 1, (1, 3, 1, 1)).astype(np.float32)
    found = compare(desc, inputs)["output_gradient_tensor"]

    exact, step = x.astype(np.float64), 1e-5
    want = np.zeros_like(exact)
    for place in np.ndindex(*sizes):
        change = np.zeros_like(exact)
        change[place] = step
        more, less = (forward_of(kind, exact + sign * change, inputs) for sign in (1, -1))
        want[place] = (g * (more - less)).sum() / (2 * step)
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-6)


def test_the_forward_functions_of_the_differences_are_the_operators() -> None:
    """Otherwise the test above compares with something else."""
    for gradient, kind in zip(
        GRADIENTS,
        (O.BATCH_NORMALIZATION, O.BATCH_NORMALIZATION_TRAINING, O.LOCAL_RESPONSE_NORMALIZATION),
        strict=True,
    ):
        desc = example(kind, **({"local_size": 4} if "LOCAL" in kind.name else {"fused_activation": None}))
        rng = np.random.default_rng(6)
        x = rng.normal(1, 1, desc.input_tensor.sizes).astype(np.float32)
        inputs: dict[str, Any] = {"input_tensor": x}
        for name in ("mean_tensor", "variance_tensor", "scale_tensor"):
            if hasattr(desc, name):
                inputs[name] = rng.uniform(0.5, 1, getattr(desc, name).sizes).astype(np.float32)
        if hasattr(desc, "bias_tensor"):
            inputs["bias_tensor"] = np.zeros((1, 3, 1, 1), np.float32)
        if hasattr(desc, "fused_add_tensor"):
            inputs["fused_add_tensor"] = np.zeros_like(x)
        want = forward_of(gradient, x.astype(np.float64), inputs)
        np.testing.assert_allclose(compare(desc, inputs)["output_tensor"], want, rtol=1e-5, atol=1e-6)
