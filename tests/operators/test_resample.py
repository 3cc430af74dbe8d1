"""RESAMPLE and its gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from examples import tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import dtype_of, filled, tensors, values

from dmlemu import dml, evaluate
from dmlemu.dml import AxisDirection, InterpolationMode
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.operators.resample import positions

NEAREST, LINEAR = InterpolationMode.NEAREST_NEIGHBOR, InterpolationMode.LINEAR
UP, DOWN = AxisDirection.INCREASING, AxisDirection.DECREASING
FOUR = np.array([10, 20, 30, 40], np.float32)
CENTRES = (0.5, -0.5)


def sampled(
    x: Any,
    scales: Any,
    sizes: Any,
    mode: InterpolationMode,
    version: int = 1,
    at: Any = CENTRES,
    **fields: Any,
) -> Any:
    """The result; scales and offsets for all dimensions."""
    x = np.asarray(x)
    kind = {np.dtype(np.float32): T.FLOAT32, np.dtype(np.uint8): T.UINT8, np.dtype(np.int8): T.INT8}[x.dtype]
    cls: Any = [
        dml.ResampleOperatorDesc,
        dml.Resample1OperatorDesc,
        dml.Resample2OperatorDesc,
        dml.Resample3OperatorDesc,
    ][version]
    if version:
        fields |= {"input_pixel_offsets": [at[0]] * x.ndim, "output_pixel_offsets": [at[1]] * x.ndim}
    desc = cls(
        input_tensor=tensor(kind, *x.shape),
        output_tensor=tensor(kind, *sizes),
        interpolation_mode=mode,
        scales=scales,
        **fields,
    )
    return compare(desc, {"input_tensor": x})["output_tensor"].tolist()


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (CENTRES, [10, 12.5, 17.5, 22.5, 27.5, 32.5, 37.5, 40]),
        ((0, 0), [10, 15, 20, 25, 30, 35, 40, 40]),
    ],
)
def test_linear(at: Any, expected: list[float]) -> None:
    assert sampled(FOUR, [2], [8], LINEAR, at=at) == expected
    assert sampled(FOUR, [2], [8], LINEAR, 2, at=at, rounding_direction=UP) == expected
    if at == CENTRES:
        assert sampled(FOUR, [2], [8], LINEAR, 0) == expected


@pytest.mark.parametrize(
    ("scale", "size", "half_up", "up", "down"),
    [
        (
            2,
            8,
            [10, 10, 20, 20, 30, 30, 40, 40],
            [10, 20, 20, 30, 30, 40, 40, 40],
            [10, 10, 10, 20, 20, 30, 30, 40],
        ),
        (0.5, 2, [20, 40], [20, 40], [10, 30]),
        (1.5, 6, [10, 20, 20, 30, 40, 40], None, None),
    ],
)
def test_nearest(scale: float, size: int, half_up: Any, up: Any, down: Any) -> None:
    assert sampled(FOUR, [scale], [size], NEAREST) == half_up
    assert sampled(FOUR, [scale], [size], NEAREST, 0) == half_up
    if up:
        assert sampled(FOUR, [scale], [size], NEAREST, 2, rounding_direction=UP) == up
        assert sampled(FOUR, [scale], [size], NEAREST, 2, rounding_direction=DOWN) == down


def test_what_a_device_returned() -> None:
    """4 x 6 to 2 x 3: rows 1 and 3, columns 1, 3 and 5."""
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6)
    assert sampled(x, [1, 1, 0.5, 0.5], [1, 1, 2, 3], NEAREST) == [[[[7, 9, 11], [19, 21, 23]]]]


TIES: list[tuple[int, dict[str, Any], list[int]]] = [
    (1, {}, [1, 5, 8, 11, 14, 18]),
    (2, {"at": (1.0, -0.5), "rounding_direction": UP}, [1, 4, 8, 11, 14, 18]),
    (2, {"at": (0.0, -0.5), "rounding_direction": DOWN}, [1, 5, 8, 11, 14, 18]),
]


@pytest.mark.parametrize(("version", "fields", "expected"), TIES)
def test_ties_where_the_scale_was_rounded(version: int, fields: Any, expected: list[int]) -> None:
    """20 to 6: elements 1 and 4 lie on 4.5 and 14.5, and the FLOAT32 of 6 / 20 is above it.

    4.5 divided by it is below 15 in FLOAT32, too, so that element 4 is 14 where halves go up.
    """
    x = np.arange(20, dtype=np.float32)
    assert sampled(x, [6 / 20], [6], NEAREST, version, **fields) == expected


@pytest.mark.parametrize("factor", [3, 5, 6, 9, 10, 12])
def test_every_nth_element(factor: int) -> None:
    """Offsets of 0, what exporters write for "nearest"; the FLOAT32 of 1 / factor may be above it."""
    x = np.arange(8 * factor, dtype=np.float32)
    for version, fields in ((1, {}), (2, {"rounding_direction": DOWN}), (2, {"rounding_direction": UP})):
        y = sampled(x, [1 / factor], [8], NEAREST, version, at=(0, 0), **fields)
        assert y == [factor * o for o in range(8)]


def test_a_scale_whose_quotients_float32_misses() -> None:
    """1 divided by the FLOAT32 of 1 / 7 is 6.9999995 in FLOAT32; 3 divided by it is 21."""
    x = np.arange(28, dtype=np.float32)
    assert sampled(x, [1 / 7], [4], NEAREST, 2, at=(0, 0), rounding_direction=DOWN) == [0, 6, 13, 21]
    assert sampled(x, [1 / 7], [4], NEAREST, 2, at=(0, 0), rounding_direction=UP) == [0, 7, 14, 21]


def test_every_nth_element_gets_the_gradient() -> None:
    desc = dml.ResampleGrad1OperatorDesc(
        input_gradient_tensor=tensor(T.FLOAT32, 4),
        output_gradient_tensor=tensor(T.FLOAT32, 12),
        interpolation_mode=NEAREST,
        rounding_direction=DOWN,
        scales=[1 / 3],
        input_pixel_offsets=[0],
        output_pixel_offsets=[0],
    )
    g = np.array([1, 2, 3, 4], np.float32)
    assert compare(desc, {"input_gradient_tensor": g})["output_gradient_tensor"].tolist() == [
        *(1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0, 0)
    ]


def test_an_exact_position_has_one_element() -> None:
    """At 0, 3, 6: neighbours have weight 0, and their infinities no influence."""
    x = np.full(9, np.inf, np.float32)
    x[::3] = 1, 2, 3
    assert sampled(x, [1 / 3], [3], LINEAR, at=(0, 0)) == [1, 2, 3]


def test_ratios_of_which_float32_misses_an_element() -> None:
    """Of 64 * 64 ratios, with floor and offsets of 0; FLOAT64 positions miss 685 (decision 0022)."""
    missed = 0
    for size, new in np.ndindex(64, 64):
        exact = np.arange(new + 1) * (size + 1) // (new + 1)
        p = positions(new + 1, np.float32(new + 1) / np.float32(size + 1), 0, 0)
        missed += not np.array_equal(np.floor(p), exact)
    assert missed == 117


def test_elements_that_float32_does_not_tell_apart() -> None:
    """Behind 2**24 only every second index is a FLOAT32; where nothing moves, none is needed."""
    assert positions(2**24 + 4, 1, -1, 0)[-4:].tolist() == [2**24, 2**24, 2**24 + 4, 2**24 + 4]
    assert positions(2**24 + 4, 1, 0, 0)[-2:].tolist() == [2**24 + 2, 2**24 + 3]


@pytest.mark.parametrize(
    ("mode", "centre"),
    [
        (InterpolationMode.NEAREST_NEIGHBOR, 0.5),
        (InterpolationMode.LINEAR, 0.0),
        pytest.param(InterpolationMode.NEAREST_NEIGHBOR, 0.0, marks=pytest.mark.long),
        pytest.param(InterpolationMode.LINEAR, 0.5, marks=pytest.mark.long),
    ],
)
def test_a_dimension_that_is_not_scaled_is_exact_at_any_length(mode: Any, centre: float) -> None:
    count = (1 << 24) + 64  # FLOAT32 does not tell the last indices apart
    x = np.arange(count, dtype=np.uint32).astype(np.uint8).reshape(1, 1, 1, count)
    desc = dml.Resample2OperatorDesc(
        input_tensor=dml.BufferTensorDesc(T.UINT8, x.shape),
        output_tensor=dml.BufferTensorDesc(T.UINT8, (1, 1, 2, count)),
        interpolation_mode=mode,
        rounding_direction=AxisDirection.DECREASING,
        scales=[1, 1, 2, 1],
        input_pixel_offsets=[centre] * 4,
        output_pixel_offsets=[-centre] * 4,
    )
    found = evaluate(desc, input_tensor=x)["output_tensor"]
    assert all(np.array_equal(row, x[0, 0, 0]) for row in found[0, 0])


def test_round_prefer_floor_as_onnx_runtime_passes_it() -> None:
    assert sampled(FOUR, [0.5], [2], NEAREST, 2, at=(1.0, -0.5), rounding_direction=UP) == [10, 30]


def test_the_largest_scale_reads_the_first_element() -> None:
    scale = float(np.finfo(np.float32).max)
    assert sampled(FOUR, [scale], [3], NEAREST, at=(0, 0)) == [10, 10, 10]
    assert sampled(FOUR, [scale], [3], LINEAR, at=(0, 0)) == [10, 10, 10]


def test_antialiased() -> None:
    """ONNX's test_resize_downsample_scales_linear_antialias, and 1, 2, 3, 4 by a half."""
    x = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
    y = sampled(x, [1, 1, 0.6, 0.6], [1, 1, 2, 2], LINEAR, 3, rounding_direction=UP, antialiased=True)
    assert np.allclose(y, [[[[2.875, 4.5], [9.375, 11]]]], rtol=1e-6)
    four = np.array([1, 2, 3, 4], np.float32)
    assert sampled(four, [0.5], [2], LINEAR, 3, rounding_direction=UP, antialiased=True) == [1.625, 3.375]
    plain = sampled(four, [0.5], [2], LINEAR, 3, rounding_direction=UP, antialiased=False)
    assert plain == [1.5, 3.5]


