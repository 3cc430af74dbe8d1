"""Whole networks with made-up weights, each as one graph of DirectML and as one model of ONNX Runtime.

Both are built side by side, node for node, from the same weights; results are compared before they are timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

import peers
from cases import Array, Batch, Case, Prepared
from dmlemu import Session, d3d12, dml
from dmlemu.dml.enums import TensorDataType as T

RELU = dml.ActivationReluOperatorDesc()
TYPES = {np.dtype(np.float32): T.FLOAT32, np.dtype(np.int8): T.INT8, np.dtype(np.uint8): T.UINT8}


def network_cases(device: d3d12.Device) -> Iterator[Case]:
    image, words = [1, 3, 224, 224], [1, 1, 128, 768]
    for name, sizes, build in (
        ("ResNet-50 f32", image, resnet),
        ("ResNet-50 u8*s8", image, resnet_int8),
        ("MobileNetV2 f32", image, mobilenet),
        ("BERT of 6 layers, width 768, 128 tokens f32", words, bert),
    ):
        yield Case(name, "one graph", *_prepared(device, sizes, build))


def _prepared(
    device: d3d12.Device, sizes: list[int], build: Callable[[Twin, Value], Value]
) -> tuple[Prepared, dict[str, Prepared]]:
    @cache
    def twin() -> Twin:
        made = Twin(device, np.random.default_rng(1).random(sizes, np.float32))
        made.finish(build(made, made.image))
        return made

    def ours() -> Batch:
        run, result = twin().ours()
        session = twin().peer()
        session()
        expected = session.result()
        close = np.allclose(
            result.reshape(expected.shape), expected, rtol=1e-3, atol=2e-3 * np.abs(expected).max()
        )
        if not close:
            raise AssertionError("the networks give different results")
        return Batch(run)

    return ours, {"ORT": lambda: Batch(twin().peer())}


@dataclass
class Value:
    """A tensor of both: an output of a node, or an input of the graph (node -1); ``name`` is ONNX's."""

    node: int
    number: int
    name: str
    sizes: list[int]
    data_type: T = T.FLOAT32

    def desc(
        self, sizes: Sequence[int] | None = None, strides: Sequence[int] | None = None
    ) -> dml.BufferTensorDesc:
        """Its tensor, or its bytes in another layout; inputs but the first are weights."""
        owned = dml.TensorFlags.OWNED_BY_DML if self.node < 0 < self.number else dml.TensorFlags.NONE
        return dml.BufferTensorDesc(self.data_type, sizes or self.sizes, strides, flags=owned)


