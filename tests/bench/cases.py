"""What is measured: operators in several layouts, each beside its peers."""

from __future__ import annotations

import dataclasses
import itertools
import math
import timeit
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

import peers
from dispatch import PreparedDispatch
from dmlemu import d3d12, dml
from dmlemu.dml.declared.schema import OperatorDesc
from dmlemu.dml.enums import TensorDataType as T
from peers import strides_of

Array = np.ndarray[Any, Any]
Call = Callable[[], object]

PER_UNIT = {"ms": 1e3, "MiB": 2.0**-20}
"""How many there are in a second, or in a byte."""


@dataclass
class Batch:
    """A call that does the same work ``count`` times; measured is one of them.

    ``measured``: the call returns what it measured itself."""

    call: Callable[[], Any]
    count: int = 1
    measured: bool = False


Prepared = Batch | Callable[[], Batch]


@dataclass
class Work:
    """What one of a batch does: operations, or bytes read and written, and the limit they count against.

    ``read``: of kernels whose outputs are a small part of their inputs."""

    amount: float
    limit: str  # int8, float32, copy or read


@dataclass
class Case:
    """``ours`` and every peer do the same work; ``both may be prepared only when they are measured."""

    name: str
    layout: str
    ours: Prepared
    peers: Mapping[str, Prepared]
    work: Work | None = None
    overhead: bool = False  # shows what the API costs, not a kernel
    unit: str = "ms"  # or MiB, of those that measure memory


def tensor(data_type: T, sizes: list[int], strides: list[int] | None = None) -> dml.BufferTensorDesc:
    return dml.BufferTensorDesc(data_type=data_type, sizes=sizes, strides=strides)


# A list is to last so long: a program records many dispatches into one, too.
LIST_SECONDS, LONGEST_LIST = 0.005, 50


def listed(device: d3d12.Device, desc: Any, contents: dict[str, Array]) -> Callable[[], Batch]:
    """As many dispatches of an operator in one command list, with a barrier after each, as take some time."""

    def prepare() -> Batch:
        prepared = PreparedDispatch(device, desc, contents)
        seconds = min(timeit.repeat(prepared.run, number=1, repeat=5))
        count = max(1, min(LONGEST_LIST, int(LIST_SECONDS / seconds)))
        prepared.list.reset(prepared.allocator)
        prepared.record(count)
        return Batch(prepared.run, count)

    return prepare


def beside(calls: dict[str, Call]) -> dict[str, Batch]:
    return {name: Batch(call) for name, call in calls.items()}


def strided(memory: Array, sizes: list[int], strides: list[int] | None) -> Array:
    """NumPy's view of what a tensor with these strides (in elements) sees of ``memory``."""
    steps = strides or strides_of(range(len(sizes)), sizes)
    return np.lib.stride_tricks.as_strided(memory, sizes, [memory.itemsize * step for step in steps])


# --- nonzero coordinates ---


def nonzero_cases(device: d3d12.Device) -> Iterator[Case]:
    rng = np.random.default_rng(1)
    for name, sizes, layout, strides in (
        ("1e6", [10, 10, 100, 100], "packed", None),
        ("1e6", [10, 10, 100, 100], "H and W swapped", [100_000, 10_000, 1, 100]),
        ("2.5e7", [50, 50, 100, 100], "packed", None),
    ):
        count = int(np.prod(sizes))
        physical = rng.random(count, dtype=np.float32) * (rng.random(count, dtype=np.float32) < 0.5)
        view = strided(physical, sizes, strides)
        desc = dml.NonzeroCoordinatesOperatorDesc(
            input_tensor=tensor(T.FLOAT32, sizes, strides),
            output_count_tensor=tensor(T.UINT32, [1]),
            output_coordinates_tensor=tensor(T.UINT32, [count, 4]),
        )
        calls: dict[str, Call] = {"numpy argwhere": lambda v=view: np.argwhere(v)}
        if strides is None:
            calls["ORT NonZero"] = peers.onnx_session("NonZero", {"x": view}, TensorProto.INT64, rank=2)
        if peers.torch_reads_arrays():
            calls["torch nonzero"] = peers.torch().from_numpy(view).nonzero
        ours = listed(device, desc, {"input_tensor": physical})
        work = Work(4 * count + 16 * int(np.count_nonzero(physical)), "copy")
        yield Case(f"nonzero coordinates {name} f32, 50 %", layout, ours, beside(calls), work)


# --- element-wise operators ---

# layout, rows, and strides of every operand and the result; 1,000 columns
LAYOUTS: list[tuple[str, int, list[int] | None]] = [
    ("packed", 100, None),
    ("every second", 100, [2000, 2]),
    ("padded rows", 100, [1024, 1]),
    ("transposed > packed", 100, [1, 100]),
    ("packed", 1000, None),
    ("packed", 25_000, None),
    ("every second", 1000, [2000, 2]),
    ("padded rows", 1000, [1024, 1]),
    ("transposed > packed", 1000, [1, 1000]),
]


def element_wise_cases(device: d3d12.Device) -> Iterator[Case]:
    """Operators of an operation or two for each element: as fast as memory lets them."""
    for layout, rows, strides in LAYOUTS:
        yield from _element_wise(device, layout, [rows, 1000], strides)


