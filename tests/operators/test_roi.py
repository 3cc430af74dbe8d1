"""ROI_POOLING, ROI_ALIGN, ROI_ALIGN1 and ROI_ALIGN_GRAD."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from examples import example, refused, tensor
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import filled, logical, tensors, values

import dmlemu
from dmlemu import dml
from dmlemu.dml import InterpolationMode, OperatorType, ReduceFunction, Size2D
from dmlemu.dml import TensorDataType as T

NEAREST, LINEAR = InterpolationMode.NEAREST_NEIGHBOR, InterpolationMode.LINEAR
AVERAGE, MAX = ReduceFunction.AVERAGE, ReduceFunction.MAX
COUNTED = np.arange(25, dtype=np.float32).reshape(1, 1, 5, 5)


def pooled(x: Any, regions: Any, scale: float, width: int, height: int) -> Any:
    x, regions = np.float32(x), np.float32(regions).reshape(1, 1, -1, 5)
    desc = dml.RoiPoolingOperatorDesc(
        input_tensor=tensor(T.FLOAT32, *x.shape),
        roi_tensor=tensor(T.FLOAT32, *regions.shape),
        output_tensor=tensor(T.FLOAT32, regions.shape[2], x.shape[1], height, width),
        spatial_scale=scale,
        pooled_size=Size2D(width, height),
    )
    return compare(desc, {"input_tensor": x, "roi_tensor": regions})["output_tensor"].tolist()


def aligned(x: Any, regions: Any, sizes: tuple[int, int], **fields: Any) -> Any:
    """ROI_ALIGN1 in batch item 0; ``sizes``: height and width of the output."""
    x, regions = np.float32(x), np.float32(regions).reshape(-1, 4)
    desc = example(
        OperatorType.ROI_ALIGN1,
        input_tensor=tensor(T.FLOAT32, *x.shape),
        roi_tensor=tensor(T.FLOAT32, *regions.shape),
        batch_indices_tensor=tensor(T.UINT32, len(regions)),
        output_tensor=tensor(T.FLOAT32, len(regions), x.shape[1], *sizes),
        **{"spatial_scale_y": 1.0, "out_of_bounds_input_value": 0.0, **fields},
    )
    indices = np.zeros(len(regions), np.uint32)
    inputs = {"input_tensor": x, "roi_tensor": regions, "batch_indices_tensor": indices}
    return compare(desc, inputs)["output_tensor"].tolist()


# --- ROI_POOLING ---


def test_bins_round_down_at_the_start_and_up_at_the_end() -> None:
    """Rows 0 to 2 in two bins: 0 and 1, then 1 and 2; columns 1 to 3 in one."""
    assert pooled(COUNTED, [0, 1, 0, 3, 2], 1, 1, 2) == [[[[8], [13]]]]


def test_pooled_size_is_width_and_height() -> None:
    assert pooled(COUNTED, [0, 0, 0, 4, 4], 1, 5, 1) == [[[[20, 21, 22, 23, 24]]]]


@pytest.mark.parametrize(("x1", "expected"), [(1, 8), (3, 7), (5, 6), (-1, 9)])
def test_corners_round_halves_away_from_zero(x1: float, expected: int) -> None:
    """0.5, 1.5 and 2.5 become columns 1, 2 and 3 of a row that falls from 9."""
    assert pooled([[[[9, 8, 7, 6, 5]]]], [0, x1, 0, 8, 0], 0.5, 1, 1) == [[[[expected]]]]


def test_bins_outside_the_input_are_0_and_negative_ones_stay_negative() -> None:
    assert pooled(-1 - COUNTED, [[0, 0, 0, 1, 1], [0, 7, 7, 9, 9]], 1, 1, 1) == [[[[-1]]], [[[0]]]]


def test_an_inverted_region_has_one_element() -> None:
    assert pooled(COUNTED, [0, 3, 2, 1, 1], 1, 1, 1) == [[[[13]]]]


@pytest.mark.parametrize(
    ("batch", "expected"), [(1.9, 20), (-0.9, 10), (-1, 10), (9, 30), (np.nan, 10), (np.inf, 30)]
)
@pytest.mark.dmlemu(expect=["MEM_INDEX_*"])
def test_batch_indices_are_truncated_and_moved_into_the_batch(batch: float, expected: int) -> None:
    assert pooled(np.float32([[[[10]]], [[[20]]], [[[30]]]]), [batch, 0, 0, 0, 0], 1, 1, 1) == [
        [[[expected]]]
    ]


def test_a_nan_is_the_maximum_of_nans_only() -> None:
    x = np.float32([[[[np.nan, 1], [np.nan, np.nan]]]])
    (((top,), (bottom,)),) = pooled(x, [0, 0, 0, 1, 1], 1, 1, 2)[0]
    assert top == 1 and np.isnan(bottom)


@pytest.mark.parametrize(("scale", "x1"), [(1.5 / 19, 19), (3.5 / 11, 11)])
def test_corners_are_scaled_in_float32(scale: float, x1: int) -> None:
    """Scales that FLOAT32 rounds down: in FLOAT32 the product is the half that is meant, and rounds up."""
    assert float(np.float32(scale)) * x1 < round(scale * x1, 3)
    row = -np.arange(9, dtype=np.float32).reshape(1, 1, 1, 9)
    assert pooled(row, [0, x1, 0, 99, 0], scale, 1, 1) == [[[[-np.ceil(scale * x1)]]]]


# --- ROI_ALIGN ---


@pytest.mark.parametrize("function", [AVERAGE, MAX])
@pytest.mark.parametrize(
    ("region", "expected"),
    [
        ((7, 5, 7, 5), 2),
        ((-15, -15, -15, -15), 0),
        ((-10, 21, -10, 21), 6.5625),
        ((13, 8, 13, 8), 3.3125),
        ((-14, 19, -14, 19), 5.9375),
    ],
)
def test_what_a_device_returned(region: Any, expected: float, function: ReduceFunction) -> None:
    """Empty regions read one point; the planes are 25 apart, so -0.9375 is moved to 0, not mixed with 0."""
    scale = {"spatial_scale_x": 1 / 16, "spatial_scale_y": 1 / 16, "input_pixel_offset": 0.0}
    samples = {"minimum_samples_per_output": 2, "maximum_samples_per_output": 2}
    x = np.concatenate([COUNTED, COUNTED + 25, COUNTED + 50], 1)
    y = aligned(x, region, (2, 2), reduction_function=function, **scale, **samples)
    assert y == [[[[expected + plane] * 2] * 2 for plane in (0, 25, 50)]]


def test_samples_by_hand() -> None:
    """Columns 0 to 4 in two outputs: n = 2, positions -0.5 + 0.5, 1.5, 2.5, 3.5 of 0, 10, 20, 30."""
    x = np.float32([[[[0, 10, 20, 30]]]])
    fields = {"minimum_samples_per_output": 1, "maximum_samples_per_output": 9}
    assert aligned(x, (0, 0, 4, 1), (1, 2), **fields) == [[[[5, 25]]]]
    assert aligned(x, (0, 0, 4, 1), (1, 2), reduction_function=MAX, **fields) == [[[[10, 30]]]]
    assert aligned(x, (0, 0, 3, 1), (1, 2), **fields) == [[[[3.125, 17.5]]]]  # ceil(1.5) is 2 samples
    assert aligned(x, (4, 0, 0, 1), (1, 2), **fields) == [[[[25, 5]]]]  # mirrored
    assert aligned(x, (0, 0, 4, 1), (1, 4), interpolation_mode=NEAREST) == [[[[0, 10, 20, 30]]]]
    assert aligned(x, (0.5, 0, 4.5, 1), (1, 4), interpolation_mode=NEAREST) == [[[[10, 20, 30, 30]]]]  # ties


def test_samples_are_counted_in_float32() -> None:
    """Ten times the FLOAT32 of 0.1 is 1 in FLOAT32: one sample, in the middle. In FLOAT64 it is above 1."""
    x = np.float32([[[[0, 10, 30]]]])
    fields = {"spatial_scale_x": 10.0, "maximum_samples_per_output": 9, "input_pixel_offset": 0.0}
    assert aligned(x, (0, 0, 0.1, 1), (1, 1), reduction_function=MAX, **fields) == [[[[5]]]]


def test_ties_of_nearest_samples_in_float32() -> None:
    """FLOAT32 rounds 3 / 23 down, but 23 times it is 3 in FLOAT32: samples are on -0.5, 0.5 and 1.5."""
    row = np.float32([[[[10, 20, 30]]]])
    fields = {"spatial_scale_x": 3 / 23, "output_pixel_offset": 0.0, "interpolation_mode": NEAREST}
    assert aligned(row, (0, 0, 23, 1), (1, 3), **fields) == [[[[10, 20, 30]]]]


def test_regions_aligned_to_corners() -> None:
    x = np.float32([[[[0, 10, 20, 30]]]])
    fields: dict[str, Any] = {
        "align_regions_to_corners": True,
        "input_pixel_offset": 0.0,
        "output_pixel_offset": 0.0,
        "maximum_samples_per_output": 1,
    }
    assert aligned(x, (0, 0, 3, 0), (1, 3), **fields) == [[[[0, 15, 30]]]]
    assert aligned(x, (0, 0, 3, 0), (1, 1), **fields) == [[[[15]]]]  # one sample is in the middle


def test_samples_out_of_bounds() -> None:
    """At -2 and 5 of an input of 4 they are; those at -1 and 4 are moved to the edge."""
    fields = {"maximum_samples_per_output": 1, "out_of_bounds_input_value": 7.0}
    y = aligned([[[[1, 2, 3, 4]]]], (-2, 0, 6, 1), (1, 8), **fields)
    assert y == [[[[7, 1, 1, 2, 3, 4, 4, 7]]]]


def test_weight_zero_has_no_influence() -> None:
    x = np.float32([[[[1, np.inf, 3]]]])
    assert aligned(x, (0, 0, 3, 1), (1, 3)) == [[[[1, np.inf, 3]]]]


def test_a_huge_region_has_samples_only_where_the_input_is() -> None:
    """A billion samples in each output element: only those inside are visited."""
    x = np.float32([[[[5]]]])
    fields = {"maximum_samples_per_output": 2**32 - 1, "out_of_bounds_input_value": 1.0}
    inputs = {
        "input_tensor": x,
        "roi_tensor": np.float32([[-1e9, 0, 1e9, 1]]),
        "batch_indices_tensor": np.uint32([0]),
    }
    desc = example(
        OperatorType.ROI_ALIGN1,
        input_tensor=tensor(T.FLOAT32, 1, 1, 1, 1),
        roi_tensor=tensor(T.FLOAT32, 1, 4),
        batch_indices_tensor=tensor(T.UINT32, 1),
        output_tensor=tensor(T.FLOAT32, 1, 1, 1, 1),
        reduction_function=MAX,
        spatial_scale_y=1.0,
        **fields,
    )
    assert dmlemu.evaluate(desc, **inputs)["output_tensor"].tolist() == [[[[5]]]]


@pytest.mark.long
@pytest.mark.parametrize("region", [(-1, 0, 3, 2), (3, 2, -1, 0), (1, 1, 1, 1), (-2000, 0, 2000, 2)])
def test_more_samples_than_elements(region: Any) -> None:
    """1025 in each direction, of a region that is longer or shorter than these, mirrored or empty."""
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    aligned(x, region, (1, 2), minimum_samples_per_output=1025, maximum_samples_per_output=2000)


def test_fewest_samples_are_not_more_than_the_most() -> None:
    desc = example(OperatorType.ROI_ALIGN, minimum_samples_per_output=3)
    refused(desc, "OP_FIELD_RANGE", "MinimumSamplesPerOutput", 3, "at most 2")


@pytest.mark.parametrize("data_type", [T.UINT32, T.UINT64])
@pytest.mark.dmlemu(expect=["MEM_INDEX_VALUE"])
def test_a_batch_index_outside_is_the_last_item(data_type: T) -> None:
    """Compared at full width: 2**32 is not 0."""
    x = np.float32([[[[10]]], [[[20]]]])
    index = 2**32 if data_type is T.UINT64 else 2
    desc = example(
        OperatorType.ROI_ALIGN,
        input_tensor=tensor(T.FLOAT32, 2, 1, 1, 1),
        roi_tensor=tensor(T.FLOAT32, 1, 4),
        batch_indices_tensor=tensor(data_type, 1),
        output_tensor=tensor(T.FLOAT32, 1, 1, 1, 1),
    )
    regions, indices = np.float32([[0, 0, 1, 1]]), np.array([index], np.uint64)
    inputs = {"input_tensor": x, "roi_tensor": regions}
    inputs["batch_indices_tensor"] = indices.astype(np.uint32) if data_type is T.UINT32 else indices
    assert compare(desc, inputs)["output_tensor"].tolist() == [[[[20]]]]


# --- any desc and layout ---

INPUTS = ["input_tensor", "roi_tensor", "batch_indices_tensor", "input_gradient_tensor"]


@st.composite
def alignments(draw: Any, data_type: T) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a desc, and its tensors by all names."""
    small = st.integers(1, 4)
    n, c, h, w, regions, oh, ow = (draw(small) for _ in range(7))
    number = st.sampled_from([0.0, 0.5, -0.5, 1.0, 0.25, 0.1])
    least = draw(st.integers(0, 2))
    fields = {
        "reduction_function": draw(st.sampled_from([AVERAGE, MAX])),
        "interpolation_mode": draw(st.sampled_from([NEAREST, LINEAR])),
        "spatial_scale_x": draw(st.sampled_from([1.0, 0.5, 0.3, -1.0])),
        "spatial_scale_y": draw(st.sampled_from([1.0, 0.5, 2.0, 0.7])),
        "input_pixel_offset": draw(number),
        "output_pixel_offset": draw(number),
        "out_of_bounds_input_value": draw(st.sampled_from([0.0, -3.5, 1e30])),
        "minimum_samples_per_output": least,
        "maximum_samples_per_output": least + draw(st.integers(0, 2)),
        "align_regions_to_corners": draw(st.booleans()),
    }
    indices = draw(st.sampled_from([T.UINT32, T.UINT64]))
    ones = draw(st.integers(0, 2))
    shapes: dict[str, Any] = {
        "input_tensor": (data_type, [n, c, h, w]),
        "roi_tensor": (data_type, [1] * ones + [regions, 4]),
        "batch_indices_tensor": (indices, [1] * draw(st.integers(0, 3)) + [regions]),
        "output_tensor": (data_type, [regions, c, oh, ow]),
        "input_gradient_tensor": (data_type, [regions, c, oh, ow]),
        "output_gradient_tensor": (data_type, [n, c, h, w]),
        "output_roi_gradient_tensor": (data_type, [1] * ones + [regions, 4]),
    }
    return fields, {
        name: draw(tensors(*shape, output=name.startswith("output"))) for name, shape in shapes.items()
    }


