"""Quantized models: DequantizeLinear, an operator and QuantizeLinear become one operator on the bytes.

``PATTERNS`` says for each operator which of its inputs must be dequantized, and what takes its place.  Where
the operator keeps values (a Reshape, a MaxPool) the result is the same; where it computes, the sum is one of
integers instead of floats, and the result may differ by one step of the output's scale.  A fused node keeps
the nodes that it replaces: if the device cannot run it, they run instead.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

from .calls import MICROSOFT
from .nodes import Work, reads
from .tensors import Array

__all__ = ["DOMAIN", "PATTERNS", "Fused", "Pattern", "fuse"]

DOMAIN = "dmlemu"
"""Of the operators that only fusing makes; ``operators/fused.py`` lowers them."""

# What reading a model's attributes and values raises where they are wrong.
_WRONG = (ValueError, TypeError, LookupError, ArithmeticError)

_BIAS_SCALE = 1e-5  # how far the bias's scale may be from the product of the others, as a part of it


class Quantized(NamedTuple):
    """A tensor of small integers: names of the tensor, its scale and its zero point ("": 0)."""

    name: str
    scale: str
    zero: str
    axis: int


class Match(NamedTuple):
    """An operator between DequantizeLinear and QuantizeLinear.

    ``inputs``: its inputs that are dequantized, by number.  ``low`` and ``high``: the limits that Relu and
    Clip set between it and QuantizeLinear, as integers of the output; None: those of its type.
    """

    model: _Model
    work: Work
    inputs: Mapping[int, Quantized]
    output: Quantized
    low: int | None
    high: int | None

    def attribute(self, name: str, default: Any = None) -> Any:
        return _attribute(self.work.node, name, default)

    @property
    def is_limited(self) -> bool:
        return self.low is not None or self.high is not None

    def limits(self) -> dict[str, int]:
        """As attributes of the node that takes its place."""
        return {name: value for name, value in (("low", self.low), ("high", self.high)) if value is not None}

    def zero(self, tensor: Quantized) -> str:
        """The name of its zero point; of QuantizeLinear's default if it has none."""
        return tensor.zero or self.model.constant(np.zeros((), np.uint8))

    def same_numbers(self) -> bool:
        """Whether inputs and output have the same scale, a positive number, and the same zero point."""
        parameters = [
            (self.model.value(each.scale), self.model.value(each.zero))
            for each in (self.output, *self.inputs.values())
        ]
        scale, zero = parameters[0]
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or not (scale > 0).all():
            return False
        return all(
            a is not None
            and b is not None
            and (a == scale).all()
            and (b == zero).all()
            and b.dtype == zero.dtype
            for a, b in parameters
        )


class Replacement(NamedTuple):
    """A node in the place of others; ``copies``: it has the attributes of the one that was matched."""

    op: str
    inputs: Sequence[str]
    attributes: Mapping[str, Any] = {}
    domain: str = DOMAIN
    copies: bool = True


class Pattern(NamedTuple):
    """``quantized``: the numbers of the inputs that must come from DequantizeLinear, None for all;
    ``optional``: those that must if they are given.  ``replacement`` returns None for a node that stays."""

    replacement: Callable[[Match], Replacement | None]
    quantized: tuple[int, ...] | None = (0,)
    optional: tuple[int, ...] = ()


class Fused(NamedTuple):
    """The nodes of a model, and further constants that they read."""

    work: list[Work]
    known: dict[str, Any]


def fuse(work: Sequence[Work], known: Mapping[str, Any], outputs: Collection[str]) -> Fused:
    """The nodes with those fused that ``PATTERNS`` has; ``outputs``: the names that the model returns."""
    if not any(_is(each, "QuantizeLinear") for each in work):
        return Fused(list(work), {})
    model = _Model(work, known, outputs)
    replaced: dict[int, Work] = {}  # by the last of the nodes that it replaces
    gone: set[int] = set()
    for each in work:
        if id(each) in gone:
            continue
        try:
            fused = model.fused(each)
        except _WRONG:  # whoever runs these nodes says what is wrong
            fused = None
        if fused is not None:
            own = [part for part in fused.parts if not _is(part, "DequantizeLinear")]
            replaced[id(own[-1])] = fused
            gone.update(map(id, own))
    kept = [replaced.get(id(each), each) for each in work if id(each) in replaced or id(each) not in gone]
    read = set(outputs).union(*(reads(each.node) for each in kept))
    unread = [each for each in kept if _is(each, "DequantizeLinear") and each.node.output[0] not in read]
    gone.update(map(id, unread))
    return Fused([each for each in kept if id(each) not in gone], model.made)