class Twin:
    """A network under construction."""

    def __init__(self, device: d3d12.Device, image: Array) -> None:
        self.session = Session(dml.create_device(device))
        self.random = np.random.default_rng(2)
        self.arrays = [image]
        self.image = Value(-1, 0, "x", list(image.shape))
        self.nodes: list[dml.OperatorGraphNodeDesc] = []
        self.inputs: list[dml.InputGraphEdgeDesc] = []
        self.edges: list[dml.IntermediateGraphEdgeDesc] = []
        self.onnx_nodes: list[Any] = []
        self.onnx_weights: list[Any] = []

    def weight(self, array: Array) -> Value:
        self.arrays.append(array)
        name = f"w{len(self.arrays) - 1}"
        self.onnx_weights.append(numpy_helper.from_array(array, name))
        return Value(-1, len(self.arrays) - 1, name, list(array.shape), TYPES[array.dtype])

    def normal(self, *sizes: int, deviation: float) -> Value:
        return self.weight(self.random.normal(0, deviation, sizes).astype(np.float32))

    def add(
        self,
        desc: dml.OperatorDesc,
        reads: Sequence[Value | None],
        sizes: Sequence[int],
        data_type: T = T.FLOAT32,
    ) -> Value:
        """A node of the graph; its ONNX nodes are added by :meth:`onnx`."""
        number = len(self.nodes)
        self.nodes.append(dml.OperatorGraphNodeDesc(self.session.dml.create_operator(desc)))
        for at, read in enumerate(reads):
            if read is not None and read.node >= 0:
                self.edges.append(dml.IntermediateGraphEdgeDesc(read.node, 0, number, at))
            elif read is not None:
                self.inputs.append(dml.InputGraphEdgeDesc(read.number, number, at))
        return Value(number, 0, f"v{number}", list(sizes), data_type)

    def onnx(self, op: str, reads: Sequence[Value | str], out: Value | str, **attributes: Any) -> str:
        names = [each if isinstance(each, str) else each.name for each in (*reads, out)]
        self.onnx_nodes.append(helper.make_node(op, names[:-1], names[-1:], **attributes))
        return names[-1]

    def finish(self, result: Value) -> None:
        self.result = result
        out = dml.OutputGraphEdgeDesc(result.node, 0, 0)
        desc = dml.GraphDesc(len(self.arrays), 1, self.nodes, self.inputs, [out], self.edges)
        self.compiled = self.session.keep(self.session.dml.compile_graph(desc))

    @cache  # noqa: B019 (as long as the case)
    def ours(self) -> tuple[Callable[[], object], Array]:
        """A call that executes a list with the graph, and its result."""
        session, compiled = self.session, self.compiled
        buffers = [session.upload(f"input {i}", each) for i, each in enumerate(self.arrays)]
        persistent = session.persistent_buffer(compiled)
        session.initialize(compiled, inputs=[[None, *buffers[1:]]], persistent=[persistent])
        session.run()
        output = session.buffer("output", 4 * int(np.prod(self.result.sizes)))
        session.use_descriptors(compiled.get_binding_properties().required_descriptor_count)
        session.dispatch(
            compiled,
            [buffers[0], *[None] * (len(buffers) - 1)],
            [output],
            persistent=persistent,
            temporary=session.temporary_buffer(compiled),
        )
        session.submit()
        session.fence.wait(session.fence_value)
        recorded = session.list

        def run() -> None:
            session.queue.execute_command_lists([recorded])
            session.fence_value += 1
            session.queue.signal(session.fence, session.fence_value)
            session.fence.wait(session.fence_value)

        session.new_list()
        return run, session.read(output, np.float32, self.result.sizes)

    @cache  # noqa: B019
    def peer(self) -> peers.Model:
        return peers.onnx_model(
            self.onnx_nodes, self.onnx_weights, {"x": self.arrays[0]}, (self.result.name, self.result.sizes)
        )


# --- layers ---


