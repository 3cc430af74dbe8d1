"""DFT: a product with the waves of all frequencies."""

from __future__ import annotations

import numpy as np

from ... import graph as g
from ...graph import transpose
from ..calls import Call, Made, NotOnDevice, lowers
from ..tensors import Array, fitted


@lowers("DFT")
def _dft(c: Call) -> Made:
    shape, rank = c.shape(), c.rank()
    axis = int(np.ravel(c.value(2))[0]) if c.has(2) else c.attribute("axis", 1 if c.opset < 20 else -2)
    axis = c.positive(axis, rank)
    inverse, onesided = bool(c.attribute("inverse", 0)), bool(c.attribute("onesided", 0))
    if inverse and onesided:
        raise NotOnDevice("DFT back to real numbers from one side")
    length = int(np.ravel(c.value(1))[0]) if c.has(1) else shape[axis]
    frequencies = length // 2 + 1 if onesided else length
    others = [i for i in range(rank - 1) if i != axis]
    x = transpose(c.x(), [*others, axis, rank - 1])
    rows = int(np.prod([shape[i] for i in others]))
    waves = _waves(shape[axis], shape[-1], length, frequencies, inverse)
    matrix = c.constant(waves.reshape(1, 1, *waves.shape), x)
    product = g.gemm(fitted(x, (1, 1, rows, shape[axis] * shape[-1])), matrix)
    made = fitted(product, (*(shape[i] for i in others), frequencies, 2))
    order = [*others, axis, rank - 1]
    made = transpose(made, [order.index(i) for i in range(rank)])
    return Made(made, made.sizes)


def _waves(size: int, parts: int, length: int, frequencies: int, inverse: bool) -> Array:
    """[size * parts, frequencies * 2]: real and imaginary parts, of elements before ``length`` alone."""
    angle = 2 * np.pi * np.outer(np.arange(size), np.arange(frequencies)) / length * (1 if inverse else -1)
    wave = np.exp(1j * angle) / (length if inverse else 1)
    wave[length:] = 0
    real = np.stack([wave.real, wave.imag], -1)  # of a real element
    imaginary = np.stack([-wave.imag, wave.real], -1)
    found: Array = np.stack([real, imaginary][:parts], 1)
    return found.reshape(size * parts, frequencies * 2)
