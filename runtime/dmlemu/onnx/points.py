"""Segments: a model's nodes as graphs of the device, cut where the host is needed.

A :class:`Point` is a place in the model: the nodes that are left, and what is known for certain.  For the
shapes of the values that have been computed so far it builds a :class:`Segment`, as far as the device goes:
to the end, to a node that runs on the host, or to one whose lowering depends on the elements of a tensor.
At the latter the next point begins, where those elements are known.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from .. import dml
from ..diagnostics.report import Error, HResult
from ..graph import CompiledGraph, Expression, Graph, Policy, interleaved_channel
from .calls import LOWERINGS, Call, Made, NeedsValue, NotOnDevice
from .hosting import Host
from .loading import ModelError, sentence
from .nodes import Work, branch_work, function_work, reads, schema_of
from .shapes import computed
from .tensors import (
    DATA_TYPES,
    MOST_BYTES,
    Array,
    Tensor,
    broadcast_shapes,
    dense_array,
    device_array,
    element_type_of,
    fitted,
    host_array,
    sizes_of,
)
from .unrolling import loop_work, scan_work

__all__ = ["Builder", "Placed", "Point", "Program", "Progress", "Segment", "no_progress"]

_RANDOM = {
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Bernoulli",
    "Multinomial",
}
# Where the reference implementation differs from the specification: known values do not go through it if
# the device can compute them.
_NOT_FOLDED = {
    "LSTM",
    "GRU",
    "RNN",
    "LRN",
    "RoiAlign",
    "AveragePool",
    "BatchNormalization",
    "ConvTranspose",
    "GlobalMaxPool",
    "LpPool",
    "MaxPool",
    "QLinearConv",
    "QLinearMatMul",
    "QuantizeLinear",
    "LpNormalization",
    "Softmax",
    "LogSoftmax",
    "Hardmax",
}

# Their outputs may be of any size, however small the inputs are.
_GROWS = {
    "ConstantOfShape",
    "Expand",
    "EyeLike",
    "OneHot",
    "Pad",
    "RandomNormal",
    "RandomUniform",
    "Range",
    "Resize",
    "Tile",
    "Upsample",
}
Progress = Callable[[str, int, int], None]
"""Is told what is done now, ``compile`` or ``run``, how many nodes are done, and of how many."""

_MOST_NODES = 20_000  # that a segment makes of functions, branches and loops, and whose shapes are kept
# What reading a model's attributes and values raises where they are wrong.
_WRONG = (ValueError, TypeError, LookupError, ArithmeticError, MemoryError)
_LOST = (HResult.DXGI_ERROR_DEVICE_REMOVED, HResult.E_OUTOFMEMORY)  # not the operator's fault
_KEPT_SEGMENTS = 64  # of a point, those that ran last


def no_progress(what: str, done: int, total: int) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True)
class Placed:
    """Where a node runs; ``reason``: why it is on the host."""

    op: str
    name: str
    where: str  # "device", "folded" or "host"
    reason: str = ""
    parts: tuple[str, ...] = ()  # the operators in whose place it stands
    differences: tuple[str, ...] = ()  # what DirectML computes otherwise than implementations of ONNX


@dataclass
class Program:
    """What all segments of a session share."""

    device: dml.Device
    outputs: Sequence[str]
    functions: Sequence[onnx.FunctionProto]
    host: Host
    policy: Policy | None  # None: see Builder._policy
    usual: Policy  # of what is then not an image of FLOAT32
    flags: dml.ExecutionFlags
    refuses_host: bool = False
    keeps: bool = False  # all tensors, not only the outputs
    numerics: str = "directml"
    inference: Inference = field(default_factory=lambda: Inference())
    progress: Progress = no_progress
    nodes: int = 0  # of the model

    def done(self, left: Collection[Work]) -> int:
        """The nodes of the model that are not left; functions, branches and loops become many."""
        return max(0, self.nodes - len(left))


@dataclass
class Segment:
    """Nodes that run in one dispatch, and the one that follows on the host."""

    compiled: CompiledGraph | None
    feeds: Sequence[str]
    outputs: Sequence[tuple[str, int, tuple[int, ...]]]  # name, element type, shape
    known: Mapping[str, Any]
    aliases: Mapping[str, str]
    required: Mapping[str, Array]  # values for which it was built
    host: Work | None
    next: Point | None
    placed: list[Placed] = field(default_factory=list)

    def fits(self, values: Mapping[str, Any]) -> bool:
        return all(same(array, values[name]) for name, array in self.required.items())

    def run(self, values: dict[str, Any], host: Host) -> None:
        """Adds what it computes to the values."""
        values.update(self.known)
        for name, source in self.aliases.items():
            values[name] = values[source]
        if self.compiled is not None:
            given = {
                name: device_array(values[name]).reshape(sizes_of(values[name].shape)) for name in self.feeds
            }
            for (name, element_type, shape), array in zip(
                self.outputs, self.compiled.run(given), strict=True
            ):
                values[name] = host_array(array, element_type).reshape(shape)
        if self.host is not None:
            values.update(host.run(self.host, values))


def same(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


class Point:
    """A place in the model."""

    def __init__(self, program: Program, work: Sequence[Work], known: Mapping[str, Any]) -> None:
        self.program = program
        self.work = tuple(work)
        needed = set(program.outputs).union(*(each.needs for each in self.work))
        self.known = {name: value for name, value in known.items() if name in needed}
        self.needs = needed - set(self.known)
        self._segments: dict[Any, list[Segment]] = {}

    def segment(self, values: Mapping[str, Any]) -> Segment:
        """The segment for the shapes, and where it depends on them the elements, of these values."""
        given = {name: values[name] for name in self.needs if name in values}
        key = tuple(sorted((name, *_shape_of(value)) for name, value in given.items()))
        built = self._segments.get(key, [])
        for number, each in enumerate(built):
            if each.fits(values):
                built.append(built.pop(number))
                self._segments[key] = self._segments.pop(key)
                return each
        required: dict[str, Array] = {}
        while True:
            try:
                made = Builder(self, given, required).build()
            except NeedsValue as needed:
                required[needed.name] = np.array(given[needed.name])
                continue
            self._keep(key, made)
            return made

    def _keep(self, key: Any, made: Segment) -> None:
        """For the next runs; where very many shapes and values were given, forgets one that ran long ago."""
        if len(self.segments) >= _KEPT_SEGMENTS:
            oldest = next(iter(self._segments))
            del self._segments[oldest][:1]  # an interruption may have left none
            if not self._segments[oldest]:
                del self._segments[oldest]
        self._segments.setdefault(key, []).append(made)

    def close(self) -> None:
        """Releases the buffers of its segments, and of those behind them."""
        points = [self]
        while points:
            for segment in points.pop().segments:
                if segment.compiled is not None:
                    segment.compiled.close()
                if segment.next is not None:
                    points.append(segment.next)

    @property
    def segments(self) -> list[Segment]:
        return [each for built in self._segments.values() for each in built]


def _shape_of(value: Any) -> tuple[str, tuple[int, ...]]:
    if isinstance(value, np.ndarray):
        return value.dtype.str if value.dtype.kind != "V" else value.dtype.name, value.shape
    return type(value).__name__, ()


class _Given(Tensor):
    """A value that is an input of the segment."""

    def on_device(self, graph: Graph) -> Expression:
        if self.expression is None:
            assert self.shape is not None
            data_type = DATA_TYPES[self.element_type]
            self.expression = graph.input(sizes_of(self.shape), data_type, name=self.name)
        return self.expression


class Builder:
    """Builds a segment."""

    def __init__(self, point: Point, given: Mapping[str, Any], required: Mapping[str, Array]) -> None:
        self.point = point
        self.program = point.program
        self.graph = Graph(self.program.device)
        self.given = given
        self.required = dict(required)
        self.tensors: dict[str, Tensor] = {}
        for name, value in point.known.items():
            self.tensors[name] = _tensor(Tensor, name, value, known=True)
        for name, value in given.items():
            self.tensors[name] = _tensor(_Given, name, value, known=name in required)
        self.work = deque(point.work)
        self._expanded = 0
        self.placed: list[Placed] = []

    def build(self) -> Segment:
        host: Work | None = None
        while self.work:
            self.program.progress("compile", self.program.done(self.work), self.program.nodes)
            each = self.work.popleft()
            try:
                self._take(each)
            except NeedsValue as needed:
                if isinstance(self.tensors[needed.name], _Given):
                    raise
                self.work.appendleft(each)  # the next segment begins with it: then the value is known
                break
            except NotOnDevice as reason:
                if self.program.refuses_host:
                    raise ModelError(f"{each.title} cannot run on the device: {reason}.") from None
                self.program.host.check(each, str(reason))
                self._check_size(each)
                self._place(each, "host", str(reason))
                host = each
                break
            except ModelError:
                raise
            except (*_WRONG, RecursionError) as error:
                raise ModelError(f"{each.title} is not what it should be: {sentence(error)}") from error
        return self._finish(host)

    # --- one node ---

    def _take(self, work: Work) -> None:
        node = work.node
        if node.op_type == "If" and not work.domain:
            return self._branch(work)
        inputs = [self.tensors[name] if name else None for name in node.input]
        if node.op_type in ("Scan", "Loop") and not work.domain and self._unroll(work, inputs):
            return None
        if node.op_type == "Identity" and not work.domain and inputs[0] is not None:
            self._alias(node.output[0], inputs[0])
            return None
        if self._folds(work):
            return self._fold(work)
        lowering = LOWERINGS.get((work.domain, node.op_type))
        reason = f"no DirectML operators are known for {node.op_type}"
        if lowering is not None:
            try:
                self.graph.policy = self._policy(work, inputs)
                call = Call(self.graph, node, work.opset, inputs, self.program.numerics)
                self._made(work, inputs, lowering(call))
                self._place(work, "device", differences=call.differences)
                return None
            except (NotOnDevice, Error, *_WRONG) as refused:  # the latter: the host says what is wrong
                if isinstance(refused, Error) and refused.hresult in _LOST:
                    raise
                reason = sentence(refused).removesuffix(".")
        if work.parts:
            self._put([part for part in work.parts if not self.tensors.keys() >= set(part.node.output)])
            return None
        self._ask_beside_empty(inputs)
        if not all(each is None or each.can_be_on_device for each in inputs):
            raise NotOnDevice(reason)  # its parts could not run there either
        try:
            body = function_work(work, self.program.functions, [_type(each) for each in inputs])
        except NotOnDevice:
            raise NotOnDevice(reason) from None
        self._put(body)
        return None

    def _policy(self, work: Work, inputs: Sequence[Tensor | None]) -> Policy:
        """The layout of a node's outputs: the session's, or channels last for images of FLOAT32 that
        convolutions compute, and for what functions and poolings make of them."""
        if self.program.policy is not None:
            return self.program.policy
        images = [each for each in inputs if each is not None and len(each.shape or ()) == 4]
        if work.domain or not images or images[0].element_type != onnx.TensorProto.FLOAT:
            return self.program.usual
        kind, groups = work.node.op_type, _groups(work.node)
        if kind == "Conv" and groups == 1:
            return interleaved_channel
        is_depthwise = kind == "Conv" and groups == (images[0].shape or ())[1]
        keeps = kind in _OF_IMAGES or is_depthwise
        return interleaved_channel if keeps and any(map(_has_channels_last, images)) else self.program.usual

    def _put(self, nodes: Sequence[Work]) -> None:
        """Puts nodes in the place of the one that is taken."""
        self._expanded += len(nodes)
        if self._expanded > _MOST_NODES:
            raise ModelError(f"Functions, branches and loops become more than {_MOST_NODES} nodes.")
        self.work.extendleft(reversed(nodes))

    def _ask_beside_empty(self, inputs: Sequence[Tensor | None]) -> None:
        """An operator that reads an empty tensor is computed when compiled: asks for its other values."""
        if any(each is not None and each.shape is not None and 0 in each.shape for each in inputs):
            for each in inputs:
                if each is not None and not each.is_known:
                    raise NeedsValue(each.name)

    def _branch(self, work: Work) -> None:
        condition = self.tensors[work.node.input[0]]
        if condition.array is None:
            raise NeedsValue(condition.name)
        nodes, initialisers = branch_work(work, bool(np.ravel(condition.array)[0]))
        for each in initialisers:
            self.tensors[each.name] = Tensor.known(each.name, onnx.numpy_helper.to_array(each))
        self._put(nodes)

    def _unroll(self, work: Work, inputs: Sequence[Tensor | None]) -> bool:
        """Puts the nodes of all turns in the place of a loop; False: all is known, and it is folded."""
        if work.node.op_type == "Scan":
            if self._folds(work):
                return False
            nodes, constants = scan_work(work, [None if each is None else each.shape for each in inputs])
        else:
            turns = self._turns(*inputs[:2])
            if turns != 0 and self._folds(work):
                return False
            if turns is None:
                raise NotOnDevice("Loop runs until its condition is false")
            nodes, constants = loop_work(work, turns)
        for each in constants:
            self.tensors[each.name] = Tensor.known(each.name, onnx.numpy_helper.to_array(each))
        self._put(nodes)
        return True

    def _turns(self, count: Tensor | None, condition: Tensor | None) -> int | None:
        """How often a Loop runs at most; None: until its condition is false."""
        for each in (condition, count):
            if each is not None and each.array is None:
                raise NeedsValue(each.name)
        if condition is not None and not np.ravel(condition.array)[0]:  # type: ignore[arg-type]
            return 0
        return None if count is None else max(0, int(np.ravel(count.array)[0]))  # type: ignore[arg-type]

    def _folds(self, work: Work) -> bool:
        """Whether a node's outputs are known from what is known now."""
        node = work.node
        if work.domain or node.op_type in _RANDOM or (node.op_type == "Dropout" and len(node.input) > 2):
            return False
        if node.op_type == "Constant":
            return True
        if node.op_type in ("Shape", "Size"):
            return self.tensors[node.input[0]].is_tensor
        if node.op_type in _NOT_FOLDED and (work.domain, node.op_type) in LOWERINGS:
            return False
        if not all(self.tensors[name].is_known for name in node.input if name):
            return False
        known = all(self.tensors[name].is_known for name in reads(node))  # those of subgraphs, too
        return known and schema_of(work) is not None  # ONNX Runtime has operators without a domain

    def _check_size(self, work: Work) -> None:
        """Before the host makes it: ModelError if an output is larger than any tensor of the device."""
        inputs = [self.tensors[name] if name else None for name in work.node.input]
        given = sum(math.prod(each.shape) for each in inputs if each is not None and each.shape is not None)
        if work.node.op_type not in _GROWS and given < 1 << 16:  # their product is small enough
            return
        for name, (element_type, shape) in _inferred(work, inputs).items():
            if element_type in DATA_TYPES and shape is not None:
                size = math.prod(shape) * onnx.helper.tensor_dtype_to_np_dtype(element_type).itemsize
                if size > MOST_BYTES:
                    raise ModelError(
                        f"{work.title}: its output {name!r} of shape {list(shape)} has {size} bytes, more "
                        f"than the {MOST_BYTES} of the largest tensor."
                    )

    def _fold(self, work: Work) -> None:
        value = _constant(work)
        values = {}
        if value is None:
            self._check_size(work)
            for name in reads(work.node):
                tensor = self.tensors[name]
                values[name] = tensor.array if tensor.is_known else np.empty(tensor.shape or (), np.bool_)
            value = computed(work, [values.get(name) for name in work.node.input])
        found = self.program.host.run(work, values) if value is None else {work.node.output[0]: value}
        for name, value in found.items():
            self.tensors[name] = _tensor(Tensor, name, value, known=True)
        self._place(work, "folded")

    def _made(self, work: Work, inputs: Sequence[Tensor | None], made: Any) -> None:
        results = made if isinstance(made, list | tuple) and not isinstance(made, Made) else [made]
        types = _element_wise(work, inputs) or self.program.inference(work, inputs)
        for name, result in zip(work.node.output, results, strict=False):
            if not name or result is None:
                continue
            if isinstance(result, np.ndarray):
                self.tensors[name] = Tensor.known(name, result)
                continue
            made_of = result if isinstance(result, Made) else Made(result)
            element_type, shape = types.get(name, (0, None))
            shape = made_of.shape if made_of.shape is not None else shape
            shape = made_of.expression.sizes if shape is None else shape
            if math.prod(shape) != math.prod(made_of.expression.sizes):
                raise ValueError(
                    f"it makes sizes {list(made_of.expression.sizes)}; its inputs say {list(shape)}"
                )
            if not element_type:
                element_type = element_type_of(np.empty(0, made_of.expression.dtype))
            fits = fitted(made_of.expression, shape)
            self.tensors[name] = Tensor(name, element_type, tuple(shape), expression=fits)

    def _alias(self, name: str, source: Tensor) -> None:
        if isinstance(source, _Given) and source.array is None:
            self.tensors[name] = _Alias(name, source)
            return
        self.tensors[name] = Tensor(
            name, source.element_type, source.shape, array=source.array, expression=source.expression
        )

    def _place(self, work: Work, where: str, reason: str = "", differences: Sequence[str] = ()) -> None:
        parts = tuple(part.node.op_type for part in work.parts)
        made = Placed(work.node.op_type, work.name, where, reason, parts, tuple(differences))
        self.placed.append(made)

    # --- the end ---

    def _finish(self, host: Work | None) -> Segment:
        rest = list(self.work)
        needed = set(self.program.outputs).union(*(each.needs for each in rest))
        read_by_host = set() if host is None else set(reads(host.node))
        wanted = [
            each
            for name, each in self.tensors.items()
            if name not in self.given and (name in needed | read_by_host or self.program.keeps)
        ]
        known = {each.name: each.array for each in wanted if each.is_known}
        aliases = {
            each.name: each.source.name for each in wanted if isinstance(each, _Alias) and not each.is_known
        }
        made = [
            each
            for each in wanted
            if not each.is_known and each.expression is not None and each.name not in aliases
        ]
        compiled = None
        feeds: list[str] = []
        if made:
            expressions = [each.on_device(self.graph) for each in made]
            compiled = self.graph.compile(expressions, flags=self.program.flags)
            feeds = [each.name for each in compiled.inputs]
        following = None
        if rest or host is not None:
            following = Point(self.program, rest, {**self.point.known, **known})
        return Segment(
            compiled,
            feeds,
            [(each.name, each.element_type, each.shape or ()) for each in made],
            known,
            aliases,
            self.required,
            host,
            following,
            self.placed,
        )


