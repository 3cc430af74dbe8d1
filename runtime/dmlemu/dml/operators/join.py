"""JOIN."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Axis, NotEmpty, SameSizes, SameType, Sizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import JoinOperatorDesc
    from ..lowering.compile import Program


def _total(desc: JoinOperatorDesc) -> Iterator[tuple[int, int, str]]:
    total = sum(each.sizes[desc.axis] for each in desc.input_tensors)
    yield desc.axis, total, "the sum of the sizes of InputTensors along Axis"


class Join(Definition, of="JOIN"):
    """Puts the tensors of InputTensors one after another along Axis, in their order.

    Elements are copied bit by bit.  The number of inputs is not limited.
    """

    desc: JoinOperatorDesc

    KEEPS_NANS = True

    RULES = (
        NotEmpty("input_tensors"),
        SameType("output_tensor", "input_tensors"),
        Axis("axis", of="output_tensor"),
        SameSizes("output_tensor", "input_tensors", but="axis"),
        Sizes(
            "output_tensor",
            _total,
            "`OutputTensor.Sizes[Axis]` is the sum of the sizes of `InputTensors` along `Axis`.",
        ),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "concatenate",
            *(program.read("input_tensors", i) for i in range(len(self.desc.input_tensors))),
            program.write("output_tensor"),
            constants=kernels.pack("concatenate", axis=self.desc.axis),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": np.concatenate(inputs["input_tensors"], self.desc.axis)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensors": [
                BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 2]),
                BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 3]),
            ],
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 5]),
            "axis": 3,
        }
