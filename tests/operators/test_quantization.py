"""Quantization and dequantization, with parameters per tensor, per axis and per block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import compare, given, offsets
from hypothesis import strategies as st
from strategies import Array, filled, shapes, tensors, values

import dmlemu
from dmlemu import dml, evaluate
from dmlemu.cli import main
from dmlemu.dml import BufferTensorDesc
from dmlemu.dml import TensorDataType as T

NAN, INF = np.nan, np.inf


def tensor(data_type: T, *sizes: int, strides: list[int] | None = None) -> BufferTensorDesc:
    return BufferTensorDesc(data_type, sizes, strides)


def spread(array: Any, desc: BufferTensorDesc) -> Array:
    """The elements of a tensor with strides of 0."""
    return np.broadcast_to(np.asarray(array, desc.dtype), desc.sizes)


# --- ELEMENT_WISE_QUANTIZE_LINEAR, ELEMENT_WISE_DEQUANTIZE_LINEAR ---


def quantize_linear(x: Any, scale: float, zero_point: int, source: T, target: T) -> list[int]:
    n = len(x)
    op = dml.ElementWiseQuantizeLinearOperatorDesc(
        input_tensor=tensor(source, n),
        scale_tensor=tensor(T.FLOAT32 if source is T.INT32 else source, n, strides=[0]),
        zero_point_tensor=tensor(target, n, strides=[0]),
        output_tensor=tensor(target, n),
    )
    inputs = {
        "input_tensor": np.array(x, op.input_tensor.dtype),
        "scale_tensor": spread(scale, op.scale_tensor),
        "zero_point_tensor": spread(zero_point, op.output_tensor),
    }
    found: list[int] = compare(op, inputs)["output_tensor"].tolist()
    return found


@pytest.mark.parametrize("source", [T.FLOAT32, T.FLOAT16, T.INT32])
def test_halves_are_rounded_to_even_before_the_zero_point_is_added(source: T) -> None:
    x = [1, 3, 5, 7, -1, -3, -5, 250, 1000, -1000]
    assert quantize_linear(x, 2, 1, source, T.UINT8) == [1, 3, 3, 5, 1, 0, 0, 126, 255, 0]
    assert quantize_linear(x, 2, -1, source, T.INT8) == [-1, 1, 1, 3, -1, -3, -3, 124, 127, -128]


def test_what_a_device_was_seen_to_return() -> None:
    """From ONNX Runtime's tests; the device multiplies by the reciprocal, which gives -128 for -5."""
    x = [0, 2, 3, 5, -2, -5]
    assert quantize_linear(x, 0.039215686, 0, T.FLOAT32, T.INT8) == [0, 51, 76, 127, -51, -127]


@pytest.mark.parametrize("target", [T.UINT8, T.INT8])
def test_nan_infinity_and_a_scale_of_zero(target: T) -> None:
    low, high = (0, 255) if target is T.UINT8 else (-128, 127)
    x = [NAN, INF, -INF, 3.0e38, -3.0e38, 0.0]
    assert quantize_linear(x, 1, 5, T.FLOAT32, target) == [5, high, low, high, low, 5]
    assert quantize_linear(x, -0.5, 5, T.FLOAT32, target) == [5, low, high, low, high, 5]
    assert quantize_linear(x, 0, 5, T.FLOAT32, target) == [5, high, low, high, low, 5]
    assert quantize_linear(x, NAN, 5, T.FLOAT32, target) == [5] * 6


def test_quotients_of_integers_are_exact() -> None:
    """2^24 + 1 is no FLOAT32."""
    x = [2**24 + 1, -(2**31), 2**31 - 1]
    assert quantize_linear(x, 2**18 + 0.015625, 100, T.INT32, T.UINT8) == [164, 0, 255]
    assert quantize_linear([2**24 + 1], 2.0**25, 0, T.INT32, T.UINT8) == [1]  # just above a half