def _constant(work: Work) -> Array | None:
    """The array of a Constant, without making an evaluator: a model may have hundreds."""
    if work.node.op_type != "Constant" or work.domain or len(work.node.attribute) != 1:
        return None
    [attribute] = work.node.attribute
    if attribute.name == "sparse_value":
        return dense_array(attribute.sparse_tensor)
    array: Array | None = onnx.numpy_helper.to_array(attribute.t) if attribute.name == "value" else None
    return array


class _Alias(_Given):
    """Another name of a given value."""

    def __init__(self, name: str, source: _Given) -> None:
        super().__init__(name, source.element_type, source.shape)
        self.source: _Given = source.source if isinstance(source, _Alias) else source

    def on_device(self, graph: Graph) -> Expression:
        return self.source.on_device(graph)


def _tensor(kind: type[Tensor], name: str, value: Any, *, known: bool) -> Tensor:
    if not isinstance(value, np.ndarray | np.generic):
        return kind(name, 0, None, array=value if known else None)
    array = np.asarray(value)
    known = known or array.size == 0  # there is nothing more to know
    return kind(name, element_type_of(array), array.shape, array=array if known else None)


def _type(tensor: Tensor | None) -> onnx.TypeProto:
    if tensor is None or tensor.shape is None:
        return onnx.TypeProto()
    return onnx.helper.make_tensor_type_proto(tensor.element_type, tensor.shape)


