"""SPACE_TO_DEPTH and SPACE_TO_DEPTH1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import AtLeast, Divisible, SameType, Sizes
from ..enums import DepthSpaceOrder, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.space_depth import SpaceDepth

if TYPE_CHECKING:
    from ..declared.descs import SpaceToDepthOperatorDesc


def _deep(desc: SpaceToDepthOperatorDesc) -> Iterator[tuple[int, int, str]]:
    batch, channels, height, width = desc.input_tensor.sizes
    block = desc.block_size
    yield 0, batch, "InputTensor.Sizes[0]"
    yield 1, channels * block * block, "InputTensor.Sizes[1] * BlockSize * BlockSize"
    yield 2, height // block, "InputTensor.Sizes[2] / BlockSize"
    yield 3, width // block, "InputTensor.Sizes[3] / BlockSize"


class SpaceToDepth(SpaceDepth, of="SPACE_TO_DEPTH"):
    """Moves blocks of BlockSize x BlockSize elements of a channel into as many channels of one element.

    Element (y, x) of the block at row h and column w of channel c becomes element (h, w) of the channel

    * ``(y * BlockSize + x) * C + c`` with Order DEPTH_COLUMN_ROW, and for SPACE_TO_DEPTH (C channels);
    * ``c * BlockSize * BlockSize + y * BlockSize + x`` with Order COLUMN_ROW_DEPTH.

    Elements are copied bit by bit.  Height and width are multiples of BlockSize.
    """

    TO_SPACE = False

    RULES = (
        SameType("input_tensor", "output_tensor"),
        AtLeast("block_size", 1),
        Divisible("input_tensor", 2, "block_size"),
        Divisible("input_tensor", 3, "block_size"),
        Sizes(
            "output_tensor",
            _deep,
            "`OutputTensor.Sizes` are those of `InputTensor`, with BlockSize * BlockSize times the channels, "
            "and height and width divided by `BlockSize`.",
        ),
    )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": self.to_deep(np.asarray(inputs["input_tensor"]))}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 4]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 1, 2]),
            "block_size": 2,
        }


class SpaceToDepth1(SpaceToDepth, of="SPACE_TO_DEPTH1"):
    __doc__ = SpaceToDepth.__doc__

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {**super().example(), "order": DepthSpaceOrder.COLUMN_ROW_DEPTH}
