"""TILE."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import AtLeast, Length, SameRank, SameType, Sizes
from ..enums import PaddingMode, TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import TileOperatorDesc
    from ..lowering.compile import Program


def _repeated(desc: TileOperatorDesc) -> Iterator[tuple[int, int, str]]:
    for i, count in enumerate(desc.repeats):
        yield i, desc.input_tensor.sizes[i] * count, f"InputTensor.Sizes[{i}] * Repeats[{i}]"


class Tile(Definition, of="TILE"):
    """Repeats the whole input Repeats[i] times along each dimension i:
    ``output[o] = input[o mod InputTensor.Sizes]``.

    Elements are copied bit by bit.
    """

    desc: TileOperatorDesc

    KEEPS_NANS = True

    RULES = (
        SameType("input_tensor", "output_tensor"),
        SameRank("input_tensor", "output_tensor"),
        Length("repeats", of="input_tensor"),
        AtLeast("repeats", 1),
        Sizes("output_tensor", _repeated, "`OutputTensor.Sizes[i]` is `InputTensor.Sizes[i] * Repeats[i]`."),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "padding",
            program.read("input_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("padding", mode=int(PaddingMode.WRAP)),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": np.tile(np.asarray(inputs["input_tensor"]), self.desc.repeats)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 2, 3]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 2, 9]),
            "repeats": [1, 2, 1, 3],
        }