def _inferred(work: Work, inputs: Sequence[Tensor | None]) -> dict[str, tuple[int, tuple[int, ...] | None]]:
    """Element types and, where ONNX's inference finds them, shapes of a node's outputs.

    ModelError: inputs are not of one type that should be.
    """
    schema = schema_of(work)
    if schema is None:
        return {}
    node = work.node
    given = {name: each for name, each in zip(node.input, inputs, strict=True) if each is not None}
    types = {name: _type(each) for name, each in given.items()}
    data = {
        name: onnx.numpy_helper.from_array(each.array, name)
        for name, each in given.items()
        if each.array is not None and _may_matter(node, each.array)
    }
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in work.opsets.items()]
    try:
        found = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=imports)
    except onnx.checker.ValidationError as error:
        raise ModelError(f"{work.title} is not what it should be: {sentence(error)}") from None
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError, TypeError):
        return {}
    return {name: _element_and_shape(each) for name, each in found.items()}


_OF_ONE_TYPE = {
    *("Add", "Sub", "Mul", "Div", "Max", "Min", "Clip", "Relu", "LeakyRelu", "Elu", "Sigmoid", "HardSigmoid"),
    *("HardSwish", "Tanh", "Exp", "Erf", "Sqrt", "Abs", "Neg", "Floor", "Ceil"),
}


