"""ONNX operators that mean the same as an operator of DirectML: the one table of the mapping.

The ONNX package makes inputs and expected outputs for each of its operators; ``test_onnx.py`` runs them
on the emulated device.  A row is active as soon as its DirectML operator is emulated.  ``SAME`` holds the
operators that differ in names only; a function below ``@maps`` builds the desc of the others, or raises
``NotExpressible`` for a case that the DirectML operator cannot express.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from strategies import ALL_TYPES, Array, dtype_of

from dmlemu import dml
from dmlemu.dml import BufferTensorDesc, OperatorType
from dmlemu.dml import TensorDataType as T
from dmlemu.dml.declared import declared
from dmlemu.dml.declared.schema import FieldKind, OperatorDesc, operator_fields


class NotExpressible(Exception):
    """The case uses what the DirectML operator does not have; the message says what."""


_TYPES = {dtype_of(each): each for each in ALL_TYPES}


def dml_array(array: Any) -> Array:
    """The array as a tensor has it: bool as UINT8, scalars with one dimension."""
    array = np.atleast_1d(np.asarray(array))
    array = array.view(np.uint8) if array.dtype == np.bool_ else array
    if array.dtype not in _TYPES:
        raise NotExpressible(f"elements of type {array.dtype}")
    if array.size == 0:
        raise NotExpressible("a tensor without elements")
    return array


def desc_of(array: Array, sizes: Sequence[int] | None = None) -> BufferTensorDesc:
    """A packed tensor, or one broadcast to ``sizes`` by strides of 0."""
    data_type = _TYPES[array.dtype]
    if sizes is None or array.shape == tuple(sizes):
        return BufferTensorDesc(data_type, array.shape)
    view = np.broadcast_to(np.ascontiguousarray(array), tuple(sizes))
    return BufferTensorDesc(data_type, sizes, [step // array.itemsize for step in view.strides])


@dataclass
class Run:
    """What to evaluate: the desc, its inputs by field name, and the expected outputs by field name."""

    desc: OperatorDesc
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]


@dataclass
class Case:
    """One case of the ONNX package."""

    name: str
    operator: str
    attributes: Mapping[str, Any]
    inputs: list[Any]
    outputs: list[Any]
    places: list[int]
    """Of the outputs that are asked for, among all of the operator."""
    version: int
    domain: str = ""
    tolerance: tuple[float, float] = field(default=(1e-3, 1e-7))

    @cached_property
    def arrays(self) -> list[Array]:
        return [dml_array(each) for each in self.inputs]

    @cached_property
    def expected(self) -> list[Array]:
        return [dml_array(each) for each in self.outputs]

    def attribute(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def input(self, index: int) -> Any:
        """An optional input, or None."""
        return self.inputs[index] if index < len(self.inputs) and np.size(self.inputs[index]) else None

    def axis(self, name: str = "axis", default: int = 0) -> int:
        """An axis, counted from the front."""
        axis = int(self.attribute(name, default))
        return axis % self.arrays[0].ndim

    def run(self, to: str, tensors: Mapping[str, Any], outputs: Mapping[str, Any], **fields: Any) -> Run:
        """The operator ``to`` with these tensors, packed unless ``fields`` has their descs."""
        arrays = {**tensors, **outputs}
        descs = {
            name: [desc_of(each) for each in value] if isinstance(value, list) else desc_of(value)
            for name, value in arrays.items()
            if name not in fields
        }
        desc = declared()[OperatorType[to]](**{**descs, **fields})
        return Run(desc, tensors, outputs)


Mapper = Callable[[Case], Run]


class Row(NamedTuple):
    """``to``: the DirectML operators that are needed."""

    to: tuple[str, ...]
    build: Mapper


# ONNX operator: DirectML operator, and the DirectML field of each attribute that has another name.
SAME: dict[str, tuple[str, Mapping[str, str]]] = {
    name: (to, {})
    for name, to in {
        "Abs": "ELEMENT_WISE_ABS",
        "Acos": "ELEMENT_WISE_ACOS",
        "Acosh": "ELEMENT_WISE_ACOSH",
        "Add": "ELEMENT_WISE_ADD",
        "And": "ELEMENT_WISE_LOGICAL_AND",
        "Asin": "ELEMENT_WISE_ASIN",
        "Asinh": "ELEMENT_WISE_ASINH",
        "Atan": "ELEMENT_WISE_ATAN",
        "Atanh": "ELEMENT_WISE_ATANH",
        "BitwiseAnd": "ELEMENT_WISE_BIT_AND",
        "BitwiseNot": "ELEMENT_WISE_BIT_NOT",
        "BitwiseOr": "ELEMENT_WISE_BIT_OR",
        "BitwiseXor": "ELEMENT_WISE_BIT_XOR",
        "Ceil": "ELEMENT_WISE_CEIL",
        "Celu": "ACTIVATION_CELU",
        "Cos": "ELEMENT_WISE_COS",
        "Cosh": "ELEMENT_WISE_COSH",
        "Div": "ELEMENT_WISE_DIVIDE",
        "Elu": "ACTIVATION_ELU",
        "Equal": "ELEMENT_WISE_LOGICAL_EQUALS",
        "Erf": "ELEMENT_WISE_ERF",
        "Exp": "ELEMENT_WISE_EXP",
        "Floor": "ELEMENT_WISE_FLOOR",
        "Greater": "ELEMENT_WISE_LOGICAL_GREATER_THAN",
        "GreaterOrEqual": "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL",
        "HardSigmoid": "ACTIVATION_HARD_SIGMOID",
        "Identity": "ELEMENT_WISE_IDENTITY",
        "IsNaN": "ELEMENT_WISE_IS_NAN",
        "LeakyRelu": "ACTIVATION_LEAKY_RELU",
        "Less": "ELEMENT_WISE_LOGICAL_LESS_THAN",
        "LessOrEqual": "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL",
        "Log": "ELEMENT_WISE_LOG",
        "Mul": "ELEMENT_WISE_MULTIPLY",
        "Neg": "ELEMENT_WISE_NEGATE",
        "Not": "ELEMENT_WISE_LOGICAL_NOT",
        "Or": "ELEMENT_WISE_LOGICAL_OR",
        "PRelu": "ACTIVATION_PARAMETERIZED_RELU",
        "Pow": "ELEMENT_WISE_POW",
        "Reciprocal": "ELEMENT_WISE_RECIP",
        "Relu": "ACTIVATION_RELU",
        "Selu": "ACTIVATION_SCALED_ELU",
        "Sigmoid": "ACTIVATION_SIGMOID",
        "Sign": "ELEMENT_WISE_SIGN",
        "Sin": "ELEMENT_WISE_SIN",
        "Sinh": "ELEMENT_WISE_SINH",
        "Softsign": "ACTIVATION_SOFTSIGN",
        "Sqrt": "ELEMENT_WISE_SQRT",
        "Sub": "ELEMENT_WISE_SUBTRACT",
        "Tan": "ELEMENT_WISE_TAN",
        "Tanh": "ELEMENT_WISE_TANH",
        "ThresholdedRelu": "ACTIVATION_THRESHOLDED_RELU",
        "Where": "ELEMENT_WISE_IF",
        "Xor": "ELEMENT_WISE_LOGICAL_XOR",
    }.items()
}
SAME["Shrink"] = ("ACTIVATION_SHRINK", {"lambd": "threshold"})
SAME["Swish"] = ("ACTIVATION_SWISH", {"alpha": "sigmoid_input_scale"})

ROWS: dict[str, Row] = {}


def maps(*operators: str, to: str) -> Callable[[Mapper], Mapper]:
    """Declares the row of these ONNX operators; ``to``: the DirectML operators, separated by spaces."""

    def register(build: Mapper) -> Mapper:
        ROWS.update(dict.fromkeys(operators, Row(tuple(to.split()), build)))
        return build

    return register


def _attributes(case: Case) -> dict[str, Any]:
    """The case's attributes, with the defaults of its ONNX operator."""
    import onnx

    schema = onnx.defs.get_schema(case.operator, case.version, case.domain)
    defaults = {
        name: onnx.helper.get_attribute_value(each.default_value)
        for name, each in schema.attributes.items()
        if each.default_value.name
    }
    return {**defaults, **case.attributes}


