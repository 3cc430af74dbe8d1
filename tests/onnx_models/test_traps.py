"""Where a translation of ONNX to DirectML easily goes wrong: results that the specification defines.

Where it is silent, ``test_numerics.py`` has the results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from models import INF, NAN, Array, check_node, f32, i32, i64, u8
from onnx import TensorProto as T

# --- softmax ---


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize(
    ("opset", "expected"),
    [(11, [[[0.0541, 0.1471], [0.3994, 0.3994]]]), (13, [[[0.26894, 0.73106], [0.5, 0.5]]])],
)
def test_softmax_before_opset_13_flattens_from_axis_1_on(op: str, opset: int, expected: Any) -> None:
    wanted = np.array(expected, np.float32)
    wanted = np.log(wanted) if op == "LogSoftmax" else wanted
    check_node(op, [f32([[1, 2], [3, 3]])], wanted, opset=opset, rtol=1e-3)


@pytest.mark.parametrize(("opset", "expected"), [(11, [[0, 0], [1, 0]]), (13, [[0, 1], [1, 0]])])
def test_hardmax_before_opset_13_flattens_from_axis_1_on(opset: int, expected: Any) -> None:
    check_node("Hardmax", [f32([[1, 2], [3, 3]])], f32(expected), opset=opset)


# --- casts ---


@pytest.mark.parametrize("x", [f32(0.5, -0.25, 256, NAN, 0), i32(256, 2, -1, 1, 0), u8(255, 2, 3, 1, 0)])
def test_every_number_but_0_is_true(x: Array) -> None:
    check_node("Cast", [x], np.array([True] * 4 + [False]), to=T.BOOL)


# --- whole numbers ---


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("direction", ["LEFT", "RIGHT"])
def test_a_shift_by_the_width_or_more_gives_0(dtype: Any, direction: str) -> None:
    width = np.dtype(dtype).itemsize * 8
    x, by = np.array([255, 255, 1], dtype), np.array([width, width + 1, 0], dtype)
    check_node("BitShift", [x, by], np.array([0, 0, 1], dtype), direction=direction)


def test_shrink_adds_its_bias_before_it_cuts() -> None:
    check_node("Shrink", [i32(-2, -1, 0, 1, 2)], i32(0, 0, 0, 0, 0), bias=1.5)
    check_node("Shrink", [i32(-3, -1, 0, 1, 3)], i32(-1, 0, 0, 0, 1), bias=1.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_limit_of_clip_that_is_absent_is_that_of_the_type(dtype: Any) -> None:
    x, most = np.array([np.inf, -np.inf, 3], dtype), np.finfo(dtype).max
    check_node("Clip", [x, np.array(1, dtype)], np.array([most, 1, 3], dtype))
    check_node("Clip", [x, None, np.array(1, dtype)], np.array([1, -most, 1], dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32])
def test_a_mean_of_whole_numbers_is_cut_toward_0(dtype: Any) -> None:
    x = np.array([[1, 2], [5, 6]], dtype)
    x = -x if np.dtype(dtype).kind == "i" else x
    check_node("ReduceMean", [x, i64(1)], np.trunc(x.mean(1)).astype(dtype), keepdims=0)


# --- reductions ---


def test_without_axes_only_the_reduction_is_skipped() -> None:
    x = f32(1, -2, 3, 4)
    check_node("ReduceSumSquare", [x], f32(1, 4, 9, 16), noop_with_empty_axes=1)
    check_node("ReduceL1", [x], f32(1, 2, 3, 4), noop_with_empty_axes=1)
    check_node("ReduceLogSum", [x * x], np.log(x * x), noop_with_empty_axes=1)
    check_node("ReduceSumSquare", [x], f32(30))


@pytest.mark.parametrize(("op", "expected"), [("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -INF)])
def test_the_reduction_of_nothing_is_the_neutral_number(op: str, expected: float) -> None:
    check_node(op, [np.zeros((2, 0), np.float32), i64(1)], f32(expected, expected), keepdims=0)


# --- parts of tensors ---


def test_a_condition_is_broadcast_to_both_choices() -> None:
    expected = f32([1, 20, 3], [1, 20, 3])
    check_node("Where", [np.array([True, False, True]), f32([1, 2, 3], [1, 2, 3]), f32(20)], expected)


def test_allowzero_changes_no_shape_without_a_zero() -> None:
    check_node("Reshape", [f32(1, 2, 3, 4, 5, 6), i64(3, -1)], f32([1, 2], [3, 4], [5, 6]), allowzero=1)


def test_negative_pads_crop_before_others_pad() -> None:
    check_node("Pad", [f32(0, 1, 2, 3, 4), i64(-1, 2)], f32(1, 2, 3, 4, 3, 2), mode="reflect")


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [
        (4, -100, -3, [4, 1]),
        (3, 0, -2, [3, 1]),
        (100, 1, -1, [4, 3, 2]),
        (-100, -100, -1, [0]),  # a start is not in front of the first element, an end is
        (-100, 3, 2, [0, 2]),
        (-2, 100, 1, [3, 4]),
    ],
)
def test_slices_with_any_step(start: int, end: int, step: int, expected: list[int]) -> None:
    inputs = [f32(0, 1, 2, 3, 4), i64(start), i64(end), i64(0), i64(step)]
    check_node("Slice", inputs, f32(*expected))


@pytest.mark.parametrize("indices", [i32(-1, -3), i64(-1, -3)])
def test_negative_indices_count_from_the_end(indices: Array) -> None:
    x = f32([0, 1], [2, 3], [4, 5])
    check_node("Gather", [x, indices], x[[2, 0]])


def test_indices_of_fewer_elements_than_the_tensor_has_in_other_dimensions() -> None:
    x, indices = f32([1, 2, 3], [4, 5, 6]), i64([1, 0])
    check_node("GatherElements", [x, indices], f32([4, 2]), axis=0)
    check_node("ScatterElements", [x, indices, f32([7, 8])], f32([1, 8, 3], [7, 5, 6]), axis=0)
    check_node("ScatterElements", [x, i64([-1]), f32([7])], f32([1, 2, 7], [4, 5, 6]), axis=1)


# --- Resize ---


def test_the_size_of_a_resized_dimension_is_that_of_a_product_in_float32() -> None:
    x = f32(0, 1, 2, 3, 4)
    check_node("Resize", [x, None, f32(1.4)], f32(0, 1, 1, 2, 3, 3, 4), mode="nearest")


def test_aligned_corners_use_the_length_that_is_not_rounded() -> None:
    check_node(
        "Resize",
        [f32(1, 2, 3, 4), None, f32(0.6)],
        f32(1, 22 / 7),
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )


@pytest.mark.parametrize(
    ("scale", "expected"), [(1.2, [0, 1, 2, 2, 3, 4]), (2.3, [0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4])]
)
def test_nearest_prefers_the_floor(scale: float, expected: list[int]) -> None:
    check_node("Resize", [f32(0, 1, 2, 3, 4), None, f32(scale)], f32(*expected), mode="nearest")


@pytest.mark.parametrize(("mode", "expected"), [("nearest", [1, 1, 3, 3]), ("linear", [1, 1.5, 2.5, 3])])
def test_a_resize_of_many_dimensions_some_of_which_change(mode: str, expected: list[float]) -> None:
    x = np.zeros((2, 3, 2, 2, 2), np.float32) + f32([[1]], [[3]])
    wanted = np.zeros((2, 3, 4, 4, 4), np.float32) + f32(*expected).reshape(4, 1, 1)
    check_node("Resize", [x, None, None, i64(2, 3, 4, 4, 4)], wanted, mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_resize_of_more_dimensions_than_resample_has(mode: str) -> None:
    x = np.arange(2**5, dtype=np.float32).reshape(2, 2, 2, 2, 2)
    wanted = x if mode == "nearest" else x.astype(np.float64)
    for axis in range(5):
        low, high = np.split(wanted, 2, axis)
        between = [(3 * low + high) / 4, (low + 3 * high) / 4] if mode == "linear" else [low, high]
        wanted = np.concatenate([low, *between, high], axis)
    check_node("Resize", [x, None, f32(2, 2, 2, 2, 2)], wanted.astype(np.float32), mode=mode)


def test_the_filter_of_a_resize_is_stretched_by_its_scale() -> None:
    inputs = [f32(4.25, 1.75), None, f32(0.5)]  # its corners give positions another scale
    attributes = {"coordinate_transformation_mode": "align_corners", "antialias": 1, "mode": "linear"}
    check_node("Resize", inputs, f32((1.5 * 4.25 + 0.5 * 1.75) / 2), **attributes)


# --- windows ---


def test_padding_counts_and_what_lies_beyond_does_not() -> None:
    x = f32(1, 2, 3, 4, 5, 6).reshape(1, 1, 6)
    attributes = {"kernel_shape": [3], "strides": [2], "ceil_mode": 1, "count_include_pad": 1}
    check_node("AveragePool", [x], f32(2, 4, 5.5).reshape(1, 1, 3), **attributes)
    check_node(
        "AveragePool", [x], f32(1, 3, 5, 3).reshape(1, 1, 4), **attributes, pads=[1, 1]
    )  # 6 and one zero of the padding, and one element beyond


@pytest.mark.parametrize(("auto_pad", "expected"), [("VALID", [2]), ("SAME_LOWER", [1, 5])])
def test_ceil_mode_changes_no_size_that_auto_pad_sets(auto_pad: str, expected: list[int]) -> None:
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 6)
    check_node(
        "MaxPool",
        [x],
        f32(*expected).reshape(1, 1, -1),
        kernel_shape=[2],
        dilations=[2],
        strides=[4],
        ceil_mode=1,
        auto_pad=auto_pad,
    )


def test_indices_of_a_max_pool_by_columns() -> None:
    x = np.arange(1, 13, dtype=np.float32).reshape(1, 1, 3, 4)
    check_node(
        "MaxPool",
        [np.concatenate([x, x], 1)],
        f32([[6, 8], [10, 12]], [[6, 8], [10, 12]]).reshape(1, 2, 2, 2),
        i64([[4, 10], [5, 11]], [[16, 22], [17, 23]]).reshape(1, 2, 2, 2),
        kernel_shape=[2, 2],
        strides=[2, 2],
        ceil_mode=1,
        storage_order=1,
    )


def test_indices_of_a_max_pool_count_through_all_planes() -> None:
    x = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2)
    maxima = f32(3, 7, 11, 15).reshape(2, 2, 1, 1)
    check_node("MaxPool", [x], maxima, maxima.astype(np.int64), kernel_shape=[2, 2])


def test_indices_of_max_unpool_count_elements_of_the_size_that_the_windows_give() -> None:
    expected = np.zeros((1, 1, 5, 5), np.float32)
    expected[0, 0, [1, 1, 3, 3], [1, 3, 1, 3]] = [1, 2, 3, 4]
    inputs = [f32(1, 2, 3, 4).reshape(1, 1, 2, 2), i64(5, 7, 13, 15).reshape(1, 1, 2, 2), i64(1, 1, 5, 5)]
    check_node("MaxUnpool", inputs, expected, kernel_shape=[2, 2], strides=[2, 2])


@pytest.mark.parametrize("spatial", [(2,), (2, 2), (2, 2, 2)])
def test_max_unpool_undoes_max_pool_of_many_planes(spatial: tuple[int, ...]) -> None:
    x = np.arange(4 * 2 ** len(spatial), dtype=np.float32).reshape(2, 2, *spatial)
    last = (slice(None), slice(None), *(slice(1, 2),) * len(spatial))
    expected = np.zeros_like(x)
    expected[last] = x[last]
    indices = np.arange(x.size).reshape(x.shape)[last]
    check_node("MaxUnpool", [x[last], indices], expected, kernel_shape=[2] * len(spatial))


def test_same_padding_of_a_dilated_convolution() -> None:
    x, w = f32(1, 2, 3, 4, 5).reshape(1, 1, 5), f32(1, 10).reshape(1, 1, 2)
    expected = f32(20, 31, 42, 53, 4).reshape(1, 1, 5)
    check_node("Conv", [x, w], expected, dilations=[2], auto_pad="SAME_UPPER")
    check_node("Conv", [x, w], f32(10, 21, 32, 43, 54).reshape(1, 1, 5), auto_pad="SAME_LOWER")
    strided = f32(20, 42, 4).reshape(1, 1, 3)
    check_node("Conv", [x, w], strided, dilations=[2], strides=[2], auto_pad="SAME_UPPER")


def test_same_padding_of_a_transposed_convolution_whose_windows_have_gaps() -> None:
    x, w = f32(1, 2, 3).reshape(1, 1, 3), f32(1, 10).reshape(1, 1, 2)
    expected = f32(1, 10, 0, 2, 20, 0, 3, 30, 0).reshape(1, 1, 9)
    check_node("ConvTranspose", [x, w], expected, strides=[3], auto_pad="SAME_UPPER")
    check_node("ConvTranspose", [x, w], expected, strides=[3], auto_pad="SAME_LOWER")


def test_more_of_the_padding_for_an_output_shape_is_at_the_start() -> None:
    x, w = f32(1, 2, 3).reshape(1, 1, 3), f32(1, 10, 100).reshape(1, 1, 3)
    expected = f32(10, 102, 20, 203, 30, 300).reshape(1, 1, 6)
    check_node("ConvTranspose", [x, w], expected, strides=[2], output_shape=[6])


# --- normalizations ---


def test_mean_variance_normalization_adds_its_epsilon_to_the_deviation() -> None:
    x = f32(1e-9, -1e-9).reshape(1, 1, 1, 2)
    check_node("MeanVarianceNormalization", [x], f32(0.5, -0.5).reshape(1, 1, 1, 2))
    check_node("MeanVarianceNormalization", [x * 0 + 3], x * 0)


def test_batch_normalization_in_training_moves_the_running_statistics() -> None:
    x = f32([[1], [3]], [[5], [7]]).reshape(2, 2, 1)  # channels: 1, 5 and 3, 7
    ones, zeros = f32(1, 1), f32(0, 0)
    check_node(
        "BatchNormalization",
        [x, ones, zeros, f32(10, 20), f32(100, 200)],
        f32([[-1], [-1]], [[1], [1]]),
        f32(10 * 0.75 + 3 * 0.25, 20 * 0.75 + 5 * 0.25),
        f32(100 * 0.75 + 4 * 0.25, 200 * 0.75 + 4 * 0.25),
        training_mode=1,
        momentum=0.75,
        rtol=1e-4,
    )


@pytest.mark.parametrize("p", [1, 2])
def test_a_vector_of_zeros_stays_zero_when_it_is_normalized(p: int) -> None:
    norm = 7 if p == 1 else 5
    x = f32([0, 0], [-3, 4])
    check_node("LpNormalization", [x], f32([0, 0], [-3 / norm, 4 / norm]), p=p)


def test_group_normalization_has_a_scale_for_each_channel() -> None:
    x = f32(1, 3, 10, 30).reshape(1, 4, 1)
    scale, bias = f32(1, 2, 3, 4), f32(0, 0, 0, 0)
    expected = f32(-1, 2, -3, 4).reshape(1, 4, 1)
    check_node("GroupNormalization", [x, scale, bias], expected, num_groups=2, rtol=1e-4)


# --- RoiAlign ---

IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)


@pytest.mark.parametrize(("opset", "expected"), [(10, 7.5), (16, 3.125)])
def test_roi_align_shifts_by_half_a_pixel_from_opset_16_on(opset: int, expected: float) -> None:
    rois = f32([1, 1, 1.25, 1.25])
    check_node("RoiAlign", [IMAGE, rois, i64(0)], f32(expected).reshape(1, 1, 1, 1), opset=opset)


def test_roi_align_takes_the_largest_of_weighted_neighbours() -> None:
    """On the host: ROI_ALIGN takes the largest of interpolated samples."""
    rois, expected = f32([0, 0, 3, 3]), f32(5.625).reshape(1, 1, 1, 1)
    attributes = {"mode": "max", "sampling_ratio": 2, "opset": 16, "host": "run"}
    check_node("RoiAlign", [IMAGE, rois, i64(0)], expected, **attributes)


def test_a_region_without_half_pixels_has_one_element_at_least() -> None:
    check_node(
        "RoiAlign",
        [IMAGE, f32([1, 1, 1.25, 1.25]), i64(0)],
        f32(7.5).reshape(1, 1, 1, 1),
        opset=16,
        coordinate_transformation_mode="output_half_pixel",
    )


@pytest.mark.parametrize(("position", "expected"), [(-0.3, 0.669251), (-0.8, 1), (3.2, 8.576003), (3.9, 8)])
def test_cubic_samples_up_to_half_an_element_outside_are_not_on_the_border(
    position: float, expected: float
) -> None:
    grid = f32([[[(2 * position + 1) / 4 - 1, 0]]])
    attributes = {"mode": "cubic", "padding_mode": "border", "opset": 20}
    check_node("GridSample", [f32([[[1, 4, 2, 8]]]), grid], f32([[[expected]]]), **attributes)


# --- quantization ---


def test_without_a_zero_point_it_is_0() -> None:
    check_node("QuantizeLinear", [f32(-3, 3, 300), np.float32(1)], u8(0, 3, 255))
    check_node("DequantizeLinear", [u8(0, 3, 255), np.float32(1)], f32(0, 3, 255))
    check_node("DequantizeLinear", [np.array([-128, 3], np.int8), np.float32(0.5)], f32(-64, 1.5))


def test_a_zero_point_of_each_filter() -> None:
    x, w = u8(1, 2, 3).reshape(1, 1, 3), u8(2, 2).reshape(2, 1, 1)
    check_node("ConvInteger", [x, w, np.uint8(1), u8(0, 1)], i32([[0, 2, 4], [0, 1, 2]]))


@pytest.mark.parametrize("batch_of_b", [(), (3,)])
@pytest.mark.parametrize("batch_of_a", [(), (3,)])
@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_a_zero_point_of_each_row(
    shape: tuple[int, ...], batch_of_a: tuple[int, ...], batch_of_b: tuple[int, ...]
) -> None:
    a = np.broadcast_to(u8([5, 6], [7, 8]), (*batch_of_a, 2, 2))
    b = np.broadcast_to(u8([1, 2], [1, 1]), (*batch_of_b, 2, 2))
    expected = np.broadcast_to(i32([5, 7], [13, 19]), (*(batch_of_a or batch_of_b), 2, 2))
    check_node("MatMulInteger", [a, b, u8(3, 1).reshape(shape)], expected)


@pytest.mark.parametrize(("dtype", "zero"), [(np.int16, -32768), (np.uint16, 65535)])
def test_numbers_of_16_bits_are_dequantized(dtype: Any, zero: int) -> None:
    x = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    expected = f32(0, 32767.5) if dtype is np.int16 else f32(-32767.5, 0)
    check_node("DequantizeLinear", [x, np.float32(0.5), dtype(zero)], expected)


# --- recurrent ---


def _with_ones(op: str, gates: int) -> list[Any]:
    """A network of one unit without recurrence, that reads 1s in two sequences."""
    x = np.ones((3, 2, 1), np.float32)
    return [x, np.ones((1, gates, 1), np.float32), np.zeros((1, gates, 1), np.float32), None, i32(3, 1)]


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_behind_its_length_a_sequence_gives_zeros(op: str, gates: int) -> None:
    s, t = 1 / (1 + np.exp(-1)), np.tanh(1)
    y, state, cell = np.zeros((3, 2)), np.zeros(2), np.zeros(2)
    for step in range(3):
        active = np.array([3, 1]) > step
        if op == "LSTM":
            cell = np.where(active, s * cell + s * t, cell)
            new = s * np.tanh(cell)
        else:
            new = np.full(2, t) if op == "RNN" else (1 - s) * t + s * state
        state = np.where(active, new, state)
        y[step] = np.where(active, new, 0)
    expected = [y.reshape(3, 1, 2, 1).astype(np.float32), state.reshape(1, 2, 1).astype(np.float32)]
    check_node(op, _with_ones(op, gates), *expected, hidden_size=1)


def test_the_gates_of_an_lstm_are_input_output_forget_cell() -> None:
    rng = np.random.default_rng(3)
    w, r, p = (rng.normal(size=size).astype(np.float32) for size in ((1, 4, 1), (1, 4, 1), (1, 3)))
    (wi, wo, wf, wc), (ri, ro, rf, rc), (pi, po, pf) = w.ravel(), r.ravel(), p.ravel()
    x, h, c = 0.7, 0.3, -0.4

    def sigmoid(value: float) -> float:
        return float(1 / (1 + np.exp(-value)))

    i, f = sigmoid(wi * x + ri * h + pi * c), sigmoid(wf * x + rf * h + pf * c)
    cell = f * c + i * np.tanh(wc * x + rc * h)
    state = sigmoid(wo * x + ro * h + po * cell) * np.tanh(cell)
    one = [f32([[value]]) for value in (x, h, c)]
    inputs = [one[0], w, r, None, None, one[1], one[2], p]
    check_node("LSTM", inputs, None, f32([[state]]), f32([[cell]]), hidden_size=1)


# --- attention ---


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="Attention is an operator since opset 23")
@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_causal_from_the_first_key_on_and_a_masked_row_is_0(masked: bool) -> None:
    q, k = np.zeros((1, 1, 2, 1), np.float32), np.zeros((1, 1, 4, 1), np.float32)
    v = f32(1, 3, 100, 100).reshape(1, 1, 4, 1)
    if masked:
        mask = np.array([[False] * 4, [True, True, False, False]])
        check_node("Attention", [q, k, v, mask], f32(0, 2).reshape(1, 1, 2, 1), opset=23)
    else:
        check_node("Attention", [q, k, v], f32(1, 2).reshape(1, 1, 2, 1), opset=23, is_causal=1)