def _is(work: Work, op: str) -> bool:
    """Whether it is ONNX's operator, or the same of ONNX Runtime."""
    domains = ("", MICROSOFT) if op in ("QuantizeLinear", "DequantizeLinear") else ("",)
    return work.node.op_type == op and work.domain in domains


def _attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    for each in node.attribute:
        if each.name == name:
            value = onnx.helper.get_attribute_value(each)
            return value.decode() if isinstance(value, bytes) else value
    return default


class _Model:
    """Who makes and who reads each tensor of a model, and the values that are known."""

    def __init__(self, work: Sequence[Work], known: Mapping[str, Any], outputs: Collection[str]) -> None:
        self.makers = {name: each for each in work for name in each.node.output if name}
        self.readers: dict[str, list[Work]] = defaultdict(list)
        for each in work:
            for name in reads(each.node):
                self.readers[name].append(each)
        self.outputs = outputs
        self.known = known
        self.made: dict[str, Any] = {}

    def value(self, name: str) -> Array | None:
        """Of an initialiser or a Constant."""
        found: Any = self.known.get(name, self.made.get(name))
        maker = self.makers.get(name)
        if maker is not None and _is(maker, "Constant"):
            tensor = _attribute(maker.node, "value")
            found = None if tensor is None else onnx.numpy_helper.to_array(tensor)
        array: Array | None = found if isinstance(found, np.ndarray) else None
        return array

    def numbers(self, tensor: Quantized) -> Array | None:
        """What known small integers with one scale stand for."""
        values, scale = self.value(tensor.name), self.value(tensor.scale)
        zero = self.value(tensor.zero) if tensor.zero else np.zeros((), np.int32)
        if values is None or scale is None or zero is None or scale.size != 1 or zero.size != 1:
            return None
        difference = values.astype(np.int32) - zero.astype(np.int32).ravel()[0]
        numbers: Array = difference.astype(np.float32) * scale.astype(np.float32).ravel()[0]
        return numbers

    def constant(self, value: Array) -> str:
        """The name of a new constant."""
        name = f"{DOMAIN}/constant{len(self.made)}"
        self.made[name] = value
        return name

    # --- what is matched ---

    def fused(self, work: Work) -> Work | None:
        """What takes the place of a node and those around it."""
        pattern = PATTERNS.get(work.node.op_type)
        if pattern is None or work.domain:
            return None
        inputs = self._inputs(work, pattern)
        behind = self._behind(work)
        if inputs is None or behind is None:
            return None
        output = self._quantized(behind[-1])
        limits = self._limits([work, *behind[:-1]], output)
        if limits is None:
            return None
        output = output._replace(name=behind[-1].node.output[0])
        made = pattern.replacement(Match(self, work, inputs, output, *limits))
        if made is None:
            return None
        node = onnx.helper.make_node(
            made.op, made.inputs, [output.name], work.name, domain=made.domain, **made.attributes
        )
        if made.copies:
            node.attribute.extend(work.node.attribute)
        before = [self.makers[work.node.input[number]] for number in inputs]
        return Work(node, work.opsets, (*before, work, *behind))

    def _inputs(self, work: Work, pattern: Pattern) -> dict[int, Quantized] | None:
        """The inputs that the pattern wants dequantized; None: one is not."""
        given = [number for number, name in enumerate(work.node.input) if name]
        wanted = given if pattern.quantized is None else pattern.quantized
        found = {}
        for number in (*wanted, *(each for each in pattern.optional if each in given)):
            maker = self.makers.get(work.node.input[number]) if number in given else None
            if maker is None or not _is(maker, "DequantizeLinear") or not _is_plain(maker):
                return None
            found[number] = self._quantized(maker)
        return found

    def _behind(self, work: Work) -> list[Work] | None:
        """Relu and Clip that follow a node, and QuantizeLinear behind them, which alone read its output."""
        found: list[Work] = []
        while True:
            node = found[-1].node if found else work.node
            readers = self.readers[node.output[0]]
            if node.output[0] in self.outputs or len(readers) != 1 or any(node.output[1:]):
                return None
            found.append(readers[0])
            if _is(readers[0], "QuantizeLinear"):
                data, *parameters = readers[0].node.input
                is_data = data == node.output[0] and data not in parameters
                return found if is_data and _is_plain(readers[0]) else None
            if not _is(readers[0], "Relu") and not _is(readers[0], "Clip"):
                return None

    def _quantized(self, work: Work) -> Quantized:
        """Of DequantizeLinear its input; of QuantizeLinear the same parameters."""
        name, scale, zero = [*work.node.input, ""][:3]
        return Quantized(name, scale, zero, _attribute(work.node, "axis", 1))

    def _limits(self, work: Sequence[Work], output: Quantized) -> tuple[int | None, int | None] | None:
        """Those of the Relu and Clip among nodes; None: they are not known.

        Rounding keeps the order of numbers, so that limits can be rounded, too, and applied behind it.
        """
        low, high = -math.inf, math.inf
        for each in work:
            if _is(each, "Relu") or _is(each, "Clip"):
                found = self._range(each)
                if found is None:
                    return None
                low, high = (min(max(value, found[0]), found[1]) for value in (low, high))
        if math.isinf(low) and math.isinf(high):
            return None, None
        scale = self.value(output.scale)
        zero = self.value(output.zero) if output.zero else np.zeros((), np.uint8)
        if scale is None or zero is None or scale.size != 1 or zero.size != 1 or not (scale > 0).all():
            return None
        if zero.dtype not in (np.uint8, np.int8):
            return None
        type_limits = np.iinfo(zero.dtype)
        least, most = (
            int(
                np.clip(
                    np.rint(np.float32(value) / scale.astype(np.float32)) + zero,
                    type_limits.min,
                    type_limits.max,
                ).item()
            )
            for value in (low, high)
        )
        return (least if least > type_limits.min else None), (most if most < type_limits.max else None)

    def _range(self, work: Work) -> tuple[float, float] | None:
        """The least and the greatest number that Relu or Clip lets pass."""
        if work.node.op_type == "Relu":
            return 0.0, math.inf
        if work.opset < 11:
            return _attribute(work.node, "min", -math.inf), _attribute(work.node, "max", math.inf)
        found = []
        for name, default in zip([*work.node.input, "", ""][1:3], (-math.inf, math.inf), strict=True):
            value = self.value(name) if name else np.float32(default)
            if value is None or np.isnan(value).any():
                return None
            found.append(float(np.ravel(value)[0]))
        return found[0], found[1]