def _same(case: Case) -> Run:
    """Inputs in their order, broadcast to the output; FLOATs from the attributes of that name."""
    to, renamed = SAME[case.operator]
    values = {renamed.get(name, name): value for name, value in _attributes(case).items()}
    (output,) = case.expected
    tensors, fields = {}, {}
    arrays = iter(case.arrays)
    for item in operator_fields(declared()[OperatorType[to]]):
        if item.kind is FieldKind.INPUT_TENSOR:
            array = next(arrays)
            if case.operator == "Pow" and array.dtype != case.arrays[0].dtype and to == "ELEMENT_WISE_POW":
                array = array.astype(case.arrays[0].dtype)  # ONNX allows any type of exponent
            fields[item.name] = desc_of(array, output.shape)
            tensors[item.name] = np.broadcast_to(array, output.shape)
        elif item.kind is FieldKind.FLOAT and item.name in values:
            fields[item.name] = float(values[item.name])
    return case.run(to, tensors, {"output_tensor": output}, **fields)


for _name, (_to, _) in SAME.items():
    ROWS[_name] = Row((_to,), _same)


def _unary(case: Case, to: str, **fields: Any) -> Run:
    return case.run(to, {"input_tensor": case.arrays[0]}, {"output_tensor": case.expected[0]}, **fields)


# --- element-wise operators with more than one form ---


@maps("Max", "Min", "Mean", "Sum", to="ELEMENT_WISE_MAX ELEMENT_WISE_MIN ELEMENT_WISE_MEAN ELEMENT_WISE_ADD")
def _variadic(case: Case) -> Run:
    """DirectML has two inputs."""
    if len(case.inputs) != 2:
        raise NotExpressible(f"{len(case.inputs)} inputs")
    to = {"Sum": "ELEMENT_WISE_ADD"}.get(case.operator, f"ELEMENT_WISE_{case.operator.upper()}")
    (output,) = case.expected
    return case.run(
        to,
        {"a_tensor": case.arrays[0], "b_tensor": case.arrays[1]},
        {"output_tensor": output},
        a_tensor=desc_of(case.arrays[0], output.shape),
        b_tensor=desc_of(case.arrays[1], output.shape),
    )


@maps("BitShift", to="ELEMENT_WISE_BIT_SHIFT_LEFT ELEMENT_WISE_BIT_SHIFT_RIGHT")
def _bit_shift(case: Case) -> Run:
    direction = case.attribute("direction").decode()
    a, b = case.arrays
    return case.run(
        f"ELEMENT_WISE_BIT_SHIFT_{direction}",
        {"a_tensor": a, "b_tensor": b},
        {"output_tensor": case.expected[0]},
    )


@maps("Mod", to="ELEMENT_WISE_MODULUS_TRUNCATE ELEMENT_WISE_MODULUS_FLOOR")
def _mod(case: Case) -> Run:
    (output,), (a, b) = case.expected, case.arrays
    return case.run(
        "ELEMENT_WISE_MODULUS_TRUNCATE" if case.attribute("fmod", 0) else "ELEMENT_WISE_MODULUS_FLOOR",
        {"a_tensor": a, "b_tensor": np.broadcast_to(b, output.shape)},
        {"output_tensor": output},
        b_tensor=desc_of(b, output.shape),
    )


@maps("IsInf", to="ELEMENT_WISE_IS_INFINITY")
def _is_inf(case: Case) -> Run:
    negative, positive = case.attribute("detect_negative", 1), case.attribute("detect_positive", 1)
    if not negative and not positive:
        raise NotExpressible("neither sign")
    mode = "EITHER" if negative and positive else "NEGATIVE" if negative else "POSITIVE"
    return _unary(case, "ELEMENT_WISE_IS_INFINITY", infinity_mode=dml.IsInfinityMode[mode])


@maps("Round", to="ELEMENT_WISE_ROUND")
def _round(case: Case) -> Run:
    return _unary(case, "ELEMENT_WISE_ROUND", rounding_mode=dml.RoundingMode.HALVES_TO_NEAREST_EVEN)


@maps("Clip", to="ELEMENT_WISE_CLIP")
def _clip(case: Case) -> Run:
    lowest, highest = np.float32([-np.inf, np.inf])
    low = case.input(1) if len(case.inputs) > 1 else case.attribute("min")
    high = case.input(2) if len(case.inputs) > 2 else case.attribute("max")
    bounds = [
        float(each) if each is not None else default for each, default in ((low, lowest), (high, highest))
    ]
    return _unary(case, "ELEMENT_WISE_CLIP", min=float(bounds[0]), max=float(bounds[1]))


@maps("Gelu", to="ACTIVATION_GELU")
def _gelu(case: Case) -> Run:
    if case.attribute("approximate", b"none") != b"none":
        raise NotExpressible("approximate Gelu")
    return _unary(case, "ACTIVATION_GELU")


@maps("Softplus", to="ACTIVATION_SOFTPLUS")
def _softplus(case: Case) -> Run:
    return _unary(case, "ACTIVATION_SOFTPLUS", steepness=1.0)


@maps("HardSwish", to="ACTIVATION_HARD_SWISH")
def _hard_swish(case: Case) -> Run:
    return _unary(case, "ACTIVATION_HARD_SWISH", alpha=1 / 6, beta=0.5)


# --- lines along axes ---


@maps(
    "Softmax",
    "LogSoftmax",
    "Hardmax",
    to="ACTIVATION_SOFTMAX1 ACTIVATION_LOG_SOFTMAX1 ACTIVATION_HARDMAX1",
)
def _softmax(case: Case) -> Run:
    to = {"Softmax": "SOFTMAX1", "LogSoftmax": "LOG_SOFTMAX1", "Hardmax": "HARDMAX1"}[case.operator]
    return _unary(case, f"ACTIVATION_{to}", axes=[case.axis("axis", -1)])


# --- normalisation ---


def _mean_variance(
    case: Case, axes: Sequence[int], scale: Array | None, bias: Array | None, use_mean: bool = True
) -> Run:
    """``scale`` and ``bias`` have the input's dimensions, of their sizes or 1."""
    tensors = {"input_tensor": case.arrays[0], "scale_tensor": scale, "bias_tensor": bias}
    return case.run(
        "MEAN_VARIANCE_NORMALIZATION2",
        {name: array for name, array in tensors.items() if array is not None},
        {"output_tensor": case.expected[0]},
        axes=list(axes),
        use_mean=use_mean,
        use_variance=True,
        epsilon=float(case.attribute("epsilon", 1e-5)),
    )


def _of_channels(array: Array, rank: int) -> Array:
    return array.reshape([1, -1] + [1] * (rank - 2))


@maps("MeanVarianceNormalization", to="MEAN_VARIANCE_NORMALIZATION1")
def _mvn(case: Case) -> Run:
    axes = [int(axis) % case.arrays[0].ndim for axis in case.attribute("axes", [0, 2, 3])]
    fields: dict[str, Any] = {"axes": axes, "normalize_variance": True, "epsilon": 1e-9}
    return _unary(case, "MEAN_VARIANCE_NORMALIZATION1", **fields)