_OF_IMAGES = _OF_ONE_TYPE | {
    *(
        "AveragePool",
        "BatchNormalization",
        "Concat",
        "GlobalAveragePool",
        "GlobalMaxPool",
        "MaxPool",
        "PRelu",
    ),
    *("Dropout", "Sum"),
}
"""Operators whose output is laid out as the images that they read."""


def _groups(node: onnx.NodeProto) -> int:
    return next((each.i for each in node.attribute if each.name == "group"), 1)


def _has_channels_last(tensor: Tensor) -> bool:
    desc = None if tensor.expression is None else tensor.expression.desc
    return desc is not None and desc.strides is not None and desc.strides[1] == 1 < desc.sizes[1]


def _element_wise(
    work: Work, inputs: Sequence[Tensor | None]
) -> dict[str, tuple[int, tuple[int, ...] | None]] | None:
    """What the inference finds for most nodes of networks: functions whose tensors have one type."""
    if work.domain or work.opset < 7 or work.node.op_type not in _OF_ONE_TYPE or not inputs:
        return None
    shapes = {each.shape for each in inputs if each is not None}
    first = inputs[0]
    if first is None or None in shapes:
        return None
    shape = first.shape if len(shapes) == 1 else broadcast_shapes(*(each or () for each in shapes))
    return {work.node.output[0]: (first.element_type, shape)}


