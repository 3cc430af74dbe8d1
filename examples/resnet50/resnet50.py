#!/usr/bin/env python3
"""ResNet-50 with made-up weights as one DirectML graph: compiled once, its weights owned by DirectML.

The graph has a node for each convolution (with its bias, and a fused RELU), pooling, addition and product.
Batch normalisations are part of the convolutions, as they are in a network that is deployed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import dmlemu
from dmlemu import dml

FLOAT32 = dml.TensorDataType.FLOAT32
RELU = dml.ActivationReluOperatorDesc()
Array = np.ndarray[Any, np.dtype[np.float32]]


@dataclass
class Shape:
    """What the network is made of: ResNet-50 unless changed."""

    batch: int = 1
    size: int = 224
    width: int = 64
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    classes: int = 1000


def tensor(
    sizes: Sequence[int], strides: Sequence[int] | None = None, owned: bool = False
) -> dml.BufferTensorDesc:
    flags = dml.TensorFlags.OWNED_BY_DML if owned else dml.TensorFlags.NONE
    return dml.BufferTensorDesc(FLOAT32, sizes, strides, flags=flags)


@dataclass
class Value:
    """An output of a node, or the input of the graph (node -1)."""

    node: int
    sizes: list[int]


@dataclass
class Network:
    """A graph under construction; input 0 is the image, the other inputs are the weights, in order."""

    random: np.random.Generator
    nodes: list[dml.OperatorGraphNodeDesc] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    input_edges: list[dml.InputGraphEdgeDesc] = field(default_factory=list)
    edges: list[dml.IntermediateGraphEdgeDesc] = field(default_factory=list)

    def add(
        self,
        device: dml.Device,
        desc: dml.OperatorDesc,
        name: str,
        reads: Sequence[Value | Array],
        sizes: Sequence[int],
    ) -> Value:
        """A node whose first output has ``sizes``; arrays that it reads become weights of the graph."""
        number = len(self.nodes)
        self.nodes.append(dml.OperatorGraphNodeDesc(device.create_operator(desc), name))
        for at, read in enumerate(reads):
            if isinstance(read, Value) and read.node >= 0:
                self.edges.append(dml.IntermediateGraphEdgeDesc(read.node, 0, number, at))
            elif isinstance(read, Value):
                self.input_edges.append(dml.InputGraphEdgeDesc(0, number, at, name))
            else:
                self.weights.append(read)
                self.input_edges.append(dml.InputGraphEdgeDesc(len(self.weights), number, at, name))
        return Value(number, list(sizes))

    def drawn(self, *sizes: int, fan_in: int, gain: float = 2.0) -> Array:
        """Random weights that keep the size of what they multiply."""
        return self.random.normal(0, (gain / fan_in) ** 0.5, sizes).astype(np.float32)


def convolution(
    net: Network,
    device: dml.Device,
    x: Value,
    filters: int,
    window: int,
    stride: int,
    name: str,
    *,
    relu: bool = True,
    gain: float = 2.0,
) -> Value:
    """A convolution of a square window that keeps sizes, up to the stride, with a bias per filter."""
    n, channels, height, width = x.sizes
    padding = window // 2
    sizes = [n, filters, *((each + 2 * padding - window) // stride + 1 for each in (height, width))]
    weight = net.drawn(filters, channels, window, window, fan_in=channels * window * window, gain=gain)
    bias = net.drawn(1, filters, 1, 1, fan_in=100)
    desc = dml.ConvolutionOperatorDesc(
        input_tensor=tensor(x.sizes),
        filter_tensor=tensor(weight.shape, owned=True),
        bias_tensor=tensor(bias.shape, owned=True),
        output_tensor=tensor(sizes),
        mode=dml.ConvolutionMode.CROSS_CORRELATION,
        direction=dml.ConvolutionDirection.FORWARD,
        strides=[stride, stride],
        dilations=[1, 1],
        start_padding=[padding, padding],
        end_padding=[padding, padding],
        output_padding=[0, 0],
        group_count=1,
        fused_activation=RELU if relu else None,
    )
    return net.add(device, desc, name, [x, weight, bias], sizes)


def pooling(
    net: Network, device: dml.Device, kind: Any, x: Value, window: int, stride: int, padding: int, **more: Any
) -> Value:
    n, channels, height, width = x.sizes
    sizes = [n, channels, *((each + 2 * padding - window) // stride + 1 for each in (height, width))]
    desc = kind(
        input_tensor=tensor(x.sizes),
        output_tensor=tensor(sizes),
        strides=[stride, stride],
        window_size=[window, window],
        start_padding=[padding, padding],
        end_padding=[padding, padding],
        **more,
    )
    return net.add(device, desc, kind.TYPE.name.lower(), [x], sizes)


def residual(net: Network, device: dml.Device, x: Value, width: int, stride: int, name: str) -> Value:
    """1x1, 3x3 and 1x1 convolutions, added to the input, or to a 1x1 convolution of it."""
    shortcut = x
    if stride != 1 or x.sizes[1] != 4 * width:
        shortcut = convolution(net, device, x, 4 * width, 1, stride, f"{name} shortcut", relu=False, gain=1.0)
    y = convolution(net, device, x, width, 1, 1, f"{name} reduce")
    y = convolution(net, device, y, width, 3, stride, f"{name} 3x3")
    y = convolution(net, device, y, 4 * width, 1, 1, f"{name} expand", relu=False, gain=0.2)
    desc = dml.ElementWiseAdd1OperatorDesc(
        a_tensor=tensor(y.sizes),
        b_tensor=tensor(y.sizes),
        output_tensor=tensor(y.sizes),
        fused_activation=RELU,
    )
    return net.add(device, desc, f"{name} add", [y, shortcut], y.sizes)


def classifier(net: Network, device: dml.Device, x: Value, classes: int) -> Value:
    """A product with a bias per class: the pooled image is a row of channels."""
    n, channels, *_ = x.sizes
    weight = net.drawn(1, 1, classes, channels, fan_in=channels)
    bias = net.drawn(1, 1, 1, classes, fan_in=100)
    sizes = [1, 1, n, classes]
    desc = dml.GemmOperatorDesc(
        a_tensor=tensor([1, 1, n, channels]),
        b_tensor=tensor(weight.shape, owned=True),
        c_tensor=tensor(sizes, strides=[0, 0, 0, 1], owned=True),
        output_tensor=tensor(sizes),
        trans_a=dml.MatrixTransform.NONE,
        trans_b=dml.MatrixTransform.TRANSPOSE,
        alpha=1.0,
        beta=1.0,
    )
    scores = net.add(device, desc, "classes", [x, weight, bias], sizes)
    softmax = dml.ActivationSoftmaxOperatorDesc(input_tensor=tensor(sizes), output_tensor=tensor(sizes))
    return net.add(device, softmax, "softmax", [scores], sizes)


def build(device: dml.Device, shape: Shape, seed: int = 1) -> tuple[dml.GraphDesc, list[Array]]:
    """The graph, and the weights that its inputs from 1 on are bound to."""
    net = Network(np.random.default_rng(seed))
    image = Value(-1, [shape.batch, 3, shape.size, shape.size])
    x = convolution(net, device, image, shape.width, 7, 2, "stem")
    x = pooling(net, device, dml.MaxPoolingOperatorDesc, x, 3, 2, 1)
    for stage, blocks in enumerate(shape.blocks):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            x = residual(net, device, x, shape.width << stage, stride, f"stage {stage + 1} block {block + 1}")
    x = pooling(net, device, dml.AveragePoolingOperatorDesc, x, x.sizes[-1], 1, 0, include_padding=False)
    result = classifier(net, device, x, shape.classes)
    graph = dml.GraphDesc(
        1 + len(net.weights),
        1,
        net.nodes,
        net.input_edges,
        [dml.OutputGraphEdgeDesc(result.node, 0, 0, "probabilities")],
        net.edges,
    )
    return graph, net.weights


def classify(shape: Shape, image: Array, repeat: int = 1, seed: int = 1) -> tuple[Array, list[float], int]:
    """The probabilities, the seconds of each run, and the bytes of the temporary resource."""
    with dmlemu.Session() as session:
        graph, weights = build(session.dml, shape, seed)
        network = session.keep(session.dml.compile_graph(graph))
        network.set_name("resnet")
        owned = [session.upload(f"weight {i}", each) for i, each in enumerate(weights)]
        persistent = session.persistent_buffer(network)
        session.initialize(network, inputs=[[None, *owned]], persistent=[persistent])
        session.barrier()
        session.run()
        source = session.upload("image", image)
        output = session.buffer("probabilities", shape.batch * shape.classes * 4)
        temporary = session.temporary_buffer(network)
        seconds = []
        for _ in range(repeat):
            session.use_descriptors(network.get_binding_properties().required_descriptor_count)
            inputs = [source, *[None] * len(weights)]
            session.dispatch(network, inputs, [output], persistent=persistent, temporary=temporary)
            session.barrier()
            start = time.perf_counter()
            session.run()
            seconds.append(time.perf_counter() - start)
        size = network.get_binding_properties().temporary_resource_size
        return session.read(output, np.float32, [shape.batch, shape.classes]), seconds, size


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--batch", type=int, default=1, help="images at a time (1)")
    parser.add_argument("--size", type=int, default=224, help="pixels of a side, a multiple of 32 (224)")
    parser.add_argument("--repeat", type=int, default=5, help="runs, of which the fastest counts (5)")
    options = parser.parse_args(arguments)
    if options.batch < 1 or options.repeat < 1 or options.size < 32 or options.size % 32:
        parser.error("--batch and --repeat are at least 1, --size a positive multiple of 32")
    shape = Shape(batch=options.batch, size=options.size)
    image = np.random.default_rng(0).random((shape.batch, 3, shape.size, shape.size), np.float32)
    probabilities, seconds, temporary = classify(shape, image, options.repeat)
    best = np.argsort(probabilities[0])[::-1][:5]
    print(f"{min(seconds) * 1000:.1f} ms for a batch of {shape.batch} (fastest of {len(seconds)} runs)")
    print(f"{temporary / 2**20:.1f} MiB of temporary memory")
    print("most probable classes:", ", ".join(f"{i} ({probabilities[0, i]:.4f})" for i in best))
    return 0


if __name__ == "__main__":
    sys.exit(main())
