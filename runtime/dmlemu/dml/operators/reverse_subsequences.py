"""REVERSE_SUBSEQUENCES."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import Axis, SameSizes, SameType, Sizes
from ..enums import TensorDataType
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array

if TYPE_CHECKING:
    from ..declared.descs import ReverseSubsequencesOperatorDesc
    from ..lowering.compile import Program


def _one_length(desc: ReverseSubsequencesOperatorDesc) -> Iterator[tuple[int, int, str]]:
    yield desc.axis, 1, "since there is one length for each sequence along Axis"


class ReverseSubsequences(Definition, of="REVERSE_SUBSEQUENCES"):
    """Reverses the first L elements of each sequence along Axis; the others stay in place.

    L is the sequence's element of SequenceLengthsTensor; one above the size along Axis counts as that size.
    ``output[i] = input[L - 1 - i]`` where i < L, else ``input[i]``.  Elements are copied bit by bit.
    """

    desc: ReverseSubsequencesOperatorDesc

    KEEPS_NANS = True

    RULES = (
        SameType("input_tensor", "output_tensor"),
        Axis("axis", of="input_tensor"),
        SameSizes("input_tensor", "output_tensor"),
        SameSizes("input_tensor", "sequence_lengths_tensor", but="axis"),
        Sizes("sequence_lengths_tensor", _one_length, "`SequenceLengthsTensor.Sizes[Axis]` is 1."),
    )

    def lower(self, program: Program) -> None:
        program.call(
            "reverse_subsequences",
            program.read("input_tensor"),
            program.read("sequence_lengths_tensor"),
            program.write("output_tensor"),
            constants=kernels.pack("reverse_subsequences", axis=self.desc.axis),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        x, axis = np.asarray(inputs["input_tensor"]), self.desc.axis
        size = x.shape[axis]
        length = np.minimum(np.asarray(inputs["sequence_lengths_tensor"]).astype(np.uint64), size).astype(
            np.int64
        )
        i = np.arange(size).reshape([size if d == axis else 1 for d in range(x.ndim)])
        source = np.where(i < length, length - 1 - i, i)
        return {"output_tensor": np.take_along_axis(x, source, axis)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "input_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 5]),
            "sequence_lengths_tensor": BufferTensorDesc(TensorDataType.UINT32, [1, 1, 3, 1]),
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 1, 3, 5]),
            "axis": 3,
        }