def _element_wise(
    device: d3d12.Device, layout: str, sizes: list[int], strides: list[int] | None
) -> Iterator[Case]:
    rng = np.random.default_rng(4)
    result = None if layout.endswith("> packed") else strides
    size = {100: "1e5", 1000: "1e6", 25_000: "2.5e7"}[sizes[0]]
    elements = int(np.prod(sizes))

    def operands(dtype: Any) -> tuple[list[Array], list[Array]]:
        """Memory and NumPy's views of two inputs and the result."""
        data_type = {np.float32: T.FLOAT32, np.uint32: T.UINT32, np.uint8: T.UINT8}[dtype]
        memory = []
        for each in (strides, strides, result):
            length = tensor(data_type, sizes, each).total_tensor_size_in_bytes // np.dtype(dtype).itemsize
            bits = rng.integers(0, 256, 4 * min(length, 1_000_000), dtype=np.uint8).view(np.uint32)
            part = (bits % 1000 - 500.0).astype(dtype) if dtype is np.float32 else bits.astype(dtype)
            memory.append(np.resize(part, length))
        orders = (strides, strides, result)
        return memory, [strided(m, sizes, each) for m, each in zip(memory, orders, strict=True)]

    def case(name: str, dtype: Any, desc: Any, inputs: tuple[str, ...], calls: dict[str, Call]) -> Case:
        ours = listed(device, desc, dict(zip(inputs, memory[dtype], strict=False)))
        work = Work((len(inputs) + 1) * elements * np.dtype(dtype).itemsize, "copy")
        return Case(f"{name} {size} {np.dtype(dtype).name}", layout, ours, beside(calls), work)

    f32, f32_result = tensor(T.FLOAT32, sizes, strides), tensor(T.FLOAT32, sizes, result)
    u32, u32_result = tensor(T.UINT32, sizes, strides), tensor(T.UINT32, sizes, result)
    u8, u8_result = tensor(T.UINT8, sizes, strides), tensor(T.UINT8, sizes, result)
    memory, views = {}, {}
    for dtype in (np.float32, np.uint32, np.uint8):
        memory[dtype], views[dtype] = operands(dtype)
    (a, b, out), (x, y, bits), (bytes_in, _, bytes_out) = (
        views[t] for t in (np.float32, np.uint32, np.uint8)
    )
    packed = strides is None
    two, one = ("a_tensor", "b_tensor"), ("input_tensor",)

    add: dict[str, Call] = {"numpy": lambda: np.add(a, b, out=out)}
    relu: dict[str, Call] = {"numpy": lambda: np.maximum(a, np.float32(0), out=out)}
    if packed:
        add["ORT"] = peers.onnx_session("Add", {"a": a, "b": b}, TensorProto.FLOAT, 2)
        relu["ORT"] = peers.onnx_session("Relu", {"x": a}, TensorProto.FLOAT, 2)
    desc: Any = dml.ElementWiseAddOperatorDesc(a_tensor=f32, b_tensor=f32, output_tensor=f32_result)
    yield case("add", np.float32, desc, two, add)
    desc = dml.ElementWiseBitXorOperatorDesc(a_tensor=u32, b_tensor=u32, output_tensor=u32_result)
    yield case("bit xor", np.uint32, desc, two, {"numpy": lambda: np.bitwise_xor(x, y, out=bits)})
    desc = dml.ElementWiseClipOperatorDesc(input_tensor=f32, output_tensor=f32_result, min=-0.5, max=0.5)
    limits = np.float32(-0.5), np.float32(0.5)
    yield case("clip", np.float32, desc, one, {"numpy": lambda: np.clip(a, *limits, out=out)})
    desc = dml.ActivationReluOperatorDesc(input_tensor=f32, output_tensor=f32_result)
    yield case("relu", np.float32, desc, one, relu)
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=f32, output_tensor=f32_result)
    yield case("identity", np.float32, desc, one, {"numpy": lambda: np.copyto(out, a)})
    desc = dml.ElementWiseBitCountOperatorDesc(input_tensor=u32, output_tensor=u32_result)
    yield case("bit count", np.uint32, desc, one, peers.numpy_bit_count(x, bits))
    desc = dml.ElementWiseBitCountOperatorDesc(input_tensor=u8, output_tensor=u8_result)
    yield case("bit count", np.uint8, desc, one, peers.numpy_bit_count(bytes_in, bytes_out))


# --- functions of floats ---

# DirectML's operator, its fields, the functions of NumPy, ONNX and PyTorch or none, values from and to
FUNCTIONS: list[tuple[str, dict[str, Any], Any, str, str, float, float]] = [
    ("ElementWiseExp", {}, np.exp, "Exp", "exp", -4, 4),
    ("ElementWiseLog", {}, np.log, "Log", "log", 0.1, 8),
    ("ElementWiseSin", {}, np.sin, "Sin", "sin", -4, 4),
    ("ElementWiseTan", {}, np.tan, "Tan", "tan", -4, 4),
    ("ElementWiseSinh", {}, np.sinh, "Sinh", "sinh", -4, 4),
    ("ElementWiseCosh", {}, np.cosh, "Cosh", "cosh", -4, 4),
    ("ElementWiseTanh", {}, np.tanh, "Tanh", "tanh", -4, 4),
    ("ElementWiseAsinh", {}, np.arcsinh, "Asinh", "asinh", -4, 4),
    ("ElementWiseAcosh", {}, np.arccosh, "Acosh", "acosh", 1, 4),
    ("ElementWiseAtanh", {}, np.arctanh, "Atanh", "atanh", -0.9, 0.9),
    ("ElementWiseAsin", {}, np.arcsin, "Asin", "asin", -1, 1),
    ("ElementWiseAcos", {}, np.arccos, "Acos", "acos", -1, 1),
    ("ElementWiseAtan", {}, np.arctan, "Atan", "atan", -4, 4),
    ("ElementWiseErf", {}, None, "Erf", "erf", -4, 4),
    ("ElementWiseFloor", {}, np.floor, "Floor", "floor", -4, 4),
    ("ElementWiseSqrt", {}, np.sqrt, "Sqrt", "sqrt", 0, 4),
    ("ElementWiseRecip", {}, np.reciprocal, "Reciprocal", "reciprocal", 0.1, 4),
    (
        "ElementWiseConstantPow",
        {"exponent": 1.5},
        lambda x, out: np.power(x, np.float32(1.5), out),
        "",
        "",
        0,
        4,
    ),
    ("ActivationSigmoid", {}, None, "Sigmoid", "sigmoid", -4, 4),
    ("ActivationSoftplus", {"steepness": 1}, None, "Softplus", "nn.functional.softplus", -4, 4),
    ("ActivationSoftsign", {}, None, "Softsign", "nn.functional.softsign", -4, 4),
    ("ActivationCelu", {"alpha": 1}, None, "Celu", "nn.functional.celu", -4, 4),
    ("ActivationElu", {"alpha": 1}, None, "Elu", "nn.functional.elu", -4, 4),
    ("ActivationGelu", {}, None, "", "nn.functional.gelu", -4, 4),
    ("ActivationSwish", {"sigmoid_input_scale": 1}, None, "", "nn.functional.silu", -4, 4),
    (
        "ActivationHardSwish",
        {"alpha": 1 / 6, "beta": 0.5},
        None,
        "HardSwish",
        "nn.functional.hardswish",
        -4,
        4,
    ),
]
PAIRS: list[tuple[str, Any, str, Any]] = [
    ("ElementWiseDivide", np.divide, "Div", np.float32),
    ("ElementWiseDivide", np.floor_divide, "Div", np.int32),
    ("ElementWiseMax", np.fmax, "Max", np.float32),
    ("ElementWiseModulusTruncate", np.fmod, "Mod", np.float32),
    ("ElementWiseLogicalLessThan", np.less, "Less", np.float32),
]