@pytest.mark.parametrize(
    ("source", "x", "zero_point", "expected"),
    [
        (T.UINT8, [0, 128, 255], 128, [-64.0, 0.0, 63.5]),
        (T.INT8, [-128, 127, 0], 127, [-127.5, 0.0, -63.5]),
        (T.INT16, [-(2**15), 2**15 - 1], 2**15 - 1, [-32767.5, 0.0]),
        (T.UINT16, [0, 2**16 - 1], 2**16 - 1, [-32767.5, 0.0]),
        (T.INT32, [-(2**31), 2**31 - 1], 2**31 - 1, [-(2.0**31), 0.0]),
        (T.UINT32, [0, 2**32 - 1, 2**32 - 2], 2**32 - 1, [-(2.0**31), 0.0, -0.5]),
    ],
)
def test_differences_need_more_bits_than_their_type(
    source: T, x: Any, zero_point: int, expected: Any
) -> None:
    op = dml.ElementWiseDequantizeLinearOperatorDesc(
        input_tensor=tensor(source, len(x)),
        scale_tensor=tensor(T.FLOAT32, len(x), strides=[0]),
        zero_point_tensor=tensor(source, len(x), strides=[0]),
        output_tensor=tensor(T.FLOAT32, len(x)),
    )
    inputs = {
        "input_tensor": np.array(x, op.input_tensor.dtype),
        "scale_tensor": spread(0.5, op.scale_tensor),
        "zero_point_tensor": spread(zero_point, op.input_tensor),
    }
    assert compare(op, inputs)["output_tensor"].tolist() == expected


@pytest.mark.parametrize("quantize", [True, False])
@given(st.data(), examples=30)
def test_linear_in_any_layout(quantize: bool, data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    if quantize:
        source = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16, T.INT32]))
        scales = T.FLOAT32 if source is T.INT32 else source
        whole = target = data.draw(st.sampled_from([T.UINT8, T.INT8]))
    else:
        whole = source = data.draw(st.sampled_from([T.UINT8, T.INT8, T.UINT16, T.INT16, T.UINT32, T.INT32]))
        scales = target = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    kind = (
        dml.ElementWiseQuantizeLinearOperatorDesc if quantize else dml.ElementWiseDequantizeLinearOperatorDesc
    )
    op = kind(
        input_tensor=data.draw(tensors(source, sizes)),
        scale_tensor=data.draw(tensors(scales, sizes)),
        zero_point_tensor=data.draw(st.none() | tensors(whole, sizes)),
        output_tensor=data.draw(tensors(target, sizes, output=True)),
    )
    compare(op, drawn(data, op), offset=data.draw(offsets))


def drawn(data: st.DataObject, op: Any) -> dict[str, Array]:
    """Values for all inputs."""
    names = [name for name in vars(op) if name.endswith("_tensor")]
    inputs = {}
    for name in names:
        desc = getattr(op, name)
        if desc is not None and name not in OUTPUTS[op.TYPE]:
            inputs[name] = filled(desc, data.draw(values()))[1]
    return inputs


O = dml.OperatorType  # noqa: E741
OUTPUTS = {
    O.ELEMENT_WISE_QUANTIZE_LINEAR: {"output_tensor"},
    O.ELEMENT_WISE_DEQUANTIZE_LINEAR: {"output_tensor"},
    O.ELEMENT_WISE_QUANTIZED_LINEAR_ADD: {"output_tensor"},
    O.DYNAMIC_QUANTIZE_LINEAR: {"output_tensor", "output_scale_tensor", "output_zero_point_tensor"},
}


# --- ELEMENT_WISE_QUANTIZED_LINEAR_ADD ---


def sum_of(sizes: list[int], a: T, b: T, out: T, **others: Any) -> Any:
    one, rank = [1] * len(sizes), len(sizes)
    tensors_of = {
        "a_tensor": tensor(a, *sizes),
        "b_tensor": tensor(b, *sizes),
        "output_tensor": tensor(out, *sizes),
        "a_zero_point_tensor": tensor(a, *one),
        "b_zero_point_tensor": tensor(b, *one),
        "output_zero_point_tensor": tensor(out, *one),
    }
    scales = dict.fromkeys(
        ["a_scale_tensor", "b_scale_tensor", "output_scale_tensor"], tensor(T.FLOAT32, *[1] * rank)
    )
    return dml.ElementWiseQuantizedLinearAddOperatorDesc(**{**tensors_of, **scales, **others})


