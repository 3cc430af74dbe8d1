"""The digits, the network that reads them, and what it computes in plain NumPy.

Everything the device does in ``digits.py`` is done here once more with whole numbers on the host:
the two must agree to the last bit.  ``train.py`` makes ``weights.npz``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

HERE = Path(__file__).parent
TRAINING_IMAGES = 1347  # the first 1,347 of 1,797; the rest, by other writers, is never trained on


def load_digits() -> tuple[Array, Array]:
    """Images, uint8 [1797, 8, 8] with ink from 0 to 16, and the digit each one shows, uint32 [1797]."""
    table = np.loadtxt(HERE / "optdigits.csv.gz", delimiter=",", dtype=np.uint8)
    return table[:, :64].reshape(-1, 8, 8), table[:, 64].astype(np.uint32)


@dataclass(frozen=True)
class Layer:
    """A convolution over uint8 activations with int8 weights, and how its sums become uint8 again.

    ``filter`` is int8 [output channels, input channels, height, width], ``bias`` int32 [output
    channels].  A sum ``x`` is passed on as ``x / 2**shift``, rounded and clipped to 0..255: the clip
    at 0 is the ReLU.  The last layer has no shift: its sums are the scores of the ten digits.
    """

    name: str
    filter: Array
    bias: Array
    stride: int
    padding: int
    shift: int | None

    @property
    def channels(self) -> int:
        return int(self.filter.shape[0])

    def output_size(self, size: int) -> int:
        """Height (and width) of the output for an input of that height (and width)."""
        return (size + 2 * self.padding - int(self.filter.shape[2])) // self.stride + 1


# Name, input channels, output channels, window, stride, padding.  8 x 8 -> 8 x 8 -> 4 x 4 -> 1 x 1.
ARCHITECTURE = (
    ("edges", 1, 16, 3, 1, 1),
    ("strokes", 16, 32, 3, 2, 1),
    ("digits", 32, 10, 4, 1, 0),
)


def load_layers(path: Path = HERE / "weights.npz") -> list[Layer]:
    """The trained network."""
    with np.load(path, allow_pickle=False) as stored:
        shifts = [*(int(shift) for shift in stored["shifts"]), None]
        return [
            Layer(name, stored[f"{name}.filter"], stored[f"{name}.bias"], stride, padding, shift)
            for (name, _, _, _, stride, padding), shift in zip(ARCHITECTURE, shifts, strict=True)
        ]


def windows(images: Array, size: int, stride: int, padding: int) -> Array:
    """Every window a convolution looks at: [images, rows, columns, channels, size, size]."""
    padded = np.pad(images, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    view = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(2, 3))
    return view[:, :, ::stride, ::stride].transpose(0, 2, 3, 1, 4, 5)


def convolve(layer: Layer, images: Array) -> Array:
    """The sums of ``layer``: uint8 [N, C, H, W] -> int32 [N, channels, H', W']."""
    seen = windows(images, layer.filter.shape[2], layer.stride, layer.padding).astype(np.int32)
    sums = np.tensordot(seen, layer.filter.astype(np.int32), axes=((3, 4, 5), (1, 2, 3)))
    return sums.transpose(0, 3, 1, 2) + layer.bias[:, None, None]


def requantise(sums: Array, shift: int) -> Array:
    """Divides by ``2**shift``, rounds half up, clips to uint8."""
    return np.clip((sums + (1 << (shift - 1))) >> shift, 0, 255).astype(np.uint8)


def scores(layers: list[Layer], images: Array) -> Array:
    """What the network says about uint8 [N, 8, 8]: int32 [N, 10], the largest score wins."""
    activations = images[:, None]
    for layer in layers:
        sums = convolve(layer, activations)
        if layer.shift is not None:
            activations = requantise(sums, layer.shift)
    return sums.reshape(len(images), -1)


def classify(layers: list[Layer], images: Array) -> Array:
    """The digit the network reads in each image, uint32 [N]."""
    return scores(layers, images).argmax(axis=1).astype(np.uint32)


def ink_bits(images: Array) -> Array:
    """The images in black and white, 64 pixels in two words: uint32 [N, 2]."""
    return np.packbits(images.reshape(-1, 64) >= 8, axis=1).view(np.uint32)