def function_cases(device: d3d12.Device) -> Iterator[Case]:
    """Elementary functions, and what takes more than an addition."""
    for layout, sizes, strides in (
        ("packed", [100, 1000], None),
        ("packed", [1000, 1000], None),
        ("packed", [25_000, 1000], None),
        ("every second", [1000, 1000], [2000, 2]),
    ):
        for function in FUNCTIONS:
            yield _function(device, layout, sizes, strides, *function)
        for pair in PAIRS:
            yield _pair(device, layout, sizes, strides, *pair)


def _memory(dtype: Any, sizes: list[int], strides: list[int] | None, low: float, high: float) -> Array:
    """Of a tensor whose elements lie between these; they repeat after a million."""
    data_type = {np.float32: T.FLOAT32, np.int32: T.INT32, np.uint8: T.UINT8}[dtype]
    count = tensor(data_type, sizes, strides).total_tensor_size_in_bytes // np.dtype(dtype).itemsize
    return np.resize(np.random.default_rng(6).uniform(low, high, min(count, 1_000_000)).astype(dtype), count)


def _function(
    device: d3d12.Device,
    layout: str,
    sizes: list[int],
    strides: list[int] | None,
    name: str,
    fields: dict[str, Any],
    in_numpy: Any,
    in_onnx: str,
    in_torch: str,
    low: float,
    high: float,
) -> Case:
    memory, result = (_memory(np.float32, sizes, strides, low, high) for _ in range(2))
    x, out = strided(memory, sizes, strides), strided(result, sizes, strides)
    desc_class: Any = getattr(dml, f"{name}OperatorDesc")
    desc = desc_class(
        input_tensor=tensor(T.FLOAT32, sizes, strides),
        output_tensor=tensor(T.FLOAT32, sizes, strides),
        **fields,
    )
    calls: dict[str, Call] = {} if in_numpy is None else {"numpy": lambda: in_numpy(x, out=out)}
    if strides is None and in_onnx:
        calls["ORT"] = peers.onnx_session(in_onnx, {"x": x}, TensorProto.FLOAT, 2)
    if strides is None and in_torch and peers.torch() is not None:
        calls["torch"] = peers.torch_function(in_torch, x)
    ours = listed(device, desc, {"input_tensor": memory})
    short = name.removeprefix("ElementWise").removeprefix("Activation").lower()
    title = f"{short} {math.prod(sizes):.2g} float32"
    return Case(title, layout, ours, beside(calls), Work(8 * math.prod(sizes), "copy"))


def _pair(
    device: d3d12.Device,
    layout: str,
    sizes: list[int],
    strides: list[int] | None,
    name: str,
    in_numpy: Any,
    in_onnx: str,
    dtype: Any,
) -> Case:
    kind = {np.float32: T.FLOAT32, np.int32: T.INT32}[dtype]
    is_truth = "Logical" in name
    memory = [_memory(dtype, sizes, strides, 1, 1000) for _ in range(2)]
    a, b = (strided(each, sizes, strides) for each in memory)
    out = strided(_memory(np.uint8 if is_truth else dtype, sizes, strides, 0, 1), sizes, strides)
    out = out.view(np.bool_) if is_truth else out
    result = tensor(T.UINT8 if is_truth else kind, sizes, strides)
    x = tensor(kind, sizes, strides)
    desc_class: Any = getattr(dml, f"{name}OperatorDesc")
    desc = desc_class(a_tensor=x, b_tensor=x, output_tensor=result)
    calls: dict[str, Call] = {"numpy": lambda: in_numpy(a, b, out=out)}
    if strides is None:
        output = {np.float32: TensorProto.FLOAT, np.int32: TensorProto.INT32}[dtype]
        attributes = {"fmod": 1} if in_onnx == "Mod" else {}
        result_type = TensorProto.BOOL if is_truth else output
        calls["ORT"] = peers.onnx_session(in_onnx, {"a": a, "b": b}, result_type, 2, **attributes)
    ours = listed(device, desc, {"a_tensor": memory[0], "b_tensor": memory[1]})
    title = f"{name.removeprefix('ElementWise').lower()} {math.prod(sizes):.2g} {np.dtype(dtype).name}"
    moved = (8 + out.itemsize) * math.prod(sizes)
    return Case(title, layout, ours, beside(calls), Work(moved, "copy"))


# --- copies into other orders, and casts ---

COPIED = [64, 64, 56, 56]
# The axes of the result in the order in which they follow each other in its memory.
COPIES = [("packed", (0, 1, 2, 3)), ("NCHW > NHWC", (0, 2, 3, 1)), ("H and W swapped", (0, 1, 3, 2))]
COPIES.append(("all reversed", (3, 2, 1, 0)))


def copy_into(device: d3d12.Device, order: tuple[int, ...], x: Array) -> Callable[[], Batch]:
    result = tensor(T.FLOAT32, COPIED, strides_of(order, COPIED))
    desc = dml.ElementWiseIdentityOperatorDesc(input_tensor=tensor(T.FLOAT32, COPIED), output_tensor=result)
    return listed(device, desc, {"input_tensor": x})


def copy_cases(device: d3d12.Device) -> Iterator[Case]:
    """A packed tensor into other orders of its axes, and which of all 24 takes longest beside the first."""
    x = np.random.default_rng(4).random(COPIED, dtype=np.float32)
    name = "copy f32 64x64x56x56"
    for layout, order in COPIES:
        view = x.transpose(order)
        out = np.empty(view.shape, np.float32)
        calls: dict[str, Call] = {"numpy": lambda v=view, o=out: np.copyto(o, v)}
        calls["ORT"] = peers.onnx_session("Transpose", {"x": x}, TensorProto.FLOAT, rank=4, perm=order)
        if peers.torch_reads_arrays():
            calls["torch"] = peers.torch_copy(view, out)
        ours = copy_into(device, order, x)
        yield Case(name, layout, ours, beside(calls), Work(2 * x.nbytes, "copy"))

    def seconds(order: tuple[int, ...]) -> float:
        batch = copy_into(device, order, x)()
        return min(timeit.repeat(batch.call, number=1, repeat=5)) / batch.count

    def worst() -> Batch:
        return copy_into(device, max(itertools.permutations(range(4)), key=seconds), x)()

    packed = {"packed": copy_into(device, (0, 1, 2, 3), x)}
    yield Case(name, "worst of 24 orders", worst, packed, overhead=True)


