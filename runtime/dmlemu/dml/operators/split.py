"""SPLIT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Axis, NotEmpty, SameSizes, SameType, Sizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc

if TYPE_CHECKING:
    from ..declared.descs import SplitOperatorDesc
    from ..lowering.compile import Program


def _total(desc: SplitOperatorDesc) -> Iterator[tuple[int, int, str]]:
    total = sum(each.sizes[desc.axis] for each in desc.output_tensors)
    yield desc.axis, total, "the sum of the sizes of OutputTensors along Axis"


class Split(Definition, of="SPLIT"):
    """Cuts the input along Axis into consecutive parts, one for each of OutputTensors, in their order.

    Elements are copied bit by bit.  The number of outputs is not limited.
    """

    desc: SplitOperatorDesc

    KEEPS_NANS = True

    RULES = (
        NotEmpty("output_tensors"),
        SameType("input_tensor", "output_tensors"),
        Axis("axis", of="input_tensor"),
        SameSizes("input_tensor", "output_tensors", but="axis"),
        Sizes(
            "input_tensor",
            _total,
            "`InputTensor.Sizes[Axis]` is the sum of the sizes of `OutputTensors` along `Axis`.",
        ),
    )

    def lower(self, program: Program) -> None:
        first = [0] * self.desc.input_tensor.rank
        for i, output in enumerate(self.desc.output_tensors):
            program.call(
                "take_slice",
                program.read("input_tensor"),
                program.write("output_tensors", i),
                constants=kernels.pack("take_slice", first=first, step=[1] * len(first)),
            )
            first[self.desc.axis] += output.sizes[self.desc.axis]

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        axis = self.desc.axis
        ends = np.cumsum([each.sizes[axis] for each in self.desc.output_tensors])
        return {"output_tensors": np.split(np.asarray(inputs["input_tensor"]), ends[:-1], axis)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 5]),
            "output_tensors": [
                BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 2]),
                BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 3]),
            ],
            "axis": 3,
        }