@maps("LayerNormalization", "RMSNormalization", to="MEAN_VARIANCE_NORMALIZATION2")
def _layer_normalization(case: Case) -> Run:
    """Mean and deviation, the other outputs of LayerNormalization, are not compared."""
    rank = case.arrays[0].ndim
    factors = [each.reshape([1] * (rank - each.ndim) + list(each.shape)) for each in case.arrays[1:]]
    scale, bias = [*factors, None, None][:2]
    axes = range(case.axis("axis", -1), rank)
    return _mean_variance(case, axes, scale, bias, case.operator == "LayerNormalization")


@maps("InstanceNormalization", to="MEAN_VARIANCE_NORMALIZATION2")
def _instance_normalization(case: Case) -> Run:
    rank = case.arrays[0].ndim
    scale, bias = (_of_channels(each, rank) for each in case.arrays[1:])
    return _mean_variance(case, range(2, rank), scale, bias)


@maps("GroupNormalization", to="MEAN_VARIANCE_NORMALIZATION2")
def _group_normalization(case: Case) -> Run:
    """With a dimension for the groups."""
    x, scale, bias = case.arrays
    groups = int(case.attribute("num_groups"))
    split = [x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]]
    factors = [1, groups, split[2]] + [1] * (x.ndim - 2)
    case = replace(case, inputs=[x.reshape(split)], outputs=[case.expected[0].reshape(split)])
    if scale.size != x.shape[1]:
        raise NotExpressible("a scale for each group")
    return _mean_variance(case, range(2, len(split)), scale.reshape(factors), bias.reshape(factors))


@maps("BatchNormalization", to="BATCH_NORMALIZATION")
def _batch_normalization(case: Case) -> Run:
    if case.attribute("training_mode", 0):
        raise NotExpressible("running statistics")
    x, *parameters = case.arrays
    names = ("scale_tensor", "bias_tensor", "mean_tensor", "variance_tensor")
    of_channels = (_of_channels(each, x.ndim) for each in parameters)
    return case.run(
        "BATCH_NORMALIZATION",
        {"input_tensor": x, **dict(zip(names, of_channels, strict=True))},
        {"output_tensor": case.expected[0]},
        spatial=True,
        epsilon=float(case.attribute("epsilon", 1e-5)),
    )


@maps("LRN", to="LOCAL_RESPONSE_NORMALIZATION")
def _lrn(case: Case) -> Run:
    values = _attributes(case)
    numbers = {name: float(values[name]) for name in ("alpha", "beta", "bias")}
    fields: dict[str, Any] = {"cross_channel": True, "local_size": int(values["size"]), **numbers}
    return _unary(case, "LOCAL_RESPONSE_NORMALIZATION", **fields)


@maps("LpNormalization", to="LP_NORMALIZATION")
def _lp_normalization(case: Case) -> Run:
    fields: dict[str, Any] = {"axis": case.axis("axis", -1), "p": int(case.attribute("p", 2))}
    return _unary(case, "LP_NORMALIZATION", **fields, epsilon=1e-12)  # lines of zeros stay zeros


# --- reductions ---


_REDUCE = {
    "ReduceL1": "L1",
    "ReduceL2": "L2",
    "ReduceLogSum": "LOG_SUM",
    "ReduceLogSumExp": "LOG_SUM_EXP",
    "ReduceMax": "MAX",
    "ReduceMean": "AVERAGE",
    "ReduceMin": "MIN",
    "ReduceProd": "MULTIPLY",
    "ReduceSum": "SUM",
    "ReduceSumSquare": "SUM_SQUARE",
}


@maps(*_REDUCE, to="REDUCE")
def _reduce(case: Case) -> Run:
    x, (output,) = case.arrays[0], case.expected
    if x.dtype == np.float64:  # some functions have only such cases
        x, output = x.astype(np.float32), output.astype(np.float32)
    axes = case.input(1) if len(case.inputs) > 1 else case.attribute("axes")
    if axes is None and case.attribute("noop_with_empty_axes", 0):
        raise NotExpressible("no axes and nothing to do")
    every = [int(axis) % x.ndim for axis in (axes if axes is not None else range(x.ndim))]
    kept = [1 if axis in every else size for axis, size in enumerate(x.shape)]
    return case.run(
        "REDUCE",
        {"input_tensor": x},
        {"output_tensor": output.reshape(kept)},
        function=dml.ReduceFunction[_REDUCE[case.operator]],
        axes=every,
    )


@maps("ArgMax", "ArgMin", to="ARGMAX ARGMIN")
def _arg(case: Case) -> Run:
    x, axis = case.arrays[0], case.axis()
    kept = [1 if each == axis else size for each, size in enumerate(x.shape)]
    last = case.attribute("select_last_index", 0)
    return case.run(
        case.operator.upper(),
        {"input_tensor": x},
        {"output_tensor": case.expected[0].reshape(kept)},
        axes=[axis],
        axis_direction=dml.AxisDirection.DECREASING if last else dml.AxisDirection.INCREASING,
    )


@maps("CumSum", "CumProd", to="CUMULATIVE_SUMMATION CUMULATIVE_PRODUCT")
def _cumulative(case: Case) -> Run:
    """ONNX's cases are small numbers in FLOAT64, which DirectML's scans do not have."""
    x, expected = case.arrays[0], case.expected[0]
    if x.dtype == np.float64:
        x, expected = x.astype(np.float32), expected.astype(np.float32)
    backward, exclusive = case.attribute("reverse", 0), bool(case.attribute("exclusive", 0))
    total = case.operator == "CumSum"
    exclusive_field = "has_exclusive_sum" if total else "has_exclusive_product"
    return case.run(
        "CUMULATIVE_SUMMATION" if total else "CUMULATIVE_PRODUCT",
        {"input_tensor": x},
        {"output_tensor": expected},
        axis=int(np.ravel(case.inputs[1])[0]) % x.ndim,
        axis_direction=dml.AxisDirection.DECREASING if backward else dml.AxisDirection.INCREASING,
        **{exclusive_field: exclusive},
    )


@maps("TopK", to="TOP_K1")
def _top_k(case: Case) -> Run:
    largest = case.attribute("largest", 1)
    return case.run(
        "TOP_K1",
        {"input_tensor": case.arrays[0]},
        {"output_value_tensor": case.expected[0], "output_index_tensor": case.expected[1].astype(np.uint32)},
        axis=case.axis("axis", -1),
        k=int(np.ravel(case.inputs[1])[0]),
        axis_direction=dml.AxisDirection.DECREASING if largest else dml.AxisDirection.INCREASING,
    )


# --- data movement ---


@maps("Cast", to="CAST")
def _cast(case: Case) -> Run:
    return _unary(case, "CAST")


@maps("Slice", to="SLICE1")
def _slice(case: Case) -> Run:
    x = case.arrays[0]
    starts, ends = (np.ravel(each).tolist() for each in case.inputs[1:3])
    axes = np.ravel(case.inputs[3]).tolist() if len(case.inputs) > 3 else list(range(len(starts)))
    steps = np.ravel(case.inputs[4]).tolist() if len(case.inputs) > 4 else [1] * len(starts)
    offsets, sizes, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        covered = range(x.shape[axis])[start:end:step]
        if not covered:
            raise NotExpressible("a slice without elements")
        low, high = min(covered[0], covered[-1]), max(covered[0], covered[-1])
        offsets[axis], sizes[axis], strides[axis] = low, high - low + 1, step
    return _unary(
        case,
        "SLICE1",
        input_window_offsets=offsets,
        input_window_sizes=sizes,
        input_window_strides=strides,
    )


