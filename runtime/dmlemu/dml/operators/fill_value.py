"""FILL_VALUE_CONSTANT and FILL_VALUE_SEQUENCE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dmlemu_hw import kernels

from ..declared.definition import Definition
from ..declared.rules import SameType
from ..enums import TensorDataType
from ..structs import ScalarUnion
from ..tensor_desc import BufferTensorDesc
from .families.conversion import Array, convert

if TYPE_CHECKING:
    from ..declared.descs import FillValueConstantOperatorDesc, FillValueSequenceOperatorDesc
    from ..lowering.compile import Program


def _element(value: ScalarUnion, tensor: BufferTensorDesc) -> bytes:
    return value.bytes[: tensor.dtype.itemsize]


class FillValueConstant(Definition, of="FILL_VALUE_CONSTANT"):
    """Value in every element: the first bytes of the union, as many as an element has."""

    desc: FillValueConstantOperatorDesc

    KEEPS_NANS = True

    RULES = (SameType("output_tensor", "value_data_type"),)

    def lower(self, program: Program) -> None:
        value = int.from_bytes(_element(self.desc.value, self.desc.output_tensor), "little")
        program.call(
            "fill_value_constant",
            program.write("output_tensor"),
            constants=kernels.pack("fill_value_constant", value=value),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        output = self.desc.output_tensor
        value = np.frombuffer(_element(self.desc.value, output), output.dtype)
        return {"output_tensor": np.full(output.sizes, value)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "value_data_type": TensorDataType.FLOAT32,
            "value": ScalarUnion.of(TensorDataType.FLOAT32, 2.5),
        }


class FillValueSequence(Definition, of="FILL_VALUE_SEQUENCE"):
    """``output[i] = ValueStart + i * ValueDelta``, where i counts the elements in row-major order, whatever
    the strides.

    Integers wrap: UINT8 with a delta of 254 counts down by 2.  Floats are computed in FLOAT32 from i, also
    FLOAT16: one product and one sum, each rounded, so that errors do not add up.  DirectML does not say
    whether it adds ValueDelta step by step.
    """

    desc: FillValueSequenceOperatorDesc

    RULES = (SameType("output_tensor", "value_data_type"),)

    def lower(self, program: Program) -> None:
        desc = self.desc
        start, delta = (
            int.from_bytes(_element(each, desc.output_tensor), "little")
            for each in (desc.value_start, desc.value_delta)
        )
        program.call(
            "fill_value_sequence",
            program.write("output_tensor"),
            constants=kernels.pack("fill_value_sequence", start=start, delta=delta),
        )

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        desc, output = self.desc, self.desc.output_tensor
        i = np.arange(output.element_count)
        working = np.float32 if output.dtype.kind == "f" else output.dtype
        start, delta = (
            np.frombuffer(_element(each, output), output.dtype).astype(working)
            for each in (desc.value_start, desc.value_delta)
        )
        with np.errstate(all="ignore"):
            values = start + i.astype(working) * delta
        return {"output_tensor": convert(values, output.data_type).reshape(output.sizes)}

    @classmethod
    def example(cls) -> dict[str, Any]:
        return {
            "output_tensor": BufferTensorDesc(TensorDataType.FLOAT32, [1, 2, 3, 4]),
            "value_data_type": TensorDataType.FLOAT32,
            "value_start": ScalarUnion.of(TensorDataType.FLOAT32, 2.0),
            "value_delta": ScalarUnion.of(TensorDataType.FLOAT32, 0.5),
        }