def cast_cases(device: d3d12.Device) -> Iterator[Case]:
    kinds = {T.FLOAT32: np.float32, T.FLOAT16: np.float16, T.INT32: np.int32, T.UINT8: np.uint8}
    pairs = [(T.FLOAT32, T.FLOAT16), (T.FLOAT16, T.FLOAT32), (T.FLOAT32, T.INT32), (T.UINT8, T.FLOAT32)]
    for source, target in pairs:
        x = np.random.default_rng(5).integers(0, 100, (1000, 1000)).astype(kinds[source])
        out = np.empty(x.shape, kinds[target])
        desc = dml.CastOperatorDesc(
            input_tensor=tensor(source, [1000, 1000]), output_tensor=tensor(target, [1000, 1000])
        )
        calls: dict[str, Call] = {"numpy": lambda x=x, o=out: np.copyto(o, x, casting="unsafe")}
        if peers.torch_reads_arrays():
            calls["torch"] = peers.torch_copy(x, out)
        ours = listed(device, desc, {"input_tensor": x})
        name = f"cast 1e6 {x.dtype.name} > {out.dtype.name}"
        yield Case(name, "packed", ours, beside(calls), Work(x.nbytes + out.nbytes, "copy"))


# --- quantization ---


def _quantized_planes(device: d3d12.Device) -> Case:
    """Activations of a network: rows are short, and one scale is for all."""
    sizes = [1, 1024, 14, 14]
    x = np.random.default_rng(6).normal(0, 1, sizes).astype(np.float32)
    scale, zero = np.array(0.02, np.float32), np.array(128, np.uint8)
    desc = dml.ElementWiseQuantizeLinearOperatorDesc(
        input_tensor=tensor(T.FLOAT32, sizes),
        scale_tensor=tensor(T.FLOAT32, sizes, [0] * 4),
        zero_point_tensor=tensor(T.UINT8, sizes, [0] * 4),
        output_tensor=tensor(T.UINT8, sizes),
    )
    contents = {"input_tensor": x, "scale_tensor": scale, "zero_point_tensor": np.repeat(zero, 4)}
    ort = peers.onnx_session("QuantizeLinear", {"x": x}, TensorProto.UINT8, 4, {"scale": scale, "zero": zero})
    work = Work(5 * x.size, "copy")
    return Case(
        "quantize 1024x14x14 f32 > u8", "packed", listed(device, desc, contents), beside({"ORT": ort}), work
    )


def quantization_cases(device: d3d12.Device) -> Iterator[Case]:
    """A million elements with one scale; and weights of 4 bits with a scale for each 32."""
    x = np.random.default_rng(6).normal(0, 1, (1000, 1000)).astype(np.float32)
    q, out = np.empty(x.shape, np.uint8), np.empty(x.shape, np.float32)
    scale, zero = np.array(0.02, np.float32), np.array(128, np.uint8)
    numbers, integers = tensor(T.FLOAT32, [1000, 1000]), tensor(T.UINT8, [1000, 1000])
    parameters = {
        "scale_tensor": tensor(T.FLOAT32, [1000, 1000], [0, 0]),
        "zero_point_tensor": tensor(T.UINT8, [1000, 1000], [0, 0]),
    }
    contents = {"scale_tensor": scale, "zero_point_tensor": np.repeat(zero, 4)}
    desc: Any = dml.ElementWiseQuantizeLinearOperatorDesc(
        input_tensor=numbers, output_tensor=integers, **parameters
    )
    yield Case(
        "quantize 1e6 f32 > u8",
        "packed",
        listed(device, desc, {"input_tensor": x, **contents}),
        beside(
            {
                "numpy": lambda: np.copyto(q, np.clip(np.rint(x / scale) + 128, 0, 255), casting="unsafe"),
                "ORT": peers.onnx_session(
                    "QuantizeLinear", {"x": x}, TensorProto.UINT8, 2, {"scale": scale, "zero": zero}
                ),
            }
        ),
        Work(x.nbytes + q.nbytes, "copy"),
    )
    yield _quantized_planes(device)
    whole = np.random.default_rng(7).integers(0, 256, x.shape).astype(np.uint8)
    desc = dml.ElementWiseDequantizeLinearOperatorDesc(
        input_tensor=integers, output_tensor=numbers, **parameters
    )
    yield Case(
        "dequantize 1e6 u8 > f32",
        "packed",
        listed(device, desc, {"input_tensor": whole, **contents}),
        beside(
            {
                "numpy": lambda: np.multiply(whole.astype(np.int16) - np.int16(128), scale, out=out),
                "ORT": peers.onnx_session(
                    "DequantizeLinear", {"x": whole}, TensorProto.FLOAT, 2, {"scale": scale, "zero": zero}
                ),
            }
        ),
        Work(x.nbytes + q.nbytes, "copy"),
    )
    yield _blocks_of_4_bits(device)


def _blocks_of_4_bits(device: d3d12.Device) -> Case:
    random = np.random.default_rng(8)
    packed = random.integers(0, 256, (1024, 512)).astype(np.uint8)
    scales, out = random.random((1024, 32)).astype(np.float32), np.empty((1024, 1024), np.float32)
    desc = dml.DequantizeOperatorDesc(
        input_tensor=tensor(T.UINT4, [1024, 1024]),
        quantization_type=dml.QuantizationType.SCALE,
        quantization_tensors=[tensor(T.FLOAT32, [1024, 32])],
        output_tensor=tensor(T.FLOAT32, [1024, 1024]),
    )

    def numpy() -> None:
        whole = np.stack((packed & 15, packed >> 4), axis=-1).reshape(1024, 32, 32).view(np.int8) - np.int8(8)
        np.multiply(whole, scales[:, :, None], out=out.reshape(1024, 32, 32))

    ours = listed(device, desc, {"input_tensor": packed, "quantization_tensors": [scales]})
    work = Work(packed.nbytes + scales.nbytes + out.nbytes, "copy")
    return Case("dequantize 1024 squared u4 > f32", "blocks of 32", ours, beside({"numpy": numpy}), work)


# --- convolutions ---

