"""Tensor policies: how the outputs of a graph's operators are laid out in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from ..dml.enums import TensorDataType
from ..dml.tensor_desc import BufferTensorDesc

__all__ = [
    "Policy",
    "TensorProperties",
    "interleaved_bytes",
    "interleaved_channel",
    "laid_out",
    "packed",
    "random_layouts",
]


class TensorProperties(NamedTuple):
    """A layout: the fields of a ``BufferTensorDesc`` beside data type and sizes.  None: packed strides, the
    least total size."""

    strides: Sequence[int] | None = None
    total_tensor_size_in_bytes: int | None = None
    guaranteed_base_offset_alignment: int = 0


Policy = Callable[[TensorDataType, tuple[int, ...]], TensorProperties]
"""The layout of a tensor, by its data type and sizes."""


def packed(data_type: TensorDataType, sizes: tuple[int, ...]) -> TensorProperties:
    """The last dimension fastest, without gaps: no strides.  The default of a graph."""
    return TensorProperties()


def interleaved_channel(data_type: TensorDataType, sizes: tuple[int, ...]) -> TensorProperties:
    """The channels, dimension 1, fastest: NHWC for sizes in the order NCHW.  Below 3 dimensions packed."""
    if len(sizes) < 3:
        return TensorProperties()
    strides, step = [0] * len(sizes), 1
    for dimension in (1, *range(len(sizes) - 1, 1, -1), 0):
        strides[dimension] = step
        step *= sizes[dimension]
    return TensorProperties(strides)


def interleaved_bytes(data_type: TensorDataType, sizes: tuple[int, ...]) -> TensorProperties:
    """Images of INT8 and UINT8 as :func:`interleaved_channel` has them, which convolutions of bytes read in
    place; other data types, and other numbers of dimensions than 4, packed."""
    is_image = data_type in (TensorDataType.INT8, TensorDataType.UINT8) and len(sizes) == 4
    return interleaved_channel(data_type, sizes) if is_image else packed(data_type, sizes)


REPEATABLE = (packed, interleaved_channel, interleaved_bytes)
"""Policies that say the same of the same tensors each time."""


def random_layouts(seed: int) -> Policy:
    """Another legal layout for each tensor: dimensions in any order, with gaps between rows and at the end.

    The same seed draws the same layouts for the same graph.  Results must not depend on it.
    """
    drawn = Random(seed)

    def policy(data_type: TensorDataType, sizes: tuple[int, ...]) -> TensorProperties:
        order = list(range(len(sizes)))
        drawn.shuffle(order)
        strides, step = [0] * len(sizes), 1
        for dimension in order:
            strides[dimension] = step
            step *= sizes[dimension] + drawn.choice((0, 0, 1, 3))
        least = BufferTensorDesc(data_type, sizes, strides).size_in_bytes
        return TensorProperties(strides, least + 4 * drawn.choice((0, 0, 1, 5)))

    return policy


def laid_out(desc: BufferTensorDesc, policy: Policy) -> BufferTensorDesc:
    """A tensor of the same data type and sizes, as the policy lays it out.

    TypeError: the policy returns anything but a :class:`TensorProperties`.
    """
    properties = policy(desc.data_type, tuple(desc.sizes))
    if not isinstance(properties, TensorProperties):
        raise TypeError(f"A tensor policy returns TensorProperties, not {type(properties).__name__}.")
    return BufferTensorDesc(desc.data_type, desc.sizes, *properties)