def test_a_sum_by_hand() -> None:
    """(A - 128) * 0.5 + (B + 1) * 0.25, divided by 2: -64, 0.25 and 95.5; the last is even 96."""
    op = sum_of([3], T.UINT8, T.INT8, T.INT8)
    inputs = {
        "a_tensor": np.uint8([0, 128, 255]),
        "a_scale_tensor": np.float32([0.5]),
        "a_zero_point_tensor": np.uint8([128]),
        "b_tensor": np.int8([-128 + 127, 0, 127]),
        "b_scale_tensor": np.float32([0.25]),
        "b_zero_point_tensor": np.int8([-1]),
        "output_scale_tensor": np.float32([0.5]),
        "output_zero_point_tensor": np.int8([10]),
    }
    # sums -64, 0.25, 95.5; over 0.5: -128, 0.5 (to 0), 191
    assert compare(op, inputs)["output_tensor"].tolist() == [-118, 10, 127]


@given(st.data(), examples=30)
def test_sums_in_any_layout(data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    one = [1] * len(sizes)
    fields: dict[str, Any] = {}
    for name in ("a", "b", "output"):
        kind = data.draw(st.sampled_from([T.UINT8, T.INT8]))
        fields[f"{name}_tensor"] = data.draw(tensors(kind, sizes, output=name == "output"))
        fields[f"{name}_scale_tensor"] = data.draw(tensors(T.FLOAT32, one))
        fields[f"{name}_zero_point_tensor"] = data.draw(st.none() | tensors(kind, one))
    op = dml.ElementWiseQuantizedLinearAddOperatorDesc(**fields)
    inputs = drawn(data, op)
    if data.draw(st.booleans()):
        for name in ("a", "b", "output"):
            inputs[f"{name}_scale_tensor"] = np.full(
                one, data.draw(st.sampled_from([0.5, 0.1, 0.037])), np.float32
            )
    compare(op, inputs, offset=data.draw(offsets))


# --- DYNAMIC_QUANTIZE_LINEAR ---


def dynamic(x: Any, target: T = T.UINT8, source: T = T.FLOAT32) -> tuple[float, int, list[int]]:
    op = dml.DynamicQuantizeLinearOperatorDesc(
        input_tensor=tensor(source, len(x)),
        output_tensor=tensor(target, len(x)),
        output_scale_tensor=tensor(T.FLOAT32, 1),
        output_zero_point_tensor=tensor(target, 1),
    )
    found = compare(op, {"input_tensor": np.array(x, op.input_tensor.dtype)})
    scale, zero_point = found["output_scale_tensor"], found["output_zero_point_tensor"]
    return round(float(scale[0]), 9), int(zero_point[0]), found["output_tensor"].tolist()


MIXED = [0, 2, -3, -2.5, 1.34, 0.5]


def test_dynamic_vectors() -> None:
    """The first is what a device returned, except for 26, for which it gave 25 by a reciprocal."""
    assert dynamic(MIXED) == (0.019607844, 153, [153, 255, 0, 26, 221, 179])
    assert dynamic(MIXED, T.INT8) == (0.019607844, 25, [25, 127, -128, -102, 93, 51])
    negative = dynamic([-1, -2.1, -1.3, -2.5, -3.34, -4])
    assert negative == (0.015686275, 255, [191, 121, 172, 96, 42, 0])
    positive = dynamic([1, 2.1, 1.3, 2.5, 3.34, 4, 1.5, 2.6, 3.9, 4, 3, 2.345])
    assert positive == (0.015686275, 0, [64, 134, 83, 159, 213, 255, 96, 166, 249, 255, 191, 149])


def test_a_range_of_nothing_and_of_everything() -> None:
    assert dynamic([0, -0.0]) == (0.003921569, 0, [0, 0])
    assert dynamic([0, NAN], T.INT8) == (0.003921569, -128, [-128, -128])
    assert dynamic([NAN, 255, -0.0]) == (1, 0, [0, 255, 0])
    assert dynamic([1, INF]) == (INF, 0, [0, 0])
    assert dynamic([1, -INF]) == (INF, 0, [0, 0])
    assert dynamic([1, 65504], source=T.FLOAT16)[2] == [0, 255]


@pytest.mark.parametrize(("target", "least", "most"), [(T.UINT8, 0, 255), (T.INT8, -128, 127)])
def test_a_range_whose_scale_is_below_the_smallest_number(target: T, least: int, most: int) -> None:
    """1e-43 / 255 is 0: positive numbers are infinite multiples of it, and 0 is the least integer."""
    assert dynamic([0, 1e-43], target) == (0, least, [least, most])


def test_many_elements_on_several_threads() -> None:
    x = np.random.default_rng(0).normal(0, 1, 3_000_000).astype(np.float32)
    x[[1234, 2_999_999]] = [9, -7]
    op = dml.DynamicQuantizeLinearOperatorDesc(
        input_tensor=tensor(T.FLOAT32, x.size),
        output_tensor=tensor(T.UINT8, x.size),
        output_scale_tensor=tensor(T.FLOAT32, 1),
        output_zero_point_tensor=tensor(T.UINT8, 1),
    )
    found, expected = evaluate(op, input_tensor=x), op.reference({"input_tensor": x})
    for name, want in expected.items():
        np.testing.assert_array_equal(found[name], want)


@given(st.data(), examples=30)
def test_dynamic_in_any_layout(data: st.DataObject) -> None:
    sizes = data.draw(shapes())
    one = [1] * len(sizes)
    kind = data.draw(st.sampled_from([T.UINT8, T.INT8]))
    op = dml.DynamicQuantizeLinearOperatorDesc(
        input_tensor=data.draw(tensors(data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16])), sizes)),
        output_tensor=data.draw(tensors(kind, sizes, output=True)),
        output_scale_tensor=data.draw(tensors(T.FLOAT32, one, output=True)),
        output_zero_point_tensor=data.draw(tensors(kind, one, output=True)),
    )
    inputs = {"input_tensor": filled(op.input_tensor, data.draw(values("extreme", "moderate", "small")))[1]}
    compare(op, inputs, offset=data.draw(offsets))