def test_bytes_lose_their_fraction() -> None:
    assert sampled(np.array([1, 2, 255, 254], np.uint8), [2], [8], LINEAR, at=(0, 0))[:4] == [1, 1, 2, 128]
    assert sampled(np.array([-128, -127], np.int8), [2], [4], LINEAR, at=(0, 0)) == [-128, -127, -127, -127]


def test_bytes_that_onnx_runtime_expects_of_directml() -> None:
    """Its tests of Resize: means of 2.67 and 4.33, of -0.44 and -0.33, and corners."""
    x = np.arange(1, 9, dtype=np.uint8).reshape(2, 4)
    signed = np.array([[1, -2, 3, -4], [-5, 6, -7, 8]], np.int8)
    rounding = {"rounding_direction": UP}
    assert sampled(x, [0.6, 0.6], [1, 2], LINEAR, 2, **rounding) == [[2, 4]]
    assert sampled(signed, [0.6, 0.6], [1, 2], LINEAR, 2, **rounding) == [[0, 0]]
    largest = float(np.finfo(np.float32).max)
    assert sampled(x, [largest, 1 / 3], [1, 2], LINEAR, 2, at=(0, 0), **rounding) == [[1, 4]]
    assert sampled(signed, [largest, 1 / 3], [1, 2], LINEAR, 2, at=(0, 0), **rounding) == [[1, -4]]