def _convolved(
    x: Value, filters: int, window: int, stride: int
) -> tuple[list[int], dict[str, Any], dict[str, Any]]:
    """Sizes of the output, fields of DirectML and attributes of ONNX: sizes are kept, up to the stride."""
    n, _, height, width = x.sizes
    pad = window // 2
    sizes = [n, filters, *((each + 2 * pad - window) // stride + 1 for each in (height, width))]
    fields = {
        "strides": [stride] * 2,
        "dilations": [1, 1],
        "start_padding": [pad] * 2,
        "end_padding": [pad] * 2,
    }
    return sizes, fields, {"strides": [stride] * 2, "pads": [pad] * 4, "kernel_shape": [window] * 2}


def convolution(
    net: Twin,
    x: Value,
    filters: int,
    window: int,
    stride: int = 1,
    *,
    groups: int = 1,
    relu: bool = False,
    gain: float = 2,
) -> Value:
    sizes, fields, attributes = _convolved(x, filters, window, stride)
    depth = x.sizes[1] // groups
    w = net.normal(filters, depth, window, window, deviation=(gain / (depth * window**2)) ** 0.5)
    b = net.normal(filters, deviation=0.1)
    y = net.add(
        dml.ConvolutionOperatorDesc(
            input_tensor=x.desc(),
            filter_tensor=w.desc(),
            bias_tensor=b.desc([1, filters, 1, 1]),
            output_tensor=dml.BufferTensorDesc(T.FLOAT32, sizes),
            mode=dml.ConvolutionMode.CROSS_CORRELATION,
            direction=dml.ConvolutionDirection.FORWARD,
            output_padding=[0, 0],
            group_count=groups,
            fused_activation=RELU if relu else None,
            **fields,
        ),
        [x, w, b],
        sizes,
    )
    out = net.onnx("Conv", [x, w, b], f"{y.name}c" if relu else y, group=groups, **attributes)
    if relu:
        net.onnx("Relu", [out], y)
    return y


def pooling(net: Twin, x: Value, *, largest: bool) -> Value:
    """The maximum of 3x3, every second; or the average of all."""
    n, channels, height, width = x.sizes
    if largest:
        sizes, fields, attributes = _convolved(x, channels, 3, 2)
        del fields["dilations"]
        kind, more, window = dml.MaxPoolingOperatorDesc, {}, [3, 3]
    else:
        sizes, kind, window, attributes = (
            [n, channels, 1, 1],
            dml.AveragePoolingOperatorDesc,
            [height, width],
            {},
        )
        fields = {"strides": [1, 1], "start_padding": [0, 0], "end_padding": [0, 0]}
        more = {"include_padding": False}
    out = dml.BufferTensorDesc(T.FLOAT32, sizes)
    y = net.add(
        kind(input_tensor=x.desc(), output_tensor=out, window_size=window, **fields, **more), [x], sizes
    )
    net.onnx("MaxPool" if largest else "GlobalAveragePool", [x], y, **attributes)
    return y


def addition(net: Twin, a: Value, b: Value, *, relu: bool = False) -> Value:
    tensor = dml.BufferTensorDesc(T.FLOAT32, a.sizes)
    desc = dml.ElementWiseAdd1OperatorDesc(
        a_tensor=tensor, b_tensor=tensor, output_tensor=tensor, fused_activation=RELU if relu else None
    )
    y = net.add(desc, [a, b], a.sizes)
    out = net.onnx("Add", [a, b], f"{y.name}s" if relu else y)
    if relu:
        net.onnx("Relu", [out], y)
    return y


def linear(net: Twin, x: Value, width: int, *, gain: float = 1) -> Value:
    """Rows of x times a matrix, plus a row."""
    rows, depth = x.sizes[-2:]
    w, b = net.normal(depth, width, deviation=(gain / depth) ** 0.5), net.normal(width, deviation=0.1)
    sizes = [1, 1, rows, width]
    y = net.add(
        product(x.desc(), w.desc([1, 1, depth, width]), sizes, b.desc(sizes, [0, 0, 0, 1])), [x, w, b], sizes
    )
    net.onnx("Add", [net.onnx("MatMul", [x, w], f"{y.name}m"), b], y)
    return y


def product(
    a: dml.BufferTensorDesc,
    b: dml.BufferTensorDesc,
    out: Any,
    c: Any = None,
    *,
    alpha: float = 1,
    turned: bool = False,
) -> dml.OperatorDesc:
    return dml.GemmOperatorDesc(
        a_tensor=a,
        b_tensor=b,
        c_tensor=c,
        output_tensor=dml.BufferTensorDesc(T.FLOAT32, *out)
        if isinstance(out, tuple)
        else dml.BufferTensorDesc(T.FLOAT32, out),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.TRANSPOSE if turned else dml.MatrixTransform.NONE,
        alpha=alpha,
        beta=1,
    )


def classifier(net: Twin, x: Value, classes: int) -> Value:
    row = Value(x.node, 0, f"{x.name}r", [1, 1, x.sizes[0], x.sizes[1]])
    shape = numpy_helper.from_array(np.array(row.sizes, np.int64), f"{row.name}s")
    net.onnx_weights.append(shape)
    net.onnx("Reshape", [x, shape.name], row)
    return linear(net, row, classes)


# --- networks ---


def resnet(net: Twin, x: Value) -> Value:
    x = pooling(net, convolution(net, x, 64, 7, 2, relu=True), largest=True)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            width, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
            shortcut = x if block else convolution(net, x, 4 * width, 1, stride, gain=1)
            y = convolution(net, x, width, 1, relu=True)
            y = convolution(net, y, width, 3, stride, relu=True)
            x = addition(net, convolution(net, y, 4 * width, 1, gain=0.2), shortcut, relu=True)
    return classifier(net, pooling(net, x, largest=False), 1000)


def mobilenet(net: Twin, x: Value) -> Value:
    x = clipped(net, convolution(net, x, 32, 3, 2))
    for expansion, channels, repeat, stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for i in range(repeat):
            wide = x.sizes[1] * expansion
            y = clipped(net, convolution(net, x, wide, 1)) if expansion > 1 else x
            y = clipped(net, convolution(net, y, wide, 3, stride if i == 0 else 1, groups=wide))
            y = convolution(net, y, channels, 1, gain=0.5)
            x = addition(net, x, y) if i else y
    x = clipped(net, convolution(net, x, 1280, 1))
    return classifier(net, pooling(net, x, largest=False), 1000)


def clipped(net: Twin, x: Value) -> Value:
    """RELU6."""
    y = net.add(
        dml.ElementWiseClipOperatorDesc(input_tensor=x.desc(), output_tensor=x.desc(), min=0, max=6),
        [x],
        x.sizes,
    )
    if not any(each.name == "six" for each in net.onnx_weights):
        for name, value in (("zero", 0), ("six", 6)):
            net.onnx_weights.append(numpy_helper.from_array(np.array(value, np.float32), name))
    net.onnx("Clip", [x, "zero", "six"], y)
    return y


def resnet_int8(net: Twin, x: Value) -> Value:
    """Products of bytes; sums are converted to FLOAT32, and quantised again for the next product."""
    y = scaled_convolution(net, quantized(net, x), 64, 7, 2)
    x = pooling(net, activated(net, y), largest=True)
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            width, stride = 64 << stage, 2 if stage > 0 and block == 0 else 1
            bytes_ = quantized(net, x)
            shortcut = x if block else scaled_convolution(net, bytes_, 4 * width, 1, stride, gain=1)
            y = quantized(net, activated(net, scaled_convolution(net, bytes_, width, 1)))
            y = quantized(net, activated(net, scaled_convolution(net, y, width, 3, stride)))
            x = addition(net, scaled_convolution(net, y, 4 * width, 1, gain=0.2), shortcut, relu=True)
    return classifier(net, pooling(net, x, largest=False), 1000)


STEP = 1 / 32  # of quantised values


def quantized(net: Twin, x: Value) -> Value:
    scale, zero = net.weight(np.array([STEP], np.float32)), net.weight(np.array([0], np.uint8))
    desc = dml.ElementWiseQuantizeLinearOperatorDesc(
        input_tensor=x.desc(),
        scale_tensor=scale.desc(x.sizes, [0] * 4),
        zero_point_tensor=zero.desc(x.sizes, [0] * 4),
        output_tensor=dml.BufferTensorDesc(T.UINT8, x.sizes),
    )
    y = net.add(desc, [x, scale, zero], x.sizes, T.UINT8)
    one = [f"{scale.name}s", f"{zero.name}s"]
    net.onnx("Squeeze", [scale], one[0])
    net.onnx("Squeeze", [zero], one[1])
    net.onnx("QuantizeLinear", [x, *one], y)
    return y


def scaled_convolution(
    net: Twin, x: Value, filters: int, window: int, stride: int = 1, *, gain: float = 2
) -> Value:
    sizes, fields, attributes = _convolved(x, filters, window, stride)
    depth = x.sizes[1] * window**2
    w = net.weight(net.random.integers(-127, 128, (filters, x.sizes[1], window, window)).astype(np.int8))
    sums = dml.BufferTensorDesc(T.INT32, sizes)
    y = net.add(
        dml.ConvolutionIntegerOperatorDesc(
            input_tensor=x.desc(), filter_tensor=w.desc(), output_tensor=sums, group_count=1, **fields
        ),
        [x, None, w],
        sizes,
        T.INT32,
    )
    net.onnx("ConvInteger", [x, w], y, **attributes)
    floats = dml.BufferTensorDesc(T.FLOAT32, sizes)
    z = net.add(dml.CastOperatorDesc(input_tensor=sums, output_tensor=floats), [y], sizes)
    net.onnx("Cast", [y], z, to=1)
    factor = STEP * (gain / depth) ** 0.5 / 73  # 73: the standard deviation of the weights
    desc = dml.ElementWiseIdentityOperatorDesc(
        input_tensor=floats, output_tensor=floats, scale_bias=dml.ScaleBias(factor, 0)
    )
    scaled = net.add(desc, [z], sizes)
    net.onnx_weights.append(numpy_helper.from_array(np.array(factor, np.float32), f"{scaled.name}f"))
    net.onnx("Mul", [z, f"{scaled.name}f"], scaled)
    return scaled


def activated(net: Twin, x: Value) -> Value:
    y = net.add(dml.ActivationReluOperatorDesc(input_tensor=x.desc(), output_tensor=x.desc()), [x], x.sizes)
    net.onnx("Relu", [x], y)
    return y


def bert(net: Twin, x: Value) -> Value:
    for _ in range(6):
        x = normalized(net, addition(net, x, attention(net, x, heads=12)))
        y = linear(net, x, 3072)
        wide = net.add(
            dml.ActivationGeluOperatorDesc(input_tensor=y.desc(), output_tensor=y.desc()), [y], y.sizes
        )
        net.onnx("Gelu", [y], wide)
        x = normalized(net, addition(net, x, linear(net, wide, 768)))
    return x


def normalized(net: Twin, x: Value) -> Value:
    width = x.sizes[-1]
    scale, bias = net.normal(width, deviation=1), net.normal(width, deviation=0.1)
    parameters = [each.desc(x.sizes, [0, 0, 0, 1]) for each in (scale, bias)]
    desc = dml.MeanVarianceNormalization1OperatorDesc(
        input_tensor=x.desc(),
        scale_tensor=parameters[0],
        bias_tensor=parameters[1],
        output_tensor=x.desc(),
        axes=[3],
        normalize_variance=True,
        epsilon=1e-5,
    )
    y = net.add(desc, [x, scale, bias], x.sizes)
    net.onnx("LayerNormalization", [x, scale, bias], y, axis=-1, epsilon=1e-5)
    return y


def attention(net: Twin, x: Value, heads: int) -> Value:
    """Heads are columns of the rows, which products read and write by strides."""
    rows, width = x.sizes[-2:]
    each = width // heads
    split = ([1, heads, rows, each], [rows * width, each, width, 1])
    q, k, v = (linear(net, x, width) for _ in range(3))
    sizes = [1, heads, rows, rows]
    scores = net.add(
        product(q.desc(*split), k.desc(*split), sizes, alpha=each**-0.5, turned=True), [q, k], sizes
    )
    shares = net.add(
        dml.ActivationSoftmax1OperatorDesc(input_tensor=scores.desc(), output_tensor=scores.desc(), axes=[3]),
        [scores],
        sizes,
    )
    mixed = net.add(product(shares.desc(), v.desc(*split), split), [shares, v], x.sizes)
    if not any(w.name == "heads" for w in net.onnx_weights):
        for name, shape in (("heads", [1, rows, heads, each]), ("joined", x.sizes)):
            net.onnx_weights.append(numpy_helper.from_array(np.array(shape, np.int64), name))
        net.onnx_weights.append(numpy_helper.from_array(np.array(each**-0.5, np.float32), "factor"))
    turned = [
        net.onnx("Transpose", [net.onnx("Reshape", [y, "heads"], f"{y.name}h")], f"{y.name}t", perm=perm)
        for y, perm in ((q, [0, 2, 1, 3]), (k, [0, 2, 3, 1]), (v, [0, 2, 1, 3]))
    ]
    net.onnx("Mul", [net.onnx("MatMul", turned[:2], f"{scores.name}m"), "factor"], scores)
    net.onnx("Softmax", [scores], shares, axis=-1)
    joined = net.onnx(
        "Transpose",
        [net.onnx("MatMul", [shares, turned[2]], f"{mixed.name}m")],
        f"{mixed.name}t",
        perm=[0, 2, 1, 3],
    )
    net.onnx("Reshape", [joined, "joined"], mixed)
    return linear(net, mixed, width)