@maps("Split", to="SPLIT")
def _split(case: Case) -> Run:
    return case.run(
        "SPLIT", {"input_tensor": case.arrays[0]}, {"output_tensors": case.expected}, axis=case.axis()
    )


@maps("Concat", to="JOIN")
def _concat(case: Case) -> Run:
    return case.run(
        "JOIN", {"input_tensors": case.arrays}, {"output_tensor": case.expected[0]}, axis=case.axis()
    )


@maps("Pad", to="PADDING1")
def _pad(case: Case) -> Run:
    x = case.arrays[0]
    pads = np.ravel(case.inputs[1]).tolist()
    axes = (
        [int(each) % x.ndim for each in np.ravel(case.inputs[3])] if len(case.inputs) > 3 else range(x.ndim)
    )
    start, end = [0] * x.ndim, [0] * x.ndim
    for place, axis in enumerate(axes):
        start[axis], end[axis] = pads[place], pads[place + len(pads) // 2]
    if min(start + end) < 0:
        raise NotExpressible("negative padding")
    modes = {"constant": "CONSTANT", "edge": "EDGE", "reflect": "REFLECTION", "wrap": "WRAP"}
    value = case.input(2)
    data_type = _TYPES[x.dtype]
    number = 0 if value is None else np.ravel(value)[0].item()
    return _unary(
        case,
        "PADDING1",
        padding_mode=dml.PaddingMode[modes[case.attribute("mode", b"constant").decode()]],
        padding_value_data_type=data_type,
        padding_value=dml.ScalarUnion.of(data_type, number),
        start_padding=start,
        end_padding=end,
    )


@maps("Tile", to="TILE")
def _tile(case: Case) -> Run:
    return _unary(case, "TILE", repeats=np.ravel(case.inputs[1]).tolist())


@maps("Expand", to="ELEMENT_WISE_IDENTITY")
def _expand(case: Case) -> Run:
    (output,), x = case.expected, case.arrays[0]
    tensors = {"input_tensor": np.broadcast_to(x, output.shape)}
    return case.run(
        "ELEMENT_WISE_IDENTITY",
        tensors,
        {"output_tensor": output},
        input_tensor=desc_of(x, output.shape),
    )


@maps("Transpose", to="ELEMENT_WISE_IDENTITY")
def _transpose(case: Case) -> Run:
    """Strides alone."""
    x = case.arrays[0]
    turned = np.ascontiguousarray(x).transpose(case.attribute("perm", range(x.ndim)[::-1]))
    strides = [step // x.itemsize for step in turned.strides]
    tensor = BufferTensorDesc(_TYPES[x.dtype], turned.shape, strides)
    return case.run(
        "ELEMENT_WISE_IDENTITY",
        {"input_tensor": turned},
        {"output_tensor": case.expected[0]},
        input_tensor=tensor,
    )


@maps("SpaceToDepth", to="SPACE_TO_DEPTH1")
def _space_to_depth(case: Case) -> Run:
    return _unary(case, "SPACE_TO_DEPTH1", block_size=case.attribute("blocksize"), order=_order(case))


def _order(case: Case) -> dml.DepthSpaceOrder:
    columns_first = case.attribute("mode", b"DCR") == b"CRD"
    return dml.DepthSpaceOrder.COLUMN_ROW_DEPTH if columns_first else dml.DepthSpaceOrder.DEPTH_COLUMN_ROW


@maps("DepthToSpace", to="DEPTH_TO_SPACE1")
def _depth_to_space(case: Case) -> Run:
    return _unary(case, "DEPTH_TO_SPACE1", block_size=case.attribute("blocksize"), order=_order(case))


@maps("ReverseSequence", to="REVERSE_SUBSEQUENCES")
def _reverse_sequence(case: Case) -> Run:
    x, lengths = case.arrays
    time, batch = case.attribute("time_axis", 0), case.attribute("batch_axis", 1)
    sizes = [x.shape[axis] if axis == batch else 1 for axis in range(x.ndim)]
    return case.run(
        "REVERSE_SUBSEQUENCES",
        {"input_tensor": x, "sequence_lengths_tensor": lengths.astype(np.uint32).reshape(sizes)},
        {"output_tensor": case.expected[0]},
        axis=time,
    )


@maps("EyeLike", to="DIAGONAL_MATRIX1")
def _eye_like(case: Case) -> Run:
    (output,), k = case.expected, case.attribute("k", 0)
    data_type = _TYPES[output.dtype]
    return case.run(
        "DIAGONAL_MATRIX1",
        {},
        {"output_tensor": output},
        value_data_type=data_type,
        value=dml.ScalarUnion.of(data_type, 1),
        diagonal_fill_begin=k,
        diagonal_fill_end=k + 1,
    )


@maps("ConstantOfShape", to="FILL_VALUE_CONSTANT")
def _constant_of_shape(case: Case) -> Run:
    (output,) = case.expected
    data_type = _TYPES[output.dtype]
    value = dml.ScalarUnion.of(data_type, output.ravel()[0].item())
    return case.run(
        "FILL_VALUE_CONSTANT", {}, {"output_tensor": output}, value_data_type=data_type, value=value
    )


@maps("Range", to="FILL_VALUE_SEQUENCE")
def _range(case: Case) -> Run:
    (output,) = case.expected
    data_type = _TYPES[output.dtype]
    start, _, delta = (dml.ScalarUnion.of(data_type, np.ravel(each)[0].item()) for each in case.inputs)
    return case.run(
        "FILL_VALUE_SEQUENCE",
        {},
        {"output_tensor": output},
        value_data_type=data_type,
        value_start=start,
        value_delta=delta,
    )


@maps("Col2Im", to="FOLD")
def _col2im(case: Case) -> Run:
    window = np.ravel(case.inputs[2]).tolist()
    pads = case.attribute("pads", [0] * 2 * len(window))
    return _unary(
        case,
        "FOLD",
        window_sizes=window,
        strides=case.attribute("strides", [1] * len(window)),
        dilations=case.attribute("dilations", [1] * len(window)),
        start_padding=pads[: len(window)],
        end_padding=pads[len(window) :],
    )


# --- indexing ---


def same_rank(array: Array, rank: int) -> Array:
    """With leading dimensions of 1."""
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


@maps("Gather", to="GATHER")
def _gather(case: Case) -> Run:
    """All tensors have one rank: that of the output, or of the largest."""
    x, (output,) = case.arrays[0], case.expected
    indices, axis = np.asarray(case.inputs[1]), case.axis()
    rank = max(x.ndim, indices.ndim, output.ndim)
    return case.run(
        "GATHER",
        {"input_tensor": same_rank(x, rank), "indices_tensor": same_rank(np.atleast_1d(indices), rank)},
        {"output_tensor": same_rank(output, rank)},
        axis=axis + rank - x.ndim,
        index_dimensions=indices.ndim,
    )


@maps("GatherElements", to="GATHER_ELEMENTS")
def _gather_elements(case: Case) -> Run:
    x, indices = case.arrays
    return case.run(
        "GATHER_ELEMENTS",
        {"input_tensor": x, "indices_tensor": indices},
        {"output_tensor": case.expected[0]},
        axis=case.axis(),
    )


@maps("GatherND", to="GATHER_ND1")
def _gather_nd(case: Case) -> Run:
    (x, indices), (output,) = case.arrays, case.expected
    rank = max(x.ndim, indices.ndim, output.ndim)
    return case.run(
        "GATHER_ND1",
        {"input_tensor": same_rank(x, rank), "indices_tensor": same_rank(indices, rank)},
        {"output_tensor": same_rank(output, rank)},
        input_dimension_count=x.ndim,
        indices_dimension_count=indices.ndim,
        batch_dimension_count=case.attribute("batch_dims", 0),
    )


def _without_reduction(case: Case) -> None:
    if case.attribute("reduction", b"none") != b"none":
        raise NotExpressible("a scatter with a reduction")


@maps("ScatterElements", "Scatter", to="SCATTER_ELEMENTS")
def _scatter_elements(case: Case) -> Run:
    _without_reduction(case)
    x, indices, updates = case.arrays
    return case.run(
        "SCATTER_ELEMENTS",
        {"input_tensor": x, "indices_tensor": indices, "updates_tensor": updates},
        {"output_tensor": case.expected[0]},
        axis=case.axis(),
    )


@maps("ScatterND", to="SCATTER_ND")
def _scatter_nd(case: Case) -> Run:
    _without_reduction(case)
    x, indices, updates = case.arrays
    rank = max(x.ndim, indices.ndim, updates.ndim)
    return case.run(
        "SCATTER_ND",
        {
            "input_tensor": same_rank(x, rank),
            "indices_tensor": same_rank(indices, rank),
            "updates_tensor": same_rank(updates, rank),
        },
        {"output_tensor": same_rank(case.expected[0], rank)},
        input_dimension_count=x.ndim,
        indices_dimension_count=indices.ndim,
    )


@maps("OneHot", to="ONE_HOT")
def _one_hot(case: Case) -> Run:
    indices, values, (output,) = case.arrays[0], case.arrays[2], case.expected
    axis = case.attribute("axis", -1) % output.ndim
    if indices.dtype.kind == "f":
        indices = indices.astype(np.int64)  # ONNX allows floats
    sizes = [1 if each == axis else size for each, size in enumerate(output.shape)]
    return case.run(
        "ONE_HOT",
        {
            "indices_tensor": indices.reshape(sizes),
            "values_tensor": same_rank(values, output.ndim),
        },
        {"output_tensor": output},
        axis=axis,
    )


# --- quantisation ---


def _per_axis(array: Array, rank: int, axis: int) -> Array:
    """A scale or zero point per element of an axis, or per block, shaped for broadcasting."""
    if array.size == 1:
        return array.reshape((1,) * rank)
    if array.ndim == rank:
        return array
    return array.reshape([array.size if each == axis % rank else 1 for each in range(rank)])


@maps(
    "QuantizeLinear",
    "DequantizeLinear",
    to="ELEMENT_WISE_QUANTIZE_LINEAR ELEMENT_WISE_DEQUANTIZE_LINEAR QUANTIZE DEQUANTIZE",
)
def _quantize_linear(case: Case) -> Run:
    if case.operator == "QuantizeLinear" and np.asarray(case.outputs[0]).dtype.name in ("int16", "uint16"):
        raise NotExpressible("outputs of 16 bits")
    if case.attribute("block_size", 0) or any(_is_half_byte(each) for each in (*case.inputs, *case.outputs)):
        return _quantize_blocks(case)
    x, (output,) = case.arrays[0], case.expected
    names = ("scale_tensor", "zero_point_tensor")
    arrays = [_per_axis(each, x.ndim, case.attribute("axis", 1)) for each in case.arrays[1:]]
    tensors = {name: np.broadcast_to(each, x.shape) for name, each in zip(names, arrays, strict=False)}
    descs = {name: desc_of(each, x.shape) for name, each in zip(names, arrays, strict=False)}
    to = "QUANTIZE" if case.operator == "QuantizeLinear" else "DEQUANTIZE"
    return case.run(
        f"ELEMENT_WISE_{to}_LINEAR", {"input_tensor": x, **tensors}, {"output_tensor": output}, **descs
    )


def _quantize_blocks(case: Case) -> Run:
    """An absent zero point is 0 in ONNX, not in DirectML: it is always given."""
    (kind, x), (scale_type, scale), *rest = map(_typed, case.inputs)
    target, output = _typed(case.outputs[0])
    integers = target if case.operator == "QuantizeLinear" else kind
    zero_point = rest[0][1] if rest else np.zeros(scale.shape, dtype_of(integers))
    axis = case.attribute("axis", 1)
    parameters = [_per_axis(each, x.ndim, axis) for each in (scale, zero_point)]
    types = (scale_type, integers)
    desc = declared()[OperatorType.QUANTIZE if integers is target else OperatorType.DEQUANTIZE](
        input_tensor=BufferTensorDesc(kind, x.shape),
        quantization_type=dml.QuantizationType.SCALE_ZERO_POINT,
        quantization_tensors=[
            BufferTensorDesc(each, array.shape) for each, array in zip(types, parameters, strict=True)
        ],
        output_tensor=BufferTensorDesc(target, output.shape),
    )
    return Run(desc, {"input_tensor": x, "quantization_tensors": parameters}, {"output_tensor": output})


def _is_half_byte(array: Any) -> bool:
    return np.asarray(array).dtype.name in ("int4", "uint4")


def _typed(array: Any) -> tuple[T, Array]:
    """The type and the elements of an array, of those of 4 bits one per item."""
    if not _is_half_byte(array):
        array = dml_array(array)
        return _TYPES[array.dtype], array
    data_type = T[np.asarray(array).dtype.name.upper()]
    return data_type, np.atleast_1d(np.asarray(array)).astype(dtype_of(data_type))


@maps("DynamicQuantizeLinear", to="DYNAMIC_QUANTIZE_LINEAR")
def _dynamic_quantize_linear(case: Case) -> Run:
    x, (y, scale, zero_point) = case.arrays[0], case.expected
    ones = (1,) * x.ndim
    return case.run(
        "DYNAMIC_QUANTIZE_LINEAR",
        {"input_tensor": x},
        {
            "output_tensor": y,
            "output_scale_tensor": scale.reshape(ones),
            "output_zero_point_tensor": zero_point.reshape(ones),
        },
    )


# --- products ---


@dataclass
class Windows:
    """The attributes of an ONNX convolution, with those that are missing derived."""

    spatial: int
    strides: list[int]
    dilations: list[int]
    start: list[int]
    end: list[int]

    def fields(self) -> dict[str, Any]:
        return {
            "strides": self.strides,
            "dilations": self.dilations,
            "start_padding": self.start,
            "end_padding": self.end,
        }


def _windows(case: Case, wide: Array, window: Array, narrow: Array) -> Windows:
    """``wide``: what the window moves over, forward the input; ``narrow`` has its positions."""
    spatial = window.ndim - 2
    found = Windows(
        spatial,
        list(case.attribute("strides", [1] * spatial)),
        list(case.attribute("dilations", [1] * spatial)),
        *np.reshape(case.attribute("pads", [0] * 2 * spatial), (2, spatial)).tolist(),
    )
    automatic = case.attribute("auto_pad", b"NOTSET")
    if automatic in (b"SAME_UPPER", b"SAME_LOWER", "SAME_UPPER", "SAME_LOWER"):
        for d in range(spatial):
            span = (window.shape[2 + d] - 1) * found.dilations[d] + 1
            total = max(0, (narrow.shape[2 + d] - 1) * found.strides[d] + span - wide.shape[2 + d])
            less, more = total // 2, total - total // 2
            upper = "UPPER" in str(automatic)
            found.start[d], found.end[d] = (less, more) if upper else (more, less)
    return found


def _convolution(case: Case, direction: dml.ConvolutionDirection) -> Run:
    x, w = case.arrays[:2]
    (output,) = case.expected
    forward = direction is dml.ConvolutionDirection.FORWARD
    windows = _windows(case, x if forward else output, w, output if forward else x)
    tensors = {"input_tensor": x, "filter_tensor": w}
    if case.input(2) is not None:
        tensors["bias_tensor"] = case.arrays[2].reshape(1, -1, *[1] * windows.spatial)
    if case.attribute("output_shape") is not None:
        raise NotExpressible("output_shape, from which the padding follows")
    fields = {
        "mode": dml.ConvolutionMode.CROSS_CORRELATION,
        "direction": direction,
        "output_padding": [0] * windows.spatial
        if forward
        else case.attribute("output_padding", [0] * windows.spatial),
        "group_count": case.attribute("group", 1),
        **windows.fields(),
    }
    return case.run("CONVOLUTION", tensors, {"output_tensor": output}, **fields)


@maps("Conv", to="CONVOLUTION")
def _conv(case: Case) -> Run:
    return _convolution(case, dml.ConvolutionDirection.FORWARD)


@maps("ConvTranspose", to="CONVOLUTION")
def _conv_transpose(case: Case) -> Run:
    return _convolution(case, dml.ConvolutionDirection.BACKWARD)


def _parameter(array: Array, rank: int, dimension: int) -> Array:
    """A scale or zero point with one element, or one along a dimension."""
    sizes = [1] * rank
    sizes[dimension] = array.size
    return array.reshape(sizes)


def _quantized(
    case: Case, names: Mapping[str, int], places: Mapping[str, int], rank: int
) -> dict[str, Array]:
    """Inputs by field name; ``places``: the dimension of those that are scales and zero points."""
    return {
        name: _parameter(case.arrays[i], rank, places[name]) if name in places else case.arrays[i]
        for name, i in names.items()
        if case.input(i) is not None
    }


@maps("ConvInteger", to="CONVOLUTION_INTEGER")
def _conv_integer(case: Case) -> Run:
    names = {
        "input_tensor": 0,
        "filter_tensor": 1,
        "input_zero_point_tensor": 2,
        "filter_zero_point_tensor": 3,
    }
    return _integers(case, "CONVOLUTION_INTEGER", names)


@maps("QLinearConv", to="QUANTIZED_LINEAR_CONVOLUTION")
def _q_linear_conv(case: Case) -> Run:
    names = {
        f"{tensor}{what}_tensor": 3 * i + k
        for i, tensor in enumerate(("input", "filter"))
        for k, what in enumerate(("", "_scale", "_zero_point"))
    }
    names |= {"output_scale_tensor": 6, "output_zero_point_tensor": 7, "bias_tensor": 8}
    return _integers(case, "QUANTIZED_LINEAR_CONVOLUTION", names)


def _integers(case: Case, to: str, names: Mapping[str, int]) -> Run:
    x, w = (case.arrays[names[name]] for name in ("input_tensor", "filter_tensor"))
    (output,) = case.expected
    places = dict.fromkeys((name for name in names if name not in ("input_tensor", "filter_tensor")), 1)
    fields = {"group_count": case.attribute("group", 1), **_windows(case, x, w, output).fields()}
    return case.run(to, _quantized(case, names, places, x.ndim), {"output_tensor": output}, **fields)


@maps("MatMulInteger", to="MATRIX_MULTIPLY_INTEGER")
def _mat_mul_integer(case: Case) -> Run:
    names = {"a_tensor": 0, "b_tensor": 1, "a_zero_point_tensor": 2, "b_zero_point_tensor": 3}
    return _product_of_integers(case, "MATRIX_MULTIPLY_INTEGER", names)


@maps("QLinearMatMul", to="QUANTIZED_LINEAR_MATRIX_MULTIPLY")
def _q_linear_mat_mul(case: Case) -> Run:
    names = {
        f"{tensor}{what}_tensor": 3 * i + k
        for i, tensor in enumerate("ab")
        for k, what in enumerate(("", "_scale", "_zero_point"))
    }
    names |= {"output_scale_tensor": 6, "output_zero_point_tensor": 7}
    return _product_of_integers(case, "QUANTIZED_LINEAR_MATRIX_MULTIPLY", names)


def _product_of_integers(case: Case, to: str, names: Mapping[str, int]) -> Run:
    (output,) = case.expected
    if case.arrays[0].ndim < 2:
        raise NotExpressible("vectors")
    if any(case.arrays[i].dtype == np.float16 for i in range(len(case.arrays))):
        raise NotExpressible("scales of FLOAT16")
    places = {
        name: -1 if name.startswith("b_") else -2 for name in names if name not in ("a_tensor", "b_tensor")
    }
    return case.run(to, _quantized(case, names, places, output.ndim), {"output_tensor": output})


@maps("Gemm", to="GEMM")
def _gemm(case: Case) -> Run:
    a, b = case.arrays[:2]
    (output,) = case.expected
    transform = (dml.MatrixTransform.NONE, dml.MatrixTransform.TRANSPOSE)
    fields: dict[str, Any] = {
        "trans_a": transform[case.attribute("transA", 0)],
        "trans_b": transform[case.attribute("transB", 0)],
        "alpha": case.attribute("alpha", 1.0),
        "beta": case.attribute("beta", 1.0),
    }
    tensors = {"a_tensor": a, "b_tensor": b}
    if len(case.inputs) > 2:
        tensors["c_tensor"] = np.broadcast_to(case.arrays[2], output.shape)
        fields["c_tensor"] = desc_of(case.arrays[2], output.shape)
    return case.run("GEMM", tensors, {"output_tensor": output}, **fields)


# --- resampling ---

# The rounding direction, and what is added to InputPixelOffsets.
_NEAREST_MODES = {
    b"round_prefer_floor": (dml.AxisDirection.INCREASING, 0.5),
    b"round_prefer_ceil": (dml.AxisDirection.DECREASING, -0.5),
    b"floor": (dml.AxisDirection.DECREASING, 0.0),
    b"ceil": (dml.AxisDirection.INCREASING, 0.0),
}


@maps("Resize", to="RESAMPLE3")
def _resize(case: Case) -> Run:
    x, (output,) = dml_array(case.inputs[0]), case.expected  # roi is empty
    mode = case.attribute("mode", b"nearest")
    if mode == b"cubic":
        raise NotExpressible("cubic interpolation")
    nearest = mode == b"nearest"
    rounding, shift = _NEAREST_MODES[case.attribute("nearest_mode", b"round_prefer_floor")]
    scales = _resize_scales(case, x.shape, output.shape)
    coordinates = case.attribute("coordinate_transformation_mode", b"half_pixel")
    inputs, outputs = [0.5] * x.ndim, [-0.5] * x.ndim
    if coordinates in (b"asymmetric", b"align_corners"):
        inputs, outputs = [0.0] * x.ndim, [0.0] * x.ndim
    if coordinates == b"align_corners":
        lengths = [size * scale - new for size, scale, new in zip(x.shape, scales, output.shape, strict=True)]
        if max(map(abs, lengths)) > 1e-3:
            raise NotExpressible("an output of fractional length")
        ends = zip(x.shape, output.shape, strict=True)
        scales = [(new - 1) / (size - 1) if min(new, size) > 1 else 1.0 for size, new in ends]
    elif coordinates == b"half_pixel_symmetric":
        lengths = zip(x.shape, scales, output.shape, strict=True)
        inputs = [0.5 - size / 2 * (1 - new / (scale * size)) for size, scale, new in lengths]
    elif coordinates == b"pytorch_half_pixel":
        inputs, outputs = ([0.0 if new == 1 else each for new in output.shape] for each in (0.5, -0.5))
    elif coordinates == b"tf_crop_and_resize":
        raise NotExpressible("values outside the input that are not those of its edge")
    return case.run(
        "RESAMPLE3",
        {"input_tensor": x},
        {"output_tensor": output},
        interpolation_mode=dml.InterpolationMode.NEAREST_NEIGHBOR
        if nearest
        else dml.InterpolationMode.LINEAR,
        rounding_direction=rounding,
        scales=scales,
        input_pixel_offsets=[each + shift * nearest for each in inputs],
        output_pixel_offsets=outputs,
        antialiased=bool(case.attribute("antialias", 0)),
    )


def _resize_scales(case: Case, sizes: Sequence[int], new: Sequence[int]) -> list[float]:
    """The scale of each axis: given, or that of the sizes that are asked for."""
    axes = case.attribute("axes", list(range(len(sizes))))
    scales = [1.0] * len(sizes)
    given, asked = case.input(2), case.input(3)
    policy = case.attribute("keep_aspect_ratio_policy", b"stretch")
    ratios = (
        given if given is not None else [int(n) / sizes[axis] for axis, n in zip(axes, asked, strict=True)]
    )
    if policy != b"stretch":
        ratios = [min(ratios) if policy == b"not_larger" else max(ratios)] * len(ratios)
    for axis, ratio in zip(axes, ratios, strict=True):
        scales[axis] = float(ratio)
    return scales


# --- poolings ---


@maps("MaxPool", "LpPool", "AveragePool", to="MAX_POOLING2 LP_POOLING1 AVERAGE_POOLING1")
def _pool(case: Case) -> Run:
    x, output = case.arrays[0], case.expected[0]
    spatial = x.ndim - 2
    if spatial not in (2, 3):
        raise NotExpressible(f"{spatial} spatial dimensions")
    if case.attribute("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise NotExpressible("padding that follows from the sizes")
    if len(case.expected) > 1 and case.attribute("storage_order", 0):
        raise NotExpressible("positions in column-major order")
    pads = list(case.attribute("pads", [0] * 2 * spatial))
    fields = {
        "window_size": list(case.attribute("kernel_shape")),
        "strides": list(case.attribute("strides", [1] * spatial)),
        "dilations": list(case.attribute("dilations", [1] * spatial)),
        "start_padding": pads[:spatial],
        "end_padding": pads[spatial:],
    }
    if case.operator == "LpPool":
        return _unary(case, "LP_POOLING1", p=case.attribute("p", 2), **fields)
    if case.operator == "AveragePool":
        include = bool(case.attribute("count_include_pad", 0))
        if include and case.attribute("ceil_mode", 0):
            raise NotExpressible("windows that reach past the padding")
        return _unary(case, "AVERAGE_POOLING1", include_padding=include, **fields)
    outputs = {"output_tensor": output}
    if len(case.expected) > 1:
        outputs["output_indices_tensor"] = case.expected[1].astype(np.uint64)
    else:
        fields["output_indices_tensor"] = None
    return case.run("MAX_POOLING2", {"input_tensor": x}, outputs, **fields)


@maps("GlobalAveragePool", "GlobalMaxPool", to="AVERAGE_POOLING1 MAX_POOLING2")
def _global_pool(case: Case) -> Run:
    sizes = list(case.arrays[0].shape[2:])
    ones, zeros = [1] * len(sizes), [0] * len(sizes)
    fields = {
        "window_size": sizes,
        "strides": ones,
        "dilations": ones,
        "start_padding": zeros,
        "end_padding": zeros,
    }
    if case.operator == "GlobalAveragePool":
        return _unary(case, "AVERAGE_POOLING1", include_padding=False, **fields)
    return _unary(case, "MAX_POOLING2", output_indices_tensor=None, **fields)


@maps("MaxUnpool", to="MAX_UNPOOLING")
def _unpool(case: Case) -> Run:
    """ONNX counts indices in the output that kernel and strides make, which an explicit shape may enlarge."""
    x, indices = case.arrays[:2]
    output = case.expected[0]
    window, spatial = case.attribute("kernel_shape"), x.ndim - 2
    strides = case.attribute("strides", [1] * spatial)
    pads = case.attribute("pads", [0] * 2 * spatial)
    sizes = [
        (size - 1) * strides[d] - pads[d] - pads[d + spatial] + window[d]
        for d, size in enumerate(x.shape[2:])
    ]
    if list(output.shape[2:]) != sizes:
        raise NotExpressible("indices that count the elements of a smaller output")
    tensors = {"input_tensor": x, "indices_tensor": indices.astype(np.uint64)}
    return case.run("MAX_UNPOOLING", tensors, {"output_tensor": output})


# --- regions of interest ---


@maps("RoiAlign", to="ROI_ALIGN1")
def _roi_align(case: Case) -> Run:
    x, regions, indices = case.arrays
    if case.attribute("mode", b"avg") == b"max":
        raise NotExpressible("the maximum of weighted elements, not of samples")
    ratio, scale = case.attribute("sampling_ratio", 0), case.attribute("spatial_scale", 1.0)
    centred = case.attribute("coordinate_transformation_mode", b"half_pixel") == b"half_pixel"
    size = regions[:, 2:] - regions[:, :2]
    if not centred and np.any(size * scale < 1):
        raise NotExpressible("regions enlarged to one element")
    return case.run(
        "ROI_ALIGN1",
        {"input_tensor": x, "roi_tensor": regions, "batch_indices_tensor": indices.astype(np.uint32)},
        {"output_tensor": case.expected[0]},
        reduction_function=dml.ReduceFunction.AVERAGE,
        interpolation_mode=dml.InterpolationMode.LINEAR,
        spatial_scale_x=scale,
        spatial_scale_y=scale,
        input_pixel_offset=0.5 if centred else 0.0,
        output_pixel_offset=-0.5,
        out_of_bounds_input_value=0.0,
        minimum_samples_per_output=ratio or 1,
        maximum_samples_per_output=ratio or 2**32 - 1,
        align_regions_to_corners=False,
    )


@maps("GlobalAveragePool", "GlobalMaxPool", to="AVERAGE_POOLING MAX_POOLING")
def _global_pool(case: Case) -> Run:
    """One window that covers the input."""
    spatial = list(case.arrays[0].shape[2:])
    none, ones = [0] * len(spatial), [1] * len(spatial)
    fields: dict[str, Any] = {"strides": ones, "window_size": spatial, "start_padding": none}
    if case.operator == "GlobalMaxPool":
        return _unary(case, "MAX_POOLING", end_padding=none, **fields)
    return _unary(case, "AVERAGE_POOLING", end_padding=none, include_padding=False, **fields)


@maps("MatMul", to="GEMM")
def _mat_mul(case: Case) -> Run:
    """Vectors have a dimension of 1 more."""
    a, b = case.arrays
    a = a.reshape(1, -1) if a.ndim == 1 else a
    b = b.reshape(-1, 1) if b.ndim == 1 else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    tensors = {
        name: np.broadcast_to(each, (*batch, *each.shape[-2:]))
        for name, each in (("a_tensor", a), ("b_tensor", b))
    }
    (output,) = case.expected
    return case.run(
        "GEMM",
        tensors,
        {"output_tensor": output.reshape(*batch, a.shape[-2], b.shape[-1])},
        a_tensor=desc_of(a, tensors["a_tensor"].shape),
        b_tensor=desc_of(b, tensors["b_tensor"].shape),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.NONE,
        alpha=1.0,
        beta=0.0,
    )


@maps("NonZero", to="NONZERO_COORDINATES")
def _non_zero(case: Case) -> Run:
    """A row for each element that is not zero, in ONNX a column."""
    x = case.arrays[0]
    coordinates = case.expected[0].T.astype(np.uint32)
    desc = dml.NonzeroCoordinatesOperatorDesc(
        input_tensor=desc_of(x),
        output_count_tensor=BufferTensorDesc(T.UINT32, [1]),
        output_coordinates_tensor=BufferTensorDesc(T.UINT32, [x.size, x.ndim]),
    )
    outputs = {"output_count_tensor": np.uint32([len(coordinates)]), "output_coordinates_tensor": coordinates}
    return Run(desc, {"input_tensor": x}, outputs)


@maps("Upsample", to="UPSAMPLE_2D")
def _upsample(case: Case) -> Run:
    height, width = (int(each) for each in case.inputs[1][2:])
    return _unary(
        case,
        "UPSAMPLE_2D",
        scale_size=dml.Size2D(width, height),
        interpolation_mode=dml.InterpolationMode.NEAREST_NEIGHBOR,
    )


@maps("Adam", to="ADAM_OPTIMIZER")
def _adam(case: Case) -> Run:
    """Step 0 of ONNX corrects nothing, as do late steps; regularization is added to the gradient."""
    rate, step, *tensors = case.arrays
    if len(tensors) != 4 or case.attribute("norm_coefficient_post", 0):
        raise NotExpressible("several parameters, regularization at the end")
    values, (parameters, gradient, first, second) = _attributes(case), tensors
    inputs = {
        "input_parameters_tensor": parameters,
        "input_first_moment_tensor": first,
        "input_second_moment_tensor": second,
        "gradient_tensor": gradient + np.float32(values["norm_coefficient"]) * parameters,
        "training_step_tensor": np.where(step == 0, 10**6, step)
        .astype(np.uint32)
        .reshape([1] * gradient.ndim),
    }
    outputs = ("parameters", "first_moment", "second_moment")
    return case.run(
        "ADAM_OPTIMIZER",
        inputs,
        {f"output_{name}_tensor": each for name, each in zip(outputs, case.expected, strict=True)},
        learning_rate=float(rate.ravel()[0]),
        beta1=float(values["alpha"]),
        beta2=float(values["beta"]),
        epsilon=float(values["epsilon"]),
    )


# --- recurrence ---


_DIRECTIONS = {
    b"forward": dml.RecurrentNetworkDirection.FORWARD,
    b"reverse": dml.RecurrentNetworkDirection.BACKWARD,
    b"bidirectional": dml.RecurrentNetworkDirection.BIDIRECTIONAL,
}


@maps("RNN", "LSTM", "GRU", to="RNN LSTM GRU")
def _recurrent(case: Case) -> Run:
    """The gates have the same order; the defaults of the activations are the cases'."""
    if case.attribute("activations") is not None or case.attribute("clip") is not None:
        raise NotExpressible("other activations than the usual ones")
    batch_first = bool(case.attribute("layout", 0))
    direction = _DIRECTIONS[case.attribute("direction", b"forward")]
    names = ["input", "weight", "recurrence", "bias", "sequence_lengths", "hidden_init", "cell_mem_init"]
    tensors = {}
    for place, name in enumerate([*names, "peephole"]):
        if case.input(place) is not None:
            array = dml_array(case.inputs[place])
            if batch_first and name in ("input", "hidden_init", "cell_mem_init"):
                array = array.swapaxes(0, 1)
            array = array.astype(np.uint32) if name == "sequence_lengths" else array
            tensors[f"{name}_tensor"] = np.ascontiguousarray(same_rank(array, 4))
    outputs = {}
    for place, array in zip(case.places, case.expected, strict=True):
        if batch_first:  # {B, T, D, H} and {B, D, H}
            array = np.moveaxis(array, 0, array.ndim - 2)
        name = ("output_sequence_tensor", "output_single_tensor", "output_cell_single_tensor")[place]
        outputs[name] = np.ascontiguousarray(same_rank(array, 4))
    sigmoid, tanh = dml.ActivationSigmoidOperatorDesc(), dml.ActivationTanhOperatorDesc()
    usual = {"RNN": [tanh], "LSTM": [sigmoid, tanh, tanh], "GRU": [sigmoid, tanh]}[case.operator]
    fields: dict[str, Any] = {"direction": direction}
    if case.operator == "LSTM":
        coupled = bool(case.attribute("input_forget", 0))
        fields |= {"clip_threshold": 0.0, "use_clip_threshold": False, "couple_input_forget": coupled}
    elif case.operator == "GRU":
        fields["linear_before_reset"] = bool(case.attribute("linear_before_reset", 0))
    both = direction is dml.RecurrentNetworkDirection.BIDIRECTIONAL
    return case.run(case.operator, tensors, outputs, activation_descs=usual * (1 + both), **fields)


# --- attention ---


@maps("Attention", to="MULTIHEAD_ATTENTION1")
def _attention(case: Case) -> Run:
    """Masks, and which keys a query sees, are a RelativePositionBias of 0 and -infinity."""
    if case.attribute("softcap", 0) or 3 in case.places or case.input(6) is not None:
        raise NotExpressible("softcap, the scores as an output, or lengths of keys")
    heads = [case.attribute("q_num_heads"), case.attribute("kv_num_heads"), case.attribute("kv_num_heads")]
    inputs = {}
    for place, name in enumerate(("query_tensor", "key_tensor", "value_tensor")):
        array = case.arrays[place]
        if array.ndim == 4:
            heads[place] = array.shape[1]
        inputs[name] = _heads_last(array)
    for place, name in ((4, "past_key_tensor"), (5, "past_value_tensor")):
        if case.input(place) is not None:
            inputs[name] = dml_array(case.inputs[place])
    past = inputs["past_key_tensor"].shape[2] if "past_key_tensor" in inputs else 0
    query, key = inputs["query_tensor"], inputs["key_tensor"]
    bias = np.zeros((query.shape[0], heads[0], query.shape[1], past + key.shape[1]), np.float32)
    if case.input(3) is not None:
        mask = np.asarray(case.inputs[3])
        mask = np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask
        missing = bias.shape[-1] - mask.shape[-1]
        bias = bias + np.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-np.inf)
    right = 0 if case.attribute("is_causal", 0) else case.attribute("right_window_size", -1)
    left = case.attribute("left_window_size", -1)
    distance = np.arange(bias.shape[3]) - past - np.arange(bias.shape[2])[:, None]
    hidden = ((right >= 0) & (distance > right)) | ((left >= 0) & (distance < -left))
    bias = np.where(hidden, -np.inf, bias)
    if np.any(np.all(bias == -np.inf, axis=-1)):
        raise NotExpressible("a query that sees no key, which is 0 in ONNX")
    if np.any(bias):
        inputs["relative_position_bias_tensor"] = bias.astype(query.dtype)
    names = ("output_tensor", "output_present_key_tensor", "output_present_value_tensor")
    outputs = dict(zip((names[place] for place in case.places), case.expected, strict=True))
    outputs["output_tensor"] = _heads_last(outputs["output_tensor"])
    return case.run(
        "MULTIHEAD_ATTENTION1",
        inputs,
        outputs,
        scale=float(case.attribute("scale", 1 / np.sqrt(query.shape[2] // heads[0]))),
        mask_filter_value=0.0,
        query_head_count=heads[0],
        key_value_head_count=heads[1],
        mask_type=dml.MultiheadAttentionMaskType.NONE,
    )


def _heads_last(array: Array) -> Array:
    """``{B, H, S, E}`` as ``{B, S, H*E}``."""
    if array.ndim == 3:
        return array
    return np.ascontiguousarray(array.swapaxes(1, 2)).reshape(array.shape[0], array.shape[2], -1)
