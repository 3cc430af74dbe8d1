"""JOIN and SPLIT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Axis, NotEmpty, Rule, SameSizes, SameType, Sizes
from ..declared.schema import camel
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import JoinOperatorDesc, SplitOperatorDesc
    from ..lowering.compile import Program


def _rules(whole: str, parts: str) -> tuple[Rule, ...]:
    """The rules of a tensor that consists of others, one after another along Axis."""

    def total(desc: Any) -> Iterator[tuple[int, int, str]]:
        size = sum(each.sizes[desc.axis] for each in getattr(desc, parts))
        yield desc.axis, size, f"the sum of the sizes of {camel(parts)} along Axis"

    return (
        NotEmpty(parts),
        SameType(whole, parts),
        Axis("axis", of=whole),
        SameSizes(whole, parts, but="axis"),
        Sizes(
            whole,
            total,
            f"`{camel(whole)}.Sizes[Axis]` is the sum of the sizes of `{camel(parts)}` along `Axis`.",
        ),
    )


def _example(whole: str, parts: str) -> dict[str, Any]:
    tensors = [BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, size]) for size in (2, 3, 5)]
    return {parts: tensors[:2], whole: tensors[2], "axis": 3}


class Join(Definition, of="JOIN"):
    """Puts the tensors of InputTensors one after another along Axis, in their order.

    Elements are copied bit by bit.  The number of inputs is not limited.
    """

    desc: JoinOperatorDesc

    KEEPS_NANS = True

    RULES = _rules("output_tensor", "input_tensors")

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
        return _example("output_tensor", "input_tensors")


class Split(Definition, of="SPLIT"):
    """Cuts the input along Axis into consecutive parts, one for each of OutputTensors, in their order.

    Elements are copied bit by bit.  The number of outputs is not limited.
    """

    desc: SplitOperatorDesc

    KEEPS_NANS = True

    RULES = _rules("input_tensor", "output_tensors")

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
        return _example("input_tensor", "output_tensors")