def test_cropped_and_repeated() -> None:
    assert sampled(FOUR, [2], [3], LINEAR, at=(0, 0)) == [10, 15, 20]
    assert sampled(FOUR, [1], [6], NEAREST) == [10, 20, 30, 40, 40, 40]


def test_weight_zero_has_no_influence() -> None:
    x = np.array([1, np.inf, 3], np.float32)
    assert sampled(x, [1], [3], LINEAR) == [1, np.inf, 3]


def gradient(g: Any, scale: float, size: int, mode: InterpolationMode) -> Any:
    desc = dml.ResampleGradOperatorDesc(
        input_gradient_tensor=tensor(T.FLOAT32, len(g)),
        output_gradient_tensor=tensor(T.FLOAT32, size),
        interpolation_mode=mode,
        scales=[scale],
        input_pixel_offsets=[-0.5],
        output_pixel_offsets=[0.5],
    )
    return compare(desc, {"input_gradient_tensor": np.array(g, np.float32)})[
        "output_gradient_tensor"
    ].tolist()


def test_gradients() -> None:
    assert gradient([1] * 8, 2, 4, LINEAR) == [2, 2, 2, 2]
    assert gradient([1, 0, 0, 0, 0, 0, 0, 0], 2, 4, LINEAR) == [1, 0, 0, 0]
    assert gradient([0, 1, 0, 0, 0, 0, 0, 0], 2, 4, LINEAR) == [0.75, 0.25, 0, 0]
    assert gradient([1, 2, 3, 4, 5, 6], 1.5, 4, NEAREST) == [1, 5, 4, 11]


@st.composite
def resamplings(draw: Any, data_type: T) -> Any:
    rank = draw(st.integers(1, 4))
    small = st.integers(1, 12 if rank < 3 else 5)
    source, target = ([draw(small) for _ in range(rank)] for _ in range(2))
    number = st.sampled_from([0.0, 0.5, -0.5, 1.0, 0.25, -3.0, 0.1])
    fields = {
        "interpolation_mode": draw(st.sampled_from([NEAREST, LINEAR])),
        "rounding_direction": draw(st.sampled_from([UP, DOWN])),
        "scales": [draw(st.sampled_from([1.0, 0.5, 2.0, 0.3, 1.7, 3.0, 1e-3, 1e6])) for _ in range(rank)],
        "input_pixel_offsets": [draw(number) for _ in range(rank)],
        "output_pixel_offsets": [draw(number) for _ in range(rank)],
        "antialiased": draw(st.booleans()),
    }
    tensors_ = draw(tensors(data_type, source)), draw(tensors(data_type, target, output=True))
    return fields, tensors_