# --- QUANTIZE, DEQUANTIZE ---


def blocks_of(*parameters: BufferTensorDesc) -> Any:
    """The fields of the scale and perhaps the zero point."""
    kinds = [dml.QuantizationType.NONE, dml.QuantizationType.SCALE, dml.QuantizationType.SCALE_ZERO_POINT]
    return {"quantization_type": kinds[len(parameters)], "quantization_tensors": parameters}


def dequantized(integers: T, x: Any, scale: Any, zero_point: Any = None, numbers: T = T.FLOAT32) -> Any:
    """DEQUANTIZE of packed tensors."""
    x = np.array(x, tensor(integers, 1).dtype)
    arrays = [np.array(scale, tensor(numbers, 1).dtype)]
    descs = [tensor(numbers, *arrays[0].shape)]
    if zero_point is not None:
        arrays.append(np.array(zero_point, x.dtype))
        descs.append(tensor(integers, *arrays[1].shape))
    op = dml.DequantizeOperatorDesc(
        input_tensor=tensor(integers, *x.shape),
        output_tensor=tensor(numbers, *x.shape),
        **blocks_of(*descs),
    )
    return compare(op, {"input_tensor": x, "quantization_tensors": arrays})["output_tensor"].tolist()


def test_an_absent_zero_point_is_the_middle_of_an_unsigned_range() -> None:
    assert dequantized(T.UINT4, [1, 2, 15, 8], [0.5]) == [-3.5, -3, 3.5, 0]
    assert dequantized(T.UINT4, [1, 2, 15, 8], [0.5], [0]) == [0.5, 1, 7.5, 4]
    assert dequantized(T.INT4, [1, 2, -1, -8], [0.5]) == [0.5, 1, -0.5, -4]
    assert dequantized(T.UINT8, [0, 128, 255], [0.5]) == [-64, 0, 63.5]
    assert dequantized(T.INT8, [-128, 0, 127], [0.5]) == [-64, 0, 63.5]


