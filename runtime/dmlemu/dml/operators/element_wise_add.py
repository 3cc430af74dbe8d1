"""ELEMENT_WISE_ADD and ELEMENT_WISE_ADD1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..enums import FeatureLevel, OperatorType
from ..tensor_desc import BufferTensorDesc
from . import base
from ._conversion import Array, convert
from ._element_wise import BinaryOperatorDesc, UnaryOperatorDesc
from ._fusion import call_fused, check_fused, fused_reference

if TYPE_CHECKING:
    from ..compile import Program

_TENSORS = "a_tensor b_tensor output_tensor"
_WIDE = "FLOAT32 FLOAT16 INT64 INT32 UINT64 UINT32"
_ALL = "FLOAT32 FLOAT16 INT64 INT32 INT16 INT8 UINT64 UINT32 UINT16 UINT8"


def _sum(inputs: Mapping[str, Any]) -> Array:
    """A + B in FLOAT32 for floats; integers wrap."""
    a, b = np.asarray(inputs["a_tensor"]), np.asarray(inputs["b_tensor"])
    with np.errstate(all="ignore"):
        if a.dtype.kind == "f":
            a, b = a.astype(np.float32), b.astype(np.float32)
        total: Array = a + b
        return total


class ElementWiseAddOperatorDesc(
    BinaryOperatorDesc,
    type=OperatorType.ELEMENT_WISE_ADD,
    introduced=FeatureLevel.LEVEL_1_0,
    support={
        FeatureLevel.LEVEL_1_0: base.allow_each(_TENSORS, 4, 5, "FLOAT32 FLOAT16"),
        FeatureLevel.LEVEL_2_1: base.allow_each(_TENSORS, 4, 5, "FLOAT32 FLOAT16 INT32 UINT32"),
        FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, "FLOAT32 FLOAT16 INT32 UINT32"),
        FeatureLevel.LEVEL_4_1: base.allow_each(_TENSORS, 1, 8, _WIDE),
        FeatureLevel.LEVEL_5_1: base.allow_each(_TENSORS, 1, 8, _ALL),
    },
    in_place=True,
):
    """``output = A + B``.  Integers wrap; FLOAT16 is added in FLOAT32 and rounded once.

    Types and sizes of the three tensors are equal: broadcast an input with strides of 0.
    """

    FUNCTION: ClassVar[str] = "ADD"

    a_tensor: BufferTensorDesc = base.input_tensor()
    b_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": convert(_sum(inputs), self.output_tensor.data_type)}


class ElementWiseAdd1OperatorDesc(
    BinaryOperatorDesc,
    type=OperatorType.ELEMENT_WISE_ADD1,
    introduced=FeatureLevel.LEVEL_2_0,
    support={
        FeatureLevel.LEVEL_2_0: base.allow_each(_TENSORS, 4, 5, "FLOAT32 FLOAT16"),
        FeatureLevel.LEVEL_3_0: base.allow_each(_TENSORS, 1, 8, "FLOAT32 FLOAT16"),
    },
    in_place=True,
):
    """``output = FusedActivation(A + B)``; without an activation the sum.

    Types and sizes of the three tensors are equal: broadcast an input with strides of 0.
    """

    FUNCTION: ClassVar[str] = "ADD"

    a_tensor: BufferTensorDesc = base.input_tensor()
    b_tensor: BufferTensorDesc = base.input_tensor()
    output_tensor: BufferTensorDesc = base.output_tensor()
    fused_activation: UnaryOperatorDesc | None = base.fused_activation()

    def rules(self, check: base.Check) -> None:
        super().rules(check)
        check_fused(check, self.fused_activation)

    def lower(self, program: Program) -> None:
        a, b = program.read("a_tensor"), program.read("b_tensor")
        activation, constants = self.fused_activation, self.constants()
        call_fused(program, self.output_tensor, activation, "element_wise_binary", a, b, constants=constants)

    def reference(self, inputs: Mapping[str, Any]) -> dict[str, Array]:
        return {"output_tensor": fused_reference(_sum(inputs), self.fused_activation, self.output_tensor)}
