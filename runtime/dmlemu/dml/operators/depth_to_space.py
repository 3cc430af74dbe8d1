"""DEPTH_TO_SPACE and DEPTH_TO_SPACE1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..declared.rules import AtLeast, SameType, Sizes
from ..declared.values import Multiple
from ..enums import DepthSpaceOrder, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array
from .families.space_depth import SpaceDepth

if TYPE_CHECKING:
    from ..declared.descs import DepthToSpaceOperatorDesc


def _whole_blocks(desc: DepthToSpaceOperatorDesc) -> Iterator[tuple[int, Multiple, str]]:
    yield 1, Multiple(desc.block_size**2), "BlockSize * BlockSize"


def _spatial(desc: DepthToSpaceOperatorDesc) -> Iterator[tuple[int, int, str]]:
    batch, channels, height, width = desc.input_tensor.sizes
    block = desc.block_size
    yield 0, batch, "InputTensor.Sizes[0]"
    yield 1, channels // block**2, "InputTensor.Sizes[1] / (BlockSize * BlockSize)"
    yield 2, height * block, "InputTensor.Sizes[2] * BlockSize"
    yield 3, width * block, "InputTensor.Sizes[3] * BlockSize"


class DepthToSpace(SpaceDepth, of="DEPTH_TO_SPACE"):
    """Moves BlockSize * BlockSize channels of one element into blocks of BlockSize x BlockSize elements of
    one channel: the inverse of SPACE_TO_DEPTH.

    Element (y, x) of the block at row h and column w of output channel c is element (h, w) of the channel

    * ``(y * BlockSize + x) * C + c`` with Order DEPTH_COLUMN_ROW, and for DEPTH_TO_SPACE (C output channels);
    * ``c * BlockSize * BlockSize + y * BlockSize + x`` with Order COLUMN_ROW_DEPTH.

    Elements are copied bit by bit.  The number of channels is a multiple of BlockSize * BlockSize.
    """

    TO_SPACE = True

    RULES = (
        SameType("input_tensor", "output_tensor"),
        AtLeast("block_size", 1),
        Sizes(
            "input_tensor",
            _whole_blocks,
            "`InputTensor.Sizes[1]` is a multiple of `BlockSize * BlockSize`.",
        ),
        Sizes(
            "output_tensor",
            _spatial,
            "`OutputTensor.Sizes` are those of `InputTensor`, with the channels divided by "
            "`BlockSize * BlockSize`, and `BlockSize` times the height and width.",
        ),
    )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        deep, sizes = np.asarray(inputs["input_tensor"]), self.desc.output_tensor.sizes
        source = self.to_deep(np.arange(deep.size).reshape(sizes))  # of each element of the output, its place
        space = np.empty(deep.size, deep.dtype)
        space[source.ravel()] = deep.ravel()
        return {"output_tensor": space.reshape(sizes)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 8, 1, 2]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 4]),
            "block_size": 2,
        }


class DepthToSpace1(DepthToSpace, of="DEPTH_TO_SPACE1"):
    __doc__ = DepthToSpace.__doc__

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {**super().example(), "order": DepthSpaceOrder.COLUMN_ROW_DEPTH}