def _is_plain(work: Work) -> bool:
    """Without blocks and types of its own."""
    return not any(_attribute(work.node, name, 0) for name in ("block_size", "output_dtype", "precision"))


# --- what takes the place of operators ---


def _convolution(m: Match) -> Replacement | None:
    x, w, y = m.inputs[0], m.inputs[1], m.output
    if not _has_sum_scale(m, 2) or not _is_along(m, w, 0):
        return None
    bias = [m.inputs[2].name] if 2 in m.inputs else []
    return Replacement("QLinearConv", [*x[:3], *w[:3], y.scale, m.zero(y), *bias], m.limits())


def _product(m: Match) -> Replacement | None:
    a, b, y = m.inputs[0], m.inputs[1], m.output
    if not _is_along(m, b, -1) or not _is_along(m, a, None):
        return None
    return Replacement("QLinearMatMul", [*a[:3], *b[:3], y.scale, m.zero(y)], m.limits())


def _gemm(m: Match) -> Replacement | None:
    x, w, y = m.inputs[0], m.inputs[1], m.output
    transposed = bool(m.attribute("transB", 0))
    if m.attribute("alpha", 1.0) != 1 or m.attribute("beta", 1.0) != 1 or m.attribute("transA", 0):
        return None
    if not _has_sum_scale(m, 2) or not _is_along(m, w, 0 if transposed else 1):
        return None
    bias = m.inputs[2].name if 2 in m.inputs else ""
    inputs = [*x[:3], *w[:3], bias, y.scale, m.zero(y)]
    return Replacement("QGemm", inputs, {**m.limits(), "transB": int(transposed)}, copies=False)


def _sum(m: Match) -> Replacement | None:
    if sorted(m.inputs) != [0, 1]:
        return None
    a, b, y = m.inputs[0], m.inputs[1], m.output
    return Replacement("QLinearAdd", [*a[:3], *b[:3], y.scale, m.zero(y)], m.limits(), copies=False)


def _difference(m: Match) -> Replacement | None:
    """A sum, with the second scale negative: no product differs but for its sign."""
    a, b, y = m.inputs[0], m.inputs[1], m.output
    scale = m.model.value(b.scale)
    if scale is None:
        return None
    inputs = [*a[:3], b.name, m.model.constant(-scale), b.zero, y.scale, m.zero(y)]
    return Replacement("QLinearAdd", inputs, m.limits(), copies=False)


def _scaled(m: Match) -> Replacement | None:
    """A product with a number, or a quotient by one: a sum with 0, whose first scale is multiplied by it."""
    divides = m.work.node.op_type == "Div"
    for number in (1,) if divides else (0, 1):
        factor, x, y = m.inputs[number], m.inputs[1 - number], m.output
        value, scale = m.model.numbers(factor), m.model.value(x.scale)
        if value is None or value.size != 1 or scale is None:
            continue
        with np.errstate(all="ignore"):
            scale = scale / value.ravel()[0] if divides else scale * value.ravel()[0]
        if not np.isfinite(scale).all():
            continue
        zeros = m.model.constant(np.zeros(value.shape, np.uint8)), m.model.constant(np.ones((), np.float32))
        inputs = [x.name, m.model.constant(scale), x.zero, *zeros, zeros[0], y.scale, m.zero(y)]
        return Replacement("QLinearAdd", inputs, m.limits(), copies=False)
    return None