def of(cls: Any, *fields: dict[str, Any], **changes: Any) -> Any:
    own = cls.__dataclass_fields__
    every = {name: value for group in fields for name, value in group.items() if name in own}
    return cls(**{**every, **changes})


def contents(data: st.DataObject, desc: Any, elements: Any) -> dict[str, Any]:
    """Regions near the input, or anywhere; indices inside the batch."""
    inputs = {}
    numbers = np.random.default_rng(data.draw(st.integers(0, 99)))
    for name in INPUTS:
        source = getattr(desc, name, None)
        if source is None:
            continue
        memory, x = filled(source, data.draw(elements))
        if name == "batch_indices_tensor":
            image = desc.input_tensor or desc.output_gradient_tensor
            x = logical(numbers.integers(0, image.sizes[0], memory.shape).astype(x.dtype), source)
        elif name == "roi_tensor" and data.draw(st.integers(0, 3)):
            x = logical((numbers.integers(-8, 24, memory.shape) / 4).astype(x.dtype), source)
        inputs[name] = x
    return inputs


@given(st.data())
def test_any_layout(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    fields = data.draw(alignments(data_type))
    cls = data.draw(st.sampled_from([dml.RoiAlignOperatorDesc, dml.RoiAlign1OperatorDesc]))
    desc = of(cls, *fields)
    compare(desc, contents(data, desc, values("extreme", "small")), offset=data.draw(offsets))


@given(st.data())
def test_any_layout_of_gradients(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    fields, tensors_ = data.draw(alignments(data_type))
    tensors_["batch_indices_tensor"] = replace(tensors_["batch_indices_tensor"], data_type=T.UINT32)
    desc = of(dml.RoiAlignGradOperatorDesc, fields, tensors_)
    absent = data.draw(st.sampled_from(["", "output_gradient_tensor", "output_roi_gradient_tensor"]))
    if absent:
        desc = replace(desc, **{absent: None})
    if (
        absent == "output_roi_gradient_tensor"
        and desc.reduction_function is AVERAGE
        and data.draw(st.booleans())
    ):
        desc = replace(desc, input_tensor=None)
    compare(desc, contents(data, desc, values("extreme", "small")), offset=data.draw(offsets))


@pytest.mark.dmlemu(expect=["MEM_INDEX_*"])
@given(st.data())
def test_any_layout_of_pooling(data: st.DataObject) -> None:
    data_type = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    small = st.integers(1, 4)
    n, c, h, w, regions, ph, pw = (data.draw(small) for _ in range(7))
    desc = dml.RoiPoolingOperatorDesc(
        input_tensor=data.draw(tensors(data_type, [n, c, h, w])),
        roi_tensor=data.draw(tensors(data_type, [1, 1, regions, 5])),
        output_tensor=data.draw(tensors(data_type, [regions, c, ph, pw], output=True)),
        spatial_scale=data.draw(st.sampled_from([1.0, 0.5, 0.3, -1.0])),
        pooled_size=Size2D(pw, ph),
    )
    compare(desc, contents(data, desc, values("extreme", "small")), offset=data.draw(offsets))


# --- gradients ---


def forward(
    fields: dict[str, Any], x: Any, regions: Any, indices: Any, sizes: Any, outside: float = 0.0
) -> Any:
    """In FLOAT64, by the reference."""
    desc = of(
        dml.RoiAlign1OperatorDesc,
        fields,
        input_tensor=tensor(T.FLOAT64, *x.shape),
        roi_tensor=tensor(T.FLOAT64, *regions.shape),
        batch_indices_tensor=tensor(T.UINT32, len(indices)),
        output_tensor=tensor(T.FLOAT64, *sizes),
        out_of_bounds_input_value=outside,
    )
    inputs = {"input_tensor": x, "roi_tensor": regions, "batch_indices_tensor": indices}
    return desc.reference(inputs)["output_tensor"]


def gradients(fields: dict[str, Any], x: Any, regions: Any, indices: Any, g: Any) -> Any:
    """On the device: by the input, and by the regions."""
    desc = of(
        dml.RoiAlignGradOperatorDesc,
        fields,
        input_tensor=tensor(T.FLOAT32, *x.shape),
        input_gradient_tensor=tensor(T.FLOAT32, *g.shape),
        roi_tensor=tensor(T.FLOAT32, *regions.shape),
        batch_indices_tensor=tensor(T.UINT32, len(indices)),
        output_gradient_tensor=tensor(T.FLOAT32, *x.shape),
        output_roi_gradient_tensor=tensor(T.FLOAT32, *regions.shape),
    )
    floats = {"input_tensor": x, "roi_tensor": regions, "input_gradient_tensor": g}
    found = compare(
        desc, {name: np.float32(each) for name, each in floats.items()} | {"batch_indices_tensor": indices}
    )
    return found["output_gradient_tensor"], found["output_roi_gradient_tensor"]


def case(seed: int, fields: dict[str, Any]) -> Any:
    numbers = np.random.default_rng(seed)
    x = np.float32(numbers.normal(size=(2, 2, 6, 5))).astype(np.float64)
    corners = numbers.uniform(0.3, 2, (3, 2)), numbers.uniform(2.3, 6.2, (3, 2))
    regions = np.float32(np.concatenate(corners, 1)).astype(np.float64)
    indices = np.uint32([0, 1, 0])
    g = np.float32(numbers.normal(size=(3, 2, 2, 3))).astype(np.float64)
    return x, regions, indices, g, *gradients(fields, x, regions, indices, g)


SETTINGS: dict[str, Any] = {
    "reduction_function": AVERAGE,
    "interpolation_mode": LINEAR,
    "spatial_scale_x": 1.0,
    "spatial_scale_y": 0.75,
    "input_pixel_offset": 0.5,
    "output_pixel_offset": -0.5,
    "minimum_samples_per_output": 2,
    "maximum_samples_per_output": 2,
    "align_regions_to_corners": False,
}


@pytest.mark.parametrize("mode", [NEAREST, LINEAR])
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_is_the_transpose(seed: int, mode: InterpolationMode) -> None:
    """<forward(x), g> = <x, gradient(g)>."""
    fields = SETTINGS | {"interpolation_mode": mode}
    x, regions, indices, g, by_input, _ = case(seed, fields)
    y = forward(fields, x, regions, indices, g.shape)
    assert np.isclose((y * g).sum(), (x * by_input).sum(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("function", [AVERAGE, MAX])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gradients_are_those_of_finite_differences(
    seed: int, aligned: bool, function: ReduceFunction
) -> None:
    fields = SETTINGS | {"align_regions_to_corners": aligned, "reduction_function": function}
    x, regions, indices, g, by_input, by_regions = case(seed, fields)

    def loss(x: Any, regions: Any) -> Any:
        return (forward(fields, x, regions, indices, g.shape, outside=-9) * g).sum()  # never the largest

    for array, gradient, half, error in (
        (
            regions,
            by_regions,
            2.0**-10,
            1e-3,
        ),  # positions are FLOAT32; no sample of these seeds passes an element
        (x, by_input, 1e-6, 1e-4),
    ):
        for place in np.ndindex(array.shape):
            step = np.zeros_like(array)
            step[place] = half
            ways = [
                loss(*((x, array + sign * step) if array is regions else (array + sign * step, regions)))
                for sign in (1, -1)
            ]
            assert np.isclose((ways[0] - ways[1]) / (2 * half), gradient[place], rtol=1e-3, atol=error), place
            if array is x and place[1:] == (0, 1, 1):
                break


def test_the_first_of_equal_samples_gets_the_gradient() -> None:
    fields = SETTINGS | {"reduction_function": MAX, "spatial_scale_y": 1.0, "interpolation_mode": NEAREST}
    x, g = np.ones((1, 1, 2, 2)), np.full((1, 1, 1, 1), 5.0)
    by_input, _ = gradients(fields, x, np.float32([[0, 0, 2, 2]]), np.uint32([0]), g)
    assert by_input.tolist() == [[[[5, 0], [0, 0]]]]


def test_nearest_regions_have_no_gradient() -> None:
    *_, by_regions = case(0, SETTINGS | {"interpolation_mode": NEAREST})
    assert not by_regions.any()


def test_an_input_is_required_where_it_takes_part() -> None:
    refused(
        example(OperatorType.ROI_ALIGN_GRAD, input_tensor=None),
        "OP_OPTIONAL",
        "InputTensor",
        "none",
        "a tensor desc",
    )