def test_blocks_as_a_device_was_seen_to_take_them() -> None:
    """From the tests of Vortice.Windows, which run on real devices."""
    x = [[[[-128, -1, 0, 1, 2, 3, 4, 127], [10, 20, 30, 40, -10, -20, -30, -40]]]]
    found = dequantized(T.INT8, x, [[[[0.5, 2], [0.1, 1]]]])
    tenths = [float(np.float32(value) * np.float32(0.1)) for value in (10, 20, 30, 40)]
    assert found == [[[[-64, -0.5, 0, 0.5, 4, 6, 8, 254], [*tenths, -10, -20, -30, -40]]]]


def test_odd_rows_of_4_bits_and_a_zero_point_for_each() -> None:
    """Rows of the input begin in mid-byte."""
    x = [[-8, -7, -6], [-1, 0, 1], [5, 6, 7]]
    found = dequantized(T.INT4, x, [[1], [2], [0.5]], [[-8], [7], [1]], T.FLOAT16)
    assert found == [[0, 1, 2], [-16, -14, -12], [2, 2.5, 3]]


@pytest.mark.parametrize(
    ("integers", "expected"),
    [
        (T.UINT4, [8, 8, 8, 10, 10, 0, 15, 15]),
        (T.INT4, [0, 0, 0, 2, 2, -8, 7, 7]),
        (T.UINT8, [128, 128, 128, 130, 130, 18, 238, 255]),
        (T.INT8, [0, 0, 0, 2, 2, -110, 110, 127]),
    ],
)
def test_quantize_saturates_and_rounds_halves_to_even(integers: T, expected: list[int]) -> None:
    op = dml.QuantizeOperatorDesc(
        input_tensor=tensor(T.FLOAT32, 8),
        output_tensor=tensor(integers, 8),
        **blocks_of(tensor(T.FLOAT32, 1)),
    )
    x = np.float32([0, NAN, 0.25, 0.75, 1.25, -55, 55, INF])
    found = compare(op, {"input_tensor": x, "quantization_tensors": [np.float32([0.5])]})
    assert found["output_tensor"].tolist() == expected


@pytest.mark.parametrize("quantize", [True, False])
@given(st.data(), examples=40)
def test_blocks_in_any_layout(quantize: bool, data: st.DataObject) -> None:
    sizes = data.draw(shapes(max_elements=300))
    divisors = [[n for n in range(1, size + 1) if size % n == 0] for size in sizes]
    blocks = [data.draw(st.sampled_from(each)) for each in divisors]
    integers = data.draw(st.sampled_from([T.UINT4, T.INT4, T.UINT8, T.INT8]))
    numbers = data.draw(st.sampled_from([T.FLOAT32, T.FLOAT16]))
    parameters = [data.draw(tensors(numbers, blocks))]
    if data.draw(st.booleans()):
        parameters.append(data.draw(tensors(integers, blocks)))
    source, target = (numbers, integers) if quantize else (integers, numbers)
    kind = dml.QuantizeOperatorDesc if quantize else dml.DequantizeOperatorDesc
    op = kind(
        input_tensor=data.draw(tensors(source, sizes)),
        output_tensor=data.draw(tensors(target, sizes, output=True)),
        **blocks_of(*parameters),
    )
    inputs = {
        "input_tensor": filled(op.input_tensor, data.draw(values()))[1],
        "quantization_tensors": [filled(each, data.draw(values()))[1] for each in parameters],
    }
    compare(op, inputs, offset=data.draw(offsets))


def test_more_blocked_dimensions_than_a_view_has() -> None:
    """8 dimensions, each of which splits into blocks and their elements."""
    generator = np.random.default_rng(3)
    x = generator.integers(-8, 8, [4] * 8).astype(np.int8)
    scale = generator.normal(0, 1, [2] * 8).astype(np.float32)
    op = dml.DequantizeOperatorDesc(
        input_tensor=tensor(T.INT4, *x.shape),
        output_tensor=tensor(T.FLOAT32, *x.shape),
        **blocks_of(tensor(T.FLOAT32, *scale.shape)),
    )
    inputs = {"input_tensor": x, "quantization_tensors": [scale]}
    np.testing.assert_array_equal(
        evaluate(op, **inputs)["output_tensor"], op.reference(inputs)["output_tensor"]
    )