# case, types, images, channels in and out, height = width, kernel, stride, padding, groups, zero points.
# ONNX Runtime's speed depends on the types: s8*u8 is its best, u8*s8 its worst.
CONVOLUTIONS = [
    ("conv 3x3 64>64 56x56", "s8*u8", 1, 64, 64, 56, 3, 1, 1, 1, ""),
    ("conv 3x3 64>64 56x56", "u8*u8", 1, 64, 64, 56, 3, 1, 1, 1, ""),
    ("conv 3x3 64>64 56x56", "u8*s8", 1, 64, 64, 56, 3, 1, 1, 1, ""),
    ("conv 3x3 64>64 56x56", "s8*s8", 1, 64, 64, 56, 3, 1, 1, 1, ""),
    ("conv 3x3 64>64 56x56", "u8*u8", 1, 64, 64, 56, 3, 1, 1, 1, "zero points"),
    ("conv 3x3 64>64 56x56", "u8*u8", 1, 64, 64, 56, 3, 1, 1, 1, "zero points per channel"),
    ("conv 3x3 64>64 56x56 batch 8", "u8*s8", 8, 64, 64, 56, 3, 1, 1, 1, ""),
    ("conv 3x3 256>256 14x14", "s8*u8", 1, 256, 256, 14, 3, 1, 1, 1, ""),
    ("conv 3x3 256>256 14x14", "u8*s8", 1, 256, 256, 14, 3, 1, 1, 1, ""),
    ("conv 7x7 s2 3>64 224x224", "s8*u8", 1, 3, 64, 224, 7, 2, 3, 1, ""),
    ("conv 7x7 s2 3>64 224x224", "u8*u8", 1, 3, 64, 224, 7, 2, 3, 1, ""),
    ("conv 7x7 s2 3>64 224x224", "u8*s8", 1, 3, 64, 224, 7, 2, 3, 1, ""),
    ("conv 1x1 512>2048 7x7", "s8*u8", 1, 512, 2048, 7, 1, 1, 0, 1, ""),
    ("conv 1x1 512>2048 7x7", "u8*s8", 1, 512, 2048, 7, 1, 1, 0, 1, ""),
    ("product of 1024 cubed (conv 1x1)", "u8*s8", 1, 1024, 1024, 32, 1, 1, 0, 1, ""),
    ("depthwise 3x3 s2 96 112x112", "s8*u8", 1, 96, 96, 112, 3, 2, 1, 96, ""),
    ("depthwise 3x3 s2 96 112x112", "u8*s8", 1, 96, 96, 112, 3, 2, 1, 96, ""),
    ("depthwise 3x3 384 14x14", "u8*s8", 1, 384, 384, 14, 3, 1, 1, 384, ""),
    *(
        (name, types, *numbers, "")
        for name, *numbers in (
            ("conv 3x3 64>64 56x56", 1, 64, 64, 56, 3, 1, 1, 1),
            ("conv 3x3 64>64 56x56 batch 8", 8, 64, 64, 56, 3, 1, 1, 1),
            ("conv 3x3 256>256 14x14", 1, 256, 256, 14, 3, 1, 1, 1),
            ("conv 7x7 s2 3>64 224x224", 1, 3, 64, 224, 7, 2, 3, 1),
            ("conv 1x1 256>64 56x56", 1, 256, 64, 56, 1, 1, 0, 1),
            ("depthwise 3x3 96 112x112", 1, 96, 96, 112, 3, 1, 1, 96),
            ("depthwise 3x3 96 112x112 batch 8", 8, 96, 96, 112, 3, 1, 1, 96),
            ("depthwise 3x3 s2 96 112x112", 1, 96, 96, 112, 3, 2, 1, 96),
            ("depthwise 3x3 384 14x14", 1, 384, 384, 14, 3, 1, 1, 384),
            ("depthwise 5x5 384 14x14", 1, 384, 384, 14, 5, 1, 2, 384),
        )
        for types in ("f32*f32", "f16*f16")
    ),
]
TYPES: dict[str, tuple[T, Any]] = {
    "u8": (T.UINT8, np.uint8),
    "s8": (T.INT8, np.int8),
    "f32": (T.FLOAT32, np.float32),
    "f16": (T.FLOAT16, np.float16),
}