FORWARD: list[Any] = [
    dml.ResampleOperatorDesc,
    dml.Resample1OperatorDesc,
    dml.Resample2OperatorDesc,
    dml.Resample3OperatorDesc,
]


def of(cls: Any, fields: Any, **tensors_: Any) -> Any:
    return cls(
        **tensors_, **{name: value for name, value in fields.items() if name in cls.__dataclass_fields__}
    )


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16, T.INT8, T.UINT8]))
    fields, (source, target) = data.draw(resamplings(data_type))
    desc = of(data.draw(st.sampled_from(FORWARD)), fields, input_tensor=source, output_tensor=target)
    _, x = filled(source, data.draw(values("extreme", "small")))
    compare(desc, {"input_tensor": x}, offset=data.draw(offsets))


@given(st.data())
def test_any_layout_of_gradients(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    fields, (source, target) = data.draw(resamplings(data_type))
    cls = data.draw(st.sampled_from([dml.ResampleGradOperatorDesc, dml.ResampleGrad1OperatorDesc]))
    desc = of(cls, fields, input_gradient_tensor=source, output_gradient_tensor=target)
    _, x = filled(source, data.draw(values("small")))
    compare(desc, {"input_gradient_tensor": x}, offset=data.draw(offsets))


@given(st.data())
def test_gradients_are_the_transpose(data: st.DataObject) -> None:
    """<forward(x), g> = <x, gradient(g)>, with the two offsets exchanged."""
    fields, (source, target) = data.draw(resamplings(T.FLOAT32))
    source, target = (tensor(T.FLOAT32, *each.sizes) for each in (source, target))
    numbers = np.random.default_rng(data.draw(st.integers(0, 99)))
    x, g = (numbers.integers(-8, 9, each.sizes).astype(np.float32) for each in (source, target))
    y = of(dml.Resample2OperatorDesc, fields, input_tensor=source, output_tensor=target)
    swapped = fields | {
        "input_pixel_offsets": fields["output_pixel_offsets"],
        "output_pixel_offsets": fields["input_pixel_offsets"],
    }
    dx = of(
        dml.ResampleGrad1OperatorDesc, swapped, input_gradient_tensor=target, output_gradient_tensor=source
    )
    forward = compare(y, {"input_tensor": x})["output_tensor"].astype(float)
    backward = compare(dx, {"input_gradient_tensor": g})["output_gradient_tensor"].astype(float)
    assert np.isclose((forward * g).sum(), (x * backward).sum(), rtol=1e-4, atol=1e-2)


def test_bits_are_copied() -> None:
    x = np.array([0x7F800001, 0x80000000], np.uint32).view(dtype_of(T.FLOAT32))
    desc = dml.ResampleOperatorDesc(
        input_tensor=tensor(T.FLOAT32, 2),
        output_tensor=tensor(T.FLOAT32, 4),
        interpolation_mode=NEAREST,
        scales=[2],
    )
    y = compare(desc, {"input_tensor": x})["output_tensor"].view(np.uint32)
    assert y.tolist() == [0x7F800001, 0x7F800001, 0x80000000, 0x80000000]


@pytest.mark.parametrize("scale", [3, 1.3, 0.6, 0.3])
@pytest.mark.parametrize("sizes", [[2, 3, 9, 45], [1, 2500], [2, 1100, 2, 5]])
@pytest.mark.parametrize("antialiased", [False, True])
def test_images_of_several_blocks(scale: float, sizes: list[int], antialiased: bool) -> None:
    """Rows are computed in blocks, and mixed by vectors where they are long enough."""
    x = np.random.default_rng(1).normal(size=sizes).astype(np.float32)
    scales = [1.0] * (x.ndim - 2) + [scale, scale]
    larger = [int(size * factor) or 1 for size, factor in zip(sizes, scales, strict=True)]

    sampled(x, scales, larger, LINEAR, 3, rounding_direction=DOWN, antialiased=antialiased)


def test_channels_last() -> None:
    """Columns of 70 contiguous elements, which are not scaled."""
    x = np.random.default_rng(2).normal(size=(2, 9, 30, 70)).astype(np.float32)

    for scale in (2, 0.6):
        sampled(x, [1, scale, scale, 1], [2, int(9 * scale), int(30 * scale), 70], LINEAR)
        sampled(x, [1, scale, scale, 1], [2, int(9 * scale), int(30 * scale), 70], NEAREST)
