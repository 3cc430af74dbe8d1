"""Operators that move blocks of the spatial dimensions to the channels, or back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import AtLeast, Divisible, Rule, SameType, Sizes
from ..declared.values import Multiple
from ..enums import DepthSpaceOrder, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..lowering.compile import Program


class SpaceDepth(Definition):
    """``deep[n, channel(c, y, x), h, w] = space[n, c, h * BlockSize + y, w * BlockSize + x]``."""

    desc: Any

    KEEPS_NANS = True
    RULES: ClassVar[tuple[Rule, ...]] = (SameType("input_tensor", "output_tensor"), AtLeast("block_size", 1))
    TO_SPACE: ClassVar[bool]
    """Whether the input is the deep tensor."""

    @property
    def depth_first(self) -> bool:
        """Whether the deep channel is c * BlockSize**2 + y * BlockSize + x; else the block comes first."""
        order = getattr(self.desc, "order", DepthSpaceOrder.DEPTH_COLUMN_ROW)
        return bool(order is DepthSpaceOrder.COLUMN_ROW_DEPTH)

    def lower(self, program: Program) -> None:
        program.call(
            "space_depth",
            program.read("input_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack(
                "space_depth",
                block=self.desc.block_size,
                depth_first=int(self.depth_first),
                to_space=int(self.TO_SPACE),
            ),
        )

    def to_deep(self, space: Array) -> Array:
        """``space`` with its blocks in the channels."""
        block, (n, channels, height, width) = self.desc.block_size, space.shape
        split = space.reshape(n, channels, height // block, block, width // block, block)
        order = (0, 1, 3, 5, 2, 4) if self.depth_first else (0, 3, 5, 1, 2, 4)  # n c h y w x
        deep: Array = split.transpose(order).reshape(n, -1, height // block, width // block)
        return deep

    @classmethod
    def example(cls) -> dict[str, Any]:
        space, deep = (
            BufferTensorDesc(TensorDataType.FLOAT32, sizes) for sizes in ([1, 2, 2, 4], [1, 8, 1, 2])
        )
        return {
            "input_tensor": deep if cls.TO_SPACE else space,
            "output_tensor": space if cls.TO_SPACE else deep,
            "block_size": 2,
            "order": DepthSpaceOrder.COLUMN_ROW_DEPTH,
        }


def _whole_blocks(desc: Any) -> Iterator[tuple[int, Multiple, str]]:
    yield 1, Multiple(desc.block_size**2), "BlockSize * BlockSize"


def _spatial(desc: Any) -> Iterator[tuple[int, int, str]]:
    batch, channels, height, width = desc.input_tensor.sizes
    block = desc.block_size
    yield 0, batch, "InputTensor.Sizes[0]"
    yield 1, channels // block**2, "InputTensor.Sizes[1] / (BlockSize * BlockSize)"
    yield 2, height * block, "InputTensor.Sizes[2] * BlockSize"
    yield 3, width * block, "InputTensor.Sizes[3] * BlockSize"


def _deep(desc: Any) -> Iterator[tuple[int, int, str]]:
    batch, channels, height, width = desc.input_tensor.sizes
    block = desc.block_size
    yield 0, batch, "InputTensor.Sizes[0]"
    yield 1, channels * block * block, "InputTensor.Sizes[1] * BlockSize * BlockSize"
    yield 2, height // block, "InputTensor.Sizes[2] / BlockSize"
    yield 3, width // block, "InputTensor.Sizes[3] / BlockSize"


class DepthToSpace(SpaceDepth, of="DEPTH_TO_SPACE DEPTH_TO_SPACE1"):
    """Moves BlockSize * BlockSize channels of one element into blocks of BlockSize x BlockSize elements of
    one channel: the inverse of SPACE_TO_DEPTH.

    Element (y, x) of the block at row h and column w of output channel c is element (h, w) of the channel

    * ``(y * BlockSize + x) * C + c`` with Order DEPTH_COLUMN_ROW, and for DEPTH_TO_SPACE (C output channels);
    * ``c * BlockSize * BlockSize + y * BlockSize + x`` with Order COLUMN_ROW_DEPTH.

    Elements are copied bit by bit.  The number of channels is a multiple of BlockSize * BlockSize.
    """

    TO_SPACE = True

    RULES = (
        *SpaceDepth.RULES,
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


class SpaceToDepth(SpaceDepth, of="SPACE_TO_DEPTH SPACE_TO_DEPTH1"):
    """Moves blocks of BlockSize x BlockSize elements of a channel into as many channels of one element.

    Element (y, x) of the block at row h and column w of channel c becomes element (h, w) of the channel

    * ``(y * BlockSize + x) * C + c`` with Order DEPTH_COLUMN_ROW, and for SPACE_TO_DEPTH (C channels);
    * ``c * BlockSize * BlockSize + y * BlockSize + x`` with Order COLUMN_ROW_DEPTH.

    Elements are copied bit by bit.  Height and width are multiples of BlockSize.
    """

    TO_SPACE = False

    RULES = (
        *SpaceDepth.RULES,
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