def test_threads_share_bytes() -> None:
    """The parts of two threads, and the columns of the output, meet in the middle of bytes."""
    rows, columns = 1501, 401
    x = np.random.default_rng(4).integers(0, 16, [rows, columns]).astype(np.float32)
    op = dml.QuantizeOperatorDesc(
        input_tensor=tensor(T.FLOAT32, rows, columns),
        output_tensor=tensor(T.UINT4, rows, columns, strides=[1, rows]),
        **blocks_of(tensor(T.FLOAT32, 1, 1), tensor(T.UINT4, 1, 1)),
    )
    parameters = [np.float32([[1]]), np.uint8([[0]])]
    found = evaluate(op, input_tensor=x, quantization_tensors=parameters)
    np.testing.assert_array_equal(found["output_tensor"], x.astype(np.uint8))


def test_a_model_with_4_bit_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """DxDispatch has no initial values of 4 bits: a model gives them as bytes, two elements in each."""
    model = {
        "resources": {
            "X": {"initialValuesDataType": "UINT8", "initialValues": [0x21, 0x8F, 0, 0]},
            "Scale": {"initialValuesDataType": "FLOAT32", "initialValues": [0.5]},
            "Y": {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 4, "value": 0}},
        },
        "dispatchables": {
            "dequantize": {
                "type": "DML_OPERATOR_DEQUANTIZE",
                "desc": {
                    "InputTensor": {"DataType": "UINT4", "Sizes": [4]},
                    "QuantizationType": "DML_QUANTIZATION_TYPE_SCALE",
                    "QuantizationTensorCount": 1,
                    "QuantizationTensors": [{"DataType": "FLOAT32", "Sizes": [1]}],
                    "OutputTensor": {"DataType": "FLOAT32", "Sizes": [4]},
                },
            }
        },
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "dequantize",
                "bindings": {"InputTensor": "X", "QuantizationTensors": ["Scale"], "OutputTensor": "Y"},
            },
            {"type": "print", "resource": "Y"},
        ],
    }
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))

    assert main(["run", str(path)]) == 0
    assert "-3.5, -3, 3.5, 0" in capsys.readouterr().out


def test_a_graph_passes_4_bit_elements_on() -> None:
    """QUANTIZE writes an odd number of them to temporary memory, DEQUANTIZE reads them in another layout."""
    numbers, scale = tensor(T.FLOAT32, 3, 3), tensor(T.FLOAT32, 1, 1)
    small = tensor(T.INT4, 3, 3)
    steps = blocks_of(scale)
    quantize = dml.QuantizeOperatorDesc(input_tensor=numbers, output_tensor=small, **steps)
    dequantize = dml.DequantizeOperatorDesc(
        input_tensor=tensor(T.INT4, 3, 3, strides=[1, 3]), output_tensor=numbers, **steps
    )
    x = np.arange(-9, 9, 2, dtype=np.float32).reshape(3, 3)
    with dmlemu.Session() as session:
        nodes = [session.dml.create_operator(each) for each in (quantize, dequantize)]
        graph = dml.GraphDesc(
            input_count=2,
            output_count=1,
            nodes=[dml.OperatorGraphNodeDesc(node) for node in nodes],
            input_edges=[
                dml.InputGraphEdgeDesc(0, 0, 0),
                dml.InputGraphEdgeDesc(1, 0, 1),
                dml.InputGraphEdgeDesc(1, 1, 1),
            ],
            output_edges=[dml.OutputGraphEdgeDesc(1, 0, 0)],
            intermediate_edges=[dml.IntermediateGraphEdgeDesc(0, 0, 1, 0)],
        )
        compiled = session.keep(session.dml.compile_graph(graph))
        inputs = [session.upload("x", x), session.upload("scale", np.float32([2]))]
        output = session.buffer("y", x.nbytes)
        session.initialize(compiled)
        session.dispatch(compiled, inputs, [output], temporary=session.temporary_buffer(compiled))
        found = session.read(output, np.float32, [3, 3])
    expected = 2 * np.clip(np.rint(x / 2), -8, 7)
    np.testing.assert_array_equal(found, expected.T)
