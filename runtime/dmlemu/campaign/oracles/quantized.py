"""Products, convolutions and windows of small integers, and their scales and zero points."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...dml import enums
from .rows import Array, Node, is_one, one_of, reaches, row, torch_pads

__all__: list[str] = []


_NEAR = 1e-4
"""Numbers that are nearer to a half are rounded by how they are computed."""


def _are_scales(*scales: Any) -> bool:
    """Whether none is 0, by which the document leaves a division open, or below."""
    return all(bool((x > 0).all()) for x in scales)


def _rounded(t: Any, x: Any, zero_point: Any, data_type: str) -> Any:
    """Quantised numbers of FLOAT64: halves to even, then the zero point, then the limits of the type.  None:
    a number is so near to a half that it depends on the bits it is computed in."""
    off = (x - x.floor() - 0.5).abs()
    if ((off < _NEAR) & (off > 0)).any():
        return None
    limits = np.iinfo(data_type)
    return (x.round() + zero_point).clamp(limits.min, limits.max).to(getattr(t, data_type))


def _double(x: Any) -> Any:
    return 0 if x is None else x.double()


# --- products ---


def _torch_sums(a: Any, a_zero: Any, b: Any, b_zero: Any) -> Any:
    """Exact, in FLOAT64.  Parameters are one, or those of rows and columns, by broadcasting."""
    return (a.double() - _by_row(a_zero)) @ (b.double() - _by_column(b_zero))


def _by_row(x: Any) -> Any:
    return 0 if x is None else x.double().reshape(-1, 1)


def _by_column(x: Any) -> Any:
    return 0 if x is None else x.double().reshape(1, -1)


def _to_float(
    o: Any, a: Array, a_scale: Any, a_zero: Any, b: Array, b_scale: Any, b_zero: Any, bias: Any
) -> Node | None:
    if not is_one(a_scale, a_zero, b_zero) or a.dtype.itemsize != 1:
        return None
    b_scale = one_of(b_scale) if is_one(b_scale) else b_scale.ravel()
    inputs = [a, b, one_of(a_scale), b_scale, one_of(a_zero), one_of(b_zero)]
    zero = 0 if bias is None else bias
    return Node("MatMulIntegerToFloat", inputs, finish=lambda y: y + zero, domain="com.microsoft", opset=1)


def _torch_to_float(
    t: Any, o: Any, a: Any, a_scale: Any, a_zero: Any, b: Any, b_scale: Any, b_zero: Any, bias: Any
) -> Any:
    scales = _by_row(a_scale) * _by_column(b_scale)
    return _torch_sums(a, a_zero, b, b_zero) * scales + _double(bias)


row(
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
    _to_float,
    _torch_to_float,
    by=("onnxruntime",),
    passes="ONNX Runtime: parameters of rows, zero points of columns, integers of 16 and 32 bits",
)


def _quantized_product(
    o: Any,
    a: Array,
    a_scale: Array,
    a_zero: Any,
    b: Array,
    b_scale: Array,
    b_zero: Any,
    scale: Array,
    zero: Any,
) -> Node | None:
    if not is_one(a_scale, a_zero, scale, zero) or not _are_scales(a_scale, b_scale, scale):
        return None
    b_point = np.zeros((), b.dtype) if b_zero is None else b_zero
    of_columns = [np.broadcast_to(each.ravel(), b.shape[-1:]) for each in (b_scale, b_point)]
    of_b = [one_of(b_scale), one_of(b_point)] if is_one(b_scale, b_point) else of_columns
    a_point = np.zeros((), a.dtype) if a_zero is None else one_of(a_zero)
    point = np.zeros((), o.output_tensor.dtype) if zero is None else one_of(zero)
    return Node("QLinearMatMul", [a, one_of(a_scale), a_point, b, *of_b, one_of(scale), point])


def _torch_quantized_product(
    t: Any,
    o: Any,
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    scale: Any,
    zero: Any,
) -> Any:
    if not _are_scales(a_scale, b_scale, scale):
        return None
    scaled = _torch_sums(a, a_zero, b, b_zero) * (_by_row(a_scale) * _by_column(b_scale)) / _by_row(scale)
    return _rounded(t, scaled, _by_row(zero), o.output_tensor.dtype.name)


row(
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY",
    _quantized_product,
    _torch_quantized_product,
    passes="scales of 0; ONNX: parameters of rows",
)

# --- convolutions ---


def _ends(o: Any) -> list[int] | None:
    """The padding behind the image that its outputs take; None: they leave some of the image out."""
    x, w, y = (each.sizes[2:] for each in (o.input_tensor, o.filter_tensor, o.output_tensor))
    numbers = zip(x, w, y, o.strides, o.dilations, o.start_padding, strict=True)
    found = [(m - 1) * step + (k - 1) * d + 1 - n - start for n, k, m, step, d, start in numbers]
    return found if min(found) >= 0 else None


def _attributes(o: Any) -> dict[str, Any] | None:
    ends = _ends(o)
    if ends is None:
        return None
    return {
        "strides": list(o.strides),
        "dilations": list(o.dilations),
        "pads": [*o.start_padding, *ends],
        "group": o.group_count,
    }


def _integer_convolution(o: Any, x: Array, x_zero: Any, w: Array, w_zero: Any) -> Node | None:
    attributes = _attributes(o)
    if attributes is None or not is_one(w_zero):
        return None
    return Node("ConvInteger", [x, w, one_of(x_zero), one_of(w_zero)], attributes)


def _torch_convolved(t: Any, o: Any, x: Any, x_zero: Any, w: Any, w_zero: Any) -> Any:
    ends, rank = _ends(o), x.ndim - 2
    if ends is None:
        return None
    pads = [each for pair in reversed([*zip(o.start_padding, ends, strict=True)]) for each in pair]
    ones = [1] * (rank + 1)
    x = x.double() - (0 if x_zero is None else x_zero.double().reshape(-1)[0])
    w = w.double() - (0 if w_zero is None else w_zero.double().reshape(-1, *ones))
    convolve = getattr(t.nn.functional, f"conv{rank}d")
    return convolve(
        t.nn.functional.pad(x, pads), w, None, tuple(o.strides), 0, tuple(o.dilations), o.group_count
    )


def _torch_integer_convolution(t: Any, o: Any, *tensors: Any) -> Any:
    found = _torch_convolved(t, o, *tensors)
    return None if found is None else found.int()


row(
    "CONVOLUTION_INTEGER",
    _integer_convolution,
    _torch_integer_convolution,
    passes="outputs that leave a part of the image out; ONNX: zero points of channels",
)


def _quantized_convolution(
    o: Any,
    x: Array,
    x_scale: Array,
    x_zero: Any,
    w: Array,
    w_scale: Array,
    w_zero: Any,
    bias: Any,
    scale: Array,
    zero: Any,
) -> Node | None:
    attributes = _attributes(o)
    if attributes is None or not is_one(w_zero) or not _are_scales(x_scale, w_scale, scale):
        return None
    factors = one_of(w_scale) if is_one(w_scale) else w_scale.ravel()
    points = [
        np.zeros((), dtype) if point is None else one_of(point)
        for dtype, point in ((x.dtype, x_zero), (w.dtype, w_zero), (o.output_tensor.dtype, zero))
    ]
    inputs = [x, one_of(x_scale), points[0], w, factors, points[1], one_of(scale), points[2]]
    return Node("QLinearConv", [*inputs, None if bias is None else bias.ravel()], attributes)


def _torch_quantized_convolution(
    t: Any,
    o: Any,
    x: Any,
    x_scale: Any,
    x_zero: Any,
    w: Any,
    w_scale: Any,
    w_zero: Any,
    bias: Any,
    scale: Any,
    zero: Any,
) -> Any:
    found = _torch_convolved(t, o, x, x_zero, w, w_zero)
    if found is None or not _are_scales(x_scale, w_scale, scale):
        return None
    sizes = [-1] + [1] * (x.ndim - 2)
    factor = x_scale.double().reshape(-1)[0] * w_scale.double().reshape(sizes) / scale.double().reshape(-1)[0]
    sums = found if bias is None else found + bias.double().reshape(sizes)
    point = 0 if zero is None else zero.double().reshape(-1)[0]
    return _rounded(t, sums * factor, point, o.output_tensor.dtype.name)


row(
    "QUANTIZED_LINEAR_CONVOLUTION",
    _quantized_convolution,
    _torch_quantized_convolution,
    passes="scales of 0, outputs that leave a part of the image out; ONNX: zero points of channels",
)

# --- sums and averages ---


def _quantized_sum(
    o: Any,
    a: Array,
    a_scale: Array,
    a_zero: Any,
    b: Array,
    b_scale: Array,
    b_zero: Any,
    scale: Array,
    zero: Any,
) -> Node | None:
    if not is_one(a_scale, a_zero, b_scale, b_zero, scale, zero) or not _are_scales(a_scale, b_scale, scale):
        return None
    if not a.dtype == b.dtype == o.output_tensor.dtype:
        return None
    points = [np.zeros((), a.dtype) if each is None else one_of(each) for each in (a_zero, b_zero, zero)]
    terms = (
        (x.astype(np.float64) - point) * one_of(factor)
        for x, factor, point in ((a, a_scale, points[0]), (b, b_scale, points[1]))
    )
    if ((sum(terms) / one_of(scale)) % 1 == 0.5).any():  # it adds the zero point before it rounds
        return None
    inputs = [a, one_of(a_scale), points[0], b, one_of(b_scale), points[1], one_of(scale), points[2]]
    return Node("QLinearAdd", inputs, domain="com.microsoft", opset=1)


def _torch_quantized_sum(
    t: Any,
    o: Any,
    a: Any,
    a_scale: Any,
    a_zero: Any,
    b: Any,
    b_scale: Any,
    b_zero: Any,
    scale: Any,
    zero: Any,
) -> Any:
    if not _are_scales(a_scale, b_scale, scale):
        return None
    terms = (
        (x.double() - _double(point)) * factor.double()
        for x, factor, point in ((a, a_scale, a_zero), (b, b_scale, b_zero))
    )
    return _rounded(t, sum(terms) / scale.double(), _double(zero), o.output_tensor.dtype.name)


row(
    "ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
    _quantized_sum,
    _torch_quantized_sum,
    by=("onnxruntime",),
    passes="scales of 0; ONNX Runtime: halves, two types",
)


def _quantized_average(o: Any, x: Array, x_scale: Array, x_zero: Any, scale: Array, zero: Any) -> Node | None:
    if x.dtype != o.output_tensor.dtype or any(each != 1 for each in o.dilations) or not reaches(o):
        return None
    if not is_one(x_scale, x_zero, scale, zero) or not _are_scales(x_scale, scale):
        return None
    count = int(np.prod(o.window_size))
    if count & (count - 1) or not (o.include_padding or not any((*o.start_padding, *o.end_padding))):
        return None  # halves are rounded by how the average is computed
    attributes = {
        "kernel_shape": list(o.window_size),
        "strides": list(o.strides),
        "pads": [*o.start_padding, *o.end_padding],
        "count_include_pad": int(o.include_padding),
    }
    points = [np.zeros((), x.dtype) if each is None else one_of(each) for each in (x_zero, zero)]
    inputs = [x, one_of(x_scale), points[0], one_of(scale), points[1]]
    return Node("QLinearAveragePool", inputs, attributes, domain="com.microsoft", opset=1)


def _torch_quantized_average(t: Any, o: Any, x: Any, x_scale: Any, x_zero: Any, scale: Any, zero: Any) -> Any:
    """By a convolution with ones, and another that counts."""
    if not _are_scales(x_scale, scale):
        return None
    rank, f = x.ndim - 2, t.nn.functional
    channels = [-1] + [1] * rank
    convolve = getattr(f, f"conv{rank}d")
    pads = torch_pads(o)
    ones = t.ones(1, 1, *o.window_size, dtype=t.float64)

    def windows(values: Any, padding: float) -> Any:
        flat = f.pad(values, pads, value=padding).flatten(0, 1).unsqueeze(1)
        sums = convolve(flat, ones, None, tuple(o.strides), 0, tuple(o.dilations))
        return sums.reshape(*values.shape[:2], *sums.shape[2:])

    differences = x.double() - (0 if x_zero is None else x_zero.double().reshape(channels))
    ones_inside = t.ones_like(differences)
    if not windows(ones_inside, 0).all():
        return None
    count = windows(ones_inside, float(o.include_padding))
    factor = x_scale.double().reshape(channels) / scale.double().reshape(channels)
    point = 0 if zero is None else zero.double().reshape(channels)
    means = windows(differences, 0) / count * factor
    halves = (means * 2 == (means * 2).round()) & (means != means.round())
    if (halves & (count.log2() != count.log2().round())).any():
        return None
    return _rounded(t, means, point, o.output_tensor.dtype.name)


def _scipy_quantized_average(
    s: Any, o: Any, x: Array, x_scale: Any, x_zero: Any, scale: Any, zero: Any
) -> Any:
    """The same by correlations with ones."""
    if not _are_scales(x_scale, scale):
        return None
    channels = [-1] + [1] * (x.ndim - 2)
    ones = np.zeros([(k - 1) * d + 1 for k, d in zip(o.window_size, o.dilations, strict=True)])
    ones[tuple(slice(None, None, d) for d in o.dilations)] = 1
    pads = list(zip(o.start_padding, o.end_padding, strict=True))
    steps = tuple(slice(None, None, step) for step in o.strides)

    def windows(values: Array, padding: float) -> Array:
        padded = [np.pad(plane, pads, constant_values=padding) for plane in values.reshape(-1, *x.shape[2:])]
        sums = [s.signal.correlate(plane, ones, "valid", "direct")[steps] for plane in padded]
        found: Array = np.round(sums).reshape(*x.shape[:2], *sums[0].shape)
        return found

    differences = x - (0 if x_zero is None else x_zero.reshape(channels))
    inside = np.ones_like(differences)
    if any(n < m for n, m in zip(np.add(x.shape[2:], np.sum(pads, 1)), ones.shape, strict=True)):
        return None
    if not windows(inside, 0).all():
        return None
    count = windows(inside, float(o.include_padding))
    factor = x_scale.reshape(channels) / scale.reshape(channels)
    means = windows(differences, 0) / count * factor
    off = np.abs(means % 1 - 0.5)
    if ((off < _NEAR) & ((off > 0) | (np.frexp(count)[0] != 0.5))).any():
        return None
    limits = np.iinfo(o.output_tensor.dtype)
    point = 0 if zero is None else zero.reshape(channels)
    return np.clip(np.rint(means) + point, limits.min, limits.max)


row(
    "QUANTIZED_LINEAR_AVERAGE_POOLING",
    _quantized_average,
    _torch_quantized_average,
    _scipy_quantized_average,
    by=("onnxruntime",),
    passes="scales of 0, windows without an element, halves of averages whose quotients are rounded; ONNX "
    "Runtime: dilations, parameters of channels, two types",
)

# --- blocks ---


def _bits(data_type: Any) -> tuple[int, int]:
    """The limits of a data type, of 4 bits, too."""
    name = data_type.name
    bits = int(name.removeprefix("U").removeprefix("INT"))
    return (0, 2**bits - 1) if name.startswith("U") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _blocks(o: Any, parameters: list[Any], integers: Any) -> list[Any]:
    """Scale and zero point: without one, that in the middle of the type's range."""
    scale, *point = parameters
    if o.quantization_type is enums.QuantizationType.SCALE_ZERO_POINT:
        return [scale, point[0]]
    low, high = _bits(integers.data_type)
    return [scale, (low + high + 1) // 2]


def _block_axis(sizes: Any, blocks: Any) -> tuple[int, int] | None:
    """The dimension along which blocks lie, and their length; None: blocks of several dimensions."""
    divided = [i for i, (n, m) in enumerate(zip(sizes, blocks, strict=True)) if n != m]
    if not divided:
        return 0, 1
    return (divided[0], sizes[divided[0]] // blocks[divided[0]]) if len(divided) == 1 else None


def _of_blocks(type: str) -> Any:
    def node(o: Any, x: Array, parameters: list[Array]) -> Node | None:
        integers = o.output_tensor if type == "QuantizeLinear" else o.input_tensor
        scale, point = _blocks(o, parameters, integers)
        found = _block_axis(x.shape, scale.shape)
        if found is None or not _are_scales(scale):
            return None
        axis, size = found
        low, high = _bits(integers.data_type)
        dtype = np.uint8 if low == 0 else np.int8
        points = np.broadcast_to(np.asarray(point, dtype), scale.shape)
        inputs = [x.astype(dtype) if type == "DequantizeLinear" else x, scale, points]
        finish = (lambda y: y) if type == "DequantizeLinear" else (lambda y: np.clip(y, low, high))
        return Node(type, inputs, {"axis": axis, "block_size": size}, finish, opset=21)

    return node


def _spread(x: Any, sizes: Any) -> Any:
    """A parameter of blocks, for each element."""
    for axis, n in enumerate(sizes):
        x = x.repeat_interleave(n // x.shape[axis], axis)
    return x.double()


def _torch_quantize(t: Any, o: Any, x: Any, parameters: list[Any]) -> Any:
    scale, point = _blocks(o, parameters, o.output_tensor)
    if not _are_scales(scale):
        return None
    low, high = _bits(o.output_tensor.data_type)
    point = point if isinstance(point, int) else _spread(point, x.shape)
    found = _rounded(t, x.double() / _spread(scale, x.shape), point, "int32")
    return None if found is None else found.clamp(low, high)


def _torch_dequantize(t: Any, o: Any, x: Any, parameters: list[Any]) -> Any:
    scale, point = _blocks(o, parameters, o.input_tensor)
    point = point if isinstance(point, int) else _spread(point, x.shape)
    return (x.double() - point) * _spread(scale, x.shape)


row("QUANTIZE", _of_blocks("QuantizeLinear"), _torch_quantize, passes="scales of 0; ONNX: blocks of areas")
row(
    "DEQUANTIZE",
    _of_blocks("DequantizeLinear"),
    _torch_dequantize,
    passes="ONNX: blocks of areas, scales of 0",
)
row(
    "DYNAMIC_QUANTIZE_LINEAR",
    lambda o, x: (
        Node(
            "DynamicQuantizeLinear",
            [x],
            {},
            lambda found: {
                name: each.reshape(getattr(o, name).sizes)
                for name, each in zip(
                    ("output_tensor", "output_scale_tensor", "output_zero_point_tensor"), found, strict=True
                )
            },
            3,
        )
        if o.output_tensor.dtype == np.uint8 and x.any()
        else None
    ),
    passes="INT8, of which ONNX has none; nothing but zeros, whose scale is open",
)
