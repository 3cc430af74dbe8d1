#!/usr/bin/env python3
"""Trains the network of ``network.py`` and writes ``weights.npz``: NumPy alone, a quarter of a minute.

A small convolutional network with hand-written gradients, trained in floating point on the first
1,347 images shifted about at random; then its weights are rounded to int8 and its activations to
uint8.  The random seed is fixed.  On the same machine with the same NumPy the file comes out the
same; another BLAS adds in another order and gives a slightly different network.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from network import ARCHITECTURE, HERE, TRAINING_IMAGES, Array, Layer, classify, load_digits, windows

FULL_INK = 16  # the value of a black pixel


class Convolution:
    """A layer in floating point, with its gradient and the state of the Adam optimiser."""

    def __init__(
        self, random: np.random.Generator, inputs: int, outputs: int, size: int, stride: int, padding: int
    ):
        fan_in = inputs * size * size
        self.weights = random.normal(0, np.sqrt(2 / fan_in), (fan_in, outputs)).astype(np.float32)
        self.bias = np.zeros(outputs, np.float32)
        self.size, self.stride, self.padding = size, stride, padding
        self.moments = [np.zeros_like(p) for p in (self.weights, self.weights, self.bias, self.bias)]

    def forward(self, images: Array) -> Array:
        """[N, C, H, W] -> [N, outputs, H', W']."""
        self.input_shape = images.shape
        seen = windows(images, self.size, self.stride, self.padding)
        self.seen = seen.reshape(*seen.shape[:3], -1)
        return (self.seen @ self.weights + self.bias).transpose(0, 3, 1, 2)

    def backward(self, gradient: Array) -> Array:
        """Gradient of the loss by the output -> by the input; keeps the one by the weights."""
        by_output = gradient.transpose(0, 2, 3, 1)
        flat = by_output.reshape(-1, by_output.shape[-1])
        self.by_weights = self.seen.reshape(len(flat), -1).T @ flat
        self.by_bias = flat.sum(axis=0)
        count, channels, height, width = self.input_shape
        by_window = (by_output @ self.weights.T).reshape(*by_output.shape[:3], channels, self.size, self.size)
        padded = np.zeros((count, channels, height + 2 * self.padding, width + 2 * self.padding), np.float32)
        rows, columns = by_window.shape[1] * self.stride, by_window.shape[2] * self.stride
        for y in range(self.size):
            for x in range(self.size):
                part = by_window[:, :, :, :, y, x].transpose(0, 3, 1, 2)
                padded[:, :, y : y + rows : self.stride, x : x + columns : self.stride] += part
        return padded[:, :, self.padding : self.padding + height, self.padding : self.padding + width]

    def step(self, time: int, rate: float, decay: float) -> None:
        """One Adam step with decoupled weight decay."""
        for i, (value, gradient) in enumerate(((self.weights, self.by_weights), (self.bias, self.by_bias))):
            mean, square = self.moments[2 * i], self.moments[2 * i + 1]
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient * gradient - square)
            value -= rate * (mean / (1 - 0.9**time)) / (np.sqrt(square / (1 - 0.999**time)) + 1e-8)
            if i == 0:
                value -= rate * decay * value


def shifted(random: np.random.Generator, images: Array) -> Array:
    """Each image moved by up to one pixel in both directions."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    dy, dx = random.integers(0, 3, (2, len(images), 1, 1))
    rows, columns = np.arange(8)[:, None] + dy, np.arange(8)[None, :] + dx
    return padded[np.arange(len(images))[:, None, None], rows, columns]


def forward(network: list[Convolution], images: Array) -> list[Array]:
    """The input of each layer, then the scores [N, 10, 1, 1]."""
    values = [images[:, None].astype(np.float32) / FULL_INK]
    for i, layer in enumerate(network):
        out = layer.forward(values[-1])
        values.append(out if i == len(network) - 1 else np.maximum(out, 0))
    return values


