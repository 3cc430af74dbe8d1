#!/usr/bin/env python3
"""Encoder layers of a transformer, with made-up weights, as one graph of expressions: see dmlemu.graph.

Attention is written with GEMM and SOFTMAX1, on views: heads are split off and turned by strides alone.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

import dmlemu
from dmlemu import dml
from dmlemu.graph import (
    Expression,
    Graph,
    activation_gelu,
    activation_softmax1,
    gemm,
    identity,
    mean_variance_normalization2,
    reinterpret,
    transpose,
)

Array = np.ndarray[Any, np.dtype[np.float32]]
TRANSPOSED = dml.MatrixTransform.TRANSPOSE


@dataclass
class Shape:
    """Sequences of ``words`` vectors of ``width`` numbers; ``heads`` divides the width."""

    batch: int = 2
    words: int = 16
    width: int = 64
    heads: int = 4
    layers: int = 2


class Encoder:
    """``output`` is the last layer; ``weights`` are those of all layers, in the order of their use."""

    def __init__(self, device: dml.Device, shape: Shape, seed: int = 1) -> None:
        self.shape, self.graph = shape, Graph(device)
        self.random = np.random.default_rng(seed)
        self.weights: list[Array] = []
        self.x = self.graph.input([1, shape.batch, shape.words, shape.width], name="x")
        self.attention: list[Expression] = []
        self.output = self.x
        for _ in range(shape.layers):
            self.output = self.layer(self.output)

    def linear(self, x: Expression, outputs: int) -> Expression:
        """``x @ weight + bias``, for each vector."""
        inputs = x.sizes[-1]
        weight = self.random.standard_normal((inputs, outputs), np.float32) / np.float32(np.sqrt(inputs))
        bias = self.random.standard_normal(outputs, np.float32) / 10
        self.weights += [weight, bias]
        return x @ self.graph.constant(weight) + bias

    def heads(self, x: Expression) -> Expression:
        """{1, batch, words, width} as {batch, heads, words, width of a head}, of the same bytes."""
        n, t, h, d = self.shape.batch, self.shape.words, self.shape.heads, self.shape.width
        return transpose(reinterpret(x, [n, t, h, d // h]), [0, 2, 1, 3])

    def layer(self, x: Expression) -> Expression:
        width = self.shape.width
        normal = normalized(x)
        q, k, v = (self.heads(self.linear(normal, width)) for _ in range(3))
        scores = gemm(q, k, trans_b=TRANSPOSED, alpha=(width // self.shape.heads) ** -0.5, name="scores")
        self.attention.append(activation_softmax1(scores, axes=[3], name="attention"))
        found = identity(transpose(gemm(self.attention[-1], v), [0, 2, 1, 3]), name="heads joined")
        x = x + self.linear(reinterpret(found, x.sizes), width)
        return x + self.linear(activation_gelu(self.linear(normalized(x), 4 * width)), width)


def normalized(x: Expression) -> Expression:
    made: Expression = mean_variance_normalization2(
        x, axes=[3], use_mean=True, use_variance=True, epsilon=1e-5
    )
    return made


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=Shape.words)
    parser.add_argument("--layers", type=int, default=Shape.layers)
    options = parser.parse_args(arguments)
    shape = Shape(words=options.words, layers=options.layers)
    encoder = Encoder(dml.create_device(dmlemu.d3d12.create_device()), shape)
    with encoder.graph.compile([encoder.output], keep=encoder.attention[-1:], name="encoder") as run:
        print(run)
        x = encoder.random.standard_normal(encoder.x.sizes, np.float32)
        output, attention = run(x=x)
    print(f"output {output.shape}, mean {output.mean():.4f}, deviation {output.std():.4f}")
    words = attention.argmax(-1)[0, 0]
    print(f"words that the first head of the last layer looks at: {' '.join(map(str, words))}")


if __name__ == "__main__":
    main()