_FEW = 1000  # elements that the inference may need to know


class Inference:
    """What was inferred for nodes: networks repeat the same ones."""

    def __init__(self) -> None:
        self._found: dict[Any, list[tuple[int, tuple[int, ...] | None] | None]] = {}

    def __call__(
        self, work: Work, inputs: Sequence[Tensor | None]
    ) -> dict[str, tuple[int, tuple[int, ...] | None]]:
        """As :func:`_inferred`."""
        node = work.node
        key = (
            *(node.op_type, work.domain, work.opset, *map(bool, node.output), None),
            *(each.SerializeToString(deterministic=True) for each in node.attribute),
            *(_known_of(node, each) for each in inputs),
        )
        found = self._found.get(key)
        if found is None:
            if len(self._found) >= _MOST_NODES:
                self._found.clear()
            by_name = _inferred(work, inputs)
            found = self._found[key] = [by_name.get(name) for name in node.output]
        return {name: each for name, each in zip(node.output, found, strict=True) if each is not None}


def _known_of(node: onnx.NodeProto, tensor: Tensor | None) -> Any:
    """What the inference sees of an input."""
    if tensor is None:
        return None
    array = tensor.array
    known = array is not None and _may_matter(node, array)
    return tensor.element_type, tensor.shape, array.tobytes() if known and array is not None else None


def _may_matter(node: onnx.NodeProto, array: Array) -> bool:
    """Whether a shape may depend on these elements: few whole numbers, fractions in a few operators."""
    kinds = "iubf" if node.op_type in _BY_FRACTIONS else "iub"
    return array.size < _FEW and array.dtype.kind in kinds


_BY_FRACTIONS = {"Range", "Resize", "Upsample"}


def _element_and_shape(proto: onnx.TypeProto) -> tuple[int, tuple[int, ...] | None]:
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return tensor.elem_type, None
    dims = tensor.shape.dim
    known = all(each.HasField("dim_value") for each in dims)
    return tensor.elem_type, tuple(each.dim_value for each in dims) if known else None
