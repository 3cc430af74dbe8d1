"""Family: operators that move blocks of the spatial dimensions to the channels, or back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from dmlemu_hw import kernels

from ...declared.definition import Definition
from ...enums import DepthSpaceOrder
from .conversion import Array

if TYPE_CHECKING:
    from ...lowering.compile import Program


class SpaceDepth(Definition):
    """``deep[n, channel(c, y, x), h, w] = space[n, c, h * BlockSize + y, w * BlockSize + x]``."""

    desc: Any

    KEEPS_NANS = True
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