def _average(m: Match) -> Replacement:
    x, y = m.inputs[0], m.output
    return Replacement(f"QLinear{m.work.node.op_type}", [*x[:3], y.scale, m.zero(y)], m.limits())


def _limit(m: Match) -> Replacement | None:
    """Relu and Clip."""
    if not m.same_numbers():
        return None
    if not m.is_limited:
        return Replacement("Identity", [m.inputs[0].name], domain="", copies=False)
    return Replacement("QLinearClip", [m.inputs[0].name], m.limits(), copies=False)


def _kept(m: Match) -> Replacement | None:
    """Operators that move elements or choose among them."""
    if m.is_limited or not m.same_numbers():
        return None
    inputs = list(m.work.node.input)
    for number, each in m.inputs.items():
        inputs[number] = each.name
    return Replacement(m.work.node.op_type, inputs, domain="")


def _resized(m: Match) -> Replacement | None:
    if m.attribute("mode", "nearest") != "nearest":
        return None
    if m.attribute("coordinate_transformation_mode") == "tf_crop_and_resize":  # its values outside are floats
        return None
    return _kept(m)


def _padded(m: Match) -> Replacement | None:
    """Zeros become the zero point."""
    made = _kept(m)
    if made is None:
        return None
    if m.attribute("mode", "constant") != "constant":  # the number for padding, a float, means nothing
        inputs = ["" if number == 2 else name for number, name in enumerate(made.inputs)]
        return made._replace(inputs=inputs)
    names = [*m.work.node.input, ""]
    value = m.model.value(names[2]) if names[2] else np.zeros(1)
    if m.work.opset < 11 or value is None or (value != 0).any():
        return None
    return made._replace(inputs=[made.inputs[0], names[1], m.zero(m.output), *names[3:-1]])


def _has_sum_scale(m: Match, number: int) -> bool:
    """Whether a bias that is given has the scale of the sums that it is added to, and the zero point 0."""
    if number not in m.inputs:
        return True
    bias = m.inputs[number]
    zero = m.model.value(bias.zero) if bias.zero else np.zeros(1)
    scales = [m.model.value(each.scale) for each in (bias, m.inputs[0], m.inputs[1])]
    if zero is None or zero.any() or any(each is None for each in scales):
        return False
    own, x, w = (np.ravel(each).astype(np.float64) for each in scales)  # type: ignore[arg-type]
    if x.size != 1 or own.size not in (1, w.size):
        return False
    return bool(np.allclose(own, x * w, rtol=_BIAS_SCALE, atol=0))


def _is_along(m: Match, tensor: Quantized, axis: int | None) -> bool:
    """Whether a tensor has one scale or, unless ``axis`` is None, one for each index there."""
    scale, values = m.model.value(tensor.scale), m.model.value(tensor.name)
    if scale is None or scale.size == 1 or axis is None:
        return scale is not None and scale.size == 1
    if values is None:  # its number of dimensions is not known, but that it has two
        return axis >= 0 and tensor.axis == axis
    return values.ndim > 1 and (tensor.axis - axis) % values.ndim == 0


_KEPT = (
    *("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile", "Slice", "Gather"),
    *("GatherElements", "GatherND", "DepthToSpace", "SpaceToDepth", "MaxPool", "ReduceMax", "ReduceMin"),
)

PATTERNS: Mapping[str, Pattern] = {
    "Conv": Pattern(_convolution, (0, 1), (2,)),
    "MatMul": Pattern(_product, (0, 1)),
    "Gemm": Pattern(_gemm, (0, 1), (2,)),
    "Add": Pattern(_sum, None),
    "Sum": Pattern(_sum, None),
    "Sub": Pattern(_difference, None),
    "Mul": Pattern(_scaled, None),
    "Div": Pattern(_scaled, None),
    "AveragePool": Pattern(_average),
    "GlobalAveragePool": Pattern(_average),
    "Relu": Pattern(_limit),
    "Clip": Pattern(_limit),
    **dict.fromkeys(_KEPT, Pattern(_kept)),
    "Concat": Pattern(_kept, None),
    "Max": Pattern(_kept, None),
    "Min": Pattern(_kept, None),
    "Where": Pattern(_kept, (1, 2)),
    "Resize": Pattern(_resized),
    "Upsample": Pattern(_resized),
    "Pad": Pattern(_padded),
}
"""By ONNX's operator."""