def random_numbers(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...]) -> Array:
    if np.dtype(dtype).kind == "f":
        return rng.normal(0, 1, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def convolution_cases(device: d3d12.Device) -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for name, types, images, c_in, c_out, size, kernel, stride, padding, groups, zeros in CONVOLUTIONS:
        (_, x_dtype), (_, w_dtype) = (TYPES[part] for part in types.split("*"))
        x = random_numbers(rng, x_dtype, (images, c_in, size, size))
        w = random_numbers(rng, w_dtype, (c_out, c_in // groups, kernel, kernel))
        c = peers.Convolution(x, w, stride, padding, groups)
        if zeros:
            c.input_zero = 7
            c.filter_zero = random_numbers(rng, w_dtype, (c_out if "channel" in zeros else 1,))
        for layout in ("NCHW", "NHWC strides"):
            c = dataclasses.replace(c, x=x, w=w, channels_last=layout != "NCHW")
            ours = listed(device, *convolution(c))
            floats = x.dtype.kind == "f"
            moved = x.nbytes + w.nbytes + (x.itemsize if floats else 4) * math.prod(c.out_shape)
            work = Work(c.operations, "float32" if floats else "int8") if groups == 1 else Work(moved, "copy")
            title = " ".join(filter(None, (name, types, zeros)))
            if floats:  # peers have no FLOAT16: they work on FLOAT32
                c = dataclasses.replace(c, x=x.astype(np.float32), w=w.astype(np.float32))
            yield Case(title, layout, ours, beside(peers.convolution_peers(c)), work)


def convolution(
    c: peers.Convolution, orders: tuple[tuple[int, ...], tuple[int, ...]] | None = None
) -> tuple[OperatorDesc, dict[str, Array]]:
    """The operator and the memory of its inputs; ``orders``: of the axes of input and output in memory."""
    data_types = {np.dtype(dtype): data_type for data_type, dtype in TYPES.values()}
    in_order, out_order = orders or (c.order, c.order)
    x_type, w_type = data_types[c.x.dtype], data_types[c.w.dtype]
    zeros: dict[str, Array] = {}
    descs: dict[str, Any] = {}
    if c.input_zero is not None and c.filter_zero is not None:
        channels = c.filter_zero.size
        zeros["input_zero_point_tensor"] = np.array([c.input_zero], c.x.dtype)
        zeros["filter_zero_point_tensor"] = c.filter_zero
        descs["input_zero_point_tensor"] = tensor(x_type, [1, 1, 1, 1])
        descs["filter_zero_point_tensor"] = tensor(w_type, [1, channels, 1, 1])
    kind: Any = dml.ConvolutionIntegerOperatorDesc
    if c.x.dtype.kind == "f":
        kind = dml.ConvolutionOperatorDesc
        descs["mode"] = dml.ConvolutionMode.CROSS_CORRELATION
        descs["direction"] = dml.ConvolutionDirection.FORWARD
        descs["output_padding"] = [0, 0]
    out_type = x_type if c.x.dtype.kind == "f" else T.INT32
    desc = kind(
        input_tensor=tensor(x_type, list(c.x.shape), strides_of(in_order, c.x.shape)),
        filter_tensor=dml.BufferTensorDesc(w_type, list(c.w.shape), flags=dml.TensorFlags.OWNED_BY_DML),
        output_tensor=tensor(out_type, list(c.out_shape), strides_of(out_order, c.out_shape)),
        strides=[c.stride] * 2,
        dilations=[1, 1],
        start_padding=[c.padding] * 2,
        end_padding=[c.padding] * 2,
        group_count=c.groups,
        **descs,
    )
    physical = np.ascontiguousarray(c.x.transpose(in_order))
    return desc, {"input_tensor": physical, "filter_tensor": c.w, **zeros}


# case, type, groups, channels in and out of a group, size of each spatial axis, kernel, stride, padding,
# output padding: the numbers of ConvTranspose.
TRANSPOSED = [
    ("transposed 2x2 s2 64>32 32x32", "f32", 1, 64, 32, (32, 32), 2, 2, 0, 0),
    ("transposed 2x2 s2 512>256 16x16", "f32", 1, 512, 256, (16, 16), 2, 2, 0, 0),
    ("transposed 3x3 s2 256>128 32x32", "f32", 1, 256, 128, (32, 32), 3, 2, 1, 1),
    ("transposed 3x3 64>64 56x56", "f32", 1, 64, 64, (56, 56), 3, 1, 1, 0),
    ("transposed 4x4 100>512 1x1", "f32", 1, 100, 512, (1, 1), 4, 1, 0, 0),
    ("transposed 4x4 s2 512>256 8x8", "f32", 1, 512, 256, (8, 8), 4, 2, 1, 0),
    ("transposed 4x4 s2 128>64 32x32", "f32", 1, 128, 64, (32, 32), 4, 2, 1, 0),
    ("transposed 4x4 s2 64>3 64x64", "f32", 1, 64, 3, (64, 64), 4, 2, 1, 0),
    ("transposed 4x4 s2 64 groups 28x28", "f32", 64, 1, 1, (28, 28), 4, 2, 1, 0),
    ("transposed 4 s2 128>64 1000", "f32", 1, 128, 64, (1000,), 4, 2, 1, 0),
    ("transposed 16 s8 512>256 100", "f32", 1, 512, 256, (100,), 16, 8, 4, 0),
    ("transposed 2x2x2 s2 64>32 16x16x16", "f32", 1, 64, 32, (16, 16, 16), 2, 2, 0, 0),
    ("transposed 3x3x3 s2 32>16 16x16x16", "f32", 1, 32, 16, (16, 16, 16), 3, 2, 1, 1),
    ("transposed 4x4 s2 512>256 8x8", "f16", 1, 512, 256, (8, 8), 4, 2, 1, 0),
    ("transposed 4x4 s2 128>64 32x32", "f16", 1, 128, 64, (32, 32), 4, 2, 1, 0),
]


def transposed_cases(device: d3d12.Device) -> Iterator[Case]:
    """Backward convolutions; the peer has no FLOAT16: it works on FLOAT32."""
    rng = np.random.default_rng(8)
    for name, kind, groups, c_in, c_out, size, kernel, stride, padding, more in TRANSPOSED:
        data_type, dtype = TYPES[kind]
        spatial = len(size)
        x = random_numbers(rng, dtype, (1, groups * c_in, *size))
        w = random_numbers(rng, dtype, (groups * c_in, c_out, *[kernel] * spatial))
        out = [1, groups * c_out, *[(n - 1) * stride + kernel - 2 * padding + more for n in size]]
        desc = dml.ConvolutionOperatorDesc(
            input_tensor=tensor(data_type, list(x.shape)),
            filter_tensor=dml.BufferTensorDesc(data_type, list(w.shape), flags=dml.TensorFlags.OWNED_BY_DML),
            output_tensor=tensor(data_type, out),
            mode=dml.ConvolutionMode.CROSS_CORRELATION,
            direction=dml.ConvolutionDirection.BACKWARD,
            strides=[stride] * spatial,
            dilations=[1] * spatial,
            start_padding=[padding] * spatial,
            end_padding=[padding] * spatial,
            output_padding=[more] * spatial,
            group_count=groups,
        )
        onnx = peers.onnx_session(
            "ConvTranspose",
            {"x": x.astype(np.float32)},
            TensorProto.FLOAT,
            spatial + 2,
            {"w": w.astype(np.float32)},
            strides=[stride] * spatial,
            pads=[padding] * 2 * spatial,
            output_padding=[more] * spatial,
            group=groups,
        )
        ours = listed(device, desc, {"input_tensor": x, "filter_tensor": w})
        work = Work(2.0 * x.size * w[0].size, "float32")
        yield Case(f"{name} {kind}", "NCHW", ours, beside({"ORT": onnx}), work)


# --- data movement ---

MOVED = [64, 64, 56, 56]


def movement_cases(device: d3d12.Device) -> Iterator[Case]:
    """Of 5e7 bytes: slices, padding, repetitions, parts, blocks."""
    x = np.random.default_rng(6).random(MOVED, np.float32)

    def case(name: str, desc: Any, sizes: list[int], numpy: Call, **onnx: Any) -> Case:
        calls = {"numpy": numpy}
        if onnx:
            op, constants = onnx.pop("op"), onnx.pop("constants", {})
            calls["ORT"] = peers.onnx_session(op, {"x": x}, TensorProto.FLOAT, 4, constants, **onnx)
        work = Work(8.0 * math.prod(sizes), "copy")
        return Case(name, "packed", listed(device, desc, {"input_tensor": x}), beside(calls), work)

    source = tensor(T.FLOAT32, MOVED)
    for name, stride in (("every second column", 2), ("columns backwards", -1)):
        sizes = [64, 64, 56, 56 // abs(stride)]
        desc: Any = dml.Slice1OperatorDesc(
            input_tensor=source,
            output_tensor=tensor(T.FLOAT32, sizes),
            input_window_offsets=[0] * 4,
            input_window_sizes=MOVED,
            input_window_strides=[1, 1, 1, stride],
        )
        steps = {
            key: np.array([value])
            for key, value in {
                "starts": 0 if stride > 0 else 55,
                "ends": 56 if stride > 0 else -57,
                "axes": 3,
                "steps": stride,
            }.items()
        }
        numpy_slice = lambda s=stride: np.ascontiguousarray(x[..., ::s])  # noqa: E731
        yield case(f"slice: {name}", desc, sizes, numpy_slice, op="Slice", constants=steps)
    pads = np.array([0, 0, 1, 1, 0, 0, 1, 1])
    for mode in (dml.PaddingMode.CONSTANT, dml.PaddingMode.REFLECTION):
        padded = [64, 64, 58, 58]
        desc = dml.PaddingOperatorDesc(
            input_tensor=source,
            output_tensor=tensor(T.FLOAT32, padded),
            padding_mode=mode,
            padding_value=0.0,
            start_padding=[0, 0, 1, 1],
            end_padding=[0, 0, 1, 1],
        )
        other = "constant" if mode is dml.PaddingMode.CONSTANT else "reflect"
        numpy_pad = lambda m=other: np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), m)  # noqa: E731
        constants = {"pads": pads}
        yield case(
            f"padding: {mode.name}", desc, padded, numpy_pad, op="Pad", mode=other, constants=constants
        )
    tiled = [64, 64, 112, 112]
    desc = dml.TileOperatorDesc(
        input_tensor=source, output_tensor=tensor(T.FLOAT32, tiled), repeats=[1, 1, 2, 2]
    )
    repeats = np.array([1, 1, 2, 2])
    yield case(
        "tile 2 x 2", desc, tiled, lambda: np.tile(x, repeats), op="Tile", constants={"repeats": repeats}
    )
    deep = [64, 256, 28, 28]
    desc = dml.SpaceToDepthOperatorDesc(
        input_tensor=source, output_tensor=tensor(T.FLOAT32, deep), block_size=2
    )
    axes = (0, 3, 5, 1, 2, 4)
    numpy_blocks = lambda: x.reshape(64, 64, 28, 2, 28, 2).transpose(axes).reshape(deep)  # noqa: E731
    yield case("space to depth 2", desc, deep, numpy_blocks, op="SpaceToDepth", blocksize=2)
    columns = [64, 64 * 9, 56 * 56]
    desc = dml.UnfoldOperatorDesc(
        input_tensor=source,
        output_tensor=tensor(T.FLOAT32, columns),
        window_sizes=[3, 3],
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
    )
    framed = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(framed, (3, 3), axis=(2, 3))
    yield case(
        "unfold 3 x 3", desc, columns, lambda: np.ascontiguousarray(windows.transpose(0, 1, 4, 5, 2, 3))
    )
    desc = dml.FillValueConstantOperatorDesc(
        output_tensor=source,
        value_data_type=T.FLOAT32,
        value=dml.ScalarUnion.of(T.FLOAT32, 2.5),
    )
    out = np.empty_like(x)
    yield case("fill", desc, MOVED, lambda: out.fill(2.5))
    yield from _parts(device, x)
    yield from _images(device, x)
    yield _sequences(device)
    yield _diagonal(device)


def _parts(device: d3d12.Device, x: Array) -> Iterator[Case]:
    """Two tensors joined, and one split into two: along the channels and along the columns."""
    whole, copied = tensor(T.FLOAT32, MOVED), Work(2.0 * x.nbytes, "copy")
    for name, axis in (("channels", 1), ("columns", 3)):
        cut = MOVED[axis] // 4
        pieces = [np.ascontiguousarray(each) for each in np.split(x, [cut], axis)]
        parts = [tensor(T.FLOAT32, list(each.shape)) for each in pieces]
        join = dml.JoinOperatorDesc(input_tensors=parts, output_tensor=whole, axis=axis)
        out = np.empty_like(x)
        calls: dict[str, Call] = {
            "numpy": lambda p=pieces, o=out, a=axis: np.concatenate(p, a, out=o),
            "ORT": peers.onnx_session(
                "Concat", {"a": pieces[0], "b": pieces[1]}, TensorProto.FLOAT, 4, axis=axis
            ),
        }
        ours = listed(device, join, {"input_tensors": pieces})
        yield Case(f"join {name}", "packed", ours, beside(calls), copied)
        split = dml.SplitOperatorDesc(input_tensor=whole, output_tensors=parts, axis=axis)

        def numpy_split(p: Any = pieces, a: int = axis, c: int = cut) -> None:
            for piece, part in zip(p, np.split(x, [c], a), strict=True):
                np.copyto(piece, part)

        sizes = {"sizes": np.array([cut, MOVED[axis] - cut])}
        calls = {
            "numpy": numpy_split,
            "ORT": peers.onnx_session("Split", {"x": x}, TensorProto.FLOAT, 4, sizes, outputs=2, axis=axis),
        }
        ours = listed(device, split, {"input_tensor": x})
        yield Case(f"split {name}", "packed", ours, beside(calls), copied)


def _images(device: d3d12.Device, x: Array) -> Iterator[Case]:
    """Images of columns, and enlarged ones."""
    small = np.ascontiguousarray(x[:16])
    sizes = list(small.shape)
    image = tensor(T.FLOAT32, sizes)
    columns = np.random.default_rng(9).random((16, 64 * 9, 56 * 56), np.float32)
    fold = dml.FoldOperatorDesc(
        input_tensor=tensor(T.FLOAT32, list(columns.shape)),
        output_tensor=image,
        window_sizes=[3, 3],
        strides=[1, 1],
        dilations=[1, 1],
        start_padding=[1, 1],
        end_padding=[1, 1],
    )
    places = columns.reshape(16, 64, 3, 3, 56, 56)

    def numpy_fold() -> Array:
        framed = np.zeros((16, 64, 58, 58), np.float32)
        for i, j in itertools.product(range(3), range(3)):
            framed[:, :, i : i + 56, j : j + 56] += places[:, :, i, j]
        return framed[:, :, 1:-1, 1:-1]

    shapes = {"image": np.array([56, 56]), "block": np.array([3, 3])}
    calls: dict[str, Call] = {
        "numpy": numpy_fold,
        "ORT": peers.onnx_session(
            "Col2Im", {"x": columns}, TensorProto.FLOAT, 4, shapes, opset=18, pads=[1, 1, 1, 1]
        ),
    }
    ours = listed(device, fold, {"input_tensor": columns})
    yield Case("fold 3 x 3", "packed", ours, beside(calls), Work(columns.nbytes + small.nbytes, "copy"))
    doubled = [*sizes[:2], 112, 112]
    for mode, other in (
        (dml.InterpolationMode.NEAREST_NEIGHBOR, "nearest"),
        (dml.InterpolationMode.LINEAR, "linear"),
    ):
        desc = dml.Upsample2dOperatorDesc(
            input_tensor=image,
            output_tensor=tensor(T.FLOAT32, doubled),
            scale_size=dml.Size2D(width=2, height=2),
            interpolation_mode=mode,
        )
        scales = {"roi": np.zeros(0, np.float32), "scales": np.float32([1, 1, 2, 2])}
        calls = {"ORT": peers.onnx_session("Resize", {"x": small}, TensorProto.FLOAT, 4, scales, mode=other)}
        if other == "nearest":
            calls["numpy"] = lambda: small.repeat(2, 2).repeat(2, 3)
        ours = listed(device, desc, {"input_tensor": small})
        yield Case(f"upsample 2 x 2 {other}", "packed", ours, beside(calls), Work(5.0 * small.nbytes, "copy"))


def _sequences(device: d3d12.Device) -> Case:
    """Of 500 steps of 64 numbers, in a batch of 256."""
    x = np.random.default_rng(10).random((256, 500, 64), np.float32)
    lengths = np.random.default_rng(11).integers(1, 501, 256)
    sequences = tensor(T.FLOAT32, [256, 500, 64])
    desc = dml.ReverseSubsequencesOperatorDesc(
        input_tensor=sequences,
        sequence_lengths_tensor=tensor(T.UINT64, [256, 1, 64], [1, 0, 0]),
        output_tensor=sequences,
        axis=1,
    )
    out = np.empty_like(x)

    def numpy_reverse() -> None:
        np.copyto(out, x)
        for row, to, length in zip(x, out, lengths, strict=True):
            to[:length] = row[length - 1 :: -1] if length < len(row) else row[::-1]

    calls: dict[str, Call] = {
        "numpy": numpy_reverse,
        "ORT": peers.onnx_session(
            "ReverseSequence", {"x": x, "n": lengths}, TensorProto.FLOAT, 3, batch_axis=0, time_axis=1
        ),
    }
    ours = listed(device, desc, {"input_tensor": x, "sequence_lengths_tensor": lengths.astype(np.uint64)})
    return Case("reverse subsequences", "256 of 500 x 64", ours, beside(calls), Work(2.0 * x.nbytes, "copy"))


def _diagonal(device: d3d12.Device) -> Case:
    """The upper triangle of a matrix; 0 below."""
    x = np.random.default_rng(12).random((3000, 3000), np.float32)
    matrix = tensor(T.FLOAT32, [3000, 3000])
    desc = dml.DiagonalMatrix1OperatorDesc(
        input_tensor=matrix,
        output_tensor=matrix,
        value_data_type=T.FLOAT32,
        value=dml.ScalarUnion.of(T.FLOAT32, 0.0),
        diagonal_fill_begin=-(2**31),
        diagonal_fill_end=0,
    )
    calls: dict[str, Call] = {
        "numpy": lambda: np.triu(x),
        "ORT": peers.onnx_session("Trilu", {"x": x}, TensorProto.FLOAT, 2, upper=1),
    }
    ours = listed(device, desc, {"input_tensor": x})
    return Case(
        "diagonal matrix: triangle", "3000 squared", ours, beside(calls), Work(2.0 * x.nbytes, "copy")
    )


# --- products ---


def product_cases(device: d3d12.Device) -> Iterator[Case]:
    """1024 cubed: both operands as they are or transposed, and halves; other sizes."""
    rng = np.random.default_rng(4)
    none, transposed = dml.MatrixTransform.NONE, dml.MatrixTransform.TRANSPOSE
    for rows, depth, columns, dtype, trans_a, trans_b in (
        (1024, 1024, 1024, np.float32, none, none),
        (1024, 1024, 1024, np.float32, none, transposed),
        (1024, 1024, 1024, np.float32, transposed, none),
        (1024, 1024, 1024, np.float16, none, none),
        (100, 100, 100, np.float32, none, none),
        (256, 256, 256, np.float32, none, none),
        (4096, 4096, 4096, np.float32, none, none),
        (128, 768, 3072, np.float32, none, none),
        (1, 4096, 4096, np.float32, none, none),
    ):
        data_type = T.FLOAT32 if dtype is np.float32 else T.FLOAT16
        a_sizes, b_sizes = ([rows, depth][:: -1 if trans_a else 1], [depth, columns][:: -1 if trans_b else 1])
        a, b = (rng.random(sizes, np.float32).astype(dtype) for sizes in (a_sizes, b_sizes))
        desc = dml.GemmOperatorDesc(
            a_tensor=tensor(data_type, [1, 1, *a_sizes]),
            b_tensor=tensor(data_type, [1, 1, *b_sizes]),
            output_tensor=tensor(data_type, [1, 1, rows, columns]),
            trans_a=trans_a,
            trans_b=trans_b,
            alpha=1.0,
            beta=0.0,
        )
        ours = listed(device, desc, {"a_tensor": a, "b_tensor": b})
        x, y = (each.astype(np.float32) for each in (a, b))
        x, y = x.T if trans_a else x, y.T if trans_b else y
        out = np.empty((rows, columns), np.float32)
        calls: dict[str, Call] = {"numpy (f32)": lambda x=x, y=y, out=out: np.matmul(x, y, out=out)}
        if not (trans_a or trans_b):
            kind = TensorProto.FLOAT if dtype is np.float32 else TensorProto.FLOAT16
            calls["ORT"] = peers.onnx_session("MatMul", {"a": a, "b": b}, kind, rank=2)
        if peers.torch_reads_arrays():
            tensors = [peers.torch().from_numpy(each) for each in (x, y, out)]
            calls["torch (f32)"] = lambda t=tensors: peers.torch().matmul(t[0], t[1], out=t[2])
        layout = "".join("T" if each else "N" for each in (trans_a, trans_b))
        shape = f"{rows} cubed" if rows == depth == columns else f"{rows}x{depth}x{columns}"
        name = f"gemm {shape} {'f32' if dtype is np.float32 else 'f16'}"
        yield Case(name, layout, ours, beside(calls), Work(2.0 * rows * depth * columns, "float32"))