def train(images: Array, labels: Array, epochs: int, seed: int, batch: int = 64) -> list[Convolution]:
    random = np.random.default_rng(seed)
    network = [Convolution(random, *shape) for _, *shape in ARCHITECTURE]
    steps = epochs * (len(images) // batch)
    time = 0
    for epoch in range(epochs):
        order = random.permutation(len(images))
        loss = 0.0
        for start in range(0, len(images) - batch + 1, batch):
            chosen = order[start : start + batch]
            values = forward(network, shifted(random, images[chosen]))
            result = values[-1].reshape(batch, -1)
            odds = np.exp(result - result.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            wanted = np.full_like(odds, 0.1 / 10)  # label smoothing: no image is certain
            wanted[np.arange(batch), labels[chosen]] += 0.9
            loss -= float(np.log(odds[np.arange(batch), labels[chosen]]).mean())
            gradient = ((odds - wanted) / batch).reshape(values[-1].shape)
            for i in reversed(range(len(network))):
                gradient = network[i].backward(gradient)
                if i:
                    gradient *= values[i] > 0
            time += 1
            rate = 0.003 * 0.5 * (1 + np.cos(np.pi * time / steps))  # cosine: large steps first
            for layer in network:
                layer.step(time, rate, decay=0.02)
        if sys.stderr.isatty():
            print(
                f"\repoch {epoch + 1}/{epochs}, loss {loss * batch / len(images):.4f}",
                end="",
                file=sys.stderr,
            )
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return network


def quantise(network: list[Convolution], images: Array) -> list[Layer]:
    """Rounds the network to int8 weights, int32 biases and uint8 activations.

    A real value is its integer times a scale.  The scale of a layer's weights makes the largest one
    127.  The scale of its outputs is 2**shift times the scale of its sums, with the smallest shift
    for which (nearly) no activation passes 255: dividing by a power of two is exact everywhere.
    """
    layers: list[Layer] = []
    activations = forward(network, images)
    scale = 1 / FULL_INK
    for i, (layer, (name, inputs, outputs, size, stride, padding)) in enumerate(
        zip(network, ARCHITECTURE, strict=True)
    ):
        weight_scale = float(np.abs(layer.weights).max()) / 127
        weights = np.rint(layer.weights / weight_scale).astype(np.int8)
        sum_scale = scale * weight_scale
        bias = np.rint(layer.bias / sum_scale).astype(np.int32)
        shift = None
        if i < len(network) - 1:
            largest = float(np.quantile(activations[i + 1], 0.9999)) / sum_scale
            shift = max(1, int(np.ceil(np.log2(largest / 255))))
            scale = sum_scale * 2**shift
        filter = np.ascontiguousarray(weights.T).reshape(outputs, inputs, size, size)
        layers.append(Layer(name, filter, bias, stride, padding, shift))
    return layers


def save(layers: list[Layer], path: Path) -> None:
    arrays: dict[str, Array] = {"shifts": np.array([layer.shift for layer in layers[:-1]], np.int32)}
    for layer in layers:
        arrays[f"{layer.name}.filter"] = layer.filter
        arrays[f"{layer.name}.bias"] = layer.bias
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the digit network and write its int8 weights.")
    parser.add_argument(
        "--output", type=Path, default=HERE / "weights.npz", help="file to write (default: %(default)s)"
    )
    parser.add_argument(
        "--epochs", type=int, default=250, help="passes over the training images (default: %(default)s)"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the random numbers (default: %(default)s)"
    )
    options = parser.parse_args()

    images, labels = load_digits()
    network = train(images[:TRAINING_IMAGES], labels[:TRAINING_IMAGES], options.epochs, options.seed)
    layers = quantise(network, images[:TRAINING_IMAGES])
    save(layers, options.output)

    read_float = forward(network, images)[-1].reshape(len(images), -1).argmax(axis=1)
    read_int8 = classify(layers, images)
    for name, read in (("float32", read_float), ("int8", read_int8)):
        right = read == labels
        print(
            f"{name:>8}: {right[:TRAINING_IMAGES].mean():.2%} of the training images, "
            f"{right[TRAINING_IMAGES:].mean():.2%} of the test images"
        )
    print(f"wrote {options.output} ({options.output.stat().st_size} bytes)")


if __name__ == "__main__":
    main()
